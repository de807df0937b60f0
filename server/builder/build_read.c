/* SPDX-License-Identifier: MIT */
/*
 * What can be read of a builder: the growing shard, totals, unfinished parts, its memory. Readers
 * see only what the writer has output, since an instruction is not known before it knows where the
 * flow continues.
 */
#include "builder/build_parts.h"

void tl_build_add_totals(struct tl_build_totals *t, const struct tl_shard_row *row)
{
    t->gaps += row->gaps;
    t->events += row->events;
    if (row->anchors == 0)
        return;
    if (t->anchors == 0)
        t->anchor_first = row->anchor_first;
    t->anchor_last = row->anchor_last;
    t->anchors += row->anchors;
}

/* Positions of `part` whose instructions the writer has output. */
static uint64_t readable(const struct tl_build *b, const struct tl_shard_builder *shard)
{
    const struct tl_shard_row *row = &shard->view->index.row;
    return tl_stf_flow_markers(b->flow) < row->markers ? shard->last_position - row->first : row->n;
}

int tl_build_view(struct tl_build *b, struct tl_view **out)
{
    struct tl_shard_builder *const shard = tl_build_written(b);
    *out = NULL;
    if ((shard->replayed && !shard->outlined) || tl_shard_builder_is_empty(shard))
        return TL_OK;
    struct tl_bytes stf = {0};
    if (tl_stf_flow_markers(b->flow) > b->frame_marker)
        stf = shard->bare ? (struct tl_bytes){.n = 1} : tl_stf_flow_bytes(b->flow);
    return tl_shard_builder_snapshot(shard, stf, b->frame_marker, tl_stf_flow_chunk_pc(b->flow),
                                     readable(b, shard), out);
}

void tl_build_totals(const struct tl_build *b, struct tl_build_totals *out)
{
    const struct tl_shard_builder *const shard = tl_build_written(b);
    *out = b->totals;
    tl_build_add_totals(out, &shard->view->index.row);
    if (b->closing)
        tl_build_add_totals(out, &tl_build_shard(b)->view->index.row);
    out->offset = b->index.now.offset;
    out->position = shard->view->index.row.first + readable(b, shard);
    if (shard->replayed && !shard->remade && !shard->outlined)
        out->position = b->options.sealed_position;
}

uint64_t tl_build_position(const struct tl_build *b)
{
    return tl_shard_builder_position(tl_build_shard(b));
}

void tl_build_place(const struct tl_build *b, uint64_t *shard, uint32_t *frame)
{
    *shard = tl_build_shard(b)->view->index.row.number;
    *frame = b->frame;
}

int tl_build_open_parts(struct tl_build *b, struct tl_build_part out[2], size_t *n)
{
    const struct tl_shard_builder *const shard = tl_build_shard(b);
    const struct tl_shard_builder *const under = tl_build_written(b);
    const uint64_t markers = tl_stf_flow_markers(b->flow);
    *n = 0;
    if (shard->log_wanted && !shard->partial) {
        struct tl_build_part *const log = &out[(*n)++];
        *log = (struct tl_build_part){.shard = shard->view->index.row.number,
                                      .frame = shard->open.stf,
                                      .is_log = true,
                                      .chunk = shard->open};
        log->chunk.items_plain = (uint32_t)shard->log.bytes.n;
        const int r = tl_shard_builder_log(shard, &log->blob);
        if (r < 0)
            return r;
    }
    if (!b->wet || markers == b->frame_marker)
        return TL_OK;
    struct tl_build_part *const frame = &out[(*n)++];
    const struct tl_bytes records = tl_stf_flow_bytes(b->flow);
    *frame =
        (struct tl_build_part){.shard = under->view->index.row.number,
                               .frame = tl_build_open_frame(b),
                               .stf = {.plain = (uint32_t)records.n,
                                       .marker = b->frame_marker,
                                       .pc = b->frame_marker ? tl_stf_flow_chunk_pc(b->flow) : 0},
                               .blob = tl_blob_new(records)};
    return frame->blob ? TL_OK : TL_NOMEM;
}

/* ---- memory -------------------------------------------------------------------------------- */

#define PACKED 6 /* records are packed soon, to about this part */

static size_t shard_bytes(const struct tl_shard_builder *shard)
{
    if (!shard)
        return 0;
    const struct tl_shard_index *const index = &shard->view->index;
    size_t n = sizeof *shard + shard->log.bytes.cap +
               index->buckets.cap * sizeof *index->buckets.p +
               tl_calltree_bytes(&shard->caller.counts.tree);
    for (size_t i = 0; i < index->n_frames && !shard->replayed; i++)
        n += index->frames[i].plain / PACKED;
    return n;
}

size_t tl_build_bytes(const struct tl_build *b)
{
    return sizeof *b + sizeof *b->ran + shard_bytes(b->index.shard) + shard_bytes(b->closing) +
           tl_stf_flow_piece(b->flow).stf.cap;
}
