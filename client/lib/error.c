/* SPDX-License-Identifier: MIT */
/*
 * Maps gRPC statuses and internal errors to the results of the public header, with a text. All
 * calls report through here, so that a failure has the same result whichever call meets it.
 */
#include "error.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static_assert((int)TRACELAKE_BAD == (int)TL_BAD && (int)TRACELAKE_UNREACHABLE == TL_UNREACHABLE,
              "the public results are the internal ones");

int tl_client_fail(struct tracelake_error *error, int code, const char *format, ...)
{
    if (!error)
        return code;
    error->code = code;
    error->grpc_status = 0;
    va_list args;
    va_start(args, format);
    vsnprintf(error->text, sizeof error->text, format, args);
    va_end(args);
    return code;
}

struct status {
    const char *name;
    int code;
};

/* Source: gRPC, "Status codes and their use in gRPC". */
static const struct status statuses[] = {
    {"ok", TRACELAKE_OK},
    {"cancelled", TRACELAKE_UNREACHABLE},
    {"unknown error", TRACELAKE_IO},
    {"invalid argument", TRACELAKE_BAD},
    {"deadline exceeded", TRACELAKE_TIMEOUT},
    {"not found", TRACELAKE_NOTFOUND},
    {"already exists", TRACELAKE_EXISTS},
    {"permission denied", TRACELAKE_DENIED},
    {"resource exhausted", TRACELAKE_NOSPACE},
    {"failed precondition", TRACELAKE_DENIED},
    {"aborted", TRACELAKE_EXISTS},
    {"out of range", TRACELAKE_BAD},
    {"not implemented by the server", TRACELAKE_UNSUPPORTED},
    {"internal error", TRACELAKE_IO},
    {"unavailable", TRACELAKE_UNREACHABLE},
    {"data loss", TRACELAKE_IO},
    {"not authenticated", TRACELAKE_DENIED},
};

int tl_client_refused(struct tracelake_error *error, int status, const char *message,
                      const char *method)
{
    const int known = (int)(sizeof statuses / sizeof statuses[0]);
    const struct status *s = &statuses[status > 0 && status < known ? status : 2];
    if (message && *message)
        tl_client_fail(error, s->code, "%s", message);
    else
        tl_client_fail(error, s->code, "the server answered to %s: %s", method, s->name);
    if (error)
        error->grpc_status = status;
    return s->code;
}

int tl_client_lost(struct tracelake_error *error, const char *server, bool tls)
{
    enum { UNAVAILABLE = 14 };
    const int result =
        tl_client_fail(error, TRACELAKE_UNREACHABLE,
                       "%s ended the connection before it said anything; %sit may be "
                       "ending: try again, or see its journal",
                       server, tls ? "" : "if that is its TLS port, write https://; else ");
    if (error)
        error->grpc_status = UNAVAILABLE;
    return result;
}

int tl_client_fail_from(struct tracelake_error *error, int code, const struct tl_fail *fail)
{
    if (fail->offset != TL_NO_OFFSET)
        return tl_client_fail(error, code, "offset 0x%llx: %s", (unsigned long long)fail->offset,
                              fail->text);
    return tl_client_fail(error, code, "%s", fail->text[0] ? fail->text : tl_err_name(code));
}

const char *tracelake_result_name(int result)
{
    static const char *const names[] = {
        "ok",          "bad data",     "out of memory", "input/output error",
        "end",         "nothing yet",  "not found",     "exists",
        "unsupported", "over a limit", "bad argument",  "disk full",
        "denied",      "cancelled",    "unreachable",   "timed out",
    };
    const int n = (int)(sizeof names / sizeof names[0]);
    return result <= 0 && result > -n ? names[-result] : "unknown result";
}

const char *tracelake_version(void)
{
    return TL_VERSION;
}

const char *tracelake_state_name(enum tracelake_state state)
{
    switch (state) {
    case TRACELAKE_LIVE:
        return "live";
    case TRACELAKE_DECODING:
        return "decoding";
    case TRACELAKE_SEALED:
        return "sealed";
    case TRACELAKE_FAILED:
        return "failed";
    default:
        return "unknown";
    }
}
