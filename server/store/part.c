/* SPDX-License-Identifier: MIT */
#include "store/part.h"

#include "stf/zstf.h"
#include "store/stackmark.h"
#include "store/sums.h"

#include <stdlib.h>

/* Append what was executed to the index's table, and tell the chunk where it is. */
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

static void open_chunk(struct tl_part *part, uint32_t stf, const struct tl_flow_now *now)
{
    const struct tl_shard_row *row = &part->view->index.row;
    part->open = (struct tl_chunk){
        .first = row->first + row->n, .marker = row->markers, .stf = stf, .at = *now};
    part->log_begin = 0;
    tl_itemlog_reset(&part->log, now->offset, now->has_time ? now->time : 0);
    tl_code_set_reset(&part->code);
    part->stamp = next_stamp();
    part->offset_noted = part->open.first >> TL_PART_OFFSETS;
}

int tl_part_begin(struct tl_part *part, const struct tl_callstack *calls)
{
    struct tl_buf bytes = {0};
    int r = TL_OK;
    if (part->ghost)
        return TL_OK;
    if (calls->depth > 0) {
        r = tl_stackmark_encode(calls, &bytes);
        if (r >= 0)
            r = tl_itemlog_add_stack(&part->log, (struct tl_bytes){bytes.p, bytes.n});
        tl_buf_reset(&bytes);
    }
    if (r >= 0)
        r = tl_chunk_head_encode(&part->open, &bytes);
    if (r >= 0)
        r = tl_itemlog_add_chunk(&part->log, (struct tl_bytes){bytes.p, bytes.n});
    part->log_begin = part->log.bytes.n;
    tl_buf_fini(&bytes);
    return r;
}

struct tl_part *tl_part_new(uint64_t number, uint64_t position, const struct tl_flow_now *now)
{
    struct tl_part *part = calloc(1, sizeof(*part));
    if (!part || !(part->view = tl_view_new())) {
        free(part);
        return NULL;
    }
    struct tl_shard_index *index = &part->view->index;
    index->row.number = number;
    index->row.first = position;
    index->row.at = *now;
    index->row.byte_first = index->row.byte_last = now->offset;
    index->buckets.level = TL_LEVEL_STORED;
    tl_part_run_init(&part->run, position);
    part->tallying.mode = now->mode;
    part->tallying.has_mode = now->has_mode;
    open_chunk(part, 0, now);
    return part;
}

void tl_part_free(struct tl_part *part)
{
    if (!part)
        return;
    tl_tallying_fini(&part->tallying);
    tl_view_put(part->view);
    tl_itemlog_fini(&part->log);
    tl_code_set_fini(&part->code);
    free(part);
}

bool tl_part_is_empty(const struct tl_part *part)
{
    const struct tl_shard_row *row = &part->view->index.row;
    return row->n == 0 && !part->any;
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
    if (!stf ||
        tl_grow(&index->frames, &index->cap_frames, index->n_frames + 1, sizeof(*frame)) < 0 ||
        tl_grow(&view->frames, &view->cap_frames, index->n_frames + 1, sizeof(*view->frames)) < 0) {
        tl_blob_put(stf);
        return TL_NOMEM;
    }
    view->frames[index->n_frames] = stf;
    index->frames[index->n_frames++] = *frame;
    return TL_OK;
}

/* The log as a blob of its own, packed if there is a packer, while its memory stays for the next
 * one; NULL in `*out`: it is empty. */
static int take_log(const struct tl_part *part, struct tl_packer *packer, struct tl_blob **out)
{
    const struct tl_bytes log = {part->log.bytes.p, part->log.bytes.n};
    *out = NULL;
    if (log.n > 0)
        *out = packer ? tl_blob_pack(packer, log, NULL, 0) : tl_blob_new(log);
    return log.n > 0 && !*out ? TL_NOMEM : TL_OK;
}

/* Where the chunk ends in the raw bytes, and how its last instruction was left: nothing else but
 * the index would tell. */
