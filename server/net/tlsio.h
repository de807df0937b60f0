/* SPDX-License-Identifier: MIT */
/*
 * TLS on a non-blocking socket. A write to the socket costs as much as encrypting a record, so
 * records are gathered in a buffer shared by all connections of a loop, and written many at a time;
 * what the socket does not accept stays with the connection. Everything runs on the loop's thread.
 */
#ifndef TL_NET_TLSIO_H
#define TL_NET_TLSIO_H

#include "net/outq.h"
#include "net/tls.h"

#include <sys/types.h>

struct tl_tlsio;

/* Create the server side over `fd`. `gather` is empty between any two calls of its connections;
 * both are borrowed. NULL: out of memory. */
struct tl_tlsio *tl_tlsio_new(struct tl_tls *tls, int fd, struct tl_buf *gather);
void tl_tlsio_free(struct tl_tlsio *io); /* accepts NULL */
const SSL *tl_tlsio_session(const struct tl_tlsio *io);

/* TL_OK: complete; TL_AGAIN, TL_IO. */
TL_MUST_USE int tl_tlsio_handshake(struct tl_tlsio *io);
/* > 0 bytes, TL_EOF, TL_AGAIN, TL_IO. */
ssize_t tl_tlsio_read(struct tl_tlsio *io, void *p, size_t n);
/* Are bytes read from the socket that tl_tlsio_read() has not examined? Not after TL_AGAIN: then
 * there is only part of a record, and the socket becomes readable when the rest arrives. */
bool tl_tlsio_pending(const struct tl_tlsio *io);
/* Returns > 0 bytes accepted, which may be pending in encrypted form; TL_AGAIN, TL_IO. */
ssize_t tl_tlsio_write(struct tl_tlsio *io, const void *p, size_t n);
/* Write pending encrypted bytes, then the queue, as far as the socket accepts them. 1: everything
 * is written, 0: the socket is full, TL_IO. `*taken`: bytes of the queue that were accepted. */
int tl_tlsio_flush(struct tl_tlsio *io, struct tl_outq *q, size_t *taken);
/* Are encrypted bytes pending? */
bool tl_tlsio_blocked(const struct tl_tlsio *io);
/* Send close_notify. */
void tl_tlsio_shutdown(struct tl_tlsio *io);

#endif
