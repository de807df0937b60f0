/* SPDX-License-Identifier: MIT */
/*
 * tracelake.v1.Ingest. Each push has its own worker thread. It reads a chunk only when the spool
 * has accepted the previous one, so that a disk that is slower than the rig closes the rig's window
 * and nothing accumulates here.
 */
#include "base/cancel.h"
#include "base/crc32c.h"
#include "lake_ingest.h"
#include "rpc/pushchunk.h"
#include "rpc/rpcint.h"
#include "rpc/scoped.h"

#include "tracelake/v1/ingest.pb-c.h"

#include <stdio.h>

struct push {
    struct tl_call *call;
    struct tl_rpc *rpc;
    struct tl_ingest *ingest;
    char trace[64];
    atomic_ullong durable; /* as last reported by the spool */
    uint64_t acked;        /* as last sent to the client */
    uint64_t next;         /* offset after the last appended byte */
    bool finished;
    struct tl_quota_push quota;
    int64_t pause_ms; /* for its rate */
};

/* Called by the spool's thread. */
static void on_durable(void *context, uint64_t offset)
{
    struct push *const push = context;
    atomic_store(&push->durable, offset);
    tl_call_poke(push->call);
}

static int send_ack(struct push *push, uint64_t durable)
{
    Tracelake__V1__Ack ack = TRACELAKE__V1__ACK__INIT;
    Tracelake__V1__PushReply reply = TRACELAKE__V1__PUSH_REPLY__INIT;
    if (durable <= push->acked)
        return TL_OK;
    push->acked = durable;
    ack.durable = durable;
    reply.step_case = TRACELAKE__V1__PUSH_REPLY__STEP_ACK;
    reply.ack = &ack;
    return tl_call_send_latest(push->call, &reply.base);
}

static int step_open(struct push *push, const Tracelake__V1__Open *open)
{
    struct tl_fail *const fail = tl_call_fail(push->call);
    const struct tl_ingest_request request = {.rig = open->rig,
                                              .trace = open->trace,
                                              .setup = open->setup,
                                              .resume = open->resume,
                                              .epoch = open->epoch,
                                              .shards = tl_shards_named(open->shards),
                                              .index = tl_index_named(open->index),
                                              .client = tl_call_client(push->call)};
    uint64_t durable = 0;
    if (push->ingest)
        return tl_fail_set(fail, TL_USAGE, "a push has one `open`, this is the second");
    if (*open->shards && request.shards == TL_SHARDS_AS_LAKE)
        return tl_fail_set(fail, TL_USAGE, "shards: stored or virtual");
    if (*open->index && request.index == TL_INDEX_AS_LAKE)
        return tl_fail_set(fail, TL_USAGE, "index: now, behind or auto");
    if (!tl_name_ok(open->rig))
        return tl_fail_set(fail, TL_USAGE, "rig: 1 to 63 of A-Z a-z 0-9 . _ -");
    if (*open->trace && !tl_name_ok(open->trace))
        return tl_fail_set(fail, TL_USAGE, "trace: 1 to 63 of A-Z a-z 0-9 . _ -, or nothing");
    int rc =
        tl_scoped_push(push->rpc->lake, tl_call_scope(push->call), open->rig, open->trace, fail);
    if (rc < 0)
        return rc;
    rc = tl_quota_begin(
        &push->rpc->quotas, push->rpc->lake, open->rig, open->trace, tl_call_holder(push->call),
        (struct tl_scope *)(uintptr_t)tl_call_scope(push->call), &push->quota, fail);
    if (rc < 0)
        return rc;
    /* Late requests of a rig that is gone must not take the trace from its next push. */
    rc = tl_cancel_check();
    if (rc < 0)
        return rc;
    rc = tl_ingest_open(push->rpc->lake, &request, on_durable, push, &push->ingest, push->trace,
                        &durable, fail);
    if (rc < 0)
        return rc;
    const char *const labels = tl_scope_labels(tl_call_scope(push->call));
    if (*labels)
        rc = tl_lake_set_labels(push->rpc->lake, push->trace, labels, fail);
    if (rc < 0)
        return rc;
    push->acked = durable;
    push->next = durable;
    Tracelake__V1__Opened opened = TRACELAKE__V1__OPENED__INIT;
    Tracelake__V1__PushReply reply = TRACELAKE__V1__PUSH_REPLY__INIT;
    opened.trace = push->trace;
    opened.durable = durable;
    opened.epoch = tl_ingest_epoch(push->ingest);
    struct tl_identity stored;
    tl_ingest_identity(push->ingest, &stored);
    opened.content = stored.content;
    opened.complete = stored.complete;
    reply.step_case = TRACELAKE__V1__PUSH_REPLY__STEP_OPENED;
    reply.opened = &opened;
    return tl_call_send(push->call, &reply.base);
}

