/* SPDX-License-Identifier: MIT */
/*
 * The argument of --format: a format's name and its options. What others call a format, and which
 * options this one has, is said where it is refused, since the names differ from tool to tool.
 */
#include "setup/format_text.h"

#include "base/args.h"
#include "setup/riscv_cores.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#define CORESIGHT_ID_MAX 0x7f /* a trace ID has seven bits */

/* NAME=yes|no */
static bool take_choice(const char *name, const char *option, bool *out)
{
    const size_t n = strlen(name);
    if (strncmp(option, name, n) || (strcmp(option + n, "yes") && strcmp(option + n, "no")))
        return false;
    *out = option[n] == 'y';
    return true;
}

/* NAME=N, up to `most`. Returns 1: taken; 0: another option; TL_USAGE. */
static int take_count(const char *name, const char *option, uint8_t most, uint8_t *out,
                      struct tl_fail *fail)
{
    const size_t n = strlen(name);
    uint64_t number;
    if (strncmp(option, name, n) || option[n] != '=')
        return 0;
    if (tl_number_parse(option + n + 1, &number) < 0 || number > most)
        return tl_fail_set(fail, TL_USAGE, "format option '%.40s': use a number up to %u", option,
                           most);
    *out = (uint8_t)number;
    return 1;
}

/* Returns as take_count(). */
static int take_core(struct tl_setup *setup, const char *core, struct tl_fail *fail)
{
    char names[120];
    if (!strcasestr(core, "rv32") && !strcasestr(core, "rv64") && !strcasestr(core, "esp32") &&
        !tl_riscv_core_in(core))
        return tl_fail_set(fail, TL_USAGE, "core=%.30s is not known; use rv32, rv64, %s", core,
                           tl_riscv_core_names(names, sizeof names));
    snprintf(setup->core, sizeof setup->core, "%s", core);
    return 1;
}

/* Returns as take_count(). */
static int take_riscv_option(struct tl_setup *setup, const char *option, struct tl_fail *fail)
{
    const bool nexus = setup->container == TL_CONTAINER_NEXUS;
    const bool etrace = setup->container == TL_CONTAINER_ETRACE;
    int rc = 0;
    if ((nexus || etrace) && !strncmp(option, "core=", 5))
        return take_core(setup, option + 5, fail);
    if (nexus || etrace)
        rc = take_count("src_bits", option, nexus ? 12 : 16, &setup->src_bits, fail);
    if (etrace && rc == 0)
        rc = take_count("ts_bytes", option, 8, &setup->ts_bytes, fail);
    if (etrace && rc == 0)
        rc = take_count("type_bits", option, 8, &setup->type_bits, fail);
    return rc;
}

int tl_setup_port_key(struct tl_source *source, const char *key, const char *value,
                      struct tl_fail *fail)
{
    static const char begin[] = "port";
    const char *const digits = key + sizeof begin - 1;
    uint64_t port;
    if (strncasecmp(key, begin, sizeof begin - 1) != 0 || !isdigit((unsigned char)*digits) ||
        tl_number_parse(digits, &port) < 0)
        return TL_NOTFOUND;
    if (port >= TL_PORTS)
        return tl_fail_set(fail, TL_BAD, "%.40s: stimulus ports are 0 to %d", key, TL_PORTS - 1);
    source->ports[port] = (uint8_t)tl_port_form_named(value, strlen(value));
    if (source->ports[port] == TL_PORT_UNKNOWN)
        return tl_fail_set(fail, TL_BAD,
                           "%.40s=%.40s: it is text, hex, u8, u16, u32, i8, i16, i32 or float", key,
                           value);
    return TL_OK;
}

/* portN=FORM of the only source, an ITM. Returns as take_count(). */
static int take_port_option(struct tl_source *source, const char *option, struct tl_fail *fail)
{
    char key[16];
    const char *const form = strchr(option, '=');
    if (!source || source->protocol != TL_PROTO_ITM || !form ||
        (size_t)(form - option) >= sizeof key)
        return 0;
    snprintf(key, sizeof key, "%.*s", (int)(form - option), option);
    const int rc = tl_setup_port_key(source, key, form + 1, fail);
    if (rc == TL_BAD) /* what is wrong in a file is wrong use in an option */
        return tl_fail_set(fail, TL_USAGE,
                           "format option '%.40s': use text, hex, u8, u16, u32, i8, "
                           "i16, i32 or float, of ports 0 to %d",
                           option, TL_PORTS - 1);
    return rc == TL_NOTFOUND ? 0 : 1;
}

