/* SPDX-License-Identifier: MIT */
/*
 * Arm trace snapshots: a folder of INI files that describe the trace buffers, the trace sources
 * that fed them, their configuration, and memory contents. Each buffer becomes a capture.
 *
 * Source: "Arm Trace and Debug Snapshot file format 0v2", with the extensions used by existing
 * snapshots (buffer format dstream_coresight, memory spaces of Armv9).
 */
#include "import/bundle.h"
#include "import/snapshot_files.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

static enum tl_protocol protocol_of(const char *type)
{
    static const struct {
        const char *prefix;
        enum tl_protocol protocol;
    } known[] = {
        {"ETM4", TL_PROTO_ETM4},  {"ETMv4", TL_PROTO_ETM4}, {"ETE", TL_PROTO_ETE},
        {"ITM", TL_PROTO_ITM},    {"STM", TL_PROTO_STM},    {"ETM3", TL_PROTO_ETM3},
        {"ETMv3", TL_PROTO_ETM3}, {"PTM", TL_PROTO_PTM},    {"PFT", TL_PROTO_PTM},
        {"MTB", TL_PROTO_MTB},
    };
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (!strncasecmp(type, known[i].prefix, strlen(known[i].prefix)))
            return known[i].protocol;
    return TL_PROTO_NONE;
}

static uint16_t trace_id_of(const struct tl_source *s)
{
    switch ((enum tl_protocol)s->protocol) {
    case TL_PROTO_STM:
        return (uint16_t)(tl_source_reg(s, "STMTCSR", 0) >> 16 & 0x7f);
    case TL_PROTO_ITM:
        return (uint16_t)(tl_source_reg(s, "ITMTCR", tl_source_reg(s, "CONTROL_REGISTER", 0)) >>
                              16 &
                          0x7f);
    case TL_PROTO_ETM4:
    case TL_PROTO_ETE:
        return (uint16_t)(tl_source_reg(s, "TRCTRACEIDR", 0) & 0x7f);
    default:
        return (uint16_t)(tl_source_reg(s, "ETMTRACEIDR", 0) & 0x7f);
    }
}

/* The core that a trace source belongs to; NULL for software trace. */
static const struct tl_snapshot_device *core_of(struct tl_snapshot *r, const char *source)
{
    for (size_t i = 0; i < r->core_sources.n; i++)
        if (!strcmp(r->core_sources.p[i].value, source))
            return tl_snapshot_device(r, r->core_sources.p[i].key);
    return NULL;
}

/* Where the vector table is; a buffer of branches ends where its core stopped. */
static void take_core(struct tl_source *s, const struct tl_snapshot_device *core)
{
    static const char *const names[][2] = {{"VTOR", "VTOR"}, {"R15", "PC"}, {"PC", "PC"}};
    const size_t n = s->protocol == TL_PROTO_MTB ? sizeof names / sizeof *names : 1;
    for (size_t i = 0; i < core->n_regs; i++)
        for (size_t k = 0; k < n; k++)
            if (strcasecmp(core->regs[i].name, names[k][0]) == 0) {
                const int rc = tl_source_set_reg(s, names[k][1], core->regs[i].value);
                (void)rc; /* without it less is told */
            }
}

static int add_source(struct tl_snapshot *r, struct tl_setup *setup,
                      const struct tl_snapshot_device *device, struct tl_fail *fail)
{
    struct tl_source *const s = tl_setup_add_source(setup);
    if (!s)
        return tl_fail_set(fail, TL_NOMEM, "out of memory");
    s->protocol = (uint8_t)protocol_of(device->type);
    snprintf(s->type, sizeof s->type, "%.23s", device->type);
    snprintf(s->device, sizeof s->device, "%.39s", device->name);
    memcpy(s->regs, device->regs, device->n_regs * sizeof device->regs[0]);
    s->n_regs = device->n_regs;
    s->id = trace_id_of(s);
    if (s->protocol == TL_PROTO_MTB)
        tl_format_stream(tl_format_of(s->protocol), s->id, s->name, sizeof s->name);
    else
        snprintf(s->name, sizeof s->name, "cs.%02x", s->id);
    const struct tl_snapshot_device *const core = core_of(r, device->name);
    if (core)
        take_core(s, core);
    if (core)
        snprintf(s->core, sizeof s->core, "%.39s", core->type);
    if (s->protocol == TL_PROTO_NONE)
        tl_snapshot_warn(
            r,
            "source %s: type '%s' is not supported; its bytes are counted, other sources are "
            "decoded",
            device->name, device->type);
    return TL_OK;
}

