/* SPDX-License-Identifier: MIT */
/*
 * Connects to one of several addresses and moves bytes without blocking. Every wait polls the wake
 * descriptor, too, so that another thread can end a call whatever it is waiting for.
 */
#include "wire.h"

#include "ctls.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

struct tl_wire {
    int fd;
    int wake_fd;
    struct tl_ctls *tls; /* NULL: plain */
};

static int poll_fd(int fd, int wake_fd, short events, int ms, struct tracelake_error *error)
{
    struct pollfd fds[2] = {{fd, events, 0}, {wake_fd, POLLIN, 0}};
    const int n = poll(fds, 2, ms);
    if (n > 0 && fds[1].revents)
        return tl_client_fail(error, TRACELAKE_CANCELLED, "interrupted");
    /* A signal is handled by the caller's loop, which checks its clock again. */
    return n > 0 ? TRACELAKE_OK : TRACELAKE_AGAIN;
}

/* Wait for `events` until `deadline`. */
static int poll_until(const struct tl_wire *wire, short events, int64_t deadline,
                      struct tracelake_error *error)
{
    for (;;) {
        const int64_t left = deadline - tl_monotonic_ms();
        if (left <= 0)
            return TRACELAKE_AGAIN;
        const int result = poll_fd(wire->fd, wire->wake_fd, events, (int)left, error);
        if (result != TRACELAKE_AGAIN)
            return result;
    }
}

/*
 * Configure keep-alive: a peer that vanished silently (power, cable) is detected within half a
 * minute, whether or not bytes are in flight.
 */
static void tune(int fd)
{
    const int on = 1, idle = 15, interval = 5, count = 3, unsent_ms = 30000;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof idle);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval, sizeof interval);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &count, sizeof count);
    setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &unsent_ms, sizeof unsent_ms);
}

/* 0, an errno, or a negative result. */
static int connect_one(struct tl_wire *wire, const struct addrinfo *a, int64_t deadline,
                       struct tracelake_error *error)
{
    wire->fd = socket(a->ai_family, a->ai_socktype | SOCK_NONBLOCK | SOCK_CLOEXEC, a->ai_protocol);
    if (wire->fd < 0)
        return errno;
    if (connect(wire->fd, a->ai_addr, a->ai_addrlen) == 0)
        return 0;
    if (errno != EINPROGRESS)
        return errno;
    const int ready = poll_until(wire, POLLOUT, deadline, error);
    if (ready == TRACELAKE_CANCELLED)
        return ready;
    if (ready == TRACELAKE_AGAIN)
        return ETIMEDOUT;
    int failure = 0;
    socklen_t n = sizeof failure;
    getsockopt(wire->fd, SOL_SOCKET, SO_ERROR, &failure, &n);
    return failure;
}

int tl_wire_resolve(struct addrinfo **out, const struct tl_url *url, struct tracelake_error *error)
{
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_ADDRCONFIG};
    /* AI_ADDRCONFIG omits address families without an interface; loopback alone counts as none. */
    int failure = getaddrinfo(url->host, url->port, &hints, out);
    if (failure != 0) {
        const struct addrinfo any = {.ai_socktype = SOCK_STREAM};
        failure = getaddrinfo(url->host, url->port, &any, out);
    }
    if (failure != 0)
        return tl_client_fail(error, TRACELAKE_UNREACHABLE, "%s: %s", url->host,
                              gai_strerror(failure));
    return TRACELAKE_OK;
}

static int connect_to(struct tl_wire *wire, const struct tl_url *url,
                      const struct addrinfo *address, int64_t deadline,
                      struct tracelake_error *error)
{
    const int result = connect_one(wire, address, deadline, error);
    if (result < 0)
        return result;
    if (result == ETIMEDOUT)
        return tl_client_fail(error, TRACELAKE_TIMEOUT, "no answer from %s within the time limit",
                              url->authority);
    if (result > 0)
        return tl_client_fail(error, TRACELAKE_UNREACHABLE,
                              "cannot connect to %s: %s; is the server running?", url->authority,
                              strerror(result));
    tune(wire->fd);
    return TRACELAKE_OK;
}

