/* SPDX-License-Identifier: MIT */
/*
 * What one module says, as a stream of flow items.
 *
 * Core trace becomes changes of flow: where the image holds the instruction at pc, a BLOCK of that
 * one instruction and a TARGET, else a BRANCH. System trace and characters become software trace.
 * A run of overflow packets becomes one gap, in front of the event that follows it.
 *
 * Not thread-safe.
 */
#ifndef TL_OSD_LANE_H
#define TL_OSD_LANE_H

#include "decode/decode.h"
#include "osd/reader.h"
#include "osd/ticks.h"

#define TL_OSD_BATCH 128 /* items delivered at once */

/*
 * How a plain event of a lane becomes an item: places (bytes of the payload) and masks of its
 * fields.
 */
struct tl_osd_form {
    uint8_t kind; /* enum tl_item_kind */
    uint8_t item_flags;
    uint8_t why;   /* item flags that the event may add */
    uint8_t bytes; /* of software trace */
    uint8_t flags_at;
    uint8_t pc_at;
    uint8_t value_at;
    uint16_t flags_mask; /* bits that make an event an unusual one if they are not … */
    uint16_t flags_usual;
    uint64_t pc_mask;
    uint64_t value_mask;
    uint64_t item_value; /* all ones: the item has the value, 0: it points to it (has_data) */
    bool has_data;
    const char *name;
};

struct tl_osd_lane {
    const struct tl_decode_sink *sink; /* borrowed */
    const struct tl_setup *setup;      /* borrowed, may be NULL */
    const struct tl_image *image;      /* borrowed; NULL: none */
    struct tl_block_cache *blocks;     /* borrowed, of the image; NULL: none */
    uint64_t view, view_until;         /* of the image at the time told last, the same up to then */
    struct tl_decode_stream stream;
    char name[32];
    /* Words of an event that tl_osd_lane_quick() takes, 0: none. Cleared by whoever changes what
     * is known of the module. */
    unsigned quick;
    struct tl_osd_form form; /* … then */
    uint8_t width;           /* of the module when `base_mode` was made, 0: not yet */
    bool believed;           /* announced, … */
    uint8_t type;            /* … as that of such a module, enum tl_osd_type */
    bool waiting;            /* `first` is kept until it is believed */
    bool set_aside;          /* it has been told that its events are */
    bool transport;          /* bytes were lost before its next event */
    bool at_least;           /* `missed` saturated */
    uint64_t lost_at;        /* offset of the transport loss */
    struct tl_osd_ticks ticks;
    uint64_t base_mode; /* tl_mode with privilege 0 */
    uint64_t mode;      /* the last one delivered, or UINT64_MAX */
    uint64_t missed;    /* events lost to overflow and not yet told */
    uint64_t missed_at;
    struct tl_osd_event first;
    uint64_t first_arrival;
    size_t n_items;
    struct tl_item items[TL_OSD_BATCH];
    uint8_t payload[TL_OSD_BATCH][8];
};

/* NULL: out of memory. Free it with free(). */
struct tl_osd_lane *tl_osd_lane_new(const struct tl_decode_sink *sink, const struct tl_setup *setup,
                                    const struct tl_image *image, struct tl_block_cache *blocks);

/* It is the stream of a module at `address` and of `type`, number `index`. */
void tl_osd_lane_believe(struct tl_osd_lane *lane, uint16_t address, uint8_t type, uint32_t index);
/* Announce it then. From the sink. */
TL_MUST_USE int tl_osd_lane_announce(struct tl_osd_lane *lane);

/* Take over what the module lost before its type was known. */
void tl_osd_lane_early(struct tl_osd_lane *lane, struct tl_osd_module *module);

/* Deliver what waits to be delivered. From the sink. */
TL_MUST_USE int tl_osd_lane_deliver(struct tl_osd_lane *lane);

/*
 * Take an event of an announced lane; `arrival` as in osd/ticks.h. Kinds that say nothing of the
 * stream are ignored. From the sink, TL_NOMEM.
 */
TL_MUST_USE int tl_osd_lane_event(struct tl_osd_lane *lane, const struct tl_osd_event *event,
                                  uint64_t arrival);

/*
 * The same for a whole event of lane->quick words, as they came; 8 bytes behind it may be read.
 * Returns 0, and nothing was taken, where the event is none of the plain sort; else 1. From the
 * sink.
 */
TL_MUST_USE int tl_osd_lane_quick(struct tl_osd_lane *lane, const uint8_t *payload,
                                  bool little_endian, uint64_t offset, uint64_t arrival);

/* Allow tl_osd_lane_quick() for the packets to come, if what is known of `module` does. */
void tl_osd_lane_ready(struct tl_osd_lane *lane, const struct tl_osd_module *module);

/* Bytes were lost at `offset`, of which the module's may have been some. */
void tl_osd_lane_lost(struct tl_osd_lane *lane, uint64_t offset);

/*
 * With nothing to deliver: where it stands, into bytes or, of a new one of this module, from them.
 * It is not announced by that.
 */
void tl_osd_lane_state(struct tl_osd_lane *lane, const struct tl_osd_module *module,
                       struct tl_state *state);

/* The end: gaps that waited for an event behind them. From the sink. */
TL_MUST_USE int tl_osd_lane_finish(struct tl_osd_lane *lane);

#endif
