/* SPDX-License-Identifier: MIT */
/*
 * Merges and encodes buckets in time. Functions are counted exactly as long as there are few, since
 * a share that is off by two points names a wrong winner; beyond that, all lose an equal part
 * (Misra and Gries), whose size does not depend on the order of merging.
 */
#include "shard/timebucket.h"

#include <stdlib.h>

#define NS 1000000000u

#define SUMMARY_SHARES 1024 /* functions of a summary's buckets in all, unless there are … */
#define SUMMARY_LEAST  2    /* … at most so many of these */

/* ---- how times are shown -------------------------------------------------------------------- */

uint64_t tl_axis_shown(const struct tl_axis *axis, uint64_t ticks)
{
    if (axis->clock.known)
        return tl_clock_ns(&axis->clock, ticks);
    if (axis->hz == 0)
        return ticks;
    const unsigned __int128 ns = (unsigned __int128)ticks * NS / axis->hz;
    return ns > UINT64_MAX ? UINT64_MAX : (uint64_t)ns;
}

uint64_t tl_axis_ticks(const struct tl_axis *axis, uint64_t shown)
{
    if (axis->clock.known)
        return tl_clock_ticks(&axis->clock, shown);
    if (axis->hz == 0)
        return shown;
    const unsigned __int128 ticks = ((unsigned __int128)shown * axis->hz + NS - 1) / NS;
    return ticks > UINT64_MAX ? UINT64_MAX : (uint64_t)ticks;
}

/* ---- buckets -------------------------------------------------------------------------------- */

void tl_time_bucket_fini(struct tl_time_bucket *bucket)
{
    free(bucket->shares);
    *bucket = (struct tl_time_bucket){0};
}

static void widen_depth(struct tl_time_bucket *into, const struct tl_time_bucket *from)
{
    if (!from->ran)
        return;
    if (!into->ran || from->depth_min < into->depth_min)
        into->depth_min = from->depth_min;
    if (!into->ran || from->depth_max > into->depth_max)
        into->depth_max = from->depth_max;
    into->ran = true;
}

void tl_time_bucket_add_sums(struct tl_time_bucket *into, const struct tl_time_bucket *from)
{
    widen_depth(into, from);
    for (size_t i = 0; i < TL_TIMED_KINDS; i++)
        into->ticks[i] += from->ticks[i];
    for (size_t i = 0; i < 4; i++)
        into->privilege[i] += from->privilege[i];
    into->insns += from->insns;
    into->events += from->events;
    into->event_mask |= from->event_mask;
    into->flags |= from->flags;
}

static int by_function(const void *a, const void *b)
{
    const struct tl_time_share *const x = a, *const y = b;
    return x->function < y->function ? -1 : x->function > y->function;
}

static int by_ticks(const void *a, const void *b)
{
    const struct tl_time_share *const x = a, *const y = b;
    return x->ticks != y->ticks ? (x->ticks > y->ticks ? -1 : 1) : by_function(a, b);
}

static void sort(struct tl_time_bucket *b, int (*compare)(const void *, const void *))
{
    if (b->n_shares > 1)
        qsort(b->shares, b->n_shares, sizeof *b->shares, compare);
}

void tl_time_bucket_rank(struct tl_time_bucket *bucket)
{
    sort(bucket, by_ticks);
}

/* Too many: all lose as much as the first one too many has. */
static void lose_rarest(struct tl_time_bucket *b)
{
    if (b->n_shares <= TL_TIME_SHARES)
        return;
    sort(b, by_ticks);
    const uint64_t lost = b->shares[TL_TIME_SHARES].ticks;
    b->n_shares = 0;
    while (b->n_shares < TL_TIME_SHARES && b->shares[b->n_shares].ticks > lost)
        b->shares[b->n_shares++].ticks -= lost;
    sort(b, by_function);
}

/* How many functions two of them have. */
static uint32_t count_distinct(const struct tl_time_bucket *a, const struct tl_time_bucket *b)
{
    uint32_t n = 0, i = 0, k = 0;
    for (; i < a->n_shares && k < b->n_shares; n++) {
        const uint32_t x = a->shares[i].function, y = b->shares[k].function;
        i += x <= y;
        k += y <= x;
    }
    return n + a->n_shares - i + b->n_shares - k;
}

