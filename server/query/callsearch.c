/* SPDX-License-Identifier: MIT */
/*
 * Shards are taken in the order of the best call that each may still have, until the last wanted
 * place is taken by a better one. Equal calls are ordered by position, so bounds have one, too:
 * otherwise the many shards whose shortest calls are alike would all be walked.
 */
#include "query/callsearch.h"

#include "query/timed_parts.h"

#include <stdlib.h>

/* Nothing that is left in a shard comes before this. */
struct bound {
    uint64_t length;
    uint64_t at; /* position where it began; TL_CALLS_SHORTEST by time: ticks */
};

/* A stored shard of which not all is known yet. */
struct stored {
    struct tl_timed_part part;
    struct bound bound;
    struct tl_slow_call listed; /* only calls after this one in order are left; if `has_listed` */
    bool has_listed;
    bool counted; /* in the number of all */
};

struct search {
    struct tl_callsearch *out;
    struct stored *p;
    size_t n, cap;
    const struct tl_timed_part *part; /* what is walked */
    const struct stored *stored;      /* … of a shard; NULL: nothing of it is known */
    bool only_open;                   /* … for the calls that are active at its end */
    bool ended;                       /* the end of the range was walked */
};

static bool by_time(const struct tl_callsearch *s)
{
    return s->weight == TL_WEIGHT_TIME;
}

/* ---- hits ------------------------------------------------------------------------------------ */

static int order_of(uint64_t a, uint64_t b)
{
    return a < b ? -1 : a > b;
}

static int by_begin(const void *a, const void *b)
{
    const struct tl_call_hit *const x = a, *const y = b;
    return order_of(x->call.frame.insn, y->call.frame.insn);
}

static int by_shortest(const void *a, const void *b)
{
    const struct tl_call_hit *const x = a, *const y = b;
    return x->length != y->length ? order_of(x->length, y->length) : by_begin(a, b);
}

static int by_longest(const void *a, const void *b)
{
    const struct tl_call_hit *const x = a, *const y = b;
    return x->length != y->length ? order_of(y->length, x->length) : by_begin(a, b);
}

static bool is_wanted_length(const struct tl_callsearch *s, uint64_t length)
{
    return length >= s->least && (length < s->most || s->most == UINT64_MAX);
}

/* Is it a call of a wanted function? */
static bool wants(const struct tl_callsearch *s, const struct tl_timing_call *call)
{
    const uint32_t function = call->frame.function;
    return function < s->n_symbols && s->symbols[function] && tl_frame_is_call(&call->frame);
}

static uint64_t length_of(const struct tl_callsearch *s, const struct tl_timing_call *call)
{
    return by_time(s) ? call->to.time - call->from.time : call->end - call->frame.insn;
}

/* ---- walking --------------------------------------------------------------------------------- */

/* Is all of the call in the part, as it is in the range? */
static bool is_complete(const struct search *s, const struct tl_timing_call *call)
{
    const struct tl_timing_part *const part = &s->part->walk;
    return (call->frame.insn > part->from || part->from == s->out->from) &&
           (call->end < part->to || part->to == s->out->to);
}

/* Is the call to be looked for in what is walked? */
static bool is_asked(const struct search *s, const struct tl_timing_call *call)
{
    if (call->open ? s->stored || s->part->walk.to != s->out->to : s->only_open)
        return false;
    return wants(s->out, call);
}

static int on_end(void *context, const struct tl_timing_call *call)
{
    struct search *const s = context;
    const struct tl_slow_call one = {call->frame.insn, length_of(s->out, call)};
    if (!is_asked(s, call) || !is_wanted_length(s->out, one.length))
        return TL_OK;
    if (s->stored && s->stored->has_listed && !tl_slow_call_is_less(&one, &s->stored->listed))
        return TL_OK;
    s->out->all += !(s->stored && s->stored->counted);
    const struct tl_call_hit hit = {
        .length = one.length, .complete = is_complete(s, call), .call = *call};
    return tl_best_add(&s->out->best, &hit);
}

static int on_span(void *context, const struct tl_timed_span *span, const struct tl_moment *from,
                   const struct tl_moment *to)
{
    struct search *const s = context;
    (void)from;
    (void)to;
    tl_timed_extent_span(&s->out->extent, span);
    return TL_OK;
}

