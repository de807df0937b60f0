/* SPDX-License-Identifier: MIT */
#include "net/caller.h"

#include "net/address.h"

#include <stdlib.h>

struct tl_caller *tl_caller_new(const struct sockaddr_storage *peer, socklen_t n)
{
    struct tl_caller *const caller = calloc(1, sizeof *caller);
    const struct tl_address address = {.at = *peer, .n = n};
    if (!caller)
        return NULL;
    atomic_init(&caller->refs, 1);
    tl_address_text(&address, caller->address, sizeof caller->address);
    return caller;
}

struct tl_caller *tl_caller_get(struct tl_caller *caller)
{
    atomic_fetch_add(&caller->refs, 1);
    return caller;
}

void tl_caller_put(struct tl_caller *caller)
{
    if (!caller || atomic_fetch_sub(&caller->refs, 1) > 1)
        return;
    tl_buf_fini(&caller->names);
    free(caller);
}
