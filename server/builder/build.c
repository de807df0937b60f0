/* SPDX-License-Identifier: MIT */
/*
 * Every item is processed twice, at different paces: it is logged (counted, indexed) at once, and
 * it goes through the STF flow writer, which delays an instruction until it knows where the flow
 * continues. A cut (of a .zstf chunk or a shard) is therefore first reached by the log, and stays
 * pending until the writer has reached it too; until then items are taken one by one, writer first.
 * Only items without an instruction can occur in between.
 */
#include "builder/build_parts.h"
#include "shard/splice.h"

#include <stdlib.h>

/* Limits for items without positions, which could otherwise grow a chunk or shard indefinitely. */
#define CHUNK_LOG_BYTES (256u << 10)
#define CHUNK_POSITIONS (2u * TL_CHUNK_MARKERS)

static bool wants(const struct tl_build *b, uint64_t shard, uint32_t frame)
{
    return b->options.part &&
           (shard > b->want_shard || (shard == b->want_shard && frame >= b->want_frame));
}

static int begin_chunk(struct tl_build *b)
{
    struct tl_shard_builder *const shard = tl_build_shard(b);
    shard->log_wanted = wants(b, shard->view->index.row.number, b->frame);
    return tl_shard_builder_begin(shard, &b->index.calls);
}

/* Decide at the begin of a frame whether records are written for it, or it is only followed. */
static void choose(struct tl_build *b)
{
    const struct tl_shard_builder *const shard = tl_build_written(b);
    b->wet = wants(b, shard->view->index.row.number, tl_build_open_frame(b));
    tl_stf_flow_dry(b->flow, shard->bare || (shard->replayed && !b->wet));
}

/* Begin shard `number`: a replayed shard, of which nothing is kept, if it is already in
 * the store. */
static int begin_shard(struct tl_build *b, uint64_t number, uint64_t position)
{
    struct tl_shard_builder *const shard = tl_shard_builder_new(number, position, &b->index.now);
    b->index.shard = shard;
    if (!shard)
        return TL_NOMEM;
    shard->remade = b->options.part != NULL;
    shard->outlined = b->options.outline && number >= b->options.sealed;
    shard->replayed = number < b->options.sealed || shard->remade || shard->outlined;
    shard->bare = b->options.index_only;
    shard->counter.unreported = shard->replayed;
    /* Also for one that is not counted, if logs are made of it, since these depend on it. */
    shard->by_insn =
        b->insn_stats && (!shard->replayed || shard->remade || shard->outlined || b->marked);
    b->index.insn_stats = shard->by_insn ? b->insn_stats : NULL;
    shard->coder.counting = !shard->replayed && !shard->by_insn;
    (void)tl_code_counter_program(&shard->coder, b->index.image, &b->index.now, 0);
    b->late = b->marked && !b->times.known;
    const bool timed = !shard->remade && !b->options.outline;
    shard->ran = timed ? b->ran : NULL;
    if (timed)
        tl_call_counter_begin(&shard->caller, &b->index.calls, &b->times, position, 0);
    if (shard->by_insn)
        tl_insn_stats_begin(b->insn_stats, &b->index.now);
    /* Shards have similar sizes. */
    const struct tl_shard_builder *const before = b->closing;
    int r = TL_OK;
    if (before)
        r = tl_buckets_reserve(&shard->view->index.buckets, before->view->index.buckets.n + 1);
    if (before && r >= 0)
        r = tl_buf_reserve(&shard->log.bytes, before->log.bytes.cap);
    return r < 0 ? r : begin_chunk(b);
}

/* ---- life ---------------------------------------------------------------------------------- */

/* A span of time, when it is known. */
static int count_span(void *context, const struct tl_timed_span *span)
{
    tl_time_buckets_span(context, span);
    return TL_OK;
}

int tl_build_new(struct tl_build **out, const struct tl_build_options *options)
{
    struct tl_build *b = calloc(1, sizeof(*b));
    if (!b)
        return TL_NOMEM;
    b->options = *options;
    b->want_shard = UINT64_MAX;
    b->ran = calloc(1, sizeof *b->ran);
    if (!b->ran) {
        free(b);
        return TL_NOMEM;
    }
    tl_time_buckets_init(b->ran, &options->axis);
    b->times.sink = count_span;
    b->times.context = b->ran;
    b->times.limit = &b->ran->limit;
    if (b->options.chunk_markers == 0)
        b->options.chunk_markers = TL_CHUNK_MARKERS;
    static const struct tl_flow_now nothing;
    tl_indexer_init(&b->index, options->protocol, options->image, &nothing, 0);
    tl_time_knots_init(&b->times.knots, options->protocol);
    const struct tl_stf_flow_options flow = {.isa = options->isa, .repeats = true, .known = true};
    int r = tl_stf_flow_new(&b->flow, &flow, NULL);
    if (r >= 0 && tl_insn_stats_wanted(options->protocol))
        r = tl_insn_stats_new(&b->insn_stats, options->image, options->protocol);
    if (r >= 0)
        r = begin_shard(b, 0, 0);
    if (r < 0) {
        tl_build_free(b);
        return r;
    }
    choose(b);
    *out = b;
    return TL_OK;
}

