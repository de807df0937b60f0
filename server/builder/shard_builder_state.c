/* SPDX-License-Identifier: MIT */
/*
 * Saving and loading a shard builder: the lists of its index, with the open chunk as the last one,
 * packed frames and logs, and all counters. After a restart it goes on as if nothing had happened,
 * and gives the same shard.
 */
#include "builder/shard_builder.h"

#include <stdlib.h>

#define LOG_MAX (64u << 20) /* maximum size of an open chunk's log */

/* Values, chunks and frames. */
static void lists_state(struct tl_shard_builder *shard, struct tl_state *s)
{
    struct tl_shard_index *const index = &shard->view->index;
    struct tl_buf lists = {0};
    if (!tl_state_loads(s)) {
        struct tl_shard_index all = *index;
        all.chunks = NULL;
        all.cap_chunks = 0;
        int r = tl_grow(&all.chunks, &all.cap_chunks, index->n_chunks + 1, sizeof(*all.chunks));
        if (r >= 0) {
            if (index->n_chunks > 0)
                memcpy(all.chunks, index->chunks, index->n_chunks * sizeof(*all.chunks));
            all.chunks[all.n_chunks++] = shard->open;
            r = tl_shard_lists_encode(&all, &lists);
        }
        free(all.chunks);
        tl_state_fail(s, r);
    }
    tl_state_buf(s, &lists, SIZE_MAX);
    if (tl_state_loads(s) && s->rc >= 0) {
        tl_state_fail(s, tl_shard_lists_decode(index, (struct tl_bytes){lists.p, lists.n}));
        tl_state_check(s, index->n_chunks > 0);
        if (s->rc >= 0)
            shard->open = index->chunks[--index->n_chunks];
        else /* there are no blobs for what was loaded */
            index->n_chunks = index->n_frames = 0;
    }
    tl_buf_fini(&lists);
}

/* Packed bytes; NULL: none. */
static void blob_state(struct tl_blob **blob, struct tl_packer *packer, struct tl_state *s)
{
    struct tl_bytes packed = {0};
    if (!tl_state_loads(s) && *blob)
        tl_state_fail(s, tl_blob_packed(*blob, packer, &packed));
    size_t n = packed.n;
    tl_state_size(s, &n, s->in.n);
    tl_state_check(s, n <= s->in.n);
    if (s->rc < 0 || n == 0)
        return;
    if (!tl_state_loads(s)) {
        tl_state_fail(s, tl_buf_add(s->out, packed.p, n));
        return;
    }
    *blob = tl_blob_of_packed((struct tl_bytes){s->in.p, n});
    if (!*blob)
        tl_state_fail(s, TL_NOMEM);
    s->in.p += n;
    s->in.n -= n;
}

static void blobs_state(struct tl_blob ***blobs, size_t *cap, size_t *n, bool wanted,
                        struct tl_packer *packer, struct tl_state *s)
{
    const size_t all = *n;
    if (tl_state_loads(s)) {
        *n = 0; /* until they are loaded */
        if (s->rc >= 0)
            tl_state_fail(s, tl_grow(blobs, cap, all + 1, sizeof(**blobs)));
    }
    for (size_t i = 0; i < all && s->rc >= 0; i++) {
        if (tl_state_loads(s)) {
            (*blobs)[i] = NULL;
            *n = i + 1;
        }
        blob_state(&(*blobs)[i], packer, s);
        tl_state_check(s, (*blobs)[i] || !wanted);
    }
}

static void code_state(struct tl_shard_index *index, struct tl_state *s)
{
    size_t n = index->n_code;
    tl_state_size(s, &n, s->in.n / sizeof(*index->code));
    if (tl_state_loads(s) && s->rc >= 0)
        tl_state_fail(s, tl_grow(&index->code, &index->cap_code, n + 1, sizeof(*index->code)));
    index->n_code = s->rc >= 0 ? n : 0;
    if (index->n_code > 0)
        tl_state_bytes(s, index->code, n * sizeof(*index->code));
}

