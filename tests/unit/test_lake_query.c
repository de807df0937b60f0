/* SPDX-License-Identifier: MIT */
/* Queries to the lake compared with the flow text of the same stream, read line by line. */
#include "lake_find.h"
#include "lake_insns.h"
#include "lake_lanes.h"
#include "lake_stats.h"
#include "lake_tiles.h"
#include "sim_capture.h"

#include "lake/scale.h"
#include "stf/file.h"
#include "stf/insns.h"

#define STREAM "cs.10"

/* Contents of the text, by position. */
struct truth {
    struct tl_buf text;
    uint64_t *pc;   /* of each position */
    size_t *line;   /* the beginning of its line in the text */
    char *kind;     /* first letter of each line */
    uint64_t *at;   /* the position that follows it */
    uint64_t *time; /* of T lines */
    size_t n, cap_pc, cap_line;
    size_t n_lines, cap_kind, cap_at, cap_time;
};

static struct tl_backend *backend;
static struct tl_lake *lake;
static struct truth truth;

static void read_truth(struct truth *t)
{
    char *p = (char *)t->text.p, *end = p + t->text.n;
    while (p < end) {
        char *next = memchr(p, '\n', (size_t)(end - p));
        assert_non_null(next);
        if (*p != '#') {
            assert_int_equal(tl_grow(&t->kind, &t->cap_kind, t->n_lines + 1, 1), TL_OK);
            assert_int_equal(tl_grow(&t->at, &t->cap_at, t->n_lines + 1, 8), TL_OK);
            assert_int_equal(tl_grow(&t->time, &t->cap_time, t->n_lines + 1, 8), TL_OK);
            t->kind[t->n_lines] = *p;
            t->at[t->n_lines] = t->n;
            t->time[t->n_lines++] = *p == 'T' ? strtoull(p + 2, NULL, 10) : 0;
        }
        if (*p == 'I' || *p == 'N') {
            assert_int_equal(tl_grow(&t->pc, &t->cap_pc, t->n + 1, 8), TL_OK);
            assert_int_equal(tl_grow(&t->line, &t->cap_line, t->n + 1, sizeof(size_t)), TL_OK);
            t->line[t->n] = (size_t)(p - (char *)t->text.p);
            t->pc[t->n++] = strtoull(p + 2, NULL, 16);
        }
        p = next + 1;
    }
}

static int set_up(void **state)
{
    (void)state;
    struct capture c;
    const struct sim_options options = {
        .seed = 7, .insns = 120000, .cores = 2, .image = true, .events = true};
    lake = open_memory_lake(&backend, 25000, 2);
    sim_capture(lake, &options, &c);
    push_sealed(lake, "t", &c, 10000);
    struct tl_buf all = {0};
    lake_text(lake, "t", &all);
    assert_texts_equal(&c.text, &all);
    tl_buf_fini(&all);
    const struct tl_range_request request = {
        .trace = "t", .stream = STREAM, .to = UINT64_MAX, .format = TL_FORMAT_TEXT};
    fetch(lake, &request, &truth.text);
    read_truth(&truth);
    capture_free(&c);
    assert_true(truth.n > 80000);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    tl_buf_fini(&truth.text);
    free(truth.pc);
    free(truth.line);
    free(truth.kind);
    free(truth.at);
    free(truth.time);
    close_memory_lake(backend, lake);
    return 0;
}

static uint64_t next_random(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return *state >> 33;
}

static void ranges_of_text_join(void **state)
{
    (void)state;
    struct tl_buf got = {0};
    uint64_t random = 1;
    for (uint64_t at = 0; at < truth.n;) {
        uint64_t to = at + 1 + next_random(&random) % 9000;
        const struct tl_range_request request = {.trace = "t",
                                                 .stream = STREAM,
                                                 .from = at,
                                                 .to = to >= truth.n ? UINT64_MAX : to,
                                                 .format = TL_FORMAT_TEXT};
        const size_t before = got.n;
        fetch(lake, &request, &got);
        if (before > 0) { /* keep only the first heading */
            uint8_t *line = memchr(got.p + before, '\n', got.n - before);
            const size_t n = (size_t)(line + 1 - (got.p + before));
            memmove(got.p + before, line + 1, got.n - before - n);
            got.n -= n;
        }
        at = to;
    }
    assert_texts_equal(&truth.text, &got);
    tl_buf_fini(&got);
}

