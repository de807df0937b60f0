/* SPDX-License-Identifier: MIT */
/*
 * Names segments, encodes and checks block heads, and scans logs. After damage it looks for the
 * next head with a valid checksum at every byte, because a broken length leaves no other way to
 * find it.
 */
#include "raw/segment.h"

#include "base/cancel.h"
#include "base/crc32c.h"
#include "base/search.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static const char segment_magic[8] = "TLSPOOL1";
/* Versions of a block's head: with the checksum of all bytes before, without it, and without
 * arrival and durable. The last four bytes are the checksum over the bytes before them and the
 * data. */
#define VERSIONS 3
static const struct {
    char magic[4];
    uint32_t head;
} versions[VERSIONS] = {{"TLB3", TL_BLOCK_HEAD}, {"TLB2", 36}, {"TLB1", 20}};
enum { SUMMED, UNSUMMED, OLDEST };
#define LEAST_HEAD 20

char *tl_segment_key(char out[static 128], const char *name, uint64_t first)
{
    snprintf(out, 128, "r/%s/%016" PRIx64 ".seg", name, first);
    return out;
}

static int take_name(void *context, const char *key, uint64_t size)
{
    struct tl_segments *segments = context;
    (void)size;
    const char *slash = strrchr(key, '/');
    char *end;
    const uint64_t first = slash ? strtoull(slash + 1, &end, 16) : 0;
    const bool log = slash && end == slash + 17 && strcmp(end, ".seg") == 0;
    const bool packed = slash && end == slash + 17 && strcmp(end, ".zst") == 0;
    if (!log && !packed)
        return TL_OK; /* not a segment */
    struct tl_segment *last = segments->n > 0 ? &segments->v[segments->n - 1] : NULL;
    if (!last || last->first != first) {
        const int r = tl_grow(&segments->v, &segments->cap, segments->n + 1, sizeof(*segments->v));
        if (r < 0)
            return r;
        last = &segments->v[segments->n++];
        *last = (struct tl_segment){.first = first};
    }
    last->log = last->log || log;
    last->packed = last->packed || packed;
    return TL_OK;
}

int tl_segments_list(struct tl_segments *out, struct tl_backend *backend, const char *name,
                     struct tl_fail *fail)
{
    char prefix[128];
    snprintf(prefix, sizeof(prefix), "r/%s", name);
    out->n = 0;
    /* Keys are in order, since hexadecimal digits sort like the numbers. */
    return backend->ops->list(backend, prefix, take_name, out, fail);
}

void tl_segments_fini(struct tl_segments *segments)
{
    free(segments->v);
    *segments = (struct tl_segments){0};
}

long tl_segments_find(const struct tl_segments *segments, uint64_t offset)
{
    return (long)tl_count_upto(TL_KEYS(segments->v, first), segments->n, offset) - 1;
}

void tl_segment_head(uint8_t out[static TL_SEGMENT_HEAD], uint64_t first)
{
    memcpy(out, segment_magic, 8);
    tl_put_le64(out + 8, first);
}

/* Encode a head of a version, and return its size. */
static size_t put_head(uint8_t out[static TL_BLOCK_HEAD], unsigned version,
                       const struct tl_spool_block *block, uint32_t data_crc)
{
    const size_t n = versions[version].head - 4;
    memcpy(out, versions[version].magic, 4);
    tl_put_le32(out + 4, block->n);
    tl_put_le64(out + 8, block->offset);
    tl_put_le64(out + 16, block->arrival);
    tl_put_le64(out + 24, block->durable);
    tl_put_le32(out + 32, block->before);
    tl_put_le32(out + n, tl_crc32c_join(tl_crc32c(0, out, n), data_crc, block->n));
    return n + 4;
}

size_t tl_block_head(uint8_t out[static TL_BLOCK_HEAD], const struct tl_spool_block *block,
                     uint32_t data_crc)
{
    return put_head(out, block->summed ? SUMMED : UNSUMMED, block, data_crc);
}

static unsigned version_of(const struct tl_spool_block *block)
{
    return block->summed ? SUMMED : block->head == versions[OLDEST].head ? OLDEST : UNSUMMED;
}

/* Checksum of a block head read into `block`, with this data. */
static uint32_t block_crc(const struct tl_spool_block *block, struct tl_bytes data)
{
    uint8_t head[TL_BLOCK_HEAD];
    const size_t n = put_head(head, version_of(block), block, tl_crc32c(0, data.p, data.n));
    return tl_le32(head + n - 4);
}

