#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Questions in SQL, beside what other commands answer. usage: sql.py BUILD [NAME…]"""
import csv
import io
import json
import os
import re
import sys
import time
import urllib.error
import urllib.parse
import urllib.request

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(1, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), 'chaos'))
from e2e import simulated, wait_sealed  # noqa: E402
from lab import check, main, streams, wait  # noqa: E402
from world import ServerTime, peak_memory  # noqa: E402

TESTS = {}
MANUAL = os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..', 'docs', 'sql.md')


def test(function):
    TESTS[function.__name__] = function
    return function


def ask(lab, text, *args, trace='sim'):
    return [json.loads(line) for line in lab.run('sql', trace, text, '--json', *args).text().splitlines()]


def functions_at(lab, stream, at):
    """The function of an instruction, by HTTP."""
    trace, name = stream.split('/')
    url = '%s/api/v1/traces/%s/streams/%s/insns?from=%d&count=1' % (lab.url, trace, name, at)
    with urllib.request.urlopen(url, timeout=240) as reply:
        return [row.get('function', '') for row in json.load(reply)]


def one(lab, text):
    """The single value of an answer."""
    (row,) = ask(lab, text)
    (value,) = row.values()
    return value


def prepare(lab, n=50000):
    simulated(lab, n)
    return wait_sealed(lab, 'sim')


@test
def sql_agrees(lab):
    """Tables say what the truth and other commands say."""
    row = prepare(lab)
    with open(lab.path('truth')) as f:
        truth = streams(f.read())
    insns = {s['name']: int(s['insns']) for s in row['streams']}
    check({r['stream']: r['n'] for r in ask(lab, 'SELECT stream, count(*) AS n FROM insn GROUP BY stream')} == insns,
          'instructions', insns)
    check(one(lab, 'SELECT sum(insns) FROM trace') == sum(insns.values()), 'trace')
    for stream, lines in truth.items():
        pcs = [line.split()[1] for line in lines if line.startswith('I ')]
        told = ask(lab, "SELECT address(pc) AS pc FROM insn WHERE stream = '%s' ORDER BY position" % stream, '--limit', '10M')
        check([int(r['pc'], 16) for r in told] == [int(pc, 16) for pc in pcs], stream, 'other instructions')
        for letter, kind in (('X', 'exception'), ('R', 'return')):
            n = sum(line.startswith(letter + ' ') or line == letter for line in lines)
            check(one(lab, "SELECT count(*) FROM event WHERE kind = '%s' AND stream = '%s'" % (kind, stream)) == n,
                  stream, kind, n)
        named = ask(lab, "SELECT function, min(position) AS at FROM insn WHERE stream = '%s' GROUP BY 1" % stream)
        for row in named[::7]:
            at = row['at']
            (known,) = functions_at(lab, 'sim/' + stream, at)
            check(known.split('+')[0] == (row['function'] or ''), stream, row, known)
        name = max(named, key=lambda row: row['at'])['function']
        asked = "SELECT count(*) FROM insn WHERE stream = '%s' AND function %%s" % stream
        check(one(lab, asked % "= '%s'" % name) == one(lab, asked % "|| '' = '%s'" % name) > 0, stream, name)
        for other in ("''", "CAST('%s' AS BLOB)" % name, "CAST(x'%s00' AS TEXT)" % name.encode().hex()):
            check(one(lab, asked % ('= ' + other)) == 0, stream, 'no name', other)
        for a, b, n in (('position < 10', 'position BETWEEN 5 AND 20', 21), ('position = 3', 'position = 7', 2),
                        ('position < 5', 'position < 3 OR position BETWEEN 8 AND 9', 7)):
            check(one(lab, "SELECT count(*) FROM insn WHERE stream = '%s' AND (%s OR %s)" % (stream, a, b)) == n,
                  stream, a, 'or', b)
        self_of = {r['name']: r['self'] for r in ask(lab, "SELECT name, self FROM function WHERE stream = '%s'" % stream)}
        check(sum(self_of.values()) == insns[stream], stream, 'self', sum(self_of.values()))


