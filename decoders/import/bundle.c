/* SPDX-License-Identifier: MIT */
/*
 * A capture is a list of pieces, parts of files or bytes in memory, so that importers can insert
 * records without copying gigabytes of trace. Standard input that must be examined is copied to an
 * unnamed file first: bytes read from a pipe would be missing from the capture.
 */
#include "import/bundle.h"

#include "base/args.h"
#include "base/filekind.h"
#include "frame/tpiu.h"
#include "import/dqr.h"
#include "import/esp_dump.h"
#include "import/lldb.h"
#include "import/looks.h"
#include "import/models.h"
#include "import/perf.h"
#include "import/perf_folder.h"
#include "import/sources.h"
#include "setup/machines.h"
#include "setup/registers.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PIECE = 64 << 10 };

int tl_bundle_add(struct tl_bundle_capture *capture, const char *path, uint64_t offset,
                  uint64_t length)
{
    if (tl_grow(&capture->pieces, &capture->cap_pieces, capture->n_pieces + 1,
                sizeof *capture->pieces) < 0)
        return TL_NOMEM;
    char *const copy = strdup(path);
    if (!copy)
        return TL_NOMEM;
    capture->pieces[capture->n_pieces++] =
        (struct tl_bundle_piece){.path = copy, .offset = offset, .length = length};
    return TL_OK;
}

int tl_bundle_add_bytes(struct tl_bundle_capture *capture, const char *path, struct tl_bytes bytes)
{
    uint8_t *const copy = malloc(bytes.n ? bytes.n : 1);
    const int rc = copy ? tl_bundle_add(capture, path, 0, bytes.n) : TL_NOMEM;
    if (rc < 0) {
        free(copy);
        return rc;
    }
    if (bytes.n)
        memcpy(copy, bytes.p, bytes.n);
    capture->pieces[capture->n_pieces - 1].bytes = copy;
    return TL_OK;
}

void tl_bundle_capture_fini(struct tl_bundle_capture *capture)
{
    for (size_t i = 0; i < capture->n_pieces; i++) {
        free(capture->pieces[i].path);
        free(capture->pieces[i].bytes);
    }
    free(capture->pieces);
    tl_setup_fini(&capture->setup);
    *capture = (struct tl_bundle_capture){0};
}

void tl_bundle_fini(struct tl_bundle *bundle)
{
    for (size_t i = 0; i < bundle->n_captures; i++)
        tl_bundle_capture_fini(&bundle->captures[i]);
    free(bundle->captures);
    if (bundle->copy > 0)
        close(bundle->copy);
    *bundle = (struct tl_bundle){0};
}

/* ---- importers ------------------------------------------------------------------------------- */

/* Copy standard input to an unnamed file: out->copy. */
static int copy_input(struct tl_bundle *out, struct tl_fail *fail)
{
    FILE *const file = tmpfile();
    uint8_t bytes[PIECE];
    ssize_t got = 1;
    bool ok = file != NULL;
    while (ok && got != 0) {
        got = read(STDIN_FILENO, bytes, sizeof bytes);
        if (got > 0)
            ok = fwrite(bytes, 1, (size_t)got, file) == (size_t)got;
        else if (got < 0)
            ok = errno == EINTR;
    }
    ok = ok && fflush(file) == 0;
    out->copy = ok ? fcntl(fileno(file), F_DUPFD_CLOEXEC, STDERR_FILENO + 1) : 0;
    ok = ok && out->copy > 0;
    if (!ok)
        tl_fail_set(fail, TL_IO, "standard input cannot be kept in a temporary file: %s",
                    strerror(errno));
    if (file)
        fclose(file);
    return ok ? TL_OK : TL_IO;
}

/* Read up to `n` first bytes of the capture. Returns how many; < 0: it cannot be opened. */
static ssize_t first_bytes(const struct tl_bundle_capture *capture, uint8_t *p, size_t n)
{
    struct tl_bundle_input in;
    ssize_t got = -1;
    if (tl_bundle_open(&in, capture) == TL_OK)
        got = tl_bundle_next(&in, p, n);
    tl_bundle_close(&in);
    return got;
}

