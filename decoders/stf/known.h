/* SPDX-License-Identifier: MIT */
/*
 * What a trace told so far of the machine that a part of it cannot do without: registers
 * (stf/regstate.h) and address translation (stf/walks.h). No I/O, not thread-safe. Private to the
 * project.
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

/* Take any record, in order. TL_NOMEM. */
TL_MUST_USE int tl_stf_known_add(struct tl_stf_known *known, const struct tl_stf_record *record);
/* Take all records in `stf`, which must be whole. TL_NOMEM. */
TL_MUST_USE int tl_stf_known_pass(struct tl_stf_known *known, const struct tl_stf_layout *layout,
                                  struct tl_bytes stf);

/* Append what is known: INST_REG records, then PAGE_TABLE_WALKs. TL_NOMEM. */
TL_MUST_USE int tl_stf_known_put(const struct tl_stf_known *known,
                                 const struct tl_stf_layout *layout, struct tl_buf *out);

/* Into bytes or, of a new one, from them. */
void tl_stf_known_state(struct tl_stf_known *known, struct tl_state *state);

#endif
