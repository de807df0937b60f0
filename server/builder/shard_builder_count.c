/* SPDX-License-Identifier: MIT */
/*
 * Counts and logs what happens in a shard: instructions, and items between them. Counts go to the
 * open bucket first, since most of what follows lies in the same one.
 */
#include "builder/shard_builder.h"

int tl_shard_builder_settle_into(struct tl_shard_builder *shard, struct tl_view *view, bool ends)
{
    struct tl_open_bucket *const open = &shard->bucket;
    if (shard->replayed || (open->n == 0 && !open->items))
        return TL_OK;
    struct tl_bucket *const b = tl_buckets_at(&view->index.buckets, tl_open_bucket_position(open));
    if (!b)
        return TL_NOMEM;
    return tl_open_bucket_settle(open, b, &view->index.functions, ends);
}

int tl_shard_builder_settle(struct tl_shard_builder *shard)
{
    return tl_shard_builder_settle_into(shard, shard->view, true);
}

/* Add the per-function counts to the statistics. */
static void report_functions(struct tl_shard_builder *shard)
{
    if (tl_open_bucket_report(&shard->bucket, &shard->counter) < 0)
        shard->counter.unreported = true;
}

/* The open bucket has no number left for a place: release all of them. */
static int renew(struct tl_shard_builder *shard)
{
    int r = tl_shard_builder_settle(shard);
    if (r >= 0)
        r = tl_open_bucket_flush(&shard->bucket, &shard->view->index.functions);
    if (r < 0)
        return r;
    report_functions(shard);
    tl_open_bucket_forget(&shard->bucket);
    tl_shard_builder_forget(shard);
    return TL_OK;
}

int tl_shard_builder_place(struct tl_shard_builder *shard, const struct tl_flow_now *now,
                           uint32_t function, uint64_t page)
{
    struct tl_open_bucket *const open = &shard->bucket;
    const int place = tl_open_bucket_place(open, function, page);
    if (place >= 0)
        return place;
    const int r = renew(shard);
    tl_open_bucket_depth(open, now->depth);
    return r < 0 ? r : tl_open_bucket_place(open, function, page);
}

int tl_shard_builder_insns(struct tl_shard_builder *shard, const struct tl_flow_now *now,
                           uint64_t n, uint64_t pc, uint64_t size, uint32_t function, bool called)
{
    struct tl_open_bucket *const open = &shard->bucket;
    uint64_t counts = called ? UINT64_C(1) << 32 : 0;
    if (shard->replayed) {
        open->position += n;
        return TL_OK;
    }
    tl_code_set_add(&shard->code, pc, size > 0 ? size : 1);
    while (n > 0) {
        const int r = tl_open_bucket_room(open) == 0 ? tl_shard_builder_settle(shard) : TL_OK,
                  place = r < 0 ? r : tl_shard_builder_place(shard, now, function, pc >> 12);
        if (place < 0)
            return place;
        const uint64_t room = tl_open_bucket_room(open), take = n < room ? n : room;
        open->counts[place] += counts + take;
        tl_open_bucket_more(open, take, tl_flow_now_privilege(now));
        tl_open_bucket_depth(open, now->depth);
        counts = 0;
        n -= take;
    }
    return TL_OK;
}

void tl_shard_builder_points(struct tl_shard_builder *shard, uint64_t n)
{
    shard->view->index.row.n += n;
    shard->open.n += n;
}

void tl_shard_builder_blocks(struct tl_shard_builder *shard, uint64_t n)
{
    tl_shard_builder_points(shard, n);
    shard->view->index.row.markers += n;
    if (n > 0)
        shard->last_position = tl_shard_builder_position(shard) - 1;
}

void tl_shard_builder_report(struct tl_shard_builder *shard)
{
    struct tl_shard_index *index = &shard->view->index;
    if (shard->by_insn)
        return;
    report_functions(shard);
    tl_stats_counter_end(&shard->counter, index->row.n, index->row.markers, &index->stats);
}

void tl_shard_builder_left(struct tl_shard_builder *shard, bool taken)
{
    shard->bucket.taken += taken;
    shard->log.turned = taken;
}

/* Record items of these kinds here. Buckets are created in order. */
static int note_items(struct tl_shard_builder *shard, uint32_t kinds)
{
    const int r = tl_open_bucket_room(&shard->bucket) == 0 ? tl_shard_builder_settle(shard) : TL_OK;
    shard->bucket.items = shard->any = true;
    shard->open.kinds |= kinds;
    return r;
}

