#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""End to end: commands and the client library against the real server. usage: e2e.py BUILD [NAME…]"""

import glob
import gzip
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import osd  # noqa: E402
from lab import DATA, Skip, check, main, only, same_streams, snapshot, streams, wait  # noqa: E402

TESTS = {}


def test(function):
    TESTS[function.__name__] = function
    return function


def golden(name):
    """The reference's instructions, exceptions and returns for a capture."""
    path = os.path.join(DATA, 'coresight', 'flow', name + '.flow.gz')
    with gzip.open(path, 'rt') as f:
        return streams(f.read())


def key(lines):
    """Instructions, exceptions and returns; only our exceptions have names."""
    return {c: [line if c != 'X' else 'X ' + ' '.join(line.split()[-2:])
                for line in only(lines, c)] for c in 'IXR'}


def compare_golden(ours, name):
    reference = golden(name)
    for stream in set(reference) | set(ours):
        a, b = key(reference.get(stream, [])), key(ours.get(stream, []))
        for c in 'IXR':
            check(a[c] == b[c], name, stream, c, 'lines differ from the reference:', len(a[c]),
                  len(b[c]))


BUFFERS = {'juno_r1_1': ['ETB_0', 'ETB_1'], 'juno-uname-002': ['ETB_0']}


@test
def snapshots(lab):
    """A pushed snapshot contains what decode prints, and what the reference prints."""
    lab.start()
    for name, buffers in BUFFERS.items():
        folder = snapshot(name)
        told = lab.run('push', '--snapshot', folder).text()
        if name == 'juno_r1_1':  # one of its six cores was off
            silent = [line.strip() for line in told.splitlines() if 'no trace came' in line]
            check(silent == ['juno_r1_1.ETB_0/cs.14 etm4: no trace came from ETM_4'], told)
        ls = json.loads(lab.run('ls', '--json').text())
        ours = {t['id'] for t in ls}
        for buffer in buffers:
            trace = name + '.' + buffer
            check(trace in ours, trace, 'is not listed in', ours)
            local = lab.run('decode', '--snapshot', folder, '--buffer', buffer, '--text')
            stored = lab.run('get', trace, '--text')
            same_streams(streams(local.text()), streams(stored.text()), trace)
            for reference in (trace, name):
                if os.path.exists(os.path.join(DATA, 'coresight', 'flow', reference + '.flow.gz')):
                    compare_golden(streams(stored.text()), reference)
                    break
    # Pushing it again does nothing, and says so.
    again = lab.run('push', '--snapshot', snapshot('juno_r1_1'))
    check(b'has all of it' in again.err, again)
    lab.stop()


@test
def snapshot_places(lab):
    """What is wrong with a snapshot's buffer is told with its file, and what was never written is no source to configure."""
    folder = snapshot('stm_only-juno')
    told = lab.run('decode', '--snapshot', folder, '--text').err.decode()
    check('/cstraceitm.bin: 105 trace sources are not in the configuration; so many are none' in told, told)
    copy = lab.path('cut')
    shutil.copytree(snapshot('juno_r1_1'), copy, copy_function=shutil.copyfile)
    with open(os.path.join(copy, 'cstrace.bin'), 'rb') as f:
        bytes_of = f.read()
    with open(os.path.join(copy, 'cstrace.bin'), 'wb') as f:
        f.write(bytes_of[:0x7fa0] + bytes_of[0x7fb0:])
    told = lab.run('decode', '--snapshot', copy, '--buffer', 'ETB_0', '--text', status=1).err.decode()
    check(told.startswith('tracelake: %s/cstrace.bin: offset 0x7fa5: cs.10: bad packet' % copy), told)


@test
def bytewise(lab):
    """One byte per message gives the same as all bytes at once."""
    lab.start()
    folder = snapshot('juno_r1_1')
    lab.run('push', '--snapshot', folder, '--buffer', 'ETB_0')
    lab.run('push', '--snapshot', folder, '--buffer', 'ETB_0', '--trace', 'bytes', '--chunk', '1')
    same_streams(streams(lab.run('get', 'juno_r1_1.ETB_0', '--text').text()),
                 streams(lab.run('get', 'bytes.ETB_0', '--text').text()), 'bytewise')
    check(lab.raw('juno_r1_1.ETB_0') == lab.raw('bytes.ETB_0'), 'raw bytes differ')


