/* SPDX-License-Identifier: MIT */
/*
 * Makes a damaged shard whole from what is left of it, without the raw bytes. No I/O, not
 * thread-safe.
 *
 * The chunks of the .zstf must all be good; by them and the item logs everything else is known:
 *
 *     head, chunk index, sums, footer   follow from the index, the index from any of its copies
 *     index body                        is made anew from instructions and items
 *     an item log                       what STF tells by itself is logged again: exceptions,
 *                                       modes, contexts. Times, raw offsets, events and notes of
 *                                       these instructions are lost, and a note says so. Where
 *                                       positions are items (instructions without encoding,
 *                                       software trace) nothing can be told of the chunk
 *
 * Of the tiles in an index that was made anew, functions are the image's (none without it), and
 * the rarer functions and pages of a bucket may be others: these are approximate in any case. What
 * is behind a cut counts for the function there, be it of a block that began in another one.
 * Shards of older versions, which have no sums, are mended only where their body is good.
 */
#ifndef TL_STORE_MEND_H
#define TL_STORE_MEND_H

#include "setup/setup.h"
#include "store/view.h"

struct tl_mend {
    uint64_t number; /* of the shard */
    enum tl_protocol protocol;
    const struct tl_image *image; /* borrowed; may be NULL */
    struct tl_packer *packer;     /* borrowed */
};

/*
 * Append the mended file to `out`. Returns how many item logs were lost (0: it is as good as it
 * was). TL_BAD: it cannot be made whole from itself; why is in `fail`. TL_NOMEM.
 */
TL_MUST_USE int tl_shard_mend(struct tl_bytes file, const struct tl_mend *mend, struct tl_buf *out,
                              struct tl_fail *fail);

#endif
