/* SPDX-License-Identifier: MIT */
/*
 * Sends a capture, comparing first what the server already has of it. A name can denote another
 * capture, and continuing that would join the bytes of two executions.
 */
#include "push/sender.h"

#include "base/now.h"
#include "push/captures.h"
#include "push/compare.h"
#include "push/feed.h"
#include "push/sent.h"
#include "push/upload.h"
#include "terminal/progress.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { PIECE = 256 << 10, LOOK_MS = 100, FAREWELL_S = 2, AWAY_FIRST_MS = 100, AWAY_MAX_MS = 3000 };

/* A capture being sent. */
struct job {
    struct tl_sender *sender;
    struct tl_bundle_capture *capture; /* NULL: what is left in a spool */
    struct tl_spooldir spool;          /* `path` NULL: none */
    struct tl_feed *feed;
    struct tracelake_push *push;
    char trace[64]; /* "": not known yet */
    struct tl_compare compare;
    bool refused;   /* the trace has other bytes */
    bool began;     /* sending did */
    uint64_t total; /* size of a file, 0: not known */
    uint8_t *bytes; /* buffer of PIECE bytes */
};

static bool is_live(const struct tl_bundle_capture *capture)
{
    struct stat st;
    const char *const path = capture->pieces[0].path;
    const int known = strcmp(path, "-") == 0 ? fstat(STDIN_FILENO, &st) : stat(path, &st);
    return known == 0 && !S_ISREG(st.st_mode);
}

/* ---- the server ---------------------------------------------------------------------------- */

static unsigned tries_of(const struct job *job)
{
    return job->spool.path && job->sender->retry_s > UINT_MAX ? UINT_MAX : TL_REMOTE_TRIES;
}

static void report_away(const char *spool, const char *why)
{
    if (spool)
        tl_cli_warn(NULL, "%s Reading on, into %s", why, spool);
    else
        tl_cli_warn(NULL, "%s; trying again", why);
}

int tl_sender_connect(struct tl_sender *sender, const char *spool)
{
    const int64_t begun = tl_monotonic_ms();
    int pause = AWAY_FIRST_MS;
    bool reported = false, comes_back = spool != NULL;
    while (!sender->lake) {
        struct tracelake_error error;
        const int status = tl_remote_try(&sender->lake, sender->remote, &error);
        comes_back = comes_back || (status == TL_REMOTE_AWAY && error.grpc_status != 0);
        if (status == TL_ARGS_GO)
            tl_remote_on_signal(sender->lake);
        else if (status != TL_REMOTE_AWAY)
            return status;
        else if (!comes_back || (uint64_t)(tl_monotonic_ms() - begun) / 1000 >= sender->retry_s ||
                 tl_remote_signalled())
            return tl_remote_fail(NULL, &error);
        else if (!reported && !sender->quiet)
            report_away(spool, error.text);
        reported = true;
        if (!sender->lake && !tl_remote_signalled())
            poll(NULL, 0, pause);
        pause = pause * 2 < AWAY_MAX_MS ? pause * 2 : AWAY_MAX_MS;
    }
    return TL_ARGS_GO;
}

static void notice(void *context, const char *text)
{
    const struct job *const job = context;
    if (!job->sender->quiet)
        tl_cli_warn(job->trace[0] ? job->trace : tl_feed_name(job->feed), "%s", text);
}

static int open_push(struct job *job, const char *setup)
{
    const struct tl_sender *const sender = job->sender;
    struct tracelake_error error = {0};
    const struct tracelake_push_options options = {
        .rig = sender->rig,
        .trace = job->trace[0] ? job->trace : NULL,
        .setup = setup,
        .shards = sender->shards,
        .index = sender->index,
        .resume = !sender->no_resume,
        .chunk_bytes = (size_t)sender->chunk,
        .retry_ms = sender->retry_s == 0        ? -2
                    : sender->retry_s > 1000000 ? -1
                                                : (int)sender->retry_s * 1000,
        .notice = notice,
        .context = job,
    };
    if (tracelake_push_open(&job->push, sender->lake, &options, &error) < 0)
        return tl_remote_fail(tl_feed_name(job->feed), &error);
    snprintf(job->trace, sizeof job->trace, "%s", tracelake_push_trace(job->push));
    return TL_ARGS_GO;
}

