/* SPDX-License-Identifier: MIT */
/* Reading: header rules, any chunking, truncation, the end mark, unreadable input. */
#include "test_stf_util.h"

static struct tl_stf_record rec(uint8_t type)
{
    return (struct tl_stf_record){.type = type};
}

/* The records of a header, which tests omit, repeat or move. */
static size_t header_records(struct tl_stf_record *out)
{
    size_t n = 0;
    out[n++] = rec(TL_STF_IDENTIFIER);
    out[n] = rec(TL_STF_VERSION);
    out[n].version.major = 1;
    out[n++].version.minor = 3;
    out[n] = rec(TL_STF_COMMENT);
    out[n++].text = text_bytes("made by a test");
    out[n] = rec(TL_STF_ISA);
    out[n++].isa = 1;
    out[n] = rec(TL_STF_INST_IEM);
    out[n++].iem = 2;
    out[n] = rec(TL_STF_TRACE_INFO);
    out[n++].info.text = text_bytes("test");
    out[n] = rec(TL_STF_TRACE_INFO_FEATURE);
    out[n++].features = 0;
    out[n] = rec(TL_STF_PROCESS_ID_EXT);
    out[n++].process.tgid = 7;
    out[n] = rec(TL_STF_FORCE_PC);
    out[n++].pc = 0x1000;
    out[n++] = rec(TL_STF_END_HEADER);
    return n;
}

static void put_all(struct tl_buf *out, const struct tl_stf_record *records, size_t n)
{
    for (size_t i = 0; i < n; i++)
        put_record(out, &records[i]);
}

static unsigned faults_of(const struct tl_stf_record *records, size_t n, uint64_t insns)
{
    struct tl_buf bytes = {0};
    struct listing l;
    put_all(&bytes, records, n);
    put_insn(&bytes, 0x13);
    list_bytes(bytes_of(&bytes), &l);
    assert_int_equal(l.result, TL_EOF);
    assert_int_equal(l.insns, insns);
    tl_buf_fini(&l.text);
    tl_buf_fini(&bytes);
    return l.faults;
}

static void test_whole_header(void **state)
{
    (void)state;
    struct tl_stf_record records[16];
    const size_t n = header_records(records);
    assert_int_equal(faults_of(records, n, 1), 0);
}

/* Each mandatory record is omitted once. */
static void test_missing(void **state)
{
    (void)state;
    static const struct {
        uint8_t type;
        unsigned fault;
    } cases[] = {
        {TL_STF_COMMENT, TL_STF_NO_COMMENT},
        {TL_STF_ISA, TL_STF_NO_ISA},
        {TL_STF_INST_IEM, TL_STF_NO_IEM},
        {TL_STF_TRACE_INFO, TL_STF_NO_TRACE_INFO},
        {TL_STF_TRACE_INFO_FEATURE, TL_STF_NO_FEATURE},
        {TL_STF_PROCESS_ID_EXT, TL_STF_NO_PROCESS_ID},
        {TL_STF_FORCE_PC, TL_STF_NO_FORCE_PC},
        {TL_STF_END_HEADER, TL_STF_NO_END},
        {TL_STF_VERSION, TL_STF_NO_VERSION},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct tl_stf_record all[16], some[16];
        const size_t n = header_records(all);
        size_t kept = 0;
        for (size_t k = 0; k < n; k++) {
            if (all[k].type != cases[i].type)
                some[kept++] = all[k];
        }
        assert_int_equal(faults_of(some, kept, 1), cases[i].fault);
        assert_string_not_equal(tl_stf_header_fault_text(cases[i].fault), "?");
    }
}

/* Each record twice: only COMMENT and TRACE_INFO may be repeated. */
static void test_repeated(void **state)
{
    (void)state;
    struct tl_stf_record all[24];
    size_t n = header_records(all);
    all[n - 1] = rec(TL_STF_VLEN_CONFIG);
    all[n++ - 1].vlen = 128;
    all[n - 1] = rec(TL_STF_ISA_EXTENDED);
    all[n++ - 1].text = text_bytes("rv64gc");
    all[n - 1] = rec(TL_STF_END_HEADER);
    for (size_t i = 1; i + 1 < n; i++) {
        struct tl_stf_record twice[24];
        size_t m = 0;
        for (size_t k = 0; k < n; k++) {
            if (k == n - 1)
                twice[m++] = all[i];
            twice[m++] = all[k];
        }
        const unsigned faults = faults_of(twice, m, 1);
        const bool may = all[i].type == TL_STF_COMMENT || all[i].type == TL_STF_TRACE_INFO;
        if (all[i].type == TL_STF_ISA)
            assert_int_equal(faults, TL_STF_REPEATED | TL_STF_ORDER);
        else
            assert_int_equal(faults, may ? 0 : TL_STF_REPEATED);
    }
}

