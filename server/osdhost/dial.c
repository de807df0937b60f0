/* SPDX-License-Identifier: MIT */
/*
 * Runs one connection to a device: reads trace, sends requests, and ends by deactivating modules.
 * Deactivation has a deadline, since a device that hangs would otherwise keep the server from
 * stopping.
 */
#include "osdhost/dial.h"

#include "net/waiter.h"
#include "osdhost/capture.h"
#include "osdhost/glip.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#define PIECE   (256u << 10)
#define STOP_MS 2000

struct talk {
    const struct tl_osd_dial *dial;
    struct tl_osd_glip glip;
    struct tl_osd_capture capture;
    struct tl_buf out; /* not yet sent */
    uint8_t *piece;
    int64_t now;
    int64_t until; /* deadline for deactivating modules, -1: not needed */
    bool any;
    const char *why; /* reason for ending; NULL: not ended */
};

static void on_log(void *context, const char *line)
{
    const struct talk *const t = context;
    char text[600];
    snprintf(text, sizeof text, "%s: %s", t->dial->address, line);
    t->dial->log(text);
}

static void send_requests(struct talk *t)
{
    if (tl_osd_glip_next(&t->glip, &t->out, t->now) < 0)
        t->why = tl_err_name(TL_NOMEM);
    while (t->out.n) {
        const ssize_t n = send(t->dial->fd, t->out.p, t->out.n, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno != EAGAIN)
            t->why = strerror(errno);
        if (n <= 0)
            return;
        tl_buf_drop(&t->out, (size_t)n);
    }
}

static void read_bytes(struct talk *t)
{
    const ssize_t n = recv(t->dial->fd, t->piece, PIECE, MSG_DONTWAIT);
    if (n < 0 && (errno == EINTR || errno == EAGAIN))
        return;
    if (n <= 0) {
        t->why = n ? strerror(errno) : "ended";
        return;
    }
    const struct tl_bytes bytes = {t->piece, (size_t)n};
    t->any = true;
    tl_osd_glip_take(&t->glip, bytes, t->now);
    if (tl_osd_capture_add(&t->capture, bytes, t->now) < 0)
        t->why = tl_err_name(TL_NOMEM);
}

static int time_left(const struct talk *t)
{
    const int64_t all[] = {tl_osd_bringup_due(&t->glip.bringup), tl_osd_capture_due(&t->capture),
                           t->until};
    int64_t due = -1;
    for (size_t i = 0; i < 3; i++)
        if (all[i] >= 0 && (due < 0 || all[i] < due))
            due = all[i];
    const int64_t left = due < 0 ? -1 : due > t->now ? due - t->now : 0;
    return left > 60000 ? 60000 : (int)left;
}

static void wait_and_read(struct talk *t)
{
    struct pollfd p[2] = {
        {.fd = t->dial->fd,
         .events =
             (short)((tl_osd_capture_full(&t->capture) ? 0 : POLLIN) | (t->out.n ? POLLOUT : 0))},
        {.fd = t->dial->stop_fd, .events = POLLIN},
    };
    (void)poll(p, t->until < 0 ? 2 : 1, time_left(t));
    t->now = tl_monotonic_ms();
    if (t->until < 0 && p[1].revents) {
        t->until = t->now + STOP_MS;
        tl_osd_bringup_stop(&t->glip.bringup, t->now);
    }
    if (p[0].revents & ~POLLOUT)
        read_bytes(t);
}

static void talk(struct talk *t)
{
    const struct tl_osd_bringup *const b = &t->glip.bringup;
    while (!t->why) {
        send_requests(t);
        if (t->until >= 0 && (b->phase == TL_OSD_DONE || t->now >= t->until)) {
            t->why = "the server stops";
            break;
        }
        wait_and_read(t);
        tl_osd_bringup_tick(&t->glip.bringup, t->now);
        if (b->phase == TL_OSD_WAIT && !t->any && t->dial->try_both && t->until < 0) {
            *t->dial->little_endian = !*t->dial->little_endian;
            t->why = "no answer; trying the other byte order";
        }
        if (b->enumerated)
            tl_osd_capture_describe(&t->capture, b);
        tl_osd_capture_flush(&t->capture, t->now);
    }
}

bool tl_osd_dial_run(const struct tl_osd_dial *dial)
{
    struct talk t = {.dial = dial, .now = tl_monotonic_ms(), .until = -1};
    tl_osd_glip_init(&t.glip);
    t.glip.little_endian = *dial->little_endian;
    t.glip.bringup.start = dial->start;
    t.glip.bringup.reset = dial->reset;
    if (dial->answer_ms)
        t.glip.bringup.answer_ms = dial->answer_ms;
    t.glip.bringup.context = &t;
    t.glip.bringup.log = on_log;
    tl_osd_capture_init(&t.capture, dial->lake, dial->rig, dial->setup, &t, on_log);
    t.capture.from = dial->address;
    t.capture.shards = dial->shards;
    t.capture.index = dial->index;
    t.piece = malloc(PIECE);
    if (!t.piece || tl_osd_bringup_begin(&t.glip.bringup, t.now) < 0)
        on_log(&t, tl_err_name(TL_NOMEM));
    else
        talk(&t);
    tl_osd_capture_end(&t.capture, t.why ? t.why : "ended");
    if (t.any)
        *dial->little_endian = t.glip.little_endian;
    else if (t.why)
        on_log(&t, t.why);
    tl_osd_glip_fini(&t.glip);
    tl_buf_fini(&t.out);
    free(t.piece);
    return t.any;
}
