# SPDX-License-Identifier: MIT
"""What stf_lib's readers and its writer require of a file, derived from their assertions and not
from our library: the container, the header, each record after it, and the pairs that
STFInst::write() expects when a tool copies an instruction."""
import ctypes
import ctypes.util
import struct

IDENTIFIER, VERSION, COMMENT, ISA, IEM, INFO, FEATURE, PROCESS, FORCE = 1, 2, 3, 4, 5, 6, 7, 8, 9
VLEN, ISA_EXTENDED, END_HEADER = 10, 13, 19
TARGET, REG, READY, WALK, ACCESS, CONTENT, BUS, BUS_CONTENT = 31, 40, 41, 50, 60, 61, 62, 63
EVENT, EVENT_TARGET, MICROOP, INST32, INST16 = 100, 101, 230, 240, 241
FIXED = {IDENTIFIER: 4, VERSION: 9, ISA: 3, IEM: 3, FEATURE: 9, PROCESS: 13, FORCE: 9, VLEN: 5,
         END_HEADER: 1, TARGET: 9, READY: 3, ACCESS: 14, CONTENT: 9, BUS: 18, BUS_CONTENT: 9,
         EVENT_TARGET: 9, MICROOP: 6, INST32: 5, INST16: 3}
MODE_CHANGE = 1 << 62
MARKERS = (INST32, INST16)


class Refused(Exception):
    """stf_lib would not accept this."""


class Record:
    """A record: its offset, type and bytes; for an EVENT its number and fields."""
    __slots__ = ('at', 'type', 'data', 'number', 'fields')

    def __init__(self, at, type_, data):
        self.at, self.type, self.data, self.number, self.fields = at, type_, data, None, None

    def word(self, at=1):
        return struct.unpack_from('<Q', self.data, at)[0]


def zstd():
    library = ctypes.CDLL(ctypes.util.find_library('zstd') or 'libzstd.so.1')
    library.ZSTD_decompress.restype = ctypes.c_size_t
    library.ZSTD_findFrameCompressedSize.restype = ctypes.c_size_t
    return library


def unpack(data):
    """The plain stream, and for each chunk its offset in the stream and its start PC."""
    if data[:4] != b'ZSTF':
        return data, None, []
    per_chunk, index = struct.unpack_from('<Qq', data, 4)
    if not 20 < index < len(data):
        raise Refused('no chunk index')
    count, = struct.unpack_from('<Q', data, index)
    entries = [struct.unpack_from('<qQQ', data, index + 8 + 24 * i) for i in range(count)]
    if not entries or entries[0][0] != 20:
        raise Refused('the first chunk is not at 20')
    library, out, begins = zstd(), bytearray(), []
    for i, (at, pc, size) in enumerate(entries):
        end = entries[i + 1][0] if i + 1 < count else index
        frame = bytes(data[at:end])
        if library.ZSTD_findFrameCompressedSize(frame, ctypes.c_size_t(len(frame))) != len(frame):
            raise Refused('chunk %d is not one frame' % i)
        plain = ctypes.create_string_buffer(size or 1)
        if library.ZSTD_decompress(plain, ctypes.c_size_t(size), frame,
                                   ctypes.c_size_t(len(frame))) != size:
            raise Refused('chunk %d is not %d bytes' % (i, size))
        begins.append((len(out), pc))
        out += plain.raw[:size]
    return bytes(out), per_chunk, begins


