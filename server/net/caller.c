/* SPDX-License-Identifier: MIT */
/*
 * Holds who is at the other end of a connection, and the account of the token used last. Requests
 * of one connection nearly always have the same token, which is then looked up once.
 */
#include "net/caller.h"

#include "net/address.h"
#include "net/auth.h"

#include <stdlib.h>

struct tl_caller *tl_caller_new(const struct sockaddr_storage *peer, socklen_t n,
                                struct tl_account *account)
{
    struct tl_caller *const caller = calloc(1, sizeof *caller);
    const struct tl_address address = {.at = *peer, .n = n};
    if (!caller) {
        tl_account_put(account);
        return NULL;
    }
    atomic_init(&caller->refs, 1);
    caller->account = account;
    tl_address_text(&address, caller->address, sizeof caller->address);
    return caller;
}

struct tl_account *tl_caller_account(struct tl_caller *caller, const struct tl_grant *grant)
{
    if (!grant->known)
        return tl_account_get(caller->account);
    if (!caller->recent || !tl_account_has_token(caller->recent, grant->digest)) {
        struct tl_account *const account = tl_account_with_token(caller->account, grant->digest);
        if (!account)
            return tl_account_get(caller->account);
        tl_account_put(caller->recent);
        caller->recent = account;
    }
    return tl_account_get(caller->recent);
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
    tl_account_put(caller->account);
    tl_account_put(caller->recent);
    free(caller);
}
