/* SPDX-License-Identifier: MIT */
/*
 * Collects a shard's index, logs and frames while the flow arrives, and makes snapshots of them. A
 * snapshot leaves no trace in the shard, so that its bytes do not depend on who reads it while it
 * grows.
 */
#include "builder/shard_builder.h"

#include "shard/savedstack.h"
#include "shard/sums.h"

#include <stdlib.h>

/* Append the executed code to the index's table, and set its place in the chunk. */
static int store_code(const struct tl_code_set *set, struct tl_shard_index *index,
                      struct tl_chunk *chunk)
{
    chunk->code = (uint32_t)index->n_code;
    chunk->n_code = UINT32_MAX;
    if (set->full)
        return TL_OK;
    const int r = tl_code_set_edges(set, &index->code, &index->n_code, &index->cap_code);
    chunk->n_code = (uint32_t)index->n_code - chunk->code;
    return r;
}

/* ---- chunks -------------------------------------------------------------------------------- */

/* Process-unique; wraps at 2^32. */
static uint32_t next_stamp(void)
{
    static atomic_uint stamps;
    uint32_t stamp;
    while ((stamp = atomic_fetch_add_explicit(&stamps, 1, memory_order_relaxed)) == 0)
        ;
    return stamp;
}

void tl_shard_builder_forget(struct tl_shard_builder *shard)
{
    shard->stamp_names = next_stamp();
}

static void open_chunk(struct tl_shard_builder *shard, uint32_t stf, const struct tl_flow_now *now)
{
    const struct tl_shard_row *row = &shard->view->index.row;
    shard->open = (struct tl_chunk){
        .first = row->first + row->n, .marker = row->markers, .stf = stf, .at = *now};
    shard->log_begin = 0;
    tl_itemlog_reset(&shard->log, now->offset, now->has_time ? now->time : 0);
    tl_code_set_reset(&shard->code);
    shard->stamp_chunk = next_stamp();
    shard->offset_noted = shard->open.first >> TL_SHARD_OFFSETS;
}

/* Are the contents of its logs known? */
static bool has_log(const struct tl_shard_builder *shard)
{
    return !shard->replayed || shard->remade || shard->outlined;
}

int tl_shard_builder_begin(struct tl_shard_builder *shard, const struct tl_callstack *calls)
{
    struct tl_buf bytes = {0};
    int r = TL_OK;
    if (!has_log(shard))
        return TL_OK;
    if (!tl_callstack_is_new(calls)) {
        r = tl_savedstack_encode(calls, &bytes);
        if (r >= 0)
            r = tl_itemlog_add_stack(&shard->log, (struct tl_bytes){bytes.p, bytes.n});
        tl_buf_reset(&bytes);
    }
    if (r >= 0)
        r = tl_chunk_head_encode(&shard->open, &bytes);
    if (r >= 0)
        r = tl_itemlog_add_chunk(&shard->log, (struct tl_bytes){bytes.p, bytes.n});
    shard->log_begin = shard->log.bytes.n;
    tl_buf_fini(&bytes);
    return r;
}

struct tl_shard_builder *tl_shard_builder_new(uint64_t number, uint64_t position,
                                              const struct tl_flow_now *now)
{
    struct tl_shard_builder *shard = calloc(1, sizeof(*shard));
    if (!shard || !(shard->view = tl_view_new())) {
        free(shard);
        return NULL;
    }
    struct tl_shard_index *index = &shard->view->index;
    index->row.number = number;
    index->row.first = position;
    index->row.at = *now;
    index->row.byte_first = index->row.byte_last = now->offset;
    index->buckets.level = TL_LEVEL_STORED;
    tl_function_counts_begin(&index->functions);
    tl_open_bucket_init(&shard->bucket, position);
    shard->stamp_names = next_stamp();
    shard->counter.mode = now->mode;
    shard->counter.has_mode = now->has_mode;
    open_chunk(shard, 0, now);
    return shard;
}

void tl_shard_builder_free(struct tl_shard_builder *shard)
{
    if (!shard)
        return;
    tl_stats_counter_fini(&shard->counter);
    tl_code_counter_fini(&shard->coder);
    tl_call_counter_fini(&shard->caller);
    tl_open_bucket_fini(&shard->bucket);
    tl_view_put(shard->view);
    tl_itemlog_fini(&shard->log);
    tl_code_set_fini(&shard->code);
    free(shard);
}

bool tl_shard_builder_is_empty(const struct tl_shard_builder *shard)
{
    const struct tl_shard_row *row = &shard->view->index.row;
    return row->n == 0 && !shard->any;
}

static int add_chunk(struct tl_view *view, const struct tl_chunk *chunk, struct tl_blob *items)
{
    struct tl_shard_index *index = &view->index;
    if (tl_grow(&index->chunks, &index->cap_chunks, index->n_chunks + 1, sizeof(*chunk)) < 0 ||
        tl_grow(&view->items, &view->cap_items, index->n_chunks + 1, sizeof(*view->items)) < 0) {
        tl_blob_put(items);
        return TL_NOMEM;
    }
    view->items[index->n_chunks] = items;
    index->chunks[index->n_chunks++] = *chunk;
    return TL_OK;
}

