/* SPDX-License-Identifier: MIT */
/*
 * Where two decodes of one stream meet: one began at an A-Sync in the middle, knowing nothing, the
 * other came from before. Once both are in the same state behind the same packet they will say the
 * same for ever.
 *
 * The one that began there notes the first such point that is worth trying: everything that the
 * trace says again behind trace info (context, address) has been said, and what was speculative
 * before has been resolved. The other one compares there. That their packets are the same up to
 * there follows from the A-Sync, which both must have seen at the same place: behind it they read
 * the same bytes, and trace info resets the registers that packets are relative to.
 *
 * Not thread-safe; one thread may note a seam, and another one, later, compare.
 */
#ifndef TL_ETM4_SEAM_H
#define TL_ETM4_SEAM_H

#include "etm4/flow.h"
#include "flow/batch.h"

struct tl_etm4_seam {
    uint64_t async;             /* offset of the A-Sync that the second decode began at */
    uint64_t at;                /* offset of the packet behind which they may meet */
    bool settled;               /* `at` and `state` are there */
    bool aligned;               /* the first decode has seen that A-Sync, too */
    bool met;                   /* the states are the same */
    struct tl_etm4_flow *state; /* as made by tl_etm4_flow_new() without an image; borrowed */
};

/*
 * Note `seam` (state given) while packets are pushed from the A-Sync on. All items in front of the
 * seam have been delivered once it is settled. NULL: no more.
 */
void tl_etm4_flow_note(struct tl_etm4_flow *flow, struct tl_etm4_seam *seam);

/*
 * Compare with a settled seam while packets are pushed. If they meet, the push ends there with
 * TL_AGAIN, all items delivered and seam->met set. Else the decode goes on as if nothing had been
 * asked. NULL: no more.
 */
void tl_etm4_flow_meet(struct tl_etm4_flow *flow, struct tl_etm4_seam *seam);

/*
 * Make `to` go on where `from` stands. Sinks, memory and what is pending in batches stay what they
 * are. TL_NOMEM leaves `to` of no use but to be copied to again.
 */
TL_MUST_USE int tl_etm4_flow_copy(struct tl_etm4_flow *to, const struct tl_etm4_flow *from);

/* Begin anew, as just made; decoded blocks are kept. */
void tl_etm4_flow_reset(struct tl_etm4_flow *flow);

/*
 * Where items are put from now on; borrowed. To be said before a push or by the sink, which may
 * thus keep a batch as it is.
 */
void tl_etm4_flow_room(struct tl_etm4_flow *flow, struct tl_item_room *room);

/*
 * Bytes of decoded blocks at most, looked at between batches; SIZE_MAX: blocks that were delivered
 * must stay. And how many there are now; over `limit` they are dropped.
 */
void tl_etm4_flow_limit(struct tl_etm4_flow *flow, size_t limit);
size_t tl_etm4_flow_blocks(const struct tl_etm4_flow *flow);
void tl_etm4_flow_trim(struct tl_etm4_flow *flow, size_t limit);

#endif
