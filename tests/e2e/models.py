#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What a model or a simulated core executed, beside what a core did. usage: models.py BUILD [NAME…]"""
import json
import os
import re
import struct
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import lab as labs  # noqa: E402
from lab import check  # noqa: E402

TESTS = {}


def test(function):
    TESTS[function.__name__] = function
    return function


def executed(text):
    """[(address, encoding)] of flow text."""
    return [(int(line.split()[1], 16), int(line.split()[2], 16)) for line in text.splitlines() if line[:2] == 'I ']


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
        check(executed(decoded) == told, name, decoded)
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


@test
def model_log_repeats(lab):
    """What the execution log tells once, with a count behind it, was executed as often; commits stand there themselves."""
    lines = EXECUTED.splitlines(keepends=True)
    at = next(i for i, line in enumerate(lines) if '0x0000000080000016' in line)
    told = model_instructions(LOG)
    index = next(i for i, (pc, _) in enumerate(told) if pc == 0x80000016)
    for count, times in (('3', 3), ('10', 10), ('1a', 26), ('131074', 1 + (1 << 17))):
        repeats = ['core   0: >>>>  next\n', 'core   0: Executed %s times\n' % count]
        log = ''.join(lines[:at + 1] + repeats + lines[at + 1:])
        result = lab.run('decode', '--text', '--format', 'spike', '-', stdin=log.encode(), status=None)
        check(executed(result.text()) == told[:index] + times * [told[index]] + told[index + 1:], count)
        is_cut = times > 1 << 17
        check(result.status == is_cut, count, result.status)
        check((b'1 executions of instructions that go to themselves are left out' in result.err) == is_cut, count,
              result.err)


@test
def model_log_cut(lab):
    """A log that ends within a line, or has lines of another form, is told to be partial: with the line."""
    told = model_instructions(LOG)
    for format, log, kept in (('spike', LOG[:-8], told[:-1]), ('rtl', RTL[:-8], rtl_instructions(RTL)[:-1])):
        result = lab.run('decode', '--text', '--format', format, '-', stdin=log.encode(), status=1)
        check(executed(result.text()) == kept, format, result)
        check(b'line %d: the last line has no end' % len(log.splitlines()) in result.err, format, result.err)
    strange = LOG.replace('0x00000013', '00000013')
    result = lab.run('decode', '--text', '--format', 'spike', '-', stdin=strange.encode(), status=1)
    check(b'line 11: is not understood, nor are 1 further ones' in result.err, result.err)
    for at, log in ((1, bytes(1 << 20)), (1, b'core   0: ' + (1 << 20) * b'x'), (13, LOG.encode() + (1 << 20) * b'x')):
        result = lab.run('decode', '--text', '--format', 'spike', '-', stdin=log, status=1)
        check(b'line %d: is too long or no text' % at in result.err, result.err)
        check(executed(result.text()) == (told if at > 1 else []), result)
    beside = 'printed by the program\ncore  dumped\n' + LOG.replace('core   1: 3 ', 'core   1: ? ')
    check(executed(lab.run('decode', '--text', '--format', 'spike', '-', stdin=beside.encode()).text()) == told, 'beside')


@test
def old_commits(lab):
    """Registers in the form of older versions, with a blank in front of their number."""
    with open(lab.path('old.log'), 'w') as f:
        f.write('core   0: 3 0x0000000080000000 (0x00000297) x 5 0x0000000080000000\n'
                'core   0: 3 0x0000000080000004 (0x00c28067) x 1 0x00000000deadbeef\n')
    lab.run('decode', '--out', lab.path('out'), lab.path('old.log'))
    dumped = lab.run('dump', lab.path('out/stf.0.zstf')).text()
    check('deadbeef' in dumped and dumped.count('INST_REG') == 2, dumped)


COLUMNS = 'Time\tCycle\tPC\tInsn\tDecoded instruction\tRegister and memory contents\n'
RTL = COLUMNS + """            130\t        61\t00000150\t4481\tc.li    x9,0\t x9=0x00000000
            132\t        62\t00000152\t00008437\tlui     x8,0x8\t x8=0x00008000
            134\t        63\t00000156\t008000ef\tjal     x1,15e\t x1=0x0000015a
            136\t        64\t0000015e\tfe842e23\tsw      x8,-4(x8)\t x8:0x00008000  x8:0x00008000 PA:0x00007ffc store:0x00008000
            138\t        65\t00000162\tc004\tc.sw    x9,0(x8)\t x8:0x00008000  x9:0x00000000 PA:0x00008000 store:0xabcd1234
            140\t        66\t00000164\t00042503\tlw      x10,0(x8)\t x8:0x00008000  x10=0xcafe0001 PA:0x00008000 load:0xcafe0001
            142\t        67\t00000100\t00000013\taddi    x0,x0,0
"""


