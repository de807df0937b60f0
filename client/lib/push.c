/* SPDX-License-Identifier: MIT */
/*
 * A push session: a ring buffer of unacknowledged bytes, and the call that sends them.
 *
 *     acked ≤ sent ≤ head, all offsets in the capture; [acked, head) is in the ring
 *
 * When the connection breaks, a new call is opened with resume; the server reports its durable
 * offset, `sent` is set back to it, and everything after it is sent again.
 */
#include "ask.h"
#include "base/crc32c.h"
#include "base/pbfield.h"
#include "tracelake/v1/ingest.pb-c.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static const char method[] = "/tracelake.v1.Ingest/Push";

enum {
    WINDOW = 16 << 20,
    CHUNK = 256 << 10,
    CHUNK_MAX = (4 << 20) - (64 << 10), /* proto/tracelake/v1/ingest.proto */
    HUGE_PAGE = 2 << 20,
    RETRY_MS = 30000,
    DENIED_MS = 1000,
    TAKEOVER_MS = 10000, /* time between one server losing a trace and the next one having it */
    BACKOFF_FIRST_MS = 10,
    BACKOFF_MAX_MS = 3000,
    BACKOFF_OTHERS_MS = 300 /* the same if there are several servers */
};

struct tracelake_push {
    struct tracelake *lake;
    struct tl_ask *ask; /* NULL: not connected */
    char *rig, *setup, *trace, *shards;
    size_t chunk;
    int retry_ms; /* -1: forever, 0: never */
    void (*notice)(void *context, const char *text);
    void *context;
    uint8_t *ring;
    size_t cap;
    uint64_t acked, sent, head;
    uint64_t epoch; /* of this push, 0: not opened yet */
    int64_t since;  /* time of the last acknowledgement or connect: ms */
    int full_ms;    /* next pause while the server is full, 0: it is not */
    bool finishing; /* Finish has been queued in this call */
    bool finished;
    bool failed;
    struct tracelake_error why;
};

/* ---- one call ----------------------------------------------------------------------------- */

static int bad_answer(struct tracelake_error *error)
{
    return tl_client_fail(error, TRACELAKE_BAD,
                          "the server answered a push with what is no "
                          "answer to it");
}

/* Process the next reply: Opened, Ack, Finished. */
static int take_reply(struct tracelake_push *push, struct tl_bytes bytes,
                      Tracelake__V1__PushReply **out, struct tracelake_error *error)
{
    return tl_ask_unpack(push->ask, &tracelake__v1__push_reply__descriptor, bytes, out, error);
}

static int send_open(struct tracelake_push *push, bool resume, struct tracelake_error *error)
{
    Tracelake__V1__Open open = TRACELAKE__V1__OPEN__INIT;
    Tracelake__V1__PushRequest request = TRACELAKE__V1__PUSH_REQUEST__INIT;
    open.rig = push->rig;
    open.trace = push->trace;
    open.setup = push->setup;
    open.resume = resume;
    open.epoch = push->epoch;
    open.shards = push->shards;
    request.step_case = TRACELAKE__V1__PUSH_REQUEST__STEP_OPEN;
    request.open = &open;
    return tl_ask_send(push->ask, &request.base, error);
}

/* The call ended with OK although more replies were due. */
static int early_end(int result, struct tracelake_error *error)
{
    if (result != TRACELAKE_EOF)
        return result;
    return tl_client_fail(error, TRACELAKE_UNREACHABLE, "the server ended the push");
}

