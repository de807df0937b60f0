/* SPDX-License-Identifier: MIT */
/*
 * Tile buckets: summaries of a span of a stream's positions. Merging is associative, so that any
 * level of the pyramid can be computed from the one below.
 *
 * Only the most frequent functions and pages are kept, by space-saving counters: exact if a bucket
 * has few of them, otherwise approximate (never too low for the winner). Pure functions,
 * thread-safe.
 */
#ifndef TL_SHARD_BUCKET_H
#define TL_SHARD_BUCKET_H

#include "base/state.h"
#include "flow/item.h"
#include "shard/timedspan.h"
#include "shard/varint.h"

#define TL_BUCKET_FUNCTIONS 12 /* counters per bucket */
#define TL_BUCKET_PAGES     4
#define TL_BUCKET_KEPT      4 /* functions kept when encoded, and half as many pages */
/* Levels of the pyramid: a bucket of level L spans 4^L positions. */
#define TL_LEVEL_STORED  6 /* finest level stored in shards; finer ones are computed on demand */
#define TL_LEVEL_SUMMARY 8 /* finest level stored in the catalog */

enum tl_bucket_event {
    TL_HAS_EXCEPTION = 1,
    TL_HAS_RETURN = 2,
    TL_HAS_EVENT = 4,
    TL_HAS_SOFTWARE = 8,
    TL_HAS_MODE = 16,
    TL_HAS_CONTEXT = 32,
    TL_HAS_TRACE_ON = 64,
    TL_HAS_NOTE = 128
};

enum tl_bucket_flag {
    TL_FLAG_GAP = 1,
    TL_FLAG_OVERFLOW = 2,
    TL_FLAG_BAD_PACKET = 4,
    TL_FLAG_NO_IMAGE = 8,
    TL_FLAG_OFF = 16,
    TL_FLAG_OPEN = 32,
    TL_FLAG_UNSYNCED = 64,
    TL_FLAG_SWITCHED_OUT = 128
};

/* A counter with id 0 and count 0 is free. */
struct tl_top {
    uint64_t id;
    uint64_t n;
};

struct tl_bucket {
    uint64_t insns;    /* positions: instructions, branches or messages */
    uint64_t branches; /* taken branches */
    uint64_t events;
    struct tl_top functions[TL_BUCKET_FUNCTIONS]; /* id = symbol index + 1 */
    struct tl_top pages[TL_BUCKET_PAGES];         /* id = pc >> 12 */
    uint64_t privilege[4];        /* instructions at each exception level or privilege */
    uint16_t event_mask;          /* enum tl_bucket_event */
    uint8_t flags;                /* enum tl_bucket_flag */
    uint8_t distinct;             /* number of functions seen, saturating at 255 */
    uint8_t depth_min, depth_max; /* of the call stack; valid if insns > 0 */
};

/* Count `n` instructions of `function` (0: none) beginning at `pc`. `privilege` > 3: not known. */
void tl_bucket_insns(struct tl_bucket *bucket, uint64_t n, uint64_t function, uint64_t pc,
                     unsigned privilege, unsigned depth);
/* Parts of tl_bucket_insns(): by function (true: new in the bucket, and to be counted in
 * `distinct`), by page, and the common rest; each instruction must be counted once by each of the
 * three. */
bool tl_bucket_function(struct tl_bucket *bucket, uint64_t function, uint64_t n);
void tl_bucket_page(struct tl_bucket *bucket, uint64_t page, uint64_t n);
void tl_bucket_span(struct tl_bucket *bucket, uint64_t n, unsigned privilege, unsigned depth_min,
                    unsigned depth_max);
/* Count an item that is not an instruction. */
void tl_bucket_item(struct tl_bucket *bucket, const struct tl_item *item);
/* Parts of tl_bucket_item(): the item's enum tl_bucket_event and enum tl_bucket_flag bits, and
 * whether it counts as an event. */
