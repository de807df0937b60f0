/* SPDX-License-Identifier: MIT */
/*
 * Arm trace snapshots: a folder of INI files that say which trace buffers there are, which
 * trace sources fed them, how these were configured, and what memory held.
 *
 * Source: "Arm Trace and Debug Snapshot file format 0v2", with the extensions that existing
 * snapshots use (buffer format dstream_coresight, memory spaces of Armv9).
 */
#include "image/image.h"
#include "setup/ini_text.h"
#include "setup/setup.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

enum { NAME = 64, MAX_FILE = 4 << 20 };

enum device_class { CLASS_OTHER, CLASS_CORE, CLASS_SOURCE };

struct dump {
    char file[200];
    uint64_t address;
    uint64_t offset;
    uint64_t length;
    unsigned space;
    bool has_file;
    bool has_address;
};

struct device {
    char name[NAME];
    char type[NAME];
    enum device_class class;
    struct tl_register regs[TL_SETUP_REGS];
    size_t n_regs;
    struct dump *dumps;
    size_t n_dumps;
    size_t cap_dumps;
};

struct pair {
    char key[NAME];
    char value[200];
};

struct pairs {
    struct pair *p;
    size_t n;
    size_t cap;
};

struct buffer {
    char section[NAME];
    char name[NAME];
    char file[200];
    char format[NAME];
};

struct reading {
    const char *dir;
    void (*warn)(void *context, const char *text);
    void *warn_context;
    char metadata[200];
    struct pairs device_files;
    struct device *devices;
    size_t n_devices;
    size_t cap_devices;
    struct buffer *buffers;
    size_t n_buffers;
    size_t cap_buffers;
    struct pairs source_buffers; /* source → buffer */
    struct pairs core_sources;   /* core → source */
    char section[NAME];          /* of the device file being read */
};

static int add_pair(struct pairs *list, const char *key, const char *value, struct tl_fail *fail)
{
    if (tl_grow(&list->p, &list->cap, list->n + 1, sizeof *list->p) < 0)
        return tl_fail_set(fail, TL_NOMEM, "out of memory");
    struct pair *const pair = &list->p[list->n++];
    snprintf(pair->key, sizeof pair->key, "%.63s", key);
    snprintf(pair->value, sizeof pair->value, "%.199s", value);
    return TL_OK;
}

static int parse_file(struct reading *r, const char *name, tl_ini_entry *entry,
                      struct tl_fail *fail)
{
    char *path = NULL;
    if (asprintf(&path, "%s/%s", r->dir, name) < 0)
        return tl_fail_set(fail, TL_NOMEM, "out of memory");
    struct tl_buf text = {0};
    int rc = tl_buf_read_file(&text, path, MAX_FILE, fail);
    if (rc == TL_OK) {
        rc = tl_ini_parse((const char *)text.p, text.n, entry, r, fail);
        if (rc < 0 && fail) {
            char what[sizeof fail->text];
            memcpy(what, fail->text, sizeof what);
            tl_fail_set(fail, (enum tl_err)rc, "%.100s: %.110s", name, what);
        }
    }
    tl_buf_fini(&text);
    free(path);
    return rc;
}

/* ---- snapshot.ini --------------------------------------------------------------------------- */

static int on_snapshot_entry(void *context, const char *section, const char *key, const char *value,
                             struct tl_fail *fail)
{
    struct reading *const r = context;
    if (!strcasecmp(section, "device_list"))
        return add_pair(&r->device_files, key, value, fail);
    if (!strcasecmp(section, "trace") && !strcasecmp(key, "metadata"))
        snprintf(r->metadata, sizeof r->metadata, "%.199s", value);
    return TL_OK;
}

/* ---- device files ---------------------------------------------------------------------------- */

/*
 * Registers that describe a trace source; a core's own registers are not kept. Names stand in
 * front of a parenthesis that tells number and size.
 */
static int take_register(struct device *device, const char *key, const char *value,
                         struct tl_fail *fail)
{
    static const char *const wanted[] = {
        "TRCCONFIGR", "TRCTRACEIDR", "TRCIDR",  "TRCDEVARCH",       "TRCAUTHSTATUS", "STMTCSR",
        "ITMTCR",     "ETMCR",       "ETMCCER", "CONTROL_REGISTER", "ETMIDR",        "ETMTRACEIDR",
    };
    char name[sizeof device->regs[0].name];
    snprintf(name, sizeof name, "%.*s", (int)strcspn(key, "("), key);
    bool keep = false;
    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++)
        keep |= !strncasecmp(name, wanted[i], strlen(wanted[i]));
    if (!keep || device->n_regs == TL_SETUP_REGS)
        return TL_OK;
    uint64_t number;
    if (tl_ini_number(value, &number) < 0)
        return tl_fail_set(fail, TL_BAD, "register %.40s: '%.40s' is not a number", name, value);
    struct tl_register *const reg = &device->regs[device->n_regs++];
    memcpy(reg->name, name, sizeof reg->name);
    reg->value = number;
    return TL_OK;
}

