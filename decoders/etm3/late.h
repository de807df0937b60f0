/* SPDX-License-Identifier: MIT */
/*
 * Values of data trace that are sent late. An access whose value is still to come stops the packets
 * behind it until the value is there, so that the access is told as a whole and with its
 * instruction. If the value does not come within TL_ETM3_LATE_MAX packets, or the trace unit begins
 * anew, the access is told as it was sent. Plain data; not thread-safe.
 *
 * Source: Arm IHI0014Q 7.7, "out-of-order data".
 */
#ifndef TL_ETM3_LATE_H
#define TL_ETM3_LATE_H

#include "base/state.h"
#include "etm3/packet.h"

#define TL_ETM3_LATE_MAX 240u

struct tl_etm3_late {
    uint8_t n;      /* packets that wait; 0: nothing does */
    uint8_t awaits; /* the tags, 1 to 3, whose values are to come, as bits */
    uint8_t at[4];  /* by tag: the index of the access that awaits it */
    struct tl_etm3_packet v[TL_ETM3_LATE_MAX];
};

/* Add a packet of an ETMv3 that traces values. True: it waits, or was a value that is now part of
 * the packet that waited for it. False: it is to be told, behind all that waits. */
bool tl_etm3_late_add(struct tl_etm3_late *late, const struct tl_etm3_packet *packet);
/* How many packets, from the first one on, wait no longer. */
unsigned tl_etm3_late_ready(const struct tl_etm3_late *late);
/* Forget the first `n` of them, which were told. */
void tl_etm3_late_drop(struct tl_etm3_late *late, unsigned n);
/* Save or load. */
void tl_etm3_late_state(struct tl_etm3_late *late, struct tl_state *state);

#endif
