#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""RISC-V trace as its tools leave it: core dumps of Espressif's chips, cores by name. usage: riscv.py BUILD [NAME…]"""
import os
import struct
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import lab as labs  # noqa: E402
from lab import check, wait  # noqa: E402

TESTS = {}
CODE, NOPS = 0x42001234, b'\x01\x00' * 64


def test(function):
    TESTS[function.__name__] = function
    return function


def sync(number, pc):
    """A packet of version 1.x, in the chip's envelope: at `pc`, machine mode."""
    return struct.pack('<BH', 8, number) + (0x33 | pc >> 1 << 6).to_bytes(5, 'little')


def dump(buffers):
    """A core dump: (bytes, head, loops) of each core's buffer."""
    parameters = bytearray(28)
    parameters[0:2], parameters[8], parameters[15], parameters[16] = (1, 28), 5, 1, 32
    parameters[20], parameters[21], parameters[22] = 1, 1, 1
    note = struct.pack('<4sIHH8B32s28s', b'RVTS', 2, 0x0d, 100, 1, 0, 80, 44, len(buffers), 2, 32, 28, b'\x11' * 32,
                       bytes(parameters))
    for i, (data, head, loops) in enumerate(buffers):
        note += struct.pack('<12B8I', i, 3, 2 if loops else 1, 100, 1, 2, 0, 1, 1, 0, 0, 0, i + 1,
                            0x40800000 + 0x10000 * i, len(data), len(data), head, 16, 0, 0)
    note = struct.pack('<III', 16, len(note), 680) + b'ESP_RISCV_TRACE\0' + note
    at = 52 + 32 * (1 + len(buffers))
    headers, body = struct.pack('<8I', 4, at, 0, 0, len(note), 0, 0, 4), note
    for i, (data, _, _) in enumerate(buffers):
        headers += struct.pack('<8I', 1, at + len(body), 0x40800000 + 0x10000 * i, 0, len(data), len(data), 6, 4)
        body += data
    return struct.pack('<7sB8xHHIIIIIHHHHHH', b'\x7fELF\1\1\1', 0, 4, 243, 1, 0, 52, 0, 0, 52, 32, 1 + len(buffers), 0,
                       0, 0) + headers + body


@test
def esp_dump(lab):
    """Two cores, one of whose buffers went round: each becomes a trace, without format or setup."""
    packets = [sync(n, CODE + 8 * n) for n in range(12)]
    once = b''.join(packets)
    rounded = b''.join(packets[8:]) + b''.join(packets[:8])[4 * 8:]  # 8 packets of room: 8 to 11 over 0 to 3
    path, code = lab.path('core.elf'), lab.path('code.bin')
    with open(path, 'wb') as out:
        out.write(dump([(once + bytes(100), len(once), True), (rounded, 4 * 8, True)]))
    with open(code, 'wb') as out:
        out.write(NOPS)
    lab.start()
    lab.run('push', '--trace', 'board', '--image', '%s@0x%x' % (code, CODE), path)
    for name, first in ('board.core0/et.0', 0), ('board.core1/et.1', 4):
        ran = [int(line.split()[1], 16) for line in lab.run('get', '--text', name).text().splitlines()
               if line.startswith('I ')]
        check(ran == list(range(CODE + 8 * first, CODE + 8 * 11 + 1, 2)), name, ['%x' % pc for pc in ran])
    asked = lab.run('decode', '--text', path)
    check(b'SHA-256 1111111111' in asked.err, asked.err)
    # One program header is repeated, and has notes in the whole file: each is looked at a limited number of times.
    small = struct.pack('<III', 0, 0, 1) * 80000
    many = struct.pack('<7sB8xHHIIIIIHHHHHH', b'\x7fELF\1\1\1', 0, 4, 243, 1, 0, 52, 0, 0, 52, 0, 0xffff, 0, 0, 0) + \
        struct.pack('<8I', 4, 84, 0, 0, len(small), 0, 0, 4) + small
    with open(lab.path('many.elf'), 'wb') as out:
        out.write(many)
    lab.fails(1, 'the core dump has no trace', 'decode', '--text', lab.path('many.elf'))
    torn = lab.path('x.esptrace')
    with open(torn, 'wb') as out:
        out.write(b'RVTS')
    lab.fails(1, 'layout of .esptrace files is not published', 'decode', '--text', torn)


