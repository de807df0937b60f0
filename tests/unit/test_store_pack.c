/* SPDX-License-Identifier: MIT */
/* What is packed comes back, whatever the marks say, and whoever packs it. */
#include "made_items.h"
#include "store/blob.h"
#include "store/shard.h"

#include <setjmp.h>
#include <stdarg.h>
#include <time.h>

#include <cmocka.h>

struct records {
    struct tl_buf stf;
    struct tl_stf_mark *marks;
    size_t n, cap;
};

static void records_free(struct records *r)
{
    tl_buf_fini(&r->stf);
    free(r->marks);
}

/* Words of 5 bytes out of a few, as blocks: each turn with its mark. */
static void made_records(struct made *random, size_t blocks, struct records *r)
{
    *r = (struct records){0};
    uint64_t from = 0;
    for (size_t i = 0; i < blocks; i++) {
        const uint64_t to = made_below(random, 40);
        assert_int_equal(tl_grow(&r->marks, &r->cap, r->n + 1, sizeof(*r->marks)), TL_OK);
        r->marks[r->n++] = tl_stf_mark((uint32_t)r->stf.n, from, to);
        for (uint64_t k = 0; k <= to % 7; k++) {
            const uint8_t word[5] = {TL_STF_INST_32, (uint8_t)to, (uint8_t)k, (uint8_t)from, 7};
            assert_int_equal(tl_buf_add(&r->stf, word, sizeof(word)), TL_OK);
        }
        from = to;
    }
}

static void check(struct tl_packer *packer, const struct records *r, struct tl_buf *packed)
{
    struct tl_buf plain = {0};
    tl_buf_reset(packed);
    assert_int_equal(
        tl_packer_stf(packer, (struct tl_bytes){r->stf.p, r->stf.n}, r->marks, r->n, packed),
        TL_OK);
    assert_int_equal(tl_unpack((struct tl_bytes){packed->p, packed->n}, 1u << 28, &plain), TL_OK);
    assert_int_equal(plain.n, r->stf.n);
    if (plain.n > 0)
        assert_memory_equal(plain.p, r->stf.p, plain.n);
    tl_buf_fini(&plain);
}

static void records_come_back(void **state)
{
    (void)state;
    struct made random = {.random = (uint64_t)time(NULL)};
    struct tl_packer *packer;
    struct tl_buf packed = {0}, again = {0};
    print_message("seed %llu\n", (unsigned long long)random.random);
    assert_int_equal(tl_packer_new(&packer), TL_OK);
    for (int round = 0; round < 200; round++) {
        struct records r;
        made_records(&random, made_below(&random, made_below(&random, 8) ? 300 : 40000), &r);
        check(packer, &r, &packed);
        /* What was packed before makes no difference. */
        struct tl_packer *fresh;
        assert_int_equal(tl_packer_new(&fresh), TL_OK);
        check(fresh, &r, &again);
        tl_packer_free(fresh);
        assert_int_equal(packed.n, again.n);
        assert_memory_equal(packed.p, again.p, packed.n);
        /* Marks that lie: any place, any hash. */
        for (size_t i = 0; i < r.n; i++) {
            r.marks[i].at = (uint32_t)made_random(&random) >> made_below(&random, 30);
            r.marks[i].turn = (uint32_t)made_below(&random, 3) << 28;
            r.marks[i].entry = (uint32_t)made_below(&random, 3) << 28;
        }
        check(packer, &r, &packed);
        records_free(&r);
    }
    tl_packer_free(packer);
    tl_buf_fini(&packed);
    tl_buf_fini(&again);
}

