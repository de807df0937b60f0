/* SPDX-License-Identifier: MIT */
/*
 * Follows the program between two E-Trace packets: the standard's function
 * follow_execution_path(), block by block. Executed instructions go to an item batch.
 *
 * The walk stands on an instruction that has been executed, at `pc`. The block it is in is
 * delivered when it is left, or by tl_etrace_walk_report().
 *
 * Any packets may be passed on in any order, so trace and image may disagree: then there is a gap,
 * and the walk needs a new place. It ends in any case: where no outcome is used up, going round in
 * circles is detected. Not thread-safe.
 *
 * Source: E-Trace 2.0, "Decoder" with its flow chart.
 */
#ifndef TL_RISCV_ETRACE_WALK_H
#define TL_RISCV_ETRACE_WALK_H

#include "flow/walker.h"
#include "riscv/etrace_outcomes.h"
#include "riscv/etrace_params.h"
#include "riscv/returns.h"

struct tl_etrace_walk {
    /* Mode, identifiers, time, and the decoded blocks; its own place is not used. */
    struct tl_walker walker;
    struct tl_etrace_outcomes outcomes;
    struct tl_returns returns;
    unsigned options;      /* enum tl_etrace_option in force */
    uint32_t irdepth_mask; /* of depths that fit in `irdepth` */
    bool counts_calls;     /* the encoder has no return addresses, only their number */
    /* With TL_ETRACE_IRETS: returns that were inferred, with the one at pc, since the last branch
     * or the last packet's address */
    uint32_t irets;
    bool was_predicted; /* the last return that was reported went where the stack says */
    int rc; /* < 0: the result is not wanted any more: the sink's error, or tl_cancel_check()'s */
    bool placed;            /* pc is known */
    bool unmapped;          /* it is not, for code was not followed: the next address gives it */
    bool tableless;         /* … and it ends with a table jump whose table is missing */
    bool given;             /* the trace itself gave an address at which nothing is mapped */
    bool before_lost;       /* at `start`, whose predecessor was executed, but not followed */
    bool reported;          /* the block has been delivered up to pc */
    bool from_return;       /* a trap return led to `start` */
    bool by_return;         /* an inferred return led to pc, within this walk */
    uint32_t n;             /* instructions executed of `block` */
    uint64_t start;         /* where the block begins */
    uint64_t pc;            /* of the last one of them */
    uint64_t before;        /* the instruction that led to `start` */
    bool has_before;        /* … is known */
    struct tl_block *block; /* at `start`; NULL: to be looked up */
    uint64_t offset;        /* of the packet that reported `start` */
};

/* What the packet says about where the walk ends. */
struct tl_etrace_goal {
    uint64_t address;
    bool last_branch;    /* at the branch whose outcome is the last one; no address */
    bool by_jump;        /* behind an uninferable jump or trap return, in any case */
    bool only_jump;      /* the same, and not all outcomes need be used up */
    bool sync;           /* a synchronisation packet: all outcomes are used up */
    bool same_privilege; /* of a synchronisation packet: as before */
    bool notify;
    bool irreport; /* a return was reported, with this many entries on the stack, or that many were
                      there at the end; with TL_ETRACE_IRETS, with so many inferred before */
    uint32_t irdepth;
};

enum tl_etrace_end {
    TL_ETRACE_END_LOST,     /* the program cannot be followed, which was reported */
    TL_ETRACE_END_JUMPED,   /* at the address, behind an uninferable jump or trap return */
    TL_ETRACE_END_REACHED,  /* there, for sure */
    TL_ETRACE_END_INFERRED, /* there, if the next packet does not say that the trace came round
                               again */
    /* not of a walk: */
    TL_ETRACE_END_BEGUN, /* a packet of format 3 told the place */
    TL_ETRACE_END_STOOD  /* … and the one behind it the same */
};

TL_MUST_USE int tl_etrace_walk_init(struct tl_etrace_walk *walk,
                                    const struct tl_etrace_params *params,
                                    const struct tl_image *image, const struct tl_isa_options *isa,
                                    struct tl_item_batch *out);
void tl_etrace_walk_fini(struct tl_etrace_walk *walk);
void tl_etrace_walk_state(struct tl_etrace_walk *walk, struct tl_state *state);

/* Deliver what was executed, except a branch whose outcome is not known yet. */
void tl_etrace_walk_report(struct tl_etrace_walk *walk);

