/* SPDX-License-Identifier: MIT */
/*
 * Asks a host controller for an address, brings up a device from there and stores what it sends. A
 * lost connection ends all, although ZeroMQ would make another one: a controller that was started
 * again does not know our address.
 */
#include "osdhost/join.h"

#include "base/say.h"
#include "net/waiter.h"
#include "osdhost/bringup.h"
#include "osdhost/capture.h"
#include "osdhost/zmq_library.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_WORDS    65535
#define MIN_WORDS    3
#define ANSWER_MS    5000 /* for an address: the controller may only just be starting */
#define STOP_MS      2000
#define BATCH        2048 /* packets between two checks of everything else */
#define MONITOR_NAME "inproc://monitor"

/* Types of messages, their first part. */
#define MANAGEMENT 'M'
#define DATA       'D'

struct guest {
    const struct tl_osd_join *join;
    void *zmq, *socket, *monitor;
    struct tl_osd_bringup bringup;
    struct tl_osd_capture capture;
    uint16_t *words;   /* room for the longest packet */
    uint8_t *datagram; /* and for the same as it is stored */
    uint16_t address;  /* ours */
    int64_t now;
    int64_t until;   /* deadline for deactivating modules, -1: not needed */
    bool any;        /* a packet came */
    const char *why; /* it ends; NULL: it does not */
};

static void on_log(void *context, const char *line)
{
    const struct guest *const g = context;
    char text[600];
    snprintf(text, sizeof text, "%s: %s", g->join->address, line);
    g->join->log(text);
}

static int set(void *socket, int option, int value)
{
    return tl_libzmq.setsockopt(socket, option, &value, sizeof value);
}

static bool send_message(struct guest *g, char type, const void *payload, size_t n)
{
    return tl_libzmq.send(g->socket, &type, 1, ZMQ_SNDMORE | ZMQ_DONTWAIT) >= 0 &&
           tl_libzmq.send(g->socket, payload, n, ZMQ_DONTWAIT) >= 0;
}

/* Receive a message of a type and a payload of at most `size` bytes. Returns its type, '?' for any
 * other; 0: none. */
static char receive(struct guest *g, void *payload, size_t size, size_t *n)
{
    char type = 0;
    zmq_msg_t frame;
    *n = 0;
    tl_libzmq.msg_init(&frame);
    for (unsigned i = 0; tl_libzmq.msg_recv(&frame, g->socket, ZMQ_DONTWAIT) >= 0; i++) {
        const size_t all = tl_libzmq.msg_size(&frame);
        const uint8_t *const p = tl_libzmq.msg_data(&frame);
        if (i == 0)
            type = all == 1 && (p[0] == MANAGEMENT || p[0] == DATA) ? (char)p[0] : '?';
        if (i == 1 && all && all <= size) {
            memcpy(payload, p, all);
            *n = all;
        }
        if (!tl_libzmq.msg_more(&frame))
            break;
    }
    tl_libzmq.msg_close(&frame);
    return type;
}

/* ---- connection --------------------------------------------------------------------------- */

static bool open_socket(struct guest *g)
{
    const int64_t max_message = 2 * MAX_WORDS;
    char endpoint[160];
    snprintf(endpoint, sizeof endpoint, "tcp://%s", g->join->address);
    g->zmq = tl_libzmq.ctx_new();
    g->socket = g->zmq ? tl_libzmq.socket(g->zmq, ZMQ_DEALER) : NULL;
    g->monitor = g->socket ? tl_libzmq.socket(g->zmq, ZMQ_PAIR) : NULL;
    return g->monitor && set(g->socket, ZMQ_IPV6, 1) == 0 && set(g->socket, ZMQ_LINGER, 200) == 0 &&
           set(g->monitor, ZMQ_LINGER, 0) == 0 &&
           tl_libzmq.setsockopt(g->socket, ZMQ_MAXMSGSIZE, &max_message, sizeof max_message) == 0 &&
           tl_libzmq.socket_monitor(g->socket, MONITOR_NAME, ZMQ_EVENT_DISCONNECTED) == 0 &&
           tl_libzmq.connect(g->monitor, MONITOR_NAME) == 0 &&
           tl_libzmq.connect(g->socket, endpoint) == 0;
}

static void close_socket(struct guest *g)
{
    if (g->monitor)
        tl_libzmq.close(g->monitor);
    if (g->socket)
        tl_libzmq.close(g->socket);
    if (g->zmq)
        tl_libzmq.ctx_term(g->zmq);
}

/* Wait for a message, the end of the connection, or that we are to stop. False: it ends. */
static bool wait_for_news(struct guest *g, int64_t until, bool reads)
{
    zmq_pollitem_t items[] = {
        {.socket = g->monitor, .events = ZMQ_POLLIN},
        {.fd = g->join->stop_fd, .events = ZMQ_POLLIN},
        {.socket = g->socket, .events = ZMQ_POLLIN},
    };
    if (g->until >= 0) /* that we are to stop is known: it would wake us again and again */
        items[1] = items[2];
    const int n = 1 + (g->until < 0) + reads;
    const int64_t left = until < 0 ? -1 : until > g->now ? until - g->now : 0;
    (void)tl_libzmq.poll(items, n, (long)left);
    g->now = tl_monotonic_ms();
    if (items[0].revents)
        g->why = "the connection to the host controller has ended";
    if (g->until < 0 && items[1].revents) {
        g->until = g->now + STOP_MS;
        tl_osd_bringup_stop(&g->bringup, g->now);
    }
    return !g->why;
}

