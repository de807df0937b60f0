# SPDX-License-Identifier: MIT
"""Open SoC Debug streams and small ELF files for end-to-end tests."""

import struct

HOST = 0x0401
RISCV, OPENRISC = 243, 92


def packet(src, words, flags=0x8000, dest=HOST):
    """A datagram as sent over GLIP."""
    words = [3 + len(words), dest, src, flags] + list(words)
    return struct.pack('>%dH' % len(words), *words)


def field(value, width):
    return [value >> 16 * i & 0xffff for i in range(width // 16)]


def reply(src, value):
    return packet(src, [value], 0x2000)


def enumeration(modules):
    """The modules' answers to an enumerating host: {address: (type, width)}."""
    out = b''.join(reply(a, v) for a, (kind, _) in modules.items() for v in (1, kind, 0, 0, 0))
    for address, (kind, width) in modules.items():
        if kind == 1:
            out += b''.join(reply(address, v) for v in (2, 0x77, len(modules), 12))
        elif width:
            out += reply(address, width)
    return out


def ctm(time, pc, npc, call=False, ret=False, mode=3, width=32, src=1):
    return packet(src, field(time, 32) + field(npc, width) + field(pc, width) +
                  [mode | ret << 2 | call << 3])


def stm(time, number, value, width=32, src=2):
    return packet(src, field(time, 32) + [number] + field(value, width))


def overflow(src, count):
    return packet(src, [count], 0x9400)


def elf32(machine, address, code, symbols):
    """An executable with one segment and function symbols (name, address, size)."""
    e = '>' if machine == OPENRISC else '<'
    text = 52 + 32
    names = b'\0' + b''.join(name.encode() + b'\0' for name, _, _ in symbols)
    table, at = struct.pack(e + 'IIIBBH', 0, 0, 0, 0, 0, 0), 1
    for name, value, size in symbols:
        table += struct.pack(e + 'IIIBBH', at, value, size, 0x12, 0, 1)
        at += len(name) + 1
    sections = text + len(code) + len(table) + len(names)
    header = b'\x7fELF' + bytes([1, 2 if e == '>' else 1, 1]) + bytes(9)
    header += struct.pack(e + 'HHIIIIIHHHHHH', 2, machine, 1, address, 52, sections, 0, 52, 32, 1,
                          40, 4, 0)
    program = struct.pack(e + '8I', 1, text, address, address, len(code), len(code), 5, 4)
    rows = [[0] * 10,
            [0, 1, 6, address, text, len(code), 0, 0, 4, 0],
            [0, 2, 0, 0, text + len(code), len(table), 3, 1, 4, 16],
            [0, 3, 0, 0, text + len(code) + len(table), len(names), 0, 0, 1, 0]]
    return header + program + code + table + names + b''.join(struct.pack(e + '10I', *r)
                                                              for r in rows)
