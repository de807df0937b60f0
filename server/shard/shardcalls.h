/* SPDX-License-Identifier: MIT */
/*
 * What is known about the calls in a shard, as one object,
 * "t/TRACE/GENERATION/STREAM/NUMBER.calls":
 *
 *     "TLCALLS6" │ u32 size of each part │ parts
 *
 * A part is a u32 CRC32C and the zstd frame that it is of, so that each can be read alone; one of
 * size 0 is not there. Of older objects only the first part counts: "TLCALLS5" has what
 * ran behind a TRACE_ON as off (decode/point.h), "TLCALLS4" and "TLCALLS3" know no exceptions whose
 * handlers are not traced, "TLCALLS2" has two parts; still older ones are that
 * part alone.
 *
 * Not thread-safe.
 */
#ifndef TL_SHARD_SHARDCALLS_H
#define TL_SHARD_SHARDCALLS_H

#include "shard/callindex.h"
#include "shard/calltree.h"
#include "shard/timedrows.h"

enum tl_calls_part {
    TL_CALLS_TREE,  /* calltree.h */
    TL_CALLS_INDEX, /* callindex.h */
    TL_CALLS_ROWS,  /* timedrows.h */
    TL_CALLS_PARTS
};

struct tl_shard_calls {
    struct tl_calltree tree;
    struct tl_call_index index;
    struct tl_timed_rows rows;
    bool has_index, has_rows;  /* false: an older object */
    struct tl_buf index_bytes; /* if not empty: of the index, which has only its extent yet */
};

void tl_shard_calls_fini(struct tl_shard_calls *calls);
/* Append the object. TL_NOMEM. */
TL_MUST_USE int tl_shard_calls_encode(const struct tl_shard_calls *calls, struct tl_packer *packer,
                                      struct tl_buf *out);
/* Add the parts of an object to empty ones; either may be NULL. Returns 1 if the index is in the
 * object, else 0. TL_NOTFOUND: it is damaged; TL_UNSUPPORTED: another version; TL_NOMEM. */
TL_MUST_USE int tl_shard_calls_decode(struct tl_calltree *tree, struct tl_call_index *index,
                                      struct tl_bytes object);
/* The same, but the index remains bytes, with its extent. */
TL_MUST_USE int tl_shard_calls_unpack(struct tl_shard_calls *calls, struct tl_bytes object);
/* Do the first TL_CALLS_HEAD bytes of an object say that it has all that this program stores? */
#define TL_CALLS_HEAD 20
#define TL_CALLS_FORM "TLCALLS6" /* an object's first bytes */
bool tl_shard_calls_is_whole(struct tl_bytes head);
/* Read the rows of an object into empty ones. Returns 1 if they are in the object, else 0.
 * TL_NOTFOUND: it is damaged; TL_NOMEM. */
TL_MUST_USE int tl_shard_calls_rows(struct tl_timed_rows *rows, struct tl_bytes object);

#endif
