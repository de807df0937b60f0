/* SPDX-License-Identifier: MIT */
/* A batch of flow items, collected by a decoder and delivered to its sink at once. Header only; not
 * thread-safe. */
#ifndef TL_FLOW_BATCH_H
#define TL_FLOW_BATCH_H

#include "base/state.h"
#include "flow/item.h"

#include <stdio.h>

#define TL_BATCH_ITEMS 1024 /* items per delivery, at most */
#define TL_BATCH_STEPS 1024 /* words of payload per delivery, at most; a path step is one word */
#define TL_BATCH_RUN   64   /* a run of this many steps is not extended by the next packet */

struct tl_item_batch {
    tl_item_sink *sink;
    void *context;
    int rc;      /* first failure of the sink; nothing is delivered after it */
    bool paths;  /* the sink accepts PATH items */
    bool within; /* the next steps belong to the previous packet: they do not end a run */
    size_t n;
    size_t n_steps;
    /*
     * Run: steps of several packets are joined in one PATH item, which carries the offset of the
     * first packet. A delivery starts a new item but not a new run, so offsets do not depend on
     * when batches are delivered.
     */
    uint32_t run; /* steps so far; 0: the next step begins a run */
    uint64_t run_offset;
    struct tl_item items[TL_BATCH_ITEMS];
    uintptr_t steps[TL_BATCH_STEPS]; /* steps of PATH items; payloads and text of others */
};

static inline void tl_item_batch_init(struct tl_item_batch *b, tl_item_sink *sink, void *context)
{
    b->sink = sink;
    b->context = context;
}

/* Reset to the initial state. Undelivered items are dropped. */
static inline void tl_item_batch_reset(struct tl_item_batch *b)
{
    b->rc = TL_OK;
    b->n = 0;
    b->n_steps = 0;
    b->run = 0;
}

/* Save or restore whether a run continues. Call only right after a flush. */
static inline void tl_item_batch_state(struct tl_item_batch *b, struct tl_state *s)
{
    if (b->run == 0)
        b->run_offset = 0;
    tl_state_u32(s, &b->run);
    tl_state_u64(s, &b->run_offset);
}

/* Deliver pending items. Returns the sink's first failure, or 0. */
static inline int tl_item_batch_flush(struct tl_item_batch *b)
{
    if (b->n > 0 && b->rc >= 0) {
        const int rc = b->sink(b->context, b->items, b->n);
        if (rc < 0)
            b->rc = rc;
    }
    b->n = 0;
    b->n_steps = 0;
    return b->rc;
}

/* Append an item. The caller may continue filling in the returned item until the next call. */
static inline struct tl_item *tl_item_batch_add(struct tl_item_batch *b, enum tl_item_kind kind,
                                                uint64_t offset)
{
    if (b->n == TL_BATCH_ITEMS)
        tl_item_batch_flush(b);
    struct tl_item *const item = &b->items[b->n++];
    b->run = 0;
    *item = (struct tl_item){.kind = (uint8_t)kind, .offset = offset};
    return item;
}

/* Append an item of `kind` that carries a number. */
static inline void tl_item_batch_value(struct tl_item_batch *b, enum tl_item_kind kind,
                                       uint64_t value, uint64_t offset)
{
    struct tl_item *const item = tl_item_batch_add(b, kind, offset);
    item->value = value;
    item->flags = TL_ITEM_HAS_VALUE;
}

static inline void tl_item_batch_gap(struct tl_item_batch *b, enum tl_gap gap, uint64_t offset)
{
    tl_item_batch_add(b, TL_ITEM_GAP, offset)->sub = (uint16_t)gap;
}

/* Append the gap for a change of flow to `pc`, which the image does not map. */
static inline void tl_item_batch_unmapped(struct tl_item_batch *b, uint64_t pc, uint64_t offset)
{
    if (b->n == TL_BATCH_ITEMS)
        tl_item_batch_flush(b);
    b->run = 0;
    b->items[b->n++] = (struct tl_item){.kind = TL_ITEM_GAP,
                                        .flags = TL_ITEM_HAS_PC,
                                        .sub = TL_GAP_NO_IMAGE,
                                        .pc = pc,
                                        .offset = offset};
}

/* Append a NOTE. `text` has static storage. */
static inline void tl_item_batch_note(struct tl_item_batch *b, const char *text, uint64_t offset)
{
    tl_item_batch_add(b, TL_ITEM_NOTE, offset)->text = text;
}

/* Append a BLOCK: the first `n` instructions of `block` were executed. */
static inline void tl_item_batch_block(struct tl_item_batch *b, const struct tl_block *block,
                                       uint32_t n, bool taken, uint64_t offset)
{
    if (b->n == TL_BATCH_ITEMS)
        tl_item_batch_flush(b);
    b->run = 0;
    b->items[b->n++] =
        (struct tl_item){.kind = TL_ITEM_BLOCK,
                         .flags = (uint8_t)(TL_ITEM_HAS_PC | (taken ? TL_ITEM_TAKEN : 0)),
                         .n = n,
                         .pc = block->pc,
                         .offset = offset,
                         .block = block};
}

