/* SPDX-License-Identifier: MIT */
/*
 * Keeps rows of shards on the heap, and many of them in a mapped scratch file. The file's blocks
 * are allocated before they are mapped, so that a full disk is an error and not a signal.
 */
#include "lake/shardrows.h"

#include "base/buf.h"
#include "store/backend.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define GROWTH ((size_t)16384) /* rows by which the file grows */
#define WARM   ((size_t)1024)  /* older rows are dropped from memory */

static size_t bytes_of(size_t rows)
{
    return rows * sizeof(struct tl_shard_row);
}

void tl_rows_fini(struct tl_rows *rows)
{
    if (rows->is_mapped) {
        munmap(rows->v, bytes_of(rows->cap));
        close(rows->file);
    } else {
        free(rows->v);
    }
    *rows = (struct tl_rows){0};
}

/* ---- the file ------------------------------------------------------------------------------- */

/* Map with room for `cap` rows, or NULL. The blocks are allocated before mapping, so that a full
 * disk is reported here and not by a signal. */
static struct tl_shard_row *map(int file, size_t cap)
{
    if (posix_fallocate(file, 0, (off_t)bytes_of(cap)) != 0)
        return NULL;
    void *const p = mmap(NULL, bytes_of(cap), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    return p == MAP_FAILED ? NULL : p;
}

/* Move the rows from the heap into a file. */
static bool move_out(struct tl_rows *rows, struct tl_backend *backend)
{
    struct tl_fail fail = {0};
    const size_t cap = rows->n + GROWTH;
    const int file = backend->ops->scratch(backend, &fail);
    struct tl_shard_row *const v = file >= 0 ? map(file, cap) : NULL;
    if (!v) {
        if (file >= 0)
            close(file);
        return false;
    }
    memcpy(v, rows->v, bytes_of(rows->n));
    free(rows->v);
    rows->v = v;
    rows->cap = cap;
    rows->file = file;
    rows->is_mapped = true;
    return true;
}

/* Move them back to the heap. */
static int move_in(struct tl_rows *rows)
{
    struct tl_rows heap = {.n = rows->n, .totals = rows->totals};
    const int r = tl_grow(&heap.v, &heap.cap, rows->n + 1, sizeof(*heap.v));
    if (r < 0)
        return r;
    memcpy(heap.v, rows->v, bytes_of(rows->n));
    tl_rows_fini(rows);
    *rows = heap;
    return TL_OK;
}

static bool grow_file(struct tl_rows *rows)
{
    const size_t cap = rows->n + GROWTH;
    struct tl_shard_row *const v = map(rows->file, cap);
    if (!v)
        return false;
    munmap(rows->v, bytes_of(rows->cap));
    rows->v = v;
    rows->cap = cap;
    return true;
}

static int make_room(struct tl_rows *rows, struct tl_backend *backend)
{
    if (rows->n < rows->cap)
        return TL_OK;
    if (rows->is_mapped)
        return grow_file(rows) ? TL_OK : move_in(rows);
    if (rows->n >= TL_ROWS_HEAP && move_out(rows, backend))
        return TL_OK;
    return tl_grow(&rows->v, &rows->cap, rows->n + 1, sizeof(*rows->v));
}

/* ---- rows ----------------------------------------------------------------------------------- */

void tl_rows_times_add(struct tl_rows_times *times, const struct tl_shard_row *row)
{
    if (row->anchors == 0)
        return;
    if (times->anchors == 0)
        times->first = row->anchor_first.time;
    times->last = row->anchor_last.time;
    times->anchors += row->anchors;
}

static void count(struct tl_rows_totals *t, const struct tl_shard_row *row)
{
    t->events += row->events;
    t->gaps += row->gaps;
    t->bytes += row->size;
    tl_rows_times_add(&t->times, row);
}

int tl_rows_add(struct tl_rows *rows, const struct tl_shard_row *row, struct tl_backend *backend)
{
    const int r = make_room(rows, backend);
    if (r < 0)
        return r;
    rows->v[rows->n++] = *row;
    count(&rows->totals, row);
    if (rows->is_mapped && rows->n % WARM == 0)
        (void)madvise(rows->v, bytes_of(rows->cap), MADV_DONTNEED); /* the file has it */
    return TL_OK;
}

void tl_rows_replace(struct tl_rows *rows, const struct tl_shard_row *row)
{
    rows->totals = (struct tl_rows_totals){0};
    for (size_t i = 0; i < rows->n; i++) {
        if (rows->v[i].number == row->number)
            rows->v[i] = *row;
        count(&rows->totals, &rows->v[i]);
    }
}

/* ---- copies --------------------------------------------------------------------------------- */

int tl_rows_copy(struct tl_rows_copy *out, const struct tl_rows *rows, size_t more)
{
    *out = (struct tl_rows_copy){0};
    if (rows->is_mapped && rows->cap - rows->n >= more) {
        /* Rows written after these are private to the copy. */
        const size_t bytes = bytes_of(rows->n + more);
        void *const v = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE, rows->file, 0);
        if (v == MAP_FAILED)
            return TL_NOMEM;
        *out = (struct tl_rows_copy){v, bytes};
        return TL_OK;
    }
    out->v = malloc(bytes_of(rows->n + more + 1));
    if (!out->v)
        return TL_NOMEM;
    if (rows->n > 0)
        memcpy(out->v, rows->v, bytes_of(rows->n));
    return TL_OK;
}

void tl_rows_copy_fini(struct tl_rows_copy *copy)
{
    if (copy->mapped > 0)
        munmap(copy->v, copy->mapped);
    else
        free(copy->v);
    *copy = (struct tl_rows_copy){0};
}
