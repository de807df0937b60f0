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


LOG = """core   0: 3 0x0000000080000000 (0x00000297) x5  0x0000000080000000
core   0: 3 0x0000000080000004 (0x00c28067) x1  0x0000000080000008
core   1: 3 0x0000000080000000 (0x00000297) x5  0x0000000080000000
core   0: 3 0x000000008000000c (0x0505) x10 0x0000000000000001 c768_mstatus 0x8000000a00006000
core   0: 3 0x000000008000000e (0x00a2b023) mem 0x0000000080001000 0x0000000000000001
core   0: exception trap_machine_ecall, epc 0x0000000080000012
core   0:           tval 0x0000000000000000
core   0: 3 0x0000000080000100 (0x34202573) x10 0x000000000000000b
core   0: 3 0x0000000080000104 (0x30200073) c784_mstatush 0x0
core   0: 3 0x0000000080000016 (0x0001)
core   0: 3 0x0000000080000018 (0x00000013)
core   0: 3 0x0000000080000200 (0x00000013)
"""
EXECUTED = """core   0: 0x0000000080000000 (0x00000297) auipc   t0, 0x0
core   0: 0x0000000080000004 (0x00c28067) jr      t0, 12
core   0: >>>>  work
core   0: 0x000000008000000c (0x00000505) c.addi  a0, 1
core   0: 0x000000008000000e (0x00a2b023) sd      a0, 0(t0)
core   0: 0x0000000080000012 (0x00000073) ecall
core   0: exception trap_machine_ecall, epc 0x0000000080000012
core   0: 0x0000000080000100 (0x34202573) csrr    a0, mcause
core   0: 0x0000000080000104 (0x30200073) mret
core   0: 0x0000000080000016 (0x00000001) c.nop
core   0: 0x0000000080000018 (0x00000013) nop
core   0: 0x0000000080000200 (0x00000013) nop
"""


def model_instructions(log):
    return [(int(pc, 16), int(code, 16)) for pc, code in re.findall(r'core   0: 3 (0x\w+) \((0x\w+)\)', log)]


@test
def model_log(lab):
    """What a model executed is a trace, in either form of its log; it is compared with another run's."""
    lab.start()
    told = model_instructions(LOG)
    for name, text in (('commits', LOG), ('executed', EXECUTED)):
        log = lab.path(name + '.log')
        with open(log, 'w') as f:
            f.write(text)
        decoded = lab.run('decode', '--text', log).text()
        insns = [(int(line.split()[1], 16), int(line.split()[2], 16)) for line in decoded.splitlines() if line[:2] == 'I ']
        check(insns == told, name, decoded)
        check('X machine-ecall 11 ' in decoded, name, decoded)
        lab.run('push', '--trace', name, log)
    check(lab.run('decode', '--text', '--format', 'spike', '-', stdin=LOG.encode()).out ==
          lab.run('decode', '--text', '-', stdin=LOG.encode()).out ==
          lab.run('decode', '--text', lab.path('commits.log')).out, 'from a pipe')
    stream = json.loads(lab.run('show', '--json', 'commits').text())[0]['streams'][0]['name']
    same = lab.run('diff', 'commits/' + stream, 'executed/' + stream, status=None).text()
    with open(lab.path('other.log'), 'w') as f:
        f.write(LOG.replace('core   0: 3 0x0000000080000018 (0x00000013)\n', ''))
    lab.run('push', '--trace', 'other', lab.path('other.log'))
    other = lab.run('diff', 'commits/' + stream, 'other/' + stream, status=None).text()
    check(same.startswith('identical') and 'they diverge at A 7, B 7' in other, same, other)
    # Registers and stored data are in its records.
    lab.run('decode', '--out', lab.path('out'), lab.path('commits.log'))
    dumped = lab.run('dump', os.path.join(lab.path('out'), stream + '.zstf')).text()
    check('80001000' in dumped and '8000000a00006000' in dumped, dumped[:2000])
    checked = lab.run('check', os.path.join(lab.path('out'), stream + '.zstf')).text()
    check(': 0 errors' in checked, checked)
    check(len([line for line in lab.run('decode', '--text', '--format', 'spike,core=1',
                                        lab.path('commits.log')).text().splitlines() if line[:2] == 'I ']) == 1, 'core 1')
    lab.fails(1, 'no instruction of core 7', 'decode', '--text', '--format', 'spike,core=7', lab.path('commits.log'))
    lab.fails(2, 'only core=N', 'decode', '--text', '--format', 'spike,hart=1', lab.path('commits.log'))


if __name__ == '__main__':
    labs.main(TESTS)
