/* SPDX-License-Identifier: MIT */
/*
 * Which connections to a ROUTER socket have not said anything: a gateway that registered with an
 * earlier server connects again by itself, but says nothing as long as its device is switched off.
 * A ROUTER tells of a peer by its first message only, so that its id is found by counting: libzmq
 * numbers peers without an id of their own (as all of osd-sw are) one after the other, from the
 * number that our own first connection gets. Should another version do otherwise, nobody is found.
 *
 * A peer that registers, or asks for an address, does so at once, and aborts on anything but the
 * answer. So nobody is looked for until TL_OSD_SILENT_MS after the latest connection.
 *
 * Pure: the caller's clock, in milliseconds. Not thread-safe.
 *
 * Source: libzmq 4.3.4, src/router.cpp, identify_peer().
 */
#ifndef TL_OSDHOST_SILENT_H
#define TL_OSDHOST_SILENT_H

#include "base/bytes.h"

#include <stdbool.h>

#define TL_OSD_SILENT_MS   2000
#define TL_OSD_SILENT_KEPT 1024 /* half of it: latest connections that are looked for */

struct tl_osd_silent {
    bool counts; /* ids are numbers as expected */
    uint32_t first;
    uint32_t joined; /* connections so far: numbers are first + 1 to first + joined */
    uint32_t at;     /* the connection looked at next, 1 is the first one */
    int64_t due;     /* -1: nobody is looked for */
    uint8_t spoken[TL_OSD_SILENT_KEPT / 8];
    uint8_t id[5];
};

/* `id` is the one of a connection of our own. */
void tl_osd_silent_init(struct tl_osd_silent *s, struct tl_bytes id);
void tl_osd_silent_joined(struct tl_osd_silent *s, int64_t now);
/* There was a message from this peer, or it need not be looked for any more. */
void tl_osd_silent_spoke(struct tl_osd_silent *s, struct tl_bytes id);
/* Time at which to call tl_osd_silent_next(), or -1. */
int64_t tl_osd_silent_due(const struct tl_osd_silent *s);
/*
 * The id of a peer that may be there and has not spoken; borrowed until the next call. Call it
 * until it returns false.
 */
bool tl_osd_silent_next(struct tl_osd_silent *s, int64_t now, struct tl_bytes *id);

#endif
