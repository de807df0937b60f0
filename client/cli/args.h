/* SPDX-License-Identifier: MIT */
/* Command line arguments by a table: long options in any order, mixed with positional ones. */
#ifndef TL_CLI_ARGS_H
#define TL_CLI_ARGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum tl_arg_kind {
    TL_ARG_FLAG,  /* bool */
    TL_ARG_TEXT,  /* const char * */
    TL_ARG_U64,   /* uint64_t: decimal or 0x… */
    TL_ARG_SIZE,  /* uint64_t: as U64, with K, M or G behind it (powers of 1024) */
    TL_ARG_LIST,  /* struct tl_arg_list: may be given more than once */
    TL_ARG_RANGE, /* struct tl_arg_range: A:B, A: or :B */
};

#define TL_ARG_LIST_MAX 256

struct tl_arg_list {
    const char *v[TL_ARG_LIST_MAX]; /* borrowed from argv */
    size_t n;
};

struct tl_arg_range {
    uint64_t from;
    uint64_t to; /* UINT64_MAX where left out */
    bool given;
};

struct tl_arg {
    const char *name; /* without the dashes */
    char letter;      /* short form, 0: none */
    enum tl_arg_kind kind;
    void *value; /* of the kind's type; keeps what it holds where the option is absent */
};

#define TL_ARGS_GO (-1)

/*
 * Parse argv[1…] of a command. `args` ends with an entry without a name; `--help` is known
 * everywhere. Positional arguments are moved behind the options: `*first` is the index of the
 * first. Returns TL_ARGS_GO, or the exit status to return at once (help printed, or a usage error
 * said). Text values are borrowed from argv.
 */
int tl_args_parse(int argc, char **argv, const struct tl_arg *args, int *first);

/* A number as TL_ARG_SIZE takes it. 0, or TL_USAGE. */
int tl_arg_size(const char *text, uint64_t *out);
/* A number as TL_ARG_U64 takes it. 0, or TL_USAGE. */
int tl_arg_u64(const char *text, uint64_t *out);

#endif
