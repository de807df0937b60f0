/* SPDX-License-Identifier: MIT */
/*
 * Ranges of STF that are copied from the frames of shards, compared with the same ranges written
 * from their items: the groups are equal, except that the last instruction's may have more records.
 * Consecutive ranges add up to the whole.
 */
#include "made_stf.h"

#include "made_items.h"
#include "range/copied.h"
#include "range/range.h"
#include "sim_capture.h"
#include "stf/file.h"
#include "stf/flow/flow_groups.h"
#include "stf/flow/flow_writer.h"
#include "stf/tools/check.h"

static struct tl_backend *backend;
static struct tl_lake *lake;

static void open_anew(uint64_t shard_insns)
{
    lake = open_memory_lake(&backend, shard_insns, 2);
}

static void close_all(void)
{
    close_memory_lake(backend, lake);
}

/* ---- a range produced in two ways ----------------------------------------------------------- */

static int add_line(void *context, uint64_t at, struct tl_bytes line)
{
    return tl_buf_printf(context, "%llu %.*s\n", (unsigned long long)at, (int)line.n,
                         (const char *)line.p);
}

static void get(const char *stream, uint64_t from, uint64_t to, enum tl_range_format format,
                bool anew, struct tl_buf *out)
{
    const struct tl_range_request request = {
        .trace = "t", .stream = stream, .from = from, .to = to, .format = format};
    struct tl_range *range;
    struct tl_fail fail = {0};
    int r = tl_range_open(lake, &request, &range, &fail);
    if (r >= 0 && anew)
        tl_range_write_anew(range);
    while (r >= 0) {
        const size_t before = out->n;
        r = format == TL_FORMAT_LINES ? tl_range_lines(range, add_line, out, &fail)
                                      : tl_range_next(range, out, &fail);
        assert_true(format == TL_FORMAT_STF || out->n - before <= (256u << 10));
    }
    if (r != TL_EOF)
        fail_msg("[%llu, %llu): %s", (unsigned long long)from, (unsigned long long)to, fail.text);
    tl_range_close(range);
}

static int find_fault(void *context, const struct tl_stf_finding *f)
{
    const char *const *of = context;
    if (!strncmp(f->rule, "chunk", 5) || !strcmp(f->rule, "container") ||
        !strcmp(f->rule, "record-order") || !strcmp(f->rule, "header"))
        if (f->severity == TL_STF_ERROR)
            fail_msg("%s: %s: %s at %llu", *of, f->rule, f->text, (unsigned long long)f->offset);
    return TL_OK;
}

/* Check that a .zstf obeys the rules, and that its plain stream is `stf`. */
static void check_zstf(const char *name, const struct tl_buf *bytes, const struct tl_buf *stf,
                       bool trails)
{
    struct tl_stf_checker *checker;
    struct tl_stf_file *file;
    struct tl_fail fail = {0};
    struct tl_zstf *zstf;
    struct tl_buf plain = {0};
    const struct tl_bytes all = {bytes->p, bytes->n};
    assert_int_equal(tl_stf_checker_new(&checker, find_fault, &name), TL_OK);
    assert_int_equal(tl_stf_file_bytes(&file, all, &fail), TL_OK);
    if (tl_stf_check_file(file, checker, find_fault, &name, &fail) < 0)
        fail_msg("%s: %s", name, fail.text);
    tl_stf_checker_free(checker);
    tl_stf_file_close(file);
    assert_int_equal(tl_zstf_open_bytes(&zstf, all, &fail), TL_OK);
    for (uint64_t i = 0; i < tl_zstf_chunks(zstf); i++)
        assert_int_equal(tl_zstf_read(zstf, i, &plain, NULL, &fail), TL_OK);
    if (plain.n > stf->n || (!trails && plain.n < stf->n))
        fail_msg("%s: %zu of %zu bytes", name, plain.n, stf->n);
    assert_memory_equal(plain.p, stf->p, plain.n);
    tl_zstf_close(zstf);
    tl_buf_fini(&plain);
}

/* Where the last group of a stream begins and ends. */
static void find_last(const struct tl_buf *stf, size_t *begin, size_t *end)
{
    struct tl_stf_groups groups = {0};
    const int head = tl_stf_groups_read(&groups, (struct tl_bytes){stf->p, stf->n});
    assert_true(head > 0);
    struct tl_stf_group group = {{stf->p + head, stf->n - (size_t)head}, groups.layout};
    struct tl_bytes record;
    *begin = *end = (size_t)head;
    while (tl_stf_group_skip(&group, &record) == TL_OK)
        if (tl_stf_is_marker(record.p[0])) {
            *begin = *end;
            *end = (size_t)(group.rest.p - stf->p);
        }
    tl_stf_groups_fini(&groups);
}