static int take_dump_key(struct dump *dump, const char *key, const char *value,
                         struct tl_fail *fail)
{
    if (!strcasecmp(key, "file")) {
        snprintf(dump->file, sizeof dump->file, "%.199s", value);
        dump->has_file = true;
        return TL_OK;
    }
    if (!strcasecmp(key, "space")) {
        const int space = tl_space_parse(value);
        if (space < 0)
            return tl_fail_set(fail, TL_BAD, "memory space '%.40s' is not known", value);
        dump->space = (unsigned)space;
        return TL_OK;
    }
    uint64_t *const number = !strcasecmp(key, "address")  ? &dump->address
                             : !strcasecmp(key, "offset") ? &dump->offset
                             : !strcasecmp(key, "length") ? &dump->length
                                                          : NULL;
    if (!number)
        return tl_fail_set(fail, TL_BAD,
                           "key '%.40s' is not known in a dump section; file, address, length, "
                           "offset and space are",
                           key);
    if (tl_ini_number(value, number) < 0)
        return tl_fail_set(fail, TL_BAD, "%.40s=%.40s is not a number", key, value);
    dump->has_address |= number == &dump->address;
    return TL_OK;
}

static int on_device_entry(void *context, const char *section, const char *key, const char *value,
                           struct tl_fail *fail)
{
    struct reading *const r = context;
    struct device *const device = &r->devices[r->n_devices - 1];
    const bool begins = strcmp(r->section, section) != 0;
    snprintf(r->section, sizeof r->section, "%.63s", section);
    if (!strncasecmp(section, "dump", 4)) {
        if (begins) {
            if (tl_grow(&device->dumps, &device->cap_dumps, device->n_dumps + 1,
                        sizeof *device->dumps) < 0)
                return tl_fail_set(fail, TL_NOMEM, "out of memory");
            device->dumps[device->n_dumps++] =
                (struct dump){.length = UINT64_MAX, .space = TL_SPACE_ANY};
        }
        return take_dump_key(&device->dumps[device->n_dumps - 1], key, value, fail);
    }
    if (!strcasecmp(section, "regs"))
        return take_register(device, key, value, fail);
    if (strcasecmp(section, "device"))
        return TL_OK;
    if (!strcasecmp(key, "name"))
        snprintf(device->name, sizeof device->name, "%.63s", value);
    else if (!strcasecmp(key, "type"))
        snprintf(device->type, sizeof device->type, "%.63s", value);
    else if (!strcasecmp(key, "class"))
        device->class = !strcasecmp(value, "core")           ? CLASS_CORE
                        : !strcasecmp(value, "trace_source") ? CLASS_SOURCE
                                                             : CLASS_OTHER;
    return TL_OK;
}

static int read_devices(struct reading *r, struct tl_fail *fail)
{
    for (size_t i = 0; i < r->device_files.n; i++) {
        if (tl_grow(&r->devices, &r->cap_devices, r->n_devices + 1, sizeof *r->devices) < 0)
            return tl_fail_set(fail, TL_NOMEM, "out of memory");
        r->devices[r->n_devices++] = (struct device){0};
        r->section[0] = '\0';
        const int rc = parse_file(r, r->device_files.p[i].value, on_device_entry, fail);
        if (rc < 0)
            return rc;
    }
    return TL_OK;
}

/* ---- trace.ini --------------------------------------------------------------------------------
 */

static struct buffer *buffer_of_section(struct reading *r, const char *section)
{
    for (size_t i = 0; i < r->n_buffers; i++)
        if (!strcasecmp(r->buffers[i].section, section))
            return &r->buffers[i];
    return NULL;
}

static int take_buffer_list(struct reading *r, const char *value, struct tl_fail *fail)
{
    char list[256];
    snprintf(list, sizeof list, "%.255s", value);
    char *rest = list;
    for (char *name; (name = strsep(&rest, ", \t"));) {
        if (!*name)
            continue;
        if (tl_grow(&r->buffers, &r->cap_buffers, r->n_buffers + 1, sizeof *r->buffers) < 0)
            return tl_fail_set(fail, TL_NOMEM, "out of memory");
        struct buffer *const buffer = &r->buffers[r->n_buffers++];
        *buffer = (struct buffer){0};
        snprintf(buffer->section, sizeof buffer->section, "%.63s", name);
        snprintf(buffer->name, sizeof buffer->name, "%.63s", name);
    }
    return TL_OK;
}

