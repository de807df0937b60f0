/* SPDX-License-Identifier: MIT */
/*
 * State of the program is compared with itself over time, by key: an opcode may change only after a
 * store or a fence. Stores are known by page, as exact addresses would need memory in proportion to
 * the trace.
 */
#include "stf/tools/invariants.h"

#include "base/numbers.h"
#include "isa/isa.h"
#include "stf/flow_map.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#define PAGE       12 /* bits of the offset within a page */
#define INSN_BYTES 16
#define MEMO       4096 /* number of instructions whose decoding is cached */

/* An observed value, by key. */
struct seen {
    uint64_t value;
    uint64_t at;    /* instruction at which it was last observed */
    uint64_t fence; /* number of fences before that */
};

struct memory {
    struct tl_numbers numbers;
    struct seen *p;
    size_t cap;
};

/* Cached decoding of an instruction, by address. */
struct memo {
    uint64_t pc;
    uint32_t opcode;
    uint8_t size, isa; /* size 0: free */
    bool known;        /* `insn` is valid */
    bool fence, traps;
    uint32_t number; /* in `code`; TL_NO_NUMBER: not tracked */
    struct tl_insn insn;
};

struct tl_stf_invariants {
    tl_stf_finding_sink *sink;
    void *context;
    uint64_t insns, fences;
    uint8_t isa;          /* current enum tl_isa */
    struct memory code;   /* opcodes by address */
    struct memory tables; /* page table entries by address */
    struct memory stores; /* pages by number; `at` is the last store */
    bool has_stores;
    uint64_t mode;
    bool has_mode;
    /* Of the current group: */
    uint64_t from; /* address of its instruction */
    uint64_t target;
    uint64_t jump; /* from EVENT_PC_TARGET */
    bool has_target, has_event, forced, jumped, has_microop;
    uint8_t bytes[INSN_BYTES]; /* from micro-operations */
    uint32_t n_bytes;
    uint64_t mode_offset, mode_number, new_mode;
    bool mode_changes;
    /* Of the previous group: */
    bool left; /* its instruction always continues elsewhere, but nothing says where: */
    uint64_t left_from, left_offset, left_number;
    bool trapped;            /* it had an EVENT, or its instruction traps or returns from a trap */
    uint64_t offset, number; /* of the current record */
    int result;
    struct memo memo[MEMO];
};

int tl_stf_invariants_new(struct tl_stf_invariants **out, tl_stf_finding_sink *sink, void *context)
{
    struct tl_stf_invariants *const v = calloc(1, sizeof *v);
    if (!v)
        return TL_NOMEM;
    v->sink = sink;
    v->context = context;
    *out = v;
    return TL_OK;
}

static void memory_fini(struct memory *m)
{
    tl_numbers_fini(&m->numbers);
    free(m->p);
}

void tl_stf_invariants_free(struct tl_stf_invariants *v)
{
    if (!v)
        return;
    memory_fini(&v->code);
    memory_fini(&v->tables);
    memory_fini(&v->stores);
    free(v);
}

static void TL_PRINTF(4, 5) find(struct tl_stf_invariants *v, enum tl_stf_severity severity,
                                 const char *rule, const char *format, ...)
{
    struct tl_stf_finding f = {
        .severity = (uint8_t)severity, .rule = rule, .offset = v->offset, .record = v->number};
    if (v->result < 0)
        return;
    va_list args;
    va_start(args, format);
    vsnprintf(f.text, sizeof f.text, format, args);
    va_end(args);
    const int r = v->sink(v->context, &f);
    v->result = r < 0 ? r : v->result;
}

/* Find the entry of a key, or add one and set `*fresh`. NULL: too many, or out of memory. */
static struct seen *look(struct tl_stf_invariants *v, struct memory *m, uint64_t key, bool *fresh)
{
    uint32_t number = tl_numbers_find(&m->numbers, key);
    *fresh = number == TL_NO_NUMBER;
    if (!*fresh)
        return &m->p[number];
    if (m->numbers.n >= TL_STF_INVARIANT_KEYS)
        return NULL;
    int r = tl_grow(&m->p, &m->cap, m->numbers.n + (size_t)1, sizeof *m->p);
    if (r >= 0)
        r = tl_numbers_add(&m->numbers, key);
    if (r < 0) {
        v->result = r;
        return NULL;
    }
    number = m->numbers.n - 1;
    m->p[number] = (struct seen){0};
    return &m->p[number];
}

/* Was there a store to the page of `address` since instruction `at`? */
static bool stored_since(const struct tl_stf_invariants *v, uint64_t address, uint64_t at)
{
    const uint32_t number = tl_numbers_find(&v->stores.numbers, address >> PAGE);
    return number != TL_NO_NUMBER && v->stores.p[number].at >= at;
}

