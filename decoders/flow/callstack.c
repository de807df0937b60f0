/* SPDX-License-Identifier: MIT */
/*
 * Matches arrivals at addresses with the frames of the stack. Nearly all of them are calls, returns
 * to the innermost frame's caller and jumps inside a function, which need no search; the rules for
 * everything else take the first explanation that the trace supports, and without one the stack
 * restarts.
 */
#include "flow/callstack_parts.h"

#include <assert.h>

#define SEARCH 64 /* number of frames searched if the innermost one does not match */

static_assert(sizeof(struct tl_callstack) / 1024 == 48, "as the manual says");

void tl_callstack_init(struct tl_callstack *cs, const struct tl_image *image, uint64_t first_insn,
                       tl_frame_sink *sink, void *context)
{
    memset(cs, 0, sizeof *cs);
    cs->image = image;
    cs->insns = first_insn;
    cs->sink = sink;
    cs->context = context;
    cs->function = TL_NO_FUNCTION;
    cs->how = TL_LEAVE_LOST;
}

/* ---- frames ------------------------------------------------------------------------------ */

static int report(const struct tl_callstack *cs, enum tl_frame_change change,
                  const struct tl_frame *frame)
{
    return cs->sink ? cs->sink(cs->context, change, frame, cs->depth - (change == TL_FRAME_PUSH),
                               cs->insns)
                    : TL_OK;
}

/* Count a frame that is too deep. */
static __attribute__((noinline)) int count_frame(struct tl_callstack *cs,
                                                 const struct tl_frame *frame)
{
    if (frame->kind == TL_FRAME_EXCEPTION && cs->n_beyond < TL_CALLSTACK_BEYOND)
        cs->beyond[cs->n_beyond++] = (struct tl_frame_beyond){frame->return_pc, cs->deeper};
    cs->deeper++;
    return TL_OK;
}

static inline int push(struct tl_callstack *cs, struct tl_frame frame)
{
    cs->function = frame.function;
    if (cs->depth == TL_CALLSTACK_MAX)
        return count_frame(cs, &frame);
    frame.insn = cs->insns;
    cs->frames[cs->depth++] = frame;
    return cs->sink ? report(cs, TL_FRAME_PUSH, tl_callstack_top(cs)) : TL_OK;
}

int tl_callstack_enter(struct tl_callstack *cs, const struct tl_frame *frame)
{
    return push(cs, *frame);
}

int tl_callstack_unwind(struct tl_callstack *cs, uint32_t depth)
{
    cs->deeper = 0;
    cs->n_beyond = 0;
    if (!cs->sink && cs->depth > depth)
        cs->depth = depth;
    while (cs->depth > depth) {
        const struct tl_frame frame = *tl_callstack_top(cs);
        cs->depth--;
        const int rc = report(cs, TL_FRAME_POP, &frame);
        if (rc < 0)
            return rc;
    }
    cs->function = cs->depth ? tl_callstack_top(cs)->function : TL_NO_FUNCTION;
    return TL_OK;
}

int tl_callstack_restart(struct tl_callstack *cs, uint64_t pc, uint32_t function)
{
    const int rc = tl_callstack_unwind(cs, 0);
    return rc < 0
               ? rc
               : push(cs, (struct tl_frame){.pc = pc, .function = function, .kind = TL_FRAME_ROOT});
}

/* Replace the innermost frame's function; its return address stays. */
static int replace(struct tl_callstack *cs, uint64_t pc, uint32_t function)
{
    if (cs->deeper) { /* the frame is not stored */
        cs->function = function;
        return TL_OK;
    }
    struct tl_frame next = *tl_callstack_top(cs);
    next.pc = pc;
    next.function = function;
    if (next.kind == TL_FRAME_CALL)
        next.kind = TL_FRAME_TAIL;
    if (next.kind == TL_FRAME_EXCEPTION)
        next.flags |= TL_FRAME_CONTINUED;
    int rc = tl_callstack_unwind(cs, cs->depth - 1);
    if (rc >= 0)
        rc = push(cs, next);
    if (rc >= 0)
        tl_callstack_top(cs)->flags &= (uint8_t)~TL_FRAME_CONTINUED;
    return rc;
}

/* ---- matching ---------------------------------------------------------------------------- */

