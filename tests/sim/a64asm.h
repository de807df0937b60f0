/* SPDX-License-Identifier: MIT */
/*
 * The A64 encodings that the generated program uses. Branch distances are in instructions.
 *
 * Source: Arm DDI0487, chapter C4.
 */
#ifndef TL_SIM_A64ASM_H
#define TL_SIM_A64ASM_H

#include <stdint.h>

#define A64_NOP  0xd503201fu
#define A64_ISB  0xd5033fdfu
#define A64_WFI  0xd503207fu
#define A64_RET  0xd65f03c0u
#define A64_ERET 0xd69f03e0u

enum a64_cond { A64_EQ, A64_NE, A64_CS, A64_CC, A64_MI, A64_PL, A64_VS, A64_VC };

/* Direct branches with distance 0; see a64_set_distance(). */
#define A64_B             0x14000000u
#define A64_BL            0x94000000u
#define A64_B_COND(cond)  (0x54000000u | (cond))
#define A64_CBZ(rt)       (0xb4000000u | (rt))
#define A64_CBNZ(rt)      (0xb5000000u | (rt))
#define A64_TBZ(rt, bit)  (0x36000000u | ((bit)&31u) << 19 | ((bit) >> 5) << 31 | (rt))
#define A64_TBNZ(rt, bit) (0x37000000u | ((bit)&31u) << 19 | ((bit) >> 5) << 31 | (rt))

/* Put the distance into the encoding of a direct branch. */
static inline uint32_t a64_set_distance(uint32_t encoding, int32_t distance)
{
    const uint32_t d = (uint32_t)distance;
    if ((encoding & 0x7c000000u) == A64_B)
        return encoding | (d & 0x3ffffff);
    if ((encoding & 0x7e000000u) == 0x36000000u)
        return encoding | (d & 0x3fff) << 5;
    return encoding | (d & 0x7ffff) << 5;
}

static inline uint32_t a64_br(unsigned rn)
{
    return 0xd61f0000u | rn << 5;
}

static inline uint32_t a64_blr(unsigned rn)
{
    return 0xd63f0000u | rn << 5;
}

static inline uint32_t a64_svc(unsigned number)
{
    return 0xd4000001u | (number & 0xffff) << 5;
}

/* TRCIT Xt: software instrumentation of FEAT_ITE */
static inline uint32_t a64_trcit(unsigned rt)
{
    return 0xd50b72e0u | rt;
}

static inline uint32_t a64_movz(unsigned rd, unsigned value)
{
    return 0xd2800000u | (value & 0xffff) << 5 | rd;
}

static inline uint32_t a64_add_imm(unsigned rd, unsigned rn, unsigned value)
{
    return 0x91000000u | (value & 0xfff) << 10 | rn << 5 | rd;
}

/* SUBS Xd, Xn, #value; with rd 31 it is CMP */
static inline uint32_t a64_subs_imm(unsigned rd, unsigned rn, unsigned value)
{
    return 0xf1000000u | (value & 0xfff) << 10 | rn << 5 | rd;
}

static inline uint32_t a64_ldr(unsigned rt, unsigned rn, unsigned words)
{
    return 0xf9400000u | (words & 0xfff) << 10 | rn << 5 | rt;
}

static inline uint32_t a64_str(unsigned rt, unsigned rn, unsigned words)
{
    return 0xf9000000u | (words & 0xfff) << 10 | rn << 5 | rt;
}

/* STP x29, x30, [sp, #-bytes]! and LDP x29, x30, [sp], #bytes; bytes in steps of 8 up to 504 */
static inline uint32_t a64_push_frame(unsigned bytes)
{
    return 0xa9800000u | ((0u - bytes / 8) & 0x7f) << 15 | 30u << 10 | 31u << 5 | 29u;
}

static inline uint32_t a64_pop_frame(unsigned bytes)
{
    return 0xa8c00000u | (bytes / 8 & 0x7f) << 15 | 30u << 10 | 31u << 5 | 29u;
}

/* An instruction with three registers; `op` as 0x8b000000 (ADD). */
static inline uint32_t a64_three(uint32_t op, unsigned rd, unsigned rn, unsigned rm)
{
    return op | rm << 16 | rn << 5 | rd;
}

#endif
