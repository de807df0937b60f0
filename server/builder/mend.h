/* SPDX-License-Identifier: MIT */
/*
 * Repairs a damaged shard from its intact parts, without the raw bytes. No I/O, not thread-safe.
 *
 * All chunks of the .zstf must be intact; from them and the item logs everything else is derived:
 *
 *     head, chunk index, sums, footer   follow from the index, the index from any of its copies
 *     index body                        is rebuilt from instructions and items
 *     an item log                       what STF contains is logged again: exceptions, modes,
 *                                       contexts. Times, raw offsets, events and notes of these
 *                                       instructions are lost, and a note reports it. If positions
 *                                       are items (instructions without encoding, software trace)
 *                                       the chunk's contents are lost. An exception among so many
 *                                       items that a chunk ended there may come twice or be lost
 *
 * In the tiles of a rebuilt index, functions are the image's (none without it), and the less
 * frequent functions and pages of a bucket may differ: these are approximate in any case. There are
 * no buckets in time, which depend on the shards around it: readers walk instead.
 * Instructions after a cut count for the function there, even if their block began in another one.
 * Shards of older versions, which have no sums, can be repaired only if their body is intact.
 */
#ifndef TL_BUILDER_MEND_H
#define TL_BUILDER_MEND_H

#include "setup/setup.h"
#include "shard/view.h"

struct tl_mend {
    uint64_t number; /* number of the shard */
    bool follows;    /* the stream has another shard after it */
    enum tl_protocol protocol;
    const struct tl_image *image; /* borrowed; may be NULL */
    struct tl_packer *packer;     /* borrowed */
};

/*
 * Append the repaired file to `out`. Returns how many item logs were lost (0: fully restored).
 * TL_BAD: it cannot be repaired from itself; `fail` gives the reason. TL_NOMEM.
 */
TL_MUST_USE int tl_shard_mend(struct tl_bytes file, const struct tl_mend *mend, struct tl_buf *out,
                              struct tl_fail *fail);

#endif
