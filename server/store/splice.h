/* SPDX-License-Identifier: MIT */
/*
 * Frames of shards as parts of longer files. A shard is a trace of its own: its first frame begins
 * with a header, and its first group tells again what is in force. Within a range over several
 * shards none of that is said: the group has what STF writers of the whole range would give it. All
 * other frames are the same there. Not thread-safe, but for different walks and buffers.
 */
#ifndef TL_STORE_SPLICE_H
#define TL_STORE_SPLICE_H

#include "store/walk.h"

/* Bytes of the header and the first group that `records` of a shard begin with; 0: there is no
 * group, or these are more than are packed apart (TL_PACK_HEAD). */
size_t tl_splice_head(struct tl_bytes records);

/*
 * Append the records that `stf`, the begin of the view's first frame, has behind its header, as
 * they stand behind an instruction from which the flow leads to `pc`. `stf` holds the first group.
 * TL_BAD, TL_NOMEM.
 */
TL_MUST_USE int tl_splice_join(const struct tl_view *view, struct tl_bytes stf, uint64_t pc,
                               struct tl_buf *out);

/*
 * Markers of the view's shard in front of `position`, which lies in chunk `chunk` or right behind
 * it. `*last`, which may be NULL: position of the last of them in this chunk, UINT64_MAX: it has
 * none. TL_BAD, TL_IO, TL_NOMEM.
 */
TL_MUST_USE int tl_splice_markers(struct tl_view *view, size_t chunk, enum tl_protocol protocol,
                                  uint64_t position, uint64_t *markers, uint64_t *last,
                                  struct tl_fail *fail);

/*
 * Bytes of the first `n` groups of `stf`, whose first instruction is at `*pc`, which becomes the
 * address behind them. SIZE_MAX: there are fewer.
 */
size_t tl_splice_pass(const struct tl_stf_layout *layout, struct tl_bytes stf, uint64_t n,
                      uint64_t *pc);

/* Append frame `i` as it is packed, checked against its checksum. `packer` packs what in a growing
 * shard nobody has packed yet. TL_BAD, TL_IO, TL_NOMEM. */
TL_MUST_USE int tl_splice_packed(const struct tl_view *view, size_t i, struct tl_packer *packer,
                                 struct tl_buf *out, struct tl_fail *fail);

#endif