/* Detect the format from the first bytes. NULL: unknown. TL_IO: it cannot be opened. */
static int sniff(const struct tl_bundle_capture *capture, const char **format, struct tl_fail *fail)
{
    uint8_t bytes[16];
    const ssize_t n = first_bytes(capture, bytes, sizeof bytes);
    *format = tl_looks((struct tl_bytes){bytes, n > 0 ? (size_t)n : 0}).format;
    return n < 0 ? tl_fail_set(fail, TL_IO, "cannot be read: %s", strerror(errno)) : TL_OK;
}

/*
 * Is a file given as raw trace one that is never trace as it is? Packed captures would give only
 * losses, of which nobody guesses the reason. Standard input is taken for what it is said to be.
 */
static int check_kind(const struct tl_bundle_capture *capture, struct tl_fail *fail)
{
    uint8_t bytes[TL_FILE_KIND_BYTES];
    struct stat st;
    const enum tl_container container = capture->setup.container;
    if (container == TL_CONTAINER_PERF || container == TL_CONTAINER_STF || capture->pieces[0].fd ||
        capture->pieces[0].bytes || stat(capture->pieces[0].path, &st) < 0 || !S_ISREG(st.st_mode))
        return TL_OK;
    const ssize_t n = first_bytes(capture, bytes, sizeof bytes);
    const char *const what = tl_looks((struct tl_bytes){bytes, n > 0 ? (size_t)n : 0}).no_trace;
    return what ? tl_fail_set(fail, TL_BAD,
                              "%s; to take its bytes as they are: --format %.40s - <FILE", what,
                              capture->setup.format)
                : TL_OK;
}

/* Do frames that are said to lie back to back have synchronisation words between them? */
static bool is_marked(const struct tl_bundle_capture *capture)
{
    uint8_t bytes[PIECE];
    struct stat st;
    const struct tl_setup *const setup = &capture->setup;
    if (setup->container != TL_CONTAINER_TPIU || setup->sync != TL_SYNC_NONE ||
        stat(capture->pieces[0].path, &st) < 0 || !S_ISREG(st.st_mode))
        return false;
    const ssize_t n = first_bytes(capture, bytes, sizeof bytes);
    return n > 0 && tl_tpiu_is_marked(bytes, (size_t)n);
}

/* Import the contents of a perf.data file to the setup. */
static int import_perf(struct tl_bundle_capture *capture, const struct tl_bundle_request *request,
                       bool *limited, struct tl_fail *fail)
{
    struct tl_perf_import *import = NULL;
    struct tl_code_places places = request->places;
    char kcore[4096];
    if (!places.kcore && request->input &&
        snprintf(kcore, sizeof kcore, "%s/kcore_dir/kcore", request->input) < (int)sizeof kcore &&
        access(kcore, R_OK) == 0)
        places.kcore = kcore;
    struct tl_bundle_input in;
    uint8_t *const bytes = malloc(PIECE);
    ssize_t got = 1;
    int rc =
        bytes ? tl_perf_import_new(&import, &places, request->warn, request->context) : TL_NOMEM;
    const bool opened = rc == TL_OK;
    if (opened)
        rc = tl_bundle_open(&in, capture);
    while (rc == TL_OK && got != 0) {
        got = tl_bundle_next(&in, bytes, PIECE);
        if (got > 0)
            rc = tl_perf_import_push(import, (struct tl_bytes){bytes, (size_t)got});
        else if (got < 0 && errno != EINTR)
            rc = TL_IO;
    }
    if (rc == TL_OK)
        rc = tl_perf_import_finish(import);
    if (rc == TL_OK)
        rc = tl_perf_import_setup(import, &capture->setup);
    if (rc == TL_OK && !capture->setup.events)
        tl_perf_import_first(import, capture->first, sizeof capture->first);
    if (rc < 0)
        tl_fail_set(fail, (enum tl_err)rc, "cannot be read: %s",
                    rc == TL_IO ? strerror(errno) : tl_err_name(rc));
    if (opened)
        tl_bundle_close(&in);
    *limited = import && tl_perf_import_is_limited(import);
    tl_perf_import_free(import);
    free(bytes);
    return rc;
}

