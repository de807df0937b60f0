/* SPDX-License-Identifier: MIT */
/* The files of a trace buffer as one. Not for others than the snapshot reader. */
#ifndef TL_SETUP_SNAPSHOT_JOIN_H
#define TL_SETUP_SNAPSHOT_JOIN_H

#include "setup/setup.h"

/*
 * Set buffer->path from a `file=` value: names below `dir` with commas between them. Several files
 * are joined in an unnamed temporary file, which buffer->joined keeps open. One that is not there
 * is found out when it is opened. TL_NOMEM, TL_BAD (no name), TL_IO.
 */
TL_MUST_USE int tl_snapshot_join(struct tl_snapshot_buffer *buffer, const char *dir,
                                 const char *files, struct tl_fail *fail);

#endif