void tl_build_free(struct tl_build *b)
{
    if (!b)
        return;
    tl_shard_builder_free(b->index.shard);
    tl_shard_builder_free(b->closing);
    tl_time_buckets_fini(b->ran);
    free(b->ran);
    tl_stf_flow_free(b->flow);
    tl_packer_free(b->packer);
    tl_insn_stats_free(b->insn_stats);
    tl_call_times_fini(&b->times);
    free(b);
}

/* ---- cuts ---------------------------------------------------------------------------------- */

/* The end of the existing shards is known: the replayed ones must end there too. */
static int check_replayed(const struct tl_build *b, const struct tl_shard_row *row)
{
    if (b->options.part)
        return TL_OK;
    const bool last = row->number + 1 == b->options.sealed;
    return last && row->first + row->n != b->options.sealed_position ? TL_BAD : TL_OK;
}

int tl_build_packer(struct tl_build *b)
{
    return b->packer ? TL_OK : tl_packer_new(&b->packer);
}

/* Packer for immediate packing; NULL if a pool packs, or nothing is packed. */
static int packer_for(struct tl_build *b, struct tl_packer **out)
{
    const bool here = !b->options.packing && !b->options.part;
    const int r = here ? tl_build_packer(b) : TL_OK;
    *out = here ? b->packer : NULL;
    return r;
}

/* Have a blob packed by the pool, if there is one. */
static int pack(struct tl_build *b, struct tl_blob *blob)
{
    if (!blob || !b->options.packing)
        return TL_OK;
    const int r = tl_build_packer(b);
    return r < 0 ? r : tl_packing_add(b->options.packing, blob, b->packer);
}

/* The writer's records as a blob, packed now if there is no pool, with the first `head` bytes
 * separate. NULL: out of memory. */
static struct tl_blob *take_records(struct tl_build *b, size_t head)
{
    struct tl_stf_piece piece = tl_stf_flow_piece(b->flow);
    const size_t size = piece.stf.n;
    struct tl_packer *packer;
    struct tl_blob *blob;
    if (packer_for(b, &packer) < 0)
        return NULL;
    if (packer) {
        piece.head = head;
        blob = tl_blob_pack(packer, &piece);
        tl_stf_flow_take(b->flow);
        return blob;
    }
    piece = (struct tl_stf_piece){0};
    if (b->options.packing)
        tl_packing_piece(b->options.packing, &piece);
    /* Chunks have similar sizes. */
    if (piece.stf.cap < size && tl_buf_reserve(&piece.stf, size + size / 4) < 0)
        return NULL;
    tl_stf_flow_swap(b->flow, &piece);
    piece.head = head;
    blob = tl_blob_take(&piece);
    tl_buf_fini(&piece.stf);
    free(piece.repeats);
    return blob;
}

/* Pass a regenerated part of a shard to its consumer. */
static int give_log(struct tl_build *b, const struct tl_shard_builder *shard,
                    const struct tl_chunk *chunk, struct tl_blob *log)
{
    struct tl_build_part part = {.shard = shard->view->index.row.number,
                                 .frame = chunk->stf,
                                 .is_log = true,
                                 .chunk = *chunk,
                                 .blob = log};
    return b->options.part(b->options.context, &part);
}

/* Where the flow continues after a shard whose records were taken; 0: unknown, or not needed.
 * Readers of its last group may stand elsewhere (frames[0].pc): where an exception return led is
 * told by the next shard. */
static uint64_t find_next(const struct tl_build *b, const struct tl_shard_builder *shard)
{
    const struct tl_shard_index *const index = &shard->view->index;
    struct tl_stf_flow_state state;
    if (!shard->coder.counting || index->n_frames == 0 || !index->frames ||
        index->frames[0].pc == 0)
        return 0;
    tl_stf_flow_state(b->flow, &state);
    return state.has_pc ? state.pc : 0;
}