/* Any order between VERSION and END_HEADER is legal, except that ISA comes before INST_IEM. */
static void test_any_order(void **state)
{
    (void)state;
    uint64_t seed = rng_seed("any_order");
    for (int round = 0; round < 200; round++) {
        struct tl_stf_record r[16];
        const size_t n = header_records(r);
        for (size_t i = n - 2; i > 2; i--) {
            const size_t k = 2 + rng_next(&seed) % (i - 1);
            const struct tl_stf_record swap = r[i];
            r[i] = r[k];
            r[k] = swap;
        }
        size_t isa = 0, iem = 0;
        for (size_t i = 0; i < n; i++) {
            isa = r[i].type == TL_STF_ISA ? i : isa;
            iem = r[i].type == TL_STF_INST_IEM ? i : iem;
        }
        assert_int_equal(faults_of(r, n, 1), isa < iem ? 0 : TL_STF_ORDER);
    }
}

static void test_foreign_record_in_header(void **state)
{
    (void)state;
    static const uint8_t types[] = {TL_STF_EVENT,           TL_STF_EVENT_PC_TARGET,
                                    TL_STF_INST_PC_TARGET,  TL_STF_INST_READY_REG,
                                    TL_STF_INST_MEM_ACCESS, TL_STF_INST_MEM_CONTENT,
                                    TL_STF_INST_MICROOP,    TL_STF_BUS_MASTER_ACCESS,
                                    TL_STF_PAGE_TABLE_WALK, TL_STF_TRANSACTION_DEPENDENCY};
    for (size_t i = 0; i < sizeof types; i++) {
        struct tl_stf_record r[16];
        const size_t n = header_records(r);
        r[n - 1] = rec(types[i]);
        r[n] = rec(TL_STF_END_HEADER);
        assert_int_equal(faults_of(r, n + 1, 1), TL_STF_FOREIGN);
    }
}

static void test_transaction_header(void **state)
{
    (void)state;
    struct tl_buf bytes = {0};
    struct listing l;
    struct tl_stf_record r[] = {rec(TL_STF_IDENTIFIER),
                                rec(TL_STF_VERSION),
                                rec(TL_STF_COMMENT),
                                rec(TL_STF_TRACE_INFO),
                                rec(TL_STF_TRACE_INFO_FEATURE),
                                rec(TL_STF_PROTOCOL_ID),
                                rec(TL_STF_CLOCK_ID),
                                rec(TL_STF_END_HEADER)};
    r[4].features = TL_STF_FEATURE_TRANSACTIONS;
    r[5].protocol = 1;
    put_all(&bytes, r, 8);
    list_bytes(bytes_of(&bytes), &l);
    assert_int_equal(l.result, TL_EOF);
    assert_int_equal(l.faults, 0);
    tl_buf_fini(&l.text);
    tl_buf_reset(&bytes);
    put_all(&bytes, r, 7);
    put_record(&bytes, &(struct tl_stf_record){.type = TL_STF_ISA, .isa = 1});
    put_all(&bytes, r + 7, 1);
    list_bytes(bytes_of(&bytes), &l);
    assert_int_equal(l.faults, TL_STF_MIXED);
    tl_buf_fini(&l.text);
    tl_buf_fini(&bytes);
}

static void test_not_stf(void **state)
{
    (void)state;
    static const char *const wrong[] = {
        "", "x", "hello, this is no trace", "\2\1\0\0\0\3\0\0\0", "\1STG", "\1ST"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct tl_stf_reader *reader;
        struct tl_stf_record record;
        struct tl_fail fail;
        assert_int_equal(tl_stf_reader_new(&reader), TL_OK);
        tl_stf_reader_push(reader, text_bytes(wrong[i]));
        tl_stf_reader_finish(reader);
        assert_int_equal(tl_stf_reader_next(reader, &record, &fail), TL_BAD);
        assert_int_equal(fail.offset, 0);
        assert_int_equal(tl_stf_reader_next(reader, &record, &fail), TL_BAD); /* final */
        tl_stf_reader_free(reader);
    }
}

