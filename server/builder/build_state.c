/* SPDX-License-Identifier: MIT */
/*
 * Saves and loads the complete state of a builder for checkpoints. The shard in the making is part
 * of it, so that after a restart the next shard is the same to the byte.
 */
#include "builder/build_parts.h"
#include "shard/savedstack.h"

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

/* The call stack, in the form used in a shard's log. */
static void calls_state(struct tl_callstack *calls, struct tl_state *s)
{
    struct tl_buf bytes = {0};
    if (!tl_state_loads(s))
        tl_state_fail(s, tl_savedstack_encode(calls, &bytes));
    tl_state_buf(s, &bytes, SIZE_MAX);
    if (tl_state_loads(s) && s->rc >= 0)
        tl_state_fail(s, tl_savedstack_decode(calls, (struct tl_bytes){bytes.p, bytes.n}));
    tl_buf_fini(&bytes);
}

/* Is it a shard that is already in the store, or the next one? */
static bool shard_fits(const struct tl_build *b, const struct tl_shard_builder *shard)
{
    const struct tl_shard_row *row = &shard->view->index.row;
    const struct tl_build_options *o = &b->options;
    if (row->number < o->sealed)
        return row->first <= o->sealed_position;
    return !shard->replayed && shard->by_insn == (b->insn_stats != NULL) &&
           (row->number > o->sealed || row->first == o->sealed_position);
}

/* Create a new one to load. False: there was an error. */
static bool renew(struct tl_shard_builder **shard, struct tl_state *s)
{
    static const struct tl_flow_now nothing;
    if (tl_state_loads(s)) {
        tl_shard_builder_free(*shard);
        *shard = tl_shard_builder_new(0, 0, &nothing);
        if (!*shard)
            tl_state_fail(s, TL_NOMEM);
    }
    return s->rc >= 0;
}

static void builder_state(struct tl_build *b, struct tl_shard_builder **shard, struct tl_state *s)
{
    if (!renew(shard, s))
        return;
    tl_shard_builder_state(*shard, b->packer, s);
    const bool outline = b->options.outline;
    tl_state_check(s,
                   shard_fits(b, *shard) && (outline || (*shard)->bare == b->options.index_only));
    if (!tl_state_loads(s) || s->rc < 0)
        return;
    if ((*shard)->view->index.row.number < b->options.sealed)
        tl_shard_builder_replay(*shard);
    else if (outline)
        tl_shard_builder_outline(*shard);
}

/* The shard that waits for the writer, if there is one, and the next one. */
static void builders_state(struct tl_build *b, struct tl_state *s)
{
    uint64_t number = b->options.sealed, end = b->options.sealed_position;
    if (b->cut == CUT_SHARD) {
        builder_state(b, &b->closing, s);
        if (s->rc < 0)
            return;
        const struct tl_shard_row *closing = &b->closing->view->index.row;
        tl_state_check(s, closing->number <= number);
        number = closing->number + 1;
        end = closing->first + closing->n;
    }
    builder_state(b, &b->index.shard, s);
    if (s->rc < 0)
        return;
    const struct tl_shard_row *row = &b->index.shard->view->index.row;
    b->index.insn_stats = b->index.shard->by_insn ? b->insn_stats : NULL;
    tl_state_check(s, b->cut == CUT_SHARD ? row->number == number && row->first == end
                                          : row->number <= number);
}

/* Its counts belong to the shard. */
static void insn_stats_state(struct tl_build *b, struct tl_state *s)
{
    struct tl_buf bytes = {0};
    if (!tl_state_loads(s) && b->index.shard->by_insn) {
        struct tl_state out = {.out = &bytes};
        tl_insn_stats_state(b->insn_stats, &out);
        tl_state_fail(s, out.rc);
    }
    tl_state_buf(s, &bytes, SIZE_MAX);
    if (tl_state_loads(s) && s->rc >= 0 && b->index.shard->by_insn) {
        struct tl_state in = {.in = {bytes.p, bytes.n}};
        tl_insn_stats_state(b->insn_stats, &in);
        tl_state_check(&in, in.in.n == 0);
        tl_state_fail(s, in.rc);
    }
    tl_buf_fini(&bytes);
}

/* The position, without the shards. */
static void place_state(struct tl_build *b, struct tl_state *s)
{
    uint8_t cut = (uint8_t)b->cut;
    tl_state_u8(s, &cut, CUT_SHARD);
    b->cut = (enum cut)cut;
    tl_state_u64(s, &b->stop);
    tl_state_u64(s, &b->frame_marker);
    tl_state_u32(s, &b->frame);
    tl_flow_now_state(&b->index.now, s);
    calls_state(&b->index.calls, s);
}

static void check_place(struct tl_build *b, struct tl_state *s)
{
    tl_state_check(s, b->frame_marker <= tl_stf_flow_markers(b->flow));
    tl_state_check(s, b->cut == CUT_NONE || tl_stf_flow_markers(b->flow) <= b->stop);
}

/* The calls of the open shard so far are not saved: only the times of those that follow it. */
static void follow_calls(struct tl_build *b, struct tl_state *s)
{
    struct tl_call_counter *const caller = &b->index.shard->caller;
    if (!tl_state_loads(s) || b->index.shard->remade || b->options.outline)
        return;
    caller->partial = true;
    tl_call_counter_begin(caller, &b->index.calls, &b->times,
                          tl_shard_builder_position(b->index.shard), 0);
}

void tl_build_state(struct tl_build *b, struct tl_state *s)
{
    if (!tl_state_loads(s))
        tl_state_fail(s, tl_build_packer(b));
    place_state(b, s);
    totals_state(&b->totals, s);
    tl_stf_flow_resume(b->flow, s);
    check_place(b, s);
    builders_state(b, s);
    tl_call_times_state(&b->times, s);
    tl_time_buckets_state(b->ran, s);
    if (s->rc < 0)
        return;
    b->index.shard->ran = b->options.outline ? NULL : b->ran;
    follow_calls(b, s);
    insn_stats_state(b, s);
    if (tl_state_loads(s)) /* a replayed shard's frame is not made, whatever was saved */
        tl_stf_flow_dry(b->flow, b->options.index_only);
}

/* What the mark is in belongs to no part, but is in the store, or as if it were. Of calls and times
 * the begin is not known. */
static void follow_marked(struct tl_build *b, struct tl_state *s)
{
    b->marked = true;
    b->index.shard->remade = b->index.shard->partial = false;
    if (b->closing)
        b->closing->remade = b->closing->partial = false;
    b->index.shard->ran = b->ran;
    follow_calls(b, s);
    tl_state_check(s, b->index.shard->view->index.row.number < b->options.sealed);
}

void tl_build_mark(struct tl_build *b, struct tl_state *s)
{
    place_state(b, s);
    tl_stf_flow_mark(b->flow, s);
    check_place(b, s);
    if (b->cut == CUT_SHARD && renew(&b->closing, s))
        tl_shard_builder_mark(b->closing, s);
    if (renew(&b->index.shard, s))
        tl_shard_builder_mark(b->index.shard, s);
    if (!tl_state_loads(s) || s->rc < 0)
        return;
    if (!b->options.part)
        follow_marked(b, s);
    b->index.shard->by_insn = b->insn_stats != NULL;
    b->index.insn_stats = b->insn_stats;
    if (b->insn_stats)
        tl_insn_stats_begin(b->insn_stats, &b->index.now);
    b->wet = false;
    tl_stf_flow_dry(b->flow, true);
}