static void check_stf(uint64_t from, uint64_t to, enum tl_range_format format)
{
    struct tl_buf bytes = {0};
    const struct tl_range_request request = {
        .trace = "t", .stream = STREAM, .from = from, .to = to, .format = format};
    fetch(lake, &request, &bytes);
    struct tl_stf_file *file;
    struct tl_stf_insns *insns;
    struct tl_fail fail = {0};
    if (tl_stf_file_bytes(&file, (struct tl_bytes){bytes.p, bytes.n}, &fail) < 0)
        fail_msg("%s", fail.text);
    assert_int_equal(tl_stf_file_wrap(file), format == TL_FORMAT_ZSTF ? TL_STF_ZSTF : TL_STF_PLAIN);
    const struct tl_stf_source source = tl_stf_file_source(file);
    assert_int_equal(tl_stf_insns_open(&insns, &source), TL_OK);
    uint64_t at = from;
    int r;
    struct tl_stf_insn rows[512];
    while ((r = tl_stf_insns_read(insns, rows, 512, &fail)) > 0)
        for (int i = 0; i < r; i++) {
            while (truth.text.p[truth.line[at]] == 'N')
                at++;
            assert_true(at < truth.n);
            if (rows[i].pc != truth.pc[at])
                fail_msg("instruction %llu of [%llu, %llu): %llx, expected %llx",
                         (unsigned long long)at, (unsigned long long)from, (unsigned long long)to,
                         (unsigned long long)rows[i].pc, (unsigned long long)truth.pc[at]);
            at++;
        }
    if (r != TL_EOF)
        fail_msg("%s", fail.text);
    const uint64_t end = to < truth.n ? to : truth.n;
    while (at < end && truth.text.p[truth.line[at]] == 'N')
        at++;
    assert_int_equal(at, end);
    assert_int_equal(tl_stf_insns_header(insns)->faults & TL_STF_FAULTS_HARD, 0);
    tl_stf_insns_free(insns);
    tl_stf_file_close(file);
    tl_buf_fini(&bytes);
}

static void ranges_are_stf(void **state)
{
    (void)state;
    uint64_t random = 5;
    check_stf(0, UINT64_MAX, TL_FORMAT_ZSTF);
    check_stf(0, UINT64_MAX, TL_FORMAT_STF);
    check_stf(16384, 2 * 16384, TL_FORMAT_ZSTF);
    for (int i = 0; i < 20; i++) {
        const uint64_t from = next_random(&random) % truth.n;
        check_stf(from, from + 1 + next_random(&random) % 40000,
                  i & 1 ? TL_FORMAT_ZSTF : TL_FORMAT_STF);
    }
}

struct line_count {
    uint64_t insns, next;
};

static int count_line(void *context, uint64_t at, struct tl_bytes line)
{
    struct line_count *const count = context;
    if (line.p[0] == 'I' || line.p[0] == 'N') {
        assert_int_equal(at, count->next++);
        assert_null(memchr(line.p, '\n', line.n));
        if (line.p[0] == 'I')
            assert_int_equal(strtoull((const char *)line.p + 2, NULL, 16), truth.pc[at]);
        count->insns++;
    }
    return TL_OK;
}

static void lines_have_their_positions(void **state)
{
    (void)state;
    struct line_count count = {.next = 100};
    struct tl_range *range;
    struct tl_fail fail = {0};
    const struct tl_range_request request = {
        .trace = "t", .stream = STREAM, .from = 100, .to = 5100, .format = TL_FORMAT_LINES};
    assert_int_equal(tl_range_open(lake, &request, &range, &fail), TL_OK);
    int r;
    do
        r = tl_range_lines(range, count_line, &count, &fail);
    while (r == TL_OK);
    assert_int_equal(r, TL_EOF);
    assert_int_equal(count.insns, 5000);
    tl_range_close(range);
}

