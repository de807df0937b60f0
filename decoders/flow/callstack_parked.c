/* SPDX-License-Identifier: MIT */
/*
 * Stacks that are not active: of other threads, and of coroutines. They are found by the address at
 * which they continue, which must be expected by exactly one of them: a stack that may be another's
 * is worse than none. Switches are rare compared with calls, so frames are simply copied.
 */
#include "flow/callstack_parts.h"

/* Index of the first frame of a parked stack. */
static uint32_t begin_of(const struct tl_callstack *cs, uint32_t stack)
{
    uint32_t at = 0;
    for (uint32_t i = 0; i < stack; i++)
        at += cs->parked[i].n;
    return at;
}

static void drop(struct tl_callstack *cs, uint32_t stack)
{
    const uint32_t at = begin_of(cs, stack), n = cs->parked[stack].n;
    cs->n_aside -= n;
    memmove(cs->aside + at, cs->aside + at + n, (cs->n_aside - at) * sizeof *cs->aside);
    cs->n_parked--;
    memmove(cs->parked + stack, cs->parked + stack + 1,
            (cs->n_parked - stack) * sizeof *cs->parked);
}

void tl_callstack_park(struct tl_callstack *cs, uint64_t who, uint64_t pc)
{
    const bool yields = pc == 0;
    if (cs->depth < 1u + yields || cs->deeper || cs->depth > TL_CALLSTACK_ASIDE)
        return;
    /* A thread has one stack that was interrupted. */
    for (uint32_t i = cs->n_parked; i > 0 && cs->thread && !yields; i--)
        if (cs->parked[i - 1].who == who && cs->parked[i - 1].pc != 0)
            drop(cs, i - 1);
    while (cs->n_parked == TL_CALLSTACK_PARKED || cs->n_aside + cs->depth > TL_CALLSTACK_ASIDE)
        drop(cs, 0);
    memcpy(cs->aside + cs->n_aside, cs->frames, cs->depth * sizeof *cs->frames);
    cs->n_aside += cs->depth;
    cs->parked[cs->n_parked++] = (struct tl_parked_stack){.who = who, .pc = pc, .n = cs->depth};
}

/* Number of frames with which a parked stack continues at `pc`; 0: it does not. */
static uint32_t continues(const struct tl_callstack *cs, uint32_t stack, uint64_t pc, bool yields)
{
    const struct tl_parked_stack *const parked = &cs->parked[stack];
    const struct tl_frame *const frames = cs->aside + begin_of(cs, stack);
    if (parked->who != tl_callstack_who(cs))
        return 0;
    if (!yields || parked->pc != 0)
        return !yields && parked->pc == pc ? parked->n : 0;
    for (uint32_t i = parked->n; i > 1 && frames[i - 1].kind != TL_FRAME_EXCEPTION; i--)
        if (frames[i - 1].return_pc == pc)
            return i - 1;
    return 0;
}

bool tl_callstack_expects(const struct tl_callstack *cs, uint64_t pc)
{
    for (uint32_t i = 0; i < cs->n_parked; i++)
        if (continues(cs, i, pc, false))
            return true;
    return false;
}

/* Make the first `n` frames of a parked stack the active ones; `yields`: park the current ones. */
static int activate(struct tl_callstack *cs, uint32_t stack, uint32_t n, bool yields)
{
    struct tl_frame frames[TL_CALLSTACK_ASIDE];
    memcpy(frames, cs->aside + begin_of(cs, stack), n * sizeof *frames);
    drop(cs, stack);
    if (yields)
        tl_callstack_park(cs, tl_callstack_who(cs), 0);
    int rc = tl_callstack_unwind(cs, 0);
    for (uint32_t i = 0; i < n && rc >= 0; i++) {
        frames[i].flags |= TL_FRAME_RESUMED;
        rc = tl_callstack_enter(cs, &frames[i]);
    }
    return rc;
}

/* The only stack that continues at `pc`; if there are several they cannot be told apart any more.
 */
static bool find_only(struct tl_callstack *cs, uint64_t pc, bool yields, uint32_t *stack,
                      uint32_t *n)
{
    uint32_t found = 0;
    for (uint32_t i = 0; i < cs->n_parked; i++) {
        const uint32_t frames = continues(cs, i, pc, yields);
        found += frames > 0;
        *stack = frames > 0 ? i : *stack;
        *n = frames > 0 ? frames : *n;
    }
    for (uint32_t i = cs->n_parked; i > 0 && found > 1 && !yields; i--)
        if (continues(cs, i - 1, pc, yields))
            drop(cs, i - 1);
    return found == 1;
}

int tl_callstack_switch(struct tl_callstack *cs, uint64_t pc, bool yields)
{
    uint32_t stack = 0, n = 0;
    if (cs->n_parked == 0 || !find_only(cs, pc, yields, &stack, &n))
        return TL_AGAIN;
    return activate(cs, stack, n, yields);
}

int tl_callstack_switch_thread(struct tl_callstack *cs, uint64_t *pc)
{
    for (uint32_t i = cs->n_parked; i > 0 && cs->thread; i--)
        if (cs->parked[i - 1].who == tl_callstack_who(cs) && cs->parked[i - 1].pc != 0) {
            *pc = cs->parked[i - 1].pc;
            return activate(cs, i - 1, cs->parked[i - 1].n, false);
        }
    return TL_AGAIN;
}
