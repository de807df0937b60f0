/* SPDX-License-Identifier: MIT */
/* Slices: the same instructions, a header with the state at their beginning, all rules obeyed. */
#include "test_stf_util.h"

#include "stf/tools/check.h"
#include "stf/tools/slice.h"

static const uint8_t modes[4][8] = {{0}, {1}, {2}, {3}};
static const uint8_t walk[16] = {1};

/* A trace that sometimes changes mode and process; `plan` describes each group. */
struct plan {
    uint64_t pc;
    uint32_t opcode;
    uint32_t tid;
    uint8_t mode; /* in force at the instruction */
    bool has_mode;
};

static void put_trace(struct tl_buf *out, struct plan *plan, unsigned n, uint64_t *seed)
{
    uint64_t pc = 0x1000;
    uint32_t tid = 0;
    int mode = -1;
    put_header(out);
    for (unsigned i = 0; i < n; i++) {
        const uint64_t dice = rng_next(seed);
        bool target = dice % 7 == 0;
        const uint64_t to = rng_next(seed) & 0xfffffe;
        if (dice % 29 == 0) {
            tid = i + 1;
            put_record(out, &(struct tl_stf_record){.type = TL_STF_PROCESS_ID_EXT,
                                                    .process = {1, tid, 2}});
        }
        if (dice % 31 == 0) {
            pc = rng_next(seed) & 0xfffffe;
            put_record(out, &(struct tl_stf_record){.type = TL_STF_FORCE_PC, .pc = pc});
        }
        if (target)
            put_record(out, &(struct tl_stf_record){.type = TL_STF_INST_PC_TARGET, .target = to});
        if (dice % 5 == 0) {
            uint8_t value[8];
            tl_put_le64(value, i);
            put_record(out, &(struct tl_stf_record){
                                .type = TL_STF_INST_REG,
                                .reg = {(uint16_t)(dice >> 8 & 31), 0x31, {value, 8}}});
        }
        if (dice % 37 == 0)
            put_record(out, &(struct tl_stf_record){
                                .type = TL_STF_PAGE_TABLE_WALK,
                                .walk = {(dice >> 13 & 7) << 12, i, 4096, {walk, 16}}});
        plan[i] = (struct plan){pc, 0x13 | (uint32_t)(dice >> 40) << 20, tid,
                                (uint8_t)(mode < 0 ? 0 : mode), mode >= 0};
        if (dice % 23 == 0) {
            mode = (int)(dice >> 32 & 3);
            put_record(out, &(struct tl_stf_record){
                                .type = TL_STF_EVENT,
                                .event = {TL_STF_EVENT_MODE_CHANGE, {modes[mode], 8}}});
        }
        put_insn(out, plan[i].opcode);
        pc = target ? to : pc + 4;
    }
}

static void slice(struct tl_bytes trace, uint64_t from, uint64_t to, uint8_t format,
                  struct tl_buf *file, uint64_t *written)
{
    const struct tl_stf_out_options options = {.format = format, .markers = 50, .unchecked = true};
    const struct tl_stf_sink sink = {file, buf_write, buf_rewrite};
    struct tl_stf_out *out;
    struct tl_stf_slicer *slicer;
    struct tl_stf_reader *reader;
    struct tl_stf_record record;
    assert_int_equal(tl_stf_out_new(&out, &options, &sink), TL_OK);
    assert_int_equal(tl_stf_slicer_new(&slicer, from, to, "a part", out), TL_OK);
    assert_int_equal(tl_stf_reader_new(&reader), TL_OK);
    tl_stf_reader_push(reader, trace);
    tl_stf_reader_finish(reader);
    int result = TL_OK;
    while (result == TL_OK && tl_stf_reader_next(reader, &record, NULL) == TL_OK)
        result = tl_stf_slicer_add(slicer, &record, NULL);
    assert_true(result == TL_OK || result == TL_EOF);
    *written = tl_stf_slicer_written(slicer);
    if (*written)
        assert_int_equal(tl_stf_out_finish(out, NULL), TL_OK);
    tl_stf_slicer_free(slicer);
    tl_stf_reader_free(reader);
    tl_stf_out_free(out);
}

static int no_errors(void *context, const struct tl_stf_finding *f)
{
    (void)context;
    if (f->severity == TL_STF_ERROR || strcmp(f->rule, "walk-index") == 0)
        fail_msg("offset %llu: %s: %s", (unsigned long long)f->offset, f->rule, f->text);
    return TL_OK;
}

