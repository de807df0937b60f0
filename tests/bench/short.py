#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Short and cold captures of Intel PT: the command beside a small program with libipt, process against process.

usage: short.py BUILD [ROUNDS]     the processor time of each, the median of all rounds (25), in turns; page faults;
                                   and how many times as fast as libipt it is

Captures: $TL_DATA/pt/stepped, or ../shared/data/pt/stepped, and a walk through code that is executed once or twice.
"""
import os, statistics, subprocess, sys, tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
DATA = os.path.join(os.environ.get('TL_DATA') or os.path.join(os.path.dirname(ROOT), 'shared', 'data'), 'pt', 'stepped')
CAPTURES = [('one-cpu', 'stroll'), ('no-time', 'stroll'), ('noretcomp', 'ramble'), ('cyc-long-tnt', 'walk')]


def measure(command):
    """Milliseconds of a process, and its page faults."""
    null = os.open(os.devnull, os.O_RDWR)
    actions = [(os.POSIX_SPAWN_DUP2, null, fd) for fd in (1, 2)]
    _, status, usage = os.wait4(os.posix_spawn(command[0], command, os.environ, file_actions=actions), 0)
    os.close(null)
    if status != 0:
        sys.exit('short: %s failed' % ' '.join(command))
    return (usage.ru_utime + usage.ru_stime) * 1e3, usage.ru_minflt


def compare(name, commands, rounds):
    """A line for each of (what, command), the first of which is the peer."""
    runs = [[] for _ in commands]
    for _ in range(rounds):
        for i, (_, command) in enumerate(commands):
            runs[i].append(measure(command))
    times = [statistics.median(t for t, _ in run) for run in runs]
    for (what, _), run, time in zip(commands, runs, times):
        print('%-14s %-18s %7.2f ms %6d page faults %6.2f ×' % (name, what, time, run[0][1], times[0] / time), flush=True)


def main():
    build, rounds = os.path.abspath(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 25
    peer, command = os.path.join(build, 'tests/bench/libipt_text'), os.path.join(build, 'tracelake')
    if not os.path.exists(peer):
        sys.exit('short: libipt is not installed')
    with tempfile.TemporaryDirectory() as folder:
        code, trace = os.path.join(folder, 'code'), os.path.join(folder, 'walk.pt')
        subprocess.run([os.path.join(build, 'tests/bench/write_walk'), code, trace], check=True)
        captures = [(name, os.path.join(DATA, name + '.pt'), os.path.join(DATA, elf + '.elf'), [])
                    for name, elf in CAPTURES if os.path.isdir(DATA)] + [('cold walk', trace, code, ['0x400000'])]
        for name, trace, image, at in captures:
            ours = [command, 'decode', '--threads', '1', '--format', 'pt', '--image', '@'.join([image] + at)]
            compare(name, [('libipt to text', [peer, trace, image] + at), ('to text', ours + ['--text', trace]),
                           ('to .zstf', ours + ['--out', folder, trace])], rounds)
        compare('nothing', [('true', ['/bin/true']), ('--version', [command, '--version'])], rounds)


main()
