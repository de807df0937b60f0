/* SPDX-License-Identifier: MIT */
/*
 * Iterates over records in memory: those of a group (an instruction or transaction with everything
 * reported about it), of several groups, or of a header. The only way to iterate over records that
 * are not read from a file (stf/reader.h).
 *
 * Header only; not thread-safe.
 */
#ifndef TL_STF_GROUP_H
#define TL_STF_GROUP_H

#include "stf/record.h"

TL_C_BEGIN

/* The caller sets the first two members; `rest` is borrowed. */
struct tl_stf_group {
    struct tl_bytes rest; /* records not read yet */
    struct tl_stf_layout layout;
    uint8_t shape; /* TL_STF_SHAPE_… bits, 0: any; callers set 0 */
};

/*
 * Private to stf/insns.h and stf/operands.h. Shape of the rest of a group that consists of these
 * optional records in this order: a branch target, up to three registers of 12 bytes, an access
 * with one content, the closing record. Contains the number of registers and whether there is an
 * access.
 */
enum { TL_STF_SHAPE_REGISTERS = 3, TL_STF_SHAPE_ACCESS = 4, TL_STF_SHAPE_KNOWN = 8 };

/*
 * Decode the next record; its bytes are the record->size bytes before `rest` afterwards. Returns
 * TL_EOF: no more records; TL_AGAIN: truncated; TL_BAD, TL_LIMIT as tl_stf_record_decode().
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
    group->shape = 0;
    return TL_OK;
}

/* Skip the next record and return its bytes, the first of which is its type. */
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
    group->shape = 0;
    return TL_OK;
}

TL_C_END

#endif