/* `message`: the received bytes that the chunk is in, which may be taken; NULL: it is somewhere
 * else. */
static int step_chunk(struct push *push, const struct tl_push_chunk *chunk,
                      struct tl_call_bytes *message)
{
    struct tl_fail *const fail = tl_call_fail(push->call);
    const struct tl_bytes bytes = chunk->data;
    const uint32_t crc = tl_crc32c(0, bytes.p, bytes.n);
    if (crc != chunk->crc32c)
        return tl_fail_at(fail, TL_BAD, chunk->offset,
                          "a chunk of %zu bytes has CRC32C %08x but says %08x; it was damaged on "
                          "its way, resume from the durable offset",
                          bytes.n, crc, chunk->crc32c);
    if (bytes.n > UINT64_MAX - chunk->offset)
        return tl_fail_at(fail, TL_USAGE, chunk->offset, "a chunk ends behind 2^64");
    /* Bytes that are already there take nothing. */
    const uint64_t end = chunk->offset + bytes.n;
    const uint64_t more = end > push->next ? end - push->next : 0;
    int rc = tl_quota_grow(&push->quota, push->rpc->lake, more, fail);
    if (rc < 0)
        return rc;
    rc = message && bytes.n
             ? tl_ingest_give(
                   push->ingest, chunk->offset,
                   &(struct tl_given){bytes, crc, tl_call_take_bytes(push->call, message)}, fail)
             : tl_ingest_append(push->ingest, chunk->offset, bytes, fail);
    if (rc == TL_OK && more)
        push->next = end;
    push->pause_ms = tl_quota_pause_ms(&push->quota, bytes.n);
    return rc;
}

static int step_finish(struct push *push, const Tracelake__V1__Finish *finish)
{
    struct tl_fail *const fail = tl_call_fail(push->call);
    uint64_t durable = 0;
    if (finish->length != push->next)
        return tl_fail_at(fail, TL_BAD, push->next,
                          "the capture shall be %llu bytes long, but ends here; push the rest",
                          (unsigned long long)finish->length);
    int rc = *finish->content ? tl_ingest_check(push->ingest, finish->content, fail) : TL_OK;
    if (rc == TL_OK)
        rc = tl_ingest_finish(push->ingest, &durable, fail);
    if (rc < 0)
        return rc;
    push->finished = true;
    Tracelake__V1__Finished finished = TRACELAKE__V1__FINISHED__INIT;
    Tracelake__V1__PushReply reply = TRACELAKE__V1__PUSH_REPLY__INIT;
    finished.durable = durable;
    reply.step_case = TRACELAKE__V1__PUSH_REPLY__STEP_FINISHED;
    reply.finished = &finished;
    return tl_call_send(push->call, &reply.base);
}

static int take_step(struct push *push, const Tracelake__V1__PushRequest *request)
{
    struct tl_fail *const fail = tl_call_fail(push->call);
    if (push->finished)
        return tl_fail_set(fail, TL_USAGE, "nothing may follow `finish`");
    if (request->step_case == TRACELAKE__V1__PUSH_REQUEST__STEP_OPEN)
        return step_open(push, request->open);
    if (!push->ingest)
        return tl_fail_set(fail, TL_USAGE, "the first request of a push is `open`");
    if (request->step_case == TRACELAKE__V1__PUSH_REQUEST__STEP_CHUNK) {
        const Tracelake__V1__Chunk *const c = request->chunk;
        return step_chunk(
            push, &(struct tl_push_chunk){c->offset, {c->data.data, c->data.len}, c->crc32c}, NULL);
    }
    if (request->step_case == TRACELAKE__V1__PUSH_REQUEST__STEP_FINISH)
        return step_finish(push, request->finish);
    return tl_fail_set(fail, TL_USAGE, "a request with none of open, chunk, finish");
}

