/* SPDX-License-Identifier: MIT */
/* The E-Trace flow's state, and what its two parts share: formats 0 to 2 (etrace_flow.c) and format
 * 3 (etrace_sync.c). Private to them. */
#ifndef TL_RISCV_ETRACE_FLOW_PARTS_H
#define TL_RISCV_ETRACE_FLOW_PARTS_H

#include "decode/soft.h"
#include "riscv/etrace_flow.h"
#include "riscv/etrace_support.h"
#include "riscv/etrace_walk.h"

struct tl_etrace_flow {
    struct tl_soft soft; /* must be first: losses, listing, and the items on their way out */
    struct tl_etrace_params params;
    struct tl_etrace_params given; /* the same by the setup, before support packets told others */
    struct tl_etrace_walk walk;
    bool synced;  /* `address` is known */
    bool stopped; /* the trace ended: the next synchronisation packet begins it anew */
    bool fresh;   /* no packet came yet, and none was lost */
    /* The trace may have been on before the capture: it neither begins with a support packet, nor
     * has one told the end of what was before. */
    bool midway;
    bool trapped; /* the next synchronisation packet is at the trap's handler */
    /* What the encoder remembers is not known, and it will not forget it before tracing begins
     * anew. */
    bool unknown;
    bool misfit;    /* the program cannot be followed since it does not fit the trace */
    bool tableless; /* it was reported that the table of CM.JT is missing */
    /* enum tl_etrace_end: of the last packet's address; where it is not sure, the next decides */
    uint8_t end;
    bool irreport;    /* what that packet said of returns */
    uint32_t irdepth; /* or irets */
    uint8_t privilege;
    uint64_t address;             /* the last one that was reported */
    uint64_t base;                /* what the next difference counts from */
    uint64_t time;                /* last timestamp */
    uint64_t lost;                /* bytes that say nothing without synchronisation */
    uint32_t vmid;                /* of the images bound to the source; 0: none */
    uint64_t *cache;              /* owned; targets of jumps; NULL: none */
    const struct tl_image *image; /* borrowed; may be NULL */
    struct tl_isa_options isa;
    /* The options are not known for sure yet: packets are held back, see etrace_guess.c. `told`:
     * those in force are by a support packet. */
    bool unsaid, told;
    bool replays; /* packets held are processed: how well the options fit them is known */
    struct tl_etrace_held *held; /* owned; NULL: none yet */
    bool is_plain;   /* no option is on, nor asks anybody for packets: see take_plain() */
    bool is_between; /* there were payloads that are shortened in part */
    struct tl_etrace_support support;
    /* The last packet that was judged, if `judged`: at `judged_at`, read with these options. */
    bool judged;
    int judged_rc;
    uint64_t judged_at;
    unsigned judged_options;
    struct tl_etrace_packet packet;
};

static inline uint64_t tl_etrace_mask(const struct tl_etrace_flow *f)
{
    return f->params.iaddress_width < 64 ? (UINT64_C(1) << f->params.iaddress_width) - 1
                                         : UINT64_MAX;
}

/* Of the last address that was reported. */
static inline uint64_t tl_etrace_place(struct tl_etrace_flow *f)
{
    return tl_etrace_walk_address(&f->walk, &f->params, f->address);
}

/* Options by which packets depend on what was executed before. */
#define TL_ETRACE_MEMORY                                                                           \
    ((unsigned)(TL_ETRACE_IMPLICIT_RETURN | TL_ETRACE_TARGET_CACHE | TL_ETRACE_PREDICTION))

/* Does the encoder have any of it, and not forget it with packets of format 3? */
static inline bool tl_etrace_keeps_memory(const struct tl_etrace_flow *f)
{
    return f->walk.options & TL_ETRACE_NO_RESYNC && f->walk.options & TL_ETRACE_MEMORY;
}

/* ---- etrace_flow.c ------------------------------------------------------------------------- */

/* The program cannot be followed here. Do differences of addresses still add up, and can the walk
 * begin again at the next address? */
void tl_etrace_forget_place(struct tl_etrace_flow *f, bool can_resume);

/* The same where a walk has ended on its way, with what is told of that. */
void tl_etrace_leave_place(struct tl_etrace_flow *f, uint64_t offset);

/* Report the bytes that said nothing. */
void tl_etrace_report_loss(struct tl_etrace_flow *f);

/* The last support packet is not believed. */
void tl_etrace_report_unbelieved(struct tl_etrace_flow *f);

/* The last address was reached before; the trace has come round to it, behind an uninferable jump.
 * False: it cannot have. */
bool tl_etrace_go_round(struct tl_etrace_flow *f, uint64_t offset);

/* A new decoder with the same parameters, image and core; NULL: out of memory. */
struct tl_etrace_flow *tl_etrace_flow_twin(const struct tl_etrace_flow *f,
                                           const struct tl_stream_sink *sink);

/* ---- etrace_guess.c ------------------------------------------------------------------------ */

/* While the options are not known: hold the packet back, `*is_held`, or process those that were:
 * tl_etrace_guess(). Returns errors as tl_etrace_flow_packet(). */
TL_MUST_USE int tl_etrace_hold(struct tl_etrace_flow *f, const struct tl_etrace_frame *frame,
                               bool *is_held);
/* Nothing else comes, or what comes tells the options: find those of the packets held, and process
 * these. */
TL_MUST_USE int tl_etrace_guess(struct tl_etrace_flow *f);
/* The packet cannot be one with the options in force. If these are on trial and it can be one with
 * those of before, they come back. */
bool tl_etrace_refutes_options(struct tl_etrace_flow *f, const struct tl_etrace_frame *frame);
void tl_etrace_held_state(struct tl_etrace_flow *f, struct tl_state *s);

/* ---- etrace_sync.c ------------------------------------------------------------------------- */

/* What packets of format 3 say. */
void tl_etrace_on_start(struct tl_etrace_flow *f, const struct tl_etrace_packet *k,
                        uint64_t offset);
void tl_etrace_on_trap(struct tl_etrace_flow *f, const struct tl_etrace_packet *k, uint64_t offset);
void tl_etrace_take_mode(struct tl_etrace_flow *f, const struct tl_etrace_packet *k,
                         uint64_t offset);
void tl_etrace_take_time(struct tl_etrace_flow *f, uint64_t ticks, unsigned width, uint64_t offset);

/* Privilege as in the packet, with the levels of a field of two bits. */
uint8_t tl_etrace_privilege_in(const struct tl_etrace_flow *f, const struct tl_etrace_packet *k);
/* Is it no level at all? */
bool tl_etrace_is_reserved(uint8_t privilege);

/* A packet follows the support packet that waits; NULL: the trace ends. */
void tl_etrace_settle_support(struct tl_etrace_flow *f, const struct tl_bytes *next);

/* These options, and sizes of tables, are in force. */
void tl_etrace_take_options(struct tl_etrace_flow *f, unsigned options);

#endif
