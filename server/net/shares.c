/* SPDX-License-Identifier: MIT */
/*
 * Counts what each client uses, and refuses more than its share. A share is relative to what is
 * free, so that a lone client gets much, and a newcomer something whatever the others do, without
 * anybody having to know how many clients there are.
 */
#include "net/shares.h"

#include "base/prometheus.h"

#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- parties --------------------------------------------------------------------------------- */

/* IPv4 addresses, also those mapped into IPv6, or the /64 of an IPv6 address. */
static void key_of_address(const struct sockaddr_storage *at, uint8_t key[static 17])
{
    memset(key, 0, 17);
    key[0] = 'a';
    if (at->ss_family == AF_INET) {
        memcpy(key + 1, &((const struct sockaddr_in *)at)->sin_addr, 4);
    } else if (at->ss_family == AF_INET6) {
        const struct in6_addr *const v6 = &((const struct sockaddr_in6 *)at)->sin6_addr;
        const bool mapped = IN6_IS_ADDR_V4MAPPED(v6);
        key[0] = mapped ? 'a' : '6';
        memcpy(key + 1, v6->s6_addr + (mapped ? 12 : 0), mapped ? 4 : 8);
    }
}

static void key_of_token(const uint8_t digest[static 16], uint8_t key[static 17])
{
    key[0] = 't';
    memcpy(key + 1, digest, 16);
}

static struct tl_party **chain_of(struct tl_shares *shares, const uint8_t key[static 17])
{
    uint32_t hash = 2166136261u; /* FNV-1a */
    for (size_t i = 0; i < 17; i++)
        hash = (hash ^ key[i]) * 16777619u;
    return &shares->chains[hash % TL_SHARES_CHAINS];
}

static struct tl_party *get_party(struct tl_shares *shares, const uint8_t key[static 17])
{
    pthread_mutex_lock(&shares->lock);
    struct tl_party **const chain = chain_of(shares, key);
    struct tl_party *party = *chain;
    while (party && memcmp(party->key, key, sizeof party->key) != 0)
        party = party->next;
    if (!party && (party = calloc(1, sizeof *party))) {
        memcpy(party->key, key, sizeof party->key);
        party->next = *chain;
        *chain = party;
    }
    if (party)
        party->refs++;
    pthread_mutex_unlock(&shares->lock);
    return party;
}

static void put_party(struct tl_shares *shares, struct tl_party *party)
{
    if (!party)
        return;
    pthread_mutex_lock(&shares->lock);
    const bool last = !--party->refs;
    struct tl_party **link = chain_of(shares, party->key);
    while (last && *link != party)
        link = &(*link)->next;
    if (last)
        *link = party->next;
    pthread_mutex_unlock(&shares->lock);
    if (last)
        free(party);
}

/* ---- accounts -------------------------------------------------------------------------------- */

static struct tl_account *make(struct tl_shares *shares, const uint8_t address[static 17],
                               const uint8_t *token)
{
    struct tl_account *const account = calloc(1, sizeof *account);
    if (!account)
        return NULL;
    atomic_init(&account->refs, 1);
    account->shares = shares;
    account->address = get_party(shares, address);
    account->token = token ? get_party(shares, token) : NULL;
    if (account->address && !token == !account->token)
        return account;
    tl_account_put(account);
    return NULL;
}

struct tl_account *tl_account_new(struct tl_shares *shares, const struct sockaddr_storage *at)
{
    uint8_t key[17];
    key_of_address(at, key);
    return make(shares, key, NULL);
}

struct tl_account *tl_account_with_token(struct tl_account *from, const uint8_t digest[static 16])
{
    uint8_t key[17];
    key_of_token(digest, key);
    return make(from->shares, from->address->key, key);
}

bool tl_account_has_token(const struct tl_account *account, const uint8_t digest[static 16])
{
    return account->token && !memcmp(account->token->key + 1, digest, 16);
}

