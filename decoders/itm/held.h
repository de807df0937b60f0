/* SPDX-License-Identifier: MIT */
/*
 * What an ITM has reported but not timed yet, and its clock.
 *
 * A local timestamp follows the packets that it is for, all since the one before it: they are held
 * until it comes, so that its item can precede theirs as in all streams. Global timestamps are for
 * what stands in front of them, too. Which of them a stream has is known from its configuration, or
 * when the first one comes; if none does, packets wait for at most TL_HELD_MAX others.
 *
 * Times are sums of local deltas, in ticks of their clock, until a global timestamp is complete.
 * From then on they are global ones, those of the other trace sources of the chip: each global
 * timestamp says where the local sum stands, and two of them how fast it runs; deltas are scaled by
 * that. Where another one comes, or the end, before a local one, what was reported up to it has its
 * time. A time is never below the one before, unless the counter itself begins again.
 *
 * Plain data; not thread-safe.
 */
#ifndef TL_ITM_HELD_H
#define TL_ITM_HELD_H

#include "decode/soft.h"
#include "itm/dwt.h"

#define TL_HELD_MAX 64

/* Has the stream local timestamps? */
enum tl_itm_timing { TL_ITM_UNKNOWN, TL_ITM_UNTIMED, TL_ITM_TIMED };

enum tl_held_kind { TL_HELD_SOFTWARE, TL_HELD_EVENT, TL_HELD_TIME_LOW };

struct tl_held {
    uint8_t kind; /* enum tl_held_kind */
    uint8_t size; /* of a software source's payload */
    uint64_t channel, value, offset;
    struct tl_hardware event;
};

struct tl_itm_clock {
    uint64_t local;        /* sum of all local timestamps */
    uint64_t at, at_local; /* the last global timestamp, and the local sum then */
    uint64_t scale[2];     /* global ticks per local ticks */
    uint64_t next;         /* a global timestamp that waits for its local one … */
    bool has_next;         /* … is known */
    bool next_low;         /* … but may be later */
    uint8_t next_n;        /* held entries in front of it */
    bool pinned;           /* `at` is known */
    bool broken;           /* deltas since then may be lost, or of a clock of another rate */
    bool stale;            /* the scale is that of another rate */
    bool lost;             /* deltas since then, or since the begin, may be */
    bool has_global;       /* global timestamps come */
};

struct tl_itm_held {
    struct tl_soft *soft;         /* borrowed */
    const struct tl_image *image; /* borrowed; NULL: none */
    const struct tl_dwt *dwt;     /* borrowed */
    uint8_t timing;               /* enum tl_itm_timing */
    uint8_t prescale;             /* clock ticks per unit of local timestamps */
    uint8_t ports[TL_PORTS];      /* enum tl_port_form of each stimulus port */
    struct tl_itm_clock clock;
    uint8_t n;
    struct tl_held v[TL_HELD_MAX];
};

/* Initialise a zeroed object with ITM_TCR, if `source` has it, and the forms of its ports. */
void tl_itm_held_init(struct tl_itm_held *held, const struct tl_source *source);

/* Add `entry`, or deliver it if it need not wait. */
void tl_itm_hold(struct tl_itm_held *held, const struct tl_held *entry);
/* What is held may have lost its timestamp. */
void tl_itm_break(struct tl_itm_held *held);

/* Go on with the clock of `last`, with which nothing is held any more, behind missing bytes. */
void tl_itm_resume(struct tl_itm_held *held, const struct tl_itm_held *last);

/* A local timestamp of `delta` units, with its relation to what it is for (0 to 3: exact; it was
 * delayed; that was; both); and a complete global one; `changed`: its clock has another rate than
 * before; `low`: it may be later. */
void tl_itm_local_time(struct tl_itm_held *held, uint64_t delta, unsigned relation,
                       uint64_t offset);
void tl_itm_global_time(struct tl_itm_held *held, uint64_t time, bool changed, bool low,
                        uint64_t offset);

/* Save or restore everything but the configuration. */
void tl_itm_held_state(struct tl_itm_held *held, struct tl_state *state);

#endif
