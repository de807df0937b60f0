/* SPDX-License-Identifier: MIT */
/*
 * Keeps executed addresses as bits in pages, and turns them into edges of code. Setting a few bits
 * per block is cheap, where a list of ranges would have to be searched and joined.
 */
#include "shard/codeset.h"

#include "base/bytes.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define PAGE_SHIFT (12 - TL_CODE_SHIFT) /* of bits */
#define PAGE_BITS  (1u << PAGE_SHIFT)
#define ADDRESSES  (UINT64_MAX >> TL_CODE_SHIFT)
#define BITS_MAX   (UINT64_C(1) << 19) /* longer than any block */
#define FEW        56 /* number of bits that fit into 8 bytes from any bit of the first */

struct tl_code_page {
    uint8_t bits[PAGE_BITS / 8 + 8]; /* padding for set_few() */
};

void tl_code_set_fini(struct tl_code_set *set)
{
    tl_numbers_fini(&set->numbers);
    free(set->pages);
    *set = (struct tl_code_set){0};
}

void tl_code_set_reset(struct tl_code_set *set)
{
    tl_numbers_reset(&set->numbers);
    set->full = false;
}

/* The page with this address >> 12; NULL: no capacity for it. */
static struct tl_code_page *page_of(struct tl_code_set *set, uint64_t address)
{
    uint32_t i = tl_numbers_find(&set->numbers, address);
    if (i == TL_NO_NUMBER) {
        i = set->numbers.n;
        if (i == TL_CODE_PAGES || tl_grow(&set->pages, &set->cap, i + 1, sizeof(*set->pages)) < 0 ||
            tl_numbers_add(&set->numbers, address) < 0)
            return NULL;
        set->pages[i] = (struct tl_code_page){0};
    }
    return &set->pages[i];
}

/* Set `n` bits, at most FEW, from `first` on, across words. */
static inline void set_few(uint8_t *bits, uint32_t first, uint32_t n)
{
    uint8_t *const p = bits + first / 8;
    tl_put_le64(p, tl_le64(p) | UINT64_MAX >> (64 - n) << first % 8);
}

/* Set the bits from `first` to `last`. */
static void set_bits(uint8_t *bits, uint32_t first, uint32_t last)
{
    for (; last - first >= FEW; first += FEW)
        set_few(bits, first, FEW);
    set_few(bits, first, last - first + 1);
}

static __attribute__((noinline)) void add_many(struct tl_code_set *set, uint64_t begin,
                                               uint64_t last)
{
    if (((last - begin) & ADDRESSES) > BITS_MAX)
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
        at = (number + 1) << PAGE_SHIFT & ADDRESSES;
    }
}

void tl_code_set_add(struct tl_code_set *set, uint64_t pc, uint64_t size)
{
    const uint64_t begin = pc >> TL_CODE_SHIFT, last = (pc + size - 1) >> TL_CODE_SHIFT;
    const uint64_t number = begin >> PAGE_SHIFT;
    const uint32_t i = tl_numbers_find(&set->numbers, number);
    /* Nearly all ranges are short, and in a single known page. */
    if (i != TL_NO_NUMBER && last - begin < FEW && last >> PAGE_SHIFT == number)
        set_few(set->pages[i].bits, begin % PAGE_BITS, (uint32_t)(last - begin) + 1);
    else
        add_many(set, begin, last);
}

void tl_code_set_state(struct tl_code_set *set, struct tl_state *s)
{
    size_t n = set->numbers.n;
    tl_state_size(s, &n, TL_CODE_PAGES);
    for (size_t i = 0; i < n && s->rc >= 0; i++) {
        uint64_t number = tl_state_loads(s) ? 0 : set->numbers.keys[i];
        tl_state_u64(s, &number);
        if (tl_state_loads(s) && s->rc >= 0 && !page_of(set, number))
            tl_state_fail(s, TL_NOMEM);
        tl_state_check(s, set->numbers.n == i + 1); /* otherwise there is a duplicate */
        if (s->rc >= 0)
            tl_state_bytes(s, set->pages[i].bits, PAGE_BITS / 8);
    }
    tl_state_bool(s, &set->full);
}

static int by_value(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* Append the edges of a page that begins at `begin` to `out`; `*before` is the bit before it.
 * Returns the new end. */
static uint64_t *page_edges(const struct tl_code_page *page, uint64_t begin, uint64_t *before,
                            uint64_t *out)
{
    uint64_t carry = *before;
    for (uint32_t i = 0; i < PAGE_BITS; i += 64) {
        const uint64_t bits = tl_le64(page->bits + i / 8);
        for (uint64_t turns = bits ^ (bits << 1 | carry); turns != 0; turns &= turns - 1)
            *out++ = begin + i + (unsigned)__builtin_ctzll(turns);
        carry = bits >> 63;
    }
    *before = carry;
    return out;
}

/* Merge ranges across gaps of less than `gap` units. */
static size_t close_gaps(uint64_t *edges, size_t n, uint64_t gap)
{
    size_t kept = 1; /* the first begin; an end is kept together with the next begin */
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
    uint64_t order[TL_CODE_PAGES]; /* address >> 12 of each page, and its number */
    const size_t pages = set->numbers.n;
    for (size_t i = 0; i < pages; i++)
        order[i] = set->numbers.keys[i] << 12 | i;
    if (pages > 0)
        qsort(order, pages, sizeof(*order), by_value);
    const size_t first = *n;
    uint64_t before = 0, end = 0;
    for (size_t i = 0; i < pages; i++) {
        const uint64_t begin = order[i] >> 12 << PAGE_SHIFT;
        if (tl_grow(edges, cap, *n + PAGE_BITS + 2, sizeof(**edges)) < 0)
            return TL_NOMEM;
        if (before && begin != end) {
            (*edges)[(*n)++] = end;
            before = 0;
        }
        *n = (size_t)(page_edges(&set->pages[order[i] & 4095], begin, &before, *edges + *n) -
                      *edges);
        end = begin + PAGE_BITS;
    }
    if (before)
        (*edges)[(*n)++] = end;
    for (uint64_t gap = 4; *n - first > TL_CODE_EDGES; gap *= 2)
        *n = first + close_gaps(*edges + first, *n - first, gap);
    return TL_OK;
}
