/* SPDX-License-Identifier: MIT */
/*
 * Exact statistics of a range. Of whole sealed shards their index says what they consist of; what
 * lies in a part of a shard, or in one whose index does not say it, is looked at instruction by
 * instruction. What is known of whole shards is remembered, as far as there is room.
 */
#include "ingest/jsontext.h"
#include "ingest/query.h"
#include "store/census.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#define TOP_FUNCTIONS 50
#define KEEP_MAX      (32u << 20) /* bytes of what is remembered of a stream's shards */

static const char *const mix_names[TL_MIX_KINDS] = {
    "plain",   "branch",   "conditional branch", "call",
    "return",  "indirect", "exception return",   "trap",
    "barrier", "unknown",
};

struct function_count {
    uint64_t insns, calls;
};

struct stats {
    const struct tl_image *image;
    struct tl_census *census;         /* made when it is needed */
    struct tl_tally sum;              /* all but functions */
    struct function_count *functions; /* by symbol index, the last one for none */
    size_t n_functions;
};

/* ---- shards that are remembered ------------------------------------------------------------- */

static void forget(struct tl_tally *tally)
{
    if (tally)
        tl_tally_fini(tally);
    free(tally);
}

void tl_lane_forget_stats_locked(struct tl_lane *lane)
{
    for (size_t i = 0; i < lane->n_stats; i++)
        forget(lane->stats[i]);
    free(lane->stats);
    lane->stats = NULL;
    lane->n_stats = lane->cap_stats = lane->stats_bytes = 0;
}

static void add_numbers(uint64_t *to, const uint64_t *from, size_t n)
{
    for (size_t i = 0; i < n; i++)
        to[i] += from[i];
}

static void add_tally(struct stats *s, const struct tl_tally *from)
{
    struct tl_tally *const to = &s->sum;
    to->insns += from->insns;
    to->taken += from->taken;
    to->reads += from->reads;
    to->writes += from->writes;
    add_numbers(to->records, from->records, TL_TALLY_RECORDS);
    add_numbers(to->mix, from->mix, TL_MIX_KINDS);
    add_numbers(to->kinds, from->kinds, TL_ITEM_KINDS);
    add_numbers(to->gaps, from->gaps, TL_GAP_KINDS);
    for (size_t i = 0; i < from->n_modes; i++)
        tl_tally_mode(to, from->modes[i].mode, from->modes[i].insns);
    for (size_t i = 0; i < from->n_functions; i++) {
        const struct tl_tally_function *const f = &from->functions[i];
        const size_t none = s->n_functions - 1;
        struct function_count *const count = &s->functions[f->function < none ? f->function : none];
        count->insns += f->insns;
        count->calls += f->calls;
    }
}

/* Add what is remembered of shard `i`, if it is. */
static bool recall(struct stats *s, struct tl_lane *lane, size_t i)
{
    pthread_mutex_lock(&lane->lock);
    const struct tl_tally *const tally = i < lane->n_stats ? lane->stats[i] : NULL;
    if (tally)
        add_tally(s, tally);
    pthread_mutex_unlock(&lane->lock);
    return tally != NULL;
}

