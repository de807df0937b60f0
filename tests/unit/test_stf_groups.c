/* SPDX-License-Identifier: MIT */
/*
 * The contents of other producers' STF traces pass through flow items into shards unchanged: whole
 * groups, record by record, for any layout that the header declares.
 */
#include "made_stf.h"

#include "stf/flow/flow_reader.h"
#include "stf/flow/flow_writer.h"
#include "stf/operands.h"
#include "stf/tools/slice.h"

#define N 3000

struct insn {
    uint64_t pc;
    uint32_t opcode;
    struct tl_buf group; /* its records, encoded in the trace's layout */
};

/*
 * The instructions of a trace with their groups. `strict`: all rules except the order of
 * descriptors must hold.
 */
static size_t collect_all(struct tl_bytes bytes, bool strict, struct insn *out, size_t cap)
{
    struct tl_stf_reader *reader;
    struct tl_stf_record r;
    struct tl_stf_pc pc = {0};
    struct tl_stf_layout layout = {0};
    struct tl_stf_order order = {0};
    struct tl_buf group = {0};
    size_t n = 0;
    const char *rule;
    assert_int_equal(tl_stf_reader_new(&reader), TL_OK);
    tl_stf_reader_push(reader, bytes);
    tl_stf_reader_finish(reader);
    int result;
    while ((result = tl_stf_reader_next(reader, &r, NULL)) == TL_OK) {
        const uint64_t at = tl_stf_pc_add(&pc, &r);
        const bool header = !tl_stf_reader_header(reader)->complete || r.type == TL_STF_END_HEADER;
        if (strict && tl_stf_order_add(&order, &r, &rule) < 0 && strcmp(rule, TL_STF_DISORDER) != 0)
            fail_msg("offset %llu: %s: %s", (unsigned long long)r.offset, tl_stf_type_name(r.type),
                     rule);
        tl_stf_layout_apply(&layout, &r);
        if (!header)
            assert_int_equal(tl_stf_record_encode(&layout, &r, &group), TL_OK);
        if (tl_stf_is_marker(r.type)) {
            assert_true(n < cap);
            out[n++] = (struct insn){at, r.opcode, group};
            group = (struct tl_buf){0};
        }
    }
    assert_int_equal(result, TL_EOF);
    tl_buf_fini(&group);
    tl_stf_reader_free(reader);
    return n;
}

static size_t collect(struct tl_bytes bytes, struct insn *out, size_t cap)
{
    return collect_all(bytes, true, out, cap);
}

static void free_insns(struct insn *insns, size_t n)
{
    for (size_t i = 0; i < n; i++)
        tl_buf_fini(&insns[i].group);
}

/*
 * Writes flow items to shards of `shard` instructions, in chunks of `chunk` instructions, skipping
 * the first `pass` and ending at `last`.
 */
struct store {
    struct tl_stf_flow *flow;
    uint64_t stop, chunk, shard;
    uint64_t pass, last;
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
    if (s->last && tl_stf_flow_markers(s->flow) == s->last)
        return TL_EOF;
    for (; s->pass > 0 && at.item < n; at.item++) {
        const uint32_t size = items[at.item].kind == TL_ITEM_BLOCK ? items[at.item].n : 0;
        if (s->pass < size) {
            at.insn = (uint32_t)s->pass;
            s->pass = 0;
            break;
        }
        s->pass -= size;
    }
    while ((result = tl_stf_flow_items(s->flow, items, n, s->stop, &at)) == TL_AGAIN) {
        assert_int_equal(tl_stf_flow_markers(s->flow), s->stop);
        take(s);
        if (s->stop == s->last)
            return TL_EOF;
        s->stop += s->chunk;
        if (s->stop > s->shard) {
            tl_stf_flow_restart(s->flow);
            s->stop = s->chunk;
            s->n++;
        }
    }
    return result;
}

