/* SPDX-License-Identifier: MIT */
/*
 * Shards made again from raw bytes: byte for byte what decoding made of them the first time.
 *
 * While a generation with virtual shards is decoded, marks are stored about once a shard: where the
 * decoder and the builders stood, without what was being built. From the last mark in front of a
 * shard on its raw bytes are decoded once more; what lies in between is followed, nothing of it is
 * kept. Marks are objects "t/<trace>/<generation>/marks/<raw offset, 16 hex digits>", a zstd frame
 * of a checkpoint (store/checkpoint.h). None is needed: where there is none, or it is damaged or
 * another program's, decoding begins further in front.
 */
#ifndef TL_INGEST_REMAKE_H
#define TL_INGEST_REMAKE_H

#include "base/bytes.h"
#include "base/err.h"

#include <stdbool.h>

struct tl_decode;
struct tl_gen;
struct tl_lane;
struct tl_shard_row;
struct tl_view;

#define TL_MARKS "marks" /* in place of a stream's name */

/* Can a new decode's state be saved? Where it cannot each shard would be made from the first byte
 * on. */
bool tl_can_mark(struct tl_decode *decode);
/* Behind a flush of the decoder, of the decode job: store a mark if a shard was completed since the
 * last one. What fails costs nothing but time. */
void tl_mark(struct tl_gen *gen);

/* Marks are stored some at a time: store those that wait. */
void tl_mark_flush(struct tl_gen *gen);
/* Forget them. */
void tl_mark_drop(struct tl_gen *gen);

/*
 * Make the shard of `row` again. The view is in memory, and the caller's; `each` (may be NULL) is
 * called with it and with those behind it that came along, which it may keep by tl_view_get().
 * TL_BAD: the raw bytes are damaged; TL_AGAIN: they give another shard, since a program that
 * decodes otherwise made this one: the trace is being decoded anew; TL_NOTFOUND: they were removed;
 * TL_CANCELLED, TL_IO, TL_NOMEM. Any thread.
 */
TL_MUST_USE int tl_remake(struct tl_gen *gen, struct tl_lane *lane, const struct tl_shard_row *row,
                          void (*each)(void *context, struct tl_view *view), void *context,
                          struct tl_view **out, struct tl_fail *fail);

#endif
