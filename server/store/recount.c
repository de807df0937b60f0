/* SPDX-License-Identifier: MIT */
/*
 * What a walk reads goes through an indexer again, as it did when the shard was built, and in the
 * same steps: block by block, as the decoder delivered them, since functions and depths are told of
 * whole blocks.
 */
#include "store/recount.h"

#include "store/indexer.h"
#include "store/insn_stats.h"
#include "store/shard_builder.h"
#include "store/stackmark.h"
#include "store/walk.h"

#include <stdlib.h>

struct recount {
    struct tl_view *view;
    struct tl_indexer index;
};

static int count_one(struct recount *c, const struct tl_item *item)
{
    static const struct tl_indexer_room room = {UINT64_MAX, UINT64_MAX, SIZE_MAX};
    struct tl_stf_flow_at at = {0};
    const int r = tl_indexer_items(&c->index, item, 1, &room, &at);
    return r > 0 ? TL_OK : r;
}

/* A walk joins blocks where the flow went straight on: take them apart again. */
static int count_run(struct recount *c, const struct tl_item *item)
{
    const struct tl_block *const run = item->block;
    struct tl_block block;
    int r = TL_OK;
    tl_block_init(&block, run->pc, (enum tl_isa)run->isa);
    block.code = run->code;
    for (uint32_t at = 0, n = 0; n < run->n && r >= 0; n++) {
        struct tl_insn insn = {0};
        tl_block_insn(run, at, &insn);
        at += insn.size;
        block.n++;
        block.size += insn.size;
        const bool last = n + 1 == run->n;
        if ((insn.kind == TL_INSN_PLAIN || insn.size == 0) && !last)
            continue;
        tl_block_set_last(&block, &insn);
        block.last_size = insn.size;
        block.function = tl_flow_now_function(&c->index.now, c->index.image, block.pc);
        block.entry = tl_begins_function(c->index.image, block.function, block.pc);
        if (last)
            block.size = (uint32_t)(run->pc + run->size - block.pc);
        r = count_one(c, &(struct tl_item){.kind = TL_ITEM_BLOCK,
                                           .flags = last ? item->flags : 0,
                                           .n = block.n,
                                           .offset = item->offset,
                                           .block = &block});
        tl_block_init(&block, run->pc + at, (enum tl_isa)run->isa);
        block.code = run->code ? run->code + at : NULL;
    }
    return r;
}

static int count_chunk(struct recount *c, const struct tl_walk *walk, const struct tl_chunk *chunk)
{
    int r = TL_OK;
    c->index.now = chunk->at;
    if (walk->stack.n > 0)
        r = tl_stackmark_decode(&c->index.calls, walk->stack);
    for (size_t i = 0; i < walk->n && r >= 0; i++)
        r = walk->items[i].kind == TL_ITEM_BLOCK ? count_run(c, &walk->items[i])
                                                 : count_one(c, &walk->items[i]);
    return r >= 0 && tl_shard_builder_position(c->index.shard) != chunk->first + chunk->n ? TL_BAD
                                                                                          : r;
}

/* The walk stands behind chunk `i`: if a frame ends there too, the next one begins where it
 * stands. */
static void learn_pc(struct tl_shard_index *index, size_t i, const struct tl_walk *walk)
{
    const uint32_t stf = index->chunks[i].stf;
    const bool ends = i + 1 < index->n_chunks && index->chunks[i + 1].stf > stf;
    if (ends && index->chunks[i + 1].stf < index->n_frames && walk->view)
        index->frames[index->chunks[i + 1].stf].pc = walk->pc;
}

/* The walk stands behind the last chunk: is that behind the last record, too? */
static void learn_end(struct tl_shard_index *index, const struct tl_walk *walk)
{
    const bool last = walk->view && walk->frame_number + 1 == index->n_frames;
    if (index->version >= 4 && last)
        index->frames[0].pc = walk->at == walk->frame.n ? walk->pc : 0;
}

