# SPDX-License-Identifier: MIT
"""A server in a folder of its own, and commands against it, for end-to-end tests."""

import ctypes
import json
import os
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time

SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
DATA = os.environ.get('TL_DATA') or os.path.join(os.path.dirname(SOURCE), 'shared', 'data')
TIMEOUT = 300  # seconds; only reached if something hangs, since machines can be busy


class Skip(Exception):
    """The test cannot run here."""


def snapshot(name):
    """The folder of a real capture."""
    path = os.path.join(DATA, 'coresight', 'snapshots', name)
    if not os.path.isdir(path):
        raise Skip('no ' + path)
    return path


def is_free(port):
    with socket.socket() as s:
        try:
            s.bind(('127.0.0.1', port))
            return True
        except OSError:
            return False


def is_ours(port):
    """Whether no other test has it: until this process ends, its name is taken."""
    name = socket.socket(socket.AF_UNIX)
    try:
        name.bind('\0tracelake-test-%d' % port)
    except OSError:
        name.close()
        return False
    free_port.names.append(name)
    return True


def free_port(n=1):
    """The first of `n` consecutive ports that stay free while a server is away: the kernel gives
    clients none below 32768, tests in the browser take those from 28000, and none here takes another one's."""
    for i in range(8000):
        port = 20000 + (os.getpid() * 37 + free_port.tries) % (8000 - n)
        free_port.tries += n
        if all(is_ours(port + k) and is_free(port + k) for k in range(n)):
            return port
    raise AssertionError('no free port from 20000 to 28000')


free_port.tries = 0
free_port.names = []


def check(condition, *what):
    if not condition:
        raise AssertionError(' '.join(str(w) for w in what))


def wait(what, condition, told=lambda: ''):
    """Wait until `condition` returns something true, and return that; `told` gives details for the
    error message."""
    until = time.monotonic() + TIMEOUT
    while True:
        found = condition()
        if found:
            return found
        check(time.monotonic() < until, 'not so:', what, told())
        time.sleep(0.05)


class Result:
    def __init__(self, args, process):
        self.args, self.status = args, process.returncode
        self.out, self.err = process.stdout, process.stderr

    def text(self):
        return self.out.decode()

    def __str__(self):
        return '%s: status %d\n%s%s' % (' '.join(self.args), self.status,
                                        self.out[-2000:].decode(errors='replace'),
                                        self.err[-2000:].decode(errors='replace'))


