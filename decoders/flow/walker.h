/* SPDX-License-Identifier: MIT */
/*
 * The walker: follows the program between the packets of a trace, independently of the trace
 * format.
 *
 * A format decoder passes on what its packets report: where the processor is (an address), what is
 * in force there (mode, identifiers), which way branches went (outcome bits), how far straight-line
 * code ran. The walker produces flow items in a batch: blocks and paths that were executed, and
 * gaps where the program cannot be followed. It owns a block cache; it goes from block to block
 * along the links in blocks and searches the cache only when an indirect branch goes to a new
 * place.
 *
 * Which instructions consume an outcome bit depends on the format:
 *   - TL_WALKER_WAYPOINTS (ETMv4, ETE, PTM): every instruction that ends a block: conditional and
 *     unconditional branches, calls, indirect branches, barriers. See tl_walker_waypoints().
 *   - TL_WALKER_CONDITIONS (Intel PT): conditional direct branches only. Unconditional jumps and
 *     calls are followed without one. See tl_walker_conditions() and tl_walker_to_indirect().
 *   - TL_WALKER_STEPS (RISC-V): the format itself decides at each block, see tl_walker_pass().
 *
 * If packets may be joined in one item, the format marks packet boundaries with
 * tl_item_batch_pause().
 *
 * An indirect branch waits for an address. The next bits use an address given by tl_walker_jump(),
 * or one from the return stack, if the trace unit has one; otherwise there is a gap (NO_PATH). At
 * an address outside the image there is a gap (NO_IMAGE), which carries the address if the trace
 * gave it or `names_unmapped` is set; the walker then needs a new address. Such a gap is reported
 * once.
 *
 * What predicts (return stack, a pending return) ends where the trace no longer supports it, and
 * what follows is followed from the next address that the trace gives, behind a gap:
 *   - tl_walker_lose(), tl_walker_reset(), a gap that the walker itself reports: the flow is lost,
 *     and code that is not followed may have called and returned. All predictions end.
 *   - tl_walker_forget(): the trace says so. All predictions end, the place stays.
 *   - tl_walker_renew(): the trace repeats its state from here on. What was called before returns
 *     as predicted up to the next address, and no longer.
 *   - tl_walker_await(), an exception return: no return is pending. The others stay, for the trace
 *     unit keeps them: over exceptions, and while it says itself that it traces nothing.
 * A format that predicts by itself (inferred returns, bases of addresses) does the same at the same
 * places; `need_address` && `gap_reported` after a call says that the flow was lost in it.
 *
 * Calls are accepted in any order, with any bits and addresses. The only failure is out of memory:
 * `failed` is set, the walker stays usable, and the caller returns TL_NOMEM. Once the sink has
 * failed (`out->rc`), walks end early, anywhere: the stream is over. `offset` is the byte
 * offset of the reporting packet. Not thread-safe; use one walker per stream.
 */
#ifndef TL_FLOW_WALKER_H
#define TL_FLOW_WALKER_H

#include "base/state.h"
#include "flow/batch.h"

#define TL_WALKER_RETURNS 64 /* maximum return stack entries; a power of two */
#define TL_WALKER_CALLERS 32 /* a power of two */

/*
 * Longest plausible run that no outcome, address or packet interrupts. More than this means that
 * trace was lost or that the image is not the program that ran; it is a gap (NO_PATH). It also
 * bounds what a few bytes of trace can stand for.
 */
#define TL_WALKER_STRAIGHT_MAX (1u << 20) /* bytes, or instructions */

enum tl_walker_bits { TL_WALKER_WAYPOINTS, TL_WALKER_CONDITIONS, TL_WALKER_STEPS };

struct tl_walker_config {
    const struct tl_image *image; /* borrowed, frozen; NULL or empty: nothing can be followed, and
                                     addresses become BRANCH items, or gaps (`names_unmapped`) */
    struct tl_isa_options isa;
    uint8_t bits;          /* enum tl_walker_bits */
    bool predicts_returns; /* the trace unit omits addresses that its return stack predicts */
    bool predicts_all;     /* also those of calls and exception returns (PTM) */
    uint8_t returns;       /* entries of that return stack: a power of two up to 64 */
    bool reports_erets; /* the format has no packet for exception returns: a taken one makes an ERET
                         item */
    uint64_t since;     /* time at which the trace begins, in ticks */
    bool keeps_time;    /* use `since` for all of the trace and ignore timestamps */
    /* Every NO_IMAGE gap carries its address: also without an image, after the last mapped byte,
     * and at the target of a direct branch. */
    bool names_unmapped;
};

