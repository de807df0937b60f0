/* SPDX-License-Identifier: MIT */
/*
 * Ranges of a stream, streamed chunk by chunk in constant memory: flow text and its lines directly
 * from the items, STF copied from the shards' frames or, if that is not possible, through the flow
 * writer.
 */
#include "range/range.h"
#include "lake/locate.h"
#include "range/named.h"
#include "range/sieve.h"
#include "range/zstf.h"

#include <assert.h>
#include <stdlib.h>

#define PIECE_MARKERS 8192 /* instructions per piece of STF */

struct tl_range {
    struct tl_cut cut;
    enum tl_range_format format;
    uint64_t first, count;
    uint64_t to; /* as requested: UINT64_MAX for an open-ended range */
    bool tail;   /* includes what follows the last instruction */
    bool begun, ended;
    struct tl_sieve *sieve; /* NULL: everything */
    /* Text and lines: */
    struct tl_cut_walk walk;
    struct tl_buf text;          /* of one item, to be split into lines */
    size_t item;                 /* index of the walk's next item to write */
    bool lined;                  /* text: instructions are formatted one by one */
    struct tl_buf lines;         /* lines of the chunk */
    struct tl_range_named named; /* with names */
    size_t line;                 /* next byte of `lines`; SIZE_MAX: out of memory */
    /* STF: */
    bool opened, anew;
    bool copied; /* false: it is rewritten */
    struct tl_range_copy copy;
    struct tl_bytes rest; /* rest of a copied run that is longer than a piece */
    struct tl_range_flow flow;
    struct tl_range_zstf *zstf;
};

static bool is_stf(const struct tl_range *range)
{
    return range->format == TL_FORMAT_STF || range->format == TL_FORMAT_ZSTF;
}

int tl_range_open(struct tl_lake *lake, const struct tl_range_request *request,
                  struct tl_range **out, struct tl_fail *fail)
{
    struct tl_range *range = calloc(1, sizeof(*range));
    if (!range)
        return tl_fail_set(fail, TL_NOMEM, "no memory");
    range->format = request->format;
    uint64_t end;
    int r = tl_cut_open_outlined(&range->cut, lake, request->trace, request->stream, fail);
    if (r < 0) {
        free(range);
        return r;
    }
    if (range->cut.lane->protocol == TL_PROTO_STF_TRANSACTIONS && is_stf(range))
        r = tl_fail_set(fail, TL_UNSUPPORTED,
                        "a transaction trace has no instructions: fetch its text or JSON");
    else
        r = tl_cut_resolve(&range->cut, request->unit, request->from, request->to, &range->first,
                           &end, fail);
    if (r < 0) {
        tl_range_close(range);
        return r;
    }
    range->count = end - range->first;
    /* What follows the last instruction belongs to an open-ended range. */
    const bool whole = request->to == UINT64_MAX ||
                       (request->unit == TL_UNIT_INSN && request->to > range->cut.end);
    range->to = whole ? UINT64_MAX : end;
    range->tail = whole;
    tl_cut_walk_begin(&range->walk, &range->cut, range->first, range->to);
    range->walk.range.tail = whole;
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
    tl_buf_fini(&range->text);
    tl_buf_fini(&range->lines);
    tl_range_named_fini(&range->named);
    tl_range_zstf_free(range->zstf);
    tl_range_copy_end(&range->copy);
    tl_range_flow_end(&range->flow);
    tl_sieve_free(range->sieve);
    tl_cut_close(&range->cut);
    free(range);
}

static int next_chunk(struct tl_range *range, struct tl_fail *fail)
{
    tl_buf_reset(&range->lines);
    range->line = 0;
    const int r = range->sieve ? tl_sieve_next(range->sieve, &range->walk, fail)
                               : tl_cut_walk_next(&range->walk, fail);
    if (range->line == SIZE_MAX)
        return tl_fail_set(fail, TL_NOMEM, "no memory");
    if (!range->lined)
        tl_walk_slim(&range->walk.walk);
    return r;
}

