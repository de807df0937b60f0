/* SPDX-License-Identifier: MIT */
/*
 * Whose time it was, compared with what the flow text of the same stream says by the model of
 * docs/time.md, position by position: functions, calls, exceptions, gaps, over random programs.
 */
#include "lake_analysis.h"
#include "query/callsearch.h"
#include "query/timed_counts.h"
#include "query/timed_rows.h"
#include "sim_capture.h"
#include "timed_truth.h"

#include "query/query.h"
#include "rig/rig.h"

#include <inttypes.h>
#include <math.h>

#define STREAM "cs.10"
#define SEEDS  6 /* of Intel PT */

static struct tl_backend *backend;
static struct tl_lake *lake;
static struct tl_cut cut;
static struct timed_truth truth;

static void begin(const struct sim_options *options, uint64_t shard)
{
    struct capture c;
    struct tl_buf text = {0};
    truth = (struct timed_truth){0};
    lake = open_memory_lake(&backend, shard, 2);
    sim_capture(lake, options, &c);
    push_sealed(lake, "t", &c, 10000);
    const struct tl_range_request request = {
        .trace = "t", .stream = STREAM, .to = UINT64_MAX, .format = TL_FORMAT_TEXT};
    fetch(lake, &request, &text);
    assert_int_equal(tl_cut_open(&cut, lake, "t", STREAM, NULL), TL_OK);
    timed_truth_read(&truth, &text, tl_gen_image(cut.gen));
    assert_int_equal(truth.n, cut.end);
    tl_buf_fini(&text);
    capture_free(&c);
}

static void end(void)
{
    timed_truth_fini(&truth);
    tl_cut_close(&cut);
    close_memory_lake(backend, lake);
}

/* ---- spans ------------------------------------------------------------------------------------
 */

struct spans {
    uint64_t at, time; /* the end of the last span */
    uint64_t kinds[TL_TIMED_KINDS];
    bool any;
};

/* Spans follow each other, each of the function that the text says, and with its times. */
static int check_span(void *context, const struct tl_timed_span *span, const struct tl_moment *from,
                      const struct tl_moment *to)
{
    struct spans *const s = context;
    if (s->any) {
        assert_int_equal(span->position, s->at);
        assert_int_equal(span->time, s->time);
    }
    assert_true(span->end_time >= span->time);
    if (span->kind == TL_TIMED_RUN) {
        for (uint64_t x = span->position; x < span->end; x++)
            if (span->function != truth.function[x])
                fail_msg("%llu of %llu..%llu: function %u, not %u", (unsigned long long)x,
                         (unsigned long long)span->position, (unsigned long long)span->end,
                         span->function, truth.function[x]);
        if (span->time != truth.begin[span->position] || span->end_time != truth.end[span->end])
            fail_msg("%llu..%llu is %llu..%llu, not %llu..%llu", (unsigned long long)span->position,
                     (unsigned long long)span->end, (unsigned long long)span->time,
                     (unsigned long long)span->end_time,
                     (unsigned long long)truth.begin[span->position],
                     (unsigned long long)truth.end[span->end]);
        assert_true(from->least <= from->time && from->time <= from->most);
        assert_true(to->least <= to->time && to->time <= to->most);
    } else {
        assert_int_equal(span->position, span->end);
    }
    s->kinds[span->kind] += span->end_time - span->time;
    s->at = span->end;
    s->time = span->end_time;
    s->any = true;
    return TL_OK;
}

static void check_spans(uint64_t from, uint64_t to)
{
    struct spans s = {0};
    struct tl_fail fail = {0};
    const struct tl_timing_sinks sinks = {.span = check_span, .context = &s};
    if (tl_timing_walk(&cut, from, to, &sinks, &fail) < 0)
        fail_msg("%s", fail.text);
    uint64_t ran = 0;
    for (uint64_t x = from; x < to; x++)
        ran += truth.end[x + 1] - truth.begin[x];
    assert_int_equal(s.kinds[TL_TIMED_RUN], ran);
    if (to == truth.n && from < to)
        assert_int_equal(s.time, truth.begin[to]);
}

/* ---- answers ----------------------------------------------------------------------------------
 */

#define TICK 10 /* ns */

