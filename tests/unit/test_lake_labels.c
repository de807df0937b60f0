/* SPDX-License-Identifier: MIT */
/* Which labels are valid, and how many a trace may have. */
#include "lake_help.h"

static const char *labels_of(struct tl_lake *lake, const char *trace, char out[static 64])
{
    struct tl_trace_list list;
    assert_int_equal(tl_lake_trace(lake, trace, &list), TL_OK);
    snprintf(out, 64, "%s", list.rows[0].labels);
    tl_trace_list_free(&list);
    return out;
}

static void labels_have_limits(void **state)
{
    static const char *const bad[] = {"k=\x1b[2J\n",
                                      "\x1b]0;x=v\n",
                                      "k=a\x7f\n",
                                      "k=\xc2\x9b"
                                      "2J\n",
                                      "k=a\rb\n",
                                      "=v\n",
                                      "nothing\n",
                                      "fine=1\nk=\t\n"};
    static const struct {
        int labels, key, value;
        bool fits;
    } cases[] = {
        {1, TL_LABEL_KEY_BYTES, TL_LABEL_VALUE_BYTES, true},
        {1, TL_LABEL_KEY_BYTES + 1, 1, false},
        {1, 3, TL_LABEL_VALUE_BYTES + 1, false},
        {TL_LABELS_MAX, 3, 3, true},
        {TL_LABELS_MAX + 1, 3, 3, false},
        {TL_LABELS_BYTES / TL_LABEL_VALUE_BYTES, 96, TL_LABEL_VALUE_BYTES - 96, true},
        {TL_LABELS_BYTES / TL_LABEL_VALUE_BYTES, 96, TL_LABEL_VALUE_BYTES - 95, false},
        {1000, 24, 100, true}, /* the names of as many regions as `simpoints` chooses */
    };
    struct tl_backend *backend;
    struct capture c = {0};
    char text[64];
    (void)state;
    assert_int_equal(tl_backend_memory(&backend), TL_OK);
    struct tl_lake *const lake = open_lake_sized(backend, 1000, 1);
    assert_int_equal(tl_buf_add(&c.setup, "[trace]\nformat=itm,id=0\n", 25), TL_OK);
    assert_int_equal(tl_buf_add(&c.bytes, "\0", 1), TL_OK); /* an empty one has no effect */
    push_all(lake, "t", &c, 1);
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        assert_int_equal(tl_lake_set_labels(lake, "t", bad[i], NULL), TL_USAGE);
        assert_string_equal(labels_of(lake, "t", text), "");
    }
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct tl_buf set = {0}, removal = {0};
        for (int k = 0; k < cases[i].labels; k++) {
            assert_int_equal(tl_buf_printf(&set, "%0*d=%0*d\n", cases[i].key, k, cases[i].value, 7),
                             TL_OK);
            assert_int_equal(tl_buf_printf(&removal, "%0*d=\n", cases[i].key, k), TL_OK);
        }
        assert_int_equal(tl_buf_add(&set, "", 1), TL_OK);
        assert_int_equal(tl_buf_add(&removal, "", 1), TL_OK);
        assert_int_equal(tl_lake_set_labels(lake, "t", (char *)set.p, NULL),
                         cases[i].fits ? TL_OK : TL_USAGE);
        if (cases[i].fits) /* existing labels count, and a replaced one counts once */
            assert_int_equal(tl_lake_set_labels(lake, "t", (char *)set.p, NULL), TL_OK);
        if (cases[i].labels == TL_LABELS_MAX)
            assert_int_equal(tl_lake_set_labels(lake, "t", "one=more\n", NULL), TL_USAGE);
        assert_int_equal(tl_lake_set_labels(lake, "t", (char *)removal.p, NULL), TL_OK);
        assert_string_equal(labels_of(lake, "t", text), "");
        tl_buf_fini(&set);
        tl_buf_fini(&removal);
    }
    assert_int_equal(tl_lake_set_labels(lake, "t", "who=J\xc3\xbcrgen\n", NULL), TL_OK);
    assert_string_equal(labels_of(lake, "t", text), "who=J\xc3\xbcrgen\n");
    capture_free(&c);
    close_memory_lake(backend, lake);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(labels_have_limits)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
