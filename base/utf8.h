/* SPDX-License-Identifier: MIT */
/* Sanitising of external text to UTF-8, as JSON and protobuf require. Stateless, thread-safe. */
#ifndef TL_BASE_UTF8_H
#define TL_BASE_UTF8_H

#include <stddef.h>

/* Length of the UTF-8 sequence at the start of `text`, 0 if it is invalid (1 for NUL). Source: RFC
 * 3629, section 4. */
size_t tl_utf8_length(const char *text);

/* Replace every byte that is not part of well-formed UTF-8 by '?', in place. */
void tl_utf8_clean(char *text);

#endif
