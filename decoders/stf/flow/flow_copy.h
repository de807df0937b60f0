/* SPDX-License-Identifier: MIT */
/*
 * Copies whole blocks to STF records: the per-block work, in as few machine instructions as
 * possible. Private to the library. Pure, thread-safe.
 */
#ifndef TL_STF_FLOW_COPY_H
#define TL_STF_FLOW_COPY_H

#include "base/bytes.h"
#include "flow/item.h"
#include "stf/record.h"

#include <stdbool.h>

#define TL_COPY_INLINE inline __attribute__((always_inline))

/* State of copying. */
struct tl_stf_cursor {
    uint8_t *p; /* where to write the next record */
    /* The last instruction of the block copied last, not written yet. */
    const uint8_t *tail;
    uint32_t tail_n;
    bool taken;
    bool odd;      /* it needs an INST_PC_TARGET even if not taken */
    uint64_t next; /* the address after it */
};

/* Does the flow continue at `b`, and can `b` be copied? Without short-circuit evaluation, since
 * traced branches are unpredictable. */
static TL_COPY_INLINE bool tl_stf_copy_leads(const struct tl_stf_cursor *at,
                                             const struct tl_block *b, uint8_t isa)
{
    return (at->taken | (b->pc == at->next)) & (b->plain == isa);
}

/* All but the last instruction of `b`, at `pc`, was written, which begins at `tail` in b->coded.
 * `odds`: odd instructions may occur. */
static TL_COPY_INLINE void tl_stf_copy_tail(struct tl_stf_cursor *at, const struct tl_block *b,
                                            uint64_t pc, const uint8_t *tail, bool taken, bool odds)
{
    const uint32_t target = odds ? TL_STF_TARGET_BYTES * (unsigned)b->odd : 0;
    at->tail = tail + target;
    at->tail_n = b->last_coded - target;
    at->taken = taken;
    if (odds)
        at->odd = b->odd;
    at->next = pc + b->size;
}

/*
 * Copy one step, the innermost operation: an INST_PC_TARGET if the last branch was taken or is odd,
 * its instruction, and all but the last instruction of `b`.
 */
static TL_COPY_INLINE void tl_stf_copy_step(struct tl_stf_cursor *at, const struct tl_block *b,
                                            bool taken, bool odds)
{
    enum { EVEN_TAIL = 8 }; /* at least the bytes of INST_32 */
    /* Read once: the compiler must assume that the writes below alias it. */
    const uint64_t pc = b->pc;
    uint8_t *p = at->p;
    p[0] = TL_STF_INST_PC_TARGET;
    tl_put_le64(p + 1, pc);
    p += TL_STF_TARGET_BYTES * (unsigned)(odds ? at->taken | at->odd : at->taken);
    memcpy(p, at->tail, odds ? TL_BLOCK_TAIL : EVEN_TAIL);
    p += at->tail_n;
    const uint8_t *const stf = b->coded;
    const uint32_t head = b->coded_size - b->last_coded;
    /* Most blocks need one piece: a well-predicted branch costs less than copying a variable number
     * of bytes. */
    memcpy(p, stf, TL_BLOCK_SLACK);
    for (uint32_t i = TL_BLOCK_SLACK; i < head; i += TL_BLOCK_SLACK)
        memcpy(p + i, stf + i, TL_BLOCK_SLACK);
    at->p = p + head;
    tl_stf_copy_tail(at, b, pc, stf + head, taken, odds);
}

/*
 * Copy the steps of a path from `step` on, while each continues the previous one and is in `isa`;
 * there is space for all up to `end`. Returns the first step that was not copied.
 */
const uintptr_t *tl_stf_copy_path(struct tl_stf_cursor *at, const uintptr_t *step,
                                  const uintptr_t *end, uint8_t isa);

#endif
