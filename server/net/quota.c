/* SPDX-License-Identifier: MIT */
/*
 * Reads quotas, and keeps the pace of what comes. The pace is one number, the time at which the
 * next thing would be due if everything came evenly, so that it can be advanced without a lock.
 */
#include "net/quota.h"

#include "base/args.h"
#include "base/now.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int tl_quota_add(struct tl_quota *quota, const char *word)
{
    const struct tl_arg known[] = {{"bytes", TL_ARG_SIZE, &quota->bytes},
                                   {"traces", TL_ARG_U64, &quota->traces},
                                   {"rate", TL_ARG_SIZE, &quota->rate},
                                   {"calls", TL_ARG_U64, &quota->calls},
                                   {0}};
    char value[32];
    const size_t n = strcspn(word, "=");
    const struct tl_arg *const arg = word[n] ? tl_arg_find(known, word, n) : NULL;
    if (!arg)
        return TL_USAGE;
    if ((size_t)snprintf(value, sizeof value, "%s", word + n + 1) >= sizeof value)
        return TL_BAD;
    return tl_arg_set(arg, value) || !*(uint64_t *)arg->value ? TL_BAD : TL_OK;
}

bool tl_quota_any(const struct tl_quota *quota)
{
    return quota->bytes || quota->traces || quota->rate || quota->calls;
}

/* ---- pace ------------------------------------------------------------------------------------ */

static int64_t duration_of(uint64_t rate, uint64_t n)
{
    return (int64_t)((double)n * TL_NS_PER_S / (double)rate);
}

/* Take `n`; returns 0, or > 0: for so many ns there is no room, and nothing was taken. */
static int64_t take_pace(struct tl_pace *pace, uint64_t rate, uint64_t n)
{
    const int64_t now = tl_monotonic_ns();
    long long next = atomic_load(&pace->next_ns);
    for (;;) {
        const int64_t from = next > now ? next : now;
        if (from - now > TL_NS_PER_S - duration_of(rate, 1))
            return from - now - TL_NS_PER_S + duration_of(rate, 1) + 1;
        if (atomic_compare_exchange_weak(&pace->next_ns, &next, from + duration_of(rate, n)))
            return 0;
    }
}

int64_t tl_pace_owe(struct tl_pace *pace, uint64_t rate, uint64_t n)
{
    const int64_t now = tl_monotonic_ns();
    long long next = atomic_load(&pace->next_ns);
    int64_t then;
    do
        then = (next > now ? next : now) + duration_of(rate, n);
    while (!atomic_compare_exchange_weak(&pace->next_ns, &next, then));
    return then - now > TL_NS_PER_S ? then - now - TL_NS_PER_S : 0;
}

/* ---- holders --------------------------------------------------------------------------------- */

struct tl_holder *tl_holder_new(const char *name, const struct tl_quota *quota)
{
    struct tl_holder *const holder = calloc(1, sizeof *holder);
    if (!holder)
        return NULL;
    atomic_init(&holder->refs, 1);
    snprintf(holder->name, sizeof holder->name, "%s", name);
    for (char *p = holder->name; *p; p++) /* it becomes a label of metrics */
        if (*p == '"' || *p == '\\' || *p < ' ')
            *p = '_';
    holder->quota = *quota;
    return holder;
}

struct tl_holder *tl_holder_get(struct tl_holder *holder)
{
    if (holder)
        atomic_fetch_add(&holder->refs, 1);
    return holder;
}

void tl_holder_put(struct tl_holder *holder)
{
    if (holder && atomic_fetch_sub(&holder->refs, 1) == 1)
        free(holder);
}

bool tl_holder_call(struct tl_holder *holder, char *why, unsigned n)
{
    if (!holder || !holder->quota.calls)
        return true;
    const int64_t ns = take_pace(&holder->calls, holder->quota.calls, 1);
    if (!ns)
        return true;
    atomic_fetch_add(&holder->refused, 1);
    snprintf(why, n,
             "quota: token %s may make %llu calls a second (calls=%llu); wait %lld ms, then retry",
             holder->name, (unsigned long long)holder->quota.calls,
             (unsigned long long)holder->quota.calls, (long long)(ns / TL_NS_PER_MS + 1));
    return false;
}
