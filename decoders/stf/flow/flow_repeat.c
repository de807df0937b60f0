/* SPDX-License-Identifier: MIT */
/*
 * Steps are looked up in direct-mapped tables without chains: an entry that was overwritten costs a
 * repeat, not time. A repeat that continues needs no lookup at all, which is what makes it cheaper
 * than writing its records.
 */
#include "stf/flow/flow_repeat.h"

#include <stdlib.h>

#define INLINE TL_COPY_INLINE

struct tl_stf_repeats *tl_stf_repeats_new(void)
{
    struct tl_stf_repeats *const r = calloc(1, sizeof *r);
    if (!r)
        return NULL;
    if (tl_grow(&r->keys, &r->cap_keys, 2, sizeof *r->keys) < 0 ||
        tl_grow(&r->at, &r->cap_at, 2, sizeof *r->at) < 0) {
        tl_stf_repeats_free(r);
        return NULL;
    }
    tl_stf_repeats_reset(r);
    return r;
}

void tl_stf_repeats_free(struct tl_stf_repeats *r)
{
    if (!r)
        return;
    free(r->keys);
    free(r->at);
    free(r->found);
    free(r);
}

/* Forget the steps. */
static void clear(struct tl_stf_repeats *r)
{
    memset(r->turns, 0, sizeof r->turns);
    memset(r->pairs, 0, sizeof r->pairs);
    memset(r->entries, 0, sizeof r->entries);
    r->keys[0] = r->at[0] = r->at[1] = 0;
    r->n = 1; /* 0 is no step */
    r->from = r->turn = r->others = 0;
}

void tl_stf_repeats_reset(struct tl_stf_repeats *r)
{
    if (!r)
        return;
    r->n_found = r->filled = 0;
    if (r->n > 1 || r->n == 0)
        clear(r);
}

/* Space for `more` steps. */
static INLINE int reserve(struct tl_stf_repeats *r, size_t more)
{
    /* One that separates, and the end of the last. */
    const size_t steps = r->n + more + 2, repeats = r->n_found + more + 1;
    if (steps <= r->cap_keys && steps <= r->cap_at && repeats <= r->cap_found)
        return TL_OK;
    return tl_grow(&r->keys, &r->cap_keys, steps, sizeof *r->keys) < 0 ||
                   tl_grow(&r->at, &r->cap_at, steps, sizeof *r->at) < 0 ||
                   tl_grow(&r->found, &r->cap_found, repeats, sizeof *r->found) < 0
               ? TL_NOMEM
               : TL_OK;
}

/* ---- blocks --------------------------------------------------------------------------------- */

