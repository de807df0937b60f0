#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Samples of Arm SPE in perf.data: lanes, statistical profiles, counts of branches. usage: sampling.py BUILD [NAME…]"""
import collections
import json
import os
from random import Random
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(os.path.dirname(HERE), 'perf')]
import lab as labs  # noqa: E402
from lab import check  # noqa: E402
import spefile  # noqa: E402

TESTS = {}
FUNCTIONS = {'main': (0x401000, 0x100), 'inner': (0x401100, 0x40), 'outer': (0x401140, 0x80)}


def test(function):
    TESTS[function.__name__] = function
    return function


def made(random, n, tid):
    """Records of a CPU, and what they say: retired samples by function, branches, runs."""
    functions, branches, runs = collections.Counter(), collections.Counter(), collections.Counter()
    trace, time = bytearray(), random.randrange(1, 50)
    for i in range(n):
        name = random.choice(sorted(FUNCTIONS))
        at, size = FUNCTIONS[name]
        pc = at + 4 * random.randrange(8, size // 4)
        time += random.randrange(1, 40)
        retired = random.random() < 0.9
        events = spefile.RETIRED if retired else 0
        kind = random.randrange(4)
        if kind == 0:
            target = FUNCTIONS[random.choice(sorted(FUNCTIONS))][0]
            back = pc - 4 * random.randrange(0, 8)
            taken = random.random() < 0.7
            events |= spefile.MISPREDICTED if random.random() < 0.2 else 0
            events |= 0 if taken else spefile.NOT_TAKEN
            trace += spefile.sample(pc, time, tid, (0x4a, 1), events, target, back, cycles=18)
            branches[pc, target] += retired and taken
            runs[back, pc] += retired
        elif kind == 1:
            trace += spefile.sample(pc, time, tid, (0x49, random.randrange(2)), events, data=0x7f0012345678, cycles=90,
                                    source=0xd)
        elif kind == 2:
            trace += spefile.sample(pc, time, tid, (0x48, 0), events)
        else:  # no operation type, and padding behind it
            trace += spefile.sample(pc, time, tid, None, events) + bytes(random.randrange(70))
        functions[name] += retired
    return (bytes(trace), 4 * time + 1000), functions, +branches, +runs


def recorded(lab, seed, later):
    random = Random(seed)
    root = lab.path('root%d' % seed)
    os.makedirs(os.path.join(root, 'opt'))
    spefile.elf(os.path.join(root, 'opt', 'work'), FUNCTIONS)
    cpus, sums = {}, [collections.Counter() for _ in range(3)]
    for cpu in range(2):
        cpus[cpu], *said = made(random, 3000, 700)
        for all_of_them, one in zip(sums, said):
            all_of_them.update(one)
    path = lab.path('spe%d.data' % seed)
    spefile.capture(path, 700, 'work', os.path.getsize(os.path.join(root, 'opt', 'work')), cpus, later)
    return path, root, sums


@test
def sampled(lab):
    """Profiles and counts of branches are what the records say; nothing of it counts as executed."""
    lab.start()
    for seed, later in (1, False), (2, True):
        path, root, (functions, branches, runs) = recorded(lab, seed, later)
        trace = 'spe%d' % seed
        lab.run('push', '--trace', trace, '--symfs', root, path)
        streams = json.loads(lab.run('show', '--json', trace).text())[0]['streams']
        check(sorted(s['name'] for s in streams if s['name'].startswith('spe')) == ['spe.0', 'spe.1'], streams)
        folded = dict(line.rsplit(' ', 1) for line in lab.run('profile', trace).text().splitlines())
        check({name: int(n) for name, n in folded.items()} == functions, folded, functions)
        told = lab.run('profile', trace, '--as', 'bolt').text().split('\n')
        counted = collections.Counter(), collections.Counter()
        for line in filter(None, told):
            kind, a, b, n = line.split()[:4]
            counted[kind == 'F'][int(a, 16), int(b, 16)] += int(n)
        check(counted[0] == branches, 'branches', counted[0], branches)
        check(counted[1] == runs, 'runs', counted[1], runs)
        plain = lab.run('profile', trace, '--as', 'bolt', '--image', 'work').text()
        check(sorted(plain.splitlines()) == sorted(filter(None, told)), 'its own addresses')
        covered = json.loads(lab.run('coverage', trace, '--as', 'json', status=None).out or b'{"functions": []}')
        check(not any(f['executed'] for f in covered['functions']), covered)
        listed = lab.run('log', trace + '/spe.0').text()
        check(' cycles 18' in listed and 'data 00007f0012345678 source 0xd' in listed, listed[:500])


@test
def samples_text(lab):
    """The document's example, and records that are damaged or cut."""
    root = lab.path('root')
    os.makedirs(os.path.join(root, 'opt'))
    spefile.elf(os.path.join(root, 'opt', 'work'), FUNCTIONS)
    example = bytes.fromhex('b04005400000000080 b18005400000000080 981200 528200 4a01'.replace(' ', '')) + b'\x71'
    trace = example + (100).to_bytes(8, 'little') + b'\xff' + spefile.sample(0x401000, 101, 700)
    trace += spefile.sample(0x401004, 102, 700, (0x4a, 0), 0, 0x401000) + b'\xb0\x40'
    path = lab.path('one.data')
    spefile.capture(path, 700, 'work', 0x2000, {0: (trace, 2000)})
    result = lab.run('decode', '--format', 'perf', '--text', '--symfs', root, path, status=1)
    text = result.text()
    check('T 100\nH sample 0000000000400540 0000000000400580 - branch conditional mispredicted cycles 18\n' in text, text)
    check('C 700 -'.replace('700', '2bc') + '\nA switch 700 700 work\nH sample 0000000000401000 - - operation\n' in text, text)
    check('H speculative 0000000000401004 0000000000401000 - branch\n' in text, text)
    check(b'bytes that are no packets' in result.err and b'a record is cut short' in result.err, result.err)
    lab.run('decode', '--format', 'perf', '--out', lab.path('out'), '--symfs', root, path, status=1)
    dumped = lab.run('dump', os.path.join(lab.path('out'), 'spe.0.zstf')).text()
    check('sample 0000000000400540' in dumped, dumped[:1000])


if __name__ == '__main__':
    labs.main(TESTS)
