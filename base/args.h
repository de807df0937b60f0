/* SPDX-License-Identifier: MIT */
/*
 * Table-driven parsing of named values: command-line options, configuration file lines, parts of
 * "ADDR:PORT,format=di,rig=a". Stateless, thread-safe.
 */
#ifndef TL_BASE_ARGS_H
#define TL_BASE_ARGS_H

#include "base/err.h"
#include "base/timearg.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum tl_arg_kind {
    TL_ARG_FLAG,  /* bool; as text: yes, true, 1 or no, false, 0 */
    TL_ARG_TEXT,  /* const char * */
    TL_ARG_U64,   /* uint64_t: decimal or 0x… */
    TL_ARG_SIZE,  /* uint64_t: as U64, with optional suffix K, M, G or T (powers of 1024) */
    TL_ARG_COUNT, /* uint64_t: as U64, with optional suffix K, M, G or T (powers of 1000) */
    TL_ARG_LIST,  /* struct tl_arg_list: may be given more than once */
    TL_ARG_RANGE, /* struct tl_arg_range: A:B, A: or :B, each as COUNT */
    TL_ARG_BYTES, /* the same, each as SIZE */
    TL_ARG_TIME,  /* struct tl_time_arg: timearg.h */
    TL_ARG_TIMES, /* struct tl_time_range */
};

#define TL_ARG_LIST_MAX 1024

struct tl_arg_list {
    const char *v[TL_ARG_LIST_MAX]; /* borrowed */
    size_t n;
};

struct tl_arg_range {
    uint64_t from;
    uint64_t to; /* UINT64_MAX if omitted */
    bool given;
};

struct tl_arg {
    const char *name;
    enum tl_arg_kind kind;
    void *value; /* of the kind's type; unchanged if the argument is absent */
};

/* Find the argument with this name in a table terminated by an entry without a name. NULL if there
 * is none. */
const struct tl_arg *tl_arg_find(const struct tl_arg *args, const char *name, size_t n);
/* Set the value from `text`, which TEXT and LIST values borrow. Returns NULL, or a description of
 * what is expected: "a number". */
TL_MUST_USE const char *tl_arg_set(const struct tl_arg *arg, const char *text);

/* Parse "A:B", "A:" or ":B"; numbers with an optional suffix K, M, G or T, powers of `thousand`.
 * Returns TL_USAGE. */
TL_MUST_USE int tl_arg_range_parse(const char *text, uint64_t thousand, struct tl_arg_range *out);
/* Parse a 64-bit number, decimal or 0x…, that makes up the whole text. Returns TL_USAGE. */
TL_MUST_USE int tl_number_parse(const char *text, uint64_t *out);
/* Parse a 64-bit address of `n` characters: hexadecimal with or without 0x, as in flow text.
 * Returns TL_USAGE. */
TL_MUST_USE int tl_pc_parse(const char *text, size_t n, uint64_t *out);

#endif
