/* SPDX-License-Identifier: MIT */
/*
 * Reads a capture's bytes from logs and packed segments while both change. A segment can be packed
 * and its log removed between finding and reading it, so that a failed read is tried again in the
 * other form.
 */
#include "raw/packed.h"
#include "raw/segment.h"
#include "raw/spool.h"

#include "base/cancel.h"

#include <stdio.h>
#include <stdlib.h>

#define OPEN_PACKED 64 /* packed segments that a reader keeps open */

struct tl_spool_reader {
    struct tl_backend *backend;
    char name[64];
    struct tl_segments segments;
    size_t at_segment;  /* index of the open one */
    struct tl_log *log; /* NULL: none is open, or a packed one */
    uint64_t log_at;    /* position of the next block in the log */
    uint64_t offset;    /* capture offset of the next block */
    uint64_t arrival;   /* arrival of the data read last */
    bool rejoined;      /* the connection was lost before them */
    /* For packed segments: */
    struct tl_packed *packed; /* the current one; NULL: none, or a log */
    struct tl_packed open[OPEN_PACKED];
    unsigned n_open, next_open; /* `next_open` is replaced next */
    bool opened;                /* something was opened during the current call */
    size_t frame;               /* the current one's frame in `data`; packed->n: none */
    struct tl_buf data, arrivals;
    struct tl_packed_run *runs;
    size_t n_runs;
};

int tl_spool_reader_new(struct tl_spool_reader **out, struct tl_backend *backend, const char *name)
{
    struct tl_spool_reader *reader = calloc(1, sizeof(*reader));
    if (!reader)
        return TL_NOMEM;
    reader->backend = backend;
    snprintf(reader->name, sizeof(reader->name), "%s", name);
    *out = reader;
    return TL_OK;
}

static void close_log(struct tl_spool_reader *reader)
{
    if (reader->log)
        reader->log->ops->log_close(reader->log);
    reader->log = NULL;
}

/* There is no current segment; a packed one stays open. */
static void leave(struct tl_spool_reader *reader)
{
    close_log(reader);
    if (reader->packed)
        tl_packed_rest(reader->packed);
    reader->packed = NULL;
}

/* Close everything that is open: what was known of the segments is not used any more. */
static void close_all(struct tl_spool_reader *reader)
{
    close_log(reader);
    for (unsigned i = 0; i < reader->n_open; i++)
        tl_packed_close(&reader->open[i]);
    reader->n_open = reader->next_open = 0;
    reader->packed = NULL;
}

void tl_spool_reader_free(struct tl_spool_reader *reader)
{
    if (!reader)
        return;
    close_all(reader);
    tl_segments_fini(&reader->segments);
    tl_buf_fini(&reader->data);
    tl_buf_fini(&reader->arrivals);
    free(reader);
}

void tl_spool_reader_rest(struct tl_spool_reader *reader)
{
    leave(reader);
    tl_buf_fini(&reader->data);
    tl_buf_fini(&reader->arrivals);
}

const char *tl_spool_reader_name(const struct tl_spool_reader *reader)
{
    return reader->name;
}

/* Keep a packed segment open, as the current one. */
static void use_packed(struct tl_spool_reader *reader, const struct tl_packed *packed)
{
    const unsigned i = reader->next_open;
    if (i < reader->n_open)
        tl_packed_close(&reader->open[i]);
    else
        reader->n_open = i + 1;
    reader->open[i] = *packed;
    reader->next_open = (i + 1) % OPEN_PACKED;
    reader->packed = &reader->open[i];
    reader->frame = packed->n;
}

/* A segment opened for reading, in either form. */
struct opened {
    struct tl_log *log; /* NULL: it is packed */
    struct tl_packed packed;
};

static void close_opened(struct opened *opened)
{
    if (opened->log)
        opened->log->ops->log_close(opened->log);
    tl_packed_close(&opened->packed);
}