/* Takes what `tally` holds. That there is no memory to remember it is no failure. */
static void remember(struct tl_lane *lane, size_t i, struct tl_tally *tally)
{
    struct tl_tally *kept = malloc(sizeof(*kept));
    const size_t size = sizeof(*kept) + tally->cap_functions * sizeof(tally->functions[0]);
    if (!kept) {
        tl_tally_fini(tally);
        return;
    }
    *kept = *tally;
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

/* What the shard's index says that it consists of. */
static int told_by(const struct tl_shard_index *index, struct tl_tally *out)
{
    *out = index->tally;
    out->functions = NULL;
    out->cap_functions = 0;
    if (out->n_functions > 0) {
        if (tl_grow(&out->functions, &out->cap_functions, out->n_functions,
                    sizeof(*out->functions)) < 0)
            return TL_NOMEM;
        memcpy(out->functions, index->tally.functions, out->n_functions * sizeof(*out->functions));
    }
    if (out->counted)
        return TL_OK;
    out->insns = index->row.n;
    for (size_t i = 0; i < index->buckets.n; i++)
        out->taken += index->buckets.p[i].branches;
    return TL_OK;
}

/* What lies in the range of one shard. */
static int count_view(struct stats *s, struct tl_view *view, const struct tl_walk_range *range,
                      struct tl_tally *out, struct tl_fail *fail)
{
    *out = (struct tl_tally){0};
    if (!s->census && tl_census_new(&s->census, s->image, range->protocol) < 0)
        return TL_NOMEM;
    const int r = tl_census_view(s->census, view, range, fail);
    tl_census_tell(s->census, out);
    return r < 0 || out->told ? r : TL_NOMEM;
}

/* All of sealed shard `i`. */
static int count_shard(struct stats *s, const struct tl_cut *cut, size_t i, struct tl_view *view,
                       struct tl_fail *fail)
{
    const struct tl_walk_range all = {
        .to = UINT64_MAX, .tail = true, .protocol = cut->lane->protocol};
    struct tl_tally tally;
    const int r = view->index.tally.told ? told_by(&view->index, &tally)
                                         : count_view(s, view, &all, &tally, fail);
    if (r < 0) {
        tl_tally_fini(&tally);
        return r;
    }
    add_tally(s, &tally);
    remember(cut->lane, i, &tally);
    return TL_OK;
}

/* A part of a shard. */
static int count_part(struct stats *s, struct tl_view *view, const struct tl_walk_range *range,
                      struct tl_fail *fail)
{
    struct tl_tally tally;
    const int r = count_view(s, view, range, &tally, fail);
    if (r >= 0)
        add_tally(s, &tally);
    tl_tally_fini(&tally);
    return r;
}

static int count_cut(struct stats *s, const struct tl_cut *cut, const struct tl_walk_range *range,
                     struct tl_fail *fail)
{
    size_t i = tl_cut_shard_at(cut, range->from);
    int r = TL_OK;
    /* Items behind the last position lie in the last shard. */
    if (range->tail && i > 0 && i == cut->n_rows)
        i--;
    for (; i < cut->n_rows && r >= 0; i++) {
        const struct tl_shard_row *row = &cut->rows[i];
        if (row->first >= range->to && !range->tail)
            break;
        const bool whole = i < cut->n_stored && row->first >= range->from &&
                           (row->first + row->n < range->to || range->tail);
        struct tl_view *view;
        if (whole && recall(s, cut->lane, i))
            continue;
        r = tl_cut_view(cut, i, &view, fail);
        if (r < 0)
            break;
        r = whole ? count_shard(s, cut, i, view, fail) : count_part(s, view, range, fail);
        tl_view_put(view);
    }
    return r;
}

/* ---- as JSON -------------------------------------------------------------------------------- */

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

static int add_function(const struct stats *s, size_t i, bool first, struct tl_buf *out)
{
    size_t n = 0;
    const struct tl_symbol *symbols = s->image ? tl_image_symbols(s->image, &n) : NULL;
    int r = tl_buf_printf(out, "%s\n{\"name\":", first ? "" : ",");
    if (r >= 0)
        r = tl_json_text(out, i < n ? symbols[i].name : "(no symbol)");
    if (r >= 0)
        r = tl_buf_printf(out, ",\"pc\":\"0x%llx\",\"insns\":%llu,\"calls\":%llu}",
                          i < n ? (unsigned long long)symbols[i].address : 0,
                          (unsigned long long)s->functions[i].insns,
                          (unsigned long long)s->functions[i].calls);
    return r;
}

static int add_functions(const struct stats *s, struct tl_buf *out)
{
    struct ranked *ranked = calloc(s->n_functions, sizeof(*ranked));
    if (!ranked)
        return TL_NOMEM;
    size_t n = 0;
    for (size_t i = 0; i < s->n_functions; i++)
        if (s->functions[i].insns > 0 || s->functions[i].calls > 0)
            ranked[n++] = (struct ranked){s->functions[i].insns, i};
    qsort(ranked, n, sizeof(*ranked), by_insns);
    int r = tl_buf_printf(out, ",\"functions\":[");
    for (size_t i = 0; i < n && i < TOP_FUNCTIONS && r >= 0; i++)
        r = add_function(s, ranked[i].i, i == 0, out);
    free(ranked);
    return r < 0 ? r : tl_buf_add(out, "]", 1);
}

/* {"name":count,…} of all counts that are not 0. */
static int add_counts(struct tl_buf *out, const char *title, const char *(*name)(unsigned),
                      const uint64_t *counts, unsigned n)
{
    bool any = false;
    int r = tl_buf_printf(out, ",\n\"%s\":{", title);
    for (unsigned i = 0; i < n && r >= 0; i++) {
        const char *text = counts[i] > 0 ? name(i) : NULL;
        if (!text)
            continue;
        r = tl_buf_printf(out, "%s\"%s\":%llu", any ? "," : "", text,
                          (unsigned long long)counts[i]);
        any = true;
    }
    return r < 0 ? r : tl_buf_add(out, "}", 1);
}

static const char *mix_name(unsigned i)
{
    return mix_names[i];
}

static const char *gap_name(unsigned i)
{
    return tl_gap_name((enum tl_gap)i);
}

static int add_modes(const struct stats *s, struct tl_buf *out)
{
    int r = tl_buf_printf(out, ",\n\"modes\":{");
    for (size_t i = 0; i < s->sum.n_modes && r >= 0; i++) {
        char text[32];
        r = tl_buf_printf(out, "%s\"%s\":%llu", i > 0 ? "," : "",
                          tl_mode_text(s->sum.modes[i].mode, text),
                          (unsigned long long)s->sum.modes[i].insns);
    }
    return r < 0 ? r : tl_buf_add(out, "}", 1);
}

static bool has_records(const struct tl_tally *tally)
{
    uint64_t n = 0;
    for (size_t i = 0; i < TL_TALLY_RECORDS; i++)
        n += tally->records[i];
    return n > 0;
}

static int write_json(const struct stats *s, uint64_t from, uint64_t to, struct tl_buf *out)
{
    int r = tl_buf_printf(out, "{\"from\":%llu,\"to\":%llu,\"insns\":%llu,\"taken\":%llu",
                          (unsigned long long)from, (unsigned long long)to,
                          (unsigned long long)s->sum.insns, (unsigned long long)s->sum.taken);
    if (r >= 0)
        r = add_functions(s, out);
    if (r >= 0)
        r = add_counts(out, "mix", mix_name, s->sum.mix, TL_MIX_KINDS);
    if (r >= 0)
        r = add_modes(s, out);
    if (r >= 0)
        r = add_counts(out, "items", tl_item_kind_name, s->sum.kinds, TL_ITEM_KINDS);
    if (r >= 0)
        r = add_counts(out, "gaps", gap_name, s->sum.gaps, TL_GAP_KINDS);
    if (r >= 0 && s->sum.reads + s->sum.writes > 0)
        r = tl_buf_printf(out, ",\n\"memory\":{\"reads\":%llu,\"writes\":%llu}",
                          (unsigned long long)s->sum.reads, (unsigned long long)s->sum.writes);
    if (r >= 0 && has_records(&s->sum))
        r = add_counts(out, "records", tl_census_record_name, s->sum.records, TL_TALLY_RECORDS);
    return r < 0 ? r : tl_buf_add(out, "}\n", 2);
}

int tl_lake_stats(struct tl_lake *lake, const char *trace, const char *stream, uint64_t from,
                  uint64_t to, struct tl_buf *json, struct tl_fail *fail)
{
    struct tl_cut cut;
    int r = tl_cut_open(&cut, lake, trace, stream, fail);
    if (r < 0)
        return r;
    const bool whole = to >= cut.end;
    r = tl_cut_resolve(&cut, TL_UNIT_INSN, from, to, &from, &to, fail);
    struct stats s = {.image = tl_gen_image(cut.gen)};
    size_t symbols = 0;
    if (s.image)
        tl_image_symbols(s.image, &symbols);
    s.n_functions = symbols + 1;
    s.functions = calloc(s.n_functions, sizeof(*s.functions));
    if (r >= 0 && !s.functions)
        r = TL_NOMEM;
    const struct tl_walk_range range = {
        .from = from, .to = to, .tail = whole, .protocol = cut.lane->protocol};
    if (r >= 0)
        r = count_cut(&s, &cut, &range, fail);
    if (r >= 0)
        r = write_json(&s, from, to, json);
    tl_census_free(s.census);
    free(s.functions);
    tl_cut_close(&cut);
    return r == TL_NOMEM ? tl_fail_set(fail, r, "no memory") : r;
}

/* ---- the function table --------------------------------------------------------------------- */

int tl_lake_functions(struct tl_lake *lake, const char *id, struct tl_buf *json,
                      struct tl_fail *fail)
{
    struct tl_trace *trace = tl_lake_find_trace(lake, id);
    if (!trace)
        return tl_fail_set(fail, TL_NOTFOUND, "there is no trace %.64s", id);
    struct tl_gen *gen = tl_trace_serving(trace);
    tl_trace_put(trace);
    const struct tl_image *image = tl_gen_image(gen);
    size_t n = 0;
    const struct tl_symbol *symbols = image ? tl_image_symbols(image, &n) : NULL;
    int r = tl_buf_add(json, "[", 1);
    for (size_t i = 0; i < n && r >= 0; i++) {
        r = tl_buf_printf(json, "%s\n{\"id\":%zu,\"name\":", i > 0 ? "," : "", i);
        if (r >= 0)
            r = tl_json_text(json, symbols[i].name);
        if (r >= 0)
            r = tl_buf_printf(json, ",\"pc\":\"0x%llx\"}", (unsigned long long)symbols[i].address);
    }
    if (r >= 0)
        r = tl_buf_add(json, "]\n", 2);
    tl_gen_put(gen);
    return r < 0 ? tl_fail_set(fail, r, "no memory") : TL_OK;
}
