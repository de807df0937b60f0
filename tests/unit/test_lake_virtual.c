/* SPDX-License-Identifier: MIT */
/*
 * Virtual shards: what is regenerated from raw bytes equals, byte for byte, what is otherwise
 * stored, and every query gives the same answer, whatever happens to marks, caches and the server
 * in the meantime.
 */
#include "lake/cut.h"
#include "lake_upkeep.h"
#include "virtual_pair.h"

#include "decoding/marks.h"
#include "import/perf.h"
#include "raw/packed.h"
#include "raw/segment.h"
#include "unit/data.h"
#include "unit/seed.h"
#include "virtual/remake.h"

#include <dirent.h>

struct kinds {
    unsigned shards, indexes, marks;
    uint64_t bytes;
};

static int count_kind(void *context, const char *key, uint64_t size)
{
    struct kinds *kinds = context;
    kinds->shards += strstr(key, ".zstf") != NULL;
    kinds->indexes += strstr(key, ".idx") != NULL;
    kinds->marks += strstr(key, "/" TL_MARKS "/") != NULL;
    kinds->bytes += size;
    return TL_OK;
}

static struct kinds kinds_of(const struct side *s)
{
    struct kinds kinds = {0};
    assert_int_equal(s->backend->ops->list(s->backend, "t/t", count_kind, &kinds, NULL), TL_OK);
    return kinds;
}

/* The object that holds a stored shard. */
static void object_of(struct tl_cut *cut, size_t i, struct tl_buf *out)
{
    struct tl_view *view, *whole;
    struct tl_packer *packer;
    struct tl_fail fail = {0};
    char key[192];
    tl_buf_reset(out);
    if (tl_cut_view(cut, i, &view, &fail) < 0 ||
        tl_view_part(view, 0, view->index.n_frames, true, &whole, &fail) < 0)
        fail_msg("%s", fail.text);
    if (whole->backend) {
        tl_shard_key(key, cut->gen->trace, cut->gen->number, cut->lane->name, cut->rows[i].number);
        assert_int_equal(tl_backend_get_all(whole->backend, key, out, NULL), TL_OK);
    } else {
        assert_int_equal(tl_packer_new(&packer), TL_OK);
        assert_int_equal(tl_view_encode(whole, TL_CHUNK_MARKERS, packer, out, &fail), TL_OK);
        tl_packer_free(packer);
    }
    tl_view_put(whole);
    tl_view_put(view);
}

/* Compare all shards of all streams, in an order that regenerates some alone and some after
 * another. */
static void shards_are_equal(uint64_t seed)
{
    struct tl_trace_list list;
    struct tl_buf a = {0}, b = {0};
    assert_int_equal(tl_lake_trace(stored.lake, "t", &list), TL_OK);
    for (size_t k = 0; k < list.rows[0].n_streams; k++) {
        const char *name = list.rows[0].streams[k].name;
        struct tl_cut x, y;
        assert_int_equal(tl_cut_open(&x, stored.lake, "t", name, NULL), TL_OK);
        assert_int_equal(tl_cut_open(&y, virtual.lake, "t", name, NULL), TL_OK);
        assert_int_equal(x.n_rows, y.n_rows);
        for (size_t i = 0; i < x.n_rows; i++) {
            const size_t at = seed ? (size_t)((i * 7 + seed) % x.n_rows) : i;
            object_of(&x, at, &a);
            object_of(&y, at, &b);
            if (a.n != b.n || memcmp(a.p, b.p, a.n) != 0)
                fail_msg("%s/%zu: %zu and %zu bytes differ", name, at, a.n, b.n);
        }
        tl_cut_close(&x);
        tl_cut_close(&y);
    }
    tl_trace_list_free(&list);
    tl_buf_fini(&a);
    tl_buf_fini(&b);
}

static void both_say_the_same(const struct tl_range_request *request)
{
    struct tl_buf a = {0}, b = {0};
    fetch(stored.lake, request, &a);
    fetch(virtual.lake, request, &b);
    assert_int_equal(a.n, b.n);
    assert_memory_equal(a.p, b.p, a.n);
    tl_buf_fini(&a);
    tl_buf_fini(&b);
}

