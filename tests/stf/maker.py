# SPDX-License-Identifier: MIT
"""STF as simulators write it, derived only from the tables of the format: records, traces,
containers.

Each record consists of its bytes and its line of a listing, created here independently of the
library.
"""
import random
import shutil
import struct
import subprocess

EVENT64 = 1 << 19
TRANSACTIONS = 1 << 20


class Maker:
    """A plain stream with the offsets of its records."""

    def __init__(self, vlen=0, event64=False, seed=1):
        self.out, self.records, self.vlen, self.event64 = bytearray(), [], vlen, event64
        self.roll = random.Random(seed)
        self.markers = []

    def put(self, type_, layout='', *fields, tail=b''):
        data = bytes([type_]) + struct.pack('<' + layout, *fields) + tail
        self.records.append((len(self.out), type_, data))
        self.out += data
        if type_ in (240, 241, 250):
            self.markers.append(len(self.out))

    def text(self, type_, layout, text, *before):
        self.put(type_, layout, *before, len(text), tail=text)

    def header(self, comments=(b'made by hand',), iem=2, isa=1, pc=0x80000000, process=(0, 1, 1),
               infos=((12, 1, 4, 0, b'simulator'),), features=0x21, isa_string=None,
               version=(1, 6)):
        self.put(1, '3s', b'STF')
        self.put(2, 'II', *version)
        for comment in comments:
            self.text(3, 'I', comment)
        self.put(4, 'H', isa)
        self.put(5, 'H', iem)
        for *numbers, text in infos:
            self.text(6, 'BBBBH', text, *numbers)
        self.put(7, 'Q', features | (EVENT64 if self.event64 else 0))
        if process:
            self.put(8, 'III', *process)
        self.put(9, 'Q', pc)
        if self.vlen:
            self.put(10, 'I', self.vlen)
        if isa_string is not None:
            self.text(13, 'I', isa_string)
        self.put(19)

    def transaction_header(self):
        self.put(1, '3s', b'STF')
        self.put(2, 'II', 1, 6)
        self.text(3, 'I', b'')
        self.text(6, 'BBBBH', b'transactions', 14, 1, 0, 0)
        self.put(7, 'Q', TRANSACTIONS)
        self.put(11, 'B', 1)
        self.text(12, 'BH', b'core', 1)
        self.text(12, 'BH', b'', 255)
        self.put(19)

    # ---- records of a group -------------------------------------------------------------------

    def word(self):
        return self.roll.choice((0, 1, 2 ** 63, 2 ** 64 - 1, self.roll.getrandbits(64)))

    def words(self, n):
        return b''.join(struct.pack('<Q', self.word()) for _ in range(n))

    def reg(self, kind, operand):
        number = {1: 32, 2: 31, 3: 31, 4: 4095}[kind]
        words = (self.vlen + 63) // 64 if kind == 3 and self.vlen else 1
        self.put(40, 'HB', self.roll.randint(0, number), kind | operand << 4,
                 tail=self.words(words))

    def access(self, contents=1):
        self.put(60, 'QHHB', self.word(), self.roll.choice((1, 8, 64, 65535)),
                 self.roll.getrandbits(16), self.roll.randint(1, 2))
        for _ in range(contents):
            self.put(61, 'Q', self.word())

    def bus(self):
        self.put(62, 'QHBBIB', self.word(), 64, self.roll.randint(0, 6), 255, 2 ** 32 - 1, 1)
        self.put(63, 'Q', self.word())

    def walk(self, index, n):
        self.put(50, 'QQIB', self.word(), index, 4096, n, tail=self.words(2 * n))

    def event(self, number, n=0, first=None):
        tail = self.words(n) if first is None else struct.pack('<Q', first) + self.words(n - 1)
        if self.event64:
            self.put(100, 'QB', number, n, tail=tail)
        else:
            self.put(100, 'IB', number & 0x3fffffff | number >> 62 << 30, n, tail=tail)

    def mode(self, level):
        self.event(1 << 62, 1, level)

    def group(self, i):
        """An instruction with anything that a simulator may record about it."""
        roll = self.roll
        dice = roll.random
        if dice() < .02:
            self.text(3, 'I', bytes(roll.getrandbits(8) or 1 for _ in range(roll.randint(0, 40))))
        if dice() < .02:
            self.put(8, 'III', i & 3, 7, i & 7)
        if dice() < .02:
            self.put(9, 'Q', 0x80000000 + 4 * roll.randint(0, 4000))
        jump = dice() < .15
        target = 0x80000000 + 4 * roll.randint(0, 4000)
        if jump:
            self.put(31, 'Q', target)
        while dice() < .5:
            self.reg(roll.randint(1, 4), roll.randint(1, 3))
        if dice() < .03:
            self.put(41, 'H', roll.randint(0, 31))
        if dice() < .03:
            self.walk(roll.randint(0, i), roll.choice((0, 1, 3, 255)))
        while dice() < .3:
            self.access(roll.choice((1, 1, 1, 2, 8)))
        if dice() < .03:
            self.bus()
        if i == 0:
            self.mode(3)
        elif dice() < .03:
            self.mode(roll.choice((0, 1, 3)))
        if dice() < .02 and not jump:
            number = roll.choice((2, 8, 13, 1 << 63 | 7))
            if self.event64 and dice() < .3:
                number = roll.getrandbits(60)
            self.event(number, roll.choice((0, 1, 2, 3, 255)))
            self.put(101, 'Q', target)
        if dice() < .03:
            for _ in range(roll.randint(1, 12)):
                self.put(230, 'BI', roll.randint(1, 4), roll.getrandbits(32))
        if jump:
            self.put(240, 'I', 0x6f)
        elif dice() < .3:
            self.put(241, 'H', 1)
        else:
            self.put(240, 'I', roll.choice((0x13, 0x13, 0x03, 0xffffffff, 0)))

    def trace(self, n, **header):
        self.header(**header)
        for i in range(n):
            self.group(i)
        return self

    # ---- transactions ---------------------------------------------------------------------------

    def transaction(self, i):
        roll = self.roll
        metadata = b''
        count = roll.choice((0, 0, 1, 3))
        for _ in range(count):
            size = roll.randint(0, 3)
            metadata += bytes([size]) + bytes(roll.getrandbits(8) for _ in range(1 << size))
        channel = roll.randint(1, 5)
        data = bytes([channel])
        if channel < 5:
            payload = bytes(roll.getrandbits(8) for _ in range(roll.choice((0, 1, 64))))
            data += struct.pack('<BBBQH', roll.randint(0, 7), 0, 6, self.word(), len(payload))
            data += payload
        data += struct.pack('<Q', self.word())
        if channel < 3:
            bits = roll.choice((0, 1, 8, 9, 64))
            data += struct.pack('<H', bits) + bytes((bits + 7) // 8)
        if i and roll.random() < .3:
            self.put(251, 'QQB', i - 1, 5, 1)
        self.put(250, 'QQBH', i, roll.randint(0, 1000), roll.choice((1, 255)), count,
                 tail=metadata + data)

    def transactions(self, n):
        self.transaction_header()
        for i in range(n):
            self.transaction(i)
        return self

    # ---- what a reader must find ----------------------------------------------------------------

    def starts(self):
        """Offset, size and descriptor of each record."""
        return [(offset, len(data), type_) for offset, type_, data in self.records]

    def groups(self):
        """The records of each instruction, joined."""
        begin = next(o + len(d) for o, t, d in self.records if t == 19)
        out = []
        for end in self.markers:
            out.append(bytes(self.out[begin:end]))
            begin = end
        return out

    def zstf(self, per_chunk=1000):
        """The container as stf_lib writes it: for each chunk a frame without its size."""
        if not shutil.which('zstd'):
            return None
        ends = self.markers[per_chunk - 1::per_chunk]
        if not ends or ends[-1] != len(self.out):
            ends = ends + [len(self.out)]
        out, index, begin, pcs = bytearray(20), [], 0, self.next_pcs()
        for number, end in enumerate(ends):
            packed = subprocess.run(['zstd', '-q', '-3', '-c', '--no-check'],
                                    input=bytes(self.out[begin:end]), stdout=subprocess.PIPE,
                                    check=True).stdout
            index.append((len(out), pcs[number * per_chunk - 1] if number else 0, end - begin))
            out += packed
            begin = end
        out[:20] = struct.pack('<4sQq', b'ZSTF', per_chunk, len(out))
        out += struct.pack('<Q', len(index))
        for entry in index:
            out += struct.pack('<qQQ', *entry)
        return bytes(out)

    def next_pcs(self):
        """The address after each instruction."""
        out, pc, target = [], 0, None
        for _, type_, data in self.records:
            if type_ == 9:
                pc = struct.unpack('<Q', data[1:])[0]
            elif type_ in (31, 101):
                target = struct.unpack('<Q', data[1:])[0]
            elif type_ in (240, 241):
                pc = target if target is not None else pc + (4 if type_ == 240 else 2)
                target = None
                out.append(pc)
            elif type_ == 250:
                out.append(0)
        return out
