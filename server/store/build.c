/* SPDX-License-Identifier: MIT */
/*
 * Two things happen to every item, at two paces: it is logged (counted, indexed) at once, and it
 * goes through the STF flow writer, which holds an instruction back until it knows where the
 * flow goes on. A cut (of a .zstf chunk or a shard) is therefore first reached by the log, and
 * stays pending until the writer has reached it too; until then items are taken one by one and
 * go to the writer first. Only items without an instruction can come in between.
 */
#include "store/build_parts.h"

#include "store/count.h"

#include <stdlib.h>

/* Limits for items without positions, so that they cannot grow a chunk or shard without end. */
#define CHUNK_LOG_BYTES (256u << 10)
#define CHUNK_POSITIONS (2u * TL_CHUNK_MARKERS)
#define SHARD_LOG_BYTES (8u << 20)

/* The census that the part that is being built takes part in. */
static struct tl_census *census_of(const struct tl_build *b)
{
    return b->part->ghost ? NULL : b->census;
}

int tl_build_part(struct tl_build *b, uint64_t number)
{
    b->part = tl_part_new(number, b->position, &b->now);
    if (!b->part)
        return TL_NOMEM;
    b->part->ghost = number < b->options.sealed;
    b->part->tallying.untold = b->part->ghost;
    b->part->counted = b->census && !b->part->ghost;
    if (b->part->counted)
        tl_census_begin(b->census, &b->now);
    /* Shards are of much the same size. */
    const struct tl_part *const before = b->closing;
    int r = TL_OK;
    if (before)
        r = tl_buckets_reserve(&b->part->view->index.buckets, before->view->index.buckets.n + 1);
    if (before && r >= 0)
        r = tl_buf_reserve(&b->part->log.bytes, before->log.bytes.cap);
    return r < 0 ? r : tl_part_begin(b->part, &b->calls);
}

/* ---- life ---------------------------------------------------------------------------------- */

int tl_build_new(struct tl_build **out, const struct tl_build_options *options)
{
    struct tl_build *b = calloc(1, sizeof(*b));
    if (!b)
        return TL_NOMEM;
    b->options = *options;
    if (b->options.chunk_markers == 0)
        b->options.chunk_markers = TL_CHUNK_MARKERS;
    b->keeps = tl_count_keeps(options->protocol);
    tl_callstack_init(&b->calls, options->image, 0, NULL, NULL);
    const struct tl_stf_flow_options flow = {.isa = TL_ISA_NONE, .marks = true};
    int r = tl_stf_flow_new(&b->flow, &flow, NULL);
    if (r >= 0 && tl_census_wanted(options->protocol))
        r = tl_census_new(&b->census, options->image, options->protocol);
    if (r >= 0)
        r = tl_build_part(b, 0);
    if (r < 0) {
        tl_build_free(b);
        return r;
    }
    *out = b;
    return TL_OK;
}

void tl_build_free(struct tl_build *b)
{
    if (!b)
        return;
    tl_part_free(b->part);
    tl_part_free(b->closing);
    tl_stf_flow_free(b->flow);
    tl_packer_free(b->packer);
    tl_census_free(b->census);
    free(b);
}

/* ---- cuts ---------------------------------------------------------------------------------- */

/* Where the shards that are there end is known: these must end there too. */
static int check_ghost(const struct tl_build *b, const struct tl_shard_row *row)
{
    const bool last = row->number + 1 == b->options.sealed;
    return last && row->first + row->n != b->options.sealed_position ? TL_BAD : TL_OK;
}

int tl_build_packer(struct tl_build *b)
{
    return b->packer ? TL_OK : tl_packer_new(&b->packer);
}

/* What packs, here and now; where a pool does it, NULL. */
static int packer_for(struct tl_build *b, struct tl_packer **out)
{
    const int r = b->options.packing ? TL_OK : tl_build_packer(b);
    *out = b->options.packing ? NULL : b->packer;
    return r;
}

/* Have a blob packed by the pool, if there is one. */
static int pack(struct tl_build *b, struct tl_blob *blob)
{
    if (!blob || !b->options.packing)
        return TL_OK;
    const int r = tl_build_packer(b);
    return r < 0 ? r : tl_packing_add(b->options.packing, blob, b->packer);
}

