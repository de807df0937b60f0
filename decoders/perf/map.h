/* SPDX-License-Identifier: MIT */
/*
 * Maps numbers to indices: a hash table with open addressing that only grows. The hash spreads any
 * regular keys evenly. Header only; all zero is empty; not thread-safe.
 */
#ifndef TL_PERF_MAP_H
#define TL_PERF_MAP_H

#include "base/state.h"

#include <stddef.h>
#include <stdlib.h>

struct tl_perf_map {
    struct tl_perf_slot {
        uint64_t key;
        uint32_t value; /* index + 1; 0: free */
    } * v;
    size_t n, cap; /* capacity; 0 or a power of two */
};

static inline void tl_perf_map_fini(struct tl_perf_map *m)
{
    free(m->v);
    *m = (struct tl_perf_map){0};
}

static inline struct tl_perf_slot *tl_perf_map_slot(const struct tl_perf_map *m, uint64_t key)
{
    uint64_t h = key * 0x9e3779b97f4a7c15;
    h ^= h >> 32;
    h *= 0xd6e8feb86659fd93;
    h ^= h >> 29;
    size_t i = (size_t)h & (m->cap - 1);
    while (m->v[i].value && m->v[i].key != key)
        i = (i + 1) & (m->cap - 1);
    return &m->v[i];
}

/* Returns -1 if the key is not present. */
static inline int64_t tl_perf_map_get(const struct tl_perf_map *m, uint64_t key)
{
    return m->cap ? (int64_t)tl_perf_map_slot(m, key)->value - 1 : -1;
}

/* Set or replace a key's index (< 2^32 - 1). Returns TL_NOMEM. */
TL_MUST_USE static inline int tl_perf_map_set(struct tl_perf_map *m, uint64_t key, size_t index)
{
    if (m->n * 2 >= m->cap) {
        struct tl_perf_map grown = {.cap = m->cap ? m->cap * 2 : 64};
        grown.v = calloc(grown.cap, sizeof *grown.v);
        if (!grown.v)
            return TL_NOMEM;
        for (size_t i = 0; i < m->cap; i++)
            if (m->v[i].value)
                *tl_perf_map_slot(&grown, m->v[i].key) = m->v[i];
        grown.n = m->n;
        free(m->v);
        *m = grown;
    }
    struct tl_perf_slot *const slot = tl_perf_map_slot(m, key);
    m->n += slot->value == 0;
    *slot = (struct tl_perf_slot){key, (uint32_t)index + 1};
    return TL_OK;
}

/* Save or restore; indices must be below `most`. */
static inline void tl_perf_map_state(struct tl_perf_map *m, struct tl_state *s, size_t most)
{
    uint64_t key = 0;
    uint32_t value = 0;
    size_t n = m->n;
    tl_state_size(s, &n, SIZE_MAX);
    for (size_t i = 0; tl_state_loads(s) && i < n && s->rc >= 0; i++) {
        tl_state_u64(s, &key);
        tl_state_u32(s, &value);
        tl_state_check(s, value < most);
        if (s->rc >= 0)
            tl_state_fail(s, tl_perf_map_set(m, key, value));
    }
    for (size_t i = 0; !tl_state_loads(s) && i < m->cap; i++)
        if (m->v[i].value) {
            value = m->v[i].value - 1;
            tl_state_u64(s, &m->v[i].key);
            tl_state_u32(s, &value);
        }
}

#endif
