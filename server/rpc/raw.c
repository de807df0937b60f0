/* SPDX-License-Identifier: MIT */
/*
 * Accepts and dials raw TCP connections, one thread and one capture for each. A thread that waits
 * for the disk stops reading, and TCP then tells the rig to wait without any protocol.
 */
#include "rpc/raw.h"

#include "lake_rows.h"
#include "lake_traces.h"
#include "net/address.h"
#include "net/waiter.h"
#include "osdhost/capture.h"
#include "osdhost/dial.h"
#include "osdhost/join.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define MAX_CONNECTIONS 64
#define PIECE           (256u << 10)
#define LOOK_MS         20 /* between two checks whether bytes are durable that others wait for */
#define DIAL_FIRST_MS   500
#define DIAL_LAST_MS    10000
#define CONTROL_MS      1000
#define QUIET_S         30 /* then the kernel probes whether the rig is still there */

struct tl_raw {
    struct tl_lake *lake;
    void (*log)(const char *line);
    struct tl_waiter waiter; /* its lock guards the list and the counts */
    struct feed *feeds;
    unsigned connections;
    unsigned threads;
    int stop_fd; /* readable once we are stopping */
};

/* A listener, a source, or one connection of a listener. Has its own thread. */
struct feed {
    struct feed *next; /* in the list of those that own their spec */
    struct tl_raw *raw;
    struct tl_raw_spec spec; /* for a connection: borrowed from its listener */
    char from[128];          /* address of the other end */
    int fd;
};

static void say(struct tl_raw *raw, const char *format, ...) TL_PRINTF(2, 3);

static void say(struct tl_raw *raw, const char *format, ...)
{
    char line[512];
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    raw->log(line);
}

/* Wait until `fd` has the events. False: stopping, or `ms` (negative: no limit) elapsed. */
static bool wait_for(const struct tl_raw *raw, int fd, short events, int ms)
{
    struct pollfd p[2] = {{.fd = raw->stop_fd, .events = POLLIN}, {.fd = fd, .events = events}};
    int rc;
    do
        rc = poll(p, fd < 0 ? 1 : 2, ms);
    while (rc < 0 && errno == EINTR);
    return rc > 0 && !p[0].revents;
}

static bool stopping(const struct tl_raw *raw)
{
    struct pollfd p = {.fd = raw->stop_fd, .events = POLLIN};
    return poll(&p, 1, 0) > 0;
}

/* ---- one connection ----------------------------------------------------------------------- */

static void log_line(void *context, const char *line)
{
    say(context, "%s", line);
}

/* Time until something must be done without input; -1: nothing. */
static int time_left(struct tl_osd_capture *c, int64_t now)
{
    const int64_t due = tl_osd_capture_due(c);
    const int64_t left = due < 0 ? -1 : due > now ? due - now : 0;
    const bool soon = tl_osd_capture_ahead(c) && (left < 0 || left > LOOK_MS);
    return soon ? LOOK_MS : (int)left;
}

/* Read the next piece into the capture. > 0 bytes, TL_AGAIN, TL_EOF; TL_IO, with errno. */
static int read_piece(const struct feed *feed, int fd, uint8_t *piece, struct tl_osd_capture *c)
{
    /* If the disk is full the rig waits: TCP provides back-pressure. */
    const bool closed = tl_osd_capture_ahead(c);
    if (!wait_for(feed->raw, closed ? -1 : fd, POLLIN, time_left(c, tl_monotonic_ms())) || closed)
        return TL_AGAIN;
    const ssize_t n = recv(fd, piece, PIECE, MSG_DONTWAIT);
    if (n < 0)
        return errno == EINTR || errno == EAGAIN ? TL_AGAIN : TL_IO;
    if (n == 0)
        return TL_EOF;
    return tl_osd_capture_add(c, (struct tl_bytes){piece, (size_t)n}, tl_monotonic_ms()) < 0
               ? TL_NOMEM
               : 1;
}

