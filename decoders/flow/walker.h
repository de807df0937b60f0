/* SPDX-License-Identifier: MIT */
/*
 * The walker: follows the program between the packets of a trace, whatever the trace's format.
 *
 * A format tells the walker what its packets say: where the processor is (an address), what is in
 * force there (mode, identifiers), which way branches went (bits), how far straight code ran. The
 * walker answers with flow items in a batch: blocks and paths that were executed, and gaps where
 * the program cannot be followed. It owns a block cache; from block to block it goes by the links
 * that blocks keep, and searches the cache only where an indirect branch leads to a new place.
 *
 * Which instructions have a bit depends on the format:
 *   - TL_WALKER_WAYPOINTS (ETMv4, ETE, PTM): every instruction that ends a block: branches with
 *     and without condition, calls, indirect branches, barriers: tl_walker_waypoints().
 *   - TL_WALKER_CONDITIONS (Intel PT, RISC-V): direct branches with a condition only. Jumps and
 *     calls that leave no choice are followed without one: tl_walker_conditions(),
 *     tl_walker_to_indirect(). Where several packets may be joined, the format says where one ends:
 *     by tl_item_batch_pause().
 *
 * An indirect branch waits for an address: the next bits either find one given by tl_walker_jump(),
 * or take it from the return stack that the trace unit has, too, or there is a gap (NO_PATH). At
 * an address that the image does not hold there is a gap (NO_IMAGE) with that address, if the trace
 * told it or `names_unmapped`; the walker then needs a new one. Such a gap is told once.
 *
 * Any calls in any order end in items; bits and addresses may be anything. The only failure is
 * memory: `failed` is set, the walker stays usable, and the caller returns TL_NOMEM. `offset` is
 * the byte offset of the packet that said so. Not thread-safe; one walker for each stream.
 */
#ifndef TL_FLOW_WALKER_H
#define TL_FLOW_WALKER_H

#include "base/state.h"
#include "flow/batch.h"

#define TL_WALKER_RETURNS 64 /* entries of a return stack at most; a power of two */
#define TL_WALKER_CALLERS 32 /* a power of two */

/*
 * Between two packets straight code is short: a longer way than this means that trace was lost, or
 * that the image is not what ran.
 */
#define TL_WALKER_STRAIGHT_MAX (1u << 20) /* bytes, or instructions */

enum tl_walker_bits { TL_WALKER_WAYPOINTS, TL_WALKER_CONDITIONS };

struct tl_walker_config {
    const struct tl_image *image; /* borrowed, frozen; NULL or empty: nothing can be followed, and
                                     addresses become BRANCH items, or gaps (`names_unmapped`) */
    struct tl_isa_options isa;
    uint8_t bits;          /* enum tl_walker_bits */
    bool predicts_returns; /* the trace unit leaves out addresses that its return stack has … */
    uint8_t returns;       /* … and so many entries it has: a power of two up to 64 */
    bool tells_erets;      /* no packet says so: an exception return that was taken makes an ERET */
    uint64_t since;        /* the time where the trace begins … */
    bool keeps_time;       /* … which is that of all of it, whatever timestamps say */
    bool names_unmapped;   /* every gap (NO_IMAGE) has its address: without an image, behind the
                              last byte that is mapped, and where a direct branch led, too */
};

/*
 * The return addresses that the trace unit does not send, since it predicted them. A call pushes;
 * `pending` says that an indirect branch was taken and that a bit before the next address means
 * that the address is the top of this stack.
 */
struct tl_walker_returns {
    bool active;  /* the trace unit has such a stack */
    uint8_t size; /* its entries */
    uint8_t n;    /* entries in use */
    uint8_t top;
    bool pending;
    bool wait_address; /* calls do not push before the next address */
    struct {
        struct tl_block *caller; /* ends in the call, found in `space`; NULL: it is gone, … */
        uint64_t pc;             /* … and the return is to here */
        uint8_t isa;
        uint8_t space;
    } v[TL_WALKER_RETURNS];
};

/*
 * Where calls came from, to find the block behind a return without searching the cache
 * (TL_WALKER_WAYPOINTS). Only a guess: it is used where the address, known by other means, agrees.
 */
struct tl_walker_callers {
    uint32_t top;
    struct {
        struct tl_block *block; /* that ended in the call, or NULL */
        uint8_t space;
    } v[TL_WALKER_CALLERS];
};

