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

bool tl_image_variable_name(const struct tl_image *image, uint64_t address, char *out, size_t size)
{
    char demangled[TL_DEMANGLED];
    const size_t begun =
        image ? tl_count_upto(TL_KEYS(image->variables, offset), image->n_variables, address) : 0;
    const struct tl_part_symbol *const v = begun > 0 ? &image->variables[begun - 1] : NULL;
    if (!v || address - v->offset >= v->size)
        return false;
    const uint64_t offset = address - v->offset;
    const char *const name = tl_demangle(v->name, demangled) ? demangled : v->name;
    if (offset)
        snprintf(out, size, "%s+%llu", name, (unsigned long long)offset);
    else
        snprintf(out, size, "%s", name);
    return true;
}
