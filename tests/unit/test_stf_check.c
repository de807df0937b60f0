/* SPDX-License-Identifier: MIT */
/* Each rule of `tracelake check` is reported where it is violated, and nowhere else. */
#include "test_stf_util.h"

#include "stf/tools/check.h"

struct found {
    struct tl_stf_finding list[64];
    size_t n;
};

static int keep(void *context, const struct tl_stf_finding *finding)
{
    struct found *const f = context;
    if (f->n < 64)
        f->list[f->n++] = *finding;
    return TL_OK;
}

static void check_bytes(struct tl_bytes bytes, struct found *f)
{
    struct tl_stf_checker *checker;
    struct tl_stf_reader *reader;
    struct tl_stf_record record;
    f->n = 0;
    assert_int_equal(tl_stf_checker_new(&checker, keep, f), TL_OK);
    assert_int_equal(tl_stf_reader_new(&reader), TL_OK);
    tl_stf_reader_push(reader, bytes);
    tl_stf_reader_finish(reader);
    while (tl_stf_reader_next(reader, &record, NULL) == TL_OK)
        assert_int_equal(tl_stf_checker_add(checker, &record), TL_OK);
    assert_int_equal(tl_stf_checker_finish(checker), TL_OK);
    tl_stf_checker_free(checker);
    tl_stf_reader_free(reader);
}

/* The finding of a rule, or NULL; `others` counts the errors and warnings of other rules. */
static const struct tl_stf_finding *finding(const struct found *f, const char *rule, size_t *others)
{
    const struct tl_stf_finding *found = NULL;
    *others = 0;
    for (size_t i = 0; i < f->n; i++) {
        if (strcmp(f->list[i].rule, rule) == 0)
            found = found ? found : &f->list[i];
        else
            *others += f->list[i].severity != TL_STF_NOTE;
    }
    return found;
}

static const uint8_t words[64] = {9};
static const uint8_t level[8] = {3};

