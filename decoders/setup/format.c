/* SPDX-License-Identifier: MIT */
/*
 * Looks up formats, containers and their options by name. The table of formats is linked in, not
 * included, so that a program can have another one and this file does not depend on decoders.
 */
#include "setup/format.h"

#include <stdio.h>
#include <string.h>

const struct tl_format *tl_format_of(unsigned protocol)
{
    const bool known = protocol < tl_n_formats && tl_formats[protocol].name;
    return &tl_formats[known ? protocol : TL_PROTO_NONE];
}

/* Returns -1 if there is none. */
static int find(const char *name)
{
    for (unsigned i = 0; i < tl_n_formats; i++)
        if (tl_formats[i].name && !strcmp(tl_formats[i].name, name))
            return (int)i;
    return -1;
}

int tl_protocol_named(const char *name)
{
    const int i = find(name);
    const struct tl_format *const format = i >= 0 ? &tl_formats[i] : NULL;
    /* A capture of several sources is not a source. */
    const bool is_source =
        format && (!format->stream || format->ops || !tl_container_is_shared(format->container));
    return is_source ? i : -1;
}

const struct tl_format *tl_format_named(const char *name)
{
    const int i = find(name);
    return i >= 0 && tl_formats[i].stream ? &tl_formats[i] : NULL;
}

const char *tl_format_usual(const char *name)
{
    static const char *const names[][2] = {{"swo", "itm"},
                                           {"swv", "itm"},
                                           {"dwt", "itm"},
                                           {"intel-pt", "pt"},
                                           {"intel_pt", "pt"},
                                           {"ipt", "pt"},
                                           {"etm", "etm4 or etm3"},
                                           {"etmv4", "etm4"},
                                           {"etmv3", "etm3"},
                                           {"coresight", "tpiu"},
                                           {"cs", "tpiu"},
                                           {"cs_etm", "tpiu"},
                                           {"formatter", "tpiu"},
                                           {"tpiu-port", "tpiu,sync=fsync"},
                                           {"etr", "tpiu,sync=none"},
                                           {"etb", "tpiu,sync=none"},
                                           {"etf", "tpiu,sync=none"},
                                           {"tmc", "tpiu,sync=none"},
                                           {"n-trace", "ntrace"},
                                           {"nexus", "ntrace or nexus-sifive"},
                                           {"sifive", "nexus-sifive"},
                                           {"e-trace", "etrace-encap, etrace-smi or etrace-esp32"},
                                           {"etrace", "etrace-encap, etrace-smi or etrace-esp32"},
                                           {"osd", "di"},
                                           {"zstf", "stf"},
                                           {"orbuculum", "orbflow"},
                                           {"perf.data", "perf"}};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!strcmp(name, names[i][0]))
            return names[i][1];
    return NULL;
}

char *tl_format_names(char *out, size_t size)
{
    size_t n = 0;
    unsigned left = 0;
    out[0] = 0;
    for (unsigned i = 0; i < tl_n_formats; i++)
        left += tl_formats[i].stream != NULL;
    for (unsigned i = 0; i < tl_n_formats && n < size; i++)
        if (tl_formats[i].stream)
            n += (size_t)snprintf(out + n, size - n, "%s%s", tl_formats[i].name,
                                  --left > 1  ? ", "
                                  : left == 1 ? " or "
                                              : "");
    return out;
}

/* CoreSight trace IDs are written in hexadecimal. */
static bool has_hex_id(const char *stream)
{
    return strncmp(stream, "cs", 2) == 0;
}

void tl_format_stream(const struct tl_format *format, unsigned id, char *out, size_t size)
{
    snprintf(out, size, has_hex_id(format->stream) ? "%s.%02x" : "%s.%u", format->stream, id);
}

/* Is `word` the first word of a format's stream names? */
static bool is_stream_word(const char *word, size_t n)
{
    for (unsigned i = 0; i < tl_n_formats; i++) {
        const char *const stream = tl_formats[i].stream;
        if (stream && strlen(stream) == n && !memcmp(stream, word, n))
            return true;
    }
    return false;
}

bool tl_stream_is_derived(const char *name)
{
    return !strncmp(name, TL_STREAM_THREAD, sizeof TL_STREAM_THREAD - 1);
}

int tl_stream_id(const char *name)
{
    unsigned a, b;
    if (sscanf(name, "di.%u.%u", &a, &b) == 2)
        return (int)((a << 10 | (b & 0x3ff)) & 0xffff);
    const size_t n = strcspn(name, ".");
    if (!is_stream_word(name, n) || !name[n] ||
        sscanf(name + n + 1, has_hex_id(name) ? "%x" : "%u", &a) != 1)
        return -1;
    return (int)(a & 0xffff);
}
