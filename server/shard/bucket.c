/* SPDX-License-Identifier: MIT */
/*
 * Counts, merges and encodes tile buckets. Space-saving counters have a fixed size whatever the
 * number of functions, so that a bucket takes the same memory on each level of the pyramid.
 */
#include "shard/bucket.h"

#include <stdlib.h>

/* Space-saving counters: an unknown id takes over the smallest counter, including its count.
 * Returns whether the id is new to the table. */
static bool count(struct tl_top *top, size_t size, uint64_t id, uint64_t n)
{
    size_t min = 0;
    if (top[0].id == id && top[0].n > 0) {
        top[0].n += n;
        return false;
    }
    for (size_t i = 0; i < size; i++) {
        if (top[i].n == 0) { /* free, like all after it */
            min = i;
            break;
        }
        if (top[i].id == id) {
            top[i].n += n;
            return false;
        }
        if (top[i].n < top[min].n)
            min = i;
    }
    top[min].id = id;
    top[min].n += n;
    return true;
}

static void widen_depth(struct tl_bucket *b, uint8_t low, uint8_t high)
{
    if (b->insns == 0 || low < b->depth_min)
        b->depth_min = low;
    if (b->insns == 0 || high > b->depth_max)
        b->depth_max = high;
}

bool tl_bucket_function(struct tl_bucket *b, uint64_t function, uint64_t n)
{
    return function != 0 && count(b->functions, TL_BUCKET_FUNCTIONS, function, n);
}

void tl_bucket_page(struct tl_bucket *b, uint64_t page, uint64_t n)
{
    count(b->pages, TL_BUCKET_PAGES, page, n);
}

static uint8_t depth_of(unsigned depth)
{
    return depth < 255 ? (uint8_t)depth : 255;
}

void tl_bucket_span(struct tl_bucket *b, uint64_t n, unsigned privilege, unsigned depth_min,
                    unsigned depth_max)
{
    widen_depth(b, depth_of(depth_min), depth_of(depth_max));
    b->insns += n;
    if (privilege < 4)
        b->privilege[privilege] += n;
}

void tl_bucket_insns(struct tl_bucket *b, uint64_t n, uint64_t function, uint64_t pc,
                     unsigned privilege, unsigned depth)
{
    if (n == 0)
        return;
    tl_bucket_span(b, n, privilege, depth, depth);
    b->distinct += tl_bucket_function(b, function, n) && b->distinct < 255;
    tl_bucket_page(b, pc >> 12, n);
}

void tl_bucket_item(struct tl_bucket *b, const struct tl_item *item)
{
    b->flags |= tl_bucket_flags(item);
    b->branches += tl_item_is_branch(item);
    b->events += tl_item_is_event(item);
    b->event_mask |= tl_bucket_mask(item);
}

void tl_bucket_merge(struct tl_bucket *into, const struct tl_bucket *from)
{
    if (from->insns > 0)
        widen_depth(into, from->depth_min, from->depth_max);
    into->insns += from->insns;
    into->branches += from->branches;
    into->events += from->events;
    for (size_t i = 0; i < TL_BUCKET_FUNCTIONS; i++)
        if (from->functions[i].n > 0)
            count(into->functions, TL_BUCKET_FUNCTIONS, from->functions[i].id,
                  from->functions[i].n);
    for (size_t i = 0; i < TL_BUCKET_PAGES; i++)
        if (from->pages[i].n > 0)
            count(into->pages, TL_BUCKET_PAGES, from->pages[i].id, from->pages[i].n);
    for (size_t i = 0; i < 4; i++)
        into->privilege[i] += from->privilege[i];
    into->event_mask |= from->event_mask;
    into->flags |= from->flags;
    if (from->distinct > into->distinct)
        into->distinct = from->distinct;
}

static bool is_before(const struct tl_top *x, const struct tl_top *y)
{
    return x->n != y->n ? x->n > y->n : x->id < y->id;
}

/* Insertion sort: there are few, most of them free. */
static void sort(struct tl_top *top, size_t size)
{
    for (size_t i = 1; i < size; i++) {
        const struct tl_top one = top[i];
        size_t k = i;
        for (; k > 0 && is_before(&one, &top[k - 1]); k--)
            top[k] = top[k - 1];
        top[k] = one;
    }
}

