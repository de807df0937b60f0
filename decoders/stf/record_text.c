/* SPDX-License-Identifier: MIT */
/*
 * Names of records, and the listing that `tracelake dump` prints. The most frequent records are
 * formatted without printf, since listings have hundreds of millions of lines.
 */
#include "stf/record.h"

#include "base/digits.h"

#include <inttypes.h>
#include <stdio.h>

static const char *const type_names[256] = {
    [TL_STF_RESERVED] = "RESERVED",
    [TL_STF_IDENTIFIER] = "IDENTIFIER",
    [TL_STF_VERSION] = "VERSION",
    [TL_STF_COMMENT] = "COMMENT",
    [TL_STF_ISA] = "ISA",
    [TL_STF_INST_IEM] = "INST_IEM",
    [TL_STF_TRACE_INFO] = "TRACE_INFO",
    [TL_STF_TRACE_INFO_FEATURE] = "TRACE_INFO_FEATURE",
    [TL_STF_PROCESS_ID_EXT] = "PROCESS_ID_EXT",
    [TL_STF_FORCE_PC] = "FORCE_PC",
    [TL_STF_VLEN_CONFIG] = "VLEN_CONFIG",
    [TL_STF_PROTOCOL_ID] = "PROTOCOL_ID",
    [TL_STF_CLOCK_ID] = "CLOCK_ID",
    [TL_STF_ISA_EXTENDED] = "ISA_EXTENDED",
    [TL_STF_END_HEADER] = "END_HEADER",
    [TL_STF_INST_PC_TARGET] = "INST_PC_TARGET",
    [TL_STF_INST_REG] = "INST_REG",
    [TL_STF_INST_READY_REG] = "INST_READY_REG",
    [TL_STF_PAGE_TABLE_WALK] = "PAGE_TABLE_WALK",
    [TL_STF_INST_MEM_ACCESS] = "INST_MEM_ACCESS",
    [TL_STF_INST_MEM_CONTENT] = "INST_MEM_CONTENT",
    [TL_STF_BUS_MASTER_ACCESS] = "BUS_MASTER_ACCESS",
    [TL_STF_BUS_MASTER_CONTENT] = "BUS_MASTER_CONTENT",
    [TL_STF_EVENT] = "EVENT",
    [TL_STF_EVENT_PC_TARGET] = "EVENT_PC_TARGET",
    [TL_STF_INST_MICROOP] = "INST_MICROOP",
    [TL_STF_INST_32] = "INST_32",
    [TL_STF_INST_16] = "INST_16",
    [TL_STF_TRANSACTION] = "TRANSACTION",
    [TL_STF_TRANSACTION_DEPENDENCY] = "TRANSACTION_DEPENDENCY",
    [TL_STF_RESERVE_END] = "RESERVE_END",
};

const char *tl_stf_type_name(uint8_t type)
{
    return type_names[type] ? type_names[type] : "?";
}

/* Source: STF 1.3, "STF Exception Event and Event Meta-Data"; numbers are RISC-V's mcause. */
static const char *const fault_names[24] = {
    [0] = "INST_ADDR_MISALIGN",
    [1] = "INST_ADDR_FAULT",
    [2] = "ILLEGAL_INST",
    [3] = "BREAKPOINT",
    [4] = "LOAD_ADDR_MISALIGN",
    [5] = "LOAD_ACCESS_FAULT",
    [6] = "STORE_ADDR_MISALIGN",
    [7] = "STORE_ACCESS_FAULT",
    [8] = "USER_ECALL",
    [9] = "SUPERVISOR_ECALL",
    [10] = "HYPERVISOR_ECALL",
    [11] = "MACHINE_ECALL",
    [12] = "INST_PAGE_FAULT",
    [13] = "LOAD_PAGE_FAULT",
    [15] = "STORE_PAGE_FAULT",
    [16] = "DOUBLE_TRAP",
    [18] = "SOFTWARE_CHECK",
    [19] = "HARDWARE_ERROR",
    [20] = "GUEST_INST_PAGE_FAULT",
    [21] = "GUEST_LOAD_PAGE_FAULT",
    [22] = "VIRTUAL_INST",
    [23] = "GUEST_STORE_PAGE_FAULT",
};

