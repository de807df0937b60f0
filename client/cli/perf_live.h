/* SPDX-License-Identifier: MIT */
/*
 * `perf record -o - … | tracelake push --format perf -`: a capture whose setup is in its own bytes,
 * pushed while they come. What was mapped before the trace began is sent first; what is mapped
 * later is sent when it is seen, and the server decodes the trace with it, anew: each time not
 * before as much time has passed as the capture had taken, so that this costs at most as much again
 * as the decoding itself, and once more at the end.
 */
#ifndef TL_CLI_PERF_LIVE_H
#define TL_CLI_PERF_LIVE_H

#include "import/bundle.h"
#include "tracelake.h"

struct tl_perf_live;

/*
 * Read ahead of standard input up to where the trace begins; the capture then has these bytes, the
 * rest of standard input, and the setup so far. `request` is borrowed. TL_NOMEM, TL_IO.
 */
TL_MUST_USE int tl_perf_live_new(struct tl_perf_live **out, struct tl_bundle_capture *capture,
                                 const struct tl_bundle_request *request, struct tl_fail *fail);
void tl_perf_live_free(struct tl_perf_live *live); /* NULL is fine */

/* See all bytes that are read behind those read ahead: struct tl_bundle_input, `tap`. */
void tl_perf_live_tap(void *live, const uint8_t *p, size_t n);

/* The trace's bytes so far have been sent; `last`: all of them. Bring its setup up to date, if it
 * is time. What fails is said, and tried again. Returns a setup that the server has now, borrowed
 * until the next call; NULL: the one that it had. */
const char *tl_perf_live_tend(void *live, struct tracelake *lake, const char *trace, bool last);

#endif
