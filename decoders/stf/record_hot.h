/* SPDX-License-Identifier: MIT */
/* The records that make up most of a trace, encoded in line. Private to the library. */
#ifndef TL_STF_RECORD_HOT_H
#define TL_STF_RECORD_HOT_H

#include "stf/record.h"

#define TL_STF_HOT_ROOM 32 /* bytes that must be free at `p` */

/* Encode at `p`: bytes written, TL_USAGE, or 0 if it is not one of these records. */
static inline int tl_stf_encode_hot(const struct tl_stf_record *record, uint8_t *p)
{
    p[0] = record->type;
    switch (record->type) {
    case TL_STF_INST_32:
        tl_put_le32(p + 1, record->opcode);
        return 5;
    case TL_STF_INST_16:
        tl_put_le16(p + 1, (uint16_t)record->opcode);
        return record->opcode > UINT16_MAX ? TL_USAGE : 3;
    case TL_STF_INST_PC_TARGET:
        tl_put_le64(p + 1, record->target);
        return 9;
    case TL_STF_INST_MEM_ACCESS:
        tl_put_le64(p + 1, record->access.address);
        tl_put_le16(p + 9, record->access.size);
        tl_put_le16(p + 11, record->access.attr);
        p[13] = record->access.type;
        return 14;
    case TL_STF_INST_MEM_CONTENT:
        tl_put_le64(p + 1, record->data);
        return 9;
    default:
        return 0;
    }
}

#endif
