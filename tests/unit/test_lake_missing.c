/* SPDX-License-Identifier: MIT */
/* Virtual shards with damaged raw bytes: what can be regenerated is correct and at its position,
 * the rest is reported as a gap, in every format in which a range can be read. */
#include "lake/cut.h"
#include "lake_find.h"
#include "lake_insns.h"
#include "lake_stats.h"
#include "lake_upkeep.h"
#include "virtual_pair.h"

#include "raw/packed.h"
#include "raw/segment.h"
#include "stf/file.h"
#include "stf/tools/check.h"
#include "unit/seed.h"

/*
 * Instructions by position, as lines of flow text, and the positions that notes report as missing.
 */
struct by_position {
    char (*insn)[64];
    bool *missing;
    uint64_t n; /* positions in the stream */
    uint64_t insns, gaps, notes;
};

static int add_line(void *context, uint64_t position, struct tl_bytes line)
{
    struct by_position *b = context;
    char text[256];
    unsigned long long from, to;
    snprintf(text, sizeof(text), "%.*s", (int)line.n, (const char *)line.p);
    b->gaps += strncmp(text, "G transport", 11) == 0;
    const char *const note = strstr(text, "are damaged: instructions ");
    if (note && sscanf(strchr(note, ':'), ": instructions %llu:%llu", &from, &to) == 2) {
        b->notes++;
        assert_true(from <= to && to <= b->n);
        for (uint64_t i = from; i < to; i++)
            b->missing[i] = true;
    }
    if (text[0] != 'I' && text[0] != 'N')
        return TL_OK;
    assert_true(position < b->n);
    assert_int_equal(b->insn[position][0], 0); /* each only once */
    snprintf(b->insn[position], sizeof(*b->insn), "%.63s", text);
    b->insns++;
    return TL_OK;
}

/* Read the lines of [from, to). */
static void lines_by_position(struct tl_lake *lake, const char *stream, uint64_t n, uint64_t from,
                              uint64_t to, struct by_position *out)
{
    const struct tl_range_request request = {
        .trace = "t", .stream = stream, .from = from, .to = to, .format = TL_FORMAT_LINES};
    struct tl_range *range;
    struct tl_fail fail = {0};
    *out = (struct by_position){calloc(n + 1, 64), calloc(n + 1, sizeof(bool)), .n = n};
    assert_non_null(out->insn);
    assert_non_null(out->missing);
    int r = tl_range_open(lake, &request, &range, &fail);
    while (r >= 0)
        r = tl_range_lines(range, add_line, out, &fail);
    if (r != TL_EOF)
        fail_msg("%s %llu:%llu: %s", stream, (unsigned long long)from, (unsigned long long)to,
                 fail.text);
    tl_range_close(range);
}

static void free_lines(struct by_position *b)
{
    free(b->insn);
    free(b->missing);
}

/* Read a range as STF, which must follow the rules. */
static int on_finding(void *context, const struct tl_stf_finding *finding)
{
    if (finding->severity == TL_STF_ERROR)
        fail_msg("%s", finding->text);
    return TL_OK;
}

static uint64_t stf_insns(const char *stream, uint64_t from, uint64_t to,
                          enum tl_range_format format)
{
    const struct tl_range_request request = {
        .trace = "t", .stream = stream, .from = from, .to = to, .format = format};
    struct tl_buf bytes = {0};
    struct tl_stf_file *file;
    struct tl_stf_checker *checker;
    struct tl_fail fail = {0};
    fetch(virtual.lake, &request, &bytes);
    assert_int_equal(tl_stf_file_bytes(&file, (struct tl_bytes){bytes.p, bytes.n}, &fail), TL_OK);
    assert_int_equal(tl_stf_checker_new(&checker, on_finding, NULL), TL_OK);
    if (tl_stf_check_file(file, checker, on_finding, NULL, &fail) != TL_OK)
        fail_msg("%s", fail.text);
    const uint64_t n = tl_stf_checker_insns(checker);
    tl_stf_checker_free(checker);
    tl_stf_file_close(file);
    tl_buf_fini(&bytes);
    return n;
}

