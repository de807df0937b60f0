/* SPDX-License-Identifier: MIT */
/* STF as a capture format: the same items for any chunking, faults reported with their offset. */
#include "test_stf_util.h"

#include <lzma.h>
#include <zlib.h>

#include "decode/decode.h"

struct got {
    struct tl_buf text;
    struct tl_buf lines;
    unsigned streams, losses;
    uint64_t loss_offset;
};

static int on_stream(void *context, const struct tl_decode_stream *stream)
{
    struct got *const got = context;
    assert_string_equal(stream->name, "stf.0");
    got->streams++;
    return TL_OK;
}

static int on_items(void *context, const struct tl_decode_stream *stream,
                    const struct tl_item *items, size_t n)
{
    struct got *const got = context;
    (void)stream;
    return tl_item_text(&got->text, items, n);
}

static int on_packet(void *context, const struct tl_decode_stream *stream, const char *line)
{
    struct got *const got = context;
    (void)stream;
    return tl_buf_printf(&got->lines, "%s\n", line);
}

static int on_loss(void *context, const struct tl_decode_loss *loss)
{
    struct got *const got = context;
    assert_true(loss->fault);
    assert_string_not_equal(loss->reason, "");
    got->losses++;
    got->loss_offset = loss->offset;
    return TL_OK;
}

static void decode(struct tl_bytes bytes, size_t step, struct got *got)
{
    struct tl_setup setup;
    struct tl_decode *d;
    const struct tl_decode_sink sink = {.context = got,
                                        .stream = on_stream,
                                        .items = on_items,
                                        .packet = on_packet,
                                        .loss = on_loss};
    *got = (struct got){0};
    tl_setup_init(&setup);
    assert_int_equal(tl_setup_format(&setup, "stf", NULL), TL_OK);
    assert_int_equal(tl_decode_new(&d, &setup, NULL, &sink, NULL), TL_OK);
    for (size_t i = 0; i < bytes.n; i += step)
        assert_int_equal(tl_decode_push(d, bytes.p + i, bytes.n - i < step ? bytes.n - i : step),
                         TL_OK);
    assert_int_equal(tl_decode_finish(d), TL_OK);
    tl_decode_free(d);
    tl_setup_fini(&setup);
    assert_int_equal(got->streams, 1);
}

static void got_fini(struct got *got)
{
    tl_buf_fini(&got->text);
    tl_buf_fini(&got->lines);
}

static void put_trace(struct tl_buf *out, unsigned n)
{
    static const uint8_t mode[8] = {3};
    put_header(out);
    for (unsigned i = 0; i < n; i++) {
        if (i % 9 == 8)
            put_record(out, &(struct tl_stf_record){.type = TL_STF_INST_PC_TARGET,
                                                    .target = 0x2000 + 32 * (uint64_t)i});
        if (i % 31 == 30)
            put_record(out,
                       &(struct tl_stf_record){.type = TL_STF_EVENT,
                                               .event = {TL_STF_EVENT_MODE_CHANGE, {mode, 8}}});
        if (i % 43 == 42)
            put_record(out,
                       &(struct tl_stf_record){.type = TL_STF_EVENT,
                                               .event = {TL_STF_EVENT_INTERRUPT | 7, {NULL, 0}}});
        put_insn(out, i % 9 == 8 ? 0x0000006f : 0x00000013);
    }
}

static void pack(const struct tl_buf *plain, struct tl_buf *file)
{
    const struct tl_stf_out_options options = {.format = TL_STF_FILE_ZSTF, .markers = 100};
    const struct tl_stf_sink sink = {file, buf_write, buf_rewrite};
    struct tl_stf_out *out;
    struct tl_stf_reader *reader;
    struct tl_stf_record r;
    assert_int_equal(tl_stf_out_new(&out, &options, &sink), TL_OK);
    assert_int_equal(tl_stf_reader_new(&reader), TL_OK);
    tl_stf_reader_push(reader, bytes_of(plain));
    tl_stf_reader_finish(reader);
    while (tl_stf_reader_next(reader, &r, NULL) == TL_OK)
        assert_int_equal(tl_stf_out_put(out, &r, NULL), TL_OK);
    assert_int_equal(tl_stf_out_finish(out, NULL), TL_OK);
    tl_stf_reader_free(reader);
    tl_stf_out_free(out);
}

