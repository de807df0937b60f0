/* SPDX-License-Identifier: MIT */
/*
 * RISC-V cores by name, with what their trace does not say of itself, so that users need not know
 * registers. Pure function, thread-safe.
 */
#ifndef TL_SETUP_RISCV_CORES_H
#define TL_SETUP_RISCV_CORES_H

#include <stddef.h>
#include <stdint.h>

struct tl_riscv_core {
    const char *name;
    uint8_t xlen;         /* 32 or 64 */
    uint8_t src_bits;     /* width of SRC in the system's messages; UINT8_MAX: not known */
    uint8_t address_bits; /* real bits of an address, the top one of which is its sign */
    uint8_t time_bits;    /* width of the timestamp counter */
};

/* The core whose name is in `core`, the key of a source; NULL: none that is known. */
const struct tl_riscv_core *tl_riscv_core_in(const char *core);

/* Write the names of all, for a message; returns `out`. */
char *tl_riscv_core_names(char *out, size_t size);

#endif
