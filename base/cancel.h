/* SPDX-License-Identifier: MIT */
/*
 * Cancellation of long operations. The code that runs a request on a thread registers a function
 * that tells whether the result is still wanted; long loops call tl_cancel_check() every few
 * milliseconds and unwind with TL_CANCELLED. On a thread without such a function nothing is
 * cancelled.
 *
 * Decoders call tl_give_way() instead, within a push: a few bytes of trace can stand for billions
 * of instructions, so a decode must be stoppable, and must let others have their turn, in the
 * middle of a packet.
 *
 * All state is per thread.
 */
#ifndef TL_BASE_CANCEL_H
#define TL_BASE_CANCEL_H

#include "base/err.h"

struct tl_cancel {
    /* Returns true if the result is no longer wanted. Called often, from the working thread: must
     * be cheap. */
    bool (*asked)(void *context);
    void *context;
    /* Lets others, who wait for this thread, work first for a short time. NULL: nobody waits. */
    void (*rest)(void);
    /* What tl_give_way() does: may block while others have their turn. NULL: it only asks. Returns
     * < 0: unwind with this error. */
    int (*give_way)(void *context);
    /* What tl_wait_begins() and tl_wait_ends() do; the latter may block. NULL: nothing. */
    void (*waits)(void *context, bool begins);
};

/*
 * Set the cancellation function of the calling thread: `cancel` is borrowed until replaced; NULL:
 * not cancellable. Returns the previous one, to be restored at the end.
 */
const struct tl_cancel *tl_cancel_set(const struct tl_cancel *cancel);

/* Returns TL_OK: continue; TL_CANCELLED: stop and return this error. */
TL_MUST_USE int tl_cancel_check(void);
/* The same between two parts of work that takes long as a whole. It may last some time: no lock may
 * be held that others need. */
TL_MUST_USE int tl_cancel_rest(void);

/*
 * The same, at a place where the caller holds no lock and where nothing is half done: it may return
 * much later. Returns TL_OK, or the error with which to unwind. Costs little: call it about every
 * thousand steps.
 */
TL_MUST_USE int tl_give_way(void);

/*
 * What is between these two mostly waits, for a medium or another thread: meanwhile others may have
 * the processor that this thread is entitled to. The caller holds no lock. Pairs of them are not
 * nested.
 */
void tl_wait_begins(void);
void tl_wait_ends(void);

#endif