/* For a shard that is complete except for records: its statistics. */
static void stats_state(struct tl_shard_stats *stats, struct tl_state *s)
{
    struct tl_buf bytes = {0};
    if (!tl_state_loads(s))
        tl_state_fail(s, tl_shard_stats_encode(stats, &bytes));
    tl_state_buf(s, &bytes, SIZE_MAX);
    if (tl_state_loads(s) && s->rc >= 0) {
        struct tl_varint_reader in = {bytes.p, bytes.n > 0 ? bytes.p + bytes.n : bytes.p, false};
        tl_state_fail(s, tl_shard_stats_read(stats, &in));
    }
    tl_buf_fini(&bytes);
}

/* The same: its buckets in time. */
static void times_state(struct tl_time_pyramid *times, struct tl_state *s)
{
    struct tl_buf bytes = {0};
    if (!tl_state_loads(s))
        tl_state_fail(s, tl_time_pyramid_encode(times, &bytes));
    tl_state_buf(s, &bytes, SIZE_MAX);
    if (tl_state_loads(s) && s->rc >= 0) {
        struct tl_varint_reader in = {bytes.p, bytes.n > 0 ? bytes.p + bytes.n : bytes.p, false};
        tl_state_fail(s, tl_time_pyramid_read(times, &in));
    }
    tl_buf_fini(&bytes);
}

static void log_values(struct tl_shard_builder *shard, struct tl_state *s)
{
    struct tl_itemlog *const log = &shard->log;
    tl_state_u64(s, &log->base.position);
    tl_state_u64(s, &log->base.offset);
    tl_state_u64(s, &log->base.pc);
    tl_state_u64(s, &log->base.time);
    tl_state_u64(s, &log->base.lost);
    tl_state_bool(s, &log->turned);
    tl_state_u64(s, &log->n);
    tl_state_size(s, &shard->log_begin, log->bytes.n);
    tl_state_u64(s, &shard->log_bytes);
}

static void log_state(struct tl_shard_builder *shard, struct tl_state *s)
{
    tl_state_buf(s, &shard->log.bytes, UINT32_MAX);
    log_values(shard, s);
}

/* Are chunks and frames contiguous parts of this shard? A replayed shard has none. */
static bool lists_fit(const struct tl_shard_builder *shard)
{
    const struct tl_shard_index *const index = &shard->view->index;
    const struct tl_shard_row *const row = &index->row;
    uint64_t position = row->first, marker = 0;
    for (size_t i = 0; i < index->n_chunks; i++) {
        const struct tl_chunk *const c = &index->chunks[i];
        if (c->first != position || c->n > row->n || c->marker < marker)
            return false;
        if (c->n_code != UINT32_MAX &&
            (c->n_code % 2 != 0 || c->code > index->n_code || c->n_code > index->n_code - c->code))
            return false;
        position += c->n;
        marker = c->marker;
    }
    for (size_t i = 0; i < index->n_frames && index->frames; i++)
        if (index->frames[i].marker > row->markers)
            return false;
    return (shard->replayed || shard->open.first == position) && shard->open.marker >= marker &&
           shard->open.marker <= row->markers && row->markers <= row->n &&
           shard->open.n <= row->n && shard->open.first == row->first + row->n - shard->open.n;
}

/* Buckets exist up to the open bucket, no further: so none of them is far away. */
static bool counts_fit(const struct tl_shard_builder *shard)
{
    const struct tl_shard_row *const row = &shard->view->index.row;
    const struct tl_buckets *const buckets = &shard->view->index.buckets;
    const uint64_t end = row->first + row->n, first = row->first >> 2 * TL_LEVEL_STORED;
    return end >= row->first && shard->bucket.position == end && shard->bucket.n <= row->n &&
           (shard->replayed || ((buckets->n == 0 || buckets->first == first) &&
                                (end >> 2 * TL_LEVEL_STORED) - first <= buckets->n + 1));
}

