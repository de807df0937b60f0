/* SPDX-License-Identifier: MIT */
/*
 * Serialisation of object state. The same function visits an object's members for saving and
 * loading, and either appends each to a buffer or reads it from bytes, so the two always agree.
 *
 * The bytes are only for the program that wrote them: numbers are in host format. Whoever stores
 * them must add a version and a checksum. Still, the bytes may be arbitrary: values used as an
 * index or size are checked on loading. Errors are sticky; everything loaded after one is zero, and
 * the object can then only be freed.
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
    struct tl_buf *out; /* saving: buffer to append to; NULL: loading */
    struct tl_bytes in; /* loading: bytes not read yet */
    int rc; /* >= 0, or the first error: TL_NOMEM, TL_BAD, or one passed to tl_state_fail() */
};

/* Is it loading? */
static inline bool tl_state_loads(const struct tl_state *s)
{
    return !s->out;
}

/* Set the result to `rc`, unless there was an error before. */
static inline void tl_state_fail(struct tl_state *s, int rc)
{
    if (s->rc >= 0)
        s->rc = rc;
}

/* When loading, fail with TL_BAD unless `ok`. */
static inline void tl_state_check(struct tl_state *s, bool ok)
{
    if (tl_state_loads(s) && !ok)
        tl_state_fail(s, TL_BAD);
}

/* `n` bytes with arbitrary values. */
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

/* A value of at most `most`. */
static inline void tl_state_u8(struct tl_state *s, uint8_t *v, uint8_t most)
{
    tl_state_bytes(s, v, sizeof *v);
    if (tl_state_loads(s) && *v > most) {
        tl_state_fail(s, TL_BAD);
        *v = 0;
    }
}

/* A value of at most `most`. */
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
    uint8_t byte = tl_state_loads(s) ? 0 : *v; /* before it is loaded it may have no value */
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

/*
 * The length of the array `*p`, whose elements have `size` bytes in memory. When loading, allocates
 * the array; `min` is the minimum number of bytes per element in the state, which bounds the
 * allocation.
 */
static inline void tl_state_count(struct tl_state *s, void *p, size_t *n, size_t *cap, size_t size,
                                  size_t min)
{
    size_t count = *n;
    tl_state_size(s, &count, SIZE_MAX);
    if (tl_state_loads(s)) {
        tl_state_check(s, count <= s->in.n / min);
        if (s->rc >= 0)
            tl_state_fail(s, tl_grow(p, cap, count, size));
        *n = s->rc >= 0 ? count : 0;
    }
}

/* An array of elements without padding, whose members may have arbitrary values. */
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
