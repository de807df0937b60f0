#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""perf.data to a server, as files and live. usage: perf_data.py BUILD [NAME…]"""

import gzip
import json
import os
import re
from random import Random
import shutil
import struct
import subprocess
import sys
import time
import urllib.request

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(os.path.dirname(HERE), 'perf')]
from lab import DATA, TIMEOUT, Skip, check, main, only, streams, wait  # noqa: E402
import perffile  # noqa: E402

TESTS = {}


def test(function):
    TESTS[function.__name__] = function
    return function


def capture(name):
    path = os.path.join(DATA, 'perf', 'pt', name + '.data')
    if not os.path.exists(path):
        raise Skip('no ' + path)
    with gzip.open(path[:-5] + '.flow.gz', 'rt') as f:
        return path, streams(f.read())


def told(lab, path):
    with urllib.request.urlopen(lab.url + '/api/v1/traces/' + path, timeout=240) as reply:
        return json.load(reply)


def ask(method, lab, path, body):
    request = urllib.request.Request(lab.url + '/api/v1/traces/' + path, data=body, method=method)
    with urllib.request.urlopen(request, timeout=240) as reply:
        return json.load(reply)


def agrees(lab, trace, truth):
    stored = streams(lab.run('get', trace, '--text').text())
    cpus = [name for name in stored if not name.startswith(('thread.', 'event.'))]
    check(sorted(cpus) == sorted(truth), trace, 'has', sorted(stored))
    for name in truth:
        a, b = only(truth[name], 'I'), only(stored[name], 'I')
        check(a == b, trace, name, 'differs from the truth', len(a), len(b))
    return stored


@test
def second_thread(lab):
    """Two threads of a process take turns on a processor: calls and profiles of both are found."""
    data = os.path.join(DATA, 'field', 'pt')
    path = os.path.join(data, 'two-threads.data')
    if not os.path.exists(path):
        raise Skip('no ' + path)
    lab.start()
    lab.run('push', '--trace', 'two', '--symfs', os.path.join(data, 'symfs'), path)
    for tid, caller in (77, 'first'), (78, 'second'):
        stream = 'two/thread.%d.two' % tid
        found = lab.run('find', stream, '--call', 'helper', '--count').text()
        check('# 12 in all' in found and 'helper from %s' % caller in found, found)
        folded = lab.run('profile', stream, '--as', 'folded').text()
        check(folded == '%s 24\n%s;helper 24\n' % (caller, caller), folded)
        told = json.loads(lab.run('coverage', stream, '--as', 'json').text())
        executed = sorted(f['name'] for f in told['functions'] if f['executed'])
        check(executed == sorted([caller, 'helper']), executed)


@test
def perf_guests(lab):
    """A traced machine is a virtual one: its processes and its kernel run in it as they ran on real processors."""
    lab.start()
    for name in 'pt-three-processes-two-cpus', 'pt-kernel':
        path, truth = capture(name)
        with open(path, 'rb') as f:
            raw = perffile.as_guest(f.read(), 834)
        guest, mount = lab.path(name + '.data'), lab.path('mount')
        with open(guest, 'wb') as f:
            f.write(raw)
        if not os.path.exists(mount):
            shutil.copytree(os.path.join(DATA, 'perf', 'symfs'), os.path.join(mount, '834'))
            os.mkdir(os.path.join(mount, '834', 'proc'))
            with open(os.path.join(mount, '834', 'proc', 'version'), 'w') as f:
                f.write('Linux version 6.1.0 (builder)\n')
        lab.run('push', '--trace', name, '--guestmount', mount, guest)
        stored = agrees(lab, name, truth)
        text = '\n'.join(stored['pt.0'])
        check('C 834 342\nA switch 834 835 qemu\nA guest 2100 2100 ' in text, text[:300])
        # Without its files it is a gap under the machine's name, and nothing of this machine's is taken for it.
        plain = lab.run('decode', '--format', 'perf', '--text', '--symfs', os.path.join(DATA, 'perf', 'symfs'), guest,
                        status=None)
        check(b'\nI ' not in plain.out and b'C 834 342' in plain.out, plain)
        check(b'give --guestmount' in plain.err, plain)
    # Of a kernel without code the functions are known by a list of them, on the server, too.
    names, bare = lab.path('kallsyms'), lab.path('bare')
    shutil.copytree(os.path.join(DATA, 'perf', 'symfs', 'opt'), os.path.join(bare, '834', 'opt'))
    with open(names, 'w') as f:
        f.write('ffffffff81000000 T _text\n')
    lab.run('push', '--trace', 'names', '--guestmount', bare, '--guestkallsyms', names, guest)
    text = lab.run('get', 'names/pt.0', '--text', '--functions').text()
    ways = [line for line in text.splitlines() if re.match('B \\S+ ffffffff', line)]
    check(len(ways) > 20 and all('<_text' in line for line in ways) and '\nI ffffffff' not in text, ways[:3])
    setup = lab.run('setup', guest).text()
    check('[vmid 0x342]\nname=guest 834 qemu\n' in setup, setup[-300:])


