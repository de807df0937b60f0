/* SPDX-License-Identifier: MIT */
/*
 * Snapshots of a lane for readers, and iteration over their chunks. A reader works on a snapshot,
 * so that shards may be added or replaced while it reads.
 */
#include "lake/cut.h"
#include "base/search.h"
#include "lake/locate.h"
#include "shard/savedstack.h"
#include "stf/flow_map.h"
#include "stf/known.h"

#include <stdlib.h>

static int copy_rows(struct tl_cut *cut, const struct tl_lane *lane, size_t more)
{
    cut->tail = calloc(more + 1, sizeof(struct tl_view *));
    const int r = cut->tail ? tl_rows_copy(&cut->copy, &lane->rows, more) : TL_NOMEM;
    if (r < 0)
        return r;
    cut->rows = cut->copy.v;
    cut->n_stored = cut->n_rows = lane->rows.n;
    return TL_OK;
}

/* `view` NULL: it is put away. */
static void add_shard(struct tl_cut *cut, const struct tl_shard_row *row, struct tl_view *view)
{
    cut->tail[cut->n_rows - cut->n_stored] = view;
    cut->rows[cut->n_rows++] = *row;
}

static void add_tail(struct tl_cut *cut, struct tl_view *view)
{
    add_shard(cut, &view->index.row, view);
}

static void find_end(struct tl_cut *cut)
{
    if (cut->n_rows > 0) {
        const struct tl_shard_row *const last = &cut->rows[cut->n_rows - 1];
        cut->end = last->first + last->n;
    }
}

/* As tl_cut_of_lane(), with room for `more` views. */
static int cut_lane(struct tl_cut *out, struct tl_gen *gen, struct tl_lane *lane, size_t more)
{
    *out = (struct tl_cut){.gen = tl_gen_get(gen), .lane = lane};
    pthread_mutex_lock(&lane->lock);
    int r = tl_away_take(&out->away, lane->away, lane->n_away);
    if (r >= 0)
        r = copy_rows(out, lane, out->away.shards + lane->n_pending + 1 + more);
    out->n_rows += r >= 0 ? out->away.shards : 0; /* whose rows are read without the lock */
    for (size_t i = 0; i < lane->n_pending && r >= 0; i++)
        add_tail(out, tl_view_get(lane->pending[i]));
    if (r >= 0 && lane->build) {
        struct tl_view *view;
        r = tl_build_view(lane->build, &view);
        if (r >= 0 && view && gen->is_virtual)
            tl_lane_make_virtual(lane, view);
        if (r >= 0 && view)
            add_tail(out, view);
        out->open = true;
    }
    pthread_mutex_unlock(&lane->lock);
    if (r >= 0)
        r = tl_away_taken_rows(&out->away, out->rows + out->n_stored);
    if (r < 0) {
        tl_cut_close(out);
        return r;
    }
    find_end(out);
    return TL_OK;
}

int tl_cut_of_lane(struct tl_cut *out, struct tl_gen *gen, struct tl_lane *lane)
{
    return cut_lane(out, gen, lane, 0);
}

/* ---- outlines ------------------------------------------------------------------------------- */

/* Does `a` tell more of the stream than `b`? There may be items, but no positions. */
static bool is_ahead(const struct tl_cut *a, const struct tl_cut *b)
{
    if (a->n_rows == 0 || b->n_rows == 0)
        return a->n_rows > 0;
    const struct tl_shard_row *const x = &a->rows[a->n_rows - 1];
    const struct tl_shard_row *const y = &b->rows[b->n_rows - 1];
    return x->number != y->number ? x->number > y->number
           : x->n != y->n         ? x->n > y->n
                                  : x->byte_last > y->byte_last;
}

/* Append those of the outline's shards that continue the snapshot; the last one of the index, which
 * grows, gives way to its outline. */
static void append_outlines(struct tl_cut *cut, struct tl_cut *outlines)
{
    const size_t n = outlines->n_rows - outlines->n_stored;
    if (cut->n_rows > cut->n_stored && cut->tail[cut->n_rows - cut->n_stored - 1]->open)
        tl_view_put(cut->tail[--cut->n_rows - cut->n_stored]);
    cut->n_indexed = cut->n_rows;
    for (size_t i = 0; i < n; i++) {
        const struct tl_shard_row *const row = &outlines->rows[outlines->n_stored + i];
        struct tl_view *const view = outlines->tail[i];
        if (row->number == cut->n_rows)
            add_shard(cut, row, view ? tl_view_get(view) : NULL);
    }
    cut->away = outlines->away;
    outlines->away = (struct tl_away_taken){0};
    cut->outline = tl_gen_get(outlines->gen);
    cut->outlined = outlines->lane;
    cut->open = cut->open || outlines->open;
    find_end(cut);
}

