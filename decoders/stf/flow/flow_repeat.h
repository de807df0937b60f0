/* SPDX-License-Identifier: MIT */
/*
 * Finds repeats in the records of steps (whole blocks that follow one another). The records of a
 * step (the target, if any, and the instruction of the block before it, and all but the last
 * instruction of its own block) follow from these two steps. So it is enough to compare steps, by a
 * hash of their contents, and records that repeat are not written at all until somebody needs them
 * (tl_stf_fill()), which a compressor does not:
 *
 *     steps     A  b  C  D  E  A  b  C  F
 *     repeats                  -  =  =             -: of its own block alone
 *
 * At a step that does not continue a repeat, it is looked up where it followed the same two steps
 * last, else the same one, else where its block was executed.
 *
 * What is found depends only on the steps and on other records in between.
 * Private to the library. Not thread-safe.
 */
#ifndef TL_STF_FLOW_REPEAT_H
#define TL_STF_FLOW_REPEAT_H

#include "base/state.h"
#include "stf/flow/flow_copy.h"
#include "stf/flow/flow_piece.h"

#define TL_STF_REPEAT_BITS 13
#define TL_STF_REPEAT_IDS  4096u      /* blocks whose hash is remembered */
#define TL_STF_REPEAT_MAX  (1u << 31) /* bytes of records */

struct tl_stf_repeats {
    /*
     * The chunk's steps so far: the hash of the block, with TL_STEP_TAKEN. What the writer wrote
     * otherwise between two steps counts as a step: the hash of these records, and of the
     * instruction that is held back behind them. Records of step i begin at at[i], and end at
     * at[i + 1].
     */
    uint64_t *keys;
    uint32_t *at;
    uint32_t n;
    size_t cap_keys, cap_at;
    uint32_t from;   /* the last repeat continues if the next step is this one; 0: there is none */
    uint32_t turn;   /* hash of the last two steps */
    uint32_t others; /* steps of other records */
    struct tl_stf_repeat *found;
    size_t n_found, cap_found;
    size_t filled; /* of these repeats no bytes are left out */
    /* Last step of each pair of steps, of each three, and of each block, by hash; 0: none. */
    uint32_t turns[1u << TL_STF_REPEAT_BITS];
    uint32_t pairs[1u << TL_STF_REPEAT_BITS];
    uint32_t entries[1u << TL_STF_REPEAT_BITS];
    struct {
        uint64_t id;
        uint32_t number; /* of the block */
    } ids[TL_STF_REPEAT_IDS];
};

/* NULL: out of memory. */
struct tl_stf_repeats *tl_stf_repeats_new(void);
void tl_stf_repeats_free(struct tl_stf_repeats *r); /* accepts NULL */
/* Are steps worth noting? Not in the rest of a chunk with other records between many of them: its
 * bytes are better searched as a whole. Only these turn it off, not steps. */
static inline bool tl_stf_repeats_wanted(const struct tl_stf_repeats *r)
{
    return r->others < 8 + r->n / 16;
}

/* Forget all steps and repeats: a chunk begins. Accepts NULL. */
void tl_stf_repeats_reset(struct tl_stf_repeats *r);
/* Save or restore what was found in `n` bytes of records. */
void tl_stf_repeats_state(struct tl_stf_repeats *r, size_t n, struct tl_state *s);

/*
 * A step's records are written: they begin at `begin`, with those of the instruction held back
 * until now, the `tail`; and end at `end`, with `head` bytes of its own block. TL_NOMEM.
 */
TL_MUST_USE int tl_stf_repeats_begin(struct tl_stf_repeats *r, const uint8_t *records, size_t begin,
                                     const uint8_t *tail, uint32_t tail_n, bool taken, bool odd);
TL_MUST_USE int tl_stf_repeats_end(struct tl_stf_repeats *r, const struct tl_block *block,
                                   bool taken, size_t end, size_t head);
/* Write all that was left out of `records`. Accepts NULL. */
void tl_stf_repeats_fill(struct tl_stf_repeats *r, uint8_t *records);
/*
 * As tl_stf_copy_path, and note the steps. There is space for all of them, and less than
 * TL_STF_REPEAT_MAX bytes up to its end.
 */
const uintptr_t *tl_stf_repeats_copy(struct tl_stf_repeats *r, struct tl_stf_cursor *at,
                                     const uintptr_t *step, const uintptr_t *end,
                                     const uint8_t *begin, uint8_t isa);

#endif
