/* SPDX-License-Identifier: MIT */
/*
 * Writes what happened in code that is not known: addresses, branches, exceptions, modes. Readers
 * of STF take every target and event of a group for its instruction's, and the next instruction
 * that is known neither branched nor trapped there, so only FORCE_PC and COMMENT records are used,
 * which say nothing about it.
 */
#include "base/digits.h"
#include "stf/flow/flow_parts.h"
#include "stf/flow_map.h"

#include <stdio.h>

static int put_text(struct tl_buf *out, const char *text)
{
    return tl_stf_flow_put_comment(out, (struct tl_bytes){(const uint8_t *)text, strlen(text)});
}

int tl_stf_flow_tell_mode(struct tl_stf_flow *flow, struct tl_buf *out)
{
    const bool again = flow->mode_flags & TL_STF_MODE_STATE;
    char text[24];
    if (!flow->mode_due || flow->mode_flags & TL_STF_MODE_ISA_ONLY)
        return TL_OK;
    flow->mode_flags |= TL_STF_MODE_ISA_ONLY;
    snprintf(text, sizeof text, "%c %llx", again ? 'm' : 'M', (unsigned long long)flow->state.mode);
    return put_text(out, text);
}

/* Write a name without spaces. */
static uint8_t *put_name(uint8_t *p, const char *name)
{
    const size_t n = strnlen(name, TL_STF_X_NAME);
    for (size_t i = 0; i < n; i++)
        p[i] = name[i] <= ' ' || name[i] > '~' ? '_' : (uint8_t)name[i];
    return p + n;
}

static uint8_t *put_address(uint8_t *p, uint64_t address)
{
    for (int shift = 60; shift >= 0; shift -= 4)
        *p++ = (uint8_t) "0123456789abcdef"[address >> shift & 15];
    return p;
}

int tl_stf_flow_tell_exception(struct tl_stf_flow *flow, const struct tl_item *item)
{
    uint8_t text[TL_STF_X_NAME + 64];
    const int number = tl_exception_number(item->sub);
    uint8_t *p = tl_put_text(text, "X ");
    p = put_name(p, item->text && *item->text ? item->text : "-");
    *p++ = ' ';
    p = number < 0 ? tl_put_text(p, "-") : tl_put_decimal(p, (uint64_t)number);
    *p++ = ' ';
    p = item->flags & TL_ITEM_HAS_PC ? put_address(p, item->pc) : tl_put_text(p, "-");
    if (item->sub & TL_EXCEPTION_INTERRUPT)
        p = tl_put_text(p, " interrupt");
    flow->front.any = true;
    return tl_stf_flow_put_comment(&flow->front.lead, (struct tl_bytes){text, (size_t)(p - text)});
}

uint8_t *tl_stf_flow_put_points(uint8_t *p, enum tl_stf_points points)
{
    p[0] = TL_STF_COMMENT;
    tl_put_le32(p + 1, 3);
    p[5] = 'J';
    p[6] = ' ';
    p[7] = (uint8_t)('0' + points);
    return p + TL_STF_POINTS_BYTES;
}

/* Say what the next FORCE_PC is, unless readers know. */
static int say_points(struct tl_stf_flow *flow, enum tl_stf_points points)
{
    if (flow->points == points)
        return TL_OK;
    if (tl_buf_reserve(&flow->out, TL_STF_POINTS_BYTES) < 0)
        return TL_NOMEM;
    tl_stf_flow_put_points(flow->out.p + flow->out.n, points);
    flow->out.n += TL_STF_POINTS_BYTES;
    flow->points = (uint8_t)points;
    return TL_OK;
}

static int tell_call(struct tl_stf_flow *flow, const struct tl_item *item)
{
    const unsigned how = item->flags & (TL_ITEM_CALL | TL_ITEM_RETURN);
    if (!flow->options.comments || how == 0)
        return TL_OK;
    return put_text(&flow->front.lead, how == TL_ITEM_CALL     ? "B call"
                                       : how == TL_ITEM_RETURN ? "B return"
                                                               : "B call return");
}

int tl_stf_flow_add_point(struct tl_stf_flow *flow, const struct tl_item *item)
{
    const bool branch = tl_item_is_branch(item);
    const bool from = item->kind != TL_ITEM_GAP && item->flags & TL_ITEM_HAS_PC;
    const uint64_t to = tl_item_address(item);
    struct tl_stf_front *const front = &flow->front;
    struct tl_buf *const out = &flow->out;
    int result = flow->header ? TL_OK : tl_stf_flow_put_header(flow, from ? item->pc : to);
    if (result == TL_OK)
        result = tl_stf_flow_tell_mode(flow, &front->lead);
    if (result == TL_OK && branch)
        result = tell_call(flow, item);
    if (result == TL_OK)
        result = tl_buf_add(out, front->lead.p, front->lead.n);
    tl_buf_reset(&front->lead);
    if (result == TL_OK)
        result = say_points(flow, !branch ? TL_STF_POINTS_ALONE
                                  : from  ? TL_STF_POINTS_PAIRS
                                          : TL_STF_POINTS_TARGETS);
    if (result == TL_OK && from)
        result = tl_stf_flow_put_address(out, TL_STF_FORCE_PC, item->pc);
    if (result == TL_OK && branch)
        result = tl_stf_flow_put_address(out, TL_STF_FORCE_PC, to);
    front->force = front->any = true;
    flow->open = true;
    flow->reported = flow->state;
    flow->state.pc = to;
    flow->state.has_pc = branch;
    return result;
}