static uint64_t ns(uint64_t ticks)
{
    return ticks * 10;
}

static void positions_have_times(void **state)
{
    (void)state;
    struct tl_position at, last = {0};
    struct tl_fail fail = {0};
    uint64_t checked = 0;
    /* An instruction directly after a timestamp has exactly that time. */
    for (size_t i = 0; i + 1 < truth.n_lines && checked < 200; i++) {
        if (truth.kind[i] != 'T')
            continue;
        size_t k = i;
        while (k + 1 < truth.n_lines && truth.kind[k + 1] != 'I' && truth.kind[k + 1] != 'T')
            k++;
        if (k + 1 == truth.n_lines || truth.kind[k + 1] != 'I')
            continue;
        assert_int_equal(tl_lake_locate(lake, "t", STREAM, TL_UNIT_INSN, truth.at[i], &at, &fail),
                         TL_OK);
        assert_true(at.has_time);
        assert_int_equal(at.time, ns(truth.time[i]));
        checked++;
    }
    print_message("%llu timestamps checked\n", (unsigned long long)checked);
    assert_true(checked > 10);
    for (uint64_t p = 0; p < truth.n; p += 501) {
        assert_int_equal(tl_lake_locate(lake, "t", STREAM, TL_UNIT_INSN, p, &at, &fail), TL_OK);
        assert_true(at.time >= last.time);
        assert_true(at.byte >= last.byte);
        last = at;
        /* The timestamps before and after it. */
        uint64_t from = 0, to = UINT64_MAX;
        for (size_t i = 0; i < truth.n_lines && to == UINT64_MAX; i++) {
            if (truth.kind[i] != 'T')
                continue;
            if (truth.at[i] <= p)
                from = ns(truth.time[i]) > from ? ns(truth.time[i]) : from;
            else
                to = ns(truth.time[i]) > from ? ns(truth.time[i]) : from;
        }
        if (at.time_from != from || at.time_to != to)
            fail_msg("%llu: %llu..%llu, not %llu..%llu", (unsigned long long)p,
                     (unsigned long long)at.time_from, (unsigned long long)at.time_to,
                     (unsigned long long)from, (unsigned long long)to);
        assert_true(at.time_from <= at.time && at.time <= at.time_to);
        /* The reverse: the first position with this time, and with this byte. */
        struct tl_position back;
        assert_int_equal(tl_lake_locate(lake, "t", STREAM, TL_UNIT_TIME, at.time, &back, &fail),
                         TL_OK);
        assert_true(back.insn <= p);
        assert_true(back.time >= at.time || back.insn == 0);
        assert_int_equal(tl_lake_locate(lake, "t", STREAM, TL_UNIT_BYTE, at.byte, &back, &fail),
                         TL_OK);
        assert_true(back.insn <= p);
    }
}

static void finds_addresses(void **state)
{
    (void)state;
    uint64_t random = 3;
    for (int round = 0; round < 60; round++) {
        /* Every other address is only near executed ones and may not have been executed. */
        const uint64_t pc = truth.pc[next_random(&random) % truth.n] +
                            (round & 1 ? 4 * (next_random(&random) % 64) : 0);
        const uint64_t from = next_random(&random) % truth.n;
        const struct tl_find_request request = {.trace = "t",
                                                .stream = STREAM,
                                                .kind = TL_FIND_PC,
                                                .pc_from = pc,
                                                .pc_to = pc + 8,
                                                .from = from,
                                                .to = UINT64_MAX,
                                                .limit = 50};
        struct tl_found found;
        size_t k = 0;
        struct tl_fail fail = {0};
        assert_int_equal(tl_lake_find(lake, &request, &found, &fail), TL_OK);
        const struct tl_hit *const hits = found.hits;
        const size_t n = found.n;
        for (uint64_t i = from; i < truth.n && k < n; i++)
            if (truth.pc[i] >= pc && truth.pc[i] < pc + 8) {
                assert_int_equal(hits[k].at.insn, i);
                assert_int_equal(hits[k].pc, truth.pc[i]);
                k++;
            }
        assert_int_equal(k, n);
        size_t all = 0;
        for (uint64_t i = from; i < truth.n; i++)
            all += truth.pc[i] >= pc && truth.pc[i] < pc + 8;
        assert_int_equal(found.more, all > 50);
        if (all <= 50)
            assert_int_equal(n, all);
        tl_found_fini(&found);
    }
}

