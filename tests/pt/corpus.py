#!/usr/bin/env python3
"""Compares ptdump and ptxed with the reference's test set for Intel PT, with white space collapsed.

usage: corpus.py PROGRAM CORPUS TOOL     TOOL: ptdump or ptxed; exit status 77 if CORPUS is absent
"""
import glob, json, os, re, subprocess, sys


def collapsed(text):
    return [' '.join(line.split()) for line in text.splitlines() if line.strip()]


def main():
    program, corpus, tool = sys.argv[1:4]
    if not os.path.isdir(corpus):
        print('skipped: there is no %s' % corpus)
        return 77
    passed, failed = 0, []
    for meta in sorted(glob.glob(os.path.join(corpus, '*', 'meta.json'))):
        folder = os.path.dirname(meta)
        about = json.load(open(meta))
        for name in about['exp']:
            found = re.fullmatch(r'.*-%s(?:-cpu_(\d+)_(\d+)(?:_(\d+))?)?\.exp' % tool, name)
            if not found:
                continue
            command = [program, 'decode', '--format', 'pt', '--like', tool]
            image = os.path.join(folder, about['name'] + '.bin')
            options = [o for text in about['opt_' + tool] for o in text.split()]
            if tool == 'ptxed' and os.path.exists(image) and '--raw' not in options:
                command += ['--image', '%s@%s' % (image, about['org'])]
            if found[1]:
                command += ['--cpu', '/'.join(x for x in found.groups() if x)]
            # a section of the code may also be mapped at another address
            command += [os.path.join(folder, about['name'] + '.pt'), '--'] + [
                os.path.join(folder, o) if o.split(':')[0] == about['name'] + '.bin' else o for o in options]
            if '--raw' in options:
                command[command.index('pt') + 1:1] = []
                command[6:6] = ['--image', '%s@%s' % (image, about['org'])]
            run = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=240)
            ours = collapsed(run.stdout.decode(errors='replace'))
            theirs = collapsed(open(os.path.join(folder, name)).read())
            if ours == theirs:
                passed += 1
                continue
            failed.append(name)
            at = next((i for i, (a, b) in enumerate(zip(ours, theirs)) if a != b), min(len(ours), len(theirs)))
            if len(failed) <= 40:
                print('%s: line %d: %s, not %s' % (name, at + 1, repr(ours[at]) if at < len(ours) else 'the end',
                                                   repr(theirs[at]) if at < len(theirs) else 'the end'))
                if os.environ.get('VERBOSE'):
                    print('  ' + ' '.join(command))
    print('%s: %d expectations hold, %d do not' % (tool, passed, len(failed)))
    return 1 if failed or not passed else 0


sys.exit(main())
