/* SPDX-License-Identifier: MIT */
/* Single flow items as STF records, and records of other writers as items. */
#include "test_stf_util.h"

#include "image/image.h"
#include "stf/close.h"
#include "stf/flow/flow_reader.h"
#include "stf/flow/flow_writer.h"

static int sink_text(void *context, const struct tl_item *items, size_t n)
{
    return tl_item_text(context, items, n);
}

/* The listing of the records for `items`, without the header. */
static void listing_of(const struct tl_item *items, size_t n,
                       const struct tl_stf_flow_options *options, struct tl_buf *out)
{
    struct tl_stf_flow *flow;
    struct tl_stf_flow_at at = {0};
    struct tl_stf_record record;
    struct tl_stf_reader *reader;
    assert_int_equal(tl_stf_flow_new(&flow, options, NULL), TL_OK);
    assert_int_equal(tl_stf_flow_items(flow, items, n, UINT64_MAX, &at), TL_OK);
    assert_int_equal(tl_stf_flow_finish(flow), TL_OK);
    assert_int_equal(tl_stf_reader_new(&reader), TL_OK);
    tl_stf_reader_push(reader, tl_stf_flow_bytes(flow));
    tl_stf_reader_finish(reader);
    bool header = true;
    while (tl_stf_reader_next(reader, &record, NULL) == TL_OK) {
        struct tl_buf line = {0};
        if (!header) {
            assert_int_equal(tl_stf_record_text(&record, &line), TL_OK);
            size_t skip = 0; /* length of the offset and size */
            for (int spaces = 0; spaces < 2; skip++)
                spaces += line.p[skip] == ' ';
            assert_int_equal(tl_buf_add(out, line.p + skip, line.n - skip), TL_OK);
            assert_int_equal(tl_buf_add(out, "\n", 1), TL_OK);
        }
        header &= record.type != TL_STF_END_HEADER;
        tl_buf_fini(&line);
    }
    assert_int_equal(tl_buf_add(out, "", 1), TL_OK);
    tl_stf_reader_free(reader);
    tl_stf_flow_free(flow);
}

static void test_branches_without_image(void **state)
{
    (void)state;
    const struct tl_item items[] = {
        {.kind = TL_ITEM_BRANCH,
         .flags = TL_ITEM_HAS_PC | TL_ITEM_CALL,
         .pc = 0x100,
         .value = 0x200},
        {.kind = TL_ITEM_BRANCH, .flags = TL_ITEM_HAS_PC, .pc = 0x210, .value = 0x210},
        {.kind = TL_ITEM_BRANCH, .flags = TL_ITEM_HAS_PC, .pc = 0x210, .value = 0x210},
        {.kind = TL_ITEM_BRANCH, .value = 0x300},
        {.kind = TL_ITEM_UNKNOWN, .flags = TL_ITEM_HAS_PC, .pc = 0x304},
    };
    const struct tl_stf_flow_options options = {.isa = TL_ISA_OR1K, .comments = true};
    struct tl_buf out = {0};
    listing_of(items, 5, &options, &out);
    assert_string_equal((const char *)out.p, "COMMENT len=6 text=\"B call\"\n"
                                             "COMMENT len=3 text=\"J 2\"\n"
                                             "FORCE_PC pc=0x100\n"
                                             "FORCE_PC pc=0x200\n"
                                             "FORCE_PC pc=0x210\n"
                                             "FORCE_PC pc=0x210\n"
                                             "FORCE_PC pc=0x210\n"
                                             "FORCE_PC pc=0x210\n"
                                             "COMMENT len=3 text=\"J 1\"\n"
                                             "FORCE_PC pc=0x300\n"
                                             "COMMENT len=3 text=\"J 0\"\n"
                                             "FORCE_PC pc=0x304\n");
    tl_buf_fini(&out);
}

/* A hand-made A64 block: `n` instructions at `pc`. */
static struct tl_block hand_block(uint64_t pc, uint32_t n, const uint8_t *code, uint8_t *stf)
{
    struct tl_block block = {.pc = pc,
                             .n = n,
                             .size = 4 * n,
                             .isa = TL_ISA_A64,
                             .last_kind = TL_INSN_INDIRECT,
                             .last_size = 4,
                             .code = code,
                             .coded = stf,
                             .coded_size = 5 * n,
                             .last_coded = 5};
    for (uint32_t i = 0; i < n; i++)
        tl_stf_close_insn(stf + 5 * i, pc + 4 * i, code + 4 * i, 4, tl_le32(code + 4 * i));
    return block;
}