/* Reserve space for `n` path steps (n <= TL_BATCH_STEPS) and the item that refers to them. */
static inline uintptr_t *tl_item_batch_steps(struct tl_item_batch *b, size_t n)
{
    if (b->n == TL_BATCH_ITEMS || b->n_steps > TL_BATCH_STEPS - n)
        tl_item_batch_flush(b);
    return b->steps + b->n_steps;
}

/* Reserve `size` bytes (at most 512) of payload for the next item to be added. */
static inline void *tl_item_batch_store(struct tl_item_batch *b, size_t size)
{
    const size_t n = (size + sizeof(uintptr_t) - 1) / sizeof(uintptr_t);
    void *const room = tl_item_batch_steps(b, n);
    b->n_steps += n;
    b->run = 0;
    return room;
}

/* Append the NOTE of a new time segment. */
static inline void tl_item_batch_restart(struct tl_item_batch *b, uint64_t last, uint64_t first,
                                         uint64_t offset)
{
    enum { SIZE = 64 };
    char *const text = tl_item_batch_store(b, SIZE);
    struct tl_item *const item = tl_item_batch_add(b, TL_ITEM_NOTE, offset);
    snprintf(text, SIZE, TL_NOTE_TIME_RESTART "%llu %llu", (unsigned long long)last,
             (unsigned long long)first);
    item->text = text;
}

/* Call between packets: ends a run that is long enough, so that the next step begins a new one. */
static inline void tl_item_batch_pause(struct tl_item_batch *b)
{
    if (b->run >= TL_BATCH_RUN && !b->within)
        b->run = 0;
}

/* Call between packets: can the last item be extended by up to 64 steps of the current run? */
static inline bool tl_item_batch_continues(const struct tl_item_batch *b)
{
    return b->run - 1 < TL_BATCH_RUN - 1 && b->n > 0 && b->n_steps <= TL_BATCH_STEPS - 64;
}

/* Extend the run's item by `n` steps, `insns` instructions. Only if tl_item_batch_continues(). */
static inline void tl_item_batch_more(struct tl_item_batch *b, size_t n, uint64_t insns)
{
    struct tl_item *const item = &b->items[b->n - 1];
    b->run += (uint32_t)n;
    b->n_steps += n;
    item->n += (uint32_t)n;
    item->value += insns;
}

/*
 * Append the first `n` >= 1 steps written to tl_item_batch_steps(), `insns` instructions in all:
 * they extend the current run or begin one.
 */
static inline void tl_item_batch_path(struct tl_item_batch *b, size_t n, uint64_t insns,
                                      uint64_t offset)
{
    const uintptr_t *const steps = b->steps + b->n_steps;
    const bool continues = b->run > 0 && b->n > 0;
    if (b->run == 0)
        b->run_offset = offset;
    if (continues) { /* the last item belongs to the run */
        tl_item_batch_more(b, n, insns);
        return;
    }
    b->run += (uint32_t)n;
    b->n_steps += n;
    b->items[b->n++] = (struct tl_item){.kind = TL_ITEM_PATH,
                                        .flags = TL_ITEM_HAS_PC,
                                        .n = (uint32_t)n,
                                        .pc = tl_path_block(*steps)->pc,
                                        .value = insns,
                                        .offset = b->run_offset,
                                        .path = steps};
}

/*
 * Append a fully executed `block`: as a path step if the sink accepts PATH items, else as a BLOCK.
 */
static inline void tl_item_batch_whole(struct tl_item_batch *b, const struct tl_block *block,
                                       bool taken, uint64_t offset)
{
    if (b->paths) {
        *tl_item_batch_steps(b, 1) = tl_path_step(block, taken);
        tl_item_batch_path(b, 1, block->n, offset);
    } else {
        tl_item_batch_block(b, block, block->n, taken, offset);
    }
}

/*
 * Append software trace: `size` (0..8) bytes of `value` on `channel` of `source` (static storage).
 */
static inline struct tl_item *tl_item_batch_software(struct tl_item_batch *b, const char *source,
                                                     uint64_t channel, uint64_t value,
                                                     unsigned size, uint64_t offset)
{
    uint8_t *const payload = tl_item_batch_store(b, sizeof value);
    struct tl_item *const item = tl_item_batch_add(b, TL_ITEM_SOFTWARE, offset);
    tl_put_le64(payload, value);
    item->flags = TL_ITEM_HAS_PC;
    item->name = source;
    item->pc = channel;
    item->data = payload;
    item->n = size;
    return item;
}

#endif