static int count_all(struct recount *c, bool pcs, struct tl_fail *fail)
{
    struct tl_shard_index *index = &c->view->index;
    struct tl_walk walk = {0};
    const struct tl_walk_range range = {0, UINT64_MAX, true, c->index.protocol};
    int r = TL_OK;
    for (size_t i = 0; i < index->n_chunks && r >= 0; i++) {
        const bool last = i + 1 == index->n_chunks;
        struct tl_blob *log;
        r = tl_walk_chunk(&walk, c->view, i, &range, fail);
        if (r >= 0)
            r = count_chunk(c, &walk, &index->chunks[i]);
        if (r >= 0 && pcs)
            learn_pc(index, i, &walk);
        /* A last one is closed, too, so that there are as many as before. */
        if (r >= 0)
            r = tl_shard_builder_next_chunk(c->index.shard, last ? 0 : index->chunks[i + 1].stf,
                                            last ? &c->index.now : &index->chunks[i + 1].at, NULL,
                                            &log);
    }
    if (r >= 0 && pcs)
        learn_end(index, &walk);
    tl_walk_fini(&walk);
    return r;
}

/* What blocks do not know themselves. */
static int count_insns(struct recount *c, struct tl_fail *fail)
{
    const struct tl_walk_range all = {
        .to = UINT64_MAX, .tail = true, .protocol = c->index.protocol};
    struct tl_insn_stats *insn_stats;
    int r = tl_insn_stats_new(&insn_stats, c->index.image, c->index.protocol);
    if (r < 0)
        return r;
    r = tl_insn_stats_view(insn_stats, c->view, &all, fail);
    if (r >= 0)
        tl_insn_stats_tell(insn_stats, &c->index.shard->view->index.stats);
    tl_insn_stats_free(insn_stats);
    return r;
}

/* Take over what was counted; where things are stays. */
static void take_over(struct tl_shard_index *to, struct tl_shard_index *from)
{
    for (size_t i = 0; i < to->n_chunks; i++) {
        struct tl_chunk *c = &from->chunks[i];
        const struct tl_chunk *old = &to->chunks[i];
        c->at = old->at;
        c->stf = old->stf;
        c->marker = old->marker;
        c->items_plain = old->items_plain;
    }
    from->row.byte_first = from->row.at.offset;
    to->row = from->row;
    struct tl_chunk *chunks = to->chunks;
    to->chunks = from->chunks;
    to->cap_chunks = from->cap_chunks;
    from->chunks = chunks;
    uint64_t *code = to->code;
    to->code = from->code;
    to->n_code = from->n_code;
    to->cap_code = from->cap_code;
    from->code = code;
    const struct tl_shard_stats stats = to->stats;
    to->stats = from->stats;
    from->stats = stats;
    const struct tl_buckets buckets = to->buckets;
    to->buckets = from->buckets;
    from->buckets = buckets;
}

int tl_view_recount(struct tl_view *view, enum tl_protocol protocol, const struct tl_image *image,
                    bool pcs, struct tl_fail *fail)
{
    struct tl_shard_index *index = &view->index;
    struct recount *c = calloc(1, sizeof(*c));
    int r = c && index->n_chunks > 0 ? TL_OK : TL_NOMEM;
    if (r >= 0) {
        const struct tl_flow_now *at = &index->chunks[0].at;
        c->view = view;
        tl_indexer_init(&c->index, protocol, image, at, index->row.first);
        c->index.shard = tl_shard_builder_new(index->row.number, index->row.first, at);
        r = c->index.shard ? count_all(c, pcs, fail) : TL_NOMEM;
    }
    if (r >= 0 && tl_insn_stats_wanted(protocol)) {
        c->index.shard->by_insn = true;
        r = count_insns(c, fail);
    }
    if (r >= 0) {
        tl_shard_builder_tell(c->index.shard);
        take_over(index, &c->index.shard->view->index);
    }
    if (c)
        tl_shard_builder_free(c->index.shard);
    free(c);
    return r;
}
