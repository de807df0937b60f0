/* SPDX-License-Identifier: MIT */
/*
 * Files of a snapshot are read in the order in which they name each other: snapshot.ini, the
 * devices that it lists, the description of the trace. Faults in them cost as little as possible.
 */
#include "import/snapshot_files.h"

#include "base/args.h"
#include "setup/ini_text.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MAX_FILE = 4 << 20, MAX_WARNINGS = 100 };

/* A snapshot of garbage has a fault in each line: only the first ones are listed. */
void tl_snapshot_warn(struct tl_snapshot *r, const char *format, ...)
{
    char text[320];
    va_list args;
    if (!r->warn || r->warned > MAX_WARNINGS)
        return;
    if (r->warned++ == MAX_WARNINGS) {
        snprintf(text, sizeof text, "%.160s: it has more than %d faults; others are not listed",
                 r->dir, MAX_WARNINGS);
    } else {
        va_start(args, format);
        vsnprintf(text, sizeof text, format, args);
        va_end(args);
    }
    r->warn(r->warn_context, text);
}

static int add_pair(struct tl_snapshot_pairs *list, const char *key, const char *value,
                    struct tl_fail *fail)
{
    if (tl_grow(&list->p, &list->cap, list->n + 1, sizeof *list->p) < 0)
        return tl_fail_set(fail, TL_NOMEM, "out of memory");
    struct tl_snapshot_pair *const pair = &list->p[list->n++];
    snprintf(pair->key, sizeof pair->key, "%.63s", key);
    snprintf(pair->value, sizeof pair->value, "%.*s", TL_SNAPSHOT_PATH - 1, value);
    return TL_OK;
}

/*
 * Snapshots also have comments after values, without a space before them, and text around a
 * section's brackets. Removes those, and lines that are neither a section nor a key; line ends are
 * kept, so that line numbers stay valid.
 */
static void clean(struct tl_snapshot *r, struct tl_buf *text)
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
            tl_snapshot_warn(r, "%.100s: line %u is neither [section] nor key=value; left out",
                             r->file, line);
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
char *tl_snapshot_path(const struct tl_snapshot *r, const char *name)
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

static int parse_file(struct tl_snapshot *r, const char *name, tl_ini_entry *entry,
                      struct tl_fail *fail)
{
    char *const path = tl_snapshot_path(r, name);
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
void tl_snapshot_text(char *out, size_t room, const char *value, size_t n)
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
        tl_snapshot_text(out, room, *list, n);
        *list += n + ((*list)[n] == ',');
        if (*out)
            return true;
    }
    return false;
}

/* Add pairs: a source feeds one buffer, a core several sources; lists are accepted for both. */
static int take_pairs(struct tl_snapshot_pairs *list, const char *key, const char *value,
                      struct tl_fail *fail)
{
    char name[TL_SNAPSHOT_PATH];
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
    struct tl_snapshot *const r = context;
    if (!strcasecmp(section, "device_list"))
        return take_pairs(&r->device_files, key, value, fail);
    if (!strcasecmp(section, "trace") && !strcasecmp(key, "metadata"))
        tl_snapshot_text(r->metadata, sizeof r->metadata, value, strlen(value));
    return TL_OK;
}

/* ---- device files ---------------------------------------------------------------------------- */

/*
 * Keep a register if it describes a trace source. Of a core's own, those that say where it stopped
 * and where its vectors are. The name is followed by parentheses with number and size.
 */
static void take_register(struct tl_snapshot *r, struct tl_snapshot_device *device, const char *key,
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
    tl_snapshot_text(text, sizeof text, value, strlen(value));
    if (parse_number(text, &number) < 0) {
        tl_snapshot_warn(r, "%.100s: register %.40s: '%.40s' is not a number; left out", r->file,
                         name, text);
        return;
    }
    struct tl_register *const reg = &device->regs[device->n_regs++];
    memcpy(reg->name, name, sizeof reg->name);
    reg->value = number;
}

