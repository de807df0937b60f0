/* SPDX-License-Identifier: MIT */
/*
 * Reads the file in which a just-in-time compiler records its code for perf (jit-PID.dump): each
 * function's bytes, and where and when it was placed in memory. Also works while the file grows.
 * Pure functions; thread-safe.
 *
 * Source: tools/perf/Documentation/jitdump-specification.txt.
 */
#ifndef TL_IMPORT_JITDUMP_H
#define TL_IMPORT_JITDUMP_H

#include "base/bytes.h"
#include "base/err.h"

#include <stdbool.h>

/* Code placed in memory. */
struct tl_jit_code {
    int32_t pid, tid;
    uint64_t time; /* see tl_jitdump_read() */
    uint64_t address, length;
    uint64_t offset;  /* of its bytes in the file */
    const char *name; /* of the function; borrowed */
};

/* Is this the name of such a file, in any folder? */
bool tl_jitdump_is(const char *path);

/*
 * Report all complete code records from byte `*at` of the file on (0 at first), and advance `*at`
 * past them. `in`: the whole file. `*in_ticks`: times are processor ticks instead of ns of the
 * system's clock. Returns TL_BAD: not such a file, of an unsupported version, or damaged at `*at`
 * (earlier records have been reported); or what `take` returned.
 */
TL_MUST_USE int tl_jitdump_read(struct tl_bytes in, uint64_t *at, bool *in_ticks,
                                int (*take)(void *context, const struct tl_jit_code *code),
                                void *context);

#endif
