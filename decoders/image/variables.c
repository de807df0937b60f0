/* SPDX-License-Identifier: MIT */
/*
 * Variables by address, for trace of data accesses. They are few and asked for one by one, and are
 * kept apart from the functions, which everything that counts executions numbers.
 */
#include "image/variables.h"

#include "base/buf.h"
#include "base/search.h"
#include "image/demangle.h"
#include "image/image_parts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int tl_variables_add(struct tl_image *image, const struct tl_part_symbol *symbol)
{
    if (tl_grow(&image->variables, &image->cap_variables, image->n_variables + 1,
                sizeof *image->variables) < 0)
        return TL_NOMEM;
    image->variables[image->n_variables++] = *symbol;
    return TL_OK;
}

/* Of several at one address the one with the best name is last, and is found. */
static int by_address(const void *a, const void *b)
{
    const struct tl_part_symbol *const x = a, *const y = b;
    if (x->offset != y->offset)
        return x->offset < y->offset ? -1 : 1;
    return x->rank != y->rank ? y->rank - x->rank : strcmp(y->name, x->name);
}

void tl_variables_sort(struct tl_image *image)
{
    if (image->n_variables > 1)
        qsort(image->variables, image->n_variables, sizeof *image->variables, by_address);
}

struct tl_types *tl_image_types(struct tl_image *image)
{
    return &image->types;
}

const char *tl_image_keep_text(void *image, const char *text)
{
    return tl_image_keep(image, text, strlen(text) + 1);
}

bool tl_image_has_vectors(const struct tl_image *image)
{
    return image->n_vectors > 0;
}

/* The variable that covers an address; NULL: none. */
static const struct tl_part_symbol *variable_at(const struct tl_image *image, uint64_t address)
{
    const size_t begun =
        image ? tl_count_upto(TL_KEYS(image->variables, offset), image->n_variables, address) : 0;
    const struct tl_part_symbol *const v = begun > 0 ? &image->variables[begun - 1] : NULL;
    return v && address - v->offset < v->size ? v : NULL;
}

size_t tl_image_variables_named(const struct tl_image *image, const char *name,
                                struct tl_image_range *out, size_t cap)
{
    char demangled[TL_DEMANGLED];
    size_t n = 0;
    for (size_t i = 0; image && i < image->n_variables; i++) {
        const struct tl_part_symbol *const v = &image->variables[i];
        if (strcmp(v->name, name) != 0 &&
            !(tl_demangle(v->name, demangled) && strcmp(demangled, name) == 0))
            continue;
        if (n++ < cap)
            out[n - 1] = (struct tl_image_range){v->offset, v->offset + (v->size ? v->size : 1)};
    }
    return n;
}

/* A pointer is followed by the function that it points to. */
static void put_value(const struct tl_image *image, uint32_t type,
                      const struct tl_image_access *access, char *out, size_t room)
{
    char text[80];
    const struct tl_type *const of = &image->types.types[type];
    if (!tl_types_value(&image->types, type, access->value, access->size, text, sizeof text))
        return;
    const int64_t symbol = of->kind == TL_TYPE_POINTER
                               ? tl_image_symbol_index(image, access->value & ~UINT64_C(1))
                               : -1;
    snprintf(out, room, TL_VARIABLE_VALUE "%s%s%s%s" TL_VARIABLE_TYPE "%s)", text,
             symbol < 0 ? "" : " <", symbol < 0 ? "" : image->symbols.v[symbol].name,
             symbol < 0 ? "" : ">", of->name);
}

bool tl_image_variable_text(const struct tl_image *image, const struct tl_image_access *access,
                            char *out, size_t size)
{
    char demangled[TL_DEMANGLED], path[128], rest[24] = "";
    uint64_t left;
    const struct tl_part_symbol *const v = variable_at(image, access->address);
    if (!v)
        return false;
    const uint32_t type =
        tl_types_find(&image->types, tl_types_of(&image->types, v->offset),
                      access->address - v->offset, access->size, path, sizeof path, &left);
    const char *const name = tl_demangle(v->name, demangled) ? demangled : v->name;
    if (left > 0)
        snprintf(rest, sizeof rest, "+%llu", (unsigned long long)left);
    const int n = snprintf(out, size, "%s%s%s", name, path, rest);
    if (type > 0 && left == 0 && n >= 0 && (size_t)n < size)
        put_value(image, type, access, out + n, size - (size_t)n);
    return true;
}
