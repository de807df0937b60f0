/* SPDX-License-Identifier: MIT */
/*
 * Arm trace snapshots: a folder of INI files that describe the trace buffers, the trace sources
 * that fed them, their configuration, and memory contents.
 *
 * Source: "Arm Trace and Debug Snapshot file format 0v2", with the extensions used by existing
 * snapshots (buffer format dstream_coresight, memory spaces of Armv9).
 */
#include "base/args.h"
#include "image/image.h"
#include "import/bundle.h"
#include "setup/ini_text.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

enum { NAME = 64, PATH = 1024, MAX_FILE = 4 << 20, MAX_WARNINGS = 100 };

struct dump {
    char file[PATH];
    uint64_t address;
    uint64_t offset;
    uint64_t length;
    unsigned space;
    struct tl_image_context context;
    bool has_file;
    bool has_address;
    bool bad;
};

struct device {
    char name[NAME];
    char type[NAME];
    bool is_source; /* trace source */
    struct tl_register regs[TL_SETUP_REGS];
    size_t n_regs;
    struct dump *dumps;
    size_t n_dumps;
    size_t cap_dumps;
};

struct pair {
    char key[NAME];
    char value[PATH];
};

struct pairs {
    struct pair *p;
    size_t n;
    size_t cap;
};

struct buffer {
    char section[NAME];
    char name[NAME];
    char file[PATH];
    char format[NAME];
};

struct reading {
    const char *dir;
    void (*warn)(void *context, const char *text);
    void *warn_context;
    unsigned *warned; /* how often */
    char metadata[PATH];
    struct pairs device_files;
    struct device *devices;
    size_t n_devices;
    size_t cap_devices;
    struct buffer *buffers;
    size_t n_buffers;
    size_t cap_buffers;
    struct pairs source_buffers; /* source → buffer */
    struct pairs core_sources;   /* core → source */
    const char *file;            /* file being read */
};

/* A snapshot of garbage has a fault in each line: only the first ones are listed. */
TL_PRINTF(2, 3)
static void warn(const struct reading *r, const char *format, ...)
{
    char text[320];
    va_list args;
    if (!r->warn || *r->warned > MAX_WARNINGS)
        return;
    if ((*r->warned)++ == MAX_WARNINGS) {
        snprintf(text, sizeof text, "%.160s: it has more than %d faults; others are not listed",
                 r->dir, MAX_WARNINGS);
    } else {
        va_start(args, format);
        vsnprintf(text, sizeof text, format, args);
        va_end(args);
    }
    r->warn(r->warn_context, text);
}

static int add_pair(struct pairs *list, const char *key, const char *value, struct tl_fail *fail)
{
    if (tl_grow(&list->p, &list->cap, list->n + 1, sizeof *list->p) < 0)
        return tl_fail_set(fail, TL_NOMEM, "out of memory");
    struct pair *const pair = &list->p[list->n++];
    snprintf(pair->key, sizeof pair->key, "%.63s", key);
    snprintf(pair->value, sizeof pair->value, "%.*s", PATH - 1, value);
    return TL_OK;
}

/*
 * Snapshots also have comments after values, without a space before them, and text around a
 * section's brackets. Removes those, and lines that are neither a section nor a key; line ends are
 * kept, so that line numbers stay valid.
 */
static void clean(const struct reading *r, struct tl_buf *text)
{
    size_t out = 0;
    unsigned line = 0;
    for (size_t at = 0, end; at < text->n; at = end + 1) {
        const uint8_t *p = text->p + at;
        const uint8_t *const stop = memchr(p, '\n', text->n - at);
        end = stop ? (size_t)(stop - text->p) : text->n;
        size_t n = 0;
        while (n < end - at && p[n] && !strchr(";#\r", p[n]))
            n++;
        while (n && (p[n - 1] == ' ' || p[n - 1] == '\t'))
            n--;
        line++;
        const bool is_key = memchr(p, '=', n);
        const uint8_t *const section = memchr(p, '[', n);
        if (section && !is_key) {
            n -= (size_t)(section - p);
            p = section;
        } else if (n && !is_key) {
            warn(r, "%.100s: line %u is neither [section] nor key=value; left out", r->file, line);
            n = 0;
        }
        memmove(text->p + out, p, n);
        out += n;
        if (stop)
            text->p[out++] = '\n';
    }
    text->n = out;
}

/*
 * The path of a file that the snapshot names, in memory of its own; NULL: no memory. Snapshots
 * from Windows have '\\' between folders.
 */