/* Records that break one rule, inserted into a valid trace after its first instruction. */
static const struct {
    const char *rule;
    uint8_t severity;
    uint8_t at; /* index of the record that breaks it */
    struct tl_stf_record records[3];
} cases[] = {
    {"group-order", TL_STF_ERROR, 0, {{.type = TL_STF_INST_MEM_CONTENT}}},
    {"group-order", TL_STF_ERROR, 0, {{.type = TL_STF_EVENT_PC_TARGET}}},
    {"group-order", TL_STF_ERROR, 0, {{.type = TL_STF_ISA, .isa = 1}}},
    {"record-order",
     TL_STF_ERROR,
     1,
     {{.type = TL_STF_INST_READY_REG}, {.type = TL_STF_INST_REG, .reg = {1, 0x21, {words, 8}}}}},
    {"iem-value", TL_STF_ERROR, 0, {{.type = TL_STF_INST_IEM, .iem = 3}}},
    {"pc-odd", TL_STF_ERROR, 0, {{.type = TL_STF_INST_PC_TARGET, .target = 0x1001}}},
    {"pc-odd", TL_STF_ERROR, 0, {{.type = TL_STF_FORCE_PC, .pc = 0x1001}}},
    {"reg-type", TL_STF_ERROR, 0, {{.type = TL_STF_INST_REG, .reg = {1, 0x25, {words, 8}}}}},
    {"reg-type", TL_STF_ERROR, 0, {{.type = TL_STF_INST_REG, .reg = {1, 0x20, {words, 8}}}}},
    {"reg-operand", TL_STF_ERROR, 0, {{.type = TL_STF_INST_REG, .reg = {1, 0x01, {words, 8}}}}},
    {"reg-reserved", TL_STF_ERROR, 0, {{.type = TL_STF_INST_REG, .reg = {1, 0x61, {words, 8}}}}},
    {"reg-number", TL_STF_WARNING, 0, {{.type = TL_STF_INST_REG, .reg = {33, 0x21, {words, 8}}}}},
    {"reg-number", TL_STF_WARNING, 0, {{.type = TL_STF_INST_REG, .reg = {32, 0x22, {words, 8}}}}},
    {"reg-number",
     TL_STF_WARNING,
     0,
     {{.type = TL_STF_INST_REG, .reg = {0x1000, 0x24, {words, 8}}}}},
    {"vlen-missing", TL_STF_WARNING, 0, {{.type = TL_STF_INST_REG, .reg = {1, 0x23, {words, 8}}}}},
    {"walk-empty",
     TL_STF_WARNING,
     0,
     {{.type = TL_STF_PAGE_TABLE_WALK, .walk = {.page_size = 4096}}}},
    {"walk-page",
     TL_STF_WARNING,
     0,
     {{.type = TL_STF_PAGE_TABLE_WALK, .walk = {1, 0, 4095, {words, 16}}}}},
    {"walk-index",
     TL_STF_WARNING,
     0,
     {{.type = TL_STF_PAGE_TABLE_WALK, .walk = {1, 3, 4096, {words, 16}}}}},
    {"access-type",
     TL_STF_ERROR,
     0,
     {{.type = TL_STF_INST_MEM_ACCESS, .access = {1, 8, 0, 3}}, {.type = TL_STF_INST_MEM_CONTENT}}},
    {"access-type",
     TL_STF_ERROR,
     0,
     {{.type = TL_STF_INST_MEM_ACCESS, .access = {1, 8, 0, 0}}, {.type = TL_STF_INST_MEM_CONTENT}}},
    {"access-size",
     TL_STF_WARNING,
     0,
     {{.type = TL_STF_INST_MEM_ACCESS, .access = {1, 0, 0, 1}}, {.type = TL_STF_INST_MEM_CONTENT}}},
    {"content-width",
     TL_STF_WARNING,
     1,
     {{.type = TL_STF_INST_MEM_ACCESS, .access = {1, 2, 0, 1}},
      {.type = TL_STF_INST_MEM_CONTENT, .data = 0x10000}}},
    {"content-count",
     TL_STF_WARNING,
     0,
     {{.type = TL_STF_INST_MEM_ACCESS, .access = {1, 8, 0, 1}},
      {.type = TL_STF_INST_MEM_CONTENT},
      {.type = TL_STF_INST_MEM_CONTENT}}},
    {"access-type",
     TL_STF_ERROR,
     0,
     {{.type = TL_STF_BUS_MASTER_ACCESS, .bus = {1, 8, 0, 0, 0, 3}},
      {.type = TL_STF_BUS_MASTER_CONTENT}}},
    {"bus-master",
     TL_STF_WARNING,
     0,
     {{.type = TL_STF_BUS_MASTER_ACCESS, .bus = {1, 8, 7, 0, 0, 1}},
      {.type = TL_STF_BUS_MASTER_CONTENT}}},
    {"group-order",
     TL_STF_ERROR,
     1,
     {{.type = TL_STF_BUS_MASTER_ACCESS, .bus = {1, 8, 0, 0, 0, 1}},
      {.type = TL_STF_INST_32, .opcode = 0x13}}},
    {"group-order",
     TL_STF_ERROR,
     1,
     {{.type = TL_STF_INST_MEM_ACCESS, .access = {1, 8, 0, 1}},
      {.type = TL_STF_INST_32, .opcode = 0x13}}},
    {"group-order",
     TL_STF_ERROR,
     1,
     {{.type = TL_STF_INST_MEM_ACCESS, .access = {1, 8, 0, 1}}, {.type = TL_STF_COMMENT}}},
    {"group-order", TL_STF_ERROR, 0, {{.type = TL_STF_BUS_MASTER_CONTENT}}},
    {"group-order", TL_STF_ERROR, 0, {{.type = TL_STF_END_HEADER}}},
    {"group-order", TL_STF_ERROR, 0, {{.type = TL_STF_TRACE_INFO, .info.generator = 1}}},
    {"record-order",
     TL_STF_ERROR,
     1,
     {{.type = TL_STF_EVENT, .event = {TL_STF_EVENT_MODE_CHANGE, {level, 8}}},
      {.type = TL_STF_INST_IEM, .iem = 2}}},
    {"pc-odd", TL_STF_ERROR, 0, {{.type = TL_STF_FORCE_PC, .pc = UINT64_MAX}}},
    {"jump-target",
     TL_STF_WARNING,
     0,
     {{.type = TL_STF_INST_32, .opcode = 0x6f}, {.type = TL_STF_INST_32, .opcode = 0x13}}},
    {"jump-target",
     TL_STF_WARNING,
     0,
     {{.type = TL_STF_INST_32, .opcode = 0x8067}, {.type = TL_STF_INST_32, .opcode = 0x13}}},
    {"jump-target",
     TL_STF_WARNING,
     0,
     {{.type = TL_STF_INST_16, .opcode = 0x8082}, {.type = TL_STF_INST_32, .opcode = 0x13}}},
    {"jump-target",
     TL_STF_WARNING,
     0,
     {{.type = TL_STF_INST_16, .opcode = 0xa001}, {.type = TL_STF_INST_32, .opcode = 0x13}}},
    {"target-branch",
     TL_STF_WARNING,
     0,
     {{.type = TL_STF_INST_PC_TARGET, .target = 0x2000}, {.type = TL_STF_INST_32, .opcode = 0x13}}},
    {"target-branch",
     TL_STF_WARNING,
     0,
     {{.type = TL_STF_INST_PC_TARGET, .target = 0x2000}, {.type = TL_STF_INST_16, .opcode = 1}}},
    {"mode-field",
     TL_STF_ERROR,
     0,
     {{.type = TL_STF_EVENT, .event = {TL_STF_EVENT_MODE_CHANGE, {NULL, 0}}}}},
    {"mode-field",
     TL_STF_ERROR,
     0,
     {{.type = TL_STF_EVENT, .event = {TL_STF_EVENT_MODE_CHANGE, {words, 8}}}}},
    {"event-number",
     TL_STF_WARNING,
     0,
     {{.type = TL_STF_EVENT, .event = {14, {words, 8}}}, {.type = TL_STF_EVENT_PC_TARGET}}},
    {"event-fields",
     TL_STF_WARNING,
     0,
     {{.type = TL_STF_EVENT, .event = {2, {words, 16}}}, {.type = TL_STF_EVENT_PC_TARGET}}},
    {"event-fields",
     TL_STF_WARNING,
     0,
     {{.type = TL_STF_EVENT, .event = {12, {words, 8}}}, {.type = TL_STF_EVENT_PC_TARGET}}},
    {"event-fields",
     TL_STF_WARNING,
     0,
     {{.type = TL_STF_EVENT, .event = {TL_STF_EVENT_INTERRUPT | 3, {words, 0}}},
      {.type = TL_STF_EVENT_PC_TARGET}}},
    {"event-target",
     TL_STF_WARNING,
     0,
     {{.type = TL_STF_EVENT, .event = {3, {words, 8}}}, {.type = TL_STF_INST_32, .opcode = 0x13}}},
    {"event-target", TL_STF_WARNING, 0, {{.type = TL_STF_EVENT, .event = {3, {words, 8}}}}},
    {"microop-size", TL_STF_WARNING, 0, {{.type = TL_STF_INST_MICROOP, .microop = {5, 1}}}},
    {"microop-size", TL_STF_WARNING, 0, {{.type = TL_STF_INST_MICROOP, .microop = {0, 1}}}},
    {"opcode-length", TL_STF_WARNING, 0, {{.type = TL_STF_INST_32, .opcode = 1}}},
    {"opcode-length", TL_STF_WARNING, 0, {{.type = TL_STF_INST_16, .opcode = 0x13}}},
    {"clock-id", TL_STF_ERROR, 0, {{.type = TL_STF_TRANSACTION_DEPENDENCY}}},
    {"transaction",
     TL_STF_ERROR,
     0,
     {{.type = TL_STF_TRANSACTION_DEPENDENCY, .transaction.clock = 1}}},
    {"behind-end", TL_STF_ERROR, 1, {{.type = TL_STF_RESERVE_END}, {.type = TL_STF_COMMENT}}},
};

