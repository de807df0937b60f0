/* SPDX-License-Identifier: MIT */
/*
 * Reads a live input in a thread of its own, ahead of the server. A rig's pipe does not wait for a
 * network: what is not read in time is lost at the source.
 */
#include "push/feed.h"

#include "base/now.h"
#include "push/backlog.h"
#include "terminal/args.h"
#include "terminal/remote.h"
#include "terminal/say.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum {
    DISK_WAIT_MS = 1000,
    LONG_WAIT_MS = 1000, /* of the input: reported each time, shorter waits only the first time */
    PIECE = 1 << 20
};

struct tl_feed {
    struct tl_feed_options o;
    struct tl_bundle_input in;
    const char *name;
    uint64_t at;   /* capture offset of the next byte to return */
    uint64_t seen; /* by the tap, for live input */
    bool opened;   /* `in` is open */

    /* For a live input or a spool: */
    struct tl_backlog *backlog; /* NULL: a file */
    uint64_t base;              /* the capture offset of the backlog's byte 0 */
    uint64_t skip;              /* bytes of the input that have been put into the backlog */
    pthread_t thread;
    bool running;
    int more;             /* eventfd: readable when there are bytes, or at the end */
    int halt;             /* eventfd: request to the thread to end */
    pthread_mutex_t lock; /* guards the following members, and the backlog */
    pthread_cond_t room;  /* some of the backlog has been dropped, or `stop` */
    bool stop, ended;
    int error; /* errno of a failed read */

    /* Of the thread: how often and how long the input had to wait. */
    unsigned waits;
    int64_t waited_ns;
};

/* ---- the thread that reads ---------------------------------------------------------------- */

static void ring(int event)
{
    const uint64_t one = 1;
    if (write(event, &one, sizeof one) < 0)
        return; /* already readable */
}

/* Wait until the input is readable, or with `ms` >= 0 for that time. False: the feed is to end. */
static bool await_input(const struct tl_feed *feed, int ms)
{
    struct pollfd fds[2] = {{feed->halt, POLLIN, 0}, {feed->in.fd, POLLIN, 0}};
    while (poll(fds, ms < 0 ? 2 : 1, ms) < 0)
        if (errno != EINTR)
            return false;
    return !fds[0].revents;
}

static void report_wait(const struct tl_feed *feed, ssize_t room)
{
    const struct tl_spooldir *const spool = feed->o.spool;
    if (room < 0)
        tl_cli_warn(feed->name, "%s cannot be written: %s; the input waits", spool->path,
                    strerror(errno));
    else
        tl_cli_warn(feed->name,
                    "the server takes the bytes more slowly than they come: %" PRIu64
                    " bytes wait for it, and the input waits; %s",
                    tl_backlog_end(feed->backlog) - tl_backlog_begin(feed->backlog),
                    spool ? "--spool DIR,SIZE with a larger SIZE has room for more"
                          : "--memory SIZE or --spool DIR,SIZE has room for more");
}

/*
 * Wait for free capacity, 0: the feed ends. Reports that the input has to wait. A source that is
 * faster than the server has to wait for every piece: only long waits are reported one by one.
 */
static size_t await_room_locked(struct tl_feed *feed)
{
    const int64_t from = tl_monotonic_ns();
    int64_t waited = 0;
    bool reported = false;
    ssize_t room = 0;
    while (!feed->stop && (room = tl_backlog_room(feed->backlog)) <= 0) {
        feed->waits += waited == 0;
        if (!reported && !feed->o.quiet &&
            (feed->waits == 1 || waited >= LONG_WAIT_MS * TL_NS_PER_MS)) {
            report_wait(feed, room);
            reported = true;
        }
        (void)tl_cond_wait_until(&feed->room, &feed->lock,
                                 tl_monotonic_ns() + DISK_WAIT_MS * TL_NS_PER_MS);
        waited = tl_monotonic_ns() - from;
    }
    feed->waited_ns += waited;
    if (feed->stop)
        return 0;
    if (reported && waited >= LONG_WAIT_MS * TL_NS_PER_MS)
        tl_cli_warn(feed->name, "reading on");
    return (size_t)room < PIECE ? (size_t)room : PIECE;
}

/* Skip the bytes that an earlier push has read, for an input that starts again. False: the input or
 * the feed ends. */
