/* SPDX-License-Identifier: MIT */
/*
 * Writes headers and records in the order that the specification asks for. A record out of order is
 * refused instead of written, since other tools abort on such a file.
 */
#include "stf/writer.h"

#include <stdio.h>

#define DEFAULT_GENERATOR "libtracelake-stf " TL_VERSION

static struct tl_bytes text_of(const char *text)
{
    return (struct tl_bytes){(const uint8_t *)text, strlen(text)};
}

static uint32_t version_minor(const struct tl_stf_header_spec *spec)
{
    if (spec->version_minor)
        return spec->version_minor;
    if (spec->isa_extended)
        return 6;
    if (spec->features & TL_STF_FEATURE_EVENT64)
        return 5;
    return spec->vlen ? 4 : TL_STF_VERSION_MINOR;
}

static int put_comments(const struct tl_stf_header_spec *spec, const char *generator,
                        struct tl_buf *out)
{
    const struct tl_stf_layout layout = {0};
    struct tl_stf_record r = {.type = TL_STF_COMMENT, .text = text_of(generator)};
    if (!spec->n_comments)
        return tl_stf_record_encode(&layout, &r, out);
    int result = TL_OK;
    for (size_t i = 0; i < spec->n_comments && result == TL_OK; i++) {
        r.text = text_of(spec->comments[i]);
        result = tl_stf_record_encode(&layout, &r, out);
    }
    return result;
}

/* Parse the version at the end of the generator's name, e.g. 0.1.0 in "tracelake 0.1.0". */
static void generator_version(const char *generator, struct tl_stf_record *r)
{
    const char *const space = strrchr(generator, ' ');
    unsigned v[3] = {0};
    if (space)
        (void)sscanf(space + 1, "%u.%u.%u", &v[0], &v[1], &v[2]);
    r->info.major = (uint8_t)v[0];
    r->info.minor = (uint8_t)v[1];
    r->info.patch = (uint8_t)v[2];
}

int tl_stf_header_write(const struct tl_stf_header_spec *spec, struct tl_buf *out,
                        struct tl_stf_layout *layout)
{
    const char *const generator = spec->generator ? spec->generator : DEFAULT_GENERATOR;
    struct tl_stf_record records[] = {
        {.type = TL_STF_IDENTIFIER},
        {.type = TL_STF_VERSION, .version = {TL_STF_VERSION_MAJOR, version_minor(spec)}},
        {.type = TL_STF_COMMENT},
        {.type = TL_STF_ISA, .isa = spec->isa},
        {.type = TL_STF_INST_IEM, .iem = spec->iem},
        {.type = TL_STF_TRACE_INFO,
         .info = {.generator = TL_STF_GENERATOR, .text = text_of(generator)}},
        {.type = TL_STF_TRACE_INFO_FEATURE, .features = spec->features},
        {.type = TL_STF_PROCESS_ID_EXT, .process = {spec->tgid, spec->tid, spec->asid}},
        {.type = TL_STF_FORCE_PC, .pc = spec->pc},
        {.type = TL_STF_VLEN_CONFIG, .vlen = spec->vlen},
        {.type = TL_STF_ISA_EXTENDED,
         .text = text_of(spec->isa_extended ? spec->isa_extended : "")},
        {.type = TL_STF_END_HEADER},
    };
    const struct tl_stf_layout plain = {0};
    const size_t before = out->n;
    int result = TL_OK;
    for (size_t i = 0; i < sizeof records / sizeof *records && result == TL_OK; i++) {
        struct tl_stf_record *const r = &records[i];
        if (r->type == TL_STF_TRACE_INFO)
            generator_version(generator, r);
        if (r->type == TL_STF_COMMENT)
            result = put_comments(spec, generator, out);
        else if ((r->type != TL_STF_VLEN_CONFIG || spec->vlen) &&
                 (r->type != TL_STF_ISA_EXTENDED || spec->isa_extended))
            result = tl_stf_record_encode(&plain, r, out);
    }
    if (result < 0)
        out->n = before;
    if (layout)
        *layout = (struct tl_stf_layout){.event64 = (spec->features & TL_STF_FEATURE_EVENT64) != 0,
                                         .vlen = spec->vlen};
    return result;
}

/* ---- order --------------------------------------------------------------------------------- */

static int broken(const char **rule, const char *text)
{
    *rule = text;
    return TL_BAD;
}

static bool anywhere(uint8_t type)
{
    return type == TL_STF_COMMENT || type == TL_STF_PROCESS_ID_EXT || type == TL_STF_FORCE_PC;
}

/* A lower descriptor may follow only in these cases. */
static bool may_go_back(const struct tl_stf_order *order, uint8_t type)
{
    const uint8_t last = order->prev;
    switch (type) {
    case TL_STF_INST_MEM_ACCESS:
        return last == TL_STF_INST_MEM_CONTENT;
    case TL_STF_BUS_MASTER_ACCESS:
        return last == TL_STF_BUS_MASTER_CONTENT;
    case TL_STF_INST_REG:
        return last == TL_STF_INST_MEM_CONTENT || last == TL_STF_BUS_MASTER_CONTENT ||
               last == TL_STF_PAGE_TABLE_WALK;
    case TL_STF_INST_PC_TARGET:
        return last == TL_STF_INST_REG || last == TL_STF_PAGE_TABLE_WALK;
    case TL_STF_EVENT:
        return last == TL_STF_EVENT_PC_TARGET && order->aimed;
    default:
        return false;
    }
}

