/* SPDX-License-Identifier: MIT */
/* Encoded tiles in memory: they are returned as stored, and the least recently used ones are
 * evicted first. */
#include "rpc/tilecache.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#define TILE 1000 /* bytes */

static struct tl_tilekey key_of(const char *trace, uint64_t generation, uint64_t index)
{
    struct tl_tilekey key;
    memset(&key, 0, sizeof key);
    snprintf(key.trace, sizeof key.trace, "%s", trace);
    key.generation = generation;
    key.index = index;
    return key;
}

static void put(struct tl_tilecache *cache, uint64_t index)
{
    const struct tl_tilekey key = key_of("t", 1, index);
    uint8_t bytes[TILE];
    memset(bytes, (int)index, sizeof bytes);
    tl_tilecache_put(cache, &key, (struct tl_bytes){bytes, sizeof bytes});
}

static bool has(struct tl_tilecache *cache, uint64_t index)
{
    const struct tl_tilekey key = key_of("t", 1, index);
    struct tl_bytes out = {0};
    void *const tile = tl_tilecache_get(cache, &key, &out);
    if (!tile)
        return false;
    assert_int_equal(out.n, TILE);
    for (size_t i = 0; i < out.n; i++)
        assert_int_equal(out.p[i], (uint8_t)index);
    tl_tilecache_let_go(tile);
    return true;
}

static void least_used_go_first(void **state)
{
    struct tl_tilecache *cache;
    (void)state;
    assert_int_equal(tl_tilecache_new(&cache, 10 * TILE), TL_OK);
    for (uint64_t i = 0; i < 10; i++)
        put(cache, i);
    assert_true(has(cache, 0));
    put(cache, 10);
    assert_true(has(cache, 0)); /* it was used recently */
    assert_false(has(cache, 1));
    for (uint64_t i = 2; i <= 10; i++)
        assert_true(has(cache, i));
    put(cache, 5); /* replaced, without evicting another one */
    for (uint64_t i = 2; i <= 10; i++)
        assert_true(has(cache, i));
    uint8_t large[11 * TILE] = {0};
    const struct tl_tilekey key = key_of("t", 1, 99);
    tl_tilecache_put(cache, &key, (struct tl_bytes){large, sizeof large});
    assert_false(has(cache, 99));
    assert_true(has(cache, 10));
    tl_tilecache_free(cache);
}

static void keys_are_told_apart(void **state)
{
    struct tl_tilecache *cache;
    struct tl_bytes out = {0};
    (void)state;
    assert_int_equal(tl_tilecache_new(&cache, 10 * TILE), TL_OK);
    put(cache, 3);
    const struct tl_tilekey others[] = {key_of("u", 1, 3), key_of("t", 2, 3), key_of("t", 1, 4)};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        assert_null(tl_tilecache_get(cache, &others[i], &out));
    struct tl_tilekey packed = key_of("t", 1, 3);
    packed.gzip = true;
    assert_null(tl_tilecache_get(cache, &packed, &out));
    const struct tl_tilekey key = key_of("t", 1, 3);
    void *const tile = tl_tilecache_get(cache, &key, &out);
    assert_non_null(tile);
    tl_tilecache_free(cache); /* a tile that is being sent stays valid */
    assert_int_equal(out.p[TILE - 1], 3);
    tl_tilecache_let_go(tile);
}

static void *use(void *argument)
{
    struct tl_tilecache *const cache = argument;
    for (uint64_t i = 0; i < 20000; i++) {
        if (!has(cache, i % 37))
            put(cache, i % 37);
    }
    return NULL;
}

static void threads_share_it(void **state)
{
    struct tl_tilecache *cache;
    pthread_t threads[3];
    (void)state;
    assert_int_equal(tl_tilecache_new(&cache, 20 * TILE), TL_OK);
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, use, cache), 0);
    for (size_t i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    tl_tilecache_free(cache);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(least_used_go_first),
        cmocka_unit_test(keys_are_told_apart),
        cmocka_unit_test(threads_share_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
