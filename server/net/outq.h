/* SPDX-License-Identifier: MIT */
/*
 * Output queue of a socket: a list of slices, so that a large payload goes from its producer to the
 * kernel without copying. Not thread-safe: belongs to a loop's thread.
 */
#ifndef TL_NET_OUTQ_H
#define TL_NET_OUTQ_H

#include "base/buf.h"
#include "base/bytes.h"
#include "net/shares.h"

#include <sys/uio.h>

/* Bytes of a mapped file take no memory, and weigh less by this factor. */
#define TL_CHUNK_MAPPED 32

/* A reference-counted block of memory. The count is changed by one thread at a time. */
struct tl_chunk {
    struct tl_chunk *next;
    unsigned refs;
    bool latest;    /* may be replaced by a newer one while it is queued */
    int32_t mapped; /* > 0: `p` is a mapped file's, for system calls only; the stream's id */
    uint8_t *p;
    size_t n;
    size_t cap;
    void *owned;                 /* freed with the chunk */
    void (*let_go)(void *owned); /* frees `owned`, if set. NULL: `p` follows this struct */
    struct tl_account *account;  /* charged with its memory until it is freed; NULL: none */
    size_t held;
};

/* Create a chunk with `n` used bytes and one reference. NULL: out of memory. */
struct tl_chunk *tl_chunk_new(size_t n);
/* Take over the buffer's memory (the buffer is empty afterwards). NULL: out of memory. */
struct tl_chunk *tl_chunk_of(struct tl_buf *buf);
/* Create a chunk for bytes that live until let_go(owner) is called with the last reference;
 * `let_go` NULL: they outlive everything. NULL: out of memory. */
struct tl_chunk *tl_chunk_fixed(struct tl_bytes bytes, void (*let_go)(void *owner), void *owner);
void tl_chunk_put(struct tl_chunk *chunk);
/* Charge its memory, unless that is little, to the client that it is for. */
void tl_chunk_charge(struct tl_chunk *chunk, struct tl_account *account);

struct tl_slice {
    const uint8_t *p;
    size_t n;
    struct tl_chunk *chunk; /* a reference */
};

struct tl_outq {
    struct tl_slice *at; /* ring of `cap`, a power of two */
    size_t cap;
    size_t first;
    size_t count;
    size_t bytes;
    struct tl_chunk *block; /* small pieces are copied here */
};

void tl_outq_fini(struct tl_outq *q);
/* Append a copy. TL_NOMEM. */
TL_MUST_USE int tl_outq_copy(struct tl_outq *q, const void *p, size_t n);
/* Append a slice of the chunk, taking another reference. TL_NOMEM. */
TL_MUST_USE int tl_outq_slice(struct tl_outq *q, struct tl_chunk *chunk, size_t at, size_t n);
/* Get the first slices as up to `max` vectors; returns their number. */
int tl_outq_peek(const struct tl_outq *q, struct iovec *out, int max);
/* The first slice cannot be read: if it is of a mapped file, put zeros in its place, and in that of
 * all slices with the same `mapped`, which is returned. 0: it is not of one, or out of memory. */
int32_t tl_outq_blank(struct tl_outq *q);
/* Remove the first `n` bytes, which are written. */
void tl_outq_drop(struct tl_outq *q, size_t n);

#endif