/* ---- records before the closing record ------------------------------------------------------ */

static void add_access(struct tl_stf_invariants *v, uint64_t address, uint8_t type)
{
    bool fresh;
    if (type != TL_STF_WRITE)
        return;
    v->has_stores = true;
    struct seen *const page = look(v, &v->stores, address >> PAGE, &fresh);
    if (page)
        page->at = v->insns;
}

static void add_register(struct tl_stf_invariants *v, const struct tl_stf_header *h,
                         const struct tl_stf_record *r)
{
    const unsigned type = r->reg.meta & 15;
    if (h->isa != TL_STF_ISA_RISCV || r->reg.value.n < 8)
        return;
    if (type == TL_STF_REG_INT && r->reg.number == 0 && tl_stf_word(r->reg.value, 0) != 0)
        find(v, TL_STF_WARNING, "reg-x0", "x0 has the value 0x%" PRIx64,
             tl_stf_word(r->reg.value, 0));
    if (type == TL_STF_REG_CSR && r->reg.number == 0x180 &&
        (r->reg.meta >> 4 & 3) == TL_STF_OPERAND_DEST)
        v->fences++; /* satp: the address space changed */
}

/* Check the entries that a walk read: pairs of address and value. Bits set by hardware (accessed,
 * dirty) may differ. */
static void add_walk(struct tl_stf_invariants *v, const struct tl_stf_record *r)
{
    const uint64_t accessed_dirty = 0xc0;
    for (size_t i = 0; i + 16 <= r->walk.entries.n; i += 16) {
        const uint64_t address = tl_le64(r->walk.entries.p + i);
        const uint64_t value = tl_le64(r->walk.entries.p + i + 8) & ~accessed_dirty;
        bool fresh;
        struct seen *const entry = look(v, &v->tables, address, &fresh);
        if (!entry)
            return;
        if (!fresh && entry->value != value && entry->fence == v->fences &&
            !stored_since(v, address, entry->at))
            find(v, v->has_stores ? TL_STF_WARNING : TL_STF_NOTE, "walk-differs",
                 "the page table entry at 0x%" PRIx64 " is 0x%" PRIx64 ", and was 0x%" PRIx64
                 " without a store or fence in between",
                 address, value, entry->value);
        *entry = (struct seen){value, v->insns, v->fences};
    }
}

static void add_event(struct tl_stf_invariants *v, const struct tl_stf_record *r)
{
    if (r->event.number != TL_STF_EVENT_MODE_CHANGE) {
        v->has_event = true;
        return;
    }
    if (r->event.fields.n < 8)
        return;
    v->new_mode = tl_stf_word(r->event.fields, 0);
    /* Reporting the current mode again is not a change. */
    v->mode_changes |= v->has_mode && v->new_mode != v->mode;
    v->mode_offset = r->offset;
    v->mode_number = v->number;
    v->has_mode = true;
    v->mode = v->new_mode;
}

/* ---- the instruction ------------------------------------------------------------------------- */

/* Bytes of the instruction in memory order; micro-operations hold those that are not 2 or 4 bytes
 * long (docs/stf.md). */
static struct tl_bytes bytes_of(struct tl_stf_invariants *v, const struct tl_stf_record *r)
{
    if (v->n_bytes == 0) {
        tl_put_le32(v->bytes, r->opcode);
        v->n_bytes = r->type == TL_STF_INST_32 ? 4 : 2;
    }
    return (struct tl_bytes){v->bytes, v->n_bytes};
}

static void add_microop(struct tl_stf_invariants *v, const struct tl_stf_record *r)
{
    v->has_microop = true;
    for (uint32_t i = 0; i < r->microop.size && i < 4 && v->n_bytes < INSN_BYTES; i++)
        v->bytes[v->n_bytes++] = (uint8_t)(r->microop.op >> 8 * i);
}

static bool is_fence(enum tl_isa isa, uint32_t opcode)
{
    switch (isa) {
    case TL_ISA_RV32:
    case TL_ISA_RV64: /* FENCE.I, SFENCE.VMA, HFENCE */
        return (opcode & 0x707f) == 0x100f ||
               ((opcode & 0x707f) == 0x73 && ((opcode >> 25 & 0x1f) == 0x09 ||
                                              (opcode >> 25) == 0x11 || (opcode >> 25) == 0x31));
    case TL_ISA_A64: /* ISB, IC IVAU, TLBI: system instructions with CRn 7 and 8 */
        return (opcode & 0xfffff0ffu) == 0xd50330dfu || (opcode & 0xfff8f000u) == 0xd5087000u ||
               (opcode & 0xfff8f000u) == 0xd5088000u;
    default:
        return false;
    }
}

