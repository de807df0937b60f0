/* SPDX-License-Identifier: MIT */
/*
 * Writes arguments into messages by their descriptors. What a field may be is known from its type,
 * so that a path needs a table instead of a parser, and refuses what is wrong like all others.
 */
#include "rpc/webargs.h"

#include "base/timearg.h"
#include "rpc/rpcint.h"
#include "json/messagejson.h"

#include <stdio.h>
#include <string.h>

/* ---- fields ---------------------------------------------------------------------------------- */

const ProtobufCFieldDescriptor *tl_web_field(const ProtobufCMessageDescriptor *kind,
                                             const char *path, char **message)
{
    char name[TL_FIELD_NAME];
    for (;;) {
        const size_t n = strcspn(path, ".");
        snprintf(name, sizeof name, "%.*s", (int)n, path);
        const ProtobufCFieldDescriptor *const field =
            protobuf_c_message_descriptor_get_field_by_name(kind, name);
        if (!field || !path[n])
            return field;
        kind = field->descriptor;
        *message = *message ? *(char **)(*message + field->offset) : NULL;
        path += n + 1;
    }
}

/* The field's word, in any enum. */
static int take_word(const ProtobufCFieldDescriptor *field, const char *name, const char *text,
                     int *out, struct tl_fail *fail)
{
    const ProtobufCEnumDescriptor *const kind = field->descriptor;
    char word[TL_FIELD_NAME], known[128] = "";
    for (unsigned i = 0; i < kind->n_values; i++) {
        if (!strcmp(text, tl_messagejson_word(kind, &kind->values[i], word))) {
            *out = kind->values[i].value;
            return TL_OK;
        }
        const size_t n = strlen(known);
        snprintf(known + n, sizeof known - n, "%s%s",
                 i == 0                    ? ""
                 : i + 1 == kind->n_values ? " or "
                                           : ", ",
                 word);
    }
    return tl_fail_set(fail, TL_USAGE, "%s=%.20s; it is %s", name, text, known);
}

static int take_number(const ProtobufCFieldDescriptor *field, const char *name, const char *text,
                       void *member, struct tl_fail *fail)
{
    uint64_t n;
    const int rc = tl_http_parse_number(text, name, &n, fail);
    if (rc < 0)
        return rc;
    if (field->type == PROTOBUF_C_TYPE_UINT64)
        *(uint64_t *)member = n;
    else if (field->type == PROTOBUF_C_TYPE_UINT32)
        *(uint32_t *)member = n < UINT32_MAX ? (uint32_t)n : UINT32_MAX;
    else
        *(protobuf_c_boolean *)member = n != 0;
    return TL_OK;
}

static int take_field(const ProtobufCFieldDescriptor *field, const char *name, const char *text,
                      char *message, struct tl_fail *fail)
{
    void *const member = message + field->offset;
    uint32_t *const chosen = (uint32_t *)(message + field->quantifier_offset);
    if (field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF) {
        if (*chosen) /* the first one counts */
            return TL_OK;
        *chosen = field->id;
    }
    switch (field->type) {
    case PROTOBUF_C_TYPE_ENUM:
        return take_word(field, name, text, member, fail);
    case PROTOBUF_C_TYPE_STRING:
        *(char **)member = (char *)(uintptr_t)text; /* only read */
        return TL_OK;
    default:
        return take_number(field, name, text, member, fail);
    }
}

/* ---- ranges and places ----------------------------------------------------------------------- */

/* A range, in the unit of the argument `unit`, also called `axis`. */
struct span {
    enum tl_range_unit unit;
    uint64_t from, to; /* UINT64_MAX: the end */
};

static int take_unit(const struct tl_http_request *request, enum tl_range_unit *out,
                     struct tl_fail *fail)
{
    static const char *const names[] = {"insn", "time", "byte", "ns"};
    const char *const axis = tl_http_query(request, "axis"),
                      *const unit = tl_http_query(request, "unit"),
                      *const text = unit ? unit : axis;
    *out = TL_UNIT_INSN;
    if (!text)
        return TL_OK;
    for (unsigned i = 0; i < sizeof names / sizeof *names; i++) {
        if (!strcmp(text, names[i])) {
            *out = (enum tl_range_unit)i;
            return TL_OK;
        }
    }
    return tl_fail_set(fail, TL_USAGE, "%s=%.20s; it is insn, time, ns or byte",
                       unit ? "unit" : "axis", text);
}

/* Ends of a range of time. */
static int take_times(const struct tl_http_request *request, struct span *span,
                      struct tl_fail *fail)
{
    const char *const from = tl_http_query(request, "from");
    const char *const to = tl_http_query(request, "to");
    struct tl_time_range range;
    char length[64];
    /* The '+' of a length, unless it was escaped, has become a blank. */
    snprintf(length, sizeof length, "+%s", to && *to == ' ' ? to + 1 : "");
    if (tl_time_ends_parse(from, to && *to == ' ' ? length : to, &range) < 0)
        return tl_fail_set(fail, TL_USAGE, "from=%.40s, to=%.40s is not " TL_TIME_RANGE_EXPECTED,
                           from ? from : "", to ? to : "");
    span->unit = range.ns ? TL_UNIT_NS : TL_UNIT_TIME;
    span->from = range.from;
    span->to = range.to;
    return TL_OK;
}

