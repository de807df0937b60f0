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

#define TL_CALLSTACK_MAX    1024 /* frames kept; deeper ones are counted only */
#define TL_CALLSTACK_SEARCH 64   /* looked through where no return matches the innermost one */

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
 * The same of a block in two steps: the flow arrives at it, being instruction number `insn`; it
 * was left behind its last instruction.
 */
TL_MUST_USE int tl_callstack_arrive(struct tl_callstack *cs, const struct tl_block *block,
                                    uint64_t insn);
void tl_callstack_leave(struct tl_callstack *cs, const struct tl_block *block, bool taken,
                        uint64_t insn);

/* Pop all frames: the end of the stream. Returns as push. */
TL_MUST_USE int tl_callstack_finish(struct tl_callstack *cs);

/* Frames there are now, and the innermost one (NULL: none). */
static inline uint32_t tl_callstack_depth(const struct tl_callstack *cs)
{
    return cs->depth + cs->deeper;
}

static inline const struct tl_frame *tl_callstack_top(const struct tl_callstack *cs)
{
    return cs->depth ? &cs->frames[cs->depth - 1] : NULL;
}

/* ---- many blocks ------------------------------------------------------------------------- */

/*
 * For who follows very many blocks and has no use for a sink: copies, where a compiler can keep
 * them. Only while cs->deeper is 0 and cs->depth is not.
 */
struct tl_callstack_top {
    struct tl_frame *end;        /* behind the innermost frame */
    struct tl_frame *low, *high; /* where that was at least, and at most */
    struct tl_frame *first, *most;
};

static inline struct tl_callstack_top tl_callstack_take(struct tl_callstack *cs)
{
    struct tl_frame *const end = cs->frames + cs->depth;
    return (struct tl_callstack_top){.end = end,
                                     .low = end,
                                     .high = end,
                                     .first = cs->frames,
                                     .most = cs->frames + TL_CALLSTACK_MAX};
}

static inline void tl_callstack_give(struct tl_callstack *cs, const struct tl_callstack_top *top)
{
    cs->depth = (uint32_t)(top->end - top->first);
    cs->function = top->end[-1].function;
}

/* Does its last instruction, where it is taken, jump, call or return? */
static inline bool tl_callstack_known(const struct tl_block *from)
{
    return from->left - 1u - TL_LEAVE_JUMP <= TL_LEAVE_RETURN - TL_LEAVE_JUMP;
}

/*
 * Calls, their returns, and jumps. False: it is none of these, and nothing was done;
 * tl_callstack_leave() and tl_callstack_arrive() do it. The flow arrives at `block`, being
 * instruction number `insn` + `more`, from the last instruction of `from`.
 */
static inline __attribute__((always_inline)) bool
tl_callstack_follow(struct tl_callstack_top *top, const struct tl_block *from, bool taken,
                    const struct tl_block *block, uint64_t insn, uint64_t more)
{
    struct tl_frame *const end = top->end;
    const unsigned turned = from->left & -(unsigned)taken;
    if (turned == 1 + TL_LEAVE_CALL) {
        if (end == top->most)
            return false;
        end->insn = insn + more;
        end->pc = block->pc;
        end->return_pc = from->pc + from->size;
        end->function = block->function;
        end->exception = 0;
        end->kind = TL_FRAME_CALL;
        top->end = end + 1;
        top->high = top->end > top->high ? top->end : top->high;
    } else if (turned == 1 + TL_LEAVE_RETURN) {
        /* The innermost frame is no ROOT if there is another one. */
        if (end - 1 == top->first || end[-1].return_pc != block->pc ||
            end[-2].function != block->function)
            return false;
        top->end = end - 1;
        top->low = top->end < top->low ? top->end : top->low;
    } else if (!tl_callstack_known(from) ||
               (turned == 1 + TL_LEAVE_INDIRECT && end[-1].return_pc == block->pc)) {
        return false;
    } else if (end[-1].function != block->function) {
        end[-1].insn = insn + more;
        end[-1].pc = block->pc;
        end[-1].function = block->function;
        if (end[-1].kind == TL_FRAME_CALL)
            end[-1].kind = TL_FRAME_TAIL;
    }
    return true;
}

/* A call, and its return to `block`, with neither between them. False: they are something else. */
static inline bool tl_callstack_leaf(struct tl_callstack_top *top, const struct tl_block *block)
{
    struct tl_frame *const end = top->end;
    if (end == top->most || end[-1].function != block->function)
        return false;
    top->high = end + 1 > top->high ? end + 1 : top->high;
    return true;
}

/*
 * The flow was lost, and goes on at `pc` in `function`: that is the innermost frame's, and no frame
 * from `first` on waits for a return to it. Nearly always it is so, and nothing changes. `end` is
 * behind the innermost frame. False: it is something else.
 */
static inline bool tl_callstack_stays(const struct tl_frame *first, const struct tl_frame *end,
                                      uint64_t pc, uint32_t function)
{
    const struct tl_frame *const low =
        end - first > TL_CALLSTACK_SEARCH ? end - TL_CALLSTACK_SEARCH : first;
    if (end[-1].function != function)
        return false;
    for (; end - low >= 2; end -= 2)
        if (end[-1].return_pc == pc || end[-2].return_pc == pc)
            return false;
    return end == low || end[-1].return_pc != pc;
}

#endif