/* A chunk is much more than a piece of text. Go to the next item; TL_EOF after the last. */
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

int tl_range_filter(struct tl_range *range, const struct tl_range_filter *filter,
                    struct tl_fail *fail)
{
    assert(!range->sieve && !range->begun && !range->opened);
    return tl_sieve_new(&range->sieve, filter, &range->walk, fail);
}

uint64_t tl_range_kept(const struct tl_range *range)
{
    return range->sieve ? tl_sieve_kept(range->sieve) : range->count;
}

/* ---- text ----------------------------------------------------------------------------------- */

static void form_line(void *context, const struct tl_walk_insn *insn)
{
    struct tl_range *const range = context;
    struct tl_buf *const lines = &range->lines;
    if (tl_buf_reserve(lines, TL_BLOCK_CODE) < 0)
        range->line = SIZE_MAX;
    else
        lines->n += tl_item_text_insn(lines->p + lines->n, insn->pc, insn->code, insn->size,
                                      insn->opcode, (enum tl_isa)insn->isa);
}

/* Imported STF has more per instruction than its lines: its blocks contain it. A filter leaves out
 * blocks, but not their lines. */
static void begin_lines(struct tl_range *range)
{
    range->lined = range->cut.lane->protocol != TL_PROTO_STF && !range->sieve &&
                   range->format == TL_FORMAT_TEXT;
    if (range->lined) {
        range->walk.walk.each = form_line;
        range->walk.walk.context = range;
    }
}

static int item_text(struct tl_range *range, const struct tl_item *item, struct tl_buf *out)
{
    if (!range->lined || item->kind != TL_ITEM_BLOCK)
        return tl_item_text(out, item, 1);
    const struct tl_block *const b = item->block;
    const size_t n = (size_t)b->n * TL_ITEM_INSN_TEXT + 2 * (size_t)b->size;
    if (n > range->lines.n - range->line)
        return TL_BAD;
    const int r = tl_buf_add(out, range->lines.p + range->line, n);
    range->line += n;
    return r;
}

static int named_text(struct tl_range *range, const struct tl_item *item, struct tl_buf *out)
{
    if (!range->named.begun)
        range->named.now = range->walk.walk.now;
    range->named.begun = true;
    return tl_range_named_item(&range->named, item, out);
}

