/* SPDX-License-Identifier: MIT */
/*
 * What an STF trace that others made tells of its instructions besides: registers and memory
 * accesses go through flow items into shards as they are, at their instructions.
 */
#include "test_stf_util.h"

#include "stf/flow_reader.h"
#include "stf/flow_writer.h"
#include "stf/operands.h"

#define N 3000

struct insn {
    uint64_t pc;
    uint32_t opcode;
    struct tl_buf extra;
};

static bool is_extra(uint8_t type)
{
    return type == TL_STF_INST_REG || type == TL_STF_INST_READY_REG ||
           (type >= TL_STF_INST_MEM_ACCESS && type <= TL_STF_BUS_MASTER_CONTENT);
}

static void put_reg(struct tl_buf *out, uint8_t operand, uint64_t dice)
{
    uint8_t value[8];
    tl_put_le64(value, dice);
    put_record(out, &(struct tl_stf_record){
                        .type = TL_STF_INST_REG,
                        .reg = {(uint16_t)(dice & 31), (uint8_t)(1 | operand << 4), {value, 8}}});
}

static void put_access(struct tl_buf *out, uint64_t dice)
{
    put_record(out,
               &(struct tl_stf_record){.type = TL_STF_INST_MEM_ACCESS,
                                       .access = {dice >> 8, (uint16_t)(dice & 1 ? 16 : 8),
                                                  (uint16_t)dice, (uint8_t)(1 + (dice >> 5) % 2)}});
    put_record(out, &(struct tl_stf_record){.type = TL_STF_INST_MEM_CONTENT, .data = dice});
    if (dice & 1)
        put_record(out, &(struct tl_stf_record){.type = TL_STF_INST_MEM_CONTENT, .data = ~dice});
}

/* A trace as a simulator writes it. */
static void put_trace(struct tl_buf *out, unsigned n, uint64_t *seed)
{
    static const uint8_t modes[4][8] = {{0}, {1}, {2}, {3}}, cause[24] = {5};
    uint64_t pc = 0x1000;
    put_header(out);
    for (unsigned i = 0; i < n; i++) {
        const uint64_t dice = rng_next(seed);
        const bool jump = dice % 6 == 0;
        const uint64_t to = 0x1000 + (rng_next(seed) & 0xffe);
        if (dice % 41 == 0)
            put_record(
                out, &(struct tl_stf_record){.type = TL_STF_PROCESS_ID_EXT, .process = {1, i, 3}});
        if (dice % 43 == 0)
            put_record(out, &(struct tl_stf_record){.type = TL_STF_FORCE_PC, .pc = to ^ 0x40});
        if (jump)
            put_record(out, &(struct tl_stf_record){.type = TL_STF_INST_PC_TARGET, .target = to});
        for (uint64_t k = dice >> 8 & 3; k > 0; k--)
            put_reg(out, (uint8_t)(1 + rng_next(seed) % 3), rng_next(seed));
        if (dice % 3 == 0)
            put_access(out, rng_next(seed));
        if (dice % 61 == 0) {
            put_record(out, &(struct tl_stf_record){.type = TL_STF_BUS_MASTER_ACCESS,
                                                    .bus = {dice, 8, 2, 1, 7, TL_STF_READ}});
            put_record(out,
                       &(struct tl_stf_record){.type = TL_STF_BUS_MASTER_CONTENT, .data = dice});
        }
        if (dice % 47 == 0)
            put_record(out, &(struct tl_stf_record){
                                .type = TL_STF_EVENT,
                                .event = {TL_STF_EVENT_MODE_CHANGE, {modes[dice >> 20 & 3], 8}}});
        if (dice % 53 == 0 && !jump) {
            put_record(out,
                       &(struct tl_stf_record){.type = TL_STF_EVENT, .event = {5, {cause, 24}}});
            put_record(out, &(struct tl_stf_record){.type = TL_STF_EVENT_PC_TARGET, .target = to});
        }
        if (jump)
            put_insn(out, 0x6f);
        else if (dice & 1 << 30)
            put_insn(out, 0x13 | (uint32_t)(dice >> 40) << 20);
        else
            put_record(out, &(struct tl_stf_record){.type = TL_STF_INST_16, .opcode = 0x0001});
        pc += 4;
    }
}

