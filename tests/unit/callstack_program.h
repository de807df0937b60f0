/* SPDX-License-Identifier: MIT */
/*
 * Programs with random behaviour, whose stacks are known: calls, signals, jumps over frames,
 * threads, with and without a kernel that is traced.
 */
#ifndef TL_TESTS_CALLSTACK_PROGRAM_H
#define TL_TESTS_CALLSTACK_PROGRAM_H

#include "callstack_world.h"
#include "sim/program_rng.h"

/* ---- random programs ------------------------------------------------------------------------- */

#define THREADS 3
#define DEEPEST 40

struct activation {
    char function;
    uint64_t pc; /* of its next instruction */
    bool signal;
};

struct program {
    struct world *w;
    struct tl_sim_rng rng;
    struct activation frames[THREADS][DEEPEST];
    uint32_t depth[THREADS];
    unsigned now;
    bool kernel; /* is traced */
    size_t signals, jumps, switches;
};

static inline struct activation *top(struct program *p)
{
    return &p->frames[p->now][p->depth[p->now] - 1];
}

static inline void check(struct program *p)
{
    char expected[DEEPEST + 1] = "";
    for (uint32_t i = 0; i < p->depth[p->now]; i++)
        expected[i] = p->frames[p->now][i].function;
    assert_string_equal(stack(p->w), expected);
}

static inline void execute(struct program *p, enum end end)
{
    struct activation *const t = top(p);
    step(p->w, t->pc, end);
    check(p);
    t->pc += 4;
}

static inline void enter(struct program *p, char function, bool signal)
{
    p->frames[p->now][p->depth[p->now]++] = (struct activation){function, AT(function, 0), signal};
}

/* The operating system runs, and perhaps continues elsewhere. */
static inline void leave_program(struct program *p)
{
    if (!p->kernel) {
        off(p->w);
        return;
    }
    exception(p->w, top(p)->pc);
    mode(p->w, false);
    step(p->w, AT('k', 0), CALL);
    step(p->w, AT('l', 0), RETURN);
    step(p->w, AT('k', 4), ERET);
}

static inline void come_back(struct program *p)
{
    if (p->kernel)
        mode(p->w, true);
}

static inline void run_signal(struct program *p)
{
    leave_program(p);
    come_back(p);
    enter(p, (char)('p' + tl_sim_below(&p->rng, 4)), true);
    execute(p, PLAIN);
    p->signals++;
}

static inline void end_signal(struct program *p)
{
    struct activation *const t = top(p);
    execute(p, RETURN);
    *t = (struct activation){'z', AT('z', 0), true};
    execute(p, PLAIN);
    leave_program(p);
    come_back(p);
    p->depth[p->now]--;
    execute(p, PLAIN);
}

static inline void run_thread(struct program *p)
{
    leave_program(p);
    p->now = (p->now + 1) % THREADS;
    thread(p->w, p->now);
    come_back(p);
    const bool begins = p->depth[p->now] == 0;
    if (begins) {
        enter(p, (char)('m' + p->now), false);
        top(p)->pc += 0x100;
    }
    execute(p, PLAIN);
    p->switches++;
}

/* To a function that is active below, in its innermost activation. */
static inline void run_longjmp(struct program *p)
{
    struct activation *const frames = p->frames[p->now];
    const uint32_t depth = p->depth[p->now], to = tl_sim_below(&p->rng, depth - 1);
    for (uint32_t i = to + 1; i < depth; i++)
        if (frames[i].function == frames[to].function)
            return;
    execute(p, JUMP);
    p->depth[p->now] = to + 1;
    frames[to].pc += 0x40;
    execute(p, PLAIN);
    p->jumps++;
}

static inline void run_something(struct program *p)
{
    const uint32_t depth = p->depth[p->now];
    const unsigned choice = tl_sim_below(&p->rng, 100);
    if (choice < 30) {
        execute(p, PLAIN);
    } else if (choice < 60 && depth < DEEPEST - 8) {
        execute(p, CALL);
        enter(p, (char)('a' + tl_sim_below(&p->rng, 10)), false);
        execute(p, PLAIN);
    } else if (choice < 80 && depth > 1 && !top(p)->signal) {
        execute(p, RETURN);
        p->depth[p->now]--;
        execute(p, PLAIN);
    } else if (choice < 88 && top(p)->signal) {
        end_signal(p);
    } else if (choice < 90 && depth > 2) {
        run_longjmp(p);
    } else if (choice < 93) {
        leave_program(p);
        come_back(p);
        execute(p, PLAIN);
    } else if (choice < 96 && depth < DEEPEST - 8) {
        run_signal(p);
    } else if (choice < 98) {
        run_thread(p);
    }
}

/* Begin a program and run it for so many operations, checking the stack after each instruction. */
static inline void run_program(struct program *p, struct world *w, uint64_t seed, unsigned n)
{
    *p = (struct program){.w = w, .rng = {seed}, .kernel = seed % 2};
    begin(w);
    mode(w, true);
    thread(w, 0);
    enter(p, 'm', false);
    for (unsigned i = 0; i < n; i++)
        run_something(p);
}

#endif
