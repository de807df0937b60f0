/* SPDX-License-Identifier: MIT */
/*
 * The marks of a generation (decoding/marks.h), for regenerating shards.
 */
#ifndef TL_VIRTUAL_FIND_MARKS_H
#define TL_VIRTUAL_FIND_MARKS_H

#include "base/buf.h"
#include "base/err.h"

#include <stdbool.h>

struct tl_gen;

/* Were the shards of a generation decoded by an earlier run made by this program with these
 * options? Then they can be regenerated quickly. */
bool tl_marks_are_ours(struct tl_gen *gen);
/* Have its trace decoded again by this program, once, in the background. TL_NOTFOUND, TL_BAD: not
 * so, since an image that it was decoded with is missing or damaged now, which `fail` says. */
TL_MUST_USE int tl_gen_renew(struct tl_gen *gen, struct tl_fail *fail);

/* Iterates over the marks at or before a raw offset, from the last one backwards. */
struct tl_marks {
    struct tl_gen *gen;
    uint64_t offset; /* upper bound */
    bool in_list;    /* `list` is the stored list that begins at `first` */
    uint64_t first;
    struct tl_buf list;
    size_t end;          /* the marks in this many bytes of `list` are left */
    struct tl_buf bytes; /* the mark returned by tl_marks_next(): a checkpoint */
};

/* Begin. Call tl_marks_fini() in any case. TL_IO, TL_NOMEM. */
TL_MUST_USE int tl_marks_begin(struct tl_marks *marks, struct tl_gen *gen, uint64_t offset,
                               struct tl_fail *fail);
/* Go to the previous mark; damaged lists are skipped. TL_EOF, TL_NOMEM. */
TL_MUST_USE int tl_marks_next(struct tl_marks *marks);
void tl_marks_fini(struct tl_marks *marks);

#endif
