#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""One push and one tail with three servers on the cluster of TL_RADOS, two of which are killed:
both continue by themselves, with nothing repeated and nothing missing. Run by hand:
TL_BUILD=$PWD/build tests/rados/with_cluster.sh tests/rados/changes_over.py
"""
import os
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'e2e'))
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from lab import Lab, check, wait  # noqa: E402
from rados import PUSH, Pool, capture, ends_well, rows  # noqa: E402

lab = Lab(os.environ['TL_BUILD'])
pool = Pool(lab)
try:
    path, expected = capture(lab, 600000)
    servers = [pool.server() for _ in range(3)]
    lab.servers = ','.join(s.url for s in servers)
    with open(path, 'rb') as f:
        data = f.read()
    push = lab.spawn(*PUSH, '-', stdin=subprocess.PIPE)
    part = len(data) // 3
    for i, server in enumerate(servers):
        begun = time.monotonic()
        push.stdin.write(data[i * part:(i + 1) * part if i < 2 else len(data)])
        push.stdin.flush()
        wait('durable bytes',
             lambda: rows(server).get('t', {}).get('raw_bytes', 0) >= (i + 1) * part)
        print('durable at server %d after %.1f s' % (i, time.monotonic() - begun))
        if i == 0:
            with open(lab.path('tail'), 'wb') as out:
                tail = subprocess.Popen([lab.tracelake, 'tail', 't', '--from', '0'],
                                        env=lab.environment(), stdout=out, stderr=subprocess.PIPE)
            lab.children.append(tail)
            wait('text of the tail', lambda: os.path.getsize(lab.path('tail')) > 1000)
        if i < 2:
            server.kill()
    push.stdin.close()
    check(push.wait(60) == 0, push.stderr.read())
    check(tail.wait(60) == 0, tail.stderr.read())
    ends_well(path, expected, servers[2])
    with open(lab.path('tail')) as f:
        got = f.read()
    same = len(os.path.commonprefix([got, expected]))
    check(got == expected, 'the tail differs from %d on: %d for %d characters,' % (same, len(got), len(expected)),
          repr(got[same - 100:same + 100]), 'for', repr(expected[same - 100:same + 100]))
finally:
    pool.close()
    lab.close()
