/* SPDX-License-Identifier: MIT */
/*
 * Exact statistics of a range. Whole sealed shards have them in their index; parts of a shard,
 * shards without them, and virtual ones of which a part is known to be missing, are counted the
 * same way. Statistics of whole shards are cached within a size limit. What was executed is counted
 * once in a whole trace: not in the records of software trace, nor again in threads' streams.
 */
#include "builder/insn_stats.h"
#include "builder/recount.h"
#include "image/names.h"
#include "lake/locate.h"
#include "lake_tiles.h"
#include "query/losses.h"
#include "query/query.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#define TOP_FUNCTIONS 1000
#define KEEP_MAX      (32u << 20) /* cache size per stream, in bytes */

static_assert(TL_GAP_KINDS <= TL_STATS_REASONS, "each reason has room");

static const char *const mix_names[TL_MIX_KINDS] = {
    "plain",   "branch",   "conditional branch", "call",
    "return",  "indirect", "exception return",   "trap",
    "barrier", "unknown",
};

struct function_count {
    uint64_t insns, calls;
};

/* What of a stream counts. */
enum counted {
    COUNT_ALL,
    COUNT_RECORDS,  /* not its positions, which are no instructions */
    COUNT_ABSENCES, /* only when its thread did not run: all else is from other streams */
};

struct counting {
    enum counted what; /* of the stream that is being counted */
    const struct tl_image *image;
    struct tl_shard_stats sum;        /* everything except functions */
    struct function_count *functions; /* by symbol index, the last one for none */
    size_t n_functions;
    struct tl_stats_lost lost[TL_GAP_KINDS];
};

/* ---- cached shards -------------------------------------------------------------------------- */

static void forget(struct tl_shard_stats *stats)
{
    if (stats)
        tl_shard_stats_fini(stats);
    free(stats);
}

static void add_numbers(uint64_t *to, const uint64_t *from, size_t n)
{
    for (size_t i = 0; i < n; i++)
        to[i] += from[i];
}

static void add_records(struct tl_shard_stats *to, const struct tl_shard_stats *from)
{
    to->reads += from->reads;
    to->writes += from->writes;
    add_numbers(to->records, from->records, TL_STATS_RECORDS);
    add_numbers(to->kinds, from->kinds, TL_ITEM_KINDS);
    add_numbers(to->gaps, from->gaps, TL_GAP_KINDS);
}

static void add_executed(struct counting *s, const struct tl_shard_stats *from)
{
    struct tl_shard_stats *const to = &s->sum;
    to->insns += from->insns;
    to->taken += from->taken;
    add_numbers(to->mix, from->mix, TL_MIX_KINDS);
    for (size_t i = 0; i < from->n_modes; i++)
        tl_shard_stats_mode(to, from->modes[i].mode, from->modes[i].insns);
    for (size_t i = 0; i < from->n_functions; i++) {
        const struct tl_shard_stats_function *const f = &from->functions[i];
        const size_t none = s->n_functions - 1;
        struct function_count *const count = &s->functions[f->function < none ? f->function : none];
        count->insns += f->insns;
        count->calls += f->calls;
    }
}

static void add_stats(struct counting *s, const struct tl_shard_stats *from)
{
    struct tl_shard_stats *const to = &s->sum;
    if (s->what == COUNT_ABSENCES) {
        to->kinds[TL_ITEM_GAP] += from->gaps[TL_GAP_SWITCHED_OUT];
        to->gaps[TL_GAP_SWITCHED_OUT] += from->gaps[TL_GAP_SWITCHED_OUT];
        return;
    }
    add_records(to, from);
    if (s->what == COUNT_ALL)
        add_executed(s, from);
}

/* Add the cached statistics of shard `i`, if there are any. */
static bool recall(struct counting *s, struct tl_lane *lane, size_t i)
{
    pthread_mutex_lock(&lane->lock);
    const struct tl_shard_stats *const stats = i < lane->n_stats ? lane->stats[i] : NULL;
    if (stats)
        add_stats(s, stats);
    pthread_mutex_unlock(&lane->lock);
    return stats != NULL;
}

