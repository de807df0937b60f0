#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""How often code was executed: profiles and coverage, compared with the flow text of the same trace."""
import collections
import gzip
import json
import os
import re
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import lab as labs  # noqa: E402
from lab import check, only, streams, wait  # noqa: E402

TESTS = {}


def test(function):
    TESTS[function.__name__] = function
    return function


def simulated(lab):
    """A trace of a simulated core, and its instructions as (address, encoding), None where the flow breaks."""
    lab.start()
    subprocess.run([lab.rig, '--kind', 'etm', '--server', lab.url, '--trace', 'sim', '--bytes',
                    '60000', '--rate', '100000000'], stdout=subprocess.PIPE, check=True, timeout=240)
    wait('it is sealed', lambda: json.loads(lab.run('ls', '--json', 'sim').text())[0]['state'] == 'sealed')
    insns = []
    for line in streams(lab.run('get', 'sim/cs.10', '--text').text())['cs.10']:
        if line[0] == 'I':
            insns.append((int(line.split()[1], 16), int(line.split()[2], 16)))
        elif line[0] in 'GXO':
            insns.append(None)
    return insns


def is_branch(w):
    """A64: B, BL, B.cond, CBZ, TBZ, BR, BLR, RET, ERET, SVC and the like; also ISB, WFI, WFE, for which a trace unit
    may report the flow."""
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


def branch_stacks(text):
    """The branches in lines of `perf script -F ip,brstack`, each once, in order."""
    out, last = [], None
    for line in text.splitlines():
        ip, *stack = line.split()
        stack = [tuple(int(a, 16) for a in entry.split('/')[:2]) for entry in reversed(stack)]
        check(1 <= len(stack) <= 32 and int(ip, 16) == stack[-1][1], line)
        out += stack[1:] if len(stack) > 1 and stack[0] == last else stack
        last = stack[-1] if len(stack) == 32 else None
    return out


def kept_counts(lab):
    return [os.path.join(f, name) for f, _, names in os.walk(lab.data) for name in names
            if name.endswith(('.count', '.calls'))]


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

    taken = [(a[0], b[0]) for a, b in zip(insns, insns[1:]) if a and b and b[0] != a[0] + 4]
    check(branch_stacks(lab.run('profile', 'sim/cs.10', '--as', 'perf-branches').text()) == taken, 'perf-branches')
    some = branch_stacks(lab.run('profile', 'sim', '--as', 'perf-branches', '--bias', hex(low)).text())
    check(some[:len(taken)] == [(a - low, b - low) for a, b in taken], 'perf-branches, moved')
    lab.run('profile', 'sim', '--as', 'perf-branches', '--insn', '1:2', status=2)

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
    """Counts made while shards are built equal those of a walk over them, whatever happened to the objects; and so do
    stored call trees."""
    simulated(lab)
    traces = ['sim']
    # Two programs at the same address; direct branches that arrive elsewhere than the code says.
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
                for what, how in (('profile', 'autofdo'), ('coverage', 'lcov'), ('profile', 'folded'))]

    def found(*how):
        text, _ = lab.spawn('verify', '--all', *how).communicate(timeout=240)
        return sorted(re.findall(r'(\w+\.(?:count|calls)): ', text.decode()))
    before = told()
    kinds = collections.Counter(path.rsplit('.')[-1] for path in kept_counts(lab))
    check(kinds['count'] > 0 and kinds['calls'] > 0, 'not all that is counted is kept:', kinds)

    def restarted():
        """Forget what is in memory."""
        lab.stop()
        lab.start()
        return told()
    check(restarted() == before, 'what is kept is something else')
    for path in kept_counts(lab):
        os.remove(path)
    check(restarted() == before, 'counts of a walk are others')
    again = collections.Counter(path.rsplit('.')[-1] for path in kept_counts(lab))
    check(again['calls'] > 0 and again['count'] > 0, 'nothing that is counted is kept again:', again)
    for path in kept_counts(lab):
        hurt(path)
    names = sorted(os.path.basename(path) for path in kept_counts(lab))
    check(found() == names, 'verify does not tell all of', names)
    check(restarted() == before, 'damaged counts are believed')
    check(found() == [], 'they are not made anew', found())
    for path in kept_counts(lab):
        hurt(path)
    check(found('--repair') == names and not kept_counts(lab), kept_counts(lab))
    check(restarted() == before, 'the repair changed the result')


