#!/usr/bin/env python3
"""Where the time goes: instructions per byte of trace, by stage and function, counted by valgrind.

usage: instructions.py PROGRAM [STAGE…]     PROGRAM: build/tests/bench/stages; STAGE: part of a name

The same on every run of one build.
"""
import collections, os, re, subprocess, sys, tempfile

TOP = 4  # functions listed for each stage


def count(program, stage):
    """(bytes, instructions traced, instructions, [(function, instructions)]) of a stage; None if it cannot run."""
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, 'callgrind.out')
        run = subprocess.run(['valgrind', '--tool=callgrind', '--toggle-collect=measured',
                              '--callgrind-out-file=' + out, program, stage],
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        if run.returncode == 77:
            return None
        if run.returncode != 0:
            sys.exit('instructions: %s\n%s' % (stage, run.stderr[-2000:]))
        lines = subprocess.run(['callgrind_annotate', '--show=Ir', '--auto=no', out], check=True, text=True,
                               stdout=subprocess.PIPE).stdout.splitlines()
    rows = [re.match(r'\s*([\d,]+)\s*\(\s*[\d.]+%\)\s+(.*)', line) for line in lines]
    rows = [(int(m[1].replace(',', '')), m[2]) for m in rows if m]
    total = next(n for n, what in rows if what.startswith('PROGRAM'))
    functions = collections.Counter()  # inlined code counts for the function that contains it
    for n, what in rows:
        if not what.startswith('PROGRAM'):
            functions[re.sub(r"^[^:]*:|['\s].*$", '', what)] += n
    size, traced = (int(word) for word in run.stdout.split())
    return size, traced, total, functions.most_common(TOP)


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    program, wanted = sys.argv[1], sys.argv[2:]
    names = subprocess.run([program], check=True, text=True, stdout=subprocess.PIPE).stdout.splitlines()
    print('%-46s %9s  %s' % ('stage', 'per byte', 'of which'))
    for name in names:
        if wanted and not any(w in name for w in wanted):
            continue
        result = count(program, name)
        if result is None:
            print('%-46s %9s' % (name, 'skipped'))
            continue
        size, _, total, functions = result
        print('%-46s %9.2f  %s' % (name, total / size, ', '.join(
            '%s %.2f' % (what, n / size) for what, n in functions)), flush=True)


if __name__ == '__main__':
    main()