static int on_trace_entry(void *context, const char *section, const char *key, const char *value,
                          struct tl_fail *fail)
{
    struct reading *const r = context;
    if (!strcasecmp(section, "trace_buffers"))
        return !strcasecmp(key, "buffers") ? take_buffer_list(r, value, fail) : TL_OK;
    if (!strcasecmp(section, "source_buffers"))
        return add_pair(&r->source_buffers, key, value, fail);
    if (!strcasecmp(section, "core_trace_sources"))
        return add_pair(&r->core_sources, key, value, fail);
    struct buffer *const buffer = buffer_of_section(r, section);
    if (!buffer)
        return TL_OK;
    if (!strcasecmp(key, "name"))
        snprintf(buffer->name, sizeof buffer->name, "%.63s", value);
    else if (!strcasecmp(key, "file"))
        snprintf(buffer->file, sizeof buffer->file, "%.199s", value);
    else if (!strcasecmp(key, "format"))
        snprintf(buffer->format, sizeof buffer->format, "%.63s", value);
    return TL_OK;
}

/* ---- put together ------------------------------------------------------------------------------
 */

static const struct device *device_named(const struct reading *r, const char *name)
{
    for (size_t i = 0; i < r->n_devices; i++)
        if (!strcmp(r->devices[i].name, name))
            return &r->devices[i];
    return NULL;
}

