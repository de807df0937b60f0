/* SPDX-License-Identifier: MIT */
/*
 * Named values by a table: options of the command line, lines of a configuration file, parts of
 * "ADDR:PORT,format=di,rig=a". Stateless, thread-safe.
 */
#ifndef TL_BASE_ARGS_H
#define TL_BASE_ARGS_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum tl_arg_kind {
    TL_ARG_FLAG,  /* bool; as text yes, true, 1 or no, false, 0 */
    TL_ARG_TEXT,  /* const char * */
    TL_ARG_U64,   /* uint64_t: decimal or 0x… */
    TL_ARG_SIZE,  /* uint64_t: as U64, with K, M or G behind it (powers of 1024) */
    TL_ARG_COUNT, /* uint64_t: as U64, with K, M or G behind it (powers of 1000) */
    TL_ARG_LIST,  /* struct tl_arg_list: may be given more than once */
    TL_ARG_RANGE, /* struct tl_arg_range: A:B, A: or :B */
};

#define TL_ARG_LIST_MAX 1024

struct tl_arg_list {
    const char *v[TL_ARG_LIST_MAX]; /* borrowed */
    size_t n;
};

struct tl_arg_range {
    uint64_t from;
    uint64_t to; /* UINT64_MAX where left out */
    bool given;
};

struct tl_arg {
    const char *name;
    char letter; /* short form on the command line, 0: none */
    enum tl_arg_kind kind;
    void *value; /* of the kind's type; keeps what it holds where the argument is absent */
};

/* The argument of this name in a table that ends with an entry without one, or NULL. */
const struct tl_arg *tl_arg_find(const struct tl_arg *args, const char *name, size_t n);
/* Set its value from a text, which texts and lists borrow. NULL, or what the text must be:
 * "a number". */
TL_MUST_USE const char *tl_arg_set(const struct tl_arg *arg, const char *text);

/* "A:B", "A:" or ":B" of such numbers. TL_USAGE. */
TL_MUST_USE int tl_arg_range_parse(const char *text, struct tl_arg_range *out);
/* A number of 64 bits, decimal or 0x…, and nothing else in the text. TL_USAGE. */
TL_MUST_USE int tl_number_parse(const char *text, uint64_t *out);
/* An address in memory, of 64 bits, in `n` characters: hexadecimal, with or without 0x, as flow
 * text has it. TL_USAGE. */
TL_MUST_USE int tl_pc_parse(const char *text, size_t n, uint64_t *out);

#endif
