#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""How often code was run: profiles and coverage, against the flow text of the same trace."""
import collections
import gzip
import json
import os
import re
import shutil
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import lab as labs  # noqa: E402
from lab import check, only, streams  # noqa: E402

TESTS = {}


def test(function):
    TESTS[function.__name__] = function
    return function


def simulated(lab):
    """A trace of a simulated core, and its instructions as (address, encoding), None where the flow
    breaks."""
    lab.start()
    subprocess.run([lab.rig, '--kind', 'etm', '--server', lab.url, '--trace', 'sim', '--bytes',
                    '60000', '--rate', '100000000'], stdout=subprocess.PIPE, check=True, timeout=60)
    until = time.monotonic() + 60
    while json.loads(lab.run('ls', '--json', 'sim').text())[0]['state'] != 'sealed':
        check(time.monotonic() < until, 'not sealed', lab.run('ls'))
        time.sleep(0.05)
    insns = []
    for line in streams(lab.run('get', 'sim/cs.10', '--text').text())['cs.10']:
        if line[0] == 'I':
            insns.append((int(line.split()[1], 16), int(line.split()[2], 16)))
        elif line[0] in 'GXO':
            insns.append(None)
    return insns


def is_branch(w):
    """A64: B, BL, B.cond, CBZ, TBZ, BR, BLR, RET, ERET, SVC and the like; ISB, WFI, WFE, at which a trace
    unit may say where the flow goes, too."""
    return (w & 0xfffff0ff == 0xd50330df or w & 0xffffffdf == 0xd503205f or
            w & 0x7c000000 == 0x14000000 or w & 0xff000000 == 0x54000000 or
            w & 0x7c000000 == 0x34000000 or w & 0xfe000000 == 0xd6000000 or
            w & 0xff000000 == 0xd4000000)


def counted(insns):
    """Runs up to branches, taken or not, and taken branches, with their counts."""
    runs, branches = collections.Counter(), collections.Counter()
    first = last = None
    for insn in insns + [None]:
        pc = insn and insn[0]
        if last and (insn is None or pc != last[0] + 4 or is_branch(last[1])):
            runs[first, last[0]] += 1
            if pc is not None and pc != last[0] + 4:
                branches[last[0], pc] += 1
            first = None
        if first is None:
            first = pc
        last = insn
    return runs, branches


def sections(text, between):
    """The sections of a text of counts."""
    out, lines = [], iter(text.splitlines())
    for line in lines:
        if line.startswith('//'):
            continue
        section = {}
        for _ in range(int(line)):
            place, count = next(lines).rsplit(':', 1)
            a, b = place.split(between[min(len(out), len(between) - 1)])
            section[int(a, 16), int(b, 16)] = int(count)
        out.append(section)
    return out


def kept_counts(lab):
    return [os.path.join(f, name) for f, _, names in os.walk(lab.data) for name in names if name.endswith('.count')]


def hurt(path):
    with open(path, 'r+b') as f:
        f.write(b'damaged')


def weights(stacks):
    total = collections.Counter()
    for line in stacks.splitlines():
        path, _, n = line.rpartition(' ')
        total[path] += int(n)
    return total


