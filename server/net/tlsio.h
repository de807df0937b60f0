/* SPDX-License-Identifier: MIT */
/*
 * TLS on a non-blocking socket. A write through the network stack costs as much as encrypting a
 * record, so records are gathered in a buffer that all connections of a loop share, and go to the
 * socket many at a time; what it does not take waits with its connection. All on the loop's thread.
 */
#ifndef TL_NET_TLSIO_H
#define TL_NET_TLSIO_H

#include "net/outq.h"
#include "net/tls.h"

#include <sys/types.h>

struct tl_tlsio;

/* A server's side over `fd`. `gather` is empty between two calls of any connection; both are
 * borrowed. NULL: out of memory. */
struct tl_tlsio *tl_tlsio_new(struct tl_tls *tls, int fd, struct tl_buf *gather);
void tl_tlsio_free(struct tl_tlsio *io); /* NULL is fine */
const SSL *tl_tlsio_session(const struct tl_tlsio *io);

/* TL_OK: it is done; TL_AGAIN, TL_IO. */
TL_MUST_USE int tl_tlsio_handshake(struct tl_tlsio *io);
/* > 0 bytes, TL_EOF, TL_AGAIN, TL_IO. */
ssize_t tl_tlsio_read(struct tl_tlsio *io, void *p, size_t n);
/* Were bytes read from the socket that tl_tlsio_read() has not looked at? Not so after TL_AGAIN:
 * the beginning of a record waits for its rest, and the socket will say when that is there. */
bool tl_tlsio_pending(const struct tl_tlsio *io);
/* > 0 bytes taken, which may wait with what is blocked; TL_AGAIN, TL_IO. */
ssize_t tl_tlsio_write(struct tl_tlsio *io, const void *p, size_t n);
/* What is blocked, then the queue, as far as the socket takes it. 1: all is written, 0: it is full,
 * TL_IO. `*taken`: bytes of the queue that went. */
int tl_tlsio_flush(struct tl_tlsio *io, struct tl_outq *q, size_t *taken);
/* Do encrypted bytes wait for the socket? */
bool tl_tlsio_blocked(const struct tl_tlsio *io);
/* Say that nothing more comes. */
void tl_tlsio_shutdown(struct tl_tlsio *io);

#endif
