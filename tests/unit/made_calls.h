/* SPDX-License-Identifier: MIT */
/*
 * A long trace with deep calls, written as STF call by call and return by return, together with the
 * expected results. For tests that define INSNS, the number of instructions.
 */
#ifndef TL_TESTS_MADE_CALLS_H
#define TL_TESTS_MADE_CALLS_H

#include "lake_help.h"
#include "stf/writer.h"

#define FUNCTIONS       40 /* except the outermost one, which is also called like one of them */
#define DEEPEST         48
#define ENTRY(function) (0x10000 + 0x1000 * (uint64_t)(function))

enum { NOP = 0x00000013, CALL = 0x000000ef, RETURN = 0x00008067, JUMP = 0x0000006f };

struct call {
    uint64_t from, to;
    uint64_t pc;
    uint32_t depth;
};

/* A core that calls and returns at random, and slowly drifts deeper and back. */
struct core {
    struct tl_buf stf;
    struct call *calls; /* all of them, in order of their ends */
    size_t n_calls, cap_calls;
    struct call open[DEEPEST + 1];
    uint64_t back[DEEPEST + 1]; /* return addresses */
    uint32_t depth;             /* of the innermost one */
    uint64_t pc, insns, random;
};

static struct core core;

static uint64_t below(uint64_t n)
{
    core.random = core.random * 6364136223846793005u + 1442695040888963407u;
    return (core.random >> 33) % n;
}

static void record(const struct tl_stf_record *r)
{
    const struct tl_stf_layout layout = {0};
    assert_int_equal(tl_stf_record_encode(&layout, r, &core.stf), TL_OK);
}

static void step(uint32_t opcode, uint64_t next)
{
    if (opcode != NOP)
        record(&(struct tl_stf_record){.type = TL_STF_INST_PC_TARGET, .target = next});
    record(&(struct tl_stf_record){.type = TL_STF_INST_32, .opcode = opcode});
    core.pc = next;
    core.insns++;
}

static void run(uint64_t n)
{
    for (; n > 0; n--) {
        const uint64_t entry = core.open[core.depth].pc;
        const bool again = core.pc - entry > 0xf00;
        step(again ? JUMP : NOP, again ? entry : core.pc + 4);
    }
}

static void call(uint64_t function)
{
    const uint64_t back = core.pc + 4;
    step(CALL, ENTRY(function));
    core.back[++core.depth] = back;
    core.open[core.depth] = (struct call){.from = core.insns, .pc = core.pc, .depth = core.depth};
}

static void leave(void)
{
    struct call *const done = &core.open[core.depth];
    step(RETURN, core.back[core.depth]);
    done->to = core.insns;
    assert_int_equal(tl_grow(&core.calls, &core.cap_calls, core.n_calls + 1, sizeof(*done)), TL_OK);
    core.calls[core.n_calls++] = *done;
    core.depth--;
}

static void make_trace(void)
{
    const struct tl_stf_header_spec spec = {
        .isa = TL_STF_ISA_RISCV, .iem = TL_STF_IEM_64, .pc = ENTRY(0)};
    assert_int_equal(tl_stf_header_write(&spec, &core.stf, NULL), TL_OK);
    core.random = 3;
    core.pc = core.open[0].pc = ENTRY(0);
    run(10);
    while (core.insns < INSNS) {
        const uint32_t floor = (uint32_t)(core.insns / 300000 * 7 % 25) + 1;
        const bool up = core.depth >= DEEPEST || (core.depth > floor && below(2));
        if (up || (core.depth > 1 && below(9) == 0))
            leave();
        else
            call(below(FUNCTIONS));
        run(below(60));
    }
    while (core.depth > 0) /* the root also ends at the end of the trace */
        leave();
    run(5);
    core.open[0].to = core.insns;
    assert_int_equal(tl_grow(&core.calls, &core.cap_calls, core.n_calls + 1, sizeof(struct call)),
                     TL_OK);
    core.calls[core.n_calls++] = core.open[0];
}

#endif
