/* SPDX-License-Identifier: MIT */
/*
 * Where a builder stands, as bytes. Of a shard that has blocks only that is told which later shards
 * hang on. The logs of one that has items alone hold all of them: there the items are told, and
 * where the shard began.
 */
#include "store/build_parts.h"
#include "store/stackmark.h"

#define LOG_MOST (64u << 20) /* plain bytes of one chunk's: an item may be long */

uint64_t tl_build_shard(const struct tl_build *b)
{
    return (b->closing ? b->closing : b->part)->view->index.row.number;
}

static void totals_state(struct tl_build_totals *t, struct tl_state *s)
{
    tl_state_u64(s, &t->events);
    tl_state_u64(s, &t->gaps);
    tl_state_u32(s, &t->anchors);
    tl_state_u64(s, &t->anchor_first.position);
    tl_state_u64(s, &t->anchor_first.time);
    tl_state_u64(s, &t->anchor_last.position);
    tl_state_u64(s, &t->anchor_last.time);
}

/* The call stack and what is in force, as a shard's index has them. */
static void now_state(struct tl_build *b, struct tl_state *s)
{
    struct tl_buf calls = {0}, now = {0};
    if (!tl_state_loads(s)) {
        tl_state_fail(s, tl_stackmark_encode(&b->calls, &calls));
        tl_state_fail(s, tl_flow_now_encode(&b->now, &now));
    }
    tl_state_buf(s, &calls, SIZE_MAX);
    tl_state_buf(s, &now, SIZE_MAX);
    if (tl_state_loads(s) && s->rc >= 0) {
        tl_state_fail(s, tl_stackmark_decode(&b->calls, (struct tl_bytes){calls.p, calls.n}));
        tl_state_fail(s, tl_flow_now_decode(&b->now, (struct tl_bytes){now.p, now.n}));
    }
    tl_buf_fini(&calls);
    tl_buf_fini(&now);
}

/* The part itself, which begins at `first`. */
static void part_state(struct tl_build *b, struct tl_state *s, uint64_t number, uint64_t first)
{
    if (tl_state_loads(s)) {
        tl_state_check(s, number < b->options.sealed && first <= b->position);
        if (s->rc < 0)
            return;
        tl_part_free(b->part);
        b->part = tl_part_new(number, first, &b->now);
        if (!b->part) {
            tl_state_fail(s, TL_NOMEM);
            return;
        }
    }
    tl_part_state(b->part, s);
    const struct tl_part *part = b->part;
    const struct tl_shard_row *row = &part->view->index.row;
    tl_state_check(s, row->n == b->position - first && row->n <= b->options.shard_insns);
    tl_state_check(s, row->markers <= row->n && part->open.n <= row->n &&
                          part->open.first == b->position - part->open.n);
}

/* All but the part, of which only the number is told. */
static void stand_state(struct tl_build *b, struct tl_state *s, uint64_t *number)
{
    *number = b->part->view->index.row.number;
    tl_state_u64(s, number);
    tl_state_u64(s, &b->position);
    tl_state_u64(s, &b->frame_marker);
    tl_state_u32(s, &b->frame);
    totals_state(&b->totals, s);
    now_state(b, s);
    tl_stf_flow_resume(b->flow, s);
}

void tl_build_origin(struct tl_build *b)
{
    struct tl_state s = {.out = &b->origin};
    uint64_t number;
    tl_buf_reset(&b->origin);
    stand_state(b, &s, &number);
    if (s.rc < 0)
        tl_buf_reset(&b->origin);
}

/* Go back to where the part began. */
static void load_origin(struct tl_build *b, struct tl_state *s)
{
    struct tl_state in = {.in = {b->origin.p, b->origin.n}, .rc = s->rc};
    uint64_t number;
    stand_state(b, &in, &number);
    tl_state_check(&in, in.in.n == 0 && b->frame_marker == 0 && b->frame == 0);
    tl_state_check(&in, number < b->options.sealed || (number == b->options.sealed &&
                                                       b->position == b->options.sealed_position));
    if (in.rc >= 0) {
        tl_part_free(b->part);
        b->part = NULL;
        tl_state_fail(&in, tl_build_part(b, number));
    }
    tl_state_fail(s, in.rc);
}

/* Take the items of a log once more, which begins where the open chunk does. */
static int replay(struct tl_build *b, struct tl_bytes log)
{
    struct tl_itemlog_reader reader;
    tl_itemlog_read(&reader, log, b->now.offset, b->now.has_time ? b->now.time : 0);
    for (;;) {
        struct tl_item item;
        uint64_t position;
        int r = tl_itemlog_next(&reader, &item, &position);
        if (r < 0)
            return r == TL_EOF ? TL_OK : r;
        if (item.kind == TL_ITEM_PATH)
            return TL_BAD; /* it was never logged */
        if (item.kind < TL_ITEM_KINDS)
            r = tl_build_items(b, &item, 1);
        if (r < 0)
            return r;
    }
}

/*
 * The items since the part began. They are in its logs, and taking them again makes all that there
 * was.
 */
static void items_state(struct tl_build *b, struct tl_state *s)
{
    size_t n = tl_state_loads(s) ? 0 : b->part->view->index.n_chunks + 1;
    tl_state_size(s, &n, SIZE_MAX);
    if (!tl_state_loads(s))
        tl_state_fail(s, tl_build_packer(b));
    for (size_t i = 0; i < n && s->rc >= 0; i++) {
        struct tl_buf packed = {0}, log = {0};
        if (!tl_state_loads(s))
            tl_state_fail(s, tl_part_items(b->part, i, b->packer, &packed));
        tl_state_buf(s, &packed, SIZE_MAX);
        if (tl_state_loads(s) && s->rc >= 0)
            tl_state_fail(s, tl_unpack((struct tl_bytes){packed.p, packed.n}, LOG_MOST, &log));
        if (tl_state_loads(s) && s->rc >= 0)
            tl_state_fail(s, replay(b, (struct tl_bytes){log.p, log.n}));
        tl_buf_fini(&packed);
        tl_buf_fini(&log);
    }
}

bool tl_build_is_whole(const struct tl_build *b)
{
    const struct tl_part *const part = b->part;
    return b->cut == CUT_NONE && b->origin.n > 0 && !part->ghost &&
           part->view->index.row.markers == 0;
}

void tl_build_state(struct tl_build *b, struct tl_state *s)
{
    bool whole = tl_build_is_whole(b);
    if (!tl_state_loads(s) && b->cut != CUT_NONE)
        tl_state_fail(s, TL_AGAIN);
    tl_state_bool(s, &whole);
    if (whole) {
        tl_state_buf(s, &b->origin, SIZE_MAX);
        if (tl_state_loads(s))
            load_origin(b, s);
        items_state(b, s);
        return;
    }
    uint64_t number, first = b->part->view->index.row.first;
    if (tl_state_loads(s))
        tl_buf_reset(&b->origin);
    stand_state(b, s, &number);
    tl_state_u64(s, &first);
    part_state(b, s, number, first);
}
