/* SPDX-License-Identifier: MIT */
/*
 * Spans are counted in the finest level alone; a bucket that ends is added, with all of its
 * functions, to the one it lies in on the next level. So each level is exact, for a third more than
 * the finest alone, and only what is stored of the finest leaves out rare functions.
 */
#include "builder/time_buckets.h"

#include "shard/bucket.h"

#include <stdlib.h>

/* A function with less than this part of a bucket's time is left out of the finest level: less than
 * a reader of shares notices, who does not add such buckets up. */
#define FEW   64u
#define SOME  4u  /* functions that are kept in any case */
#define FIRST 16u /* buckets of a shard without positions */

void tl_time_buckets_init(struct tl_time_buckets *tb, const struct tl_axis *axis)
{
    tb->axis = *axis;
}

void tl_time_buckets_init_range(struct tl_time_buckets *tb, const struct tl_axis *axis,
                                unsigned level, uint64_t from, uint64_t to)
{
    tb->axis = *axis;
    tb->finest = level;
    tb->alone = true;
    tb->from = from;
    tb->to = to;
}

/* Remove everything counted for the shard. */
static void empty(struct tl_time_buckets *tb)
{
    for (unsigned i = 0; i < TL_TIME_LEVELS; i++) {
        struct tl_time_open *const o = &tb->open[i];
        for (size_t k = 0; k < o->n_used; k++)
            o->ticks[o->used[k]] = 0;
        o->n_used = 0;
        o->any = false;
        tl_time_level_fini(&tb->closed[i]);
    }
    tl_numbers_reset(&tb->functions);
    tb->last_number = TL_NO_NUMBER;
    tb->limit = 0;
}

void tl_time_buckets_fini(struct tl_time_buckets *tb)
{
    empty(tb);
    for (unsigned i = 0; i < TL_TIME_LEVELS; i++) {
        free(tb->open[i].ticks);
        free(tb->open[i].used);
    }
    tl_numbers_fini(&tb->functions);
    *tb = (struct tl_time_buckets){0};
}

static void fail(struct tl_time_buckets *tb)
{
    empty(tb);
    tb->failed = true;
}

/* ---- the open bucket ------------------------------------------------------------------------ */

static int number_of(struct tl_time_buckets *tb, uint32_t function)
{
    if (tb->last_number != TL_NO_NUMBER && tb->last_function == function && tb->functions.n > 0)
        return TL_OK;
    uint32_t number = tl_numbers_find(&tb->functions, function);
    if (number == TL_NO_NUMBER) {
        const int r = tl_numbers_add(&tb->functions, function);
        if (r < 0)
            return r;
        number = tb->functions.n - 1;
    }
    tb->last_function = function;
    tb->last_number = number;
    return TL_OK;
}

/* Count ticks of a function; most calls find its counter in use. */
static int count(struct tl_time_open *o, uint32_t number, uint64_t ticks)
{
    if (ticks == 0)
        return TL_OK;
    if (number >= o->cap_ticks) {
        const size_t before = o->cap_ticks;
        const int r = tl_grow(&o->ticks, &o->cap_ticks, (size_t)number + 1, sizeof *o->ticks);
        if (r < 0)
            return r;
        memset(o->ticks + before, 0, (o->cap_ticks - before) * sizeof *o->ticks);
    }
    if (o->ticks[number] == 0) {
        const int r = tl_grow(&o->used, &o->cap_used, o->n_used + 1, sizeof *o->used);
        if (r < 0)
            return r;
        o->used[o->n_used++] = number;
    }
    o->ticks[number] += ticks;
    return TL_OK;
}

static void add_depth(struct tl_time_bucket *b, uint32_t depth)
{
    const uint8_t d = depth < UINT8_MAX ? (uint8_t)depth : UINT8_MAX;
    b->depth_min = b->ran && b->depth_min < d ? b->depth_min : d;
    b->depth_max = b->ran && b->depth_max > d ? b->depth_max : d;
    b->ran = true;
}

/* ---- the end of a bucket -------------------------------------------------------------------- */

