/* SPDX-License-Identifier: MIT */
/*
 * Cancelling long work. Whoever runs a request on a thread says there how to ask whether its
 * result is still wanted; loops that may run long ask every few milliseconds of work, and unwind
 * with TL_CANCELLED. Work on threads that nobody has said anything for is never cancelled.
 *
 * Per thread: what one thread begins concerns no other.
 */
#ifndef TL_BASE_CANCEL_H
#define TL_BASE_CANCEL_H

#include "base/err.h"

struct tl_cancel {
    /* Is the result unwanted? Called from the thread that works, often: must be cheap. */
    bool (*asked)(void *context);
    void *context;
};

/*
 * From now on the calling thread's work is done for `cancel` (borrowed until it is replaced; NULL:
 * for nobody who could cancel it). Returns what was in force before, to be put back at the end.
 */
const struct tl_cancel *tl_cancel_set(const struct tl_cancel *cancel);

/* TL_OK: go on; TL_CANCELLED: give up, and tell the caller so. */
TL_MUST_USE int tl_cancel_check(void);

#endif
