/* SPDX-License-Identifier: MIT */
/*
 * Outlines of complete shards, out of memory: a scratch file with a row of fixed size for each, and
 * their chunks behind all rows. Readers take rows in one piece, and a view when it is looked at.
 * One thread adds, with the lane's lock held; others may read what was there when they took it.
 */
#ifndef TL_LAKE_AWAY_H
#define TL_LAKE_AWAY_H

#include "shard/view.h"

#define TL_AWAY_MOST 4096u /* shards */

struct tl_backend;
struct tl_away;

/* One for shards from number `first` on. NULL: there is no memory, or no scratch file. */
struct tl_away *tl_away_new(struct tl_backend *backend, uint64_t first);
void tl_away_put(struct tl_away *away);

/* Number of the first shard, and how many there are. */
uint64_t tl_away_first(const struct tl_away *away);
uint32_t tl_away_n(const struct tl_away *away);

/* Add the next shard's outline. TL_LIMIT: it is full; TL_NOMEM, TL_IO, TL_NOSPACE. */
TL_MUST_USE int tl_away_add(struct tl_away *away, const struct tl_view *view);

/* What a reader has of several, one after the other. All zeros: nothing. */
struct tl_away_taken {
    struct tl_away_part {
        struct tl_away *away;
        uint32_t n; /* the first shards of it */
    } * v;
    size_t n;
    size_t shards; /* of all */
};
/* Take what there is. Free with tl_away_taken_fini(), also after an error. TL_NOMEM. */
TL_MUST_USE int tl_away_take(struct tl_away_taken *out, struct tl_away *const *all, size_t n);
void tl_away_taken_fini(struct tl_away_taken *taken);
/* Read the rows of all. TL_IO. */
TL_MUST_USE int tl_away_taken_rows(const struct tl_away_taken *taken, struct tl_shard_row *out);
/* A view of the shard of this number, of which only the outline is known. TL_NOTFOUND; TL_IO,
 * TL_BAD, TL_NOMEM. */
TL_MUST_USE int tl_away_taken_open(const struct tl_away_taken *taken, uint64_t number,
                                   struct tl_view **out, struct tl_fail *fail);

#endif
