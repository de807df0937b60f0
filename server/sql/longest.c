/* SPDX-License-Identifier: MIT */
/*
 * Shards list the longest calls of each function by place and length. As many of them as are wanted
 * bound what can be among the longest; a shard is to be walked as a whole only where a function has
 * more calls above that bound than are listed. Only by instructions: with two timestamps at a
 * place, what shards tell of durations does not bound the time between the places of a call.
 */
#include "sql/longest.h"

#include "base/search.h"
#include "query/query.h"
#include "query/timed_parts.h"
#include "query/timing_answer.h"

#include <stdlib.h>
#include <string.h>

/* A shard that has calls besides those that are listed; all of these are less than `unlisted`. */
struct partly {
    struct tl_longest_place all;
    struct tl_slow_call unlisted;
};

struct search {
    struct tl_longest *out;
    const struct tl_cut *cut;
    uint64_t from;
    struct tl_best best; /* struct tl_slow_call: the longest ones that are listed */
    struct partly *partly;
    size_t n_partly, cap_partly;
};

static int longest_first(const void *a, const void *b)
{
    const struct tl_slow_call *const x = a, *const y = b;
    return tl_slow_call_is_less(x, y) - tl_slow_call_is_less(y, x);
}

static int add_place(struct tl_longest *l, uint64_t from, uint64_t to)
{
    const int r = tl_grow(&l->places, &l->cap, l->n + 1, sizeof *l->places);
    if (r >= 0)
        l->places[l->n++] = (struct tl_longest_place){from, to};
    return r;
}

/* ---- what is stored -------------------------------------------------------------------------- */

static int take_sums(struct search *s, const struct tl_call_sums *sums, struct partly *shard)
{
    const struct tl_slowest *const list = &sums->slowest;
    int r = TL_OK;
    for (uint32_t i = 0; i < list->n && r >= 0; i++)
        if (list->p[i].position >= s->from)
            r = tl_best_add(&s->best, &list->p[i]);
    if (list->n < sums->ended && tl_slow_call_is_less(&shard->unlisted, &list->least))
        shard->unlisted = list->least;
    return r;
}

static int take_shard(void *context, size_t row, struct tl_shard_calls *calls, struct tl_fail *fail)
{
    struct search *const s = context;
    const struct tl_shard_row *const shard = &s->cut->rows[row];
    struct partly partly = {.all = {shard->first, shard->first + shard->n},
                            .unlisted = {.position = UINT64_MAX}};
    int r = TL_OK;
    (void)fail;
    for (size_t i = 0; i < calls->index.n_functions && r >= 0; i++)
        r = take_sums(s, &calls->index.functions[i].by[TL_BY_INSNS], &partly);
    if (r < 0 || partly.unlisted.position == UINT64_MAX)
        return r;
    r = tl_grow(&s->partly, &s->cap_partly, s->n_partly + 1, sizeof *s->partly);
    if (r >= 0)
        s->partly[s->n_partly++] = partly;
    return r;
}

static int take_unknown(void *context, const struct tl_timed_part *part, struct tl_fail *fail)
{
    struct search *const s = context;
    (void)fail;
    return part->insns ? add_place(s->out, part->walk.from, part->walk.to) : TL_OK;
}

/* ---- places ---------------------------------------------------------------------------------- */

/* What the last one of the wanted calls is at least. */
static struct tl_slow_call least_of(const struct search *s)
{
    if (s->best.n < s->out->most)
        return (struct tl_slow_call){.position = UINT64_MAX};
    return ((const struct tl_slow_call *)s->best.rows)[s->best.n - 1];
}

static int add_places(struct search *s)
{
    struct tl_longest *const out = s->out;
    const struct tl_slow_call *const listed = s->best.rows;
    int r = TL_OK;
    tl_best_sort(&s->best);
    out->listed = s->best.n;
    out->least = least_of(s);
    for (size_t i = 0; i < s->best.n && r >= 0; i++)
        r = add_place(out, listed[i].position + listed[i].length,
                      listed[i].position + listed[i].length);
    for (size_t i = 0; i < s->n_partly && r >= 0; i++) {
        const struct partly *const shard = &s->partly[i];
        if (!tl_slow_call_is_less(&shard->unlisted, &out->least))
            r = add_place(out, shard->all.from, shard->all.to);
    }
    return r;
}

static int by_place(const void *a, const void *b)
{
    const struct tl_longest_place *const x = a, *const y = b;
    return (x->from > y->from) - (x->from < y->from);
}

static void join_places(struct tl_longest *l)
{
    size_t n = 0;
    if (l->n > 1)
        qsort(l->places, l->n, sizeof *l->places, by_place);
    for (size_t i = 0; i < l->n; i++) {
        struct tl_longest_place *const last = n > 0 ? &l->places[n - 1] : NULL;
        if (!last || l->places[i].from > last->to)
            l->places[n++] = l->places[i];
        else if (l->places[i].to > last->to)
            last->to = l->places[i].to;
    }
    l->n = n;
}

/* The functions of a name, by symbol; NULL: no memory. */
static uint8_t *functions_named(const struct tl_image *image, const char *name, size_t *n)
{
    (void)tl_image_symbols(image, n);
    uint8_t *const named = calloc(*n + 1, 1);
    for (size_t i = 0; named && i < *n; i++)
        named[i] = strcmp(tl_function_name(image, (uint32_t)i), name) == 0;
    return named;
}

int tl_longest_find(struct tl_longest *longest, const struct tl_cut *cut, uint64_t from,
                    uint64_t to, const char *function, struct tl_fail *fail)
{
    struct search s = {.out = longest, .cut = cut, .from = from};
    struct tl_timed_parts parts = {.cut = cut,
                                   .from = from,
                                   .to = to,
                                   .index = true,
                                   .walk = take_unknown,
                                   .shard = take_shard,
                                   .context = &s};
    uint8_t *named = NULL;
    if (function) {
        named = functions_named(tl_gen_image(cut->gen), function, &parts.n_only);
        if (!named)
            return TL_NOMEM;
        parts.only = named;
    }
    s.best = (struct tl_best){
        .size = sizeof(struct tl_slow_call), .most = longest->most, .compare = longest_first};
    int r = tl_timed_parts_visit(&parts, fail);
    if (r >= 0)
        r = add_places(&s);
    join_places(longest);
    free(s.best.rows);
    free(s.partly);
    free(named);
    return r;
}

void tl_longest_fini(struct tl_longest *longest)
{
    free(longest->places);
    *longest = (struct tl_longest){0};
}

bool tl_longest_may_end(const struct tl_longest *l, uint64_t first, uint64_t last)
{
    const size_t i = tl_count_upto(TL_KEYS(l->places, from), l->n, last);
    return i > 0 && l->places[i - 1].to >= first;
}
