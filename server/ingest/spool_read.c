/* SPDX-License-Identifier: MIT */
#include "ingest/segment.h"
#include "ingest/spool.h"

#include "base/cancel.h"

#include <stdio.h>
#include <stdlib.h>

struct tl_spool_reader {
    struct tl_backend *backend;
    char name[64];
    struct tl_segments segments;
    size_t at_segment;  /* index of the open one */
    struct tl_log *log; /* NULL: none is open */
    uint64_t log_at;    /* place of the next block */
    uint64_t offset;    /* … and its capture offset */
    uint64_t arrival;   /* of the block read last */
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

static void close_segment(struct tl_spool_reader *reader)
{
    if (reader->log)
        reader->log->ops->log_close(reader->log);
    reader->log = NULL;
}

void tl_spool_reader_free(struct tl_spool_reader *reader)
{
    if (!reader)
        return;
    close_segment(reader);
    tl_segments_fini(&reader->segments);
    free(reader);
}

/* Open the segment that holds `offset`, at its first block. */
static int seek_segment(struct tl_spool_reader *reader, uint64_t offset, struct tl_fail *fail)
{
    close_segment(reader);
    int r = tl_segments_list(&reader->segments, reader->backend, reader->name, fail);
    if (r < 0)
        return r;
    const long i = tl_segments_find(&reader->segments, offset);
    if (i < 0)
        return tl_fail_at(fail, TL_BAD, offset, "the raw capture has nothing here");
    char key[128];
    uint64_t size;
    const uint64_t first = reader->segments.first[i];
    r = reader->backend->ops->log_open(reader->backend, tl_segment_key(key, reader->name, first),
                                       false, &reader->log, &size, fail);
    if (r < 0)
        return r;
    reader->at_segment = (size_t)i;
    reader->log_at = TL_SEGMENT_HEAD;
    reader->offset = first;
    return TL_OK;
}

static bool at_next_segment(const struct tl_spool_reader *reader)
{
    const size_t next = reader->at_segment + 1;
    return next < reader->segments.n && reader->segments.first[next] <= reader->offset;
}

/* Step over blocks until the one that holds `offset`; its head goes to `block`. */
static int seek_block(struct tl_spool_reader *reader, uint64_t offset, struct tl_spool_block *block,
                      struct tl_fail *fail)
{
    bool fresh = false;
    for (;;) {
        int r = TL_EOF;
        if (reader->log && reader->offset <= offset && !at_next_segment(reader))
            r = tl_block_read_head(reader->log, reader->log_at, reader->offset, block, fail);
        if (r >= 0 && offset < block->offset + block->n)
            return TL_OK;
        if (r >= 0) {
            reader->log_at += block->head + block->n;
            reader->offset += block->n;
        } else if ((r == TL_EOF || r == TL_BAD) && !fresh) {
            /* The segment may have ended here, or the reader stands elsewhere. */
            r = seek_segment(reader, offset, fail);
            fresh = true;
            if (r < 0)
                return r;
        } else {
            close_segment(reader);
            return r == TL_EOF ? tl_fail_at(fail, TL_BAD, offset, "raw bytes are missing here") : r;
        }
        if (fresh && reader->offset > offset)
            return tl_fail_at(fail, TL_BAD, offset, "raw bytes are missing here");
    }
}

int tl_spool_read(struct tl_spool_reader *reader, uint64_t offset, uint64_t end, struct tl_buf *out,
                  struct tl_fail *fail)
{
    if (offset >= end)
        return TL_EOF;
    struct tl_spool_block block;
    int r = seek_block(reader, offset, &block, fail);
    if (r < 0)
        return r;
    const size_t before = out->n;
    r = tl_block_read_data(reader->log, reader->log_at, &block, out, fail);
    if (r == TL_BAD) {
        /* It may be what a failed write left, superseded by a newer segment. */
        close_segment(reader);
        r = seek_block(reader, offset, &block, fail);
        if (r >= 0)
            r = tl_block_read_data(reader->log, reader->log_at, &block, out, fail);
    }
    if (r < 0)
        return r;
    reader->log_at += block.head + block.n;
    reader->offset += block.n;
    reader->arrival = block.arrival;
    const size_t skip = (size_t)(offset - block.offset);
    size_t n = block.n - skip;
    if (n > end - offset)
        n = (size_t)(end - offset);
    memmove(out->p + before, out->p + before + skip, n);
    out->n = before + n;
    return TL_OK;
}

uint64_t tl_spool_reader_arrival(const struct tl_spool_reader *reader)
{
    return reader->arrival;
}

/* ---- damage -------------------------------------------------------------------------------- */

static int open_segment(struct tl_backend *backend, const char *name, uint64_t first,
                        char key[static 128], struct tl_log **log, struct tl_fail *fail)
{
    uint64_t size;
    return backend->ops->log_open(backend, tl_segment_key(key, name, first), false, log, &size,
                                  fail);
}

/* Where the segment's share of a capture of `end` bytes ends. */
static uint64_t share_of(const struct tl_segments *segments, size_t i, uint64_t end)
{
    const uint64_t next = i + 1 < segments->n ? segments->first[i + 1] : end;
    return next < end ? next : end;
}

int tl_spool_skip(struct tl_spool_reader *reader, uint64_t offset, uint64_t end, uint64_t *next,
                  struct tl_fail *fail)
{
    char key[128];
    *next = end;
    close_segment(reader);
    int r = tl_segments_list(&reader->segments, reader->backend, reader->name, fail);
    if (r < 0)
        return r;
    const long i = tl_segments_find(&reader->segments, offset);
    if (i + 1 < (long)reader->segments.n && reader->segments.first[i + 1] < end)
        *next = reader->segments.first[i + 1];
    if (i < 0)
        return TL_OK;
    const uint64_t first = reader->segments.first[i];
    r = open_segment(reader->backend, reader->name, first, key, &reader->log, fail);
    if (r < 0)
        return r;
    struct tl_segment_walk walk;
    struct tl_segment_piece piece;
    tl_segment_walk_begin(&walk, reader->log, first, *next);
    while ((r = tl_segment_walk_next(&walk, true, &piece, fail)) >= 0)
        if (!piece.damaged && piece.offset + piece.n > offset) {
            *next = piece.offset > offset ? piece.offset : offset;
            reader->at_segment = (size_t)i;
            reader->log_at = piece.at;
            reader->offset = piece.offset;
            break;
        }
    tl_segment_walk_end(&walk);
    if (r < 0)
        close_segment(reader);
    return r == TL_EOF ? TL_OK : r;
}

int tl_spool_end(struct tl_backend *backend, const char *name, uint64_t *end, struct tl_fail *fail)
{
    struct tl_segments segments = {0};
    struct tl_log *log;
    char key[128];
    *end = 0;
    int r = tl_segments_list(&segments, backend, name, fail);
    if (r >= 0 && segments.n > 0) {
        struct tl_segment_extent extent;
        const uint64_t first = segments.first[segments.n - 1];
        r = open_segment(backend, name, first, key, &log, fail);
        if (r >= 0) {
            r = tl_segment_scan(log, first, &extent, fail);
            log->ops->log_close(log);
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
            r = tl_cancel_check();
    }
    tl_segment_walk_end(&walk);
    return r == TL_EOF ? TL_OK : r;
}

int tl_spool_audit(struct tl_backend *backend, const char *name, uint64_t end,
                   int (*each)(void *context, const struct tl_spool_damage *damage), void *context,
                   struct tl_fail *fail)
{
    struct tl_segments segments = {0};
    const struct audit audit = {each, context};
    char key[128];
    int r = tl_segments_list(&segments, backend, name, fail);
    const uint64_t begin = r >= 0 && segments.n > 0 ? segments.first[0] : end;
    if (r >= 0 && begin > 0 && end > 0) {
        tl_segment_key(key, name, 0);
        const struct tl_spool_damage damage = {key, 0, 0, begin < end ? begin : end};
        r = each(context, &damage);
    }
    for (size_t i = 0; r >= 0 && i < segments.n && segments.first[i] < end; i++) {
        struct tl_log *log;
        r = open_segment(backend, name, segments.first[i], key, &log, fail);
        if (r < 0)
            break;
        r = audit_segment(&audit, log, key, segments.first[i], share_of(&segments, i, end), fail);
        log->ops->log_close(log);
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
        struct tl_log *log;
        r = open_segment(backend, name, segments.first[i], key, &log, fail);
        if (r < 0)
            break;
        r = mend_segment(log, segments.first[i], fail);
        log->ops->log_close(log);
    }
    tl_segments_fini(&segments);
    return r < 0 ? r : TL_OK;
}
