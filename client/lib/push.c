/* SPDX-License-Identifier: MIT */
/*
 * A push session: keeps a capture's bytes until they are acknowledged, and reconnects. Whatever
 * keeps it from going on is reported once and lasts until bytes are acknowledged, so that the time
 * for retries is not begun anew by each attempt that fails again.
 */
#include "push.h"

#include "stored.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

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
    BACKOFF_OTHERS_MS = 300, /* the same if there are several servers */
    HEALED_MS = 10000        /* without a failure: the next one is another one */
};

/* ---- reconnecting ------------------------------------------------------------------------- */

static void report(const struct tracelake_push *push, const char *text)
{
    if (push->notice)
        push->notice(push->context, text);
}

/* How long to wait before the next attempt, and longer from one to the next. */
static int next_pause(struct tracelake_push *push, int first)
{
    const int most = tl_client_others(push->lake) ? BACKOFF_OTHERS_MS : BACKOFF_MAX_MS;
    const int pause = push->fault.pause_ms ? push->fault.pause_ms : first;
    push->fault.pause_ms = pause * 2 < most ? pause * 2 : most;
    return pause;
}

/* Has the push been open for a while since? */
static bool has_lasted(const struct tracelake_push *push)
{
    return push->fault.again && tl_monotonic_ms() - push->fault.again > HEALED_MS;
}

/* A fault lasts until bytes are acknowledged. A full or failing disk may take some, and then no
 * more: not until it has not rejected any for a while. */
static bool is_over(const struct tracelake_push *push)
{
    return push->finished || !push->fault.full || has_lasted(push);
}

void tl_push_goes_on(struct tracelake_push *push)
{
    if (!push->fault.begun || !is_over(push))
        return;
    const bool told = push->fault.told;
    push->fault = (struct tl_push_fault){0};
    if (told)
        report(push, "connected again");
}

/* After a failure: the pause before the next attempt, initially `first` ms; < 0: none is left.
 * Reports what is wrong, once. `full`: that the push can be opened again is no proof that it goes
 * on. */
static int start_pause(struct tracelake_push *push, int first, bool full, const char *why)
{
    struct tl_push_fault *const fault = &push->fault;
    const int64_t now = tl_monotonic_ms();
    if (has_lasted(push))
        *fault = (struct tl_push_fault){0};
    if (!fault->begun)
        fault->begun = now;
    fault->full = fault->full || full;
    fault->again = 0;
    const int64_t left = push->retry_ms < 0 ? INT_MAX : fault->begun + push->retry_ms - now;
    if (left <= 0)
        return -1;
    if (!fault->told)
        report(push, why);
    fault->told = true;
    const int pause = next_pause(push, first);
    return left < pause ? (int)left : pause;
}

/* Can a retry help? A full or failing disk of the server can be repaired while the rig waits. */
static bool passes(int result, const struct tracelake_error *why)
{
    return result == TRACELAKE_UNREACHABLE || result == TRACELAKE_TIMEOUT ||
           result == TRACELAKE_NOSPACE || (result == TRACELAKE_IO && why->grpc_status);
}

/* Of these: may the server accept the push again, and then reject its bytes? */
static bool is_full(int result)
{
    return result == TRACELAKE_NOSPACE || result == TRACELAKE_IO;
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
    const int result = tl_push_begin(push, true, &durable, error);
    return result < 0 ? result : tl_push_rewind(push, durable, error);
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
    const bool others = tl_client_others(push->lake);
    bool denied = result == TRACELAKE_DENIED;
    tl_ask_close(push->ask);
    push->ask = NULL;
    /* Another server may be able to do it. */
    if (result != TRACELAKE_UNREACHABLE)
        tl_client_leave(push->lake);
    while (result < 0 && (denied || passes(result, &push->why))) {
        const int pause = start_pause(push, denied && !others ? DENIED_MS : BACKOFF_FIRST_MS,
                                      is_full(result), push->why.text);
        if (pause < 0)
            break;
        const int paused = pause_for(push, pause, error);
        if (paused < 0)
            return paused;
        result = try_again(push, was_finishing, &push->why);
        if (result < 0 && result != TRACELAKE_UNREACHABLE && result != TRACELAKE_CANCELLED)
            tl_client_leave(push->lake);
        denied = result == TRACELAKE_DENIED && others && tl_monotonic_ms() - begun < TAKEOVER_MS;
    }
    if (result < 0 && error)
        *error = push->why;
    if (result == TRACELAKE_OK)
        push->fault.again = tl_monotonic_ms();
    if (result == TRACELAKE_OK && push->acked == push->head)
        tl_push_goes_on(push);
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
    int result = push->ask ? tl_push_serve_once(push, ms, &push->why) : TRACELAKE_UNREACHABLE;
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
    push->index = strdup(options->index ? options->index : "");
    push->ring = new_ring(push->cap);
    if (!push->shards || !push->index || !push->rig || !push->setup || !push->trace || !push->ring)
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
    int result = tl_push_begin(push, resume, durable, error);
    while (result < 0 && passes(result, error) &&
           (resume || !push->trace[0] || result == TRACELAKE_NOSPACE ||
            error->grpc_status == TL_GRPC_UNAVAILABLE)) {
        const int pause = start_pause(push, BACKOFF_FIRST_MS, is_full(result), error->text);
        if (pause < 0)
            break;
        result = pause_for(push, pause, error);
        if (result == TRACELAKE_OK)
            result = tl_push_begin(push, resume, durable, error);
    }
    if (result == TRACELAKE_OK)
        push->fault.again = tl_monotonic_ms();
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
    push->acked = push->sent = push->head = push->summed = durable;
    push->has_sum = durable == 0 || tl_content_sum(push->opened.content, &push->sum);
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
            result = tl_push_send_finish(push, error);
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
    tracelake_content_free(push->compared);
    free(push->rig);
    free(push->setup);
    free(push->trace);
    free(push->shards);
    free(push->index);
    free(push->ring);
    free(push);
}

/* ---- comparing ---------------------------------------------------------------------------- */

void tracelake_push_stored(const struct tracelake_push *push, struct tracelake_stored *out)
{
    *out = push->opened;
}

int tracelake_push_compare(struct tracelake_push *push, const void *data, size_t n,
                           struct tracelake_error *error)
{
    const struct tracelake_stored *const stored = &push->opened;
    int result = TRACELAKE_OK;
    if (n > stored->durable - push->compared_to)
        return tl_client_fail(error, TRACELAKE_USAGE, "only what the server has is compared");
    if (!push->compared)
        result = tracelake_content_new(&push->compared, stored->content, error);
    if (result == TRACELAKE_OK)
        tracelake_content_add(push->compared, data, n);
    push->compared_to += n;
    if (result < 0 || push->compared_to < stored->durable)
        return result;
    return tracelake_content_same(push->compared, stored->content, error);
}
