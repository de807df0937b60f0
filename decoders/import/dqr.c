/* SPDX-License-Identifier: MIT */
/*
 * Each setting becomes what a user would write by hand: options of the format, keys of a source for
 * each number that SRC can have, and images. A program of a process is bound to its number only if
 * the trace tells which process runs, since else nothing would be followed.
 */
#include "import/dqr.h"

#include "base/args.h"
#include "import/copied_memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

enum {
    LOOKED_AT = 8192,          /* bytes in which the trace is named */
    MAX_TEXT = 4 << 20,        /* bytes of settings */
    MAX_TRACE_READ = 16 << 20, /* bytes of trace in which processes are looked for */
    MAX_SRC_BITS = 12,
    OWNERSHIP = 2 << 2, /* first byte of a message that tells the process */
    END_OF_MESSAGE = 3  /* MSEO, the lower bits of a byte */
};

struct reading {
    struct tl_bundle_capture *capture;
    char folder[2048]; /* of the settings, with a slash; "": the current one */
    char trace[4096], vdso[4096], pages[4096];
    uint64_t src_bits, bits, address_bits, time_bits, frequency;
    bool reports_returns; /* implicit returns are off */
    struct tl_copied_memory memory;
    struct tl_fail *fail;
};

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

static bool is_there(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISREG(st.st_mode);
}

bool tl_dqr_is(const char *path)
{
    char text[LOOKED_AT + 1], *rest = text, *line, *tag, *value;
    FILE *const file = is_there(path) ? fopen(path, "re") : NULL;
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

/* The path of a file that the settings name. */
static void find_path(const struct reading *r, const char *name, char out[static 4096])
{
    snprintf(out, 4096, "%s%.2000s", *name == '/' ? "" : r->folder, name);
}

/* ---- code ------------------------------------------------------------------------------------ */

/* Map a whole file. */
static int add_file(struct reading *r, const char *file, uint64_t address)
{
    return tl_setup_add_image_at(&r->capture->setup, file, address, 0, UINT64_MAX, TL_SPACE_ANY) < 0
               ? set_nomem(r)
               : TL_OK;
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
    return add_file(r, path, begin);
}

/* PID,FILE: what the process had mapped. */
static int take_map(struct reading *r, char *value)
{
    char path[4096];
    uint64_t pid;
    char *const comma = strchr(value, ',');
    if (comma)
        *comma = 0;
    if (!comma || tl_number_parse(trim(value), &pid) < 0)
        return tl_fail_set(r->fail, TL_BAD, "map: PID,FILE is expected");
    find_path(r, trim(comma + 1), path);
    return tl_copied_maps(&r->capture->setup, &r->memory, pid, path, r->fail);
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
    return add_file(r, path, 0);
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
    struct reading r = {.capture = capture, .bits = 32, .fail = fail};
    r.memory = (struct tl_copied_memory){
        .folder = r.folder, .symfs = symfs, .vdso = r.vdso, .warn = warn, .context = context};
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
    r.memory.by_process = rc == TL_OK && tells_process(r.trace);
    capture->setup.clock_hz = r.frequency;
    if (rc == TL_OK && r.pages[0])
        rc = tl_copied_pages(&capture->setup, &r.memory, r.pages) < 0 ? set_nomem(&r) : TL_OK;
    if (rc == TL_OK)
        rc = each_setting(&r, bytes, take_code);
    tl_buf_fini(&text);
    return rc;
}
