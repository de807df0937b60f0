#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Intel PT as other tools keep it: raw trace and sideband in files, with a configuration or LLDB's description.
usage: pt_files.py BUILD [NAME…]"""

import json
import os
import re
import struct
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(os.path.dirname(HERE), 'perf')]
from lab import DATA, check, main, only, streams  # noqa: E402
from perf_data import agrees, capture  # noqa: E402
import perffile  # noqa: E402

SYMFS = os.path.join(DATA, 'perf', 'symfs')
TESTS = {}
MMAP2, SWITCH, SWITCH_CPU_WIDE, SAMPLE, FROM_KERNEL, AUXTRACE_INFO, AUXTRACE = 10, 14, 15, 9, 64, 70, 71
TIME_SHIFT, TIME_MULT, TIME_ZERO, MTC_BITS, RATIO_N, RATIO_D, MAX_RATIO = 1, 2, 3, 11, 12, 13, 15
TRAILER = (0x2, 'tid'), (0x4, 'time'), (0x40, 'id'), (0x200, 'stream'), (0x80, 'cpu'), (0x10000, 'identifier')


def test(function):
    TESTS[function.__name__] = function
    return function


class Recording:
    """A perf.data file taken apart."""

    def __init__(self, path):
        with open(path, 'rb') as f:
            file = perffile.File(f.read())
        # All events have the same members in their trailers.
        self.sample_type = struct.unpack_from('<Q', file.attrs[0][0], 24)[0]
        self.traces, self.records, self.words = {}, [], ()
        for kind, misc, body, trace in file.records():
            if kind == AUXTRACE:
                cpu = struct.unpack_from('<i', body, 32)[0]
                self.traces[cpu] = self.traces.get(cpu, b'') + trace
            elif kind == AUXTRACE_INFO:
                self.words = struct.unpack('<%dQ' % (len(body) // 8 - 1), body[8:8 + (len(body) // 8 - 1) * 8])
            elif kind < FROM_KERNEL and kind != SAMPLE:
                self.records.append((kind, misc, body))
        pt, = {struct.unpack_from('<Q', attr, 8)[0] for attr, _ in file.attrs
               if struct.unpack_from('<I', attr)[0] == self.words[0]}
        bits = self.words[MTC_BITS]
        self.mtc = (pt & bits) // (bits & -bits) if bits else 0

    def trailer(self, body):
        """Its members by name, and the bytes before it."""
        names = [name for bit, name in TRAILER if self.sample_type & bit]
        words = struct.unpack('<%dQ' % len(names), body[len(body) - 8 * len(names):])
        return dict(zip(names, words)), body[:len(body) - 8 * len(names)]


def write(folder, name, data):
    with open(os.path.join(folder, name), 'wb') as f:
        f.write(data)


def describe(recording, folder, registers=True):
    """Write the recording into files as libipt's tools take them; returns the path of their configuration."""
    words = recording.words
    lines = ['[trace]', 'time_conv=%d,%d,%d' % tuple(words[i] for i in (TIME_SHIFT, TIME_MULT, TIME_ZERO))]
    for cpu, trace in recording.traces.items():
        own = [perffile.record('<', kind, body, misc) for kind, misc, body in recording.records
               if recording.trailer(body)[0]['cpu'] & 0xffffffff == cpu]
        write(folder, 'aux-idx%d.bin' % cpu, trace)
        write(folder, 'sideband-cpu%d.pevent' % cpu, b''.join(own))
        lines += ['[source pt.%d]' % cpu, 'protocol=pt', 'file=aux-idx%d.bin' % cpu,
                  'sideband=sideband-cpu%d.pevent' % cpu, 'sideband_type=%#x' % recording.sample_type]
        if registers:
            lines += ['MTC_FREQ=%d' % recording.mtc, 'NOM_FREQ=%d' % words[MAX_RATIO],
                      'CPUID_15_EAX=%d' % words[RATIO_D], 'CPUID_15_EBX=%d' % words[RATIO_N]]
    write(folder, 'pt.ini', '\n'.join(lines).encode())
    return os.path.join(folder, 'pt.ini')


