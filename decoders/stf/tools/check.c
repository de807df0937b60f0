/* SPDX-License-Identifier: MIT */
/*
 * The rules of the specification, record by record. Source: STF 1.3, "Specification of Records" and
 * "STF Exception Event and Event Meta-Data"; where current stf_lib is stricter, that is checked
 * too.
 */
#include "stf/tools/check.h"

#include "stf/tools/invariants.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

struct place {
    uint64_t offset, record;
};

struct tl_stf_checker {
    tl_stf_finding_sink *sink;
    void *context;
    struct tl_stf_invariants *invariants;
    struct tl_stf_order order;
    struct tl_stf_layout layout;
    struct tl_stf_pc pc;
    uint64_t records, insns, markers;
    uint64_t after_marker; /* records since the last marker */
    struct place first_after;
    struct place at; /* the current record */
    uint64_t end;    /* offset after it */
    unsigned reported_faults;
    uint32_t contents; /* INST_MEM_CONTENTs so far of the last access */
    struct tl_stf_record access;
    struct place access_at;
    struct place target_at; /* the group's INST_PC_TARGET */
    struct place features_at;
    struct place jump_at;    /* the last instruction, if `jumped` */
    struct place unaimed_at; /* the group's last EVENT except mode changes, if `unaimed` */
    bool ended;              /* RESERVE_END */
    bool jumped;             /* the last instruction always jumps, but had no target */
    bool unaimed;            /* that EVENT has had no EVENT_PC_TARGET so far */
    bool memory, target, event, microop; /* what the group contains so far */
    bool mode_reported, has_walks, has_microops, has_memory, has_trap;
    uint64_t without_memory; /* loads and stores without a record */
    struct place first_without;
    int result;
};

int tl_stf_checker_new(struct tl_stf_checker **out, tl_stf_finding_sink *sink, void *context)
{
    struct tl_stf_checker *const c = calloc(1, sizeof *c);
    if (!c)
        return TL_NOMEM;
    c->sink = sink;
    c->context = context;
    const int r = tl_stf_invariants_new(&c->invariants, sink, context);
    if (r < 0)
        free(c);
    else
        *out = c;
    return r;
}

void tl_stf_checker_free(struct tl_stf_checker *checker)
{
    if (checker)
        tl_stf_invariants_free(checker->invariants);
    free(checker);
}

struct tl_stf_checked tl_stf_checker_at(const struct tl_stf_checker *checker)
{
    return (struct tl_stf_checked){.end = checker->end,
                                   .markers = checker->markers,
                                   .pc = checker->pc.next,
                                   .on_marker = checker->markers && !checker->after_marker,
                                   .layout = checker->layout};
}

uint64_t tl_stf_checker_records(const struct tl_stf_checker *checker)
{
    return checker->records;
}

uint64_t tl_stf_checker_insns(const struct tl_stf_checker *checker)
{
    return checker->insns;
}

const char *tl_stf_severity_name(enum tl_stf_severity severity)
{
    static const char *const names[] = {"note", "warning", "error"};
    return severity <= TL_STF_ERROR ? names[severity] : "?";
}

static void TL_PRINTF(5, 6) find(struct tl_stf_checker *c, enum tl_stf_severity severity,
                                 const char *rule, struct place place, const char *format, ...)
{
    if (c->result < 0)
        return;
    struct tl_stf_finding f = {.severity = (uint8_t)severity,
                               .rule = rule,
                               .offset = place.offset,
                               .record = place.record};
    va_list args;
    va_start(args, format);
    vsnprintf(f.text, sizeof f.text, format, args);
    va_end(args);
    const int result = c->sink(c->context, &f);
    if (result < 0)
        c->result = result;
}

#define ERROR(rule, ...)   find(c, TL_STF_ERROR, rule, c->at, __VA_ARGS__)
#define WARNING(rule, ...) find(c, TL_STF_WARNING, rule, c->at, __VA_ARGS__)
#define NOTE(rule, ...)    find(c, TL_STF_NOTE, rule, c->at, __VA_ARGS__)

/* ---- header -------------------------------------------------------------------------------- */