/* Read until the connection ends. Returns whether any byte was received. */
static bool read_capture(const struct feed *feed, int fd)
{
    struct tl_osd_capture c;
    uint8_t *const piece = malloc(PIECE);
    int rc = piece ? TL_OK : TL_NOMEM;
    bool any = false, ended = !piece;
    const char *why = "ended";
    tl_osd_capture_init(&c, feed->raw->lake, feed->spec.rig, feed->spec.setup, feed->raw, log_line);
    c.from = feed->from;
    c.shards = feed->spec.shards;
    c.index = feed->spec.index;
    c.at_once = true;
    /* Received data is stored as soon as there is space; any other failure ends it. */
    while (!stopping(feed->raw) &&
           (c.retry ? c.waits && (!ended || tl_osd_capture_pending(&c)) : !ended)) {
        if (!ended) {
            rc = read_piece(feed, fd, piece, &c);
            any = any || rc > 0;
            ended = rc < 0 && rc != TL_AGAIN;
            if (ended && rc != TL_EOF)
                why = rc == TL_IO ? strerror(errno) : tl_err_name(rc);
        } else {
            (void)wait_for(feed->raw, -1, 0, time_left(&c, tl_monotonic_ms()));
        }
        tl_osd_capture_flush(&c, tl_monotonic_ms());
    }
    free(piece);
    if (!ended)
        why = stopping(feed->raw) ? "cut, the server stops" : "cut, it could not be stored";
    tl_osd_capture_end(&c, why);
    return any;
}

/* The same, also activating the device's modules, if requested. */
static bool read_device(const struct feed *feed, int fd, bool *little_endian, bool try_both)
{
    const struct tl_raw_spec *const spec = &feed->spec;
    if (!spec->start)
        return read_capture(feed, fd);
    const struct tl_osd_dial device = {
        .lake = feed->raw->lake,
        .address = spec->address,
        .rig = spec->rig,
        .setup = spec->setup,
        .shards = spec->shards,
        .index = spec->index,
        .start = spec->start,
        .reset = spec->reset,
        .log = feed->raw->log,
        .little_endian = little_endian,
        .try_both = try_both,
        .fd = fd,
        .stop_fd = feed->raw->stop_fd,
    };
    return tl_osd_dial_run(&device);
}

static void watch_peer(int fd)
{
    const int on = 1;
    const int quiet = QUIET_S;
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &quiet, sizeof quiet);
}

/* ---- threads ------------------------------------------------------------------------------ */

static void thread_ends(struct tl_raw *raw, bool connection)
{
    pthread_mutex_lock(&raw->waiter.lock);
    raw->threads--;
    raw->connections -= connection;
    pthread_cond_broadcast(&raw->waiter.cond);
    pthread_mutex_unlock(&raw->waiter.lock);
}

static int start_thread(struct tl_raw *raw, void *(*run)(void *), struct feed *feed,
                        bool connection)
{
    pthread_t thread;
    pthread_mutex_lock(&raw->waiter.lock);
    int rc = connection && raw->connections >= MAX_CONNECTIONS ? TL_LIMIT : TL_OK;
    if (rc == TL_OK && pthread_create(&thread, NULL, run, feed))
        rc = TL_NOMEM;
    if (rc == TL_OK) {
        pthread_setname_np(thread, "raw");
        pthread_detach(thread);
        raw->threads++;
        raw->connections += connection;
    }
    pthread_mutex_unlock(&raw->waiter.lock);
    return rc;
}

static void *run_connection(void *argument)
{
    struct feed *const feed = argument;
    struct tl_raw *const raw = feed->raw;
    bool little_endian = feed->spec.order == 'l';
    (void)read_device(feed, feed->fd, &little_endian, false);
    close(feed->fd);
    free(feed);
    thread_ends(raw, true);
    return NULL;
}

static void accept_one(struct feed *listener)
{
    struct tl_address from = {.n = sizeof from.at};
    const int fd = accept4(listener->fd, (struct sockaddr *)&from.at, &from.n, SOCK_CLOEXEC);
    struct feed *const feed = fd >= 0 ? malloc(sizeof *feed) : NULL;
    if (feed) {
        *feed = *listener;
        feed->fd = fd;
        tl_address_text(&from, feed->from, sizeof feed->from);
        watch_peer(fd);
        if (start_thread(listener->raw, run_connection, feed, true) == TL_OK)
            return;
        free(feed);
    }
    if (fd >= 0) {
        say(listener->raw, "%s: refused, too many connections", listener->spec.address);
        close(fd);
    } else if (errno == EMFILE || errno == ENFILE) {
        (void)wait_for(listener->raw, -1, 0, 100);
    }
}