/* Instructions of one trace behind another; their extra records. */
static size_t collect(struct tl_bytes bytes, struct insn *out, size_t cap)
{
    struct tl_stf_reader *reader;
    struct tl_stf_record r;
    struct tl_stf_pc pc = {0};
    struct tl_stf_order order = {0};
    struct tl_buf extra = {0};
    size_t n = 0;
    const char *rule;
    assert_int_equal(tl_stf_reader_new(&reader), TL_OK);
    tl_stf_reader_push(reader, bytes);
    tl_stf_reader_finish(reader);
    int result;
    while ((result = tl_stf_reader_next(reader, &r, NULL)) == TL_OK) {
        const uint64_t at = tl_stf_pc_add(&pc, &r);
        if (tl_stf_order_add(&order, &r, &rule) < 0)
            fail_msg("offset %llu: %s: %s", (unsigned long long)r.offset, tl_stf_type_name(r.type),
                     rule);
        if (is_extra(r.type))
            put_record(&extra, &r);
        if (tl_stf_is_marker(r.type)) {
            assert_true(n < cap);
            out[n++] = (struct insn){at, r.opcode, extra};
            extra = (struct tl_buf){0};
        }
    }
    assert_int_equal(result, TL_EOF);
    tl_stf_reader_free(reader);
    return n;
}

static void free_insns(struct insn *insns, size_t n)
{
    for (size_t i = 0; i < n; i++)
        tl_buf_fini(&insns[i].extra);
}

/* Flow items into shards of `shard` instructions, taken in chunks of `chunk`. */
struct store {
    struct tl_stf_flow *flow;
    uint64_t stop, chunk, shard;
    struct tl_buf shards[N];
    size_t n;
};

static void take(struct store *s)
{
    const struct tl_bytes bytes = tl_stf_flow_bytes(s->flow);
    assert_int_equal(tl_buf_add(&s->shards[s->n], bytes.p, bytes.n), TL_OK);
    tl_stf_flow_take(s->flow);
}

static int store_items(void *context, const struct tl_item *items, size_t n)
{
    struct store *const s = context;
    struct tl_stf_flow_at at = {0};
    int result;
    while ((result = tl_stf_flow_items(s->flow, items, n, s->stop, &at)) == TL_AGAIN) {
        assert_int_equal(tl_stf_flow_markers(s->flow), s->stop);
        take(s);
        s->stop += s->chunk;
        if (s->stop > s->shard) {
            tl_stf_flow_restart(s->flow);
            s->stop = s->chunk;
            s->n++;
        }
    }
    return result;
}

static void store_trace(struct tl_bytes trace, uint64_t chunk, uint64_t shard, struct store *s)
{
    struct tl_stf_file *file;
    const struct tl_stf_flow_options options = {.isa = TL_ISA_RV64, .comments = true};
    s->n = 0;
    s->chunk = s->stop = chunk;
    s->shard = shard;
    assert_int_equal(tl_stf_flow_new(&s->flow, &options, NULL), TL_OK);
    assert_int_equal(tl_stf_file_bytes(&file, trace, NULL), TL_OK);
    const struct tl_stf_source source = tl_stf_file_source(file);
    assert_int_equal(tl_stf_flow_read(&source, store_items, s, NULL), TL_OK);
    assert_int_equal(tl_stf_flow_finish(s->flow), TL_OK);
    take(s);
    tl_stf_flow_free(s->flow);
    tl_stf_file_close(file);
}

static void assert_same(const struct insn *want, const struct insn *got, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (want[i].pc != got[i].pc || want[i].opcode != got[i].opcode ||
            want[i].extra.n != got[i].extra.n ||
            (want[i].extra.n && memcmp(want[i].extra.p, got[i].extra.p, want[i].extra.n) != 0))
            fail_msg("instruction %zu: 0x%llx %x with %zu bytes, wanted 0x%llx %x with %zu", i,
                     (unsigned long long)got[i].pc, got[i].opcode, got[i].extra.n,
                     (unsigned long long)want[i].pc, want[i].opcode, want[i].extra.n);
    }
}

