/* SPDX-License-Identifier: MIT */
/*
 * A block to STF records, part by part: those in which a chunk ends, or whose first instruction has
 * additional records. Consecutive ones without are copied whole, which is faster (flow_runs.c).
 */
#include "stf/close.h"
#include "stf/flow/flow_parts.h"
#include "stf/flow_map.h"
#include "stf/writer.h"

#include <assert.h>

/*
 * Size of the closing records, and of the code, of `n` instructions whose records begin at `stf`.
 */
static uint32_t measure(const uint8_t *stf, uint32_t n, uint32_t *code)
{
    const uint8_t *p = stf;
    uint32_t odd = 0;
    *code = 0;
    while (n) {
        switch (*p) {
        case TL_STF_INST_32:
        case TL_STF_INST_16:
            *code += odd ? odd : *p == TL_STF_INST_32 ? 4 : 2;
            odd = 0;
            p += *p == TL_STF_INST_32 ? TL_STF_CLOSING_BYTES : TL_STF_CLOSING_16_BYTES;
            n--;
            break;
        case TL_STF_INST_MICROOP:
            odd += p[1];
            p += TL_STF_MICROOP_BYTES;
            break;
        default:
            assert(*p == TL_STF_INST_PC_TARGET);
            p += TL_STF_TARGET_BYTES;
            break;
        }
    }
    return (uint32_t)(p - stf);
}

/* The same from the block's start; by multiplication if all instructions have the same size. */
static uint32_t offset_of(const struct tl_block *block, uint32_t n, uint32_t *code)
{
    if (n == block->n) {
        *code = block->size;
        return block->coded_size;
    }
    if (block->coded_size == TL_STF_CLOSING_BYTES * block->n && block->size == 4 * block->n) {
        *code = 4 * n;
        return TL_STF_CLOSING_BYTES * n;
    }
    if (block->coded_size == TL_STF_CLOSING_16_BYTES * block->n && block->size == 2 * block->n) {
        *code = 2 * n;
        return TL_STF_CLOSING_16_BYTES * n;
    }
    return measure(block->coded, n, code);
}

/* Can the last instruction of `block` be a branch? Of unknown instruction sets any can. */
static bool may_branch(const struct tl_block *block)
{
    return block->last_kind == TL_INSN_BRANCH || block->last_kind == TL_INSN_INDIRECT ||
           block->isa == TL_ISA_NONE || block->isa == TL_ISA_OR1K;
}

void tl_stf_flow_hold(struct tl_stf_flow *flow, const struct tl_block *block, bool whole,
                      bool taken, const uint8_t *stf, uint32_t n, uint32_t code, uint32_t size)
{
    struct tl_stf_held *const held = &flow->held;
    if (*stf == TL_STF_INST_PC_TARGET) {
        stf += TL_STF_TARGET_BYTES;
        n -= TL_STF_TARGET_BYTES;
    }
    if (n > sizeof held->close)
        n = sizeof held->close; /* does not happen: no instruction is that long */
    flow->state.has_pc = flow->open = false;
    held->valid = true;
    held->taken = taken;
    held->branches = whole && may_branch(block);
    held->awaits_target = held->event = false;
    held->odd_size = size != 2 && size != 4;
    held->has_target = taken && whole && block->last_kind == TL_INSN_BRANCH;
    held->target = block->target;
    held->pc = block->pc + code;
    held->next = held->pc + size;
    held->close_n = (uint8_t)n;
    memcpy(held->close, stf, n);
    if (flow->front.any) {
        flow->reported = flow->state;
        const struct tl_stf_front empty = held->front;
        held->front = flow->front;
        flow->front = empty;
    }
}

