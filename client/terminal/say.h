/* SPDX-License-Identifier: MIT */
/* Messages of the command, and its exit statuses. */
#ifndef TL_TERMINAL_SAY_H
#define TL_TERMINAL_SAY_H

#include "base/err.h"

#include <stdint.h>

enum tl_cli_status {
    TL_CLI_DONE = 0,
    TL_CLI_BAD = 1,    /* bad input; a partial result is kept and reported as such */
    TL_CLI_USAGE = 2,  /* invalid arguments */
    TL_CLI_REFUSED = 3 /* the server cannot be reached, or refused */
};

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

/* Report that an answer is incomplete, since what is from an instruction on (UINT64_MAX: part of
 * what was asked about) is not indexed yet. */
void tl_cli_behind(const char *where, uint64_t insn);

/* Print `tracelake: WHERE: TEXT` to stderr. */
void tl_cli_warn(const char *where, const char *format, ...) TL_PRINTF(2, 3);

#endif