static int by_ticks(const void *a, const void *b)
{
    const struct tl_time_share *const x = a, *const y = b;
    return x->ticks != y->ticks         ? (x->ticks > y->ticks ? -1 : 1)
           : x->function != y->function ? (x->function < y->function ? -1 : 1)
                                        : 0;
}

static int by_function(const void *a, const void *b)
{
    const struct tl_time_share *const x = a, *const y = b;
    return x->function < y->function ? -1 : x->function > y->function;
}

/* The functions with at least `least`, and some more in any case. */
static int keep_frequent(const struct tl_time_buckets *tb, const struct tl_time_open *o,
                         uint64_t least, struct tl_time_bucket *out)
{
    size_t n = 0;
    if (o->n_used == 0)
        return TL_OK;
    struct tl_time_share *const all = malloc(o->n_used * sizeof *all);
    if (!all)
        return TL_NOMEM;
    for (; n < o->n_used; n++)
        all[n] =
            (struct tl_time_share){(uint32_t)tb->functions.keys[o->used[n]], o->ticks[o->used[n]]};
    size_t kept = n;
    if (least > 0 || n > TL_TIME_SHARES) {
        qsort(all, n, sizeof *all, by_ticks);
        kept = n < SOME ? n : SOME;
        while (kept < n && kept < TL_TIME_SHARES && all[kept].ticks >= least)
            kept++;
    }
    qsort(all, kept, sizeof *all, by_function);
    out->shares = all;
    out->n_shares = (uint32_t)kept;
    out->cap_shares = (uint32_t)n;
    return TL_OK;
}

/* Add an open bucket to the list of its level, if the shard has that. `last`: of the shard. */
static int keep(struct tl_time_buckets *tb, unsigned level, bool last)
{
    const struct tl_time_open *const o = &tb->open[level];
    const bool all = level > tb->finest || tb->alone || last || tb->closed[level].n == 0;
    if (level > tb->finest + 1)
        return TL_OK;
    struct tl_time_bucket *const b = tl_time_level_at(&tb->closed[level], o->sums.number);
    if (!b)
        return TL_NOMEM;
    tl_time_bucket_add_sums(b, &o->sums);
    return keep_frequent(tb, o, all ? 0 : o->sums.ticks[TL_TIMED_RUN] / FEW, b);
}

static int close_bucket(struct tl_time_buckets *tb, unsigned level, bool last);

/* Move an open bucket's counts into the one of the next level, and leave it empty. */
static int fold(struct tl_time_buckets *tb, unsigned level)
{
    struct tl_time_open *const o = &tb->open[level];
    int r = TL_OK;
    if (level + 1 < TL_TIME_LEVELS && !tb->alone) {
        struct tl_time_open *const up = &tb->open[level + 1];
        const uint64_t number = o->sums.number >> 2;
        if (up->any && up->sums.number != number)
            r = close_bucket(tb, level + 1, false);
        if (!up->any)
            up->sums = (struct tl_time_bucket){.number = number};
        up->any = true;
        tl_time_bucket_add_sums(&up->sums, &o->sums);
        for (size_t i = 0; i < o->n_used && r >= 0; i++)
            r = count(up, o->used[i], o->ticks[o->used[i]]);
    }
    for (size_t i = 0; i < o->n_used; i++)
        o->ticks[o->used[i]] = 0;
    o->n_used = 0;
    o->any = false;
    return r;
}

static int close_bucket(struct tl_time_buckets *tb, unsigned level, bool last)
{
    const int r = keep(tb, level, last);
    return r < 0 ? r : fold(tb, level);
}

static void set_limit(struct tl_time_buckets *tb)
{
    const uint64_t next = tb->open[tb->finest].sums.number + 1;
    tb->limit = next > UINT64_MAX >> 2 * tb->finest
                    ? UINT64_MAX
                    : tl_axis_ticks(&tb->axis, next << 2 * tb->finest);
}

/* The closed buckets of the level above the finest, from those of the finest: all but the open one,
 * and complete. */
static int sum_up(struct tl_time_buckets *tb)
{
    struct tl_time_level *const level = &tb->closed[tb->finest];
    const struct tl_time_open *const up = &tb->open[tb->finest + 1];
    const struct tl_time_level all = *level;
    while (level->n > 0 && up->any && level->p[level->n - 1].number >> 2 == up->sums.number)
        level->n--;
    const int r = tl_time_level_coarsen(&tb->closed[tb->finest + 1], level, 1);
    *level = all;
    return r;
}

