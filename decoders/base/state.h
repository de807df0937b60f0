/* SPDX-License-Identifier: MIT */
/*
 * The state of an object as bytes, and back. One function goes through an object's members and
 * either appends each to a buffer or reads it from bytes, so that both always agree.
 *
 * The bytes are for the program that wrote them: numbers are as the machine has them. Whoever keeps
 * them says so in front, and has a checksum. All the same they may be anything: what is used as an
 * index or a size is checked when it is loaded. Errors stick, and whatever is loaded behind one is
 * zero; an object is of no use then but to be freed.
 *
 * Header only; not thread-safe.
 */
#ifndef TL_BASE_STATE_H
#define TL_BASE_STATE_H

#include "base/buf.h"
#include "base/bytes.h"

#include <stdbool.h>
#include <string.h>

struct tl_state {
    struct tl_buf *out; /* saving: what is appended to; NULL: loading, … */
    struct tl_bytes in; /* … from these, which become fewer */
    int rc;             /* the first error: TL_NOMEM, TL_BAD, or what tl_state_fail() was told */
};

static inline bool tl_state_loads(const struct tl_state *s)
{
    return !s->out;
}

static inline void tl_state_fail(struct tl_state *s, int rc)
{
    if (s->rc >= 0)
        s->rc = rc;
}

/* Loaded, and not `ok`: it cannot have been saved. */
static inline void tl_state_check(struct tl_state *s, bool ok)
{
    if (tl_state_loads(s) && !ok)
        tl_state_fail(s, TL_BAD);
}

/* `n` bytes that may have any value. */
static inline void tl_state_bytes(struct tl_state *s, void *p, size_t n)
{
    if (!tl_state_loads(s)) {
        if (s->rc >= 0)
            tl_state_fail(s, tl_buf_add(s->out, p, n));
        return;
    }
    if (s->in.n < n)
        tl_state_fail(s, TL_BAD);
    if (s->rc < 0) {
        memset(p, 0, n);
        return;
    }
    memcpy(p, s->in.p, n);
    s->in.p += n;
    s->in.n -= n;
}

static inline void tl_state_u64(struct tl_state *s, uint64_t *v)
{
    tl_state_bytes(s, v, sizeof *v);
}

static inline void tl_state_u32(struct tl_state *s, uint32_t *v)
{
    tl_state_bytes(s, v, sizeof *v);
}

static inline void tl_state_u16(struct tl_state *s, uint16_t *v)
{
    tl_state_bytes(s, v, sizeof *v);
}

/* At most `most`. */
static inline void tl_state_u8(struct tl_state *s, uint8_t *v, uint8_t most)
{
    tl_state_bytes(s, v, sizeof *v);
    if (tl_state_loads(s) && *v > most) {
        tl_state_fail(s, TL_BAD);
        *v = 0;
    }
}

/* At most `most`. */
static inline void tl_state_size(struct tl_state *s, size_t *v, size_t most)
{
    uint64_t n = *v;
    tl_state_u64(s, &n);
    if (tl_state_loads(s) && n > most) {
        tl_state_fail(s, TL_BAD);
        n = 0;
    }
    *v = (size_t)n;
}

static inline void tl_state_bool(struct tl_state *s, bool *v)
{
    uint8_t byte = *v;
    tl_state_u8(s, &byte, 1);
    *v = byte;
}

/* The contents of a buffer, at most `most` bytes. */
static inline void tl_state_buf(struct tl_state *s, struct tl_buf *b, size_t most)
{
    size_t n = b->n;
    tl_state_size(s, &n, most);
    if (tl_state_loads(s)) {
        b->n = 0;
        if (s->rc >= 0 && n > s->in.n)
            tl_state_fail(s, TL_BAD);
        if (s->rc >= 0)
            tl_state_fail(s, tl_buf_reserve(b, n));
        b->n = s->rc >= 0 ? n : 0;
    }
    if (b->n > 0)
        tl_state_bytes(s, b->p, b->n);
}

static inline void tl_state_i32(struct tl_state *s, int32_t *v)
{
    tl_state_bytes(s, v, sizeof *v);
}

/* How many elements of `size` bytes the array `*p` has: when they are loaded there is room for all,
 * each of which the state has `least` bytes of, at least. */
static inline void tl_state_count(struct tl_state *s, void *p, size_t *n, size_t *cap, size_t size,
                                  size_t least)
{
    size_t count = *n;
    tl_state_size(s, &count, SIZE_MAX);
    if (tl_state_loads(s)) {
        tl_state_check(s, count <= s->in.n / least);
        if (s->rc >= 0)
            tl_state_fail(s, tl_grow(p, cap, count, size));
        *n = s->rc >= 0 ? count : 0;
    }
}

/* An array of elements without padding, whose members may have any value. */
static inline void tl_state_array(struct tl_state *s, void *p, size_t *n, size_t *cap, size_t size)
{
    void *v;
    tl_state_count(s, p, n, cap, size, size);
    memcpy(&v, p, sizeof v);
    if (*n > 0)
        tl_state_bytes(s, v, *n * size);
}

/* One of `n` texts with static storage, or NULL. */
static inline void tl_state_text(struct tl_state *s, const char **v, const char *const *texts,
                                 uint8_t n)
{
    uint8_t i = n;
    if (!tl_state_loads(s))
        for (i = 0; i < n && (!*v || strcmp(*v, texts[i]) != 0);)
            i++;
    if (!tl_state_loads(s) && *v && i == n)
        tl_state_fail(s, TL_UNSUPPORTED);
    tl_state_u8(s, &i, n);
    if (tl_state_loads(s))
        *v = s->rc >= 0 && i < n ? texts[i] : NULL;
}

#endif
