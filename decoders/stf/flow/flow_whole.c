/* SPDX-License-Identifier: MIT */
/*
 * Writes blocks with whole groups to STF by copying the groups. Nothing is held back, since each
 * group contains its own target. Only the header is regenerated, and with it the current mode.
 */
#include "stf/flow/flow_groups.h"
#include "stf/flow/flow_parts.h"
#include "stf/flow_map.h"
#include "stf/group.h"
#include "stf/rehead.h"

#include <stdio.h>

/* Offset of the instruction number in a PAGE_TABLE_WALK record, after descriptor and virtual
 * address. */
enum { WALK_FIRST = 1 + 8 };

static int put_head(struct tl_stf_flow *flow, const struct tl_block *block, uint64_t pc)
{
    const struct tl_stf_groups *const groups = tl_stf_groups_of(block);
    const struct tl_stf_header *const old = &groups->header;
    const struct tl_stf_flow_state *const s = &flow->state;
    const bool as_before = block->isa == TL_ISA_NONE ||
                           tl_stf_unmap_isa(old->isa, old->iem) == (enum tl_isa)block->isa;
    const struct tl_stf_rehead spec = {
        .head = {groups->head.p, groups->head.n},
        .info = "stored by tracelake " TL_VERSION,
        .iem = as_before ? old->iem : tl_stf_map_iem((enum tl_isa)block->isa),
        .features =
            old->features |
            (flow->known && tl_stf_regstate_any(flow->known->regs) ? TL_STF_FEATURE_REG_STATE : 0),
        .pc = pc,
        .tgid = s->has_context ? (uint32_t)s->context : 0,
        .tid = s->has_context ? (uint32_t)(s->context >> 32) : 0,
        .asid = s->has_vmid ? (uint32_t)s->vmid : 0,
    };
    const int result = tl_stf_rehead_write(&spec, &flow->out);
    flow->header = result == TL_OK;
    flow->chunk_pc = 0;
    return result;
}

/* Offset of the first record in a group of `n` bytes that is subject to group order. */
static size_t find_own(const struct tl_stf_groups *groups, const uint8_t *stf, size_t n)
{
    struct tl_stf_group group = {{stf, n}, groups->layout};
    struct tl_bytes record = {stf, 0};
    while (tl_stf_group_skip(&group, &record) == TL_OK && record.p[0] < TL_STF_INST_PC_TARGET)
        ;
    return (size_t)(record.p - stf);
}

/* Write the known machine state, preceded by a COMMENT with its size; a record of type `next` will
 * follow. */
static int put_known(struct tl_stf_flow *flow, const struct tl_stf_groups *groups, uint8_t next)
{
    struct tl_buf *const bytes = &flow->scratch;
    char text[sizeof TL_STF_KNOWN_COMMENT + 10];
    tl_buf_reset(bytes);
    int result = flow->known ? tl_stf_known_put(flow->known, &groups->layout, bytes) : TL_OK;
    if (result == TL_OK && bytes->n && next == TL_STF_INST_READY_REG)
        result = tl_stf_flow_put_parting(bytes); /* a lower descriptor than that of page walks */
    if (result < 0 || bytes->n == 0)
        return result;
    const int n = snprintf(text, sizeof text, TL_STF_KNOWN_COMMENT, (unsigned)bytes->n);
    const struct tl_stf_record comment = {.type = TL_STF_COMMENT,
                                          .text = {(const uint8_t *)text, (size_t)n}};
    result = tl_stf_record_encode(&groups->layout, &comment, &flow->out);
    return result < 0 ? result : tl_buf_add(&flow->out, bytes->p, bytes->n);
}

/* Write the first group after a header, `n` bytes, with the known state and the mode inserted. */
static int put_first(struct tl_stf_flow *flow, const struct tl_stf_groups *groups,
                     const uint8_t *stf, size_t n)
{
    const size_t own = find_own(groups, stf, n);
    int result = tl_buf_add(&flow->out, stf, own);
    if (result >= 0)
        result = put_known(flow, groups, stf[own]);
    if (result < 0)
        return result;
    stf += own;
    n -= own;
    const struct tl_bytes group = {stf, n};
    const size_t place =
        flow->state.has_mode ? tl_stf_groups_mode(groups, group, flow->state.mode) : SIZE_MAX;
    if (place == SIZE_MAX)
        return tl_buf_add(&flow->out, stf, n);
    uint8_t fields[8 * TL_STF_MODE_FIELDS] = {(uint8_t)tl_mode_privilege(flow->state.mode)};
    tl_put_le64(fields + 8, flow->state.mode | TL_STF_MODE_STATE | TL_STF_MODE_BEFORE);
    const struct tl_stf_record mode = {
        .type = TL_STF_EVENT, .event = {TL_STF_EVENT_MODE_CHANGE, {fields, sizeof fields}}};
    result = tl_buf_add(&flow->out, stf, place);
    if (result >= 0)
        result = tl_stf_record_encode(&groups->layout, &mode, &flow->out);
    return result < 0 ? result : tl_buf_add(&flow->out, stf + place, n - place);
}