/* The flow continues at `next`, 0: unknown. An interruption there belongs to the next shard. */
static void end_code(struct tl_build *b, struct tl_shard_builder *shard, uint64_t next)
{
    const bool continues = !tl_build_shard(b)->coder.interrupted;
    if (shard->coder.counting)
        tl_code_counter_end(&shard->coder, shard->view->index.row.markers, continues ? next : 0);
}

/* `next`: as for end_code(). */
static int seal(struct tl_build *b, struct tl_shard_builder *shard, uint64_t next)
{
    struct tl_view *view = NULL;
    struct tl_blob *log = NULL;
    struct tl_packer *packer;
    struct tl_chunk ended;
    tl_build_add_totals(&b->totals, &shard->view->index.row);
    end_code(b, shard, next);
    int r = packer_for(b, &packer);
    if (r >= 0)
        r = shard->replayed && !shard->remade && !shard->outlined
                ? check_replayed(b, &shard->view->index.row)
                : tl_shard_builder_complete(shard, packer, &view, &log, &ended);
    if (r >= 0)
        r = !shard->remade              ? pack(b, log)
            : ended.kinds != UINT32_MAX ? give_log(b, shard, &ended, log)
                                        : TL_OK;
    if (r >= 0 && view) {
        r = b->options.seal(b->options.context, view);
        view = NULL;
    }
    tl_view_put(view);
    tl_shard_builder_free(shard);
    return r;
}

/* A frame was added that is currently the last: record in the first one's entry where the flow
 * continues after it. */
static void note_end(struct tl_build *b, struct tl_shard_builder *shard, uint64_t markers)
{
    shard->view->index.frames[0].pc =
        markers > 0 && !tl_stf_flow_is_open(b->flow) ? tl_stf_flow_chunk_pc(b->flow) : 0;
}

/* Turn the writer's records into a frame of `part`. Records without an instruction after full
 * frames are dropped: other tools expect an instruction in every chunk, and the index has their
 * information. */
static int take_frame(struct tl_build *b, struct tl_shard_builder *shard)
{
    const uint64_t markers = tl_stf_flow_markers(b->flow);
    const uint64_t pc = shard->view->index.n_frames > 0 ? tl_stf_flow_chunk_pc(b->flow) : 0;
    const bool wanted = markers > b->frame_marker || shard->view->index.n_frames == 0;
    const uint64_t marker = b->frame_marker;
    b->frame_marker = markers;
    if (!wanted || shard->bare || (shard->replayed && !b->wet)) {
        tl_stf_flow_take(b->flow);
        if (!wanted)
            return TL_OK;
        const int r = tl_shard_builder_frame(shard, NULL, 0, marker, pc);
        if (r >= 0 && (!shard->replayed || shard->outlined))
            note_end(b, shard, markers);
        return r;
    }
    /* The head is never left out. */
    const struct tl_buf records = tl_stf_flow_piece(b->flow).stf;
    const size_t plain = records.n,
                 head = shard->view->index.n_frames > 0
                            ? 0
                            : tl_splice_head((struct tl_bytes){records.p, plain});
    struct tl_blob *blob = take_records(b, head);
    if (!blob)
        return TL_NOMEM;
    if (shard->remade) {
        struct tl_build_part part = {.shard = shard->view->index.row.number,
                                     .frame = (uint32_t)(marker / b->options.chunk_markers),
                                     .stf = {.plain = (uint32_t)plain, .marker = marker, .pc = pc},
                                     .blob = blob};
        shard->view->index.n_frames = 1;
        return b->options.part(b->options.context, &part);
    }
    const int r = tl_shard_builder_frame(shard, blob, plain, marker, pc);
    if (r < 0)
        return r;
    note_end(b, shard, markers);
    return pack(b, blob);
}

/* The writer has reached the pending cut. */
static int carry_out_cut(struct tl_build *b)
{
    const enum cut cut = b->cut;
    b->cut = CUT_NONE;
    if (cut == CUT_FRAME) {
        const int taken = take_frame(b, tl_build_shard(b));
        choose(b);
        return taken;
    }
    struct tl_shard_builder *shard = b->closing;
    b->closing = NULL;
    int r = take_frame(b, shard);
    if (r < 0) {
        tl_shard_builder_free(shard);
        return r;
    }
    const uint64_t next = find_next(b, shard);
    tl_stf_flow_restart(b->flow);
    b->frame_marker = 0;
    choose(b);
    return seal(b, shard, next);
}

