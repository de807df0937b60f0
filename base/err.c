/* SPDX-License-Identifier: MIT */
/*
 * Failures keep errno as it was, since formatting may change it and callers may still report it.
 * Names are looked up within bounds, so that a positive result or an unknown code has one too.
 */
#include "base/err.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

static int fill(struct tl_fail *fail, enum tl_err code, uint64_t offset, const char *format,
                va_list args)
{
    const int saved = errno;
    if (fail) {
        fail->code = code;
        fail->sys_errno = code == TL_IO || code == TL_NOSPACE ? saved : 0;
        fail->offset = offset;
        vsnprintf(fail->text, sizeof fail->text, format, args);
    }
    errno = saved;
    return code;
}

int tl_fail_at(struct tl_fail *fail, enum tl_err code, uint64_t offset, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    const int rc = fill(fail, code, offset, format, args);
    va_end(args);
    return rc;
}

int tl_fail_set(struct tl_fail *fail, enum tl_err code, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    const int rc = fill(fail, code, TL_NO_OFFSET, format, args);
    va_end(args);
    return rc;
}

const char *tl_err_name(int code)
{
    static const char *const names[] = {
        "ok",          "bad input",     "out of memory", "i/o error",     "end",
        "again",       "not found",     "exists",        "not supported", "limit exceeded",
        "bad request", "no space left", "not allowed",   "cancelled",     "unreachable",
    };
    const unsigned i = code > 0 ? 0 : (unsigned)-code;
    return i < sizeof names / sizeof names[0] ? names[i] : "unknown error";
}