static void finds_events(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        char kind;
    } kinds[] = {{"exception", 'X'}, {"gap", 'G'}, {"event", 'V'}, {"mode", 'M'}, {"time", 'T'}};
    for (size_t c = 0; c < sizeof(kinds) / sizeof(*kinds); c++) {
        const struct tl_find_request request = {.trace = "t",
                                                .stream = STREAM,
                                                .kind = TL_FIND_EVENT,
                                                .text = kinds[c].name,
                                                .to = UINT64_MAX,
                                                .limit = 100000};
        struct tl_found found;
        size_t k = 0;
        struct tl_fail fail = {0};
        assert_int_equal(tl_lake_find(lake, &request, &found, &fail), TL_OK);
        const struct tl_hit *const hits = found.hits;
        const size_t n = found.n;
        for (size_t i = 0; i < truth.n_lines; i++)
            if (truth.kind[i] == kinds[c].kind) {
                assert_true(k < n);
                assert_int_equal(hits[k++].at.insn, truth.at[i]);
            }
        assert_int_equal(k, n);
        assert_true(n > 0);
        tl_found_fini(&found);
    }
}

/* The function of a position as numbered in tiles: symbol index + 1. */
static uint32_t function_of(const struct tl_image *image, uint64_t position)
{
    return (uint32_t)(tl_image_symbol_index(image, truth.pc[position]) + 1);
}

static unsigned event_bit(char kind)
{
    switch (kind) {
    case 'X':
        return TL_HAS_EXCEPTION;
    case 'R':
        return TL_HAS_RETURN;
    case 'V':
        return TL_HAS_EVENT;
    case 'S':
        return TL_HAS_SOFTWARE;
    case 'M':
        return TL_HAS_MODE;
    case 'C':
        return TL_HAS_CONTEXT;
    case 'O':
        return TL_HAS_TRACE_ON;
    case 'A':
        return TL_HAS_NOTE;
    default:
        return 0;
    }
}

static struct tl_tile get_tile(enum tl_range_unit axis, unsigned level, uint64_t index)
{
    struct tl_tile tile;
    struct tl_fail fail = {0};
    if (tl_lake_tile(lake, "t", axis, level, index, 0, 15, 1, &tile, &fail) < 0)
        fail_msg("%s", fail.text);
    assert_true(tile.sealed);
    assert_int_equal(tile.n_lanes, 2);
    return tile;
}

static void check_insn_tiles(unsigned level, const struct tl_image *image)
{
    const uint64_t width = UINT64_C(1) << 2 * level;
    size_t line = 0;
    for (uint64_t index = 0; index * 512 * width < truth.n; index++) {
        struct tl_tile tile = get_tile(TL_UNIT_INSN, level, index);
        const struct tl_tile_lane *lane = tile.lanes[0];
        assert_int_equal(tile.bucket, width);
        for (size_t i = 0; i < 512; i++) {
            const uint64_t from = tile.first + i * width;
            const uint64_t to = from + width < truth.n ? from + width : truth.n;
            assert_int_equal(lane->insns[i], from < to ? to - from : 0);
            unsigned mask = 0, gaps = 0, events = 0;
            for (; line < truth.n_lines && truth.at[line] < from + width; line++) {
                mask |= event_bit(truth.kind[line]);
                gaps += truth.kind[line] == 'G';
                events += truth.kind[line] == 'X' || truth.kind[line] == 'V';
            }
            if (from < to) {
                assert_int_equal(lane->event_mask[i], mask);
                assert_int_equal(lane->event_count[i], events);
                assert_int_equal(lane->flags[i] & TL_FLAG_GAP ? 1 : 0, gaps > 0);
            }
            if (level == 0 && from < to) {
                assert_int_equal(lane->function[i], function_of(image, from));
                assert_int_equal(lane->page[i], truth.pc[from] >> 12);
            }
        }
        tl_tile_fini(&tile);
    }
}

