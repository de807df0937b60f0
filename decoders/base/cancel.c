/* SPDX-License-Identifier: MIT */
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
