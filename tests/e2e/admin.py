#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What docs/admin.md and docs/storage.md tell an administrator to type is typed: backup and restoring, an upgrade,
retention, quotas, tokens. Only places and limits are others; systemctl starts and ends the test's server.
usage: admin.py BUILD [NAME…]"""

import os
import re
import shutil
import signal
import subprocess
import sys
import urllib.request

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from e2e import simulated, wait_sealed  # noqa: E402
from lab import Skip, check, main, wait  # noqa: E402

TESTS = {}
DOCS = os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..', 'docs')


def test(function):
    TESTS[function.__name__] = function
    return function


def lines(page, heading, word=''):
    """The lines of the block of a section in which there is a word."""
    with open(os.path.join(DOCS, page)) as f:
        section = re.search(r'(?ms)^#+ %s\n(.*?)(?=^#+ |\Z)' % heading, f.read())
    check(section, page, heading)
    for block in re.findall(r'(?m)(?:^    .*\n)+', section[1]):
        if word in block:
            return [line[4:] for line in block.splitlines()]
    raise AssertionError('%s, %s: no block with %s' % (page, heading, word))


class Administrator:
    """Types lines as they stand, on a machine whose folders are the test's."""

    def __init__(self, lab):
        self.lab = lab
        self.options = []  # of the service
        os.makedirs(lab.path('tools'))
        os.makedirs(lab.path('etc'))
        for name, text in (('apt', ''), ('chown', ''), ('rsync', 'mkdir -p "${4}" && cp -a "$3." "$4"\n')):
            if name != 'rsync' or not shutil.which(name):
                with open(os.path.join(lab.path('tools'), name), 'w') as f:
                    f.write('#!/bin/sh\n' + text)
                os.chmod(f.name, 0o755)
        os.symlink(lab.tracelake, lab.path('tools/tracelake'))

    def service(self, what):
        if what in ('stop', 'restart'):
            self.lab.stop()
        if what in ('start', 'restart'):
            self.lab.start(*self.options)
        if what == 'reload':
            self.lab.server.send_signal(signal.SIGHUP)

    def types(self, line, **replaced):
        """Type a line, with words replaced by others. Returns what it prints."""
        if line.startswith('systemctl '):
            check(line.endswith(' tracelake'), line)
            self.service(line.split()[1])
            return ''
        for a, b in (('/var/lib/tracelake', self.lab.data), ('/etc/tracelake', self.lab.path('etc')),
                     ('/backup', self.lab.path('backup')), *replaced.items()):
            line = line.replace(a, b)
        done = subprocess.run(['bash', '-eu', '-c', line], cwd=self.lab.dir, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              text=True, timeout=240, check=False, env=dict(
                                  self.lab.environment(), PATH=self.lab.path('tools') + ':' + os.environ['PATH']))
        check(done.returncode == 0, line, 'ends with', done.returncode, done.stdout)
        return done.stdout


def itm(lab, name, n):
    with open(lab.path(name), 'wb') as f:
        f.write(b'\0\0\0\0\0\x80' + bytes(b for i in range(n) for b in (0x09, i & 255)))
    return lab.path(name)


def push(lab, trace, path, *options, rig='bench1', status=0):
    return lab.run('push', '--format', 'itm,id=0', '--rig', rig, '--trace', trace, *options, path, status=status)


@test
def admin_backup(lab):
    """A backup of a running server, made twice, is restored; also without its catalog."""
    if not shutil.which('sqlite3'):
        raise Skip('no sqlite3')
    admin = Administrator(lab)
    simulated(lab, 20000)
    wait_sealed(lab, 'sim')
    push(lab, 'one', itm(lab, 'itm', 3000))
    for line in lines('admin.md', 'Backup', 'sqlite3'):
        admin.types(line)
    push(lab, 'two', itm(lab, 'itm', 5000))
    for line in lines('admin.md', 'Backup', 'sqlite3'):
        admin.types(line)
    expected = [lab.run('get', stream, '--text').out for stream in ('sim/cs.10', 'one', 'two')]
    lab.run('rm', 'one', 'two')
    told = [admin.types(line) for line in lines('admin.md', 'Backup', 'systemctl stop')]
    check('0 findings' in told[-1], told)
    check([lab.run('get', stream, '--text').out for stream in ('sim/cs.10', 'one', 'two')] == expected, 'flow differs')
    lab.stop()
    for name in ('catalog.db', 'catalog.db-wal', 'catalog.db-shm'):
        if os.path.exists(os.path.join(lab.data, name)):
            os.remove(os.path.join(lab.data, name))
    lab.start()
    check([lab.run('get', stream, '--text').out for stream in ('sim/cs.10', 'one', 'two')] == expected, 'flow differs')


@test
def admin_upgrade(lab):
    """A restart in the middle of a push, as an upgrade ends with: the rig goes on by itself, readers find all."""
    admin = Administrator(lab)
    with open(os.path.join(DOCS, 'admin.md')) as f:
        restart = re.search(r'(?s)## Upgrade.*?`(systemctl restart tracelake)`', f.read())
    check(restart, 'no restart')
    lab.start()
    path = itm(lab, 'itm', 100000)
    rig = lab.spawn('push', '--format', 'itm,id=0', '--rig', 'bench1', '--trace', 'live', '--rate', '100K', path)
    wait('bytes', lambda: lab.offset('live') > 10000)
    admin.types(restart[1])
    check(rig.wait(240) == 0, rig.stderr.read())
    with open(path, 'rb') as f:
        check(lab.run('raw', 'live', '-').out == f.read(), 'raw bytes')


