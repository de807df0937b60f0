/* SPDX-License-Identifier: MIT */
#include "store/codeset.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define PAGE_SHIFT (12 - TL_CODE_SHIFT) /* of bits */
#define PAGE_BITS  (1u << PAGE_SHIFT)
#define BYTES_MAX  (UINT64_C(1) << 20) /* no block is as long */

struct tl_code_page {
    uint64_t number; /* address >> 12 */
    uint64_t bits[PAGE_BITS / 64];
};

void tl_code_set_fini(struct tl_code_set *set)
{
    free(set->pages);
    *set = (struct tl_code_set){0};
}

void tl_code_set_reset(struct tl_code_set *set)
{
    if (set->n > 0)
        memset(set->slots, 0, sizeof(set->slots));
    set->n = set->last = 0;
    set->full = false;
}

/* The page of this number; NULL: there is no room for it. */
static inline struct tl_code_page *page_of(struct tl_code_set *set, uint64_t number)
{
    const uint32_t mask = 2 * TL_CODE_PAGES - 1;
    if (set->last < set->n && set->pages[set->last].number == number)
        return &set->pages[set->last];
    uint32_t i = (uint32_t)(number * 0x9e3779b97f4a7c15u >> 40) & mask;
    for (; set->slots[i] != 0; i = (i + 1) & mask)
        if (set->pages[set->slots[i] - 1].number == number)
            return &set->pages[set->last = set->slots[i] - 1u];
    if (set->n == TL_CODE_PAGES ||
        tl_grow(&set->pages, &set->cap, set->n + 1, sizeof(*set->pages)) < 0)
        return NULL;
    set->pages[set->n] = (struct tl_code_page){.number = number};
    set->last = set->n++;
    set->slots[i] = (uint16_t)set->n;
    return &set->pages[set->last];
}

/* Set the bits from `first` to `last`. */
static void set_bits(uint64_t *bits, uint32_t first, uint32_t last)
{
    const uint64_t head = UINT64_MAX << first % 64, tail = UINT64_MAX >> (63 - last % 64);
    uint32_t i = first / 64;
    if (i == last / 64) {
        bits[i] |= head & tail;
        return;
    }
    bits[i] |= head;
    while (++i < last / 64)
        bits[i] = UINT64_MAX;
    bits[i] |= tail;
}

void tl_code_set_add(struct tl_code_set *set, uint64_t pc, uint64_t size)
{
    const uint64_t begin = pc >> TL_CODE_SHIFT, last = (pc + size - 1) >> TL_CODE_SHIFT;
    if (size > BYTES_MAX)
        set->full = true;
    for (uint64_t at = begin; !set->full;) {
        const uint64_t number = at >> PAGE_SHIFT;
        struct tl_code_page *const page = page_of(set, number);
        const bool ends = number == last >> PAGE_SHIFT;
        if (!page)
            set->full = true;
        else
            set_bits(page->bits, at % PAGE_BITS, ends ? last % PAGE_BITS : PAGE_BITS - 1);
        if (ends)
            return;
        at = (number + 1) << PAGE_SHIFT & UINT64_MAX >> TL_CODE_SHIFT;
    }
}

static int by_value(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* Edges of a page, the bit in front of which is `*before`. Returns how many. */
static size_t page_edges(const struct tl_code_page *page, uint64_t *before, uint64_t *out)
{
    size_t n = 0;
    for (uint32_t i = 0; i < PAGE_BITS / 64; i++) {
        const uint64_t bits = page->bits[i];
        for (uint64_t turns = bits ^ (bits << 1 | *before); turns != 0; turns &= turns - 1)
            out[n++] = (page->number << PAGE_SHIFT) + 64 * i + (unsigned)__builtin_ctzll(turns);
        *before = bits >> 63;
    }
    return n;
}

/* As if the code in gaps of less than `gap` units had run, too. */
static size_t close_gaps(uint64_t *edges, size_t n, uint64_t gap)
{
    size_t kept = 1; /* the first begin; an end is kept with the begin behind it */
    for (size_t i = 1; i + 1 < n; i += 2)
        if (edges[i + 1] - edges[i] >= gap) {
            edges[kept++] = edges[i];
            edges[kept++] = edges[i + 1];
        }
    edges[kept++] = edges[n - 1];
    return kept;
}

int tl_code_set_edges(const struct tl_code_set *set, uint64_t **edges, size_t *n, size_t *cap)
{
    static_assert(TL_CODE_PAGES <= 1 << 12, "its index fits below a page's number");
    uint64_t order[TL_CODE_PAGES]; /* number of each page, and its index */
    for (size_t i = 0; i < set->n; i++)
        order[i] = set->pages[i].number << 12 | i;
    qsort(order, set->n, sizeof(*order), by_value);
    const size_t begin = *n;
    uint64_t before = 0, end = 0;
    for (size_t i = 0; i < set->n; i++) {
        const struct tl_code_page *const page = &set->pages[order[i] & 4095];
        if (tl_grow(edges, cap, *n + PAGE_BITS + 2, sizeof(**edges)) < 0)
            return TL_NOMEM;
        if (before && page->number << PAGE_SHIFT != end) {
            (*edges)[(*n)++] = end;
            before = 0;
        }
        *n += page_edges(page, &before, *edges + *n);
        end = (page->number + 1) << PAGE_SHIFT;
    }
    if (before)
        (*edges)[(*n)++] = end;
    for (uint64_t gap = 4; *n - begin > TL_CODE_EDGES; gap *= 2)
        *n = begin + close_gaps(*edges + begin, *n - begin, gap);
    return TL_OK;
}
