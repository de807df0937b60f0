/* SPDX-License-Identifier: MIT */
/*
 * Reads the log of a simulator's instructions. Two instructions wait: where one went to, and
 * whether it trapped, is told by the next one, and that may turn out to be one that trapped itself,
 * or to be told again as a commit.
 */
#include "import/spike.h"

#include "base/bytes.h"
#include "isa/isa.h"
#include "stf/writer.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WRITES = 8 };

struct write {
    uint16_t number;
    uint8_t meta;
    uint64_t value;
};

struct insn {
    uint64_t pc;
    uint32_t opcode;
    unsigned size;          /* bytes; 0: there is none */
    bool is_commit, stores; /* `stores`: the following are known */
    uint64_t store_address, store_value;
    unsigned store_size;
    struct write writes[WRITES];
    unsigned n_writes;
    bool traps; /* an exception follows */
    uint64_t cause;
};

struct log {
    struct tl_stf_writer writer;
    struct tl_fail *fail;
    struct insn before, last; /* not written yet; size 0: none */
    uint64_t core, count;
    enum tl_isa isa;
    bool begun, commits; /* there were commits */
};

/* ---- writing --------------------------------------------------------------------------------- */

static int put(struct log *l, const struct tl_stf_record *record)
{
    return tl_stf_writer_put(&l->writer, record, l->fail);
}

static int begin(struct log *l, uint64_t pc, bool is_64)
{
    const struct tl_stf_header_spec spec = {
        .isa = TL_STF_ISA_RISCV,
        .generator = "log of Spike, read by tracelake " TL_VERSION,
        .iem = is_64 ? TL_STF_IEM_64 : TL_STF_IEM_32,
        .features =
            TL_STF_FEATURE_OPERAND_VALUE | TL_STF_FEATURE_EVENT | (is_64 ? TL_STF_FEATURE_RV64 : 0),
        .pc = pc};
    l->begun = true;
    l->isa = is_64 ? TL_ISA_RV64 : TL_ISA_RV32;
    l->writer.unchecked = true; /* the header is there, and the order below is that of STF */
    return tl_stf_header_write(&spec, &l->writer.out, &l->writer.layout);
}

/* May the flow go elsewhere behind this instruction without a trap? */
static bool is_jump(const struct log *l, const struct insn *i)
{
    static const struct tl_isa_options none = {0};
    struct tl_insn insn;
    uint8_t code[4];
    tl_put_le32(code, i->opcode);
    return tl_insn_decode(l->isa, &none, i->pc, (struct tl_bytes){code, i->size}, &insn) >= 0 &&
           insn.kind >= TL_INSN_BRANCH && insn.kind <= TL_INSN_RETURN_EX;
}

static int put_writes(struct log *l, const struct insn *i)
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
static int put_insn(struct log *l, const struct insn *i, bool has_next, uint64_t next)
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

/* Another instruction follows those that wait. */
static int add_insn(struct log *l, const struct insn *next)
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

static int finish(struct log *l)
{
    const struct insn none = {0};
    int rc = add_insn(l, &none);
    if (rc == TL_OK && l->before.size)
        rc = put_insn(l, &l->before, false, 0);
    return rc;
}

/* ---- lines ----------------------------------------------------------------------------------- */

static bool skip(const char **p, const char *text)
{
    const size_t n = strlen(text);
    const bool there = strncmp(*p, text, n) == 0;
    *p += there ? n : 0;
    return there;
}

/* "0x…": the number, and how many digits it has; 0: it is none. */
static unsigned hex(const char **p, uint64_t *out)
{
    *p += strspn(*p, " ");
    if (!skip(p, "0x"))
        return 0;
    const size_t digits = strspn(*p, "0123456789abcdefABCDEF");
    *out = strtoull(*p, NULL, 16);
    *p += digits;
    return (unsigned)digits;
}

/* Skip "core   0: ". False: of another core. Old logs have no such beginning. */
static bool skip_core(const char **p, uint64_t core)
{
    char *end;
    if (!skip(p, "core"))
        return true;
    const uint64_t number = strtoull(*p, &end, 10);
    if (end == *p || *end != ':')
        return false;
    *p = end + 1 + strspn(end + 1, " ");
    return number == core;
}

/* "exception trap_illegal_instruction, epc 0x…", "exception interrupt #7, epc 0x…" */
static void take_exception(struct log *l, const char *name)
{
    static const char *const names[] = {"trap_instruction_address_misaligned",
                                        "trap_instruction_access_fault",
                                        "trap_illegal_instruction",
                                        "trap_breakpoint",
                                        "trap_load_address_misaligned",
                                        "trap_load_access_fault",
                                        "trap_store_address_misaligned",
                                        "trap_store_access_fault",
                                        "trap_user_ecall",
                                        "trap_supervisor_ecall",
                                        "trap_virtual_supervisor_ecall",
                                        "trap_machine_ecall",
                                        "trap_instruction_page_fault",
                                        "trap_load_page_fault",
                                        "",
                                        "trap_store_page_fault"};
    const size_t n = strcspn(name, ",\r\n");
    const char *const epc = strstr(name, "epc ");
    const char *at = epc ? epc + 4 : "";
    uint64_t pc;
    uint64_t cause = 24; /* of custom use, for those without a number here */
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strlen(names[i]) == n && strncmp(name, names[i], n) == 0)
            cause = i;
    if (strncmp(name, "interrupt #", 11) == 0)
        cause = TL_STF_EVENT_INTERRUPT | strtoull(name + 11, NULL, 10);
    /* What trapped did not happen. */
    if (hex(&at, &pc) && !l->last.is_commit && l->last.pc == pc)
        l->last.size = 0;
    struct insn *const i = l->last.size ? &l->last : &l->before;
    i->traps = true;
    i->cause = cause;
}