static const char *const interrupt_names[14] = {
    "INT_USER_SOFTWARE",    "INT_SUPERVISOR_SOFTWARE", "INT_HYPERVISOR_SOFTWARE",
    "INT_MACHINE_SOFTWARE", "INT_USER_TIMER",          "INT_SUPERVISOR_TIMER",
    "INT_HYPERVISOR_TIMER", "INT_MACHINE_TIMER",       "INT_USER_EXT",
    "INT_SUPERVISOR_EXT",   "INT_HYPERVISOR_EXT",      "INT_MACHINE_EXT",
    "INT_COPROCESSOR",      "INT_COUNTER_OVERFLOW",
};

const char *tl_stf_event_name(uint64_t number)
{
    if (number == TL_STF_EVENT_MODE_CHANGE)
        return "MODE_CHANGE";
    if (number & TL_STF_EVENT_INTERRUPT) {
        number &= ~TL_STF_EVENT_INTERRUPT;
        return number < 14 ? interrupt_names[number] : NULL;
    }
    return number < 24 ? fault_names[number] : NULL;
}

/* ---- records --------------------------------------------------------------------------------- */

#define LINE_ROOM 192 /* space for offset, size, type and the fields of a record without arrays */

/* Append the fields of the most frequent records. NULL: not one of them. */
static uint8_t *put_common(uint8_t *p, const struct tl_stf_record *r)
{
    switch (r->type) {
    case TL_STF_INST_32:
    case TL_STF_INST_16:
        return tl_put_hex(tl_put_text(p, " opcode=0x"), r->opcode);
    case TL_STF_INST_PC_TARGET:
    case TL_STF_EVENT_PC_TARGET:
        return tl_put_hex(tl_put_text(p, " target=0x"), r->target);
    case TL_STF_FORCE_PC:
        return tl_put_hex(tl_put_text(p, " pc=0x"), r->pc);
    case TL_STF_INST_MEM_ACCESS:
        p = tl_put_hex(tl_put_text(p, " addr=0x"), r->access.address);
        p = tl_put_decimal(tl_put_text(p, " size="), r->access.size);
        p = tl_put_hex(tl_put_text(p, " attr=0x"), r->access.attr);
        return tl_put_decimal(tl_put_text(p, " access="), r->access.type);
    case TL_STF_INST_MEM_CONTENT:
    case TL_STF_BUS_MASTER_CONTENT:
        return tl_put_hex(tl_put_text(p, " data=0x"), r->data);
    default:
        return NULL;
    }
}

/* Append name="text": bytes other than printable ASCII as \xHH, quotes and backslashes escaped. */
static int add_text(struct tl_buf *out, const char *name, struct tl_bytes text)
{
    static const char hex[] = "0123456789abcdef";
    if (tl_buf_printf(out, " %s=\"", name) < 0 || tl_buf_reserve(out, 4 * text.n + 1) < 0)
        return TL_NOMEM;
    uint8_t *p = out->p + out->n;
    for (size_t i = 0; i < text.n; i++) {
        const uint8_t c = text.p[i];
        if (c < 0x20 || c > 0x7e) {
            *p++ = '\\';
            *p++ = 'x';
            *p++ = (uint8_t)hex[c >> 4];
            *p++ = (uint8_t)hex[c & 15];
        } else {
            if (c == '"' || c == '\\')
                *p++ = '\\';
            *p++ = c;
        }
    }
    *p++ = '"';
    out->n = (size_t)(p - out->p);
    return TL_OK;
}

static int add_hex(struct tl_buf *out, const char *name, struct tl_bytes bytes)
{
    if (tl_buf_printf(out, " %s=", name) < 0)
        return TL_NOMEM;
    for (size_t i = 0; i < bytes.n; i++) {
        if (tl_buf_printf(out, "%02x", bytes.p[i]) < 0)
            return TL_NOMEM;
    }
    return bytes.n ? TL_OK : tl_buf_add(out, "-", 1);
}