/* Adjust page walks in the output from byte `at` on to the beginning of this trace. */
static void shift_walks(struct tl_stf_flow *flow, const struct tl_stf_groups *groups, size_t at)
{
    const uint64_t first = flow->options.first;
    struct tl_stf_group group = {{flow->out.p + at, flow->out.n - at}, groups->layout};
    struct tl_bytes record;
    while (first && tl_stf_group_skip(&group, &record) == TL_OK) {
        if (record.p[0] != TL_STF_PAGE_TABLE_WALK)
            continue;
        uint8_t *const p = flow->out.p + (record.p - flow->out.p) + WALK_FIRST;
        const uint64_t index = tl_le64(p);
        tl_put_le64(p, index > first ? index - first : 0);
    }
}

/* Accumulate the state reported by groups, for the next shard; most blocks have only closing
 * records. */
static int remember(struct tl_stf_flow *flow, const struct tl_block *block, const uint8_t *stf,
                    size_t n)
{
    const bool bare = block->coded_size == TL_STF_CLOSING_BYTES * block->n ||
                      block->coded_size == TL_STF_CLOSING_16_BYTES * block->n;
    if (!flow->options.known || bare)
        return TL_OK;
    const int result = flow->known ? TL_OK : tl_stf_known_new(&flow->known);
    return result < 0 ? result
                      : tl_stf_known_pass(flow->known, &tl_stf_groups_of(block)->layout,
                                          (struct tl_bytes){stf, n});
}

/* Drop pending records, which come from items other than groups and are redundant with groups. */
static void empty_front(struct tl_stf_front *front)
{
    tl_buf_reset(&front->lead);
    tl_buf_reset(&front->pre);
    front->force = front->any = false;
}

/* Write the header and the group at `stf`; returns the group's size. */
static int64_t begin(struct tl_stf_flow *flow, const struct tl_block *block, const uint8_t *stf,
                     struct tl_stf_pc *pc)
{
    const struct tl_stf_groups *const groups = tl_stf_groups_of(block);
    int result = put_head(flow, block, pc->next);
    if (result < 0)
        return result;
    const size_t at = flow->out.n;
    const size_t size = tl_stf_groups_pass(groups, stf, 1, pc);
    result = put_first(flow, groups, stf, size);
    if (result < 0)
        return result;
    shift_walks(flow, groups, at);
    result = remember(flow, block, stf, size);
    flow->points = TL_STF_POINTS_ALONE;
    flow->markers++;
    return result < 0 ? result : (int64_t)size;
}

/* Size of `n` groups at `stf`; `whole`: they are all that is left of the block. */
static size_t measure(const struct tl_block *block, const uint8_t *stf, uint32_t n, bool whole,
                      struct tl_stf_pc *pc)
{
    const struct tl_stf_groups *const groups = tl_stf_groups_of(block);
    if (!whole || n == 0)
        return tl_stf_groups_pass(groups, stf, n, pc);
    /* Instructions of a block are contiguous: only the last one can have a different successor. */
    const uint8_t *const end = block->coded + block->coded_size;
    *pc = (struct tl_stf_pc){.next = block->pc + block->size - block->last_size};
    tl_stf_groups_pass(groups, end - block->last_coded, 1, pc);
    return (size_t)(end - stf);
}

int tl_stf_flow_groups(struct tl_stf_flow *flow, const struct tl_item *item, uint64_t stop,
                       uint32_t *done)
{
    const struct tl_block *const block = item->block;
    const struct tl_stf_groups *const groups = tl_stf_groups_of(block);
    const uint32_t n = item->n < block->n ? item->n : block->n;
    struct tl_stf_pc pc = {.next = block->pc};
    const uint8_t *stf = block->coded + tl_stf_groups_pass(groups, block->coded, *done, &pc);
    int result = tl_stf_flow_release(flow, &pc.next);
    if (result < 0)
        return result;
    flow->whole = true;
    empty_front(&flow->front);
    if (flow->header && flow->markers >= stop)
        return tl_stf_flow_stopped(flow, pc.next);
    flow->state.isa = block->isa;
    flow->state.has_pc = false;
    if (!flow->header) {
        const int64_t size = begin(flow, block, stf, &pc);
        if (size < 0)
            return (int)size;
        stf += size;
        *done += 1;
    }
    uint64_t count = n - *done;
    if (count > stop - flow->markers)
        count = stop - flow->markers;
    const size_t at = flow->out.n;
    const bool whole = *done + count == block->n;
    const size_t size = measure(block, stf, (uint32_t)count, whole, &pc);
    result = tl_buf_add(&flow->out, stf, size);
    if (result == TL_OK)
        result = remember(flow, block, stf, size);
    if (result < 0)
        return result;
    shift_walks(flow, groups, at);
    flow->points = TL_STF_POINTS_ALONE;
    flow->markers += count;
    *done += (uint32_t)count;
    flow->track = pc.next;
    return *done < n ? tl_stf_flow_stopped(flow, pc.next) : TL_OK;
}
