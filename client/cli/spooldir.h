/* SPDX-License-Identifier: MIT */
/*
 * The folder of a capture in `--spool DIR`: DIR/TRACE with the capture's backlog and a file
 * `capture` of lines that say what else a push must know that goes on with it:
 *
 *     rig NAME        who pushed it
 *     base N          the capture offset of the backlog's byte 0, once that is known
 *     length N        how many bytes the backlog had when its input ended
 *
 * A folder belongs to the process that has locked it. One thread.
 */
#ifndef TL_CLI_SPOOLDIR_H
#define TL_CLI_SPOOLDIR_H

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

/* Open or make DIR/TRACE, and DIR. `rig` is noted in a new one. TL_EXISTS: another process has it;
 * TL_IO, TL_NOMEM, TL_BAD. */
TL_MUST_USE int tl_spooldir_open(struct tl_spooldir *out, const char *dir, const char *trace,
                                 const char *rig, struct tl_fail *fail);
/* Write down what has been learnt: durable as a file is. TL_IO. */
TL_MUST_USE int tl_spooldir_save(const struct tl_spooldir *folder, struct tl_fail *fail);
/* Let go of it; `done`: all of it is on the server, remove it. A zeroed one is fine. */
void tl_spooldir_close(struct tl_spooldir *folder, bool done);

/*
 * The captures of a rig that wait in DIR, oldest first: `each` gets the trace's id and whether its
 * input had ended, until it returns what is not 0, which is returned. Folders that a process has
 * are left out.
 */
int tl_spooldir_scan(const char *dir, const char *rig,
                     int (*each)(void *context, const char *trace, bool ended), void *context);

#endif
