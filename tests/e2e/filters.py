#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Ranges of a mode, a process or a thread, compared with a model that reads the whole text line by line.
usage: filters.py BUILD [NAME…]"""

import collections
import fnmatch
import json
import os
import subprocess
import sys
import urllib.error
import urllib.request

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from e2e import simulated, wait_sealed  # noqa: E402
from lab import DATA, Skip, check, main, only, streams, wait  # noqa: E402

TESTS = {}


def test(function):
    TESTS[function.__name__] = function
    return function


def fits_mode(modes, mode):
    """Does "el1.ns.a64" fit one of the words?"""
    user = mode and mode.split('.')[0] in ('el0', 'u', 'vu', 'ring3')
    return mode is not None and any(
        user if word == 'u' else not user if word == 'k' else (mode + '.').startswith(word + '.')
        for word in modes.split(','))


def fits_program(wanted, switch, context, thread):
    if switch:
        pid, tid, name = switch.split(' ', 2)
        return wanted == (tid if thread else pid) or fnmatch.fnmatchcase(name, wanted)
    return context not in (None, '-') and int(wanted, 0) == int(context, 16)


def model(items, mode=None, process=None, thread=None):
    """Those of JSON's items that are kept, but for what only tells the state."""
    now = {'M': None, 'C': None, 'A': None}
    kept = []
    for item in items:
        kind, text = item['kind'], item['text']
        switch = kind == 'A' and text.startswith('switch ')
        if switch:
            now['A'] = text[7:]
        elif kind == 'M':
            now['M'] = text
        elif kind == 'C':
            now['C'] = text.split()[0]
        elif ((mode is None or fits_mode(mode, now['M']))
              and (process is None or fits_program(process, now['A'], now['C'], False))
              and (thread is None or fits_program(thread, now['A'], now['C'], True))):
            if kind in 'IBXRVN':
                kept.append((item['at'], kind, text))
    return kept


def options(given):
    return [word for name, value in given.items() for word in ('--' + name, value)]


def rows_of(lab, name, *more):
    rows = json.loads(lab.run('get', name, '--json', *more).text())['items']
    return [{'text': '', **row} for row in rows]