/* Declare all features, so that only the rule in question is reported. */
static void begin(struct tl_buf *out)
{
    static const uint8_t mode[8] = {3};
    const struct tl_stf_header_spec spec = {.isa = TL_STF_ISA_RISCV,
                                            .iem = TL_STF_IEM_64,
                                            .pc = 0x1000,
                                            .features = TL_STF_FEATURE_EVENT | TL_STF_FEATURE_PTE |
                                                        TL_STF_FEATURE_MICROOP};
    assert_int_equal(tl_stf_header_write(&spec, out, NULL), TL_OK);
    put_record(out, &(struct tl_stf_record){.type = TL_STF_EVENT,
                                            .event = {TL_STF_EVENT_MODE_CHANGE, {mode, 8}}});
    put_insn(out, 0x13);
}

static void test_clean(void **state)
{
    (void)state;
    struct tl_buf bytes = {0};
    struct found f;
    size_t others;
    begin(&bytes);
    check_bytes(bytes_of(&bytes), &f);
    assert_non_null(finding(&f, "reserve-end", &others)); /* a note */
    assert_int_equal(others, 0);
    assert_non_null(finding(&f, "feature-unused", &others)); /* a note: walks and micro-ops */
    assert_int_equal(f.n, 3);
    tl_buf_fini(&bytes);
}