/* A snapshot of the index's lane and, as far as it goes on behind that, of its outline. */
static int cut_outlined(struct tl_cut *out, struct tl_gen *gen, struct tl_lane *lane,
                        struct tl_gen *outline, struct tl_lane *outlined)
{
    struct tl_cut outlines;
    /* First: shards that the outline lets go of meanwhile are then in the index. */
    int r = tl_cut_of_lane(&outlines, outline, outlined);
    if (r < 0)
        return r;
    r = cut_lane(out, gen, lane, outlines.n_rows - outlines.n_stored);
    if (r >= 0 && is_ahead(&outlines, out))
        append_outlines(out, &outlines);
    tl_cut_close(&outlines);
    return r;
}

static struct tl_lane *lane_ahead(struct tl_gen *outline, const struct tl_lane *lane)
{
    return outline && lane && outline->number == lane->gen->number
               ? tl_gen_lane(outline, lane->name)
               : NULL;
}

/* As tl_cut_of_lane(), with the outline, NULL: there is none. */
static int cut_with(struct tl_cut *out, struct tl_gen *gen, struct tl_lane *lane,
                    struct tl_gen *outline)
{
    struct tl_lane *const ahead = lane_ahead(outline, lane);
    return ahead ? cut_outlined(out, gen, lane, outline, ahead) : tl_cut_of_lane(out, gen, lane);
}

/* ---- ranges of them, indexed ---------------------------------------------------------------- */

/* End before shard `i`. */
static void end_before(struct tl_cut *cut, size_t i)
{
    const struct tl_shard_row *const row = &cut->rows[i];
    const struct tl_axis axis = tl_lane_axis(cut->lane);
    cut->behind = cut->open = true;
    cut->behind_time = row->at.has_time ? tl_axis_shown(&axis, row->at.axis) : 0;
    cut->end = row->first;
    while (cut->n_rows > i)
        tl_view_put(cut->tail[--cut->n_rows - cut->n_stored]);
}

/* The views of shards [i, i + n) have been replaced. */
static void take_rows(struct tl_cut *cut, size_t i, size_t n)
{
    for (; n > 0; i++, n--)
        cut->rows[i] = cut->tail[i - cut->n_stored]->index.row;
    if (i == cut->n_rows)
        find_end(cut); /* the last one may have grown */
}

/* Which shards the range has: [*first, *end). */
static int find_shards(const struct tl_cut *cut, const struct tl_cut_range *range, size_t *first,
                       size_t *end, struct tl_fail *fail)
{
    uint64_t from, to;
    const int r = tl_cut_resolve(cut, range->unit, range->from, range->to, &from, &to, fail);
    if (r < 0)
        return r;
    *first = tl_cut_items_at(cut, from);
    *end = to > from ? tl_cut_shard_at(cut, to - 1) + 1 : *first;
    if (range->unit != TL_UNIT_INSN)
        ++*end; /* whose first times are those of the last instructions before it */
    if (*end > cut->n_rows || to >= cut->end)
        *end = cut->n_rows;
    return TL_OK;
}

/* Open those of shards [first, end) that are put away, as many as are indexed at once. Returns for
 * how many there are views. */
static size_t open_some(struct tl_cut *cut, size_t first, size_t end)
{
    size_t n = 0;
    for (; n < end - first && n < TL_VIEW_CACHE / 2; n++) {
        struct tl_view **const view = &cut->tail[first + n - cut->n_stored];
        if (!*view && tl_cut_view(cut, first + n, view, NULL) < 0)
            break;
    }
    return n;
}

static int cover(struct tl_cut *cut, const struct tl_cut_range *range, struct tl_fail *fail)
{
    size_t first, end;
    if (!cut->outline)
        return TL_OK;
    struct tl_fail why = {0};
    const int r = find_shards(cut, range, &first, &end, &why);
    if (r == TL_USAGE) /* the question itself says so, or it is about times where there are none */
        return TL_OK;
    if (r < 0) {
        if (fail)
            *fail = why;
        return r;
    }
    first = first > cut->n_indexed ? first : cut->n_indexed;
    if (first >= end)
        return TL_OK;
    const size_t done = cut->lane->gen->lake->rooms->index_early(
        cut->outlined, &cut->tail[first - cut->n_stored], open_some(cut, first, end));
    take_rows(cut, first, done);
    if (first + done < end)
        end_before(cut, first + done);
    return TL_OK;
}

