/* SPDX-License-Identifier: MIT */
/*
 * Feeds what a walk reads through an indexer, as when the shard was built: in blocks as the decoder
 * delivered them (runs.h), since functions and depths belong to whole blocks. For a range only the
 * statistics of the resulting shard are kept.
 */
#include "builder/recount.h"

#include "builder/indexer.h"
#include "builder/insn_stats.h"
#include "builder/shard_builder.h"
#include "shard/runs.h"
#include "shard/savedstack.h"

#include <stdlib.h>
#include <string.h>

struct recount {
    struct tl_view *view;
    struct tl_indexer index;
    struct tl_runs runs;
};

/* Begin a shard with the same number at a position, with the state `at`. TL_NOMEM. */
static int begin(struct recount **out, struct tl_view *view, enum tl_protocol protocol,
                 const struct tl_image *image, uint64_t position, const struct tl_flow_now *at)
{
    struct recount *const c = calloc(1, sizeof(*c));
    *out = c;
    if (!c)
        return TL_NOMEM;
    c->view = view;
    c->runs.image = image;
    tl_indexer_init(&c->index, protocol, image, at, position);
    c->index.shard = tl_shard_builder_new(view->index.row.number, position, at);
    return c->index.shard ? TL_OK : TL_NOMEM;
}

static void end(struct recount *c)
{
    if (!c)
        return;
    tl_shard_builder_free(c->index.shard);
    tl_runs_fini(&c->runs);
    free(c);
}

/* Count what was walked; c->index.now is updated. */
static int count_items(struct recount *c, struct tl_walk *walk)
{
    static const struct tl_indexer_limits limits = {UINT64_MAX, UINT64_MAX, SIZE_MAX};
    struct tl_stf_flow_at at = {0};
    int r = tl_runs_split(&c->runs, walk, &c->index.now);
    while (r >= 0 && at.item < walk->n)
        r = tl_indexer_items(&c->index, walk->items, walk->n, &limits, &at);
    return r < 0 ? r : TL_OK;
}

static int count_chunk(struct recount *c, struct tl_walk *walk, const struct tl_chunk *chunk)
{
    c->index.now = chunk->at;
    int r = tl_walk_stack(walk, &c->index.calls);
    if (r >= 0)
        r = count_items(c, walk);
    return r >= 0 && tl_shard_builder_position(c->index.shard) != chunk->first + chunk->n ? TL_BAD
                                                                                          : r;
}

/* After chunk `i`: if a frame ends there too, the next one begins at the walk's position. */
static void learn_pc(struct tl_shard_index *index, size_t i, const struct tl_walk *walk)
{
    const uint32_t stf = index->chunks[i].stf;
    const bool ends = i + 1 < index->n_chunks && index->chunks[i + 1].stf > stf;
    if (ends && index->chunks[i + 1].stf < index->n_frames && walk->view)
        index->frames[index->chunks[i + 1].stf].pc = walk->pc;
}

/* After the last chunk: is it also after the last record? */
static void learn_end(struct tl_shard_index *index, const struct tl_walk *walk)
{
    const bool last = walk->view && walk->frame_number + 1 == index->n_frames;
    if (index->version >= 4 && last)
        index->frames[0].pc = walk->at == walk->frame.n ? walk->pc : 0;
}

static int count_all(struct recount *c, bool pcs, struct tl_fail *fail)
{
    struct tl_shard_index *index = &c->view->index;
    struct tl_walk walk = {.detail = TL_WALK_SPANS};
    const struct tl_walk_range range = {0, UINT64_MAX, true, c->index.protocol};
    int r = TL_OK;
    for (size_t i = 0; i < index->n_chunks && r >= 0; i++) {
        struct tl_blob *log;
        struct tl_chunk ended;
        r = tl_walk_chunk(&walk, c->view, i, &range, fail);
        if (r >= 0)
            r = count_chunk(c, &walk, &index->chunks[i]);
        if (r >= 0 && pcs)
            learn_pc(index, i, &walk);
        /* Close the last one too, so that the number of chunks is as before; their begins and
         * states are copied. */
        if (r >= 0)
            r = tl_shard_builder_next_chunk(c->index.shard, 0, &c->index.now, NULL, &log, &ended);
    }
    if (r >= 0 && pcs)
        learn_end(index, &walk);
    tl_walk_fini(&walk);
    return r;
}

