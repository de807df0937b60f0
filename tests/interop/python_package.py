# SPDX-License-Identifier: MIT
"""The Python package against the real server, compared with the command's answers."""

import importlib.util
import itertools
import json
import os
import random
import socket
import subprocess
import sys
import threading
import types

import sim
import tracelake
from server import Server, check, free_port

SETUP = '[trace]\nformat=itm,id=1\n'
PROXY_AT = 60000


def command(server, *args):
    return subprocess.run([server.command, *args], check=True, stdout=subprocess.PIPE,
                          env=dict(os.environ, TRACELAKE_SERVER=server.url)).stdout


def itm(n):
    """One-byte software packets, each followed by a local timestamp."""
    dice = random.Random(n)
    out = bytearray(b'\0\0\0\0\0\x80')
    while len(out) < n:
        out += bytes((0x01, dice.randrange(32, 127), 0xc0, 0x10))
    return bytes(out)


def pushes(lake, server):
    data = itm(300000)
    with lake.push('py', SETUP, 'itm') as push:
        check(push.offset == 0 and push.trace == 'itm', push.offset)
        for at in range(0, len(data), 7001):
            push.write(data[at:at + 7001])
    check(push.acked == len(data), 'acknowledged', push.acked)
    check(lake.wait_sealed('itm').raw_bytes == len(data), 'bytes')
    check(b''.join(lake.raw('itm')) == data, 'the raw bytes differ')
    check(b''.join(lake.raw('itm', 100, 2000)) == data[100:2000], 'a range of raw bytes differs')
    try:
        lake.push('py', SETUP, 'itm', resume=False)
        raise AssertionError('an existing trace was begun anew')
    except tracelake.Error as e:
        check(e.code == 'ALREADY_EXISTS' and 'exists' in str(e), e.code, e)


def leaves_open(lake):
    """After an exception the capture stays open; the next push continues at the end of the durable bytes."""
    data = itm(5000)
    try:
        with lake.push('py', SETUP, 'open') as push:
            push.write(data[:3000])
            push.flush()
            raise KeyError('the program fails')
    except KeyError:
        pass
    check(lake.trace('open').state == 1, 'not live any more')
    with lake.push('py', SETUP, 'open') as push:
        check(push.offset == 3000, 'goes on at', push.offset)
        push.write(data[3000:])
    check(b''.join(lake.raw('open')) == data, 'bytes differ')


# README's push of a file, by a program that dies at each of some offsets of it.
DIES = """
import os, signal, sys, tracelake
class Source:
    def __init__(self, path, end):
        self.file, self.end = open(path, 'rb'), end
    def read(self, n):
        if self.end is not None and self.file.tell() >= self.end:
            push.flush()
            os.kill(os.getpid(), signal.SIGKILL)
        return self.file.read(min(n, 10007))
lake = tracelake.connect(sys.argv[1])
with lake.push(rig='py', setup=%r, trace='dies') as push:
    push.send(Source(sys.argv[2], int(sys.argv[3]) if sys.argv[3:] else None))
""" % SETUP


def dies(lake, server):
    """A program that pushes a file is killed again and again, and run again each time: the server has each byte once."""
    data = itm(200000)
    path = os.path.join(server.dir, 'dies.bin')
    with open(path, 'wb') as f:
        f.write(data)
    dice = random.Random(48)
    folder = os.path.dirname(os.path.dirname(tracelake.__file__))

    def program(*end):
        return subprocess.run([sys.executable, '-c', DIES, server.url, path, *map(str, end)], stderr=subprocess.PIPE, text=True,
                              env=dict(os.environ, PYTHONPATH=folder + ':' + os.environ.get('PYTHONPATH', '')), check=False)
    for end in sorted({0, 1, len(data), *(dice.randrange(len(data)) for _ in range(3))}):
        done = program(end)
        check(done.returncode == -9, 'killed at', end, done)
        if end > 0:  # with nothing to wait for it may die before the server heard of it
            check(lake.trace('dies').state == 1, 'complete too early')
    for _ in range(2):  # the second time: all of it is there, and complete
        done = program()
        check(done.returncode == 0, done)
        check(b''.join(lake.raw('dies')) == data, 'bytes differ')
    with open(path, 'ab') as f:
        f.write(b'more')
    done = program()
    check(done.returncode != 0 and 'push under another name' in done.stderr, done)
    check(b''.join(lake.raw('dies')) == data, 'bytes differ')


