/* SPDX-License-Identifier: MIT */
/*
 * Machine state accumulated from a trace that an excerpt of it needs: registers (stf/regstate.h)
 * and address translation (stf/walks.h). No I/O, not thread-safe. Private to the project.
 */
#ifndef TL_STF_KNOWN_H
#define TL_STF_KNOWN_H

#include "base/state.h"
#include "stf/regstate.h"
#include "stf/walks.h"

struct tl_stf_known {
    struct tl_stf_regstate *regs;
    struct tl_stf_walks *walks;
};

TL_MUST_USE int tl_stf_known_new(struct tl_stf_known **out);
void tl_stf_known_free(struct tl_stf_known *known);

/* Process any record, in order. Returns TL_NOMEM. */
TL_MUST_USE int tl_stf_known_add(struct tl_stf_known *known, const struct tl_stf_record *record);
/* Process all records in `stf`, which must be complete. Returns TL_NOMEM. */
TL_MUST_USE int tl_stf_known_pass(struct tl_stf_known *known, const struct tl_stf_layout *layout,
                                  struct tl_bytes stf);

/* Append the state: INST_REG records, then PAGE_TABLE_WALKs. Returns TL_NOMEM. */
TL_MUST_USE int tl_stf_known_put(const struct tl_stf_known *known,
                                 const struct tl_stf_layout *layout, struct tl_buf *out);

/* Save the state, or restore it into a new object. */
void tl_stf_known_state(struct tl_stf_known *known, struct tl_state *state);

#endif