/* Parse a head at `p`, of which `n` bytes are available. */
static bool parse_head(const uint8_t *p, size_t n, struct tl_spool_block *out)
{
    unsigned version = SUMMED;
    while (version < VERSIONS &&
           (n < versions[version].head || memcmp(p, versions[version].magic, 4) != 0))
        version++;
    if (version == VERSIONS)
        return false;
    *out = (struct tl_spool_block){.n = tl_le32(p + 4),
                                   .offset = tl_le64(p + 8),
                                   .arrival = version == OLDEST ? 0 : tl_le64(p + 16),
                                   .durable = version == OLDEST ? 0 : tl_le64(p + 24),
                                   .before = version == SUMMED ? tl_le32(p + 32) : 0,
                                   .summed = version == SUMMED,
                                   .head = versions[version].head,
                                   .crc = tl_le32(p + versions[version].head - 4)};
    return out->n > 0 && out->n <= TL_SPOOL_BLOCK && out->offset <= UINT64_MAX - out->n &&
           out->durable <= out->offset;
}

int tl_block_read_head(struct tl_log *log, uint64_t at, uint64_t offset, struct tl_spool_block *out,
                       struct tl_fail *fail)
{
    struct tl_buf buf = {0};
    int r = log->ops->log_read(log, at, TL_BLOCK_HEAD, &buf, fail);
    if (r >= 0 && buf.n == 0)
        r = TL_EOF;
    else if (r >= 0 && (!parse_head(buf.p, buf.n, out) || out->offset != offset))
        r = tl_fail_at(fail, TL_BAD, offset, "no block of the raw capture begins here");
    tl_buf_fini(&buf);
    return r;
}

int tl_block_read_data(struct tl_log *log, uint64_t at, const struct tl_spool_block *block,
                       struct tl_buf *out, struct tl_fail *fail)
{
    const size_t before = out->n;
    const int r = log->ops->log_read(log, at + block->head, block->n, out, fail);
    if (r < 0)
        return r;
    const struct tl_bytes data = {out->p + before, out->n - before};
    if (data.n == block->n && block_crc(block, data) == block->crc)
        return TL_OK;
    out->n = before;
    return tl_fail_at(fail, TL_BAD, block->offset, "a block of the raw capture is damaged");
}

/* ---- skipping damage ----------------------------------------------------------------------- */

#define SEARCH_BYTES (256u << 10)

void tl_segment_walk_begin(struct tl_segment_walk *walk, struct tl_log *log, uint64_t first,
                           uint64_t end)
{
    *walk =
        (struct tl_segment_walk){.log = log, .at = TL_SEGMENT_HEAD, .offset = first, .end = end};
}

void tl_segment_walk_end(struct tl_segment_walk *walk)
{
    tl_buf_fini(&walk->data);
}

/* Is there a complete and intact block at `at`? TL_OK, TL_BAD, TL_IO, TL_NOMEM. */
static int try_block(struct tl_segment_walk *walk, uint64_t at, const struct tl_spool_block *block,
                     struct tl_fail *fail)
{
    if (block->offset < walk->offset || block->offset >= walk->end)
        return TL_BAD;
    tl_buf_reset(&walk->data);
    return tl_block_read_data(walk->log, at, block, &walk->data, fail);
}

/* Search for the next intact block from `at` on. TL_EOF: there is none. */
static int search(struct tl_segment_walk *walk, uint64_t at, uint64_t *found_at,
                  struct tl_spool_block *found, struct tl_fail *fail)
{
    struct tl_buf window = {0};
    int r = TL_EOF;
    for (bool more = true; more;) {
        tl_buf_reset(&window);
        int got = tl_cancel_check();
        if (got >= 0)
            got = walk->log->ops->log_read(walk->log, at, SEARCH_BYTES, &window, fail);
        if (got < 0) {
            r = got;
            break;
        }
        more = window.n == SEARCH_BYTES;
        /* Heads that cross into the next window are examined there, up to the log's end here. */
        const size_t keep = more ? TL_BLOCK_HEAD : LEAST_HEAD;
        const size_t last = window.n < keep ? 0 : window.n - keep + 1;
        r = TL_EOF;
        for (size_t i = 0; i < last && r == TL_EOF; i++) {
            const uint8_t *p = memchr(window.p + i, versions[SUMMED].magic[0], last - i);
            if (!p)
                break;
            i = (size_t)(p - window.p);
            if (!parse_head(p, window.n - i, found))
                continue;
            r = try_block(walk, at + i, found, NULL);
            *found_at = at + i;
            r = r == TL_BAD ? TL_EOF : r;
        }
        if (r != TL_EOF)
            break;
        at += last;
    }
    tl_buf_fini(&window);
    return r;
}

static struct tl_segment_piece piece_of(uint64_t at, const struct tl_spool_block *block)
{
    return (struct tl_segment_piece){.offset = block->offset,
                                     .n = block->n,
                                     .at = at,
                                     .bytes = block->head + (uint64_t)block->n,
                                     .durable = block->durable,
                                     .arrival = block->arrival,
                                     .before = block->before,
                                     .summed = block->summed};
}

