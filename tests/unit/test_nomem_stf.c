/* SPDX-License-Identifier: MIT */
/* Each allocation of the STF library fails once: reading, checking, slicing, listing, decoding. */
#include "decode/decode.h"
#include "stf/tools/check.h"
#include "stf/tools/slice.h"
#include "stf/zstf_pool.h"
#include "test_stf_util.h"
#include "unit/nomem.h"

#include <lzma.h>
#include <unistd.h>
#include <zlib.h>

static struct tl_buf files[4]; /* the same trace: plain, .zstf, .gz, .xz */

static void put_trace(struct tl_buf *out)
{
    static const uint8_t data[8] = {3};
    put_header(out);
    for (unsigned i = 0; i < 300; i++) {
        if (i % 9 == 8)
            put_record(out, &(struct tl_stf_record){.type = TL_STF_INST_PC_TARGET,
                                                    .target = 0x2000 + 32 * (uint64_t)i});
        if (i % 31 == 30)
            put_record(out,
                       &(struct tl_stf_record){.type = TL_STF_EVENT,
                                               .event = {TL_STF_EVENT_MODE_CHANGE, {data, 8}}});
        if (i % 7 == 5)
            put_record(out, &(struct tl_stf_record){.type = TL_STF_COMMENT,
                                                    .text = {(const uint8_t *)"some words", 10}});
        if (i % 5 == 3)
            put_record(out, &(struct tl_stf_record){.type = TL_STF_INST_MEM_ACCESS,
                                                    .access = {.address = 0x100 + i, .size = 4}});
        put_insn(out, i % 9 == 8 ? 0x0000006f : 0x00000013);
    }
}

static int write_to(void *context, const uint8_t *p, size_t n)
{
    return tl_buf_add(context, p, n);
}

static int rewrite_in(void *context, const uint8_t *p, size_t n)
{
    memcpy(((struct tl_buf *)context)->p, p, n);
    return TL_OK;
}

/* Records of `in` through a slicer (`slices`) into a file of `format`. */
static int copy_records(struct tl_bytes in, uint8_t format, bool slices, struct tl_buf *file)
{
    const struct tl_stf_out_options options = {.format = format, .markers = 50, .unchecked = true};
    const struct tl_stf_sink sink = {file, write_to, rewrite_in};
    struct tl_stf_out *out = NULL;
    struct tl_stf_reader *reader = NULL;
    struct tl_stf_slicer *slicer = NULL;
    struct tl_stf_record r;
    struct tl_fail fail = {0};
    int rc = tl_stf_out_new(&out, &options, &sink);
    if (rc == TL_OK)
        rc = tl_stf_reader_new(&reader);
    if (rc == TL_OK && slices)
        rc = tl_stf_slicer_new(&slicer, 20, 200, "cut", out);
    if (rc == TL_OK) {
        tl_stf_reader_push(reader, in);
        tl_stf_reader_finish(reader);
    }
    while (rc == TL_OK && (rc = tl_stf_reader_next(reader, &r, &fail)) == TL_OK)
        rc = slices ? tl_stf_slicer_add(slicer, &r, &fail) : tl_stf_out_put(out, &r, &fail);
    if (rc == TL_EOF)
        rc = tl_stf_out_finish(out, &fail);
    tl_stf_slicer_free(slicer);
    tl_stf_reader_free(reader);
    tl_stf_out_free(out);
    return rc;
}

static int write_zstf(void *context, struct tl_buf *out)
{
    return copy_records(bytes_of(&files[0]), TL_STF_FILE_ZSTF, false, out);
}

static void written_files(void **state)
{
    assert_true(nomem_run(write_zstf, NULL) > 5);
}

static int slice(void *context, struct tl_buf *out)
{
    return copy_records(bytes_of(&files[0]), TL_STF_FILE_PLAIN, true, out);
}

static void slices(void **state)
{
    assert_true(nomem_run(slice, NULL) > 5);
}

static int note_finding(void *context, const struct tl_stf_finding *finding)
{
    return tl_buf_printf(context, "%s %s\n", finding->rule, finding->text);
}

static int check(void *context, struct tl_buf *out)
{
    const struct tl_buf *const file = context;
    struct tl_stf_file *f = NULL;
    struct tl_stf_checker *checker = NULL;
    struct tl_fail fail = {0};
    int rc = tl_stf_file_bytes(&f, bytes_of(file), &fail);
    if (rc == TL_OK)
        rc = tl_stf_checker_new(&checker, note_finding, out);
    if (rc == TL_OK)
        rc = tl_stf_check_file(f, checker, note_finding, out, &fail);
    if (rc == TL_OK)
        rc = tl_buf_printf(out, "%llu\n", (unsigned long long)tl_stf_checker_records(checker));
    tl_stf_checker_free(checker);
    tl_stf_file_close(f);
    return rc;
}

