/* SPDX-License-Identifier: MIT */
/*
 * The container: its layout byte by byte, all of its rules, and common mistakes of other writers.
 */
#include "test_stf_util.h"

#include <lzma.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#define MARKERS 10u

/* A plain trace of `n` instructions with memory accesses and jumps. */
static void put_trace(struct tl_buf *out, unsigned n)
{
    put_header(out);
    for (unsigned i = 0; i < n; i++) {
        if (i % 7 == 6)
            put_record(out, &(struct tl_stf_record){.type = TL_STF_INST_PC_TARGET,
                                                    .target = 0x4000 + 64 * (uint64_t)i});
        if (i % 3 == 0) {
            put_record(out, &(struct tl_stf_record){.type = TL_STF_INST_MEM_ACCESS,
                                                    .access = {i, 8, 0, TL_STF_READ}});
            put_record(out, &(struct tl_stf_record){.type = TL_STF_INST_MEM_CONTENT, .data = i});
        }
        put_insn(out, 0x13 + (i << 7));
    }
}

/* Put the plain trace through tl_stf_out. */
static int save(struct tl_bytes plain, const struct tl_stf_out_options *options,
                struct tl_buf *file, struct tl_fail *fail)
{
    const struct tl_stf_sink sink = {file, buf_write, buf_rewrite};
    struct tl_stf_out *out;
    struct tl_stf_reader *reader;
    struct tl_stf_record record;
    assert_int_equal(tl_stf_out_new(&out, options, &sink), TL_OK);
    assert_int_equal(tl_stf_reader_new(&reader), TL_OK);
    tl_stf_reader_push(reader, plain);
    tl_stf_reader_finish(reader);
    int result = TL_OK;
    while (result == TL_OK && tl_stf_reader_next(reader, &record, NULL) == TL_OK)
        result = tl_stf_out_put(out, &record, fail);
    if (result == TL_OK)
        result = tl_stf_out_finish(out, fail);
    tl_stf_reader_free(reader);
    tl_stf_out_free(out);
    return result;
}

static void unwrap(struct tl_bytes file, struct tl_buf *plain)
{
    struct tl_stf_file *f;
    struct tl_bytes piece;
    assert_int_equal(tl_stf_file_bytes(&f, file, NULL), TL_OK);
    const struct tl_stf_source source = tl_stf_file_source(f);
    tl_buf_reset(plain);
    while (source.next(source.context, &piece, NULL) == TL_OK)
        assert_int_equal(tl_buf_add(plain, piece.p, piece.n), TL_OK);
    tl_stf_file_close(f);
}

static void assert_same(const struct tl_buf *a, const struct tl_buf *b)
{
    assert_int_equal(a->n, b->n);
    assert_memory_equal(a->p, b->p, a->n);
}

/*
 * The file has exactly the bytes that the format specifies, and reading returns the identical plain
 * bytes.
 */
