#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What commands answer to programs: --json, with the names and types of HTTP. usage: answers.py BUILD [NAME…]"""
import json
import os
import sys
import urllib.request

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from e2e import simulated, wait_sealed  # noqa: E402
from lab import Lab, check, main  # noqa: E402

TESTS = {}


def test(function):
    TESTS[function.__name__] = function
    return function


def lines(result):
    return [json.loads(line) for line in result.text().splitlines()]


def one(lab, *args):
    """The single object that a command prints, which is a trace as HTTP has it."""
    row, = lines(lab.run(*args, '--json'))
    with urllib.request.urlopen(lab.url + '/api/v1/traces/' + row['id'], timeout=30) as reply:
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
    """push, label, seal, redecode, materialise and rm tell the trace that they changed."""
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
    """cp and store copy: what is there now."""
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
def offered(lab):
    """Each command that answers has --json: where completion looks, in the help, and so in the manual."""
    text = lab.run('help').text()
    commands = [line.split()[0] for line in text.splitlines() if line.startswith('  ')]
    # What these print is a format of its own, or nothing.
    others = {'serve', 'decode', 'raw', 'profile', 'dump', 'slice', 'completion'}
    check(len(commands) > 25 and others < set(commands), commands)
    for command in set(commands) - others:
        check('json flag' in lab.run(command, '--options').text(), command, 'has no --json')
        check('--json' in lab.run('help', command).text(), command, 'does not tell of --json')


if __name__ == '__main__':
    main(TESTS)
