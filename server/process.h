/* SPDX-License-Identifier: MIT */
/* Metrics of the process, named as in Prometheus' own client libraries. */
#ifndef TL_PROCESS_H
#define TL_PROCESS_H

#include "base/buf.h"

/*
 * Append Prometheus text: memory, descriptors, threads, processor time, start time, and build.
 * Values that the system does not provide are omitted. Any thread. TL_NOMEM.
 *
 * Source: Prometheus, "Writing client libraries", process metrics; proc(5).
 */
TL_MUST_USE int tl_process_metrics(struct tl_buf *out);

#endif
