/* SPDX-License-Identifier: MIT */
/*
 * Keeps blocks, and functions of addresses, in small tables. An address is other code, or has
 * another function, where mode, context or program memory are others: these are part of the key, so
 * that threads that take turns find their blocks again. What is replaced in a table stays in memory
 * until the next chunk, since items refer to it.
 */
#include "shard/walk_kept.h"

#include <stdlib.h>
#include <string.h>

#define SETS        1024
#define WAYS        4 /* of blocks in a set: several that begin at an address may be in use */
#define FUNCTIONS   512
#define BYTES_MOST  1024              /* of a block's records */
#define KEPT_MOST   ((size_t)4 << 20) /* bytes of blocks; with more, all begins anew */
#define PIECE_BYTES ((size_t)64 << 10)

/* What determines the function at an address. */
struct sight {
    uint64_t view;
    uint16_t space; /* UNBOUND: nothing is known of mode and context */
};

#define UNBOUND UINT16_MAX

struct kept {
    struct tl_block block; /* `coded`: its own copy of the records */
    struct sight sight;
    uint32_t target; /* byte of `coded` where the last instruction's destination is */
};

struct piece {
    struct piece *next;
    size_t n;
    uint8_t bytes[PIECE_BYTES];
};

struct tl_walk_kept {
    struct kept *blocks[SETS][WAYS]; /* by address; the newest first */
    struct {
        struct sight sight;
        uint64_t pc;
        uint32_t function;
        bool known;
    } functions[FUNCTIONS];
    struct sight sight;
    bool seen;        /* `sight` is the present one */
    uint64_t changed; /* when memory did */
    struct piece *pieces;
    size_t n; /* bytes of all pieces */
};

static void drop_pieces(struct tl_walk_kept *k)
{
    while (k->pieces) {
        struct piece *const piece = k->pieces;
        k->pieces = piece->next;
        free(piece);
    }
    k->n = 0;
}

void tl_walk_kept_free(struct tl_walk_kept *kept)
{
    if (kept)
        drop_pieces(kept);
    free(kept);
}

int tl_walk_kept_begin(struct tl_walk *walk)
{
    if (!walk->kept && !(walk->kept = calloc(1, sizeof *walk->kept)))
        return TL_NOMEM;
    struct tl_walk_kept *const k = walk->kept;
    if (k->n > KEPT_MOST) {
        drop_pieces(k);
        memset(k->blocks, 0, sizeof k->blocks);
    }
    k->seen = false;
    k->changed = walk->image ? tl_image_last_change(walk->image, walk->now.time) : 0;
    return TL_OK;
}

/* ---- what is visible at an address ----------------------------------------------------------- */

void tl_walk_kept_pass(struct tl_walk *walk, const struct tl_item *item,
                       const struct tl_flow_now *now)
{
    struct tl_walk_kept *const k = walk->kept;
    if (!walk->image)
        return;
    const uint64_t before = k->changed;
    if (item->kind == TL_ITEM_TIME)
        k->changed = tl_image_last_change(walk->image, now->time);
    if (item->kind == TL_ITEM_MODE || item->kind == TL_ITEM_CONTEXT || k->changed != before)
        k->seen = false;
}

/* The present sight. */
static struct sight look(struct tl_walk *walk, const struct tl_flow_now *now)
{
    struct tl_walk_kept *const k = walk->kept;
    if (k->seen)
        return k->sight;
    k->seen = true;
    k->sight = (struct sight){0, UNBOUND};
    if (walk->image && (now->has_mode || now->has_context || now->has_vmid))
        k->sight.view = tl_flow_now_view(now, walk->image, &k->sight.space);
    return k->sight;
}

static bool is_equal(struct sight a, struct sight b)
{
    return a.view == b.view && a.space == b.space;
}

static size_t slot_of(uint64_t pc, size_t n)
{
    return (pc >> 1 ^ pc >> 11) % n;
}