static void report_difference(const struct tl_buf *a, const struct tl_buf *b)
{
    struct tl_stf_groups groups = {0};
    const int head = tl_stf_groups_read(&groups, (struct tl_bytes){a->p, a->n});
    struct tl_stf_group x = {{a->p + head, a->n - (size_t)head}, groups.layout};
    struct tl_stf_group y = {{b->p + head, b->n - (size_t)head}, groups.layout};
    uint64_t marker = 0;
    struct tl_bytes p, q;
    while (tl_stf_group_skip(&x, &p) == TL_OK && tl_stf_group_skip(&y, &q) == TL_OK) {
        if (p.n != q.n || memcmp(p.p, q.p, p.n) != 0)
            fail_msg("in group %llu: record %u of %zu bytes (copied), %u of %zu",
                     (unsigned long long)marker, p.p[0], p.n, q.p[0], q.n);
        marker += tl_stf_is_marker(p.p[0]);
    }
    fail_msg("one ends behind group %llu", (unsigned long long)marker);
}

static void compare(const char *stream, uint64_t from, uint64_t to)
{
    struct tl_buf copied = {0}, anew = {0}, zstf = {0};
    char name[96];
    snprintf(name, sizeof name, "%s [%llu, %llu)", stream, (unsigned long long)from,
             (unsigned long long)to);
    get(stream, from, to, TL_FORMAT_STF, false, &copied);
    get(stream, from, to, TL_FORMAT_STF, true, &anew);
    size_t begin[2], end[2];
    find_last(&copied, &begin[0], &end[0]);
    find_last(&anew, &begin[1], &end[1]);
    if (begin[0] != begin[1] || memcmp(copied.p, anew.p, begin[0]) != 0) {
        print_message("%s: last groups at %zu and %zu\n", name, begin[0], begin[1]);
        report_difference(&copied, &anew);
    }
    /* The same instruction, possibly with more records, and the same bytes after it. */
    assert_int_equal(copied.n - end[0], anew.n - end[1]);
    assert_memory_equal(copied.p + end[0], anew.p + end[1], copied.n - end[0]);
    if (end[0] - begin[0] < end[1] - begin[1])
        fail_msg("%s: the last group has %zu bytes, anew %zu", name, end[0] - begin[0],
                 end[1] - begin[1]);
    get(stream, from, to, TL_FORMAT_ZSTF, false, &zstf);
    if (end[0] > begin[0])
        check_zstf(name, &zstf, &copied, copied.n > end[0]);
    tl_buf_fini(&copied);
    tl_buf_fini(&anew);
    tl_buf_fini(&zstf);
}

static uint64_t insns_of(const char *stream)
{
    struct tl_trace_list list;
    uint64_t n = 0;
    assert_int_equal(tl_lake_trace(lake, "t", &list), TL_OK);
    for (size_t i = 0; i < list.rows[0].n_streams; i++)
        if (!strcmp(list.rows[0].streams[i].name, stream))
            n = list.rows[0].streams[i].insns;
    tl_trace_list_free(&list);
    assert_true(n > 0);
    return n;
}

/* Check that ranges are indeed copied. */
static void assert_copied(const char *stream)
{
    struct tl_cut cut;
    struct tl_range_copy copy;
    struct tl_fail fail = {0};
    assert_int_equal(tl_cut_open(&cut, lake, "t", stream, &fail), TL_OK);
    assert_int_equal(tl_range_copy_begin(&copy, &cut, 0, cut.end, true, &fail), TL_OK);
    assert_int_equal(tl_range_copy_check(&copy, &fail), TL_OK);
    tl_range_copy_end(&copy);
    tl_cut_close(&cut);
}

