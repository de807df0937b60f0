/* SPDX-License-Identifier: MIT */
/*
 * Encodes and decodes a shard's private index. Lists are written and read by the same functions, so
 * that both sides agree on every field.
 */
#include "base/crc32c.h"
#include "shard/codeset.h"
#include "shard/shard.h"
#include "shard/varint.h"

#include <stdlib.h>
#include <zstd.h>

#define BODY_MAX   (64u << 20)
#define FOOTER_CRC 44 /* position of the footer's checksum, and the number of bytes it covers */

static const char footer_magic[8] = "TLSHARD1";

/* ---- packing ------------------------------------------------------------------------------- */

int tl_unpack(struct tl_bytes packed, size_t limit, struct tl_buf *out)
{
    const unsigned long long size = ZSTD_getFrameContentSize(packed.p, packed.n);
    if (size == ZSTD_CONTENTSIZE_ERROR || size == ZSTD_CONTENTSIZE_UNKNOWN)
        return TL_BAD;
    if (size > limit)
        return TL_LIMIT;
    if (tl_buf_reserve(out, (size_t)size) < 0)
        return TL_NOMEM;
    const size_t n = ZSTD_decompress(out->p + out->n, (size_t)size, packed.p, packed.n);
    if (ZSTD_isError(n) || n != size)
        return TL_BAD;
    out->n += n;
    return TL_OK;
}

int tl_unpack_checked(struct tl_bytes object, size_t limit, struct tl_buf *out)
{
    const size_t head = sizeof(uint32_t);
    if (object.n < head || tl_le32(object.p) != tl_crc32c(0, object.p + head, object.n - head))
        return TL_NOTFOUND;
    const int r = tl_unpack((struct tl_bytes){object.p + head, object.n - head}, limit, out);
    return r < 0 && r != TL_NOMEM ? TL_NOTFOUND : r;
}

/* ---- encoding ------------------------------------------------------------------------------ */

/* A list of numbers, written and read by the same function, so that both agree. */
struct codec {
    uint8_t *out;                /* when writing; has capacity for all of them */
    struct tl_varint_reader *in; /* when reading, if out is NULL */
};

/* Maximum size of each list. */
#define NOW_MAX   (9 * TL_VARINT_MAX)
#define ROW_MAX   (13 * TL_VARINT_MAX + NOW_MAX)
#define CHUNK_MAX (18 * TL_VARINT_MAX + NOW_MAX)
#define FRAME_MAX (6 * TL_VARINT_MAX)

static void number(struct codec *c, uint64_t *v)
{
    if (c->out)
        c->out += tl_varint_put(c->out, *v);
    else
        *v = tl_varint_get(c->in);
}

static void number32(struct codec *c, uint32_t *v)
{
    uint64_t wide = *v;
    number(c, &wide);
    *v = (uint32_t)wide;
}

static void code_now(struct codec *c, struct tl_flow_now *now)
{
    enum { RESTARTS = 12, SHIFTED = 13 }; /* bits; not in older shards */
    uint64_t bits = (uint64_t)(now->shift != 0) << SHIFTED | (uint64_t)now->restarts << RESTARTS |
                    (uint64_t)now->isa << 4 | now->has_mode | now->has_context << 1 |
                    now->has_vmid << 2 | now->has_time << 3;
    number(c, &bits);
    now->isa = (uint8_t)(bits >> 4);
    now->restarts = bits >> RESTARTS & 1;
    now->has_mode = bits & 1;
    now->has_context = bits & 2;
    now->has_vmid = bits & 4;
    now->has_time = bits & 8;
    number(c, &now->mode);
    number(c, &now->context);
    number(c, &now->vmid);
    number(c, &now->time);
    number(c, &now->offset);
    number32(c, &now->depth);
    if (!c->out)
        now->axis = now->time;
    if (bits >> SHIFTED & 1) {
        number(c, &now->axis);
        number(c, &now->shift);
    }
}

