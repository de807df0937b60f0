/* SPDX-License-Identifier: MIT */
/*
 * The decode job of a trace, run by the threads of lake/jobs.h; at most one of a trace at a time.
 */
#ifndef TL_DECODING_RUN_H
#define TL_DECODING_RUN_H

#include "base/err.h"

#include <stdint.h>

struct tl_trace;

/* Run one decode job. Returns the delay in ns until the next one is due, < 0: none is. */
int64_t tl_trace_run_job(struct tl_trace *trace);
/* Another server has received an image that the trace's setup names: decode it again with that if
 * it is ours. */
void tl_trace_image_came(struct tl_trace *trace);
/* Resume unfinished work on it, from the state in the catalog and the spool. */
TL_MUST_USE int tl_trace_revive(struct tl_trace *trace, struct tl_fail *fail);

#endif
