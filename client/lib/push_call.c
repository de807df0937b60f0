/* SPDX-License-Identifier: MIT */
/*
 * One call of a push: what it sends, and the replies. The session in push.c opens another one when
 * it breaks.
 */
#include "push.h"

#include "base/crc32c.h"
#include "base/members.h"
#include "base/pbfield.h"
#include "stored.h"
#include "tracelake/v1/ingest.pb-c.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char method[] = "/tracelake.v1.Ingest/Push";

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
    TL_COPY_MEMBERS(&open, push, rig, trace, setup, epoch, shards, index);
    open.resume = resume;
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
int tl_push_begin(struct tracelake_push *push, bool resume, uint64_t *durable,
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
        push->opened = (struct tracelake_stored){.durable = reply->opened->durable,
                                                 .complete = reply->opened->complete};
        snprintf(push->opened.content, sizeof push->opened.content, "%s", reply->opened->content);
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

/* Extend the sum by a chunk that has this checksum, or by its part that is sent for the first time.
 */
static void sum_chunk(struct tracelake_push *push, struct tl_bytes data, uint32_t crc)
{
    if (push->summed == push->sent)
        push->sum = tl_crc32c_join(push->sum, crc, data.n);
    else if (push->summed > push->sent && push->summed < push->sent + data.n)
        push->sum = tl_crc32c(push->sum, data.p + (push->summed - push->sent),
                              (size_t)(push->sent + data.n - push->summed));
    push->has_sum = push->has_sum && push->summed >= push->sent;
    if (push->summed < push->sent + data.n)
        push->summed = push->sent + data.n;
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
    const uint32_t crc = tl_crc32c(0, data.p, n);
    const size_t head_n = put_chunk_head(head, push->sent, crc, n);
    const int result = tl_ask_send_parts(push->ask, (struct tl_bytes){head, head_n}, data, error);
    if (result == TRACELAKE_OK) {
        sum_chunk(push, data, crc);
        push->sent += n;
    }
    return result;
}

int tl_push_send_finish(struct tracelake_push *push, struct tracelake_error *error)
{
    Tracelake__V1__Finish finish = TRACELAKE__V1__FINISH__INIT;
    Tracelake__V1__PushRequest request = TRACELAKE__V1__PUSH_REQUEST__INIT;
    char content[16] = "";
    finish.length = push->head;
    finish.content = content;
    if (push->has_sum && push->summed == push->head)
        snprintf(content, sizeof content, "crc32c:%08" PRIx32, push->sum);
    request.step_case = TRACELAKE__V1__PUSH_REQUEST__STEP_FINISH;
    request.finish = &finish;
    const int result = tl_ask_send(push->ask, &request.base, error);
    if (result == TRACELAKE_OK) {
        push->finishing = true;
        tl_ask_end(push->ask);
    }
    return result;
}

/* The server has everything before `durable`. BAD: that was never sent. */
static int take_durable(struct tracelake_push *push, uint64_t durable,
                        struct tracelake_error *error)
{
    if (durable > push->head)
        return tl_client_fail(error, TRACELAKE_BAD,
                              "the server acknowledged bytes that were never sent");
    if (durable > push->acked) {
        push->acked = durable;
        push->since = tl_monotonic_ms();
        tl_push_goes_on(push);
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
            if (result == TRACELAKE_OK && push->finishing && push->acked == push->head) {
                push->finished = true;
                tl_push_goes_on(push);
            } else if (result == TRACELAKE_OK)
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
int tl_push_serve_once(struct tracelake_push *push, int ms, struct tracelake_error *error)
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

/* ---- after a reconnect -------------------------------------------------------------------- */

/* Do the server's bytes before `durable`, with this checksum, and those of the ring after it have
 * the sum of what was sent? */
static bool continues(const struct tracelake_push *push, uint64_t durable, uint32_t sum)
{
    while (durable < push->summed) {
        const size_t at = (size_t)(durable % push->cap);
        const uint64_t left = push->summed - durable;
        const size_t n = left < push->cap - at ? (size_t)left : push->cap - at;
        sum = tl_crc32c(sum, push->ring + at, n);
        durable += n;
    }
    return sum == push->sum;
}

int tl_push_rewind(struct tracelake_push *push, uint64_t durable, struct tracelake_error *error)
{
    uint32_t sum = 0;
    if (durable < push->acked)
        return tl_client_fail(error, TRACELAKE_IO,
                              "the server has lost bytes that it had acknowledged (it has %llu, "
                              "had %llu); push the capture again under another name",
                              (unsigned long long)durable, (unsigned long long)push->acked);
    const bool known = durable == 0 || tl_content_sum(push->opened.content, &sum);
    if (durable <= push->head && known && push->has_sum && !continues(push, durable, sum))
        return tl_client_fail(error, TRACELAKE_EXISTS,
                              "trace %s has bytes of another push now; push the capture under "
                              "another name",
                              push->trace);
    const int result = take_durable(push, durable, error);
    push->sent = durable;
    return result;
}