/* The writer's records as a blob, packed now where there is no pool. NULL: no memory. */
static struct tl_blob *take_records(struct tl_build *b)
{
    struct tl_stf_piece piece = {0};
    const struct tl_bytes records = tl_stf_flow_bytes(b->flow);
    struct tl_packer *packer;
    struct tl_blob *blob;
    if (packer_for(b, &packer) < 0)
        return NULL;
    if (packer) {
        size_t n;
        const struct tl_stf_mark *marks = tl_stf_flow_marks(b->flow, &n);
        blob = tl_blob_pack(packer, records, marks, n);
        tl_stf_flow_take(b->flow);
        return blob;
    }
    tl_packing_piece(b->options.packing, &piece);
    /* Chunks are of much the same size. */
    if (piece.stf.cap < records.n && tl_buf_reserve(&piece.stf, records.n + records.n / 4) < 0)
        return NULL;
    tl_stf_flow_swap(b->flow, &piece);
    blob = tl_blob_take(&piece);
    tl_buf_fini(&piece.stf);
    free(piece.marks);
    return blob;
}

static int seal(struct tl_build *b, struct tl_part *part)
{
    struct tl_view *view = NULL;
    struct tl_blob *log = NULL;
    struct tl_packer *packer;
    int r = packer_for(b, &packer);
    if (r >= 0)
        r = part->ghost ? check_ghost(b, &part->view->index.row)
                        : tl_part_complete(part, packer, &view, &log);
    if (r >= 0)
        r = pack(b, log);
    if (r >= 0 && view) {
        r = b->options.seal(b->options.context, view);
        view = NULL;
    }
    tl_view_put(view);
    tl_part_free(part);
    return r;
}

/* The writer's records become a frame of `part`. Records alone, behind full frames, stay out:
 * other tools expect an instruction in every chunk, and the index has what they say. */
static int take_frame(struct tl_build *b, struct tl_part *part)
{
    const uint64_t markers = tl_stf_flow_markers(b->flow);
    const uint64_t pc = part->view->index.n_frames > 0 ? tl_stf_flow_chunk_pc(b->flow) : 0;
    const bool wanted = markers > b->frame_marker || part->view->index.n_frames == 0;
    const uint64_t marker = b->frame_marker;
    b->frame_marker = markers;
    if (!wanted || part->ghost) {
        tl_stf_flow_take(b->flow);
        return wanted ? tl_part_frame(part, NULL, 0, marker, pc) : TL_OK;
    }
    const size_t plain = tl_stf_flow_bytes(b->flow).n;
    struct tl_blob *blob = take_records(b);
    if (!blob)
        return TL_NOMEM;
    const int r = tl_part_frame(part, blob, plain, marker, pc);
    return r < 0 ? r : pack(b, blob);
}

/* The writer has reached the pending cut. */
static int carry_out_cut(struct tl_build *b)
{
    const enum cut cut = b->cut;
    b->cut = CUT_NONE;
    if (cut == CUT_FRAME)
        return take_frame(b, b->part);
    struct tl_part *part = b->closing;
    b->closing = NULL;
    int r = take_frame(b, part);
    if (r < 0) {
        tl_part_free(part);
        return r;
    }
    tl_stf_flow_restart(b->flow);
    b->frame_marker = 0;
    return seal(b, part);
}

/* All that the part will have is logged. */
static void end_census(struct tl_build *b)
{
    if (b->part->counted)
        tl_census_tell(b->census, &b->part->view->index.tally);
}

/* The log has reached the end of a shard: go on in a new one. */
static int begin_cut_shard(struct tl_build *b, enum cut cut)
{
    const struct tl_shard_row *row = &b->part->view->index.row;
    end_census(b);
    b->closing = b->part;
    b->cut = cut;
    b->stop = row->markers;
    b->frame = 0;
    return tl_build_part(b, row->number + 1);
}

static int next_chunk(struct tl_build *b, uint32_t frame)
{
    struct tl_packer *packer;
    struct tl_blob *log = NULL;
    int r = packer_for(b, &packer);
    if (r >= 0)
        r = tl_part_next_chunk(b->part, frame, &b->now, packer, &log);
    if (r >= 0)
        r = pack(b, log);
    if (census_of(b))
        tl_census_mark(b->census);
    return r < 0 ? r : tl_part_begin(b->part, &b->calls);
}

