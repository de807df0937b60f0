/* SPDX-License-Identifier: MIT */
/*
 * Strict parsers of values: the whole text must be the value, in the one notation that help texts
 * show. A setter returns what would have been right, so that every caller, whatever named the
 * value, reports a mistake in the same words.
 */
#include "base/args.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

int tl_number_parse(const char *text, uint64_t *out)
{
    if (*text < '0' || *text > '9') /* strtoull() would accept signs and blanks */
        return TL_USAGE;
    char *end;
    errno = 0;
    const int base = text[0] == '0' && (text[1] == 'x' || text[1] == 'X') ? 16 : 10;
    const unsigned long long value = strtoull(text, &end, base);
    if (errno || *end)
        return TL_USAGE;
    *out = value;
    return TL_OK;
}

int tl_pc_parse(const char *text, size_t n, uint64_t *out)
{
    char digits[24];
    char *end;
    if (n >= sizeof digits || n == 0 || !isxdigit((unsigned char)*text))
        return TL_USAGE;
    memcpy(digits, text, n);
    digits[n] = 0;
    errno = 0;
    const unsigned long long value = strtoull(digits, &end, 16);
    if (errno || *end)
        return TL_USAGE;
    *out = value;
    return TL_OK;
}

/* Parse a number with an optional suffix K, M, G or T, powers of `thousand`. */
static int parse_large(const char *text, uint64_t thousand, uint64_t *out)
{
    static const char units[] = "KMGT";
    char digits[32];
    const size_t n = strlen(text);
    if (n == 0 || n >= sizeof digits)
        return TL_USAGE;
    memcpy(digits, text, n + 1);
    const char *const unit = strchr(units, digits[n - 1]);
    uint64_t value, factor = 1;
    for (const char *u = units; unit && u <= unit; u++)
        factor *= thousand;
    if (unit)
        digits[n - 1] = 0;
    if (tl_number_parse(digits, &value) < 0 || value > UINT64_MAX / factor)
        return TL_USAGE;
    *out = value * factor;
    return TL_OK;
}

/* The two ends, in any order. */
static int parse_ends(const char *text, uint64_t thousand, struct tl_arg_range *out)
{
    const char *colon = strchr(text, ':');
    char from[32];
    if (!colon || (size_t)(colon - text) >= sizeof from)
        return TL_USAGE;
    memcpy(from, text, (size_t)(colon - text));
    from[colon - text] = 0;
    struct tl_arg_range range = {0, UINT64_MAX, true};
    if (from[0] && parse_large(from, thousand, &range.from) < 0)
        return TL_USAGE;
    if (colon[1] && parse_large(colon + 1, thousand, &range.to) < 0)
        return TL_USAGE;
    *out = range;
    return TL_OK;
}

int tl_arg_range_parse(const char *text, uint64_t thousand, struct tl_arg_range *out)
{
    struct tl_arg_range range;
    if (parse_ends(text, thousand, &range) < 0 || range.from > range.to)
        return TL_USAGE;
    *out = range;
    return TL_OK;
}

/* What would have been right instead of a text that is no range. */
static const char *range_expected(const char *text, uint64_t thousand)
{
    struct tl_arg_range range;
    if (parse_ends(text, thousand, &range) >= 0)
        return "a range FROM:TO that does not end before it begins";
    return thousand == 1000 ? "a range FROM:TO such as 1000:2000, 5M:6M or 5M:"
                            : "a range FROM:TO such as 0:4096, 1M:2M or 1M:";
}

static int parse_flag(const char *text, bool *out)
{
    static const char *const words[] = {"no", "yes", "false", "true", "0", "1"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcmp(text, words[i]) == 0) {
            *out = i % 2;
            return TL_OK;
        }
    return TL_USAGE;
}

const struct tl_arg *tl_arg_find(const struct tl_arg *args, const char *name, size_t n)
{
    for (; args->name; args++)
        if (strncmp(args->name, name, n) == 0 && args->name[n] == '\0')
            return args;
    return NULL;
}

const char *tl_arg_set(const struct tl_arg *arg, const char *text)
{
    switch (arg->kind) {
    case TL_ARG_FLAG:
        return parse_flag(text, arg->value) < 0 ? "yes or no" : NULL;
    case TL_ARG_TEXT:
        *(const char **)arg->value = text;
        return NULL;
    case TL_ARG_U64:
        return tl_number_parse(text, arg->value) < 0 ? "a number" : NULL;
    case TL_ARG_SIZE:
        return parse_large(text, 1024, arg->value) < 0 ? "a size such as 512K, 4M, 1G or 2T" : NULL;
    case TL_ARG_COUNT:
        return parse_large(text, 1000, arg->value) < 0 ? "a number such as 500, 100K or 10M" : NULL;
    case TL_ARG_RANGE:
        return tl_arg_range_parse(text, 1000, arg->value) < 0 ? range_expected(text, 1000) : NULL;
    case TL_ARG_BYTES:
        return tl_arg_range_parse(text, 1024, arg->value) < 0 ? range_expected(text, 1024) : NULL;
    case TL_ARG_TIME:
        return tl_time_parse(text, arg->value) < 0 ? TL_TIME_EXPECTED : NULL;
    case TL_ARG_TIMES:
        return tl_time_range_parse(text, arg->value) < 0 ? TL_TIME_RANGE_EXPECTED : NULL;
    case TL_ARG_LIST: {
        struct tl_arg_list *list = arg->value;
        if (list->n == TL_ARG_LIST_MAX)
            return "given less often";
        list->v[list->n++] = text;
        return NULL;
    }
    }
    return NULL;
}
