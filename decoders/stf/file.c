/* SPDX-License-Identifier: MIT */
/*
 * Reads STF files by path, whatever they are wrapped in. A .zstf is read chunk by chunk through its
 * index, everything else as a stream.
 */
#include "stf/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define READ_PIECE  (256u << 10)
#define WHOLE_CHUNK (UINT64_C(16) << 20) /* larger chunks are streamed, to limit memory */

struct tl_stf_file {
    int fd; /* -1: memory */
    struct tl_bytes memory;
    int wrap;
    struct tl_zstf *zstf; /* the index; used for reading chunks unless there is an unpacker */
    uint64_t chunk;       /* next chunk to read */
    struct tl_stf_unpack *unpack; /* streams everything, from the front or from a chunk */
    struct tl_buf raw;            /* bytes of the file */
    struct tl_bytes in;           /* the part of `raw` not unpacked yet */
    struct tl_buf plain;
    bool raw_end; /* end of file reached */
    struct tl_fail warning;
};

static int read_fd(void *context, uint64_t offset, uint8_t *p, size_t n, struct tl_fail *fail)
{
    const struct tl_stf_file *const file = context;
    while (n) {
        const ssize_t got = pread(file->fd, p, n, (off_t)offset);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return tl_fail_set(fail, TL_IO, "cannot read: %s", strerror(errno));
        if (got == 0)
            return tl_fail_at(fail, TL_BAD, offset, "the file is cut");
        p += got;
        n -= (size_t)got;
        offset += (uint64_t)got;
    }
    return TL_OK;
}

/* Read at least `min` more raw bytes into `in`, unless the file ends. Returns TL_EOF: there are
 * none. */
static int read_raw(struct tl_stf_file *file, size_t min, struct tl_fail *fail)
{
    if (file->fd < 0)
        return TL_EOF;
    if (tl_buf_reserve(&file->raw, READ_PIECE) < 0)
        return tl_fail_set(fail, TL_NOMEM, "out of memory");
    size_t n = 0;
    while (n < min) {
        const ssize_t got = read(file->fd, file->raw.p + n, READ_PIECE - n);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return tl_fail_set(fail, TL_IO, "cannot read: %s", strerror(errno));
        if (got == 0)
            break;
        n += (size_t)got;
    }
    file->in = (struct tl_bytes){file->raw.p, n};
    return n ? TL_OK : TL_EOF;
}

static void warn_strange(struct tl_stf_file *file)
{
    uint64_t at, n = tl_stf_unpack_strange(file->unpack, &at);
    if (n && !file->warning.text[0])
        tl_fail_at(&file->warning, TL_BAD, at, "%llu bytes between chunks belong to none",
                   (unsigned long long)n);
}

/* Get the next plain bytes from the unpacker. */
static int next_unpacked(struct tl_stf_file *file, struct tl_bytes *out, struct tl_fail *fail)
{
    tl_buf_reset(&file->plain);
    for (;;) {
        const size_t before = file->in.n;
        int result = tl_stf_unpack_push(file->unpack, &file->in, &file->plain, fail);
        if (result < 0)
            return result;
        if (file->plain.n) {
            *out = (struct tl_bytes){file->plain.p, file->plain.n};
            return TL_OK;
        }
        if (file->in.n && file->in.n < before)
            continue;
        if (file->in.n)
            return tl_fail_set(fail, TL_BAD, "the compressed stream does not go on");
        if (file->raw_end)
            return TL_EOF;
        result = read_raw(file, 1, fail);
        if (result == TL_EOF) {
            file->raw_end = true;
            warn_strange(file);
            result = tl_stf_unpack_finish(file->unpack, fail);
        }
        if (result < 0)
            return result;
    }
}

static void warn_chunk(struct tl_stf_file *file, uint64_t chunk)
{
    if (!file->warning.text[0])
        tl_fail_at(&file->warning, TL_BAD, tl_zstf_chunk(file->zstf, chunk)->offset,
                   "chunk %llu is not one frame of the size that the index says",
                   (unsigned long long)chunk);
}

