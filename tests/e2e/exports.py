#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Traces as pictures for other tools, read by readers of their own. usage: exports.py BUILD [NAME…]"""
import collections
import csv
import io
import json
import os
import re
import struct
import sys
import urllib.request

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from e2e import simulated, wait_sealed  # noqa: E402
from lab import Lab, check, main  # noqa: E402

TESTS = {}


def test(function):
    TESTS[function.__name__] = function
    return function


# ---- Perfetto's format ----


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, at
        shift += 7


def fields(data):
    """(number, value) of each field of a protobuf message, in order."""
    at = 0
    while at < len(data):
        key, at = varint(data, at)
        if key & 7 == 0:
            value, at = varint(data, at)
        elif key & 7 == 1:
            value, at = data[at:at + 8], at + 8
        else:
            check(key & 7 == 2, 'a field of kind', key & 7, 'at', at)
            n, at = varint(data, at)
            value, at = data[at:at + n], at + n
            check(len(value) == n, 'a field is cut off')
        yield key >> 3, value


def message(data):
    """Fields that occur once, by number."""
    out = {}
    for number, value in fields(data):
        check(number not in out, 'field', number, 'twice')
        out[number] = value
    return out


class Track:
    """A track as a viewer has it. `events` are (what, time, name, kind, notes), `left` the slices that stay open."""

    def __init__(self, name, kind, parent):
        self.name, self.kind, self.parent = name, kind, parent
        self.events, self.stack, self.time, self.deepest = [], [], 0, 0

    def put(self, what, time, name=None, kind=None, notes=None):
        check(time >= self.time, self.name, 'goes back from', self.time, 'to', time)
        self.time = time
        if what == 'begin':
            self.stack.append(name)
        elif what == 'end':
            check(self.stack, self.name, 'ends what has not begun, at', time)
            name = self.stack.pop()
        self.deepest = max(self.deepest, len(self.stack))
        self.events.append((what, time, name, kind, notes))

    def of(self, what):
        return [e for e in self.events if e[0] == what]


def read_track(value, tracks, process):
    d = message(value)
    if 3 in d:
        process.append(message(d[3])[6].decode())
        return
    if 4 in d:
        thread = message(d[4])
        check(thread[1] == 1 and thread[2] > 1, thread)
        tracks[d[1]] = Track(thread[5].decode(), 'stack', 1)
    else:
        check(d[5] in tracks or d[5] == 1, 'no parent', d)
        tracks[d[1]] = Track(d[2].decode(), 'counter' if 8 in d else 'part', d[5])


def read_notes(event, interned):
    notes = {}
    for number, value in fields(event):
        if number == 4:
            note = message(value)
            notes[interned[3][note[1]]] = note[7] if 7 in note else note[3]
    return notes


def perfetto(data):
    """The name of the process, and the tracks by name. Follows the rules of the format: a number stands for what was
    told before in the sequence, a track is described before its first event, slices lie in one another."""
    tracks, process, interned = {}, [], None
    for number, packet in fields(data):
        check(number == 1, 'not a packet')
        p = message(packet)
        check(p[10] == 1 and p[13] & 2, 'sequence', p)
        if p[13] & 1:
            interned = collections.defaultdict(dict)
        check(interned is not None, 'nothing has been told before')
        for kind, told in fields(p.get(12, b'')):
            entry = message(told)
            check(entry[1] > 0 and entry[1] not in interned[kind], 'a number for two texts', entry)
            interned[kind][entry[1]] = entry[2].decode()
        if 60 in p:
            read_track(p[60], tracks, process)
        if 11 not in p:
            continue
        e = {n: v for n, v in fields(p[11]) if n != 4}
        track = tracks[e[11]]
        what = {1: 'begin', 2: 'end', 3: 'mark', 4: 'value'}[e[9]]
        check((what == 'value') == (track.kind == 'counter'), what, 'on', track.name)
        if what == 'value':
            track.put(what, p[8], struct.unpack('<d', e[44])[0])
        elif what == 'end':
            track.put(what, p[8])
        else:
            name = e[23].decode() if 23 in e else interned[2][e[10]]
            track.put(what, p[8], name, interned[1][e[3]] if 3 in e else None, read_notes(p[11], interned))
    check(len(process) == 1, process)
    names = [t.name for t in tracks.values()]
    check(len(names) == len(set(names)), names)
    return process[0], {t.name: t for t in tracks.values()}


# ---- Chrome's format ----