/* The finest level has too many buckets: do without it. */
static int drop_finest(struct tl_time_buckets *tb)
{
    int r = TL_OK;
    if (tb->open[tb->finest].any)
        r = fold(tb, tb->finest);
    tl_time_level_fini(&tb->closed[tb->finest]);
    tb->finest++;
    if (tb->open[tb->finest].any)
        set_limit(tb);
    return r < 0 || tb->finest + 1 == TL_TIME_LEVELS ? r : sum_up(tb);
}

/* Is there no room for the buckets from `begin`, or the open one, up to that of `shown`? */
static bool is_full(const struct tl_time_buckets *tb, uint64_t begin, uint64_t shown)
{
    const struct tl_time_open *const o = &tb->open[tb->finest];
    const uint64_t most = FIRST + (tb->position - tb->first) / TL_TIME_POSITIONS,
                   number = shown >> 2 * tb->finest,
                   open = o->any ? o->sums.number : begin >> 2 * tb->finest;
    const uint64_t more = number > open ? number - open : 0;
    return !tb->alone && tb->finest + 1 < TL_TIME_LEVELS &&
           (more > most || tb->closed[tb->finest].n + more > most);
}

/* What ends where a bucket does needs none behind it. */
static int make_room(struct tl_time_buckets *tb, uint64_t time, uint64_t end_time)
{
    const uint64_t begin = tl_axis_shown(&tb->axis, time),
                   shown = end_time > time ? tl_axis_shown(&tb->axis, end_time - 1) : begin;
    int r = TL_OK;
    while (r >= 0 && is_full(tb, begin, shown))
        r = drop_finest(tb);
    return r;
}

/* Make the bucket of this time the open one. */
static int open_at(struct tl_time_buckets *tb, uint64_t time)
{
    struct tl_time_open *const o = &tb->open[tb->finest];
    const uint64_t number = tl_axis_shown(&tb->axis, time) >> 2 * tb->finest;
    int r = TL_OK;
    if (o->any && o->sums.number == number)
        return TL_OK;
    if (o->any)
        r = close_bucket(tb, tb->finest, false);
    o->sums = (struct tl_time_bucket){.number = number};
    o->any = true;
    set_limit(tb);
    return r;
}

/* ---- spans ---------------------------------------------------------------------------------- */

static void remove_events(struct tl_time_buckets *tb, size_t n)
{
    tb->n_events -= n;
    if (n > 0)
        memmove(tb->events, tb->events + n, tb->n_events * sizeof *tb->events);
}

/* Add the items before `position` to the open bucket; `also`: those before it, too. Returns their
 * flags. */
static uint8_t take_events(struct tl_time_buckets *tb, uint64_t position, bool also)
{
    struct tl_time_bucket *const b = &tb->open[tb->finest].sums;
    uint8_t flags = 0;
    size_t n = 0;
    for (; n < tb->n_events && tb->events[n].position < position + also; n++) {
        b->events += tb->events[n].n;
        b->event_mask |= tb->events[n].mask;
        flags |= tb->events[n].flags;
    }
    b->flags |= flags;
    remove_events(tb, n);
    return flags;
}

/* Count part of a span in the open bucket: `ticks`, and positions up to `end`. */
static inline int add_part(struct tl_time_buckets *tb, const struct tl_timed_span *span,
                           uint64_t ticks, uint64_t end)
{
    struct tl_time_open *const o = &tb->open[tb->finest];
    const uint32_t function = span->function == TL_NO_FUNCTION ? 0 : span->function + 1;
    o->sums.ticks[span->kind] += ticks;
    if (end > tb->position) {
        o->sums.insns += end - tb->position;
        tb->position = end;
    }
    if (span->kind != TL_TIMED_RUN) {
        o->sums.flags |= tb->missing;
        return TL_OK;
    }
    if (ticks > 0 && span->privilege < 4)
        o->sums.privilege[span->privilege] += ticks;
    add_depth(&o->sums, span->depth);
    const int r = number_of(tb, function);
    return r < 0 ? r : count(o, tb->last_number, ticks);
}

