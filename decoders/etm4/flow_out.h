/* SPDX-License-Identifier: MIT */
/* A batch of flow items on its way to the sink. Header only; not thread-safe. */
#ifndef TL_ETM4_FLOW_OUT_H
#define TL_ETM4_FLOW_OUT_H

#include "flow/item.h"

#define TL_ETM4_ITEMS 256 /* items delivered at once, at most */

struct tl_etm4_out {
    tl_item_sink *sink;
    void *context;
    int rc; /* the sink's first failure; nothing is delivered any more */
    size_t n;
    struct tl_item items[TL_ETM4_ITEMS];
    uint8_t payload[TL_ETM4_ITEMS][8]; /* of SOFTWARE items, by item */
};

/* Deliver what is pending. */
static inline int tl_etm4_out_flush(struct tl_etm4_out *out)
{
    if (out->n > 0 && out->rc >= 0) {
        const int rc = out->sink(out->context, out->items, out->n);
        if (rc < 0)
            out->rc = rc;
    }
    out->n = 0;
    return out->rc;
}

/* Append an item; the one returned may be filled further until the next call. */
static inline struct tl_item *tl_etm4_out_add(struct tl_etm4_out *out, enum tl_item_kind kind,
                                              uint64_t offset)
{
    if (out->n == TL_ETM4_ITEMS)
        tl_etm4_out_flush(out);
    struct tl_item *item = &out->items[out->n++];
    *item = (struct tl_item){.kind = (uint8_t)kind, .offset = offset};
    return item;
}

static inline void tl_etm4_out_value(struct tl_etm4_out *out, enum tl_item_kind kind,
                                     uint64_t value, uint64_t offset)
{
    struct tl_item *item = tl_etm4_out_add(out, kind, offset);
    item->value = value;
    item->flags = TL_ITEM_HAS_VALUE;
}

static inline void tl_etm4_out_gap(struct tl_etm4_out *out, enum tl_gap gap, uint64_t offset)
{
    tl_etm4_out_add(out, TL_ITEM_GAP, offset)->sub = (uint16_t)gap;
}

/* `text` has static storage. */
static inline void tl_etm4_out_note(struct tl_etm4_out *out, const char *text, uint64_t offset)
{
    tl_etm4_out_add(out, TL_ITEM_NOTE, offset)->text = text;
}

static inline void tl_etm4_out_block(struct tl_etm4_out *out, const struct tl_block *block,
                                     uint32_t n, bool taken, uint64_t offset)
{
    if (out->n == TL_ETM4_ITEMS)
        tl_etm4_out_flush(out);
    out->items[out->n++] =
        (struct tl_item){.kind = TL_ITEM_BLOCK,
                         .flags = (uint8_t)(TL_ITEM_HAS_PC | (taken ? TL_ITEM_TAKEN : 0)),
                         .n = n,
                         .pc = block->pc,
                         .offset = offset,
                         .block = block};
}

#endif