class Lab:
    """One test's folder, server and commands. close() ends everything that was started."""

    def __init__(self, build):
        self.build = build
        self.dir = tempfile.mkdtemp(prefix='tracelake-e2e-')
        self.tracelake = os.path.join(build, 'tracelake')
        self.rig = os.path.join(build, 'tracelake-rig')
        self.data = os.path.join(self.dir, 'data')
        self.port, self.tls_port = free_port(), free_port()
        self.url = 'http://127.0.0.1:%d' % self.port
        self.servers = None  # several URLs passed to commands
        self.server = None
        self.prefix = []  # of the server's command
        self.children = []
        self.log = os.path.join(self.dir, 'server.log')

    def close(self):
        for child in self.children:
            if child.poll() is None:
                child.kill()
            child.wait()
        if self.server:
            self.server.kill()
            self.server.wait()
        shutil.rmtree(self.dir, ignore_errors=True)

    def path(self, name):
        return os.path.join(self.dir, name)

    # ---- server ----

    def launch(self, *options):
        """Start the server."""
        args = [*self.prefix, self.tracelake, 'serve', '--data', self.data, '--listen',
                '127.0.0.1:%d' % self.port, '--listen-tls', '127.0.0.1:%d' % self.tls_port]
        with open(self.log, 'ab') as log:
            self.server = subprocess.Popen(args + list(options), stdout=log, stderr=log)

    def start(self, *options):
        """Start the server and wait until it accepts calls."""
        self.launch(*options)
        wait('the server is ready', self.ready, self.server_log)

    def readiness(self):
        """The status of /readyz, or 0: nobody answers."""
        check(self.server.poll() is None, 'the server ended:', self.server_log())
        try:
            with socket.create_connection(('127.0.0.1', self.port), 1) as s:
                s.settimeout(5)
                s.sendall(b'GET /readyz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n')
                return int((s.recv(4096).split() + [b'0', b'0'])[1])
        except OSError:
            return 0

    def ready(self):
        return self.readiness() == 200

    def server_log(self):
        with open(self.log, errors='replace') as f:
            return f.read()[-4000:]

    def told(self, event, **values):
        """The lines of a JSON journal about an event with these values."""
        with open(self.log, errors='replace') as f:
            lines = [json.loads(line) for line in f if line.startswith('{')]
        return [line for line in lines if line['event'] == event and
                all(line.get(k) == v for k, v in values.items())]

    def wait_told(self, event, n=1, **values):
        """The same, waiting until there are at least n."""
        wait((event, values, 'is told'), lambda: len(self.told(event, **values)) >= n, self.server_log)
        return self.told(event, **values)

    def kill(self):
        """Kill the server, as a power cut would."""
        self.server.send_signal(signal.SIGKILL)
        self.server.wait()
        self.server = None

    def stop(self):
        """Stop the server in an orderly way, and check its exit status."""
        self.server.send_signal(signal.SIGTERM)
        status = self.server.wait(TIMEOUT)
        self.server = None
        check(status == 0, 'the server ended with', status, self.server_log())

    def alive(self):
        check(self.server.poll() is None, 'the server ended:', self.server_log())
        self.run('ls')

    # ---- commands ----

    def environment(self):
        return dict(os.environ, TRACELAKE_SERVER=self.servers or self.url)

    def run(self, *args, status=0, stdin=None):
        """Run a command and check its exit status; None: any."""
        args = [self.tracelake] + list(args)
        result = Result(args, subprocess.run(args, input=stdin, env=self.environment(),
                                             stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                             timeout=TIMEOUT))
        check(status is None or result.status == status, 'wanted status', status, 'of', result)
        return result

    def fails(self, status, pattern, *args, stdin=None):
        """Run a command that must fail with this status and a matching message."""
        result = self.run(*args, status=status, stdin=stdin)
        text = result.err.decode()
        check(text.startswith('tracelake: '), 'no message:', result)
        check(re.search(pattern, text), 'wanted', pattern, 'from', result)
        return result

    def spawn(self, *args, **options):
        """Start a command or another program in the background."""
        args = list(args) if os.path.isabs(args[0]) else [self.tracelake] + list(args)
        child = subprocess.Popen(args, env=self.environment(), stdout=subprocess.PIPE,
                                 stderr=subprocess.PIPE, **options)
        self.children.append(child)
        return child

    # ---- contents of traces ----

    def offset(self, trace):
        args = [self.tracelake, 'ls', '--json', trace]
        process = subprocess.run(args, env=self.environment(), stdout=subprocess.PIPE,
                                 stderr=subprocess.PIPE, timeout=TIMEOUT)
        if process.returncode:
            return 0
        return json.loads(process.stdout)[0]['raw_bytes']

    def segments(self, trace):
        """The files with the raw bytes of a trace, in order: logs and packed segments."""
        folders = [os.path.join(top, name) for top, dirs, _ in os.walk(self.data)
                   for name in dirs if name == trace]
        segments = sorted(os.path.join(top, name) for folder in folders
                          for top, _, names in os.walk(folder)
                          for name in names if name.endswith(('.seg', '.zst')))
        check(segments, 'no segments of', trace, 'in', self.data)
        return segments

    def raw(self, trace):
        """The stored raw bytes of a trace, from the spool's segments, according to their
        headers."""
        until = time.monotonic() + TIMEOUT
        while True:
            try:
                return self.raw_of(self.segments(trace))
            except FileNotFoundError:  # it has just been packed
                check(time.monotonic() < until, 'the segments do not stay:', self.segments(trace))

    @staticmethod
    def raw_of(segments):
        zstd = ctypes.CDLL('libzstd.so.1')
        zstd.ZSTD_decompress.restype = ctypes.c_size_t
        out = bytearray()
        for segment in segments:
            with open(segment, 'rb') as f:
                data = f.read()
            if segment.endswith('.zst'):
                first, end = struct.unpack_from('<QQ', data, 16)
                plain = ctypes.create_string_buffer(end - first)
                n = zstd.ZSTD_decompress(plain, ctypes.c_size_t(end - first), data,
                                         ctypes.c_size_t(len(data)))
                check(n == end - first, segment, 'is unpacked to', n, 'bytes')
                del out[first:]
                out += plain.raw
                continue
            check(data[:8] == b'TLSPOOL1', segment, 'is no segment')
            del out[struct.unpack_from('<Q', data, 8)[0]:]
            at = 16
            while at + 40 <= len(data) and data[at:at + 4] == b'TLB3':
                n, offset = struct.unpack_from('<IQ', data, at + 4)
                check(offset == len(out), 'hole at', len(out), 'in', segment)
                out += data[at + 40:at + 40 + n]
                at += 40 + n
        return bytes(out)


def streams(text):
    """Flow text as a list of lines for each stream."""
    out, lines = {}, None
    for line in text.splitlines():
        if line.startswith('# stream '):
            lines = out.setdefault(line.split()[2], [])
        elif line and not line.startswith('#'):
            check(lines is not None, 'a line in front of any stream:', line)
            lines.append(line)
    return out


def only(lines, classes):
    return [line for line in lines if line[0] in classes]


def same_streams(a, b, what):
    """Compare two flow texts line by line; streams without lines are ignored."""
    a = {k: v for k, v in a.items() if v}
    b = {k: v for k, v in b.items() if v}
    check(sorted(a) == sorted(b), what, 'streams differ:', sorted(a), sorted(b))
    for name in a:
        if a[name] == b[name]:
            continue
        i = next((i for i, (x, y) in enumerate(zip(a[name], b[name])) if x != y),
                 min(len(a[name]), len(b[name])))
        raise AssertionError('%s: %s differs at line %d of %d/%d: %r, %r' % (
            what, name, i, len(a[name]), len(b[name]), a[name][i:i + 2], b[name][i:i + 2]))


def main(tests):
    """usage: test.py BUILD [NAME…]"""
    build = os.path.abspath(sys.argv[1])
    failed = skipped = 0
    names = sys.argv[2:] or sorted(tests)
    for name in names:
        lab = Lab(build)
        begun = time.monotonic()
        try:
            tests[name](lab)
            print('%-24s ok       %.1f s' % (name, time.monotonic() - begun))
        except Skip as why:
            skipped += 1
            print('%-24s skipped  %s' % (name, why))
        except Exception as why:  # every failure is reported, with the server's last output
            failed += 1
            print('%-24s FAILED   %s: %s' % (name, type(why).__name__, why))
            if os.path.exists(lab.log):
                print(lab.server_log())
        finally:
            lab.close()
    if failed:
        sys.exit(1)
    if skipped == len(names):
        print('skipped')
        sys.exit(77)