/* A log may have been packed and removed since it was listed. */
static int open_segment(struct tl_backend *backend, const char *name,
                        const struct tl_segment *segment, char key[static 128], struct opened *out,
                        struct tl_fail *fail)
{
    uint64_t size;
    int r = TL_NOTFOUND;
    *out = (struct opened){0};
    if (!segment->packed)
        r = backend->ops->log_open(backend, tl_segment_key(key, name, segment->first), false,
                                   &out->log, &size, fail);
    if (r != TL_NOTFOUND)
        return r;
    return tl_packed_open(&out->packed, backend, name, segment->first, fail);
}

/* Open the segment that contains `offset`, at its first block. */
static int seek_segment(struct tl_spool_reader *reader, uint64_t offset, struct tl_fail *fail)
{
    leave(reader);
    reader->opened = true;
    int r = tl_segments_list(&reader->segments, reader->backend, reader->name, fail);
    if (r < 0)
        return r;
    const long i = tl_segments_find(&reader->segments, offset);
    if (i < 0)
        return tl_fail_at(fail, TL_BAD, offset, "the raw capture has nothing here");
    char key[128];
    struct opened opened;
    r = open_segment(reader->backend, reader->name, &reader->segments.v[i], key, &opened, fail);
    if (r < 0)
        return r;
    reader->log = opened.log;
    if (!opened.log)
        use_packed(reader, &opened.packed);
    reader->at_segment = (size_t)i;
    reader->log_at = TL_SEGMENT_HEAD;
    reader->offset = reader->segments.v[i].first;
    return TL_OK;
}

static bool at_next_segment(const struct tl_spool_reader *reader)
{
    const size_t next = reader->at_segment + 1;
    return next < reader->segments.n && reader->segments.v[next].first <= reader->offset;
}

static bool contains(const struct tl_packed *packed, uint64_t offset)
{
    return packed && offset >= packed->first && offset < tl_packed_end(packed);
}

/* Is `offset` in a packed segment that is open? It becomes the current one. */
static bool in_packed(struct tl_spool_reader *reader, uint64_t offset)
{
    if (contains(reader->packed, offset))
        return true;
    for (unsigned i = 0; i < reader->n_open; i++)
        if (contains(&reader->open[i], offset)) {
            leave(reader);
            reader->packed = &reader->open[i];
            reader->frame = reader->packed->n;
            return true;
        }
    return false;
}

#define IN_PACKED 1

/* Advance to the block that contains `offset`; its head goes to `block`. IN_PACKED: it is in a
 * packed segment, which is open. */
static int seek_block(struct tl_spool_reader *reader, uint64_t offset, struct tl_spool_block *block,
                      struct tl_fail *fail)
{
    bool fresh = false;
    unsigned gone = 0; /* how often the segment was packed between finding and reading it */
    for (;;) {
        int r = TL_EOF;
        if (in_packed(reader, offset))
            return IN_PACKED;
        if (reader->log && reader->offset <= offset && !at_next_segment(reader))
            r = tl_block_read_head(reader->log, reader->log_at, reader->offset, block, fail);
        if (r >= 0 && offset < block->offset + block->n)
            return TL_OK;
        if (r >= 0) {
            reader->log_at += block->head + block->n;
            reader->offset += block->n;
        } else if (((r == TL_EOF || r == TL_BAD) && !fresh) || (r == TL_NOTFOUND && gone++ < 3)) {
            /* The segment may end here or have been packed, or the reader is elsewhere. */
            r = seek_segment(reader, offset, fail);
            fresh = true;
            if (r < 0)
                return r;
        } else {
            close_all(reader);
            return r == TL_EOF ? tl_fail_at(fail, TL_BAD, offset, "raw bytes are missing here") : r;
        }
        if (fresh && !reader->packed && reader->offset > offset)
            return tl_fail_at(fail, TL_BAD, offset, "raw bytes are missing here");
    }
}

/* Data from `offset` on of what was stored with this arrival at `begin` have been read. */
static void note_arrival(struct tl_spool_reader *reader, uint64_t arrival, uint64_t begin,
                         uint64_t offset)
{
    reader->arrival = arrival & ~TL_ARRIVAL_REJOINED;
    reader->rejoined = (arrival & TL_ARRIVAL_REJOINED) != 0 && begin == offset;
}

/*
 * From the open packed segment: the rest of the bytes that arrived together with the one at
 * `offset`.
 */