void tl_shard_builder_state(struct tl_shard_builder *shard, struct tl_packer *packer,
                            struct tl_state *s)
{
    struct tl_view *const view = shard->view;
    struct tl_shard_index *const index = &view->index;
    tl_state_bool(s, &shard->replayed);
    tl_state_bool(s, &shard->bare);
    tl_state_bool(s, &shard->any);
    tl_state_bool(s, &shard->any_closed);
    tl_state_bool(s, &shard->by_insn);
    lists_state(shard, s);
    blobs_state(&view->items, &view->cap_items, &index->n_chunks, false, packer, s);
    if (!shard->replayed)
        blobs_state(&view->frames, &view->cap_frames, &index->n_frames, !shard->bare, packer, s);
    code_state(index, s);
    tl_buckets_state(&index->buckets, s);
    stats_state(&index->stats, s);
    times_state(&index->times, s);
    times_state(&index->functions, s);
    log_state(shard, s);
    tl_code_set_state(&shard->code, s);
    tl_state_u64(s, &shard->offset_noted);
    tl_state_u64(s, &shard->last_position);
    tl_open_bucket_state(&shard->bucket, s);
    tl_stats_counter_state(&shard->counter, s);
    tl_state_check(s, s->rc >= 0 && lists_fit(shard) && counts_fit(shard));
}

/* The end of the open chunk depends on its log's length, not on its contents. */
static void log_length(struct tl_itemlog *log, struct tl_state *s)
{
    size_t n = log->bytes.n;
    tl_state_size(s, &n, LOG_MAX);
    if (!tl_state_loads(s) || s->rc < 0)
        return;
    tl_buf_reset(&log->bytes);
    tl_state_fail(s, tl_buf_reserve(&log->bytes, n + 1));
    if (s->rc >= 0)
        memset(log->bytes.p, 0, n);
    log->bytes.n = s->rc >= 0 ? n : 0;
}

void tl_shard_builder_mark(struct tl_shard_builder *shard, struct tl_state *s)
{
    struct tl_shard_index *const index = &shard->view->index;
    struct tl_shard_row *const row = &index->row;
    bool framed = index->n_frames > 0;
    tl_state_u64(s, &row->number);
    tl_state_u64(s, &row->first);
    tl_state_u64(s, &row->n);
    tl_state_u64(s, &row->markers);
    tl_state_u64(s, &row->byte_first);
    tl_state_u64(s, &row->byte_last);
    tl_state_u64(s, &shard->open.first);
    tl_state_u64(s, &shard->open.n);
    tl_state_u64(s, &shard->open.marker);
    tl_state_u32(s, &shard->open.stf);
    tl_state_bool(s, &shard->any);
    tl_state_bool(s, &shard->any_closed);
    tl_state_bool(s, &framed);
    log_length(&shard->log, s);
    log_values(shard, s);
    tl_state_u64(s, &shard->offset_noted);
    tl_state_u64(s, &shard->last_position);
    if (!tl_state_loads(s))
        return;
    shard->replayed = shard->remade = shard->partial = shard->counter.unreported = true;
    tl_state_check(s, s->rc < 0 || lists_fit(shard));
    index->n_frames = framed;
    shard->bucket.position = row->first + row->n;
}

/* Drop what its chunks and frames contain. */
static void drop_contents(struct tl_view *view)
{
    for (size_t i = 0; view->items && i < view->index.n_chunks; i++) {
        tl_blob_put(view->items[i]);
        view->items[i] = NULL;
    }
    for (size_t i = 0; view->frames && i < view->index.n_frames; i++) {
        tl_blob_put(view->frames[i]);
        view->frames[i] = NULL;
    }
}

void tl_shard_builder_outline(struct tl_shard_builder *shard)
{
    struct tl_shard_index *const index = &shard->view->index;
    drop_contents(shard->view);
    for (size_t i = 0; i < index->n_chunks; i++) {
        index->chunks[i].code = 0;
        index->chunks[i].n_code = UINT32_MAX;
    }
    index->n_code = 0;
    shard->outlined = shard->bare = shard->replayed = shard->counter.unreported = true;
}

void tl_shard_builder_replay(struct tl_shard_builder *shard)
{
    struct tl_view *const view = shard->view;
    struct tl_shard_index *const index = &view->index;
    drop_contents(view);
    free(view->frames);
    view->frames = NULL;
    view->cap_frames = 0;
    index->n_chunks = index->n_code = 0;
    index->n_frames = index->n_frames > 0;
    shard->replayed = shard->counter.unreported = true;
    shard->by_insn = false;
}
