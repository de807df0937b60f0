#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What a user waits for, from end to end: the first table of ./dev bench, and of
docs/performance.md. With one processor it is measured as the processor time of all programs
involved, so that other load on the machine matters little; with all processors by the clock.

usage: end.py --build DIR [MIB]     MIB: of each input, default 8
"""
import json, os, random, resource, shutil, socket, subprocess, sys, tempfile, time, urllib.request

# From tests/bench/inputs.h; the last one is real, and most of its code is in no image.
INPUTS = ['atoms, return stack', 'cycle counts, timestamps', 'exceptions', 'juno_r1_1']
ROUNDS = 3  # the best of them is reported
COLD = 15  # queries, whose median is reported
FETCH = 10000000  # instructions
CHUNK = 65536  # of a .zstf


def processor_time():
    """Processor time of all child programs that have ended."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def free_ports(n):
    """Free ports of the loopback interface, all different."""
    sockets = [socket.create_server(('127.0.0.1', 0)) for _ in range(n)]
    ports = [s.getsockname()[1] for s in sockets]
    for s in sockets:
        s.close()
    return ports


def await_ready(server):
    """Wait until the server reports that it is ready; it is queried with server.get()."""
    for _ in range(3000):
        try:
            return server.get('/readyz')
        except OSError:
            time.sleep(0.02)
    raise SystemExit('the server is not ready')