static void test_rules(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct tl_buf bytes = {0};
        struct found f;
        size_t others;
        uint64_t at = 0, number = 0;
        /* Pass records to the checker directly, since a reader stops at the end mark. */
        struct tl_stf_checker *checker;
        struct tl_stf_reader *reader;
        struct tl_stf_record record;
        begin(&bytes);
        f.n = 0;
        assert_int_equal(tl_stf_checker_new(&checker, keep, &f), TL_OK);
        assert_int_equal(tl_stf_reader_new(&reader), TL_OK);
        tl_stf_reader_push(reader, bytes_of(&bytes));
        tl_stf_reader_finish(reader);
        while (tl_stf_reader_next(reader, &record, NULL) == TL_OK)
            assert_int_equal(tl_stf_checker_add(checker, &record), TL_OK);
        for (size_t k = 0; k < 3 && cases[i].records[k].type; k++) {
            record = cases[i].records[k];
            record.offset = bytes.n;
            const size_t before = bytes.n;
            put_record(&bytes, &record);
            record.size = (uint32_t)(bytes.n - before);
            at = k == cases[i].at ? record.offset : at;
            number = k == cases[i].at ? tl_stf_checker_records(checker) : number;
            assert_int_equal(tl_stf_checker_add(checker, &record), TL_OK);
        }
        assert_int_equal(tl_stf_checker_finish(checker), TL_OK);
        tl_stf_checker_free(checker);
        tl_stf_reader_free(reader);
        const struct tl_stf_finding *const got = finding(&f, cases[i].rule, &others);
        if (!got || got->severity != cases[i].severity || got->offset != at ||
            got->record != number)
            fail_msg("case %zu, %s: %s, offset %llu wanted %llu", i, cases[i].rule,
                     got ? got->text : "not found", got ? (unsigned long long)got->offset : 0,
                     (unsigned long long)at);
        if (strcmp(cases[i].rule, "clock-id") != 0 && others)
            fail_msg("case %zu, %s: another rule speaks, too: %s", i, cases[i].rule,
                     f.list[0].rule);
        tl_buf_fini(&bytes);
    }
}

/* Rules about missing records. */
static void test_missing(void **state)
{
    (void)state;
    struct tl_buf bytes = {0};
    struct found f;
    size_t others;
    put_record(&bytes, &(struct tl_stf_record){.type = TL_STF_IDENTIFIER});
    put_record(&bytes, &(struct tl_stf_record){.type = TL_STF_VERSION, .version = {3, 0}});
    put_record(&bytes, &(struct tl_stf_record){.type = TL_STF_VLEN_CONFIG, .vlen = 64});
    put_record(&bytes, &(struct tl_stf_record){.type = TL_STF_END_HEADER});
    check_bytes(bytes_of(&bytes), &f);
    unsigned header = 0;
    for (size_t i = 0; i < f.n; i++)
        header += strcmp(f.list[i].rule, "header") == 0;
    assert_int_equal(header, 7); /* ISA, IEM, TRACE_INFO, FEATURE, FORCE_PC; COMMENT, PROCESS_ID */
    assert_non_null(finding(&f, "version", &others));
    assert_non_null(finding(&f, "version-tools", &others));
    assert_non_null(finding(&f, "vlen-64", &others));
    assert_non_null(finding(&f, "newer", &others));
    assert_int_equal(finding(&f, "no-instruction", &others)->severity, TL_STF_NOTE);
    assert_null(finding(&f, "starting-mode", &others)); /* of no instruction */
    put_record(&bytes, &(struct tl_stf_record){.type = TL_STF_INST_16, .opcode = 1});
    check_bytes(bytes_of(&bytes), &f);
    assert_null(finding(&f, "no-instruction", &others));
    assert_int_equal(finding(&f, "starting-mode", &others)->severity, TL_STF_WARNING);
    tl_buf_fini(&bytes);
}

