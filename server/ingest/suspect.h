/* SPDX-License-Identifier: MIT */
/*
 * Captures that end the server: one that was being decoded when the server was killed six times, with
 * no checkpoint in between, is not begun again by itself, or the server would never stay up.
 *
 * The object "c/<trace>/<generation>/begun" has the number of times that the server ended while it
 * was there, and the process that decoded last: neither a stopped server nor a machine that went
 * down counts. It is written before decoding is resumed after a start of the server, and removed
 * once everything that had arrived is decoded, or a checkpoint is stored. For a generation's decode
 * job.
 */
#ifndef TL_INGEST_SUSPECT_H
#define TL_INGEST_SUSPECT_H

#include "base/err.h"

#include <stdbool.h>

struct tl_gen;

/* Before decoding is resumed after a start: TL_LIMIT, and what to do in `fail`: it must not be.
 * Errors of the store are ignored. */
TL_MUST_USE int tl_suspect_begin(struct tl_gen *gen, struct tl_fail *fail);
/* It has progressed. */
void tl_suspect_clear(struct tl_gen *gen);
/* The server is being stopped meanwhile: that does not count. */
void tl_suspect_stop(struct tl_gen *gen);
/* Is it the key of such an object? */
bool tl_suspect_is(const char *key);

#endif
