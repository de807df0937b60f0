/* SPDX-License-Identifier: MIT */
/*
 * The host controller of Open SoC Debug: it knows who is where on the debug interconnect, gives
 * addresses to host modules, routes DI packets between them and the gateways of devices, and brings
 * up each device that registers. What a device sends is also handed to the caller, whoever it is
 * for: that is the trace.
 *
 *     gateway ── M GW_REGISTER 0 ─▶ ┌────────────┐ ◀─ M DIADDR_REQUEST ── host module
 *             ◀── M ACK ─────────── │ controller │ ── M 1025 ─▶
 *             ── D packet ────────▶ │            │ ── D packet ─▶      (if it is for 1.1)
 *             ◀── D packet ──────── └────────────┘ ◀─ D packet ──
 *                                         │ every packet of a gateway
 *                                         ▼ sink.packet
 *
 * Messages are as osd-sw's programs send them: a type frame ("M", "D") and one more. Odd ones are
 * refused (NACK), or dropped and counted. A gateway asserts on any management message that it has
 * not asked for, so it never gets one.
 *
 * Here and there it does more than osd-sw's controller: an address is free again when its owner is
 * gone, so is a subnet; and a gateway that does not know that the controller was restarted is
 * recognised by the packets that it brings.
 *
 * Our own address is 1.0, which is never given away. Pure: messages in, messages out, the caller's
 * clock (milliseconds, monotonic). Memory is bounded. Not thread-safe.
 *
 * Source: osd-sw (2020-03-29), hostctrl, gateway, hostmod.
 */
#ifndef TL_OSDHOST_CONTROLLER_H
#define TL_OSDHOST_CONTROLLER_H

#include "base/bytes.h"
#include "osdhost/bringup.h"

#define TL_OSD_HOST_SUBNET 1
#define TL_OSD_HOST_SELF   (TL_OSD_HOST_SUBNET * TL_OSD_LOCALS) /* 1.0 */

struct tl_osd_ctl;

/* A registered gateway: one device's subnet, from registration until it is gone. */
struct tl_osd_link {
    unsigned subnet;
    struct tl_osd_bringup bringup; /* for reading */
    uint64_t packets;              /* received */
    uint64_t words;
    void *user; /* the sink's, NULL at first */

    struct tl_osd_peer *peer; /* private, these */
    struct tl_osd_link *next;
    bool was_enumerated;
};

struct tl_osd_ctl_sink {
    void *context;
    /*
     * Send a message of two frames to the peer that is known by `id`. TL_UNREACHABLE: there is no
     * such peer any more. Must not call back.
     */
    int (*send)(void *context, struct tl_bytes id, char type, struct tl_bytes payload);
    void (*opened)(void *context, struct tl_osd_link *link);
    void (*enumerated)(void *context, struct tl_osd_link *link); /* its modules are known */
    /* A packet that the device sent; at least 3 words. */
    void (*packet)(void *context, struct tl_osd_link *link, const uint16_t *words, size_t n);
    /* The gateway is gone; `why` is for the log. The link is freed afterwards. */
    void (*closed)(void *context, struct tl_osd_link *link, const char *why);
    void (*log)(void *context, const char *line);
};

struct tl_osd_ctl_options {
    unsigned start;     /* kinds of modules to switch on: TL_OSD_START_… */
    bool reset;         /* hold the cores meanwhile */
    unsigned answer_ms; /* how long a register access may take, 0: the usual time */
};

struct tl_osd_ctl_counters {
    uint64_t messages;
    uint64_t packets;     /* DI packets received */
    uint64_t routed;      /* … and passed on */
    uint64_t undelivered; /* … and for nobody who is there */
    uint64_t malformed;   /* messages dropped */
    uint64_t refused;     /* NACKs */
    unsigned gateways;    /* at present */
    unsigned hosts;       /* addresses given away, at present */
};

/* `sink` and `options` are copied. TL_NOMEM. */
TL_MUST_USE int tl_osd_ctl_new(struct tl_osd_ctl **out, const struct tl_osd_ctl_sink *sink,
                               const struct tl_osd_ctl_options *options);
/* Closes all links. NULL is fine. */
void tl_osd_ctl_free(struct tl_osd_ctl *ctl);

struct tl_osd_frame {
    const uint8_t *p;
    size_t n;
};

/*
 * A message of `n_frames` came from the peer known by `id` (1 to 255 bytes), over the connection
 * `connection`, any number that is unique among those that exist. TL_NOMEM.
 */
TL_MUST_USE int tl_osd_ctl_message(struct tl_osd_ctl *ctl, struct tl_bytes id, int64_t connection,
                                   const struct tl_osd_frame *frames, size_t n_frames, int64_t now);
/*
 * A connection has ended. Messages that came over it before may still follow, until
 * tl_osd_ctl_settle() says that there are no more of them.
 */
void tl_osd_ctl_gone(struct tl_osd_ctl *ctl, int64_t connection);
void tl_osd_ctl_settle(struct tl_osd_ctl *ctl);

/* When tl_osd_ctl_tick() is due, or -1. */
int64_t tl_osd_ctl_due(const struct tl_osd_ctl *ctl);
TL_MUST_USE int tl_osd_ctl_tick(struct tl_osd_ctl *ctl, int64_t now);

/* Switch off all modules that were switched on; no gateway can register from now on. */
TL_MUST_USE int tl_osd_ctl_stop(struct tl_osd_ctl *ctl, int64_t now);
bool tl_osd_ctl_stopped(const struct tl_osd_ctl *ctl);

void tl_osd_ctl_counters(const struct tl_osd_ctl *ctl, struct tl_osd_ctl_counters *out);
/* Call `fn` for each link, also those whose gateway has gone but may still have messages here. */
void tl_osd_ctl_each(struct tl_osd_ctl *ctl, void (*fn)(void *context, struct tl_osd_link *link),
                     void *context);

#endif
