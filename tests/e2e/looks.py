#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What one asks of a trace, against its text. usage: looks.py BUILD [NAME…]"""

import json
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from lab import check, main  # noqa: E402
from e2e import only, simulated, streams, wait_sealed  # noqa: E402

TESTS = {}


def test(function):
    TESTS[function.__name__] = function
    return function


@test
def finding(lab):
    """The next and the previous one from a place, in a stream and in all of them."""
    simulated(lab, 40000)
    wait_sealed(lab, 'sim')
    name = 'sim/cs.10'
    whole = only(streams(lab.run('get', name, '--text').text())['cs.10'], 'I')
    pc = whole[len(whole) // 2].split()[1]
    places = [i for i, line in enumerate(whole) if line.split()[1] == pc]
    middle = places[len(places) // 2]
    for way, wanted in (('--after', [p for p in places if p > middle][:3]),
                        ('--before', [p for p in places if p < middle][::-1][:3])):
        found = json.loads(lab.run('find', name, 'pc:' + pc, way, str(middle), '--limit', '3',
                                   '--count', '--json').text())
        check([hit['insn'] for hit in found['hits']] == wanted, found, wanted)
        check(found['total'] == len(places), found['total'], len(places))
        check(not wanted or found['before'] == places.index(wanted[0]), found, wanted)
    everywhere = json.loads(lab.run('find', 'sim', '--all', 'exception', '--json').text())
    times = [hit['time'] for hit in everywhere['hits']]
    check(times == sorted(times) and len({hit['stream'] for hit in everywhere['hits']}) == 2,
          everywhere)
    lab.fails(2, r'STREAM:INSN', 'find', 'x', '--all', 'gap', '--after', '5')
    lab.fails(3, r'no symbol', 'find', name, 'call:no such function')


if __name__ == '__main__':
    main(TESTS)