static int start_tls(struct tl_wire *wire, const struct tl_url *url,
                     const struct tl_wire_options *options, int64_t deadline,
                     struct tracelake_error *error)
{
    int result = tl_ctls_new(&wire->tls, wire->fd, url, options, error);
    while (result == TRACELAKE_OK) {
        result = tl_ctls_handshake(wire->tls, error);
        if (result != TRACELAKE_AGAIN)
            return result;
        result =
            poll_until(wire, tl_ctls_wants_write(wire->tls) ? POLLOUT : POLLIN, deadline, error);
        if (result == TRACELAKE_AGAIN)
            return tl_client_fail(error, TRACELAKE_TIMEOUT,
                                  "no TLS answer from %s within the time limit", url->authority);
    }
    return result;
}

int tl_wire_open(struct tl_wire **out, const struct tl_url *url, const struct addrinfo *address,
                 const struct tl_wire_options *options, struct tracelake_error *error)
{
    struct tl_wire *wire = calloc(1, sizeof *wire);
    if (!wire)
        return tl_client_fail(error, TRACELAKE_NOMEM, "out of memory");
    wire->fd = -1;
    wire->wake_fd = options->wake_fd;
    const int64_t deadline = tl_monotonic_ms() + options->connect_ms;
    int result = connect_to(wire, url, address, deadline, error);
    if (result == TRACELAKE_OK && url->tls)
        result = start_tls(wire, url, options, deadline, error);
    if (result < 0) {
        tl_wire_close(wire);
        return result;
    }
    *out = wire;
    return TRACELAKE_OK;
}

void tl_wire_close(struct tl_wire *wire)
{
    if (!wire)
        return;
    tl_ctls_free(wire->tls);
    if (wire->fd >= 0)
        close(wire->fd);
    free(wire);
}

static int broken(struct tracelake_error *error)
{
    return tl_client_fail(error, TRACELAKE_UNREACHABLE, "the connection to the server broke: %s",
                          strerror(errno));
}

long tl_wire_read(struct tl_wire *wire, void *p, size_t n, struct tracelake_error *error)
{
    if (wire->tls)
        return tl_ctls_read(wire->tls, p, n, error);
    const ssize_t done = recv(wire->fd, p, n, 0);
    if (done > 0)
        return done;
    if (done == 0)
        return tl_client_fail(error, TRACELAKE_UNREACHABLE, "the server closed the connection");
    return errno == EAGAIN || errno == EINTR ? TRACELAKE_AGAIN : broken(error);
}

long tl_wire_write(struct tl_wire *wire, const void *p, size_t n, struct tracelake_error *error)
{
    if (wire->tls)
        return tl_ctls_write(wire->tls, p, n, error);
    const ssize_t done = send(wire->fd, p, n, MSG_NOSIGNAL);
    if (done >= 0)
        return done;
    return errno == EAGAIN || errno == EINTR ? TRACELAKE_AGAIN : broken(error);
}

int tl_wire_wait(struct tl_wire *wire, bool writing, int ms, struct tracelake_error *error)
{
    const bool write = writing || (wire->tls && tl_ctls_wants_write(wire->tls));
    return poll_fd(wire->fd, wire->wake_fd, (short)(POLLIN | (write ? POLLOUT : 0)), ms, error);
}

size_t tl_wire_unsent(const struct tl_wire *wire)
{
    int n = 0;
    return ioctl(wire->fd, SIOCOUTQ, &n) < 0 || n < 0 ? 0 : (size_t)n;
}

int tl_wire_descriptor(const struct tl_wire *wire)
{
    return wire->fd;
}

int tl_wire_sleep(int ms, int wake_fd, struct tracelake_error *error)
{
    const int result = poll_fd(-1, wake_fd, 0, ms, error);
    return result == TRACELAKE_CANCELLED ? result : TRACELAKE_OK;
}