/* ---- address ------------------------------------------------------------------------------ */

static void take_address(struct guest *g, const char *text)
{
    char *end;
    const unsigned long number = strtoul(text, &end, 10);
    if (*text < '0' || *text > '9' || *end || number > UINT16_MAX)
        g->why = "the host controller gives no address";
    else
        g->address = (uint16_t)number;
}

static void ask_for_address(struct guest *g)
{
    static const char request[] = "DIADDR_REQUEST";
    char text[16];
    size_t n;
    const int64_t until = g->now + ANSWER_MS;
    if (!send_message(g, MANAGEMENT, request, sizeof request - 1))
        g->why = "the host controller cannot be reached";
    while (!g->why && !g->address && g->until < 0) {
        if (g->now >= until)
            g->why = "no host controller answers";
        else if (wait_for_news(g, until, true) &&
                 receive(g, text, sizeof text - 1, &n) == MANAGEMENT) {
            text[n] = 0;
            take_address(g, text);
        }
    }
}

static void give_address_back(struct guest *g)
{
    static const char request[] = "DIADDR_RELEASE";
    if (g->address)
        (void)send_message(g, MANAGEMENT, request, sizeof request - 1);
}

/* ---- packets ------------------------------------------------------------------------------ */

static void take_packet(struct guest *g, const uint16_t *words, size_t n)
{
    tl_put_be16(g->datagram, (uint16_t)n);
    for (size_t i = 0; i < n; i++)
        tl_put_be16(g->datagram + 2 * (i + 1), words[i]);
    g->any = true;
    (void)tl_osd_bringup_take(&g->bringup, words, n, g->now);
    if (tl_osd_capture_add(&g->capture, (struct tl_bytes){g->datagram, 2 * (n + 1)}, g->now) < 0)
        g->why = tl_err_name(TL_NOMEM);
}

static void take_packets(struct guest *g)
{
    size_t n;
    for (unsigned i = 0; i < BATCH && !g->why; i++) {
        const char type = receive(g, g->words, 2 * MAX_WORDS, &n);
        if (!type)
            return;
        if (type == DATA && n % 2 == 0 && n >= 2 * MIN_WORDS)
            take_packet(g, g->words, n / 2);
    }
}

static void send_requests(struct guest *g)
{
    uint16_t words[TL_OSD_REQUEST_WORDS];
    for (unsigned n; (n = tl_osd_bringup_next(&g->bringup, words, g->now)) > 0;)
        (void)send_message(g, DATA, words, 2 * n); /* asked again if it is not answered */
}

/* ---- from begin to end -------------------------------------------------------------------- */

static int64_t sooner(int64_t a, int64_t b)
{
    return a < 0 || (b >= 0 && b < a) ? b : a;
}

static void trace(struct guest *g)
{
    while (!g->why) {
        send_requests(g);
        if (g->until >= 0 && (g->bringup.phase == TL_OSD_DONE || g->now >= g->until)) {
            g->why = "the server stops";
            break;
        }
        const int64_t due =
            sooner(tl_osd_bringup_due(&g->bringup), tl_osd_capture_due(&g->capture));
        const bool reads = !tl_osd_capture_full(&g->capture);
        if (wait_for_news(g, sooner(due, g->until), reads) && reads)
            take_packets(g);
        tl_osd_bringup_tick(&g->bringup, g->now);
        if (g->bringup.enumerated)
            tl_osd_capture_describe(&g->capture, &g->bringup);
        tl_osd_capture_flush(&g->capture, g->now);
    }
}

static void bring_up(struct guest *g)
{
    const struct tl_osd_join *const join = g->join;
    tl_say(on_log, g, "host module %u.%u, the device is subnet %u", g->address / TL_OSD_LOCALS,
           g->address % TL_OSD_LOCALS, join->subnet);
    tl_osd_bringup_init(&g->bringup, join->subnet, g->address);
    g->bringup.start = join->start;
    g->bringup.reset = join->reset;
    if (join->answer_ms)
        g->bringup.answer_ms = join->answer_ms;
    g->bringup.context = g;
    g->bringup.log = on_log;
    tl_osd_capture_init(&g->capture, join->lake, join->rig, join->setup, g, on_log);
    g->capture.from = join->address;
    g->capture.shards = join->shards;
    g->capture.index = join->index;
    if (tl_osd_bringup_begin(&g->bringup, g->now) < 0)
        g->why = tl_err_name(TL_NOMEM);
    trace(g);
    take_packets(g); /* what came before the connection ended */
    tl_osd_capture_end(&g->capture, g->why);
    tl_osd_bringup_fini(&g->bringup);
}

bool tl_osd_join_run(const struct tl_osd_join *join, const char **why, struct tl_fail *reason)
{
    struct guest g = {.join = join, .now = tl_monotonic_ms(), .until = -1};
    if (tl_libzmq_load(reason) < 0) {
        *why = reason->text;
        return false;
    }
    g.words = malloc(2 * MAX_WORDS);
    g.datagram = malloc(2 * (MAX_WORDS + 1));
    if (!g.words || !g.datagram)
        g.why = tl_err_name(TL_NOMEM);
    else if (!open_socket(&g))
        g.why = tl_libzmq.strerror(errno);
    else
        ask_for_address(&g);
    if (g.address && !g.why)
        bring_up(&g);
    if (g.socket)
        give_address_back(&g);
    *why = g.why ? g.why : "the server stops";
    close_socket(&g);
    free(g.words);
    free(g.datagram);
    return g.any;
}