/* Both are ascending. From the last one on, so that what is moved is not written over. */
static void add_shares(struct tl_time_bucket *into, const struct tl_time_bucket *from, uint32_t n)
{
    uint32_t i = into->n_shares, k = from->n_shares;
    into->n_shares = n;
    while (k > 0) {
        const struct tl_time_share *const y = &from->shares[k - 1];
        struct tl_time_share *const to = &into->shares[--n];
        if (i > 0 && into->shares[i - 1].function >= y->function) {
            *to = into->shares[--i];
            if (to->function == y->function) {
                to->ticks += y->ticks;
                k--;
            }
        } else {
            *to = *y;
            k--;
        }
    }
}

int tl_time_bucket_merge(struct tl_time_bucket *into, const struct tl_time_bucket *from)
{
    tl_time_bucket_add_sums(into, from);
    if (from->n_shares == 0)
        return TL_OK;
    const uint32_t n = count_distinct(into, from);
    size_t cap = into->cap_shares;
    if (tl_grow(&into->shares, &cap, n, sizeof *into->shares) < 0)
        return TL_NOMEM;
    into->cap_shares = (uint32_t)cap;
    add_shares(into, from, n);
    lose_rarest(into);
    return TL_OK;
}

/* ---- pyramids ------------------------------------------------------------------------------- */

void tl_time_level_fini(struct tl_time_level *level)
{
    for (size_t i = 0; i < level->n; i++)
        tl_time_bucket_fini(&level->p[i]);
    free(level->p);
    *level = (struct tl_time_level){0};
}

struct tl_time_bucket *tl_time_level_at(struct tl_time_level *level, uint64_t number)
{
    if (level->n > 0 && level->p[level->n - 1].number == number)
        return &level->p[level->n - 1];
    if (tl_grow(&level->p, &level->cap, level->n + 1, sizeof *level->p) < 0)
        return NULL;
    level->p[level->n] = (struct tl_time_bucket){.number = number};
    return &level->p[level->n++];
}

int tl_time_level_coarsen(struct tl_time_level *into, const struct tl_time_level *from,
                          unsigned levels)
{
    int r = TL_OK;
    for (size_t i = 0; i < from->n && r >= 0; i++) {
        struct tl_time_bucket *const to = tl_time_level_at(into, from->p[i].number >> 2 * levels);
        r = to ? tl_time_bucket_merge(to, &from->p[i]) : TL_NOMEM;
    }
    return r;
}

void tl_time_pyramid_fini(struct tl_time_pyramid *p)
{
    for (unsigned i = 0; i < TL_TIME_LEVELS; i++)
        tl_time_level_fini(&p->levels[i]);
    p->finest = p->n = 0;
}

int tl_time_pyramid_copy(struct tl_time_pyramid *out, const struct tl_time_pyramid *from)
{
    out->finest = from->finest;
    out->n = from->n;
    int r = TL_OK;
    for (unsigned i = 0; i < from->n && r >= 0; i++)
        r = tl_time_level_coarsen(&out->levels[i], &from->levels[i], 0);
    return r;
}

const struct tl_time_level *tl_time_pyramid_at(const struct tl_time_pyramid *p, unsigned level,
                                               unsigned *shift)
{
    if (p->n == 0 || level < p->finest)
        return NULL;
    const unsigned i = level - p->finest < p->n ? level - p->finest : p->n - 1;
    *shift = 2 * (level - p->finest - i);
    return &p->levels[i];
}

/* ---- encoding ------------------------------------------------------------------------------- */

/*
 * A bucket: the distance of its number from the one before, then its contents, or one byte if those
 * are the same as of the one before it (while the processor is idle). Fields that are usually zero
 * are announced by one bit each.
 */
enum {
    E_EVENTS = 1,
    E_PRIVILEGE = 2,
    E_DEPTH = 4,
    E_MISSING = 8,
    E_INSNS = 16,
    E_SWITCHED_OUT = 32,
    E_SAME = 128
};

