/* SPDX-License-Identifier: MIT */
/* Durations as text: "1.234 ms", "167 ns … 50 µs", or ticks. Stateless, thread-safe. */
#ifndef TL_OUT_DURATIONS_H
#define TL_OUT_DURATIONS_H

#include "tracelake.h"

#define TL_DURATION_TEXT 64

/* A duration without bounds, with up to 4 digits. `ns`: it is in ns, otherwise in ticks. */
char *tl_duration_text(uint64_t value, bool ns, char out[static TL_DURATION_TEXT]);
/*
 * One with bounds: no more digits than these allow, or the bounds themselves if they differ by more
 * than a tenth of it; "> 5 µs" if there is no upper one, "~5 µs" if none is known.
 */
char *tl_duration_bounds(const struct tracelake_duration *duration, bool ns,
                         char out[static TL_DURATION_TEXT]);

#endif
