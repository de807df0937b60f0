/* SPDX-License-Identifier: MIT */
/* INI text: sections, and keys with values of any length. */
#ifndef TL_SETUP_INI_TEXT_H
#define TL_SETUP_INI_TEXT_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>

/*
 * Receive a key; called for each, in order. Names and values are trimmed; a key may contain
 * colons: `PC(size:64)=0x10` has key "PC(size:64)". `begins` marks the first key after a section
 * header (several sections may have the same name); before the first one `section` is "". All
 * text is valid during the call only. Return < 0 to stop.
 */
typedef int tl_ini_entry(void *context, const char *section, bool begins, const char *key,
                         const char *value, struct tl_fail *fail);

enum tl_ini_form {
    TL_INI_LOOSE,  /* what is behind a section's name is ignored, as snapshots have it */
    TL_INI_STRICT, /* nothing but a comment may be there */
    TL_INI_FLAT,   /* there are no sections */
};

/*
 * Parse `n` bytes of INI text. Comments begin with ';' or '#', after a value with " ;"; lines may
 * end in CR LF. `*line` is the number of the line during calls; may be NULL. Returns the entry
 * function's error, or TL_BAD; `fail` names the line. TL_NOMEM.
 */
TL_MUST_USE int tl_ini_parse(const char *text, size_t n, enum tl_ini_form form, tl_ini_entry *entry,
                             void *context, unsigned *line, struct tl_fail *fail);

#endif