static void checked_files(void **state)
{
    for (unsigned i = 0; i < 4; i++)
        assert_true(nomem_run(check, &files[i]) > 3);
}

/* Instructions of a file, also from its middle, where seeking is possible. */
static int read_insns(void *context, struct tl_buf *out)
{
    enum { SOME = 100 };
    struct tl_stf_file *f = NULL;
    struct tl_stf_insns *insns = NULL;
    struct tl_stf_insn some[SOME];
    struct tl_fail fail = {0};
    int rc = tl_stf_file_open(&f, context, &fail);
    if (rc == TL_OK) {
        const struct tl_stf_source source = tl_stf_file_source(f);
        rc = tl_stf_insns_open(&insns, &source);
    }
    const unsigned passes =
        rc == TL_OK && tl_stf_file_zstf(f) ? 2 : 1; /* backward only with an index */
    for (unsigned pass = 0; rc == TL_OK && pass < passes; pass++) {
        if (pass == 1)
            rc = tl_stf_insns_seek(insns, 120, &fail);
        int n = 0;
        while (rc == TL_OK && (n = tl_stf_insns_read(insns, some, SOME, &fail)) > 0)
            rc = tl_buf_printf(out, "%d %llx\n", n, (unsigned long long)some[n - 1].pc);
        rc = rc < 0 || n == TL_EOF ? rc : n;
    }
    tl_stf_insns_free(insns);
    tl_stf_file_close(f);
    return rc;
}

static void instructions(void **state)
{
    for (unsigned i = 0; i < 4; i++) {
        char path[] = "/tmp/test_nomem_stf.XXXXXX";
        const int fd = mkstemp(path);
        assert_int_equal(write(fd, files[i].p, files[i].n), (ssize_t)files[i].n);
        close(fd);
        assert_true(nomem_run(read_insns, path) > 3);
        unlink(path);
    }
}

static int keep_frame(const struct tl_zstf_job *job)
{
    return tl_buf_add(job->context, job->frame.p, job->frame.n);
}

/* Chunks compressed by a pool of two threads, the other of which helps in turns. */
static int pack_chunks(void *context, struct tl_buf *out)
{
    struct tl_zstf_pool *pool = NULL;
    int rc = tl_zstf_pool_new(&pool, 3, 2, keep_frame);
    for (unsigned i = 0; rc == TL_OK && i < 6; i++) {
        struct tl_zstf_job job = {.context = out, .markers = 1};
        rc = tl_buf_add(&job.stf, files[0].p, files[0].n);
        if (rc == TL_OK)
            rc = tl_zstf_pool_add(pool, &job);
        tl_buf_fini(&job.stf);
        if (rc == TL_OK && i % 2)
            tl_zstf_pool_work(pool);
    }
    if (rc == TL_OK)
        rc = tl_zstf_pool_drain(pool);
    tl_zstf_pool_free(pool);
    return rc;
}

static void packed_chunks(void **state)
{
    assert_true(nomem_run(pack_chunks, NULL) > 3);
}

/* ---- records as text ------------------------------------------------------------------------ */

/* Into a buffer that is full after any number of bytes, and cannot grow. */
static void text_at_every_byte(const struct tl_stf_record *record)
{
    struct tl_buf want = {0};
    assert_int_equal(tl_stf_record_text(record, &want), TL_OK);
    for (size_t cap = 1; cap < want.n; cap++) {
        struct tl_buf out = {.p = malloc(cap), .cap = cap};
        nomem.failed = nomem.again = true;
        nomem.mode = NOMEM_FAIL;
        const int rc = tl_stf_record_text(record, &out);
        nomem.mode = NOMEM_OFF;
        assert_int_equal(rc, TL_NOMEM);
        tl_buf_fini(&out);
    }
    tl_buf_fini(&want);
}

