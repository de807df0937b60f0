/* SPDX-License-Identifier: MIT */
/*
 * The item log: every item of a stream that is not an instruction with known encoding, lossless and
 * in order, each with its position (instruction index): it precedes the instruction with that
 * index. Each index chunk of a shard has one self-contained log.
 *
 *     tl_itemlog_reset(&log, offset, time);
 *     tl_itemlog_add(&log, position, &item);         // each item, in order
 *     tl_itemlog_end(&log, position, offset);        // log.bytes is complete
 *     tl_itemlog_fini(&log);
 *
 *     tl_itemlog_read(&reader, bytes, offset, time); // the same offset and time
 *     while (tl_itemlog_next(&reader, &item, &position) == TL_OK) …
 *
 * Besides flow items a log holds asides: the instruction set whenever it changes; the raw byte
 * offset about every thousand instructions unless items give it; and at the very beginning the call
 * stack and the chunk's values from the index, so that the index can be rebuilt if it is lost.
 *
 * Encoding. Positions, times and offsets are differences to the previous item. An entry is
 *
 *     u8 kind (low 5 bits) | 0x20 position follows | 0x40 flags follow | 0x80 offset follows
 *     varint position difference, u8 flags, signed varint offset difference, as announced
 *     varint sub, then by kind: pc (signed difference), value (TIME: signed difference), data or
 *     text
 *
 * A program without an image, or with an incomplete one, may produce millions of addresses. These,
 * and cycle counts, have a shorter form: an AWAY (a BRANCH without pc), an UNMAPPED (a GAP with
 * one) and a COUNT have no sub, only the address or count; the addresses as a signed difference to
 * the last pc. If AWAY or UNMAPPED is at the same position as the previous item, and its packet
 * less than 256 bytes after that item's packet, it is encoded as
 *
 *     u8 kind (low 5 bits) | bytes of the difference less one (high 3 bits)
 *     u8 offset difference, signed difference to the last pc (zigzag, lowest byte first)
 *
 * At a discontinuity STF omits whether the last branch was taken; the next entry carries that bit:
 * the next BRANCH, GAP, TRACE_ON, EXCEPTION or UNKNOWN, or the OFFSET at the log's end, as
 * TL_ITEM_TAKEN in its flags, a GAP as bit 6 of its sub.
 *
 * Not thread-safe.
 */
#ifndef TL_SHARD_ITEMLOG_H
#define TL_SHARD_ITEMLOG_H

#include "flow/item.h"

/* Kinds of asides: the enum tl_isa in `sub`; the raw byte offset of what follows; a call stack
 * (savedstack.h) as data; a chunk's begin (sums.h) as data. */
#define TL_ITEM_ISA    31
#define TL_ITEM_OFFSET 30
#define TL_ITEM_STACK  29
#define TL_ITEM_CHUNK  28
/* A BRANCH without pc; a GAP (TL_GAP_NO_IMAGE) with pc. Readers return the original items. */
#define TL_ITEM_AWAY     27
#define TL_ITEM_UNMAPPED 26
/* CYCLES with a value and nothing else. */
#define TL_ITEM_COUNT 25
/* AWAY and UNMAPPED close to the previous item. */
#define TL_ITEM_NEAR_AWAY     24
#define TL_ITEM_NEAR_UNMAPPED 23
/* Only in regenerated logs (missing.h): the next `value` positions are missing. */
#define TL_ITEM_LOST 22

#define TL_ITEMLOG_ENTRY 80 /* maximum encoded size of an item, without its data and texts */

/* Base values of the next item's differences. */
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
 * `time`: the values at the begin of the chunk. The buffer is kept. */
void tl_itemlog_reset(struct tl_itemlog *log, uint64_t offset, uint64_t time);

/* Add an item at `position` (ascending, within the chunk). Never a BLOCK. TL_NOMEM. */
TL_MUST_USE int tl_itemlog_add(struct tl_itemlog *log, uint64_t position,
                               const struct tl_item *item);
/*
 * Add items[0..*n) at one position up to the first that is not unmapped code, or until the log has
 * nearly `most` bytes. Sets `*n` to how many were added. TL_NOMEM.
 */
TL_MUST_USE int tl_itemlog_add_unmapped(struct tl_itemlog *log, uint64_t position,
                                        const struct tl_item *items, size_t *n, size_t most);
/* Add an aside: the instruction set, or the raw byte offset, from `position` on. TL_NOMEM. */
TL_MUST_USE int tl_itemlog_add_isa(struct tl_itemlog *log, uint64_t position, enum tl_isa isa);
TL_MUST_USE int tl_itemlog_add_offset(struct tl_itemlog *log, uint64_t position, uint64_t offset);
/* End the log at `position`: what follows there comes from the packet at `offset` or a later one.
 * TL_NOMEM. */
TL_MUST_USE int tl_itemlog_end(struct tl_itemlog *log, uint64_t position, uint64_t offset);
/* Asides of a chunk's begin, before any item: its call stack (savedstack.h), and its entry in the
 * index (sums.h). TL_NOMEM. */
TL_MUST_USE int tl_itemlog_add_stack(struct tl_itemlog *log, struct tl_bytes stack);
TL_MUST_USE int tl_itemlog_add_chunk(struct tl_itemlog *log, struct tl_bytes head);
/* An aside: `n` positions are missing from `position` on. TL_NOMEM. */
TL_MUST_USE int tl_itemlog_add_lost(struct tl_itemlog *log, uint64_t position, uint64_t n);

struct tl_itemlog_reader {
    const uint8_t *p, *end;
    struct tl_itemlog_base base;
    bool turned; /* as given by the last item: the instruction before it was a taken branch */
};

/* `bytes` are borrowed; `offset` and `time` as passed to tl_itemlog_reset(). */
void tl_itemlog_read(struct tl_itemlog_reader *reader, struct tl_bytes bytes, uint64_t offset,
                     uint64_t time);
/*
 * Return the next item and its position; texts and data point into the bytes. TL_EOF at the end,
 * TL_BAD: the bytes are invalid.
 */
TL_MUST_USE int tl_itemlog_next(struct tl_itemlog_reader *reader, struct tl_item *item,
                                uint64_t *position);

#endif