static void test_layout(void **state)
{
    (void)state;
    static const unsigned counts[] = {0, 1, 9, 10, 11, 20, 57};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        const unsigned n = counts[i];
        struct tl_buf plain = {0}, file = {0}, chunk = {0}, back = {0};
        put_trace(&plain, n);
        const struct tl_stf_out_options options = {.format = TL_STF_FILE_ZSTF, .markers = MARKERS};
        assert_int_equal(save(bytes_of(&plain), &options, &file, NULL), TL_OK);

        assert_memory_equal(file.p, "ZSTF", 4);
        assert_int_equal(tl_le64(file.p + 4), MARKERS);
        const uint64_t index = tl_le64(file.p + 12);
        assert_true(index > 20 && index + 8 <= file.n);
        const uint64_t chunks = tl_le64(file.p + index);
        assert_int_equal(chunks, n ? (n + MARKERS - 1) / MARKERS : 1);
        assert_int_equal(index + 8 + 24 * chunks, file.n);
        uint64_t at = 20;
        struct tl_stf_pc pc = {0};
        const struct tl_stf_layout layout = {0};
        for (uint64_t k = 0; k < chunks; k++) {
            const uint8_t *const entry = file.p + index + 8 + 24 * k;
            assert_int_equal(tl_le64(entry), at);
            assert_int_equal(tl_le64(entry + 8), k ? pc.next : 0);
            const uint64_t size = tl_le64(entry + 16);
            const uint64_t end = k + 1 < chunks ? tl_le64(entry + 24) : index;
            assert_int_equal(ZSTD_findFrameCompressedSize(file.p + at, end - at), end - at);
            tl_buf_reset(&chunk);
            assert_int_equal(tl_buf_reserve(&chunk, size), TL_OK);
            assert_int_equal(ZSTD_decompress(chunk.p, size, file.p + at, end - at), size);
            chunk.n = size;
            unsigned markers = 0;
            struct tl_stf_record r = {.type = 0};
            for (struct tl_bytes rest = bytes_of(&chunk); rest.n;) {
                const int bytes = tl_stf_record_decode(&layout, rest, &r);
                assert_true(bytes > 0);
                tl_stf_pc_add(&pc, &r);
                markers += tl_stf_is_marker(r.type);
                rest.p += bytes;
                rest.n -= (size_t)bytes;
            }
            if (k + 1 < chunks) {
                assert_int_equal(markers, MARKERS);
                assert_true(tl_stf_is_marker(r.type));
            }
            at = end;
        }
        assert_int_equal(at, index);
        unwrap(bytes_of(&file), &back);
        assert_same(&back, &plain);
        tl_buf_fini(&plain);
        tl_buf_fini(&file);
        tl_buf_fini(&chunk);
        tl_buf_fini(&back);
    }
}

/* Records after the last marker belong to the last chunk, even if it is full. */
static void test_trailing_records(void **state)
{
    (void)state;
    for (unsigned n = 8; n < 12; n++) {
        struct tl_buf plain = {0}, file = {0}, back = {0};
        put_trace(&plain, n);
        put_record(&plain,
                   &(struct tl_stf_record){.type = TL_STF_COMMENT, .text = text_bytes("the end")});
        const struct tl_stf_out_options options = {.format = TL_STF_FILE_ZSTF, .markers = MARKERS};
        assert_int_equal(save(bytes_of(&plain), &options, &file, NULL), TL_OK);
        unwrap(bytes_of(&file), &back);
        assert_same(&back, &plain);
        tl_buf_fini(&plain);
        tl_buf_fini(&file);
        tl_buf_fini(&back);
    }
}

static void pack(struct tl_bytes plain, struct tl_buf *out)
{
    struct tl_zstf_packer *packer;
    assert_int_equal(tl_zstf_packer_new(&packer, 1), TL_OK);
    assert_int_equal(tl_zstf_pack(packer, plain, out), TL_OK);
    tl_zstf_packer_free(packer);
}

