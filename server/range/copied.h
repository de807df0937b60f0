/* SPDX-License-Identifier: MIT */
/*
 * A range of a cut as STF, whose groups are copied unchanged from the frames of its shards. Only
 * the first group, and what follows the last one, are newly written (rewritten.h). A group consists
 * of an instruction's records; its last record, INST_32 or INST_16, is the marker by which a
 * shard's instructions are counted. Not thread-safe.
 */
#ifndef TL_RANGE_COPIED_H
#define TL_RANGE_COPIED_H

#include "base/inorder.h"
#include "lake/cut.h"
#include "shard/splice.h"

struct tl_range_copy {
    const struct tl_cut *cut; /* borrowed */
    uint64_t from;            /* position */
    struct tl_buf head;       /* the header and the first group */
    struct tl_buf trail;      /* records after the last group */
    struct tl_stf_layout layout;
    /* The next marker, and the end: numbers of markers in these shards. */
    size_t shard, end_shard;
    uint64_t marker, end_marker;
    uint64_t pc; /* address at which readers are after the copied groups */
    bool packed; /* copy frames in packed form; must be set before the first is taken */
    struct tl_buf frame;
    struct tl_view *view; /* view of the shard `view_shard`, referenced; NULL: none yet */
    size_t view_shard;
    struct tl_inorder *views; /* views of stored shards from these on; NULL: not begun */
    size_t first_shard, next_shard;
    uint64_t first_marker;
};

/* Consecutive groups from one frame. */
struct tl_range_piece {
    struct tl_bytes stf; /* valid until the next piece is requested */
    uint64_t markers;
    uint64_t pc; /* address of its first instruction, as known to readers */
};

/*
 * Begin copying positions [from, to) of the cut; `tail`: including what follows the last one.
 * TL_UNSUPPORTED: there is no instruction to copy. Errors as tl_cut_walk_next(). Call
 * tl_range_copy_end() in any case.
 */
TL_MUST_USE int tl_range_copy_begin(struct tl_range_copy *out, const struct tl_cut *cut,
                                    uint64_t from, uint64_t to, bool tail, struct tl_fail *fail);
void tl_range_copy_end(struct tl_range_copy *copy);
/* Check all shards before copying. TL_UNSUPPORTED: older shards, page walks, or damaged raw bytes
 * of virtual shards require rewriting. Without this call the error occurs when that shard is
 * reached. */
TL_MUST_USE int tl_range_copy_check(struct tl_range_copy *copy, struct tl_fail *fail);

/* Get the next piece after copy->head. TL_EOF: only copy->trail is left. */
TL_MUST_USE int tl_range_copy_next(struct tl_range_copy *copy, struct tl_range_piece *out,
                                   struct tl_fail *fail);

/* A frame that can be copied in packed form, except for the head of a shard's first frame. */
struct tl_range_frame {
    struct tl_view *view; /* to be released */
    size_t shard, frame;
    uint64_t pc;        /* address of its first instruction, as known to readers */
    struct tl_buf head; /* of a first frame: records that replace its head */
    size_t old;         /* size of this frame's own head; 0 for all other frames */
    size_t size, plain; /* sizes with that head */
};

/* Get the next piece, if it is a whole frame with `markers` markers. TL_AGAIN: it is not. TL_EOF:
 * there is none. `packer` packs frames of a growing shard that are not packed yet. */
TL_MUST_USE int tl_range_copy_frame(struct tl_range_copy *copy, uint64_t markers,
                                    struct tl_packer *packer, struct tl_range_frame *out,
                                    struct tl_fail *fail);
void tl_range_frame_end(struct tl_range_frame *frame);
/* Append a frame of the view in packed form, with `head` replacing its own, or, if NULL, with its
 * own: the `size` bytes of its tl_range_frame. */
TL_MUST_USE int tl_range_frame_read(const struct tl_view *view, size_t frame,
                                    const struct tl_bytes *head, struct tl_packer *packer,
                                    struct tl_buf *out, struct tl_fail *fail);

#endif
