/* SPDX-License-Identifier: MIT */
#include "store/codeset.h"

#include "base/bytes.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define PAGE_SHIFT (12 - TL_CODE_SHIFT) /* of bits */
#define PAGE_BITS  (1u << PAGE_SHIFT)
#define SLOTS      (2 * TL_CODE_PAGES)
#define ADDRESSES  (UINT64_MAX >> TL_CODE_SHIFT)
#define BITS_MAX   (UINT64_C(1) << 19) /* no block is as long */
#define FEW        56 /* fit into 8 bytes, whichever bit of the first they begin with */

struct tl_code_page {
    uint64_t number;                 /* address >> 12 */
    uint8_t bits[PAGE_BITS / 8 + 8]; /* behind the last: none, but set_few() writes there */
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
    set->n = 0;
    set->full = false;
}

static inline uint32_t slot_of(uint64_t number)
{
    return (uint32_t)(number * 0x9e3779b97f4a7c15u >> 40) % SLOTS;
}

/* The page of this number; NULL: there is no room for it. */
static struct tl_code_page *page_of(struct tl_code_set *set, uint64_t number)
{
    uint32_t i = slot_of(number);
    for (; set->slots[i] != 0; i = (i + 1) % SLOTS)
        if (set->pages[set->slots[i] - 1].number == number)
            return &set->pages[set->slots[i] - 1];
    if (set->n == TL_CODE_PAGES ||
        tl_grow(&set->pages, &set->cap, set->n + 1, sizeof(*set->pages)) < 0)
        return NULL;
    set->pages[set->n] = (struct tl_code_page){.number = number};
    set->slots[i] = (uint16_t)++set->n;
    return &set->pages[set->n - 1];
}

/* Set `n` bits, at most FEW, from `first` on, wherever words end. */
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

/* Nearly all are short, in one page, and that is where it is looked for first: no jump here goes
 * now this way and now that. */
void tl_code_set_add(struct tl_code_set *set, uint64_t pc, uint64_t size)
{
    const uint64_t begin = pc >> TL_CODE_SHIFT, last = (pc + size - 1) >> TL_CODE_SHIFT;
    const uint64_t number = begin >> PAGE_SHIFT;
    const uint32_t i = set->slots[slot_of(number)];
    struct tl_code_page *const page = set->pages + i;
    if (i != 0 && page[-1].number == number && last - begin < FEW && last >> PAGE_SHIFT == number)
        set_few(page[-1].bits, begin % PAGE_BITS, (uint32_t)(last - begin) + 1);
    else
        add_many(set, begin, last);
}

void tl_code_set_state(struct tl_code_set *set, struct tl_state *s)
{
    size_t n = set->n;
    tl_state_size(s, &n, TL_CODE_PAGES);
    for (size_t i = 0; i < n && s->rc >= 0; i++) {
        uint64_t number = tl_state_loads(s) ? 0 : set->pages[i].number;
        tl_state_u64(s, &number);
        if (tl_state_loads(s) && s->rc >= 0 && !page_of(set, number))
            tl_state_fail(s, TL_NOMEM);
        tl_state_check(s, set->n == i + 1); /* else it came twice */
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

/* Edges of a page, the bit in front of which is `*before`, to `out`. Returns where they end. */
static uint64_t *page_edges(const struct tl_code_page *page, uint64_t *before, uint64_t *out)
{
    const uint64_t begin = page->number << PAGE_SHIFT;
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
        *n = (size_t)(page_edges(page, &before, *edges + *n) - *edges);
        end = (page->number + 1) << PAGE_SHIFT;
    }
    if (before)
        (*edges)[(*n)++] = end;
    for (uint64_t gap = 4; *n - begin > TL_CODE_EDGES; gap *= 2)
        *n = begin + close_gaps(*edges + begin, *n - begin, gap);
    return TL_OK;
}