#define LAST_GENERATOR 14 /* the highest generator number listed by stf_lib, besides 0x40 */

/* Minor version that introduced a record type; 0: before 1.4. */
static unsigned since(uint8_t type)
{
    switch (type) {
    case TL_STF_VLEN_CONFIG:
        return 4;
    case TL_STF_PROTOCOL_ID:
    case TL_STF_CLOCK_ID:
    case TL_STF_TRANSACTION:
    case TL_STF_TRANSACTION_DEPENDENCY:
        return 5;
    case TL_STF_ISA_EXTENDED:
        return 6;
    default:
        return 0;
    }
}

static void check_version_record(struct tl_stf_checker *c, const struct tl_stf_record *r)
{
    const uint32_t major = r->version.major, minor = r->version.minor;
    if (major != 1 || minor < 1 || minor > 6)
        WARNING("version", "version %u.%u is none of 1.1 to 1.6", major, minor);
    if (major > 1 || minor < 2)
        WARNING("version-tools", "stf_dump and stf_record_dump refuse version %u.%u", major, minor);
}

static void check_header_fields(struct tl_stf_checker *c, const struct tl_stf_record *r)
{
    const struct tl_stf_header *const h = &c->order.header;
    switch (r->type) {
    case TL_STF_VERSION:
        check_version_record(c, r);
        break;
    case TL_STF_COMMENT:
        if (r->text.n && memchr(r->text.p, 0, r->text.n))
            WARNING("comment-nul", "the comment has a NUL in it");
        break;
    case TL_STF_ISA:
        if (r->isa == 0 || r->isa > TL_STF_ISA_POWER)
            WARNING("isa-value", "ISA %u is %s", r->isa, r->isa ? "not defined" : "reserved");
        else if (r->isa != TL_STF_ISA_RISCV)
            NOTE("isa-reader", "ISA %u: stf_lib reads records of it, but no instructions", r->isa);
        break;
    case TL_STF_INST_IEM:
        if (r->iem == 0 || r->iem > TL_STF_IEM_64)
            ERROR("iem-value", "INST_IEM %u is %s", r->iem, r->iem ? "not defined" : "reserved");
        break;
    case TL_STF_TRACE_INFO:
        if (r->info.generator == 0 || r->info.generator == 255)
            WARNING("generator", "generator %u is reserved", r->info.generator);
        else if (r->info.generator > LAST_GENERATOR && r->info.generator != TL_STF_GENERATOR)
            WARNING("generator", "generator %u is not listed: tools throw when they print it",
                    r->info.generator);
        break;
    case TL_STF_TRACE_INFO_FEATURE:
        c->features_at = c->at;
        if (r->features >> 21)
            WARNING("feature-bits", "features 0x%" PRIx64 " has bits that are not defined",
                    r->features);
        if ((r->features & TL_STF_FEATURE_EVENT64) && h->has_version && h->minor < 5)
            WARNING("newer", "64-bit events are of version 1.5, the trace says 1.%u", h->minor);
        break;
    case TL_STF_VLEN_CONFIG:
        if (r->vlen == 64)
            WARNING("vlen-64", "stf_lib can neither read nor write vectors of 64 bits");
        break;
    case TL_STF_CLOCK_ID:
        if (r->clock.id == 0)
            ERROR("clock-id", "clock 0 is reserved");
        break;
    default:
        break;
    }
    if (since(r->type) > h->minor && h->has_version)
        WARNING("newer", "%s is of version 1.%u, the trace says 1.%u", tl_stf_type_name(r->type),
                since(r->type), h->minor);
}

/* Check what tl_stf_order_add() does not: records mandatory in 1.3, but not required by readers. */
static void check_header_end(struct tl_stf_checker *c)
{
    const unsigned soft = TL_STF_NO_COMMENT | TL_STF_NO_PROCESS_ID | TL_STF_ORDER;
    const unsigned fresh = c->order.header.faults & ~c->reported_faults;
    c->reported_faults |= fresh;
    for (unsigned bit = 1; bit <= TL_STF_MIXED; bit <<= 1) {
        if (fresh & bit & soft)
            WARNING("header", "%s", tl_stf_header_fault_text(bit));
    }
}