/* Legal sequences that look like violations. */
static void test_legal_jumps(void **state)
{
    (void)state;
    struct tl_buf bytes = {0};
    struct found f;
    size_t others;
    begin(&bytes);
    put_record(&bytes, &(struct tl_stf_record){.type = TL_STF_INST_PC_TARGET, .target = 0x3000});
    put_insn(&bytes, 0x67); /* a jump with its target */
    put_insn(&bytes, 0x63); /* a branch that is not taken */
    put_record(&bytes, &(struct tl_stf_record){.type = TL_STF_INST_PC_TARGET, .target = 0x3004});
    put_insn(&bytes, 0x63);
    put_insn(&bytes, 0x6f); /* the flow continues at a FORCE_PC */
    put_record(&bytes, &(struct tl_stf_record){.type = TL_STF_FORCE_PC, .pc = 0x5000});
    put_record(&bytes, &(struct tl_stf_record){.type = TL_STF_EVENT, .event = {3, {words, 8}}});
    put_record(&bytes, &(struct tl_stf_record){.type = TL_STF_EVENT_PC_TARGET, .target = 0x10});
    put_insn(&bytes, 0x8067); /* an event instead of the target */
    /* Descriptors may begin again after a comment; a change of mode has no target. */
    put_record(&bytes, &(struct tl_stf_record){.type = TL_STF_EVENT,
                                               .event = {TL_STF_EVENT_MODE_CHANGE, {level, 8}}});
    put_record(&bytes, &(struct tl_stf_record){.type = TL_STF_COMMENT});
    put_record(&bytes, &(struct tl_stf_record){.type = TL_STF_INST_PC_TARGET, .target = 0x3000});
    put_insn(&bytes, 0x67);
    /* The instruction numbers of walks begin at 1. */
    put_record(&bytes, &(struct tl_stf_record){.type = TL_STF_PAGE_TABLE_WALK,
                                               .walk = {1, 7, 4096, {words, 16}}});
    put_insn(&bytes, 0x13);
    put_record(&bytes, &(struct tl_stf_record){.type = TL_STF_INST_16, .opcode = 0x9002});
    put_insn(&bytes, 0x8067); /* the last instruction */
    check_bytes(bytes_of(&bytes), &f);
    assert_null(finding(&f, "jump-target", &others));
    assert_int_equal(others, 0);
    tl_buf_fini(&bytes);
}

