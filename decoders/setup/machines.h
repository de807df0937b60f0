/* SPDX-License-Identifier: MIT */
/* Files of a setup that are not for the processors it traces. Thread-safe. */
#ifndef TL_SETUP_MACHINES_H
#define TL_SETUP_MACHINES_H

#include "setup/setup.h"

/*
 * Report each image in the file system that is an ELF file for processors which no source of the
 * setup can trace. `text` is a sentence without its full stop, valid during the call. Nothing is
 * reported of setups that name no sources, or sources of any processor (Open SoC Debug, software
 * trace), and of files that cannot be read.
 */
void tl_setup_check_machines(const struct tl_setup *setup,
                             void (*report)(void *context, const char *text), void *context);

#endif
