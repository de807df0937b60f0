#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The answers of commands to programs: --json, with the names and types of HTTP. usage: answers.py BUILD [NAME…]"""
import json
import os
import re
import subprocess
import sys
import urllib.error
import urllib.request

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from e2e import simulated, wait_sealed  # noqa: E402
from lab import Lab, Skip, check, main  # noqa: E402

TESTS = {}


def test(function):
    TESTS[function.__name__] = function
    return function


def lines(result):
    return [json.loads(line) for line in result.text().splitlines()]


def one(lab, *args):
    """The single object printed by a command: a trace as in HTTP."""
    row, = lines(lab.run(*args, '--json'))
    with urllib.request.urlopen(lab.url + '/api/v1/traces/' + row['id'], timeout=240) as reply:
        known = json.load(reply)
    check(known.keys() - row.keys() == {'notes', 'tile_base'} and not row.keys() - known.keys(), row)
    check(all(type(row[k]) is type(known[k]) for k in row), row)
    check(row['created_ns'] == known['created_ns'] and isinstance(row['created_ns'], str), row)
    check(row['raw_bytes'] == known['raw_bytes'], row)
    return row


def push(lab, trace, *args):
    return one(lab, 'push', '--format', 'tpiu,sync=fsync', '--config', lab.path('sim.ini'), '--image',
               lab.path('demo.elf'), '--trace', trace, lab.path('raw'), *args)


@test
def traces_changed(lab):
    """push, label, seal, redecode, materialise and rm print the trace that they changed."""
    simulated(lab, 60000)
    wait_sealed(lab, 'sim')
    row = push(lab, 'again')
    check(row['state'] == 'sealed' and row['raw_bytes'] == os.path.getsize(lab.path('raw')), row)
    check(row['streams'] == json.loads(lab.run('ls', '--json', 'again').text())[0]['streams'], row)
    check(push(lab, 'again')['id'] == 'again', 'all of it was there')
    check(push(lab, 'soon', '--no-wait')['id'] == 'soon', 'not waited for')
    check(b'--quiet' in lab.run('push', '--json', '--quiet', '--format', 'itm', lab.path('raw'), status=2).err, 'both')
    check(one(lab, 'label', 'again', 'board=juno')['labels'] == {'board': 'juno'}, 'label')
    check(one(lab, 'seal', 'again')['state'] == 'sealed', 'seal')
    check(one(lab, 'redecode', 'again')['generation'] > row['generation'], 'redecode')
    check(one(lab, 'redecode', 'again', '--no-wait')['id'] == 'again', 'redecode')
    check(one(lab, 'materialise', 'again')['labels'] == {'board': 'juno', 'shards': 'stored'}, 'materialise')
    check([t['id'] for t in lines(lab.run('seal', 'sim', 'again', '--json'))] == ['sim', 'again'], 'two')
    gone = lab.run('rm', '--json', 'again', 'nowhere', 'soon', status=3)
    check(lines(gone) == [{'id': 'again'}, {'id': 'soon'}] and b'nowhere' in gone.err, gone)
    check(lab.run('rm', 'sim').out == b'', 'people are told nothing')


@test
def traces_copied(lab):
    """cp and store copy print what exists now."""
    simulated(lab, 20000)
    wait_sealed(lab, 'sim')
    there = Lab(lab.build)
    try:
        there.start()
        row, = lines(lab.run('cp', 'sim', '--to', there.url, '--as', 'other', '--json'))
        check(row['id'] == 'other' and row['raw_bytes'] == os.path.getsize(lab.path('raw')), row)
        wait_sealed(there, 'other')
        there.stop()
        target = there.path('another')
        done, = lines(lab.run('store', 'copy', '--json', there.data, target))
        check(done['id'] == 'other' and done['outcome'] == 'copied' and done['bytes'] > 0, done)
        again, = lines(lab.run('store', 'copy', '--json', there.data, target, 'other'))
        check(again['outcome'] == 'there', again)
        missing = lab.run('store', 'copy', '--json', there.data, target, 'nope', status=3)
        check(lines(missing)[0]['outcome'] == 'missing', missing)
    finally:
        there.close()


