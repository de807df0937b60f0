/* SPDX-License-Identifier: MIT */
/*
 * Writes and reads packed segments, frame by frame. Each frame has a head with offsets and checksum
 * beside the index at the end, so that damage costs one frame and not the segment.
 */
#include "raw/packed.h"

#include "base/cancel.h"
#include "base/crc32c.h"
#include "base/search.h"
#include "raw/segment.h"
#include "shard/varint.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <zstd.h>

#define SKIPPABLE   0x184D2A5Du
#define SKIP_HEAD   8
#define HEAD        28 /* "TLSPOOLZ" first end crc */
#define FRAME_HEAD  24 /* "TLZ1" n offset packed crc */
#define INDEX_END   12 /* number of frames, checksum, "TLZI" */
#define LEVEL       3 /* zstd level: a fifth smaller than the fastest one, at two thirds of its speed */
#define RUNS_MAX    (TL_PACKED_FRAME * 2u * TL_VARINT_MAX)
#define SEARCH_STEP (1u << 20)
#define AHEAD       (1u << 20)
#define INDEX_AHEAD (32u << 10)

static const char head_magic[8] = "TLSPOOLZ";
static const char frame_magic[4] = "TLZ1";
static const char index_magic[4] = "TLZI";

char *tl_packed_key(char out[static 128], const char *name, uint64_t first)
{
    snprintf(out, 128, "r/%s/%016" PRIx64 ".zst", name, first);
    return out;
}

static void put_skippable(uint8_t *out, size_t n)
{
    tl_put_le32(out, SKIPPABLE);
    tl_put_le32(out + 4, (uint32_t)n);
}

/* ---- writing -------------------------------------------------------------------------------- */

struct tl_packed_writer {
    ZSTD_CCtx *zstd;
    struct tl_buf object;
    struct tl_buf places;   /* positions and offsets of the frames, in the index's format */
    struct tl_buf data;     /* of the frame being filled */
    struct tl_buf arrivals; /* its runs, except for the last one: */
    uint64_t run, arrival;
    uint64_t before;        /* arrival of the run before that */
    uint64_t first, offset; /* offsets of the segment's and the frame's first byte */
};

static void make_head(uint8_t out[static SKIP_HEAD + HEAD], uint64_t first, uint64_t end)
{
    put_skippable(out, HEAD);
    uint8_t *const head = out + SKIP_HEAD;
    memcpy(head, head_magic, 8);
    tl_put_le64(head + 8, first);
    tl_put_le64(head + 16, end);
    tl_put_le32(head + 24, tl_crc32c(0, head, 24));
}

/* The end is not known yet. */
static int put_head(struct tl_buf *object, uint64_t first)
{
    uint8_t head[SKIP_HEAD + HEAD];
    make_head(head, first, first);
    return tl_buf_add(object, head, sizeof(head));
}

int tl_packed_writer_new(struct tl_packed_writer **out, uint64_t first)
{
    struct tl_packed_writer *w = calloc(1, sizeof(*w));
    if (!w)
        return TL_NOMEM;
    w->first = w->offset = first;
    w->zstd = ZSTD_createCCtx();
    if (!w->zstd || ZSTD_isError(ZSTD_CCtx_setParameter(w->zstd, ZSTD_c_compressionLevel, LEVEL)) ||
        put_head(&w->object, first) < 0) {
        tl_packed_writer_free(w);
        return TL_NOMEM;
    }
    *out = w;
    return TL_OK;
}

void tl_packed_writer_free(struct tl_packed_writer *w)
{
    if (!w)
        return;
    ZSTD_freeCCtx(w->zstd);
    tl_buf_fini(&w->object);
    tl_buf_fini(&w->places);
    tl_buf_fini(&w->data);
    tl_buf_fini(&w->arrivals);
    free(w);
}

static int end_run(struct tl_packed_writer *w)
{
    if (w->run == 0)
        return TL_OK;
    int r = tl_varint_add(&w->arrivals, w->run);
    if (r >= 0)
        r = tl_varint_add(&w->arrivals, tl_zigzag((int64_t)(w->arrival - w->before)));
    w->before = w->arrival;
    w->run = 0;
    return r;
}