static int put_contents(const struct tl_time_bucket *b, struct tl_buf *out)
{
    const bool privilege = b->privilege[0] | b->privilege[1] | b->privilege[2] | b->privilege[3];
    const uint8_t head =
        (uint8_t)((b->events || b->event_mask || b->flags ? E_EVENTS : 0) |
                  (privilege ? E_PRIVILEGE : 0) | (b->ran ? E_DEPTH : 0) |
                  (b->ticks[TL_TIMED_LOST] | b->ticks[TL_TIMED_OFF] ? E_MISSING : 0) |
                  (b->insns ? E_INSNS : 0) |
                  (b->ticks[TL_TIMED_SWITCHED_OUT] ? E_SWITCHED_OUT : 0));
    const int r = tl_buf_reserve(out, (16 + 2 * (size_t)b->n_shares) * TL_VARINT_MAX);
    if (r < 0)
        return r;
    uint8_t *p = out->p + out->n;
    *p++ = head;
    p += tl_varint_put(p, b->ticks[TL_TIMED_RUN]);
    if (head & E_MISSING) {
        p += tl_varint_put(p, b->ticks[TL_TIMED_LOST]);
        p += tl_varint_put(p, b->ticks[TL_TIMED_OFF]);
    }
    if (head & E_SWITCHED_OUT)
        p += tl_varint_put(p, b->ticks[TL_TIMED_SWITCHED_OUT]);
    if (head & E_INSNS)
        p += tl_varint_put(p, b->insns);
    if (head & E_EVENTS) {
        p += tl_varint_put(p, b->events);
        p += tl_varint_put(p, b->event_mask);
        *p++ = b->flags;
    }
    for (size_t i = 0; i < 4 && head & E_PRIVILEGE; i++)
        p += tl_varint_put(p, b->privilege[i]);
    if (head & E_DEPTH) {
        *p++ = b->depth_min;
        *p++ = b->depth_max;
    }
    p += tl_varint_put(p, b->n_shares);
    uint32_t last = 0; /* they are ascending */
    for (uint32_t i = 0; i < b->n_shares; i++) {
        p += tl_varint_put(p, b->shares[i].function - last);
        p += tl_varint_put(p, b->shares[i].ticks);
        last = b->shares[i].function;
    }
    out->n = (size_t)(p - out->p);
    return TL_OK;
}

int tl_time_level_encode(const struct tl_time_level *level, struct tl_buf *out)
{
    uint64_t next = 0; /* number */
    size_t last = 0, n_last = 0;
    int r = tl_varint_add(out, level->n);
    for (size_t i = 0; i < level->n && r >= 0; i++) {
        r = tl_varint_add(out, level->p[i].number - next);
        next = level->p[i].number + 1;
        const size_t at = out->n;
        if (r >= 0)
            r = put_contents(&level->p[i], out);
        if (r < 0)
            return r;
        const size_t n = out->n - at;
        if (n == n_last && memcmp(out->p + at, out->p + last, n) == 0) {
            out->n = at;
            out->p[out->n++] = E_SAME;
        } else {
            last = at;
            n_last = n;
        }
    }
    return r;
}

int tl_time_pyramid_encode(const struct tl_time_pyramid *p, struct tl_buf *out)
{
    int r = tl_varint_add(out, p->finest);
    if (r >= 0)
        r = tl_varint_add(out, p->n);
    for (unsigned i = 0; i < p->n && r >= 0; i++)
        r = tl_time_level_encode(&p->levels[i], out);
    return r;
}

static bool is_summary(const struct tl_time_level *level)
{
    size_t n = 0;
    for (size_t i = 0; i < level->n; i++)
        n += level->p[i].n_shares;
    return level->n <= SUMMARY_LEAST || (level->n <= TL_TIME_SUMMARY && n <= SUMMARY_SHARES);
}

int tl_time_pyramid_encode_summary(const struct tl_time_pyramid *p, unsigned finest,
                                   struct tl_buf *out)
{
    struct tl_time_pyramid sums = {.n = p->n > 0};
    int r = TL_OK;
    if (p->n > 0) {
        const unsigned coarsest = p->finest + p->n - 1;
        sums.finest = finest > coarsest ? finest : coarsest;
        r = tl_time_level_coarsen(&sums.levels[0], &p->levels[p->n - 1], sums.finest - coarsest);
    }
    while (r >= 0 && sums.finest + 1 < TL_TIME_LEVELS && !is_summary(&sums.levels[0])) {
        struct tl_time_level up = {0};
        r = tl_time_level_coarsen(&up, &sums.levels[0], 1);
        tl_time_level_fini(&sums.levels[0]);
        sums.levels[0] = up;
        sums.finest++;
    }
    if (r >= 0)
        r = tl_time_pyramid_encode(&sums, out);
    tl_time_pyramid_fini(&sums);
    return r;
}

