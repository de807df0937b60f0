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

/* The caller sets the first two; `rest` is borrowed. */
struct tl_stf_group {
    struct tl_bytes rest; /* what is not yet read */
    struct tl_stf_layout layout;
    uint8_t shape; /* of TL_STF_SHAPE_…, 0: any; what callers set is 0 */
};

/*
 * Private to stf/insns.h and stf/operands.h. What is left of a group whose records are, in this
 * order and each there or not, a branch target, up to three registers of 12 bytes, an access with
 * one content, and the closing record: how many registers, and whether there is an access.
 */
enum { TL_STF_SHAPE_REGISTERS = 3, TL_STF_SHAPE_ACCESS = 4, TL_STF_SHAPE_KNOWN = 8 };

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
    group->shape = 0;
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
    group->shape = 0;
    return TL_OK;
}

TL_C_END

#endif