static uint32_t frame_crc(const uint8_t head[static FRAME_HEAD], struct tl_bytes arrivals,
                          struct tl_bytes packed)
{
    uint32_t crc = tl_crc32c(0, head, FRAME_HEAD - 4);
    crc = tl_crc32c(crc, arrivals.p, arrivals.n);
    return tl_crc32c(crc, packed.p, packed.n);
}

#define PLACE 16 /* size of an index entry */

static int put_place(struct tl_buf *places, uint64_t at, uint64_t offset)
{
    uint8_t place[PLACE];
    tl_put_le64(place, at);
    tl_put_le64(place + 8, offset);
    return tl_buf_add(places, place, sizeof(place));
}

static int end_frame(struct tl_packed_writer *w)
{
    int r = end_run(w);
    const size_t bound = ZSTD_compressBound(w->data.n), front = SKIP_HEAD + FRAME_HEAD;
    if (r >= 0)
        r = tl_buf_reserve(&w->object, front + w->arrivals.n + bound);
    if (r < 0)
        return r;
    uint8_t *const head = w->object.p + w->object.n + SKIP_HEAD;
    uint8_t *const arrivals = head + FRAME_HEAD, *const packed = arrivals + w->arrivals.n;
    const size_t n = ZSTD_compress2(w->zstd, packed, bound, w->data.p, w->data.n);
    if (ZSTD_isError(n))
        return TL_NOMEM;
    put_skippable(head - SKIP_HEAD, FRAME_HEAD + w->arrivals.n);
    memcpy(head, frame_magic, 4);
    tl_put_le32(head + 4, (uint32_t)w->data.n);
    tl_put_le64(head + 8, w->offset);
    tl_put_le32(head + 16, (uint32_t)n);
    memcpy(arrivals, w->arrivals.p, w->arrivals.n);
    tl_put_le32(head + 20, frame_crc(head, (struct tl_bytes){arrivals, w->arrivals.n},
                                     (struct tl_bytes){packed, n}));
    r = put_place(&w->places, w->object.n, w->offset);
    w->object.n += front + w->arrivals.n + n;
    w->offset += w->data.n;
    w->before = 0;
    tl_buf_reset(&w->data);
    tl_buf_reset(&w->arrivals);
    return r;
}

int tl_packed_writer_add(struct tl_packed_writer *w, struct tl_bytes bytes, uint64_t arrival)
{
    int r = TL_OK;
    while (r >= 0 && bytes.n > 0) {
        const size_t room = TL_PACKED_FRAME - w->data.n, n = bytes.n < room ? bytes.n : room;
        if (w->arrival != arrival)
            r = end_run(w);
        w->arrival = arrival;
        w->run += n;
        if (r >= 0)
            r = tl_buf_add(&w->data, bytes.p, n);
        bytes.p += n;
        bytes.n -= n;
        arrival &= ~TL_ARRIVAL_REJOINED; /* of the first byte, not of the next frame's */
        if (r >= 0 && w->data.n == TL_PACKED_FRAME)
            r = end_frame(w);
    }
    return r;
}

/* `end`: of the capture's bytes. */
static int put_index(struct tl_buf *object, struct tl_buf *places, uint64_t end)
{
    uint8_t skippable[SKIP_HEAD], tail[INDEX_END];
    tl_put_le32(tail, (uint32_t)(places->n / PLACE));
    int r = put_place(places, object->n, end);
    if (r < 0)
        return r;
    put_skippable(skippable, places->n + INDEX_END);
    tl_put_le32(tail + 4, tl_crc32c(tl_crc32c(0, places->p, places->n), tail, 4));
    memcpy(tail + 8, index_magic, 4);
    r = tl_buf_add(object, skippable, sizeof(skippable));
    if (r >= 0)
        r = tl_buf_add(object, places->p, places->n);
    return r < 0 ? r : tl_buf_add(object, tail, sizeof(tail));
}

