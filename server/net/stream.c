/* SPDX-License-Identifier: MIT */
/*
 * Connects a loop that must not block with a worker that may. Each side has its functions under one
 * lock, and a worker is woken only when there is enough to do, because switching threads costs as
 * much as sending a frame.
 */
#include "net/stream.h"

#include "net/grpc.h"
#include "net/pool.h"
#include "net/quota.h"
#include "net/scope.h"
#include "net/workers.h"

#include <stdlib.h>
#include <string.h>

/* A client that has not read everything by then, after the deadline, is reset. It has its own
 * timer, whose error it should see: a client that is reset earlier reports a cancellation. */
#define DEADLINE_GRACE_MS 200

#define STEP (256u << 10) /* bytes of a request that extend its time */

/* ---- life ------------------------------------------------------------------------------- */

void tl_h2_stream_task(struct tl_task *task);

struct tl_stream *tl_stream_new(struct tl_netloop *loop, int32_t id, struct tl_caller *caller)
{
    struct tl_stream *const stream = calloc(1, sizeof *stream);
    if (!stream)
        return NULL;
    stream->task.run = tl_h2_stream_task;
    atomic_init(&stream->refs, 1);
    stream->net = loop->net;
    stream->loop = loop;
    stream->id = id;
    stream->caller = tl_caller_get(caller);
    stream->account = tl_account_get(caller->account);
    stream->deadline_ns = INT64_MAX;
    stream->out_tail = &stream->out;
    stream->in_tail = &stream->in;
    tl_waiter_init(&stream->waiter);
    return stream;
}

static void free_chunks(struct tl_chunk *chunk)
{
    while (chunk) {
        struct tl_chunk *const next = chunk->next;
        tl_chunk_put(chunk);
        chunk = next;
    }
}

void tl_message_free(struct tl_stream *stream, struct tl_message *message)
{
    if (!message)
        return;
    tl_account_release(stream->account, message->use, message->held);
    free(message);
}

void tl_stream_put(struct tl_stream *stream)
{
    if (atomic_fetch_sub(&stream->refs, 1) != 1)
        return;
    tl_scope_put(stream->scope);
    tl_holder_put(stream->holder);
    tl_body_fini(&stream->body);
    tl_fields_fini(&stream->request);
    free(stream->why);
    tl_fields_fini(&stream->head);
    tl_fields_fini(&stream->trailers);
    free_chunks(stream->ready);
    free_chunks(stream->out);
    tl_message_free(stream, stream->partial);
    while (stream->in) {
        struct tl_message *const next = stream->in->next;
        tl_message_free(stream, stream->in);
        stream->in = next;
    }
    if (stream->holds)
        tl_account_release(stream->account, TL_USE_ANSWERS, stream->holds);
    tl_account_put(stream->account);
    tl_account_release(stream->caller->account, TL_USE_HEADS, stream->head_held);
    if (stream->guest)
        tl_account_release(stream->caller->account, TL_USE_GUESTS, 1);
    tl_caller_put(stream->caller);
    tl_waiter_fini(&stream->waiter);
    free(stream);
}

/* Let the loop process the stream. Lock held. */
static void touch_locked(struct tl_stream *stream)
{
    if (stream->dirty)
        return;
    stream->dirty = true;
    tl_stream_get(stream);
    tl_loop_post(&stream->loop->loop, &stream->task);
}

bool tl_stream_expired(const struct tl_stream *stream)
{
    return stream->deadline_ns != INT64_MAX && tl_monotonic_ns() >= stream->deadline_ns;
}

bool tl_stream_unwanted(void *context)
{
    const struct tl_stream *const stream = context;
    tl_pool_tire();
    return tl_waiter_closed(&stream->waiter) || tl_stream_expired(stream);
}

/* ---- worker side: out ------------------------------------------------------------------- */

void tl_stream_head(struct tl_stream *stream, struct tl_fields *head)
{
    pthread_mutex_lock(&stream->waiter.lock);
    if (!stream->has_head) {
        stream->head = *head;
        *head = (struct tl_fields){0};
        stream->has_head = true;
        touch_locked(stream);
    }
    pthread_mutex_unlock(&stream->waiter.lock);
    tl_fields_fini(head);
}