static void tiles_sum_up(void **state)
{
    (void)state;
    struct tl_trace *trace = tl_lake_find_trace(lake, "t");
    struct tl_gen *gen = tl_trace_serving(trace);
    for (unsigned level = 0; level < 10; level++)
        check_insn_tiles(level, tl_gen_image(gen));
    tl_gen_put(gen);
    tl_trace_put(trace);
}

/* A bucket's most frequent function equals that of the text where buckets are exact. */
static void tiles_tell_the_function(void **state)
{
    (void)state;
    struct tl_trace *trace = tl_lake_find_trace(lake, "t");
    struct tl_gen *gen = tl_trace_serving(trace);
    const struct tl_image *image = tl_gen_image(gen);
    size_t symbols, all_wrong = 0, all_checked = 0;
    tl_image_symbols(image, &symbols);
    uint64_t *counts = calloc(symbols + 1, sizeof(*counts));
    for (unsigned level = 1; level < 8; level++) {
        struct tl_tile tile = get_tile(TL_UNIT_INSN, level, 0);
        const struct tl_tile_lane *lane = tile.lanes[0];
        size_t wrong = 0, checked = 0;
        for (size_t i = 0; i < 512; i++) {
            memset(counts, 0, (symbols + 1) * sizeof(*counts));
            const uint64_t from = i * tile.bucket;
            uint64_t most = 0;
            for (uint64_t p = from; p < from + tile.bucket && p < truth.n; p++) {
                uint64_t *count = &counts[function_of(image, p)];
                (*count)++;
                most = *count > most ? *count : most;
            }
            if (most == 0)
                continue;
            checked++;
            /* Several may be equally frequent, and the approximation may miss a narrow winner. */
            wrong += counts[lane->function[i]] * 10 < most * 8;
        }
        tl_tile_fini(&tile);
        print_message("level %u: dominant function clearly wrong in %zu of %zu buckets\n", level,
                      wrong, checked);
        all_wrong += wrong;
        all_checked += checked;
    }
    assert_true(all_wrong * 50 < all_checked);
    free(counts);
    tl_gen_put(gen);
    tl_trace_put(trace);
}

static void time_tiles_cover_everything(void **state)
{
    (void)state;
    struct tl_trace_list list;
    assert_int_equal(tl_lake_trace(lake, "t", &list), TL_OK);
    const struct tl_stream_row row = list.rows[0].streams[0];
    tl_trace_list_free(&list);
    assert_true(row.has_time && row.time_unit_ns);
    for (unsigned level = 4; level < 16; level++) {
        const uint64_t width = UINT64_C(512) << 2 * level;
        if (row.time_last / width - row.time_first / width > 200)
            continue;
        uint64_t sum = 0, events = 0, expected = 0;
        for (uint64_t i = row.time_first / width; i <= row.time_last / width; i++) {
            struct tl_tile tile = get_tile(TL_UNIT_TIME, level, i);
            for (size_t k = 0; k < 512; k++) {
                sum += tile.lanes[0]->insns[k];
                events += tile.lanes[0]->event_count[k];
            }
            tl_tile_fini(&tile);
        }
        assert_int_equal(sum, truth.n);
        for (size_t i = 0; i < truth.n_lines; i++)
            expected += (truth.kind[i] == 'X' || truth.kind[i] == 'V') && truth.at[i] < truth.n;
        assert_int_equal(events, expected);
    }
}

static int check_row(void *context, const struct tl_insn_row *row)
{
    uint64_t *const next = context;
    assert_int_equal(row->insn, *next);
    assert_int_equal(row->pc, truth.pc[*next]);
    assert_true(row->text[0] != '\0');
    ++*next;
    return TL_OK;
}

