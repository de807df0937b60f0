/* SPDX-License-Identifier: MIT */
/* Text from elsewhere made UTF-8, as JSON and protobuf want it. Stateless, thread-safe. */
#ifndef TL_BASE_UTF8_H
#define TL_BASE_UTF8_H

/* Replace in place every byte that is not part of well-formed UTF-8 by '?'. */
void tl_utf8_clean(char *text);

#endif