static void take_dump_key(struct tl_snapshot *r, struct tl_snapshot_dump *dump, const char *key,
                          const char *value)
{
    char text[sizeof dump->file];
    tl_snapshot_text(text, sizeof text, value, strlen(value));
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
            tl_snapshot_warn(r, "%.100s: memory space '%.40s' is not known; taken as any", r->file,
                             text);
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
        tl_snapshot_warn(r, "%.100s: key '%.40s' is not known in a dump section", r->file, key);
        return;
    }
    dump->bad |= !is_number;
}

static int on_device_entry(void *context, const char *section, bool begins, const char *key,
                           const char *value, struct tl_fail *fail)
{
    struct tl_snapshot *const r = context;
    struct tl_snapshot_device *const device = &r->devices[r->n_devices - 1];
    if (!strncasecmp(section, "dump", 4)) {
        if (begins) {
            if (tl_grow(&device->dumps, &device->cap_dumps, device->n_dumps + 1,
                        sizeof *device->dumps) < 0)
                return tl_fail_set(fail, TL_NOMEM, "out of memory");
            device->dumps[device->n_dumps++] =
                (struct tl_snapshot_dump){.length = UINT64_MAX, .space = TL_SPACE_ANY};
        }
        take_dump_key(r, &device->dumps[device->n_dumps - 1], key, value);
        return TL_OK;
    }
    if (!strcasecmp(section, "regs"))
        take_register(r, device, key, value);
    if (strcasecmp(section, "device"))
        return TL_OK;
    char text[TL_SNAPSHOT_NAME];
    tl_snapshot_text(text, sizeof text, value, strlen(value));
    if (!strcasecmp(key, "name"))
        memcpy(device->name, text, sizeof text);
    else if (!strcasecmp(key, "type"))
        memcpy(device->type, text, sizeof text);
    else if (!strcasecmp(key, "class"))
        device->is_source = !strcasecmp(text, "trace_source");
    return TL_OK;
}

static int read_devices(struct tl_snapshot *r, struct tl_fail *fail)
{
    for (size_t i = 0; i < r->device_files.n; i++) {
        if (tl_grow(&r->devices, &r->cap_devices, r->n_devices + 1, sizeof *r->devices) < 0)
            return tl_fail_set(fail, TL_NOMEM, "out of memory");
        r->devices[r->n_devices++] = (struct tl_snapshot_device){0};
        struct tl_fail why = {0};
        const int rc = parse_file(r, r->device_files.p[i].value, on_device_entry, &why);
        if (rc == TL_NOMEM)
            return tl_fail_set(fail, TL_NOMEM, "out of memory");
        if (rc < 0)
            tl_snapshot_warn(r, "%.200s; this device is left out", why.text);
    }
    return TL_OK;
}

/* Can this dump, of the file `path`, be mapped? If not, reports why. A length beyond the file's end
 * is truncated. */
static bool is_there(struct tl_snapshot *r, const char *path, struct tl_snapshot_dump *d)
{
    struct stat st;
    if (access(path, R_OK) != 0 || stat(path, &st) != 0) {
        tl_snapshot_warn(r, "%.200s: not there; code at 0x%llx cannot be followed", path,
                         (unsigned long long)d->address);
        return false;
    }
    if (d->offset > (uint64_t)st.st_size) {
        tl_snapshot_warn(r, "%.200s: has no byte 0x%llx; code at 0x%llx cannot be followed", path,
                         (unsigned long long)d->offset, (unsigned long long)d->address);
        return false;
    }
    const uint64_t rest = (uint64_t)st.st_size - d->offset;
    if (d->length != UINT64_MAX && d->length > rest)
        d->length = rest;
    return true;
}