/* The position of a span at a time in it. */
static uint64_t position_at(const struct tl_timed_span *span, uint64_t time)
{
    const uint64_t whole = span->end_time - span->time;
    if (time >= span->end_time)
        return span->end;
    return span->position + (uint64_t)((unsigned __int128)(span->end - span->position) *
                                       (time - span->time) / whole);
}

/* What precedes `position` is not counted; `also`: nor are the items there. Returns their flags. */
static uint8_t skip_to(struct tl_time_buckets *tb, uint64_t position, bool also)
{
    uint8_t flags = 0;
    size_t n = 0;
    for (; n < tb->n_events && tb->events[n].position < position + also; n++)
        if (tb->events[n].position == position)
            flags |= tb->events[n].flags;
    remove_events(tb, n);
    tb->position = tb->position > position ? tb->position : position;
    return flags;
}

/* A span that does not lie within the open bucket, or brings items. `time`, `end`: what is counted
 * of it; `missing`: flags of trace that is missing in it, of items that are not counted. */
static int add_parts(struct tl_time_buckets *tb, const struct tl_timed_span *span, uint64_t time,
                     uint64_t end_time, uint8_t missing)
{
    int r = make_room(tb, time, end_time);
    tb->missing = missing & (uint8_t)~TL_FLAG_OPEN;
    do {
        if (r >= 0 && (!tb->open[tb->finest].any || time >= tb->limit))
            r = open_at(tb, time);
        if (r < 0)
            return r;
        const uint64_t stop = end_time < tb->limit ? end_time : tb->limit;
        const uint64_t end = position_at(span, stop);
        const bool gap = span->kind != TL_TIMED_RUN;
        const uint8_t flags = take_events(tb, end, gap);
        if (gap)
            tb->missing |= flags & (uint8_t)~TL_FLAG_OPEN;
        r = add_part(tb, span, stop - time, end);
        time = stop;
    } while (r >= 0 && time < end_time);
    return r;
}

/* The same for a range of ticks. What a stretch without trace brings is counted where that begins,
 * so not in a range that begins within it, or behind it. */
static int add_in_range(struct tl_time_buckets *tb, const struct tl_timed_span *span)
{
    const uint64_t end_time = span->end_time < tb->to ? span->end_time : tb->to;
    if (span->time >= tb->to)
        return TL_OK;
    if (span->time >= tb->from)
        return add_parts(tb, span, span->time, end_time, 0);
    const bool ends = span->end_time <= tb->from;
    const uint8_t missing =
        skip_to(tb, ends ? span->end : position_at(span, tb->from), span->kind != TL_TIMED_RUN);
    return ends ? TL_OK : add_parts(tb, span, tb->from, end_time, missing);
}

static __attribute__((noinline)) int add_slowly(struct tl_time_buckets *tb,
                                                const struct tl_timed_span *span)
{
    return tb->alone ? add_in_range(tb, span) : add_parts(tb, span, span->time, span->end_time, 0);
}

void tl_time_buckets_span(struct tl_time_buckets *tb, const struct tl_timed_span *span)
{
    if (tb->failed)
        return;
    const bool within = span->time < tb->limit && span->end_time <= tb->limit && !tb->alone &&
                        tb->open[tb->finest].any &&
                        (tb->n_events == 0 || tb->events[0].position > span->end);
    const int r =
        within ? add_part(tb, span, span->end_time - span->time, span->end) : add_slowly(tb, span);
    tb->timed = true;
    tb->time = span->end_time;
    if (r < 0)
        fail(tb);
}

/* ---- items ---------------------------------------------------------------------------------- */

/* Too many: each second one joins the one before it. */
static void thin_out(struct tl_time_buckets *tb)
{
    for (size_t i = 0; i < TL_TIME_EVENTS / 2; i++) {
        struct tl_time_event one = tb->events[2 * i];
        one.n += tb->events[2 * i + 1].n;
        one.mask |= tb->events[2 * i + 1].mask;
        one.flags |= tb->events[2 * i + 1].flags;
        tb->events[i] = one;
    }
    tb->n_events = TL_TIME_EVENTS / 2;
}