@test
def coverage(lab):
    """Functions, lines and both directions of branches; lcov's own tools can read them."""
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
        check(abs(b['not_taken'] - stayed[pc]) <= 1, b, stayed[pc])  # an exception after it
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
                              stderr=subprocess.STDOUT, timeout=240)
        check(done.returncode == 0 and b'lines' in done.stdout, done.stdout.decode())
    lab.run('coverage', 'sim', '--as', 'xml', status=2)
    lab.run('coverage', 'sim/cs.77', status=3)
    for command in (['coverage'], ['profile', '--as', 'bolt']): # of this trace, not the first
        lab.fails(3, command[0] + ': sim: trace sim has no stream cs.77', *command, 'sim/cs.10', 'sim/cs.77')


@test
def programs(lab):
    """Of two programs at the same address, each has its own counts: by process, and by file."""
    data = os.path.join(labs.DATA, 'perf')
    path = os.path.join(data, 'pt', 'pt-two-processes.data')
    if not os.path.exists(path):
        raise labs.Skip('no ' + path)
    lab.start()
    lab.run('push', '--trace', 'two', '--symfs', os.path.join(data, 'symfs'), path)
    threads = {2100: 'walk', 2150: 'stroll'}
    lines, functions = collections.Counter(), {}
    for process, name in threads.items():
        # The stream of the process's only thread contains nothing else.
        thread = 'two/thread.%d.%s' % (process, name)
        for command in (['profile', '--as', 'bolt'], ['coverage', '--as', 'json']):
            own = lab.run(*command, thread).text()
            check(lab.run(*command, 'two', '--context', hex(process)).text() == own, command, name)
        told = json.loads(own)
        functions[name] = {f['name']: f['calls'] for f in told['functions'] if f['executed']}
        lines.update({(told['files'][f - 1], n): count for f, n, count in told['lines']})
        counts = lab.run('profile', thread, '--as', 'bolt').text()
        for image in (name, os.path.join(data, 'symfs', 'opt', 'demo', name)):
            # It is linked at its load address.
            check(lab.run('profile', 'two', '--as', 'bolt', '--image', image).text() == counts, image)
    for command in (['profile', '--as', 'bolt'], ['coverage', '--as', 'json']):
        check(lab.run(*command, 'two', '--context', '2100,2150').text() == lab.run(*command, 'two').text(), command)
    whole = json.loads(lab.run('coverage', 'two', '--as', 'json').text())
    both = collections.Counter((f['name'], f['calls']) for f in whole['functions'] if f['executed'])
    check(both == collections.Counter(pair for one in functions.values() for pair in one.items()), both, functions)
    check({(whole['files'][f - 1], n): count for f, n, count in whole['lines']} == lines, 'lines')
    lab.run('profile', 'two', '--as', 'bolt', '--image', 'nobody', status=3)
    lab.run('profile', 'two', '--as', 'bolt', '--context', '12,', status=2)
    lab.run('profile', 'two', '--as', 'folded', '--context', '12', status=2)


@test
def foreign(lab):
    """Counts over several traces include those that the token may see."""
    tokens, keys = lab.path('tokens'), {}
    for name, options in (('all', []), ('own', ['--rig', 'mine'])):
        keys[name] = lab.path(name + '.key')
        with open(keys[name], 'w') as f:
            f.write(lab.run('token', 'add', '--tokens', tokens, '--name', name, '--role', 'push', *options).text())
    lab.start('--tokens', tokens)
    with open(lab.path('some.itm'), 'wb') as f:
        f.write(bytes(5) + b'\x80\x01A')
    for rig, trace in (('mine', 'one'), ('other', 'two')):
        lab.run('push', '--format', 'itm,id=0', '--rig', rig, '--trace', trace, '--token', keys['all'], lab.path('some.itm'))
    for command in (['coverage'], ['profile', '--as', 'bolt']):
        lab.run(*command, 'one', 'two', '--token', keys['all'])
        lab.run(*command, 'one', 'one', '--token', keys['own'])
        lab.fails(3, r'there is no such trace', *command, 'one', 'two', '--token', keys['own'])