/* Replace the last pending chunk with the bytes of a `latest` chunk. */
static bool replace_locked(struct tl_stream *stream, struct tl_chunk *chunk)
{
    struct tl_chunk *const last = stream->out_last;
    if (!chunk->latest || !last || !last->latest || last->cap < chunk->n)
        return false;
    memcpy(last->p, chunk->p, chunk->n);
    stream->out_bytes += chunk->n;
    stream->out_bytes -= last->n;
    last->n = chunk->n;
    return true;
}

static void append_locked(struct tl_stream *stream, struct tl_chunk *chunk)
{
    while (chunk) {
        struct tl_chunk *const next = chunk->next;
        chunk->next = NULL;
        tl_chunk_charge(chunk, stream->account);
        *stream->out_tail = chunk;
        stream->out_tail = &chunk->next;
        stream->out_last = chunk;
        stream->out_bytes += chunk->n;
        if (chunk->mapped)
            stream->out_mapped += chunk->n;
        chunk = next;
    }
}

/* What the pending output costs: about the memory that it takes. */
static size_t weight_locked(const struct tl_stream *stream)
{
    return stream->out_bytes - stream->out_mapped + stream->out_mapped / TL_CHUNK_MAPPED;
}

int tl_stream_write(struct tl_stream *stream, struct tl_chunk *chunk)
{
    int rc = TL_OK;
    pthread_mutex_lock(&stream->waiter.lock);
    if (replace_locked(stream, chunk)) {
        tl_chunk_put(chunk);
        chunk = NULL;
    }
    while (chunk && weight_locked(stream) > TL_STREAM_OUT_MARK && !stream->waiter.closed &&
           !stream->ended) {
        stream->stalled = true;
        tl_waiter_wait_until_locked(&stream->waiter, -1);
    }
    stream->stalled = false;
    if (stream->waiter.closed || stream->ended) {
        rc = TL_CANCELLED;
        free_chunks(chunk);
    } else if (chunk) {
        append_locked(stream, chunk);
        touch_locked(stream);
    }
    pthread_mutex_unlock(&stream->waiter.lock);
    return rc;
}

void tl_stream_end(struct tl_stream *stream, struct tl_fields *trailers)
{
    pthread_mutex_lock(&stream->waiter.lock);
    if (!stream->ended) {
        stream->ended = true;
        if (trailers) {
            stream->trailers = *trailers;
            *trailers = (struct tl_fields){0};
        }
        touch_locked(stream);
    }
    pthread_mutex_unlock(&stream->waiter.lock);
    if (trailers)
        tl_fields_fini(trailers);
}

static void end_locked(struct tl_stream *stream, struct tl_fields *head, struct tl_fields *trailers)
{
    stream->head = *head;
    stream->trailers = *trailers;
    *head = (struct tl_fields){0};
    *trailers = (struct tl_fields){0};
    stream->has_head = true;
    stream->ended = true;
    touch_locked(stream);
}

void tl_stream_finish(struct tl_stream *stream, struct tl_fields *head, struct tl_fields *trailers)
{
    pthread_mutex_lock(&stream->waiter.lock);
    if (!stream->ended && !stream->has_head)
        end_locked(stream, head, trailers);
    pthread_mutex_unlock(&stream->waiter.lock);
    tl_fields_fini(head);
    tl_fields_fini(trailers);
}

void tl_stream_expire(struct tl_stream *stream, struct tl_fields *head, struct tl_fields *trailers)
{
    pthread_mutex_lock(&stream->waiter.lock);
    if (!stream->submitted && !stream->ended) {
        free_chunks(stream->out);
        stream->out = NULL;
        stream->out_tail = &stream->out;
        stream->out_last = NULL;
        stream->out_bytes = 0;
        stream->out_mapped = 0;
        tl_fields_fini(&stream->head);
        end_locked(stream, head, trailers);
        uv_timer_stop(&stream->timer);
    } else if (stream->submitted && stream->waiter.closed && !stream->reset) {
        stream->reset = NGHTTP2_CANCEL + 1;
        stream->ended = true;
        touch_locked(stream);
    }
    stream->waiter.closed = true;
    pthread_cond_broadcast(&stream->waiter.cond);
    pthread_mutex_unlock(&stream->waiter.lock);
    tl_fields_fini(head);
    tl_fields_fini(trailers);
}

