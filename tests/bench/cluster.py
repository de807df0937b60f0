# SPDX-License-Identifier: MIT
"""A store in a Ceph cluster beside a folder on this machine and beside `rados bench`, in turns.

`./dev bench store --store rados:POOL?conf=…`; writes to a namespace of its own and removes it."""
import os
import re
import shutil
import subprocess
import tempfile
import urllib.parse

SECONDS = 4


class Pool:
    def __init__(self, url):
        pool, _, query = url[len('rados:'):].partition('?')
        options = dict(urllib.parse.parse_qsl(query))
        self.space = 'bench-%d' % os.getpid()
        options['namespace'] = self.space
        self.url = 'rados:%s?%s' % (pool, '&'.join('%s=%s' % o for o in options.items()))
        self.command = ['rados', '-p', pool, '-N', self.space]
        if 'conf' in options:
            self.command += ['-c', options['conf']]
        if 'id' in options:
            self.command += ['-n', 'client.' + options['id']]

    def run(self, *args):
        return subprocess.run(self.command + list(args), check=True, text=True,
                              stdout=subprocess.PIPE).stdout

    def bench(self, kind, *args):
        """MB/s and operations a second."""
        out = self.run('bench', str(SECONDS), kind, '--no-cleanup', *args)
        rate = re.search(r'Bandwidth \(MB/sec\):\s*([\d.]+)', out)
        each = re.search(r'Average IOPS:\s*([\d.]+)', out)
        return float(rate[1]) * 1.048576, float(each[1])

    def close(self):
        names = self.run('ls').split()
        for i in range(0, len(names), 500):
            self.run('rm', *names[i:i + 500])


def rates(build, store):
    out = subprocess.run([os.path.join(build, 'tests/bench/store_rates'), store], check=True,
                         text=True, stdout=subprocess.PIPE).stdout
    rows = [line.split('\t') for line in out.splitlines() if line.startswith('@bench')]
    return [dict(stage=r[1], input=r[2], value=float(r[3]), unit=r[4]) for r in rows]


def measure(build, url):
    pool = Pool(url)
    folder = tempfile.mkdtemp(prefix='bench-store-', dir=build)
    try:
        write = pool.bench('write', '-t', '8', '-b', '4194304')[0]
        read = pool.bench('seq', '-t', '8')[0]
        pool.run('cleanup')
        pool.bench('write', '-t', '8', '-b', '65536')
        each = pool.bench('rand', '-t', '1')[1]
        pool.run('cleanup')
        ours = rates(build, pool.url)
        beside = rates(build, os.path.join(folder, 'data'))
        for row, peer in zip(ours, (write, write, read, each)):
            row.update(input='cluster: ' + row['input'], peer='rados bench', peer_value=peer,
                       ratio=row['value'] / peer)
        for row in beside:
            row['input'] = 'folder: ' + row['input']
        return ours + beside
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        pool.close()