static inline uint16_t tl_bucket_mask(const struct tl_item *item)
{
    static const uint8_t masks[TL_ITEM_KINDS] = {
        [TL_ITEM_EXCEPTION] = TL_HAS_EXCEPTION, [TL_ITEM_ERET] = TL_HAS_RETURN,
        [TL_ITEM_EVENT] = TL_HAS_EVENT,         [TL_ITEM_SOFTWARE] = TL_HAS_SOFTWARE,
        [TL_ITEM_HARDWARE] = TL_HAS_EVENT,      [TL_ITEM_MODE] = TL_HAS_MODE,
        [TL_ITEM_CONTEXT] = TL_HAS_CONTEXT,     [TL_ITEM_TRACE_ON] = TL_HAS_TRACE_ON,
        [TL_ITEM_NOTE] = TL_HAS_NOTE,
    };
    return item->kind < TL_ITEM_KINDS ? masks[item->kind] : 0;
}
static inline uint8_t tl_bucket_flags(const struct tl_item *item)
{
    static const uint8_t flags[TL_GAP_KINDS] = {
        [TL_GAP_OVERFLOW] = TL_FLAG_OVERFLOW,
        [TL_GAP_SYNC] = TL_FLAG_UNSYNCED,
        [TL_GAP_BAD_PACKET] = TL_FLAG_BAD_PACKET,
        [TL_GAP_NO_IMAGE] = TL_FLAG_NO_IMAGE,
        [TL_GAP_OFF] = TL_FLAG_OFF,
        [TL_GAP_SWITCHED_OUT] = TL_FLAG_SWITCHED_OUT,
    };
    return item->kind != TL_ITEM_GAP  ? 0
           : item->sub < TL_GAP_KINDS ? TL_FLAG_GAP | flags[item->sub]
                                      : TL_FLAG_GAP;
}
/* Whose is the time between two timestamps with gaps of these flags (enum tl_bucket_flag)? */
static inline enum tl_timed_kind tl_missing_kind(uint8_t flags)
{
    const uint8_t why = flags & (uint8_t) ~(TL_FLAG_GAP | TL_FLAG_OPEN),
                  whole = TL_FLAG_OFF | TL_FLAG_SWITCHED_OUT;
    return why == 0 || why & (uint8_t)~whole ? TL_TIMED_LOST
           : why & TL_FLAG_SWITCHED_OUT      ? TL_TIMED_SWITCHED_OUT
                                             : TL_TIMED_OFF;
}
static inline bool tl_item_is_event(const struct tl_item *item)
{
    const uint32_t events = 1u << TL_ITEM_EXCEPTION | 1u << TL_ITEM_EVENT | 1u << TL_ITEM_SOFTWARE |
                            1u << TL_ITEM_HARDWARE;
    return events >> item->kind & 1;
}
/* Add all of `from`. */
void tl_bucket_merge(struct tl_bucket *into, const struct tl_bucket *from);
/* Sort counters, most frequent first. */
void tl_bucket_sort(struct tl_bucket *bucket);

/* ---- arrays of buckets ----------------------------------------------------------------------- */

struct tl_buckets {
    unsigned level;
    uint64_t first; /* number of the first bucket, which begins at position first << 2 * level */
    struct tl_bucket *p;
    size_t n, cap;
};

void tl_buckets_fini(struct tl_buckets *buckets);
/* Reserve capacity for `n` buckets. TL_NOMEM. */
TL_MUST_USE int tl_buckets_reserve(struct tl_buckets *buckets, size_t n);
/* The bucket that contains `position`, created (with empty ones before it) if it is after the last.
 * NULL: out of memory, or `position` is before the first. */
struct tl_bucket *tl_buckets_at(struct tl_buckets *buckets, uint64_t position);
/* Add all of `from`, whose level is the same or finer. TL_NOMEM. */
TL_MUST_USE int tl_buckets_merge(struct tl_buckets *into, const struct tl_buckets *from);

/* Save the content to bytes, or load it into empty buckets of the same level. */
void tl_buckets_state(struct tl_buckets *buckets, struct tl_state *state);

/* Append the encoded buckets; decode with tl_buckets_decode(). TL_NOMEM. */
TL_MUST_USE int tl_buckets_encode(const struct tl_buckets *buckets, struct tl_buf *out);
/* Append the encoded summary, at TL_LEVEL_SUMMARY. TL_NOMEM. */
TL_MUST_USE int tl_buckets_encode_summary(const struct tl_buckets *buckets, struct tl_buf *out);
TL_MUST_USE int tl_buckets_decode(struct tl_buckets *out, struct tl_bytes bytes);
/* As tl_buckets_decode(), for buckets followed by other data. */
TL_MUST_USE int tl_buckets_read(struct tl_buckets *out, struct tl_varint_reader *in);

#endif