static int read_packed(struct tl_spool_reader *reader, uint64_t offset, uint64_t end,
                       struct tl_buf *out, struct tl_fail *fail)
{
    const size_t i = tl_packed_find(reader->packed, offset);
    const struct tl_packed_frame *const frame = &reader->packed->frames[i];
    if (reader->frame != i) {
        reader->frame = reader->packed->n;
        const int r = tl_packed_read(reader->packed, i, &reader->data, &reader->arrivals,
                                     &reader->runs, &reader->n_runs, fail);
        if (r < 0)
            return r;
        reader->frame = i;
    }
    uint64_t run_end = frame->offset;
    size_t run = 0;
    while (run_end <= offset && run < reader->n_runs)
        run_end += reader->runs[run++].n;
    const struct tl_packed_run *const last = &reader->runs[run - 1];
    note_arrival(reader, last->arrival, run_end - last->n, offset);
    const uint64_t to = run_end < end ? run_end : end;
    return tl_buf_add(out, reader->data.p + (offset - frame->offset), (size_t)(to - offset));
}

/* Read the current block, from `offset` on. */
static int read_block(struct tl_spool_reader *reader, struct tl_spool_block *block, uint64_t offset,
                      uint64_t end, struct tl_buf *out, struct tl_fail *fail)
{
    const size_t before = out->n;
    int r = tl_block_read_data(reader->log, reader->log_at, block, out, fail);
    if (r == TL_BAD || r == TL_NOTFOUND) {
        /* It may be left by a failed write, superseded by a newer segment; or have just been
         * packed. */
        close_all(reader);
        r = seek_block(reader, offset, block, fail);
        if (r == IN_PACKED)
            return read_packed(reader, offset, end, out, fail);
        if (r >= 0)
            r = tl_block_read_data(reader->log, reader->log_at, block, out, fail);
    }
    if (r < 0)
        return r;
    reader->log_at += block->head + block->n;
    reader->offset += block->n;
    note_arrival(reader, block->arrival, block->offset, offset);
    const size_t skip = (size_t)(offset - block->offset);
    size_t n = block->n - skip;
    if (n > end - offset)
        n = (size_t)(end - offset);
    memmove(out->p + before, out->p + before + skip, n);
    out->n = before + n;
    return TL_OK;
}

static int read_once(struct tl_spool_reader *reader, uint64_t offset, uint64_t end,
                     struct tl_buf *out, struct tl_fail *fail)
{
    struct tl_spool_block block;
    const int r = seek_block(reader, offset, &block, fail);
    if (r < 0)
        return r;
    return r == IN_PACKED ? read_packed(reader, offset, end, out, fail)
                          : read_block(reader, &block, offset, end, out, fail);
}

int tl_spool_read(struct tl_spool_reader *reader, uint64_t offset, uint64_t end, struct tl_buf *out,
                  struct tl_fail *fail)
{
    if (offset >= end)
        return TL_EOF;
    reader->opened = false;
    int r = read_once(reader, offset, end, out, fail);
    if ((r == TL_BAD || r == TL_NOTFOUND) && !reader->opened) {
        /* What was opened earlier may have been rewritten since. */
        close_all(reader);
        r = read_once(reader, offset, end, out, fail);
    }
    return r;
}

int tl_spool_read_again(void *reader, uint64_t offset, uint8_t *out, size_t n)
{
    struct tl_buf bytes = {0};
    int r = TL_OK;
    while (r >= 0 && n > 0) {
        tl_buf_reset(&bytes);
        r = tl_spool_read(reader, offset, offset + n, &bytes, NULL);
        if (r < 0)
            break;
        memcpy(out, bytes.p, bytes.n);
        offset += bytes.n;
        out += bytes.n;
        n -= bytes.n;
    }
    tl_buf_fini(&bytes);
    return r;
}

uint64_t tl_spool_reader_arrival(const struct tl_spool_reader *reader)
{
    return reader->arrival;
}

bool tl_spool_reader_rejoined(const struct tl_spool_reader *reader)
{
    return reader->rejoined;
}

/* ---- damage -------------------------------------------------------------------------------- */

