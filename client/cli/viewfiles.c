/* SPDX-License-Identifier: MIT */
/*
 * Determines by their contents what the files of `view` are. Names are not decisive: captures have
 * any.
 */
#include "cli/viewfiles.h"

#include "frame/tpiu.h"
#include "import/dqr.h"
#include "import/lldb.h"
#include "import/looks.h"
#include "setup/format.h"
#include "terminal/say.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LOOKED_AT = 64 << 10 };

static bool ends_with(const char *text, const char *end)
{
    const size_t n = strlen(text), k = strlen(end);
    return n >= k && !strcmp(text + n - k, end);
}

bool tl_view_is_config(const char *path)
{
    return ends_with(path, ".ini");
}

static bool has(const char *dir, const char *name)
{
    char path[4096];
    return snprintf(path, sizeof path, "%s/%s", dir, name) < (int)sizeof path &&
           access(path, F_OK) == 0;
}

static int take_folder(struct tl_view_file *out)
{
    char lldb[4096];
    if (has(out->path, "snapshot.ini"))
        out->kind = TL_VIEW_SNAPSHOT;
    else if (!has(out->path, "data") && !tl_lldb_find(out->path, false, lldb))
        return tl_cli_usage("view",
                            "%s is a folder, but neither a snapshot (snapshot.ini), nor of 'perf "
                            "record' (data) or LLDB (trace.json)",
                            out->path);
    return TL_ARGS_GO;
}

/* PSB packets, by which Intel PT is synchronised, are in no other trace. */
static bool is_pt(struct tl_bytes head)
{
    static const uint8_t psb[] = {2, 0x82, 2, 0x82, 2, 0x82, 2, 0x82,
                                  2, 0x82, 2, 0x82, 2, 0x82, 2, 0x82};
    return memmem(head.p, head.n, psb, sizeof psb) != NULL;
}

/* The format that raw bytes show themselves; NULL: none. */
static const char *format_of(struct tl_bytes head)
{
    if (is_pt(head))
        return "pt";
    return tl_tpiu_is_marked(head.p, head.n) ? "tpiu,sync=fsync" : NULL;
}

static int take_raw(struct tl_view_file *out, struct tl_bytes head, const char *format,
                    bool configured)
{
    char names[TL_FORMAT_NAMES];
    out->format = format;
    if (format || configured)
        return TL_ARGS_GO;
    out->format = format_of(head);
    if (!out->format)
        return tl_cli_usage("view",
                            "%s: nothing in it says what kind of trace it is; give --format %s, or "
                            "the configuration FILE.ini",
                            out->path, tl_format_names(names, sizeof names));
    tl_cli_warn(out->path, "taken for --format %s, by its contents", out->format);
    return TL_ARGS_GO;
}

static int take_contents(struct tl_view_file *out, struct tl_bytes head, const char *format,
                         bool configured)
{
    const struct tl_looks looks = tl_looks(head);
    if (head.n == 0) {
        tl_cli_warn(out->path, "is empty");
        return TL_CLI_BAD;
    }
    if (looks.like == TL_LOOKS_PROGRAM) {
        out->kind = TL_VIEW_PROGRAM;
        return TL_ARGS_GO;
    }
    char lldb[4096];
    if (looks.like == TL_LOOKS_PERF || (!format && !configured && looks.like == TL_LOOKS_LOG) ||
        (!format &&
         (tl_lldb_find(out->path, configured, lldb) || (!configured && tl_dqr_is(out->path)))))
        return TL_ARGS_GO;
    if (looks.like == TL_LOOKS_STF ||
        (looks.may_hold_stf && (looks.like != TL_LOOKS_PACKED || strstr(out->path, ".stf")))) {
        out->format = "stf";
        return TL_ARGS_GO;
    }
    if (looks.like == TL_LOOKS_PACKED) {
        tl_cli_warn(out->path, "%s", looks.no_trace);
        return TL_CLI_BAD;
    }
    if (looks.is_text && !format) {
        tl_cli_warn(out->path, "is text, neither trace nor program; a configuration is named "
                               "FILE.ini");
        return TL_CLI_BAD;
    }
    return take_raw(out, head, format, configured);
}

int tl_view_file(struct tl_view_file *out, const char *path, const char *format, bool configured)
{
    struct stat st;
    *out = (struct tl_view_file){.path = path, .kind = TL_VIEW_CAPTURE};
    if (stat(path, &st) == 0 && S_ISDIR(st.st_mode))
        return take_folder(out);
    FILE *const file = fopen(path, "re");
    uint8_t *const bytes = malloc(LOOKED_AT);
    int status = TL_ARGS_GO;
    if (!file || !bytes) {
        tl_cli_warn(path, "%s", strerror(errno));
        status = TL_CLI_BAD;
    } else if (tl_view_is_config(path)) {
        out->kind = TL_VIEW_CONFIG;
    } else if (!S_ISREG(st.st_mode)) {
        status = tl_cli_usage("view", "%s is no file; 'push' takes pipes and devices", path);
    } else {
        const size_t n = fread(bytes, 1, LOOKED_AT, file);
        status = take_contents(out, (struct tl_bytes){bytes, n}, format, configured);
    }
    if (file)
        fclose(file);
    free(bytes);
    return status;
}

void tl_view_name(const char *path, char out[static 48])
{
    char *const whole = realpath(path, NULL);
    const char *const real = whole ? whole : path;
    const char *const slash = strrchr(real, '/');
    const char *base = slash ? slash + 1 : real;
    size_t n = 0;
    for (; *base && n < 47; base++)
        out[n++] = isalnum((unsigned char)*base) || strchr("._-", *base) ? *base : '-';
    out[n] = 0;
    free(whole);
}
