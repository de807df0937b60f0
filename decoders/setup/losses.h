/* SPDX-License-Identifier: MIT */
/*
 * Places of a capture at which the connection that its bytes came by was lost, as text: key `lost`
 * of a setup. Pure functions, thread-safe.
 */
#ifndef TL_SETUP_LOSSES_H
#define TL_SETUP_LOSSES_H

#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

struct tl_setup;

#define TL_LOSS_WHEN 48 /* bytes */

/* An unknown number of bytes is missing in front of the one at `offset`, which is not 0. */
struct tl_setup_loss {
    uint64_t offset;
    char when[TL_LOSS_WHEN]; /* as of tl_loss_when() */
};

/*
 * "2026-11-30T13:05:01.123Z 1.204 s": when the last byte in front of the place had arrived, and how
 * long behind that the next one, both in ns since 1970. "-": this is not known (0).
 */
void tl_loss_when(char out[static TL_LOSS_WHEN], uint64_t before, uint64_t behind);

/* Add a place by its text, "OFFSET" or "OFFSET WHEN". Places rise. TL_BAD: it is none, or does not
 * come behind the last one; TL_NOMEM. */
TL_MUST_USE int tl_setup_add_loss(struct tl_setup *setup, const char *text);

#endif
