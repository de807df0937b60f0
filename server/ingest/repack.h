/* SPDX-License-Identifier: MIT */
/*
 * A thread of the lake that packs (packed.h) the raw segments that are complete: those behind which
 * another one has begun, and the last one of a complete capture. The packed object is durable
 * before the log is removed, so whatever happens one of them is there, and where both are they hold
 * the same. A damaged segment stays a log, and so does what the medium has no room for.
 */
#ifndef TL_INGEST_REPACK_H
#define TL_INGEST_REPACK_H

#include "base/err.h"

#include <stdbool.h>

struct tl_lake;
struct tl_trace;

TL_MUST_USE int tl_repack_start(struct tl_lake *lake, struct tl_fail *fail);
void tl_repack_stop(struct tl_lake *lake);
/* Does a trace have a segment to be packed? With its lock held. */
bool tl_repack_due_locked(const struct tl_trace *trace);
/* Look for segments now. No lock of a trace may be held. */
void tl_repack_wake(struct tl_lake *lake);

#endif
