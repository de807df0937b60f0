/* SPDX-License-Identifier: MIT */
/*
 * What programs write to a stimulus port of an ITM: characters, or numbers of a type. The trace
 * does not tell; the setup does (docs/setup.md). Pure functions.
 */
#ifndef TL_BASE_PORTFORM_H
#define TL_BASE_PORTFORM_H

#include "base/bytes.h"

#include <stdbool.h>

enum tl_port_form {
    TL_PORT_UNKNOWN, /* the setup does not say */
    TL_PORT_TEXT,    /* characters, in any number of bytes at a time */
    TL_PORT_HEX,     /* numbers, in hexadecimal */
    TL_PORT_U8,
    TL_PORT_U16,
    TL_PORT_U32,
    TL_PORT_I8,
    TL_PORT_I16,
    TL_PORT_I32,
    TL_PORT_FLOAT, /* binary32 */
    TL_PORT_FORMS
};

#define TL_PORTS      256 /* stimulus ports with all pages */
#define TL_PORT_VALUE 24  /* bytes of a value's text, with its NUL */

/* "text", "u32", …; "" for TL_PORT_UNKNOWN. Static storage. */
const char *tl_port_form_name(unsigned form);
/* The form of this name, of `n` bytes, in any case; TL_PORT_UNKNOWN: none has it. */
enum tl_port_form tl_port_form_named(const char *name, size_t n);

/*
 * Write the number that a record of `size` bytes is, as text. False: its form has no numbers (text,
 * unknown), or it is none of that form: it does not fit the type, or has not the size of a float.
 */
bool tl_port_value(unsigned form, uint64_t value, unsigned size, char out[static TL_PORT_VALUE]);

#endif