/* A damaged object and its original bytes. */
struct damage {
    char key[128];
    uint64_t first, end; /* raw bytes */
    struct tl_buf before;
};

static void put(const char *key, const struct tl_buf *bytes)
{
    assert_int_equal(
        tl_backend_put(virtual.backend, key, (struct tl_bytes){bytes->p, bytes->n}, NULL), TL_OK);
    tl_lake_forget_views(virtual.lake, "");
}

/* Flip a bit in the raw bytes of packed segment `i`, which is a single frame. */
static void damage_segment(size_t i, uint64_t random, struct damage *out)
{
    struct tl_segments segments = {0};
    *out = (struct damage){{0}};
    assert_int_equal(tl_segments_list(&segments, virtual.backend, "t", NULL), TL_OK);
    out->first = segments.v[i].first;
    out->end = i + 1 < segments.n ? segments.v[i + 1].first : capture.bytes.n;
    tl_packed_key(out->key, "t", out->first);
    tl_segments_fini(&segments);
    struct tl_buf *const bytes = &out->before;
    assert_int_equal(tl_backend_get_all(virtual.backend, out->key, bytes, NULL), TL_OK);
    uint8_t *const p = &bytes->p[bytes->n / 3 + random % (bytes->n / 3)];
    *p ^= 1;
    put(out->key, bytes);
    *p ^= 1;
}

static void undo(struct damage *damage)
{
    put(damage->key, &damage->before);
    tl_buf_fini(&damage->before);
}

static size_t n_segments(void)
{
    struct tl_segments segments = {0};
    assert_int_equal(tl_segments_list(&segments, virtual.backend, "t", NULL), TL_OK);
    const size_t n = segments.n;
    tl_segments_fini(&segments);
    return n;
}

/* Check that each position either equals that of the stored shards or is reported as missing. */
static void each_is_right_or_missing(const struct by_position *is, const struct by_position *should,
                                     uint64_t from, uint64_t to)
{
    for (uint64_t i = from; i < to && i < is->n; i++) {
        const bool there = is->insn[i][0] != 0, had = should->insn[i][0] != 0;
        if (had ? there == is->missing[i] : there || is->missing[i] < should->missing[i])
            fail_msg("position %llu: '%s', '%s', %d", (unsigned long long)i, is->insn[i],
                     should->insn[i], is->missing[i]);
        if (there && strcmp(is->insn[i], should->insn[i]) != 0)
            fail_msg("position %llu: '%s', '%s', %d", (unsigned long long)i, is->insn[i],
                     should->insn[i], is->missing[i]);
    }
}

#define REACH 4 /* shards: more than the distance of marks and the look-ahead of decoding */

/* Check that nothing is missing from shards well before and well after the damage. */
static void the_rest_is_there(const char *stream, const struct by_position *is,
                              const struct damage *damage)
{
    struct tl_cut cut;
    assert_int_equal(tl_cut_open(&cut, virtual.lake, "t", stream, NULL), TL_OK);
    for (size_t i = 0; i < cut.n_rows; i++) {
        const struct tl_shard_row *const row = &cut.rows[i];
        const bool before = i + REACH < cut.n_rows && cut.rows[i + REACH].byte_last < damage->first;
        const bool after = i >= REACH && cut.rows[i - REACH].byte_first >= damage->end;
        for (uint64_t p = row->first; (before || after) && p < row->first + row->n; p++)
            assert_false(is->missing[p]);
    }
    tl_cut_close(&cut);
}

/* Checks rows of the disassembly list: one for each position, missing or not. */
struct rows {
    const struct by_position *all;
    uint64_t next;
};

static int on_row(void *context, const struct tl_insn_row *row)
{
    struct rows *const rows = context;
    assert_int_equal(row->insn, rows->next);
    assert_int_equal(strncmp(row->text, "(missing", 8) == 0, rows->all->missing[rows->next]);
    rows->next++;
    return TL_OK;
}

