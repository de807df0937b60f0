/* SPDX-License-Identifier: MIT */
/*
 * The sources of a container, in order of appearance. Each has its stream decoder; or is refused,
 * since its configuration cannot be decoded; or is not in the configuration at all, as those of a
 * buffer's stale end: then it is no stream. The bytes of sources without a decoder are counted and
 * reported at the end. A fault in one stream never affects another. Not thread-safe.
 */
#ifndef TL_DECODE_LANES_H
#define TL_DECODE_LANES_H

#include "decode/stream_out.h"

/* A source. Containers may embed it as the first member of what they know about one. */
struct tl_lane {
    struct tl_stream_out out; /* must be first; its stream has a source only if it is a stream */
    uint16_t id;
    struct tl_stream_decoder *decoder; /* NULL: there is none, bytes are only counted */
    char refused[160];                 /* why */
    uint64_t refused_at, refused_bytes;
    char name[32];
};

struct tl_lanes {
    /* Set by the owner: */
    struct tl_decode *decode;
    const struct tl_image *image; /* borrowed; may be NULL */
    struct tl_decode_sink sink;
    /* Adds the source with this number by tl_lanes_add(), when a saved state has it. */
    int (*add)(struct tl_decode *decode, uint16_t id, uint64_t offset, struct tl_lane **out);
    /* As tl_stream_out_decoder(), for the lane. NULL: that is used. */
    int (*create)(struct tl_decode *decode, struct tl_lane *lane, struct tl_fail *fail);

    struct tl_lane **v; /* [n], owned */
    size_t cap;
    uint32_t n;
    uint32_t n_streams;
    struct tl_lane *recent[128]; /* by the low bits of their numbers */
};

struct tl_lane *tl_lanes_search(struct tl_lanes *lanes, uint16_t id);

/* The source with this number; NULL: it has not appeared. */
static inline struct tl_lane *tl_lanes_find(struct tl_lanes *lanes, uint16_t id)
{
    struct tl_lane *const lane = lanes->recent[id % 128];
    return lane && lane->id == id ? lane : tl_lanes_search(lanes, id);
}

/*
 * Add a source that appears at `offset`: `lane`, from calloc(), with its `id`, and its `name` for
 * the case that `source` has none. `source` (borrowed) is NULL if it is not in the configuration.
 * Takes ownership of `lane`, also on failure. Returns TL_NOMEM or the sink's errors.
 */
TL_MUST_USE int tl_lanes_add(struct tl_lanes *lanes, struct tl_lane *lane,
                             const struct tl_source *source, uint64_t offset);

/* Pass bytes on to the lane's decoder. Returns its errors. */
TL_MUST_USE int tl_lanes_push(struct tl_lanes *lanes, struct tl_lane *lane,
                              const struct tl_run *run);
/* Count bytes of a lane without decoder. */
static inline void tl_lane_skip(struct tl_lane *lane, size_t n)
{
    lane->refused_bytes += n;
}

TL_MUST_USE int tl_lanes_flush(struct tl_lanes *lanes);
/* End all streams, and start them again with the bytes from `offset` on. */
TL_MUST_USE int tl_lanes_restart(struct tl_lanes *lanes, uint64_t offset);
/* Report in all streams that bytes of the capture are missing. */
TL_MUST_USE int tl_lanes_gap(struct tl_lanes *lanes, uint64_t offset);
/* At the end of the capture: end all streams, and report the bytes of the other sources. */
TL_MUST_USE int tl_lanes_finish(struct tl_lanes *lanes);
void tl_lanes_fini(struct tl_lanes *lanes);

/* Save all lanes, or load them into an empty object. */
void tl_lanes_state(struct tl_lanes *lanes, struct tl_state *state);

#endif
