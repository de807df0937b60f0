/* SPDX-License-Identifier: MIT */
/*
 * The call stack of a stream of flow items: which function is running and who called it.
 *
 * Calls, exceptions and their returns push and pop frames. A jump into another function is a tail
 * call: its frame replaces the caller's; one into the middle of a function that is on the stack
 * unwinds to it (longjmp). Traces begin in the middle, have gaps, and programs switch stacks, so a
 * return may go where no frame expects it. Then the stack is unwound to a frame with that return
 * address, else to one of that function, else restarted with one ROOT frame.
 *
 * An exception that follows an exception return directly (tail-chained), or another exception whose
 * handler has not begun (late arrival), replaces that one's frame.
 *
 * Where there is no flow, hardware may report that handlers begin and end (flow/hardware.h): then
 * these are the frames, on a ROOT that stands for the program. A gap ends them all, until a handler
 * begins, or one that is returned to is told.
 *
 * Where a trace of user code alone was off (the operating system ran), the frames remain:
 * - Continuing where it stopped changes nothing.
 * - The entry of another function is a signal handler on top of the interrupted function. It ends
 *   where execution continues at the interrupted instruction, by a jump to a function below it, or
 *   in the system call after its return. A kernel that is traced leads to it by an exception return
 *   to user code.
 * - After a call, the entry of a function is one called by the untraced code.
 *
 * Stacks that are left for another one (another thread runs, or a coroutine) are kept, and continue
 * where exactly one of them expects the address. Lost trace discards them.
 *
 * The object is plain data (about 48 KiB) and may be copied to resume from there later. Functions
 * are symbols of the image; all code without a symbol counts as one nameless function. Not
 * thread-safe.
 */
#ifndef TL_FLOW_CALLSTACK_H
#define TL_FLOW_CALLSTACK_H

#include "flow/item.h"

#define TL_CALLSTACK_MAX    1024 /* frames kept; deeper ones are only counted */
#define TL_CALLSTACK_BEYOND 4    /* exceptions known beyond these */
#define TL_CALLSTACK_PARKED 16   /* other stacks kept */
#define TL_CALLSTACK_ASIDE  512  /* their frames in all */

enum tl_frame_kind {
    TL_FRAME_ROOT, /* running when tracing began or resumed after a gap */
    TL_FRAME_CALL,
    TL_FRAME_TAIL, /* entered by a jump; returns to its predecessor's return address */
    TL_FRAME_EXCEPTION
};

struct tl_frame {
    uint64_t insn;      /* number of the first instruction in it */
    uint64_t pc;        /* of that instruction */
    uint64_t return_pc; /* CALL, TAIL, EXCEPTION: return address; ROOT: 0 */
    uint32_t function;  /* index of the image's symbol, or TL_NO_FUNCTION */
    uint16_t exception; /* EXCEPTION: its number */
    uint8_t kind;       /* enum tl_frame_kind */
    uint8_t flags;      /* enum tl_frame_flag */
};

enum tl_frame_flag {
    TL_FRAME_SIGNAL = 1,   /* EXCEPTION: a signal handler; its number is TL_EXCEPTION_UNKNOWN */
    TL_FRAME_RETURNED = 2, /* … which has returned, to code that makes a system call to end it */
    TL_FRAME_RESUMED =
        4, /* began earlier, before another stack was active: not a call of its own */
    TL_FRAME_REPORTED = 8,   /* by hardware, which tells exceptions but no flow */
    TL_FRAME_CONTINUED = 16, /* EXCEPTION, only while its begin is reported: it takes the place of a
                               frame of the same exception, as its handler jumped to a function */
    TL_FRAME_LOST = 32 /* REPORTED, only while its end is reported: that was not told, but something
                          of which follows that it has ended */
};

/* A stack that is not active. Its frames are in `aside`, behind those of the ones before it. */
struct tl_parked_stack {
    uint64_t who; /* thread or process, as far as the trace tells */
    uint64_t pc;  /* where it was interrupted; 0: it gave way itself, its last frame returns */
    uint32_t n;   /* frames */
};

/* An exception whose frame is only counted. */
struct tl_frame_beyond {
    uint64_t return_pc;
    uint32_t deeper; /* number of counted frames below it */
};

enum tl_frame_change { TL_FRAME_PUSH, TL_FRAME_POP };

/*
 * Receive a change of the stack: `frame` (borrowed for the call) was pushed to or popped from
 * position `depth` (0 = outermost). `insn` is the number of the first instruction executed after
 * the change; a popped frame existed for instructions frame->insn..insn-1. Pops are reported
 * innermost first. A result < 0 stops tl_callstack_push(), which returns it.
 */
typedef int tl_frame_sink(void *context, enum tl_frame_change change, const struct tl_frame *frame,
                          uint32_t depth, uint64_t insn);

/* Receive a call that returned without another change of the stack in between: what would be the
 * push and the pop of a CALL frame, at position `depth`, for instructions begin..end-1. */
typedef void tl_leaf_sink(void *context, uint32_t function, uint32_t depth, uint64_t begin,
                          uint64_t end);