int tl_stream_cut_short(struct tl_stream *stream, struct tl_fields *trailers)
{
    const size_t n = stream->promised;
    struct tl_chunk *const zeros = tl_chunk_new(n);
    if (!zeros) {
        tl_fields_fini(trailers);
        return TL_NOMEM;
    }
    memset(zeros->p, 0, n);
    pthread_mutex_lock(&stream->waiter.lock);
    free_chunks(stream->ready);
    free_chunks(stream->out);
    stream->ready = zeros;
    stream->ready_at = 0;
    stream->ready_bytes = n;
    stream->out = NULL;
    stream->out_tail = &stream->out;
    stream->out_last = NULL;
    stream->out_bytes = n;
    stream->out_mapped = 0;
    tl_fields_fini(&stream->trailers);
    stream->trailers = *trailers;
    *trailers = (struct tl_fields){0};
    stream->ended = true;
    pthread_cond_broadcast(&stream->waiter.cond);
    touch_locked(stream);
    pthread_mutex_unlock(&stream->waiter.lock);
    return TL_OK;
}

void tl_stream_reset(struct tl_stream *stream, uint32_t code)
{
    pthread_mutex_lock(&stream->waiter.lock);
    stream->reset = code + 1;
    stream->ended = true;
    touch_locked(stream);
    pthread_mutex_unlock(&stream->waiter.lock);
}

/* ---- worker side: in -------------------------------------------------------------------- */

static int take_locked(struct tl_stream *stream, struct tl_message **out)
{
    if (stream->waiter.closed)
        return TL_CANCELLED;
    struct tl_message *const message = stream->in;
    if (message) {
        stream->in = message->next;
        if (!stream->in)
            stream->in_tail = &stream->in;
        const bool was_full = stream->in_bytes > TL_STREAM_IN_MARK;
        stream->in_bytes -= message->n;
        if (was_full && stream->in_bytes <= TL_STREAM_IN_MARK)
            touch_locked(stream); /* the client may send again */
        *out = message;
        return TL_OK;
    }
    if (stream->in_error)
        return stream->in_error;
    return stream->in_ended ? TL_EOF : TL_AGAIN;
}

int tl_stream_read(struct tl_stream *stream, struct tl_message **out, int64_t timeout_ms)
{
    const int64_t until = timeout_ms < 0 ? -1 : tl_monotonic_ms() + timeout_ms;
    int rc;
    pthread_mutex_lock(&stream->waiter.lock);
    for (;;) {
        rc = take_locked(stream, out);
        if (rc != TL_AGAIN)
            break;
        if (stream->waiter.poked) {
            stream->waiter.poked = false;
            break;
        }
        if (!tl_waiter_wait_until_locked(&stream->waiter, until))
            break;
    }
    pthread_mutex_unlock(&stream->waiter.lock);
    return rc;
}

/* ---- loop side: in ---------------------------------------------------------------------- */

static void stop_receiving(struct tl_stream *stream, int error)
{
    tl_message_free(stream, stream->partial);
    stream->partial = NULL;
    stream->framed = false;
    stream->due = 0;
    pthread_mutex_lock(&stream->waiter.lock);
    stream->in_error = error;
    pthread_cond_broadcast(&stream->waiter.cond);
    pthread_mutex_unlock(&stream->waiter.lock);
}

/* Public calls need little. */
#define MAX_PUBLIC_MESSAGE (64u << 10)
#define MAX_HEALTH_MESSAGE (1u << 10)

size_t tl_stream_max_message(const struct tl_stream *stream)
{
    const size_t most = atomic_load_explicit(&stream->net->max_message, memory_order_relaxed);
    if (stream->method->role == TL_ROLE_HEALTH)
        return MAX_HEALTH_MESSAGE;
    return stream->method->role == TL_ROLE_PUBLIC && most > MAX_PUBLIC_MESSAGE ? MAX_PUBLIC_MESSAGE
                                                                               : most;
}

/*
 * Grow `partial`, initially NULL, to hold `n` bytes of its message. An announced size costs
 * nothing: memory is allocated, and counted, as bytes arrive.
 */
static int grow_partial(struct tl_stream *stream, size_t n)
{
    struct tl_message *old = stream->partial;
    const unsigned use = TL_USE_INBOUND + tl_role_class(stream->method->role);
    const size_t before = old ? old->held : 0;
    const size_t held = sizeof *old + n;
    if (!tl_account_take(stream->account, use, held - before))
        return TL_NOMEM;
    struct tl_message *const message = realloc(old, held);
    if (!message) {
        tl_account_release(stream->account, use, held - before);
        return TL_NOMEM;
    }
    message->held = held;
    message->use = (uint8_t)use;
    stream->partial = message;
    return TL_OK;
}

