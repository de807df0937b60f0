/* SPDX-License-Identifier: MIT */
/*
 * Writes records to a .stf or .zstf file. It is written under a temporary name and renamed when
 * complete, so that an interrupted command leaves no file that looks whole.
 */
#include "stf/writer.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define PLAIN_PIECE (256u << 10)

struct tl_stf_out {
    struct tl_stf_out_front front;
    struct tl_stf_out_options options;
    struct tl_stf_sink sink;
    struct tl_zstf_writer *zstf;
    struct tl_buf file;
    uint64_t chunk_pc;
};

static int begin_zstf(struct tl_stf_out *out)
{
    out->front.chunk_end = out->options.markers;
    const int result = tl_zstf_writer_new(&out->zstf, out->options.markers, out->options.level);
    return result < 0 ? result : tl_zstf_writer_begin(out->zstf, &out->file);
}

/* A plain file is written in pieces whenever this buffer is full. */
static int begin_plain(struct tl_stf_out *out)
{
    out->front.chunk_end = UINT64_MAX;
    return tl_buf_reserve(&out->front.writer.out, PLAIN_PIECE);
}

int tl_stf_out_new(struct tl_stf_out **out, const struct tl_stf_out_options *options,
                   const struct tl_stf_sink *sink)
{
    struct tl_stf_out *const o = calloc(1, sizeof *o);
    if (!o)
        return TL_NOMEM;
    o->options = *options;
    o->sink = *sink;
    o->front.writer.unchecked = options->unchecked;
    if (!o->options.markers)
        o->options.markers = TL_ZSTF_MARKERS;
    const int result = options->format == TL_STF_FILE_ZSTF ? begin_zstf(o) : begin_plain(o);
    if (result < 0) {
        tl_stf_out_free(o);
        return result;
    }
    *out = o;
    return TL_OK;
}

void tl_stf_out_free(struct tl_stf_out *out)
{
    if (!out)
        return;
    tl_zstf_writer_free(out->zstf);
    tl_stf_writer_fini(&out->front.writer);
    tl_buf_fini(&out->file);
    free(out);
}

static int write_out(struct tl_stf_out *out, struct tl_buf *bytes, struct tl_fail *fail)
{
    if (bytes->n == 0)
        return TL_OK;
    const int result = out->sink.write(out->sink.context, bytes->p, bytes->n);
    tl_buf_reset(bytes);
    return result < 0 ? tl_fail_set(fail, (enum tl_err)result, "cannot write the file") : TL_OK;
}

int tl_stf_out_end_chunk(struct tl_stf_out *out, struct tl_fail *fail)
{
    struct tl_stf_writer *const w = &out->front.writer;
    const uint64_t markers = w->markers - (out->front.chunk_end - out->options.markers);
    const int result = tl_zstf_writer_chunk(out->zstf, (struct tl_bytes){w->out.p, w->out.n},
                                            markers, out->chunk_pc, &out->file);
    if (result < 0)
        return tl_fail_set(fail, (enum tl_err)result, "cannot compress a chunk");
    tl_buf_reset(&w->out);
    out->front.chunk_end += out->options.markers;
    out->chunk_pc = w->pc.next;
    return write_out(out, &out->file, fail);
}

int tl_stf_out_put_any(struct tl_stf_out *out, const struct tl_stf_record *record,
                       struct tl_fail *fail)
{
    struct tl_stf_writer *const w = &out->front.writer;
    int result = TL_OK;
    if (!out->zstf && w->out.cap - w->out.n < TL_STF_HOT_ROOM)
        result = write_out(out, &w->out, fail);
    if (result == TL_OK)
        result = tl_stf_writer_put_any(w, record, fail);
    if (result < 0 || !tl_stf_is_marker(record->type) || w->markers != out->front.chunk_end)
        return result;
    return tl_stf_out_end_chunk(out, fail);
}

static int finish_zstf(struct tl_stf_out *out, struct tl_fail *fail)
{
    uint8_t head[TL_ZSTF_HEAD];
    if (out->front.writer.out.n) {
        const int result = tl_stf_out_end_chunk(out, fail);
        if (result < 0)
            return result;
    }
    int result = tl_zstf_writer_finish(out->zstf, (struct tl_bytes){0}, &out->file, head);
    if (result < 0)
        return tl_fail_set(fail, (enum tl_err)result, "a .zstf cannot be empty");
    result = write_out(out, &out->file, fail);
    if (result == TL_OK)
        result = out->sink.rewrite(out->sink.context, head, sizeof head);
    return result;
}