static void test_chunk_rules(void **state)
{
    (void)state;
    struct tl_zstf_writer *w;
    struct tl_buf file = {0};
    uint8_t head[TL_ZSTF_HEAD];
    const struct tl_bytes some = text_bytes("some bytes");
    assert_int_equal(tl_zstf_writer_new(&w, 5, 3), TL_OK);
    assert_int_equal(tl_zstf_writer_begin(w, &file), TL_OK);
    assert_int_equal(tl_le64(file.p + 12), 0);                               /* not complete */
    assert_int_equal(tl_zstf_writer_finish(w, some, &file, head), TL_USAGE); /* no chunk */
    assert_int_equal(tl_zstf_writer_chunk(w, some, 6, 0, &file), TL_USAGE);  /* too long */
    assert_int_equal(tl_zstf_writer_chunk(w, some, 5, 1, &file), TL_OK);
    assert_int_equal(tl_zstf_writer_chunk(w, some, 4, 2, &file), TL_OK); /* the last */
    assert_int_equal(tl_zstf_writer_chunk(w, some, 5, 3, &file), TL_USAGE);
    struct tl_buf frame = {0};
    pack(some, &frame);
    assert_int_equal(tl_zstf_writer_frame(w, bytes_of(&frame), some.n, 1, 3, &file), TL_USAGE);
    assert_int_equal(tl_zstf_writer_finish(w, text_bytes("mine"), &file, head), TL_OK);
    memcpy(file.p, head, sizeof head);

    struct tl_zstf *zstf;
    assert_int_equal(tl_zstf_open_bytes(&zstf, bytes_of(&file), NULL), TL_OK);
    assert_int_equal(tl_zstf_markers(zstf), 5);
    assert_int_equal(tl_zstf_chunks(zstf), 2);
    assert_int_equal(tl_zstf_chunk(zstf, 0)->start_pc, 0);
    assert_int_equal(tl_zstf_chunk(zstf, 1)->start_pc, 2);
    assert_int_equal(file.n, tl_zstf_index(zstf) + 8 + 24 * tl_zstf_chunks(zstf) + 4);
    assert_memory_equal(file.p + file.n - 4, "mine", 4);
    struct tl_buf plain = {0};
    bool odd = false;
    assert_int_equal(tl_zstf_read(zstf, 1, &plain, &odd, NULL), TL_OK);
    assert_false(odd);
    assert_int_equal(plain.n, some.n);
    assert_int_equal(tl_zstf_read(zstf, 2, &plain, &odd, NULL), TL_NOTFOUND);
    tl_zstf_close(zstf);

    /* The writer can be reused, also with chunks compressed elsewhere. */
    tl_buf_reset(&file);
    assert_int_equal(tl_zstf_writer_begin(w, &file), TL_OK);
    assert_int_equal(tl_zstf_writer_frame(w, bytes_of(&frame), some.n, 5, 9, &file), TL_OK);
    assert_int_equal(tl_zstf_writer_finish(w, (struct tl_bytes){0}, &file, head), TL_OK);
    memcpy(file.p, head, sizeof head);
    assert_int_equal(tl_zstf_open_bytes(&zstf, bytes_of(&file), NULL), TL_OK);
    assert_int_equal(tl_zstf_chunks(zstf), 1);
    tl_zstf_close(zstf);
    tl_zstf_writer_free(w);
    tl_buf_fini(&frame);
    tl_buf_fini(&plain);
    tl_buf_fini(&file);
}

/* ---- files of other writers ------------------------------------------------------------------ */

/* A container assembled by hand, with faults. */
struct maker {
    struct tl_buf file;
    struct tl_buf index;
    uint64_t chunks;
};

static void make_begin(struct maker *m)
{
    uint8_t head[TL_ZSTF_HEAD];
    *m = (struct maker){0};
    tl_zstf_head(head, MARKERS, 0);
    assert_int_equal(tl_buf_add(&m->file, head, sizeof head), TL_OK);
}

static void make_frame(struct maker *m, struct tl_bytes plain, bool reported, bool checksum)
{
    ZSTD_CCtx *const c = ZSTD_createCCtx();
    ZSTD_CCtx_setParameter(c, ZSTD_c_contentSizeFlag, reported);
    ZSTD_CCtx_setParameter(c, ZSTD_c_checksumFlag, checksum);
    const size_t bound = ZSTD_compressBound(plain.n);
    assert_int_equal(tl_buf_reserve(&m->file, bound), TL_OK);
    const size_t n = ZSTD_compress2(c, m->file.p + m->file.n, bound, plain.p, plain.n);
    assert_false(ZSTD_isError(n));
    m->file.n += n;
    ZSTD_freeCCtx(c);
}

static void make_entry(struct maker *m, uint64_t offset, uint64_t pc, uint64_t size)
{
    uint8_t entry[24];
    tl_put_le64(entry, offset);
    tl_put_le64(entry + 8, pc);
    tl_put_le64(entry + 16, size);
    assert_int_equal(tl_buf_add(&m->index, entry, 24), TL_OK);
    m->chunks++;
}