def small_elf(path, names):
    """The program of tests/fuzz/corpus/perf/two-threads.data, its three functions with these names."""
    code = bytearray(0x108)
    code[0:9] = bytes.fromhex('e802000000ebf990c3')
    code[0x100:0x107] = bytes.fromhex('e802ffffffebf9')
    strings, symbols = b'\0', bytes(24)
    for name, (at, size) in zip(names, ((0, 7), (0x100, 7), (7, 2))):
        symbols += struct.pack('<IBBHQQ', len(strings), 0x12, 0, 1, 0x401000 + at, size)
        strings += name.encode() + b'\0'
    text, table, texts = 0x1000, 0x1110, 0x1110 + len(symbols)
    sections = (texts + len(strings) + 7) // 8 * 8
    raw = bytearray(sections) + b''.join(struct.pack('<IIQQQQIIQQ', *row) for row in (
        (0,) * 10, (0, 1, 6, 0x401000, text, len(code), 0, 0, 16, 0),
        (0, 2, 0, 0, table, len(symbols), 3, 1, 8, 24), (0, 3, 0, 0, texts, len(strings), 0, 0, 1, 0)))
    raw[:64] = struct.pack('<16sHHIQQQIHHHHHH', b'\x7fELF\2\1\1', 2, 62, 1, 0x401000, 64, sections, 0, 64, 56, 1, 64, 4, 0)
    raw[64:120] = struct.pack('<IIQQQQQQ', 1, 5, text, 0x401000, 0x401000, len(code), len(code), 0x1000)
    raw[text:text + len(code)] = code
    raw[table:table + len(symbols)] = symbols
    raw[texts:texts + len(strings)] = strings
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, 'wb') as f:
        f.write(raw)


def python_package(lab):
    """Ours; None where what it needs is not installed."""
    sys.path.insert(0, os.path.join(lab.build, 'python'))
    try:
        import tracelake
    except ImportError:
        return None
    return tracelake


@test
def limit_of_names(lab):
    """More names of the kernel's generated code than are kept: said once, with status 1."""
    with open(os.path.join(os.path.dirname(HERE), 'fuzz', 'corpus', 'perf', 'two-threads.data'), 'rb') as f:
        capture = f.read()[1:]
    for n, status in (16384, 0), (16385, 1), (16390, 1):
        records = [perffile.ksymbol(0xffffffff00000000 + 64 * i, 64, b'bpf_prog_%d' % i, 0, 0) for i in range(n)]
        path = lab.path('names%d.data' % n)
        with open(path, 'wb') as f:
            f.write(perffile.with_records(capture, records))
        done = lab.run('decode', '--text', path, status=status)
        said = done.err.decode()
        check(said.count('more than 16384 symbols') == status, n, said)


