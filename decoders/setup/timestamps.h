/* SPDX-License-Identifier: MIT */
/* Which sources of a setup send times that sources of different kinds share. Thread-safe. */
#ifndef TL_SETUP_TIMESTAMPS_H
#define TL_SETUP_TIMESTAMPS_H

#include "setup/setup.h"

/*
 * Are the times of a source those of the whole capture? A software trace source may count by a
 * clock of its own: its times are if they are global ones, or if nothing else in the capture has
 * times.
 */
bool tl_source_is_timed(const struct tl_setup *setup, const struct tl_source *source);

#endif
