/* SPDX-License-Identifier: MIT */
/* ETMv3 and PTM in perf.data: the registers in its metadata tell which of them it is, and how. */
#include "decode/decode.h"
#include "sim/tpiu_encoder.h"
#include "unit/perf_made.h"

#include <string.h>

#define MAGIC 0x3030303030303030u

/* An A-sync, and an I-sync: trace on at 0x1000, Thumb. */
#define SYNC "\0\0\0\0\0\x80"

struct said {
    struct tl_buf text;
    const char *type;
};

static int hear(void *context, const struct tl_decode_stream *stream, const struct tl_item *items,
                size_t n)
{
    struct said *const said = context;
    assert_string_equal(stream->name, "cs.21");
    said->type = stream->source->protocol == TL_PROTO_PTM    ? "ptm"
                 : stream->source->protocol == TL_PROTO_ETM3 ? "etm3"
                                                             : "?";
    return tl_item_text(&said->text, items, n);
}

static void check(const uint64_t *words, size_t n, const char *bytes, size_t n_bytes,
                  const char *type, const char *text)
{
    static uint8_t page[0x2000];
    struct tl_tpiu_encoder e;
    struct tl_buf file;
    struct tl_setup setup;
    struct tl_image *image;
    struct tl_decode *d;
    struct said said = {0};
    const struct tl_decode_sink sink = {.context = &said, .items = hear};
    for (size_t i = 0; i < sizeof page; i += 2)
        tl_put_le16(page + i, 0x4600); /* MOV r0, r0 */
    tl_tpiu_encoder_init(&e, TL_TPIU_ALIGNED, 3);
    assert_int_equal(tl_tpiu_encoder_add(&e, 0x21, (const uint8_t *)bytes, n_bytes), TL_OK);
    assert_int_equal(tl_tpiu_encoder_flush(&e), TL_OK);
    perf_make_kind(&file, 3, words, n, (struct tl_bytes){e.out.p, e.out.n});
    tl_setup_init(&setup);
    assert_int_equal(tl_setup_format(&setup, "perf", NULL), TL_OK);
    assert_int_equal(tl_image_new(&image), TL_OK);
    assert_int_equal(tl_image_add_bytes(image, 0, (struct tl_bytes){page, sizeof page},
                                        TL_SPACE_ANY, NULL, NULL),
                     TL_OK);
    assert_int_equal(tl_image_freeze(image), TL_OK);
    assert_int_equal(tl_decode_new(&d, &setup, image, &sink, NULL), TL_OK);
    assert_int_equal(tl_decode_push(d, file.p, file.n), TL_OK);
    assert_int_equal(tl_decode_finish(d), TL_OK);
    assert_int_equal(tl_buf_add(&said.text, "", 1), TL_OK);
    assert_string_equal((const char *)said.text.p, text);
    assert_string_equal(said.type, type);
    tl_decode_free(d);
    tl_image_free(image);
    tl_setup_fini(&setup);
    tl_buf_fini(&said.text);
    tl_buf_fini(&file);
    tl_buf_fini(&e.out);
}

#define BYTES(text) text, sizeof text - 1

/* {version, PMU << 32 | units, snapshot}, {magic, CPU, values, ETMCR, ETMTRACEIDR, ETMCCER, ETMIDR}
 */
static void etm(void **state)
{
    (void)state;
    const uint64_t words[] = {
        1, (uint64_t)PERF_PMU << 32 | 1, 0, MAGIC, 0, 4, 0x1000, 0x21, 0x344008f2, 0x410cf250};
    check(words, 10, BYTES(SYNC "\x08\x21\x01\x10\0\0\x84\xa4\x84"), "etm3",
          "O\nM el-.s.t32\nY 1\nI 0000000000001000 4600\nY 3\nI 0000000000001002 4600\n");
}

static void ptm(void **state)
{
    (void)state;
    /* the oldest form of the metadata does not count the values */
    const uint64_t words[] = {
        0, (uint64_t)PERF_PMU << 32 | 1, 0, MAGIC, 0, 0x10000000, 0x21, 0x34c01ac2, 0x411cf312};
    check(words, 9,
          BYTES(SYNC "\x08\x01\x10\0\0\x21\x42\x80\x80\x80\x80\x80\x80\x80\x80\x01\x72\x05"), "ptm",
          "O\nM el-.s.t32\nT 72057594037927936\nI 0000000000001000 4600\nI 0000000000001002 4600\n"
          "I 0000000000001004 4600\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(etm), cmocka_unit_test(ptm)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