static void pack_gzip(const struct tl_buf *plain, struct tl_buf *file)
{
    z_stream z = {0};
    assert_int_equal(deflateInit2(&z, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
    assert_int_equal(tl_buf_reserve(file, deflateBound(&z, plain->n)), TL_OK);
    z.next_in = plain->p;
    z.avail_in = (uInt)plain->n;
    z.next_out = file->p;
    z.avail_out = (uInt)file->cap;
    assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
    file->n = file->cap - z.avail_out;
    deflateEnd(&z);
}

static void pack_xz(const struct tl_buf *plain, struct tl_buf *file)
{
    assert_int_equal(tl_buf_reserve(file, lzma_stream_buffer_bound(plain->n)), TL_OK);
    assert_int_equal(lzma_easy_buffer_encode(1, LZMA_CHECK_CRC32, NULL, plain->p, plain->n, file->p,
                                             &file->n, file->cap),
                     LZMA_OK);
}

static void test_any_chunking(void **state)
{
    (void)state;
    struct tl_buf plain = {0}, packed = {0}, gzip = {0}, xz = {0};
    const struct tl_buf *const wraps[] = {&plain, &packed, &gzip, &xz};
    struct got whole;
    struct listing list;
    put_trace(&plain, 1000);
    pack(&plain, &packed);
    pack_gzip(&plain, &gzip);
    pack_xz(&plain, &xz);
    decode(bytes_of(&plain), plain.n, &whole);
    assert_int_equal(whole.losses, 0);
    assert_int_equal(strncmp((const char *)whole.text.p, "I 0000000000001000 00000013\n", 28), 0);
    list_bytes(bytes_of(&plain), &list);
    assert_int_equal(list.text.n, whole.lines.n);
    assert_memory_equal(list.text.p, whole.lines.p, list.text.n);
    static const size_t steps[] = {1, 2, 5, 6, 19, 64, 1000, 1 << 20};
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        for (int wrap = 0; wrap < 4; wrap++) {
            struct got got;
            decode(bytes_of(wraps[wrap]), steps[i], &got);
            assert_int_equal(got.losses, 0);
            assert_int_equal(got.text.n, whole.text.n);
            assert_memory_equal(got.text.p, whole.text.p, whole.text.n);
            assert_int_equal(got.lines.n, whole.lines.n);
            got_fini(&got);
        }
    }
    tl_buf_fini(&list.text);
    got_fini(&whole);
    tl_buf_fini(&plain);
    tl_buf_fini(&packed);
    tl_buf_fini(&gzip);
    tl_buf_fini(&xz);
}

/* Events of other producers: what happened and where. */
static void test_foreign_events(void **state)
{
    (void)state;
    struct tl_buf plain = {0};
    struct got got;
    put_trace(&plain, 44);
    decode(bytes_of(&plain), plain.n, &got);
    assert_int_equal(tl_buf_add(&got.text, "", 1), TL_OK);
    assert_non_null(strstr((const char *)got.text.p, "M m.rv64\n"));
    assert_non_null(strstr((const char *)got.text.p, "X int-machine-timer 7 "));
    got_fini(&got);
    tl_buf_fini(&plain);
}

/* Opcodes of other instruction sets are values, too. */
static void test_foreign_isas(void **state)
{
    (void)state;
    for (uint16_t iem = TL_STF_IEM_32; iem <= TL_STF_IEM_64; iem++) {
        const struct tl_stf_header_spec spec = {.isa = 4, .iem = iem, .pc = 0x1000};
        struct tl_stf_layout layout;
        struct tl_buf plain = {0};
        struct got got;
        assert_int_equal(tl_stf_header_write(&spec, &plain, &layout), TL_OK);
        put_record(&plain, &(struct tl_stf_record){.type = TL_STF_INST_32, .opcode = 0x12345678});
        put_record(&plain, &(struct tl_stf_record){.type = TL_STF_INST_16, .opcode = 0xabcd});
        decode(bytes_of(&plain), plain.n, &got);
        assert_int_equal(tl_buf_add(&got.text, "", 1), TL_OK);
        assert_non_null(strstr((const char *)got.text.p, "I 0000000000001000 12345678\n"
                                                         "I 0000000000001004 abcd\n"));
        got_fini(&got);
        tl_buf_fini(&plain);
    }
}

/* Micro-operations of another writer are not the instruction's bytes, as they are in our traces. */
static void test_microops(void **state)
{
    static const struct {
        uint32_t op;
        const char *text;
    } cases[] = {{0x0000b848, "I 0000000000001000 48b80000aabb\n"},
                 {0x12345678, "I 0000000000001000 12345678\n"}};
    (void)state;
    for (unsigned i = 0; i < 2; i++) {
        const struct tl_stf_header_spec spec = {
            .isa = TL_STF_ISA_X86, .iem = TL_STF_IEM_64, .pc = 0x1000};
        struct tl_stf_layout layout;
        struct tl_buf plain = {0};
        struct got got;
        assert_int_equal(tl_stf_header_write(&spec, &plain, &layout), TL_OK);
        put_record(&plain, &(struct tl_stf_record){.type = TL_STF_INST_MICROOP,
                                                   .microop = {4, 0x0000b848}});
        put_record(&plain,
                   &(struct tl_stf_record){.type = TL_STF_INST_MICROOP, .microop = {2, 0xbbaa}});
        put_record(&plain, &(struct tl_stf_record){.type = TL_STF_INST_32, .opcode = cases[i].op});
        decode(bytes_of(&plain), plain.n, &got);
        assert_int_equal(tl_buf_add(&got.text, "", 1), TL_OK);
        assert_non_null(strstr((const char *)got.text.p, cases[i].text));
        got_fini(&got);
        tl_buf_fini(&plain);
    }
}

static void test_faults(void **state)
{
    (void)state;
    struct tl_buf plain = {0};
    struct got got;
    put_trace(&plain, 10);
    decode((struct tl_bytes){plain.p, plain.n - 2}, 7, &got);
    assert_int_equal(got.losses, 1);
    assert_int_equal(got.loss_offset, plain.n - 5);
    got_fini(&got);
    decode(text_bytes("this is not a trace, whatever it is"), 3, &got);
    assert_int_equal(got.losses, 1);
    assert_int_equal(got.text.n, 0);
    got_fini(&got);
    decode((struct tl_bytes){plain.p, 0}, 1, &got);
    assert_int_equal(got.losses, 1);
    got_fini(&got);
    tl_buf_fini(&plain);
}

static void test_damage(void **state)
{
    (void)state;
    uint64_t seed = rng_seed("damage");
    struct tl_buf plain = {0}, packed = {0};
    put_trace(&plain, 300);
    pack(&plain, &packed);
    for (int round = 0; round < 1000; round++) {
        const struct tl_buf *const from = round & 1 ? &plain : &packed;
        struct tl_buf copy = {0};
        struct got got;
        assert_int_equal(tl_buf_add(&copy, from->p, from->n), TL_OK);
        for (uint64_t flips = 1 + rng_next(&seed) % 4; flips; flips--)
            copy.p[rng_next(&seed) % copy.n] ^= (uint8_t)(1 << rng_next(&seed) % 8);
        decode(bytes_of(&copy), 1 + rng_next(&seed) % 500, &got);
        got_fini(&got);
        tl_buf_fini(&copy);
    }
    tl_buf_fini(&plain);
    tl_buf_fini(&packed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_any_chunking), cmocka_unit_test(test_foreign_events),
        cmocka_unit_test(test_foreign_isas), cmocka_unit_test(test_microops),
        cmocka_unit_test(test_faults),       cmocka_unit_test(test_damage),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
