/* SPDX-License-Identifier: MIT */
/*
 * Retention of images that no trace refers to. They are counted by reading all setups, and removed
 * by the time for which that has been so, or by their size, as one rule says for all of them.
 */
#include "lake/image_uses.h"
#include "lake/lakeint.h"
#include "upkeep/retain.h"

#include <stdlib.h>

#define ROUNDS 10 /* one in so many counts unused images only to report them */

/* Images are uploaded before the trace that names them: one is spared by its size for an hour. */
#define WANTED_NS INT64_C(3600000000000)

static int longest_unused_first(const void *a, const void *b)
{
    const struct tl_image_use *const x = a, *const y = b;
    return x->unused_ns != y->unused_ns ? (x->unused_ns < y->unused_ns ? -1 : 1)
                                        : strcmp(x->row.hash, y->row.hash);
}

/* Remove an image, or tell it. Returns 1: done. */
static int take_image(const struct tl_retain_round *round, const struct tl_retention_victim *victim)
{
    if (round->each) {
        const int r = round->each(round->context, victim);
        return r < 0 ? r : 1;
    }
    if (victim->by_age && !tl_lake_may_age_out(round->lake, round->n, round->now_ns))
        return 0;
    const int r = tl_image_unused_remove(round->lake, victim->trace, round->fail);
    if (r > 0) {
        atomic_fetch_sub(&round->lake->images_unused, 1);
        atomic_fetch_sub(&round->lake->image_bytes_unused, victim->bytes);
        atomic_fetch_add(&round->lake->retained_out, 1);
        tl_retain_report(victim);
    }
    if (r > 0 && victim->by_age)
        tl_lake_aged_out(round->lake);
    return r;
}

static int limit_images(struct tl_retain_round *round, struct tl_image_uses *uses,
                        const struct tl_retention *rule)
{
    uint64_t total = 0;
    int removed = 0, r = TL_OK;
    size_t n = 0;
    for (size_t i = 0; i < uses->n; i++)
        if (uses->v[i].traces == 0)
            uses->v[n++] = uses->v[i];
    for (size_t i = 0; i < n; i++)
        total += uses->v[i].row.size;
    qsort(uses->v, n, sizeof *uses->v, longest_unused_first);
    round->n = uses->n;
    for (size_t i = 0; r >= 0 && i < n; i++) {
        const struct tl_image_use *const use = &uses->v[i];
        const int64_t age_ns = tl_lake_age(round->lake, use->unused_ns, round->now_ns);
        const uint64_t age_s = (uint64_t)(age_ns / TL_NS_PER_S);
        const bool old = round->ages && rule->raw_age_s > 0 && age_s > rule->raw_age_s;
        const bool large = rule->raw_bytes > 0 && total > rule->raw_bytes && age_ns > WANTED_NS;
        if (!old && !large)
            continue;
        r = take_image(
            round, &(struct tl_retention_victim){.trace = use->row.hash,
                                                 .what = "image",
                                                 .scope = TL_SCOPE_IMAGES,
                                                 .by_age = !large,
                                                 .age_s = age_s,
                                                 .limit = large ? rule->raw_bytes : rule->raw_age_s,
                                                 .bytes = use->row.size});
        total -= r > 0 ? use->row.size : 0;
        removed += r > 0;
    }
    return r < 0 ? r : removed;
}

int tl_retain_images(struct tl_retain_round *round, const struct tl_retention_row *rules, size_t n)
{
    struct tl_lake *const lake = round->lake;
    const struct tl_retention *rule = NULL;
    struct tl_image_uses uses;
    for (size_t i = 0; i < n; i++)
        if (strcmp(rules[i].scope, TL_SCOPE_IMAGES) == 0)
            rule = &rules[i].rule;
    if (!rule && (round->each || lake->images_counted++ % ROUNDS != 0))
        return TL_OK;
    int r = tl_image_uses_read(&uses, lake, round->fail);
    if (r >= 0)
        r = tl_image_unused_update(lake, &uses, round->now_ns, round->fail);
    if (r >= 0 && rule)
        r = limit_images(round, &uses, rule);
    free(uses.v);
    return r == TL_BAD ? TL_OK
                       : r; /* of a damaged row verify tells; nothing is removed meanwhile */
}