/* Deliver, and forget the place, outcomes and return addresses. */
void tl_etrace_walk_leave(struct tl_etrace_walk *walk);

/* The same with a gap. */
void tl_etrace_walk_lose(struct tl_etrace_walk *walk, enum tl_gap gap, uint64_t offset);

/* The same where a trap comes, behind which an encoder may still remember return addresses. `to`:
 * where a return at pc went; NULL: as they say. */
void tl_etrace_walk_trap(struct tl_etrace_walk *walk, const uint64_t *to);

/* Options and sizes changed. */
void tl_etrace_walk_configure(struct tl_etrace_walk *walk, const struct tl_etrace_params *params,
                              unsigned options);

/* The view of the image may have changed: look the block up again. */
void tl_etrace_walk_refresh(struct tl_etrace_walk *walk);

/* Call before the walker's tl_walker_trim(): decoded blocks may be freed. */
static inline bool tl_etrace_walk_is_large(const struct tl_etrace_walk *w)
{
    return w->walker.cache && tl_block_cache_bytes(w->walker.cache) > w->walker.cache_limit;
}

/*
 * The instruction at `pc` was executed. What was executed before must have been delivered. Returns
 * false if nothing is mapped there, which is a gap. Outcomes stay.
 */
bool tl_etrace_walk_begin(struct tl_etrace_walk *walk, uint64_t pc, uint64_t offset);

/*
 * Deliver what was executed in front of the instruction at pc, which the caller then begins with
 * again: the same as tl_etrace_walk_begin() at pc, but what led there is remembered.
 */
void tl_etrace_walk_split(struct tl_etrace_walk *walk);
bool tl_etrace_walk_again(struct tl_etrace_walk *walk, uint64_t offset);

/* A walk begins at its place: of returns inferred, only the one at pc counts. */
void tl_etrace_walk_count_return(struct tl_etrace_walk *walk);
static inline void tl_etrace_walk_restart_irets(struct tl_etrace_walk *w)
{
    w->irets = 0;
    if (w->options & TL_ETRACE_IRETS)
        tl_etrace_walk_count_return(w);
}

/* Is the walk at the goal before its first step? The place must be known. */
bool tl_etrace_walk_stands_at_goal(struct tl_etrace_walk *walk, const struct tl_etrace_goal *goal);
static inline bool tl_etrace_walk_stands_at(struct tl_etrace_walk *w,
                                            const struct tl_etrace_goal *goal)
{
    return w->pc == goal->address && tl_etrace_walk_stands_at_goal(w, goal);
}

/* Follow the program to the goal, by at least one step. The place must be known. */
enum tl_etrace_end tl_etrace_walk_to(struct tl_etrace_walk *walk, const struct tl_etrace_goal *goal,
                                     uint64_t offset);

/*
 * Where execution continues behind pc, without going there: the preferred return address of a trap.
 * Uses up an outcome that waits there. Returns false if pc holds an uninferable jump or trap
 * return, or the place is not known.
 */
bool tl_etrace_walk_successor(struct tl_etrace_walk *walk, uint64_t *pc);

/* May the next instruction behind that at the walk's place be at an address with these `bits`, of
 * `mask`? Whether code is mapped there does not matter. */
bool tl_etrace_walk_leads_to(struct tl_etrace_walk *walk, uint64_t bits, uint64_t mask);

/* Is the instruction at pc a conditional branch, an uninferable jump or trap return, one that
 * always traps? */
bool tl_etrace_walk_at_branch(struct tl_etrace_walk *walk);
bool tl_etrace_walk_at_jump(struct tl_etrace_walk *walk);
bool tl_etrace_walk_at_trap(struct tl_etrace_walk *walk);

/*
 * The address of an instruction, from the `iaddress_width` bits that the trace has of it. Where
 * these are less than an address and only the sign-extended one is mapped, it is that.
 */
uint64_t tl_etrace_walk_extend(struct tl_etrace_walk *walk, unsigned width, uint64_t bits);
static inline uint64_t tl_etrace_walk_address(struct tl_etrace_walk *w,
                                              const struct tl_etrace_params *params, uint64_t bits)
{
    const unsigned width = params->iaddress_width;
    if (params->isa == TL_ISA_RV32)
        return (uint32_t)bits;
    return width < 64 && bits >> (width - 1) & 1 ? tl_etrace_walk_extend(w, width, bits) : bits;
}

#endif