def simulated(lab, n, kind='etm', seed=1):
    """A simulated capture of about n bytes, pushed as `sim`; its bytes and truth are in files."""
    lab.start()
    done = subprocess.run([lab.rig, '--kind', kind, '--server', lab.url, '--trace', 'sim',
                           '--rate', '100000000', '--bytes', str(n), '--seed', str(seed),
                           '--truth', lab.path('truth'), '--save', lab.path('raw'),
                           '--config', lab.path('sim.ini'), '--image', lab.path('demo.elf')],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=240)
    check(done.returncode == 0, done.stderr.decode())


def wait_sealed(lab, trace):
    def done():
        row = json.loads(lab.run('ls', '--json', trace).text())[0]
        return row if row['state'] not in ('live', 'decoding') else None
    row = wait(trace + ' is sealed', done, lab.server_log)
    check(row['state'] == 'sealed', row)
    return row


@test
def simulated_rig(lab):
    """The server returns what a simulated rig traced."""
    simulated(lab, 60000)
    wait_sealed(lab, 'sim')
    with open(lab.path('raw'), 'rb') as f:
        check(f.read() == lab.raw('sim'), 'raw bytes differ')
    with open(lab.path('truth')) as f:
        truth = streams(f.read())
    stored = streams(lab.run('get', 'sim', '--text').text())
    check(sorted(truth) == sorted(stored), sorted(truth), sorted(stored))
    for stream in truth:
        a, b = key(truth[stream]), key(stored[stream])
        for c in 'IXR':
            check(len(a[c]) > 100, 'too little happened:', stream, c, len(a[c]))
            check(a[c] == b[c], stream, c, 'lines differ from the truth', len(a[c]), len(b[c]))


@test
def loaded_and_unloaded(lab):
    """Code is loaded and unloaded at one address: the images' times are pushed with the setup, and kept."""
    simulated(lab, 1, 'plugins')
    wait_sealed(lab, 'sim')
    with open(lab.path('truth')) as f:
        truth = only(streams(f.read())['cs.10'], 'I')
    check(len(truth) > 100000, 'too little happened', len(truth))
    lab.run('push', '--trace', 'file', '--format', 'tpiu,sync=fsync', '--config',
            lab.path('sim.ini'), lab.path('raw'))
    local = lab.run('decode', '--format', 'tpiu,sync=fsync', '--config', lab.path('sim.ini'),
                    '--text', lab.path('raw')).text()
    check(only(streams(local)['cs.10'], 'I') == truth, 'decoded other than executed')
    lab.stop()
    lab.start()
    for trace in ('sim', 'file'):
        for again in (False, True):
            if again:
                lab.run('redecode', trace)
            check(lab.run('get', trace, '--text').text() == local, trace, 'differs', again)
    with open(lab.path('sim.ini')) as f:
        config = f.read()
    check('until=' in config, 'no times', config[:2000])
    with open(lab.path('late.ini'), 'w') as f:
        f.write(re.sub('(from|until)=.*\\n', '', config))
    wrong = lab.run('decode', '--format', 'tpiu,sync=fsync', '--config', lab.path('late.ini'),
                    '--text', lab.path('raw')).text()
    check(wrong != local, 'times do not matter')


@test
def simulated_di(lab):
    """The same for an Open SoC Debug system."""
    simulated(lab, 300000, 'di')
    wait_sealed(lab, 'sim')
    with open(lab.path('truth')) as f:
        truth = streams(f.read())
    stored = streams(lab.run('get', 'sim', '--text').text())
    check('di.0.1' in stored, sorted(stored))
    a, b = only(truth['di.0.1'], 'B'), only(stored['di.0.1'], 'B')
    check(len(a) > 1000 and a == b, 'branches differ from the truth', len(a), len(b))
    check(any(line.startswith('S ') for line in stored.get('di.0.2', [])), 'no software trace')


@test
def simulated_pt(lab):
    """The same for an x86 processor."""
    simulated(lab, 200000, 'pt')
    wait_sealed(lab, 'sim')
    with open(lab.path('truth')) as f:
        truth = streams(f.read())
    stored = streams(lab.run('get', 'sim', '--text').text())
    a, b = only(truth['pt.0'], 'I'), only(stored['pt.0'], 'I')
    check(len(a) > 100000 and a == b, 'instructions differ from the truth', len(a), len(b))


