/* SPDX-License-Identifier: MIT */
/* Writing: headers, the order of records in groups, refusal without partial output. */
#include "test_stf_util.h"

static const uint8_t word[16] = {1};

static struct tl_stf_record rec(uint8_t type)
{
    struct tl_stf_record r = {.type = type};
    if (type == TL_STF_INST_REG)
        r.reg = (typeof(r.reg)){5, 0x21, {word, 8}};
    if (type == TL_STF_PAGE_TABLE_WALK)
        r.walk.entries = (struct tl_bytes){word, 16};
    return r;
}

static void begin(struct tl_stf_writer *w)
{
    struct tl_buf header = {0};
    struct tl_stf_reader *reader;
    struct tl_stf_record r;
    *w = (struct tl_stf_writer){0};
    put_header(&header);
    assert_int_equal(tl_stf_reader_new(&reader), TL_OK);
    tl_stf_reader_push(reader, bytes_of(&header));
    while (tl_stf_reader_next(reader, &r, NULL) == TL_OK)
        assert_int_equal(tl_stf_writer_put(w, &r, NULL), TL_OK);
    assert_int_equal(w->out.n, header.n);
    assert_memory_equal(w->out.p, header.p, header.n);
    tl_stf_reader_free(reader);
    tl_buf_fini(&header);
}

/* Write a group of these types. Returns the index of the first refused record, or -1. */
static int put_types(struct tl_stf_writer *w, const uint8_t *types, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const struct tl_stf_record r = rec(types[i]);
        struct tl_fail fail = {0};
        const size_t before = w->out.n;
        const int result = tl_stf_writer_put(w, &r, &fail);
        if (result < 0) {
            assert_int_equal(result, TL_USAGE);
            assert_int_equal(w->out.n, before);
            assert_string_not_equal(fail.text, "");
            return (int)i;
        }
    }
    return -1;
}

#define R TL_STF_INST_REG
#define A TL_STF_INST_MEM_ACCESS
#define D TL_STF_INST_MEM_CONTENT
#define P TL_STF_INST_PC_TARGET
#define W TL_STF_PAGE_TABLE_WALK
#define E TL_STF_EVENT
#define T TL_STF_EVENT_PC_TARGET
#define C TL_STF_COMMENT
#define F TL_STF_FORCE_PC
#define I TL_STF_PROCESS_ID_EXT
#define M TL_STF_INST_MICROOP
#define L TL_STF_INST_32
#define S TL_STF_INST_16
#define Y TL_STF_INST_READY_REG
#define B TL_STF_BUS_MASTER_ACCESS
#define K TL_STF_BUS_MASTER_CONTENT
#define X TL_STF_INST_IEM

