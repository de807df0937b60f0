#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The server from its operator's point of view. usage: operate.py BUILD [NAME…]"""

import calendar
import http.client
import json
import os
import re
import shutil
import signal
import socket
import sqlite3
import ssl
import subprocess
import sys
import time
import urllib.request

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from lab import SOURCE, Skip, check, main, wait  # noqa: E402

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
    """Pushes begun and ended, refused tokens, start and stop are events with values."""
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
    # A rig that is interrupted: the number of bytes, and the reason.
    cut = lab.spawn('push', '--format', 'itm,id=0', '--rig', 'bench3', '--trace', 'two', '--token',
                    mine, '--rate', '1K', '--chunk', '16', itm(lab))
    lab.wait_told('push begun', trace='two')
    cut.send_signal(signal.SIGKILL)
    ended = lab.wait_told('push ended', trace='two')[0]
    check(ended['complete'] == 'no' and ended['why'] and ended['durable'] < size, ended)
    # More refusals than are reported; the next report contains the number left out.
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
def raw_rigs_named(lab):
    """A rig that only writes to a socket: the log and the trace's label contain its address, also for IPv6."""
    families = {'v4': '127.0.0.1'}
    try:
        socket.create_server(('::1', 0), family=socket.AF_INET6).close()
        families['v6'] = '[::1]'
    except OSError:  # a machine without IPv6
        pass
    lab.start('--log-format', 'json', *(word for rig, host in families.items() for word in (
        '--raw', '%s:0,format=itm,id=1,rig=%s' % (host, rig))))
    for rig, host in families.items():
        url, = [line['url'] for line in lab.wait_told('listening', 2 + len(families)) if ' ' + rig in line.get('for', '')]
        with socket.create_connection((host.strip('[]'), int(url.rsplit(':', 1)[1]))) as s:
            mine = '%s:%d' % (host, s.getsockname()[1])
            s.sendall(b'\0\0\0\0\0\x80\x09A')
        begun, = lab.wait_told('push begun', rig=rig)
        check(begun['client'] == mine, begun, mine)
        lab.wait_told('push ended', rig=rig, bytes=8)
        row, = [t for t in json.loads(lab.run('ls', '--json').text()) if t['rig'] == rig]
        check(row['labels']['connection'] == mine, row)


@test
def notify(lab):
    """The service manager is notified of readiness, reloads, the watchdog and stopping."""
    path = lab.path('notify')
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as s:
        s.bind(path)
        s.settimeout(240)
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
    with urllib.request.urlopen(lab.url + '/metrics', timeout=240) as reply:
        text = reply.read().decode()
    out = {}
    for line in text.splitlines():
        if not line.startswith('#'):
            name, value = line.rsplit(' ', 1)
            out[name] = float(value)
    return out


@test
def reload_limits(lab):
    """SIGHUP applies limits from the file; settings that need a restart are named; a bad file changes nothing."""
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
        """How many of n concurrent connections stay open."""
        sockets = [socket.create_connection(('127.0.0.1', lab.port)) for _ in range(n)]
        kept = 0
        for s in sockets:
            s.settimeout(240)
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
    def seen_metrics():
        try:
            return metrics(lab)
        except OSError:  # the connections above may still count
            return None
    seen = wait('a connection is taken', seen_metrics)
    check(seen['tracelake_min_free_bytes'] == 1 << 20, 'min-free')
    told = hang_up(base % 3, 'not reloaded, all stays as it was', 1)
    check('max-connections' in told['why'], told)
    told = hang_up('data = x\n\ncolour = red\n', 'not reloaded, all stays as it was', 2)
    check('line 3' in told['why'] and 'colour' in told['why'], told)
    check(connect(20) <= 10, 'the limit has gone')
    lab.stop()


