/* SPDX-License-Identifier: MIT */
/*
 * What a shard consists of, exactly: kinds of instructions, items, modes, functions. Counted while
 * the shard is built, from what blocks know of themselves, or where they do not know it instruction
 * by instruction (insn_stats.h), and kept in its index. Not thread-safe.
 */
#ifndef TL_STORE_SHARD_STATS_H
#define TL_STORE_SHARD_STATS_H

#include "base/numbers.h"
#include "base/state.h"
#include "flow/item.h"
#include "store/varint.h"

#define TL_STATS_MODES   16 /* those met first */
#define TL_STATS_RECORDS 9  /* types of records: tl_insn_stats_record() */

enum tl_mix {
    TL_MIX_PLAIN,
    TL_MIX_BRANCH,
    TL_MIX_CONDITIONAL,
    TL_MIX_CALL,
    TL_MIX_RETURN,
    TL_MIX_INDIRECT,
    TL_MIX_ERET,
    TL_MIX_TRAP,
    TL_MIX_SYNC,
    TL_MIX_UNKNOWN,
    TL_MIX_KINDS
};

/* What kind of instruction it is, by its bytes alone. */
enum tl_mix tl_mix_at(enum tl_isa isa, uint64_t pc, struct tl_bytes code);
/* The kind of a block's last instruction if all others are plain; TL_MIX_KINDS: they are not. */
enum tl_mix tl_mix_of(const struct tl_block *block);

struct tl_shard_stats_function {
    uint32_t function; /* index of the image's symbol, or TL_NO_FUNCTION */
    uint64_t insns;    /* of blocks that begin in it */
    uint64_t calls;    /* blocks that begin where it does */
};

struct tl_shard_stats {
    bool told;    /* else nothing is known: it is an older shard */
    bool counted; /* instruction by instruction, so that the next five are told here, too */
    uint64_t insns, taken;
    uint64_t reads, writes; /* memory accesses that the trace tells of */
    uint64_t records[TL_STATS_RECORDS];
    uint64_t mix[TL_MIX_KINDS];
    uint64_t kinds[TL_ITEM_KINDS]; /* items */
    uint64_t gaps[TL_GAP_KINDS];
    struct {
        uint64_t mode, insns;
    } modes[TL_STATS_MODES];
    size_t n_modes;
    struct tl_shard_stats_function *functions; /* rising; TL_NO_FUNCTION is the last */
    size_t n_functions, cap_functions;
};

void tl_shard_stats_fini(struct tl_shard_stats *stats);
/* `n` instructions in a mode. */
void tl_shard_stats_mode(struct tl_shard_stats *stats, uint64_t mode, uint64_t n);
/* `n` items such as this one. */
static inline void tl_shard_stats_items(struct tl_shard_stats *stats, const struct tl_item *item,
                                        uint64_t n)
{
    stats->kinds[item->kind] += n;
    if (item->kind != TL_ITEM_GAP)
        return;
    if (item->sub < TL_GAP_KINDS)
        stats->gaps[item->sub] += n;
    stats->kinds[TL_ITEM_BRANCH] += tl_item_is_branch(item) ? n : 0;
}
/* Bring functions into their order. */
void tl_shard_stats_sort(struct tl_shard_stats *stats);
/* Append it; read it back. TL_NOMEM, TL_BAD. */
TL_MUST_USE int tl_shard_stats_encode(const struct tl_shard_stats *stats, struct tl_buf *out);
TL_MUST_USE int tl_shard_stats_read(struct tl_shard_stats *out, struct tl_varint_reader *in);

/* ---- counting ------------------------------------------------------------------------------ */

struct tl_stats_counter {
    struct tl_shard_stats stats;
    bool untold; /* of this shard nothing can be told */
    uint64_t mode, mode_from;
    bool has_mode;
    struct tl_numbers functions; /* their places in the statistics */
};

void tl_stats_counter_fini(struct tl_stats_counter *t);
/* Into bytes or, of a zeroed one, from them. */
void tl_stats_counter_state(struct tl_stats_counter *t, struct tl_state *state);
/* A function's instructions and calls. TL_NOMEM. */
TL_MUST_USE int tl_stats_counter_function(struct tl_stats_counter *t, uint32_t function, uint64_t n,
                                          uint64_t calls);
/* `n` instructions of a block from its byte `at` on; `last`: up to its end. `mix` is the block's,
 * tl_mix_of(). Plain ones need not be counted: they are what is left. */
void tl_stats_counter_code(struct tl_stats_counter *t, const struct tl_block *block,
                           enum tl_mix mix, uint32_t at, uint64_t n, bool last);
/* A MODE item, behind `insns` instructions of the shard. */
void tl_stats_counter_mode(struct tl_stats_counter *t, uint64_t mode, uint64_t insns);
/* All is counted: `insns` positions, `markers` of them in blocks. Moves the result to `*out`. */
void tl_stats_counter_end(struct tl_stats_counter *t, uint64_t insns, uint64_t markers,
                          struct tl_shard_stats *out);

#endif
