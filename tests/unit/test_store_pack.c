/* SPDX-License-Identifier: MIT */
/*
 * What is packed is unpacked unchanged, with and without repeats, and by any packer. All variants
 * of the search find what a plain one finds.
 */
#include "base/crew.h"
#include "made_items.h"
#include "shard/blob.h"
#include "shard/search.h"
#include "shard/shard.h"
#include "unit/seed.h"

#include <setjmp.h>
#include <stdarg.h>
#include <time.h>

#include <cmocka.h>

struct records {
    struct tl_buf stf;
    struct tl_stf_repeat *repeats;
    size_t n, cap;
};

static void records_free(struct records *r)
{
    tl_buf_fini(&r->stf);
    free(r->repeats);
}

static void add(struct records *r, const void *p, size_t n)
{
    assert_int_equal(tl_buf_add(&r->stf, p, n), TL_OK);
}

static bool long_ones; /* repeats may be longer than zstd's blocks */

/* Repeat bytes from before, or from those just repeated, and say so. */
static void repeat(struct made *random, struct records *r)
{
    const uint32_t at = (uint32_t)r->stf.n;
    if (at == 0)
        return;
    const uint32_t back = 1 + (uint32_t)made_below(random, made_below(random, 3) ? at : 9 % at + 1),
                   n = made_below(random, 9)
                           ? 3 + (uint32_t)made_below(random, long_ones ? 90000 : 200)
                           : 0;
    assert_int_equal(tl_buf_reserve(&r->stf, n), TL_OK);
    for (uint32_t i = 0; i < n; i++, r->stf.n++)
        r->stf.p[at + i] = r->stf.p[at + i - back];
    assert_int_equal(tl_grow(&r->repeats, &r->cap, r->n + 1, sizeof(*r->repeats)), TL_OK);
    r->repeats[r->n++] = (struct tl_stf_repeat){at, n, back};
}

/* Blocks out of a few, some with a target, instructions of two sizes; most of them repeated. */
static void made_records(struct made *random, size_t blocks, struct records *r)
{
    *r = (struct records){0};
    uint64_t from = 0;
    for (size_t i = 0; i < blocks; i++) {
        const uint64_t to = made_below(random, 40);
        if (made_below(random, 3)) {
            uint8_t target[9] = {TL_STF_INST_PC_TARGET, (uint8_t)to};
            if (made_below(random, 4) == 0)
                target[2 + made_below(random, 7)] = (uint8_t)made_below(random, 3);
            add(r, target, sizeof(target));
        }
        if (from % 2) {
            const uint8_t close[3] = {TL_STF_INST_16, (uint8_t)from};
            add(r, close, sizeof(close));
        } else {
            const uint8_t close[5] = {TL_STF_INST_32, (uint8_t)from};
            add(r, close, sizeof(close));
        }
        for (uint64_t k = 0; k < to % 17; k++) {
            const uint8_t word[5] = {TL_STF_INST_32, (uint8_t)to, (uint8_t)k,
                                     made_below(random, 200) ? 0 : (uint8_t)i, 7};
            add(r, word, sizeof(word));
        }
        for (uint64_t k = made_below(random, 20) ? 0 : made_below(random, 30); k > 0; k--) {
            uint8_t other[9] = {made_below(random, 3) ? TL_STF_INST_PC_TARGET : TL_STF_EVENT};
            other[1] = (uint8_t)made_below(random, 9);
            add(r, other, sizeof(other));
        }
        if (made_below(random, 4) > 0)
            repeat(random, r);
        from = to;
    }
}

/* A copy of the records, without what is repeated if `holes`. */
static void copy_piece(const struct records *r, bool holes, struct tl_stf_piece *piece)
{
    *piece = (struct tl_stf_piece){.n_repeats = r->n};
    assert_int_equal(tl_buf_add(&piece->stf, r->stf.p, r->stf.n), TL_OK);
    assert_int_equal(
        tl_grow(&piece->repeats, &piece->cap_repeats, r->n + 1, sizeof(*piece->repeats)), TL_OK);
    if (r->n > 0)
        memcpy(piece->repeats, r->repeats, r->n * sizeof(*r->repeats));
    for (size_t i = 0; holes && i < r->n; i++)
        memset(piece->stf.p + r->repeats[i].at, i % 2 ? 0 : 0x55, r->repeats[i].n);
}