/* Compare random ranges in every format. */
static void ranges_are_equal(uint64_t random)
{
    struct tl_trace_list list;
    assert_int_equal(tl_lake_trace(stored.lake, "t", &list), TL_OK);
    for (int round = 0; round < 24; round++) {
        const struct tl_stream_row *s = &list.rows[0].streams[random % list.rows[0].n_streams];
        random = random * 6364136223846793005u + 1442695040888963407u;
        const uint64_t from = (random >> 33) % (s->insns + 1);
        random = random * 6364136223846793005u + 1442695040888963407u;
        const enum tl_range_format formats[] = {TL_FORMAT_TEXT, TL_FORMAT_ZSTF, TL_FORMAT_STF};
        const struct tl_range_request request = {.trace = "t",
                                                 .stream = s->name,
                                                 .unit = TL_UNIT_INSN,
                                                 .from = from,
                                                 .to = from + (random >> 33) % (3 * SHARD),
                                                 .format = formats[round % 3]};
        both_say_the_same(&request);
    }
    tl_trace_list_free(&list);
}

static void texts_are_equal(void)
{
    struct tl_buf text = {0};
    lake_text(virtual.lake, "t", &text);
    assert_texts_equal(&capture.text, &text);
    tl_buf_fini(&text);
}

static const struct sim_options runs[] = {
    {.seed = 5, .insns = INSNS, .cores = 2, .image = true, .events = true},
    {.seed = 6, .insns = INSNS, .cores = 2, .image = true, .itm_from = 9000, .rare = 9},
    {.seed = 7, .insns = INSNS / 2, .cores = 1, .image = false, .events = true},
    {.seed = 8, .insns = INSNS / 2, .cores = 1, .image = true, .events = true, .cycles = true},
};

static void they_are_the_same(void **state)
{
    const uint64_t random = test_seed();
    for (size_t i = 0; i < sizeof(runs) / sizeof(*runs); i++) {
        begin(&runs[i]);
        push_both(3000);
        const struct kinds s = kinds_of(&stored), v = kinds_of(&virtual);
        if (v.shards || v.indexes != s.shards || (v.indexes > 1 && v.marks < 2) || s.indexes ||
            v.bytes >= s.bytes)
            fail_msg("%zu: %u %u %u %llu, %u %u %llu", i, v.shards, v.indexes, v.marks,
                     (unsigned long long)v.bytes, s.shards, s.indexes, (unsigned long long)s.bytes);
        shards_are_equal(0);
        tl_lake_forget_views(virtual.lake, "");
        shards_are_equal(1 + random % 1000);
        ranges_are_equal(random);
        texts_are_equal();
        end();
    }
}

static int add_name(void *context, const char *key, uint64_t size)
{
    return strstr(key, "/" TL_MARKS "/") ? tl_buf_add(context, key, strlen(key) + 1) : TL_OK;
}

/* Missing, damaged or changed marks only cost time. */
static void marks_are_not_needed(void **state)
{
    uint64_t random = test_seed();
    begin(&runs[0]);
    push_both(3000);
    struct tl_buf names = {0}, bytes = {0};
    assert_int_equal(virtual.backend->ops->list(virtual.backend, "t", add_name, &names, NULL),
                     TL_OK);
    for (size_t at = 0, i = 0; at < names.n; i++) {
        const char *key = (char *)names.p + at;
        at += strlen(key) + 1;
        tl_buf_reset(&bytes);
        assert_int_equal(tl_backend_get_all(virtual.backend, key, &bytes, NULL), TL_OK);
        random = random * 6364136223846793005u + 1442695040888963407u;
        bytes.p[(random >> 33) % bytes.n] ^= 0x10;
        if (i % 3 == 0)
            assert_int_equal(virtual.backend->ops->remove(virtual.backend, key, NULL), TL_OK);
        else if (i % 3 == 1)
            assert_int_equal(
                tl_backend_put(virtual.backend, key, (struct tl_bytes){bytes.p, bytes.n}, NULL),
                TL_OK);
    }
    tl_lake_close(virtual.lake);
    open_side(&virtual, true);
    shards_are_equal(3);
    texts_are_equal();
    assert_int_equal(tl_backend_remove_all(virtual.backend, "t/t/1/" TL_MARKS, NULL), TL_OK);
    tl_lake_close(virtual.lake);
    open_side(&virtual, true);
    shards_are_equal(0);
    tl_buf_fini(&names);
    tl_buf_fini(&bytes);
    end();
}

