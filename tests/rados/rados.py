#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Several servers on one pool of the Ceph cluster given by TL_RADOS. usage: rados.py BUILD [NAME…]

`together`: all tests that do not disturb the cluster, at the same time; `alone`: the others.
"""

import json
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request

TOP = os.path.join(os.path.dirname(os.path.abspath(__file__)), '..')
sys.path[:0] = [os.path.join(TOP, 'e2e'), os.path.join(TOP, 'perf')]
from lab import DATA, Lab, Skip, check, main, snapshot, wait  # noqa: E402
import perffile  # noqa: E402

TESTS, ALONE = {}, {}


def test(function):
    TESTS[function.__name__] = function
    return function


def alone(function):
    """Marks a test that stops or fills the cluster."""
    ALONE[function.__name__] = function
    return function


class Pool:
    """Servers on a namespace of their own."""

    made = 0

    def __init__(self, lab):
        if 'TL_RADOS' not in os.environ:
            raise Skip('no cluster: TL_RADOS is not set')
        self.lab = lab
        Pool.made += 1
        self.store = '%s&namespace=e2e-%d-%d&index=16&lease=2' % (
            os.environ['TL_RADOS'], os.getpid(), Pool.made)
        self.servers = []

    def server(self, *options):
        """Start another server, as a lab of its own."""
        s = Lab(self.lab.build)
        self.servers.append(s)
        s.start('--store', self.store, '--shard-insns', '65536', *options)
        return s

    def close(self):
        for s in self.servers:
            if s.server and s.server.poll() is None:
                s.server.send_signal(signal.SIGCONT)
            s.close()


def osd_process(i):
    """The process of an OSD of the test's own cluster."""
    if 'TL_RADOS_DIR' not in os.environ:
        raise Skip('no OSD to be stopped: TL_RADOS_DIR is not set')
    with open(os.path.join(os.environ['TL_RADOS_DIR'], 'osd.%d.pid' % i)) as f:
        return int(f.read())


def get(server, path):
    with urllib.request.urlopen(server.url + path, timeout=60) as answer:
        return answer.read()


def leases(server):
    """The number of traces whose lease the server holds."""
    return int(get(server, '/metrics').decode().split('\ntracelake_leases_held ')[1].split()[0])


def rows(server):
    return {t['id']: t for t in json.loads(get(server, '/api/v1/traces'))}


def sealed(server, trace):
    wait(trace + ' is sealed and hashed',
         lambda: rows(server).get(trace, {}).get('state') == 'sealed' and rows(server)[trace]['content'],
         lambda: (rows(server), server.server_log()))


def text(server, stream):
    return server.run('get', stream, '--insn', '0:100000000', '--text').text()


def capture(lab, n=1500000):
    """Software trace that needs no setup, and its text."""
    path = lab.path('itm')
    with open(path, 'wb') as f:
        f.write(b'\0\0\0\0\0\x80' + bytes(b for i in range(n) for b in (0x09, i & 255)))
    return path, lab.run('decode', '--format', 'itm,id=0', '--text', path).text()


PUSH = ('push', '--format', 'itm,id=0', '--rig', 'bench', '--trace', 't')


def begin(lab, server, path, size):
    """A push that stays open once the server has `size` durable bytes."""
    child = server.spawn(*PUSH, '-', stdin=subprocess.PIPE)
    with open(path, 'rb') as f:
        child.stdin.write(f.read(size))
        child.stdin.flush()
    wait('durable bytes', lambda: rows(server).get('t', {}).get('raw_bytes', 0) >= size)
    return child


def ends_well(path, expected, *servers):
    """Check that the whole trace is stored exactly once, at every server."""
    with open(path, 'rb') as f:
        whole = f.read()
    for s in servers:
        sealed(s, 't')
        check(s.run('raw', 't', '-').out == whole, 'other raw bytes at', s.url)
        check(s.run('get', 't/' + rows(s)['t']['streams'][0]['name'], '--text', '--insn', '0:100000000').text() == expected, s.url)
    check('0 findings' in servers[-1].run('verify', '--all').text())


