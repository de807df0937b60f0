#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The server as the one who operates it sees it. usage: operate.py BUILD [NAME…]"""

import os
import re
import signal
import socket
import sys
import urllib.request

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from lab import SOURCE, check, main  # noqa: E402

TESTS = {}
TOKEN = 'sesame-0123456789abcdef'


def test(function):
    TESTS[function.__name__] = function
    return function


def write(path, text, mode=0o600):
    with open(path, 'w') as f:
        f.write(text)
    os.chmod(path, mode)
    return path


def itm(lab, n=3000):
    """A capture of software trace that needs no setup."""
    with open(lab.path('itm'), 'wb') as f:
        f.write(b'\0\0\0\0\0\x80' + bytes(b for i in range(n) for b in (0x09, i & 255)))
    return lab.path('itm')


def push(lab, *options, status=0):
    return lab.run('push', '--format', 'itm,id=0', '--rig', 'bench3', *options, itm(lab),
                   status=status)


@test
def journal(lab):
    """Pushes begun and ended, refused tokens, start and stop, each an event with its values."""
    tokens = write(lab.path('tokens'), TOKEN + ' admin\n')
    mine = write(lab.path('mine'), TOKEN + '\n')
    wrong = write(lab.path('wrong'), 'thistle-0123456789abcdef\n')
    lab.start('--tokens', tokens, '--log-format', 'json')
    check(lab.wait_told('starting')[0]['data'] == lab.data, lab.server_log())
    check(len(lab.wait_told('listening', 2)) == 2, lab.server_log())
    push(lab, '--trace', 'one', '--token', mine)
    size = os.path.getsize(lab.path('itm'))
    begun = lab.wait_told('push begun', trace='one')[0]
    check(begun['rig'] == 'bench3' and begun['client'].startswith('127.0.0.1:'), begun)
    ended = lab.wait_told('push ended', trace='one')[0]
    check(ended['bytes'] == ended['durable'] == size and ended['complete'] == 'yes', ended)
    check(re.fullmatch(r'\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z', ended['time']) and
          ended['level'] == 'info', ended)
    # A rig that is ended in the middle: so many bytes, and why no more.
    cut = lab.spawn('push', '--format', 'itm,id=0', '--rig', 'bench3', '--trace', 'two', '--token',
                    mine, '--rate', '1K', '--chunk', '16', itm(lab))
    lab.wait_told('push begun', trace='two')
    cut.send_signal(signal.SIGKILL)
    ended = lab.wait_told('push ended', trace='two')[0]
    check(ended['complete'] == 'no' and ended['why'] and ended['durable'] < size, ended)
    # More refusals than it tells; the next ones say how many were left out.
    for _ in range(3):
        lab.fails(3, r'token', 'ls', '--token', wrong)
    refused = lab.wait_told('request refused')[0]
    check(refused['level'] == 'warning' and 'not known' in refused['why'] and
          'ListTraces' in refused['path'], refused)
    lab.stop()
    check(lab.told('stopping', why='SIGTERM') and lab.told('stopped'), lab.server_log())
    with open(lab.log) as f:
        check(all(line.startswith('{') for line in f), 'not all is JSON:', lab.server_log())


@test
def notify(lab):
    """The service manager hears when it is ready, reloads, lives and stops."""
    path = lab.path('notify')
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as s:
        s.bind(path)
        s.settimeout(60)
        os.environ['NOTIFY_SOCKET'] = path
        os.environ['WATCHDOG_USEC'] = '100000'
        try:
            lab.start()
        finally:
            del os.environ['NOTIFY_SOCKET'], os.environ['WATCHDOG_USEC']
        check(s.recv(200).startswith(b'READY=1'), 'not ready first')
        check(s.recv(200) == b'WATCHDOG=1', 'not alive')
        lab.server.send_signal(signal.SIGHUP)
        said = []
        while not said or said[-1] != b'READY=1':
            said.append(s.recv(200))
        check(re.match(rb'RELOADING=1\nMONOTONIC_USEC=\d+$', said[-2]), said)
        lab.stop()
        while said[-1] != b'STOPPING=1':
            said.append(s.recv(200))
            check(said[-1] in (b'WATCHDOG=1', b'STOPPING=1'), said)


def metrics(lab):
    with urllib.request.urlopen(lab.url + '/metrics', timeout=30) as reply:
        text = reply.read().decode()
    out = {}
    for line in text.splitlines():
        if not line.startswith('#'):
            name, value = line.rsplit(' ', 1)
            out[name] = float(value)
    return out


@test
def reload_limits(lab):
    """SIGHUP takes limits from the file; what needs a restart is named; a bad file changes nothing."""
    base = 'data = %s\nlog-format = json\nmax-connections = %%d\n' % lab.data
    config = lab.path('serve.ini')
    write(config, base % 100)
    check(b'is fine' in lab.run('serve', '--config', config, '--check-config').out, 'check')
    lab.start('--config', config)

    def hang_up(text, event, n):
        write(config, text)
        lab.server.send_signal(signal.SIGHUP)
        return lab.wait_told(event, n)[-1]

    def connect(n):
        """How many of n connections at once are kept."""
        sockets = [socket.create_connection(('127.0.0.1', lab.port)) for _ in range(n)]
        kept = 0
        for s in sockets:
            s.settimeout(30)
            try:
                s.sendall(b'GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n')
                kept += s.recv(100).startswith(b'HTTP/1.1 200')
            except OSError:
                pass
        for s in sockets:
            s.close()
        return kept

    check(connect(20) == 20, 'of 25 that one address may have')
    told = hang_up(base % 40 + 'threads = 3\nmin-free = 1M\n', 'reloaded', 1)
    check(told['needs_restart'] == 'threads', told)
    check(connect(20) <= 10, 'of 10 that one address may have now')
    check(metrics(lab)['tracelake_min_free_bytes'] == 1 << 20, 'min-free')
    told = hang_up(base % 3, 'not reloaded, all stays as it was', 1)
    check('max-connections' in told['why'], told)
    told = hang_up('data = x\n\ncolour = red\n', 'not reloaded, all stays as it was', 2)
    check('line 3' in told['why'] and 'colour' in told['why'], told)
    check(connect(20) <= 10, 'the limit has gone')
    lab.stop()