def message(*fields):
    """A Nexus message of fields as (value, bits); no bits: variable."""
    out, byte, n = [], 0, 0
    for k, (value, bits) in enumerate(fields):
        for i in range(bits or max(value.bit_length(), 0 if n % 6 else 1)):
            if n == 6:
                out.append(byte << 2)
                byte = n = 0
            byte |= (value >> i & 1) << n
            n += 1
        if not bits:
            out.append(byte << 2 | (3 if k == len(fields) - 1 else 1))
            byte = n = 0
    return bytes(out)


@test
def core_names(lab):
    """core= of the format gives the widths of SRC and addresses; a wrong name is said."""
    at = 0xffffffff80003000
    path, code = lab.path('p550.nex'), lab.path('kernel.bin')
    with open(path, 'wb') as out:
        for hart in 1, 2:
            out.write(message((9 | hart << 6, 8), (5, 4), (0, 0), ((at & 0xffffffffffff) >> 1, 0)))
            out.write(message((28 | hart << 6, 8), (0, 2), (2, 0), (2, 0), (1, 0)))
            out.write(message((33 | hart << 6, 8), (4, 4), (1, 2), (1, 0), (1, 0)))
    with open(code, 'wb') as out:
        out.write(bytes.fromhex('0100028501000100'))
    image = '%s@0x%x' % (code, at)
    text = lab.run('decode', '--format', 'nexus-sifive,core=sifive-p550', '--image', image, '--text', path).text()
    ran = [line for line in text.splitlines() if line.startswith('I ')]
    check(ran == 2 * ['I %016x %s' % pair for pair in ((at, '0001'), (at + 2, '8502'), (at + 4, '0001'))], text)
    lab.fails(2, 'core=p551 is not known; use rv32, rv64, sifive-p550x8', 'decode', '--format',
              'nexus-sifive,core=p551', '--text', path)
    lab.start()
    lab.run('push', '--trace', 'p550', '--format', 'nexus-sifive,core=sifive-p550', '--image', image, path)
    for hart in 1, 2:
        told = lab.run('get', '--text', 'p550/nt.%d' % hart).text()
        check([line for line in told.splitlines() if line.startswith('I ')] == ran[:3], hart, told)


def words(text):
    """Lines without the byte offsets and numbers in front of the word that says what they are."""
    return [line for line in text.splitlines() if line[0] in 'IXCG']


@test
def dqr_settings(lab):
    """Settings of dqr are a capture: code of processes by their maps, pages of the kernel, the vdso."""
    folder = lab.path('dqr')
    os.makedirs(os.path.join(folder, 'kmem'))

    def put(name, data):
        with open(os.path.join(folder, name), 'wb') as out:
            out.write(data)

    user, vdso, kernel = 0x55555802c000, 0x7fffb14df000, 0xffffffff80005000
    hart = 1 << 6

    def to(target, icnt, kind, base):
        """An indirect branch, or with kind 1 a trap, after `icnt` halves of instructions."""
        return message((28 | hart, 8), (kind, 2), (icnt, 0), (((target ^ base) & 0xffffffffffff) >> 1, 0), (1, 0))

    def process(pid, level):
        return message((2 | hart, 8), (pid << 5 | level << 2 | 2, 0))

    def sync(at):
        return message((9 | hart, 8), (5, 4), (0, 0), ((at & 0xffffffffffff) >> 1, 0))

    end = message((33 | hart, 8), (4, 4), (1, 2), (1, 0), (1, 0))
    put('gtod.rtd', process(799, 0) + sync(user) + to(vdso + 0x10, 2, 0, user) + to(kernel, 1, 1, vdso + 0x10) +
        to(user + 4, 2, 0, kernel) + end + process(800, 0) + sync(user) + end)
    put('gtod', bytes.fromhex('010002840100'))                            # c.nop, jr s0, c.nop
    put('gtod.vdso', bytes(16) + bytes.fromhex('01000100'))
    put('kmem/kmem.0xffffffff80005000', bytes.fromhex('01000285'))        # c.nop, jr a0
    put('gtod.map', b'55555802c000-55555802d000 r-xp 00000000 b3:04 528326                     /home/root/a b/gtod\n'
                    b'55555802d000-55555802e000 r--p 00000000 b3:04 528326                     /home/root/a b/gtod\n'
                    b'7fffb13a4000-7fffb14bd000 r-xp 00000000 b3:04 837                        /lib/libc.so.6\n'
                    b'7fffb14df000-7fffb14e1000 r-xp 00000000 00:00 0                          [vdso]\n')
    put('gtod.settings', b'# auto-generated settings file\ncmdLine = tracer trace app ./gtod\narchsize = 64\n'
                         b'addrbits = 48\nclockfreq = 32500000\nsrcbits = 2\nteinstruction = teInstHTMSyncNoOpt\n'
                         b'RTD = gtod.rtd\npids = 799\nmap = 799,gtod.map\nvdso = gtod.vdso\nkmempath = ./kmem\n')
    settings = os.path.join(folder, 'gtod.settings')
    asked = lab.run('decode', '--text', settings)
    check(b'no code of /lib/libc.so.6' in asked.err, asked.err)
    ran = words(asked.text())
    places = [int(line.split()[1], 16) for line in ran if line.startswith('I ')]
    check(places == [user, user + 2, vdso + 0x10, kernel, kernel + 2, user + 4], asked.text())
    check(sum(line.startswith('X ') for line in ran) == 1, ran)
    check(ran[-2:] == ['G no-image', 'G off'], ran)  # another process at the same place
    lab.run('setup', settings, '-o', lab.path('gtod.ini'))
    check(words(lab.run('decode', '--config', lab.path('gtod.ini'), '--text', os.path.join(folder, 'gtod.rtd')).text()) == ran,
          'the configuration tells something else')
    lab.start()
    lab.run('push', '--trace', 'gtod', settings)
    check(words(lab.run('get', '--text', 'gtod/nt.1').text()) == ran, 'the server tells something else')
    put('wrong.settings', b'rtd = gtod.rtd\n\nsrcbits = some\n')
    lab.fails(1, 'line 3: srcbits: a number is expected', 'decode', '--text', os.path.join(folder, 'wrong.settings'))
    put('none.settings', b'rtd = none.rtd\n')
    lab.fails(1, 'none.rtd: no such file', 'decode', '--text', os.path.join(folder, 'none.settings'))