@test
def from_python(lab):
    """The Python package gives the same as the command line."""
    sys.path.insert(0, os.path.join(lab.build, 'python'))
    try:
        import tracelake
    except ImportError as e:
        raise labs.Skip(str(e)) from None
    simulated(lab)
    with tracelake.connect(lab.url) as lake:
        code, twice = lake.code('sim/cs.10'), lake.code('sim/cs.10', 'sim/cs.10')
        bolt = lab.run('profile', 'sim/cs.10', '--as', 'bolt').text().splitlines()
        check(len(bolt) == len(code.runs) + len(code.branches) and not code.truncated, len(bolt))
        check(twice.insns == 2 * code.insns and twice.runs == {at: 2 * n for at, n in code.runs.items()}, 'twice')
        stacks = lake.profile('sim', 'cs.10')
        check({';'.join(name or '(no symbol)' for name in stack): n for stack, n in stacks.items()} ==
              weights(lab.run('profile', 'sim/cs.10').text()), 'stacks')
        times = lake.functions('sim', 'cs.10')
        check(sum(f.self_time.value for f in times.functions) == times.about.ran > 0, 'functions')
        busy = max(times.functions, key=lambda f: f.ended)
        slow = lake.calls('sim', 'cs.10', busy.name, limit=3)
        check(slow[0].time.value == busy.time.max and len(lake.gaps('sim', 'cs.10')) >= 0, 'calls')
        check(all(e.entered for e in lake.interrupts('sim', 'cs.10', unit='ns')), 'interrupts')
        told = json.loads(lab.run('coverage', 'sim/cs.10', '--as', 'json').text())
        covered = lake.coverage('sim/cs.10')
        check([(f.name, f.calls) for f in covered.functions] == [(f['name'], f['calls']) for f in told['functions']])
        check(len(covered.branches) == len(told['branches']) and list(covered.files) == told['files'])


class Steps:
    """A program of this machine, compiled, and traced instruction by instruction as Intel PT."""

    SOURCE = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), 'perf', 'hot.c')

    def __init__(self, lab):
        self.lab, self.clang = lab, shutil.which('clang-14')
        self.record = os.path.join(lab.build, 'tests', 'perf', 'record_steps')
        if not (os.path.exists(self.record) and self.clang):
            raise labs.Skip('needs clang-14 on x86-64')

    def compile(self, name, *flags):
        tool(self.clang, '-O2', '-g', '-fdebug-info-for-profiling', '-nostdlib', '-static', '-ffreestanding',
             '-fno-stack-protector', '-DROUNDS=1000', self.SOURCE, '-o', self.lab.path(name), *flags)

    def run(self, name):
        """Returns the number of instructions it executes; its trace is in hot.pt."""
        run = subprocess.run([self.record, self.lab.path('hot.pt'), self.lab.path(name)], stdout=subprocess.PIPE,
                             timeout=240)
        if run.returncode == 77:
            raise labs.Skip('programs may not be traced here')
        check(run.returncode == 0, run)
        return int(run.stdout)

    def push(self, name, *flags):
        """Compile it and push its trace as `hot`; returns the number of instructions executed."""
        self.compile(name, *flags)
        executed = self.run(name)
        self.lab.start()
        self.lab.run('push', '--trace', 'hot', '--format', 'pt', '--image', self.lab.path(name), self.lab.path('hot.pt'))
        return executed


