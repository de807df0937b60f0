/* SPDX-License-Identifier: MIT */
/*
 * Types of variables, as far as a value in memory is shown by them: "buf[3].state = IDLE (enum
 * mode)". A graph of nodes by index; a type may contain itself by way of a pointer only, whose
 * target is of no interest.
 *
 * Built by one thread (debug/variable_types.h), then read-only. Texts are borrowed, and must live
 * as long.
 */
#ifndef TL_IMAGE_TYPES_H
#define TL_IMAGE_TYPES_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum tl_type_kind {
    TL_TYPE_OTHER, /* shown as it is in memory */
    TL_TYPE_SIGNED,
    TL_TYPE_UNSIGNED,
    TL_TYPE_FLOAT,
    TL_TYPE_BOOL,
    TL_TYPE_CHAR,
    TL_TYPE_POINTER,
    TL_TYPE_ENUM,
    TL_TYPE_ARRAY,
    TL_TYPE_STRUCT /* or union, class */
};

struct tl_type {
    uint8_t kind;      /* enum tl_type_kind */
    uint64_t size;     /* bytes */
    const char *name;  /* as in a declaration; "": none */
    uint32_t element;  /* ARRAY: its type */
    uint32_t first, n; /* STRUCT: members; ENUM: enumerators */
};

struct tl_type_member {
    const char *name; /* "": a struct or union without one */
    uint64_t offset;
    uint32_t type;
};

struct tl_type_enumerator {
    int64_t value;
    const char *name;
};

struct tl_typed_variable {
    uint64_t address;
    uint32_t type;
};

struct tl_types {
    struct tl_type *types; /* [0] is OTHER, of no size */
    size_t n_types, cap_types;
    struct tl_type_member *members;
    size_t n_members, cap_members;
    struct tl_type_enumerator *enumerators;
    size_t n_enumerators, cap_enumerators;
    struct tl_typed_variable *variables; /* by address after tl_types_sort() */
    size_t n_variables, cap_variables;
};

void tl_types_fini(struct tl_types *types);

/* Append; return the index, or TL_NOMEM, or TL_LIMIT: there are too many. Members and enumerators
 * of one type must be side by side. */
TL_MUST_USE int64_t tl_types_add(struct tl_types *types, const struct tl_type *type);
TL_MUST_USE int64_t tl_types_add_member(struct tl_types *types,
                                        const struct tl_type_member *member);
TL_MUST_USE int64_t tl_types_add_enumerator(struct tl_types *types, int64_t value,
                                            const char *name);
TL_MUST_USE int64_t tl_types_add_variable(struct tl_types *types, uint64_t address, uint32_t type);
void tl_types_sort(struct tl_types *types);

/* Type of the variable at an address; 0: unknown. */
uint32_t tl_types_of(const struct tl_types *types, uint64_t address);

/*
 * Find what is `offset` bytes into a type, as wide as an access of `size` bytes if possible: write
 * its path to `path` (e.g. "[3].state", truncated if there is no room), and return its type; 0:
 * there is none. `*rest`: bytes of `offset` that are left within it.
 */
uint32_t tl_types_find(const struct tl_types *types, uint32_t type, uint64_t offset, unsigned size,
                       char *path, size_t room, uint64_t *rest);

/* Write a value of a type, "-2", "IDLE", "1.5", to `out`. False: it is not shown otherwise than in
 * memory, or `size` is not its size. */
bool tl_types_value(const struct tl_types *types, uint32_t type, uint64_t value, unsigned size,
                    char *out, size_t room);

#endif
