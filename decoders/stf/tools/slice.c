/* SPDX-License-Identifier: MIT */
/*
 * All records before the range pass through the state, since STF reports a register or a mode only
 * when it changes. The first group is held until it is complete: the header needs the address of
 * its instruction, which comes last.
 */
#include "stf/tools/slice.h"

#include "stf/flow_map.h"
#include "stf/group.h"
#include "stf/known.h"
#include "stf/rehead.h"

#include <stdlib.h>

#define GROUP_MAX (UINT32_C(64) << 20) /* maximum bytes kept of a group */

struct tl_stf_slicer {
    uint64_t from, to; /* numbers of instructions */
    const char *comment;
    struct tl_stf_out *out;
    struct tl_stf_header header;
    struct tl_buf head;  /* original records of the header */
    struct tl_buf group; /* records of the current group, until the range begins */
    struct tl_buf mode;  /* fields of the last MODE_CHANGE */
    struct tl_stf_known *known;
    struct tl_stf_layout layout;
    struct tl_stf_pc pc;
    struct tl_stf_record process; /* last PROCESS_ID_EXT; type 0: none */
    uint64_t features;
    uint16_t iem;
    uint64_t seen, written; /* instructions */
    bool ours;              /* MODE_CHANGEs have our additional field */
    bool begun;             /* the new header has been written */
    bool later;             /* in the header of a further shard */
};

int tl_stf_slicer_new(struct tl_stf_slicer **slicer, uint64_t from, uint64_t to,
                      const char *comment, struct tl_stf_out *out)
{
    struct tl_stf_slicer *const s = calloc(1, sizeof *s);
    if (!s || tl_stf_known_new(&s->known) < 0) {
        free(s);
        return TL_NOMEM;
    }
    s->from = from;
    s->to = to;
    s->comment = comment;
    s->out = out;
    *slicer = s;
    return TL_OK;
}

void tl_stf_slicer_free(struct tl_stf_slicer *slicer)
{
    if (!slicer)
        return;
    tl_buf_fini(&slicer->head);
    tl_buf_fini(&slicer->group);
    tl_buf_fini(&slicer->mode);
    tl_stf_known_free(slicer->known);
    free(slicer);
}

uint64_t tl_stf_slicer_written(const struct tl_stf_slicer *slicer)
{
    return slicer->written;
}

uint64_t tl_stf_slicer_seen(const struct tl_stf_slicer *slicer)
{
    return slicer->seen;
}

/* Write a record of the range; instruction numbers in page walks become those of the new trace. */
static int put(struct tl_stf_slicer *s, const struct tl_stf_record *record, struct tl_fail *fail)
{
    if (record->type != TL_STF_PAGE_TABLE_WALK)
        return tl_stf_out_put(s->out, record, fail);
    struct tl_stf_record shifted = *record;
    shifted.walk.first_access -=
        shifted.walk.first_access < s->from ? shifted.walk.first_access : s->from;
    return tl_stf_out_put(s->out, &shifted, fail);
}

/* ---- the header ------------------------------------------------------------------------------ */

static int put_header(struct tl_stf_slicer *s, uint64_t pc, struct tl_fail *fail)
{
    const struct tl_stf_rehead spec = {
        .head = {s->head.p, s->head.n},
        .comment = s->comment,
        /* Readers decide by the last TRACE_INFO: ours must remain last, and foreign traces must not
         * appear to be ours. */
        .info = s->ours ? TL_STF_GENERATOR_NAME " " TL_VERSION : "sliced by tracelake " TL_VERSION,
        .iem = s->iem,
        .features = s->features,
        .pc = pc,
        .tgid = s->process.process.tgid,
        .tid = s->process.process.tid,
        .asid = s->process.process.asid,
    };
    struct tl_buf head = {0};
    struct tl_stf_record r;
    int result = tl_stf_rehead_write(&spec, &head);
    struct tl_stf_group group = {.rest = {head.p, head.n}};
    if (result < 0)
        result = tl_fail_set(fail, (enum tl_err)result, "the header cannot be read again");
    while (group.rest.n && result == TL_OK) {
        if (tl_stf_group_next(&group, &r) != TL_OK)
            result = tl_fail_set(fail, TL_BAD, "the header cannot be read again");
        else
            result = tl_stf_out_put(s->out, &r, fail);
    }
    tl_buf_fini(&head);
    return result;
}

