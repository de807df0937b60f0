/* SPDX-License-Identifier: MIT */
#include "device_net.h"

#include "base/bytes.h"
#include "base/now.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <zmq.h>

#define REGISTER_MS 240000 /* for the controller's first answer: it may have to start */
#define ANSWER_MS   500    /* for its last one: it may have gone */
#define BURST       64     /* events at a time */

static int64_t now_us(void)
{
    return tl_monotonic_ns() / 1000;
}

/* ---- the plan ----------------------------------------------------------------------------- */

struct run {
    struct tl_sim_osd_device *d;
    struct osd_plan *plan;
    int64_t begin; /* when the modules were switched on, the last time */
    uint64_t base; /* events sent before */
    bool was_on, is_on;
};

/* Number of events due now. */
static unsigned due(const struct run *r)
{
    uint64_t until = r->plan->events;
    if (r->plan->rate) {
        const uint64_t paced = r->base + (uint64_t)(now_us() - r->begin) * r->plan->rate / 1000000;
        until = paced < until ? paced : until;
    }
    const uint64_t left = until > r->d->events ? until - r->d->events : 0;
    return left < BURST ? (unsigned)left : BURST;
}

/* Generate events if any are due. Returns false if the plan is complete. */
static bool step(struct run *r, int *rc)
{
    const bool on = atomic_load(&r->d->active) > 0;
    if (on && !r->is_on) {
        r->begin = now_us();
        r->base = r->d->events;
    }
    r->is_on = on;
    r->was_on = r->was_on || on;
    if (on)
        *rc = tl_sim_osd_device_run(r->d, due(r));
    if (r->d->events >= r->plan->events && on)
        atomic_store(&r->plan->done, true);
    if (*rc < 0 || atomic_load(&r->plan->stop))
        return false;
    if (r->plan->until_off)
        return !r->was_on || on;
    return !((r->plan->vanish || r->plan->cut) && r->d->events >= r->plan->events && on);
}

static int pause_ms(const struct run *r)
{
    return atomic_load(&r->d->active) && r->d->events < r->plan->events ? (r->plan->rate ? 1 : 0)
                                                                        : 5;
}

/* ---- as a gateway ------------------------------------------------------------------------- */

static void set_timeout(void *socket, int ms)
{
    zmq_setsockopt(socket, ZMQ_RCVTIMEO, &ms, sizeof ms);
}

/* Send a part of a message, also if a signal arrives while the controller is slow to take it, or
 * comes back. Once the run is to stop, one that does not take it has gone. */
static bool send_part(const struct run *r, void *socket, const void *p, size_t n, int flags)
{
    int sent;
    do
        sent = zmq_send(socket, p, n, flags);
    while (sent < 0 && (errno == EINTR || (errno == EAGAIN && !atomic_load(&r->plan->stop))));
    return sent >= 0;
}

/* Send "M" with `text`, and check the answer. Requests that arrive before it are processed. */
static int ask(const struct run *r, void *socket, const char *text, const char *expected)
{
    char type = 0, answer[64] = {0};
    if (!send_part(r, socket, "M", 1, ZMQ_SNDMORE) || !send_part(r, socket, text, strlen(text), 0))
        return errno == EAGAIN ? TL_UNREACHABLE : TL_IO;
    do {
        if (zmq_recv(socket, &type, 1, 0) != 1 ||
            zmq_recv(socket, answer, sizeof answer - 1, 0) < 0)
            return TL_UNREACHABLE;
    } while (type == 'D');
    return type != 'M' || strcmp(answer, expected) ? TL_DENIED : TL_OK;
}

static int take_requests(struct run *r, void *socket)
{
    uint16_t words[64];
    char type;
    while (zmq_recv(socket, &type, 1, ZMQ_DONTWAIT) == 1) {
        const int n = zmq_recv(socket, words, sizeof words, 0);
        if (type != 'D' || n < 6 || n > (int)sizeof words) /* osd-sw's gateway would abort here */
            return TL_BAD;
        const int rc = tl_sim_osd_device_take(r->d, words, (size_t)n / 2);
        if (rc < 0)
            return rc;
    }
    return TL_OK;
}

