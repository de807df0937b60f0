#!/usr/bin/env python3
"""RISC-V trace beside ETMv4's of the same program: instructions of the processor for each one that was traced.

usage: riscv.py PROGRAM      PROGRAM: build/tests/bench/stages

From the trace's bytes to STF records, counted by valgrind: the same on every run of one build. ETMv4's trace is that of
a twin of the program (twin.h). The last column is relative to the first row.
"""
import os, sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import instructions

STAGES = ['ETMv4 flow and STF records, twin of nt-sorts-ref-htm', 'ETMv4 flow and STF records, twin with return stack',
          'N-Trace flow and STF records, nt-sorts-ref-htm', 'E-Trace flow and STF records, et-sorts-ref']


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    first = None
    print('%-54s %9s %7s %6s' % ('', 'bits each', 'instr.', ''))
    for stage in STAGES:
        result = instructions.count(sys.argv[1], stage)
        if result is None:
            sys.exit('riscv: skipped, the captures are not there')
        size, traced, total, functions = result
        each = total / traced
        first = first or each
        print('%-54s %9.2f %7.1f %6.2f   %s' % (stage, 8 * size / traced, each, each / first, ', '.join(
            '%s %.1f' % (what, n / traced) for what, n in functions)), flush=True)


main()