/*
 * The return stack: return addresses that the trace unit omits because it predicted them. A call
 * pushes. `pending` means that an indirect branch was taken and that an outcome bit before the next
 * address selects an entry of this stack: the top one, or, if the branch was a call, the one below
 * the entry that it pushed.
 */
enum tl_walker_pending { TL_PENDING_NONE, TL_PENDING_TOP, TL_PENDING_BELOW };

struct tl_walker_returns {
    bool active;  /* the trace unit has a return stack, */
    bool all;     /* which predicts calls and exception returns, too */
    uint8_t size; /* capacity */
    uint8_t n;    /* entries in use */
    uint8_t top;
    uint8_t pending; /* enum tl_walker_pending */
    bool renewed;    /* see tl_walker_renew(): the next address empties the stack */
    struct {
        /* block that ends in the call, found in `space`; NULL if it is gone */
        struct tl_block *caller;
        uint64_t pc; /* return address, used if `caller` is NULL */
        uint8_t isa;
        uint8_t space;
    } v[TL_WALKER_RETURNS];
};

/*
 * Origins of recent calls, to find the block after a return without searching the cache
 * (TL_WALKER_WAYPOINTS). Only a hint: used if it agrees with the address known by other means.
 */
struct tl_walker_callers {
    uint32_t top;
    struct {
        struct tl_block *block; /* block that ended in the call, or NULL */
        uint8_t space;
    } v[TL_WALKER_CALLERS];
};

/* Embedded in the format's decoder, which may read all members and write none except `failed`. */
struct tl_walker {
    struct tl_item_batch *out;    /* borrowed */
    const struct tl_image *image; /* borrowed; NULL: none */
    struct tl_block_cache *cache; /* owned; NULL without an image */
    uint64_t view;                /* of the image, for the current identifiers and time */
    uint64_t view_until;          /* first time at which `view` may change */
    uint64_t time;                /* largest timestamp so far; 0: none */
    uint64_t stamp;               /* last timestamp; 0: none */
    uint64_t restarted;           /* offset of a restart of timestamps to be reported; 0: none */
    uint64_t since;               /* time at which the trace begins */
    struct tl_block *block;       /* at pc; NULL: to be looked up */
    struct tl_block **link;       /* link in which to store the next block looked up, or NULL */
    struct tl_block *from;        /* the indirect branch that went to pc, or NULL */
    uint64_t pc;
    uint8_t isa;   /* enum tl_isa at pc */
    uint8_t space; /* tl_space bit in force */
    uint8_t bits;  /* enum tl_walker_bits */
    bool reports_erets, names_unmapped, keeps_time;
    bool hidden;                     /* see tl_walker_hide() */
    bool need_mode;                  /* address space and instruction set are unknown */
    bool need_address;               /* pc is unknown */
    bool by_address;                 /* pc was given by the trace itself */
    bool gap_reported;               /* the gap up to the next address has been reported */
    bool failed;                     /* out of memory */
    uint64_t mode;                   /* last delivered, see tl_mode(); UINT64_MAX: none */
    struct tl_image_context context; /* last delivered identifiers */
    struct tl_walker_returns returns;
    struct tl_walker_callers callers;
    struct tl_walker_route *routes;    /* owned; NULL: none. See walker_routes.h */
    uint32_t n_routes;                 /* slots */
    uint32_t routes_used, routes_lost; /* slots that were taken, and routes that were replaced */
    size_t cache_limit; /* limit of decoded blocks in bytes, enforced by tl_walker_trim() */
};

/* ---- life -------------------------------------------------------------------------------- */

/* Initialise with nothing known, as after tl_walker_reset(). Items go to `out`, which is borrowed.
 * Returns TL_NOMEM. */
TL_MUST_USE int tl_walker_init(struct tl_walker *walker, const struct tl_walker_config *config,
                               struct tl_item_batch *out);
void tl_walker_fini(struct tl_walker *walker);
/* See only memory bound to the context's VMID, that of a virtual machine, until set back to false,
 * or until the walker is reset. */
void tl_walker_hide(struct tl_walker *walker, bool hidden);
/* Set the encoder for `coded` of blocks (block.h). Call before any packet. */
void tl_walker_code(struct tl_walker *walker, tl_block_code *code);

/* Synchronisation was lost: wait for mode and address. The caller has reported the gap. The time
 * stays known. */
void tl_walker_reset(struct tl_walker *walker);

/* Reset to the initial state, but keep decoded blocks. */
void tl_walker_begin(struct tl_walker *walker);

/*
 * Save or restore the walker's state: first the place (pc, instruction set, space), then the rest
 * except the identifiers. The format saves those in its own form and restores them with
 * tl_walker_restore_context().
 */
