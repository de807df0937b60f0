/* SPDX-License-Identifier: MIT */
/*
 * The simulated device (sim/osd_device.h) on real sockets, as osd-sw's programs would show it: a
 * gateway at a host controller's ZeroMQ socket, or the device's side of GLIP over TCP.
 *
 * Functions block; `plan->stop` may be set from another thread.
 */
#ifndef TL_TESTS_OSD_DEVICE_NET_H
#define TL_TESTS_OSD_DEVICE_NET_H

#include "sim/osd_device.h"

struct osd_plan {
    unsigned events;  /* to send once the modules are on; then only answer */
    unsigned rate;    /* events per second, 0: as fast as it goes */
    bool until_off;   /* end when the modules have been switched off again */
    bool vanish;      /* gateway: end by closing the connection, without a word */
    bool cut;         /* GLIP: end amid a datagram */
    bool strict;      /* GLIP: all bits of a length count, not the five that hardware looks at */
    atomic_bool stop; /* end */
    atomic_bool done; /* the events are sent */
};

/*
 * Register with the controller at `endpoint`, then do what the plan says. TL_DENIED: refused;
 * TL_UNREACHABLE: no answer.
 */
int osd_gateway_run(struct tl_sim_osd_device *d, const char *endpoint, struct osd_plan *plan);

struct osd_glip {
    int data, control; /* listening */
    uint16_t port;     /* of data; control has the next one */
};

/* Listen on two ports that follow each other; `port` 0: any. TL_IO. */
int osd_glip_listen(struct osd_glip *g, uint16_t port);
/* Take one connection of each, or more until one makes sense, then do what the plan says. */
int osd_glip_run(struct tl_sim_osd_device *d, struct osd_glip *g, struct osd_plan *plan);
void osd_glip_close(struct osd_glip *g);
/* The same bytes from a device that connects to us, at a port of this machine. */
int osd_glip_dial(struct tl_sim_osd_device *d, uint16_t port, struct osd_plan *plan);

#endif