def chrome(text):
    told = json.loads(text)
    check(told['displayTimeUnit'] == 'ns', told.keys())
    tracks, process = {}, None
    whats = {'B': 'begin', 'E': 'end', 'i': 'mark', 'C': 'value'}
    for e in told['traceEvents']:
        check(e['pid'] == 1, e)
        if e['ph'] == 'M':
            if e['name'] == 'process_name':
                process = e['args']['name']
            elif e['name'] == 'thread_name':
                tracks[e['tid']] = Track(e['args']['name'], None, 1)
            continue
        key = ('counter', e['name']) if e['ph'] == 'C' else e['tid']
        if e['ph'] == 'C' and key not in tracks:
            tracks[key] = Track(e['name'], 'counter', 1)
        args = dict(e.get('args', {}))
        if 'pc' in args:
            args['pc'] = int(args['pc'], 16)
        name = args['value'] if e['ph'] == 'C' else e.get('name')
        tracks[key].put(whats[e['ph']], round(e['ts'] * 1000), name, e.get('cat'), None if e['ph'] in 'CE' else args)
    return process, {t.name: t for t in tracks.values()}


# ---- tests ----


def ask(lab, text, trace='sim'):
    return [json.loads(line) for line in lab.run('sql', trace, text, '--json', '--limit', '10M').text().splitlines()]


def get(lab, form, *args, trace='sim'):
    path = lab.path('picture')
    lab.run('get', trace, '--format', form, '-o', path, *args)
    with open(path, 'rb') as f:
        return f.read()


def name_of(row):
    """What a frame is called."""
    if row['kind'] != 'exception':
        return row['function'] or '0x%x' % (row['pc'] % 2 ** 64)
    what = 'exception' if row['number'] is None else 'exception %d' % row['number']
    return '%s: %s' % (what, row['function']) if row['function'] else what


def frames_of(lab, stream, where=''):
    """What the track of a stream's calls must have: (what, time, name) without what ends with the stream."""
    rows = ask(lab, "SELECT what, time, kind, number, pc, function, ended FROM timeline WHERE stream = '%s'%s" % (stream, where))
    return [({'open': 'begin'}.get(r['what'], r['what']), r['time'], name_of(r)) for r in rows
            if r['what'] in ('open', 'begin') or r['what'] == 'end' and r['ended']]


def drawn(track):
    return [(what, time, name) for what, time, name, _, _ in track.events if what in ('begin', 'end')]


def same_pictures(a, b):
    """Both formats tell the same."""
    check(a[0] == b[0] and sorted(a[1]) == sorted(b[1]), sorted(a[1]), sorted(b[1]))
    for name, track in a[1].items():
        check(track.events == b[1][name].events, name, 'differs')