@test
def osd_captures(lab):
    """Streams of Open SoC Debug hardware are stored as decoded, in any pieces."""
    folder = os.path.join(DATA, 'di')
    captures = sorted(glob.glob(os.path.join(folder, 'ctm*.dtd.bin')))
    if not captures:
        raise Skip('no ' + folder)
    lab.start()
    for path in captures:
        name = os.path.basename(path)[:-len('.dtd.bin')]
        with open(path[:-len('.dtd.bin')] + '.decoded.txt') as f:
            check(lab.run('decode', '--format', 'di', '--packets', path).text() == f.read(), name)
        for log, suffix in (('ctm', 'ctm'), ('stm', 'stm'), ('print', 'sysprint')):
            with open(path[:-len('.dtd.bin')] + '.osdsw-%s.txt' % suffix) as f:
                ours = lab.run('decode', '--format', 'di', '--like', 'osd-sw-' + log, path).text()
                check(ours == f.read(), name, log)
        local = streams(lab.run('decode', '--format', 'di', '--text', path).text())
        for chunk in ('7', '4096'):
            trace = name + '-' + chunk
            lab.run('push', '--format', 'di', '--chunk', chunk, '--trace', trace, path)
            wait_sealed(lab, trace)
            same_streams(local, streams(lab.run('get', trace, '--text').text()), trace)


def osd_modules_stream():
    """Every kind of module, several overflows, and traffic from a host; (bytes, text by stream)."""
    modules = {0: (1, 0), 1: (5, 32), 2: (4, 32), 3: (2, 0), 4: (6, 0), 5: (3, 0), 6: (77, 0)}
    out = osd.enumeration(modules)
    text = {'di.0.%d' % i: [] for i in range(1, 6)}
    for i, c in enumerate('boot\n'):
        out += osd.stm(1000 + i, 4, ord(c))
        text['di.0.2'] += ['T %d' % (1000 + i), 'S osd-stm 4 %08x' % ord(c)]
    for i in range(20):
        time, pc, npc = 2000 + 10 * i, 0x80000000 + 8 * i, 0x80001000 + 64 * i
        out += osd.ctm(time, pc, npc, call=True)
        text['di.0.1'] += ['T %d' % time] + ['M m.rv32'] * (i == 0) + ['B %016x %016x' % (pc, npc)]
        if i == 9:
            out += osd.overflow(1, 3) + osd.packet(3, [ord('u')]) + osd.overflow(1, 65535)
            text['di.0.1'] += ['G overflow 65538+']
            text['di.0.3'] += ['S uart - 75']
    out += osd.packet(osd.HOST, [ord('i')], dest=3)
    text['di.0.3'] += ['S uart-in - 69']
    out += osd.packet(4, [1]) + osd.packet(4, [0])
    text['di.0.4'] += ['A core stalled', 'A core running']
    out += osd.packet(osd.HOST, [0xc003, 0, 0x1000, 1, 2, 3], dest=5) + osd.packet(5, [1, 2, 3])
    text['di.0.5'] += ['A memory access set aside']
    out += osd.packet(6, list(range(20))) * 3  # of an unknown type
    text['di.0.6'] = ['A events of an unknown kind of module set aside']
    out += osd.stm(3000, 5, 7)
    text['di.0.2'] += ['T 3000', 'S osd-stm 5 00000007']
    return out, text


@test
def osd_modules(lab):
    """The output of each kind of module, as text, as events and in the page's list."""
    data, text = osd_modules_stream()
    with open(lab.path('di'), 'wb') as f:
        f.write(data)
    lab.start()
    lab.run('push', '--format', 'di,clock=50000000', '--trace', 'all', '--chunk', '11',
            lab.path('di'))
    wait_sealed(lab, 'all')
    same_streams(text, streams(lab.run('get', 'all', '--text').text()), 'all')
    gaps = lab.run('find', 'all/di.0.1', '--event', 'overflow').text()
    check(len(gaps.splitlines()) == 2 and '65538+' in gaps, gaps)
    found = lab.run('find', 'all/di.0.3', '--event', 'software').text()
    check(len(found.splitlines()) == 3, found)