@test
def files_and_tokens(lab):
    """check, coverage and token."""
    simulated(lab, 20000)
    wait_sealed(lab, 'sim')
    good, bad = lab.path('good.stf'), lab.path('bad.stf')
    lab.run('get', 'sim/cs.10', '-o', good)
    with open(good, 'rb') as f:
        whole = f.read()
    with open(bad, 'wb') as f:
        f.write(whole + whole)
    told = lines(lab.run('check', '--json', good, bad, status=1))
    check([t['file'] for t in told] == [good, bad] and told[0]['errors'] == 0 and told[0]['insns'] > 0, told)
    check(told[1]['errors'] > 0 and told[1]['records'] > told[0]['records'], told[1])
    errors = [f for f in told[1]['findings'] if f['severity'] == 'error']
    check(len(errors) == told[1]['errors'] and all(f['rule'] and f['text'] and f['offset'] >= 0 for f in errors), told[1])
    for t in told:
        check(sum(t['rules'].values()) == t['errors'] + t['warnings'] + t['notes'] == len(t['findings']), t)
    first, = lines(lab.run('check', '--json', '--summary', bad, status=1))
    check({f['rule'] for f in first['findings']} == first['rules'].keys() == told[1]['rules'].keys(), first)
    check(len(first['findings']) == len(first['rules']), first)
    check(lab.run('coverage', 'sim', '--json').out == lab.run('coverage', 'sim', '--as', 'json').out, 'coverage')
    tokens = ('--tokens', lab.path('tokens'))
    made, = lines(lab.run('token', 'add', *tokens, '--role', 'push', '--name', 'bench3', '--json'))
    secret = made.pop('token')
    check(len(secret) == 48 and made['name'] == 'bench3' and made['role'] == 'push', made)
    check(json.loads(lab.run('token', 'list', *tokens, '--json').text()) == [made], made)
    cert, = lines(lab.run('token', 'add', *tokens, '--role', 'read', '--cert', 'CN', '--json'))
    check('token' not in cert and cert['cert'] == 'CN', cert)


@test
def decoded(lab):
    """decode, dump, slice, raw and profile print what a capture and files contain, as the server does."""
    simulated(lab, 3000)
    wait_sealed(lab, 'sim')
    setup = ('--config', lab.path('sim.ini'), '--image', lab.path('demo.elf'), '--format', 'tpiu,sync=fsync')
    there = lines(lab.run('get', 'sim', '--format', 'ndjson'))
    here = lines(lab.run('decode', *setup, '--json', lab.path('raw')))
    check(len(here) > 1000 and here == there, 'elements differ', len(here), len(there))
    check(lab.run('decode', *setup, '--json', '--threads', '1', '--chunk', '77', lab.path('raw')).text()
          == lab.run('decode', *setup, '--json', '--text', lab.path('raw')).text(), 'pieces')
    only = lines(lab.run('decode', *setup, '--json', '--stream', 'cs.12', lab.path('raw')))
    check(only == [e for e in there if e['stream'] == 'cs.12'], 'one stream')
    lab.fails(1, r"no stream 'cs\.99'; there are: cs\.1[02], cs\.1[02]\n", 'decode', *setup, '--text', '--stream', 'cs.99',
              '--stream', 'cs.12', lab.path('raw'))
    packets = lines(lab.run('decode', *setup, '--json', '--packets', lab.path('raw')))
    listed = lab.run('decode', *setup, '--packets', lab.path('raw')).text().splitlines()
    check(len(packets) == len(listed) > 100, len(packets), len(listed))
    for packet, line in zip(packets, listed):
        check(line.split()[0] == str(packet['offset']) and packet['packet'] in line.split(), packet, line)
        check(all('%s=%s' % field in line for field in packet['fields'].items()), packet, line)
    check(any('addr' in p['fields'] and p['stream'] == 'cs.10' and p['id'] == '10' for p in packets), packets[:20])
    made = lines(lab.run('decode', *setup, '--json', '--out', lab.path('out'), lab.path('raw')))
    stored = {s['name']: s['insns'] for s in json.loads(lab.run('show', 'sim', '--json').text())[0]['streams']}
    check({m['stream']: m['insns'] for m in made} == stored and all(os.path.exists(m['file']) for m in made), made)
    for wrong in (['--like', 'osd-sw-ctm'], ['--text', '--packets'], ['--packets', '--raw-bytes'], ['--disasm']):
        check(b'--json' in lab.run('decode', *setup, '--json', *wrong, lab.path('raw'), status=2).err, wrong)

    file = made[0]['file']
    records = lines(lab.run('dump', '--json', file))
    check([r['record'] for r in records] == list(range(len(records))) and records[0]['type'] == 'IDENTIFIER', records[0])
    insns = [r for r in records if 'insn' in r]
    check([r['insn'] for r in insns] == list(range(made[0]['insns'])), 'instructions')
    first = [e for e in there if e['stream'] == made[0]['stream'] and e['kind'] == 'I'][0]
    check((insns[0]['pc'], int(insns[0]['fields']['opcode'], 16)) == (first['pc'], int(first['encoding'], 16)), insns[0])
    check(lines(lab.run('dump', '--json', '--from', '3', '--to', '5', file)) == records[3:5], 'some')
    check(any(r['type'] == 'EVENT' and r['name'] == 'MODE_CHANGE' and 'event' in r['fields'] for r in records), 'events')
    check(b'dump --json' in lab.run('decode', '--json', '--packets', '--format', 'stf', file, status=2).err, 'records')
    lab.run('dump', '--json', file, '-o', lab.path('records'))
    with open(lab.path('records')) as f:
        check([json.loads(line) for line in f] == records, 'a file')
    check(b'--json' in lab.run('dump', '--json', '--disasm', file, status=2).err, 'both')

    cut, = lines(lab.run('slice', '--json', file, '--insn', '100:300', '-o', lab.path('cut.zstf')))
    check(cut == {'file': lab.path('cut.zstf'), 'first': 100, 'count': 200}, cut)
    if os.path.exists('/dev/full'):
        full = lab.run('slice', '--json', file, '--insn', '0:50000', '-o', '/dev/full', status=1)
        check(full.out == b'' and b'/dev/full' in full.err, full)
    check(b'--json' in lab.run('slice', '--json', file, '--insn', '100:300', '-o', '-', status=2).err, 'to a pipe')
    raw, = lines(lab.run('raw', '--json', 'sim', '--byte', '16:1040', '-o', lab.path('some'), '--config', lab.path('ini')))
    check(raw == {'trace': 'sim', 'file': lab.path('some'), 'first': 16, 'count': 1024, 'config': lab.path('ini')}, raw)
    check(b'--json' in lab.run('raw', '--json', 'sim', '-o', '-', status=2).err, 'to a pipe')

    profile, = lines(lab.run('profile', '--json', 'sim/cs.10'))
    check(profile.pop('trace') == 'sim' and profile.pop('stream') == 'cs.10', profile.keys())
    with urllib.request.urlopen(lab.url + '/api/v1/traces/sim/streams/cs.10/profile?nodes=20000', timeout=240) as reply:
        check(profile == json.load(reply), 'profile')
    check([p['trace'] for p in lines(lab.run('profile', '--as', 'json', 'sim', 'sim'))] == ['sim', 'sim'], 'two')
    check(b'--json' in lab.run('profile', '--json', '--as', 'folded', 'sim', status=2).err, 'both')