def records(data):
    """All records, complete; layouts as given in the header."""
    at, event64, vlen = 0, False, 0
    while at < len(data):
        type_ = data[at]
        if type_ in FIXED:
            size = FIXED[type_]
        elif type_ in (COMMENT, ISA_EXTENDED):
            size = 5 + struct.unpack_from('<I', data, at + 1)[0]
        elif type_ == INFO:
            size = 7 + struct.unpack_from('<H', data, at + 5)[0]
        elif type_ == REG:
            meta = data[at + 3]
            if meta >> 4 not in (1, 2, 3) or not 1 <= meta & 15 <= 4:
                raise Refused('register meta 0x%x at 0x%x' % (meta, at))
            if meta & 15 == 3 and not vlen:
                raise Refused('a vector without VLEN_CONFIG at 0x%x' % at)
            size = 4 + 8 * ((vlen + 63) // 64 if meta & 15 == 3 else 1)
        elif type_ == WALK:
            size = 22 + 16 * data[at + 21]
        elif type_ == EVENT:
            size = (10 + 8 * data[at + 9]) if event64 else (6 + 8 * data[at + 5])
        else:
            raise Refused('descriptor %d at 0x%x' % (type_, at))
        if at + size > len(data):
            raise Refused('record %d at 0x%x is cut' % (type_, at))
        record = Record(at, type_, data[at:at + size])
        if type_ == FEATURE:
            event64 = bool(record.word() >> 19 & 1)
        elif type_ == VLEN:
            vlen, = struct.unpack_from('<I', record.data, 1)
            if vlen <= 64:
                raise Refused('VLEN_CONFIG of %d' % vlen)
        elif type_ == EVENT:
            number = record.word() if event64 else struct.unpack_from('<I', record.data, 1)[0]
            record.number = number if event64 else number & 0x3fffffff | number >> 30 << 62
            first = 10 if event64 else 6
            record.fields = [record.word(i) for i in range(first, size, 8)]
        elif type_ == ACCESS and record.data[13] not in (1, 2):
            raise Refused('access type %d at 0x%x' % (record.data[13], at))
        yield record
        at += size


def check_header(got):
    types = [r.type for r in got]
    if types[:2] != [IDENTIFIER, VERSION] or got[0].data[1:] != b'STF':
        raise Refused('the file begins with %s' % types[:2])
    for type_ in (ISA, IEM, FORCE, FEATURE):
        if types.count(type_) != 1:
            raise Refused('%d of %d in the header' % (types.count(type_), type_))
    if INFO not in types or any(types.count(t) > 1 for t in (PROCESS, VLEN, ISA_EXTENDED)):
        raise Refused('a header of %s' % types)
    if set(types) - {IDENTIFIER, VERSION, COMMENT, ISA, IEM, INFO, FEATURE, PROCESS, FORCE, VLEN,
                     ISA_EXTENDED, END_HEADER}:
        raise Refused('foreign records in a header of %s' % types)
    isa, = struct.unpack('<H', got[types.index(ISA)].data[1:])
    iem, = struct.unpack('<H', got[types.index(IEM)].data[1:])
    if not 1 <= isa <= 4 or iem not in (1, 2):
        raise Refused('ISA %d, INST_IEM %d' % (isa, iem))


class Writer:
    """STFWriter's assertions, record by record after the header."""

    def __init__(self):
        self.last, self.before = END_HEADER, None

    def put(self, record):
        type_, last = record.type, self.last
        if last == ACCESS and type_ != CONTENT or last == BUS and type_ != BUS_CONTENT:
            raise Refused('%d behind an access at 0x%x' % (type_, record.at))
        if type_ == CONTENT and last not in (ACCESS, CONTENT):
            raise Refused('a content of nothing at 0x%x' % record.at)
        fine = (type_ >= last or last in MARKERS or type_ in (COMMENT, PROCESS, FORCE) or
                (last == CONTENT and type_ in (ACCESS, REG)) or
                (last == BUS_CONTENT and type_ in (BUS, REG)) or
                (last == EVENT_TARGET and self.before == EVENT and type_ == EVENT) or
                (last in (WALK, REG) and type_ == TARGET) or (last == WALK and type_ == REG))
        if not fine:
            raise Refused('%d behind %d at 0x%x' % (type_, last, record.at))
        if type_ < END_HEADER and type_ not in (COMMENT, PROCESS, FORCE, IEM):
            raise Refused('a header record %d at 0x%x' % (type_, record.at))
        self.before, self.last = last, type_


def check_group(group):
    """What STFInstReader and STFInst::write() throw on: every event except a change of mode must
    have a target, the n-th event the n-th target."""
    traps = [r for r in group if r.type == EVENT and r.number != MODE_CHANGE]
    targets = [r for r in group if r.type == EVENT_TARGET]
    if len(traps) != len(targets):
        raise Refused('%d events with %d targets at 0x%x' % (len(traps), len(targets),
                                                             group[0].at))
    event = False
    for r in group:
        if r.type == EVENT_TARGET and not event:
            raise Refused('EVENT_PC_TARGET without EVENT at 0x%x' % r.at)
        if r.type in (EVENT, EVENT_TARGET):
            event = r.type == EVENT
        if r.type == EVENT and r.number == MODE_CHANGE and (not r.fields or r.fields[0] > 3):
            raise Refused('a mode of %s at 0x%x' % (r.fields, r.at))


def groups(data):
    """Check a file's bytes. Returns its header's records, its groups, and the PC of each. Records
    after the last instruction are the last group, whose PC is None."""
    plain, per_chunk, begins = unpack(data)
    got, header, out, pcs = [], None, [], []
    writer, pc, target, at = Writer(), None, None, {begin: start for begin, start in begins}
    markers = {}
    for record in records(plain):
        got.append(record)
        if header is None:
            if record.type == END_HEADER:
                check_header(got)
                header, pc, got = got, next(r.word() for r in got if r.type == FORCE), []
            continue
        writer.put(record)
        if record.at in at:
            markers[record.at] = len(out)
            if len(got) != 1:
                raise Refused('a chunk begins within a group at 0x%x' % record.at)
            if at[record.at] != pc:
                raise Refused('chunk at 0x%x: start PC 0x%x, it is 0x%x' % (record.at,
                                                                           at[record.at], pc))
        if record.type == FORCE:
            pc = record.word()
        elif record.type in (TARGET, EVENT_TARGET):
            target = record.word()
        elif record.type in MARKERS:
            check_group(got)
            out.append(got)
            pcs.append(pc)
            pc = target if target is not None else pc + (4 if record.type == INST32 else 2)
            target, got = None, []
    if header is None:
        raise Refused('no END_HEADER')
    for number, (begin, _) in enumerate(begins[1:], 1):
        if markers.get(begin) != number * per_chunk:
            raise Refused('chunk %d begins at instruction %s' % (number, markers.get(begin)))
    if per_chunk and len(out) > len(begins) * per_chunk:
        raise Refused('the last chunk has too many instructions')
    if got:
        check_group(got)
        out.append(got)
        pcs.append(None)
    return header, out, pcs


def load(path):
    with open(path, 'rb') as f:
        return groups(f.read())