static int take_span(const struct tl_http_request *request, struct span *span, struct tl_fail *fail)
{
    const struct tl_http_arg args[] = {
        {"from", TL_HTTP_U64, &span->from}, {"to", TL_HTTP_U64, &span->to}, {0}};
    *span = (struct span){.to = UINT64_MAX};
    const int rc = take_unit(request, &span->unit, fail);
    if (rc < 0)
        return rc;
    return span->unit == TL_UNIT_TIME ? take_times(request, span, fail)
                                      : tl_http_args(request, args, fail);
}

/* The same as positions of the path's stream. */
static int to_insns(const struct tl_http_request *request, struct span *span, struct tl_fail *fail)
{
    uint64_t *const ends[] = {&span->from, &span->to};
    int rc = TL_OK;
    for (size_t i = 0; i < 2 && rc >= 0 && span->unit != TL_UNIT_INSN; i++) {
        struct tl_position at;
        if (*ends[i] == UINT64_MAX)
            continue;
        rc = tl_lake_locate(tl_web_lake(request), request->part[0], request->part[1], span->unit,
                            *ends[i], &at, fail);
        *ends[i] = rc < 0 ? 0 : at.insn;
    }
    return rc;
}

int tl_web_place(const struct tl_http_request *request, const char *name, enum tl_range_unit *unit,
                 uint64_t *at, struct tl_fail *fail)
{
    const char *const text = tl_http_query(request, name);
    struct tl_time_arg time;
    if (!text || *unit != TL_UNIT_TIME)
        return tl_http_args(request, (const struct tl_http_arg[]){{name, TL_HTTP_U64, at}, {0}},
                            fail);
    if (tl_time_parse(text, &time) < 0)
        return tl_fail_set(fail, TL_USAGE, "%s=%.40s; it is " TL_TIME_EXPECTED, name, text);
    if (time.ns)
        *unit = TL_UNIT_NS;
    *at = time.value;
    return TL_OK;
}

/* ---- a request ------------------------------------------------------------------------------- */

struct filling {
    const struct tl_http_request *request;
    char *message;
    struct span span; /* of the arguments */
    size_t part;      /* next of the path */
    struct tl_fail *fail;
};

/* The unit's field, which goes by two names. NULL: the message has none. */
static int *unit_of(const struct filling *f)
{
    const ProtobufCMessageDescriptor *const kind = f->request->route->message;
    char *message = f->message;
    const ProtobufCFieldDescriptor *field = tl_web_field(kind, "unit", &message);
    field = field ? field : tl_web_field(kind, "axis", &message);
    return field ? (int *)(message + field->offset) : NULL;
}

/* What the unit is needed for, before fields are filled. */
static int take_common(struct filling *f)
{
    bool unit = false, range = false;
    for (const struct tl_route_arg *arg = f->request->route->takes; arg->name; arg++) {
        unit |= arg->how == TL_ARG_UNIT;
        range |= arg->how == TL_ARG_FROM;
    }
    if (!unit)
        return TL_OK;
    if (!range)
        return take_unit(f->request, &f->span.unit, f->fail);
    const int rc = take_span(f->request, &f->span, f->fail);
    return rc >= 0 && !unit_of(f) && f->request->n_parts > 1
               ? to_insns(f->request, &f->span, f->fail)
               : rc;
}

static int take_argument(struct filling *f, const struct tl_route_arg *arg)
{
    const bool of_path = *arg->name == '{';
    char name[TL_FIELD_NAME], *message = f->message;
    snprintf(name, sizeof name, "%.*s", (int)strcspn(arg->name + of_path, "}"),
             arg->name + of_path);
    const char *const text =
        of_path ? f->request->part[f->part++] : tl_http_query(f->request, name);
    if (arg->how == TL_ARG_OWN || arg->how == TL_ARG_UNIT)
        return TL_OK;
    const ProtobufCFieldDescriptor *const field =
        tl_web_field(f->request->route->message, arg->field ? arg->field : name, &message);
    void *const member = message + field->offset;
    switch (arg->how) {
    case TL_ARG_FROM:
        *(uint64_t *)member = f->span.from;
        return TL_OK;
    case TL_ARG_TO:
        *(uint64_t *)member = f->span.to == UINT64_MAX ? 0 : f->span.to;
        return TL_OK;
    case TL_ARG_TIME:
        f->span.unit = TL_UNIT_TIME;
        return tl_web_place(f->request, name, &f->span.unit, member, f->fail);
    case TL_ARG_PLACE:
        return tl_web_place(f->request, name, &f->span.unit, member, f->fail);
    case TL_ARG_GIVEN:
    case TL_ARG_MISSING:
        *(protobuf_c_boolean *)member = !text == (arg->how == TL_ARG_MISSING);
        return TL_OK;
    case TL_ARG_YES:
        *(protobuf_c_boolean *)member = text && strcmp(text, "no") != 0;
        return TL_OK;
    default:
        return text ? take_field(field, name, text, message, f->fail) : TL_OK;
    }
}

int tl_web_fill(const struct tl_http_request *request, void *message, struct tl_fail *fail)
{
    struct filling f = {.request = request, .message = message, .fail = fail};
    int rc = take_common(&f);
    for (const struct tl_route_arg *arg = request->route->takes; rc >= 0 && arg->name; arg++)
        rc = take_argument(&f, arg);
    int *const unit = unit_of(&f);
    if (unit && f.span.unit != TL_UNIT_INSN)
        *unit = (int)f.span.unit; /* the enums have the same values */
    return rc;
}
