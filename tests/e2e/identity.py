#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A capture is its bytes, not its name and length. usage: identity.py BUILD [NAME…]"""

import json
import os
import random
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from lab import Skip, check, main, wait  # noqa: E402
from e2e import snapshot, wait_offset, wait_sealed  # noqa: E402

TESTS = {}
SIZE = 300000
OTHER = r'another capture; push this one under another name \(--trace NEW\)'


def test(function):
    TESTS[function.__name__] = function
    return function


def made(seed, n=SIZE):
    return random.Random(seed).randbytes(n)


def write(lab, name, data):
    with open(lab.path(name), 'wb') as f:
        f.write(data)
    return lab.path(name)


def args(trace, *more, rig='rig'):
    return ['push', '--format', 'etm4', '--rig', rig, '--trace', trace, '--no-wait', *more]


def stored(lab, trace):
    return lab.run('raw', trace, '-').out


def hashed(lab, trace):
    wait('its hash is known', lambda: json.loads(lab.run('ls', '--json', trace).out)[0]['content'])


def leave_part(lab, trace, data):
    """Push the begin of a capture that does not end: its push is killed."""
    push = lab.spawn(*args(trace), '-', stdin=subprocess.PIPE)
    push.stdin.write(data)
    push.stdin.flush()
    wait_offset(lab, trace, len(data))
    push.kill()
    push.wait()


@test
def other_bytes_of_equal_length(lab):
    """Refused, whether the first capture has been hashed or not, from a file, a pipe, a spool, another rig and after
    a restart; the bytes that are stored stay. The same bytes are the same capture everywhere."""
    lab.start()
    a, b = made(1), made(2)
    late = bytearray(a)
    late[-1] ^= 1
    one, two = write(lab, 'a', a), write(lab, 'b', b)
    last = write(lab, 'late', bytes(late))

    def is_told():
        for other in (two, last):
            lab.fails(3, OTHER, *args('x'), other)
        lab.fails(3, OTHER, *args('x'), '-', stdin=b)
        lab.fails(3, OTHER, *args('x', rig='elsewhere'), two)
        lab.fails(3, OTHER, *args('x', '--spool', lab.path('spool') + ',8M'), '-', stdin=b)
        check(os.path.isdir(lab.path('spool/x')), 'the spool has lost them')
        os.rename(lab.path('spool/x'), lab.path('spool/y'))
        lab.run(*args('y', '--spool', lab.path('spool') + ',8M'), '-', stdin=b)
        check(stored(lab, 'y') == b, 'the spool under its new name')
        lab.run('rm', 'y')
        for same in ((one,), ('-',), ('--spool', lab.path('spool') + ',8M', '-')):
            done = lab.run(*args('x', *same[:-1]), same[-1], stdin=a)
            check(b'has all of it already' in done.err, done)
        done = lab.run(*args('x', rig='elsewhere'), one)
        check(b'has all of it already' in done.err, done)
        check(stored(lab, 'x') == a, 'bytes differ')

    lab.run(*args('x'), one)
    is_told()
    hashed(lab, 'x')
    is_told()
    lab.kill()
    lab.start()
    is_told()
    lab.run(*args('new'), two)
    check(stored(lab, 'new') == b, 'bytes differ')


@test
def shorter_and_longer(lab):
    """A part of a complete capture, and a capture that begins with it, are other captures."""
    lab.start()
    a = made(1)
    whole, short = write(lab, 'a', a), write(lab, 'short', a[:-1])
    long, other = write(lab, 'long', a + b'x'), write(lab, 'other', made(2)[:-1])
    lab.run(*args('x'), whole)
    lab.fails(3, 'fewer.*' + OTHER, *args('x'), short)
    lab.fails(3, 'more', *args('x'), long)
    lab.fails(3, 'fewer', *args('x'), other)
    lab.fails(3, 'more', *args('x'), '-', stdin=a + made(3))
    check(stored(lab, 'x') == a, 'bytes differ')


