/* SPDX-License-Identifier: MIT */
/*
 * Copies traces from one store to another: from a folder to a cluster, or back. The source may be
 * in use by a server; so may the destination, if servers can share it.
 *
 * A trace is copied whole once it is complete and decoded, or has failed: raw bytes, packed or not,
 * shards and marks of the serving generation, its row, streams, labels, notes and the images that
 * it names. A server sees it only when all of it is there. Data left by an earlier run is compared
 * byte for byte and completed, so an interrupted copy is resumed by the same call, and a later run
 * copies what was added since. Existing data is never replaced.
 */
#ifndef TL_LAKE_COPY_H
#define TL_LAKE_COPY_H

#include "base/err.h"

#include <stddef.h>
#include <stdint.h>

enum tl_copy_outcome {
    TL_COPY_DONE,    /* copied completely */
    TL_COPY_THERE,   /* was already there */
    TL_COPY_BUSY,    /* not copied: it is being pushed or decoded; a later run copies it */
    TL_COPY_OTHER,   /* not copied: its name is taken there by another trace or another decoding */
    TL_COPY_DAMAGED, /* copied as it is: its raw bytes do not match their hash */
    TL_COPY_MISSING  /* no such trace */
};

struct tl_copy_request {
    const char *from, *to; /* folders, or rados:… */
    const char *const *traces;
    size_t n_traces; /* 0: all traces, with all images and retention rules */
    /* Receives the result for each trace, with its size in bytes. May be NULL. */
    void (*report)(void *context, const char *trace, enum tl_copy_outcome outcome, uint64_t bytes);
    /* Receives the progress of the current trace; a result < 0 ends the copy and is returned. May
     * be NULL. */
    int (*progress)(void *context, const char *trace, uint64_t done, uint64_t total);
    void *context;
};

/*
 * Copy. TL_OK: everything that could be copied is there. TL_USAGE: both are the same store;
 * TL_NOTFOUND: there is no lake at `from`; TL_DENIED: a server uses `to`, which cannot be shared;
 * TL_IO, TL_NOSPACE, TL_UNREACHABLE, TL_UNSUPPORTED.
 */
TL_MUST_USE int tl_lake_copy(const struct tl_copy_request *request, struct tl_fail *fail);

#endif
