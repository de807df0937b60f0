/* SPDX-License-Identifier: MIT */
/*
 * Symbols of the image by address: sorted once, one per address and space, others as aliases. A
 * lookup examines a bounded number of symbols before the address, because a file may nest any
 * number of them.
 */
#include "base/buf.h"
#include "base/search.h"
#include "image/demangle.h"
#include "image/image_parts.h"

#include <stdlib.h>

#define NESTING 8    /* number of symbols before an address that are checked for covering it */
#define FAR     4096 /* limit including symbols of other times */

int tl_symbols_add(struct tl_image *image, unsigned space, const struct tl_part_symbol *symbol)
{
    struct tl_symbols *const symbols = &image->symbols;
    if (image->span.from >= image->span.until)
        return TL_OK;
    if (symbols->n == UINT32_MAX ||
        tl_grow(&symbols->v, &symbols->cap, symbols->n + 1, sizeof *symbols->v) < 0)
        return TL_NOMEM;
    symbols->v[symbols->n++] = (struct tl_symbol){.address = symbol->offset,
                                                  .size = symbol->size,
                                                  .max_size = symbol->max_size,
                                                  .rank = symbol->rank,
                                                  .name = symbol->name,
                                                  .layer = (uint32_t)image->layer,
                                                  .file = (uint32_t)image->n_owned,
                                                  .space = (uint8_t)space,
                                                  .program = image->programs.now,
                                                  .span = image->span};
    return TL_OK;
}

static int order(uint64_t a, uint64_t b)
{
    return (a > b) - (a < b);
}

static int by_address(const void *a, const void *b)
{
    const struct tl_symbol *x = a, *y = b;
    int differ = order(x->address, y->address);
    differ = differ ? differ : order(x->layer, y->layer);
    differ = differ ? differ : order(x->span.from, y->span.from);
    differ = differ ? differ : order(x->span.until, y->span.until);
    differ = differ ? differ : order(y->file, x->file); /* the last one added takes precedence */
    differ = differ ? differ : order(x->rank, y->rank);
    /* Leading underscores are for names that are not meant for users. */
    differ = differ ? differ : order(strspn(x->name, "_"), strspn(y->name, "_"));
    return differ ? differ : strcmp(x->name, y->name); /* only to make the result deterministic */
}

static bool are_together(const struct tl_symbol *a, const struct tl_symbol *b)
{
    return a->address == b->address && a->layer == b->layer && a->span.from == b->span.from &&
           a->span.until == b->span.until;
}

static int add_alias(struct tl_symbols *symbols, const char *name, size_t symbol)
{
    if (tl_grow(&symbols->aliases, &symbols->cap_aliases, symbols->n_aliases + 1,
                sizeof *symbols->aliases) < 0)
        return TL_NOMEM;
    symbols->aliases[symbols->n_aliases++] = (struct tl_alias){name, (uint32_t)symbol};
    return TL_OK;
}

/* Keep one symbol per address, layer, period and space; the others become aliases. */
static int keep_one(struct tl_symbols *symbols)
{
    size_t kept = 0;
    unsigned taken = 0; /* spaces of the symbols at this address */
    for (size_t i = 0; i < symbols->n; i++) {
        struct tl_symbol s = symbols->v[i];
        struct tl_symbol *const last = kept ? &symbols->v[kept - 1] : NULL;
        const bool same = last && are_together(&s, last);
        s.space = (uint8_t)(same ? s.space & ~taken : s.space);
        taken = same ? taken | s.space : s.space;
        if (same && s.size == last->size && !strcmp(s.name, last->name))
            last->space |= s.space;
        else if (s.space)
            symbols->v[kept++] = s;
        else if (strcmp(s.name, last->name) != 0 && add_alias(symbols, s.name, kept - 1) < 0)
            return TL_NOMEM;
    }
    symbols->n = kept;
    return TL_OK;
}

/* A symbol without a size ends where the next symbol of the same time begins, or with its section.
 */
static void make_up_sizes(struct tl_image *image, const struct tl_layer *layer)
{
    for (size_t i = 0; i < layer->n_symbols; i++) {
        struct tl_symbol *const s = &image->symbols.v[layer->symbols[i]];
        for (size_t k = i + 1; s->size == 0 && k < layer->n_symbols && k - i < FAR; k++) {
            const struct tl_symbol *const after = &image->symbols.v[layer->symbols[k]];
            if (after->address > s->address && after->span.from == s->span.from &&
                after->span.until == s->span.until)
                s->size = after->address - s->address;
        }
        if (s->size == 0 || s->size > s->max_size)
            s->size = s->max_size;
        if (s->size > UINT64_MAX - s->address)
            s->size = UINT64_MAX - s->address;
    }
}

