/* SPDX-License-Identifier: MIT */
/*
 * Host controller of Open SoC Debug: it keeps track of all participants of the debug interconnect,
 * assigns addresses to host modules, routes DI packets between them and the gateways of devices,
 * and brings up each device that registers. All packets from a device are also passed to the
 * caller, whatever their destination: they are the trace.
 *
 *     gateway ── M GW_REGISTER 0 ─▶ ┌────────────┐ ◀─ M DIADDR_REQUEST ── host module
 *             ◀── M ACK ─────────── │ controller │ ── M 1025 ─▶
 *             ── D packet ────────▶ │            │ ── D packet ─▶      (if it is for 1.1)
 *             ◀── D packet ──────── └────────────┘ ◀─ D packet ──
 *                                         │ every packet of a gateway
 *                                         ▼ sink.packet
 *
 * Messages have the form used by osd-sw's programs: a type frame ("M", "D") and one more. Malformed
 * ones are refused (NACK), or dropped and counted. A gateway asserts on any management message that
 * it has not requested, so it never gets one.
 *
 * In some respects it does more than osd-sw's controller: an address becomes free again when its
 * owner is gone, and so does a subnet; and a gateway that does not know that the controller was
 * restarted is recognised by its packets, which it is asked for.
 *
 * Our own address is 1.0, which is never assigned. Pure: messages in, messages out, the caller's
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
    struct tl_osd_bringup bringup; /* read-only for the caller */
    uint64_t packets;              /* received */
    uint64_t words;
    void *user; /* for use by the sink, initially NULL */

    struct tl_osd_peer *peer; /* this and the following are private */
    struct tl_osd_link *next;
    bool was_enumerated;
};

struct tl_osd_ctl_sink {
    void *context;
    /*
     * Send a message of two frames to the peer with this `id`. TL_UNREACHABLE: the peer is gone.
     * Must not call back.
     */
    int (*send)(void *context, struct tl_bytes id, char type, struct tl_bytes payload);
    void (*opened)(void *context, struct tl_osd_link *link);
    void (*enumerated)(void *context, struct tl_osd_link *link); /* its modules are known */
    /* Receives a packet sent by the device; at least 3 words. */
    void (*packet)(void *context, struct tl_osd_link *link, const uint16_t *words, size_t n);
    /* The gateway is gone; `why` is for the log. The link is freed afterwards. */
    void (*closed)(void *context, struct tl_osd_link *link, const char *why);
    void (*log)(void *context, const char *line);
};

struct tl_osd_ctl_options {
    unsigned start;     /* kinds of modules to activate: TL_OSD_START_… */
    bool reset;         /* hold the cores in reset meanwhile */
    unsigned answer_ms; /* time limit of a register access, 0: the default */
};

struct tl_osd_ctl_counters {
    uint64_t messages;
    uint64_t packets;     /* DI packets received */
    uint64_t routed;      /* DI packets forwarded */
    uint64_t undelivered; /* DI packets without a reachable destination */
    uint64_t malformed;   /* messages dropped */
    uint64_t refused;     /* NACKs sent */
    unsigned gateways;    /* current number */
    unsigned hosts;       /* currently assigned addresses */
};

/* `sink` and `options` are copied. TL_NOMEM. */
TL_MUST_USE int tl_osd_ctl_new(struct tl_osd_ctl **out, const struct tl_osd_ctl_sink *sink,
                               const struct tl_osd_ctl_options *options);
/* Closes all links. Accepts NULL. */
void tl_osd_ctl_free(struct tl_osd_ctl *ctl);

/*
 * Process a message of `n_frames` from the peer with this `id` (1 to 255 bytes), received over the
 * connection `connection`, a number that is unique among the existing ones. TL_NOMEM.
 */
TL_MUST_USE int tl_osd_ctl_message(struct tl_osd_ctl *ctl, struct tl_bytes id, int64_t connection,
                                   const struct tl_bytes *frames, size_t n_frames, int64_t now);
/*
 * Ask the peer with this `id`, from which there was no message, for the vendor of module 0.0: a
 * gateway that registered with an earlier controller passes this on, and is recognised by the
 * device's answer. Not done if subnet 0 has a gateway or while stopping: TL_AGAIN. TL_UNREACHABLE:
 * there is no such peer.
 */
TL_MUST_USE int tl_osd_ctl_ask(struct tl_osd_ctl *ctl, struct tl_bytes id);
/*
 * A connection has ended. Messages received over it before may still follow, until
 * tl_osd_ctl_settle() is called.
 */
void tl_osd_ctl_gone(struct tl_osd_ctl *ctl, int64_t connection);
void tl_osd_ctl_settle(struct tl_osd_ctl *ctl);

/* Time at which to call tl_osd_ctl_tick(), or -1. */
int64_t tl_osd_ctl_due(const struct tl_osd_ctl *ctl);
TL_MUST_USE int tl_osd_ctl_tick(struct tl_osd_ctl *ctl, int64_t now);

/* Deactivate all modules that were activated; no gateway can register from now on. */
TL_MUST_USE int tl_osd_ctl_stop(struct tl_osd_ctl *ctl, int64_t now);
bool tl_osd_ctl_stopped(const struct tl_osd_ctl *ctl);

void tl_osd_ctl_counters(const struct tl_osd_ctl *ctl, struct tl_osd_ctl_counters *out);
/*
 * Call `fn` for each link, including those whose gateway is gone but may still have queued
 * messages.
 */
void tl_osd_ctl_each(struct tl_osd_ctl *ctl, void (*fn)(void *context, struct tl_osd_link *link),
                     void *context);

#endif