static int next_chunk(struct tl_stf_file *file, struct tl_bytes *out, struct tl_fail *fail)
{
    tl_buf_reset(&file->plain);
    while (file->chunk < tl_zstf_chunks(file->zstf)) {
        bool odd = false;
        const uint64_t chunk = file->chunk++;
        const int result = tl_zstf_read(file->zstf, chunk, &file->plain, &odd, fail);
        if (odd)
            warn_chunk(file, chunk);
        if (result < 0 && file->plain.n) {
            /* Return what could be unpacked of a damaged chunk first, then the failure. */
            file->chunk = chunk;
            if (file->in.p == file->plain.p && file->in.n == file->plain.n)
                return result;
            file->in = (struct tl_bytes){file->plain.p, file->plain.n};
            *out = file->in;
            return TL_OK;
        }
        if (result < 0)
            return result;
        if (file->plain.n) {
            *out = (struct tl_bytes){file->plain.p, file->plain.n};
            return TL_OK;
        }
    }
    return TL_EOF;
}

static int next_memory(struct tl_stf_file *file, struct tl_bytes *out)
{
    *out = file->memory;
    file->memory.p += file->memory.n;
    file->memory.n = 0;
    return out->n ? TL_OK : TL_EOF;
}

static int source_next(void *context, struct tl_bytes *out, struct tl_fail *fail)
{
    struct tl_stf_file *const file = context;
    if (file->unpack)
        return next_unpacked(file, out, fail);
    if (file->zstf)
        return next_chunk(file, out, fail);
    if (file->fd < 0)
        return next_memory(file, out);
    if (file->in.n == 0) {
        const int result = read_raw(file, 1, fail);
        if (result < 0)
            return result;
    }
    *out = file->in;
    file->in.n = 0;
    return TL_OK;
}

/* Start streaming at the chunk at `offset`. */
static int stream_from(struct tl_stf_file *file, uint64_t offset, struct tl_fail *fail)
{
    if (file->fd >= 0 && lseek(file->fd, (off_t)offset, SEEK_SET) < 0)
        return tl_fail_set(fail, TL_IO, "cannot seek: %s", strerror(errno));
    file->in = (struct tl_bytes){0};
    if (file->fd < 0)
        file->in = (struct tl_bytes){file->memory.p + offset, file->memory.n - (size_t)offset};
    file->raw_end = false;
    const int result = tl_stf_unpack_chunks(file->unpack, offset, tl_zstf_index(file->zstf));
    return result < 0 ? tl_fail_set(fail, TL_NOMEM, "out of memory") : TL_OK;
}

static int source_seek(void *context, uint64_t insn, uint64_t *first, uint64_t *pc,
                       struct tl_fail *fail)
{
    struct tl_stf_file *const file = context;
    const uint64_t markers = tl_zstf_markers(file->zstf);
    const uint64_t chunk = insn / markers;
    if (chunk >= tl_zstf_chunks(file->zstf))
        return tl_fail_set(fail, TL_NOTFOUND, "the trace has no instruction %llu",
                           (unsigned long long)insn);
    file->chunk = chunk;
    *first = chunk * markers;
    *pc = tl_zstf_chunk(file->zstf, chunk)->start_pc;
    return file->unpack ? stream_from(file, tl_zstf_chunk(file->zstf, chunk)->offset, fail) : TL_OK;
}

/* Are the chunks small enough to be held in memory? */
static bool chunks_fit(struct tl_zstf *zstf)
{
    for (uint64_t i = 0; i < tl_zstf_chunks(zstf); i++) {
        if (tl_zstf_chunk(zstf, i)->size > WHOLE_CHUNK)
            return false;
    }
    return true;
}

