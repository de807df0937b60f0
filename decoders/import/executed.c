/* SPDX-License-Identifier: MIT */
/*
 * Two instructions wait: where one went to, and whether it trapped, is told by the next one, and
 * that may turn out to be one that trapped itself, or to be told again in another form.
 */
#include "import/executed.h"

/* ---- writing --------------------------------------------------------------------------------- */

static int put(struct tl_executed *l, const struct tl_stf_record *record)
{
    return tl_stf_writer_put(&l->writer, record, l->fail);
}

static int begin(struct tl_executed *l, uint64_t pc, bool is_64, const char *generator)
{
    const struct tl_stf_header_spec spec = {.isa = TL_STF_ISA_RISCV,
                                            .generator = generator,
                                            .iem = is_64 ? TL_STF_IEM_64 : TL_STF_IEM_32,
                                            .features = TL_STF_FEATURE_OPERAND_VALUE |
                                                        TL_STF_FEATURE_EVENT |
                                                        (is_64 ? TL_STF_FEATURE_RV64 : 0),
                                            .pc = pc};
    l->begun = true;
    l->isa = is_64 ? TL_ISA_RV64 : TL_ISA_RV32;
    l->writer.unchecked = true; /* the header is there, and the order below is that of STF */
    return tl_stf_header_write(&spec, &l->writer.out, &l->writer.layout);
}

/* May the flow go elsewhere behind this instruction without a trap? */
static bool is_jump(const struct tl_executed *l, const struct tl_executed_insn *i)
{
    static const struct tl_isa_options none = {0};
    struct tl_insn insn;
    uint8_t code[4];
    tl_put_le32(code, i->opcode);
    return tl_insn_decode(l->isa, &none, i->pc, (struct tl_bytes){code, i->size}, &insn) >= 0 &&
           insn.kind >= TL_INSN_BRANCH && insn.kind <= TL_INSN_RETURN_EX;
}

static int put_writes(struct tl_executed *l, const struct tl_executed_insn *i)
{
    int rc = TL_OK;
    for (unsigned k = 0; rc == TL_OK && k < i->n_writes; k++) {
        uint8_t value[8];
        tl_put_le64(value, i->writes[k].value);
        rc = put(l, &(struct tl_stf_record){.type = TL_STF_INST_REG,
                                            .reg = {.number = i->writes[k].number,
                                                    .meta = i->writes[k].meta,
                                                    .value = {value, sizeof value}}});
    }
    if (rc == TL_OK && i->stores)
        rc = put(l, &(struct tl_stf_record){.type = TL_STF_INST_MEM_ACCESS,
                                            .access = {.address = i->store_address,
                                                       .size = (uint16_t)i->store_size,
                                                       .type = TL_STF_WRITE}});
    if (rc == TL_OK && i->stores)
        rc = put(l,
                 &(struct tl_stf_record){.type = TL_STF_INST_MEM_CONTENT, .data = i->store_value});
    return rc;
}

/* Write an instruction; `next`: address of the one behind it. */
static int put_insn(struct tl_executed *l, const struct tl_executed_insn *i, bool has_next,
                    uint64_t next)
{
    const bool moves = has_next && next != i->pc + i->size;
    const bool traps = has_next && i->traps;
    const bool jumps = moves && !traps && is_jump(l, i);
    int rc = TL_OK;
    if (jumps)
        rc = put(l, &(struct tl_stf_record){.type = TL_STF_INST_PC_TARGET, .target = next});
    if (rc == TL_OK)
        rc = put_writes(l, i);
    if (rc == TL_OK && traps)
        rc = put(l, &(struct tl_stf_record){.type = TL_STF_EVENT, .event = {.number = i->cause}});
    if (rc == TL_OK && traps)
        rc = put(l, &(struct tl_stf_record){.type = TL_STF_EVENT_PC_TARGET, .target = next});
    if (rc == TL_OK)
        rc = put(l, &(struct tl_stf_record){.type = i->size == 4 ? TL_STF_INST_32 : TL_STF_INST_16,
                                            .opcode = i->opcode});
    l->count++;
    if (rc == TL_OK && moves && !jumps && !traps) /* a trap of which nothing is told */
        rc = put(l, &(struct tl_stf_record){.type = TL_STF_FORCE_PC, .pc = next});
    return rc;
}

void tl_executed_write(struct tl_executed_insn *i, unsigned type, uint64_t number, uint64_t value)
{
    if (i->n_writes < TL_EXECUTED_WRITES && number < 4096)
        i->writes[i->n_writes++] = (struct tl_executed_write){
            (uint16_t)number, (uint8_t)(type | TL_STF_OPERAND_DEST << 4), value};
}

/* Another instruction follows those that wait; size 0: none does. */
static int advance(struct tl_executed *l, const struct tl_executed_insn *next)
{
    int rc = TL_OK;
    if (l->last.size) {
        if (l->before.size)
            rc = put_insn(l, &l->before, true, l->last.pc);
        l->before = l->last;
    }
    l->last = *next;
    return rc;
}

int tl_executed_add(struct tl_executed *l, const struct tl_executed_insn *insn, bool is_64,
                    const char *generator)
{
    const int rc = l->begun ? TL_OK : begin(l, insn->pc, is_64, generator);
    return rc == TL_OK ? advance(l, insn) : rc;
}

int tl_executed_finish(struct tl_executed *l, struct tl_buf *out)
{
    const struct tl_executed_insn none = {0};
    int rc = l->begun ? advance(l, &none) : TL_BAD;
    if (rc == TL_OK && l->before.size)
        rc = put_insn(l, &l->before, false, 0);
    if (rc == TL_OK && l->count == 0)
        rc = TL_BAD;
    return rc == TL_OK ? tl_buf_add(out, l->writer.out.p, l->writer.out.n) : rc;
}

void tl_executed_fini(struct tl_executed *l)
{
    tl_stf_writer_fini(&l->writer);
}
