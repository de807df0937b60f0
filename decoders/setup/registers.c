/* SPDX-License-Identifier: MIT */
/*
 * Compares names with those of the format's list by edit distance, whose patterns stand for
 * numbered registers. A misspelt register is silently the same as one that is absent, with its
 * default, so that the decode is wrong without a sign.
 */
#include "setup/registers.h"

#include "base/nearest.h"
#include "setup/format.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#define NAME_ROOM sizeof(((struct tl_register *)0)->name)

/* Keys of a [source] section that have numbers: a misspelt one looks like a register. */
static const char keys[] = "id clock head port#";

/* Next word of a list separated by spaces; false: none. */
static bool next_word(const char **list, char word[static NAME_ROOM])
{
    *list += strspn(*list, " ");
    const int n = (int)strcspn(*list, " ");
    snprintf(word, NAME_ROOM, "%.*s", n, *list);
    *list += n;
    return n > 0;
}

/* Does a name match a pattern, in which '#' is a number and a final '*' is anything? */
static bool matches(const char *pattern, const char *name)
{
    for (; *pattern && *pattern != '*'; pattern++) {
        if (*pattern == '#') {
            if (!isdigit((unsigned char)*name))
                return false;
            name += strspn(name, "0123456789");
        } else if (toupper((unsigned char)*pattern) != toupper((unsigned char)*name++)) {
            return false;
        }
    }
    return *pattern == '*' || !*name;
}

static bool is_listed(const char *list, const char *name)
{
    char word[NAME_ROOM];
    while (next_word(&list, word))
        if (matches(word, name))
            return true;
    return false;
}

/* A pattern with the number of the similar name, or 0. */
static void fill(const char *pattern, const char *name, char out[static NAME_ROOM])
{
    const size_t at = strcspn(pattern, "#");
    const char *const digits = name + strcspn(name, "0123456789");
    const int n = (int)strspn(digits, "0123456789");
    if (pattern[at])
        snprintf(out, NAME_ROOM, "%.*s%.*s%s", (int)at, pattern, n ? n : 1, n ? digits : "0",
                 pattern + at + 1);
    else
        snprintf(out, NAME_ROOM, "%s", pattern);
}

/* Write the most similar listed name to `out` if it is nearer than `most`. */
static unsigned nearest(const char *list, const char *name, unsigned most,
                        char out[static NAME_ROOM])
{
    char word[NAME_ROOM], filled[NAME_ROOM];
    while (next_word(&list, word)) {
        fill(word, name, filled);
        const unsigned far = tl_name_distance(name, filled);
        if (far < most && !strchr(word, '*')) {
            most = far;
            memcpy(out, filled, sizeof filled);
        }
    }
    return most;
}

/* The protocol of sources that name none. */
static unsigned protocol_of(const struct tl_setup *setup, const struct tl_source *source)
{
    return source->protocol != TL_PROTO_NONE         ? source->protocol
           : setup->container == TL_CONTAINER_NEXUS  ? TL_PROTO_N_TRACE
           : setup->container == TL_CONTAINER_ETRACE ? TL_PROTO_E_TRACE
                                                     : TL_PROTO_NONE;
}

/* Rules for ports of a source that has none. */
static void check_ports(const struct tl_source *source, unsigned protocol,
                        void (*report)(void *context, const char *text), void *context)
{
    char text[120];
    for (size_t i = 0; i < TL_PORTS && protocol != TL_PROTO_ITM; i++)
        if (source->ports[i] != TL_PORT_UNKNOWN) {
            snprintf(text, sizeof text, "[source %s]: port%zu is ignored: only an ITM has ports",
                     source->name, i);
            report(context, text);
        }
}

void tl_setup_check_registers(const struct tl_setup *setup,
                              void (*report)(void *context, const char *text), void *context)
{
    for (size_t i = 0; i < setup->n_sources; i++) {
        const struct tl_source *const source = &setup->sources[i];
        const unsigned protocol = protocol_of(setup, source);
        const char *const list = tl_format_of(protocol)->registers;
        if (protocol != TL_PROTO_NONE)
            check_ports(source, protocol, report, context);
        for (size_t k = 0; list && k < source->n_regs; k++) {
            const char *const name = source->regs[k].name;
            char text[160], near[NAME_ROOM] = "";
            if (is_listed(list, name))
                continue;
            const unsigned far = nearest(list, name, tl_name_too_far(name), near);
            (void)nearest(keys, name, far, near);
            snprintf(text, sizeof text, "[source %s]: unknown register %s is ignored%s%s%s",
                     source->name, name, near[0] ? "; did you mean " : "", near,
                     near[0] ? "?" : "");
            report(context, text);
        }
    }
}
