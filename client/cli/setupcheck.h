/* SPDX-License-Identifier: MIT */
/* Comparing a setup with a capture's bytes. Not thread-safe. */
#ifndef TL_CLI_SETUPCHECK_H
#define TL_CLI_SETUPCHECK_H

#include "setup/setup.h"

/*
 * Compare the setup's CoreSight sources (ETMv3, PTM, ETMv4, ETE) and its frames with the beginning
 * of a capture. `report` receives a sentence without its full stop for each contradiction, which is
 * then corrected in `setup`. Returns their number, or TL_NOMEM.
 */
TL_MUST_USE int tl_setup_check(struct tl_setup *setup, struct tl_bytes bytes,
                               void (*report)(void *context, const char *text), void *context);

#endif