@test
def sql_calls(lab):
    """Calls are those of the function table, and bounds select from them."""
    prepare(lab)
    every = ask(lab, 'SELECT * FROM call', '--limit', '10M')
    ended = [c for c in every if c['ended']]
    for f in ask(lab, "SELECT * FROM function WHERE stream = 'cs.10' AND calls > 0"):
        mine = [c for c in every if c['function'] == f['name'] and c['stream'] == 'cs.10']
        lengths = [c['insns'] for c in mine if c['ended']]
        check(len(mine) == f['calls'] and len(lengths) == f['finished'], f, len(mine), len(lengths))
        check(not lengths or (min(lengths), max(lengths), sum(lengths)) == (f['min'], f['max'], f['length']), f)
    check(len(ended) > 100, 'calls')
    for low, high in ((0, 0), (1000, 5000), (5000, 5000), (20000, 10 ** 9)):
        some = ask(lab, 'SELECT * FROM call WHERE position BETWEEN %d AND %d' % (low, high), '--limit', '10M')
        wanted = [c for c in every if low <= c['position'] <= high]
        order = lambda c: (c['stream'], c['position'], c['last_position'], c['depth'])  # noqa: E731
        check(sorted(some, key=order) == sorted(wanted, key=order), 'calls from', low, 'to', high, len(some), len(wanted))
    a, b = 2000, 9000
    pushed = ask(lab, 'SELECT stream, position FROM insn WHERE time >= %d AND time < %d' % (a, b), '--limit', '10M')
    scanned = ask(lab, 'SELECT stream, position FROM insn WHERE time + 0 >= %d AND time + 0 < %d' % (a, b), '--limit', '10M')
    check(pushed == scanned and len(pushed) > 100, 'bounds in time', len(pushed), len(scanned))
    joined = ask(lab, "SELECT e.position, i.position AS p FROM event e JOIN insn i ON i.stream = e.stream AND "
                      "i.position = e.position WHERE e.kind = 'exception'")
    check(joined and all(r['position'] == r['p'] for r in joined), 'a join')


def shards_looked_at(lab):
    with urllib.request.urlopen(lab.url + '/metrics', timeout=240) as reply:
        return sum(int(n) for n in re.findall(r'^tracelake_index_cache_\w+_total (\d+)', reply.read().decode(), re.M))


@test
def sql_times(lab):
    """Times are interpolated between all timestamps, however many shards there are."""
    in_small_shards(lab)
    before = shards_looked_at(lab)
    check(ask(lab, 'SELECT position FROM call WHERE position < 20', trace='small'), 'calls at the begin')
    looked = shards_looked_at(lab) - before
    check(looked < 10, 'calls of the first shard are found in', looked)
    before = shards_looked_at(lab)
    check(ask(lab, 'SELECT count(*) AS n FROM gap', trace='small') == [{'n': 0}], 'gaps')
    looked = shards_looked_at(lab) - before
    check(looked < 10, 'no gaps are found in', looked)
    for text in ('SELECT stream, position, time, duration, last_position FROM call',
                 'SELECT stream, position, time FROM insn WHERE position % 7 = 0',
                 'SELECT stream, position, earliest, latest FROM timeline WHERE what = \'begin\''):
        few, many = (ask(lab, text, '--limit', '10M', trace=trace) for trace in ('sim', 'small'))
        check(few == many and len(few) > 100, text, len(few), len(many))
        check('earliest' in few[0] or len({r['time'] for r in few}) > 50, text, 'too few times')


def in_small_shards(lab, kind='etm', config='tpiu,sync=fsync', n=20000):
    """A simulated capture as `small`, each of whose streams has more than thirty shards."""
    simulated(lab, n, kind)
    wait_sealed(lab, 'sim')
    lab.stop()
    lab.start('--shard-insns', '3000')
    lab.run('push', '--trace', 'small', '--format', config, '--config', lab.path('sim.ini'), '--image', lab.path('demo.elf'),
            lab.path('raw'))
    row = wait_sealed(lab, 'small')
    check(all(s['shards'] > 30 for s in row['streams'] if s['insns']), row)


