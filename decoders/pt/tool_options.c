/* SPDX-License-Identifier: MIT */
/*
 * Values have the syntax of the reference's tools, where it differs from that of other options, so
 * that their command lines work unchanged. What is no range of a file is left as part of its name,
 * since names may contain colons.
 */
#include "pt/tool_options.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Processors have four bits for it; the tools accept more, as far as the arithmetic is defined. */
#define MTC_FREQ_MAX 23

bool tl_pt_option_number(const char *text, uint64_t most, uint64_t *out)
{
    char *end;
    if (!text || !*text || *text == '-')
        return false;
    errno = 0;
    *out = strtoull(text, &end, 0);
    return errno == 0 && *end == 0 && *out <= most;
}

bool tl_pt_option_file(struct tl_pt_option_file *file, const char *text)
{
    const int n = snprintf(file->name, sizeof file->name, "%s", text);
    file->offset = 0;
    file->length = UINT64_MAX;
    return n >= 0 && (size_t)n < sizeof file->name;
}

bool tl_pt_option_address(struct tl_pt_option_file *file, uint64_t *address)
{
    char *const colon = strrchr(file->name, ':');
    if (!colon || !tl_pt_option_number(colon + 1, UINT64_MAX, address))
        return false;
    *colon = 0;
    return true;
}

bool tl_pt_option_range(struct tl_pt_option_file *file)
{
    char range[64];
    uint64_t from, to;
    char *const colon = strrchr(file->name, ':');
    if (!colon || strlen(colon) > sizeof range)
        return true;
    strcpy(range, colon + 1);
    char *const dash = strchr(range, '-');
    if (dash)
        *dash = 0;
    if (!tl_pt_option_number(range, UINT64_MAX, &from) ||
        (dash && !tl_pt_option_number(dash + 1, UINT64_MAX, &to)))
        return true;
    if (dash && to <= from)
        return false;
    *colon = 0;
    file->offset = from;
    file->length = dash ? to - from : UINT64_MAX;
    return true;
}

static int take_cpu(struct tl_pt_config *config, const char *cpu)
{
    if (!cpu)
        return TL_USAGE;
    if (strcmp(cpu, "none") != 0)
        return tl_pt_config_cpu(config, cpu) == TL_BAD ? TL_USAGE : TL_OK;
    config->has_cpu = false;
    config->family = config->model = config->stepping = 0;
    config->errata = (struct tl_pt_errata){0};
    return TL_OK;
}

int tl_pt_config_option(struct tl_pt_config *config, int argc, char **argv, int *i)
{
    const char *const name = argv[*i], *const value = *i + 1 < argc ? argv[*i + 1] : NULL;
    uint64_t n = 0;
    if (!strcmp(name, "--cpu")) {
        if (take_cpu(config, value) < 0)
            return TL_USAGE;
    } else if (!strcmp(name, "--mtc-freq") && tl_pt_option_number(value, MTC_FREQ_MAX, &n)) {
        config->mtc_freq = (uint8_t)n;
    } else if (!strcmp(name, "--nom-freq") && tl_pt_option_number(value, UINT8_MAX, &n)) {
        config->nom_freq = (uint8_t)n;
    } else if (!strcmp(name, "--cpuid-0x15.eax") && tl_pt_option_number(value, UINT32_MAX, &n)) {
        config->crystal = (uint32_t)n;
    } else if (!strcmp(name, "--cpuid-0x15.ebx") && tl_pt_option_number(value, UINT32_MAX, &n)) {
        config->tsc_ratio = (uint32_t)n;
    } else {
        return TL_USAGE;
    }
    *i += 2;
    return TL_OK;
}
