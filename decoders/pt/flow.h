/* SPDX-License-Identifier: MIT */
/*
 * Intel PT packets to flow items, as they come. Outcomes, branch targets and time, which most of a
 * trace consists of, are taken from the columns of the packetizer and followed by the walker;
 * all other packets become events first (pt/event.h), each applied where it belongs.
 *
 * Where the program and the trace part, that is a gap, and the flow goes on at the next address of
 * the trace; behind packets that cannot be, at the next PSB. Same bytes give the same items,
 * whatever the chunks. Not thread-safe.
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

/* Told of bytes that were of no use; as in decode/ops.h. */
typedef int tl_pt_loss(void *context, const char *reason, uint64_t offset, uint64_t bytes);

/* `config` and `image` (frozen; may be NULL) are borrowed. Items and losses go to `context`.
 * `paths`: the sink takes PATH items. TL_NOMEM. */
TL_MUST_USE int tl_pt_flow_new(struct tl_pt_flow **out, const struct tl_pt_config *config,
                               const struct tl_image *image, tl_item_sink *items, tl_pt_loss *loss,
                               void *context, bool paths);
void tl_pt_flow_free(struct tl_pt_flow *flow);

/* As just made; decoded blocks are kept. Items that were not delivered are dropped. */
void tl_pt_flow_reset(struct tl_pt_flow *flow);
struct tl_walker *tl_pt_flow_walker(struct tl_pt_flow *flow);

/* What the packetizer finds. TL_NOMEM, or what a sink returned. */
TL_MUST_USE int tl_pt_flow_tape(struct tl_pt_flow *flow, const struct tl_pt_tape *tape,
                                const struct tl_pt_piece *piece);
/* There are bytes that are no packets from here on, up to the next PSB. */
TL_MUST_USE int tl_pt_flow_bad(struct tl_pt_flow *flow, uint64_t offset);

/* Between two pieces: what is behind the ones so far lies so many bytes further on in the file. */
void tl_pt_flow_move(struct tl_pt_flow *flow, uint64_t bytes);
/* Between two pieces: what is known beside the trace (decode/ops.h). A context that was told counts
 * from now on, and not those of PIP and VMCS packets. TL_NOMEM, or what a sink returned. */
TL_MUST_USE int tl_pt_flow_told(struct tl_pt_flow *flow, const struct tl_stream_told *told);

/* Deliver the items that are pending. */
TL_MUST_USE int tl_pt_flow_flush(struct tl_pt_flow *flow);
/* No more bytes; `end` is the offset behind the last one. Delivers all items. */
TL_MUST_USE int tl_pt_flow_finish(struct tl_pt_flow *flow, uint64_t end);

/* Behind a flush: where it stands, into bytes or from them. */
void tl_pt_flow_state(struct tl_pt_flow *flow, struct tl_state *state);

/* ---- private to the parts of the flow decoder ------------------------------------------------ */

#define TL_PT_FLOW_HELD ((size_t)1 << 20) /* bytes that wait for others, at most */

struct tl_pt_flow {
    const struct tl_pt_config *config;
    tl_pt_loss *loss;
    void *context;
    struct tl_walker walker;
    struct tl_pt_events events; /* last IP, clock, and what waits; its trace is the bytes at hand */
    uint64_t base;              /* offset in the file of the first byte at hand */
    uint64_t anchor;            /* … of the last packet that was more than outcomes */
    bool upper;                 /* the mode told is that of the upper half of addresses */
    bool enabled;               /* tracing is on, where the walker is */
    bool lost;                  /* nothing is understood before the next PSB, … */
    uint64_t lost_at;           /* … from here on */
    uint8_t isa;                /* enum tl_isa; TL_ISA_NONE: not told yet */
    uint64_t told_tsc;          /* last TIME item of the trace */
    uint64_t beside;            /* … a later one that was told beside the trace; 0: none was */
    bool has_time;              /* there may be more to be told of it than was */
    bool context_told;          /* beside the trace */
    /* Outcomes behind an indirect branch whose TIP is deferred; the oldest in bit 0. */
    uint64_t outcomes;
    uint8_t n_outcomes;
    /* An instruction that events bind to, and that was executed last. */
    bool postponed;
    bool strayed;       /* … behind the last place that a packet told, by more than is counted */
    uint8_t bound;      /* a set: each kind of event binds once */
    struct tl_buf held; /* bytes that cannot be understood without those that follow */
    struct tl_item_batch out;
};

/* The lowest `n` (1..63) bits of `word`, outcomes whose newest is bit 0: with the oldest there. */
static inline uint64_t tl_pt_oldest_first(uint64_t word, unsigned n)
{
    uint64_t v = word << (64 - n);
    v = (v >> 1 & 0x5555555555555555) | (v & 0x5555555555555555) << 1;
    v = (v >> 2 & 0x3333333333333333) | (v & 0x3333333333333333) << 2;
    v = (v >> 4 & 0x0f0f0f0f0f0f0f0f) | (v & 0x0f0f0f0f0f0f0f0f) << 4;
    return __builtin_bswap64(v);
}

/* Does a branch to `ip` leave the mode as it is? */
static inline bool tl_pt_flow_keeps_mode(const struct tl_pt_flow *f, uint64_t ip)
{
    return f->isa == TL_ISA_X64 && (ip >> 63) == f->upper && f->walker.isa == TL_ISA_X64;
}

/* An event, at `offset`. */
void tl_pt_flow_event(struct tl_pt_flow *f, const struct tl_pt_event *event, uint64_t offset);
/* `n` (1..64) outcomes, the oldest in bit 0. */
void tl_pt_flow_outcomes(struct tl_pt_flow *f, uint64_t bits, unsigned n, uint64_t offset);
/* A branch led to `ip`. */
void tl_pt_flow_tip(struct tl_pt_flow *f, uint64_t ip, uint64_t offset);

/* Time, if there is more to be told than was. */
static inline void tl_pt_flow_tell_time(struct tl_pt_flow *f, uint64_t offset)
{
    const struct tl_pt_time *const t = &f->events.clock.time;
    if (f->events.has_cycles)
        tl_item_batch_value(&f->out, TL_ITEM_CYCLES, f->events.cycles, offset);
    if (t->have_tsc && t->tsc != f->told_tsc) {
        tl_walker_time(&f->walker, t->tsc, offset);
        f->told_tsc = t->tsc;
        f->beside = t->tsc < f->beside ? f->beside : 0;
    }
    f->events.cycles = 0;
    f->has_time = f->events.has_cycles = false;
}

#endif
