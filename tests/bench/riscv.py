#!/usr/bin/env python3
"""RISC-V trace beside ETMv4's of the same program: instructions of the processor for each one that was traced.

usage: riscv.py PROGRAM      PROGRAM: build/tests/bench/stages

From the trace's bytes to STF records, counted by valgrind: the same on every run of one build. ETMv4's trace is that of
a twin of the program (twin.h). The ratio is to the first row; the rate is that of one processor, as busy as it is.
"""
import os, subprocess, sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import instructions

STAGES = ['ETMv4 flow and STF records, twin of nt-sorts-ref-htm', 'ETMv4 flow and STF records, twin with return stack',
          'N-Trace flow and STF records, nt-sorts-ref-htm', 'E-Trace flow and STF records, et-sorts-ref']
PUSHES = 200


def rate(program, stage, traced):
    """Millions of instructions in a second of processor time."""
    out = subprocess.run([program, stage, str(PUSHES)], check=True, text=True, stdout=subprocess.PIPE).stdout
    return traced * 1e3 / float(out.split()[2])


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    first = None
    print('%-54s %9s %7s %6s %6s' % ('', 'bits each', 'instr.', '', 'M/s'))
    for stage in STAGES:
        result = instructions.count(sys.argv[1], stage)
        if result is None:
            sys.exit('riscv: skipped, the captures are not there')
        size, traced, total, functions = result
        each = total / traced
        first = first or each
        where = ', '.join('%s %.1f' % (what, n / traced) for what, n in functions)
        print('%-54s %9.2f %7.1f %6.2f %6.0f   %s' % (
            stage, 8 * size / traced, each, each / first, rate(sys.argv[1], stage, traced), where), flush=True)


main()
