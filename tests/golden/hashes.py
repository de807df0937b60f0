#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What is decoded changes with TL_DECODE_VERSION only: stored traces of an older version are known as such by it.

    hashes.py BUILD_FOLDER [DATA_FOLDER]          compare the flow text of captures with hashes.txt
    hashes.py BUILD_FOLDER [DATA_FOLDER] --write  write the hashes of a new version, and of new captures

hashes.txt begins with the version; then there is a line for each capture: its hash and its name. Captures are the
golden files here, and those of the data folder, if there is one ($TL_DATA, ../shared/data).
"""
import glob
import hashlib
import json
import os
import re
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCE = os.path.dirname(os.path.dirname(HERE))
FILE = os.path.join(HERE, 'hashes.txt')
sys.path.insert(0, HERE)
from golden import Case  # noqa: E402


def version():
    with open(os.path.join(SOURCE, 'decoders', 'decode', 'decode.h')) as f:
        return re.search(r'#define TL_DECODE_VERSION (\d+)', f.read())[1]


def hash_of(command, folder=None):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, cwd=folder, timeout=1200)
    return hashlib.sha256(done.stdout).hexdigest()[:16]


def goldens(tool):
    for path in sorted(glob.glob(os.path.join(HERE, '*.golden'))):
        with tempfile.TemporaryDirectory(prefix='golden-') as folder:
            case = Case(path, folder, tool)
            name = os.path.basename(path)
            yield name, lambda c=case, f=folder: hash_of([tool, 'decode', '--text', *c.inputs, c.trace], f)


def captures(tool, data):
    """The name of each capture of the data folder, and the command that decodes it."""
    def at(*parts):
        return sorted(glob.glob(os.path.join(data, *parts)))
    decode = [tool, 'decode', '--text']
    for path in at('coresight/snapshots/*/snapshot.ini') + at('coresight/older/*/snapshot.ini') + \
            at('field/arm/*/snapshot.ini'):
        yield os.path.dirname(path), [*decode, '--snapshot', os.path.dirname(path)]
    for path in at('perf/*/*.data'):
        yield path, [*decode, '--symfs', os.path.join(data, 'perf/symfs'), '--buildid-dir',
                     os.path.join(data, 'perf/buildid'), path]
    for path in at('field/riscv/*/c.ini'):
        for trace in sorted(glob.glob(os.path.join(os.path.dirname(path), '*.etr')) +
                            glob.glob(os.path.join(os.path.dirname(path), 'trace.bin'))):
            if 'count-limit' not in trace:  # 33 million instructions
                yield trace, [*decode, '--config', path, trace]
    for path in at('riscv/*.ini'):
        trace = [p for p in at(os.path.basename(path)[:-4] + '.*') if p.endswith(('.nex', '.etr', '.bin'))]
        if trace:
            yield trace[0], [*decode, '--config', path, trace[0]]
    for path in at('mtb/*/mtb.ini'):
        yield path, [*decode, '--config', path, os.path.join(os.path.dirname(path), 'ram.bin')]
    for path in at('pt/corpus/*/*.pt') + at('field/pt/events/*/*.pt'):
        with open(os.path.join(os.path.dirname(path), 'meta.json')) as f:
            org = json.load(f)['org']
        code = path[:-len('.pt')] + '.bin'
        yield path, [*decode, '--format', 'pt', *(['--image', code + '@' + org] if os.path.exists(code) else []), path]
    for path in at('di/*.dtd.bin'):
        yield path, [*decode, '--format', 'di', path]
    for path in at('stf/*.zstf') + at('stf/*.stf'):
        if 'dhry_riscv' not in path:  # as much text as of half of all others, of the same kinds of records
            yield path, [*decode, '--format', 'stf', path]


def known():
    if not os.path.exists(FILE):
        return None, {}
    with open(FILE) as f:
        first, *lines = f.read().splitlines()
    return first.split()[-1], {line.split(None, 1)[1]: line.split()[0] for line in lines}


def main():
    args = [a for a in sys.argv[1:] if a != '--write']
    data = args[1] if len(args) > 1 else os.environ.get('TL_DATA') or os.path.join(SOURCE, '../shared/data')
    tool = os.path.join(os.path.abspath(args[0]), 'tracelake')
    now = version()
    was, before = known()
    found = {}
    for name, make in goldens(tool):
        found[name] = make()
    if not os.path.isdir(data):
        print('skipped: captures, there is no %s' % data)
    for path, command in captures(tool, data):
        found[os.path.relpath(path, data)] = hash_of(command)
    changed = sorted(n for n in found if before.get(n, found[n]) != found[n])
    new = sorted(n for n in found if n not in before)
    if now != was:
        if '--write' not in sys.argv:
            sys.exit('TL_DECODE_VERSION is %s, hashes.txt is of version %s: write its hashes by\n  %s %s --write' %
                     (now, was, sys.argv[0], args[0]))
        before, changed = {}, []
    if changed:
        sys.exit('What is decoded of these has changed, but TL_DECODE_VERSION is %s as before: increase it in '
                 'decoders/decode/decode.h, so that traces decoded earlier are known to be old, and write the new hashes by'
                 '\n  %s %s --write\n%s' % (now, sys.argv[0], args[0], '\n'.join(changed)))
    if '--write' in sys.argv:
        with open(FILE, 'w') as f:
            f.write('hashes of flow text, TL_DECODE_VERSION %s\n' % now)
            f.writelines('%s %s\n' % (value, name) for name, value in sorted({**before, **found}.items()))
    elif any(n.endswith('.golden') for n in new):
        sys.exit('hashes.txt lacks %s: write it by\n  %s %s --write' % (', '.join(new), sys.argv[0], args[0]))
    print('%d captures are decoded as version %s has it' % (len(found), now))


if __name__ == '__main__':
    main()
