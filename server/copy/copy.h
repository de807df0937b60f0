/* SPDX-License-Identifier: MIT */
/* Shared by the parts of a copy between stores: lake_copy.h. */
#ifndef TL_COPY_COPY_H
#define TL_COPY_COPY_H

#include "catalog/catalog.h"
#include "lake_copy.h"

/* Set the message if a callback ran out of memory. Returns `r`. */
static inline int tl_copy_nomem(int r, struct tl_fail *fail)
{
    return r == TL_NOMEM ? tl_fail_set(fail, TL_NOMEM, "no memory") : r;
}

/* Batches of objects and logs being copied; zero-initialise the other members. */
struct tl_copier {
    struct tl_backend *from, *to;
    /* Receives the number of bytes copied so far; a result < 0 ends the copy. May be NULL. */
    int (*moved)(void *context, uint64_t bytes);
    void *context;
    struct tl_buf keys;  /* keys of the batch, NUL-terminated, concatenated */
    struct tl_buf bytes; /* contents of the batch */
    struct tl_object *objects;
    size_t *sizes;
    size_t n, cap_objects, cap_sizes;
};

/*
 * Copy the object or log with this key, unless an identical one exists. Objects may be delayed
 * until tl_copier_flush(). Each is read back and compared: TL_IO if the store returns something
 * else. TL_NOTFOUND: `from` has no such key.
 */
TL_MUST_USE int tl_copier_add(struct tl_copier *copier, const char *key, uint64_t size,
                              struct tl_fail *fail);
TL_MUST_USE int tl_copier_flush(struct tl_copier *copier, struct tl_fail *fail);
void tl_copier_fini(struct tl_copier *copier);

struct tl_copied_rows {
    struct tl_catalog *source, *target;
};
/* Message of a trace whose rows are not completely copied yet. */
extern const char tl_copy_unfinished[];
/*
 * Copy a trace's row, and the streams, shards, labels and notes of the serving generation. Until
 * all are copied the row is that of a failed trace with the message above; a single update then
 * replaces it. Such a trace is copied again from the beginning. TL_AGAIN: the source changed
 * meanwhile.
 */
TL_MUST_USE int tl_copy_rows(const struct tl_copied_rows *rows, const struct tl_catalog_trace *row,
                             struct tl_fail *fail);

/* tl_lake_copy() between stores that are already open. */
TL_MUST_USE int tl_lake_copy_between(struct tl_backend *from, struct tl_backend *to,
                                     const struct tl_copy_request *request, struct tl_fail *fail);

#endif