static bool pass_over(struct tl_feed *feed, uint64_t n)
{
    uint8_t bytes[64 << 10];
    while (n > 0 && await_input(feed, -1)) {
        const ssize_t got = read(feed->in.fd, bytes, n < sizeof bytes ? (size_t)n : sizeof bytes);
        if (got == 0)
            return false;
        n -= got > 0 ? (uint64_t)got : 0;
    }
    return n == 0;
}

/* The input has ended, or cannot be read any more (`error`). */
static void end_locked(struct tl_feed *feed, int error)
{
    struct tl_spooldir *const spool = feed->o.spool;
    struct tl_fail fail;
    feed->error = error;
    feed->ended = true;
    if (!spool || error)
        return;
    spool->ended = true;
    spool->length = tl_backlog_end(feed->backlog);
    if (tl_spooldir_save(spool, &fail) < 0)
        tl_cli_warn(spool->path, "%s", fail.text);
}

/* Read as much as fits. 0: end of the input; < 0: error of the input or the disk, errno. */
static ssize_t read_some(struct tl_feed *feed, size_t room)
{
    for (;;) {
        if (!await_input(feed, -1)) {
            errno = ECANCELED;
            return -1;
        }
        const ssize_t got = tl_backlog_read(feed->backlog, feed->in.fd, room);
        if (got >= 0 || (errno != EINTR && errno != EAGAIN))
            return got;
    }
}

static void *read_on(void *context)
{
    struct tl_feed *const feed = context;
    const bool passed = pass_over(feed, feed->skip);
    size_t room;
    pthread_mutex_lock(&feed->lock);
    if (!passed && !feed->stop)
        end_locked(feed, EPIPE);
    while (!feed->ended && (room = await_room_locked(feed)) > 0) {
        pthread_mutex_unlock(&feed->lock);
        const ssize_t got = read_some(feed, room);
        const int why = errno;
        const bool full = got < 0 && feed->o.spool && (why == ENOSPC || why == EDQUOT);
        if (full) {
            tl_cli_warn(feed->o.spool->path, "%s; the input waits", strerror(why));
            await_input(feed, DISK_WAIT_MS);
        }
        pthread_mutex_lock(&feed->lock);
        if (got > 0)
            tl_backlog_commit(feed->backlog, (size_t)got);
        else if (!full && !feed->stop)
            end_locked(feed, got < 0 ? why : 0);
        ring(feed->more);
    }
    if (feed->waits > 1 && !feed->o.quiet)
        tl_cli_warn(feed->name, "the input waited for the server %u times, %.1f s in all",
                    feed->waits, (double)feed->waited_ns / TL_NS_PER_S);
    pthread_mutex_unlock(&feed->lock);
    ring(feed->more);
    return NULL;
}

/* ---- opening ------------------------------------------------------------------------------ */

static int open_backlog(struct tl_feed *feed, struct tl_fail *fail)
{
    struct tl_spooldir *const spool = feed->o.spool;
    if (!spool)
        return tl_backlog_memory(&feed->backlog, feed->o.memory) < 0
                   ? tl_fail_set(fail, TL_NOMEM, "out of memory")
                   : TL_OK;
    const int rc = tl_backlog_folder(&feed->backlog, spool->path, feed->o.spool_bytes, fail);
    if (rc < 0)
        return rc;
    /* The input begins with the capture's first byte: no need to ask the server. */
    if (!feed->o.continues && !spool->has_base) {
        spool->has_base = true;
        spool->base = 0;
        if (tl_spooldir_save(spool, fail) < 0)
            return TL_IO;
    }
    feed->base = spool->base;
    feed->ended = spool->ended;
    /* An earlier push was killed while removing the spool: the server has the whole capture. */
    if (spool->ended && tl_backlog_end(feed->backlog) == 0)
        tl_backlog_start(feed->backlog, spool->length);
    if (!feed->o.continues)
        feed->skip = tl_backlog_end(feed->backlog);
    return TL_OK;
}

static int begin_to_read(struct tl_feed *feed, struct tl_fail *fail)
{
    int rc = open_backlog(feed, fail);
    if (rc < 0)
        return rc;
    feed->more = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    feed->halt = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (feed->more < 0 || feed->halt < 0)
        return tl_fail_set(fail, TL_IO, "%s", strerror(errno));
    if (feed->ended)
        return TL_OK;
    if (!feed->o.capture)
        return tl_fail_set(fail, TL_BAD, "its input has not ended");
    feed->running = pthread_create(&feed->thread, NULL, read_on, feed) == 0;
    return feed->running ? TL_OK : tl_fail_set(fail, TL_NOMEM, "no thread");
}