static int walk(struct search *s, const struct tl_timed_part *part, const struct stored *stored,
                bool spans, struct tl_fail *fail)
{
    const bool ends = by_time(s->out) ? part->time : part->insns;
    const struct tl_timing_sinks sinks = {
        .span = spans ? on_span : NULL, .end = ends ? on_end : NULL, .context = s};
    s->part = part;
    s->stored = stored;
    return tl_timing_walk_part(s->out->cut, &part->walk, &sinks, fail);
}

static int walk_part(void *context, const struct tl_timed_part *part, struct tl_fail *fail)
{
    struct search *const s = context;
    const int r = walk(s, part, NULL, part->time, fail);
    s->ended |= part->walk.to == s->out->to && (by_time(s->out) ? part->time : part->insns);
    return r;
}

/* Only the calls that are active at the end of the range, if they are not known yet. */
static int walk_end(struct search *s, struct tl_fail *fail)
{
    const uint64_t to = s->out->to, before = to > s->out->from ? to - 1 : to;
    const struct tl_timed_part part = {
        .walk = {.from = before, .to = to}, .insns = true, .time = true};
    if (s->ended)
        return TL_OK;
    s->only_open = true;
    const int r = walk(s, &part, NULL, false, fail);
    s->only_open = false;
    return r;
}

/* ---- what is stored -------------------------------------------------------------------------- */

/* All that is known about the wanted functions of a shard. */
static int sum_up(const struct tl_callsearch *s, const struct tl_call_index *index,
                  struct tl_call_sums *out)
{
    int r = TL_OK;
    for (size_t i = 0; i < index->n_functions && r >= 0; i++) {
        const struct tl_function_calls *const f = &index->functions[i];
        if (f->function < s->n_symbols && s->symbols[f->function])
            r = tl_call_sums_add(out, &f->by[by_time(s) ? TL_BY_TIME : TL_BY_INSNS]);
    }
    return r;
}

static bool lists_all(const struct tl_call_sums *sums)
{
    return sums->slowest.n == sums->ended;
}

/* How many calls are shorter? false: not known. */
static bool count_below(const struct tl_call_sums *sums, uint64_t length, uint64_t *out)
{
    const struct tl_sketch *const k = &sums->lengths;
    const struct tl_slowest *const list = &sums->slowest;
    const uint32_t class = tl_sketch_class(length);
    *out = 0;
    if (length <= sums->min)
        return true;
    if (length == UINT64_MAX || length > sums->max || lists_all(sums) ||
        length > list->least.length) {
        *out = sums->ended;
        for (uint32_t i = 0; i < list->n; i++)
            *out -= list->p[i].length >= length;
        return true;
    }
    for (uint32_t i = 0; i < k->n && k->first + i < class; i++)
        *out += k->counts[i];
    return tl_sketch_least(class) == length;
}

/* Add those of the longest calls that are wanted. */
static int add_listed(struct search *s, const struct tl_slowest *list)
{
    int r = TL_OK;
    for (uint32_t i = 0; i < list->n && r >= 0; i++) {
        const struct tl_call_hit hit = {.length = list->p[i].length,
                                        .call = {.frame.insn = list->p[i].position}};
        if (is_wanted_length(s->out, hit.length))
            r = tl_best_add(&s->out->best, &hit);
    }
    return r;
}

/* The least length from s->least on that occurs. */
static uint64_t shortest_of(const struct tl_callsearch *s, const struct tl_call_sums *sums)
{
    const struct tl_sketch *const k = &sums->lengths;
    const uint32_t class = tl_sketch_class(s->least);
    uint64_t least = sums->max;
    for (uint32_t i = class > k->first ? class - k->first : 0; i < k->n; i++)
        if (k->counts[i] > 0) {
            least = tl_sketch_least(k->first + i);
            break;
        }
    least = least > s->least ? least : s->least;
    return least > sums->min ? least : sums->min;
}

static uint64_t minus(uint64_t a, uint64_t b)
{
    return a > b ? a - b : 0;
}

