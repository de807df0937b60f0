/* SPDX-License-Identifier: MIT */
/*
 * Accepts and dials raw TCP connections, one thread and one capture for each. A thread that waits
 * for the disk stops reading, and TCP then tells the rig to wait without any protocol.
 */
#include "rpc/raw.h"

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
#define REDIAL_FIRST_MS 50 /* the same while a trace waits for its source */
#define REDIAL_LAST_MS  1000
/* After so many seconds without bytes the kernel asks whether the rig is still there; a cable that
 * was pulled is an end of the connection after 45 s. */
#define QUIET_S  30
#define PROBE_S  5
#define PROBES_N 3

struct tl_raw {
    struct tl_lake *lake;
    void (*log)(const char *line);
    struct tl_waiter waiter; /* its lock guards the list and the counts */
    struct feed *feeds;
    struct feed *waiting; /* connections of listeners that ended, whose rigs may come back */
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
    char trace[64];          /* that an earlier server did not complete; "": none */
    int fd;                  /* -1: not connected yet */
    /* For a connection of a listener: */
    const struct feed *listener;
    struct feed *next_waiting;
    int wake_fd; /* readable once `fd` is the rig's next connection */
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

/* ---- sockets ------------------------------------------------------------------------------ */

static void watch_peer(int fd)
{
    const int on = 1;
    const int quiet = QUIET_S, interval = PROBE_S, count = PROBES_N;
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &quiet, sizeof quiet);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval, sizeof interval);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &count, sizeof count);
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

