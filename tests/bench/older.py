#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""ETMv3 and PTM beside OpenCSD: processes, and decoding alone.

usage: older.py BUILD [ROUNDS]     processor time, the least of all rounds (5), in turns, and how many times as fast as
                                   OpenCSD it is

Processes: `decode --out` to .zstf beside trc_pkt_lister, which lists the elements and writes them to /dev/null, of each
capture as it is and 40 times in a row. That is what a user waits for; the listing is most of the one, the start of the
process most of the other.
In one process: each capture as it is, again and again, by libopencsd to elements that are counted, and here to STF
records in memory: older_records.c, which is built where libopencsd-dev is installed. No text, no files, no start.

Captures: $TL_DATA/coresight/older, or ../shared/data/coresight/older.
"""
import os, shutil, subprocess, sys, tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
DATA = os.path.join(os.environ.get('TL_DATA') or os.path.join(os.path.dirname(ROOT), 'shared', 'data'), 'coresight', 'older')
TIMES = 40
FRAME = 16


def measure(command):
    """Milliseconds of a process."""
    null = os.open(os.devnull, os.O_RDWR)
    actions = [(os.POSIX_SPAWN_DUP2, null, fd) for fd in (1, 2)]
    _, status, usage = os.wait4(os.posix_spawnp(command[0], command, os.environ, file_actions=actions), 0)
    os.close(null)
    # OpenCSD ends early with some; status 1 tells of packets that are cut where copies meet.
    if command[0] != 'trc_pkt_lister' and os.waitstatus_to_exitcode(status) not in (0, 1):
        sys.exit('older: %s failed' % ' '.join(command))
    return (usage.ru_utime + usage.ru_stime) * 1e3


def without_padding(content):
    """What is in front of the frame that padding completes: behind one, another capture would begin."""
    frames = len(content) // FRAME
    while frames > 0 and not any(content[FRAME * (frames - 1):FRAME * frames]):
        frames -= 1
    return content if FRAME * frames == len(content) else content[:FRAME * (frames - 1)]


def repeated(capture, folder, times):
    """A copy of a snapshot whose trace is so many times as long, as if its buffer were."""
    shutil.copytree(os.path.join(DATA, capture), folder, copy_function=shutil.copyfile)
    os.chmod(folder, 0o755)
    (trace,) = [name for name in ('trace.bin', 'cstrace.bin') if os.path.exists(os.path.join(folder, name))]
    with open(os.path.join(folder, trace), 'rb') as f:
        content = f.read()
    if times > 1:
        content = without_padding(content) * times
    with open(os.path.join(folder, trace), 'wb') as f:
        f.write(content)
    return len(content)


def compare_alone(program, capture, rounds):
    """A line for each way to decode a capture, in one process."""
    out = subprocess.run([program, os.path.join(DATA, capture), str(rounds)], stdout=subprocess.PIPE, text=True, check=True).stdout
    ways = [line.split('\t') for line in out.splitlines()]
    peer = float(ways[0][1])
    for name, micros, insns in ways:
        print('%-26s %-20s %8.1f us %8s instructions %6.1f ×' % (capture, name, float(micros), insns, peer / float(micros)), flush=True)


def main():
    command, rounds = os.path.join(os.path.abspath(sys.argv[1]), 'tracelake'), int(sys.argv[2]) if len(sys.argv) > 2 else 5
    if not os.path.isdir(DATA) or not shutil.which('trc_pkt_lister'):
        sys.exit('older: the captures, or trc_pkt_lister of libopencsd-bin, are not here')
    captures = [name for name in sorted(os.listdir(DATA)) if os.path.isdir(os.path.join(DATA, name))]
    alone = os.path.join(os.path.abspath(sys.argv[1]), 'tests/bench/older_records')
    if os.path.exists(alone):
        for capture in captures:
            compare_alone(alone, capture, rounds)
    else:
        print('in one process: skipped, libopencsd-dev is not installed')
    with tempfile.TemporaryDirectory() as top:
        for capture in captures:
            for times in 1, TIMES:
                folder = os.path.join(top, '%s-%d' % (capture, times))
                size = repeated(capture, folder, times)
                peer = ['trc_pkt_lister', '-ss_dir', folder, '-decode_only', '-logfilename', os.devnull]
                ours = [command, 'decode', '--threads', '1', '--snapshot', folder, '--out', os.path.join(top, 'out')]
                runs = [(measure(peer), measure(ours)) for _ in range(rounds)]
                theirs, mine = (min(run[i] for run in runs) for i in range(2))
                print('%-26s %8d bytes  OpenCSD %8.1f ms  to .zstf %7.1f ms %6.1f ×' % (capture, size, theirs, mine, theirs / mine),
                      flush=True)


main()
