/* SPDX-License-Identifier: MIT */
/*
 * Indexes the compiled-in descriptors by file and symbol with a small parser of the wire format.
 * Clients ask for the descriptors of protoc, which protobuf-c does not keep, and get them as bytes.
 */
#include "rpc/reflection.h"

#include "base/buf.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Generated from proto/ at build time. */
extern const unsigned char tl_descriptors[];
extern const size_t tl_descriptors_n;

/* Field numbers in descriptor.proto. */
enum {
    SET_FILE = 1,
    FILE_NAME = 1,
    FILE_PACKAGE = 2,
    FILE_IMPORT = 3,
    FILE_MESSAGE = 4,
    FILE_ENUM = 5,
    FILE_SERVICE = 6,
    ANY_NAME = 1,
    MESSAGE_FIELD = 2,
    MESSAGE_NESTED = 3,
    MESSAGE_ENUM = 4,
    MESSAGE_ONEOF = 8,
    ENUM_VALUE = 2,
    SERVICE_METHOD = 2
};

enum kind { KIND_OTHER, KIND_MESSAGE, KIND_SERVICE };

struct symbol {
    char *name;
    int file;
    enum kind kind;
};

struct file {
    struct tl_bytes bytes;
    char *name;
};

struct tl_reflection {
    struct file *files;
    size_t n_files, cap_files;
    struct symbol *symbols;
    size_t n_symbols, cap_symbols;
};

/* ---- the wire format -------------------------------------------------------------------- */

struct field {
    uint32_t number;
    struct tl_bytes bytes; /* of a length-delimited one */
};

static bool take_varint(struct tl_bytes *in, uint64_t *out)
{
    *out = 0;
    for (unsigned shift = 0; in->n && shift < 64; shift += 7) {
        const uint8_t b = *in->p++;
        in->n--;
        *out |= (uint64_t)(b & 127) << shift;
        if (b < 128)
            return true;
    }
    return false;
}

static bool skip(struct tl_bytes *in, size_t n)
{
    if (n > in->n)
        return false;
    in->p += n;
    in->n -= n;
    return true;
}

/* The next length-delimited field; others are skipped. False at the end. */
static bool next_field(struct tl_bytes *in, struct field *out)
{
    uint64_t tag;
    uint64_t n;
    while (in->n && take_varint(in, &tag)) {
        out->number = (uint32_t)(tag >> 3);
        switch (tag & 7) {
        case 0:
            if (!take_varint(in, &n))
                return false;
            break;
        case 1:
            if (!skip(in, 8))
                return false;
            break;
        case 5:
            if (!skip(in, 4))
                return false;
            break;
        case 2:
            if (!take_varint(in, &n) || n > in->n)
                return false;
            out->bytes = (struct tl_bytes){in->p, n};
            return skip(in, n);
        default:
            return false;
        }
    }
    return false;
}

static struct tl_bytes find_field(struct tl_bytes in, uint32_t number)
{
    struct field f;
    while (next_field(&in, &f))
        if (f.number == number)
            return f.bytes;
    return (struct tl_bytes){0};
}

/* ---- symbols ---------------------------------------------------------------------------- */

static char *join(const char *scope, struct tl_bytes name)
{
    const size_t n = strlen(scope) + name.n + 2;
    char *const out = malloc(n);
    if (out)
        snprintf(out, n, "%s%s%.*s", scope, *scope ? "." : "", (int)name.n, (const char *)name.p);
    return out;
}

/* Returns the full name, owned by the table. NULL: out of memory. */
static const char *add_symbol(struct tl_reflection *r, const char *scope, struct tl_bytes body,
                              enum kind kind)
{
    if (tl_grow(&r->symbols, &r->cap_symbols, r->n_symbols + 1, sizeof *r->symbols) < 0)
        return NULL;
    char *const name = join(scope, find_field(body, ANY_NAME));
    if (name)
        r->symbols[r->n_symbols++] = (struct symbol){name, (int)r->n_files - 1, kind};
    return name;
}

static int add_children(struct tl_reflection *r, const char *scope, struct tl_bytes body,
                        uint32_t number)
{
    struct field f;
    while (next_field(&body, &f))
        if (f.number == number && !add_symbol(r, scope, f.bytes, KIND_OTHER))
            return TL_NOMEM;
    return TL_OK;
}

static int add_enum(struct tl_reflection *r, const char *scope, struct tl_bytes body)
{
    if (!add_symbol(r, scope, body, KIND_OTHER))
        return TL_NOMEM;
    return add_children(r, scope, body,
                        ENUM_VALUE); /* values are in the scope of their enum's parent */
}

