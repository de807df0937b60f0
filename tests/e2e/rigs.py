#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Pushes over bad networks and to bad disks, and getting the rig's bytes back. usage: rigs.py BUILD [NAME…]

TL_CUTS=200: cut each push this many times, instead of 4. TL_SEED: determines where.
"""

import http.client
import json
import os
import random
import re
import socket
import ssl
import struct
import subprocess
import sys
import threading
import urllib.request

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from lab import check, free_port, main, wait  # noqa: E402
from e2e import simulated, wait_offset, wait_sealed  # noqa: E402

TESTS = {}
CUTS = int(os.environ.get('TL_CUTS', '4'))


def test(function):
    TESTS[function.__name__] = function
    return function


class Proxy:
    """Forwards TCP. Each connection in turn gets a plan: the number of bytes in both directions after which it is
    cut, and how: 'fin', 'rst', or 'swallow': it stays open and forwards nothing more. While there is no server,
    connections are closed at once."""

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
            except OSError:
                return
            try:
                server = socket.create_connection(('127.0.0.1', self.port))
            except OSError:
                client.close()
                continue
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
                    s.shutdown(socket.SHUT_RD)  # this wakes up its reader
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


class CutPush:
    """A push of the simulated capture through a proxy that cuts its connections at random positions, with default
    options."""

    def __init__(self, lab, dice, how, tls):
        # Also in the first bytes of a connection; only there must the server be reachable at first. All cuts are
        # before the capture's last byte.
        reach = min(10000, 60000 // CUTS)
        plans = [(dice.choice([dice.randrange(1, 400), dice.randrange(1, reach)]), how) for _ in range(CUTS)]
        plans[0] = (30000, how)
        self.trace = 'cut-%s%s' % (how, '-tls' if tls else '')
        self.proxy = Proxy(lab.tls_port if tls else lab.port, plans)
        server = ['--server', '%s://127.0.0.1:%d' % ('https' if tls else 'http', self.proxy.url_port)]
        self.push = lab.spawn('push', *server, *(['--insecure'] if tls else []), *described(lab), '--trace',
                              self.trace, '--chunk', '2000', '--rate', '150K', '--quiet', lab.path('raw'))

    def end(self):
        _, told = self.push.communicate(timeout=900)
        check(self.push.returncode == 0, self.trace, told.decode())
        # The server's end may have come before that of one of the plans.
        check(not self.proxy.plans and self.proxy.cuts >= CUTS - 1, self.trace, 'only', self.proxy.cuts, 'cuts')


@test
def interrupted(lab):
    """A capture is pushed in several ways at once: over connections that are closed or reset at random bytes, plain
    and with TLS, and directly, with retries and without. The server is killed under all of them and started again.
    Each push ends by itself, but for that without retries, which is run again, with identical bytes and flow."""
    dice = seeded()
    simulated(lab, 100000)
    wait_sealed(lab, 'sim')
    cut = [CutPush(lab, dice, how, tls) for how in ('fin', 'rst') for tls in (False, True)]
    with open(lab.path('raw'), 'rb') as f:
        sent = f.read()
    # One has no more input, the other is slow: both are in the middle when the server is killed.
    patient = lab.spawn('push', *described(lab), '--trace', 'patient', '--retry', '200', '-', stdin=subprocess.PIPE)
    hasty = lab.spawn('push', *described(lab), '--trace', 'hasty', '--rate', '3K', '--retry', '0', lab.path('raw'))
    try:
        patient.stdin.write(sent[:30000])
        patient.stdin.flush()
        wait_offset(lab, 'hasty', 1)
        wait_offset(lab, 'patient', 30000)
        lab.kill()
        check(hasty.wait(240) == 3, hasty.stderr.read())
        told = patient.stderr.readline()  # printed when it has noticed and begins to retry
        check(b'patient: ' in told and b'connected again' not in told, told)
        lab.start()
        check(0 < lab.offset('hasty') < 100000, lab.offset('hasty'))
        resumed = lab.run('push', *described(lab), '--trace', 'hasty', lab.path('raw'))
        check(b'going on at byte' in resumed.err, resumed)
        _, told = patient.communicate(sent[30000:], timeout=300)
        check(patient.returncode == 0 and b'connected again' in told, told)
        for one in cut:
            one.end()
    finally:
        for one in cut:
            one.proxy.close()
    flow = lab.run('get', 'sim', '--text').out
    for trace in ['patient', 'hasty'] + [one.trace for one in cut]:
        check(lab.raw(trace) == sent, trace, 'has other bytes than were sent')
        check(lab.run('get', trace, '--text').out == flow, trace, 'has another flow')


@test
def vanished_rig(lab):
    """A rig whose packets are swallowed, then its next push: it takes over at once, without waiting."""
    simulated(lab, 300000)
    proxy = Proxy(lab.port, [(None, None)])
    args = described(lab) + ['--trace', 'gone', '--rate', '100K', lab.path('raw')]
    # The image is sent before the trace.
    proxy.plans = [(60000 + os.path.getsize(lab.path('demo.elf')), 'swallow')] * 4
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
    """A push that was superseded is informed, and does not take the trace back."""
    simulated(lab, 60000)
    with open(lab.path('raw'), 'rb') as f:
        raw = f.read()
    # One notices after sending no more than the server had by then, the other with the rest.
    for trace, rest in ('quiet', b''), ('two', raw[30000:]):
        first = lab.spawn('push', *described(lab), '--trace', trace, '-', stdin=subprocess.PIPE)
        first.stdin.write(raw[:30000])
        first.stdin.flush()
        wait_offset(lab, trace, 30000)
        lab.run('push', *described(lab), '--trace', trace, lab.path('raw'))
        err = first.communicate(rest, timeout=240)[1] if rest else ended(first)
        check(first.returncode == 3, 'exit status', first.returncode, err)
        check(b'taken over' in err, 'not told:', err)
        check(lab.run('raw', trace, '-').out == raw, 'bytes differ')


def ended(process):
    """The message of a push that ends by itself while its input is open."""
    process.wait(240)
    return process.stderr.read()


@test
def folder_gone(lab):
    """The data folder disappears in the middle of a push: the server is not ready, the push waits, and then
    continues."""
    simulated(lab, 300000)
    wait_sealed(lab, 'sim')
    push = lab.spawn('push', '--chunk', '1000', '--rate', '200K', *described(lab), '--trace', 'away',
                     lab.path('raw'))
    wait_offset(lab, 'away', 20000)
    check(ready(lab) == 200, 'not ready')
    # Open files stay in the folder that was moved; a new server would not find it.
    os.rename(lab.data, lab.data + '.away')
    check(ready(lab) == 503, 'ready without a data folder')
    os.rename(lab.data + '.away', lab.data)
    check(ready(lab) == 200, 'not ready again')
    check(push.wait(240) == 0, push.stderr.read())
    with open(lab.path('raw'), 'rb') as f:
        check(lab.run('raw', 'away', '-').out == f.read(), 'bytes differ')


def ready(lab):
    with socket.create_connection(('127.0.0.1', lab.port), 5) as s:
        s.sendall(b'GET /readyz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n')
        return int(s.recv(4096).split()[1])


@test
def raw(lab):
    """The bytes of the rig are returned exactly, completely and in ranges, with their setup."""
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
    # Pushed again with its setup, they give the same result.
    lab.run('push', '--rig', 'sim-etm', '--trace', 'again', '--format', 'tpiu,sync=fsync', '--config',
            lab.path('back.ini'), lab.path('back'))
    check(lab.run('get', 'again', '--text').out == lab.run('get', 'sim', '--text').out, 'flow')


@test
def raw_in_trouble(lab):
    """If bytes are missing, nothing is written, and the reason and position are reported."""
    simulated(lab, 300000)
    wait_sealed(lab, 'sim')
    out = lab.path('back')
    with open(out, 'w') as f:
        f.write('mine')
    lab.fails(3, 'no trace', 'raw', 'nothing', '-o', out)
    lab.fails(2, 'none from 900000', 'raw', 'sim', '--byte', '900000:', '-o', out)
    lab.fails(2, 'give one TRACE', 'raw', 'sim')
    wait('it is packed', lambda: lab.segments('sim')[0].endswith('.zst'))
    with open(lab.segments('sim')[0], 'r+b') as f:
        f.seek(20000)
        f.write(b'\xff\x00' * 40)
    lab.fails(3, r'damaged or missing from offset 0x[0-9a-f]+ on', 'raw', 'sim', '-o', out)
    with open(out) as f:
        check(f.read() == 'mine', 'a refused copy changed the file')
    check(not [n for n in os.listdir(lab.dir) if n.startswith('back.')], 'a temporary is left')
    lab.alive()


# ---- the server is away ----


def content(lab, n):
    """A capture of `n` bytes in a file, with contents that differ everywhere."""
    data = random.Random(n).randbytes(n)
    with open(lab.path('input'), 'wb') as f:
        f.write(data)
    return data


@test
def cut_handshakes(lab):
    """A link that breaks during the TLS handshake is not reported as an untrusted certificate: push retries."""
    lab.start()
    with open(lab.log) as f:
        pin = re.search(r'SHA-256 (\S+)', f.read()).group(1)
    proxy = Proxy(lab.tls_port, [])
    server = ['--server', 'https://127.0.0.1:%d' % proxy.url_port, '--fingerprint', pin]
    try:
        lab.run('ls', *server)
        for n in range(50, 3000, 100):
            proxy.plans = [(n, 'fin')]
            done = subprocess.run([lab.tracelake, 'ls', *server], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            check(done.returncode in (0, 3) and b'trusted' not in done.stderr, n, done)
        sent = content(lab, 60000)
        proxy.plans = [(30000, 'fin')] + [(n, 'fin') for n in range(600, 1200, 100)]
        lab.run('push', *server, '--format', 'etm4', '--rig', 'rig', '--trace', 'cut', '--no-wait', lab.path('input'))
        check(not proxy.plans and lab.run('raw', 'cut', '-').out == sent, proxy.plans)
    finally:
        proxy.close()


@test
def half_open(lab):
    """Links that swallow bytes: a push with default options notices, and ends by itself."""
    simulated(lab, 200000)
    first = 40000 + os.path.getsize(lab.path('demo.elf'))
    proxy = Proxy(lab.port, [(first, 'swallow')])
    args = described(lab) + ['--trace', 'half', lab.path('raw')]
    try:
        done = lab.run('push', '--server', 'http://127.0.0.1:%d' % proxy.url_port, *args)
        check(b'has not answered for' in done.err, done)
        # The others use a timeout of a twentieth of the default.
        proxy.plans = [(n, 'swallow') for n in (first, 1, 30, 200, 9000, 50000)]
        args[args.index('half')] = 'half2'
        done = lab.run('push', '--timeout', '3', '--server', 'http://127.0.0.1:%d' % proxy.url_port,
                       *args)
        check(not proxy.plans, 'plans are left:', proxy.plans)
    finally:
        proxy.close()
    with open(lab.path('raw'), 'rb') as f:
        sent = f.read()
    for name in ('half', 'half2'):
        check(lab.run('raw', name, '-').out == sent, 'bytes differ')


@test
def every_byte(lab):
    """A recorded push is cut and reset after each of its bytes; then a push that completes: nothing is lost or
    repeated."""
    lab.start()
    sent = content(lab, 1200)
    what = ['--format', 'etm4', '--rig', 'rig', '--trace', 'gone', '--no-wait', lab.path('input')]
    proxy = Recorder(lab.port)
    lab.run('push', '--server', 'http://127.0.0.1:%d' % proxy.url_port, '--chunk', '100', *what)
    proxy.listener.close()
    recorded = max(proxy.recorded, key=lambda data: data.count(sent[-50:]))
    check(sent[-50:] in recorded, 'nothing was recorded')
    lab.run('rm', 'gone')
    held = []
    for i in range(1, len(recorded)):
        s = socket.create_connection(('127.0.0.1', lab.port))
        s.sendall(recorded[:i])
        if i % 2:
            s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack('ii', 1, 0))
            s.close()
        else:
            s.shutdown(socket.SHUT_WR)
            held.append(s)  # the server closes it
        if len(held) > 8:
            held.pop(0).close()
    for s in held:
        s.close()
    # A cut push that the server has not seen broken yet may take the trace from this one.
    pushed = lab.run('push', *what, status=None)
    while pushed.status == 3:
        pushed = lab.run('push', *what, status=None)
    check(pushed.status == 0, pushed)
    check(lab.run('raw', 'gone', '-').out == sent, 'bytes differ')
    lab.alive()


class Recorder(Proxy):
    """Forwards, and records what clients send."""

    def __init__(self, port):
        self.recorded = []
        super().__init__(port, [])

    def accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            try:
                server = socket.create_connection(('127.0.0.1', self.port))
            except OSError:
                client.close()
                continue
            kept = bytearray()
            self.recorded.append(kept)
            threading.Thread(target=self.copy, args=(client, server, kept), daemon=True).start()
            threading.Thread(target=self.copy, args=(server, client, None), daemon=True).start()

    def copy(self, a, b, kept):
        try:
            while True:
                data = a.recv(16384)
                if kept is not None:
                    kept += data
                if not data:
                    return b.shutdown(socket.SHUT_WR)
                b.sendall(data)
        except OSError:
            pass


@test
def no_trace_left(lab):
    """Pushes that are empty, refused, or cut before they had a name leave nothing behind."""
    lab.start()
    described = ['--format', 'etm4', '--rig', 'rig']
    lab.fails(1, r'the capture is empty', 'push', *described, '-', stdin=b'')
    lab.fails(1, r'the capture is empty', 'push', *described, '--trace', 'none', '-', stdin=b'')
    proxy = Recorder(lab.port)
    proxy.copy = lambda a, b, kept: Recorder.copy(proxy, a, b, kept) if kept is not None else None
    push = lab.spawn('push', '--server', 'http://127.0.0.1:%d' % proxy.url_port, *described, '-',
                     stdin=subprocess.PIPE)
    push.stdin.write(b'x')
    push.kill()
    push.wait()
    proxy.listener.close()
    wait('no trace is left', lambda: not json.loads(lab.run('ls', '--json').out))
    open_push = lab.spawn('push', *described, '--trace', 'open', '-', stdin=subprocess.PIPE)
    while not json.loads(lab.run('ls', '--json').out):
        check(open_push.poll() is None, 'the push ended')
    lab.kill()
    open_push.kill()
    lab.start()
    check(json.loads(lab.run('ls', '--json').out) == [], 'a trace is left behind a crash')


@test
def full_at_first(lab):
    """RESOURCE_EXHAUSTED is not final: the push reports it, waits, and continues when there is space."""
    lab.start('--min-free', '900000G')
    data = content(lab, 100000)
    push = lab.spawn('push', '--format', 'etm4', '--rig', 'rig', '--trace', 'full', '--no-wait',
                     lab.path('input'))
    said = push.stderr.readline()
    check(b'MiB are free' in said, said)
    lab.stop()
    lab.start()
    check(push.wait(240) == 0, push.stderr.read())
    check(lab.run('raw', 'full', '-').out == data, 'bytes differ')

@test
def seal(lab):
    """A live capture whose rig is gone can be ended by hand, unlike one that is being pushed; then
    it ends by itself."""
    lab.start()
    push = lab.spawn('push', '--format', 'etm4', '--rig', 'rig', '--trace', 'left', '-',
                     stdin=subprocess.PIPE)
    push.stdin.write(b'x' * 5000)
    push.stdin.flush()
    wait_offset(lab, 'left', 5000)
    lab.fails(3, r'left is being pushed by rig rig', 'seal', 'left')
    lab.fails(3, r'no trace', 'seal', 'nothing')
    push.kill()
    push.wait()
    state = lambda: json.loads(lab.run('ls', '--json', 'left').out)[0]['state']
    wait('the server lets go of a push that is gone',
         lambda: subprocess.run([lab.tracelake, 'seal', 'left'], env=lab.environment(),
                                stderr=subprocess.DEVNULL).returncode == 0)
    wait_sealed(lab, 'left')
    lab.run('seal', 'left')
    lab.fails(3, 'complete on the server with 5000 bytes', 'push', '--format', 'etm4', '--rig', 'rig',
              '--trace', 'left', '-', stdin=b'x' * 6000)
    lab.stop()
    lab.start('--seal-after', '1s')
    push = lab.spawn('push', '--format', 'etm4', '--rig', 'rig', '--trace', 'auto', '-',
                     stdin=subprocess.PIPE)
    push.stdin.write(b'y' * 5000)
    push.stdin.flush()
    wait_offset(lab, 'auto', 5000)
    push.kill()
    wait_sealed(lab, 'auto')
    check(lab.run('raw', 'auto', '-').out == b'y' * 5000, 'bytes differ')
    check(state() == 'sealed', state())

@test
def message_stays(lab):
    """Errors in a capture are still reported after a restart of the server, as is that it ends anywhere."""
    simulated(lab, 3000)
    with open(lab.path('raw'), 'rb') as f:
        raw = f.read()
    def message(trace):
        return json.loads(lab.run('ls', '--json', trace).out)[0]['message']
    lab.run('push', *described(lab), '--trace', 'hurt', '-', stdin=raw[:600] + raw[603:], status=1)
    lab.run('push', *described(lab), '--trace', 'cut', '-', stdin=raw[:1234])
    before = message('hurt'), message('cut')
    check(': offset 0x' in before[0] and 'ends within a packet' not in before[0], before)
    check('ends within a packet' in before[1], before)
    lab.stop()
    lab.start()
    check((message('hurt'), message('cut')) == before, 'forgotten')

def follow_through(lab, ports):
    """A push and a tail while the server is killed and restarted on one port after another: the output is the stream,
    once."""
    simulated(lab, 60000)
    lab.servers = ','.join('http://127.0.0.1:%d' % port for port in ports)
    with open(lab.path('raw'), 'rb') as f:
        raw = f.read()
    push = lab.spawn('push', *described(lab), '--trace', 'live', '-', stdin=subprocess.PIPE)
    push.stdin.write(raw[:20000])
    push.stdin.flush()
    wait_offset(lab, 'live', 20000)
    with open(lab.path('tail'), 'wb') as out:
        tail = subprocess.Popen([lab.tracelake, 'tail', 'live/cs.10', '--from', '0'],
                                env=lab.environment(), stdout=out, stderr=subprocess.PIPE)
    lab.children.append(tail)
    for i, at in enumerate(range(20000, len(raw), 15000)):
        def printed():
            check(tail.poll() is None, 'the tail ended')
            return os.path.getsize(lab.path('tail')) >= at
        wait('text of the tail', printed)
        lab.kill()
        lab.port = ports[(i + 1) % len(ports)]
        lab.start()
        push.stdin.write(raw[at:at + 15000])
        push.stdin.flush()
    push.stdin.close()
    check(tail.wait(240) == 0, tail.stderr.read())
    with open(lab.path('tail'), 'rb') as f:
        check(f.read() == lab.run('get', 'live/cs.10', '--text').out, 'the text differs')
    check(lab.raw('live') == raw, 'raw bytes differ')


@test
def servers_change(lab):
    """Of three servers on one folder one at a time is running; the next one starts when it is killed."""
    follow_through(lab, [lab.port, free_port(), free_port()])


@test
def tail_goes_on(lab):
    follow_through(lab, [lab.port])
    lab.fails(3, 'it has no stream cs.99.*\n.*it has stream cs.10', 'tail', 'live/cs.99')


def itm(port, data):
    return bytes([port << 3 | {1: 1, 2: 2, 4: 3}[len(data)]]) + data


@test
def lines(lab):
    """Text that a program prints through ITM becomes lines with times, and everything else numbers."""
    lab.start()
    sync, stamp = bytes(5) + b'\x80', b'\xc0\x64'
    data = sync + itm(0, b'H') + itm(0, b'ello') + stamp + itm(0, b'\n') + itm(1, b'\x78\x56\x34\x12')
    data += itm(0, b'two\n') + itm(2, b'\x1b') + itm(0, b'open') + stamp
    with open(lab.path('itm'), 'wb') as f:
        f.write(data)
    lab.run('push', '--format', 'itm,id=1', '--rig', 'r', '--trace', 't', lab.path('itm'))
    rows = lab.run('get', 't', '--lines').text().splitlines()
    check([r.split(' ', 1)[1] for r in rows[1:]] ==
          ['itm 0 Hello', 'itm 1 0x12345678', 'itm 0 two', 'itm 2 0x1b', 'itm 0 open'], rows)
    check(rows[0].startswith('# stream '), rows)
    times = [r.split()[0] for r in rows[1:]]
    # A local timestamp is of what stands in front of it.
    check(times == ['100', '200', '200', '200', '200'], times)
    stream = rows[0].split()[2]
    tail = lab.run('tail', 't/' + stream, '--from', '0', '--lines').text().splitlines()
    check(tail[-5:] == rows[1:], tail)

def same_in_all_forms(lab, stream):
    """Flow text, with assembly, and JSON contain the same."""
    part = ['sim/' + stream, '--insn', '1000:1400']
    plain = lab.run('get', *part, '--text').text().splitlines()
    shown = lab.run('get', *part, '--text', '--disasm').text().splitlines()
    check([row.split('  ')[0].partition(' <')[0] for row in shown] == plain, shown[:5])
    code = [row.split('  ')[1] for row in shown if row.startswith('I ')]
    listed = lab.run('get', *part, '--format', 'disasm').text().splitlines()
    check(len(code) >= 400 and code == [row.split(' ', 3)[3] for row in listed] and ' <' in code[0], code[:5])
    # Of a file there are no names.
    lab.run('get', *part, '-o', lab.path('part.stf'))
    dumped = lab.run('dump', '--format', 'disasm', lab.path('part.stf')).text().splitlines()
    check(dumped == [re.sub(r' <.*>$', '', row) for row in listed], dumped[:5])
    rows = [json.loads(row) for row in lab.run('get', *part, '--format', 'ndjson').text().splitlines()]
    check([(r['kind'] + ' ' + r.get('text', '')).strip() for r in rows] == plain[1:], rows[:5])
    check(all(r['stream'] == stream for r in rows) and rows == [
        dict(item, stream=stream) for item in json.loads(lab.run('get', *part, '--json').text())['items']], rows[:5])
    insn = next(r for r in rows if r['kind'] == 'I')
    check([int(insn['pc'], 16), insn['encoding']] == [int(insn['text'].split()[0], 16), insn['text'].split()[1]], insn)

def slow_over_tls(lab):
    """A client that reads slowly, with a small window, gets every byte."""
    path = '/api/v1/traces/sim/streams/cs.10/range?format=text&to=40000'
    with urllib.request.urlopen(lab.url + path, timeout=240) as reply:
        whole = reply.read()
    trust = ssl.create_default_context()
    trust.check_hostname, trust.verify_mode = False, ssl.CERT_NONE
    with socket.socket() as s:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
        s.settimeout(240)
        s.connect(('127.0.0.1', lab.tls_port))
        connection = http.client.HTTPConnection('localhost')
        connection.sock = trust.wrap_socket(s)
        connection.request('GET', path)
        reply, got = connection.getresponse(), b''
        while piece := reply.read(30001):
            got += piece
        check(len(whole) > 1000000 and got == whole, len(got), 'of', len(whole))
        connection.close()

@test
def said_well(lab):
    """Messages for users: progress on a terminal but not in a pipe; ends of streams; errors."""
    simulated(lab, 60000)
    wait_sealed(lab, 'sim')
    same_in_all_forms(lab, 'cs.10')
    slow_over_tls(lab)
    with urllib.request.urlopen(lab.url + '/api/v1/traces/sim', timeout=240) as reply:
        row = json.load(reply)
    listed = json.loads(lab.run('ls', '--json', 'sim').text())[0]
    check(listed == {k: v for k, v in row.items() if k in listed} and listed['streams'][0] == row['streams'][0] and
          row.keys() - listed.keys() == {'notes', 'tile_base'}, listed)
    with urllib.request.urlopen(lab.url + '/api/v1/images', timeout=240) as reply:
        images = json.load(reply)
    check(images and json.loads(lab.run('images', '--json').text()) == images, images)
    rules = json.loads(lab.run('retain', '--label', 'a=b', '--raw', '30d,2G', '--json').text())
    check(rules == [{'scope': 'label a=b', 'raw_age_s': 30 * 86400, 'raw_bytes': 2 << 30, 'decoded_age_s': 0,
                     'decoded_bytes': 0}], rules)
    found = json.loads(lab.run('verify', 'sim', '--json').text())
    check(found == {'id': 'sim', 'trace': 'sim', 'findings': 0, 'report': ''}, found)
    quiet = lab.run('get', 'sim/cs.10', '--insn', '0:999999999', '-o', lab.path('a.zstf'))
    check(quiet.err.count(b'\n') == 1 and b'the stream ends at instruction' in quiet.err, quiet)
    for args in (['--text'], ['--format', 'pc'], ['-o', lab.path('behind.zstf')]):
        lab.fails(1, 'nothing is there from 99999999 on', 'get', 'sim/cs.10', '--insn', '99999999:', *args)
    lab.fails(1, 'no instruction has its trace in bytes', 'get', 'sim/cs.10', '--byte', '99999999:100000000',
              '-o', lab.path('behind.stf'))
    lab.fails(1, 'no instruction has its trace in time', 'get', 'sim/cs.10', '--time', '999999999999999:', '--text')
    lab.fails(1, 'only', 'slice', lab.path('a.zstf'), '--insn', '99999999:', '-o', lab.path('behind.zstf'))
    check(not [name for name in os.listdir(lab.dir) if name.startswith('behind')], 'an empty file')
    check(b'several streams' in lab.run('get', 'sim', '--format', 'pc', status=2).err, 'streams run into one')
    table = lab.run('stats', 'sim/cs.10').text()
    check(re.search(r'^ *\d+ instructions, 0 to \d+$', table, re.M) and 'mac_block' in table, table)
    check(json.loads(lab.run('stats', 'sim/cs.10', '--json').text())['insns'] > 0, 'no JSON')
    for limit, least, most in ('0', 102, 100000), ('100', 100, 101):
        found = lab.run('find', 'sim/cs.10', '--symbol', 'mac_block', '--limit', limit).out.splitlines()
        check(least <= len(found) <= most, 'limit', limit, len(found))
    lab.fails(2, "unknown command 'nope'", 'help', 'nope')
    lab.fails(1, r'^tracelake: /nowhere: No such file', 'images', '/nowhere')
    with open(lab.path('sim.ini')) as f:
        ini = f.read()
    with open(lab.path('odd.ini'), 'w') as f:
        f.write(ini + '\nfoo=bar\n')
    lab.fails(1, r"odd.ini: line \d+: key 'foo' is not known", 'decode', '--format', 'tpiu,sync=fsync',
              '--config', lab.path('odd.ini'), '--text', lab.path('raw'))
    with open(lab.path('typo.ini'), 'w') as f:
        f.write(ini.replace('TRCCONFIGR', 'TRCCONFGR'))
    said = lab.run('decode', '--format', 'tpiu,sync=fsync', '--config', lab.path('typo.ini'), '--packets', lab.path('raw'))
    check(b'typo.ini: [source cs.10]: unknown register TRCCONFGR is ignored; did you mean TRCCONFIGR?' in said.err, said.err)
    with open(lab.path('whole.ini'), 'w') as f:
        f.write('[trace]\nformat=tpiu,sync=fsync\n' + ini.replace('[trace]\n', ''))
    said = lab.run('decode', '--config', lab.path('whole.ini'), '--packets', lab.path('raw'))
    check(said.out == lab.run('decode', '--format', 'tpiu,sync=fsync', '--config', lab.path('sim.ini'),
                              '--packets', lab.path('raw')).out, 'format= of the file counts')
    whole = lab.run('decode', '--config', lab.path('whole.ini'), '--image', lab.path('demo.elf'),
                    '--text', lab.path('raw')).out
    one = lab.run('decode', '--config', lab.path('whole.ini'), '--image', lab.path('demo.elf'),
                  '--stream', 'cs.12', '--text', lab.path('raw')).out
    check(one == whole[whole.index(b'# stream cs.12'):], 'one stream of several')
    packets = lab.run('decode', '--config', lab.path('whole.ini'), '--stream', 'cs.12', '--packets',
                      lab.path('raw')).out
    check({row.split()[1] for row in packets.splitlines()} == {b'12'} and packets.count(b'\n') ==
          sum(row.split()[1] == b'12' for row in said.out.splitlines()), 'packets of one stream')
    packets_beside_flow(lab, said.out, whole)
    tail = ['sim/cs.10', '--disasm', '--symbols', lab.path('demo.elf')]
    check(lab.run('tail', *tail, '--from', '0').out == lab.run('get', *tail, '--text').out,
          'tail and get say the same with assembly')
    lab.fails(2, 'go with flow text', 'tail', *tail, '--lines')
    progress_is_shown(lab)


def packets_beside_flow(lab, packets, text):
    """Packets, their bytes, and what was decoded from them: each part is as it is alone."""
    both = lab.run('decode', '--config', lab.path('whole.ini'), '--image', lab.path('demo.elf'),
                   '--packets', '--text', '--raw-bytes', lab.path('raw')).out.splitlines()
    bare = [re.sub(b' raw=.*', b'', row) for row in both if not row.startswith(b'  ')]
    check(sorted(bare) == sorted(packets.splitlines()), 'packets')
    offsets = [int(row.split()[0]) for row in bare]
    check(offsets == sorted(offsets), 'in the order of the capture')
    for stream in text.split(b'# stream ')[1:]:
        name, rest = stream.split(b'\n', 1)
        head = b'  ' + name + b' '
        check([row[len(head):] for row in both if row.startswith(head)] == rest.splitlines(), name)
    with open(lab.path('raw'), 'rb') as f:
        raw = f.read()
    shown = [row.split(b' raw=') for row in both if b' raw=' in row]
    check(len(shown) > 1000, len(shown))
    for packet, data in shown:
        # The lowest bit of a byte in a frame may be in the frame's last byte.
        check(raw[int(packet.split()[0])] | 1 == bytes.fromhex(data[:2].decode())[0] | 1, packet)
    sync = b'0' * 22 + b'80'
    check({data for packet, data in shown if packet.endswith(b' I_ASYNC')} == {sync}, 'A-Sync')
    lab.fails(2, '--raw-bytes goes with --packets', 'decode', '--raw-bytes', '--text', lab.path('raw'))


def progress_is_shown(lab):
    """Run a push that takes over a second, with a terminal as standard error."""
    try:
        ours, theirs = os.openpty()
    except OSError as e:
        print('skipped: progress on a terminal, of which there are none here:', e)
        return
    push = subprocess.Popen([lab.tracelake, 'push', *described(lab), '--trace', 'slow', '--rate', '40K',
                             lab.path('raw')], env=lab.environment(), stdout=subprocess.PIPE,
                            stderr=theirs)
    os.close(theirs)
    lab.children.append(push)
    shown = b''
    while True:
        try:
            shown += os.read(ours, 4096)
        except OSError:
            break
    os.close(ours)
    check(push.wait(240) == 0 and re.search(rb'slow: \d\.\d of 0\.1 MiB, \d+ %', shown), shown)


if __name__ == '__main__':
    main(TESTS)