static INLINE uint64_t mix(uint64_t a, uint64_t b)
{
    const unsigned __int128 product = (unsigned __int128)a * b;
    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

static uint64_t hash_bytes(uint64_t h, const uint8_t *p, size_t n)
{
    const uint64_t k0 = 0xa0761d6478bd642f, k1 = 0xe7037ed1a0b428db;
    uint8_t rest[16] = {0};
    h = mix(h ^ k0, n ^ k1);
    for (; n >= 16; n -= 16, p += 16)
        h = mix(tl_le64(p) ^ k0 ^ h, tl_le64(p + 8) ^ k1);
    memcpy(rest, p, n);
    h = mix(tl_le64(rest) ^ k0 ^ h, tl_le64(rest + 8) ^ k1);
    return h ^ h >> 29;
}

/* Hash of all that a block's records, and those of the step after it, depend on. */
static __attribute__((noinline)) uint64_t hash(const struct tl_block *b)
{
    const uint64_t sizes = (uint64_t)b->size << 32 | b->last_coded, how = b->plain << 1 | b->odd;
    return hash_bytes(b->pc ^ sizes * 0x9e3779b97f4a7c15u ^ how << 56, b->coded, b->coded_size) &
           ~(uint64_t)TL_STEP_TAKEN;
}

/* The key of a step. */
static INLINE uint64_t key_of(struct tl_stf_repeats *r, const struct tl_block *b, bool taken)
{
    const uint32_t slot = b->number % TL_STF_REPEAT_IDS;
    if (__builtin_expect(r->ids[slot].number != b->number || b->number == 0, 0)) {
        r->ids[slot].number = b->number;
        r->ids[slot].id = hash(b);
    }
    return r->ids[slot].id | taken;
}

/* ---- steps ---------------------------------------------------------------------------------- */

static INLINE uint32_t slot(uint32_t turn)
{
    return turn >> (32 - TL_STF_REPEAT_BITS);
}

static INLINE uint32_t turn_of(uint64_t last, uint64_t key)
{
    return (uint32_t)((last * 0x9e3779b97f4a7c15u + key) >> 32);
}

static INLINE uint32_t pair_of(uint32_t last, uint32_t turn)
{
    return turn + last * 0x9e3779b1u;
}

/* Step `i`, behind `last`, continues a repeat: have it found with the two steps before it, which is
 * enough. Returns what becomes of `turn`. */
static INLINE uint32_t pass_by(struct tl_stf_repeats *r, uint32_t i, uint64_t key, uint64_t last,
                               uint32_t turn)
{
    const uint32_t next = turn_of(last, key);
    r->pairs[slot(pair_of(turn, next))] = i;
    return next;
}

/* Where steps like this one were last. */
struct before {
    uint32_t turn, pair, entry;
};

/* Look up step `i`, and have it found from now on. */
static INLINE struct before pass(struct tl_stf_repeats *r, uint32_t i, uint64_t key, uint64_t last)
{
    const uint32_t turn = turn_of(last, key);
    uint32_t *const turns = &r->turns[slot(turn)],
                    *const pairs = &r->pairs[slot(pair_of(r->turn, turn))],
                    *const entries = &r->entries[slot((uint32_t)(key >> 32))];
    const struct before before = {*turns, *pairs, *entries};
    *turns = *pairs = *entries = i;
    r->turn = turn;
    return before;
}

/* Is it the same block? */
static INLINE bool same(uint64_t a, uint64_t b)
{
    return (a ^ b) <= TL_STEP_TAKEN;
}

/* Does step `i` repeat one at which the last step is the same, too? */
static INLINE bool leads(const struct tl_stf_repeats *r, uint32_t i, uint64_t key, uint64_t last)
{
    return i > 0 && same(r->keys[i], key) && r->keys[i - 1] == last;
}

/* The step after step `i`, which was repeated by `key`, if that may be repeated, too. */
static INLINE uint32_t after(const struct tl_stf_repeats *r, uint32_t i, uint64_t key)
{
    return r->keys[i] == key ? i + 1 : 0;
}

static INLINE void add_mark(struct tl_stf_repeats *r, uint32_t at, uint32_t n, uint32_t back)
{
    r->found[r->n_found++] = (struct tl_stf_repeat){at, n, back};
}

/*
 * Does the last repeat begin where these records do? It does if it was made for a step without a
 * block's head, and has no bytes yet. Its first step with bytes is looked up like the first step of
 * any repeat, so that a loaded state, in which both look alike, finds the same from then on.
 */
static INLINE bool begins_mark(const struct tl_stf_repeats *r, uint32_t begin)
{
    return r->found[r->n_found - 1].at == begin;
}

/* The records of a step, `head` bytes of them of its own block, end at `end`; there is space. */
static INLINE void add(struct tl_stf_repeats *r, uint64_t key, uint32_t end, uint32_t head)
{
    const uint32_t i = r->n++, from = r->from, begin = r->at[i];
    const uint64_t last = r->keys[i - 1];
    r->keys[i] = key;
    r->at[i + 1] = end;
    if (from && same(r->keys[from], key)) {
        if (begins_mark(r, begin))
            (void)pass(r, i, key, last);
        else
            r->turn = pass_by(r, i, key, last, r->turn);
        r->found[r->n_found - 1].n += end - begin;
        r->from = after(r, from, key);
        return;
    }
    const struct before before = pass(r, i, key, last);
    const uint32_t turn = leads(r, before.pair, key, last) ? before.pair : before.turn;
    if (leads(r, turn, key, last)) {
        add_mark(r, begin, end - begin, begin - r->at[turn]);
        r->from = after(r, turn, key);
    } else if (before.entry && same(r->keys[before.entry], key)) {
        add_mark(r, end - head, head, end - r->at[before.entry + 1]);
        r->from = after(r, before.entry, key);
    } else {
        r->from = 0;
    }
}

/* Other records were written, up to `end`. */
static __attribute__((noinline)) void add_others(struct tl_stf_repeats *r, const uint8_t *records,
                                                 uint32_t end, const uint8_t *tail, uint32_t tail_n,
                                                 bool taken, bool odd)
{
    const uint32_t n = end - r->at[r->n];
    r->others++;
    uint64_t key = hash_bytes((uint64_t)taken << 1 | odd, tail, tail_n);
    key = hash_bytes(key, records + r->at[r->n], n) & ~(uint64_t)TL_STEP_TAKEN;
    add(r, key, end, n);
}

int tl_stf_repeats_begin(struct tl_stf_repeats *r, const uint8_t *records, size_t begin,
                         const uint8_t *tail, uint32_t tail_n, bool taken, bool odd)
{
    if (begin >= TL_STF_REPEAT_MAX || r->at[r->n] == begin)
        return TL_OK;
    if (reserve(r, 1) < 0)
        return TL_NOMEM;
    add_others(r, records, (uint32_t)begin, tail, tail_n, taken, odd);
    return TL_OK;
}

int tl_stf_repeats_end(struct tl_stf_repeats *r, const struct tl_block *block, bool taken,
                       size_t end, size_t head)
{
    if (end >= TL_STF_REPEAT_MAX)
        return TL_OK;
    if (reserve(r, 1) < 0)
        return TL_NOMEM;
    add(r, key_of(r, block, taken), (uint32_t)end, (uint32_t)head);
    return TL_OK;
}

/*
 * Continue the last repeat by as many steps as equal it: without writing their records or looking
 * at their blocks, since everything is as it was before. Returns the first other step.
 */
static INLINE const uintptr_t *follow(struct tl_stf_repeats *r, const uintptr_t *step,
                                      const uintptr_t *end)
{
    uint64_t *const keys = r->keys;
    uint32_t *const at = r->at;
    uint32_t n = r->n, from = r->from, place = at[n], turn = r->turn;
    const uint32_t begin = place, back = place - at[from];
    do {
        const uint64_t key = key_of(r, tl_path_block(*step), tl_path_taken(*step)),
                       was = keys[from];
        if (!same(was, key))
            break;
        from++;
        turn = pass_by(r, n, key, keys[n - 1], turn);
        keys[n++] = key;
        at[n] = place = at[from] + back;
        step++;
        if (was != key) {
            from = 0;
            break;
        }
    } while (step < end);
    r->n = n;
    r->from = from;
    r->turn = turn;
    r->found[r->n_found - 1].n += place - begin;
    return step;
}

const uintptr_t *tl_stf_repeats_copy(struct tl_stf_repeats *r, struct tl_stf_cursor *at,
                                     const uintptr_t *step, const uintptr_t *end,
                                     const uint8_t *begin, uint8_t isa)
{
    struct tl_stf_cursor here = *at;
    uint8_t *const records = here.p - (here.p - begin); /* writable */
    if (reserve(r, (size_t)(end - step)) < 0)
        return step;
    while (step < end) {
        const struct tl_block *b = tl_path_block(*step);
        if (!tl_stf_copy_leads(&here, b, isa))
            break;
        const uint32_t from = (uint32_t)(here.p - begin);
        const bool noted = tl_stf_repeats_wanted(r);
        if (noted && from != r->at[r->n])
            add_others(r, begin, from, here.tail, here.tail_n, here.taken, here.odd);
        if (noted && r->from && !begins_mark(r, from)) {
            const uintptr_t *const first = step;
            step = follow(r, step, end);
            if (step > first) {
                const struct tl_block *const last = tl_path_block(step[-1]);
                here.p = records + r->at[r->n];
                tl_stf_copy_tail(&here, last, last->pc,
                                 last->coded + last->coded_size - last->last_coded,
                                 tl_path_taken(step[-1]), true);
                continue;
            }
        }
        const bool taken = tl_path_taken(*step++);
        tl_stf_copy_step(&here, b, taken, true);
        if (noted)
            add(r, key_of(r, b, taken), (uint32_t)(here.p - begin), b->coded_size - b->last_coded);
    }
    *at = here;
    return step;
}

/* ---- what was left out ---------------------------------------------------------------------- */

/* Copy `n` bytes to `p` from `back` bytes before. */
static void repeat(uint8_t *p, size_t n, size_t back)
{
    size_t some = n < back ? n : back;
    for (; n > 0; some = n < back ? n : back) {
        memcpy(p, p - back, some);
        p += some;
        n -= some;
        back += some; /* what was copied is repeated, too */
    }
}

void tl_stf_fill(uint8_t *stf, const struct tl_stf_repeat *repeats, size_t n)
{
    for (size_t i = 0; i < n; i++)
        repeat(stf + repeats[i].at, repeats[i].n, repeats[i].back);
}

void tl_stf_repeats_fill(struct tl_stf_repeats *r, uint8_t *records)
{
    if (!r || r->n_found == 0)
        return;
    tl_stf_fill(records, r->found + r->filled, r->n_found - r->filled);
    r->filled = r->n_found - 1; /* the last one may continue */
}

/* ---- state ---------------------------------------------------------------------------------- */

/* Look up all steps again but those that continued a repeat. */
static void pass_all(struct tl_stf_repeats *r)
{
    const struct tl_stf_repeat *m = r->found, *const end = r->found + r->n_found;
    for (uint32_t i = 1; i < r->n; i++) {
        const uint64_t key = r->keys[i], last = r->keys[i - 1];
        while (m < end && m->at + m->n <= r->at[i])
            m++;
        if (m < end && m->at < r->at[i])
            r->turn = pass_by(r, i, key, last, r->turn);
        else
            (void)pass(r, i, key, last);
    }
}

/* Can these be steps and repeats of `n` bytes? */
static bool fits(const struct tl_stf_repeats *r, size_t n)
{
    uint32_t end = 0;
    bool ok = r->at[r->n] <= n && r->from < r->n;
    for (uint32_t i = 1; i < r->n; i++)
        ok &= r->at[i] < r->at[i + 1];
    for (size_t i = 0; i < r->n_found; i++) {
        const struct tl_stf_repeat *const m = &r->found[i];
        ok &= m->at >= end && m->n <= n && m->at <= n - m->n && m->back > 0 && m->back <= m->at;
        end = m->at + m->n;
    }
    ok &= r->from == 0 || (r->n_found > 0 && end == r->at[r->n]);
    return ok;
}

void tl_stf_repeats_state(struct tl_stf_repeats *r, size_t n, struct tl_state *s)
{
    size_t steps = n > 0 ? r->n - 1 : 0, repeats = r->n_found;
    uint32_t from = r->from;
    tl_state_size(s, &steps, s->in.n / sizeof *r->keys);
    if (tl_state_loads(s))
        tl_stf_repeats_reset(r);
    if (steps == 0)
        return;
    tl_state_size(s, &repeats, s->in.n / sizeof *r->found);
    tl_state_u32(s, &from);
    tl_state_u32(s, &r->others);
    if (tl_state_loads(s) && s->rc >= 0)
        tl_state_fail(s, reserve(r, steps + repeats));
    if (s->rc < 0)
        return;
    tl_state_bytes(s, r->keys + 1, steps * sizeof *r->keys);
    tl_state_bytes(s, r->at + 1, (steps + 1) * sizeof *r->at);
    tl_state_bytes(s, r->found, repeats * sizeof *r->found);
    if (!tl_state_loads(s) || s->rc < 0)
        return;
    r->n = (uint32_t)steps + 1;
    r->n_found = repeats;
    r->from = from;
    tl_state_check(s, fits(r, n));
    if (s->rc < 0) {
        tl_stf_repeats_reset(r);
        return;
    }
    pass_all(r);
}
