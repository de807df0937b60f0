/* SPDX-License-Identifier: MIT */
/*
 * The folder of a capture in `--spool DIR`: DIR/TRACE contains the capture's backlog and a file
 * `capture` whose lines hold what a later push needs to continue it:
 *
 *     rig NAME        who pushed it
 *     base N          the capture offset of the backlog's byte 0, once known
 *     length N        the backlog's length in bytes when its input ended
 *
 * A folder belongs to the process that has locked it. Single-threaded.
 */
#ifndef TL_PUSH_SPOOLDIR_H
#define TL_PUSH_SPOOLDIR_H

#include "base/err.h"

#include <stddef.h>
#include <stdint.h>

struct tl_spooldir {
    char *path;
    char trace[64], rig[64];
    int lock;
    bool has_base, ended;
    uint64_t base, length;
};

/* Open or create DIR/TRACE, and DIR. `rig` is recorded in a new one. TL_EXISTS: locked by another
 * process; TL_IO, TL_NOMEM, TL_BAD. */
TL_MUST_USE int tl_spooldir_open(struct tl_spooldir *out, const char *dir, const char *trace,
                                 const char *rig, struct tl_fail *fail);
/* Write the state durably. TL_IO. */
TL_MUST_USE int tl_spooldir_save(const struct tl_spooldir *folder, struct tl_fail *fail);
/* Release the folder; `done`: the server has everything, remove it. Accepts a zeroed struct. */
void tl_spooldir_close(struct tl_spooldir *folder, bool done);

/*
 * Visit the pending captures of a rig in DIR, oldest first: `each` receives the trace's id and
 * whether its input had ended. A non-zero result of it ends the scan and is returned. Folders
 * locked by a process are skipped.
 */
int tl_spooldir_scan(const char *dir, const char *rig,
                     int (*each)(void *context, const char *trace, bool ended), void *context);

#endif