@test
def admin_retention(lab):
    """Each rule of the page is set, listed, tried without effect, and removes what it says."""
    admin = Administrator(lab)
    block = lines('storage.md', 'Retention', 'tracelake retain')
    check(block[0].startswith('tracelake serve --data DIR '), block)
    admin.options = block[0].split()[4:]
    simulated(lab, 20000)
    wait_sealed(lab, 'sim')
    admin.service('restart')
    for name in ('old', 'new'):
        push(lab, name, itm(lab, 'itm', 5000))
        wait_sealed(lab, name)
    for line in block[1:]:
        admin.types(line.split('#')[0], **{'trace T': 'trace sim', 'label T': 'label sim'})
    rules = admin.types('tracelake retain')
    for words in ('30d', '200G', '90d', 'team=cpu', '180d', 'sim', 'none', '20G'):
        check(words in rules, words, rules)
    told = admin.types('tracelake retain --dry-run --trace old --raw 1K')
    check('old' in told and 'sim' not in told and 'new' not in told, told)
    check(lab.run('raw', 'old', '-').out, 'a rule that is tried removes')
    admin.types('tracelake retain --trace old --raw 1K --decoded 1K')
    wait('the trace is removed', lambda: 'old' not in lab.run('ls').text(), lab.server_log)
    check('removed by retention' in lab.server_log(), lab.server_log())
    check({line.split()[0] for line in lab.run('ls').text().splitlines()[1:]} == {'sim', 'new'}, lab.run('ls').text())


@test
def admin_quotas(lab):
    """The lines about quotas are accepted as they stand; with smaller numbers they refuse, tell, and make room."""
    admin = Administrator(lab)
    rule, holder = lines('admin.md', 'Quotas', 'quota = ')
    tokens = lab.path('etc/tokens')
    admin.types('umask 077; tracelake token add --tokens /etc/tracelake/tokens --role admin --name me > me.token')
    admin.types("umask 077; tracelake token add --tokens /etc/tracelake/tokens --role push --name lab --rig 'bench*' > lab.token")
    with open(tokens) as f:
        text = f.read()
    words = holder.split('rig=bench* ')[1]
    with open(tokens, 'w') as f:
        f.write(re.sub(r'(?m)^(.*name=lab.*)$', r'\1 ' + words, text))
    conf = lab.path('etc/serve.conf')

    def write(bytes_):
        with open(conf, 'w') as f:
            f.write('tokens = %s\n%s\n' % (tokens, rule.replace('bytes=200G', 'bytes=' + bytes_)))
    write('200G')
    check('fine' in admin.types('tracelake serve --data %s --config /etc/tracelake/serve.conf --check-config' % lab.data))
    write('20K')
    admin.options = ['--config', conf]
    lab.start(*admin.options)
    me, of_lab = ('--token', lab.path('me.token')), ('--token', lab.path('lab.token'))
    push(lab, 'first', itm(lab, 'itm', 5000), *of_lab)
    path = itm(lab, 'more', 6000)

    def more():
        return push(lab, 'second', path, '--retry', '0', *of_lab, status=None)
    wait('the quota refuses', lambda: (lambda done: done.status and b'quota' in done.err.lower())(more()), lab.server_log)
    told = more().err.decode()
    check(re.search(r'rig bench1 has \d+ of at most 20480 bytes .*, and pushes 12006 more: remove traces', told), told)
    with open(lab.path('me.token')) as f:
        request = urllib.request.Request(lab.url + '/metrics', headers={'Authorization': 'Bearer ' + f.read().strip()})
    with urllib.request.urlopen(request, timeout=240) as answer:
        metrics = answer.read().decode()
    check('tracelake_quota_bytes' in metrics and 'tracelake_quota_refused_total' in metrics, metrics)
    push(lab, 'other', path, *me, rig='other')  # no rule for it
    lab.run('rm', 'first', *me)
    wait('a removed trace makes room, or a larger quota', lambda: more().status == 0 or (write('1M'), admin.service('reload'))[0],
         lab.server_log)


@test
def admin_tokens(lab):
    """The lines that add, list and revoke a token."""
    admin = Administrator(lab)
    file = 'etc/tokens'
    admin.types('umask 077; tracelake token add --tokens %s --role admin --name me > me.token' % file)
    lab.start('--tokens', lab.path(file))
    add, listed, revoke, reload = lines('admin.md', 'Access', 'token add')
    admin.types('umask 077; ' + add, FILE=file)
    admin.service('reload')
    check('bench3' in admin.types(listed, FILE=file))
    wait('the token counts', lambda: push(lab, 't', itm(lab, 'itm', 100), '--token', lab.path('bench3.token'), rig='bench3',
                                          status=None).status == 0, lab.server_log)
    admin.types(revoke, FILE=file)
    admin.types(reload)
    wait('it is revoked', lambda: lab.run('ls', '--token', lab.path('bench3.token'), status=None).status == 3, lab.server_log)
    check('bench3' not in admin.types(listed, FILE=file))


if __name__ == '__main__':
    main(TESTS)
