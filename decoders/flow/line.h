/* SPDX-License-Identifier: MIT */
/* Parses a line of flow text into the fields after its letter, with their names (docs/http.md). */
#ifndef TL_FLOW_LINE_H
#define TL_FLOW_LINE_H

#include "base/bytes.h"

enum tl_line_type {
    TL_LINE_TEXT,
    TL_LINE_NUMBER, /* decimal; "12+" means at least 12 and gives 12 */
    TL_LINE_ADDRESS /* hexadecimal, without 0x */
};

struct tl_line_field {
    const char *name; /* static storage */
    enum tl_line_type type;
    struct tl_bytes text; /* points into the line */
    uint64_t value;       /* if it is a number or an address */
};

#define TL_LINE_FIELDS 10 /* maximum per line */

/* Get the fields of a line (without its newline), except those that are "-". Returns their number;
 * 0 also if the line does not begin with a letter of flow text. */
size_t tl_line_fields(struct tl_bytes line, struct tl_line_field out[static TL_LINE_FIELDS]);

#endif
