/* SPDX-License-Identifier: MIT */
/* The table of commands, from which help, manual pages and completion are generated. */
#ifndef TL_CLI_COMMANDS_H
#define TL_CLI_COMMANDS_H

#include <stddef.h>

struct tl_command {
    const char *name;
    int (*run)(int argc, char **argv); /* argv[0] is its name */
    const char *summary;               /* for example "send a capture to a server" */
    /*
     * Help text: usage lines, "usage: tracelake NAME …" and further ones below; then paragraphs;
     * then options, indented by two blanks, with at least two blanks between the option with its
     * value and the description, whose continuation lines are aligned; a line that ends in a colon
     * is the heading of the options after it.
     */
    const char *help;
};

/* All commands; `*n` receives their number. */
const struct tl_command *tl_commands(size_t *n);
/* Find a command by name; NULL: none. */
const struct tl_command *tl_command_find(const char *name);

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