static void test_exception_at_the_held_instruction(void **state)
{
    (void)state;
    static const uint8_t code[8] = {1, 0, 0, 0, 2, 0, 0, 0};
    uint8_t stf[10];
    const struct tl_block block = hand_block(0x1000, 2, code, stf);
    const struct tl_block handler = hand_block(0x9000, 1, code, stf);
    const struct tl_item items[] = {
        {.kind = TL_ITEM_BLOCK, .n = 2, .flags = TL_ITEM_TAKEN, .block = &block},
        {.kind = TL_ITEM_EXCEPTION,
         .flags = TL_ITEM_HAS_PC,
         .sub = 14,
         .pc = 0x1100,
         .text = "irq"},
        {.kind = TL_ITEM_MODE, .value = tl_mode(TL_ARCH_ARM, 1, TL_SEC_NS, TL_ISA_A64)},
        {.kind = TL_ITEM_BLOCK, .n = 1, .block = &handler},
    };
    const struct tl_stf_flow_options options = {.isa = TL_ISA_A64};
    struct tl_buf out = {0};
    listing_of(items, 4, &options, &out);
    assert_string_equal(
        (const char *)out.p,
        "INST_32 opcode=0x1\n"
        "INST_PC_TARGET target=0x1100\n"
        "EVENT event=0x800000000000000b n=3 data=0x1100,0xe,0x717269 ; INT_MACHINE_EXT\n"
        "EVENT_PC_TARGET target=0x9000\n"
        "EVENT event=0x4000000000000000 n=2 data=0x1,0x101 ; MODE_CHANGE\n"
        "INST_32 opcode=0x2\n"
        "INST_32 opcode=0x1\n");
    tl_buf_fini(&out);
}

/* An exception return is no branch: where it went is the FORCE_PC of the next instruction. */
static void test_exception_return(void **state)
{
    (void)state;
    static const uint8_t code[8] = {1, 0, 0, 0, 2, 0, 0, 0};
    uint8_t stf[10], stf2[10];
    struct tl_block block = hand_block(0x1000, 1, code, stf);
    const struct tl_block back = hand_block(0x9000, 1, code + 4, stf2);
    block.last_kind = TL_INSN_RETURN_EX;
    const struct tl_item items[] = {
        {.kind = TL_ITEM_BLOCK, .n = 1, .flags = TL_ITEM_TAKEN, .block = &block},
        {.kind = TL_ITEM_ERET},
        {.kind = TL_ITEM_MODE, .value = tl_mode(TL_ARCH_ARM, 1, TL_SEC_NS, TL_ISA_A64)},
        {.kind = TL_ITEM_BLOCK, .n = 1, .block = &back},
    };
    const struct tl_stf_flow_options options = {.isa = TL_ISA_A64};
    struct tl_buf out = {0};
    listing_of(items, 4, &options, &out);
    assert_string_equal((const char *)out.p,
                        "COMMENT len=1 text=\"L\"\n"
                        "COMMENT len=1 text=\"R\"\n"
                        "EVENT event=0x4000000000000000 n=2 data=0x1,0x101 ; MODE_CHANGE\n"
                        "INST_32 opcode=0x1\n"
                        "FORCE_PC pc=0x9000\n"
                        "INST_32 opcode=0x2\n");
    tl_buf_fini(&out);
}