static void check_functions(uint64_t from, uint64_t to)
{
    struct tl_function_table table;
    struct tl_fail fail = {0};
    const struct tl_function_table_request request = {
        .range = {"t", STREAM, TL_UNIT_INSN, from, to}, .weight = TL_WEIGHT_TIME, .limit = 100000};
    if (tl_lake_function_table(lake, &request, &table, &fail) < 0)
        fail_msg("%s", fail.text);
    uint64_t insns = 0, ran = 0;
    assert_int_equal(table.n, table.all);
    for (size_t i = 0; i < table.n; i++) {
        const struct tl_function_times *const f = &table.p[i];
        uint64_t self = 0, time = 0;
        for (uint64_t x = from; x < to; x++) {
            const char *const name = tl_function_name(tl_gen_image(cut.gen), truth.function[x]);
            if (strcmp(name, f->name) != 0)
                continue;
            self++;
            time += truth.end[x + 1] - truth.begin[x];
        }
        assert_int_equal(f->self, self);
        assert_int_equal(f->self_time.value, time * TICK);
        assert_true(f->self_time.least <= f->self_time.value);
        assert_true(f->self_time.value <= f->self_time.most);
        assert_true(f->total >= f->self && f->total_time >= f->self_time.value);
        assert_true(f->time.min <= f->time.p50 && f->time.p50 <= f->time.p90);
        assert_true(f->time.p90 <= f->time.p99 && f->time.p99 <= f->time.max);
        assert_true(i == 0 || f[-1].self_time.value >= f->self_time.value);
        insns += f->self;
        ran += f->self_time.value;
    }
    assert_int_equal(insns, to - from);
    assert_int_equal(ran, table.about.ran);
    assert_int_equal(table.about.time, table.about.time_to - table.about.time_from);
    tl_function_table_fini(&table);
}

static uint64_t missing_of(const struct tl_timed_extent *x)
{
    uint64_t sum = 0;
    for (unsigned kind = TL_TIMED_LOST; kind < TL_TIMED_KINDS; kind++)
        sum += x->missing[kind];
    return sum;
}

/* Whole shards come from what is stored with them, and agree with walking them. */
static void check_stored(uint64_t from, uint64_t to)
{
    struct tl_timed_counts counts = {0};
    struct tl_fail fail = {0};
    if (tl_timed_counts_add(&counts, &cut, from, to, &fail) < 0)
        fail_msg("%s", fail.text);
    uint64_t insns = 0, time = 0, ran = 0, selfs = 0, times = 0;
    for (uint64_t x = from; x < to; x++)
        ran += truth.end[x + 1] - truth.begin[x];
    for (size_t i = 0; i < counts.tree.n_nodes; i++) {
        insns += counts.tree.nodes[i].self;
        time += counts.tree.nodes[i].time;
    }
    for (size_t i = 0; i < counts.index.n_functions; i++) {
        selfs += counts.index.functions[i].by[TL_BY_INSNS].self;
        times += counts.index.functions[i].by[TL_BY_TIME].self;
    }
    assert_int_equal(insns, to - from);
    assert_int_equal(selfs, to - from);
    assert_int_equal(time, ran);
    assert_int_equal(times, ran);
    const struct tl_timed_extent *const x = &counts.extent;
    assert_int_equal(x->end - x->begin - missing_of(x), ran);
    if (from == 0 && to == truth.n) {
        assert_true(cut.n_rows < 4 || counts.shards + 2 >= cut.n_rows);
        assert_int_equal(x->end - x->begin, truth.last - truth.first);
    }
    tl_timed_counts_fini(&counts);
}

/* Each call in the list is what tl_lake_call() says, and lasts from its first instruction's time to
 * its end's. */
static void check_row(const struct tl_call_row *row)
{
    struct tl_call_info call;
    assert_int_equal(tl_lake_call(lake, "t", STREAM, row->from, row->depth, &call, NULL), TL_OK);
    assert_string_equal(call.name, row->name);
    assert_int_equal(call.from, row->from);
    assert_int_equal(call.to, row->to);
    assert_int_equal(call.self, row->self);
    assert_int_equal(call.time_from, row->time_from);
    assert_int_equal(call.time_to, row->time_to);
    assert_int_equal(call.time_least, row->time.least);
    assert_int_equal(call.time_most, row->time.most);
    tl_call_info_fini(&call);
    assert_int_equal(row->time_from, truth.begin[row->from] * TICK);
    assert_int_equal(row->time_to, truth.end[row->to] * TICK);
    assert_int_equal(row->time.value, row->time_to - row->time_from);
    assert_true(row->time.least <= row->time.value && row->time.value <= row->time.most);
    assert_true(row->self_time + row->interrupted <= row->time.value);
}