static void rows_are_complete(const char *stream, const struct by_position *all, uint64_t from)
{
    const uint64_t n = all->n - from < 100 ? all->n - from : 100;
    struct rows rows = {all, from};
    struct tl_fail fail = {0};
    assert_int_equal(
        tl_lake_insns(virtual.lake, "t", stream, from, (uint32_t)n, on_row, &rows, &fail), TL_OK);
    assert_int_equal(rows.next, from + n);
}

/* Check that ranges beginning, ending or lying in a missing range report it, and that STF agrees
 * with text. */
static void parts_are_consistent(const char *stream, const struct by_position *all, uint64_t random)
{
    for (int round = 0; round < 12; round++) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        uint64_t from = (random >> 33) % all->n;
        const uint64_t n = 1 + (random >> 20) % (all->n / 3);
        if (round % 2) /* begin in a missing range */
            for (uint64_t i = 0; i < all->n && !all->missing[from]; i++)
                from = (from + 1) % all->n;
        const uint64_t to = from + n < all->n ? from + n : all->n;
        struct by_position part;
        lines_by_position(virtual.lake, stream, all->n, from, to, &part);
        each_is_right_or_missing(&part, all, from, to);
        if (all->missing[from])
            assert_true(part.gaps > 0 && part.notes > 0);
        assert_int_equal(stf_insns(stream, from, to, TL_FORMAT_ZSTF), part.insns);
        assert_int_equal(stf_insns(stream, from, to, TL_FORMAT_STF), part.insns);
        free_lines(&part);
        rows_are_complete(stream, all, from);
    }
}

/* The number of positions that are missing only in `is`. */
static uint64_t missing_of(const struct by_position *is, const struct by_position *should)
{
    uint64_t n = 0;
    for (uint64_t i = 0; i < is->n; i++)
        n += is->missing[i] && !should->missing[i];
    return n;
}

/* The number of gaps for lost bytes that a search finds; `stream` NULL: in all streams. */
static uint64_t gaps_found(const char *stream)
{
    const struct tl_find_request request = {.trace = "t",
                                            .stream = stream,
                                            .kind = TL_FIND_EVENT,
                                            .text = "transport",
                                            .to = UINT64_MAX,
                                            .count = true};
    struct tl_found found;
    struct tl_fail fail = {0};
    assert_int_equal(tl_lake_find(virtual.lake, &request, &found, &fail), TL_OK);
    const uint64_t n = found.total;
    tl_found_fini(&found);
    return n;
}

/* Check that missing parts are found by a search for gaps once they were read, and are not counted
 * as executed. */
static void gaps_are_found(const struct tl_stream_row *s, const struct by_position *is,
                           const struct by_position *should)
{
    struct tl_stats stats[2];
    struct tl_fail fail = {0};
    uint64_t gaps = 0;
    assert_int_equal(gaps_found(s->name), is->gaps);
    for (unsigned i = 0; i < 2; i++)
        assert_int_equal(tl_lake_stats(i ? stored.lake : virtual.lake, "t", s->name, 0, UINT64_MAX,
                                       &stats[i], &fail),
                         TL_OK);
    for (size_t i = 0; i < stats[0].n_counts; i++)
        if (stats[0].counts[i].group == TL_STATS_GAP &&
            strcmp(stats[0].counts[i].name, "transport") == 0)
            gaps += stats[0].counts[i].n;
    assert_int_equal(gaps, is->gaps);
    assert_int_equal(stats[1].insns - stats[0].insns, missing_of(is, should));
    for (unsigned i = 0; i < 2; i++)
        tl_stats_fini(&stats[i]);
}

