/* SPDX-License-Identifier: MIT */
/*
 * The item log: everything of a stream that is not an instruction with known encoding, kept
 * losslessly and in order, each item with the position (instruction index) at which it sits: in
 * front of the instruction of that index. An index chunk of a shard has one log, which is
 * self-contained.
 *
 *     tl_itemlog_reset(&log, offset, time);
 *     tl_itemlog_add(&log, position, &item);         // each item, in order
 *     tl_itemlog_end(&log, position, offset);        // log.bytes is complete
 *     tl_itemlog_fini(&log);
 *
 *     tl_itemlog_read(&reader, bytes, offset, time); // the same offset and time
 *     while (tl_itemlog_next(&reader, &item, &position) == TL_OK) …
 *
 * Beside flow items a log holds marks: the instruction set wherever that of the following
 * instructions changes, the raw byte offset of every thousandth instruction or so where no item
 * tells it, and first of all the call stack and what the index says of the chunk's begin, so that
 * the index can be made anew where it is lost.
 *
 * The bytes. Positions, times and offsets are differences to the item before. An entry is
 *
 *     u8 kind (low 5 bits) | 0x20 position follows | 0x40 flags follow | 0x80 offset follows
 *     varint position difference, u8 flags, signed varint offset difference, as announced
 *     varint sub, then by kind: pc (signed difference), value (TIME: signed difference), data or
 *     text
 *
 * Where a program has no image, or not all of it, there may be millions of addresses that the trace
 * names. They, and cycle counts, are shorter: an AWAY (a BRANCH without pc), an UNMAPPED (a GAP
 * with one) and a COUNT have no sub, and only the address or count: the former two as a signed
 * difference to the last pc. Where these two stand at the same position as the item before, and
 * their packet less than 256 bytes behind its, they are
 *
 *     u8 kind (low 5 bits) | bytes of the difference less one (high 3 bits)
 *     u8 offset difference, signed difference to the last pc (zigzag, lowest byte first)
 *
 * At a discontinuity STF omits whether the last branch was taken; the next entry carries that bit:
 * the first BRANCH, GAP, TRACE_ON, EXCEPTION or UNKNOWN behind it, or the OFFSET at the log's end,
 * by TL_ITEM_TAKEN in its flags, a GAP by bit 6 of its sub.
 *
 * Not thread-safe.
 */
#ifndef TL_STORE_ITEMLOG_H
#define TL_STORE_ITEMLOG_H

#include "flow/item.h"

/* Kinds of marks: the enum tl_isa in `sub`; the raw byte offset of what follows; a call stack
 * (stackmark.h) as data; a chunk's begin (sums.h) as data. */
#define TL_ITEM_ISA    31
#define TL_ITEM_OFFSET 30
#define TL_ITEM_STACK  29
#define TL_ITEM_CHUNK  28
/* A BRANCH without pc; a GAP (TL_GAP_NO_IMAGE) with pc. Readers see the items. */
#define TL_ITEM_AWAY     27
#define TL_ITEM_UNMAPPED 26
/* CYCLES with a value, and nothing else. */
#define TL_ITEM_COUNT 25
/* AWAY and UNMAPPED near the item before. */
#define TL_ITEM_NEAR_AWAY     24
#define TL_ITEM_NEAR_UNMAPPED 23

#define TL_ITEMLOG_ENTRY 80 /* bytes of an item at most, without its data and texts */

/* What the next item is a difference to. */
struct tl_itemlog_base {
    uint64_t position; /* within the chunk */
    uint64_t offset;
    uint64_t pc;
    uint64_t time;
    uint64_t lost; /* position of the last entry that may carry the taken bit; UINT64_MAX: none */
};

struct tl_itemlog {
    struct tl_buf bytes;
    struct tl_itemlog_base base;
    uint64_t n;  /* items */
    bool turned; /* set by the owner: the last instruction was a branch that was taken */
};

void tl_itemlog_fini(struct tl_itemlog *log);
/* Begin a new log. Its first offset is stored as a difference to `offset`, its first time to
 * `time`: what holds where the chunk begins. The buffer is kept. */
void tl_itemlog_reset(struct tl_itemlog *log, uint64_t offset, uint64_t time);

/* Add an item at `position` (rising, within the chunk). Never a BLOCK. TL_NOMEM. */
TL_MUST_USE int tl_itemlog_add(struct tl_itemlog *log, uint64_t position,
                               const struct tl_item *item);
/*
 * Add items[0..*n) at one position up to the first that is not unmapped code, or until the log has
 * nearly `most` bytes. Sets `*n` to how many were added. TL_NOMEM.
 */
TL_MUST_USE int tl_itemlog_add_unmapped(struct tl_itemlog *log, uint64_t position,
                                        const struct tl_item *items, size_t *n, size_t most);
/* Add a mark: the instruction set, or the raw byte offset, from `position` on. TL_NOMEM. */
TL_MUST_USE int tl_itemlog_add_isa(struct tl_itemlog *log, uint64_t position, enum tl_isa isa);
TL_MUST_USE int tl_itemlog_add_offset(struct tl_itemlog *log, uint64_t position, uint64_t offset);
/* End the log at `position`: what follows there is of the packet at `offset` or a later one.
 * TL_NOMEM. */
TL_MUST_USE int tl_itemlog_end(struct tl_itemlog *log, uint64_t position, uint64_t offset);
/* Marks of a chunk's begin, before any item: its call stack (stackmark.h), and its entry in the
 * index (sums.h). TL_NOMEM. */
TL_MUST_USE int tl_itemlog_add_stack(struct tl_itemlog *log, struct tl_bytes stack);
TL_MUST_USE int tl_itemlog_add_chunk(struct tl_itemlog *log, struct tl_bytes head);

struct tl_itemlog_reader {
    const uint8_t *p, *end;
    struct tl_itemlog_base base;
    bool turned; /* the last item says so of the instruction in front of it */
};

/* `bytes` are borrowed; `offset` and `time` as they were given to tl_itemlog_reset(). */
void tl_itemlog_read(struct tl_itemlog_reader *reader, struct tl_bytes bytes, uint64_t offset,
                     uint64_t time);
/*
 * The next item and its position; texts and data point into the bytes. TL_EOF at the end,
 * TL_BAD where the bytes make no sense.
 */
TL_MUST_USE int tl_itemlog_next(struct tl_itemlog_reader *reader, struct tl_item *item,
                                uint64_t *position);

#endif