/* A replayed shard is in the store with its buckets; without times of calls there are none. */
static void end_times(struct tl_build *b)
{
    struct tl_shard_builder *const shard = tl_build_shard(b);
    struct tl_time_pyramid none = {0};
    if (!shard->ran)
        return;
    const bool wanted = !shard->replayed && !b->times.dropped && !b->late;
    tl_call_times_report(&b->times);
    tl_time_buckets_take(b->ran, wanted ? &shard->view->index.times : &none);
    shard->ran = NULL;
    tl_time_pyramid_fini(&none);
}

/* Everything in the shard has been logged. */
static void end_counting(struct tl_build *b)
{
    end_times(b);
    tl_call_counter_end(&tl_build_shard(b)->caller, tl_shard_builder_position(tl_build_shard(b)));
    if (tl_build_shard(b)->by_insn)
        tl_insn_stats_report(b->insn_stats, &tl_build_shard(b)->view->index.stats);
}

/* The log has reached the end of a shard: continue in a new one. */
static int begin_cut_shard(struct tl_build *b, enum cut cut)
{
    const struct tl_shard_row *row = &tl_build_shard(b)->view->index.row;
    end_counting(b);
    b->closing = tl_build_shard(b);
    b->cut = cut;
    b->stop = row->markers;
    b->frame = 0;
    return begin_shard(b, row->number + 1, row->first + row->n);
}

static int next_chunk(struct tl_build *b, uint32_t frame)
{
    struct tl_packer *packer;
    struct tl_blob *log = NULL;
    struct tl_chunk ended;
    int r = packer_for(b, &packer);
    if (r >= 0)
        r = tl_shard_builder_next_chunk(tl_build_shard(b), frame, &b->index.now, packer, &log,
                                        &ended);
    if (r >= 0)
        r = tl_build_shard(b)->remade ? give_log(b, tl_build_shard(b), &ended, log) : pack(b, log);
    if (b->index.insn_stats)
        tl_insn_stats_pause(b->insn_stats);
    return r < 0 ? r : begin_chunk(b);
}

static int begin_cut_frame(struct tl_build *b)
{
    b->cut = CUT_FRAME;
    b->stop = tl_build_shard(b)->view->index.row.markers;
    return next_chunk(b, ++b->frame);
}

/* After logging: is it time for a cut? `marker`: an instruction was logged. */
static int check_cut(struct tl_build *b, bool marker)
{
    const struct tl_shard_builder *const shard = tl_build_shard(b);
    const struct tl_shard_row *const row = &shard->view->index.row;
    const bool pending = b->cut != CUT_NONE;
    if (!pending && row->n >= b->options.shard_insns)
        return begin_cut_shard(b, marker ? CUT_SHARD : CUT_HERE);
    if (!pending && marker && row->markers % b->options.chunk_markers == 0)
        return begin_cut_frame(b);
    if (!pending && shard->log_bytes + tl_shard_builder_logged(shard) >= TL_SHARD_LOG_BYTES)
        return begin_cut_shard(b, marker ? CUT_SHARD : CUT_HERE);
    if (tl_shard_builder_logged(shard) >= CHUNK_LOG_BYTES || shard->open.n >= CHUNK_POSITIONS)
        return next_chunk(b, b->frame);
    return TL_OK;
}

/* What fits into the chunk before the next cut. */
static struct tl_indexer_limits limits_of(const struct tl_build *b)
{
    const struct tl_shard_builder *const shard = tl_build_shard(b);
    const struct tl_shard_row *const row = &shard->view->index.row;
    const uint64_t per_frame = b->options.chunk_markers,
                   position = tl_shard_builder_position(shard);
    const uint64_t frame = per_frame - row->markers % per_frame,
                   whole = b->options.shard_insns - row->n;
    const uint64_t log =
        shard->log_bytes < TL_SHARD_LOG_BYTES ? TL_SHARD_LOG_BYTES - shard->log_bytes : 0;
    return (struct tl_indexer_limits){.cut = position + (frame < whole ? frame : whole),
                                      .end = shard->open.first + CHUNK_POSITIONS,
                                      .log = log < CHUNK_LOG_BYTES ? (size_t)log : CHUNK_LOG_BYTES};
}

/* Log from `at` on until all items are logged or a cut is reached. */
static int log_until_cut(struct tl_build *b, const struct tl_item *items, size_t n,
                         struct tl_stf_flow_at *at)
{
    int r = TL_OK;
    while (r >= 0 && at->item < n && b->cut == CUT_NONE) {
        const struct tl_indexer_limits limits = limits_of(b);
        r = tl_indexer_items(&b->index, items, n, &limits, at);
        if (r > 0)
            r = check_cut(b, r == TL_INDEXED_INSNS);
    }
    return r;
}

