/* SPDX-License-Identifier: MIT */
/*
 * The call stack behind a stream of flow items: which function runs, called from where.
 *
 * Frames come and go with calls, returns, exceptions and exception returns. A jump into another
 * function is a tail call: its frame takes the caller's place. Trace begins in the middle, has
 * gaps, and programs switch stacks, so a return may lead where no frame waits; then the stack is
 * matched again by return address, else by function, else it begins anew with one ROOT frame.
 *
 * The object is plain data (about 48 KiB): it may be copied to go on from there later. Functions
 * are symbols of the image; code without a symbol is one function without a name.
 * Not thread-safe.
 */
#ifndef TL_FLOW_CALLSTACK_H
#define TL_FLOW_CALLSTACK_H

#include "flow/item.h"

#define TL_CALLSTACK_MAX 1024 /* frames kept; deeper ones are counted only */

enum tl_frame_kind {
    TL_FRAME_ROOT, /* running when tracing began, or found again behind a gap */
    TL_FRAME_CALL,
    TL_FRAME_TAIL, /* entered by a jump; returns where its predecessor would have */
    TL_FRAME_EXCEPTION
};

struct tl_frame {
    uint64_t insn;      /* number of the first instruction in it */
    uint64_t pc;        /* of that instruction */
    uint64_t return_pc; /* CALL, TAIL, EXCEPTION: where it will return to; ROOT: 0 */
    uint32_t function;  /* index of the image's symbol, or TL_NO_FUNCTION */
    uint16_t exception; /* EXCEPTION: its number */
    uint8_t kind;       /* enum tl_frame_kind */
};

enum tl_frame_change { TL_FRAME_PUSH, TL_FRAME_POP };

/*
 * `frame` (borrowed for the call) was pushed to, or popped from, place `depth` (0 = outermost);
 * `insn` is the number of the first instruction executed behind the change, so that a popped
 * frame was there for the instructions frame->insn..insn-1. Pops come innermost first. A result
 * < 0 stops tl_callstack_push(), which returns it.
 */
typedef int tl_frame_sink(void *context, enum tl_frame_change change, const struct tl_frame *frame,
                          uint32_t depth, uint64_t insn);

struct tl_callstack {
    const struct tl_image *image; /* borrowed; may be NULL where no block has a function */
    tl_frame_sink *sink;          /* may be NULL */
    void *context;
    uint64_t insns;     /* executed so far */
    uint64_t next_pc;   /* behind the last block */
    uint32_t depth;     /* frames in `frames` */
    uint32_t deeper;    /* frames beyond them */
    uint32_t function;  /* of the innermost frame */
    uint16_t exception; /* the one pending, if how says so */
    uint8_t how;        /* enum tl_leave: how the last block was left */
    uint64_t exception_pc;
    struct tl_frame frames[TL_CALLSTACK_MAX];
};

/*
 * Begin with no frame; `first_insn` is the number of the next instruction. `image` is the one
 * that the items' blocks are of, NULL if there are none; `sink` is NULL where nobody listens.
 */
void tl_callstack_init(struct tl_callstack *cs, const struct tl_image *image, uint64_t first_insn,
                       tl_frame_sink *sink, void *context);

/* Take the next items. Returns 0 or what the sink returned. */
TL_MUST_USE int tl_callstack_push(struct tl_callstack *cs, const struct tl_item *items, size_t n);

/*
 * tl_callstack_push() of a block in two steps, for who follows very many: the flow arrives at it,
 * being instruction number `insn`, …
 */
TL_MUST_USE int tl_callstack_arrive(struct tl_callstack *cs, const struct tl_block *block,
                                    uint64_t insn);

/* … and it was left behind its last instruction. cs->insns stays as it is. */
static inline void tl_callstack_leave(struct tl_callstack *cs, const struct tl_block *block,
                                      bool taken)
{
    cs->next_pc = block->pc + block->size;
    cs->how = taken ? block->leave : TL_LEAVE_STRAIGHT;
}

#define TL_CALLSTACK_STEPS 64

/*
 * Both for each of steps[0..n) of a path, 1 <= n <= TL_CALLSTACK_STEPS. The sink must not fail.
 * `begins[i]` is the number of step i's first instruction. `turns` has a bit for each step that
 * lies in another function than the step in front of it, or that this one does not lead to straight
 * on or by a jump (of the first: than cs->function, and by cs->how; always if there is no frame):
 * at others no frame changes. `*low` and `*high` are widened by the depths behind each turn.
 */
void tl_callstack_steps(struct tl_callstack *cs, const uintptr_t *steps, uint32_t n, uint64_t turns,
                        const uint64_t *begins, uint32_t *low, uint32_t *high);

/* Pop all frames: the end of the stream. Returns as push. */
TL_MUST_USE int tl_callstack_finish(struct tl_callstack *cs);

/* Frames there are now. */
static inline uint32_t tl_callstack_depth(const struct tl_callstack *cs)
{
    return cs->depth + cs->deeper;
}

#endif
