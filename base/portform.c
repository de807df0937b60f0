/* SPDX-License-Identifier: MIT */
/*
 * Numbers as a port's type has them. The width of a record belongs to the program's variable, so a
 * narrower record is a number of its own width, and a wider one is one if it fits: otherwise the
 * rule and the program disagree, and the digits of the record say more than a wrong number.
 */
#include "base/portform.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

static const struct {
    const char *name;
    uint8_t bits; /* of a number */
    bool is_signed;
} forms[TL_PORT_FORMS] = {
    [TL_PORT_UNKNOWN] = {"", 0, false}, [TL_PORT_TEXT] = {"text", 0, false},
    [TL_PORT_HEX] = {"hex", 0, false},  [TL_PORT_U8] = {"u8", 8, false},
    [TL_PORT_U16] = {"u16", 16, false}, [TL_PORT_U32] = {"u32", 32, false},
    [TL_PORT_I8] = {"i8", 8, true},     [TL_PORT_I16] = {"i16", 16, true},
    [TL_PORT_I32] = {"i32", 32, true},  [TL_PORT_FLOAT] = {"float", 0, false},
};

const char *tl_port_form_name(unsigned form)
{
    return form < TL_PORT_FORMS ? forms[form].name : "";
}

enum tl_port_form tl_port_form_named(const char *name, size_t n)
{
    unsigned form = TL_PORT_FORMS - 1;
    while (form > 0 &&
           (strlen(forms[form].name) != n || strncasecmp(forms[form].name, name, n) != 0))
        form--;
    return (enum tl_port_form)form;
}

static bool unsigned_value(uint64_t value, unsigned bits, char out[static TL_PORT_VALUE])
{
    snprintf(out, TL_PORT_VALUE, "%" PRIu64, value);
    return value >> bits == 0;
}

static bool signed_value(uint64_t value, unsigned size, unsigned bits,
                         char out[static TL_PORT_VALUE])
{
    const unsigned unused = 64 - 8 * size;
    const int64_t number = (int64_t)(value << unused) >> unused;
    const int64_t limit = INT64_C(1) << (bits - 1);
    snprintf(out, TL_PORT_VALUE, "%" PRId64, number);
    return number >= -limit && number < limit;
}

/* The shortest digits that are this number again. */
static bool float_value(uint64_t value, unsigned size, char out[static TL_PORT_VALUE])
{
    enum { DIGITS_MAX = 9 };
    const uint32_t bits = (uint32_t)value;
    float number, again;
    if (size != sizeof number)
        return false;
    memcpy(&number, &bits, sizeof number);
    for (int digits = 1; digits <= DIGITS_MAX; digits++) {
        snprintf(out, TL_PORT_VALUE, "%.*g", digits, (double)number);
        if (sscanf(out, "%f", &again) == 1 && memcmp(&again, &number, sizeof number) == 0)
            break;
    }
    return true;
}

bool tl_port_value(unsigned form, uint64_t value, unsigned size, char out[static TL_PORT_VALUE])
{
    if (size == 0 || size > 8 || form >= TL_PORT_FORMS)
        return false;
    if (form == TL_PORT_FLOAT)
        return float_value(value, size, out);
    if (form == TL_PORT_HEX) {
        snprintf(out, TL_PORT_VALUE, "0x%0*" PRIx64, (int)(2 * size), value);
        return true;
    }
    if (forms[form].bits == 0)
        return false;
    return forms[form].is_signed ? signed_value(value, size, forms[form].bits, out)
                                 : unsigned_value(value, forms[form].bits, out);
}