static void *run_listener(void *argument)
{
    struct feed *const feed = argument;
    while (wait_for(feed->raw, feed->fd, POLLIN, -1))
        accept_one(feed);
    thread_ends(feed->raw, false);
    return NULL;
}

/* A connected socket, or -1 with errno. `next`: connect to the port after the given one. */
static int dial(const struct feed *feed, bool next, int ms)
{
    struct tl_address address;
    if (tl_address_parse(&address, feed->spec.address, false, NULL) < 0) {
        errno = EHOSTUNREACH;
        return -1;
    }
    /* The port is at the same offset for both address families. */
    struct sockaddr_in *const in = (struct sockaddr_in *)&address.at;
    in->sin_port = htons((uint16_t)(ntohs(in->sin_port) + next));
    const int fd = socket(address.at.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -1;
    int error = connect(fd, (struct sockaddr *)&address.at, address.n) ? errno : 0;
    if (error == EINPROGRESS) {
        socklen_t n = sizeof error;
        if (!wait_for(feed->raw, fd, POLLOUT, ms))
            error = ETIMEDOUT;
        else
            getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &n);
    }
    if (!error)
        return fd;
    close(fd);
    errno = error;
    return -1;
}

/* Returns whether any byte was received. */
static bool read_source(const struct feed *feed, int fd, bool *little_endian)
{
    const struct tl_raw_spec *const spec = &feed->spec;
    /* A GLIP device is not ready until its control port is connected as well. */
    const int control = spec->is_di && !spec->no_control ? dial(feed, true, CONTROL_MS) : -1;
    const bool any = read_device(feed, fd, little_endian, !spec->order);
    if (control >= 0)
        close(control);
    return any;
}

/* What was logged last of a source that cannot be reached, so that it is not repeated. */
struct reported {
    char text[200];
};

static void say_once(const struct feed *feed, struct reported *reported, const char *why)
{
    if (stopping(feed->raw) || !strcmp(reported->text, why))
        return;
    snprintf(reported->text, sizeof reported->text, "%s", why);
    say(feed->raw, "%s: %s; trying again", feed->spec.address, why);
}

/* One connection to a device. Returns whether any byte was received; this and below. */
static bool visit_device(const struct feed *feed, bool *little_endian, struct reported *reported)
{
    const int fd = dial(feed, false, DIAL_LAST_MS);
    if (fd < 0) {
        say_once(feed, reported, strerror(errno));
        return false;
    }
    watch_peer(fd);
    reported->text[0] = 0;
    const bool any = read_source(feed, fd, little_endian);
    close(fd);
    return any;
}

/* One connection to a host controller. */
static bool visit_controller(const struct feed *feed, struct reported *reported)
{
    const struct tl_raw_spec *const spec = &feed->spec;
    const struct tl_osd_join join = {.lake = feed->raw->lake,
                                     .address = spec->address,
                                     .rig = spec->rig,
                                     .setup = spec->setup,
                                     .shards = spec->shards,
                                     .index = spec->index,
                                     .subnet = spec->subnet,
                                     .start = spec->start,
                                     .reset = spec->reset,
                                     .log = feed->raw->log,
                                     .stop_fd = feed->raw->stop_fd};
    struct tl_fail fail = {.offset = TL_NO_OFFSET};
    const char *why;
    const bool any = tl_osd_join_run(&join, &why, &fail);
    say_once(feed, reported, why);
    if (any)
        reported->text[0] = 0;
    return any;
}

static void *run_source(void *argument)
{
    struct feed *const feed = argument;
    struct tl_raw *const raw = feed->raw;
    bool little_endian = feed->spec.order == 'l';
    int pause = DIAL_FIRST_MS;
    struct reported reported = {0};
    while (!stopping(raw)) {
        if (feed->spec.joins ? visit_controller(feed, &reported)
                             : visit_device(feed, &little_endian, &reported))
            pause = DIAL_FIRST_MS;
        (void)wait_for(raw, -1, 0, pause);
        pause = pause * 2 > DIAL_LAST_MS ? DIAL_LAST_MS : pause * 2;
    }
    thread_ends(raw, false);
    return NULL;
}

/* ---- life --------------------------------------------------------------------------------- */

