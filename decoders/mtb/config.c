/* SPDX-License-Identifier: MIT */
/*
 * Reads the registers of an MTB. They are those that a debugger dumps with the RAM, since the
 * records themselves do not tell which of them is the oldest.
 */
#include "mtb/config.h"

#include <strings.h>

/* A register by its name, or with "MTB_" in front of it, as header files of chips have it. */
static bool find(const struct tl_source *source, const char *name, uint64_t *value)
{
    *value = 0;
    for (size_t i = 0; i < source->n_regs; i++) {
        const char *const given = source->regs[i].name;
        const size_t prefix = strncasecmp(given, "MTB_", 4) == 0 ? 4 : 0;
        if (strcasecmp(given + prefix, name) != 0)
            continue;
        *value = source->regs[i].value;
        return true;
    }
    return false;
}

/* The pointer counts from the RAM's base where the RAM is aligned to 2^AWIDTH bytes. */
static uint32_t offset_in_ram(uint32_t position, uint32_t base, uint64_t width)
{
    const uint32_t p = position & ~7u;
    if (width == 0 || width >= 32)
        return p;
    const uint32_t mask = (1u << width) - 1;
    return (p - base) & mask;
}

static void take_place(struct tl_mtb_config *out, uint32_t position, uint32_t base, uint32_t dump,
                       uint64_t width, unsigned mask)
{
    enum { WRAP = 4, SMALLEST = 4 };
    const uint32_t pointer = offset_in_ram(position, base, width);
    const uint64_t size = UINT64_C(1) << (mask + SMALLEST);
    out->placed = true;
    out->wrapped = position & WRAP;
    out->too_large = size > TL_MTB_BUF_MAX;
    out->size = out->too_large ? TL_MTB_BUF_MAX : (uint32_t)size;
    out->head = pointer & (out->size - 1);
    out->start = (int64_t)(pointer - out->head) + base - dump;
}

void tl_mtb_config_init(struct tl_mtb_config *out, const struct tl_source *source)
{
    enum { MASK = 31 };
    uint64_t position, master, base, dump, width, table, pc;
    *out = (struct tl_mtb_config){.since = source->since};
    const bool placed = find(source, "POSITION", &position);
    const bool has_master = find(source, "MASTER", &master);
    (void)find(source, "BASE", &base);
    (void)find(source, "AWIDTH", &width);
    if (!find(source, "RAM", &dump))
        dump = base;
    if (placed && has_master)
        take_place(out, (uint32_t)position, (uint32_t)base, (uint32_t)dump, width, master & MASK);
    (void)find(source, "VTOR", &table);
    out->table = (uint32_t)table;
    out->stopped = find(source, "PC", &pc);
    out->pc = (uint32_t)pc & ~1u;
}

int tl_mtb_config_check(const struct tl_mtb_config *config, struct tl_fail *fail)
{
    if (config->too_large)
        return tl_fail_set(fail, TL_UNSUPPORTED,
                           "MASTER says that the MTB's buffer is larger than 16 MiB: its bits 4:0 "
                           "are the logarithm of its size, less 4; compare them with the chip's "
                           "manual");
    return TL_OK;
}