void tl_bucket_sort(struct tl_bucket *b)
{
    sort(b->functions, TL_BUCKET_FUNCTIONS);
    sort(b->pages, TL_BUCKET_PAGES);
}

/* ---- a run of buckets --------------------------------------------------------------------- */

void tl_buckets_fini(struct tl_buckets *buckets)
{
    free(buckets->p);
    *buckets = (struct tl_buckets){0};
}

int tl_buckets_reserve(struct tl_buckets *buckets, size_t n)
{
    return tl_grow(&buckets->p, &buckets->cap, n, sizeof(*buckets->p));
}

struct tl_bucket *tl_buckets_at(struct tl_buckets *buckets, uint64_t position)
{
    const uint64_t number = position >> 2 * buckets->level;
    if (buckets->n == 0)
        buckets->first = number;
    if (number < buckets->first)
        return NULL;
    const uint64_t i = number - buckets->first;
    if (i >= buckets->n) {
        if (tl_grow(&buckets->p, &buckets->cap, (size_t)i + 1, sizeof(*buckets->p)) < 0)
            return NULL;
        memset(buckets->p + buckets->n, 0, ((size_t)i + 1 - buckets->n) * sizeof(*buckets->p));
        buckets->n = (size_t)i + 1;
        if (buckets->n < buckets->cap) /* previously another bucket */
            for (size_t k = 0; k < sizeof(*buckets->p); k += 64)
                __builtin_prefetch((const uint8_t *)&buckets->p[buckets->n] + k, 1);
    }
    return &buckets->p[i];
}

void tl_buckets_state(struct tl_buckets *buckets, struct tl_state *s)
{
    size_t n = buckets->n;
    tl_state_u64(s, &buckets->first);
    tl_state_size(s, &n, s->in.n / sizeof(*buckets->p));
    if (tl_state_loads(s) && s->rc >= 0)
        tl_state_fail(s, tl_grow(&buckets->p, &buckets->cap, n + 1, sizeof(*buckets->p)));
    buckets->n = s->rc >= 0 ? n : 0;
    if (buckets->n > 0) /* plain numbers, for which any value is valid */
        tl_state_bytes(s, buckets->p, n * sizeof(*buckets->p));
}

int tl_buckets_merge(struct tl_buckets *into, const struct tl_buckets *from)
{
    for (size_t i = 0; i < from->n; i++) {
        struct tl_bucket *b = tl_buckets_at(into, (from->first + i) << 2 * from->level);
        if (!b)
            return TL_NOMEM;
        tl_bucket_merge(b, &from->p[i]);
    }
    return TL_OK;
}

/* A bucket: fields that are usually zero are announced by one bit each. */
#define BUCKET_MAX 256 /* maximum encoded size */
enum { E_EVENTS = 1, E_PRIVILEGE = 2, E_DEPTH = 4, E_FLAGS = 8 };

/* Write the `most` (up to TL_BUCKET_KEPT) most frequent entries of `top`, most frequent first. */
static size_t put_tops(uint8_t *p, const struct tl_top *top, size_t size, size_t most)
{
    struct tl_top kept[TL_BUCKET_KEPT];
    size_t n_kept = 0, n = 1;
    for (size_t i = 0; i < size && top[i].n > 0; i++) {
        if (n_kept == most && !is_before(&top[i], &kept[most - 1]))
            continue;
        size_t k = n_kept < most ? n_kept++ : most - 1;
        for (; k > 0 && is_before(&top[i], &kept[k - 1]); k--)
            kept[k] = kept[k - 1];
        kept[k] = top[i];
    }
    p[0] = (uint8_t)n_kept;
    for (size_t i = 0; i < n_kept; i++) {
        n += tl_varint_put(p + n, kept[i].id);
        n += tl_varint_put(p + n, kept[i].n);
    }
    return n;
}