int tl_packed_writer_finish(struct tl_packed_writer *w, struct tl_bytes *out)
{
    int r = w->data.n > 0 ? end_frame(w) : TL_OK;
    if (r >= 0)
        r = put_index(&w->object, &w->places, w->offset);
    make_head(w->object.p, w->first, w->offset);
    *out = (struct tl_bytes){w->object.p, w->object.n};
    return r;
}

/* ---- reading -------------------------------------------------------------------------------- */

static int get(const struct tl_packed *p, uint64_t at, size_t n, struct tl_buf *out,
               struct tl_fail *fail)
{
    tl_buf_reset(out);
    const int r = tl_cancel_check();
    return r < 0 ? r : p->backend->ops->get(p->backend, p->key, at, n, out, fail);
}

/* Parsed head of a frame. */
struct head {
    uint64_t offset;
    uint32_t n, bytes, packed,
        crc; /* bytes: of the head, including what makes it a skippable frame */
};

static bool parse_head(const uint8_t *p, size_t n, struct head *out)
{
    if (n < SKIP_HEAD + FRAME_HEAD || tl_le32(p) != SKIPPABLE ||
        memcmp(p + SKIP_HEAD, frame_magic, 4) != 0)
        return false;
    const uint32_t length = tl_le32(p + 4);
    const uint8_t *const head = p + SKIP_HEAD;
    *out = (struct head){.n = tl_le32(head + 4),
                         .offset = tl_le64(head + 8),
                         .bytes = SKIP_HEAD + length,
                         .packed = tl_le32(head + 16),
                         .crc = tl_le32(head + 20)};
    return length >= FRAME_HEAD && length <= FRAME_HEAD + RUNS_MAX && out->n > 0 &&
           out->n <= TL_PACKED_FRAME && out->offset <= UINT64_MAX - out->n;
}

/* Get the frame with this head at `at`, if it lies inside the object. */
static bool frame_of(const struct tl_packed *packed, uint64_t at, const struct head *head,
                     struct tl_packed_frame *out)
{
    *out = (struct tl_packed_frame){.at = at,
                                    .bytes = (uint64_t)head->bytes + head->packed,
                                    .offset = head->offset,
                                    .n = head->n};
    return out->bytes <= packed->size - at;
}

static int add_frame(struct tl_packed *p, const struct tl_packed_frame *frame)
{
    const int r = tl_grow(&p->frames, &p->cap, p->n + 1, sizeof(*p->frames));
    if (r >= 0)
        p->frames[p->n++] = *frame;
    return r;
}

/* Read the end of the segment from the head; 0: it is damaged. */
static int read_head(const struct tl_packed *p, uint64_t *reported, struct tl_fail *fail)
{
    struct tl_buf buf = {0};
    uint8_t head[SKIP_HEAD + HEAD];
    const int r = get(p, 0, sizeof(head), &buf, fail);
    *reported = 0;
    if (r >= 0 && buf.n == sizeof(head)) {
        const uint64_t end = tl_le64(buf.p + SKIP_HEAD + 16);
        make_head(head, p->first, end);
        *reported = memcmp(buf.p, head, sizeof(head)) == 0 ? end : 0;
    }
    tl_buf_fini(&buf);
    return r;
}

/* Add a frame with an unreadable head, which extends to the next intact one, at `offset`. */
static int fill(struct tl_packed *p, uint64_t at, uint64_t offset)
{
    const uint64_t end = tl_packed_end(p);
    const struct tl_packed_frame missing = {.at = at, .offset = end, .n = offset - end};
    return offset > end ? add_frame(p, &missing) : TL_OK;
}

/* Is this an intact index, from its skippable frame's head on, of `n` frames? */
static bool is_index(const struct tl_buf *index, uint64_t n)
{
    const size_t places = (size_t)(n + 1) * PLACE, all = SKIP_HEAD + places + INDEX_END;
    uint8_t skippable[SKIP_HEAD];
    put_skippable(skippable, places + INDEX_END);
    return index->n == all && memcmp(index->p, skippable, SKIP_HEAD) == 0 &&
           tl_crc32c(0, index->p + SKIP_HEAD, places + 4) == tl_le32(index->p + all - 8);
}

