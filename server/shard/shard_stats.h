/* SPDX-License-Identifier: MIT */
/*
 * Exact statistics of a shard: kinds of instructions, items, modes, functions. Counted while the
 * shard is built, from the properties of blocks, or if they are not known, instruction by
 * instruction (insn_stats.h), and stored in its index. Not thread-safe.
 */
#ifndef TL_SHARD_SHARD_STATS_H
#define TL_SHARD_SHARD_STATS_H

#include "base/numbers.h"
#include "base/state.h"
#include "flow/item.h"
#include "shard/varint.h"

#define TL_STATS_MODES   16 /* the first ones to occur */
#define TL_STATS_RECORDS 9  /* record categories: tl_stats_record() */

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

/* Classify an instruction by its bytes alone. */
enum tl_mix tl_mix_at(enum tl_isa isa, uint64_t pc, struct tl_bytes code);
/* The class of a block's last instruction if all others are plain; otherwise TL_MIX_KINDS. */
enum tl_mix tl_mix_of(const struct tl_block *block);

struct tl_shard_stats_function {
    uint32_t function; /* index of the image's symbol, or TL_NO_FUNCTION */
    uint64_t insns;    /* of blocks that begin in it */
    uint64_t calls;    /* blocks that begin at its entry */
};

struct tl_shard_stats {
    bool reported; /* false: unknown, an older shard */
    bool counted;  /* counted instruction by instruction: the next five members are valid too */
    uint64_t insns, taken;
    uint64_t reads, writes; /* memory accesses recorded in the trace */
    uint64_t records[TL_STATS_RECORDS];
    uint64_t mix[TL_MIX_KINDS];
    uint64_t kinds[TL_ITEM_KINDS]; /* number of items */
    uint64_t gaps[TL_GAP_KINDS];
    struct {
        uint64_t mode, insns;
    } modes[TL_STATS_MODES];
    size_t n_modes;
    struct tl_shard_stats_function *functions; /* ascending; TL_NO_FUNCTION is the last */
    size_t n_functions, cap_functions;
};

void tl_shard_stats_fini(struct tl_shard_stats *stats);
/* Count `n` instructions in a mode. */
void tl_shard_stats_mode(struct tl_shard_stats *stats, uint64_t mode, uint64_t n);
/* Count `n` items like this one. */
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
/* The category of a record in an instruction's group: an index into `records`, or < 0. */
int tl_stats_record(uint8_t type);
/* The name of category `i`. Static storage. */
const char *tl_stats_record_name(unsigned i);
/* Sort the functions. */
void tl_shard_stats_sort(struct tl_shard_stats *stats);
/* Append to bytes; read back. TL_NOMEM, TL_BAD. */
TL_MUST_USE int tl_shard_stats_encode(const struct tl_shard_stats *stats, struct tl_buf *out);
TL_MUST_USE int tl_shard_stats_read(struct tl_shard_stats *out, struct tl_varint_reader *in);

/* ---- counting ------------------------------------------------------------------------------ */

struct tl_stats_counter {
    struct tl_shard_stats stats;
    bool unreported; /* statistics of this shard are not available */
    uint64_t mode, mode_from;
    bool has_mode;
    struct tl_numbers functions; /* their indexes in the statistics */
};

void tl_stats_counter_fini(struct tl_stats_counter *t);
/* Save to bytes, or load into a zeroed counter. */
void tl_stats_counter_state(struct tl_stats_counter *t, struct tl_state *state);
/* Count instructions and calls of a function. TL_NOMEM. */
TL_MUST_USE int tl_stats_counter_function(struct tl_stats_counter *t, uint32_t function, uint64_t n,
                                          uint64_t calls);
/* Count `n` instructions of a block beginning at its byte `at`; `last`: up to its end. `mix` is the
 * block's tl_mix_of(). Plain ones need not be counted: they are the remainder. */
void tl_stats_counter_code(struct tl_stats_counter *t, const struct tl_block *block,
                           enum tl_mix mix, uint32_t at, uint64_t n, bool last);
/* Process a MODE item, after `insns` instructions of the shard. */
void tl_stats_counter_mode(struct tl_stats_counter *t, uint64_t mode, uint64_t insns);
/* End of counting: `insns` positions, `markers` of them in blocks. Moves the result to `*out`. */
void tl_stats_counter_end(struct tl_stats_counter *t, uint64_t insns, uint64_t markers,
                          struct tl_shard_stats *out);

#endif
