#!/usr/bin/env python3
"""perf.data captures with known instructions, in all the forms in which they may arrive.

usage: truth.py PROGRAM DATA     exit status 77 if DATA has no captures
"""
import functools, glob, gzip, os, re, shutil, struct, subprocess, sys, tempfile

import perffile


LINES = re.compile(rb"^(?:[I#] .*\n?)+", re.M)


@functools.lru_cache(maxsize=4)
def told(text):
    """What of a text are names of streams and instructions, whole lines. Most forms of a capture have the same text."""
    return b"".join(LINES.findall(text))


def instructions(text):
    """The same as a list of lines."""
    return told(text).split(b"\n")[:-1]


def without_names(text):
    """Streams of threads without the threads' names, by number, after those of CPUs."""
    streams = {}
    for stream in re.split(rb"^(?=# )", text, flags=re.M)[1:]:
        head, lines = stream.split(b"\n", 1)
        word = head.split()[2].split(b".")
        key = (word[0] != b"pt", int(word[1]))
        streams.setdefault(key, [b"# stream " + b".".join(word[:2]) + b"\n"]).append(lines)
    return b"".join(part for key in sorted(streams) for part in streams[key])


def by_thread(cpus, slices):
    """What the threads ran: slices of the CPUs' instructions, each belonging to a thread."""
    streams, threads = {}, {}
    for line in cpus:
        if line[:2] == b"# ":
            own = streams.setdefault(line.split()[2], [])
        else:
            own.append(line)
    with gzip.open(slices, "rt") as f:
        rows = [line.split() for line in f if line[:1] != "#"]
    for cpu, _, tid, first, n, _, _ in sorted(rows, key=lambda row: int(row[5])):
        threads.setdefault(int(tid), []).extend(streams[cpu.encode()][int(first):int(first) + int(n)])
    return [line for tid in sorted(threads) if tid for line in [b"# stream thread.%d" % tid] + threads[tid]]


