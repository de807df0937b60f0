#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What the command says to natural mistakes: commands with their messages and statuses in mistakes.txt, which is read by
people. usage: mistakes.py BUILD [mistakes | --write]"""

import gzip
import lzma
import os
import re
import shlex
import subprocess
import sys
import tarfile
import zipfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from e2e import simulated, wait_sealed  # noqa: E402
from lab import SOURCE, TIMEOUT, Lab, check, main  # noqa: E402

TESTS = {}
GOLDEN = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'mistakes.txt')
OUT_LINES = 2  # of the standard output that is kept


def test(function):
    TESTS[function.__name__] = function
    return function


def write(lab, name, content):
    with open(lab.path(name), 'wb') as f:
        f.write(content if isinstance(content, bytes) else content.encode())


def read(path):
    with open(path, 'rb') as f:
        return f.read()


def make_files(lab):
    """What the commands of the list name, apart from the simulated capture: raw, sim.ini, demo.elf."""
    raw, elf, ini = (read(lab.path(name)) for name in ('raw', 'demo.elf', 'sim.ini'))
    lab.run('get', 'sim/cs.10', '--insn', '0:1000', '-o', lab.path('part.zstf'))
    for name, content in (('raw', raw), ('demo.elf', elf)):
        write(lab, name + '.gz', gzip.compress(content))
        write(lab, name + '.xz', lzma.compress(content))
        with zipfile.ZipFile(lab.path(name + '.zip'), 'w') as f:
            f.writestr(name, content)
        with tarfile.open(lab.path(name + '.tar'), 'w') as f:
            f.add(lab.path(name), name)
    subprocess.run(['ar', 'rc', lab.path('lib.a'), lab.path('demo.elf')], check=True, stderr=subprocess.DEVNULL)
    write(lab, 'main.c', '#include <stdio.h>\nint main(void)\n{\n    return puts("hello");\n}\n')
    write(lab, 'empty', '')
    write(lab, 'notes.txt', 'These are notes.\n')
    write(lab, 'picture.png', b'\x89PNG\r\n\x1a\n' + bytes(40))
    os.mkdir(lab.path('folder'))
    write(lab, 'no-protocol.ini', '[trace]\nformat=tpiu,sync=fsync\n\n[source cs.10]\nTRCCONFIGR=0x1\n')
    write(lab, 'no-format.ini', ini)
    write(lab, 'open.ini', '[source cs.10\nprotocol=etm4\n')
    write(lab, 'trailing.ini', '[source cs.10] x\nprotocol=etm4\n')
    for name, text in (('colour.conf', 'colour = red\n'), ('section.conf', '[server]\n'),
                       ('trailing.conf', 'threads = 1\n[server]\n'), ('threads.conf', '\nthreads = many\n'),
                       ('listen.conf', 'listen = nonsense\n'),
                       ('twice.conf', 'listen = 127.0.0.1:7070\nlisten-tls = 127.0.0.1:7070\n'),
                       ('wildcard.conf', 'listen-tls = 127.0.0.1:7443\ninsecure = yes\nlisten-tls = [::]:7443\n'),
                       ('log.conf', '# what is logged\nlog-level = loud\n'), ('max.conf', 'max-message = 1\n'),
                       ('retain.conf', 'retain-raw = soon\n'), ('tokens.conf', 'tokens = /nowhere\n'),
                       ('quota.conf', 'quota = rig=a,size=1\n'), ('raw.conf', 'raw = 127.0.0.1:0,rig=a\n'),
                       ('open.conf', 'threads = 1\nlisten = 0.0.0.0:7070\n'), ('cert.conf', 'tls-cert = cert.pem\n')):
        write(lab, name, 'data = data\n' + text)
    write(lab, 'token', '0123456789abcdef\n')
    make_tools_files(lab, elf)


def make_tools_files(lab, elf):
    """What other tools write, taken for a capture, a program or a configuration."""
    for name, content in (('perf.txt', 'walk  1234 [000]  12.345678: branches:  401000 main (/opt/walk)\n' * 20),
                          ('short.data', b'PERFILE2' + bytes(20)), ('cut.elf', elf[:60]), ('core.elf', elf[:16] + b'\4\0' + elf[18:]),
                          ('trace.dat', b'\x17\x08\x44tracing6\0' + bytes(64)), ('wave.vcd', '$date today $end\n$timescale 1ns $end\n'),
                          ('trace.csv', 'Time [s],Packet\n0.000001,0x80\n' * 9), ('trace.json', '{"traceEvents":[{"name":"main","ph":"B"}]}\n'),
                          ('prog.hex', ':10010000214601360121470136007EFE09D2190140\n:00000001FF\n'),
                          ('prog.s19', 'S00F000068656C6C6F202020202000003C\nS9030000FC\n'),
                          ('dump.hex', '00000000: 8000 0000 0000 4142  ......AB\n' * 9), ('openocd.cfg', 'tpiu config internal swo.bin uart off 168000000\n'),
                          ('board.svd', '<?xml version="1.0"?>\n<device><name>STM32F4</name></device>\n'),
                          ('chip.cmm', 'SYStem.CPU CORTEXM4\nSYStem.Up\n'), ('app.map', 'Memory Configuration\n\nName Origin Length\n'),
                          ('run.sh', '#!/bin/sh\nexec true\n'), ('trace.bz2', b'BZh91AY&SY' + bytes(32)), ('trace.zst', b'\x28\xb5\x2f\xfd' + bytes(32))):
        write(lab, name, content)


def masked(lab, text):
    """Without what differs from run to run."""
    text = re.sub(r'^\d{4}-\d\d-\d\dT[0-9:.]+Z', 'TIME', text)
    for port, usual in ((lab.port, '7070'), (lab.tls_port, '7443')):
        text = re.sub(r'(?<!\d)%d(?!\d)' % port, usual, text)  # but not within a larger number
    return text.replace(lab.dir + '/', '').replace(lab.dir, '.')


def tried(lab, line):
    """A line of the list, run; as the lines that the list should have after it."""
    line = line.replace('7070', str(lab.port)).replace('7443', str(lab.tls_port))
    words = shlex.split(line)
    environment = dict(lab.environment(), TRACELAKE_DATA='', COLUMNS='100')
    while re.match(r'[A-Z_]+=', words[0]):
        name, value = words.pop(0).split('=', 1)
        environment[name] = value
    check(words[0] == 'tracelake', line)
    done = subprocess.run([lab.tracelake] + words[1:], env=environment, cwd=lab.dir, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=TIMEOUT)
    out = done.stdout.decode(errors='replace').splitlines()
    shown = ['> ' + row for row in out[:OUT_LINES]] + ['> …'] * (len(out) > OUT_LINES)
    shown += done.stderr.decode(errors='replace').splitlines()
    return [masked(lab, row) for row in shown + ['[%d]' % done.returncode]]


def made(lab, text):
    """The list with the answers that the command gives: comments and headings stay."""
    out = []
    for line in text.splitlines():
        if line.startswith('$ '):
            out += [line, *tried(lab, line[2:]), '']
        elif line.startswith('#') or (not line and out and out[-1]):
            out.append(line)
    return '\n'.join(out).rstrip('\n') + '\n'


def answers(lab):
    simulated(lab, 20000)
    wait_sealed(lab, 'sim')
    make_files(lab)
    text = read(GOLDEN).decode()
    return text, made(lab, text)


@test
def mistakes(lab):
    """Each mistake of the list has its message and its status."""
    listed, answered = answers(lab)
    command = ''
    for a, b in zip(listed.splitlines(), answered.splitlines()):
        if a.startswith('$ '):
            command = a
        check(a == b, '\n%s\nlisted:   %s\nanswered: %s\nIf that is right: python3 tests/e2e/mistakes.py build --write' % (
            command, a, b))
    check(listed == answered, 'the list is longer or shorter than the answers')
    check(listed.count('\n$ ') >= 100, 'too few mistakes')


if __name__ == '__main__':
    if sys.argv[2:] == ['--write']:
        lab = Lab(os.path.abspath(sys.argv[1]))
        try:
            with_answers = answers(lab)[1]
            with open(GOLDEN, 'w') as f:
                f.write(with_answers)
        finally:
            lab.close()
    else:
        main(TESTS)
