#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A server whose disk is full. usage: full.py BUILD [NAME…]"""

import http.client
import json
import os
import random
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from lab import TIMEOUT, Skip, check, main, wait  # noqa: E402
from e2e import wait_offset  # noqa: E402

TESTS = {}


def test(function):
    TESTS[function.__name__] = function
    return function


def made(n, seed=1):
    return random.Random(seed).randbytes(n)


def write(lab, name, data):
    with open(lab.path(name), 'wb') as f:
        f.write(data)
    return lab.path(name)


def configured(lab):
    """A server whose --min-free can be changed; returns the function for that."""
    config = lab.path('serve.ini')

    def limit(size):
        with open(config, 'w') as f:
            f.write('data = %s\nlog-format = json\nmin-free = %s\n' % (lab.data, size))
        if lab.server:
            n = len(lab.told('reloaded'))
            lab.server.send_signal(signal.SIGHUP)
            lab.wait_told('reloaded', n + 1)
    limit('1M')
    lab.start('--config', config)
    return limit


def slow_push(lab, data, *more):
    push = lab.spawn('push', '--format', 'etm4', '--rig', 'rig', '--trace', 'x', '--no-wait', '--rate', '100K',
                     *more, write(lab, 'input', data))
    wait_offset(lab, 'x', 20000)
    return push


@test
def full_in_the_middle(lab):
    """A push whose bytes are rejected, but which the server accepts each time it is opened again, ends after --retry,
    and has said once why; repeated when there is room, it completes the capture."""
    limit = configured(lab)
    data = made(4 << 20)
    push = slow_push(lab, data, '--retry', '3')
    begun = time.monotonic()
    limit('1000T')
    err = push.stderr.read().decode()
    check(push.wait(TIMEOUT) == 3, err)
    check(2 < time.monotonic() - begun, time.monotonic() - begun)
    lines = [line for line in err.splitlines() if 'MiB are free' in line]
    check(len(lines) == 2 and 'connected again' not in err, err)  # it waits; it has ended
    check('bytes are stored; push it again to go on' in err, err)
    check(len(lab.told('push begun')) < 20, 'pauses do not grow')
    limit('1M')
    lab.run('push', '--format', 'etm4', '--rig', 'rig', '--trace', 'x', '--no-wait', lab.path('input'))
    check(lab.run('raw', 'x', '-').out == data, 'bytes differ')


@test
def full_for_a_while(lab):
    """With more patience the push goes on when there is room, and has said both."""
    limit = configured(lab)
    data = made(300000)
    push = lab.spawn('push', '--format', 'etm4', '--rig', 'rig', '--trace', 'x', '--no-wait', '--retry', '200', '-',
                     stdin=subprocess.PIPE)
    push.stdin.write(data[:100000])
    push.stdin.flush()
    wait_offset(lab, 'x', 20000)
    limit('1000T')
    push.stdin.write(data[100000:])
    push.stdin.close()
    told = push.stderr.readline().decode()
    check('MiB are free' in told, told)
    time.sleep(2)
    limit('1M')
    err = push.stderr.read().decode()
    again = [line for line in err.splitlines() if 'MiB are free' in line and 'decoding waits' not in line]
    check(push.wait(TIMEOUT) == 0 and not again, err)
    check(lab.run('raw', 'x', '-').out == data, 'bytes differ')


