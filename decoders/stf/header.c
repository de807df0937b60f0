/* SPDX-License-Identifier: MIT */
/*
 * Faults are collected as bits with the offset of the first one, so that a header is read to its
 * end and whoever checks it names all of them. A header without END_HEADER ends at the first record
 * that cannot be part of one: it is then the program's.
 */
#include "stf/header.h"

#include "stf/stand.h"

static void fault(struct tl_stf_header *header, unsigned bit, uint64_t offset)
{
    if (header->faults == 0)
        header->fault_offset = offset;
    header->faults |= bit;
}

/* Record the presence of a record that must not be repeated. */
static void once(struct tl_stf_header *header, bool *has, uint64_t offset)
{
    if (*has)
        fault(header, TL_STF_REPEATED, offset);
    *has = true;
}

static void check_missing(struct tl_stf_header *header, uint64_t offset)
{
    const bool insns = !header->transactions;
    if (!header->has_features)
        fault(header, TL_STF_NO_FEATURE, offset);
    if (!header->has_trace_info)
        fault(header, TL_STF_NO_TRACE_INFO, offset);
    if (!header->has_comment)
        fault(header, TL_STF_NO_COMMENT, offset);
    if (insns && !header->has_isa)
        fault(header, TL_STF_NO_ISA, offset);
    if (insns && !header->has_iem)
        fault(header, TL_STF_NO_IEM, offset);
    if (insns && !header->has_pc)
        fault(header, TL_STF_NO_FORCE_PC, offset);
    if (insns && !header->has_process)
        fault(header, TL_STF_NO_PROCESS_ID, offset);
    if (!insns && (header->has_isa || header->has_iem || header->has_pc || header->has_process ||
                   header->has_vlen || header->has_isa_extended))
        fault(header, TL_STF_MIXED, offset);
}

static void end(struct tl_stf_header *header, const struct tl_stf_record *record)
{
    header->complete = true;
    check_missing(header, record->offset);
}

/* Records that describe the machine and the start of the trace. */
static bool add_state(struct tl_stf_header *header, const struct tl_stf_record *record)
{
    switch (record->type) {
    case TL_STF_ISA:
        if (header->has_iem)
            fault(header, TL_STF_ORDER, record->offset);
        once(header, &header->has_isa, record->offset);
        header->isa = record->isa;
        return true;
    case TL_STF_INST_IEM:
        once(header, &header->has_iem, record->offset);
        header->iem = record->iem;
        return true;
    case TL_STF_PROCESS_ID_EXT:
        once(header, &header->has_process, record->offset);
        header->tgid = record->process.tgid;
        header->tid = record->process.tid;
        header->asid = record->process.asid;
        return true;
    case TL_STF_FORCE_PC:
        once(header, &header->has_pc, record->offset);
        header->pc = record->pc;
        return true;
    case TL_STF_VLEN_CONFIG:
        once(header, &header->has_vlen, record->offset);
        header->vlen = record->vlen;
        return true;
    case TL_STF_ISA_EXTENDED:
        once(header, &header->has_isa_extended, record->offset);
        return true;
    default:
        return false;
    }
}

static bool add_about(struct tl_stf_header *header, const struct tl_stf_record *record)
{
    switch (record->type) {
    case TL_STF_COMMENT:
        header->has_comment = true;
        return true;
    case TL_STF_TRACE_INFO:
        header->has_trace_info = true;
        header->generator = record->info.generator;
        header->gen_major = record->info.major;
        header->gen_minor = record->info.minor;
        header->gen_patch = record->info.patch;
        return true;
    case TL_STF_TRACE_INFO_FEATURE:
        once(header, &header->has_features, record->offset);
        header->features = record->features;
        header->transactions |= (record->features & TL_STF_FEATURE_TRANSACTIONS) != 0;
        return true;
    case TL_STF_PROTOCOL_ID:
        once(header, &header->has_protocol, record->offset);
        header->protocol = record->protocol;
        header->transactions = true;
        return true;
    case TL_STF_CLOCK_ID:
        header->has_clock = true;
        header->transactions = true;
        return true;
    default:
        return false;
    }
}

/* Does a record of this type end a header without END_HEADER? */
static bool ends_header(uint8_t type)
{
    return tl_stf_is_marker(type) || type == TL_STF_RESERVE_END;
}

int tl_stf_header_add(struct tl_stf_header *header, const struct tl_stf_record *record)
{
    if (header->complete)
        return TL_OK;
    const uint32_t index = header->records++;
    if (index == 0)
        return record->type == TL_STF_IDENTIFIER ? TL_OK : TL_BAD;
    header->size = (uint32_t)(record->offset + record->size);
    if (record->type == TL_STF_VERSION) {
        if (index != 1)
            fault(header, header->has_version ? TL_STF_REPEATED : TL_STF_NO_VERSION,
                  record->offset);
        header->has_version = true;
        header->major = record->version.major;
        header->minor = record->version.minor;
        return TL_OK;
    }
    if (index == 1)
        fault(header, TL_STF_NO_VERSION, record->offset);
    if (record->type == TL_STF_END_HEADER) {
        end(header, record);
        return TL_OK;
    }
    if (add_state(header, record) || add_about(header, record))
        return TL_OK;
    if (ends_header(record->type)) {
        header->size = (uint32_t)record->offset;
        fault(header, TL_STF_NO_END, record->offset);
        end(header, record);
        return TL_OK;
    }
    fault(header, TL_STF_FOREIGN, record->offset);
    return TL_OK;
}