@test
def limit_of_changes(lab):
    """More changes of the kernel's code than are followed: said once, with status 1."""
    with open(os.path.join(os.path.dirname(HERE), 'fuzz', 'corpus', 'perf', 'two-threads.data'), 'rb') as f:
        capture = f.read()[1:]
    for n, status in (4096, 0), (4097, 1), (4200, 1):
        records = [perffile.text_poke(0xffffffff81000000 + 64 * i, b'\x90', b'\xcc', 0, 0) for i in range(n)]
        path = lab.path('changes%d.data' % n)
        with open(path, 'wb') as f:
            f.write(perffile.with_records(capture, records))
        said = lab.run('decode', '--text', path, status=status).err.decode()
        check(said.count('the kernel changed its code more than 4096 times') == status, n, said)


@test
def names_of_functions(lab):
    """C++ and Rust names are demangled everywhere, found by either spelling; several functions of one name."""
    mangled = ['_ZN3app5firstEi', '_RNvC3app6second', '_ZN3geo6helperIiEEvT_']
    package = python_package(lab)
    plain = ['app::first(int)', 'app::second', 'void geo::helper<int>(int)']
    path = os.path.join(lab.dir, 'two.data')
    with open(os.path.join(os.path.dirname(HERE), 'fuzz', 'corpus', 'perf', 'two-threads.data'), 'rb') as f:
        capture = f.read()[1:]
    with open(path, 'wb') as f:
        f.write(capture)
    for folder, names in ('cpp', mangled), ('same', ['turn', 'turn', 'helper']):
        small_elf(os.path.join(lab.dir, folder, 'opt', 'demo', 'two.elf'), names)
    lab.start()
    for trace in 'cpp', 'same':
        lab.run('push', '--trace', trace, '--symfs', os.path.join(lab.dir, trace), path)
    stream = 'cpp/thread.77.two'
    for option, names in ([], plain), (['--mangled'], mangled):
        first, second, helper = names
        shown = lab.run('decode', '--symfs', os.path.join(lab.dir, 'cpp'), '--text', '--disasm', *option, path).text()
        check(all('<%s>' % name in shown for name in names), option, 'decode')
        for asked in 'geo::helper', 'geo::helper<int>', plain[2], mangled[2], 'geo::h*', 'o::help':
            found = json.loads(lab.run('find', stream, '--call', asked, '--count', '--json', *option).text())
            check(found['total'] == 12 and found['functions'] == 1, asked, found['total'])
            check(found['hits'][0]['text'] == '%s from %s' % (helper, first), found['hits'][0])
            check(found['what'] == 'calls of ' + helper, found['what'])
        for asked in 'app::first', plain[0], mangled[0]:
            found = json.loads(lab.run('find', stream, '--symbol', asked, '--count', '--json', *option).text())
            check(found['functions'] == 1 and found['total'] > 0 and found['what'] == first, asked, found['what'])
        folded = lab.run('profile', stream, '--as', 'folded', *option).text()
        check(folded == '%s 24\n%s;%s 24\n' % (first, first, helper), folded)
        lab.run('profile', stream, '--as', 'pprof', '-o', lab.path('names.pb.gz'), *option)
        with gzip.open(lab.path('names.pb.gz')) as f:
            packed = f.read()
        said = [name for name in plain + mangled if name.encode() in packed]
        check(said == [names[0], names[2]] + ([] if option else [mangled[0], mangled[2]]), 'pprof', said)
        if package:
            with package.connect(lab.url, mangled=bool(option)) as lake:
                check(set(lake.profile('cpp', 'thread.77.two')) == {(first,), (first, helper)}, 'Python')
        for command, count in ('stats', 'insns'), ('coverage', 'executed'):
            said = lab.run(command, stream, '--json', *option).text()
            known = {f['name'] for f in json.loads(said)['functions'] if f[count]}
            check(known == {first, helper}, command, known)
        at = json.loads(lab.run('call', stream, '--insn', '1', '--json', *option).text())
        check(at['name'] == helper, at)
        assembly = lab.run('get', stream, '--lines', *option).text() + lab.run('get', stream, '--text', '--disasm',
            '--symbols', os.path.join(lab.dir, 'cpp', 'opt', 'demo', 'two.elf'), *option).text()
        check('<%s>' % helper in assembly, assembly[:500])
        request = urllib.request.Request(lab.url + '/api/v1/traces/cpp/functions',
                                         headers={'Tracelake-Names': 'mangled'} if option else {})
        with urllib.request.urlopen(request, timeout=240) as reply:
            check({f['name'] for f in json.load(reply)} == set(names), 'functions')
    lab.run('find', stream, '--symbol', 'geo::nobody', status=3)
    found = lab.run('find', 'same/pt.0', '--symbol', 'turn').text()
    check('# 2 functions: turn' in found, found)
    begins = {line.split()[3] for line in found.splitlines() if not line.startswith('#')}
    check({'0000000000401000', '0000000000401100'} <= begins, begins)
    both = json.loads(lab.run('find', 'same/pt.0', '--symbol', 'turn', '--count', '--json').text())
    check(both['functions'] == 2 and both['what'] == '2 functions: turn', both['what'])
    found = lab.run('find', 'same/pt.0', 'turn+0x5').text()
    check({'0000000000401005', '0000000000401105'} == {l.split()[3] for l in found.splitlines() if l[0] != '#'}, found)