def longest_agree(lab, trace):
    """The longest calls, found by what is stored, are those that SQLite finds among all."""
    columns = 'stream, position, time, last_position, insns, duration, function, caller, depth, kind, number, pc, ended'
    names = [r['function'] for r in ask(lab, 'SELECT function, count(*) AS n FROM call WHERE function IS NOT NULL GROUP BY 1 '
                                             'ORDER BY n DESC, function', trace=trace)]
    check(len(names) > 5, names)
    stream = ask(lab, 'SELECT stream FROM stream WHERE insns > 0', trace=trace)[-1]['stream']
    wheres = ['', "WHERE stream = '%s'" % stream, 'WHERE position >= 7777', 'WHERE position > 100 AND position < 9000.5',
              'WHERE time > 4000', "WHERE kind = 'exception'", 'WHERE ended', "WHERE function = 'nothing'",
              "WHERE stream IN ('%s', 'none')" % stream, 'WHERE insns < 50 AND position >= 0']
    wheres += ["WHERE function = '%s'" % name for name in names[:3] + names[-1:]]
    wheres += ["WHERE position > 5000 AND function = '%s'" % names[0], "WHERE function IN ('%s', '%s')" % tuple(names[:2])]
    asked = [(where, limit) for where in wheres for limit in ('10', '2000')]
    asked += [('', limit) for limit in ('1', '7 OFFSET 5', '0', '-1')]
    for where, limit in asked:
        for by in ('insns', 'duration'):
            pushed, among_all = (ask(lab, 'SELECT %s FROM call %s ORDER BY %s%s DESC LIMIT %s' % (columns, where, plus, by, limit),
                                     '--limit', '10M', trace=trace) for plus in ('', '+'))
            check(pushed == among_all, trace, where, by, limit, pushed[:3], among_all[:3], len(pushed), len(among_all))
    looked = [shards_looked_at(lab)]
    for plus in ('', '+'):
        ask(lab, 'SELECT position FROM call ORDER BY %sinsns DESC LIMIT 1' % plus, trace=trace)
        looked.append(shards_looked_at(lab))
    check(2 * (looked[1] - looked[0]) < looked[2] - looked[1], looked, 'shards are walked')


def durations_agree(lab, trace):
    """Durations are those of the functions' calls, but for rounding, also where trace is missing."""
    told = ask(lab, "SELECT f.stream, f.name, min_time, max_time, c.n, least, most FROM function f JOIN (SELECT stream, function, "
                    "count(*) AS n, min(duration) AS least, max(duration) AS most FROM call WHERE ended GROUP BY 1, 2) c "
                    "ON c.stream = f.stream AND c.function = f.name", trace=trace)
    check(len(told) > 10, told)
    for r in told:
        check(abs(r['min_time'] - r['least']) <= 22 and abs(r['max_time'] - r['most']) <= 22, r)


@test
def sql_durations(lab):
    """A call's duration is the same in all answers."""
    simulated(lab, 40000)
    wait_sealed(lab, 'sim')
    durations_agree(lab, 'sim')


@test
def sql_durations_off(lab):
    """The same where tracing was off."""
    simulated(lab, 40000, 'pt-user')
    wait_sealed(lab, 'sim')
    check(one(lab, 'SELECT count(*) FROM gap') > 10, 'gaps')
    durations_agree(lab, 'sim')


@test
def sql_longest(lab):
    """The longest calls need not be looked for everywhere; calls of one function are those of all shards."""
    in_small_shards(lab)
    longest_agree(lab, 'small')
    functions_agree(lab, 'small')


@test
def sql_longest_pt(lab):
    """The same where programs are switched."""
    in_small_shards(lab, 'pt', 'pt', 110000)
    longest_agree(lab, 'small')
    functions_agree(lab, 'small')


