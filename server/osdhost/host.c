/* SPDX-License-Identifier: MIT */
/*
 * Runs the controller on a ROUTER socket in one thread, and a capture for each gateway. Queues are
 * bounded in both directions, so that a peer that sends without reading costs no memory.
 */
#include "osdhost/host.h"

#include "base/prometheus.h"
#include "net/address.h"
#include "net/waiter.h"
#include "osdhost/capture.h"
#include "osdhost/controller.h"
#include "osdhost/silent.h"
#include "osdhost/zmq_library.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define MAX_MESSAGE  (2 * 65536) /* bytes; longer messages end the connection */
#define BATCH        2048        /* messages between two checks of everything else */
#define QUEUE_IN     1000        /* messages of one peer waiting for us */
#define QUEUE_OUT    5000 /* messages waiting for a peer: a slow host module loses further ones */
#define STOP_MS      2000
#define PUBLISH_MS   200
#define MONITOR_NAME "inproc://monitor"
#define FIRST_NAME   "inproc://first"

/* Data of a subnet's gateway for tl_osd_host_metrics(). */
struct state {
    bool here;
    enum tl_osd_phase phase;
    size_t modules;
    uint64_t packets;
    uint64_t bytes;
};

struct tl_osd_host {
    struct tl_lake *lake;
    void (*log)(const char *line);
    char rig[64];
    enum tl_shards shards;
    enum tl_index index;
    char *setup;
    char url[96];
    struct tl_osd_ctl *ctl;
    void *zmq;
    void *router;
    void *monitor; /* socket that reports begun and ended connections */
    struct tl_osd_silent silent;
    int stop_fd; /* readable once we are stopping */
    bool started;
    pthread_t thread;
    int64_t now;
    zmq_msg_t frames[3]; /* identity, type, payload */
    bool news;           /* not published yet */
    int64_t published;

    pthread_mutex_t lock; /* guards the following members */
    struct tl_osd_ctl_counters counters;
    struct state states[TL_OSD_SUBNETS];
};

/* ---- events of the controller ------------------------------------------------------------- */

static void on_log(void *context, const char *line)
{
    const struct tl_osd_host *const host = context;
    char text[600];
    snprintf(text, sizeof text, "osd: %s", line);
    host->log(text);
}

static int on_send(void *context, struct tl_bytes id, char type, struct tl_bytes payload)
{
    const struct tl_osd_host *const host = context;
    /* The first frame shows whether the peer exists, and whether its queue has space. */
    if (tl_libzmq.send(host->router, id.p, id.n, ZMQ_SNDMORE | ZMQ_DONTWAIT) < 0)
        return errno == EHOSTUNREACH ? TL_UNREACHABLE : TL_LIMIT;
    if (tl_libzmq.send(host->router, &type, 1, ZMQ_SNDMORE | ZMQ_DONTWAIT) < 0)
        return TL_UNREACHABLE;
    return tl_libzmq.send(host->router, payload.p, payload.n, ZMQ_DONTWAIT) < 0 ? TL_UNREACHABLE
                                                                                : TL_OK;
}

static void on_opened(void *context, struct tl_osd_link *link)
{
    struct tl_osd_host *const host = context;
    struct tl_osd_capture *const capture = malloc(sizeof *capture);
    char rig[64], line[128];
    if (link->subnet)
        snprintf(rig, sizeof rig, "%.60s-%u", host->rig, link->subnet % TL_OSD_SUBNETS);
    else
        snprintf(rig, sizeof rig, "%s", host->rig);
    snprintf(line, sizeof line, "gateway of subnet %u, rig %s", link->subnet, rig);
    on_log(host, line);
    link->user = capture; /* out of memory: its packets are routed, but not stored */
    if (!capture)
        return;
    tl_osd_capture_init(capture, host->lake, rig, host->setup, host, on_log);
    capture->from = host->url;
    capture->shards = host->shards;
    capture->index = host->index;
}

static void on_enumerated(void *context, struct tl_osd_link *link)
{
    if (link->user)
        tl_osd_capture_describe(link->user, &link->bringup);
}

