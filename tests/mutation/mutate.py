#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Do the tests notice a fault? Changes a comparison, a logical operator or a number in the code, builds, and runs the
tests concerned, one change at a time. Changes that no test notices are printed: either a test is missing, or the
change makes no difference. Run by hand; takes some 20 seconds per change.

usage: mutate.py [--dir DIR] [--n N] [--seed S] [--at FILE:LINE] [FILE…]

Works on a copy in DIR (/tmp/tracelake-mutation), which is kept for the next run; the source tree is not changed.
FILE: a part of a path below server/builder, shard, catalog, store or decoders/flow; default: all.
"""
import argparse, os, random, re, shutil, subprocess, sys, time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
LIMIT = 180  # seconds for a test; a test that hangs has noticed the change

# The tests for each file, the fastest first.
FLOW = ['test_walker', 'test_item', 'test_block', 'test_callstack', 'test_toy', 'test_etm4_flow',
        'test_sim_etm4', 'test_pt_flow', 'test_property_etm4', 'test_decode_state', 'test_stf_flow',
        'test_parallel', 'test_shard_index']
STORE = ['test_store_itemlog', 'test_shard_stats', 'test_store_pack', 'test_shard_walk',
         'test_store_backend', 'test_catalog', 'test_shard', 'test_shard_index', 'test_shard_mend', 'test_lake_query',
         'test_lake_slices', 'test_lake_copy', 'test_lake_resume', 'test_lake']
CONCERNED = {'decoders/flow': FLOW,
             **{'server/' + folder: STORE for folder in ('builder', 'shard', 'catalog', 'store')}}

SKIP = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])*\'|^[ \t]*#(?:\\\n|[^\n])*'
                  r'|\bstatic_assert\s*\([^;]*;|\btl_fail_\w+\([^;]*;', re.S | re.M)
TOKEN = re.compile(r'(?<![-<>=!&|+*/%^])(==|!=|<=|>=|<|>|&&|\|\|)(?![<>=&|])|(?<![\w.])([1-9]\d*)(?=[uUlL]*\b)(?![.\w])')
OTHER = {'==': '!=', '!=': '==', '<': '<=', '<=': '<', '>': '>=', '>=': '>', '&&': '||', '||': '&&'}


def places(text):
    """(offset, old, new) of every possible change."""
    plain = SKIP.sub(lambda m: re.sub(r'[^\n]', ' ', m.group(0)), text)
    for m in TOKEN.finditer(plain):
        if m.group(1):
            around = plain[m.start() - 1:m.end() + 1]
            if m.group(1) in '<>' and around != ' %s ' % m.group(1):
                continue  # not a comparison
            yield m.start(), m.group(1), OTHER[m.group(1)]
        else:
            yield m.start(), m.group(2), str(int(m.group(2)) + 1)


def copy_tree(to):
    """Copy the files that git tracks or would add, and nothing else; unchanged files are kept, so that they are not
    rebuilt."""
    files = set(subprocess.run(['git', 'ls-files', '-coz', '--exclude-standard'], cwd=ROOT, check=True,
                               stdout=subprocess.PIPE).stdout.decode().split('\0')[:-1])
    for name in files:
        source, target = os.path.join(ROOT, name), os.path.join(to, name)
        os.makedirs(os.path.dirname(target), exist_ok=True)
        with open(source, 'rb') as f:
            data = f.read()
        if not os.path.exists(target) or open(target, 'rb').read() != data:
            with open(target, 'wb') as f:
                f.write(data)
    for top, _, names in os.walk(to):
        for name in names:
            if os.path.relpath(os.path.join(top, name), to) not in files:
                os.remove(os.path.join(top, name))


class Bench:
    def __init__(self, folder):
        self.tree, self.build = os.path.join(folder, 'tree'), os.path.join(folder, 'build')
        copy_tree(self.tree)
        if not os.path.exists(os.path.join(self.build, 'build.ninja')):
            subprocess.run(['cmake', '-S', self.tree, '-B', self.build, '-G', 'Ninja',
                            '-DTL_WERROR=OFF'], check=True, stdout=subprocess.DEVNULL)

    def make(self, *tests):
        """Returns the builder's output if it fails, otherwise nothing."""
        run = subprocess.run(['ninja', '-C', self.build, *tests], stdout=subprocess.PIPE,
                             stderr=subprocess.STDOUT, text=True)
        return run.stdout if run.returncode else ''

    def noticed(self, tests):
        """Returns the test that noticed the change; 'compiler' if it does not compile; None if no test did."""
        for test in tests:
            if self.make(test):
                return 'compiler'
            folder = 'tests/toy' if test == 'test_toy' else 'tests/unit'
            try:
                run = subprocess.run([os.path.join(self.build, folder, test)], cwd=self.build,
                                     stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                     timeout=LIMIT)
            except subprocess.TimeoutExpired:
                return test + ' (did not end)'
            if run.returncode != 0:
                return test
        return None


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument('--dir', default='/tmp/tracelake-mutation')
    ap.add_argument('--n', type=int, default=30)
    ap.add_argument('--seed', type=int, default=1)
    ap.add_argument('--at')
    ap.add_argument('files', nargs='*')
    args = ap.parse_args()
    bench = Bench(args.dir)
    all_places = []
    for folder, tests in CONCERNED.items():
        for name in sorted(os.listdir(os.path.join(bench.tree, folder))):
            path = os.path.join(folder, name)
            if not re.search(r'\.[ch]$', name) or args.files and not any(f in path for f in args.files):
                continue
            with open(os.path.join(bench.tree, path)) as f:
                text = f.read()
            for at, old, new in places(text):
                line = text.count('\n', 0, at) + 1
                if not args.at or args.at == '%s:%d' % (path, line):
                    all_places.append((path, line, at, old, new, tests))
    if not args.at:
        random.Random(args.seed).shuffle(all_places)
    print('%d places, %d of them now' % (len(all_places), min(args.n, len(all_places))))
    for tests in {id(p[5]): p[5] for p in all_places[:args.n]}.values():
        said = bench.make(*tests)
        if said:
            sys.exit('the copy cannot be built:\n' + said[-3000:])
        why = bench.noticed(tests)
        if why:
            sys.exit('without any change: ' + why)
    survivors = 0
    for path, line, at, old, new, tests in all_places[:args.n]:
        full = os.path.join(bench.tree, path)
        with open(full) as f:
            text = f.read()
        begun = time.monotonic()
        try:
            with open(full, 'w') as f:
                f.write(text[:at] + new + text[at + len(old):])
            why = bench.noticed(tests)
        finally:
            with open(full, 'w') as f:
                f.write(text)
        survivors += why is None
        print('%-9s %s:%d: %s -> %s: %s  [%s, %.0f s]' % (
            'noticed' if why else 'SURVIVED', path, line, old, new,
            text.splitlines()[line - 1].strip()[:90], why or 'nobody', time.monotonic() - begun),
            flush=True)
    print('%d of %d survived' % (survivors, min(args.n, len(all_places))))


main()
