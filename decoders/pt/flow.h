/* SPDX-License-Identifier: MIT */
/*
 * Convert Intel PT packets to flow items as they arrive. TNT outcomes, branch targets and time,
 * which make up most of a trace, are taken from the packetizer's columns and followed by the
 * walker; all other packets first become events (pt/event.h), each applied at the instruction it
 * belongs to.
 *
 * Where the trace contradicts the program there is a gap, and the flow resumes at the next address
 * in the trace; after invalid packets it resumes at the next PSB. The same bytes give the same
 * items for any chunking. Not thread-safe.
 *
 * Source: Intel SDM volume 3, Intel Processor Trace.
 */
#ifndef TL_PT_FLOW_H
#define TL_PT_FLOW_H

#include "base/buf.h"
#include "decode/ops.h"
#include "flow/walker.h"
#include "isa/x86.h"
#include "pt/event.h"
#include "pt/packetizer.h"

struct tl_pt_flow;

/* Receive the extent of undecodable bytes; as in decode/ops.h. */
typedef int tl_pt_loss(void *context, const char *reason, uint64_t offset, uint64_t bytes);

/* Create a decoder. `config` and `image` (frozen; may be NULL) are borrowed. Items and losses go to
 * `context`. `paths`: the sink accepts PATH items. Returns TL_NOMEM. */
TL_MUST_USE int tl_pt_flow_new(struct tl_pt_flow **out, const struct tl_pt_config *config,
                               const struct tl_image *image, tl_item_sink *items, tl_pt_loss *loss,
                               void *context, bool paths);
void tl_pt_flow_free(struct tl_pt_flow *flow);

/* Reset to the initial state, but keep decoded blocks. Undelivered items are dropped. */
void tl_pt_flow_reset(struct tl_pt_flow *flow);
struct tl_walker *tl_pt_flow_walker(struct tl_pt_flow *flow);

/* Process packets found by the packetizer. Returns TL_NOMEM, or what a sink returned. */
TL_MUST_USE int tl_pt_flow_tape(struct tl_pt_flow *flow, const struct tl_pt_tape *tape,
                                const struct tl_pt_piece *piece);
/* Undecodable bytes start at `offset` and last until the next PSB. */
TL_MUST_USE int tl_pt_flow_bad(struct tl_pt_flow *flow, uint64_t offset);

/* Call between pieces: file offsets of all further data are larger by `bytes`. */
void tl_pt_flow_move(struct tl_pt_flow *flow, uint64_t bytes);
/* Apply information from outside the trace (decode/ops.h), between pieces. Once it has set a
 * context, PIP and VMCS packets no longer do. That context is the host's: while PIP.NR says that a
 * guest runs, its context ID is reported as VMID, and only memory bound to that is mapped; its
 * VMID, if it has one, is the process in the guest, and reported as context ID. Returns TL_NOMEM,
 * or what a sink returned. */
TL_MUST_USE int tl_pt_flow_notice(struct tl_pt_flow *flow, const struct tl_stream_notice *notice);

/* Deliver pending items. */
TL_MUST_USE int tl_pt_flow_flush(struct tl_pt_flow *flow);
/* End of input; `end` is the offset after the last byte. Delivers all items. */
TL_MUST_USE int tl_pt_flow_finish(struct tl_pt_flow *flow, uint64_t end);

/* Save or restore the decoder's state. Call only right after a flush. */
void tl_pt_flow_state(struct tl_pt_flow *flow, struct tl_state *state);

/* ---- private to the parts of the flow decoder ------------------------------------------------ */

#define TL_PT_FLOW_HELD ((size_t)1 << 20) /* limit of bytes kept until more arrive */

