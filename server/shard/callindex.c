/* SPDX-License-Identifier: MIT */
/*
 * An index of the calls of a shard by function. Functions are found by a hash table when paths are
 * new; the calls themselves are counted by number.
 */
#include "shard/callindex.h"

#include "flow/block.h"

#include <stdlib.h>

void tl_call_sums_fini(struct tl_call_sums *sums)
{
    tl_sketch_fini(&sums->lengths);
    tl_slowest_fini(&sums->slowest);
}

void tl_call_index_fini(struct tl_call_index *x)
{
    for (size_t i = 0; i < x->n_functions; i++)
        for (unsigned weight = 0; weight < TL_CALL_WEIGHTS; weight++)
            tl_call_sums_fini(&x->functions[i].by[weight]);
    free(x->functions);
    tl_numbers_fini(&x->numbers);
    *x = (struct tl_call_index){0};
}

int64_t tl_call_index_function(struct tl_call_index *x, uint32_t function)
{
    const uint32_t known = tl_numbers_find(&x->numbers, function);
    if (known != TL_NO_NUMBER)
        return known;
    if (tl_grow(&x->functions, &x->cap_functions, x->n_functions + 1, sizeof *x->functions) < 0 ||
        tl_numbers_add(&x->numbers, function) < 0)
        return TL_NOMEM;
    x->functions[x->n_functions] = (struct tl_function_calls){.function = function};
    return (int64_t)x->n_functions++;
}

const struct tl_function_calls *tl_call_index_find(const struct tl_call_index *x, uint32_t function)
{
    const uint32_t known = tl_numbers_find(&x->numbers, function);
    return known == TL_NO_NUMBER ? NULL : &x->functions[known];
}

void tl_call_sums_close(struct tl_call_sums *s)
{
    s->ended = tl_sketch_total(&s->lengths);
    s->min = s->ended > 0 ? s->min : 0;
    const struct tl_slow_call *longest = s->slowest.p;
    for (uint32_t i = 1; i < s->slowest.n; i++)
        if (tl_slow_call_is_less(longest, &s->slowest.p[i]))
            longest = &s->slowest.p[i];
    if (longest) {
        s->max = longest->length;
        s->longest = longest->position;
    }
}

/* Everything but the distribution and the longest ones. */
static void add_numbers(struct tl_call_sums *to, const struct tl_call_sums *from)
{
    if (from->ended > 0) {
        if (to->ended == 0 || from->min < to->min)
            to->min = from->min;
        if (to->ended == 0 || from->max > to->max ||
            (from->max == to->max && from->longest < to->longest)) {
            to->max = from->max;
            to->longest = from->longest;
        }
    }
    to->self += from->self;
    to->calls += from->calls;
    to->ended += from->ended;
    to->total += from->total;
}

int tl_call_sums_add(struct tl_call_sums *to, const struct tl_call_sums *from)
{
    add_numbers(to, from);
    const int r = tl_sketch_merge(&to->lengths, &from->lengths);
    return r < 0 ? r : tl_slowest_merge(&to->slowest, &from->slowest);
}

int tl_call_index_merge(struct tl_call_index *into, const struct tl_call_index *from)
{
    int r = TL_OK;
    tl_timed_extent_join(&into->extent, &from->extent);
    for (size_t i = 0; i < from->n_functions && r >= 0; i++) {
        const int64_t place = tl_call_index_function(into, from->functions[i].function);
        r = place < 0 ? TL_NOMEM : TL_OK;
        for (unsigned weight = 0; weight < TL_CALL_WEIGHTS && r >= 0; weight++)
            r = tl_call_sums_add(&into->functions[place].by[weight],
                                 &from->functions[i].by[weight]);
    }
    return r;
}

/* ---- bytes ---------------------------------------------------------------------------------- */

