# SPDX-License-Identifier: MIT
"""The C library: installed, with its flow, call stacks and assembly text called from here. usage: library.py BUILD
[NAME…]"""

import ctypes
import glob
import json
import os
import re
import subprocess
import sys
import urllib.request
from ctypes import POINTER, byref, c_bool, c_char, c_char_p, c_int, c_int64, c_size_t, c_uint32, c_uint64, c_void_p

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from lab import SOURCE, check, main, only, streams  # noqa: E402
from e2e import simulated, wait_offset, wait_sealed  # noqa: E402
from rigs import described  # noqa: E402

TESTS = {}
EOF = -4


def test(function):
    TESTS[function.__name__] = function
    return function


class Failure(ctypes.Structure):
    _fields_ = [('code', c_int), ('grpc', c_int), ('text', c_char * 512)]


class Range(ctypes.Structure):
    _fields_ = [('trace', c_char_p), ('stream', c_char_p), ('unit', c_int), ('begin', c_uint64),
                ('end', c_uint64)]


class Item(ctypes.Structure):
    _fields_ = [('at', c_uint64), ('pc', c_uint64), ('time', c_uint64), ('mode', c_char_p),
                ('context', c_char_p), ('vmid', c_char_p), ('text', c_char_p), ('kind', c_char),
                ('has_time', c_bool)]


class Library:
    """A connection through libtracelake.so."""

    def __init__(self, lab):
        self.lib = ctypes.CDLL(os.path.join(lab.build, 'libtracelake.so'))
        self.why, self.lake = Failure(), c_void_p()
        for name in ('flow_next', 'flow_close', 'close', 'descriptor'):
            getattr(self.lib, 'tracelake_' + name).argtypes = None
        self('connect', byref(self.lake), lab.url.encode(), None, byref(self.why))

    def __call__(self, name, *args, ends=False):
        result = getattr(self.lib, 'tracelake_' + name)(*args)
        check(result == 0 or (ends and result == EOF), name, result, self.why.text.decode())
        return result

    def items(self, flow):
        item = Item()
        while self('flow_next', flow, byref(item), byref(self.why), ends=True) == 0:
            yield item
        self.lib.tracelake_flow_close(flow)

    def text(self, name, *args):
        """A JSON answer."""
        out = c_char_p()
        self(name, self.lake, *args, byref(out), byref(self.why))
        return json.loads(out.value)


def line(item):
    return b' '.join([item.kind, item.text]) if item.text else item.kind


@test
def library_flow(lab):
    """Items with time, mode and context; call stacks and assembly text; a descriptor to poll."""
    simulated(lab, 3000)
    wait_sealed(lab, 'sim')
    lib = Library(lab)
    flow = c_void_p()
    lib('flow_open', byref(flow), lib.lake,
        byref(Range(b'sim', b'cs.10', 0, 0, 2**64 - 1)), byref(lib.why))
    text = lab.run('get', 'sim/cs.10', '--text').out.splitlines()[1:]
    lines, modes, times, mode, time = [], [], [], b'', 0
    for item in lib.items(flow):
        lines.append(line(item))
        modes.append(item.mode)
        times.append(item.time)
        if item.kind in b'IN':
            check(item.pc == int(item.text.split()[0], 16), 'pc', item.pc)
    check(lines == text, 'the items are not the flow text')
    for i, row in enumerate(text):
        word = row.split()
        mode = word[1] if word[0] == b'M' else mode
        time = int(word[1]) if word[0] == b'T' else time
        check((modes[i], times[i]) == (mode, time), 'what is in force at', i, row)
    lib.lib.tracelake_descriptor.argtypes = [c_void_p, POINTER(c_bool)]
    check(lib.lib.tracelake_descriptor(lib.lake, None) > 2, 'no descriptor')
    # The equivalents of HTTP requests.
    slices = lib.text('slices', byref(Range(b'sim', b'cs.10', 0, 0, 5000)), c_uint32(512))
    check(any(s.get('name') == 'sensor_main' for s in slices['slices']), slices)
    rows = lib.text('disassembly', b'sim', b'cs.10', c_uint64(100), c_uint32(5))
    check(len(rows) == 5, rows)
    source = lib.text('source', b'sim', b'cs.10', c_uint64(100), c_uint32(0))
    check('file' in source or 'why' in source, source)
    log = lib.text('log', byref(Range(b'sim', b'cs.10', 0, 0, 5000)), c_uint32(3), c_bool(False))
    check(log == {'more': False, 'entries': []}, log)
    notes_of(lib)
    lib.lib.tracelake_close(lib.lake)