uint32_t tl_walk_kept_function(struct tl_walk *walk, const struct tl_flow_now *now, uint64_t pc)
{
    if (!walk->image)
        return TL_NO_FUNCTION;
    const size_t i = slot_of(pc, FUNCTIONS);
    const struct sight sight = look(walk, now);
    struct tl_walk_kept *const k = walk->kept;
    if (!k->functions[i].known || k->functions[i].pc != pc ||
        !is_equal(k->functions[i].sight, sight)) {
        k->functions[i].sight = sight;
        k->functions[i].pc = pc;
        k->functions[i].function = tl_flow_now_function(now, walk->image, pc);
        k->functions[i].known = true;
    }
    return k->functions[i].function;
}

/* ---- blocks ---------------------------------------------------------------------------------- */

/* Are the next records those of the block, but for the destination? */
static bool is_next(const struct tl_walk *walk, const struct tl_flow_now *now,
                    const struct kept *known, uint64_t n)
{
    const struct tl_block *const b = &known->block;
    const uint8_t *const p = walk->frame.p + walk->at;
    if (b->pc != walk->pc || b->n > n || b->isa != now->isa ||
        b->coded_size > walk->frame.n - walk->at)
        return false;
    const size_t behind = known->target + sizeof(uint64_t);
    return memcmp(p, b->coded, known->target) == 0 &&
           memcmp(p + behind, b->coded + behind, b->coded_size - behind) == 0;
}

const struct tl_block *tl_walk_kept_take(struct tl_walk *walk, const struct tl_flow_now *now,
                                         uint64_t n)
{
    struct kept *const *const set = walk->kept->blocks[slot_of(walk->pc, SETS)];
    for (size_t i = 0; i < WAYS && set[i]; i++) {
        if (!is_next(walk, now, set[i], n) || !is_equal(set[i]->sight, look(walk, now)))
            continue;
        const struct tl_block *const b = &set[i]->block;
        const uint64_t target = tl_le64(walk->frame.p + walk->at + set[i]->target);
        if (target == b->pc + b->size)
            return NULL;
        walk->pc = target;
        walk->at += b->coded_size;
        walk->marker += b->n;
        return b;
    }
    return NULL;
}

/* Memory until all begins anew; NULL: there is none. */
static void *reserve(struct tl_walk_kept *k, size_t n)
{
    if (!k->pieces || k->pieces->n + n > PIECE_BYTES) {
        struct piece *const piece = malloc(sizeof *piece);
        if (!piece)
            return NULL;
        piece->next = k->pieces;
        piece->n = 0;
        k->pieces = piece;
        k->n += sizeof *piece;
    }
    void *const p = k->pieces->bytes + k->pieces->n;
    k->pieces->n += (n + 15) / 16 * 16;
    return p;
}

void tl_walk_keep(struct tl_walk *walk, const struct tl_flow_now *now, const struct tl_block *block,
                  size_t last)
{
    const size_t at = (uintptr_t)block->coded, n = walk->at - at;
    const uint8_t *const p = walk->frame.p + at;
    if (n > BYTES_MOST || last < TL_STF_TARGET_BYTES || p[n - last] != TL_STF_INST_PC_TARGET ||
        tl_le64(p + n - last + 1) != walk->pc || walk->pc == block->pc + block->size)
        return;
    struct kept *const known = reserve(walk->kept, sizeof *known + n);
    if (!known)
        return;
    uint8_t *const coded = (uint8_t *)(known + 1);
    memcpy(coded, p, n);
    *known = (struct kept){
        .block = *block, .sight = look(walk, now), .target = (uint32_t)(n - last + 1)};
    known->block.code = NULL;
    known->block.coded = coded;
    known->block.coded_size = (uint32_t)n;
    struct kept **const set = walk->kept->blocks[slot_of(block->pc, SETS)];
    memmove(set + 1, set, (WAYS - 1) * sizeof(struct kept *));
    set[0] = known;
}
