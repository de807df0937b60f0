#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""`tracelake check` finds nothing wrong with what we write of any capture: with its whole image, and
with an image that lacks every other page, where most code is unknown. own.py BUILD"""
import glob
import gzip
import os
import re
import subprocess
import sys
import tempfile

SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
DATA = os.environ.get('TL_DATA') or os.path.join(os.path.dirname(SOURCE), 'shared', 'data')
sys.path.insert(0, os.path.join(SOURCE, 'tests', 'e2e'))
from lab import Lab as Server  # noqa: E402

SKIPPED = 77
# The dump of the kernel in these is not that of the kernel that ran: where the dump has a return, the
# trace says that execution went straight on, and STF has the dump's instruction. The rule can hold only
# with the right dump; the places must be those of the reference's flow.
OTHER_IMAGE = {'juno_r1_1', 'infrastructure'}


class Lab:
    def __init__(self, build, folder):
        self.command, self.folder = os.path.join(build, 'tracelake'), folder
        self.instructions = self.files = 0
        self.found = []
        self.straight = {}

    def run(self, *args):
        return subprocess.run([self.command, *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              timeout=600)

    def decode(self, name, *args):
        out = os.path.join(self.folder, name)
        done = self.run('decode', '--out', out, *args)
        if done.returncode not in (0, 1):
            raise AssertionError('%s: %s' % (name, done.stderr.decode()))
        for path in sorted(glob.glob(os.path.join(out, '*.zstf'))):
            self.check(path)
            os.remove(path)

    def check(self, path):
        text = self.run('check', path).stdout.decode()
        name = path[len(self.folder) + 1:].split(os.sep)[0]
        instructions = int(text.rsplit(' instructions', 1)[0].split()[-1])
        self.files += 1
        self.instructions += instructions
        for line in text.splitlines():
            if ': warning: ' not in line and ': error: ' not in line:
                continue
            rule = line.split(': ')[4]
            if not (rule == 'flow-straight' and name in OTHER_IMAGE and self.goes_straight(name, line)):
                self.found.append(line[len(self.folder) + 1:])

    def goes_straight(self, name, line):
        """Does the reference's flow, too, go straight on at the address of this finding?"""
        if name not in self.straight:
            self.straight[name] = steps = set()
            for path in glob.glob(os.path.join(DATA, 'coresight', 'flow', name + '.*')):
                with gzip.open(path, 'rt') as f:
                    steps.update(re.findall(r'^(?=I ([0-9a-f]{16}) [0-9a-f]{8}\nI ([0-9a-f]{16}) )', f.read(), re.M))
        address = int(re.search('0x([0-9a-f]+) (?:always leads|is always taken)', line)[1], 16)
        return ('%016x' % address, '%016x' % (address + 4)) in self.straight[name]


def holes(lab, elf):
    """An ELF file's segments but for every other 64 bytes, as --image arguments."""
    text = subprocess.run(['readelf', '-lW', elf], stdout=subprocess.PIPE, check=True).stdout.decode()
    args = []
    for line in text.splitlines():
        word = line.split()
        if len(word) < 7 or word[0] != 'LOAD' or 'E' not in ''.join(word[6:-1]):
            continue
        offset, address, size = int(word[1], 16), int(word[2], 16), int(word[4], 16)
        for at in range(0, size, 128):
            args += ['--image', '%s@%#x,offset=%d,length=%d' %
                     (elf, address + at, offset + at, min(64, size - at))]
    return args


def riscv(lab):
    folder = os.path.join(DATA, 'riscv')
    for config in sorted(glob.glob(os.path.join(folder, '*.ini'))):
        name = os.path.basename(config)[:-4]
        for raw in glob.glob(os.path.join(folder, name + '.*')):
            if raw.endswith(('.nex', '.etr')):
                lab.decode(name, '--config', config, raw)
    for name, elf in (('nt-traps-htm', 'traps'), ('et-traps', 'traps'), ('et-jumps', 'jumps')):
        config = os.path.join(folder, name + '.ini')
        with open(config) as f:
            text = f.read().split('[image')[0]
        partial = os.path.join(lab.folder, name + '.ini')
        with open(partial, 'w') as f:
            f.write(text)
        raw = [p for p in glob.glob(os.path.join(folder, name + '.*')) if p.endswith(('.nex', '.etr'))]
        lab.decode(name + '-part', '--config', partial, *holes(lab, os.path.join(folder, elf + '.elf')),
                   *raw)


