/* SPDX-License-Identifier: MIT */
/*
 * Whole blocks to STF records: what is done for each block, and so made of as few instructions as
 * can be. Private to the library. Pure, thread-safe.
 */
#ifndef TL_STF_FLOW_COPY_H
#define TL_STF_FLOW_COPY_H

#include "base/bytes.h"
#include "flow/item.h"
#include "simd/cpu.h"
#include "stf/flow_mark.h"
#include "stf/record.h"

#include <stdbool.h>

#define TL_COPY_INLINE inline __attribute__((always_inline))

/* Where copying stands. */
struct tl_stf_cursor {
    uint8_t *p; /* where the next record goes */
    /* The last instruction of the block that was copied. */
    const uint8_t *tail;
    uint32_t tail_n;
    bool taken;
    bool odd;                 /* an INST_PC_TARGET belongs to it, taken or not */
    uint64_t next;            /* the address behind it */
    struct tl_stf_mark *mark; /* where the next one goes; NULL: there are none */
};

/* Copy TL_BLOCK_SLACK bytes, as far as both have them. */
typedef void tl_stf_copy_piece(uint8_t *out, const uint8_t *in);

/* Does the flow lead to `b`, and can it be copied? Without short cuts: whether a branch was taken
 * nobody can predict. */
static TL_COPY_INLINE bool tl_stf_copy_leads(const struct tl_stf_cursor *at,
                                             const struct tl_block *b, uint8_t isa)
{
    return (at->taken | (b->pc == at->next)) & (b->plain == isa);
}

/*
 * The step that everything else is there for: an INST_PC_TARGET if the last branch was taken or is
 * odd, its instruction, and all but the last instruction of `b`. `begin`: of the records. `odds`:
 * there may be odd ones.
 */
static TL_COPY_INLINE void tl_stf_copy_step(struct tl_stf_cursor *at, const struct tl_block *b,
                                            bool taken, const uint8_t *begin, bool odds, bool marks,
                                            tl_stf_copy_piece *piece)
{
    enum { EVEN_TAIL = 8 }; /* bytes of INST_32, and more */
    /* Read once: what is written might be anything, as far as the compiler knows. */
    const uint64_t pc = b->pc;
    uint8_t *p = at->p;
    if (marks)
        *at->mark++ = tl_stf_mark((uint32_t)(p - begin), at->next, pc);
    p[0] = TL_STF_INST_PC_TARGET;
    tl_put_le64(p + 1, pc);
    p += TL_STF_TARGET_BYTES * (unsigned)(odds ? at->taken | at->odd : at->taken);
    memcpy(p, at->tail, odds ? TL_BLOCK_TAIL : EVEN_TAIL);
    p += at->tail_n;
    const uint8_t *const stf = b->coded;
    const uint32_t head = b->coded_size - b->last_coded;
    const uint32_t target = odds ? TL_STF_TARGET_BYTES * (unsigned)b->odd : 0;
    /* Most blocks need one piece: a branch that is nearly always the same way costs less than one
     * byte too many. */
    piece(p, stf);
    for (uint32_t i = TL_BLOCK_SLACK; i < head; i += TL_BLOCK_SLACK)
        piece(p + i, stf + i);
    at->p = p + head;
    at->tail = stf + head + target;
    at->tail_n = b->last_coded - target;
    at->taken = taken;
    if (odds)
        at->odd = b->odd;
    at->next = pc + b->size;
}

static TL_COPY_INLINE void tl_stf_copy_portable(uint8_t *out, const uint8_t *in)
{
    memcpy(out, in, TL_BLOCK_SLACK);
}

/*
 * Copy the steps of a path from `step` on, as far as each leads to the next, of `isa`; for all up
 * to `end` there is room. Returns the first that is not copied.
 */
typedef const uintptr_t *tl_stf_copy_path(struct tl_stf_cursor *at, const uintptr_t *step,
                                          const uintptr_t *end, const uint8_t *begin, uint8_t isa);

/* The best variant for `level`; all give the same result. Never NULL. */
tl_stf_copy_path *tl_stf_copy_variant(enum tl_cpu level);

#endif
