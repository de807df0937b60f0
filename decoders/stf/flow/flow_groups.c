/* SPDX-License-Identifier: MIT */
/*
 * Records are interpreted only as far as conversion needs, and otherwise passed on as bytes: a
 * trace may contain kinds of records that no flow item can express. What goes into a group is put
 * where descriptors do not decrease, which readers rely on.
 */
#include "stf/flow/flow_groups.h"

#include "flow/item.h"
#include "stf/flow_map.h"
#include "stf/group.h"
#include "stf/rehead.h"
#include "stf/stand.h"

#include <stdio.h>

/* ---- header ---------------------------------------------------------------------------------- */

void tl_stf_groups_fini(struct tl_stf_groups *groups)
{
    tl_buf_fini(&groups->head);
}

/* Records not allowed in a header are dropped: other readers could not read the header. */
static bool belongs_in_header(uint8_t type)
{
    return type <= TL_STF_END_HEADER;
}

static int text_of(const struct tl_block *block, uint32_t n, struct tl_buf *out);

int tl_stf_groups_add(struct tl_stf_groups *groups, const struct tl_stf_record *record)
{
    static const struct tl_stf_layout plain = {0};
    groups->reported.text = text_of;
    if (tl_stf_header_add(&groups->header, record) < 0)
        return TL_BAD;
    tl_stf_layout_apply(&groups->layout, record);
    if (record->type == TL_STF_TRACE_INFO)
        groups->ours = tl_stf_info_is_ours(record);
    return belongs_in_header(record->type) ? tl_stf_record_encode(&plain, record, &groups->head)
                                           : TL_OK;
}

int tl_stf_groups_read(struct tl_stf_groups *groups, struct tl_bytes stf)
{
    tl_buf_reset(&groups->head);
    *groups = (struct tl_stf_groups){.head = groups->head};
    struct tl_stf_group header = {.rest = stf};
    while (!groups->header.complete) {
        struct tl_stf_record r;
        if (tl_stf_group_next(&header, &r) != TL_OK)
            return TL_BAD;
        const int result = tl_stf_groups_add(groups, &r);
        if (result < 0)
            return result;
        header.layout = groups->layout;
        if (groups->header.complete && r.type != TL_STF_END_HEADER)
            return (int)(header.rest.p - r.size - stf.p);
    }
    return (int)(header.rest.p - stf.p);
}

/* ---- groups ---------------------------------------------------------------------------------- */

bool tl_stf_groups_has(uint8_t type)
{
    switch (type) {
    case TL_STF_COMMENT:
    case TL_STF_INST_IEM:
    case TL_STF_PROCESS_ID_EXT:
    case TL_STF_FORCE_PC:
        return true;
    default:
        return type >= TL_STF_INST_PC_TARGET && type < TL_STF_TRANSACTION;
    }
}

bool tl_stf_groups_readable(const struct tl_stf_record *record, uint8_t last)
{
    switch (record->type) {
    case TL_STF_INST_REG:
        return (record->reg.meta & 15) >= TL_STF_REG_INT &&
               (record->reg.meta & 15) <= TL_STF_REG_CSR && record->reg.meta >> 4 >= 1 &&
               record->reg.meta >> 4 <= 3;
    case TL_STF_INST_MEM_ACCESS:
        return record->access.type == TL_STF_READ || record->access.type == TL_STF_WRITE;
    case TL_STF_INST_MEM_CONTENT:
        return last == TL_STF_INST_MEM_ACCESS || last == TL_STF_INST_MEM_CONTENT;
    case TL_STF_BUS_MASTER_CONTENT:
        return last == TL_STF_BUS_MASTER_ACCESS || last == TL_STF_BUS_MASTER_CONTENT;
    default:
        return true;
    }
}

size_t tl_stf_groups_pass(const struct tl_stf_groups *groups, const uint8_t *stf, uint32_t n,
                          struct tl_stf_pc *pc)
{
    struct tl_stf_group group = {{stf, SIZE_MAX}, groups->layout};
    struct tl_stf_record r;
    while (n > 0 && tl_stf_group_next(&group, &r) == TL_OK) {
        tl_stf_pc_add(pc, &r);
        n -= tl_stf_is_marker(r.type);
    }
    return (size_t)(group.rest.p - stf);
}

size_t tl_stf_groups_mode(const struct tl_stf_groups *groups, struct tl_bytes stf, uint64_t mode)
{
    const unsigned level = tl_mode_privilege(mode);
    struct tl_stf_group group = {stf, groups->layout};
    size_t place = SIZE_MAX;
    struct tl_stf_record r = {0};
    while (level <= 3 && !tl_stf_is_marker(r.type)) {
        if (tl_stf_group_next(&group, &r) != TL_OK)
            return SIZE_MAX; /* does not happen */
        if (r.type >= TL_STF_EVENT && place == SIZE_MAX)
            place = (size_t)(group.rest.p - stf.p) - r.size; /* descriptors must not decrease */
        if (r.type == TL_STF_EVENT && r.event.number == TL_STF_EVENT_MODE_CHANGE &&
            r.event.fields.n && tl_stf_word(r.event.fields, 0) == level)
            return SIZE_MAX; /* the group itself reports it */
    }
    return place;
}

