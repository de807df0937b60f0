/* SPDX-License-Identifier: MIT */
/* A line of flow text taken apart: the fields behind its letter, by name (docs/http.md). */
#ifndef TL_FLOW_LINE_H
#define TL_FLOW_LINE_H

#include "base/bytes.h"

enum tl_line_type {
    TL_LINE_TEXT,
    TL_LINE_NUMBER, /* decimal; "12+" is twelve at least, and so is 12 */
    TL_LINE_ADDRESS /* hexadecimal, without 0x */
};

struct tl_line_field {
    const char *name; /* static storage */
    enum tl_line_type type;
    struct tl_bytes text; /* within the line */
    uint64_t value;       /* of a number or an address */
};

#define TL_LINE_FIELDS 3 /* that a line has at most */

/* The fields that the line, without its end, has; those that are "-" are left out. Returns how
 * many: 0 also of a line that begins with no letter of flow text. */
size_t tl_line_fields(struct tl_bytes line, struct tl_line_field out[static TL_LINE_FIELDS]);

#endif
