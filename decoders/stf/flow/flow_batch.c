/* SPDX-License-Identifier: MIT */
/*
 * What items point to is copied to one arena with offsets in place of pointers, which are resolved
 * when the batch is delivered: the arena moves while it grows. Runs end by size too, so that
 * straight-line code of any length needs bounded memory.
 */
#include "stf/flow/flow_batch.h"

#include "stf/close.h"

#define RUN_BYTES   (128u << 10) /* bytes of records after which a run ends */
#define ARENA_BYTES (1u << 20)   /* bytes after which items are delivered */

static const struct tl_isa_options newest = {
    .arch_major = 9, .arch_minor = 5, .profile = 'A', .wfx_branch = false};

void tl_stf_batch_fini(struct tl_stf_batch *batch)
{
    tl_buf_fini(&batch->arena);
    tl_buf_fini(&batch->code);
    tl_buf_fini(&batch->stf);
}

/* Convert offsets to pointers, once the arena does not move any more. */
static void resolve(struct tl_stf_batch *batch)
{
    for (size_t i = 0; i < batch->n; i++) {
        struct tl_item *const item = &batch->items[i];
        const uint8_t *const at = batch->arena.p ? batch->arena.p + (uintptr_t)item->data : NULL;
        if (item->kind == TL_ITEM_BLOCK) {
            struct tl_block *const block = &batch->blocks[i];
            block->code = at;
            block->coded = at + block->size;
            item->block = block;
        } else if (tl_item_has_text(item->kind) || item->kind == TL_ITEM_SOFTWARE) {
            item->data = at;
        }
    }
}

int tl_stf_batch_deliver(struct tl_stf_batch *batch)
{
    if (batch->n == 0)
        return TL_OK;
    resolve(batch);
    const size_t n = batch->n;
    batch->n = 0;
    const int result = batch->sink(batch->context, batch->items, n);
    tl_buf_reset(&batch->arena);
    return result < 0 ? result : TL_OK;
}

/* Copy into the arena; *out is the offset as a pointer. */
static int keep(struct tl_stf_batch *batch, const void *p, size_t n, const uint8_t **out)
{
    *out = (const uint8_t *)(uintptr_t)batch->arena.n;
    return tl_buf_add(&batch->arena, p, n);
}

static int add(struct tl_stf_batch *batch, const struct tl_item *item)
{
    batch->items[batch->n++] = *item;
    return batch->n == TL_STF_BATCH_ITEMS || batch->arena.n > ARENA_BYTES
               ? tl_stf_batch_deliver(batch)
               : TL_OK;
}

static int end_run(struct tl_stf_batch *batch, bool taken)
{
    if (batch->insns == 0)
        return TL_OK;
    const struct tl_insn *const last = &batch->last;
    struct tl_item item = {.kind = TL_ITEM_BLOCK,
                           .flags = taken ? TL_ITEM_TAKEN : 0,
                           .n = batch->insns,
                           .pc = batch->pc,
                           .offset = batch->offset};
    struct tl_block *const block = &batch->blocks[batch->n];
    tl_block_init(block, batch->pc, (enum tl_isa)batch->isa);
    tl_block_set_last(block, last);
    block->n = batch->insns;
    block->size = (uint32_t)batch->code.n;
    block->last_size = last->size;
    block->end = last->kind == TL_INSN_PLAIN ? TL_BLOCK_FULL : TL_BLOCK_WAYPOINT;
    block->coded_size = (uint32_t)batch->stf.n;
    block->last_coded = batch->last_coded;
    if (batch->groups) {
        block->whole = true;
        block->reported = &batch->groups->reported;
    }
    int result = keep(batch, batch->code.p, batch->code.n, &item.data);
    if (result == TL_OK)
        result = tl_buf_add(&batch->arena, batch->stf.p, batch->stf.n);
    tl_buf_reset(&batch->code);
    tl_buf_reset(&batch->stf);
    batch->insns = 0;
    return result < 0 ? result : add(batch, &item);
}

int tl_stf_batch_add(struct tl_stf_batch *batch, const struct tl_item *item)
{
    int result = end_run(batch, false);
    if (result < 0)
        return result;
    struct tl_item copy = *item;
    if (tl_item_has_text(item->kind))
        result = keep(batch, item->text ? item->text : "-", item->text ? strlen(item->text) + 1 : 2,
                      &copy.data);
    else if (item->kind == TL_ITEM_SOFTWARE)
        result = keep(batch, item->data, item->n, &copy.data);
    return result < 0 ? result : add(batch, &copy);
}