class Cutter:
    """Forwards TCP; cuts each of the first connections after a number of bytes from the client or, if negative, to
    it. `ends`: accepts no connection after the last cut."""

    def __init__(self, address, cuts, ends=False):
        self.ends = ends
        host, port = address.split(':')
        self.target, self.cuts, self.done = (host, int(port)), list(cuts), 0
        self.listener = socket.create_server(('127.0.0.1', 0))
        self.url = 'http://127.0.0.1:%d' % self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                a, _ = self.listener.accept()
            except OSError:
                return
            b = socket.create_connection(self.target)
            left = self.cuts.pop(0) if self.cuts else None
            up = left if left and left > 0 else None
            down = -left if left and left < 0 else None
            threading.Thread(target=self.copy, args=(a, b, up), daemon=True).start()
            threading.Thread(target=self.copy, args=(b, a, down), daemon=True).start()

    def copy(self, a, b, left):
        try:
            while data := a.recv(16384):
                b.sendall(data if left is None else data[:left])
                if left is not None:
                    left -= len(data)
                    if left <= 0:
                        self.done += 1
                        if self.ends and not self.cuts:
                            self.listener.shutdown(socket.SHUT_RDWR)
                            self.listener.close()
                        break
        except OSError:
            pass
        for s in (a, b):
            try:
                s.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass


def survives(server):
    data = itm(400000)
    cutter = Cutter(server.address, [PROXY_AT, 3 * PROXY_AT, 20000])
    lake = tracelake.connect(cutter.url)
    with lake.push('py', SETUP, 'cut') as push:
        for at in range(0, len(data), 9000):
            push.write(data[at:at + 9000])
            push.flush()
    check(cutter.done == 3, 'cuts', cutter.done)
    check(b''.join(lake.raw('cut')) == data, 'bytes differ')
    cutter.listener.close()
    lake.close()


def changes_over(server):
    """One of two servers goes away: pushes, calls, items and raw bytes continue at the other one."""
    data = itm(200000)
    a = Cutter(server.address, [PROXY_AT], ends=True)
    lake = tracelake.connect(a.url + ',' + server.url)
    with lake.push('py', SETUP, 'over') as push:
        for at in range(0, len(data), 9000):
            push.write(data[at:at + 9000])
    check(a.done == 1, 'not cut')
    lake.close()
    lake = tracelake.connect(a.url + ',' + server.url)  # the first server is away
    lake.wait_sealed('over')
    whole = list(lake.items('over', 'cs.01'))
    lake.close()
    for what, wanted in ((lambda lake: b''.join(lake.raw('over')), data),
                         (lambda lake: b''.join(lake.raw('over', 7, 9000)), data[7:9000]),
                         (lambda lake: list(lake.items('over', 'cs.01')), whole)):
        for cut in PROXY_AT // 10, 300:  # inside the answer, and before its first message
            a = Cutter(server.address, [-cut], ends=True)
            lake = tracelake.connect(a.url + ',' + server.url)
            check(what(lake) == wanted, 'something else behind the change')
            check(a.done == 1, 'not cut')
            lake.close()


def ranges(lake, server):
    text = command(server, 'get', 'sim/cs.10', '--text').decode().splitlines()[1:]
    items = list(lake.items('sim', 'cs.10'))
    check([' '.join([i.kind, *i.fields]) for i in items] == text, 'items are not the flow text')
    insns = list(lake.instructions('sim', 'cs.10', 500, 700))
    lines = [line.split() for line in text if line[0] in 'IN'][500:700]
    check([i.at for i in insns] == list(range(500, 700)), 'positions')
    check([(i.pc, i.encoding) for i in insns] == [(int(w[1], 16), w[2]) for w in lines], 'insns')
    whole = list(lake.instructions('sim', 'cs.10'))
    check(whole[-1].time is not None and whole[-1].mode == 'el0.ns.a64', whole[-1])
    check([i[3:] for i in insns] == [(None if i.time == whole[500].time else i.time, *i[4:]) for i in whole[500:700]],
          'a range does not know what was said in front of it')
    columns = lake.columns('sim', 'cs.10', 500, 700)
    check(columns['pc'] == [i.pc for i in insns] and list(columns) == list(insns[0]._fields), 'columns')
    arrays(lake, whole)
    try:
        lake.trace('nothing')
        raise AssertionError('there is no such trace')
    except tracelake.Error as e:
        check(e.code == 'NOT_FOUND', e.code)
    check({t.id for t in lake.traces()} >= {'sim', 'itm'}, 'traces')
    lake.call('Catalog', 'SetLabels', trace='sim', labels={'team': 'atlas'})
    check(lake.trace('sim').labels['team'] == 'atlas', 'labels')


