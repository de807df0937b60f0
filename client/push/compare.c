/* SPDX-License-Identifier: MIT */
/*
 * The input is read once, for the comparison, and then positioned where the push goes on. The
 * server sends only a hash, so that comparing needs no more than reading the input does.
 */
#include "push/compare.h"

#include "terminal/args.h"
#include "terminal/remote.h"
#include "terminal/say.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>

enum { PIECE = 64 << 10, LOOK_MS = 100 };

/* As tl_feed_take(), but waits for a live input. */
static ssize_t take(struct tl_feed *feed, uint8_t *p, size_t n)
{
    for (;;) {
        const ssize_t got = tl_feed_take(feed, p, n);
        struct pollfd fd = {tl_feed_descriptor(feed), POLLIN, 0};
        if (got != TL_AGAIN)
            return got;
        if (tl_remote_signalled() || (poll(&fd, 1, LOOK_MS) < 0 && errno != EINTR))
            return TL_CANCELLED;
    }
}

/* Report that it is another capture. */
static int refuse(const struct tl_feed *feed, const char *trace, const char *why)
{
    tl_cli_warn(tl_feed_name(feed),
                "%s; push this one under another name (--trace NEW), or remove that one first "
                "('tracelake rm %s')",
                why, trace);
    return TL_CLI_REFUSED;
}

static int refuse_short(const struct tl_feed *feed, const char *trace,
                        const struct tracelake_stored *stored)
{
    char why[256];
    snprintf(why, sizeof why,
             "trace %s %s %" PRIu64 " bytes, this input has fewer: it is another capture", trace,
             stored->complete ? "is complete on the server with" : "on the server has",
             stored->durable);
    return refuse(feed, trace, why);
}

/* The input cannot be read. */
static int fail_reading(ssize_t got)
{
    if (got == TL_CANCELLED)
        tl_cli_warn(NULL, "interrupted");
    return TL_CLI_BAD;
}

/* Read the input up to where the server's bytes end. */
static int read_begin(struct tl_compare *c, struct tl_feed *feed, const char *trace,
                      const struct tracelake_stored *stored, bool keeps)
{
    uint8_t bytes[PIECE];
    struct tracelake_error error;
    if (!c->content && tracelake_content_new(&c->content, stored->content, &error) < 0)
        return tl_remote_fail(trace, &error);
    while (c->at < stored->durable) {
        const uint64_t left = stored->durable - c->at;
        const ssize_t got = take(feed, bytes, left < PIECE ? (size_t)left : PIECE);
        if (got == 0 || got == TL_BAD)
            return refuse_short(feed, trace, stored);
        if (got < 0)
            return fail_reading(got);
        tracelake_content_add(c->content, bytes, (size_t)got);
        c->at += (uint64_t)got;
        if (!keeps)
            tl_feed_acked(feed, c->at);
    }
    return TL_ARGS_GO;
}

static int compare_begin(const struct tl_compare *c, const struct tl_feed *feed, const char *trace,
                         const struct tracelake_stored *stored)
{
    struct tracelake_error error;
    char why[256];
    if (stored->durable == 0)
        return TL_ARGS_GO;
    const int result = tracelake_content_same(c->content, stored->content, &error);
    /* An earlier server does not tell it of incomplete captures: they are continued. */
    if (result == TRACELAKE_OK || (result == TRACELAKE_UNSUPPORTED && !stored->complete))
        return TL_ARGS_GO;
    if (result != TRACELAKE_EXISTS && result != TRACELAKE_UNSUPPORTED)
        return tl_remote_fail(trace, &error);
    snprintf(why, sizeof why, "trace %s %s %" PRIu64 " %s", trace,
             stored->complete ? "is complete on the server with" : "on the server has",
             stored->durable,
             result == TRACELAKE_EXISTS ? "other bytes: it is another capture"
                                        : "bytes, and it cannot tell whether they are these");
    return refuse(feed, trace, why);
}

/* The trace is complete: is the input at its end? */
static int compare_end(struct tl_feed *feed, const char *trace,
                       const struct tracelake_stored *stored)
{
    uint8_t byte;
    char why[256];
    const ssize_t got = take(feed, &byte, 1);
    if (got == 0)
        return TL_ARGS_GO;
    if (got == TL_BAD)
        return refuse_short(feed, trace, stored);
    if (got < 0)
        return fail_reading(got);
    snprintf(why, sizeof why,
             "trace %s is complete on the server with %" PRIu64 " bytes, this input has more",
             trace, stored->durable);
    return refuse(feed, trace, why);
}

int tl_compare_input(struct tl_compare *c, struct tl_feed *feed, const char *trace,
                     const struct tracelake_stored *stored, bool keeps)
{
    struct tl_fail fail = {0};
    int status = TL_ARGS_GO;
    if (c->content || tl_feed_has_begin(feed)) {
        status = read_begin(c, feed, trace, stored, keeps);
        if (status == TL_ARGS_GO)
            status = compare_begin(c, feed, trace, stored);
    } else if (tl_feed_from(feed, stored->durable, &fail) < 0) {
        tl_cli_warn(tl_feed_name(feed), "trace %s: %s", trace, fail.text);
        return TL_CLI_REFUSED;
    }
    return status == TL_ARGS_GO && stored->complete ? compare_end(feed, trace, stored) : status;
}

void tl_compare_end(struct tl_compare *c)
{
    tracelake_content_free(c->content);
}
