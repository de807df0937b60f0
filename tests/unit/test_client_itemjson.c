/* SPDX-License-Identifier: MIT */
/* JSON lines of the command line when memory runs out: each allocation of cJSON fails once. A line
 * is written completely, or TL_NOMEM is returned and nothing is written. */
#include "out/itemjson.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cjson/cJSON.h>
#include <cmocka.h>

static unsigned left; /* the allocation that fails, counted down; 0: none */
static size_t live;

static void *allocate(size_t n)
{
    if (left && --left == 0)
        return NULL;
    live++;
    return malloc(n);
}

static void release(void *p)
{
    live -= p != NULL;
    free(p);
}

static int packet(struct tl_buf *out)
{
    return tl_itemjson_packet("b", "cs.10", "16 10 I_ADDR addr=0x1 addr=0x2 addr=0x3 raw=\"a b\"",
                              out);
}

static int record(struct tl_buf *out)
{
    const struct tl_stf_record r = {.type = TL_STF_INST_32, .offset = 63, .size = 5};
    return tl_itemjson_record(8, &r, UINT64_MAX, UINT64_C(1) << 60, out);
}

static int item(struct tl_buf *out)
{
    struct tl_itemjson j = {.stream = "cs.10", .next = 7};
    const struct tl_item gap = {.kind = TL_ITEM_GAP};
    const int rc = tl_itemjson_add(&j, &gap, 1, out);
    tl_itemjson_fini(&j);
    return rc;
}

static void fails_once(int (*write)(struct tl_buf *out))
{
    struct tl_buf whole = {0}, out = {0};
    unsigned n = 0;
    left = 0;
    assert_int_equal(write(&whole), TL_OK);
    assert_true(whole.n > 20 && whole.p[0] == '{' && whole.p[whole.n - 1] == '\n');
    do {
        tl_buf_reset(&out);
        left = ++n;
        const int rc = write(&out);
        assert_true(rc == TL_OK || rc == TL_NOMEM);
        assert_int_equal(live, 0);
        if (rc == TL_NOMEM) {
            assert_int_equal(out.n, 0);
        } else {
            assert_int_equal(out.n, whole.n);
            assert_memory_equal(out.p, whole.p, whole.n);
        }
    } while (left == 0); /* until the last allocation was reached */
    assert_true(n > 10);
    tl_buf_fini(&whole);
    tl_buf_fini(&out);
}

static void test_packets(void **state)
{
    fails_once(packet);
}

static void test_records(void **state)
{
    fails_once(record);
}

static void test_elements(void **state)
{
    fails_once(item);
}

int main(void)
{
    cJSON_Hooks hooks = {allocate, release};
    cJSON_InitHooks(&hooks);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_packets),
        cmocka_unit_test(test_records),
        cmocka_unit_test(test_elements),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