/* Cache the statistics, taking them over. Best effort. */
static void remember(struct tl_lane *lane, size_t i, struct tl_shard_stats *stats)
{
    struct tl_shard_stats *kept = malloc(sizeof(*kept));
    const size_t size = sizeof(*kept) + stats->cap_functions * sizeof(stats->functions[0]);
    if (!kept) {
        tl_shard_stats_fini(stats);
        return;
    }
    *kept = *stats;
    pthread_mutex_lock(&lane->lock);
    if (lane->stats_bytes + size <= KEEP_MAX &&
        tl_grow(&lane->stats, &lane->cap_stats, i + 1, sizeof(*lane->stats)) >= 0) {
        for (; lane->n_stats <= i; lane->n_stats++)
            lane->stats[lane->n_stats] = NULL;
        if (!lane->stats[i]) {
            lane->stats[i] = kept;
            lane->stats_bytes += size;
            kept = NULL;
        }
    }
    pthread_mutex_unlock(&lane->lock);
    forget(kept);
}

static int count_cut(struct counting *s, const struct tl_cut *cut,
                     const struct tl_walk_range *range, struct tl_fail *fail)
{
    const struct tl_walk_range all = {.to = UINT64_MAX, .tail = true, .protocol = range->protocol};
    int r = TL_OK;
    for (size_t i = tl_cut_items_at(cut, range->from); i < cut->n_rows && r >= 0; i++) {
        const struct tl_shard_row *row = &cut->rows[i];
        if (row->first >= range->to && !range->tail)
            break;
        const bool incomplete = tl_lane_is_incomplete(cut->lane, row->number);
        const bool whole = i < cut->n_stored && !incomplete && row->first >= range->from &&
                           (row->first + row->n < range->to || range->tail);
        struct tl_view *view;
        struct tl_shard_stats stats;
        if (whole && recall(s, cut->lane, i))
            continue;
        r = tl_cut_view(cut, i, &view, fail);
        if (r < 0)
            break;
        r = tl_view_stats(view, whole ? &all : range, s->image, incomplete, &stats, fail);
        tl_view_put(view);
        if (r >= 0)
            add_stats(s, &stats);
        if (r >= 0 && whole)
            remember(cut->lane, i, &stats);
        else
            tl_shard_stats_fini(&stats);
    }
    return r;
}

/* ---- the answer ----------------------------------------------------------------------------- */

void tl_stats_fini(struct tl_stats *stats)
{
    free(stats->functions);
    free(stats->counts);
    free(stats->silent);
    tl_gen_put(stats->gen);
    *stats = (struct tl_stats){0};
}

struct ranked {
    uint64_t insns;
    size_t i;
};

static int by_insns(const void *a, const void *b)
{
    const struct ranked *x = a, *y = b;
    if (x->insns != y->insns)
        return x->insns > y->insns ? -1 : 1;
    return x->i < y->i ? -1 : x->i > y->i;
}

static int add_functions(const struct counting *s, struct tl_stats *out)
{
    size_t n = 0, symbols = 0;
    const struct tl_symbol *symbol = s->image ? tl_image_symbols(s->image, &symbols) : NULL;
    struct ranked *ranked = calloc(s->n_functions, sizeof(*ranked));
    out->functions = calloc(TOP_FUNCTIONS, sizeof(*out->functions));
    if (!ranked || !out->functions) {
        free(ranked);
        return TL_NOMEM;
    }
    for (size_t i = 0; i < s->n_functions; i++)
        if (s->functions[i].insns > 0 || s->functions[i].calls > 0)
            ranked[n++] = (struct ranked){s->functions[i].insns, i};
    qsort(ranked, n, sizeof(*ranked), by_insns);
    out->n_run = n;
    for (size_t k = 0; k < n && k < TOP_FUNCTIONS; k++) {
        const size_t i = ranked[k].i;
        out->functions[out->n_functions++] = (struct tl_stats_function){
            .name = i < symbols ? tl_image_symbol_told(s->image, i) : NULL,
            .pc = i < symbols ? symbol[i].address : 0,
            .insns = s->functions[i].insns,
            .calls = s->functions[i].calls,
        };
    }
    free(ranked);
    return TL_OK;
}