static void rows_have_their_addresses(void **state)
{
    (void)state;
    struct tl_fail fail = {0};
    uint64_t next = 1000;
    assert_int_equal(tl_lake_insns(lake, "t", STREAM, 1000, 300, check_row, &next, &fail), TL_OK);
    assert_int_equal(next, 1300);
}

/* The table is in the order that tiles refer to. */
static void functions_are_numbered(void **state)
{
    (void)state;
    struct tl_fail fail = {0};
    struct tl_functions functions;
    struct tl_trace *trace = tl_lake_find_trace(lake, "t");
    struct tl_gen *gen = tl_trace_serving(trace);
    size_t n;
    const struct tl_symbol *const symbols = tl_image_symbols(tl_gen_image(gen), &n);
    assert_int_equal(tl_lake_functions(lake, "t", &functions, &fail), TL_OK);
    assert_int_equal(functions.n, n);
    assert_true(n > 0);
    for (size_t i = 0; i < n; i++) {
        assert_string_equal(functions.p[i].name, symbols[i].name);
        assert_int_equal(functions.p[i].pc, symbols[i].address);
    }
    tl_functions_fini(&functions);
    tl_gen_put(gen);
    tl_trace_put(trace);
}

static void counters_are_reported(void **state)
{
    (void)state;
    struct tl_buf out = {0};
    assert_int_equal(tl_lake_metrics(lake, &out), TL_OK);
    assert_int_equal(tl_buf_add(&out, "", 1), TL_OK);
    assert_non_null(strstr((const char *)out.p, "\ntracelake_traces{state=\"sealed\"} 1\n"));
    tl_buf_fini(&out);
}

static const struct {
    enum tl_stats_group group;
    const char *name;
} counts[] = {
    {TL_STATS_MIX, "plain"},       {TL_STATS_MIX, "call"},
    {TL_STATS_MIX, "return"},      {TL_STATS_MIX, "conditional branch"},
    {TL_STATS_MIX, "branch"},      {TL_STATS_ITEM, "exception"},
    {TL_STATS_ITEM, "time"},       {TL_STATS_GAP, "overflow"},
    {TL_STATS_MODE, "el1.ns.a64"},
};
enum { COUNTS = 2 + sizeof(counts) / sizeof(*counts) };

/* Add the counts of a range: instructions, taken branches, and those listed above. */
static void add_stats_of(const char *stream, uint64_t from, uint64_t to,
                         uint64_t sums[static COUNTS])
{
    struct tl_stats stats;
    struct tl_fail fail = {0};
    assert_int_equal(tl_lake_stats(lake, "t", stream, from, to, &stats, &fail), TL_OK);
    sums[0] += stats.insns;
    sums[1] += stats.taken;
    for (size_t k = 0; k < stats.n_counts; k++)
        for (size_t i = 2; i < COUNTS; i++)
            if (stats.counts[k].group == counts[i - 2].group &&
                strcmp(stats.counts[k].name, counts[i - 2].name) == 0)
                sums[i] += stats.counts[k].n;
    tl_stats_fini(&stats);
}

static void add_stats(uint64_t from, uint64_t to, uint64_t sums[static COUNTS])
{
    add_stats_of(STREAM, from, to, sums);
}

/* Add the instructions and calls of functions; `names` are set in the first call. */
static void add_functions(uint64_t from, uint64_t to, char names[static 8][64],
                          uint64_t sums[static 16])
{
    struct tl_stats stats;
    struct tl_fail fail = {0};
    assert_int_equal(tl_lake_stats(lake, "t", STREAM, from, to, &stats, &fail), TL_OK);
    for (size_t i = 0; i < stats.n_functions; i++) {
        const struct tl_stats_function *const f = &stats.functions[i];
        for (size_t k = 0; k < 8; k++) {
            if (i == k && names[k][0] == '\0')
                snprintf(names[k], sizeof names[k], "%s", f->name ? f->name : "(no symbol)");
            if (strcmp(names[k], f->name ? f->name : "(no symbol)") == 0) {
                sums[2 * k] += f->insns;
                sums[2 * k + 1] += f->calls;
            }
        }
    }
    tl_stats_fini(&stats);
}