/* Write the current mode, at a position in the first group that group order allows. */
static int put_mode(struct tl_stf_slicer *s, struct tl_fail *fail)
{
    if (s->mode.n == 0)
        return TL_OK;
    if (s->ours && s->mode.n >= 16)
        tl_put_le64(s->mode.p + 8, (tl_le64(s->mode.p + 8) & ~TL_STF_MODE_FLAGS) |
                                       TL_STF_MODE_BEFORE | TL_STF_MODE_STATE);
    const struct tl_stf_record r = {.type = TL_STF_EVENT,
                                    .event = {TL_STF_EVENT_MODE_CHANGE, {s->mode.p, s->mode.n}}};
    return tl_stf_out_put(s->out, &r, fail);
}

/* Write the registers as they were before the first instruction. */
static int put_regs(struct tl_stf_slicer *s, struct tl_fail *fail)
{
    struct tl_stf_record r;
    size_t at = 0;
    int result = TL_OK;
    while (result == TL_OK && tl_stf_regstate_next(s->known->regs, &at, &r) == TL_OK)
        result = tl_stf_out_put(s->out, &r, fail);
    return result;
}

/* Write the page walks that are still valid. */
static int put_walks(struct tl_stf_slicer *s, struct tl_fail *fail)
{
    struct tl_stf_record r;
    size_t at = 0;
    int result = TL_OK;
    while (result == TL_OK && tl_stf_walks_next(s->known->walks, &at, &r) == TL_OK)
        result = tl_stf_out_put(s->out, &r, fail);
    return result;
}

/* ---- the range ------------------------------------------------------------------------------- */

/* Track the current state from the beginning of the trace. */
static int remember(struct tl_stf_slicer *s, const struct tl_stf_record *record)
{
    switch (record->type) {
    case TL_STF_PROCESS_ID_EXT:
        s->process = *record;
        return TL_OK;
    case TL_STF_TRACE_INFO_FEATURE:
        s->features |= record->features;
        return TL_OK;
    case TL_STF_INST_IEM:
        s->iem = record->iem;
        return TL_OK;
    case TL_STF_EVENT:
        if (record->event.number != TL_STF_EVENT_MODE_CHANGE)
            return TL_OK;
        tl_buf_reset(&s->mode);
        return tl_buf_add(&s->mode, record->event.fields.p, record->event.fields.n);
    default:
        return tl_stf_known_add(s->known, record);
    }
}

/*
 * Apply the current group's records: all of them, or those that affect the group's own instruction.
 */
static int remember_group(struct tl_stf_slicer *s, bool all)
{
    struct tl_stf_group group = {{s->group.p, s->group.n}, s->layout};
    struct tl_stf_record r;
    int result;
    while ((result = tl_stf_group_next(&group, &r)) == TL_OK) {
        if (all || r.type < TL_STF_INST_PC_TARGET)
            result = remember(s, &r);
        if (result < 0)
            return result;
    }
    return result == TL_EOF ? TL_OK : TL_BAD;
}

/* The first group is complete: write the header, then its records with the state inserted. */
static int begin_slice(struct tl_stf_slicer *s, uint64_t pc, struct tl_fail *fail)
{
    int result = remember_group(s, false);
    if (tl_stf_regstate_any(s->known->regs))
        s->features |= TL_STF_FEATURE_REG_STATE;
    if (result == TL_OK)
        result = put_header(s, pc, fail);
    bool regs = false, walks = false, mode = false;
    struct tl_stf_group group = {{s->group.p, s->group.n}, s->layout};
    while (group.rest.n && result == TL_OK) {
        struct tl_stf_record r;
        if (tl_stf_group_next(&group, &r) != TL_OK)
            return tl_fail_set(fail, TL_BAD, "a group cannot be read again");
        if (r.type >= TL_STF_INST_REG && !regs) {
            regs = true;
            result = put_regs(s, fail);
        }
        if (r.type >= TL_STF_PAGE_TABLE_WALK && !walks && result == TL_OK) {
            walks = true;
            result = put_walks(s, fail);
        }
        if (r.type >= TL_STF_EVENT && !mode && result == TL_OK) {
            mode = true;
            result = put_mode(s, fail);
        }
        if (result == TL_OK)
            result = put(s, &r, fail);
    }
    s->begun = true;
    return result;
}