static void assert_legal(struct tl_bytes file)
{
    struct tl_stf_file *f;
    struct tl_stf_checker *checker;
    struct tl_stf_reader *reader;
    struct tl_stf_record record;
    assert_int_equal(tl_stf_file_bytes(&f, file, NULL), TL_OK);
    const struct tl_stf_source source = tl_stf_file_source(f);
    assert_int_equal(tl_stf_checker_new(&checker, no_errors, NULL), TL_OK);
    assert_int_equal(tl_stf_reader_open(&reader, &source), TL_OK);
    while (tl_stf_reader_next(reader, &record, NULL) == TL_OK)
        assert_int_equal(tl_stf_checker_add(checker, &record), TL_OK);
    assert_int_equal(tl_stf_checker_finish(checker), TL_OK);
    if (tl_stf_file_zstf(f))
        assert_int_equal(tl_stf_check_container(tl_stf_file_zstf(f), no_errors, NULL, NULL), TL_OK);
    tl_stf_checker_free(checker);
    tl_stf_reader_free(reader);
    tl_stf_file_close(f);
}

static void assert_slice(struct tl_bytes file, const struct plan *plan, uint64_t n)
{
    struct tl_stf_file *f;
    struct tl_stf_insns *s;
    assert_int_equal(tl_stf_file_bytes(&f, file, NULL), TL_OK);
    const struct tl_stf_source source = tl_stf_file_source(f);
    assert_int_equal(tl_stf_insns_open(&s, &source), TL_OK);
    for (uint64_t i = 0; i < n; i++) {
        struct tl_stf_insn insn;
        assert_int_equal(tl_stf_insns_read(s, &insn, 1, NULL), 1);
        assert_int_equal(insn.pc, plan[i].pc);
        assert_int_equal(insn.opcode, plan[i].opcode);
        assert_int_equal(tl_stf_insns_state(s)->tid, plan[i].tid);
        if (plan[i].has_mode && i > 0)
            assert_int_equal(insn.mode, plan[i].mode);
    }
    struct tl_stf_insn none;
    assert_int_equal(tl_stf_insns_read(s, &none, 1, NULL), TL_EOF);
    assert_int_equal(tl_stf_insns_header(s)->pc, plan[0].pc);
    assert_int_equal(tl_stf_insns_header(s)->tid, plan[0].tid);
    assert_int_equal(tl_stf_insns_header(s)->faults, 0);
    tl_stf_insns_free(s);
    tl_stf_file_close(f);
}

static void test_random_slices(void **state)
{
    (void)state;
    uint64_t seed = rng_seed("random_slices");
    static struct plan plan[1000];
    for (int round = 0; round < 60; round++) {
        struct tl_buf trace = {0}, file = {0};
        uint64_t written;
        put_trace(&trace, plan, 1000, &seed);
        const uint64_t from = rng_next(&seed) % 1000;
        const uint64_t to = from + 1 + rng_next(&seed) % (1000 - from);
        slice(bytes_of(&trace), from, to, round & 1 ? TL_STF_FILE_ZSTF : TL_STF_FILE_PLAIN, &file,
              &written);
        assert_int_equal(written, to - from);
        assert_legal(bytes_of(&file));
        assert_slice(bytes_of(&file), plan + from, to - from);
        tl_buf_fini(&trace);
        tl_buf_fini(&file);
    }
}

/* ---- comparison with a brute-force cut ------------------------------------------------------- */

struct text {
    struct tl_buf *groups; /* listing of each group's records, without offsets */
    uint64_t n;
    uint64_t values[32];           /* x registers before the first group */
    uint32_t known;                /* bit i: xi */
    int mode;                      /* -1: none */
    struct tl_stf_record walks[8]; /* the last one of each page, in the order of reporting */
    size_t n_walks;
};

static void note_walk(struct text *t, const struct tl_stf_record *r)
{
    size_t n = 0;
    for (size_t i = 0; i < t->n_walks; i++)
        if (t->walks[i].walk.va != r->walk.va)
            t->walks[n++] = t->walks[i];
    t->walks[n] = *r;
    t->walks[n].walk.first_access = 0;
    t->walks[n].walk.entries.p = walk;
    t->n_walks = n + 1;
}