# Each as it is put together from blocks that are alike, and as SQLite itself sorts and tests: of "+x" it tells nothing.
GROUPED = (
    ('function, count(*) AS n, sum(size) AS s', '', 'function'),
    ('stream, function, count(*) AS n', '', 'stream, function'),
    ('pc, function, text, opcode, size, count(*) AS n, sum(taken) AS t', '', 'pc'),
    ('trace, stream, size, taken, count(*) AS n, count(DISTINCT pc) AS p', '', 'taken, size, stream, trace'),
    ('opcode, min(pc) AS a, max(pc) AS z, count(*) AS n', "WHERE function > 'd'", 'opcode'),
    ('pc, text, count(*) AS n', "WHERE text LIKE '%r%' AND taken", 'pc'),
    ('function, count(*) AS n, max(position) AS z', 'WHERE position < 9000', 'function'),
    ('function, count(*) AS n', 'WHERE position BETWEEN 1000.5 AND 20000.0', 'function'),
    ('pc, count(*) AS n', "WHERE position > 70.5 AND position <= '9000' AND position < 'x'", 'pc'),
    ('size, count(*) AS n', 'WHERE position >= 70 AND position < 9000 AND position <> 500', 'size'),
    ('pc, count(*) AS n, max(CASE WHEN pc < 0 THEN position END) AS p', 'WHERE position < 9000', 'pc'),
    ('stream, pc, count(*) AS n, min(position) AS a, max(position) AS z, sum(position % 101) AS s', '', 'stream, pc'),
    ('taken, sum(position % 101) AS s, min(position) AS a', "WHERE function > 'd'", 'taken'),
    ('function, min(position) AS a', 'WHERE position % 3 = 1 AND position BETWEEN 77 AND 9000', 'function'),
    ('function, count(*) AS n', 'WHERE position IN (100, 200, 300)', 'function'),
    ('function, count(*) AS n', 'WHERE position < -1', 'function'),
)


def groups_agree(lab, trace):
    for what, where, by in GROUPED:
        sql = 'SELECT ' + what + ' FROM insn ' + where + ' GROUP BY '
        sorted_by = ', '.join('+' + column for column in by.split(', '))
        wanted = ask(lab, sql + sorted_by, '--limit', '10M', trace=trace)
        check((wanted or 'function' in where or '-1' in where) and ask(lab, sql + by, '--limit', '10M', trace=trace) == wanted, trace, sql + by)
        if where:
            continue
        check(ask(lab, sql + by + ' ORDER BY ' + by, '--limit', '10M', trace=trace) == wanted, trace, by, 'in order')
        down = ', '.join(column + ' DESC' for column in by.split(', '))
        check(ask(lab, sql + by + ' ORDER BY ' + down, '--limit', '10M', trace=trace) ==
              ask(lab, sql + sorted_by + ' ORDER BY ' + down, '--limit', '10M', trace=trace), trace, down)
    for columns in ('function', 'stream, size', 'pc, taken'):
        plain = ', '.join('+%s AS %s' % (c, c) for c in columns.split(', '))
        told = ask(lab, 'SELECT DISTINCT %s FROM insn' % columns, '--limit', '10M', trace=trace)
        check(sorted(map(str, told)) == sorted(map(str, ask(lab, 'SELECT DISTINCT %s FROM insn' % plain, '--limit', '10M',
                                                            trace=trace))), trace, 'distinct', columns)
    odd = [sorted(r['pc'] for r in ask(lab, 'SELECT DISTINCT %spc AS pc FROM insn WHERE position %% 5 = 3' % plus, trace=trace))
           for plus in ('', '+')]
    check(odd[0] == odd[1] and odd[0], trace, 'distinct at some positions')


def functions_agree(lab, trace):
    names = [r['function'] for r in ask(lab, 'SELECT DISTINCT function FROM insn', trace=trace)]
    check(len(names) > 5, trace, names)
    for table in ('insn', 'call'):
        columns = 'stream, position, time, pc, function' + (', opcode, size, taken' if table == 'insn' else ', insns, depth')
        for name in [n for n in names if n][::9] + ['nothing']:
            pushed, tested = (ask(lab, "SELECT %s FROM %s WHERE %sfunction = '%s'" % (columns, table, plus, name), '--limit',
                                  '10M', trace=trace) for plus in ('', '+'))
            check(pushed == tested, trace, table, name, len(pushed), len(tested))
        some = "('%s', '%s')" % tuple([n for n in names if n][:2])
        for condition in ('IN ' + some, "= '%s' COLLATE NOCASE" % max(n for n in names if n).upper(), '= NULL', 'IS NULL'):
            pushed, tested = (ask(lab, 'SELECT %s FROM %s WHERE %sfunction %s' % (columns, table, plus, condition), '--limit',
                                  '10M', trace=trace) for plus in ('', '+'))
            check(pushed == tested, trace, table, condition, len(pushed), len(tested))
    check(ask(lab, "SELECT count(*) AS n FROM insn WHERE stream = 'CS.10' COLLATE NOCASE", trace=trace) ==
          ask(lab, "SELECT count(*) AS n FROM insn WHERE +stream = 'CS.10' COLLATE NOCASE", trace=trace), trace, 'streams')


