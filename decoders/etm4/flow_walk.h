/* SPDX-License-Identifier: MIT */
/*
 * What each committed element says of where the core is and what it executed, for the walker.
 * Not thread-safe.
 *
 * Source: Arm IHI0064H chapters 2 and 5; Arm DDI0487 D5 and D6 (ETE).
 */
#ifndef TL_ETM4_FLOW_WALK_H
#define TL_ETM4_FLOW_WALK_H

#include "etm4/config.h"
#include "etm4/tape.h"
#include "flow/walker.h"

struct tl_etm4_walk {
    struct tl_walker walker;
    bool sf;  /* the context is AArch64 */
    bool is1; /* the last address was of the T32 form */
    bool m_profile;
};

/* `image` is borrowed, may be NULL. Ended by tl_walker_fini(). TL_NOMEM. */
TL_MUST_USE int tl_etm4_walk_init(struct tl_etm4_walk *walk, const struct tl_etm4_config *config,
                                  const struct tl_image *image, struct tl_item_batch *out);

/* Elements, in order. Offsets are those of their packets. */
void tl_etm4_walk_trace_on(struct tl_etm4_walk *walk, uint64_t offset);
void tl_etm4_walk_trace_info(struct tl_etm4_walk *walk);
void tl_etm4_walk_context(struct tl_etm4_walk *walk, const struct tl_etm4_packet *packet);
void tl_etm4_walk_address(struct tl_etm4_walk *walk, const struct tl_etm4_packet *packet);
/* An unknown count is told as 0. */
void tl_etm4_walk_cycles(struct tl_etm4_walk *walk, const struct tl_etm4_packet *packet);

/* Atoms of packets one behind another: up to 64 count as those of one packet, the first. Which ones
 * do does not depend on where the bytes were cut into pieces. */
struct tl_etm4_joined {
    uint64_t atoms; /* the oldest in bit 0 */
    uint64_t offset;
    unsigned n;
    unsigned told; /* atoms in front of these that were executed already, when a piece ended */
};

/* Join the atom packets [k, end) of a tape. Returns the first one that there is no room for, or
 * `end`. */
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

/* Where it stands, into bytes or from them; by one's own cache then. */
void tl_etm4_walk_state(struct tl_etm4_walk *walk, struct tl_state *state);
/* A word for an exception's type number, or NULL. Static storage. */
const char *tl_etm4_exception_name(unsigned type, bool m_profile);

#endif