struct tl_account *tl_account_get(struct tl_account *account)
{
    atomic_fetch_add(&account->refs, 1);
    return account;
}

void tl_account_put(struct tl_account *account)
{
    if (!account || atomic_fetch_sub(&account->refs, 1) != 1)
        return;
    put_party(account->shares, account->address);
    put_party(account->shares, account->token);
    free(account);
}

/* ---- counting -------------------------------------------------------------------------------- */

/* A party's share of a resource of which `used` are in use. */
static size_t share_of(const struct tl_resource *r, size_t used)
{
    const size_t all = atomic_load_explicit(&r->all, memory_order_relaxed);
    const size_t each = atomic_load_explicit(&r->each, memory_order_relaxed);
    const size_t left = all > used ? all - used : 0;
    return each ? each : left;
}

static bool take(struct tl_account *account, unsigned use, size_t n)
{
    struct tl_resource *const r = &account->shares->of[use];
    struct tl_party *const token = account->token;
    const size_t used = atomic_fetch_add(&r->used, n);
    const size_t share = share_of(r, used);
    bool ok = used + n <= atomic_load_explicit(&r->all, memory_order_relaxed);
    ok &= atomic_fetch_add(&account->address->used[use], n) + n <= share;
    if (token)
        ok &= atomic_fetch_add(&token->used[use], n) + n <= share;
    return ok;
}

bool tl_account_try(struct tl_account *account, unsigned use, size_t n)
{
    if (take(account, use, n))
        return true;
    tl_account_release(account, use, n);
    return false;
}

bool tl_account_take(struct tl_account *account, unsigned use, size_t n)
{
    if (tl_account_try(account, use, n))
        return true;
    atomic_fetch_add_explicit(&account->shares->of[use].refused, 1, memory_order_relaxed);
    return false;
}

void tl_account_charge(struct tl_account *account, unsigned use, size_t n)
{
    (void)!take(account, use, n);
}

void tl_account_release(struct tl_account *account, unsigned use, size_t n)
{
    struct tl_shares *const shares = account->shares;
    atomic_fetch_sub(&account->address->used[use], n);
    if (account->token)
        atomic_fetch_sub(&account->token->used[use], n);
    atomic_fetch_sub(&shares->of[use].used, n);
    if (use == TL_USE_ANSWERS && atomic_load(&shares->starved) &&
        atomic_exchange(&shares->starved, false) && shares->on_room)
        shares->on_room(shares->context);
}

bool tl_account_take_too(struct tl_account *account, unsigned use)
{
    struct tl_resource *const r = &account->shares->of[use];
    const size_t share = share_of(r, atomic_load(&r->used));
    if (atomic_fetch_add(&account->token->used[use], 1) <= share)
        return true;
    tl_account_release_too(account, use);
    atomic_fetch_add_explicit(&r->refused, 1, memory_order_relaxed);
    return false;
}

void tl_account_release_too(struct tl_account *account, unsigned use)
{
    atomic_fetch_sub(&account->token->used[use], 1);
}

bool tl_account_within(const struct tl_account *account, unsigned use)
{
    const struct tl_resource *const r = &account->shares->of[use];
    const size_t share = share_of(r, atomic_load_explicit(&r->used, memory_order_relaxed));
    const struct tl_party *const token = account->token;
    return atomic_load_explicit(&account->address->used[use], memory_order_relaxed) <= share &&
           (!token || atomic_load_explicit(&token->used[use], memory_order_relaxed) <= share);
}

bool tl_account_room(const struct tl_account *account, unsigned use)
{
    const struct tl_resource *const r = &account->shares->of[use];
    const size_t share = share_of(r, atomic_load_explicit(&r->used, memory_order_relaxed));
    const struct tl_party *const token = account->token;
    return atomic_load_explicit(&account->address->used[use], memory_order_relaxed) < share &&
           (!token || atomic_load_explicit(&token->used[use], memory_order_relaxed) < share);
}

