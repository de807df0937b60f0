/* SPDX-License-Identifier: MIT */
/*
 * `tracelake check` compared with stf_lib's own readers: each crafted file on which its record
 * reader or its instruction reader fails has an error with an offset, and files that both can read
 * have none, with the exceptions listed here.
 */
#include "test_stf_util.h"

#include "stf/tools/check.h"

struct outcome {
    bool failed; /* cannot be read to its end, or has an error */
    uint64_t errors, warnings;
    struct tl_stf_finding first; /* the first error */
    struct tl_fail fail;
};

static int count(void *context, const struct tl_stf_finding *finding)
{
    struct outcome *const o = context;
    assert_int_not_equal(finding->text[0], 0);
    if (finding->severity == TL_STF_ERROR && o->errors++ == 0)
        o->first = *finding;
    o->warnings += finding->severity == TL_STF_WARNING;
    return TL_OK;
}

static void check(const char *path, struct outcome *o)
{
    struct tl_stf_file *file;
    struct tl_stf_checker *checker;
    *o = (struct outcome){.fail.offset = TL_NO_OFFSET};
    if (tl_stf_file_open(&file, path, &o->fail) < 0) {
        o->failed = true;
        return;
    }
    assert_int_equal(tl_stf_checker_new(&checker, count, o), TL_OK);
    const int result = tl_stf_check_file(file, checker, count, o, &o->fail);
    o->failed = result < 0 || o->errors;
    tl_stf_checker_free(checker);
    tl_stf_file_close(file);
}

/* Files that stf_lib reads although we report an error, or the other way round. */
static const struct {
    const char *name;
    bool ours; /* we report an error */
} differ[] = {
    {"access_without_content.stf", true}, /* violates 1.3; some versions of stf_lib throw */
    {"reg_badtype.stf", true},            /* a reserved register type */
    {"trunc_desc.stf", true},             /* truncated: stf_lib invents an instruction */
    {"trunc_payload.stf", true},
    {"z_long2nd.zstf", true}, /* stf_lib loses instructions */
    {"z_zeropc.zstf", true},  /* stf_lib gives wrong addresses after a seek */
    {"arm.stf", false},       /* legal; a note says that stf_lib reads no instructions from it */
    {"txn.stf", false},       /* legal; only stf_lib's reader of instruction traces refuses it */
    /* 1.3 requires it; a note says that stf_lib throws */
    {"v13_reserve_end255.stf", false},
    /* legal in 1.3 or 1.4; a warning says that stf_lib cannot read it */
    {"vec_novlen.stf", false},
    {"vec_vlen64.stf", false},
    {"w_vlen64.stf", false},
};

static void test_like_stf_lib(void **state)
{
    (void)state;
    char path[512], line[512];
    if (!data_path("crafted/VERDICTS.txt", path)) {
        printf("no data folder: ");
        skip();
    }
    FILE *const f = fopen(path, "r");
    assert_non_null(f);
    unsigned n = 0, wrong = 0;
    bool records_failed = false;
    while (fgets(line, sizeof line, f)) {
        char name[64], kind[8], file[128];
        int rc;
        if (sscanf(line, "%63s %7s rc=%d", name, kind, &rc) != 3)
            continue;
        if (strcmp(kind, "rec") == 0) { /* the line for the instruction reader comes next */
            records_failed = rc != 0;
            continue;
        }
        bool want = records_failed || rc != 0;
        for (size_t i = 0; i < sizeof differ / sizeof *differ; i++) {
            if (strcmp(differ[i].name, name) == 0) {
                assert_int_not_equal(differ[i].ours, want);
                want = differ[i].ours;
            }
        }
        struct outcome o;
        snprintf(file, sizeof file, "crafted/%s", name);
        assert_non_null(data_path(file, path));
        check(path, &o);
        n++;
        if (o.failed != want) {
            print_message("%s: %s, %s%s\n", name, o.failed ? "failed" : "passed",
                          o.errors ? o.first.text : "", o.fail.text);
            wrong++;
        }
        if (o.failed && !o.errors && o.fail.offset == TL_NO_OFFSET) {
            print_message("%s: no offset: %s\n", name, o.fail.text);
            wrong++;
        }
    }
    fclose(f);
    assert_true(n > 80);
    assert_int_equal(wrong, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_like_stf_lib)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