static void texts(void **state)
{
    static uint8_t bytes[640];
    memset(bytes, 'x', sizeof bytes);
    const struct tl_bytes all = {bytes, sizeof bytes};
    const struct tl_stf_record records[] = {
        {.type = TL_STF_COMMENT, .text = all},
        {.type = TL_STF_TRACE_INFO, .info = {.text = all}},
        {.type = TL_STF_CLOCK_ID, .clock = {.name = all}},
        {.type = TL_STF_INST_REG, .reg = {.number = 5, .value = all}},
        {.type = TL_STF_PAGE_TABLE_WALK, .walk = {.entries = all}},
        {.type = TL_STF_EVENT, .event = {TL_STF_EVENT_MODE_CHANGE, all}},
        {.type = TL_STF_TRANSACTION, .transaction = {.metadata = all, .data = all}},
    };
    for (size_t i = 0; i < sizeof records / sizeof *records; i++)
        text_at_every_byte(&records[i]);
}

/* ---- as a capture -------------------------------------------------------------------------- */

struct capture {
    const struct tl_buf *file;
    bool packets, saves;
};

static int on_items(void *context, const struct tl_decode_stream *stream,
                    const struct tl_item *items, size_t n)
{
    return tl_item_text(context, items, n);
}

static int on_packet(void *context, const struct tl_decode_stream *stream, const char *line)
{
    return tl_buf_printf(context, "%s\n", line);
}

static int begin(const struct tl_setup *setup, const struct capture *c, struct tl_decode **d,
                 struct tl_buf *out)
{
    const struct tl_decode_sink sink = {
        .context = out, .items = on_items, .packet = c->packets ? on_packet : NULL};
    struct tl_fail fail = {0};
    return tl_decode_new(d, setup, NULL, &sink, &fail);
}

static int hand_on(const struct tl_setup *setup, const struct capture *c, struct tl_decode **d,
                   struct tl_buf *out)
{
    struct tl_buf saved = {0};
    int rc = tl_decode_save(*d, &saved);
    if (rc == TL_OK) {
        tl_decode_free(*d);
        *d = NULL;
        rc = begin(setup, c, d, out);
        if (rc == TL_OK)
            rc = tl_decode_load(*d, bytes_of(&saved));
    }
    tl_buf_fini(&saved);
    return rc == TL_AGAIN || rc == TL_UNSUPPORTED ? TL_OK : rc;
}

static int decode(void *context, struct tl_buf *out)
{
    const struct capture *const c = context;
    struct tl_decode *d = NULL;
    struct tl_setup setup;
    struct tl_fail fail = {0};
    const size_t piece = c->file->n / 4 + 1;
    tl_setup_init(&setup);
    int rc = tl_setup_format(&setup, "stf", &fail);
    if (rc == TL_OK)
        rc = begin(&setup, c, &d, out);
    for (size_t at = 0; rc == TL_OK && at < c->file->n; at += piece) {
        const size_t left = c->file->n - at;
        rc = tl_decode_push(d, c->file->p + at, piece < left ? piece : left);
        if (rc == TL_OK && c->saves)
            rc = hand_on(&setup, c, &d, out);
    }
    if (rc == TL_OK)
        rc = tl_decode_finish(d);
    tl_decode_free(d);
    tl_setup_fini(&setup);
    return rc;
}

static void captures(void **state)
{
    for (unsigned i = 0; i < 8; i++) {
        struct capture c = {.file = &files[i % 4], .packets = i / 4, .saves = i < 2};
        assert_true(nomem_run(decode, &c) > 5);
    }
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
    file->n = z.total_out;
    deflateEnd(&z);
}

static void pack_xz(const struct tl_buf *plain, struct tl_buf *file)
{
    assert_int_equal(tl_buf_reserve(file, lzma_stream_buffer_bound(plain->n)), TL_OK);
    assert_int_equal(lzma_easy_buffer_encode(1, LZMA_CHECK_CRC32, NULL, plain->p, plain->n, file->p,
                                             &file->n, file->cap),
                     LZMA_OK);
}

static int make(void **state)
{
    put_trace(&files[0]);
    assert_int_equal(copy_records(bytes_of(&files[0]), TL_STF_FILE_ZSTF, false, &files[1]), TL_OK);
    pack_gzip(&files[0], &files[2]);
    pack_xz(&files[0], &files[3]);
    return 0;
}

static int unmake(void **state)
{
    for (unsigned i = 0; i < 4; i++)
        tl_buf_fini(&files[i]);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(written_files), cmocka_unit_test(slices),
        cmocka_unit_test(checked_files), cmocka_unit_test(instructions),
        cmocka_unit_test(packed_chunks), cmocka_unit_test(texts),
        cmocka_unit_test(captures),
    };
    return cmocka_run_group_tests(tests, make, unmake);
}
