/* SPDX-License-Identifier: MIT */
/*
 * How far long work is, as a line on the terminal that is written over. There is none where
 * standard error is no terminal, nor in the first second. One at a time; tl_cli_warn() clears it
 * away. May be called from any thread.
 */
#ifndef TL_CLI_PROGRESS_H
#define TL_CLI_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

/* Would a line be shown? Else callers need not find out how far it is. */
bool tl_progress_wanted(void);

/* Work begins: "WHAT: 12.3 of 40.0 MiB, 30 %, 5.1 MiB/s". `what` (copied) is the name of the thing
 * and perhaps what is done to it; `unit` is static: "B" is told in MiB, others in millions. */
void tl_progress_begin(const char *what, const char *unit);
/* `done` of `total` (0: not known); `more` (may be NULL) is put behind it. Cheap. */
void tl_progress_step(uint64_t done, uint64_t total, const char *more);
/* Work begins of which nobody tells how far it is, such as a question that the server works on:
 * "WHAT: 3 s", until tl_progress_end(), which comes before anything is printed. */
void tl_progress_wait(const char *what);
/* It is over: clear the line away. Does nothing if none was begun. */
void tl_progress_end(void);
/* Clear the line away; the next step shows it again. */
void tl_progress_hide(void);

#endif
