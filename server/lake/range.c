/* SPDX-License-Identifier: MIT */
/*
 * Ranges of a stream, streamed chunk by chunk in constant memory: as flow text and its lines
 * straight from the items, as STF through the flow writer.
 *
 * A .zstf names the place of its index in its first bytes, so it is made in a scratch file
 * first and then read from there.
 */
#include "lake/lakeint.h"
#include "lake/scale.h"
#include "stf/flow_writer.h"
#include "stf/known.h"
#include "stf/zstf.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#define PIECE         (128u << 10)
#define PIECE_MARKERS 8192 /* instructions in a piece of STF */

struct tl_range {
    struct tl_cut cut;
    struct tl_cut_walk walk;
    enum tl_range_format format;
    uint64_t first, count;
    bool begun, ended;
    struct tl_buf text; /* of one item, to be taken apart into lines */
    size_t item;        /* of the walk's: the next to be written as text or lines */
    struct tl_stf_flow *flow;
    struct tl_stf_flow_at flow_at;
    struct tl_zstf_writer *zstf;
    int scratch; /* the finished .zstf, or -1 */
    uint64_t scratch_size, scratch_at;
};

int tl_range_open(struct tl_lake *lake, const struct tl_range_request *request,
                  struct tl_range **out, struct tl_fail *fail)
{
    struct tl_range *range = calloc(1, sizeof(*range));
    if (!range)
        return tl_fail_set(fail, TL_NOMEM, "no memory");
    range->format = request->format;
    range->scratch = -1;
    range->flow_at.item = SIZE_MAX;
    uint64_t end;
    int r = tl_cut_open(&range->cut, lake, request->trace, request->stream, fail);
    if (r < 0) {
        free(range);
        return r;
    }
    if (range->cut.lane->protocol == TL_PROTO_STF_TRANSACTIONS &&
        (range->format == TL_FORMAT_STF || range->format == TL_FORMAT_ZSTF)) {
        tl_range_close(range);
        return tl_fail_set(fail, TL_UNSUPPORTED,
                           "a transaction trace has no instructions: fetch its text or JSON");
    }
    r = tl_cut_resolve(&range->cut, request->unit, request->from, request->to, &range->first, &end,
                       fail);
    if (r < 0) {
        tl_range_close(range);
        return r;
    }
    range->count = end - range->first;
    /* What follows the last instruction belongs to a range that is open at its end. */
    const bool whole = request->to == UINT64_MAX ||
                       (request->unit == TL_UNIT_INSN && request->to > range->cut.end);
    tl_cut_walk_begin(&range->walk, &range->cut, range->first, whole ? UINT64_MAX : end);
    if (!whole)
        range->walk.range.tail = false;
    atomic_fetch_add(&lake->ranges_served, 1);
    *out = range;
    return TL_OK;
}

void tl_range_extent(const struct tl_range *range, uint64_t *first, uint64_t *count)
{
    *first = range->first;
    *count = range->count;
}

void tl_range_close(struct tl_range *range)
{
    if (!range)
        return;
    tl_cut_walk_end(&range->walk);
    tl_cut_close(&range->cut);
    tl_buf_fini(&range->text);
    tl_stf_flow_free(range->flow);
    tl_zstf_writer_free(range->zstf);
    if (range->scratch >= 0)
        close(range->scratch);
    free(range);
}

static int next_chunk(struct tl_range *range, struct tl_fail *fail)
{
    const int r = tl_cut_walk_next(&range->walk, fail);
    tl_walk_slim(&range->walk.walk);
    return r;
}

/* A chunk is far more than a piece as text. The next item; TL_EOF behind the last. */
static int next_item(struct tl_range *range, size_t *item, struct tl_fail *fail)
{
    while (range->item >= range->walk.walk.n) {
        const int r = next_chunk(range, fail);
        if (r < 0)
            return r;
        range->item = 0;
    }
    *item = range->item++;
    return TL_OK;
}

/* ---- text ----------------------------------------------------------------------------------- */

static int next_text(struct tl_range *range, struct tl_buf *out, struct tl_fail *fail)
{
    const struct tl_walk *walk = &range->walk.walk;
    const size_t before = out->n;
    int r = TL_OK;
    if (!range->begun) {
        range->begun = true;
        r = tl_buf_printf(out, "# stream %s\n", range->cut.lane->name);
    }
    while (r >= 0 && out->n - before < PIECE) {
        size_t item;
        r = next_item(range, &item, fail);
        if (r == TL_EOF)
            return out->n > before ? TL_OK : TL_EOF;
        if (r >= 0)
            r = tl_item_text(out, &walk->items[item], 1);
    }
    return r;
}

