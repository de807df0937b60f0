#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Captures made to stop the server, of every format: few bytes that stand for billions of instructions, records with
impossible lengths, archives that unpack without end, setups that refer to what is no file. usage: hostile.py BUILD
[NAME…]"""

import gzip
import json
import lzma
import os
import random
import signal
import struct
import subprocess
import sys
import time
import urllib.request

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(1, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), 'chaos'))
sys.path.insert(2, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), 'stf'))
import osd  # noqa: E402
from lab import TIMEOUT, check, main, wait  # noqa: E402
from maker import Maker  # noqa: E402
from world import ServerTime, peak_memory  # noqa: E402

TESTS = {}
AT_ONCE = 2.0  # seconds in which the server could work: world.ServerTime
MEMORY = 512 << 20


def test(function):
    TESTS[function.__name__] = function
    return function


def write(lab, name, data):
    with open(lab.path(name), 'wb') as f:
        f.write(data if isinstance(data, bytes) else data.encode())
    return lab.path(name)


# ---- loops without an end ----

def nexus(*fields):
    """A message of fields (value, bits); 0 bits: variable."""
    out, byte, n = bytearray(), 0, 0
    for i, (value, width) in enumerate(fields):
        for k in range(width or max(value.bit_length(), 0 if n else 1)):
            if n == 6:
                out.append(byte << 2)
                byte = n = 0
            byte |= (value >> k & 1) << n
            n += 1
        if not width:
            out.append(byte << 2 | (3 if i + 1 == len(fields) else 1))
            byte = n = 0
    return bytes(out)


NEXUS_SYNC = nexus((9, 6), (5, 4), (0, 0), (0x80000000 >> 1, 0))
RISCV = struct.pack('<HHI', 0x0001, 0xfd7d, 0xffdff06f)  # 1: c.nop; c.bnez a0, 1b; j 1b
RISCV_INI = '[trace]\nformat=%s\n[source %s]\ncore=rv64\n%s[image p]\nfile=%s\naddress=0x80000000\n'
NOPS = 1000


def ntrace(lab):
    full = nexus((27, 6), (2, 4), ((1 << 32) - 1, 0), ((1 << 18) - 1, 0))
    return NEXUS_SYNC + 500 * full, RISCV_INI % ('ntrace', 'nt.0', '', write(lab, 'p', RISCV))


def ntrace_branches(lab):
    """RepeatBranch."""
    again = nexus((3, 6), (2, 0)) + nexus((30, 6), ((1 << 18) - 1, 0))
    return NEXUS_SYNC + 5000 * again, RISCV_INI % ('ntrace', 'nt.0', '', write(lab, 'p', RISCV))


def sifive(lab):
    full = nexus((27, 6), (9, 4), ((1 << 32) - 1, 0))
    return NEXUS_SYNC + 500 * full, RISCV_INI % ('nexus-sifive', 'nt.0', '', write(lab, 'p', RISCV))


def etrace(lab):
    """Branches that were predicted rightly, four billion in each packet."""
    begin = bytes.fromhex('021f1005730000002001040480000004')
    keys = 'iaddress_width_p=64\necause_width_p=5\nbpred_size_p=4\n'
    ini = RISCV_INI % ('etrace-encap', 'et.0', keys, write(lab, 'p', RISCV))
    return begin + 500 * bytes.fromhex('05fcffffff03'), ini


def pt(lab):
    """Outcomes of a branch behind a thousand instructions."""
    code = NOPS * b'\x90' + b'\x0f\x85' + struct.pack('<i', -NOPS - 6)
    begin = 8 * b'\x02\x82' + b'\x99\x01\x7d\x00\x00\x40\x00\x00\x00\x02\x23'
    return begin + 50000 * (b'\x02\xa3' + 6 * b'\xff'), '[trace]\nformat=pt\n[image p]\nfile=%s\naddress=0x400000\n' % \
        write(lab, 'p', code)


def pt_jump(lab):
    """A jump to itself, which needs no packet."""
    begin = 8 * b'\x02\x82' + b'\x99\x01\x7d\x00\x00\x40\x00\x00\x00\x02\x23\x0c'
    return 50000 * begin, '[trace]\nformat=pt\n[image p]\nfile=%s\naddress=0x400000\n' % write(lab, 'p', b'\xeb\xfe')


ARM_INI = '[trace]\nformat=%s,id=0x10\n[source cs.10]\nid=0x10\nprotocol=%s\ncore=%s\n%s[image p]\nfile=%s\n' \
    'address=0x8000\n'


def etm3(lab):
    """Fifteen instructions in each byte."""
    keys = 'ETMIDR=0x4114F250\nETMCCER=0x18541800\n'
    return bytes(5) + b'\x80\x08\x21\x01\x80\x00\x00' + 3000000 * b'\xbc', \
        ARM_INI % ('etm3', 'etm3', 'Cortex-M4', keys, write(lab, 'p', b'\x00\xbf\xfd\xe7'))


def ptm(lab):
    """Five branches behind a thousand instructions in each byte."""
    keys = 'ETMIDR=0x411CF312\nETMCCER=0x34C01AC2\n'
    code = NOPS * struct.pack('<I', 0xe320f000) + struct.pack('<I', 0xea000000 | (-NOPS - 2) & 0xffffff)
    return bytes(5) + b'\x80\x08\x00\x80\x00\x00\x21' + 500000 * b'\xc0', \
        ARM_INI % ('ptm', 'ptm', 'Cortex-A15', keys, write(lab, 'p', code))


LOOPS = (ntrace, ntrace_branches, sifive, etrace, pt, pt_jump, etm3, ptm)


def push(lab, name, data, ini):
    lab.run('push', '--no-wait', '--trace', name, '--config', write(lab, name + '.ini', ini),
            write(lab, name + '.raw', data))


def row(lab, name):
    with urllib.request.urlopen('%s/api/v1/traces/%s' % (lab.url, name), timeout=TIMEOUT) as reply:
        return json.load(reply)


def begun(lab, name):
    """It is being decoded, and is far from its end; or there was so little of it that it is done."""
    now = row(lab, name)
    return now['state'] != 'decoding' or int(now['decoded_bytes']) > 0 or \
        any(int(lane['insns']) > 0 for lane in now['streams'])


def remove_at_once(lab, name):
    clock = ServerTime(lab.server.pid, time.monotonic())
    lab.run('rm', name)
    took = clock.read(time.monotonic())
    check(took < AT_ONCE, name, 'was removed in', took)


def stop_at_once(lab, name):
    clock = ServerTime(lab.server.pid, time.monotonic())
    lab.server.send_signal(signal.SIGTERM)
    os.waitid(os.P_PID, lab.server.pid, os.WEXITED | os.WNOWAIT)
    took = clock.read(time.monotonic())
    check(lab.server.wait(TIMEOUT) == 0, lab.server_log())
    lab.server = None
    check(took < AT_ONCE, 'the server that decodes', name, 'ended in', took)


@test
def endless_loops(lab):
    """Removing and stopping are at once, and memory is bounded."""
    for make in LOOPS:
        name = make.__name__.replace('_', '-')
        data, ini = make(lab)
        lab.start()
        push(lab, name, data, ini)
        wait(name + ' is decoded', lambda: begun(lab, name), lab.server_log)
        remove_at_once(lab, name)
        push(lab, name, data, ini)
        wait(name + ' is decoded', lambda: begun(lab, name), lab.server_log)
        peak = peak_memory(lab.server.pid)
        check(peak < MEMORY, name, 'takes', peak)
        stop_at_once(lab, name)
        lab.start()
        remove_at_once(lab, name)
        lab.stop()


# ---- limits ----

def messages():
    """Counts at the limits of N-Trace's fields, and beyond: (format, keys, message behind SYNC, what is said)."""
    too_large = 'bad message'
    for value, said in ((1 << 18) - 1, None), (1 << 18, too_large):
        yield 'ntrace', '', nexus((27, 6), (2, 4), (3, 0), (value, 0)), said
        yield 'ntrace', '', nexus((3, 6), (2, 0)) + nexus((30, 6), (value, 0)), said
    for value, said in ((1 << 32) - 1, None), (1 << 32, too_large):
        yield 'ntrace', '', nexus((27, 6), (0, 4), (value, 0)), said
    yield 'nexus-sifive', '', nexus((27, 6), (9, 4), (1 << 32, 0)), too_large
    for format_, most in ('ntrace,src_bits', 12), ('nexus-sifive,src_bits', 12), ('etrace-encap,src_bits', 16), \
            ('etrace-encap,ts_bytes', 8), ('etrace-encap,type_bits', 8):
        said = "%s=%d': use a number up to %d" % (format_.split(',')[1], most + 1, most)
        yield '%s=%d' % (format_, most + 1), '', b'', said
    yield 'ntrace', 'trTeSrcBits=13\n', b'', 'trTeSrcBits=13: there are at most 12'
    yield 'ntrace', 'addrbits=65\n', b'', 'addrbits=65: there are at most 64'
    yield 'ntrace', 'trTsWidth=65\n', b'', 'trTsWidth=65: there are at most 64'