static int add_count(struct tl_stats *out, enum tl_stats_group group, const char *name, uint64_t n)
{
    if (!name || n == 0)
        return TL_OK;
    if (tl_grow(&out->counts, &out->cap_counts, out->n_counts + 1, sizeof(*out->counts)) < 0)
        return TL_NOMEM;
    struct tl_stats_count *const count = &out->counts[out->n_counts++];
    *count = (struct tl_stats_count){.group = group, .n = n};
    snprintf(count->name, sizeof(count->name), "%s", name);
    return TL_OK;
}

static int answer(const struct counting *s, struct tl_gen *gen, struct tl_stats *out)
{
    const struct tl_shard_stats *const sum = &s->sum;
    char mode[32];
    out->gen = tl_gen_get(gen);
    out->insns = sum->insns;
    out->taken = sum->taken;
    out->reads = sum->reads;
    out->writes = sum->writes;
    for (unsigned i = 0; i < TL_GAP_KINDS; i++) {
        if (s->lost[i].n == 0)
            continue;
        struct tl_stats_lost *const lost = &out->lost[out->n_lost++];
        *lost = s->lost[i];
        snprintf(lost->name, sizeof(lost->name), "%s", tl_gap_name((enum tl_gap)i));
    }
    int r = add_functions(s, out);
    for (unsigned i = 0; i < TL_MIX_KINDS && r >= 0; i++)
        r = add_count(out, TL_STATS_MIX, mix_names[i], sum->mix[i]);
    for (size_t i = 0; i < sum->n_modes && r >= 0; i++)
        r = add_count(out, TL_STATS_MODE, tl_mode_text(sum->modes[i].mode, mode),
                      sum->modes[i].insns);
    for (unsigned i = 0; i < TL_ITEM_KINDS && r >= 0; i++)
        r = add_count(out, TL_STATS_ITEM, tl_item_kind_name(i), sum->kinds[i]);
    for (unsigned i = 0; i < TL_GAP_KINDS && r >= 0; i++)
        r = add_count(out, TL_STATS_GAP, tl_gap_name((enum tl_gap)i), sum->gaps[i]);
    for (unsigned i = 0; i < TL_STATS_RECORDS && r >= 0; i++)
        r = add_count(out, TL_STATS_RECORD, tl_stats_record_name(i), sum->records[i]);
    return r;
}

static int begin_counting(struct counting *s, struct tl_gen *gen)
{
    size_t symbols = 0;
    s->image = tl_gen_image(gen);
    if (s->image)
        tl_image_symbols(s->image, &symbols);
    s->n_functions = symbols + 1;
    s->functions = calloc(s->n_functions, sizeof(*s->functions));
    return s->functions ? TL_OK : TL_NOMEM;
}

static void add_lost(struct tl_stats_lost *to, const struct tl_stats_lost *from)
{
    if (from->longest > to->longest) {
        to->longest = from->longest;
        to->longest_at = from->longest_at;
    }
    to->n += from->n;
    to->total += from->total;
}

/* Add the time that gaps cover in the range. */
static int count_lost(struct counting *s, const struct tl_cut *cut, uint64_t from, uint64_t to,
                      struct tl_fail *fail)
{
    struct tl_stats_lost all[TL_GAP_KINDS] = {0};
    if (s->what != COUNT_ABSENCES)
        return tl_cut_lost(cut, from, to, s->lost, fail);
    const int r = tl_cut_lost(cut, from, to, all, fail);
    add_lost(&s->lost[TL_GAP_SWITCHED_OUT], &all[TL_GAP_SWITCHED_OUT]);
    return r;
}

static int count_stream(struct counting *s, const struct tl_cut *cut, uint64_t from, uint64_t to,
                        struct tl_stats *out, struct tl_fail *fail)
{
    int r = tl_cut_resolve(cut, TL_UNIT_INSN, from, to, &out->from, &out->to, fail);
    out->behind = out->behind || cut->behind;
    const struct tl_walk_range range = {
        .from = out->from, .to = out->to, .tail = to >= cut->end, .protocol = cut->lane->protocol};
    if (r >= 0)
        r = count_cut(s, cut, &range, fail);
    if (r >= 0)
        r = count_lost(s, cut, range.from, range.tail ? UINT64_MAX : range.to, fail);
    return r;
}

