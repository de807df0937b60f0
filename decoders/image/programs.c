/* SPDX-License-Identifier: MIT */
/*
 * Which program a function is of, and names that tell functions of several programs apart. Whether
 * a name is in several is found out once, when the image is complete, so that a function has the
 * same name in all answers, and most have just their own.
 */
#include "base/buf.h"
#include "base/hash.h"
#include "base/spelling.h"
#include "image/image_parts.h"
#include "image/names.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int tl_image_set_program(struct tl_image *image, const char *name)
{
    struct tl_programs *const programs = &image->programs;
    programs->now = 0;
    if (!name || !*name)
        return TL_OK;
    for (size_t i = programs->n; i-- > 0 && programs->now == 0;)
        programs->now = strcmp(programs->names[i], name) == 0 ? (uint32_t)i + 1 : 0;
    if (programs->now)
        return TL_OK;
    if (tl_grow(&programs->names, &programs->cap, programs->n + 1, sizeof *programs->names) < 0)
        return TL_NOMEM;
    const char *const kept = tl_image_keep(image, name, strlen(name) + 1);
    if (!kept)
        return TL_NOMEM;
    programs->names[programs->n++] = kept;
    programs->now = (uint32_t)programs->n;
    return TL_OK;
}

void tl_programs_fini(struct tl_image *image)
{
    struct tl_programs *const programs = &image->programs;
    for (size_t i = 0; programs->told && i < image->symbols.n; i++)
        free(atomic_load(&programs->told[i]));
    free(programs->told);
    free(programs->names);
}

/* The names of an image: for each the first symbol that has it. */
struct table {
    struct entry {
        uint32_t symbol; /* + 1; 0: free */
        bool shared;     /* by several programs */
    } * p;
    size_t mask;
};

static struct entry *entry_of(const struct table *t, const struct tl_symbol *symbols,
                              const char *name)
{
    size_t at = tl_mix64(tl_fnv_text(name)) & t->mask;
    while (t->p[at].symbol && strcmp(symbols[t->p[at].symbol - 1].name, name) != 0)
        at = (at + 1) & t->mask;
    return &t->p[at];
}

int tl_programs_sort(struct tl_image *image)
{
    struct tl_symbol *const v = image->symbols.v;
    const size_t n = image->symbols.n;
    struct table t = {.mask = 1};
    bool any = false;
    if (image->programs.n < 2)
        return TL_OK;
    while (t.mask < 2 * n)
        t.mask *= 2;
    t.p = calloc(t.mask--, sizeof *t.p);
    if (!t.p)
        return TL_NOMEM;
    for (size_t i = 0; i < n; i++) {
        struct entry *const e = entry_of(&t, v, v[i].name);
        if (e->symbol)
            any |= e->shared |= v[e->symbol - 1].program != v[i].program;
        else
            e->symbol = (uint32_t)i + 1;
    }
    for (size_t i = 0; any && i < n; i++)
        v[i].shared = v[i].program && entry_of(&t, v, v[i].name)->shared;
    free(t.p);
    image->programs.told = any ? calloc(n, sizeof *image->programs.told) : NULL;
    return any && !image->programs.told ? TL_NOMEM : TL_OK;
}

const char *tl_image_symbol_program(const struct tl_image *image, size_t symbol)
{
    const uint32_t program = image->symbols.v[symbol].program;
    return program ? image->programs.names[program - 1] : "";
}

const char *tl_image_symbol_told(const struct tl_image *image, size_t symbol)
{
    const char *const name = tl_image_symbol_name(image, symbol);
    if (!image->symbols.v[symbol].shared || tl_spelling_is_mangled())
        return name;
    _Atomic(char *) *const kept = &image->programs.told[symbol];
    char *told = atomic_load_explicit(kept, memory_order_acquire), *none = NULL;
    if (told)
        return told;
    if (asprintf(&told, "%s [%s]", name, tl_image_symbol_program(image, symbol)) < 0)
        return name;
    if (atomic_compare_exchange_strong(kept, &none, told))
        return told;
    free(told); /* another thread was faster */
    return none;
}

uint32_t tl_program_of_name(const struct tl_image *image, const char *text, size_t *n)
{
    const char *const end = text + *n;
    for (size_t i = 0; i < image->programs.n; i++) {
        const size_t length = strlen(image->programs.names[i]);
        if (*n < length + 4)
            continue;
        const char *const at = end - length - 3; /* " [NAME]" */
        if (memcmp(at, " [", 2) != 0 || end[-1] != ']' ||
            memcmp(at + 2, image->programs.names[i], length) != 0)
            continue;
        *n -= length + 3;
        return (uint32_t)i + 1;
    }
    return 0;
}
