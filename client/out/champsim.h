/* SPDX-License-Identifier: MIT */
/*
 * Instructions in the format of ChampSim's tracer: 64 bytes each, little-endian, no header (struct
 * input_instr of ChampSim's inc/trace_instruction.h):
 *
 *      0  ip                        8 bytes
 *      8  is_branch                 1
 *      9  branch_taken              1
 *     10  destination registers     2 of 1 byte, 0: none
 *     12  source registers          4 of 1 byte
 *     16  addresses written         2 of 8 bytes, 0: none
 *     32  addresses read            4 of 8 bytes
 *
 * ChampSim distinguishes kinds of branches by the registers that they read and write: 26 is the
 * instruction pointer, 6 the stack pointer, 25 the flags. Other registers are 64 + n (integer), 128
 * + n (floating point) and 192 + n (vector, n below 32). Pure functions.
 */
#ifndef TL_OUT_CHAMPSIM_H
#define TL_OUT_CHAMPSIM_H

#include "isa/isa.h"
#include "stf/insns.h"

#define TL_CHAMPSIM_BYTES 64

/* Convert one instruction of a trace with instruction set `isa`. */
void tl_champsim_insn(const struct tl_stf_insns *insns, const struct tl_stf_insn *insn,
                      enum tl_isa isa, uint8_t out[static TL_CHAMPSIM_BYTES]);

#endif