/* ---- bytes -------------------------------------------------------------------------------- */

static void show(const struct job *job)
{
    const uint64_t acked = tracelake_push_acked(job->push);
    const uint64_t held = tl_feed_held(job->feed);
    char more[64] = "";
    if (held > 1 << 20)
        snprintf(more, sizeof more, "%.1f MiB wait", (double)held / (1 << 20));
    tl_progress_step(acked, job->total, more);
    tl_feed_acked(job->feed, acked);
}

/* Wait until the feed or the server has something new, or for `ms`; then serve the connection. */
static int await_more(const struct job *job, int feed_fd, int ms, struct tracelake_error *error)
{
    bool writing;
    struct pollfd fds[2] = {{feed_fd, POLLIN, 0},
                            {tracelake_descriptor(job->sender->lake, &writing), POLLIN, 0}};
    if (writing)
        fds[1].events |= POLLOUT;
    if (poll(fds, 2, ms) < 0 && errno != EINTR)
        return TRACELAKE_IO;
    if (tl_remote_signalled())
        return TRACELAKE_CANCELLED;
    const int result = tracelake_push_serve(job->push, 0, error);
    if (result == TRACELAKE_OK)
        show(job);
    return result;
}

/* Keep to the rate: wait until `sent` bytes may have been sent, and serve the connection. */
static int throttle(const struct job *job, int64_t begun, uint64_t sent,
                    struct tracelake_error *error)
{
    const int64_t due = begun + (int64_t)((double)sent * 1000.0 / (double)job->sender->rate);
    for (int64_t left = due - tl_monotonic_ms(); left > 0; left = due - tl_monotonic_ms()) {
        const int result = await_more(job, -1, left < LOOK_MS ? (int)left : LOOK_MS, error);
        if (result < 0)
            return result;
    }
    return TRACELAKE_OK;
}

/* Everything was written: wait until it is durable, and report the end. */
static int finish(const struct job *job, struct tracelake_error *error)
{
    int result = TRACELAKE_OK;
    while (result == TRACELAKE_OK &&
           tracelake_push_acked(job->push) < tracelake_push_offset(job->push))
        result = await_more(job, -1, LOOK_MS, error);
    return result < 0 ? result : tracelake_push_finish(job->push, error);
}

/* This may change the trace's setup, which the push must know for a reconnect. */
static void tend(const struct job *job, bool last)
{
    const struct tl_sender *const sender = job->sender;
    struct tracelake_error error;
    const char *const setup =
        sender->tend ? sender->tend(sender->context, sender->lake, job->trace, last) : NULL;
    if (setup && tracelake_push_setup(job->push, setup, &error) < 0)
        tl_cli_warn(job->trace, "%s", error.text);
}

static int send_all(const struct job *job, struct tracelake_error *error)
{
    const struct tl_sender *const sender = job->sender;
    const int64_t begun = tl_monotonic_ms();
    uint64_t sent = 0;
    size_t piece = PIECE;
    if (sender->rate)
        piece = sender->rate / 50 + 1 < PIECE ? (size_t)(sender->rate / 50 + 1) : PIECE;
    for (;;) {
        if (tl_remote_signalled())
            return TRACELAKE_CANCELLED;
        const ssize_t got = tl_feed_take(job->feed, job->bytes, piece);
        int result = TRACELAKE_OK;
        if (got == 0)
            return finish(job, error);
        if (got == TL_AGAIN)
            result = await_more(job, tl_feed_descriptor(job->feed), LOOK_MS, error);
        else if (got == TL_CANCELLED)
            return TRACELAKE_CANCELLED;
        else if (got < 0)
            return TRACELAKE_AGAIN; /* reported by the feed */
        if (got > 0) {
            result = tracelake_push_write(job->push, job->bytes, (size_t)got, error);
            sent += (uint64_t)got;
            show(job);
        }
        if (result == TRACELAKE_OK && got > 0 && sender->rate)
            result = throttle(job, begun, sent, error);
        if (result < 0)
            return result;
        tend(job, false);
    }
}

/* ---- the end ------------------------------------------------------------------------------ */