static void code_anchors(struct codec *c, uint32_t *n, struct tl_anchor *first,
                         struct tl_anchor *last)
{
    number32(c, n);
    if (*n == 0)
        return;
    number(c, &first->position);
    number(c, &first->time);
    number(c, &last->position);
    number(c, &last->time);
}

static void code_row(struct codec *c, struct tl_shard_row *row)
{
    number(c, &row->number);
    number(c, &row->first);
    number(c, &row->n);
    number(c, &row->markers);
    number(c, &row->byte_first);
    number(c, &row->byte_last);
    number(c, &row->events);
    number(c, &row->gaps);
    code_anchors(c, &row->anchors, &row->anchor_first, &row->anchor_last);
    code_now(c, &row->at);
}

static void code_chunk(struct codec *c, struct tl_chunk *chunk)
{
    number(c, &chunk->first);
    number(c, &chunk->n);
    number(c, &chunk->marker);
    number32(c, &chunk->stf);
    number32(c, &chunk->events);
    number32(c, &chunk->gaps);
    number32(c, &chunk->kinds);
    code_now(c, &chunk->at);
    code_anchors(c, &chunk->anchors, &chunk->anchor_first, &chunk->anchor_last);
    number(c, &chunk->items_offset);
    number32(c, &chunk->items_size);
    number32(c, &chunk->items_plain);
    number32(c, &chunk->items_crc);
    number32(c, &chunk->code);
    number32(c, &chunk->n_code);
}

static void code_frame(struct codec *c, struct tl_shard_frame *frame)
{
    number(c, &frame->offset);
    number32(c, &frame->size);
    number32(c, &frame->plain);
    number32(c, &frame->crc);
    number(c, &frame->marker);
    number(c, &frame->pc);
}

/* Each is relative to the previous one; the difference wraps where the next chunk's edges begin. */
static int put_edges(const uint64_t *edges, size_t n, struct tl_buf *out)
{
    enum { BATCH = 64 }; /* capacity reserved at once */
    uint64_t last = 0;
    int r = tl_varint_add(out, n);
    for (size_t i = 0; r >= 0 && i < n;) {
        const size_t end = n - i < BATCH ? n : i + BATCH;
        r = tl_buf_reserve(out, BATCH * TL_VARINT_MAX);
        if (r < 0)
            return r;
        uint8_t *p = out->p + out->n;
        for (; i < end; last = edges[i++])
            p += tl_varint_put(p, edges[i] - last);
        out->n = (size_t)(p - out->p);
    }
    return r;
}

int tl_flow_now_encode(const struct tl_flow_now *now, struct tl_buf *out)
{
    struct tl_flow_now copy = *now;
    const int r = tl_buf_reserve(out, NOW_MAX);
    if (r < 0)
        return r;
    struct codec c = {.out = out->p + out->n};
    code_now(&c, &copy);
    out->n = (size_t)(c.out - out->p);
    return TL_OK;
}

int tl_flow_now_decode(struct tl_flow_now *now, struct tl_bytes bytes)
{
    struct tl_varint_reader r = {bytes.p, bytes.p + bytes.n, false};
    struct codec c = {.in = &r};
    *now = (struct tl_flow_now){0};
    code_now(&c, now);
    return r.bad ? TL_BAD : TL_OK;
}

void tl_flow_now_state(struct tl_flow_now *now, struct tl_state *s)
{
    struct tl_buf bytes = {0};
    if (!tl_state_loads(s))
        tl_state_fail(s, tl_flow_now_encode(now, &bytes));
    tl_state_buf(s, &bytes, SIZE_MAX);
    if (tl_state_loads(s) && s->rc >= 0)
        tl_state_fail(s, tl_flow_now_decode(now, (struct tl_bytes){bytes.p, bytes.n}));
    tl_buf_fini(&bytes);
}

