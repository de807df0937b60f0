/* SPDX-License-Identifier: MIT */
/*
 * What the packets of an Intel PT trace mean together: events, each with the IP and the time it
 * belongs to. A FUP alone announces an asynchronous branch, but behind MODE.TSX it says where the
 * transaction was aborted; what PSB+ says is a status; an overflow ends where the next FUP or
 * TIP.PGE is. Events come in the reference decoder's order, with its errors.
 *
 * For a whole trace in memory. This is the plain form that pt/flow.h is compared with, and the base
 * of the ptxed listing. Plain data: a copy goes on by itself. Not thread-safe.
 *
 * Source: Intel SDM volume 3, Intel Processor Trace, "Packet Definitions", binding of packets.
 */
#ifndef TL_PT_EVENT_H
#define TL_PT_EVENT_H

#include "pt/error.h"

enum tl_pt_event_kind {
    TL_PT_EV_ENABLED,        /* tracing begins at `ip` */
    TL_PT_EV_DISABLED,       /* … ends by the branch to `ip` */
    TL_PT_EV_ASYNC_DISABLED, /* … ends at `from`, where nothing branches; goes on at `ip` */
    TL_PT_EV_ASYNC_BRANCH,   /* an interrupt or the like at `from` leads to `ip` */
    TL_PT_EV_PAGING,         /* packet.pip; binds to the instruction that wrote CR3 */
    TL_PT_EV_ASYNC_PAGING,   /* packet.pip, in force from `ip` on */
    TL_PT_EV_OVERFLOW,       /* packets were lost; tracing goes on at `ip` */
    TL_PT_EV_EXEC_MODE,      /* packet.exec */
    TL_PT_EV_TSX,            /* packet.tsx */
    TL_PT_EV_STOP,
    TL_PT_EV_VMCS,       /* packet.vmcs; binds to the instruction that loaded it */
    TL_PT_EV_ASYNC_VMCS, /* packet.vmcs, in force from `ip` on */
    TL_PT_EV_EXSTOP,
    TL_PT_EV_MWAIT,     /* packet.mwait */
    TL_PT_EV_PWRE,      /* packet.pwre */
    TL_PT_EV_PWRX,      /* packet.pwrx */
    TL_PT_EV_PTWRITE,   /* packet.ptw */
    TL_PT_EV_CBR,       /* packet.cbr */
    TL_PT_EV_MNT,       /* packet.mnt */
    TL_PT_EV_TIP,       /* a branch leads to `ip` */
    TL_PT_EV_TNT,       /* packet.tnt */
    TL_PT_EV_IFLAGS,    /* packet.exec.iflag */
    TL_PT_EV_INTERRUPT, /* packet.cfe.vector; cr2 if has_cr2 */
    TL_PT_EV_IRET,
    TL_PT_EV_SMI,
    TL_PT_EV_RSM,
    TL_PT_EV_SIPI, /* packet.cfe.vector */
    TL_PT_EV_INIT,
    TL_PT_EV_VMENTRY,
    TL_PT_EV_VMEXIT, /* packet.cfe; vmxq, vmxr if has_… */
    TL_PT_EV_SHUTDOWN,
    TL_PT_EV_UINTR, /* packet.cfe.vector */
    TL_PT_EV_UIRET,
    TL_PT_EV_SWINTR, /* packet.cfe.vector */
    TL_PT_EV_SYSCALL,
    TL_PT_EV_TRIG,   /* packet.trig */
    TL_PT_EV_TICK,   /* the time changed; made by whoever follows the program */
    TL_PT_EV_IGNORED /* private: what a FUP or TIP belongs to, and is not told */
};

struct tl_pt_event {
    uint8_t kind; /* enum tl_pt_event_kind */
    bool ip_suppressed;
    bool status;  /* of PSB+: it says again what is in force */
    bool has_tsc; /* wall-clock time is known */
    bool has_cr2, has_vmxq, has_vmxr;
    uint64_t ip, from;
    uint64_t tsc;
    uint64_t cr2, vmxq, vmxr;
    struct tl_pt_packet packet; /* the one that said so */
};

struct tl_pt_event_options {
    bool iflags;                /* events of the interrupt flag */
    bool keep_tcal_on_overflow; /* what is known of cycles holds behind an overflow */
    bool anew_at_psb;           /* what time does not need is forgotten at a PSB: the length of a
                                   cycle where no CYC came since the one before, and time itself
                                   where no TSC ever told it */
};

#define TL_PT_EVENT_QUEUE 32

struct tl_pt_events {
    const struct tl_pt_config *config; /* borrowed */
    struct tl_bytes trace;             /* borrowed */
    struct tl_pt_event_options options;
    size_t next;                /* behind `packet` */
    struct tl_pt_packet packet; /* the one looked at, at its `offset` … */
    enum tl_pt_error failed;    /* … if this is TL_PT_OK; else there is none */
    bool synced, enabled, bound;
    bool looked_behind; /* what comes depends on what is behind `trace` */
    bool mode_known, csl, csd, iflag;
    struct tl_pt_last_ip last_ip;
    struct tl_pt_clock clock;
    uint64_t cycles;    /* of CYC packets, until whoever counts them takes them … */
    bool has_cycles;    /* … if there were any */
    bool counts_cycles; /* there was a CYC since the PSB */
    unsigned n;
    struct {
        uint32_t binds;
        struct tl_pt_event event;
    } queue[TL_PT_EVENT_QUEUE]; /* events that wait for the packet they bind to */
};

/* All borrowed, but for the options. */
void tl_pt_events_init(struct tl_pt_events *events, const struct tl_pt_config *config,
                       struct tl_bytes trace, const struct tl_pt_event_options *options);

/* To the next PSB, and read its PSB+. TL_PT_EOS: there is none. */
enum tl_pt_error tl_pt_events_sync(struct tl_pt_events *events);

/* The next event. An error stays until the next synchronisation. */
enum tl_pt_error tl_pt_events_next(struct tl_pt_events *events, struct tl_pt_event *out);

/* Where in the trace it is: offset of the packet looked at. */
static inline uint64_t tl_pt_events_offset(const struct tl_pt_events *events)
{
    return events->packet.offset;
}

/* ---- private to the parts of the event decoder ---------------------------------------------- */

/* What an event waits for. */
enum { AT_PSBEND = 1, AT_TIP = 2, AT_FUP = 4, AT_FUP_BOUND = 8, AT_EXSTOP = 16, AT_CFE = 32 };

/* A position in the packets, to look ahead. */
struct tl_pt_ahead {
    size_t at;
    struct tl_pt_clock clock;
    struct tl_pt_packet packet;
};

enum tl_pt_error tl_pt_ahead_next(struct tl_pt_events *events, struct tl_pt_ahead *ahead);
struct tl_pt_event *tl_pt_event_queue(struct tl_pt_events *d, enum tl_pt_event_kind kind,
                                      uint32_t binds);
void tl_pt_event_fetch(struct tl_pt_events *d);
/* An OVF packet: *told says that `out` is an event. */
enum tl_pt_error tl_pt_event_overflow(struct tl_pt_events *d, struct tl_pt_event *out, bool *told);

#endif