static void make_end(struct maker *m)
{
    uint8_t n[8];
    tl_zstf_head(m->file.p, MARKERS, m->file.n);
    tl_put_le64(n, m->chunks);
    assert_int_equal(tl_buf_add(&m->file, n, 8), TL_OK);
    assert_int_equal(tl_buf_add(&m->file, m->index.p, m->index.n), TL_OK);
}

enum {
    NO_SIZE = 1,
    CHECKSUM = 2,
    SKIPPABLE_BEFORE = 4,
    SKIPPABLE_AFTER = 8,
    TWO_FRAMES = 16,
    GAP = 32,
    SIZE_BIG = 64,
    SIZE_SMALL = 128
};

/* Write `plain` in two chunks, with the fault given by `how`. */
static void make(struct maker *m, const struct tl_buf *plain, unsigned how)
{
    static const uint8_t skippable[] = {0x50, 0x2a, 0x4d, 0x18, 3, 0, 0, 0, 'a', 'b', 'c'};
    const size_t half = plain->n / 2;
    make_begin(m);
    for (int i = 0; i < 2; i++) {
        const struct tl_bytes part = {plain->p + (i ? half : 0), i ? plain->n - half : half};
        uint64_t size = part.n;
        size += how & SIZE_BIG ? 100 : 0;
        size -= how & SIZE_SMALL ? 20 : 0;
        make_entry(m, m->file.n, 0, size);
        if (how & SKIPPABLE_BEFORE)
            assert_int_equal(tl_buf_add(&m->file, skippable, sizeof skippable), TL_OK);
        if (how & TWO_FRAMES) {
            make_frame(m, (struct tl_bytes){part.p, 30}, true, false);
            make_frame(m, (struct tl_bytes){part.p + 30, part.n - 30}, true, false);
        } else {
            make_frame(m, part, !(how & NO_SIZE), how & CHECKSUM);
        }
        if (how & SKIPPABLE_AFTER)
            assert_int_equal(tl_buf_add(&m->file, skippable, sizeof skippable), TL_OK);
        if (how & GAP)
            assert_int_equal(tl_buf_add(&m->file, "\0\0gap", 5), TL_OK);
    }
    make_end(m);
}

static void maker_fini(struct maker *m)
{
    tl_buf_fini(&m->file);
    tl_buf_fini(&m->index);
}

static void test_others_containers(void **state)
{
    (void)state;
    static const struct {
        unsigned how;
        bool odd;
    } cases[] = {{0, false},
                 {NO_SIZE, false},
                 {CHECKSUM, false},
                 {NO_SIZE | CHECKSUM, false},
                 {SKIPPABLE_BEFORE, true},
                 {SKIPPABLE_AFTER, true},
                 {TWO_FRAMES, true},
                 {GAP, true},
                 {SIZE_BIG, true},
                 {SIZE_SMALL, true},
                 {SIZE_BIG | NO_SIZE | GAP, true}};
    struct tl_buf plain = {0}, back = {0};
    put_trace(&plain, 50);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct maker m;
        make(&m, &plain, cases[i].how);
        unwrap(bytes_of(&m.file), &back);
        assert_same(&back, &plain);
        struct tl_stf_file *file;
        struct tl_bytes piece;
        assert_int_equal(tl_stf_file_bytes(&file, bytes_of(&m.file), NULL), TL_OK);
        const struct tl_stf_source source = tl_stf_file_source(file);
        while (source.next(source.context, &piece, NULL) == TL_OK)
            ;
        assert_int_equal(tl_stf_file_warning(file) != NULL, cases[i].odd);
        tl_stf_file_close(file);
        maker_fini(&m);
    }
    tl_buf_fini(&plain);
    tl_buf_fini(&back);
}