@test
def sql_groups(lab):
    """Groups of instructions, and those of one function, are what SQLite makes of all of them."""
    prepare(lab, 20000)
    groups_agree(lab, 'sim')
    functions_agree(lab, 'sim')


@test
def sql_groups_pt(lab):
    """The same where instructions have many lengths, and programs are switched."""
    simulated(lab, 20000, 'pt')
    wait_sealed(lab, 'sim')
    groups_agree(lab, 'sim')
    functions_agree(lab, 'sim')


@test
def sql_groups_loaded(lab):
    """The same where an address has one code after another, and of the stream as an imported file."""
    simulated(lab, 1, 'plugins')
    lab.run('get', 'sim/cs.10', '--insn', '0:30000', '-o', lab.path('a.zstf'))
    lab.run('push', '--format', 'stf', '--trace', 'file', lab.path('a.zstf'))
    for trace in ('sim', 'file'):
        wait_sealed(lab, trace)
        groups_agree(lab, trace)
    joined = 'SELECT i.trace, count(*) AS n FROM trace t JOIN insn i ON i.trace = t.trace GROUP BY %si.trace'
    both = [ask(lab, joined % plus) for plus in ('', '+')]
    check(both[0] == both[1] and [r['trace'] for r in both[0]] == ['file', 'sim'], 'of several traces', both)


@test
def sql_function_times(lab):
    """The times of functions are those that `tracelake functions` tells, of a stream and of all together."""
    row = prepare(lab, 20000)
    sums = {}
    for stream in (s['name'] for s in row['streams'] if s['insns']):
        told = {f['name']: f for f in map(json.loads, lab.run('functions', 'sim/' + stream, '--json', '--limit', '1000').text().splitlines())
                if f['name']}
        rows = ask(lab, "SELECT name, self_time, total_time, min_time, max_time FROM function WHERE stream = '%s' AND name <> ''" % stream)
        check(len(rows) > 20 and {r['name'] for r in rows} <= set(told), stream, len(rows), len(told))
        for r in rows:
            f = told[r['name']]
            ends = (f['time']['min'], f['time']['max']) if f['ended'] else (None, None)
            check((r['self_time'], r['total_time'], r['min_time'], r['max_time']) == (
                f['self_time']['value'], f['total_time'], *ends), stream, r, f)
            sums[r['name']] = sums.get(r['name'], 0) + r['self_time']
    both = ask(lab, "SELECT name, self_time FROM function WHERE name <> ''")
    check({r['name']: r['self_time'] for r in both} == sums, 'all streams', both[:3])