int tl_feed_open(struct tl_feed **out, const struct tl_feed_options *options)
{
    struct tl_fail fail = {0};
    struct tl_feed *const feed = calloc(1, sizeof *feed);
    if (!feed) {
        tl_cli_warn(NULL, "out of memory");
        return TL_CLI_BAD;
    }
    feed->o = *options;
    feed->more = feed->halt = -1;
    feed->name = options->capture ? options->capture->pieces[0].path : options->spool->path;
    pthread_mutex_init(&feed->lock, NULL);
    pthread_cond_init(&feed->room, NULL);
    feed->opened = options->capture != NULL;
    if (feed->opened && tl_bundle_open(&feed->in, options->capture) < 0) {
        tl_cli_warn(feed->name, "%s", strerror(errno));
        tl_feed_close(feed);
        return TL_CLI_BAD;
    }
    feed->in.tap = options->tap;
    feed->in.tap_context = options->context;
    if ((!feed->opened || feed->in.live) && begin_to_read(feed, &fail) < 0) {
        tl_cli_warn(options->spool ? options->spool->path : feed->name, "%s", fail.text);
        tl_feed_close(feed);
        return TL_CLI_BAD;
    }
    *out = feed;
    return TL_ARGS_GO;
}

void tl_feed_close(struct tl_feed *feed)
{
    if (!feed)
        return;
    if (feed->running) {
        tl_feed_stop(feed);
        pthread_join(feed->thread, NULL);
    }
    if (feed->opened)
        tl_bundle_close(&feed->in);
    if (feed->more >= 0)
        close(feed->more);
    if (feed->halt >= 0)
        close(feed->halt);
    tl_backlog_free(feed->backlog);
    pthread_cond_destroy(&feed->room);
    pthread_mutex_destroy(&feed->lock);
    free(feed);
}

const char *tl_feed_name(const struct tl_feed *feed)
{
    return feed->backlog || !feed->opened ? feed->name : tl_bundle_path(&feed->in);
}

bool tl_feed_is_file(const struct tl_feed *feed)
{
    return !feed->backlog;
}

/* ---- reading ------------------------------------------------------------------------------ */

bool tl_feed_has_begin(struct tl_feed *feed)
{
    if (!feed->backlog)
        return true;
    pthread_mutex_lock(&feed->lock);
    const bool is_known = !feed->o.continues || (feed->o.spool && feed->o.spool->has_base);
    const bool has = is_known && feed->base + tl_backlog_begin(feed->backlog) == 0;
    pthread_mutex_unlock(&feed->lock);
    return has;
}

static int from_file(struct tl_feed *feed, uint64_t durable, struct tl_fail *fail)
{
    if (durable > feed->at && tl_bundle_skip(&feed->in, durable - feed->at) != durable - feed->at)
        return tl_fail_set(fail, TL_BAD,
                           "the server holds %" PRIu64 " bytes already, which is more than this "
                           "input has; is it the same capture?",
                           durable);
    feed->at = durable;
    return TL_OK;
}

static int from_backlog_locked(struct tl_feed *feed, uint64_t durable, struct tl_fail *fail)
{
    struct tl_spooldir *const spool = feed->o.spool;
    const uint64_t begin = tl_backlog_begin(feed->backlog), end = tl_backlog_end(feed->backlog);
    if (feed->o.continues && (!spool || !spool->has_base)) {
        feed->base = durable - begin;
        if (spool) {
            spool->base = feed->base;
            spool->has_base = true;
            if (tl_spooldir_save(spool, fail) < 0)
                return TL_IO;
        }
    }
    feed->at = durable;
    if (durable < feed->base + begin)
        return tl_fail_set(fail, TL_BAD,
                           "the server has %" PRIu64 " bytes, and those up to %" PRIu64
                           " are not here any more; push under another --trace",
                           durable, feed->base + begin);
    if (feed->o.continues && durable > feed->base + end)
        return tl_fail_set(fail, TL_BAD,
                           "the server has %" PRIu64 " bytes, of which only %" PRIu64
                           " went through this spool; push under another --trace",
                           durable, feed->base + end);
    return TL_OK;
}

