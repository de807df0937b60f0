/* SPDX-License-Identifier: MIT */
/*
 * The header of a part of a trace, made from the trace's own. Private to the project; thread-safe.
 */
#ifndef TL_STF_REHEAD_H
#define TL_STF_REHEAD_H

#include "stf/record.h"

/* Does this TRACE_INFO say that the trace was made from flow items? The last one counts. */
bool tl_stf_info_is_ours(const struct tl_stf_record *record);

/* What the new header says. */
struct tl_stf_rehead {
    struct tl_bytes head; /* the old header's records, in the plain layout */
    const char *comment;  /* one COMMENT more; NULL: none */
    const char *info;     /* text of one TRACE_INFO more, unless it is the last one already */
    uint16_t iem;
    uint64_t features; /* PROCESS_ID is added where the process is not the old header's */
    uint64_t pc;
    uint32_t tgid, tid, asid;
};

/*
 * Append it: what the old one has, in the order of stf_lib, and what is told here anew. TL_BAD: the
 * old header cannot be read; TL_USAGE, TL_NOMEM.
 */
TL_MUST_USE int tl_stf_rehead_write(const struct tl_stf_rehead *spec, struct tl_buf *out);

#endif
