/* SPDX-License-Identifier: MIT */
/*
 * Records in memory, one after another: those of a group (an instruction or transaction with all
 * that is told of it), of several groups, or of a header. The only way to go through records that
 * are not read from a file (stf/reader.h).
 *
 * Header only; not thread-safe.
 */
#ifndef TL_STF_GROUP_H
#define TL_STF_GROUP_H

#include "stf/record.h"

TL_C_BEGIN

/* The caller sets both; `rest` is borrowed. */
struct tl_stf_group {
    struct tl_bytes rest; /* what is not yet read */
    struct tl_stf_layout layout;
};

/*
 * The next record, whose bytes are the record->size in front of `rest` then. TL_EOF: there are no
 * more; TL_AGAIN: it is cut; TL_BAD, TL_LIMIT as tl_stf_record_decode().
 */
static inline int tl_stf_group_next(struct tl_stf_group *group, struct tl_stf_record *record)
{
    if (group->rest.n == 0)
        return TL_EOF;
    const int size = tl_stf_record_decode(&group->layout, group->rest, record);
    if (size < 0)
        return size;
    group->rest.p += size;
    group->rest.n -= (size_t)size;
    return TL_OK;
}

/* The same for who needs only the record's bytes, the first of which is its type. */
static inline int tl_stf_group_skip(struct tl_stf_group *group, struct tl_bytes *record)
{
    if (group->rest.n == 0)
        return TL_EOF;
    const int size = tl_stf_record_size(&group->layout, group->rest);
    if (size < 0 || (size_t)size > group->rest.n)
        return size < 0 ? size : TL_AGAIN;
    record->p = group->rest.p;
    record->n = (size_t)size;
    group->rest.p += size;
    group->rest.n -= (size_t)size;
    return TL_OK;
}

TL_C_END

#endif
