"""perf.data to instructions: ours and `perf script` on the same bytes, by processor time of both; and the wall-clock
time from a billion of them, pushed and sealed, to profiles and coverage.

Both write the address of each instruction on a line, ours also its code; the output is discarded. The recording of
one thread is repeated many times, so that the beginning and end of the programs do not matter. Files: $TL_DATA/perf,
or ../shared/data/perf.
"""
import os
import re
import resource
import shutil
import struct
import subprocess
import sys
import tempfile

import end

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.append(os.path.join(ROOT, 'tests', 'perf'))
import perffile  # noqa: E402

ROUNDS, TIMES, TIMES_LARGE = 3, 40, 10000


def many(raw, times):
    """The file with the trace of its last AUXTRACE record repeated `times` times, without timestamps."""
    file, last = perffile.File(raw), None
    at = file.data_at
    while at < file.data_at + file.data_n:
        kind, _, size = struct.unpack_from('<IHH', raw, at)
        trace = struct.unpack_from('<Q', raw, at + 8)[0] if kind == 71 else 0
        last = (at, size, trace) if kind == 71 else last
        at += size + trace
    record, size, trace = last
    begin, more = record + size, trace * (times - 1)
    out = bytearray(raw[:begin] + raw[begin:begin + trace] * times + raw[begin + trace:])
    struct.pack_into('<Q', out, record + 8, trace * times)
    struct.pack_into('<Q', out, 48, file.data_n + more)
    table = file.data_at + file.data_n + more
    for i in range(len(file.features)):  # they are after the records
        struct.pack_into('<Q', out, table + 16 * i, struct.unpack_from('<Q', out, table + 16 * i)[0] + more)
    return bytes(out)


def run(command, path):
    """The program's output, and seconds of processor time."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    out = subprocess.run(command + [path], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False).stdout
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return out, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def questions(build, raw, symfs):
    """Seconds to answer queries about TIMES_LARGE times the trace, from a server that has just been started."""
    bench, rows = end.Bench(build, 0), []
    try:
        with open(bench.path('large'), 'wb') as out:
            out.write(many(raw, TIMES_LARGE))
        bench.start(0, bench.path('data'))
        bench.run(0, 'push', '--server', bench.url, '--trace', 't', '--format', 'perf,threads=no,events=no',
                  '--symfs', symfs, bench.path('large'))
        bench.stop()
        for what, args in (('profile --as folded', ('profile', '--as', 'folded')),
                           ('profile --as pprof', ('profile', '--as', 'pprof')),
                           ('profile --as bolt', ('profile', '--as', 'bolt')),
                           ('coverage', ('coverage',))):
            bench.start(0, bench.path('data'))
            took = bench.run(0, *args, 't', '--server', bench.url, '-o', bench.path('answer'))[0]
            bench.stop()
            rows.append(dict(stage=what, input='pt-no-time × %d' % TIMES_LARGE, value=took * 1000, unit='ms'))
    finally:
        bench.close()
    return rows


def measure(build):
    """Rows of the table of stages; none if there are no files."""
    data = os.path.join(os.environ.get('TL_DATA', os.path.join(ROOT, '..', 'shared', 'data')), 'perf')
    capture, symfs = os.path.join(data, 'pt', 'pt-no-time.data'), os.path.join(data, 'symfs')
    if not os.path.exists(capture):
        return []
    rows = []
    with tempfile.TemporaryDirectory() as own:
        path = os.path.join(own, 'many')
        with open(capture, 'rb') as f, open(path, 'wb') as out:
            raw = f.read()
            out.write(many(raw, TIMES))
        decode = [os.path.join(build, 'tracelake'), 'decode', '--threads', '1', '--symfs', symfs]
        text = run(decode + ['--text'], path)[0]
        insns = len(re.findall(rb'^I ', text, re.M))
        perf = None
        if shutil.which('perf'):
            theirs, took = run(['perf', 'script', '--symfs', symfs, '--itrace=i0ns', '-F', 'ip', '-i'], path)
            if abs(theirs.count(b'\n') - insns) < insns // 100:  # the boundaries of repetitions differ
                perf = insns / took / 1e6
            else:
                print('perf script finds %d instructions, and not %d' % (theirs.count(b'\n'), insns))
        for what, args in (('text', ['--text']), ('.zstf', ['--out', own])):
            best = min(run(decode + args, path)[1] for _ in range(ROUNDS))
            row = dict(stage='perf.data to ' + what, input='pt-no-time × %d' % TIMES, value=insns / best / 1e6, unit='M/s')
            if perf:
                row.update(peer='perf script', peer_value=perf, ratio=row['value'] / perf)
            rows.append(row)
    return rows + questions(build, raw, symfs)
