/* SPDX-License-Identifier: MIT */
/*
 * Blocks to STF records: copied whole where they come one behind another, in parts where a chunk
 * ends in them, or where their first instruction has records of its own.
 */
#include "stf/flow_map.h"
#include "stf/flow_parts.h"
#include "stf/writer.h"

/* Bytes of the closing records and of the code of `n` instructions that begin at `stf`. */
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
            p += *p == TL_STF_INST_32 ? 5 : 3;
            n--;
            break;
        case TL_STF_INST_MICROOP:
            odd += p[1];
            p += 6;
            break;
        default: /* INST_PC_TARGET */
            p += 9;
            break;
        }
    }
    return (uint32_t)(p - stf);
}

/* The same, from the block's start; by multiplication where all instructions are alike. */
static uint32_t offset_of(const struct tl_block *block, uint32_t n, uint32_t *code)
{
    if (n == block->n) {
        *code = block->size;
        return block->stf_size;
    }
    if (block->stf_size == 5 * block->n && block->size == 4 * block->n) {
        *code = 4 * n;
        return 5 * n;
    }
    if (block->stf_size == 3 * block->n && block->size == 2 * block->n) {
        *code = 2 * n;
        return 3 * n;
    }
    return measure(block->stf, n, code);
}

/* Hold back instruction `i` of `block`: at `stf`, `n` bytes of records; `code` bytes from pc. */
static void hold(struct tl_stf_flow *flow, const struct tl_block *block, bool whole, bool taken,
                 const uint8_t *stf, uint32_t n, uint32_t code, uint32_t size)
{
    struct tl_stf_held *const held = &flow->held;
    if (*stf == TL_STF_INST_PC_TARGET) {
        stf += 9;
        n -= 9;
    }
    if (n > sizeof held->close)
        n = sizeof held->close; /* never: no instruction is that long */
    flow->state.has_pc = false;
    held->is = true;
    held->taken = taken;
    held->open = held->event = false;
    held->odd = size != 2 && size != 4;
    held->has_target = taken && whole && block->last_kind == TL_INSN_BRANCH;
    held->target = block->target;
    held->pc = block->pc + code;
    held->next = held->pc + size;
    held->close_n = (uint8_t)n;
    memcpy(held->close, stf, n);
    if (flow->front.any) {
        flow->told = flow->state;
        const struct tl_stf_front empty = held->front;
        held->front = flow->front;
        flow->front = empty;
    }
}