/* Write records for a change of instruction set that readers cannot infer. */
static int change_isa(struct tl_stf_flow *flow, enum tl_isa isa)
{
    struct tl_stf_front *const front = &flow->front;
    if (tl_stf_map_iem(isa) != tl_stf_map_iem((enum tl_isa)flow->state.isa)) {
        const struct tl_stf_layout layout = {0};
        const struct tl_stf_record record = {.type = TL_STF_INST_IEM, .iem = tl_stf_map_iem(isa)};
        /* First in the group, since descriptors must not decrease. */
        struct tl_buf lead = {0};
        int rc = flow->open ? tl_stf_flow_put_parting(&lead) : TL_OK;
        if (rc == TL_OK)
            rc = tl_stf_record_encode(&layout, &record, &lead);
        if (rc == TL_OK)
            rc = tl_buf_add(&lead, front->lead.p, front->lead.n);
        tl_buf_fini(&front->lead);
        front->lead = lead;
        front->any = true;
        if (rc < 0)
            return rc;
        flow->read_isa = tl_stf_isa_by_iem(flow->read_isa, record.iem);
    }
    flow->state.isa = (uint8_t)isa;
    if (flow->read_isa == isa)
        return TL_OK;
    flow->read_isa = isa;
    const uint64_t mode = flow->state.has_mode ? (flow->state.mode & ~UINT64_C(255)) | (uint64_t)isa
                                               : tl_mode(tl_stf_arch(isa), 15, TL_SEC_NONE, isa);
    front->any = true;
    return tl_stf_flow_put_mode(&front->pre, mode, TL_STF_MODE_ISA_ONLY | TL_STF_MODE_BEFORE);
}

static int put_due_mode(struct tl_stf_flow *flow)
{
    flow->mode_due = false;
    flow->front.any = true;
    if (tl_mode_isa(flow->state.mode) != TL_ISA_NONE)
        flow->read_isa = tl_mode_isa(flow->state.mode);
    return tl_stf_flow_put_mode(&flow->front.pre, flow->state.mode, flow->mode_flags);
}

/* Write the header if not written yet, and the records needed before an instruction at `pc`. */
static int arrive(struct tl_stf_flow *flow, uint64_t pc, enum tl_isa isa)
{
    if (!flow->header) {
        flow->state.isa = (uint8_t)isa;
        const int result = tl_stf_flow_put_header(flow, pc);
        if (result < 0)
            return result;
    }
    if (pc != flow->track)
        flow->front.force = flow->front.any = true;
    const int result = flow->mode_due ? put_due_mode(flow) : TL_OK;
    return result < 0 || (flow->read_isa == isa && flow->state.isa == isa) ? result
                                                                           : change_isa(flow, isa);
}

/* Write one instruction within a block whose group has more than its closing records. */
static int put_fronted(struct tl_stf_flow *flow, uint64_t pc, const uint8_t *stf, uint32_t n,
                       uint32_t size)
{
    uint64_t target = pc + size;
    const bool write = *stf == TL_STF_INST_PC_TARGET;
    if (*stf == TL_STF_INST_PC_TARGET) {
        stf += TL_STF_TARGET_BYTES;
        n -= TL_STF_TARGET_BYTES;
    }
    flow->reported = flow->state;
    return tl_stf_flow_put_group(flow, &flow->front, pc, write ? &target : NULL,
                                 (struct tl_bytes){0}, (struct tl_bytes){stf, n});
}

int tl_stf_flow_stopped(struct tl_stf_flow *flow, uint64_t pc)
{
    flow->state.pc = pc;
    flow->state.has_pc = true;
    return TL_AGAIN;
}

static_assert(TL_STF_CLOSE_MAX <= TL_BLOCK_CODE, "it is a block's code");

/* Build the records of a `block` that has none, in flow->scratch. */
static int close_all(struct tl_stf_flow *flow, struct tl_block *block)
{
    struct tl_buf *const out = &flow->scratch;
    struct tl_insn insn;
    tl_buf_reset(out);
    for (uint32_t i = 0, at = 0; i < block->n; i++, at += insn.size) {
        if (tl_buf_reserve(out, TL_STF_CLOSE_MAX) < 0)
            return TL_NOMEM;
        tl_block_insn(block, at, &insn);
        block->last_coded = tl_stf_close_insn(out->p + out->n, block->pc + at, block->code + at,
                                              insn.size, insn.encoding);
        out->n += block->last_coded;
    }
    block->coded = out->p;
    block->coded_size = (uint32_t)out->n;
    return TL_OK;
}