/* Rules about the values of header records. */
static void test_header_values(void **state)
{
    (void)state;
    static const struct {
        const char *rule;
        uint8_t severity;
        struct tl_stf_record record;
    } values[] = {
        {"isa-value", TL_STF_WARNING, {.type = TL_STF_ISA, .isa = 0}},
        {"isa-value", TL_STF_WARNING, {.type = TL_STF_ISA, .isa = 5}},
        {"isa-reader", TL_STF_NOTE, {.type = TL_STF_ISA, .isa = TL_STF_ISA_ARM}},
        {"iem-value", TL_STF_ERROR, {.type = TL_STF_INST_IEM, .iem = 0}},
        {"generator", TL_STF_WARNING, {.type = TL_STF_TRACE_INFO, .info.generator = 0}},
        {"generator", TL_STF_WARNING, {.type = TL_STF_TRACE_INFO, .info.generator = 255}},
        {"generator", TL_STF_WARNING, {.type = TL_STF_TRACE_INFO, .info.generator = 15}},
        {"feature-bits",
         TL_STF_WARNING,
         {.type = TL_STF_TRACE_INFO_FEATURE, .features = UINT64_C(1) << 21}},
        {"feature-physical", TL_STF_NOTE, {.type = TL_STF_TRACE_INFO_FEATURE, .features = 1}},
        {"newer",
         TL_STF_WARNING,
         {.type = TL_STF_TRACE_INFO_FEATURE, .features = TL_STF_FEATURE_EVENT64}},
        {"newer", TL_STF_WARNING, {.type = TL_STF_ISA_EXTENDED}},
        {"pc-wide", TL_STF_WARNING, {.type = TL_STF_FORCE_PC, .pc = UINT64_C(1) << 32}},
        {"comment-nul", TL_STF_WARNING, {.type = TL_STF_COMMENT, .text = {words + 1, 1}}},
    };
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        struct tl_buf bytes = {0};
        struct found f;
        size_t others;
        uint64_t at = 0;
        struct tl_stf_record records[] = {
            {.type = TL_STF_IDENTIFIER},
            {.type = TL_STF_VERSION, .version = {1, 3}},
            {.type = TL_STF_COMMENT},
            {.type = TL_STF_ISA, .isa = 1},
            {.type = TL_STF_INST_IEM, .iem = 1},
            {.type = TL_STF_TRACE_INFO, .info.generator = 1},
            {.type = TL_STF_TRACE_INFO_FEATURE},
            {.type = TL_STF_PROCESS_ID_EXT},
            {.type = TL_STF_FORCE_PC, .pc = 0x1000},
            {.type = TL_STF_ISA_EXTENDED},
            {.type = TL_STF_END_HEADER},
            {.type = TL_STF_EVENT, .event = {TL_STF_EVENT_MODE_CHANGE, {words + 1, 8}}},
            {.type = TL_STF_INST_32, .opcode = 0x13},
        };
        for (size_t k = 0; k < sizeof records / sizeof *records; k++) {
            const bool this = records[k].type == values[i].record.type;
            if (records[k].type == TL_STF_ISA_EXTENDED && !this)
                continue;
            at = this ? bytes.n : at;
            struct tl_stf_layout layout = {0};
            if (records[k].type == TL_STF_EVENT)
                layout.event64 = (values[i].record.features & TL_STF_FEATURE_EVENT64) &&
                                 values[i].record.type == TL_STF_TRACE_INFO_FEATURE;
            assert_int_equal(
                tl_stf_record_encode(&layout, this ? &values[i].record : &records[k], &bytes),
                TL_OK);
        }
        check_bytes(bytes_of(&bytes), &f);
        const struct tl_stf_finding *const got = finding(&f, values[i].rule, &others);
        if (!got || got->severity != values[i].severity || got->offset != at || others)
            fail_msg("%zu, %s: %s at %llu, wanted %llu, %zu others", i, values[i].rule,
                     got ? got->text : "not found", got ? (unsigned long long)got->offset : 0,
                     (unsigned long long)at, others);
        tl_buf_fini(&bytes);
    }
}

static void test_features_and_memory(void **state)
{
    (void)state;
    struct tl_buf bytes = {0};
    struct found f;
    size_t others;
    put_header(&bytes);
    put_record(&bytes, &(struct tl_stf_record){.type = TL_STF_INST_MEM_ACCESS,
                                               .access = {1, 64, 0, TL_STF_READ}});
    put_record(&bytes, &(struct tl_stf_record){.type = TL_STF_INST_MEM_CONTENT, .data = 1});
    put_insn(&bytes, 0x00053503); /* ld */
    const uint64_t at = bytes.n;
    put_insn(&bytes, 0x00053503);
    put_record(&bytes, &(struct tl_stf_record){.type = TL_STF_INST_MICROOP, .microop = {4, 1}});
    put_insn(&bytes, 0x13);
    put_record(&bytes, &(struct tl_stf_record){.type = TL_STF_COMMENT});
    check_bytes(bytes_of(&bytes), &f);
    const struct tl_stf_finding *const missing = finding(&f, "memory-missing", &others);
    assert_non_null(missing);
    assert_int_equal(missing->offset, at);
    assert_non_null(finding(&f, "feature-missing", &others));
    assert_non_null(finding(&f, "trailing", &others));
    tl_buf_fini(&bytes);
}