@test
def pt_sideband(lab):
    """Raw trace with the kernel's records beside it (files for libipt's tools) is decoded as perf's own file."""
    lab.start()
    for name in 'pt-three-processes-two-cpus', 'pt-threads-per-cpu', 'pt-kernel':
        path, truth = capture(name)
        recording = Recording(path)
        folder = lab.path(name)
        os.mkdir(folder)
        config = describe(recording, folder)
        lab.run('push', '--trace', name, '--config', config, '--symfs', SYMFS, '--vmlinux',
                os.path.join(SYMFS, 'boot/vmlinux-6.1.0'))
        agrees(lab, name, truth)
    # What is no sideband is refused with its place.
    write(folder, 'sideband-cpu0.pevent', b'\x0e\0\0\0\0\0\x08\0' + b'x' * 5)
    lab.fails(1, 'sideband-cpu0.pevent: byte 0: no record of the kernel', 'decode', '--text', '--config', config)
    write(folder, 'pt.ini', b'[source pt.0]\nprotocol=pt\nsideband_type=7\n')
    lab.fails(1, 'sideband_type= is of a sideband=, which must come first', 'decode', '--text', '--config', config)


def lldb_modules(recording):
    """Of each process, its files with the address of their first byte."""
    found = {}
    for kind, _, body in recording.records:
        if kind == MMAP2:
            pid, _, address, length, offset = struct.unpack_from('<iiQQQ', body)
            name = body[64:].split(b'\0')[0].decode()
            if os.path.exists(SYMFS + name):
                found.setdefault(pid, {}).setdefault(name, address - offset)
    return found


