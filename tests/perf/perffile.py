"""Other forms of a perf.data file with the same contents: as a pipe, and as written by a machine of the other byte
order."""
import os
import struct
import subprocess

PIPE_TYPES = {"ATTR": 64, "HEADER_FEATURE": 80}
INDEX = 18
FEATURES = 256


class File:
    """A little-endian perf.data file, split into its parts."""

    def __init__(self, raw):
        self.raw = raw
        _, _, self.attr_size, attrs, attrs_n, self.data_at, self.data_n = struct.unpack_from("<7Q", raw)
        self.attrs = []  # (attribute, event IDs)
        for at in range(attrs, attrs + attrs_n, self.attr_size):
            end = at + self.attr_size - 16
            ids, n = struct.unpack_from("<QQ", raw, end)
            self.attrs.append((raw[at:end], raw[ids:ids + n]))
        bits = int.from_bytes(raw[72:104], "little")
        self.features, at = {}, self.data_at + self.data_n
        for f in range(FEATURES):
            if bits >> f & 1:
                offset, n = struct.unpack_from("<QQ", raw, at)
                self.features[f] = raw[offset:offset + n]
                at += 16

    def records(self):
        """(type, misc, body, trace after it)"""
        at, end = self.data_at, self.data_at + self.data_n
        while at < end:
            kind, misc, size = struct.unpack_from("<IHH", self.raw, at)
            trace = struct.unpack_from("<Q", self.raw, at + 8)[0] if kind == 71 else 0
            yield kind, misc, self.raw[at + 8:at + size], self.raw[at + size:at + size + trace]
            at += size + trace


def record(order, kind, body, misc=0):
    return struct.pack(order + "IHH", kind, misc, 8 + len(body)) + body


def as_pipe(raw):
    """The output of `perf record -o -`."""
    if struct.unpack_from("<Q", raw, 8)[0] == 16:
        return raw
    file = File(raw)
    out = [b"PERFILE2" + struct.pack("<Q", 16)]
    out += [record("<", PIPE_TYPES["ATTR"], attr + ids) for attr, ids in file.attrs]
    for f, body in sorted(file.features.items()):
        if f != INDEX and len(body) < 60000:
            body += bytes(-len(body) % 8)
            out.append(record("<", PIPE_TYPES["HEADER_FEATURE"], struct.pack("<Q", f) + body))
    out.append(raw[file.data_at:file.data_at + file.data_n])
    return b"".join(out)


def with_exit(raw, pid, time):
    """As a pipe, where the process's first thread ends at `time` while others continue."""
    body = struct.pack("<iiiiQ", pid, pid, pid, pid, time) + struct.pack("<iiQIIQ", pid, pid, time, 0, 0, 201)
    piped = as_pipe(raw)
    at = piped.index(struct.pack("<IHH", 68, 0, 8))  # before the first FINISHED_ROUND
    return piped[:at] + record("<", 4, body) + piped[at:]


def by_tracepoint(raw):
    """As a pipe from a machine that reports switches only by samples of sched:sched_switch, with the tracepoints'
    formats after a record of its own."""
    file = File(raw)
    flags = struct.unpack_from("<Q", file.attrs[0][0], 24)[0]
    assert flags >> 16 & 1, "events have no identifier"
    attr = bytearray(file.attrs[0][0])
    struct.pack_into("<I", attr, 0, 2)
    struct.pack_into("<Q", attr, 8, 316)
    struct.pack_into("<Q", attr, 24, flags & ~0x21b | 0x10486)  # TID, TIME, CPU, RAW, IDENTIFIER
    out = [record("<", 64, bytes(attr) + struct.pack("<Q", 9999)), record("<", 66, struct.pack("<II", 24, 0)) + bytes(24)]
    piped = as_pipe(raw)
    at = 16
    while at < len(piped):
        kind, misc, size = struct.unpack_from("<IHH", piped, at)
        trace = struct.unpack_from("<Q", piped, at + 8)[0] if kind == 71 else 0
        whole = piped[at:at + size + trace]
        at += size + trace
        if kind == 70:
            whole = whole[:16 + 7 * 8] + struct.pack("<Q", 1) + whole[16 + 8 * 8:]
        if kind == 15 and misc >> 13 & 1:
            _, following = struct.unpack_from("<ii", whole, 8)
            pid, tid, time, cpu = struct.unpack_from("<iiQI", whole, 16)
            fields = struct.pack("<HBBi16siiQ16sii", 316, 0, 0, tid, b"from", tid, 120, 0, b"to", following, 120)
            whole = record("<", 9, struct.pack("<QiiQIII", 9999, pid, tid, time, cpu, 0, 68) + fields + bytes(4))
        elif kind in (14, 15):
            continue
        out.append(whole)
    return piped[:16] + b"".join(out)