static void on_packet(void *context, struct tl_osd_link *link, const uint16_t *words, size_t n)
{
    struct tl_osd_host *const host = context;
    struct tl_osd_capture *const capture = link->user;
    uint8_t datagram[2 * 65536];
    if (!capture)
        return;
    tl_put_be16(datagram, (uint16_t)n);
    for (size_t i = 0; i < n; i++)
        tl_put_be16(datagram + 2 * (i + 1), words[i]);
    const struct tl_bytes bytes = {datagram, 2 * (n + 1)};
    if (tl_osd_capture_add(capture, bytes, host->now) < 0)
        capture->lost += bytes.n;
    if (tl_osd_capture_pending(capture) >= TL_OSD_HELD)
        tl_osd_capture_flush(capture, host->now);
}

static void on_closed(void *context, struct tl_osd_link *link, const char *why)
{
    struct tl_osd_host *const host = context;
    char line[128];
    if (link->user)
        tl_osd_capture_end(link->user, why);
    free(link->user);
    snprintf(line, sizeof line, "subnet %u: %s", link->subnet, why);
    on_log(host, line);
}

/* ---- messages ----------------------------------------------------------------------------- */

/* Process notifications about begun and ended connections. */
static void drain_monitor(struct tl_osd_host *host)
{
    zmq_msg_t event, address;
    for (;;) {
        tl_libzmq.msg_init(&event);
        if (tl_libzmq.msg_recv(&event, host->monitor, ZMQ_DONTWAIT) < 0)
            break;
        uint16_t number = 0;
        int32_t fd = -1;
        if (tl_libzmq.msg_size(&event) >= sizeof number + sizeof fd) {
            const uint8_t *const p = tl_libzmq.msg_data(&event);
            memcpy(&number, p, sizeof number);
            memcpy(&fd, p + sizeof number, sizeof fd);
        }
        if (number == ZMQ_EVENT_DISCONNECTED)
            tl_osd_ctl_gone(host->ctl, fd);
        else if (number == ZMQ_EVENT_HANDSHAKE_SUCCEEDED)
            tl_osd_silent_joined(&host->silent, host->now);
        tl_libzmq.msg_init(&address);
        (void)tl_libzmq.msg_recv(&address, host->monitor, ZMQ_DONTWAIT);
        tl_libzmq.msg_close(&address);
        tl_libzmq.msg_close(&event);
    }
    tl_libzmq.msg_close(&event);
}

/* Receive one message, keeping up to three frames. Returns their number; 0: none. */
static size_t receive(struct tl_osd_host *host)
{
    size_t n = 0;
    zmq_msg_t other;
    for (bool more = true; more; n++) {
        zmq_msg_t *const frame = n < 3 ? &host->frames[n] : &other;
        if (n >= 3)
            tl_libzmq.msg_init(&other);
        if (tl_libzmq.msg_recv(frame, host->router, ZMQ_DONTWAIT) < 0)
            return 0; /* frames of a message arrive together, so this is the first */
        more = tl_libzmq.msg_more(frame);
        if (n >= 3)
            tl_libzmq.msg_close(&other);
    }
    return n < 3 ? n : 3;
}

static struct tl_bytes frame_of(zmq_msg_t *message)
{
    return (struct tl_bytes){tl_libzmq.msg_data(message), tl_libzmq.msg_size(message)};
}

static void take_message(struct tl_osd_host *host, size_t n)
{
    const struct tl_bytes id = frame_of(&host->frames[0]);
    const struct tl_bytes frames[2] = {n > 1 ? frame_of(&host->frames[1]) : (struct tl_bytes){0},
                                       n > 2 ? frame_of(&host->frames[2]) : (struct tl_bytes){0}};
    /* A connection's number may have been reused: first process ended connections. */
    if (frames[0].n && frames[0].p[0] == 'M')
        drain_monitor(host);
    host->news = true;
    tl_osd_silent_spoke(&host->silent, id);
    const int fd = n > 1 ? tl_libzmq.msg_get(&host->frames[1], ZMQ_SRCFD) : -1;
    if (tl_osd_ctl_message(host->ctl, (struct tl_bytes){id.p, id.n}, fd, frames, n - 1, host->now) <
        0)
        on_log(host, "out of memory, a message is lost");
}

/* Process received messages, up to a batch. False: there may be more. */
static bool take_messages(struct tl_osd_host *host)
{
    for (unsigned i = 0; i < BATCH; i++) {
        const size_t n = receive(host);
        if (n == 0)
            return true;
        take_message(host, n);
    }
    return false;
}