/* ---- records of a group ---------------------------------------------------------------------- */

static void check_pc(struct tl_stf_checker *c, const char *what, uint64_t pc)
{
    if (c->order.header.isa == TL_STF_ISA_RISCV && (pc & 1))
        ERROR("pc-odd", "%s 0x%" PRIx64 " is odd", what, pc);
    if (c->order.header.isa == TL_STF_ISA_RISCV && c->order.header.iem == TL_STF_IEM_32 && pc >> 32)
        WARNING("pc-wide", "%s 0x%" PRIx64 " has more than 32 bits", what, pc);
}

static void check_reg(struct tl_stf_checker *c, const struct tl_stf_record *r)
{
    const unsigned type = r->reg.meta & 15, operand = r->reg.meta >> 4 & 3;
    const unsigned number = r->reg.number;
    if (type == 0 || type > TL_STF_REG_CSR)
        ERROR("reg-type", "register type %u is reserved", type);
    if (operand == 0)
        ERROR("reg-operand", "register operand type 0 is reserved");
    if (r->reg.meta >> 6)
        ERROR("reg-reserved", "meta 0x%x has its reserved bits set", r->reg.meta);
    const unsigned most = type == TL_STF_REG_CSR ? 0xfff : type == TL_STF_REG_INT ? 32 : 31;
    if (type && type <= TL_STF_REG_CSR && number > most)
        WARNING("reg-number", "there is no register %u of type %u", number, type);
    if (type == TL_STF_REG_VECTOR && !c->layout.vlen)
        WARNING("vlen-missing", "a vector register without VLEN_CONFIG: stf_lib cannot read it");
}

static void check_walk(struct tl_stf_checker *c, const struct tl_stf_record *r)
{
    const uint32_t page = r->walk.page_size;
    if (r->walk.entries.n == 0)
        WARNING("walk-empty", "a page table walk without an entry");
    if (page == 0 || (page & (page - 1)))
        WARNING("walk-page", "page size %u is no power of two", page);
    if (r->walk.first_access > c->insns + 1) /* indices start at 1 */
        WARNING("walk-index", "first access at instruction %" PRIu64 ", which has not arrived yet",
                r->walk.first_access);
    c->has_walks = true;
}

/* Check that the last access has as many content words as its size requires. Producers write the
 * size in bytes or bits, so either is accepted. */
static void check_access_end(struct tl_stf_checker *c)
{
    if (c->contents == 0)
        return;
    const uint32_t size = c->access.access.size;
    const uint32_t bytes = size > 8 ? (size + 7) / 8 : 1;
    const uint32_t bits = size > 64 ? (size + 63) / 64 : 1;
    if (c->contents != bytes && c->contents != bits)
        find(c, TL_STF_WARNING, "content-count", c->access_at,
             "%u INST_MEM_CONTENT for an access of size %u", c->contents, size);
    c->contents = 0;
}

static void check_access(struct tl_stf_checker *c, const struct tl_stf_record *r)
{
    if (r->access.type != TL_STF_READ && r->access.type != TL_STF_WRITE)
        ERROR("access-type", "access type %u is reserved", r->access.type);
    if (r->access.size == 0)
        WARNING("access-size", "an access of size 0");
    c->access = *r;
    c->access_at = c->at;
    c->memory = c->has_memory = true;
}

static void check_content(struct tl_stf_checker *c, const struct tl_stf_record *r)
{
    c->contents++;
    const uint32_t size = c->access.access.size;
    /* 1, 2 and 4 can only be bytes. */
    if ((size == 1 || size == 2 || size == 4) && r->data >> 8 * size)
        WARNING("content-width", "data 0x%" PRIx64 " of an access of %u bytes", r->data, size);
}

static void check_bus(struct tl_stf_checker *c, const struct tl_stf_record *r)
{
    if (r->bus.type != TL_STF_READ && r->bus.type != TL_STF_WRITE)
        ERROR("access-type", "access type %u is reserved", r->bus.type);
    if (r->bus.master > 6)
        WARNING("bus-master", "bus master type %u is not defined", r->bus.master);
}

