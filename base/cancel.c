/* SPDX-License-Identifier: MIT */
/*
 * The thread's cancellation is a thread-local pointer that is replaced and restored as a unit.
 * Loops deep in a decoder can therefore ask for it without a parameter in every function between.
 */
#include "base/cancel.h"

#include <stddef.h>

static _Thread_local const struct tl_cancel *current;

const struct tl_cancel *tl_cancel_set(const struct tl_cancel *cancel)
{
    const struct tl_cancel *const before = current;
    current = cancel;
    return before;
}

int tl_cancel_rest(void)
{
    if (current && current->rest)
        current->rest();
    return tl_cancel_check();
}

int tl_cancel_check(void)
{
    return current && current->asked(current->context) ? TL_CANCELLED : TL_OK;
}

int tl_give_way(void)
{
    return current && current->give_way ? current->give_way(current->context) : tl_cancel_check();
}

static void report_wait(bool begins)
{
    if (current && current->waits)
        current->waits(current->context, begins);
}

void tl_wait_begins(void)
{
    report_wait(true);
}

void tl_wait_ends(void)
{
    report_wait(false);
}
