#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Output files of commands are complete or absent, however the command ends. outputs.py BUILD"""
import glob
import os
import pty
import resource
import signal
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCE = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, HERE)
sys.path.insert(0, os.path.join(SOURCE, 'tests', 'e2e'))
from lab import Lab as Server  # noqa: E402
from maker import Maker  # noqa: E402

OLD = b'what was there before'


def check(holds, *what):
    if not holds:
        raise AssertionError(' '.join(str(w) for w in what))


class Lab:
    def __init__(self, build, folder):
        self.command, self.folder = os.path.join(build, 'tracelake'), folder
        self.server = Server(build)

    def path(self, name):
        return os.path.join(self.folder, name)

    def run(self, *args, status=0, **more):
        done = subprocess.run([self.command, *map(str, args)], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, timeout=240,
                              env=dict(os.environ, TRACELAKE_SERVER=self.server.url), **more)
        check(status is None or done.returncode == status, args, done.returncode,
              done.stderr.decode())
        return done

    def put(self, name, data=OLD):
        with open(self.path(name), 'wb') as f:
            f.write(data)
        return self.path(name)

    def read(self, name):
        with open(self.path(name), 'rb') as f:
            return f.read()

    def files(self, folder=''):
        return sorted(os.listdir(self.path(folder)))


def limited(action):
    """Files cannot grow beyond some KiB, as on a full disk."""
    def prepare():
        signal.signal(signal.SIGXFSZ, action)
        resource.setrlimit(resource.RLIMIT_FSIZE, (20000, 20000))
    return prepare


def its_own_input(lab):
    """A command never replaces its input, under any name."""
    made = lab.read('in.stf')
    os.link(lab.path('in.stf'), lab.path('linked.stf'))
    os.symlink(lab.path('in.stf'), lab.path('pointed.stf'))
    for name in ('in.stf', 'linked.stf', 'pointed.stf'):
        done = lab.run('slice', lab.path('in.stf'), '--insn', '0:10', '-o', lab.path(name), status=2)
        check(b'is the input' in done.stderr, done.stderr)
    lab.run('dump', lab.path('in.stf'), '-o', lab.path('in.stf'), status=2)
    os.rename(lab.path('linked.stf'), lab.path('stf.0.zstf'))
    lab.run('decode', '--format', 'stf', '--out', lab.folder, lab.path('stf.0.zstf'), status=2)
    check(lab.read('in.stf') == made == lab.read('stf.0.zstf'))
    for name in ('pointed.stf', 'stf.0.zstf'):
        os.unlink(lab.path(name))
    # The target of a link is replaced, keeping its permissions; the link remains.
    old = lab.put('old.stf')
    os.chmod(old, 0o640)
    os.symlink('old.stf', lab.path('link.stf'))
    lab.run('slice', lab.path('in.stf'), '--insn', '0:10', '-o', lab.path('link.stf'))
    check(os.path.islink(lab.path('link.stf')) and os.stat(old).st_mode & 0o777 == 0o640 and
          lab.read('old.stf')[1:4] == b'STF')
    os.unlink(lab.path('link.stf'))
    os.unlink(old)


def disk_full(lab):
    """An incomplete output is removed, and a previous file is kept."""
    before = lab.files()
    for action in (signal.SIG_IGN, signal.SIG_DFL):
        for args in (('slice', lab.path('in.stf'), '--insn', '0:', '-o', lab.path('out.stf')),
                     ('dump', lab.path('in.stf'), '-o', lab.path('out.stf')),
                     ('get', 'made/stf.0', '-o', lab.path('out.stf')),
                     ('raw', 'made', '-o', lab.path('out.stf')),
                     ('decode', '--format', 'stf', '--out', lab.path('dir'), lab.path('in.stf'))):
            old = lab.put('out.stf')
            os.mkdir(lab.path('dir'))
            lab.put('dir/stf.0.zstf')
            done = lab.run(*args, status=None, preexec_fn=limited(action))
            check(done.returncode == (1 if action == signal.SIG_IGN else -signal.SIGXFSZ), args,
                  done.returncode, done.stderr)
            check(action == signal.SIG_DFL or b'File too large' in done.stderr, done.stderr)
            check(lab.read('out.stf') == lab.read('dir/stf.0.zstf') == OLD, args, 'was replaced')
            check(lab.files('dir') == ['stf.0.zstf'], lab.files('dir'))
            os.unlink(old)
            os.unlink(lab.path('dir/stf.0.zstf'))
            os.rmdir(lab.path('dir'))
            check(lab.files() == before, args, lab.files())


