#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The pages for those who begin (docs/start-*.md) do what they say: each block is run in order, in a folder with the files
that the page begins with, and says what stands below it. A line of an answer that is only … stands for any lines, … in
a line for any text. Programs that need hardware are stand-ins. usage: start.py BUILD [NAME…]"""

import os
import re
import shutil
import signal
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from e2e import simulated, wait_sealed  # noqa: E402
from lab import DATA, Skip, check, free_port, main  # noqa: E402

TESTS = {}
DOCS = os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..', 'docs')

# `view` runs until it is ended: here, once the page could be looked at.
TRACELAKE = '''#!/usr/bin/env python3
import os, signal, subprocess, sys
real = %r
signal.signal(signal.SIGPIPE, signal.SIG_DFL)
if sys.argv[1:2] == ['serve']:
    sys.argv[2:2] = ['--listen', os.environ['LISTEN'], '--listen-tls', '127.0.0.1:' + os.environ['TLS']]
    sys.argv = [word.replace(':9537', ':' + os.environ['OSD']) for word in sys.argv]
if sys.argv[1:2] != ['view']:
    os.execv(real, [real] + sys.argv[1:])
view = subprocess.Popen([real] + sys.argv[1:], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
address = view.stdout.readline()
sys.stdout.write(address)
sys.stdout.flush()
while address:
    line = view.stderr.readline()
    sys.stderr.write(line)
    if not line or 'Ctrl-C' in line:
        break
view.send_signal(signal.SIGINT)
sys.stderr.write(view.communicate()[1])
sys.exit(view.returncode)
'''


def test(function):
    TESTS[function.__name__] = function
    return function


def tool(lab, name, text):
    path = os.path.join(lab.path('tools'), name)
    with open(path, 'w') as f:
        f.write(text)
    os.chmod(path, 0o755)


def blocks(page):
    """(what it is, its text, the text block right below or None) of each block."""
    with open(os.path.join(DOCS, page)) as f:
        found = re.findall(r'(?ms)^```(\w+)\n(.*?)^```$', f.read())
    for i, (kind, text) in enumerate(found):
        if kind != 'text':
            below = found[i + 1][1] if found[i + 1:] and found[i + 1][0] == 'text' else None
            yield kind, text, below


def fits(wanted, got):
    pattern = ''.join('(?:.*\n)*?' if line.strip() == '…' else
                      '.*'.join(re.escape(part.rstrip(' ') if part != line else part) for part in line.split('…')) + ' *\n'
                      for line in wanted.splitlines())
    return re.fullmatch(pattern, got)


def run(lab, page, **env):
    """Run the blocks of a page."""
    home = lab.path('home')
    os.makedirs(home, exist_ok=True)
    env = dict(os.environ, PATH=lab.path('tools') + ':' + os.environ['PATH'], TRACELAKE_SERVER=lab.url,
               XDG_CACHE_HOME=lab.path('cache'), DISPLAY=':0', LC_ALL='C.UTF-8', **env)
    ran = 0
    for kind, text, below in blocks(page):
        if kind == 'ini':
            name = re.match(r'; (\S+)\n', text)
            check(name, page, 'says no file name for', text)
            with open(os.path.join(home, name[1]), 'w') as f:
                f.write(text)
            continue
        check(kind == 'sh', page, 'has a block of', kind)
        shell = subprocess.Popen(['bash', '-eu', '-c', text], cwd=home, env=env, text=True,
                                 stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True)
        lab.children.append(shell)
        try:
            got = shell.communicate(timeout=240)[0]
        finally:
            if shell.poll() is None:
                os.killpg(shell.pid, signal.SIGKILL)
        check(shell.returncode == 0, page, 'block', text, 'ends with', shell.returncode, got)
        check(below is None or fits(below, got), page, 'block', text, 'says', got)
        ran += 1
    check(ran > 0, page, ran)


def begin(lab):
    os.makedirs(lab.path('tools'))
    os.makedirs(lab.path('home'))
    tool(lab, 'tracelake', TRACELAKE % lab.tracelake)
    tool(lab, 'xdg-open', '#!/bin/sh\n')


def capture(*parts):
    path = os.path.join(DATA, *parts)
    if not os.path.exists(path):
        raise Skip('no ' + path)
    return path


@test
def start_perf(lab):
    """perf on Intel: perf itself is a stand-in that gives a stored recording."""
    path = capture('perf', 'pt', 'pt-five-tasks.data')
    begin(lab)
    lab.start()
    shutil.copytree(capture('perf', 'symfs'), lab.path('home/symfs'))
    tool(lab, 'perf', '#!/bin/bash\nout=perf.data\nwhile [ $# -gt 0 ]; do [ "$1" = -o ] && out=$2; shift; done\n'
                      'if [ $out = - ]; then cat %s; else cp %s $out; fi\n' % (path, path))
    tool(lab, 'sudo', '#!/bin/sh\nexec "$@"\n')
    run(lab, 'start-perf.md')


@test
def start_arm_linux(lab):
    """A board whose /sys was copied: the capture and its trace units are simulated."""
    begin(lab)
    simulated(lab, 60000)
    wait_sealed(lab, 'sim')
    lab.run('rm', 'sim')
    home = lab.path('home')
    from setup import registers
    for number, (_, of) in enumerate(s for s in registers(lab.path('sim.ini')) if s[0].startswith('source')):
        for name, value in (('cpu', str(number)), ('mgmt/trcconfig', of['TRCCONFIGR']), ('mgmt/trctraceid', of['id']),
                            ('trcidr/trcidr0', of['TRCIDR0']), ('trcidr/trcidr1', of['TRCIDR1']),
                            ('trcidr/trcidr2', of['TRCIDR2']), ('trcidr/trcidr8', of.get('TRCIDR8', '0x0'))):
            path = os.path.join(home, 'devices', 'etm%d' % number, name)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, 'w') as f:
                f.write(value + '\n')
    shutil.copy(lab.path('raw'), os.path.join(home, 'trace.bin'))
    shutil.copy(lab.path('demo.elf'), os.path.join(home, 'vmlinux'))
    tool(lab, 'ssh', '#!/bin/sh\n')
    tool(lab, 'scp', '#!/bin/sh\n')
    run(lab, 'start-arm-linux.md')


@test
def start_riscv(lab):
    """N-Trace and E-Trace of stored captures."""
    begin(lab)
    lab.start()
    for name, to in (('nt-loops-rpt.nex', 'trace.nex'), ('loops.elf', 'app.elf'), ('et-jumps.etr', 'trace.etr'),
                     ('jumps.elf', 'jumps.elf')):
        shutil.copy(capture('riscv', name), lab.path('home/' + to))
    run(lab, 'start-riscv.md')


@test
def start_simulator(lab):
    """A simulator's STF."""
    begin(lab)
    lab.start()
    shutil.copy(capture('stf', 'dhry_riscv.zstf'), lab.path('home/run.zstf'))
    run(lab, 'start-simulator.md')


