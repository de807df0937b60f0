/* SPDX-License-Identifier: MIT */
/*
 * Generates the header of an excerpt from the trace's own header. Private to the project;
 * thread-safe.
 */
#ifndef TL_STF_REHEAD_H
#define TL_STF_REHEAD_H

#include "stf/record.h"

/* Does this TRACE_INFO mark a trace generated from flow items? The last one in a header decides. */
bool tl_stf_info_is_ours(const struct tl_stf_record *record);

/* Contents of the new header. */
struct tl_stf_rehead {
    struct tl_bytes head; /* records of the original header, in plain layout */
    const char *comment;  /* an additional COMMENT; NULL: none */
    const char *info;     /* text of an additional TRACE_INFO, unless the last one already has it */
    uint16_t iem;
    uint64_t features; /* PROCESS_ID is added if the process differs from the original header's */
    uint64_t pc;
    uint32_t tgid, tid, asid;
};

/*
 * Append the header: the original's records, in stf_lib's order, with the given changes. Returns
 * TL_BAD: the original header cannot be read; TL_USAGE, TL_NOMEM.
 */
TL_MUST_USE int tl_stf_rehead_write(const struct tl_stf_rehead *spec, struct tl_buf *out);

#endif