static int note_end(struct tl_part *part)
{
    const struct tl_shard_row *row = &part->view->index.row;
    if (part->ghost)
        return TL_OK;
    return tl_itemlog_end(&part->log, row->first + row->n - part->open.first, row->byte_last);
}

static int close_chunk(struct tl_part *part, struct tl_packer *packer, struct tl_blob **log)
{
    struct tl_chunk *c = &part->open;
    struct tl_blob *items;
    part->log_bytes += tl_part_logged(part);
    int settled = tl_part_settle(part);
    if (settled >= 0)
        settled = note_end(part);
    if (settled < 0)
        return settled;
    c->items_plain = (uint32_t)part->log.bytes.n;
    if (part->ghost)
        return TL_OK;
    int r = take_log(part, packer, &items);
    if (r < 0)
        return r;
    c->items_size = 0; /* known when it is packed */
    r = store_code(&part->code, &part->view->index, c);
    if (r < 0) {
        tl_blob_put(items);
        return r;
    }
    *log = items;
    return add_chunk(part->view, c, items);
}

int tl_part_next_chunk(struct tl_part *part, uint32_t stf, const struct tl_flow_now *now,
                       struct tl_packer *packer, struct tl_blob **log)
{
    const int r = close_chunk(part, packer, log);
    if (r >= 0)
        open_chunk(part, stf, now);
    return r;
}

int tl_part_frame(struct tl_part *part, struct tl_blob *stf, size_t plain, uint64_t marker,
                  uint64_t pc)
{
    if (part->ghost) {
        part->view->index.n_frames = 1; /* it matters only whether there is one */
        return TL_OK;
    }
    const struct tl_shard_frame frame = {.plain = (uint32_t)plain, .marker = marker, .pc = pc};
    return add_frame(part->view, &frame, stf);
}

/* ---- what happens -------------------------------------------------------------------------- */

int tl_part_settle(struct tl_part *part)
{
    struct tl_part_run *run = &part->run;
    if (run->n == 0 && !run->items)
        return TL_OK;
    struct tl_bucket *b = tl_buckets_at(&part->view->index.buckets, tl_part_run_bucket(run));
    if (!b)
        return TL_NOMEM;
    tl_part_run_settle(run, b, true);
    return TL_OK;
}

/* Tell of what was counted for each function. */
static void tell_functions(struct tl_part *part)
{
    if (tl_part_run_tell(&part->run, &part->tallying) < 0)
        part->tallying.untold = true;
}

/* The run has no number left for a place: give all of them back. */
static int renew(struct tl_part *part)
{
    const int r = tl_part_settle(part);
    if (r < 0)
        return r;
    tell_functions(part);
    tl_part_run_forget(&part->run);
    part->stamp = next_stamp();
    return TL_OK;
}

int tl_part_place(struct tl_part *part, const struct tl_flow_now *now, uint32_t function,
                  uint64_t page)
{
    struct tl_part_run *const run = &part->run;
    const int place = tl_part_run_place(run, function, page);
    if (place >= 0)
        return place;
    const int r = renew(part);
    tl_part_run_depth(run, now->depth);
    return r < 0 ? r : tl_part_run_place(run, function, page);
}

int tl_part_insns(struct tl_part *part, const struct tl_flow_now *now, uint64_t n, uint64_t pc,
                  uint64_t size, uint32_t function, bool called)
{
    struct tl_part_run *const run = &part->run;
    uint64_t counts = called ? UINT64_C(1) << 32 : 0;
    tl_code_set_add(&part->code, pc, size > 0 ? size : 1);
    while (n > 0) {
        const int r = tl_part_run_room(run) == 0 ? tl_part_settle(part) : TL_OK,
                  place = r < 0 ? r : tl_part_place(part, now, function, pc >> 12);
        if (place < 0)
            return place;
        const uint64_t room = tl_part_run_room(run), take = n < room ? n : room;
        run->counts[place] += counts + take;
        tl_part_run_more(run, take, tl_flow_now_privilege(now));
        tl_part_run_depth(run, now->depth);
        counts = 0;
        n -= take;
    }
    return TL_OK;
}