static void drop_piece(struct tl_stf_piece *piece)
{
    tl_buf_fini(&piece->stf);
    free(piece->repeats);
}

static void check(struct tl_packer *packer, const struct records *r, size_t head, bool holes,
                  struct tl_buf *packed)
{
    struct tl_buf plain = {0};
    struct tl_stf_piece piece;
    copy_piece(r, holes, &piece);
    piece.head = head;
    tl_buf_reset(packed);
    assert_int_equal(tl_packer_stf(packer, &piece, packed), TL_OK);
    drop_piece(&piece);
    assert_int_equal(tl_unpack((struct tl_bytes){packed->p, packed->n}, 1u << 28, &plain), TL_OK);
    assert_int_equal(plain.n, r->stf.n);
    if (plain.n > 0)
        assert_memory_equal(plain.p, r->stf.p, plain.n);
    tl_buf_fini(&plain);
}

static void records_come_back(void **state)
{
    (void)state;
    struct made random = {.random = test_seed()};
    struct tl_packer *packer;
    struct tl_buf packed = {0}, again = {0};
    assert_int_equal(tl_packer_new(&packer), TL_OK);
    for (int round = 0; round < 200; round++) {
        struct records r;
        long_ones = round % 20 == 0;
        const uint64_t blocks = long_ones || made_below(&random, 8) ? 300 : 40000;
        made_records(&random, made_below(&random, blocks), &r);
        long_ones = false;
        const size_t first = r.n > 0 ? r.repeats[0].at : r.stf.n;
        const size_t head = made_below(&random, 2) ? made_below(&random, first + 1) : 0;
        check(packer, &r, head, false, &packed);
        /* What was packed before makes no difference, nor what was left out. */
        struct tl_packer *fresh;
        assert_int_equal(tl_packer_new(&fresh), TL_OK);
        check(fresh, &r, head, true, &again);
        tl_packer_free(fresh);
        assert_int_equal(packed.n, again.n);
        assert_memory_equal(packed.p, again.p, packed.n);
        records_free(&r);
    }
    tl_packer_free(packer);
    tl_buf_fini(&packed);
    tl_buf_fini(&again);
}

/* ---- the search ----------------------------------------------------------------------------- */

/* Between the last match and `to`: eight bytes that were there before, at the begin of records
 * where their type tells how long they are; up to the next repeat, here and there, unless
 * `complete`.
 */
static ZSTD_Sequence *plain_words(struct tl_search *s, const struct records *r, bool complete,
                                  size_t *done, size_t *seen, size_t to, ZSTD_Sequence *out)
{
    const uint8_t *const p = r->stf.p;
    const size_t first = complete ? 0 : *done, end = complete ? r->stf.n : to;
    size_t at = *seen > *done ? *seen : *done;
    while (at < to && at + 8 <= end) {
        const size_t slot = tl_le64(p + at) * 0x9e3779b97f4a7c15u >> (64 - TL_SEARCH_BITS);
        const size_t known = s->words[slot];
        const struct tl_search_span was = s->spans[slot];
        s->words[slot] = (uint32_t)at + 1;
        s->spans[slot] = (struct tl_search_span){(uint32_t)first, (uint32_t)end};
        if (known == 0 || memcmp(p + known - 1, p + at, 8) != 0) {
            at += p[at] == TL_STF_INST_32   ? 5
                  : p[at] == TL_STF_INST_16 ? 3
                  : p[at] == TL_STF_INST_PC_TARGET || p[at] == TL_STF_FORCE_PC ||
                          p[at] == TL_STF_EVENT_PC_TARGET
                      ? 9
                      : 1 + (at - *done) / 64;
            continue;
        }
        size_t before = known - 1, n = 0;
        while (at > *done && before > was.begin && p[at - 1] == p[before - 1]) {
            at--;
            before--;
        }
        while (before + n < was.end && at + n < end && p[before + n] == p[at + n])
            n++;
        *out++ = (ZSTD_Sequence){.offset = (unsigned)(at - before),
                                 .litLength = (unsigned)(at - *done),
                                 .matchLength = (unsigned)n};
        *done = at = at + n;
    }
    *seen = at;
    return out;
}