bool tl_callstack_is_entry(const struct tl_callstack *cs, uint64_t pc, uint32_t function)
{
    size_t n = 0;
    const struct tl_symbol *const symbols =
        cs->image && function != TL_NO_FUNCTION ? tl_image_symbols(cs->image, &n) : NULL;
    return function < n && symbols[function].address == pc;
}

uint32_t tl_callstack_find_return(const struct tl_callstack *cs, uint64_t pc, bool past_exceptions,
                                  uint32_t *end)
{
    const uint32_t min = cs->depth > SEARCH ? cs->depth - SEARCH : 0;
    for (*end = cs->depth; *end > min; --*end) {
        const struct tl_frame *f = &cs->frames[*end - 1];
        if (f->return_pc == pc && f->kind != TL_FRAME_ROOT)
            return *end;
        if (f->kind == TL_FRAME_EXCEPTION && !past_exceptions)
            return 0; /* a return cannot leave an exception handler */
    }
    return 0;
}

static uint32_t find_function(const struct tl_callstack *cs, uint32_t function)
{
    for (uint32_t i = cs->depth, looked = 0; i > 0 && looked < SEARCH; i--, looked++)
        if (cs->frames[i - 1].function == function)
            return i;
    return 0;
}

/* Depth of the innermost frame of `function` below the innermost one, as far as a program can jump
 * by itself: out of a signal handler, but not of another exception's. 0: none. */
static uint32_t find_below(const struct tl_callstack *cs, uint32_t function)
{
    if (function == TL_NO_FUNCTION)
        return 0;
    for (uint32_t i = cs->depth; i > 1; i--) {
        if (cs->frames[i - 1].kind == TL_FRAME_EXCEPTION && !tl_frame_is_signal(&cs->frames[i - 1]))
            return 0;
        if (cs->frames[i - 2].function == function)
            return i - 1;
    }
    return 0;
}

uint32_t tl_callstack_find_kernel(const struct tl_callstack *cs)
{
    uint32_t kernel = 0;
    for (uint32_t i = cs->depth; i > 0 && !tl_frame_is_signal(&cs->frames[i - 1]); i--)
        if (cs->frames[i - 1].kind == TL_FRAME_EXCEPTION)
            kernel = i;
    return kernel;
}

uint32_t tl_callstack_find_exception(const struct tl_callstack *cs, uint32_t depth)
{
    for (uint32_t i = depth; i > 0; i--)
        if (cs->frames[i - 1].kind == TL_FRAME_EXCEPTION)
            return i;
    return 0;
}

int tl_callstack_settle(struct tl_callstack *cs, uint64_t pc, uint32_t function)
{
    if (cs->depth == 0)
        return tl_callstack_restart(cs, pc, function);
    return cs->function == function ? TL_OK : replace(cs, pc, function);
}

/* Is `function` the innermost frame's, and does no frame return to `pc`? This is the usual case
 * after lost flow, and nothing changes. */
static bool stays(const struct tl_callstack *cs, uint64_t pc, uint32_t function)
{
    const struct tl_frame *end = cs->frames + cs->depth;
    const struct tl_frame *const low = cs->depth > SEARCH ? end - SEARCH : cs->frames;
    if (cs->depth == 0 || cs->deeper > 0 || end[-1].function != function)
        return false;
    while (end > low)
        if ((--end)->return_pc == pc)
            return false;
    return true;
}

int tl_callstack_resume(struct tl_callstack *cs, uint64_t pc, uint32_t function)
{
    if (stays(cs, pc, function)) {
        cs->function = function;
        return TL_OK;
    }
    uint32_t end;
    const uint32_t returned = tl_callstack_find_return(cs, pc, true, &end);
    if (returned) {
        const int rc = tl_callstack_unwind(cs, returned - 1);
        return rc < 0 ? rc : tl_callstack_settle(cs, pc, function);
    }
    const uint32_t known = find_function(cs, function);
    return known ? tl_callstack_unwind(cs, known) : tl_callstack_restart(cs, pc, function);
}

