/* SPDX-License-Identifier: MIT */
/*
 * Encrypts queued bytes into a buffer shared by the connections of a loop and sends it at once.
 * OpenSSL alone would make a system call and an allocation for each record.
 */
#include "net/tlsio.h"

#include <errno.h>
#include <openssl/err.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#define RECORD  16384        /* bytes in a full record. Source: RFC 8446, 5.1 */
#define BATCH   (64u << 10)  /* the largest piece that the network stack handles as a whole */
#define BLOCKED (256u << 10) /* exceeded only if a client requests answers without reading them */
#define VECTORS 64

struct tl_tlsio {
    SSL *ssl;
    struct tl_buf *gather;
    int fd;
    bool dry;           /* the last read was short: nothing more without another event */
    struct tl_buf rest; /* encrypted, waiting for the socket */
    size_t rest_at;     /* begin of the rest */
};

/* ---- where OpenSSL writes to ---------------------------------------------------------------- */

static BIO_METHOD *gathering;

static int gather(BIO *bio, const char *p, int n)
{
    BIO_clear_retry_flags(bio);
    return tl_buf_add(BIO_get_data(bio), p, (size_t)n) < 0 ? -1 : n;
}

static long control(BIO *bio, int command, long number, void *pointer)
{
    return command == BIO_CTRL_FLUSH;
}

static void make_method(void)
{
    gathering = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "gathered records");
    if (gathering &&
        (!BIO_meth_set_write(gathering, gather) || !BIO_meth_set_ctrl(gathering, control))) {
        BIO_meth_free(gathering);
        gathering = NULL;
    }
}

static bool set_ends(struct tl_tlsio *io)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, make_method);
    BIO *const in = BIO_new_socket(io->fd, BIO_NOCLOSE);
    BIO *const out = gathering ? BIO_new(gathering) : NULL;
    if (!in || !out) {
        BIO_free(in);
        BIO_free(out);
        return false;
    }
    BIO_set_data(out, io->gather);
    BIO_set_init(out, 1);
    SSL_set_bio(io->ssl, in, out);
    return true;
}

/* ---- life ----------------------------------------------------------------------------------- */

struct tl_tlsio *tl_tlsio_new(struct tl_tls *tls, int fd, struct tl_buf *gather)
{
    struct tl_tlsio *const io = calloc(1, sizeof *io);
    if (!io)
        return NULL;
    io->fd = fd;
    io->gather = gather;
    io->ssl = tl_tls_accept(tls);
    if (!io->ssl || !set_ends(io)) {
        tl_tlsio_free(io);
        return NULL;
    }
    return io;
}

void tl_tlsio_free(struct tl_tlsio *io)
{
    if (!io)
        return;
    SSL_free(io->ssl);
    tl_buf_fini(&io->rest);
    free(io);
}

const SSL *tl_tlsio_session(const struct tl_tlsio *io)
{
    return io->ssl;
}

/* ---- the socket ----------------------------------------------------------------------------- */