int tl_shard_lists_encode(const struct tl_shard_index *index, struct tl_buf *out)
{
    struct tl_shard_row row = index->row;
    uint64_t counts[] = {index->n_chunks, index->n_frames, 0};
    const int r = tl_buf_reserve(out, ROW_MAX + 3 * TL_VARINT_MAX + index->n_chunks * CHUNK_MAX +
                                          index->n_frames * FRAME_MAX);
    if (r < 0)
        return r;
    struct codec c = {.out = out->p + out->n};
    code_row(&c, &row);
    for (size_t i = 0; i < 3; i++)
        number(&c, &counts[i]);
    for (size_t i = 0; i < index->n_chunks; i++)
        code_chunk(&c, &index->chunks[i]);
    for (size_t i = 0; i < index->n_frames; i++)
        code_frame(&c, &index->frames[i]);
    out->n = (size_t)(c.out - out->p);
    return TL_OK;
}

size_t tl_shard_index_about(const struct tl_shard_index *index)
{
    enum { BUCKET = 64, EDGE = 2, FUNCTION = 8, REST = 4096 };
    size_t timed = 0;
    for (unsigned i = 0; i < index->times.n; i++)
        timed += index->times.levels[i].n;
    for (unsigned i = 0; i < index->functions.n; i++)
        timed += index->functions.levels[i].n;
    return timed * 2 * BUCKET + ROW_MAX + index->n_chunks * CHUNK_MAX +
           index->n_frames * FRAME_MAX + index->buckets.n * BUCKET + index->n_code * EDGE +
           index->stats.n_functions * FUNCTION + REST;
}

static int encode_body(const struct tl_shard_index *index, struct tl_buf *out)
{
    int r = tl_shard_lists_encode(index, out);
    if (r >= 0)
        r = tl_buckets_encode(&index->buckets, out);
    if (r >= 0)
        r = put_edges(index->code, index->n_code, out);
    if (r >= 0)
        r = tl_shard_stats_encode(&index->stats, out);
    if (r >= 0)
        r = tl_time_pyramid_encode(&index->times, out);
    return r < 0 ? r : tl_time_pyramid_encode(&index->functions, out);
}

int tl_shard_summary_encode(const struct tl_shard_index *index, struct tl_buf *out)
{
    int r = tl_buckets_encode_summary(&index->buckets, out);
    if (r >= 0)
        r = tl_time_pyramid_encode_summary(&index->times, 0, out);
    return r < 0 ? r : tl_time_pyramid_encode_summary(&index->functions, TL_LEVEL_SUMMARY, out);
}

static void write_footer(uint8_t footer[static TL_SHARD_FOOTER], uint32_t version, uint64_t items,
                         uint64_t body, struct tl_bytes frame)
{
    memset(footer, 0, TL_SHARD_FOOTER);
    memcpy(footer, footer_magic, 8);
    tl_put_le32(footer + 8, version ? version : 1);
    tl_put_le32(footer + 12, tl_crc32c(0, frame.p, frame.n));
    tl_put_le64(footer + 16, items);
    tl_put_le64(footer + 24, body);
    tl_put_le64(footer + 32, frame.n);
    tl_put_le32(footer + FOOTER_CRC, tl_crc32c(0, footer, FOOTER_CRC));
}

/* Append the footer after the index, which begins at `body`. */
static int add_footer(const struct tl_shard_index *index, uint64_t items, size_t body,
                      struct tl_buf *file)
{
    uint8_t footer[TL_SHARD_FOOTER];
    write_footer(footer, index->version, items, body,
                 (struct tl_bytes){file->p + body, file->n - body});
    return tl_buf_add(file, footer, sizeof(footer));
}

int tl_shard_index_encode(const struct tl_shard_index *index, uint64_t sums,
                          struct tl_packer *packer, struct tl_buf *file)
{
    const size_t body = file->n;
    int r = tl_packer_begin(file);
    if (r >= 0)
        r = encode_body(index, file);
    if (r >= 0)
        r = tl_packer_end(packer, body, file);
    return r < 0 ? r : add_footer(index, sums, body, file);
}

