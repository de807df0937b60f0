/* SPDX-License-Identifier: MIT */
#include "test_stf_util.h"

#include "stf/walks.h"

static int put(struct tl_stf_walks *w, uint64_t va, uint64_t first, const uint64_t *pairs, size_t n)
{
    uint8_t entries[64];
    for (size_t i = 0; i < 2 * n; i++)
        tl_put_le64(entries + 8 * i, pairs[i]);
    const struct tl_stf_record record = {.type = TL_STF_PAGE_TABLE_WALK,
                                         .walk = {va, first, 4096, {entries, 16 * n}}};
    return tl_stf_walks_add(w, &record);
}

/* The addresses in the order in which they are reported. */
static size_t reported(const struct tl_stf_walks *w, uint64_t *va, size_t most)
{
    struct tl_stf_record r;
    size_t n = 0, at = 0;
    while (tl_stf_walks_next(w, &at, &r) == TL_OK) {
        assert_true(n < most);
        assert_int_equal(r.walk.first_access, 0);
        va[n++] = r.walk.va;
    }
    return n;
}

/* The last walk of each page is kept, together with earlier ones that it does not contradict. */
static void last_of_each(void **state)
{
    (void)state;
    /* Two levels: a table at 0x1000 whose entries point to tables at 0x2000 or 0x3000 with the
     * leaves. */
    const uint64_t upper = 0x2 << 10 | 1, moved = 0x3 << 10 | 1, leaf = 0x80 << 10 | 0xf;
    struct tl_stf_walks *w;
    uint64_t va[8];
    assert_int_equal(tl_stf_walks_new(&w), TL_OK);
    assert_int_equal(put(w, 0x1234, 1, (uint64_t[]){0x1000, upper, 0x2008, leaf}, 2), TL_OK);
    assert_int_equal(put(w, 0x2000, 2, (uint64_t[]){0x1000, upper, 0x2010, leaf}, 2), TL_OK);
    assert_int_equal(put(w, 0x1000, 3, (uint64_t[]){0x1000, upper, 0x2008, leaf | 0xc0}, 2), TL_OK);
    assert_int_equal(reported(w, va, 8), 2);
    assert_int_equal(va[0], 0x2000); /* the other one was walked again: the same page, now dirty */
    assert_int_equal(va[1], 0x1000);
    /* Another address space has a root table of its own. */
    assert_int_equal(put(w, 0x1000, 4, (uint64_t[]){0x9000, upper, 0x2008, leaf}, 2), TL_OK);
    assert_int_equal(reported(w, va, 8), 3);
    /* The table moves: walks through the old one no longer hold until they are reported again. */
    assert_int_equal(put(w, 0x5000, 5, (uint64_t[]){0x1000, moved, 0x3028, leaf}, 2), TL_OK);
    assert_int_equal(reported(w, va, 8), 2);
    assert_int_equal(va[0], 0x1000);
    assert_int_equal(va[1], 0x5000);
    assert_int_equal(put(w, 0x2000, 6, (uint64_t[]){0x1000, moved, 0x3010, leaf}, 2), TL_OK);
    assert_int_equal(reported(w, va, 8), 3);
    tl_stf_walks_free(w);
}

/*
 * Of very many walks, the most recent ones are kept, in bounded memory; saving and loading
 * preserves them.
 */
static void very_many(void **state)
{
    (void)state;
    enum { N = 200000 };
    uint64_t seed = rng_seed("very_many");
    struct tl_stf_walks *w, *back;
    assert_int_equal(tl_stf_walks_new(&w), TL_OK);
    for (uint64_t i = 0; i < N; i++) {
        const uint64_t page = i % 3 ? i : rng_next(&seed) % (i + 1);
        const uint64_t leaf = page << 10 | 0xf;
        assert_int_equal(
            put(w, page << 12, i, (uint64_t[]){0x1000, 0x801, 0x100000 + 8 * page, leaf}, 2),
            TL_OK);
    }
    struct tl_stf_record r, same;
    size_t n = 0, at = 0, again = 0;
    struct tl_buf bytes = {0};
    struct tl_state save = {.out = &bytes};
    tl_stf_walks_state(w, &save);
    struct tl_state load = {.in = {bytes.p, bytes.n}};
    assert_int_equal(tl_stf_walks_new(&back), TL_OK);
    tl_stf_walks_state(back, &load);
    assert_int_equal(load.rc, TL_OK);
    assert_true(bytes.n < 8 * TL_STF_WALKS_MAX);
    while (tl_stf_walks_next(w, &at, &r) == TL_OK) {
        assert_int_equal(tl_stf_walks_next(back, &again, &same), TL_OK);
        assert_int_equal(r.walk.va, same.walk.va);
        assert_memory_equal(r.walk.entries.p, same.walk.entries.p, 32);
        n++;
    }
    assert_int_equal(tl_stf_walks_next(back, &again, &same), TL_EOF);
    assert_int_equal(r.walk.va, (uint64_t)(N - 1) << 12);
    assert_true(n > TL_STF_WALKS_MAX / 54 - 10 && n <= TL_STF_WALKS_MAX / 54);
    tl_buf_fini(&bytes);
    tl_stf_walks_free(w);
    tl_stf_walks_free(back);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(last_of_each), cmocka_unit_test(very_many)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