static size_t announced(const struct tl_stream *stream)
{
    const uint8_t *const head = stream->prefix;
    return (size_t)head[1] << 24 | (size_t)head[2] << 16 | (size_t)head[3] << 8 | head[4];
}

/* The 5-byte prefix of a message is complete, and `there` bytes after it have arrived. */
static int begin_message(struct tl_stream *stream, size_t there)
{
    const uint8_t *const head = stream->prefix;
    const size_t n = announced(stream);
    if (head[0] > 1)
        return TL_BAD;
    if (n > tl_stream_max_message(stream))
        return TL_LIMIT;
    const int rc = grow_partial(stream, there < n ? there : n);
    if (rc < 0)
        return rc;
    *stream->partial = (struct tl_message){.n = n,
                                           .held = stream->partial->held,
                                           .use = stream->partial->use,
                                           .compressed = head[0] == 1};
    stream->partial_n = 0;
    return TL_OK;
}

/* Process bytes of a message in progress. Returns how many belong to it, or TL_NOMEM. */
static ssize_t continue_message(struct tl_stream *stream, const uint8_t *p, size_t n)
{
    const struct tl_message *const message = stream->partial;
    const size_t left = message->n - stream->partial_n;
    const size_t take = n < left ? n : left;
    const size_t room = message->held - sizeof *message;
    const size_t need = stream->partial_n + take;
    if (need > room) {
        size_t size = 2 * room > need ? 2 * room : need;
        const int rc = grow_partial(stream, size < message->n ? size : message->n);
        if (rc < 0)
            return rc;
    }
    memcpy(stream->partial->p + stream->partial_n, p, take);
    stream->partial_n += take;
    return (ssize_t)take;
}

static void finish_message(struct tl_stream *stream)
{
    struct tl_message *const message = stream->partial;
    stream->partial = NULL;
    stream->prefix_n = 0;
    if (stream->method->shape == TL_CLIENT_STREAM || stream->method->shape == TL_BIDI)
        stream->due = 0; /* the next one may begin at any time */
    pthread_mutex_lock(&stream->waiter.lock);
    *stream->in_tail = message;
    stream->in_tail = &message->next;
    stream->in_bytes += message->n;
    pthread_cond_broadcast(&stream->waiter.cond);
    pthread_mutex_unlock(&stream->waiter.lock);
    tl_grpc_received(stream);
}

static int deframe(struct tl_stream *stream, const uint8_t *p, size_t n)
{
    while (n) {
        ssize_t took = 1;
        if (stream->partial) {
            took = continue_message(stream, p, n);
            if (took < 0)
                return (int)took;
        } else {
            if (!stream->prefix_n && !stream->due)
                tl_stream_await(stream);
            stream->prefix[stream->prefix_n++] = *p;
            if (stream->prefix_n == sizeof stream->prefix) {
                const int rc = begin_message(stream, n - 1);
                if (rc < 0)
                    return rc;
            }
        }
        p += took;
        n -= (size_t)took;
        if (stream->partial && stream->partial_n == stream->partial->n)
            finish_message(stream);
    }
    return TL_OK;
}

void tl_stream_await(struct tl_stream *stream)
{
    stream->due = uv_now(&stream->loop->loop.uv) + stream->net->options.request_ms;
    stream->step = 0;
}

void tl_stream_give_up(struct tl_stream *stream)
{
    stop_receiving(stream, TL_UNREACHABLE);
    tl_grpc_received(stream);
}

ssize_t tl_stream_receive(struct tl_stream *stream, const uint8_t *p, size_t n)
{
    stream->step += n;
    if (stream->due && stream->step >= STEP)
        tl_stream_await(stream);
    if (!stream->framed)
        return (ssize_t)n;
    const int rc = deframe(stream, p, n);
    if (rc < 0) {
        stop_receiving(stream, rc);
        tl_grpc_received(stream);
        return (ssize_t)n;
    }
    pthread_mutex_lock(&stream->waiter.lock);
    const bool full = stream->in_bytes > TL_STREAM_IN_MARK;
    pthread_mutex_unlock(&stream->waiter.lock);
    if (!full)
        return (ssize_t)n;
    stream->owed += n;
    return 0;
}

