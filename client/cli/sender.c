/* SPDX-License-Identifier: MIT */
#include "cli/sender.h"

#include "cli/remote.h"
#include "cli/rows_out.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { PIECE = 256 << 10, SLICE_MS = 20, LOOK_MS = 100, FAREWELL_MS = 2000 };

struct input {
    const char *name; /* of its first file */
    struct tl_bundle_input from;
    uint8_t *bytes; /* PIECE of them */
};

static int64_t now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static int open_input(struct input *in, const struct tl_sender *sender,
                      const struct tl_bundle_capture *capture)
{
    *in = (struct input){.name = capture->pieces[0].path, .bytes = malloc(PIECE)};
    if (tl_bundle_open(&in->from, capture) < 0) {
        tl_cli_warn(in->name, "%s", strerror(errno));
        return TL_CLI_BAD;
    }
    in->from.tap = sender->tap;
    in->from.tap_context = sender->context;
    if (!in->bytes) {
        tl_cli_warn(in->name, "out of memory");
        return TL_CLI_BAD;
    }
    return TL_ARGS_GO;
}

static void close_input(struct input *in)
{
    tl_bundle_close(&in->from);
    free(in->bytes);
}

/* At most `n` bytes; 0 at the end, < 0 where the system refuses (said). */
static ssize_t read_input(struct input *in, size_t n)
{
    for (;;) {
        const ssize_t got = tl_bundle_next(&in->from, in->bytes, n < PIECE ? n : PIECE);
        if (got >= 0)
            return got;
        if (errno == EINTR && !tl_remote_signalled())
            continue;
        if (errno != EINTR)
            tl_cli_warn(tl_bundle_path(&in->from), "cannot read: %s", strerror(errno));
        return -1;
    }
}

/* Wait for a live input's next bytes, and meanwhile send what waits and take acknowledgements. */
static int await_input(const struct input *in, struct tracelake_push *push,
                       struct tracelake_error *error)
{
    struct pollfd fd = {.fd = in->from.fd, .events = POLLIN};
    for (int ms = 0; in->from.live; ms = LOOK_MS) {
        if (tl_remote_signalled())
            return TRACELAKE_CANCELLED;
        const int ready = poll(&fd, 1, ms);
        if (ready > 0)
            break;
        const int result = ready == 0 ? tracelake_push_serve(push, ms, error) : TRACELAKE_OK;
        if (result < 0)
            return result;
    }
    return TRACELAKE_OK;
}

static int interrupted(const char *trace, uint64_t durable)
{
    tl_cli_warn(trace, "interrupted; %" PRIu64 " bytes are stored, push it again to go on",
                durable);
    return TL_CLI_BAD;
}

/* Keep to the rate: wait until `sent` bytes may have been sent, and serve the connection. */
static int throttle(const struct tl_sender *sender, struct tracelake_push *push, int64_t begun,
                    uint64_t sent, struct tracelake_error *error)
{
    const double due = (double)sent * 1000.0 / (double)sender->rate;
    for (;;) {
        const int64_t left = begun + (int64_t)due - now_ms();
        if (left <= 0)
            return TRACELAKE_OK;
        /* Returns early when all is acknowledged: then sleep the rest. */
        const int64_t from = now_ms();
        const int slice = left < SLICE_MS ? (int)left : SLICE_MS;
        const int result = tracelake_push_serve(push, slice, error);
        if (result < 0)
            return result;
        const int64_t rest = slice - (now_ms() - from);
        if (rest > 0)
            nanosleep(&(struct timespec){.tv_nsec = rest * 1000000}, NULL);
    }
}

static void tend(const struct tl_sender *sender, struct tracelake *lake, const char *trace,
                 bool last)
{
    if (sender->tend)
        sender->tend(sender->context, lake, trace, last);
}

static int send_all(const struct tl_sender *sender, struct tracelake *lake,
                    struct tracelake_push *push, struct input *in, struct tracelake_error *error)
{
    const int64_t begun = now_ms();
    uint64_t sent = 0;
    size_t piece = PIECE;
    if (sender->rate)
        piece = sender->rate / 50 + 1 < PIECE ? (size_t)(sender->rate / 50 + 1) : PIECE;
    for (;;) {
        const int waited = await_input(in, push, error);
        if (waited < 0)
            return waited;
        const ssize_t got = read_input(in, piece);
        if (got < 0)
            return tl_remote_signalled() ? TRACELAKE_CANCELLED : TRACELAKE_AGAIN;
        if (got == 0)
            return tracelake_push_finish(push, error);
        int result = tracelake_push_write(push, in->bytes, (size_t)got, error);
        sent += (uint64_t)got;
        if (result == TRACELAKE_OK && sender->rate)
            result = throttle(sender, push, begun, sent, error);
        if (result < 0)
            return result;
        tend(sender, lake, tracelake_push_trace(push), false);
    }
}

/* ---- the end ------------------------------------------------------------------------------ */

static const char *plural(uint64_t n)
{
    return n == 1 ? "" : "s";
}

static void print_trace(const struct tracelake_trace *trace)
{
    printf("%s: %" PRIu64 " bytes, %s\n", trace->id, trace->raw_bytes,
           tracelake_state_name(trace->state));
    for (size_t i = 0; i < trace->n_streams; i++) {
        const struct tracelake_stream *s = &trace->streams[i];
        printf("  %s/%s %s: %" PRIu64 " %s%s, %" PRIu64 " event%s, %" PRIu64 " gap%s\n", trace->id,
               s->name, s->protocol, s->insns, tl_counts_insns(s) ? "instruction" : "record",
               plural(s->insns), s->events, plural(s->events), s->gaps, plural(s->gaps));
    }
}