class Disk:
    """A file system of its own for the data folder, in a namespace that outlives servers."""

    def __init__(self, lab, megabytes):
        self.lab = lab
        os.makedirs(lab.data)
        try:
            self.holder = lab.spawn('/usr/bin/env', 'unshare', '-rm', 'sh', '-c',
                                    'mount -t tmpfs -o size=%dm none %s && echo up && exec sleep 1000' %
                                    (megabytes, lab.data), stdin=subprocess.DEVNULL)
        except OSError as e:
            raise Skip(str(e)) from None
        if self.holder.stdout.readline() != b'up\n':
            raise Skip('no file system of its own: ' + self.holder.stderr.read().decode())
        self.root = '/proc/%d/root%s' % (self.holder.pid, lab.data)
        self.enter = ['nsenter', '-t', str(self.holder.pid), '-U', '-m', '--preserve-credentials']

    def start(self, *options):
        lab = self.lab
        args = self.enter + [lab.tracelake, 'serve', '--data', lab.data, '--listen', '127.0.0.1:%d' % lab.port,
                             '--listen-tls', '127.0.0.1:%d' % lab.tls_port, '--log-format', 'json']
        with open(lab.log, 'ab') as log:
            lab.server = subprocess.Popen(args + list(options), stdout=log, stderr=log)
        wait('the server answers', lambda: self.ready() is not None, lab.server_log)

    def ready(self):
        """What /readyz says, and its status; None: nothing answers."""
        check(self.lab.server.poll() is None, 'the server ended:', self.lab.server_log())
        try:
            connection = http.client.HTTPConnection('127.0.0.1', self.lab.port, timeout=10)
            connection.request('GET', '/readyz')
            answer = connection.getresponse()
            return answer.status, answer.read().decode()
        except OSError:
            return None

    def fill(self):
        """Leave no byte."""
        with open(os.path.join(self.root, 'filler'), 'ab', buffering=0) as f:
            for n in (1 << 20, 4096, 1):
                try:
                    while True:
                        f.write(b'x' * n)
                except OSError:
                    pass

    def empty(self):
        os.remove(os.path.join(self.root, 'filler'))

    def has(self, name):
        return os.path.exists(os.path.join(self.root, name))


def push(lab, trace, n, seed=1):
    lab.run('push', '--format', 'etm4', '--rig', 'rig', '--trace', trace, write(lab, 'input', made(n, seed)))


def names(lab):
    return {row['id'] for row in json.loads(lab.run('ls', '--json').out)}


@test
def removing_when_full(lab):
    """On a disk without a free byte traces are removed, the server says that it is not ready, and starts; with space
    again, it is ready, takes trace, and holds space back anew."""
    disk = Disk(lab, 60)
    disk.start('--min-free', '1M')
    for i in range(6):
        push(lab, 't%d' % i, 300000, i)
    wait('space is held back', lambda: disk.has('reserve'))
    disk.fill()

    def is_full():
        status, told = disk.ready()
        return status == 503 and 'full' in told and 'tracelake rm' in told
    wait('not ready', is_full, lab.server_log)
    for _ in range(20):  # neither is it ready while it uses what was held back
        check(is_full(), disk.ready())
    lab.fails(3, 'takes no more trace', 'push', '--format', 'etm4', '--retry', '1', write(lab, 'more', made(100000)))
    check('rebuild-catalog' not in lab.server_log(), lab.server_log())
    for i in range(3):
        lab.run('rm', 't%d' % i)
        disk.fill()
    check(names(lab) == {'t3', 't4', 't5'}, names(lab))
    for end in (lab.kill, lab.stop):
        end()
        disk.fill()
        disk.start('--min-free', '1M')
        check(names(lab) >= {'t4', 't5'}, names(lab))
        check(lab.run('raw', 't5', '-').out == made(300000, 5), 'bytes differ')
    lab.run('rm', 't3')
    disk.empty()
    wait('ready', lambda: disk.ready() == (200, 'ready\n'), lab.server_log)
    push(lab, 'new', 300000, 9)
    wait('space is held back again', lambda: disk.has('reserve'))


@test
def starting_without_reserve(lab):
    """A data folder of an earlier version holds nothing back: the server starts on a full disk, and reads."""
    disk = Disk(lab, 60)
    disk.start('--min-free', '1M')
    for i in range(4):
        push(lab, 't%d' % i, 300000, i)
    lab.stop()
    if disk.has('reserve'):
        os.remove(os.path.join(disk.root, 'reserve'))
    disk.fill()
    disk.start('--min-free', '1M')
    check(names(lab) == {'t0', 't1', 't2', 't3'}, names(lab))
    check(lab.run('raw', 't1', '-').out == made(300000, 1), 'bytes differ')
    lab.run('rm', 't0')
    check(names(lab) == {'t1', 't2', 't3'}, names(lab))


@test
def lease_is_gone(lab):
    """/readyz tells that the lease was lost."""
    lab.start()
    os.remove(os.path.join(lab.data, 'leases', 'lake'))
    connection = http.client.HTTPConnection('127.0.0.1', lab.port, timeout=10)
    connection.request('GET', '/readyz')
    answer = connection.getresponse()
    told = answer.read().decode()
    check(answer.status == 503 and 'lease' in told, answer.status, told)


if __name__ == '__main__':
    main(TESTS)