@test
def not_written(lab):
    """If standard output cannot be written, that is reported, rather than bad input or success."""
    if not os.path.exists('/dev/full'):
        raise Skip('no /dev/full')
    simulated(lab, 3000)
    wait_sealed(lab, 'sim')
    file = lab.path('a.zstf')
    lab.run('get', 'sim/cs.10', '-o', file)
    setup = ('--config', lab.path('sim.ini'), '--image', lab.path('demo.elf'), lab.path('raw'))
    for args in (('dump', file), ('dump', '--json', file), ('dump', '--format', 'pc', file), ('dump', '--to', '5', file),
                 ('decode', '--text', *setup), ('decode', '--json', *setup), ('decode', '--packets', *setup),
                 ('decode', '--packets', '--json', *setup), ('get', 'sim', '--text'), ('get', 'sim/cs.10', '--json'),
                 ('raw', 'sim', '-o', lab.path('b'), '--json'), ('profile', '--json', 'sim'), ('ls', '--json')):
        with open('/dev/full', 'wb') as full:
            done = subprocess.run([lab.tracelake, *args], env=lab.environment(), stdout=full, stderr=subprocess.PIPE)
        text = done.stderr.decode()
        check(done.returncode == 1 and ('cannot write' in text or 'No space' in text), args, done.returncode, text)
        check(': ok' not in text and 'i/o error' not in text, args, text)