static struct tl_gen *outline_of(const struct tl_gen *gen)
{
    struct tl_trace *const trace = tl_lake_resident(gen->lake, gen->trace);
    struct tl_gen *const outline = trace ? tl_trace_outline(trace) : NULL;
    tl_trace_put(trace);
    return outline;
}

/* Cover the range in a cut that was opened with result `r`. */
static int cover_opened(struct tl_cut *out, int r, const struct tl_cut_range *range,
                        struct tl_fail *fail)
{
    if (r < 0)
        return r;
    r = cover(out, range, fail);
    if (r < 0)
        tl_cut_close(out);
    return r;
}

int tl_cut_of_lane_range(struct tl_cut *out, struct tl_gen *gen, struct tl_lane *lane,
                         const struct tl_cut_range *range, struct tl_fail *fail)
{
    struct tl_gen *const outline = outline_of(gen);
    const int r = cut_with(out, gen, lane, outline);
    tl_gen_put(outline);
    return cover_opened(out, r, range, fail);
}

/* ---- by name -------------------------------------------------------------------------------- */

static int open_cut(struct tl_cut *out, struct tl_lake *lake, const char *id, const char *stream,
                    bool outlined, struct tl_fail *fail)
{
    *out = (struct tl_cut){0};
    struct tl_trace *trace = tl_lake_find_content(lake, id);
    if (!trace)
        return tl_no_content(lake, fail, id);
    tl_edge_read(trace);
    struct tl_gen *gen = lake->rooms->settled(trace);
    struct tl_gen *const outline = outlined ? tl_trace_outline(trace) : NULL;
    tl_trace_put(trace);
    struct tl_lane *const lane = tl_gen_lane(gen, stream);
    const int r =
        lane ? cut_with(out, gen, lane, outline)
             : tl_fail_set(fail, TL_NOTFOUND, "trace %.64s has no stream %.32s", id, stream);
    tl_gen_put(outline);
    tl_gen_put(gen);
    return r == TL_NOMEM ? tl_fail_set(fail, r, "no memory") : r;
}

int tl_cut_open(struct tl_cut *out, struct tl_lake *lake, const char *id, const char *stream,
                struct tl_fail *fail)
{
    return open_cut(out, lake, id, stream, false, fail);
}

int tl_cut_open_outlined(struct tl_cut *out, struct tl_lake *lake, const char *id,
                         const char *stream, struct tl_fail *fail)
{
    return open_cut(out, lake, id, stream, true, fail);
}

int tl_cut_open_range(struct tl_cut *out, struct tl_lake *lake, const char *id, const char *stream,
                      const struct tl_cut_range *range, struct tl_fail *fail)
{
    return cover_opened(out, open_cut(out, lake, id, stream, true, fail), range, fail);
}

bool tl_lane_has_insns(const struct tl_lane *lane, bool samples)
{
    const unsigned others = TL_TRAIT_SOFTWARE | TL_TRAIT_NOTES;
    if (tl_stream_is_derived(lane->name))
        return false;
    return samples ? tl_protocol_has(lane->protocol, TL_TRAIT_SAMPLES)
                   : !tl_protocol_has(lane->protocol, (enum tl_protocol_trait)others);
}

bool tl_gen_has_only_samples(struct tl_gen *gen)
{
    bool flow = false;
    struct tl_lane *lane;
    for (size_t i = 0; !flow && (lane = tl_gen_lane_at(gen, i)); i++)
        flow = tl_lane_has_insns(lane, false);
    return !flow;
}

