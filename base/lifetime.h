/* SPDX-License-Identifier: MIT */
/* Retention limits by age and size, in text form. */
#ifndef TL_BASE_LIFETIME_H
#define TL_BASE_LIFETIME_H

#include "base/err.h"

/* Parse "30d,200G": an age in s, m, h, d or w, a size in K, M, G or T (powers of 1024), either or
 * both; "" or "none": no limit, 0. Returns TL_USAGE. */
TL_MUST_USE int tl_lifetime_parse(const char *text, uint64_t *age_s, uint64_t *bytes);
/* The inverse: write to `out` and return it. */
char *tl_lifetime_text(uint64_t age_s, uint64_t bytes, char out[static 64]);

#endif