/* Count what blocks do not know themselves, for a range. */
static int count_insns(struct tl_view *view, const struct tl_walk_range *range,
                       const struct tl_image *image, struct tl_shard_stats *out,
                       struct tl_fail *fail)
{
    struct tl_insn_stats *insn_stats;
    int r = tl_insn_stats_new(&insn_stats, image, range->protocol);
    if (r < 0)
        return r;
    r = tl_insn_stats_view(insn_stats, view, range, fail);
    tl_insn_stats_report(insn_stats, out);
    tl_insn_stats_free(insn_stats);
    return r < 0 || out->reported ? r : TL_NOMEM;
}

/* Copy the counts; positions of data in the file are kept. */
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
    const struct tl_time_pyramid functions = to->functions;
    to->functions = from->functions;
    from->functions = functions;
}

int tl_view_recount(struct tl_view *view, enum tl_protocol protocol, const struct tl_image *image,
                    bool pcs, struct tl_fail *fail)
{
    struct tl_shard_index *index = &view->index;
    const struct tl_walk_range all = {.to = UINT64_MAX, .tail = true, .protocol = protocol};
    struct recount *c;
    if (index->n_chunks == 0)
        return TL_BAD;
    int r = begin(&c, view, protocol, image, index->row.first, &index->chunks[0].at);
    if (r >= 0)
        r = count_all(c, pcs, fail);
    if (r >= 0 && tl_insn_stats_wanted(protocol)) {
        c->index.shard->by_insn = true;
        r = count_insns(view, &all, image, &c->index.shard->view->index.stats, fail);
    }
    if (r >= 0)
        r = tl_open_bucket_flush(&c->index.shard->bucket, &c->index.shard->view->index.functions);
    if (r >= 0) {
        tl_shard_builder_report(c->index.shard);
        take_over(index, &c->index.shard->view->index);
    }
    end(c);
    return r;
}

/* ---- statistics of a range ------------------------------------------------------------------ */

/* Statistics from the index; if they are from blocks, positions and branches are those of the
 * index. */
static int copy_stats(const struct tl_shard_index *index, struct tl_shard_stats *out)
{
    *out = index->stats;
    out->functions = NULL;
    out->cap_functions = 0;
    if (out->n_functions > 0) {
        if (tl_grow(&out->functions, &out->cap_functions, out->n_functions,
                    sizeof(*out->functions)) < 0)
            return TL_NOMEM;
        memcpy(out->functions, index->stats.functions, out->n_functions * sizeof(*out->functions));
    }
    if (out->counted)
        return TL_OK;
    out->insns = index->row.n;
    for (size_t i = 0; i < index->buckets.n; i++)
        out->taken += index->buckets.p[i].branches;
    return TL_OK;
}

/* Compute them as the index of a shard with only this range would have them. */
static int count_blocks(struct tl_view *view, const struct tl_walk_range *range,
                        const struct tl_image *image, struct tl_shard_stats *out,
                        struct tl_fail *fail)
{
    const struct tl_shard_index *const index = &view->index;
    struct recount *c = NULL;
    struct tl_walk walk = {.detail = TL_WALK_SPANS};
    int r = TL_OK;
    for (size_t i = tl_shard_items_at(index, range->from); i < index->n_chunks && r >= 0; i++) {
        const uint64_t first = index->chunks[i].first;
        if (first >= range->to && !range->tail)
            break;
        r = tl_walk_chunk(&walk, view, i, range, fail);
        if (r >= 0 && !c)
            r = begin(&c, view, range->protocol, image, first > range->from ? first : range->from,
                      &walk.now);
        if (r >= 0)
            r = count_items(c, &walk);
    }
    if (r >= 0 && c)
        r = tl_shard_builder_settle(c->index.shard);
    if (r >= 0 && c) {
        tl_shard_builder_report(c->index.shard);
        r = copy_stats(&c->index.shard->view->index, out);
    }
    tl_walk_fini(&walk);
    end(c);
    return r;
}

int tl_view_stats(struct tl_view *view, const struct tl_walk_range *range,
                  const struct tl_image *image, bool counted, struct tl_shard_stats *out,
                  struct tl_fail *fail)
{
    const struct tl_shard_row *const row = &view->index.row;
    const bool whole = range->from <= row->first && range->tail;
    *out = (struct tl_shard_stats){0};
    if (whole && !counted && view->index.stats.reported)
        return copy_stats(&view->index, out);
    return tl_insn_stats_wanted(range->protocol) ? count_insns(view, range, image, out, fail)
                                                 : count_blocks(view, range, image, out, fail);
}