/*
 * After a signal: bytes read from a live input without spool exist nowhere else, so send them as
 * long as the server accepts them. A second signal ends this.
 */
static void say_farewell(const struct job *job)
{
    struct tracelake_error error;
    ssize_t got = 1;
    int result = TRACELAKE_OK;
    tl_feed_stop(job->feed);
    if (job->spool.path)
        return;
    tracelake_resume(job->sender->lake);
    while (result == TRACELAKE_OK && got > 0) {
        tl_remote_alarm(FAREWELL_S);
        got = tl_feed_is_file(job->feed) ? 0 : tl_feed_take(job->feed, job->bytes, PIECE);
        if (got > 0)
            result = tracelake_push_write(job->push, job->bytes, (size_t)got, &error);
    }
    while (result == TRACELAKE_OK &&
           tracelake_push_acked(job->push) < tracelake_push_offset(job->push)) {
        const uint64_t acked = tracelake_push_acked(job->push);
        result = tracelake_push_serve(job->push, LOOK_MS, &error);
        if (tracelake_push_acked(job->push) > acked)
            tl_remote_alarm(FAREWELL_S);
    }
    tl_remote_alarm(0);
}

/* The push ended before the capture did: report what is durable, and how to continue. */
static void say_rest(const struct job *job, const char *why)
{
    const uint64_t durable = job->push ? tracelake_push_acked(job->push) : 0;
    const char *const name = job->trace[0] ? job->trace : tl_feed_name(job->feed);
    if (job->push)
        tl_feed_acked(job->feed, durable);
    const uint64_t held = tl_feed_held(job->feed);
    char stored[64] = "", rest[256] = "";
    if (job->push)
        snprintf(stored, sizeof stored, "%" PRIu64 " bytes are stored", durable);
    if (job->spool.path)
        snprintf(rest, sizeof rest,
                 "%s%" PRIu64 " bytes wait in %.120s; run the same command again "
                 "to go on",
                 job->push ? ", " : "", held, job->spool.path);
    else if (job->push && held > 0)
        snprintf(rest, sizeof rest,
                 ", %" PRIu64 " bytes that were read are lost; --spool DIR,SIZE "
                 "keeps them",
                 held);
    else if (job->push)
        snprintf(rest, sizeof rest, "; push it again%s%s to go on",
                 job->sender->trace ? "" : " with --trace ", job->sender->trace ? "" : job->trace);
    if (*stored || *rest)
        tl_cli_warn(name, "%s%s%s%s", why, *why ? "; " : "", stored, rest);
}

/* The push is open: send everything. TL_ARGS_GO: all is stored. */
static int send_job(struct job *job)
{
    struct tracelake_error error = {0};
    job->began = true;
    tl_progress_begin(job->trace, "B");
    const int result = send_all(job, &error);
    tl_progress_end();
    if (result == TRACELAKE_OK) {
        tend(job, true);
        return TL_ARGS_GO;
    }
    if (result == TRACELAKE_CANCELLED) {
        say_farewell(job);
        say_rest(job, "interrupted");
        return TL_CLI_BAD;
    }
    const int status = result == TRACELAKE_AGAIN ? TL_CLI_BAD : tl_remote_fail(job->trace, &error);
    say_rest(job, "");
    return status;
}

/* Is what the server has of the trace the begin of this capture? */
static int compare(struct job *job, const struct tracelake_stored *stored)
{
    const bool keeps = job->spool.path && stored->durable <= job->sender->spool_max;
    const int status = tl_compare_input(&job->compare, job->feed, job->trace, stored, keeps);
    job->refused = status == TL_CLI_REFUSED;
    if (job->refused && job->spool.path)
        tl_cli_warn(job->trace,
                    "%" PRIu64
                    " bytes wait in %s; rename this folder to push them under its new name",
                    tl_feed_held(job->feed), job->spool.path);
    return status;
}

/* Compare with what the server has under the name, if any, before a push is opened: that would end
 * another one. */