@test
def export_calls(lab):
    """The calls of each stream, in both formats, with their places; a range begins with what is open there."""
    simulated(lab, 60000)
    row = wait_sealed(lab, 'sim')
    process, tracks = perfetto(get(lab, 'perfetto'))
    check(process == 'sim', process)
    same_pictures((process, tracks), chrome(get(lab, 'chrome').decode()))
    for stream in row['streams']:
        (track,) = [t for name, t in tracks.items() if t.kind == 'stack' and name.split()[0] == stream['name']]
        wanted = frames_of(lab, stream['name'])
        check(len(wanted) > 500 and drawn(track) == wanted, stream['name'], len(wanted), len(drawn(track)))
        check(track.deepest > 3, track.deepest)
        # A function that ran before the trace did has its own address, not that of the place.
        called = {notes['position']: notes['pc'] for _, _, _, kind, notes in track.of('begin') if kind != 'root'}
        some = sorted(called)[::len(called) // 50]
        told = ask(lab, "SELECT position, pc FROM insn WHERE stream = '%s' AND position IN (%s)" % (
            stream['name'], ','.join(map(str, some))))
        check({r['position']: r['pc'] % 2 ** 64 for r in told} == {at: called[at] for at in some}, stream['name'], 'places')
        gaps = ask(lab, "SELECT time FROM gap WHERE stream = '%s' AND time IS NOT NULL" % stream['name'])
        check([m[1] for m in track.of('mark') if m[3] == 'gap'] == [g['time'] for g in gaps], 'gaps of', stream['name'])
    for stream in row['streams']:
        rate = tracks[stream['name'] + ' instructions per us'].events
        check(len(rate) == 1024 and [e[1] for e in rate] == sorted({e[1] for e in rate}), stream['name'], len(rate))
        check(stream['time_first'] <= rate[0][1] and rate[-1][1] <= stream['time_last'], rate[0], rate[-1])
        width = (stream['time_last'] + 1 - stream['time_first']) / 1024
        n = sum(e[2] for e in rate) * width / 1000
        check(abs(n - stream['insns']) < stream['insns'] / 50, stream['name'], n, stream['insns'])
    a, b = 2001, 9001
    _, part = perfetto(get(lab, 'perfetto', '--insn', '%d:%d' % (a, b)))
    for name, track in part.items():
        if track.kind == 'stack':
            wanted = frames_of(lab, name.split()[0], ' AND position >= %d AND position < %d' % (a, b))
            check(drawn(track) == wanted and len(wanted) > 100, name, len(wanted))
    lab.fails(2, 'goes with --insn and --time', 'get', 'sim', '--format', 'chrome', '--byte', '1:2')
    lab.fails(2, 'perfetto, chrome, calls', 'get', 'sim', '--format', 'prefetto')
    lab.fails(3, 'no stream x', 'get', 'sim/x', '--format', 'chrome')
    lab.fails(3, 'not found', 'get', 'gone', '--format', 'chrome')


@test
def export_listing(lab):
    """The indented list has a line for each call."""
    simulated(lab, 30000)
    wait_sealed(lab, 'sim')
    text = lab.run('get', 'sim/cs.10', '--format', 'calls').text()
    wanted = ask(lab, "SELECT time, depth, kind, number, pc, function FROM timeline "
                      "WHERE stream = 'cs.10' AND what IN ('open', 'begin')")
    lines = [line for line in text.splitlines() if not line.split(': ', 1)[1].lstrip().startswith('-- ')]
    check(len(lines) == len(wanted) > 200, len(lines), len(wanted))
    time = 0
    for line, row in zip(lines, wanted):
        place, said = line.split(': ', 1)
        check(said == '  ' * row['depth'] + name_of(row), line, row)
        stream, at = place.rsplit(' ', 1)
        check(stream.split()[0] == 'cs.10', line)
        ns = round(float(at) * 1e9) if '.' in at else int(at)
        time = max(time, row['time'] or 0)
        check(ns == time, line, row)


@test
def export_names(lab):
    """Processes have the names of the setup, others their numbers."""
    simulated(lab, 3000)
    wait_sealed(lab, 'sim')
    with open(lab.path('sim.ini'), 'a') as f:
        f.write('\n[context 0x100]\nname=httpd\n')
    lab.run('push', '--format', 'tpiu,sync=fsync', '--config', lab.path('sim.ini'), '--trace', 'named', lab.path('raw'))
    wait_sealed(lab, 'named')
    for trace, wanted in (('sim', 'context 100'), ('named', 'httpd')):
        _, tracks = perfetto(get(lab, 'perfetto', trace=trace))
        told = ask(lab, "SELECT number FROM event WHERE kind = 'context' AND stream = 'cs.10'", trace)
        slices = tracks['cs.10 context'].of('begin')
        check([wanted if r['number'] == 0x100 else 'context %x' % r['number'] for r in told] == [s[2] for s in slices], slices)
        check(any(s[2] == wanted for s in slices) and tracks['cs.10 context'].deepest == 1, slices)


def itm_capture(path):
    """Text on port 0 of an ITM, numbers on port 3, with times."""
    out = bytearray(b'\0\0\0\0\0\x80')
    for i in range(300):
        for letter in b'round %d\n' % i:
            out += bytes((0x01, letter))
        out += b'\x1b' + struct.pack('<I', 0x10000 * i + 7) + b'\x50'
    with open(path, 'wb') as f:
        f.write(out)


@test
def export_messages(lab):
    """What programs print are marks, what they write as numbers values."""
    itm_capture(lab.path('itm'))
    lab.start()
    lab.run('push', lab.path('itm'), '--format', 'itm', '--trace', 'sim')
    wait_sealed(lab, 'sim')
    picture = perfetto(get(lab, 'perfetto'))
    same_pictures(picture, chrome(get(lab, 'chrome').decode()))
    (messages,) = [t for t in picture[1].values() if t.name.endswith(' messages')]
    (values,) = [t for name, t in picture[1].items() if t.kind == 'counter' and ' per ' not in name]
    check([m[2] for m in messages.of('mark')] == ['round %d' % i for i in range(300)], messages.events)
    check([v[2] for v in values.events] == [0x10000 * i + 7 for i in range(300)], values.events)
    check(values.name.endswith('itm 3') and values.time > values.events[0][1], values.name)
    told = ask(lab, 'SELECT time, text, value FROM log')
    check([(v[1], v[2]) for v in values.events] == [(r['time'], r['value']) for r in told if r['value'] is not None], told[:9])
    rows = table(lab, 'log')
    check([(r['text'], r['value']) for r in rows] == [(r['text'], '' if r['value'] is None else str(r['value'])) for r in told],
          rows[:3])
    check(lab.run('get', 'sim', '--format', 'calls').text() == '', 'no calls')


def table(lab, name, *args, trace='sim'):
    """The rows of a table as CSV."""
    return list(csv.DictReader(io.StringIO(get(lab, 'csv', '--table', name, *args, trace=trace).decode())))


@test
def export_csv(lab):
    """Tables as CSV have the rows of SQL, in all of the stream and in a range."""
    simulated(lab, 3000)
    wait_sealed(lab, 'sim')
    told = {}
    for name in ('insn', 'event', 'gap'):
        rows = ask(lab, 'SELECT * FROM %s' % name)
        told[name] = [{k: '' if r[k] is None else '0x%x' % (r[k] % 2 ** 64) if k == 'pc' else str(r[k])
                       for k in r if k != 'trace'} for r in rows]
    columns = 'stream, position, time, last_position AS last, insns, duration, function, caller, depth, kind, number, pc, ended'
    calls = ask(lab, 'SELECT %s FROM call' % columns)
    for bounds, where in (((), lambda r: True), (('--insn', '1000:5000'), lambda r: 1000 <= int(r['position']) < 5000)):
        for name, rows in told.items():
            written = table(lab, name, *bounds)
            if name == 'insn':
                written = [{k: v for k, v in r.items() if k in ('stream', 'position', 'time', 'pc', 'function')} for r in written]
                rows = [{k: v for k, v in r.items() if k in ('stream', 'position', 'time', 'pc', 'function')} for r in rows]
            if bounds:  # times between two timestamps depend on what is read
                written, rows = ([dict(r, time='') for r in some] for some in (written, rows))
            check(written == [r for r in rows if where(r)], name, bounds, len(written))
    written = table(lab, 'call')
    check(list(written[0]) == 'stream position time end insns duration function caller depth kind number pc ended'.split(),
          written[0])
    plain = lambda v: '' if v is None else str(v)  # noqa: E731
    wanted = sorted([plain(c[k]) for k in ('stream', 'position', 'time', 'insns', 'duration', 'function', 'caller', 'depth',
                                           'kind', 'number', 'ended')] for c in calls)
    got = sorted([r[k] for k in ('stream', 'position', 'time', 'insns', 'duration', 'function', 'caller', 'depth', 'kind',
                                 'number', 'ended')] for r in written)
    different = [(a, b) for a, b in zip(wanted, got) if a != b]
    check(len(wanted) == len(got) > 200 and not different, len(wanted), len(got), different[:3])
    part = table(lab, 'call', '--insn', '1000:5000')
    check(part and all(1000 <= int(r['end']) < 5000 and r['ended'] == '1' for r in part), len(part))
    check(any(int(r['position']) < 1000 and not r['time'] for r in part), 'calls that were under way')
    lab.fails(2, 'insn, call, event, gap or log', 'get', 'sim', '--format', 'csv', '--table', 'trace')
    lab.fails(2, 'with --format csv', 'get', 'sim', '--format', 'chrome', '--table', 'call')


def listed(lab, stream, begin, end):
    """The function of each instruction in the disassembly list, "" if it is not known."""
    url = '%s/api/v1/traces/sim/streams/%s/insns?from=%d&to=%d' % (lab.url, stream, begin, end)
    with urllib.request.urlopen(url, timeout=240) as reply:
        return [row.get('function', '') for row in json.load(reply)]


def named(lab, stream, *args):
    """The same in flow text."""
    rows = lab.run('get', 'sim/' + stream, '--text', *args).text().splitlines()
    return [(re.search(r' <(.*)>$', row) or ['', ''])[1] for row in rows if row.startswith(('I ', 'N '))]


@test
def names_of_the_server(lab):
    """Functions in flow text without a local ELF: those of the disassembly list, as mapped where they run."""
    for kind, stream, size in (('etm', 'cs.10', 60000), ('pt', 'pt.0', 100000)):
        there = Lab(lab.build)
        try:
            simulated(there, size, kind)
            wait_sealed(there, 'sim')
            for begin in (0, 1000, 30000):
                part = ('--insn', '%d:%d' % (begin, begin + 2000))
                names = named(there, stream, '--functions', *part)
                check(names == listed(there, stream, begin, begin + 2000), kind, begin, names[:3])
                check(sum(name != '' for name in names) > 1000, kind, 'has no names', names[:10])
                check(named(there, stream, '--disasm', *part) == names, kind, 'with assembly')
            plain = there.run('get', 'sim/' + stream, '--text').text()
            text = there.run('get', 'sim/' + stream, '--text', '--functions').text()
            check(re.sub(r'(?m)^([INB] .*?) <.*>$', r'\1', text) == plain, kind, 'the rest is as before')
            tail = there.run('tail', 'sim/' + stream, '--functions', '--from', '0').text()
            check(tail == text, kind, 'tail')
            if kind == 'etm':
                own = there.run('get', 'sim/cs.10', '--text', '--symbols', there.path('demo.elf')).text()
                check(own == text, 'by the same file here')
        finally:
            there.close()
    lab.start()
    check(b'go with --text' in lab.run('get', 'sim/x', '--json', '--functions', status=2).err, 'of text')


if __name__ == '__main__':
    main(TESTS)
