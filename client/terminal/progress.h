/* SPDX-License-Identifier: MIT */
/*
 * Progress of long work, as a line on the terminal that is overwritten. Not shown if standard error
 * is not a terminal, nor in the first second. One at a time; tl_cli_warn() clears the line. May be
 * called from any thread.
 */
#ifndef TL_TERMINAL_PROGRESS_H
#define TL_TERMINAL_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

/* Would a line be shown? If not, callers need not compute the progress. */
bool tl_progress_wanted(void);

/* Begin: "WHAT: 12.3 of 40.0 MiB, 30 %, 5.1 MiB/s". `what` (copied) is the name of the object and
 * possibly the operation; `unit` is static: "B" is shown in MiB, others in millions. */
void tl_progress_begin(const char *what, const char *unit);
/* Report `done` of `total` (0: not known); `more` (may be NULL) is appended. Cheap. */
void tl_progress_step(uint64_t done, uint64_t total, const char *more);
/* Begin work without a known progress, such as a query that the server works on: "WHAT: 3 s", until
 * tl_progress_end(), which must be called before anything is printed. */
void tl_progress_wait(const char *what);
/* End: clear the line. Does nothing if none was begun. */
void tl_progress_end(void);
/* Clear the line; the next step shows it again. */
void tl_progress_hide(void);

#endif
