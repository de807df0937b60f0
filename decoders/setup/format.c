/* SPDX-License-Identifier: MIT */
#include "setup/format.h"

#include <stdio.h>
#include <string.h>

#define FOLLOWED (TL_TRAIT_FLOW | TL_TRAIT_BLOCKS)
#define COUNT(a) (sizeof(a) / sizeof(*(a)))

static const struct tl_protocol_info protocols[TL_PROTOCOLS] = {
    [TL_PROTO_NONE] = {"none", "", TL_TRAIT_BLOCKS},
    [TL_PROTO_ETM4] = {"etm4", "Arm IHI0064H (ETMv4.0 to 4.6)", FOLLOWED},
    [TL_PROTO_ETE] = {"ete", "Arm DDI0487 D5 and D6", FOLLOWED},
    [TL_PROTO_ITM] = {"itm", "Arm DDI0403E appendix D4", TL_TRAIT_SOFTWARE},
    [TL_PROTO_STM] = {"stm", "MIPI STPv2", TL_TRAIT_SOFTWARE},
    [TL_PROTO_OSD_CTM] = {"osd-ctm", "Open SoC Debug CTM", TL_TRAIT_FLOW | TL_TRAIT_CALLS},
    [TL_PROTO_OSD_STM] = {"osd-stm", "Open SoC Debug STM", TL_TRAIT_SOFTWARE},
    [TL_PROTO_OSD_UART] = {"osd-uart", "Open SoC Debug DEM-UART", TL_TRAIT_SOFTWARE},
    [TL_PROTO_PT] = {"pt", "Intel SDM volume 3, Intel Processor Trace", FOLLOWED},
    [TL_PROTO_STF] = {"stf", "STF 1.3", TL_TRAIT_FLOW | TL_TRAIT_RECORDS},
    [TL_PROTO_STF_TRANSACTIONS] = {"transactions", "STF 1.3, transactions", TL_TRAIT_SOFTWARE},
    [TL_PROTO_OSD_OTHER] = {"osd", "Open SoC Debug", TL_TRAIT_NOTES},
};

static const struct tl_format formats[] = {
    {"tpiu", TL_CONTAINER_TPIU, TL_PROTO_NONE, ""},
    {"etm4", TL_CONTAINER_SINGLE, TL_PROTO_ETM4, "cs"},
    {"ete", TL_CONTAINER_SINGLE, TL_PROTO_ETE, "cs"},
    {"itm", TL_CONTAINER_SINGLE, TL_PROTO_ITM, "cs"},
    {"stm", TL_CONTAINER_SINGLE, TL_PROTO_STM, "cs"},
    {"di", TL_CONTAINER_DI, TL_PROTO_NONE, ""},
    {"pt", TL_CONTAINER_PT, TL_PROTO_PT, "pt"},
    {"stf", TL_CONTAINER_STF, TL_PROTO_STF, "stf"},
};

const struct tl_protocol_info *tl_protocol_info(unsigned protocol)
{
    return &protocols[protocol < TL_PROTOCOLS ? protocol : TL_PROTO_NONE];
}

int tl_protocol_named(const char *name)
{
    for (int i = 0; i < TL_PROTOCOLS; i++)
        if (!strcmp(protocols[i].name, name))
            return i;
    return -1;
}

const struct tl_format *tl_format_named(const char *name)
{
    for (size_t i = 0; i < COUNT(formats); i++)
        if (!strcmp(formats[i].name, name))
            return &formats[i];
    return NULL;
}

char *tl_format_names(char *out, size_t size)
{
    size_t n = 0;
    out[0] = 0;
    for (size_t i = 0; i < COUNT(formats) && n < size; i++)
        n += (size_t)snprintf(out + n, size - n, "%s%s",
                              i == 0                   ? ""
                              : i + 1 < COUNT(formats) ? ", "
                                                       : " or ",
                              formats[i].name);
    return out;
}

void tl_format_stream(const struct tl_format *format, unsigned id, char *out, size_t size)
{
    if (strcmp(format->stream, "cs") == 0)
        snprintf(out, size, "cs.%02x", id);
    else
        snprintf(out, size, "%s.%u", format->stream, id);
}

int tl_stream_id(const char *name)
{
    unsigned a, b;
    if (sscanf(name, "cs.%x", &a) == 1 || sscanf(name, "pt.%u", &a) == 1)
        return (int)(a & 0xffff);
    if (sscanf(name, "di.%u.%u", &a, &b) == 2)
        return (int)((a << 10 | (b & 0x3ff)) & 0xffff);
    return -1;
}