void tl_walker_place_state(struct tl_walker *walker, struct tl_state *state);
void tl_walker_rest_state(struct tl_walker *walker, struct tl_state *state);
void tl_walker_restore_context(struct tl_walker *walker, const struct tl_image_context *context);

/* Do the decoded blocks exceed the limit? */
static inline bool tl_walker_is_full(const struct tl_walker *w)
{
    return w->cache && tl_block_cache_bytes(w->cache) > w->cache_limit;
}
/* Free the decoded blocks if they exceed the limit; pointers to them become invalid. Then flushes
 * the items. The walker itself calls it before it looks up a block. */
void tl_walker_trim(struct tl_walker *walker);

/* ---- what packets report ------------------------------------------------------------------ */

/* Mode word `mode` (tl_mode()) is in force: sets address space and instruction set. Makes a MODE
 * item. */
void tl_walker_mode(struct tl_walker *walker, uint64_t mode, uint64_t offset);

/* These identifiers are in force. Makes a CONTEXT item if they differ from the previous ones. */
void tl_walker_context(struct tl_walker *walker, const struct tl_image_context *context,
                       uint64_t offset);

/*
 * A timestamp in ticks; makes a TIME item. Code executed from here on is looked up in the image as
 * of that time. A timestamp that goes back is reported, but does not restore memory that was
 * unloaded. One that goes back by more than TL_TIME_WOBBLE begins a new time segment: a NOTE
 * "time-restart LAST FIRST" precedes it.
 */
void tl_walker_time(struct tl_walker *walker, uint64_t ticks, uint64_t offset);
/* The same for an estimated time, which may go back by any amount; `restarts`: it begins a new time
 * segment, after `last`. */
void tl_walker_estimate(struct tl_walker *walker, uint64_t ticks, bool restarts, uint64_t last,
                        uint64_t offset);
/* After a push: tell the sink that timestamps have begun again since the last call. Returns what
 * the sink returned. */
TL_MUST_USE int tl_walker_tell_restart(struct tl_walker *walker,
                                       int (*loss)(void *context, const char *reason,
                                                   uint64_t offset, uint64_t bytes),
                                       void *context);

/*
 * The trace gave the current address: the target of a pending indirect branch, a confirmation of
 * the known place, or any other. If the program leads elsewhere, that is a gap (NO_PATH).
 */
void tl_walker_jump(struct tl_walker *walker, uint64_t pc, enum tl_isa isa, uint64_t offset);

/* The address is unknown until the next one is given. `gap_reported`: the caller has reported the
 * gap, or there is none (an exception, start or end of tracing). No return is pending. */
void tl_walker_await(struct tl_walker *walker, bool gap_reported);

/* The flow is lost until the next address is given; report `gap`. Nothing is predicted. */
void tl_walker_lose(struct tl_walker *walker, enum tl_gap gap, uint64_t offset);

/* Tracing is off until the next address: await it and report the gap. The trace unit keeps its
 * return stack. */
void tl_walker_off(struct tl_walker *walker, uint64_t offset);

/* Predict nothing: empty the return stack. */
void tl_walker_forget(struct tl_walker *walker);

/*
 * The trace repeats its state from here on, for decoders that begin here: the return stack serves
 * up to the next address, which empties it. Calls up to there push nothing, and empty it.
 */
void tl_walker_renew(struct tl_walker *walker);

/* No return is pending: the last indirect branch is one that the return stack does not predict. */
static inline void tl_walker_unpredict(struct tl_walker *walker)
{
    walker->returns.pending = TL_PENDING_NONE;
}

/* Packet implies that no address follows the last indirect branch: go to the top of the return
 * stack. */
void tl_walker_pop_return(struct tl_walker *walker, uint64_t offset);

/*
 * Consume `n` (1..64) outcome bits of TL_WALKER_WAYPOINTS, the oldest in bit 0, 1 = taken. Stops
 * early where the program cannot be followed; the remaining bits are then discarded.
 */
void tl_walker_waypoints(struct tl_walker *walker, uint64_t bits, unsigned n, uint64_t offset);

/*
 * Consume up to `n` (0..64) outcome bits of TL_WALKER_CONDITIONS, the oldest in bit 0, 1 = taken. A
 * set bit at a return takes it by the return stack, if the trace unit has one (Intel PT's
 * compressed returns). Returns the number of bits used: less than `n` if the walk stops before
 * another indirect branch, a trap or an exception return (then need_address is false and that
 * instruction has not been executed yet), or where the program cannot be followed.
 */
