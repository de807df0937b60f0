/* SPDX-License-Identifier: MIT */
/*
 * Random streams of flow items for tests of the store: basic blocks of A64, T32 and RISC-V code
 * with every kind of item between them. The same seed gives the same stream.
 */
#ifndef TL_TESTS_MADE_ITEMS_H
#define TL_TESTS_MADE_ITEMS_H

#include "flow/hardware.h"
#include "flow/item.h"
#include "stf/close.h"

#include <stdio.h>
#include <stdlib.h>

#define MADE_BLOCKS 64

struct made {
    uint64_t random;
    struct tl_block blocks[MADE_BLOCKS];
    uint8_t code[MADE_BLOCKS][64];
    uint8_t stf[MADE_BLOCKS][32 * TL_STF_CLOSE_MAX];
    struct tl_item *items;
    size_t n, cap;
    uint64_t offset, time;
    unsigned others; /* one of this many items is not a block */
};

static inline uint64_t made_random(struct made *m)
{
    uint64_t z = m->random += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

static inline uint64_t made_below(struct made *m, uint64_t n)
{
    return made_random(m) % n;
}

/* A random instruction of the instruction set, written to `code`. Returns its size. */
static inline uint8_t made_insn(struct made *m, enum tl_isa isa, uint8_t *code, uint32_t *encoding)
{
    if (isa == TL_ISA_A64) {
        *encoding = 0x91000000u | (uint32_t)made_below(m, 1 << 20); /* add */
        tl_put_le32(code, *encoding);
        return 4;
    }
    if (isa == TL_ISA_T32 && made_below(m, 2)) {
        *encoding = 0xf1000000u | (uint32_t)made_below(m, 1 << 12); /* add.w */
        tl_put_le16(code, (uint16_t)(*encoding >> 16));
        tl_put_le16(code + 2, (uint16_t)*encoding);
        return 4;
    }
    if (isa == TL_ISA_RV64 && made_below(m, 2)) {
        *encoding = 0x00000013u | (uint32_t)made_below(m, 32) << 7; /* addi */
        tl_put_le32(code, *encoding);
        return 4;
    }
    *encoding = isa == TL_ISA_T32 ? 0x3000u | (uint32_t)made_below(m, 256)
                                  : 0x0001u | (uint32_t)made_below(m, 31) << 7;
    tl_put_le16(code, (uint16_t)*encoding);
    return 2;
}

static inline void made_block(struct made *m, size_t i)
{
    static const enum tl_isa sets[] = {TL_ISA_A64, TL_ISA_A64, TL_ISA_T32, TL_ISA_RV64};
    struct tl_block *b = &m->blocks[i];
    *b = (struct tl_block){.pc = 0x400000 + i * 64 + made_below(m, 1000) * 4096,
                           .isa = (uint8_t)sets[made_below(m, 4)],
                           .end = TL_BLOCK_WAYPOINT,
                           .function = (uint32_t)(i / 4),
                           .code = m->code[i],
                           .coded = m->stf[i]};
    b->n = 1 + (uint32_t)made_below(m, 16);
    for (uint32_t k = 0; k < b->n; k++) {
        uint32_t encoding;
        uint8_t *code = m->code[i] + b->size;
        b->last_size = made_insn(m, (enum tl_isa)b->isa, code, &encoding);
        b->last_coded = tl_stf_close_insn(m->stf[i] + b->coded_size, b->pc + b->size, code,
                                          b->last_size, encoding);
        b->coded_size += b->last_coded;
        b->size += b->last_size;
    }
}

static inline struct tl_item *made_add(struct made *m, uint8_t kind)
{
    if (tl_grow(&m->items, &m->cap, m->n + 1, sizeof(*m->items)) < 0)
        abort();
    m->offset += made_below(m, 3);
    struct tl_item *item = &m->items[m->n++];
    *item = (struct tl_item){.kind = kind, .offset = m->offset};
    return item;
}

/* Consecutive addresses that are in no image, as in the trace of other programs; some
 * after a gap. */
static inline void made_holes(struct made *m)
{
    if (made_below(m, 3) == 0)
        made_add(m, TL_ITEM_GAP)->sub = (uint16_t)made_below(m, TL_GAP_KINDS);
    for (uint64_t i = made_below(m, 12); i-- > 0;) {
        const uint64_t address = made_random(m) >> made_below(m, 64);
        struct tl_item *const item = made_add(m, made_below(m, 8) ? TL_ITEM_GAP : TL_ITEM_BRANCH);
        item->flags = item->kind == TL_ITEM_GAP ? TL_ITEM_HAS_PC : TL_ITEM_HAS_VALUE;
        *(item->kind == TL_ITEM_GAP ? &item->pc : &item->value) = address;
        if (item->kind == TL_ITEM_GAP)
            item->sub = made_below(m, 8) ? TL_GAP_NO_IMAGE : TL_GAP_NO_PATH;
    }
}

static inline void made_hardware(struct made *m, struct tl_item *item)
{
    static const char *const events[] = {"exception enter 15 systick", "exception exit 15 systick",
                                         "exception return 0 -", "pc 0000000008001234", "sleep"};
    const uint64_t offset = item->offset;
    tl_hardware_parse(events[made_below(m, sizeof events / sizeof *events)], item);
    item->offset = offset;
}

static inline void made_other(struct made *m)
{
    if (made_below(m, 10) == 0) {
        made_holes(m);
        return;
    }
    static const uint8_t payload[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
    const uint8_t any = (uint8_t)(1 + made_below(m, TL_ITEM_KINDS - 1));
    const uint8_t kind =
        any == TL_ITEM_PATH ? TL_ITEM_NOTE : any; /* a path cannot be an item of its own */
    struct tl_item *item = made_add(m, kind);
    item->flags = (uint8_t)(made_below(m, 4) << 1);
    item->pc = made_random(m) >> made_below(m, 60);
    item->value = made_random(m) >> made_below(m, 60);
    switch (kind) {
    case TL_ITEM_UNKNOWN:
        item->pc &= ~(uint64_t)3;
        break;
    case TL_ITEM_EXCEPTION:
        item->sub = (uint16_t)made_below(m, 40);
        item->text = made_below(m, 4) ? "irq" : NULL;
        break;
    case TL_ITEM_MODE:
        item->value = tl_mode(TL_ARCH_ARM, (unsigned)made_below(m, 4), TL_SEC_NS, TL_ISA_A64);
        break;
    case TL_ITEM_TIME:
        item->sub = (uint16_t)made_below(m, 2);
        m->time += made_below(m, 1000);
        item->value = m->time;
        break;
    case TL_ITEM_SOFTWARE:
        item->name = "itm";
        item->data = payload;
        item->n = (uint32_t)made_below(m, sizeof(payload) + 1);
        break;
    case TL_ITEM_GAP:
        item->sub = (uint16_t)made_below(m, TL_GAP_KINDS);
        break;
    case TL_ITEM_NOTE:
        item->text = "transaction start";
        break;
    case TL_ITEM_HARDWARE:
        made_hardware(m, item);
        break;
    default:
        break;
    }
}

/* `n` items, one of `others` of them not a block (0: only blocks). */
static inline void made_stream(struct made *m, uint64_t seed, size_t n, unsigned others)
{
    *m = (struct made){.random = seed, .others = others};
    for (size_t i = 0; i < MADE_BLOCKS; i++)
        made_block(m, i);
    for (size_t i = 0; i < n; i++) {
        if (others && made_below(m, others) == 0) {
            made_other(m);
            continue;
        }
        struct tl_item *item = made_add(m, TL_ITEM_BLOCK);
        item->block = &m->blocks[made_below(m, MADE_BLOCKS)];
        item->n = item->block->n;
        item->flags = TL_ITEM_TAKEN;
        if (made_below(m, 8) == 0) { /* an exception in its middle */
            item->n = 1 + (uint32_t)made_below(m, item->n);
            item->flags = item->n == item->block->n ? TL_ITEM_TAKEN : 0;
        }
    }
}

static inline void made_free(struct made *m)
{
    free(m->items);
}

#endif