static void note_anchor(struct tl_shard_builder *shard, uint64_t position, uint64_t time)
{
    struct tl_shard_row *const row = &shard->view->index.row;
    struct tl_chunk *const c = &shard->open;
    const struct tl_anchor anchor = {position, time};
    if (c->anchors++ == 0)
        c->anchor_first = anchor;
    if (row->anchors++ == 0)
        row->anchor_first = anchor;
    c->anchor_last = row->anchor_last = anchor;
}

static void note_gaps(struct tl_shard_builder *shard, uint64_t position, const struct tl_item *item,
                      size_t n)
{
    if (shard->ran)
        tl_time_buckets_item(shard->ran, position, item);
    shard->bucket.flags |= tl_bucket_flags(item);
    shard->open.gaps += (uint32_t)n;
    shard->view->index.row.gaps += n;
    shard->bucket.taken += tl_item_is_branch(item) ? n : 0;
    tl_shard_stats_items(&shard->counter.stats, item, n);
}

int tl_shard_builder_gap(struct tl_shard_builder *shard, uint64_t position,
                         const struct tl_item *item)
{
    int r = tl_itemlog_add(&shard->log, position - shard->open.first, item);
    if (r >= 0)
        r = note_items(shard, tl_item_kinds(item));
    if (r < 0)
        return r;
    shard->view->index.row.byte_last = item->offset;
    note_gaps(shard, position, item, 1);
    return TL_OK;
}

int tl_shard_builder_item(struct tl_shard_builder *shard, const struct tl_flow_now *now,
                          const struct tl_item *item)
{
    struct tl_shard_row *const row = &shard->view->index.row;
    const bool event = tl_item_is_event(item);
    if (item->kind == TL_ITEM_GAP)
        return tl_shard_builder_gap(shard, tl_shard_builder_position(shard), item);
    int r = tl_itemlog_add(&shard->log, tl_shard_builder_position(shard) - shard->open.first, item);
    if (r >= 0)
        r = note_items(shard, tl_item_kinds(item));
    if (r < 0)
        return r;
    row->byte_last = item->offset;
    tl_shard_stats_items(&shard->counter.stats, item, 1);
    switch (item->kind) {
    case TL_ITEM_CYCLES: /* by far the most frequent */
        return TL_OK;
    case TL_ITEM_TIME:
        if (tl_item_is_anchor(item))
            note_anchor(shard, tl_shard_builder_position(shard), now->axis);
        return TL_OK;
    case TL_ITEM_MODE:
        tl_stats_counter_mode(&shard->counter, item->value, row->n);
        break;
    default:
        break;
    }
    shard->open.events += event;
    row->events += event;
    tl_open_bucket_item(&shard->bucket, item);
    if (shard->ran)
        tl_time_buckets_item(shard->ran, tl_shard_builder_position(shard), item);
    return TL_OK;
}

int tl_shard_builder_measure(struct tl_shard_builder *shard, uint64_t position,
                             const struct tl_flow_now *now, const struct tl_item *item)
{
    shard->counter.stats.kinds[item->kind]++;
    shard->open.kinds |= 1u << item->kind;
    if (tl_item_is_anchor(item))
        note_anchor(shard, position, now->axis);
    return tl_itemlog_add(&shard->log, position - shard->open.first, item);
}

int tl_shard_builder_unmapped(struct tl_shard_builder *shard, const struct tl_item *items,
                              size_t *n, size_t most)
{
    int r =
        tl_itemlog_add_unmapped(&shard->log, tl_shard_builder_position(shard) - shard->open.first,
                                items, n, most + shard->log_begin);
    if (r < 0 || *n == 0)
        return r;
    r = note_items(shard, tl_item_kinds(items));
    note_gaps(shard, tl_shard_builder_position(shard), items, *n);
    shard->view->index.row.byte_last = items[*n - 1].offset;
    return r;
}

int tl_shard_builder_isa(struct tl_shard_builder *shard, enum tl_isa isa)
{
    return tl_itemlog_add_isa(&shard->log, tl_shard_builder_position(shard) - shard->open.first,
                              isa);
}

int tl_shard_builder_offset(struct tl_shard_builder *shard, uint64_t position, uint64_t offset)
{
    const uint64_t at = position - shard->open.first;
    if (position >> TL_SHARD_OFFSETS == shard->offset_noted)
        return TL_OK;
    shard->offset_noted = position >> TL_SHARD_OFFSETS;
    /* An item shortly before gives it as well; but per-instruction statistics expect the entry. */
    const bool reported =
        at - shard->log.base.position < 1u << (TL_SHARD_OFFSETS - 1) && !shard->by_insn;
    return reported ? TL_OK : tl_itemlog_add_offset(&shard->log, at, offset);
}