def compare(lab, name, whole, given):
    """Every form of a filtered stream, whole and in parts, has what the model keeps."""
    truth = model(whole, **given)
    asked = options(given)
    rows = [(row['at'], row['kind'], row['text']) for row in rows_of(lab, name, *asked)
            if row['kind'] in 'IBXRVN']
    check(rows == truth, given, len(rows), len(truth),
          [(a, b) for a, b in zip(rows, truth) if a != b][:3])
    insns = ['I ' + text for _, kind, text in truth if kind == 'I']
    check(len(insns) > 50, given, len(insns))
    text = lab.run('get', name, '--text', *asked).text()
    lines = next(iter(streams(text).values()))
    check(only(lines, 'I') == insns, given)
    for ending in ('stf', 'zstf'):
        path = lab.path('kept.' + ending)
        lab.run('get', name, *asked, '-o', path)
        lab.run('dump', path)
        decoded = lab.run('decode', '--format', 'stf', '--text', path).text()
        again = [line for s in streams(decoded).values() for line in only(s, 'I')]
        check(again == insns, given, ending, len(again), len(insns))
    # Text does not depend on where a range begins: parts, one after the other, are the whole.
    end = max(row['at'] for row in whole) + 1
    parts = ''
    for a in range(0, end, end // 3 + 1):
        span = '%d:%d' % (a, min(a + end // 3 + 1, end))
        got = lab.run('get', name, '--text', '--insn', span, *asked, status=None).text()
        parts += got.split('\n', 1)[1]
    whole_text = text.split('\n', 1)[1]
    check(whole_text.startswith(parts) and len(whole_text) - len(parts) < 300, given,
          len(parts), len(whole_text))
    return lines


@test
def filters(lab):
    """Modes and contexts of a simulated Arm core."""
    simulated(lab, 20000)
    wait_sealed(lab, 'sim')
    name = 'sim/cs.10'
    whole = rows_of(lab, name)
    contexts = sorted({row['text'].split()[0] for row in whole if row['kind'] == 'C'} - {'-'})
    modes = {row['text'] for row in whole if row['kind'] == 'M'}
    check(len(contexts) > 1 and len(modes) > 1, contexts, modes)
    for given in {'mode': 'k'}, {'mode': 'el0,el1.ns'}, {'process': '0x' + contexts[0]}:
        compare(lab, name, whole, given)
    lines = compare(lab, name, whole, {'mode': 'u'})
    at = lines.index('G off')
    check(lines[at + 1] == 'O' and lines[at + 2].startswith('M el0'), lines[at:at + 5])
    check(any(line.startswith('T ') for line in lines[at + 2:at + 6]), lines[at:at + 6])
    range_of = lab.url + '/api/v1/traces/sim/streams/cs.10/range?'
    with urllib.request.urlopen(range_of + 'format=text&from=500&to=90000&mode=u', timeout=240) as reply:
        check(reply.read() == lab.run('get', name, '--text', '--insn', '500:90000', '--mode', 'u').out, 'HTTP differs')
    try:
        urllib.request.urlopen(range_of + 'format=text&mode=el9', timeout=240)
        check(False, 'HTTP takes any mode')
    except urllib.error.HTTPError as e:
        check(e.code == 400 and b'mode el9 is not known' in e.read(), e.code)
    lab.fails(2, 'mode el9 is not known: it is u', 'get', name, '--text', '--mode', 'el9')
    lab.fails(1, 'nothing in this range ran in mode ring3', 'get', name, '--text', '--mode', 'ring3')
    lab.fails(1, 'ran in process 0x7fff', 'get', 'sim', '--text', '--process', '0x7fff')
    lab.fails(2, 'do not go with', 'get', name, '--format', 'perfetto', '--mode', 'u')


@test
def filters_processes(lab):
    """Processes and threads as the kernel names them, by who ran before the range begins."""
    path = os.path.join(DATA, 'perf', 'pt', 'pt-five-tasks.data')
    if not os.path.exists(path):
        raise Skip('no ' + path)
    lab.start()
    lab.run('push', '--trace', 'five', '--symfs', os.path.join(DATA, 'perf', 'symfs'), path)
    whole = rows_of(lab, 'five/pt.1')
    for given in {'process': 'ra?ble', 'mode': 'ring3'}, {'thread': '2100'}:
        compare(lab, 'five/pt.1', whole, given)
    # In the middle of a stretch nothing but earlier trace says whose it is.
    inside = [at for at, kind, _ in model(whole, process='ramble') if kind == 'I']
    at = next(b for a, b in zip(inside[100:], inside[101:]) if b == a + 1)
    text = lab.run('get', 'five/pt.1', '--text', '--insn', '%d:%d' % (at, at + 1), '--process', 'ramble').text()
    check(len(only(streams(text)['pt.1'], 'I')) == 1, text)
    lab.fails(1, 'ran in process nobody', 'get', 'five/pt.1', '--text', '--process', 'nobody')


@test
def filters_live(lab):
    """A live stream's text is filtered by the server, and equals the range's when it is sealed."""
    lab.start()
    rig = subprocess.Popen([lab.rig, '--kind', 'etm', '--server', lab.url, '--trace', 'sim', '--bytes',
                            '200000', '--rate', '100000'], stdout=subprocess.DEVNULL)
    wait('it is there', lambda: 'cs.10' in lab.run('ls', '--json', 'sim', status=None).text())
    tail = lab.run('tail', 'sim/cs.10', '--from', '0', '--mode', 'u').text()
    check(rig.wait() == 0)
    wait_sealed(lab, 'sim')
    text = lab.run('get', 'sim/cs.10', '--text', '--mode', 'u').text()
    check(tail == text, len(tail), len(text))
    check('M el1' not in tail and '\nI ' in tail)


@test
def between_markers(lab):
    """A range between instructions that are told by their encoding."""
    simulated(lab, 30000)
    wait_sealed(lab, 'sim')
    insns = [line for line in streams(lab.run('get', 'sim/cs.10', '--text').text())['cs.10']
             if line[0] == 'I']
    code = [line.split()[2] for line in insns]
    times = collections.Counter(code)
    rare = sorted(times, key=lambda c: (times[c], c))
    begin = next(c for c in rare if times[c] > 1)
    at = [i for i, c in enumerate(code) if c == begin][1]
    behind = set(code[at + 1:])
    end = next(c for c in rare if c != begin and c in behind)
    to = code.index(end, at + 1)
    got = lab.run('get', 'sim/cs.10', '--text', '--from-opcode', begin, '--occurrence', '2',
                  '--to-opcode', end).text()
    check(only(streams(got)['cs.10'], 'I') == insns[at:to], at, to)


if __name__ == '__main__':
    main(TESTS)