/* Our own output has no findings. */
static void test_container(void **state)
{
    (void)state;
    struct tl_zstf_writer *w;
    struct tl_zstf *zstf;
    struct tl_buf chunks[3] = {{0}}, file = {0};
    uint8_t head[TL_ZSTF_HEAD];
    struct found f;
    put_header(&chunks[0]);
    for (unsigned i = 0; i < 12; i++)
        put_insn(&chunks[i / 5], 0x13);
    const struct {
        uint64_t pc1;
        unsigned steal; /* bytes moved from chunk 1 to chunk 2 */
        bool comment;   /* after chunk 1's last marker */
        const char *rule;
    } ways[] = {{0x1014, 0, false, NULL},
                {0x1010, 0, false, "chunk-pc"},
                {0x1014, 5, false, "chunk-markers"},
                {0x1014, 2, false, "chunk-record"},
                {0x1014, 0, true, "chunk-end"}};
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        struct tl_buf second = {0}, third = {0};
        assert_int_equal(tl_buf_add(&second, chunks[1].p, chunks[1].n - ways[i].steal), TL_OK);
        if (ways[i].comment)
            put_record(&second, &(struct tl_stf_record){.type = TL_STF_COMMENT});
        assert_int_equal(
            tl_buf_add(&third, chunks[1].p + chunks[1].n - ways[i].steal, ways[i].steal), TL_OK);
        assert_int_equal(tl_buf_add(&third, chunks[2].p, chunks[2].n), TL_OK);
        tl_buf_reset(&file);
        assert_int_equal(tl_zstf_writer_new(&w, 5, 1), TL_OK);
        assert_int_equal(tl_zstf_writer_begin(w, &file), TL_OK);
        assert_int_equal(tl_zstf_writer_chunk(w, bytes_of(&chunks[0]), 5, 0, &file), TL_OK);
        assert_int_equal(tl_zstf_writer_chunk(w, bytes_of(&second), 5, ways[i].pc1, &file), TL_OK);
        assert_int_equal(tl_zstf_writer_chunk(w, bytes_of(&third), 2,
                                              0x1028 - (ways[i].steal == 5 ? 4 : 0), &file),
                         TL_OK);
        assert_int_equal(tl_zstf_writer_finish(w, (struct tl_bytes){0}, &file, head), TL_OK);
        memcpy(file.p, head, sizeof head);
        assert_int_equal(tl_zstf_open_bytes(&zstf, bytes_of(&file), NULL), TL_OK);
        f.n = 0;
        assert_int_equal(tl_stf_check_container(zstf, keep, &f, NULL), TL_OK);
        if (!ways[i].rule)
            assert_int_equal(f.n, 0);
        else if (f.n == 0 || strcmp(f.list[0].rule, ways[i].rule) != 0)
            fail_msg("%s: %zu findings, %s", ways[i].rule, f.n, f.n ? f.list[0].rule : "");
        tl_zstf_close(zstf);
        tl_zstf_writer_free(w);
        tl_buf_fini(&second);
        tl_buf_fini(&third);
    }
    for (int i = 0; i < 3; i++)
        tl_buf_fini(&chunks[i]);
    tl_buf_fini(&file);
}

