/* SPDX-License-Identifier: MIT */
/*
 * What a walk reads goes through the part again that the builder uses, and in the same steps: block
 * by block, as the decoder delivered them, since functions and depths are told of whole blocks.
 */
#include "store/recount.h"

#include "store/census.h"
#include "store/count.h"
#include "store/part.h"
#include "store/stackmark.h"
#include "store/walk.h"

#include <stdlib.h>

struct recount {
    struct tl_view *view;
    enum tl_protocol protocol;
    const struct tl_image *image;
    struct tl_part *part;
    struct tl_flow_now now;
    struct tl_callstack calls;
    bool within; /* the last block was not counted to its end */
};

static uint64_t position(const struct recount *c)
{
    const struct tl_shard_row *row = &c->part->view->index.row;
    return row->first + row->n;
}

static int follow(struct recount *c, const struct tl_item *item)
{
    c->calls.insns = position(c);
    const int r = tl_callstack_push(&c->calls, item, 1);
    c->now.depth = tl_callstack_depth(&c->calls);
    return r;
}

static int count_whole(struct recount *c, const struct tl_item *item)
{
    struct tl_shard_row *row = &c->part->view->index.row;
    struct tl_count count = {
        .position = position(c),
        .room = item->n,
        .isa = item->block->isa,
        .now = &c->now,
    };
    const int r = tl_count_items(c->part, &c->calls, item, 1, &count);
    c->now.depth = tl_callstack_depth(&c->calls);
    row->n += count.n;
    c->part->open.n += count.n;
    return r;
}

static int count_alone(struct recount *c, const struct tl_item *item)
{
    const struct tl_block *b = item->block;
    int r = follow(c, item);
    if (r >= 0)
        r = tl_part_offset(c->part, item->offset);
    if (r >= 0)
        r = tl_part_insns(c->part, &c->now, b->n, b->pc, b->size, b->function);
    if (r >= 0)
        tl_tallying_code(&c->part->tallying, b, 0, b->n, true);
    if (r >= 0 && b->entry)
        tl_part_called(c->part);
    if (r >= 0)
        tl_part_left(c->part, item->flags & TL_ITEM_TAKEN);
    return r;
}

static int count_block(struct recount *c, const struct tl_item *item)
{
    const struct tl_block *b = item->block;
    const bool ends = b->last_kind != TL_INSN_PLAIN || b->n == TL_BLOCK_MAX;
    const bool whole = ends && !c->within && b->isa == c->now.isa;
    c->within = !ends;
    c->now.isa = b->isa;
    const int r = whole ? count_whole(c, item) : count_alone(c, item);
    if (r < 0)
        return r;
    c->part->view->index.row.markers += b->n;
    c->part->view->index.row.byte_last = item->offset;
    return TL_OK;
}

/* A walk joins blocks where the flow went straight on: take them apart again. */
static int count_run(struct recount *c, const struct tl_item *item)
{
    const struct tl_block *run = item->block;
    struct tl_block block;
    tl_block_init(&block, run->pc, (enum tl_isa)run->isa);
    block.code = run->code;
    uint32_t n = 0;
    for (uint32_t at = 0; n < run->n; n++) {
        struct tl_insn insn = {0};
        tl_block_insn(run, at, &insn);
        at += insn.size;
        block.n++;
        block.size += insn.size;
        const bool last = n + 1 == run->n;
        if ((insn.kind == TL_INSN_PLAIN && !last) || (insn.size == 0 && !last))
            continue;
        tl_block_set_last(&block, &insn);
        block.last_size = insn.size;
        block.always = insn.kind == TL_INSN_BRANCH && !insn.link && !insn.conditional;
        block.function = tl_flow_now_function(&c->now, c->image, block.pc);
        block.entry = tl_begins_function(c->image, block.function, block.pc);
        if (last)
            block.size = (uint32_t)(run->pc + run->size - block.pc);
        tl_block_sum_up(&block);
        const struct tl_item one = {.kind = TL_ITEM_BLOCK,
                                    .flags = last ? item->flags : 0,
                                    .n = block.n,
                                    .offset = item->offset,
                                    .block = &block};
        const int r = count_block(c, &one);
        if (r < 0)
            return r;
        tl_block_init(&block, run->pc + at, (enum tl_isa)run->isa);
        block.code = run->code ? run->code + at : NULL;
    }
    return TL_OK;
}

static int count_item(struct recount *c, const struct tl_item *item)
{
    const bool point = tl_item_is_point(c->protocol, item->kind);
    c->within = false;
    tl_flow_now_item(&c->now, item);
    const int r = follow(c, item);
    if (r < 0)
        return r;
    const uint64_t pc = item->kind == TL_ITEM_BRANCH ? item->value : item->pc;
    const uint32_t function = point && item->kind != TL_ITEM_SOFTWARE
                                  ? tl_flow_now_function(&c->now, c->image, pc)
                                  : TL_NO_FUNCTION;
    struct tl_part_items items;
    int counted = tl_part_item(c->part, &c->now, item, &items);
    if (counted >= 0 && point)
        counted = tl_part_insns(c->part, &c->now, 1, pc, 1, function);
    if (counted >= 0 && point && tl_begins_function(c->image, function, pc))
        tl_part_called(c->part);
    return counted;
}

static int count_chunk(struct recount *c, const struct tl_walk *walk, const struct tl_chunk *chunk)
{
    int r = TL_OK;
    c->now = chunk->at;
    if (walk->stack.n > 0)
        r = tl_stackmark_decode(&c->calls, walk->stack);
    for (size_t i = 0; i < walk->n && r >= 0; i++)
        r = walk->items[i].kind == TL_ITEM_BLOCK ? count_run(c, &walk->items[i])
                                                 : count_item(c, &walk->items[i]);
    return r >= 0 && position(c) != chunk->first + chunk->n ? TL_BAD : r;
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

static int count_all(struct recount *c, bool pcs, struct tl_fail *fail)
{
    struct tl_shard_index *index = &c->view->index;
    struct tl_walk walk = {0};
    const struct tl_walk_range range = {0, UINT64_MAX, true, c->protocol};
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
            r = tl_part_next_chunk(c->part, last ? 0 : index->chunks[i + 1].stf,
                                   last ? &c->now : &index->chunks[i + 1].at, NULL, &log);
    }
    tl_walk_fini(&walk);
    return r;
}

/* What blocks do not know themselves. */
static int count_census(struct recount *c, struct tl_fail *fail)
{
    const struct tl_walk_range all = {.to = UINT64_MAX, .tail = true, .protocol = c->protocol};
    struct tl_census *census;
    int r = tl_census_new(&census, c->image, c->protocol);
    if (r < 0)
        return r;
    r = tl_census_view(census, c->view, &all, fail);
    if (r >= 0)
        tl_census_tell(census, &c->part->view->index.tally);
    tl_census_free(census);
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
    const struct tl_tally tally = to->tally;
    to->tally = from->tally;
    from->tally = tally;
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
        c->protocol = protocol;
        c->image = image;
        tl_callstack_init(&c->calls, image, index->row.first, NULL, NULL);
        c->part = tl_part_new(index->row.number, index->row.first, at);
        r = c->part ? count_all(c, pcs, fail) : TL_NOMEM;
    }
    if (r >= 0 && tl_census_wanted(protocol)) {
        c->part->counted = true;
        r = count_census(c, fail);
    }
    if (r >= 0) {
        tl_part_tell(c->part);
        take_over(index, &c->part->view->index);
    }
    if (c)
        tl_part_free(c->part);
    free(c);
    return r;
}
