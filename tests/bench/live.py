#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Cores that are traced live into virtual shards, as fast as the server keeps up, with a client that follows: the
sustained rate, and the server's memory during that. ./dev bench live calls this.

usage: live.py --build DIR [--seconds N] [--cores N] [--shard-insns N] [--index WHEN] [--input NAME] [--rate M]
               [--data DIR] [--json FILE]

Each core's trace is a recording from tests/bench/inputs.h (atoms, return stack; or NAME), pushed again and again as one
capture, never more than AHEAD bytes ahead of decoding; with --rate at M million instructions a second of each core. The following client does what the page does: it reads events
of all traces and, four times a second, each trace's row, its newest tile, and one of the whole trace. A core at 1 GHz
executes some 10^9 instructions per second: on a machine that keeps up, --seconds 600 takes as much as ten minutes of
that; otherwise the report says which part of it was achieved. --shard-insns 65536 creates sixteen times as many
shards of the same trace, which shows sooner what the server keeps for each. With --index behind, instructions are
those that can be read, and the report has which part of them is indexed. The lag of the live edge is how long ago the
bytes were pushed that can be read last. Behind the recording it waits for the index, ten times as long at most.
"""
import argparse, json, os, shutil, statistics, subprocess, sys, tempfile, threading, time, urllib.error, urllib.request

import end

AHEAD = 32 << 20
PIECE = 1 << 20
MIB = 8  # of the recording
EVERY = 0.25  # seconds between two rounds of requests of the following client
GHZ = 1e9
BUCKETS = 512  # in a tile
MIB_BYTES = 1 << 20
TICKS = os.sysconf('SC_CLK_TCK')


class Live:
    def __init__(self, build, cores, data, shard_insns, index, name, rate):
        self.build, self.cores, self.name, self.rate = os.path.abspath(build), cores, name, rate * 1e6
        self.sent = [[] for _ in range(cores)]  # (when, bytes pushed up to then) of what cannot be read yet
        self.lags = []  # (when, seconds)
        self.options = ['--index', index] + (['--shard-insns', str(shard_insns)] if shard_insns else [])
        self.dir = tempfile.mkdtemp(prefix='tracelake-live-', dir=data)
        self.server, self.pushes, self.fed, self.rows = None, [], [0] * cores, [None] * cores
        self.looks, self.events, self.over = 0, 0, threading.Event()

    def close(self):
        self.over.set()
        for child in self.pushes + [self.server]:
            if child and child.poll() is None:
                child.kill()
            if child:
                child.wait()
        shutil.rmtree(self.dir, ignore_errors=True)

    def path(self, name):
        return os.path.join(self.dir, name)

    def get(self, path):
        with urllib.request.urlopen(self.url + path, timeout=60) as reply:
            return reply.read()

    def start(self):
        port, tls = end.free_ports(2)
        self.url = 'http://127.0.0.1:%d' % port
        self.server = subprocess.Popen(
            [os.path.join(self.build, 'tracelake'), 'serve', '--shards', 'virtual', '--data', self.path('data'),
             '--listen', '127.0.0.1:%d' % port, '--listen-tls', '127.0.0.1:%d' % tls] + self.options,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        end.await_ready(self)

    # ---- the rigs ----

    @staticmethod
    def decoded(row):
        """Raw bytes, to where instructions can be read: all parts of the recording have about as many."""
        indexed, insns = (int(row['decoded_bytes']), Live.indexed(row)) if row else (0, 0)
        return indexed * Live.readable(row) // insns if insns else indexed

    @staticmethod
    def indexed(row):
        return sum(int(s['insns']) for s in row['streams'])

    @staticmethod
    def readable(row):
        return sum(max(int(s['insns']), int(s.get('outlined_insns', 0))) for s in row['streams'])

    def feed(self, core, trace):
        """Push the recording again and again until the end, not too far ahead."""
        pipe, begin = self.pushes[core].stdin, time.monotonic()
        try:
            while not self.over.is_set():
                row = self.rows[core]
                done, insns = self.decoded(row), self.readable(row) if row else 0
                most = done + AHEAD
                if self.rate and insns:
                    most = min(most, self.rate * (time.monotonic() - begin) * done / insns)
                elif self.rate:
                    most = min(most, PIECE)
                if self.fed[core] > most:
                    self.over.wait(0.01)
                    continue
                at = self.fed[core] % len(trace)
                self.fed[core] += pipe.write(trace[at:at + (PIECE // 16 if self.rate else PIECE)])
                self.sent[core].append((time.monotonic(), self.fed[core]))
            pipe.close()
        except OSError:
            pass  # the push has ended, and its status is checked

    def push(self):
        subprocess.run([os.path.join(self.build, 'tests/bench/write_inputs'), self.dir, str(MIB), self.name],
                       check=True, stdout=subprocess.DEVNULL)
        with open(self.path('0.trace'), 'rb') as f:
            trace = f.read()
        for core in range(self.cores):
            self.pushes.append(subprocess.Popen(
                [os.path.join(self.build, 'tracelake'), 'push', '--server', self.url, '--trace', 'core%d' % core,
                 '--format', 'etm4,id=0x10', '--config', self.path('0.ini'), '-'],
                stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE))
        return [threading.Thread(target=self.feed, args=(core, trace), daemon=True) for core in range(self.cores)]

    # ---- the following client ----

    def follow_events(self):
        try:
            with urllib.request.urlopen(self.url + '/api/v1/events', timeout=60) as events:
                for line in events:
                    self.events += line.startswith(b'data:')
        except OSError:
            pass  # the server was stopped in between

    def look(self):
        """Request each trace's row, its newest tile of about a million instructions, and one of the whole trace."""
        for core in range(self.cores):
            try:
                self.rows[core] = row = json.loads(self.get('/api/v1/traces/core%d' % core))
            except urllib.error.HTTPError:
                continue  # it has not begun
            self.note_lag(core, row)
            if row['streams'] and row['streams'][0]['insns']:
                base, insns = int(row.get('tile_base', {}).get('insn', 0)), int(row['streams'][0]['insns'])
                whole = next(level for level in range(32) if BUCKETS << base + 2 * level > insns)
                for level in {4, whole}:
                    width = BUCKETS << base + 2 * level
                    self.get('/api/v1/traces/core%d/tiles/insn/%d/%d?lanes=0' % (core, level, insns // width))
                self.looks += 1

    def note_lag(self, core, row):
        sent, done, now = self.sent[core], self.decoded(row), time.monotonic()
        while sent and sent[0][1] <= done:
            sent.pop(0)
        self.lags.append((now, now - sent[0][0] if sent else 0.0))

    def wait_indexed(self, limit):
        """Seconds until all that was pushed is indexed; None: not in time."""
        begin = time.monotonic()
        self.over.set()
        while time.monotonic() - begin < limit:
            rows = [json.loads(self.get('/api/v1/traces/core%d' % core)) for core in range(self.cores)]
            if all(row['state'] == 'sealed' for row in rows):
                return time.monotonic() - begin
            time.sleep(EVERY)
        return None

    # ---- resources used ----

    def memory(self):
        """MiB of the heap in use, of anonymous memory, and of resident memory."""
        with open('/proc/%d/status' % self.server.pid) as f:
            status = dict(line.split(':', 1) for line in f)
        heap = next(float(line.split()[1]) for line in self.get('/metrics').decode().splitlines()
                    if line.startswith('tracelake_memory_in_use_bytes '))
        return heap / MIB_BYTES, int(status['RssAnon'].split()[0]) / 1024, int(status['VmRSS'].split()[0]) / 1024

    def used(self):
        """Seconds of the server's processor time."""
        with open('/proc/%d/stat' % self.server.pid) as f:
            fields = f.read().rsplit(')', 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / TICKS

    def stored(self):
        n = 0
        for top, _, names in os.walk(self.path('data')):
            for name in names:
                try:
                    n += os.stat(os.path.join(top, name)).st_size
                except FileNotFoundError:
                    pass  # removed in the meantime
        return n

    def insns(self, count=None):
        return sum((count or self.readable)(row) for row in self.rows if row)

    def measure(self, seconds):
        """Points of the curve, a tenth of the time apart: seconds, memory(), instructions,
        processor seconds, bytes."""
        self.start()
        feeders = self.push()
        threading.Thread(target=self.follow_events, daemon=True).start()
        points, begin = [], time.monotonic()
        for thread in feeders:
            thread.start()
        while len(points) < 10:
            self.look()
            ended = [p for p in self.pushes if p.poll() is not None]
            if ended:
                raise SystemExit('live.py: a push ended: ' + ended[0].stderr.read().decode())
            now = time.monotonic() - begin
            if now >= seconds * (len(points) + 1) / 10:
                points.append((now, self.memory(), self.insns(), self.used(), self.stored()))
            self.over.wait(EVERY)
        return points


def report(points, live, indexed):
    print('%8s  %11s  %10s  %10s  %15s  %10s  %9s' %
          ('after', 'heap in use', 'anonymous', 'resident', 'M instructions', 'processor', 'on disk'))
    for after, (heap, anonymous, resident), insns, used, stored in points:
        print('%6.0f s  %7.1f MiB  %6.1f MiB  %6.1f MiB  %15.0f  %8.1f s  %6.0f MB' %
              (after, heap, anonymous, resident, insns / 1e6, used, stored / 1e6))
    # of the second half, when everything has reached its speed
    first, last = points[len(points) // 2 - 1], points[-1]
    insns = last[2] - first[2]
    half = (live.lags[0][0] + live.lags[-1][0]) / 2
    lags = [lag for when, lag in live.lags if when >= half]
    figures = {
        'M instructions a second': insns / (last[0] - first[0]) / 1e6,
        'M instructions a second of processor time': insns / max(last[3] - first[3], 1e-9) / 1e6,
        'part of %d cores of 1 GHz' % live.cores: insns / (last[0] - first[0]) / GHZ / live.cores,
        'KiB more heap in use for each 1000 M instructions': (last[1][0] - first[1][0]) * 1024 / max(insns / 1e9, 1e-9),
        'part of them that is indexed': live.insns(live.indexed) / max(live.insns(), 1),
        'lag of the live edge in the second half, median and most, s': '%.2f, %.2f' % (
            statistics.median(lags), max(lags)),
        'indexed after, times the recording': '%.2f' % (1 + indexed / last[0]) if indexed is not None else 'not in time',
        'bits on disk an instruction': (last[4] - first[4]) * 8 / max(insns, 1),
        'looks of who followed, events that he got': '%d, %d' % (live.looks, live.events),
    }
    for name, value in figures.items():
        print('%s: %s' % (name, value if isinstance(value, str) else '%.3g' % value))
    return figures


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument('--build', required=True)
    ap.add_argument('--seconds', type=float, default=30)
    ap.add_argument('--cores', type=int, default=2)
    ap.add_argument('--shard-insns', type=int, help='instructions of a shard')
    ap.add_argument('--index', default='now', help='now, behind or auto')
    ap.add_argument('--input', default='return stack', help='a part of the name of one of tests/bench/inputs.h')
    ap.add_argument('--rate', type=float, default=0, help='million instructions a second of each core')
    ap.add_argument('--data', help='a folder for the server\'s own, instead of /tmp')
    ap.add_argument('--json')
    args = ap.parse_args()
    live = Live(args.build, args.cores, args.data, args.shard_insns, args.index, args.input, args.rate)
    try:
        points = live.measure(args.seconds)
        figures = report(points, live, live.wait_indexed(10 * args.seconds))
        if args.json:
            with open(args.json, 'w') as f:
                json.dump(dict(points=points, figures=figures), f, indent=1)
    finally:
        live.close()


if __name__ == '__main__':
    sys.exit(main())
