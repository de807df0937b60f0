/* SPDX-License-Identifier: MIT */
/*
 * Missing ranges of virtual shards: positions that the index has, but that cannot be regenerated
 * since raw bytes are damaged. The regenerated item log of a chunk then ends with a GAP
 * (TL_GAP_TRANSPORT, at the offset of the first damaged byte; with their number, unless all of the
 * chunk is missing), a NOTE with the bytes and the positions, and a TL_ITEM_LOST aside, by which a
 * walk knows how many positions are missing. A missing range extends to the end of its chunk: the
 * next chunk begins at its own position, with a GAP of its own if it is affected, too.
 */
#ifndef TL_SHARD_MISSING_H
#define TL_SHARD_MISSING_H

#include "shard/blob.h"
#include "shard/shard.h"

struct tl_missing {
    enum tl_protocol protocol; /* of the stream */
    uint64_t from, to;         /* the damaged raw bytes */
    char text[160];            /* of the note; private */
};

/*
 * The GAP and the NOTE for a missing range of chunk `c` from stream position `position` to its end;
 * returns their number: where notes are positions there is none. The text is valid as long as the
 * missing range, until the next call.
 */
size_t tl_missing_items(struct tl_missing *missing, const struct tl_chunk *c, uint64_t position,
                        struct tl_item out[static 2]);
/*
 * The item log of a chunk with a missing range from `position` to its end: `log`, which ends with
 * the missing range's items, and the aside. If `log` is empty, so is the chunk: the items are
 * added. TL_NOMEM, TL_BAD: `log` is no log of this chunk up to that position.
 */
TL_MUST_USE int tl_missing_log(struct tl_missing *missing, const struct tl_chunk *c,
                               struct tl_bytes log, uint64_t position, struct tl_blob **out);

#endif
