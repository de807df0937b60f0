/* SPDX-License-Identifier: MIT */
/*
 * Parses the specifications of raw listeners and sources, and stores the images that they name.
 * Everything is checked when the server starts, since a rig that connects later cannot be told what
 * is wrong.
 */
#include "base/args.h"
#include "base/journal.h"
#include "base/lifetime.h"
#include "lake_images.h"
#include "osdhost/bringup.h"
#include "osdhost/controller.h"
#include "osdhost/host.h"
#include "rpc/raw.h"
#include "rpc/rpc.h"
#include "setup/registers.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { REJOIN_S = 10, DAY_S = 24 * 3600 };

void tl_raw_spec_fini(struct tl_raw_spec *spec)
{
    free(spec->setup);
    free(spec->orphans);
    spec->setup = NULL;
    spec->orphans = NULL;
    spec->n_orphans = 0;
}

/* ---- images ------------------------------------------------------------------------------- */

static int store_image(struct tl_lake *lake, const char *path, struct tl_image_row *row,
                       struct tl_fail *fail)
{
    struct stat st;
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st)) {
        tl_fail_set(fail, TL_IO, "image %.120s: %s", path, strerror(errno));
        if (fd >= 0)
            close(fd);
        return TL_IO;
    }
    const size_t n = (size_t)st.st_size;
    void *const p = n ? mmap(NULL, n, PROT_READ, MAP_PRIVATE, fd, 0) : MAP_FAILED;
    close(fd);
    if (p == MAP_FAILED)
        return tl_fail_set(fail, TL_BAD, "image %.120s: empty, or no file", path);
    const char *const slash = strrchr(path, '/');
    const int rc =
        tl_lake_put_image(lake, slash ? slash + 1 : path, (struct tl_bytes){p, n}, row, fail);
    munmap(p, n);
    return rc;
}

/* Store the images that the setup names by their files, and name them by their hashes instead: the
 * lake identifies images by content only. */
static int store_images(struct tl_lake *lake, struct tl_setup *setup, struct tl_fail *fail)
{
    if (!lake)
        return TL_OK;
    for (size_t i = 0; i < setup->n_images; i++) {
        struct tl_setup_image *const image = &setup->images[i];
        struct tl_image_row row;
        if (tl_setup_is_stored(image->file))
            continue;
        const int rc = store_image(lake, image->file, &row, fail);
        if (rc < 0)
            return rc;
        char *const hash = strdup(row.hash);
        if (!hash)
            return TL_NOMEM;
        free(image->file);
        image->file = hash;
    }
    return TL_OK;
}

/* ---- text --------------------------------------------------------------------------------- */

/* The texts of a specification, borrowed from a copy of it; NULL: not given. */
struct parts {
    char format[128];
    const char *rig;
    const char *config;
    const char *shards, *index, *rejoin;
    /* Only for DI: */
    const char *start, *reset, *order, *control;
    const char *subnet; /* of a device behind a host controller */
    bool joins;         /* we become a module of that host controller */
    bool dials;         /* `--source`: we connect */
    bool controller;    /* the address is a host controller's, whose port has a default */
};

/* Append an item of a list in `size` bytes. False: it does not fit, nothing was changed. */
static bool append(char *to, size_t size, const char *text)
{
    const size_t n = strlen(to);
    const bool fits = n + strlen(text) + 2 <= size;
    if (fits) {
        strcpy(to + n, n ? "," : "");
        strcat(to, text);
    }
    return fits;
}

/* Keep a part. One that is not ours is an option of the format: "format=tpiu,sync=fsync,rig=a". */
static int take_part(struct parts *parts, const char *part, struct tl_fail *fail)
{
    const struct tl_arg ours[] = {{"rig", TL_ARG_TEXT, &parts->rig},
                                  {"config", TL_ARG_TEXT, &parts->config},
                                  {"shards", TL_ARG_TEXT, &parts->shards},
                                  {"start", TL_ARG_TEXT, &parts->start},
                                  {"reset", TL_ARG_TEXT, &parts->reset},
                                  {"order", TL_ARG_TEXT, &parts->order},
                                  {"control", TL_ARG_TEXT, &parts->control},
                                  {"subnet", TL_ARG_TEXT, &parts->subnet},
                                  {"index", TL_ARG_TEXT, &parts->index},
                                  {"rejoin", TL_ARG_TEXT, &parts->rejoin},
                                  {0}};
    const size_t n = strcspn(part, "=");
    const struct tl_arg *const arg = part[n] ? tl_arg_find(ours, part, n) : NULL;
    if (arg && !tl_arg_set(arg, part + n + 1))
        return TL_OK;
    const char *const text = strncmp(part, "format=", 7) ? part : part + 7;
    if (text != part)
        *parts->format = 0;
    else if (!*parts->format)
        return tl_fail_set(fail, TL_USAGE, "\"%.60s\": write ADDR:PORT,format=FMT,rig=NAME", part);
    if (!append(parts->format, sizeof parts->format, text))
        return tl_fail_set(fail, TL_USAGE, "format=…: too long");
    return TL_OK;
}

