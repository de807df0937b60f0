/* SPDX-License-Identifier: MIT */
/*
 * Builds the shards of one stream out of its flow items. Not thread-safe: the owner holds a
 * lock around every call, and readers take tl_build_view() under it.
 *
 * Where shards and chunks end depends on the items alone, never on how they were batched, so a
 * capture gives the same shards again, byte for byte.
 */
#ifndef TL_STORE_BUILD_H
#define TL_STORE_BUILD_H

#include "base/state.h"
#include "store/view.h"

/* A shard whose logs of items have so many bytes ends, behind an instruction or not. */
#define TL_SHARD_LOG_BYTES (8u << 20)

/* A part of a shard that is made once more: the log of a chunk, or a frame. */
struct tl_build_part {
    uint64_t shard;
    uint32_t frame; /* of the log that which its chunk was begun in: there may be none such */
    bool is_log;
    struct tl_chunk chunk;     /* is_log; n_code is not told */
    struct tl_shard_frame stf; /* else; `pc` of the first one is not told */
    struct tl_blob *blob;      /* plain; NULL: the log is empty, or was not wanted */
};

struct tl_build_options {
    enum tl_protocol protocol;
    enum tl_isa isa;              /* as long as the items tell of none */
    uint64_t shard_insns;         /* positions in a shard */
    uint64_t chunk_markers;       /* 0: TL_CHUNK_MARKERS */
    const struct tl_image *image; /* for the functions of addresses outside blocks; may be NULL */
    struct tl_packing *packing;   /* borrowed; NULL: STF is packed at once, item logs when
                                     they are stored */
    bool index_only;              /* of shards the index alone is made: neither logs nor records */
    /*
     * A shard is complete: called from tl_build_items() and tl_build_finish(). The view is the
     * callee's. A result < 0 ends building.
     */
    int (*seal)(void *context, struct tl_view *view);
    /*
     * NULL, or no shard is made, but parts of those that were made before, as tl_build_want() says.
     * `part` and its blob are the callee's. A result < 0 ends building.
     */
    int (*part)(void *context, struct tl_build_part *part);
    void *context;
    /*
     * So many shards are in the store already, and end at this position: they are followed in
     * silence. An earlier run may have ended at any point.
     */
    uint64_t sealed;
    uint64_t sealed_position;
};

struct tl_build;

TL_MUST_USE int tl_build_new(struct tl_build **out, const struct tl_build_options *options);
void tl_build_free(struct tl_build *build); /* NULL is fine */

/*
 * Take items, in order, from the stream's very first on. TL_NOMEM, what `seal` returned, TL_BAD:
 * the items contradict the shards that are there (another image or decoder made those).
 */
TL_MUST_USE int tl_build_items(struct tl_build *build, const struct tl_item *items, size_t n);
/* The stream has ended: seal what is left. */
TL_MUST_USE int tl_build_finish(struct tl_build *build);

/*
 * All of it, with the shard that is being built, into bytes or, of a new builder with the same
 * options, from them. The shards in front of that one must be in the store by then (else TL_BAD);
 * if it is there itself, or more are, these are followed in silence.
 */
void tl_build_state(struct tl_build *build, struct tl_state *state);

/* The same without what the shard consists of that is being built: enough to make parts of it and
 * of the shards behind it once more. Who loads it has options.part. */
void tl_build_mark(struct tl_build *build, struct tl_state *state);

/* Make parts of this shard and frame, as far as they have not begun, and all behind them. At first
 * none are. */
void tl_build_want(struct tl_build *build, uint64_t shard, uint32_t frame);
/* The position that would be logged next, and its shard and frame. */
uint64_t tl_build_position(const struct tl_build *build);
void tl_build_place(const struct tl_build *build, uint64_t *shard, uint32_t *frame);
/*
 * What there is so far of the open chunk's log, and of the open frame, if it has an instruction, as
 * far as they are wanted: `n` parts. TL_NOMEM.
 */
TL_MUST_USE int tl_build_open_parts(struct tl_build *build, struct tl_build_part out[2], size_t *n);

/* A snapshot of the growing shard, with index_only of its index; NULL in `*out` where it has
 * nothing yet. TL_NOMEM. */
TL_MUST_USE int tl_build_view(struct tl_build *build, struct tl_view **out);

/* Totals of the stream so far. */
struct tl_build_totals {
    uint64_t position; /* behind the last that can be read */
    uint64_t events, gaps;
    uint32_t anchors;
    struct tl_anchor anchor_first, anchor_last;
    uint64_t offset; /* raw byte offset of the last item */
};
void tl_build_totals(const struct tl_build *build, struct tl_build_totals *out);

#endif
