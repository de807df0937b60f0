"""perf.data with samples of Arm SPE, written record by record from the layouts that the documents give, and a program
for it."""
import struct

RETIRED, NOT_TAKEN, MISPREDICTED = 2, 64, 128
EL0, EL1 = 1 << 63, 1 << 63 | 1 << 61
BASE = 0x400000


def elf(path, functions):
    """An AArch64 program of these functions, {name: (address, size)}, all of NOPs, mapped from BASE on."""
    names, symbols = b"\0", bytes(24)
    end = max(a + n for a, n in functions.values()) - BASE
    for name, (address, size) in functions.items():
        symbols += struct.pack("<IBBHQQ", len(names), 0x12, 0, 1, address, size)
        names += name.encode() + b"\0"
    text = b"\x1f\x20\x03\xd5" * ((end - 0x1000) // 4)
    at = 0x1000 + len(text)
    strings = b"\0.text\0.symtab\0.strtab\0"
    sections = bytes(64) + struct.pack("<IIQQQQIIQQ", 1, 1, 6, BASE + 0x1000, 0x1000, len(text), 0, 0, 4, 0)
    sections += struct.pack("<IIQQQQIIQQ", 7, 2, 0, 0, at, len(symbols), 3, 1, 8, 24)
    sections += struct.pack("<IIQQQQIIQQ", 15, 3, 0, 0, at + len(symbols), len(names), 0, 0, 1, 0)
    sections += struct.pack("<IIQQQQIIQQ", 15, 3, 0, 0, at + len(symbols) + len(names), len(strings), 0, 0, 1, 0)
    headers = at + len(symbols) + len(names) + len(strings)
    head = b"\x7fELF\x02\x01\x01" + bytes(9) + struct.pack("<HHIQQQIHHHHHH", 2, 183, 1, BASE + 0x1000, 64, headers, 0, 64, 56,
                                                          1, 64, 5, 4)
    head += struct.pack("<IIQQQQQQ", 1, 5, 0, BASE, BASE, end, end, 0x1000)
    with open(path, "wb") as f:
        f.write(head + bytes(0x1000 - len(head)) + text + symbols + names + strings + sections)


def address(index, value):
    return bytes([0xb0 + index]) + struct.pack("<Q", value)


def sample(pc, time, tid=None, op=None, events=RETIRED, target=None, back=None, data=None, cycles=None, source=None):
    """A record; `op` is (header, value) of its operation type."""
    out = address(0, pc | EL0)
    if tid is not None:
        out += b"\x64" + struct.pack("<I", tid)
    if cycles is not None:
        out += b"\x98" + struct.pack("<H", cycles)
    out += b"\x52" + struct.pack("<H", events)
    if op:
        out += bytes(op)
    if target is not None:
        out += address(1, target | EL0)
    if data is not None:
        out += address(2, data)
    if back is not None:
        out += address(4, back | EL0)
    if source is not None:
        out += b"\x43" + bytes([source])
    return out + b"\x71" + struct.pack("<Q", time)


def record(kind, body, misc=0):
    return struct.pack("<IHH", kind, misc, 8 + len(body)) + body


def capture(path, pid, name, length, cpus, later=False):
    """A pipe: one process, mapped from BASE on, and its threads' samples in {cpu: bytes}. Times are ticks; one is 4 ns
    of perf's clock, which begins at 1000."""
    def attr(kind, config, sample_type, flags, ids):
        body = struct.pack("<IIQQQQQ", kind, 128, config, 1024, sample_type, 0, flags) + bytes(80)
        return record(64, body + struct.pack("<%dQ" % len(ids), *ids))

    def tail(tid, time, cpu):
        return struct.pack("<iiQIIQ", pid, tid, time, cpu, 0, 201)

    kind = 1 << 1 | 1 << 2 | 1 << 7 | 1 << 16
    flags = 1 << 18
    out = b"PERFILE2" + struct.pack("<Q", 16)
    out += attr(13, 1 | 7 << 32, kind, flags, [101]) + attr(1, 9, kind, flags | 1 << 8 | 1 << 9 | 1 << 26, [201])
    words = [2, 4, 13, len(cpus)] if later else [13, 1]
    for cpu in cpus if later else ():
        words += [0x1010101010101010, cpu, 3, 0x410fd0c1, 13, 1024]
    out += record(70, struct.pack("<II", 4, 0) + struct.pack("<%dQ" % len(words), *words))
    out += record(79, struct.pack("<QQQQQBB6x", 0, 4, 1000, 0, 0, 1, 0))
    out += record(3, struct.pack("<ii", pid, pid) + name.encode() + bytes(8 - len(name) % 8) + tail(pid, 0, 0))
    file = ("/opt/" + name).encode()
    out += record(10, struct.pack("<iiQQQ", pid, pid, BASE, length, 0) + bytes(24) + struct.pack("<II", 5, 2) + file +
                  bytes(8 - len(file) % 8) + tail(pid, 0, 0), 2)
    for cpu, (trace, end) in cpus.items():
        trace += bytes(-len(trace) % 8)
        out += record(11, struct.pack("<QQQ", 0, len(trace), 0) + tail(pid, end, cpu))
        out += record(71, struct.pack("<QQQIiiI", len(trace), 0, 0, cpu, -1, cpu, 0)) + trace
    out += record(68, b"")
    with open(path, "wb") as f:
        f.write(out)