/* ---- lines ---------------------------------------------------------------------------------- */

static int add_lines(struct tl_range *range, size_t i, tl_line_sink *sink, void *context)
{
    const struct tl_walk *walk = &range->walk.walk;
    struct tl_buf *const text = &range->text;
    tl_buf_reset(text);
    int r = tl_item_text(text, &walk->items[i], 1);
    uint64_t next = walk->positions[i], position = next;
    for (size_t at = 0; r >= 0 && at < text->n;) {
        const uint8_t *const line = text->p + at;
        const uint8_t *const end = memchr(line, '\n', text->n - at);
        const size_t n = end ? (size_t)(end - line) : text->n - at;
        /* What is told of an instruction stands behind it. */
        if (line[0] != 'A')
            position = next++;
        r = sink(context, position, (struct tl_bytes){line, n});
        at += n + 1;
    }
    return r;
}

int tl_range_lines(struct tl_range *range, tl_line_sink *sink, void *context, struct tl_fail *fail)
{
    size_t item;
    int r = next_item(range, &item, fail);
    if (r >= 0)
        r = add_lines(range, item, sink, context);
    return r == TL_NOMEM ? tl_fail_set(fail, r, "no memory") : r;
}

/* ---- STF ------------------------------------------------------------------------------------ */

static int make_flow(struct tl_range *range, struct tl_fail *fail)
{
    struct tl_stf_known *known;
    int r = tl_cut_known(&range->cut, range->first, &known, fail);
    if (r < 0)
        return r;
    const struct tl_flow_now *now = &range->walk.walk.now;
    const struct tl_stf_flow_options options = {.isa = tl_cut_isa(&range->cut),
                                                .first = range->first};
    const struct tl_stf_flow_state state = {
        .mode = now->mode,
        .context = now->context,
        .vmid = now->vmid,
        .isa = now->isa,
        .has_mode = now->has_mode,
        .has_context = now->has_context,
        .has_vmid = now->has_vmid,
    };
    r = tl_stf_flow_new(&range->flow, &options, &state);
    if (r < 0)
        tl_stf_known_free(known);
    else
        tl_stf_flow_know(range->flow, known);
    return r;
}

/* The next chunk's items into the flow writer; TL_EOF once everything is in. */
static int feed_flow(struct tl_range *range, uint64_t stop, struct tl_fail *fail)
{
    struct tl_stf_flow_at *const at = &range->flow_at;
    const struct tl_walk *walk = &range->walk.walk;
    if (range->ended)
        return TL_EOF;
    if (at->item >= walk->n) {
        const int r = next_chunk(range, fail);
        *at = (struct tl_stf_flow_at){0};
        int made = TL_OK;
        if (!range->flow && (r >= 0 || r == TL_EOF))
            made = make_flow(range, fail);
        if (made < 0)
            return made;
        if (r == TL_EOF) {
            range->ended = true;
            return tl_stf_flow_finish(range->flow);
        }
        if (r < 0)
            return r;
    }
    return tl_stf_flow_items(range->flow, walk->items, walk->n, stop, at);
}

static int next_stf(struct tl_range *range, struct tl_buf *out, struct tl_fail *fail)
{
    const size_t before = out->n;
    while (out->n - before < PIECE) {
        const uint64_t markers = range->flow ? tl_stf_flow_markers(range->flow) : 0;
        int r = feed_flow(range, markers + PIECE_MARKERS, fail);
        if (r == TL_EOF)
            return out->n > before ? TL_OK : TL_EOF;
        if (r < 0 && r != TL_AGAIN)
            return r;
        const struct tl_bytes bytes = tl_stf_flow_bytes(range->flow);
        r = tl_buf_add(out, bytes.p, bytes.n);
        if (r < 0)
            return r;
        tl_stf_flow_take(range->flow);
    }
    return TL_OK;
}

/* ---- .zstf ---------------------------------------------------------------------------------- */