@test
def perf_file(lab):
    """A file: its format is detected from its first bytes; its processes, their code, who ran, and its bytes."""
    path, truth = capture('pt-five-tasks')
    lab.start()
    symfs = os.path.join(DATA, 'perf', 'symfs')
    lab.run('push', '--trace', 'five', '--symfs', symfs, path)
    stored = agrees(lab, 'five', truth)
    switches = only(stored['pt.0'], 'A')
    check('A switch 2100 2100 ramble' in switches, switches[:5])
    found = lab.run('find', 'five/pt.0', '--symbol', 'up', '--limit', '3').text()
    check('up' in found, 'no function is known:', found)
    with open(path, 'rb') as f:
        check(lab.raw('five') == f.read(), 'the raw bytes are others')
    # On the client each program is stored once, however many processes ran it.
    config, images, again = lab.path('home.ini'), lab.path('home'), lab.path('home.data')
    lab.run('raw', 'five', '-o', again, '--config', config, '--images', images)
    with open(config) as f:
        named = [line[5:].rstrip() for line in f if line.startswith('file=') and 'missing:' not in line]
    check(len(named) > len(set(named)) and set(named) == {'home/' + f for f in os.listdir(images)}, named)
    here = streams(lab.run('decode', '--config', config, '--text', again).text())
    check(all(here[name] == stored[name] for name in truth), 'decoded at home it is something else')
    check('A cpu 1: 0 0 swapper -> 2100 2100 ramble' in stored['event.switch'], stored['event.switch'][:5])
    check('A cpu 1: 2100 2100 ramble runs the program ramble' in stored['event.task'], stored['event.task'])
    for what in ('ramble', 'process:ra?ble', 'process:2100'):
        found = lab.run('find', 'five/pt.1', what).text().splitlines()[1:]
        ran = [line for line in only(stored['pt.1'], 'A') if line == 'A switch 2100 2100 ramble']
        check(len(found) == len(ran) > 0, what, 'runs', len(found), 'times, not', len(ran))
    # Each thread is also a stream: on whichever CPUs it ran, and without counting twice.
    threads = {name: len(only(stored[name], 'I')) for name in stored if name.startswith('thread.')}
    executed = sum(len(only(truth[name], 'I')) for name in truth)
    check(sum(threads.values()) == executed and len(threads) == 5, threads, executed)
    with gzip.open(path[:-5] + '.slices.gz', 'rt') as f:
        slices = [line.split() for line in f]
    mine = [row for row in slices if row[2] == '2100']
    begin, end = min(int(row[5]) for row in mine), max(int(row[6]) for row in mine)
    row, = [t for t in json.loads(lab.run('ls', '--json').text()) if t['id'] == 'five']
    check(len(row['streams']) == len(stored), row)
    ramble, = [s for s in row['streams'] if s['name'] == 'thread.2100.ramble']
    check(abs(int(ramble['time_first']) - begin) < 20000 and abs(int(ramble['time_last']) - end) < 20000,
          'perf says', begin, end, 'and the stream', ramble)
    folded = lab.run('profile', 'five', '--as', 'folded').text().splitlines()
    counted = sum(int(line.rsplit(' ', 1)[1]) for line in folded)
    check(counted == executed, 'of', executed, 'instructions', counted, 'are in the profile')
    # Of the whole trace each instruction, call and gap counts once, although threads' streams repeat them.
    whole = told(lab, 'five/stats')
    each = {name: told(lab, 'five/streams/%s/stats' % name) for name in stored}
    flow = [s for name, s in each.items() if name.startswith('pt.')]
    check(whole['insns'] == executed, 'of', executed, 'instructions', whole['insns'], 'are in the statistics')
    for count in 'insns', 'calls':
        parts = sum(f[count] for s in flow for f in s['functions'])
        check(sum(f[count] for f in whole['functions']) == parts > 0, count, 'of functions')
    off = sum(s['gaps'].get('off', 0) for s in flow)
    out = sum(s['gaps'].get('switched-out', 0) for s in each.values())
    check(whole['gaps'] == {'off': off, 'switched-out': out} and off and out, whole['gaps'], off, out)