/* Is there nothing but the records of a step (stf/flow/flow_repeat.h) to be written for this block?
 */
static bool is_step(const struct tl_stf_flow *flow, const struct tl_block *block, uint64_t stop)
{
    const struct tl_stf_held *const held = &flow->held;
    return flow->header && held->valid && !flow->front.any &&
           tl_stf_held_is_plain(held, (enum tl_isa)flow->state.isa) && flow->markers < stop &&
           block->n < stop - flow->markers && (held->taken || block->pc == held->next) &&
           block->plain == tl_stf_flow_copied_isa(flow);
}

static int begin_step(struct tl_stf_flow *flow)
{
    const struct tl_stf_held *const held = &flow->held;
    return tl_stf_repeats_begin(flow->repeats, flow->out.p, flow->out.n, held->close, held->close_n,
                                held->taken, held->odd_size);
}

int tl_stf_flow_block(struct tl_stf_flow *flow, const struct tl_item *item, uint64_t stop,
                      uint32_t *done)
{
    const struct tl_block *block = item->block;
    struct tl_block closed;
    const uint32_t n = item->n < block->n ? item->n : block->n;
    if (n == 0)
        return TL_OK;
    if (block->whole)
        return tl_stf_flow_groups(flow, item, stop, done);
    if (!block->coded) {
        closed = *block;
        block = &closed;
        if (close_all(flow, &closed) < 0)
            return TL_NOMEM;
    }
    uint32_t code = 0;
    uint32_t from = *done ? offset_of(block, *done, &code) : 0;
    const uint64_t pc = block->pc + code;
    const bool noted =
        tl_stf_flow_notes(flow) && *done == 0 && n == block->n && is_step(flow, block, stop);
    int result = noted ? begin_step(flow) : TL_OK;
    if (result < 0)
        return result;
    result = tl_stf_flow_release(flow, &pc);
    if (result < 0)
        return result;
    if (flow->header && flow->markers >= stop)
        return tl_stf_flow_stopped(flow, pc);
    result = arrive(flow, pc, (enum tl_isa)block->isa);
    if (result < 0)
        return result;
    uint32_t end_code, last_code;
    const uint32_t end = offset_of(block, n, &end_code);
    const uint32_t last =
        n == block->n ? end - block->last_coded : offset_of(block, n - 1, &last_code);
    if (n == block->n)
        last_code = end_code - block->last_size;
    if (from < last && flow->front.any) {
        uint32_t size;
        const uint32_t bytes = measure(block->coded + from, 1, &size);
        result = put_fronted(flow, pc, block->coded + from, bytes, size);
        if (result < 0)
            return result;
        from += bytes;
        code += size;
        *done += 1;
        flow->track = pc + size;
    }
    const uint64_t plain = n - 1 - *done;
    if (plain) {
        uint32_t to = last;
        uint32_t to_code = last_code;
        const bool cut = plain > stop - flow->markers;
        const uint32_t count = cut ? (uint32_t)(stop - flow->markers) : (uint32_t)plain;
        if (cut)
            to = offset_of(block, *done + count, &to_code);
        result = flow->dry ? TL_OK : tl_buf_add(&flow->out, block->coded + from, to - from);
        if (result < 0)
            return result;
        flow->markers += count;
        *done += count;
        flow->track = block->pc + to_code;
        if (cut)
            return tl_stf_flow_stopped(flow, flow->track);
    }
    if (flow->markers >= stop && *done)
        return tl_stf_flow_stopped(flow, block->pc + last_code);
    const bool taken = item->flags & TL_ITEM_TAKEN;
    tl_stf_flow_hold(flow, block, n == block->n, taken, block->coded + last, end - last, last_code,
                     end_code - last_code);
    return noted ? tl_stf_repeats_end(flow->repeats, block, taken, flow->out.n, last) : TL_OK;
}
