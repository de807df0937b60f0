/* SPDX-License-Identifier: MIT */
/*
 * How much of some frames the streams understand, to tell alignments apart that fit alike by their
 * synchronisation packets. Stateless; thread-safe.
 */
#ifndef TL_FORMATS_FRAMES_TRIAL_H
#define TL_FORMATS_FRAMES_TRIAL_H

#include "setup/setup.h"

#include <stddef.h>
#include <stdint.h>

/*
 * Decode `p[0..n)`, consecutive frames that source `id` (or TL_TPIU_NO_ID) was current in front of,
 * with new decoders for the sources of `setup`. Returns how many of their bytes were not lost, or
 * TL_NOMEM.
 */
int64_t tl_frames_try(const struct tl_setup *setup, uint8_t id, const uint8_t *p, size_t n);

#endif
