/* SPDX-License-Identifier: MIT */
/* Execution counts as objects: per program, from older versions, damaged. */
#include "shard/codecount.h"

#include "base/crc32c.h"
#include "shard/varint.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

enum { CRC = 4 };

static uint32_t add_program(struct tl_codecount *c, uint64_t context, uint64_t insns)
{
    const struct tl_code_program program = {
        .context = {.context_id = context, .has_context_id = true}, .time = 7};
    uint32_t number;
    assert_int_equal(tl_codecount_program(c, &program, &number), TL_OK);
    c->programs[number].insns += insns;
    return number;
}

/* Two programs at the same addresses. */
static void make(struct tl_codecount *c)
{
    const uint32_t one = add_program(c, 1, 30), two = add_program(c, 2, 12);
    assert_int_equal(add_program(c, 1, 0), one);
    assert_int_equal(tl_codecount_run(c, one, 0x1000, 0x1008, 10), TL_OK);
    assert_int_equal(tl_codecount_run(c, two, 0x1000, 0x1008, 4), TL_OK);
    assert_int_equal(tl_codecount_branch(c, two, 0x1008, 0xffff000000000000, 3), TL_OK);
    c->insns = 42;
}

static void encode(const struct tl_codecount *c, struct tl_buf *out)
{
    struct tl_packer *packer;
    assert_int_equal(tl_packer_new(&packer), TL_OK);
    assert_int_equal(tl_codecount_encode(c, packer, out), TL_OK);
    tl_packer_free(packer);
}

static void keeps_programs_apart(void **state)
{
    struct tl_codecount c = {0}, back = {0};
    struct tl_buf bytes = {0};
    (void)state;
    make(&c);
    encode(&c, &bytes);
    for (unsigned times = 1; times <= 2; times++) {
        const struct tl_bytes object = {bytes.p, bytes.n};
        assert_int_equal(tl_codecount_decode(&back, NULL, object), TL_OK);
        assert_int_equal(back.insns, 42 * times);
        assert_int_equal(back.n_programs, 2);
        assert_int_equal(back.programs[1].context.context_id, 2);
        assert_int_equal(back.programs[1].time, 7);
        assert_int_equal(back.programs[1].insns, 12 * times);
        assert_int_equal(back.runs.n, 2);
        for (uint32_t i = 0; i < 2; i++) {
            const struct tl_code_pair run = tl_code_pair(&back, back.runs.keys[i]);
            assert_int_equal(run.program, i);
            assert_int_equal(run.from, 0x1000);
            assert_int_equal(run.to, 0x1008);
            assert_int_equal(back.run_counts[i], (i ? 4 : 10) * times);
        }
        assert_int_equal(back.branches.n, 1);
        assert_int_equal(tl_code_pair(&back, back.branches.keys[0]).to, 0xffff000000000000);
        assert_int_equal(back.branch_counts[0], 3 * times);
    }
    tl_codecount_fini(&c);
    tl_codecount_fini(&back);
    tl_buf_fini(&bytes);
}

static void knows_what_it_cannot_read(void **state)
{
    struct tl_codecount c = {0}, back = {0};
    struct tl_buf bytes = {0}, plain = {0}, old = {0};
    struct tl_packer *packer;
    (void)state;
    make(&c);
    encode(&c, &bytes);
    for (size_t n = 0; n < bytes.n; n++)
        assert_int_equal(tl_codecount_decode(&back, NULL, (struct tl_bytes){bytes.p, n}),
                         TL_NOTFOUND);
    for (size_t i = 0; i < bytes.n; i++) {
        bytes.p[i] ^= 0x10;
        assert_int_equal(tl_codecount_decode(&back, NULL, (struct tl_bytes){bytes.p, bytes.n}),
                         TL_NOTFOUND);
        bytes.p[i] ^= 0x10;
    }
    /* The first version has instructions, no runs, no branches. */
    static const uint64_t words[] = {1, 42, 0, 0};
    static const uint8_t zeros[CRC];
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(tl_varint_add(&plain, words[i]), TL_OK);
    assert_int_equal(tl_packer_new(&packer), TL_OK);
    assert_int_equal(tl_buf_add(&old, zeros, CRC), TL_OK);
    assert_int_equal(tl_packer_bytes(packer, (struct tl_bytes){plain.p, plain.n}, &old), TL_OK);
    tl_packer_free(packer);
    tl_put_le32(old.p, tl_crc32c(0, old.p + CRC, old.n - CRC));
    assert_int_equal(tl_codecount_decode(&back, NULL, (struct tl_bytes){old.p, old.n}),
                     TL_UNSUPPORTED);
    assert_int_equal(back.insns, 0);
    tl_codecount_fini(&c);
    tl_codecount_fini(&back);
    tl_buf_fini(&bytes);
    tl_buf_fini(&plain);
    tl_buf_fini(&old);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keeps_programs_apart),
        cmocka_unit_test(knows_what_it_cannot_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