@test
def profiles(lab):
    """Counts of code for compilers, call stacks for viewers."""
    insns = simulated(lab)
    runs, branches = counted(insns)
    got = sections(lab.run('profile', 'sim/cs.10', '--as', 'autofdo').text(), ['-', '-', '->'])
    check(len(got) == 3 and got[1] == {}, len(got))
    check(got[0] == runs, len(got[0]), len(runs), list((got[0].items() ^ dict(runs).items()))[:4])
    check(got[2] == branches, len(got[2]), len(branches),
          list((got[2].items() ^ dict(branches).items()))[:4])
    two = sections(lab.run('profile', 'sim/cs.10', '--as', 'llvm-profgen').text(), ['-', '->'])
    check(two == [got[0], got[2]])
    low = min(a for a, _ in runs)
    moved = sections(lab.run('profile', 'sim/cs.10', 'sim/cs.10', '--as', 'llvm-profgen', '--bias',
                             hex(low)).text(), ['-', '->'])
    check(moved[0] == {(a - low, b - low): 2 * n for (a, b), n in runs.items()}, 'twice, moved')
    bolt = lab.run('profile', 'sim/cs.10', '--as', 'bolt').text().splitlines()
    check(len(bolt) == len(runs) + len(branches), len(bolt))
    for line in bolt:
        kind, a, b, n = line.split()[:4]
        check((branches if kind == 'B' else runs)[int(a, 16), int(b, 16)] == int(n), line)

    n = sum(insn is not None for insn in insns)
    folded = weights(lab.run('profile', 'sim/cs.10').text())
    check(sum(folded.values()) == n, sum(folded.values()), n)
    scope = json.loads(lab.run('profile', 'sim/cs.10', '--as', 'speedscope').text())
    frames = [f['name'] for f in scope['shared']['frames']]
    profile = scope['profiles'][0]
    again = collections.Counter()
    for sample, weight in zip(profile['samples'], profile['weights']):
        again[';'.join(frames[i] for i in sample)] += weight
    check(again == folded, 'speedscope')
    lab.run('profile', 'sim/cs.10', '--as', 'pprof', '-o', lab.path('p.pb.gz'))
    with gzip.open(lab.path('p.pb.gz')) as f:
        data = f.read()
    proto = os.path.join(labs.SOURCE, 'proto')
    text = subprocess.run(['protoc', '-I', proto, '--decode=perftools.profiles.Profile',
                           'pprof/profile.proto'], input=data, stdout=subprocess.PIPE, check=True,
                          cwd=proto).stdout.decode()
    strings = [json.loads(s) for s in re.findall(r'^string_table: (".*")$', text, re.M)]
    names = {}
    for body in re.findall(r'^function \{(.*?)^\}', text, re.M | re.S):
        fields = dict(re.findall(r'(\w+): (\d+)', body))
        names[fields['id']] = strings[int(fields['name'])]
    packed = collections.Counter()
    for body in re.findall(r'^sample \{(.*?)^\}', text, re.M | re.S):
        places = re.findall(r'location_id: (\d+)', body)
        packed[';'.join(names[p] for p in reversed(places))] += int(
            re.search(r'value: (\d+)', body).group(1))
    check(packed == folded, 'pprof')
    lab.run('profile', 'sim/cs.10', '--as', 'gprof', status=2)
    lab.run('profile', 'sim/cs.77', status=3)


@test
def kept(lab):
    """Counts made while shards are built are those of a walk over them, whatever became of the objects."""
    simulated(lab)
    traces = ['sim']
    # Two programs at one address; direct branches that arrive elsewhere than the code says.
    for name in ('two-processes', 'five-tasks'):
        path = os.path.join(labs.DATA, 'perf', 'pt', 'pt-%s.data' % name)
        if os.path.exists(path):
            lab.run('push', '--trace', name, '--symfs', os.path.join(labs.DATA, 'perf', 'symfs'), path)
            traces.append(name)
    if os.path.isdir(os.path.join(labs.DATA, 'coresight', 'snapshots', 'juno_r1_1')):
        lab.run('push', '--trace', 'juno', '--snapshot', labs.snapshot('juno_r1_1'), '--buffer', 'ETB_0')
        traces.append('juno.ETB_0')

    def told():
        return [lab.run(what, trace, '--as', how).text() for trace in traces
                for what, how in (('profile', 'autofdo'), ('coverage', 'lcov'))]

    def found(*how):
        text, _ = lab.spawn('verify', '--all', *how).communicate(timeout=60)
        return sorted(re.findall(r'(\w+\.count): ', text.decode()))
    before = told()
    check(kept_counts(lab), 'no counts are kept')
    for path in kept_counts(lab):
        os.remove(path)
    check(told() == before, 'counts of a walk are others')
    for path in kept_counts(lab):
        hurt(path)
    names = sorted(os.path.basename(path) for path in kept_counts(lab))
    check(found() == names, 'verify does not tell all of', names)
    check(told() == before, 'damaged counts are believed')
    check(found() == [], 'they are not made anew', found())
    for path in kept_counts(lab):
        hurt(path)
    check(found('--repair') == names and not kept_counts(lab), kept_counts(lab))
    check(told() == before, 'the repair changed the result')


