/* SPDX-License-Identifier: MIT */
/* Lines of flow text and their positions. */
#include "sim_capture.h"

static struct tl_backend *backend;
static struct tl_lake *lake;

static int set_up(void **state)
{
    (void)state;
    lake = open_memory_lake(&backend, 3000, 1);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    close_memory_lake(backend, lake);
    return 0;
}

struct seen {
    uint64_t position;  /* of the next line */
    uint64_t led, gaps; /* gaps after a branch, and all gaps */
    char before;        /* letter of the preceding line */
};

/* Only instructions advance the position; other lines have that of the next instruction. */
static int check_line(void *context, uint64_t at, struct tl_bytes line)
{
    struct seen *const seen = context;
    const char kind = (char)line.p[0];
    if (at != seen->position)
        fail_msg("'%.*s' is at %llu, expected %llu", (int)line.n, (const char *)line.p,
                 (unsigned long long)at, (unsigned long long)seen->position);
    seen->led += kind == 'G' && seen->before == 'B';
    seen->gaps += kind == 'G';
    seen->before = kind;
    seen->position += kind == 'I' || kind == 'N';
    return TL_OK;
}

static struct seen lines_of(const char *trace)
{
    struct seen seen = {0};
    struct tl_range *range;
    struct tl_fail fail = {0};
    const struct tl_range_request request = {
        .trace = trace, .stream = "cs.10", .to = UINT64_MAX, .format = TL_FORMAT_LINES};
    assert_int_equal(tl_range_open(lake, &request, &range, &fail), TL_OK);
    int r;
    do
        r = tl_range_lines(range, check_line, &seen, &fail);
    while (r == TL_OK);
    assert_int_equal(r, TL_EOF);
    tl_range_close(range);
    return seen;
}

static void push_sim(const char *id, const struct sim_options *options, const char *image)
{
    struct capture c;
    sim_capture(lake, options, &c);
    c.setup.n--;
    assert_int_equal(tl_buf_add(&c.setup, image, strlen(image) + 1), TL_OK);
    push_all(lake, id, &c, 10000);
    capture_free(&c);
    assert_int_equal(wait_done(lake, id), TL_TRACE_SEALED);
}

static void all_lines_have_their_positions(void **state)
{
    (void)state;
    struct sim_options options = {
        .seed = 5, .insns = 10000, .cores = 1, .image = true, .events = true};
    push_sim("known", &options, "");
    const struct seen known = lines_of("known");
    assert_true(known.position > 5000);

    /* The image does not contain the executed code, so that only branch targets are known. */
    static uint8_t nothing[16];
    const struct tl_buf elsewhere = {.p = nothing, .n = sizeof nothing};
    char hash[72], image[128];
    sim_put_image(lake, &elsewhere, hash);
    snprintf(image, sizeof image, "\n[image]\nfile=%s\naddress=0x10\n", hash);
    options.image = false;
    push_sim("unknown", &options, image);
    const struct seen unknown = lines_of("unknown");
    assert_true(unknown.led > 100 && unknown.gaps >= unknown.led);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_lines_have_their_positions),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