size_t tl_stf_groups_known(const struct tl_stf_groups *groups, struct tl_bytes stf, size_t *size,
                           struct tl_bytes *records)
{
    struct tl_stf_group group = {stf, groups->layout};
    struct tl_stf_record r = {0};
    while (r.type < TL_STF_INST_PC_TARGET && tl_stf_group_next(&group, &r) == TL_OK) {
        char text[sizeof TL_STF_KNOWN_COMMENT + 10] = "";
        unsigned n;
        if (r.type != TL_STF_COMMENT || r.text.n >= sizeof text)
            continue;
        memcpy(text, r.text.p, r.text.n);
        if (sscanf(text, TL_STF_KNOWN_COMMENT, &n) != 1 || n > group.rest.n)
            continue;
        *records = (struct tl_bytes){group.rest.p, n};
        *size = r.size + n;
        return (size_t)(group.rest.p - stf.p) - r.size;
    }
    return SIZE_MAX;
}

size_t tl_stf_groups_mode_reported(const struct tl_stf_groups *groups, struct tl_bytes stf,
                                   const uint64_t *mode, uint32_t *size)
{
    const uint64_t again = TL_STF_MODE_STATE | TL_STF_MODE_BEFORE;
    struct tl_stf_group group = {stf, groups->layout};
    struct tl_stf_record r = {0};
    while (!tl_stf_is_marker(r.type) && tl_stf_group_next(&group, &r) == TL_OK) {
        if (r.type != TL_STF_EVENT)
            continue;
        const struct tl_bytes fields = r.event.fields;
        const bool reported =
            r.event.number == TL_STF_EVENT_MODE_CHANGE &&
            (mode ? fields.n == 8 && tl_stf_word(fields, 0) == tl_mode_privilege(*mode)
                  : fields.n == 16 && (tl_stf_word(fields, 1) & again) == again);
        *size = r.size;
        /* It is the first EVENT. */
        return reported ? (size_t)(group.rest.p - stf.p) - r.size : SIZE_MAX;
    }
    return SIZE_MAX;
}

/* ---- text ------------------------------------------------------------------------------------ */

/* Is the record's content shown by an item or by the instruction's line? */
static bool is_shown(const struct tl_stf_record *record)
{
    switch (record->type) {
    case TL_STF_COMMENT:
    case TL_STF_INST_IEM:
    case TL_STF_PROCESS_ID_EXT:
    case TL_STF_FORCE_PC:
    case TL_STF_INST_PC_TARGET:
    case TL_STF_EVENT_PC_TARGET:
    case TL_STF_INST_32:
    case TL_STF_INST_16:
        return true;
    case TL_STF_EVENT:
        return record->event.number == TL_STF_EVENT_MODE_CHANGE && record->event.fields.n == 8;
    default:
        return false;
    }
}

/* Append the records of the next group that are not shown otherwise, as annotations. */
static int group_text(struct tl_stf_group *group, struct tl_buf *out)
{
    struct tl_stf_record r;
    while (tl_stf_group_next(group, &r) == TL_OK) {
        if (!is_shown(&r) && (tl_buf_add(out, "A ", 2) < 0 || tl_stf_record_fields(&r, out) < 0 ||
                              tl_buf_add(out, "\n", 1) < 0))
            return TL_NOMEM;
        if (tl_stf_is_marker(r.type))
            return TL_OK;
    }
    return TL_BAD; /* does not happen */
}

static int insn_text(const struct tl_block *block, uint32_t at, struct tl_insn *insn,
                     struct tl_buf *out)
{
    tl_block_insn(block, at, insn);
    if (insn->size == 2 || insn->size == 4)
        return tl_buf_printf(out, "I %016llx %0*x\n", (unsigned long long)(block->pc + at),
                             insn->size * 2, insn->encoding);
    int result = tl_buf_printf(out, "I %016llx ", (unsigned long long)(block->pc + at));
    for (uint32_t i = 0; i < insn->size && result >= 0; i++)
        result = tl_buf_printf(out, "%02x", block->code[at + i]);
    return result < 0 ? result : tl_buf_add(out, "\n", 1);
}

static int text_of(const struct tl_block *block, uint32_t n, struct tl_buf *out)
{
    struct tl_stf_group group = {{block->coded, block->coded_size},
                                 tl_stf_groups_of(block)->layout};
    int result = TL_OK;
    for (uint32_t i = 0, at = 0; i < n && at < block->size && result >= 0; i++) {
        struct tl_insn insn;
        result = insn_text(block, at, &insn, out);
        if (result >= 0)
            result = group_text(&group, out);
        at += insn.size;
    }
    return result;
}

/*
 * ---- saved state ------------------------------------------------------------------------------
 */

void tl_stf_groups_state(struct tl_stf_groups *groups, struct tl_state *s)
{
    tl_stf_header_state(&groups->header, s);
    tl_stf_layout_state(&groups->layout, s);
    tl_state_buf(s, &groups->head, SIZE_MAX);
    tl_state_bool(s, &groups->ours);
    groups->reported.text = text_of;
}

bool tl_stf_groups_look(const struct tl_stf_groups *groups, struct tl_bytes stf,
                        struct tl_stf_shape *out)
{
    *out = (struct tl_stf_shape){0};
    struct tl_stf_group group = {stf, groups->layout};
    struct tl_stf_record r;
    int result;
    while ((result = tl_stf_group_next(&group, &r)) == TL_OK) {
        const size_t at = (size_t)(group.rest.p - stf.p) - r.size;
        if (out->ends)
            out->group = at;
        if (r.type >= TL_STF_INST_PC_TARGET) {
            out->record = at;
            out->type = r.type;
            out->size = r.size;
        }
        out->ends = tl_stf_is_marker(r.type);
        out->markers += out->ends;
    }
    return result == TL_EOF;
}