/* What may be left. A call that ended in the shard began at most its length before it. */
static struct bound bound_of(const struct tl_callsearch *s, const struct stored *shard,
                             const struct tl_call_sums *sums)
{
    const struct tl_timing_part *const part = &shard->part.walk;
    if (s->order == TL_CALLS_SHORTEST) {
        const uint64_t length = shortest_of(s, sums);
        return (struct bound){length, minus(by_time(s) ? part->begin : part->from, length)};
    }
    if (shard->has_listed && is_wanted_length(s, shard->listed.length))
        return (struct bound){shard->listed.length, shard->listed.position + 1};
    return (struct bound){s->most - 1, 0};
}

/* Use what is stored of a shard, and keep it for later if that is not all. */
static int use_sums(struct search *s, struct stored *shard, const struct tl_call_sums *sums)
{
    struct tl_callsearch *const out = s->out;
    uint64_t below = 0, above = 0;
    int r = TL_OK;
    if (sums->ended == 0)
        return TL_OK;
    shard->counted = count_below(sums, out->least, &below) && count_below(sums, out->most, &above);
    if (shard->counted)
        out->all += above - below;
    if (shard->counted && above == below)
        return TL_OK;
    if (shard->counted && (lists_all(sums) || out->order == TL_CALLS_LONGEST)) {
        r = add_listed(s, &sums->slowest);
        shard->has_listed = true;
        shard->listed = sums->slowest.least;
        if (r < 0 || lists_all(sums) || shard->listed.length < out->least)
            return r;
    }
    shard->bound = bound_of(out, shard, sums);
    r = tl_grow(&s->p, &s->cap, s->n + 1, sizeof *s->p);
    if (r >= 0)
        s->p[s->n++] = *shard;
    return r;
}

static int take_shard(void *context, size_t row, struct tl_shard_calls *calls, struct tl_fail *fail)
{
    struct search *const s = context;
    const bool time = by_time(s->out);
    struct stored shard = {
        .part = {.walk = tl_timed_part_of(&s->out->cut->rows[row], &calls->index.extent, time),
                 .insns = !time,
                 .time = time}};
    struct tl_call_sums sums = {0};
    (void)fail;
    tl_timed_extent_join(&s->out->extent, &calls->index.extent);
    int r = sum_up(s->out, &calls->index, &sums);
    if (r >= 0)
        r = use_sums(s, &shard, &sums);
    tl_call_sums_fini(&sums);
    return r;
}

/* ---- what is left ---------------------------------------------------------------------------- */

static int best_first(const void *a, const void *b, bool shortest)
{
    const struct stored *const x = a, *const y = b;
    if (x->counted != y->counted)
        return x->counted ? 1 : -1;
    const int r = order_of(x->bound.length, y->bound.length);
    return r != 0 ? (shortest ? r : -r) : order_of(x->bound.at, y->bound.at);
}

static int shortest_first(const void *a, const void *b)
{
    return best_first(a, b, true);
}

static int longest_first(const void *a, const void *b)
{
    return best_first(a, b, false);
}

/* Do the hits that are known come before everything that may be left? */
static bool is_enough(struct tl_callsearch *s, const struct bound *bound)
{
    struct tl_best *const best = &s->best;
    if (best->n < best->most)
        return false;
    tl_best_sort(best);
    const struct tl_call_hit *const last = (const struct tl_call_hit *)best->rows + best->most - 1;
    if (last->length != bound->length)
        return s->order == TL_CALLS_SHORTEST ? last->length < bound->length
                                             : last->length > bound->length;
    if (s->order == TL_CALLS_SHORTEST && by_time(s))
        return last->complete && last->call.from.time < bound->at;
    return last->call.frame.insn < bound->at;
}

static int walk_rest(struct search *s, struct tl_fail *fail)
{
    int r = TL_OK;
    if (s->n > 1)
        qsort(s->p, s->n, sizeof *s->p,
              s->out->order == TL_CALLS_SHORTEST ? shortest_first : longest_first);
    for (size_t i = 0; i < s->n && r >= 0; i++) {
        if (s->p[i].counted && is_enough(s->out, &s->p[i].bound))
            break;
        r = walk(s, &s->p[i].part, &s->p[i], false, fail);
    }
    return r;
}

