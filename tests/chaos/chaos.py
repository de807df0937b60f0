#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Everything that can go wrong at once, with a model of what must be there. usage: chaos.py BUILD [SECONDS [SEED]]

Rigs push captures (some are killed, and begin again) or trace live; readers compare; traces are removed by commands and
by retention; images come, and are damaged and mended; hostile captures are pushed and removed in the middle;
connections bring noise; meanwhile a director fills the disk, sets the wall clock to other years, and kills the server.

The model (model.py): a capture whose push was reported complete is there, byte for byte, and once it is sealed each
stream has the text that it has without a server; what is being pushed has a prefix of the capture; a trace whose removal
was reported is gone; there is nothing that nobody pushed. It is compared all the time, and at the end for every trace;
then `verify --all` must find nothing. Commands may fail only while the server is away, those that store only while the
disk is full. Removing works on a full disk.

The server's resident memory (VmHWM) stays below LIMIT, and so does all that it has in a control group of this size,
where one can be made.

The lag of a live rig is the time from when its durable bytes were first seen to when they are decoded; it stays below
LAG_S. What is judged is the server's behaviour, not how busy the machine is, so it counts in server time
(world.ServerTime): a second in which other programs left the server half a processor is half a second. What hostile
captures take from others within the server is not taken off. Observing begins anew when the server was away or the
disk was full. A capture that is complete has no lag: what is left of it waits in line with all other captures.

