#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Probes whose connection is lost for a while: the trace goes on, and where it was is known."""
import json
import os
import random
import re
import socket
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import lab as labs  # noqa: E402
from e2e import wait_offset, wait_sealed  # noqa: E402
from lab import check, free_port, wait  # noqa: E402

TESTS = {}
SYNC = b'\0\0\0\0\0\x80'
LOST = re.compile(r'^A connection-lost (\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z) \d+\.\d{3} s$', re.M)


def test(function):
    TESTS[function.__name__] = function
    return function


def words(dice, n):
    """So many ITM packets of port 1, each with a local timestamp of 2."""
    return b''.join(bytes([0x09, dice.randrange(256), 0x20]) for _ in range(n))


class Probe:
    """A probe's server. Closing a connection is pulling its cable."""

    def __init__(self):
        self.server = socket.create_server(('127.0.0.1', 0))
        self.server.settimeout(labs.TIMEOUT)
        self.port = self.server.getsockname()[1]
        self.connection = None
        self.sent = b''
        self.places = []  # of the losses

    def connect(self):
        self.connection = self.server.accept()[0]
        if self.sent:
            self.places.append(len(self.sent))

    def send(self, lab, data):
        """Send bytes, and wait until they are stored."""
        self.connection.sendall(data)
        self.sent += data
        wait_offset(lab, trace_of(lab), len(self.sent))

    def pull(self):
        self.connection.close()


def trace_of(lab):
    def only():
        rows = json.loads(lab.run('ls', '--json').text())
        check(len(rows) < 2, rows)
        return rows[0]['id'] if rows else None
    return wait('a trace', only)


def flow(lab, trace):
    return lab.run('get', trace + '/cs.00', '--text').text()


def check_flow(lab, trace, probe):
    """Each loss is where it was; time goes on; the bytes are those that came."""
    text = flow(lab, trace)
    check(lab.run('raw', trace, '-').out == probe.sent, 'the bytes are not those that came')
    check(len(LOST.findall(text)) == len(probe.places), probe.places, text[-2000:])
    check(text.count('\nG transport\n') == len(probe.places), probe.places)
    times = [int(line.split()[2]) for line in text.splitlines() if line.startswith('A time ')]
    check(len(times) > 500 and times == sorted(times), 'time goes back')
    gaps = json.loads(lab.run('find', trace + '/cs.00', '--event', 'gap', '--json').text())['hits']
    # A gap is found at the first record behind it.
    check(all(place <= hit['byte'] <= place + len(SYNC) for hit, place in zip(gaps, probe.places)), gaps, probe.places)
    return text


def pulled(lab, *options):
    """A probe is pulled in the middle of packets, with the server killed in between."""
    dice = random.Random(7)
    probe = Probe()
    source = ('--source', 'tcp://127.0.0.1:%d,format=itm,id=0,rig=bench%s' % (probe.port, ''.join(options)))
    lab.start(*source)
    probe.connect()
    probe.send(lab, SYNC + words(dice, 300) + b'\x0b\x01')
    probe.pull()
    probe.connect()
    probe.send(lab, b'\x05\x06' + words(dice, 300))
    lab.kill()
    probe.pull()
    lab.start(*source)
    probe.connect()
    probe.send(lab, words(dice, 300) + b'\x09')
    lab.stop()
    lab.start(*source)
    probe.connect()
    probe.send(lab, SYNC + words(dice, 300))
    probe.pull()
    probe.server.close()
    trace = trace_of(lab)
    wait_sealed(lab, trace)
    row, = json.loads(lab.run('ls', '--json').text())
    check('the rig\'s connection was lost' in row['message'], row)
    return trace, probe


@test
def source_is_pulled(lab):
    trace, probe = pulled(lab, ',rejoin=2s')
    text = check_flow(lab, trace, probe)
    lab.run('redecode', trace, status=1)
    wait('it is decoded again', lambda: json.loads(lab.run('ls', '--json').text())[0]['generation'] == 2)
    wait_sealed(lab, trace)
    check(check_flow(lab, trace, probe) == text, 'it says something else when it is decoded again')
    lab.stop()
    lab.run('store', 'copy', lab.data, lab.path('there'))
    lab.data = lab.path('there')
    lab.start()
    lab.run('redecode', trace, status=1)
    wait('it is decoded again', lambda: json.loads(lab.run('ls', '--json').text())[0]['generation'] == 3)
    wait_sealed(lab, trace)
    check(check_flow(lab, trace, probe) == text, 'a copy says something else')


def elements(text):
    """Flow text without the names of files and streams' headers."""
    return [line for line in text.splitlines() if not line.startswith('#')]