/* Embedded by the format's decoder, which may read all members and write none but `failed`. */
struct tl_walker {
    struct tl_item_batch *out;    /* borrowed */
    const struct tl_image *image; /* borrowed; NULL: none */
    struct tl_block_cache *cache; /* owned; NULL without an image */
    uint64_t view;                /* of the image, by the identifiers and time in force, … */
    uint64_t view_until;          /* … which is the same before this time */
    uint64_t time;                /* the largest told so far; 0: none … */
    uint64_t since;               /* … where the trace begins */
    struct tl_block *block;       /* at pc; NULL: to be looked up */
    struct tl_block **link;       /* where the block looked up next is to be remembered, or NULL */
    struct tl_block *from;        /* the indirect branch that led here, or NULL */
    uint64_t pc;
    uint8_t isa;   /* enum tl_isa at pc */
    uint8_t space; /* tl_space bit in force */
    uint8_t bits;  /* enum tl_walker_bits */
    bool tells_erets, names_unmapped, keeps_time;
    bool need_mode;                  /* neither address space nor instruction set are known */
    bool need_address;               /* pc is not known */
    bool by_address;                 /* the trace itself gave pc */
    bool gap_told;                   /* the gap up to the next address has been told */
    bool failed;                     /* out of memory */
    uint64_t mode;                   /* last delivered, see tl_mode(); UINT64_MAX: none */
    struct tl_image_context context; /* last delivered identifiers */
    struct tl_walker_returns returns;
    struct tl_walker_callers callers;
    struct tl_walker_route *routes; /* owned; NULL: none. See walker_routes.h */
    size_t cache_limit; /* bytes of decoded blocks at most, looked at by tl_walker_trim() */
};

/* ---- life -------------------------------------------------------------------------------- */

/* Items go to `out`, which is borrowed. Nothing is known yet, see tl_walker_reset(). TL_NOMEM. */
TL_MUST_USE int tl_walker_init(struct tl_walker *walker, const struct tl_walker_config *config,
                               struct tl_item_batch *out);
void tl_walker_fini(struct tl_walker *walker);
/* Blocks have `code`, see block.h. To be said in front of all that packets say. */
void tl_walker_code(struct tl_walker *walker, tl_block_code *code);

/* Synchronisation is lost: wait for mode and address. The caller has told the gap. The time is
 * known all the same. */
void tl_walker_reset(struct tl_walker *walker);

/* As just made, but that decoded blocks are kept. */
void tl_walker_begin(struct tl_walker *walker);

/*
 * Where the walker stands, into bytes or from them: first the place (pc, instruction set, space),
 * then all else but the identifiers, which the format keeps in its own form, and gives back with
 * tl_walker_restore_context().
 */
void tl_walker_place_state(struct tl_walker *walker, struct tl_state *state);
void tl_walker_rest_state(struct tl_walker *walker, struct tl_state *state);
void tl_walker_restore_context(struct tl_walker *walker, const struct tl_image_context *context);

/* Between packets: free the decoded blocks if they are more than the limit. Flushes the items. */
void tl_walker_trim(struct tl_walker *walker);

/* Do both name the same memory? */
bool tl_walker_same_context(const struct tl_image_context *a, const struct tl_image_context *b);

/* ---- what packets say -------------------------------------------------------------------- */

/* `mode` (see tl_mode()) is in force: its address space and instruction set. A MODE item. */
void tl_walker_mode(struct tl_walker *walker, uint64_t mode, uint64_t offset);

/* These identifiers are in force. A CONTEXT item, if they are others than before. */
void tl_walker_context(struct tl_walker *walker, const struct tl_image_context *context,
                       uint64_t offset);

/*
 * A timestamp in ticks, a TIME item: what is executed from here on is looked up in the image as it
 * is at that time. Times that fall are told, but do not bring back what was unloaded.
 */
void tl_walker_time(struct tl_walker *walker, uint64_t ticks, uint64_t offset);

/*
 * The trace gave the address where execution is, or goes on: of the branch waited for, or of the
 * place where it already is, or of any other.
 */
void tl_walker_jump(struct tl_walker *walker, uint64_t pc, enum tl_isa isa, uint64_t offset);

/* Where execution goes on is not known until the next address; the gap has been told, or is none
 * (an exception, tracing that begins). */
void tl_walker_await(struct tl_walker *walker, bool gap_told);