def tool(*command):
    """Run a program of others; returns its output."""
    run = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=240)
    check(run.returncode == 0, *command, run.stdout.decode())
    return run.stdout.decode()


def llvm(name):
    """A program of LLVM 16 or 14, as packaged by Debian; None if missing. Some of them depend on the name they are
    called by."""
    paths = ['/usr/lib/llvm-%d/bin/%s' % (version, name) for version in (16, 14)]
    return next((path for path in paths if os.path.exists(path)), None)


@test
def compiled_with_profile(lab):
    """A program of this machine is traced, and rebuilt with its profile: it needs fewer instructions."""
    steps = Steps(lab)
    profgen, profdata = shutil.which('llvm-profgen-14'), shutil.which('llvm-profdata-14')
    if not (profgen and profdata):
        raise labs.Skip('needs llvm-profgen-14 and llvm-profdata-14 (llvm-14)')
    before = steps.push('plain')
    # The last instruction, which ends the program, is also in the trace.
    stored = only(streams(lab.run('get', 'hot/pt.0', '--text').text())['pt.0'], 'I')
    check(len(stored) == before + 1, len(stored), 'instructions are stored, and executed were', before + 1)
    for form, how in (('llvm-profgen', ['--use-offset=0', '--unsymbolized-profile=']),
                      ('perf-branches', ['--perfscript='])):
        raw, profile = lab.path('hot.' + form), lab.path('hot.prof')
        lab.run('profile', 'hot', '--as', form, '-o', raw)
        tool(profgen, *how[:-1], how[-1] + raw, '--format=text', '--binary=' + lab.path('plain'), '--output=' + profile)
        with open(profile) as f:
            text = f.read()
        check(re.search(r'usual:\d{3}', text), 'the call is not told:', text)
        tool(profdata, 'merge', '--sample', '--binary', profile, '-o', lab.path('hot.bin'))
        shown = tool(profdata, 'show', '--sample', '--function=usual', lab.path('hot.bin'))
        check(re.search(r'Function: usual: 7\d{3}, ', shown), shown)
        steps.compile('better', '-fprofile-sample-use=' + lab.path('hot.bin'))
        after = steps.run('better')
        check(after < before, 'with the profile', after, 'instructions are executed, without it', before)


@test
def compiled_by_autofdo(lab):
    """The same with AutoFDO's own tool, which counts addresses from the first segment on."""
    steps = Steps(lab)
    if not shutil.which('create_llvm_prof'):
        raise labs.Skip('needs create_llvm_prof (autofdo)')
    steps.compile('usual')
    before = steps.run('usual')
    steps.push('plain', '-gdwarf-4', '-fno-inline')  # Debian's version gives wrong names to inlined C functions
    lab.run('profile', 'hot', '--as', 'autofdo', '--image', lab.path('plain'), '--bias', '0x400000',
            '-o', lab.path('hot.autofdo'))
    tool('create_llvm_prof', '--profiler=text', '--profile=' + lab.path('hot.autofdo'), '--binary=' + lab.path('plain'),
         '--out=' + lab.path('hot.prof'))
    steps.compile('better', '-fprofile-sample-use=' + lab.path('hot.prof'))
    after = steps.run('better')
    check(after < before, 'with the profile', after, 'instructions are executed, without it', before)


@test
def laid_out_with_profile(lab):
    """BOLT knows every block of the counts, and produces a program that needs fewer instructions."""
    steps = Steps(lab)
    perf2bolt, bolt = llvm('perf2bolt'), llvm('llvm-bolt')
    if not (perf2bolt and bolt):
        raise labs.Skip('needs perf2bolt and llvm-bolt (bolt-16)')
    before = steps.push('plain', '-Wl,--emit-relocs')
    lab.run('profile', 'hot', '--as', 'bolt', '-o', lab.path('hot.bolt'))
    told = tool(perf2bolt, '-pa', '-p', lab.path('hot.bolt'), '-o', lab.path('hot.fdata'), lab.path('plain'))
    check('mismatching disassembled function contents: 0 ' in told and 'unknown regions: 0 ' in told, told)
    tool(bolt, lab.path('plain'), '-o', lab.path('better'), '--data', lab.path('hot.fdata'),
         '--reorder-blocks=ext-tsp', '--reorder-functions=hfsort', '--split-functions')
    after = steps.run('better')
    check(after < before, 'laid out anew', after, 'instructions are executed, before', before)