@test
def two_servers(lab):
    """A trace pushed to one server is served, labelled, decoded again, verified and deleted at the other."""
    pool = Pool(lab)
    try:
        a, b = pool.server(), pool.server()
        a.run('push', '--snapshot', snapshot('juno_r1_1'), '--trace', 'juno')
        sealed(b, 'juno.ETB_0')
        check(text(a, 'juno.ETB_0/cs.10') == text(b, 'juno.ETB_0/cs.10'))
        b.run('label', 'juno.ETB_0', 'who=b')
        wait('the label', lambda: rows(a)['juno.ETB_0']['labels'].get('who') == 'b')
        before = rows(a)['juno.ETB_0']['generation']
        b.run('redecode', 'juno.ETB_0')
        wait('a new generation', lambda: rows(a)['juno.ETB_0']['generation'] != before)
        sealed(a, 'juno.ETB_0')
        check(text(a, 'juno.ETB_0/cs.10') == text(b, 'juno.ETB_0/cs.10'))
        check('0 findings' in a.run('verify', '--all').text())
        b.run('rm', 'juno.ETB_1')
        wait('it is gone', lambda: 'juno.ETB_1' not in rows(a))
        # The name is free again, and both servers know the new trace.
        a.run('push', '--snapshot', snapshot('juno_r1_1'), '--trace', 'juno', '--buffer', 'ETB_1')
        sealed(b, 'juno.ETB_1')
        check('0 findings' in b.run('verify', '--all').text())
    finally:
        pool.close()


@test
def image_at_the_other_server(lab):
    """An image that a live trace lacks is uploaded to a server that does not own the trace: it is decoded with it
    nevertheless."""
    path = os.path.join(DATA, 'perf', 'pt', 'pt-one-cpu.data')
    if not os.path.exists(path):
        raise Skip('no ' + path)
    pool = Pool(lab)
    try:
        a, b = pool.server(), pool.server()
        with open(path, 'rb') as f:
            piped = perffile.as_pipe(f.read())
        child = a.spawn('push', '--format', 'perf,threads=no,events=no', '--symfs', '/nowhere', '--buildid-dir',
                        '/nowhere', '--trace', 't', '-', stdin=subprocess.PIPE)
        child.stdin.write(piped[:-100])
        child.stdin.flush()
        wait('the other server knows the trace', lambda: 't' in rows(b))
        b.run('images', os.path.join(DATA, 'perf', 'symfs/opt/demo/stroll'))
        child.stdin.write(piped[-100:])
        child.stdin.close()
        check(child.wait(120) == 0, child.stderr.read())

        def executed(server):
            row = rows(server)['t']
            return row['state'] == 'sealed' and sum(int(s['insns']) for s in row['streams'] if s['name'] == 'pt.0')
        for server in a, b:
            wait('it is decoded with the image', lambda: executed(server), lambda: rows(server)['t'])
        check(executed(a) == executed(b) > 100000, rows(a), rows(b))
    finally:
        pool.close()


def take_over(lab, hurt, heal):
    """A rig continues at another server, whatever happened to the first one."""
    pool = Pool(lab)
    try:
        path, expected = capture(lab)
        a, b = pool.server(), pool.server()
        hung = begin(lab, a, path, 1 << 20)
        wait('b shows it', lambda: 't' in rows(b))
        hurt(a)
        begun = time.monotonic()
        b.run(*PUSH, path)
        print('taken over and pushed in %.1f s' % (time.monotonic() - begun))
        heal(a)
        ends_well(path, expected, *([a, b] if a.server else [b]))
        hung.kill()
    finally:
        pool.close()


@test
def over_from_a_live_server(lab):
    take_over(lab, lambda a: None, lambda a: None)


@test
def over_from_a_killed_server(lab):
    take_over(lab, lambda a: a.kill(), lambda a: None)


@test
def over_from_a_stopped_server(lab):
    """The first server resumes after its lease has expired, with bytes in memory, and cannot write anything."""
    take_over(lab, lambda a: a.server.send_signal(signal.SIGSTOP),
              lambda a: a.server.send_signal(signal.SIGCONT))