static void check_calls(const struct tl_function_times *f)
{
    struct tl_calls calls;
    struct tl_fail fail = {0};
    struct tl_calls_request request = {.range = {"t", STREAM, TL_UNIT_INSN, 0, UINT64_MAX},
                                       .function = f->name,
                                       .weight = TL_WEIGHT_TIME,
                                       .most = UINT64_MAX,
                                       .limit = 100000 - 20};
    if (tl_lake_calls_of(lake, &request, &calls, &fail) < 0)
        fail_msg("%s", fail.text);
    uint64_t ended = 0, total = 0, longest = 0;
    for (size_t i = 0; i < calls.n; i++) {
        const struct tl_call_row *const row = &calls.p[i];
        assert_true(i == 0 || row->time.value <= row[-1].time.value);
        if (i % 17 == 0 && !row->open)
            check_row(row);
        ended += !row->open;
        total += row->open ? 0 : row->time.value;
        longest = !row->open && row->time.value > longest ? row->time.value : longest;
    }
    assert_int_equal(calls.all, calls.n);
    assert_int_equal(ended, f->ended);
    assert_int_equal(total, f->time.total);
    assert_int_equal(longest, f->time.max);
    /* A page of it, and only the calls of some length. */
    struct tl_calls page;
    request.skip = calls.n / 3;
    request.limit = 5;
    request.least = longest / 10;
    request.most = longest;
    assert_int_equal(tl_lake_calls_of(lake, &request, &page, &fail), TL_OK);
    uint64_t found = 0;
    for (size_t i = 0; i < calls.n; i++) {
        const uint64_t length = calls.p[i].time.value;
        if (length < request.least || length >= request.most)
            continue;
        if (found >= request.skip && found - request.skip < page.n)
            assert_int_equal(page.p[found - request.skip].from, calls.p[i].from);
        found++;
    }
    assert_int_equal(page.all, found);
    assert_int_equal(page.n, found <= request.skip      ? 0
                             : found - request.skip < 5 ? found - request.skip
                                                        : 5);
    tl_calls_fini(&page);
    tl_calls_fini(&calls);
}

/* The same of all calls, one by one. */
static bool same_call(const struct tl_call_hit *a, const struct tl_call_hit *b)
{
    const struct tl_timing_call *const x = &a->call, *const y = &b->call;
    return a->length == b->length && x->frame.insn == y->frame.insn &&
           x->frame.function == y->frame.function && x->end == y->end && x->depth == y->depth &&
           !memcmp(&x->from, &y->from, sizeof x->from) && !memcmp(&x->to, &y->to, sizeof x->to) &&
           x->self == y->self && x->self_time == y->self_time && x->interrupted == y->interrupted &&
           x->interruptions == y->interruptions && x->caller == y->caller && x->cut == y->cut &&
           x->open == y->open;
}

static void run_search(struct tl_callsearch *s, uint64_t skip, uint64_t most)
{
    struct tl_fail fail = {0};
    s->best.most = most;
    if (tl_callsearch_run(s, &fail) < 0)
        fail_msg("%s", fail.text);
    tl_best_skip(&s->best, skip);
    if (tl_callsearch_complete(s, &fail) < 0)
        fail_msg("a stored call is not in the stream: %s", fail.text);
}

