/* SPDX-License-Identifier: MIT */
/*
 * The simulated device (sim/osd_device.h) on real sockets, as the programs of osd-sw present it: as
 * a gateway at the ZeroMQ socket of a host controller, or as the device side of GLIP over TCP.
 *
 * Functions block; `plan->stop` may be set from another thread.
 */
#ifndef TL_TESTS_OSD_DEVICE_NET_H
#define TL_TESTS_OSD_DEVICE_NET_H

#include "sim/osd_device.h"

struct osd_plan {
    atomic_uint events; /* to send once the modules are on; then only answer requests */
    unsigned rate;      /* events per second; 0: as fast as possible */
    bool until_off;     /* end when the modules have been switched off again */
    bool vanish;        /* gateway: close the connection at the end without unregistering */
    bool cut;           /* GLIP: end in the middle of a datagram */
    bool strict;        /* GLIP: use all bits of a length word, not only hardware's five */
    atomic_bool stop;   /* end */
    atomic_bool done;   /* all events are sent */
};

/*
 * Register with the controller at `endpoint`, then carry out the plan. TL_DENIED: refused;
 * TL_UNREACHABLE: no answer.
 */
int osd_gateway_run(struct tl_sim_osd_device *d, const char *endpoint, struct osd_plan *plan);

struct osd_glip {
    int data, control; /* listening */
    uint16_t port;     /* of `data`; `control` has the next one */
};

/* Listen on two consecutive ports; `port` 0: any. TL_IO. */
int osd_glip_listen(struct osd_glip *g, uint16_t port);
/* Accept connections on both ports until a pair is usable, then carry out the plan. */
int osd_glip_run(struct tl_sim_osd_device *d, struct osd_glip *g, struct osd_plan *plan);
void osd_glip_close(struct osd_glip *g);
/* The same for a device that connects to a port of this machine. */
int osd_glip_dial(struct tl_sim_osd_device *d, uint16_t port, struct osd_plan *plan);

#endif