@test
def offered(lab):
    """Each command has --json, in completion, in the help, and thus in the manual, and answers it with JSON: a new
    command needs a line here."""
    simulated(lab, 3000)
    wait_sealed(lab, 'sim')
    lab.run('get', 'sim/cs.10', '-o', lab.path('a.zstf'))
    ask = {
        'push': ['--format', 'tpiu,sync=fsync', '--config', lab.path('sim.ini'), '--trace', 'more', lab.path('raw')],
        'decode': ['--format', 'tpiu,sync=fsync', '--config', lab.path('sim.ini'), '--image', lab.path('demo.elf'),
                   lab.path('raw')],
        'setup': ['--check', '--config', lab.path('sim.ini'), lab.path('raw')],
        'ls': [], 'show': ['sim'], 'cp': ['sim', '--to', lab.url, '--as', 'copy'], 'label': ['more', 'a=b'],
        'materialise': ['more'], 'seal': ['more'], 'redecode': ['more'], 'verify': ['sim'], 'images': [],
        'retain': [], 'get': ['sim/cs.10', '--insn', '0:10'], 'raw': ['sim', '-o', lab.path('bytes')],
        'find': ['sim/cs.10', '--event', 'exception'], 'stats': ['sim/cs.10'], 'profile': ['sim'], 'coverage': ['sim'],
        'log': ['sim/cs.10'],
        'diff': ['sim/cs.10', 'sim/cs.12'], 'call': ['sim/cs.10', '--insn', '100'], 'tail': ['sim/cs.10'],
        'token': ['list', '--tokens', lab.path('tokens')],
        'dump': [lab.path('a.zstf')], 'check': [lab.path('a.zstf')],
        'slice': [lab.path('a.zstf'), '--insn', '0:10', '-o', lab.path('b.zstf')],
        'simpoints': ['sim/cs.10', '--interval', '1000'], 'sql': ['sim', 'SELECT 1 AS one'],
        'functions': ['sim/cs.10'], 'calls': ['sim/cs.10', 'mac_block'], 'interrupts': ['sim/cs.10'], 'gaps': ['sim/cs.10'], 'rm': ['more'],
        'store': ['copy', lab.data, lab.path('other')],
    }
    lab.run('token', 'add', '--tokens', lab.path('tokens'), '--role', 'push', '--name', 'bench3')
    text = lab.run('help').text()
    commands = [line.split()[0] for line in text.splitlines() if line.startswith('  ')]
    # serve and view run until they are ended, mcp speaks nothing else, and completion prints a script for a shell.
    check(set(commands) - {'serve', 'view', 'mcp', 'completion'} == set(ask), sorted(set(commands) ^ set(ask)))
    for command, args in ask.items():
        check('json flag' in lab.run(command, '--options').text(), command, 'has no --json')
        check('--json' in lab.run('help', command).text(), command, 'does not tell of --json')
        if command == 'store':
            lab.stop()
        answer = lab.run(command, *args, '--json').text()
        try:
            json.loads(answer)
        except ValueError:  # one object per line
            check(all(isinstance(json.loads(line), dict) for line in answer.splitlines()), command, answer)


MANUAL = os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..', 'docs', 'http.md')


def arguments(lab, verb, path):
    """The arguments that a path takes: what it says when it is given one that there is not."""
    for word, value in (('{t}', 'sim'), ('{s}', 'cs.10'), ('{axis}', 'insn'), ('{level}', '0'), ('{index}', '0'),
                        ('{id}', '1'), ('{image}', 'x')):
        path = path.replace(word, value)
    request = urllib.request.Request(lab.url + path + '?bogus=1', b'' if verb in ('POST', 'PUT') else None, method=verb)
    status, told = 200, None
    try:
        urllib.request.urlopen(request, timeout=240).close()
    except urllib.error.HTTPError as e:
        status, told = e.code, json.load(e)['error']
    check(status == 400 and '"bogus" is no argument here' in told, verb, path, status, told)
    return told.partition('there are ')[2]


@test
def arguments_are_told(lab):
    """The paths of docs/http.md exist, and its table has the arguments that each of them takes."""
    simulated(lab, 20000)
    wait_sealed(lab, 'sim')
    with open(MANUAL) as f:
        manual = f.read()
    rows = []
    paths, _, rest = manual.partition('## Arguments\n')
    for line in (paths + rest.partition('\n## ')[2]).splitlines():
        cell = re.match(r'\| `(?:(POST|PUT|DELETE) )?(/api/v1/[^`?]*)[^`]*` \|', line)
        if cell:
            rows.append((cell[1] or 'GET', cell[2]))
    rows.append(('POST', '/api/v1/traces/{t}/sql'))
    rows.append(('POST', '/api/v1/traces/{t}/notes'))
    rows.append(('DELETE', '/api/v1/traces/{t}/notes/{id}'))
    check(len(rows) > 40 and len(set(rows)) == len(rows), rows)
    table = []
    for verb, path in rows:
        told = arguments(lab, verb, path)
        if told != 'none':
            names = ['`%s`' % name for name in told.split(', ')]
            table.append('| `%s%s` | %s |' % ('' if verb == 'GET' else verb + ' ', path, ', '.join(names)))
    before, heading, rest = manual.partition('## Arguments\n')
    section, after = rest.partition('\n## ')[0], ''.join(rest.partition('\n## ')[1:])
    there = [line for line in section.splitlines() if line.startswith('| `')]
    if os.environ.get('TL_WRITE') and there != table:
        lines = section.splitlines()
        at = lines.index(there[0])
        lines[at:at + len(there)] = table
        with open(MANUAL, 'w') as f:
            f.write(before + heading + '\n'.join(lines) + '\n' + after)
        there = table
    check(there == table, 'the table of docs/http.md is another; TL_WRITE=1 writes it:\n' + '\n'.join(table))


if __name__ == '__main__':
    main(TESTS)