int tl_symbols_sort(struct tl_image *image)
{
    struct tl_symbols *const symbols = &image->symbols;
    if (symbols->n == 0)
        return TL_OK;
    qsort(symbols->v, symbols->n, sizeof *symbols->v, by_address);
    if (keep_one(symbols) < 0)
        return TL_NOMEM;
    bool mangled = false;
    for (size_t i = 0; i < symbols->n; i++) {
        image->layers[symbols->v[i].layer].n_symbols++;
        mangled |= tl_is_mangled(symbols->v[i].name);
    }
    symbols->demangled = mangled ? calloc(symbols->n, sizeof *symbols->demangled) : NULL;
    if (mangled && !symbols->demangled)
        return TL_NOMEM;
    for (size_t i = 0; i < image->n_layers; i++) {
        struct tl_layer *const layer = &image->layers[i];
        layer->symbols = layer->n_symbols ? calloc(layer->n_symbols, sizeof *layer->symbols) : NULL;
        if (layer->n_symbols && !layer->symbols)
            return TL_NOMEM;
        layer->n_symbols = 0;
    }
    for (size_t i = 0; i < symbols->n; i++) {
        struct tl_layer *const layer = &image->layers[symbols->v[i].layer];
        layer->symbols[layer->n_symbols++] = (uint32_t)i;
    }
    for (size_t i = 0; i < image->n_layers; i++)
        make_up_sizes(image, &image->layers[i]);
    return tl_programs_sort(image);
}

struct sought {
    const struct tl_symbol *symbols;
    uint64_t address;
};

static bool begins_upto(const void *number, const void *key)
{
    const struct sought *const k = key;
    return k->symbols[*(const uint32_t *)number].address <= k->address;
}

/* Find a symbol of `space` in one layer, in one version or (NULL) any. Among symbols at the same
 * address with different periods, the last one added takes precedence. */
static int64_t find(const struct tl_image *image, const struct tl_layer *layer,
                    const struct tl_version *version, unsigned space, uint64_t address)
{
    const struct tl_symbol *const v = image->symbols.v;
    int64_t found = -1;
    const struct sought sought = {v, address};
    const size_t begun = tl_count_before(layer->symbols, sizeof *layer->symbols, layer->n_symbols,
                                         begins_upto, &sought);
    for (size_t i = begun, looked = 0; i-- > 0 && looked < NESTING && begun - i <= FAR;) {
        const uint32_t k = layer->symbols[i];
        if (found >= 0 && v[k].address != v[found].address)
            break;
        if (version && !tl_version_has(version, v[k].span))
            continue;
        looked++;
        if (!(v[k].space & space) || address - v[k].address >= v[k].size)
            continue;
        if (found < 0 || (v[k].file > v[found].file && !are_together(&v[k], &v[found])))
            found = k;
    }
    return found;
}

uint64_t tl_image_symbol_view(const struct tl_image *image, size_t symbol,
                              struct tl_image_context *context)
{
    const struct tl_symbol *const s = &image->symbols.v[symbol];
    *context = image->layers[s->layer].context;
    return tl_image_view(image, context, s->span.from, NULL);
}

int64_t tl_image_symbol_index(const struct tl_image *image, uint64_t address)
{
    int64_t found = -1;
    for (size_t i = 0; found < 0 && i < image->n_layers; i++)
        found = find(image, &image->layers[i], NULL, TL_SPACE_ANY, address);
    return found;
}

bool tl_image_symbol_goes_on(const struct tl_image *image, uint32_t symbol, uint64_t address)
{
    const struct tl_symbols *const all = &image->symbols;
    if (symbol >= all->n || image->n_layers != 1)
        return all->n == 0;
    const struct tl_symbol *const s = &all->v[symbol];
    const bool begins = symbol == 0 || s[-1].address != s->address;
    return begins && address - s->address < s->size &&
           (symbol + 1 == all->n || (s[1].address != s->address && address < s[1].address));
}

const struct tl_symbol *tl_image_symbol_at(const struct tl_image *image, uint64_t address)
{
    const int64_t i = tl_image_symbol_index(image, address);
    return i < 0 ? NULL : &image->symbols.v[i];
}

int64_t tl_image_view_symbol(const struct tl_image *image, uint64_t view, unsigned space,
                             uint64_t address)
{
    const struct tl_version *versions[TL_BINDINGS];
    const unsigned n = image->symbols.n ? tl_view_versions(image, view, versions) : 0;
    int64_t found = -1;
    for (unsigned i = 0; found < 0 && i < n; i++) {
        const struct tl_layer *const layer = &image->layers[versions[i]->layer];
        found = find(image, layer, versions[i], space, address);
        /* Memory that covers unbound memory also hides its symbols. */
        if (i + 1 < n && tl_version_at(image, versions[i], space, address).n)
            break;
    }
    return found;
}

const struct tl_symbol *tl_image_symbols(const struct tl_image *image, size_t *n)
{
    *n = image->symbols.n;
    return image->symbols.v;
}