/* Read the positions of all frames and of their end, if the index is intact; n == 0: it is not. The
 * index of a segment of the usual size takes one read. */
static int read_index(struct tl_packed *p, struct tl_buf *places, struct tl_fail *fail)
{
    struct tl_buf tail = {0};
    const size_t most = p->size < INDEX_AHEAD ? (size_t)p->size : INDEX_AHEAD;
    int r = get(p, p->size - most, most, &tail, fail);
    if (r < 0 || tail.n != most || most < SKIP_HEAD + HEAD + SKIP_HEAD + INDEX_END) {
        tl_buf_fini(&tail);
        return r;
    }
    const uint8_t *const end = tail.p + most - INDEX_END;
    const uint64_t n = memcmp(end + 8, index_magic, 4) == 0 ? tl_le32(end) : 0;
    const uint64_t bytes = SKIP_HEAD + (n + 1) * PLACE + INDEX_END;
    if (n > 0 && n <= p->size / (SKIP_HEAD + FRAME_HEAD) && bytes <= p->size) {
        if (bytes > most)
            r = get(p, p->size - bytes, (size_t)bytes, &tail, fail);
        else
            tl_buf_drop(&tail, most - (size_t)bytes);
        if (r >= 0 && is_index(&tail, n))
            r = tl_buf_add(places, tail.p + SKIP_HEAD, (size_t)(n + 1) * PLACE);
    }
    tl_buf_fini(&tail);
    return r;
}

static int frames_by_index(struct tl_packed *p, const struct tl_buf *places)
{
    int r = TL_OK;
    for (const uint8_t *q = places->p; r >= 0 && q + PLACE < places->p + places->n; q += PLACE) {
        const struct tl_packed_frame frame = {.at = tl_le64(q),
                                              .bytes = tl_le64(q + PLACE) - tl_le64(q),
                                              .offset = tl_le64(q + 8),
                                              .n = tl_le64(q + PLACE + 8) - tl_le64(q + 8)};
        r = add_frame(p, &frame);
    }
    return r;
}

/*
 * Search for the next intact frame from `at` on: a head is accepted only with a valid checksum.
 * TL_EOF.
 */
static int search(struct tl_packed *p, uint64_t at, struct tl_packed_frame *found,
                  struct tl_fail *fail)
{
    struct tl_buf window = {0}, data = {0}, arrivals = {0};
    int r = TL_EOF;
    while (r == TL_EOF && at + SKIP_HEAD + FRAME_HEAD <= p->size) {
        const int got = get(p, at, SEARCH_STEP, &window, fail);
        if (got < 0 || window.n < SKIP_HEAD + FRAME_HEAD) {
            r = got < 0 ? got : TL_EOF;
            break;
        }
        const size_t last = window.n - (SKIP_HEAD + FRAME_HEAD) + 1;
        for (size_t i = 0; i < last && r == TL_EOF; i++) {
            const uint8_t *const q = memchr(window.p + i, SKIPPABLE & 0xff, last - i);
            struct head head;
            i = q ? (size_t)(q - window.p) : last;
            if (!q || !parse_head(q, window.n - i, &head) || head.offset < tl_packed_end(p) ||
                !frame_of(p, at + i, &head, found))
                continue;
            struct tl_packed one = *p;
            struct tl_packed_run *runs;
            size_t n;
            one.frames = found;
            one.n = one.next = 1;
            one.ahead = (struct tl_buf){0};
            r = tl_packed_read(&one, 0, &data, &arrivals, &runs, &n, NULL);
            tl_buf_fini(&one.ahead);
            r = r == TL_BAD ? TL_EOF : r;
        }
        at += last;
    }
    tl_buf_fini(&window);
    tl_buf_fini(&data);
    tl_buf_fini(&arrivals);
    return r;
}