/* Store instructions [first, first + limit) of a trace. */
static void store_range(struct tl_bytes trace, uint64_t first, uint64_t limit, uint64_t chunk,
                        uint64_t shard, struct store *s)
{
    struct tl_stf_reader *reader;
    struct tl_stf_flow_reader *flow;
    struct tl_stf_record r;
    const struct tl_stf_flow_options options = {.isa = TL_ISA_RV64, .first = first};
    *s = (struct store){.chunk = chunk, .stop = chunk, .shard = shard, .pass = first};
    if (limit < chunk)
        s->last = s->stop = limit;
    assert_int_equal(tl_stf_flow_new(&s->flow, &options, NULL), TL_OK);
    assert_int_equal(tl_stf_reader_new(&reader), TL_OK);
    assert_int_equal(tl_stf_flow_reader_new(&flow, store_items, s), TL_OK);
    tl_stf_reader_push(reader, trace);
    tl_stf_reader_finish(reader);
    int result;
    while ((result = tl_stf_reader_next(reader, &r, NULL)) == TL_OK) {
        result = tl_stf_flow_reader_add(flow, &r);
        if (result == TL_EOF)
            break;
        assert_int_equal(result, TL_OK);
    }
    assert_int_equal(result, TL_EOF);
    result = tl_stf_flow_reader_finish(flow);
    if (result != TL_EOF) {
        assert_int_equal(result, TL_OK);
        assert_int_equal(tl_stf_flow_finish(s->flow), TL_OK);
        take(s);
    }
    tl_stf_flow_free(s->flow);
    tl_stf_flow_reader_free(flow);
    tl_stf_reader_free(reader);
}

static void store_trace(struct tl_bytes trace, uint64_t chunk, uint64_t shard, struct store *s)
{
    store_range(trace, 0, UINT64_MAX, chunk, shard, s);
}

/* Is `want` the group without the two-field MODE_CHANGE that repeats the current mode? */
static bool is_without(const struct tl_buf *want, const struct tl_buf *got,
                       const struct tl_stf_layout *layout)
{
    const size_t event = layout->event64 ? 26 : 22;
    if (got->n != want->n + event)
        return false;
    size_t same = 0;
    while (same < want->n && want->p[same] == got->p[same])
        same++;
    /* The inserted record may begin with the same bytes. */
    for (size_t at = same + 1; at-- > 0;) {
        struct tl_stf_record r;
        const struct tl_bytes rest = {got->p + at, got->n - at};
        if (tl_stf_record_decode(layout, rest, &r) == (int)event && r.type == TL_STF_EVENT &&
            r.event.number == TL_STF_EVENT_MODE_CHANGE && r.event.fields.n == 16 &&
            memcmp(got->p + at + event, want->p + at, want->n - at) == 0)
            return true;
    }
    return false;
}

/* The mode may be repeated where a shard begins (every `shard` instructions). */
static void assert_same(const struct insn *want, const struct insn *got, size_t n, uint64_t shard,
                        const struct tl_stf_layout *layout)
{
    for (size_t i = 0; i < n; i++) {
        const struct tl_buf *const a = &want[i].group, *const b = &got[i].group;
        if (want[i].pc == got[i].pc && want[i].opcode == got[i].opcode &&
            ((a->n == b->n && memcmp(a->p, b->p, a->n) == 0) ||
             (i % shard == 0 && is_without(a, b, layout))))
            continue;
        fail_msg("instruction %zu: 0x%llx %x with %zu bytes, wanted 0x%llx %x with %zu", i,
                 (unsigned long long)got[i].pc, got[i].opcode, b->n, (unsigned long long)want[i].pc,
                 want[i].opcode, a->n);
    }
}

static size_t collect_shards(struct store *s, struct insn *out, size_t cap)
{
    size_t n = 0;
    for (size_t i = 0; i <= s->n; i++) {
        if (s->shards[i].n)
            n += collect(bytes_of(&s->shards[i]), out + n, cap - n);
        tl_buf_fini(&s->shards[i]);
    }
    return n;
}

static const struct {
    uint32_t vlen;
    bool event64;
} kinds[] = {{0, false}, {0, true}, {128, false}, {512, true}, {64, true}, {200, false}};
enum { KINDS = sizeof kinds / sizeof *kinds };

