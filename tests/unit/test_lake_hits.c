/* SPDX-License-Identifier: MIT */
/* Hits of searches by column, compared with the lists of all hits, on both axes; searches for whole
 * words. */
#include "base/search.h"
#include "lake_find.h"
#include "lake_lanes.h"
#include "lake_tiles.h"
#include "sim_capture.h"

#include <inttypes.h>

static struct tl_backend *backend;
static struct tl_lake *lake;

static int set_up(void **state)
{
    (void)state;
    struct capture c;
    const struct sim_options options = {
        .seed = 12, .insns = 60000, .cores = 2, .image = true, .events = true};
    lake = open_memory_lake(&backend, 15000, 2);
    sim_capture(lake, &options, &c);
    push_sealed(lake, "t", &c, 10000);
    capture_free(&c);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    close_memory_lake(backend, lake);
    return 0;
}

/* Where all hits are on an axis, ascending. */
struct places {
    uint64_t *p;
    size_t n;
};

static int compare_places(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static struct places places_of(const struct tl_found *found, enum tl_range_unit axis)
{
    struct places places = {.p = malloc((found->n + 1) * sizeof *places.p), .n = found->n};
    assert_non_null(places.p);
    for (size_t i = 0; i < found->n; i++)
        places.p[i] = axis == TL_UNIT_TIME ? found->hits[i].at.time : found->hits[i].at.insn;
    qsort(places.p, places.n, sizeof *places.p, compare_places);
    return places;
}

/* Hits before `at`. */
static uint64_t hits_before(const struct places *places, uint64_t at)
{
    return tl_count_below(places->p, sizeof *places->p, 0, places->n, at);
}

/* Compare the columns of [from, to) with the list of hits. `late`: how many columns a hit may be
 * beside its own. */
static void check_columns(const struct tl_found *found, const char *text,
                          const struct tl_lane_request *request, unsigned late)
{
    struct tl_hit_columns got;
    struct tl_fail fail = {0};
    const struct places places = places_of(found, request->axis);
    uint64_t sum = 0;
    if (tl_lake_hit_columns(lake, request, text, &got, &fail) < 0)
        fail_msg("%s: %s", text, fail.text);
    assert_int_equal(got.n, request->columns);
    assert_int_equal(got.from, request->from);
    const uint64_t wide = got.to - got.from, before = hits_before(&places, got.from);
    for (size_t i = 0; i < got.n; i++) {
        const uint64_t low = i + 1 < late ? 0 : i + 1 - late, high = i + 1 + late;
        const uint64_t from = got.from + wide * low / got.n;
        const uint64_t to = got.from + wide * high / got.n;
        sum += got.hits[i];
        if (i + 1 == got.n)
            break; /* it has what follows the last instruction, too */
        const uint64_t least = hits_before(&places, from) - before;
        const uint64_t most = hits_before(&places, to) - before;
        if (sum < least || sum > most)
            fail_msg("%s on axis %d, up to column %zu of %zu from %" PRIu64 ": %" PRIu64
                     " instead of %" PRIu64 " to %" PRIu64,
                     text, (int)request->axis, i, got.n, got.from, sum, least, most);
    }
    assert_int_equal(sum, got.total);
    if (request->to == UINT64_MAX)
        assert_int_equal(sum, found->n - before);
    else
        assert_true(sum >= hits_before(&places, got.to) - before);
    free(places.p);
    tl_hit_columns_fini(&got);
}

static void check_search(const char *stream, const char *text)
{
    const struct tl_find_request request = {.trace = "t",
                                            .stream = stream,
                                            .kind = TL_FIND_TEXT,
                                            .text = text,
                                            .to = UINT64_MAX,
                                            .limit = 100000};
    struct tl_found found;
    struct tl_fail fail = {0};
    const int r = tl_lake_find(lake, &request, &found, &fail);
    if (r < 0 && r != TL_UNSUPPORTED)
        fail_msg("%s: %s", text, fail.text);
    if (r >= 0) {
        struct tl_lane_request all = {
            .trace = "t", .stream = stream, .to = UINT64_MAX, .columns = 300};
        if (found.n == 0 || found.more)
            fail_msg("%s in %s: %zu hits", text, stream, found.n);
        check_columns(&found, text, &all, 0);
        all.columns = 1;
        check_columns(&found, text, &all, 0);
        struct tl_lane_request part = all;
        part.from = found.hits[found.n / 3].at.insn * 9 / 10;
        part.to = part.from + 7000;
        part.columns = 4096;
        check_columns(&found, text, &part, 0);
        all.axis = part.axis = TL_UNIT_TIME;
        all.columns = 100;
        check_columns(&found, text, &all, 0);
        part.from = found.hits[found.n / 3].at.time * 9 / 10;
        part.to = part.from + 3000;
        part.columns = 50;
        check_columns(&found, text, &part, 0);
    }
    tl_found_fini(&found);
}

/* A function that is called often. */
static const struct tl_function *often_called(const struct tl_functions *functions)
{
    for (size_t i = 0; i < functions->n; i++) {
        char text[96];
        struct tl_found found;
        snprintf(text, sizeof text, "call:%s", functions->p[i].name);
        const struct tl_find_request request = {.trace = "t",
                                                .stream = "cs.10",
                                                .kind = TL_FIND_TEXT,
                                                .text = text,
                                                .to = UINT64_MAX,
                                                .limit = 20};
        const bool often = tl_lake_find(lake, &request, &found, NULL) >= 0 && found.more;
        tl_found_fini(&found);
        if (often)
            return &functions->p[i];
    }
    fail_msg("no function is called often");
    return NULL;
}

static void columns_have_all_hits(void **state)
{
    static const char *const texts[] = {"exception", "gap", "op:b*", "exception,gap,event",
                                        "opcode:xxxxxxxx"};
    struct tl_functions functions;
    char text[96];
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        check_search("cs.10", texts[i]);
        check_search("cs.11", texts[i]);
    }
    assert_int_equal(tl_lake_functions(lake, "t", &functions, NULL), TL_OK);
    const struct tl_function *const f = often_called(&functions);
    static const char *const kinds[] = {"call:", "symbol:"};
    for (size_t i = 0; i < 2; i++) {
        snprintf(text, sizeof text, "%s%s", kinds[i], f->name);
        check_search("cs.10", text);
    }
    snprintf(text, sizeof text, "0x%llx", (unsigned long long)f->pc);
    check_search("cs.11", text);
    tl_functions_fini(&functions);
}