static void add_line(struct tl_buf *out, const struct tl_stf_record *r, uint64_t shift)
{
    struct tl_stf_record copy = *r;
    copy.offset = 0;
    if (copy.type == TL_STF_PAGE_TABLE_WALK)
        copy.walk.first_access -= copy.walk.first_access < shift ? copy.walk.first_access : shift;
    assert_int_equal(tl_stf_record_text(&copy, out), TL_OK);
    assert_int_equal(tl_buf_add(out, "\n", 1), TL_OK);
}

/* The groups [from, to) of a trace as text, and the state before the first one. */
static void cut(struct tl_bytes trace, uint64_t from, uint64_t to, uint64_t shift, struct text *t)
{
    struct tl_stf_reader *reader;
    struct tl_stf_file *file;
    struct tl_stf_record r;
    uint64_t insn = 0;
    *t = (struct text){.mode = -1};
    t->groups = calloc(to - from, sizeof *t->groups);
    assert_non_null(t->groups);
    assert_int_equal(tl_stf_file_bytes(&file, trace, NULL), TL_OK);
    const struct tl_stf_source source = tl_stf_file_source(file);
    assert_int_equal(tl_stf_reader_open(&reader, &source), TL_OK);
    bool header = true;
    while (insn < to && tl_stf_reader_next(reader, &r, NULL) == TL_OK) {
        if (!header && insn >= from)
            add_line(&t->groups[insn - from], &r, shift);
        header &= !tl_stf_reader_header(reader)->complete;
        if (r.type == TL_STF_INST_REG && insn < from) {
            t->values[r.reg.number & 31] = tl_stf_word(r.reg.value, 0);
            t->known |= 1u << (r.reg.number & 31);
        }
        if (r.type == TL_STF_PAGE_TABLE_WALK && insn < from)
            note_walk(t, &r);
        if (r.type == TL_STF_EVENT && insn < from)
            t->mode = (int)tl_stf_word(r.event.fields, 0);
        insn += tl_stf_is_marker(r.type);
    }
    t->n = to - from;
    tl_stf_reader_free(reader);
    tl_stf_file_close(file);
}

static void text_fini(struct text *t)
{
    for (uint64_t i = 0; i < t->n; i++)
        tl_buf_fini(&t->groups[i]);
    free(t->groups);
}

/* Does this line ("0 SIZE TYPE …") show a record of that type? */
static bool shows(const char *line, const char *type)
{
    const char *const name = strchr(line + 2, ' ') + 1;
    return strncmp(name, type, strlen(type)) == 0;
}

/* The expected first group: with the state in force, inserted where its descriptors belong. */
static void with_state(const struct text *t, struct tl_buf *out)
{
    const char *p = (const char *)t->groups[0].p;
    const char *const end = p + t->groups[0].n;
    bool regs = false, walks = false, mode = t->mode < 0;
    while (p < end) {
        const char *const next = (const char *)memchr(p, '\n', (size_t)(end - p)) + 1;
        const bool early =
            shows(p, "PROCESS_ID_EXT") || shows(p, "FORCE_PC") || shows(p, "INST_PC_TARGET");
        for (unsigned i = 0; i < 32 && !early && !regs; i++) {
            uint8_t value[8];
            tl_put_le64(value, t->values[i]);
            if (t->known >> i & 1)
                add_line(out,
                         &(struct tl_stf_record){.type = TL_STF_INST_REG,
                                                 .size = 12,
                                                 .reg = {(uint16_t)i, 0x11, {value, 8}}},
                         0);
        }
        regs |= !early;
        if (!early && !shows(p, "INST_REG") && !walks) {
            for (size_t i = 0; i < t->n_walks; i++)
                add_line(out, &t->walks[i], 0);
            walks = true;
        }
        if ((shows(p, "INST_32") || shows(p, "EVENT")) && !mode) {
            add_line(
                out,
                &(struct tl_stf_record){.type = TL_STF_EVENT,
                                        .size = 14,
                                        .event = {TL_STF_EVENT_MODE_CHANGE, {modes[t->mode], 8}}},
                0);
            mode = true;
        }
        assert_int_equal(tl_buf_add(out, p, (size_t)(next - p)), TL_OK);
        p = next;
    }
}

