#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The STF library as installed, and the commands dump, check and slice. stf.py BUILD TEST"""
import glob
import gzip
import hashlib
import json
import lzma
import os
import re
import resource
import shutil
import struct
import subprocess
import sys
import tempfile

SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def check(holds, *what):
    if not holds:
        raise AssertionError(' '.join(str(w) for w in what))


def run(*args, **more):
    return subprocess.run([str(a) for a in args], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          timeout=240, **more)


class Lab:
    def __init__(self, build, folder):
        self.build, self.folder = build, folder
        self.command = os.path.join(build, 'tracelake')
        self.installed = None

    def path(self, name):
        return os.path.join(self.folder, name)

    def tracelake(self, *args, status=0, **more):
        done = run(self.command, *args, **more)
        check(done.returncode == status, args, done.returncode, done.stderr.decode()[:400])
        return done

    def sanitize(self):
        with open(os.path.join(self.build, 'CMakeCache.txt')) as f:
            found = re.search(r'(?m)^TL_SANITIZE:[A-Z]+=(.+)$', f.read())
        return ['-fsanitize=' + found.group(1)] if found else []

    def install(self):
        """The prefix of an installation, with the examples built against it."""
        prefix = self.path('usr')
        done = run('cmake', '--install', self.build, '--component', 'client', '--prefix', prefix)
        check(done.returncode == 0, done.stderr.decode())
        pc = glob.glob(prefix + '/**/tracelake-stf.pc', recursive=True)
        check(pc, 'no tracelake-stf.pc')
        env = dict(os.environ, PKG_CONFIG_PATH=os.path.dirname(pc[0]))
        for name in ('tracelake', 'tracelake-stf'):
            told = run('pkg-config', '--variable=prefix', name, env=env).stdout.decode().strip()
            check(told == prefix, name, 'has the prefix', told)
        flags = run('pkg-config', '--cflags', '--libs', 'tracelake-stf', env=env).stdout
        self.flags = flags.decode().split()
        for name in ('stf_walk', 'stf_make'):
            done = run('cc', '-std=gnu17', '-Wall', '-Wextra', '-Werror', '-o', self.path(name),
                       os.path.join(SOURCE, 'client', 'examples', name + '.c'),
                       *self.flags, *self.sanitize())
            check(done.returncode == 0, name, done.stderr.decode())
        return prefix

    def make(self, name, rounds):
        if not self.installed:
            self.installed = self.install()
        done = run(self.path('stf_make'), self.path(name), rounds)
        check(done.returncode == 0, done.stderr.decode())
        return self.path(name)


def library(lab):
    """Each header compiles by itself, in C and C++; the examples write and read files that the
    command reads."""
    trace = lab.make('loop.zstf', 40000)
    headers = glob.glob(lab.installed + '/include/**/*.h', recursive=True)
    check(len(headers) > 15, headers)
    for header in headers:
        for language, compiler, standard in (('c', 'cc', 'c11'), ('c++', 'c++', 'c++17'),
                                             ('c++', 'c++', 'c++20')):
            done = run(compiler, '-std=' + standard, '-Wall', '-Wextra', '-Wpedantic', '-Werror',
                       '-fsyntax-only', '-x', language, '-I',
                       lab.installed + '/include/tracelake-stf', header)
            check(done.returncode == 0, standard, header, done.stderr.decode())
    for standard in ('c++17', 'c++20'):
        done = run('c++', '-std=' + standard, '-Wall', '-Wextra', '-Wpedantic', '-Werror', '-o',
                   lab.path('stf_count'), os.path.join(SOURCE, 'client', 'examples', 'stf_count.cc'),
                   *lab.flags, *lab.sanitize())
        check(done.returncode == 0, standard, done.stderr.decode())
        counted = run(lab.path('stf_count'), trace, 2).stdout.decode().splitlines()
        check(counted == ['40000 0x80000000', '40000 0x80000004'], counted)
    done = lab.tracelake('check', trace)
    check(b' 0 errors, 0 warnings,' in done.stdout and b' 120000 instructions' in done.stdout,
          done.stdout.decode())
    lines = run(lab.path('stf_walk'), trace, 0, 3).stdout.decode().splitlines()
    check(lines == [
        '0 0x80000000 00128293 M process 1/1/0 source REG_5 0x0 dest REG_5 0x1',
        '1 0x80000004 00533023 M process 1/1/0 write 0x1000 size 8: 0x1',
        '2 0x80000008 ff9ff06f M process 1/1/0 to 0x80000000'], lines)
    # After a jump using the chunk index, the mode is unknown until the trace gives it.
    lines = run(lab.path('stf_walk'), trace, 119998, 9).stdout.decode().splitlines()
    check(lines == [
        '119998 0x80000004 00533023 - process 1/1/0 write 0x1000 size 8: 0x9c40',
        '119999 0x80000008 ff9ff06f - process 1/1/0 to 0x80000000'], lines)
    whole = run(lab.path('stf_walk'), trace).stdout.decode().splitlines()
    check(len(whole) == 120000)
    # A slice repeats mode and registers.
    lab.tracelake('slice', '--insn', '30001:30004', trace, '-o', lab.path('part.stf'))
    lines = run(lab.path('stf_walk'), lab.path('part.stf')).stdout.decode().splitlines()
    check(lines[0] == '0 0x80000004 00533023 M process 1/1/0 write 0x1000 size 8: 0x2711 '
          'state REG_5 0x2711', lines)
    check([line.split(' ', 1)[1] for line in lines[1:]] ==
          [line.split(' ', 1)[1] for line in whole[30002:30004]], lines)
    # An order of records that readers cannot accept is refused, naming the rule.
    done = run(lab.path('stf_walk'), lab.path('none.stf'))
    check(done.returncode == 1 and b'cannot open' in done.stderr, done.stderr)


