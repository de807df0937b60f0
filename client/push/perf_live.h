/* SPDX-License-Identifier: MIT */
/*
 * `perf record -o - … | tracelake push --format perf -`: a capture whose setup is contained in its
 * own bytes, pushed while they arrive. Code mapped before the trace begins is sent first. Code
 * mapped later is sent when its record is seen, and the server then decodes the trace again with
 * it. To bound the cost, this happens only after as much time has passed as the capture had taken
 * so far (at most doubling the decoding work), and once more at the end.
 */
#ifndef TL_PUSH_PERF_LIVE_H
#define TL_PUSH_PERF_LIVE_H

#include "import/bundle.h"
#include "tracelake.h"

struct tl_perf_live;

/*
 * Read standard input ahead to where the trace begins; the capture then consists of these bytes and
 * the rest of standard input, with the setup known so far. `request` is borrowed. TL_NOMEM, TL_IO.
 */
TL_MUST_USE int tl_perf_live_new(struct tl_perf_live **out, struct tl_bundle_capture *capture,
                                 const struct tl_bundle_request *request, struct tl_fail *fail);
void tl_perf_live_free(struct tl_perf_live *live); /* accepts NULL */

/* Receives all bytes read after those read ahead: `tap` of struct tl_bundle_input. */
void tl_perf_live_tap(void *live, const uint8_t *p, size_t n);

/* Update the trace's setup if it is time; all bytes read so far have been sent, with `last` all
 * bytes of the capture. Failures are reported and retried. Returns the setup that the server has
 * now, borrowed until the next call; NULL: unchanged. */
const char *tl_perf_live_tend(void *live, struct tracelake *lake, const char *trace, bool last);

#endif