def jitted(raw, symfs, out):
    """As a pipe, but as if all code of programs had been generated at run time: it is in dumps below `out`, as
    compilers write them, in functions of 64 bytes each, whose times are in ticks if `raw` is of Intel PT."""
    file, records, dumps = File(raw), [], {}
    shift, mult, zero = next(struct.unpack_from("<3Q", body, 16) for kind, _, body, _ in file.records() if kind == 70)
    for kind, misc, body, trace in file.records():
        if kind == 10 and struct.unpack_from("<i", body)[0] >= 0 and body[64:65] == b"/":
            pid, tid, address, length, offset = struct.unpack_from("<iiQQQ", body)
            end = 64 + (body.index(b"\0", 64) - 64) // 8 * 8 + 8
            name = body[64:body.index(b"\0", 64)].decode()
            time = struct.unpack_from("<Q", body, end + 8)[0] if len(body) > end else 0
            since = (time - zero) % (1 << 64)
            ticks = (since // mult << shift) + ((since % mult << shift) // mult) + 1 if time else 0
            with open(symfs + name, "rb") as f:
                code = f.read()[offset:offset + length]
            for at in range(0, len(code), 64):
                part = code[at:at + 64]
                load = struct.pack("<iiQQQQ", pid, tid, address + at, address + at, len(part), at) + b"f%d\0" % at + part
                dumps.setdefault(pid, []).append(struct.pack("<IIQ", 0, 16 + len(load), ticks) + load)
            sign = struct.pack("<iiQQQ", pid, tid, 0x7e0000000000, 0x1000, 0) + body[32:56] + body[56:64]
            sign += b"/tmp/jit-%d.dump" % pid
            body, misc = sign + bytes(8 - len(sign) % 8) + body[end:], misc & ~(1 << 14)
        records.append(record("<", kind, body, misc) + trace)
    os.makedirs(os.path.join(out, "tmp"))
    for pid, loads in dumps.items():
        with open(os.path.join(out, "tmp", "jit-%d.dump" % pid), "wb") as f:
            f.write(struct.pack("<IIIIIIQQ", 0x4a695444, 1, 40, 62, 0, pid, 0, 1) + b"".join(loads))
    attrs = b"".join(record("<", PIPE_TYPES["ATTR"], attr + ids) for attr, ids in file.attrs)
    return b"PERFILE2" + struct.pack("<Q", 16) + attrs + b"".join(records)


PSB = bytes([2, 0x82]) * 8


def with_guest(raw, first, end):
    """As a pipe, where a virtual machine runs on CPU 0 between two PSBs: each PSB+ has a PIP that says so."""
    n, moved, out = 0, {}, []
    for kind, misc, body, trace in records_of(as_pipe(raw)):
        if kind == 71:
            offset, cpu = struct.unpack_from("<8xQ16xi", body)
            parts = trace.split(PSB)
            whole = parts[0]
            for part in parts[1:]:
                whole += PSB + bytes([2, 0x43, cpu == 0 and first <= n < end, 0x10, 0, 0, 0, 0]) + part
                n += cpu == 0
            body = struct.pack("<QQ", len(whole), offset + moved.get(cpu, 0)) + body[16:]
            moved[cpu] = moved.get(cpu, 0) + len(whole) - len(trace)
            trace = whole
        out.append(record("<", kind, body, misc) + trace)
    assert n > end, "only %d PSB" % n
    guest = struct.pack("<iiQQQ", -1, 0, 0, (1 << 64) - 4096, 0) + b"[guest.kernel.kallsyms]\0"
    return b"PERFILE2" + struct.pack("<Q", 16) + b"".join(out[:4] + [record("<", 1, guest, 4)] + out[4:])


# ---- code that is in no file ------------------------------------------------------------------

KERNEL_TRAILER = 40  # pid, tid, time, cpu, identifier


def without_code(elf, parts):
    """The ELF file with INT3 instead of the code at each (address, length); and the code that was there."""
    out, code = bytearray(elf), []
    headers, n = struct.unpack_from("<Q", elf, 32)[0], struct.unpack_from("<H", elf, 56)[0]
    for address, length in parts:
        for i in range(n):
            kind, _, offset, start, _, size = struct.unpack_from("<IIQQQQ", elf, headers + 56 * i)
            if kind == 1 and start <= address < start + size:
                at = offset + address - start
                code.append(elf[at:at + length])
                out[at:at + length] = b"\xcc" * length
    return bytes(out), code


def text_poke(address, before, after, time, sample_id):
    body = struct.pack("<QHH", address, len(before), len(after)) + before + after
    body += bytes(-len(body) % 8) + struct.pack("<iiQIIQ", 0, 0, time, 0, 0, sample_id)
    return record("<", 20, body)


def ksymbol(address, length, name, time, sample_id, kind=1, flags=0):
    body = struct.pack("<QIHH", address, length, kind, flags) + name + b"\0"
    body += bytes(-len(body) % 8) + struct.pack("<iiQIIQ", 0, 0, time, 0, 0, sample_id)
    return record("<", 17, body)


def module(address, code, name):
    """A kernel module as an ELF file, and the record with the address of its .text."""
    names = b"\0.text\0.shstrtab\0"
    text_at, names_at = 64, 64 + len(code)
    table = names_at + len(names) + -(names_at + len(names)) % 8
    head = b"\x7fELF" + bytes([2, 1, 1]) + bytes(9) + struct.pack(
        "<HHIQQQIHHHHHH", 1, 62, 1, 0, 0, table, 0, 64, 0, 0, 64, 3, 2)
    sections = bytes(64) + struct.pack("<IIQQQQIIQQ", 1, 1, 6, 0, text_at, len(code), 0, 0, 1, 0)
    sections += struct.pack("<IIQQQQIIQQ", 7, 3, 0, 0, names_at, len(names), 0, 0, 1, 0)
    file = (head + code + names).ljust(table, b"\0") + sections
    body = struct.pack("<iiQQQ", -1, 0, address, len(code), 0) + name.encode() + bytes(8 - len(name) % 8)
    return file, record("<", 1, body, 1)


def bpf_info(programs):
    """The feature BPF_PROG_INFO: for each program its functions (address, code)."""
    out = struct.pack("<I", len(programs))
    for i, functions in enumerate(programs):
        code = b"".join(c for _, c in functions)
        data = code + bytes(-len(code) % 8) + b"".join(struct.pack("<Q", a) for a, _ in functions)
        lengths = len(data)
        data += b"".join(struct.pack("<I", len(c)) for _, c in functions)
        info = bytearray(232)
        struct.pack_into("<II8sII", info, 0, 1, i, bytes([i] * 8), len(code), 0)
        struct.pack_into("<Q", info, 24, 0)
        info[64:68] = b"prog"
        struct.pack_into("<IIQQ", info, 104, len(functions), len(functions), lengths - 8 * len(functions), lengths)
        out += struct.pack("<IIQ", len(info), len(data), 0x19) + bytes(info) + data
    return out


def with_records(raw, records, features={}):
    """A pipe with more records after those at the beginning of the file, and features after everything."""
    piped, file = as_pipe(raw), File(raw)
    first = next(i for i, (kind, *_) in enumerate(file.records()) if kind not in (70, 69, 79, 1))
    at = len(piped) - file.data_n + sum(8 + len(b) + len(t) for _, _, b, t in list(file.records())[:first])
    tail = b"".join(record("<", 80, struct.pack("<Q", f) + body + bytes(-len(body) % 8)) for f, body in features.items())
    return piped[:at] + b"".join(records) + piped[at:] + tail


def in_samples(raw):
    """As a pipe, but with trace in samples of an event, as from `perf record --aux-sample`: several pieces of the
    ring, each beginning with the end of the previous one."""
    file = File(raw)
    attr = bytearray(file.attrs[0][0])
    kind = 0x10000 | 1 | 2 | 4 | 128 | 1 << 10 | 1 << 11 | 1 << 12 | 1 << 13 | 1 << 20
    struct.pack_into("<I", attr, 0, 4)  # raw event of the processor
    struct.pack_into("<Q", attr, 24, kind)
    struct.pack_into("<QQ", attr, 72, 1 << 17, 0xff)  # branch stack with an index; registers
    out = [record("<", 64, bytes(attr) + struct.pack("<Q", 9999))]
    piped, rings, tail = as_pipe(raw), {}, {}
    head = len(piped) - file.data_n
    for kind, misc, body, trace in file.records():
        if kind != 71:
            out.append(record("<", kind, body, misc))
            continue
        cpu = struct.unpack_from("<i", body, 32)[0]
        ring = rings[cpu] = rings.get(cpu, b"") + trace
        for at in range(len(ring) - len(trace), len(ring), 20000):
            end = min(at + 20000, len(ring))
            part = ring[max(0, at - 4096):end]
            fields = struct.pack("<QQiiQII", 9999, 0x401000, 1, 1, 0, cpu, 0)
            fields += struct.pack("<I", 12) + bytes(12)  # raw
            fields += struct.pack("<QQ", 1, 0) + bytes(24)  # branches
            fields += struct.pack("<Q", 1) + bytes(64) + struct.pack("<QQQ", 8, 0, 8)  # registers, stack
            out.append(record("<", 9, fields + struct.pack("<Q", len(part)) + part))
    return piped[:head] + b"".join(out)


def as_folder(raw, out, compress=False):
    """The output of `perf record --threads`: the kernel's records are in two files of their own."""
    file = File(raw)
    own, others = b"", [b"", b""]
    for kind, misc, body, trace in file.records():
        whole = record("<", kind, body, misc) + trace
        if kind == 68:
            continue
        if kind == 71:
            others[struct.unpack_from("<i", body, 32)[0] & 1] += whole
        elif kind >= 64 or kind == 1:
            own += whole
        elif compress:
            z = subprocess.run(["zstd", "-q", "-1", "-c"], input=whole, stdout=subprocess.PIPE, check=True).stdout
            others[1 - struct.unpack_from("<I", body, len(body) - 16)[0] % 2] += record("<", 81, z)
        else:
            others[1 - struct.unpack_from("<I", body, len(body) - 16)[0] % 2] += whole
    head = bytearray(raw[:file.data_at])
    struct.pack_into("<Q", head, 48, len(own))
    features = dict(file.features)
    features[24] = struct.pack("<Q", 1)
    head[72:104] = sum(1 << f for f in features).to_bytes(32, "little")
    at = len(head) + len(own) + 16 * len(features)
    table, bodies = b"", b""
    for _, body in sorted(features.items()):
        table += struct.pack("<QQ", at + len(bodies), len(body))
        bodies += body
    os.makedirs(out)
    for name, content in ("data", bytes(head) + own + table + bodies), ("data.0", others[0]), ("data.1", others[1]):
        with open(os.path.join(out, name), "wb") as f:
            f.write(content)


# ---- the other byte order ---------------------------------------------------------------------

def swapped(fields, body):
    """Swap `fields`, as of struct, from the beginning of the body; the rest is unchanged."""
    n = struct.calcsize("<" + fields)
    return struct.pack(">" + fields, *struct.unpack("<" + fields, body[:n])) + body[n:]


def words(body):
    return swapped("%dQ" % (len(body) // 8), body)


MIRRORED = bytes(int("{:08b}".format(b)[::-1], 2) for b in range(256))


def swapped_attr(attr):
    out = bytearray(swapped("IIQQQQ", attr))
    out[40:48] = attr[40:48].translate(MIRRORED)
    out[48:56] = swapped("II", attr[48:56])
    out[56:] = words(attr[56:])
    return bytes(out)


def trailer_fields(sample_type):
    tid, cpu = sample_type >> 1 & 1, sample_type >> 7 & 1
    rest = sum(sample_type >> b & 1 for b in (2, 6, 9))
    return "ii" * tid + "Q" * rest + "II" * cpu + "Q" * (sample_type >> 16 & 1)


def swapped_name(fields, body, trailer):
    """A record that ends in a name, possibly followed by a trailer."""
    n = struct.calcsize("<" + fields)
    end = n + (body.index(b"\0", n) - n) // 8 * 8 + 8
    tail = body[end:]
    return swapped(fields, body[:n]) + body[n:end] + (swapped(trailer, tail) if tail else b"")


def swapped_body(kind, misc, body, trailer):
    if kind == 1:
        return swapped_name("iiQQQ", body, trailer)
    if kind == 10 and misc >> 14 & 1:
        head = swapped("iiQQQ", body[:32]) + body[32:56] + swapped("II", body[56:64])
        return head + swapped_name("", body[64:], trailer)
    if kind == 10:
        return swapped_name("iiQQQIIQQII", body, trailer)
    if kind == 3:
        return swapped_name("ii", body, trailer)
    fixed = {2: "QQ", 4: "iiiiQ", 7: "iiiiQ", 11: "QQQ", 12: "ii", 14: "", 15: "ii", 21: "Q"}
    if kind in fixed:
        n = struct.calcsize("<" + fixed[kind])
        return swapped(fixed[kind], body[:n]) + (swapped(trailer, body[n:]) if body[n:] else b"")
    if kind == 70:
        return swapped("II", body[:8]) + words(body[8:])
    if kind == 71:
        return swapped("QQQIiiI", body)
    if kind in (69, 68):
        return words(body)
    if kind == 79:
        return words(body[:40]) + body[40:]
    raise NotImplementedError("record %d" % kind)


def as_other_order(raw):
    """The same file from a big-endian machine. The trace itself has no byte order."""
    file = File(raw)
    trailer = trailer_fields(struct.unpack_from("<Q", file.attrs[0][0], 24)[0])
    data = b"".join(
        record(">", kind, swapped_body(kind, misc, body, trailer), misc) + trace
        for kind, misc, body, trace in file.records())
    ids_at, table, ids = 104 + len(file.attrs) * file.attr_size, b"", b""
    for attr, own in file.attrs:
        table += swapped_attr(attr) + struct.pack(">QQ", ids_at + len(ids), len(own))
        ids += words(own)
    data_at = ids_at + len(ids)
    head = b"2ELIFREP" + struct.pack(">8Q", 104, file.attr_size, 104, len(table), data_at, len(data), 0, 0)
    return head + bytes(32) + table + ids + data


# ---- CoreSight without formatter frames --------------------------------------------------------

def unframed(frames, wanted):
    """The bytes of one trace ID from 16-byte formatter frames. Source: Arm IHI0029E, D4."""
    out, current = bytearray(), 0
    for at in range(0, len(frames) - 15, 16):
        frame = frames[at:at + 16]
        for i in range(0, 15, 2):
            late = frame[15] >> (i // 2) & 1
            if frame[i] & 1:
                new = frame[i] >> 1
                if i + 1 < 15 and late and current == wanted:
                    out.append(frame[i + 1])
                current = new
                if i + 1 < 15 and not late and current == wanted:
                    out.append(frame[i + 1])
            else:
                if current == wanted:
                    out.append(frame[i] | late)
                if i + 1 < 15 and current == wanted:
                    out.append(frame[i + 1])
    return bytes(out)


def as_raw(raw, wanted, cpu):
    """A formatted recording as a pipe whose sink (TRBE) has each CPU's bytes without frames."""
    file = File(raw)
    sample_type = struct.unpack_from("<Q", file.attrs[0][0], 24)[0]
    records = list(file.records())
    traces = [(struct.unpack_from("<Q", body, 8)[0], trace) for kind, _, body, trace in records if kind == 71]
    out, at, area = [], 0, b""
    for kind, misc, body, trace in records:
        if kind == 71:
            continue
        if kind == 11:
            offset, size = struct.unpack_from("<QQ", body)
            found = next(trace[offset - base:offset - base + size] for base, trace in traces
                         if base <= offset < base + len(trace))
            own = unframed(found, wanted)
            body = struct.pack("<QQQ", at, len(own), 0x100) + body[24:]
            at += len(own)
            area += own
        out.append(record("<", kind, body, misc))
    size = len(area) + -len(area) % 8
    head = struct.pack("<QQQIiiI", size, 0, 0, 0, -1, cpu, 0)
    out.append(record("<", 71, head) + area + bytes(size - len(area)))
    attrs = b"".join(record("<", PIPE_TYPES["ATTR"], attr + ids) for attr, ids in file.attrs)
    feature = struct.pack("<Q", 2) + file.features[2]
    attrs += record("<", PIPE_TYPES["HEADER_FEATURE"], feature + bytes(-len(feature) % 8))
    assert sample_type
    return b"PERFILE2" + struct.pack("<Q", 16) + attrs + b"".join(out)


CS_TRAILER = 32  # pid, tid, time, id, cpu
NS_A_TICK = 40


def stamped(trace, ticks):
    """The same bytes of a trace unit with a timestamp before its Trace On."""
    at = trace.index(b"\x04", 12)
    fields = bytes(ticks >> 7 * i & 0x7f | 0x80 for i in range(8)) + bytes([ticks >> 56])
    return trace[:at] + b"\x02" + fields + trace[at:]


def records_of(piped):
    """For each record of a piped file: kind, misc, body, and for AUXTRACE its bytes."""
    at, records = 16, []
    while at < len(piped):
        kind, misc, size = struct.unpack_from("<IHH", piped, at)
        n = struct.unpack_from("<Q", piped, at + 8)[0] if kind == 71 else 0
        records.append([kind, misc, piped[at + 8:at + size], piped[at + size:at + size + n]])
        at += size + n
    return records


def replaced(raw, wanted, cpu, other, clock="", joined=False):
    """As as_raw(), but the code traced by the last enabling runs once more after the program was replaced by `other`,
    a file mapped at the same address. AUX records contain the times when each of the two ended; with `clock` the
    trace has timestamps: of the "virtual" counter, in which case both AUX records are later than the change, or of a
    "foreign" clock. `joined`: both runs are in one enabling."""
    piped = as_raw(raw, wanted, cpu)
    records = records_of(piped)
    aux = [r for r in records if r[0] == 11]
    offset, size, flags = struct.unpack_from("<QQQ", aux[-1][2])
    area = next(r for r in records if r[0] == 71)
    head, last = area[3][:offset], area[3][offset:offset + size]
    end = struct.unpack_from("<Q", aux[-1][2], 24 + 8)[0] // NS_A_TICK * NS_A_TICK
    change, late, zero = end + 1000, 5000 if clock == "virtual" else 0, 1000
    stamps = {"": None, "foreign": (7, 8)}.get(clock, [(t - zero) // NS_A_TICK for t in (end + 480, end + 2000)])
    both = [stamped(last, t) for t in stamps] if stamps else [last, last]

    def placed(body, before, fields):
        return body[:before] + fields + body[before + len(fields):]

    def aux_record(offset, size, time):
        body = struct.pack("<QQQ", offset, size, flags) + placed(aux[-1][2][24:], 8, struct.pack("<Q", time))
        return [11, aux[-1][1], body, b""]

    second = offset + len(both[0])
    if joined:
        ends = [aux_record(offset, len(both[0]) + len(both[1]), end + late)]
    else:
        ends = [aux_record(offset, len(both[0]), end + late), aux_record(second, len(both[1]), end + 2000 + late)]
    mapped = next(r for r in records if r[0] == 10 and b"etm_test_loop" in r[2] and r[2][56] & 4)
    name = other + bytes(8 - len(other) % 8)
    trailer = placed(mapped[2][-CS_TRAILER:], 8, struct.pack("<Q", change))
    ends.append([10, mapped[1], mapped[2][:64] + name + trailer, b""])
    whole = head + both[0] + both[1]
    whole += bytes(-len(whole) % 8)
    area[2:] = [placed(area[2], 0, struct.pack("<Q", len(whole))), whole]
    records[records.index(aux[-1]):records.index(aux[-1]) + 1] = ends
    for r in records:
        if r[0] == 70 and clock:
            values = list(struct.unpack_from("<%dQ" % (len(r[2]) // 8 - 1), r[2], 8))
            units, i = values[:3], 3
            while i < len(values):
                magic, unit, n = values[i:i + 3]
                regs = values[i + 3:i + 3 + n]
                regs = [regs[0] | 1 << 11] + regs[1:7] + [0] * (magic >> 60 == 5) + [int(clock == "virtual")]
                units += [magic, unit, len(regs)] + regs
                i += 3 + n
            r[2] = r[2][:8] + struct.pack("<%dQ" % len(units), *units)
    if clock:
        records.insert(0, [79, 0, struct.pack("<QQQ", 10, NS_A_TICK << 10, zero), b""])
    return piped[:16] + b"".join(record("<", kind, body, misc) + trace for kind, misc, body, trace in records)


def with_vmid(raw, wanted, cpu, tid, context_id=None, level=0):
    """As as_raw(), for a kernel at EL2: threads are identified by VMID; with `context_id` there is also that of a
    virtual machine. `level`: the exception level at which the program runs; if it is not 0, the program is a kernel
    module."""
    records = records_of(as_raw(raw, wanted, cpu))
    area = next(r for r in records if r[0] == 71)
    old = struct.pack("<I", tid)
    out, whole, changed = [], b"", 0
    for kind, misc, body, trace in records:
        if kind == 11:
            offset, size, flags = struct.unpack_from("<QQQ", body)
            piece = area[3][offset:offset + size]
            at = piece.find(old)
            while at > 0:
                info = piece[at - 1]
                assert info & 0xc3 == 0x80, "no context ID at EL0"
                ids = old if context_id is None else old + struct.pack("<I", context_id)
                info = info & ~0x80 | 0x40 | level | (0 if context_id is None else 0x80)
                piece = piece[:at - 1] + bytes([info]) + ids + piece[at + 4:]
                at = piece.find(old, at + len(ids))
                changed += 1
            body = struct.pack("<QQQ", len(whole), len(piece), flags) + body[24:]
            whole += piece
        elif kind == 64 and level:
            flags = struct.unpack_from("<Q", body, 40)[0]
            body = body[:40] + struct.pack("<Q", flags & ~0x20) + body[48:]  # the kernel is also traced
        elif kind == 70:
            head, units = units_of(body)
            for unit in units.values():
                unit[3] = 0x8080 if context_id is None else 0x80c0
            body = body[:8] + b"".join(struct.pack("<%dQ" % len(u), *u) for u in [head, *units.values()])
        elif kind == 10 and level and body[56] & 4 and b"etm_test_loop" in body:
            kind, body = 1, struct.pack("<ii", -1, 0) + body[8:24] + bytes(8) + body[64:]
        elif kind == 71:
            whole += bytes(-len(whole) % 8)
            body, trace = struct.pack("<Q", len(whole)) + body[8:], whole
        out.append(record("<", kind, body, misc) + trace)
    assert changed > 1
    return b"PERFILE2" + struct.pack("<Q", 16) + b"".join(out)


# ---- CoreSight: several cores -------------------------------------------------------------------

def framed(sources):
    """16-byte formatter frames of (trace ID, bytes), with frames of each source in turn."""
    out, rest = bytearray(), [(trace_id, bytes(trace)) for trace_id, trace in sources]
    while any(trace for _, trace in rest):
        for i, (trace_id, trace) in enumerate(rest):
            if not trace:
                continue
            rest[i] = (trace_id, trace[14:])
            frame = bytearray(16)
            frame[0] = trace_id << 1 | 1
            for k, byte in enumerate(trace[:14], 1):
                frame[k] = byte & (0xff if k % 2 else 0xfe)
                frame[15] |= (byte & 1) << k // 2 if k % 2 == 0 else 0
            last = len(trace)  # bytes after this position belong to ID 0
            if last < 14 and last % 2 == 1:
                frame[last + 1] = 1
            elif last < 14:
                frame[last:last + 2] = 1, trace[-1]
                frame[15] |= 1 << last // 2
            out += frame
    return bytes(out)


def units_of(info):
    """The blocks of an AUXTRACE_INFO of version 1, by CPU."""
    values = struct.unpack_from("<%dQ" % (len(info) // 8 - 1), info, 8)
    units, i = {}, 3
    while i < len(values):
        units[values[i + 1]] = list(values[i:i + 3 + values[i + 2]])
        i += 3 + values[i + 2]
    return values[:3], units


def with_second_core(raw, wanted, cpu, other, sinks, with_cpus=True):
    """As as_raw(), in header version 2 and with a second core, CPU `other`, that did the same. With one sink both are
    in frames in one buffer, the second core as trace ID 0x20; with two, each has its own, and both have the same ID.
    Without `with_cpus`, no record has its CPU; ID_INDEX has the CPU of each event."""
    piped = as_raw(raw, wanted, cpu)
    records = records_of(piped)
    events = {cpu: 0x7001, other: 0x7002}

    def trailer(old, of):
        return old[:16] + struct.pack("<QII", events[of], of, 0)[:None if with_cpus else 8]

    def hw_id(of, value):
        return [21, 0, struct.pack("<Q", value) + trailer(struct.pack("<iiQ", 0, 0, 1), of), b""]

    area = next(r for r in records if r[0] == 71)[3]
    second_id = wanted if sinks == 2 else 0x20
    minor = (sinks - 1) << 56
    own = [hw_id(cpu, minor | 7 << 8 | wanted), hw_id(other, minor | 8 << 8 | second_id)]
    index = struct.pack("<Q", 2) + b"".join(struct.pack("<QQqq", events[c], i, c, -1) for i, c in enumerate(events))
    out, whole = [[69, 0, index, b""]], b""
    for kind, misc, body, trace in records:
        if kind == 64 and not with_cpus:
            sample_type = struct.unpack_from("<Q", body, 24)[0]
            body = body[:24] + struct.pack("<Q", sample_type & ~0x80) + body[32:]
        elif kind == 70:
            (_, pmu, snapshot), units = units_of(body)
            units[other] = units[cpu][:1] + [other] + units[cpu][2:]
            for unit in units.values():
                unit[4] = 0x7f | 1 << 31
            head = [2, pmu >> 32 << 32 | len(units), snapshot]
            body = body[:8] + b"".join(struct.pack("<%dQ" % len(u), *u) for u in [head, *units.values()])
            out += [[kind, misc, body, trace], *own]
            continue
        elif kind == 11:
            offset, size = struct.unpack_from("<QQ", body)
            piece, old = area[offset:offset + size], body[24:]
            if sinks == 2:
                out.append([11, misc, body[:24] + trailer(old, other), b""])
                body = body[:24] + trailer(old, cpu)
            else:
                piece = framed([(wanted, piece), (second_id, piece)])
                body = struct.pack("<QQQ", len(whole), len(piece), 0) + trailer(old, cpu)
            whole += piece
        elif kind == 71:
            for i, c in enumerate(list(events)[:sinks]):
                padded = whole + bytes(-len(whole) % 8)
                out.append([71, 0, struct.pack("<QQQIiiI", len(padded), 0, 0, i, -1, c, 0), padded])
            continue
        elif kind < 64 and not with_cpus and len(body) > CS_TRAILER:
            body = body[:-8]
        out.append([kind, misc, body, trace])
    return piped[:16] + b"".join(record("<", kind, body, misc) + trace for kind, misc, body, trace in out)


def with_pips(trace):
    """Trace of Intel PT in which each PSB+ ends by saying that a virtual machine runs (PIP, NR)."""
    psb, end, pip, out = bytes.fromhex("0282" * 8), b"\x02\x23", bytes.fromhex("0243012000000000"), bytearray()
    while True:
        at = trace.find(psb)
        stop = trace.find(end, at + len(psb)) if at >= 0 else -1
        if stop < 0:
            return bytes(out) + trace
        out += trace[:stop] + pip + end
        trace = trace[stop + len(end):]


def with_name(body, at, begin, other):
    """A mapping whose name begins otherwise, if it begins so."""
    if not body[at:].startswith(begin):
        return body
    end = body.index(b"\0", at)
    name = other + body[at + len(begin):end] + b"\0"
    return body[:at] + name + bytes(-len(name) % 8) + body[at + (end - at) // 8 * 8 + 8:]


def as_guest(raw, machine):
    """As a pipe of the host on which the traced machine is a virtual one, its records merged in as `perf inject
    --guest-data` does. The machine is process `machine`, and its processors are the threads after it."""
    file, out, done, moved = File(raw), [b"PERFILE2" + struct.pack("<Q", 16)], set(), {}
    more = 1000  # a virtual machine's event IDs are larger by this
    ids = [struct.unpack("<%dQ" % (len(raw_ids) // 8), raw_ids) for _, raw_ids in file.attrs]
    for attr, raw_ids in file.attrs:
        out.append(record("<", PIPE_TYPES["ATTR"], attr + raw_ids))
    out.append(record("<", PIPE_TYPES["ATTR"], file.attrs[1][0] + struct.pack("<%dQ" % len(ids[1]), *(i + more for i in ids[1]))))
    index = [(i, n, n, 2 ** 64 - 1, 0, 0) for n, i in enumerate(ids[1])]
    index += [(i + more, n, 2 ** 64 - 1, machine + 1 + n, machine, n) for n, i in enumerate(ids[1])]
    out.append(record("<", 69, struct.pack("<Q", len(index)) + b"".join(struct.pack("<4Q", *i[:4]) for i in index) +
                      b"".join(struct.pack("<2Q", *i[4:]) for i in index)))
    for kind, misc, body, trace in file.records():
        if kind == 71:
            size, offset, reference, idx = struct.unpack_from("<QQQI", body)
            trace = with_pips(trace)
            trace += bytes(-len(trace) % 8)
            body = struct.pack("<QQQ", len(trace), moved.get(idx, 0), reference) + body[24:]
            moved[idx] = moved.get(idx, 0) + len(trace)
        elif kind in (1, 3, 4, 7, 10, 12, 14, 15):
            who, (time, cpu, _, event) = body[-40:-32], struct.unpack("<QIIQ", body[-24:])
            event = event or ids[1][0]
            if cpu not in done:
                done.add(cpu)
                tail = struct.pack("<iiQIIQ", machine, machine + 1 + cpu, 1, cpu, 0, event)
                out.append(record("<", 3, struct.pack("<ii8s", machine, machine, b"qemu") + tail))
                out.append(record("<", 12, struct.pack("<ii", machine, machine + 1 + cpu) + tail))
            if kind == 12:  # is not merged: the thread is known by the next switch to it
                kind, misc, body = 14, 0, body[:8] + body[-32:]
                body = body[8:]
            if kind in (1, 10):
                misc = misc & ~7 | (4 if misc & 7 == 1 else 5)
                body = with_name(body, 32 if kind == 1 else 64, b"[kernel.", b"[guest.kernel.")
            body = body[:-8] + struct.pack("<Q", event + more)
        elif kind == 69 or kind == 11:
            continue
        out.append(record("<", kind, body, misc) + trace)
    return b"".join(out)