/* What happened in unknown code is no record of the next instruction that is known. */
static void test_instruction_behind_unknown_code(void **state)
{
    (void)state;
    static const uint8_t code[4] = {1, 0, 0, 0};
    uint8_t stf[5], stf2[5];
    const struct tl_block block = hand_block(0x1000, 1, code, stf);
    const struct tl_block after = hand_block(0x2000, 1, code, stf2);
    const uint64_t el0 = tl_mode(TL_ARCH_ARM, 0, TL_SEC_NS, TL_ISA_A64), el1 = el0 | 1 << 8;
    const struct tl_item items[] = {
        {.kind = TL_ITEM_BLOCK, .n = 1, .flags = TL_ITEM_TAKEN, .block = &block},
        {.kind = TL_ITEM_GAP, .flags = TL_ITEM_HAS_PC, .sub = TL_GAP_NO_IMAGE, .pc = 0x5000},
        {.kind = TL_ITEM_MODE, .value = el1},
        {.kind = TL_ITEM_EXCEPTION,
         .flags = TL_ITEM_HAS_PC,
         .sub = 7 | TL_EXCEPTION_INTERRUPT,
         .pc = 0x5010,
         .text = "timer irq"},
        {.kind = TL_ITEM_BRANCH, .flags = TL_ITEM_HAS_PC, .pc = 0x5100, .value = 0x5200},
        {.kind = TL_ITEM_MODE, .value = el0},
        {.kind = TL_ITEM_BLOCK, .n = 1, .block = &after},
    };
    const struct tl_stf_flow_options options = {.isa = TL_ISA_A64};
    struct tl_buf out = {0};
    listing_of(items, 7, &options, &out);
    assert_string_equal((const char *)out.p,
                        "INST_32 opcode=0x1\n"
                        "COMMENT len=3 text=\"J 1\"\n"
                        "FORCE_PC pc=0x5000\n"
                        "COMMENT len=40 text=\"X timer_irq 7 0000000000005010 interrupt\"\n"
                        "COMMENT len=5 text=\"M 101\"\n"
                        "COMMENT len=3 text=\"J 2\"\n"
                        "FORCE_PC pc=0x5100\n"
                        "FORCE_PC pc=0x5200\n"
                        "FORCE_PC pc=0x2000\n"
                        "EVENT event=0x4000000000000000 n=2 data=0x0,0x2000000000000001 ; "
                        "MODE_CHANGE\n"
                        "INST_32 opcode=0x1\n");
    tl_buf_fini(&out);
}

static int count_returns(void *context, const struct tl_item *items, size_t n)
{
    unsigned *const counts = context; /* ERET items, blocks that changed the flow */
    for (size_t i = 0; i < n; i++) {
        counts[0] += items[i].kind == TL_ITEM_ERET;
        counts[1] += items[i].kind == TL_ITEM_BLOCK && items[i].flags & TL_ITEM_TAKEN;
    }
    return TL_OK;
}

/* However other writers tell where a return from a handler went; one that faulted is none. */
static void test_returns_of_other_writers(void **state)
{
    (void)state;
    static const uint8_t user[8] = {0};
    const struct tl_stf_record mode = {.type = TL_STF_EVENT,
                                       .event = {TL_STF_EVENT_MODE_CHANGE, {user, 8}}};
    const struct tl_stf_record to = {.type = TL_STF_EVENT_PC_TARGET, .target = 0x4000};
    const struct tl_stf_record mret = {.type = TL_STF_INST_32, .opcode = 0x30200073};
    const struct tl_stf_record records[] = {
        mode,
        to,
        mret, /* by the change of mode */
        mret,
        {.type = TL_STF_FORCE_PC, .pc = 0x5000}, /* by the next instruction */
        {.type = TL_STF_INST_PC_TARGET, .target = 0x6000},
        mret, /* against the specification */
        {.type = TL_STF_EVENT, .event = {2, {user, 8}}},
        to,
        mret, /* illegal here */
        {.type = TL_STF_EVENT, .event = {TL_STF_EVENT_INTERRUPT | 7, {user, 8}}},
        to,
        mret,
    };
    const struct tl_stf_header_spec spec = {
        .isa = 1, .iem = 2, .pc = 0x1000, .generator = "another writer 1.0"};
    struct tl_buf trace = {0};
    struct tl_stf_file *file;
    unsigned counts[2] = {0};
    assert_int_equal(tl_stf_header_write(&spec, &trace, NULL), TL_OK);
    for (size_t i = 0; i < sizeof records / sizeof *records; i++)
        put_record(&trace, &records[i]);
    assert_int_equal(tl_stf_file_bytes(&file, bytes_of(&trace), NULL), TL_OK);
    const struct tl_stf_source source = tl_stf_file_source(file);
    assert_int_equal(tl_stf_flow_read(&source, count_returns, counts, NULL), TL_OK);
    assert_int_equal(counts[0], 4);
    assert_int_equal(counts[1], 4);
    tl_stf_file_close(file);
    tl_buf_fini(&trace);
}