@test
def check_config(lab):
    """Every configuration that cannot work is refused, with its location, before anything is opened or created."""
    config = lab.path('serve.ini')

    def bad(status, words, text, *options):
        write(config, text)
        lab.fails(status, words, 'serve', '--config', config, '--check-config', *options)

    base = 'data = %s\n' % lab.data
    bad(1, r'line 2: there is no option "colour"', base + 'colour = red\n')
    bad(1, r'line 1: there is no option "config"', 'config = x\n' + base)
    bad(1, r'line 3: threads = many: must be a number', base + '\nthreads = many\nx = y\n')
    bad(1, r'line 2: there are no sections', base + '[server]\nthreads = 1\n')
    bad(1, r'line 2 is neither', base + 'nonsense\n')
    bad(2, r'--data', '')
    bad(1, r'line 1: data .*/file: Not a directory', 'data = %s\n' % write(lab.path('file'), ''))
    bad(1, r'line 1: data /nowhere/at/all: No such', 'data = /nowhere/at/all\n')
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
    write(config, base + 'threads = 1 ; a comment\n# ' + 300 * 'long ' + '\nlisten = 127.0.0.1:0\n'
          'raw = 127.0.0.1:0,rig=a,format=di\n')
    done = lab.run('serve', '--config', config, '--check-config')
    check(done.out == b'the configuration is fine\n', done)
    write(config, base + 'min-free = 2T\n')
    lab.run('serve', '--config', config, '--check-config')
    check(not os.path.exists(lab.data), 'it made the data folder')


@test
def second_server(lab):
    """A second server on the data folder ends with what to do, and the first one goes on."""
    lab.start()
    done = lab.run('serve', '--data', lab.data, '--listen', '127.0.0.1:0', '--listen-tls', '127.0.0.1:0', status=3)
    check(b'another server uses this data folder: stop it first' in done.err, done)
    check(lab.ready(), 'the first server is gone')


@test
def retention_is_told(lab):
    """--dry-run lists what a rule would remove, and removes nothing; what is removed is in the journal, with the rule and
    the age."""
    lab.start('--log-format', 'json')
    for name in ('old', 'new'):
        lab.run('push', '--format', 'itm', '--trace', name, itm(lab))
    size = os.path.getsize(lab.path('itm'))
    limit = '8K'
    check(size < 8192 < 2 * size, size)
    check('nothing' in lab.run('retain', '--dry-run').text(), 'no rule')
    told = json.loads(lab.run('retain', '--dry-run', '--raw', limit, '--json').text())
    check(not told['paused'] and len(told['victims']) == 1, told)
    victim = told['victims'][0]
    check(victim['trace'] == 'old' and victim['what'] == 'raw' and victim['by'] == 'size' and
          victim['bytes'] == size and victim['limit'] == 8192, victim)
    check('old ' in lab.run('retain', '--dry-run', '--raw', limit).text(), 'in words')
    check('no rules' in lab.run('retain').text(), 'it was only tried')
    lab.fails(2, 'not --remove', 'retain', '--dry-run', '--remove')
    check(not lab.told('removed by retention'), 'it was removed')
    lab.run('retain', '--raw', limit)
    line = lab.wait_told('removed by retention')[-1]
    check(line['trace'] == 'old' and line['rule'] == 'all' and line['because'] == 'size' and line['what'] == 'raw' and
          line['bytes'] == size and line['age_seconds'] < 300, line)
    check(lab.run('raw', 'new', '-').out, 'the other one')


@test
def keys_are_documented(lab):
    """The command's help and the manual contain all keys, and no others."""
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
    """Latencies, queues and memory reflect what has happened."""
    lab.start()
    push(lab, '--trace', 'one')
    lab.run('ls')
    with urllib.request.urlopen(lab.url + '/api/v1/traces', timeout=240) as reply:
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


def seconds_of(date):
    return calendar.timegm(time.strptime(date, '%Y-%m-%dT%H:%M:%SZ'))