/* Compare the whole stream, ranges at boundaries of shards and frames, and others. */
static void compare_ranges(const char *stream, uint64_t shard, unsigned rounds, uint64_t seed)
{
    const uint64_t n = insns_of(stream);
    compare(stream, 0, UINT64_MAX);
    for (uint64_t edge = shard; edge < n && edge < 4 * shard; edge += shard) {
        compare(stream, edge - 1, edge + 1);
        compare(stream, edge, edge + shard + 1);
        compare(stream, edge, UINT64_MAX);
    }
    for (unsigned i = 0; i < rounds; i++) {
        const uint64_t from = rng_next(&seed) % n;
        const uint64_t most = i & 1 ? 100 : 3 * shard;
        compare(stream, from, from + 1 + rng_next(&seed) % most);
    }
}

/* Compare ranges that end at positions without instructions, which have only an address. */
static void compare_at_addresses(const char *stream)
{
    struct tl_buf lines = {0};
    unsigned n = 0;
    get(stream, 0, UINT64_MAX, TL_FORMAT_LINES, false, &lines);
    assert_int_equal(tl_buf_add(&lines, "", 1), TL_OK);
    for (const char *line = (const char *)lines.p; line && *line && n < 1000;) {
        char *kind;
        const uint64_t at = strtoull(line, &kind, 10);
        if (kind[1] == 'N' || kind[1] == 'B') {
            compare(stream, at > 20 ? at - 20 : 0, at + 1);
            n++;
        }
        line = strchr(line, '\n');
        line = line ? line + 1 : NULL;
    }
    assert_true(n > 10);
    tl_buf_fini(&lines);
}

/* ---- traces --------------------------------------------------------------------------------- */

static void push_stf(struct tl_buf *stf)
{
    struct capture c = {.bytes = *stf};
    assert_int_equal(tl_buf_printf(&c.setup, "[trace]\nformat=stf\n"), TL_OK);
    assert_int_equal(tl_buf_add(&c.setup, "", 1), TL_OK);
    push_sealed(lake, "t", &c, 1 << 20);
    capture_free(&c);
    *stf = (struct tl_buf){0};
}

static void cores_copied(uint64_t shard, unsigned rounds)
{
    struct capture c;
    const struct sim_options options = {
        .seed = 7, .insns = 9 * shard / 2, .cores = 2, .image = true, .events = true};
    open_anew(shard);
    sim_capture(lake, &options, &c);
    push_sealed(lake, "t", &c, 10000);
    capture_free(&c);
    assert_copied("cs.10");
    compare_ranges("cs.10", shard, rounds, 5);
    compare_ranges("cs.11", shard, rounds / 2, 6);
    close_all();
}

static void full_frames_are_copied(void **state)
{
    (void)state;
    cores_copied(TL_CHUNK_MARKERS, 10);
}

static void frames_are_cut(void **state)
{
    (void)state;
    cores_copied(25000, 8);
}

/* Streams of items of all kinds, with several instruction sets, gaps and positions without code. */
static void any_items_copied(void **state)
{
    static const struct {
        uint64_t shard;
        unsigned others;
    } cases[] = {{3000, 6}, {300, 3}, {TL_CHUNK_MARKERS, 200}, {700, 0}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        static const struct tl_stf_flow_options options = {.comments = true};
        struct tl_stf_flow *flow;
        struct tl_stf_flow_at at = {0};
        struct made m;
        struct tl_buf stf = {0};
        made_stream(&m, 100 + i, cases[i].shard > 10000 ? 60000 : 3000, cases[i].others);
        assert_int_equal(tl_stf_flow_new(&flow, &options, NULL), TL_OK);
        assert_int_equal(tl_stf_flow_items(flow, m.items, m.n, UINT64_MAX, &at), TL_OK);
        assert_int_equal(tl_stf_flow_finish(flow), TL_OK);
        const struct tl_bytes bytes = tl_stf_flow_bytes(flow);
        assert_int_equal(tl_buf_add(&stf, bytes.p, bytes.n), TL_OK);
        tl_stf_flow_free(flow);
        made_free(&m);
        open_anew(cases[i].shard);
        push_stf(&stf);
        if (cases[i].others == 0) /* with other items, some shards end without an instruction */
            assert_copied("stf.0");
        else
            compare_at_addresses("stf.0");
        compare_ranges("stf.0", cases[i].shard, 24, 11 + i);
        close_all();
    }
}

/* Traces of other producers, with and without page walks, whose instruction numbers count from the
 * beginning of a range. */
