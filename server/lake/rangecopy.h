/* SPDX-License-Identifier: MIT */
/*
 * A range of a cut as STF whose groups are copied as they lie in the frames of its shards. Only the
 * first group, and what stands behind the last one, are written anew (rangeflow.h). A group is an
 * instruction's records; its last one, INST_32 or INST_16, is the marker by which instructions are
 * counted in a shard. Not thread-safe.
 */
#ifndef TL_LAKE_RANGECOPY_H
#define TL_LAKE_RANGECOPY_H

#include "lake/ahead.h"
#include "lake/lakeint.h"
#include "store/splice.h"

struct tl_range_copy {
    const struct tl_cut *cut; /* borrowed */
    uint64_t from;            /* position */
    struct tl_buf head;       /* the header and the first group */
    struct tl_buf trail;      /* records behind the last group */
    struct tl_stf_layout layout;
    /* What is next, and what is behind the last: markers of these shards. */
    size_t shard, end_shard;
    uint64_t marker, end_marker;
    uint64_t pc; /* where readers stand behind what was taken */
    bool packed; /* frames are copied as they are packed: to be set before any is taken */
    struct tl_buf frame;
    struct tl_view *view; /* of the shard `view_shard`, referenced; NULL: none so far */
    size_t view_shard;
    struct tl_ahead *ahead; /* makes the next shard; NULL: nothing does */
};

/* A run of groups, of one frame. */
struct tl_range_piece {
    struct tl_bytes stf; /* valid until the next one is taken */
    uint64_t markers;
    uint64_t pc; /* of its first instruction, as readers find it */
};

/*
 * Positions [from, to) of the cut; `tail`: with what follows the last one. TL_UNSUPPORTED: there is
 * no instruction to be copied. Errors as of tl_cut_walk_next(). `out` is to be ended in any case.
 */
TL_MUST_USE int tl_range_copy_begin(struct tl_range_copy *out, const struct tl_cut *cut,
                                    uint64_t from, uint64_t to, bool tail, struct tl_fail *fail);
void tl_range_copy_end(struct tl_range_copy *copy);
/* Look at all shards before the first is copied. TL_UNSUPPORTED: older ones, or page walks, want
 * their records written anew. Who does not ask is told so when it comes to that shard. */
TL_MUST_USE int tl_range_copy_check(const struct tl_range_copy *copy, struct tl_fail *fail);

/* The next run behind copy->head. TL_EOF: only copy->trail is left. */
TL_MUST_USE int tl_range_copy_next(struct tl_range_copy *copy, struct tl_range_piece *out,
                                   struct tl_fail *fail);

/* A frame that can be copied as it is packed, but for the head of a shard's first one. */
struct tl_range_frame {
    struct tl_view *view; /* to be put */
    size_t shard, frame;
    uint64_t pc;        /* of its first instruction, as readers find it */
    struct tl_buf head; /* of a first frame: the records in place of its head, to be ended … */
    size_t old;         /* … and how many bytes its own has; 0 of all other frames */
    size_t size, plain; /* bytes, with that head */
};

/* The next run, if it is such a frame, of `markers` markers. TL_AGAIN: it is not. TL_EOF: there is
 * none. `packer` packs what in a growing shard nobody has packed yet. */
TL_MUST_USE int tl_range_copy_frame(struct tl_range_copy *copy, uint64_t markers,
                                    struct tl_packer *packer, struct tl_range_frame *out,
                                    struct tl_fail *fail);
void tl_range_frame_end(struct tl_range_frame *frame);
/* Append a frame of the view as it is packed, with `head` in place of its own, or, if NULL, with
 * that: the `size` bytes of its tl_range_frame. */
TL_MUST_USE int tl_range_frame_read(const struct tl_view *view, size_t frame,
                                    const struct tl_bytes *head, struct tl_packer *packer,
                                    struct tl_buf *out, struct tl_fail *fail);

#endif