@test
def limits_of_messages(lab):
    """Up to its limit a count is followed; beyond, that is told, with status 1."""
    program = write(lab, 'p', RISCV)
    for format_, keys, message, said in messages():
        ini = write(lab, 'c.ini', RISCV_INI % (format_, 'nt.0', keys, program))
        done = lab.run('decode', '--config', ini, write(lab, 'raw', NEXUS_SYNC + message), '--text', status=None)
        text = done.err.decode()
        check(said is None or said in text, format_, keys, said, done)
        check(done.status == (0 if said is None else 2 if '=' in format_ else 1), format_, keys, said, done)


# ---- STF ----

def stf_header():
    maker = Maker()
    maker.header()
    return bytes(maker.out)


def frames(data, pack):
    """Some GiB of `data`, packed in pieces of 4 MiB."""
    return 1024 * pack(data * ((4 << 20) // len(data)))


COMMENTS = struct.pack('<BI', 3, 4091) + 4091 * b'x'
INSTRUCTIONS = struct.pack('<BH', 0xf1, 1) * 1024


def bombs():
    for name, pack in ('zstd', pack_zstd), ('gzip', gzip.compress), ('xz', lzma.compress):
        for what, records in ('comments', COMMENTS), ('instructions', INSTRUCTIONS):
            yield name + '-' + what, pack(stf_header()) + frames(records, pack)
    yield 'nested', gzip.compress(pack_zstd(stf_header()) + frames(INSTRUCTIONS, pack_zstd))


def pack_zstd(data):
    return subprocess.run(['zstd', '-1', '-q', '-c'], input=data, stdout=subprocess.PIPE, check=True).stdout


@test
def stf_bombs(lab):
    """Archives that unpack to much: in bounded memory, removed at once."""
    lab.start()
    for name, data in bombs():
        lab.run('push', '--format', 'stf', '--no-wait', '--trace', name, write(lab, name, data), status=None)
        wait(name + ' is decoded', lambda: begun(lab, name), lab.server_log)
        remove_at_once(lab, name)
        peak = peak_memory(lab.server.pid)
        check(peak < MEMORY, name, 'takes', peak)
    lab.stop()


def long_records():
    """Records whose lengths are larger than all that follows."""
    yield 'comment', struct.pack('<BI', 3, 0xffffffff)
    yield 'event', struct.pack('<BIB', 100, 2, 255)
    yield 'walk', struct.pack('<BQQIB', 50, 0, 1, 4096, 255)
    yield 'vector', struct.pack('<BI', 10, 0xffffffff) + struct.pack('<BHB', 40, 1, 0x13)
    yield 'text', struct.pack('<BBBBBH', 6, 1, 1, 1, 0, 0xffff)
    yield 'isa', struct.pack('<BI', 13, 0xfffffff0)
    yield 'unknown', b'\xee' * 64


@test
def stf_lengths(lab):
    """What is in front is kept; the rest is told, and the server goes on."""
    lab.start()
    for name, record in long_records():
        data = stf_header() + 100 * struct.pack('<BH', 0xf1, 1) + record + 1000 * struct.pack('<BH', 0xf1, 1)
        said = lab.run('push', '--format', 'stf', '--trace', name, write(lab, name, data), status=None)
        check(said.status in (0, 1), said)
        check(row(lab, name)['state'] in ('sealed', 'failed'), row(lab, name))
    lab.alive()
    check(peak_memory(lab.server.pid) < MEMORY, peak_memory(lab.server.pid))
    lab.stop()


# ---- snapshots, configurations ----

SNAPSHOT = '[snapshot]\nversion=1.0\n[device_list]\n%s\n[trace]\nmetadata=%s\n'
TRACE = '[trace_buffers]\nbuffers=b0\n[b0]\nname=B0\nfile=%s\nformat=source_data\n[source_buffers]\nTRC_0=B0\n'
UNIT = '[device]\nname=TRC_0\nclass=trace_source\ntype=ETM3.5\n[regs]\nETMIDR=0x4114f250\n'
CORE = '[device]\nname=cpu_0\nclass=core\ntype=Cortex-M4\n%s'
DUMP = '[dump%d]\nfile=%s\naddress=%s\nlength=%s\noffset=%s\n'


def snapshots():
    """Files of folders by name; None: a folder."""
    good = {'TRC_0.ini': UNIT, 'trace.ini': TRACE % 'trace.bin', 'trace.bin': bytes(64),
            'snapshot.ini': SNAPSHOT % ('device0=TRC_0.ini', 'trace.ini')}
    yield 'empty', {}
    yield 'itself', dict(good, **{'snapshot.ini': SNAPSHOT % ('device0=snapshot.ini', 'snapshot.ini')})
    yield 'buffer-itself', dict(good, **{'trace.ini': TRACE % 'trace.ini'})
    yield 'folder', dict(good, **{'trace.ini': TRACE % '.'})
    yield 'missing', dict(good, **{'trace.ini': TRACE % 'none.bin'})
    yield 'huge', dict(good, **{'snapshot.ini': SNAPSHOT % ('x' * (5 << 20), 'trace.ini')})
    yield 'long-line', dict(good, **{'TRC_0.ini': UNIT + 'ETMCR=' + '1' * (3 << 20)})
    yield 'many-devices', dict(good, **{'snapshot.ini': SNAPSHOT % (
        '\n'.join('device%d=TRC_%d.ini' % (i, i % 3) for i in range(20000)), 'trace.ini')})
    yield 'many-registers', dict(good, **{'TRC_0.ini': UNIT + ''.join('R%d=1\n' % i for i in range(200000))})
    yield 'many-buffers', dict(good, **{'trace.ini': '[trace_buffers]\nbuffers=%s\n%s' % (
        ','.join('b%d' % i for i in range(5000)),
        ''.join('[b%d]\nname=B%d\nfile=trace.bin\nformat=source_data\n' % (i, i) for i in range(5000)))})
    for name, dump in (('endless', DUMP % (0, '/dev/zero', '0x1000', '0xffffffff', '0')),
                       ('wide', DUMP % (0, 'trace.bin', *3 * ['0xffffffffffffffff'])),
                       ('dump-folder', DUMP % (0, '.', '0x1000', '64', '0')),
                       ('many', ''.join(DUMP % (i, 'trace.bin', hex(i * 64), '64', '0') for i in range(20000)))):
        yield 'dump-' + name, dict(good, **{'cpu_0.ini': CORE % dump, 'snapshot.ini': SNAPSHOT % (
            'device0=TRC_0.ini\ndevice1=cpu_0.ini', 'trace.ini')})


def run_bounded(lab, name, *args):
    """Run a command that must fail with few lines and little memory; returns what it says."""
    with open(lab.path('said'), 'wb') as err:
        child = subprocess.Popen([lab.tracelake, *args], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                 stderr=err)
    _, status, used = os.wait4(child.pid, 0)
    with open(lab.path('said'), errors='replace') as err:
        text = err.read()
    check(os.waitstatus_to_exitcode(status) in (1, 2, 3), name, status, text[-500:])
    check('tracelake: ' in text and len(text.splitlines()) < 120, name, len(text.splitlines()), text[-500:])
    check(used.ru_maxrss < MEMORY >> 10, name, used.ru_maxrss)
    return text


def configurations():
    """Texts, and what is said of each."""
    image = '[trace]\nformat=pt\n[image p]\nfile=%s\naddress=0x1000\n'
    yield image % '/dev/zero', '/dev/zero: larger than'
    yield image % '/dev/zero' + 'length=0x7fffffffffffffff\n', '/dev/zero: larger than'
    yield image % '.', 'Is a directory'
    yield image % 'none', 'No such file'
    yield image % 'raw' + 'offset=0xffffffffffffffff\nlength=0xffffffffffffffff\n', 'offset and length ask for more'
    yield '[trace]\nformat=pt\n' + '[x]\na=b\n' * (1 << 18), 'larger than'
    yield '[trace]\nformat=pt\n' + 'x' * (1 << 20), 'larger than'
    yield '[trace]\nformat=pt\n' + '[source s]\n' * 70000, 'nothing in 64 bytes could be decoded'
    registers = ''.join('r%d=1\n' % i for i in range(70))
    yield '[trace]\nformat=pt\n[source s]\nprotocol=pt\n' + registers, 'too many registers'


@test
def configuration_files(lab):
    """Each is refused with a sentence."""
    write(lab, 'raw', bytes(64))
    for text, said in configurations():
        told = run_bounded(lab, text[:100], 'decode', '--config', write(lab, 'c.ini', text), lab.path('raw'), '--text')
        check(said in told, text[:100], said, told[-500:])


@test
def snapshot_files(lab):
    """Each ends with a sentence, or with what there is of it, in bounded memory."""
    for name, files in snapshots():
        os.mkdir(lab.path(name))
        for file, data in files.items():
            write(lab, os.path.join(name, file), data)
        run_bounded(lab, name, 'decode', '--snapshot', lab.path(name), '--text')


# ---- perf.data, Open SoC Debug ----

def perf_head(records):
    """One event with PID, TID, time and CPU in the trailer of each record."""
    attr = struct.pack('<IIQQQQQ', 100, 136, 0, 0, 0x10086, 0, 1 << 18).ljust(136, b'\0')
    head = struct.pack('<8sQQQQQQ', b'PERFILE2', 104, 152, 104, 152, 264, len(records)).ljust(104, b'\0')
    return head + attr + struct.pack('<QQQ', 256, 8, 1) + records


def perf_switch(time_, cpu, tid):
    return struct.pack('<IHHIIQII', 14, 0, 40, tid, tid, time_, cpu, 0) + struct.pack('<Q', 1)


def perf_area(cpu, offset, data):
    return struct.pack('<IHHQQQIiiI', 71, 0, 48, len(data), offset, 0, cpu, -1, cpu, 0) + data


def perf_cpus():
    return b''.join(perf_area(i, 0, bytes(64)) + perf_switch(i + 1, i, 7) for i in range(6000))


def perf_unsorted():
    return b''.join(perf_switch(1000000 - i, i % 64, i % 1000) for i in range(200000))


def perf_holes():
    """Areas that each lack bytes of the one before, and come again."""
    info = struct.pack('<IHHII', 70, 0, 16 + 8 * 17, 1, 0) + bytes(8 * 17)
    psb = 8 * b'\x02\x82' + b'\x99\x01\x02\x23' + bytes(44)
    ends = struct.pack('<IHH', 68, 0, 8)
    return info + b''.join(perf_area(i % 3, i * 1000 % 77777, psb) + ends for i in range(30000))


@test
def perf_variants(lab):
    """More CPUs than there can be, records in the wrong order, areas with holes: done soon, removed at once."""
    lab.start()
    for make in (perf_cpus, perf_unsorted, perf_holes):
        name = make.__name__.replace('_', '-')
        lab.run('push', '--format', 'perf', '--trace', name, write(lab, name, perf_head(make())), status=None)
        check(row(lab, name)['state'] == 'sealed', row(lab, name))
        remove_at_once(lab, name)
    check(peak_memory(lab.server.pid) < MEMORY, peak_memory(lab.server.pid))
    lab.stop()


def datagrams(roll, n):
    """Datagrams of random words, from every address, most of them with the head of a packet."""
    out = bytearray()
    for _ in range(n):
        words = [roll.getrandbits(10), roll.getrandbits(16), roll.getrandbits(4) << 10 | roll.getrandbits(10)]
        words += [roll.getrandbits(16) for _ in range(roll.choice((0, 1, 5, 12, 40)))]
        words = words[:roll.choice((1, 2, 64))]
        out += struct.pack('>%dH' % (len(words) + 1), len(words), *words)
    return bytes(out)


@test
def di_noise(lab):
    """Random words from modules of every kind, after their enumeration."""
    modules = {0: (1, 0), 1: (5, 32), 2: (4, 32), 3: (2, 0), 4: (6, 0), 5: (3, 0), 6: (77, 0)}
    lab.start()
    for seed in range(3):
        roll = random.Random(seed)
        data = osd.enumeration(modules) + datagrams(roll, 30000) + roll.randbytes(200000)
        name = 'noise-%d' % seed
        lab.run('push', '--format', 'di', '--trace', name, write(lab, name, data), status=None)
        check(row(lab, name)['state'] == 'sealed', row(lab, name))
        remove_at_once(lab, name)
    check(peak_memory(lab.server.pid) < MEMORY, peak_memory(lab.server.pid))
    lab.stop()


if __name__ == '__main__':
    main(TESTS)
