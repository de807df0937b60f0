/* SPDX-License-Identifier: MIT */
/*
 * Saving and loading a writer of flow, and beginning a shard's file in the middle of it. A mark has
 * no records, only what those behind it depend on, since the records before it are stored.
 */
#include "base/state.h"
#include "stf/flow/flow_parts.h"
#include "stf/flow/flow_repeat.h"
#include "stf/known.h"

static void stand_state(struct tl_stf_flow_state *at, struct tl_state *s)
{
    tl_state_u64(s, &at->pc);
    tl_state_u64(s, &at->mode);
    tl_state_u64(s, &at->context);
    tl_state_u64(s, &at->vmid);
    tl_state_u8(s, &at->isa, TL_ISA_OR1K);
    tl_state_bool(s, &at->has_pc);
    tl_state_bool(s, &at->has_mode);
    tl_state_bool(s, &at->has_context);
    tl_state_bool(s, &at->has_vmid);
}

static void front_state(struct tl_stf_front *front, struct tl_state *s)
{
    tl_state_buf(s, &front->lead, SIZE_MAX);
    tl_state_buf(s, &front->pre, SIZE_MAX);
    tl_state_bool(s, &front->force);
    tl_state_bool(s, &front->any);
}

static void held_state(struct tl_stf_held *held, struct tl_state *s)
{
    tl_state_bool(s, &held->valid);
    tl_state_bool(s, &held->taken);
    tl_state_bool(s, &held->branches);
    tl_state_bool(s, &held->has_target);
    tl_state_bool(s, &held->awaits_target);
    tl_state_bool(s, &held->event);
    tl_state_bool(s, &held->odd_size);
    tl_state_u8(s, &held->close_n, TL_STF_CLOSE_MAX);
    tl_state_bytes(s, held->close, sizeof held->close);
    tl_state_u64(s, &held->pc);
    tl_state_u64(s, &held->next);
    tl_state_u64(s, &held->target);
    tl_state_size(s, &held->post_target, SIZE_MAX / 2);
    tl_state_size(s, &held->post_flags, SIZE_MAX / 2);
    tl_state_buf(s, &held->post, SIZE_MAX);
    tl_state_buf(s, &held->accesses, SIZE_MAX);
    tl_state_bool(s, &held->bare);
    tl_state_check(s, !held->bare || held->accesses.n >= TL_STF_ACCESS_BYTES);
    tl_state_check(s, !held->awaits_target ||
                          (held->post_target + TL_STF_TARGET_BYTES <= held->post.n &&
                           held->post_flags + 8 <= held->post.n));
    front_state(&held->front, s);
}

void tl_stf_flow_resume(struct tl_stf_flow *flow, struct tl_state *s)
{
    uint8_t isa = (uint8_t)flow->read_isa;
    stand_state(&flow->state, s);
    stand_state(&flow->reported, s);
    tl_state_u8(s, &isa, TL_ISA_OR1K);
    flow->read_isa = (enum tl_isa)isa;
    tl_state_bool(s, &flow->header);
    tl_state_bool(s, &flow->open);
    tl_state_bool(s, &flow->later);
    tl_state_bool(s, &flow->whole);
    tl_state_bool(s, &flow->mode_due);
    tl_state_u64(s, &flow->mode_flags);
    tl_state_u8(s, &flow->points, TL_STF_POINTS_UNSAID);
    held_state(&flow->held, s);
    front_state(&flow->front, s);
    tl_state_u64(s, &flow->markers);
    tl_state_u64(s, &flow->track);
    tl_state_u64(s, &flow->chunk_pc);
    if (flow->out.n > 0 && !tl_state_loads(s))
        tl_stf_repeats_fill(flow->repeats, flow->out.p);
    tl_state_buf(s, &flow->out, SIZE_MAX);
    bool known = flow->known;
    tl_state_bool(s, &known);
    if (known && tl_state_loads(s) && !flow->known)
        tl_state_fail(s, tl_stf_known_new(&flow->known));
    if (known && flow->known)
        tl_stf_known_state(flow->known, s);
    if (flow->repeats)
        tl_stf_repeats_state(flow->repeats, flow->out.n, s);
}

void tl_stf_flow_mark(struct tl_stf_flow *flow, struct tl_state *s)
{
    const size_t out = flow->out.n;
    flow->out.n = 0;
    tl_stf_flow_resume(flow, s);
    flow->out.n = out;
}

void tl_stf_flow_restart(struct tl_stf_flow *flow)
{
    flow->later |= flow->header;
    flow->header = flow->open = flow->trails = false;
    flow->markers = 0;
    flow->chunk_pc = 0;
    flow->points = TL_STF_POINTS_UNSAID;
    if (!flow->mode_due || flow->mode_flags != TL_STF_MODE_BEFORE)
        flow->mode_flags = TL_STF_MODE_BEFORE | TL_STF_MODE_STATE;
    flow->mode_due = flow->state.has_mode;
    flow->front.force = false;
    flow->front.any = flow->mode_due || flow->front.lead.n || flow->front.pre.n;
}
