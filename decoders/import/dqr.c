/* SPDX-License-Identifier: MIT */
/*
 * Each setting becomes what a user would write by hand: options of the format, keys of a source for
 * each number that SRC can have, and images: programs, the pages of a kernel that were dumped one
 * file each, and what a process had mapped. A program of a process is bound to its number only if
 * the trace tells which process runs, since else nothing would be followed.
 */
#include "import/dqr.h"

#include "base/args.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

enum {
    LOOKED_AT = 8192,          /* bytes in which the trace is named */
    MAX_TEXT = 4 << 20,        /* bytes of settings, and of a list of mappings */
    MAX_TRACE_READ = 16 << 20, /* bytes of trace in which processes are looked for */
    MAX_SRC_BITS = 12,
    OWNERSHIP = 2 << 2, /* first byte of a message that tells the process */
    END_OF_MESSAGE = 3  /* MSEO, the lower bits of a byte */
};

struct reading {
    struct tl_bundle_capture *capture;
    char folder[2048]; /* of the settings, with a slash; "": the current one */
    const char *symfs;
    char trace[4096], vdso[4096], pages[4096];
    uint64_t src_bits, bits, address_bits, time_bits, frequency;
    bool reports_returns; /* implicit returns are off */
    bool tells_process;   /* the trace does */
    void (*warn)(void *context, const char *text);
    void *context;
    struct tl_fail *fail;
};

static TL_PRINTF(2, 3) void report(const struct reading *r, const char *format, ...)
{
    char text[4400];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (r->warn)
        r->warn(r->context, text);
}

static int set_nomem(struct reading *r)
{
    return tl_fail_set(r->fail, TL_NOMEM, "out of memory");
}

/* ---- text ------------------------------------------------------------------------------------ */

/* Cut spaces off both ends. */
static char *trim(char *text)
{
    text += strspn(text, " \t\r");
    size_t n = strlen(text);
    while (n > 0 && strchr(" \t\r", text[n - 1]))
        n--;
    text[n] = 0;
    return text;
}

/* A line's tag and value, both without spaces around them. False: it has none. */
static bool split_line(char *line, char **tag, char **value)
{
    line[strcspn(line, "#")] = 0;
    char *const sign = strchr(line, '=');
    if (!sign)
        return false;
    *sign = 0;
    *tag = trim(line);
    *value = trim(sign + 1);
    return **tag != 0;
}

bool tl_dqr_is(const char *path)
{
    char text[LOOKED_AT + 1], *rest = text, *line, *tag, *value;
    struct stat st;
    FILE *const file = stat(path, &st) == 0 && S_ISREG(st.st_mode) ? fopen(path, "re") : NULL;
    if (!file)
        return false;
    const size_t n = fread(text, 1, LOOKED_AT, file);
    fclose(file);
    text[n] = 0;
    if (strlen(text) != n)
        return false;
    while ((line = strsep(&rest, "\n")))
        if (split_line(line, &tag, &value) && !strcasecmp(tag, "rtd") && *value)
            return true;
    return false;
}

static bool is_there(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISREG(st.st_mode);
}

/* The path of a file that the settings name. */
static void find_path(const struct reading *r, const char *name, char out[static 4096])
{
    snprintf(out, 4096, "%s%.2000s", *name == '/' ? "" : r->folder, name);
}

/* The file that was `name` on the traced machine: below the given root, else, since it was copied
 * from there, below or in the folder of the settings. This machine's own is another one. */
static bool find_copy(const struct reading *r, const char *name, char out[static 4096])
{
    const char *const slash = strrchr(name, '/');
    if (r->symfs)
        snprintf(out, 4096, "%.2000s/%.2000s", r->symfs, name);
    if (r->symfs && is_there(out))
        return true;
    snprintf(out, 4096, "%s%.2000s", r->folder, name + strspn(name, "/"));
    if (is_there(out))
        return true;
    snprintf(out, 4096, "%s%.2000s", r->folder, slash ? slash + 1 : name);
    return is_there(out);
}

/* ---- code ------------------------------------------------------------------------------------ */

static struct tl_setup_image *add_image(struct reading *r, const char *file, uint64_t address,
                                        uint64_t offset, uint64_t length)
{
    struct tl_setup *const setup = &r->capture->setup;
    return tl_setup_add_image_at(setup, file, address, offset, length, TL_SPACE_ANY) == TL_OK
               ? &setup->images[setup->n_images - 1]
               : NULL;
}

/* FILE:BEGIN-END: the bytes of memory from BEGIN on. */
static int take_memory(struct reading *r, char *value)
{
    char path[4096];
    uint64_t begin, end;
    char *const colon = strrchr(value, ':'), *const dash = colon ? strchr(colon, '-') : NULL;
    if (!dash)
        return tl_fail_set(r->fail, TL_BAD, "image: FILE:BEGIN-END is expected");
    *colon = *dash = 0;
    if (tl_number_parse(trim(colon + 1), &begin) < 0 || tl_number_parse(trim(dash + 1), &end) < 0 ||
        end < begin)
        return tl_fail_set(r->fail, TL_BAD, "image: FILE:BEGIN-END is expected");
    find_path(r, trim(value), path);
    return add_image(r, path, begin, 0, UINT64_MAX) ? TL_OK : set_nomem(r);
}

