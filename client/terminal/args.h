/* SPDX-License-Identifier: MIT */
/*
 * The command line of a command, by a table with one row for each option: parsing, help, manual
 * page and completion are made from it. Options are long (`--name VALUE`, `--name=VALUE`), some
 * have a letter as well (`-o FILE`); they may come in any order and between positional arguments.
 * Only whole names count, no abbreviations: what is unique today is the beginning of another option
 * tomorrow.
 */
#ifndef TL_TERMINAL_ARGS_H
#define TL_TERMINAL_ARGS_H

#include "base/args.h"

#define TL_ARGS_GO (-1)

struct tl_option {
    const char *name; /* without dashes; NULL: a heading, or the end of the table */
    char letter;      /* 0: none */
    enum tl_arg_kind kind;
    void *value; /* of the kind's type; unchanged if the option is absent */
    /*
     * What the value is, as help shows it, with its unit: "FILE", "SECONDS", "A:B"; words with
     * "text|json" are all that there are. NULL for flags.
     */
    const char *unit;
    /* What it does, one or a few sentences without line breaks; NULL: accepted, but not shown. Of a
     * heading: its text, with a colon. */
    const char *help;
};

/* The option for the output file, of a table: -o, --output and, as with other commands, --out. */
#define TL_OUTPUT_ARGS(variable, unit, help)                                                       \
    {"output", 'o', TL_ARG_TEXT, &(variable), unit, help},                                         \
    {                                                                                              \
        "out", 0, TL_ARG_TEXT, &(variable), unit, NULL                                             \
    }

static inline bool tl_option_ends(const struct tl_option *option)
{
    return !option->name && !option->help;
}

/* Find the option with this name; NULL: none. */
const struct tl_option *tl_option_find(const struct tl_option *options, const char *name);
/* As tl_arg_set(). */
TL_MUST_USE const char *tl_option_set(const struct tl_option *option, const char *text);

/*
 * Make the next tl_args_parse() of this thread pass its table to `reader`, once, and return
 * TL_CLI_DONE without parsing any argument. Exposes a command's options to other code.
 */
void tl_args_watch(void (*reader)(void *context, const struct tl_option *options), void *context);

/* What `--help` of a command calls. Set once, before any arguments are parsed. */
void tl_args_on_help(void (*print)(const char *command, const struct tl_option *options));
/*
 * Parse argv[1…] of a command. `options` ends with an empty row. `--help` and `-h` are always
 * known, as is `--options`, which prints all options for completion and tests. `--` ends the
 * options. Positional arguments are moved after the options: `*first` is the index of the first.
 * Returns TL_ARGS_GO, or the exit status to return at once (help printed, or a usage error
 * reported). Text values are borrowed from argv.
 */
int tl_args_parse(int argc, char **argv, const struct tl_option *options, int *first);

#endif