def coresight(lab):
    for kind in ('snapshots', 'older'):
        for folder in sorted(glob.glob(os.path.join(DATA, 'coresight', kind, '*', ''))):
            lab.decode(os.path.basename(folder[:-1]), '--snapshot', folder)


def pt(lab):
    folder = os.path.join(DATA, 'pt', 'stepped')
    for name, elf in (('one-cpu', 'stroll'), ('cyc-long-tnt', 'walk'), ('noretcomp', 'ramble'),
                      ('no-time', 'stroll')):
        image = os.path.join(folder, elf + '.elf')
        raw = os.path.join(folder, name + '.pt')
        lab.decode('pt-' + name, '--format', 'pt', '--image', image, raw)
        lab.decode('pt-part-' + name, '--format', 'pt', *holes(lab, image), raw)


def perf(lab):
    symfs = os.path.join(DATA, 'perf', 'symfs')
    for path in sorted(glob.glob(os.path.join(DATA, 'perf', 'pt', '*.data')) +
                       glob.glob(os.path.join(DATA, 'perf', 'cs', '*.data'))):
        lab.decode(os.path.basename(path), '--symfs', symfs, path)


def field(lab):
    folder = os.path.join(DATA, 'field', 'stf')
    lab.decode('field', '--config', os.path.join(folder, 'traps-part.ini'), '--image',
               os.path.join(folder, 'traps-part.bin') + '@0x800000c8',
               os.path.join(DATA, 'riscv', 'nt-traps-htm.nex'))


def served(lab, build):
    """The same from a server, of shards that are stored and of those that are made when read."""
    field = os.path.join(DATA, 'field', 'stf')
    if not os.path.isdir(field):
        return
    server = Server(build)
    try:
        server.start()
        made = {}
        for kind in ('stored', 'virtual'):
            server.run('push', '--trace', kind, '--shards', kind, '--config',
                       os.path.join(field, 'traps-part.ini'), '--image',
                       os.path.join(field, 'traps-part.bin') + '@0x800000c8',
                       os.path.join(DATA, 'riscv', 'nt-traps-htm.nex'))
            for name, part in (('all', []), ('part', ['--insn', '1000:20000'])):
                path = os.path.join(lab.folder, name + '.zstf')
                server.run('get', kind + '/nt.0', *part, '-o', path)
                lab.check(path)
                with open(path, 'rb') as f:
                    if made.setdefault(name, f.read()) != open(path, 'rb').read():
                        lab.found.append('%s: stored and virtual differ' % name)
            os.remove(path)
        server.run('push', '--format', 'stf', '--trace', 'foreign',
                   os.path.join(field, 'mret_foreign.stf'))
        lines = server.run('find', 'foreign', '--event', 'return').text().splitlines()
        if len([line for line in lines if line.endswith(' return')]) != 5:
            lab.found.append('returns: %s' % lines)
    finally:
        server.close()


def main(build):
    if not os.path.isdir(os.path.join(DATA, 'riscv')):
        print('skipped: no captures in', DATA)
        return SKIPPED
    with tempfile.TemporaryDirectory() as folder:
        lab = Lab(build, folder)
        for part in (riscv, coresight, pt, perf, field):
            part(lab)
        served(lab, build)
        print('%d files, %d instructions, %d findings' %
              (lab.files, lab.instructions, len(lab.found)))
        for line in lab.found[:40]:
            print(line)
        return 1 if lab.found or lab.instructions < 1000000 else 0


if __name__ == '__main__':
    sys.exit(main(sys.argv[1]))
