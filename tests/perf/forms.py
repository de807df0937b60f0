#!/usr/bin/env python3
"""Forms of perf.data written by versions of perf and simpleperf, each created from a capture with known instructions.

usage: forms.py PROGRAM DATA     exit status 77 if DATA has no captures
"""
import gzip, os, re, shutil, struct, subprocess, sys, tempfile

import perffile
from perffile import record, records_of
from truth import Checks, instructions

MAGIC = b"PERFILE2" + struct.pack("<Q", 16)


def piped(records):
    return MAGIC + b"".join(record("<", kind, body, misc) + trace for kind, misc, body, trace in records)


def as_file(raw, records=None, attr_size=None, cut=False, features=True):
    """A file with other records, attributes of another size, or as left by a perf that was killed."""
    file = perffile.File(raw)
    data = b"".join(record("<", k, b, m) + t for k, m, b, t in (records or file.records()))
    at, table, ids = 104, b"", b""
    attrs = [(resized(attr, attr_size or len(attr)), own) for attr, own in file.attrs]
    ids_at = at + sum(len(attr) + 16 for attr, _ in attrs)
    for attr, own in attrs:
        table += attr + struct.pack("<QQ", ids_at + len(ids), len(own))
        ids += own
    data_at = ids_at + len(ids)
    kept = {f: body for f, body in file.features.items() if f != perffile.INDEX} if features and not cut else {}
    head = b"PERFILE2" + struct.pack("<8Q", 104, len(attrs[0][0]) + 16, 104, len(table), data_at,
                                     0 if cut else len(data), 0, 0)
    head += sum(1 << f for f in kept).to_bytes(32, "little")
    sections, bodies = b"", b""
    behind = data_at + len(data) + 16 * len(kept)
    for _, body in sorted(kept.items()):
        sections += struct.pack("<QQ", behind + len(bodies), len(body))
        bodies += body
    return head + table + ids + data + sections + bodies


def resized(attr, size):
    return attr[:4] + struct.pack("<I", size) + attr[8:].ljust(size - 8, b"\0")[:size - 8]


def changed(raw, kind, change):
    """The pipe with the bodies of records of one kind changed."""
    return piped([[k, m, change(b) if k == kind else b, t] for k, m, b, t in records_of(perffile.as_pipe(raw))])


def info_of(raw):
    return next(body for kind, _, body, _ in perffile.File(raw).records() if kind == 70)


# ---- all kinds of trace -------------------------------------------------------------------------

def versions(checks, name, raw, expected, places):
    """Differences between versions of perf."""
    args = ["--format", "perf", *places, "-"]
    for size in (64, 72, 80, 96, 104, 112, 120, 128, 136, 144):
        checks.run("%s, attributes of %d bytes" % (name, size), expected, args, as_file(raw, attr_size=size))
        checks.run("%s, ATTR records of %d bytes" % (name, size), expected, args, piped(
            [[k, m, resized(b[:struct.unpack_from("<I", b, 4)[0]], size) + b[struct.unpack_from("<I", b, 4)[0]:], t]
             if k == 64 else [k, m, b, t] for k, m, b, t in records_of(perffile.as_pipe(raw))]))
    checks.run(name + ", stopped hard", expected, args, as_file(raw, cut=True))
    checks.run(name + " without features", expected, args, as_file(raw, features=False))
    whole = list(perffile.File(raw).records())
    # Records of later versions, of simpleperf, and some that do not concern the trace.
    unknown = 22, 40, 63, 73, 74, 76, 77, 78, 82, 84, 99, 32768, 32773
    strange = [[k, 0, bytes(range(8 * n)), b""] for n, k in enumerate(unknown)]
    half = len(whole) // 2
    checks.run(name + " with records that are not known", expected, args,
               as_file(raw, whole[:half] + strange + whole[half:]))
    guests = [[k, m, b + struct.pack("<QQ", 0, 1) * struct.unpack_from("<Q", b)[0], t] if k == 69 else [k, m, b, t]
              for k, m, b, t in whole]
    checks.run(name + " whose ID_INDEX tells of machines that all are the host", expected, args, as_file(raw, guests))
    sample_type = struct.unpack_from("<Q", perffile.File(raw).attrs[0][0], 24)[0]
    trailer = struct.calcsize("<" + perffile.trailer_fields(sample_type))
    tail = [[k, m, b[:-trailer] + bytes(trailer), t] for k, m, b, t in whole if k in (1, 3, 10)]
    checks.run(name + " with --tail-synthesize", expected, args,
               as_file(raw, [r for r in whole if r[0] not in (1, 3, 10)] + tail))


