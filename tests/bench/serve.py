#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The network side, compared with peers in the same run where they are installed: gRPC's own C++ library (grpc_peer)
and nginx, both measured with the same h2load as the server. ./dev bench serve

usage: serve.py --build DIR
"""
import http.client, json, os, random, re, shutil, socket, struct, subprocess, sys, threading, time, urllib.request

import end

ROUNDS = 3     # of ours and the peer in turns; the best is reported
CALLS = 20000  # small requests in a round
FETCHES = 8    # of a whole stream in a round
RIGS = 20      # live ones during a push at full speed
RATE = 40000   # bytes per second of each
UPLOAD = 64 << 20
LONG_UPLOAD = 1 << 30  # more than the disk can cache
TRACES = 500    # removed at once
GRPC = ['-H', 'content-type: application/grpc', '-H', 'te: trailers']


def field(tag, value):
    """A protobuf field: bytes or a number."""
    if isinstance(value, bytes):
        return bytes([tag << 3 | 2, len(value)]) + value
    out = bytes([tag << 3])
    while value > 127:
        out, value = out + bytes([value & 127 | 128]), value >> 7
    return out + bytes([value])


def h2load(url, n, clients, streams, body=None, *more):
    """Requests per second, and MB of data per second."""
    args = ['h2load', '-n', str(n), '-c', str(clients), '-m', str(streams), '-t', '1', '-w', '24', '-W', '24', *more]
    run = subprocess.run(args + (['-d', body] if body else []) + [url], stdout=subprocess.PIPE, text=True, timeout=300)
    seconds = re.search(r'finished in ([0-9.]+)(us|ms|s)', run.stdout)
    done = int(re.search(r'(\d+) succeeded', run.stdout).group(1))
    data = int(re.search(r'\((\d+)\) data', run.stdout).group(1))
    if done != n:
        raise SystemExit('%s: %d of %d succeeded' % (url, done, n))
    took = float(seconds.group(1)) * {'us': 1e-6, 'ms': 1e-3, 's': 1}[seconds.group(2)]
    return n / took, data / took / 1e6


def processor(pid):
    """Seconds of processor time of a process and its children."""
    pids = [str(pid)] + subprocess.run(['pgrep', '-P', str(pid)], stdout=subprocess.PIPE, text=True).stdout.split()
    ticks = 0
    for p in pids:
        with open('/proc/%s/stat' % p) as stat:
            ticks += sum(map(int, stat.read().rsplit(')', 1)[1].split()[11:13]))
    return ticks / os.sysconf('SC_CLK_TCK')


class Serve(end.Bench):
    def __init__(self, build):
        super().__init__(build, 8)
        self.rows, self.peers = [], []
        self.peer_process = self.nginx_process = None

    def close(self):
        for peer in self.peers:
            peer.terminate()
            peer.wait()
        super().close()

    def add(self, stage, what, value, unit, peer=None, peer_value=None, most=None):
        """`most`: the limit on a machine with no other load."""
        row = dict(stage=stage, input=what, value=value, unit=unit)
        if most:
            row.update(peer='at most' if value <= most else 'MISSED, at most', peer_value=most, ratio=value / most)
        if peer_value:
            row.update(peer=peer, peer_value=peer_value, ratio=value / peer_value)
        self.rows.append(row)

    def request(self, name, message):
        with open(self.path(name), 'wb') as out:
            out.write(b'\0' + struct.pack('>I', len(message)) + message)
        return self.path(name)

    def turns(self, ours, peer):
        """The best of both, measured in turns."""
        best = [0.0, 0.0]
        for _ in range(ROUNDS):
            best[0] = max(best[0], ours())
            if peer:
                best[1] = max(best[1], peer())
        return best

    def compare(self, stage, what, unit, amount, ours, peer, peer_name, peer_process):
        """Measured by the clock, and by the processor time of the serving processes, on which other load has little
        effect. `amount`: units in a round."""
        used = [[], []]

        def measured(run, process, which):
            def one():
                before = processor(process.pid)
                rate = run()
                used[which].append(max(processor(process.pid) - before, 0.01))
                return rate
            return run and one
        best = self.turns(measured(ours, self.server, 0), measured(peer, peer_process, 1))
        self.add(stage, what, best[0], unit + '/s', peer_name, best[1])
        self.add(stage + ', server', what, amount / min(used[0]), unit + '/cpu s', peer_name,
                 amount / min(used[1]) if peer else None)

    # ---- peers ----

    def grpc_peer(self):
        """The peer's address, or None."""
        program = os.path.join(self.build, 'tests/bench/grpc_peer')
        if not os.access(program, os.X_OK):
            return None
        peer = subprocess.Popen([program, 'serve'], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.peers.append(peer)
        self.peer_process = peer
        return '127.0.0.1:%d' % int(peer.stdout.readline())

    def nginx(self, tile):
        """The address of a tile that nginx serves as a file, or None."""
        program = shutil.which('nginx') or '/usr/sbin/nginx'
        if not os.access(program, os.X_OK):
            return None
        root = self.path('nginx')
        os.makedirs(root)
        with open(os.path.join(root, 'tile'), 'wb') as out:
            out.write(tile)
        port, = end.free_ports(1)
        temporary = ''.join('%s_temp_path %s/%s;' % (k, root, k)
                            for k in ('client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'))
        with open(self.path('nginx.conf'), 'w') as out:
            out.write('worker_processes auto; daemon off; pid %s/pid; error_log %s/error; events {}\n'
                      'http { access_log off; sendfile on; tcp_nopush on; open_file_cache max=100; %s'
                      ' keepalive_requests 100000000; ssl_protocols TLSv1.2 TLSv1.3;'
                      ' ssl_conf_command Ciphersuites TLS_AES_128_GCM_SHA256; server { listen 127.0.0.1:%d ssl http2;'
                      ' ssl_certificate %s/tls-cert.pem; ssl_certificate_key %s/tls-key.pem; root %s; } }\n'
                      % (root, root, temporary, port, self.data, self.data, root))
        os.chmod(self.dir, 0o755)
        self.nginx_process = subprocess.Popen([program, '-c', self.path('nginx.conf')], stderr=subprocess.DEVNULL)
        self.peers.append(self.nginx_process)
        for _ in range(200):
            try:
                socket.create_connection(('127.0.0.1', port)).close()
                return 'https://127.0.0.1:%d/tile' % port
            except OSError:
                time.sleep(0.02)
        return None

    # ---- figures ----

    def fetch(self, zstf):
        """A whole stream as .zstf. The peers send one buffer repeatedly, and the same bytes from a file."""
        size = len(zstf)
        path = self.path('fetched.zstf')
        with open(path, 'wb') as out:
            out.write(zstf)
        method, what = '/tracelake.v1.Ranges/Fetch', '%d MB of .zstf' % (size // 1000000)

        def by_h2load(host, request):
            return h2load('http://%s%s' % (host, method), FETCHES, 1, 1, request, *GRPC)[1]

        def by_grpc(host, trace, stream, to):
            run = subprocess.run([os.path.join(self.build, 'tests/bench/grpc_peer'), 'fetch', host, trace, stream,
                                  str(to), str(FETCHES)], stdout=subprocess.PIPE, text=True, check=True)
            got, seconds = run.stdout.split()
            return int(got) / float(seconds) / 1e6
        host = self.url[7:]
        ours = self.request('fetch', field(1, b't') + field(2, b'cs.10'))
        for peer, trace, stream, to in (('gRPC C++, a buffer', 't', 'cs.10', size), ('gRPC C++, a file', path, 'file', 1)):
            theirs = self.request('fetch-peer', field(1, trace.encode()) + field(2, stream.encode()) + field(5, to))
            self.compare('Fetch, to h2load', what, 'MB', FETCHES * size / 1e6, lambda: by_h2load(host, ours),
                         self.peer and (lambda: by_h2load(self.peer, theirs)), peer, self.peer_process)
            if not self.peer:
                return
            best = self.turns(lambda: by_grpc(host, 't', 'cs.10', 0), lambda: by_grpc(self.peer, trace, stream, to))
            self.add('Fetch, to gRPC C++', what, best[0], 'MB/s', peer, best[1])
        self.fetch_commands(size, path)

    def fetch_commands(self, size, path):
        """Server and client of each side, with a command for each fetch; what was fetched is discarded."""
        null, fetch = self.path('null.zstf'), os.path.join(self.build, 'tests/bench/grpc_peer')
        os.symlink('/dev/null', null)
        ours = self.command(0, 'get', 't/cs.10', '--server', self.url, '-o', null)

        def measured(process, command, used):
            before, begin = processor(process.pid) + end.processor_time(), time.perf_counter()
            for _ in range(FETCHES):
                subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
            took = time.perf_counter() - begin
            used.append(processor(process.pid) + end.processor_time() - before)
            return FETCHES * size / took / 1e6
        for peer, trace, stream, to in (('gRPC C++, a buffer', 't', 'cs.10', size), ('gRPC C++, a file', path, 'file', 1)):
            theirs, used = [fetch, 'fetch', self.peer, trace, stream, str(to), '1'], [[], []]
            best = self.turns(lambda: measured(self.server, ours, used[0]),
                              lambda: measured(self.peer_process, theirs, used[1]))
            what = '%d MB of .zstf' % (size // 1000000)
            self.add('Fetch, server and own client', what, best[0], 'MB/s', peer, best[1])
            least = [FETCHES * size / 1e6 / min(u) for u in used]
            self.add('Fetch, both, by processor time', what, least[0], 'MB/cpu s', peer, least[1])

    def calls(self):
        body, method = self.request('check', b''), '/grpc.health.v1.Health/Check'
        address = self.peer and 'http://%s%s' % (self.peer, method)
        self.compare('calls', 'Health.Check', '', CALLS, lambda: h2load(self.url + method, CALLS, 8, 16, body, *GRPC)[0],
                     address and (lambda: h2load(address, CALLS, 8, 16, body, *GRPC)[0]), 'gRPC C++', self.peer_process)

    def tiles(self, tile, file):
        self.compare('tiles, TLS h2', 'sealed', '', CALLS, lambda: h2load(self.tls_url + tile, CALLS, 8, 16)[0],
                     file and (lambda: h2load(file, CALLS, 8, 16)[0]), 'nginx, a file', self.nginx_process)
        self.add('tiles, h2', 'sealed', h2load(self.url + tile, CALLS, 8, 16)[0], '/s')

    def upload(self):
        """Until everything is durable, compared with the disk: bytes in which no decoder finds anything, and a
        capture that is decoded at the same time."""
        with open(self.path('0.trace'), 'rb') as f:
            capture = f.read()
        etm = ['--format', 'etm4,id=0x10']
        noise = os.urandom(UPLOAD)
        for what, size, content, more in (
                ('not decodable', UPLOAD, noise, etm), ('not decodable', LONG_UPLOAD, noise, etm),
                (end.INPUTS[0], UPLOAD, capture, etm + ['--config', self.path('0.ini')])):
            data = (content * (size // len(content) + 1))[:size]
            path = self.path('bytes')
            with open(path, 'wb') as out:
                out.write(data)

            def quietly(*args):
                subprocess.run(self.command(0, *args, '--server', self.url), check=True,
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

            def ours():
                begin = time.perf_counter()
                quietly('push', '--trace', 'up', '--no-wait', *more, path)
                took = time.perf_counter() - begin
                quietly('rm', 'up')
                return size / took / 1e6

            def disk():
                beside = os.path.join(self.data, 'disk')
                with open(beside, 'wb') as out:
                    begin = time.perf_counter()
                    for at in range(0, size, 1 << 20):
                        out.write(data[at:at + (1 << 20)])
                    out.flush()
                    os.fdatasync(out.fileno())
                    took = time.perf_counter() - begin
                os.unlink(beside)
                return size / took / 1e6
            best = self.turns(ours, disk)
            self.add('push', '%d MB, %s' % (size >> 20, what), best[0], 'MB/s', 'write and fdatasync', best[1])

    # ---- concurrently ----

    def lags(self):
        """Seconds of its rate that each live trace has not been decoded yet."""
        return [(int(row['raw_bytes']) - int(row['decoded_bytes'])) / RATE
                for row in json.loads(self.get('/api/v1/traces')) if row['id'].startswith('live')]

    def beside(self, level):
        """Tiles and live rigs during a push at full speed, a fetch of everything, and a client that does not read."""
        rigs = [subprocess.Popen([os.path.join(self.build, 'tracelake-rig'), '--kind', 'etm', '--server', self.url,
                                  '--rig', 'rig%d' % i, '--trace', 'live%d' % i, '--rate', str(RATE), '--seed', str(i + 1),
                                  '--seconds', '60', '--quiet'], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                for i in range(RIGS)]
        limit = time.monotonic() + 60
        while len(self.lags()) < RIGS:
            if time.monotonic() > limit or any(rig.poll() is not None for rig in rigs):
                raise SystemExit('only %d of %d live rigs push' % (len(self.lags()), RIGS))
            time.sleep(0.1)
        stalled = socket.create_connection(self.url[7:].split(':'))
        stalled.sendall(b'GET /api/v1/traces/t/streams/cs.10/range?format=text HTTP/1.1\r\nHost: localhost\r\n\r\n')
        # the same name again would push nothing: the server has all of it
        busy = [lambda i: self.command(0, 'push', '--server', self.url, '--trace', 'full%d' % i, '--format', 'etm4,id=0x10',
                                       '--config', self.path('0.ini'), self.path('0.trace')),
                lambda i: self.command(0, 'get', 't/cs.10', '--server', self.url, '-o', self.path('all.zstf'))]
        over, waits, lags, done = threading.Event(), [], [], [0, 0]

        def keep_busy(which):
            while not over.is_set():
                subprocess.run(busy[which](done[which]), check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                done[which] += 1

        def watch():
            while not over.wait(0.1):
                lags.extend(self.lags())
        threads = [threading.Thread(target=keep_busy, args=(which,)) for which in range(len(busy))]
        threads.append(threading.Thread(target=watch))
        for t in threads:
            t.start()
        chance = random.Random(1)
        until = time.time() + 8
        http_ = http.client.HTTPConnection(self.url[7:])
        while time.time() < until:
            begin = time.perf_counter()
            http_.request('GET', '/api/v1/traces/t/tiles/insn/%d/%d?gen=1&lanes=%d' % (
                level, chance.randrange(8), chance.randrange(2)))
            http_.getresponse().read()
            waits.append(time.perf_counter() - begin)
            time.sleep(0.005)
        over.set()
        stalled.close()
        for rig in rigs:
            rig.terminate()
            rig.wait()
        for t in threads:
            t.join()
        if not all(done):
            raise SystemExit('no push or no fetch ended meanwhile: %s' % done)
        waits.sort()
        lags.sort()
        self.add('tile beside push, get, stalled reader', '99 %', waits[len(waits) * 99 // 100] * 1e3, 'ms', most=20)
        self.add('tile beside push, get, stalled reader', 'median', waits[len(waits) // 2] * 1e3, 'ms')
        self.add('lag of %d live rigs beside it' % RIGS, '95 %', lags[len(lags) * 95 // 100] * 1e3, 'ms', most=100)

    def remove(self):
        """`rm` of many traces at once."""
        names = ['few%d' % i for i in range(TRACES)]

        def ask(method, path, body):
            request = urllib.request.Request(self.url + '/api/v1/traces/' + path, data=body, method=method)
            urllib.request.urlopen(request, timeout=60).read()
        for name in names:
            ask('PUT', name + '?rig=r', b'[trace]\nformat=itm,id=1\n')
            ask('POST', name + '/raw?offset=0&epoch=1&last=1', b'\0\0\0\0\0\x80\x09A')
        begin = time.perf_counter()
        subprocess.run(self.command(0, 'rm', '--server', self.url, *names), check=True)
        self.add('rm', '%d traces' % TRACES, time.perf_counter() - begin, 's', most=1)

    def measure(self):
        subprocess.run([os.path.join(self.build, 'tests/bench/write_inputs'), self.dir, str(self.mib), end.INPUTS[0]],
                       check=True, stdout=subprocess.DEVNULL)
        self.data = self.path('lake')
        self.start(0, self.data)
        subprocess.run(self.command(0, 'push', '--server', self.url, '--trace', 't', '--format', 'etm4,id=0x10',
                                    '--config', self.path('0.ini'), self.path('0.trace')),
                       check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        tile = '/api/v1/traces/t/tiles/insn/5/0?lanes=0-15&gen=1'
        file = self.nginx(self.get(tile))
        self.peer = self.grpc_peer()
        self.fetch(self.get('/api/v1/traces/t/streams/cs.10/range?format=zstf'))
        self.calls()
        self.tiles(tile, file)
        self.upload()
        self.remove()
        self.beside(8)
        return self.rows


def measure(build):
    if not shutil.which('h2load'):
        print('serve: h2load is not installed')
        return []
    bench = Serve(build)
    try:
        return bench.measure()
    finally:
        bench.close()


if __name__ == '__main__':
    for r in measure(sys.argv[sys.argv.index('--build') + 1] if '--build' in sys.argv else 'build'):
        print('%-40s %-22s %10.1f %-9s %-20s %s' % (r['stage'], r['input'], r['value'], r['unit'], r.get('peer', ''),
                                                  '%10.1f  %.2f' % (r['peer_value'], r['ratio']) if 'peer' in r else ''))