static void test_group_order(void **state)
{
    (void)state;
    static const struct {
        uint8_t types[12];
        uint8_t n;
        int8_t refused;
    } cases[] = {
        {{L}, 1, -1},
        {{S, L, S}, 3, -1},
        {{
             X,
             I,
             F,
             P,
             R,
             R,
             Y,
             W,
             A,
             D,
             B,
             K,
         },
         12,
         -1},
        {{E, T, M, L}, 4, -1},
        {{A, D, A, D, D, L}, 6, -1}, /* more accesses, each with its contents */
        {{A, L}, 2, 1},              /* no content */
        {{D, L}, 2, 0},              /* no access */
        {{A, C, D, L}, 4, 1},        /* nothing may be between them */
        {{A, F, D, L}, 4, 1},
        {{A, I, D, L}, 4, 1},
        {{A, D, C, F, I, L}, 6, -1}, /* these three may be anywhere else */
        {{P, C, F, L}, 4, -1},
        {{A, D, R, A, D, L}, 6, -1}, /* INST_REG after a content, */
        {{W, R, P, L}, 4, -1},       /* and after a walk; a target after it */
        {{W, P, L}, 3, -1},
        {{A, D, P, L}, 4, 2}, /* but no target after a memory access */
        {{E, A, D, L}, 4, 1}, /* EVENT before memory */
        {{E, P, L}, 3, 1},
        {{E, E, T, L}, 4, -1},
        {{E, T, E, T, L}, 5, -1}, /* events may be repeated */
        {{T, L}, 2, 0},           /* no EVENT before it */
        {{E, C, T, L}, 4, -1},
        {{E, T, T, L}, 4, 2},
        {{M, R, L}, 3, 1},
        {{K, L}, 2, 0},
        {{B, K, B, K, K, L}, 6, -1},
        {{Y, R, L}, 3, 1},
        {{P, X, L}, 3, 1}, /* INST_IEM comes first */
        {{P, P, L}, 3, -1},
        {{E, F, P, F, P, L}, 6, -1}, /* FORCE_PC restarts the order of addresses */
        {{TL_STF_ISA}, 1, 0},        /* header records after the header */
        {{TL_STF_TRACE_INFO}, 1, 0},
        {{TL_STF_TRACE_INFO_FEATURE}, 1, 0},
        {{TL_STF_END_HEADER}, 1, 0},
        {{TL_STF_VERSION}, 1, 0},
        {{TL_STF_IDENTIFIER}, 1, 0},
        {{TL_STF_VLEN_CONFIG}, 1, 0},
        {{TL_STF_ISA_EXTENDED}, 1, 0},
        {{TL_STF_CLOCK_ID}, 1, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct tl_stf_writer w;
        begin(&w);
        assert_int_equal(put_types(&w, cases[i].types, cases[i].n), cases[i].refused);
        tl_stf_writer_fini(&w);
    }
}

/* The fast check of common records agrees with the rules on random groups. */
static void test_quick_check_agrees(void **state)
{
    (void)state;
    static const uint8_t types[] = {R, A, D, P, W, E, T, C, F, I, M, L, S, Y, B, K, X};
    uint64_t seed = rng_seed("quick_check");
    struct tl_stf_writer w;
    begin(&w);
    struct tl_stf_order order = w.order;
    for (int i = 0; i < 100000; i++) {
        const struct tl_stf_record r = rec(types[rng_next(&seed) % sizeof types]);
        struct tl_stf_order next = order;
        const char *rule;
        const int want = tl_stf_order_add(&next, &r, &rule);
        assert_int_equal(tl_stf_writer_put(&w, &r, NULL), want < 0 ? TL_USAGE : TL_OK);
        if (want == TL_OK)
            order = next;
        assert_int_equal(w.order.event, order.event);
        assert_int_equal(w.order.prev, order.prev);
        tl_buf_reset(&w.out);
    }
    tl_stf_writer_fini(&w);
}

/* A header that readers would refuse is refused at the offending record. */
static void test_header_rules(void **state)
{
    (void)state;
    static const uint8_t good[] = {TL_STF_IDENTIFIER, TL_STF_VERSION,    TL_STF_ISA,
                                   TL_STF_INST_IEM,   TL_STF_TRACE_INFO, TL_STF_TRACE_INFO_FEATURE,
                                   TL_STF_FORCE_PC,   TL_STF_END_HEADER};
    struct tl_stf_writer w = {0};
    assert_int_equal(put_types(&w, good, sizeof good), -1);
    assert_int_equal(w.order.header.faults, TL_STF_NO_COMMENT | TL_STF_NO_PROCESS_ID);
    tl_stf_writer_fini(&w);
    for (size_t leave = 0; leave < sizeof good; leave++) {
        uint8_t types[sizeof good + 1];
        size_t n = 0;
        for (size_t i = 0; i < sizeof good; i++) {
            if (i != leave)
                types[n++] = good[i];
        }
        types[n++] = L;
        w = (struct tl_stf_writer){0};
        const int refused = put_types(&w, types, n);
        if (leave == 0)
            assert_int_equal(refused, 0); /* no IDENTIFIER */
        else if (leave == 1)
            assert_int_equal(refused, 1); /* no VERSION */
        else
            assert_int_equal(refused, leave == sizeof good - 1 ? n - 1 : n - 2);
        tl_stf_writer_fini(&w);
    }
    for (size_t twice = 2; twice + 1 < sizeof good; twice++) {
        uint8_t types[sizeof good + 1];
        memcpy(types, good, sizeof good - 1);
        types[sizeof good - 1] = good[twice];
        types[sizeof good] = TL_STF_END_HEADER;
        w = (struct tl_stf_writer){0};
        assert_int_equal(put_types(&w, types, sizeof types),
                         good[twice] == TL_STF_TRACE_INFO ? -1 : (int)sizeof good - 1);
        tl_stf_writer_fini(&w);
    }
    const uint8_t foreign[] = {TL_STF_IDENTIFIER, TL_STF_VERSION, TL_STF_EVENT};
    w = (struct tl_stf_writer){0};
    assert_int_equal(put_types(&w, foreign, 3), 2);
    tl_stf_writer_fini(&w);
}

static void test_header_spec(void **state)
{
    (void)state;
    static const char *const comments[] = {"one", "two"};
    const struct tl_stf_header_spec spec = {.comments = comments,
                                            .n_comments = 2,
                                            .isa = 1,
                                            .iem = 2,
                                            .generator = "maker 4.5.6",
                                            .features = TL_STF_FEATURE_EVENT64,
                                            .pc = 0x80000000,
                                            .tgid = 1,
                                            .tid = 2,
                                            .asid = 3,
                                            .vlen = 256,
                                            .isa_extended = "rv64gcv"};
    struct tl_buf bytes = {0};
    struct tl_stf_layout layout;
    struct listing l;
    assert_int_equal(tl_stf_header_write(&spec, &bytes, &layout), TL_OK);
    assert_true(layout.event64);
    assert_int_equal(layout.vlen, 256);
    list_bytes(bytes_of(&bytes), &l);
    assert_int_equal(tl_buf_add(&l.text, "", 1), TL_OK);
    assert_string_equal((const char *)l.text.p,
                        "0 0 4 IDENTIFIER magic=\"STF\"\n"
                        "1 4 9 VERSION major=1 minor=6\n"
                        "2 13 8 COMMENT len=3 text=\"one\"\n"
                        "3 21 8 COMMENT len=3 text=\"two\"\n"
                        "4 29 3 ISA isa=1\n"
                        "5 32 3 INST_IEM iem=2\n"
                        "6 35 18 TRACE_INFO gen=64 ver=4.5.6 len=11 text=\"maker 4.5.6\"\n"
                        "7 53 9 TRACE_INFO_FEATURE features=0x80000\n"
                        "8 62 13 PROCESS_ID_EXT tgid=1 tid=2 asid=3\n"
                        "9 75 9 FORCE_PC pc=0x80000000\n"
                        "10 84 5 VLEN_CONFIG vlen=256\n"
                        "11 89 12 ISA_EXTENDED len=7 text=\"rv64gcv\"\n"
                        "12 101 1 END_HEADER\n");
    tl_buf_fini(&l.text);
    tl_buf_fini(&bytes);
}

/* The version is 1.3 wherever the records allow it. */
static void test_version(void **state)
{
    (void)state;
    const struct {
        struct tl_stf_header_spec spec;
        uint32_t minor;
    } cases[] = {{{.isa = 1, .iem = 2}, 3},
                 {{.isa = 1, .iem = 2, .vlen = 128}, 4},
                 {{.isa = 1, .iem = 2, .features = TL_STF_FEATURE_EVENT64}, 5},
                 {{.isa = 1, .iem = 2, .isa_extended = "x"}, 6},
                 {{.isa = 1, .iem = 2, .version_minor = 6}, 6}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct tl_buf bytes = {0};
        struct tl_stf_record r;
        const struct tl_stf_layout layout = {0};
        assert_int_equal(tl_stf_header_write(&cases[i].spec, &bytes, NULL), TL_OK);
        assert_int_equal(
            tl_stf_record_decode(&layout, (struct tl_bytes){bytes.p + 4, bytes.n - 4}, &r), 9);
        assert_int_equal(r.version.major, 1);
        assert_int_equal(r.version.minor, cases[i].minor);
        tl_buf_fini(&bytes);
    }
}

static int save(const struct tl_stf_record *records, size_t n,
                const struct tl_stf_out_options *options, struct tl_buf *file)
{
    const struct tl_stf_sink sink = {file, buf_write, buf_rewrite};
    struct tl_stf_out *out;
    int result = TL_OK;
    assert_int_equal(tl_stf_out_new(&out, options, &sink), TL_OK);
    for (size_t i = 0; i < n && result == TL_OK; i++)
        result = tl_stf_out_put(out, &records[i], NULL);
    if (result == TL_OK)
        result = tl_stf_out_finish(out, NULL);
    tl_stf_out_free(out);
    return result;
}

static void test_end_mark_on_request(void **state)
{
    (void)state;
    struct tl_stf_record r[] = {
        rec(TL_STF_IDENTIFIER), rec(TL_STF_VERSION),    rec(TL_STF_ISA),
        rec(TL_STF_INST_IEM),   rec(TL_STF_TRACE_INFO), rec(TL_STF_TRACE_INFO_FEATURE),
        rec(TL_STF_FORCE_PC),   rec(TL_STF_END_HEADER), rec(L)};
    for (int mark = 0; mark < 2; mark++) {
        struct tl_buf file = {0};
        const struct tl_stf_out_options options = {.reserve_end = mark};
        assert_int_equal(save(r, 9, &options, &file), TL_OK);
        assert_int_equal(file.p[file.n - 1], mark ? TL_STF_RESERVE_END : 0);
        tl_buf_fini(&file);
    }
}

static void test_incomplete_files(void **state)
{
    (void)state;
    const struct tl_stf_record r[] = {rec(TL_STF_IDENTIFIER), rec(TL_STF_VERSION)};
    for (uint8_t format = TL_STF_FILE_PLAIN; format <= TL_STF_FILE_ZSTF; format++) {
        struct tl_buf file = {0};
        const struct tl_stf_out_options options = {.format = format};
        assert_int_equal(save(r, 2, &options, &file), TL_USAGE);
        tl_buf_fini(&file);
        const struct tl_stf_out_options anything = {.format = format, .unchecked = true};
        assert_int_equal(save(r, 0, &anything, &file),
                         format == TL_STF_FILE_ZSTF ? TL_USAGE : TL_OK);
        tl_buf_fini(&file);
    }
}

static int full(void *context, const uint8_t *p, size_t n)
{
    (void)context;
    (void)p;
    (void)n;
    return TL_NOSPACE;
}

static void test_full_disk(void **state)
{
    (void)state;
    const struct tl_stf_sink sink = {NULL, full, full};
    const struct tl_stf_out_options options = {.format = TL_STF_FILE_ZSTF, .unchecked = true};
    const struct tl_stf_record r = rec(TL_STF_IDENTIFIER);
    struct tl_stf_out *out;
    assert_int_equal(tl_stf_out_new(&out, &options, &sink), TL_OK);
    assert_int_equal(tl_stf_out_put(out, &r, NULL), TL_OK);
    assert_int_equal(tl_stf_out_finish(out, NULL), TL_NOSPACE);
    tl_stf_out_free(out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_group_order),      cmocka_unit_test(test_quick_check_agrees),
        cmocka_unit_test(test_header_rules),     cmocka_unit_test(test_header_spec),
        cmocka_unit_test(test_version),          cmocka_unit_test(test_end_mark_on_request),
        cmocka_unit_test(test_incomplete_files), cmocka_unit_test(test_full_disk),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
