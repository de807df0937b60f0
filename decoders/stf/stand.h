/* SPDX-License-Identifier: MIT */
/* Save and restore the state of STF readers (base/state.h). Private to the project. */
#ifndef TL_STF_STAND_H
#define TL_STF_STAND_H

#include "base/state.h"
#include "stf/file.h"
#include "stf/regstate.h"

/*
 * Append to `out` capture bytes that a saved state left out. Returns TL_UNSUPPORTED: not available.
 */
typedef int tl_stf_reread(const void *context, uint64_t offset, uint64_t n, struct tl_buf *out);

void tl_stf_regstate_state(struct tl_stf_regstate *regs, struct tl_state *state);
void tl_stf_header_state(struct tl_stf_header *header, struct tl_state *state);
void tl_stf_layout_state(struct tl_stf_layout *layout, struct tl_state *state);
void tl_stf_pc_state(struct tl_stf_pc *pc, struct tl_state *state);

/*
 * Save the state of a reader of pushed bytes that has returned TL_AGAIN or a final result, or
 * restore it into a new one; a final result is restored as TL_EOF. Sets TL_AGAIN if the header is
 * not complete.
 */
void tl_stf_reader_state(struct tl_stf_reader *reader, struct tl_state *state);

/*
 * Save the state between two pushes, after everything that can be unpacked has been taken, or
 * restore it into a new unpacker. The input of an unfinished zstd frame, gzip member or xz stream
 * is not saved, but reread and unpacked again.
 */
void tl_stf_unpack_state(struct tl_stf_unpack *unpack, tl_stf_reread *reread, const void *context,
                         struct tl_state *state);

#endif
