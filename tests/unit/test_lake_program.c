/* SPDX-License-Identifier: MIT */
/*
 * Programs of traces: a damaged or missing image is an error of the read that needs it, and never
 * changes what is stored; programs that nobody needs are let go of.
 */
#include "sim_capture.h"

static struct tl_backend *backend;
static struct tl_lake *lake;
static struct capture capture;
static struct tl_buf before;
static char image_key[96];

static int keep_key(void *context, const char *key, uint64_t size)
{
    (void)context, (void)size;
    snprintf(image_key, sizeof image_key, "%s", key);
    return TL_OK;
}

static void make_virtual(const char *id)
{
    struct tl_fail fail = {0};
    assert_int_equal(tl_lake_set_labels(lake, id, "shards=virtual", &fail), TL_OK);
    assert_int_equal(tl_lake_redecode(lake, id, NULL, &fail), TL_OK);
    assert_int_equal(wait_done(lake, id), TL_TRACE_SEALED);
}

static int set_up(void **state)
{
    (void)state;
    sim_lake_begin(&backend, &lake, &capture, 2500);
    push_sealed(lake, "t", &capture, 3000);
    make_virtual("t");
    tl_buf_reset(&before);
    lake_text(lake, "t", &before);
    assert_int_equal(backend->ops->list(backend, "i", keep_key, NULL, NULL), TL_OK);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    tl_buf_fini(&before);
    sim_lake_end(backend, lake, &capture);
    return 0;
}

static void flip_image(void)
{
    struct tl_buf content = {0};
    assert_int_equal(tl_backend_get_all(backend, image_key, &content, NULL), TL_OK);
    content.p[content.n / 2] ^= 1;
    assert_int_equal(
        tl_backend_put(backend, image_key, (struct tl_bytes){content.p, content.n}, NULL), TL_OK);
    tl_buf_fini(&content);
}

static void reopen(uint64_t shard)
{
    tl_lake_close(lake);
    lake = open_lake_sized(backend, shard, 1);
}

struct what {
    uint64_t insns, generation;
};

static struct what what(void)
{
    struct tl_trace *const t = tl_lake_find_trace(lake, "t");
    struct what out;
    uint64_t stored;
    assert_non_null(t);
    out.generation = t->wanted;
    tl_gen_totals(t->serving, &out.insns, &stored);
    tl_trace_put(t);
    return out;
}

static int read_first(struct tl_fail *fail)
{
    const struct tl_range_request request = {
        .trace = "t", .stream = "cs.10", .to = 1000, .format = TL_FORMAT_TEXT};
    struct tl_buf out = {0};
    struct tl_range *range;
    int r = tl_range_open(lake, &request, &range, fail);
    const bool open = r >= 0;
    while (r >= 0)
        r = tl_range_next(range, &out, fail);
    if (open)
        tl_range_close(range);
    tl_buf_fini(&out);
    return r;
}

/* The read fails, names the image and what mends it; nothing is decoded anew. */
static void assert_refused(const char *why)
{
    struct tl_fail fail = {0};
    const struct what was = what();
    const int r = read_first(&fail);
    assert_true(r == TL_BAD || r == TL_NOTFOUND);
    if (!strstr(fail.text, image_key + 2) || !strstr(fail.text, why) ||
        !strstr(fail.text, "tracelake images program"))
        fail_msg("%s", fail.text);
    wait_at_rest(lake, "t");
    const struct what is = what();
    assert_true(was.insns > 0);
    assert_int_equal(is.insns, was.insns);
    assert_int_equal(is.generation, was.generation);
}

static void assert_mended(void)
{
    struct tl_buf after = {0};
    char hash[72];
    sim_put_image(lake, &capture.elf, hash);
    assert_int_equal(wait_done(lake, "t"), TL_TRACE_SEALED);
    lake_text(lake, "t", &after);
    assert_texts_equal(&before, &after);
    tl_buf_fini(&after);
}

static void a_damaged_image_is_an_error(void **state)
{
    (void)state;
    const struct what was = what();
    flip_image();
    reopen(2500);
    assert_refused("damaged");
    assert_refused("damaged");
    assert_mended();
    assert_int_equal(what().generation, was.generation);
    assert_int_equal(what().insns, was.insns);
}

/* Not even if this server would decode otherwise. */
static void a_missing_image_is_an_error(void **state)
{
    (void)state;
    assert_int_equal(backend->ops->remove(backend, image_key, NULL), TL_OK);
    reopen(2500);
    assert_refused("not there");
    reopen(1250);
    assert_refused("not there");
    assert_mended();
}

/* A trace that is pushed meanwhile is decoded once the image is there again. */
static void a_push_waits_for_the_image(void **state)
{
    struct tl_buf after = {0};
    (void)state;
    flip_image();
    reopen(2500);
    push_all(lake, "u", &capture, 3000);
    assert_int_equal(wait_done(lake, "u"), TL_TRACE_FAILED);
    assert_mended();
    assert_int_equal(wait_done(lake, "u"), TL_TRACE_SEALED);
    lake_text(lake, "u", &after);
    assert_texts_equal(&before, &after);
    tl_buf_fini(&after);
}

