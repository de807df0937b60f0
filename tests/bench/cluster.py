# SPDX-License-Identifier: MIT
"""A store in a Ceph cluster compared with a folder on this machine and with `rados bench`, in
turns.

`./dev bench store --store rados:POOL?conf=…`; writes to a namespace of its own and removes it. The
peer of each row has the same amount in flight, in pieces of that size: a rig has up to 4 MiB in
flight, a capture is read sequentially in pieces of 1 MiB.
"""
import os
import re
import shutil
import statistics
import subprocess
import tempfile
import urllib.parse

SECONDS = 2  # for reading
ROUNDS = 3  # in turns; the median of each is used, since a machine has other work
BYTES = 256 << 20  # written by the peer, and for each row of store_rates


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

    def bench(self, kind, flight, size=None):
        """MB/s and operations per second."""
        args = ['bench', str(SECONDS if size is None else 60), kind, '--no-cleanup', '-t', str(flight)]
        if size is not None:
            args += ['-b', str(size), '--max-objects', str(BYTES // size)]
        out = self.run(*args)
        rate = re.search(r'Bandwidth \(MB/sec\):\s*([\d.]+)', out)
        each = re.search(r'Average IOPS:\s*([\d.]+)', out)
        return float(rate[1]) * 1.048576, float(each[1])

    def empty(self):
        names = self.run('ls').split()
        for i in range(0, len(names), 500):
            self.run('rm', *names[i:i + 500])


def rates(build, store):
    out = subprocess.run([os.path.join(build, 'tests/bench/store_rates'), store], check=True,
                         text=True, stdout=subprocess.PIPE).stdout
    rows = [line.split('\t') for line in out.splitlines() if line.startswith('@bench')]
    return [dict(stage=r[1], input=r[2], value=float(r[3]), unit=r[4]) for r in rows]


def peers(pool):
    """The cluster's rate for each row of store_rates."""
    rates = []
    for flight in 1, 8:
        rates.append(pool.bench('write', flight, 4 << 20)[0])
        pool.run('cleanup')
    pool.bench('write', 8, 1 << 20)
    rates.append(pool.bench('seq', 1)[0])
    pool.run('cleanup')
    pool.bench('write', 8, 64 << 10)
    for flight in 1, 16:
        rates.append(pool.bench('rand', flight)[1])
    pool.run('cleanup')
    return rates


def middle(rounds):
    """The rows of several runs with the median of their rates."""
    return [dict(rows[0], value=statistics.median(row['value'] for row in rows)) for rows in zip(*rounds)]


def measure(build, url):
    pool = Pool(url)
    folder = tempfile.mkdtemp(prefix='bench-store-', dir=build)
    theirs, cluster, beside = [], [], []
    try:
        for i in range(ROUNDS):
            theirs.append(peers(pool))
            cluster.append(rates(build, pool.url))
            pool.empty()
            beside.append(rates(build, os.path.join(folder, str(i))))
            shutil.rmtree(os.path.join(folder, str(i)))
        ours = middle(cluster)
        for row, peer in zip(ours, map(statistics.median, zip(*theirs))):
            row.update(input='cluster: ' + row['input'], peer='rados bench', peer_value=peer,
                       ratio=row['value'] / peer)
        beside = middle(beside)
        for row in beside:
            row['input'] = 'folder: ' + row['input']
        return ours + beside
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        pool.empty()
