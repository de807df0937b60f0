/* SPDX-License-Identifier: MIT */
/*
 * Decoding the live edge of a trace that another server owns.
 */
#ifndef TL_DECODING_EDGE_JOB_H
#define TL_DECODING_EDGE_JOB_H

#include <stdint.h>

struct tl_trace;

/* The decode job of a trace owned by another server; like tl_lake_run_job(). */
int64_t tl_edge_run(struct tl_trace *trace);

#endif
