#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Three servers and three OSDs, one of which is killed at random again and again, while rigs push and readers read:
no byte is lost or stored twice, and no range is wrong. TL_KILLS=300 sets the number of kills (default 8), TL_SEED the
random seed (`random`: a new one); the longest pauses are printed.
TL_BUILD=$PWD/build TL_RADOS_OSDS=3 tests/rados/with_cluster.sh tests/rados/kills.py
"""
import ctypes
import json
import os
import random
import signal
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'e2e'))
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from lab import Lab, check, wait  # noqa: E402
from rados import Pool, osd_process, rows, status  # noqa: E402

KILLS = int(os.environ.get('TL_KILLS', 8))
GIVEN = os.environ.get('TL_SEED', '0x1234567')
SEED = int(time.time()) if GIVEN == 'random' else int(GIVEN, 0)
RIGS = 3
OSDS = int(os.environ['TL_RADOS_OSDS'])
A_CAPTURE = 10  # kills during a capture
PIECE = 8192
TAKEOVER_S = 5  # longer pauses are explained in the output

chance = random.Random(SEED)


def start(server):
    """Start a server without waiting for it, since the cluster may not answer now."""
    with open(server.log, 'ab') as log:
        server.server = subprocess.Popen(server.command, stdout=log, stderr=log)


def start_osd(i):
    with open(os.path.join(os.environ['TL_RADOS_DIR'], 'log', 'osd.%d.out' % i), 'ab') as log:
        child = subprocess.Popen(['ceph-osd', '-f', '-i', str(i)], stdout=log, stderr=log)
    with open(os.path.join(os.environ['TL_RADOS_DIR'], 'osd.%d.pid' % i), 'w') as f:
        f.write('%d' % child.pid)
    osds[i] = child


osds = {}


def kill_osd(i):
    os.kill(osd_process(i), signal.SIGKILL)
    if i in osds:
        osds[i].wait()


class Rig(threading.Thread):
    """Pushes a capture slowly through a pipe."""

    def __init__(self, lab, name, data, servers):
        super().__init__(daemon=True)
        self.name, self.data, self.over = name, data, threading.Event()
        self.sent = 0
        self.log = open(lab.path(name + '.log'), 'w+')
        self.child = subprocess.Popen(
            [lab.tracelake, 'push', '--format', 'itm,id=0', '--rig', name, '--trace', name, '-'],
            env=dict(os.environ, TRACELAKE_SERVER=','.join(servers)),
            stdin=subprocess.PIPE, stdout=self.log, stderr=self.log)
        self.start()

    def run(self):
        while self.sent < len(self.data):
            n = len(self.data) if self.over.is_set() else PIECE
            try:
                self.child.stdin.write(self.data[self.sent:self.sent + n])
                self.child.stdin.flush()
            except BrokenPipeError:
                return
            self.sent += n
            self.over.wait(0.1)
        self.child.stdin.close()

    def told(self):
        with open(self.log.name) as f:
            return f.read()

    def ends(self):
        self.over.set()
        status = self.child.wait(300)
        check(status == 0, self.name, 'ended with', status, self.told())


class Reader(threading.Thread):
    """Reads ranges of durable data from whichever server answers."""

    def __init__(self, servers, rigs):
        super().__init__(daemon=True)
        self.servers, self.rigs, self.over = servers, rigs, threading.Event()
        self.wrong, self.right, self.refused = [], 0, 0
        self.start()

    def run(self):
        pick = random.Random(SEED + 1)
        while not self.over.is_set():
            server, rig = pick.choice(self.servers), pick.choice(self.rigs)
            try:
                there = rows(server)[rig.name]['raw_bytes']
                first = pick.randrange(max(1, there))
                last = min(there, first + 50000)
                got = subprocess.run(
                    [server.tracelake, 'raw', rig.name, '--byte', '%d:%d' % (first, last), '-'],
                    env=server.environment(), capture_output=True, timeout=60)
            except (OSError, KeyError, subprocess.TimeoutExpired):
                self.refused += 1
                time.sleep(0.05)
                continue
            if got.returncode != 0:
                self.refused += 1
            elif got.stdout != rig.data[first:last]:
                self.wrong.append('%s [%d, %d) at %s' % (rig.name, first, last, server.url))
            else:
                self.right += 1


def durable(servers, name):
    """The number of durable bytes, from a server that answers."""
    most = 0
    for s in servers:
        try:
            most = max(most, rows(s)[name]['raw_bytes'])
        except (OSError, KeyError):
            pass
    return most


def wait_grown(servers, rig, to):
    """Wait until this much of a trace is durable."""
    wait('%s has %d bytes' % (rig.name, to), lambda: durable(servers, rig.name) >= min(to, len(rig.data)),
         lambda: [s.server_log()[-600:] for s in servers])


GROUPS = 8  # placement groups of the pool, see with_cluster.sh


class Cluster:
    """The cluster, asked through librados: starting 'ceph' takes longer than the answer."""

    def __init__(self):
        self.lib, self.handle = ctypes.CDLL('librados.so.2'), ctypes.c_void_p()
        self.call('create', ctypes.byref(self.handle), None)
        self.call('conf_read_file', self.handle, None)
        for name, value in (b'rados_osd_op_timeout', b'10'), (b'admin_socket', b''):
            self.call('conf_set', self.handle, name, value)
        self.call('connect', self.handle)

    def call(self, name, *args):
        status = getattr(self.lib, 'rados_' + name)(*args)
        check(status == 0, name, os.strerror(-status))

    def state(self, group):
        """The state of a placement group; otherwise why it does not tell."""
        out, size = ctypes.c_void_p(), ctypes.c_size_t()
        query = (ctypes.c_char_p * 1)(b'{"prefix": "query", "pgid": "1.%d"}' % group)
        status = self.lib.rados_pg_command(self.handle, b'1.%d' % group, query, ctypes.c_size_t(1), None,
                                           ctypes.c_size_t(0), ctypes.byref(out), ctypes.byref(size), None, None)
        told = ctypes.string_at(out, size.value) if out else b''
        self.lib.rados_buffer_free(out)
        return json.loads(told)['state'] if status == 0 else os.strerror(-status)

    def states(self):
        return [self.state(i) for i in range(GROUPS)]

    def whole(self):
        """Is everything fully replicated? Then one fault is tolerated."""
        return all(self.state(i) == 'active+clean' for i in range(GROUPS))


def some_kills(cluster, servers, rigs, n, pauses):
    for _ in range(n):
        what = chance.choice(['server', 'server', 'osd'])
        # With two copies the cluster tolerates one fault at a time. Sometimes two are injected, and the only
        # requirement is that nothing is lost.
        beside = chance.randrange(4) == 0 and not cluster.whole()
        if not beside:
            wait('everything has its copies', cluster.whole, cluster.states)
        i = chance.randrange(len(servers) if what == 'server' else OSDS)
        if what == 'server':
            servers[i].kill()
        else:
            kill_osd(i)
        begun = time.monotonic()
        # An OSD always comes back: it may have the only copy of what was written while another one was away.
        timer = threading.Timer(chance.random() * 5, start if what == 'server' else start_osd,
                                [servers[i] if what == 'server' else i])
        timer.start()
        for rig, to in [(rig, rig.sent + 2 * PIECE) for rig in rigs]:
            wait_grown(servers, rig, to)
        took = time.monotonic() - begun
        pauses.setdefault(what + ' beside an OSD that has come back' * beside, []).append(took)
        print('%s %d%s: all rigs go on after %.1f s' % (what, i, ' beside an OSD' * beside, took), flush=True)
        if what == 'server' and took > TAKEOVER_S:
            print('\n'.join('%s: %s' % (r.name, r.told()) for r in rigs))
            print('\n'.join('%s: %s' % (s.url, s.server_log()[-4000:]) for s in servers), flush=True)
        timer.join()
        more = chance.randrange(4) * PIECE  # the next kill happens at another position
        wait_grown(servers, rigs[0], rigs[0].sent + more)


def answers(server):
    """Is it ready? A server that exited because the cluster did not answer is restarted, as systemd would."""
    if server.server.poll() is not None:
        print('%s had ended: %s' % (server.url, server.server_log()[-200:]), flush=True)
        start(server)
    try:
        return status(server.url + '/readyz') == 200
    except OSError:
        return False


def ends_well(servers, rigs, expected):
    for s in servers:
        wait(s.url + ' is ready', lambda: answers(s), s.server_log)
    for rig in rigs:
        for s in servers:
            wait('%s is sealed at %s' % (rig.name, s.url),
                 lambda: rows(s).get(rig.name, {}).get('state') == 'sealed' and rows(s)[rig.name]['content'],
                 lambda: (rows(s).get(rig.name), s.server_log()))
        s = chance.choice(servers)
        check(s.run('raw', rig.name, '-').out == rig.data, 'other raw bytes of', rig.name)
        stream = rows(s)[rig.name]['streams'][0]['name']
        check(s.run('get', rig.name + '/' + stream, '--text', '--insn', '0:100000000').text() == expected[rig.name],
              'another text of', rig.name)
    check('0 findings' in chance.choice(servers).run('verify', '--all').text())


def main():
    lab = Lab(os.environ['TL_BUILD'])
    pool = Pool(lab)
    cluster = Cluster()
    pauses = {}
    print('seed', SEED, flush=True)
    try:
        servers = [pool.server() for _ in range(3)]
        for s in servers:
            s.command = [s.tracelake, 'serve', '--data', s.data, '--listen', '127.0.0.1:%d' % s.port,
                         '--listen-tls', '127.0.0.1:%d' % s.tls_port, '--store', pool.store,
                         '--shard-insns', '65536']
        urls = [s.url for s in servers]
        left, capture = KILLS, 0
        while left > 0:
            rigs, expected = [], {}
            for k in range(RIGS):
                name = 'c%d.%d' % (capture, k)
                data = b'\0\0\0\0\0\x80' + bytes(
                    b for i in range(2000000) for b in (0x09, (i * 7 + k + capture) % 251))
                path = lab.path('data')
                with open(path, 'wb') as f:
                    f.write(data)
                expected[name] = lab.run('decode', '--format', 'itm,id=0', '--text', path).text()
                rigs.append(Rig(lab, name, data, urls[k % 3:] + urls[:k % 3]))
            reader = Reader(servers, rigs)
            some_kills(cluster, servers, rigs, min(left, A_CAPTURE), pauses)
            left -= A_CAPTURE
            for rig in rigs:
                rig.ends()
            reader.over.set()
            reader.join()
            check(not reader.wrong, 'wrong ranges:', reader.wrong)
            print('capture %d: %d ranges right, %d refused' % (capture, reader.right, reader.refused), flush=True)
            ends_well(servers, rigs, expected)
            for rig in rigs:
                chance.choice(servers).run('rm', rig.name)
            capture += 1
        for what, took in pauses.items():
            took.sort()
            print('%d kills of a %s: half of the pauses up to %.1f s, the longest %.1f s' % (
                len(took), what, took[len(took) // 2], took[-1]))
    finally:
        pool.close()
        lab.close()


main()