static int ask_stored(struct job *job, struct tracelake_stored *stored)
{
    struct tracelake_error error;
    *stored = (struct tracelake_stored){0};
    if (!job->trace[0] || job->sender->no_resume)
        return TL_ARGS_GO;
    const int known = tracelake_get_stored(job->sender->lake, job->trace, stored, &error);
    if (known == TRACELAKE_OK)
        return stored->durable > 0 ? compare(job, stored) : TL_ARGS_GO;
    /* The token may permit only pushing; a push survives a broken connection. */
    return known == TRACELAKE_NOTFOUND || known == TRACELAKE_DENIED ||
                   known == TRACELAKE_UNREACHABLE || known == TRACELAKE_NOSPACE ||
                   known == TRACELAKE_TIMEOUT
               ? TL_ARGS_GO
               : tl_remote_fail(tl_feed_name(job->feed), &error);
}

static int go_on_at(const struct job *job, uint64_t durable)
{
    struct tl_fail fail = {0};
    if (tl_feed_from(job->feed, durable, &fail) >= 0)
        return TL_ARGS_GO;
    tl_cli_warn(tl_feed_name(job->feed), "trace %s: %s", job->trace, fail.text);
    return TL_CLI_BAD;
}

/* Open the push, compare with what the server has now, and send the rest. */
static int push_rest(struct job *job, const char *setup, const struct tracelake_stored *before)
{
    struct tracelake_stored now;
    const bool quiet = job->sender->quiet;
    /* The setup of such an input is known only at its end. */
    const bool done = before->complete && job->sender->tend;
    int status = done ? TL_ARGS_GO : open_push(job, setup);
    if (status != TL_ARGS_GO)
        return status;
    if (done)
        now = *before;
    else
        tracelake_push_stored(job->push, &now);
    if (now.durable != before->durable || now.complete != before->complete)
        status = compare(job, &now);
    if (status == TL_ARGS_GO && !now.complete)
        status = go_on_at(job, now.durable);
    if (status != TL_ARGS_GO)
        return status;
    struct tracelake_error error;
    if (now.complete && job->push && tracelake_push_finish(job->push, &error) < 0)
        return tl_remote_fail(job->trace, &error);
    if (now.complete && !quiet)
        fprintf(stderr, "tracelake: %s: the server has all of it already\n", job->trace);
    else if (now.durable > 0 && !quiet)
        fprintf(stderr, "tracelake: %s: going on at byte %" PRIu64 "\n", job->trace, now.durable);
    return now.complete ? TL_ARGS_GO : send_job(job);
}

static int connect_and_send(struct job *job, struct tl_setup *setup)
{
    struct tl_buf text = {0};
    struct tracelake_stored stored;
    int status = tl_sender_connect(job->sender, job->spool.path);
    if (status == TL_ARGS_GO)
        status = tl_cli_upload_images(job->sender->lake, setup, tries_of(job));
    if (status == TL_ARGS_GO &&
        (tl_setup_write(setup, &text) < 0 || tl_buf_add(&text, "", 1) < 0)) {
        tl_cli_warn(NULL, "out of memory");
        status = TL_CLI_BAD;
    }
    if (status == TL_ARGS_GO)
        status = ask_stored(job, &stored);
    if (status == TL_ARGS_GO)
        status = push_rest(job, (const char *)text.p, &stored);
    if (status != TL_ARGS_GO && !job->began && !job->refused)
        say_rest(job, "");
    tl_buf_fini(&text);
    return status;
}

/* Open what the job needs; `trace` may be NULL. */
static int begin_job(struct job *job, const char *trace)
{
    const struct tl_sender *const sender = job->sender;
    struct tl_fail fail = {0};
    const bool live = !job->capture || is_live(job->capture);
    snprintf(job->trace, sizeof job->trace, "%s", trace ? trace : "");
    job->bytes = malloc(PIECE);
    if (!job->bytes) {
        tl_cli_warn(NULL, "out of memory");
        return TL_CLI_BAD;
    }
    /* A file needs no spool. */
    if (sender->spool && live &&
        tl_spooldir_open(&job->spool, sender->spool, trace, sender->rig, &fail) < 0) {
        tl_cli_warn(sender->spool, "%s: %s", trace, fail.text);
        return TL_CLI_BAD;
    }
    job->total = job->capture ? tl_cli_capture_bytes(job->capture) : 0;
    return tl_feed_open(&job->feed, &(struct tl_feed_options){
                                        .capture = job->spool.ended ? NULL : job->capture,
                                        .memory = sender->memory,
                                        .spool = job->spool.path ? &job->spool : NULL,
                                        .spool_bytes = sender->spool_max,
                                        .continues = sender->continues,
                                        .quiet = sender->quiet,
                                        .tap = sender->tap,
                                        .context = sender->context,
                                    });
}

