/* SPDX-License-Identifier: MIT */
/*
 * Builds the shards of one stream from its flow items. Not thread-safe: the owner holds a lock
 * around every call, and readers call tl_build_view() under it.
 *
 * Shard and chunk boundaries depend only on the items, never on how they were batched, so that a
 * capture always yields the same shards, byte for byte.
 */
#ifndef TL_BUILDER_BUILD_H
#define TL_BUILDER_BUILD_H

#include "base/state.h"
#include "shard/view.h"

/* A regenerated part of a shard: the item log of a chunk, or a frame. */
struct tl_build_part {
    uint64_t shard;
    uint32_t frame; /* for a log, the frame in which its chunk began, which need not exist */
    bool is_log;
    struct tl_chunk chunk;     /* if is_log; n_code is not set */
    struct tl_shard_frame stf; /* if not is_log; `pc` of the first one is not set */
    struct tl_blob *blob;      /* plain; NULL: the log is empty, or was not requested */
};

struct tl_build_options {
    enum tl_protocol protocol;
    enum tl_isa isa;              /* used until the items give an instruction set */
    uint64_t shard_insns;         /* positions per shard */
    uint64_t chunk_markers;       /* 0: TL_CHUNK_MARKERS */
    const struct tl_image *image; /* for functions of addresses outside blocks; may be NULL */
    struct tl_axis axis;          /* how ticks are shown, for buckets in time */
    /* Borrowed; NULL: STF is packed immediately, item logs when they are stored. */
    struct tl_packing *packing;
    bool index_only; /* build only the index of shards: neither logs nor records */
    /* With index_only: build only the outline of shards (shard_builder.h), several times as fast.
     */
    bool outline;
    /*
     * Called from tl_build_items() and tl_build_finish() when a shard is complete. The callee owns
     * the view. A result < 0 ends building.
     */
    int (*seal)(void *context, struct tl_view *view);
    /*
     * If not NULL, no shards are built, but parts of earlier ones are regenerated, as selected by
     * tl_build_want(). The callee owns `part` and its blob. A result < 0 ends building.
     */
    int (*part)(void *context, struct tl_build_part *part);
    void *context;
    /*
     * Number of shards already in the store, and the position at which they end: they are replayed
     * without output. An earlier run may have ended at any point.
     */
    uint64_t sealed;
    uint64_t sealed_position;
};

struct tl_build;

/* Create. The options are copied; `image` and `packing` are borrowed until tl_build_free().
 * TL_NOMEM. */
TL_MUST_USE int tl_build_new(struct tl_build **out, const struct tl_build_options *options);
void tl_build_free(struct tl_build *build); /* accepts NULL */

/*
 * Process items, in order, beginning with the stream's first. TL_NOMEM, the result of `seal`,
 * TL_BAD: the items contradict the existing shards (which another image or decoder produced).
 */
TL_MUST_USE int tl_build_items(struct tl_build *build, const struct tl_item *items, size_t n);
/* End of the stream: seal the rest. */
TL_MUST_USE int tl_build_finish(struct tl_build *build);

/*
 * Save the complete state, including the shard being built, or load it into a new builder with the
 * same options. The shards before that one must be in the store (else TL_BAD); if it or later ones
 * are there too, these are replayed without output.
 */
void tl_build_state(struct tl_build *build, struct tl_state *state);

/*
 * As tl_build_state(), without the contents of the shard being built: enough to regenerate parts of
 * it and of later shards, with options.part; or to build later shards, if `sealed` is behind it. Of
 * these everything is as always but their calls, of which it is not known when they began.
 */
void tl_build_mark(struct tl_build *build, struct tl_state *state);

/* Regenerate parts from this shard and frame on, as far as they have not begun. Initially none are
 * requested. */
void tl_build_want(struct tl_build *build, uint64_t shard, uint32_t frame);
/* The next position to be logged, and its shard and frame. */
uint64_t tl_build_position(const struct tl_build *build);
void tl_build_place(const struct tl_build *build, uint64_t *shard, uint32_t *frame);
/*
 * The unfinished parts, if requested: the open chunk's log so far, and the open frame, if it has an
 * instruction. `*n` receives their number. TL_NOMEM.
 */
TL_MUST_USE int tl_build_open_parts(struct tl_build *build, struct tl_build_part out[2], size_t *n);

/* Snapshot of the growing shard (with index_only, of its index); NULL in `*out` if it is still
 * empty. TL_NOMEM. */
TL_MUST_USE int tl_build_view(struct tl_build *build, struct tl_view **out);

/* Totals of the stream so far. */
struct tl_build_totals {
    uint64_t position; /* after the last one that can be read */
    uint64_t events, gaps;
    uint32_t anchors;
    struct tl_anchor anchor_first, anchor_last;
    uint64_t offset; /* raw byte offset of the last item */
};
void tl_build_totals(const struct tl_build *build, struct tl_build_totals *out);
/* Memory in use, in bytes, roughly. */
size_t tl_build_bytes(const struct tl_build *build);

#endif