class Note(ctypes.Structure):
    _fields_ = [('id', c_uint64), ('stream', c_char_p), ('at', c_uint64), ('to', c_uint64), ('text', c_char_p),
                ('has_time', c_bool), ('time', c_uint64), ('time_to', c_uint64), ('created_ns', c_int64),
                ('updated_ns', c_int64)]


class Notes(ctypes.Structure):
    _fields_ = [('notes', POINTER(Note)), ('n', c_size_t)]


def notes_of(lib):
    """Written, read, replaced, removed."""
    ident, notes = c_uint64(), POINTER(Notes)()
    for text in (b'here it hangs', b'no, it does not'):
        note = Note(id=ident.value, stream=b'cs.10', at=100, to=120, text=text)
        lib('put_note', lib.lake, b'sim', byref(note), byref(ident), byref(lib.why))
        lib('list_notes', lib.lake, b'sim', byref(notes), byref(lib.why))
        check(notes.contents.n == 1, notes.contents.n)
        got = notes.contents.notes[0]
        check((got.id, got.stream, got.at, got.to, got.text) == (ident.value, b'cs.10', 100, 120, text), text)
        check(got.created_ns > 0, got.created_ns)
        lib.lib.tracelake_notes_free(notes)
    lib('delete_note', lib.lake, b'sim', ident, byref(lib.why))
    lib('list_notes', lib.lake, b'sim', byref(notes), byref(lib.why))
    check(notes.contents.n == 0, notes.contents.n)
    lib.lib.tracelake_notes_free(notes)


@test
def library_follow(lab):
    """A live stream through the library while the server is killed: everything arrives exactly once."""
    simulated(lab, 8000)
    with open(lab.path('raw'), 'rb') as f:
        raw = f.read()
    push = lab.spawn('push', *described(lab), '--trace', 'live', '-', stdin=subprocess.PIPE)
    push.stdin.write(raw[:4000])
    push.stdin.flush()
    wait_offset(lab, 'live', 4000)
    lib = Library(lab)
    flow = c_void_p()
    lib('flow_follow', byref(flow), lib.lake, b'live', b'cs.10', c_uint64(0), byref(lib.why))
    lines = []
    for item in lib.items(flow):
        lines.append(line(item))
        if len(lines) == 3000:
            lab.kill()
            lab.start()
            push.stdin.write(raw[4000:])
            push.stdin.close()
    check(lines == lab.run('get', 'live/cs.10', '--text').out.splitlines()[1:], 'the items differ')
    lib.lib.tracelake_close(lib.lake)