int tl_raw_new(struct tl_raw **out, struct tl_lake *lake, void (*log)(const char *line))
{
    struct tl_raw *const raw = calloc(1, sizeof *raw);
    if (!raw)
        return TL_NOMEM;
    raw->stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (raw->stop_fd < 0) {
        free(raw);
        return TL_IO;
    }
    raw->lake = lake;
    raw->log = log;
    tl_waiter_init(&raw->waiter);
    *out = raw;
    return TL_OK;
}

static int add_feed(struct tl_raw *raw, struct tl_raw_spec *spec, int fd, void *(*run)(void *))
{
    struct feed *const feed = calloc(1, sizeof *feed);
    if (!feed)
        return TL_NOMEM;
    *feed = (struct feed){.next = raw->feeds, .raw = raw, .spec = *spec, .fd = fd};
    snprintf(feed->from, sizeof feed->from, "%s", spec->address);
    const int rc = start_thread(raw, run, feed, false);
    if (rc < 0) {
        free(feed);
        return rc;
    }
    raw->feeds = feed;
    spec->setup = NULL;
    return TL_OK;
}

static bool has_connection(const char *labels)
{
    static const char key[] = TL_LABEL_CONNECTION "=";
    const char *const at = labels ? strstr(labels, key) : NULL;
    return at && (at == labels || at[-1] == '\n');
}

static void unheard(void *context, uint64_t offset)
{
}

/* Its connection is gone. */
static void end_orphan(struct tl_lake *lake, const struct tl_trace_row *row,
                       void (*log)(const char *line))
{
    const struct tl_ingest_request request = {.rig = row->rig, .trace = row->id, .resume = true};
    struct tl_ingest *ingest;
    struct tl_fail fail = {.offset = TL_NO_OFFSET};
    char trace[64], line[400];
    uint64_t at = 0;
    int rc = tl_ingest_open(lake, &request, unheard, NULL, &ingest, trace, &at, &fail);
    if (rc >= 0) {
        rc = tl_ingest_finish(ingest, &at, &fail);
        tl_ingest_close(ingest);
    }
    snprintf(line, sizeof line, "trace %s, %llu bytes: %s", row->id, (unsigned long long)at,
             rc < 0 ? fail.text : "complete, its connection ended with an earlier server");
    log(line);
}

int tl_raw_end_orphans(struct tl_lake *lake, void (*log)(const char *line))
{
    struct tl_trace_list list;
    const int rc = tl_lake_at_hand(lake, &list);
    if (rc < 0)
        return rc;
    for (size_t i = 0; i < list.n; i++)
        if (list.rows[i].state == TL_TRACE_LIVE && has_connection(list.rows[i].labels))
            end_orphan(lake, &list.rows[i], log);
    tl_trace_list_free(&list);
    return TL_OK;
}

int tl_raw_listen(struct tl_raw *raw, struct tl_raw_spec *spec, char url[static 96],
                  struct tl_fail *fail)
{
    struct tl_address address;
    char text[80];
    int rc = tl_address_parse(&address, spec->address, true, fail);
    if (rc < 0)
        return rc;
    const int fd = tl_address_listen(&address, fail);
    if (fd < 0)
        return fd;
    snprintf(url, 96, "tcp://%s", tl_address_text(&address, text, sizeof text));
    rc = add_feed(raw, spec, fd, run_listener);
    if (rc < 0)
        close(fd);
    return rc;
}

int tl_raw_dial(struct tl_raw *raw, struct tl_raw_spec *spec, struct tl_fail *fail)
{
    return add_feed(raw, spec, -1, run_source);
}

void tl_raw_free(struct tl_raw *raw)
{
    if (!raw)
        return;
    const uint64_t one = 1;
    (void)!write(raw->stop_fd, &one, sizeof one);
    pthread_mutex_lock(&raw->waiter.lock);
    while (raw->threads)
        tl_waiter_wait_until_locked(&raw->waiter, -1);
    pthread_mutex_unlock(&raw->waiter.lock);
    while (raw->feeds) {
        struct feed *const next = raw->feeds->next;
        tl_raw_spec_fini(&raw->feeds->spec);
        if (raw->feeds->fd >= 0)
            close(raw->feeds->fd);
        free(raw->feeds);
        raw->feeds = next;
    }
    tl_waiter_fini(&raw->waiter);
    close(raw->stop_fd);
    free(raw);
}
