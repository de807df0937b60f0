/* SPDX-License-Identifier: MIT */
/*
 * Regeneration of shards from raw bytes: byte for byte what decoding would have stored.
 *
 * While a generation with virtual shards is decoded, marks are taken, one for each eighth of a
 * shard's positions: the state of the decoder and the builders, without the contents being built.
 * To regenerate a chunk, raw bytes are decoded again from the last mark before it; what lies
 * between is followed without producing records. If chunks are requested in order, one decoder
 * continues.
 *
 * Marks are stored as lists, objects "t/<trace>/<generation>/marks/<raw offset of the first, 16 hex
 * digits>": a zstd frame of checkpoints (store/checkpoint.h), each preceded by its size, a u32.
 * They are optional: if a mark is missing, damaged or made by another server version, decoding
 * begins at an earlier one. "…/marks/whose" identifies the server version.
 */
#ifndef TL_VIRTUAL_REMAKE_H
#define TL_VIRTUAL_REMAKE_H

#include "base/bytes.h"
#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>

struct tl_decode;
struct tl_gen;
struct tl_lake;
struct tl_lane;
struct tl_view;

/*
 * Regenerate frames [from, to) of a virtual view of the lane, and the items of their chunks, over
 * it (shard/view.h); if they are wanted `packed`, the crew packs several in parallel. TL_BAD: the
 * raw bytes are damaged; TL_AGAIN: the result is another shard, since a server version that
 * decodes differently wrote this one; the trace is being decoded again; TL_NOTFOUND: the raw bytes
 * were removed; TL_CANCELLED, TL_IO, TL_NOMEM. One thread at a time for each lane.
 */
TL_MUST_USE int tl_remake_shard(struct tl_lane *lane, struct tl_view *view, size_t from, size_t to,
                                bool packed, struct tl_view **out, struct tl_fail *fail);

/* Are the raw bytes intact of which positions from this chunk of a virtual view on are regenerated,
 * and others up to raw offset `byte_last`? TL_BAD: they are damaged. Errors as above. */
TL_MUST_USE int tl_remake_check(struct tl_lane *lane, const struct tl_view *view, size_t chunk,
                                uint64_t byte_last, struct tl_fail *fail);

#endif
