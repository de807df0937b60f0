/* SPDX-License-Identifier: MIT */
/*
 * Which support packets of E-Trace to believe. They set options that hold until the next one, and
 * damaged bytes may look like one: so a support packet takes effect when a packet of format 3
 * follows it, as the standard has it, if the encoder has what its options need. Options that change
 * while the trace fits the program are on trial until it fits again: where it does not, those of
 * before are tried. Where code is missing, packets do not fit the right options either: those are
 * kept that more packets fit. Options that two support packets in a row tell are right, whatever
 * was found by trying. Not thread-safe.
 */
#ifndef TL_RISCV_ETRACE_SUPPORT_H
#define TL_RISCV_ETRACE_SUPPORT_H

#include "base/state.h"
#include "riscv/etrace_packet.h"

/* Packets that fit the program, so that the options are right. */
#define TL_ETRACE_CONFIRMED 64

struct tl_etrace_support {
    bool waits;    /* `packet` is a support packet that has not taken effect */
    bool is_first; /* … in front of which there was nothing */
    struct tl_etrace_packet packet;
    uint64_t at; /* its offset in the capture, and the bytes it has there; 0: reported */
    uint32_t size;
    uint8_t fitted;        /* packets that fitted the program, less some for each that did not */
    bool on_trial;         /* the options are */
    bool guessed;          /* … and were found by trying: there are no others */
    uint32_t others;       /* the options that are tried in turn with these */
    uint8_t others_fitted; /* of them */
    bool was_said;         /* a confirmed support packet told the options `said` */
    uint32_t said;
    bool no_data; /* the encoder says that there are no packets of data trace */
};

/* What to do about the support packet that waited. */
struct tl_etrace_verdict {
    bool takes_status;    /* its qual_status holds */
    bool is_confirmed;    /* a packet of format 3 follows it, as must be */
    bool is_contradicted; /* report it */
    bool is_sure;         /* … and it tells the same options as the one before, which was, too */
};

/*
 * A packet with the payload `next` follows the support packet that waits; NULL: the trace ends.
 * Changes `*options`, those in force.
 */
struct tl_etrace_verdict tl_etrace_support_settle(struct tl_etrace_support *support,
                                                  const struct tl_etrace_params *params,
                                                  const struct tl_bytes *next, unsigned *options);

/* A packet fitted the program, or did not: then `*options` may change, and if true is returned, the
 * last support packet is to be reported. */
static inline void tl_etrace_support_fits(struct tl_etrace_support *s)
{
    if (s->fitted == TL_ETRACE_CONFIRMED && !s->on_trial)
        return;
    s->fitted += s->fitted < TL_ETRACE_CONFIRMED;
    s->on_trial &= s->fitted < TL_ETRACE_CONFIRMED;
}
bool tl_etrace_support_misfits(struct tl_etrace_support *support, unsigned *options);

/* Only with the others the next packet can be one: they come into force. As above. */
bool tl_etrace_support_refute(struct tl_etrace_support *support, unsigned *options);

/* The options in force were found by trying, and fit `ahead` packets (0 or more) more than any
 * others. */
void tl_etrace_support_doubt(struct tl_etrace_support *support, int ahead);

/* Have packets used that up which do not fit? Then options must be found again. */
bool tl_etrace_support_gives_up(struct tl_etrace_support *support);

void tl_etrace_support_state(struct tl_etrace_support *support, struct tl_state *state);

#endif
