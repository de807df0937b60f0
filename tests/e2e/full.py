#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A server whose disk is full. usage: full.py BUILD [NAME…]"""

import os
import random
import signal
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from lab import check, main  # noqa: E402
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
    data = made(1 << 20)
    push = slow_push(lab, data, '--retry', '3')
    begun = time.monotonic()
    limit('1000T')
    err = push.stderr.read().decode()
    check(push.wait(60) == 3, err)
    check(2 < time.monotonic() - begun < 30, time.monotonic() - begun)
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
    push = slow_push(lab, data, '--retry', '200')
    limit('1000T')
    told = push.stderr.readline().decode()
    check('MiB are free' in told, told)
    time.sleep(2)
    limit('1M')
    err = push.stderr.read().decode()
    check(push.wait(100) == 0 and 'MiB are free' not in err, err)
    check(lab.run('raw', 'x', '-').out == data, 'bytes differ')


if __name__ == '__main__':
    main(TESTS)