static void test_into_shards(void **state)
{
    (void)state;
    uint64_t seed = rng_seed("into_shards");
    static struct insn want[N], got[N];
    static struct store s;
    for (unsigned round = 0; round < 12; round++) {
        struct tl_buf trace = {0};
        const uint64_t chunk = 1 + rng_next(&seed) % 300, shard = chunk * (1 + rng_next(&seed) % 4);
        put_trace(&trace, N, &seed);
        assert_int_equal(collect(bytes_of(&trace), want, N), N);
        store_trace(bytes_of(&trace), chunk, round % 3 ? shard : UINT64_MAX, &s);
        size_t n = 0;
        for (size_t i = 0; i <= s.n; i++) {
            if (s.shards[i].n)
                n += collect(bytes_of(&s.shards[i]), got + n, N - n);
            tl_buf_fini(&s.shards[i]);
        }
        assert_int_equal(n, N);
        assert_same(want, got, N);
        free_insns(want, N);
        free_insns(got, N);
        tl_buf_fini(&trace);
    }
}

/* What comes out goes in again: shards read back are written as they were. */
static void test_again(void **state)
{
    (void)state;
    uint64_t seed = rng_seed("again");
    static struct store once, twice;
    struct tl_buf trace = {0};
    put_trace(&trace, N, &seed);
    store_trace(bytes_of(&trace), 100, UINT64_MAX, &once);
    store_trace(bytes_of(&once.shards[0]), 77, UINT64_MAX, &twice);
    static struct insn want[N], got[N];
    assert_int_equal(collect(bytes_of(&once.shards[0]), want, N), N);
    assert_int_equal(collect(bytes_of(&twice.shards[0]), got, N), N);
    assert_same(want, got, N);
    free_insns(want, N);
    free_insns(got, N);
    tl_buf_fini(&once.shards[0]);
    tl_buf_fini(&twice.shards[0]);
    tl_buf_fini(&trace);
}

/* What would stop a reader of shards is not kept; the instruction is. */
static void test_not_kept(void **state)
{
    (void)state;
    static const uint8_t word[8] = {1};
    static struct store s;
    static struct insn got[16];
    const struct tl_stf_record bad[][2] = {
        {{.type = TL_STF_INST_MEM_ACCESS, .access = {1, 8, 0, 3}},
         {.type = TL_STF_INST_MEM_CONTENT}},
        {{.type = TL_STF_INST_MEM_ACCESS, .access = {1, 8, 0, 1}}},
        {{.type = TL_STF_INST_MEM_CONTENT}},
        {{.type = TL_STF_INST_REG, .reg = {1, 0x61, {word, 8}}}},
        {{.type = TL_STF_INST_REG, .reg = {1, 0x25, {word, 8}}}},
        {{.type = TL_STF_INST_REG, .reg = {1, 0x01, {word, 8}}}},
        {{.type = TL_STF_INST_REG, .reg = {1, 0x23, {word, 8}}}},
        {{.type = TL_STF_INST_READY_REG}, {.type = TL_STF_INST_REG, .reg = {1, 0x21, {word, 8}}}},
    };
    const size_t n = sizeof bad / sizeof *bad;
    struct tl_buf trace = {0};
    put_header(&trace);
    for (size_t i = 0; i < n; i++) {
        for (size_t k = 0; k < 2 && bad[i][k].type; k++)
            put_record(&trace, &bad[i][k]);
        put_insn(&trace, 0x13);
    }
    put_reg(&trace, 2, 7);
    put_insn(&trace, 0x93);
    store_trace(bytes_of(&trace), 100, UINT64_MAX, &s);
    assert_int_equal(collect(bytes_of(&s.shards[0]), got, 16), n + 1);
    for (size_t i = 0; i < n; i++) {
        assert_int_equal(got[i].pc, 0x1000 + 4 * i);
        assert_int_equal(got[i].extra.n, 0);
    }
    assert_int_equal(got[n].extra.n, 12);
    free_insns(got, n + 1);
    tl_buf_fini(&s.shards[0]);
    tl_buf_fini(&trace);
}

