#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Representative regions of a workload with known phases, from a file and from a server; the formats of other
simulators; ranges selected by events in them. regions.py BUILD"""
import gzip
import hashlib
import json
import os
import random
import struct
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCE = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, HERE)
sys.path.insert(0, os.path.join(SOURCE, 'tests', 'e2e'))
from lab import Lab as Server  # noqa: E402
from maker import Maker  # noqa: E402

INTERVAL = 2000
PHASES = 'AAABBBBCAABBCCAAABCCAAAABBBBCCCC'
ADDI, LW, SW, BNE, JAL, CALL, RET = (0x00150513, 0x0005a503, 0x00a5a023, 0xfeb51ce3, 0x0000006f,
                                     0x000000ef, 0x00008067)


def check(holds, *what):
    if not holds:
        raise AssertionError(' '.join(str(w) for w in what))


class Workload:
    """A RISC-V program with phases: its STF, and the truth about each instruction."""

    def __init__(self):
        self.maker = Maker(seed=3)
        self.maker.header(pc=0x80000000)
        self.insns = []  # (pc, kind, taken, address)
        self.pc, self.random = 0x80000000, random.Random(7)

    def insn(self, opcode, to=None, read=None, write=None):
        m = self.maker
        kind = {BNE: 'conditional', JAL: 'jump', CALL: 'call', RET: 'return'}.get(opcode, 'plain')
        if to is not None:
            m.put(31, 'Q', to)
        for address, type_ in ((read, 1), (write, 2)):
            if address is not None:
                m.put(60, 'QHHB', address, 4, 0, type_)
                m.put(61, 'Q', 0)
        m.put(240, 'I', opcode)
        self.insns.append((self.pc, kind, to is not None, read or write or 0))
        self.pc = self.pc + 4 if to is None else to

    def interval(self, phase):
        """INTERVAL instructions of a phase; the last one jumps back to the common beginning of all phases."""
        base = 0x80001000 * 1 + 0x1000 * (ord(phase) - ord('A'))
        left = INTERVAL
        self.insn(JAL, to=base)
        left -= 1
        while left > 16:
            work = {'A': 9, 'B': 3, 'C': 5}[phase] + self.random.randint(0, 1)
            for i in range(work):
                if phase == 'B':
                    self.insn(LW, read=0x90000000 + 4 * self.random.randint(0, 4095))
                elif phase == 'C' and i == 1:
                    self.insn(SW, write=0xa0000000 + 4 * i)
                else:
                    self.insn(ADDI)
            left -= work + 1
            if phase == 'C':
                self.insn(CALL, to=0x80008000)
                self.insn(ADDI)
                self.insn(RET, to=base)
                left -= 2
            else:
                self.insn(BNE, to=base)
        for _ in range(left):
            self.insn(ADDI)


class DataWorkload(Workload):
    """The same code in all phases, with data in one page or in many."""

    def interval(self, phase):
        self.insn(JAL, to=0x80001000)
        for left in range(INTERVAL - 1, 0, -1):
            offset = 4 * self.random.randint(0, 63)
            if left % 5 == 0:
                self.insn(BNE, to=0x80001000)
            else:
                self.insn(LW, read=0x90000000 + (offset if phase == 'A' else offset << 10))


def workload(made=None, phases=PHASES):
    made = made or Workload()
    for phase in phases:
        made.interval(phase)
    return made


def champsim(data):
    """(pc, branch, taken, destinations, sources, written, read) of each record."""
    check(len(data) % 64 == 0, len(data))
    return [(ip, b, t, d[:2], d[2:], w, r) for ip, b, t, d, w, r in
            ((f[0], f[1], f[2], f[3:9], f[9:11], f[11:15])
             for f in struct.iter_unpack('<QBB6B6Q', data))]


KINDS = {  # ChampSim's rule: destinations and sources that identify a branch
    'jump': lambda d, s: set(d) - {0} == {26} and not set(s) - {0},
    'conditional': lambda d, s: set(d) - {0} == {26} and 26 in s and set(s) - {0, 26, 6},
    'call': lambda d, s: set(d) == {26, 6} and set(s) - {0} == {6, 26},
    'return': lambda d, s: set(d) == {26, 6} and set(s) - {0} == {6},
}


def same_as(records, insns):
    check(len(records) == len(insns), len(records), len(insns))
    for (ip, branch, taken, d, s, written, read), (pc, kind, goes, address) in zip(records, insns):
        check(ip == pc, hex(ip), hex(pc))
        check(bool(branch) == (kind != 'plain'), kind, branch)
        if branch:
            check(KINDS[kind](d, s), kind, d, s)
            check(bool(taken) == goes, kind, taken)
        check((address in (written[0], read[0])) if address else not any(written + read),
              hex(address), written, read)


def mix(records):
    n = len(records)
    return {'branches': sum(r[1] for r in records) / n, 'taken': sum(r[2] for r in records) / n,
            'reads': sum(any(r[6]) for r in records) / n,
            'writes': sum(any(r[5]) for r in records) / n}


def yaml(path):
    """The regions of a regions.yaml, whose structure is simple."""
    head, rows = {}, []
    with open(path) as f:
        for line in f:
            key, _, value = line.strip().removeprefix('- ').partition(':')
            if line.startswith('  - '):
                rows.append({})
            (rows[-1] if line.startswith(' ') else head)[key] = value.strip()
    return head, rows


class Lab:
    def __init__(self, build, folder):
        self.command, self.folder = os.path.join(build, 'tracelake'), folder
        self.server = Server(build)

    def path(self, *names):
        return os.path.join(self.folder, *names)

    def run(self, *args, status=0):
        done = subprocess.run([self.command, *map(str, args)], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, timeout=240,
                              env=dict(os.environ, TRACELAKE_SERVER=self.server.url))
        check(done.returncode == status, args, done.returncode, done.stderr.decode())
        return done


def folder_is_right(lab, folder, made, warm_up):
    """Check what a folder of regions says about a workload. Returns its regions."""
    head, rows = yaml(os.path.join(folder, 'regions.yaml'))
    check(int(head['interval']) == INTERVAL and int(head['intervals']) == len(PHASES), head)
    check(len(rows) == 3, rows)
    total, shares = {}, {}
    for row in rows:
        path = os.path.join(folder, row['file'])
        with open(path, 'rb') as f:
            check(hashlib.sha256(f.read()).hexdigest() == row['sha256'], row)
        begin, end, warm = int(row['from']), int(row['to']), int(row['warm_up'])
        check(end - begin == INTERVAL and warm == min(begin, warm_up), row)
        records = champsim(lab.run('dump', path, '--format', 'champsim').stdout)
        same_as(records, made.insns[begin - warm:end])
        lab.run('check', path)
        shares[PHASES[begin // INTERVAL]] = float(row['weight'])
        for key, share in mix(records[warm:]).items():
            total[key] = total.get(key, 0) + share * float(row['weight'])
    for phase in 'ABC':
        check(abs(shares[phase] - PHASES.count(phase) / len(PHASES)) < 1e-6, shares)
    whole = mix(champsim(lab.run('dump', lab.path('w.stf'), '--format', 'champsim').stdout))
    for key, share in whole.items():
        check(abs(total[key] - share) < 0.02 * share, key, total[key], share)
    with gzip.open(os.path.join(folder, 'vectors.bb.gz'), 'rt') as f:
        lines = f.read().splitlines()
    check(len(lines) == len(PHASES), len(lines))
    for line in lines:
        parts = [part.split(':') for part in line.removeprefix('T:').replace(' :', ' ').split()]
        check(sum(int(n) for _, n in parts) == INTERVAL, line)
    with open(os.path.join(folder, 'regions.simpoints')) as f:
        check([int(line.split()[0]) for line in f] == [int(r['interval']) for r in rows], rows)
    return rows


def run(lab):
    made = workload()
    with open(lab.path('w.stf'), 'wb') as f:
        f.write(made.maker.out)
    records = champsim(lab.run('dump', lab.path('w.stf'), '--format', 'champsim').stdout)
    same_as(records, made.insns)
    pcs = ['%016x' % insn[0] for insn in made.insns]
    check(lab.run('dump', lab.path('w.stf'), '--format', 'pc').stdout.decode().split() == pcs)
    lines = lab.run('dump', lab.path('w.stf'), '--disasm').stdout.decode().splitlines()
    check([line.split()[1] for line in lines] == pcs and lines[-1].split()[0] == str(len(pcs) - 1))
    wanted = '1 0000000080001000 00150513 addi a0, a0, 1'
    check(' '.join(lines[1].split()) == wanted or lines[1].endswith(' -'), lines[1])  # without LLVM
    options = ['--interval', INTERVAL, '--max', 10, '--warm-up', 500]
    lab.run('simpoints', lab.path('w.stf'), *options, '-o', lab.path('file'))
    rows = folder_is_right(lab, lab.path('file'), made, 500)

    lab.run('push', '--rig', 'sim', '--trace', 'w', '--format', 'stf', lab.path('w.stf'))
    stream = json.loads(lab.run('show', 'w', '--json').stdout)[0]['streams'][0]['name']
    name = 'w/' + stream
    lab.run('simpoints', name, *options, '-o', lab.path('served'), '--save', 'phases')
    served = folder_is_right(lab, lab.path('served'), made, 500)
    for key in ('from', 'to', 'weight', 'warm_up', 'interval', 'intervals'):
        check([r[key] for r in served] == [r[key] for r in rows], key, served, rows)
    told = json.loads(lab.run('simpoints', name, *options, '--json').stdout)
    check([str(r['from']) for r in told['regions']] == [r['from'] for r in rows], told)
    # A job on another machine fetches its slice by name.
    for i, row in enumerate(rows, 1):
        lab.run('get', 'w', '--region', 'phases.%d' % i, '-o', lab.path('one.zstf'))
        begin, end = int(row['from']) - int(row['warm_up']), int(row['to'])
        same_as(champsim(lab.run('dump', lab.path('one.zstf'), '--format', 'champsim').stdout),
                made.insns[begin:end])
    check(b'no region' in lab.run('get', 'w', '--region', 'phases.9', '--text', status=3).stderr)
    # A later selection with fewer regions replaces the whole earlier one.
    lab.run('simpoints', name, '--interval', INTERVAL, '--max', 1, '-o', lab.path('served'), '--save', 'phases')
    check(sorted(n for n in os.listdir(lab.path('served')) if n.startswith('region-')) == ['region-1.zstf'])
    check(b'no region' in lab.run('get', 'w', '--region', 'phases.2', '--text', status=3).stderr)
    lab.run('get', 'w', '--region', 'phases.1', '-o', lab.path('one.zstf'))
    # Phases that differ only in their data.
    phases = 'AABBBAABBA'
    with open(lab.path('data.stf'), 'wb') as f:
        f.write(workload(DataWorkload(), phases).maker.out)
    told = json.loads(lab.run('simpoints', lab.path('data.stf'), '--interval', INTERVAL, '--json').stdout)
    check(sorted((phases[r['interval']], r['weight']) for r in told['regions']) == [('A', .5), ('B', .5)], told)
    # Without instructions there is no region, and no file is left.
    empty = Maker()
    empty.header()
    with open(lab.path('empty.stf'), 'wb') as f:
        f.write(empty.out)
    told = lab.run('simpoints', lab.path('empty.stf'), '-o', lab.path('none'), status=1).stderr
    check(b'no instructions' in told and not os.path.exists(lab.path('none')), told)
    # Formats of ranges, and ranges selected by events.
    got = lab.run('get', name, '--insn', '100:5000', '--format', 'champsim').stdout
    same_as(champsim(got), made.insns[100:5000])
    got = lab.run('get', name, '--format', 'bb', '--interval', INTERVAL).stdout
    with gzip.open(lab.path('served', 'vectors.bb.gz')) as f:
        check(f.read() == got, 'vectors by get are not those of simpoints')
    third = [i for i, insn in enumerate(made.insns) if insn[0] == 0x80008000][2]
    got = lab.run('get', name, '--from-pc', '0x80008000', '--occurrence', 3, '--count', 7,
                  '--warm-up', 2, '--format', 'pc').stdout.decode().split()
    check(got == pcs[third - 2:third + 7], got)
    got = lab.run('get', name, '--from-pc', '0x80008000', '--to-pc', '0x80008004', '--format',
                  'pc').stdout.decode().split()
    check(got == ['0000000080008000'], got)
    # The same from the file.
    place = ['slice', lab.path('w.stf'), '-o', lab.path('one.stf'), '--from-pc', '80008000']

    def sliced(*args):
        lab.run(*place, *args)
        return lab.run('dump', lab.path('one.stf'), '--format', 'pc').stdout.decode().split()
    check(sliced('--occurrence', 3, '--count', 7, '--warm-up', 2) == pcs[third - 2:third + 7], 'the third time')
    check(sliced('--occurrence', 3, '--to-pc', '0x80008004') == pcs[third:third + 1], 'up to an address')
    check(sliced('--insn', '%d:' % third, '--count', 2) == pcs[third:third + 2], 'within --insn')
    check(sliced('--occurrence', 2, '--insn', '%d:' % third) == pcs[[
        i for i, pc in enumerate(pcs) if pc == '0000000080008000'][3]:], 'to the end')
    check(b'only 2 times' in lab.run(*place, '--insn', ':%d' % third, '--occurrence', 3, status=1).stderr)
    check(b'not executed' in lab.run(*place, '--to-pc', '7', status=1).stderr)
    for args in (['--to-pc', '8', '--count', 3], ['--occurrence', 0], ['--from-symbol', 'f'], ['--to-pc', 'x']):
        lab.run(*place, *args, status=2)
    lab.run('slice', '-', '--from-pc', '1', '-o', lab.path('two.stf'), status=2)
    check(b'only' in lab.run('get', name, '--from-pc', '0x80008000', '--occurrence', 100000,
                             '--count', 7, '--format', 'pc', status=1).stderr)
    told = lab.run('get', name, '--from-event', 'exception', '--count', 7, '--format', 'pc', status=1).stderr
    check(b'no exception from instruction 0 on' in told, told)
    told = lab.run('get', name, '--byte', '0:3', '--format', 'pc').stderr
    check(b'bytes 0:3; 0 instructions precede it' in told, told)
    for args in (['--interval', 0], ['--max', 0], ['--interval', '5G'], ['--save', 'a b']):
        lab.run('simpoints', name, *args, status=2)
    lab.run('simpoints', lab.path('w.stf'), '--save', 'x', status=2)
    lab.run('dump', lab.path('w.stf'), '--format', 'gem5', status=2)


def main():
    with tempfile.TemporaryDirectory(prefix='tracelake-regions-') as folder:
        lab = Lab(sys.argv[1], folder)
        try:
            lab.server.start()
            run(lab)
        finally:
            lab.server.close()
    print('regions: fine')


if __name__ == '__main__':
    main()
