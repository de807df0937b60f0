/* SPDX-License-Identifier: MIT */
/* Names of Arm cores by their main ID register, as core= of a setup has them. Thread-safe. */
#ifndef TL_SETUP_MIDR_H
#define TL_SETUP_MIDR_H

#include <stdint.h>

/*
 * Name of the core with this MIDR_EL1 (of Armv7 MIDR): "Cortex-A53", "Neoverse N1"; static storage.
 * NULL: not in the list. Source: Arm DDI0487, "MIDR_EL1", and the cores' reference manuals.
 */
const char *tl_midr_name(uint64_t midr);

#endif
