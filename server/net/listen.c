/* SPDX-License-Identifier: MIT */
/*
 * Listeners run on loop 0 and distribute new sockets to all loops in turn: so a few rigs that push
 * hard never share a loop while another is idle, as could happen with the kernel's hashing
 * (SO_REUSEPORT); and an address in use is detected.
 */
#include "net/address.h"
#include "net/netint.h"
#include "net/waiter.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ACCEPT_BATCH 64
#define PAUSE_MS     100 /* without accepting, when descriptors or memory ran out */

/* A new connection on its way to the loop that serves it. */
struct arrival {
    struct tl_task task; /* must be first */
    struct tl_netloop *loop;
    int fd;
    bool tls;
    struct sockaddr_storage peer;
    socklen_t peer_n;
    struct tl_account *account;
};

/* On the loop that serves the connection. */
static void arrive(struct tl_task *task)
{
    struct arrival *const a = (struct arrival *)task;
    if (tl_net_draining(a->loop->net)) {
        close(a->fd);
        tl_conn_forget(a->loop->net, a->account);
    } else {
        tl_conn_start(a->loop, a->fd, a->tls, &a->peer, a->peer_n, a->account);
    }
    free(a);
}

/* Pass a new connection to the next loop; it is closed if its client has too many. */
static void hand_out(struct tl_listener *listener, int fd, const struct sockaddr_storage *peer,
                     socklen_t peer_n)
{
    struct tl_net *const net = listener->net;
    struct arrival *const a = malloc(sizeof *a);
    struct tl_account *const account = tl_account_new(&net->shares, peer);
    if (!a || !account || !tl_account_take(account, TL_USE_CONNECTIONS, 1)) {
        atomic_fetch_add(&net->stats.refused, 1);
        tl_account_put(account);
        free(a);
        close(fd);
        return;
    }
    const int on = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
    const unsigned i = atomic_fetch_add(&net->next_loop, 1) % net->n_loops;
    *a = (struct arrival){
        .task.run = arrive,
        .loop = &net->loops[i],
        .fd = fd,
        .tls = listener->tls,
        .peer = *peer,
        .peer_n = peer_n,
        .account = account,
    };
    atomic_fetch_add(&net->stats.connections, 1);
    atomic_fetch_add(&net->stats.connections_open, 1);
    tl_loop_post(&net->loops[i].loop, &a->task);
}

static void on_connection(uv_poll_t *poll, int status, int events);

static void resume(uv_timer_t *timer)
{
    struct tl_listener *const listener = timer->data;
    uv_poll_start(&listener->poll, UV_READABLE, on_connection);
}

static void on_connection(uv_poll_t *poll, int status, int events)
{
    struct tl_listener *const listener = poll->data;
    for (int i = 0; i < ACCEPT_BATCH; i++) {
        struct sockaddr_storage peer;
        socklen_t n = sizeof peer;
        const int fd =
            accept4(listener->fd, (struct sockaddr *)&peer, &n, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd >= 0) {
            hand_out(listener, fd, &peer, n);
        } else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
            /* The socket stays readable: polling it now would spin. */
            uv_poll_stop(poll);
            uv_timer_start(&listener->pause, resume, PAUSE_MS, 0);
            return;
        } else if (errno != ECONNABORTED && errno != EINTR) {
            return;
        }
    }
}

/* On loop 0. */
static void begin_listening(struct tl_task *task)
{
    struct tl_listener *const l =
        (struct tl_listener *)((char *)task - offsetof(struct tl_listener, task));
    uv_loop_t *const uv = &l->net->loops[0].loop.uv;
    uv_timer_init(uv, &l->pause);
    l->pause.data = l;
    if (uv_poll_init(uv, &l->poll, l->fd)) {
        uv_close((uv_handle_t *)&l->pause, NULL);
        return;
    }
    l->poll.data = l;
    l->open = true;
    uv_poll_start(&l->poll, UV_READABLE, on_connection);
}

int tl_listeners_open(struct tl_net *net, struct tl_fail *fail)
{
    net->listeners = calloc(net->options.n_listen + 1, sizeof *net->listeners);
    if (!net->listeners)
        return TL_NOMEM;
    net->guard_host = !net->auth && !net->options.any_host;
    for (size_t i = 0; i < net->options.n_listen; i++) {
        struct tl_listener *const l = &net->listeners[i];
        struct tl_address address;
        char text[80];
        int rc = tl_address_parse(&address, net->options.listen[i].address, true, fail);
        if (rc < 0)
            return rc;
        rc = tl_address_listen(&address, fail);
        if (rc < 0)
            return rc;
        net->guard_host = net->guard_host && tl_address_loopback(&address);
        *l = (struct tl_listener){
            .net = net, .task.run = begin_listening, .fd = rc, .tls = net->options.listen[i].tls};
        net->n_listeners++;
        snprintf(l->url, sizeof l->url, "%s://%s", l->tls ? "https" : "http",
                 tl_address_text(&address, text, sizeof text));
    }
    for (size_t i = 0; i < net->n_listeners; i++)
        tl_loop_post(&net->loops[0].loop, &net->listeners[i].task);
    return TL_OK;
}

struct stopping {
    struct tl_task task; /* must be first */
    struct tl_net *net;
    struct tl_waiter *done;
};

static void stop(struct tl_task *task)
{
    struct stopping *const s = (struct stopping *)task;
    for (size_t i = 0; i < s->net->n_listeners; i++) {
        struct tl_listener *const l = &s->net->listeners[i];
        if (!l->open)
            continue;
        l->open = false;
        uv_close((uv_handle_t *)&l->poll, NULL);
        uv_close((uv_handle_t *)&l->pause, NULL);
    }
    tl_waiter_poke(s->done);
}

void tl_listeners_stop(struct tl_net *net)
{
    struct tl_waiter done;
    tl_waiter_init(&done);
    struct stopping s = {.task.run = stop, .net = net, .done = &done};
    tl_loop_post(&net->loops[0].loop, &s.task);
    (void)!tl_waiter_wait(&done, -1);
    tl_waiter_fini(&done);
}

void tl_listeners_free(struct tl_net *net)
{
    for (size_t i = 0; i < net->n_listeners; i++)
        close(net->listeners[i].fd);
    free(net->listeners);
    net->listeners = NULL;
    net->n_listeners = 0;
}