def rtl_instructions(log):
    return [(int(pc, 16), int(code, 16)) for pc, code in re.findall(r'\t([0-9a-f]{8})\t([0-9a-f]+)\t', log)]


@test
def rtl_log(lab):
    """The log of a simulated core, with tabs or blanks, with and without a unit of time."""
    truth = rtl_instructions(RTL)
    check(len(truth) == 7, truth)
    blanks = re.sub(r'(\d)\t +', r'\1 ns  ', RTL).replace('\t', '   ')
    for name, text in (('tabs', RTL), ('blanks', blanks)):
        log = lab.path(name + '.log')
        with open(log, 'w') as f:
            f.write(text)
        decoded = lab.run('decode', '--text', log).text()
        check(executed(decoded) == truth, name, decoded)
        lab.run('decode', '--out', lab.path(name), log)
        dumped = lab.run('dump', os.path.join(lab.path(name), 'stf.0.zstf')).text()
        check(all(word in dumped for word in ('7ffc', 'abcd1234', 'cafe0001', '15a')), dumped)
        check(dumped.count('INST_MEM_ACCESS') == 2, dumped)  # the load has no access: its size is not told
        check(': 0 errors' in lab.run('check', os.path.join(lab.path(name), 'stf.0.zstf')).text(), name)
    check(executed(lab.run('decode', '--text', '--format', 'rtl', '-', stdin=RTL.encode()).text()) == truth, 'pipe')
    lab.fails(1, 'this log has no instruction', 'decode', '--text', '--format', 'rtl', '-', stdin=COLUMNS.encode())
    lab.fails(1, 'line 65: no instruction so far', 'decode', '--text', '--format', 'rtl', '-', stdin=b'nothing\n' * 70)
    lab.fails(2, 'only nothing goes with rtl', 'decode', '--text', '--format', 'rtl,core=1', lab.path('tabs.log'))


def record(kind, size, value):
    return struct.pack('<HHQ', kind, size, value)


def drmemtrace(insns, arch, thread=7, others=()):
    """Records of instructions (address, bytes); `others`: of another thread, in the middle."""
    out = [record(25, 0, 7), record(28, 12, 7), record(28, 9, arch | 0x400), record(22, 0, thread), record(24, 0, 3),
           record(28, 2, 13270239527782712), record(28, 3, 0)]
    seen = set()

    def put(address, code):
        if address not in seen:
            for at in range(0, len(code), 8):
                piece = code[at:at + 8]
                out.append(record(47, len(piece), 0)[:4] + piece.ljust(8, b'\0'))
        seen.add(address)
        out.append(record(10, len(code), address))

    for i, (address, code) in enumerate(insns):
        put(address, code)
        if i == 3:
            out.append(record(1, 8, 0x7fff0000))  # a write
            out.append(record(22, 0, 99))
            for other in others:
                put(*other)
            out.append(record(22, 0, thread))
    return b''.join(out + [record(23, 0, thread), record(26, 0, 0)])


X86 = [(0x401000, b'\x55'), (0x401001, b'\x48\x89\xe5'), (0x401004, b'\xe8\x07\x00\x00\x00'),
       (0x401010, b'\x48\xb8\x88\x77\x66\x55\x44\x33\x22\x11'), (0x40101a, b'\x74\x02'), (0x40101e, b'\xc3'),
       (0x401009, b'\x75\xf5'), (0x401000, b'\x55'), (0x401001, b'\x48\x89\xe5')]


def x86_text(lab, *args, **more):
    lines = lab.run('decode', '--text', *args, **more).text().splitlines()
    return [(int(line.split()[1], 16), bytes.fromhex(line.split()[2])) for line in lines if line[:2] == 'I ']