@test
def coverage(lab):
    """Functions, lines and branches both ways; lcov's own tools read them."""
    insns = simulated(lab)
    times = collections.Counter(insn[0] for insn in insns if insn)
    went, stayed = collections.Counter(), collections.Counter()
    for insn, after in zip(insns, insns[1:]):
        if insn and after:
            (stayed if after[0] == insn[0] + 4 else went)[insn[0]] += 1
    told = json.loads(lab.run('coverage', 'sim/cs.10', '--as', 'json').text())
    check(told['functions'], 'no functions')
    end = [int(f['pc'], 16) for f in told['functions'][1:]] + [1 << 64]
    for f, behind in zip(told['functions'], end):
        pc = int(f['pc'], 16)
        check(f['calls'] == times[pc], f, times[pc])
        check(f['executed'] == sum(1 for at in times if pc <= at < min(behind, pc + 4 * f['insns'])),
              f)
    check(sum(f['executed'] for f in told['functions']) > 1000, told['functions'][:3])
    check(any(f['executed'] == 0 for f in told['functions']) or len(told['functions']) < 3)
    for b in told['branches']:
        pc = int(b['pc'], 16)
        check(b['taken'] == went[pc], b, went[pc])
        check(abs(b['not_taken'] - stayed[pc]) <= 1, b, stayed[pc])  # an exception behind it
    text = lab.run('coverage', 'sim/cs.10').text()
    check('functions' in text and 'branches' in text, text)
    lcov = lab.run('coverage', 'sim/cs.10', '--as', 'lcov', '-o', lab.path('c.info'))
    lines = collections.Counter((f, n) for f, n, _ in told['lines'])
    check(set(lines.values()) <= {1}, 'a line twice')
    with open(lab.path('c.info')) as f:
        info = f.read()
    check(info.count('\nSF:') == len(told['files']), lcov)
    check(info.count('\nDA:') == len(told['lines']), lcov)
    if told['files'] and shutil.which('lcov'):
        done = subprocess.run(['lcov', '--summary', lab.path('c.info'), '--rc',
                               'lcov_branch_coverage=1'], stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, timeout=60)
        check(done.returncode == 0 and b'lines' in done.stdout, done.stdout.decode())
    lab.run('coverage', 'sim', '--as', 'xml', status=2)
    lab.run('coverage', 'sim/cs.77', status=3)


@test
def compiled_with_profile(lab):
    """A program of this machine is traced, and built again with its profile: it needs fewer instructions."""
    record = os.path.join(lab.build, 'tests', 'perf', 'record_steps')
    clang, profgen = shutil.which('clang-14'), shutil.which('llvm-profgen-14')
    if not (os.path.exists(record) and clang and profgen):
        raise labs.Skip('needs clang-14 and llvm-profgen-14 (llvm-14) on x86-64')
    source = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), 'perf', 'hot.c')
    flags = ['-O2', '-g', '-fdebug-info-for-profiling', '-nostdlib', '-static', '-ffreestanding',
             '-fno-stack-protector', '-DROUNDS=1000', source, '-o']

    def executed(program):
        run = subprocess.run([record, lab.path('hot.pt'), program], stdout=subprocess.PIPE, timeout=120)
        if run.returncode == 77:
            raise labs.Skip('programs may not be traced here')
        check(run.returncode == 0, run)
        return int(run.stdout)
    subprocess.run([clang, *flags, lab.path('plain')], check=True, timeout=60)
    before = executed(lab.path('plain'))
    lab.start()
    lab.run('push', '--trace', 'hot', '--format', 'pt', '--image', lab.path('plain'), lab.path('hot.pt'))
    # The last one, which ends the program, is in the trace, too.
    stored = only(streams(lab.run('get', 'hot/pt.0', '--text').text())['pt.0'], 'I')
    check(len(stored) == before + 1, len(stored), 'instructions are stored, and executed were', before + 1)
    lab.run('profile', 'hot', '--as', 'llvm-profgen', '-o', lab.path('hot.raw'))
    subprocess.run([profgen, '--use-offset=0', '--unsymbolized-profile=' + lab.path('hot.raw'), '--format=text',
                    '--binary=' + lab.path('plain'), '--output=' + lab.path('hot.prof')], check=True, timeout=60,
                   stderr=subprocess.DEVNULL)
    with open(lab.path('hot.prof')) as f:
        profile = f.read()
    check(re.search(r'usual:\d{3}', profile), 'the call is not told:', profile)
    subprocess.run([clang, *flags, lab.path('better'), '-fprofile-sample-use=' + lab.path('hot.prof')], check=True,
                   timeout=60)
    after = executed(lab.path('better'))
    check(after < before, 'with the profile', after, 'instructions are executed, without it', before)


if __name__ == '__main__':
    labs.main(TESTS)
