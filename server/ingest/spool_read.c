/* SPDX-License-Identifier: MIT */
#include "ingest/segment.h"
#include "ingest/spool.h"

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
            fresh = r >= 0 && reader->offset == offset;
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

int tl_spool_extent(struct tl_backend *backend, const char *name, bool check, uint64_t *intact,
                    uint64_t *bad, struct tl_fail *fail)
{
    struct tl_segments segments = {0};
    uint64_t at = 0, wrong = TL_NO_OFFSET;
    int r = tl_segments_list(&segments, backend, name, fail);
    for (size_t i = 0; r >= 0 && i < segments.n; i++) {
        const bool last = i + 1 == segments.n;
        struct tl_segment_extent extent;
        struct tl_log *log;
        char key[128];
        uint64_t size;
        r = backend->ops->log_open(backend, tl_segment_key(key, name, segments.first[i]), false,
                                   &log, &size, fail);
        if (r < 0)
            break;
        r = tl_segment_scan(log, segments.first[i], check || last, &extent, fail);
        log->ops->log_close(log);
        if (r < 0)
            break;
        at = extent.end;
        if (!last && at < segments.first[i + 1] && wrong == TL_NO_OFFSET)
            wrong = at;
        if (last && extent.bytes < size && wrong == TL_NO_OFFSET)
            wrong = at;
    }
    tl_segments_fini(&segments);
    *intact = wrong < at ? wrong : at;
    if (bad)
        *bad = wrong;
    return r < 0 ? r : TL_OK;
}

int tl_spool_remove(struct tl_backend *backend, const char *name, struct tl_fail *fail)
{
    char prefix[128];
    snprintf(prefix, sizeof(prefix), "r/%s", name);
    return tl_backend_remove_all(backend, prefix, fail);
}