static int add_frame(struct tl_view *view, const struct tl_shard_frame *frame, struct tl_blob *stf)
{
    struct tl_shard_index *index = &view->index;
    if (tl_grow(&index->frames, &index->cap_frames, index->n_frames + 1, sizeof(*frame)) < 0 ||
        tl_grow(&view->frames, &view->cap_frames, index->n_frames + 1, sizeof(*view->frames)) < 0) {
        tl_blob_put(stf);
        return TL_NOMEM;
    }
    view->frames[index->n_frames] = stf;
    index->frames[index->n_frames++] = *frame;
    return TL_OK;
}

/* The log as a new blob, packed if there is a packer, so that its memory is reused for the next
 * one; NULL in `*out`: it is empty. */
static int take_log(const struct tl_shard_builder *shard, struct tl_packer *packer,
                    struct tl_blob **out)
{
    const struct tl_bytes log = {shard->log.bytes.p, shard->log.bytes.n};
    const struct tl_stf_piece piece = {.stf = shard->log.bytes};
    *out = NULL;
    if (log.n > 0)
        *out = packer ? tl_blob_pack(packer, &piece) : tl_blob_new(log);
    return log.n > 0 && !*out ? TL_NOMEM : TL_OK;
}

/* Log the chunk's end in the raw bytes, and whether its last instruction changed the flow:
 * otherwise only the index would have this. */
static int note_end(struct tl_shard_builder *shard)
{
    const struct tl_shard_row *row = &shard->view->index.row;
    if (!has_log(shard))
        return TL_OK;
    return tl_itemlog_end(&shard->log, row->first + row->n - shard->open.first, row->byte_last);
}

int tl_shard_builder_log(const struct tl_shard_builder *shard, struct tl_blob **out)
{
    return take_log(shard, NULL, out);
}

static int close_chunk(struct tl_shard_builder *shard, struct tl_packer *packer,
                       struct tl_blob **log, struct tl_chunk *ended)
{
    struct tl_chunk *c = &shard->open;
    struct tl_blob *items = NULL;
    shard->log_bytes += tl_shard_builder_logged(shard);
    int settled = tl_shard_builder_settle(shard);
    if (settled >= 0)
        settled = note_end(shard);
    if (settled < 0)
        return settled;
    c->items_plain = (uint32_t)shard->log.bytes.n;
    shard->any_closed = true;
    *ended = *c;
    *log = NULL;
    if (shard->outlined) {
        c->n_code = UINT32_MAX;
        return add_chunk(shard->view, c, NULL);
    }
    if (shard->replayed) {
        const bool wanted = shard->log_wanted && !shard->partial;
        shard->partial = false;
        return wanted ? take_log(shard, NULL, log) : TL_OK;
    }
    int r = shard->bare ? TL_OK : take_log(shard, packer, &items);
    if (r < 0)
        return r;
    c->items_size = 0; /* known once it is packed */
    r = store_code(&shard->code, &shard->view->index, c);
    if (r < 0) {
        tl_blob_put(items);
        return r;
    }
    *log = items;
    return add_chunk(shard->view, c, items);
}

int tl_shard_builder_next_chunk(struct tl_shard_builder *shard, uint32_t stf,
                                const struct tl_flow_now *now, struct tl_packer *packer,
                                struct tl_blob **log, struct tl_chunk *ended)
{
    const int r = close_chunk(shard, packer, log, ended);
    if (r >= 0)
        open_chunk(shard, stf, now);
    return r;
}

int tl_shard_builder_frame(struct tl_shard_builder *shard, struct tl_blob *stf, size_t plain,
                           uint64_t marker, uint64_t pc)
{
    if (shard->replayed && !shard->outlined) {
        shard->view->index.n_frames = 1; /* only whether there is one matters */
        return TL_OK;
    }
    const struct tl_shard_frame frame = {.plain = (uint32_t)plain, .marker = marker, .pc = pc};
    return add_frame(shard->view, &frame, stf);
}

/* ---- views --------------------------------------------------------------------------------- */

/* An outline is of places only, and these are most of its memory. */
static void drop_buckets(struct tl_shard_index *index)
{
    const unsigned level = index->buckets.level;
    tl_buckets_fini(&index->buckets);
    tl_time_pyramid_fini(&index->functions);
    index->buckets.level = level;
}