@test
def drmemtrace_x86(lab):
    """A program for x86: encodings of up to ten bytes, given once; one thread of two; what cannot be read."""
    trace = lab.path('x86.trace')
    other = [(0x500000, b'\x90'), (0x500001, b'\x90')]
    with open(trace, 'wb') as f:
        f.write(drmemtrace(X86, 0x40, others=other))
    check(x86_text(lab, trace) == X86, x86_text(lab, trace))
    check(x86_text(lab, '--format', 'drmemtrace,thread=99', trace) == other, 'thread 99')
    with open(trace, 'rb') as f:
        whole = f.read()
    check(x86_text(lab, '--format', 'drmemtrace', '-', stdin=whole) == X86, 'pipe')
    lab.fails(1, 'no instruction of thread 5', 'decode', '--text', '--format', 'drmemtrace,thread=5', trace)
    lab.fails(2, 'only thread=N goes with drmemtrace', 'decode', '--text', '--format', 'drmemtrace,core=5', trace)
    lab.fails(1, 'byte 0: no drmemtrace', 'decode', '--text', '--format', 'drmemtrace', '-', stdin=b'PK\3\4' * 9)
    plain = b''.join(whole[at:at + 12] for at in range(0, len(whole), 12) if whole[at] != 47)
    lab.fails(1, 'has no encoding of 1 bytes', 'decode', '--text', '--format', 'drmemtrace', '-', stdin=plain)
    lab.fails(1, 'is of no processor that can be read', 'decode', '--text', '--format', 'drmemtrace', '-',
              stdin=drmemtrace(X86, 0))
    # Interrupted behind the second instruction: no branch leads to the handler.
    halves = drmemtrace(X86[:2], 0x40)
    interrupted = halves[:-24] + record(28, 0, 0x401004) + record(47, 1, 0)[:4] + b'\x90'.ljust(8, b'\0') + \
        record(10, 1, 0x600000) + halves[-24:]
    with open(lab.path('signal.trace'), 'wb') as f:
        f.write(interrupted)
    check(x86_text(lab, lab.path('signal.trace')) == X86[:2] + [(0x600000, b'\x90')], 'interrupted')


@test
def drmemtrace_cut(lab):
    """What stands before the end of a cut trace, or before a bad record, is kept, and told to be partial."""
    whole = drmemtrace(X86, 0x40)
    for n, kept, told in ((len(whole) - 12, len(X86), 'has no mark at its end'), (len(whole) - 30, len(X86) - 1, 'no mark')):
        result = lab.run('decode', '--text', '--format', 'drmemtrace', '-', stdin=whole[:n], status=1)
        check(told in result.err.decode() and 'byte %d' % (n - n % 12) in result.err.decode(), n, result.err)
        check(len([1 for line in result.text().splitlines() if line[:2] == 'I ']) == kept, n, result)
    bad = whole[:-24] + record(10, 3, 0x700000) + whole[-24:]
    result = lab.run('decode', '--text', '--format', 'drmemtrace', '-', stdin=bad, status=1)
    check(b'has no encoding of 3 bytes' in result.err and b'what stands before is kept' in result.err, result.err)
    check(len([1 for line in result.text().splitlines() if line[:2] == 'I ']) == len(X86), result)


@test
def drmemtrace_beside_a_core(lab):
    """What a core's trace says and what a model of the same run says are identical; one instruction less is found."""
    lab.start()
    subprocess.run([lab.rig, '--kind', 'etm', '--server', lab.url, '--trace', 'sim', '--bytes', '20000', '--rate',
                    '100000000', '--quiet'], check=True, timeout=labs.TIMEOUT)
    stream = json.loads(lab.run('show', '--json', 'sim').text())[0]['streams'][0]['name']
    lines = lab.run('get', '--text', 'sim/' + stream).text().splitlines()
    first = next(i for i, line in enumerate(lines) if line[:2] == 'I ')
    until = next((i for i in range(first, len(lines)) if lines[i][:2] in ('G ', 'X ', 'R')), len(lines))
    insns = [(pc, code.to_bytes(4, 'little')) for pc, code in executed('\n'.join(lines[first:until]))]
    check(len(insns) > 100, len(insns), lines[:5])
    for name, model in (('same', insns), ('other', insns[:60] + insns[61:])):
        with open(lab.path(name), 'wb') as f:
            f.write(drmemtrace(model, 0x08))
        lab.run('push', '--trace', name, lab.path(name))
    range_of = '@0:%d' % len(insns)
    same = lab.run('diff', 'sim/%s%s' % (stream, range_of), 'same/stf.0' + range_of, status=None).text()
    other = lab.run('diff', 'sim/%s%s' % (stream, range_of), 'other/stf.0', status=None).text()
    check(same.startswith('identical'), same)
    check('they diverge at A 60, B 60' in other, other)


if __name__ == '__main__':
    labs.main(TESTS)
