/* SPDX-License-Identifier: MIT */
/*
 * Walks are appended and older ones of the same page only marked, with a compaction when the limit
 * is exceeded twice over, so that each is moved a bounded number of times. A walk whose entries
 * have changed since is not reported: it would translate to where the page no longer is.
 */
#include "stf/walks.h"

#include "base/numbers.h"

#include <stdlib.h>

#define WALK_BYTES 22 /* bytes of a record without entries */
#define ENTRY      16 /* bytes of an entry: address and value */

struct walk {
    uint64_t key, va;
    size_t entries; /* offset in `bytes` */
    uint32_t page_size;
    uint8_t n;
    bool old; /* superseded by a later walk of the same page */
};

struct tl_stf_walks {
    struct walk *walks; /* in trace order */
    size_t n, cap;
    struct tl_buf bytes;
    struct tl_numbers pages; /* numbers of pages, by key */
    size_t *newest;          /* index in `walks`, by page number */
    size_t cap_newest;
    struct tl_numbers entries; /* numbers of entries, by address */
    uint64_t *values;          /* value in the last walk, by entry number */
    size_t cap_values;
};

int tl_stf_walks_new(struct tl_stf_walks **out)
{
    *out = calloc(1, sizeof **out);
    return *out ? TL_OK : TL_NOMEM;
}

void tl_stf_walks_free(struct tl_stf_walks *walks)
{
    if (!walks)
        return;
    free(walks->walks);
    tl_buf_fini(&walks->bytes);
    tl_numbers_fini(&walks->pages);
    free(walks->newest);
    tl_numbers_fini(&walks->entries);
    free(walks->values);
    free(walks);
}

/* Key of a page in an address space, which is identified by its root table. */
static uint64_t key_of(const struct tl_stf_record *record)
{
    const uint64_t size = record->walk.page_size ? record->walk.page_size : 1;
    const uint64_t root = record->walk.entries.n ? tl_stf_word(record->walk.entries, 0) >> 12 : 0;
    return record->walk.va / size * 0x9e3779b97f4a7c15u ^ size << 32 ^ root * 0xd6e8feb86659fd93u;
}

/* Get or assign the number of `key`; `*values` is grown for it. */
static int number_of(struct tl_numbers *numbers, uint64_t key, void *values, size_t *cap,
                     size_t size, uint32_t *out)
{
    *out = tl_numbers_find(numbers, key);
    if (*out != TL_NO_NUMBER)
        return TL_OK;
    *out = numbers->n;
    const int rc = tl_grow(values, cap, (size_t)numbers->n + 1, size);
    return rc < 0 ? rc : tl_numbers_add(numbers, key);
}

static int add(struct tl_stf_walks *w, const struct walk *walk, struct tl_bytes entries)
{
    uint32_t page = 0, number = 0;
    const uint32_t before = w->pages.n;
    int rc = number_of(&w->pages, walk->key, &w->newest, &w->cap_newest, sizeof *w->newest, &page);
    if (rc == TL_OK && page < before)
        w->walks[w->newest[page]].old = true;
    for (size_t i = 0; rc == TL_OK && i < walk->n; i++) {
        rc = number_of(&w->entries, tl_stf_word(entries, 2 * i), &w->values, &w->cap_values,
                       sizeof *w->values, &number);
        if (rc == TL_OK)
            w->values[number] = tl_stf_word(entries, 2 * i + 1);
    }
    if (rc == TL_OK)
        rc = tl_grow(&w->walks, &w->cap, w->n + 1, sizeof *w->walks);
    const size_t at = w->bytes.n;
    if (rc == TL_OK)
        rc = tl_buf_add(&w->bytes, entries.p, entries.n);
    if (rc < 0)
        return rc;
    w->walks[w->n] = *walk;
    w->walks[w->n].entries = at;
    w->newest[page] = w->n++;
    return TL_OK;
}

static size_t size_of(const struct walk *walk)
{
    return WALK_BYTES + (size_t)ENTRY * walk->n;
}

static struct tl_bytes entries_of(const struct tl_stf_walks *w, const struct walk *walk)
{
    return (struct tl_bytes){w->bytes.p + walk->entries, (size_t)ENTRY * walk->n};
}