static int write_scratch(struct tl_range *range, struct tl_buf *bytes, struct tl_fail *fail)
{
    for (size_t at = 0; at < bytes->n;) {
        const ssize_t n =
            pwrite(range->scratch, bytes->p + at, bytes->n - at, (off_t)(range->scratch_size + at));
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return tl_fail_set(fail, errno == ENOSPC ? TL_NOSPACE : TL_IO,
                               "cannot write a scratch file: %s", strerror(errno));
        at += (size_t)n;
    }
    range->scratch_size += bytes->n;
    tl_buf_reset(bytes);
    return TL_OK;
}

static int zstf_chunk(struct tl_range *range, uint64_t *begun, struct tl_buf *bytes,
                      struct tl_fail *fail)
{
    const uint64_t markers = tl_stf_flow_markers(range->flow);
    int r = tl_zstf_writer_chunk(range->zstf, tl_stf_flow_bytes(range->flow), markers - *begun,
                                 *begun > 0 ? tl_stf_flow_chunk_pc(range->flow) : 0, bytes);
    tl_stf_flow_take(range->flow);
    *begun = markers;
    return r < 0 ? r : write_scratch(range, bytes, fail);
}

static int zstf_chunks(struct tl_range *range, struct tl_buf *bytes, struct tl_fail *fail)
{
    uint64_t begun = 0;
    for (;;) {
        int r = feed_flow(range, begun + TL_CHUNK_MARKERS, fail);
        if (r == TL_AGAIN)
            r = zstf_chunk(range, &begun, bytes, fail);
        if (r == TL_EOF)
            break;
        if (r < 0)
            return r;
    }
    /* What follows a full last chunk has no instruction, and no place in a .zstf. */
    if (tl_stf_flow_markers(range->flow) > begun || begun == 0)
        return zstf_chunk(range, &begun, bytes, fail);
    return TL_OK;
}

static int make_zstf(struct tl_range *range, struct tl_fail *fail)
{
    struct tl_backend *backend = range->cut.gen->lake->backend;
    struct tl_buf bytes = {0};
    uint8_t head[TL_ZSTF_HEAD];
    range->scratch = backend->ops->scratch(backend, fail);
    if (range->scratch < 0)
        return range->scratch;
    int r = tl_zstf_writer_new(&range->zstf, TL_CHUNK_MARKERS, 0);
    if (r >= 0)
        r = tl_zstf_writer_begin(range->zstf, &bytes);
    if (r >= 0)
        r = write_scratch(range, &bytes, fail);
    if (r >= 0)
        r = zstf_chunks(range, &bytes, fail);
    if (r >= 0)
        r = tl_zstf_writer_finish(range->zstf, (struct tl_bytes){0}, &bytes, head);
    if (r >= 0)
        r = write_scratch(range, &bytes, fail);
    if (r >= 0 && pwrite(range->scratch, head, sizeof(head), 0) != (ssize_t)sizeof(head))
        r = tl_fail_set(fail, TL_IO, "cannot write a scratch file: %s", strerror(errno));
    tl_buf_fini(&bytes);
    return r;
}

static int next_zstf(struct tl_range *range, struct tl_buf *out, struct tl_fail *fail)
{
    if (!range->begun) {
        range->begun = true;
        const int r = make_zstf(range, fail);
        if (r < 0)
            return r;
    }
    if (range->scratch_at >= range->scratch_size)
        return TL_EOF;
    if (tl_buf_reserve(out, PIECE) < 0)
        return tl_fail_set(fail, TL_NOMEM, "no memory");
    const ssize_t n = pread(range->scratch, out->p + out->n, PIECE, (off_t)range->scratch_at);
    if (n <= 0)
        return tl_fail_set(fail, TL_IO, "cannot read a scratch file: %s", strerror(errno));
    out->n += (size_t)n;
    range->scratch_at += (uint64_t)n;
    return TL_OK;
}

int tl_range_next(struct tl_range *range, struct tl_buf *out, struct tl_fail *fail)
{
    int r;
    switch (range->format) {
    case TL_FORMAT_TEXT:
        r = next_text(range, out, fail);
        break;
    case TL_FORMAT_STF:
        r = next_stf(range, out, fail);
        break;
    case TL_FORMAT_ZSTF:
        r = next_zstf(range, out, fail);
        break;
    default:
        return tl_fail_set(fail, TL_USAGE, "that is no format of files");
    }
    if (r == TL_NOMEM)
        return tl_fail_set(fail, r, "no memory");
    return r;
}
