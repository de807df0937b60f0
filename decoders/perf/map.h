/* SPDX-License-Identifier: MIT */
/*
 * Maps numbers to indices, by base/numbers.h: the index of a key is in an array, by the key's
 * number. It only grows. Header only; all zero is empty; not thread-safe.
 */
#ifndef TL_PERF_MAP_H
#define TL_PERF_MAP_H

#include "base/buf.h"
#include "base/numbers.h"
#include "base/state.h"

#include <stdlib.h>

struct tl_perf_map {
    struct tl_numbers keys;
    uint32_t *v; /* indices, by number of the key */
    size_t cap;
};

static inline void tl_perf_map_fini(struct tl_perf_map *m)
{
    tl_numbers_fini(&m->keys);
    free(m->v);
    *m = (struct tl_perf_map){0};
}

/* Returns -1 if the key is not present. */
static inline int64_t tl_perf_map_get(const struct tl_perf_map *m, uint64_t key)
{
    const uint32_t number = tl_numbers_find(&m->keys, key);
    return number == TL_NO_NUMBER ? -1 : (int64_t)m->v[number];
}

/* Set or replace a key's index (< 2^32). Returns TL_NOMEM. */
TL_MUST_USE static inline int tl_perf_map_set(struct tl_perf_map *m, uint64_t key, size_t index)
{
    uint32_t number = tl_numbers_find(&m->keys, key);
    if (number == TL_NO_NUMBER) {
        if (tl_grow(&m->v, &m->cap, m->keys.n + (size_t)1, sizeof *m->v) < 0 ||
            tl_numbers_add(&m->keys, key) < 0)
            return TL_NOMEM;
        number = m->keys.n - 1;
    }
    m->v[number] = (uint32_t)index;
    return TL_OK;
}

/* Bytes of memory: a slot takes four, and half as many keys eight, and their indices. */
static inline size_t tl_perf_map_memory(const struct tl_perf_map *m)
{
    return ((size_t)m->keys.mask + 1) * 8 + m->cap * sizeof *m->v;
}

/* Save or restore; indices must be below `most`. */
static inline void tl_perf_map_state(struct tl_perf_map *m, struct tl_state *s, size_t most)
{
    size_t n = m->keys.n;
    tl_state_size(s, &n, SIZE_MAX);
    for (size_t i = 0; i < n && s->rc >= 0; i++) {
        uint64_t key = tl_state_loads(s) ? 0 : m->keys.keys[i];
        uint32_t index = tl_state_loads(s) ? 0 : m->v[i];
        tl_state_u64(s, &key);
        tl_state_u32(s, &index);
        tl_state_check(s, index < most);
        if (tl_state_loads(s) && s->rc >= 0)
            tl_state_fail(s, tl_perf_map_set(m, key, index));
    }
}

#endif