/* STFInst::write() in stf_lib pairs the n-th target with the n-th event that is not a mode change,
 * and crashes if there are fewer. */
static void check_aimed(struct tl_stf_checker *c)
{
    if (c->unaimed)
        find(c, TL_STF_WARNING, "event-target", c->unaimed_at,
             "an EVENT without EVENT_PC_TARGET: stf_lib crashes when it copies the instruction");
    c->unaimed = false;
}

/* Number of fields required by the table of events. */
static unsigned event_fields(uint64_t number)
{
    if (number & TL_STF_EVENT_INTERRUPT)
        return 1;
    switch (number) {
    case 2:
    case 4:
    case 5:
    case 6:
    case 7:
    case 13:
    case 15:
        return 3;
    case 12:
        return 2;
    default:
        return 1;
    }
}

static void check_event(struct tl_stf_checker *c, const struct tl_stf_record *r)
{
    const uint64_t number = r->event.number;
    const size_t fields = r->event.fields.n / 8;
    if (number == TL_STF_EVENT_MODE_CHANGE) {
        if (fields == 0)
            ERROR("mode-field", "MODE_CHANGE without the mode");
        else if (tl_stf_word(r->event.fields, 0) > 3)
            ERROR("mode-field", "MODE_CHANGE to mode %" PRIu64 ", there are 0 to 3",
                  tl_stf_word(r->event.fields, 0));
        c->mode_reported |= c->insns == 0;
        return;
    }
    c->has_trap = c->event = true;
    check_aimed(c);
    c->unaimed = true;
    c->unaimed_at = c->at;
    if (!tl_stf_event_name(number))
        WARNING("event-number", "event 0x%" PRIx64 " is not defined", number);
    else if (fields < event_fields(number))
        WARNING("event-fields", "%s has %zu fields, the table wants %u", tl_stf_event_name(number),
                fields, event_fields(number));
}

/* RISC-V: is it an unconditional jump: JAL, JALR or a compressed form? */
static bool always_jumps(const struct tl_stf_record *r, uint16_t iem)
{
    if (r->type == TL_STF_INST_32)
        return (r->opcode & 0x7f) == 0x6f || (r->opcode & 0x707f) == 0x67;
    const uint32_t quadrant = r->opcode & 3, funct3 = r->opcode >> 13 & 7;
    if (quadrant == 1) /* C.J; C.JAL */
        return funct3 == 5 || (funct3 == 1 && iem == TL_STF_IEM_32);
    /* C.JR, C.JALR: no second register, and a nonzero first one (else C.EBREAK) */
    return quadrant == 2 && funct3 == 4 && (r->opcode & 0x7c) == 0 && (r->opcode & 0xf80) != 0;
}

/* RISC-V: conditional branches, and the jumps and returns of Zcmp and Zcmt. */
static bool may_jump(const struct tl_stf_record *r)
{
    if (r->type == TL_STF_INST_32)
        return (r->opcode & 0x7f) == 0x63;
    const uint32_t quadrant = r->opcode & 3, funct3 = r->opcode >> 13 & 7;
    return (quadrant == 1 && funct3 >= 6) || (r->opcode & 0xfc03) == 0xa002 ||
           (r->opcode & 0xfd03) == 0xbc02;
}

/*
 * INST_PC_TARGET is required for each taken branch, and only allowed for branches: tools of stf_lib
 * stop at others, such as an exception return with one.
 */
static void check_target(struct tl_stf_checker *c, const struct tl_stf_record *r)
{
    if (c->jumped)
        find(c, TL_STF_WARNING, "jump-target", c->jump_at,
             "a jump that is always taken has no INST_PC_TARGET");
    const bool jumps = always_jumps(r, c->order.header.iem);
    if (c->target && !jumps && !may_jump(r) && !c->microop)
        find(c, TL_STF_WARNING, "target-branch", c->target_at,
             "INST_PC_TARGET with an instruction that is no branch (0x%x)", r->opcode);
    c->jumped = jumps && !c->target && !c->event && !c->microop;
    c->jump_at = c->at;
}