@test
def sql_timeline(lab):
    """What happens, in order: the frames are the calls, the rest the events and gaps; a page of it begins with the
    frames that are there."""
    prepare(lab)
    columns = 'stream, position, time, what, depth, kind, number, pc, function, text, begin, called, ended'
    every = ask(lab, 'SELECT %s FROM timeline' % columns, '--limit', '10M')
    key = lambda c: tuple(str(c[k]) for k in ('stream', 'position', 'last', 'depth', 'kind', 'function', 'ended'))  # noqa: E731
    ends = [dict(r, position=r['begin'], last=max(r['position'] - 1, r['begin'])) for r in every if r['what'] == 'end']
    calls = [dict(c, last=c['last_position']) for c in ask(lab, 'SELECT * FROM call', '--limit', '10M')]
    check(len(calls) > 1000 and sorted(map(key, calls)) == sorted(key(r) for r in ends if r['called']), 'the calls')
    for table, what in (('event', 'event'), ('gap', 'gap')):
        same = 'stream, position, time, kind, number, pc, function, text'
        told = [{k: r[k] for k in same.split(', ')} for r in every if r['what'] == what]
        check(told == ask(lab, 'SELECT %s FROM %s' % (same, table), '--limit', '10M'), table)
    for stream in ('cs.10', 'cs.12'):
        rows = [r for r in every if r['stream'] == stream]
        check(not any(r['what'] == 'open' for r in rows), 'nothing precedes the begin')
        check([r['position'] for r in rows] == sorted(r['position'] for r in rows), stream, 'order')
        at, stack = 0, []
        for page in [*range(777, 60000, 7777), None]:
            bounds = 'position >= %d' % at + (' AND position < %d' % page if page else '')
            paged = ask(lab, "SELECT %s FROM timeline WHERE stream = '%s' AND %s ORDER BY position" % (columns, stream, bounds),
                        '--limit', '10M')
            opened = [r for r in paged if r['what'] == 'open']
            check(paged[:len(opened)] == opened and all(r['position'] == at for r in opened), 'frames come first')
            check([(r['depth'], r['function'], r['begin']) for r in opened] == stack, stream, at, opened, stack)
            wanted = [r for r in rows if at <= r['position'] and (not page or r['position'] < page)]
            check([dict(r, time=0) for r in paged[len(opened):]] == [dict(r, time=0) for r in wanted], stream, bounds)
            for r in wanted:
                if r['what'] == 'begin':
                    check(r['depth'] == len(stack) and r['begin'] == r['position'], r)
                    stack.append((r['depth'], r['function'], r['begin']))
                elif r['what'] == 'end':
                    check((r['depth'], r['function'], r['begin']) == stack.pop(), r)
            at = page
        check(not stack, stream, 'all have ended')


@test
def sql_manual(lab):
    """The questions of docs/sql.md are answered."""
    prepare(lab)
    with open(MANUAL) as f:
        questions = re.findall(r'^```sql\n(.*?)^```', f.read(), re.M | re.S)
    check(len(questions) == 32, len(questions), 'questions')
    empty = []
    for question in questions:
        if not ask(lab, question):
            empty.append(question)
    # The simulated rig prints nothing, and calls whatever it has.
    check(len(empty) <= 10, 'without a row:', empty)


@test
def sql_forms(lab):
    """CSV and the aligned form have what JSON has; a long answer says that there is more."""
    prepare(lab, 20000)
    question = 'SELECT 1 AS "a,b", \'x"y\' AS t, NULL AS n, 0.5 AS r, x\'0a\' AS b'
    check(ask(lab, question) == [{'a,b': 1, 't': 'x"y', 'n': None, 'r': 0.5, 'b': '0x0a'}], 'json')
    rows = list(csv.reader(io.StringIO(lab.run('sql', 'sim', question, '--csv').text())))
    check(rows == [['a,b', 't', 'n', 'r', 'b'], ['1', 'x"y', '', '0.5', '0x0a']], rows)
    text = lab.run('sql', 'sim', "SELECT 'x' AS t, 12 AS n").text()
    check(text == '# t   n\n  x  12\n', repr(text))
    few = lab.run('sql', 'sim', 'SELECT position FROM insn', '--limit', '3000', '--json')
    check(len(few.text().splitlines()) == 3000 and b'more rows' in few.err, few)
    check(lab.run('sql', 'sim', 'SELECT position FROM insn WHERE position < 3', '--json').err == b'', 'no more')
    mixed = ask(lab, "SELECT CASE position WHEN 0 THEN 'a' WHEN 1 THEN 2.5 WHEN 2 THEN 7 END AS v FROM insn "
                     "WHERE stream = 'cs.10' AND position < 4")
    check([r['v'] for r in mixed] == ['a', '2.5', '7', None], mixed)


def by_http(lab, text, post=False, token=None, **args):
    """The status and answer to a question over HTTP."""
    address = '%s/api/v1/traces/sim/sql?' % lab.url
    if not post:
        args['q'] = text
    request = urllib.request.Request(address + urllib.parse.urlencode(args), text.encode() if post else None,
                                     {'Authorization': 'Bearer ' + token} if token else {})
    try:
        with urllib.request.urlopen(request, timeout=240) as reply:
            return reply.status, json.load(reply)
    except urllib.error.HTTPError as e:
        return e.code, json.load(e)


