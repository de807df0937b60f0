#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Queries of a trace, compared with its text. usage: looks.py BUILD [NAME…]"""

import glob
import gzip
import json
import os
import struct
import subprocess
import sys
import urllib.error
import urllib.request

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from lab import DATA, Skip, check, main, snapshot, wait  # noqa: E402
from e2e import only, simulated, streams, wait_sealed  # noqa: E402

TESTS = {}


def test(function):
    TESTS[function.__name__] = function
    return function


@test
def finding(lab):
    """The next and the previous hit from a position, in one stream and in all of them."""
    simulated(lab, 40000)
    wait_sealed(lab, 'sim')
    name = 'sim/cs.10'
    whole = only(streams(lab.run('get', name, '--text').text())['cs.10'], 'I')
    pc = whole[len(whole) // 2].split()[1]
    places = [i for i, line in enumerate(whole) if line.split()[1] == pc]
    middle = places[len(places) // 2]
    for way, wanted in (('--after', [p for p in places if p > middle][:3]),
                        ('--before', [p for p in places if p < middle][::-1][:3])):
        found = json.loads(lab.run('find', name, 'pc:' + pc, way, str(middle), '--limit', '3',
                                   '--count', '--json').text())
        check([hit['insn'] for hit in found['hits']] == wanted, found, wanted)
        check(found['total'] == len(places), found['total'], len(places))
        check(not wanted or found['before'] == places.index(wanted[0]), found, wanted)
    everywhere = json.loads(lab.run('find', 'sim', '--all', 'exception', '--json').text())
    times = [hit['time'] for hit in everywhere['hits']]
    check(times == sorted(times) and len({hit['stream'] for hit in everywhere['hits']}) == 2,
          everywhere)
    lab.fails(2, r'STREAM:INSN', 'find', 'x', '--all', 'gap', '--after', '5')
    lab.fails(3, r'no symbol', 'find', name, 'call:no such function')


@test
def several_programs(lab):
    """Functions of one name in several programs are told apart; of all streams nothing is found twice."""
    path = os.path.join(DATA, 'perf', 'pt', 'pt-five-tasks.data')
    if not os.path.exists(path):
        raise Skip('no captures')
    lab.start()
    lab.run('push', '--trace', 'five', '--symfs', os.path.join(DATA, 'perf', 'symfs'), path)
    wait_sealed(lab, 'five')
    rows = lab.run('sql', '--csv', 'five', "SELECT DISTINCT name, program FROM function WHERE name LIKE 'fib%' ORDER BY name").text()
    check(rows.split() == ['name,program', 'fib', '[pair],pair', 'fib', '[walk],walk'], rows)
    calls = {}
    for name in ('fib', 'fib [pair]', 'fib [walk]'):
        found = json.loads(lab.run('find', 'five', '--all', 'call:' + name, '--count', '--json', '--limit', '100000').text())
        calls[name] = found['total']
        check(found['total'] == len(found['hits']) > 0, found['total'])
        check(name == 'fib' or all(hit['text'].startswith(name) for hit in found['hits']), name)
        check(not any(hit['stream'].startswith('thread.') for hit in found['hits']), name)
    check(calls['fib'] == calls['fib [pair]'] + calls['fib [walk]'], calls)
    counted = json.loads(urllib.request.urlopen(lab.url + '/api/v1/traces/five/stats').read())['gaps']
    for kind in ('gap', 'off', 'switched-out'):
        found = json.loads(lab.run('find', 'five', '--all', kind, '--count', '--json', '--limit', '1000').text())
        total = sum(counted.values()) if kind == 'gap' else counted[kind]
        check(found['total'] == len(found['hits']) == total, kind, found['total'], counted)


@test
def ranges_by_place(lab):
    """A range that begins with the n-th call of a function, at an address or an event."""
    simulated(lab, 40000)
    wait_sealed(lab, 'sim')
    name, elf = 'sim/cs.10', lab.path('demo.elf')
    lines = streams(lab.run('get', name, '--text').text())['cs.10']
    named = [line.split() for line in only(streams(lab.run(
        'get', name, '--text', '--symbols', elf).text())['cs.10'], 'I')]
    pcs = [words[1] for words in named]

    def got(*args):
        return lab.run('get', name, *args, '--format', 'pc').text().split()
    lab.run('get', name, '-o', lab.path('whole.zstf'))
    # Functions that call others, so that the flow returns into them, and one that does not.
    for function in ('fft_radix2', 'matrix_multiply', 'handle_syscall', 'mac_block'):
        calls = [i for i, words in enumerate(named) if words[-1] == '<%s>' % function]
        check(len(calls) > 3, function, calls)
        at = ['--from-symbol', function, '--occurrence', '3']
        check(got(*at, '--count', '20') == pcs[calls[2]:calls[2] + 20], function, 'does not begin there')
        check(got(*at, '--to-symbol', function, '--warm-up', '5') == pcs[calls[2] - 5:calls[3]], function)
        check(got('--insn', '%d:' % (calls[0] + 1), *at, '--count', '1') == [pcs[calls[3]]], function)
        # By address, as other commands print it, with 0x or without.
        for text in (named[calls[0]][1], '0x' + named[calls[0]][1].lstrip('0')):
            check(got('--from-pc', text, '--occurrence', '3', '--count', '9') == pcs[calls[2]:calls[2] + 9], text)
        # The same from a file, without a server.
        lab.run('slice', lab.path('whole.zstf'), *at, '--symbols', elf, '--to-symbol', function, '-o',
                lab.path('region.stf'))
        check(lab.run('dump', lab.path('region.stf'), '--format', 'pc').text().split() ==
              pcs[calls[2]:calls[3]], function, 'is sliced elsewhere')
        lab.run('get', name, *at, '--count', '20', '-o', lab.path('region.stf'))
        check(lab.run('dump', lab.path('region.stf'), '--format', 'pc').text().split() ==
              pcs[calls[2]:calls[2] + 20], function, 'is another file')
    taken, insns = [], 0
    for line in lines:
        taken += [insns] if line.startswith('X ') else []
        insns += line.startswith('I ')
    check(len(taken) > 3 and got('--from-event', 'exception', '--occurrence', '3', '--to-event', 'exception') ==
          pcs[taken[2]:taken[3]], 'the third exception')
    lab.fails(1, 'only %d from' % len(taken), 'get', name, '--from-event', 'exception', '--occurrence', '9999',
              '--text')
    lab.fails(3, 'no symbol', 'get', name, '--from-symbol', 'no such', '--text')
    lab.fails(1, 'no symbol', 'slice', lab.path('whole.zstf'), '--from-symbol', 'no such', '--symbols', elf,
              '-o', lab.path('region.stf'))
    lab.fails(2, 'no address', 'get', name, '--from-pc', '0xg', '--text')


@test
def at_home(lab):
    """A stored trace decoded with everything that belongs to it: packets, text, and source lines as
    from addr2line."""
    simulated(lab, 20000)
    wait_sealed(lab, 'sim')
    raw, config, images = lab.path('home.bin'), lab.path('home.ini'), lab.path('images')
    lab.run('raw', 'sim', '-o', raw, '--config', config, '--images', images)
    check(len(os.listdir(images)) == 1, os.listdir(images))
    elf = os.path.join(images, os.listdir(images)[0])
    with open(raw, 'rb') as f:
        check(f.read() == lab.run('raw', 'sim', '-o', '-').out, 'the raw bytes differ')
    text = lab.run('get', 'sim', '--text').text()
    check(lab.run('decode', '--config', config, '--text', raw).text() == text, 'the text differs')
    # A folder with all of it may be handed on.
    os.mkdir(lab.path('all'))
    lab.run('raw', 'sim', '-o', lab.path('all/a.bin'), '--config', lab.path('all/a.ini'), '--images', lab.path('all/elf'))
    os.rename(lab.path('all'), lab.path('moved'))
    check(lab.run('decode', '--config', lab.path('moved/a.ini'), '--text', lab.path('moved/a.bin')).text() == text,
          'the moved folder is another capture')
    packets = lab.run('decode', '--config', config, '--packets', raw).text().splitlines()
    check(len(packets) > 100 and packets[0].split()[2] == 'I_ASYNC', packets[:3])
    # With source lines, without a server and from it.
    lined = lab.run('get', 'sim/cs.10', '--insn', '0:2000', '--text', '--symbols', elf, '--source').text()
    here = lab.run('decode', '--config', config, '--text', '--stream', 'cs.10', '--source', raw).text()
    told = [line.split() for line in lined.splitlines() if line.startswith('I ')]
    check([(w[1], w[-1]) for w in told] ==
          [(w.split()[1], w.split()[-1]) for w in only(here.splitlines(), 'I')[:2000]], 'they differ')
    truth = subprocess.run(['addr2line', '-e', elf] + [w[1] for w in told], check=True,
                           stdout=subprocess.PIPE).stdout.decode().split('\n')
    known = [(w, line) for w, line in zip(told, truth) if not line.startswith('?')]
    check(len(known) > 1000, truth[:5])
    for words, line in known:
        check(words[-1] == line.split(' ')[0], words, line)
    lab.fails(2, '--source', 'get', 'sim/cs.10', '--text', '--source')
    # In another folder than the compiler's: the longest that fits, and only whole names.
    path = known[0][0][-1].rsplit(':', 1)[0]
    folder = os.path.dirname(path)
    for maps, wanted in (([folder + '=/here'], '/here/' + os.path.basename(path)),
                         (['/=/root', folder + '/=/here/'], '/here/' + os.path.basename(path)),
                         ([folder[:-1] + '=/no'], path), ([path + '=/one.c'], '/one.c')):
        mapped = lab.run('get', 'sim/cs.10', '--insn', '0:2000', '--text', '--symbols', elf,
                         *(word for m in maps for word in ('--source-map', m))).text()
        check(mapped.count(' %s:' % wanted) == lined.count(' %s:' % path) > 0, maps, mapped[:300])
    lab.fails(2, '--source-map here is not A=B', 'get', 'sim/cs.10', '--text', '--symbols', elf, '--source-map', 'here')
    lab.fails(2, '--images', 'raw', 'sim', '-o', raw, '--images', images)


@test
def links(lab):
    """The page's address of any place is that of its instruction."""
    simulated(lab, 30000)
    wait_sealed(lab, 'sim')
    base = lab.url + '/#/trace/sim'
    check(lab.run('show', '--link', 'sim').text() == base + '\n')
    check(lab.run('show', '--link', 'sim/cs.10').text() == base + '?lane=cs.10\n')
    check(lab.run('show', '--link', 'sim/cs.10', '--insn', '1000').text() ==
          base + '?axis=usual&lane=cs.10&from=800&to=1200&at=1000\n')
    for option, find in ((('--symbol', 'fft_radix2'), ('--call', 'fft_radix2')),
                         (('--event', 'exception'), ('--event', 'exception'))):
        hit = json.loads(lab.run('find', 'sim/cs.10', *find, '--limit', '2', '--json').text())['hits'][1]
        link = lab.run('show', '--link', 'sim/cs.10', *option, '--occurrence', '2').text()
        check(link.endswith('&at=%d\n' % hit['insn']), link, hit)
    time = json.loads(lab.run('find', 'sim/cs.10', '--event', 'time', '--limit', '9', '--json').text())['hits'][8]
    link = lab.run('show', '--link', 'sim/cs.10', '--time', str(time['time'])).text()
    check(abs(int(link.rsplit('=', 1)[1]) - time['insn']) < 2, link, time)
    lab.fails(2, 'a place goes with --link', 'show', 'sim', '--insn', '5')
    lab.fails(2, 'one place', 'show', '--link', 'sim/cs.10', '--insn', '5', '--symbol', 'main')
    lab.fails(1, 'it ends at instruction', 'show', '--link', 'sim/cs.10', '--insn', '99999999999')
    lab.fails(3, 'no symbol "nobody"', 'show', '--link', 'sim/cs.10', '--symbol', 'nobody')
    lab.fails(3, 'no stream cs.99', 'show', '--link', 'sim/cs.99')


@test
def calls(lab):
    """Details of a call agree with searches, and call trees with each other."""
    simulated(lab, 40000)
    wait_sealed(lab, 'sim')
    name = 'sim/cs.10'
    first = json.loads(lab.run('find', name, 'call:checksum', '--limit', '100000', '--json').text())
    begins = [hit['insn'] for hit in first['hits']]
    check(len(begins) > 3, begins)
    for number in (0, len(begins) // 2, len(begins) - 1):
        call = json.loads(lab.run('call', name, '--insn', str(begins[number]), '--json').text())
        check(call['name'] == 'checksum' and call['from'] == begins[number], call)
        check(call['number'] == number + 1 and call['all']['calls'] == len(begins), call)
        check(call['all'].get('previous') == (begins[number - 1] if number else None), call)
        check(call['all'].get('next') == (begins + [None])[number + 1], call)
        check(0 < call['self'] <= call['insns'] == call['to'] - call['from'], call)
        inside = ['--insn', '%d:%d' % (call['from'], call['to'])]
        tree = json.loads(lab.run('stats', name, '--tree', '--json', *inside).text())
        check(tree['insns'] == call['insns'], tree['insns'], call)
        own = [f['self'] for f in tree['functions'] if f['name'] == 'checksum']
        check(own == [call['self']], own, call)
    check('checksum' in lab.run('call', name, '--insn', str(begins[0])).text(), 'no text')
    whole = json.loads(lab.run('stats', name, '--tree', '--json').text())
    below = json.loads(lab.run('stats', name, '--callers', '--json').text())
    check(whole['functions'] == below['functions'], 'functions differ')
    text = lab.run('stats', name, '--tree').text().splitlines()
    check(len(text) >= len(whole['nodes']) + 1, len(text))
    lab.fails(2, r'--insn', 'call', name)
    lab.fails(3, r'no call of that depth', 'call', name, '--insn', '5', '--depth', '900')


@test
def times(lab):
    """A range of time means the same instructions, however it is written."""
    simulated(lab, 40000)
    wait_sealed(lab, 'sim')
    name = 'sim/cs.10'
    where = json.loads(lab.run('find', name, 'call:checksum', '--limit', '100000', '--json').text())['hits']
    call = json.loads(lab.run('call', name, '--insn', str(where[len(where) // 2]['insn']), '--json').text())
    a, b = call['time_from'], call['time_to'] + 1000
    ways = ['%d:%d' % (a, b), '%d:+%d' % (a, b - a), '%dns:%dns' % (a, b), '%dns:+%.3fus' % (a, (b - a) / 1000),
            '%d.%09ds:+%dns' % (a // 10**9, a % 10**9, b - a)]
    answers = [json.loads(lab.run('stats', name, '--json', '--time', way).text()) for way in ways]
    check(all(answer == answers[0] for answer in answers), answers)
    check(answers[0]['from'] <= call['from'] and answers[0]['insns'] > 0, answers[0], call)
    inside = '%d:%d' % (answers[0]['from'], answers[0]['to'])
    check(json.loads(lab.run('stats', name, '--json', '--insn', inside).text()) == answers[0], inside)
    for command in (('get', name, '--text'), ('find', name, 'call:checksum'), ('profile', name),
                    ('coverage', name), ('stats', name, '--tree')):
        here = [lab.run(*command, '--time', way).text() for way in ways[1:4:2]]
        check(here[0] == here[1] and here[0] == lab.run(*command, '--insn', inside).text(), command)
    place = json.loads(lab.run('call', name, '--time', '%dns' % answers[0]['from'], '--json').text())
    check(place['from'] <= answers[0]['from'], place)
    same = lab.run('diff', '%s@%s' % (name, inside), '%s@%s' % (name, ways[2])).text()
    check(same.startswith('identical'), same)
    for wrong in ('1ms', '2ms:1ms', '5:1ms', '1.5:2', '1m:2m'):
        lab.fails(2, r'a range of times such as', 'stats', name, '--time', wrong)
    lab.fails(2, r'--insn, --time', 'stats', name, '--time', '1:2', '--insn', '1:2')
    lab.fails(2, r'--time', 'call', name)


def web_get(lab, path):
    with urllib.request.urlopen(lab.url + path, timeout=240) as reply:
        return reply.read()


def rows(lab, *command):
    return [json.loads(line) for line in lab.run(*command, '--json').text().splitlines()]


def exceptions_by_number(lab, trace, stream):
    """Of the table of exceptions, and of the events."""
    table = {}
    for e in rows(lab, 'interrupts', '%s/%s' % (trace, stream)):
        if e['name'] != 'signal':
            number = e.get('number', -1)
            table[number] = table.get(number, 0) + e['entered']
    told = lab.run('sql', '--json', trace, "SELECT coalesce(number, -1) AS number, count(*) AS n FROM event "
                   "WHERE kind = 'exception' AND stream = '%s' GROUP BY 1" % stream).text().splitlines()
    return table, {row['number']: row['n'] for row in map(json.loads, filter(None, told))}


@test
def exceptions_agree(lab):
    """The table has every exception there is, also those whose handlers are not traced."""
    lab.start()
    coresight, perf = os.path.join(DATA, 'coresight'), os.path.join(DATA, 'perf')
    snapshots = ['older/Snowball', 'snapshots/001-ack_test', 'snapshots/a57_single_step', 'snapshots/juno_r1_1']
    for folder in filter(os.path.isdir, (os.path.join(coresight, name) for name in snapshots)):
        lab.run('push', '--snapshot', folder, status=None)
    for name in ('cs/perf_kernel', 'pt/pt-kernel', 'pt/pt-five-tasks'):
        for file in glob.glob(os.path.join(perf, name + '.data')):
            lab.run('push', '--trace', os.path.basename(name), '--format', 'perf', file, status=None)
    traces = json.loads(web_get(lab, '/api/v1/traces'))
    if not traces:
        raise Skip('no captures in ' + DATA)
    found = 0
    for trace in traces:
        wait_sealed(lab, trace['id'])
        for stream in trace['streams']:
            if stream['protocol'] in ('etm3', 'ptm', 'etm4', 'ete', 'pt'):
                table, told = exceptions_by_number(lab, trace['id'], stream['name'])
                check(table == told, trace['id'], stream['name'], table, told)
                found += sum(told.values())
    check(found > 0, 'no exceptions in %d traces' % len(traces))


KINDS = ('ran', 'lost', 'off', 'switched_out')


@test
def exceptions_by_the_thousand(lab):
    """Where exceptions are so many that what is told of them is large, it is kept, too: no question counts anew."""
    lab.start()
    subprocess.run([lab.rig, '--kind', 'pt', '--server', lab.url, '--trace', 'many', '--rate', '100000000', '--bytes',
                    '1500000', '--quiet'], check=True, timeout=240)
    wait_sealed(lab, 'many')
    shards = json.loads(web_get(lab, '/api/v1/traces/many'))['streams'][0]['shards']
    path = '/api/v1/traces/many/streams/pt.0/interrupts'
    told = json.loads(web_get(lab, path))

    def kept():
        return sorted(glob.glob(lab.data + '/**/*.calls', recursive=True))
    before = kept()
    check(len(before) == shards > 0, before, shards)
    check(max(os.path.getsize(f) for f in before) > 512 << 10, 'few exceptions', [os.path.getsize(f) for f in before])
    for f in before:
        os.remove(f)
    lab.stop()
    lab.start()
    check(json.loads(web_get(lab, path)) == told, 'counted anew they are others')
    wait('what was counted', lambda: kept() == before)


def ticks_by_what(lines, point, breaks='G'):
    """Ticks that ran, were lost, off, and switched out, by the flow text of a stream; None: its counter began again.
    `breaks`: lines that tell of missing trace before them."""
    ticks, before, waits = dict(ran=0, lost=0, off=0, switched_out=0), None, 'lost'
    n, gap, reasons, on = 0, None, set(), False
    for line in lines:
        kind = line[0]
        if kind in point:
            n += 1
        elif kind in breaks:
            reasons.add('off' if kind == 'O' else line.split()[1])
            gap = n if gap is None else gap
        elif kind == 'O':
            on |= n == 0
        elif kind == 'T':
            now = int(line.split()[1])
            if before is not None and now < before - 1024:
                return None
            if on and n == 0 and gap is None:  # nothing has run since tracing went on
                gap, reasons = 0, {'off'}
            now = max(now, before or 0)
            time = now - before if before is not None else 0
            why = 'switched_out' if 'switched-out' in reasons else 'off'
            why = why if reasons <= {'off', 'switched-out'} else 'lost'
            if gap is not None and before is not None:
                waits = None if gap < n else why
                ticks[why] += time
            elif n == 0 and waits is not None:  # nothing has run since the gap, or the begin
                ticks[waits] += time
            elif before is not None:
                ticks['ran'], waits = ticks['ran'] + time, None
            before, n, gap, reasons, on = now, 0, None, set(), False
    return ticks


@test
def time_adds_up(lab):
    """Own times, and those lost, off and switched out, are all there is: by the text, functions, trees, SQL."""
    lab.start()
    for kind, size in (('etm', 60000), ('pt', 60000), ('pt-user', 60000), ('di', 60000)):
        subprocess.run([lab.rig, '--kind', kind, '--server', lab.url, '--trace', kind, '--rate', '100000000', '--bytes',
                        str(size), '--seed', '4', '--quiet'], check=True, timeout=240, stdout=subprocess.DEVNULL)
    riscv = os.path.join(DATA, 'riscv')
    for name in ('nt-traps-btm', 'nt-icnt'):
        if os.path.exists(os.path.join(riscv, name + '.nex')):
            lab.run('push', '--trace', name, '--config', os.path.join(riscv, name + '.ini'),
                    os.path.join(riscv, name + '.nex'), status=None)
    seen = set()
    for trace in json.loads(web_get(lab, '/api/v1/traces')):
        wait_sealed(lab, trace['id'])
        for stream in trace['streams']:
            name, protocol = '%s/%s' % (trace['id'], stream['name']), stream['protocol']
            if not stream['has_time'] or protocol not in ('etm4', 'pt', 'osd-ctm', 'n-trace'):
                continue
            path = '/api/v1/traces/%s/streams/%s/' % (trace['id'], stream['name'])
            web = json.loads(web_get(lab, path + 'functions?limit=20000'))
            about = web['about']
            own = sum(f['self_time']['value'] for f in web['functions'] if 'self_time' in f)
            check(about['time'] == sum(about[kind] for kind in KINDS), name, about)
            # Ticks are converted one function, and one path, at a time.
            check(0 <= about['ran'] - own <= len(web['functions']), name, about, own)
            tree = json.loads(lab.run('stats', name, '--tree', '--weight', 'time', '--json').text())
            check(0 <= about['ran'] - tree['ran'] <= 2 * 2000, name, about, tree['ran'])
            lines = [line for line in lab.run('get', name, '--text').text().splitlines() if line[0] != '#']
            told = ticks_by_what(lines, 'B' if protocol == 'osd-ctm' else 'IN', 'GO' if protocol == 'etm4' else 'G')
            if told is None:
                continue
            unit = about['time'] / max(sum(told.values()), 1)
            for key, ticks in told.items():
                check(abs(about[key] - ticks * unit) <= 1 + unit, name, key, told, about)
            # How far timestamps are apart, for those who read figures without bounds.
            apart = about['time'] / max(sum(line[0] == 'T' for line in lines) - 1, 1)
            check(about['time_step'] == stream['time_step'], name, about, stream)
            check(abs(about['time_step'] - apart) <= 1 + apart / 20, name, about, apart)
            said = lab.run('functions', name, '--limit', '1').text().splitlines()[0]
            check('; timestamps ' in said and said.endswith(' apart: shorter times are estimates'), said)
            seen.add(protocol)
    check(seen >= {'etm4', 'osd-ctm'}, seen)


def slices_of(file):
    """Who ran when, by the capture's truth: begin, end, processor's stream, its first instruction, their number, thread."""
    with gzip.open(file, 'rt') as f:
        return sorted((int(begin), int(end), cpu, int(first), int(n), tid)
                      for cpu, _, tid, first, n, begin, end in map(str.split, f))


def presence(slices):
    """Of each thread the time on processors, and from first to last."""
    on, first, last = {}, {}, {}
    for begin, end, _, _, _, tid in slices:
        on[tid] = on.get(tid, 0) + end - begin
        first.setdefault(tid, begin)
        last[tid] = end
    return {tid: (on[tid], last[tid] - first[tid]) for tid in on}


def ticks_away(slices, texts, stops=False):
    """Ticks each thread was switched out: from the last timestamp before a slice's end, in the flow text of the slice's
    processor, to the last one before the first instruction of its next slice there. `stops`: the trace has a timestamp
    where it stops, behind the slice and before the switch."""
    left, back, last, away = {}, {}, {}, {}
    for cpu, lines in texts.items():
        n, now, before = 0, 0, 0
        for line in lines:
            n += line[0] in 'IN'
            if line[0] == 'T':
                before, now = now, max(now, int(line.split()[1]))
            elif line[0] == 'G':
                left.setdefault((cpu, n), now)
            elif line[0] == 'O':
                left[cpu, n] = before if stops else left.get((cpu, n), now)
                back[cpu, n] = now
    for _, _, cpu, first, n, tid in slices:
        if tid in last:
            away[tid] = away.get(tid, 0) + back[cpu, first] - left[last[tid]]
        last[tid] = cpu, first + n
    return away


def of_one_process(path, out):
    """The recording as without the right to record other processes: no switch is one of a processor, none of others."""
    with open(path, 'rb') as f:
        data = f.read()
    at, n = struct.unpack_from('<QQ', data, 40)
    records, end = b'', at + n
    while at < end:
        kind, misc, size = struct.unpack_from('<IHH', data, at)
        whole = size + (struct.unpack_from('<Q', data, at + 8)[0] if kind == 71 else 0)
        if kind != 15:
            records += data[at:at + whole]
        elif struct.unpack_from('<I', data, at + 16)[0]:  # not of an idle processor
            records += struct.pack('<IHH', 14, misc, size - 8) + data[at + 16:at + size]
        at += whole
    rounds = (n - len(records)) // 8  # what follows the records stays in its place
    with open(out, 'wb') as f:
        f.write(data[:end - n] + records + rounds * struct.pack('<IHH', 68, 0, 8) + data[end:])


def with_switches(path, out, slices):
    """The recording, whose buffers are those of threads, with the switches of these threads."""
    with open(path, 'rb') as f:
        data = f.read()
    at, n = struct.unpack_from('<QQ', data, 40)
    last, switches = {}, []
    for begin, end, _, _, _, tid in slices:
        if tid in last:
            middle = (last[tid] + begin) // 2
            switches += [(middle, tid, 1 << 13), (begin - 1, tid, 0)]
        last[tid] = end
    records, here = b'', at
    while here < at + n:
        kind, _, size = struct.unpack_from('<IHH', data, here)
        whole = size + (struct.unpack_from('<Q', data, here + 8)[0] if kind == 71 else 0)
        records += data[here:here + whole] if kind != 68 else b''  # no round ends: records at the end are not late
        here += whole
    for time, tid, misc in switches:  # their trailer: thread, time, processor, event
        records += struct.pack('<IHHIIQQQ', 14, misc, 40, int(tid), int(tid), time, 0, 0xc9)
    # The features behind the records, of which the header has a bit each, tell where they are.
    features, more = data[at + n:], len(records) - n
    table = sum(bin(byte).count('1') for byte in data[72:104])
    for i in range(table):
        place, size = struct.unpack_from('<QQ', features, 16 * i)
        features = features[:16 * i] + struct.pack('<QQ', place + more, size) + features[16 * i + 16:]
    with open(out, 'wb') as f:
        f.write(data[:48] + struct.pack('<Q', len(records)) + data[56:at] + records + features)


@test
def off_by_threads_buffers(lab):
    """The same where each thread has a buffer of its own, whose stream is the thread's."""
    path = os.path.join(DATA, 'perf', 'pt', 'pt-threads-per-thread')
    if not os.path.exists(path + '.slices.gz'):
        raise Skip('no captures in ' + DATA)
    slices = slices_of(path + '.slices.gz')
    with_switches(path + '.data', lab.path('switches.data'), slices)
    text = lab.run('decode', '--format', 'perf,threads=yes', '--symfs', os.path.join(DATA, 'perf', 'symfs'), '--text',
                   lab.path('switches.data')).text()
    texts = {name: lines for name, lines in streams(text).items() if name.startswith('pt.')}
    away = ticks_away(slices, texts, stops=True)
    for name, lines in texts.items():
        told = ticks_by_what(lines, 'IN')
        check(told['switched_out'] == away[name[len('pt.t'):]] > 0, name, told, away)
    check(len(texts) == 2, texts.keys())


@test
def off_the_processor(lab):
    """Time in which a thread does not run is no function's: that of recordings with switches, by thread."""
    lab.start()
    compared, alone = 0, 'pt-threads-per-cpu'
    for name in ('pt-five-tasks', 'pt-kernel', alone, 'alone'):
        path = os.path.join(DATA, 'perf', 'pt', alone if name == 'alone' else name)
        if not os.path.exists(path + '.slices.gz'):
            raise Skip('no captures in ' + DATA)
        file = path + '.data'
        if name == 'alone':
            file = lab.path('alone.data')
            of_one_process(path + '.data', file)
        lab.run('push', '--trace', name, '--symfs', os.path.join(DATA, 'perf', 'symfs'), file, status=None)
        wait_sealed(lab, name)
        longer = lab.run('sql', name, 'SELECT * FROM call WHERE switched_out > duration', '--json').text()
        check(not longer, 'not a part of the duration', longer[:300])
        slices = slices_of(path + '.slices.gz')
        truth, texts = presence(slices), {}
        streams_of = [s['name'] for s in json.loads(lab.run('ls', '--json', name).text())[0]['streams'] if s['insns']]
        for lane in streams_of:
            texts[lane] = [line for line in lab.run('get', name + '/' + lane, '--text').text().splitlines()
                           if line[0] != '#']
        away = ticks_away(slices, {lane: texts[lane] for lane in streams_of if lane.startswith('pt.')})
        for lane in streams_of:
            tid = lane.split('.')[1]
            if not lane.startswith('thread.') or tid not in truth:
                continue
            web = json.loads(web_get(lab, '/api/v1/traces/%s/streams/%s/functions?limit=20000' % (name, lane)))
            about, (on, whole) = web['about'], truth[tid]
            check(about['time'] == sum(about[kind] for kind in KINDS) > 0, lane, about)
            check(0 <= about['ran'] - sum(f['self_time']['value'] for f in web['functions']) <= len(web['functions']))
            # The stream may begin and end with timestamps around the thread's first and last slice.
            check(0 < about['ran'] <= on + 1000, lane, about, on)
            check(about['off'] + about['lost'] + about['switched_out'] + 1000 >= whole - on, lane, about, on, whole)
            told = ticks_by_what(texts[lane], 'IN')
            # Also of thread 2151 of pt-five-tasks, which once is on two processors at a time, by the records.
            check(told['switched_out'] == away[tid], lane, told, away)
            unit = about['time'] / sum(told.values())
            check(abs(about['ran'] - told['ran'] * unit) <= 2, lane, about, told)
            # The text calls lost what is before the first instruction, and nothing else here.
            check(-2 <= about['switched_out'] - told['switched_out'] * unit <= 2 + told['lost'] * unit, lane, about, told)
            compared += 1
    check(compared >= 12, compared)


@test
def whose_time(lab):
    """Functions, calls, interrupts and gaps: command, HTTP and Python agree, with each other and in sum."""
    simulated(lab, 40000)
    wait_sealed(lab, 'sim')
    name, path = 'sim/cs.10', '/api/v1/traces/sim/streams/cs.10/'
    web = json.loads(web_get(lab, path + 'functions'))
    about, functions = web['about'], web['functions']
    check(about['has_time'] and about['time'] == sum(about[kind] for kind in KINDS), about)
    check(sum(f['self_time']['value'] for f in functions) == about['ran'], about)
    check(sum(f['self'] for f in functions) == about['to'] - about['from'], about)
    told = rows(lab, 'functions', name, '--limit', '1000')
    check(len(told) == len(functions) == web['all'], len(told), len(functions))
    for a, b in zip(told, functions):
        check(a == b, a, b)
    most = max((f for f in functions if f['ended'] > 5), key=lambda f: f['ended'])
    calls = rows(lab, 'calls', name, most['name'], '--limit', '20000')
    done = [c for c in calls if not c.get('open')]
    check(len(done) == most['ended'] and sum(c['time']['value'] for c in done) == most['time']['total'], most)
    check([c['time']['value'] for c in calls] == sorted((c['time']['value'] for c in calls), reverse=True), 'order')
    check(done[0]['time']['value'] == most['time']['max'], done[0], most)
    median = sorted(c['time']['value'] for c in done)[(len(done) - 1) // 2]
    check(abs(most['time']['p50'] - median) <= median / 100 + 1, median, most)
    asked = json.loads(web_get(lab, path + 'calls?of=%s&order=first&skip=2&limit=3' % most['name']))
    check([c['from'] for c in asked['calls']] == sorted(c['from'] for c in calls)[2:5], asked)
    long = rows(lab, 'calls', name, most['name'], '--limit', '20000', '--least', '%dns' % median)
    check(len(long) == len([c for c in calls if c['time']['value'] >= median]), len(long))
    one = json.loads(lab.run('call', name, '--insn', str(done[0]['from']), '--depth', str(done[0]['depth']), '--json').text())
    check((one['from'], one['to'], one['self']) == tuple(done[0][k] for k in ('from', 'to', 'self')), one, done[0])
    interrupts = rows(lab, 'interrupts', name)
    web = json.loads(web_get(lab, path + 'interrupts'))['exceptions']
    check([(e['number'], e['entered'], e['jitter']) for e in interrupts] ==
          [(e['number'], e['entered'], e['jitter']) for e in web] and web, interrupts, web)
    check(all(e['entered'] >= e['ended'] and e['time']['max'] <= about['time'] for e in interrupts if 'time' in e))
    gaps = json.loads(web_get(lab, path + 'gaps?limit=9'))['gaps']
    check([g['at'] for g in gaps] == [g['at'] for g in rows(lab, 'gaps', name, '--limit', '9')], gaps)
    inside = ['--time', '%dns:+%dns' % (done[0]['time_from'], max(done[0]['time']['value'], 1000))]
    part = rows(lab, 'functions', name, *inside)
    check(part and part[0]['self_time']['value'] > 0, part)
    tree = json.loads(lab.run('stats', name, '--tree', '--weight', 'time', '--json').text())
    check(tree['weight'] == 'time' and abs(tree['ran'] - about['ran']) <= len(tree['nodes']), tree['ran'], about)
    own = {f['name']: f['self'] for f in tree['functions']}
    check(all(abs(own.get(f['name'], 0) - f['self_time']['value']) <= 10 * len(tree['nodes']) for f in functions), own)
    folded = lab.run('profile', name, '--weight', 'time').text().splitlines()
    check(abs(sum(int(line.rsplit(' ', 1)[1]) for line in folded) - tree['ran']) <= len(folded), 'folded')
    lab.fails(2, r'--weight time', 'profile', name, '--as', 'bolt', '--weight', 'time')
    lab.fails(2, r'functions', 'stats', name, '--weight', 'time')
    for command in (('functions', name), ('calls', name, most['name']), ('interrupts', name), ('gaps', name)):
        check(lab.run(*command).text().startswith('# '), command)
    lab.fails(3, r'no symbol', 'calls', name, 'no_such_function_at_all')
    lab.fails(2, r'--weight', 'functions', name, '--weight', 'luck')
    lab.fails(2, r'unit', 'calls', name, most['name'], '--least', '1us', '--most', '5')


def cycles_of(lines):
    """Cycles that a text counts, but for those of trace that is missing, or before the first instruction."""
    cycles, begun, broken = 0, False, False
    for line in lines:
        begun = begun or line[0] in 'IN'
        broken = broken or line[0] == 'G'
        if line[0] == 'Y':
            cycles += 0 if broken or not begun else int(line.split()[1])
            broken = False
    return cycles


@test
def no_times(lab):
    """A stream without timestamps is not asked by time, by any door."""
    lab.start()
    lab.run('push', '--snapshot', snapshot('ete_ip'), '--trace', 'bare', status=None)
    trace, stream = 'bare.ETB_1', 'bare.ETB_1/cs.02'
    wait_sealed(lab, trace)
    none = 'stream cs.02 has no timestamps'
    for question in ('stats', trace, '--tree'), ('profile', trace), ('diff', stream, stream):
        lab.fails(2, none, *question, '--weight', 'time')
    for path in 'profile?', 'streams/cs.02/profile?', 'streams/cs.02/compare?with=%s&' % stream:
        try:
            raise AssertionError(web_get(lab, '/api/v1/traces/%s/' % trace + path + 'weight=time'))
        except urllib.error.HTTPError as error:
            check(error.code == 400 and none in error.read().decode(), path, error.code)
    check(lab.run('functions', stream).text().startswith('# the stream has no time'), 'functions')


@test
def cycles_weigh(lab):
    """Trees, profiles and comparisons by the cycles that a trace counts; where it counts none, that is said."""
    simulated(lab, 40000, kind='pt')
    subprocess.run([lab.rig, '--kind', 'etm', '--server', lab.url, '--trace', 'etm', '--rate', '100000000', '--bytes',
                    '20000', '--quiet'], check=True, timeout=240, stdout=subprocess.DEVNULL)
    wait_sealed(lab, 'sim')
    wait_sealed(lab, 'etm')
    told = cycles_of(lab.run('get', 'sim/pt.0', '--text').text().splitlines())
    check(told > 1000, told)
    tree = json.loads(lab.run('stats', 'sim/pt.0', '--tree', '--weight', 'cycles', '--json').text())
    check(tree['weight'] == 'cycles' and tree['ran'] == told, tree['ran'], told)
    check(sum(f['self'] for f in tree['functions']) == told, 'functions')
    half = tree['time'] and [json.loads(lab.run('stats', 'sim/pt.0', '--tree', '--weight', 'cycles', '--insn', part,
                                                '--json').text())['ran'] for part in (':9001', '9001:')]
    check(sum(half) == told, half, told)
    check('cycles' in lab.run('stats', 'sim/pt.0', '--tree', '--weight', 'cycles').text().splitlines()[0])
    folded = lab.run('profile', 'sim/pt.0', '--weight', 'cycles').text().splitlines()
    check(sum(int(line.rsplit(' ', 1)[1]) for line in folded) == told, 'folded')
    form = json.loads(lab.run('profile', 'sim/pt.0', '--weight', 'cycles', '--as', 'speedscope').text())
    check(form['profiles'][0]['name'] == 'cycles' and sum(form['profiles'][0]['weights']) == told)
    diff = ['diff', 'sim/pt.0@0:9000', 'sim/pt.0@9000:18000', '--weight', 'cycles']
    check('own cycles' in lab.run(*diff).text())
    check(json.loads(lab.run(*diff, '--json').text())['weight'] == 'cycles')
    lab.fails(2, r'no cycle counts there: weigh by insns or time', 'stats', 'etm/cs.10', '--tree', '--weight', 'cycles')
    lab.fails(2, r'time or insns', 'functions', 'sim/pt.0', '--weight', 'cycles')


@test
def comparing(lab):
    """Two runs of a program: equal up to where they diverge, and between the differences."""
    simulated(lab, 40000)
    wait_sealed(lab, 'sim')
    texts = streams(lab.run('get', 'sim', '--text').text())
    a, b = [only(texts[name], 'I') for name in ('cs.10', 'cs.12')]
    same = json.loads(lab.run('diff', 'sim/cs.10', 'sim/cs.10', '--json', '--exit-code').text())
    check(same['total'] == 0 and same['a']['to'] == len(a), same)
    diff = json.loads(lab.run('diff', 'sim/cs.10', 'sim/cs.12', '--json', '--limit', '10000').text())
    check(diff['total'] == len(diff['hunks']) > 0, diff['total'])
    at, bt = 0, 0
    for hunk in diff['hunks']:
        check(a[at:hunk['a_from']] == b[bt:hunk['b_from']], 'not alike in front of', hunk)
        at, bt = hunk['a_to'], hunk['b_to']
    check(a[at:] == b[bt:], 'not alike behind the last one')
    first = next((i for i, (x, y) in enumerate(zip(a, b)) if x != y), min(len(a), len(b)))
    check(diff['hunks'][0]['a_from'] == first, diff['hunks'][0], first)
    total = {f['name']: f['self_a'] for f in diff['functions']}
    check(sum(total.values()) <= len(a), total)
    timed = json.loads(lab.run('diff', 'sim/cs.10', 'sim/cs.12', '--weight', 'time', '--json').text())
    check(timed['weight'] == 'time' and timed['hunks'] == diff['hunks'][:100], timed['weight'])
    for side, name in (('a', 'cs.10'), ('b', 'cs.12')):
        own = {f['name']: f['self_time']['value'] for f in rows(lab, 'functions', 'sim/' + name, '--limit', '1000')}
        # The sums of paths are rounded one by one.
        check(all(abs(f['self_' + side] - own.get(f['name'], 0)) <= 2000 for f in timed['functions']), own)
        check(sum(f['self_' + side] for f in timed['functions']) > 0, timed['functions'])
    order = [abs(f['self_a'] - f['self_b']) for f in timed['functions']]
    check(order == sorted(order, reverse=True), order)
    check('own time, in ns' in lab.run('diff', 'sim/cs.10', 'sim/cs.12', '--weight', 'time').text())
    lab.fails(2, r'insns, time or cycles', 'diff', 'sim/cs.10', 'sim/cs.12', '--weight', 'bytes')
    text = lab.run('diff', 'sim/cs.10@0:5000', 'sim/cs.12@0:5000', '--calls').text()
    check('they diverge at A' in text or 'identical' in text, text)
    lab.run('diff', 'sim/cs.10', 'sim/cs.12', '--exit-code', status=1)
    lab.fails(2, r'range is A:B', 'diff', 'sim/cs.10@5', 'sim/cs.12')
    lab.fails(3, r'no stream', 'diff', 'sim/cs.10', 'sim/cs.99')


if __name__ == '__main__':
    main(TESTS)
