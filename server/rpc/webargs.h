/* SPDX-License-Identifier: MIT */
/*
 * Requests over HTTP become messages, as over RPC: a route's table says which field each part of
 * the path and each argument fills (struct tl_route_arg, net/http.h), and the field's type what it
 * may be. Stateless, thread-safe.
 */
#ifndef TL_RPC_WEBARGS_H
#define TL_RPC_WEBARGS_H

#include "lake_ranges.h"
#include "net/http.h"

/* How an argument fills its field, where that does not follow from the field's type. */
enum tl_web_how {
    TL_ARG_FIELD,   /* a number, 0 or 1, text, or an enum's word; of a oneof, its member is set */
    TL_ARG_UNIT,    /* the unit of what follows; instructions if it is missing */
    TL_ARG_FROM,    /* begin of a range in this unit, 0 if it is missing */
    TL_ARG_TO,      /* its end, 0 if it is missing; times may have units, and be a length */
    TL_ARG_PLACE,   /* a place in this unit */
    TL_ARG_TIME,    /* a place in time, whatever the unit */
    TL_ARG_GIVEN,   /* is it there? */
    TL_ARG_MISSING, /* is it not there? */
    TL_ARG_YES,     /* is it there, and not "no"? */
    TL_ARG_OWN,     /* none: the handler reads it */
};

/*
 * Fill a message of the route's kind from the request's path and arguments. Texts are borrowed from
 * the request. A range of a message without unit is converted to instructions of the stream.
 * TL_USAGE, described in `fail`, or what tl_lake_locate() returns.
 */
TL_MUST_USE int tl_web_fill(const struct tl_http_request *request, void *message,
                            struct tl_fail *fail);
/* A field by its name, or by a path of names, "other.begin"; `*message` becomes the message that
 * has it. NULL: there is none. */
const ProtobufCFieldDescriptor *tl_web_field(const ProtobufCMessageDescriptor *kind,
                                             const char *path, char **message);

/* The argument `name` in a unit, which a time's own unit replaces; `*at` is unchanged if it is
 * missing. TL_USAGE. */
TL_MUST_USE int tl_web_place(const struct tl_http_request *request, const char *name,
                             enum tl_range_unit *unit, uint64_t *at, struct tl_fail *fail);

#endif
