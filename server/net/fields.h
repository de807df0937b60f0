/* SPDX-License-Identifier: MIT */
/*
 * An ordered list of name and value pairs: header fields, query arguments, trailers. Names are
 * compared case-insensitively. Zero-initialised: empty and valid. Not thread-safe while being
 * filled; read-only afterwards.
 */
#ifndef TL_NET_FIELDS_H
#define TL_NET_FIELDS_H

#include "base/buf.h"

struct tl_field {
    uint32_t name; /* offset in `text`, NUL-terminated */
    uint32_t value;
    uint32_t name_n;
    uint32_t value_n;
};

struct tl_fields {
    struct tl_buf text;
    struct tl_field *at;
    size_t n;
    size_t cap;
};

void tl_fields_fini(struct tl_fields *fields);

/* Append a copy of arbitrary bytes. TL_NOMEM. */
TL_MUST_USE int tl_fields_add_n(struct tl_fields *fields, const char *name, size_t name_n,
                                const char *value, size_t value_n);
TL_MUST_USE int tl_fields_add(struct tl_fields *fields, const char *name, const char *value);
TL_MUST_USE int tl_fields_addf(struct tl_fields *fields, const char *name, const char *format, ...)
    TL_PRINTF(3, 4);

/* The first value with this name, or NULL. Borrowed until the list changes. */
const char *tl_fields_get(const struct tl_fields *fields, const char *name);

/* Name and value of the i-th field, borrowed until the list changes. */
static inline const char *tl_fields_name(const struct tl_fields *fields, size_t i)
{
    return (const char *)fields->text.p + fields->at[i].name;
}

static inline const char *tl_fields_value(const struct tl_fields *fields, size_t i)
{
    return (const char *)fields->text.p + fields->at[i].value;
}

/*
 * Does the comma-separated `list` contain `token` (lower case), with a q-value other than 0? `list`
 * may be NULL. For Accept, Accept-Encoding, grpc-accept-encoding.
 */
bool tl_list_has(const char *list, const char *token);

/* Does a request with these header fields want names of functions as in the files? Its field
 * `Tracelake-Names: mangled` says so. */
bool tl_names_mangled(const struct tl_fields *headers);

/*
 * Parse `n` bytes of a percent-encoded query string into name=value pairs. TL_BAD: an invalid
 * escape or a NUL. TL_LIMIT: more than 64 pairs.
 */
TL_MUST_USE int tl_query_parse(struct tl_fields *out, const char *text, size_t n);

/* Decode percent-encoding in place; `plus`: '+' is a space. Returns the length or TL_BAD. */
TL_MUST_USE int tl_percent_decode(char *text, size_t n, bool plus);

#endif
