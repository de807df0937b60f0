/* SPDX-License-Identifier: MIT */
/*
 * Variables by address, for trace of data accesses. They are few and asked for one by one, and are
 * kept apart from the functions, which everything that counts executions numbers.
 */
#include "image/variables.h"

#include "base/buf.h"
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
    size_t low = 0, high = image ? image->n_variables : 0;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (image->variables[middle].offset <= address)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == 0 || address - image->variables[low - 1].offset >= image->variables[low - 1].size)
        return false;
    const struct tl_part_symbol *const v = &image->variables[low - 1];
    const uint64_t offset = address - v->offset;
    const char *const name = tl_demangle(v->name, demangled) ? demangled : v->name;
    if (offset)
        snprintf(out, size, "%s+%llu", name, (unsigned long long)offset);
    else
        snprintf(out, size, "%s", name);
    return true;
}