/* Map code of a process. */
static int add_mapping(struct reading *r, uint64_t pid, const char *name, uint64_t begin,
                       uint64_t end, uint64_t offset)
{
    char path[4096];
    const bool is_vdso = !strcmp(name, "[vdso]");
    snprintf(path, sizeof path, "%s", r->vdso);
    if (is_vdso ? !r->vdso[0] : !find_copy(r, name, path)) {
        report(r, "no code of %s; %s", name,
               is_vdso ? "vdso = FILE names a copy of it"
                       : "copy the file beside the settings, or give --symfs DIR");
        return TL_OK;
    }
    struct tl_setup_image *const image = add_image(r, path, begin, offset, end - begin);
    if (!image || tl_setup_image_path(image, name) < 0)
        return set_nomem(r);
    if (r->tells_process)
        image->context = (struct tl_image_context){.context_id = pid, .has_context_id = true};
    return TL_OK;
}

/* A line of /proc/PID/maps: BEGIN-END rwxp OFFSET DEVICE INODE NAME. */
static int take_mapping(struct reading *r, uint64_t pid, const char *line)
{
    uint64_t begin, end, offset;
    char rights[5];
    int at = 0;
    if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s %" SCNx64 " %*s %*s %n", &begin, &end, rights,
               &offset, &at) != 4 ||
        at == 0 || end <= begin || !strchr(rights, 'x') || (line[at] != '/' && line[at] != '['))
        return TL_OK;
    return add_mapping(r, pid, line + at, begin, end, offset);
}

/* PID,FILE: what the process had mapped. */
static int take_map(struct reading *r, char *value)
{
    char path[4096], *rest, *line;
    uint64_t pid;
    struct tl_buf text = {0};
    char *const comma = strchr(value, ',');
    if (comma)
        *comma = 0;
    if (!comma || tl_number_parse(trim(value), &pid) < 0)
        return tl_fail_set(r->fail, TL_BAD, "map: PID,FILE is expected");
    find_path(r, trim(comma + 1), path);
    int rc = tl_buf_read_file(&text, path, MAX_TEXT, r->fail);
    if (rc == TL_OK && tl_buf_add(&text, "", 1) < 0)
        rc = set_nomem(r);
    rest = (char *)text.p;
    while (rc == TL_OK && (line = strsep(&rest, "\n")))
        rc = take_mapping(r, pid, trim(line));
    tl_buf_fini(&text);
    return rc;
}

/* Pages of the kernel: each file's name ends with its address, kmem.0xffffffff80005000. */
static int add_pages(struct reading *r)
{
    DIR *const dir = opendir(r->pages);
    const struct dirent *e;
    size_t n = 0;
    int rc = TL_OK;
    while (rc == TL_OK && dir && (e = readdir(dir))) {
        char path[4096];
        uint64_t address;
        const char *const dot = strrchr(e->d_name, '.');
        if (!dot || dot == e->d_name || tl_number_parse(dot + 1, &address) < 0)
            continue;
        snprintf(path, sizeof path, "%.2000s/%.300s", r->pages, e->d_name);
        rc = add_image(r, path, address, 0, UINT64_MAX) ? TL_OK : set_nomem(r);
        n++;
    }
    if (dir)
        closedir(dir);
    if (n == 0)
        report(r, "%.2000s: no pages of the kernel (kmempath)", r->pages);
    return rc;
}

/* ---- settings -------------------------------------------------------------------------------- */

/* The number of a tag, if it is one. NULL: it is another. */
static uint64_t *number_of(struct reading *r, const char *tag)
{
    const struct {
        const char *tag;
        uint64_t *number;
    } numbers[] = {
        {"srcbits", &r->src_bits},      {"bits", &r->bits},        {"archsize", &r->bits},
        {"addrbits", &r->address_bits}, {"tssize", &r->time_bits}, {"freq", &r->frequency},
        {"clockfreq", &r->frequency},
    };
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (!strcasecmp(tag, numbers[i].tag))
            return numbers[i].number;
    return NULL;
}

/* What others depend on. */
static int take_value(struct reading *r, const char *tag, char *value)
{
    uint64_t *const number = number_of(r, tag);
    if (number && tl_number_parse(value, number) < 0)
        return tl_fail_set(r->fail, TL_BAD, "%.40s: a number is expected", tag);
    if (!strcasecmp(tag, "rtd"))
        find_path(r, value, r->trace);
    else if (!strcasecmp(tag, "vdso"))
        find_path(r, value, r->vdso);
    else if (!strcasecmp(tag, "kmempath"))
        find_path(r, value, r->pages);
    else if (!strcasecmp(tag, "teinstruction"))
        r->reports_returns = strcasestr(value, "noopt") != NULL;
    return TL_OK;
}