/* Send the datagrams from `*from` on as messages. */
static int send_packets(const struct run *r, size_t *from, void *socket)
{
    const struct tl_sim_osd_device *const d = r->d;
    uint16_t words[256];
    while (*from < d->sent.out.n) {
        const uint8_t *const p = d->sent.out.p + *from;
        const size_t n = tl_be16(p);
        for (size_t i = 0; i < n; i++)
            words[i] = tl_be16(p + 2 * (i + 1));
        if (!send_part(r, socket, "D", 1, ZMQ_SNDMORE) || !send_part(r, socket, words, 2 * n, 0))
            return errno == EAGAIN ? TL_UNREACHABLE : TL_IO;
        *from += 2 * (n + 1);
    }
    return TL_OK;
}

static int run_gateway(struct run *r, void *socket)
{
    char text[32];
    snprintf(text, sizeof text, "GW_REGISTER %u", r->d->subnet);
    int rc = ask(r, socket, text, "ACK");
    set_timeout(socket, ANSWER_MS);
    size_t from = r->d->sent.out.n; /* offset of unsent data */
    for (bool more = rc == TL_OK; more && rc == TL_OK;) {
        zmq_pollitem_t item = {.socket = socket, .events = ZMQ_POLLIN};
        zmq_poll(&item, 1, pause_ms(r));
        rc = take_requests(r, socket);
        more = rc == TL_OK && step(r, &rc);
        if (rc == TL_OK)
            rc = send_packets(r, &from, socket);
    }
    if (rc == TL_OK && !r->plan->vanish) {
        snprintf(text, sizeof text, "GW_UNREGISTER %u", r->d->subnet);
        rc = ask(r, socket, text, "ACK");
        if (rc == TL_UNREACHABLE && r->plan->until_off)
            rc = TL_OK; /* the host has gone before; and below */
    }
    return rc == TL_UNREACHABLE && atomic_load(&r->plan->stop) ? TL_OK : rc;
}

int osd_gateway_run(struct tl_sim_osd_device *d, const char *endpoint, struct osd_plan *plan)
{
    const int linger = 2000, send_ms = 200;
    struct run r = {.d = d, .plan = plan};
    void *const zmq = zmq_ctx_new();
    void *const socket = zmq_socket(zmq, ZMQ_DEALER);
    set_timeout(socket, REGISTER_MS);
    zmq_setsockopt(socket, ZMQ_LINGER, &linger, sizeof linger);
    zmq_setsockopt(socket, ZMQ_SNDTIMEO, &send_ms, sizeof send_ms);
    const int rc = zmq_connect(socket, endpoint) ? TL_IO : run_gateway(&r, socket);
    zmq_close(socket);
    zmq_ctx_term(zmq);
    return rc;
}

/* ---- GLIP over TCP ------------------------------------------------------------------------ */

static int listen_on(uint16_t port)
{
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const int on = 1;
    struct sockaddr_in at = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (bind(fd, (struct sockaddr *)&at, sizeof at) == 0 && listen(fd, 1) == 0)
        return fd;
    close(fd);
    return -1;
}

static uint16_t port_of(int fd)
{
    struct sockaddr_in at;
    socklen_t n = sizeof at;
    getsockname(fd, (struct sockaddr *)&at, &n);
    return ntohs(at.sin_port);
}

int osd_glip_listen(struct osd_glip *g, uint16_t port)
{
    for (unsigned tries = 0; tries < 50; tries++) {
        g->data = listen_on(port);
        if (g->data < 0)
            return TL_IO;
        g->port = port_of(g->data);
        g->control = g->port < UINT16_MAX ? listen_on((uint16_t)(g->port + 1)) : -1;
        if (g->control >= 0)
            return TL_OK;
        close(g->data);
    }
    return TL_IO;
}

void osd_glip_close(struct osd_glip *g)
{
    close(g->data);
    close(g->control);
}

