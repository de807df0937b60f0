/* SPDX-License-Identifier: MIT */
/* The commands of the executable, for what is made of them: help, manual pages, completion. */
#ifndef TL_CLI_COMMANDS_H
#define TL_CLI_COMMANDS_H

#include <stddef.h>

struct tl_command {
    const char *name;
    int (*run)(int argc, char **argv); /* argv[0] is its name */
    const char *summary;               /* "send a capture to a server" */
    /*
     * Its help: lines of use, "usage: tracelake NAME …" and further ones below; then paragraphs;
     * then options, two blanks in front and at least two behind the option and its value, what
     * follows below each other; a line that ends in a colon heads the options behind it.
     */
    const char *help;
};

/* All of them, `*n` gets how many. */
const struct tl_command *tl_commands(size_t *n);
/* NULL: there is none of this name. */
const struct tl_command *tl_command_find(const char *name);

/* Print the manual page of a command, or (NULL) of the executable, in man(7)'s macros. */
void tl_manual_print(const struct tl_command *command);

/*
 * `tracelake completion bash|zsh|fish`: print what makes a shell ask tl_cmd_complete() for what may
 * stand at the cursor. `tracelake complete WORD…`: the words behind the executable's name up to the
 * cursor, the last one as far as it is written. Prints candidates, one a line, each perhaps with a
 * tab and what it is; ":file" where a file's name may stand.
 */
int tl_cmd_completion(int argc, char **argv);
int tl_cmd_complete(int argc, char **argv);

#endif
