/* SPDX-License-Identifier: MIT */
/*
 * The Open SoC Debug host controller on ZeroMQ: a thread with a ROUTER socket, the protocol of
 * osdhost/controller.h behind it, and a trace in the lake for each gateway that registers.
 *
 * Functions are for the thread that made it, tl_osd_host_metrics() for any. `log` is called from
 * the controller's thread.
 */
#ifndef TL_OSDHOST_HOST_H
#define TL_OSDHOST_HOST_H

#include "lake.h"

#define TL_OSD_HOST_PORT 9537

struct tl_osd_host;

struct tl_osd_host_options {
    const char *address; /* ADDR:PORT as of tl_address_parse; port 0: any free one */
    const char *rig;     /* of subnet 0; "RIG-N" of subnet N. Copied, as is `setup` */
    const char *setup;   /* INI text of format di */
    enum tl_shards shards;
    unsigned start;     /* TL_OSD_START_… */
    bool reset;         /* hold the cores while modules are switched on */
    unsigned answer_ms; /* 0: the usual time */
};

/* Bind. `lake` is borrowed. TL_USAGE (the address), TL_IO, TL_NOMEM. */
TL_MUST_USE int tl_osd_host_new(struct tl_osd_host **out, struct tl_lake *lake,
                                const struct tl_osd_host_options *options,
                                void (*log)(const char *line), struct tl_fail *fail);
/* "tcp://127.0.0.1:9537", with the true port. */
const char *tl_osd_host_url(const struct tl_osd_host *host);
/* Begin to serve. TL_NOMEM. */
TL_MUST_USE int tl_osd_host_start(struct tl_osd_host *host, struct tl_fail *fail);
/*
 * Switch off what was switched on (two seconds at most), complete the traces, close. NULL is fine.
 */
void tl_osd_host_free(struct tl_osd_host *host);

/* Append Prometheus text. NULL: nothing. */
TL_MUST_USE int tl_osd_host_metrics(struct tl_osd_host *host, struct tl_buf *out);

#endif