static uint8_t get_byte(struct tl_varint_reader *in)
{
    const uint8_t *const p = tl_varint_bytes(in, 1);
    return p ? *p : 0;
}

static int get_shares(struct tl_varint_reader *in, struct tl_time_bucket *b)
{
    const uint64_t n = tl_varint_get(in);
    if (in->bad || n > TL_TIME_SHARES || n > (uint64_t)(in->end - in->p) / 2)
        return TL_BAD;
    if (n == 0)
        return TL_OK;
    b->shares = malloc(n * sizeof *b->shares);
    if (!b->shares)
        return TL_NOMEM;
    b->cap_shares = (uint32_t)n;
    uint64_t function = 0;
    for (; b->n_shares < n; b->n_shares++) {
        const uint64_t more = tl_varint_get(in);
        if (more > UINT32_MAX - function || (more == 0 && b->n_shares > 0))
            return TL_BAD;
        function += more;
        b->shares[b->n_shares] = (struct tl_time_share){(uint32_t)function, tl_varint_get(in)};
    }
    return TL_OK;
}

static int get_contents(struct tl_varint_reader *in, struct tl_time_bucket *b, uint8_t head)
{
    b->ticks[TL_TIMED_RUN] = tl_varint_get(in);
    if (head & E_MISSING) {
        b->ticks[TL_TIMED_LOST] = tl_varint_get(in);
        b->ticks[TL_TIMED_OFF] = tl_varint_get(in);
    }
    if (head & E_SWITCHED_OUT)
        b->ticks[TL_TIMED_SWITCHED_OUT] = tl_varint_get(in);
    if (head & E_INSNS)
        b->insns = tl_varint_get(in);
    if (head & E_EVENTS) {
        b->events = tl_varint_get(in);
        b->event_mask = (uint16_t)tl_varint_get(in);
        b->flags = get_byte(in);
    }
    for (size_t i = 0; i < 4 && head & E_PRIVILEGE; i++)
        b->privilege[i] = tl_varint_get(in);
    b->ran = head & E_DEPTH;
    if (b->ran) {
        b->depth_min = get_byte(in);
        b->depth_max = get_byte(in);
    }
    return get_shares(in, b);
}

int tl_time_level_read(struct tl_time_level *level, struct tl_varint_reader *in, unsigned number)
{
    const uint64_t n = tl_varint_get(in), most = UINT64_MAX >> 2 * number;
    uint64_t next = 0;
    if (in->bad || n > (uint64_t)(in->end - in->p)) /* at least two bytes each */
        return TL_BAD;
    if (n > 0 && tl_grow(&level->p, &level->cap, (size_t)n, sizeof *level->p) < 0)
        return TL_NOMEM;
    for (uint64_t i = 0; i < n; i++) {
        struct tl_time_bucket *const b = &level->p[level->n];
        const uint64_t distance = tl_varint_get(in);
        *b = (struct tl_time_bucket){.number = next + distance};
        level->n++;
        if (next > most || distance > most - next)
            return TL_BAD;
        next += distance + 1; /* 0 behind the last one of level 0: no more follow */
        const uint8_t head = get_byte(in);
        const int r = !(head & E_SAME) ? get_contents(in, b, head)
                      : level->n > 1   ? tl_time_bucket_merge(b, b - 1)
                                       : TL_BAD;
        if (r < 0 || in->bad)
            return r < 0 ? r : TL_BAD;
    }
    return TL_OK;
}

int tl_time_pyramid_read(struct tl_time_pyramid *out, struct tl_varint_reader *in)
{
    const uint64_t finest = tl_varint_get(in), n = tl_varint_get(in);
    int r = in->bad || finest > TL_TIME_LEVELS || n > TL_TIME_LEVELS - finest ? TL_BAD : TL_OK;
    for (uint64_t i = 0; i < n && r >= 0; i++)
        r = tl_time_level_read(&out->levels[i], in, (unsigned)(finest + i));
    out->finest = (unsigned)finest;
    out->n = (unsigned)n;
    if (r < 0)
        tl_time_pyramid_fini(out);
    return r;
}
