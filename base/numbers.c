/* SPDX-License-Identifier: MIT */
/*
 * Slots hold numbers plus 1, so that zeroed memory is an empty table. Keys are in an array of their
 * own, in order of their numbers, so that growing does not change any number.
 */
#include "base/numbers.h"

#include <stdlib.h>
#include <string.h>

#define FIRST_SLOTS 64u

static void put(uint32_t *slots, uint32_t mask, uint64_t key, uint32_t number)
{
    uint32_t i = tl_numbers_slot(key, mask);
    while (slots[i] != 0)
        i = (i + 1) & mask;
    slots[i] = number + 1;
}

/* Double the slots and the key capacity. */
static int grow(struct tl_numbers *t)
{
    const size_t n = t->mask ? 2 * ((size_t)t->mask + 1) : FIRST_SLOTS;
    if (n > UINT32_MAX)
        return TL_NOMEM;
    uint64_t *const keys = realloc(t->keys, n / 2 * sizeof *keys);
    if (!keys)
        return TL_NOMEM;
    t->keys = keys;
    uint32_t *const slots = calloc(n, sizeof *slots);
    if (!slots)
        return TL_NOMEM;
    for (uint32_t i = 0; i < t->n; i++)
        put(slots, (uint32_t)n - 1, keys[i], i);
    free(t->slots);
    t->slots = slots;
    t->mask = (uint32_t)n - 1;
    return TL_OK;
}

int tl_numbers_add(struct tl_numbers *t, uint64_t key)
{
    if (2 * (size_t)t->n >= t->mask && grow(t) < 0)
        return TL_NOMEM;
    t->keys[t->n] = key;
    put(t->slots, t->mask, key, t->n++);
    return TL_OK;
}

void tl_numbers_reset(struct tl_numbers *t)
{
    if (t->n > 0)
        memset(t->slots, 0, ((size_t)t->mask + 1) * sizeof *t->slots);
    t->n = 0;
}

void tl_numbers_fini(struct tl_numbers *t)
{
    free(t->keys);
    free(t->slots);
    *t = (struct tl_numbers){0};
}