/* Append an instruction's records to those of the run. */
static int add_records(struct tl_stf_batch *batch, uint64_t pc, const uint8_t *code, uint32_t size,
                       struct tl_bytes group)
{
    uint8_t close[TL_STF_CLOSE_MAX];
    if (!batch->groups)
        group = (struct tl_bytes){close,
                                  tl_stf_close_insn(close, pc, code, size, batch->last.encoding)};
    batch->last_coded = (uint32_t)group.n;
    return tl_buf_add(&batch->stf, group.p, group.n);
}

/* Can it be decoded as an instruction of this size? */
static bool decode_insn(enum tl_isa isa, uint64_t pc, const uint8_t *code, size_t size,
                        struct tl_insn *out)
{
    *out = (struct tl_insn){0};
    const int got = tl_insn_decode(isa, &newest, pc, (struct tl_bytes){code, size}, out);
    return got != TL_NOMEM && got != TL_AGAIN && got != TL_UNSUPPORTED && out->size == size;
}

int tl_stf_batch_insn(struct tl_stf_batch *batch, enum tl_isa isa, uint64_t pc, const uint8_t *code,
                      uint32_t size, struct tl_bytes group, enum tl_stf_way way, uint64_t offset)
{
    struct tl_insn insn;
    const bool known = decode_insn(isa, pc, code, size, &insn);
    if (!known && !batch->groups) {
        /* An unknown instruction set: only the address can be reported. */
        const struct tl_item item = {
            .kind = TL_ITEM_UNKNOWN, .flags = TL_ITEM_HAS_PC, .pc = pc, .offset = offset};
        return tl_stf_batch_add(batch, &item);
    }
    if (!known) { /* make it a block of its own, so that no instruction boundaries are needed */
        insn = (struct tl_insn){.size = (uint8_t)size, .kind = TL_INSN_PLAIN};
        isa = TL_ISA_NONE;
    }
    int result = TL_OK;
    if (batch->insns && (batch->isa != isa || batch->pc + batch->code.n != pc || !known))
        result = end_run(batch, false);
    if (result < 0)
        return result;
    if (batch->insns == 0) {
        batch->pc = pc;
        batch->isa = (uint8_t)isa;
        batch->offset = offset;
    }
    const bool taken = way == TL_STF_TAKEN || (way == TL_STF_RETURNS && !insn.conditional &&
                                               insn.kind == TL_INSN_RETURN_EX);
    batch->last = insn;
    batch->insns++;
    if (tl_buf_add(&batch->code, code, size) < 0 || add_records(batch, pc, code, size, group) < 0)
        return TL_NOMEM;
    if (taken || !known || insn.kind != TL_INSN_PLAIN || batch->insns == TL_STF_RUN_MAX ||
        batch->stf.n > RUN_BYTES)
        return end_run(batch, taken);
    return TL_OK;
}

int tl_stf_batch_flush(struct tl_stf_batch *batch)
{
    const int result = end_run(batch, false);
    return result < 0 ? result : tl_stf_batch_deliver(batch);
}

/*
 * ---- saved state ------------------------------------------------------------------------------
 */

/* Check the run's consistency, and decode its last instruction. */
static bool load_last(struct tl_stf_batch *batch, uint8_t size)
{
    const size_t n = batch->code.n;
    struct tl_stf_shape shape;
    if (batch->insns == 0)
        return n == 0 && batch->stf.n == 0;
    if (batch->insns > n || size == 0 || size > n || batch->last_coded > batch->stf.n)
        return false;
    if (!decode_insn((enum tl_isa)batch->isa, batch->pc + n - size, batch->code.p + n - size, size,
                     &batch->last))
        return false;
    return !batch->groups ||
           (tl_stf_groups_look(batch->groups, (struct tl_bytes){batch->stf.p, batch->stf.n},
                               &shape) &&
            shape.ends && shape.markers == batch->insns &&
            batch->stf.n - shape.group == batch->last_coded);
}

void tl_stf_batch_state(struct tl_stf_batch *batch, struct tl_state *s)
{
    uint8_t size = batch->last.size;
    tl_state_buf(s, &batch->code, 16 * TL_STF_RUN_MAX);
    tl_state_buf(s, &batch->stf, SIZE_MAX);
    tl_state_u64(s, &batch->pc);
    tl_state_u64(s, &batch->offset);
    tl_state_u32(s, &batch->insns);
    tl_state_u32(s, &batch->last_coded);
    tl_state_u8(s, &batch->isa, TL_ISA_COUNT - 1);
    tl_state_u8(s, &size, UINT8_MAX);
    tl_state_check(s, batch->insns < TL_STF_RUN_MAX);
    tl_state_check(s, s->rc >= 0 && load_last(batch, size));
}
