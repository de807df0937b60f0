/* SPDX-License-Identifier: MIT */
/*
 * Translate committed elements into calls of the walker: where the core is and what it executed.
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
    bool is1; /* the last address had the IS1 (T32) form */
    bool m_profile;
};

/* `image` is borrowed and may be NULL. Release with tl_walker_fini(). Returns TL_NOMEM. */
TL_MUST_USE int tl_etm4_walk_init(struct tl_etm4_walk *walk, const struct tl_etm4_config *config,
                                  const struct tl_image *image, struct tl_item_batch *out);

/* Process elements, in order. Offsets are those of their packets. */
void tl_etm4_walk_trace_on(struct tl_etm4_walk *walk, uint64_t offset);
void tl_etm4_walk_trace_info(struct tl_etm4_walk *walk);
void tl_etm4_walk_context(struct tl_etm4_walk *walk, const struct tl_etm4_packet *packet);
void tl_etm4_walk_address(struct tl_etm4_walk *walk, const struct tl_etm4_packet *packet);
/* An unknown count is reported as 0. */
void tl_etm4_walk_cycles(struct tl_etm4_walk *walk, const struct tl_etm4_packet *packet);

/* Atoms of consecutive packets, joined: up to 64 are treated as one packet at the offset of the
 * first. Which ones are joined does not depend on chunking. */
struct tl_etm4_joined {
    uint64_t atoms; /* the oldest in bit 0 */
    uint64_t offset;
    unsigned n;
    unsigned reported; /* atoms preceding these that were executed at the end of an earlier chunk */
};

/* Join the atom packets [k, end) of a tape. Returns the index of the first one that does not fit,
 * or `end`. */
size_t tl_etm4_join(struct tl_etm4_joined *joined, const struct tl_etm4_tape *tape, size_t k,
                    size_t end);

/*
 * Fast path over a tape: continues while packets are committed immediately and depend only on the
 * current location, as in most of a trace. Atoms at the end of the tape stay joined, since those of
 * the next tape may belong to them.
 */
void tl_etm4_walk_tape(struct tl_etm4_walk *walk, const struct tl_etm4_tape *tape,
                       const struct tl_etm4_tape_marks *marks, struct tl_etm4_tape_place *place,
                       struct tl_etm4_joined *joined);
/* An exception return: the return stack does not predict the branch in front of it. */
void tl_etm4_walk_return(struct tl_etm4_walk *walk, uint64_t offset);
/* `address` completes the exception; its type is NOT_SYNC if there was none. */
void tl_etm4_walk_exception(struct tl_etm4_walk *walk, const struct tl_etm4_packet *packet,
                            const struct tl_etm4_packet *address);
/* `address` as above; used if the packet has no address of its own. */
void tl_etm4_walk_q(struct tl_etm4_walk *walk, const struct tl_etm4_packet *packet,
                    const struct tl_etm4_packet *address);
void tl_etm4_walk_source(struct tl_etm4_walk *walk, const struct tl_etm4_packet *packet);

/* Save or restore the state, except what the walker saves itself. */
void tl_etm4_walk_state(struct tl_etm4_walk *walk, struct tl_state *state);
/* Append an EXCEPTION item with the number and the name of a type that the trace reports. */
struct tl_item *tl_etm4_add_exception(const struct tl_walker *walker, unsigned type, bool m_profile,
                                      uint64_t offset);

#endif