static int set_container(struct tl_snapshot *r, struct tl_setup *setup,
                         const struct tl_snapshot_buffer *buffer, struct tl_fail *fail)
{
    if (!strcasecmp(buffer->format, "source_data")) {
        setup->container = TL_CONTAINER_SINGLE;
        return TL_OK;
    }
    if (!strcasecmp(buffer->format, "dstream_coresight"))
        return tl_setup_format(setup, "tpiu,sync=dstream", fail);
    if (strcasecmp(buffer->format, "coresight"))
        tl_snapshot_warn(
            r,
            "buffer %s: format '%.40s' is none of coresight, dstream_coresight and source_data; "
            "taken for coresight",
            buffer->name, buffer->format);
    return tl_setup_format(setup, "tpiu", fail);
}

static int add_dump(struct tl_snapshot *r, struct tl_setup *setup, const struct tl_snapshot_dump *d,
                    struct tl_fail *fail)
{
    char *const path = tl_snapshot_path(r, d->file);
    int rc = TL_OK;
    if (!path)
        return tl_fail_set(fail, TL_NOMEM, "out of memory");
    bool known = false;
    for (size_t m = 0; !known && m < setup->n_images; m++) {
        const struct tl_setup_image *const old = &setup->images[m];
        known = old->address == d->address && old->offset == d->offset &&
                old->length == d->length && old->space == d->space &&
                !memcmp(&old->context, &d->context, sizeof d->context) && !strcmp(old->file, path);
    }
    if (!known) {
        rc = tl_setup_add_image_at(setup, path, d->address, d->offset, d->length, d->space);
        if (rc == TL_OK)
            setup->images[setup->n_images - 1].context = d->context;
        else
            rc = tl_fail_set(fail, TL_NOMEM, "out of memory");
    }
    free(path);
    return rc;
}

static int add_dumps_of(struct tl_snapshot *r, struct tl_setup *setup,
                        const struct tl_snapshot_device *device, struct tl_fail *fail)
{
    int rc = TL_OK;
    for (size_t k = 0; rc == TL_OK && k < device->n_dumps; k++)
        rc = add_dump(r, setup, &device->dumps[k], fail);
    return rc;
}

/* Add the dumps of the `sources`' cores, then all others, in reverse precedence: in an image the
 * last region added takes precedence, but in a snapshot the first one does. */
static int add_dumps(struct tl_snapshot *r, struct tl_setup *setup,
                     const struct tl_snapshot_device *const *sources, size_t n,
                     struct tl_fail *fail)
{
    int rc = TL_OK;
    for (size_t i = 0; rc == TL_OK && i < n; i++) {
        const struct tl_snapshot_device *const core = core_of(r, sources[i]->name);
        if (core)
            rc = add_dumps_of(r, setup, core, fail);
    }
    for (size_t i = 0; rc == TL_OK && i < r->n_devices; i++)
        rc = add_dumps_of(r, setup, &r->devices[i], fail);
    for (size_t i = 0; i < setup->n_images / 2; i++) {
        const struct tl_setup_image swap = setup->images[i];
        setup->images[i] = setup->images[setup->n_images - 1 - i];
        setup->images[setup->n_images - 1 - i] = swap;
    }
    return rc;
}

/* Does this device feed the buffer? If the snapshot has no such information, all sources feed the
 * only buffer. */
static bool feeds(struct tl_snapshot *r, const struct tl_snapshot_device *device,
                  const struct tl_snapshot_buffer *buffer)
{
    for (size_t i = 0; i < r->source_buffers.n; i++) {
        const struct tl_snapshot_pair *const p = &r->source_buffers.p[i];
        if (!strcmp(p->key, device->name) &&
            (!strcmp(p->value, buffer->name) || !strcmp(p->value, buffer->section)))
            return true;
    }
    return !r->source_buffers.n && r->n_buffers == 1 && device->is_source;
}

static int by_name(const void *a, const void *b)
{
    return strcmp((*(const struct tl_snapshot_device *const *)a)->name,
                  (*(const struct tl_snapshot_device *const *)b)->name);
}

static int add_sources(struct tl_snapshot *r, const struct tl_snapshot_buffer *buffer,
                       struct tl_setup *setup, struct tl_fail *fail)
{
    const struct tl_snapshot_device **const sources =
        calloc(r->n_devices + 1, sizeof(struct tl_snapshot_device *));
    if (!sources)
        return tl_fail_set(fail, TL_NOMEM, "out of memory");
    size_t n = 0;
    for (size_t i = 0; i < r->n_devices; i++)
        if (feeds(r, &r->devices[i], buffer))
            sources[n++] = &r->devices[i];
    qsort(sources, n, sizeof(struct tl_snapshot_device *), by_name);
    if (setup->container == TL_CONTAINER_SINGLE && n > 1) {
        tl_snapshot_warn(r, "buffer %s is of one source, but %zu feed it; %s is taken",
                         buffer->name, n, sources[0]->name);
        n = 1;
    }
    int rc = TL_OK;
    for (size_t i = 0; rc == TL_OK && i < n; i++)
        rc = add_source(r, setup, sources[i], fail);
    if (rc == TL_OK)
        rc = add_dumps(r, setup, sources, n, fail);
    free(sources);
    return rc;
}