def refused(checks, raw):
    """Unreadable files are reported as such."""
    for what, data, text in (("old", b"PERFFILE" + raw[8:], "2.6.39"), ("none", b"PERFJUNK" + raw[8:], "PERFILE2"),
                             ("BTS", changed(raw, 70, lambda b: struct.pack("<I", 2) + b[4:]), "Intel BTS")):
        run = subprocess.run([checks.program, "decode", "--text", "--format", "perf", "-"], input=data,
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=240)
        checks.n += 1
        if run.returncode != 1 or text not in run.stderr.decode() or instructions(run.stdout):
            checks.failed.append("refused: " + what)
            print(what, run.returncode, run.stderr.decode())


def without_event(checks, raw, symfs):
    """The attribute of the trace's event is missing, which is reported. perf's default options are assumed."""
    command = [checks.program, "decode", "--text", "--format", "perf", *symfs, "-"]
    run, whole = (subprocess.run(command, input=given, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=240)
                  for given in (changed(raw, 64, lambda b: struct.pack("<I", 77) + b[4:]), raw))
    checks.n += 1
    if run.returncode != 1 or "no event has the trace's PMU type" not in run.stderr.decode() or \
            run.stdout != whole.stdout:
        checks.failed.append("without the trace's event")
        print("without the trace's event:", run.returncode, run.stderr.decode())


