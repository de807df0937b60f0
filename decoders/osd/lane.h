/* SPDX-License-Identifier: MIT */
/*
 * Converts the events of one module to a stream of flow items.
 *
 * Core trace becomes changes of flow: if the image contains the instruction at pc, a BLOCK of that
 * instruction and a TARGET, else a BRANCH. System trace and characters become software trace.
 * Consecutive overflow packets become one gap, before the event that follows them.
 *
 * Not thread-safe.
 */
#ifndef TL_OSD_LANE_H
#define TL_OSD_LANE_H

#include "decode/decode.h"
#include "osd/reader.h"
#include "osd/ticks.h"

#define TL_OSD_BATCH 128 /* items per delivery, at most */

/*
 * How to convert a regular event of a lane to an item: positions (payload bytes) and masks of its
 * fields.
 */
struct tl_osd_form {
    uint8_t kind; /* enum tl_item_kind */
    uint8_t item_flags;
    uint8_t why;   /* item flags that depend on the event */
    uint8_t bytes; /* payload size of software trace */
    uint8_t flags_at;
    uint8_t pc_at;
    uint8_t value_at;
    uint16_t flags_mask; /* bits of the flags word which must equal `flags_usual`; otherwise the
                            event is not regular */
    uint16_t flags_usual;
    uint64_t pc_mask;
    uint64_t value_mask;
    uint64_t item_value; /* all ones: the item contains the value; 0: it points to it (has_data) */
    bool has_data;
    const char *name;
};

struct tl_osd_lane {
    const struct tl_decode_sink *sink; /* borrowed */
    const struct tl_setup *setup;      /* borrowed, may be NULL */
    const struct tl_image *image;      /* borrowed; NULL: none */
    struct tl_block_cache *blocks;     /* borrowed; for `image`; NULL: none */
    /* View of the image at the last reported time, valid before view_until */
    uint64_t view, view_until;
    struct tl_decode_stream stream;
    char name[32];
    /* Words of a complete event that tl_osd_lane_quick() handles, 0: none. Must be cleared when
     * anything known about the module changes. */
    unsigned quick;
    struct tl_osd_form form; /* valid if `quick` is not 0 */
    uint8_t width;           /* width of the module for which `base_mode` was computed, 0: none */
    bool believed;           /* announced as a stream */
    uint8_t type;            /* enum tl_osd_type it was announced with */
    bool waiting;            /* `first` is pending until the type is confirmed */
    bool set_aside;          /* it was reported that its events are ignored */
    bool transport;          /* bytes were lost before its next event */
    bool at_least;           /* `missed` saturated */
    uint64_t lost_at;        /* offset of the transport loss */
    struct tl_osd_ticks ticks;
    uint64_t base_mode; /* tl_mode with privilege 0 */
    uint64_t mode;      /* last one delivered, or UINT64_MAX */
    uint64_t missed;    /* events lost to overflow, not reported yet */
    uint64_t missed_at;
    struct tl_osd_event first;
    uint64_t first_arrival;
    size_t n_items;
    struct tl_item items[TL_OSD_BATCH];
    uint8_t payload[TL_OSD_BATCH][8];
};

/* NULL: out of memory. Release with free(). */
struct tl_osd_lane *tl_osd_lane_new(const struct tl_decode_sink *sink, const struct tl_setup *setup,
                                    const struct tl_image *image, struct tl_block_cache *blocks);

/* Set the module's `address` and `type` and the stream `index`. */
void tl_osd_lane_believe(struct tl_osd_lane *lane, uint16_t address, uint8_t type, uint32_t index);
/* Announce the stream to the sink, after tl_osd_lane_believe(). Returns the sink's errors. */
TL_MUST_USE int tl_osd_lane_announce(struct tl_osd_lane *lane);

/* Take over the losses the module reported before its type was known. */
void tl_osd_lane_early(struct tl_osd_lane *lane, struct tl_osd_module *module);

/* Deliver pending items. Returns the sink's errors. */
TL_MUST_USE int tl_osd_lane_deliver(struct tl_osd_lane *lane);

/*
 * Process an event of an announced lane; `arrival` as in osd/ticks.h. Events that are not part of
 * the stream are ignored. Returns the sink's errors, TL_NOMEM.
 */
TL_MUST_USE int tl_osd_lane_event(struct tl_osd_lane *lane, const struct tl_osd_event *event,
                                  uint64_t arrival);

/*
 * Fast path for a complete event of lane->quick words in input form; 8 bytes after it may be read.
 * Returns 0 without processing it if the event is not a regular one; else 1, or the sink's error.
 */
TL_MUST_USE int tl_osd_lane_quick(struct tl_osd_lane *lane, const uint8_t *payload,
                                  bool little_endian, uint64_t offset, uint64_t arrival);

/* Enable tl_osd_lane_quick() for the following packets if enough is known about `module`. */
void tl_osd_lane_ready(struct tl_osd_lane *lane, const struct tl_osd_module *module);

/* Report bytes lost at `offset`, which may include some of this module's. */
void tl_osd_lane_lost(struct tl_osd_lane *lane, uint64_t offset);

/*
 * Save the state, or restore it into a new lane of this module; no items may be pending. Restoring
 * does not announce the stream.
 */
void tl_osd_lane_state(struct tl_osd_lane *lane, const struct tl_osd_module *module,
                       struct tl_state *state);

/* End of input: report gaps that were pending until the next event. Returns the sink's errors. */
TL_MUST_USE int tl_osd_lane_finish(struct tl_osd_lane *lane);

#endif
