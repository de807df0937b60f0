#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Rigs that spool to a file while the server is away (push --spool). usage: spool.py BUILD [NAME…]

TL_SEED: determines where they are killed.
"""

import json
import os
import random
import re
import signal
import socket
import subprocess
import sys
import threading

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from lab import TIMEOUT, check, main  # noqa: E402
from e2e import wait_offset  # noqa: E402
from rigs import CUTS, content, seeded  # noqa: E402

TESTS = {}


def test(function):
    TESTS[function.__name__] = function
    return function


def spooled(lab, *more):
    return ['--format', 'etm4', '--rig', 'rig', '--trace', 'spooled', '--spool',
            lab.path('spool') + ',8M', '--no-wait', *more, '-']


def left(lab):
    """The number of bytes in the spool's files, some of which are removed while they are
    counted."""
    n = 0
    for top, _, names in os.walk(lab.path('spool')):
        for name in names:
            try:
                n += os.path.getsize(os.path.join(top, name)) if name.endswith('.raw') else 0
            except FileNotFoundError:
                pass
    return n


def end_silently(lab, child):
    """Be a server that has accepted a connection, and ends before it says a word."""
    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(('127.0.0.1', lab.port))
        listener.listen(1)
        begun = child()
        listener.accept()[0].close()
    return begun


@test
def server_just_ends(lab):
    """A server that ends under the first call of a push is one that comes back, as long as --retry permits."""
    args = ['push', '--format', 'etm4', '--rig', 'rig', '--trace', 'first', '--no-wait', lab.path('capture')]
    with open(lab.path('capture'), 'wb') as f:
        f.write(random.Random(6).randbytes(1000))
    hasty = end_silently(lab, lambda: lab.spawn(*args, '--retry', '0'))
    _, told = hasty.communicate(timeout=TIMEOUT)
    check(hasty.returncode == 3 and b'ended the connection' in told, 'without retry:', hasty.returncode, told)
    patient = end_silently(lab, lambda: lab.spawn(*args))
    told = patient.stderr.readline()
    check(b'trying again' in told, 'said', told)
    lab.start()
    _, told = patient.communicate(timeout=TIMEOUT)
    check(patient.returncode == 0, 'ended with', patient.returncode, told)
    check(lab.offset('first') == 1000, 'has', lab.offset('first'))


@test
def spool_killed(lab):
    """kill -9 of push and server at random positions, with a live input that continues: nothing is
    lost or repeated."""
    dice = seeded()
    lab.start()
    sent = random.Random(5).randbytes(3 << 20)
    out, into = os.pipe()
    gate = Gate()
    feeder = threading.Thread(target=feed, args=(into, sent, dice.randrange(1 << 30), gate), daemon=True)
    feeder.start()
    step = len(sent) // (CUTS + 2)
    for kill in range(CUTS):
        push = lab.spawn('push', *spooled(lab, '--goes-on'), stdin=out)
        wanted = step * (kill + 1) + dice.randrange(step)
        gate.open(min(wanted + 100000, len(sent) - 1))  # the input ends after the last kill
        while progress(lab) < wanted:
            check(push.poll() is None, 'the push ended')
        if dice.randrange(2):
            lab.kill()
            if dice.randrange(2):
                push.kill()
                push.wait()
            lab.start()
        push.kill()
        push.wait()
    gate.open(len(sent))
    done = lab.spawn('push', *spooled(lab, '--goes-on'), stdin=out)
    feeder.join()
    check(done.wait(240) == 0, done.stderr.read())
    os.close(out)
    check(lab.run('raw', 'spooled', '-').out == sent, 'the stored bytes are not those that were sent')
    check(not os.path.exists(lab.path('spool/spooled')), 'the spool is not empty')


@test
def spool_half_removed(lab):
    """Killed while removing the spool of a capture that the server has completely, and run
    again."""
    data = content(lab, 1 << 20)
    lab.start()
    for length in (len(data), len(data) - 1000):
        lab.run('push', *spooled(lab), stdin=data)
        check(not os.path.exists(lab.path('spool/spooled')), 'the spool is not empty')
        os.makedirs(lab.path('spool/spooled'))
        with open(lab.path('spool/spooled/capture'), 'w') as f:
            f.write('rig rig\nbase 0\nlength %d\n' % len(data))
        if length < len(data):  # its last file is still there
            with open(lab.path('spool/spooled/%016x.raw' % length), 'wb') as f:
                f.write(data[length:])
        done = lab.run('push', *spooled(lab), stdin=data)
        check(b'has all of it already' in done.err, done)
        check(not os.path.exists(lab.path('spool/spooled')), 'the spool is not empty')
        check(lab.run('raw', 'spooled', '-').out == data, 'bytes differ')


class Gate:
    """Limits how far a rig's input has come."""

    def __init__(self):
        self.to, self.changed = 0, threading.Condition()

    def open(self, to):
        with self.changed:
            self.to = to
            self.changed.notify_all()

    def wait(self, at):
        """The number of bytes that may be sent after `at`, once there are any."""
        with self.changed:
            self.changed.wait_for(lambda: at < self.to)
            return self.to - at