void tl_stream_receive_end(struct tl_stream *stream)
{
    const bool broken = stream->framed && (stream->partial || stream->prefix_n);
    stream->half_closed = true;
    stream->due = 0;
    pthread_mutex_lock(&stream->waiter.lock);
    stream->in_ended = true;
    if (broken && !stream->in_error)
        stream->in_error = TL_BAD; /* it ends inside a message */
    pthread_cond_broadcast(&stream->waiter.cond);
    pthread_mutex_unlock(&stream->waiter.lock);
    if (stream->method)
        tl_grpc_received(stream);
}

/* ---- loop side: out --------------------------------------------------------------------- */

bool tl_stream_pending(struct tl_stream *stream)
{
    pthread_mutex_lock(&stream->waiter.lock);
    const bool pending = stream->out_bytes > 0 || stream->ended;
    pthread_mutex_unlock(&stream->waiter.lock);
    return pending;
}

bool tl_stream_collect(struct tl_stream *stream)
{
    pthread_mutex_lock(&stream->waiter.lock);
    if (stream->out) {
        struct tl_chunk **tail = &stream->ready;
        while (*tail)
            tail = &(*tail)->next;
        *tail = stream->out;
        stream->ready_bytes = stream->out_bytes;
        stream->out = NULL;
        stream->out_tail = &stream->out;
        stream->out_last = NULL;
    }
    const bool ended = stream->ended;
    pthread_mutex_unlock(&stream->waiter.lock);
    return ended;
}

/* Wake the worker if it should continue. Chunks of mapped files are queued many at a time, since
 * switching between threads costs as much as sending one. */
static void resume_locked(struct tl_stream *stream)
{
    const size_t mark = stream->out_mapped ? TL_STREAM_OUT_MARK / 2 : TL_STREAM_OUT_MARK;
    if (stream->stalled && weight_locked(stream) <= mark)
        pthread_cond_broadcast(&stream->waiter.cond);
}

int tl_stream_emit(struct tl_stream *stream, struct tl_outq *q, size_t n)
{
    int rc = TL_OK;
    size_t done = 0, mapped = 0;
    while (done < n) {
        struct tl_chunk *const chunk = stream->ready;
        const size_t left = chunk->n - stream->ready_at;
        const size_t take = left < n - done ? left : n - done;
        if (take && (rc = tl_outq_slice(q, chunk, stream->ready_at, take)) < 0)
            break;
        done += take;
        mapped += chunk->mapped ? take : 0;
        stream->ready_at += take;
        if (stream->ready_at == chunk->n) {
            stream->ready = chunk->next;
            stream->ready_at = 0;
            tl_chunk_put(chunk);
        }
    }
    stream->ready_bytes -= done;
    stream->moved_at = uv_now(&stream->loop->loop.uv);
    pthread_mutex_lock(&stream->waiter.lock);
    stream->out_bytes -= done;
    stream->out_mapped -= mapped;
    resume_locked(stream);
    pthread_mutex_unlock(&stream->waiter.lock);
    return rc;
}

/* ---- loop side: end --------------------------------------------------------------------- */

static void on_deadline_closed(uv_handle_t *handle)
{
    tl_stream_put(handle->data);
}

static void on_deadline(uv_timer_t *timer)
{
    tl_grpc_timed_out(timer->data);
}

void tl_stream_deadline(struct tl_stream *stream, int64_t ns)
{
    const int64_t now = tl_monotonic_ns();
    stream->deadline_ns = ns < INT64_MAX - now ? now + ns : INT64_MAX;
    uv_timer_init(&stream->loop->loop.uv, &stream->timer);
    stream->timer.data = tl_stream_get(stream);
    stream->has_timer = true;
    uv_update_time(&stream->loop->loop.uv);
    /* The loop's clock and the quotient are rounded down, each by less than 1 ms. */
    uv_timer_start(&stream->timer, on_deadline, (uint64_t)ns / 1000000 + 2, DEADLINE_GRACE_MS);
}

void tl_stream_detach(struct tl_stream *stream)
{
    if (stream->has_timer)
        uv_close((uv_handle_t *)&stream->timer, on_deadline_closed);
    stream->has_timer = false;
    stream->h2 = NULL;
    atomic_fetch_sub(&stream->loop->net->stats.streams_open, 1);
    *stream->link = stream->next;
    if (stream->next)
        stream->next->link = stream->link;
    tl_waiter_close(&stream->waiter);
    tl_stream_put(stream);
}
