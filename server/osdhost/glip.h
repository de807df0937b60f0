/* SPDX-License-Identifier: MIT */
/*
 * Bring-up of a device that is reached without a gateway: register accesses between the datagrams
 * of a GLIP byte stream, in both directions.
 *
 * Answers are recognised by their complete header at any position, so that neither a lost word nor
 * earlier events matter; their byte order reveals the device's. Requests are sent in the order of
 * the device's first word, and before it has sent any, in the configured one.
 *
 * Pure: bytes in, bytes out, the caller's clock. Not thread-safe. tl_osd_glip_take() costs nothing
 * while no answer is expected.
 *
 * Source: Open SoC Debug documentation, "Host Interface Module"; TUM-LIS/glip, backend_tcp.
 */
#ifndef TL_OSDHOST_GLIP_H
#define TL_OSDHOST_GLIP_H

#include "base/buf.h"
#include "base/bytes.h"
#include "osdhost/bringup.h"

#define TL_OSD_GLIP_HOST 0x0401 /* our address: the first one that a host controller assigns */

struct tl_osd_glip {
    struct tl_osd_bringup bringup; /* the caller sets its `start`, `reset`, `log` */
    bool little_endian;            /* to be set before the first byte; GLIP is big-endian */
    bool order_known;              /* seen from the device */
    uint8_t tail[16];              /* the most recent bytes, which may be the begin of an answer */
    size_t n_tail;
};

void tl_osd_glip_init(struct tl_osd_glip *g);
void tl_osd_glip_fini(struct tl_osd_glip *g);

/* Process bytes from the device. */
void tl_osd_glip_take(struct tl_osd_glip *g, struct tl_bytes bytes, int64_t now);
/* Append the bytes to send now. TL_NOMEM. */
TL_MUST_USE int tl_osd_glip_next(struct tl_osd_glip *g, struct tl_buf *out, int64_t now);

#endif