@test
def left_to_one_that_is_killed(lab):
    """A server that handed a trace to another one takes it back when that one is gone."""
    pool = Pool(lab)
    try:
        path, _ = capture(lab, 100000)
        a, b = pool.server(), pool.server()
        begin(lab, a, path, 1 << 16).kill()
        begin(lab, b, path, 1 << 17).kill()
        wait('b has it alone', lambda: (leases(a), leases(b)) == (0, 1))
        b.kill()
        wait('a has it again', lambda: leases(a) == 1)
    finally:
        pool.close()


@test
def follow_elsewhere(lab):
    """A push to one server can be followed at another one, instruction by instruction, long before a shard is
    complete; when the other server takes over the trace, nothing is repeated."""
    pool = Pool(lab)
    try:
        path, expected = capture(lab, 30000)
        with open(path, 'rb') as f:
            data = f.read()
        a, b = pool.server(), pool.server()
        push = a.spawn(*PUSH, '-', stdin=subprocess.PIPE)
        at, took = 6 + 2 * 1000, []
        push.stdin.write(data[:at])
        push.stdin.flush()
        wait('b shows a stream', lambda: rows(b).get('t', {}).get('streams'))
        stream = 't/' + rows(b)['t']['streams'][0]['name']
        told = lab.path('tail')
        with open(told, 'wb') as out:
            tail = subprocess.Popen([b.tracelake, 'tail', stream, '--from', '0'], env=b.environment(), stdout=out,
                                    stderr=subprocess.PIPE)
        b.children.append(tail)

        def lines():
            with open(told, 'rb') as f:
                return f.read().count(b'\nS ')
        wait('the first text', lambda: lines() == 1000, lines)
        for i in range(1, 21):
            push.stdin.write(data[at:at + 200])
            push.stdin.flush()
            at += 200
            begun = time.monotonic()
            wait('text of what came last', lambda: lines() == 1000 + 100 * i, lines)
            took.append(time.monotonic() - begun)
        took.sort()
        print('followed at the other server within %.0f ms in the median, %.0f at most' % (
            1000 * took[10], 1000 * took[-1]))
        push.stdin.write(data[at:])
        push.stdin.close()
        check(push.wait(60) == 0, push.stderr.read())
        check(tail.wait(60) == 0, tail.stderr.read())
        with open(told) as f:
            check(f.read() == expected, 'the tail tells something else')
        ends_well(path, expected, a, b)
    finally:
        pool.close()


def objects(pool, *args):
    """The output of Ceph's own tool for the store's objects."""
    namespace = pool.store.split('namespace=')[1].split('&')[0]
    return subprocess.run(['rados', '-p', 'trace', '-N', namespace, *args], check=True, timeout=60,
                          stdout=subprocess.PIPE).stdout.decode()


def make_older(pool):
    """Convert the store to the layout before traces were indexed by age and content. Returns the
    object with trace t."""
    of_t = None
    for i in range(16):
        name = 'index.%d' % i
        for key in objects(pool, 'listomapkeys', name).split():
            if key[:2] in ('A/', 'S/'):
                objects(pool, 'rmomapkey', name, key)
            of_t = name if key == 'T/t' else of_t
    objects(pool, 'setomapval', 'root', 'layout', '1 16')
    return of_t


@test
def older_store(lab):
    """An older store is converted at startup. A damaged row prevents that, but not a rebuild."""
    pool = Pool(lab)
    try:
        path, _ = capture(lab, 1000)
        with open(path, 'rb') as f:
            raw = f.read()
        a = pool.server()
        a.run(*PUSH, path)
        sealed(a, 't')
        content = rows(a)['t']['content']
        a.stop()
        make_older(pool)
        a.start('--store', pool.store)
        check(list(rows(a)) == ['t'] and a.run('raw', content, '-').out == raw)
        objects(pool, 'getomapval', 'root', 'layout', lab.path('layout'))
        with open(lab.path('layout')) as f:
            check(f.read() == '2 16')
        a.stop()
        objects(pool, 'setomapval', make_older(pool), 'T/t', 'damaged')
        refused = subprocess.run([a.tracelake, 'serve', '--data', a.data, '--listen', '127.0.0.1:%d' % a.port,
                                  '--store', pool.store], stderr=subprocess.PIPE, timeout=60)
        check(refused.returncode == 1 and b'--rebuild-catalog' in refused.stderr, refused)
        a.start('--store', pool.store, '--rebuild-catalog')
        sealed(a, 't')
        check(a.run('raw', content, '-').out == raw)
        a.stop()
        a.start('--store', pool.store)
        check(list(rows(a)) == ['t'])
    finally:
        pool.close()