@test
def perf_live(lab):
    """A pipe that arrives slowly: code that is mapped during the recording is sent when it is seen."""
    path, truth = capture('pt-remap')
    lab.start()
    symfs = os.path.join(DATA, 'perf', 'symfs')
    with open(path, 'rb') as f:
        piped = perffile.as_pipe(f.read())
    push = lab.spawn('push', '--trace', 'live', '--format', 'perf', '--symfs', symfs, '-', stdin=-1)
    for at in range(0, len(piped), 1000):
        push.stdin.write(piped[at:at + 1000])
        push.stdin.flush()
    push.stdin.close()
    check(push.wait(240) == 0, push.stderr.read())
    stored = agrees(lab, 'live', truth)
    check(any(name.startswith('thread.') for name in stored), 'there are no threads', sorted(stored))
    check(lab.raw('live') == piped, 'the raw bytes are others')
    lab.run('verify', 'live')


@test
def perf_live_files_once(lab):
    """Files that were sent are not read again, however often the mappings of the trace are updated."""
    path, truth = capture('pt-remap')
    if not shutil.which('objcopy'):
        raise Skip('there is no objcopy')
    lab.start()
    whole = os.path.join(DATA, 'perf', 'symfs', 'opt/demo')
    symfs = lab.path('symfs')
    here = os.path.join(symfs, 'opt/demo')
    shutil.copytree(whole, here)
    program, debug = os.path.join(here, 'plug'), os.path.join(here, 'plug.debug')
    subprocess.run(['objcopy', '--only-keep-debug', os.path.join(whole, 'plug'), debug], check=True)
    subprocess.run(['objcopy', '--strip-all', '--add-gnu-debuglink=' + debug, os.path.join(whole, 'plug'), program],
                   check=True)
    with open(path, 'rb') as f:
        piped = perffile.as_pipe(f.read())
    push = lab.spawn('push', '--trace', 'live', '--format', 'perf', '--symfs', symfs, '--buildid-dir', '/nowhere', '-',
                     stdin=-1)
    first = piped.index(struct.pack('<IHH', 71, 0, 48)) + 1000  # bytes of the first piece of trace
    push.stdin.write(piped[:first])
    push.stdin.flush()
    wait('the trace is known', lambda: any(t['id'] == 'live' for t in json.loads(lab.run('ls', '--json').text())))
    os.remove(program)
    os.remove(debug)
    push.stdin.write(piped[first:])
    push.stdin.close()
    check(push.wait(240) == 0, push.stderr.read())
    agrees(lab, 'live', truth)
    check(told(lab, 'live')['generation'] > 1, 'it is never told what was mapped later')
    symbols = lab.run('find', 'live/pt.0', '--symbol', 'begin', '--limit', '1').text()
    check('begin' in symbols, 'the program has no symbols')