static int drop_dumps(struct tl_snapshot *r, struct tl_fail *fail)
{
    for (size_t i = 0; i < r->n_devices; i++) {
        struct tl_snapshot_device *const device = &r->devices[i];
        size_t kept = 0;
        for (size_t k = 0; k < device->n_dumps; k++) {
            struct tl_snapshot_dump *const d = &device->dumps[k];
            if (!d->has_file || !d->has_address || d->bad) {
                tl_snapshot_warn(
                    r,
                    "%.60s: a dump section lacks file= or address=, or a number is none; left out",
                    device->name);
                continue;
            }
            char *const path = tl_snapshot_path(r, d->file);
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

static struct tl_snapshot_buffer *buffer_of_section(struct tl_snapshot *r, const char *section)
{
    for (size_t i = 0; i < r->n_buffers; i++)
        if (!strcasecmp(r->buffers[i].section, section))
            return &r->buffers[i];
    return NULL;
}

static int take_buffer_list(struct tl_snapshot *r, const char *value, struct tl_fail *fail)
{
    char name[TL_SNAPSHOT_NAME];
    while (next_of_list(&value, name, sizeof name)) {
        if (tl_grow(&r->buffers, &r->cap_buffers, r->n_buffers + 1, sizeof *r->buffers) < 0)
            return tl_fail_set(fail, TL_NOMEM, "out of memory");
        struct tl_snapshot_buffer *const buffer = &r->buffers[r->n_buffers++];
        *buffer = (struct tl_snapshot_buffer){0};
        memcpy(buffer->section, name, sizeof name);
        memcpy(buffer->name, name, sizeof name);
    }
    return TL_OK;
}

static int on_trace_entry(void *context, const char *section, bool begins, const char *key,
                          const char *value, struct tl_fail *fail)
{
    struct tl_snapshot *const r = context;
    if (!strcasecmp(section, "trace_buffers"))
        return !strcasecmp(key, "buffers") ? take_buffer_list(r, value, fail) : TL_OK;
    if (!strcasecmp(section, "source_buffers"))
        return take_pairs(&r->source_buffers, key, value, fail);
    if (!strcasecmp(section, "core_trace_sources"))
        return take_pairs(&r->core_sources, key, value, fail);
    struct tl_snapshot_buffer *const buffer = buffer_of_section(r, section);
    if (!buffer)
        return TL_OK;
    const size_t n = strlen(value);
    if (!strcasecmp(key, "name"))
        tl_snapshot_text(buffer->name, sizeof buffer->name, value, n);
    else if (!strcasecmp(key, "file"))
        snprintf(buffer->file, sizeof buffer->file, "%.*s", TL_SNAPSHOT_PATH - 1, value);
    else if (!strcasecmp(key, "format"))
        tl_snapshot_text(buffer->format, sizeof buffer->format, value, n);
    return TL_OK;
}

/* ---- all of it ------------------------------------------------------------------------------- */

const struct tl_snapshot_device *tl_snapshot_device(const struct tl_snapshot *r, const char *name)
{
    for (size_t i = 0; i < r->n_devices; i++)
        if (!strcmp(r->devices[i].name, name))
            return &r->devices[i];
    return NULL;
}

int tl_snapshot_files_read(struct tl_snapshot *r, struct tl_fail *fail)
{
    int rc = parse_file(r, "snapshot.ini", on_snapshot_entry, fail);
    if (rc == TL_OK && !r->metadata[0])
        rc = tl_fail_set(fail, TL_BAD, "snapshot.ini: no metadata= in [trace]: there is no trace");
    if (rc == TL_OK)
        rc = read_devices(r, fail);
    if (rc == TL_OK)
        rc = drop_dumps(r, fail);
    if (rc == TL_OK)
        rc = parse_file(r, r->metadata, on_trace_entry, fail);
    for (size_t i = 0; rc == TL_OK && i < r->source_buffers.n; i++)
        if (!tl_snapshot_device(r, r->source_buffers.p[i].key))
            tl_snapshot_warn(r, "source %s: no device file describes it; left out",
                             r->source_buffers.p[i].key);
    if (rc == TL_OK && !r->n_buffers)
        rc = tl_fail_set(fail, TL_BAD, "%.60s: no buffers= in [trace_buffers]", r->metadata);
    return rc;
}

void tl_snapshot_fini(struct tl_snapshot *r)
{
    for (size_t i = 0; i < r->n_devices; i++)
        free(r->devices[i].dumps);
    free(r->devices);
    free(r->buffers);
    free(r->device_files.p);
    free(r->source_buffers.p);
    free(r->core_sources.p);
}