struct tl_pt_flow {
    const struct tl_pt_config *config;
    tl_pt_loss *loss;
    void *context;
    struct tl_walker walker;
    /* last IP, clock, pending events; its trace is the bytes currently available */
    struct tl_pt_events events;
    uint64_t base;         /* file offset of the first available byte */
    uint64_t anchor;       /* file offset of the last packet other than TNT */
    bool upper;            /* the mode was reported for the upper half of the address space */
    bool enabled;          /* tracing is enabled at the walker's position */
    bool lost;             /* waiting for a PSB */
    uint64_t lost_at;      /* offset from which bytes are lost */
    uint8_t isa;           /* enum tl_isa; TL_ISA_NONE: unknown */
    uint64_t reported_tsc; /* time of the last TIME item */
    uint64_t beside;       /* later time given from outside the trace; 0: none */
    bool has_time;         /* the clock may have advanced since the last TIME item */
    bool context_reported; /* the context was set from outside the trace */
    bool is_guest;         /* VMX non-root operation (PIP.NR) */
    /* If context_reported: the last context set; the host's, if is_guest. */
    struct tl_image_context host;
    /* Outcomes after an indirect branch whose TIP is deferred; the oldest in bit 0. */
    uint64_t outcomes;
    uint8_t n_outcomes;
    /* The instruction executed last is one that further events may bind to. */
    bool postponed;
    bool strayed;       /* instructions executed since the last IP packet are not counted by TRIG */
    uint8_t bound;      /* kinds of events already bound to it (bit mask): each binds once */
    struct tl_buf held; /* bytes that cannot be decoded before more arrive */
    struct tl_item_batch out;
};

/*
 * Reverse the lowest `n` (1..63) bits of `word`: from newest outcome in bit 0 to oldest in bit 0.
 */
static inline uint64_t tl_pt_oldest_first(uint64_t word, unsigned n)
{
    uint64_t v = word << (64 - n);
    v = (v >> 1 & 0x5555555555555555) | (v & 0x5555555555555555) << 1;
    v = (v >> 2 & 0x3333333333333333) | (v & 0x3333333333333333) << 2;
    v = (v >> 4 & 0x0f0f0f0f0f0f0f0f) | (v & 0x0f0f0f0f0f0f0f0f) << 4;
    return __builtin_bswap64(v);
}

/* Does a branch to `ip` keep the current mode? */
static inline bool tl_pt_flow_keeps_mode(const struct tl_pt_flow *f, uint64_t ip)
{
    return f->isa == TL_ISA_X64 && (ip >> 63) == f->upper && f->walker.isa == TL_ISA_X64;
}

/* Apply a context given from outside the trace, at file offset `offset`. */
void tl_pt_flow_host(struct tl_pt_flow *f, const struct tl_image_context *host, uint64_t offset);
/* Apply an event at file offset `offset`. */
void tl_pt_flow_event(struct tl_pt_flow *f, const struct tl_pt_event *event, uint64_t offset);
/* Follow `n` (1..64) outcomes, the oldest in bit 0. */
void tl_pt_flow_outcomes(struct tl_pt_flow *f, uint64_t bits, unsigned n, uint64_t offset);
/* Follow a branch to `ip`. */
void tl_pt_flow_tip(struct tl_pt_flow *f, uint64_t ip, uint64_t offset);

/* Tell that times begin again, in front of what is told of later bytes. */
void tl_pt_flow_tell_restart(struct tl_pt_flow *f);

/* Append CYCLES and TIME items if cycles or time have advanced. */
static inline void tl_pt_flow_report_time(struct tl_pt_flow *f, uint64_t offset)
{
    const struct tl_pt_time *const t = &f->events.clock.time;
    if (f->events.has_cycles)
        tl_item_batch_value(&f->out, TL_ITEM_CYCLES, f->events.cycles, offset);
    if (t->have_tsc && t->tsc != f->reported_tsc) {
        tl_walker_estimate(&f->walker, t->tsc, t->fell, f->reported_tsc, offset);
        if (t->fell)
            tl_pt_flow_tell_restart(f);
        f->events.clock.time.fell = false;
        f->reported_tsc = t->tsc;
        f->beside = t->tsc < f->beside ? f->beside : 0;
    }
    f->events.cycles = 0;
    f->has_time = f->events.has_cycles = false;
}

#endif
