/* SPDX-License-Identifier: MIT */
/* A batch of flow items on its way to the sink. Header only; not thread-safe. */
#ifndef TL_FLOW_BATCH_H
#define TL_FLOW_BATCH_H

#include "base/state.h"
#include "flow/item.h"

#include <stdlib.h>

#define TL_BATCH_ITEMS 1024 /* delivered at once, at most */
#define TL_BATCH_STEPS 1024 /* words of what they point to, at most: blocks of PATH items */
#define TL_BATCH_RUN   64   /* steps of a run that the next packet is not added to any more */

/* Where a batch's items are, and what they point to. */
struct tl_item_room {
    struct tl_item_room *next; /* the owner's, as is … */
    size_t n;                  /* … how many items there are */
    struct tl_item items[TL_BATCH_ITEMS];
    uintptr_t steps[TL_BATCH_STEPS]; /* of PATH items; payloads and texts of others */
};

/* Free a list of rooms. */
static inline void tl_item_rooms_free(struct tl_item_room *rooms)
{
    while (rooms) {
        struct tl_item_room *const next = rooms->next;
        free(rooms);
        rooms = next;
    }
}

struct tl_item_batch {
    tl_item_sink *sink;
    void *context;
    int rc;      /* the sink's first failure; nothing is delivered any more */
    bool paths;  /* the sink takes PATH items */
    bool within; /* what comes belongs to the packet before: only its bytes come later */
    size_t n;
    size_t n_steps;
    /*
     * Steps of several packets go into one PATH item, told at the offset of the first: a run. A
     * delivery cuts the item, but not the run, so that offsets do not depend on deliveries.
     */
    uint32_t run; /* steps; 0: the next one begins a run */
    uint64_t run_offset;
    /* &own, or another one. A sink that puts another one here keeps the items as they are. */
    struct tl_item_room *room;
    struct tl_item_room own;
};

static inline void tl_item_batch_init(struct tl_item_batch *b, tl_item_sink *sink, void *context)
{
    b->sink = sink;
    b->context = context;
    b->room = &b->own;
}

/* As just made; items that were not delivered are dropped. */
static inline void tl_item_batch_reset(struct tl_item_batch *b)
{
    b->rc = TL_OK;
    b->n = 0;
    b->n_steps = 0;
    b->run = 0;
}

/* Behind a flush: whether a run goes on, into bytes or from them. */
static inline void tl_item_batch_state(struct tl_item_batch *b, struct tl_state *s)
{
    if (b->run == 0)
        b->run_offset = 0;
    tl_state_u32(s, &b->run);
    tl_state_u64(s, &b->run_offset);
}

/* Deliver what is pending. Returns the sink's first failure, or 0. */
static inline int tl_item_batch_flush(struct tl_item_batch *b)
{
    if (b->n > 0 && b->rc >= 0) {
        const int rc = b->sink(b->context, b->room->items, b->n);
        if (rc < 0)
            b->rc = rc;
    }
    b->n = 0;
    b->n_steps = 0;
    return b->rc;
}

/* Append an item; the one returned may be filled further until the next call. */
static inline struct tl_item *tl_item_batch_add(struct tl_item_batch *b, enum tl_item_kind kind,
                                                uint64_t offset)
{
    if (b->n == TL_BATCH_ITEMS)
        tl_item_batch_flush(b);
    struct tl_item *const item = &b->room->items[b->n++];
    b->run = 0;
    *item = (struct tl_item){.kind = (uint8_t)kind, .offset = offset};
    return item;
}

/* An item of `kind` that is a number. */
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

/* The flow went to `pc`, where no image is. */
static inline void tl_item_batch_unmapped(struct tl_item_batch *b, uint64_t pc, uint64_t offset)
{
    if (b->n == TL_BATCH_ITEMS)
        tl_item_batch_flush(b);
    b->run = 0;
    b->room->items[b->n++] = (struct tl_item){.kind = TL_ITEM_GAP,
                                              .flags = TL_ITEM_HAS_PC,
                                              .sub = TL_GAP_NO_IMAGE,
                                              .pc = pc,
                                              .offset = offset};
}