static void test_bad_index(void **state)
{
    (void)state;
    struct tl_buf plain = {0};
    put_trace(&plain, 50);
    struct maker m;
    make(&m, &plain, 0);
    const uint64_t index = tl_le64(m.file.p + 12);
    const struct {
        size_t at;
        uint64_t value;
        int want;
    } cases[] = {
        {12, 0, TL_EOF},            /* never completed */
        {12, 19, TL_BAD},           /* within the head */
        {12, m.file.n - 7, TL_BAD}, /* no space for the count */
        {12, m.file.n, TL_BAD},
        {12, UINT64_MAX, TL_BAD},
        {4, 0, TL_BAD},     /* empty chunks */
        {index, 0, TL_BAD}, /* no chunks */
        {index, 3, TL_BAD}, /* more than fit */
        {index, UINT64_MAX / 24, TL_BAD},
        {index, UINT64_MAX, TL_BAD},
        {index + 8, 19, TL_BAD},      /* chunk 0 begins inside the head */
        {index + 8, index, TL_BAD},   /* begins after the chunks */
        {index + 8 + 24, 20, TL_BAD}, /* the second does not begin after the first */
        {index + 8 + 24, UINT64_MAX, TL_BAD},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct tl_buf copy = {0};
        struct tl_zstf *zstf;
        struct tl_fail fail = {0};
        assert_int_equal(tl_buf_add(&copy, m.file.p, m.file.n), TL_OK);
        tl_put_le64(copy.p + cases[i].at, cases[i].value);
        assert_int_equal(tl_zstf_open_bytes(&zstf, bytes_of(&copy), &fail), cases[i].want);
        assert_string_not_equal(fail.text, "");
        tl_buf_fini(&copy);
    }
    maker_fini(&m);
    tl_buf_fini(&plain);
}

/* The output of a killed writer can be read from the beginning. */
static void test_not_completed(void **state)
{
    (void)state;
    struct tl_buf plain = {0}, back = {0};
    put_trace(&plain, 50);
    struct maker m;
    make(&m, &plain, 0);
    tl_put_le64(m.file.p + 12, 0);
    unwrap(bytes_of(&m.file), &back);
    assert_same(&back, &plain);
    struct tl_stf_file *file;
    assert_int_equal(tl_stf_file_bytes(&file, bytes_of(&m.file), NULL), TL_OK);
    assert_non_null(tl_stf_file_warning(file));
    assert_null(tl_stf_file_zstf(file));
    tl_stf_file_close(file);
    maker_fini(&m);
    tl_buf_fini(&plain);
    tl_buf_fini(&back);
}

/*
 * If the file is cut or damaged anywhere, reading ends with a result, and all records returned are
 * from the trace.
 */
static void test_cut_and_damage(void **state)
{
    (void)state;
    uint64_t seed = rng_seed("cut_and_damage");
    struct tl_buf plain = {0}, file = {0};
    struct listing whole;
    put_trace(&plain, 57);
    list_bytes(bytes_of(&plain), &whole);
    const struct tl_stf_out_options options = {.format = TL_STF_FILE_ZSTF, .markers = MARKERS};
    assert_int_equal(save(bytes_of(&plain), &options, &file, NULL), TL_OK);
    for (size_t cut = 0; cut < file.n; cut++) {
        struct listing l;
        list_bytes((struct tl_bytes){file.p, cut}, &l);
        assert_true(l.result < 0);
        assert_true(l.text.n <= whole.text.n);
        if (l.text.n)
            assert_memory_equal(l.text.p, whole.text.p, l.text.n);
        tl_buf_fini(&l.text);
    }
    for (int round = 0; round < 2000; round++) {
        struct tl_buf copy = {0};
        struct listing l;
        assert_int_equal(tl_buf_add(&copy, file.p, file.n), TL_OK);
        for (uint64_t flips = 1 + rng_next(&seed) % 3; flips; flips--)
            copy.p[rng_next(&seed) % copy.n] ^= (uint8_t)(1 << rng_next(&seed) % 8);
        list_bytes(bytes_of(&copy), &l);
        assert_true(l.result < 0);
        tl_buf_fini(&l.text);
        tl_buf_fini(&copy);
    }
    tl_buf_fini(&whole.text);
    tl_buf_fini(&plain);
    tl_buf_fini(&file);
}

