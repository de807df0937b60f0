#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Pushes over bad networks and bad disks, and the rig's bytes given back. usage: rigs.py BUILD [NAME…]

TL_CUTS=200: cut a push so often by FIN and by RST, not 12 times each. TL_SEED: where to cut."""

import os
import random
import socket
import struct
import subprocess
import sys
import threading

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from lab import check, main  # noqa: E402
from e2e import simulated, wait_offset, wait_sealed  # noqa: E402

TESTS = {}
CUTS = int(os.environ.get('TL_CUTS', '12'))


def test(function):
    TESTS[function.__name__] = function
    return function


class Proxy:
    """Forwards TCP. Each connection in turn gets a plan: after how many bytes of both directions it
    is cut, and how: 'fin', 'rst', or 'swallow': it stays and passes nothing more."""

    def __init__(self, port, plans):
        self.port = port
        self.plans = list(plans)
        self.cuts = 0
        self.held = []
        self.listener = socket.create_server(('127.0.0.1', 0))
        self.url_port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def close(self):
        self.listener.close()
        for s in self.held:
            s.close()

    def accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
                server = socket.create_connection(('127.0.0.1', self.port))
            except OSError:
                return
            plan = self.plans.pop(0) if self.plans else (None, None)
            state = {'left': plan[0], 'how': plan[1], 'lock': threading.Lock(), 'over': False}
            for a, b in ((client, server), (server, client)):
                threading.Thread(target=self.pump, args=(a, b, state), daemon=True).start()

    def cut(self, a, b, state):
        state['over'] = True
        self.cuts += 1
        if state['how'] == 'swallow':
            self.held += [a, b]
            return
        for s in (a, b):
            if state['how'] == 'rst':
                s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack('ii', 1, 0))
                try:
                    s.shutdown(socket.SHUT_RD)  # whoever reads it lets go of it
                except OSError:
                    pass
                s.close()
            else:
                try:
                    s.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass
                s.close()

    def pump(self, a, b, state):
        while True:
            try:
                data = a.recv(16384)
            except OSError:
                data = b''
            with state['lock']:
                if state['over']:
                    return
                if state['left'] is not None:
                    passing = data[:state['left']]
                    state['left'] -= len(passing)
                else:
                    passing = data
                try:
                    b.sendall(passing)
                    if not data:
                        b.shutdown(socket.SHUT_WR)
                except OSError:
                    return
                if state['left'] == 0:
                    self.cut(a, b, state)
                    return
            if not data:
                return


def seeded():
    seed = int(os.environ.get('TL_SEED', '20'))
    print('TL_SEED=%d' % seed)
    return random.Random(seed)


def described(lab):
    return ['--format', 'tpiu,sync=fsync', '--config', lab.path('sim.ini'), '--image',
            lab.path('demo.elf'), '--rig', 'sim-etm']


def cut_push(lab, how, tls):
    """Push through a proxy that cuts at random places, with default options."""
    dice = seeded()
    simulated(lab, 400000)
    # In the first bytes of a connection, too; only there has to be a server at first.
    plans = [(dice.choice([dice.randrange(1, 400), dice.randrange(1, 20000)]), how)
             for _ in range(CUTS)]
    plans[0] = (30000, how)
    proxy = Proxy(lab.tls_port if tls else lab.port, plans)
    server = ['--server', '%s://127.0.0.1:%d' % ('https' if tls else 'http', proxy.url_port)]
    if tls:
        server.append('--insecure')
    trace = 'cut-' + how
    try:
        args = [lab.tracelake, 'push', *server, *described(lab), '--trace', trace, '--chunk', '2000',
                lab.path('raw')]
        done = subprocess.run(args, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=900)
        check(done.returncode == 0, done.stderr.decode())
        check(proxy.cuts == CUTS, 'only', proxy.cuts, 'cuts')
    finally:
        proxy.close()
    with open(lab.path('raw'), 'rb') as f:
        sent = f.read()
    check(lab.run('raw', trace, '-').out == sent, 'the stored bytes are not those that were sent')
    check(lab.run('get', trace, '--text').out == lab.run('get', 'sim', '--text').out, 'flow')


@test
def cut_by_fin(lab):
    """A push whose connections are closed at random bytes ends by itself, bytes identical."""
    cut_push(lab, 'fin', False)


@test
def cut_by_rst(lab):
    """The same by resets."""
    cut_push(lab, 'rst', False)


@test
def cut_by_rst_tls(lab):
    """The same by resets of TLS connections."""
    cut_push(lab, 'rst', True)


@test
def cut_by_fin_tls(lab):
    """The same by ends of TLS connections."""
    cut_push(lab, 'fin', True)


@test
def vanished_rig(lab):
    """A rig whose packets are swallowed, then its next push: it takes over at once, nobody waits."""
    simulated(lab, 300000)
    proxy = Proxy(lab.port, [(None, None)])
    args = described(lab) + ['--trace', 'gone', '--rate', '100K', lab.path('raw')]
    # The first connection of a push asks for the offset, so plan for the one that carries it.
    proxy.plans = [(60000, 'swallow')] * 4
    first = lab.spawn('push', '--server', 'http://127.0.0.1:%d' % proxy.url_port, *args)
    try:
        wait_offset(lab, 'gone', 20000)
        while not proxy.held:
            check(first.poll() is None, 'the first push ended')
        second = lab.run('push', *described(lab), '--trace', 'gone', lab.path('raw'))
        check(b'going on at byte' in second.err, second)
    finally:
        first.kill()
        proxy.close()
    with open(lab.path('raw'), 'rb') as f:
        check(lab.run('raw', 'gone', '-').out == f.read(), 'bytes differ')
    lab.alive()


@test
def taken_over(lab):
    """The push that was taken over is told, and does not take the trace back."""
    simulated(lab, 60000)
    first = lab.spawn('push', *described(lab), '--trace', 'two', '-', stdin=subprocess.PIPE)
    with open(lab.path('raw'), 'rb') as f:
        raw = f.read()
    first.stdin.write(raw[:30000])
    first.stdin.flush()
    wait_offset(lab, 'two', 30000)
    lab.run('push', *described(lab), '--trace', 'two', lab.path('raw'))
    err = first.communicate(raw[30000:], timeout=60)[1]
    check(first.returncode == 3, 'exit status', first.returncode)
    check(b'taken over' in err, 'not told:', err)
    check(lab.run('raw', 'two', '-').out == raw, 'bytes differ')


@test
def folder_gone(lab):
    """The data folder goes in the middle of a push: not ready, the push waits, and goes on."""
    simulated(lab, 300000)
    wait_sealed(lab, 'sim')
    push = lab.spawn('push', '--chunk', '1000', '--rate', '200K', *described(lab), '--trace', 'away',
                     lab.path('raw'))
    wait_offset(lab, 'away', 20000)
    check(ready(lab) == 200, 'not ready')
    # What is open goes on in the folder that was moved; a new server would not find it.
    os.rename(lab.data, lab.data + '.away')
    check(ready(lab) == 503, 'ready without a data folder')
    os.rename(lab.data + '.away', lab.data)
    check(ready(lab) == 200, 'not ready again')
    check(push.wait(60) == 0, push.stderr.read())
    with open(lab.path('raw'), 'rb') as f:
        check(lab.run('raw', 'away', '-').out == f.read(), 'bytes differ')


def ready(lab):
    with socket.create_connection(('127.0.0.1', lab.port), 5) as s:
        s.sendall(b'GET /readyz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n')
        return int(s.recv(4096).split()[1])


@test
def raw(lab):
    """What the rig sent comes back byte for byte, whole and in ranges, with its setup."""
    simulated(lab, 300000)
    wait_sealed(lab, 'sim')
    with open(lab.path('raw'), 'rb') as f:
        sent = f.read()
    check(lab.run('raw', 'sim', '-').out == sent, 'bytes differ')
    dice = seeded()
    for _ in range(12):
        a = dice.randrange(len(sent))
        b = dice.randrange(a, len(sent) + 1)
        check(lab.run('raw', 'sim', '--byte', '%d:%d' % (a, b), '-').out == sent[a:b], a, b)
    check(lab.run('raw', 'sim', '--byte', '%d:' % (len(sent) - 1), '-').out == sent[-1:], 'the end')
    check(lab.run('raw', 'sim', '--byte', '%d:' % len(sent), '-').out == b'', 'behind the end')
    lab.stop()
    lab.start()
    lab.run('raw', 'sim', '-o', lab.path('back'), '--config', lab.path('back.ini'))
    with open(lab.path('back'), 'rb') as f:
        check(f.read() == sent, 'bytes differ in the file')
    # With its setup it can be pushed again, and means the same.
    lab.run('push', '--rig', 'sim-etm', '--trace', 'again', '--format', 'tpiu,sync=fsync', '--config',
            lab.path('back.ini'), lab.path('back'))
    check(lab.run('get', 'again', '--text').out == lab.run('get', 'sim', '--text').out, 'flow')


@test
def raw_in_trouble(lab):
    """Nothing is written where the bytes are not there, and it is said why and where."""
    simulated(lab, 300000)
    wait_sealed(lab, 'sim')
    out = lab.path('back')
    with open(out, 'w') as f:
        f.write('mine')
    lab.fails(3, 'no trace', 'raw', 'nothing', '-o', out)
    lab.fails(2, 'none from 900000', 'raw', 'sim', '--byte', '900000:', '-o', out)
    lab.fails(2, 'give one TRACE', 'raw', 'sim')
    segments = [os.path.join(top, name) for top, _, names in os.walk(lab.data)
                for name in names if name.endswith('.seg') and top.endswith('/sim')]
    with open(sorted(segments)[0], 'r+b') as f:
        f.seek(150000)
        f.write(b'\xff\x00' * 40)
    lab.fails(3, r'damaged or missing from offset 0x[0-9a-f]+ on', 'raw', 'sim', '-o', out)
    with open(out) as f:
        check(f.read() == 'mine', 'a refused copy changed the file')
    check(not [n for n in os.listdir(lab.dir) if n.startswith('back.')], 'a temporary is left')
    lab.alive()


if __name__ == '__main__':
    main(TESTS)