/* Open the call; `*durable` receives the offset at which to continue. */
static int begin(struct tracelake_push *push, bool resume, uint64_t *durable,
                 struct tracelake_error *error)
{
    struct tl_bytes bytes;
    Tracelake__V1__PushReply *reply = NULL;
    int result = tl_ask_open(&push->ask, push->lake, method, 0, error);
    if (result == TRACELAKE_OK)
        result = send_open(push, resume, error);
    if (result == TRACELAKE_OK)
        result = early_end(tl_ask_recv(push->ask, &bytes, error), error);
    if (result == TRACELAKE_OK)
        result = take_reply(push, bytes, &reply, error);
    if (result == TRACELAKE_OK && reply->step_case != TRACELAKE__V1__PUSH_REPLY__STEP_OPENED)
        result = bad_answer(error);
    if (result == TRACELAKE_OK && !push->trace[0]) {
        char *id = strdup(reply->opened->trace);
        result = id ? TRACELAKE_OK : tl_client_fail(error, TRACELAKE_NOMEM, "out of memory");
        if (id) {
            free(push->trace);
            push->trace = id;
        }
    }
    if (result == TRACELAKE_OK) {
        *durable = reply->opened->durable;
        push->epoch = reply->opened->epoch;
    }
    if (reply)
        tracelake__v1__push_reply__free_unpacked(reply, NULL);
    if (result < 0) {
        tl_ask_close(push->ask);
        push->ask = NULL;
    }
    push->since = tl_monotonic_ms();
    push->finishing = false;
    return result;
}

/* Source: Chunk of ingest.proto; the data come last, since they are sent from where they lie. */
#define KEY_CHUNK  TL_PB_KEY(2, TL_PB_BYTES)
#define KEY_OFFSET TL_PB_KEY(1, TL_PB_VARINT)
#define KEY_DATA   TL_PB_KEY(2, TL_PB_BYTES)
#define KEY_CRC    TL_PB_KEY(3, TL_PB_FIXED32)
#define CHUNK_HEAD (5 * TL_PB_VARINT_MAX)

static size_t put_chunk_head(uint8_t out[static CHUNK_HEAD], uint64_t offset, uint32_t crc,
                             size_t n)
{
    uint8_t fields[CHUNK_HEAD];
    size_t m = 0;
    fields[m++] = KEY_OFFSET;
    m += tl_pb_put_varint(fields + m, offset);
    fields[m++] = KEY_CRC;
    tl_put_le32(fields + m, crc);
    m += 4;
    fields[m++] = KEY_DATA;
    m += tl_pb_put_varint(fields + m, n);
    out[0] = KEY_CHUNK;
    const size_t before = 1 + tl_pb_put_varint(out + 1, m + n);
    memcpy(out + before, fields, m);
    return before + m;
}

/* Queue the next chunk, limited to the contiguous part of the ring. */
static int send_chunk(struct tracelake_push *push, struct tracelake_error *error)
{
    const size_t at = (size_t)(push->sent % push->cap);
    size_t n = push->cap - at;
    if (n > push->head - push->sent)
        n = (size_t)(push->head - push->sent);
    if (n > push->chunk)
        n = push->chunk;
    const struct tl_bytes data = {push->ring + at, n};
    uint8_t head[CHUNK_HEAD];
    const size_t head_n = put_chunk_head(head, push->sent, tl_crc32c(0, data.p, n), n);
    const int result = tl_ask_send_parts(push->ask, (struct tl_bytes){head, head_n}, data, error);
    if (result == TRACELAKE_OK)
        push->sent += n;
    return result;
}

static int send_finish(struct tracelake_push *push, struct tracelake_error *error)
{
    Tracelake__V1__Finish finish = TRACELAKE__V1__FINISH__INIT;
    Tracelake__V1__PushRequest request = TRACELAKE__V1__PUSH_REQUEST__INIT;
    finish.length = push->head;
    request.step_case = TRACELAKE__V1__PUSH_REQUEST__STEP_FINISH;
    request.finish = &finish;
    const int result = tl_ask_send(push->ask, &request.base, error);
    if (result == TRACELAKE_OK) {
        push->finishing = true;
        tl_ask_end(push->ask);
    }
    return result;
}

static int take_durable(struct tracelake_push *push, uint64_t durable,
                        struct tracelake_error *error)
{
    if (durable > push->head)
        return tl_client_fail(error, TRACELAKE_BAD,
                              "the server acknowledged bytes that were never sent");
    if (durable > push->acked) {
        push->acked = durable;
        push->since = tl_monotonic_ms();
        push->full_ms = 0;
    }
    /* The server may have received them in an earlier call. */
    if (durable > push->sent)
        push->sent = durable;
    return TRACELAKE_OK;
}