/* The capture becomes what a model's file says, as STF. */
static int import_model(struct tl_bundle *out, const struct tl_bundle_request *request,
                        const char *input, const char *format, struct tl_fail *fail)
{
    struct tl_bundle_capture *const capture = out->captures;
    struct tl_model_input in = {.name = input, .warn = request->warn, .context = request->context};
    struct tl_buf stf = {0};
    int rc = tl_model_read(tl_model_of(format), &stf, format, input, &in, fail);
    out->limited = in.is_partial;
    if (rc == TL_OK)
        rc = tl_setup_format(&capture->setup, "stf", fail);
    for (size_t i = 0; i < capture->n_pieces; i++)
        free(capture->pieces[i].path);
    capture->n_pieces = 0;
    if (rc == TL_OK && tl_bundle_add(capture, input, 0, stf.n) < 0)
        rc = tl_fail_set(fail, TL_NOMEM, "out of memory");
    if (rc < 0) {
        tl_buf_fini(&stf);
        return rc;
    }
    capture->pieces[0].bytes = stf.p;
    return TL_OK;
}

/* Add the images that the command line names to those of the setup. */
static int add_images(struct tl_setup *setup, const struct tl_bundle_request *request,
                      struct tl_fail *fail)
{
    int rc = TL_OK;
    for (size_t i = 0; rc == TL_OK && i < request->n_images; i++)
        rc = tl_setup_add_image(setup, request->images[i], fail);
    return rc;
}

static int fill_capture(struct tl_bundle *out, const struct tl_bundle_request *request,
                        const char **where, struct tl_fail *fail)
{
    struct tl_bundle_capture *const capture = out->captures;
    const bool is_perf = request->format && !strncmp(request->format, "perf", 4);
    const bool reads_twice = (is_perf || !request->format) && !request->as_it_comes;
    const char *input = request->input, *format = request->format;
    char names[TL_FORMAT_NAMES];
    int rc = TL_OK;
    if (reads_twice && !strcmp(input, "-"))
        rc = copy_input(out, fail);
    if (rc == TL_OK && (is_perf || !request->format))
        rc = tl_perf_folder_read(capture, input);
    else if (rc == TL_OK)
        rc = tl_bundle_add(capture, input, 0, UINT64_MAX);
    if (rc < 0 && rc != TL_IO)
        rc = tl_fail_set(fail, (enum tl_err)rc, "out of memory");
    if (rc == TL_OK)
        capture->pieces[0].fd = out->copy;
    /* What is read of standard input to look at it would be missing from the capture. */
    if (rc == TL_OK && !format && (out->copy > 0 || strcmp(input, "-") != 0)) {
        *where = input;
        rc = sniff(capture, &format, fail);
    }
    if (rc == TL_OK && tl_model_of(format)) {
        char copy[32];
        snprintf(copy, sizeof copy, "/proc/self/fd/%d", out->copy);
        *where = input;
        rc = import_model(out, request, out->copy > 0 ? copy : input, format, fail);
    } else if (rc == TL_OK && format)
        rc = tl_setup_format(&capture->setup, format, fail);
    if (rc == TL_OK && request->config) {
        *where = request->config;
        rc = tl_setup_read(&capture->setup, request->config, fail);
    }
    if (rc == TL_OK)
        *where = NULL;
    if (rc == TL_OK && !capture->setup.format[0])
        rc = tl_fail_set(fail, TL_USAGE,
                         "give the format of INPUT: --format %s, or format= in [trace] of --config",
                         tl_format_names(names, sizeof names));
    if (rc == TL_OK && capture->setup.container == TL_CONTAINER_PERF &&
        (out->copy > 0 || strcmp(input, "-") != 0)) {
        *where = request->input;
        rc = import_perf(capture, request, &out->limited, fail);
        *where = rc < 0 ? *where : NULL;
    }
    if (rc == TL_OK && !tl_model_of(format)) {
        *where = request->input;
        rc = check_kind(capture, fail);
        *where = rc < 0 ? *where : NULL;
    }
    if (rc == TL_OK)
        rc = add_images(&capture->setup, request, fail);
    if (rc == TL_OK && request->warn && !strstr(capture->setup.format, "sync=") &&
        is_marked(capture))
        request->warn(request->context, "there are FSYNC packets between the frames, which are "
                                        "read as consecutive; use --format "
                                        "tpiu,sync=fsync");
    return rc;
}

/* Read the files that the setup's sources name; `records`: what else is known of memory. `imports`:
 * there are such records, or will be. */
