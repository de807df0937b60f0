#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Configurations from what a system says of itself, and compared with bytes. usage: setup.py BUILD [NAME…]"""
import json
import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import lab as labs  # noqa: E402
from lab import check, streams  # noqa: E402

TESTS = {}


def test(function):
    TESTS[function.__name__] = function
    return function


def recorded(lab):
    """A capture of two simulated cores, its program and its right configuration; how many instructions it has."""
    lab.start()
    names = capture, config, image = lab.path('cap.bin'), lab.path('right.ini'), lab.path('prog.bin')
    subprocess.run([lab.rig, '--kind', 'etm', '--server', lab.url, '--trace', 'sim', '--bytes', '60000', '--rate',
                    '100000000', '--save', capture, '--config', config, '--image', image, '--quiet'],
                   check=True, timeout=labs.TIMEOUT)
    return names


def instructions(lab, *args):
    return {name: sum(line[0] == 'I' for line in lines)
            for name, lines in streams(lab.run('decode', '--text', *args).text()).items()}


def registers(path):
    """The sections of a configuration: [(name, {key: value})]."""
    out = []
    with open(path) as f:
        for line in f:
            head = re.match(r'\[(.*)\]', line)
            if head:
                out.append((head[1], {}))
            elif '=' in line:
                key, value = line.strip().split('=', 1)
                out[-1][1][key] = value
    return out


def changed(path, to, *changes):
    with open(path) as f:
        text = f.read()
    for pattern, by in changes:
        text, n = re.subn(pattern, by, text)
        check(n, pattern, 'is not in', text)
    with open(to, 'w') as f:
        f.write(text)
    return to


@test
def setup_sysfs(lab):
    """A copy of sysfs gives a configuration with which a capture decodes as with the right one."""
    capture, right, image = recorded(lab)
    root = lab.path('devices')
    for number, (name, of) in enumerate(s for s in registers(right) if s[0].startswith('source')):
        for file, value in (('cpu', str(number)), ('mgmt/trcconfig', of['TRCCONFIGR']),
                            ('mgmt/trctraceid', of['id']), ('trcidr/trcidr0', of['TRCIDR0']),
                            ('trcidr/trcidr1', of['TRCIDR1']), ('trcidr/trcidr2', of['TRCIDR2']),
                            ('trcidr/trcidr8', of.get('TRCIDR8', '0x0'))):
            path = os.path.join(root, 'etm%d' % (1 - number), file)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, 'w') as f:
                f.write(value + '\n')
    made, mended = lab.path('made.ini'), lab.path('mended.ini')
    told = lab.run('setup', '--sysfs', root, '-o', made).err.decode()
    check('the core of cpu 0 is not known' in told, told)
    told = lab.run('setup', '--check', '--sysfs', root, capture, '-o', mended, status=1).text()
    check(re.fullmatch(r'the format is said to be tpiu, the frames are tpiu,sync=fsync: with that .* packets .*\n', told),
          told)
    there = instructions(lab, '--config', right, '--image', image, capture)
    check(sum(there.values()) > 1000, there)
    check(instructions(lab, '--config', mended, '--image', image, capture) == there, open(mended).read())
    listing = subprocess.run(['grep', '-r', '.', root], stdout=subprocess.PIPE, check=True).stdout
    with open(lab.path('listing'), 'wb') as f:
        f.write(listing)
    with open(made) as f:
        check(lab.run('setup', lab.path('listing')).text() == f.read(), 'a listing says the same')
    check('nothing in its packets contradicts' in
          lab.run('setup', '--check', '--format', 'tpiu,sync=fsync', '--sysfs', root, capture).text(), 'it fits')


@test
def setup_check(lab):
    """What a configuration has wrong is told by the packets, and corrected."""
    capture, right, image = recorded(lab)
    answer = json.loads(lab.run('setup', '--check', '--config', right, capture, '--json').text())
    check(answer['findings'] == [] and answer['setup'].startswith('[trace]'), answer)
    wrong, mended = lab.path('wrong.ini'), lab.path('mended.ini')
    changed(right, wrong, (r'TRCIDR2=\w+', 'TRCIDR2=0x8'), (r'TRCCONFIGR=\w+', 'TRCCONFIGR=0x0'))
    told = lab.run('setup', '--check', '--config', wrong, capture, '-o', mended, status=1).text()
    check(re.search(r'cs\.10: TRCIDR2 says CIDSIZE 0 \(.*\), the packets say 4: with that there are 0 errors', told),
          told)
    check(re.search(r'cs\.10: TRCCONFIGR says CID 0 \(context IDs\), the packets say 1', told), told)
    good = lab.run('setup', '--check', '--config', mended, capture).text()
    check('nothing in its packets contradicts' in good, good)
    check(instructions(lab, '--config', mended, capture) == instructions(lab, '--config', right, capture), mended)


@test
def setup_ids(lab):
    """Trace IDs in the frames that no source has."""
    capture, right, image = recorded(lab)
    first = registers(right)[:2]
    check(first[1][0].startswith('source'), first)
    one = lab.path('one.ini')
    with open(one, 'w') as f:
        for section, keys in first:
            f.write('[%s]\n%s\n' % (section, '\n'.join('%s=%s' % k for k in keys.items())))
    told = lab.run('setup', '--check', '--config', one, capture, status=1).text()
    check(re.search(r'trace ID 0x\w+ is in the frames, as an ETMv4 or ETE, but no \[source\] has it', told), told)


@test
def setup_refused(lab):
    """Usage, and inputs that say nothing."""
    empty = lab.path('empty')
    os.mkdir(empty)
    lab.fails(1, 'no CoreSight trace unit', 'setup', '--sysfs', empty)
    lab.fails(1, 'no CoreSight trace unit', 'setup', empty)
    with open(lab.path('x.dtb'), 'wb') as f:
        f.write(bytes.fromhex('d00dfeed') + bytes(60))
    lab.fails(1, 'no flattened device tree', 'setup', lab.path('x.dtb'))
    lab.fails(2, '--check: give the capture', 'setup', '--check', '--sysfs', empty)
    lab.fails(2, 'say one of', 'setup', '--sysfs', empty, '--dt', 'x')
    lab.fails(2, '--from moon', 'setup', '--from', 'moon', empty)
    lab.fails(2, 'besides is a capture', 'setup', '--sysfs', empty, 'x')


@test
def setup_snapshot(lab):
    """A snapshot's configuration decodes its buffer as the snapshot does."""
    folder = labs.snapshot('juno_r1_1')
    lab.fails(2, 'choose one by --buffer', 'setup', '--snapshot', folder)
    made = lab.path('juno.ini')
    lab.run('setup', '--snapshot', folder, '--buffer', 'ETB_0', '-o', made)
    whole = lab.run('decode', '--snapshot', folder, '--buffer', 'ETB_0', '--text', status=None)
    again = lab.run('decode', '--config', made, '--text', os.path.join(folder, 'cstrace.bin'), status=None)
    check(whole.out == again.out and len(whole.out) > 10000, len(whole.out), len(again.out))


if __name__ == '__main__':
    labs.main(TESTS)