int tl_cuts_of_flow(struct tl_lake *lake, const char *trace, const char *stream,
                    enum tl_range_unit unit, uint64_t from, uint64_t to, tl_cut_taker *take,
                    void *context, struct tl_gen **gen, struct tl_fail *fail)
{
    const bool whole = from == 0 && to == UINT64_MAX;
    const struct tl_cut_range range = {whole ? TL_UNIT_INSN : unit, from, to};
    struct tl_cut cut;
    struct tl_lane *lane;
    int r;
    if (stream && *stream) {
        r = tl_cut_open_range(&cut, lake, trace, stream, &range, fail);
        if (r < 0)
            return r;
        *gen = tl_gen_get(cut.gen);
        r = take(context, &cut, unit, fail);
        tl_cut_close(&cut);
        return r;
    }
    r = tl_lake_gen(lake, trace, gen, fail);
    if (r < 0)
        return r;
    if (unit != TL_UNIT_TIME && unit != TL_UNIT_NS && !whole)
        return tl_fail_set(fail, TL_USAGE, "a range of several streams is one of time");
    const bool samples = tl_gen_has_only_samples(*gen);
    for (size_t i = 0; r >= 0 && (lane = tl_gen_lane_at(*gen, i)); i++) {
        if (!tl_lane_has_insns(lane, samples))
            continue;
        r = tl_cut_of_lane_range(&cut, *gen, lane, &range, fail);
        if (r < 0)
            break;
        if (whole || (cut.n_rows > 0 && cut.rows[cut.n_rows - 1].at.has_time))
            r = take(context, &cut, whole ? TL_UNIT_INSN : unit, fail);
        tl_cut_close(&cut);
    }
    return r;
}

void tl_cut_close(struct tl_cut *cut)
{
    for (size_t i = 0; cut->tail && i < cut->n_rows - cut->n_stored; i++)
        tl_view_put(cut->tail[i]);
    free(cut->tail);
    tl_away_taken_fini(&cut->away);
    tl_rows_copy_fini(&cut->copy);
    tl_gen_put(cut->outline);
    tl_gen_put(cut->gen);
    *cut = (struct tl_cut){0};
}

int tl_cut_view(const struct tl_cut *cut, size_t i, struct tl_view **out, struct tl_fail *fail)
{
    if (i >= cut->n_stored && cut->tail[i - cut->n_stored]) {
        *out = tl_view_get(cut->tail[i - cut->n_stored]);
        return TL_OK;
    }
    if (i >= cut->n_stored) {
        const int r = tl_away_taken_open(&cut->away, cut->rows[i].number, out, fail);
        if (r >= 0)
            tl_lane_make_virtual(cut->outlined, *out);
        return r;
    }
    return tl_lake_view(cut->gen->lake, cut->lane, cut->rows[i].number, out, fail);
}

static bool ends_upto(const void *shard, const void *position)
{
    const struct tl_shard_row *const row = shard;
    return row->first + row->n <= *(const uint64_t *)position;
}

size_t tl_cut_shard_at(const struct tl_cut *cut, uint64_t position)
{
    return tl_count_before(cut->rows, sizeof *cut->rows, cut->n_rows, ends_upto, &position);
}

size_t tl_cut_items_at(const struct tl_cut *cut, uint64_t position)
{
    size_t i = tl_cut_shard_at(cut, position);
    while (i > 0 && cut->rows[i - 1].first + cut->rows[i - 1].n == position)
        i--;
    return i;
}

/* ---- walking -------------------------------------------------------------------------------- */

void tl_cut_walk_begin(struct tl_cut_walk *walk, const struct tl_cut *cut, uint64_t from,
                       uint64_t to)
{
    *walk = (struct tl_cut_walk){.cut = cut};
    walk->range = (struct tl_walk_range){
        .from = from, .to = to, .tail = to >= cut->end, .protocol = cut->lane->protocol};
    walk->shard = tl_cut_items_at(cut, from);
    walk->chunk = SIZE_MAX;
}

int tl_cut_walk_peek(struct tl_cut_walk *walk, const struct tl_chunk **out, struct tl_fail *fail)
{
    const struct tl_walk_range *range = &walk->range;
    for (;;) {
        *out = NULL;
        if (walk->shard >= walk->cut->n_rows)
            return TL_OK;
        const struct tl_shard_row *row = &walk->cut->rows[walk->shard];
        if (!range->tail && row->first >= range->to)
            return TL_OK;
        if (!walk->view && walk->wanted && !walk->wanted(walk->context, walk->shard)) {
            walk->shard++;
            continue;
        }
        if (!walk->view) {
            const int r = tl_cut_view(walk->cut, walk->shard, &walk->view, fail);
            if (r < 0)
                return r;
            walk->chunk = tl_shard_items_at(&walk->view->index, range->from);
        }
        if (walk->chunk < walk->view->index.n_chunks) {
            const struct tl_chunk *c = &walk->view->index.chunks[walk->chunk];
            if (range->tail || c->first < range->to)
                *out = c;
            return TL_OK;
        }
        tl_view_put(walk->view);
        walk->view = NULL;
        walk->shard++;
    }
}

