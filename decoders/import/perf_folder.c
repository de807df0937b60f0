/* SPDX-License-Identifier: MIT */
/*
 * The records of the other files are inserted behind those of the first, and the offsets of its
 * features are moved accordingly, so that all that follows sees one ordinary file. Files are named
 * as pieces instead of copied, because their size may exceed the memory.
 */
#include "import/perf_folder.h"

#include "perf/reader.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    HEADER = 104,
    DATA_AT = 40,
    DATA_SIZE = 48,
    FEATURES = 72,
    SECTION = 16, /* {u64 offset, u64 size} of a feature */
    MAX_FILES = 65536,
    HEAD_MAX = 1 << 26
};

/* A file `data`, read up to its records and after them. */
struct folder {
    char path[4096]; /* path of `data` */
    size_t stem;     /* bytes of it before ".N" */
    FILE *file;
    bool swap;
    uint64_t size, data_at, data_size; /* bytes of the file; bytes of its records */
    uint64_t more;                     /* total bytes of the other files */
    size_t n;                          /* number of other files */
    struct tl_buf head, sections;
};

static uint64_t file_size(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISREG(st.st_mode) ? (uint64_t)st.st_size : UINT64_MAX;
}

static char *name_part(struct folder *f, size_t i)
{
    snprintf(f->path + f->stem, sizeof f->path - f->stem, ".%zu", i);
    return f->path;
}

static void put64(const struct folder *f, uint8_t *p, uint64_t v)
{
    v = f->swap ? __builtin_bswap64(v) : v;
    memcpy(p, &v, sizeof v);
}

/* Read `n` more bytes of the file. */
static int read_some(struct folder *f, struct tl_buf *out, uint64_t n)
{
    if (n > HEAD_MAX)
        return TL_BAD;
    if (tl_buf_reserve(out, (size_t)n) < 0)
        return TL_NOMEM;
    const size_t got = fread(out->p + out->n, 1, (size_t)n, f->file);
    out->n += got;
    return got == n ? TL_OK : TL_BAD;
}

/* Returns TL_BAD: it cannot be combined with others. */
static int read_head(struct folder *f)
{
    int rc = read_some(f, &f->head, HEADER);
    if (rc < 0 || !tl_perf_is(f->head.p, HEADER))
        return rc < 0 ? rc : TL_BAD;
    f->swap = tl_le64(f->head.p) != TL_PERF_MAGIC;
    f->data_at = tl_perf_u64(f->swap, f->head.p + DATA_AT);
    f->data_size = tl_perf_u64(f->swap, f->head.p + DATA_SIZE);
    if (tl_perf_u64(f->swap, f->head.p + 8) != HEADER || f->data_at < HEADER ||
        f->data_at > f->size || f->data_size > f->size - f->data_at)
        return TL_BAD;
    return read_some(f, &f->head, f->data_at - HEADER);
}

static uint8_t *feature_byte(struct folder *f, unsigned feature)
{
    return f->head.p + FEATURES + (f->swap ? feature / 8 ^ 7 : feature / 8);
}

/* Adjust the features' sections, which now follow the other files' records; drop those about the
 * folder and about positions in the file. */
static int move_features(struct folder *f)
{
    static const unsigned gone[] = {TL_PERF_FEATURE_AUXTRACE, TL_PERF_FEATURE_DIR_FORMAT};
    uint64_t moved = f->more;
    size_t n = 0;
    for (size_t i = 0; i < sizeof gone / sizeof *gone; i++)
        moved -= *feature_byte(f, gone[i]) >> gone[i] % 8 & 1 ? SECTION : 0;
    for (unsigned k = 0; k < TL_PERF_FEATURES; k++)
        n += *feature_byte(f, k) >> k % 8 & 1;
    if (fseeko(f->file, (off_t)(f->data_at + f->data_size), SEEK_SET) != 0)
        return TL_BAD;
    int rc = read_some(f, &f->sections, n * SECTION);
    size_t kept = 0, at = 0;
    for (unsigned k = 0; rc == TL_OK && k < TL_PERF_FEATURES; k++) {
        if (!(*feature_byte(f, k) >> k % 8 & 1))
            continue;
        uint8_t *const section = f->sections.p + at;
        at += SECTION;
        if (k == gone[0] || k == gone[1])
            continue;
        put64(f, section, tl_perf_u64(f->swap, section) + moved);
        memmove(f->sections.p + kept, section, SECTION);
        kept += SECTION;
    }
    f->sections.n = kept;
    for (size_t i = 0; i < sizeof gone / sizeof *gone; i++)
        *feature_byte(f, gone[i]) &= (uint8_t) ~(1u << gone[i] % 8);
    const uint64_t after = f->data_at + f->data_size + at;
    put64(f, f->head.p + DATA_SIZE, f->data_size + f->more);
    f->data_at = after; /* start of the features' contents */
    return rc;
}

static int add_parts(struct folder *f, struct tl_bundle_capture *capture)
{
    int rc = TL_OK;
    for (size_t i = 0; rc == TL_OK && i < f->n; i++)
        rc = tl_bundle_add(capture, name_part(f, i), 0, UINT64_MAX);
    f->path[f->stem] = 0;
    return rc;
}

/* Combine `data` and the other files to one. */
static int put_together(struct folder *f, struct tl_bundle_capture *capture)
{
    int rc = read_head(f);
    const uint64_t data_at = f->data_at, data_size = f->data_size;
    if (rc == TL_OK && data_size > 0)
        rc = move_features(f);
    if (rc == TL_NOMEM)
        return rc;
    if (rc < 0 || data_size == 0) { /* truncated recording: records extend to the end */
        rc = tl_bundle_add(capture, f->path, 0, UINT64_MAX);
        return rc < 0 ? rc : add_parts(f, capture);
    }
    rc = tl_bundle_add_bytes(capture, f->path, (struct tl_bytes){f->head.p, f->head.n});
    if (rc == TL_OK)
        rc = tl_bundle_add(capture, f->path, data_at, data_size);
    if (rc == TL_OK)
        rc = add_parts(f, capture);
    if (rc == TL_OK)
        rc = tl_bundle_add_bytes(capture, f->path, (struct tl_bytes){f->sections.p, f->sections.n});
    return rc < 0 ? rc : tl_bundle_add(capture, f->path, f->data_at, UINT64_MAX);
}

int tl_perf_folder_read(struct tl_bundle_capture *capture, const char *input)
{
    struct stat st;
    struct folder *const f = calloc(1, sizeof *f);
    if (!f)
        return TL_NOMEM;
    int rc;
    const bool is_folder =
        stat(input, &st) == 0 && S_ISDIR(st.st_mode) &&
        snprintf(f->path, sizeof f->path - 16, "%s/data", input) < (int)sizeof f->path - 16 &&
        access(f->path, R_OK) == 0;
    f->stem = strlen(f->path);
    f->size = is_folder ? file_size(f->path) : 0;
    for (uint64_t size; is_folder && f->n < MAX_FILES; f->more += size, f->n++)
        if ((size = file_size(name_part(f, f->n))) == UINT64_MAX)
            break;
    f->path[f->stem] = 0;
    f->file = f->n > 0 ? fopen(f->path, "rbe") : NULL;
    if (f->file)
        rc = put_together(f, capture);
    else
        rc = tl_bundle_add(capture, is_folder ? f->path : input, 0, UINT64_MAX);
    if (f->file)
        fclose(f->file);
    tl_buf_fini(&f->head);
    tl_buf_fini(&f->sections);
    free(f);
    return rc;
}
