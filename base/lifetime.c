/* SPDX-License-Identifier: MIT */
/*
 * Limits of age and size as text, and back. A limit is written in the largest unit that divides it,
 * so that parsing the text gives the same limit again.
 */
#include "base/lifetime.h"

#include "base/err.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct unit {
    char letter;
    uint64_t scale;
};

static const struct unit ages[] = {{'w', 604800}, {'d', 86400}, {'h', 3600}, {'m', 60}, {'s', 1}};
static const struct unit sizes[] = {
    {'T', UINT64_C(1) << 40}, {'G', 1 << 30}, {'M', 1 << 20}, {'K', 1 << 10}};

static int parse_one(const char *text, size_t n, uint64_t *age_s, uint64_t *bytes)
{
    char *end;
    if (n < 2 || !isdigit((unsigned char)*text))
        return TL_USAGE;
    const uint64_t number = strtoull(text, &end, 10);
    if (end != text + n - 1 || number > UINT32_MAX)
        return TL_USAGE;
    for (size_t i = 0; i < sizeof(ages) / sizeof(*ages); i++)
        if (*end == ages[i].letter) {
            *age_s = number * ages[i].scale;
            return TL_OK;
        }
    for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++)
        if (*end == sizes[i].letter) {
            *bytes = number * sizes[i].scale;
            return TL_OK;
        }
    return TL_USAGE;
}

int tl_lifetime_parse(const char *text, uint64_t *age_s, uint64_t *bytes)
{
    int r = TL_OK;
    *age_s = *bytes = 0;
    if (strcmp(text, "none") == 0)
        return TL_OK;
    while (*text && r >= 0) {
        const size_t n = strcspn(text, ",");
        r = parse_one(text, n, age_s, bytes);
        text += n + (text[n] == ',');
    }
    return r;
}

static size_t put_unit(char *out, size_t room, const struct unit *units, size_t n, uint64_t value)
{
    size_t i = 0;
    while (i + 1 < n && value % units[i].scale != 0)
        i++;
    return (size_t)snprintf(out, room, "%" PRIu64 "%c", value / units[i].scale, units[i].letter);
}

char *tl_lifetime_text(uint64_t age_s, uint64_t bytes, char out[static 64])
{
    size_t n = 0;
    snprintf(out, 64, "none");
    if (age_s > 0)
        n = put_unit(out, 64, ages, sizeof(ages) / sizeof(*ages), age_s);
    if (age_s > 0 && bytes > 0)
        out[n++] = ',';
    if (bytes > 0)
        put_unit(out + n, 64 - n, sizes, sizeof(sizes) / sizeof(*sizes), bytes);
    return out;
}
