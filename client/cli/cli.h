/* SPDX-License-Identifier: MIT */
/*
 * Shared by the commands of the `tracelake` executable. Each command is one function in cmd_NAME.c
 * that receives its own arguments (argv[0] is its name) and returns an exit status.
 */
#ifndef TL_CLI_H
#define TL_CLI_H

#include "base/err.h"

enum tl_cli_status {
    TL_CLI_DONE = 0,
    TL_CLI_BAD = 1,    /* bad input; a partial result is kept and reported as such */
    TL_CLI_USAGE = 2,  /* invalid arguments */
    TL_CLI_REFUSED = 3 /* the server cannot be reached, or refused */
};

int tl_cmd_serve(int argc, char **argv);
int tl_cmd_push(int argc, char **argv);
int tl_cmd_decode(int argc, char **argv);
int tl_cmd_ls(int argc, char **argv);
int tl_cmd_show(int argc, char **argv);
int tl_cmd_rm(int argc, char **argv);
int tl_cmd_cp(int argc, char **argv);
int tl_cmd_label(int argc, char **argv);
int tl_cmd_materialise(int argc, char **argv);
int tl_cmd_seal(int argc, char **argv);
int tl_cmd_redecode(int argc, char **argv);
int tl_cmd_verify(int argc, char **argv);
int tl_cmd_retain(int argc, char **argv);
int tl_cmd_images(int argc, char **argv);
int tl_cmd_get(int argc, char **argv);
int tl_cmd_raw(int argc, char **argv);
int tl_cmd_find(int argc, char **argv);
int tl_cmd_stats(int argc, char **argv);
int tl_cmd_call(int argc, char **argv);
int tl_cmd_diff(int argc, char **argv);
int tl_cmd_profile(int argc, char **argv);
int tl_cmd_coverage(int argc, char **argv);
int tl_cmd_tail(int argc, char **argv);
int tl_cmd_store(int argc, char **argv);
int tl_cmd_token(int argc, char **argv);
int tl_cmd_dump(int argc, char **argv);
int tl_cmd_check(int argc, char **argv);
int tl_cmd_slice(int argc, char **argv);
int tl_cmd_simpoints(int argc, char **argv);

/* Print the help text of a command, from the table in main.c. */
void tl_cli_help(const char *command);

/*
 * Print `tracelake: WHERE: offset 0x1a2b: TEXT` to stderr and return the matching exit status:
 * USAGE for TL_USAGE, REFUSED for TL_UNREACHABLE and TL_DENIED, otherwise BAD. `where` is the
 * input's name and may be NULL; the offset is omitted if the failure has none.
 */
int tl_cli_fail(const char *where, const struct tl_fail *fail);

/* Print `tracelake: COMMAND: TEXT; see 'tracelake COMMAND --help'` and return USAGE. */
int tl_cli_usage(const char *command, const char *format, ...) TL_PRINTF(2, 3);

/* Report that a range whose ends are both `at` is empty, and return BAD. */
int tl_cli_empty_range(const char *command, uint64_t at);

/* Print `tracelake: WHERE: TEXT` to stderr. */
void tl_cli_warn(const char *where, const char *format, ...) TL_PRINTF(2, 3);

#endif