static int begin_cut_frame(struct tl_build *b)
{
    b->cut = CUT_FRAME;
    b->stop = b->part->view->index.row.markers;
    return next_chunk(b, ++b->frame);
}

/* Is it time for a cut, now that something was logged? `marker`: it was an instruction. */
static int check_cut(struct tl_build *b, bool marker)
{
    const struct tl_part *part = b->part;
    const struct tl_shard_row *row = &part->view->index.row;
    const bool pending = b->cut != CUT_NONE;
    if (!pending && row->n >= b->options.shard_insns)
        return begin_cut_shard(b, marker ? CUT_SHARD : CUT_HERE);
    if (!pending && marker && row->markers % b->options.chunk_markers == 0)
        return begin_cut_frame(b);
    if (!pending && part->log_bytes + tl_part_logged(part) >= SHARD_LOG_BYTES)
        return begin_cut_shard(b, marker ? CUT_SHARD : CUT_HERE);
    if (tl_part_logged(part) >= CHUNK_LOG_BYTES || part->open.n >= CHUNK_POSITIONS)
        return next_chunk(b, b->frame);
    return TL_OK;
}

/* ---- logging ------------------------------------------------------------------------------- */

/* Byte of a block's instruction `index`. */
static uint32_t insn_at(const struct tl_block *block, uint32_t index)
{
    if (block->isa == TL_ISA_A64 || block->isa == TL_ISA_A32)
        return index * 4;
    if (index == block->n)
        return block->size;
    uint32_t at = 0;
    for (uint32_t i = 0; i < index && at < block->size; i++) {
        struct tl_insn insn;
        tl_block_insn(block, at, &insn);
        at += insn.size;
    }
    return at;
}

/* Follow calls, so that `now` has the depth at which the item happens. */
static int track_calls(struct tl_build *b, const struct tl_item *item)
{
    b->calls.insns = b->position;
    const int r = tl_callstack_push(&b->calls, item, 1);
    b->now.depth = tl_callstack_depth(&b->calls);
    return r;
}

/* Positions that can be logged before anything else than counting is due: before the one that
 * makes a cut. */
static uint64_t plain_room(const struct tl_build *b)
{
    const struct tl_part *part = b->part;
    const struct tl_shard_row *row = &part->view->index.row;
    const uint64_t per_frame = b->options.chunk_markers;
    if (row->n >= b->options.shard_insns || part->open.n >= CHUNK_POSITIONS)
        return 0;
    uint64_t room = per_frame - row->markers % per_frame - 1;
    if (room >= b->options.shard_insns - row->n)
        room = b->options.shard_insns - row->n - 1;
    if (room >= CHUNK_POSITIONS - part->open.n)
        room = CHUNK_POSITIONS - part->open.n - 1;
    return room;
}

/* The blocks that were logged, of items that are no paths, go through the census. In front of some
 * of them an offset was noted: `noted` is the last before. */
static void census_blocks(struct tl_build *b, const struct tl_item *items,
                          const struct tl_count *count, uint64_t noted)
{
    uint64_t position = count->position;
    for (size_t i = 0; i < count->items; i++) {
        if (position >> TL_PART_OFFSETS != noted)
            tl_census_mark(b->census);
        noted = position >> TL_PART_OFFSETS;
        tl_census_block(b->census, &items[i], 0, 0, items[i].n);
        position += items[i].n;
    }
}

/* Who is counted by a census hardly has any paths: they are logged block by block. */
static size_t blocks_in_front(const struct tl_item *items, size_t n)
{
    size_t i = 0;
    while (i < n && items[i].kind == TL_ITEM_BLOCK)
        i++;
    return i;
}

static void add_totals(struct tl_build *b, const struct tl_part_items *items)
{
    struct tl_build_totals *t = &b->totals;
    t->gaps += items->gaps;
    t->events += items->events;
    if (items->anchors == 0)
        return;
    if (t->anchors == 0)
        t->anchor_first = items->anchor_first;
    t->anchor_last = items->anchor_last;
    t->anchors += items->anchors;
}