/* Counts of whole shards come from their indexes, those of parts are counted by instruction; they
 * add up. */
static void functions_add_up(void **state)
{
    static const uint64_t steps[] = {24999, 31000, 60001};
    char names[8][64] = {0};
    uint64_t whole[16] = {0};
    (void)state;
    add_functions(0, UINT64_MAX, names, whole);
    assert_true(names[7][0] != '\0' && whole[1] + whole[3] + whole[5] > 0);
    for (size_t k = 0; k < sizeof(steps) / sizeof(*steps); k++) {
        uint64_t sums[16] = {0};
        for (uint64_t at = 0; at < truth.n; at += steps[k])
            add_functions(at, at + steps[k], names, sums);
        for (size_t i = 0; i < 16; i++)
            if (sums[i] != whole[i])
                fail_msg("%s %s by %llu: %llu, not %llu", i % 2 ? "calls of" : "instructions of",
                         names[i / 2], (unsigned long long)steps[k], (unsigned long long)sums[i],
                         (unsigned long long)whole[i]);
    }
}

static void all_streams_add_up(void)
{
    uint64_t each[COUNTS] = {0}, all[COUNTS] = {0};
    struct tl_trace_list list;
    assert_int_equal(tl_lake_trace(lake, "t", &list), TL_OK);
    assert_true(list.rows[0].n_streams > 1);
    for (size_t i = 0; i < list.rows[0].n_streams; i++)
        add_stats_of(list.rows[0].streams[i].name, 0, UINT64_MAX, each);
    tl_trace_list_free(&list);
    add_stats_of(NULL, 0, UINT64_MAX, all);
    assert_memory_equal(each, all, sizeof(all));
}

static void statistics_add_up(void **state)
{
    static const uint64_t steps[] = {700, 24999, 25000, 31000, 60001, 1u << 20};
    uint64_t whole[COUNTS] = {0}, again[COUNTS] = {0};
    (void)state;
    add_stats(0, UINT64_MAX, whole);
    assert_int_equal(whole[0], truth.n);
    for (size_t i = 1; i < COUNTS; i++)
        if (whole[i] == 0)
            fail_msg("no count %zu", i);
    add_stats(0, UINT64_MAX, again);
    assert_memory_equal(whole, again, sizeof(whole));
    all_streams_add_up();
    for (size_t k = 0; k < sizeof(steps) / sizeof(*steps); k++) {
        uint64_t sums[COUNTS] = {0};
        for (uint64_t at = 0; at < truth.n; at += steps[k])
            add_stats(at, at + steps[k], sums);
        for (size_t i = 0; i < COUNTS; i++)
            if (sums[i] != whole[i])
                fail_msg("count %zu by %llu: %llu, not %llu", i, (unsigned long long)steps[k],
                         (unsigned long long)sums[i], (unsigned long long)whole[i]);
    }
}

struct branch_rows {
    bool disassembled;
    uint64_t target; /* of the branch in the previous row; 0 if it was not a branch */
    char function[256];
    size_t calls;
};

static int check_branch(void *context, const struct tl_insn_row *row)
{
    struct branch_rows *const b = context;
    if (b->target) {
        assert_int_equal(row->pc, b->target);
        assert_string_equal(row->function, b->function);
        b->calls++;
    }
    b->target = 0;
    if (strcmp(row->text, "(branch)") == 0)
        b->disassembled = false;
    if (strncmp(row->text, "bl ", 3) != 0)
        return TL_OK;
    char *end;
    b->target = strtoull(row->text + 3, &end, 16);
    assert_memory_equal(end, " <", 2);
    snprintf(b->function, sizeof b->function, "%.*s", (int)strcspn(end + 2, ">"), end + 2);
    return TL_OK;
}