class Checks:
    def __init__(self, program, data):
        self.program, self.symfs, self.cache = program, os.path.join(data, "symfs"), os.path.join(data, "buildid")
        self.failed, self.n = [], 0
        self.expected, self.wanted = None, b""

    def run(self, what, expected, args, given=None, status=(0,), unnamed=False):
        command = [self.program, "decode", "--text", *args]
        with tempfile.TemporaryFile() as out:
            run = subprocess.run(command, input=given, stdout=out, stderr=subprocess.PIPE, timeout=240)
            out.seek(0)
            ours = told(out.read())
        if unnamed:
            ours = without_names(ours)
        self.n += 1
        if expected is not self.expected:  # the same ones for many runs
            self.expected, self.wanted = expected, b"\n".join(expected) + b"\n"
        if ours != self.wanted or run.returncode not in status:
            ours = ours.split(b"\n")[:-1]
            same = next((i for i, (a, b) in enumerate(zip(ours, expected)) if a != b), min(len(ours), len(expected)))
            self.failed.append(what)
            print("%s: status %d, %d lines for %d, first difference at %d: %r | %r\n%s" % (
                what, run.returncode, len(ours), len(expected), same, ours[same:same + 1], expected[same:same + 1],
                run.stderr.decode(errors="replace")[-600:]))

    def intel_pt(self, path):
        name = os.path.basename(path)
        raw = open(path, "rb").read()
        expected = instructions(gzip.open(path[:-5] + ".flow.gz").read())
        symfs = ["--symfs", self.symfs]
        kernel = ["--vmlinux", os.path.join(self.symfs, "boot/vmlinux-6.1.0")]
        self.run(name, expected, symfs + [path])  # its first bytes identify it
        self.run(name + " as a pipe", expected, ["--format", "perf"] + symfs + ["-"], perffile.as_pipe(raw))
        self.run(name + " by build IDs", expected, ["--format", "perf", "--symfs", "/nowhere", "--buildid-dir",
                                                    self.cache, path])
        if len(raw) < 40000:
            self.run(name + " byte by byte", expected, ["--chunk", "1"] + symfs + [path])
            self.run(name + " as a pipe, byte by byte", expected,
                     ["--format", "perf", "--chunk", "1"] + symfs + ["-"], perffile.as_pipe(raw))
        if name not in ("pt-compressed.data", "pt-pipe.data"):
            self.run(name + " in the other byte order", expected, ["--format", "perf"] + symfs + kernel + ["-"],
                     perffile.as_other_order(raw))
        if name == "pt-threads-per-thread.data":
            self.run(name + " whose first thread ends", expected, ["--format", "perf"] + symfs + ["-"],
                     perffile.with_exit(raw, 2100, 2130138900000))
        if name in ("pt-two-processes.data", "pt-five-tasks.data"):
            self.run(name + " with switches by a tracepoint", expected, ["--format", "perf"] + symfs + ["-"],
                     perffile.by_tracepoint(raw))
        if name in ("pt-remap.data", "pt-two-processes.data"):
            with tempfile.TemporaryDirectory() as own:
                jitted = perffile.jitted(raw, self.symfs, own)
                self.run(name + " made at run time", expected, ["--format", "perf", "--symfs", own, "-"], jitted)
        if name in ("pt-one-cpu.data", "pt-kernel.data"):
            self.guest(name, expected, raw, symfs + kernel)
        if name == "pt-kernel.data":
            self.changed_kernel(name, expected, raw)
            self.modules(name, expected, raw)
        if name in ("pt-three-processes-two-cpus.data", "pt-cyc-long-tnt.data", "pt-one-cpu.data"):
            self.run(name + " in samples", expected, ["--format", "perf"] + symfs + ["-"], perffile.in_samples(raw))
        if name in ("pt-three-processes-two-cpus.data", "pt-cyc-long-tnt.data", "pt-compressed.data"):
            with tempfile.TemporaryDirectory() as own:
                for i, compress in enumerate((False, True)):
                    folder = os.path.join(own, str(i))
                    perffile.as_folder(raw, folder, compress)
                    self.run(name + " as a folder", expected, symfs + [folder])
        self.run(name + " by three threads", expected, ["--threads", "3"] + symfs + [path])
        if len({row.split()[2] for row in gzip.open(path[:-5] + ".slices.gz")}) > 1 and b"# stream pt.0" in expected:
            self.threads(name, expected, raw, path)

    def guest(self, name, expected, raw, places):
        """While a virtual machine runs no code is followed, and the trace says that it is a guest's."""
        capture, told = perffile.with_guest(raw, 1, 3), set()
        for more in [], ["--threads", "3"], ["--chunk", "1"]:
            run = subprocess.run([self.program, "decode", "--text", "--format", "perf", *more, *places, "-"], input=capture,
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=True, timeout=240)
            told.add(run.stdout)
        ours = instructions(run.stdout)
        before = next(i for i, (a, b) in enumerate(zip(ours, expected)) if a != b)
        hidden = len(expected) - len(ours)
        guest = re.search(rb"^C (\S+) -\n(?:.*\n)*?C - \1\n((?:[^C].*\n)+)C \1 -$", run.stdout, re.M)
        self.n += 1
        if len(told) > 1 or before < 100 or hidden < 100 or ours[before:] != expected[before + hidden:] or not guest or \
                b"\nI " in guest[2] or b"\nB " not in guest[2] or b"virtual machines" not in run.stderr:
            self.failed.append(name + " with a virtual machine")
            print("%s: %d results, %d in front, %d hidden, of %d instructions" % (
                name, len(told), before, hidden, len(expected)))

    def changed_kernel(self, name, expected, raw):
        """Kernel code that is missing from its file: before and after it was changed, and BPF."""
        code = sorted({(int(l.split()[1], 16), len(l.split()[2]) // 2) for l in expected
                       if l[:1] == b"I" and l.split()[1] > b"8"})
        with open(os.path.join(self.symfs, "boot/vmlinux-6.1.0"), "rb") as f:
            kernel = f.read()
        poked, programs = code[3::9], [code[20:21], code[40:42]]
        whole, ids = list(dict.fromkeys(poked + sum(programs, []))), 201
        damaged, was = perffile.without_code(kernel, whole)
        was = dict(zip(whole, was))
        half = 2130138900000
        records = [perffile.text_poke(a, was[a, n], was[a, n], half + i, ids) for i, (a, n) in enumerate(poked)]
        records += [perffile.ksymbol(a, n, b"bpf_prog_%d" % a, 0, ids) for p in programs for a, n in p]
        feature = perffile.bpf_info([[(a, was[a, n]) for a, n in p] for p in programs])
        with tempfile.TemporaryDirectory() as own:
            path = os.path.join(own, "vmlinux")
            with open(path, "wb") as f:
                f.write(damaged)
            args = ["--format", "perf", "--symfs", self.symfs, "--vmlinux", path, "-"]
            self.run(name + " whose kernel changes", expected, args,
                     perffile.with_records(raw, records, {25: feature}))

    def modules(self, name, expected, raw):
        """Code of a kernel module whose file is compressed, or has another name than in the records."""
        code = sorted({(int(l.split()[1], 16), len(l.split()[2]) // 2) for l in expected
                       if l[:1] == b"I" and l.split()[1] > b"8"})
        low, end = code[len(code) // 2][0], sum(code[-1])
        with open(os.path.join(self.symfs, "boot/vmlinux-6.1.0"), "rb") as f:
            damaged, (text,) = perffile.without_code(f.read(), [(low, end - low)])
        packers = {"": None, ".gz": "gzip", ".xz": "xz", ".zst": "zstd"}
        folder = "/lib/modules/6.1.0/kernel/drivers/"
        for there, named in (("", "demo-it.ko"), (".gz", "demo-it.ko.gz"), (".xz", "demo-it.ko.xz"),
                             (".zst", "demo-it.ko.zst"), (".xz", "demo-it.ko"), ("", "demo-it.ko.gz"),
                             (".gz", "[demo_it]"), ("", "[demo_it]")):
            packer = packers[there]
            if packer and not shutil.which(packer):
                print("%s is not installed: no module is packed by it" % packer)
                continue
            file, record = perffile.module(low, text, named if named[0] == "[" else folder + named)
            with tempfile.TemporaryDirectory() as own:
                shutil.copytree(os.path.join(self.symfs, "opt"), own + "/opt")
                os.makedirs(own + folder)
                if packer:
                    file = subprocess.run([packer, "-c"], input=file, stdout=subprocess.PIPE, check=True).stdout
                for path, content in (("/vmlinux", damaged), (folder + "demo-it.ko" + there, file),
                                      ("/lib/modules/6.1.0/modules.dep",
                                       b"kernel/other/it.ko:\nkernel/drivers/demo-it.ko%s: x.ko\n" % there.encode())):
                    with open(own + path, "wb") as f:
                        f.write(content)
                self.run("%s with a module %s%s as %s" % (name, "demo-it.ko", there, named), expected,
                         ["--format", "perf", "--symfs", own, "--vmlinux", own + "/vmlinux", "-"],
                         perffile.with_records(raw, [record]))

    def threads(self, name, cpus, raw, path):
        """Each thread's instructions in order of time, from all CPUs it ran on."""
        expected = cpus + by_thread(cpus, path[:-5] + ".slices.gz")
        args = ["--format", "perf,threads=yes", "--symfs", self.symfs]
        self.run(name + " with threads", expected, args + [path], unnamed=True)
        self.run(name + " with threads, as a pipe", expected, args + ["-"], perffile.as_pipe(raw), unnamed=True)

    def coresight(self, path):
        name = os.path.basename(path)
        raw = open(path, "rb").read()
        expected = instructions(gzip.open(path[:-5] + ".flow.gz").read())
        self.run(name, expected, ["--symfs", self.symfs, path])
        self.run(name + " byte by byte", expected, ["--chunk", "1", "--symfs", self.symfs, path])
        self.run(name + " as a pipe", expected, ["--format", "perf", "--symfs", self.symfs, "-"], perffile.as_pipe(raw))
        self.run(name + " of the other byte order", expected, ["--format", "perf", "--symfs", self.symfs, "-"],
                 perffile.as_other_order(raw))
        if name != "etm-v2-split.data":
            self.run(name + " without frames", expected, ["--format", "perf", "--symfs", self.symfs, "-"],
                     perffile.as_raw(raw, 0x1e, 7))
        if name == "perf_etm.data":
            self.run(name + " with threads", expected + [b"# stream thread.17235.etm_test_loop"] + expected[1:],
                     ["--format", "perf,threads=yes", "--symfs", self.symfs, path])
            self.at_el2(name, expected, raw)
            self.replaced(name, expected, raw)
            self.second_core(name, expected, raw)

    def at_el2(self, name, expected, raw):
        """A kernel at EL2 identifies threads by VMID, whatever the context IDs; code at EL1 belongs to a virtual
        machine."""
        args = ["--format", "perf,threads=yes", "--symfs", self.symfs, "-"]
        thread = [b"# stream thread.17235.etm_test_loop"]
        # only a module's .text is mapped
        text = [line for line in expected[1:] if line.split()[1] < b"000000582b2b10e0"]
        for context_id in None, 0x1234:
            what = name + " by VMID" + " and context ID" * (context_id is not None)
            self.run(what, expected + thread + expected[1:], args, perffile.with_vmid(raw, 0x1e, 7, 17235, context_id))
            self.run(what + " at EL2", expected[:1] + text + thread + text, args,
                     perffile.with_vmid(raw, 0x1e, 7, 17235, context_id, 2))
            self.run(what + " at EL1", expected[:1] + thread, args,
                     perffile.with_vmid(raw, 0x1e, 7, 17235, context_id, 1))

    def second_core(self, name, expected, raw):
        """Two cores traced into one sink, or into two that assigned the same trace ID."""
        for sinks, stream, with_cpus in (1, b"cs.20", True), (2, b"cs.1e.cpu3", True), (2, b"cs.1e.cpu3", False):
            self.run("%s with two cores, %d sinks%s" % (name, sinks, "" if with_cpus else ", CPUs by event ID"),
                     expected + [b"# stream " + stream] + expected[1:],
                     ["--format", "perf", "--symfs", self.symfs, "-"],
                     perffile.with_second_core(raw, 0x1e, 7, 3, sinks, with_cpus))

    def replaced(self, name, expected, raw):
        """Another file at the same address: each enabling runs the code that was there at the time."""
        was, became = [0x910003e0, 0xd10083ff], [0x910003e1, 0xd10043ff]
        program, other = "/data/local/tmp/etm_test_loop", "/data/local/tmp/other"
        with open(self.symfs + program, "rb") as f:
            code = f.read()
        changed, again = code, expected[1:]
        for a, b in zip(was, became):
            changed = changed.replace(struct.pack("<I", a), struct.pack("<I", b))
            again = [line.replace(b"%08x" % a, b"%08x" % b) for line in again]
        with tempfile.TemporaryDirectory() as own:
            os.makedirs(own + os.path.dirname(program))
            for path, content in (program, code), (other, changed):
                with open(own + path, "wb") as f:
                    f.write(content)
            for clock, joined in ("", False), ("foreign", False), ("virtual", False), ("virtual", True):
                for threads in "1", "3":
                    self.run("%s whose program is replaced, %s timestamps%s, %s threads" % (
                        name, clock or "no", " in one piece" * joined, threads), expected + again,
                        ["--format", "perf", "--symfs", own, "--threads", threads, "-"],
                        perffile.replaced(raw, 0x1e, 7, other.encode(), clock, joined))


def who_ran(text):
    """For each CPU, the thread and the address of each instruction."""
    out = {}
    for stream in re.split(rb"^# stream pt\.", text, flags=re.M)[1:]:
        parts = re.split(rb"^A switch \S+ (\S+).*\n", stream, flags=re.M)  # before a switch, a thread, its lines, …
        out[stream.split(b"\n", 1)[0]] = b"".join(
            re.sub(rb"0*([0-9a-f]+) ", tid + rb" \1\n", b"".join(re.findall(rb"^I (\S+ )", lines, re.M)))
            for tid, lines in zip([b""] + parts[1::2], parts[::2]))
    return out


def samples(checks, folder):
    """Each sample of the event streams, as perf lists it."""
    for path in sorted(glob.glob(os.path.join(folder, "*", "*.records.txt"))):
        form = re.compile(r"PERF_RECORD_SAMPLE\(IP, \w+\): (-?\d+)/(-?\d+): (0x[0-9a-f]+) ")
        with open(path) as f:
            listed = [m for m in map(form.search, f) if m]
        name = path[:-len(".records.txt")] + ".data"
        if not listed or not os.path.exists(name):
            continue
        run = subprocess.run([checks.program, "decode", "--format", "perf,events=yes", "--text", name],
                             stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        line = re.compile(rb"A (?:cpu \d+: )?(-?\d+) (-?\d+) .* at (0x[0-9a-f]+)( |$)", re.M)
        ours = sorted((int(a), int(b), int(c, 16)) for a, b, c, _ in line.findall(run.stdout))
        checks.n += 1
        if ours != sorted((int(m[1]), int(m[2]), int(m[3], 16)) for m in listed):
            checks.failed.append(name)
            print("%s: %d samples, perf lists %d, or others" % (name, len(ours), len(listed)))


def beside_perf(checks, folder):
    """The same threads and instructions as found by perf itself, if it is installed."""
    if not shutil.which("perf"):
        print("perf is not installed: nothing is compared with it")
        return
    for name in ("pt-two-processes", "pt-threads-per-cpu"):
        path = os.path.join(folder, name + ".data")
        command = ["perf", "script", "-i", path, "--symfs", checks.symfs, "--itrace=i0ns", "-F", "tid,cpu,ip"]
        run = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True)
        theirs = {}
        for tid, cpu, address in re.findall(rb"^ *(\d+) +\[(\d+)\] +([0-9a-f]+) *$", run.stdout, re.M):
            theirs.setdefault(b"%d" % int(cpu), []).append(b"%s %s\n" % (tid, address))
        ours = subprocess.run([checks.program, "decode", "--text", "--symfs", checks.symfs, path],
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True)
        checks.n += 1
        if who_ran(ours.stdout) != {cpu: b"".join(lines) for cpu, lines in theirs.items()} or not theirs:
            checks.failed.append(name + " beside perf")
            print("%s: perf finds other instructions or threads" % name)


CLOCK = "protocol=pt\nMTC_FREQ=3\nCPUID_15_EAX=2\nCPUID_15_EBX=192\n"


def ring(trace, size, end):
    """What a ring of this size contains after byte `end`, and the position of its oldest byte."""
    out = bytearray(size)
    for i in range(end - size, end):
        out[i % size] = trace[i]
    return bytes(out), end % size


def sources(checks, folder):
    """Intel PT in a file for each CPU, and a ring that is dumped twice."""
    path = lambda name: os.path.join(folder, name)
    truth = {name: instructions(gzip.open(path(name + ".flow.gz")).read()) for name in ("one-cpu", "no-time")}
    image = ["--image", path("stroll.elf")]
    with tempfile.TemporaryDirectory() as own:
        config = os.path.join(own, "two.ini")
        with open(config, "w") as f:
            f.write("[source pt.0]\n%sfile=%s\n[source pt.3]\nprotocol=pt\nfile=%s\n" % (
                CLOCK, path("one-cpu.pt"), path("no-time.pt")))
        both = truth["one-cpu"] + [b"# stream pt.3"] + truth["no-time"][1:]
        checks.run("a file for each CPU", both, ["--config", config] + image)
        trace = open(path("one-cpu.pt"), "rb").read()
        size = len(trace) * 2 // 3
        text = "[source pt.0]\n" + CLOCK
        for i, end in enumerate((len(trace) * 5 // 6, len(trace))):
            dump, head = ring(trace, size, end)
            with open(os.path.join(own, "dump%d" % i), "wb") as f:
                f.write(dump)
            text += "file=dump%d\nhead=%d\n" % (i, head)
        with open(config, "w") as f:
            f.write(text)
        whole = os.path.join(own, "whole.pt")
        with open(whole, "wb") as f:
            f.write(trace[len(trace) * 5 // 6 - size:])
        run = subprocess.run([checks.program, "decode", "--format", "pt", "--text"] + image + [whole],
                             stdout=subprocess.PIPE, check=True)
        expected = instructions(run.stdout)
        checks.run("a ring that was dumped twice", expected, ["--config", config] + image)
        if len(expected) < 100000 or expected[1:] != truth["one-cpu"][-len(expected) + 1:]:
            checks.failed.append("the whole trace of the ring is none")


def main():
    program, data = sys.argv[1], os.path.join(sys.argv[2], "perf")
    if not os.path.isdir(data):
        print("skipped: there is no %s" % data)
        return 77
    checks = Checks(program, data)
    for path in sorted(glob.glob(os.path.join(data, "pt", "*.data"))):
        checks.intel_pt(path)
    for path in sorted(glob.glob(os.path.join(data, "cs", "*.data"))):
        if os.path.exists(path[:-5] + ".flow.gz"):
            checks.coresight(path)
    samples(checks, data)
    beside_perf(checks, os.path.join(data, "pt"))
    sources(checks, os.path.join(sys.argv[2], "pt", "stepped"))
    print("%d checks, %d failed" % (checks.n, len(checks.failed)))
    return bool(checks.failed)


if __name__ == "__main__":
    sys.exit(main())
