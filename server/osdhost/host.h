/* SPDX-License-Identifier: MIT */
/*
 * The Open SoC Debug host controller on ZeroMQ: a thread with a ROUTER socket, running the protocol
 * of osdhost/controller.h, and a trace in the lake for each gateway that registers.
 *
 * Functions are for the thread that created it, tl_osd_host_metrics() for any thread. `log` is
 * called from the controller's thread.
 */
#ifndef TL_OSDHOST_HOST_H
#define TL_OSDHOST_HOST_H

#include "base/buf.h"
#include "lake_ingest.h"

struct tl_lake;

#define TL_OSD_HOST_PORT 9537

struct tl_osd_host;

struct tl_osd_host_options {
    const char *address; /* ADDR:PORT as for tl_address_parse; port 0: any free one */
    const char *rig;     /* for subnet 0; "RIG-N" for subnet N. Copied, like `setup` */
    const char *setup;   /* INI text of format di */
    enum tl_shards shards;
    enum tl_index index;
    unsigned start;     /* TL_OSD_START_… */
    bool reset;         /* hold the cores in reset during activation */
    unsigned answer_ms; /* 0: the default */
};

/* Bind. `lake` is borrowed. TL_USAGE (the address), TL_IO, TL_NOMEM. */
TL_MUST_USE int tl_osd_host_new(struct tl_osd_host **out, struct tl_lake *lake,
                                const struct tl_osd_host_options *options,
                                void (*log)(const char *line), struct tl_fail *fail);
/* "tcp://127.0.0.1:9537", with the actual port. */
const char *tl_osd_host_url(const struct tl_osd_host *host);
/* Start serving. TL_NOMEM. */
TL_MUST_USE int tl_osd_host_start(struct tl_osd_host *host, struct tl_fail *fail);
/* Deactivate what was activated (at most two seconds), complete the traces, close. Accepts NULL. */
void tl_osd_host_free(struct tl_osd_host *host);

/* Append Prometheus text; nothing if `host` is NULL. */
TL_MUST_USE int tl_osd_host_metrics(struct tl_osd_host *host, struct tl_buf *out);

#endif