@test
def perf_restarted(lab):
    """The server dies in the middle, after it was informed of code mapped during the recording."""
    path, truth = capture('pt-five-tasks')
    lab.start()
    with open(path, 'rb') as f:
        piped = perffile.as_pipe(f.read())
    push = lab.spawn('push', '--trace', 'live', '--format', 'perf', '--symfs',
                     os.path.join(DATA, 'perf', 'symfs'), '-', stdin=-1)
    at, until, known = 0, time.monotonic() + TIMEOUT, False
    while not known:  # a little at a time: the pipe's contents at the beginning count as read ahead
        push.stdin.write(piped[at:at + 1500])
        push.stdin.flush()
        at += 1500
        time.sleep(0.1)
        traces = json.loads(lab.run('ls', '--json').text())
        known = any(t['id'] == 'live' and t['generation'] > 1 for t in traces)
        check(time.monotonic() < until and at < len(piped), 'it is not decoded with what was mapped later')
    lab.kill()
    lab.start()
    push.stdin.write(piped[at:])
    push.stdin.close()
    check(push.wait(240) == 0, push.stderr.read())
    agrees(lab, 'live', truth)
    check(lab.raw('live') == piped, 'the raw bytes are others')


@test
def perf_without_code(lab):
    """Missing code is named; if it is provided later, the trace is the same as with it."""
    path, truth = capture('pt-one-cpu')
    lab.start()
    missing = lab.run('push', '--trace', 'bare', '--symfs', '/nowhere', '--buildid-dir', '/nowhere', path)
    check('/opt/demo/stroll (build ID ca6562667de28bceed106244c9519acb8baa408f)' in missing.err.decode(), missing)
    stored = streams(lab.run('get', 'bare', '--text').text())
    check(not only(stored['pt.0'], 'I') and only(stored['pt.0'], 'B'), 'without code there are addresses alone')
    lacking = told(lab, 'bare/images')
    stroll, = [f for f in lacking if f['path'] == '/opt/demo/stroll']
    check(not stroll['there'] and stroll['build_id'] == 'ca6562667de28bceed106244c9519acb8baa408f', lacking)
    check({p['name'] for p in stroll['places']} == {'stroll'}, stroll)
    # A file whose build ID was not recorded is named too.
    vdso, = [f for f in lacking if f['path'] == '[vdso]']
    check('no code of [vdso];' in missing.err.decode(), missing)
    check(not vdso['there'] and 'build_id' not in vdso and vdso['file'].startswith('missing:'), lacking)
    # The file arrives: whoever sends it, it is recognised as the one that was named.
    symfs = os.path.join(DATA, 'perf', 'symfs')
    lab.run('images', os.path.join(symfs, 'opt/demo/stroll'))

    def decoded_again():
        row = told(lab, 'bare')
        return row['state'] == 'sealed' and row['generation'] > 1
    wait('it is decoded with the file', decoded_again, lambda: told(lab, 'bare'))
    agrees(lab, 'bare', truth)
    runs = told(lab, 'bare/states?streams=pt.0')['streams']['pt.0']['runs']
    check({run.get('name') for run in runs} == {'stroll'}, runs)
    lab.run('push', '--trace', 'again', '--symfs', symfs, path)
    agrees(lab, 'again', truth)


