/* SPDX-License-Identifier: MIT */
/*
 * A heap with the shortest of the longest calls on top: nearly every call is compared with that one
 * alone. Encoded in the order of positions, whose differences are small.
 */
#include "shard/slowest.h"

#include <stdlib.h>
#include <string.h>

void tl_slowest_fini(struct tl_slowest *s)
{
    free(s->p);
    *s = (struct tl_slowest){0};
}

/* Move what is at `i` down to its place in the heap. */
static void sink(struct tl_slowest *s, uint32_t i)
{
    const struct tl_slow_call call = s->p[i];
    for (uint32_t child; (child = 2 * i + 1) < s->n; i = child) {
        if (child + 1 < s->n && tl_slow_call_is_less(&s->p[child + 1], &s->p[child]))
            child++;
        if (!tl_slow_call_is_less(&s->p[child], &call))
            break;
        s->p[i] = s->p[child];
    }
    s->p[i] = call;
}

int tl_slowest_take(struct tl_slowest *s, uint64_t position, uint64_t length)
{
    const struct tl_slow_call call = {position, length};
    if (!s->p && !(s->p = malloc(TL_SLOWEST * sizeof *s->p)))
        return TL_NOMEM;
    if (s->n < TL_SLOWEST) {
        s->p[s->n++] = call;
        for (uint32_t i = s->n / 2; s->n == TL_SLOWEST && i-- > 0;)
            sink(s, i);
    } else if (tl_slow_call_is_less(s->p, &call)) {
        s->p[0] = call;
        sink(s, 0);
    }
    if (s->n == TL_SLOWEST)
        s->least = s->p[0];
    return TL_OK;
}

int tl_slowest_merge(struct tl_slowest *into, const struct tl_slowest *from)
{
    int r = TL_OK;
    for (uint32_t i = 0; i < from->n && r >= 0; i++)
        r = tl_slowest_add(into, from->p[i].position, from->p[i].length);
    return r;
}

static int longest_first(const void *a, const void *b)
{
    return tl_slow_call_is_less(b, a) ? -1 : tl_slow_call_is_less(a, b);
}

void tl_slowest_sort(struct tl_slowest *s)
{
    if (s->n > 0)
        qsort(s->p, s->n, sizeof *s->p, longest_first);
}

static int by_position(const void *a, const void *b)
{
    const struct tl_slow_call *const x = a, *const y = b;
    if (x->position != y->position)
        return x->position < y->position ? -1 : 1;
    return x->length < y->length ? -1 : x->length > y->length;
}

int tl_slowest_encode(const struct tl_slowest *s, struct tl_buf *out)
{
    struct tl_slow_call sorted[TL_SLOWEST];
    uint64_t before = 0;
    int r = tl_varint_add(out, s->n);
    if (s->n > 0) {
        memcpy(sorted, s->p, s->n * sizeof *sorted);
        qsort(sorted, s->n, sizeof *sorted, by_position);
    }
    for (uint32_t i = 0; i < s->n && r >= 0; i++) {
        r = tl_varint_add(out, sorted[i].position - before);
        if (r >= 0)
            r = tl_varint_add(out, sorted[i].length);
        before = sorted[i].position;
    }
    return r;
}

int tl_slowest_read(struct tl_slowest *s, struct tl_varint_reader *in)
{
    uint64_t n = tl_varint_get(in), position = 0;
    int r = TL_OK;
    for (; n > 0 && !in->bad && r >= 0; n--) {
        position += tl_varint_get(in);
        const uint64_t length = tl_varint_get(in);
        if (!in->bad)
            r = tl_slowest_add(s, position, length);
    }
    return r;
}
