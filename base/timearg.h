/* SPDX-License-Identifier: MIT */
/*
 * Times and ranges of time as users write them, docs/time.md: the one notation of command line,
 * HTTP and scripts. Stateless, thread-safe.
 *
 * A number alone is in the stream's unit (ns or ticks). With ns, us, µs, ms or s it is time, which
 * only a stream with a known clock rate has; it may have decimals, rounded down to ns.
 */
#ifndef TL_BASE_TIMEARG_H
#define TL_BASE_TIMEARG_H

#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

struct tl_time_arg {
    uint64_t value; /* in the stream's unit, or ns */
    bool ns;
};

struct tl_time_range {
    uint64_t from;
    uint64_t to; /* UINT64_MAX if omitted */
    bool ns;     /* both are in ns; otherwise in the stream's unit */
    bool given;
};

/* What the parsers below accept, for messages: "a range of times such as …". */
#define TL_TIME_EXPECTED       "a time such as 81200, 1.5ms or 200us"
#define TL_TIME_RANGE_EXPECTED "a range of times such as 81200:90000, 1.5ms:2ms or 59.7ms:+200us"

/* Parse a time that makes up the whole text. Returns TL_USAGE. */
TL_MUST_USE int tl_time_parse(const char *text, struct tl_time_arg *out);
/*
 * Parse the two ends of a range. `from` may be NULL or "": 0; `to` may be NULL or "": UINT64_MAX,
 * or begin with '+': a length. Both ends have units of time, or neither; 0 needs none. Returns
 * TL_USAGE, also if it ends before it begins.
 */
TL_MUST_USE int tl_time_ends_parse(const char *from, const char *to, struct tl_time_range *out);
/* Parse "FROM:TO", "FROM:", ":TO" or "FROM:+LENGTH". Returns TL_USAGE. */
TL_MUST_USE int tl_time_range_parse(const char *text, struct tl_time_range *out);

#endif