/* Damage several segments, one after another. */
static void damaged_segments(const struct sim_options *options, uint64_t shard, uint64_t random)
{
    begin_with(options, shard);
    for (unsigned part = 1; part <= 8; part++)
        push_part(capture.bytes.n * part / 8, &(bool){true});
    push_both(3000);
    struct tl_trace_list list;
    assert_int_equal(tl_lake_trace(stored.lake, "t", &list), TL_OK);
    const size_t n = n_segments();
    assert_true(n > 1);
    uint64_t missing = 0, there = 0;
    for (size_t i = 0; i < n; i += 1 + n / 6) {
        struct damage damage;
        damage_segment(i, random, &damage);
        for (size_t k = 0; k < list.rows[0].n_streams; k++) {
            const struct tl_stream_row *const s = &list.rows[0].streams[k];
            struct by_position is, should;
            lines_by_position(virtual.lake, s->name, s->insns, 0, UINT64_MAX, &is);
            lines_by_position(stored.lake, s->name, s->insns, 0, UINT64_MAX, &should);
            each_is_right_or_missing(&is, &should, 0, s->insns);
            the_rest_is_there(s->name, &is, &damage);
            gaps_are_found(s, &is, &should);
            for (uint64_t p = 0; p < s->insns; p++)
                missing += is.missing[p];
            there += is.insns;
            if (i > 0 && i <= 1 + n / 6 && is.insns > 0)
                parts_are_consistent(s->name, &is, random);
            free_lines(&is);
            free_lines(&should);
        }
        undo(&damage);
        random = random * 6364136223846793005u + 1442695040888963407u;
    }
    assert_true((missing > 0 && there > 0) || !options->image);
    tl_trace_list_free(&list);
    end();
}

static void missing_ranges_are_reported(void **state)
{
    const uint64_t random = test_seed();
    const struct sim_options runs[] = {
        {.seed = 5, .insns = INSNS, .cores = 2, .image = true, .events = true},
        {.seed = 6, .insns = INSNS, .cores = 2, .image = true, .itm_from = 9000, .rare = 9},
        {.seed = 7, .insns = 4 * INSNS, .cores = 1, .image = false, .events = true},
        {.seed = 8, .insns = INSNS / 2, .cores = 1, .image = true, .events = true, .cycles = true},
    };
    for (size_t i = 0; i < sizeof(runs) / sizeof(*runs); i++)
        damaged_segments(&runs[i], SHARD, random >> 1);
}

/* Shards with several frames. */
static void frames_after_a_missing_range_are_there(void **state)
{
    const struct sim_options run = {
        .seed = 9, .insns = 500000, .cores = 1, .image = true, .events = true};
    damaged_segments(&run, 200000, test_seed() >> 1);
}

/* Flip a bit in the middle of segment `i`, which is not packed. */
static void flip_in_log(size_t i)
{
    struct tl_segments segments = {0};
    struct tl_buf byte = {0};
    struct tl_log *log;
    uint64_t size;
    char key[128];
    assert_int_equal(tl_segments_list(&segments, virtual.backend, "t", NULL), TL_OK);
    tl_segment_key(key, "t", segments.v[i].first);
    tl_segments_fini(&segments);
    assert_int_equal(virtual.backend->ops->log_open(virtual.backend, key, false, &log, &size, NULL),
                     TL_OK);
    assert_int_equal(log->ops->log_read(log, size / 2, 1, &byte, NULL), TL_OK);
    byte.p[0] ^= 1;
    assert_int_equal(log->ops->log_write(log, size / 2, &(struct tl_bytes){byte.p, 1}, 1, NULL),
                     TL_OK);
    assert_int_equal(log->ops->log_sync(log, NULL), TL_OK);
    log->ops->log_close(log);
    tl_buf_fini(&byte);
    tl_lake_forget_views(virtual.lake, "");
}

/* A growing shard whose newest or oldest segment is damaged. */
static void growing_shards_have_missing_ranges(void **state)
{
    const struct sim_options run = {.seed = 10, .insns = 400000, .cores = 1, .image = true};
    const uint64_t random = test_seed() >> 1;
    uint64_t missing = 0, there = 0;
    begin_with(&run, 2 * 400000);                /* no shard ends */
    for (unsigned part = 1; part <= 8; part++) { /* each part is a segment */
        /* The first part has fewer items than the report of missing ones. */
        const uint64_t to = part > 1 ? capture.bytes.n * part / 9 : 100;
        struct tl_trace_list list;
        struct by_position is, should;
        push_part(to, &(bool){true});
        wait_decoded(virtual.lake, to);
        assert_int_equal(tl_lake_trace(virtual.lake, "t", &list), TL_OK);
        const struct tl_stream_row *const s = &list.rows[0].streams[0];
        lines_by_position(virtual.lake, s->name, s->insns, 0, UINT64_MAX, &should);
        const size_t segment = part % 4 == 0 ? 0 : n_segments() - 1;
        flip_in_log(segment);
        lines_by_position(virtual.lake, s->name, s->insns, 0, UINT64_MAX, &is);
        each_is_right_or_missing(&is, &should, 0, s->insns);
        assert_int_equal(gaps_found(s->name), is.gaps);
        missing += missing_of(&is, &should);
        there += is.insns;
        if (is.insns > 0)
            parts_are_consistent(s->name, &is, random + part);
        flip_in_log(segment);
        free_lines(&is);
        free_lines(&should);
        tl_trace_list_free(&list);
    }
    assert_true(missing > 0 && there > 0);
    end();
}