/* Process all available replies. */
static int take_replies(struct tracelake_push *push, struct tracelake_error *error)
{
    for (;;) {
        struct tl_bytes bytes;
        Tracelake__V1__PushReply *reply;
        int result = tl_ask_take(push->ask, &bytes, error);
        if (result == TRACELAKE_AGAIN)
            return TRACELAKE_OK;
        if (result == TRACELAKE_EOF && push->finished)
            return TRACELAKE_OK;
        if (result < 0)
            return early_end(result, error);
        result = take_reply(push, bytes, &reply, error);
        if (result < 0)
            return result;
        switch (reply->step_case) {
        case TRACELAKE__V1__PUSH_REPLY__STEP_ACK:
            result = take_durable(push, reply->ack->durable, error);
            break;
        case TRACELAKE__V1__PUSH_REPLY__STEP_FINISHED:
            result = take_durable(push, reply->finished->durable, error);
            if (result == TRACELAKE_OK && push->finishing && push->acked == push->head)
                push->finished = true;
            else if (result == TRACELAKE_OK)
                result = bad_answer(error);
            break;
        default:
            result = bad_answer(error);
        }
        tracelake__v1__push_reply__free_unpacked(reply, NULL);
        if (result < 0)
            return result;
    }
}

/* Queue what the connection accepts, transfer for up to `ms`, process replies. AGAIN: nothing
 * moved. */
static int serve_once(struct tracelake_push *push, int ms, struct tracelake_error *error)
{
    int result = TRACELAKE_OK;
    /* One at a time: of the last message the data are borrowed, the others' would be copied. */
    if (push->sent < push->head && tl_ask_unsent(push->ask) == 0)
        result = send_chunk(push, error);
    if (result < 0)
        return result;
    tl_mux_consume(push->ask->mux, &push->ask->io);
    const int moved = tl_mux_step(push->ask->mux, ms, error);
    /* Messages received before the connection broke give the reason. */
    struct tracelake_error words;
    result = take_replies(push, &words);
    if (result < 0) {
        if (error)
            *error = words;
        return result;
    }
    return moved;
}

/* ---- reconnecting ------------------------------------------------------------------------- */

static void report(const struct tracelake_push *push, const char *text)
{
    if (push->notice)
        push->notice(push->context, text);
}

/* The next pause after one of `ms`. */
static int longer(const struct tracelake_push *push, int ms)
{
    const int most = tl_client_others(push->lake) ? BACKOFF_OTHERS_MS : BACKOFF_MAX_MS;
    return ms * 2 < most ? ms * 2 : most;
}

/* Can a retry help? A full or failing disk of the server can be repaired while the rig waits. */
static bool passes(int result, const struct tracelake_error *why)
{
    return result == TRACELAKE_UNREACHABLE || result == TRACELAKE_TIMEOUT ||
           result == TRACELAKE_NOSPACE || (result == TRACELAKE_IO && why->grpc_status);
}

static int rewind_to(struct tracelake_push *push, uint64_t durable, struct tracelake_error *error)
{
    if (durable < push->acked)
        return tl_client_fail(error, TRACELAKE_IO,
                              "the server has lost bytes that it had acknowledged (it has %llu, "
                              "had %llu); push the capture again under another name",
                              (unsigned long long)durable, (unsigned long long)push->acked);
    const int result = take_durable(push, durable, error);
    push->sent = durable;
    return result;
}

/* Finish was being sent when the connection broke: did it arrive? */
static int check_finished(struct tracelake_push *push, struct tracelake_error *error)
{
    uint64_t durable;
    bool complete;
    int result = tracelake_offset(push->lake, push->trace, &durable, &complete, error);
    if (result == TRACELAKE_NOTFOUND && push->head == 0) {
        /* An empty capture is deleted. */
        push->finished = true;
        return TRACELAKE_OK;
    }
    if (result == TRACELAKE_OK && complete && durable == push->head) {
        push->acked = push->sent = push->head;
        push->finished = true;
    }
    return result;
}