static void test_gap_forces_the_address(void **state)
{
    (void)state;
    static const uint8_t code[8] = {1, 0, 0, 0, 2, 0, 0, 0};
    uint8_t stf[10], stf2[10];
    const struct tl_block block = hand_block(0x1000, 1, code, stf);
    const struct tl_block after = hand_block(0x1004, 1, code + 4, stf2);
    const struct tl_item items[] = {
        {.kind = TL_ITEM_BLOCK, .n = 1, .block = &block},
        {.kind = TL_ITEM_GAP, .sub = TL_GAP_OVERFLOW},
        {.kind = TL_ITEM_BLOCK, .n = 1, .block = &after},
    };
    const struct tl_stf_flow_options options = {.isa = TL_ISA_A64};
    struct tl_buf out = {0};
    listing_of(items, 3, &options, &out);
    assert_string_equal((const char *)out.p, "INST_32 opcode=0x1\n"
                                             "FORCE_PC pc=0x1004\n"
                                             "INST_32 opcode=0x2\n");
    tl_buf_fini(&out);
}

/* T32 and A32 have the same INST_IEM value: an event of ours distinguishes them. */
static void test_instruction_sets_within_a_shard(void **state)
{
    (void)state;
    static const uint8_t code[4] = {0x00, 0xbf, 0x00, 0xbf};
    static const uint8_t wide[4] = {0x4f, 0xf0, 0x01, 0x00}; /* mov.w r0, #1: f04f 0001 */
    static const uint8_t arm[4] = {0x01, 0x00, 0xa0, 0xe3};
    uint8_t stf[TL_STF_CLOSE_MAX], stf2[TL_STF_CLOSE_MAX], stf3[10], stf4[10];
    struct tl_block t32 = hand_block(0x1000, 1, code, stf);
    t32.isa = TL_ISA_T32;
    t32.size = t32.last_size = 2;
    t32.coded_size = t32.last_coded = tl_stf_close_insn(stf, 0x1000, code, 2, 0xbf00);
    struct tl_block t32w = hand_block(0x1002, 1, wide, stf2);
    t32w.isa = TL_ISA_T32;
    tl_stf_close_insn(stf2, 0x1002, wide, 4, 0xf04f0001);
    struct tl_block a32 = hand_block(0x2000, 1, arm, stf3);
    a32.isa = TL_ISA_A32;
    const struct tl_block a64_block =
        hand_block(0x3000, 1, (const uint8_t *)"\x1f\x20\x03\xd5", stf4);
    const struct tl_item items[] = {
        {.kind = TL_ITEM_BLOCK, .n = 1, .block = &t32},
        {.kind = TL_ITEM_BLOCK, .n = 1, .flags = TL_ITEM_TAKEN, .block = &t32w},
        {.kind = TL_ITEM_BLOCK, .n = 1, .flags = TL_ITEM_TAKEN, .block = &a32},
        {.kind = TL_ITEM_BLOCK, .n = 1, .flags = TL_ITEM_TAKEN, .block = &a64_block},
        {.kind = TL_ITEM_BLOCK, .n = 1, .block = &t32w},
    };
    struct tl_stf_flow *flow;
    struct tl_stf_flow_at at = {0};
    const struct tl_stf_flow_options options = {.isa = TL_ISA_T32};
    assert_int_equal(tl_stf_flow_new(&flow, &options, NULL), TL_OK);
    assert_int_equal(tl_stf_flow_items(flow, items, 5, UINT64_MAX, &at), TL_OK);
    assert_int_equal(tl_stf_flow_finish(flow), TL_OK);
    struct tl_stf_file *file;
    struct tl_buf text = {0};
    assert_int_equal(tl_stf_file_bytes(&file, tl_stf_flow_bytes(flow), NULL), TL_OK);
    const struct tl_stf_source source = tl_stf_file_source(file);
    assert_int_equal(tl_stf_flow_read(&source, sink_text, &text, NULL), TL_OK);
    assert_int_equal(tl_buf_add(&text, "", 1), TL_OK);
    assert_string_equal((const char *)text.p, "I 0000000000001000 bf00\n"
                                              "I 0000000000001002 f04f0001\n"
                                              "I 0000000000002000 e3a00001\n"
                                              "I 0000000000003000 d503201f\n"
                                              "I 0000000000001002 f04f0001\n");
    tl_buf_fini(&text);
    tl_stf_file_close(file);
    tl_stf_flow_free(flow);
}