void tl_part_points(struct tl_part *part, uint64_t n)
{
    part->view->index.row.n += n;
    part->open.n += n;
}

void tl_part_blocks(struct tl_part *part, uint64_t n)
{
    tl_part_points(part, n);
    part->view->index.row.markers += n;
    if (n > 0)
        part->last_position = tl_part_position(part) - 1;
}

void tl_part_tell(struct tl_part *part)
{
    struct tl_shard_index *index = &part->view->index;
    if (part->counted)
        return;
    tell_functions(part);
    tl_tallying_end(&part->tallying, index->row.n, index->row.markers, &index->tally);
}

void tl_part_left(struct tl_part *part, bool taken)
{
    part->run.taken += taken;
    part->log.turned = taken;
}

/* Items are here, and of these kinds. Buckets are made in their order. */
static int note_items(struct tl_part *part, uint32_t kinds)
{
    const int r = tl_part_run_room(&part->run) == 0 ? tl_part_settle(part) : TL_OK;
    part->run.items = part->any = true;
    part->open.kinds |= kinds;
    return r;
}

static void note_anchor(struct tl_part *part, uint64_t time)
{
    struct tl_shard_row *const row = &part->view->index.row;
    struct tl_chunk *const c = &part->open;
    const struct tl_anchor anchor = {tl_part_position(part), time};
    if (c->anchors++ == 0)
        c->anchor_first = anchor;
    if (row->anchors++ == 0)
        row->anchor_first = anchor;
    c->anchor_last = row->anchor_last = anchor;
}

static void note_gaps(struct tl_part *part, const struct tl_item *item, size_t n)
{
    struct tl_tally *const tally = &part->tallying.tally;
    part->run.flags |= tl_bucket_flags(item);
    part->open.gaps += (uint32_t)n;
    part->view->index.row.gaps += n;
    if (item->sub < TL_GAP_KINDS)
        tally->gaps[item->sub] += n;
}

int tl_part_item(struct tl_part *part, const struct tl_flow_now *now, const struct tl_item *item)
{
    struct tl_shard_row *const row = &part->view->index.row;
    const bool event = tl_item_is_event(item);
    int r = tl_itemlog_add(&part->log, tl_part_position(part) - part->open.first, item);
    if (r >= 0)
        r = note_items(part, 1u << item->kind);
    if (r < 0)
        return r;
    row->byte_last = item->offset;
    part->tallying.tally.kinds[item->kind]++;
    switch (item->kind) {
    case TL_ITEM_CYCLES: /* by far the most */
        return TL_OK;
    case TL_ITEM_TIME:
        if (tl_item_is_anchor(item))
            note_anchor(part, now->time);
        return TL_OK;
    case TL_ITEM_GAP:
        note_gaps(part, item, 1);
        return TL_OK;
    case TL_ITEM_MODE:
        tl_tallying_mode(&part->tallying, item->value, row->n);
        break;
    default:
        break;
    }
    part->open.events += event;
    row->events += event;
    tl_part_run_item(&part->run, item);
    return TL_OK;
}

int tl_part_cycles(struct tl_part *part, uint64_t position, const struct tl_item *item)
{
    part->tallying.tally.kinds[TL_ITEM_CYCLES]++;
    part->open.kinds |= 1u << TL_ITEM_CYCLES;
    return tl_itemlog_add(&part->log, position - part->open.first, item);
}

int tl_part_holes(struct tl_part *part, const struct tl_item *items, size_t *n, size_t most)
{
    uint64_t *const kinds = part->tallying.tally.kinds;
    int r = tl_itemlog_add_holes(&part->log, tl_part_position(part) - part->open.first, items, n,
                                 most + part->log_begin);
    const size_t holes = *n / 2;
    if (r < 0 || holes == 0)
        return r;
    r = note_items(part, 1u << TL_ITEM_BRANCH | 1u << TL_ITEM_GAP);
    note_gaps(part, &items[1], holes);
    part->run.taken += holes;
    kinds[TL_ITEM_BRANCH] += holes;
    kinds[TL_ITEM_GAP] += holes;
    part->view->index.row.byte_last = items[*n - 1].offset;
    return r;
}