/* A trace with records of all kinds. */
static void put_trace(struct tl_buf *out)
{
    static const uint8_t words[32] = {3, 0, 0, 0, 0, 0, 0, 0, 9};
    put_header(out);
    for (int i = 0; i < 40; i++) {
        if (i % 5 == 0)
            put_record(out,
                       &(struct tl_stf_record){.type = TL_STF_COMMENT,
                                               .text = text_bytes("a comment of some length")});
        if (i % 7 == 0)
            put_record(out,
                       &(struct tl_stf_record){.type = TL_STF_PROCESS_ID_EXT, .process.tid = i});
        if (i % 3 == 0)
            put_record(out, &(struct tl_stf_record){.type = TL_STF_INST_PC_TARGET,
                                                    .target = 0x2000 + 16 * (uint64_t)i});
        if (i % 2)
            put_record(out, &(struct tl_stf_record){.type = TL_STF_INST_REG,
                                                    .reg = {5, 0x21, {words, 8}}});
        if (i % 11 == 0)
            put_record(out, &(struct tl_stf_record){.type = TL_STF_PAGE_TABLE_WALK,
                                                    .walk.entries = {words, 32}});
        put_record(out, &(struct tl_stf_record){.type = TL_STF_INST_MEM_ACCESS,
                                                .access = {0x8000, 8, 0, 1}});
        put_record(out, &(struct tl_stf_record){.type = TL_STF_INST_MEM_CONTENT, .data = 5});
        if (i % 13 == 0)
            put_record(out,
                       &(struct tl_stf_record){.type = TL_STF_EVENT,
                                               .event = {TL_STF_EVENT_MODE_CHANGE, {words, 8}}});
        if (i % 4)
            put_insn(out, 0x13);
        else
            put_record(out, &(struct tl_stf_record){.type = TL_STF_INST_16, .opcode = 1});
    }
}

static void test_any_chunking(void **state)
{
    (void)state;
    uint64_t seed = rng_seed("any_chunking");
    struct tl_buf bytes = {0};
    struct listing whole;
    put_trace(&bytes);
    list_bytes(bytes_of(&bytes), &whole);
    assert_int_equal(whole.result, TL_EOF);
    assert_int_equal(whole.insns, 40);
    for (size_t most = 1; most < 200; most += most < 40 ? 1 : 17) {
        struct pieces pieces = {bytes_of(&bytes), most, rng_next(&seed), {0}};
        const struct tl_stf_source source = {&pieces, pieces_next, NULL};
        struct listing l;
        list_source(&source, &l);
        assert_int_equal(l.result, TL_EOF);
        assert_int_equal(l.text.n, whole.text.n);
        assert_memory_equal(l.text.p, whole.text.p, whole.text.n);
        tl_buf_fini(&l.text);
        tl_buf_fini(&pieces.copy);
    }
    tl_buf_fini(&whole.text);
    tl_buf_fini(&bytes);
}

/* Cut at every byte, the trace gives a prefix of its records and nothing else. */
static void test_cut_anywhere(void **state)
{
    (void)state;
    struct tl_buf bytes = {0};
    struct listing whole;
    put_trace(&bytes);
    list_bytes(bytes_of(&bytes), &whole);
    for (size_t cut = 4; cut < bytes.n; cut++) {
        struct listing l;
        list_bytes((struct tl_bytes){bytes.p, cut}, &l);
        assert_true(l.result == TL_EOF || l.result == TL_BAD);
        assert_true(l.text.n <= whole.text.n);
        assert_memory_equal(l.text.p, whole.text.p, l.text.n);
        if (l.result == TL_BAD) {
            assert_true(l.fail.offset <= cut);
            assert_non_null(strstr(l.fail.text, "ends"));
        }
        tl_buf_fini(&l.text);
    }
    tl_buf_fini(&whole.text);
    tl_buf_fini(&bytes);
}