/* A search by what is stored finds what walking all of the range finds. */
static void check_search(uint64_t *random)
{
    const uint64_t r = *random = *random * 6364136223846793005u + 1442695040888963407u;
    const uint64_t a = (r >> 33) % truth.n, b = (r >> 13) % truth.n, most = 1 + (r >> 40) % 60;
    const bool all = r >> 60 < 6, some = r >> 32 & 1;
    struct tl_callsearch s = {.cut = &cut,
                              .from = all     ? 0
                                      : a < b ? a
                                              : b,
                              .to = all     ? truth.n
                                    : a < b ? b
                                            : a,
                              .weight = r >> 31 & 1 ? TL_WEIGHT_TIME : TL_WEIGHT_INSNS,
                              .order = (enum tl_calls_order)((r >> 28) % TL_CALLS_ORDERS),
                              .least = some ? (r >> 20) % 64 : 0,
                              .most = some && r >> 30 & 1 ? 64 + (r >> 50) % 999 : UINT64_MAX};
    tl_image_symbols(tl_gen_image(cut.gen), &s.n_symbols);
    uint8_t *const symbols = calloc(s.n_symbols + 1, 1);
    for (size_t i = 0; i < s.n_symbols; i++)
        symbols[i] = r >> 29 & 1 || i % 4 == (r >> 44) % 4;
    s.symbols = symbols;
    struct tl_callsearch walked = s;
    walked.walks = true;
    run_search(&s, most / 4, most);
    run_search(&walked, most / 4, most);
    assert_int_equal(s.all, walked.all);
    assert_int_equal(s.best.n, walked.best.n);
    for (size_t i = 0; i < s.best.n; i++) {
        const struct tl_call_hit *const x = s.best.rows, *const y = walked.best.rows;
        if (!same_call(&x[i], &y[i]))
            fail_msg("%llu..%llu, weight %d, order %d, %llu..%llu: call %zu is %llu+%llu, not "
                     "%llu+%llu",
                     (unsigned long long)s.from, (unsigned long long)s.to, s.weight, s.order,
                     (unsigned long long)s.least, (unsigned long long)s.most, i,
                     (unsigned long long)x[i].call.frame.insn, (unsigned long long)x[i].length,
                     (unsigned long long)y[i].call.frame.insn, (unsigned long long)y[i].length);
    }
    assert_int_equal(s.extent.end - s.extent.begin, walked.extent.end - walked.extent.begin);
    assert_memory_equal(s.extent.missing, walked.extent.missing, sizeof s.extent.missing);
    free(symbols);
    free(s.best.rows);
    free(walked.best.rows);
}

static void check_exceptions(void)
{
    struct tl_exception_table table;
    struct tl_fail fail = {0};
    const struct tl_timing_range range = {"t", STREAM, TL_UNIT_INSN, 0, UINT64_MAX};
    if (tl_lake_exception_table(lake, &range, &table, &fail) < 0)
        fail_msg("%s", fail.text);
    uint64_t entered = 0;
    for (size_t i = 0; i < table.n; i++) {
        const struct tl_exception_row *const e = &table.p[i];
        assert_true(e->ended <= e->entered && e->nested <= e->entered && e->deepest >= 1);
        assert_true(e->periods + 1 == e->entered);
        assert_true(e->periods == 0 ||
                    ((double)e->period_min <= e->period && e->period <= (double)e->period_max &&
                     e->jitter <= (double)(e->period_max - e->period_min)));
        assert_true(e->latencies <= e->entered && e->latency_min <= e->latency_max);
        assert_true(e->name[0]);
        entered += e->entered;
    }
    /* Also those whose handlers are not traced. */
    assert_int_equal(entered, truth.exceptions);
    tl_exception_table_fini(&table);
}

/* The stream's row and an answer about all of it tell the same mean distance of timestamps. */
static void step_is_of_the_stream(const struct tl_timing_about *about)
{
    struct tl_trace_list list;
    assert_int_equal(tl_lake_trace(lake, "t", &list), TL_OK);
    const struct tl_stream_row *row = list.rows[0].streams;
    while (strcmp(row->name, STREAM) != 0)
        row++;
    assert_true(about->time_step > 0);
    assert_int_equal(about->time_step, row->time_step);
    tl_trace_list_free(&list);
}

static void check_gaps(void)
{
    struct tl_gap_table table;
    const struct tl_timing_range range = {"t", STREAM, TL_UNIT_INSN, 0, UINT64_MAX};
    assert_int_equal(tl_lake_gap_table(lake, &range, 100000, &table, NULL), TL_OK);
    assert_int_equal(table.all, timed_truth_gaps(&truth));
    assert_int_equal(table.n, table.all);
    uint64_t lost = 0, off = 0;
    for (size_t i = 0; i < table.n; i++) {
        const struct tl_gap_row *const g = &table.p[i];
        size_t k = 0;
        while (k < truth.n_gaps &&
               (truth.gap_from[k] * TICK != g->time_from || truth.gap_from[k] == truth.gap_to[k]))
            k++;
        assert_true(k < truth.n_gaps);
        assert_int_equal(g->position, truth.gap_at[k]);
        assert_int_equal(g->time_to, truth.gap_to[k] * TICK);
        assert_int_equal(g->off, truth.gap_kind[k] == TL_TIMED_OFF);
        assert_false(g->switched_out);
        assert_true(i == 0 || g->time_to - g->time_from <= g[-1].time_to - g[-1].time_from);
        *(g->off ? &off : &lost) += g->time_to - g->time_from;
    }
    assert_true(table.about.lost >= lost && table.about.off >= off);
    assert_int_equal(table.about.time, (truth.last - truth.first) * TICK);
    step_is_of_the_stream(&table.about);
    tl_gap_table_fini(&table);
}