/* The row of an unconditional direct branch gives the address of the next row, and its function. */
static void rows_say_where_branches_lead(void **state)
{
    (void)state;
    struct tl_fail fail = {0};
    struct branch_rows b = {.disassembled = true};
    assert_int_equal(tl_lake_insns(lake, "t", STREAM, 1000, 4000, check_branch, &b, &fail), TL_OK);
    if (!b.disassembled) {
        print_message("skipped: LLVM's library is not installed\n");
        skip();
    }
    assert_true(b.calls > 10);
}

/* The slices of a small window are the same as in a larger one, whatever chunk the window begins
 * in. */
static void slices_do_not_depend_on_the_window(void **state)
{
    (void)state;
    struct tl_fail fail = {0};
    uint64_t random = 11;
    for (int round = 0; round < 10; round++) {
        const uint64_t at = 200 + next_random(&random) % (truth.n - 400);
        struct tl_slices whole, part;
        struct tl_slices_request request = {
            .trace = "t", .stream = STREAM, .axis = TL_UNIT_INSN, .from = at - 100, .to = at + 100};
        assert_int_equal(tl_lake_slices(lake, &request, &whole, &fail), TL_OK);
        request.from = at;
        request.to = at + 1;
        assert_int_equal(tl_lake_slices(lake, &request, &part, &fail), TL_OK);
        assert_true(part.n > 0);
        /* Each frame that is active at `at` begins where the larger window has it. */
        for (size_t i = 0; i < part.n; i++) {
            size_t k = 0;
            while (k < whole.n &&
                   (whole.p[k].depth != part.p[i].depth || whole.p[k].from != part.p[i].from))
                k++;
            assert_true(k < whole.n);
            assert_string_equal(whole.p[k].name, part.p[i].name);
        }
        tl_slices_fini(&whole);
        tl_slices_fini(&part);
    }
}

static void wrong_questions_are_refused(void **state)
{
    (void)state;
    struct tl_fail fail = {0};
    struct tl_range *range;
    struct tl_tile tile;
    uint64_t next = 0;
    struct tl_range_request request = {.trace = "x", .stream = STREAM, .to = UINT64_MAX};
    assert_int_equal(tl_range_open(lake, &request, &range, &fail), TL_NOTFOUND);
    request.trace = "t";
    request.stream = "cs.99";
    assert_int_equal(tl_range_open(lake, &request, &range, &fail), TL_NOTFOUND);
    request.stream = STREAM;
    request.from = 10;
    request.to = 9;
    assert_int_equal(tl_range_open(lake, &request, &range, &fail), TL_USAGE);
    assert_int_equal(tl_lake_tile(lake, "t", TL_UNIT_INSN, 3, 0, 0, 15, 2, &tile, &fail),
                     TL_NOTFOUND);
    assert_int_equal(tl_lake_tile(lake, "t", TL_UNIT_INSN, 27, UINT64_MAX, 0, 15, 1, &tile, &fail),
                     TL_USAGE);
    assert_int_equal(tl_lake_insns(lake, "t", STREAM, 0, 100000, check_row, &next, &fail),
                     TL_USAGE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranges_of_text_join),
        cmocka_unit_test(ranges_are_stf),
        cmocka_unit_test(lines_have_their_positions),
        cmocka_unit_test(positions_have_times),
        cmocka_unit_test(finds_addresses),
        cmocka_unit_test(finds_events),
        cmocka_unit_test(tiles_sum_up),
        cmocka_unit_test(tiles_tell_the_function),
        cmocka_unit_test(time_tiles_cover_everything),
        cmocka_unit_test(rows_have_their_addresses),
        cmocka_unit_test(functions_are_numbered),
        cmocka_unit_test(counters_are_reported),
        cmocka_unit_test(statistics_add_up),
        cmocka_unit_test(functions_add_up),
        cmocka_unit_test(rows_say_where_branches_lead),
        cmocka_unit_test(slices_do_not_depend_on_the_window),
        cmocka_unit_test(wrong_questions_are_refused),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
