/* SPDX-License-Identifier: MIT */
/*
 * How often code was run: runs of instructions one behind another, each of which ends at an
 * instruction at which a trace unit may say where the flow goes, or where a shard does; and taken
 * branches between them. Their form in the store is the object
 * "t/TRACE/GENERATION/STREAM/NUMBER.count":
 *
 *     u32 CRC32C of all behind it │ zstd frame of varints: version, instructions,
 *         n runs, n branches; of each its first address less that of the one in front, its last
 *         one less its first, and how often
 *
 * Not thread-safe.
 */
#ifndef TL_STORE_CODECOUNT_H
#define TL_STORE_CODECOUNT_H

#include "base/buf.h"
#include "base/bytes.h"
#include "base/numbers.h"
#include "flow/item.h"
#include "store/pack.h"

#include <stdbool.h>

#define TL_CODECOUNT_MOST (UINT32_C(1) << 22) /* different runs, and different branches */

struct tl_codecount {
    struct tl_numbers addresses; /* numbers of all that is named below */
    struct tl_numbers runs;      /* number of the first address << 32 | of the last */
    struct tl_numbers branches;  /* number of the source << 32 | of the destination */
    uint64_t *run_counts, *branch_counts;
    size_t cap_runs, cap_branches;
    uint64_t insns;
    bool truncated; /* there were more */
};

void tl_codecount_fini(struct tl_codecount *c);

/* Does an item of this kind end a run, so that it is not known how the flow goes on behind it?
 * `is_point`: tl_item_is_point(). */
static inline bool tl_codecount_stops(unsigned kind, bool is_point)
{
    return is_point || kind == TL_ITEM_GAP || kind == TL_ITEM_EXCEPTION || kind == TL_ITEM_TRACE_ON;
}

/* The number of a run, which has no count yet if it is new. TL_NO_NUMBER: there are too many.
 * TL_NOMEM. */
TL_MUST_USE int tl_codecount_number(struct tl_codecount *c, uint64_t first, uint64_t last,
                                    uint32_t *number);
/* `n` more of a run, and of a branch, between two addresses. TL_NOMEM. */
TL_MUST_USE int tl_codecount_run(struct tl_codecount *c, uint64_t first, uint64_t last, uint64_t n);
TL_MUST_USE int tl_codecount_branch(struct tl_codecount *c, uint64_t from, uint64_t to, uint64_t n);

/* "t/TRACE/GENERATION/STREAM/NUMBER.count" into `out`; returns it. */
char *tl_codecount_key(char out[static 192], const char *trace, uint64_t generation,
                       const char *stream, uint64_t number);
/* Append the object; runs and branches without a count stay out. TL_NOMEM. */
TL_MUST_USE int tl_codecount_encode(const struct tl_codecount *c, struct tl_packer *packer,
                                    struct tl_buf *out);
/* Add what an object says. TL_NOTFOUND: it is damaged, or of another version. TL_NOMEM. */
TL_MUST_USE int tl_codecount_decode(struct tl_codecount *c, struct tl_bytes object);

#endif