/* Are these addresses of the same host, whatever the port? */
static bool same_host(const char *a, const char *b)
{
    const char *const port = strrchr(a, ':');
    const size_t n = port ? (size_t)(port - a) + 1 : strlen(a) + 1;
    return strncmp(a, b, n) == 0 && !strchr(b + n, ':');
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

/* Read until the connection ends: the reason. Sets `*any` if any byte was received. NULL: the
 * server stops, or it could not be stored. */
static const char *read_connection(const struct feed *feed, int fd, uint8_t *piece,
                                   struct tl_osd_capture *c, bool *any)
{
    bool ended = false;
    const char *why = NULL;
    /* Received data is stored as soon as there is space; any other failure ends it. */
    while (!stopping(feed->raw) &&
           (c->retry ? c->waits && (!ended || tl_osd_capture_pending(c)) : !ended)) {
        if (!ended) {
            const int rc = read_piece(feed, fd, piece, c);
            *any = *any || rc > 0;
            ended = rc < 0 && rc != TL_AGAIN;
            if (ended)
                why = rc == TL_EOF ? "ended" : rc == TL_IO ? strerror(errno) : tl_err_name(rc);
        } else {
            (void)wait_for(feed->raw, -1, 0, time_left(c, tl_monotonic_ms()));
        }
        tl_osd_capture_flush(c, tl_monotonic_ms());
    }
    return why;
}

/* ---- waiting for the next connection ------------------------------------------------------- */

/* Wait until a time, or until `fd` is readable (-1: none), and store what could not be stored
 * before. False: stopping, or the time has come. */
static bool rest(const struct feed *feed, struct tl_osd_capture *c, int fd, int64_t until)
{
    for (;;) {
        const int64_t now = tl_monotonic_ms(), left = time_left(c, now);
        tl_osd_capture_flush(c, now);
        if (stopping(feed->raw) || now >= until)
            return false;
        if (wait_for(feed->raw, fd, POLLIN,
                     (int)(left >= 0 && left < until - now ? left : until - now)))
            return true;
    }
}

/* Connect to the source again, with pauses that grow. A socket, or -1. */
static int dial_again(const struct feed *feed, struct tl_osd_capture *c, int *pause, int64_t until)
{
    for (;;) {
        const int64_t now = tl_monotonic_ms();
        (void)rest(feed, c, -1, now + *pause < until ? now + *pause : until);
        *pause = *pause * 2 < REDIAL_LAST_MS ? *pause * 2 : REDIAL_LAST_MS;
        const int64_t left = until - tl_monotonic_ms();
        if (left <= 0 || stopping(feed->raw))
            return -1;
        const int fd = dial(feed, false, (int)(left < CONTROL_MS ? left : CONTROL_MS));
        if (fd >= 0)
            return fd;
    }
}

/* Wait for the rig to connect to the listener again. The socket, or -1. */
static int accept_again(struct feed *feed, struct tl_osd_capture *c, int64_t until)
{
    struct tl_raw *const raw = feed->raw;
    feed->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (feed->wake_fd < 0)
        return -1;
    pthread_mutex_lock(&raw->waiter.lock);
    feed->fd = -1;
    feed->next_waiting = raw->waiting;
    raw->waiting = feed;
    pthread_mutex_unlock(&raw->waiter.lock);
    (void)rest(feed, c, feed->wake_fd, until);
    pthread_mutex_lock(&raw->waiter.lock);
    struct feed **p = &raw->waiting;
    while (*p && *p != feed)
        p = &(*p)->next_waiting;
    if (*p)
        *p = feed->next_waiting;
    pthread_mutex_unlock(&raw->waiter.lock);
    close(feed->wake_fd);
    return feed->fd;
}

/* Give a connection to the one of the listener whose rig comes back from the same address. */
static bool give_back(const struct feed *listener, const char *from, int fd)
{
    struct tl_raw *const raw = listener->raw;
    const uint64_t one = 1;
    pthread_mutex_lock(&raw->waiter.lock);
    struct feed **p = &raw->waiting;
    while (*p && ((*p)->listener != listener || !same_host((*p)->from, from)))
        p = &(*p)->next_waiting;
    struct feed *const feed = *p;
    if (feed) {
        *p = feed->next_waiting;
        feed->fd = fd;
        (void)!write(feed->wake_fd, &one, sizeof one);
    }
    pthread_mutex_unlock(&raw->waiter.lock);
    return feed != NULL;
}

/* Wait for the next connection. A socket, or -1. */
static int reconnect(struct feed *feed, struct tl_osd_capture *c, int *pause, int64_t until)
{
    const int fd =
        feed->spec.dials ? dial_again(feed, c, pause, until) : accept_again(feed, c, until);
    if (fd >= 0)
        watch_peer(fd);
    return fd;
}

static int64_t time_limit(const struct feed *feed)
{
    return tl_monotonic_ms() + (int64_t)feed->spec.rejoin_s * 1000;
}

/*
 * Read until the connection ends, and those after it that continue its trace. `fd` is closed; -1:
 * the first one is waited for. Returns whether any byte was received.
 */
static bool read_capture(struct feed *feed, int fd)
{
    struct tl_osd_capture c;
    uint8_t *const piece = malloc(PIECE);
    const char *why = piece ? NULL : tl_err_name(TL_NOMEM);
    bool any = false;
    int pause = REDIAL_FIRST_MS;
    int64_t until = time_limit(feed);
    tl_osd_capture_init(&c, feed->raw->lake, feed->spec.rig, feed->spec.setup, feed->raw, log_line);
    c.from = feed->from;
    c.shards = feed->spec.shards;
    c.index = feed->spec.index;
    c.at_once = true;
    if (feed->trace[0])
        tl_osd_capture_adopt(&c, feed->trace);
    feed->trace[0] = 0;
    while (piece) {
        bool some = false;
        why = fd >= 0 ? read_connection(feed, fd, piece, &c, &some) : "lost";
        any = any || some;
        if (some) {
            pause = REDIAL_FIRST_MS;
            until = time_limit(feed);
        }
        if (!why || !c.trace[0] || feed->spec.rejoin_s == 0)
            break;
        if (fd >= 0)
            close(fd);
        if (some)
            say(feed->raw, "rig %s: the connection to %s is lost (%s); trace %s waits for it",
                c.rig, feed->from, why, c.trace);
        fd = tl_osd_capture_rejoin(&c) ? reconnect(feed, &c, &pause, until) : -1;
        if (fd < 0)
            break;
    }
    free(piece);
    const bool stops = stopping(feed->raw);
    if (!why)
        why = stops ? "cut, the server stops" : "cut, it could not be stored";
    (stops && feed->spec.rejoin_s > 0 ? tl_osd_capture_leave : tl_osd_capture_end)(&c, why);
    if (fd >= 0) /* the rig sees by this that the capture is complete */
        close(fd);
    return any;
}

/* The same, also activating the device's modules, if requested. */
static bool read_device(struct feed *feed, int fd, bool *little_endian, bool try_both)
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
    const bool any = tl_osd_dial_run(&device);
    close(fd);
    return any;
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
        feed->listener = listener;
        tl_address_text(&from, feed->from, sizeof feed->from);
        watch_peer(fd);
        if (give_back(listener, feed->from, fd)) {
            free(feed);
            return;
        }
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

/* Wait for the rig of a connection to an earlier server process. */
static void adopt(struct feed *listener, const struct tl_raw_orphan *orphan)
{
    struct feed *const feed = malloc(sizeof *feed);
    if (!feed)
        return;
    *feed = *listener;
    feed->fd = -1;
    feed->listener = listener;
    snprintf(feed->from, sizeof feed->from, "%s", orphan->from);
    snprintf(feed->trace, sizeof feed->trace, "%s", orphan->trace);
    if (start_thread(listener->raw, run_connection, feed, true) < 0)
        free(feed);
}

static void *run_listener(void *argument)
{
    struct feed *const feed = argument;
    for (size_t i = 0; i < feed->spec.n_orphans; i++)
        adopt(feed, &feed->spec.orphans[i]);
    while (wait_for(feed->raw, feed->fd, POLLIN, -1))
        accept_one(feed);
    thread_ends(feed->raw, false);
    return NULL;
}

/* Returns whether any byte was received. */
static bool read_source(struct feed *feed, int fd, bool *little_endian)
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

/* One connection to a device, or several that give one trace. Returns whether any byte was
 * received; this and below. */
static bool visit_device(struct feed *feed, bool *little_endian, struct reported *reported)
{
    if (feed->trace[0])
        return read_capture(feed, -1);
    const int fd = dial(feed, false, DIAL_LAST_MS);
    if (fd < 0) {
        say_once(feed, reported, strerror(errno));
        return false;
    }
    watch_peer(fd);
    reported->text[0] = 0;
    return read_source(feed, fd, little_endian);
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
    if (spec->dials && spec->n_orphans > 0)
        snprintf(feed->trace, sizeof feed->trace, "%s", spec->orphans[0].trace);
    const int rc = start_thread(raw, run, feed, false);
    if (rc < 0) {
        free(feed);
        return rc;
    }
    raw->feeds = feed;
    spec->setup = NULL;
    spec->orphans = NULL;
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