def packed(lab):
    """The same trace in every compressed form, under names without a meaningful suffix."""
    plain, zstf = lab.make('loop.stf', 3000), lab.make('loop.zstf', 3000)
    with open(plain, 'rb') as f:
        data = f.read()
    out = {'plain': plain, 'zstf': zstf}
    for name, bytes_ in (('gz', gzip.compress(data)), ('xz', lzma.compress(data)),
                         ('gz2', gzip.compress(data[:5000]) + gzip.compress(data[5000:]))):
        out[name] = lab.path('trace-' + name)
        with open(out[name], 'wb') as f:
            f.write(bytes_)
    if shutil.which('zstd'):
        out['zst'] = lab.path('trace-zst')
        run('zstd', '-q', plain, '-o', out['zst'])
    for name in ('plain', 'zstf'):
        copy = lab.path('named-otherwise.' + {'plain': 'zstf', 'zstf': 'stf'}[name])
        shutil.copy(out[name], copy)
        out[name + '-misnamed'] = copy
    return out


def wraps(lab):
    """dump, check and slice give the same from a file and from standard input."""
    listing = part = None
    for name, path in packed(lab).items():
        with open(path, 'rb') as f:
            data = f.read()
        for args, more in ((path, {}), ('-', {'input': data})):
            dump = lab.tracelake('dump', args, **more).stdout
            listing = listing or dump
            check(dump == listing, name, args, 'another listing')
            done = lab.tracelake('check', args, **more)
            check(b' 0 errors, 0 warnings,' in done.stdout, name, args, done.stdout)
            lab.tracelake('slice', '--insn', '4000:5000', args, '-o', lab.path('part.stf'), **more)
            with open(lab.path('part.stf'), 'rb') as f:
                cut = f.read()
            part = part or cut
            check(cut == part, name, args, 'another slice')
    check(listing.count(b'\n') == 10 + 1 + 3000 * 8, listing[-200:])
    range_ = lab.tracelake('dump', '--from', 100, '--to', 103, lab.path('loop.zstf')).stdout
    check(range_.splitlines() == listing.splitlines()[100:103], range_)