static size_t put_bucket(uint8_t *p, const struct tl_bucket *b)
{
    const bool privilege = b->privilege[0] | b->privilege[1] | b->privilege[2] | b->privilege[3];
    uint8_t head = 0;
    head |= b->events || b->event_mask ? E_EVENTS : 0;
    head |= privilege ? E_PRIVILEGE : 0;
    head |= b->depth_min || b->depth_max ? E_DEPTH : 0;
    head |= b->flags ? E_FLAGS : 0;
    size_t n = 0;
    p[n++] = head;
    n += tl_varint_put(p + n, b->insns);
    n += tl_varint_put(p + n, b->branches);
    p[n++] = b->distinct;
    n += put_tops(p + n, b->functions, TL_BUCKET_FUNCTIONS, TL_BUCKET_KEPT);
    n += put_tops(p + n, b->pages, TL_BUCKET_PAGES, TL_BUCKET_KEPT / 2);
    if (head & E_EVENTS) {
        n += tl_varint_put(p + n, b->events);
        n += tl_varint_put(p + n, b->event_mask);
    }
    for (size_t i = 0; i < 4 && head & E_PRIVILEGE; i++)
        n += tl_varint_put(p + n, b->privilege[i]);
    if (head & E_DEPTH) {
        p[n++] = b->depth_min;
        p[n++] = b->depth_max;
    }
    if (head & E_FLAGS)
        p[n++] = b->flags;
    return n;
}

int tl_buckets_encode(const struct tl_buckets *buckets, struct tl_buf *out)
{
    int r = tl_varint_add(out, buckets->level);
    if (r >= 0)
        r = tl_varint_add(out, buckets->first);
    if (r >= 0)
        r = tl_varint_add(out, buckets->n);
    for (size_t i = 0; r >= 0 && i < buckets->n; i++) {
        r = tl_buf_reserve(out, BUCKET_MAX);
        if (r >= 0)
            out->n += put_bucket(out->p + out->n, &buckets->p[i]);
    }
    return r;
}

int tl_buckets_encode_summary(const struct tl_buckets *buckets, struct tl_buf *out)
{
    struct tl_buckets summary = {.level = TL_LEVEL_SUMMARY};
    int r = tl_buckets_merge(&summary, buckets);
    if (r >= 0)
        r = tl_buckets_encode(&summary, out);
    tl_buckets_fini(&summary);
    return r;
}

static uint8_t get_byte(struct tl_varint_reader *r)
{
    const uint8_t *p = tl_varint_bytes(r, 1);
    return p ? *p : 0;
}

static void get_tops(struct tl_varint_reader *r, struct tl_top *top, size_t size)
{
    const size_t n = get_byte(r);
    if (n > size)
        r->bad = true;
    for (size_t i = 0; i < n && i < size; i++) {
        top[i].id = tl_varint_get(r);
        top[i].n = tl_varint_get(r);
    }
}

static void get_bucket(struct tl_varint_reader *r, struct tl_bucket *b)
{
    *b = (struct tl_bucket){0};
    const uint8_t head = get_byte(r);
    b->insns = tl_varint_get(r);
    b->branches = tl_varint_get(r);
    b->distinct = get_byte(r);
    get_tops(r, b->functions, TL_BUCKET_FUNCTIONS);
    get_tops(r, b->pages, TL_BUCKET_PAGES);
    if (head & E_EVENTS) {
        b->events = tl_varint_get(r);
        b->event_mask = (uint16_t)tl_varint_get(r);
    }
    for (size_t i = 0; i < 4 && head & E_PRIVILEGE; i++)
        b->privilege[i] = tl_varint_get(r);
    if (head & E_DEPTH) {
        b->depth_min = get_byte(r);
        b->depth_max = get_byte(r);
    }
    if (head & E_FLAGS)
        b->flags = get_byte(r);
}

int tl_buckets_read(struct tl_buckets *out, struct tl_varint_reader *in)
{
    *out = (struct tl_buckets){0};
    out->level = (unsigned)tl_varint_get(in);
    out->first = tl_varint_get(in);
    const uint64_t n = tl_varint_get(in);
    /* A bucket has at least 6 bytes. */
    if (in->bad || out->level > 31 || n > (uint64_t)(in->end - in->p) / 6)
        return TL_BAD;
    if (n > 0 && tl_grow(&out->p, &out->cap, (size_t)n, sizeof(*out->p)) < 0)
        return TL_NOMEM;
    for (; out->n < n; out->n++)
        get_bucket(in, &out->p[out->n]);
    if (in->bad) {
        tl_buckets_fini(out);
        return TL_BAD;
    }
    return TL_OK;
}

int tl_buckets_decode(struct tl_buckets *out, struct tl_bytes bytes)
{
    struct tl_varint_reader in = {bytes.p, bytes.p + bytes.n, false};
    return tl_buckets_read(out, &in);
}