@test
def osd_images(lab):
    """RISC-V and OpenRISC programs: symbols of both, instructions only of the former."""
    base = 0x80000000
    symbols = [('main', base, 0x40), ('leaf', base + 0x40, 0x40)]
    code = bytearray(0x80)
    call, ret = base + 8, base + 0x44
    code[8:12] = (0x038000ef).to_bytes(4, 'little')  # jal leaf
    code[0x44:0x46] = (0x8082).to_bytes(2, 'little')  # c.jr ra
    data = osd.enumeration({0: (1, 0), 1: (5, 32)})
    for i in range(50):
        data += osd.ctm(100 * i + 1, call, base + 0x40, call=True)
        data += osd.ctm(100 * i + 50, ret, call + 4, ret=True)
    with open(lab.path('di'), 'wb') as f:
        f.write(data)
    lab.start()
    for name, machine in (('riscv', osd.RISCV), ('or1k', osd.OPENRISC)):
        with open(lab.path(name), 'wb') as f:
            f.write(osd.elf32(machine, base, bytes(code), symbols))
        lab.run('push', '--format', 'di', '--trace', name, '--image', lab.path(name),
                lab.path('di'))
        wait_sealed(lab, name)
        lines = streams(lab.run('get', name, '--text').text())['di.0.1']
        check(len(only(lines, 'B')) == 100, len(lines))
        insns = ['I %016x 038000ef' % call, 'I %016x 8082' % ret] * 50
        check(only(lines, 'I') == (insns if machine == osd.RISCV else []), name, lines[:8])
        stats = json.loads(lab.run('stats', name + '/di.0.1', '--json').text())
        calls = {f['name']: f['calls'] for f in stats['functions']}
        check(calls == {'main': 0, 'leaf': 50}, stats['functions'])
        found = lab.run('find', name + '/di.0.1', '--symbol', 'leaf', '--limit', '100').text()
        check(len(found.splitlines()) == 51, name, found[:300])
    lab.run('get', 'riscv/di.0.1', '-o', lab.path('a.stf'))
    dump = lab.run('dump', lab.path('a.stf')).text()
    for record, n in (('FORCE_PC', 100), ('INST_PC_TARGET', 100), ('INST_32', 50), ('INST_16', 50)):
        check(dump.count(' %s ' % record) == n, record, dump.count(' %s ' % record))


@test
def osd_arrival(lab):
    """A module was silent for several wraps of its clock: its bytes' arrival times resolve that."""
    hz = 4000000000
    first = osd.enumeration({0: (1, 0), 2: (4, 32)})
    first += b''.join(osd.stm(1000 * i, 5, i) for i in range(20))
    rest = b''.join(osd.stm(20000 + 1000 * i, 5, i) for i in range(20))
    lab.start()
    push = lab.spawn('push', '--format', 'di,clock=%d' % hz, '--trace', 'quiet', '--chunk', '10',
                     '-', stdin=subprocess.PIPE)
    push.stdin.write(first)
    push.stdin.flush()
    wait_offset(lab, 'quiet', len(first) - 20)
    time.sleep(3.5)
    push.stdin.write(rest)
    push.stdin.close()
    check(push.wait(240) == 0, push.stderr.read())
    wait_sealed(lab, 'quiet')
    text = lab.run('get', 'quiet', '--text').text()
    times = [int(line.split()[1]) for line in text.splitlines() if line.startswith('T ')]
    check(len(times) == 40 and 'A time ambiguous' in text, text)  # twice if the machine was stalled
    check(times[-1] - times[0] > 3 * hz, times[18:22])
    check([t & 0xffffffff for t in times] == [1000 * i for i in range(40)], times)
    lab.run('redecode', 'quiet')
    wait_sealed(lab, 'quiet')
    check(lab.run('get', 'quiet', '--text').text() == text, 'decoded again, it differs')


def wait_offset(lab, trace, n):
    wait('%d bytes of %s' % (n, trace), lambda: lab.offset(trace) >= n)


def described(lab):
    """The arguments for pushing the simulated capture."""
    return ['--format', 'tpiu,sync=fsync', '--config', lab.path('sim.ini'), '--image',
            lab.path('demo.elf')]


def again(lab):
    return described(lab) + ['--trace', 'again', lab.path('raw')]