/* Does a name have this word, between underscores? */
static bool has_word(const char *name, const char *word)
{
    for (size_t n = strcspn(name, "_");; name += n + 1, n = strcspn(name, "_")) {
        if (n == strlen(word) && strncmp(name, word, n) == 0)
            return true;
        if (!name[n])
            return false;
    }
}

static void whole_words_in_quotes(void **state)
{
    static const char *const words[] = {"update", "main", "copy", "elper"};
    struct tl_functions functions;
    size_t found_any = 0;
    (void)state;
    assert_int_equal(tl_lake_functions(lake, "t", &functions, NULL), TL_OK);
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        char text[32];
        size_t n = 0;
        struct tl_found found;
        struct tl_fail fail = {0};
        for (size_t f = 0; f < functions.n; f++)
            n += has_word(functions.p[f].name, words[i]);
        snprintf(text, sizeof text, "\"%s\"", words[i]);
        const struct tl_find_request request = {
            .trace = "t", .kind = TL_FIND_CALL, .text = text, .to = UINT64_MAX, .limit = 1};
        const int r = tl_lake_find(lake, &request, &found, &fail);
        if (r != (n > 0 ? TL_OK : TL_NOTFOUND))
            fail_msg("%s: %d, %s, but %zu functions have it", text, r, fail.text, n);
        assert_int_equal(found.functions, n);
        tl_found_fini(&found);
        found_any += n > 0;
    }
    assert_in_range(found_any, 1, 3);
    tl_functions_fini(&functions);
}

static void impossible_requests(void **state)
{
    static const struct {
        const char *stream, *text;
        enum tl_range_unit axis;
        uint64_t from;
        uint32_t columns;
        int result;
    } bad[] = {
        {"cs.10", "gap", TL_UNIT_INSN, 0, 5000, TL_USAGE},
        {"cs.10", "gap", TL_UNIT_BYTE, 0, 10, TL_USAGE},
        {"cs.10", "gap", TL_UNIT_INSN, UINT64_MAX, 10, TL_USAGE},
        {"cs.10", "event:nothing", TL_UNIT_INSN, 0, 10, TL_USAGE},
        {"cs.10", "call:no such thing", TL_UNIT_INSN, 0, 10, TL_NOTFOUND},
        {"cs.7f", "gap", TL_UNIT_INSN, 0, 10, TL_NOTFOUND},
    };
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct tl_hit_columns got;
        struct tl_fail fail = {0};
        const struct tl_lane_request request = {.trace = "t",
                                                .stream = bad[i].stream,
                                                .axis = bad[i].axis,
                                                .from = bad[i].from,
                                                .to = 100000,
                                                .columns = bad[i].columns};
        assert_int_equal(tl_lake_hit_columns(lake, &request, bad[i].text, &got, &fail),
                         bad[i].result);
        assert_true(fail.text[0] != '\0');
        tl_hit_columns_fini(&got);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(columns_have_all_hits),
        cmocka_unit_test(whole_words_in_quotes),
        cmocka_unit_test(impossible_requests),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
