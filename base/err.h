/* SPDX-License-Identifier: MIT */
/*
 * Results and failures, uniform across the code base.
 *
 * A function that can fail returns int: >= 0 is its result, < 0 is one of enum tl_err. Details are
 * recorded once, where the error is detected, in a struct tl_fail that the caller may pass (NULL is
 * always allowed). TL_EOF and TL_AGAIN are ordinary results, not failures.
 */
#ifndef TL_BASE_ERR_H
#define TL_BASE_ERR_H

#include <stdbool.h>
#include <stdint.h>

/* Enclose declarations that C++ programs also use. */
#ifdef __cplusplus
#define TL_C_BEGIN extern "C" {
#define TL_C_END   }
#else
#define TL_C_BEGIN
#define TL_C_END
#endif

/* An array argument of at least `n` elements; C++ has no syntax for it. */
#ifdef __cplusplus
#define TL_AT_LEAST(n) n
#else
#define TL_AT_LEAST(n) static n
#endif

#define TL_MUST_USE     __attribute__((warn_unused_result))
#define TL_PRINTF(f, a) __attribute__((format(printf, f, a)))

TL_C_BEGIN

enum tl_err {
    TL_OK = 0,
    TL_BAD = -1,         /* the input is malformed */
    TL_NOMEM = -2,       /* out of memory */
    TL_IO = -3,          /* the operating system reported an error, see tl_fail.sys_errno */
    TL_EOF = -4,         /* orderly end */
    TL_AGAIN = -5,       /* nothing now, call again later */
    TL_NOTFOUND = -6,    /* no such object */
    TL_EXISTS = -7,      /* exists already, with different contents */
    TL_UNSUPPORTED = -8, /* well-formed, but not supported */
    TL_LIMIT = -9,       /* larger than a documented limit */
    TL_USAGE = -10,      /* invalid arguments */
    TL_NOSPACE = -11,    /* the disk is full or nearly so */
    TL_DENIED = -12,     /* not allowed */
    TL_CANCELLED = -13,  /* cancelled by the caller */
    TL_UNREACHABLE = -14 /* the peer cannot be reached or disconnected */
};

#define TL_NO_OFFSET UINT64_MAX

/* Description of a failure, filled in where it is detected. Contains no pointers. */
struct tl_fail {
    enum tl_err code;
    int sys_errno;   /* errno, 0 if not applicable */
    uint64_t offset; /* byte offset in the input, TL_NO_OFFSET if not applicable */
    char text[224];  /* what is wrong and what to do; one line without a newline */
};

/*
 * Fill `fail` (may be NULL) and return `code`, so that a caller can write
 * `return tl_fail_at(fail, TL_BAD, offset, "…");`.
 */
int tl_fail_at(struct tl_fail *fail, enum tl_err code, uint64_t offset, const char *format, ...)
    TL_PRINTF(4, 5);

/* The same without an offset; sets sys_errno to errno if code is TL_IO or TL_NOSPACE. */
int tl_fail_set(struct tl_fail *fail, enum tl_err code, const char *format, ...) TL_PRINTF(3, 4);

/* Short lower-case name of a code, e.g. "bad input". Static storage. */
const char *tl_err_name(int code);

TL_C_END

#endif
