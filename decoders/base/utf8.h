/* SPDX-License-Identifier: MIT */
/* Text from elsewhere made UTF-8, as JSON and protobuf want it. Stateless, thread-safe. */
#ifndef TL_BASE_UTF8_H
#define TL_BASE_UTF8_H

#include <stddef.h>

/* Length of the UTF-8 sequence that `text` begins with, 0 if it begins with none (of NUL: 1).
 * Source: RFC 3629, section 4. */
size_t tl_utf8_length(const char *text);

/* Replace in place every byte that is not part of well-formed UTF-8 by '?'. */
void tl_utf8_clean(char *text);

#endif