/* A server that is stopped during a capture, or loses power, continues with the same shards. */
static void restarts_change_nothing(void **state)
{
    const uint64_t random = test_seed();
    begin(&runs[0]);
    push_sealed(stored.lake, "t", &capture, 3000);
    for (unsigned part = 1; part <= 6; part++) {
        /* Every other time, the server loses power while working. */
        if (part % 2)
            tl_backend_memory_refuse(virtual.backend, 5 * part + random % 7, 1, TL_OK);
        push_part(capture.bytes.n * part / 6, &(bool){true});
        tl_lake_close(virtual.lake);
        tl_backend_memory_boot(virtual.backend, random + part);
        open_side(&virtual, true);
    }
    push_sealed(virtual.lake, "t", &capture, 3000);
    shards_are_equal(5);
    ranges_are_equal(random);
    texts_are_equal();
    end();
}

/* From stored to virtual and back by decoding again. */
static void kinds_can_change(void **state)
{
    begin(&runs[1]);
    push_both(3000);
    struct tl_fail fail = {0};
    for (int round = 0; round < 2; round++) {
        assert_int_equal(tl_lake_set_labels(virtual.lake, "t",
                                            round ? "shards=virtual" : "shards=stored", &fail),
                         TL_OK);
        assert_int_equal(tl_lake_redecode(virtual.lake, "t", NULL, &fail), TL_OK);
        assert_int_equal(wait_done(virtual.lake, "t"), TL_TRACE_SEALED);
        const struct kinds v = kinds_of(&virtual);
        assert_true(round ? v.shards == 0 && v.indexes > 0 : v.shards > 0 && v.indexes == 0);
        shards_are_equal(2);
        texts_are_equal();
    }
    end();
}

/* A server that creates other shards (or decodes differently) decodes again by itself at the first
 * query, which gets the new result; lists and tiles do not wait. */
static void other_servers_decode_anew(void **state)
{
    begin(&runs[0]);
    push_both(3000);
    const unsigned before = kinds_of(&virtual).indexes;
    tl_lake_close(virtual.lake);
    open_sized(&virtual, true, SHARD / 2);
    ranges_are_equal(test_seed());
    texts_are_equal();
    assert_int_equal(wait_done(virtual.lake, "t"), TL_TRACE_SEALED);
    assert_true(kinds_of(&virtual).indexes > before);
    texts_are_equal();
    end();
}

/* If the new generation takes too long, readers get an error and never wrong data. */
static void other_shards_are_refused(void **state)
{
    begin(&runs[0]);
    push_both(3000);
    tl_lake_close(virtual.lake);
    open_sized(&virtual, true, SHARD / 2);
    struct tl_trace *const trace = tl_lake_find_trace(virtual.lake, "t");
    struct tl_gen *const gen = tl_trace_serving(trace);
    atomic_store(&gen->ours, true); /* as if the waiting time were over */
    const struct tl_range_request request = {.trace = "t",
                                             .stream = "cs.10",
                                             .from = 4 * SHARD,
                                             .to = 4 * SHARD + 50,
                                             .format = TL_FORMAT_TEXT};
    struct tl_buf text = {0};
    struct tl_range *range;
    struct tl_fail fail = {0};
    int r = tl_range_open(virtual.lake, &request, &range, &fail);
    while (r >= 0)
        r = tl_range_next(range, &text, &fail);
    tl_range_close(range);
    assert_int_equal(r, TL_AGAIN);
    tl_gen_put(gen);
    tl_trace_put(trace);
    assert_int_equal(wait_done(virtual.lake, "t"), TL_TRACE_SEALED);
    texts_are_equal();
    tl_buf_fini(&text);
    end();
}

/* During a capture everything decoded can be read, up to the last instruction. */
static void growing_shards_can_be_read(void **state)
{
    const uint64_t random = test_seed();
    begin(&runs[0]);
    for (unsigned part = 1; part <= 5; part++) {
        const uint64_t to = (capture.bytes.n * part / 6 + 1999) / 2000 * 2000;
        struct tl_trace_list list;
        push_part_to(stored.lake, to, &(bool){true});
        push_part(to, &(bool){true});
        wait_decoded(stored.lake, to);
        wait_decoded(virtual.lake, to);
        assert_int_equal(tl_lake_trace(stored.lake, "t", &list), TL_OK);
        for (size_t i = 0; i < list.rows[0].n_streams; i++) {
            const struct tl_stream_row *const s = &list.rows[0].streams[i];
            const uint64_t back = random % (2 * SHARD);
            const struct tl_range_request request = {.trace = "t",
                                                     .stream = s->name,
                                                     .from = s->insns > back ? s->insns - back : 0,
                                                     .to = UINT64_MAX,
                                                     .format = part % 2 ? TL_FORMAT_TEXT
                                                                        : TL_FORMAT_ZSTF};
            both_say_the_same(&request);
        }
        tl_trace_list_free(&list);
    }
    push_both(3000);
    shards_are_equal(1);
    texts_are_equal();
    end();
}

