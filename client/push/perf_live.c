/* SPDX-License-Identifier: MIT */
/*
 * Follows the records of a perf.data stream while it is sent, and updates the trace's setup with
 * the code they map. Files are uploaded from here because only this machine has them.
 */
#include "push/perf_live.h"

#include "base/now.h"
#include "import/perf.h"
#include "push/upload.h"
#include "terminal/args.h"
#include "terminal/remote.h"
#include "terminal/say.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PIECE = 64 << 10, AHEAD_MAX = 64 << 20, MIN_MS = 1000 };

struct tl_perf_live {
    struct tl_perf_import *import;
    const struct tl_bundle_request *request;
    struct tl_setup base; /* given by the user */
    /* Files of the last setup created, and that setup: its images get other names once they are
     * uploaded. */
    char **files;
    size_t n_files, cap_files;
    const struct tl_setup *made;
    uint64_t ahead;        /* bytes read ahead, which are returned again */
    uint64_t sent;         /* number of the setup that the server has */
    int64_t begun, tended; /* ms */
    bool failed;           /* out of memory: the setup stays unchanged */
    struct tl_buf text;    /* the setup sent last */
};

static void forget_files(struct tl_perf_live *live)
{
    for (size_t i = 0; i < live->n_files; i++)
        free(live->files[i]);
    live->n_files = 0;
    live->made = NULL;
}

void tl_perf_live_free(struct tl_perf_live *live)
{
    if (!live)
        return;
    tl_perf_import_free(live->import);
    tl_setup_fini(&live->base);
    forget_files(live);
    free(live->files);
    tl_buf_fini(&live->text);
    free(live);
}

/* Uploaded files need not be read, or assembled, again. */
static void learn_stored(struct tl_perf_live *live)
{
    for (size_t i = 0; i < live->n_files && i < live->made->n_images; i++)
        if (strcmp(live->files[i], live->made->images[i].file) != 0)
            tl_perf_import_stored(live->import, live->files[i], live->made->images[i].file);
    forget_files(live);
}

static int remember_files(struct tl_perf_live *live, const struct tl_setup *setup)
{
    int rc = tl_grow(&live->files, &live->cap_files, setup->n_images, sizeof *live->files);
    for (size_t i = 0; rc >= 0 && i < setup->n_images; i++) {
        live->files[i] = strdup(setup->images[i].file);
        if (!live->files[i])
            return TL_NOMEM;
        live->n_files++;
    }
    live->made = setup;
    return rc < 0 ? rc : TL_OK;
}

/* Combine the user's setup with what is known from the bytes so far. */
static int make_setup(struct tl_perf_live *live, struct tl_setup *out)
{
    struct tl_buf text = {0};
    struct tl_fail fail;
    tl_setup_init(out);
    int rc = tl_setup_write(&live->base, &text);
    if (rc == TL_OK)
        rc = tl_setup_parse(out, (const char *)text.p, text.n, &fail);
    if (live->made)
        learn_stored(live);
    if (rc == TL_OK)
        rc = tl_perf_import_setup(live->import, out);
    if (rc == TL_OK)
        rc = remember_files(live, out);
    tl_buf_fini(&text);
    return rc;
}

static int read_ahead(struct tl_perf_live *live, struct tl_buf *bytes)
{
    int rc = TL_OK;
    while (rc == TL_OK && !tl_perf_import_begun(live->import) && bytes->n < AHEAD_MAX) {
        if (tl_buf_reserve(bytes, PIECE) < 0)
            return TL_NOMEM;
        const ssize_t got = read(STDIN_FILENO, bytes->p + bytes->n, PIECE);
        if (got == 0)
            break;
        if (got < 0 && errno != EINTR)
            return TL_IO;
        if (got > 0)
            rc = tl_perf_import_push(live->import,
                                     (struct tl_bytes){bytes->p + bytes->n, (size_t)got});
        bytes->n += got > 0 ? (size_t)got : 0;
    }
    return rc;
}