static int put_sums(const struct tl_call_sums *s, struct tl_buf *out)
{
    const uint64_t words[] = {s->self, s->calls,        s->ended,  s->total,
                              s->min,  s->max - s->min, s->longest};
    int r = tl_varint_add_all(out, words, s->ended > 0 ? 7 : 3);
    if (s->ended > 0 && r >= 0)
        r = tl_sketch_encode(&s->lengths, out);
    return s->ended == 0 || r < 0 ? r : tl_slowest_encode(&s->slowest, out);
}

int tl_call_index_encode(const struct tl_call_index *x, struct tl_buf *out)
{
    int r = tl_varint_add(out, x->n_functions);
    if (r >= 0)
        r = tl_timed_extent_put(&x->extent, out);
    for (size_t i = 0; i < x->n_functions && r >= 0; i++) {
        r = tl_varint_add(out, x->functions[i].function);
        if (r >= 0)
            r = put_sums(&x->functions[i].by[TL_BY_INSNS], out);
        if (r >= 0 && x->extent.timed)
            r = put_sums(&x->functions[i].by[TL_BY_TIME], out);
    }
    return r;
}

/* Pairs of words, after their number: of a sketch, or of the longest calls. */
static void skip_pairs(struct tl_varint_reader *in)
{
    const uint64_t n = tl_varint_get(in);
    in->bad |= n > UINT64_MAX / 2;
    tl_varint_skip(in, 2 * n);
}

static void skip_sums(struct tl_varint_reader *in)
{
    tl_varint_skip(in, 2);
    if (tl_varint_get(in) == 0)
        return;
    tl_varint_skip(in, 4);
    skip_pairs(in);
    skip_pairs(in);
}

/* Straight into the sums, since most of what is read of many shards is their distributions. */
static int get_sums(struct tl_varint_reader *in, bool listed, struct tl_call_sums *s)
{
    struct tl_call_sums more = {.self = tl_varint_get(in)};
    more.calls = tl_varint_get(in);
    more.ended = tl_varint_get(in);
    if (more.ended > 0) {
        more.total = tl_varint_get(in);
        more.min = tl_varint_get(in);
        more.max = more.min + tl_varint_get(in);
        more.longest = tl_varint_get(in);
    }
    add_numbers(s, &more);
    if (more.ended == 0)
        return TL_OK;
    const int r = tl_sketch_read(&s->lengths, in);
    if (r >= 0 && listed)
        return tl_slowest_read(&s->slowest, in);
    if (r >= 0)
        skip_pairs(in);
    return r;
}

static bool is_wanted(const struct tl_call_index *x, uint32_t function)
{
    return !x->only || (function < x->n_only && x->only[function]);
}

void tl_call_index_extent(struct tl_bytes bytes, struct tl_timed_extent *out)
{
    struct tl_varint_reader in = {.p = bytes.p, .end = bytes.p + bytes.n};
    (void)tl_varint_get(&in); /* number of functions */
    tl_timed_extent_get(out, &in);
}

int tl_call_index_decode(struct tl_call_index *x, struct tl_bytes bytes)
{
    struct tl_varint_reader in = {.p = bytes.p, .end = bytes.p + bytes.n};
    uint64_t n = tl_varint_get(&in);
    struct tl_timed_extent extent = {0};
    int r = TL_OK;
    tl_timed_extent_get(&extent, &in);
    tl_timed_extent_join(&x->extent, &extent);
    for (; n > 0 && !in.bad && r >= 0; n--) {
        const uint32_t function = (uint32_t)tl_varint_get(&in);
        if (!is_wanted(x, function)) {
            skip_sums(&in);
            if (extent.timed)
                skip_sums(&in);
            continue;
        }
        const int64_t place = in.bad ? 0 : tl_call_index_function(x, function);
        if (in.bad || place < 0)
            return in.bad ? TL_NOTFOUND : TL_NOMEM;
        r = get_sums(&in, !x->unlisted, &x->functions[place].by[TL_BY_INSNS]);
        if (r >= 0 && extent.timed)
            r = get_sums(&in, !x->unlisted, &x->functions[place].by[TL_BY_TIME]);
    }
    return r >= 0 && in.bad ? TL_NOTFOUND : r;
}