static int order_in_header(struct tl_stf_order *order, const struct tl_stf_record *record,
                           const char **rule)
{
    const unsigned before = order->header.faults;
    if (tl_stf_header_add(&order->header, record) < 0)
        return broken(rule, "the first record is not IDENTIFIER");
    const unsigned after = order->header.faults & ~before & TL_STF_FAULTS_HARD;
    if (!after)
        return TL_OK;
    return broken(rule, tl_stf_header_fault_text(after & -after));
}

static bool header_only(uint8_t type)
{
    return type < TL_STF_END_HEADER + 1 && !anywhere(type) && type != TL_STF_INST_IEM;
}

static int order_in_group(struct tl_stf_order *order, const struct tl_stf_record *record,
                          const char **rule)
{
    const uint8_t type = record->type;
    if (type == TL_STF_INST_MEM_CONTENT)
        return order->prev == TL_STF_INST_MEM_ACCESS || order->prev == TL_STF_INST_MEM_CONTENT
                   ? TL_OK
                   : broken(rule, "INST_MEM_CONTENT does not follow INST_MEM_ACCESS");
    if (order->prev == TL_STF_INST_MEM_ACCESS)
        return broken(rule, "INST_MEM_ACCESS without INST_MEM_CONTENT after it");
    if (type == TL_STF_BUS_MASTER_CONTENT)
        return order->prev == TL_STF_BUS_MASTER_ACCESS || order->prev == TL_STF_BUS_MASTER_CONTENT
                   ? TL_OK
                   : broken(rule, "BUS_MASTER_CONTENT does not follow BUS_MASTER_ACCESS");
    if (order->prev == TL_STF_BUS_MASTER_ACCESS)
        return broken(rule, "BUS_MASTER_ACCESS without BUS_MASTER_CONTENT after it");
    if (type == TL_STF_EVENT_PC_TARGET && !order->event)
        return broken(rule, "EVENT_PC_TARGET without EVENT before it");
    if (anywhere(type) || type >= order->prev || may_go_back(order, type))
        return TL_OK;
    return broken(rule, TL_STF_DISORDER);
}

int tl_stf_order_add(struct tl_stf_order *order, const struct tl_stf_record *record,
                     const char **rule)
{
    if (!order->header.complete) {
        const int result = order_in_header(order, record, rule);
        if (!order->header.complete || record->type == TL_STF_END_HEADER || result < 0)
            return result;
    } else if (header_only(record->type)) {
        return broken(rule, "a header record after END_HEADER");
    }
    const int result = order->header.transactions ? TL_OK : order_in_group(order, record, rule);
    if (record->type == TL_STF_EVENT || record->type == TL_STF_EVENT_PC_TARGET) {
        order->aimed = order->prev == TL_STF_EVENT;
        order->event = record->type == TL_STF_EVENT;
    }
    order->prev = record->type;
    if (tl_stf_is_marker(record->type)) {
        order->prev = 0;
        order->event = false;
    }
    return result;
}

/* ---- the plain stream ------------------------------------------------------------------------ */

void tl_stf_writer_fini(struct tl_stf_writer *writer)
{
    tl_buf_fini(&writer->out);
}

/* A separate function, so that hot records need not save its registers. */
int tl_stf_writer_put_any(struct tl_stf_writer *writer, const struct tl_stf_record *record,
                          struct tl_fail *fail)
{
    const struct tl_stf_order before = writer->order;
    const char *rule = "";
    const int order = tl_stf_order_add(&writer->order, record, &rule);
    int result = TL_OK;
    if (order < 0 && !writer->unchecked)
        result = tl_fail_set(fail, TL_USAGE, "%s: %s", tl_stf_type_name(record->type), rule);
    if (result == TL_OK) {
        result = tl_stf_record_encode(&writer->layout, record, &writer->out);
        if (result < 0)
            tl_fail_set(fail, (enum tl_err)result, "%s: %s", tl_stf_type_name(record->type),
                        result == TL_USAGE ? "fields out of range" : "out of memory");
    }
    if (result < 0) {
        writer->order = before;
        return result;
    }
    tl_stf_layout_apply(&writer->layout, record);
    tl_stf_pc_add(&writer->pc, record);
    writer->markers += tl_stf_is_marker(record->type);
    if (writer->unchecked || writer->order.header.complete)
        writer->hot_room = TL_STF_HOT_ROOM;
    return TL_OK;
}

int tl_stf_writer_put(struct tl_stf_writer *writer, const struct tl_stf_record *record,
                      struct tl_fail *fail)
{
    if (tl_stf_writer_put_hot(writer, record))
        return TL_OK;
    return tl_stf_writer_put_any(writer, record, fail);
}
