/* SPDX-License-Identifier: MIT */
/*
 * Compares the machine in each image's ELF header with what the sources' formats allow. An image
 * for another processor decodes to plausible nonsense, which is hard to recognise later; a format
 * of any processor rules nothing out.
 */
#include "setup/machines.h"

#include "image/elf_places.h"

#include <elf.h>
#include <stdio.h>
#include <string.h>

/* Families of processors, as bits. */
enum { ARM = 1, X86 = 2, RISC_V = 4, OTHER = 8 };

static unsigned family_of_protocol(unsigned protocol)
{
    switch (protocol) {
    case TL_PROTO_ETM4:
    case TL_PROTO_ETE:
    case TL_PROTO_ETM3:
    case TL_PROTO_PTM:
    case TL_PROTO_MTB:
        return ARM;
    case TL_PROTO_PT:
        return X86;
    case TL_PROTO_N_TRACE:
    case TL_PROTO_NEXUS_SIFIVE:
    case TL_PROTO_E_TRACE:
        return RISC_V;
    default: /* any, or not known */
        return ~0u;
    }
}

static unsigned family_of_container(unsigned container)
{
    const bool is_risc_v = container == TL_CONTAINER_NEXUS || container == TL_CONTAINER_ETRACE;
    return is_risc_v ? RISC_V : ~0u;
}

/* All families that the setup's sources can be of. */
static unsigned families(const struct tl_setup *setup)
{
    const unsigned otherwise = family_of_container(setup->container);
    unsigned all = setup->n_sources == 0 ? otherwise : 0;
    for (size_t i = 0; i < setup->n_sources; i++) {
        const unsigned protocol = setup->sources[i].protocol;
        all |= protocol == TL_PROTO_NONE ? otherwise : family_of_protocol(protocol);
    }
    return all;
}

static unsigned family_of_machine(unsigned machine, const char **name)
{
    static const struct {
        uint16_t machine;
        uint8_t family;
        const char *name;
    } known[] = {{EM_AARCH64, ARM, "AArch64"},
                 {EM_ARM, ARM, "Arm"},
                 {EM_X86_64, X86, "x86-64"},
                 {EM_386, X86, "x86"},
                 {EM_RISCV, RISC_V, "RISC-V"}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (known[i].machine == machine) {
            *name = known[i].name;
            return known[i].family;
        }
    return OTHER;
}

void tl_setup_check_machines(const struct tl_setup *setup,
                             void (*report)(void *context, const char *text), void *context)
{
    const unsigned traced = families(setup);
    const char *before = NULL;
    for (size_t i = 0; traced != ~0u && i < setup->n_images; i++) {
        const char *const file = setup->images[i].file;
        if (tl_setup_is_stored(file) || (before && strcmp(before, file) == 0))
            continue;
        before = file;
        const unsigned machine = tl_elf_file_machine(file);
        char text[320], number[32];
        snprintf(number, sizeof number, "processors of ELF number %u", machine);
        const char *name = number;
        if (machine == EM_NONE || family_of_machine(machine, &name) & traced)
            continue;
        snprintf(text, sizeof text, "%.200s is for %s, which no source of this trace is", file,
                 name);
        report(context, text);
    }
}