int tl_feed_from(struct tl_feed *feed, uint64_t durable, struct tl_fail *fail)
{
    if (!feed->backlog)
        return from_file(feed, durable, fail);
    pthread_mutex_lock(&feed->lock);
    const int rc = from_backlog_locked(feed, durable, fail);
    pthread_mutex_unlock(&feed->lock);
    return rc;
}

static ssize_t take_of_file(struct tl_feed *feed, uint8_t *p, size_t n)
{
    for (;;) {
        const ssize_t got = tl_bundle_next(&feed->in, p, n);
        if (got >= 0)
            return got;
        if (tl_remote_signalled())
            return TL_CANCELLED;
        if (errno != EINTR) {
            tl_cli_warn(tl_bundle_path(&feed->in), "cannot read: %s", strerror(errno));
            return TL_IO;
        }
    }
}

static ssize_t take_locked(struct tl_feed *feed, uint8_t *p, size_t n)
{
    const uint64_t end = feed->base + tl_backlog_end(feed->backlog);
    if (feed->at < end)
        return tl_backlog_get(feed->backlog, feed->at - feed->base, p, n);
    if (feed->at > end) { /* the server already has it */
        tl_backlog_drop(feed->backlog, end - feed->base);
        pthread_cond_signal(&feed->room);
    }
    if (feed->ended && feed->error && feed->error != EPIPE) {
        errno = feed->error;
        return TL_IO;
    }
    if (feed->ended)
        return feed->error || feed->at > end ? TL_BAD : 0;
    return feed->stop ? TL_CANCELLED : TL_AGAIN;
}

/* Bytes that the server already has are passed only to the tap. */
static void show_locked(struct tl_feed *feed, uint8_t *p, size_t n)
{
    ssize_t got = 1;
    while (feed->o.tap && feed->seen < feed->at && got > 0) {
        const uint64_t left = feed->at - feed->seen;
        got = tl_backlog_get(feed->backlog, feed->seen, p, left < n ? (size_t)left : n);
        if (got > 0)
            feed->o.tap(feed->o.context, p, (size_t)got);
        feed->seen += got > 0 ? (uint64_t)got : 0;
        tl_backlog_drop(feed->backlog, feed->seen);
        pthread_cond_signal(&feed->room);
    }
}

ssize_t tl_feed_take(struct tl_feed *feed, uint8_t *p, size_t n)
{
    ssize_t got;
    if (!feed->backlog) {
        got = take_of_file(feed, p, n);
    } else {
        uint64_t count;
        if (read(feed->more, &count, sizeof count) < 0)
            count = 0; /* no new signal */
        pthread_mutex_lock(&feed->lock);
        show_locked(feed, p, n);
        got = take_locked(feed, p, n);
        pthread_mutex_unlock(&feed->lock);
        if (got > 0 && feed->o.tap) {
            feed->o.tap(feed->o.context, p, (size_t)got);
            feed->seen += (uint64_t)got;
        }
        if (got == TL_IO)
            tl_cli_warn(feed->name, "cannot read: %s", strerror(errno));
        if (got == TL_BAD)
            tl_cli_warn(feed->name,
                        "the input ends before byte %" PRIu64
                        ", where to go on; is it the same capture?",
                        feed->at + feed->skip);
    }
    feed->at += got > 0 ? (uint64_t)got : 0;
    return got;
}

int tl_feed_descriptor(const struct tl_feed *feed)
{
    return feed->more;
}

void tl_feed_acked(struct tl_feed *feed, uint64_t durable)
{
    if (!feed->backlog)
        return;
    pthread_mutex_lock(&feed->lock);
    const uint64_t end = tl_backlog_end(feed->backlog);
    const uint64_t to = durable > feed->base ? durable - feed->base : 0;
    tl_backlog_drop(feed->backlog, to < end ? to : end);
    pthread_cond_signal(&feed->room);
    pthread_mutex_unlock(&feed->lock);
}

void tl_feed_stop(struct tl_feed *feed)
{
    if (!feed->backlog)
        return;
    pthread_mutex_lock(&feed->lock);
    feed->stop = true;
    pthread_cond_signal(&feed->room);
    pthread_mutex_unlock(&feed->lock);
    ring(feed->halt);
}

uint64_t tl_feed_held(struct tl_feed *feed)
{
    if (!feed->backlog)
        return 0;
    pthread_mutex_lock(&feed->lock);
    const uint64_t held = tl_backlog_end(feed->backlog) - tl_backlog_begin(feed->backlog);
    pthread_mutex_unlock(&feed->lock);
    return held;
}