int tl_callsearch_run(struct tl_callsearch *out, struct tl_fail *fail)
{
    struct search s = {.out = out};
    const struct tl_timed_parts parts = {.cut = out->cut,
                                         .from = out->from,
                                         .to = out->to,
                                         .index = true,
                                         .only = out->symbols,
                                         .n_only = out->n_symbols,
                                         .walks = out->walks || out->order == TL_CALLS_FIRST,
                                         .walk = walk_part,
                                         .shard = take_shard,
                                         .context = &s};
    out->all = 0;
    out->best.n = 0;
    out->best.size = sizeof(struct tl_call_hit);
    out->best.compare = out->order == TL_CALLS_LONGEST    ? by_longest
                        : out->order == TL_CALLS_SHORTEST ? by_shortest
                                                          : by_begin;
    out->extent = (struct tl_timed_extent){0};
    int r = tl_timed_parts_visit(&parts, fail);
    if (r >= 0)
        r = walk_end(&s, fail);
    if (r >= 0)
        r = walk_rest(&s, fail);
    free(s.p);
    tl_best_sort(&out->best);
    return r;
}

/* ---- details --------------------------------------------------------------------------------- */

enum { NEAR = 1 << 16 }; /* hits so close to each other, in instructions, are in one walk */

struct details {
    const struct tl_callsearch *search;
    struct tl_call_hit **p; /* in order of begins */
    size_t n;
    size_t first, reached; /* a walk is to find p[first … reached - 1] */
    size_t found;          /* of these */
};

static int by_begin_of(const void *a, const void *b)
{
    return by_begin(*(struct tl_call_hit *const *)a, *(struct tl_call_hit *const *)b);
}

/* The first one of the walk that began at a position, or later. */
static size_t first_at(const struct details *d, uint64_t position)
{
    size_t low = d->first, high = d->reached;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (d->p[middle]->call.frame.insn < position)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static int complete_hit(void *context, const struct tl_timing_call *call)
{
    struct details *const d = context;
    const uint64_t length = length_of(d->search, call);
    while (d->reached < d->n && d->p[d->reached]->call.frame.insn <= call->end + NEAR)
        d->reached++;
    if (!wants(d->search, call))
        return TL_OK;
    for (size_t i = first_at(d, call->frame.insn);
         i < d->reached && d->p[i]->call.frame.insn == call->frame.insn; i++) {
        struct tl_call_hit *const hit = d->p[i];
        if (hit->complete || hit->length != length || hit->call.open != call->open)
            continue;
        hit->call = *call;
        hit->complete = true;
        d->found++;
        break;
    }
    return d->found == d->reached - d->first ? TL_LIMIT : TL_OK;
}

/* Walk from the first hit that is not complete, until all that are near it are. */
static int walk_hits(struct details *d, struct tl_fail *fail)
{
    const struct tl_callsearch *const s = d->search;
    const uint64_t begin = d->p[d->first]->call.frame.insn;
    const struct tl_timing_sinks sinks = {.end = complete_hit, .context = d};
    d->reached = d->first + 1;
    d->found = 0;
    const int r = tl_timing_walk(s->cut, begin > s->from ? begin : s->from, s->to, &sinks, fail);
    if (r >= 0 && d->found < d->reached - d->first)
        return TL_NOTFOUND;
    d->first = d->reached;
    return r == TL_LIMIT ? TL_OK : r;
}

int tl_callsearch_complete(struct tl_callsearch *s, struct tl_fail *fail)
{
    struct tl_call_hit *const hits = s->best.rows;
    struct details d = {.search = s, .p = calloc(s->best.n + 1, sizeof *d.p)};
    int r = d.p ? TL_OK : TL_NOMEM;
    for (size_t i = 0; i < s->best.n && r >= 0; i++)
        if (!hits[i].complete)
            d.p[d.n++] = &hits[i];
    if (d.n > 1)
        qsort(d.p, d.n, sizeof *d.p, by_begin_of);
    while (d.first < d.n && r >= 0)
        r = walk_hits(&d, fail);
    free(d.p);
    return r;
}