static void warn_register(void *config, const char *text)
{
    struct tl_journal_line line;
    tl_journal_begin(&line, TL_JOURNAL_WARNING, "register ignored");
    tl_journal_text(&line, "config", config);
    tl_journal_text(&line, "why", text);
    tl_journal_end(&line);
}

static int make_setup(struct tl_raw_spec *out, struct tl_lake *lake, const struct parts *parts,
                      struct tl_fail *fail)
{
    struct tl_setup setup;
    struct tl_buf text = {0};
    tl_setup_init(&setup);
    int rc = tl_setup_format(&setup, parts->format, fail);
    if (rc >= 0 && parts->config)
        rc = tl_setup_read(&setup, parts->config, fail);
    if (rc >= 0 && parts->config)
        tl_setup_check_registers(&setup, warn_register, (void *)(uintptr_t)parts->config);
    if (rc >= 0)
        rc = store_images(lake, &setup, fail);
    if (rc >= 0)
        rc = tl_setup_write(&setup, &text);
    if (rc >= 0)
        rc = tl_buf_add(&text, "", 1);
    out->is_di = setup.container == TL_CONTAINER_DI;
    out->resumes = setup.container != TL_CONTAINER_PERF && setup.container != TL_CONTAINER_STF;
    tl_setup_fini(&setup);
    if (rc < 0) {
        tl_buf_fini(&text);
        return rc;
    }
    out->setup = (char *)text.p;
    return TL_OK;
}

static int take_shards(struct tl_raw_spec *out, const char *text, struct tl_fail *fail)
{
    out->shards = tl_shards_named(text ? text : "");
    return !text || out->shards != TL_SHARDS_AS_LAKE
               ? TL_OK
               : tl_fail_set(fail, TL_USAGE, "shards=%.60s: stored or virtual", text);
}

static int take_index(struct tl_raw_spec *out, const char *text, struct tl_fail *fail)
{
    out->index = tl_index_named(text ? text : "");
    return !text || out->index != TL_INDEX_AS_LAKE
               ? TL_OK
               : tl_fail_set(fail, TL_USAGE, "index=%.60s: now, behind or auto", text);
}

static bool is_no(const char *text)
{
    return !text || !strcmp(text, "no") || !strcmp(text, "0");
}

/* By default a source is waited for, since it is the same one whoever connects; but not a device,
 * which begins anew. */
static int take_rejoin(struct tl_raw_spec *out, const char *text, struct tl_fail *fail)
{
    uint64_t bytes = 0;
    out->rejoin_s = 0;
    if (!text && out->dials && !out->is_di && out->resumes)
        out->rejoin_s = REJOIN_S;
    if (is_no(text))
        return TL_OK;
    if (tl_lifetime_parse(text, &out->rejoin_s, &bytes) < 0 || bytes > 0 || out->rejoin_s > DAY_S)
        return tl_fail_set(fail, TL_USAGE, "rejoin=%.40s: write e.g. 10s, 5m or no, at most 24h",
                           text);
    if (out->is_di || !out->resumes)
        return tl_fail_set(fail, TL_USAGE,
                           "rejoin=: captures of this format cannot be continued by another "
                           "connection");
    return TL_OK;
}

/* Options for Open SoC Debug devices only. */
static int take_osd(struct tl_raw_spec *out, const struct parts *parts, struct tl_fail *fail)
{
    if (!out->is_di && (parts->start || parts->reset || parts->order || parts->control))
        return tl_fail_set(fail, TL_USAGE, "start=, reset=, order=, control= go with format=di");
    if (parts->start && tl_osd_start_parse(parts->start, &out->start) < 0)
        return tl_fail_set(fail, TL_USAGE, "start=%.60s: yes, no, or of ctm+stm+uart+cdm",
                           parts->start);
    if (parts->order && strcmp(parts->order, "big") && strcmp(parts->order, "little"))
        return tl_fail_set(fail, TL_USAGE, "order=%.60s: big or little", parts->order);
    if (!out->joins && parts->subnet)
        return tl_fail_set(fail, TL_USAGE, "subnet= goes with osd://HOST:PORT");
    if (out->joins && (!out->is_di || !out->start || parts->order || parts->control))
        return tl_fail_set(fail, TL_USAGE,
                           "osd:// is of format di, starts modules (start=), and has no order= or "
                           "control=");
    uint64_t subnet = 0;
    if (parts->subnet && (tl_number_parse(parts->subnet, &subnet) < 0 || subnet >= TL_OSD_SUBNETS ||
                          subnet == TL_OSD_HOST_SUBNET))
        return tl_fail_set(fail, TL_USAGE, "subnet=%.60s: 0 to 63, but not the host's own, 1",
                           parts->subnet);
    out->subnet = (unsigned)subnet;
    out->order = parts->order ? parts->order[0] : 0;
    out->reset = !is_no(parts->reset);
    out->no_control = parts->control && is_no(parts->control);
    return TL_OK;
}