void tl_time_buckets_item(struct tl_time_buckets *tb, uint64_t position, const struct tl_item *item)
{
    /* Also what comes too late to be in order is not lost. */
    position = position < tb->position ? tb->position : position;
    const struct tl_time_event one = {position, tl_item_is_event(item), tl_bucket_mask(item),
                                      tl_bucket_flags(item)};
    if (!one.mask && !one.flags)
        return;
    struct tl_time_event *const last = tb->n_events ? &tb->events[tb->n_events - 1] : NULL;
    if (last && last->position == position) {
        last->n += one.n;
        last->mask |= one.mask;
        last->flags |= one.flags;
        return;
    }
    if (tb->n_events == TL_TIME_EVENTS)
        thin_out(tb);
    tb->events[tb->n_events++] = one;
}

void tl_time_buckets_finish(struct tl_time_buckets *tb, uint64_t position)
{
    struct tl_time_open *const o = &tb->open[tb->finest];
    if (tb->failed || !tb->timed || (tb->n_events == 0 && position <= tb->position))
        return;
    if (tb->alone && tb->time >= tb->to)
        return;
    if (!o->any && open_at(tb, tb->time) < 0) {
        fail(tb);
        return;
    }
    take_events(tb, position, false);
    if (position > tb->position)
        tb->open[tb->finest].sums.insns += position - tb->position;
    tb->position = position > tb->position ? position : tb->position;
}

/* ---- shards --------------------------------------------------------------------------------- */

/* Close all levels that the shard has. Returns their number. */
static int close_all(struct tl_time_buckets *tb)
{
    const unsigned n = tb->alone || tb->finest + 1 == TL_TIME_LEVELS ? 1 : 2;
    int r = TL_OK;
    for (unsigned level = tb->finest; level < tb->finest + n && r >= 0; level++)
        r = tb->open[level].any ? close_bucket(tb, level, true) : TL_OK;
    return r < 0 ? r : tb->closed[tb->finest].n > 0 ? (int)n : 0;
}

void tl_time_buckets_take(struct tl_time_buckets *tb, struct tl_time_pyramid *out)
{
    const int n = tb->failed ? 0 : close_all(tb);
    for (int i = 0; i < n; i++) {
        out->levels[i] = tb->closed[tb->finest + (unsigned)i];
        tb->closed[tb->finest + (unsigned)i] = (struct tl_time_level){0};
    }
    out->finest = n > 0 ? tb->finest : 0;
    out->n = n > 0 ? (unsigned)n : 0;
    empty(tb);
    tb->failed = false;
    tb->finest = tb->alone ? tb->finest : 0;
    tb->first = tb->position;
}

int tl_time_buckets_snapshot(struct tl_time_buckets *tb, struct tl_time_pyramid *out)
{
    struct tl_time_buckets *const copy = calloc(1, sizeof *copy);
    struct tl_buf bytes = {0};
    struct tl_state save = {.out = &bytes};
    int r = copy ? TL_OK : TL_NOMEM;
    if (r >= 0) {
        tl_time_buckets_init(copy, &tb->axis);
        tl_time_buckets_state(tb, &save);
        r = save.rc;
    }
    if (r >= 0) {
        struct tl_state load = {.in = {bytes.p, bytes.n}};
        tl_time_buckets_state(copy, &load);
        r = load.rc;
    }
    if (r >= 0)
        tl_time_buckets_take(copy, out);
    if (copy)
        tl_time_buckets_fini(copy);
    free(copy);
    tl_buf_fini(&bytes);
    return r;
}

/* ---- saved state ---------------------------------------------------------------------------- */

static void sums_state(struct tl_time_bucket *b, struct tl_state *s)
{
    tl_state_u64(s, &b->number);
    for (size_t i = 0; i < TL_TIMED_KINDS; i++)
        tl_state_u64(s, &b->ticks[i]);
    for (size_t i = 0; i < 4; i++)
        tl_state_u64(s, &b->privilege[i]);
    tl_state_u64(s, &b->insns);
    tl_state_u64(s, &b->events);
    tl_state_u16(s, &b->event_mask);
    tl_state_u8(s, &b->flags, UINT8_MAX);
    tl_state_bool(s, &b->ran);
    tl_state_u8(s, &b->depth_min, UINT8_MAX);
    tl_state_u8(s, &b->depth_max, UINT8_MAX);
}