/* ---- compressed wrappers --------------------------------------------------------------------- */

static void gzip(const struct tl_buf *plain, struct tl_buf *out)
{
    z_stream z = {0};
    assert_int_equal(deflateInit2(&z, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
    const size_t bound = deflateBound(&z, plain->n);
    assert_int_equal(tl_buf_reserve(out, bound), TL_OK);
    z.next_in = plain->p;
    z.avail_in = (uInt)plain->n;
    z.next_out = out->p + out->n;
    z.avail_out = (uInt)bound;
    assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
    out->n += bound - z.avail_out;
    deflateEnd(&z);
}

static void xz(const struct tl_buf *plain, struct tl_buf *out)
{
    const size_t bound = lzma_stream_buffer_bound(plain->n);
    assert_int_equal(tl_buf_reserve(out, bound), TL_OK);
    size_t at = 0;
    assert_int_equal(lzma_easy_buffer_encode(0, LZMA_CHECK_CRC32, NULL, plain->p, plain->n,
                                             out->p + out->n, &at, bound),
                     LZMA_OK);
    out->n += at;
}

static void zst(const struct tl_buf *plain, struct tl_buf *out)
{
    pack(bytes_of(plain), out);
}

/* Compress as pzstd does: a skippable frame before each frame. */
static void pzst(const struct tl_buf *plain, struct tl_buf *out)
{
    static const uint8_t skippable[] = {0x50, 0x2a, 0x4d, 0x18, 4, 0, 0, 0, 1, 2, 3, 4};
    const struct tl_bytes all = bytes_of(plain);
    const size_t half = all.n / 2;
    assert_int_equal(tl_buf_add(out, skippable, sizeof skippable), TL_OK);
    pack((struct tl_bytes){all.p, half}, out);
    assert_int_equal(tl_buf_add(out, skippable, sizeof skippable), TL_OK);
    pack((struct tl_bytes){all.p + half, all.n - half}, out);
}

/* Unpack in pieces of `step` bytes. */
static int unpack_in_steps(const struct tl_buf *file, size_t step, struct tl_buf *out,
                           struct tl_fail *fail)
{
    struct tl_stf_unpack *u;
    int result = TL_OK;
    assert_int_equal(tl_stf_unpack_new(&u), TL_OK);
    for (size_t i = 0; i < file->n && result == TL_OK; i += step) {
        struct tl_bytes in = {file->p + i, file->n - i < step ? file->n - i : step};
        size_t before;
        do {
            before = out->n;
            result = tl_stf_unpack_push(u, &in, out, fail);
        } while (result == TL_OK && (in.n || out->n > before));
    }
    if (result == TL_OK)
        result = tl_stf_unpack_finish(u, fail);
    tl_stf_unpack_free(u);
    return result;
}

static void test_wrappings(void **state)
{
    (void)state;
    static void (*const wraps[])(const struct tl_buf *, struct tl_buf *) = {gzip, xz, zst, pzst};
    static const int kinds[] = {TL_STF_GZIP, TL_STF_XZ, TL_STF_ZSTD, TL_STF_ZSTD};
    struct tl_buf plain = {0};
    put_trace(&plain, 30000); /* more than one piece */
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        struct tl_buf file = {0}, back = {0};
        wraps[i](&plain, &file);
        assert_int_equal(tl_stf_sniff(bytes_of(&file)), kinds[i]);
        unwrap(bytes_of(&file), &back);
        assert_same(&back, &plain);
        static const size_t steps[] = {1, 7, 4096};
        for (size_t k = 0; k < 3; k++) {
            tl_buf_reset(&back);
            assert_int_equal(unpack_in_steps(&file, steps[k], &back, NULL), TL_OK);
            assert_same(&back, &plain);
        }
        struct tl_buf cut = {.p = file.p, .n = file.n - 9, .cap = file.cap};
        struct tl_fail fail;
        tl_buf_reset(&back);
        assert_int_equal(unpack_in_steps(&cut, 4096, &back, &fail), TL_BAD);
        tl_buf_fini(&file);
        tl_buf_fini(&back);
    }
    tl_buf_fini(&plain);
    /* A window of 2 GiB, which would have to be kept in memory. */
    static uint8_t wide[] = {0x28, 0xb5, 0x2f, 0xfd, 0, 21 << 3, 1, 0, 0};
    const struct tl_buf frame = {.p = wide, .n = sizeof wide, .cap = sizeof wide};
    struct tl_buf none = {0};
    struct tl_fail why;
    assert_int_equal(unpack_in_steps(&frame, 4096, &none, &why), TL_BAD);
    assert_non_null(strstr(why.text, "larger than 128 MiB"));
    tl_buf_fini(&none);
}

/* .zstf and plain STF through the unpacker in pieces, as from a pipe. */
static void test_streamed(void **state)
{
    (void)state;
    struct tl_buf plain = {0}, file = {0}, back = {0};
    put_trace(&plain, 57);
    const struct tl_stf_out_options options = {.format = TL_STF_FILE_ZSTF, .markers = MARKERS};
    assert_int_equal(save(bytes_of(&plain), &options, &file, NULL), TL_OK);
    assert_int_equal(tl_buf_add(&file, "private bytes behind", 20), TL_OK);
    for (size_t step = 1; step < 300; step += 13) {
        tl_buf_reset(&back);
        assert_int_equal(unpack_in_steps(&file, step, &back, NULL), TL_OK);
        assert_same(&back, &plain);
        tl_buf_reset(&back);
        assert_int_equal(unpack_in_steps(&plain, step, &back, NULL), TL_OK);
        assert_same(&back, &plain);
    }
    struct tl_fail fail;
    const struct tl_buf cut = {.p = file.p, .n = (size_t)tl_le64(file.p + 12) - 1};
    tl_buf_reset(&back);
    assert_int_equal(unpack_in_steps(&cut, 100, &back, &fail), TL_BAD);
    tl_buf_fini(&plain);
    tl_buf_fini(&file);
    tl_buf_fini(&back);
}

/* Files by path: written, read back, removed if unfinished. */
static void test_files(void **state)
{
    (void)state;
    char dir[] = "/tmp/tl-stf-XXXXXX";
    assert_non_null(mkdtemp(dir));
    static const char *const names[] = {"a.zstf", "b.stf"};
    for (size_t i = 0; i < 2; i++) {
        char path[64];
        struct tl_buf plain = {0};
        struct tl_stf_save *out;
        struct tl_stf_reader *reader;
        struct tl_stf_record record;
        struct listing want, got;
        snprintf(path, sizeof path, "%s/%s", dir, names[i]);
        put_trace(&plain, 500);
        list_bytes(bytes_of(&plain), &want);
        assert_int_equal(tl_stf_save_new(&out, path, NULL, NULL), TL_OK);
        assert_int_equal(tl_stf_reader_new(&reader), TL_OK);
        tl_stf_reader_push(reader, bytes_of(&plain));
        tl_stf_reader_finish(reader);
        while (tl_stf_reader_next(reader, &record, NULL) == TL_OK)
            assert_int_equal(tl_stf_out_put(tl_stf_save_out(out), &record, NULL), TL_OK);
        tl_stf_reader_free(reader);
        assert_int_equal(access(path, F_OK), -1);
        assert_int_equal(tl_stf_save_finish(out, NULL), TL_OK);
        tl_stf_save_free(out);

        struct tl_stf_file *file;
        assert_int_equal(tl_stf_file_open(&file, path, NULL), TL_OK);
        assert_int_equal(tl_stf_file_wrap(file), i ? TL_STF_PLAIN : TL_STF_ZSTF);
        const struct tl_stf_source source = tl_stf_file_source(file);
        list_source(&source, &got);
        assert_int_equal(got.result, TL_EOF);
        assert_same(&got.text, &want.text);
        tl_stf_file_close(file);
        unlink(path);

        assert_int_equal(tl_stf_save_new(&out, path, NULL, NULL), TL_OK);
        tl_stf_save_free(out);
        assert_int_equal(tl_stf_file_open(&file, path, NULL), TL_IO);
        tl_buf_fini(&plain);
        tl_buf_fini(&want.text);
        tl_buf_fini(&got.text);
    }
    assert_int_equal(rmdir(dir), 0); /* no file is left */
}

/* Chunks too large to be kept in memory at once are streamed, beginning with any chunk. */
static void test_large_chunks(void **state)
{
    (void)state;
    const uint64_t markers = 3500000, n = 3 * markers + 1000; /* 17.5 MB in each */
    const struct tl_stf_out_options options = {.format = TL_STF_FILE_ZSTF, .markers = markers};
    struct tl_buf file = {0}, header = {0};
    const struct tl_stf_sink sink = {&file, buf_write, buf_rewrite};
    struct tl_stf_out *out;
    struct tl_stf_reader *reader;
    struct tl_stf_record r;
    assert_int_equal(tl_stf_out_new(&out, &options, &sink), TL_OK);
    put_header(&header);
    assert_int_equal(tl_stf_reader_new(&reader), TL_OK);
    tl_stf_reader_push(reader, bytes_of(&header));
    while (tl_stf_reader_next(reader, &r, NULL) == TL_OK)
        assert_int_equal(tl_stf_out_put(out, &r, NULL), TL_OK);
    tl_stf_reader_free(reader);
    for (uint64_t i = 0; i < n; i++) {
        r = (struct tl_stf_record){.type = TL_STF_INST_32, .opcode = (uint32_t)(i * 16) | 3};
        assert_int_equal(tl_stf_out_put(out, &r, NULL), TL_OK);
    }
    assert_int_equal(tl_stf_out_finish(out, NULL), TL_OK);
    tl_stf_out_free(out);

    struct tl_stf_file *f;
    struct tl_stf_insns *s;
    struct tl_stf_insn insn;
    assert_int_equal(tl_stf_file_bytes(&f, bytes_of(&file), NULL), TL_OK);
    const struct tl_stf_source source = tl_stf_file_source(f);
    assert_non_null(source.seek);
    assert_int_equal(tl_stf_insns_open(&s, &source), TL_OK);
    const uint64_t places[] = {n - 1, markers, 2 * markers - 1, 0, 3 * markers, markers + 70000};
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        assert_int_equal(tl_stf_insns_seek(s, places[i], NULL), TL_OK);
        assert_int_equal(tl_stf_insns_read(s, &insn, 1, NULL), 1);
        assert_int_equal(insn.pc, 0x1000 + 4 * places[i]);
        assert_int_equal(insn.opcode, (uint32_t)(places[i] * 16) | 3);
    }
    assert_int_equal(tl_stf_insns_seek(s, n, NULL), TL_OK);
    assert_int_equal(tl_stf_insns_read(s, &insn, 1, NULL), TL_EOF);
    assert_int_equal(tl_stf_insns_seek(s, n + 1, NULL), TL_NOTFOUND);
    tl_stf_insns_free(s);
    tl_stf_file_close(f);
    tl_buf_fini(&file);
    tl_buf_fini(&header);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_large_chunks),
        cmocka_unit_test(test_layout),
        cmocka_unit_test(test_trailing_records),
        cmocka_unit_test(test_chunk_rules),
        cmocka_unit_test(test_others_containers),
        cmocka_unit_test(test_bad_index),
        cmocka_unit_test(test_not_completed),
        cmocka_unit_test(test_cut_and_damage),
        cmocka_unit_test(test_wrappings),
        cmocka_unit_test(test_streamed),
        cmocka_unit_test(test_files),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