def without_trace(checks, raw, symfs):
    """An AUXTRACE record is missing: that is told, wherever it was, and how much of the trace that is."""
    records = records_of(perffile.as_pipe(raw))
    areas = [i for i, r in enumerate(records) if r[0] == 71]
    told = sum(struct.unpack_from("<Q", r[2], 8)[0] for r in records if r[0] == 11)
    left = []
    for i in areas:
        given = piped(records[:i] + records[i + 1:])
        for chunk in [], ["--chunk", "1"]:
            run = subprocess.run([checks.program, "decode", "--text", "--format", "perf", *symfs, *chunk, "-"],
                                 input=given, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=240)
            said = re.search(r"missing, (\d+) bytes not decoded", run.stderr.decode())
            checks.n += 1
            if run.returncode != 1 or not said:
                checks.failed.append("without an AUXTRACE record")
                print("without AUXTRACE record %d:" % i, run.returncode, run.stderr.decode())
                return
            left.append(int(said[1]))
    # padding of a buffer's ends is no trace
    if abs(sum(left) // 2 - told) > 8 * len(areas):
        checks.failed.append("bytes without an AUXTRACE record")
        print("without AUXTRACE records: %s bytes of %d" % (left, told))


# ---- Intel PT -----------------------------------------------------------------------------------

def intel_pt(checks, folder):
    def capture(name):
        path = os.path.join(folder, "pt", name + ".data")
        with open(path, "rb") as f:
            return f.read(), instructions(gzip.open(path[:-5] + ".flow.gz").read())
    symfs = ["--symfs", checks.symfs]
    args = ["--format", "perf", *symfs, "-"]
    raw, expected = capture("pt-one-cpu")
    versions(checks, "Intel PT", raw, expected, symfs)
    refused(checks, raw)
    without_event(checks, raw, symfs)
    without_trace(checks, raw, symfs)
    # AUXTRACE_INFO grew with the versions: a filter's text, and what was added after it.
    words = len(info_of(raw)) // 8 - 1
    for n in (15, 16, 17):
        if n <= words:
            checks.run("Intel PT, %d words of AUXTRACE_INFO" % n, expected, args,
                       changed(raw, 70, lambda b: b[:8 + 8 * n]))
    text = b"filter main @ /opt/demo/stroll\0".ljust(32, b"\0")
    checks.run("Intel PT with a filter", expected, args, changed(
        raw, 70, lambda b: b[:8 + 8 * min(16, words)].ljust(8 + 8 * 16, b"\0") + struct.pack("<Q", len(text)) + text +
        struct.pack("<Q", 1)))
    compressed, same = capture("pt-compressed")
    checks.run("COMPRESSED2", same, args, piped([
        [83, m, struct.pack("<Q", len(b)) + b + bytes(-len(b) % 8), t] if k == 81 else [k, m, b, t]
        for k, m, b, t in records_of(perffile.as_pipe(compressed))]))
    kernel(checks, *capture("pt-kernel"))
    guest_kernel(checks, *capture("pt-kernel"))
    old_links(checks, raw, expected)


def kcore_of(expected):
    """A copy of the kernel's memory, as far as it was executed."""
    code = {int(l.split()[1], 16): bytes.fromhex(l.split()[2].decode()) for l in expected
            if l[:1] == b"I" and l.split()[1] >= b"8"}
    low, high = min(code), max(a + len(c) for a, c in code.items())
    memory = bytearray(b"\xcc" * (high - low))
    for address, c in code.items():
        memory[address - low:address - low + len(c)] = c
    head = b"\x7fELF" + bytes([2, 1, 1]) + bytes(9)
    head += struct.pack("<HHIQQQIHHHHHH", 4, 62, 1, 0, 64, 0, 0, 64, 56, 1, 0, 0, 0)
    return head + struct.pack("<IIQQQQQQ", 1, 7, 120, low, 0, len(memory), len(memory), 1) + memory


def kernel(checks, raw, expected):
    """Kernel code from a copy of /proc/kcore, at any address."""
    with tempfile.TemporaryDirectory() as own:
        symfs = os.path.join(own, "symfs")
        shutil.copytree(os.path.join(checks.symfs, "opt"), os.path.join(symfs, "opt"))
        args = ["--format", "perf", "--buildid-dir", "/nowhere", "--symfs", symfs]
        folder = os.path.join(own, "recorded")
        os.makedirs(os.path.join(folder, "kcore_dir"))
        core = os.path.join(folder, "kcore_dir", "kcore")
        with open(core, "wb") as f:
            f.write(kcore_of(expected))
        with open(os.path.join(folder, "data"), "wb") as f:
            f.write(raw)
        checks.run("--kcore FILE", expected, [*args, "--kcore", core, "-"], raw)
        kernel_names(checks, expected, args, core, raw)
        checks.run("--kcore FOLDER", expected, [*args, "--kcore", os.path.dirname(core), "-"], raw)
        checks.run("perf record --kcore", expected, ["--buildid-dir", "/nowhere", "--symfs", symfs, folder])
        cache = os.path.join(own, "cache")
        shutil.copytree(checks.cache, cache, symlinks=True)
        names = os.path.join(cache, "[kernel.kallsyms]")
        entry = os.path.join(names, os.listdir(names)[0])
        for file in os.listdir(entry):
            os.remove(os.path.join(entry, file))
        shutil.copy(core, os.path.join(entry, "kcore"))
        checks.run("kcore in the cache", expected,
                   ["--format", "perf", "--buildid-dir", cache, "--symfs", symfs, "-"], raw)


def kernel_names(checks, expected, args, core, raw):
    """Names come from the symbols beside a copy of the kernel's memory, however large that is."""
    addresses = sorted({int(l.split()[1], 16) for l in expected if l[:1] == b"I" and l.split()[1] >= b"8"})
    low, inner = addresses[0], addresses[len(addresses) // 2]
    large = os.path.join(os.path.dirname(core), "large")
    symbols = os.path.join(os.path.dirname(core), "kallsyms")
    with open(core, "rb") as f:
        head, memory = bytearray(f.read(120)), f.read()
    before = 64 << 20  # of a segment that is too large to be code alone
    head[64 + 16:64 + 48] = struct.pack("<QQQQ", low - before, 0, 256 << 20, 256 << 20)
    os.mkdir(large)
    with open(os.path.join(large, "kcore"), "wb") as f:
        f.write(head)
        f.seek(120 + before)
        f.write(memory)
        f.truncate(120 + (256 << 20))
    text = "%016x T whole\n%016x t whole_too\n%016x t inner\n%016x D data\n%016x t elsewhere\t[module]\n" % (
        low, low, inner, inner + 1, low - (1 << 32))
    for folder in os.path.dirname(core), large:
        path = os.path.join(folder, "kallsyms")
        with open(path, "w") as f:
            f.write(text)
        where = [*args, "--kcore", os.path.join(folder, "kcore")]
        checks.run("kallsyms beside " + os.path.basename(folder), expected, [*where, "-"], raw)
        told = subprocess.run([checks.program, "decode", "--text", "--disasm", *where, "-"], input=raw,
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=240).stdout.split(b"\n")
        named = [(int(l.split()[1], 16), l.rsplit(b"<", 1)[-1]) for l in told if l[:8] == b"I ffffff"]
        wrong = [(at, name) for at, name in named if name != (b"inner" if at >= inner else b"whole") + (
            b">" if at in (low, inner) else b"+0x%x>" % (at - (inner if at >= inner else low)))]
        checks.n += 1
        if wrong or not named:
            checks.failed.append("names of " + folder)
            print("kallsyms: %d of %d are not named right: %r" % (len(wrong), len(named), wrong[:1]))
    shutil.rmtree(large)
    # One without the right to know addresses reads zeros: then there are no names.
    with open(symbols, "w") as f:
        f.write("%016x T whole\n" % 0)
    checks.run("kallsyms of zeros", expected, [*args, "--kcore", core, "-"], raw)
    os.remove(symbols)


def guest_kernel(checks, raw, expected):
    """The kernel of a virtual machine: its code by its memory or its modules' files, its names by lists of them."""
    code = {int(l.split()[1], 16): len(l.split()[2]) // 2 for l in expected if l[:1] == b"I" and l.split()[1] >= b"8"}
    low, end = min(code), max(a + n for a, n in code.items())
    middle = sorted(code)[len(code) // 2]
    with tempfile.TemporaryDirectory() as own:
        def file(path, content):
            path = os.path.join(own, path)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "wb") as f:
                f.write(content)
            return path
        mount = os.path.join(own, "mount")
        shutil.copytree(os.path.join(checks.symfs, "opt"), os.path.join(mount, "834/opt"))
        file("mount/834/proc/version", b"Linux version 6.1.0 (builder)\n")
        core = file("memory/kcore", kcore_of(expected))
        names = b"%016x T _text\n%016x t inner\n%016x t far_away\t[it]\n" % (0xffffffff81000000, middle, low - (1 << 32))
        names = file("kallsyms", names)
        args = ["--format", "perf", "--buildid-dir", checks.cache + "/opt", "--guestmount", mount]
        guest = perffile.as_guest(raw, 834)
        hidden = [l for l in expected if l[:1] != b"I" or l.split()[1] < b"8"]

        def text(*more, given=guest):
            return subprocess.run([checks.program, "decode", "--text", "--disasm", *args, *more, "-"], input=given,
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=120)

        def require(what, right):
            checks.n += 1
            if not right:
                checks.failed.append(what)
                print("not right:", what)
        checks.run("a guest's kcore", expected, [*args, "--guestvmlinux", core, "-"], guest)
        run = text("--guestvmlinux", core, "--guestkallsyms", names)
        named = [l for l in run.stdout.split(b"\n") if l[:8] == b"I ffffff"]
        require("a guest's kcore with its names", len(named) > 1000 and all(
            l.endswith(b">") and (b"<inner" in l) == (int(l.split()[1], 16) >= middle) for l in named))
        # Names alone: no instruction of the kernel, and each way into it is named.
        checks.run("a guest's names", hidden, [*args, "--guestkallsyms", names, "-"], guest)
        run = text("--guestkallsyms", names)
        ways = [l.split() for l in run.stdout.split(b"\n") if l[:2] == b"B " and l.split()[2] >= b"8"]
        require("ways into a guest's kernel", len(ways) > 20 and all(
            l[3:] == [b"<%s>" % place_of(int(l[2], 16), middle)] for l in ways if int(l[2], 16) < middle + 4096))
        require("code of a guest's kernel is missing", b"no code of [guest.kernel.kallsyms]_text" in run.stderr)
        # A list of another start names nothing.
        other = file("other", b"%016x T _text\n%016x t inner\n" % (0xffffffff92000000, middle))
        run = text("--guestkallsyms", other)
        require("a list of another start", b"another start" in run.stderr and b"<inner" not in run.stdout)
        for what, content, said in (("zeros", b"%016x T _text\n" % 0, b"tells no addresses"), ("nothing", None, b"No such file")):
            path = file(what, content) if content else os.path.join(own, what)
            require("a list with " + what, said in text("--guestkallsyms", path).stderr)
        # A module's place by the machine's list, and its file below the machine's root.
        with open(os.path.join(checks.symfs, "boot/vmlinux-6.1.0"), "rb") as f:
            damaged, (inner,) = perffile.without_code(f.read(), [(middle, end - middle)])
        module, _ = perffile.module(middle, inner, "[it]")
        file("mount/834/lib/modules/6.1.0/kernel/it.ko", module)
        file("mount/834/lib/modules/6.1.0/modules.dep", b"kernel/it.ko:\n")
        modules = file("modules", b"other 4096 0 - Live 0xffffffffc0000000\nit %d 1 other, Live 0x%016x (OE)\n" % (
            end - middle + 4096, middle))
        kernel = ["--guestvmlinux", file("vmlinux", damaged)]
        checks.run("a guest's modules", expected, [*args, *kernel, "--guestmodules", modules, "-"], guest)


def place_of(address, middle):
    name, begin = (b"inner", middle) if address >= middle else (b"_text", 0xffffffff81000000)
    return name + (b"+0x%x" % (address - begin) if address > begin else b"")


def old_links(checks, raw, expected):
    """Up to perf 4.8, links of the cache named the file itself."""
    with tempfile.TemporaryDirectory() as own:
        for top, _, files in os.walk(os.path.join(checks.cache, "opt")):
            for file in files:
                build_id = os.path.basename(top)
                if file != "elf":
                    continue
                there = os.path.join(own, "opt", build_id)
                os.makedirs(os.path.dirname(there), exist_ok=True)
                shutil.copy(os.path.join(top, file), there)
                link = os.path.join(own, ".build-id", build_id[:2], build_id[2:])
                os.makedirs(os.path.dirname(link), exist_ok=True)
                os.symlink(os.path.join("..", "..", "opt", build_id), link)
        checks.run("a cache of perf 4.8", expected,
                   ["--format", "perf", "--symfs", "/nowhere", "--buildid-dir", own, "-"], raw)


# ---- CoreSight ----------------------------------------------------------------------------------

BARRIER = struct.pack("<I", 0x7fffffff) * 4


def coresight(checks, folder):
    path = os.path.join(folder, "cs", "perf_etm.data")
    with open(path, "rb") as f:
        raw = f.read()
    expected = instructions(gzip.open(path[:-5] + ".flow.gz").read())
    symfs = ["--symfs", checks.symfs]
    args = ["--format", "perf", *symfs, "-"]
    versions(checks, "CoreSight", raw, expected, symfs)
    checks.run("CoreSight with barrier packets", expected, args, repacked(raw, lambda piece: BARRIER + piece))
    checks.run("CoreSight, frames that end in zeros", expected, args, repacked(raw, lambda piece: piece + bytes(32)))
    checks.run("CoreSight snapshots", expected, args, snapshots(raw))
    checks.run("CoreSight, empty AUX records", expected, args, with_empty(raw))
    checks.run("CoreSight per thread", expected, args, per_thread(raw))
    for form in ("ETE", "TS_SOURCE", "more"):
        for version in 1, 2:
            checks.run("CoreSight header %d, %s" % (version, form), expected, args, with_header(raw, version, form))
    checks.run("CoreSight header 0", expected, args, with_header(raw, 0, ""))
    checks.run("CoreSight header 2 of an old kernel", expected, args, with_header(raw, 2, ""))
    trbe = perffile.as_raw(raw, 0x1e, 7)
    checks.run("TRBE, ETE, header 2", expected, args, with_header(trbe, 2, "ETE"))
    checks.run("TRBE snapshots", expected, args, snapshots(trbe))


def pieces_of(raw):
    """The records of the pipe, and for each AUX record its bytes."""
    records = records_of(perffile.as_pipe(raw))
    area = next(r for r in records if r[0] == 71)[3]
    pieces = [area[o:o + n] for o, n in (struct.unpack_from("<QQ", r[2]) for r in records if r[0] == 11)]
    return records, pieces


def put_area(record, trace, offset=0):
    trace += bytes(-len(trace) % 8)
    record[2:] = [struct.pack("<QQ", len(trace), offset) + record[2][16:], trace]


def repacked(raw, change):
    """Each AUX record has different bytes."""
    records, pieces = pieces_of(raw)
    whole, i = b"", 0
    for r in records:
        if r[0] == 11:
            piece = change(pieces[i])
            r[2] = struct.pack("<QQ", len(whole), len(piece)) + r[2][16:]
            whole, i = whole + piece, i + 1
        elif r[0] == 71:
            put_area(r, whole)
    return piped(records)


def snapshots(raw):
    """Each AUX record gives the end of a dump of the ring, which is a separate AUXTRACE."""
    records, pieces = pieces_of(raw)
    out, i, end = [], 0, 1 << 20
    area = next(r for r in records if r[0] == 71)
    for r in records:
        if r[0] == 71:
            continue
        out.append(r)
        if r[0] == 70:
            r[2] = r[2][:24] + struct.pack("<Q", 1) + r[2][32:]
        if r[0] != 11:
            continue
        piece = pieces[i] + bytes(-len(pieces[i]) % 8)
        end += len(piece)
        flags = struct.unpack_from("<Q", r[2], 16)[0] | 2
        r[2] = struct.pack("<QQQ", end, 1 << 20, flags) + r[2][24:]
        dump = [71, 0, area[2], b""]
        put_area(dump, piece, end - len(piece))
        out.append(dump)
        i += 1
    return piped(out)


def with_empty(raw):
    """Empty AUX records, and one that reports missing trace inside its bytes."""
    records, _ = pieces_of(raw)
    out = []
    for r in records:
        if r[0] == 11:
            offset, size, flags = struct.unpack_from("<QQQ", r[2])
            out.append([11, r[1], struct.pack("<QQQ", offset, 0, flags) + r[2][24:], b""])
            r[2] = struct.pack("<QQQ", offset, size, flags | 4) + r[2][24:]
        out.append(r)
    return piped(out)


def per_thread(raw):
    """The buffer belongs to a thread."""
    return changed(raw, 71, lambda b: b[:28] + struct.pack("<ii", 0x4353, -1) + b[36:])


def with_header(raw, version, form):
    """AUXTRACE_INFO of another version; ETE, and words added by later versions."""
    def change(body):
        (_, count, snapshot), units = perffile.units_of(body)
        words = [version, count, snapshot]
        for unit in units.values():
            magic, cpu, _, *regs = unit
            if form == "ETE":
                magic, regs = 0x5050505050505050, regs + [0x47705a13]
            if form == "TS_SOURCE":
                regs = regs + [0]
            if form == "more":
                regs = regs + [0xffffffffffffffff] + list(range(20))
            words += [magic, cpu] + ([len(regs)] if version else []) + regs
        return body[:8] + struct.pack("<%dQ" % len(words), *words)
    return changed(raw, 70, change)


def main():
    program, folder = sys.argv[1], os.path.join(sys.argv[2], "perf")
    if not os.path.isdir(folder):
        print("skipped: there is no %s" % folder)
        return 77
    checks = Checks(program, folder)
    intel_pt(checks, folder)
    coresight(checks, folder)
    print("%d checks, %d failed" % (checks.n, len(checks.failed)))
    return bool(checks.failed)


if __name__ == "__main__":
    sys.exit(main())