static int add_message(struct tl_reflection *r, const char *scope, struct tl_bytes body)
{
    const char *const name = add_symbol(r, scope, body, KIND_MESSAGE);
    int rc = name ? add_children(r, name, body, MESSAGE_FIELD) : TL_NOMEM;
    if (rc == TL_OK)
        rc = add_children(r, name, body, MESSAGE_ONEOF);
    struct field f;
    while (rc == TL_OK && next_field(&body, &f)) {
        if (f.number == MESSAGE_NESTED)
            rc = add_message(r, name, f.bytes);
        else if (f.number == MESSAGE_ENUM)
            rc = add_enum(r, name, f.bytes);
    }
    return rc;
}

static int add_service(struct tl_reflection *r, const char *scope, struct tl_bytes body)
{
    const char *const name = add_symbol(r, scope, body, KIND_SERVICE);
    return name ? add_children(r, name, body, SERVICE_METHOD) : TL_NOMEM;
}

static int add_file(struct tl_reflection *r, struct tl_bytes body)
{
    if (tl_grow(&r->files, &r->cap_files, r->n_files + 1, sizeof *r->files) < 0)
        return TL_NOMEM;
    char *const name = join("", find_field(body, FILE_NAME));
    char *const package = join("", find_field(body, FILE_PACKAGE));
    int rc = name && package ? TL_OK : TL_NOMEM;
    if (name)
        r->files[r->n_files++] = (struct file){body, name};
    struct field f;
    while (rc == TL_OK && next_field(&body, &f)) {
        if (f.number == FILE_MESSAGE)
            rc = add_message(r, package, f.bytes);
        else if (f.number == FILE_ENUM)
            rc = add_enum(r, package, f.bytes);
        else if (f.number == FILE_SERVICE)
            rc = add_service(r, package, f.bytes);
    }
    free(package);
    return rc;
}

int tl_reflection_new(struct tl_reflection **out, struct tl_fail *fail)
{
    struct tl_reflection *const r = calloc(1, sizeof *r);
    struct tl_bytes set = {tl_descriptors, tl_descriptors_n};
    struct field f;
    int rc = r ? TL_OK : TL_NOMEM;
    while (rc == TL_OK && next_field(&set, &f))
        if (f.number == SET_FILE)
            rc = add_file(r, f.bytes);
    if (rc < 0)
        tl_reflection_free(r);
    else
        *out = r;
    return rc;
}

void tl_reflection_free(struct tl_reflection *r)
{
    if (!r)
        return;
    for (size_t i = 0; i < r->n_files; i++)
        free(r->files[i].name);
    for (size_t i = 0; i < r->n_symbols; i++)
        free(r->symbols[i].name);
    free(r->files);
    free(r->symbols);
    free(r);
}

/* ---- look-ups --------------------------------------------------------------------------- */

static int find_file(const struct tl_reflection *r, const char *name, size_t n)
{
    for (size_t i = 0; i < r->n_files; i++)
        if (strlen(r->files[i].name) == n && !memcmp(r->files[i].name, name, n))
            return (int)i;
    return -1;
}

int tl_reflection_file(const struct tl_reflection *r, const char *name)
{
    return find_file(r, name, strlen(name));
}

static const struct symbol *find_symbol(const struct tl_reflection *r, const char *name)
{
    for (size_t i = 0; i < r->n_symbols; i++)
        if (!strcmp(r->symbols[i].name, name))
            return &r->symbols[i];
    return NULL;
}

int tl_reflection_symbol(const struct tl_reflection *r, const char *name)
{
    const struct symbol *const symbol = find_symbol(r, name);
    return symbol ? symbol->file : -1;
}

bool tl_reflection_is_message(const struct tl_reflection *r, const char *name)
{
    const struct symbol *const symbol = find_symbol(r, name);
    return symbol && symbol->kind == KIND_MESSAGE;
}

static bool listed(const int *list, size_t n, int file)
{
    for (size_t i = 0; i < n; i++)
        if (list[i] == file)
            return true;
    return false;
}

size_t tl_reflection_imports(const struct tl_reflection *r, int file, int *out, size_t max)
{
    size_t n = 0;
    if (max)
        out[n++] = file;
    for (size_t done = 0; done < n; done++) {
        struct tl_bytes body = r->files[out[done]].bytes;
        struct field f;
        while (n < max && next_field(&body, &f)) {
            if (f.number != FILE_IMPORT)
                continue;
            const int import = find_file(r, (const char *)f.bytes.p, f.bytes.n);
            if (import >= 0 && !listed(out, n, import))
                out[n++] = import;
        }
    }
    return n;
}

struct tl_bytes tl_reflection_bytes(const struct tl_reflection *r, int file)
{
    return r->files[file].bytes;
}

const char *tl_reflection_service(const struct tl_reflection *r, size_t i)
{
    for (size_t k = 0; k < r->n_symbols; k++)
        if (r->symbols[k].kind == KIND_SERVICE && i-- == 0)
            return r->symbols[k].name;
    return NULL;
}
