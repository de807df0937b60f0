/* SPDX-License-Identifier: MIT */
/*
 * Traces from one store to another: a folder's lake into a cluster, or back. The store that is read
 * may be in use by a server; so may one that is written, where servers can share it.
 *
 * A trace is copied whole when it is complete and decoded, or has failed: raw bytes, packed or
 * not, shards and marks of the generation that serves, its row, streams, labels, notes and the
 * images that it names. It is there, for a server, once all of it is. What an earlier run left is
 * compared byte for byte and gone on with, so a copy that was killed is begun again by the same
 * call, and a later run copies what has come since. Nothing that is there is replaced.
 */
#ifndef TL_LAKE_COPY_H
#define TL_LAKE_COPY_H

#include "base/err.h"

#include <stddef.h>
#include <stdint.h>

enum tl_copy_outcome {
    TL_COPY_DONE,    /* all of it is there now */
    TL_COPY_THERE,   /* and was before */
    TL_COPY_BUSY,    /* not copied: it is being pushed or decoded; a later run copies it */
    TL_COPY_OTHER,   /* not copied: another trace, or another decoding, has its name there */
    TL_COPY_DAMAGED, /* copied as it is: its raw bytes are not those that their hash is of */
    TL_COPY_MISSING  /* there is no such trace */
};

struct tl_copy_request {
    const char *from, *to; /* folders, or rados:… */
    const char *const *traces;
    size_t n_traces; /* 0: all of them, with all images and the rules of retention */
    /* What became of each trace, and of how many bytes that it has. May be NULL. */
    void (*tell)(void *context, const char *trace, enum tl_copy_outcome outcome, uint64_t bytes);
    /* How much of the trace in hand is there; a result < 0 ends the copy and is returned. May be
     * NULL. */
    int (*progress)(void *context, const char *trace, uint64_t done, uint64_t total);
    void *context;
};

/*
 * TL_OK: all that could be copied is there. TL_USAGE: both are the same store; TL_NOTFOUND: there
 * is no lake at `from`; TL_DENIED: a server works with `to`, which cannot be shared; TL_IO,
 * TL_NOSPACE, TL_UNREACHABLE, TL_UNSUPPORTED.
 */
TL_MUST_USE int tl_lake_copy(const struct tl_copy_request *request, struct tl_fail *fail);

#endif