/* Tell readers of the instruction set, where the records so far do not. */
static int change_isa(struct tl_stf_flow *flow, enum tl_isa isa)
{
    struct tl_stf_front *const front = &flow->front;
    if (tl_stf_map_iem(isa) != tl_stf_map_iem((enum tl_isa)flow->state.isa)) {
        const struct tl_stf_layout layout = {0};
        const struct tl_stf_record record = {.type = TL_STF_INST_IEM, .iem = tl_stf_map_iem(isa)};
        /* First in the group: descriptors must not decrease. */
        struct tl_buf lead = {0};
        int rc = tl_stf_record_encode(&layout, &record, &lead);
        if (rc == TL_OK)
            rc = tl_buf_add(&lead, front->lead.p, front->lead.n);
        tl_buf_fini(&front->lead);
        front->lead = lead;
        front->any = true;
        if (rc < 0)
            return rc;
        if (tl_stf_map_iem(flow->read_isa) != record.iem)
            flow->read_isa = tl_stf_unmap_isa(tl_stf_map_isa(isa), record.iem);
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

/* The header if it is not there yet, and the records that an instruction at `pc` needs. */
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
    return flow->read_isa == isa && flow->state.isa == isa ? TL_OK : change_isa(flow, isa);
}

/* One instruction in the middle of a block whose group has more than its closing records. */
static int put_fronted(struct tl_stf_flow *flow, uint64_t pc, const uint8_t *stf, uint32_t n,
                       uint32_t size)
{
    uint64_t target = pc + size;
    const bool write = flow->front.target || *stf == TL_STF_INST_PC_TARGET;
    if (*stf == TL_STF_INST_PC_TARGET) {
        stf += 9;
        n -= 9;
    }
    flow->told = flow->state;
    return tl_stf_flow_put_group(flow, &flow->front, pc, write ? &target : NULL,
                                 (struct tl_bytes){0}, (struct tl_bytes){stf, n});
}

static int stopped(struct tl_stf_flow *flow, uint64_t pc)
{
    flow->state.pc = pc;
    flow->state.has_pc = true;
    return TL_AGAIN;
}

int tl_stf_flow_block(struct tl_stf_flow *flow, const struct tl_item *item, uint64_t stop,
                      uint32_t *done)
{
    const struct tl_block *const block = item->block;
    const uint32_t n = item->n < block->n ? item->n : block->n;
    if (n == 0)
        return TL_OK;
    uint32_t code = 0;
    uint32_t from = *done ? offset_of(block, *done, &code) : 0;
    const uint64_t pc = block->pc + code;
    int result = tl_stf_flow_release(flow, &pc);
    if (result < 0)
        return result;
    if (flow->header && flow->markers >= stop)
        return stopped(flow, pc);
    result = arrive(flow, pc, (enum tl_isa)block->isa);
    if (result < 0)
        return result;
    uint32_t end_code, last_code;
    const uint32_t end = offset_of(block, n, &end_code);
    const uint32_t last =
        n == block->n ? end - block->last_stf : offset_of(block, n - 1, &last_code);
    if (n == block->n)
        last_code = end_code - block->last_size;
    if (from < last && flow->front.any) {
        uint32_t size;
        const uint32_t bytes = measure(block->stf + from, 1, &size);
        result = put_fronted(flow, pc, block->stf + from, bytes, size);
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
        result = tl_buf_add(&flow->out, block->stf + from, to - from);
        if (result < 0)
            return result;
        flow->markers += count;
        *done += count;
        flow->track = block->pc + to_code;
        if (cut)
            return stopped(flow, flow->track);
    }
    if (flow->markers >= stop && *done)
        return stopped(flow, block->pc + last_code);
    hold(flow, block, n == block->n, item->flags & TL_ITEM_TAKEN, block->stf + last, end - last,
         last_code, end_code - last_code);
    return TL_OK;
}

/* ---- runs of blocks -------------------------------------------------------------------------- */

/*
 * Copy `n` bytes in steps of TL_BLOCK_SLACK, which both have behind them. Most blocks need one:
 * a branch that is nearly always the same way costs less than one byte too many.
 */
static inline void copy(uint8_t *out, const uint8_t *in, uint32_t n)
{
    memcpy(out, in, TL_BLOCK_SLACK);
    for (uint32_t i = TL_BLOCK_SLACK; i < n; i += TL_BLOCK_SLACK)
        memcpy(out + i, in + i, TL_BLOCK_SLACK);
}

/* The last instruction of a block that has been copied up to there. */
struct tail {
    const uint8_t *stf;
    uint32_t n;
    bool taken;
    uint64_t next; /* the address behind it */
};

/* Can a held instruction come out without a look at anything but where the flow goes on? */
static bool is_plain(const struct tl_stf_held *held)
{
    return held->is && !held->open && !held->event && !held->odd && held->post.n == 0 &&
           !held->front.any && !held->front.target;
}

/*
 * The loop that everything else is there for. Of each block all but the last instruction is
 * copied, then, with the next block, an INST_PC_TARGET if the branch was taken, and the last
 * instruction.
 */
size_t tl_stf_flow_run(struct tl_stf_flow *flow, const struct tl_item *items, size_t n,
                       uint64_t stop)
{
    struct tl_stf_held *const held = &flow->held;
    if (!flow->header || flow->front.any || !is_plain(held) || flow->read_isa != flow->state.isa ||
        flow->markers >= stop)
        return 0;
    struct tail tail = {held->close, held->close_n, held->taken, held->next};
    const struct tl_item *last = NULL;
    uint64_t left = stop - flow->markers;
    const uint8_t isa = flow->state.isa;
    uint8_t *p = flow->out.p + flow->out.n;
    const uint8_t *const end = flow->out.p + flow->out.cap;
    size_t i = 0;
    for (; i < n; i++) {
        const struct tl_item *const item = &items[i];
        if (item->kind != TL_ITEM_BLOCK)
            break;
        const struct tl_block *const b = item->block;
        const bool follows = tail.taken | (b->pc == tail.next);
        const bool fits = (size_t)(end - p) >= (size_t)b->stf_size + 2 * TL_BLOCK_SLACK;
        /* Without short cuts: whether a branch was taken nobody can predict. */
        if (!(follows & fits & (item->n == b->n) & (b->n < left) & (b->isa == isa) & b->plain))
            break;
        p[0] = TL_STF_INST_PC_TARGET;
        tl_put_le64(p + 1, b->pc);
        p += 9 * (unsigned)tail.taken;
        memcpy(p, tail.stf, 8);
        p += tail.n;
        const uint32_t head = b->stf_size - b->last_stf;
        copy(p, b->stf, head);
        p += head;
        left -= b->n;
        tail =
            (struct tail){b->stf + head, b->last_stf, item->flags & TL_ITEM_TAKEN, b->pc + b->size};
        last = item;
    }
    if (!last)
        return 0;
    const struct tl_block *const b = last->block;
    held->is = false;
    flow->out.n = (size_t)(p - flow->out.p);
    flow->markers = stop - left; /* one comes out as another is held back */
    flow->track = b->pc + b->size - b->last_size;
    hold(flow, b, true, tail.taken, tail.stf, tail.n, b->size - b->last_size, b->last_size);
    return i;
}
