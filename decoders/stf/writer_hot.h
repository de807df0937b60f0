/* SPDX-License-Identifier: MIT */
/*
 * The records that a trace mostly consists of, checked and written in line, where they are surely
 * in order: descriptors that do not decrease, INST_MEM_CONTENT behind INST_MEM_ACCESS. All else is
 * left to tl_stf_writer_put_any(). Private to the library.
 */
#ifndef TL_STF_WRITER_HOT_H
#define TL_STF_WRITER_HOT_H

#include "stf/record_hot.h"
#include "stf/writer.h"

/* Any record, anywhere; as tl_stf_writer_put(). */
TL_MUST_USE int tl_stf_writer_put_any(struct tl_stf_writer *writer,
                                      const struct tl_stf_record *record, struct tl_fail *fail);

/* May a record of this type stand here without looking closer? In one branch. */
static inline bool tl_stf_writer_in_order(const struct tl_stf_writer *writer, uint8_t type)
{
    const struct tl_stf_order *const order = &writer->order;
    /* An access, of the core (60) or of a bus master (62), wants its content. */
    const bool pair =
        ((order->prev | 2) == TL_STF_BUS_MASTER_ACCESS) == (type == TL_STF_INST_MEM_CONTENT);
    return writer->unchecked | (pair & (type >= order->prev));
}

/*
 * False if it is not such a record, or not such a place; nothing is written then. Always inlined:
 * a call for each record would cost as much as the writing.
 */
static inline __attribute__((always_inline)) bool
tl_stf_writer_put_hot(struct tl_stf_writer *writer, const struct tl_stf_record *record)
{
    struct tl_buf *const out = &writer->out;
    const uint8_t type = record->type;
    if (!writer->hot || out->cap - out->n < TL_STF_HOT_ROOM ||
        !tl_stf_writer_in_order(writer, type))
        return false;
    const int size = tl_stf_encode_hot(record, out->p + out->n);
    if (size <= 0)
        return false;
    out->n += (size_t)size;
    writer->records++;
    struct tl_stf_pc *const pc = &writer->pc;
    if (type >= TL_STF_INST_32) {
        pc->next = pc->has_target ? pc->target : pc->next + (uint32_t)size - 1;
        pc->has_target = false;
        writer->markers++;
        writer->order.prev = writer->order.last = 0;
        writer->order.event = false;
        return true;
    }
    if (type == TL_STF_INST_PC_TARGET) {
        pc->target = record->target;
        pc->has_target = true;
    }
    writer->order.last = writer->order.prev;
    writer->order.prev = type;
    return true;
}

#endif