/* Only the chunks touched by a range are regenerated. */
static void small_ranges_make_few_chunks(void **state)
{
    (void)state;
    const struct sim_options long_run = {.seed = 9, .insns = 4 * INSNS, .cores = 1, .image = true};
    begin(&long_run);
    tl_lake_close(stored.lake);
    tl_lake_close(virtual.lake);
    open_sized(&stored, false, 4 * INSNS);
    open_sized(&virtual, true, 4 * INSNS);
    push_both(3000);
    struct tl_trace_list list;
    assert_int_equal(tl_lake_trace(stored.lake, "t", &list), TL_OK);
    const struct tl_stream_row *const s = &list.rows[0].streams[0];
    struct tl_buf a = {0}, b = {0};
    const struct tl_range_request request = {.trace = "t",
                                             .stream = s->name,
                                             .from = s->insns / 2,
                                             .to = s->insns / 2 + 100,
                                             .format = TL_FORMAT_ZSTF};
    tl_lake_forget_views(virtual.lake, "");
    fetch(stored.lake, &request, &a);
    fetch(virtual.lake, &request, &b);
    assert_int_equal(a.n, b.n);
    assert_memory_equal(a.p, b.p, a.n);
    assert_non_null(virtual.lake->made[0].view);
    for (size_t i = 0; i < TL_MADE_CACHE && virtual.lake->made[i].view; i++)
        assert_non_null(strchr(virtual.lake->made[i].view->key, '#')); /* not a complete shard */
    tl_buf_fini(&a);
    tl_buf_fini(&b);
    tl_trace_list_free(&list);
    end();
}

/* Old stored shards become virtual; their raw bytes are kept as long as these exist. */
static void retention_makes_them_virtual(void **state)
{
    begin(&runs[0]);
    push_both(3000);
    struct tl_fail fail = {0};
    const int64_t later = tl_wall_ns() + INT64_C(864000) * 1000000000;
    const uint64_t before = kinds_of(&stored).bytes;
    atomic_store(&stored.lake->retain_stf_s, 7 * 86400);
    assert_int_equal(tl_lake_retain(stored.lake, tl_wall_ns(), &fail), 0);
    assert_int_equal(tl_lake_retain(stored.lake, later, &fail), 1);
    atomic_store(&stored.lake->retain_stf_s, 0);
    assert_int_equal(wait_done(stored.lake, "t"), TL_TRACE_SEALED);
    const struct kinds kinds = kinds_of(&stored);
    assert_true(kinds.shards == 0 && kinds.indexes > 0 && kinds.bytes < before);
    shards_are_equal(0);
    const struct tl_retention raw = {.raw_age_s = 1};
    assert_int_equal(tl_lake_set_retention(stored.lake, "", &raw, &fail), TL_OK);
    assert_int_equal(tl_lake_retain(stored.lake, later, &fail), 0);
    /* A server with nothing in memory can regenerate them. */
    tl_lake_close(stored.lake);
    open_side(&stored, false);
    struct tl_buf text = {0};
    lake_text(stored.lake, "t", &text);
    assert_texts_equal(&capture.text, &text);
    tl_buf_fini(&text);
    const struct tl_retention all = {.raw_age_s = 1, .decoded_age_s = 1};
    assert_int_equal(tl_lake_set_retention(stored.lake, "", &all, &fail), TL_OK);
    while (tl_lake_retain(stored.lake, later, &fail) > 0)
        ;
    struct tl_trace_list list;
    assert_true(tl_lake_trace(stored.lake, "t", &list) < 0);
    end();
}

