/* SPDX-License-Identifier: MIT */
/* How long, and how much of it, data is kept: as people write it. */
#ifndef TL_BASE_LIFETIME_H
#define TL_BASE_LIFETIME_H

#include "base/err.h"

/* "30d,200G": an age in s, m, h, d or w, a size in K, M, G or T (powers of 1024), either or both;
 * "" or "none": no limit, 0. TL_USAGE. */
TL_MUST_USE int tl_lifetime_parse(const char *text, uint64_t *age_s, uint64_t *bytes);
/* The inverse, into `out`; returns it. */
char *tl_lifetime_text(uint64_t age_s, uint64_t bytes, char out[static 64]);

#endif
