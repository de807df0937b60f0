/* SPDX-License-Identifier: MIT */
/* What the parts of a copy between stores share: lake_copy.h. */
#ifndef TL_LAKE_COPY_PARTS_H
#define TL_LAKE_COPY_PARTS_H

#include "lake_copy.h"
#include "store/catalog.h"

/* Says so where a callback ran out of memory. Returns `r`. */
static inline int tl_copy_nomem(int r, struct tl_fail *fail)
{
    return r == TL_NOMEM ? tl_fail_set(fail, TL_NOMEM, "no memory") : r;
}

/* Objects and logs on their way; zero-initialise the rest. */
struct tl_copier {
    struct tl_backend *from, *to;
    /* How many bytes are there now; a result < 0 ends it. May be NULL. */
    int (*moved)(void *context, uint64_t bytes);
    void *context;
    struct tl_buf keys;  /* of the batch: NUL-ended, one behind another */
    struct tl_buf bytes; /* … and theirs */
    struct tl_object *objects;
    size_t *sizes;
    size_t n, cap_objects, cap_sizes;
};

/*
 * Copy what has this key, unless the same is there. Objects may wait until tl_copier_flush().
 * Behind that each was read back and compared: TL_IO where the store does not have it as it was
 * given. TL_NOTFOUND: `from` has no such key.
 */
TL_MUST_USE int tl_copier_add(struct tl_copier *copier, const char *key, uint64_t size,
                              struct tl_fail *fail);
TL_MUST_USE int tl_copier_flush(struct tl_copier *copier, struct tl_fail *fail);
void tl_copier_fini(struct tl_copier *copier);

struct tl_copied_rows {
    struct tl_catalog *source, *target;
};
/* The message of a trace of which not all rows are there yet. */
extern const char tl_copy_unfinished[];
/*
 * Copy a trace's row, and the streams, shards, labels and notes of the generation that serves.
 * Until all are there the row is that of a failed trace with the message above; one update then
 * makes it what it is. Such a trace is begun anew. TL_AGAIN: what is read has changed meanwhile.
 */
TL_MUST_USE int tl_copy_rows(const struct tl_copied_rows *rows, const struct tl_catalog_trace *row,
                             struct tl_fail *fail);

/* tl_lake_copy() over stores that are open. */
TL_MUST_USE int tl_lake_copy_between(struct tl_backend *from, struct tl_backend *to,
                                     const struct tl_copy_request *request, struct tl_fail *fail);

#endif