/* ---- items --------------------------------------------------------------------------------- */

/* A cut after an item is immediate: writer and log begin the next shard together. */
static int cut_here(struct tl_build *b)
{
    if (b->cut != CUT_HERE)
        return TL_OK;
    const int r = tl_stf_flow_finish(b->flow);
    return r < 0 ? r : carry_out_cut(b);
}

/* A cut is pending: pass one more item to the writer. */
static int resolve(struct tl_build *b, const struct tl_item *items, struct tl_stf_flow_at *at)
{
    const size_t item = at->item;
    const int fed = tl_stf_flow_items(b->flow, items, item + 1, b->stop, at);
    if (fed < 0 && fed != TL_AGAIN)
        return fed;
    const bool there = fed == TL_AGAIN || tl_stf_flow_markers(b->flow) >= b->stop;
    int r = there ? carry_out_cut(b) : TL_OK;
    if (r >= 0 && at->item > item) {
        const struct tl_indexer_limits limits = limits_of(b);
        struct tl_stf_flow_at begin = {0};
        r = tl_indexer_items(&b->index, &items[item], 1, &limits, &begin);
        if (r >= 0)
            r = check_cut(b, false);
    }
    /* While it was pending the next shard may have become full too. */
    if (r >= 0 && b->cut == CUT_NONE &&
        tl_build_shard(b)->view->index.row.n >= b->options.shard_insns)
        r = begin_cut_shard(b, CUT_HERE);
    return r < 0 || !there ? r : cut_here(b);
}

/* No cut is pending: log up to the next one, and let the writer follow. */
static int advance(struct tl_build *b, const struct tl_item *items, size_t n,
                   struct tl_stf_flow_at *at)
{
    struct tl_stf_flow_at end = *at;
    int r = log_until_cut(b, items, n, &end);
    if (r < 0)
        return r;
    const size_t upto = end.insn > 0 ? end.item + 1 : end.item;
    const bool stops = b->cut == CUT_FRAME || b->cut == CUT_SHARD;
    r = tl_stf_flow_items(b->flow, items, upto, stops ? b->stop : UINT64_MAX, at);
    if (r == TL_AGAIN)
        return carry_out_cut(b);
    return r < 0 ? r : cut_here(b);
}

int tl_build_items(struct tl_build *b, const struct tl_item *items, size_t n)
{
    struct tl_stf_flow_at at = {0};
    int r = TL_OK;
    while (r >= 0 && at.item < n)
        r = b->cut != CUT_NONE ? resolve(b, items, &at) : advance(b, items, n, &at);
    return r;
}

int tl_build_finish(struct tl_build *b)
{
    int r = tl_stf_flow_finish(b->flow);
    if (r >= 0 && b->cut != CUT_NONE) {
        const bool shard = b->cut != CUT_FRAME;
        if (shard && tl_build_shard(b)->view->index.row.n == 0)
            tl_code_counter_stop(&tl_build_shard(b)->coder); /* nothing was executed after it */
        r = carry_out_cut(b);
        if (r >= 0 && shard)
            r = tl_stf_flow_finish(b->flow);
    }
    struct tl_shard_builder *const shard = tl_build_shard(b);
    if (r < 0 || tl_shard_builder_is_empty(shard))
        return r;
    tl_call_counter_finish(&shard->caller, tl_shard_builder_position(shard));
    tl_time_buckets_finish(b->ran, tl_shard_builder_position(shard));
    end_counting(b);
    r = take_frame(b, shard);
    if (r < 0)
        return r;
    r = begin_shard(b, shard->view->index.row.number + 1, tl_shard_builder_position(shard));
    if (r < 0) {
        tl_shard_builder_free(shard);
        return r;
    }
    tl_stf_flow_restart(b->flow);
    b->frame_marker = 0;
    b->frame = 0;
    choose(b);
    return seal(b, shard, 0);
}

/* ---- regenerating parts --------------------------------------------------------------------- */

void tl_build_want(struct tl_build *b, uint64_t shard, uint32_t frame)
{
    b->want_shard = shard;
    b->want_frame = frame;
    /* A frame begins at the first item. */
    if (tl_shard_builder_is_empty(tl_build_shard(b)) && !b->closing &&
        !tl_build_shard(b)->partial) {
        tl_build_shard(b)->log_wanted = wants(b, tl_build_shard(b)->view->index.row.number, 0);
        choose(b);
    }
}