/* Follow the heads; after a damaged one, search for the next intact frame. */
static int frames_by_heads(struct tl_packed *p, struct tl_fail *fail)
{
    struct tl_buf bytes = {0};
    uint64_t at = SKIP_HEAD + HEAD;
    int r = TL_OK;
    while (r >= 0 && at < p->size) {
        struct tl_packed_frame frame;
        struct head head;
        r = get(p, at, SKIP_HEAD + FRAME_HEAD, &bytes, fail);
        const bool next = r >= 0 && parse_head(bytes.p, bytes.n, &head) &&
                          head.offset == tl_packed_end(p) && frame_of(p, at, &head, &frame);
        if (r >= 0 && !next) {
            r = search(p, at, &frame, fail);
            if (r == TL_EOF)
                break; /* begin of the index */
            if (r >= 0)
                r = fill(p, at, frame.offset);
        }
        if (r >= 0)
            r = add_frame(p, &frame);
        if (r >= 0)
            at = frame.at + frame.bytes;
    }
    tl_buf_fini(&bytes);
    return r == TL_EOF ? TL_OK : r;
}

int tl_packed_open(struct tl_packed *out, struct tl_backend *backend, const char *name,
                   uint64_t first, struct tl_fail *fail)
{
    struct tl_buf places = {0};
    *out = (struct tl_packed){.backend = backend, .first = first};
    tl_packed_key(out->key, name, first);
    int r = backend->ops->size(backend, out->key, &out->size, fail);
    if (r >= 0)
        r = read_index(out, &places, fail);
    out->indexed = places.n > 0;
    if (r >= 0)
        r = out->indexed ? frames_by_index(out, &places) : frames_by_heads(out, fail);
    uint64_t reported = 0;
    if (r >= 0 && !out->indexed)
        r = read_head(out, &reported, fail);
    if (r >= 0)
        r = fill(out, out->size, reported);
    tl_buf_fini(&places);
    if (r < 0)
        tl_packed_close(out);
    return r;
}

void tl_packed_rest(struct tl_packed *p)
{
    tl_buf_fini(&p->ahead);
}

int tl_packed_sound(const struct tl_packed *p, bool *sound, struct tl_fail *fail)
{
    uint64_t reported;
    const int r = read_head(p, &reported, fail);
    *sound = r >= 0 && reported > p->first && p->indexed;
    return r;
}

void tl_packed_close(struct tl_packed *p)
{
    free(p->frames);
    tl_buf_fini(&p->ahead);
    *p = (struct tl_packed){0};
}

uint64_t tl_packed_end(const struct tl_packed *p)
{
    return p->n > 0 ? p->frames[p->n - 1].offset + p->frames[p->n - 1].n : p->first;
}

size_t tl_packed_find(const struct tl_packed *p, uint64_t offset)
{
    const size_t begun = tl_count_upto(TL_KEYS(p->frames, offset), p->n, offset);
    return begun > 0 ? begun - 1 : p->n;
}

static int damaged(const struct tl_packed *p, size_t i, struct tl_fail *fail)
{
    return tl_fail_at(fail, TL_BAD, p->frames[i].offset, "a frame of the raw capture is damaged");
}

/* Convert runs in place of their varints, which are never shorter in memory than decoded. */
static int read_runs(struct tl_bytes in, uint64_t total, struct tl_buf *out, size_t *n)
{
    struct tl_varint_reader reader = {in.p, in.p + in.n, false};
    uint64_t arrival = 0, sum = 0;
    *n = 0;
    tl_buf_reset(out);
    while (reader.p < reader.end && !reader.bad) {
        struct tl_packed_run run;
        run.n = tl_varint_get(&reader);
        arrival += (uint64_t)tl_varint_get_signed(&reader);
        run.arrival = arrival;
        sum += run.n;
        if (run.n == 0 || run.n > total)
            return TL_BAD;
        const int r = tl_buf_add(out, &run, sizeof(run));
        if (r < 0)
            return r;
        ++*n;
    }
    return reader.bad || sum != total ? TL_BAD : TL_OK;
}

/*
 * Get the bytes of frame i, fewer at the end of the object. When frames are read in order, several
 * are read at once, twice as many each time: in a remote store each read has a high latency, but
 * most readers want few.
 */
