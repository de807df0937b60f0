/* SPDX-License-Identifier: MIT */
/*
 * What a compiler at run time wrote of the code that it made (jit-PID.dump), for perf: each
 * function's bytes, and where and when it began to lie there. It is looked at while it grows, too.
 * Pure functions; thread-safe.
 *
 * Source: tools/perf/Documentation/jitdump-specification.txt.
 */
#ifndef TL_IMPORT_JITDUMP_H
#define TL_IMPORT_JITDUMP_H

#include "base/bytes.h"
#include "base/err.h"

#include <stdbool.h>

/* Code began to lie in memory. */
struct tl_jit_code {
    int32_t pid, tid;
    uint64_t time; /* see tl_jitdump_read() */
    uint64_t address, length;
    uint64_t offset;  /* of its bytes in the file */
    const char *name; /* of the function; borrowed */
};

/* Is this what such a file is called, wherever it lies? */
bool tl_jitdump_is(const char *path);

/*
 * Tell all code whose records are whole, from byte `*at` of the file on, which is 0 at first; what
 * was read is behind it then. `in`: all of the file. *in_ticks: times are the processor's ticks,
 * and not ns of the system's clock. TL_BAD: it is no such file, or none of this program's version,
 * or damaged at
 * `*at`; what was in front was told. Else what `take` returned.
 */
TL_MUST_USE int tl_jitdump_read(struct tl_bytes in, uint64_t *at, bool *in_ticks,
                                int (*take)(void *context, const struct tl_jit_code *code),
                                void *context);

#endif