def feed(into, data, seed, gate):
    dice = random.Random(seed)
    at = 0
    with open(into, 'wb', buffering=0) as f:
        while at < len(data):
            at += f.write(data[at:at + min(gate.wait(at), dice.randrange(1, 30000))])


def progress(lab):
    """How many of the rig's bytes are durable or in the spool."""
    return lab.offset('spooled') + left(lab) if lab.server else left(lab)


@test
def spool_repeated(lab):
    """The command with a pipe that starts again from the beginning, killed and run again: complete,
    without repetition."""
    dice = seeded()
    data = content(lab, 2 << 20)
    lab.start()
    for kill in range(CUTS // 2):
        wanted = len(data) * (kill + 1) // CUTS + dice.randrange(50000)
        out, into = os.pipe()
        gate = Gate()
        gate.open(wanted + 100000)  # there it waits for ever
        threading.Thread(target=feed, args=(into, data, dice.randrange(1 << 30), gate), daemon=True).start()
        push = lab.spawn('push', *spooled(lab), stdin=out)
        while progress(lab) < wanted:
            check(push.poll() is None, 'the push ended')
        push.kill()
        push.wait()
    with open(lab.path('input'), 'rb') as f:
        cat = lab.spawn('/bin/cat', stdin=f)
        done = lab.spawn('push', *spooled(lab), stdin=cat.stdout)
        check(done.wait(240) == 0, done.stderr.read())
    check(lab.run('raw', 'spooled', '-').out == data, 'bytes differ')


@test
def spool_without_server(lab):
    """No server when the rig begins, and none when its input ends; the push is killed, and run
    again."""
    data = content(lab, 3 << 20)
    args = ['push', '--format', 'etm4', '--rig', 'rig', '--spool', lab.path('spool') + ',8M',
            '--no-wait', '-']
    first = lab.spawn(*args, stdin=subprocess.PIPE)
    first.stdin.write(data)
    first.stdin.close()
    while left(lab) < len(data) or not ended(lab):
        check(first.poll() is None, 'the push ended')
    first.kill()
    err = first.stderr.read()
    check(b'Reading on, into' in err and b'cannot connect' in err, err)
    lab.start()
    # The next capture of that rig; what remains of the previous one is sent before it.
    second = lab.run(*args, stdin=b'more' * 1000)
    ids = [row['id'] for row in json.loads(lab.run('ls', '--json').out)]
    check(len(ids) == 2, ids, second)
    stored = sorted((lab.run('raw', name, '-').out for name in ids), key=len)
    check(stored == [b'more' * 1000, data], 'bytes differ')
    check(not os.listdir(lab.path('spool')), 'the spool is not empty')


def ended(lab):
    for top, _, names in os.walk(lab.path('spool')):
        if 'capture' in names:
            with open(os.path.join(top, 'capture')) as f:
                return 'length' in f.read()
    return False


@test
def spool_full(lab):
    """More than the spool can hold, without a server: the input waits, this is reported, and
    nothing is lost."""
    data = content(lab, 5 << 20)
    args = ['push', '--format', 'etm4', '--rig', 'rig', '--trace', 'full', '--spool',
            lab.path('spool') + ',1M', '--no-wait', '-']
    push = lab.spawn(*args, stdin=subprocess.PIPE)
    gate = Gate()
    gate.open(len(data))
    threading.Thread(target=feed, args=(os.dup(push.stdin.fileno()), data, 1, gate), daemon=True).start()
    push.stdin.close()
    said = b''
    while b'the input waits' not in said:
        line = push.stderr.readline()
        check(line, 'the push ended:', said)
        said += line
    check(900000 < left(lab) <= 1 << 20, 'bytes in the spool:', left(lab))
    lab.start()
    check(push.wait(240) == 0, push.stderr.read())
    check(lab.run('raw', 'full', '-').out == data, 'bytes differ')


@test
def format_in_config(lab):
    """The format in the configuration, not on the command line: no byte of a pipe or of a file that is standard
    input gets lost by looking at it."""
    lab.start()
    data = content(lab, 100000)
    with open(lab.path('rig.ini'), 'w') as f:
        f.write('[trace]\nformat=etm4,id=0x10\n')
    with open(lab.path('bytes'), 'wb') as f:
        f.write(data)
    lab.run('push', '--config', lab.path('rig.ini'), '--trace', 'pipe', '--no-wait', '-', stdin=data)
    check(lab.run('raw', 'pipe', '-').out == data, 'bytes of the pipe differ')
    with open(lab.path('bytes'), 'rb') as f:
        push = lab.spawn('push', '--config', lab.path('rig.ini'), '--trace', 'file', '--no-wait', '-', stdin=f)
        check(push.wait(240) == 0, push.stderr.read())
    check(lab.run('raw', 'file', '-').out == data, 'bytes of the file differ')
    lab.fails(2, 'say what standard input holds', 'push', '--trace', 'none', '-', stdin=data)


@test
def source_is_faster(lab):
    """A pipe that is always faster than the server: that is reported once, then only waits of a
    second or more are, and in the end their sum."""
    lab.start()
    data = content(lab, 8 << 20)
    done = lab.run('push', '--format', 'etm4', '--rig', 'rig', '--trace', 'fast', '--memory', '64K', '-',
                   stdin=data)
    lines = [line for line in done.err.splitlines() if b'the input waits' in line]
    waits, seconds = re.search(rb'waited for the server (\d+) times, ([\d.]+) s in all', done.err).groups()
    check(int(waits) > 10, 'the input hardly waited:', done.err)
    check(1 <= len(lines) <= 1 + float(seconds), done.err)
    check(b'--memory SIZE' in lines[0], lines[0])
    check(lab.run('raw', 'fast', '-').out == data, 'bytes differ')


@test
def drains_while_away(lab):
    """The server goes away: the push continues to read, reports it, and the capture is complete."""
    lab.start()
    push = lab.spawn('push', '--format', 'etm4', '--rig', 'rig', '--trace', 'on', '--no-wait', '-',
                     stdin=subprocess.PIPE)
    push.stdin.write(b'a' * 100000)
    push.stdin.flush()
    wait_offset(lab, 'on', 100000)
    lab.kill()
    # More than the pipe and the library's window hold: written without waiting for the server.
    push.stdin.write(b'b' * (24 << 20))
    push.stdin.flush()
    lab.start()
    push.stdin.close()
    err = push.stderr.read()
    check(push.wait(240) == 0, err)
    check(b'connected again' in err, 'nothing was said:', err)
    check(lab.run('raw', 'on', '-').out == b'a' * 100000 + b'b' * (24 << 20), 'bytes differ')


@test
def interrupted_with_spool(lab):
    """Ctrl-C without a server: reports what is where, and how to continue."""
    push = lab.spawn('push', *spooled(lab), stdin=subprocess.PIPE)
    push.stdin.write(b'x' * 70000)
    push.stdin.flush()
    while left(lab) < 70000:
        check(push.poll() is None, 'the push ended')
    push.send_signal(signal.SIGINT)
    check(push.wait(240) != 0, 'exit status')
    err = push.stderr.read()
    check(b'70000 bytes wait in' in err and b'run the same command again' in err, err)


if __name__ == '__main__':
    main(TESTS)
