/* SPDX-License-Identifier: MIT */
/*
 * Which errata a processor has follows from its family and model, as groups of models with the same
 * core. For an unknown model none are assumed: a correction applied to a sound processor damages a
 * correct trace.
 */
#include "pt/config.h"

#include "setup/setup.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BROADWELL                                                                                  \
    (struct tl_pt_errata)                                                                          \
    {                                                                                              \
        .bdm64 = true, .bdm70 = true                                                               \
    }
#define SKYLAKE                                                                                    \
    (struct tl_pt_errata)                                                                          \
    {                                                                                              \
        .bdm70 = true, .skd007 = true, .skd010 = true, .skd022 = true, .skl014 = true,             \
        .skl168 = true                                                                             \
    }
#define CORE                                                                                       \
    (struct tl_pt_errata)                                                                          \
    {                                                                                              \
        .bdm70 = true, .skd022 = true, .skl014 = true                                              \
    }
#define SERVER                                                                                     \
    (struct tl_pt_errata)                                                                          \
    {                                                                                              \
        .bdm70 = true, .skd022 = true, .skl014 = true, .skz84 = true                               \
    }
#define LATER_SERVER                                                                               \
    (struct tl_pt_errata)                                                                          \
    {                                                                                              \
        .bdm70 = true, .skd022 = true, .skz84 = true                                               \
    }
#define HYBRID                                                                                     \
    (struct tl_pt_errata)                                                                          \
    {                                                                                              \
        .bdm70 = true, .skd022 = true, .apl11 = true                                               \
    }
#define GOLDMONT                                                                                   \
    (struct tl_pt_errata)                                                                          \
    {                                                                                              \
        .apl11 = true, .apl12 = true                                                               \
    }
#define ATOM                                                                                       \
    (struct tl_pt_errata)                                                                          \
    {                                                                                              \
        .apl11 = true                                                                              \
    }

static bool errata_of(unsigned family, unsigned model, struct tl_pt_errata *out)
{
    if (family == 0x13 && model == 0x01) {
        *out = LATER_SERVER;
        return true;
    }
    if (family == 0x12 && (model == 0x01 || model == 0x03)) {
        *out = HYBRID;
        return true;
    }
    if (family != 6)
        return false;
    switch (model) {
    case 0x3d:
    case 0x47:
    case 0x4f:
    case 0x56:
        *out = BROADWELL;
        return true;
    case 0x4e:
    case 0x5e:
    case 0x8e:
    case 0x9e:
    case 0xa5:
    case 0xa6:
        *out = SKYLAKE;
        return true;
    case 0x55:
    case 0x6a:
    case 0x6c:
        *out = SERVER;
        return true;
    case 0x8f:
    case 0xad:
    case 0xae:
    case 0xcf:
        *out = LATER_SERVER;
        return true;
    case 0x66:
    case 0x7d:
    case 0x7e:
    case 0x8c:
    case 0x8d:
    case 0xa7:
    case 0xa8:
        *out = CORE;
        return true;
    case 0x97:
    case 0x9a:
    case 0xbf:
    case 0xb7:
    case 0xb5:
    case 0xaa:
    case 0xac:
    case 0xba:
    case 0xcc:
    case 0xbd:
    case 0xc5:
    case 0xc6:
    case 0xd5:
        *out = HYBRID;
        return true;
    case 0x5c:
    case 0x5f:
        *out = GOLDMONT;
        return true;
    case 0x7a:
    case 0x86:
    case 0x96:
    case 0x9c:
    case 0xb6:
    case 0xaf:
    case 0xdd:
        *out = ATOM;
        return true;
    default:
        return false;
    }
}

int tl_pt_config_cpu(struct tl_pt_config *config, const char *cpu)
{
    unsigned family, model, stepping = 0;
    int end = 0;
    const int n =
        sscanf(cpu, "%i/%i%n/%i%n", (int *)&family, (int *)&model, &end, (int *)&stepping, &end);
    if (n < 2 || cpu[end] || family > UINT16_MAX || model > UINT8_MAX || stepping > UINT8_MAX)
        return TL_BAD;
    config->has_cpu = true;
    config->family = (uint16_t)family;
    config->model = (uint8_t)model;
    config->stepping = (uint8_t)stepping;
    config->errata = (struct tl_pt_errata){0};
    return errata_of(family, model, &config->errata) ? TL_OK : TL_UNSUPPORTED;
}

bool tl_pt_config_cpu_known(const struct tl_pt_config *config)
{
    struct tl_pt_errata errata;
    return !config->has_cpu || errata_of(config->family, config->model, &errata);
}

void tl_pt_config_init(struct tl_pt_config *config, const struct tl_source *source)
{
    *config = (struct tl_pt_config){0};
    if (!source)
        return;
    config->mtc_freq = (uint8_t)(tl_source_reg(source, "MTC_FREQ", 0) & 15);
    config->nom_freq = (uint8_t)tl_source_reg(source, "NOM_FREQ", 0);
    config->crystal = (uint32_t)tl_source_reg(source, "CPUID_15_EAX", 0);
    config->tsc_ratio = (uint32_t)tl_source_reg(source, "CPUID_15_EBX", 0);
    const uint64_t cfg = tl_source_reg(source, "ADDR_CFG", 0);
    for (unsigned i = 0; i < TL_PT_FILTERS; i++) {
        char name[16];
        config->filters[i].kind = cfg >> 4 * i & 15;
        snprintf(name, sizeof name, "ADDR%u_A", i);
        config->filters[i].a = tl_source_reg(source, name, 0);
        snprintf(name, sizeof name, "ADDR%u_B", i);
        config->filters[i].b = tl_source_reg(source, name, 0);
    }
    if (source->core[0] && tl_pt_config_cpu(config, source->core) < 0)
        config->errata = (struct tl_pt_errata){0};
}

bool tl_pt_config_filters(const struct tl_pt_config *config)
{
    for (unsigned i = 0; i < TL_PT_FILTERS; i++)
        if (config->filters[i].kind != TL_PT_FILTER_NONE)
            return true;
    return false;
}

bool tl_pt_config_traces(const struct tl_pt_config *config, uint64_t ip)
{
    bool any = false, inside = false;
    for (unsigned i = 0; i < TL_PT_FILTERS; i++) {
        const bool within = config->filters[i].a <= ip && ip <= config->filters[i].b;
        if (config->filters[i].kind == TL_PT_FILTER_STOP && within)
            return false;
        any |= config->filters[i].kind == TL_PT_FILTER_TRACE;
        inside |= config->filters[i].kind == TL_PT_FILTER_TRACE && within;
    }
    return !any || inside;
}
