#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Golden files: bytes of a trace, and what they mean, each in one readable file.

    golden.py BUILD_FOLDER [WORD…]      run all, or those whose name contains one of the words; =NAME: that one
    golden.py BUILD_FOLDER --show WORD  print what is decoded now, in the form of the file

A file NAME.golden has its reason first: a sentence, then why this is right and by which source. Then there are
sections, each begun by a line without indentation that ends in a colon; what belongs to it is indented:

    setup:              the configuration, as for --config
    image ADDR[,…]:     memory contents; the rest of the line as for --image FILE@ADDR[,…]
    trace:              the bytes; "x100" behind a byte repeats it
    decode OPTIONS:     the output of `tracelake decode` with these options, exactly
    says:               what it says on standard error, and "status N"; without this section nothing, and 0
    then COMMAND:       the output of another command; OUT is the folder that `decode --out OUT` wrote

Bytes are in hexadecimal, "12 ab", up to two blanks or the end of the line; the rest of the line explains them.
Each file is decoded at once, byte by byte with one thread and portable code only, and in pieces with two threads:
always the same.
"""
import os
import re
import shlex
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
#: Ways to decode that must make no difference: options and environment.
WAYS = [([], {}), (['--chunk', '1', '--threads', '1'], {'TRACELAKE_CPU': 'scalar'}), (['--chunk', '7', '--threads', '2'], {})]


class Section:
    def __init__(self, title):
        self.title, self.lines = title, []

    def text(self):
        return ''.join(line + '\n' for line in self.lines)

    def bytes(self):
        out = bytearray()
        for line in self.lines:
            for word in re.split(r'  +', line.strip())[0].split():
                out += out[-1:] * (int(word[1:]) - 1) if word[0] == 'x' else bytes.fromhex(word)
        return bytes(out)


def read(path):
    """The reason, and the sections of a file."""
    reason, sections = [], []
    with open(path, encoding='utf-8') as f:
        for line in f.read().splitlines():
            if re.match(r'(setup|image [^ ]+|trace|decode .*|says|then .*):$', line):
                sections.append(Section(line[:-1]))
            elif not sections:
                reason.append(line)
            elif line and not line.startswith('  '):
                raise ValueError('%s: neither a section nor indented: %s' % (path, line))
            elif line:
                sections[-1].lines.append(line[2:])
    return '\n'.join(reason).strip(), sections


class Case:
    """The files of one golden file, in a folder."""

    def __init__(self, path, folder, tool):
        self.folder, self.tool = folder, tool
        self.reason, self.sections = read(path)
        self.inputs = []
        images = 0
        for s in self.sections:
            if s.title == 'setup':
                self.inputs += ['--config', self.write('setup.ini', s.text().encode())]
            elif s.title.startswith('image '):
                images += 1
                file = self.write('image%d' % images, s.bytes())
                self.inputs += ['--image', '%s@%s' % (file, s.title[len('image '):])]
            elif s.title == 'trace':
                self.trace = self.write('trace', s.bytes())

    def write(self, name, data):
        path = os.path.join(self.folder, name)
        with open(path, 'wb') as f:
            f.write(data)
        return path

    def run(self, args, env):
        args = [a.replace('OUT', os.path.join(self.folder, 'out')) for a in args]
        done = subprocess.run([self.tool] + args, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              env=dict(os.environ, **env), timeout=600, cwd=self.folder)
        said = done.stderr.decode().replace(self.folder + '/', '').replace('tracelake: ', '')
        return done.returncode, done.stdout.decode(), said

    def outputs(self):
        """Each section with output, and what it is in each way: status, output, errors."""
        for s in self.sections:
            word, _, rest = s.title.partition(' ')
            if word == 'decode':
                ours, *tools = rest.split(' -- ')
                args, tail = ['decode'] + self.inputs + shlex.split(ours), [self.trace]
                tail += ['--'] + shlex.split(tools[0]) if tools else []
                yield s, [self.run(args + more + tail, env) for more, env in WAYS]
            elif word == 'then':
                yield s, [self.run(shlex.split(rest), {})]


def told(status, errors):
    """As in a section `says`."""
    return ('status %d\n' % status if status else '') + errors


def faults(case):
    found = []
    for section, results in case.outputs():
        following = case.sections[case.sections.index(section) + 1:]
        says = following[0].text() if following and following[0].title == 'says' else ''
        for way, (status, text, errors) in enumerate(results):
            if text != section.text():
                found.append('%s, way %d:\n%s' % (section.title, way, text))
            if told(status, errors) != says:
                found.append('%s, way %d says:\n%s' % (section.title, way, told(status, errors)))
    return found


def show(case):
    for section, results in case.outputs():
        status, text, errors = results[0]
        print(section.title + ':\n' + re.sub(r'(?m)^(?=.)', '  ', text))
        if status or errors:
            print('says:\n' + re.sub(r'(?m)^(?=.)', '  ', told(status, errors)))


def main():
    build, words = os.path.abspath(sys.argv[1]), sys.argv[2:]
    showing = words[:1] == ['--show']
    words = words[1:] if showing else words
    names = sorted(n[:-len('.golden')] for n in os.listdir(HERE) if n.endswith('.golden'))
    names = [n for n in names if not words or any(w in n or w == '=' + n for w in words)]
    bad = 0
    for name in names:
        with tempfile.TemporaryDirectory(prefix='golden-') as folder:
            case = Case(os.path.join(HERE, name + '.golden'), folder, os.path.join(build, 'tracelake'))
            found = show(case) if showing else faults(case)
        if not showing:
            print('%s  %s' % ('FAIL' if found else 'ok  ', name))
        if found:
            bad += 1
            print(case.reason + '\n' + '\n'.join(found))
    if not showing:
        print('golden: %d passed, %d failed' % (len(names) - bad, bad))
    sys.exit(1 if bad or not names else 0)


if __name__ == '__main__':
    main()
