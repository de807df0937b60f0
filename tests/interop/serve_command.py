# SPDX-License-Identifier: MIT
"""The command `tracelake serve`: arguments it refuses, its configuration file, tokens, raw bytes in
and out."""

import json
import os
import signal
import socket
import ssl
import subprocess
import time
import urllib.error
import urllib.request

from server import Server, check, wait

TOKEN = 'admin-0123456789abcdef'


def refused(server, status, words, *options):
    out = subprocess.run([server.command, 'serve', *options], stdout=subprocess.PIPE,
                         stderr=subprocess.PIPE, timeout=240, check=False)
    text = out.stderr.decode()
    check(out.returncode == status, options, 'exit status', out.returncode, text)
    last = text.splitlines()[-1] # after the journal
    check(words in last and last.startswith('tracelake: '), options, text)


def test_refusals(server):
    data = ['--data', server.dir + '/other']
    refused(server, 2, '--data DIR')
    refused(server, 2, 'no option', *data, 'extra')
    refused(server, 2, 'ADDR:PORT', *data, '--listen', 'nonsense')
    refused(server, 2, '--listen-tls', *data, '--listen', '0.0.0.0:0')
    refused(server, 2, '--tokens', *data, '--listen-tls', '0.0.0.0:0')
    refused(server, 2, 'belong together', *data, '--tls-cert', 'x.pem')
    refused(server, 1, '/nowhere', *data, '--listen', '127.0.0.1:0', '--tokens', '/nowhere')
    refused(server, 1, 'cannot listen', *data, '--listen', server.address)
    local = ['--listen', '127.0.0.1:0']
    refused(server, 2, 'format=FMT', *data, *local, '--raw', '127.0.0.1:0,rig=a')
    refused(server, 2, '--insecure', *data, *local, '--raw', '0.0.0.0:0,format=di,rig=a')
    config = server.dir + '/bad.ini'
    with open(config, 'w', encoding='utf-8') as f:
        f.write('data = %s/other\ncolour = red\n' % server.dir)
    refused(server, 1, 'line 2', '--config', config)


def get(url, token=None, status=200):
    request = urllib.request.Request(url)
    if token:
        request.add_header('Authorization', 'Bearer ' + token)
    try:
        with urllib.request.urlopen(request, timeout=240) as reply:
            code, body = reply.status, reply.read()
    except urllib.error.HTTPError as e:
        code, body = e.code, e.read()
    check(code == status, url, code, body[:200])
    return body


def test_config_and_tokens(server):
    folder = server.dir + '/configured'
    os.mkdir(folder)
    tokens, config = folder + '/tokens', folder + '/serve.ini'
    with open(tokens, 'w', encoding='utf-8') as f:
        f.write('# who may what\n%s admin\nreader-0123456789abcdef read\n' % TOKEN)
    os.chmod(tokens, 0o600)
    with open(config, 'w', encoding='utf-8') as f:
        f.write('; a comment\ntokens = %s\nthreads = 1\n' % tokens)
    other = Server(os.path.dirname(server.command), folder, '--config', config)
    try:
        other.start()
        get(other.url + '/healthz')
        get(other.url + '/api/v1/traces', status=401)
        get(other.url + '/api/v1/traces', 'nobody-0123456789abcdef', status=401)
        check(json.loads(get(other.url + '/api/v1/traces', TOKEN)) == [], 'traces')
        other.stop()
    finally:
        other.kill()


def hang_up(server, words):
    """Send SIGHUP; returns the line that it adds to the server's journal."""
    before = len(server.told())
    server.process.send_signal(signal.SIGHUP)
    lines = wait('the journal', lambda: [line for line in server.told()[before:] if 'reloaded' in line])
    check(' %s' % words in lines[0], words, 'not in', server.told()[before:])


def fingerprint(server):
    host, port = server.tls_url.split('//')[1].split(':')
    return ssl.get_server_certificate((host, int(port)), timeout=240)


def test_reload(server):
    """SIGHUP loads new tokens and a new certificate; if they are bad, the old ones stay in
    force."""
    folder = server.dir + '/reloaded'
    os.mkdir(folder)
    tokens = folder + '/tokens'
    old, new = 'old-0123456789abcdef', 'new-0123456789abcdef'

    def write(text):
        with open(tokens, 'w', encoding='utf-8') as f:
            f.write(text)
        os.chmod(tokens, 0o600)

    write(old + ' read\n')
    other = Server(os.path.dirname(server.command), folder, '--tokens', tokens)
    try:
        other.start()
        traces = other.url + '/api/v1/traces'
        get(traces, old)
        write(new + ' read\n')
        hang_up(other, 'reloaded')
        get(traces, old, status=401)
        get(traces, new)
        for bad in ('', new + ' nobody\n', 'short read\n'):
            write(bad)
            hang_up(other, 'not reloaded')
            get(traces, new)
        os.remove(tokens)
        hang_up(other, 'not reloaded')
        get(traces, new)
        write(old + ' read\n')
        first = fingerprint(other)
        with open(server.cert, encoding='utf-8') as f:
            certificate = f.read()
        with open(server.cert.replace('cert', 'key'), encoding='utf-8') as f:
            key = f.read()
        with open(other.cert, 'w', encoding='utf-8') as f:
            f.write(certificate)
        hang_up(other, 'not reloaded')  # the key does not belong to that certificate
        check(fingerprint(other) == first, 'a certificate without its key')
        get(traces, new)  # nor are the tokens, although they were good
        with open(other.cert.replace('cert', 'key'), 'w', encoding='utf-8') as f:
            f.write(key)
        hang_up(other, 'reloaded')
        check(fingerprint(other) == certificate != first, 'the new certificate')
        get(traces, old)
        other.stop()
    finally:
        other.kill()


def wait_for(url, what):
    return wait('such a trace', lambda: [t for t in json.loads(get(url + '/api/v1/traces')) if what(t)])[0]


def test_raw(server):
    """Bytes over raw TCP, pushed by a rig and fetched from a source, decode like any other
    capture."""
    folder = server.dir + '/raw'
    os.mkdir(folder)
    data = b'\0\0\0\0\0\x80' + bytes(b for i in range(2000) for b in (0x09, i & 255))
    source = socket.create_server(('127.0.0.1', 0))
    fetch = 'tcp://127.0.0.1:%d,format=itm,id=0,rig=far,rejoin=no' % source.getsockname()[1]
    other = Server(os.path.dirname(server.command), folder, '--raw',
                   '127.0.0.1:0,format=itm,id=0,rig=near', '--source', fetch)
    try:
        other.start()
        line = next(x for x in other.lines if x.startswith('tcp://'))
        port = int(line.split()[0].rsplit(':', 1)[1])
        with socket.create_connection(('127.0.0.1', port)) as rig:
            rig.sendall(data)
        source.settimeout(240)
        with source.accept()[0] as far:
            far.sendall(data)
        for name in ('near', 'far'):
            trace = wait_for(other.url, lambda t, n=name: t['rig'] == n and t['state'] == 'sealed')
            check(trace['raw_bytes'] == len(data), trace)
            url = '%s/api/v1/traces/%s/streams/%s/range?format=text' % (
                other.url, trace['id'], trace['streams'][0]['name'])
            text = get(url)
            check(text.count(b'\nS itm 1 ') == 2000, text[:300])
        other.stop()
    finally:
        other.kill()
        source.close()


def run(server):
    for test in (test_refusals, test_config_and_tokens, test_reload, test_raw):
        begin = time.monotonic()
        test(server)
        print('%-30s %.2f s' % (test.__name__, time.monotonic() - begin), flush=True)
