# SPDX-License-Identifier: MIT
"""What the server finds around it: clock and disk (world.c), a limit of memory, and a share of the processors."""

import contextlib
import mmap
import os
import struct
import threading

DISK_BYTES = 1 << 40
TICKS = os.sysconf('SC_CLK_TCK')


class World:
    """The file that world.c reads: the server's clock and disk."""

    def __init__(self, path):
        with open(path, 'wb') as f:
            f.write(struct.pack('<qq', 0, DISK_BYTES))
        self.path = path
        with open(path, 'r+b') as f:
            self.shared = mmap.mmap(f.fileno(), 16)

    def shift_clock(self, seconds):
        self.shared[0:8] = struct.pack('<q', seconds)

    def free_disk(self, n):
        self.shared[8:16] = struct.pack('<q', n)


class Group:
    """A control group with a limit of memory, where this machine lets one be made; else nothing."""

    def __init__(self, limit):
        self.path = '/sys/fs/cgroup/memory/tracelake-chaos-%d' % os.getpid()
        try:
            os.mkdir(self.path)
            with open(os.path.join(self.path, 'memory.limit_in_bytes'), 'w') as f:
                f.write(str(limit))
        except OSError:
            self.path = None

    def enter(self):
        """A command that runs another one inside."""
        if not self.path:
            return []
        return ['/bin/sh', '-c', 'echo $$ >"$0"/cgroup.procs && exec "$@"', self.path]

    def close(self):
        if self.path:
            os.rmdir(self.path)


class Trouble:
    """Times in which something may be refused: begun and ended by the director, asked by all."""

    def __init__(self):
        self.n = 0  # odd: it lasts

    def begin(self):
        self.n += 1

    def end(self):
        self.n += 1

    def since(self, n):
        """Was there any since the count was `n`?"""
        return n % 2 == 1 or n != self.n


def server_ticks(pid):
    with open('/proc/%d/stat' % pid) as f:
        fields = f.read().rpartition(')')[2].split()
    return int(fields[11]) + int(fields[12])


def idle_ticks():
    with open('/proc/stat') as f:
        fields = f.readline().split()
    return int(fields[4]) + int(fields[5])


class ServerTime:
    """Counts the seconds in which the server could work: of an interval as much as it used processors or they were
    idle, summed, at most the interval. A server that has one processor, or two halves, has all of the time, whether it
    uses them or waits for a disk or a lock of its own; one that other programs keep from the processors has less."""

    def __init__(self, pid, now):
        self.pid, self.now, self.seconds = pid, now, 0.0
        self.used = server_ticks(pid) + idle_ticks()

    def read(self, now):
        used = server_ticks(self.pid) + idle_ticks()
        if now - self.now > 4 / TICKS:  # several ticks, or rounding decides
            self.seconds += min(now - self.now, max(used - self.used, 0) / TICKS)
            self.now, self.used = now, used
        return self.seconds


class Lag:
    """For how long durable bytes of live traces have not been decoded yet, in server time."""

    def __init__(self):
        self.lock = threading.Lock()
        self.pending, self.longest, self.whose = {}, 0.0, None
        self.wall = 0.0  # the same in anybody's time, to compare
        self.looks = 0

    def forget(self):
        with self.lock:
            self.pending.clear()

    def note(self, trace, raw, decoded, now, wall):
        """The trace had these numbers of bytes at this server time."""
        with self.lock:
            marks = [m for m in self.pending.get(trace, []) if m[0] > decoded]
            if raw > decoded and (not marks or marks[-1][0] < raw):
                marks.append((raw, now, wall))
            self.pending[trace] = marks
            self.looks += 1
            if marks:
                self.wall = max(self.wall, wall - marks[0][2])
            if marks and now - marks[0][1] > self.longest:
                self.longest, self.whose = now - marks[0][1], trace


def peak_memory(pid):
    """The most resident bytes of a process so far; 0: it has gone."""
    with contextlib.suppress(OSError), open('/proc/%d/status' % pid) as f:
        return next((int(line.split()[1]) << 10 for line in f if line.startswith('VmHWM')), 0)
    return 0