static void test_into_shards(void **state)
{
    (void)state;
    static struct insn want[N], got[N];
    static struct store s;
    struct maker m = {.seed = rng_seed("into_shards")};
    for (unsigned round = 0; round < 3 * KINDS; round++) {
        const uint64_t chunk = 1 + roll(&m) % 300;
        const uint64_t shard = round % 3 ? chunk * (1 + roll(&m) % 4) : UINT64_MAX;
        m = (struct maker){.seed = m.seed};
        begin_trace(&m, kinds[round % KINDS].vlen, kinds[round % KINDS].event64);
        put_trace(&m, N);
        assert_int_equal(collect(bytes_of(&m.out), want, N), N);
        store_trace(bytes_of(&m.out), chunk, shard, &s);
        assert_int_equal(collect_shards(&s, got, N), N);
        assert_same(want, got, N, shard, &m.layout);
        free_insns(want, N);
        free_insns(got, N);
        tl_buf_fini(&m.out);
    }
}

/* Shards that are read and written again keep their contents. */
static void test_again(void **state)
{
    (void)state;
    static struct store once, twice;
    static struct insn want[N], got[N];
    struct maker m = {.seed = rng_seed("again")};
    begin_trace(&m, 256, true);
    put_trace(&m, N);
    store_trace(bytes_of(&m.out), 100, UINT64_MAX, &once);
    store_trace(bytes_of(&once.shards[0]), 77, UINT64_MAX, &twice);
    assert_int_equal(collect(bytes_of(&once.shards[0]), want, N), N);
    assert_int_equal(collect_shards(&twice, got, N), N);
    assert_same(want, got, N, UINT64_MAX, &m.layout);
    free_insns(want, N);
    free_insns(got, N);
    tl_buf_fini(&once.shards[0]);
    tl_buf_fini(&m.out);
}

/* A stored range equals a slice of the file; page walks are counted from its beginning. */
static void test_range(void **state)
{
    (void)state;
    static struct store s;
    static struct insn want[N], got[N];
    struct maker m = {.seed = rng_seed("range")};
    for (unsigned round = 0; round < 2 * KINDS; round++) {
        m = (struct maker){.seed = m.seed};
        begin_trace(&m, kinds[round % KINDS].vlen, kinds[round % KINDS].event64);
        put_trace(&m, N);
        const uint64_t from = roll(&m) % (N - 10), to = from + 1 + roll(&m) % (N - from);
        const struct tl_stf_sink sink = {&(struct tl_buf){0}, buf_write, buf_rewrite};
        const struct tl_stf_out_options options = {.unchecked = true};
        struct tl_stf_out *out;
        struct tl_stf_slicer *slicer;
        struct tl_stf_reader *reader;
        struct tl_stf_record r;
        assert_int_equal(tl_stf_out_new(&out, &options, &sink), TL_OK);
        assert_int_equal(tl_stf_slicer_new(&slicer, from, to, NULL, out), TL_OK);
        assert_int_equal(tl_stf_reader_new(&reader), TL_OK);
        tl_stf_reader_push(reader, bytes_of(&m.out));
        tl_stf_reader_finish(reader);
        while (tl_stf_reader_next(reader, &r, NULL) == TL_OK &&
               tl_stf_slicer_add(slicer, &r, NULL) == TL_OK) {
        }
        assert_int_equal(tl_stf_out_finish(out, NULL), TL_OK);
        store_range(bytes_of(&m.out), from, to - from, UINT64_MAX, UINT64_MAX, &s);
        const size_t n = collect(bytes_of(sink.context), want, N);
        assert_int_equal(n, to - from);
        assert_int_equal(collect_shards(&s, got, N), n);
        /* The first group of a slice also has the registers. */
        assert_int_equal(want[0].pc, got[0].pc);
        assert_same(want + 1, got + 1, n - 1, UINT64_MAX, &m.layout);
        free_insns(want, n);
        free_insns(got, n);
        tl_stf_reader_free(reader);
        tl_stf_slicer_free(slicer);
        tl_stf_out_free(out);
        tl_buf_fini(sink.context);
        tl_buf_fini(&m.out);
    }
}