static int take_message(struct push *push, struct tl_call_bytes *message)
{
    struct tl_push_chunk chunk;
    ProtobufCMessage *request;
    if (push->ingest && !push->finished && tl_push_chunk_parse(message->bytes, &chunk))
        return step_chunk(push, &chunk, message);
    int rc = tl_call_unpack(push->call, message->bytes, &request);
    if (rc == TL_OK) {
        rc = take_step(push, (Tracelake__V1__PushRequest *)request);
        tl_call_free_request(request);
    }
    return rc;
}

/* Keep to the rate of its quota: what is not read closes the rig's window. */
static int pause_push(struct push *push)
{
    const int64_t ms = push->pause_ms;
    push->pause_ms = 0;
    return ms > 0 ? tl_waiter_sleep(tl_call_waiter(push->call), ms) : TL_OK;
}

static int push_loop(struct push *push)
{
    for (;;) {
        struct tl_call_bytes message;
        int rc = tl_call_recv_bytes(push->call, &message, -1);
        if (rc == TL_EOF)
            return TL_OK;
        if (rc == TL_AGAIN && tl_call_draining(push->call))
            return tl_call_stop(push->call);
        if (rc < 0 && rc != TL_AGAIN)
            return rc;
        if (rc == TL_AGAIN && push->ingest &&
            tl_ingest_continues(push->ingest, tl_call_fail(push->call)) < 0)
            return tl_call_fail(push->call)->code;
        if (rc == TL_OK) {
            rc = take_message(push, &message);
            tl_call_free_bytes(push->call, &message);
            if (rc < 0)
                return rc;
        }
        if (push->ingest && !push->finished) {
            rc = send_ack(push, atomic_load(&push->durable));
            if (rc < 0)
                return rc;
        }
        rc = pause_push(push);
        if (rc < 0)
            return rc;
    }
}

static int run_push(struct tl_call *call, const void *none)
{
    struct push push = {.call = call, .rpc = tl_call_rpc(call)};
    int rc = push_loop(&push);
    if (!push.ingest)
        return rc;
    if (rc < 0 && rc != TL_EOF) {
        const struct tl_fail *const fail = tl_call_fail(call);
        tl_ingest_explain(push.ingest, rc == TL_CANCELLED ? "the rig's connection broke"
                                       : fail->text[0]    ? fail->text
                                                          : tl_err_name(rc));
    }
    tl_ingest_close(push.ingest); /* appended data is durable now, however the call ended */
    uint64_t durable;
    bool complete;
    if (!push.finished && rc != TL_CANCELLED &&
        tl_lake_offset(push.rpc->lake, push.trace, &durable, &complete) == TL_OK) {
        /* Bytes past `next` are of another push, which has taken over. */
        const int sent = send_ack(&push, durable < push.next ? durable : push.next);
        if (rc == TL_OK)
            rc = sent;
    }
    return rc;
}

static int run_get_offset(struct tl_call *call, const void *message)
{
    const Tracelake__V1__GetOffsetRequest *const request = message;
    Tracelake__V1__GetOffsetReply reply = TRACELAKE__V1__GET_OFFSET_REPLY__INIT;
    struct tl_identity stored = {0};
    struct tl_lake *const lake = tl_call_rpc(call)->lake;
    const int rc = request->identify
                       ? tl_lake_identify(lake, request->trace, &stored, tl_call_fail(call))
                       : tl_lake_offset(lake, request->trace, &stored.durable, &stored.complete);
    if (rc < 0)
        return tl_fail_set(tl_call_fail(call), rc, "trace \"%.63s\": %s", request->trace,
                           tl_err_name(rc));
    reply.durable = stored.durable;
    reply.complete = stored.complete;
    reply.content = stored.content;
    return tl_call_send(call, &reply.base);
}

const struct tl_method tl_ingest_methods[] = {
    {"/tracelake.v1.Ingest/Push", &tracelake__v1__push_request__descriptor, TL_BIDI, TL_ROLE_PUSH,
     run_push, TL_LASTING, TL_REACH_OWN},
    {"/tracelake.v1.Ingest/GetOffset", &tracelake__v1__get_offset_request__descriptor, TL_UNARY,
     TL_ROLE_READ, run_get_offset},
    {NULL, NULL, 0, 0, NULL},
};