@test
def covered_program(lab):
    """Lines of a program are covered as often as they were executed; lcov and genhtml show them."""
    steps = Steps(lab)
    steps.push('plain', '-fno-inline', '-O1')
    told = json.loads(lab.run('coverage', 'hot', '--as', 'json').text())
    names = {f['name']: f for f in told['functions']}
    check(names['usual']['calls'] + names['rare']['calls'] == 1000 and names['_start']['calls'] == 1, names)
    check(names['next']['calls'] == 1000 and names['work']['calls'] == 18 * names['rare']['calls'], names)
    with open(steps.SOURCE) as f:
        source = f.read().splitlines()
    lines = {n: count for _, n, count in told['lines']}
    for text, times in (('return seed >> 33;', 1000), ('return (a ^ b) + 1;', names['usual']['calls']),
                        ('sum += work(i, a, sum)', 9 * names['rare']['calls'])):
        at = 1 + next(i for i, line in enumerate(source) if text in line)
        check(lines[at] == times, text, lines[at], times)
    lab.run('coverage', 'hot', '--as', 'lcov', '-o', lab.path('hot.info'))
    if not (shutil.which('lcov') and shutil.which('genhtml')):
        raise labs.Skip('needs lcov and genhtml (lcov)')
    branches = ['--rc', 'lcov_branch_coverage=1']
    told = tool('lcov', '--summary', lab.path('hot.info'), *branches)
    check(re.search(r'functions.*100.0% \(5 of 5', told) and re.search(r'branches.*\([1-9]\d* of ', told), told)
    # Giving the trace twice doubles the counts.
    lab.run('coverage', 'hot', 'hot', '--as', 'lcov', '-o', lab.path('twice.info'))
    tool('lcov', '-a', lab.path('hot.info'), '-a', lab.path('hot.info'), '-o', lab.path('sum.info'), *branches)

    def counts(path):
        with open(path) as f:
            return sorted(re.findall(r'^(?:DA|FNDA|BRDA):.*$', f.read(), re.M))
    check(counts(lab.path('twice.info')) == counts(lab.path('sum.info')), 'two traces are not the sum')
    tool('genhtml', '--branch-coverage', '-o', lab.path('html'), lab.path('hot.info'))
    with open(next(os.path.join(f, 'hot.c.gcov.html') for f, _, names in os.walk(lab.path('html'))
                   if 'hot.c.gcov.html' in names)) as f:
        page = f.read()
    check(re.search(r'1000 .*return seed', page), page)


@test
def viewed_profile(lab):
    """pprof shows the functions of call stacks with the same instruction counts as ours."""
    go = shutil.which('go')
    pprof = [shutil.which('pprof')] if shutil.which('pprof') else [go, 'tool', 'pprof'] if go else None
    if not pprof:
        raise labs.Skip('needs pprof, or go (golang-go)')
    Steps(lab).push('plain', '-fno-inline')
    lab.run('profile', 'hot', '--as', 'pprof', '-o', lab.path('hot.pb.gz'))
    own = collections.Counter()
    for path, n in weights(lab.run('profile', 'hot').text()).items():
        own[path.split(';')[-1]] += n
    told = tool(*pprof, '-raw', lab.path('hot.pb.gz'))
    check('instructions/count' in told, told)
    told = tool(*pprof, '-top', '-unit=count', lab.path('hot.pb.gz'))
    shown = dict((name, int(n)) for n, name in re.findall(r'^ *(\d+) +[\d.]+%.*% +(\S+)$', told, re.M))
    check(shown == dict(own), told, own)


if __name__ == '__main__':
    labs.main(TESTS)