/* Push in pieces, restarting the virtual lake halfway. Returns the number of virtual shards. */
static unsigned perf_is_the_same(uint64_t shard, size_t piece, uint64_t random)
{
    assert_int_equal(tl_buf_add(&capture.setup, "", 1), TL_OK);
    tl_lake_close(stored.lake);
    tl_lake_close(virtual.lake);
    open_sized(&stored, false, shard);
    open_sized(&virtual, true, shard);
    push_part(capture.bytes.n / 2, &(bool){true});
    tl_lake_close(virtual.lake);
    open_sized(&virtual, true, shard);
    push_both(piece);
    const struct kinds v = kinds_of(&virtual);
    assert_true(v.shards == 0);
    lake_text(stored.lake, "t", &capture.text);
    shards_are_equal(0);
    tl_lake_forget_views(virtual.lake, "");
    shards_are_equal(1 + random % 1000);
    if (v.indexes > 0)
        ranges_are_equal(random);
    texts_are_equal();
    return v.indexes;
}

struct counted {
    uint64_t random;
    unsigned marks, shards;
};

static void compare_perf(void *context)
{
    struct counted *const n = context;
    n->shards += perf_is_the_same(3, 500, n->random);
    n->marks += kinds_of(&virtual).marks;
}

/* perf.data describes much of its trace long after its bytes, or at the end. */
static void perf_data_is_the_same(void **state)
{
    struct counted n = {.random = test_seed()};
    each_perf_file(compare_perf, &n);
    assert_true(n.marks > 10 && n.shards > 40);
}

/* Put the code that the capture contains for its processes into both lakes. */
static void take_code(const struct tl_code_places *places)
{
    struct tl_perf_import *import;
    struct tl_setup setup;
    struct tl_fail fail = {0};
    char hash[72];
    tl_setup_init(&setup);
    assert_int_equal(tl_setup_format(&setup, "perf,threads=yes,events=yes", &fail), TL_OK);
    assert_int_equal(tl_perf_import_new(&import, places, NULL, NULL), TL_OK);
    assert_int_equal(
        tl_perf_import_push(import, (struct tl_bytes){capture.bytes.p, capture.bytes.n}), TL_OK);
    assert_int_equal(tl_perf_import_finish(import), TL_OK);
    assert_int_equal(tl_perf_import_setup(import, &setup), TL_OK);
    for (size_t i = 0; i < setup.n_images; i++) {
        struct tl_setup_image *const image = &setup.images[i];
        struct tl_buf code = {0};
        if (tl_setup_made(&setup, image->file) ||
            tl_buf_read_file(&code, image->file, 64 << 20, NULL) < 0)
            continue;
        sim_put_image(stored.lake, &code, hash);
        sim_put_image(virtual.lake, &code, hash);
        free(image->file);
        image->file = strdup(hash);
        tl_buf_fini(&code);
    }
    assert_int_equal(tl_setup_write(&setup, &capture.setup), TL_OK);
    tl_perf_import_free(import);
    tl_setup_fini(&setup);
}

static void real_perf_data_is_the_same(void **state)
{
    static const char *const folders[] = {"perf/pt", "perf/cs", "perf/real"};
    const uint64_t random = test_seed();
    char symfs[4096], buildid[4096], dir[4096];
    unsigned shards = 0;
    if (!test_data(symfs, sizeof(symfs), "perf/symfs") ||
        !test_data(buildid, sizeof(buildid), "perf/buildid")) {
        print_message("skipped: no captures here\n");
        skip();
    }
    const struct tl_code_places places = {.symfs = symfs, .buildid_dir = buildid};
    for (size_t i = 0; i < sizeof(folders) / sizeof(*folders); i++) {
        DIR *const list = test_data(dir, sizeof(dir), folders[i]) ? opendir(dir) : NULL;
        assert_non_null(list);
        for (const struct dirent *e; (e = readdir(list));) {
            const size_t n = strlen(e->d_name);
            if (n < 5 || strcmp(e->d_name + n - 5, ".data") != 0)
                continue;
            take_perf(dir, e->d_name, 0);
            take_code(&places);
            shards += perf_is_the_same(8000, 4000, random);
            end();
        }
        closedir(list);
    }
    assert_true(shards > 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(they_are_the_same),
        cmocka_unit_test(perf_data_is_the_same),
        cmocka_unit_test(real_perf_data_is_the_same),
        cmocka_unit_test(marks_are_not_needed),
        cmocka_unit_test(restarts_change_nothing),
        cmocka_unit_test(kinds_can_change),
        cmocka_unit_test(other_servers_decode_anew),
        cmocka_unit_test(other_shards_are_refused),
        cmocka_unit_test(growing_shards_can_be_read),
        cmocka_unit_test(small_ranges_make_few_chunks),
        cmocka_unit_test(retention_makes_them_virtual),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
