/* SPDX-License-Identifier: MIT */
/*
 * A simulated Open SoC Debug device: modules with registers that a host enumerates and switches on,
 * and that send events while they are on. It has no sockets: packets in, datagrams out.
 *
 * Not thread-safe except for the atomic members.
 *
 * Source: Open SoC Debug documentation (2020-03-28) and osd-hw; where they differ, osd-hw.
 */
#ifndef TL_SIM_OSD_DEVICE_H
#define TL_SIM_OSD_DEVICE_H

#include "sim/osd_encoder.h"

#include <stdatomic.h>

#define TL_SIM_OSD_MODULES 16

struct tl_sim_osd_device {
    struct tl_sim_osd sent; /* everything sent, as datagrams, with its meaning */
    unsigned subnet;
    unsigned width; /* of addresses and values */
    size_t n_modules;
    struct {
        uint8_t type;
        uint16_t cs, event_dest;
        uint16_t starts, stops; /* how often the module was switched on and off */
    } modules[TL_SIM_OSD_MODULES];
    atomic_bool deaf;   /* does not answer requests */
    uint16_t sysrst;    /* last value written */
    uint16_t requests;  /* received */
    atomic_uint active; /* modules that are on */
    uint64_t events;    /* sent so far */
    uint64_t random;
    uint32_t time;
    uint64_t pc;
};

/*
 * A system with SCM, CTM, STM, DEM-UART, MAM and CDM (locals 0 to 5). `width`: 16, 32 or 64;
 * `max_pkt_len` in words, 12 or more.
 */
void tl_sim_osd_device_init(struct tl_sim_osd_device *d, unsigned subnet, unsigned width,
                            unsigned max_pkt_len, uint64_t seed);
void tl_sim_osd_device_fini(struct tl_sim_osd_device *d);

/* Process a received packet; the answer to a register access is appended to `sent`. TL_NOMEM. */
TL_MUST_USE int tl_sim_osd_device_take(struct tl_sim_osd_device *d, const uint16_t *words,
                                       size_t n);

/* The active modules send up to `n` events. TL_NOMEM. */
TL_MUST_USE int tl_sim_osd_device_run(struct tl_sim_osd_device *d, unsigned n);

#endif
