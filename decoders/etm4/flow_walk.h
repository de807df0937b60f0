/* SPDX-License-Identifier: MIT */
/*
 * Following the program: where the core is, and what it executes at each committed element.
 *
 * Blocks come from the block cache; from one to the next it goes by their links, so the cache is
 * searched only behind indirect branches. Not thread-safe.
 *
 * Source: Arm IHI0064H chapters 2 and 5; Arm DDI0487 D5 and D6 (ETE).
 */
#ifndef TL_ETM4_FLOW_WALK_H
#define TL_ETM4_FLOW_WALK_H

#include "base/state.h"
#include "etm4/config.h"
#include "etm4/tape.h"
#include "flow/batch.h"

#define TL_ETM4_RETURN_STACK 16 /* entries; a power of two, no trace unit has more */

/* The trace unit leaves out addresses of returns that its return stack predicts. */
struct tl_etm4_return_stack {
    bool active;
    bool pending;      /* an indirect branch was taken: no address next means a pop */
    bool wait_address; /* nothing is pushed between trace info and the next address */
    uint8_t n;
    uint8_t top;
    struct {
        uint64_t pc;
        uint8_t isa;
    } v[TL_ETM4_RETURN_STACK];
};

#define TL_ETM4_CALLERS 32 /* a power of two */

/*
 * Where calls came from, to find the block behind a return without searching the cache. Only a
 * guess: it is used where the address, known by other means, agrees.
 */
struct tl_etm4_callers {
    uint32_t top;
    struct {
        struct tl_block *block; /* that ended in the call, or NULL */
        uint8_t space;
    } v[TL_ETM4_CALLERS];
};

struct tl_etm4_walk {
    struct tl_item_batch *out;    /* borrowed */
    const struct tl_image *image; /* borrowed; NULL: none */
    struct tl_block_cache *cache; /* owned; NULL without an image */
    uint64_t view;                /* of the image, by the identifiers in force */
    struct tl_block *block;       /* at pc, NULL: to be looked up */
    struct tl_block **link;       /* where the block looked up next is to be remembered, or NULL */
    struct tl_block *from;        /* the indirect branch we come from, or NULL */
    uint64_t pc;
    uint8_t isa;   /* enum tl_isa at pc */
    uint8_t space; /* tl_space bit of the context */
    bool sf;       /* the context is AArch64 */
    bool is1;      /* the last address was of the T32 form */
    bool ete;
    bool m_profile;
    bool need_context;
    bool need_address;
    bool by_address; /* the trace told pc itself */
    bool told;       /* the gap until the next address has been reported */
    struct tl_etm4_return_stack stack;
    struct tl_etm4_callers callers;
    uint64_t mode;                 /* last delivered, ~0: none */
    struct tl_etm4_packet context; /* last delivered identifiers */
    bool failed;                   /* out of memory */
    size_t cache_limit;            /* bytes of decoded blocks */
};

TL_MUST_USE int tl_etm4_walk_init(struct tl_etm4_walk *walk, const struct tl_etm4_config *config,
                                  const struct tl_image *image, struct tl_item_batch *out);
void tl_etm4_walk_fini(struct tl_etm4_walk *walk);

/* Nothing is known any more: wait for context and address. */
void tl_etm4_walk_reset(struct tl_etm4_walk *walk);

/* Elements, in order. Offsets are those of their packets. */
void tl_etm4_walk_trace_on(struct tl_etm4_walk *walk, uint64_t offset);
void tl_etm4_walk_trace_info(struct tl_etm4_walk *walk);
void tl_etm4_walk_context(struct tl_etm4_walk *walk, const struct tl_etm4_packet *packet);
void tl_etm4_walk_address(struct tl_etm4_walk *walk, const struct tl_etm4_packet *packet);
/* `n` atoms (1..64) in `atoms`, the oldest in bit 0, 1 = E. */
void tl_etm4_walk_atoms(struct tl_etm4_walk *walk, uint64_t atoms, unsigned n, uint64_t offset);
/* An unknown count is told as 0. */
void tl_etm4_walk_cycles(struct tl_etm4_walk *walk, const struct tl_etm4_packet *packet);

/* Atoms of packets one behind another: up to 64 count as those of one packet, the first. */
struct tl_etm4_joined {
    uint64_t atoms; /* the oldest in bit 0 */
    uint64_t offset;
    unsigned n;
};

/* Join the atom packets [k, end) of a tape. Returns the first that there is no room for, or `end`.
 */
size_t tl_etm4_join(struct tl_etm4_joined *joined, const struct tl_etm4_tape *tape, size_t k,
                    size_t end);

/*
 * Go on with a tape as far as packets are committed as they come and need nothing but the place
 * where the core is: what trace mostly consists of, with less to do for each. Atoms that the tape
 * ends with stay joined: those of the next one may belong to them.
 */
void tl_etm4_walk_tape(struct tl_etm4_walk *walk, const struct tl_etm4_tape *tape,
                       const struct tl_etm4_tape_marks *marks, struct tl_etm4_tape_place *place,
                       struct tl_etm4_joined *joined);
/* `address` completes the exception; its type is NOT_SYNC if there was none. */
void tl_etm4_walk_exception(struct tl_etm4_walk *walk, const struct tl_etm4_packet *packet,
                            const struct tl_etm4_packet *address);
/* As above; used where the packet has no address of its own. */
void tl_etm4_walk_q(struct tl_etm4_walk *walk, const struct tl_etm4_packet *packet,
                    const struct tl_etm4_packet *address);
void tl_etm4_walk_source(struct tl_etm4_walk *walk, const struct tl_etm4_packet *packet);

/* Go on where `from` stands, by one's own cache. */
void tl_etm4_walk_copy(struct tl_etm4_walk *walk, const struct tl_etm4_walk *from);
/* Where it stands, into bytes or from them; by one's own cache then. */
void tl_etm4_walk_state(struct tl_etm4_walk *walk, struct tl_state *state);
/* Will both say the same of the same elements? Both know context and address. */
bool tl_etm4_walk_same(const struct tl_etm4_walk *a, const struct tl_etm4_walk *b);

/* Give memory back if the block cache has grown beyond all reason. Flushes the items first. */
void tl_etm4_walk_trim(struct tl_etm4_walk *walk);

/* A word for an exception's type number, or NULL. Static storage. */
const char *tl_etm4_exception_name(unsigned type, bool m_profile);

#endif
