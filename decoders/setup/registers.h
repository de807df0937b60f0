/* SPDX-License-Identifier: MIT */
/*
 * Names of registers in a setup: which of them a source's format has, to find misspelt ones. A
 * setup may contain any name, since snapshots come with registers that no decoder reads.
 * Thread-safe.
 */
#ifndef TL_SETUP_REGISTERS_H
#define TL_SETUP_REGISTERS_H

#include "setup/setup.h"

/*
 * Report each register that its source's format does not have, and that is therefore ignored, with
 * the most similar name if there is one. `text` is a sentence without its full stop, valid during
 * the call. Sources whose format has no list of registers are not checked.
 */
void tl_setup_check_registers(const struct tl_setup *setup,
                              void (*report)(void *context, const char *text), void *context);

#endif
