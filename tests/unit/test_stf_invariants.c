/* SPDX-License-Identifier: MIT */
/* Rules across records: each invariant is reported where it is violated, and only there. */
#include "test_stf_util.h"

#include "stf/tools/check.h"

enum {
    NOP = 0x00000013,   /* addi x0, x0, 0 */
    JAL_8 = 0x0080006f, /* jal x0, +8 */
    BEQ_8 = 0x00000463, /* beq x0, x0, +8 */
    JALR = 0x00008067,  /* jalr x0, x1 */
    ECALL = 0x00000073,
    MRET = 0x30200073,
    FENCE_I = 0x0000100f,
    SFENCE = 0x12000073,
    LUI = 0x000000b7
};

#define PC 0x1000

static const char *const invariants[] = {"flow-target",  "flow-straight", "flow-forced",
                                         "mode-cause",   "code-changed",  "reg-x0",
                                         "walk-differs", "target-branch", "target-straight"};

struct found {
    struct tl_stf_finding first;
    size_t n;
};

static int keep(void *context, const struct tl_stf_finding *finding)
{
    struct found *const found = context;
    for (size_t i = 0; i < sizeof invariants / sizeof *invariants; i++)
        if (strcmp(finding->rule, invariants[i]) == 0 && found->n++ == 0)
            found->first = *finding;
    return TL_OK;
}

static struct tl_buf trace;
static size_t last; /* where the record put last begins */

static void put(const struct tl_stf_record *r)
{
    last = trace.n;
    put_record(&trace, r);
}

static void insn(uint32_t opcode)
{
    put(&(struct tl_stf_record){.type = TL_STF_INST_32, .opcode = opcode});
}

static void jump(uint32_t opcode, uint64_t to)
{
    put(&(struct tl_stf_record){.type = TL_STF_INST_PC_TARGET, .target = to});
    insn(opcode);
}

static void event(uint64_t number, uint64_t value)
{
    uint8_t field[8];
    tl_put_le64(field, value);
    put(&(struct tl_stf_record){.type = TL_STF_EVENT, .event = {number, {field, 8}}});
}

static void store(uint64_t address)
{
    put(&(struct tl_stf_record){.type = TL_STF_INST_MEM_ACCESS,
                                .access = {address, 8, 0, TL_STF_WRITE}});
    put(&(struct tl_stf_record){.type = TL_STF_INST_MEM_CONTENT});
    insn(NOP);
}

static void reg(uint16_t number, uint8_t meta, uint64_t value)
{
    uint8_t word[8];
    tl_put_le64(word, value);
    put(&(struct tl_stf_record){.type = TL_STF_INST_REG, .reg = {number, meta, {word, 8}}});
    insn(NOP);
}

static void page_walk(uint64_t entry, uint64_t value)
{
    uint8_t pair[16];
    tl_put_le64(pair, entry);
    tl_put_le64(pair + 8, value);
    put(&(struct tl_stf_record){.type = TL_STF_PAGE_TABLE_WALK, .walk = {1, 1, 4096, {pair, 16}}});
    insn(NOP);
}

static void begin_isa(uint16_t isa)
{
    const struct tl_stf_header_spec spec = {.isa = isa, .iem = TL_STF_IEM_64, .pc = PC};
    tl_buf_reset(&trace);
    assert_int_equal(tl_stf_header_write(&spec, &trace, NULL), TL_OK);
    event(TL_STF_EVENT_MODE_CHANGE, 3);
    if (isa == TL_STF_ISA_RISCV)
        insn(NOP);
}

static void begin(void)
{
    begin_isa(TL_STF_ISA_RISCV);
}

static struct found check(void)
{
    struct found found = {0};
    struct tl_stf_checker *checker;
    struct tl_stf_reader *reader;
    struct tl_stf_record record;
    assert_int_equal(tl_stf_checker_new(&checker, keep, &found), TL_OK);
    assert_int_equal(tl_stf_reader_new(&reader), TL_OK);
    tl_stf_reader_push(reader, bytes_of(&trace));
    tl_stf_reader_finish(reader);
    while (tl_stf_reader_next(reader, &record, NULL) == TL_OK)
        assert_int_equal(tl_stf_checker_add(checker, &record), TL_OK);
    assert_int_equal(tl_stf_checker_finish(checker), TL_OK);
    tl_stf_checker_free(checker);
    tl_stf_reader_free(reader);
    return found;
}