/* Instruction lengths for which STF has no closing record. */
static void test_other_lengths(void **state)
{
    (void)state;
    static const uint8_t code[16] = {0x90, 0x48, 0x89, 0xe5, 0xe8, 1, 2, 3, 4, 0xc3};
    static const uint8_t sizes[] = {1, 3, 5, 1};
    uint8_t stf[4 * TL_STF_CLOSE_MAX];
    uint32_t n = 0, at = 0, last = 0;
    for (unsigned i = 0; i < 4; i++) {
        last = tl_stf_close_insn(stf + n, 0x1000 + at, code + at, sizes[i], 0);
        n += last;
        at += sizes[i];
    }
    const struct tl_block block = {.pc = 0x1000,
                                   .n = 4,
                                   .size = at,
                                   .isa = TL_ISA_X64,
                                   .last_kind = TL_INSN_INDIRECT,
                                   .last_size = 1,
                                   .coded = stf,
                                   .coded_size = n,
                                   .last_coded = last,
                                   .code = code};
    const struct tl_item items[] = {
        {.kind = TL_ITEM_BLOCK, .n = 4, .flags = TL_ITEM_TAKEN, .block = &block},
        {.kind = TL_ITEM_BLOCK, .n = 2, .block = &block},
    };
    struct tl_stf_flow *flow;
    struct tl_stf_flow_at where = {0};
    const struct tl_stf_flow_options options = {.isa = TL_ISA_X64};
    assert_int_equal(tl_stf_flow_new(&flow, &options, NULL), TL_OK);
    assert_int_equal(tl_stf_flow_items(flow, items, 2, UINT64_MAX, &where), TL_OK);
    assert_int_equal(tl_stf_flow_finish(flow), TL_OK);
    struct tl_stf_insns *insns;
    struct tl_stf_insn got[8];
    assert_int_equal(tl_stf_insns_new(&insns), TL_OK);
    tl_stf_insns_push(insns, tl_stf_flow_bytes(flow));
    tl_stf_insns_finish(insns);
    assert_int_equal(tl_stf_insns_read(insns, got, 8, NULL), 6);
    uint64_t pc = 0x1000;
    for (unsigned i = 0, offset = 0; i < 6; i++) {
        uint8_t bytes[16];
        assert_int_equal(got[i].pc, pc);
        assert_int_equal(tl_stf_insn_bytes(insns, &got[i], bytes), sizes[i % 4]);
        assert_memory_equal(bytes, code + offset, sizes[i % 4]);
        offset += sizes[i % 4];
        pc += sizes[i % 4];
        if (i == 3) {
            pc = 0x1000;
            offset = 0;
        }
    }
    assert_int_equal(tl_stf_insn_next(insns, &got[3]), 0x1000);
    tl_stf_insns_free(insns);
    tl_stf_flow_free(flow);
}

/* A stream without any address gives only a header. */
static void test_no_instruction_at_all(void **state)
{
    (void)state;
    const struct tl_item items[] = {{.kind = TL_ITEM_TIME, .value = 5}};
    const struct tl_stf_flow_options options = {.isa = TL_ISA_A64, .comments = true};
    struct tl_buf out = {0};
    listing_of(items, 1, &options, &out);
    assert_string_equal((const char *)out.p, "COMMENT len=3 text=\"T 5\"\n");
    tl_buf_fini(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_branches_without_image),
        cmocka_unit_test(test_exception_at_the_held_instruction),
        cmocka_unit_test(test_exception_return),
        cmocka_unit_test(test_instruction_behind_unknown_code),
        cmocka_unit_test(test_returns_of_other_writers),
        cmocka_unit_test(test_gap_forces_the_address),
        cmocka_unit_test(test_instruction_sets_within_a_shard),
        cmocka_unit_test(test_other_lengths),
        cmocka_unit_test(test_no_instruction_at_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
