/* SPDX-License-Identifier: MIT */
/* Counting long blocks into a shard asks whether it is still wanted: a batch may hold millions of
 * instructions, and removal of a trace waits for it. */
#include "base/cancel.h"
#include "builder/build.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

enum { BLOCKS = 1000 };

struct asker {
    uint64_t asked, after;
};

static bool ask(void *context)
{
    struct asker *const a = context;
    return ++a->asked > a->after;
}

static int drop(void *context, struct tl_view *view)
{
    (void)context;
    tl_view_put(view);
    return TL_OK;
}

/* A batch of the longest blocks, which end inside no bucket; the result of counting it. */
static int count(struct asker *asker)
{
    static const uint8_t nop[] = {0x1f, 0x20, 0x03, 0xd5};
    const struct tl_build_options options = {.protocol = TL_PROTO_ETM4,
                                             .isa = TL_ISA_A64,
                                             .shard_insns = UINT64_C(1) << 40,
                                             .index_only = true,
                                             .seal = drop};
    const struct tl_cancel cancel = {.asked = ask, .context = asker};
    struct tl_item *const items = calloc(BLOCKS, sizeof *items);
    uint8_t *const code = malloc(TL_BLOCK_MAX * sizeof nop);
    struct tl_build *build;
    assert_true(items && code);
    for (size_t i = 0; i < TL_BLOCK_MAX; i++)
        memcpy(code + i * sizeof nop, nop, sizeof nop);
    const struct tl_block block = {.pc = 0x1000,
                                   .number = 1,
                                   .n = TL_BLOCK_MAX,
                                   .size = TL_BLOCK_MAX * sizeof nop,
                                   .last_size = sizeof nop,
                                   .isa = TL_ISA_A64,
                                   .end = TL_BLOCK_FULL,
                                   .function = TL_NO_FUNCTION,
                                   .code = code};
    for (size_t i = 0; i < BLOCKS; i++)
        items[i] = (struct tl_item){.kind = TL_ITEM_BLOCK, .n = TL_BLOCK_MAX, .block = &block};
    assert_int_equal(tl_build_new(&build, &options), TL_OK);
    const struct tl_cancel *const before = tl_cancel_set(&cancel);
    const int r = tl_build_items(build, items, BLOCKS);
    tl_cancel_set(before);
    tl_build_free(build);
    free(items);
    free(code);
    return r;
}

static void long_blocks(void **state)
{
    (void)state;
    struct asker asker = {.after = UINT64_MAX};
    assert_int_equal(count(&asker), TL_OK);
    assert_true(asker.asked >= BLOCKS / 2);
    asker = (struct asker){.after = 10};
    assert_int_equal(count(&asker), TL_CANCELLED);
    assert_int_equal(asker.asked, 11);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(long_blocks)};
    return cmocka_run_group_tests_name("shard_cancel", tests, NULL, NULL);
}