static int read_files(struct tl_bundle *out, const struct tl_bundle_request *request,
                      struct tl_bytes records, bool imports, const char **where,
                      struct tl_fail *fail)
{
    struct tl_bundle_capture *const capture = out->captures;
    bool has_sideband = false;
    int rc = tl_sources_read(capture, records, &has_sideband, fail);
    if (rc == TL_OK && (imports || has_sideband))
        rc = import_perf(capture, request, &out->limited, fail);
    *where = rc < 0 ? *where : NULL;
    return rc < 0 ? rc : add_images(&capture->setup, request, fail);
}

/* Read a configuration that names a file for each source. */
static int read_sources(struct tl_bundle *out, const struct tl_bundle_request *request,
                        const char **where, struct tl_fail *fail)
{
    struct tl_setup *const setup = &out->captures->setup;
    *where = request->config;
    int rc = tl_setup_format(setup, "perf", fail);
    if (rc == TL_OK)
        rc = tl_setup_read(setup, request->config, fail);
    if (rc == TL_OK && setup->n_files == 0)
        rc = tl_fail_set(fail, TL_USAGE,
                         "give an INPUT, or name the file of each [source] by file=");
    return rc < 0 ? rc : read_files(out, request, (struct tl_bytes){0}, false, where, fail);
}

/* Registers of the configuration's sources go to those of the same name, those of "pt" to all. */
static int take_registers(struct tl_setup *to, const struct tl_setup *from, struct tl_fail *fail)
{
    for (size_t i = 0; i < from->n_sources; i++) {
        const struct tl_source *const source = &from->sources[i];
        bool any = false;
        for (size_t k = 0; k < to->n_sources; k++) {
            const bool is_meant =
                !strcmp(source->name, "pt") || !strcmp(source->name, to->sources[k].name);
            for (size_t r = 0; is_meant && r < source->n_regs; r++)
                if (tl_source_set_reg(&to->sources[k], source->regs[r].name,
                                      source->regs[r].value) < 0)
                    return tl_fail_set(fail, TL_NOMEM, "[source %s]: too many registers",
                                       source->name);
            any |= is_meant;
        }
        if (!any)
            return tl_fail_set(fail, TL_USAGE,
                               "[source %s]: the bundle has no such source; its first is %s, and "
                               "[source pt] is for all",
                               source->name, to->n_sources ? to->sources[0].name : "none");
    }
    return TL_OK;
}

/* What LLDB's description does not tell, such as how often MTC packets come. */
static int read_registers(struct tl_setup *to, const char *config, struct tl_fail *fail)
{
    struct tl_setup from;
    tl_setup_init(&from);
    int rc = tl_setup_format(&from, "perf", fail);
    if (rc == TL_OK)
        rc = tl_setup_read(&from, config, fail);
    if (rc == TL_OK)
        rc = take_registers(to, &from, fail);
    tl_setup_fini(&from);
    return rc;
}

/* Read a trace bundle of LLDB, whose description is the file `path`. */
static int read_lldb(struct tl_bundle *out, const struct tl_bundle_request *request,
                     const char *path, const char **where, struct tl_fail *fail)
{
    struct tl_setup *const setup = &out->captures->setup;
    struct tl_bundle_request with = *request;
    struct tl_buf records = {0};
    char kernel[4096];
    *where = request->input;
    int rc = tl_setup_format(setup, "perf", fail);
    if (rc == TL_OK)
        rc = tl_lldb_read(setup, &records, kernel, path, request->warn, request->context, fail);
    if (rc == TL_OK && request->config) {
        *where = request->config;
        rc = read_registers(setup, request->config, fail);
        *where = rc < 0 ? *where : request->input;
    }
    with.input = NULL; /* what perf leaves beside a recording is not there */
    if (rc == TL_OK && *kernel && !with.places.vmlinux)
        with.places.vmlinux = kernel;
    if (rc == TL_OK)
        rc = read_files(out, &with, (struct tl_bytes){records.p, records.n}, true, where, fail);
    tl_buf_fini(&records);
    return rc;
}

/* Read what dqr's settings name. */
static int read_dqr(struct tl_bundle *out, const struct tl_bundle_request *request,
                    const char **where, struct tl_fail *fail)
{
    struct tl_bundle_capture *const capture = out->captures;
    *where = request->input;
    const int rc = tl_dqr_read(capture, request->input, request->places.symfs, request->warn,
                               request->context, fail);
    *where = rc < 0 ? *where : NULL;
    return rc < 0 ? rc : add_images(&capture->setup, request, fail);
}