@test
def lldb_bundle(lab):
    """A bundle of LLDB: trace of processors, who ran on them, and where programs are in memory."""
    name = 'pt-three-processes-two-cpus'
    path, _ = capture(name)
    recording = Recording(path)
    folder = lab.path('bundle')
    os.mkdir(folder)
    cpus = []
    for cpu, trace in recording.traces.items():
        switches = b''
        for kind, misc, body in recording.records:
            trailer, rest = recording.trailer(body)
            if trailer['cpu'] & 0xffffffff == cpu and kind in (SWITCH, SWITCH_CPU_WIDE, 12):
                own = rest if kind == 12 else b''
                switches += perffile.record('<', SWITCH if kind != 12 else kind,
                                            own + struct.pack('<QQ', trailer['tid'], trailer['time']), misc)
        write(folder, 'cpu%d.trace' % cpu, trace)
        write(folder, 'cpu%d.switches' % cpu, switches)
        cpus.append({'id': cpu, 'iptTrace': 'cpu%d.trace' % cpu, 'contextSwitchTrace': 'cpu%d.switches' % cpu})
    described = {
        'type': 'intel-pt', 'cpuInfo': {'vendor': 'GenuineIntel', 'family': 6, 'model': 142, 'stepping': 10},
        'processes': [{'pid': pid, 'threads': [{'tid': pid}],
                       'modules': [{'systemPath': at, 'file': SYMFS + at, 'loadAddress': '0x%x' % address}
                                   for at, address in modules.items()]}
                      for pid, modules in lldb_modules(recording).items()],
        'cpus': cpus,
        'tscPerfZeroConversion': {'timeMult': recording.words[TIME_MULT], 'timeShift': recording.words[TIME_SHIFT],
                                  'timeZero': str(recording.words[TIME_ZERO])}}
    write(folder, 'trace.json', json.dumps(described).encode())
    lab.start()
    lab.run('push', '--trace', 'lldb', folder)
    # It does not tell how often MTC packets come: timestamps are as coarse as without that.
    lab.run('push', '--trace', 'same', '--config', describe(recording, folder, False), '--symfs', SYMFS)
    stored = {trace: streams(lab.run('get', trace, '--text').text()) for trace in ('lldb', 'same')}
    for stream in 'pt.0', 'pt.1':
        check(stored['lldb'][stream] == stored['same'][stream], stream, 'is not what perf itself would tell')
        check(len(only(stored['lldb'][stream], 'I')) > 50000, 'is too little')
    check('A switch 2150 2150 stroll' in stored['lldb']['pt.1'], 'no process has its name')
    # A configuration tells it, for one source or for all.
    registers = {key: int(value, 0) for key, value in re.findall(r'^(MTC_FREQ|NOM_FREQ|CPUID\w*)=(\S+)$',
                 open(describe(recording, folder, True)).read(), re.M)}
    check('MTC_FREQ' in registers, registers)
    write(folder, 'mtc.ini', b'[source pt]\nprotocol=pt\n' +
          ''.join('%s=%d\n' % item for item in registers.items()).encode())
    write(folder, 'none.ini', b'[source pt.9]\nprotocol=pt\nMTC_FREQ=3\n')
    lab.run('push', '--trace', 'lldb-mtc', '--config', os.path.join(folder, 'mtc.ini'), folder)
    lab.run('push', '--trace', 'same-mtc', '--config', describe(recording, folder, True), '--symfs', SYMFS)
    exact = {trace: streams(lab.run('get', trace, '--text').text()) for trace in ('lldb-mtc', 'same-mtc')}
    for stream in 'pt.0', 'pt.1':
        ours, told = (only(exact[name][stream], 'IT') for name in ('lldb-mtc', 'same-mtc'))
        check(only(ours, 'I') == only(told, 'I') and set(ours) <= set(told), stream, 'differs with MTC')
        check(len(told) - len(ours) <= 1, stream, 'lacks times')  # perf's own records tell one before the first
        check(len(only(ours, 'T')) > 500 > len(only(stored['lldb'][stream], 'T')), stream, 'has the times of before')
    lab.fails(2, r'\[source pt.9\]: the bundle has no such source; its first is pt.0', 'decode', '--text', '--config',
              os.path.join(folder, 'none.ini'), os.path.join(folder, 'trace.json'))
    # Raw trace may begin with the same byte: its configuration says what it is.
    write(folder, 'raw.bin', b'{' + bytes(15))
    write(folder, 'raw.ini', b'[trace]\nformat=pt\n')
    check(b'LLDB' not in lab.run('decode', '--text', '--config', os.path.join(folder, 'raw.ini'),
                                 os.path.join(folder, 'raw.bin'), status=None).err, 'is taken for JSON')
    # What is missing is named; garbage is refused.
    described['processes'][0]['modules'][0]['file'] = '/nowhere/x'
    write(folder, 'less.json', json.dumps(described).encode())
    check(b'/nowhere/x: no code can be read' in lab.run('decode', '--text', os.path.join(folder, 'less.json'),
                                                        status=None).err, 'nothing is said')
    for text, why in (b'{', 'not JSON'), (b'{"type": "x"}', 'no "type": "intel-pt"'), \
            (b'{"type": "intel-pt", "cpus": [{"id": 1e30}]}', 'processor without id'), \
            (b'{"type": "intel-pt", "cpus": [{"id": 1, "iptTrace": "x"}]}', 'without tscPerfZeroConversion'), \
            (b'{"type": "intel-pt", "processes": 7}', 'neither threads nor processors'):
        write(folder, 'bad.json', text)
        lab.fails(1, why, 'decode', '--text', os.path.join(folder, 'bad.json'))


@test
def lldb_threads(lab):
    """A bundle of LLDB with a trace for each thread."""
    path, truth = capture('pt-one-cpu')
    recording = Recording(path)
    pid, modules = next(iter(lldb_modules(recording).items()))
    folder = lab.path('threads')
    os.mkdir(folder)
    write(folder, 'thread.trace', next(iter(recording.traces.values())))
    write(folder, 'trace.json', json.dumps({
        'type': 'intel-pt', 'cpuInfo': {'vendor': 'unknown'},
        'processes': [{'pid': pid, 'threads': [{'tid': pid, 'iptTrace': 'thread.trace'}],
                       'modules': [{'systemPath': at, 'file': SYMFS + at, 'loadAddress': address}
                                   for at, address in modules.items()]}]}).encode())
    lab.start()
    lab.run('push', '--trace', 'threads', os.path.join(folder, 'trace.json'))
    agrees(lab, 'threads', {'pt.t%d' % pid: next(iter(truth.values()))})


if __name__ == '__main__':
    main(TESTS)