/* Ask those who have connected and said nothing whether they are gateways. */
static void ask_the_silent(struct tl_osd_host *host)
{
    struct tl_bytes id;
    while (tl_osd_silent_next(&host->silent, host->now, &id))
        if (tl_osd_ctl_ask(host->ctl, id) == TL_OK) {
            tl_osd_silent_spoke(&host->silent, id);
            on_log(host, "a program connected and says nothing: asked whether it is a gateway");
        }
}

/* ---- the thread --------------------------------------------------------------------------- */

static void flush_link(void *context, struct tl_osd_link *link)
{
    if (link->user)
        tl_osd_capture_flush(link->user, ((struct tl_osd_host *)context)->now);
}

struct due {
    int64_t at;
};

static void sooner(struct due *due, int64_t at)
{
    if (at >= 0 && (due->at < 0 || at < due->at))
        due->at = at;
}

static void due_of_link(void *context, struct tl_osd_link *link)
{
    if (link->user)
        sooner(context, tl_osd_capture_due(link->user));
}

static void publish_link(void *context, struct tl_osd_link *link)
{
    struct state *const state = &((struct tl_osd_host *)context)->states[link->subnet];
    if (state->here) /* the most recent one is first */
        return;
    *state = (struct state){
        .here = true,
        .phase = link->bringup.phase,
        .modules = link->bringup.enumerated ? link->bringup.n_modules : 0,
        .packets = link->packets,
        .bytes = 2 * (link->words + link->packets),
    };
}

static void publish(struct tl_osd_host *host)
{
    if (!host->news || host->now < host->published + PUBLISH_MS)
        return;
    host->news = false;
    host->published = host->now;
    pthread_mutex_lock(&host->lock);
    memset(host->states, 0, sizeof host->states);
    tl_osd_ctl_counters(host->ctl, &host->counters);
    tl_osd_ctl_each(host->ctl, publish_link, host);
    pthread_mutex_unlock(&host->lock);
}

static void wait_for_news(struct tl_osd_host *host, int64_t until, bool stopping)
{
    zmq_pollitem_t items[3] = {
        {.socket = host->router, .events = ZMQ_POLLIN},
        {.socket = host->monitor, .events = ZMQ_POLLIN},
        {.fd = host->stop_fd, .events = ZMQ_POLLIN},
    };
    struct due due = {until};
    sooner(&due, tl_osd_ctl_due(host->ctl));
    sooner(&due, tl_osd_silent_due(&host->silent));
    if (host->news)
        sooner(&due, host->published + PUBLISH_MS);
    tl_osd_ctl_each(host->ctl, due_of_link, &due);
    const int64_t left = due.at < 0 ? -1 : due.at > host->now ? due.at - host->now : 0;
    (void)tl_libzmq.poll(items, stopping ? 2 : 3, (long)left);
}

static bool told_to_stop(const struct tl_osd_host *host)
{
    uint64_t value;
    return read(host->stop_fd, &value, sizeof value) == sizeof value;
}

static void *run(void *argument)
{
    struct tl_osd_host *const host = argument;
    bool stopping = false, drained = true;
    int64_t until = -1; /* deadline for deactivating modules */
    for (;;) {
        if (drained)
            wait_for_news(host, until, stopping);
        host->now = tl_monotonic_ms();
        if (!stopping && told_to_stop(host)) {
            stopping = true;
            until = host->now + STOP_MS;
            (void)!tl_osd_ctl_stop(host->ctl, host->now);
        }
        drain_monitor(host);
        drained = take_messages(host);
        if (drained) {
            tl_osd_ctl_settle(host->ctl);
            ask_the_silent(host);
        }
        const int64_t due = tl_osd_ctl_due(host->ctl);
        if (due >= 0 && host->now >= due) {
            (void)!tl_osd_ctl_tick(host->ctl, host->now);
            host->news = true;
        }
        tl_osd_ctl_each(host->ctl, flush_link, host);
        publish(host);
        if (stopping && (host->now >= until || (drained && tl_osd_ctl_stopped(host->ctl))))
            return NULL;
    }
}

/* ---- life --------------------------------------------------------------------------------- */

static int set(void *socket, int option, int value)
{
    return tl_libzmq.setsockopt(socket, option, &value, sizeof value);
}