@test
def perf_dropped(lab):
    """Only the bytes, as the page pushes a file that is dropped on it: the records contain the mappings, and code is
    found by build ID, whether it is already stored or arrives later."""
    captures = {name: capture(name) for name in ('pt-one-cpu', 'pt-five-tasks')}
    come_later = {'pt-five-tasks': ['walk', 'pair', 'ramble', 'plug', 'plug1.so', 'plug2.so']}
    symfs = os.path.join(DATA, 'perf', 'symfs')
    lab.start()
    lab.run('images', os.path.join(symfs, 'opt/demo/stroll'))
    for name, (path, truth) in captures.items():
        files = come_later.get(name, [])
        with open(path, 'rb') as f:
            raw = f.read()
        begun = ask('PUT', lab, name, b'[trace]\nformat=perf,threads=yes,events=yes\n')
        ask('POST', lab, '%s/raw?offset=0&epoch=%d&last=1' % (name, begun['epoch']), raw)
        decoded(lab, name)
        if files:
            lacking = {f['path']: f.get('build_id') for f in told(lab, name + '/images') if not f['there']}
            check(all(lacking.get('/opt/demo/' + file) for file in files[:3]), lacking)
            for file in files:
                lab.run('images', os.path.join(symfs, 'opt/demo', file))
            executed = sum(len(only(truth[stream], 'I')) for stream in truth)
            wait('it is decoded with all', lambda: told(lab, name)['state'] == 'sealed' and executed == sum(
                s['insns'] for s in told(lab, name)['streams'] if s['name'].startswith('pt.')), lambda: told(lab, name))
        stored = agrees(lab, name, truth)
        check(any(stream.startswith('thread.') for stream in stored), sorted(stored))
        check(lab.raw(name) == raw, 'the raw bytes are others')


@test
def perf_without_kernel(lab):
    """A kernel that arrives later is placed where its symbol was."""
    path, truth = capture('pt-kernel')
    lab.start()
    symfs = os.path.join(DATA, 'perf', 'symfs')
    lab.run('push', '--trace', 'kernel', '--symfs', '/nowhere', '--buildid-dir', '/nowhere', path)
    lacking = [f['path'] for f in told(lab, 'kernel/images') if not f['there']]
    check('[kernel.kallsyms]_text' in lacking, lacking)
    for file in ['boot/vmlinux-6.1.0'] + ['opt/demo/' + name for name in ('stroll', 'walk', 'plug', 'plug1.so', 'plug2.so')]:
        lab.run('images', os.path.join(symfs, file))
    executed = sum(len(only(truth[name], 'I')) for name in truth)

    def decoded_with_all():
        row = told(lab, 'kernel')
        return row['state'] == 'sealed' and executed == sum(
            s['insns'] for s in row['streams'] if s['name'].startswith('pt.'))
    wait('it is decoded with one after the other', decoded_with_all, lambda: told(lab, 'kernel'))
    lacking = [f['path'] for f in told(lab, 'kernel/images') if not f['there']]
    check(lacking == ['[vdso]'], lacking)
    agrees(lab, 'kernel', truth)


def objects(lab, trace, suffix):
    return [name for top, _, names in os.walk(os.path.join(lab.data, 'objects', 't', trace))
            for name in names if name.endswith(suffix)]


def same_ranges(lab, one, other, random):
    """Check that two traces of one capture are identical as text and as files."""
    check(lab.run('get', one, '--text').out == lab.run('get', other, '--text').out, one, 'has another text')
    stream = random.choice([s for s in told(lab, one)['streams'] if s['insns'] > 0])
    begin = random.randrange(stream['insns'])
    got = [lab.run('get', '%s/%s' % (trace, stream['name']), '--insn', '%d:%d' % (begin, stream['insns']),
                   '-o', '-').out for trace in (one, other)]
    check(got[0] == got[1], one, stream['name'], begin, 'differs')


def decoded(lab, trace, generation=0):
    def is_decoded():
        row = told(lab, trace)
        return row['state'] in ('sealed', 'failed') and row['generation'] > generation and row
    return wait(trace + ' is decoded', is_decoded, lambda: told(lab, trace))


