/* SPDX-License-Identifier: MIT */
/*
 * A thread of the lake that packs (packed.h) complete raw segments: those followed by another one,
 * and the last one of a complete capture. The packed object is durable before the log is removed,
 * so that one of them always exists, and if both exist they have the same content. A damaged
 * segment stays a log, and so does one for which there is not enough space.
 */
#ifndef TL_INGEST_REPACK_H
#define TL_INGEST_REPACK_H

#include "base/err.h"

#include <stdbool.h>

struct tl_lake;
struct tl_trace;

TL_MUST_USE int tl_repack_start(struct tl_lake *lake, struct tl_fail *fail);
void tl_repack_stop(struct tl_lake *lake);

#endif