@test
def bad_input(lab):
    """Bad input gets a clear message and the right status; the server continues, and nothing is lost."""
    lab.start()
    junk = lab.path('junk')
    with open(junk, 'wb') as f:
        f.write(bytes((i * 167 + i // 251 * 91) & 255 for i in range(100000)))
    lab.fails(1, r'junk|trace|byte', 'push', '--format', 'tpiu', '--trace', 'junk', junk)
    check(lab.raw('junk') == open(junk, 'rb').read(), 'the garbage was not kept')
    told = lab.run('push', '--format', 'etm4,id=0x10', '--trace', 'wrong', junk)
    check(b'could be decoded as etm4,id=0x10' in told.err, told)
    lab.alive()
    lab.fails(2, r'nonsense', 'push', '--format', 'nonsense', junk)
    lab.fails(2, r'nonsense', 'decode', '--format', 'nonsense', '--text', junk)
    lab.fails(1, r'No such file', 'push', '--format', 'tpiu', lab.path('nothing'))
    lab.fails(1, r'No such file', 'push', lab.path('nothing'))
    lab.fails(1, r'No such file', 'push', '--format', 'tpiu', '--image', lab.path('no.elf'), junk)
    lab.fails(1, r'empty', 'push', '--format', 'tpiu', '-', stdin=b'')
    lab.fails(2, r'--help', 'push', junk)
    lab.fails(2, r'--help', 'get', 'x', '--nonsense')
    lab.fails(2, r'ends? in', 'get', 'x/y', '-o', 'file.txt')
    for span in ('5:3', '5', 'a:b', '1:2:3', '-1:4', '1:99999999999999999999'):
        lab.fails(2, r'range', 'get', 'x/y', '--text', '--insn', span)
    for rate in ('3Q', '', '-1', 'K', '99999999999G'):
        lab.fails(2, r'size', 'push', '--format', 'tpiu', '--rate', rate, junk)
    for pc in ('', 'xyz', '5:', '9:5', '0x11112222333344445'):
        lab.fails(2, r'--pc', 'find', 'x/y', '--pc', pc)
    lab.fails(2, r'one of', 'find', 'x/y', '--pc', '5', '--symbol', 'main')
    lab.fails(2, r'unknown command', 'nonsense')
    lab.fails(3, r'nowhere', 'get', 'nowhere/cs.10', '--text')
    lab.fails(3, r'nowhere', 'show', 'nowhere')
    lab.fails(3, r'nowhere', 'rm', 'nowhere')
    lab.fails(3, r'cs\.77', 'get', 'junk/cs.77', '--text')
    lab.fails(3, r'is the server running', 'ls', '--server', 'http://127.0.0.1:1')
    lab.fails(2, r'URL', 'ls', '--server', '127.0.0.1:7070')
    lab.alive()
    check(lab.raw('junk') == open(junk, 'rb').read(), 'the garbage was not kept')


@test
def wrong_image(lab):
    """A capture with another program's image gives gaps and a message, and invents nothing."""
    simulated(lab, 50000)
    wait_sealed(lab, 'sim')
    wrong = lab.path('wrong.elf')
    with open(lab.path('demo.elf'), 'rb') as f:
        elf = bytearray(f.read())
    elf[200:] = bytes(b ^ 0x5a for b in elf[200:])
    with open(wrong, 'wb') as f:
        f.write(elf)
    args = described(lab)[:-1] + [wrong, '--trace', 'wrong', lab.path('raw')]
    result = subprocess.run([lab.tracelake, 'push'] + args,
                            env=lab.environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                            timeout=240)
    check(result.returncode in (0, 1), result)
    lab.alive()
    check(lab.raw('wrong') == open(lab.path('raw'), 'rb').read(), 'raw bytes differ')


@test
def cut_capture(lab):
    """A capture truncated anywhere decodes up to the cut."""
    simulated(lab, 50000)
    wait_sealed(lab, 'sim')
    with open(lab.path('raw'), 'rb') as f:
        raw = f.read()
    with open(lab.path('cut'), 'wb') as f:
        f.write(raw[:23457])
    args = described(lab)
    push = subprocess.run([lab.tracelake, 'push', '--trace', 'cut'] + args + [lab.path('cut')],
                          env=lab.environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          timeout=240)
    check(push.returncode in (0, 1), push)
    whole = streams(lab.run('get', 'sim', '--text').text())
    cut = streams(lab.run('get', 'cut', '--text').text())
    for stream in cut:
        a, b = only(whole[stream], 'I'), only(cut[stream], 'I')
        check(100 < len(b) < len(a) and a[:len(b)] == b, stream, len(a), len(b))
    # A file shorter than what is already stored is not the same capture.
    with open(lab.path('cut'), 'wb') as f:
        f.write(raw[:1000])
    lab.fails(3, r'complete', 'push', '--trace', 'cut', *args, lab.path('cut'))


def shards(lab):
    return [p for p in glob.glob(lab.data + '/**/*.zstf', recursive=True) if os.path.isfile(p)]


@test
def shard_is_a_file(lab):
    """A shard copied from the data folder is a complete .zstf."""
    simulated(lab, 60000)
    wait_sealed(lab, 'sim')
    lab.stop()
    found = shards(lab)
    check(found, 'no shard in', lab.data)
    for shard in found[:2]:
        copy = lab.path('copy.zstf')
        shutil.copy(shard, copy)
        dump = lab.run('dump', copy).text().splitlines()
        check('IDENTIFIER' in dump[0], dump[0])
        check(any('INST_32' in line for line in dump), 'no instruction in', shard)
        if subprocess.run([lab.tracelake, 'check', '--help'], stdout=subprocess.DEVNULL,
                          stderr=subprocess.DEVNULL).returncode == 0:
            lab.run('check', copy)


@test
def ranges(lab):
    """Any range, in every format, equals that part of the whole."""
    simulated(lab, 60000)
    wait_sealed(lab, 'sim')
    name = 'sim/cs.10'
    whole = only(streams(lab.run('get', name, '--text').text())['cs.10'], 'I')
    n = len(whole)
    check(n > 50000, n)
    for a, b in ((0, 10), (n // 3, n // 3 + 5000), (n - 7, n), (9990, 20010)):
        span = '%d:%d' % (a, b)
        text = only(streams(lab.run('get', name, '--insn', span, '--text').text())['cs.10'], 'I')
        check(text == whole[a:b], 'text of', span, len(text))
        rows = json.loads(lab.run('get', name, '--insn', span, '--json').text())
        rows = ['I ' + item['text'] for item in rows['items'] if item['kind'] == 'I']
        check(rows == whole[a:b], 'json of', span, len(rows))
        for ending in ('zstf', 'stf'):
            path = lab.path('slice.' + ending)
            lab.run('get', name, '--insn', span, '-o', path)
            lab.run('dump', path)
            decoded = lab.run('decode', '--format', 'stf', '--text', path).text()
            lines = [line for s in streams(decoded).values() for line in only(s, 'I')]
            check(lines == whole[a:b], ending, 'of', span, len(lines), b - a)
    tail = only(streams(lab.run('get', name, '--insn', '%d:' % (n - 5), '--text').text())['cs.10'],
                'I')
    check(tail == whole[-5:], tail)
    by_byte = only(streams(lab.run('get', name, '--byte', '20000:30000', '--text').text())['cs.10'],
                   'I')
    text = '\n'.join(whole)
    check(0 < len(by_byte) < n and '\n'.join(by_byte) in text, len(by_byte))
    for command in (['get', name], ['slice', lab.path('slice.stf')]):
        lab.fails(1, 'nothing is in the range 5:5', *command, '--insn', '5:5', '-o', lab.path('empty.stf'))


def by_insn(lab, path):
    """The records of each instruction of an STF file."""
    out, records = [], []
    for line in lab.run('dump', path).text().splitlines():
        record = re.sub(r' inst=\d+$', '', line.split(' ', 3)[3])
        records.append(record)
        if record.startswith('INST_32 ') or record.startswith('INST_16 '):
            out.append(records)
            records = []
    return out


@test
def ranges_over_gaps(lab):
    """A range with a gap inside or at its edges equals that part of the whole, for stored and virtual shards."""
    simulated(lab, 300000)
    lab.run('push', '--shards', 'virtual', '--format', 'tpiu,sync=fsync', '--config', lab.path('sim.ini'),
            '--image', lab.path('demo.elf'), '--trace', 'made', lab.path('raw'))
    part, wholes = lab.path('part.stf'), []
    for trace in ('sim', 'made'):
        wait_sealed(lab, trace)
        name = trace + '/cs.12'
        hits = json.loads(lab.run('find', name, '--event', 'gap', '--json').text())['hits']
        check(hits, 'no gap')
        at = hits[0]['insn']
        first, end = at - 3000, at + 3000
        lab.run('get', name, '--insn', '%d:%d' % (first, end), '-o', part)
        whole = by_insn(lab, part)
        lines = streams(lab.run('get', name, '--insn', '%d:%d' % (first, end), '--text').text())['cs.12']
        places = [i for i, line in enumerate(lines) if line.startswith('I ')]
        check(len(whole) == len(places) == end - first, len(whole), len(places))
        wholes.append((whole, lines))
        for a, b in ((at - 4, at + 4), (at, at + 3), (at - 3, at), (at - 1, at + 1), (at - 999, at + 999)):
            span = ['--insn', '%d:%d' % (a, b)]
            lab.run('get', name, *span, '-o', part)
            check(by_insn(lab, part)[1:] == whole[a - first + 1:b - first], name, span, 'other records')
            text = streams(lab.run('get', name, *span, '--text').text())['cs.12']
            mine = [i for i, line in enumerate(text) if line.startswith('I ')]
            check(text[mine[0]:mine[-1] + 1] == lines[places[a - first]:places[b - 1 - first] + 1], name, span)
            check(a >= at or b <= at or any(line.startswith('G ') for line in text), name, span, 'no gap')
    check(wholes[0] == wholes[1], 'virtual shards say something else')


@test
def questions(lab):
    """find and stats agree with the text."""
    simulated(lab, 40000)
    wait_sealed(lab, 'sim')
    name = 'sim/cs.10'
    whole = only(streams(lab.run('get', name, '--text').text())['cs.10'], 'I')
    pc = whole[len(whole) // 2].split()[1]
    places = [i for i, line in enumerate(whole) if line.split()[1] == pc]
    found = json.loads(lab.run('find', name, '--pc', pc, '--limit', '10', '--json').text())
    check([hit['insn'] for hit in found['hits']] == places[:10], found, places[:10])
    check(found['more'] == (len(places) > 10), found['more'], len(places))
    hits = lab.run('find', name, '--event', 'exception', '--limit', '5').text().splitlines()
    check(len(hits) == 6, hits)
    stats = json.loads(lab.run('stats', name, '--json').text())
    check(len(whole) in json_numbers(stats), len(whole), 'is not in', stats)
    lab.run('stats', name, '--insn', '100:5000')


def json_numbers(value):
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        return {n for v in value for n in json_numbers(v)}
    return {value} if isinstance(value, int) else set()


@test
def catalog(lab):
    """Labels, redecode, verify, rm."""
    simulated(lab, 40000)
    wait_sealed(lab, 'sim')
    before = lab.run('get', 'sim', '--text').text()
    lab.run('label', 'sim', 'board=7', 'who=me')
    lab.run('label', 'sim', 'who=')
    row = json.loads(lab.run('ls', '--json', 'sim').text())[0]
    check(row['labels'] == {'board': '7'}, row)
    check('board=7' in lab.run('show', 'sim').text(), 'no label shown')
    lab.run('redecode', 'sim')
    check(lab.run('get', 'sim', '--text').text() == before, 'redecode changed the result')
    check(json.loads(lab.run('ls', '--json', 'sim').text())[0]['generation'] > row['generation'],
          'the generation is the same')
    lab.run('verify', 'sim')
    lab.run('rm', 'sim')
    check(json.loads(lab.run('ls', '--json').text()) == [], 'still there')
    lab.stop()


def damage(path, at):
    with open(path, 'r+b') as f:
        f.seek(at)
        byte = f.read(1)[0]
        f.seek(at)
        f.write(bytes([byte ^ 0x55]))


@test
def keeping_house(lab):
    """Retention, repair, a lost catalog, and a nearly full disk."""
    simulated(lab, 40000)
    wait_sealed(lab, 'sim')
    before = lab.run('get', 'sim', '--text').text()
    lab.run('label', 'sim', 'board=7')
    check('sim' in lab.run('ls', '--label', 'board=7').text(), 'the label does not select')
    check('sim' not in lab.run('ls', '--label', 'board=8').text(), 'another label selects')
    # Every damaged byte is found, and what can be derived from raw bytes is rebuilt.
    damage(shards(lab)[0], 700)
    check('offset 0x' in lab.run('verify', 'sim', status=1).text(), 'no offset')
    lab.run('verify', '--repair', 'sim', status=1)
    wait_sealed(lab, 'sim')
    lab.run('verify', '--all')
    check(lab.run('get', 'sim', '--text').text() == before, 'the repair changed the result')
    lab.fails(3, 'no trace', 'verify', 'nobody')
    lab.fails(2, 'which trace', 'verify')
    # A lost catalog is rebuilt from the objects.
    lab.stop()
    with open(os.path.join(lab.data, 'catalog.db'), 'r+b') as f:
        f.write(b'x' * 4096)
    args = [lab.tracelake, 'serve', '--data', lab.data, '--listen', '127.0.0.1:%d' % lab.port]
    refused = subprocess.run(args, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=240)
    check(refused.returncode == 1 and b'--rebuild-catalog' in refused.stderr, refused)
    lab.start('--rebuild-catalog')
    check(lab.run('get', 'sim', '--text').text() == before, 'the new catalog changed the result')
    check('board=7' in lab.run('show', 'sim').text(), 'the label is lost')
    lab.run('verify', '--all')
    # Raw bytes are removed, and what was decoded from them stays.
    lab.fails(2, '30x', 'retain', '--raw', '30x')
    check('raw 1K' in lab.run('retain', '--trace', 'sim', '--raw', '1K').text(), 'no rule')
    wait('the raw bytes are gone', lambda: not glob.glob(lab.data + '/objects/r/sim/*'))
    check(json.loads(lab.run('ls', '--json', 'sim').text())[0]['raw_removed'], 'not told')
    check(lab.run('get', 'sim', '--text').text() == before, 'retention changed the result')
    lab.fails(3, 'retention', 'redecode', 'sim')
    lab.stop()
    # With too little space no trace is accepted; nothing else is affected.
    lab.start('--min-free', '1000000G')
    lab.fails(3, 'free', 'push', '--retry', '1', *again(lab))
    check(lab.run('get', 'sim', '--text').text() == before, 'a full disk changed the result')
    lab.stop()
    lab.start()
    lab.run('push', *again(lab))
    check(lab.run('get', 'again', '--text').text() == before, 'not as the first time')
    lab.stop()


@test
def restart(lab):
    """A server that was stopped and restarted has everything."""
    simulated(lab, 60000)
    wait_sealed(lab, 'sim')
    before = lab.run('get', 'sim', '--text').text()
    lab.stop()
    lab.start()
    check(lab.run('get', 'sim', '--text').text() == before, 'the restart changed the result')


@test
def live(lab):
    """tail follows a rig while it pushes, and ends when the rig does."""
    lab.start()
    rig = lab.spawn(lab.rig, '--kind', 'etm', '--server', lab.url, '--trace', 'now', '--rate',
                    '40000', '--seconds', '3')
    wait_offset(lab, 'now', 1)
    tail = lab.spawn('tail', 'now/cs.10', '--from', '0')
    out, err = rig.communicate(timeout=240)
    check(rig.returncode == 0, err)
    wait_sealed(lab, 'now')
    text, err = tail.communicate(timeout=240)
    check(tail.returncode == 0, err)
    same_streams(streams(text.decode()), streams(lab.run('get', 'now/cs.10', '--text').text()),
                 'tail')


@test
def live_input(lab):
    """Input from a pipe is stored as it arrives, not when the pipe ends."""
    lab.start()
    push = lab.spawn('push', '--format', 'tpiu', '--trace', 'pipe', '-', stdin=subprocess.PIPE)
    total = 0
    for n in (16, 1600000, 32, 700000):
        push.stdin.write(bytes(n))
        push.stdin.flush()
        total += n
        wait_offset(lab, 'pipe', total)
    push.stdin.close()
    check(push.wait(240) == 1, 'zeroes are no trace')
    check(lab.raw('pipe') == bytes(total), 'raw bytes differ')
    # After an interruption, what has arrived is kept, and the trace can be continued.
    push = lab.spawn('push', '--format', 'tpiu', '--trace', 'half', '-', stdin=subprocess.PIPE)
    push.stdin.write(bytes(1000))
    push.stdin.flush()
    wait_offset(lab, 'half', 1000)
    push.send_signal(signal.SIGINT)
    check(push.wait(240) == 1, 'status', push.returncode)
    check(b'1000 bytes are stored' in push.stderr.read(), 'no word of what is stored')
    row = json.loads(lab.run('ls', '--json', 'half').text())[0]
    check(row['state'] == 'live' and row['raw_bytes'] == 1000, row)


@test
def rig_interrupted(lab):
    """A rig that is interrupted leaves a complete trace."""
    lab.start()
    rig = lab.spawn(lab.rig, '--kind', 'di', '--server', lab.url, '--trace', 'now', '--rate', '50000')
    wait_offset(lab, 'now', 20000)
    rig.send_signal(signal.SIGINT)
    check(rig.wait(240) == 0, rig.stderr.read())
    wait_sealed(lab, 'now')
    # A rig whose server is gone ends as well.
    rig = lab.spawn(lab.rig, '--kind', 'di', '--server', lab.url, '--trace', 'gone', '--rate',
                    '50000')
    wait_offset(lab, 'gone', 20000)
    lab.kill()
    rig.send_signal(signal.SIGINT)
    check(rig.wait(240) == 0, rig.stderr.read())


@test
def tls_and_tokens(lab):
    """https with a pinned certificate, and tokens."""
    with open(lab.path('tokens'), 'w') as f:
        f.write('sesame-0123456789abcdef admin\n')
    os.chmod(lab.path('tokens'), 0o600)
    with open(lab.path('mine'), 'w') as f:
        f.write('sesame-0123456789abcdef\n')
    with open(lab.path('wrong'), 'w') as f:
        f.write('thistle-0123456789abcdef\n')
    lab.start('--tokens', lab.path('tokens'))
    lab.fails(3, r'token', 'ls')
    lab.fails(3, r'token', 'ls', '--token', lab.path('wrong'))
    lab.run('ls', '--token', lab.path('mine'))
    url = 'https://127.0.0.1:%d' % lab.tls_port
    found = re.search(r'(?i)\b((?:[0-9a-f]{2}:?){31}[0-9a-f]{2})\b', lab.server_log())
    check(found, 'no fingerprint in', lab.server_log())
    token = ['--token', lab.path('mine'), '--server', url]
    lab.run('ls', '--fingerprint', found.group(1), *token)
    lab.run('ls', '--insecure', *token)
    lab.fails(3, r'fingerprint', 'ls', '--fingerprint', '00' * 32, *token)
    lab.fails(3, r'not trusted', 'ls', *token)
    # The plain port is not the TLS port.
    lab.fails(3, r'TLS', 'ls', '--insecure', '--server', 'https://127.0.0.1:%d' % lab.port)


if __name__ == '__main__':
    main(TESTS)