@test
def handed_on(lab):
    """What `raw` writes of a capture says where the connection was lost, also when it is decoded elsewhere."""
    trace, probe = pulled(lab, ',rejoin=2s')
    text = flow(lab, trace)
    whens = LOST.findall(text)
    got = lab.run('raw', trace, '-o', lab.path('swo.bin'), '--config', lab.path('swo.ini'))
    said = re.findall(r"lost in front of byte (\d+): (\S+) \d+\.\d{3} s\n", got.err.decode())
    check(said == [(str(place), when) for place, when in zip(probe.places, whens)], said, probe.places, whens)
    with open(lab.path('swo.bin'), 'rb') as f:
        check(f.read() == probe.sent, 'other bytes')
    for more in [], ['--threads', '2', '--chunk', '7']:
        here = lab.run('decode', '--config', lab.path('swo.ini'), '--text', *more, lab.path('swo.bin'), status=1).text()
        check(elements(here) == elements(text), here[-2000:], text[-2000:])
    lab.run('push', '--trace', 'again', '--config', lab.path('swo.ini'), lab.path('swo.bin'), status=1)
    wait_sealed(lab, 'again')
    check(elements(flow(lab, 'again')) == elements(text), 'pushed again it says something else')
    lab.run('raw', 'again', '-o', lab.path('again.bin'), '--config', lab.path('again.ini'))
    with open(lab.path('swo.ini')) as a, open(lab.path('again.ini')) as b:
        check(re.findall('lost=.*', a.read()) == re.findall('lost=.*', b.read()), 'handed on twice')
    # A part of it has the places within it, by their own offsets.
    first, last = probe.places[0] - 10, probe.places[1]
    lab.run('raw', trace, '--byte', '%d:%d' % (first, last), '-o', lab.path('part.bin'), '--config', lab.path('part.ini'))
    with open(lab.path('part.ini')) as f:
        check(re.findall(r'(?m)^lost=(\d+) ', f.read()) == ['10'], 'places of a part')


@test
def source_is_pulled_virtual(lab):
    """With shards that are made from raw bytes when they are read."""
    trace, probe = pulled(lab, ',rejoin=2s,shards=virtual')
    check_flow(lab, trace, probe)


@test
def sealed_meanwhile(lab):
    """A trace that was waited for, and sealed by its user, is not continued; nothing of the next one is lost."""
    dice = random.Random(9)
    probe = Probe()
    source = ('--source', 'tcp://127.0.0.1:%d,format=itm,id=0,rig=bench,rejoin=1m' % probe.port)
    lab.start(*source)
    probe.connect()
    probe.send(lab, SYNC + words(dice, 300))
    lab.kill()
    probe.pull()
    lab.start(*source)
    first = trace_of(lab)
    lab.run('seal', first)
    probe.connect()
    more = SYNC + words(dice, 200)
    probe.connection.sendall(more)
    other = wait('another trace', lambda: [r['id'] for r in json.loads(lab.run('ls', '--json').text())
                                           if r['id'] != first])[0]
    wait_offset(lab, other, len(more))
    probe.connection.sendall(more)
    wait_offset(lab, other, 2 * len(more))
    check(lab.run('raw', other, '-').out == 2 * more, 'other bytes')
    check(lab.run('raw', first, '-').out == probe.sent, 'other bytes in the first')


@test
def rig_comes_back(lab):
    """Rigs that connect to the server: one that is waited for, and one that is not."""
    dice = random.Random(8)
    ports = {'waited': free_port(), 'plain': free_port()}
    lab.start(*(word for rig, port in ports.items() for word in (
        '--raw', '127.0.0.1:%d,format=itm,id=0,rig=%s%s' % (
            port, rig, ',rejoin=1m' if rig == 'waited' else ''))))
    sent = {rig: [SYNC + words(dice, 300) + b'\x0b', words(dice, 200)] for rig in ports}
    for rig, port in ports.items():
        for n, piece in enumerate(sent[rig]):
            with socket.create_connection(('127.0.0.1', port)) as s:
                s.sendall(piece)
            wait('its bytes', lambda: stored(lab, rig) == sum(map(len, sent[rig][:n + 1])))
            if rig == 'waited':
                wait('that it is waited for', lambda: lab.server_log().count('waits for it') == n + 1)
    rows = json.loads(lab.run('ls', '--json').text())
    check(sorted(r['rig'] for r in rows) == ['plain', 'plain', 'waited'], rows)
    waited, = [r['id'] for r in rows if r['rig'] == 'waited']
    text = lab.run('get', waited + '/cs.00', '--text').text()
    check(len(LOST.findall(text)) == 1 and text.count('G transport') == 1, text[-1000:])
    check(lab.run('raw', waited, '-').out == b''.join(sent['waited']), 'other bytes')


def stored(lab, rig):
    return sum(int(r['raw_bytes']) for r in json.loads(lab.run('ls', '--json').text()) if r['rig'] == rig)


if __name__ == '__main__':
    labs.main(TESTS)
