/* SPDX-License-Identifier: MIT */
/*
 * The third hot loop of the de-framer: CoreSight frames of several sources, dealt out so that each
 * source's bytes lie together, whoever spoke between them. Four frames, 64 bytes, are a group;
 * which bytes of a group are a source's share is one bit mask. From the masks, which are made when
 * they are asked for, follows the place of each byte (frame/run.h).
 */
#ifndef TL_FRAME_DEAL_H
#define TL_FRAME_DEAL_H

#include "frame/lineup.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TL_DEAL_GROUPS                                                                             \
    TL_LINEUP_GROUPS      /* at once: what is written stays in the first-level cache */
#define TL_DEAL_SHARES 16 /* sources at once */
#define TL_DEAL_BYTES  (TL_DEAL_GROUPS * 60) /* of one share, at most */
#define TL_DEAL_SLACK  64 /* bytes that may be written behind the last one of a share */

/* What one source has got. */
struct tl_share {
    size_t n;       /* bytes */
    uint16_t first; /* if there are any: which byte of the groups is the first one */
    uint8_t id;
    uint64_t mask[TL_DEAL_GROUPS]; /* see tl_deal_masks() */
    uint8_t bytes[TL_DEAL_BYTES + TL_DEAL_SLACK];
};

struct tl_deal {
    uint64_t wanted[2]; /* sources that may get a share: bit id % 64 of word id / 64 */
    uint8_t id;         /* in force in front of the group dealt next; known */
    size_t quiet;       /* stop behind so many groups without an ID */
    size_t n_shares;    /* in the order in which the sources spoke; some may have no bytes */
    struct tl_share share[TL_DEAL_SHARES + 1]; /* the last one is private */

    /* Private: of what masks are made. */
    bool masked;
    uint8_t said_first;    /* in force in front of all, as it stands in a frame */
    struct tl_lined lined; /* its numbers are set, 0 at first: how to begin the next time */
};

/*
 * Begin with no shares, and deal groups from `in`, at most `groups`, which is at most
 * TL_DEAL_GROUPS. Stops in front of a group with ff in an even byte, with a source that is not
 * wanted, or with one too many, and behind `quiet` groups without an ID. Bytes of IDs that
 * are no sources are left out. Returns the groups dealt. Pure, thread-safe.
 */
typedef size_t tl_deal(struct tl_deal *deal, const uint8_t *in, size_t groups);

/* Make `mask` of all shares, if it has not been: of each group dealt, bit i is its byte i. */
void tl_deal_masks(struct tl_deal *deal);

/* The best variant for `level`; all give the same result. Never NULL. */
tl_deal *tl_deal_variant(enum tl_cpu level);

#endif
