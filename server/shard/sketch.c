/* SPDX-License-Identifier: MIT */
/*
 * A histogram of durations with a relative error of at most 1 %, which can be merged. Keeps the
 * counts of neighbouring classes as one array, since the durations of a function mostly have one
 * order of magnitude.
 */
#include "shard/sketch.h"

#include <stdlib.h>
#include <string.h>

#define AT_ONCE  128   /* classes read before there is room for them */
#define TOGETHER 64    /* classes that are added together: one power of two; a divisor of all */
#define ROUNDING 1e-12 /* parts that differ less are the same */

struct class_count {
    uint32_t number;
    uint64_t times;
};

uint64_t tl_sketch_least(uint32_t number)
{
    const uint32_t wide = number < 128 ? 0 : (number >> 6) - 1;
    return number >= TL_SKETCH_CLASSES ? UINT64_MAX : (uint64_t)(number - (wide << 6)) << wide;
}

void tl_sketch_fini(struct tl_sketch *s)
{
    free(s->counts);
    *s = (struct tl_sketch){0};
}

int tl_sketch_extend(struct tl_sketch *s, uint32_t number)
{
    uint32_t first = s->n > 0 ? s->first : number, end = s->n > 0 ? s->first + s->n : number;
    first = (number < first ? number : first) / TOGETHER * TOGETHER;
    end = ((number >= end ? number + 1 : end) + TOGETHER - 1) / TOGETHER * TOGETHER;
    uint64_t *const counts = calloc(end - first, sizeof *counts);
    if (!counts)
        return TL_NOMEM;
    if (s->n > 0)
        memcpy(counts + (s->first - first), s->counts, s->n * sizeof *counts);
    free(s->counts);
    *s = (struct tl_sketch){counts, first, end - first};
    return TL_OK;
}

static int add_class(struct tl_sketch *s, uint32_t number, uint64_t times)
{
    const int r = number - s->first < s->n ? TL_OK : tl_sketch_extend(s, number);
    if (r >= 0)
        s->counts[number - s->first] += times;
    return r;
}

int tl_sketch_merge(struct tl_sketch *into, const struct tl_sketch *from)
{
    if (from->n == 0)
        return TL_OK;
    int r = add_class(into, from->first, 0);
    if (r >= 0)
        r = add_class(into, from->first + from->n - 1, 0);
    if (r < 0)
        return r;
    uint64_t *const to = into->counts + (from->first - into->first);
    for (uint32_t i = 0; i < from->n; i++)
        to[i] += from->counts[i];
    return TL_OK;
}

uint64_t tl_sketch_total(const struct tl_sketch *s)
{
    uint64_t n = 0;
    for (uint32_t i = 0; i < s->n; i++)
        n += s->counts[i];
    return n;
}

uint64_t tl_sketch_quantile(const struct tl_sketch *s, double part)
{
    const uint64_t all = tl_sketch_total(s);
    const double wanted = (part - ROUNDING) * (double)all;
    uint64_t before = 0;
    uint32_t i = 0, last = 0;
    for (; i < s->n && before < all && ((double)before < wanted || before == 0); i++) {
        before += s->counts[i];
        last = s->counts[i] > 0 ? i : last;
    }
    if (all == 0)
        return 0;
    const uint64_t least = tl_sketch_least(s->first + last),
                   next = tl_sketch_least(s->first + last + 1);
    return least + (next - least - 1) / 2;
}

int tl_sketch_encode(const struct tl_sketch *s, struct tl_buf *out)
{
    uint32_t n = 0, before = 0;
    for (uint32_t i = 0; i < s->n; i++)
        n += s->counts[i] > 0;
    int r = tl_varint_add(out, n);
    for (uint32_t i = 0; i < s->n && r >= 0; i++) {
        if (s->counts[i] == 0)
            continue;
        r = tl_varint_add(out, s->first + i - before);
        if (r >= 0)
            r = tl_varint_add(out, s->counts[i]);
        before = s->first + i;
    }
    return r;
}

/* Read `n` classes, the first at least `from`; returns the last one. */
static uint32_t read_classes(struct tl_varint_reader *in, uint32_t from, size_t n,
                             struct class_count *out)
{
    uint64_t number = from;
    for (size_t i = 0; i < n && !in->bad; i++) {
        const uint64_t more = tl_varint_get(in);
        in->bad |= more >= TL_SKETCH_CLASSES - number;
        number += more;
        out[i] = (struct class_count){(uint32_t)number, tl_varint_get(in)};
    }
    return (uint32_t)number;
}

/* Some at a time, since making room for each that lies further on would cost more than reading. */
int tl_sketch_read(struct tl_sketch *s, struct tl_varint_reader *in)
{
    struct class_count some[AT_ONCE];
    uint64_t left = tl_varint_get(in);
    uint32_t number = 0;
    int r = TL_OK;
    while (left > 0 && !in->bad && r >= 0) {
        const size_t n = left < AT_ONCE ? (size_t)left : AT_ONCE;
        number = read_classes(in, number, n, some);
        if (in->bad)
            return TL_OK;
        r = add_class(s, some[0].number, 0);
        if (r >= 0)
            r = add_class(s, number, 0);
        for (size_t i = 0; i < n && r >= 0; i++)
            s->counts[some[i].number - s->first] += some[i].times;
        left -= n;
    }
    return r;
}
