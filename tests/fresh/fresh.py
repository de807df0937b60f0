#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The first hour on a Debian 12 that has nothing: the packages are installed by apt in a folder of their own, `view` shows
five captures, and Python talks to a server. Each step's time is printed.

usage: fresh.py BUILD [--build]     as root; --build makes the packages in there, by ./dev package, from a clone

TL_FRESH=1       do it: it downloads packages of 150 MB
TL_FRESH_ROOT    the same, with a minimal Debian 12 (made by `debootstrap --variant=minbase bookworm DIR`), which is copied; otherwise
                 debootstrap makes one
TL_FRESH_FILES   files that are copied into it, separated by colons, for machines that reach their mirror by settings or
                 certificates of their own; always: /etc/resolv.conf, /etc/hosts, /etc/ssl/certs/ca-certificates.crt, and
                 /usr/local/share/ca-certificates, of which the package ca-certificates makes that file anew
Without root, debootstrap or a mirror, and without captures (TL_DATA): skipped."""

import glob
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'e2e'))
from lab import DATA, SOURCE, free_port  # noqa: E402

ENVIRONMENT = {'PATH': '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin', 'HOME': '/root', 'LANG': 'C.UTF-8',
               'DEBIAN_FRONTEND': 'noninteractive'}
STEP = 3600  # seconds at most

# What it is, and the words for `view`: files are those below TL_DATA.
VIEWS = (('perf.data, Intel PT', ['perf/pt/pt-five-tasks.data', '--symfs', 'perf/symfs']),
         ('snapshot, CoreSight', ['coresight/snapshots/juno_r1_1']),
         ('N-Trace and ELF', ['--format', 'ntrace', 'riscv/nt-loops-rpt.nex', 'riscv/nt-loops-rpt.ini']),
         ('E-Trace and configuration', ['riscv/et-jumps.etr', 'riscv/et-jumps.ini']),
         ('STF of a simulator', ['stf/dhry_riscv.zstf']))


def skip(why):
    print('skipped: ' + why)
    sys.exit(77)


class Fresh:
    """A root folder with Debian, in which commands run."""

    def __init__(self, folder):
        self.root = os.path.join(folder, 'root')
        self.mounts = []

    def make(self):
        ready = os.environ.get('TL_FRESH_ROOT')
        if ready:
            subprocess.run(['cp', '-a', ready, self.root], check=True)
        elif not shutil.which('debootstrap'):
            skip('no debootstrap, and no TL_FRESH_ROOT')
        elif subprocess.run(['debootstrap', '--variant=minbase', 'bookworm', self.root], stdout=subprocess.PIPE,
                            stderr=subprocess.STDOUT).returncode:
            skip('debootstrap cannot reach a mirror')
        files = ['/etc/resolv.conf', '/etc/hosts', '/etc/ssl/certs/ca-certificates.crt',
                 *glob.glob('/usr/local/share/ca-certificates/*.crt')]
        for path in files + os.environ.get('TL_FRESH_FILES', '').split(':'):
            if path and os.path.exists(path):
                os.makedirs(self.root + os.path.dirname(path), exist_ok=True)
                shutil.copy(path, self.root + path)
        for kind, name in (('proc', 'proc'), ('bind', 'dev')):
            to = os.path.join(self.root, name)
            how = ['-t', 'proc', 'proc'] if kind == 'proc' else ['--bind', '/dev']
            subprocess.run(['mount', *how, to], check=True)
            self.mounts.append(to)

    def close(self):
        for to in reversed(self.mounts):
            subprocess.run(['umount', to], check=False)

    def command(self, *args):
        return ['chroot', self.root, *args]

    def run(self, *args):
        done = subprocess.run(self.command(*args), env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              timeout=STEP, text=True, errors='replace')
        if done.returncode:
            raise AssertionError('%s: status %d\n%s' % (' '.join(args), done.returncode, done.stdout[-3000:]))
        return done.stdout

    def inside(self, path):
        return '/' + os.path.relpath(path, self.root)


class Timer:
    def __init__(self):
        self.at = time.monotonic()

    def step(self, what):
        now = time.monotonic()
        print('%7.1f s  %s' % (now - self.at, what), flush=True)
        self.at = time.monotonic()


def packages_of(build, fresh):
    """The packages of what is built here."""
    out = os.path.join(fresh.root, 'root', 'packages')
    os.makedirs(out)
    done = subprocess.run(['cpack', '--config', os.path.join(build, 'CPackConfig.cmake'), '-B', out + '.work', '-D',
                           'CPACK_PACKAGE_DIRECTORY=' + out, '-D', 'CPACK_DEBIAN_COMPRESSION_TYPE=gzip'],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode:
        raise AssertionError('cpack: ' + done.stdout[-2000:])
    shutil.rmtree(out + '.work', ignore_errors=True)
    return out


def packages_made(fresh):
    """The packages of a clone, made in there by what README says."""
    to = os.path.join(fresh.root, 'root', 'tracelake')
    subprocess.run(['git', 'clone', '-q', SOURCE, to], check=True)
    fresh.run('apt-get', 'install', '-y', '-q', '--no-install-recommends', 'git')
    fresh.run('bash', '-c', 'cd /root/tracelake && ./dev package')
    return os.path.join(to, 'build', 'packages')


def view(fresh, args):
    """Show a capture until its page is there; the time to the address, and to its instructions."""
    begun = time.monotonic()
    words = [('/root/data/' + word) if os.path.exists(os.path.join(DATA, word)) else word for word in args]
    shown = subprocess.Popen(fresh.command('tracelake', 'view', '--no-browser', *words), env=ENVIRONMENT,
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        address = shown.stdout.readline().strip()
        there = time.monotonic() - begun
        if not address.startswith('http://'):
            raise AssertionError('view %s: %s' % (args, shown.communicate()[1][-2000:]))
        base = address.partition('/#/')[0]
        with urllib.request.urlopen(base + '/', timeout=60) as reply:
            assert b'<html' in reply.read().lower(), base
        listed = subprocess.run(fresh.command('tracelake', 'ls', '--server', base), env=ENVIRONMENT,
                                stdout=subprocess.PIPE, text=True, check=True).stdout
        insns = sum(int(line.split()[5]) for line in listed.splitlines()[1:])
        assert insns > 0, listed
    finally:
        shown.send_signal(signal.SIGINT)
        shown.communicate(timeout=60)
    assert shown.returncode == 0, shown.returncode
    return there, insns


def python_talks(fresh):
    """The package for Debian's own Python asks a server that runs in there."""
    port, tls = free_port(), free_port()
    server = subprocess.Popen(fresh.command('tracelake', 'serve', '--data', '/root/lake', '--listen', '127.0.0.1:%d' % port,
                                            '--listen-tls', '127.0.0.1:%d' % tls), env=ENVIRONMENT, stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, text=True)
    try:
        for line in server.stdout:
            if line.strip() == 'ready':
                break
        url = 'http://127.0.0.1:%d' % port
        fresh.run('tracelake', 'push', '--server', url, '--trace', 'one', '/root/data/stf/dhry_riscv.zstf')
        said = fresh.run('python3', '-c', 'import tracelake; print([t.id for t in tracelake.connect(%r).traces()])' % url)
        assert re.search(r"\['one'\]", said), said
    finally:
        server.send_signal(signal.SIGTERM)
        server.wait(timeout=60)