/* Records that would stop a reader of shards are dropped; the rest of the group is kept. */
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
        {{.type = TL_STF_BUS_MASTER_ACCESS}},
        {{.type = TL_STF_BUS_MASTER_ACCESS}, {.type = TL_STF_INST_MEM_CONTENT}},
        {{.type = TL_STF_INST_MEM_CONTENT}},
        {{.type = TL_STF_INST_REG, .reg = {1, 0x61, {word, 8}}}},
        {{.type = TL_STF_INST_REG, .reg = {1, 0x25, {word, 8}}}},
        {{.type = TL_STF_INST_REG, .reg = {1, 0x01, {word, 8}}}},
        {{.type = TL_STF_VLEN_CONFIG, .vlen = 128}},
        {{.type = TL_STF_TRACE_INFO_FEATURE, .features = TL_STF_FEATURE_EVENT64}},
    };
    const size_t n = sizeof bad / sizeof *bad;
    struct maker m = {0};
    begin_trace(&m, 0, false);
    for (size_t i = 0; i < n; i++) {
        put(&m, &(struct tl_stf_record){.type = TL_STF_INST_READY_REG});
        for (size_t k = 0; k < 2 && bad[i][k].type; k++)
            put(&m, &bad[i][k]);
        put(&m, &(struct tl_stf_record){.type = TL_STF_INST_32, .opcode = 0x13});
    }
    store_trace(bytes_of(&m.out), 100, UINT64_MAX, &s);
    assert_int_equal(collect_shards(&s, got, 16), n);
    for (size_t i = 0; i < n; i++) {
        assert_int_equal(got[i].pc, 0x1000 + 4 * i);
        assert_int_equal(got[i].group.n, 3 + 5);
    }
    free_insns(got, n);
    tl_buf_fini(&m.out);
}

/* Everything that readers accept is kept, however unusual. */
static void test_kept(void **state)
{
    (void)state;
    static const uint8_t word[8] = {1};
    static struct store s;
    static struct insn want[8], got[8];
    const struct tl_stf_record odd[][3] = {
        {{.type = TL_STF_INST_MEM_ACCESS, .access = {1, 8, 0, 1}},
         {.type = TL_STF_COMMENT, .text = text_bytes("between")},
         {.type = TL_STF_INST_MEM_CONTENT, .data = 5}},
        {{.type = TL_STF_INST_READY_REG}, {.type = TL_STF_INST_REG, .reg = {1, 0x21, {word, 8}}}},
        {{.type = TL_STF_INST_REG,
          .reg = {1, 0x23, {word, 8}}}}, /* in 1.3, the register has one word */
        {{.type = TL_STF_EVENT, .event = {3, {0}}},
         {.type = TL_STF_EVENT_PC_TARGET, .target = 0x4000},
         {.type = TL_STF_FORCE_PC, .pc = 0x3000}},
        {{.type = TL_STF_INST_PC_TARGET, .target = 0x5000},
         {.type = TL_STF_FORCE_PC, .pc = 0x4400}},
        {{.type = TL_STF_INST_IEM, .iem = TL_STF_IEM_32}},
    };
    const size_t n = sizeof odd / sizeof *odd;
    struct maker m = {0};
    begin_trace(&m, 0, false);
    for (size_t i = 0; i < n; i++) {
        for (size_t k = 0; k < 3 && odd[i][k].type; k++)
            put(&m, &odd[i][k]);
        put(&m, &(struct tl_stf_record){.type = TL_STF_INST_32, .opcode = 0x13});
    }
    assert_int_equal(collect_all(bytes_of(&m.out), false, want, 8), n);
    store_trace(bytes_of(&m.out), 100, UINT64_MAX, &s);
    assert_int_equal(collect_all(bytes_of(&s.shards[0]), false, got, 8), n);
    tl_buf_fini(&s.shards[0]);
    assert_same(want, got, n, UINT64_MAX, &m.layout);
    free_insns(want, n);
    free_insns(got, n);
    tl_buf_fini(&m.out);
}

/* Of a group that never ends, only the addresses are kept, so that it cannot fill the memory. */
static void test_endless(void **state)
{
    (void)state;
    static struct store s;
    static struct insn got[4];
    struct maker m = {0};
    begin_trace(&m, 0, false);
    put(&m, &(struct tl_stf_record){.type = TL_STF_FORCE_PC, .pc = 0x7000});
    put(&m, &(struct tl_stf_record){.type = TL_STF_INST_PC_TARGET, .target = 0x9000});
    for (unsigned i = 0; i < 500000; i++)
        put_reg(&m, TL_STF_REG_INT, 2);
    put(&m, &(struct tl_stf_record){.type = TL_STF_INST_32, .opcode = 0x13});
    put_reg(&m, TL_STF_REG_INT, 2);
    put(&m, &(struct tl_stf_record){.type = TL_STF_INST_32, .opcode = 0x13});
    store_trace(bytes_of(&m.out), 100, UINT64_MAX, &s);
    assert_int_equal(collect_shards(&s, got, 4), 2);
    assert_int_equal(got[0].pc, 0x7000);
    assert_int_equal(got[0].group.n, 9 + 9 + 5);
    assert_int_equal(got[1].pc, 0x9000);
    assert_int_equal(got[1].group.n, 12 + 5);
    free_insns(got, 2);
    tl_buf_fini(&m.out);
}

