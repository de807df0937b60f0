/* SPDX-License-Identifier: MIT */
/*
 * Records are written in the order that a header requires, whatever the original's was. All
 * comments and TRACE_INFOs are kept and one is added, as the format asks of each tool that changes
 * a trace.
 */
#include "stf/rehead.h"

#include "stf/group.h"

#include "stf/flow_map.h"
#include "stf/writer.h"

#include <stdio.h>

bool tl_stf_info_is_ours(const struct tl_stf_record *record)
{
    const size_t n = strlen(TL_STF_GENERATOR_NAME);
    return record->info.text.n >= n && memcmp(record->info.text.p, TL_STF_GENERATOR_NAME, n) == 0;
}

/*
 * Write all records of one type from the original header, or only the last one. Returns how many.
 */
static int put_old(const struct tl_stf_rehead *spec, uint8_t type, bool all, struct tl_buf *out)
{
    static const struct tl_stf_layout plain = {0};
    struct tl_stf_group group = {.rest = spec->head};
    struct tl_stf_record last;
    int n = 0, result = TL_OK;
    while (group.rest.n && result >= 0) {
        struct tl_stf_record r;
        if (tl_stf_group_next(&group, &r) != TL_OK)
            return TL_BAD;
        if (r.type == type) {
            n++;
            last = r;
            result = all ? tl_stf_record_encode(&plain, &r, out) : TL_OK;
        }
    }
    if (result >= 0 && n && !all)
        result = tl_stf_record_encode(&plain, &last, out);
    return result < 0 ? result : n;
}

static struct tl_bytes bytes_of(const char *text)
{
    return (struct tl_bytes){(const uint8_t *)text, strlen(text)};
}

/* Build the TRACE_INFO that every tool adds when it modifies a trace. */
static void report_ourselves(const struct tl_stf_rehead *spec, struct tl_stf_record *record)
{
    unsigned version[3] = {0};
    (void)sscanf(TL_VERSION, "%u.%u.%u", &version[0], &version[1], &version[2]);
    record->info =
        (typeof(record->info)){TL_STF_GENERATOR, (uint8_t)version[0], (uint8_t)version[1],
                               (uint8_t)version[2], bytes_of(spec->info)};
}

/* Is our TRACE_INFO already the last one? */
static bool reported_ourselves(const struct tl_stf_rehead *spec)
{
    struct tl_stf_group group = {.rest = spec->head};
    struct tl_stf_record r;
    bool reported = false;
    while (tl_stf_group_next(&group, &r) == TL_OK)
        if (r.type == TL_STF_TRACE_INFO)
            reported = r.info.generator == TL_STF_GENERATOR &&
                       r.info.text.n == strlen(spec->info) &&
                       memcmp(r.info.text.p, spec->info, r.info.text.n) == 0;
    return reported;
}

/* Does the process differ from the original header's (none: all zero)? Then the trace contains
 * process IDs, regardless of its feature bits. */
static bool other_process(const struct tl_stf_rehead *spec)
{
    struct tl_stf_group group = {.rest = spec->head};
    struct tl_stf_record r, old = {0};
    while (tl_stf_group_next(&group, &r) == TL_OK)
        if (r.type == TL_STF_PROCESS_ID_EXT)
            old = r;
    return old.process.tgid != spec->tgid || old.process.tid != spec->tid ||
           old.process.asid != spec->asid;
}

/* Build a record that changes or is mandatory. Returns false if it is neither. */
static bool anew(const struct tl_stf_rehead *spec, int old, struct tl_stf_record *record)
{
    switch (record->type) {
    case TL_STF_IDENTIFIER:
        memcpy(record->magic, "STF", 3);
        return old == 0;
    case TL_STF_VERSION:
        record->version.major = TL_STF_VERSION_MAJOR;
        record->version.minor = TL_STF_VERSION_MINOR;
        return old == 0;
    case TL_STF_COMMENT:
        record->text = spec->comment ? bytes_of(spec->comment) : (struct tl_bytes){0};
        return spec->comment;
    case TL_STF_ISA:
        record->isa = TL_STF_ISA_OTHER;
        return old == 0;
    case TL_STF_INST_IEM:
        record->iem = spec->iem;
        return true;
    case TL_STF_TRACE_INFO:
        report_ourselves(spec, record);
        return !reported_ourselves(spec);
    case TL_STF_TRACE_INFO_FEATURE:
        record->features = spec->features;
        if (other_process(spec))
            record->features |= TL_STF_FEATURE_PROCESS_ID;
        return true;
    case TL_STF_PROCESS_ID_EXT:
        record->process = (typeof(record->process)){spec->tgid, spec->tid, spec->asid};
        return true;
    case TL_STF_FORCE_PC:
        record->pc = spec->pc;
        return true;
    case TL_STF_END_HEADER:
        return true;
    default:
        return false;
    }
}

int tl_stf_rehead_write(const struct tl_stf_rehead *spec, struct tl_buf *out)
{
    enum { REPORTED_ANEW = -1, ALL = 1, ONE = 0 };
    static const struct tl_stf_layout plain = {0};
    static const struct {
        uint8_t type;
        int8_t old;
    } order[] = {{TL_STF_IDENTIFIER, ONE},
                 {TL_STF_VERSION, ONE},
                 {TL_STF_COMMENT, ALL},
                 {TL_STF_ISA, ONE},
                 {TL_STF_INST_IEM, REPORTED_ANEW},
                 {TL_STF_TRACE_INFO, ALL},
                 {TL_STF_TRACE_INFO_FEATURE, REPORTED_ANEW},
                 {TL_STF_PROCESS_ID_EXT, REPORTED_ANEW},
                 {TL_STF_FORCE_PC, REPORTED_ANEW},
                 {TL_STF_VLEN_CONFIG, ONE},
                 {TL_STF_ISA_EXTENDED, ONE},
                 {TL_STF_END_HEADER, REPORTED_ANEW}};
    int result = TL_OK;
    for (size_t i = 0; i < sizeof order / sizeof *order && result >= 0; i++) {
        struct tl_stf_record r = {.type = order[i].type};
        if (order[i].old != REPORTED_ANEW)
            result = put_old(spec, r.type, order[i].old, out);
        if (result >= 0 && anew(spec, result, &r))
            result = tl_stf_record_encode(&plain, &r, out);
    }
    return result < 0 ? result : TL_OK;
}