/* Index of the first walk to keep, so that the total size stays within the limit. */
static size_t first_kept(const struct tl_stf_walks *w)
{
    size_t i = w->n, size = 0;
    while (i > 0) {
        size += w->walks[i - 1].old ? 0 : size_of(&w->walks[i - 1]);
        if (size > TL_STF_WALKS_MAX)
            break;
        i--;
    }
    return i;
}

/* Drop superseded walks and those beyond the limit. */
static int compact(struct tl_stf_walks *w)
{
    const struct tl_stf_walks before = *w;
    struct tl_stf_walks after = {0};
    int rc = TL_OK;
    for (size_t i = first_kept(w); i < w->n && rc == TL_OK; i++)
        if (!w->walks[i].old)
            rc = add(&after, &w->walks[i], entries_of(w, &w->walks[i]));
    struct tl_stf_walks *const gone = malloc(sizeof *gone);
    if (!gone)
        rc = TL_NOMEM;
    else
        *gone = rc == TL_OK ? before : after;
    if (rc == TL_OK)
        *w = after;
    tl_stf_walks_free(gone);
    return rc;
}

int tl_stf_walks_add(struct tl_stf_walks *walks, const struct tl_stf_record *record)
{
    struct tl_stf_walks *const w = walks;
    const struct walk walk = {.key = key_of(record),
                              .va = record->walk.va,
                              .page_size = record->walk.page_size,
                              .n = (uint8_t)(record->walk.entries.n / ENTRY)};
    const int rc = w->bytes.n + w->n * WALK_BYTES > 2 * TL_STF_WALKS_MAX ? compact(w) : TL_OK;
    return rc < 0 ? rc : add(w, &walk, record->walk.entries);
}

/* The part of a RISC-V table entry that determines translation: the page number, and whether it is
 * a leaf. Source: RISC-V privileged architecture, "Sv39". */
static uint64_t meaning(uint64_t entry)
{
    return entry >> 10 << 1 | ((entry & 0xa) != 0);
}

static bool holds(const struct tl_stf_walks *w, const struct walk *walk)
{
    const struct tl_bytes entries = entries_of(w, walk);
    for (size_t i = 0; i < walk->n; i++) {
        const uint32_t number = tl_numbers_find(&w->entries, tl_stf_word(entries, 2 * i));
        if (meaning(w->values[number]) != meaning(tl_stf_word(entries, 2 * i + 1)))
            return false;
    }
    return !walk->old;
}

int tl_stf_walks_next(const struct tl_stf_walks *walks, size_t *at, struct tl_stf_record *record)
{
    size_t i = *at > 0 ? *at : first_kept(walks);
    while (i < walks->n && !holds(walks, &walks->walks[i]))
        i++;
    *at = i + 1;
    if (i >= walks->n)
        return TL_EOF;
    const struct walk *const walk = &walks->walks[i];
    *record = (struct tl_stf_record){
        .type = TL_STF_PAGE_TABLE_WALK,
        .walk = {walk->va, 0, walk->page_size, entries_of(walks, walk)},
    };
    return TL_OK;
}

void tl_stf_walks_state(struct tl_stf_walks *w, struct tl_state *s)
{
    size_t n = w->n;
    tl_state_size(s, &n, s->in.n / 8);
    for (size_t i = 0; i < n && s->rc >= 0; i++) {
        struct walk walk = {0};
        uint8_t entries[UINT8_MAX * ENTRY] = {0};
        if (!tl_state_loads(s)) {
            walk = w->walks[i];
            memcpy(entries, w->bytes.p + walk.entries, (size_t)ENTRY * walk.n);
        }
        tl_state_u64(s, &walk.key);
        tl_state_u64(s, &walk.va);
        tl_state_u32(s, &walk.page_size);
        tl_state_u8(s, &walk.n, UINT8_MAX);
        tl_state_bytes(s, entries, (size_t)ENTRY * walk.n);
        if (tl_state_loads(s) && s->rc >= 0)
            tl_state_fail(s, add(w, &walk, (struct tl_bytes){entries, (size_t)ENTRY * walk.n}));
    }
}