#define LITTLE 16 /* as a divisor */

bool tl_account_little(const struct tl_account *account, unsigned use)
{
    const size_t little = atomic_load(&account->shares->of[use].all) / LITTLE;
    return atomic_load(&tl_account_party(account)->used[use]) <= little;
}

/* ---- what people are told -------------------------------------------------------------------- */

char *tl_account_say(const struct tl_account *account, unsigned use, const char *what, char *out,
                     size_t n)
{
    const struct tl_resource *const r = &account->shares->of[use];
    const size_t of_address = atomic_load(&account->address->used[use]);
    const size_t of_token = account->token ? atomic_load(&account->token->used[use]) : 0;
    snprintf(out, n,
             "too many %s: %zu of at most %zu are in use, %zu from this address%s, and each client "
             "has a share; wait for some to end, then retry",
             what, atomic_load(&r->used), atomic_load(&r->all), of_address,
             of_token ? " or token" : "");
    return out;
}

static const char *const names[TL_USE_CALLS] = {
    "connections",    "http1",        "guests",       "head-bytes",    "answer-bytes",
    "public-inbound", "read-inbound", "push-inbound", "admin-inbound", "health-inbound",
};

static size_t largest(const struct tl_shares *shares, unsigned use)
{
    size_t most = 0;
    for (size_t i = 0; i < TL_SHARES_CHAINS; i++)
        for (const struct tl_party *p = shares->chains[i]; p; p = p->next)
            if (atomic_load(&p->used[use]) > most)
                most = atomic_load(&p->used[use]);
    return most;
}

int tl_shares_metrics(const struct tl_shares *shares, struct tl_buf *out)
{
    size_t most[TL_USE_CALLS];
    pthread_mutex_lock((pthread_mutex_t *)(uintptr_t)&shares->lock);
    for (unsigned i = 0; i < TL_USE_CALLS; i++)
        most[i] = largest(shares, i);
    pthread_mutex_unlock((pthread_mutex_t *)(uintptr_t)&shares->lock);
    int rc = tl_metric_begin(out, "share_used", "Of a resource: in use.");
    for (unsigned i = 0; i < TL_USE_CALLS && rc == TL_OK; i++)
        rc = tl_metric_sample(out, "share_used", atomic_load(&shares->of[i].used), "of=\"%s\"",
                              names[i]);
    if (rc == TL_OK)
        rc = tl_metric_begin(out, "share_limit", "Of a resource: there is.");
    for (unsigned i = 0; i < TL_USE_CALLS && rc == TL_OK; i++)
        rc = tl_metric_sample(out, "share_limit", atomic_load(&shares->of[i].all), "of=\"%s\"",
                              names[i]);
    if (rc == TL_OK)
        rc = tl_metric_begin(out, "share_largest", "Of a resource: used by the largest client.");
    for (unsigned i = 0; i < TL_USE_CALLS && rc == TL_OK; i++)
        rc = tl_metric_sample(out, "share_largest", most[i], "of=\"%s\"", names[i]);
    if (rc == TL_OK)
        rc = tl_metric_begin(out, "share_refused_total", "Refused: a client had its share.");
    for (unsigned i = 0; i < TL_USE_CALLS && rc == TL_OK; i++)
        rc = tl_metric_sample(out, "share_refused_total", atomic_load(&shares->of[i].refused),
                              "of=\"%s\"", names[i]);
    return rc;
}

/* ---- life ------------------------------------------------------------------------------------ */

void tl_shares_init(struct tl_shares *shares)
{
    memset(shares, 0, sizeof *shares);
    pthread_mutex_init(&shares->lock, NULL);
}

void tl_shares_fini(struct tl_shares *shares)
{
    pthread_mutex_destroy(&shares->lock);
}

void tl_shares_limit(struct tl_shares *shares, unsigned use, size_t all, size_t each)
{
    atomic_store(&shares->of[use].all, all);
    atomic_store(&shares->of[use].each, each);
}