static void step(struct tl_segment_walk *walk, const struct tl_segment_piece *piece)
{
    walk->at = piece->at + piece->bytes;
    walk->offset = piece->offset + piece->n;
}

/* The current block has an intact head but damaged data: does the next one follow? */
static bool next_follows(const struct tl_segment_walk *walk, const struct tl_spool_block *block)
{
    struct tl_spool_block next;
    const uint64_t end = block->offset + block->n;
    return end < walk->end &&
           tl_block_read_head(walk->log, walk->at + block->head + block->n, end, &next, NULL) >= 0;
}

int tl_segment_walk_next(struct tl_segment_walk *walk, bool check, struct tl_segment_piece *out,
                         struct tl_fail *fail)
{
    struct tl_spool_block block;
    if (walk->offset >= walk->end)
        return TL_EOF;
    int r = tl_block_read_head(walk->log, walk->at, walk->offset, &block, fail);
    const bool head = r >= 0;
    tl_buf_reset(&walk->data);
    if (r >= 0 && check)
        r = tl_block_read_data(walk->log, walk->at, &block, &walk->data, fail);
    else if (r >= 0) /* it is sufficient that the last byte exists */
        r = walk->log->ops->log_read(walk->log, walk->at + block.head + block.n - 1, 1, &walk->data,
                                     fail);
    if (r >= 0 && !check && walk->data.n == 0)
        r = TL_BAD;
    if (r >= 0) {
        *out = piece_of(walk->at, &block);
        step(walk, out);
        return TL_OK;
    }
    if (r != TL_BAD && r != TL_EOF)
        return r;
    *out = (struct tl_segment_piece){.damaged = true, .offset = walk->offset, .at = walk->at};
    uint64_t place = 0;
    if (head && next_follows(walk, &block)) {
        out->n = block.n;
        out->bytes = block.head + (uint64_t)block.n;
        step(walk, out);
        return TL_OK;
    }
    if (r == TL_BAD)
        r = search(walk, walk->at + 1, &place, &block, fail);
    if (r < 0 && r != TL_EOF)
        return r;
    out->n = (r < 0 ? walk->end : block.offset) - walk->offset;
    out->bytes = r < 0 ? 0 : place - walk->at;
    walk->at += out->bytes;
    walk->offset += out->n;
    return TL_OK;
}

/* Find the highest durable offset in any intact block. */
static int find_durable(struct tl_log *log, uint64_t first, uint64_t *durable, struct tl_fail *fail)
{
    struct tl_segment_walk walk;
    struct tl_segment_piece piece;
    int r;
    *durable = first;
    tl_segment_walk_begin(&walk, log, first, UINT64_MAX);
    while ((r = tl_segment_walk_next(&walk, true, &piece, fail)) >= 0)
        if (!piece.damaged && piece.durable > *durable)
            *durable = piece.durable;
    tl_segment_walk_end(&walk);
    return r == TL_EOF ? TL_OK : r;
}

int tl_segment_head_read(struct tl_log *log, uint64_t first, bool *intact, struct tl_fail *fail)
{
    struct tl_buf buf = {0};
    uint8_t head[TL_SEGMENT_HEAD];
    tl_segment_head(head, first);
    const int r = log->ops->log_read(log, 0, TL_SEGMENT_HEAD, &buf, fail);
    *intact = r >= 0 && buf.n == TL_SEGMENT_HEAD && memcmp(buf.p, head, TL_SEGMENT_HEAD) == 0;
    tl_buf_fini(&buf);
    return r;
}

int tl_segment_scan(struct tl_log *log, uint64_t first, struct tl_segment_extent *out,
                    struct tl_fail *fail)
{
    uint64_t durable = first;
    *out = (struct tl_segment_extent){.end = first, .bytes = TL_SEGMENT_HEAD};
    int r = tl_segment_head_read(log, first, &out->head, fail);
    if (r >= 0)
        r = find_durable(log, first, &durable, fail);
    struct tl_segment_walk walk;
    struct tl_segment_piece piece;
    tl_segment_walk_begin(&walk, log, first, UINT64_MAX);
    while (r >= 0 && (r = tl_segment_walk_next(&walk, true, &piece, fail)) >= 0) {
        if (piece.damaged && piece.offset >= durable)
            break;
        out->end = piece.offset + piece.n;
        out->bytes = piece.at + piece.bytes;
        out->summed = !piece.damaged && piece.summed;
        out->sum =
            tl_crc32c_join(piece.before, tl_crc32c(0, walk.data.p, walk.data.n), walk.data.n);
    }
    tl_segment_walk_end(&walk);
    if (out->end == first && !out->head)
        out->bytes = 0;
    return r == TL_EOF || r >= 0 ? TL_OK : r;
}
