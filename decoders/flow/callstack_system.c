/* SPDX-License-Identifier: MIT */
/*
 * What operating systems do to the stacks of programs: exception returns, signals, switches of
 * threads. Only the address at which a program continues tells which of these it was, so each is
 * recognised by what nothing else leads to.
 */
#include "flow/callstack_parts.h"

#define SIGNALS 8 /* nested handlers of one function */

/* ---- handlers ------------------------------------------------------------------------------ */

/* End the innermost exception beyond the frames that interrupted `pc`. False: there is none. */
static bool return_beyond(struct tl_callstack *cs, uint64_t pc, uint32_t function)
{
    for (uint8_t i = cs->n_beyond; i > 0; i--)
        if (cs->beyond[i - 1].return_pc == pc) {
            cs->n_beyond = i - 1;
            cs->deeper = cs->beyond[i - 1].deeper;
            cs->function = function;
            return true;
        }
    return false;
}

int tl_callstack_end_handler(struct tl_callstack *cs, uint64_t *pc)
{
    if (cs->n_beyond > 0) {
        const struct tl_frame_beyond *const last = &cs->beyond[--cs->n_beyond];
        *pc = last->return_pc;
        cs->deeper = last->deeper;
        return TL_OK;
    }
    const uint32_t handler = tl_callstack_find_exception(cs, cs->depth);
    *pc = handler ? cs->frames[handler - 1].return_pc : 0;
    return tl_callstack_unwind(cs, handler ? handler - 1 : 0);
}

/* Can a signal handler begin at `pc`? Functions of the program that are active are no handlers, and
 * a handler is not interrupted by itself without end. */
static bool is_handler(const struct tl_callstack *cs, uint64_t pc, uint32_t function)
{
    unsigned signals = 0;
    if (!tl_callstack_is_entry(cs, pc, function))
        return false;
    for (uint32_t i = cs->depth; i > 0; i--)
        if (cs->frames[i - 1].function == function) {
            if (!tl_frame_is_signal(&cs->frames[i - 1]))
                return false;
            signals++;
        }
    return signals + cs->n_beyond < SIGNALS;
}

/* User code that was to continue at `at` (0: unknown) does at `pc`. */
static int divert(struct tl_callstack *cs, uint64_t pc, uint32_t function, uint64_t at)
{
    if (cs->depth > 0 && !cs->deeper && tl_callstack_top(cs)->flags & TL_FRAME_RETURNED) {
        at = tl_callstack_top(cs)->return_pc;
        const int rc = tl_callstack_unwind(cs, cs->depth - 1);
        if (rc < 0)
            return rc;
    }
    if (is_handler(cs, pc, function))
        return tl_callstack_enter(cs, &(struct tl_frame){.pc = pc,
                                                         .return_pc = at,
                                                         .function = function,
                                                         .exception = TL_EXCEPTION_UNKNOWN,
                                                         .kind = TL_FRAME_EXCEPTION,
                                                         .flags = TL_FRAME_SIGNAL});
    if (!cs->deeper)
        return tl_callstack_resume(cs, pc, function);
    cs->function = function;
    return TL_OK;
}

/* An exception return to elsewhere than to the interrupted code: to another thread, or of a kernel
 * to a signal handler, or from one. */
static int return_elsewhere(struct tl_callstack *cs, uint64_t pc, uint32_t function)
{
    const uint32_t kernel = tl_callstack_find_kernel(cs);
    if (kernel == 0)
        return tl_callstack_restart(cs, pc, function);
    const uint64_t at = cs->frames[kernel - 1].return_pc;
    const bool same = cs->user && tl_callstack_who(cs) == cs->entered;
    int rc = tl_callstack_unwind(cs, kernel - 1);
    if (rc < 0)
        return rc;
    const bool ends = cs->depth > 0 && tl_callstack_top(cs)->flags & TL_FRAME_RETURNED;
    if (same && (ends || is_handler(cs, pc, function)))
        return divert(cs, pc, function, at);
    tl_callstack_park(cs, cs->entered, at);
    rc = tl_callstack_switch(cs, pc, false);
    return rc == TL_AGAIN ? tl_callstack_restart(cs, pc, function)
           : rc < 0       ? rc
                          : tl_callstack_settle(cs, pc, function);
}

/* Depth of the innermost exception frame that returns to `pc`, or, if not `exact`, that interrupted
 * `function`; 0: none. */
static uint32_t find_interrupted(const struct tl_callstack *cs, uint64_t pc, uint32_t function,
                                 bool exact)
{
    for (uint32_t i = cs->depth; i > 0; i--) {
        const struct tl_frame *const f = &cs->frames[i - 1];
        if (f->kind == TL_FRAME_EXCEPTION &&
            (exact ? f->return_pc == pc
                   : i > 1 && function != TL_NO_FUNCTION && f[-1].function == function))
            return i;
    }
    return 0;
}