/* Process the closing record of a group before the range, or of its first group. */
static int close_group(struct tl_stf_slicer *s, const struct tl_stf_record *record,
                       struct tl_stf_pc before, struct tl_fail *fail)
{
    const uint64_t index = s->seen++;
    int result = TL_OK;
    if (!s->begun && index < s->from) {
        result = remember_group(s, true);
        tl_stf_regstate_close(s->known->regs);
        tl_buf_reset(&s->group);
        return result < 0 ? tl_fail_set(fail, (enum tl_err)result, "a group cannot be kept")
                          : TL_OK;
    }
    if (index >= s->to)
        return TL_EOF;
    if (!s->begun) {
        if (tl_stf_record_encode(&s->layout, record, &s->group) < 0)
            return tl_fail_set(fail, TL_NOMEM, "out of memory");
        result = begin_slice(s, tl_stf_pc_add(&before, record), fail);
    } else {
        result = put(s, record, fail);
    }
    s->written += result == TL_OK;
    return result < 0 ? result : s->seen >= s->to ? TL_EOF : TL_OK;
}

static int in_header(struct tl_stf_slicer *s, const struct tl_stf_record *record,
                     struct tl_fail *fail)
{
    if (tl_stf_header_add(&s->header, record) < 0)
        return tl_fail_at(fail, TL_BAD, record->offset, "no STF trace");
    if (record->type == TL_STF_TRACE_INFO)
        s->ours = tl_stf_info_is_ours(record);
    const struct tl_stf_layout plain = {0};
    int result = TL_OK;
    if (!s->later && record->type != TL_STF_EVENT && record->type != TL_STF_INST_REG)
        result = tl_stf_record_encode(&plain, record, &s->head);
    if (result == TL_OK)
        result = remember(s, record);
    if (result == TL_OK && s->header.transactions)
        return tl_fail_set(fail, TL_UNSUPPORTED, "a transaction trace has no instructions");
    return result < 0 ? tl_fail_set(fail, (enum tl_err)result, "out of memory") : TL_OK;
}

/* Process the header of a further shard: only its changes matter. */
static int in_later_header(struct tl_stf_slicer *s, const struct tl_stf_record *record,
                           struct tl_fail *fail)
{
    const struct tl_stf_record before = s->process;
    int result = in_header(s, record, fail);
    if (result < 0 || !s->begun)
        return result;
    if (record->type == TL_STF_FORCE_PC && record->pc != s->pc.next)
        result = tl_stf_out_put(s->out, record, fail);
    if (record->type == TL_STF_PROCESS_ID_EXT &&
        memcmp(&before.process, &record->process, sizeof before.process) != 0)
        result = tl_stf_out_put(s->out, record, fail);
    return result;
}

static int add(struct tl_stf_slicer *s, const struct tl_stf_record *record, struct tl_fail *fail)
{
    const struct tl_stf_pc before = s->pc;
    tl_stf_pc_add(&s->pc, record);
    if (record->type == TL_STF_INST_32 || record->type == TL_STF_INST_16)
        return close_group(s, record, before, fail);
    if (record->type == TL_STF_RESERVE_END)
        return TL_OK;
    if (s->begun)
        return put(s, record, fail);
    if (s->group.n > GROUP_MAX)
        return tl_fail_at(fail, TL_LIMIT, record->offset, "a group of more than 64 MiB");
    if (tl_stf_record_encode(&s->layout, record, &s->group) < 0)
        return tl_fail_set(fail, TL_NOMEM, "out of memory");
    return TL_OK;
}

int tl_stf_slicer_add(struct tl_stf_slicer *slicer, const struct tl_stf_record *record,
                      struct tl_fail *fail)
{
    struct tl_stf_slicer *const s = slicer;
    if (s->header.complete && record->type == TL_STF_IDENTIFIER) {
        s->header = (struct tl_stf_header){0};
        s->later = true;
    }
    int result = TL_OK;
    const bool header = !s->header.complete;
    if (header) {
        result = s->later ? in_later_header(s, record, fail) : in_header(s, record, fail);
        if (record->type == TL_STF_FORCE_PC)
            s->pc.next = record->pc;
    }
    tl_stf_layout_apply(&s->layout, record);
    if (result < 0 || (header && !s->header.complete) || record->type == TL_STF_END_HEADER)
        return result;
    return add(s, record, fail);
}