unsigned tl_walker_conditions(struct tl_walker *walker, uint64_t bits, unsigned n, uint64_t offset);

/*
 * Continue without outcome bits (TL_WALKER_CONDITIONS) to the next indirect branch, exception
 * return or trap, and take it: an address follows. Returns false if none is reached, which is a gap
 * (NO_PATH, NO_IMAGE).
 */
bool tl_walker_to_indirect(struct tl_walker *walker, uint64_t offset);

/* How a walk without outcome bits ends (TL_WALKER_CONDITIONS). */
enum tl_walker_end {
    TL_WALKER_REACHED,
    TL_WALKER_CHOICE, /* before a block whose last instruction needs an outcome or an address */
    TL_WALKER_LOST    /* the program cannot be followed, which was reported */
};

/* Is the instruction at the start of `code` the one to stop at? True for all instructions, or only
 * for some of those that change the flow or have tl_insn.binds. */
typedef bool tl_walker_suits(enum tl_isa isa, struct tl_bytes code);

/* Follow code that needs no outcome up to the instruction at `ip`, or through the first one that
 * `suits` accepts. If the latter needs an address, it has been executed and the address follows; if
 * it needs an outcome, the flow is lost behind it. */
enum tl_walker_end tl_walker_to_ip(struct tl_walker *walker, uint64_t ip, uint64_t offset);
enum tl_walker_end tl_walker_to_insn(struct tl_walker *walker, tl_walker_suits *suits,
                                     uint64_t offset);

/* After TL_WALKER_CHOICE: execute that block including its last instruction; the next address is
 * unknown. */
void tl_walker_take_choice(struct tl_walker *walker, bool taken, uint64_t offset);

/*
 * Follow straight-line code up to the instruction at `to`, which is executed later or not at all;
 * with TL_WALKER_CONDITIONS also along unconditional jumps and calls. `half`: a T32 instruction may
 * be interrupted halfway; it counts. Returns false if `to` cannot be reached, which is a gap: it
 * lies elsewhere, or behind an instruction for which there is an outcome bit.
 */
bool tl_walker_to(struct tl_walker *walker, uint64_t to, bool half, uint64_t offset);

/*
 * Execute `count` straight-line instructions if they lead to `to`, the last one possibly as a
 * branch. Otherwise returns false and produces nothing. An address must follow either way: see
 * tl_walker_await().
 */
bool tl_walker_count(struct tl_walker *walker, uint64_t count, uint64_t to, uint64_t offset);

/*
 * The instruction at `pc` was executed and, if it is a branch, taken (ETE's source address). The
 * code before it is executed first, along conditional branches that were not taken.
 */
void tl_walker_source(struct tl_walker *walker, uint64_t pc, enum tl_isa isa, uint64_t offset);

/* ---- block by block (TL_WALKER_STEPS) -------------------------------------------------------- */

/* The block at the current place, which has at least one instruction. NULL: the program cannot be
 * followed, which was reported, or out of memory. */
struct tl_block *tl_walker_here(struct tl_walker *walker, uint64_t offset);

/*
 * Execute `block`, from tl_walker_here(), whole. Its last instruction is `taken`, if it can change
 * the flow: the walk continues at the target of a direct branch; behind an indirect branch or an
 * exception return the address is awaited: tl_walker_jump() or tl_walker_infer().
 */
void tl_walker_pass(struct tl_walker *walker, struct tl_block *block, bool taken, uint64_t offset);

/* Execute its first `bytes` bytes (less than its size). Returns false, without executing anything,
 * if that is inside an instruction. */
bool tl_walker_execute_part(struct tl_walker *walker, struct tl_block *block, uint32_t bytes,
                            uint64_t offset);

/* The awaited address, which the format inferred from the program; the trace did not give it. */
void tl_walker_infer(struct tl_walker *walker, uint64_t pc);

/* ---- where the walk stands --------------------------------------------------------------- */

/* Can the program be followed from here? If only the address is missing, reports the gap, once. */
bool tl_walker_is_known(struct tl_walker *walker, uint64_t offset);

/*
 * Note that the format itself reported the gap of each address in an unmapped range
 * (tl_block_unmapped_at()) that outcome bits followed; `pc` was the last one. The address was
 * unknown before.
 */
void tl_walker_passed_unmapped(struct tl_walker *walker, uint64_t pc);

/*
 * Are outcome bits before the next address ignored without any item? Then the format need not pass
 * them on.
 */
static inline bool tl_walker_passes_over(const struct tl_walker *w)
{
    return !w->cache || w->need_mode || (w->need_address && w->gap_reported && !w->returns.pending);
}

#endif
