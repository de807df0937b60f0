/* SPDX-License-Identifier: MIT */
/* The table of commands, from which help, manual pages and completion are generated. */
#ifndef TL_CLI_COMMANDS_H
#define TL_CLI_COMMANDS_H

#include "terminal/args.h"

struct tl_command {
    const char *name;
    int (*run)(int argc, char **argv); /* argv[0] is its name */
    const char *summary;               /* for example "send a capture to a server" */
    const char *usage;                 /* a line for each way to call it, without its name */
    const char *about;                 /* paragraphs, a line each, of any length; NULL: none */
};

/* All commands; `*n` receives their number. */
const struct tl_command *tl_commands(size_t *n);
/* Find a command by name; NULL: none. */
const struct tl_command *tl_command_find(const char *name);
/* Pass the command's table of options to `reader`; it is valid during that call, except its texts,
 * which stay. */
void tl_command_options(const struct tl_command *command,
                        void (*reader)(void *context, const struct tl_option *options),
                        void *context);

/* Print help: usage, paragraphs, options, in lines of at most 96 columns. */
void tl_help_print(const char *command, const struct tl_option *options);
/* Print the manual page of a command, or (NULL) of the executable, in man(7) macros. */
void tl_manual_print(const struct tl_command *command);

/*
 * `tracelake completion bash|zsh|fish`: print the shell code that calls tl_cmd_complete() to
 * complete the word at the cursor. `tracelake complete WORD…`: the words after the executable's
 * name up to the cursor, the last one as far as it is typed. Prints candidates, one per line,
 * optionally followed by a tab and a description; ":file" where a file name is expected.
 */
int tl_cmd_completion(int argc, char **argv);
int tl_cmd_complete(int argc, char **argv);

#endif