@test
def sql_over_http(lab):
    """HTTP gives what the command gives, refuses what it refuses, and bounds an answer's size."""
    prepare(lab)
    for text in ("SELECT position, time, address(pc) AS pc, function, insns * 0.5 AS half, NULL AS n FROM call LIMIT 50",
                 'SELECT stream, count(*) AS n FROM insn GROUP BY stream', 'SELECT 1 AS x WHERE 0'):
        for post in (False, True):
            status, told = by_http(lab, text, post)
            names = [c['name'] for c in told['columns']]
            check(status == 200 and [dict(zip(names, row)) for row in told['rows']] == ask(lab, text), text, told)
            check(told['truncated'] is False, told)
    status, few = by_http(lab, 'SELECT position FROM insn', rows=7)
    check(len(few['rows']) == 7 and few['truncated'] and few['columns'] == [{'name': 'position', 'kind': 'integer'}], few)
    endless = 'WITH RECURSIVE x(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM x) SELECT %s FROM x'
    for text, wanted, args in (('SELEC 1', 400, {}), ('DELETE FROM trace', 400, {}), ('', 400, {}),
                               ('SELECT 1', 400, {'rows': 'x'}), (endless % 'count(*)', 413, {'seconds': 1})):
        status, told = by_http(lab, text, **args)
        check(status == wanted and told['error'], text, status, told)
    status, large = by_http(lab, endless % ("i || '%s'" % ('x' * 5000)), True)
    size = sum(len(row[0]) for row in large['rows'])
    check(status == 200 and large['truncated'] and 15 << 20 < size < 18 << 20, status, size)


@test
def sql_refuses(lab):
    """What is no question is refused with a reason; what costs too much ends; others go on."""
    prepare(lab)
    for text, reason in (
            ('DELETE FROM trace', 'may not be modified'), ('SELECT 1; SELECT 2', 'one SELECT'), ('', 'give a SELECT'),
            ('CREATE TABLE x(a)', 'only SELECT'), ('ATTACH \'x\' AS y', 'only SELECT'), ('PRAGMA user_version', 'only SELECT'),
            ('EXPLAIN SELECT 1', 'only SELECT'), ("SELECT load_extension('x')", 'load_extension'),
            ('SELECT zeroblob(9)', 'zeroblob'), ("SELECT hex(fts3_tokenizer('simple'))", 'fts3_tokenizer'),
            ('SELECT * FROM sqlite_dbpage', 'no such table'), ('SELEC 1', 'syntax error'),
            ('SELECT percentile(position, 101) FROM insn', 'percentile'),
            ("SELECT printf('%.*c', 2000000000, 'x')", 'widths up to 1000'),
            ("SELECT format('%*d', 2000000000, 1)", 'widths up to 1000'),
            ('SELECT randomblob(1000000000)', 'randomblob'), ("SELECT 'a' REGEXP 'b'", 'REGEXP'),
            ("SELECT * FROM json_each('[1]')", ''), ("SELECT * FROM pragma_table_info('trace')", ''),
            ("VACUUM INTO '/tmp/x'", 'only SELECT'), (' UNION ALL '.join(['SELECT 1'] * 21), 'too many terms'),
            ("WITH RECURSIVE x(s) AS (SELECT 'a' UNION ALL SELECT s || s FROM x) SELECT max(length(s)) FROM x", 'too big'),
            ('SELECT histogram(position, 1) FROM insn', 'bars'),
            ('SELECT ' + '(' * 200 + '1' + ')' * 200, ''), ('SELECT * FROM nowhere', 'no such table'),
            ("SELECT * FROM insn WHERE trace = 'nowhere'", 'no trace nowhere')):
        lab.fails(3 if 'nowhere' in text and 'trace' in text else 2, reason, 'sql', 'sim', text)
    lab.fails(3, 'no trace gone', 'sql', 'gone', 'SELECT * FROM insn')
    for text in ('SELECT count(*) FROM insn a, insn b, insn c, insn d',
                 'WITH RECURSIVE x(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM x) SELECT count(*) FROM x',
                 'SELECT a.position FROM insn a, insn b ORDER BY b.position + a.position DESC',
                 'SELECT count(*) FROM ' + ', '.join('insn t%d' % i for i in range(60))):
        lab.fails(3, 'too long', 'sql', 'sim', text, '--seconds', '1')
    lab.fails(3, '256 MiB', 'sql', 'sim', 'WITH RECURSIVE x(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM x) '
              "SELECT DISTINCT i || '%s' FROM x" % ('x' * 1000), '--limit', '10M')
    check(one(lab, 'SELECT count(*) FROM trace') == 1, 'it goes on')
    check(ask(lab, "SELECT * FROM insn WHERE position = -1") == [], 'a position that is none')
    check(ask(lab, "SELECT * FROM insn WHERE position = 'x'") == [], 'a text')
    for condition in ('< 9.5', '<= 9.5', '> 9.5', '>= 9.5', '= 9.5', '< 9.0', '<= 9.0', '> 9.0', '>= 9.0', '= 9.0', '= 9e18', '< 9e18',
                      '> 1e19', '< 1e19', '= -0.0', '< -0.5', '> -0.5', '= NULL', '< NULL', "< 'x'", "> 'x'", "< x'00'",
                      '> -1', '< 0', '>= 9223372036854775807'):
        both = [one(lab, "SELECT count(*) FROM insn WHERE stream = 'cs.10' AND %sposition %s" % (plus, condition)) for plus in ('', '0 + ')]
        check(both[0] == both[1], condition, both)


