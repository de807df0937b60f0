/* SPDX-License-Identifier: MIT */
/* Command line arguments by a table: long options in any order, mixed with positional ones. */
#ifndef TL_CLI_ARGS_H
#define TL_CLI_ARGS_H

#include "base/args.h"

#define TL_ARGS_GO (-1)

/*
 * Have the next tl_args_parse() of this thread hand over its table, once, and return TL_CLI_DONE
 * without looking at any argument: so a command's options are known from outside of it.
 */
void tl_args_watch(void (*reader)(void *context, const struct tl_arg *args), void *context);

/*
 * Parse argv[1…] of a command. `args` ends with an entry without a name; names are without the
 * dashes, flags have no value, and `--help` is known everywhere, as is `--options`, which prints
 * what there is. Positional arguments are moved behind the options: `*first` is the index of the
 * first. Returns TL_ARGS_GO, or the exit status to return at once (help printed, or a usage error
 * said). Text values are borrowed from argv.
 */
int tl_args_parse(int argc, char **argv, const struct tl_arg *args, int *first);

#endif