/* The same with a gap. */
void tl_walker_lose(struct tl_walker *walker, enum tl_gap gap, uint64_t offset);

/* Entries of the return stack are dropped; with `wait_address` calls push none before the next
 * address. */
void tl_walker_flush_returns(struct tl_walker *walker, bool wait_address);

/* What comes proves that no address follows the last indirect branch: go where the stack says. */
void tl_walker_pop_return(struct tl_walker *walker, uint64_t offset);

/*
 * `n` (1..64) bits of TL_WALKER_WAYPOINTS, the oldest in bit 0, 1 = taken. The walk ends early
 * where the program cannot be followed; the bits that are left say nothing then.
 */
void tl_walker_waypoints(struct tl_walker *walker, uint64_t bits, unsigned n, uint64_t offset);

/*
 * `n` (0..64) bits of TL_WALKER_CONDITIONS, the oldest in bit 0, 1 = taken. A set bit at a return
 * takes it by the return stack, if the trace unit has one (Intel PT's compressed returns). Returns
 * how many bits were used: less than `n` if the walk ends at another indirect branch, a trap or an
 * exception return (then need_address is false, and the branch has not been executed yet), or
 * where the program cannot be followed.
 */
unsigned tl_walker_conditions(struct tl_walker *walker, uint64_t bits, unsigned n, uint64_t offset);

/*
 * On without a bit (TL_WALKER_CONDITIONS) to the next indirect branch, exception return or trap,
 * and take it: an address follows. False if none is reached, which is a gap (NO_PATH, NO_IMAGE).
 */
bool tl_walker_to_indirect(struct tl_walker *walker, uint64_t offset);

/* How a walk without bits ends (TL_WALKER_CONDITIONS). */
enum tl_walker_end {
    TL_WALKER_REACHED,
    TL_WALKER_CHOICE, /* in front of the block whose last instruction needs a bit or an address */
    TL_WALKER_LOST    /* the program cannot be followed, which was told */
};

/* Does the instruction that `code` begins with suit? */
typedef bool tl_walker_suits(enum tl_isa isa, struct tl_bytes code);

/* Along all that leaves no choice up to the instruction at `ip`, or up to and with one that suits:
 * if that one needs an address, it has been executed and the address follows. */
enum tl_walker_end tl_walker_to_ip(struct tl_walker *walker, uint64_t ip, uint64_t offset);
enum tl_walker_end tl_walker_to_insn(struct tl_walker *walker, tl_walker_suits *suits,
                                     uint64_t offset);

/* Behind TL_WALKER_CHOICE: that block is executed with its last instruction, and where it led is
 * not known. */
void tl_walker_take_choice(struct tl_walker *walker, bool taken, uint64_t offset);

/*
 * Straight on up to the instruction at `to`, which is executed later or not at all; with
 * TL_WALKER_CONDITIONS also along jumps and calls that leave no choice. With `half` a T32
 * instruction may be interrupted half way; it counts. False: it cannot be reached, which is a gap.
 */
bool tl_walker_to(struct tl_walker *walker, uint64_t to, bool half, uint64_t offset);

/*
 * `count` instructions straight on, if they end at `to` or in a branch. False: they do not, and
 * nothing came out. An address must follow either way: see tl_walker_await().
 */
bool tl_walker_count(struct tl_walker *walker, uint64_t count, uint64_t to, uint64_t offset);

/*
 * The instruction at `pc` was executed, and if it is a branch, it was taken (ETE's source
 * address). What lies between is executed first, if it is straight.
 */
void tl_walker_source(struct tl_walker *walker, uint64_t pc, enum tl_isa isa, uint64_t offset);

/* ---- where the walk stands --------------------------------------------------------------- */

/* Can the program be followed from here? If not for want of an address, tells the gap, once. */
bool tl_walker_is_known(struct tl_walker *walker, uint64_t offset);

/*
 * The format itself told the gap of each address in an unmapped range (tl_block_unmapped_at()) that
 * had bits behind it; `pc` was the last one. Nothing was known before.
 */
void tl_walker_passed_unmapped(struct tl_walker *walker, uint64_t pc);

/*
 * Do bits say nothing before the next address, without a word about it? Then the format need not
 * bring them.
 */
static inline bool tl_walker_passes_over(const struct tl_walker *w)
{
    return !w->cache || w->need_mode || (w->need_address && w->gap_told && !w->returns.pending);
}

#endif