static enum tl_protocol protocol_of(const char *type)
{
    static const struct {
        const char *prefix;
        enum tl_protocol protocol;
    } known[] = {
        {"ETM4", TL_PROTO_ETM4},
        {"ETE", TL_PROTO_ETE},
        {"ITM", TL_PROTO_ITM},
        {"STM", TL_PROTO_STM},
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

static int add_source(const struct reading *r, struct tl_setup *setup, const struct device *device,
                      struct tl_fail *fail)
{
    struct tl_source *const s = tl_setup_add_source(setup);
    if (!s)
        return tl_fail_set(fail, TL_NOMEM, "out of memory");
    s->protocol = (uint8_t)protocol_of(device->type);
    snprintf(s->type, sizeof s->type, "%.23s", device->type);
    memcpy(s->regs, device->regs, device->n_regs * sizeof device->regs[0]);
    s->n_regs = device->n_regs;
    s->id = trace_id_of(s);
    snprintf(s->name, sizeof s->name, "cs.%02x", s->id);
    for (size_t i = 0; i < r->core_sources.n; i++) {
        if (strcmp(r->core_sources.p[i].value, device->name))
            continue;
        const struct device *const core = device_named(r, r->core_sources.p[i].key);
        if (core)
            snprintf(s->core, sizeof s->core, "%.39s", core->type);
    }
    return TL_OK;
}

static int set_container(struct tl_setup *setup, const struct buffer *buffer, struct tl_fail *fail)
{
    if (!strcasecmp(buffer->format, "coresight"))
        return tl_setup_format(setup, "tpiu", fail);
    if (!strcasecmp(buffer->format, "dstream_coresight"))
        return tl_setup_format(setup, "tpiu,sync=dstream", fail);
    if (!strcasecmp(buffer->format, "source_data")) {
        setup->container = TL_CONTAINER_SINGLE;
        return TL_OK;
    }
    return tl_fail_set(fail, TL_UNSUPPORTED,
                       "trace.ini: buffer %s: format '%.40s' is not known; coresight, "
                       "dstream_coresight and source_data are",
                       buffer->name, buffer->format);
}

static int add_dumps(const struct reading *r, struct tl_setup *setup, struct tl_fail *fail)
{
    for (size_t i = 0; i < r->n_devices; i++) {
        for (size_t k = 0; k < r->devices[i].n_dumps; k++) {
            const struct dump *const d = &r->devices[i].dumps[k];
            if (!d->has_file || !d->has_address)
                return tl_fail_set(fail, TL_BAD, "%.60s: a dump section lacks file= or address=",
                                   r->device_files.p[i].value);
            char *path = NULL;
            if (asprintf(&path, "%s/%s", r->dir, d->file) < 0)
                return tl_fail_set(fail, TL_NOMEM, "out of memory");
            bool known = false;
            for (size_t m = 0; !known && m < setup->n_images; m++) {
                const struct tl_setup_image *const old = &setup->images[m];
                known = old->address == d->address && old->offset == d->offset &&
                        old->length == d->length && old->space == d->space &&
                        !strcmp(old->file, path);
            }
            int rc = TL_OK;
            if (!known && access(path, R_OK) != 0) {
                char text[320];
                snprintf(text, sizeof text, "%.200s: not there; code at 0x%llx cannot be followed",
                         path, (unsigned long long)d->address);
                if (r->warn)
                    r->warn(r->warn_context, text);
            } else if (!known) {
                rc = tl_setup_add_image_at(setup, path, d->address, d->offset, d->length, d->space);
                if (rc < 0)
                    rc = tl_fail_set(fail, TL_NOMEM, "out of memory");
            }
            free(path);
            if (rc < 0)
                return rc;
        }
    }
    return TL_OK;
}

static int make_buffer(const struct reading *r, const struct buffer *buffer,
                       struct tl_snapshot_buffer *out, struct tl_fail *fail)
{
    tl_setup_init(&out->setup);
    snprintf(out->name, sizeof out->name, "%s", buffer->name);
    if (!buffer->file[0])
        return tl_fail_set(fail, TL_BAD, "trace.ini: buffer %s has no file=", buffer->name);
    if (asprintf(&out->path, "%s/%s", r->dir, buffer->file) < 0) {
        out->path = NULL;
        return tl_fail_set(fail, TL_NOMEM, "out of memory");
    }
    struct tl_setup *const setup = &out->setup;
    int rc = set_container(setup, buffer, fail);
    for (size_t i = 0; rc == TL_OK && i < r->source_buffers.n; i++) {
        if (strcmp(r->source_buffers.p[i].value, buffer->name))
            continue;
        if (setup->container == TL_CONTAINER_SINGLE && setup->n_sources)
            break;
        const struct device *const device = device_named(r, r->source_buffers.p[i].key);
        if (device)
            rc = add_source(r, setup, device, fail);
    }
    if (rc == TL_OK && setup->container == TL_CONTAINER_SINGLE) {
        if (!setup->n_sources)
            return tl_fail_set(fail, TL_BAD, "trace.ini: no source feeds buffer %s", buffer->name);
        /* A source that is not supported is decoded all the same: to a message and a count. */
        const struct tl_source *const source = &setup->sources[0];
        const enum tl_protocol protocol =
            source->protocol ? (enum tl_protocol)source->protocol : TL_PROTO_ETM4;
        snprintf(setup->format, sizeof setup->format, "%s,id=0x%02x", tl_protocol_name(protocol),
                 source->id);
    }
    return rc == TL_OK ? add_dumps(r, setup, fail) : rc;
}

static void reading_fini(struct reading *r)
{
    for (size_t i = 0; i < r->n_devices; i++)
        free(r->devices[i].dumps);
    free(r->devices);
    free(r->buffers);
    free(r->device_files.p);
    free(r->source_buffers.p);
    free(r->core_sources.p);
}

int tl_snapshot_read(struct tl_snapshot *out, const char *dir,
                     void (*warn)(void *context, const char *text), void *context,
                     struct tl_fail *fail)
{
    *out = (struct tl_snapshot){0};
    struct reading r = {.dir = dir, .warn = warn, .warn_context = context};
    int rc = parse_file(&r, "snapshot.ini", on_snapshot_entry, fail);
    if (rc == TL_OK && !r.metadata[0])
        rc = tl_fail_set(fail, TL_BAD, "snapshot.ini: no metadata= in [trace]: there is no trace");
    if (rc == TL_OK)
        rc = read_devices(&r, fail);
    if (rc == TL_OK)
        rc = parse_file(&r, r.metadata, on_trace_entry, fail);
    if (rc == TL_OK && !r.n_buffers)
        rc = tl_fail_set(fail, TL_BAD, "%.60s: no buffers= in [trace_buffers]", r.metadata);
    if (rc == TL_OK) {
        out->buffers = calloc(r.n_buffers, sizeof *out->buffers);
        if (!out->buffers)
            rc = tl_fail_set(fail, TL_NOMEM, "out of memory");
    }
    for (size_t i = 0; rc == TL_OK && i < r.n_buffers; i++) {
        out->n_buffers++;
        rc = make_buffer(&r, &r.buffers[i], &out->buffers[i], fail);
    }
    reading_fini(&r);
    if (rc < 0)
        tl_snapshot_fini(out);
    return rc;
}

void tl_snapshot_fini(struct tl_snapshot *snapshot)
{
    for (size_t i = 0; i < snapshot->n_buffers; i++) {
        free(snapshot->buffers[i].path);
        tl_setup_fini(&snapshot->buffers[i].setup);
    }
    free(snapshot->buffers);
    *snapshot = (struct tl_snapshot){0};
}
