/* SPDX-License-Identifier: MIT */
/*
 * Strict parsers of times. Decimals are computed with integers, because 2^53 ns are only 104 days
 * and a double would move a boundary between two instructions.
 */
#include "base/timearg.h"

#include "base/args.h"

#include <string.h>

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Decimals of the unit that are at least 1 ns: 6 for "ms". -1: no unit. */
static int unit_digits(const char *unit)
{
    static const struct {
        const char *name;
        int digits;
    } units[] = {{"ns", 0},        {"us", 3}, {"\xc2\xb5s", 3}, /* µ, the micro sign */
                 {"\xce\xbcs", 3},                              /* μ, the Greek letter */
                 {"ms", 6},        {"s", 9}};
    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (!strcmp(unit, units[i].name))
            return units[i].digits;
    return -1;
}

/* Append a digit to a number. */
static int add_digit(uint64_t *value, unsigned digit)
{
    if (*value > (UINT64_MAX - digit) / 10)
        return TL_USAGE;
    *value = *value * 10 + digit;
    return TL_OK;
}

/* Parse "DIGITS[.DIGITS]UNIT" into ns. */
static int parse_ns(const char *text, uint64_t *out)
{
    const size_t whole = strspn(text, "0123456789");
    const char *const decimals = text + whole + (text[whole] == '.');
    const size_t n = text[whole] == '.' ? strspn(decimals, "0123456789") : 0;
    const int digits = unit_digits(decimals + n);
    if (whole == 0 || digits < 0 || (text[whole] == '.' && n == 0))
        return TL_USAGE;
    uint64_t value = 0;
    int r = TL_OK;
    for (size_t i = 0; i < whole && r >= 0; i++)
        r = add_digit(&value, (unsigned)(text[i] - '0'));
    for (size_t i = 0; i < (size_t)digits && r >= 0; i++)
        r = add_digit(&value, i < n ? (unsigned)(decimals[i] - '0') : 0);
    if (r >= 0)
        *out = value;
    return r;
}

int tl_time_parse(const char *text, struct tl_time_arg *out)
{
    struct tl_time_arg time = {0};
    const size_t n = strlen(text);
    const bool hex = text[0] == '0' && (text[1] == 'x' || text[1] == 'X');
    time.ns = n > 0 && !hex && !is_digit(text[n - 1]);
    if ((time.ns ? parse_ns(text, &time.value) : tl_number_parse(text, &time.value)) < 0)
        return TL_USAGE;
    *out = time;
    return TL_OK;
}

/* Are both of the same kind? 0 is any kind. */
static bool agree(const struct tl_time_arg *a, const struct tl_time_arg *b)
{
    return a->ns == b->ns || (a->value == 0 && !a->ns) || (b->value == 0 && !b->ns);
}

int tl_time_ends_parse(const char *from, const char *to, struct tl_time_range *out)
{
    struct tl_time_arg a = {0}, b = {.value = UINT64_MAX};
    const bool length = to && *to == '+', open = !to || !*to;
    if (from && *from && tl_time_parse(from, &a) < 0)
        return TL_USAGE;
    if (!open && tl_time_parse(to + length, &b) < 0)
        return TL_USAGE;
    if (open)
        b.ns = a.ns;
    if (!agree(&a, &b) || (length && a.value > UINT64_MAX - b.value))
        return TL_USAGE;
    if (length)
        b.value += a.value;
    if (a.value > b.value)
        return TL_USAGE;
    *out = (struct tl_time_range){a.value, b.value, a.ns || b.ns, true};
    return TL_OK;
}

int tl_time_range_parse(const char *text, struct tl_time_range *out)
{
    const char *const colon = strchr(text, ':');
    char from[64];
    if (!colon || (size_t)(colon - text) >= sizeof from)
        return TL_USAGE;
    memcpy(from, text, (size_t)(colon - text));
    from[colon - text] = 0;
    return tl_time_ends_parse(from, colon + 1, out);
}