/* Connect to our own socket: the id of this connection is what later ones are counted from. */
static bool learn_first_id(struct tl_osd_host *host)
{
    void *const first = tl_libzmq.socket(host->zmq, ZMQ_DEALER);
    const bool done = first && set(first, ZMQ_LINGER, 0) == 0 &&
                      tl_libzmq.bind(host->router, FIRST_NAME) == 0 &&
                      tl_libzmq.connect(first, FIRST_NAME) == 0 &&
                      tl_libzmq.send(first, "", 0, 0) == 0 && receive(host) > 0;
    if (done)
        tl_osd_silent_init(&host->silent, frame_of(&host->frames[0]));
    if (first)
        tl_libzmq.close(first);
    return done;
}

static bool open_sockets(struct tl_osd_host *host, bool ipv6)
{
    const int64_t max_message = MAX_MESSAGE;
    host->zmq = tl_libzmq.ctx_new();
    host->router = host->zmq ? tl_libzmq.socket(host->zmq, ZMQ_ROUTER) : NULL;
    host->monitor = host->router ? tl_libzmq.socket(host->zmq, ZMQ_PAIR) : NULL;
    return host->monitor && set(host->router, ZMQ_IPV6, ipv6) == 0 &&
           set(host->router, ZMQ_ROUTER_MANDATORY, 1) == 0 &&
           set(host->router, ZMQ_LINGER, 200) == 0 &&
           set(host->router, ZMQ_RCVHWM, QUEUE_IN) == 0 &&
           set(host->router, ZMQ_SNDHWM, QUEUE_OUT) == 0 &&
           /* a machine that vanished silently is detected after about two minutes */
           set(host->router, ZMQ_TCP_KEEPALIVE, 1) == 0 &&
           set(host->router, ZMQ_TCP_KEEPALIVE_IDLE, 30) == 0 &&
           set(host->router, ZMQ_TCP_KEEPALIVE_INTVL, 15) == 0 &&
           tl_libzmq.setsockopt(host->router, ZMQ_MAXMSGSIZE, &max_message, sizeof max_message) ==
               0 &&
           tl_libzmq.socket_monitor(host->router, MONITOR_NAME,
                                    ZMQ_EVENT_DISCONNECTED | ZMQ_EVENT_HANDSHAKE_SUCCEEDED) == 0 &&
           set(host->monitor, ZMQ_LINGER, 0) == 0 &&
           tl_libzmq.connect(host->monitor, MONITOR_NAME) == 0 && learn_first_id(host);
}

static int bind_router(struct tl_osd_host *host, const char *text, struct tl_fail *fail)
{
    struct tl_address address;
    char plain[80], endpoint[96];
    int rc = tl_address_parse(&address, text, true, fail);
    if (rc < 0)
        return rc;
    if (!open_sockets(host, address.at.ss_family == AF_INET6))
        return tl_fail_set(fail, TL_IO, "ZeroMQ: %s", tl_libzmq.strerror(errno));
    snprintf(endpoint, sizeof endpoint, "tcp://%s", tl_address_text(&address, plain, sizeof plain));
    if (tl_libzmq.bind(host->router, endpoint))
        return tl_fail_set(fail, TL_IO, "cannot listen on %s: %s", endpoint,
                           tl_libzmq.strerror(errno));
    size_t n = sizeof host->url;
    rc = tl_libzmq.getsockopt(host->router, ZMQ_LAST_ENDPOINT, host->url, &n);
    return rc ? tl_fail_set(fail, TL_IO, "ZeroMQ: %s", tl_libzmq.strerror(errno)) : TL_OK;
}

int tl_osd_host_new(struct tl_osd_host **out, struct tl_lake *lake,
                    const struct tl_osd_host_options *options, void (*log)(const char *line),
                    struct tl_fail *fail)
{
    int rc = tl_libzmq_load(fail);
    if (rc < 0)
        return rc;
    struct tl_osd_host *const host = calloc(1, sizeof *host);
    if (!host)
        return TL_NOMEM;
    const struct tl_osd_ctl_sink sink = {.context = host,
                                         .send = on_send,
                                         .opened = on_opened,
                                         .enumerated = on_enumerated,
                                         .packet = on_packet,
                                         .closed = on_closed,
                                         .log = on_log};
    const struct tl_osd_ctl_options how = {options->start, options->reset, options->answer_ms};
    host->lake = lake;
    host->log = log;
    pthread_mutex_init(&host->lock, NULL);
    for (size_t i = 0; i < 3; i++)
        tl_libzmq.msg_init(&host->frames[i]);
    snprintf(host->rig, sizeof host->rig, "%s", options->rig);
    host->shards = options->shards;
    host->index = options->index;
    host->setup = strdup(options->setup);
    host->stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    rc = host->setup && host->stop_fd >= 0 ? TL_OK : TL_NOMEM;
    if (rc == TL_OK)
        rc = tl_osd_ctl_new(&host->ctl, &sink, &how);
    if (rc == TL_OK)
        rc = bind_router(host, options->address, fail);
    if (rc < 0) {
        tl_osd_host_free(host);
        return rc;
    }
    *out = host;
    return TL_OK;
}

