/* SPDX-License-Identifier: MIT */
#include "base/buf.h"
#include "image/image_parts.h"

#include <stdlib.h>

#define NESTING 8 /* how far back a symbol that covers an address is looked for */

int tl_symbols_add(struct tl_symbols *symbols, uint64_t address, uint64_t size, const char *name)
{
    if (tl_grow(&symbols->v, &symbols->cap, symbols->n + 1, sizeof *symbols->v) < 0)
        return TL_NOMEM;
    symbols->v[symbols->n++] = (struct tl_symbol){.address = address, .size = size, .name = name};
    return TL_OK;
}

static int by_address(const void *a, const void *b)
{
    const struct tl_symbol *x = a, *y = b;
    if (x->address != y->address)
        return x->address < y->address ? -1 : 1;
    if ((x->size == 0) != (y->size == 0)) /* one that tells its size is the real function */
        return x->size == 0 ? 1 : -1;
    return strcmp(x->name, y->name); /* only to be the same on every run */
}

void tl_symbols_sort(struct tl_symbols *symbols)
{
    if (symbols->n == 0)
        return;
    qsort(symbols->v, symbols->n, sizeof *symbols->v, by_address);
    size_t kept = 1;
    for (size_t i = 1; i < symbols->n; i++)
        if (symbols->v[i].address != symbols->v[kept - 1].address)
            symbols->v[kept++] = symbols->v[i];
    symbols->n = kept;
    for (size_t i = 0; i < kept; i++) {
        struct tl_symbol *s = &symbols->v[i];
        if (s->size > UINT64_MAX - s->address)
            s->size = UINT64_MAX - s->address;
        if (s->size == 0)
            s->size = i + 1 < kept ? s[1].address - s->address : 1;
    }
}

int64_t tl_image_symbol_index(const struct tl_image *image, uint64_t address)
{
    const struct tl_symbol *v = image->symbols.v;
    size_t lo = 0, hi = image->symbols.n;
    while (lo < hi) {
        const size_t mid = lo + (hi - lo) / 2;
        if (v[mid].address <= address)
            lo = mid + 1;
        else
            hi = mid;
    }
    for (size_t back = 1; back <= NESTING && back <= lo; back++)
        if (address - v[lo - back].address < v[lo - back].size)
            return (int64_t)(lo - back);
    return -1;
}

const struct tl_symbol *tl_image_symbol_at(const struct tl_image *image, uint64_t address)
{
    const int64_t i = tl_image_symbol_index(image, address);
    return i < 0 ? NULL : &image->symbols.v[i];
}

const struct tl_symbol *tl_image_symbols(const struct tl_image *image, size_t *n)
{
    *n = image->symbols.n;
    return image->symbols.v;
}