static void test_brute_force(void **state)
{
    (void)state;
    uint64_t seed = rng_seed("brute_force");
    static struct plan plan[400];
    for (int round = 0; round < 60; round++) {
        struct tl_buf trace = {0}, file = {0}, first = {0};
        struct text want, got;
        uint64_t written;
        put_trace(&trace, plan, 400, &seed);
        const uint64_t from = rng_next(&seed) % 400;
        const uint64_t to = from + 1 + rng_next(&seed) % (400 - from);
        slice(bytes_of(&trace), from, to, round & 1 ? TL_STF_FILE_ZSTF : TL_STF_FILE_PLAIN, &file,
              &written);
        cut(bytes_of(&trace), from, to, from, &want);
        cut(bytes_of(&file), 0, to - from, 0, &got);
        with_state(&want, &first);
        assert_int_equal(got.groups[0].n, first.n);
        assert_memory_equal(got.groups[0].p, first.p, first.n);
        for (uint64_t i = 1; i < to - from; i++) {
            assert_int_equal(got.groups[i].n, want.groups[i].n);
            assert_memory_equal(got.groups[i].p, want.groups[i].p, want.groups[i].n);
        }
        text_fini(&want);
        text_fini(&got);
        tl_buf_fini(&trace);
        tl_buf_fini(&file);
        tl_buf_fini(&first);
    }
}

/* Registers of every type are reported again, the last value of each. */
static void test_registers(void **state)
{
    (void)state;
    static const uint8_t one[8] = {1}, two[8] = {2}, wide[16] = {3};
    const struct tl_stf_header_spec spec = {.isa = 1, .iem = 2, .pc = 0x1000, .vlen = 128};
    const struct tl_stf_record regs[] = {
        {.type = TL_STF_INST_REG, .reg = {1, 0x11, {one, 8}}},
        {.type = TL_STF_INST_REG, .reg = {1, 0x31, {two, 8}}},
        {.type = TL_STF_INST_REG, .reg = {32, 0x21, {one, 8}}},
        {.type = TL_STF_INST_REG, .reg = {31, 0x22, {two, 8}}},
        {.type = TL_STF_INST_REG, .reg = {7, 0x33, {wide, 16}}},
        {.type = TL_STF_INST_REG, .reg = {0xfff, 0x34, {one, 8}}},
        {.type = TL_STF_INST_REG, .reg = {0x300, 0x34, {two, 8}}},
        {.type = TL_STF_INST_REG, .reg = {0x1000, 0x34, {one, 8}}}, /* no such register */
        {.type = TL_STF_INST_REG, .reg = {0, 0x35, {one, 8}}},
    };
    struct tl_buf trace = {0}, file = {0};
    struct tl_stf_layout layout;
    struct text got;
    uint64_t written;
    assert_int_equal(tl_stf_header_write(&spec, &trace, &layout), TL_OK);
    for (size_t i = 0; i < sizeof regs / sizeof *regs; i++)
        assert_int_equal(tl_stf_record_encode(&layout, &regs[i], &trace), TL_OK);
    put_insn(&trace, 0x13);
    put_insn(&trace, 0x93);
    slice(bytes_of(&trace), 1, 2, TL_STF_FILE_PLAIN, &file, &written);
    cut(bytes_of(&file), 0, 1, 0, &got);
    assert_int_equal(tl_buf_add(&got.groups[0], "", 1), TL_OK);
    assert_string_equal((char *)got.groups[0].p,
                        "0 12 INST_REG reg=1 meta=0x11 value=0x2 ; REG_1\n"
                        "0 12 INST_REG reg=32 meta=0x11 value=0x1 ; PC\n"
                        "0 12 INST_REG reg=31 meta=0x12 value=0x2 ; REG_F31\n"
                        "0 20 INST_REG reg=7 meta=0x13 value=0x3,0x0 ; REG_V7\n"
                        "0 12 INST_REG reg=768 meta=0x14 value=0x2 ; REG_CSR_MSTATUS\n"
                        "0 12 INST_REG reg=4095 meta=0x14 value=0x1 ; REG_CSR_NONST_fff\n"
                        "0 5 INST_32 opcode=0x93\n");
    text_fini(&got);
    tl_buf_fini(&trace);
    tl_buf_fini(&file);
}

/* A register record of instruction `insn`. */
struct put_reg {
    unsigned insn;
    uint8_t operand, type;
    uint16_t number;
    uint64_t value;
};

