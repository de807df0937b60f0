/* SPDX-License-Identifier: MIT */
/*
 * Reads records from STF bytes. No I/O: bytes are pushed, or pulled through a tl_stf_source.
 *
 * Accepts records in any order, of any version, and the v1.3 end mark (descriptor 255, after which
 * everything is ignored). A record truncated by the end of input is reported with its offset and
 * never returned. An unknown descriptor cannot be skipped: it gives TL_BAD.
 *
 * Not thread-safe. Memory: one partial record (at most TL_STF_RECORD_MAX), plus what is pushed.
 */
#ifndef TL_STF_READER_H
#define TL_STF_READER_H

#include "stf/header.h"
#include "stf/record_hot.h"

TL_C_BEGIN

/* A source of plain STF bytes, in pieces. */
struct tl_stf_source {
    void *context;
    /* Get the next piece, at least one byte, valid until the next call. Returns TL_EOF after the
     * last one; other errors with their text in `fail`. */
    int (*next)(void *context, struct tl_bytes *out, struct tl_fail *fail);
    /*
     * Seek to a piece that begins no later than instruction `insn` (from 0) of the trace: sets
     * `*first` to the number of instructions before the piece, `*pc` to the address of its first
     * instruction. The piece begins with a complete record. Returns TL_NOTFOUND if the trace is
     * shorter. NULL: seeking is not supported.
     */
    int (*seek)(void *context, uint64_t insn, uint64_t *first, uint64_t *pc, struct tl_fail *fail);
};

struct tl_stf_reader;

/* Create a reader for pushed bytes. Returns TL_NOMEM. */
TL_MUST_USE int tl_stf_reader_new(struct tl_stf_reader **out);
/* Create a reader for `source` (copied). Returns TL_NOMEM. */
TL_MUST_USE int tl_stf_reader_open(struct tl_stf_reader **out, const struct tl_stf_source *source);
void tl_stf_reader_free(struct tl_stf_reader *reader);

/*
 * Supply the next bytes, borrowed until tl_stf_reader_next() returns TL_AGAIN. Call only before the
 * first tl_stf_reader_next() and when it returns TL_AGAIN.
 */
void tl_stf_reader_push(struct tl_stf_reader *reader, struct tl_bytes bytes);
/* End of input. */
void tl_stf_reader_finish(struct tl_stf_reader *reader);

/*
 * Get the next record, valid until the next call. Returns TL_AGAIN: push more, or finish; TL_EOF:
 * regular end; TL_BAD: not STF, an unknown descriptor, or a truncated record, with its offset in
 * `fail`; the source's errors. Errors are final: further calls return the same.
 */
TL_MUST_USE static inline int tl_stf_reader_next(struct tl_stf_reader *reader,
                                                 struct tl_stf_record *record,
                                                 struct tl_fail *fail);

/* The header as read so far. Owned by the reader. */
const struct tl_stf_header *tl_stf_reader_header(const struct tl_stf_reader *reader);

/* Common initial part of struct tl_stf_reader, for inline decoding of frequent records. Private. */
struct tl_stf_reader_front {
    const uint8_t *p;   /* the next record */
    const uint8_t *hot; /* if p < hot, a record at `p` that can be decoded inline is complete */
    uint64_t offset;    /* stream offset of the next record, minus the address `p` */
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
    /* A copy allows the caller's record to stay in registers. */
    struct tl_stf_record any;
    const int result = tl_stf_reader_next_any(reader, &any, fail);
    if (result == TL_OK)
        *record = any;
    return result;
}

/* Tracks PCs through records: the rules of "Terminology" (FORCE_PC, *_PC_TARGET). */
struct tl_stf_pc {
    uint64_t next;   /* address of the next instruction */
    uint64_t target; /* target of the current group */
    bool has_target;
};

/* Process one record. Returns the instruction's address for INST_32 and INST_16, else 0. */
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
