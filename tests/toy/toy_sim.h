/* SPDX-License-Identifier: MIT */
/*
 * A random A64 program, executed by a model of a processor with a trace unit that sends the toy
 * format: the program, its trace, and the instructions that can be derived from it.
 */
#ifndef TL_TOY_SIM_H
#define TL_TOY_SIM_H

#include "base/buf.h"
#include "sim/program_rng.h"
#include "toy/toy.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define TOY_BASE      0x10000u
#define TOY_FUNCTIONS 32u
#define TOY_LENGTH    24u /* instructions of a function */
#define TOY_PROGRAM   (TOY_FUNCTIONS * TOY_LENGTH)

#define TOY_NOP     0xd503201fu
#define TOY_RET     0xd65f03c0u
#define TOY_BR      0xd61f0020u
#define TOY_B(n)    (0x14000000u | ((uint32_t)(n)&0x3ffffff))
#define TOY_BL(n)   (0x94000000u | ((uint32_t)(n)&0x3ffffff))
#define TOY_B_EQ(n) (0x54000000u | ((uint32_t)(n)&0x7ffff) << 5)

struct toy_sim {
    struct tl_sim_rng rng;
    uint32_t code[TOY_PROGRAM];
    struct tl_buf trace;
    struct tl_buf truth; /* uint32_t each: number of the instruction */
    size_t known;        /* bytes of `truth` whose packets were all sent */
    uint32_t at, n_stack, stack[TOY_FUNCTIONS];
    uint32_t bits, n_bits;
};

/* Calls only go to later functions, so that they end. */
static inline void toy_program(struct toy_sim *s)
{
    for (uint32_t f = 0; f < TOY_FUNCTIONS; f++) {
        uint32_t *const code = s->code + f * TOY_LENGTH;
        for (uint32_t i = 0; i < TOY_LENGTH; i++) {
            const uint32_t kind = tl_sim_below(&s->rng, 16), to = tl_sim_below(&s->rng, TOY_LENGTH);
            const uint32_t callee = f + 1 + tl_sim_below(&s->rng, 8);
            code[i] = kind < 3                              ? TOY_B_EQ((int32_t)to - (int32_t)i)
                      : kind == 3 && callee < TOY_FUNCTIONS ? TOY_BL((callee - f) * TOY_LENGTH - i)
                      : kind == 4                           ? TOY_B(to > i ? to - i : 1)
                      : kind == 5                           ? TOY_BR
                                                            : TOY_NOP;
        }
        code[TOY_LENGTH - 1] = TOY_RET;
    }
}

static inline void toy_send_bits(struct toy_sim *s)
{
    const uint8_t packet = (uint8_t)(1u << s->n_bits | s->bits);
    if (s->n_bits > 0)
        assert_int_equal(tl_buf_add(&s->trace, &packet, 1), TL_OK);
    s->bits = s->n_bits = 0;
}

static inline void toy_send(struct toy_sim *s, const char *header, size_t n)
{
    uint8_t address[8];
    toy_send_bits(s);
    tl_put_le64(address, TOY_BASE + 4 * (uint64_t)s->at);
    assert_int_equal(tl_buf_add(&s->trace, header, n), TL_OK);
    assert_int_equal(tl_buf_add(&s->trace, address, sizeof address), TL_OK);
}

/* Execute one instruction. */
static inline void toy_step(struct toy_sim *s)
{
    const uint32_t insn = s->code[s->at], from = s->at++;
    bool reported = true;
    assert_int_equal(tl_buf_add(&s->truth, &from, sizeof from), TL_OK);
    if (insn >> 24 == 0x54) {
        const bool taken = tl_sim_below(&s->rng, 2);
        if (taken)
            s->at = from + (uint32_t)((int32_t)(insn << 8) >> 13);
        s->bits |= (uint32_t)taken << s->n_bits++;
        if (s->n_bits == TOY_BITS)
            toy_send_bits(s);
    } else if (insn == TOY_RET || insn == TOY_BR) {
        const uint32_t any = tl_sim_below(&s->rng, TOY_LENGTH);
        s->at = insn == TOY_BR   ? from - from % TOY_LENGTH + any
                : s->n_stack > 0 ? s->stack[--s->n_stack]
                                 : 0;
        toy_send(s, "\x80", 1);
    } else if (insn >> 26 == 5 || insn >> 26 == 0x25) {
        if (insn >> 31)
            s->stack[s->n_stack++] = s->at;
        s->at = from + (insn & 0x3ffffff);
        reported = false;
    } else {
        reported = false;
    }
    if (reported)
        s->known = s->truth.n;
}

/* A trace of at least `bytes` bytes, with a synchronisation every `every` instructions. */
static inline void toy_sim_init(struct toy_sim *s, uint64_t seed, size_t bytes, unsigned every)
{
    memset(s, 0, sizeof *s);
    s->rng = (struct tl_sim_rng){seed};
    toy_program(s);
    for (unsigned n = 0; s->trace.n < bytes; n++) {
        if (n % every == 0)
            toy_send(s, TOY_SYNC, strlen(TOY_SYNC));
        toy_step(s);
    }
    toy_send_bits(s);
}

static inline void toy_sim_fini(struct toy_sim *s)
{
    tl_buf_fini(&s->trace);
    tl_buf_fini(&s->truth);
}

#endif