static int next_text(struct tl_range *range, struct tl_buf *out, struct tl_fail *fail)
{
    const struct tl_walk *walk = &range->walk.walk;
    const size_t before = out->n;
    int r = TL_OK;
    if (!range->begun) {
        range->begun = true;
        begin_lines(range);
        range->named.image = tl_gen_image(range->cut.gen);
        r = tl_buf_printf(out, "# stream %s\n", range->cut.lane->name);
    }
    while (r >= 0 && out->n - before < TL_RANGE_PIECE) {
        size_t item;
        r = next_item(range, &item, fail);
        if (r == TL_EOF)
            return out->n > before ? TL_OK : TL_EOF;
        if (r >= 0 && range->format == TL_FORMAT_NAMED)
            r = named_text(range, &walk->items[item], out);
        else if (r >= 0)
            r = item_text(range, &walk->items[item], out);
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
        /* Only blocks cover several positions, one per instruction; additional lines follow their
         * instruction. Any other item's lines are at its own position. */
        if (line[0] == 'I' || line[0] == 'N')
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

static void write_anew(struct tl_range *range)
{
    range->copied = false;
    tl_range_flow_begin(&range->flow, &range->cut, range->first, range->to, range->tail);
    range->flow.sieve = range->sieve;
}

/* Copy, if that is possible. */
static int open_stf(struct tl_range *range, struct tl_fail *fail)
{
    if (range->opened)
        return TL_OK;
    range->opened = true;
    int r = range->anew || range->sieve
                ? TL_UNSUPPORTED
                : tl_range_copy_begin(&range->copy, &range->cut, range->first, range->to,
                                      range->tail, fail);
    /* For a .zstf this is checked when the file is made, before its first byte is sent. */
    if (r >= 0 && range->format == TL_FORMAT_STF)
        r = tl_range_copy_check(&range->copy, fail);
    range->copied = r >= 0;
    if (r != TL_UNSUPPORTED)
        return r;
    write_anew(range);
    return TL_OK;
}

void tl_range_write_anew(struct tl_range *range)
{
    range->anew = true;
}

/* Rewrite. */
static int next_flow(struct tl_range *range, struct tl_buf *out, struct tl_fail *fail)
{
    struct tl_range_flow *const flow = &range->flow;
    const size_t before = out->n;
    while (out->n - before < TL_RANGE_PIECE) {
        const uint64_t markers = flow->flow ? tl_stf_flow_markers(flow->flow) : 0;
        int r = tl_range_flow_feed(flow, markers + PIECE_MARKERS, fail);
        if (r == TL_EOF)
            return out->n > before ? TL_OK : TL_EOF;
        if (r < 0 && r != TL_AGAIN)
            return r;
        const struct tl_bytes bytes = tl_stf_flow_bytes(flow->flow);
        r = tl_buf_add(out, bytes.p, bytes.n);
        if (r < 0)
            return r;
        tl_stf_flow_take(flow->flow);
    }
    return TL_OK;
}

/* The next copied run; TL_EOF after the last. */
static int next_run(struct tl_range *range, struct tl_bytes *out, struct tl_fail *fail)
{
    struct tl_range_copy *const copy = &range->copy;
    struct tl_range_piece run = {0};
    int r = TL_OK;
    if (range->ended)
        return TL_EOF;
    if (!range->begun) {
        range->begun = true;
        *out = (struct tl_bytes){copy->head.p, copy->head.n};
        return TL_OK;
    }
    r = tl_range_copy_next(copy, &run, fail);
    range->ended = r == TL_EOF;
    *out = range->ended ? (struct tl_bytes){copy->trail.p, copy->trail.n} : run.stf;
    return range->ended ? TL_OK : r;
}

static int next_copied(struct tl_range *range, struct tl_buf *out, struct tl_fail *fail)
{
    struct tl_bytes *const rest = &range->rest;
    int r = TL_OK;
    while (r >= 0 && rest->n == 0)
        r = next_run(range, rest, fail);
    if (r < 0)
        return r;
    const size_t n = rest->n < TL_RANGE_PIECE ? rest->n : TL_RANGE_PIECE;
    r = tl_buf_add(out, rest->p, n);
    rest->p += n;
    rest->n -= n;
    return r;
}

static int next_zstf(struct tl_range *range, struct tl_buf *out, struct tl_fail *fail)
{
    int r = TL_OK;
    if (!range->zstf)
        r = tl_range_zstf_new(&range->zstf, range->copied ? &range->copy : NULL, &range->flow,
                              range->cut.gen->lake);
    if (r >= 0)
        r = tl_range_zstf_next(range->zstf, out, fail);
    if (r != TL_UNSUPPORTED || !range->copied)
        return r;
    tl_range_zstf_free(range->zstf);
    range->zstf = NULL;
    write_anew(range);
    return next_zstf(range, out, fail);
}

int tl_range_next_stored(struct tl_range *range, struct tl_range_stored *out, struct tl_fail *fail)
{
    *out = (struct tl_range_stored){0};
    return range->zstf ? tl_range_zstf_stored(range->zstf, out, fail) : TL_AGAIN;
}

int tl_range_next(struct tl_range *range, struct tl_buf *out, struct tl_fail *fail)
{
    int r = is_stf(range) ? open_stf(range, fail) : TL_OK;
    if (r < 0)
        return r == TL_NOMEM ? tl_fail_set(fail, r, "no memory") : r;
    switch (range->format) {
    case TL_FORMAT_TEXT:
    case TL_FORMAT_NAMED:
        r = next_text(range, out, fail);
        break;
    case TL_FORMAT_STF:
        r = range->copied ? next_copied(range, out, fail) : next_flow(range, out, fail);
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