struct found {
    unsigned streams, gaps;
};

static void read_damaged_perf(void *context)
{
    struct found *const found = context;
    struct tl_trace_list list;
    assert_int_equal(tl_buf_add(&capture.setup, "", 1), TL_OK);
    push_both(500);
    assert_int_equal(tl_lake_trace(stored.lake, "t", &list), TL_OK);
    struct damage damage;
    damage_segment(0, test_seed() >> 1, &damage);
    for (size_t k = 0; k < list.rows[0].n_streams; k++) {
        const struct tl_stream_row *const s = &list.rows[0].streams[k];
        struct by_position is, should;
        lines_by_position(virtual.lake, s->name, s->insns, 0, UINT64_MAX, &is);
        lines_by_position(stored.lake, s->name, s->insns, 0, UINT64_MAX, &should);
        for (uint64_t i = 0; i < s->insns; i++)
            assert_true(!is.insn[i][0] || strcmp(is.insn[i], should.insn[i]) == 0);
        found->streams++;
        found->gaps += is.gaps > 0;
        free_lines(&is);
        free_lines(&should);
    }
    undo(&damage);
    tl_trace_list_free(&list);
}

/* perf.data, where late records are read first; in some of its streams notes are positions. */
static void perf_data_can_be_read(void **state)
{
    struct found found = {0};
    each_perf_file(read_damaged_perf, &found);
    assert_true(found.streams > 20 && found.gaps > 0);
}

/* `verify` reports the damage, and gaps can be found then; decoding again also gives a gap. */
static void damage_is_verified(void **state)
{
    struct tl_buf report = {0}, text = {0};
    struct tl_fail fail = {0};
    struct damage damage;
    begin(&(struct sim_options){
        .seed = 5, .insns = INSNS, .cores = 2, .image = true, .events = true});
    for (unsigned part = 1; part <= 8; part++)
        push_part(capture.bytes.n * part / 8, &(bool){true});
    push_both(3000);
    damage_segment(n_segments() / 2, test_seed() >> 1, &damage);
    const uint64_t before = gaps_found(NULL);
    assert_true(tl_lake_verify(virtual.lake, "t", false, &report, &fail) == 1);
    assert_true(gaps_found(NULL) > before);
    tl_buf_reset(&report);
    assert_true(tl_lake_verify(virtual.lake, "t", true, &report, &fail) == 1);
    assert_int_equal(tl_buf_add(&report, "", 1), TL_OK);
    assert_non_null(strstr((char *)report.p, "are read as a gap"));
    assert_int_equal(tl_lake_redecode(virtual.lake, "t", NULL, &fail), TL_OK);
    assert_int_equal(wait_done(virtual.lake, "t"), TL_TRACE_SEALED);
    lake_text(virtual.lake, "t", &text);
    assert_int_equal(tl_buf_add(&text, "", 1), TL_OK);
    assert_non_null(strstr((char *)text.p, "G transport"));
    tl_buf_fini(&damage.before);
    tl_buf_fini(&report);
    tl_buf_fini(&text);
    end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(missing_ranges_are_reported),
        cmocka_unit_test(frames_after_a_missing_range_are_there),
        cmocka_unit_test(growing_shards_have_missing_ranges),
        cmocka_unit_test(perf_data_can_be_read),
        cmocka_unit_test(damage_is_verified),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