/* Bytes of items that the open chunk, or its shard, has room for in its log. */
static size_t log_room(const struct tl_part *part)
{
    const uint64_t shard =
        part->log_bytes < SHARD_LOG_BYTES ? SHARD_LOG_BYTES - part->log_bytes : 0;
    return shard < CHUNK_LOG_BYTES ? (size_t)shard : CHUNK_LOG_BYTES;
}

/* Log as many whole blocks as can be, of items[0..n) from step `from` of the first on, and what
 * stands between them. */
static int log_blocks(struct tl_build *b, const struct tl_item *items, size_t n, size_t from,
                      struct tl_count *count)
{
    struct tl_part *const part = b->part;
    *count = (struct tl_count){.position = b->position,
                               .room = plain_room(b),
                               .keeps = b->keeps,
                               .log_room = log_room(part),
                               .isa = b->now.isa,
                               .now = &b->now,
                               .steps = from};
    struct tl_census *const census = census_of(b);
    const uint64_t noted = part->offset_noted;
    if (census)
        n = blocks_in_front(items, n);
    if (n == 0)
        return TL_OK;
    const int r = tl_count_items(part, &b->calls, items, n, count);
    if (r < 0 || (count->n == 0 && count->kept.kinds == 0))
        return r;
    if (census)
        census_blocks(b, items, count, noted);
    struct tl_shard_row *const row = &part->view->index.row;
    row->n += count->n;
    row->markers += count->n;
    part->open.n += count->n;
    b->position += count->n;
    if (count->n > 0)
        part->last_position = b->position - 1;
    row->byte_last = b->now.offset;
    b->now.depth = tl_callstack_depth(&b->calls);
    tl_part_kept(part, &count->kept);
    add_totals(b, &count->kept);
    return count->full ? check_cut(b, false) : TL_OK;
}

/* Log instructions [*insn, …) of a block, up to the next cut. */
static int log_block(struct tl_build *b, const struct tl_item *item, uint32_t *insn)
{
    const struct tl_block *block = item->block;
    struct tl_shard_row *row = &b->part->view->index.row;
    const uint64_t per_frame = b->options.chunk_markers;
    uint64_t n = item->n - *insn;
    if (n > per_frame - row->markers % per_frame)
        n = per_frame - row->markers % per_frame;
    if (n > b->options.shard_insns - row->n)
        n = b->options.shard_insns - row->n;
    /* A part of a block is left straight on, only its end as the item says. */
    struct tl_item part = *item;
    if (*insn + n < item->n)
        part.flags &= (uint8_t)~TL_ITEM_TAKEN;
    const uint64_t logged = b->part->log.n;
    int r = track_calls(b, &part);
    if (block->isa != b->now.isa && r >= 0) {
        r = tl_part_isa(b->part, (enum tl_isa)block->isa);
        b->now.isa = block->isa;
    }
    if (r >= 0)
        r = tl_part_offset(b->part, item->offset);
    const uint32_t from = *insn == 0 ? 0 : insn_at(block, *insn);
    const uint32_t to = insn_at(block, *insn + (uint32_t)n);
    if (r >= 0)
        r = tl_part_insns(b->part, &b->now, n, block->pc + from, to - from, block->function);
    if (r < 0)
        return r;
    if (census_of(b) && b->part->log.n != logged)
        tl_census_mark(b->census);
    if (census_of(b))
        tl_census_block(b->census, item, *insn, from, (uint32_t)n);
    else if (*insn == 0 && n == block->n)
        tl_tallying_block(&b->part->tallying, block);
    else
        tl_tallying_code(&b->part->tallying, block, from, n, *insn + n == block->n);
    if (*insn == 0 && block->entry)
        tl_part_called(b->part);
    b->part->last_position = b->position + n - 1;
    b->position += n;
    row->markers += n;
    row->byte_last = b->now.offset = item->offset;
    *insn += (uint32_t)n;
    tl_part_left(b->part, *insn == item->n && item->flags & TL_ITEM_TAKEN);
    return check_cut(b, true);
}