struct listed {
    struct tl_exception_span *p;
    size_t n, cap;
};

static int list(void *context, const struct tl_exception_span *e)
{
    struct listed *const l = context;
    assert_int_equal(tl_grow(&l->p, &l->cap, l->n + 1, sizeof *l->p), TL_OK);
    l->p[l->n++] = *e;
    return TL_OK;
}

static int by_begin(const void *a, const void *b)
{
    const struct tl_exception_span *x = a, *y = b;
    return x->begin != y->begin ? (x->begin < y->begin ? -1 : 1) : (int)x->level - (int)y->level;
}

/* Rows that are stored with shards are those that walking the whole range makes. */
static size_t check_rows(uint64_t from, uint64_t to)
{
    struct listed got = {0};
    struct tl_timed_rows walked = {0};
    struct tl_timed_extent all;
    struct tl_fail fail = {0};
    const struct tl_timed_rows_sinks sinks = {.exception = list, .context = &got};
    const struct tl_timing_part part = {.from = from, .to = to};
    assert_int_equal(tl_timed_rows_gather(&cut, from, to, &sinks, &all, &fail), TL_OK);
    assert_int_equal(tl_timed_rows_walk(&cut, &part, &walked, &fail), TL_OK);
    assert_int_equal(got.n, walked.n_exceptions);
    assert_int_equal(all.end - all.begin, walked.extent.end - walked.extent.begin);
    assert_memory_equal(all.missing, walked.extent.missing, sizeof all.missing);
    if (got.n > 1) {
        qsort(got.p, got.n, sizeof *got.p, by_begin);
        qsort(walked.exceptions, got.n, sizeof *got.p, by_begin);
    }
    for (size_t i = 0; i < got.n; i++) {
        const struct tl_exception_span *const a = &got.p[i], *const b = &walked.exceptions[i];
        if (a->begin != b->begin || a->end != b->end || a->time != b->time ||
            a->end_time != b->end_time || a->self != b->self || a->self_time != b->self_time ||
            a->function != b->function || a->level != b->level || a->number != b->number ||
            a->flags != b->flags)
            fail_msg(
                "%llu..%llu: exception %u at %llu..%llu, %llu..%llu, own %llu, %llu, level %u, "
                "flags %u: not %u at %llu..%llu, %llu..%llu, own %llu, %llu, level %u, flags %u",
                (unsigned long long)from, (unsigned long long)to, a->number,
                (unsigned long long)a->begin, (unsigned long long)a->end,
                (unsigned long long)a->time, (unsigned long long)a->end_time,
                (unsigned long long)a->self, (unsigned long long)a->self_time, a->level, a->flags,
                b->number, (unsigned long long)b->begin, (unsigned long long)b->end,
                (unsigned long long)b->time, (unsigned long long)b->end_time,
                (unsigned long long)b->self, (unsigned long long)b->self_time, b->level, b->flags);
        /* Where nothing of it precedes the range, and nothing is missing, its time adds up. */
        assert_true(a->begin < from || a->self_time <= a->end_time - a->time);
        assert_true(!truth.begin || a->end == a->begin || a->time == truth.begin[a->begin]);
    }
    const size_t n = got.n;
    free(got.p);
    tl_timed_rows_fini(&walked);
    return n;
}