static void end_job(struct job *job, bool stored)
{
    tracelake_push_close(job->push);
    tl_compare_end(&job->compare);
    tl_feed_close(job->feed);
    tl_spooldir_close(&job->spool, stored);
    free(job->bytes);
}

/* ---- spools ------------------------------------------------------------------------------- */

struct wanted {
    char trace[64];
    bool ended;
};

static int take_wanted(void *context, const char *trace, bool ended)
{
    struct wanted *const w = context;
    if (ended != w->ended)
        return 0;
    snprintf(w->trace, sizeof w->trace, "%s", trace);
    return 1;
}

/* The capture that a killed push of this rig left, or a name for a new one. */
static void name_spooled(const struct tl_sender *sender, char out[static 64])
{
    struct wanted w = {.ended = false};
    const time_t now = time(NULL);
    struct tm t;
    char date[20];
    if (tl_spooldir_scan(sender->spool, sender->rig, take_wanted, &w) > 0) {
        memcpy(out, w.trace, sizeof w.trace);
        return;
    }
    gmtime_r(&now, &t);
    strftime(date, sizeof date, "%Y%m%d-%H%M%S", &t);
    snprintf(out, 64, "%.36s-%s-%04x", sender->rig, date, (unsigned)getpid() & 0xffff);
}

static int report(const struct tl_sender *sender, const char *trace, const char *input,
                  const struct tl_setup *setup)
{
    const enum tl_sent_form form = sender->quiet  ? TL_SENT_QUIET
                                   : sender->json ? TL_SENT_JSON
                                                  : TL_SENT_TEXT;
    return tl_sent_report(sender->lake, trace, input, setup, !sender->no_wait, form);
}

/* Send complete captures left by earlier pushes first, while `capture` is being read. */
static int send_left(struct tl_sender *sender, const char *except, struct tl_setup *setup)
{
    int worst = TL_CLI_DONE;
    for (;;) {
        struct wanted w = {.ended = true};
        struct job job = {.sender = sender, .spool.lock = -1};
        if (tl_spooldir_scan(sender->spool, sender->rig, take_wanted, &w) <= 0 ||
            strcmp(w.trace, except) == 0)
            return worst;
        int status = begin_job(&job, w.trace);
        if (status == TL_ARGS_GO)
            status = connect_and_send(&job, setup);
        const bool stored = status == TL_ARGS_GO;
        if (stored)
            status = report(sender, job.trace, job.spool.path, setup);
        end_job(&job, stored);
        worst = status > worst ? status : worst;
        if (!stored)
            return worst;
    }
}

int tl_sender_push(struct tl_sender *sender, struct tl_bundle_capture *capture)
{
    struct job job = {.sender = sender, .capture = capture, .spool.lock = -1};
    const bool spools = sender->spool && is_live(capture);
    char made[64];
    int worst = TL_CLI_DONE;
    if (spools && !sender->trace)
        name_spooled(sender, made);
    int status = begin_job(&job, spools && !sender->trace ? made : sender->trace);
    if (status == TL_ARGS_GO && spools && !sender->trace)
        worst = send_left(sender, job.trace, &capture->setup);
    if (status == TL_ARGS_GO)
        status = connect_and_send(&job, &capture->setup);
    const bool stored = status == TL_ARGS_GO;
    if (stored && job.push && tracelake_push_acked(job.push) == 0) {
        tl_cli_warn(tl_feed_name(job.feed), "the capture is empty (0 bytes) and is not stored");
        status = TL_CLI_BAD;
    } else if (stored) {
        status = report(sender, job.trace, tl_feed_name(job.feed), &capture->setup);
    }
    sender->differs = job.refused;
    end_job(&job, stored);
    return worst > status ? worst : status;
}