SEED decides what is done by whom; where threads meet is up to the machine. Pauses only decide how dense events are.
"""

import collections
import contextlib
import http.client
import json
import os
import random
import socket
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), 'e2e'))
from lab import DATA, TIMEOUT, Lab, check, wait  # noqa: E402
from model import Capture, Model, digest, digest_lines, make_loop, simulate, write  # noqa: E402
from world import DISK_BYTES, Group, Lag, ServerTime, Trouble, World, peak_memory  # noqa: E402

LIMIT = 1 << 30  # bytes of memory
LAG_S = 1.0
DAY_S = 86400
KINDS = ('di', 'etm', 'pt')
CAPTURE_BYTES = 150_000
LIVE_RATE, LIVE_BYTES = 20_000, 80_000
OLD_BYTES = '500K'  # what retention leaves of old traces
REFUSED = 3  # exit status: also if there is no server
LOOK_S = 0.05  # between two looks at live traces


def is_gone(err):
    return 'no trace' in err or 'has been deleted' in err


class Chaos:
    def __init__(self, lab, seed):
        self.lab, self.seed = lab, seed
        self.world, self.group, self.model, self.lag = World(lab.path('world')), Group(LIMIT), Model(), Lag()
        self.away, self.full = Trouble(), Trouble()
        self.over, self.errors, self.done = threading.Event(), [], collections.Counter()
        self.count_lock = threading.Lock()
        self.peak, self.captures, self.hostile = 0, [], []

    # ---- the server ----

    def start(self):
        lab = self.lab
        asan = os.environ.get('ASAN_OPTIONS', '') + ':verify_asan_link_order=0'
        library = os.path.join(lab.build, 'tests', 'chaos', 'libworld.so')
        lab.prefix = ['/usr/bin/env', 'LD_PRELOAD=' + library, 'TL_WORLD=' + self.world.path, 'ASAN_OPTIONS=' + asan]
        lab.prefix = [*self.group.enter(), *lab.prefix]
        lab.launch('--retain-raw', '30d', '--retain-decoded', '30d', '--min-free', '4M', '--log-format', 'json')
        wait('the server answers', lab.readiness, lab.server_log)

    def note_memory(self):
        self.peak = max(self.peak, peak_memory(self.lab.server.pid))

    # ---- commands ----

    def count(self, what, n=1):
        with self.count_lock:
            self.done[what] += n

    def command(self, *args):
        p = subprocess.run([self.lab.tracelake, *args], env=self.lab.environment(), stdout=subprocess.PIPE,
                           stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, timeout=TIMEOUT)
        return p.returncode, p.stdout, p.stderr.decode(errors='replace')

    def ask(self, *args, stores=False, done_since=None):
        """What a command prints; None: the server was away meanwhile, or the disk full if it `stores`. Any other
        failure is one of the test. `done_since`: if the server was away since then, the command may have removed
        the trace before, and its answer been lost."""
        away, full = self.away.n, self.full.n
        status, out, err = self.command(*args)
        if status == 0:
            return out
        if done_since is not None and self.away.since(done_since) and is_gone(err):
            return b''
        excused = self.away.since(away) or (stores and self.full.since(full))
        check(status == REFUSED and excused, args, 'ended with', status, err)
        return None

    def insist(self, *args, stores=False, removes=False):
        """The same until it is done; it `removes` its trace, at once or when retention comes by."""
        first = self.away.n if removes else None
        out = self.ask(*args, stores=stores, done_since=first)
        while out is None:
            time.sleep(0.05)
            out = self.ask(*args, stores=stores, done_since=first)
        return out

    # ---- rigs ----

    def push(self, worker, rng):
        capture = rng.choice(self.captures)
        trace = 'rig%d-%d' % (worker, self.done['pushes by %d' % worker])
        self.count('pushes by %d' % worker)
        self.model.set(trace, 'pushing', capture)
        args = ['push', '--rig', 'rig%d' % worker, '--trace', trace, '--quiet', '--no-wait',
                '--chunk', str(rng.randrange(1000, 40000)), *rng.choice(([], ['--shards', 'virtual'])), *capture.args]
        if rng.random() < 0.3:
            self.push_part(args, rng)
        self.insist(*args, stores=True)
        self.model.set(trace, 'pushed')
        self.count('pushes')

    def push_part(self, args, rng):
        """A rig that is killed, anywhere."""
        child = subprocess.Popen([self.lab.tracelake, *args, '--rate', '100K'], env=self.lab.environment(),
                                 stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            child.wait(rng.uniform(0, 1.5))
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()
            self.count('rigs killed')

    def trace_live(self, worker, rng):
        """A rig of constant rate, whose lag is watched."""
        name = 'live%d-%d' % (worker, self.done['live by %d' % worker])
        self.count('live by %d' % worker)
        self.model.set(name, 'live')
        file, full = self.lab.path(name), self.full.n
        rig = subprocess.run([self.lab.rig, '--kind', rng.choice(KINDS), '--rig', 'live%d' % worker, '--trace', name,
                              '--rate', str(LIVE_RATE), '--bytes', str(LIVE_BYTES), '--seed', str(rng.randrange(1 << 30)),
                              '--save', file, '--config', file + '.ini', '--image', file + '.elf', '--server',
                              self.lab.url, '--quiet'], stderr=subprocess.PIPE, timeout=TIMEOUT)
        self.model.set(name, 'hostile' if rig.returncode else 'ended')
        if rig.returncode:  # it is not complete, and cannot be
            check(self.full.since(full), 'a live rig ended with', rig.returncode, rig.stderr)
            return
        self.model.set(name, 'pushed', Capture(self.lab, file, file + '.ini', file + '.elf'))
        self.count('live captures')

    def watch(self, worker, rng):
        """Look at live traces, until the server goes."""
        away, full = self.away.n, self.full.n
        self.lag.forget()
        if self.away.since(away) or self.full.since(full) or full % 2:
            self.over.wait(LOOK_S)
            return
        with contextlib.suppress(OSError, http.client.HTTPException):
            clock = ServerTime(self.lab.server.pid, time.monotonic())
            connection = http.client.HTTPConnection('127.0.0.1', self.lab.port, timeout=TIMEOUT)
            while not self.over.is_set() and not self.away.since(away) and not self.full.since(full):
                for name, (state, _) in self.model.rows():
                    if state == 'live':
                        self.look(connection, name, clock)
                self.over.wait(LOOK_S)
            return
        check(self.away.since(away), 'the server does not answer, but should')

    def look(self, connection, trace, clock):
        asked = clock.read(time.monotonic())
        connection.request('GET', '/api/v1/traces/' + trace)
        reply = connection.getresponse()
        row = reply.read()
        if reply.status == 200:
            row, wall = json.loads(row), time.monotonic()
            raw, decoded = int(row['raw_bytes']), int(row['decoded_bytes'])
            # The rig's process may end a while after the capture is complete.
            self.lag.note(trace, raw, decoded if row['state'] == 'live' else raw, asked, wall)
            check(self.lag.longest < LAG_S, 'the lag of', self.lag.whose, 'is', self.lag.longest)

    # ---- readers ----

    def read(self, worker, rng):
        trace, capture = self.model.pick(rng, 'pushed', 'pushing')
        if not trace:
            self.over.wait(0.05)
        elif self.model.state(trace) == 'pushing':
            self.compare_begin(trace, capture)
        else:
            self.compare(trace, capture, rng.choice(sorted(capture.texts)))

    def compare_begin(self, trace, capture):
        """A capture on its way: what is there is its begin."""
        status, raw, _ = self.command('raw', trace, '-')
        check(status or capture.bytes.startswith(raw), trace, 'has other bytes:', len(raw))
        self.count('begins compared')

    def compare(self, trace, capture, stream):
        """One trace with the model, unless it is removed meanwhile."""
        try:
            raw = self.ask('raw', trace, '-')
            row = self.ask('ls', '--json', trace)
            sealed = row and json.loads(row)[0]['state'] == 'sealed'
            text = self.ask('get', '%s/%s' % (trace, stream), '--text') if sealed else None
            check(raw is None or raw == capture.bytes, trace, 'has other bytes:', len(raw or ''))
            check(text is None or digest_lines(text.decode().splitlines()) == capture.texts[stream], trace, stream,
                  'has another text:', len(text or ''))
            self.count('raw compared', raw is not None)
            self.count('texts compared', text is not None)
        except AssertionError:
            if self.model.state(trace) == 'pushed':
                raise

    # ---- removals ----

    def remove(self, worker, rng):
        trace = self.model.take(rng, 'removing')
        if trace:
            self.remove_one(trace)
        self.over.wait(rng.uniform(0.05, 0.5))

    def remove_one(self, trace):
        """Nothing but an absent server is a reason to ask twice; then the answer of a removal may have been lost. What
        was pushed for a moment need not be there, or its connection may not have ended yet."""
        hostile = self.model.state(trace) == 'hostile'
        first = self.away.n
        while True:
            away = self.away.n
            status, _, err = self.command('rm', trace)
            if status == 0 or (is_gone(err) and (hostile or self.away.since(first))):
                break
            excused = self.away.since(away) or (hostile and 'is being pushed' in err)
            check(status == REFUSED and excused, 'rm', trace, status, err)
            time.sleep(0.05)
        self.model.set(trace, 'removed')
        self.count('removals')

    def retain(self, worker, rng):
        """Traces become old, and retention removes what is too much of them."""
        trace = self.model.take(rng, 'old', 8)
        if trace:
            self.insist('label', trace, 'age=old', stores=True, removes=True)
            self.insist('retain', '--label', 'age=old', '--raw', OLD_BYTES, '--decoded', OLD_BYTES, stores=True)
            self.count('traces left to retention')
        self.over.wait(rng.uniform(0.2, 1))

    # ---- images ----

    def images(self, worker, rng):
        """Images that no trace refers to, some of them no images at all; or damage to one that a trace needs."""
        if rng.random() < 0.3:
            self.mend_image(rng)
        with open(self.lab.path('etm-%d.elf' % self.seed), 'rb') as f:
            image = bytearray(f.read())
        for _ in range(rng.randrange(8)):
            image[rng.randrange(len(image))] ^= 1 << rng.randrange(8)
        image = write(self.lab.path('image'), image[:rng.randrange(1, len(image) + 1)])
        self.ask('images', image, stores=True)
        self.count('images')
        trace, capture = self.model.pick(rng, 'pushed')
        if trace:
            status, _, err = self.command('stats', '%s/%s' % (trace, rng.choice(sorted(capture.texts))))
            check(status in (0, REFUSED), 'stats', trace, status, err)
        self.over.wait(rng.uniform(0.05, 0.3))

    def mend_image(self, rng):
        """The image of a virtual trace is damaged in the store: reading it is right, or an error that names the image,
        and putting the image mends it."""
        name = 'image-%d' % self.done['images damaged']
        self.count('images damaged')
        file, setup = make_loop(self.lab, name, 50, 40, rng.randbytes(16))
        capture, image = Capture(self.lab, file, setup), self.lab.path(name + '.img')
        self.model.set(name, 'mending', capture)
        self.insist('push', '--rig', 'images', '--trace', name, '--shards', 'virtual', '--quiet', *capture.args, stores=True)
        with open(image, 'rb') as f:
            stored = os.path.join(self.lab.data, 'objects', 'i', digest(f.read()))
        with open(stored, 'r+b') as f:
            first = f.read(1)[0]
            f.seek(0)
            f.write(bytes([first ^ 1 << rng.randrange(8)]))
        stream, = capture.texts
        away = self.away.n
        status, text, err = self.command('get', name + '/' + stream, '--text')
        right = status == 0 and digest_lines(text.decode().splitlines()) == capture.texts[stream]
        check(right or os.path.basename(stored)[:12] in err or self.away.since(away), 'with a damaged image:', status, err)
        self.insist('images', image, stores=True)
        self.model.set(name, 'pushed')
        self.compare(name, capture, stream)

    # ---- attackers ----

    def attack(self, worker, rng):
        """A capture that wants all of the server; it is removed in the middle."""
        name, args = rng.choice(self.hostile)
        trace = 'hostile-%s-%d' % (name, self.done['attacks'])
        self.model.set(trace, 'hostile')
        child = subprocess.Popen([self.lab.tracelake, 'push', '--rig', 'bad', '--trace', trace, '--no-wait', '--quiet',
                                  *args], env=self.lab.environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.over.wait(rng.uniform(0.2, 3))
        child.kill()
        child.wait()
        self.remove_one(trace)
        self.count('attacks')

    def prepare_hostile(self):
        """Little input that stands for much, and noise."""
        lab, field = self.lab, os.path.join(DATA, 'field', 'net')
        file, setup = make_loop(lab, 'loop', 1000, 40000)
        noise = write(lab.path('noise'), random.Random(self.seed).randbytes(200_000))
        self.hostile = [('loop', ['--config', setup, file])]
        self.hostile += [('noise-' + f, ['--format', f, noise]) for f in ('pt', 'di', 'stf', 'perf', 'etm3', 'tpiu')]
        with contextlib.suppress(FileNotFoundError):
            for name in ('zero.etm', 'zero.ini'):
                with open(os.path.join(field, name), 'rb') as f:
                    write(lab.path(name), f.read())
            write(lab.path('zero.img'), bytes(16 << 20))
            self.hostile.append(('zero', ['--config', lab.path('zero.ini'), lab.path('zero.etm')]))
        switches = os.path.join(field, 'perf-3M-switches.data')
        if os.path.exists(switches):
            self.hostile.append(('switches', [switches]))

    def babble(self, worker, rng):
        """Connections that say something else, or nothing."""
        begins = (b'', b'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', b'GET /api/v1/traces HTTP/1.1\r\nHost: x\r\n', b'\x16\x03\x01')
        sockets = []
        for _ in range(rng.randrange(1, 8)):
            with contextlib.suppress(OSError):
                s = socket.create_connection(('127.0.0.1', self.lab.port), 1)
                s.settimeout(1)
                sockets.append(s)
                s.sendall(rng.choice(begins) + rng.randbytes(rng.randrange(4000)))
                self.count('connections with noise')
        self.over.wait(rng.uniform(0.1, 1))
        for s in sockets:
            s.close()

    # ---- the director ----

    def kill(self):
        self.note_memory()
        self.away.begin()
        self.lab.kill()
        self.start()
        self.away.end()
        self.count('kills')

    def set_clock(self, rng):
        self.world.shift_clock(rng.choice((400 * DAY_S, -56 * 365 * DAY_S, 31 * DAY_S, -3 * DAY_S)))
        self.over.wait(rng.uniform(0.5, 3))
        if rng.random() < 0.5:
            self.kill()
            self.over.wait(rng.uniform(0.5, 1))
        self.world.shift_clock(0)
        self.count('clock steps', 2)

    def fill_disk(self, rng):
        """While no byte is free, a trace can be removed, and the server starts."""
        self.full.begin()
        self.world.free_disk(rng.choice((0, 50_000)))
        self.over.wait(rng.uniform(0.2, 1))
        if rng.random() < 0.5:
            self.kill()
        trace = self.model.take(rng, 'removing', 1)
        if trace:
            self.remove_one(trace)
            self.count('removals on a full disk')
        self.world.free_disk(DISK_BYTES)
        wait('the server is ready', self.lab.ready, self.lab.server_log)
        self.full.end()
        self.count('full disks')

    def direct(self, worker, rng):
        rng.choice((lambda _: self.kill(), self.set_clock, self.fill_disk))(rng)
        self.note_memory()
        self.over.wait(rng.uniform(0.5, 4))

    # ---- all of it ----

    def work(self, act, worker):
        rng = random.Random(self.seed * 1000 + worker)
        try:
            while not self.over.is_set():
                act(worker, rng)
        except Exception as e:  # a worker's failure is the test's failure
            self.errors.append(e)
            self.over.set()

    def run(self, seconds):
        self.start()
        self.captures = [simulate(self.lab, kind, CAPTURE_BYTES, self.seed) for kind in KINDS]
        self.prepare_hostile()
        acts = [self.push, self.push, self.push, self.trace_live, self.trace_live, self.watch, self.read, self.read,
                self.remove, self.retain, self.images, self.attack, self.babble, self.direct]
        threads = [threading.Thread(target=self.work, args=(act, i)) for i, act in enumerate(acts)]
        for t in threads:
            t.start()
        self.over.wait(seconds)
        self.over.set()
        for t in threads:
            t.join()
        self.note_memory()
        self.report()
        if self.errors:
            raise self.errors[0]
        self.judge(seconds)

    def report(self):
        print('seed', self.seed, ' '.join('%s: %d;' % row for row in sorted(self.done.items()) if ' by ' not in row[0]),
              'longest lag: %.0f ms of server time, %.0f ms in all, in %d looks;' % (
                  1e3 * self.lag.longest, 1e3 * self.lag.wall, self.lag.looks),
              'memory: %d MiB' % (self.peak >> 20), 'in a control group' if self.group.path else 'without cgroup', flush=True)

    # ---- the end ----

    def rows(self):
        return {t['id']: t for t in json.loads(self.lab.run('ls', '--json').text())}

    def redecode_suspects(self):
        """Twice killed in the turn of the same trace, the server does not begin it by itself: do what it says."""
        for trace, row in self.rows().items():
            if row['state'] == 'failed' and self.model.state(trace) in ('pushed', 'old'):
                check('redecode ' + trace in row['message'], trace, row['message'])
                self.lab.run('redecode', trace)
                self.count('suspects')

    def all_sealed(self):
        rows = self.rows()
        return all(rows[t]['state'] == 'sealed' for t, (state, _) in self.model.rows()
                   if state in ('pushed', 'old') and t in rows)

    def old_bytes(self):
        return sum(int(t['raw_bytes']) for t in self.rows().values() if t['labels'].get('age') == 'old')

    def judge(self, seconds):
        lab = self.lab
        self.redecode_suspects()
        wait('all is sealed', self.all_sealed, lab.server_log)
        lab.run('retain', '--label', 'age=old', '--raw', OLD_BYTES, '--decoded', OLD_BYTES)
        there = set(self.rows())
        for trace, (state, capture) in self.model.rows():
            check(state != 'removed' or trace not in there, trace, 'is there, but was removed')
            check(state != 'pushed' or trace in there, trace, 'is gone')
            for stream in capture.texts if state == 'pushed' else ():
                self.compare(trace, capture, stream)
        check(there <= set(self.model.traces), 'nobody pushed', there - set(self.model.traces))
        lab.run('verify', '--all')
        check(self.peak < LIMIT, 'the server used', self.peak, 'bytes')
        for what in ('pushes', 'texts compared', 'removals', 'attacks', 'kills'):
            check(self.done[what] or seconds < 10, 'no', what, 'in', seconds, 's')
        self.report()
        lab.stop()


def main():
    seconds = float(sys.argv[2]) if len(sys.argv) > 2 else 600
    lab = Lab(os.path.abspath(sys.argv[1]))
    chaos = Chaos(lab, int(sys.argv[3] if len(sys.argv) > 3 else os.environ.get('TL_SEED', '1')))
    try:
        chaos.run(seconds)
    except Exception as why:
        print('FAILED with seed', chaos.seed, type(why).__name__, why)
        print(lab.server_log())
        sys.exit(1)
    finally:
        lab.close()
        chaos.group.close()


if __name__ == '__main__':
    main()
