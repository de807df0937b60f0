/* SPDX-License-Identifier: MIT */
/*
 * What is stored, checked and mended; and what is removed because it is old, or too much. Threads
 * and errors as in lake.h.
 */
#ifndef TL_LAKE_UPKEEP_H
#define TL_LAKE_UPKEEP_H

#include "base/buf.h"
#include "base/err.h"
#include "lake_rows.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tl_lake;

/*
 * Check every stored byte of a trace ("": of all traces, and the catalog): raw bytes, shards with
 * their indexes and tiles, images, and the catalog's entries for them. Appends a line per finding
 * ("object: offset 0x…: what"); returns the number of findings. `repair` rebuilds whatever can be
 * derived from intact data, and reports what is lost of everything else. TL_NOTFOUND.
 */
TL_MUST_USE int tl_lake_verify(struct tl_lake *lake, const char *trace, bool repair,
                               struct tl_buf *report, struct tl_fail *fail);

/* ---- retention --------------------------------------------------------------------------- */

/*
 * A rule has a scope: "" (all traces), "label KEY=VALUE" or "trace ID"; the most specific one
 * applies to a trace. The scope "images" is of images that no trace refers to: `raw_age_s` since
 * that is so, `raw_bytes` of all of them, the longest unused are removed first. Age is measured
 * from the last change of the trace; a size is the total of all traces of the rule, of which the
 * oldest are removed first. Incomplete captures, traces being decoded, and traces with a label
 * "keep" (unless keep=no) are exempt. A trace with neither raw nor decoded data left is removed.
 */
struct tl_retention_row {
    char scope[160];
    struct tl_retention rule;
};
/* Set a rule, or (NULL) remove it. TL_USAGE: invalid scope. */
TL_MUST_USE int tl_lake_set_retention(struct tl_lake *lake, const char *scope,
                                      const struct tl_retention *rule, struct tl_fail *fail);
/* All rules; free `*rows` with free(). */
TL_MUST_USE int tl_lake_retention(struct tl_lake *lake, struct tl_retention_row **rows, size_t *n);
/*
 * Convert stored shards of idle traces to virtual ones after this time without changes (0: never):
 * the trace gets the label shards=virtual and is decoded again. Excludes traces with a label `keep`
 * and those without raw bytes. Any thread.
 */
void tl_lake_set_retain_stf(struct tl_lake *lake, uint64_t seconds);
/* Apply the rules as of `now_ns` (a time of the lake's clock, lake/age.h). Returns the number of
 * removals: because of age at most a quarter of all traces, or eight, in a day. */
TL_MUST_USE int tl_lake_retain(struct tl_lake *lake, int64_t now_ns, struct tl_fail *fail);
/* The same now, which happens once a minute; only because of size while the clock is not settled.
 */
TL_MUST_USE int tl_lake_retain_now(struct tl_lake *lake, struct tl_fail *fail);
/* What retention removes. Borrowed for the call. */
struct tl_retention_victim {
    const char *trace; /* or the hash of an image */
    const char *what;  /* "raw", "decoded", "image", "shards": these become virtual */
    const char *scope; /* of the rule */
    bool by_age;       /* otherwise by size */
    uint64_t age_s;
    uint64_t limit; /* s or bytes */
    uint64_t bytes;
};
/* Call `each` with what the rules would remove now, if it were not limited per day; `tried` (may be
 * NULL) instead of the rule of its scope. `*paused`: the clock is not settled. Returns the number.
 */
TL_MUST_USE int tl_lake_plan_retention(struct tl_lake *lake, const struct tl_retention_row *tried,
                                       int (*each)(void *context,
                                                   const struct tl_retention_victim *victim),
                                       void *context, bool *paused, struct tl_fail *fail);

#endif