int tl_shard_index_pack(const struct tl_shard_index *index, struct tl_packer *packer,
                        struct tl_buf *file)
{
    const size_t body = file->n;
    struct tl_buf plain = {0};
    int r = encode_body(index, &plain);
    if (r >= 0)
        r = tl_packer_bytes(packer, (struct tl_bytes){plain.p, plain.n}, file);
    tl_buf_fini(&plain);
    return r < 0 ? r : add_footer(index, body, body, file);
}

/* ---- decoding ------------------------------------------------------------------------------ */

bool tl_shard_footer_intact(const uint8_t bytes[static TL_SHARD_FOOTER])
{
    return tl_le32(bytes + FOOTER_CRC) == tl_crc32c(0, bytes, FOOTER_CRC);
}

int tl_shard_footer_read(const uint8_t bytes[static TL_SHARD_FOOTER], uint64_t size,
                         struct tl_shard_footer *out)
{
    out->version = tl_le32(bytes + 8);
    if (memcmp(bytes, footer_magic, 8) != 0 || out->version == 0 ||
        out->version > TL_SHARD_VERSION || !tl_shard_footer_intact(bytes))
        return TL_BAD;
    out->body_crc = tl_le32(bytes + 12);
    out->items = tl_le64(bytes + 16);
    out->body = tl_le64(bytes + 24);
    out->body_size = tl_le64(bytes + 32);
    const uint64_t end = size - TL_SHARD_FOOTER;
    if (out->items > out->body || out->body > end || out->body_size != end - out->body)
        return TL_BAD;
    return TL_OK;
}

/* Is everything in the index within its bounds? */
static bool plausible(const struct tl_shard_index *index, const struct tl_shard_footer *footer)
{
    uint64_t position = index->row.first;
    for (size_t i = 0; i < index->n_chunks; i++) {
        const struct tl_chunk *c = &index->chunks[i];
        if (c->first != position || c->stf >= index->n_frames || c->n > index->row.n)
            return false;
        if (c->items_size > 0 &&
            (c->items_offset < footer->items || c->items_offset > footer->body ||
             c->items_size > footer->body - c->items_offset))
            return false;
        if (c->n_code != UINT32_MAX &&
            (c->n_code % 2 != 0 || c->code > index->n_code || c->n_code > index->n_code - c->code))
            return false;
        position += c->n;
    }
    for (size_t i = 0; i < index->n_frames; i++)
        if (index->frames[i].offset > footer->items ||
            index->frames[i].size > footer->items - index->frames[i].offset)
            return false;
    return position == index->row.first + index->row.n && index->n_chunks > 0;
}

/* Read the table of `n` edges, or of as many pages. */
static int read_edges(struct tl_varint_reader *in, uint64_t n, struct tl_shard_index *out)
{
    if (in->bad || n > (uint64_t)(in->end - in->p)) /* at least one byte each */
        return TL_BAD;
    if (n > 0 && tl_grow(&out->code, &out->cap_code, n, sizeof(*out->code)) < 0)
        return TL_NOMEM;
    uint64_t last = 0;
    for (; out->n_code < n; out->n_code++)
        out->code[out->n_code] = last += tl_varint_get(in);
    return in->bad ? TL_BAD : TL_OK;
}

/* Older shards only have the pages with executed code: treat them as completely executed. */
static int edges_of_pages(struct tl_shard_index *out)
{
    const size_t n = out->n_code;
    const unsigned shift = 12 - TL_CODE_SHIFT;
    if (tl_grow(&out->code, &out->cap_code, 2 * n, sizeof(*out->code)) < 0)
        return TL_NOMEM;
    for (size_t i = n; i-- > 0;) {
        const uint64_t page = out->code[i];
        out->code[2 * i] = page << shift;
        out->code[2 * i + 1] = (page + 1) << shift;
    }
    out->n_code = 2 * n;
    for (size_t i = 0; i < out->n_chunks; i++) {
        struct tl_chunk *const chunk = &out->chunks[i];
        if (chunk->n_code == UINT32_MAX)
            continue;
        if (chunk->code > n || chunk->n_code > n)
            return TL_BAD;
        chunk->code *= 2;
        chunk->n_code *= 2;
    }
    return TL_OK;
}