/* Is the input a description of files, which stands for them? */
static bool is_dqr(const struct tl_bundle_request *request)
{
    return !request->format && !request->config && tl_dqr_is(request->input);
}

static int read_file(struct tl_bundle *out, const struct tl_bundle_request *request,
                     const char **where, struct tl_fail *fail)
{
    struct tl_bundle_capture *const capture = calloc(1, sizeof *capture);
    if (!capture)
        return tl_fail_set(fail, TL_NOMEM, "out of memory");
    *out = (struct tl_bundle){.captures = capture, .n_captures = 1};
    char lldb[4096];
    tl_setup_init(&capture->setup);
    const int rc = !request->input ? read_sources(out, request, where, fail)
                   : !request->format && tl_lldb_find(request->input, request->config != NULL, lldb)
                       ? read_lldb(out, request, lldb, where, fail)
                   : is_dqr(request) ? read_dqr(out, request, where, fail)
                                     : fill_capture(out, request, where, fail);
    if (rc < 0)
        tl_bundle_fini(out);
    return rc;
}

/*
 * Complete the captures of a snapshot by what is named beside it. Its buffers of formatter frames
 * have one format, with and without synchronisation words between the frames.
 */
static int complete(struct tl_bundle *out, const struct tl_bundle_request *request,
                    struct tl_fail *fail)
{
    bool took_format = !request->format;
    int rc = TL_OK;
    for (size_t i = 0; rc == TL_OK && i < out->n_captures; i++) {
        struct tl_setup *const setup = &out->captures[i].setup;
        const bool is_formatted = setup->container == TL_CONTAINER_TPIU;
        if (is_formatted && request->format && !strncmp(request->format, "tpiu", 4)) {
            rc = tl_setup_format(setup, request->format, fail);
            took_format = true;
        } else if (!request->format && is_marked(&out->captures[i])) {
            rc = tl_setup_format(setup, "tpiu,sync=fsync", fail);
        }
        if (rc == TL_OK)
            rc = add_images(setup, request, fail);
    }
    if (rc == TL_OK && !took_format)
        rc = tl_fail_set(fail, TL_USAGE,
                         "--format %.40s: a snapshot brings its own format; only tpiu,sync=… is "
                         "taken, for buffers of formatter frames",
                         request->format);
    return rc;
}

static int read_snapshot(struct tl_bundle *out, const struct tl_bundle_request *request,
                         const char **where, struct tl_fail *fail)
{
    *where = request->snapshot;
    int rc = tl_snapshot_read(out, request->snapshot, request->warn, request->context, fail);
    if (rc < 0)
        return rc;
    rc = complete(out, request, fail);
    *where = NULL;
    if (rc < 0)
        tl_bundle_fini(out);
    return rc;
}

/* Is the input a core dump with trace? Then it need not be said that it is. */
static bool is_dump(const struct tl_bundle_request *request)
{
    const char *const format = request->format;
    return request->input && strcmp(request->input, "-") != 0 &&
           (format ? !strcmp(format, "etrace-esp32") : !request->config) &&
           tl_esp_dump_is(request->input);
}

static int read_dump(struct tl_bundle *out, const struct tl_bundle_request *request,
                     const char **where, struct tl_fail *fail)
{
    const int rc = tl_esp_dump_read(out, request, fail);
    *where = rc < 0 ? request->input : NULL;
    return rc;
}

/* A register of the configuration is ignored. */
static void warn_register(void *context, const char *text)
{
    const struct tl_bundle_request *const request = context;
    char named[512];
    if (request->config)
        snprintf(named, sizeof named, "%.300s: %s", request->config, text);
    request->warn(request->context, request->config ? named : text);
}

int tl_bundle_read(struct tl_bundle *out, const struct tl_bundle_request *request,
                   const char **where, struct tl_fail *fail)
{
    *where = NULL;
    const int rc = request->snapshot  ? read_snapshot(out, request, where, fail)
                   : is_dump(request) ? read_dump(out, request, where, fail)
                                      : read_file(out, request, where, fail);
    for (size_t i = 0; rc == TL_OK && request->warn && i < out->n_captures; i++) {
        tl_setup_check_registers(&out->captures[i].setup, warn_register,
                                 (void *)(uintptr_t)request);
        tl_setup_check_machines(&out->captures[i].setup, request->warn, request->context);
    }
    return rc;
}