/* End of the segment's part of a capture of `end` bytes. */
static uint64_t share_of(const struct tl_segments *segments, size_t i, uint64_t end)
{
    const uint64_t next = i + 1 < segments->n ? segments->v[i + 1].first : end;
    return next < end ? next : end;
}

/* The first intact frame that ends after `offset`. */
static int skip_packed(struct tl_packed *packed, uint64_t offset, uint64_t *next,
                       struct tl_fail *fail)
{
    struct tl_buf data = {0}, arrivals = {0};
    struct tl_packed_run *runs;
    size_t n;
    int r = TL_BAD;
    for (size_t i = tl_packed_find(packed, offset); r == TL_BAD && i < packed->n; i++) {
        const struct tl_packed_frame *const f = &packed->frames[i];
        if (f->offset + f->n <= offset || f->offset >= *next)
            continue;
        r = tl_packed_read(packed, i, &data, &arrivals, &runs, &n, fail);
        if (r >= 0)
            *next = f->offset > offset ? f->offset : offset;
    }
    tl_buf_fini(&data);
    tl_buf_fini(&arrivals);
    return r == TL_BAD ? TL_OK : r;
}

/* The same for blocks; the reader is then at that block. */
static int skip_blocks(struct tl_spool_reader *reader, uint64_t first, uint64_t offset,
                       uint64_t *next, struct tl_fail *fail)
{
    struct tl_segment_walk walk;
    struct tl_segment_piece piece;
    int r;
    tl_segment_walk_begin(&walk, reader->log, first, *next);
    while ((r = tl_segment_walk_next(&walk, true, &piece, fail)) >= 0)
        if (!piece.damaged && piece.offset + piece.n > offset) {
            *next = piece.offset > offset ? piece.offset : offset;
            reader->log_at = piece.at;
            reader->offset = piece.offset;
            break;
        }
    tl_segment_walk_end(&walk);
    return r == TL_EOF ? TL_OK : r;
}

int tl_spool_skip(struct tl_spool_reader *reader, uint64_t offset, uint64_t end, uint64_t *next,
                  struct tl_fail *fail)
{
    *next = end;
    close_all(reader);
    int r = seek_segment(reader, offset, fail);
    const long i = tl_segments_find(&reader->segments, offset);
    if (r == TL_BAD && i < 0)
        r = TL_OK;
    if (r < 0)
        return r;
    *next = share_of(&reader->segments, (size_t)i, end); /* before the first segment: skip to it */
    if (i < 0)
        return TL_OK;
    if (reader->packed)
        return skip_packed(reader->packed, offset, next, fail);
    r = skip_blocks(reader, reader->segments.v[i].first, offset, next, fail);
    if (r < 0)
        close_all(reader);
    return r;
}

int tl_spool_end(struct tl_backend *backend, const char *name, uint64_t *end, struct tl_fail *fail)
{
    struct tl_segments segments = {0};
    struct opened opened;
    char key[128];
    *end = 0;
    int r = tl_segments_list(&segments, backend, name, fail);
    if (r >= 0 && segments.n > 0) {
        const struct tl_segment *const last = &segments.v[segments.n - 1];
        r = open_segment(backend, name, last, key, &opened, fail);
        if (r >= 0) {
            struct tl_segment_extent extent = {.end = tl_packed_end(&opened.packed)};
            if (opened.log)
                r = tl_segment_scan(opened.log, last->first, &extent, fail);
            close_opened(&opened);
            *end = extent.end;
        }
    }
    tl_segments_fini(&segments);
    return r < 0 ? r : TL_OK;
}

struct audit {
    int (*each)(void *context, const struct tl_spool_damage *damage);
    void *context;
};

static int audit_segment(const struct audit *audit, struct tl_log *log, const char *key,
                         uint64_t first, uint64_t end, struct tl_fail *fail)
{
    struct tl_segment_walk walk;
    struct tl_segment_piece piece;
    bool head;
    int r = tl_segment_head_read(log, first, &head, fail);
    if (r >= 0 && !head) {
        const struct tl_spool_damage damage = {key, 0, first, 0};
        r = audit->each(audit->context, &damage);
    }
    tl_segment_walk_begin(&walk, log, first, end);
    while (r >= 0 && (r = tl_segment_walk_next(&walk, true, &piece, fail)) >= 0) {
        if (piece.damaged) {
            const struct tl_spool_damage damage = {key, piece.at, piece.offset, piece.n};
            r = audit->each(audit->context, &damage);
        }
        if (r >= 0)
            r = tl_cancel_rest();
    }
    tl_segment_walk_end(&walk);
    return r == TL_EOF ? TL_OK : r;
}

