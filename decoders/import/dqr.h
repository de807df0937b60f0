/* SPDX-License-Identifier: MIT */
/*
 * Settings of dqr, SiFive's trace decoder, as its tracer for Linux writes them beside a trace:
 * which file is the trace, how wide its fields are, and which code the processes and the kernel
 * had. Not thread-safe. The only I/O is reading files.
 */
#ifndef TL_IMPORT_DQR_H
#define TL_IMPORT_DQR_H

#include "import/bundle.h"

/* Is the file at `path` such a text: does one of its first lines name a trace (rtd=)? */
bool tl_dqr_is(const char *path);

/*
 * Fill the capture (its setup is initialised) by the settings in file `path`, whose relative names
 * are below its folder. Code of processes is searched there, too, and below `symfs` (may be NULL).
 * `warn` (may be NULL) is called for what is missing. Returns TL_BAD with the line, TL_IO,
 * TL_NOMEM.
 */
TL_MUST_USE int tl_dqr_read(struct tl_bundle_capture *capture, const char *path, const char *symfs,
                            void (*warn)(void *context, const char *text), void *context,
                            struct tl_fail *fail);

#endif
