/* SPDX-License-Identifier: MIT */
/*
 * Instruction flow of an Intel PT trace, one instruction behind another, with every event at the
 * place it belongs to: the reference decoder's order, errors and recovery, step by step. For a
 * whole trace in memory, for listings and as the plain form that the fast one is compared with.
 * Not thread-safe.
 *
 * Source: Intel SDM volume 3, Intel Processor Trace, "COFI tracking"; chapter "Decoding".
 */
#ifndef TL_PT_INSN_H
#define TL_PT_INSN_H

#include "image/image.h"
#include "isa/x86.h"
#include "pt/event.h"

#define TL_PT_RETURNS 64 /* return addresses that a compressed return can go to */

struct tl_pt_insn {
    uint64_t ip;
    uint8_t isa; /* enum tl_isa */
    bool speculative;
    struct tl_x86_insn x86;
    uint8_t raw[TL_X86_MAX];
};

struct tl_pt_insn_options {
    struct tl_pt_event_options events;
    bool ticks;                    /* TICK events where time changes */
    bool end_on_call, end_on_jump; /* runs end behind such an instruction */
};

/* What a call leads to, as flags; below zero: -(enum tl_pt_error). */
enum {
    TL_PT_EVENT_PENDING = 1, /* take it by tl_pt_insns_event() */
    TL_PT_DISABLED = 2,      /* tracing is off */
    TL_PT_END = 4            /* of the trace */
};

struct tl_pt_insns {
    struct tl_pt_insn_options options;
    const struct tl_image *image; /* borrowed; NULL: none */
    void *context;
    void (*insn)(void *context, const struct tl_pt_insn *insn); /* may be NULL */
    struct tl_pt_events events;
    struct tl_pt_event event; /* the next one … */
    enum tl_pt_error status;  /* … if this is TL_PT_OK; else why there is none */
    struct tl_pt_event held;  /* the one behind it, if has_held */
    bool has_held;
    bool enabled, speculative;
    uint8_t isa;                   /* enum tl_isa; TL_ISA_NONE: not known */
    uint64_t ip;                   /* of the next instruction, or of the one that failed */
    uint64_t tsc;                  /* of what was taken last */
    struct tl_image_context space; /* context_id: CR3; vmid: VMCS base */
    uint64_t view;
    uint64_t taken, resumed; /* events taken; … when last resynchronised */
    uint32_t steps;          /* instructions since the last event */
    bool counts;             /* `count` instructions are known since an IP was told */
    uint32_t count;
    /* The run of instructions in the making. */
    uint32_t n;
    struct tl_pt_insn last; /* if n > 0 */
    /* An instruction that events bind to, and that has not been left yet. */
    bool postponed;
    uint8_t bound; /* set of what is bound to it */
    struct tl_pt_insn waits;
    struct {
        uint8_t top, n;
        uint64_t ip[TL_PT_RETURNS];
    } returns;
};

/* Everything is borrowed, but for the options. */
void tl_pt_insns_init(struct tl_pt_insns *d, const struct tl_pt_config *config,
                      const struct tl_image *image, struct tl_bytes trace,
                      const struct tl_pt_insn_options *options);

/* To the next PSB. -TL_PT_EOS: there is none. */
int tl_pt_insns_sync(struct tl_pt_insns *d);

/* Behind an error: go on where the trace next says an IP. Fails as the trace does. */
int tl_pt_insns_resync(struct tl_pt_insns *d);

/*
 * A run: instructions up to the next event, or to where the trace is asked for. Each goes to
 * `insn`, those in front of an error, too; `n` is how many.
 */
int tl_pt_insns_next(struct tl_pt_insns *d);

/* The event that is pending. */
int tl_pt_insns_event(struct tl_pt_insns *d, struct tl_pt_event *out);

/* ---- private to the parts of the decoder ----------------------------------------------------- */

/* The event is done: the next one. */
void tl_pt_insns_fetch(struct tl_pt_insns *d);
/* Is there an event at `ip`? `in_run`: behind a run. */
int tl_pt_insns_trailing(struct tl_pt_insns *d, bool in_run);
/* The flags that say so. */
int tl_pt_insns_pending(const struct tl_pt_insns *d);

#endif
