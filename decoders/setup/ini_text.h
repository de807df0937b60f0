/* SPDX-License-Identifier: MIT */
/* INI parser on top of inih, without its pitfalls. */
#ifndef TL_SETUP_INI_TEXT_H
#define TL_SETUP_INI_TEXT_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>

/*
 * Receive a key; called for each, in order. Keys include their parentheses, even with a colon:
 * `PC(size:64)=0x10` has key "PC(size:64)". `value` is trimmed. `begins` marks the first key after
 * a section header (several sections may have the same name). Return < 0 to stop.
 */
typedef int tl_ini_entry(void *context, const char *section, bool begins, const char *key,
                         const char *value, struct tl_fail *fail);

/*
 * Parse `n` bytes of INI text. Comments begin with ';' or '#', lines may end in CR LF. Lines are
 * limited to 190 characters except comments and `description=`. Returns TL_BAD; `fail` names the
 * line.
 */
TL_MUST_USE int tl_ini_parse(const char *text, size_t n, tl_ini_entry *entry, void *context,
                             struct tl_fail *fail);

#endif
