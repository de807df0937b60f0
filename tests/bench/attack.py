#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""How long small calls take while the server is attacked: ./dev bench attack. The attackers and the client that is
measured are in attack.c.

usage: attack.py --build DIR [SECONDS]     SECONDS: for each figure, default 5
"""
import os, subprocess, sys

import end

MORE = 20  # ms that an attack may add


class Attack(end.Bench):
    def measure(self, seconds):
        subprocess.run([os.path.join(self.build, 'tests/bench/write_inputs'), self.dir, str(self.mib), end.INPUTS[0]],
                       check=True, stdout=subprocess.DEVNULL)
        self.start(0, self.path('lake'))
        subprocess.run(self.command(0, 'push', '--server', self.url, '--trace', 't', '--format', 'etm4,id=0x10',
                                    '--config', self.path('0.ini'), self.path('0.trace')),
                       check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        run = subprocess.run([os.path.join(self.build, 'tests/bench/attack'), self.url, str(seconds)], check=True,
                             stdout=subprocess.PIPE, text=True)
        for line in run.stdout.splitlines():
            _, stage, what, value, unit, _, idle = line.split('\t')
            value, most = float(value), float(idle) + MORE
            self.rows.append(dict(stage=stage, input=what, value=value, unit=unit,
                                  peer='at most' if value <= most else 'MISSED, at most', peer_value=most,
                                  ratio=value / most))
        return self.rows


def measure(build, seconds=5):
    bench = Attack(build, 8)
    try:
        return bench.measure(seconds)
    finally:
        bench.close()


if __name__ == '__main__':
    for r in measure(sys.argv[2], *sys.argv[3:]):
        print('%-20s %-32s %8.2f %s  %s %.2f' % (r['stage'], r['input'], r['value'], r['unit'], r['peer'], r['peer_value']))