int tl_stf_out_finish(struct tl_stf_out *out, struct tl_fail *fail)
{
    if (!out->front.writer.unchecked && !out->front.writer.order.header.complete)
        return tl_fail_set(fail, TL_USAGE, "the header has no END_HEADER");
    if (out->zstf)
        return finish_zstf(out, fail);
    if (out->options.reserve_end) {
        const uint8_t end = TL_STF_RESERVE_END;
        if (tl_buf_add(&out->front.writer.out, &end, 1) < 0)
            return tl_fail_set(fail, TL_NOMEM, "out of memory");
    }
    return write_out(out, &out->front.writer.out, fail);
}

/* ---- files by path --------------------------------------------------------------------------- */

struct tl_stf_save {
    struct tl_stf_out *out;
    int fd;
    char *path;
    char *temporary; /* NULL: standard output */
};

static int write_fd(void *context, const uint8_t *p, size_t n)
{
    const struct tl_stf_save *const save = context;
    while (n) {
        const ssize_t done = write(save->fd, p, n);
        if (done < 0 && errno == EINTR)
            continue;
        if (done < 0)
            return errno == ENOSPC ? TL_NOSPACE : TL_IO;
        p += done;
        n -= (size_t)done;
    }
    return TL_OK;
}

static int rewrite_fd(void *context, const uint8_t *p, size_t n)
{
    const struct tl_stf_save *const save = context;
    return pwrite(save->fd, p, n, 0) == (ssize_t)n ? TL_OK : TL_IO;
}

static bool ends_with(const char *path, const char *end)
{
    const size_t n = strlen(path);
    return n >= strlen(end) && strcmp(path + n - strlen(end), end) == 0;
}

uint8_t tl_stf_format_of(const char *path)
{
    return ends_with(path, ".zstf") ? TL_STF_FILE_ZSTF : TL_STF_FILE_PLAIN;
}

static int open_temporary(struct tl_stf_save *save, const char *path)
{
    if (strcmp(path, "-") == 0) {
        save->fd = dup(STDOUT_FILENO);
        return save->fd < 0 ? TL_IO : TL_OK;
    }
    save->path = strdup(path);
    if (!save->path || asprintf(&save->temporary, "%s.part", path) < 0) {
        save->temporary = NULL;
        return TL_NOMEM;
    }
    save->fd = open(save->temporary, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    return save->fd < 0 ? TL_IO : TL_OK;
}

int tl_stf_save_new(struct tl_stf_save **out, const char *path,
                    const struct tl_stf_out_options *options, struct tl_fail *fail)
{
    struct tl_stf_save *const save = calloc(1, sizeof *save);
    if (!save)
        return tl_fail_set(fail, TL_NOMEM, "out of memory");
    save->fd = -1;
    struct tl_stf_out_options chosen = {.format = ends_with(path, ".zstf") ? TL_STF_FILE_ZSTF
                                                                           : TL_STF_FILE_PLAIN};
    if (options)
        chosen = *options;
    int result = open_temporary(save, path);
    if (result == TL_IO)
        tl_fail_set(fail, TL_IO, "cannot create: %s", strerror(errno));
    const struct tl_stf_sink sink = {save, write_fd, rewrite_fd};
    if (result == TL_OK)
        result = tl_stf_out_new(&save->out, &chosen, &sink);
    if (result == TL_NOMEM)
        tl_fail_set(fail, TL_NOMEM, "out of memory");
    if (result < 0) {
        tl_stf_save_free(save);
        return result;
    }
    *out = save;
    return TL_OK;
}

struct tl_stf_out *tl_stf_save_out(struct tl_stf_save *save)
{
    return save->out;
}

int tl_stf_save_finish(struct tl_stf_save *save, struct tl_fail *fail)
{
    const int result = tl_stf_out_finish(save->out, fail);
    if (result < 0)
        return result;
    const int fd = save->fd;
    save->fd = -1;
    if (close(fd) < 0 || (save->temporary && rename(save->temporary, save->path) < 0))
        return tl_fail_set(fail, TL_IO, "cannot write: %s", strerror(errno));
    free(save->temporary);
    save->temporary = NULL;
    return TL_OK;
}

void tl_stf_save_free(struct tl_stf_save *save)
{
    if (!save)
        return;
    if (save->fd >= 0)
        close(save->fd);
    if (save->temporary)
        unlink(save->temporary);
    tl_stf_out_free(save->out);
    free(save->temporary);
    free(save->path);
    free(save);
}
