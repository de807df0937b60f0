# SPDX-License-Identifier: MIT
"""A tracelake with one more row in its table of formats: everything works for it, from the command
line to the page's requests."""

import json
import os
import subprocess
import sys
import urllib.request

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'e2e'))
from lab import check, main, only, streams  # noqa: E402


def ask(lab, path):
    request = urllib.request.Request(lab.url + path, headers={'Accept': 'application/json'})
    with urllib.request.urlopen(request, timeout=240) as reply:
        return reply.read()


def ask_json(lab, path):
    return json.loads(ask(lab, '/api/v1/traces' + path))


def toy(lab):
    """Decoded, in files, pushed, served, in tiles: always the instructions that were traced."""
    lab.tracelake = os.path.join(lab.build, 'tracelake-toy')
    subprocess.run([os.path.join(lab.build, 'tests', 'toy', 'test_toy'), lab.dir], check=True)
    with open(lab.path('truth.txt')) as f:
        truth = f.read().splitlines()
    args = ['--format', 'toy,id=3', '--image', lab.path('program.bin') + '@0x10000']
    for threads in '1', '3':
        text = lab.run('decode', *args, '--threads', threads, '--text', lab.path('trace.toy')).text()
        check(only(streams(text)['toy.3'], 'I') == truth, 'flow differs with', threads, 'threads')
    lab.run('decode', *args, '--out', lab.path('out'), lab.path('trace.toy'))
    lab.run('check', lab.path('out/toy.3.zstf'))

    lab.start()
    lab.run('push', '--trace', 't', *args, lab.path('trace.toy'))
    shown = ask_json(lab, '/t')
    (stream,) = shown['streams']
    check(stream['protocol'] == 'toy' and stream['name'] == 'toy.3', stream)
    check(int(stream['insns']) == len(truth), stream, len(truth))
    text = lab.run('get', 't/toy.3', '--text').text()
    check(only(streams(text)['toy.3'], 'I') == truth, 'what is served differs')
    check(lab.run('verify', 't').text() == 't: 0 findings\n', 'verify finds something')
    check(int(stream['shards']) > 1, stream)

    # What the page requests: itself, tiles of the timeline, statistics, instructions.
    check(b'<html' in ask(lab, '/'), 'no page')
    for level in 0, 5:
        (lane,) = ask_json(lab, '/t/tiles/insn/%d/0' % level)['lanes']
        width = len(lane['insns']) << int(shown['tile_base']['insn']) + 2 * level
        check(sum(lane['insns']) == min(width, len(truth)), level, sum(lane['insns']))
    stats = ask_json(lab, '/t/streams/toy.3/stats')
    conditional = sum(line.split()[2].startswith('54') for line in truth)
    check(stats['mix']['conditional branch'] == conditional, stats, conditional)
    check(not stats['gaps'], stats)
    row = ask_json(lab, '/t/streams/toy.3/insns?from=1000&count=1')[0]
    check('I %016x %s' % (int(row['pc'], 16), row['encoding']) == truth[1000], row, truth[1000])


main({'toy': toy})