def status(url):
    try:
        with urllib.request.urlopen(url, timeout=60) as answer:
            return answer.status
    except urllib.error.HTTPError as why:
        return why.code


@alone
def cluster_away(lab):
    """It is reported, the rig waits, and everything continues by itself."""
    pool = Pool(lab)
    osd = osd_process(0)
    path, expected = capture(lab, 100000)
    a = pool.server()
    try:
        os.kill(osd, signal.SIGSTOP)
        push = a.spawn(*PUSH, path)
        wait('not ready', lambda: status(a.url + '/readyz') == 503)
        check('store_usable 0' in get(a, '/metrics').decode())
        check(status(a.url + '/healthz') == 200 and status(a.url + '/api/v1/traces') == 200)
        os.kill(osd, signal.SIGCONT)
        wait('ready again', lambda: status(a.url + '/readyz') == 200)
        check(push.wait(120) == 0, push.stderr.read())
        ends_well(path, expected, a)
    finally:
        os.kill(osd, signal.SIGCONT)
        pool.close()


def ceph(*args):
    subprocess.run(['ceph', *args], check=True, timeout=60, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def full(nearly, too, much):
    """Set the fill levels at which the cluster is nearly full, too full to be backfilled, and full."""
    for kind, share in (('nearfull', nearly), ('backfillfull', too), ('full', much)):
        ceph('osd', 'set-%s-ratio' % kind, share)


@alone
def full_cluster(lab):
    """The rig waits, stored data can be read, traces can be removed, and everything continues by itself when there is
    space; readiness tells, also while nobody writes."""
    osd_process(0)  # the cluster belongs to the test
    pool = Pool(lab)
    path, expected = capture(lab, 1000000)
    with open(path, 'rb') as f:
        whole = f.read()
    a = pool.server()
    try:
        a.run('push', '--format', 'itm,id=0', '--rig', 'bench', '--trace', 'old', path)
        sealed(a, 'old')
        begin(lab, a, path, 1 << 17).kill()
        check(status(a.url + '/readyz') == 200, a.server_log)
        full('0.00001', '0.00001', '0.00001')
        wait('the cluster is full', lambda: ',full' in subprocess.run(
            ['ceph', 'osd', 'dump'], timeout=60, stdout=subprocess.PIPE).stdout.decode())
        wait('it is not ready', lambda: status(a.url + '/readyz') == 503, a.server_log)
        a.run('rm', 'old')
        check('old' not in rows(a), rows(a))
        push = a.spawn(*PUSH, path)
        wait('bytes are refused', lambda: 'No space left' in a.server_log() or push.poll() is not None,
             a.server_log)
        check(push.poll() is None, push.poll())
        check(a.run('raw', 't', '--byte', '0:100000', '-').out == whole[:100000])
        check(status(a.url + '/api/v1/traces') == 200 and status(a.url + '/healthz') == 200)
        full('0.85', '0.9', '0.95')
        wait('it is ready', lambda: status(a.url + '/readyz') == 200, a.server_log)
        check(push.wait(120) == 0, push.stderr.read())
        ends_well(path, expected, a)
    finally:
        full('0.85', '0.9', '0.95')
        pool.close()


def together():
    """Run each test in a process of its own. Returns whether all pass."""
    running = [subprocess.Popen([sys.executable, __file__, sys.argv[1], name], stdout=subprocess.PIPE,
                                stderr=subprocess.STDOUT) for name in sorted(TESTS)]
    told = [child.communicate()[0].decode() for child in running]
    print(''.join(told), end='')
    return all(child.returncode in (0, 77) for child in running)


if __name__ == '__main__':
    if sys.argv[2:] == ['together']:
        sys.exit(not together())
    if sys.argv[2:] == ['alone']:
        sys.argv[2:] = sorted(ALONE)
    main({**TESTS, **ALONE})