static void put_regs(struct tl_buf *out, const struct put_reg *regs, size_t n, unsigned insn)
{
    for (size_t k = 0; k < n; k++) {
        uint8_t value[8], meta = (uint8_t)(regs[k].operand << 4 | regs[k].type);
        tl_put_le64(value, regs[k].value);
        if (regs[k].insn == insn)
            put_record(out, &(struct tl_stf_record){.type = TL_STF_INST_REG,
                                                    .reg = {regs[k].number, meta, {value, 8}}});
    }
    put_insn(out, 0x13);
}

/* The state at instruction `n` of a trace with these records is `want`, as "NUMBER=VALUE …". */
static void assert_state(const struct put_reg *regs, size_t n_regs, unsigned n, const char *want)
{
    const struct tl_stf_header_spec spec = {.isa = 1, .iem = 2, .pc = 0x1000};
    struct tl_buf trace = {0}, file = {0}, text = {0};
    struct tl_stf_layout layout;
    struct tl_stf_file *in;
    struct tl_stf_reader *reader;
    struct tl_stf_record r = {0};
    uint64_t written;
    assert_int_equal(tl_stf_header_write(&spec, &trace, &layout), TL_OK);
    for (unsigned i = 0; i <= n; i++)
        put_regs(&trace, regs, n_regs, i);
    slice(bytes_of(&trace), n, n + 1, TL_STF_FILE_PLAIN, &file, &written);
    assert_int_equal(tl_stf_file_bytes(&in, bytes_of(&file), NULL), TL_OK);
    const struct tl_stf_source source = tl_stf_file_source(in);
    assert_int_equal(tl_stf_reader_open(&reader, &source), TL_OK);
    while (!tl_stf_is_marker(r.type) && tl_stf_reader_next(reader, &r, NULL) == TL_OK) {
        if (r.type == TL_STF_INST_REG && r.reg.meta >> 4 == TL_STF_OPERAND_STATE)
            assert_true(tl_buf_printf(&text, "%x=%llx ", r.reg.number,
                                      (unsigned long long)tl_stf_word(r.reg.value, 0)) >= 0);
    }
    assert_int_equal(tl_buf_add(&text, "", 1), TL_OK);
    assert_string_equal((const char *)text.p, want);
    tl_stf_reader_free(reader);
    tl_stf_file_close(in);
    tl_buf_fini(&trace);
    tl_buf_fini(&file);
    tl_buf_fini(&text);
}

#define ASSERT_STATE(n, want, ...)                                                                 \
    do {                                                                                           \
        const struct put_reg regs[] = {__VA_ARGS__};                                               \
        assert_state(regs, sizeof regs / sizeof *regs, n, want);                                   \
    } while (0)

enum { STATE = 1, SOURCE, DEST, X = 1, CSR = 4 };

/* An instruction reads before it writes, whatever its records' order. */
static void test_operands_in_any_order(void **state)
{
    (void)state;
    ASSERT_STATE(1, "a=a ", {0, DEST, X, 10, 10}, {0, SOURCE, X, 10, 9});
    ASSERT_STATE(1, "a=a ", {0, SOURCE, X, 10, 9}, {0, DEST, X, 10, 10});
    ASSERT_STATE(1, "a=9 ", {0, SOURCE, X, 10, 9}, {0, STATE, X, 10, 8});
    ASSERT_STATE(1, "a=7 ", {0, DEST, X, 10, 5}, {0, DEST, X, 10, 7}, {0, STATE, X, 10, 6});
    ASSERT_STATE(2, "a=b ", {0, DEST, X, 10, 10}, {1, SOURCE, X, 10, 11});
    ASSERT_STATE(2, "a=c ", {0, DEST, X, 10, 10}, {1, STATE, X, 10, 12});
}

