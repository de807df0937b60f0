/* SPDX-License-Identifier: MIT */
/*
 * Parts of the call stack: matching (callstack.c), items (callstack_items.c), the operating system
 * (callstack_system.c), and stacks that are not active (callstack_parked.c). Functions return 0 or
 * what the sink returned, unless stated otherwise.
 */
#ifndef TL_FLOW_CALLSTACK_PARTS_H
#define TL_FLOW_CALLSTACK_PARTS_H

#include "flow/callstack.h"

static inline struct tl_frame *tl_callstack_top(struct tl_callstack *cs)
{
    return &cs->frames[cs->depth - 1];
}

static inline bool tl_frame_is_signal(const struct tl_frame *frame)
{
    return frame->kind == TL_FRAME_EXCEPTION && frame->flags & TL_FRAME_SIGNAL;
}

/* Does `function` begin at `pc`? */
bool tl_callstack_is_entry(const struct tl_callstack *cs, uint64_t pc, uint32_t function);
/* Depth of the outermost frame of the exceptions that interrupted the program; 0: none did. */
uint32_t tl_callstack_find_kernel(const struct tl_callstack *cs);
/* Depth of the innermost exception frame, at most `depth`; 0: none. */
uint32_t tl_callstack_find_exception(const struct tl_callstack *cs, uint32_t depth);
/* Depth of the innermost frame that returns to `pc`; 0: none. `*end`: depth at which the search
 * stopped. */
uint32_t tl_callstack_find_return(const struct tl_callstack *cs, uint64_t pc, bool past_exceptions,
                                  uint32_t *end);

/* Push a frame. */
TL_MUST_USE int tl_callstack_enter(struct tl_callstack *cs, const struct tl_frame *frame);
/* Pop until `depth` frames are left, and forget frames that are only counted. */
TL_MUST_USE int tl_callstack_unwind(struct tl_callstack *cs, uint32_t depth);
/* Pop all frames, and begin with a ROOT. */
TL_MUST_USE int tl_callstack_restart(struct tl_callstack *cs, uint64_t pc, uint32_t function);
/* Make the innermost frame one of `function`, whose code at `pc` is executed. */
TL_MUST_USE int tl_callstack_settle(struct tl_callstack *cs, uint64_t pc, uint32_t function);
/* Continue at `pc` after lost flow: unwind to a frame that expects it, or restart. */
TL_MUST_USE int tl_callstack_resume(struct tl_callstack *cs, uint64_t pc, uint32_t function);
/*
 * A return that no frame matches: into a caller from before the trace began. Everything up to the
 * current handler or root has returned; above `depth` there is no handler.
 */
TL_MUST_USE int tl_callstack_return_unknown(struct tl_callstack *cs, uint64_t pc, uint32_t function,
                                            uint32_t depth);
/* Pop the innermost handler. `*pc`: where it was to return, or 0. */
TL_MUST_USE int tl_callstack_end_handler(struct tl_callstack *cs, uint64_t *pc);
/* Execution continues at `pc`, in `function`, after the last block was left by cs->how. */
TL_MUST_USE int tl_callstack_go(struct tl_callstack *cs, uint64_t pc, uint32_t function);

/* ---- the operating system ---- */

/* Continue at `pc` after an exception return. */
TL_MUST_USE int tl_callstack_exception_return(struct tl_callstack *cs, uint64_t pc,
                                              uint32_t function);
/* Continue at `pc` after tracing was off: what ran meanwhile returned to this code, or called it.
 */
TL_MUST_USE int tl_callstack_resume_off(struct tl_callstack *cs, uint64_t pc, uint32_t function);

/* ---- other stacks ---- */

/* Keep a copy of the active stack, which belongs to `who`, as one that continues at `pc`; 0: by
 * returning from its innermost frame. The least recent ones make room. */
void tl_callstack_park(struct tl_callstack *cs, uint64_t who, uint64_t pc);
/* Was a parked one of the thread or process that runs interrupted at `pc`? */
bool tl_callstack_expects(const struct tl_callstack *cs, uint64_t pc);
/*
 * Replace the active stack, after parking it if it is more than its root (`yields`), by the only
 * parked one of the thread or process that runs which continues at `pc`: where it was interrupted,
 * or, if `yields`, where a frame of it returns. TL_AGAIN: none does, or several do.
 */
TL_MUST_USE int tl_callstack_switch(struct tl_callstack *cs, uint64_t pc, bool yields);
/* Replace the active stack by the one of the thread that runs, if the trace tells threads apart.
 * `*pc`: where it was interrupted. TL_AGAIN: it has none. */
TL_MUST_USE int tl_callstack_switch_thread(struct tl_callstack *cs, uint64_t *pc);

#endif