@test
def installed_library(lab):
    """The example, built only against the installed library, shared and static."""
    simulated(lab, 40000)
    wait_sealed(lab, 'sim')
    prefix = lab.path('usr')
    for component in ('library', 'client'):
        done = subprocess.run(['cmake', '--install', lab.build, '--component', component,
                               '--prefix', prefix], stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        check(done.returncode == 0, done.stdout.decode())
    pc = glob.glob(prefix + '/**/tracelake.pc', recursive=True)
    check(pc, 'no tracelake.pc in', prefix)
    with open(pc[0]) as f:
        text = f.read()
    with open(pc[0], 'w') as f:
        f.write(re.sub(r'(?m)^prefix=.*$', 'prefix=' + prefix, text))
    library = os.path.dirname(os.path.dirname(pc[0]))
    env = dict(os.environ, PKG_CONFIG_PATH=os.path.dirname(pc[0]), LD_LIBRARY_PATH=library)
    sanitize = sanitizers(lab)
    source = os.path.join(SOURCE, 'client', 'examples', 'fetch_range.c')
    for language in (['-x', 'c', '-std=c99', '-pedantic'], ['-x', 'c++', '-std=c++11', '-pedantic']):
        done = subprocess.run(['cc', '-Wall', '-Wextra', '-Werror', '-fsyntax-only', *language,
                               os.path.join(prefix, 'include', 'tracelake.h')],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        known = b'cc1plus' not in done.stdout  # a C++ compiler may be missing
        check(done.returncode == 0 or not known, language, done.stdout.decode())
    whole = only(streams(lab.run('get', 'sim/cs.10', '--text').text())['cs.10'], 'I')
    di = subprocess.run([lab.rig, '--kind', 'di', '--server', lab.url, '--trace', 'di', '--rate',
                         '100000000', '--bytes', '50000'], stdout=subprocess.PIPE, timeout=240)
    check(di.returncode == 0, di)
    wait_sealed(lab, 'di')
    di = streams(lab.run('get', 'di', '--text').text())
    for kind in ('shared', 'static'):
        flags = subprocess.run(['pkg-config', '--cflags', '--libs', 'tracelake'] +
                               (['--static'] if kind == 'static' else []),
                               env=env, stdout=subprocess.PIPE, check=True).stdout.decode().split()
        if kind == 'static':
            flags = [os.path.join(library, 'libtracelake.a') if f == '-ltracelake' else f
                     for f in flags]
        program = build_example(lab, source, kind, flags + sanitize, env)
        rows = ['I ' + line.split(' ', 1)[1] for line in
                run_example(lab, program, env, 'sim/cs.10', 1000, 3000).splitlines()]
        check(rows == whole[1000:3000], kind, len(rows), rows[:2], whole[1000:1002])
        rows = [line.split() for line in run_example(lab, program, env, 'di/di.0.1').splitlines()]
        check([(row[1], row[2]) for row in rows] ==
              [tuple(line.split()[1:]) for line in only(di['di.0.1'], 'B')], kind, rows[:3])
        check(run_example(lab, program, env, 'di/di.0.2') == '', 'instructions in software trace')
        bad = subprocess.run([program, lab.url, 'sim', 'cs.77', '0', '1'], env=env,
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=240)
        check(bad.returncode == 1 and b'cs.77' in bad.stderr, kind, bad)
        look_around(lab, build_example(lab, source.replace('fetch_range', 'look_around'), kind + '-look',
                                       flags + sanitize, env), env)


def build_example(lab, source, name, flags, env):
    program = lab.path(name)
    done = subprocess.run(['cc', '-std=c11', '-Wall', '-Wextra', '-Werror', '-o', program, source] + flags,
                          env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    check(done.returncode == 0, name, done.stdout.decode())
    return program


def look_around(lab, program, env):
    """Answers as structs are those that HTTP gives as JSON."""
    def http(path):
        with urllib.request.urlopen(lab.url + '/api/v1/traces/' + path, timeout=240) as reply:
            return json.load(reply)

    def ran(*args):
        done = subprocess.run([program, lab.url, *args], env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=240)
        check(done.returncode == 0, done.stderr.decode())
        return done.stdout.decode().splitlines()

    told, of = ran('sim', 'cs.10', '5000'), 'sim/streams/cs.10/'
    call = http(of + 'call?at=5000')
    wanted = ['call %s %d %d %d' % (call['name'], call['from'], call['to'], call['self'])]
    if call['name']:
        wanted.append('longest %d %d' % (call['all']['longest'], call['all']['max']))
    profile = http(of + 'profile?to=5001')
    wanted += ['function %s %d of %d' % (f['name'], f['self'], profile['insns']) for f in profile['functions'][:5]]
    slices = http(of + 'slices?to=5001')['slices']
    wanted.append('deepest %d of %d calls' % (max(s['depth'] for s in slices), len(slices)))
    check(told == wanted and len(profile['functions']) > 2, told, wanted)
    stream = next(s['name'] for s in http('di')['streams'] if http('di/log?streams=' + s['name'])['streams'][s['name']]['entries'])
    entries = http('di/log?streams=%s&last=1&limit=3&to=501' % stream)['streams'][stream]['entries']
    lines = [line for line in ran('di', stream, '500') if line.startswith('log ')]
    check(lines == ['log %d %s' % (e['at'], e.get('text', e.get('value'))) for e in entries] and entries, lines, entries)


def run_example(lab, program, env, name, first=0, end=(1 << 64) - 1):
    ran = subprocess.run([program, lab.url, *name.split('/'), str(first), str(end)], env=env,
                         stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=240)
    check(ran.returncode == 0, program, ran.stderr.decode())
    return ran.stdout.decode()


def sanitizers(lab):
    with open(os.path.join(lab.build, 'CMakeCache.txt')) as f:
        found = re.search(r'(?m)^TL_SANITIZE:[A-Z]+=(.+)$', f.read())
    return ['-fsanitize=' + found.group(1)] if found else []


if __name__ == '__main__':
    main(TESTS)