int tl_callstack_return_unknown(struct tl_callstack *cs, uint64_t pc, uint32_t function,
                                uint32_t depth)
{
    const uint32_t exception = tl_callstack_find_exception(cs, depth);
    if (exception == 0) {
        tl_callstack_park(cs, tl_callstack_who(cs), 0);
        return tl_callstack_restart(cs, pc, function);
    }
    const bool returned = exception == cs->depth && tl_frame_is_signal(tl_callstack_top(cs));
    int rc = tl_callstack_unwind(cs, exception);
    if (rc >= 0)
        rc = tl_callstack_settle(cs, pc, function);
    if (returned)
        tl_callstack_top(cs)->flags |= TL_FRAME_RETURNED;
    return rc;
}

/* A return or jump to where the current stack does not lead: to another stack, or to a frame from
 * which calls are abandoned (longjmp). TL_AGAIN: neither. */
static int leave_calls(struct tl_callstack *cs, uint64_t pc, uint32_t function)
{
    if (tl_callstack_is_entry(cs, pc, function))
        return TL_AGAIN;
    const int rc = tl_callstack_find_kernel(cs) ? TL_AGAIN : tl_callstack_switch(cs, pc, true);
    if (rc != TL_AGAIN)
        return rc < 0 ? rc : tl_callstack_settle(cs, pc, function);
    const uint32_t below = find_below(cs, function);
    return below ? tl_callstack_unwind(cs, below) : TL_AGAIN;
}

/* A return out of the frames that are kept: only counted. */
static int return_counted(struct tl_callstack *cs, uint32_t function)
{
    const bool handler = cs->n_beyond > 0 && cs->beyond[cs->n_beyond - 1].deeper + 1 == cs->deeper;
    if (handler) { /* a return cannot leave it */
        cs->function = function;
        return TL_OK;
    }
    cs->deeper--;
    cs->function = cs->deeper ? TL_NO_FUNCTION : tl_callstack_top(cs)->function;
    return TL_OK;
}

static inline int do_return(struct tl_callstack *cs, uint64_t pc, uint32_t function)
{
    if (cs->deeper)
        return return_counted(cs, function);
    /* Usual case: the innermost frame returns to the function of the next one. */
    if (cs->depth > 1 && tl_callstack_top(cs)->return_pc == pc &&
        tl_callstack_top(cs)[-1].function == function) {
        cs->depth--;
        cs->function = function;
        return cs->sink ? report(cs, TL_FRAME_POP, &cs->frames[cs->depth]) : TL_OK;
    }
    uint32_t end;
    const uint32_t returned = tl_callstack_find_return(cs, pc, false, &end);
    if (!returned) {
        const int left = leave_calls(cs, pc, function);
        return left == TL_AGAIN ? tl_callstack_return_unknown(cs, pc, function, end) : left;
    }
    const int rc = tl_callstack_unwind(cs, returned - 1);
    return rc < 0 ? rc : tl_callstack_settle(cs, pc, function);
}

/* Lost trace may have been anything, also of the other stacks. */
static int resume_lost(struct tl_callstack *cs, uint64_t pc, uint32_t function)
{
    cs->n_parked = cs->n_aside = 0;
    return tl_callstack_resume(cs, pc, function);
}

static int do_jump(struct tl_callstack *cs, uint64_t pc, uint32_t function, bool indirect)
{
    if (indirect && cs->depth && !cs->deeper && tl_callstack_top(cs)->kind != TL_FRAME_ROOT &&
        tl_callstack_top(cs)->return_pc == pc)
        return do_return(cs, pc, function); /* a return encoded as another indirect branch */
    if (indirect && cs->depth && function != cs->function) {
        const int rc = leave_calls(cs, pc, function);
        if (rc != TL_AGAIN)
            return rc;
    }
    return tl_callstack_settle(cs, pc, function);
}

/* An exception's handler begins. */
static int enter_handler(struct tl_callstack *cs, uint64_t pc, uint32_t function)
{
    if (!tl_callstack_find_kernel(cs))
        cs->entered = tl_callstack_who(cs);
    return push(cs, (struct tl_frame){.pc = pc,
                                      .return_pc = cs->exception_pc,
                                      .function = function,
                                      .exception = cs->exception,
                                      .kind = TL_FRAME_EXCEPTION});
}

