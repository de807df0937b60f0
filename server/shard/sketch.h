/* SPDX-License-Identifier: MIT */
/*
 * A distribution of durations: how many fell into each of many classes, of which each is at most
 * 1/64 as wide as its least value. So quantiles are at most 0.8 % away from the exact ones, and
 * distributions of parts add up to that of the whole. Values below 128 are exact.
 *
 * All zero: empty. Not thread-safe.
 */
#ifndef TL_SHARD_SKETCH_H
#define TL_SHARD_SKETCH_H

#include "base/buf.h"
#include "shard/varint.h"

#define TL_SKETCH_CLASSES 3776 /* of all 64-bit values */

struct tl_sketch {
    uint64_t *counts; /* of classes first … first + n - 1 */
    uint32_t first, n;
};

/* The class of a value; classes are in the order of values. */
static inline uint32_t tl_sketch_class(uint64_t value)
{
    const unsigned wide = 57 - (unsigned)__builtin_clzll(value | 64);
    return (wide << 6) + (uint32_t)(value >> wide);
}

/* The least value of a class; that of TL_SKETCH_CLASSES is UINT64_MAX. */
uint64_t tl_sketch_least(uint32_t number);

void tl_sketch_fini(struct tl_sketch *sketch);
/* Make room for a class. TL_NOMEM. */
TL_MUST_USE int tl_sketch_extend(struct tl_sketch *sketch, uint32_t number);

/* Count a value. TL_NOMEM. */
TL_MUST_USE static inline int tl_sketch_add(struct tl_sketch *sketch, uint64_t value)
{
    const uint32_t number = tl_sketch_class(value);
    const int r = number - sketch->first < sketch->n ? TL_OK : tl_sketch_extend(sketch, number);
    if (r >= 0)
        sketch->counts[number - sketch->first]++;
    return r;
}

/* Add all of `from`. TL_NOMEM. */
TL_MUST_USE int tl_sketch_merge(struct tl_sketch *into, const struct tl_sketch *from);
/* Number of values. */
uint64_t tl_sketch_total(const struct tl_sketch *sketch);
/* The value below which `part` (0 to 1) of the values lie: the middle of its class; 0: empty. */
uint64_t tl_sketch_quantile(const struct tl_sketch *sketch, double part);

/* Append the encoding. TL_NOMEM. */
TL_MUST_USE int tl_sketch_encode(const struct tl_sketch *sketch, struct tl_buf *out);
/* Read what tl_sketch_encode() wrote, adding it. Sets in->bad if it is damaged. TL_NOMEM. */
TL_MUST_USE int tl_sketch_read(struct tl_sketch *sketch, struct tl_varint_reader *in);

#endif