static char *path_of(const struct reading *r, const char *name)
{
    char *path = NULL;
    if (asprintf(&path, "%s/%s", r->dir, name) < 0)
        return NULL;
    if (access(path, F_OK) == 0)
        return path;
    for (char *p = path + strlen(r->dir); (p = strchr(p, '\\'));)
        *p = '/';
    return path;
}

static int parse_file(struct reading *r, const char *name, tl_ini_entry *entry,
                      struct tl_fail *fail)
{
    char *const path = path_of(r, name);
    if (!path)
        return tl_fail_set(fail, TL_NOMEM, "out of memory");
    struct tl_buf text = {0};
    int rc = tl_buf_read_file(&text, path, MAX_FILE, fail);
    r->file = name;
    if (rc == TL_OK) {
        clean(r, &text);
        rc = tl_ini_parse((const char *)text.p, text.n, TL_INI_LOOSE, entry, r, NULL, fail);
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

/* Copy a value, or an element of a list, without quotes and white space around it. */
static void take_text(char *out, size_t room, const char *value, size_t n)
{
    while (n && strchr(" \t\"'", *value)) {
        value++;
        n--;
    }
    while (n && strchr(" \t\"'", value[n - 1]))
        n--;
    snprintf(out, room, "%.*s", (int)(n < room ? n : room - 1), value);
}

/* Copy the next element of a comma-separated list to `out`; false: none. Empty ones are skipped. */
static bool next_of_list(const char **list, char *out, size_t room)
{
    while (**list) {
        const size_t n = strcspn(*list, ",");
        take_text(out, room, *list, n);
        *list += n + ((*list)[n] == ',');
        if (*out)
            return true;
    }
    return false;
}

/* Add pairs: a source feeds one buffer, a core several sources; lists are accepted for both. */
static int take_pairs(struct pairs *list, const char *key, const char *value, struct tl_fail *fail)
{
    char name[PATH];
    int rc = TL_OK;
    while (rc == TL_OK && next_of_list(&value, name, sizeof name))
        rc = add_pair(list, key, name, fail);
    return rc;
}

/* A number is decimal, hexadecimal or, with a leading 0, octal. */
static int parse_number(const char *text, uint64_t *out)
{
    const bool octal = text[0] == '0' && text[1] && strspn(text, "01234567") == strlen(text);
    if (!octal)
        return tl_number_parse(text, out);
    errno = 0;
    *out = strtoull(text, NULL, 8);
    return errno ? TL_USAGE : TL_OK;
}

/* ---- snapshot.ini --------------------------------------------------------------------------- */

static int on_snapshot_entry(void *context, const char *section, bool begins, const char *key,
                             const char *value, struct tl_fail *fail)
{
    struct reading *const r = context;
    if (!strcasecmp(section, "device_list"))
        return take_pairs(&r->device_files, key, value, fail);
    if (!strcasecmp(section, "trace") && !strcasecmp(key, "metadata"))
        take_text(r->metadata, sizeof r->metadata, value, strlen(value));
    return TL_OK;
}

/* ---- device files ---------------------------------------------------------------------------- */

/*
 * Keep a register if it describes a trace source. Of a core's own, those that say where it stopped
 * and where its vectors are. The name is followed by parentheses with number and size.
 */
static void take_register(const struct reading *r, struct device *device, const char *key,
                          const char *value)
{
    static const char *const wanted[] = {
        "TRCCONFIGR", "TRCTRACEIDR", "TRCIDR",  "TRCDEVARCH",       "TRCAUTHSTATUS", "STMTCSR",
        "ITMTCR",     "ETMCR",       "ETMCCER", "CONTROL_REGISTER", "ETMIDR",        "ETMTRACEIDR",
        "POSITION",   "MASTER",      "BASE",    "AWIDTH",           "RAM",           "MTB_",
        "R15",        "PC",          "VTOR",
    };
    char name[sizeof device->regs[0].name];
    snprintf(name, sizeof name, "%.*s", (int)strcspn(key, "("), key);
    bool keep = false;
    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++)
        keep |= !strncasecmp(name, wanted[i], strlen(wanted[i]));
    if (!keep || device->n_regs == TL_SETUP_REGS)
        return;
    char text[40];
    uint64_t number;
    take_text(text, sizeof text, value, strlen(value));
    if (parse_number(text, &number) < 0) {
        warn(r, "%.100s: register %.40s: '%.40s' is not a number; left out", r->file, name, text);
        return;
    }
    struct tl_register *const reg = &device->regs[device->n_regs++];
    memcpy(reg->name, name, sizeof reg->name);
    reg->value = number;
}

static void take_dump_key(const struct reading *r, struct dump *dump, const char *key,
                          const char *value)
{
    char text[sizeof dump->file];
    take_text(text, sizeof text, value, strlen(value));
    if (!strcasecmp(key, "file")) {
        memcpy(dump->file, text, sizeof text);
        dump->has_file = *text;
        return;
    }
    if (!strcasecmp(key, "space")) {
        const int space = tl_space_parse(text);
        if (space >= 0)
            dump->space = (unsigned)space;
        else
            warn(r, "%.100s: memory space '%.40s' is not known; taken as any", r->file, text);
        return;
    }
    uint64_t number = 0;
    const bool is_number = parse_number(text, &number) == TL_OK;
    if (!strcasecmp(key, "address")) {
        dump->address = number;
        dump->has_address = true;
    } else if (!strcasecmp(key, "offset")) {
        dump->offset = number;
    } else if (!strcasecmp(key, "length")) {
        dump->length = number ? number : UINT64_MAX;
    } else if (!strcasecmp(key, "context")) {
        dump->context.context_id = number;
        dump->context.has_context_id = true;
    } else if (!strcasecmp(key, "vmid")) {
        dump->context.vmid = number;
        dump->context.has_vmid = true;
    } else {
        warn(r, "%.100s: key '%.40s' is not known in a dump section", r->file, key);
        return;
    }
    dump->bad |= !is_number;
}

static int on_device_entry(void *context, const char *section, bool begins, const char *key,
                           const char *value, struct tl_fail *fail)
{
    struct reading *const r = context;
    struct device *const device = &r->devices[r->n_devices - 1];
    if (!strncasecmp(section, "dump", 4)) {
        if (begins) {
            if (tl_grow(&device->dumps, &device->cap_dumps, device->n_dumps + 1,
                        sizeof *device->dumps) < 0)
                return tl_fail_set(fail, TL_NOMEM, "out of memory");
            device->dumps[device->n_dumps++] =
                (struct dump){.length = UINT64_MAX, .space = TL_SPACE_ANY};
        }
        take_dump_key(r, &device->dumps[device->n_dumps - 1], key, value);
        return TL_OK;
    }
    if (!strcasecmp(section, "regs"))
        take_register(r, device, key, value);
    if (strcasecmp(section, "device"))
        return TL_OK;
    char text[NAME];
    take_text(text, sizeof text, value, strlen(value));
    if (!strcasecmp(key, "name"))
        memcpy(device->name, text, sizeof text);
    else if (!strcasecmp(key, "type"))
        memcpy(device->type, text, sizeof text);
    else if (!strcasecmp(key, "class"))
        device->is_source = !strcasecmp(text, "trace_source");
    return TL_OK;
}

static int read_devices(struct reading *r, struct tl_fail *fail)
{
    for (size_t i = 0; i < r->device_files.n; i++) {
        if (tl_grow(&r->devices, &r->cap_devices, r->n_devices + 1, sizeof *r->devices) < 0)
            return tl_fail_set(fail, TL_NOMEM, "out of memory");
        r->devices[r->n_devices++] = (struct device){0};
        struct tl_fail why = {0};
        const int rc = parse_file(r, r->device_files.p[i].value, on_device_entry, &why);
        if (rc == TL_NOMEM)
            return tl_fail_set(fail, TL_NOMEM, "out of memory");
        if (rc < 0)
            warn(r, "%.200s; this device is left out", why.text);
    }
    return TL_OK;
}

/* Can this dump, of the file `path`, be mapped? If not, reports why. A length beyond the file's end
 * is truncated. */
static bool is_there(const struct reading *r, const char *path, struct dump *d)
{
    struct stat st;
    if (access(path, R_OK) != 0 || stat(path, &st) != 0) {
        warn(r, "%.200s: not there; code at 0x%llx cannot be followed", path,
             (unsigned long long)d->address);
        return false;
    }
    if (d->offset > (uint64_t)st.st_size) {
        warn(r, "%.200s: has no byte 0x%llx; code at 0x%llx cannot be followed", path,
             (unsigned long long)d->offset, (unsigned long long)d->address);
        return false;
    }
    const uint64_t rest = (uint64_t)st.st_size - d->offset;
    if (d->length != UINT64_MAX && d->length > rest)
        d->length = rest;
    return true;
}

static int drop_dumps(struct reading *r, struct tl_fail *fail)
{
    for (size_t i = 0; i < r->n_devices; i++) {
        struct device *const device = &r->devices[i];
        size_t kept = 0;
        for (size_t k = 0; k < device->n_dumps; k++) {
            struct dump *const d = &device->dumps[k];
            if (!d->has_file || !d->has_address || d->bad) {
                warn(r,
                     "%.60s: a dump section lacks file= or address=, or a number is none; left out",
                     device->name);
                continue;
            }
            char *const path = path_of(r, d->file);
            if (!path)
                return tl_fail_set(fail, TL_NOMEM, "out of memory");
            if (is_there(r, path, d))
                device->dumps[kept++] = *d;
            free(path);
        }
        device->n_dumps = kept;
    }
    return TL_OK;
}

/* ---- trace.ini ------------------------------------------------------------------------------- */

static struct buffer *buffer_of_section(struct reading *r, const char *section)
{
    for (size_t i = 0; i < r->n_buffers; i++)
        if (!strcasecmp(r->buffers[i].section, section))
            return &r->buffers[i];
    return NULL;
}

static int take_buffer_list(struct reading *r, const char *value, struct tl_fail *fail)
{
    char name[NAME];
    while (next_of_list(&value, name, sizeof name)) {
        if (tl_grow(&r->buffers, &r->cap_buffers, r->n_buffers + 1, sizeof *r->buffers) < 0)
            return tl_fail_set(fail, TL_NOMEM, "out of memory");
        struct buffer *const buffer = &r->buffers[r->n_buffers++];
        *buffer = (struct buffer){0};
        memcpy(buffer->section, name, sizeof name);
        memcpy(buffer->name, name, sizeof name);
    }
    return TL_OK;
}

static int on_trace_entry(void *context, const char *section, bool begins, const char *key,
                          const char *value, struct tl_fail *fail)
{
    struct reading *const r = context;
    if (!strcasecmp(section, "trace_buffers"))
        return !strcasecmp(key, "buffers") ? take_buffer_list(r, value, fail) : TL_OK;
    if (!strcasecmp(section, "source_buffers"))
        return take_pairs(&r->source_buffers, key, value, fail);
    if (!strcasecmp(section, "core_trace_sources"))
        return take_pairs(&r->core_sources, key, value, fail);
    struct buffer *const buffer = buffer_of_section(r, section);
    if (!buffer)
        return TL_OK;
    const size_t n = strlen(value);
    if (!strcasecmp(key, "name"))
        take_text(buffer->name, sizeof buffer->name, value, n);
    else if (!strcasecmp(key, "file"))
        snprintf(buffer->file, sizeof buffer->file, "%.*s", PATH - 1, value);
    else if (!strcasecmp(key, "format"))
        take_text(buffer->format, sizeof buffer->format, value, n);
    return TL_OK;
}

/* ---- captures -------------------------------------------------------------------------------- */

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
static const struct device *core_of(const struct reading *r, const char *source)
{
    for (size_t i = 0; i < r->core_sources.n; i++)
        if (!strcmp(r->core_sources.p[i].value, source))
            return device_named(r, r->core_sources.p[i].key);
    return NULL;
}

/* Where the vector table is; a buffer of branches ends where its core stopped. */
static void take_core(struct tl_source *s, const struct device *core)
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

static int add_source(const struct reading *r, struct tl_setup *setup, const struct device *device,
                      struct tl_fail *fail)
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
    const struct device *const core = core_of(r, device->name);
    if (core)
        take_core(s, core);
    if (core)
        snprintf(s->core, sizeof s->core, "%.39s", core->type);
    if (s->protocol == TL_PROTO_NONE)
        warn(r,
             "source %s: type '%s' is not supported; its bytes are counted, other sources are "
             "decoded",
             device->name, device->type);
    return TL_OK;
}