/* Wait for the decode, say what came out of it. */
static int report(const struct tl_sender *sender, struct tracelake *lake, const char *trace,
                  const char *input)
{
    struct tracelake_trace *row;
    struct tracelake_error error;
    unsigned tries = 0;
    int result;
    do
        result = sender->no_wait ? tracelake_get_trace(lake, trace, &row, &error)
                                 : tracelake_wait_sealed(lake, trace, &row, &error);
    while (tl_remote_again(result, &tries));
    if (result == TRACELAKE_CANCELLED)
        return TL_CLI_DONE; /* the bytes are stored; nobody wants to wait for more */
    if (result == TRACELAKE_DENIED) {
        if (!sender->quiet)
            printf("%s: stored\n", trace);
        return TL_CLI_DONE; /* a token that may push and not look */
    }
    if (result < 0)
        return tl_remote_fail(trace, &error);
    int status = TL_CLI_DONE;
    if (!sender->quiet)
        print_trace(row);
    if (row->state == TRACELAKE_FAILED || row->message[0]) {
        tl_cli_warn(input, "%s",
                    row->message[0] ? row->message : "it could not be decoded; the bytes are kept");
        status = TL_CLI_BAD;
    } else if (!sender->no_wait && row->n_streams == 0) {
        tl_cli_warn(input,
                    row->raw_bytes ? "offset 0x0: nothing in %" PRIu64
                                     " bytes could be decoded; is --format right?"
                                   : "the capture is empty (%" PRIu64 " bytes)",
                    row->raw_bytes);
        status = TL_CLI_BAD;
    }
    tracelake_trace_free(row);
    return status;
}

/* The trace is complete on the server: does the input say the same? */
static int compare_complete(const struct tl_sender *sender, struct tracelake *lake,
                            struct input *in, uint64_t durable)
{
    const uint64_t there = tl_bundle_skip(&in->from, durable + 1);
    if (there != durable) {
        tl_cli_warn(in->name,
                    "trace %s is complete on the server with %" PRIu64
                    " bytes, this input has %s%" PRIu64 "; push it under another name",
                    sender->trace, durable, there > durable ? "at least " : "", there);
        return TL_CLI_REFUSED;
    }
    if (!sender->quiet)
        fprintf(stderr, "tracelake: %s: the server has all of it already\n", sender->trace);
    return report(sender, lake, sender->trace, in->name);
}

static void notice(void *context, const char *text)
{
    tl_cli_warn(context, "%s", text);
}

static int send_input(const struct tl_sender *sender, struct tracelake *lake, struct input *in)
{
    struct tracelake_push *push;
    struct tracelake_error error = {0};
    const struct tracelake_push_options options = {
        .rig = sender->rig,
        .trace = sender->trace,
        .setup = sender->setup,
        .resume = !sender->no_resume,
        .chunk_bytes = (size_t)sender->chunk,
        .retry_ms = sender->retry_s == 0        ? -2
                    : sender->retry_s > 1000000 ? -1
                                                : (int)sender->retry_s * 1000,
        .notice = sender->quiet ? NULL : notice,
        .context = (void *)(uintptr_t)in->name,
    };
    if (tracelake_push_open(&push, lake, &options, &error) < 0)
        return tl_remote_fail(in->name, &error);
    const uint64_t from = tracelake_push_offset(push);
    char trace[128];
    snprintf(trace, sizeof trace, "%s", tracelake_push_trace(push));
    if (from > 0 && tl_bundle_skip(&in->from, from) != from) {
        tl_cli_warn(in->name,
                    "trace %s holds %" PRIu64
                    " bytes already, which is more than this input has; is it the same capture?",
                    trace, from);
        tracelake_push_close(push);
        return TL_CLI_BAD;
    }
    if (from > 0 && !sender->quiet)
        fprintf(stderr, "tracelake: %s: going on at byte %" PRIu64 "\n", trace, from);
    const int result = send_all(sender, lake, push, in, &error);
    if (result == TRACELAKE_CANCELLED) {
        /* What was read shall not be lost; a second signal does not wait for it. */
        tracelake_resume(lake);
        if (tracelake_push_serve(push, FAREWELL_MS, &error) < 0)
            tl_cli_warn(trace, "%s", error.text);
    }
    const uint64_t durable = tracelake_push_acked(push);
    tracelake_push_close(push);
    if (result == TRACELAKE_CANCELLED)
        return interrupted(trace, durable);
    if (result == TRACELAKE_AGAIN)
        return TL_CLI_BAD; /* said by read_input() */
    if (result < 0)
        return tl_remote_fail(trace, &error);
    tend(sender, lake, trace, true);
    return report(sender, lake, trace, in->name);
}

int tl_sender_push(const struct tl_sender *sender, struct tracelake *lake,
                   const struct tl_bundle_capture *capture)
{
    struct input in;
    uint64_t durable = 0;
    bool complete = false;
    int status = open_input(&in, sender, capture);
    if (status == TL_ARGS_GO && sender->trace && !sender->no_resume) {
        struct tracelake_error error;
        const int known = tracelake_offset(lake, sender->trace, &durable, &complete, &error);
        /* A token may allow pushing and nothing else; a push survives a connection that breaks. */
        if (known < 0 && known != TRACELAKE_NOTFOUND && known != TRACELAKE_DENIED &&
            known != TRACELAKE_UNREACHABLE)
            status = tl_remote_fail(in.name, &error);
    }
    if (status == TL_ARGS_GO)
        status =
            complete ? compare_complete(sender, lake, &in, durable) : send_input(sender, lake, &in);
    close_input(&in);
    return status;
}
