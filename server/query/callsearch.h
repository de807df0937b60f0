/* SPDX-License-Identifier: MIT */
/*
 * Search for the longest or shortest calls of some functions in a range. Shards have their longest
 * calls and the distribution of all of them stored (shard/callindex.h), which tell how many there
 * are, and which shards cannot have any that is wanted: only the others are walked.
 */
#ifndef TL_QUERY_CALLSEARCH_H
#define TL_QUERY_CALLSEARCH_H

#include "lake_ranges.h"
#include "lake_timing.h"
#include "query/timing_answer.h"

struct tl_call_hit {
    uint64_t length; /* instructions or ticks */
    bool complete;   /* false: only call.frame.insn and call.open are known */
    struct tl_timing_call call;
};

struct tl_callsearch {
    const struct tl_cut *cut;
    uint64_t from, to;      /* positions, to <= cut->end */
    const uint8_t *symbols; /* for each symbol, whether it is wanted */
    size_t n_symbols;
    enum tl_weight weight; /* of lengths */
    enum tl_calls_order order;
    uint64_t least, most; /* least <= length < most, or UINT64_MAX: any */
    bool walks;           /* nothing that is stored is used; always so in the order of begins */
    /* The result: */
    struct tl_best best; /* struct tl_call_hit; `best.most` is set by the caller */
    uint64_t all;        /* number of calls of these lengths */
    struct tl_timed_extent extent;
};

/* Find calls that ended in the range, and those still active at its end; sorted. TL_NOMEM, TL_IO,
 * TL_BAD, TL_CANCELLED. */
TL_MUST_USE int tl_callsearch_run(struct tl_callsearch *search, struct tl_fail *fail);
/* Complete those hits that are not. TL_NOTFOUND: a walk does not find one; else as above. */
TL_MUST_USE int tl_callsearch_complete(struct tl_callsearch *search, struct tl_fail *fail);

#endif
