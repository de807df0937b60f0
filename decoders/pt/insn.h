/* SPDX-License-Identifier: MIT */
/*
 * Instruction flow of an Intel PT trace, one instruction at a time, with every event at the
 * instruction it belongs to: the reference decoder's order, errors and recovery, step by step. For
 * a complete trace in memory; used for listings and to verify the fast decoder (pt/flow.h). Not
 * thread-safe.
 *
 * Source: Intel SDM volume 3, Intel Processor Trace, "COFI tracking"; chapter "Decoding".
 */
#ifndef TL_PT_INSN_H
#define TL_PT_INSN_H

#include "image/image.h"
#include "isa/x86.h"
#include "pt/event.h"

#define TL_PT_RETURNS 64 /* depth of the return stack for compressed returns */

struct tl_pt_insn {
    uint64_t ip;
    uint8_t isa; /* enum tl_isa */
    bool speculative;
    struct tl_x86_insn x86;
    uint8_t raw[TL_X86_MAX];
};

struct tl_pt_insn_options {
    struct tl_pt_event_options events;
    bool ticks;                    /* generate TICK events when the time changes */
    bool end_on_call, end_on_jump; /* end a run after a call, after a jump */
    bool unknown_as_16bit;         /* decode as 16-bit code while the mode is not known */
};

/* Results of the functions below: these flags, or -(enum tl_pt_error). */
enum {
    TL_PT_EVENT_PENDING = 1, /* fetch it with tl_pt_insns_event() */
    TL_PT_DISABLED = 2,      /* tracing is disabled */
    TL_PT_END = 4            /* end of trace */
};

struct tl_pt_insns {
    struct tl_pt_insn_options options;
    const struct tl_image *image; /* borrowed; NULL: none */
    void *context;
    void (*insn)(void *context, const struct tl_pt_insn *insn); /* may be NULL */
    struct tl_pt_events events;
    struct tl_pt_event event; /* the next event, valid if `status` is TL_PT_OK */
    enum tl_pt_error status;  /* why `event` is not valid */
    struct tl_pt_event held;  /* the event after it, if has_held */
    bool has_held;
    bool enabled, speculative;
    uint8_t isa;                   /* enum tl_isa; TL_ISA_NONE: unknown */
    uint64_t ip;                   /* of the next instruction, or of the one that failed */
    uint64_t tsc;                  /* time of the event taken last */
    struct tl_image_context space; /* context_id: CR3; vmid: VMCS base */
    uint64_t view;
    uint64_t taken, resumed; /* number of events taken; its value at the last resynchronisation */
    uint32_t steps;          /* instructions since the last event */
    bool counts;             /* `count` is valid: instructions since the last IP packet */
    uint32_t count;
    /* The current run of instructions. */
    uint32_t n;
    struct tl_pt_insn last; /* if n > 0 */
    /* An instruction that further events may bind to, not left yet. */
    bool postponed;
    uint8_t bound;           /* kinds of events already bound to it (bit mask) */
    struct tl_pt_insn waits; /* that instruction, if `postponed` */
    struct {
        uint8_t top, n;
        uint64_t ip[TL_PT_RETURNS];
    } returns;
};

/* Initialise. The options are copied, all else is borrowed while `d` is used. */
void tl_pt_insns_init(struct tl_pt_insns *d, const struct tl_pt_config *config,
                      const struct tl_image *image, struct tl_bytes trace,
                      const struct tl_pt_insn_options *options);

/* Advance to the next PSB. Returns -TL_PT_EOS if there is none. */
int tl_pt_insns_sync(struct tl_pt_insns *d);

/*
 * Resume after an error, at the next IP in the trace. Returns an error if the trace has one there.
 */
int tl_pt_insns_resync(struct tl_pt_insns *d);

/*
 * Decode a run: instructions up to the next event, or to the next one that needs a packet. Each is
 * passed to `insn`, also those before an error; `n` is their number.
 */
int tl_pt_insns_next(struct tl_pt_insns *d);

/* Get the pending event. */
int tl_pt_insns_event(struct tl_pt_insns *d, struct tl_pt_event *out);

/* ---- private to the parts of the decoder ----------------------------------------------------- */

/* The event has been handled: fetch the next one. */
void tl_pt_insns_fetch(struct tl_pt_insns *d);
/* Is there an event at the current `ip`? `in_run`: called after a run. */
int tl_pt_insns_trailing(struct tl_pt_insns *d, bool in_run);
/* Flags for the current state. */
int tl_pt_insns_pending(const struct tl_pt_insns *d);

#endif