@test
def sql_ends(lab):
    """A question ends at its time, whatever its functions cost, and collects no more than its memory."""
    prepare(lab, 20000)
    numbers = 'WITH RECURSIVE x(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM x) SELECT %s FROM %s'
    long = "(SELECT group_concat(s, '') AS b FROM (SELECT '%s' AS s FROM insn LIMIT 900)), insn" % ('a' * 1000)
    letters = ''.join(chr(c) for c in range(0xc0, 0xc0 + 490)) + 'a'
    for cost, rows in (("sum(length(rtrim(b, '%s')))" % letters, long), ("sum(instr(b, '%sb'))" % ('a' * 1000), long),
                       ('sum(length(upper(b || position)))', long), ('histogram(i, 100), percentile(i, 50)', 'x')):
        clock = ServerTime(lab.server.pid, time.monotonic())
        lab.fails(3, 'too long', 'sql', 'sim', numbers % (cost, rows), '--seconds', '1')
        took = clock.read(time.monotonic())
        check(took < 3, cost[:20], 'took', took)
    many = ', '.join('percentile(i, %d)' % p for p in range(60))
    lab.fails(3, 'more than 256 MiB', 'sql', 'sim', numbers % (many, '(SELECT i FROM x LIMIT 1000000)'))
    peak = peak_memory(lab.server.pid)
    check(peak < 640 << 20, 'memory', peak)


@test
def sql_sees(lab):
    """A token with a scope sees its traces only."""
    prepare(lab, 20000)
    lab.stop()
    files = {}
    for name, rig in (('some', 'sim-etm'), ('none', 'other')):
        files[name] = lab.path(name)
        with open(files[name], 'w') as f:
            f.write(lab.run('token', 'add', '--tokens', lab.path('tokens'), '--name', name, '--role', 'read', '--rig',
                            rig).text())
    lab.launch('--tokens', lab.path('tokens'))
    wait('it is ready', lab.ready, lab.server_log)
    count = 'SELECT count(*) AS n FROM trace'
    told = lab.run('sql', 'sim', count, '--json', '--token', files['some']).text()
    check(json.loads(told)['n'] == 1, told)
    lab.fails(3, 'no such trace', 'sql', 'sim', count, '--token', files['none'])
    for name, wanted in (('some', 200), ('none', 404)):
        with open(files[name]) as f:
            status, told = by_http(lab, count, token=f.read().strip())
        check(status == wanted and (status != 200 or told['rows'] == [[1]]), name, status, told)


if __name__ == '__main__':
    main(TESTS)