static int open_zstf(struct tl_stf_file *file, struct tl_fail *fail)
{
    struct tl_fail why = {0};
    int result;
    if (file->fd < 0) {
        result = tl_zstf_open_bytes(&file->zstf, file->memory, &why);
    } else {
        struct stat st;
        if (fstat(file->fd, &st) < 0 || !S_ISREG(st.st_mode))
            return TL_OK;
        const struct tl_zstf_input input = {file, read_fd, (uint64_t)st.st_size};
        result = tl_zstf_open(&file->zstf, &input, &why);
    }
    if (result == TL_NOMEM || result == TL_IO) {
        if (fail)
            *fail = why;
        return result;
    }
    if (result < 0)
        file->warning = why;
    return TL_OK;
}

/* Read chunk by chunk if they are small enough, else stream from the first one. */
static int begin_chunks(struct tl_stf_file *file, struct tl_fail *fail)
{
    file->in = (struct tl_bytes){0};
    if (chunks_fit(file->zstf))
        return TL_OK;
    if (tl_stf_unpack_new(&file->unpack) < 0)
        return tl_fail_set(fail, TL_NOMEM, "out of memory");
    return stream_from(file, TL_ZSTF_HEAD, fail);
}

/* Examine the first bytes and set up the reader for the format. */
static int begin_file(struct tl_stf_file *file, struct tl_fail *fail)
{
    int result = file->fd < 0 ? TL_OK : read_raw(file, TL_ZSTF_HEAD, fail);
    if (file->fd < 0)
        file->in = file->memory;
    if (result < 0 && result != TL_EOF)
        return result;
    file->wrap = tl_stf_sniff(file->in);
    if (file->wrap < 0)
        return tl_fail_at(fail, TL_BAD, 0,
                          file->in.n
                              ? "neither STF nor .zstf, nor gzip, xz or zstd of STF: wrong file?"
                              : "no STF trace: it is empty");
    if (file->wrap == TL_STF_PLAIN) {
        if (file->fd < 0)
            file->in.n = 0;
        return TL_OK;
    }
    if (file->wrap == TL_STF_ZSTF) {
        result = open_zstf(file, fail);
        if (result < 0)
            return result;
        if (file->zstf)
            return begin_chunks(file, fail);
    }
    return tl_stf_unpack_new(&file->unpack);
}

static int open_file(struct tl_stf_file **out, int fd, struct tl_bytes memory, struct tl_fail *fail)
{
    struct tl_stf_file *const file = calloc(1, sizeof *file);
    if (!file)
        return tl_fail_set(fail, TL_NOMEM, "out of memory");
    file->fd = fd;
    file->memory = memory;
    const int result = begin_file(file, fail);
    if (result < 0) {
        file->fd = -1;
        tl_stf_file_close(file);
        return result;
    }
    *out = file;
    return TL_OK;
}

int tl_stf_file_open(struct tl_stf_file **out, const char *path, struct tl_fail *fail)
{
    const bool standard = strcmp(path, "-") == 0;
    const int fd = standard ? dup(STDIN_FILENO) : open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return tl_fail_set(fail, TL_IO, "cannot open: %s", strerror(errno));
    const int result = open_file(out, fd, (struct tl_bytes){0}, fail);
    if (result < 0)
        close(fd);
    return result;
}

int tl_stf_file_bytes(struct tl_stf_file **out, struct tl_bytes bytes, struct tl_fail *fail)
{
    return open_file(out, -1, bytes, fail);
}

void tl_stf_file_close(struct tl_stf_file *file)
{
    if (!file)
        return;
    if (file->fd >= 0)
        close(file->fd);
    tl_zstf_close(file->zstf);
    tl_stf_unpack_free(file->unpack);
    tl_buf_fini(&file->raw);
    tl_buf_fini(&file->plain);
    free(file);
}

struct tl_stf_source tl_stf_file_source(struct tl_stf_file *file)
{
    return (struct tl_stf_source){file, source_next, file->zstf ? source_seek : NULL};
}

int tl_stf_file_wrap(const struct tl_stf_file *file)
{
    return file->wrap;
}

struct tl_zstf *tl_stf_file_zstf(struct tl_stf_file *file)
{
    return file->zstf;
}

const struct tl_fail *tl_stf_file_warning(const struct tl_stf_file *file)
{
    return file->warning.text[0] ? &file->warning : NULL;
}
