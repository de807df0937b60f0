/* SPDX-License-Identifier: MIT */
/*
 * Shards made again from raw bytes: byte for byte what decoding would have stored.
 *
 * While a generation with virtual shards is decoded, marks are made, one for each eighth of a
 * shard's positions: where the decoder and the builders stood, without what was being built. From
 * the last mark in front of a chunk on its raw bytes are decoded once more; what lies in between is
 * followed, no records are made of it. Where chunks are asked for in order, one decoder goes on.
 *
 * Marks are stored as lists, objects "t/<trace>/<generation>/marks/<raw offset of the first, 16 hex
 * digits>": a zstd frame of checkpoints (store/checkpoint.h), each behind its size, a u32. None is
 * needed: where there is none, or it is damaged or another program's, decoding begins further in
 * front. "…/marks/whose" says which program they are of.
 */
#ifndef TL_INGEST_REMAKE_H
#define TL_INGEST_REMAKE_H

#include "base/bytes.h"
#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>

struct tl_decode;
struct tl_gen;
struct tl_lake;
struct tl_lane;
struct tl_remaker;
struct tl_view;

#define TL_MARKS "marks" /* in place of a stream's name */

/* Can a new decode's state be saved? Where it cannot each shard would be made from the first byte
 * on. */
bool tl_can_mark(struct tl_decode *decode);
/* Decoding of a generation with virtual shards begins: note which program does. */
void tl_mark_begin(struct tl_gen *gen);
/* Did this program, with these options, make the shards of a generation that an earlier run has
 * decoded? Shards can be made of them soon then. */
bool tl_marks_are_ours(struct tl_gen *gen);
/* Have its trace decoded anew by this program, once, in the background. */
void tl_gen_renew(struct tl_gen *gen);
/* Behind a flush of the decoder, of the decode job: make a mark if it is time for one. What fails
 * costs nothing but time. */
void tl_mark(struct tl_gen *gen);
/* Of the decode job: store marks that wait for others to be stored with. What is decoded from here
 * on only may be decoded again. */
void tl_mark_flush(struct tl_gen *gen);
/* Forget them. */
void tl_mark_drop(struct tl_gen *gen);

/*
 * Make frames [from, to) of a virtual view of the lane, and the items of their chunks, over it
 * (store/view.h); if they are wanted `packed` the crew packs several meanwhile. TL_BAD: the raw
 * bytes are damaged; TL_AGAIN: they give another shard, since a program that decodes otherwise made
 * this one: the trace is being decoded anew; TL_NOTFOUND: they were removed; TL_CANCELLED, TL_IO,
 * TL_NOMEM. One thread at a time for each lane.
 */
TL_MUST_USE int tl_remake(struct tl_lane *lane, struct tl_view *view, size_t from, size_t to,
                          bool packed, struct tl_view **out, struct tl_fail *fail);

/* Free the decoders of generations whose shards' keys begin like this, none of which is being
 * read. */
void tl_remakers_forget(struct tl_lake *lake, const char *prefix);

#endif
