/* SPDX-License-Identifier: MIT */
/* Where readers of STF stand, into bytes or from them (base/state.h). Private to the project. */
#ifndef TL_STF_STAND_H
#define TL_STF_STAND_H

#include "base/state.h"
#include "stf/file.h"
#include "stf/regstate.h"

/* Bytes of the capture that a state has left out, appended to `out`; TL_UNSUPPORTED: nobody can. */
typedef int tl_stf_reread(const void *context, uint64_t offset, uint64_t n, struct tl_buf *out);

void tl_stf_regstate_state(struct tl_stf_regstate *regs, struct tl_state *state);
void tl_stf_header_state(struct tl_stf_header *header, struct tl_state *state);
void tl_stf_layout_state(struct tl_stf_layout *layout, struct tl_state *state);
void tl_stf_pc_state(struct tl_stf_pc *pc, struct tl_state *state);

/*
 * Of a reader of pushed bytes that has said TL_AGAIN, or anything that is final: where it stands,
 * into bytes or, of a new one, from them; then the end is TL_EOF, whatever it was. TL_AGAIN: the
 * header is not complete.
 */
void tl_stf_reader_state(struct tl_stf_reader *reader, struct tl_state *state);

/*
 * Between two pushes, with all that could be unpacked taken: where it stands, into bytes or, of a
 * new one, from them. What has come of a zstd frame, a gzip member or an xz stream that has not
 * ended is read again, and unpacked once more.
 */
void tl_stf_unpack_state(struct tl_stf_unpack *unpack, tl_stf_reread *reread, const void *context,
                         struct tl_state *state);

#endif
