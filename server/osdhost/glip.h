/* SPDX-License-Identifier: MIT */
/*
 * Bringing up a device that is reached without a gateway: register accesses between the datagrams
 * of a GLIP byte stream, in both directions.
 *
 * Answers are found by their whole header wherever they are, so that neither a lost word nor
 * events from before matter; in which byte order they come tells the device's. Requests go out in
 * the order that the device's first word shows, and before it has sent any in the one that is set.
 *
 * Pure: bytes in, bytes out, the caller's clock. Not thread-safe. tl_osd_glip_take() costs nothing
 * while no answer is awaited.
 *
 * Source: Open SoC Debug documentation, "Host Interface Module"; TUM-LIS/glip, backend_tcp.
 */
#ifndef TL_OSDHOST_GLIP_H
#define TL_OSDHOST_GLIP_H

#include "base/buf.h"
#include "base/bytes.h"
#include "osdhost/bringup.h"

#define TL_OSD_GLIP_HOST 0x0401 /* our address: the first that a host controller gives away */

struct tl_osd_glip {
    struct tl_osd_bringup bringup; /* its `start`, `reset`, `log` are the caller's to set */
    bool little_endian;            /* set it before the first byte; GLIP has big-endian */
    bool order_known;              /* the device has shown it */
    uint8_t tail[16];              /* the newest bytes, where an answer may have begun */
    size_t n_tail;
};

void tl_osd_glip_init(struct tl_osd_glip *g);
void tl_osd_glip_fini(struct tl_osd_glip *g);

/* Bytes came from the device. */
void tl_osd_glip_take(struct tl_osd_glip *g, struct tl_bytes bytes, int64_t now);
/* Append what is to be sent now. TL_NOMEM. */
TL_MUST_USE int tl_osd_glip_next(struct tl_osd_glip *g, struct tl_buf *out, int64_t now);

#endif
