#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runs everything at once for a while; afterwards the server must be as before. usage: soak.py
BUILD [SECONDS]

Pushes, removals, fetches, follows, and clients that do not read, in parallel, in rounds. After each
round, with all traces removed, the server must come to rest: with the threads and descriptors that
it had after the first run of the same load (pools and caches are created on first use), and with
only as much resident memory as a heap may keep beyond what is in use. The memory in use must not
grow from the first round to any later one.
"""

import collections
import json
import os
import random
import re
import socket
import struct
import subprocess
import sys
import threading
import time
import urllib.request

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from lab import Lab, check  # noqa: E402

SEED = int(os.environ.get('TL_SEED', '1'))
WARM_S = 4
SETTLE_S = 120
ROUND_S = 100
# resident beyond 5/4 of the memory in use: twice the amount at which the heap returns pages
HEAP_SPARE = 64 << 20
IN_USE_SPARE = 8 << 20  # growth of the memory in use at rest, for caches
SPARE = 12  # threads and descriptors: pools grow to the maximum number of concurrent calls
READERS = 16


RANGE = '/api/v1/traces/kept/streams/di.0.1/range?format=text'
WINDOW = (1 << 31) - 1  # of HTTP/2, so that the socket is the limit


def frame(kind, flags, stream, payload=b''):
    return struct.pack('>I', len(payload))[1:] + bytes((kind, flags)) + \
        struct.pack('>I', stream) + payload


def http2(method, path, message=None):
    """Everything that a client has to send for one request, with literal field names and values."""
    fields = {':method': method, ':scheme': 'http', ':authority': 'localhost', ':path': path}
    if message is not None:
        fields.update({'content-type': 'application/grpc', 'te': 'trailers'})
    block = b''.join(bytes((0, len(name))) + name.encode() + bytes((len(value),)) + value.encode()
                     for name, value in fields.items())
    out = b'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n' + \
        frame(4, 0, 0, struct.pack('>HI', 4, WINDOW)) + \
        frame(8, 0, 0, struct.pack('>I', WINDOW - 65535)) + \
        frame(1, 5 if message is None else 4, 1, block)
    if message is not None:
        out += frame(0, 1, 1, b'\0' + struct.pack('>I', len(message)) + message)
    return out


# FetchRequest: trace, stream, format text.
FETCH = b'\x0a\x04kept\x12\x06di.0.1\x30\x02'
REQUESTS = (('GET %s HTTP/1.1\r\nHost: localhost\r\n\r\n' % RANGE).encode(),
            http2('GET', RANGE), http2('POST', '/tracelake.v1.Ranges/Fetch', FETCH))


class Load:
    """Workers that use a server until stopped; errors are recorded."""

    def __init__(self, lab, round_name, capture):
        self.lab, self.name, self.capture = lab, round_name, capture
        self.stop = threading.Event()
        self.errors = []
        self.done = collections.Counter()

    def command(self, *args, **options):
        process = subprocess.run([self.lab.tracelake] + list(args), env=self.lab.environment(),
                                 stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, timeout=240,
                                 **options)
        return process.returncode, process.stderr.decode(errors='replace')

    def must(self, what, *args):
        status, text = self.command(*args)
        check(status == 0, what, 'ended with', status, text)
        self.done[what] += 1

    def push_and_remove(self, worker, rng):
        trace = '%s-%d-%d' % (self.name, worker, self.done['push'])
        self.must('push', 'push', '--rig', 'r%d' % worker, '--trace', trace, '--format', 'di',
                  '--config', self.capture + '.ini', self.capture)
        if rng.random() < 0.8:
            self.must('rm', 'rm', trace)

    def fetch(self, worker, rng):
        first = rng.randrange(1000)
        self.must('fetch', 'get', 'kept/di.0.1', '--insn', '%d:%d' % (first, first + 5000), '-o',
                  self.lab.path('fetch-%d.zstf' % worker))

    def follow(self, worker, rng):
        child = subprocess.Popen([self.lab.tracelake, 'tail', 'kept/di.0.1'],
                                 env=self.lab.environment(), stdout=subprocess.DEVNULL,
                                 stderr=subprocess.DEVNULL)
        self.stop.wait(rng.uniform(0.1, 0.5))
        child.kill()
        child.wait()
        self.done['follow'] += 1

    def slow_readers(self, worker, rng):
        """Request much and read nothing."""
        sockets = []
        for i in range(READERS):
            s = socket.socket()
            s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            s.connect(('127.0.0.1', self.lab.port))
            s.sendall(REQUESTS[i % len(REQUESTS)])
            sockets.append(s)
        self.stop.wait(rng.uniform(0.2, 1))
        for s in sockets:
            s.close()
        self.done['slow readers'] += len(sockets)

    def work(self, act, worker):
        rng = random.Random(SEED * 1000 + worker)
        try:
            while not self.stop.is_set():
                act(worker, rng)
        except Exception as e:  # a worker's failure is the test's failure
            self.errors.append(e)
            self.stop.set()

    def run(self, seconds):
        acts = [self.push_and_remove, self.push_and_remove, self.fetch, self.follow,
                self.slow_readers]
        threads = [threading.Thread(target=self.work, args=(act, i))
                   for i, act in enumerate(acts)]
        for t in threads:
            t.start()
        self.stop.wait(seconds)
        self.stop.set()
        for t in threads:
            t.join()
        if self.errors:
            raise self.errors[0]
        for act in ('push', 'fetch', 'follow', 'slow readers'):
            check(self.done[act], 'no', act, 'was done')


Usage = collections.namedtuple('Usage', 'threads descriptors in_use spare')


def usage(lab):
    """Threads, descriptors, bytes of the heap in use, and resident bytes beyond 5/4 of these."""
    top = '/proc/%d/' % lab.server.pid
    with open(top + 'status') as f:
        status = dict(line.split(':', 1) for line in f)
    text = urllib.request.urlopen(lab.url + '/metrics', timeout=240).read().decode()
    in_use, resident = (int(re.search(r'^tracelake_memory_%s_bytes (\d+)$' % what, text, re.M).group(1))
                        for what in ('in_use', 'resident'))
    return Usage(int(status['Threads']), len(os.listdir(top + 'fd')), in_use, max(0, resident - in_use * 5 // 4))


def clean(lab, prefix):
    for trace in json.loads(lab.run('ls', '--json').text()):
        if trace['id'].startswith(prefix):
            lab.run('rm', trace['id'])


def settle(lab, limit):
    """Wait until the server is below the limits; returns its final usage."""
    until = time.monotonic() + SETTLE_S
    while True:
        now = usage(lab)
        if all(a <= b for a, b in zip(now, limit)) or time.monotonic() > until:
            return now
        time.sleep(0.1)


def soak(lab, seconds):
    capture = lab.path('capture.di')
    print('seed', SEED)
    lab.start()
    subprocess.run([lab.rig, '--kind', 'di', '--server', lab.url, '--trace', 'kept', '--rate',
                    '100000000', '--bytes', '2000000', '--seed', str(SEED), '--save', capture,
                    '--config', capture + '.ini', '--quiet'], check=True, timeout=240)
    Load(lab, 'warm', capture).run(min(seconds, WARM_S))
    clean(lab, 'warm')
    warm = usage(lab)
    limit = Usage(warm.threads + SPARE, warm.descriptors + SPARE, sys.maxsize, HEAP_SPARE)
    rounds = max(1, round(seconds / ROUND_S))
    for i in range(rounds):
        load = Load(lab, 'soak%d' % i, capture)
        load.run(seconds / rounds)
        clean(lab, load.name)
        now = settle(lab, limit)
        print(now, dict(load.done), flush=True)
        for what, most, is_now in zip(Usage._fields, limit, now):
            check(is_now <= most, what, 'stay:', is_now, 'of at most', most)
        if i == 0:
            limit = limit._replace(in_use=now.in_use + IN_USE_SPARE)
    lab.alive()
    lab.stop()


def main():
    lab = Lab(os.path.abspath(sys.argv[1]))
    try:
        soak(lab, float(sys.argv[2]) if len(sys.argv) > 2 else 600)
    finally:
        lab.close()


if __name__ == '__main__':
    main()