@test
def check_config(lab):
    """All that cannot work is refused, with the place, before anything is opened or made."""
    config = lab.path('serve.ini')

    def bad(status, words, text, *options):
        write(config, text)
        lab.fails(status, words, 'serve', '--config', config, '--check-config', *options)

    base = 'data = %s\n' % lab.data
    bad(1, r'line 2: there is no option "colour"', base + 'colour = red\n')
    bad(1, r'line 1: there is no option "config"', 'config = x\n' + base)
    bad(1, r'line 3: threads = many: must be a number', base + '\nthreads = many\nx = y\n')
    bad(1, r'line 3: there are no sections', base + '[server]\nthreads = 1\n')
    bad(1, r'line 2: no "name = value"', base + 'nonsense\n')
    bad(2, r'--data', '')
    bad(1, r'--data .*/file: Not a directory', 'data = %s\n' % write(lab.path('file'), ''))
    bad(1, r'--data /nowhere/at/all: No such', 'data = /nowhere/at/all\n')
    bad(2, r'log-format xml', base + 'log-format = xml\n')
    bad(2, r'log-level loud', base + 'log-level = loud\n')
    bad(2, r'retain-raw soon', base + 'retain-raw = soon\n')
    bad(2, r'max-message 1: must be from', base + 'max-message = 1\n')
    bad(2, r'ADDR:PORT', base + 'listen = nonsense\n')
    bad(2, r'--tokens', base + 'listen-tls = 0.0.0.0:0\n')
    bad(1, r'/nowhere', base + 'tokens = /nowhere\n')
    bad(1, r'no PEM certificate', base + 'tls-cert = %s\ntls-key = %s\n' % (config, config))
    bad(2, r'belong together', base + 'tls-cert = %s\n' % config)
    bad(2, r'format=FMT', base + 'raw = 127.0.0.1:0,rig=a\n')
    bad(2, r'open to the network', base + 'raw = 0.0.0.0:0,rig=a,format=di\n')
    bad(2, r'no format|format', base + 'source = tcp://127.0.0.1:1,format=nonsense,rig=a\n')
    write(config, base + 'threads = 1 ; a comment\n# another\nlisten = 127.0.0.1:0\n'
          'raw = 127.0.0.1:0,rig=a,format=di\n')
    done = lab.run('serve', '--config', config, '--check-config')
    check(done.out == b'the configuration is fine\n', done)
    check(not os.path.exists(lab.data), 'it made the data folder')


@test
def keys_are_documented(lab):
    """Every key is in the command's help and in the manual, and none besides."""
    keys = {line.split()[0] for line in lab.run('serve', '--options').text().splitlines()}
    check(len(keys) > 20, keys)
    shown = set(re.findall(r'(?m)^  --([a-z0-9-]+)', lab.run('serve', '--help').text()))
    check(keys - {'help'} == shown, 'help', keys ^ shown)
    with open(os.path.join(SOURCE, 'docs', 'admin.md')) as f:
        manual = set(re.findall(r'(?m)^\| `([a-z0-9-]+)` \|.*\|.*\|.*\|$',
                                f.read().split('## Log')[0]))
    only_here = {'help', 'config', 'check-config', 'rebuild-catalog'}
    check(keys - only_here == manual, 'docs/admin.md', (keys - only_here) ^ manual)


@test
def what_is_counted(lab):
    """Latencies, queues and memory, of what has happened."""
    lab.start()
    push(lab, '--trace', 'one')
    lab.run('ls')
    with urllib.request.urlopen(lab.url + '/api/v1/traces', timeout=30) as reply:
        reply.read()
    seen = metrics(lab)

    def histogram(name, label):
        inner = label + ',' if label else ''
        outer = '{%s}' % label if label else ''
        buckets = [v for k, v in seen.items()
                   if k.startswith('tracelake_%s_bucket{%sle=' % (name, inner))]
        check(len(buckets) == 16, name, label, 'has no buckets')
        check(buckets == sorted(buckets), 'not cumulative', buckets)
        check(buckets[-1] == seen['tracelake_%s_count%s' % (name, outer)] > 0, name, buckets)
        check(seen['tracelake_%s_sum%s' % (name, outer)] > 0, name)

    histogram('http_request_seconds', 'route="/api/v1/traces"')
    histogram('grpc_call_seconds', 'method="/tracelake.v1.Catalog/ListTraces"')
    histogram('worker_wait_seconds', 'pool="push-lasts"')
    histogram('spool_commit_seconds', '')
    check(seen['tracelake_worker_queue{pool="read"}'] == 0, 'queue')
    check(seen['tracelake_pushes_open'] == seen['tracelake_spool_pending_bytes'] == 0, 'pushes')
    check(seen['tracelake_decode_queue'] == 0, 'decode_queue')
    check(seen['process_resident_memory_bytes'] > 1 << 20, 'memory')
    check(seen['process_open_fds'] > 3 and seen['process_threads'] > 3, 'files and threads')
    check(seen['process_start_time_seconds'] > 1.7e9, 'start time')
    check(any(k.startswith('tracelake_build_info{version="') for k in seen), 'version')


if __name__ == '__main__':
    main(TESTS)