static int frame_bytes(struct tl_packed *p, size_t i, struct tl_bytes *out, struct tl_fail *fail)
{
    const struct tl_packed_frame *const f = &p->frames[i];
    int r = TL_OK;
    if (f->at < p->ahead_at || f->at + f->bytes > p->ahead_at + p->ahead.n) {
        const size_t twice = 2 * p->ahead.n < AHEAD ? 2 * p->ahead.n : AHEAD;
        const bool in_order = i == p->next && f->bytes < twice;
        r = get(p, f->at, in_order ? twice : (size_t)f->bytes, &p->ahead, fail);
        p->ahead_at = f->at;
        if (r < 0) {
            tl_buf_reset(&p->ahead);
            return r;
        }
    }
    p->next = i + 1;
    const size_t at = (size_t)(f->at - p->ahead_at), left = p->ahead.n - at;
    *out = (struct tl_bytes){p->ahead.p + at, left < f->bytes ? left : (size_t)f->bytes};
    return TL_OK;
}

int tl_packed_read(struct tl_packed *p, size_t i, struct tl_buf *data, struct tl_buf *arrivals,
                   struct tl_packed_run **runs, size_t *n_runs, struct tl_fail *fail)
{
    const struct tl_packed_frame *const f = &p->frames[i];
    const size_t front = SKIP_HEAD + FRAME_HEAD;
    struct tl_bytes buf;
    struct head head;
    tl_buf_reset(data);
    *n_runs = 0;
    if (f->bytes == 0 || f->bytes > front + RUNS_MAX + 2 * TL_PACKED_FRAME)
        return damaged(p, i, fail);
    int r = frame_bytes(p, i, &buf, fail);
    if (r < 0)
        return r;
    if (buf.n != f->bytes || !parse_head(buf.p, buf.n, &head) ||
        (uint64_t)head.bytes + head.packed != f->bytes || head.n != f->n ||
        head.offset != f->offset)
        return damaged(p, i, fail);
    const struct tl_bytes reported = {buf.p + front, head.bytes - front};
    const struct tl_bytes packed = {buf.p + head.bytes, head.packed};
    if (frame_crc(buf.p + SKIP_HEAD, reported, packed) != head.crc)
        return damaged(p, i, fail);
    r = tl_buf_reserve(data, f->n);
    if (r >= 0) {
        const size_t n = ZSTD_decompress(data->p, f->n, packed.p, packed.n);
        r = ZSTD_isError(n) || n != f->n ? damaged(p, i, fail) : TL_OK;
        data->n = r < 0 ? 0 : n;
    }
    if (r >= 0) {
        r = read_runs(reported, f->n, arrivals, n_runs);
        if (r == TL_BAD)
            damaged(p, i, fail);
        *runs = (struct tl_packed_run *)(void *)arrivals->p;
    }
    return r;
}

int tl_packed_mend(const struct tl_packed *p, struct tl_fail *fail)
{
    struct tl_buf object = {0}, places = {0}, frame = {0};
    bool sound;
    int r = tl_packed_sound(p, &sound, fail);
    if (r >= 0 && !sound)
        r = put_head(&object, p->first);
    for (size_t i = 0; r >= 0 && !sound && i < p->n; i++) {
        const struct tl_packed_frame *const f = &p->frames[i];
        r = put_place(&places, object.n, f->offset); /* nothing is known about it */
        if (r >= 0)
            r = get(p, f->at, (size_t)f->bytes, &frame, fail);
        if (r >= 0)
            r = tl_buf_add(&object, frame.p, frame.n);
    }
    if (r >= 0 && !sound)
        r = put_index(&object, &places, tl_packed_end(p));
    if (r >= 0 && !sound)
        make_head(object.p, p->first, tl_packed_end(p));
    if (r >= 0 && !sound)
        r = tl_backend_put(p->backend, p->key, (struct tl_bytes){object.p, object.n}, fail);
    tl_buf_fini(&object);
    tl_buf_fini(&places);
    tl_buf_fini(&frame);
    return r;
}
