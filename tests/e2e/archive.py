#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Captures as an archive: identified by content, found by labels, copied between servers."""
import hashlib
import json
import os
import socket
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import lab as labs  # noqa: E402
from e2e import simulated, wait_offset, wait_sealed  # noqa: E402
from lab import Lab, check, free_port, wait  # noqa: E402

TESTS = {}


def test(function):
    TESTS[function.__name__] = function
    return function


def rows(lab, *args):
    return json.loads(lab.run('ls', '--json', *args).text())


def wait_content(lab, trace):
    """The trace's row, once its content hash is known."""
    def known():
        row = rows(lab, trace)[0]
        return row if row['content'] and row['state'] == 'sealed' else None
    return wait('the content of ' + trace, known, lambda: rows(lab, trace))


def push(lab, trace):
    subprocess.run([lab.rig, '--kind', 'etm', '--server', lab.url, '--trace', trace, '--bytes',
                    '60000', '--rate', '100000000'], stdout=subprocess.PIPE, check=True, timeout=240)
    lab.run('label', trace, 'workload=gcc', 'größe=klein')
    row = wait_content(lab, trace)
    raw = lab.run('raw', trace, '-').out
    check(row['content'] == 'sha256:' + hashlib.sha256(raw).hexdigest(), row)
    return row, raw


@test
def copied(here):
    """By content, by labels, and from server to server."""
    here.start()
    there = Lab(here.build)
    try:
        there.start()
        copy(here, there)
    finally:
        there.close()


def copy(here, there):
    row, raw = push(here, 'first')
    text = here.run('get', 'first/cs.10', '--text').out
    # A content hash can be used wherever a trace is named.
    check(rows(here, row['content'])[0]['id'] == 'first')
    check(here.run('get', row['content'] + '/cs.10', '--text').out == text)
    check(here.run('raw', row['content'], '-').out == raw)
    unknown = 'sha256:' + '0' * 64
    check(here.run('show', unknown, status=3).err, 'a content that nobody has')
    check([r['id'] for r in rows(here, '--label', 'workload=gcc')] == ['first'])
    check(rows(here, '--label', 'workload=perl') == [])

    here.run('cp', 'first', '--to', there.url)
    copied = wait_content(there, 'first')
    for key in ('content', 'labels', 'raw_bytes', 'rig', 'format'):
        check(copied[key] == row[key], key, copied[key], row[key])
    check([(s['name'], s['insns']) for s in copied['streams']] ==
          [(s['name'], s['insns']) for s in row['streams']], copied)
    check(there.run('get', 'first/cs.10', '--text').out == text)  # so its image was copied too
    # Copying again changes nothing; the same content under another name is another trace.
    here.run('cp', 'first', '--to', there.url)
    here.run('cp', row['content'], '--to', there.url, '--as', 'second')
    check(wait_content(there, 'second')['content'] == row['content'])
    check(len(rows(there)) == 2)
    # Still known after a restart.
    there.kill()
    there.start()
    check(rows(there, 'second')[0]['content'] == row['content'])
    here.run('cp', 'nobody', '--to', there.url, status=3)
    here.run('cp', 'first', status=2)
    here.run('cp', 'first', '--to', 'http://127.0.0.1:1', '--timeout', '1', status=3)


@test
def copied_in_pieces(here):
    """An interrupted copy is continued; another capture of that name is not mistaken for its beginning."""
    here.start()
    there = Lab(here.build)
    try:
        there.start()
        row, raw = push(here, 'first')
        config, image = here.path('first.ini'), here.path('images')
        here.run('raw', 'first', '-o', here.path('first.bin'), '--config', config, '--images', image)
        image, = (os.path.join(image, name) for name in os.listdir(image))
        how = ['push', '--format', row['format'], '--rig', row['rig'], '--config', config, '--image', image]
        here.run(*how, '--trace', 'again', here.path('first.bin'))
        row = wait_content(here, 'again')
        for trace, begin in (('good', raw[:20000]), ('other', b'\x5a' + raw[1:20000]),
                             ('whole', raw[:-1] + b'\x5a')):
            cut = there.spawn(*how, '--trace', trace, '-', stdin=subprocess.PIPE)
            cut.stdin.write(begin)
            cut.stdin.flush()
            wait_offset(there, trace, len(begin))
            cut.kill()
            cut.wait()
        here.run('cp', 'again', '--to', there.url, '--as', 'good')
        check(wait_content(there, 'good')['content'] == row['content'])
        check(there.run('raw', row['content'], '-').out == raw, 'other bytes')
        check(there.run('get', row['content'] + '/cs.10', '--text').out ==
              here.run('get', 'first/cs.10', '--text').out, 'another text')
        for trace in ('other', 'whole'):
            before = there.offset(trace)
            here.fails(1, 'another capture of the name ' + trace, 'cp', 'again', '--to', there.url, '--as', trace)
            check(there.offset(trace) == before, 'it goes on with other bytes')
    finally:
        there.close()


