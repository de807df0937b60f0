/* SPDX-License-Identifier: MIT */
/*
 * Small texts in the store that are replaced now and then, such as the lake's clock. The last line
 * is a checksum of the others: a damaged digit could age everything.
 */
#ifndef TL_LAKE_SUMMED_H
#define TL_LAKE_SUMMED_H

#include "base/buf.h"

struct tl_lake;

/* Append the text without its sum, terminated by NUL, to `out`, which must be empty. TL_BAD: it is
 * damaged; TL_NOTFOUND. */
TL_MUST_USE int tl_summed_get(struct tl_lake *lake, const char *key, struct tl_buf *out);
/* Store the text with its sum. */
TL_MUST_USE int tl_summed_put(struct tl_lake *lake, const char *key, const struct tl_buf *text,
                              struct tl_fail *fail);

#endif