@test
def start_osd(lab):
    """A simulated device takes the place of the gateway and the FPGA."""
    begin(lab)
    tool(lab, 'tracelake-osd-device', '#!/bin/bash\nexec %s "${@/:9537/:$OSD}"\n' % os.path.join(lab.build, 'tracelake-osd-device'))
    run(lab, 'start-osd.md', LISTEN='127.0.0.1:%d' % lab.port, TLS=str(lab.tls_port), OSD=str(free_port()))


@test
def start_readme(lab):
    """README's blocks: building and installing are stand-ins, the rigs are those of `./dev run`."""
    begin(lab)
    lab.start()
    home = lab.path('home')
    for name in ('apt', 'xxd'):
        if name == 'apt' or not shutil.which(name):
            tool(lab, name, '#!/bin/sh\ncat >/dev/null </dev/null\n')
    tool(lab, 'probe', '#!/bin/sh\nexec cat %s\n' % lab.path('raw'))
    shutil.copy(os.path.join(lab.path('tools'), 'apt'), os.path.join(home, 'dev'))
    rig = subprocess.run([lab.rig, '--kind', 'etm', '--server', lab.url, '--bytes', '60000', '--rate', '100000000',
                          '--save', lab.path('raw'), '--config', os.path.join(home, 'board.ini'), '--image',
                          os.path.join(home, 'app.elf')], stdout=subprocess.DEVNULL, timeout=240)
    check(rig.returncode == 0)
    run(lab, os.path.join('..', 'README.md'))


if __name__ == '__main__':
    main(TESTS)
