/* SPDX-License-Identifier: MIT */
/* The process as the system sees it, under the names that Prometheus' own clients give it. */
#ifndef TL_PROCESS_H
#define TL_PROCESS_H

#include "base/buf.h"

/*
 * Append Prometheus text: memory, descriptors, threads, processor time, begin, and the build. What
 * the system does not tell is left out. Any thread. TL_NOMEM.
 *
 * Source: Prometheus, "Writing client libraries", process metrics; proc(5).
 */
TL_MUST_USE int tl_process_metrics(struct tl_buf *out);

#endif