@test
def writes(lab):
    """What programs write to SiFive's ITC is in the log beside the instructions, also in that of the whole trace."""
    trace, code = lab.path('itc.rtd'), lab.path('itc.bin')
    writes = ((0, b'Hell'), (0, b'o, w'), (0, b'orld'), (3, b'\n'), (7, b'A'))  # IDTAG: 4 * channel + how many bytes
    with open(trace, 'wb') as out:
        out.write(message((9, 6), (5, 4), (0, 0), (0x80000000 >> 1, 0)))
        for tag, data in writes:
            out.write(message((7, 6), (tag, 0), (int.from_bytes(data, 'little'), 0)))
        out.write(message((33, 6), (4, 4), (1, 2), (2, 0), (1, 0)))
    with open(code, 'wb') as out:
        out.write(bytes.fromhex('01000100'))
    lab.start()
    lab.run('push', '--trace', 'itc', '--format', 'nexus-sifive', '--image', code + '@0x80000000', trace)
    check(lab.run('log', 'itc').text() == '# stream nt.0\n- itm 0 Hello, world\n- itm 1 A\n', lab.run('log', 'itc').text())
    check(lab.run('log', 'itc', '--port', '1', '--csv').text() ==
          'stream,time,seconds,source,channel,form,text\nnt.0,,,itm,1,,A\n', lab.run('log', 'itc', '--port', '1', '--csv').text())
    lab.run('push', '--trace', 'quiet', '--format', 'nexus-sifive', '--image', code + '@0x80000000',
            '-', stdin=message((9, 6), (5, 4), (0, 0), (0x80000000 >> 1, 0)) + message((33, 6), (4, 4), (1, 2), (2, 0), (1, 0)))
    lab.fails(1, 'it has no stream of software trace', 'log', 'quiet')


@test
def cut_program(lab):
    """A program's file that becomes shorter while a trace is decoded by it, as when it is linked anew: that is said."""
    at, path = 0x80000000, lab.path('loop.bin')
    with open(path, 'wb') as out:
        out.write(b'\x01\x00' * 0x8000)
    child = lab.spawn('decode', '--format', 'nexus-sifive,core=rv64', '--image', '%s@0x%x' % (path, at), '--text', '-',
                      stdin=subprocess.PIPE)

    def is_mapped():
        with open('/proc/%d/maps' % child.pid) as maps:
            return path in maps.read()
    wait('the program is mapped', is_mapped)
    os.truncate(path, 4096)
    said = child.communicate(message((9, 6), (5, 4), (0, 0), (at + 0xc000 >> 1, 0)) + message((33, 6), (4, 4), (16, 0)),
                             timeout=labs.TIMEOUT)[1].decode()
    check(child.returncode == 1 and 'tracelake: %s: became shorter while it was read' % path in said, child.returncode, said)


if __name__ == '__main__':
    labs.main(TESTS)