/* A pool and a reader at the same time: all see the same bytes, plain and packed. */
static void pools_pack(void **state)
{
    (void)state;
    enum { BLOBS = 64 };
    struct made random = {.random = 5};
    struct tl_packing *pool;
    struct tl_packer *packer;
    struct tl_blob *blobs[BLOBS];
    struct tl_buf plain[BLOBS] = {{0}};
    assert_int_equal(tl_packing_new(&pool, 3), TL_OK);
    assert_int_equal(tl_packer_new(&packer), TL_OK);
    for (size_t i = 0; i < BLOBS; i++) {
        struct records r;
        struct tl_stf_piece piece;
        made_records(&random, 2000, &r);
        assert_int_equal(tl_buf_add(&plain[i], r.stf.p, r.stf.n), TL_OK);
        tl_packing_piece(pool, &piece);
        tl_buf_fini(&piece.stf);
        free(piece.marks);
        piece = (struct tl_stf_piece){r.stf, r.marks, r.n, r.cap};
        assert_non_null(blobs[i] = tl_blob_take(&piece));
        assert_int_equal(tl_packing_add(pool, blobs[i], packer), TL_OK);
    }
    for (size_t i = 0; i < BLOBS; i++) {
        struct tl_buf got = {0};
        struct tl_bytes packed;
        assert_int_equal(tl_blob_plain(blobs[i], &got), TL_OK);
        assert_int_equal(got.n, plain[i].n);
        assert_memory_equal(got.p, plain[i].p, got.n);
        assert_int_equal(tl_blob_packed(blobs[i], packer, &packed), TL_OK);
        tl_buf_reset(&got);
        assert_int_equal(tl_unpack(packed, 1u << 28, &got), TL_OK);
        assert_int_equal(got.n, plain[i].n);
        assert_memory_equal(got.p, plain[i].p, got.n);
        tl_buf_fini(&got);
        tl_buf_fini(&plain[i]);
        tl_blob_put(blobs[i]);
    }
    tl_packing_free(pool);
    tl_packer_free(packer);
}

/* Bytes of any size, those too that are so few that they are not compressed. */
static void bytes_come_back(void **state)
{
    (void)state;
    static uint8_t bytes[1100];
    struct made random = {.random = (uint64_t)time(NULL)};
    struct tl_packer *packer;
    struct tl_buf packed = {0}, plain = {0};
    assert_int_equal(tl_packer_new(&packer), TL_OK);
    for (size_t i = 0; i < sizeof(bytes); i++)
        bytes[i] = (uint8_t)made_below(&random, 256);
    for (size_t n = 0; n <= sizeof(bytes); n++) {
        tl_buf_reset(&packed);
        tl_buf_reset(&plain);
        assert_int_equal(tl_packer_bytes(packer, (struct tl_bytes){bytes, n}, &packed), TL_OK);
        assert_true(packed.n <= n + 16);
        assert_int_equal(tl_unpack((struct tl_bytes){packed.p, packed.n}, 1 << 20, &plain), TL_OK);
        assert_int_equal(plain.n, n);
        assert_memory_equal(plain.p, bytes, n);
    }
    tl_packer_free(packer);
    tl_buf_fini(&packed);
    tl_buf_fini(&plain);
}

/* Bytes that are made where they go, behind others: few are left as they are, many are not. */
static void bytes_in_place(void **state)
{
    (void)state;
    static const size_t sizes[] = {0, 1, 300, 65535, 65536, 65537, 200000};
    struct made random = {.random = (uint64_t)time(NULL)};
    struct tl_packer *packer;
    struct tl_buf packed = {0}, plain = {0};
    assert_int_equal(tl_packer_new(&packer), TL_OK);
    for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
        tl_buf_reset(&plain);
        const size_t begin = packed.n, n = sizes[i];
        assert_int_equal(tl_packer_begin(&packed), TL_OK);
        const size_t head = packed.n - begin;
        assert_int_equal(tl_buf_reserve(&packed, n), TL_OK);
        uint8_t *const bytes = malloc(n + 1);
        for (size_t k = 0; k < n; k++)
            bytes[k] = packed.p[packed.n++] = (uint8_t)made_below(&random, 16);
        assert_int_equal(tl_packer_end(packer, begin, &packed), TL_OK);
        const struct tl_bytes frame = {packed.p + begin, packed.n - begin};
        assert_true(n > 65536 ? frame.n < n : frame.n == head + n);
        assert_int_equal(tl_unpack(frame, 1 << 20, &plain), TL_OK);
        assert_int_equal(plain.n, n);
        assert_memory_equal(plain.p, bytes, n);
        free(bytes);
    }
    tl_packer_free(packer);
    tl_buf_fini(&packed);
    tl_buf_fini(&plain);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(records_come_back),
        cmocka_unit_test(bytes_come_back),
        cmocka_unit_test(bytes_in_place),
        cmocka_unit_test(pools_pack),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