/* Wait, but end when interrupted. */
static int pause_for(struct tracelake_push *push, int ms, struct tracelake_error *error)
{
    const int64_t until = tl_monotonic_ms() + ms;
    for (int64_t left = ms; left > 0; left = until - tl_monotonic_ms()) {
        const int slept = tl_wire_sleep((int)left, push->lake->wake_fd, error);
        if (slept < 0)
            return slept;
    }
    return TRACELAKE_OK;
}

static int try_again(struct tracelake_push *push, bool was_finishing, struct tracelake_error *error)
{
    uint64_t durable = 0;
    if (was_finishing) {
        const int result = check_finished(push, error);
        if (result < 0 || push->finished)
            return result;
    }
    const int result = begin(push, true, &durable, error);
    return result < 0 ? result : rewind_to(push, durable, error);
}

/*
 * The call failed with `result`: reconnect, within the permitted time. If another push has taken
 * over, or the token is rejected now, retry once: the takeover may be a leftover of a push that is
 * gone, which the server soon notices. With several servers one may have lost the trace before
 * another one has it.
 */
static int reconnect(struct tracelake_push *push, int result, struct tracelake_error *error)
{
    const bool was_finishing = push->finishing;
    const int64_t begun = tl_monotonic_ms();
    bool denied = result == TRACELAKE_DENIED;
    const bool others = tl_client_others(push->lake);
    const bool full = result == TRACELAKE_NOSPACE;
    int backoff = denied && !others ? DENIED_MS : BACKOFF_FIRST_MS;
    if (full && push->full_ms > 0) /* the push was opened, and its bytes were rejected again */
        backoff = push->full_ms;
    bool reported = false;
    tl_ask_close(push->ask);
    push->ask = NULL;
    /* Another server may be able to do it. */
    if (result != TRACELAKE_UNREACHABLE)
        tl_client_leave(push->lake);
    while (result < 0 && (denied || passes(result, &push->why))) {
        const int64_t left =
            push->retry_ms < 0 ? backoff : begun + push->retry_ms - tl_monotonic_ms();
        if (left <= 0)
            break;
        if (!reported)
            report(push, push->why.text);
        reported = true;
        const int paused = pause_for(push, left < backoff ? (int)left : backoff, error);
        if (paused < 0)
            return paused;
        backoff = longer(push, backoff);
        result = try_again(push, was_finishing, &push->why);
        if (result < 0 && result != TRACELAKE_UNREACHABLE && result != TRACELAKE_CANCELLED)
            tl_client_leave(push->lake);
        denied = result == TRACELAKE_DENIED && others && tl_monotonic_ms() - begun < TAKEOVER_MS;
    }
    if (full)
        push->full_ms = backoff;
    if (result < 0 && error)
        *error = push->why;
    if (result == TRACELAKE_OK && reported)
        report(push, "connected again");
    return result;
}

/* Serve for up to `ms`; reconnects if the connection broke. AGAIN: nothing moved. */
static int serve(struct tracelake_push *push, int ms, struct tracelake_error *error)
{
    if (push->failed) {
        if (error)
            *error = push->why;
        return push->why.code;
    }
    const int patience = push->lake->timeout_ms;
    /* No call: an interrupted reconnect is continued here. */
    int result = push->ask ? serve_once(push, ms, &push->why) : TRACELAKE_UNREACHABLE;
    if (result == TRACELAKE_AGAIN && (push->acked < push->head || push->finishing) &&
        patience >= 0 && tl_monotonic_ms() - push->since > patience)
        result = tl_client_fail(&push->why, TRACELAKE_TIMEOUT,
                                "the server has acknowledged nothing for %d s", patience / 1000);
    if (result == TRACELAKE_OK || result == TRACELAKE_AGAIN || push->finished)
        return result == TRACELAKE_AGAIN ? result : TRACELAKE_OK;
    if (result == TRACELAKE_CANCELLED) {
        if (error)
            *error = push->why;
        return result;
    }
    result = reconnect(push, result, error);
    if (result < 0 && result != TRACELAKE_CANCELLED)
        push->failed = true;
    return result;
}