static int audit_packed(const struct audit *audit, struct tl_packed *packed, uint64_t end,
                        struct tl_fail *fail)
{
    struct tl_buf data = {0}, arrivals = {0};
    struct tl_packed_run *runs;
    size_t n;
    bool sound;
    int r = tl_packed_sound(packed, &sound, fail);
    if (r >= 0 && !sound) {
        const struct tl_spool_damage damage = {packed->key, 0, packed->first, 0};
        r = audit->each(audit->context, &damage);
    }
    for (size_t i = 0; r >= 0 && i < packed->n && packed->frames[i].offset < end; i++) {
        const struct tl_packed_frame *const f = &packed->frames[i];
        r = tl_packed_read(packed, i, &data, &arrivals, &runs, &n, fail);
        const struct tl_spool_damage damage = {packed->key, f->at, f->offset, f->n};
        if (r == TL_BAD)
            r = audit->each(audit->context, &damage);
        if (r >= 0)
            r = tl_cancel_rest();
    }
    const uint64_t last = tl_packed_end(packed);
    const struct tl_spool_damage damage = {packed->key, packed->size, last, end - last};
    if (r >= 0 && last < end)
        r = audit->each(audit->context, &damage);
    tl_buf_fini(&data);
    tl_buf_fini(&arrivals);
    return r;
}

int tl_spool_audit(struct tl_backend *backend, const char *name, uint64_t end,
                   int (*each)(void *context, const struct tl_spool_damage *damage), void *context,
                   struct tl_fail *fail)
{
    struct tl_segments segments = {0};
    const struct audit audit = {each, context};
    char key[128];
    int r = tl_segments_list(&segments, backend, name, fail);
    const uint64_t begin = r >= 0 && segments.n > 0 ? segments.v[0].first : end;
    if (r >= 0 && begin > 0 && end > 0) {
        tl_segment_key(key, name, 0);
        const struct tl_spool_damage damage = {key, 0, 0, begin < end ? begin : end};
        r = each(context, &damage);
    }
    for (size_t i = 0; r >= 0 && i < segments.n && segments.v[i].first < end; i++) {
        struct opened opened;
        r = open_segment(backend, name, &segments.v[i], key, &opened, fail);
        if (r < 0)
            break;
        const uint64_t share = share_of(&segments, i, end);
        r = opened.log ? audit_segment(&audit, opened.log, key, segments.v[i].first, share, fail)
                       : audit_packed(&audit, &opened.packed, share, fail);
        close_opened(&opened);
    }
    tl_segments_fini(&segments);
    return r < 0 ? r : TL_OK;
}

static int mend_segment(struct tl_log *log, uint64_t first, struct tl_fail *fail)
{
    uint8_t head[TL_SEGMENT_HEAD];
    const struct tl_bytes part = {head, sizeof(head)};
    bool intact;
    tl_segment_head(head, first);
    int r = tl_segment_head_read(log, first, &intact, fail);
    if (r < 0 || intact)
        return r;
    r = log->ops->log_write(log, 0, &part, 1, fail);
    return r < 0 ? r : log->ops->log_sync(log, fail);
}

int tl_spool_mend(struct tl_backend *backend, const char *name, struct tl_fail *fail)
{
    struct tl_segments segments = {0};
    char key[128];
    int r = tl_segments_list(&segments, backend, name, fail);
    for (size_t i = 0; r >= 0 && i < segments.n; i++) {
        struct opened opened;
        r = open_segment(backend, name, &segments.v[i], key, &opened, fail);
        if (r < 0)
            break;
        r = opened.log ? mend_segment(opened.log, segments.v[i].first, fail)
                       : tl_packed_mend(&opened.packed, fail);
        close_opened(&opened);
    }
    tl_segments_fini(&segments);
    return r < 0 ? r : TL_OK;
}