@test
def damaged_image(lab):
    """The command that a damaged image asks for mends it, whether or not a read has found the damage."""
    file, content = lab.path('program'), os.urandom(100_000)
    with open(file, 'wb') as f:
        f.write(content)
    lab.start()
    stored = os.path.join(lab.data, 'objects', 'i', hashlib.sha256(content).hexdigest())
    for at in (0, 50_000, 99_999):
        lab.run('images', file)
        with open(stored, 'r+b') as f:
            f.seek(at)
            f.write(bytes([content[at] ^ 1]))
        if at:
            lab.run('verify', '--all', status=1)
        lab.run('images', file)
        with open(stored, 'rb') as f:
            check(f.read() == content, 'the image is still damaged at', at)
        lab.run('verify', '--all')


def forms(lab, trace):
    """The forms in which the trace's shards are stored, by suffix of the file names."""
    return {os.path.splitext(name)[1]
            for _, _, names in os.walk(lab.path('data/objects/t/' + trace)) for name in names}


@test
def materialised(here):
    """Virtual shards give the same as stored ones, and stored ones become virtual."""
    simulated(here, 60000)
    wait_sealed(here, 'sim')
    here.run('push', '--shards', 'virtual', '--format', 'tpiu,sync=fsync', '--config',
             here.path('sim.ini'), '--image', here.path('demo.elf'), '--trace', 'made',
             here.path('raw'))
    check('.zstf' in forms(here, 'sim') and '.zstf' not in forms(here, 'made'), forms(here, 'made'))
    text = here.run('get', 'sim/cs.10', '--text').out
    check(here.run('get', 'made/cs.10', '--text').out == text, 'virtual shards say something else')
    here.run('materialise', 'made')
    check('.zstf' in forms(here, 'made'), forms(here, 'made'))
    check(here.run('get', 'made/cs.10', '--text').out == text, 'it says something else then')
    here.run('materialise', 'made', 'none', status=3)


@test
def listened_shards(here):
    """A rig that only writes to a socket gets the kind of shards configured for its listener."""
    simulated(here, 60000)
    wait_sealed(here, 'sim')
    here.stop()
    ports = {kind: free_port() for kind in ('virtual', 'stored')}
    with open(here.path('raw'), 'rb') as f:
        raw = f.read()
    here.start('--shards', 'virtual', *(word for kind, port in ports.items() for word in (
        '--raw', '127.0.0.1:%d,format=tpiu,sync=fsync,rig=%s,shards=%s,config=%s' % (
            port, kind, kind, here.path('sim.ini')))))
    for kind, port in ports.items():
        with socket.create_connection(('127.0.0.1', port)) as s:
            s.sendall(raw)
        trace, = wait('a trace of ' + kind, lambda: [t['id'] for t in rows(here) if t['rig'] == kind])
        wait_sealed(here, trace)
        check(('.zstf' if kind == 'stored' else '.idx') in forms(here, trace) and
              ('.idx' if kind == 'stored' else '.zstf') not in forms(here, trace), kind, forms(here, trace))


def store_copy(lab, status, *args):
    done = subprocess.run([lab.tracelake, 'store', 'copy', *args], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, timeout=labs.TIMEOUT)
    check(done.returncode == status, done.stdout.decode(), done.stderr.decode())
    return done.stdout.decode() + done.stderr.decode()


def moved(lab, there):
    """A lake is moved from its folder to `there` while a rig pushes; the last copy is made after
    the push has ended."""
    simulated(lab, 20000)
    with open(lab.path('raw'), 'rb') as f:
        raw = f.read()
    how = ['--format', 'tpiu,sync=fsync', '--config', lab.path('sim.ini'), '--image',
           lab.path('demo.elf')]
    lab.run('push', *how, '--shards', 'virtual', '--trace', 'virtual', lab.path('raw'))
    wait_content(lab, 'virtual')
    wait_content(lab, 'sim')
    live = lab.spawn('push', *how, '--trace', 'live', '-', stdin=subprocess.PIPE)
    live.stdin.write(raw[:10000])
    live.stdin.flush()
    wait_offset(lab, 'live', 10000)
    said = store_copy(lab, 1, lab.data, there)
    check('sim: ' in said and 'virtual: ' in said and 'live: it is being pushed' in said, said)
    live.stdin.write(raw[10000:])
    live.stdin.close()
    check(live.wait(240) == 0, live.stderr.read())
    wait_sealed(lab, 'live')
    said = store_copy(lab, 0, lab.data, there)
    check('live: ' in said and '1 copied' in said and '2 there before' in said, said)
    texts = [lab.run('get', t + '/cs.10', '--text').out for t in ('sim', 'virtual', 'live')]
    check(texts[0] == texts[1] == texts[2] and len(texts[0]) > 10000, [len(t) for t in texts])
    lab.stop()
    return texts[0]


def check_moved(lab, text):
    check({t['id'] for t in rows(lab)} == {'sim', 'virtual', 'live'}, rows(lab))
    for trace in ('sim', 'virtual', 'live'):
        check(lab.run('get', trace + '/cs.10', '--text').out == text, 'something else in', trace)
    lab.run('verify', '--all')
    said = store_copy(lab, 1, lab.path('nothing'), lab.data)
    check('no data folder' in said, said)


@test
def store_is_moved(lab):
    there = lab.path('there')
    text = moved(lab, there)
    lab.data = there
    lab.start()
    said = store_copy(lab, 3, lab.path('data'), there)
    check('a server works with' in said, said)
    check_moved(lab, text)
    lab.stop()


if __name__ == '__main__':
    labs.main(TESTS)