/* The options of a format besides id= and clock=, as a text that a comma ends. */
static const char *options_of(const struct tl_setup *setup, const struct tl_source *source)
{
    switch (setup->container) {
    case TL_CONTAINER_TPIU:
        return "sync=none|fsync|hsync|dstream, ";
    case TL_CONTAINER_PERF:
        return "threads=yes|no, events=yes|no, ";
    case TL_CONTAINER_NEXUS:
        return "core=NAME, src_bits=N, ";
    case TL_CONTAINER_ETRACE:
        return "core=NAME, src_bits=N, ts_bytes=N, type_bits=N, ";
    default:
        return source && source->protocol == TL_PROTO_ITM ? "portN=FORM, " : "";
    }
}

/* id=N of a source. Returns as take_count(). */
static int take_id(struct tl_source *source, const char *option, struct tl_fail *fail)
{
    uint64_t number;
    if (strncmp(option, "id=", 3))
        return 0;
    const char *const kind = source ? tl_format_of(source->protocol)->stream : NULL;
    const uint64_t most = kind && !strcmp(kind, "cs") ? CORESIGHT_ID_MAX : UINT16_MAX;
    if (tl_number_parse(option + 3, &number) < 0 || number > most)
        return tl_fail_set(fail, TL_USAGE, "%.40s: use a number up to 0x%x", option,
                           (unsigned)most);
    if (source)
        source->id = (uint16_t)number;
    return 1;
}

/* `source`: the only one, or NULL. */
static int take_option(struct tl_setup *setup, struct tl_source *source, const char *option,
                       struct tl_fail *fail)
{
    static const char *const syncs[] = {"none", "fsync", "hsync", "dstream"};
    uint64_t number;
    if (!strncmp(option, "sync=", 5) && setup->container == TL_CONTAINER_TPIU) {
        for (uint8_t i = 0; i < 4; i++) {
            if (!strcmp(option + 5, syncs[i])) {
                setup->sync = i;
                return TL_OK;
            }
        }
        return tl_fail_set(fail, TL_USAGE, "sync=%s: use none, fsync, hsync or dstream",
                           option + 5);
    }
    if (!strncmp(option, "clock=", 6) && tl_number_parse(option + 6, &number) == TL_OK) {
        setup->clock_hz = number;
        return TL_OK;
    }
    if (setup->container == TL_CONTAINER_PERF &&
        (take_choice("threads=", option, &setup->threads) ||
         take_choice("events=", option, &setup->events)))
        return TL_OK;
    int rc = take_id(source, option, fail);
    if (rc == 0)
        rc = take_riscv_option(setup, option, fail);
    if (rc == 0)
        rc = take_port_option(source, option, fail);
    if (rc != 0)
        return rc < 0 ? rc : TL_OK;
    return tl_fail_set(fail, TL_USAGE, "format option '%.40s' is not known; there are %s%sclock=HZ",
                       option, options_of(setup, source), source ? "id=NUMBER, " : "");
}

int tl_setup_format(struct tl_setup *setup, const char *text, struct tl_fail *fail)
{
    if (strlen(text) >= sizeof setup->format)
        return tl_fail_set(fail, TL_USAGE,
                           "the format is too long; --config has room for what sources need");
    char copy[sizeof setup->format];
    snprintf(copy, sizeof copy, "%s", text);
    snprintf(setup->format, sizeof setup->format, "%s", text);
    char *rest = copy;
    const char *const name = strsep(&rest, ",");
    const struct tl_format *const format = tl_format_named(name);
    char names[TL_FORMAT_NAMES];
    const char *const usual = format ? NULL : tl_format_usual(name);
    if (usual)
        return tl_fail_set(fail, TL_USAGE, "format '%.40s' is called %s here", name, usual);
    if (!format)
        return tl_fail_set(fail, TL_USAGE, "format '%.40s' is not known; use %s", name,
                           tl_format_names(names, sizeof names));
    setup->container = (uint8_t)format->container;
    const bool shared = tl_container_is_shared(format->container);
    struct tl_source *const source = shared ? NULL : tl_setup_add_source(setup);
    if (!shared && !source)
        return tl_fail_set(fail, TL_NOMEM, "out of memory");
    if (source)
        source->protocol = (uint8_t)(format - tl_formats);
    for (const char *option; (option = strsep(&rest, ","));) {
        const int rc = take_option(setup, source, option, fail);
        if (rc < 0)
            return rc;
    }
    if (source)
        tl_format_stream(format, source->id, source->name, sizeof source->name);
    return TL_OK;
}

static bool want(struct tl_setup *setup, const char *name, bool *choice)
{
    const size_t n = strlen(setup->format);
    char option[20];
    snprintf(option, sizeof option, ",%s=", name);
    if (strstr(setup->format, option) || n + strlen(option) + 4 > sizeof setup->format)
        return false;
    snprintf(setup->format + n, sizeof setup->format - n, "%syes", option);
    *choice = true;
    return true;
}

bool tl_setup_want_all(struct tl_setup *setup)
{
    if (setup->container != TL_CONTAINER_PERF)
        return false;
    const bool threads = want(setup, "threads", &setup->threads);
    return want(setup, "events", &setup->events) || threads;
}