@test
def token_command(lab):
    """Tokens are added, listed and revoked in a file that contains no token; expiry and scope are enforced."""
    tokens = lab.path('tokens')

    def add(name, *options):
        text = lab.run('token', 'add', '--tokens', tokens, '--name', name, *options).text()
        return write(lab.path(name), text)

    admin = add('boss', '--role', 'admin')
    bench = add('bench', '--role', 'push', '--rig', 'bench*', '--label', 'team=a')
    brief = add('brief', '--role', 'read', '--expires', '1s')
    check(os.stat(tokens).st_mode & 0o777 == 0o600, 'mode')
    with open(tokens) as f:
        text = f.read()
    for path in (admin, bench, brief):
        with open(path) as f:
            check(f.read().strip() not in text, 'a token stands in the file')
    lab.fails(1, r'boss is there already', 'token', 'add', '--tokens', tokens, '--name', 'boss',
              '--role', 'read')
    lab.fails(2, r'--role', 'token', 'add', '--tokens', tokens, '--role', 'ruler')
    lab.fails(2, r'--expires', 'token', 'add', '--tokens', tokens, '--role', 'read', '--expires',
              'soon')
    lab.fails(2, r'one word', 'token', 'add', '--tokens', tokens, '--role', 'read', '--name', 'a b')
    lab.fails(2, r'which file', 'token', 'list')
    rows = json.loads(lab.run('token', 'list', '--tokens', tokens, '--json').text())
    check([r['name'] for r in rows] == ['boss', 'bench', 'brief'], rows)
    check(rows[1]['scope'] == 'rig=bench* label=team=a' and rows[1]['role'] == 'push', rows)
    lab.start('--tokens', tokens, '--log-format', 'json')
    lab.run('ls', '--token', admin)
    push(lab, '--trace', 'one', '--token', bench)
    lab.fails(3, r'not for rig|not allowed|rig', 'push', '--format', 'itm,id=0', '--rig', 'other',
              '--token', bench, itm(lab))
    wait('it has expired', lambda: time.time() >= seconds_of(rows[2]['expires']))
    lab.fails(3, r'expired', 'ls', '--token', brief)
    check(lab.wait_told('request refused', why='the token has expired'), lab.server_log())
    # Removed with the next SIGHUP, by name and by id.
    lab.run('token', 'revoke', '--tokens', tokens, 'bench', rows[2]['id'])
    lab.fails(1, r'there is no "bench"', 'token', 'revoke', '--tokens', tokens, 'bench')
    lab.server.send_signal(signal.SIGHUP)
    lab.wait_told('reloaded')
    lab.fails(3, r'not known', 'ls', '--token', bench)
    lab.run('ls', '--token', admin)
    # A file readable by others is refused, at startup and at SIGHUP.
    os.chmod(tokens, 0o644)
    lab.server.send_signal(signal.SIGHUP)
    told = lab.wait_told('not reloaded, all stays as it was')[0]
    check('everyone' in told['why'], told)
    lab.run('ls', '--token', admin)
    lab.stop()
    lab.fails(1, r'everyone on this machine may use it \(mode 644\)', 'serve', '--data', lab.data,
              '--tokens', tokens, '--check-config')


def request(lab, method, path, headers=None):
    c = http.client.HTTPConnection('127.0.0.1', lab.port, timeout=240)
    try:
        c.request(method, path, headers=headers or {})
        reply = c.getresponse()
        return reply.status, dict((k.lower(), v) for k, v in reply.getheaders()), reply.read()
    finally:
        c.close()


@test
def login(lab):
    """A browser gets a cookie in exchange for a token; pages of other sites cannot use it."""
    tokens = lab.path('tokens')
    bearer = {'Authorization': 'Bearer ' + lab.run('token', 'add', '--tokens', tokens, '--role',
                                                   'admin', '--name', 'me').text().strip()}
    lab.start('--tokens', tokens, '--log-format', 'json')
    push(lab, '--trace', 'one', '--token',
         write(lab.path('mine'), bearer['Authorization'].split()[1] + '\n'))
    html = {'Accept': 'text/html,*/*;q=0.8'}
    status, headers, _ = request(lab, 'GET', '/', html)
    check(status == 303 and headers['location'] == 'login?next=', status, headers)
    status, headers, _ = request(lab, 'GET', '/api/v1/traces?x=1&y="', html)
    check(headers['location'] == '../../login?next=api/v1/traces%3Fx%3D1%26y%3D%22', headers)
    status, headers, body = request(lab, 'GET', '/api/v1/traces')
    check(status == 401 and headers['www-authenticate'].startswith('Bearer'), status, headers)
    for path in ('/login', '/login.js', '/login.css', '/licenses.txt'):
        check(request(lab, 'GET', path)[0] == 200, path)
    check(request(lab, 'GET', '/app.js')[0] == 401, 'the page without a login')
    check(request(lab, 'POST', '/api/v1/login')[0] == 401, 'a login without a token')
    check(request(lab, 'POST', '/api/v1/login', {'Authorization': 'Bearer ' + 'x' * 48})[0] == 401,
          'a login with a wrong token')
    check(request(lab, 'GET', '/api/v1/login', bearer)[0] in (404, 405), 'a login by GET')
    status, headers, _ = request(lab, 'POST', '/api/v1/login', bearer)
    check(status == 204, status, headers)
    words = headers['set-cookie'].split('; ')
    check('HttpOnly' in words and 'SameSite=Lax' in words and 'Path=/' in words, words)
    check(bearer['Authorization'].split()[1] not in headers['set-cookie'], 'the token is in it')
    cookie = {'Cookie': 'a=b; ' + words[0]}
    check(request(lab, 'GET', '/', {**html, **cookie})[0] == 200, 'the page')
    check(json.loads(request(lab, 'GET', '/api/v1/traces', cookie)[2])[0]['id'] == 'one', 'traces')
    # Only our own page can change anything.
    path = '/api/v1/traces/one'
    for foreign in ({'Origin': 'http://evil.example'}, {'Sec-Fetch-Site': 'cross-site'},
                    {'Sec-Fetch-Site': 'same-site'}, {'Origin': 'http://127.0.0.1:1'},
                    {'Origin': 'null'}):
        check(request(lab, 'DELETE', path, {**cookie, **foreign})[0] == 403, foreign)
        check(request(lab, 'POST', '/api/v1/logout', {**cookie, **foreign})[0] == 403, foreign)
    # Nor does a cookie authorise RPC, where pages of other sites cannot be distinguished.
    other = words[0][:-1] + ('1' if words[0][-1] == '0' else '0')
    status, headers, _ = request(lab, 'GET', '/api/v1/traces', {'Cookie': other})
    check(status == 401, 'a changed cookie')
    status, headers, _ = request(lab, 'POST', '/api/v1/logout', cookie)
    check(status == 204 and 'Max-Age=0' in headers['set-cookie'], headers)
    # Revoking a token ends its logins.
    lab.run('token', 'add', '--tokens', tokens, '--role', 'read', '--name', 'other')
    lab.run('token', 'revoke', '--tokens', tokens, 'me')
    lab.server.send_signal(signal.SIGHUP)
    lab.wait_told('reloaded')
    check(request(lab, 'GET', '/api/v1/traces', cookie)[0] == 401, 'of a revoked token')
    lab.stop()