static void idle_programs_go(void **state)
{
    struct tl_buf after = {0};
    (void)state;
    assert_true(tl_programs_bytes(lake) > 0);
    struct tl_trace *const t = tl_lake_find_trace(lake, "t");
    struct tl_gen *const reader = tl_trace_serving(t);
    assert_non_null(tl_gen_image(reader));
    tl_lake_trim_programs(lake, 0); /* in use */
    assert_true(tl_programs_bytes(lake) > 0);
    tl_gen_put(reader);
    tl_lake_trim_programs(lake, tl_programs_bytes(lake)); /* within the limit */
    assert_true(tl_programs_bytes(lake) > 0);
    tl_lake_trim_programs(lake, 0);
    assert_int_equal(tl_programs_bytes(lake), 0);
    assert_null(lake->programs);
    tl_lake_forget_views(lake, "t/t/");
    lake_text(lake, "t", &after);
    assert_texts_equal(&before, &after);
    assert_true(tl_programs_bytes(lake) > 0);
    tl_buf_fini(&after);
    tl_trace_put(t);
}

/* ---- memory of images ------------------------------------------------------------------------ */

enum { MANY = 40, BIG = 2 << 20, OF_A_PROGRAM = 32 << 10 };

/* An image of BIG bytes, of this kind. */
static void put_big(unsigned kind, char hash[static 72])
{
    struct tl_buf content = {0};
    assert_int_equal(tl_buf_reserve(&content, BIG), TL_OK);
    content.n = BIG;
    for (size_t i = 0; i < BIG; i++)
        content.p[i] = (uint8_t)(i * 7 + i / 251 + kind);
    sim_put_image(lake, &content, hash);
    tl_buf_fini(&content);
}

/* Decode the trace with an image more, at an address of its own. */
static int add_image(const char *id, const char *hash, unsigned i)
{
    const struct tl_lake_binding binding = {.hash = hash,
                                            .address = 0x700000000 + i * UINT64_C(0x10000000)};
    struct tl_fail fail = {0};
    assert_int_equal(tl_lake_bind_image(lake, id, &binding, &fail), TL_OK);
    return wait_done(lake, id);
}

/* Each trace has the image somewhere else, so that all have programs of their own: its bytes are
 * there once. Different images are there as far as the limit. */
static void images_are_there_once(void **state)
{
    char hash[72], id[16];
    (void)state;
    put_big(0, hash);
    for (unsigned i = 0; i < MANY; i++) {
        snprintf(id, sizeof id, "p%u", i);
        push_sealed(lake, id, &capture, 3000);
        assert_int_equal(add_image(id, hash, i), TL_TRACE_SEALED);
        struct tl_trace *const trace = tl_lake_find_trace(lake, id);
        struct tl_gen *const gen = tl_trace_serving(trace);
        assert_non_null(tl_gen_image(gen));
        tl_gen_put(gen);
        tl_trace_put(trace);
    }
    print_message("the same: %llu bytes\n", (unsigned long long)tl_programs_bytes(lake));
    assert_true(tl_programs_bytes(lake) > BIG);
    assert_true(tl_programs_bytes(lake) < BIG + MANY * OF_A_PROGRAM);
    for (unsigned i = 0; i < MANY; i++) {
        snprintf(id, sizeof id, "p%u", i);
        put_big(i + 1, hash);
        assert_int_equal(add_image(id, hash, MANY), TL_TRACE_SEALED);
        tl_lake_trim_programs(lake, 4 * BIG);
        assert_true(tl_programs_bytes(lake) <= 6 * BIG + MANY * OF_A_PROGRAM);
    }
    tl_lake_trim_programs(lake, 0);
    assert_int_equal(tl_image_pool_bytes(lake->image_pool), 0);
}

static void expect_message(const char *id, const char *says)
{
    struct tl_trace_list list;
    assert_int_equal(tl_lake_trace(lake, id, &list), TL_OK);
    if (!strstr(list.rows[0].message, says))
        fail_msg("\"%s\" does not say \"%s\"", list.rows[0].message, says);
    tl_trace_list_free(&list);
}

/* Images that are larger than a trace may be fail it, while others are decoded. */
static void images_count_as_memory(void **state)
{
    struct capture large = capture;
    char hash[72];
    (void)state;
    const uint64_t limit = lake->decode_limit;
    put_big(0, hash);
    large.setup = (struct tl_buf){0};
    assert_int_equal(tl_buf_printf(&large.setup, "%s\n[image big]\nfile=%s\naddress=0x700000000\n",
                                   (const char *)capture.setup.p, hash),
                     TL_OK);
    assert_int_equal(tl_buf_add(&large.setup, "", 1), TL_OK);
    lake->decode_limit = 2 * BIG;
    push_all(lake, "large", &large, 3000);
    assert_int_equal(wait_done(lake, "large"), TL_TRACE_FAILED);
    expect_message("large",
                   "its images need over 2 MiB of memory; serve with more --decode-memory");
    lake->decode_limit = 64 * BIG;
    push_sealed(lake, "small", &capture, 3000);
    assert_int_equal(tl_lake_redecode(lake, "large", NULL, NULL), TL_OK);
    assert_int_equal(wait_done(lake, "large"), TL_TRACE_SEALED);
    lake->decode_limit = limit;
    tl_buf_fini(&large.setup);
}

int main(void)
{
#define TEST(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(a_damaged_image_is_an_error), TEST(a_missing_image_is_an_error),
        TEST(a_push_waits_for_the_image),  TEST(idle_programs_go),
        TEST(images_are_there_once),       TEST(images_count_as_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
