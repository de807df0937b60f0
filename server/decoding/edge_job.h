/* SPDX-License-Identifier: MIT */
/*
 * Decoding the live edge of a trace that another server owns: nothing is stored.
 */
#ifndef TL_DECODING_EDGE_JOB_H
#define TL_DECODING_EDGE_JOB_H

#include <stdint.h>

struct tl_trace;

/* Run one decode job of a trace owned by another server. Returns the delay in ns until the next one
 * is due, < 0: none is. Takes the trace's lock. */
int64_t tl_edge_run(struct tl_trace *trace);

#endif