/* Byte by byte, one repeat after another. */
static size_t plain_search(struct tl_search *s, const struct records *r, bool complete,
                           ZSTD_Sequence *out)
{
    ZSTD_Sequence *const first = out;
    size_t done = 0, seen = 0;
    memset(s, 0, sizeof(*s));
    for (size_t i = 0; i < r->n; i++) {
        const struct tl_stf_repeat *const m = &r->repeats[i];
        if (m->at >= done + 32)
            out = plain_words(s, r, complete, &done, &seen, m->at, out);
        const size_t at = done > m->at ? done : m->at;
        if (m->at + m->n < at + (complete ? 8 : 1))
            continue;
        *out++ = (ZSTD_Sequence){.offset = m->back,
                                 .litLength = (unsigned)(at - done),
                                 .matchLength = (unsigned)(m->at + m->n - at)};
        done = m->at + m->n;
    }
    if (r->stf.n >= done + 32)
        out = plain_words(s, r, complete, &done, &seen, r->stf.n, out);
    return (size_t)(out - first);
}

static void is_as_plain(const struct records *r, bool complete)
{
    static struct tl_search search;
    const size_t most = r->stf.n / TL_SEARCH_MIN + r->n + 1;
    ZSTD_Sequence *const wanted = malloc(most * sizeof(*wanted));
    ZSTD_Sequence *const got = malloc(most * sizeof(*got));
    assert_true(wanted && got);
    const size_t n = plain_search(&search, r, complete, wanted);
    memset(&search, 0xa5, sizeof(search));
    assert_int_equal(tl_search_run(&search, (struct tl_bytes){r->stf.p, r->stf.n}, r->repeats, r->n,
                                   complete, got),
                     n);
    assert_memory_equal(got, wanted, n * sizeof(*got));
    free(wanted);
    free(got);
}

static void searches_agree(void **state)
{
    (void)state;
    struct made random = {.random = test_seed()};
    for (int round = 0; round < 400; round++) {
        struct records r;
        made_records(&random, 1 + made_below(&random, made_below(&random, 8) ? 300 : 10000), &r);
        is_as_plain(&r, false);
        is_as_plain(&r, true);
        records_free(&r);
    }
}

/* A pool and a reader at the same time: both see the same bytes, plain and packed. */
static void pools_pack(void **state)
{
    (void)state;
    enum { BLOBS = 64 };
    struct made random = {.random = 5};
    struct tl_crew *crew;
    struct tl_packing *pool;
    struct tl_packer *packer;
    struct tl_blob *blobs[BLOBS];
    struct tl_buf plain[BLOBS] = {{0}};
    assert_int_equal(tl_crew_new(&crew, 4), TL_OK);
    assert_int_equal(tl_packing_new(&pool, crew), TL_OK);
    assert_int_equal(tl_packer_new(&packer), TL_OK);
    for (size_t i = 0; i < BLOBS; i++) {
        struct records r;
        struct tl_stf_piece piece;
        made_records(&random, 2000, &r);
        assert_int_equal(tl_buf_add(&plain[i], r.stf.p, r.stf.n), TL_OK);
        tl_packing_piece(pool, &piece);
        drop_piece(&piece);
        copy_piece(&r, true, &piece);
        records_free(&r);
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
    tl_crew_free(crew);
    tl_packer_free(packer);
}

/* Bytes of any length, including ones too short to be compressed. */
static void bytes_come_back(void **state)
{
    (void)state;
    static uint8_t bytes[1100];
    struct made random = {.random = test_seed()};
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

/* Bytes that are written in place after others: short ones are stored, long ones compressed. */
static void bytes_in_place(void **state)
{
    (void)state;
    static const size_t sizes[] = {0, 1, 300, 65535, 65536, 65537, 200000};
    struct made random = {.random = test_seed()};
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
        cmocka_unit_test(records_come_back), cmocka_unit_test(searches_agree),
        cmocka_unit_test(bytes_come_back),   cmocka_unit_test(bytes_in_place),
        cmocka_unit_test(pools_pack),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