def damage(lab):
    """For a trace cut anywhere, exactly the records before the cut are listed, and its offset is
    reported."""
    plain = lab.make('short.stf', 20)
    with open(plain, 'rb') as f:
        data = f.read()
    lines = lab.tracelake('dump', plain).stdout.splitlines()
    ends = [int(line.split()[1]) + int(line.split()[2]) for line in lines]
    header = next(i for i, line in enumerate(lines) if line.split()[3] == b'END_HEADER')
    body = ends[header]
    for cut in (*range(1, body, 5), *range(body, body + 40), *range(body + 40, len(data), 61)):
        whole = sum(1 for end in ends if end <= cut)
        clean = whole > header and cut == ends[whole - 1]
        done = run(lab.command, 'dump', '-', input=data[:cut])
        got = done.stdout.splitlines()
        if cut >= 4:
            check(got == lines[:whole], cut, len(got), whole)
        check(done.returncode == (0 if clean else 1), cut, done.returncode)
        if not clean and cut >= 4:
            place = ends[whole - 1] if whole else 0
            check(b'offset 0x%x' % place in done.stderr or b'offset %d' % place in done.stderr,
                  cut, place, done.stderr)
        for wrap in (gzip.compress(data, mtime=0), lzma.compress(data)):
            done = run(lab.command, 'dump', '-', input=wrap[:len(wrap) * cut // len(data)])
            check(done.returncode == 1 and lines[:len(done.stdout.splitlines())] ==
                  done.stdout.splitlines(), cut, done.stderr)


def memory(lab):
    """A trace of 35 MB takes no more memory than a small one: dump, check, slice, any
    compression."""
    if lab.sanitize():
        sys.exit(77)
    limit = 24 << 20

    def bounded():
        resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))

    big = lab.make('big.zstf', 500000)
    for args in (['dump', big], ['check', big], ['dump', '-'], ['check', '-'],
                 ['slice', '--insn', '1400000:', big, '-o', lab.path('end.zstf')],
                 ['slice', '--insn', '1400000:', big, '-o', lab.path('end.stf')]):
        with open(big, 'rb') as f, open(os.devnull, 'wb') as null:
            child = subprocess.Popen([lab.command, *args], stdin=f, stdout=null,
                                     stderr=subprocess.PIPE, preexec_fn=bounded)
            _, status, usage = os.wait4(child.pid, 0)
            text = child.stderr.read().decode()
            child.stderr.close()
            child.returncode = os.waitstatus_to_exitcode(status)
        check(child.returncode == 0, args, text)
        check(usage.ru_maxrss * 1024 < limit, args, usage.ru_maxrss, 'KiB')


def records(lab, path):
    """The records of each instruction of a trace, a line each."""
    lines = lab.tracelake('dump', path).stdout.splitlines()
    whats = [line.split(b' ', 3)[3].split(b' inst=')[0] for line in lines]
    return [what for what in whats if what.startswith(b'INST_') and b'INST_IEM' not in what]


def listings(lab):
    """dump lists the real traces to the last byte."""
    data = os.path.join(os.environ.get('TL_DATA', os.path.join(SOURCE, '..', 'shared', 'data')),
                        'stf')
    if not os.path.isdir(data):
        print('no data folder: skipped')
        sys.exit(77)

    def read(name, how=open):
        with how(os.path.join(data, name), 'rb') as f:
            return f.read()

    for trace, want in (('bmi_pmp.bare.stf', read('bmi_pmp.bare.records.txt')),
                        ('dhrystone_opt1.zstf', read('dhrystone_opt1.records.txt.gz', gzip.open))):
        got = lab.tracelake('dump', os.path.join(data, trace)).stdout
        check(got == want, trace, 'is listed otherwise')
    got = lab.tracelake('dump', os.path.join(data, 'dhry_riscv.zstf')).stdout
    check(hashlib.sha256(got).hexdigest() == read('dhry_riscv.records.sha256').split()[0].decode(),
          'dhry_riscv.zstf is listed otherwise')