/* Check that the only finding is this one, at the record at `offset`. */
static void broken(const char *rule, enum tl_stf_severity severity, size_t offset)
{
    const struct found found = check();
    if (found.n != 1 || strcmp(found.first.rule, rule) != 0 || found.first.severity != severity ||
        found.first.offset != offset)
        fail_msg("%s wanted at %zu: %zu found, %s at %llu", rule, offset, found.n,
                 found.n ? found.first.rule : "-", (unsigned long long)found.first.offset);
}

static void fine(void)
{
    const struct found found = check();
    if (found.n)
        fail_msg("%s: %s", found.first.rule, found.first.text);
}

static void flow(void **state)
{
    (void)state;
    begin();
    jump(JAL_8, PC + 12); /* at PC + 4 */
    jump(BEQ_8, PC + 20);
    insn(BEQ_8); /* not taken */
    jump(JALR, 0x5000);
    put(&(struct tl_stf_record){.type = TL_STF_FORCE_PC,
                                .pc = 0x5000}); /* the same address again */
    insn(NOP);
    fine();
    jump(JAL_8, 0x9000);
    broken("flow-target", TL_STF_WARNING, last);
    begin();
    jump(BEQ_8, 0x9000);
    broken("flow-target", TL_STF_WARNING, last);
    begin();
    put(&(struct tl_stf_record){.type = TL_STF_FORCE_PC, .pc = 0x7000});
    const size_t forced = last;
    insn(NOP);
    broken("flow-forced", TL_STF_NOTE, forced);
    begin(); /* an exception instead of the instruction's own effect */
    event(2, 0);
    put(&(struct tl_stf_record){.type = TL_STF_EVENT_PC_TARGET, .target = 0x8000});
    insn(JAL_8);
    insn(NOP);
    fine();
}

static void flow_of_arm(void **state)
{
    (void)state;
    begin_isa(TL_STF_ISA_ARM);
    jump(0x14000002, PC + 8);  /* b +8 */
    insn(0xd503201f);          /* nop */
    jump(0x94000002, PC + 20); /* bl +8 */
    insn(0x54000040);          /* b.eq +8, not taken */
    jump(0xd65f03c0, 0x4000);  /* ret */
    insn(0xd503201f);
    fine();
    insn(0x14000002);
    broken("flow-straight", TL_STF_WARNING, last);
    begin_isa(TL_STF_ISA_ARM);
    jump(0xd503201f, 0x8000);
    broken("flow-target", TL_STF_WARNING, last);
}

static void modes(void **state)
{
    (void)state;
    begin();
    event(TL_STF_EVENT_MODE_CHANGE, 3); /* the same mode as before */
    insn(NOP);
    event(TL_STF_EVENT_MODE_CHANGE, 0);
    insn(MRET);
    put(&(struct tl_stf_record){.type = TL_STF_FORCE_PC, .pc = 0x6000});
    insn(ECALL);
    event(TL_STF_EVENT_MODE_CHANGE, 3);
    insn(NOP);
    fine();
    event(TL_STF_EVENT_MODE_CHANGE, 0);
    const size_t change = last;
    insn(NOP);
    broken("mode-cause", TL_STF_WARNING, change);
}

static void event_to(uint64_t number, uint64_t field, uint64_t to)
{
    event(number, field);
    put(&(struct tl_stf_record){.type = TL_STF_EVENT_PC_TARGET, .target = to});
}

/* Only branches have an INST_PC_TARGET, and only if they are taken. */
static void targets(void **state)
{
    (void)state;
    begin();
    jump(BEQ_8, PC + 8); /* at PC + 4, not taken */
    broken("target-straight", TL_STF_WARNING, last);
    begin();
    jump(BEQ_8, PC + 12);
    jump(JALR, PC + 16); /* an indirect branch to the next instruction */
    jump(BEQ_8, PC + 24);
    event_to(TL_STF_EVENT_MODE_CHANGE, 0, 0x4000);
    insn(MRET);
    insn(NOP);
    fine();
    jump(MRET, 0x8000);
    broken("target-branch", TL_STF_WARNING, last - TL_STF_TARGET_BYTES);
    begin_isa(TL_STF_ISA_ARM);
    jump(0xd69f03e0, 0x8000); /* eret */
    broken("target-branch", TL_STF_WARNING, last);
}