static int log_item(struct tl_build *b, const struct tl_item *item)
{
    const bool point = tl_item_is_point(b->options.protocol, item->kind);
    uint64_t pc = item->pc;
    uint32_t function = TL_NO_FUNCTION;
    tl_flow_now_item(&b->now, item);
    const int tracked = track_calls(b, item);
    if (tracked < 0)
        return tracked;
    if (item->kind == TL_ITEM_BRANCH)
        pc = item->value;
    if (point && item->kind != TL_ITEM_SOFTWARE)
        function = tl_flow_now_function(&b->now, b->options.image, pc);
    if (census_of(b))
        tl_census_item(b->census, item);
    struct tl_part_items items;
    int r = tl_part_item(b->part, &b->now, item, &items);
    add_totals(b, &items);
    if (r >= 0 && point)
        r = tl_part_insns(b->part, &b->now, 1, pc, 1, function);
    if (r < 0)
        return r;
    if (point && tl_begins_function(b->options.image, function, pc))
        tl_part_called(b->part);
    b->part->log.turned &= !point;
    b->position += point;
    return check_cut(b, false);
}

/*
 * Log a path from instruction *done on, which is the first of step `i` or lies in a step behind,
 * up to the next cut; `*whole`: up to its end.
 */
static int log_path(struct tl_build *b, const struct tl_item *item, size_t i, uint32_t within,
                    uint32_t *done, bool *whole)
{
    for (; i < item->n && within >= tl_path_block(item->path[i])->n; i++)
        within -= tl_path_block(item->path[i])->n;
    while (i < item->n && b->cut == CUT_NONE) {
        const uint64_t begin = b->position;
        int r = TL_OK;
        if (within == 0) {
            struct tl_count count;
            r = log_blocks(b, item, 1, i, &count);
            i = count.items > 0 ? item->n : count.steps;
        }
        if (r >= 0 && i < item->n) {
            const struct tl_item one = tl_path_item(item, i);
            r = log_block(b, &one, &within);
            if (within == one.n) {
                within = 0;
                i++;
            }
        }
        *done += (uint32_t)(b->position - begin);
        if (r < 0)
            return r;
    }
    *whole = i == item->n;
    return TL_OK;
}

/* Log blocks from `at` on, up to the next cut or another item. */
static int log_code(struct tl_build *b, const struct tl_item *items, size_t n,
                    struct tl_stf_flow_at *at)
{
    struct tl_count count = {0};
    uint32_t within = at->insn; /* of a path, behind its step count.steps */
    int r = TL_OK;
    if (at->insn == 0) {
        r = log_blocks(b, items + at->item, n - at->item, 0, &count);
        at->item += count.items;
        at->insn = (uint32_t)count.within;
        if (r < 0 || at->item == n)
            return r;
    }
    if (b->cut != CUT_NONE)
        return r;
    const struct tl_item *const item = &items[at->item];
    bool whole = false;
    if (item->kind == TL_ITEM_PATH) {
        r = log_path(b, item, count.steps, within, &at->insn, &whole);
    } else if (item->kind == TL_ITEM_BLOCK) {
        r = item->n > 0 ? log_block(b, item, &at->insn) : TL_OK;
        whole = at->insn == item->n;
    }
    if (whole) {
        at->item++;
        at->insn = 0;
    }
    return r;
}

/* Log from `at` on until all items are logged or a cut is reached. */
static int log_until_cut(struct tl_build *b, const struct tl_item *items, size_t n,
                         struct tl_stf_flow_at *at)
{
    int r = TL_OK;
    while (r >= 0 && at->item < n && b->cut == CUT_NONE) {
        const struct tl_item *const item = &items[at->item];
        if (item->kind == TL_ITEM_BLOCK || item->kind == TL_ITEM_PATH ||
            (b->keeps >> item->kind & 1 && !census_of(b)))
            r = log_code(b, items, n, at);
        else
            r = log_item(b, &items[at->item++]);
    }
    return r;
}

/* ---- items --------------------------------------------------------------------------------- */

/* A cut behind an item waits for nothing: writer and log begin the next shard together. */
static int cut_here(struct tl_build *b)
{
    if (b->cut != CUT_HERE)
        return TL_OK;
    const int r = tl_stf_flow_finish(b->flow);
    return r < 0 ? r : carry_out_cut(b);
}