/* RISC-V loads, stores and atomics. */
static bool touches_memory(const struct tl_stf_record *r)
{
    if (r->type == TL_STF_INST_32) {
        const uint32_t major = r->opcode & 0x7f;
        return major == 0x03 || major == 0x23 || major == 0x2f;
    }
    const uint32_t quadrant = r->opcode & 3, funct3 = r->opcode >> 13 & 7;
    return (quadrant == 0 && funct3 != 0 && funct3 != 4) ||
           (quadrant == 2 && funct3 != 0 && funct3 != 4);
}

static void check_insn(struct tl_stf_checker *c, const struct tl_stf_record *r)
{
    const bool riscv = c->order.header.isa == TL_STF_ISA_RISCV;
    if (riscv && r->type == TL_STF_INST_32 && (r->opcode & 3) != 3)
        WARNING("opcode-length", "opcode 0x%x in INST_32 is a 16-bit encoding", r->opcode);
    if (riscv && r->type == TL_STF_INST_16 && (r->opcode & 3) == 3)
        WARNING("opcode-length", "opcode 0x%x in INST_16 begins a longer encoding", r->opcode);
    if (riscv)
        check_target(c, r);
    if (riscv && !c->memory && !c->event && touches_memory(r)) {
        if (c->without_memory++ == 0)
            c->first_without = c->at;
    }
    check_aimed(c);
    c->memory = c->target = c->event = c->microop = false;
    c->insns++;
}

static void check_microop(struct tl_stf_checker *c, const struct tl_stf_record *r)
{
    if (r->microop.size == 0 || r->microop.size > 4)
        WARNING("microop-size", "a micro-operation of %u bytes", r->microop.size);
    c->has_microops = c->microop = true;
}

static void check_transaction(struct tl_stf_checker *c, const struct tl_stf_record *r)
{
    if (!c->order.header.transactions)
        ERROR("transaction", "%s in an instruction trace", tl_stf_type_name(r->type));
    if (r->transaction.clock == 0)
        ERROR("clock-id", "clock 0 is reserved");
}

static void check_fields(struct tl_stf_checker *c, const struct tl_stf_record *r)
{
    switch (r->type) {
    case TL_STF_FORCE_PC:
        check_pc(c, "FORCE_PC", r->pc);
        c->jumped = false;
        break;
    case TL_STF_INST_PC_TARGET:
        c->target = true;
        c->target_at = c->at;
        check_pc(c, "target", r->target);
        break;
    case TL_STF_EVENT_PC_TARGET:
        c->unaimed = false;
        check_pc(c, "target", r->target);
        break;
    case TL_STF_INST_REG:
        check_reg(c, r);
        break;
    case TL_STF_PAGE_TABLE_WALK:
        check_walk(c, r);
        break;
    case TL_STF_INST_MEM_ACCESS:
        check_access(c, r);
        break;
    case TL_STF_INST_MEM_CONTENT:
        check_content(c, r);
        break;
    case TL_STF_BUS_MASTER_ACCESS:
        check_bus(c, r);
        break;
    case TL_STF_EVENT:
        check_event(c, r);
        break;
    case TL_STF_INST_MICROOP:
        check_microop(c, r);
        break;
    case TL_STF_INST_32:
    case TL_STF_INST_16:
        check_insn(c, r);
        break;
    case TL_STF_TRANSACTION:
    case TL_STF_TRANSACTION_DEPENDENCY:
        check_transaction(c, r);
        break;
    default:
        check_header_fields(c, r);
        break;
    }
}