/* Returns the instruction's number in `code`. */
static uint32_t check_code(struct tl_stf_invariants *v, uint32_t opcode)
{
    bool fresh;
    struct seen *const insn = look(v, &v->code, v->from, &fresh);
    if (!insn)
        return TL_NO_NUMBER;
    if (!fresh && insn->value != opcode && insn->fence == v->fences &&
        !stored_since(v, v->from, insn->at) && !stored_since(v, v->from + 3, insn->at))
        find(v, v->has_stores ? TL_STF_WARNING : TL_STF_NOTE, "code-changed",
             "opcode 0x%x at 0x%" PRIx64 ", where 0x%" PRIx64
             " was executed, without a store or fence in between",
             opcode, v->from, insn->value);
    *insn = (struct seen){opcode, v->insns, v->fences};
    return (uint32_t)(insn - v->code.p);
}

static bool is_branch(const struct tl_insn *insn)
{
    return insn->kind == TL_INSN_BRANCH || insn->kind == TL_INSN_INDIRECT;
}

/* Does the instruction always continue at an address that the trace has to tell? Jumps of RISC-V
 * are checked by stf/tools/check.c. */
static bool always_leaves(const struct tl_insn *insn, bool riscv)
{
    return !insn->conditional &&
           (insn->kind == TL_INSN_RETURN_EX || (insn->kind == TL_INSN_INDIRECT && !riscv));
}

/* INST_PC_TARGET with an instruction that did not branch. Those that are not 2 or 4 bytes long need
 * one to the next address (stf/close.h). */
static void check_target(struct tl_stf_invariants *v, bool riscv, const struct tl_insn *insn,
                         uint64_t next)
{
    if (!v->has_target || (v->has_microop && v->target == next))
        return;
    const bool reported = riscv || (insn->kind == TL_INSN_PLAIN && v->target != next);
    if (!is_branch(insn) && !reported)
        find(v, TL_STF_WARNING, "target-branch",
             "INST_PC_TARGET with an instruction that is no branch, at 0x%" PRIx64, v->from);
    else if (insn->kind == TL_INSN_BRANCH && insn->conditional && v->target == next &&
             insn->target != next)
        find(v, TL_STF_WARNING, "target-straight",
             "INST_PC_TARGET with the branch at 0x%" PRIx64 ", which is not taken", v->from);
}

/* Only traps and returns from them continue elsewhere with a change of mode alone. */
static void check_jump(struct tl_stf_invariants *v, const struct tl_insn *insn, uint64_t next)
{
    if (v->jumped && !v->has_event && v->jump != next && insn->kind != TL_INSN_RETURN_EX &&
        insn->kind != TL_INSN_TRAP)
        find(v, TL_STF_WARNING, "flow-target",
             "a change of mode leads from 0x%" PRIx64 " to 0x%" PRIx64 " without a trap", v->from,
             v->jump);
}

static void check_flow(struct tl_stf_invariants *v, const struct tl_stf_header *h,
                       const struct tl_insn *insn, uint32_t size)
{
    const bool riscv = h->isa == TL_STF_ISA_RISCV;
    check_target(v, riscv, insn, v->from + size);
    check_jump(v, insn, v->from + size);
    if (v->has_event)
        return;
    v->left = !v->has_target && !v->jumped && always_leaves(insn, riscv);
    v->left_from = v->from;
    v->left_offset = v->offset;
    v->left_number = v->number;
    if (v->has_target && insn->kind == TL_INSN_BRANCH && v->target != insn->target &&
        !(insn->conditional && v->target == v->from + size))
        find(v, TL_STF_WARNING, "flow-target",
             "the branch at 0x%" PRIx64 " leads to 0x%" PRIx64 ", the trace to 0x%" PRIx64, v->from,
             insn->target, v->target);
    else if (v->has_target && insn->kind == TL_INSN_PLAIN && !riscv && v->target != v->from + size)
        find(v, TL_STF_WARNING, "flow-target",
             "the instruction at 0x%" PRIx64 " is no branch, but the trace continues at 0x%" PRIx64,
             v->from, v->target);
    else if (!v->has_target && insn->kind == TL_INSN_BRANCH && !insn->conditional && !riscv &&
             insn->target != v->from + size)
        find(v, TL_STF_WARNING, "flow-straight",
             "the branch at 0x%" PRIx64 " is always taken, the trace goes straight on", v->from);
}

/* The next instruction follows one that always continues elsewhere, and nothing says why. */
static void check_left(struct tl_stf_invariants *v)
{
    const uint64_t offset = v->offset, number = v->number;
    v->offset = v->left_offset;
    v->number = v->left_number;
    find(v, TL_STF_WARNING, "flow-straight",
         "the instruction at 0x%" PRIx64 " always leads elsewhere, the trace goes straight on",
         v->left_from);
    v->offset = offset;
    v->number = number;
    v->left = false;
}

