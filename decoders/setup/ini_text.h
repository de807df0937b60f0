/* SPDX-License-Identifier: MIT */
/* INI text to (section, key, value) calls, through inih, with its traps removed. */
#ifndef TL_SETUP_INI_TEXT_H
#define TL_SETUP_INI_TEXT_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>

/*
 * Called for each key, in order. Keys keep what stands in their parentheses, also a colon:
 * `PC(size:64)=0x10` is key "PC(size:64)". `value` is trimmed. `begins`: the first key behind a
 * section's head (two sections may have the same name). Return < 0 to stop.
 */
typedef int tl_ini_entry(void *context, const char *section, bool begins, const char *key,
                         const char *value, struct tl_fail *fail);

/*
 * Parse `n` bytes of INI text. Comments begin with ';' or '#', lines may end in CR LF. Lines
 * are limited to 190 characters but for comments and `description=`. TL_BAD names the line.
 */
TL_MUST_USE int tl_ini_parse(const char *text, size_t n, tl_ini_entry *entry, void *context,
                             struct tl_fail *fail);

#endif