int tl_stf_checker_add(struct tl_stf_checker *checker, const struct tl_stf_record *record)
{
    struct tl_stf_checker *const c = checker;
    const char *rule;
    const bool in_header = !c->order.header.complete;
    c->at = (struct place){record->offset, c->records};
    c->end = record->offset + record->size;
    if (c->ended)
        ERROR("behind-end", "%s after RESERVE_END", tl_stf_type_name(record->type));
    if (record->type != TL_STF_INST_MEM_CONTENT)
        check_access_end(c);
    if (record->type == TL_STF_RESERVE_END) {
        c->ended = true;
        NOTE("reserve-end", "RESERVE_END, as 1.3 wants it; stf_lib stops with an exception here");
    } else if (tl_stf_order_add(&c->order, record, &rule) < 0) {
        const char *const name = strcmp(rule, TL_STF_DISORDER) == 0 ? "record-order"
                                 : in_header                        ? "header"
                                                                    : "group-order";
        ERROR(name, "%s: %s", tl_stf_type_name(record->type), rule);
    }
    /* Missing records are all found at once: one message each. */
    if (in_header && c->order.header.complete) {
        const unsigned hard = c->order.header.faults & TL_STF_FAULTS_HARD & ~c->reported_faults;
        unsigned more = hard & ~(TL_STF_REPEATED | TL_STF_FOREIGN | TL_STF_NO_VERSION);
        more &= more - 1; /* tl_stf_order_add() has reported the first */
        for (; more; more &= more - 1)
            ERROR("header", "%s", tl_stf_header_fault_text(more & -more));
        check_header_end(c);
    }
    check_fields(c, record);
    if (c->result >= 0)
        c->result =
            tl_stf_invariants_add(c->invariants, &c->order.header, record, c->records, c->pc.next);
    tl_stf_layout_apply(&c->layout, record);
    tl_stf_pc_add(&c->pc, record);
    if (tl_stf_is_marker(record->type)) {
        c->markers++;
        c->after_marker = 0;
    } else if (!in_header && c->after_marker++ == 0) {
        c->first_after = c->at;
    }
    c->records++;
    return c->result;
}

int tl_stf_checker_finish(struct tl_stf_checker *checker)
{
    struct tl_stf_checker *const c = checker;
    const struct tl_stf_header *const h = &c->order.header;
    c->at = (struct place){c->end, c->records};
    check_access_end(c);
    check_aimed(c);
    if (h->complete && !h->transactions) {
        if (c->insns == 0)
            NOTE("no-instruction", "the trace has no instruction");
        if (c->insns && c->after_marker && !c->ended)
            find(c, TL_STF_NOTE, "trailing", c->first_after,
                 "%" PRIu64 " records after the last instruction: stf_lib's writer loses such",
                 c->after_marker);
        if (c->insns && !c->mode_reported)
            find(c, TL_STF_WARNING, "starting-mode", (struct place){h->size, h->records},
                 "no MODE_CHANGE tells the privilege mode at the start");
    }
    if (h->complete && !c->ended && h->minor <= 3)
        NOTE("reserve-end", "1.3 wants RESERVE_END as the last record; stf_lib cannot read it");
    const struct {
        uint64_t bit;
        bool seen;
        const char *what;
    } features[] = {{TL_STF_FEATURE_PTE, c->has_walks, "page table walks"},
                    {TL_STF_FEATURE_MICROOP, c->has_microops, "micro-operations"},
                    {TL_STF_FEATURE_EVENT, c->has_trap, "events"}};
    for (size_t i = 0; i < sizeof features / sizeof *features; i++) {
        const bool reported = h->features & features[i].bit;
        if (h->has_features && features[i].seen && !reported)
            find(c, TL_STF_WARNING, "feature-missing", c->features_at,
                 "there are %s, and no feature bit for them", features[i].what);
        if (features[i].bit != TL_STF_FEATURE_EVENT && reported && !features[i].seen)
            find(c, TL_STF_NOTE, "feature-unused", c->features_at,
                 "a feature bit tells of %s, there are none", features[i].what);
    }
    if (h->features & TL_STF_FEATURE_PHYSICAL_ADDRESS)
        find(c, TL_STF_NOTE, "feature-physical", c->features_at,
             "the feature bit for physical addresses is set, STF has no record for them");
    if (c->without_memory && c->has_memory)
        find(c, TL_STF_WARNING, "memory-missing", c->first_without,
             "%" PRIu64 " loads and stores have no INST_MEM_ACCESS; the first is here",
             c->without_memory);
    return c->result;
}