/* Counts of whole shards are those that walking them gives. */
static void check_counts(uint64_t from, uint64_t to)
{
    struct tl_timed_counts stored = {0}, walked = {.walks = true};
    struct tl_fail fail = {0};
    assert_int_equal(tl_timed_counts_add(&stored, &cut, from, to, &fail), TL_OK);
    assert_int_equal(tl_timed_counts_add(&walked, &cut, from, to, &fail), TL_OK);
    assert_int_equal(stored.extent.end - stored.extent.begin,
                     walked.extent.end - walked.extent.begin);
    assert_memory_equal(stored.extent.missing, walked.extent.missing, sizeof stored.extent.missing);
    for (size_t i = 0; i < walked.index.n_functions; i++) {
        const struct tl_function_calls *const a = &walked.index.functions[i],
                                              *const b =
                                                  tl_call_index_find(&stored.index, a->function);
        for (unsigned weight = 0; weight < TL_CALL_WEIGHTS && b; weight++) {
            const struct tl_call_sums *const x = &a->by[weight], *const y = &b->by[weight];
            if (x->self != y->self || x->calls != y->calls || x->ended != y->ended ||
                x->total != y->total || x->min != y->min || x->max != y->max)
                fail_msg("%llu..%llu, function %u, weight %u: own %llu, not %llu; %llu calls, not "
                         "%llu; of %llu, not %llu",
                         (unsigned long long)from, (unsigned long long)to, a->function, weight,
                         (unsigned long long)y->self, (unsigned long long)x->self,
                         (unsigned long long)y->ended, (unsigned long long)x->ended,
                         (unsigned long long)y->total, (unsigned long long)x->total);
        }
        assert_true(b || (a->by[TL_BY_INSNS].self == 0 && a->by[TL_BY_TIME].self == 0));
    }
    tl_timed_counts_fini(&stored);
    tl_timed_counts_fini(&walked);
}

/* `executed`: NULL, or what the rig executed, as flow text. */
static void begin_rig(const struct rig_kind *kind, const char *stream, size_t size, uint64_t seed,
                      FILE *executed)
{
    struct rig *rig;
    struct tl_setup setup;
    struct capture c = {0};
    char hash[72];
    truth = (struct timed_truth){0};
    lake = open_memory_lake(&backend, 3000, 2);
    tl_setup_init(&setup);
    assert_int_equal(kind->start(&rig, seed, executed != NULL), TL_OK);
    assert_int_equal(kind->describe(rig, &setup, &c.elf), TL_OK);
    if (c.elf.n > 0) {
        sim_put_image(lake, &c.elf, hash);
        assert_true(tl_setup_add_image(&setup, hash, NULL) >= 0);
    }
    while (c.bytes.n < size)
        assert_int_equal(kind->more(rig, size - c.bytes.n, &c.bytes), TL_OK);
    assert_int_equal(tl_setup_write(&setup, &c.setup), TL_OK);
    assert_int_equal(tl_buf_add(&c.setup, "", 1), TL_OK);
    if (executed)
        assert_int_equal(kind->truth(rig, executed), TL_OK);
    kind->stop(rig);
    tl_setup_fini(&setup);
    push_sealed(lake, "t", &c, 10000);
    assert_int_equal(tl_cut_open(&cut, lake, "t", stream, NULL), TL_OK);
    truth.n = cut.end;
    assert_true(cut.n_rows > 3);
    capture_free(&c);
}

/* Of Intel PT, too, what is stored is what a walk counts: its stream begins with several timestamps
 * before the first instruction, exceptions nest without an end, and some are of addresses that a
 * handler has just reached. */
static void stored_is_walked(void **state)
{
    uint64_t random = 11;
    (void)state;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        begin_rig(seed % 2 ? &rig_pt_user : &rig_pt, "pt.0", seed % 2 ? 60000 : 20000, seed, NULL);
        check_counts(0, truth.n);
        assert_true(check_rows(0, truth.n) > (seed % 2 ? 0 : 100));
        for (int k = 0; k < 4; k++) {
            check_search(&random);
            const uint64_t a = (random >> 33) % truth.n, b = (random >> 13) % truth.n;
            check_counts(a < b ? a : b, a < b ? b : a);
            check_rows(a < b ? a : b, a < b ? b : a);
        }
        end();
    }
}

/* ---- tracing that is switched off and on ------------------------------------------------------
 */

/* When each instruction was executed, by a rig's truth. */
static uint64_t *executed_at(char *text, size_t *n)
{
    uint64_t *times = NULL, now = 0;
    size_t cap = 0;
    for (char *p = strtok(text, "\n"); p; p = strtok(NULL, "\n")) {
        now = *p == 'T' ? strtoull(p + 2, NULL, 10) : now;
        if (*p != 'I')
            continue;
        assert_int_equal(tl_grow(&times, &cap, *n + 1, sizeof *times), TL_OK);
        times[(*n)++] = now;
    }
    return times;
}

