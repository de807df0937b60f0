/* SPDX-License-Identifier: MIT */
/*
 * Small RISC-V captures that users' own led to, compared with what was executed: nothing else is
 * told, in order, and at most so many instructions are missing as damage or the lack of a table
 * costs.
 */
#include "conformance/flow_text.h"
#include "unit/data.h"

#include <stdlib.h>

struct field_case {
    const char *folder, *trace, *truth;
    size_t missing;
};

static const struct field_case cases[] = {
    {"sifive-addrbits", "trace.bin", "expected.flow", 0},
    {"ntrace-reserved-tcode", "trace.bin", "expected.flow", 0},
    {"ntrace-inhibit-src", "trace.bin", "expected.flow", 0},
    {"ntrace-zcmt", "trace.bin", "expected.flow", 4}, /* the jump table is not among the files */
    {"etrace-sign-compression", "compressed.etr", "expected.flow", 0},
    {"etrace-sign-compression", "formats-1-2-only.etr", "expected.flow", 0},
    {"etrace-sign-compression", "none.etr", "expected.flow", 0},
    {"etrace-bogus-support", "trace.bin", "truth", 300},
    {"etrace-nested-return", "trace.bin", "want", 0},
    {"etrace-in-tpiu", "trace.bin", "expected.flow", 0},
    {"perf-riscv", "perf.data", "../ntrace-inhibit-src/expected.flow", 0},
};

/* The next instruction's address in lines "I address …" or "address"; UINT64_MAX: none. */
static uint64_t next_address(const char **at)
{
    while (**at) {
        const char *const line = *at, *const stop = strchr(line, '\n');
        *at = stop ? stop + 1 : line + strlen(line);
        if (!strncmp(line, "I ", 2))
            return strtoull(line + 2, NULL, 16);
        if (*line == '0' || *line == 'f')
            return strtoull(line, NULL, 16);
    }
    return UINT64_MAX;
}

/* Is every instruction told one that was executed, and are not too many missing? */
static bool agree(const struct field_case *c, const char *truth, const char *told)
{
    size_t missing = 0, n = 0;
    for (uint64_t pc; (pc = next_address(&told)) != UINT64_MAX; n++) {
        uint64_t was;
        while ((was = next_address(&truth)) != pc && was != UINT64_MAX)
            missing++;
        if (was == UINT64_MAX) {
            printf("%s %s: instruction %zu at 0x%llx was not executed\n", c->folder, c->trace, n,
                   (unsigned long long)pc);
            return false;
        }
    }
    while (next_address(&truth) != UINT64_MAX)
        missing++;
    printf("%s %s: %zu instructions, %zu missing\n", c->folder, c->trace, n, missing);
    return missing <= c->missing && n > 0;
}

static bool decode_case(const char *dir, const struct field_case *c, struct streams *told,
                        struct tl_buf *truth)
{
    char path[LINE_MAX_SIZE];
    struct tl_setup setup;
    struct tl_image *image = NULL;
    struct tl_decode *decode = NULL;
    struct tl_buf trace = {0};
    struct tl_fail fail = {.text = ""};
    const struct tl_decode_sink sink = {.context = told, .items = on_items};
    tl_setup_init(&setup);
    snprintf(path, sizeof path, "%.300s/%s/c.ini", dir, c->folder);
    int rc = tl_setup_read(&setup, path, &fail);
    if (rc == TL_OK)
        rc = tl_image_new(&image);
    if (rc == TL_OK)
        rc = tl_setup_load_images(&setup, image, NULL, NULL, &fail);
    if (rc == TL_OK)
        rc = tl_image_freeze(image);
    snprintf(path, sizeof path, "%.300s/%s/%s", dir, c->folder, c->trace);
    if (rc == TL_OK)
        rc = tl_buf_read_file(&trace, path, 1 << 24, &fail);
    snprintf(path, sizeof path, "%.300s/%s/%s", dir, c->folder, c->truth);
    if (rc == TL_OK)
        rc = tl_buf_read_file(truth, path, 1 << 24, &fail);
    if (rc == TL_OK)
        rc = tl_decode_new(&decode, &setup, image, &sink, &fail);
    if (rc == TL_OK)
        rc = push_all(decode, &trace, trace.n);
    if (rc < 0)
        printf("%s: %s\n", c->folder, fail.text);
    tl_decode_free(decode);
    tl_buf_fini(&trace);
    tl_image_free(image);
    tl_setup_fini(&setup);
    return rc == TL_OK;
}

static bool check_case(const char *dir, const struct field_case *c)
{
    struct streams told = {.n = 0};
    struct tl_buf truth = {0};
    const bool good = decode_case(dir, c, &told, &truth) && told.n == 1 &&
                      tl_buf_add(&truth, "", 1) == TL_OK &&
                      tl_buf_add(&told.v[0].text, "", 1) == TL_OK &&
                      agree(c, (const char *)truth.p, (const char *)told.v[0].text.p);
    if (!good)
        printf("%s %s: DIFFERENT\n", c->folder, c->trace);
    tl_buf_fini(&truth);
    streams_fini(&told);
    return good;
}

int main(void)
{
    char dir[LINE_MAX_SIZE];
    if (!test_data(dir, sizeof dir, "field/riscv")) {
        puts("skipped: no captures here");
        return 77;
    }
    const size_t n = sizeof cases / sizeof *cases;
    size_t good = 0;
    for (size_t i = 0; i < n; i++)
        good += check_case(dir, &cases[i]);
    printf("%zu of %zu captures agree\n", good, n);
    return good < n;
}