static void add_write(struct insn *i, unsigned type, uint64_t number, uint64_t value)
{
    if (i->n_writes < WRITES && number < 4096)
        i->writes[i->n_writes++] =
            (struct write){(uint16_t)number, (uint8_t)(type | TL_STF_OPERAND_DEST << 4), value};
}

/* What a commit wrote: "x5  0x…", "f5 0x…", "c768_mstatus 0x…", "mem 0xADDRESS 0xDATA". */
static void take_effects(struct insn *i, const char *p)
{
    while (*(p += strspn(p, " \r\n"))) {
        const char *const word = p;
        uint64_t value, data;
        p += strcspn(p, " \r\n");
        const char *after = p;
        const unsigned digits = hex(&after, &value);
        if (!digits)
            continue;
        p = after;
        const uint64_t number = strtoull(word + 1, NULL, 10);
        if (strncmp(word, "mem ", 4) == 0) {
            const unsigned size = hex(&after, &data) / 2;
            i->stores = size && size <= 8;
            i->store_address = value;
            i->store_value = data;
            i->store_size = size;
            p = size ? after : p;
        } else if (digits <= 16 && isdigit((unsigned char)word[1])) {
            const unsigned type = *word == 'x'   ? TL_STF_REG_INT
                                  : *word == 'f' ? TL_STF_REG_FP
                                  : *word == 'c' ? TL_STF_REG_CSR
                                                 : 0;
            if (type)
                add_write(i, type, number, value);
        }
    }
}

static int take_insn(struct log *l, const char *p, bool is_commit)
{
    struct insn i = {.is_commit = is_commit};
    uint64_t opcode;
    const unsigned digits = hex(&p, &i.pc);
    if (!digits || !skip(&p, " ("))
        return TL_OK;
    const unsigned size = hex(&p, &opcode) / 2;
    if (!skip(&p, ")") || (l->commits && !is_commit))
        return TL_OK;
    /* The execution log pads opcodes of 16 bits in some versions. */
    i.size = (opcode & 3) == 3 ? 4 : 2;
    i.opcode = (uint32_t)opcode & (i.size == 4 ? UINT32_MAX : 0xffff);
    if (size < i.size)
        return TL_OK;
    if (is_commit)
        take_effects(&i, p);
    if (is_commit && !l->commits && !l->last.is_commit && l->last.pc == i.pc)
        l->last.size = 0; /* the same in the other form */
    l->commits |= is_commit;
    const int rc = l->begun ? TL_OK : begin(l, i.pc, digits > 8);
    return rc == TL_OK ? add_insn(l, &i) : rc;
}

static int take_line(struct log *l, const char *p)
{
    if (!skip_core(&p, l->core))
        return TL_OK;
    if (skip(&p, "exception ")) {
        take_exception(l, p);
        return TL_OK;
    }
    const bool is_commit = isdigit((unsigned char)p[0]) && p[1] == ' ';
    return take_insn(l, is_commit ? p + 2 : p, is_commit);
}

bool tl_spike_is(const char *first, size_t n)
{
    char line[64];
    snprintf(line, sizeof line, "%.*s", (int)(n < sizeof line ? n : sizeof line - 1), first);
    const char *p = line;
    return skip(&p, "core  ") && strspn(p, " 0123456789") > 0 && strchr(p, ':');
}

int tl_spike_read(struct tl_buf *out, const char *path, uint64_t core, struct tl_fail *fail)
{
    struct log l = {.core = core, .fail = fail};
    FILE *const f = strcmp(path, "-") == 0 ? stdin : fopen(path, "r");
    char *line = NULL;
    size_t room = 0;
    int rc = f ? TL_OK : tl_fail_set(fail, TL_IO, "cannot be read: %s", strerror(errno));
    while (rc == TL_OK && getline(&line, &room, f) >= 0)
        rc = take_line(&l, line);
    if (rc == TL_OK && l.begun)
        rc = finish(&l);
    if (rc == TL_OK && l.count == 0)
        rc = tl_fail_set(fail, TL_BAD, "this log has no instruction of core %llu",
                         (unsigned long long)core);
    if (rc == TL_OK)
        rc = tl_buf_add(out, l.writer.out.p, l.writer.out.n);
    free(line);
    if (f && f != stdin)
        fclose(f);
    tl_stf_writer_fini(&l.writer);
    return rc;
}