def make_ca(lab, name):
    """A certification authority, and a function that has it sign a certificate for a name."""
    def openssl(*args):
        done = subprocess.run(['openssl', *args], stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        check(done.returncode == 0, args, done.stdout.decode())

    key, ca = lab.path(name + '-key.pem'), lab.path(name + '.pem')
    curve = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes']
    openssl('req', '-x509', *curve, '-keyout', key, '-out', ca, '-days', '2', '-subj', '/CN=' + name)

    def sign(subject, alternative=None):
        out = lab.path('%s-%s' % (name, subject))
        openssl('req', *curve, '-keyout', out + '.key', '-out', out + '.csr', '-subj',
                '/CN=' + subject)
        extra = []
        if alternative:
            extra = ['-extfile', write(out + '.ext', 'subjectAltName=' + alternative)]
        openssl('x509', '-req', '-in', out + '.csr', '-CA', ca, '-CAkey', key, '-out', out + '.crt',
                '-days', '2', *extra)
        return ['--cert', out + '.crt', '--key', out + '.key']

    return ca, sign


@test
def client_certificates(lab):
    """A client with a certificate of the right authority may do what the file grants to its name."""
    ca, sign = make_ca(lab, 'lab')
    _, forge = make_ca(lab, 'forger')
    rig7, boss, guest = sign('rig7'), sign('x', 'DNS:boss.lab'), sign('guest')
    tokens = lab.path('tokens')
    lab.run('token', 'add', '--tokens', tokens, '--role', 'push', '--cert', 'rig7', '--rig', 'bench*')
    lab.run('token', 'add', '--tokens', tokens, '--role', 'admin', '--cert', 'boss.lab')
    reader = write(lab.path('reader'), lab.run('token', 'add', '--tokens', tokens, '--role', 'read',
                                               '--name', 'reader').text())
    lab.start('--tokens', tokens, '--tls-client-ca', ca, '--log-format', 'json')
    url = 'https://127.0.0.1:%d' % lab.tls_port
    pin = lab.wait_told('certificate')[0]['sha256']
    there = ['--server', url, '--fingerprint', pin]
    push(lab, '--trace', 'one', *there, *rig7)
    lab.fails(3, r'rig', 'push', '--format', 'itm,id=0', '--rig', 'other', itm(lab), *there, *rig7)
    lab.run('rm', 'one', *there, *boss)
    lab.fails(3, r'no role', 'ls', *there, *guest)
    lab.fails(3, r'', 'ls', *there, *forge('rig7'))
    lab.fails(3, r'token is needed', 'ls', *there)
    lab.run('ls', '--token', reader, *there)         # a certificate is not needed with a token,
    lab.run('ls', '--token', reader, *there, *guest)  # which takes precedence
    lab.fails(2, r'no key of the certificate', 'ls', *there, '--cert', rig7[1], '--key', boss[3])
    lab.fails(2, r'no PEM certificate', 'ls', *there, '--cert', reader)
    # The same through the environment, and over HTTP/1.1 and HTTP/2 for other clients.
    for name, value in (('SERVER', url), ('FINGERPRINT', pin), ('CERT', boss[1]), ('KEY', boss[3])):
        os.environ['TRACELAKE_' + name] = value
    try:
        env = lab.environment
        lab.environment = lambda: dict(os.environ)
        lab.run('ls')
        lab.fails(3, r'not trusted', 'ls', '--cafile', ca)  # the command line replaces the environment
        os.environ['TRACELAKE_CAFILE'] = os.path.join(lab.data, 'tls-cert.pem')
        del os.environ['TRACELAKE_FINGERPRINT']
        lab.run('ls')
    finally:
        lab.environment = env
        for name in ('SERVER', 'FINGERPRINT', 'CERT', 'KEY', 'CAFILE'):
            os.environ.pop('TRACELAKE_' + name, None)
    context = ssl.create_default_context(cafile=os.path.join(lab.data, 'tls-cert.pem'))
    context.load_cert_chain(rig7[1], rig7[3])
    with urllib.request.urlopen(url + '/api/v1/traces', context=context, timeout=240) as reply:
        check(reply.status == 200, 'by HTTP/1.1')
    # Revoked for new requests with the next SIGHUP.
    lab.run('token', 'revoke', '--tokens', tokens, 'rig7')
    lab.server.send_signal(signal.SIGHUP)
    lab.wait_told('reloaded')
    lab.fails(3, r'no role', 'ls', *there, *rig7)
    lab.stop()


@test
def backup(lab):
    """A copy of a running server's catalog and then its objects can be served."""
    lab.start('--log-format', 'json')
    push(lab, '--trace', 'whole')
    with open(itm(lab, 40000), 'rb') as f:
        sent = f.read()
    live = lab.spawn('push', '--format', 'itm,id=0', '--rig', 'bench3', '--trace', 'live', '--chunk', '200', '-',
                     stdin=subprocess.PIPE)

    def goes_on_to(n):
        live.stdin.write(sent[goes_on_to.at:n])
        live.stdin.flush()
        goes_on_to.at = n
        wait('it has %d bytes' % n, lambda: lab.offset('live') >= n)
    goes_on_to.at = 0
    goes_on_to(4000)
    copy = lab.path('copy')
    os.mkdir(copy)
    there, here = sqlite3.connect(os.path.join(lab.data, 'catalog.db')), sqlite3.connect(
        os.path.join(copy, 'catalog.db'))
    there.backup(here)
    here.close()
    there.close()
    goes_on_to(8000)  # so that the objects are ahead of the catalog
    shutil.copytree(os.path.join(lab.data, 'objects'), os.path.join(copy, 'objects'))
    whole = lab.run('get', 'whole', '--text').out
    live.send_signal(signal.SIGKILL)
    lab.kill()
    shutil.rmtree(lab.data)
    os.rename(copy, lab.data)
    lab.start('--log-format', 'json')
    check(lab.run('get', 'whole', '--text').out == whole, 'flow differs')
    back = lab.run('raw', 'live', '-').out
    check(len(back) >= 8000 and sent.startswith(back), 'raw bytes', len(back))
    lab.run('verify', '--all')
    # The rig continues with it.
    lab.run('push', '--format', 'itm,id=0', '--rig', 'bench3', '--trace', 'live', lab.path('itm'))
    check(lab.run('raw', 'live', '-').out == sent, 'raw bytes after going on')
    check(lab.run('get', 'live', '--text').text().count('\nS itm 1 ') == 40000, 'flow')
    lab.stop()


@test
def taken_port(lab):
    """`./dev run` fails if another server listens there, and its rigs do not push to that."""
    if lab.build != os.path.join(SOURCE, 'build') or not os.path.exists(lab.build + '/.deps'):
        raise Skip('not the build folder of ./dev')
    lab.start()
    done = subprocess.run([os.path.join(SOURCE, 'dev'), 'run', '--listen=127.0.0.1:%d' % lab.port,
                           '--listen-tls=127.0.0.1:0', '--data=' + lab.path('other')],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=240)
    check(done.returncode == 1 and b'cannot listen on' in done.stderr, done)
    check(json.loads(lab.run('ls', '--json').text()) == [], 'a rig pushed into another\'s server')
    lab.stop()


if __name__ == '__main__':
    main(TESTS)