/* Nothing tells where an exception return went. */
static void untold_returns(void **state)
{
    (void)state;
    begin();
    insn(MRET);
    const size_t at = last;
    fine();
    insn(NOP);
    broken("flow-straight", TL_STF_WARNING, at);
    begin();
    event_to(2, 0, 0x8000); /* MRET is illegal in user mode */
    insn(MRET);
    insn(NOP);
    fine();
    begin_isa(TL_STF_ISA_ARM);
    insn(0xd65f03c0); /* ret */
    const size_t ret = last;
    insn(0xd503201f);
    broken("flow-straight", TL_STF_WARNING, ret);
}

static void mode_jumps(void **state)
{
    (void)state;
    begin();
    event(TL_STF_EVENT_MODE_CHANGE, 3); /* as before */
    put(&(struct tl_stf_record){.type = TL_STF_EVENT_PC_TARGET, .target = 0x4000});
    insn(NOP);
    broken("flow-target", TL_STF_WARNING, last);
}

/* Twice at PC + 4, by a jump back. */
static void code(void **state)
{
    (void)state;
    for (int how = 0; how < 5; how++) {
        begin();
        insn(LUI); /* at PC + 4 */
        if (how == 1)
            insn(FENCE_I);
        if (how >= 2)
            store(how == 2 ? PC + 4 : 0x90000);
        if (how == 3)
            put(&(struct tl_stf_record){.type = TL_STF_PROCESS_ID_EXT, .process = {0, 1, 2}});
        jump(JALR, PC + 4);
        insn(NOP);
        if (how == 0 || how == 4)
            broken("code-changed", how == 0 ? TL_STF_NOTE : TL_STF_WARNING, last);
        else
            fine();
    }
    begin(); /* repeating the same code is not a change */
    insn(LUI);
    jump(JALR, PC + 4);
    insn(LUI);
    fine();
}

static void registers(void **state)
{
    (void)state;
    begin();
    reg(0, TL_STF_REG_INT | TL_STF_OPERAND_DEST << 4, 0);
    reg(1, TL_STF_REG_INT | TL_STF_OPERAND_DEST << 4, 5);
    reg(0, TL_STF_REG_FP | TL_STF_OPERAND_DEST << 4, 5);
    fine();
    const size_t at = trace.n;
    reg(0, TL_STF_REG_INT | TL_STF_OPERAND_SOURCE << 4, 5);
    broken("reg-x0", TL_STF_WARNING, at);
}

static void walks(void **state)
{
    (void)state;
    for (int how = 0; how < 6; how++) {
        begin();
        page_walk(0x80000008, 0x20000401);
        page_walk(0x80000010, 0x20000801);
        page_walk(0x80000008, how == 1 ? 0x20000401 : 0x200004c1); /* accessed, dirty */
        if (how == 2)
            insn(SFENCE);
        if (how == 3)
            store(0x80000008);
        if (how == 4)
            store(0x90000000);
        const size_t at = trace.n;
        page_walk(0x80000008, how == 1 ? 0x20000401 : 0x20000c01);
        if (how == 0 || how == 4 || how == 5)
            broken("walk-differs", how == 4 ? TL_STF_WARNING : TL_STF_NOTE, at);
        else
            fine();
    }
}

static int clean_up(void **state)
{
    (void)state;
    tl_buf_fini(&trace);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(flow),    cmocka_unit_test(flow_of_arm),    cmocka_unit_test(modes),
        cmocka_unit_test(targets), cmocka_unit_test(untold_returns), cmocka_unit_test(mode_jumps),
        cmocka_unit_test(code),    cmocka_unit_test(registers),      cmocka_unit_test(walks),
    };
    return cmocka_run_group_tests(tests, NULL, clean_up);
}