/* A cut is pending: give the writer one more item. */
static int resolve(struct tl_build *b, const struct tl_item *items, struct tl_stf_flow_at *at)
{
    const size_t item = at->item;
    const int fed = tl_stf_flow_items(b->flow, items, item + 1, b->stop, at);
    if (fed < 0 && fed != TL_AGAIN)
        return fed;
    const bool there = fed == TL_AGAIN || tl_stf_flow_markers(b->flow) >= b->stop;
    int r = there ? carry_out_cut(b) : TL_OK;
    if (r >= 0 && at->item > item)
        r = log_item(b, &items[item]);
    /* While it was pending the next shard may have become full, too. */
    if (r >= 0 && b->cut == CUT_NONE && b->part->view->index.row.n >= b->options.shard_insns)
        r = begin_cut_shard(b, CUT_HERE);
    return r < 0 || !there ? r : cut_here(b);
}

/* No cut is pending: log up to the next one, and let the writer follow. */
static int advance(struct tl_build *b, const struct tl_item *items, size_t n,
                   struct tl_stf_flow_at *at)
{
    struct tl_stf_flow_at end = *at;
    int r = log_until_cut(b, items, n, &end);
    if (r < 0)
        return r;
    const size_t upto = end.insn > 0 ? end.item + 1 : end.item;
    const bool stops = b->cut == CUT_FRAME || b->cut == CUT_SHARD;
    r = tl_stf_flow_items(b->flow, items, upto, stops ? b->stop : UINT64_MAX, at);
    if (r == TL_AGAIN)
        return carry_out_cut(b);
    return r < 0 ? r : cut_here(b);
}

int tl_build_items(struct tl_build *b, const struct tl_item *items, size_t n)
{
    struct tl_stf_flow_at at = {0};
    int r = TL_OK;
    while (r >= 0 && at.item < n)
        r = b->cut != CUT_NONE ? resolve(b, items, &at) : advance(b, items, n, &at);
    return r;
}

int tl_build_finish(struct tl_build *b)
{
    int r = tl_stf_flow_finish(b->flow);
    if (r >= 0 && b->cut != CUT_NONE) {
        const bool shard = b->cut != CUT_FRAME;
        r = carry_out_cut(b);
        if (r >= 0 && shard)
            r = tl_stf_flow_finish(b->flow);
    }
    if (r < 0 || tl_part_is_empty(b->part))
        return r;
    end_census(b);
    r = take_frame(b, b->part);
    if (r < 0)
        return r;
    struct tl_part *part = b->part;
    b->part = NULL;
    r = tl_build_part(b, part->view->index.row.number + 1);
    if (r < 0) {
        tl_part_free(part);
        return r;
    }
    tl_stf_flow_restart(b->flow);
    b->frame_marker = 0;
    b->frame = 0;
    return seal(b, part);
}

/* ---- reading ------------------------------------------------------------------------------- */

/* Positions of `part` whose instructions the writer has let out. */
static uint64_t readable(const struct tl_build *b, const struct tl_part *part)
{
    const struct tl_shard_row *row = &part->view->index.row;
    return tl_stf_flow_markers(b->flow) < row->markers ? part->last_position - row->first : row->n;
}

int tl_build_view(struct tl_build *b, struct tl_view **out)
{
    struct tl_part *part = b->closing ? b->closing : b->part;
    *out = NULL;
    if (part->ghost)
        return TL_OK;
    struct tl_bytes stf = {0};
    if (tl_stf_flow_markers(b->flow) > b->frame_marker)
        stf = tl_stf_flow_bytes(b->flow);
    return tl_part_snapshot(part, stf, b->frame_marker, tl_stf_flow_chunk_pc(b->flow),
                            readable(b, part), out);
}

void tl_build_totals(const struct tl_build *b, struct tl_build_totals *out)
{
    *out = b->totals;
    out->offset = b->now.offset;
    const struct tl_part *part = b->closing ? b->closing : b->part;
    out->position = part->view->index.row.first + readable(b, part);
    if (part->ghost)
        out->position = b->options.sealed_position;
}