int tl_cut_walk_calls(struct tl_cut_walk *walk, struct tl_callstack *calls, struct tl_fail *fail)
{
    const struct tl_chunk *chunk;
    const int r = tl_cut_walk_peek(walk, &chunk, fail);
    if (r >= 0 && chunk)
        walk->range.from = calls->insns = chunk->first;
    walk->calls = calls;
    return r;
}

void tl_cut_walk_skip(struct tl_cut_walk *walk)
{
    walk->chunk++;
}

int tl_cut_walk_next(struct tl_cut_walk *walk, struct tl_fail *fail)
{
    const struct tl_chunk *chunk;
    int r = tl_cut_walk_peek(walk, &chunk, fail);
    if (r < 0)
        return r;
    if (!chunk)
        return TL_EOF;
    walk->at = chunk;
    r = tl_walk_chunk(&walk->walk, walk->view, walk->chunk++, &walk->range, fail);
    if (r >= 0 && walk->calls)
        r = tl_walk_stack(&walk->walk, walk->calls);
    walk->calls = NULL;
    return r;
}

int tl_cut_walk_follow(struct tl_cut_walk *walk, struct tl_callstack *calls, tl_frame_sink *sink,
                       tl_cut_each *each, void *context, struct tl_fail *fail)
{
    const struct tl_image *const image = tl_gen_image(walk->cut->gen);
    walk->walk.detail = TL_WALK_FLOW;
    walk->walk.image = image;
    tl_callstack_init(calls, image, walk->range.from, sink, context);
    int r = tl_cut_walk_calls(walk, calls, fail);
    while (r >= 0 && (r = tl_cut_walk_next(walk, fail)) >= 0) {
        for (size_t i = 0; i < walk->walk.n && r >= 0; i++) {
            r = tl_walk_follow(&walk->walk, calls, i);
            if (r >= 0 && each)
                each(context, &walk->walk, i);
        }
    }
    return r == TL_EOF ? TL_OK : r;
}

void tl_cut_walk_end(struct tl_cut_walk *walk)
{
    tl_view_put(walk->view);
    tl_walk_fini(&walk->walk);
    walk->view = NULL;
}

/* ---- what applies at its begin and at a position --------------------------------------------- */

/* From the header of its first shard; NONE if it cannot be read. */
static enum tl_isa reported_isa(const struct tl_cut *cut)
{
    struct tl_walk walk = {0};
    struct tl_view *view = NULL;
    struct tl_fail fail;
    enum tl_isa isa = TL_ISA_NONE;
    if (cut->n_rows > 0 && tl_cut_view(cut, 0, &view, &fail) >= 0 &&
        tl_walk_head(&walk, view, &fail) >= 0 && walk.headed)
        isa = tl_stf_unmap_isa(walk.groups.header.isa, walk.groups.header.iem);
    tl_view_put(view);
    tl_walk_fini(&walk);
    return isa;
}

enum tl_isa tl_cut_isa(const struct tl_cut *cut)
{
    const struct tl_lane *const lane = cut->lane;
    if (tl_protocol_has(lane->protocol, TL_TRAIT_RECORDS))
        return reported_isa(cut);
    const int id = tl_stream_id(lane->name);
    return tl_source_isa(lane->protocol,
                         id < 0 ? NULL : tl_setup_source(&cut->gen->setup, (unsigned)id));
}

int tl_cut_known(const struct tl_cut *cut, uint64_t position, struct tl_stf_known **out,
                 struct tl_fail *fail)
{
    *out = NULL;
    const size_t i = tl_cut_shard_at(cut, position);
    if (!tl_protocol_has(cut->lane->protocol, TL_TRAIT_RECORDS) || position == 0 ||
        i >= cut->n_rows)
        return TL_OK;
    const struct tl_shard_row *const row = &cut->rows[i];
    struct tl_walk walk = {0};
    struct tl_view *view = NULL;
    struct tl_stf_known *known = NULL;
    int r = tl_stf_known_new(&known);
    if (r >= 0)
        r = tl_cut_view(cut, i, &view, fail);
    if (r >= 0) /* each position is an instruction */
        r = tl_walk_known(&walk, view, position - row->first, known, fail);
    tl_view_put(view);
    tl_walk_fini(&walk);
    if (r < 0) {
        tl_stf_known_free(known);
        return r;
    }
    *out = known;
    return TL_OK;
}
