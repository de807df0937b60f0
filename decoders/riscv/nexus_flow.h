/* SPDX-License-Identifier: MIT */
/*
 * Messages of one hart to flow items: N-Trace 1.0, and SiFive's dialect of before it. Embedded in
 * the stream decoder (riscv/nexus_stream.c). Not thread-safe.
 *
 * Source: RISC-V N-Trace 1.0, chapters 5 to 9.
 */
#ifndef TL_RISCV_NEXUS_FLOW_H
#define TL_RISCV_NEXUS_FLOW_H

#include "decode/soft.h"
#include "riscv/nexus_message.h"
#include "riscv/nexus_walk.h"

/* The last branch message, for RepeatBranch. */
struct tl_nexus_repeat {
    bool is;
    bool has_target; /* it had an address */
    uint64_t target;
    uint64_t icnt;
    uint64_t history; /* as sent; 0: none */
};

struct tl_nexus_flow {
    struct tl_soft soft; /* must be first */
    struct tl_nexus_walk walk;
    enum tl_isa isa;
    uint32_t vmid; /* of the source's own images, see tl_source_vmid(); 0: none */
    bool synced;   /* the place is followed, or would be if the image had it */
    bool stopped;  /* the trace unit said why it is not */
    /* Messages are not told since trace and program do not fit. The place may be followed again,
     * but is only believed when messages have fitted in `doubt` more ways. */
    bool misfit;
    uint8_t doubt;
    bool has_unknown; /* a message since the last SYNC was not understood: it may have been damaged
                       */
    bool tableless;   /* it was reported that the table of CM.JT is not known */
    bool is_history;  /* history messages (HTM), not branch messages, by the last one that told */
    bool owed;        /* a SYNC message ended before a branch without its outcome */
    uint8_t privilege;
    uint64_t base; /* last address in a message */
    int64_t icnt;  /* halfwords announced or executed that no message with I-CNT has counted yet */
    struct tl_nexus_repeat repeat;
    struct tl_image_context context;
    uint64_t lost; /* bytes of the capture that are not told */
    bool has_time;
    uint64_t time;
};

/* Returns TL_UNSUPPORTED with a text in `fail`, or TL_NOMEM. */
TL_MUST_USE int tl_nexus_flow_init(struct tl_nexus_flow *flow, const struct tl_source *source,
                                   const struct tl_image *image, const struct tl_stream_sink *sink,
                                   struct tl_fail *fail);
void tl_nexus_flow_fini(struct tl_nexus_flow *flow);

/* Process a message. It is ignored, and counted as lost, if a message with SYNC must come first. */
void tl_nexus_flow_message(struct tl_nexus_flow *flow, const struct tl_nexus_message *message);

/* `n` bytes from `at` on cannot be used; `why` has static storage. They are reported together, for
 * the first reason: before a message with SYNC, at the end, and where the program fits again. */
void tl_nexus_flow_skip(struct tl_nexus_flow *flow, const char *why, uint64_t at, uint64_t n);
void tl_nexus_flow_report(struct tl_nexus_flow *flow);

/* Messages were lost or damaged, which the caller has reported. */
void tl_nexus_flow_lose(struct tl_nexus_flow *flow);
/* Reset to the initial state; undelivered items are dropped. */
void tl_nexus_flow_reset(struct tl_nexus_flow *flow);

void tl_nexus_flow_state(struct tl_nexus_flow *flow, struct tl_state *state);

#endif