static void others_copied(void **state)
{
    struct maker walks = {.seed = 3}, plain = {.seed = 4};
    (void)state;
    begin_trace(&walks, 256, false);
    put_trace(&walks, 40000);
    open_anew(10000);
    push_stf(&walks.out);
    compare_ranges("stf.0", 10000, 6, 21);
    close_all();
    begin_trace(&plain, 0, true);
    for (unsigned i = 0; i < 220000; i++) {
        const uint64_t dice = roll(&plain) % 64;
        if (dice == 0)
            put_reg(&plain, TL_STF_REG_INT, TL_STF_OPERAND_DEST);
        if (dice == 1)
            put_access(&plain);
        if (dice == 2)
            put_event(&plain, false, 0x4000);
        put(&plain, &(struct tl_stf_record){.type = TL_STF_INST_32, .opcode = 0x13});
    }
    open_anew(TL_CHUNK_MARKERS);
    push_stf(&plain.out);
    assert_copied("stf.0");
    compare_ranges("stf.0", TL_CHUNK_MARKERS, 8, 22);
    close_all();
}

/* ---- very many items at one position --------------------------------------------------------- */

/* Check that [0, position) and [position, end), as text without headings or as lines, add up to the
 * whole. */
static void assert_meet(const char *stream, uint64_t position, enum tl_range_format format)
{
    struct tl_buf whole = {0}, parts = {0};
    get(stream, 0, UINT64_MAX, format, false, &whole);
    get(stream, 0, position, format, false, &parts);
    const size_t first = parts.n;
    get(stream, position, UINT64_MAX, format, false, &parts);
    if (format == TL_FORMAT_TEXT) {
        const uint8_t *const after = (const uint8_t *)memchr(whole.p, '\n', whole.n) + 1;
        const size_t heading = (size_t)(after - whole.p);
        memmove(parts.p + first, parts.p + first + heading, parts.n - first - heading);
        parts.n -= heading;
    }
    assert_texts_equal(&whole, &parts);
    tl_buf_fini(&whole);
    tl_buf_fini(&parts);
}

/* Check this for each position where a chunk begins. There must be at least `shards` shards, and a
 * chunk that ends after an item that is not an instruction. */
static void meet_at_cuts(const char *stream, size_t shards, enum tl_range_format format)
{
    struct tl_cut cut;
    struct tl_fail fail = {0};
    struct tl_chunk last = {0};
    unsigned n = 0;
    assert_int_equal(tl_cut_open(&cut, lake, "t", stream, &fail), TL_OK);
    for (size_t i = 0; i < cut.n_rows; i++) {
        struct tl_view *view;
        assert_int_equal(tl_cut_view(&cut, i, &view, &fail), TL_OK);
        for (size_t c = 0; c < view->index.n_chunks; c++) {
            const struct tl_chunk *const chunk = &view->index.chunks[c];
            n += c > 0 && chunk->stf == last.stf;
            if (chunk->first > last.first) {
                assert_meet(stream, chunk->first, format);
                compare(stream, chunk->first - 1, chunk->first + 1);
            }
            last = *chunk;
        }
        tl_view_put(view);
    }
    compare(stream, 0, UINT64_MAX);
    assert_true(n > 0 && cut.n_rows >= shards);
    tl_cut_close(&cut);
}

/* Hardware events and contexts of a core before one instruction; with more than `burst_every`
 * instructions, also after the last. */
static void bursts(unsigned burst, uint64_t insns, uint64_t shard, size_t shards,
                   enum tl_range_format format)
{
    const struct sim_options options = {.seed = 5,
                                        .insns = insns,
                                        .cores = 1,
                                        .image = true,
                                        .events = true,
                                        .burst = burst,
                                        .burst_every = 1500};
    struct capture c;
    open_anew(shard);
    sim_capture(lake, &options, &c);
    push_sealed(lake, "t", &c, 1 << 20);
    capture_free(&c);
    meet_at_cuts("cs.10", shards, format);
    close_all();
}

static void chunks_end_among_items(void **state)
{
    (void)state;
    bursts(150000, 3000, 1 << 20, 1, TL_FORMAT_TEXT);
    bursts(100000, 2000, 700, 3, TL_FORMAT_LINES);
}

static void shards_end_among_items(void **state)
{
    (void)state;
    bursts(2400000, 2000, 1 << 20, 2, TL_FORMAT_TEXT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(full_frames_are_copied), cmocka_unit_test(frames_are_cut),
        cmocka_unit_test(any_items_copied),       cmocka_unit_test(others_copied),
        cmocka_unit_test(chunks_end_among_items), cmocka_unit_test(shards_end_among_items),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