/* A group that never ends must not fill the memory. */
static void test_endless(void **state)
{
    (void)state;
    static struct store s;
    static struct insn got[4];
    struct tl_buf trace = {0};
    put_header(&trace);
    for (unsigned i = 0; i < 20000; i++)
        put_reg(&trace, 2, i);
    put_insn(&trace, 0x13);
    put_reg(&trace, 2, 1);
    put_insn(&trace, 0x13);
    store_trace(bytes_of(&trace), 100, UINT64_MAX, &s);
    assert_int_equal(collect(bytes_of(&s.shards[0]), got, 4), 2);
    assert_int_equal(got[0].extra.n, 0);
    assert_int_equal(got[1].extra.n, 12);
    free_insns(got, 2);
    tl_buf_fini(&s.shards[0]);
    tl_buf_fini(&trace);
}

/* Accesses and registers of a group, with their data. */
static void test_operands(void **state)
{
    (void)state;
    struct tl_buf trace = {0};
    struct tl_stf_insns *insns;
    struct tl_stf_insn insn;
    put_header(&trace);
    put_reg(&trace, TL_STF_OPERAND_SOURCE, 0x105);
    put_record(&trace, &(struct tl_stf_record){.type = TL_STF_INST_MEM_ACCESS,
                                               .access = {0x2000, 16, 9, TL_STF_WRITE}});
    put_record(&trace, &(struct tl_stf_record){.type = TL_STF_INST_MEM_CONTENT, .data = 11});
    put_record(&trace, &(struct tl_stf_record){.type = TL_STF_INST_MEM_CONTENT, .data = 12});
    put_reg(&trace, TL_STF_OPERAND_DEST, 0x206);
    put_record(&trace, &(struct tl_stf_record){.type = TL_STF_BUS_MASTER_ACCESS,
                                               .bus = {0x3000, 4, 2, 1, 7, TL_STF_READ}});
    put_record(&trace, &(struct tl_stf_record){.type = TL_STF_BUS_MASTER_CONTENT, .data = 13});
    put_insn(&trace, 0x13);
    put_insn(&trace, 0x13);
    assert_int_equal(tl_stf_insns_new(&insns), TL_OK);
    tl_stf_insns_push(insns, bytes_of(&trace));
    tl_stf_insns_finish(insns);
    assert_int_equal(tl_stf_insns_read(insns, &insn, 1, NULL), 1);
    struct tl_stf_group group = tl_stf_insn_group(insns, &insn);
    struct tl_stf_access a;
    assert_int_equal(tl_stf_group_access(&group, &a), TL_OK);
    assert_true(a.address == 0x2000 && a.size == 16 && a.attr == 9 && a.type == TL_STF_WRITE);
    assert_true(!a.bus && a.n_data == 2);
    assert_int_equal(tl_stf_access_data(&a, 0), 11);
    assert_int_equal(tl_stf_access_data(&a, 1), 12);
    assert_int_equal(tl_stf_group_access(&group, &a), TL_OK);
    assert_true(a.address == 0x3000 && a.bus && a.master == 2 && a.index == 1 && a.attr == 7);
    assert_int_equal(a.n_data, 1);
    assert_int_equal(tl_stf_access_data(&a, 0), 13);
    assert_int_equal(tl_stf_group_access(&group, &a), TL_EOF);
    group = tl_stf_insn_group(insns, &insn);
    struct tl_stf_operand o;
    assert_int_equal(tl_stf_group_operand(&group, &o), TL_OK);
    assert_true(o.number == 5 && o.type == TL_STF_REG_INT && o.operand == TL_STF_OPERAND_SOURCE);
    assert_int_equal(tl_stf_word(o.value, 0), 0x105);
    assert_int_equal(tl_stf_group_operand(&group, &o), TL_OK);
    assert_true(o.number == 6 && o.operand == TL_STF_OPERAND_DEST);
    assert_int_equal(tl_stf_group_operand(&group, &o), TL_EOF);
    assert_int_equal(tl_stf_insns_read(insns, &insn, 1, NULL), 1);
    group = tl_stf_insn_group(insns, &insn);
    assert_int_equal(tl_stf_group_access(&group, &a), TL_EOF);
    tl_stf_insns_free(insns);
    tl_buf_fini(&trace);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_into_shards), cmocka_unit_test(test_again),
        cmocka_unit_test(test_not_kept),    cmocka_unit_test(test_endless),
        cmocka_unit_test(test_operands),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
