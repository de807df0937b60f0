# SPDX-License-Identifier: MIT
"""What must be there, by what the server has said."""

import hashlib
import os
import subprocess
import threading

from lab import TIMEOUT, check, streams


def digest(data):
    return hashlib.sha256(data).hexdigest()


def digest_lines(lines):
    return digest('\n'.join(line for line in lines if not line.startswith('#')).encode())


class Capture:
    """Bytes of a rig in a file, the arguments by which they are decoded, and the flow text that they have without a
    server."""

    def __init__(self, lab, file, setup, image=None):
        self.args = ['--config', setup, *(['--image', image] if image and os.path.getsize(image) else []), file]
        with open(file, 'rb') as f:
            self.bytes = f.read()
        text = lab.run('decode', '--text', *self.args, status=None).text()
        self.texts = {name: digest_lines(lines) for name, lines in streams(text).items() if lines}
        check(self.texts, file, 'decodes to nothing')


def simulate(lab, kind, n, seed):
    """A capture of `n` bytes, by a simulated rig."""
    name = lab.path('%s-%d' % (kind, seed))
    subprocess.run([lab.rig, '--kind', kind, '--rate', '100000000', '--bytes', str(n), '--seed', str(seed), '--save', name,
                    '--config', name + '.ini', '--image', name + '.elf', '--server', lab.url, '--trace', 'spare', '--quiet'],
                   check=True, timeout=TIMEOUT)
    lab.run('rm', 'spare')
    return Capture(lab, name, name + '.ini', name + '.elf')


class Model:
    """The state of each trace:

    pushing   it may be there, and has a prefix of the capture
    pushed    it is there, complete, and has the capture's text once it is sealed
    old       the same, but retention may have removed it
    mending   it is there, but its image may be damaged
    live      the same, by a rig of constant rate; ended: it is complete, but its text is not known yet
    removing  somebody has asked for its removal
    removed   it is not there
    hostile   anything
    """

    def __init__(self):
        self.lock = threading.Lock()
        self.traces = {}  # name → (state, capture)

    def set(self, trace, state, capture=None):
        with self.lock:
            old = self.traces.get(trace, (None, None))[1]
            self.traces[trace] = (state, capture or old)

    def state(self, trace):
        with self.lock:
            return self.traces.get(trace, (None, None))[0]

    def rows(self):
        with self.lock:
            return sorted(self.traces.items())

    def pick(self, rng, *states):
        """A trace in one of these states, and its capture, or None."""
        found = [(name, row) for name, row in self.rows() if row[0] in states and row[1]]
        name, (_, capture) = rng.choice(found) if found else (None, (None, None))
        return name, capture

    def take(self, rng, state, least=4):
        """A pushed trace that nobody else takes from now on, if there are at least `least`: it is in `state` then."""
        with self.lock:
            names = sorted(t for t, (s, _) in self.traces.items() if s == 'pushed')
            if len(names) < least:
                return None
            name = rng.choice(names)
            self.traces[name] = (state, self.traces[name][1])
            return name


def write(path, data):
    with open(path, 'wb') as f:
        f.write(data)
    return path


SYNC = bytes(11) + b'\x80\x01\x01\0\x04\x85\0\x00\x40\0\0\0\0\0\x10'  # ETMv4, at 0x400000
INI = ('[trace]\nformat=etm4,id=0x10\n[source cs.10]\nid=0x10\nprotocol=etm4\nTRCCONFIGR=0x1\nTRCTRACEIDR=0x10\n'
       'TRCIDR0=0x28000EA1\nTRCIDR1=0x4100F403\nTRCIDR2=0x488\n[image loop]\nfile=%s\naddress=0x400000\n')


def make_loop(lab, name, insns, atoms, tail=b''):
    """An ETMv4 capture of atoms over an endless loop of `insns` A64 instructions; `tail` makes its image unlike others.
    Returns the files of the capture and its setup."""
    code = b'\x1f\x20\x03\xd5' * insns + (0x14000000 | (-insns & 0x3ffffff)).to_bytes(4, 'little')
    image = write(lab.path(name + '.img'), code + tail)
    setup = write(lab.path(name + '.ini'), (INI % os.path.basename(image)).encode())
    return write(lab.path(name + '.etm'), SYNC + b'\xd4' * atoms), setup