@test
def perf_virtual(lab):
    """Virtual shards of perf.data, after kills: the same as stored ones, which become virtual and are stored again.
    (Every capture: test_lake_virtual.c.)"""
    path, _ = capture('pt-five-tasks')
    random = Random(27)
    options = ('--shard-insns', '3000')
    lab.start(*options)
    for kind in ('stored', 'virtual'):
        lab.run('push', '--trace', kind, '--shards', kind, '--symfs', os.path.join(DATA, 'perf', 'symfs'), path)
    lab.kill()
    lab.start(*options)
    decoded(lab, 'stored')
    decoded(lab, 'virtual')
    shards = len(objects(lab, 'stored', '.zstf'))
    check(shards > 5 and len(objects(lab, 'virtual', '.idx')) == shards, shards, objects(lab, 'virtual', '.idx'))
    check(not objects(lab, 'virtual', '.zstf'), 'virtual shards are stored')
    same_ranges(lab, 'stored', 'virtual', random)
    lab.run('verify', '--repair', '--all')
    before = told(lab, 'stored')['generation'], told(lab, 'virtual')['generation']
    lab.run('label', 'stored', 'shards=virtual')
    lab.run('redecode', 'stored')
    lab.run('materialise', 'virtual')
    lab.kill()
    lab.start(*options)
    decoded(lab, 'stored', before[0])
    decoded(lab, 'virtual', before[1])
    same_ranges(lab, 'stored', 'virtual', random)
    wait('each has the other kind of shards', lambda: len(objects(lab, 'stored', '.idx')) == shards and
         not objects(lab, 'stored', '.zstf') and len(objects(lab, 'virtual', '.zstf')) == shards)
    lab.run('verify', '--all')


@test
def perf_symbols_beside(lab):
    """Symbols in a separate debug file are used for the program that they were extracted from."""
    path, truth = capture('pt-one-cpu')
    if not shutil.which('objcopy'):
        raise Skip('there is no objcopy')
    lab.start()
    whole = os.path.join(DATA, 'perf', 'symfs', 'opt/demo/stroll')
    for trace, folder in ('none', None), ('beside', 'opt/demo'), ('hidden', 'opt/demo/.debug'), \
            ('apart', 'usr/lib/debug/opt/demo'), ('id', 'usr/lib/debug/.build-id/ca'):
        symfs = lab.path('symfs-' + trace)
        program = os.path.join(symfs, 'opt/demo/stroll')
        os.makedirs(os.path.dirname(program))
        link = []
        if folder:
            os.makedirs(os.path.join(symfs, folder), exist_ok=True)
            debug = os.path.join(symfs, folder, '6562667de28bceed106244c9519acb8baa408f.debug')
            subprocess.run(['objcopy', '--only-keep-debug', whole, debug], check=True)
            link = ['--add-gnu-debuglink=' + debug] if trace != 'id' else []
        subprocess.run(['objcopy', '--strip-all', *link, whole, program], check=True)
        lab.run('push', '--trace', trace, '--symfs', symfs, '--buildid-dir', '/nowhere', path)
        agrees(lab, trace, truth)
        ask = ('find', trace + '/pt.0', '--symbol', 'up', '--limit', '3')
        if folder:
            check(' up' in lab.run(*ask).text(), trace, 'has no symbols')
        else:
            lab.fails(3, 'no symbol "up"', *ask)


@test
def pt_sources(lab):
    """Several Intel PT streams in files of their own become one trace, and pushing resumes like for any other."""
    folder = os.path.join(DATA, 'pt', 'stepped')
    if not os.path.isdir(folder):
        raise Skip('no ' + folder)
    lab.start()
    with open(lab.path('two.ini'), 'w') as f:
        for cpu, name in ((0, 'one-cpu'), (3, 'no-time')):
            f.write('[source pt.%d]\nprotocol=pt\nfile=%s/%s.pt\n' % (cpu, folder, name))
    args = ['push', '--trace', 'two', '--config', lab.path('two.ini'), '--image', folder + '/stroll.elf']
    lab.run(*args)
    truth = {}
    for cpu, name in ((0, 'one-cpu'), (3, 'no-time')):
        with gzip.open('%s/%s.flow.gz' % (folder, name), 'rt') as f:
            truth['pt.%d' % cpu], = streams(f.read()).values()
    agrees(lab, 'two', truth)
    check('has all of it' in lab.run(*args).err.decode(), 'a second push is no other')
    with open(lab.path('two.ini'), 'a') as f:
        f.write('[source cs.10]\nfile=%s/no-time.pt\n' % folder)
    lab.fails(1, 'pt.CPU', 'push', '--trace', 'bad', '--config', lab.path('two.ini'))


if __name__ == '__main__':
    main(TESTS)