static void check_mode(struct tl_stf_invariants *v, bool traps)
{
    if (!v->forced && !v->has_event && !v->trapped && !traps) {
        v->offset = v->mode_offset;
        v->number = v->mode_number;
        find(v, TL_STF_WARNING, "mode-cause",
             "the mode becomes %" PRIu64 " without a trap or a return from one", v->mode);
    }
}

/* Get the decoding of the instruction at `from`, after checking its code. */
static const struct memo *look_at(struct tl_stf_invariants *v, const struct tl_stf_record *r,
                                  enum tl_isa isa, struct tl_bytes code)
{
    static const struct tl_isa_options any_core = {
        .arch_major = 9, .arch_minor = 9, .profile = 'A'};
    struct memo *const m = &v->memo[(v->from >> 1) % MEMO];
    if (m->pc == v->from && m->opcode == r->opcode && m->size == code.n && m->isa == isa) {
        /* No other opcode was at this address meanwhile, since it would use the same entry. */
        if (m->number != TL_NO_NUMBER) {
            v->code.p[m->number].at = v->insns;
            v->code.p[m->number].fence = v->fences;
        }
        return m;
    }
    *m = (struct memo){.pc = v->from,
                       .opcode = r->opcode,
                       .size = (uint8_t)code.n,
                       .isa = (uint8_t)isa,
                       .fence = is_fence(isa, r->opcode)};
    /* T32 is not decoded: STF does not contain everything needed for it. */
    m->known =
        isa != TL_ISA_A32 && tl_insn_decode(isa, &any_core, v->from, code, &m->insn) == (int)code.n;
    m->traps = m->known && (m->insn.kind == TL_INSN_RETURN_EX || m->insn.kind == TL_INSN_TRAP);
    m->number = check_code(v, r->opcode);
    return m;
}

static void add_insn(struct tl_stf_invariants *v, const struct tl_stf_header *h,
                     const struct tl_stf_record *r)
{
    const struct tl_bytes code = bytes_of(v, r);
    const struct memo *const m = look_at(v, r, (enum tl_isa)v->isa, code);
    if (v->left)
        check_left(v);
    if (m->known && (m->insn.kind != TL_INSN_PLAIN || v->has_target || v->jumped))
        check_flow(v, h, &m->insn, (uint32_t)code.n);
    if (v->mode_changes)
        check_mode(v, m->traps);
    v->fences += m->fence;
    v->trapped = v->has_event || m->traps;
    v->has_target = v->has_event = v->forced = v->mode_changes = false;
    v->jumped = v->has_microop = false;
    v->n_bytes = 0;
    v->insns++;
}

int tl_stf_invariants_add(struct tl_stf_invariants *v, const struct tl_stf_header *header,
                          const struct tl_stf_record *record, uint64_t number, uint64_t pc)
{
    v->offset = record->offset;
    v->number = number;
    v->from = pc;
    switch (record->type) {
    case TL_STF_FORCE_PC:
        v->forced = v->insns && record->pc != pc;
        const bool expected = v->left; /* it tells where an exception return went */
        v->left = false;
        if (v->forced && !expected)
            find(v, TL_STF_NOTE, "flow-forced",
                 "execution continues at 0x%" PRIx64 " whatever was before", record->pc);
        break;
    case TL_STF_INST_IEM:
        v->isa = (uint8_t)tl_stf_unmap_isa(header->isa, record->iem);
        break;
    case TL_STF_PROCESS_ID_EXT:
        v->fences++;
        break;
    case TL_STF_INST_PC_TARGET:
        v->has_target = true;
        v->target = record->target;
        break;
    case TL_STF_EVENT_PC_TARGET:
        v->jumped = true;
        v->jump = record->target;
        break;
    case TL_STF_INST_REG:
        add_register(v, header, record);
        break;
    case TL_STF_PAGE_TABLE_WALK:
        add_walk(v, record);
        break;
    case TL_STF_INST_MEM_ACCESS:
        add_access(v, record->access.address, record->access.type);
        break;
    case TL_STF_BUS_MASTER_ACCESS:
        add_access(v, record->bus.address, record->bus.type);
        break;
    case TL_STF_EVENT:
        add_event(v, record);
        break;
    case TL_STF_INST_MICROOP:
        add_microop(v, record);
        break;
    case TL_STF_INST_32:
    case TL_STF_INST_16:
        add_insn(v, header, record);
        break;
    default:
        break;
    }
    return v->result;
}