def emitted(lab):
    """The output of decode for real captures breaks no rule of `check`, and neither do slices of
    it."""
    data = os.environ.get('TL_DATA', os.path.join(SOURCE, '..', 'shared', 'data'))
    inputs = [['--snapshot', path] for name in ('ete_ip', 'ts_marker', 'juno_r1_1', 'itm_only_raw')
              for path in glob.glob(os.path.join(data, 'coresight', 'snapshots', name))]
    inputs += [['--format', 'di', path]
               for path in glob.glob(os.path.join(data, 'di', 'ctm64_mpl1*.dtd.bin'))]
    if not inputs:
        print('no data folder: skipped')
        sys.exit(77)
    files = insns = 0
    for number, args in enumerate(inputs):
        folder = lab.path('out%d' % number)
        # This capture of an ITM begins in the middle of a packet, which is told.
        lab.tracelake('decode', *args, '--out', folder, status=int(args[-1].endswith('itm_only_raw')))
        for path in glob.glob(folder + '/*.zstf'):
            done = lab.tracelake('check', path)
            total = int(re.search(rb' (\d+) instructions', done.stdout.splitlines()[-1]).group(1))
            files += 1
            insns += total
            for ending in ('stf', 'zstf'):
                if total > 20:
                    cut = lab.path('cut.' + ending)
                    lab.tracelake('slice', '--insn', '%d:%d' % (total // 3, total // 2), path, '-o',
                                  cut)
                    lab.tracelake('check', cut)
    check(files >= len(inputs) and insns > 5000, files, insns)


def strictly(lab):
    """stf_lib's readers accept all output of decode, for each buffer of each capture, and its
    writer copies it."""
    import strict
    data = os.environ.get('TL_DATA', os.path.join(SOURCE, '..', 'shared', 'data'))
    folders = sorted(path for path in glob.glob(os.path.join(data, 'coresight', 'snapshots', '*'))
                     if os.path.isdir(path))
    inputs = [['--snapshot', path] for path in folders]
    inputs += [['--format', 'di', path] for path in glob.glob(os.path.join(data, 'di', '*.dtd.bin'))]
    if not inputs:
        print('no data folder: skipped')
        sys.exit(77)
    files = 0
    for number, args in enumerate(inputs):
        folder = lab.path('strict%d' % number)
        run(lab.command, 'decode', *args, '--out', folder)
        for path in glob.glob(folder + '/*.zstf'):
            files += 1
            try:
                strict.load(path)
            except strict.Refused as why:
                raise AssertionError('%s %s: %s' % (args[-1], os.path.basename(path), why))
    check(files > len(inputs), files, len(inputs))


def ranged(lab):
    """The same for shards stored by a server and for ranges of them, with and without
    instructions."""
    sys.path.insert(0, os.path.join(SOURCE, 'tests', 'e2e'))
    import strict
    from lab import Lab as Server
    from maker import Maker
    data = os.environ.get('TL_DATA', os.path.join(SOURCE, '..', 'shared', 'data'))
    server, ranges = Server(lab.build), 0
    made = Maker(seed=1)
    made.header()
    with open(lab.path('header.stf'), 'wb') as f:
        f.write(made.out)
    try:
        server.start()
        run(lab.command, 'push', '--server', server.url, '--format', 'stf', '--trace', 'header',
            lab.path('header.stf'))
        for path in glob.glob(os.path.join(data, 'coresight', 'snapshots', '*', 'snapshot.ini')):
            folder = os.path.dirname(path)
            run(lab.command, 'push', '--server', server.url, '--trace', os.path.basename(folder),
                '--snapshot', folder)
        shards = glob.glob(server.data + '/objects/t/*/*/*/*.zstf')
        for path in shards:
            strict.load(path)
        for name in sorted({(path.split('/')[-4], path.split('/')[-2]) for path in shards}):
            for args in ((), ('--byte', '0:24'), ('--insn', '7:90'), ('--byte', '1000:1016')):
                out = lab.path('range.' + ('stf', 'zstf')[ranges & 1])
                done = run(lab.command, 'get', '--server', server.url, '/'.join(name), *args, '-o',
                           out)
                if done.returncode == 0:
                    strict.load(out)
                    ranges += 1
        check(ranges > 0, 'nothing was cut')
        print(len(shards), 'shards,', ranges, 'ranges')
    finally:
        server.close()


def parted(lab):
    """A .zstf with bytes between its chunks is read completely from any source, with a message; one
    with a damaged chunk is never accepted as complete."""
    sys.path.insert(0, os.path.join(SOURCE, 'tests', 'e2e'))
    from lab import Lab as Server
    from maker import Maker
    made = Maker(128, seed=4).trace(5000)
    whole = made.zstf(500)
    if whole is None:
        print('no zstd: skipped')
        sys.exit(77)
    index, = struct.unpack_from('<q', whole, 12)
    count, = struct.unpack_from('<Q', whole, index)
    entries = [list(struct.unpack_from('<qQQ', whole, index + 8 + 24 * i)) for i in range(count)]
    ends = [e[0] for e in entries[1:]] + [index]
    data = bytearray(whole[:20])
    for i, (entry, end) in enumerate(zip(entries, ends)):
        begin, entry[0] = entry[0], len(data)
        data += whole[begin:end]
        if i % 3 != 1:
            data += (b'not of a chunk, but like \x28\xb5\x2f it ', b'x')[i & 1]
    struct.pack_into('<q', data, 12, len(data))
    data += struct.pack('<Q', count) + b''.join(struct.pack('<qQQ', *e) for e in entries)
    damaged = bytearray(whole)
    damaged[ends[3]] ^= 1  # at the beginning of a chunk
    paths = {}
    for name, bytes_ in (('whole', whole), ('parted', data), ('damaged', damaged)):
        paths[name] = lab.path(name + '.zstf')
        with open(paths[name], 'wb') as f:
            f.write(bytes_)
    want = lab.tracelake('decode', '--format', 'stf', '--text', paths['whole']).stdout
    listing = lab.tracelake('dump', paths['whole']).stdout
    server = Server(lab.build)
    try:
        server.start()
        for name, status in (('whole', 0), ('parted', 1)):
            with open(paths[name], 'rb') as f:
                bytes_ = f.read()
            for args, more in (([paths[name]], {}), (['-'], {'input': bytes_}),
                               (['--chunk', '7', '-'], {'input': bytes_})):
                done = lab.tracelake('decode', '--format', 'stf', '--text', *args, status=status,
                                     **more)
                check(done.stdout == want, name, args, 'another text')
                check(status == 0 or b'between chunks' in done.stderr, done.stderr)
            for args, more in ((paths[name], {}), ('-', {'input': bytes_})):
                check(lab.tracelake('dump', args, status=status, **more).stdout == listing, name)
            run(lab.command, 'push', '--server', server.url, '--format', 'stf', '--trace', name,
                paths[name])
            done = run(lab.command, 'get', '--server', server.url, name + '/stf.0', '--text')
            check(done.stdout == want, name, 'is served as another text')
        for more in ({}, {'input': bytes(damaged)}):
            done = run(lab.command, 'decode', '--format', 'stf', '--text',
                       '-' if more else paths['damaged'], **more)
            check(done.returncode == 1 and b'chunks are damaged' in done.stderr, done.stderr)
    finally:
        server.close()


def served(lab):
    """A trace pushed to a server in any compressed form is returned with all its records."""
    sys.path.insert(0, os.path.join(SOURCE, 'tests', 'e2e'))
    from lab import Lab as Server
    traces = packed(lab)
    want = records(lab, traces['plain'])
    check(len(want) == 3000 * 8, len(want))
    server = Server(lab.build)
    try:
        server.start()
        for name, path in traces.items():
            done = run(lab.command, 'push', '--server', server.url, '--rig', 'sim', '--format',
                       'stf', '--trace', name, path)
            check(done.returncode == 0 and b'9000 instructions' in done.stdout, name, done.stdout,
                  done.stderr)
            for ending in ('stf', 'zstf'):
                out = lab.path('back.' + ending)
                done = run(lab.command, 'get', '--server', server.url, name + '/stf.0', '-o', out)
                check(done.returncode == 0, name, done.stderr)
                check(records(lab, out) == want, name, ending, 'other records')
                done = lab.tracelake('check', out)
                check(b' 0 errors, 0 warnings,' in done.stdout, name, done.stdout)
            out = lab.path('part.stf')
            run(lab.command, 'get', '--server', server.url, name + '/stf.0', '--insn', '3001:3004',
                '-o', out)
            lab.tracelake('slice', '--insn', '3001:3004', traces['plain'], '-o',
                          lab.path('cut.stf'))
            check(records(lab, out) == records(lab, lab.path('cut.stf')) and
                  len(records(lab, out)) == 9, name, 'a part')
    finally:
        server.close()


def groups_of(lab, path):
    """The bytes of each instruction's group in a plain file."""
    with open(path, 'rb') as f:
        data = f.read()
    out, begin = [], None
    for line in lab.tracelake('dump', path).stdout.splitlines():
        _, offset, size, type_, *_ = line.split(b' ', 4)
        end = int(offset) + int(size)
        if type_ == b'END_HEADER':
            begin = end
        elif type_ in (b'INST_32', b'INST_16'):
            out.append(data[begin:end])
            begin = end
    return out


def told_before(group):
    """Split a first group into the records that repeat registers and page walks, and the rest."""
    at = 0
    while at < len(group) and group[at] in SKIPPED:
        size = SKIPPED[group[at]]
        if group[at] == 3:
            size = 5 + struct.unpack_from('<I', group, at + 1)[0]
            told = re.fullmatch(rb'state so far, in (\d+) bytes', group[at + 5:at + size])
            if told:
                end = at + size + int(told.group(1))
                return group[at + size:end], group[:at] + group[end:]
        at += size
    return b'', group


SKIPPED = {3: 5, 5: 3, 8: 13, 9: 9}


def without_state(group, want, event64):
    """The first group without the MODE_CHANGE that repeats the current mode."""
    size = 26 if event64 else 22
    return next((want for i in range(len(want)) if group[i] == 100 and group[:i] == want[:i] and
                 group[i + size:] == want[i:]), group)


def pieces(told, vlen):
    """Split such records."""
    at, out = 0, []
    while at < len(told):
        size = 22 + 16 * told[at + 21] if told[at] == 50 else 12
        if told[at] == 40 and told[at + 3] & 15 == 3:
            size = 4 + 8 * max(1, (vlen + 63) // 64)
        if told[at] == 3:
            size = 5 + told[at + 1]
        out.append(told[at:at + size])
        at += size
    return [piece for piece in out if piece[0] != 3]


LAYOUTS = ((0, False), (64, True), (65, True), (128, False), (512, True), (65536, True))


def simulated(lab):
    """Traces of other producers, in every layout: listed correctly, without errors, sliced and
    served completely."""
    sys.path.insert(0, os.path.join(SOURCE, 'tests', 'e2e'))
    from lab import Lab as Server
    from maker import Maker
    server = Server(lab.build)
    try:
        server.start()
        for vlen, event64 in LAYOUTS:
            n = 1500 if vlen < 1000 else 60
            made = Maker(vlen, event64, seed=vlen + 1).trace(
                n, isa_string=b'rv64gcv_zba' if vlen else None,
                infos=((6, 1, 0, 0, b'first'), (12, 1, 4, 0, b'simulator')))
            name = 'vlen%d' % vlen
            for ending, data in (('stf', bytes(made.out)), ('zstf', made.zstf(n // 7))):
                if data is None:
                    continue
                path = lab.path(name + '.' + ending)
                with open(path, 'wb') as f:
                    f.write(data)
                lines = lab.tracelake('dump', path).stdout.splitlines()
                check([tuple(map(int, line.split()[1:3])) for line in lines] ==
                      [(offset, size) for offset, size, _ in made.starts()], path)
                check(b' 0 errors,' in lab.tracelake('check', path).stdout, path)
                done = run(lab.command, 'push', '--server', server.url, '--rig', 'sim',
                           '--format', 'stf', '--trace', name + ending, path)
                check(done.returncode == 0 and b'%d instructions' % n in done.stdout, done.stdout,
                      done.stderr)
                fetch(lab, server, made, name + ending, path, n)
        mended(lab, server, 'vlen512stf')
    finally:
        server.close()


def shards(lab):
    """A trace stored in several shards, which repeat the mode, is returned with its records
    unchanged except for an additional TRACE_INFO."""
    sys.path.insert(0, os.path.join(SOURCE, 'tests', 'e2e'))
    import strict
    from lab import Lab as Server
    from maker import Maker
    n, insns = 3000, 300
    made = Maker(128, event64=True, seed=9).trace(n)
    with open(lab.path('many.stf'), 'wb') as f:
        f.write(made.out)
    server = Server(lab.build)
    try:
        server.start('--shard-insns', str(insns))
        done = run(lab.command, 'push', '--server', server.url, '--rig', 'sim', '--format', 'stf',
                   '--trace', 'many', lab.path('many.stf'))
        check(done.returncode == 0, done.stderr)
        stored = sorted(glob.glob(server.data + '/objects/t/many/*/stf.0/*.zstf'))
        check(len(stored) == n // insns, stored)
        for path in stored:
            check(any(r.type == strict.EVENT and r.number == strict.MODE_CHANGE
                      for r in strict.load(path)[1][0]), path, 'does not tell its mode')
        for args in ((), ('--insn', '0:')):
            run(lab.command, 'get', '--server', server.url, 'many/stf.0', *args, '-o',
                lab.path('back.stf'))
            check(groups_of(lab, lab.path('back.stf')) == made.groups(), args, 'other records')
        with open(lab.path('back.stf'), 'rb') as f:
            header, _, _ = strict.groups(f.read())
        infos = [r.data for r in header if r.type == strict.INFO]
        check(len(infos) == 2 and b'stored by tracelake' in infos[1], infos)
    finally:
        server.close()


def mended(lab, server, trace):
    """If a shard's index has another layout, it is rebuilt from the shard."""
    def everything():
        return [run(lab.command, 'get', '--server', server.url, trace + '/stf.0', *more).stdout
                for more in (('-o', '-'), ('--text',))]

    before = everything()
    shard, = glob.glob(server.data + '/objects/t/%s/*/stf.0/*.zstf' % trace)
    check(b' 0 errors,' in lab.tracelake('check', shard).stdout, shard)
    with open(shard, 'rb') as f:
        data = bytearray(f.read())
    data[-200] ^= 0x55
    os.chmod(shard, 0o644)
    with open(shard, 'wb') as f:
        f.write(data)
    done = run(lab.command, 'verify', '--server', server.url, trace, '--repair')
    check(b'made whole from itself' in done.stdout, done.stdout)
    done = run(lab.command, 'verify', '--server', server.url, trace)
    check(done.returncode == 0 and everything() == before, trace, 'is another one now')


def header_of(lab, path):
    """The process in a header, and whether the feature bit for processes is set."""
    process, features = (re.search(pattern, lab.tracelake('dump', path).stdout).group(1) for pattern in (
        rb' PROCESS_ID_EXT (.*)', rb' features=0x([0-9a-f]+)'))
    return process, bool(int(features, 16) & 1 << 10)


def fetch(lab, server, made, trace, path, n):
    """Fetching everything, or parts, returns what was pushed; a slice of the file has the same
    records."""
    want, back, part = made.groups(), lab.path('back.stf'), lab.path('part.stf')
    for first, end in ((0, n), (1, 2), (n // 3, n // 2), (n - 1, n)):
        done = run(lab.command, 'get', '--server', server.url, trace + '/stf.0', '--insn',
                   '%d:%d' % (first, end), '-o', back)
        check(done.returncode == 0, done.stderr)
        got = groups_of(lab, back)
        lab.tracelake('slice', '--insn', '%d:%d' % (first, end), path, '-o', part)
        sliced = groups_of(lab, part)
        check(len(got) == len(sliced) == end - first, trace, first, len(got), len(sliced))
        check(got[1:] == sliced[1:], trace, first, 'is no slice of what was pushed')
        check(b' 0 errors,' in lab.tracelake('check', back).stdout, trace, first)
        processes = [header_of(lab, p) for p in (path, back, part)]
        check(processes[1] == processes[2], trace, first, 'a slice tells of other processes', processes)
        check(processes[1][1] == (processes[0][1] or processes[1][0] != processes[0][0]), trace, first, processes)
        if first == 0:
            check(got == want, trace, 'comes back otherwise')
        elif b'\x32' not in want[first]:  # no page walk, whose numbers count from the beginning
            told, rest = told_before(got[0])
            # The same as in a slice, in one piece.
            check(len(sliced[0]) > len(told) and all(part in sliced[0] for part in pieces(
                told, made.vlen)), trace, first, 'tells another state')
            got[0] = without_state(rest, want[first], made.event64)
            check(got[0] == want[first], trace, first, got[0].hex(), want[first].hex())
    heads = [[line.split(b' ', 3)[3] for line in lab.tracelake('dump', p).stdout.splitlines()
              if line.split()[3] in (b'VLEN_CONFIG', b'ISA_EXTENDED', b'TRACE_INFO_FEATURE')]
             for p in (path, back)]
    # A range has registers, as they are where it begins; the bit for processes was checked above.
    feature = [int(re.search(rb'features=(0x[0-9a-f]+)', head[0]).group(1), 16) for head in heads]
    check(heads[0][1:] == heads[1][1:] and feature[0] | 1 << 13 == feature[1] & ~(1 << 10), heads)
    text = lab.tracelake('decode', '--format', 'stf', '--text', path).stdout
    done = run(lab.command, 'get', '--server', server.url, trace + '/stf.0', '--text')
    check(text == done.stdout, trace, 'has another text')
    for type_, annotated in ((40, b'INST_REG'), (50, b'PAGE_TABLE_WALK'), (230, b'INST_MICROOP'),
                             (60, b'INST_MEM_ACCESS'), (62, b'BUS_MASTER_ACCESS')):
        check(text.count(b'\nA %s ' % annotated) ==
              sum(1 for _, _, t in made.starts() if t == type_), trace, annotated)
    done = run(lab.command, 'get', '--server', server.url, trace + '/stf.0', '--json')
    items = json.loads(done.stdout)['items']
    check([item['at'] for item in items if item['kind'] == 'I'] == list(range(n)), trace)
    stats = json.loads(run(lab.command, 'stats', '--server', server.url, trace + '/stf.0',
                           '--json').stdout)
    types = [t for _, _, t in made.starts()]
    check(stats['insns'] == n and stats['records'] == {
        name: types.count(t) for t, name in (
            (40, 'INST_REG'), (41, 'INST_READY_REG'), (50, 'PAGE_TABLE_WALK'),
            (60, 'INST_MEM_ACCESS'), (61, 'INST_MEM_CONTENT'), (62, 'BUS_MASTER_ACCESS'),
            (63, 'BUS_MASTER_CONTENT'), (100, 'EVENT'), (230, 'INST_MICROOP')) if t in types}, stats)
    memory = [data[13] for _, t, data in made.records if t == 60]
    check(stats['memory'] == {'reads': memory.count(1), 'writes': memory.count(2)}, stats)


def transactions(lab):
    """A transaction trace is listed, and served as events with their times."""
    sys.path.insert(0, os.path.join(SOURCE, 'tests', 'e2e'))
    from lab import Lab as Server
    from maker import Maker
    made, path = Maker(seed=5).transactions(700), lab.path('bus.stf')
    with open(path, 'wb') as f:
        f.write(made.out)
    lines = lab.tracelake('dump', path).stdout.splitlines()
    check([tuple(map(int, line.split()[1:3])) for line in lines] ==
          [(offset, size) for offset, size, _ in made.starts()])
    check(b' 0 errors, 0 warnings,' in lab.tracelake('check', path).stdout)
    lab.tracelake('slice', '--insn', '1:2', path, '-o', lab.path('none.stf'), status=1)
    want, time, clock = [], 0, None
    for line, (_, type_, data) in zip(lines, made.records):
        if type_ == 250:
            _, delta, its, metadata = struct.unpack('<QQBH', data[1:20])
            at, clock = 20, its if clock is None else clock
            for _ in range(metadata):
                at += 1 + (1 << data[at])
            if its == clock:
                time += delta
                want.append(b'T %d' % time)
        if type_ in (250, 251):
            want.append(b'A ' + line.split(b' ', 3)[3])
        if type_ == 250:
            payload = data[at + 1:]
            if len(payload) <= 8:
                payload = payload[::-1]
            want.append(b'S stf %d %s' % (data[at], payload.hex().encode()))
    text = lab.tracelake('decode', '--format', 'stf', '--text', path).stdout.splitlines()
    check(text == [b'# stream stf.0'] + want, 'another text')
    server = Server(lab.build)
    try:
        server.start()
        done = run(lab.command, 'push', '--server', server.url, '--rig', 'sim', '--format', 'stf',
                   '--trace', 'bus', path)
        check(done.returncode == 0 and b'stf.0 transactions: 700 records' in done.stdout,
              done.stdout, done.stderr)
        done = run(lab.command, 'get', '--server', server.url, 'bus/stf.0', '--text')
        check(done.stdout.splitlines() == text, 'another text from the server')
        done = run(lab.command, 'get', '--server', server.url, 'bus/stf.0', '--insn', '10:12',
                   '--text')
        part = [line for line in done.stdout.splitlines() if line.startswith(b'S ')]
        check(part == [line for line in want if line.startswith(b'S ')][10:12], part)
        for format_ in ('stf', 'zstf'):
            done = run(lab.command, 'get', '--server', server.url, 'bus/stf.0', '-o',
                       lab.path('back.' + format_))
            check(done.returncode and b'has no instructions' in done.stderr, done.stderr)
    finally:
        server.close()


TESTS = {'library': library, 'wraps': wraps, 'damage': damage, 'memory': memory,
         'listings': listings, 'emitted': emitted, 'strictly': strictly, 'ranged': ranged,
         'parted': parted, 'served': served,
         'simulated': simulated, 'shards': shards, 'transactions': transactions}


def main():
    with tempfile.TemporaryDirectory() as folder:
        TESTS[sys.argv[2]](Lab(sys.argv[1], folder))


if __name__ == '__main__':
    main()