static void open_state(const struct tl_time_buckets *tb, struct tl_time_open *o, unsigned level,
                       struct tl_state *s)
{
    size_t n = o->n_used;
    tl_state_bool(s, &o->any);
    if (!o->any)
        return;
    sums_state(&o->sums, s);
    tl_state_check(s, o->sums.number <= UINT64_MAX >> 2 * level);
    tl_state_size(s, &n, tb->functions.n);
    for (size_t i = 0; i < n && s->rc >= 0; i++) {
        uint32_t number = tl_state_loads(s) ? 0 : o->used[i];
        uint64_t ticks = tl_state_loads(s) ? 0 : o->ticks[number];
        tl_state_u32(s, &number);
        tl_state_u64(s, &ticks);
        tl_state_check(s, number < tb->functions.n);
        if (tl_state_loads(s) && s->rc >= 0)
            tl_state_fail(s, count(o, number, ticks));
    }
}

static void closed_state(struct tl_time_level *level, unsigned number, struct tl_state *s)
{
    struct tl_buf bytes = {0};
    if (!tl_state_loads(s))
        tl_state_fail(s, tl_time_level_encode(level, &bytes));
    tl_state_buf(s, &bytes, SIZE_MAX);
    if (tl_state_loads(s) && s->rc >= 0) {
        struct tl_varint_reader in = {bytes.p, bytes.n > 0 ? bytes.p + bytes.n : bytes.p, false};
        tl_state_fail(s, tl_time_level_read(level, &in, number));
    }
    tl_buf_fini(&bytes);
}

static void functions_state(struct tl_numbers *functions, struct tl_state *s)
{
    size_t n = functions->n;
    tl_state_size(s, &n, UINT32_MAX - 1);
    for (size_t i = 0; i < n && s->rc >= 0; i++) {
        uint64_t key = tl_state_loads(s) ? 0 : functions->keys[i];
        tl_state_u64(s, &key);
        if (!tl_state_loads(s) || s->rc < 0)
            continue;
        tl_state_check(s, key <= UINT32_MAX && tl_numbers_find(functions, key) == TL_NO_NUMBER);
        if (s->rc >= 0)
            tl_state_fail(s, tl_numbers_add(functions, key));
    }
}

static void events_state(struct tl_time_buckets *tb, struct tl_state *s)
{
    tl_state_size(s, &tb->n_events, TL_TIME_EVENTS);
    for (size_t i = 0; i < tb->n_events && s->rc >= 0; i++) {
        struct tl_time_event *const e = &tb->events[i];
        tl_state_u64(s, &e->position);
        tl_state_u64(s, &e->n);
        tl_state_u16(s, &e->mask);
        tl_state_u8(s, &e->flags, UINT8_MAX);
    }
}

void tl_time_buckets_state(struct tl_time_buckets *tb, struct tl_state *s)
{
    uint8_t finest = (uint8_t)tb->finest;
    tl_state_u8(s, &finest, TL_TIME_LEVELS - 1);
    tb->finest = finest;
    tl_state_bool(s, &tb->failed);
    tl_state_bool(s, &tb->timed);
    tl_state_u64(s, &tb->time);
    tl_state_u64(s, &tb->position);
    tl_state_u64(s, &tb->first);
    tl_state_check(s, tb->first <= tb->position);
    functions_state(&tb->functions, s);
    for (unsigned i = tb->finest; i < TL_TIME_LEVELS && s->rc >= 0; i++) {
        open_state(tb, &tb->open[i], i, s);
        if (s->rc >= 0)
            closed_state(&tb->closed[i], i, s);
    }
    events_state(tb, s);
    tb->last_number = TL_NO_NUMBER;
    if (tl_state_loads(s) && s->rc >= 0 && tb->open[tb->finest].any)
        set_limit(tb);
}