/* Append name=0x…,0x… */
static int add_words(struct tl_buf *out, const char *name, struct tl_bytes words)
{
    if (tl_buf_printf(out, " %s=", name) < 0)
        return TL_NOMEM;
    for (size_t i = 0; i < words.n / 8; i++) {
        if (tl_buf_printf(out, "%s0x%" PRIx64, i ? "," : "", tl_stf_word(words, i)) < 0)
            return TL_NOMEM;
    }
    return words.n ? TL_OK : tl_buf_add(out, "-", 1);
}

static int text_info(const struct tl_stf_record *r, struct tl_buf *out)
{
    if (tl_buf_printf(out, " gen=%u ver=%u.%u.%u len=%zu", r->info.generator, r->info.major,
                      r->info.minor, r->info.patch, r->info.text.n) < 0)
        return TL_NOMEM;
    return add_text(out, "text", r->info.text);
}

static int text_reg(const struct tl_stf_record *r, struct tl_buf *out)
{
    char name[TL_STF_REG_NAME];
    if (tl_buf_printf(out, " reg=%u meta=0x%x", r->reg.number, r->reg.meta) < 0 ||
        add_words(out, "value", r->reg.value) < 0)
        return TL_NOMEM;
    tl_stf_reg_name(r->reg.number, r->reg.meta, name);
    return name[0] ? tl_buf_printf(out, " ; %s", name) : TL_OK;
}

static int text_walk(const struct tl_stf_record *r, struct tl_buf *out)
{
    const size_t n = r->walk.entries.n / 16;
    if (tl_buf_printf(out, " va=0x%" PRIx64 " index=%" PRIu64 " size=%u n=%zu", r->walk.va,
                      r->walk.first_access, r->walk.page_size, n) < 0)
        return TL_NOMEM;
    for (size_t i = 0; i < n; i++) {
        if (tl_buf_printf(out, " pte=0x%" PRIx64 ":0x%" PRIx64, tl_stf_word(r->walk.entries, 2 * i),
                          tl_stf_word(r->walk.entries, 2 * i + 1)) < 0)
            return TL_NOMEM;
    }
    return TL_OK;
}

static int text_event(const struct tl_stf_record *r, struct tl_buf *out)
{
    const char *const name = tl_stf_event_name(r->event.number);
    if (tl_buf_printf(out, " event=0x%" PRIx64 " n=%zu", r->event.number, r->event.fields.n / 8) <
            0 ||
        add_words(out, "data", r->event.fields) < 0)
        return TL_NOMEM;
    return name ? tl_buf_printf(out, " ; %s", name) : TL_OK;
}

static int text_transaction(const struct tl_stf_record *r, struct tl_buf *out)
{
    if (tl_buf_printf(out, " id=%" PRIu64 " delta=%" PRIu64 " clock=%u", r->transaction.id,
                      r->transaction.delta, r->transaction.clock) < 0)
        return TL_NOMEM;
    if (r->type == TL_STF_TRANSACTION_DEPENDENCY)
        return TL_OK;
    if (tl_buf_printf(out, " n=%u", r->transaction.n_metadata) < 0 ||
        add_hex(out, "metadata", r->transaction.metadata) < 0)
        return TL_NOMEM;
    return add_hex(out, "data", r->transaction.data);
}