/* `*n_pages`: for an older shard, follows the lists. */
static int read_lists(struct tl_varint_reader *r, struct tl_shard_index *out, uint64_t *n_pages)
{
    const size_t most = (size_t)(r->end - r->p);
    struct codec c = {.in = r};
    code_row(&c, &out->row);
    const uint64_t n_chunks = tl_varint_get(r), n_frames = tl_varint_get(r);
    *n_pages = tl_varint_get(r);
    if (r->bad || n_chunks > most || n_frames > most)
        return TL_BAD;
    if (tl_grow(&out->chunks, &out->cap_chunks, n_chunks + 1, sizeof(*out->chunks)) < 0 ||
        tl_grow(&out->frames, &out->cap_frames, n_frames + 1, sizeof(*out->frames)) < 0)
        return TL_NOMEM;
    memset(out->chunks, 0, n_chunks * sizeof(*out->chunks));
    memset(out->frames, 0, n_frames * sizeof(*out->frames));
    for (; out->n_chunks < n_chunks; out->n_chunks++)
        code_chunk(&c, &out->chunks[out->n_chunks]);
    for (; out->n_frames < n_frames; out->n_frames++)
        code_frame(&c, &out->frames[out->n_frames]);
    return r->bad ? TL_BAD : TL_OK;
}

int tl_shard_lists_decode(struct tl_shard_index *out, struct tl_bytes bytes)
{
    struct tl_varint_reader r = {bytes.p, bytes.p + bytes.n, false};
    uint64_t n_pages;
    const int result = read_lists(&r, out, &n_pages);
    return result >= 0 && (n_pages > 0 || r.p != r.end) ? TL_BAD : result;
}

static int decode_body(struct tl_shard_index *out, struct tl_bytes body)
{
    struct tl_varint_reader r = {body.p, body.p + body.n, false};
    uint64_t n_pages;
    int result = read_lists(&r, out, &n_pages);
    if (result >= 0)
        result = read_edges(&r, n_pages, out);
    if (result >= 0 && n_pages > 0)
        result = edges_of_pages(out);
    if (result >= 0)
        result = tl_buckets_read(&out->buckets, &r);
    if (result < 0 || r.p == r.end)
        return result;
    const uint64_t n_code = tl_varint_get(&r);
    result = n_pages > 0 ? TL_BAD : read_edges(&r, n_code, out);
    if (result >= 0 && r.p != r.end)
        result = tl_shard_stats_read(&out->stats, &r);
    if (result >= 0 && r.p != r.end)
        result = tl_time_pyramid_read(&out->times, &r);
    if (result >= 0 && r.p != r.end)
        result = tl_function_counts_read(&out->functions, &r);
    return result;
}

int tl_shard_index_decode(struct tl_shard_index *out, struct tl_bytes body,
                          const struct tl_shard_footer *footer)
{
    struct tl_buf plain = {0};
    *out = (struct tl_shard_index){0};
    if (body.n != footer->body_size || tl_crc32c(0, body.p, body.n) != footer->body_crc)
        return TL_BAD;
    int r = tl_unpack(body, BODY_MAX, &plain);
    if (r >= 0)
        r = decode_body(out, (struct tl_bytes){plain.p, plain.n});
    tl_buf_fini(&plain);
    if (r >= 0 && !plausible(out, footer))
        r = TL_BAD;
    if (r < 0)
        tl_shard_index_fini(out);
    out->version = footer->version;
    out->row.size = footer->body + footer->body_size + TL_SHARD_FOOTER;
    return r;
}