struct tl_callstack {
    const struct tl_image *image; /* borrowed; may be NULL if no block has a function */
    tl_frame_sink *sink;          /* may be NULL */
    tl_leaf_sink *leaf;           /* for tl_callstack_steps(); NULL: `sink` receives both changes */
    void *context;
    uint64_t insns;     /* executed so far */
    uint64_t next_pc;   /* address after the last block */
    uint32_t depth;     /* frames in `frames` */
    uint32_t deeper;    /* depth beyond `frames` */
    uint32_t function;  /* of the innermost frame */
    uint16_t exception; /* the pending exception, if `how` is TL_LEAVE_EXCEPTION */
    uint8_t how;        /* enum tl_leave: how the last block was left */
    uint8_t left;       /* the same before tracing went off, if `how` is TL_LEAVE_OFF */
    bool user;          /* the mode is that of a program under an operating system */
    uint8_t n_beyond;
    uint64_t exception_pc; /* return address of the pending exception; 0: unknown */
    uint64_t process;      /* hash of the last CONTEXT item; 0: none */
    uint64_t thread;       /* hash of the last "switch" annotation; 0: none */
    uint64_t active;       /* tl_callstack_who() when tracing went off */
    uint64_t entered;      /* the same when the outermost active exception was taken */
    struct tl_frame_beyond beyond[TL_CALLSTACK_BEYOND];
    uint32_t n_parked, n_aside;
    struct tl_parked_stack parked[TL_CALLSTACK_PARKED]; /* least recently active first */
    struct tl_frame aside[TL_CALLSTACK_ASIDE];
    struct tl_frame frames[TL_CALLSTACK_MAX];
};

/*
 * Initialise with no frames. `first_insn` is the number of the next instruction. `image` is the one
 * the items' blocks come from, or NULL if there are none; `sink` may be NULL.
 */
void tl_callstack_init(struct tl_callstack *cs, const struct tl_image *image, uint64_t first_insn,
                       tl_frame_sink *sink, void *context);

/* Process the next items. Returns 0 or what the sink returned. */
TL_MUST_USE int tl_callstack_push(struct tl_callstack *cs, const struct tl_item *items, size_t n);

/* The same for a GAP that has no address. */
TL_MUST_USE static inline int tl_callstack_gap(struct tl_callstack *cs, const struct tl_item *item)
{
    if (tl_gap_is_off(item->sub) ||
        (cs->depth > 0 && cs->frames[cs->depth - 1].flags & TL_FRAME_REPORTED))
        return tl_callstack_push(cs, item, 1);
    cs->how = TL_LEAVE_LOST;
    return TL_OK;
}

/*
 * Split form of tl_callstack_push() for one block, for callers that process very many. First step:
 * execution enters `block` at instruction number `insn`.
 */
TL_MUST_USE int tl_callstack_arrive(struct tl_callstack *cs, const struct tl_block *block,
                                    uint64_t insn);

/* Second step: execution left `block` after the instruction that ends at its byte `size`. Does not
 * advance cs->insns. */
static inline void tl_callstack_leave(struct tl_callstack *cs, const struct tl_block *block,
                                      uint32_t size, bool taken)
{
    cs->next_pc = block->pc + size;
    cs->how = taken ? block->leave : TL_LEAVE_STRAIGHT;
}

#define TL_CALLSTACK_STEPS 64

/*
 * Both steps for each of steps[0..n) of a path, 1 <= n <= TL_CALLSTACK_STEPS. The sink must not
 * fail. `begins[i]` is the number of step i's first instruction. `turns` has a bit for each step at
 * which frames may change: it is in another function than the previous step, or the previous step
 * did not lead to it straight on or by a jump. (For step 0, compare with cs->function and cs->how;
 * always set the bit if there is no frame.) `*low` and `*high` are widened by the depth after each
 * such step.
 */
void tl_callstack_steps(struct tl_callstack *cs, const uintptr_t *steps, uint32_t n, uint64_t turns,
                        const uint64_t *begins, uint32_t *low, uint32_t *high);

/* Pop all frames at the end of the stream. Returns as tl_callstack_push(). */
TL_MUST_USE int tl_callstack_finish(struct tl_callstack *cs);

/* Which thread or process runs, as far as the trace tells; 0: it does not. */
static inline uint64_t tl_callstack_who(const struct tl_callstack *cs)
{
    return cs->process + cs->thread;
}

/* Is it as after tl_callstack_init(), apart from the position? */
static inline bool tl_callstack_is_new(const struct tl_callstack *cs)
{
    return cs->depth == 0 && cs->how == TL_LEAVE_LOST && cs->n_parked == 0 && !cs->user &&
           tl_callstack_who(cs) == 0;
}

/* Does the frame stand for a call, or an exception, that begins with it? */
static inline bool tl_frame_is_call(const struct tl_frame *frame)
{
    return frame->kind != TL_FRAME_ROOT && !(frame->flags & TL_FRAME_RESUMED);
}

/* Current number of frames. */
static inline uint32_t tl_callstack_depth(const struct tl_callstack *cs)
{
    return cs->depth + cs->deeper;
}

#endif