def interrupted(lab):
    """Ctrl-C in the middle leaves no files."""
    before = lab.files()
    trace = lab.read('in.stf')
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        for args in (('slice', '-', '--insn', '0:', '-o', lab.path('out.zstf')),
                     ('decode', '--format', 'stf', '--out', lab.folder, '-'),
                     ('dump', '-', '-o', lab.path('out.zstf'))):
            name = 'stf.0.zstf' if args[0] == 'decode' else 'out.zstf'
            old = lab.put(name)
            child = subprocess.Popen([lab.command, *args], stdin=subprocess.PIPE,
                                     stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            child.stdin.write(trace * (1 + (8 << 20) // len(trace)))
            child.stdin.flush()
            until = time.monotonic() + 60
            while not glob.glob(lab.path(name + '.*')):
                check(time.monotonic() < until and child.poll() is None, args, 'begins no file')
                time.sleep(.01)
            child.send_signal(number)
            check(child.wait(240) == -number, args, child.returncode)
            child.stdin.close()
            check(lab.read(name) == OLD, args, 'was replaced')
            os.unlink(old)
            check(lab.files() == before, args, lab.files())


def refused(lab):
    """An error of the server, or a terminal as output, leaves no result."""
    old = lab.put('out.stf')
    for args in (('get', 'none/stf.0'), ('get', 'made/stf.9'), ('get', 'made/stf.0', '--time', '9:3'),
                 ('raw', 'none')):
        check(lab.run(*args, '-o', old, status=None).returncode != 0, args)
        check(lab.read('out.stf') == OLD, args, 'was replaced')
    os.unlink(old)
    for args in (('get', 'made/stf.0'), ('raw', 'made'), ('slice', lab.path('in.stf'), '--insn', '0:9')):
        to_terminal(lab, args)
        check(lab.run(*args, '-o', '-').stdout, args)


def to_terminal(lab, args):
    """Commands refuse to write binary output to a terminal."""
    try:
        master, terminal = pty.openpty()
    except OSError as e:
        print('skipped: output to a terminal, of which there are none here:', e)
        return
    done = subprocess.run([lab.command, *args, '-o', '-'], stdout=terminal, stderr=subprocess.PIPE,
                          timeout=240, env=dict(os.environ, TRACELAKE_SERVER=lab.server.url))
    os.close(terminal)
    check(done.returncode == 2 and b'terminal' in done.stderr, args, done.stderr)
    os.close(master)


def buffers(lab):
    """Each buffer's streams get files of their own."""
    data = os.environ.get('TL_DATA') or os.path.join(SOURCE, '..', 'shared', 'data')
    seen = 0
    for name in ('q_elem', 'feat_cmpbr', 'rme_test', 'ss_ib_el1ns'):
        snapshot = os.path.join(data, 'coresight', 'snapshots', name)
        if not os.path.isdir(snapshot):
            continue
        done = lab.run('decode', '--snapshot', snapshot, '--out', lab.path(name), status=None)
        told = [line.split(b':')[0].decode() for line in done.stdout.splitlines()]
        check(len(told) == len(set(told)) and sorted(os.path.basename(t) for t in told) ==
              lab.files(name), name, told, lab.files(name))
        check(len(told) > 1, told)
        seen += 1
        # A single one gives the same file, and leaves the others unchanged.
        one = lab.files(name)[-1]
        whole = lab.read(name + '/' + one)
        lab.run('decode', '--snapshot', snapshot, '--buffer', one.split('.')[0], '--out',
                lab.path('one'), status=None)
        check(one in lab.files('one') and lab.read('one/' + one) == whole, one)
    return seen


def main():
    signal.signal(signal.SIGHUP, signal.SIG_DFL)  # commands inherit that it is ignored, from nohup
    with tempfile.TemporaryDirectory() as folder:
        lab = Lab(sys.argv[1], folder)
        made = Maker(128, event64=True, seed=3).trace(20000)
        lab.put('in.stf', bytes(made.out))
        try:
            lab.server.start()
            lab.run('push', '--rig', 'sim', '--format', 'stf', '--trace', 'made', lab.path('in.stf'))
            for part in (its_own_input, disk_full, interrupted, refused):
                part(lab)
                print(part.__doc__)
            print(buffers(lab), 'snapshots with several buffers')
        finally:
            lab.server.close()


if __name__ == '__main__':
    main()