/* Execution continues at pc, in `function`. */
static inline __attribute__((always_inline)) int arrive(struct tl_callstack *cs, uint64_t pc,
                                                        uint32_t function)
{
    const enum tl_leave how = cs->how;
    cs->how = TL_LEAVE_STRAIGHT;
    switch (how) {
    case TL_LEAVE_STRAIGHT:
    case TL_LEAVE_JUMP:
    case TL_LEAVE_INDIRECT:
        return do_jump(cs, pc, function, how == TL_LEAVE_INDIRECT);
    case TL_LEAVE_CALL:
        return push(cs, (struct tl_frame){.pc = pc,
                                          .return_pc = cs->next_pc,
                                          .function = function,
                                          .kind = TL_FRAME_CALL});
    case TL_LEAVE_RETURN:
        return do_return(cs, pc, function);
    case TL_LEAVE_EXCEPTION:
        return enter_handler(cs, pc, function);
    case TL_LEAVE_EXCEPTION_RETURN:
        return tl_callstack_exception_return(cs, pc, function);
    case TL_LEAVE_OFF:
        return tl_callstack_resume_off(cs, pc, function);
    default:
        return resume_lost(cs, pc, function);
    }
}

int tl_callstack_go(struct tl_callstack *cs, uint64_t pc, uint32_t function)
{
    return arrive(cs, pc, function);
}

/* ---- blocks ------------------------------------------------------------------------------ */

int tl_callstack_arrive(struct tl_callstack *cs, const struct tl_block *block, uint64_t insn)
{
    cs->insns = insn;
    /* Most blocks follow a jump inside a function. */
    return cs->how > TL_LEAVE_JUMP || block->function != cs->function || cs->depth == 0
               ? arrive(cs, block->pc, block->function)
               : TL_OK;
}

/* After a call that returns to cs->next_pc: does it return there at steps[i], to the function of
 * the innermost frame? */
static inline bool returns_at(const struct tl_callstack *cs, const uintptr_t *steps, unsigned i)
{
    const struct tl_block *const from = tl_path_block(steps[i - 1]);
    const struct tl_block *const to = tl_path_block(steps[i]);
    return from->leave == TL_LEAVE_RETURN && tl_path_taken(steps[i - 1]) && to->pc == cs->next_pc &&
           to->function == cs->frames[cs->depth - 1].function;
}

static inline void leave_step(struct tl_callstack *cs, uintptr_t step)
{
    const struct tl_block *const block = tl_path_block(step);
    tl_callstack_leave(cs, block, block->size, tl_path_taken(step));
}

/* Calls that return without another change of the stack need no frame: sealed shards of Intel PT
 * are built 5 % faster. */
void tl_callstack_steps(struct tl_callstack *cs, const uintptr_t *steps, uint32_t n, uint64_t turns,
                        const uint64_t *begins, uint32_t *low, uint32_t *high)
{
    const uintptr_t last = steps[n - 1];
    const bool leaves = cs->leaf || !cs->sink;
    uint32_t min = *low, most = *high;
    while (turns != 0) {
        const unsigned i = (unsigned)__builtin_ctzll(turns);
        const struct tl_block *const block = tl_path_block(steps[i]);
        turns &= turns - 1;
        if (i > 0)
            leave_step(cs, steps[i - 1]);
        const bool stored = cs->depth > 0 && cs->depth < TL_CALLSTACK_MAX;
        if (cs->how == TL_LEAVE_CALL && leaves && stored && turns != 0) {
            const unsigned next = (unsigned)__builtin_ctzll(turns);
            if (returns_at(cs, steps, next)) {
                if (cs->leaf)
                    cs->leaf(cs->context, block->function, cs->depth, begins[i], begins[next]);
                min = cs->depth < min ? cs->depth : min;
                most = cs->depth + 1 > most ? cs->depth + 1 : most;
                turns &= turns - 1;
                continue;
            }
        }
        cs->insns = begins[i];
        (void)arrive(cs, block->pc, block->function);
        const uint32_t depth = tl_callstack_depth(cs);
        min = depth < min ? depth : min;
        most = depth > most ? depth : most;
        /* For frames that are only counted, the function is not known. */
        if (cs->function != block->function && i + 1 < n)
            turns |= UINT64_C(2) << i;
    }
    leave_step(cs, last);
    *low = min;
    *high = most;
}

int tl_callstack_finish(struct tl_callstack *cs)
{
    cs->how = TL_LEAVE_LOST;
    return tl_callstack_unwind(cs, 0);
}