/* `text` has static storage. */
static inline void tl_item_batch_note(struct tl_item_batch *b, const char *text, uint64_t offset)
{
    tl_item_batch_add(b, TL_ITEM_NOTE, offset)->text = text;
}

/* The first `n` instructions of `block` were executed. */
static inline void tl_item_batch_block(struct tl_item_batch *b, const struct tl_block *block,
                                       uint32_t n, bool taken, uint64_t offset)
{
    if (b->n == TL_BATCH_ITEMS)
        tl_item_batch_flush(b);
    b->run = 0;
    b->room->items[b->n++] =
        (struct tl_item){.kind = TL_ITEM_BLOCK,
                         .flags = (uint8_t)(TL_ITEM_HAS_PC | (taken ? TL_ITEM_TAKEN : 0)),
                         .n = n,
                         .pc = block->pc,
                         .offset = offset,
                         .block = block};
}

/* Room for `n` steps of a path, and for its item; n <= TL_BATCH_STEPS. */
static inline uintptr_t *tl_item_batch_steps(struct tl_item_batch *b, size_t n)
{
    if (b->n == TL_BATCH_ITEMS || b->n_steps > TL_BATCH_STEPS - n)
        tl_item_batch_flush(b);
    return b->room->steps + b->n_steps;
}

/* Room for `size` bytes (at most 64) that the item added next points to. */
static inline void *tl_item_batch_store(struct tl_item_batch *b, size_t size)
{
    const size_t n = (size + sizeof(uintptr_t) - 1) / sizeof(uintptr_t);
    void *const room = tl_item_batch_steps(b, n);
    b->n_steps += n;
    b->run = 0;
    return room;
}

/* Between packets: what comes next may begin a run. */
static inline void tl_item_batch_pause(struct tl_item_batch *b)
{
    if (b->run >= TL_BATCH_RUN && !b->within)
        b->run = 0;
}

/* Between packets: does a run go on, its item the last one, and is there room for 64 more steps? */
static inline bool tl_item_batch_goes_on(const struct tl_item_batch *b)
{
    return b->run - 1 < TL_BATCH_RUN - 1 && b->n > 0 && b->n_steps <= TL_BATCH_STEPS - 64;
}

/* It does: `n` steps behind its last one, which are `insns` instructions. */
static inline void tl_item_batch_more(struct tl_item_batch *b, size_t n, uint64_t insns)
{
    struct tl_item *const item = &b->room->items[b->n - 1];
    b->run += (uint32_t)n;
    b->n_steps += n;
    item->n += (uint32_t)n;
    item->value += insns;
}

/*
 * The first `n` >= 1 of the steps given by tl_item_batch_steps() go on with the run, or begin one;
 * they are `insns` instructions.
 */
static inline void tl_item_batch_path(struct tl_item_batch *b, size_t n, uint64_t insns,
                                      uint64_t offset)
{
    const uintptr_t *const steps = b->room->steps + b->n_steps;
    const bool goes_on = b->run > 0 && b->n > 0;
    if (b->run == 0)
        b->run_offset = offset;
    if (goes_on) { /* then the last item is the run's */
        tl_item_batch_more(b, n, insns);
        return;
    }
    b->run += (uint32_t)n;
    b->n_steps += n;
    b->room->items[b->n++] = (struct tl_item){.kind = TL_ITEM_PATH,
                                              .flags = TL_ITEM_HAS_PC,
                                              .n = (uint32_t)n,
                                              .pc = tl_path_block(*steps)->pc,
                                              .value = insns,
                                              .offset = b->run_offset,
                                              .path = steps};
}

/* All of `block` was executed: a step, if the sink takes PATH items. */
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

/* Software trace: `size` (0..8) bytes of `value` on `channel` of `source` (static storage). */
static inline void tl_item_batch_software(struct tl_item_batch *b, const char *source,
                                          uint64_t channel, uint64_t value, unsigned size,
                                          uint64_t offset)
{
    uint8_t *const payload = tl_item_batch_store(b, sizeof value);
    struct tl_item *const item = tl_item_batch_add(b, TL_ITEM_SOFTWARE, offset);
    tl_put_le64(payload, value);
    item->flags = TL_ITEM_HAS_PC;
    item->name = source;
    item->pc = channel;
    item->data = payload;
    item->n = size;
}

#endif
