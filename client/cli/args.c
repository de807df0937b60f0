/* SPDX-License-Identifier: MIT */
#include "cli/args.h"

#include "cli/cli.h"

#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_ARGS = 48, FIRST_LONG = 256 };

int tl_arg_u64(const char *text, uint64_t *out)
{
    if (*text < '0' || *text > '9')
        return TL_USAGE;
    char *end;
    errno = 0;
    const int base = text[0] == '0' && (text[1] == 'x' || text[1] == 'X') ? 16 : 10;
    const unsigned long long value = strtoull(text, &end, base);
    if (errno || end == text || *end)
        return TL_USAGE;
    *out = value;
    return TL_OK;
}

int tl_arg_size(const char *text, uint64_t *out)
{
    char digits[32];
    const size_t n = strlen(text);
    if (n == 0 || n >= sizeof digits)
        return TL_USAGE;
    memcpy(digits, text, n + 1);
    const char *units = "KMG";
    const char *unit = strchr(units, digits[n - 1]);
    unsigned shift = 0;
    if (unit && *unit) {
        shift = 10 * (unsigned)(unit - units + 1);
        digits[n - 1] = 0;
    }
    uint64_t value;
    if (tl_arg_u64(digits, &value) < 0 || value > UINT64_MAX >> shift)
        return TL_USAGE;
    *out = value << shift;
    return TL_OK;
}

static int parse_range(const char *text, struct tl_arg_range *out)
{
    const char *colon = strchr(text, ':');
    char from[32];
    if (!colon || (size_t)(colon - text) >= sizeof from)
        return TL_USAGE;
    memcpy(from, text, (size_t)(colon - text));
    from[colon - text] = 0;
    struct tl_arg_range range = {0, UINT64_MAX, true};
    if (from[0] && tl_arg_u64(from, &range.from) < 0)
        return TL_USAGE;
    if (colon[1] && tl_arg_u64(colon + 1, &range.to) < 0)
        return TL_USAGE;
    if (range.from > range.to)
        return TL_USAGE;
    *out = range;
    return TL_OK;
}

/* Store one option's value. NULL, or what its value should have been. */
static const char *store(const struct tl_arg *arg, const char *text)
{
    switch (arg->kind) {
    case TL_ARG_FLAG:
        *(bool *)arg->value = true;
        return NULL;
    case TL_ARG_TEXT:
        *(const char **)arg->value = text;
        return NULL;
    case TL_ARG_U64:
        return tl_arg_u64(text, arg->value) < 0 ? "a number" : NULL;
    case TL_ARG_SIZE:
        return tl_arg_size(text, arg->value) < 0 ? "a size such as 512K, 4M or 1G" : NULL;
    case TL_ARG_RANGE:
        return parse_range(text, arg->value) < 0 ? "a range FROM:TO" : NULL;
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

int tl_args_parse(int argc, char **argv, const struct tl_arg *args, int *first)
{
    struct option options[MAX_ARGS + 2] = {0};
    char letters[2 * MAX_ARGS + 4] = ":h";
    size_t n = 0, l = strlen(letters);
    for (; args[n].name && n < MAX_ARGS; n++) {
        const bool value = args[n].kind != TL_ARG_FLAG;
        options[n].name = args[n].name;
        options[n].has_arg = value ? required_argument : no_argument;
        options[n].val = FIRST_LONG + (int)n;
        if (args[n].letter) {
            letters[l++] = args[n].letter;
            if (value)
                letters[l++] = ':';
        }
    }
    letters[l] = 0;
    options[n].name = "help";
    options[n].val = 'h';

    optind = 0;
    int c;
    while ((c = getopt_long(argc, argv, letters, options, NULL)) != -1) {
        if (c == 'h') {
            tl_cli_help(argv[0]);
            return TL_CLI_DONE;
        }
        if (c == ':')
            return tl_cli_usage(argv[0], "%s needs a value", argv[optind - 1]);
        if (c == '?')
            return tl_cli_usage(argv[0], "unknown option %s", argv[optind - 1]);
        size_t i = 0;
        while (i < n && c != FIRST_LONG + (int)i && (!args[i].letter || c != args[i].letter))
            i++;
        const char *wanted = store(&args[i], optarg);
        if (wanted)
            return tl_cli_usage(argv[0], "--%s %s: must be %s", args[i].name, optarg, wanted);
    }
    *first = optind;
    return TL_ARGS_GO;
}