@test
def other_begin_is_not_continued(lab):
    """The begin of another capture is not continued: neither in the server that took it nor in the next one, nor
    from compressed bytes."""
    lab.start()
    a, b = made(1), made(2)
    mixed = a[:SIZE // 2] + b[SIZE // 2:]
    one, two, half = write(lab, 'a', a), write(lab, 'b', b), write(lab, 'mixed', mixed)
    short = write(lab, 'short', a[:1000])
    leave_part(lab, 'x', a[:SIZE // 2])
    for restart in (False, True):
        if restart:
            lab.kill()
            lab.start()
        lab.fails(3, OTHER, *args('x'), two)
        lab.fails(3, 'fewer.*' + OTHER, *args('x'), short)
        lab.fails(3, OTHER, *args('x'), '-', stdin=b)
        lab.fails(3, OTHER, *args('x', rig='elsewhere'), two)
        row = json.loads(lab.run('ls', '--json', 'x').out)[0]
        check(row['state'] == 'live' and row['raw_bytes'] == SIZE // 2, row)
    done = lab.run(*args('x'), half)  # it begins the same
    check(b'going on at byte %d' % (SIZE // 2) in done.err, done)
    check(stored(lab, 'x') == mixed, 'bytes differ')
    lab.fails(3, OTHER, *args('x'), one)


@test
def live_push_goes_on(lab):
    """Another capture under the name of one that is being pushed is refused, and the push is not disturbed."""
    lab.start()
    a, b = made(1), made(2)
    push = lab.spawn(*args('x'), '-', stdin=subprocess.PIPE)
    push.stdin.write(a[:1000])
    push.stdin.flush()
    wait_offset(lab, 'x', 1000)
    lab.fails(3, OTHER, *args('x'), write(lab, 'b', b))
    push.stdin.write(a[1000:])
    push.stdin.close()
    err = push.stderr.read()
    check(push.wait(240) == 0 and err == b'', err)
    check(stored(lab, 'x') == a, 'bytes differ')


@test
def other_setup(lab):
    """The same bytes with another setup: the server has not taken that, and says so."""
    lab.start()
    one = write(lab, 'a', made(1))
    lab.run(*args('x'), one)
    lab.fails(3, 'another setup.*redecode', 'push', '--format', 'pt', '--rig', 'rig', '--trace', 'x', '--no-wait', one)
    lab.run(*args('x'), one)


@test
def tokens_that_only_push(lab):
    """A token that must not read gets the same answers."""
    with open(lab.path('tokens'), 'w') as f:
        f.write('pushing-and-nothing-else push\n')
    os.chmod(lab.path('tokens'), 0o600)
    lab.start('--tokens', lab.path('tokens'))
    with open(lab.path('token'), 'w') as f:
        f.write('pushing-and-nothing-else\n')
    os.environ['TRACELAKE_TOKEN'] = lab.path('token')
    try:
        a, b = made(1), made(2)
        one, two = write(lab, 'a', a), write(lab, 'b', b)
        lab.run(*args('x'), one)
        lab.fails(3, OTHER, *args('x'), two)
        done = lab.run(*args('x'), one)
        check(b'has all of it already' in done.err, done)
        lab.fails(3, 'more', *args('x'), write(lab, 'long', a + b))
    finally:
        del os.environ['TRACELAKE_TOKEN']


@test
def removed_raw_bytes(lab):
    """What retention has removed is still known by its hash."""
    lab.start()
    a, b = made(1), made(2)
    one, two = write(lab, 'a', a), write(lab, 'b', b)
    lab.run(*args('x'), one)
    wait_sealed(lab, 'x')
    hashed(lab, 'x')
    lab.run('retain', '--raw', '1K')
    wait('its raw bytes are gone', lambda: json.loads(lab.run('ls', '--json', 'x').out)[0]['raw_removed'])
    lab.fails(3, OTHER, *args('x'), two)
    done = lab.run(*args('x'), one)
    check(b'has all of it already' in done.err, done)


@test
def several_buffers(lab):
    """Each buffer of a snapshot is compared on its own."""
    folder = snapshot('juno_r1_1')
    lab.start()
    lab.run('push', '--snapshot', folder)
    done = lab.run('push', '--snapshot', folder)
    rows = json.loads(lab.run('ls', '--json').out)
    check(done.err.count(b'has all of it already') == len(rows) >= 1, done)
    copy = lab.path('copy')
    subprocess.run(['cp', '-rL', folder, copy], check=True)
    subprocess.run(['chmod', '-R', 'u+w', copy], check=True)
    with open(os.path.join(copy, 'cstrace.bin'), 'r+b') as f:
        f.seek(-100, os.SEEK_END)
        f.write(b'0123456789')
    os.rename(copy, lab.path('juno_r1_1'))  # it names the traces
    told = lab.fails(3, OTHER, 'push', '--snapshot', lab.path('juno_r1_1'))
    check(told.err.count(b'another capture') == 1 and told.err.count(b'has all of it') == len(rows) - 1, told)


def sends_once(lab, lake, setup, a, b):
    """A program that sends its file and is run again sends the rest."""
    import tracelake
    first = lake.push('rig', setup, 'again')
    first.write(a[:1700])
    first.flush()
    first.close()
    for source in (b, b[:100], a):
        with open(lab.path('source'), 'wb') as f:
            f.write(source)
        push = lake.push('rig', setup, 'again')
        try:
            with open(lab.path('source'), 'rb') as f:
                push.send(f)
            push.finish()
            check(source is a, 'another capture')
        except tracelake.Error as e:
            check(source is not a and e.code == 'ALREADY_EXISTS', e)
        finally:
            push.close()
    check(stored(lab, 'again') == a, 'bytes differ')
    with lake.push('rig', setup, 'again') as push:
        push.send([a[:999], a[999:]])
    push = lake.push('rig', setup, 'again')
    try:
        push.send([a, b'more'])
        check(False, 'it is complete')
    except tracelake.Error as e:
        check(e.code == 'ALREADY_EXISTS', e)
    finally:
        push.close()
    sys.path.insert(0, os.path.join(lab.build, 'python', 'tracelake'))
    import crc
    some = made(3, 70001)
    check(crc.plain(b'123456789') == 0xe3069283, 'CRC-32C')
    for n in (0, 5, 1023, 1024, 1025, 4096, 65537, 70001):
        check(crc.crc32c(some[n:], crc.crc32c(some[:n])) == crc.plain(some), 'in pieces', n)
        try:
            check(crc.by_numpy(some[:n], 7) == crc.plain(some[:n], 7), 'by numpy', n)
        except ImportError:
            pass


@test
def python_compares(lab):
    """The Python package compares what is before the place where it goes on."""
    sys.path.insert(0, os.path.join(lab.build, 'python'))
    try:
        import tracelake
    except ImportError as e:
        raise Skip(str(e)) from None
    lab.start()
    a, b = made(1, 5000), made(2, 5000)
    lake = tracelake.connect(lab.url)
    setup = '[trace]\nformat = etm4\n'
    first = lake.push('rig', setup, 'x')
    first.write(a[:3000])
    first.flush()
    first.close()

    def refused(data):
        push = lake.push('rig', setup, 'x')
        try:
            push.compare(data[:push.offset])
        except tracelake.Error as e:
            return e.code == 'ALREADY_EXISTS'
        finally:
            push.close()

    check(refused(b), 'another begin')
    with lake.push('rig', setup, 'x') as push:
        check(push.offset == 3000 and not push.complete, push.offset)
        push.compare(a[:3000])
        push.write(a[3000:])
    check(stored(lab, 'x') == a, 'bytes differ')
    check(refused(b), 'another capture')
    sends_once(lab, lake, setup, a, b)
    with lake.push('rig', setup, 'x') as push:
        push.compare(a)
        check(push.complete, 'it is complete')


if __name__ == '__main__':
    main(TESTS)