/* ---- the session -------------------------------------------------------------------------- */

/* Large pages: to get a small one for the first time takes as long as copying it twice. */
static uint8_t *new_ring(size_t n)
{
    const size_t whole = (n + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE;
    if (n < 2 * HUGE_PAGE || whole < n)
        return malloc(n);
    uint8_t *const ring = aligned_alloc(HUGE_PAGE, whole);
    if (ring)
        (void)!madvise(ring, whole, MADV_HUGEPAGE); /* it works without, too */
    return ring;
}

static int take_options(struct tracelake_push *push, const struct tracelake_push_options *options,
                        struct tracelake_error *error)
{
    if (!options->rig || !*options->rig || !options->setup)
        return tl_client_fail(error, TRACELAKE_USAGE, "a push needs a rig's name and a setup");
    if (options->chunk_bytes > CHUNK_MAX)
        return tl_client_fail(error, TRACELAKE_USAGE, "chunks have at most %d bytes", CHUNK_MAX);
    push->chunk = options->chunk_bytes ? options->chunk_bytes : CHUNK;
    push->cap = options->window_bytes ? options->window_bytes : WINDOW;
    push->retry_ms = options->retry_ms == 0    ? RETRY_MS
                     : options->retry_ms == -1 ? -1
                     : options->retry_ms < 0   ? 0
                                               : options->retry_ms;
    push->notice = options->notice;
    push->context = options->context;
    push->rig = strdup(options->rig);
    push->setup = strdup(options->setup);
    push->trace = strdup(options->trace ? options->trace : "");
    push->shards = strdup(options->shards ? options->shards : "");
    push->ring = new_ring(push->cap);
    if (!push->shards || !push->rig || !push->setup || !push->trace || !push->ring)
        return tl_client_fail(error, TRACELAKE_NOMEM, "out of memory");
    return TRACELAKE_OK;
}

/*
 * The server was available, otherwise tracelake_connect() would have failed. A named trace can be
 * opened repeatedly; an unnamed one is lost with its connection, and a new one that must not exist
 * cannot be retried.
 */
static int begin_first(struct tracelake_push *push, bool resume, uint64_t *durable,
                       struct tracelake_error *error)
{
    const int64_t begun = tl_monotonic_ms();
    int backoff = BACKOFF_FIRST_MS;
    int result = begin(push, resume, durable, error);
    bool reported = false;
    while (result < 0 && passes(result, error) &&
           (resume || !push->trace[0] || result == TRACELAKE_NOSPACE ||
            error->grpc_status == TL_GRPC_UNAVAILABLE) &&
           (push->retry_ms < 0 || tl_monotonic_ms() - begun < push->retry_ms)) {
        if (!reported)
            report(push, error->text);
        reported = true;
        result = pause_for(push, backoff, error);
        if (result == TRACELAKE_OK)
            result = begin(push, resume, durable, error);
        backoff = longer(push, backoff);
    }
    return result;
}

int tracelake_push_open(struct tracelake_push **out, struct tracelake *lake,
                        const struct tracelake_push_options *options, struct tracelake_error *error)
{
    struct tracelake_push *push = calloc(1, sizeof *push);
    if (!push)
        return tl_client_fail(error, TRACELAKE_NOMEM, "out of memory");
    push->lake = lake;
    uint64_t durable = 0;
    int result = take_options(push, options, &push->why);
    if (result == TRACELAKE_OK)
        result = begin_first(push, options->resume, &durable, &push->why);
    if (result < 0 && error)
        *error = push->why;
    if (result < 0) {
        tracelake_push_close(push);
        return result;
    }
    push->acked = push->sent = push->head = durable;
    *out = push;
    return TRACELAKE_OK;
}

const char *tracelake_push_trace(const struct tracelake_push *push)
{
    return push->trace;
}

uint64_t tracelake_push_offset(const struct tracelake_push *push)
{
    return push->head;
}

uint64_t tracelake_push_acked(const struct tracelake_push *push)
{
    return push->acked;
}

int tracelake_push_setup(struct tracelake_push *push, const char *setup,
                         struct tracelake_error *error)
{
    char *const copy = strdup(setup);
    if (!copy)
        return tl_client_fail(error, TRACELAKE_NOMEM, "out of memory");
    free(push->setup);
    push->setup = copy;
    return TRACELAKE_OK;
}

int tracelake_push_write(struct tracelake_push *push, const void *data, size_t n,
                         struct tracelake_error *error)
{
    const uint8_t *p = data;
    if (push->acked == push->head)
        push->since = tl_monotonic_ms();
    while (n > 0) {
        const size_t room = push->cap - (size_t)(push->head - push->acked);
        const size_t at = (size_t)(push->head % push->cap);
        size_t now = push->cap - at;
        if (now > room)
            now = room;
        if (now > n)
            now = n;
        if (now)
            memcpy(push->ring + at, p, now);
        push->head += now;
        p += now;
        n -= now;
        /* Wait only if the window is full; otherwise send what the connection accepts now. */
        int result;
        do
            result = serve(push, now ? 0 : 1000, error);
        while (result == TRACELAKE_OK && push->sent < push->head && now);
        if (result < 0 && result != TRACELAKE_AGAIN)
            return result;
    }
    return TRACELAKE_OK;
}

int tracelake_push_serve(struct tracelake_push *push, int ms, struct tracelake_error *error)
{
    const int64_t until = tl_monotonic_ms() + ms;
    for (;;) {
        const int64_t left = until - tl_monotonic_ms();
        const int result = serve(push, left > 0 ? (int)left : 0, error);
        if (result < 0 && result != TRACELAKE_AGAIN)
            return result;
        if (left <= 0 || push->acked == push->head)
            return TRACELAKE_OK;
    }
}

int tracelake_push_flush(struct tracelake_push *push, struct tracelake_error *error)
{
    while (push->acked < push->head) {
        const int result = serve(push, 1000, error);
        if (result < 0 && result != TRACELAKE_AGAIN)
            return result;
    }
    return TRACELAKE_OK;
}

int tracelake_push_finish(struct tracelake_push *push, struct tracelake_error *error)
{
    while (!push->finished) {
        int result = serve(push, push->sent < push->head || push->finishing ? 1000 : 0, error);
        if (result < 0 && result != TRACELAKE_AGAIN)
            return result;
        /* A repeated call has not reported this yet. */
        if (push->sent == push->head && !push->finishing && !push->finished) {
            result = send_finish(push, error);
            if (result < 0)
                return result;
        }
    }
    return TRACELAKE_OK;
}

void tracelake_push_close(struct tracelake_push *push)
{
    if (!push)
        return;
    tl_ask_close(push->ask);
    free(push->rig);
    free(push->setup);
    free(push->trace);
    free(push->shards);
    free(push->ring);
    free(push);
}

int tracelake_offset(struct tracelake *lake, const char *trace, uint64_t *durable, bool *complete,
                     struct tracelake_error *error)
{
    Tracelake__V1__GetOffsetRequest request = TRACELAKE__V1__GET_OFFSET_REQUEST__INIT;
    Tracelake__V1__GetOffsetReply *reply;
    request.trace = tl_ask_text(trace);
    const int result = tl_ask_once(lake, "/tracelake.v1.Ingest/GetOffset", 0, &request.base,
                                   &tracelake__v1__get_offset_reply__descriptor, &reply, error);
    if (result < 0)
        return result;
    *durable = reply->durable;
    if (complete)
        *complete = reply->complete;
    tracelake__v1__get_offset_reply__free_unpacked(reply, NULL);
    return TRACELAKE_OK;
}