int tl_part_isa(struct tl_part *part, enum tl_isa isa)
{
    return tl_itemlog_add_isa(&part->log, tl_part_position(part) - part->open.first, isa);
}

int tl_part_offset(struct tl_part *part, uint64_t offset)
{
    const uint64_t position = tl_part_position(part), at = position - part->open.first;
    if (position >> TL_PART_OFFSETS == part->offset_noted)
        return TL_OK;
    part->offset_noted = position >> TL_PART_OFFSETS;
    /* An item shortly before tells as well; but a census expects the note. */
    const bool told = at - part->log.base.position < 1u << (TL_PART_OFFSETS - 1) && !part->counted;
    return told ? TL_OK : tl_itemlog_add_offset(&part->log, at, offset);
}

/* ---- views --------------------------------------------------------------------------------- */

int tl_part_complete(struct tl_part *part, struct tl_packer *packer, struct tl_view **out,
                     struct tl_blob **log)
{
    struct tl_shard_index *index = &part->view->index;
    const bool needed = part->open.n > 0 || part->open.kinds != 0 || index->n_chunks == 0;
    *log = NULL;
    const int r = needed ? close_chunk(part, packer, log) : TL_OK;
    if (r < 0)
        return r;
    tl_part_tell(part);
    /* Items behind the last frame's last marker belong to no frame: give them the last. */
    for (size_t i = index->n_chunks; i-- > 0 && index->chunks[i].stf >= index->n_frames;)
        index->chunks[i].stf = (uint32_t)index->n_frames - 1;
    *out = part->view;
    part->view = NULL;
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
    int r = TL_OK;
    for (size_t i = 0; r >= 0 && i < a->n_chunks; i++)
        r = add_chunk(to, &a->chunks[i], tl_blob_get(from->items[i]));
    for (size_t i = 0; r >= 0 && i < a->n_frames; i++)
        r = add_frame(to, &a->frames[i], tl_blob_get(from->frames[i]));
    return r;
}

static int copy_open(const struct tl_part *part, struct tl_bytes stf, uint64_t marker, uint64_t pc,
                     struct tl_view *view)
{
    struct tl_chunk chunk = part->open;
    struct tl_blob *items = NULL;
    if (part->log.bytes.n > 0) {
        items = tl_blob_new((struct tl_bytes){part->log.bytes.p, part->log.bytes.n});
        if (!items)
            return TL_NOMEM;
        chunk.items_plain = (uint32_t)part->log.bytes.n;
    }
    chunk.n_code = UINT32_MAX;
    int r = add_chunk(view, &chunk, items);
    const struct tl_shard_frame frame = {.plain = (uint32_t)stf.n, .marker = marker, .pc = pc};
    if (r >= 0 && stf.n > 0)
        r = add_frame(view, &frame, tl_blob_new(stf));
    return r;
}

/* Cut what lies behind the positions that can be read. */
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

/* The run stays as it is: that somebody looked must make no difference. */
static int settle_copy(struct tl_part *part, struct tl_view *view)
{
    struct tl_shard_index *index = &view->index;
    if (part->run.n == 0 && !part->run.items)
        return TL_OK;
    struct tl_bucket *b = tl_buckets_at(&index->buckets, tl_part_run_bucket(&part->run));
    if (!b)
        return TL_NOMEM;
    tl_part_run_settle(&part->run, b, false);
    return TL_OK;
}

int tl_part_snapshot(struct tl_part *part, struct tl_bytes stf, uint64_t marker, uint64_t pc,
                     uint64_t positions, struct tl_view **out)
{
    struct tl_view *view = tl_view_new();
    int r = view ? copy_closed(part->view, view) : TL_NOMEM;
    if (r >= 0)
        r = settle_copy(part, view);
    if (r >= 0)
        r = copy_open(part, stf, marker, pc, view);
    if (r < 0) {
        tl_view_put(view);
        return r;
    }
    clip(view, positions);
    view->open = true;
    *out = view;
    return TL_OK;
}