/* fflags and frm are bits of fcsr, vxsat and vxrm of vcsr. */
static void test_registers_in_registers(void **state)
{
    (void)state;
    ASSERT_STATE(2, "1=1f 3=7f ", {0, DEST, CSR, 3, 0x65}, {1, DEST, CSR, 1, 0x1f});
    ASSERT_STATE(2, "1=5 3=65 ", {0, DEST, CSR, 1, 0x1f}, {1, DEST, CSR, 3, 0x65});
    ASSERT_STATE(2, "1=5 2=3 3=65 ", {0, STATE, CSR, 1, 1}, {0, STATE, CSR, 2, 7},
                 {1, SOURCE, CSR, 3, 0x65});
    ASSERT_STATE(2, "1=1 2=2 ", {0, DEST, CSR, 1, 1}, {1, DEST, CSR, 2, 2});
    ASSERT_STATE(1, "2=5 3=a1 ", {0, DEST, CSR, 2, 5}, {0, SOURCE, CSR, 3, 0x61});
    ASSERT_STATE(1, "1=5 3=65 ", {0, DEST, CSR, 3, 0x65}, {0, SOURCE, CSR, 1, 0x1f});
    /* No other bits, which a later fcsr would not have. */
    ASSERT_STATE(2, "1=1f 2=7 ", {0, DEST, CSR, 1, 0xfff}, {1, DEST, CSR, 2, 0xfff});
    ASSERT_STATE(2, "a=1 f=3 ", {0, DEST, CSR, 0xf, 7}, {0, DEST, CSR, 0xa, 3},
                 {1, DEST, CSR, 0xa, 1});
}

static void test_ends(void **state)
{
    (void)state;
    uint64_t seed = 5;
    static struct plan plan[100];
    struct tl_buf trace = {0}, file = {0};
    uint64_t written;
    put_trace(&trace, plan, 100, &seed);
    slice(bytes_of(&trace), 90, UINT64_MAX, TL_STF_FILE_PLAIN, &file, &written);
    assert_int_equal(written, 10);
    assert_slice(bytes_of(&file), plan + 90, 10);
    tl_buf_reset(&file);
    slice(bytes_of(&trace), 100, 200, TL_STF_FILE_PLAIN, &file, &written);
    assert_int_equal(written, 0);
    tl_buf_reset(&file);
    slice(bytes_of(&trace), 0, 100, TL_STF_FILE_PLAIN, &file, &written);
    assert_slice(bytes_of(&file), plan, 100);
    tl_buf_fini(&trace);
    tl_buf_fini(&file);
}

/* Consecutive slices are the shards of one stream: slicing across them gives the same result. */
static void test_across_shards(void **state)
{
    (void)state;
    uint64_t seed = rng_seed("across_shards");
    static struct plan plan[600];
    struct tl_buf trace = {0}, shards = {0}, file = {0};
    uint64_t written;
    put_trace(&trace, plan, 600, &seed);
    for (uint64_t from = 0; from < 600; from += 150) {
        struct tl_buf one = {0};
        slice(bytes_of(&trace), from, from + 150, TL_STF_FILE_PLAIN, &one, &written);
        assert_int_equal(tl_buf_add(&shards, one.p, one.n), TL_OK);
        tl_buf_fini(&one);
    }
    slice(bytes_of(&shards), 100, 500, TL_STF_FILE_ZSTF, &file, &written);
    assert_int_equal(written, 400);
    assert_legal(bytes_of(&file));
    assert_slice(bytes_of(&file), plan + 100, 400);
    tl_buf_fini(&trace);
    tl_buf_fini(&shards);
    tl_buf_fini(&file);
}

static void test_transactions(void **state)
{
    (void)state;
    struct tl_buf file = {0};
    const struct tl_stf_out_options options = {.unchecked = true};
    const struct tl_stf_sink sink = {&file, buf_write, buf_rewrite};
    struct tl_stf_out *out;
    struct tl_stf_slicer *slicer;
    const struct tl_stf_record records[] = {
        {.type = TL_STF_IDENTIFIER}, {.type = TL_STF_VERSION}, {.type = TL_STF_PROTOCOL_ID}};
    assert_int_equal(tl_stf_out_new(&out, &options, &sink), TL_OK);
    assert_int_equal(tl_stf_slicer_new(&slicer, 0, 1, NULL, out), TL_OK);
    assert_int_equal(tl_stf_slicer_add(slicer, &records[0], NULL), TL_OK);
    assert_int_equal(tl_stf_slicer_add(slicer, &records[1], NULL), TL_OK);
    assert_int_equal(tl_stf_slicer_add(slicer, &records[2], NULL), TL_UNSUPPORTED);
    tl_stf_slicer_free(slicer);
    tl_stf_out_free(out);
    tl_buf_fini(&file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_slices),
        cmocka_unit_test(test_brute_force),
        cmocka_unit_test(test_operands_in_any_order),
        cmocka_unit_test(test_registers_in_registers),
        cmocka_unit_test(test_registers),
        cmocka_unit_test(test_ends),
        cmocka_unit_test(test_across_shards),
        cmocka_unit_test(test_transactions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