static int accept_until(int fd, const struct osd_plan *plan)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    while (poll(&p, 1, 20) == 0)
        if (atomic_load(&plan->stop))
            return -1;
    return accept4(fd, NULL, NULL, SOCK_CLOEXEC);
}

/* Process the complete datagrams in `in`. */
static int take_datagrams(struct run *r, struct tl_buf *in)
{
    const bool little = r->d->sent.little_endian;
    uint16_t words[64];
    while (in->n >= 2) {
        const unsigned mask = r->plan->strict ? UINT16_MAX : 31;
        const size_t n = (little ? tl_le16(in->p) : tl_be16(in->p)) & mask;
        if (in->n < 2 * (n + 1) || n > 64)
            break;
        for (size_t i = 0; i < n; i++)
            words[i] = little ? tl_le16(in->p + 2 * (i + 1)) : tl_be16(in->p + 2 * (i + 1));
        tl_buf_drop(in, 2 * (n + 1));
        const int rc = tl_sim_osd_device_take(r->d, words, n);
        if (rc < 0)
            return rc;
    }
    return TL_OK;
}

/* Read what has arrived. TL_EOF: the host has disconnected. */
static int read_requests(struct run *r, int fd, struct tl_buf *in)
{
    int rc = tl_buf_reserve(in, 4096);
    if (rc < 0)
        return rc;
    const ssize_t n = recv(fd, in->p + in->n, 4096, MSG_DONTWAIT);
    if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
        return TL_EOF;
    in->n += n > 0 ? (size_t)n : 0;
    rc = take_datagrams(r, in);
    return rc;
}

static int send_bytes(int fd, const uint8_t *p, size_t n)
{
    while (n) {
        /* in pieces that do not respect datagrams */
        const ssize_t sent = send(fd, p, n < 1021 ? n : 1021, MSG_NOSIGNAL);
        if (sent < 0)
            return TL_EOF;
        p += sent;
        n -= (size_t)sent;
    }
    return TL_OK;
}

static int run_glip(struct run *r, int fd, struct tl_buf *in)
{
    size_t from = r->d->sent.out.n;
    int rc = TL_OK;
    for (bool more = true; more && rc == TL_OK;) {
        struct pollfd p = {.fd = fd, .events = POLLIN};
        poll(&p, 1, pause_ms(r));
        rc = read_requests(r, fd, in);
        more = rc == TL_OK && step(r, &rc);
        const struct tl_buf *const out = &r->d->sent.out;
        const size_t kept = !more && r->plan->cut ? 7 : 0; /* the end of the last datagram */
        if (rc == TL_OK)
            rc = send_bytes(fd, out->p + from, out->n - from - kept);
        from = out->n;
        r->d->sent.out.n -= kept;
    }
    return rc;
}

static int run_connection(struct run *r, struct osd_glip *g)
{
    struct tl_buf in = {0};
    const int data = accept_until(g->data, r->plan);
    const int control = data < 0 ? -1 : accept_until(g->control, r->plan);
    const int rc = control < 0 ? TL_UNREACHABLE : run_glip(r, data, &in);
    if (data >= 0)
        close(data);
    if (control >= 0)
        close(control);
    tl_buf_fini(&in);
    return rc;
}

int osd_glip_run(struct tl_sim_osd_device *d, struct osd_glip *g, struct osd_plan *plan)
{
    struct run r = {.d = d, .plan = plan};
    int rc;
    do
        rc = run_connection(&r, g);
    while (rc == TL_EOF && d->requests == 0);
    return rc == TL_EOF ? TL_OK : rc;
}

int osd_glip_dial(struct tl_sim_osd_device *d, uint16_t port, struct osd_plan *plan)
{
    struct run r = {.d = d, .plan = plan};
    struct tl_buf in = {0};
    struct sockaddr_in at = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int rc =
        connect(fd, (struct sockaddr *)&at, sizeof at) ? TL_UNREACHABLE : run_glip(&r, fd, &in);
    close(fd);
    tl_buf_fini(&in);
    return rc == TL_EOF ? TL_OK : rc;
}