/* Between two timestamps of a stream: what really passed while it ran. */
static uint64_t time_on(const uint64_t *times)
{
    struct tl_buf text = {0};
    const struct tl_range_request request = {
        .trace = "t", .stream = "pt.0", .to = UINT64_MAX, .format = TL_FORMAT_TEXT};
    uint64_t on = 0, n = 0, gap = UINT64_MAX;
    fetch(lake, &request, &text);
    assert_int_equal(tl_buf_add(&text, "", 1), TL_OK);
    for (char *p = strtok((char *)text.p, "\n"); p; p = strtok(NULL, "\n")) {
        gap = *p == 'G' ? n : gap;
        if (*p != 'I')
            continue;
        on += n > 0 && gap != n ? times[n] - times[n - 1] : 0;
        n++;
    }
    tl_buf_fini(&text);
    return on;
}

/* Where only programs are traced, what ran behind a system call's return ran: tracing was off only
 * until then. What ran up to where it is switched off is known by bounds alone. */
static void only_what_was_off_is_off(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 3; seed++) {
        char *text = NULL;
        size_t size = 0, n = 0;
        FILE *const file = open_memstream(&text, &size);
        assert_non_null(file);
        begin_rig(&rig_pt_user, "pt.0", 60000, seed, file);
        fclose(file);
        uint64_t *const times = executed_at(text, &n);
        assert_int_equal(n, truth.n);
        struct tl_timed_counts counts = {0};
        assert_int_equal(tl_timed_counts_add(&counts, &cut, 0, n, NULL), TL_OK);
        const struct tl_timed_extent *const x = &counts.extent;
        const uint64_t on = time_on(times), all = x->end - x->begin,
                       ran = all - x->missing[TL_TIMED_OFF] - x->missing[TL_TIMED_LOST];
        assert_true(ran > on / 2 && ran < on);
        tl_timed_counts_fini(&counts);
        free(times);
        free(text);
        end();
    }
}

/* A call tree by cycles has those that the text counts, whatever the range. */
static void check_cycles(uint64_t from, uint64_t to, bool counted)
{
    struct tl_calltree tree = {0};
    struct tl_fail fail = {0};
    const int r = tl_timed_tree_add(&tree, &cut, from, to, TL_WEIGHT_CYCLES, &fail);
    if (!counted && from < to) {
        assert_int_equal(r, TL_USAGE);
        assert_non_null(strstr(fail.text, "no cycle counts"));
        tl_calltree_fini(&tree);
        return;
    }
    if (r < 0)
        fail_msg("%s", fail.text);
    uint64_t all = 0, told = 0;
    for (size_t i = 0; i < tree.n_nodes; i++)
        all += tree.nodes[i].self;
    for (uint64_t x = from; x < to; x++)
        told += truth.cycles[x];
    assert_int_equal(all, told);
    assert_true(told > 0 || to - from < truth.n / 2);
    for (size_t k = 0; k < tree.n_functions; k++) {
        const uint32_t function = tree.functions[k].function;
        uint64_t self = 0, is = 0;
        for (size_t i = 0; i < tree.n_nodes; i++)
            self += tree.nodes[i].function == function ? tree.nodes[i].self : 0;
        for (uint64_t x = from; x < to; x++)
            is += truth.function[x] == function ? truth.cycles[x] : 0;
        assert_int_equal(self, is);
        assert_true(tree.functions[k].min <= tree.functions[k].max);
    }
    tl_calltree_fini(&tree);
}

static void check_all(const struct sim_options *options, uint64_t shard)
{
    uint64_t random = options->seed;
    begin(options, shard);
    check_spans(0, truth.n);
    check_stored(0, truth.n);
    check_functions(0, truth.n);
    check_cycles(0, truth.n, options->cycles);
    for (int i = 0; i < 6; i++) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        const uint64_t a = (random >> 33) % truth.n, b = (random >> 13) % truth.n;
        check_spans(a < b ? a : b, a < b ? b : a);
        check_stored(a < b ? a : b, a < b ? b : a);
        check_functions(a < b ? a : b, a < b ? b : a);
        check_rows(a < b ? a : b, a < b ? b : a);
        check_cycles(a < b ? a : b, a < b ? b : a, options->cycles);
    }
    for (int i = 0; i < 40; i++)
        check_search(&random);
    assert_true(check_rows(0, truth.n) > 10);
    check_exceptions();
    check_gaps();
    struct tl_function_table table;
    const struct tl_function_table_request request = {
        .range = {"t", STREAM, TL_UNIT_INSN, 0, UINT64_MAX}, .weight = TL_WEIGHT_TIME};
    assert_int_equal(tl_lake_function_table(lake, &request, &table, NULL), TL_OK);
    for (size_t i = 0; i < table.n && i < 12; i++)
        if (table.p[i].calls > 0)
            check_calls(&table.p[i]);
    tl_function_table_fini(&table);
    end();
}

