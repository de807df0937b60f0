/* SPDX-License-Identifier: MIT */
/* Marks of a generation (remake.h) for who makes shards from them. */
#ifndef TL_INGEST_MARKS_H
#define TL_INGEST_MARKS_H

#include "base/buf.h"
#include "base/err.h"

#include <stdbool.h>

struct tl_gen;

/* Marks in front of some raw offset, from the last one on backwards. */
struct tl_marks {
    struct tl_gen *gen;
    uint64_t offset; /* only those at it, or in front of it */
    bool in_list;    /* `list` is the stored list that begins at `first` */
    uint64_t first;
    struct tl_buf list;
    size_t end;          /* … of which the marks in so many bytes are left */
    struct tl_buf bytes; /* of the mark that tl_marks_next() gave: a checkpoint */
};

/* TL_IO, TL_NOMEM. Ended by tl_marks_fini() in any case. */
TL_MUST_USE int tl_marks_begin(struct tl_marks *marks, struct tl_gen *gen, uint64_t offset,
                               struct tl_fail *fail);
/* The next one, further in front; damaged lists are passed over. TL_EOF, TL_NOMEM. */
TL_MUST_USE int tl_marks_next(struct tl_marks *marks);
void tl_marks_fini(struct tl_marks *marks);

#endif
