/* SPDX-License-Identifier: MIT */
/*
 * Writes durations with a unit that keeps them between 1 and 1000. A duration of which only the
 * bounds are known is written as these, since a number would be taken for a measurement.
 */
#include "out/durations.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { DIGITS = 4, ROOM = TL_DURATION_TEXT - 1 /* behind a "~" */ };

/* Write with `digits` significant digits, rounded. */
static char *write_digits(uint64_t value, bool ns, int digits, char *out)
{
    static const char *const units[] = {"ns", "\xc2\xb5s", "ms", "s"};
    double n = (double)value;
    size_t unit = 0;
    if (!ns) {
        snprintf(out, ROOM, "%" PRIu64, value);
        return out;
    }
    while (n >= 999.95 && unit + 1 < sizeof units / sizeof *units) {
        n /= 1000;
        unit++;
    }
    const int whole = n >= 100 ? 3 : n >= 10 ? 2 : 1;
    const int decimals = unit == 0 || digits <= whole ? 0 : digits - whole;
    snprintf(out, ROOM, "%.*f %s", decimals, n, units[unit]);
    return out;
}

char *tl_duration_text(uint64_t value, bool ns, char out[static TL_DURATION_TEXT])
{
    return write_digits(value, ns, DIGITS, out);
}

/* Digits that a distance between the bounds leaves certain. */
static int digits_of(uint64_t value, uint64_t distance)
{
    int digits = 1;
    for (uint64_t n = value; digits < DIGITS && n / 10 >= distance && n >= 10; n /= 10)
        digits++;
    return digits;
}

char *tl_duration_bounds(const struct tracelake_duration *d, bool ns,
                         char out[static TL_DURATION_TEXT])
{
    char least[TL_DURATION_TEXT], most[TL_DURATION_TEXT];
    const uint64_t distance = d->most - d->least;
    if (d->most == UINT64_MAX && d->least == 0) {
        out[0] = '~';
        return write_digits(d->value, ns, 3, out + 1), out;
    }
    if (d->most == UINT64_MAX) {
        strcpy(out, "> ");
        write_digits(d->least, ns, DIGITS, least);
        memcpy(out + 2, least, strlen(least) + 1);
        return out;
    }
    if (distance <= d->value / 10)
        return write_digits(d->value, ns, distance ? digits_of(d->value, distance) : DIGITS, out);
    snprintf(out, TL_DURATION_TEXT, "%.24s \xe2\x80\xa6 %.24s",
             write_digits(d->least, ns, 2, least), write_digits(d->most, ns, 2, most));
    return out;
}