/* Sources from which no trace came: a core that was off, or a wrong trace ID. */
static int find_silent(struct tl_gen *gen, struct tl_stats *out)
{
    const struct tl_setup *const setup = &gen->setup;
    if (setup->container != TL_CONTAINER_TPIU || setup->n_sources == 0)
        return TL_OK;
    out->silent = calloc(setup->n_sources, sizeof(*out->silent));
    if (!out->silent)
        return TL_NOMEM;
    for (size_t i = 0; i < setup->n_sources; i++) {
        const struct tl_source *const s = &setup->sources[i];
        if (s->protocol != TL_PROTO_NONE && !tl_gen_lane(gen, s->name))
            out->silent[out->n_silent++] = (struct tl_stats_source){
                s->name, s->device[0] ? s->device : tl_format_of(s->protocol)->name};
    }
    return TL_OK;
}

static enum counted what_counts(const struct tl_lane *lane, bool samples)
{
    return tl_stream_is_derived(lane->name)   ? COUNT_ABSENCES
           : tl_lane_has_insns(lane, samples) ? COUNT_ALL
                                              : COUNT_RECORDS;
}

/* All streams in full. */
static int stats_of_all(struct counting *s, struct tl_lake *lake, const char *id,
                        struct tl_stats *out, struct tl_fail *fail)
{
    struct tl_gen *gen;
    int r = tl_lake_gen(lake, id, &gen, fail);
    if (r < 0)
        return r;
    r = begin_counting(s, gen);
    const bool samples = tl_gen_has_only_samples(gen);
    struct tl_lane *lane;
    uint64_t longest = 0;
    for (size_t i = 0; r >= 0 && (lane = tl_gen_lane_at(gen, i)); i++) {
        struct tl_cut cut;
        r = tl_cut_of_lane_range(&cut, gen, lane, &TL_CUT_ALL, fail);
        if (r < 0)
            break;
        s->what = what_counts(lane, samples);
        r = count_stream(s, &cut, 0, UINT64_MAX, out, fail);
        longest = out->to > longest ? out->to : longest;
        tl_cut_close(&cut);
    }
    out->to = longest;
    if (r >= 0)
        r = answer(s, gen, out);
    if (r >= 0)
        r = find_silent(gen, out);
    tl_gen_put(gen);
    return r;
}

static int stats_of_one(struct counting *s, struct tl_lake *lake, const char *trace,
                        const char *stream, uint64_t from, uint64_t to, struct tl_stats *out,
                        struct tl_fail *fail)
{
    struct tl_cut cut;
    const struct tl_cut_range range = {TL_UNIT_INSN, from, to};
    int r = tl_cut_open_range(&cut, lake, trace, stream, &range, fail);
    if (r < 0)
        return r;
    r = begin_counting(s, cut.gen);
    if (r >= 0)
        r = count_stream(s, &cut, from, to, out, fail);
    if (r >= 0)
        r = answer(s, cut.gen, out);
    tl_cut_close(&cut);
    return r;
}

int tl_lake_stats(struct tl_lake *lake, const char *trace, const char *stream, uint64_t from,
                  uint64_t to, struct tl_stats *out, struct tl_fail *fail)
{
    struct counting s = {0};
    *out = (struct tl_stats){0};
    const int r = stream ? stats_of_one(&s, lake, trace, stream, from, to, out, fail)
                         : stats_of_all(&s, lake, trace, out, fail);
    free(s.functions);
    return r == TL_NOMEM ? tl_fail_set(fail, r, "no memory") : r;
}

/* ---- the function table --------------------------------------------------------------------- */

void tl_functions_fini(struct tl_functions *functions)
{
    free(functions->p);
    tl_gen_put(functions->gen);
    *functions = (struct tl_functions){0};
}

int tl_lake_functions(struct tl_lake *lake, const char *id, struct tl_functions *out,
                      struct tl_fail *fail)
{
    *out = (struct tl_functions){0};
    const int r = tl_lake_gen(lake, id, &out->gen, fail);
    if (r < 0)
        return r;
    const struct tl_image *image = tl_gen_image(out->gen);
    const struct tl_symbol *symbols = image ? tl_image_symbols(image, &out->n) : NULL;
    out->p = calloc(out->n + 1, sizeof(*out->p));
    if (!out->p)
        return tl_fail_set(fail, TL_NOMEM, "no memory");
    for (size_t i = 0; i < out->n; i++)
        out->p[i] = (struct tl_function){tl_image_symbol_told(image, i), symbols[i].address};
    return TL_OK;
}