/* Send as many bytes as the socket accepts, or TL_IO. */
static ssize_t send_some(int fd, const uint8_t *p, size_t n)
{
    size_t done = 0;
    while (done < n) {
        const ssize_t put = send(fd, p + done, n - done, MSG_NOSIGNAL);
        if (put < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
            break;
        if (put < 0 && errno != EINTR)
            return TL_IO;
        done += put > 0 ? (size_t)put : 0;
    }
    return (ssize_t)done;
}

bool tl_tlsio_blocked(const struct tl_tlsio *io)
{
    return io->rest_at < io->rest.n;
}

/* 1: nothing is pending any more, 0, TL_IO. */
static int send_rest(struct tl_tlsio *io)
{
    if (!tl_tlsio_blocked(io))
        return 1;
    const ssize_t put = send_some(io->fd, io->rest.p + io->rest_at, io->rest.n - io->rest_at);
    if (put < 0)
        return TL_IO;
    io->rest_at += (size_t)put;
    if (tl_tlsio_blocked(io))
        return 0;
    tl_buf_fini(&io->rest); /* idle connections hold no memory */
    io->rest_at = 0;
    return 1;
}

/* Send what was gathered, after what is pending. 1: everything is sent, 0, TL_IO. */
static int send_gathered(struct tl_tlsio *io)
{
    struct tl_buf *const g = io->gather;
    int rc = send_rest(io);
    ssize_t put = 0;
    if (rc == 1 && g->n > 0) {
        put = send_some(io->fd, g->p, g->n);
        rc = put < 0 ? TL_IO : (size_t)put == g->n;
    }
    if (rc == 0 && (io->rest.n - io->rest_at + g->n > BLOCKED ||
                    tl_buf_add(&io->rest, g->p + put, g->n - (size_t)put) < 0))
        rc = TL_IO;
    tl_buf_reset(g);
    return rc;
}

/* ---- records -------------------------------------------------------------------------------- */

/* Result of a call that returned `rc`; what it wrote is sent. */
static int result(struct tl_tlsio *io, int rc)
{
    const int error = SSL_get_error(io->ssl, rc);
    ERR_clear_error(); /* the error queue is per thread: leave nothing for other sessions */
    if (send_gathered(io) < 0)
        return TL_IO;
    if (error == SSL_ERROR_NONE)
        return TL_OK;
    if (error == SSL_ERROR_WANT_READ)
        return TL_AGAIN;
    return error == SSL_ERROR_ZERO_RETURN ? TL_EOF : TL_IO;
}

int tl_tlsio_handshake(struct tl_tlsio *io)
{
    const int rc = result(io, SSL_do_handshake(io->ssl));
    return rc == TL_EOF ? TL_IO : rc;
}

/* One read from the socket may have returned many small records. */
ssize_t tl_tlsio_read(struct tl_tlsio *io, void *p, size_t n)
{
    const size_t most = n > INT32_MAX ? INT32_MAX : n;
    size_t have = 0;
    int got;
    do {
        got = SSL_read(io->ssl, (uint8_t *)p + have, (int)(most - have));
        have += got > 0 ? (size_t)got : 0;
    } while (got > 0 && have < most && SSL_has_pending(io->ssl));
    /* Errors will recur. */
    const int rc = result(io, got);
    io->dry = rc == TL_AGAIN;
    return have > 0 ? (ssize_t)have : rc;
}

bool tl_tlsio_pending(const struct tl_tlsio *io)
{
    return !io->dry && SSL_has_pending(io->ssl); /* which is also true for half a record */
}

ssize_t tl_tlsio_write(struct tl_tlsio *io, const void *p, size_t n)
{
    int rc = send_rest(io);
    if (rc != 1)
        return rc < 0 ? rc : TL_AGAIN;
    const int put = SSL_write(io->ssl, p, n > RECORD ? RECORD : (int)n);
    rc = result(io, put);
    return rc == TL_OK ? put : TL_IO;
}

/* The bytes of the next record: from one slice if it is long enough, otherwise gathered into
 * `room`, so that frame headers do not become records of their own. */
static struct tl_bytes next_record(const struct tl_outq *q, uint8_t *room)
{
    struct iovec vectors[VECTORS];
    const int count = tl_outq_peek(q, vectors, VECTORS);
    size_t n = 0;
    if (vectors[0].iov_len >= RECORD)
        return (struct tl_bytes){vectors[0].iov_base, RECORD};
    for (int i = 0; i < count && n < RECORD; i++) {
        const size_t left = RECORD - n;
        const size_t take = vectors[i].iov_len < left ? vectors[i].iov_len : left;
        memcpy(room + n, vectors[i].iov_base, take);
        n += take;
    }
    return (struct tl_bytes){room, n};
}

/* Encrypt a batch of records from the queue. */
static int encrypt(struct tl_tlsio *io, struct tl_outq *q, size_t *taken)
{
    uint8_t room[RECORD];
    /* OpenSSL allocates and frees a buffer for each record, unless more follow at once. */
    SSL_clear_mode(io->ssl, SSL_MODE_RELEASE_BUFFERS);
    while (q->bytes > 0 && io->gather->n < BATCH) {
        const struct tl_bytes record = next_record(q, room);
        if (record.n == q->bytes || io->gather->n + RECORD >= BATCH)
            SSL_set_mode(io->ssl, SSL_MODE_RELEASE_BUFFERS);
        const int put = SSL_write(io->ssl, record.p, (int)record.n);
        if (put <= 0) {
            ERR_clear_error();
            return TL_IO;
        }
        tl_outq_drop(q, (size_t)put);
        *taken += (size_t)put;
    }
    return TL_OK;
}

int tl_tlsio_flush(struct tl_tlsio *io, struct tl_outq *q, size_t *taken)
{
    *taken = 0;
    int rc = send_rest(io);
    while (rc == 1 && q->bytes > 0) {
        rc = encrypt(io, q, taken);
        const int sent = send_gathered(io);
        rc = rc < 0 ? rc : sent;
    }
    return rc;
}

void tl_tlsio_shutdown(struct tl_tlsio *io)
{
    if (!SSL_is_init_finished(io->ssl))
        return;
    SSL_shutdown(io->ssl);
    ERR_clear_error();
    if (send_gathered(io) < 0)
        return; /* the peer is gone */
}