static int text_fields(const struct tl_stf_record *r, struct tl_buf *out)
{
    switch (r->type) {
    case TL_STF_IDENTIFIER:
        return add_text(out, "magic", (struct tl_bytes){r->magic, 3});
    case TL_STF_VERSION:
        return tl_buf_printf(out, " major=%u minor=%u", r->version.major, r->version.minor);
    case TL_STF_COMMENT:
    case TL_STF_ISA_EXTENDED:
        if (tl_buf_printf(out, " len=%zu", r->text.n) < 0)
            return TL_NOMEM;
        return add_text(out, "text", r->text);
    case TL_STF_ISA:
        return tl_buf_printf(out, " isa=%u", r->isa);
    case TL_STF_INST_IEM:
        return tl_buf_printf(out, " iem=%u", r->iem);
    case TL_STF_TRACE_INFO:
        return text_info(r, out);
    case TL_STF_TRACE_INFO_FEATURE:
        return tl_buf_printf(out, " features=0x%" PRIx64, r->features);
    case TL_STF_PROCESS_ID_EXT:
        return tl_buf_printf(out, " tgid=%u tid=%u asid=%u", r->process.tgid, r->process.tid,
                             r->process.asid);
    case TL_STF_VLEN_CONFIG:
        return tl_buf_printf(out, " vlen=%u", r->vlen);
    case TL_STF_PROTOCOL_ID:
        return tl_buf_printf(out, " protocol=%u", r->protocol);
    case TL_STF_CLOCK_ID:
        if (tl_buf_printf(out, " clock=%u len=%zu", r->clock.id, r->clock.name.n) < 0)
            return TL_NOMEM;
        return add_text(out, "name", r->clock.name);
    case TL_STF_INST_REG:
        return text_reg(r, out);
    case TL_STF_INST_READY_REG:
        return tl_buf_printf(out, " reg=%u", r->ready_reg);
    case TL_STF_PAGE_TABLE_WALK:
        return text_walk(r, out);
    case TL_STF_BUS_MASTER_ACCESS:
        return tl_buf_printf(
            out, " addr=0x%" PRIx64 " size=%u master=%u index=%u attr=0x%x access=%u",
            r->bus.address, r->bus.size, r->bus.master, r->bus.index, r->bus.attr, r->bus.type);
    case TL_STF_EVENT:
        return text_event(r, out);
    case TL_STF_INST_MICROOP:
        return tl_buf_printf(out, " size=%u uop=0x%x", r->microop.size, r->microop.op);
    case TL_STF_TRANSACTION:
    case TL_STF_TRANSACTION_DEPENDENCY:
        return text_transaction(r, out);
    default:
        return TL_OK;
    }
}

int tl_stf_record_text(const struct tl_stf_record *record, struct tl_buf *out)
{
    const int result = tl_buf_reserve(out, LINE_ROOM);
    if (result < 0)
        return result;
    uint8_t *p = tl_put_decimal(out->p + out->n, record->offset);
    *p++ = ' ';
    p = tl_put_decimal(p, record->size);
    *p++ = ' ';
    out->n = (size_t)(p - out->p);
    return tl_stf_record_fields(record, out);
}

int tl_stf_record_fields(const struct tl_stf_record *record, struct tl_buf *out)
{
    if (tl_buf_reserve(out, LINE_ROOM) < 0)
        return TL_NOMEM;
    uint8_t *const p = tl_put_text(out->p + out->n, tl_stf_type_name(record->type));
    uint8_t *const end = put_common(p, record);
    out->n = (size_t)((end ? end : p) - out->p);
    return end || text_fields(record, out) >= 0 ? TL_OK : TL_NOMEM;
}

int tl_stf_listing_line(uint64_t index, const struct tl_stf_record *record, uint64_t pc,
                        uint64_t insn, struct tl_buf *out)
{
    if (tl_buf_reserve(out, LINE_ROOM) < 0)
        return TL_NOMEM;
    uint8_t *p = tl_put_decimal(out->p + out->n, index);
    *p++ = ' ';
    out->n = (size_t)(p - out->p);
    if (tl_stf_record_text(record, out) < 0 || tl_buf_reserve(out, LINE_ROOM) < 0)
        return TL_NOMEM;
    p = out->p + out->n;
    if (record->type == TL_STF_INST_32 || record->type == TL_STF_INST_16) {
        p = tl_put_hex(tl_put_text(p, " ; pc=0x"), pc);
        p = tl_put_decimal(tl_put_text(p, " inst="), insn);
    }
    *p++ = '\n';
    out->n = (size_t)(p - out->p);
    return TL_OK;
}
