/* SPDX-License-Identifier: MIT */
/*
 * Parses the options of a command by its table. Completion asks for the table instead of having a
 * list of its own, so that it cannot lack an option.
 */
#include "terminal/args.h"

#include "terminal/say.h"

#include <getopt.h>
#include <stdio.h>
#include <string.h>

static void (*print_help)(const char *command);

void tl_args_on_help(void (*print)(const char *command))
{
    print_help = print;
}

enum { MAX_ARGS = 48, FIRST_LONG = 256 };

static _Thread_local struct {
    void (*reader)(void *context, const struct tl_arg *args);
    void *context;
} watch;

void tl_args_watch(void (*reader)(void *context, const struct tl_arg *args), void *context)
{
    watch.reader = reader;
    watch.context = context;
}

/* Print all options for completion and tests: name and kind of value, one per line. */
static void print_options(const struct tl_arg *args)
{
    static const char *const kinds[] = {
        [TL_ARG_FLAG] = "flag",   [TL_ARG_TEXT] = "text",   [TL_ARG_U64] = "number",
        [TL_ARG_SIZE] = "size",   [TL_ARG_COUNT] = "count", [TL_ARG_LIST] = "list",
        [TL_ARG_RANGE] = "range", [TL_ARG_TIME] = "time",   [TL_ARG_TIMES] = "times",
    };
    for (; args->name; args++)
        printf("%s %s\n", args->name, kinds[args->kind]);
    puts("help flag");
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

    if (watch.reader) {
        watch.reader(watch.context, args);
        watch.reader = NULL;
        return TL_CLI_DONE;
    }
    if (argc == 2 && !strcmp(argv[1], "--options")) {
        print_options(args);
        return TL_CLI_DONE;
    }
    optind = 0;
    int c;
    while ((c = getopt_long(argc, argv, letters, options, NULL)) != -1) {
        if (c == 'h') {
            print_help(argv[0]);
            return TL_CLI_DONE;
        }
        if (c == ':')
            return tl_cli_usage(argv[0], "%s needs a value", argv[optind - 1]);
        if (c == '?')
            return tl_cli_usage(argv[0], "unknown option %s", argv[optind - 1]);
        size_t i = 0;
        while (i < n && c != FIRST_LONG + (int)i && (!args[i].letter || c != args[i].letter))
            i++;
        const char *wanted = tl_arg_set(&args[i], optarg ? optarg : "yes");
        if (wanted)
            return tl_cli_usage(argv[0], "--%s %s: must be %s", args[i].name, optarg, wanted);
    }
    *first = optind;
    return TL_ARGS_GO;
}