/* Add the files of a comma-separated `file=` value. If there are several, all must exist. */
static int add_files(struct tl_snapshot *r, const char *files, struct tl_bundle_capture *out,
                     struct tl_fail *fail)
{
    static const char blank[] = " \t,\"'";
    int rc = TL_OK;
    for (files += strspn(files, blank); rc == TL_OK && *files; files += strspn(files, blank)) {
        char name[sizeof((struct tl_snapshot_buffer *)0)->file];
        const size_t n = strcspn(files, ",");
        tl_snapshot_text(name, sizeof name, files, n);
        files += n;
        char *const path = tl_snapshot_path(r, name);
        rc = path ? tl_bundle_add(out, path, 0, UINT64_MAX) : TL_NOMEM;
        free(path);
    }
    if (rc < 0)
        return tl_fail_set(fail, TL_NOMEM, "out of memory");
    if (out->n_pieces == 0)
        return tl_fail_set(fail, TL_BAD, "buffer %s has no file=", out->name);
    for (size_t i = 0; out->n_pieces > 1 && i < out->n_pieces; i++)
        if (access(out->pieces[i].path, R_OK) < 0)
            return tl_fail_set(fail, TL_IO, "%.180s: cannot be read", out->pieces[i].path);
    return TL_OK;
}

static int make_buffer(struct tl_snapshot *r, const struct tl_snapshot_buffer *buffer,
                       struct tl_bundle_capture *out, struct tl_fail *fail)
{
    tl_setup_init(&out->setup);
    snprintf(out->name, sizeof out->name, "%s", buffer->name);
    struct tl_setup *const setup = &out->setup;
    int rc = buffer->file[0] ? set_container(r, setup, buffer, fail)
                             : tl_fail_set(fail, TL_BAD, "buffer %s has no file=", buffer->name);
    if (rc == TL_OK)
        rc = add_sources(r, buffer, setup, fail);
    if (rc == TL_OK && setup->container == TL_CONTAINER_SINGLE) {
        if (!setup->n_sources)
            return tl_fail_set(fail, TL_BAD, "no source feeds buffer %s", buffer->name);
        /* An unsupported source is decoded too: to a message and a byte count. */
        const struct tl_source *const source = &setup->sources[0];
        const enum tl_protocol protocol =
            source->protocol ? (enum tl_protocol)source->protocol : TL_PROTO_ETM4;
        snprintf(setup->format, sizeof setup->format, "%s,id=0x%02x", tl_format_of(protocol)->name,
                 source->id);
    }
    return rc == TL_OK ? add_files(r, buffer->file, out, fail) : rc;
}

int tl_snapshot_read(struct tl_bundle *out, const char *dir,
                     void (*report)(void *context, const char *text), void *context,
                     struct tl_fail *fail)
{
    *out = (struct tl_bundle){0};
    struct tl_snapshot r = {.dir = dir, .warn = report, .warn_context = context};
    int rc = tl_snapshot_files_read(&r, fail);
    if (rc == TL_OK) {
        out->captures = calloc(r.n_buffers, sizeof *out->captures);
        if (!out->captures)
            rc = tl_fail_set(fail, TL_NOMEM, "out of memory");
    }
    for (size_t i = 0; rc == TL_OK && i < r.n_buffers; i++) {
        struct tl_bundle_capture *const capture = &out->captures[out->n_captures];
        struct tl_fail why = {0};
        const int one = make_buffer(&r, &r.buffers[i], capture, &why);
        if (one == TL_OK) {
            out->n_captures++;
            continue;
        }
        tl_bundle_capture_fini(capture);
        if (one == TL_NOMEM || (i + 1 == r.n_buffers && !out->n_captures))
            rc = tl_fail_set(fail, (enum tl_err)one, "%.60s: %.120s", r.metadata, why.text);
        else
            tl_snapshot_warn(&r, "%.60s: %.200s; this buffer is left out", r.metadata, why.text);
    }
    tl_snapshot_fini(&r);
    if (rc < 0)
        tl_bundle_fini(out);
    return rc;
}