int tl_shard_builder_complete(struct tl_shard_builder *shard, struct tl_packer *packer,
                              struct tl_view **out, struct tl_blob **log, struct tl_chunk *ended)
{
    struct tl_shard_index *index = &shard->view->index;
    const bool needed = shard->open.n > 0 || shard->open.kinds != 0 || !shard->any_closed;
    *log = NULL;
    ended->kinds = UINT32_MAX;
    int r = needed ? close_chunk(shard, packer, log, ended) : TL_OK;
    if (r >= 0)
        r = tl_open_bucket_flush(&shard->bucket, &index->functions);
    if (r < 0 || (shard->replayed && !shard->outlined))
        return r;
    if (shard->outlined)
        drop_buckets(index);
    else
        tl_shard_builder_report(shard);
    /* Items after the last frame's last marker belong to no frame: assign the last one. */
    for (size_t i = index->n_chunks; i-- > 0 && index->chunks[i].stf >= index->n_frames;)
        index->chunks[i].stf = (uint32_t)index->n_frames - 1;
    if (shard->coder.counting && (shard->view->counts = malloc(sizeof *shard->view->counts))) {
        *shard->view->counts = shard->coder.counts;
        shard->coder.counts = (struct tl_codecount){0};
    }
    if (shard->caller.counting && !shard->caller.partial &&
        (shard->view->calls = malloc(sizeof *shard->view->calls))) {
        tl_call_counter_take(&shard->caller, shard->view->calls);
    }
    *out = shard->view;
    shard->view = NULL;
    return TL_OK;
}

static int copy_array(void *to, size_t *cap, const void *from, size_t n, size_t size)
{
    if (n == 0)
        return TL_OK;
    const int r = tl_grow(to, cap, n, size);
    if (r >= 0)
        memcpy(*(void **)to, from, n * size);
    return r;
}

static struct tl_blob *get(struct tl_blob *blob)
{
    return blob ? tl_blob_get(blob) : NULL;
}

static int copy_closed(const struct tl_view *from, struct tl_view *to)
{
    const struct tl_shard_index *a = &from->index;
    struct tl_shard_index *b = &to->index;
    b->row = a->row;
    b->buckets.level = a->buckets.level;
    b->buckets.first = a->buckets.first;
    if (copy_array(&b->code, &b->cap_code, a->code, a->n_code, sizeof(*a->code)) < 0 ||
        copy_array(&b->buckets.p, &b->buckets.cap, a->buckets.p, a->buckets.n,
                   sizeof(*a->buckets.p)) < 0)
        return TL_NOMEM;
    b->n_code = a->n_code;
    b->buckets.n = a->buckets.n;
    int r = tl_time_pyramid_copy(&b->times, &a->times);
    if (r >= 0)
        r = tl_time_pyramid_copy(&b->functions, &a->functions);
    for (size_t i = 0; r >= 0 && i < a->n_chunks; i++)
        r = add_chunk(to, &a->chunks[i], get(from->items[i]));
    for (size_t i = 0; r >= 0 && i < a->n_frames; i++)
        r = add_frame(to, &a->frames[i], get(from->frames[i]));
    return r;
}

static int copy_open(const struct tl_shard_builder *shard, struct tl_bytes stf, uint64_t marker,
                     uint64_t pc, struct tl_view *view)
{
    struct tl_chunk chunk = shard->open;
    struct tl_blob *items = NULL;
    struct tl_blob *records = NULL;
    int r = shard->bare ? TL_OK : take_log(shard, NULL, &items);
    if (r < 0)
        return r;
    chunk.items_plain = (uint32_t)shard->log.bytes.n;
    chunk.n_code = UINT32_MAX;
    r = add_chunk(view, &chunk, items);
    const struct tl_shard_frame frame = {
        .plain = shard->bare ? 0 : (uint32_t)stf.n, .marker = marker, .pc = pc};
    if (r < 0 || stf.n == 0)
        return r;
    if (!shard->bare && !(records = tl_blob_new(stf)))
        return TL_NOMEM;
    return add_frame(view, &frame, records);
}

/* Remove everything after the readable positions. */
static void clip(struct tl_view *view, uint64_t positions)
{
    struct tl_shard_index *index = &view->index;
    index->row.n = positions;
    const uint64_t end = index->row.first + positions;
    for (size_t i = 0; i < index->n_chunks; i++) {
        struct tl_chunk *c = &index->chunks[i];
        if (c->first > end) {
            c->first = end;
            tl_blob_put(view->items[i]);
            view->items[i] = NULL;
        }
        if (c->n > end - c->first)
            c->n = end - c->first;
    }
}

int tl_shard_builder_snapshot(struct tl_shard_builder *shard, struct tl_bytes stf, uint64_t marker,
                              uint64_t pc, uint64_t positions, struct tl_view **out)
{
    struct tl_view *view = tl_view_new();
    int r = view ? copy_closed(shard->view, view) : TL_NOMEM;
    if (r >= 0 && !shard->outlined)
        /* Taking a snapshot must make no difference. */
        r = tl_shard_builder_settle_into(shard, view, false);
    if (shard->outlined && view)
        drop_buckets(&view->index);
    if (r >= 0 && shard->ran && shard->caller.times)
        tl_call_times_report(shard->caller.times);
    if (r >= 0 && shard->ran)
        r = tl_time_buckets_snapshot(shard->ran, &view->index.times);
    if (r >= 0)
        r = copy_open(shard, stf, marker, pc, view);
    if (r < 0) {
        tl_view_put(view);
        return r;
    }
    clip(view, positions);
    view->open = true;
    *out = view;
    return TL_OK;
}
