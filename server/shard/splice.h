/* SPDX-License-Identifier: MIT */
/*
 * Frames of shards as parts of longer files. A shard is a trace of its own: its first frame begins
 * with a header, and its first group repeats the current state. In a range over several shards that
 * is omitted: the group is the one that an STF writer would produce for the whole range. All other
 * frames are unchanged. Not thread-safe, except with different walks and buffers.
 */
#ifndef TL_SHARD_SPLICE_H
#define TL_SHARD_SPLICE_H

#include "shard/walk.h"

/* Size of the header and first group at the begin of a shard's `records`; 0: there is no group, or
 * they are too long to be packed separately (TL_PACK_HEAD). */
size_t tl_splice_head(struct tl_bytes records);

/*
 * Append the records of `stf`, the begin of the view's first frame, without its header, as they
 * would follow an instruction from which the flow continues at `pc`. `stf` contains the first
 * group. TL_BAD, TL_NOMEM.
 */
TL_MUST_USE int tl_splice_join(const struct tl_view *view, struct tl_bytes stf, uint64_t pc,
                               struct tl_buf *out);

/*
 * Number of markers of the view's shard before `position`, which lies in chunk `chunk` or right
 * after it. `*last` (`last` may be NULL) receives the position of the last of them in this chunk,
 * UINT64_MAX: none. TL_BAD, TL_IO, TL_NOMEM.
 */
TL_MUST_USE int tl_splice_markers(struct tl_view *view, size_t chunk, enum tl_protocol protocol,
                                  uint64_t position, uint64_t *markers, uint64_t *last,
                                  struct tl_fail *fail);

/*
 * Size of the first `n` groups of `stf`, whose first instruction is at `*pc`; `*pc` becomes the
 * address after them. SIZE_MAX: there are fewer.
 */
size_t tl_splice_pass(const struct tl_stf_layout *layout, struct tl_bytes stf, uint64_t n,
                      uint64_t *pc);

/* Append frame `i` in packed form, verified against its checksum. `packer` packs frames of a
 * growing shard that are not packed yet. TL_BAD, TL_IO, TL_NOMEM. */
TL_MUST_USE int tl_splice_packed(const struct tl_view *view, size_t i, struct tl_packer *packer,
                                 struct tl_buf *out, struct tl_fail *fail);

#endif