/* To the interrupted code, or, if the address differs (a fixed-up fault), by function. */
int tl_callstack_exception_return(struct tl_callstack *cs, uint64_t pc, uint32_t function)
{
    if (return_beyond(cs, pc, function))
        return TL_OK;
    const uint32_t kernel = tl_callstack_find_kernel(cs);
    if (kernel && kernel == tl_callstack_find_exception(cs, cs->depth) &&
        tl_callstack_who(cs) != cs->entered)
        return return_elsewhere(cs, pc, function); /* another thread, wherever it is */
    uint32_t handler = find_interrupted(cs, pc, function, true);
    const bool begins = cs->user && tl_callstack_is_entry(cs, pc, function);
    if (handler == 0 && !begins && !tl_callstack_expects(cs, pc))
        handler = find_interrupted(cs, pc, function, false);
    if (handler == 0)
        return return_elsewhere(cs, pc, function);
    const int rc = tl_callstack_unwind(cs, handler - 1);
    return rc < 0 ? rc : tl_callstack_settle(cs, pc, function);
}

/* ---- tracing was off ------------------------------------------------------------------------- */

/* Untraced code was called, or returned to, and calls a function. */
static int enter_from_outside(struct tl_callstack *cs, uint64_t pc, uint32_t function,
                              uint64_t return_pc)
{
    return tl_callstack_enter(
        cs, &(struct tl_frame){
                .pc = pc, .return_pc = return_pc, .function = function, .kind = TL_FRAME_CALL});
}

/* Continue after a return to untraced code. */
static int resume_after_return(struct tl_callstack *cs, uint64_t pc, uint32_t function)
{
    uint32_t end;
    const struct tl_frame last = *tl_callstack_top(cs);
    if (last.kind != TL_FRAME_CALL || !tl_callstack_is_entry(cs, pc, function) ||
        tl_callstack_find_return(cs, pc, true, &end))
        return tl_callstack_resume(cs, pc, function);
    const int rc = tl_callstack_unwind(cs, cs->depth - 1);
    return rc < 0 ? rc : enter_from_outside(cs, pc, function, last.return_pc);
}

/* Continue in another thread. */
static int resume_other(struct tl_callstack *cs, uint64_t pc, uint32_t function, uint64_t at)
{
    tl_callstack_park(cs, cs->active, at);
    int rc = tl_callstack_switch(cs, pc, false);
    if (rc != TL_AGAIN)
        return rc < 0 ? rc : tl_callstack_settle(cs, pc, function);
    rc = tl_callstack_switch_thread(cs, &at);
    return rc == TL_AGAIN ? tl_callstack_restart(cs, pc, function)
           : rc < 0       ? rc
                          : divert(cs, pc, function, at);
}

static int end_signal(struct tl_callstack *cs, uint64_t pc, uint32_t function)
{
    for (uint32_t i = cs->depth; i > 0; i--)
        if (tl_frame_is_signal(&cs->frames[i - 1]) && cs->frames[i - 1].return_pc == pc) {
            const int rc = tl_callstack_unwind(cs, i - 1);
            return rc < 0 ? rc : tl_callstack_settle(cs, pc, function);
        }
    return TL_AGAIN;
}

int tl_callstack_resume_off(struct tl_callstack *cs, uint64_t pc, uint32_t function)
{
    const enum tl_leave left = cs->left;
    const uint64_t at = left == TL_LEAVE_EXCEPTION  ? cs->exception_pc
                        : left == TL_LEAVE_STRAIGHT ? cs->next_pc
                                                    : 0;
    if (cs->depth == 0)
        return tl_callstack_restart(cs, pc, function);
    if (cs->active != 0 && cs->active != tl_callstack_who(cs))
        return resume_other(cs, pc, function, at);
    if (pc == (left == TL_LEAVE_CALL ? cs->next_pc : at))
        return tl_callstack_settle(cs, pc, function);
    if (return_beyond(cs, pc, function))
        return TL_OK;
    const int ended = cs->deeper ? TL_AGAIN : end_signal(cs, pc, function);
    if (ended != TL_AGAIN)
        return ended;
    if (left == TL_LEAVE_STRAIGHT || left == TL_LEAVE_EXCEPTION)
        return divert(cs, pc, function, at);
    if (left == TL_LEAVE_CALL && tl_callstack_is_entry(cs, pc, function))
        return enter_from_outside(cs, pc, function, cs->next_pc);
    if (left == TL_LEAVE_RETURN && !cs->deeper)
        return resume_after_return(cs, pc, function);
    return tl_callstack_resume(cs, pc, function);
}