static void time_adds_up(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 6; seed++)
        check_all(&(struct sim_options){.seed = seed,
                                        .insns = 20000,
                                        .cores = 1,
                                        .image = true,
                                        .events = true,
                                        .cycles = seed % 2},
                  seed % 3 == 0 ? 1u << 20 : 3000);
}

/* How long so many ticks are does not depend on when the clock's tick 0 was. */
static void durations_have_no_zero(void **state)
{
    (void)state;
    const uint64_t zeros[] = {0, 1234567, (uint64_t)INT64_MIN / 2, (uint64_t)-987654321};
    struct tl_gen *const gen = calloc(1, sizeof *gen);
    struct tl_lane *const lane = calloc(1, sizeof *lane);
    assert_true(gen && lane);
    lane->gen = gen;
    for (size_t i = 0; i < sizeof zeros / sizeof *zeros; i++) {
        assert_true(tl_clock_set(&gen->setup.clock, 10, 512, zeros[i])); /* 2 ticks a ns */
        assert_int_equal(tl_timing_shown(lane, 0), 0);
        assert_int_equal(tl_timing_shown(lane, 2000), 1000);
        assert_int_equal(tl_timing_shown(lane, UINT64_C(1) << 40), UINT64_C(1) << 39);
    }
    free(lane);
    free(gen);
}

/* What a stream without timestamps is asked by time has no answer of zeros. */
static void no_times_are_told(void **state)
{
    (void)state;
    const struct tl_timing_range range = {"t", STREAM, TL_UNIT_INSN, 0, UINT64_MAX};
    const struct tl_function_table_request functions = {.range = range, .weight = TL_WEIGHT_TIME};
    struct tl_function_table table;
    struct tl_fail fail;
    begin(&(struct sim_options){.seed = 3, .insns = 20000, .cores = 1, .image = true}, 3000);
    for (unsigned whole = 0; whole < 2; whole++) {
        const struct tl_profile_request request = {.trace = "t",
                                                   .stream = whole ? NULL : STREAM,
                                                   .unit = TL_UNIT_INSN,
                                                   .to = UINT64_MAX,
                                                   .weight = TL_WEIGHT_TIME};
        struct tl_profile profile;
        assert_int_equal(tl_lake_profile(lake, &request, &profile, &fail), TL_USAGE);
        assert_non_null(strstr(fail.text, STREAM " has no timestamps"));
        tl_profile_fini(&profile);
    }
    assert_int_equal(tl_lake_function_table(lake, &functions, &table, NULL), TL_OK);
    assert_true(table.n > 3 && !table.about.has_time && table.p[0].self >= table.p[1].self);
    size_t called = 0;
    while (table.p[called].ended < 3)
        called++;
    struct tl_calls_request request = {.range = range,
                                       .function = table.p[called].name,
                                       .weight = TL_WEIGHT_TIME,
                                       .most = UINT64_MAX,
                                       .limit = 100};
    struct tl_calls calls;
    assert_int_equal(tl_lake_calls_of(lake, &request, &calls, NULL), TL_OK);
    assert_true(calls.n >= 3 && !calls.about.has_time);
    for (size_t i = 1; i < calls.n && !calls.p[i].open; i++)
        assert_true(calls.p[i - 1].open ||
                    calls.p[i - 1].to - calls.p[i - 1].from >= calls.p[i].to - calls.p[i].from);
    tl_calls_fini(&calls);
    request.least = 5;
    assert_int_equal(tl_lake_calls_of(lake, &request, &calls, &fail), TL_USAGE);
    assert_non_null(strstr(fail.text, "no timestamps"));
    tl_calls_fini(&calls);
    tl_function_table_fini(&table);
    end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(time_adds_up),
        cmocka_unit_test(stored_is_walked),
        cmocka_unit_test(only_what_was_off_is_off),
        cmocka_unit_test(durations_have_no_zero),
        cmocka_unit_test(no_times_are_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
