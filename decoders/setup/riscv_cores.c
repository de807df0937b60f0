/* SPDX-License-Identifier: MIT */
/*
 * A table of cores that are sold, after what readers of their captures publish (libnexus-rv, dqr).
 * Only what differs between cores and cannot be seen in the trace is in it: the mode, implicit
 * returns and their depth follow from the messages, and those readers know no core that leaves out
 * the targets of jumps behind LUI and AUIPC.
 */
#include "setup/riscv_cores.h"

#include <stdio.h>
#include <string.h>

#define UNKNOWN UINT8_MAX

/* A name that contains another one comes first. */
static const struct tl_riscv_core cores[] = {
    {"p550x8", 64, 3, 48, 40},    {"p550", 64, 2, 48, 40},       {"x280", 64, 2, 48, 40},
    {"u54", 64, UNKNOWN, 39, 40}, {"u64", 64, UNKNOWN, 39, 40},  {"u74", 64, UNKNOWN, 39, 40},
    {"u84", 64, UNKNOWN, 39, 40}, {"sifive-e31", 32, 0, 32, 40},
};

const struct tl_riscv_core *tl_riscv_core_in(const char *core)
{
    for (size_t i = 0; i < sizeof cores / sizeof *cores; i++)
        if (strcasestr(core, cores[i].name))
            return &cores[i];
    return NULL;
}

char *tl_riscv_core_names(char *out, size_t size)
{
    size_t n = 0;
    for (size_t i = 0; i < sizeof cores / sizeof *cores && n < size; i++)
        n += (size_t)snprintf(out + n, size - n, "%s%s%s", i ? ", " : "",
                              strncmp(cores[i].name, "sifive-", 7) ? "sifive-" : "", cores[i].name);
    return out;
}