static int take_code(struct reading *r, const char *tag, char *value)
{
    if (!strcasecmp(tag, "image"))
        return take_memory(r, value);
    if (!strcasecmp(tag, "map"))
        return take_map(r, value);
    if (strcasecmp(tag, "elf") != 0)
        return TL_OK;
    char path[4096];
    find_path(r, value, path);
    return add_image(r, path, 0, 0, UINT64_MAX) ? TL_OK : set_nomem(r);
}

static int each_setting(struct reading *r, struct tl_bytes text,
                        int (*take)(struct reading *r, const char *tag, char *value))
{
    unsigned n = 0;
    int rc = TL_OK;
    char *const copy = strndup((const char *)text.p, text.n), *rest = copy, *line, *tag, *value;
    if (!copy)
        return set_nomem(r);
    while (rc == TL_OK && (line = strsep(&rest, "\n"))) {
        n++;
        if (split_line(line, &tag, &value) && *value)
            rc = take(r, tag, value);
    }
    if (rc == TL_BAD) {
        const struct tl_fail inner = *r->fail;
        tl_fail_set(r->fail, TL_BAD, "line %u: %.200s", n, inner.text);
    }
    free(copy);
    return rc;
}

/* Does a message in the first part of the trace tell which process runs? */
static bool tells_process(const char *path)
{
    FILE *const file = fopen(path, "re");
    unsigned before = END_OF_MESSAGE;
    bool found = false;
    int c;
    for (size_t n = 0; file && !found && n < MAX_TRACE_READ && (c = getc_unlocked(file)) != EOF;
         n++) {
        found = before == END_OF_MESSAGE && c == OWNERSHIP;
        before = (unsigned)c & 3;
    }
    if (file)
        fclose(file);
    return found;
}

static int set_sources(struct reading *r)
{
    struct tl_setup *const setup = &r->capture->setup;
    for (unsigned i = 0; i < 1u << r->src_bits; i++) {
        struct tl_source *const source = tl_setup_add_source(setup);
        if (!source)
            return set_nomem(r);
        snprintf(source->name, sizeof source->name, "nt.%u", i);
        snprintf(source->core, sizeof source->core, "rv%u", (unsigned)r->bits);
        source->protocol = TL_PROTO_NEXUS_SIFIVE;
        source->id = i;
        if ((r->address_bits && tl_source_set_reg(source, "addrbits", r->address_bits) < 0) ||
            (r->time_bits && tl_source_set_reg(source, "trTsWidth", r->time_bits) < 0) ||
            (r->reports_returns && tl_source_set_reg(source, "trTeInstImplicitReturnMode", 0) < 0))
            return set_nomem(r);
    }
    return TL_OK;
}

static int set_format(struct reading *r)
{
    char format[64];
    if (r->src_bits > MAX_SRC_BITS || (r->bits != 32 && r->bits != 64))
        return tl_fail_set(r->fail, TL_BAD, "srcbits can be 0 to %d, archsize 32 or 64",
                           MAX_SRC_BITS);
    if (!is_there(r->trace))
        return tl_fail_set(r->fail, TL_IO, "rtd: %.2000s: no such file", r->trace);
    snprintf(format, sizeof format, "nexus-sifive,src_bits=%u", (unsigned)r->src_bits);
    const int rc = tl_setup_format(&r->capture->setup, format, r->fail);
    return rc < 0 ? rc : set_sources(r);
}

int tl_dqr_read(struct tl_bundle_capture *capture, const char *path, const char *symfs,
                void (*warn)(void *context, const char *text), void *context, struct tl_fail *fail)
{
    struct reading r = {.capture = capture,
                        .symfs = symfs,
                        .bits = 32,
                        .warn = warn,
                        .context = context,
                        .fail = fail};
    const char *const slash = strrchr(path, '/');
    struct tl_buf text = {0};
    if (slash)
        snprintf(r.folder, sizeof r.folder, "%.*s", (int)(slash + 1 - path), path);
    int rc = tl_buf_read_file(&text, path, MAX_TEXT, fail);
    const struct tl_bytes bytes = {text.p, text.n};
    if (rc == TL_OK)
        rc = each_setting(&r, bytes, take_value);
    if (rc == TL_OK)
        rc = set_format(&r);
    if (rc == TL_OK)
        rc = tl_bundle_add(capture, r.trace, 0, UINT64_MAX) < 0 ? set_nomem(&r) : TL_OK;
    r.tells_process = rc == TL_OK && tells_process(r.trace);
    capture->setup.clock_hz = r.frequency;
    if (rc == TL_OK && r.pages[0])
        rc = add_pages(&r);
    if (rc == TL_OK)
        rc = each_setting(&r, bytes, take_code);
    tl_buf_fini(&text);
    return rc;
}