const char *tl_osd_host_url(const struct tl_osd_host *host)
{
    return host->url;
}

int tl_osd_host_start(struct tl_osd_host *host, struct tl_fail *fail)
{
    if (pthread_create(&host->thread, NULL, run, host))
        return tl_fail_set(fail, TL_NOMEM, "no thread for the host controller");
    pthread_setname_np(host->thread, "osd");
    host->started = true;
    return TL_OK;
}

void tl_osd_host_free(struct tl_osd_host *host)
{
    if (!host)
        return;
    const uint64_t one = 1;
    if (host->started) {
        (void)!write(host->stop_fd, &one, sizeof one);
        pthread_join(host->thread, NULL);
    }
    tl_osd_ctl_free(host->ctl); /* completes the traces */
    for (size_t i = 0; i < 3; i++)
        tl_libzmq.msg_close(&host->frames[i]);
    if (host->monitor)
        tl_libzmq.close(host->monitor);
    if (host->router)
        tl_libzmq.close(host->router);
    if (host->zmq)
        tl_libzmq.ctx_term(host->zmq);
    if (host->stop_fd >= 0)
        close(host->stop_fd);
    pthread_mutex_destroy(&host->lock);
    free(host->setup);
    free(host);
}

/* ---- metrics ------------------------------------------------------------------------------ */

static int add_states(struct tl_buf *out, const struct state *states)
{
    static const struct {
        const char *name, *help;
    } all[] = {
        {"osd_gateway_state", "how far the devices behind the gateways are brought up"},
        {"osd_gateway_modules", "modules that enumeration found"},
        {"osd_gateway_packets_total", "DI packets of the gateway at present"},
        {"osd_gateway_bytes_total", "bytes of them, as they are stored"},
    };
    int rc = TL_OK;
    for (unsigned k = 0; k < sizeof all / sizeof all[0] && rc >= 0; k++) {
        rc = tl_metric_begin(out, all[k].name, all[k].help);
        for (unsigned i = 0; i < TL_OSD_SUBNETS && rc >= 0; i++) {
            const struct state *const s = &states[i];
            const uint64_t values[] = {1, s->modules, s->packets, s->bytes};
            if (!s->here)
                continue;
            rc = tl_metric_sample(out, all[k].name, values[k], "subnet=\"%u\"%s%s%s", i,
                                  k ? "" : ",state=\"", k ? "" : tl_osd_phase_name(s->phase),
                                  k ? "" : "\"");
        }
    }
    return rc;
}

int tl_osd_host_metrics(struct tl_osd_host *host, struct tl_buf *out)
{
    struct state states[TL_OSD_SUBNETS];
    if (!host)
        return TL_OK;
    pthread_mutex_lock(&host->lock);
    const struct tl_osd_ctl_counters c = host->counters;
    memcpy(states, host->states, sizeof states);
    pthread_mutex_unlock(&host->lock);
    const struct tl_metric all[] = {
        {"osd_gateways", "registered gateways", c.gateways},
        {"osd_host_modules", "addresses given to host modules", c.hosts},
        {"osd_messages_total", "messages received", c.messages},
        {"osd_packets_total", "DI packets received", c.packets},
        {"osd_routed_total", "DI packets passed on", c.routed},
        {"osd_undelivered_total", "DI packets for nobody who is there", c.undelivered},
        {"osd_malformed_total", "messages dropped", c.malformed},
        {"osd_refused_total", "requests answered by NACK", c.refused},
    };
    const int rc = tl_metrics_add(out, all, sizeof all / sizeof all[0]);
    return rc < 0 ? rc : add_states(out, states);
}