def main():
    build = os.path.abspath(sys.argv[1])
    if not (os.environ.get('TL_FRESH') or os.environ.get('TL_FRESH_ROOT')):
        skip('TL_FRESH=1 is not set: it downloads a Debian')
    if os.geteuid() != 0:
        skip('a folder with Debian is entered by root only')
    if not os.path.isdir(os.path.join(DATA, 'stf')):
        skip('no captures in ' + DATA)
    folder = tempfile.mkdtemp(prefix='tracelake-fresh-', dir='/var/tmp')
    fresh = Fresh(folder)
    timer = Timer()
    try:
        fresh.make()
        timer.step('a Debian 12 with nothing')
        try:
            fresh.run('apt-get', 'update', '-q', '--error-on=any')
        except AssertionError as why:
            skip('apt cannot reach a mirror: %s' % why)
        debs = packages_made(fresh) if '--build' in sys.argv[2:] else packages_of(build, fresh)
        timer.step('./dev package' if '--build' in sys.argv[2:] else 'packages of ' + build)
        names = sorted(fresh.inside(os.path.join(debs, n)) for n in os.listdir(debs) if n.endswith('.deb'))
        fresh.run('apt-get', 'install', '-y', '-q', '--no-install-recommends', *names)
        timer.step('apt install of %d packages' % len(names))
        for _, args in VIEWS:
            for word in args:
                here = os.path.join(DATA, word)
                if os.path.exists(here):
                    to = os.path.join(fresh.root, 'root/data', os.path.dirname(word))
                    os.makedirs(to, exist_ok=True)
                    subprocess.run(['cp', '-rL', here, to], check=True)
        for name in ('loops.elf', 'jumps.elf'):
            shutil.copy(os.path.join(DATA, 'riscv', name), os.path.join(fresh.root, 'root/data/riscv'))
        timer.step('captures copied')
        for what, args in VIEWS:
            there, insns = view(fresh, args)
            timer.step('view: %s: address after %.1f s, %d instructions' % (what, there, insns))
        python_talks(fresh)
        timer.step('Python of the package asks a server')
        print('all steps passed')
    finally:
        fresh.close()
        if not fresh.mounts or not any(os.path.ismount(m) for m in fresh.mounts):
            shutil.rmtree(folder, ignore_errors=True)


if __name__ == '__main__':
    main()