static void put_value(struct tl_buf *out, uint8_t operand, uint64_t dice)
{
    uint8_t value[8];
    tl_put_le64(value, dice);
    put_record(out, &(struct tl_stf_record){
                        .type = TL_STF_INST_REG,
                        .reg = {(uint16_t)(dice & 31), (uint8_t)(1 | operand << 4), {value, 8}}});
}

/*
 * A further header gives a new address; registers with another vector length than the first
 * header's are dropped.
 */
static void test_further_header(void **state)
{
    (void)state;
    static struct store s;
    static struct insn got[8];
    const struct tl_stf_record nop = {.type = TL_STF_INST_32, .opcode = 0x13};
    struct maker first = {0}, second = {0};
    begin_trace(&first, 128, true);
    put_reg(&first, TL_STF_REG_VECTOR, TL_STF_OPERAND_DEST);
    put(&first, &nop);
    begin_trace(&second, 256, false);
    put_reg(&second, TL_STF_REG_VECTOR, TL_STF_OPERAND_DEST);
    put(&second, &nop);
    put_reg(&second, TL_STF_REG_INT, TL_STF_OPERAND_DEST);
    put_event(&second, true, 0);
    put(&second, &nop);
    assert_int_equal(tl_buf_add(&first.out, second.out.p, second.out.n), TL_OK);
    /* And a header without an address. */
    static const uint8_t bare[] = {TL_STF_IDENTIFIER, 'S', 'T', 'F', TL_STF_INST_32, 0x13, 0, 0, 0};
    assert_int_equal(tl_buf_add(&first.out, bare, sizeof bare), TL_OK);
    store_trace(bytes_of(&first.out), 100, UINT64_MAX, &s);
    assert_int_equal(collect_shards(&s, got, 8), 4);
    static const uint64_t pcs[] = {0x1000, 0x1000, 0x1004, 0};
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(got[i].pc, pcs[i]);
        assert_int_equal(got[i].opcode, 0x13);
    }
    assert_int_equal(got[0].group.n, 4 + 16 + 5);
    assert_int_equal(got[1].group.n, 3 + 13 + 9 + 5); /* INST_IEM, PROCESS_ID_EXT, FORCE_PC */
    assert_true(got[2].group.n >= 12 + 10 + 5);       /* its events are now in the long form */
    assert_int_equal(got[3].group.n, 9 + 5);
    free_insns(got, 4);
    tl_buf_fini(&first.out);
    tl_buf_fini(&second.out);
}

/* Memory accesses and registers of a group, with their data. */
static void test_operands(void **state)
{
    (void)state;
    struct tl_buf trace = {0};
    struct tl_stf_insns *insns;
    struct tl_stf_insn insn;
    put_header(&trace);
    put_value(&trace, TL_STF_OPERAND_SOURCE, 0x105);
    put_record(&trace, &(struct tl_stf_record){.type = TL_STF_INST_MEM_ACCESS,
                                               .access = {0x2000, 16, 9, TL_STF_WRITE}});
    put_record(&trace, &(struct tl_stf_record){.type = TL_STF_INST_MEM_CONTENT, .data = 11});
    put_record(&trace, &(struct tl_stf_record){.type = TL_STF_INST_MEM_CONTENT, .data = 12});
    put_value(&trace, TL_STF_OPERAND_DEST, 0x206);
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
    struct tl_stf_access a = {0};
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
    struct tl_stf_operand o = {0};
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
        cmocka_unit_test(test_range),       cmocka_unit_test(test_not_kept),
        cmocka_unit_test(test_kept),        cmocka_unit_test(test_endless),
        cmocka_unit_test(test_operands),    cmocka_unit_test(test_further_header),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