/* Where the address begins, behind tcp:// if that is given; NULL: behind another scheme. */
static const char *behind_scheme(const char *text)
{
    if (!strncmp(text, "tcp://", 6))
        return text + 6;
    return strstr(text, "://") ? NULL : text;
}

static void add_osd_port(struct tl_raw_spec *out)
{
    const size_t n = strlen(out->address);
    const char *const last = strrchr(out->address, ':');
    if ((!last || strchr(last, ']')) && n + 6 < sizeof out->address)
        snprintf(out->address + n, sizeof out->address - n, ":%u", TL_OSD_HOST_PORT);
}

/* Parse `text`, without osd:// if there was one. `parts` has the defaults. */
static int parse(struct tl_raw_spec *out, struct tl_lake *lake, const char *text,
                 struct parts *parts, struct tl_fail *fail)
{
    char *save = NULL;
    int rc = TL_OK;
    *out = (struct tl_raw_spec){.joins = parts->joins, .dials = parts->dials};
    const char *const begin = parts->joins ? text : behind_scheme(text);
    if (!begin)
        return tl_fail_set(
            fail, TL_USAGE,
            "%.60s: only tcp://HOST:PORT is known, for --source also osd://HOST:PORT", text);
    char *const copy = strdup(begin);
    if (!copy)
        return TL_NOMEM;
    const char *const address = strtok_r(copy, ",", &save);
    for (const char *part; rc == TL_OK && (part = strtok_r(NULL, ",", &save));)
        rc = take_part(parts, part, fail);
    if (rc == TL_OK && (!address || strlen(address) >= sizeof out->address))
        rc = tl_fail_set(fail, TL_USAGE, "\"%.60s\" has no ADDR:PORT", text);
    if (rc == TL_OK && !parts->controller && !strchr(address, ':'))
        rc = tl_fail_set(fail, TL_USAGE, "%.60s: the port is missing, ADDR:PORT", address);
    if (rc == TL_OK && !*parts->format)
        rc = tl_fail_set(fail, TL_USAGE, "%.60s: format=FMT is missing", text);
    if (rc == TL_OK && (!parts->rig || !tl_name_ok(parts->rig)))
        rc = tl_fail_set(fail, TL_USAGE, "%.60s: rig=NAME: 1 to 63 of A-Z a-z 0-9 . _ -", text);
    if (rc == TL_OK) {
        strcpy(out->address, address);
        strcpy(out->rig, parts->rig);
        rc = make_setup(out, lake, parts, fail);
    }
    if (rc == TL_OK)
        rc = take_shards(out, parts->shards, fail);
    if (rc == TL_OK)
        rc = take_index(out, parts->index, fail);
    if (rc == TL_OK)
        rc = take_osd(out, parts, fail);
    if (rc == TL_OK)
        rc = take_rejoin(out, parts->rejoin, fail);
    if (rc == TL_OK && parts->controller)
        add_osd_port(out);
    free(copy);
    return rc;
}

int tl_raw_parse(struct tl_raw_spec *out, struct tl_lake *lake, const char *text,
                 struct tl_fail *fail)
{
    struct parts parts = {0};
    return parse(out, lake, text, &parts, fail);
}

int tl_raw_parse_source(struct tl_raw_spec *out, struct tl_lake *lake, const char *text,
                        struct tl_fail *fail)
{
    const bool joins = strncmp(text, "osd://", 6) == 0;
    struct parts parts = {.dials = true};
    if (joins)
        parts = (struct parts){
            .format = "di", .start = "yes", .joins = true, .dials = true, .controller = true};
    return parse(out, lake, joins ? text + 6 : text, &parts, fail);
}

int tl_raw_parse_controller(struct tl_raw_spec *out, struct tl_lake *lake, const char *text,
                            struct tl_fail *fail)
{
    struct parts parts = {.format = "di", .rig = "osd", .start = "yes", .controller = true};
    return parse(out, lake, text, &parts, fail);
}
