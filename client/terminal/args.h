/* SPDX-License-Identifier: MIT */
/*
 * Table-driven command line arguments: long options in any order, mixed with positional arguments.
 */
#ifndef TL_TERMINAL_ARGS_H
#define TL_TERMINAL_ARGS_H

#include "base/args.h"

#define TL_ARGS_GO (-1)

/*
 * Make the next tl_args_parse() of this thread pass its table to `reader`, once, and return
 * TL_CLI_DONE without parsing any argument. Exposes a command's options to other code.
 */
void tl_args_watch(void (*reader)(void *context, const struct tl_arg *args), void *context);

/* What `--help` of a command calls. Set once, before any arguments are parsed. */
void tl_args_on_help(void (*print)(const char *command));
/*
 * Parse argv[1…] of a command. `args` ends with an entry without a name; names are without the
 * dashes, flags have no value. `--help` is always known, as is `--options`, which prints all
 * options. Positional arguments are moved after the options: `*first` is the index of the first.
 * Returns TL_ARGS_GO, or the exit status to return at once (help printed, or a usage error
 * reported). Text values are borrowed from argv.
 */
int tl_args_parse(int argc, char **argv, const struct tl_arg *args, int *first);

#endif