const char *tl_stf_header_fault_text(unsigned bit)
{
    switch (bit) {
    case TL_STF_NO_VERSION:
        return "the second record is not VERSION";
    case TL_STF_NO_ISA:
        return "ISA is missing from the header";
    case TL_STF_NO_IEM:
        return "INST_IEM is missing from the header";
    case TL_STF_NO_FORCE_PC:
        return "FORCE_PC is missing from the header";
    case TL_STF_NO_FEATURE:
        return "TRACE_INFO_FEATURE is missing from the header";
    case TL_STF_NO_TRACE_INFO:
        return "TRACE_INFO is missing from the header";
    case TL_STF_NO_COMMENT:
        return "COMMENT is missing from the header";
    case TL_STF_NO_PROCESS_ID:
        return "PROCESS_ID_EXT is missing from the header";
    case TL_STF_REPEATED:
        return "a record that may stand in the header once is there again";
    case TL_STF_FOREIGN:
        return "a record that does not belong into the header";
    case TL_STF_NO_END:
        return "END_HEADER is missing";
    case TL_STF_ORDER:
        return "ISA does not precede INST_IEM";
    case TL_STF_MIXED:
        return "instruction records in the header of a transaction trace";
    default:
        return "?";
    }
}

void tl_stf_header_state(struct tl_stf_header *h, struct tl_state *s)
{
    uint32_t faults = h->faults;
    uint32_t *const words[] = {&h->major, &h->minor, &h->tgid,    &h->tid, &h->asid,
                               &h->vlen,  &faults,   &h->records, &h->size};
    uint8_t *const bytes[] = {&h->generator, &h->gen_major, &h->gen_minor, &h->gen_patch,
                              &h->protocol};
    bool *const reported[] = {&h->has_version,  &h->has_isa,         &h->has_iem,
                              &h->has_features, &h->has_pc,          &h->has_process,
                              &h->has_vlen,     &h->has_comment,     &h->has_clock,
                              &h->has_protocol, &h->complete,        &h->has_trace_info,
                              &h->transactions, &h->has_isa_extended};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        tl_state_u32(s, words[i]);
    for (size_t i = 0; i < sizeof bytes / sizeof *bytes; i++)
        tl_state_u8(s, bytes[i], UINT8_MAX);
    for (size_t i = 0; i < sizeof reported / sizeof *reported; i++)
        tl_state_bool(s, reported[i]);
    tl_state_u16(s, &h->isa);
    tl_state_u16(s, &h->iem);
    tl_state_u64(s, &h->features);
    tl_state_u64(s, &h->pc);
    tl_state_u64(s, &h->fault_offset);
    h->faults = faults;
}

void tl_stf_layout_state(struct tl_stf_layout *layout, struct tl_state *s)
{
    tl_state_bool(s, &layout->event64);
    tl_state_u32(s, &layout->vlen);
    tl_state_u8(s, &layout->protocol, UINT8_MAX);
}

void tl_stf_pc_state(struct tl_stf_pc *pc, struct tl_state *s)
{
    tl_state_u64(s, &pc->next);
    tl_state_u64(s, &pc->target);
    tl_state_bool(s, &pc->has_target);
}

int tl_stf_fail_record(struct tl_fail *fail, int code, uint64_t offset,
                       const struct tl_stf_header *header, uint8_t descriptor)
{
    const enum tl_err err = (enum tl_err)code;
    const char *const name = tl_stf_type_name(descriptor);
    if (header->records == 0)
        return tl_fail_at(fail, err, offset,
                          "no STF trace: it does not begin with an IDENTIFIER record");
    if (code == TL_LIMIT)
        return tl_fail_at(fail, err, offset, "a %s record claims to be longer than 16 MiB", name);
    if (!tl_stf_type_known(descriptor))
        return tl_fail_at(fail, err, offset, "no record has descriptor %u; the rest cannot be read",
                          descriptor);
    return tl_fail_at(fail, err, offset, "malformed %s record", name);
}

int tl_stf_fail_end(struct tl_fail *fail, uint64_t offset, const struct tl_stf_header *header,
                    struct tl_bytes left)
{
    if (left.n)
        return tl_fail_at(
            fail, TL_BAD, offset, "the trace ends in the middle of a record (%s, %zu bytes of it)",
            tl_stf_type_known(left.p[0]) ? tl_stf_type_name(left.p[0]) : "unknown", left.n);
    if (header->records == 0)
        return tl_fail_at(fail, TL_BAD, offset, "no STF trace: it is empty");
    if (!header->complete)
        return tl_fail_at(fail, TL_BAD, offset, "the trace ends within its header");
    return TL_EOF;
}