static void test_reserve_end(void **state)
{
    (void)state;
    struct tl_buf bytes = {0};
    struct listing l;
    put_header(&bytes);
    put_insn(&bytes, 1);
    put_record(&bytes, &(struct tl_stf_record){.type = TL_STF_RESERVE_END});
    assert_int_equal(tl_buf_add(&bytes, "\0garbage", 8), TL_OK);
    list_bytes(bytes_of(&bytes), &l);
    assert_int_equal(l.result, TL_EOF);
    assert_int_equal(l.insns, 1);
    assert_non_null(strstr((const char *)l.text.p, "RESERVE_END"));
    tl_buf_fini(&l.text);
    tl_buf_fini(&bytes);
}

static void test_unknown_descriptor(void **state)
{
    (void)state;
    for (unsigned type = 0; type < 256; type++) {
        if (tl_stf_type_known((uint8_t)type))
            continue;
        struct tl_buf bytes = {0};
        struct listing l;
        const uint8_t byte = (uint8_t)type;
        put_header(&bytes);
        put_insn(&bytes, 1);
        const size_t at = bytes.n;
        assert_int_equal(tl_buf_add(&bytes, &byte, 1), TL_OK);
        put_insn(&bytes, 2);
        list_bytes(bytes_of(&bytes), &l);
        assert_int_equal(l.result, TL_BAD);
        assert_int_equal(l.fail.offset, at);
        assert_int_equal(l.insns, 1);
        tl_buf_fini(&l.text);
        tl_buf_fini(&bytes);
    }
}

/* Reading damaged input always ends with a result. */
static void test_damage(void **state)
{
    (void)state;
    uint64_t seed = rng_seed("damage");
    struct tl_buf bytes = {0};
    put_trace(&bytes);
    for (int round = 0; round < 3000; round++) {
        struct tl_buf copy = {0};
        assert_int_equal(tl_buf_add(&copy, bytes.p, bytes.n), TL_OK);
        for (uint64_t flips = 1 + rng_next(&seed) % 8; flips; flips--)
            copy.p[rng_next(&seed) % copy.n] ^= (uint8_t)(1 << rng_next(&seed) % 8);
        struct pieces pieces = {{copy.p, rng_next(&seed) % (copy.n + 1)}, 64, seed, {0}};
        const struct tl_stf_source source = {&pieces, pieces_next, NULL};
        struct listing l;
        list_source(&source, &l);
        assert_true(l.result < 0);
        tl_buf_fini(&l.text);
        tl_buf_fini(&pieces.copy);
        tl_buf_fini(&copy);
    }
    tl_buf_fini(&bytes);
}

/* The last FORCE_PC and the last target win. */
static void test_pc_tracking(void **state)
{
    (void)state;
    struct tl_stf_pc pc = {0};
    struct tl_stf_record force = rec(TL_STF_FORCE_PC), target = rec(TL_STF_INST_PC_TARGET),
                         event = rec(TL_STF_EVENT_PC_TARGET), wide = rec(TL_STF_INST_32),
                         narrow = rec(TL_STF_INST_16);
    force.pc = 0x100;
    tl_stf_pc_add(&pc, &force);
    force.pc = 0x200;
    tl_stf_pc_add(&pc, &force);
    assert_int_equal(tl_stf_pc_add(&pc, &wide), 0x200);
    assert_int_equal(tl_stf_pc_add(&pc, &narrow), 0x204);
    target.target = 0x300;
    event.target = 0x400;
    tl_stf_pc_add(&pc, &target);
    tl_stf_pc_add(&pc, &event);
    assert_int_equal(tl_stf_pc_add(&pc, &narrow), 0x206);
    assert_int_equal(tl_stf_pc_add(&pc, &narrow), 0x400);
    tl_stf_pc_add(&pc, &target);
    tl_stf_pc_add(&pc, &force); /* for this instruction; the target for the next */
    assert_int_equal(tl_stf_pc_add(&pc, &wide), 0x200);
    assert_int_equal(tl_stf_pc_add(&pc, &wide), 0x300);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_whole_header),
        cmocka_unit_test(test_missing),
        cmocka_unit_test(test_repeated),
        cmocka_unit_test(test_any_order),
        cmocka_unit_test(test_foreign_record_in_header),
        cmocka_unit_test(test_transaction_header),
        cmocka_unit_test(test_not_stf),
        cmocka_unit_test(test_any_chunking),
        cmocka_unit_test(test_cut_anywhere),
        cmocka_unit_test(test_reserve_end),
        cmocka_unit_test(test_unknown_descriptor),
        cmocka_unit_test(test_damage),
        cmocka_unit_test(test_pc_tracking),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