/* Prepend the bytes read ahead to the capture. */
static int put_first(struct tl_bundle_capture *capture, const struct tl_buf *bytes)
{
    const int rc = tl_bundle_add_bytes(capture, "-", (struct tl_bytes){bytes->p, bytes->n});
    if (rc < 0 || capture->n_pieces != 2)
        return rc;
    const struct tl_bundle_piece input = capture->pieces[0];
    capture->pieces[0] = capture->pieces[1];
    capture->pieces[1] = input;
    return TL_OK;
}

int tl_perf_live_new(struct tl_perf_live **out, struct tl_bundle_capture *capture,
                     const struct tl_bundle_request *request, struct tl_fail *fail)
{
    struct tl_perf_live *const live = calloc(1, sizeof *live);
    struct tl_buf bytes = {0};
    int rc =
        live ? tl_perf_import_new(&live->import, &request->places, request->warn, request->context)
             : TL_NOMEM;
    if (rc == TL_OK) {
        live->request = request;
        live->base = capture->setup;
        tl_setup_init(&capture->setup);
        rc = read_ahead(live, &bytes);
    }
    if (rc == TL_OK) {
        live->ahead = bytes.n;
        live->sent = tl_perf_import_number(live->import);
        rc = put_first(capture, &bytes);
    }
    if (rc == TL_OK)
        rc = make_setup(live, &capture->setup);
    tl_buf_fini(&bytes);
    if (rc < 0) {
        tl_fail_set(fail, (enum tl_err)rc, "standard input cannot be read: %s",
                    rc == TL_IO ? strerror(errno) : tl_err_name(rc));
        tl_perf_live_free(live);
        return rc;
    }
    live->begun = live->tended = tl_monotonic_ms();
    *out = live;
    return TL_OK;
}

void tl_perf_live_tap(void *context, const uint8_t *p, size_t n)
{
    struct tl_perf_live *const live = context;
    const size_t known = n < live->ahead ? n : (size_t)live->ahead;
    live->ahead -= known;
    if (!live->failed && n > known)
        live->failed =
            tl_perf_import_push(live->import, (struct tl_bytes){p + known, n - known}) < 0;
}

/* Send the current setup. */
static int send_setup(struct tl_perf_live *live, struct tracelake *lake, const char *trace)
{
    const uint64_t number = tl_perf_import_number(live->import);
    struct tracelake_error error;
    struct tl_setup setup;
    struct tl_buf *const text = &live->text;
    int rc = make_setup(live, &setup);
    tl_buf_reset(text);
    const int status =
        rc == TL_OK ? tl_cli_upload_images(lake, &setup, TL_REMOTE_TRIES) : TL_CLI_BAD;
    if (rc == TL_OK && status == TL_ARGS_GO)
        rc = tl_setup_write(&setup, text);
    if (rc == TL_OK)
        rc = tl_buf_add(text, "", 1);
    if (rc == TL_OK && status == TL_ARGS_GO) {
        rc = tracelake_redecode(lake, trace, (const char *)text->p, NULL, &error);
        if (rc < 0)
            tl_cli_warn(trace, "code that was mapped later is not known to the server: %s",
                        error.text);
    }
    if (rc >= 0 && status == TL_ARGS_GO)
        live->sent = number;
    learn_stored(live);
    tl_setup_fini(&setup);
    return status == TL_ARGS_GO ? rc : TL_IO;
}

const char *tl_perf_live_tend(void *context, struct tracelake *lake, const char *trace, bool last)
{
    struct tl_perf_live *const live = context;
    const int64_t now = tl_monotonic_ms();
    /* Their order in time is known only at the end. */
    const bool threads = last && tl_setup_want_all(&live->base);
    if (live->failed || (live->sent == tl_perf_import_number(live->import) && !threads))
        return NULL;
    if (!last && (now - live->tended < MIN_MS || now - live->tended < live->tended - live->begun))
        return NULL;
    live->tended = now;
    if (send_setup(live, lake, trace) == TL_OK)
        return (const char *)live->text.p;
    if (last)
        tl_cli_warn(trace, "'tracelake redecode' with a configuration names the code by hand");
    return NULL;
}
