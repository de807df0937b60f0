/* SPDX-License-Identifier: MIT */
/*
 * Records out of STF bytes. No I/O: bytes are pushed, or pulled through a tl_stf_source.
 *
 * Accepts any order of records, any version, and the v1.3 end mark (descriptor 255, behind which
 * everything is ignored). A record that the end of the bytes cuts is reported with its offset
 * and never returned. A descriptor that STF does not have cannot be skipped: TL_BAD there.
 *
 * Not thread-safe. Memory: one partial record (at most TL_STF_RECORD_MAX), plus what is pushed.
 */
#ifndef TL_STF_READER_H
#define TL_STF_READER_H

#include "stf/header.h"
#include "stf/record_hot.h"

TL_C_BEGIN

/* Where plain STF bytes come from, piece by piece. */
struct tl_stf_source {
    void *context;
    /* The next piece, at least one byte, valid until the next call. TL_EOF behind the last;
     * other errors with their text in `fail`. */
    int (*next)(void *context, struct tl_bytes *out, struct tl_fail *fail);
    /* Position on a piece that begins no later than instruction `insn` (from 0) of the trace:
     * `*first` gets the number of instructions in front of it, `*pc` the first one's address.
     * NULL where it cannot be done; TL_NOTFOUND if the trace is shorter. The next piece must
     * begin with a whole record. */
    int (*seek)(void *context, uint64_t insn, uint64_t *first, uint64_t *pc, struct tl_fail *fail);
};

struct tl_stf_reader;

/* Read bytes that are pushed. TL_NOMEM. */
TL_MUST_USE int tl_stf_reader_new(struct tl_stf_reader **out);
/* Read from `source` (copied). TL_NOMEM. */
TL_MUST_USE int tl_stf_reader_open(struct tl_stf_reader **out, const struct tl_stf_source *source);
void tl_stf_reader_free(struct tl_stf_reader *reader);

/*
 * Give the next bytes, borrowed until tl_stf_reader_next() has returned TL_AGAIN. Call only
 * before the first next() and when it says TL_AGAIN.
 */
void tl_stf_reader_push(struct tl_stf_reader *reader, struct tl_bytes bytes);
/* There are no more bytes. */
void tl_stf_reader_finish(struct tl_stf_reader *reader);

/*
 * The next record, valid until the next call. TL_AGAIN: push more, or finish. TL_EOF: orderly
 * end. TL_BAD: not STF, an unknown descriptor, or a record cut by the end, with its offset in
 * `fail`; the source's errors. An error is final: further calls return it again.
 */
TL_MUST_USE static inline int tl_stf_reader_next(struct tl_stf_reader *reader,
                                                 struct tl_stf_record *record,
                                                 struct tl_fail *fail);

/* The header as far as it has been read. Owned by the reader. */
const struct tl_stf_header *tl_stf_reader_header(const struct tl_stf_reader *reader);

/* What a struct tl_stf_reader begins with, for the usual records to be decoded in line. Private. */
struct tl_stf_reader_front {
    const uint8_t *p;   /* the next record … */
    const uint8_t *hot; /* … which is surely whole if `p` is less */
    uint64_t offset;    /* of the next record in the stream, less the address `p` */
};
int tl_stf_reader_next_any(struct tl_stf_reader *reader, struct tl_stf_record *record,
                           struct tl_fail *fail);

static inline __attribute__((always_inline)) int
tl_stf_reader_next(struct tl_stf_reader *reader, struct tl_stf_record *record, struct tl_fail *fail)
{
    struct tl_stf_reader_front *const front = (struct tl_stf_reader_front *)(void *)reader;
    const uint8_t *const p = front->p;
    if (p < front->hot) {
        const uint32_t size = tl_stf_decode_hot(p, record);
        if (size) {
            record->offset = front->offset + (uint64_t)(uintptr_t)p;
            front->p = p + size;
            return TL_OK;
        }
    }
    /* By a copy, so that the caller's record can stay in registers. */
    struct tl_stf_record any;
    const int result = tl_stf_reader_next_any(reader, &any, fail);
    if (result == TL_OK)
        *record = any;
    return result;
}

/* Follows PCs through records: the rules of "Terminology" (FORCE_PC, *_PC_TARGET). */
struct tl_stf_pc {
    uint64_t next;   /* address of the next instruction */
    uint64_t target; /* where the current group goes */
    bool has_target;
};

/* Take one record; at INST_32 and INST_16 returns that instruction's address, else 0. */
static inline uint64_t tl_stf_pc_add(struct tl_stf_pc *pc, const struct tl_stf_record *record)
{
    switch (record->type) {
    case TL_STF_FORCE_PC:
        pc->next = record->pc;
        return 0;
    case TL_STF_INST_PC_TARGET:
    case TL_STF_EVENT_PC_TARGET:
        pc->target = record->target;
        pc->has_target = true;
        return 0;
    case TL_STF_INST_32:
    case TL_STF_INST_16: {
        const uint64_t at = pc->next;
        pc->next = pc->has_target ? pc->target : at + (record->type == TL_STF_INST_32 ? 4 : 2);
        pc->has_target = false;
        return at;
    }
    default:
        return 0;
    }
}

TL_C_END

#endif