class Bench:
    def __init__(self, build, mib):
        self.build, self.mib = os.path.abspath(build), mib
        self.dir = tempfile.mkdtemp(prefix='tracelake-bench-')
        self.rows, self.server, self.pushed = [], None, 0

    def close(self):
        self.stop()
        shutil.rmtree(self.dir, ignore_errors=True)

    def path(self, name):
        return os.path.join(self.dir, name)

    def command(self, cores, *args):
        pin = ['taskset', '-c', '0'] if cores == 1 else []
        return pin + [os.path.join(self.build, 'tracelake')] + [str(a) for a in args]

    def run(self, cores, *args):
        """Wall-clock seconds, and seconds of processor time."""
        clock, used = time.perf_counter(), processor_time()
        subprocess.run(self.command(cores, *args), check=True, stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL)
        return time.perf_counter() - clock, processor_time() - used

    # ---- the server ----

    def start(self, cores, data):
        ports = free_ports(2)
        self.url = 'http://127.0.0.1:%d' % ports[0]
        self.tls_url = 'https://127.0.0.1:%d' % ports[1]
        self.server = subprocess.Popen(
            self.command(cores, 'serve', '--data', data, '--listen', '127.0.0.1:%d' % ports[0],
                         '--listen-tls', '127.0.0.1:%d' % ports[1]),
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        await_ready(self)

    def stop(self):
        if self.server:
            self.server.terminate()
            self.server.wait()
        self.server = None

    def get(self, path, accept='*/*'):
        request = urllib.request.Request(self.url + path, headers={'Accept': accept})
        with urllib.request.urlopen(request, timeout=600) as reply:
            return reply.read()

    # ---- figures ----

    def add(self, what, name, values, unit):
        self.rows.append(dict(stage=what, input=name, one=values[0], all=values[1], unit=unit))

    def decode(self, name, insns):
        args = ['decode', '--format', 'etm4,id=0x10', '--config', self.path('0.ini'),
                '--out', self.path('out'), self.path('0.trace')]
        took = [min(self.run(1, *args)[1] for _ in range(ROUNDS)),
                min(self.run(0, *args)[0] for _ in range(ROUNDS))]
        self.add('decode FILE to .zstf', name, [insns / t / 1e6 for t in took], 'M insns/s')

    def push(self, name):
        rates, insns = [], 0
        for cores in 1, 0:
            best = 1e9
            for _ in range(ROUNDS):
                self.pushed += 1
                self.data = self.path('data%d' % self.pushed)
                self.start(cores, self.data)
                used = processor_time()
                took = self.run(cores, 'push', '--server', self.url, '--trace', 't',
                                '--format', 'etm4,id=0x10', '--config', self.path('0.ini'),
                                self.path('0.trace'))[0]
                insns = int(json.loads(self.get('/api/v1/traces/t'))['streams'][0]['insns'])
                self.stop()
                best = min(best, took if cores == 0 else processor_time() - used)
            rates.append(best)
        self.add('push to sealed shards with index', name, [insns / t / 1e6 for t in rates],
                 'M insns/s')
        return insns

    def index(self, name):
        run = subprocess.run([os.path.join(self.build, 'tests/bench/index_alone'), name],
                             stdout=subprocess.PIPE, check=True)
        self.add('bytes to flow with index', name, [float(run.stdout), None], 'M insns/s')

    def cold(self, path):
        """With files that are not in the system's cache, from a server that has just been
        started."""
        took = []
        for i in range(COLD):
            self.start(0, self.data)
            for top, _, files in os.walk(self.data):
                for f in files:
                    with open(os.path.join(top, f), 'rb') as file:
                        os.fsync(file.fileno())
                        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
            begin = time.perf_counter()
            self.get(path(i))
            took.append(time.perf_counter() - begin)
            self.stop()
        return [None, sorted(took)[COLD // 2] * 1e3]

    def questions(self, name, insns):
        """For the trace that was pushed last."""
        rng = random.Random(1)
        places = [rng.randrange(insns - 1000) for _ in range(COLD)]
        stream = '/api/v1/traces/t/streams/cs.10/range?from=%d&to=%d&format=%s'
        self.add('cold range of 1000 instructions', name, self.cold(
            lambda i: stream % (places[i], places[i] + 1000, 'text')), 'ms')
        width = 512 << 16  # of level 8
        self.add('cold tile of %.0f M instructions' % (width / 1e6), name, self.cold(
            lambda i: '/api/v1/traces/t/tiles/insn/8/%d' % (places[i] // width)), 'ms')
        self.fetch(name, 'where a chunk begins', stream, CHUNK * (FETCH // 2 // CHUNK))
        self.fetch(name, 'within a chunk', stream, FETCH // 2)

    def fetch(self, name, where, stream, first):
        best = [1e9, 1e9]
        for _ in range(ROUNDS):
            used = processor_time()
            self.start(0, self.data)
            begin = time.perf_counter()
            self.get(stream % (first, first + FETCH, 'zstf'))
            best[1] = min(best[1], time.perf_counter() - begin)
            self.stop()
            best[0] = min(best[0], processor_time() - used)
        self.add('fetch of %d M instructions as .zstf, from %s' % (FETCH // 1000000, where), name,
                 [FETCH / t / 1e6 for t in best], 'M insns/s')

    def measure(self):
        for number, name in enumerate(INPUTS):
            written = subprocess.run([os.path.join(self.build, 'tests/bench/write_inputs'), self.dir,
                                      str(self.mib), name], stdout=subprocess.DEVNULL)
            if written.returncode == 77:
                continue  # the capture is not available here
            written.check_returncode()
            insns = self.push(name)
            self.decode(name, insns)
            self.index(name)
            if number == 0:
                self.questions(name, insns)
        order = list(dict.fromkeys(r['stage'] for r in self.rows))
        self.rows.sort(key=lambda r: order.index(r['stage']))
        return self.rows


def measure(build, mib=8):
    bench = Bench(build, mib)
    try:
        return bench.measure()
    finally:
        bench.close()


def table(rows):
    """In Markdown."""
    text = lambda v, unit: '' if v is None else ('%.1f' if unit == 'ms' else '%.0f') % v
    lines = ['| | input | one processor | all %d | |' % os.cpu_count(), '|---|---|---|---|---|']
    last = None
    for r in rows:
        lines.append('| %s | %s | %s | %s | %s |' % (
            r['stage'] if r['stage'] != last else '', r['input'], text(r['one'], r['unit']),
            text(r['all'], r['unit']), r['unit']))
        last = r['stage']
    return '\n'.join(lines)


if __name__ == '__main__':
    print(table(measure(sys.argv[sys.argv.index('--build') + 1],
                        int(sys.argv[-1]) if sys.argv[-1].isdigit() else 8)))