def arrays(lake, insns):
    """numpy's arrays have what the instructions one by one have."""
    try:
        import numpy
    except ImportError:
        return
    kinds = {'position': 'u8', 'time': 'u8', 'pc': 'u8', 'opcode': 'u4', 'size': 'u1'}
    got = lake.arrays('sim', 'cs.10', columns=kinds)
    check({name: a.dtype for name, a in got.items()} == {name: numpy.dtype(k) for name, k in kinds.items()}, got)
    check(got['position'].tolist() == [i.at for i in insns] and got['pc'].tolist() == [i.pc for i in insns], 'arrays')
    check(got['size'].tolist() == [len(i.encoding or '') // 2 for i in insns], 'sizes')
    check(got['opcode'].tolist() == [int(i.encoding or '0', 16) for i in insns], 'opcodes')
    times = lake.sql('sim', "SELECT time FROM insn WHERE stream = 'cs.10' ORDER BY position", rows=10000000)
    check(got['time'].tolist() == list(times.columns[0]) and len(insns) > 1000, 'times')
    some = lake.arrays('sim', 'cs.10', 500, 700)
    check(list(some) == ['pc', 'opcode', 'size'] and some['pc'].tolist() == got['pc'][500:700].tolist(), some)
    begin, end = int(got['time'][900]), int(got['time'][-1]) + 1
    some = set(lake.arrays('sim', 'cs.10', begin, end, unit='time', columns=['position'])['position'].tolist())
    wanted = set(numpy.flatnonzero((got['time'] >= begin) & (got['time'] < end)).tolist())
    check(wanted <= some and len(some) <= len(wanted) + 1, len(wanted), len(some))
    check(len(lake.arrays('sim', 'cs.10', 10, 10 ** 12)['pc']) == len(insns) - 10, 'up to the end')
    for columns in (['pc', 'pc'], ['name']):
        try:
            lake.arrays('sim', 'cs.10', columns=columns)
            raise AssertionError('there are no such columns')
        except tracelake.Error as e:
            check(e.code == 'INVALID_ARGUMENT' and 'opcode' in str(e), e)


def regions(lake, server):
    """Ranges selected by events in them, regions, and the files of both."""
    for form, args in (('stf', ['-o', '-']), ('text', ['--text']), ('json', ['--json'])):
        got = b''.join(lake.fetch('sim', 'cs.10', 500, 900, form=form))
        check(got == command(server, 'get', 'sim/cs.10', '--insn', '500:900', *args), form, 'differs')
    path = os.path.join(server.dir, 'range.zstf')
    command(server, 'get', 'sim/cs.10', '--insn', '500:900', '-o', path)
    with open(path, 'rb') as f:
        check(b''.join(lake.fetch('sim', 'cs.10', 500, 900)) == f.read(), 'zstf differs')
    check(b''.join(lake.fetch('sim', 'cs.10', form='text', mode='u')) ==
          command(server, 'get', 'sim/cs.10', '--text', '--mode', 'u'), 'user mode differs')
    kept = [i.at for i in lake.items('sim', 'cs.10', mode='u') if i.kind == 'I']
    check(kept and kept == [i.at for i in lake.follow('sim', 'cs.10', 0, mode='u') if i.kind == 'I'], len(kept))
    for what, args in (({'event': 'exception'}, ['--event', 'exception']), ({'call': 'mac_block'}, ['--call', 'mac_block']),
                       ({'pc': (0x400000, 0x400040)}, ['--pc', '400000:400040'])):
        told = json.loads(command(server, 'find', 'sim/cs.10', *args, '--limit', '0', '--json'))
        hits = [(h.at.insn, h.pc, h.text) for h in lake.find('sim', 'cs.10', **what)]
        check(hits and not told['more'], what, len(hits))
        check(hits == [(h['insn'], int(h['pc'], 16), h['text']) for h in told['hits']], what, 'hits differ')
    third = next(itertools.islice(lake.find('sim', 'cs.10', call='mac_block'), 2, None)).at.insn
    check(b''.join(lake.fetch('sim', 'cs.10', third, third + 50, form='text')) == command(
        server, 'get', 'sim/cs.10', '--from-symbol', 'mac_block', '--occurrence', '3', '--count', '50', '--text'),
        'the third call')
    told = json.loads(command(server, 'simpoints', 'sim/cs.10', '--interval', '500', '--max', '4', '--save', 'py',
                              '--json'))['regions']
    answer = lake.sql('sim', "SELECT stream, count(*) AS n, NULL AS empty, 0.5 AS half FROM insn GROUP BY stream")
    insns = {s.name: s.insns for s in lake.trace('sim').streams if s.insns}
    check({row[0]: row[1] for row in answer.rows()} == insns and answer.names == ['stream', 'n', 'empty', 'half'], insns)
    check(answer.columns[1].typecode == 'q' and set(answer.columns[2]) == {None} and answer.columns[3][0] == 0.5, 'kinds')
    many = lake.sql('sim', 'SELECT position FROM insn', rows=5000)
    check(len(many) == 5000 and many.truncated and many.columns[0].typecode == 'q', len(many))
    mine = lake.simpoints('sim', 'cs.10', interval=500, most=4)
    check(told and [{'warm_up': 0, **region} for region in mine] == told, 'other regions', mine, told)
    check(b''.join(lake.fetch('sim', region='py.1', form='stf')) == command(server, 'get', 'sim', '--region', 'py.1', '-o', '-'),
          'another region')


def images(lake, server):
    """Images are listed as the command lists them; those in use stay."""
    told = json.loads(command(server, 'images', '--json'))
    check(told and [(i.sha256, i.name, i.size) for i in lake.images()] == [(i['sha256'], i['name'], i['size']) for i in told], told)
    for name, code in ((told[0]['sha256'], 'PERMISSION_DENIED'), ('sha256:' + '0' * 64, 'NOT_FOUND')):
        try:
            lake.remove_image(name)
            raise AssertionError('removed ' + name)
        except tracelake.Error as e:
            check(e.code == code, name, e.code, e)
    path = os.path.join(server.dir, 'spare.bin')
    with open(path, 'wb') as f:
        f.write(b'no trace refers to this')
    command(server, 'images', path)
    check(lake.remove_image('spare.bin').name == 'spare.bin', 'by name')
    check(len(lake.images()) == len(told), 'one is gone')


def answers(lake):
    """Answers to questions as tables of pyarrow and pandas, checked with stand-ins; without these a clear error."""
    arrow, pandas = types.ModuleType('pyarrow'), types.ModuleType('pandas')
    arrow.int64, arrow.float64, arrow.py_buffer = (lambda: 'int64'), (lambda: 'float64'), memoryview
    arrow.Array = types.SimpleNamespace(from_buffers=lambda kind, n, buffers: (kind, n, buffers[0], bytes(buffers[1])))
    arrow.array = list
    arrow.Table = types.SimpleNamespace(from_arrays=lambda columns, names: dict(zip(names, columns)))
    pandas.DataFrame = dict
    answer = lake.sql('sim', "SELECT position, position * 0.5 AS half, 'x' AS word, NULL AS none FROM insn "
                             "WHERE stream = 'cs.10' AND position < 100")
    numpy = importlib.util.find_spec('numpy')  # which pandas brings
    before = {name: sys.modules.get(name) for name in ('pyarrow', 'pandas')}
    try:
        sys.modules.update(pyarrow=arrow, pandas=pandas)
        table, frame = answer.arrow(), answer.pandas() if numpy else None
        sys.modules.update(pyarrow=None, pandas=None)
        for form, wanted in ((answer.arrow, 'pip install pyarrow'), (answer.pandas, 'python3-pandas')):
            try:
                form()
                raise AssertionError('a module that is not there')
            except ImportError as e:
                check(wanted in str(e), e)
    finally:
        for name, module in before.items():
            sys.modules.pop(name)
            if module:
                sys.modules[name] = module
    check(table['position'] == ('int64', 100, None, b''.join(i.to_bytes(8, sys.byteorder) for i in range(100))), table)
    check(table['half'][:2] == ('float64', 100) and table['word'] == ['x'] * 100 and table['none'] == [None] * 100, table)
    if not numpy:
        print('skipped: numpy is not installed')
        return
    check(frame['position'].tolist() == list(range(100)) and frame['word'].tolist() == ['x'] * 100, frame)


def tables(lake):
    """What is passed to pyarrow and pandas, checked with stand-ins that record it."""
    arrow = types.ModuleType('pyarrow')
    arrow.string, arrow.uint64 = (lambda: 'string'), (lambda: 'uint64')
    arrow.array, arrow.table = (lambda values, kind: (kind, values)), (lambda columns: columns)
    before = sys.modules.get('pyarrow')
    sys.modules['pyarrow'] = arrow
    try:
        table = lake.to_arrow('sim', 'cs.10', 0, 100)
    finally:
        sys.modules.pop('pyarrow')
        if before:
            sys.modules['pyarrow'] = before
    check(table['at'] == ('uint64', list(range(100))) and table['encoding'][0] == 'string', table)
    check(len(table['pc'][1]) == 100, 'rows')
    try:
        import pandas
    except ImportError:
        print('skipped: pandas is not installed')
        return
    frame = lake.to_pandas('sim', 'cs.10', 500, 700)
    columns = lake.columns('sim', 'cs.10', 500, 700)
    check(list(frame.index) == columns.pop('at') and list(frame.columns) == list(columns), frame.head())
    for name, values in columns.items():
        check([None if pandas.isna(v) else v for v in frame[name]] == values, name, frame[name].head())
    check((frame.pc.dtype, frame.time.dtype) == ('uint64', 'UInt64'), frame.dtypes)


def follows(lake, server):
    """A live stream during a push, while the server is killed and restarted."""
    data = itm(40000)
    push = lake.push('py', SETUP, 'live')
    push.write(data[:20000])
    push.flush()
    got, enough = [], threading.Event()

    def follow():
        for item in lake.follow('live', 'cs.01', 0):
            got.append(item)
            if len(got) > 5000:
                enough.set()
        enough.set()
    thread = threading.Thread(target=follow)
    thread.start()
    check(enough.wait(240), 'nothing is followed')
    server.kill()
    server.start()
    push.write(data[20000:])
    push.finish()
    push.close()
    thread.join(60)
    check(not thread.is_alive(), 'following does not end')
    whole = list(lake.items('live', 'cs.01'))
    part = next((i for i, (a, b) in enumerate(zip(got, whole)) if a != b), min(len(got), len(whole)))
    check(got == whole, 'followed', len(got), 'of', len(whole), 'at', part, got[part - 2:part + 2],
          whole[part - 2:part + 2])


def over_tls(server):
    fingerprint = next(line for line in server.lines if 'SHA-256' in line).split()[-1]
    with tracelake.connect(server.tls_url, fingerprint=fingerprint) as lake:
        check(lake.trace('sim').id == 'sim', 'over TLS')
    with tracelake.connect(server.tls_url, cafile=server.cert) as lake:
        check(lake.trace('sim').id == 'sim', 'over TLS with its certificate')
    try:
        tracelake.connect(server.tls_url, fingerprint='00' * 32)
        raise AssertionError('another certificate was accepted')
    except tracelake.Error as e:
        check(e.code == 'UNAUTHENTICATED', e)


def run(first):
    """A server that keeps its ports, so that it can be killed and restarted."""
    ports = [str(free_port()), str(free_port())]
    first.stop()
    server = Server(os.path.dirname(first.command), first.dir, '--listen', '127.0.0.1:' + ports[0],
                    '--listen-tls', '127.0.0.1:' + ports[1])
    server.start()
    try:
        server.url, server.tls_url = ('http://127.0.0.1:' + ports[0], 'https://localhost:' + ports[1])
        lake = tracelake.connect(server.url)
        sim.push(server)
        lake.wait_sealed('sim')
        pushes(lake, server)
        leaves_open(lake)
        dies(lake, server)
        survives(server)
        changes_over(server)
        ranges(lake, server)
        regions(lake, server)
        tables(lake)
        answers(lake)
        images(lake, server)
        over_tls(server)
        follows(lake, server)
        lake.close()
        server.stop()
    finally:
        server.kill()
    first.stop = lambda: None