/* Faults of the container are reported with their offset in the file. */
static void test_faulty_container(void **state)
{
    (void)state;
    const struct tl_stf_out_options options = {.format = TL_STF_FILE_ZSTF, .markers = 5};
    struct tl_buf trace = {0}, good = {0};
    const struct tl_stf_sink sink = {&good, buf_write, buf_rewrite};
    struct tl_stf_out *out;
    struct tl_stf_reader *reader;
    struct tl_stf_record r;
    begin(&trace);
    for (unsigned i = 0; i < 11; i++)
        put_insn(&trace, 0x13);
    assert_int_equal(tl_stf_out_new(&out, &options, &sink), TL_OK);
    assert_int_equal(tl_stf_reader_new(&reader), TL_OK);
    tl_stf_reader_push(reader, bytes_of(&trace));
    tl_stf_reader_finish(reader);
    while (tl_stf_reader_next(reader, &r, NULL) == TL_OK)
        assert_int_equal(tl_stf_out_put(out, &r, NULL), TL_OK);
    assert_int_equal(tl_stf_out_finish(out, NULL), TL_OK);
    tl_stf_reader_free(reader);
    tl_stf_out_free(out);
    const uint64_t index = tl_le64(good.p + 12), second = tl_le64(good.p + index + 8 + 24);
    const struct {
        const char *rule;
        uint64_t at, value; /* the word that is changed */
        uint64_t offset;    /* of the finding */
        uint64_t cut;       /* bytes removed from the end */
    } ways[] = {
        {NULL, 4, 5, 0, 0},
        {"container", 12, 0, 12, 0},
        {"container", 12, good.n, 12, 0},
        {"container", 12, good.n - 7, 12, 0},
        {"container", 4, 0, 4, 0},
        {"container", index, 0, index, 0},
        {"container", index, 4, index, 0},
        {"container", index, UINT64_MAX / 24, index, 0},
        {"container", index + 8, 19, index + 8, 0},
        {"container", index + 8 + 24, index, index + 8 + 24, 0},
        {"container", 4, 5, index, 1},
        {"chunk-gap", index + 8, 21, 20, 0},
        {"chunk-frame", index + 8 + 24 + 16, 100, second, 0},
        {"chunk-pc", index + 8 + 24 + 8, 0, second, 0},
        {"chunk-markers", 4, 6, 20, 0},
        {"chunk-markers", 4, 4, 20, 0},
    };
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        struct tl_buf file = {0};
        struct tl_stf_file *f;
        struct tl_stf_checker *checker;
        struct found found = {.n = 0};
        size_t others;
        assert_int_equal(tl_buf_add(&file, good.p, good.n - ways[i].cut), TL_OK);
        tl_put_le64(file.p + ways[i].at, ways[i].value);
        assert_int_equal(tl_stf_file_bytes(&f, bytes_of(&file), NULL), TL_OK);
        assert_int_equal(tl_stf_checker_new(&checker, keep, &found), TL_OK);
        const int result = tl_stf_check_file(f, checker, keep, &found, NULL);
        const struct tl_stf_finding *const got =
            finding(&found, ways[i].rule ? ways[i].rule : "-", &others);
        if (!ways[i].rule && (result < 0 || others))
            fail_msg("a good file: %d, %zu findings", result, others);
        if (ways[i].rule && (!got || got->severity != TL_STF_ERROR ||
                             got->offset != ways[i].offset || got->record != UINT64_MAX))
            fail_msg("%zu, %s: %s, offset %llu wanted %llu", i, ways[i].rule,
                     got ? got->text : "not found", got ? (unsigned long long)got->offset : 0,
                     (unsigned long long)ways[i].offset);
        tl_stf_checker_free(checker);
        tl_stf_file_close(f);
        tl_buf_fini(&file);
    }
    tl_buf_fini(&trace);
    tl_buf_fini(&good);
}

static int refuse(void *context, const struct tl_stf_finding *found)
{
    (void)context;
    (void)found;
    return TL_CANCELLED;
}

static void test_sink_stops(void **state)
{
    (void)state;
    struct tl_stf_checker *checker;
    const struct tl_stf_record r = {.type = TL_STF_VERSION, .size = 9};
    assert_int_equal(tl_stf_checker_new(&checker, refuse, NULL), TL_OK);
    assert_int_equal(tl_stf_checker_add(checker, &r), TL_CANCELLED);
    tl_stf_checker_free(checker);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_clean),
        cmocka_unit_test(test_rules),
        cmocka_unit_test(test_missing),
        cmocka_unit_test(test_features_and_memory),
        cmocka_unit_test(test_container),
        cmocka_unit_test(test_sink_stops),
        cmocka_unit_test(test_faulty_container),
        cmocka_unit_test(test_legal_jumps),
        cmocka_unit_test(test_header_values),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