static int set_container(const struct reading *r, struct tl_setup *setup,
                         const struct buffer *buffer, struct tl_fail *fail)
{
    if (!strcasecmp(buffer->format, "source_data")) {
        setup->container = TL_CONTAINER_SINGLE;
        return TL_OK;
    }
    if (!strcasecmp(buffer->format, "dstream_coresight"))
        return tl_setup_format(setup, "tpiu,sync=dstream", fail);
    if (strcasecmp(buffer->format, "coresight"))
        warn(r,
             "buffer %s: format '%.40s' is none of coresight, dstream_coresight and source_data; "
             "taken for coresight",
             buffer->name, buffer->format);
    return tl_setup_format(setup, "tpiu", fail);
}

static int add_dump(const struct reading *r, struct tl_setup *setup, const struct dump *d,
                    struct tl_fail *fail)
{
    char *const path = path_of(r, d->file);
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

static int add_dumps_of(const struct reading *r, struct tl_setup *setup,
                        const struct device *device, struct tl_fail *fail)
{
    int rc = TL_OK;
    for (size_t k = 0; rc == TL_OK && k < device->n_dumps; k++)
        rc = add_dump(r, setup, &device->dumps[k], fail);
    return rc;
}

/* Add the dumps of the `sources`' cores, then all others, in reverse precedence: in an image the
 * last region added takes precedence, but in a snapshot the first one does. */
static int add_dumps(const struct reading *r, struct tl_setup *setup,
                     const struct device *const *sources, size_t n, struct tl_fail *fail)
{
    int rc = TL_OK;
    for (size_t i = 0; rc == TL_OK && i < n; i++) {
        const struct device *const core = core_of(r, sources[i]->name);
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
static bool feeds(const struct reading *r, const struct device *device, const struct buffer *buffer)
{
    for (size_t i = 0; i < r->source_buffers.n; i++) {
        const struct pair *const p = &r->source_buffers.p[i];
        if (!strcmp(p->key, device->name) &&
            (!strcmp(p->value, buffer->name) || !strcmp(p->value, buffer->section)))
            return true;
    }
    return !r->source_buffers.n && r->n_buffers == 1 && device->is_source;
}

static int by_name(const void *a, const void *b)
{
    return strcmp((*(const struct device *const *)a)->name,
                  (*(const struct device *const *)b)->name);
}

static int add_sources(const struct reading *r, const struct buffer *buffer, struct tl_setup *setup,
                       struct tl_fail *fail)
{
    const struct device **const sources = calloc(r->n_devices + 1, sizeof(struct device *));
    if (!sources)
        return tl_fail_set(fail, TL_NOMEM, "out of memory");
    size_t n = 0;
    for (size_t i = 0; i < r->n_devices; i++)
        if (feeds(r, &r->devices[i], buffer))
            sources[n++] = &r->devices[i];
    qsort(sources, n, sizeof(struct device *), by_name);
    if (setup->container == TL_CONTAINER_SINGLE && n > 1) {
        warn(r, "buffer %s is of one source, but %zu feed it; %s is taken", buffer->name, n,
             sources[0]->name);
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
static int add_files(const struct reading *r, const char *files, struct tl_bundle_capture *out,
                     struct tl_fail *fail)
{
    static const char blank[] = " \t,\"'";
    int rc = TL_OK;
    for (files += strspn(files, blank); rc == TL_OK && *files; files += strspn(files, blank)) {
        char name[sizeof((struct buffer *)0)->file];
        const size_t n = strcspn(files, ",");
        take_text(name, sizeof name, files, n);
        files += n;
        char *const path = path_of(r, name);
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

static int make_buffer(const struct reading *r, const struct buffer *buffer,
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

int tl_snapshot_read(struct tl_bundle *out, const char *dir,
                     void (*report)(void *context, const char *text), void *context,
                     struct tl_fail *fail)
{
    *out = (struct tl_bundle){0};
    unsigned warned = 0;
    struct reading r = {.dir = dir, .warn = report, .warn_context = context, .warned = &warned};
    int rc = parse_file(&r, "snapshot.ini", on_snapshot_entry, fail);
    if (rc == TL_OK && !r.metadata[0])
        rc = tl_fail_set(fail, TL_BAD, "snapshot.ini: no metadata= in [trace]: there is no trace");
    if (rc == TL_OK)
        rc = read_devices(&r, fail);
    if (rc == TL_OK)
        rc = drop_dumps(&r, fail);
    if (rc == TL_OK)
        rc = parse_file(&r, r.metadata, on_trace_entry, fail);
    for (size_t i = 0; rc == TL_OK && i < r.source_buffers.n; i++)
        if (!device_named(&r, r.source_buffers.p[i].key))
            warn(&r, "source %s: no device file describes it; left out", r.source_buffers.p[i].key);
    if (rc == TL_OK && !r.n_buffers)
        rc = tl_fail_set(fail, TL_BAD, "%.60s: no buffers= in [trace_buffers]", r.metadata);
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
            warn(&r, "%.60s: %.200s; this buffer is left out", r.metadata, why.text);
    }
    reading_fini(&r);
    if (rc < 0)
        tl_bundle_fini(out);
    return rc;
}
