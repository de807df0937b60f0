/* SPDX-License-Identifier: MIT */
/*
 * Fetches raw bytes of a capture, and its setup. After a broken connection the bytes that are
 * missing are requested from any server that has them.
 */
#include "ask.h"
#include "base/pbfield.h"
#include "tracelake/v1/raw.pb-c.h"

#include <stdlib.h>
#include <string.h>

/* Source: FetchRawReply of raw.proto. */
#define KEY_OFFSET TL_PB_KEY(1, TL_PB_VARINT)
#define KEY_DATA   TL_PB_KEY(2, TL_PB_BYTES)
#define KEY_WHEN   TL_PB_KEY(3, TL_PB_VARINT)
#define KEY_LOST   TL_PB_KEY(4, TL_PB_VARINT)

struct tracelake_raw {
    struct tracelake *lake;
    char *trace;
    uint64_t to;
    struct tl_again again;
    struct tl_ask *ask;       /* NULL: to be requested again */
    uint64_t next;            /* expected offset of the next byte */
    uint64_t before, arrived; /* when the piece before the last one had, and that one */
    bool lost;                /* the rig's connection, in front of the last piece */
};

/* Request the bytes from `next` on. */
static int ask(struct tracelake_raw *raw, struct tracelake_error *error)
{
    Tracelake__V1__FetchRawRequest request = TRACELAKE__V1__FETCH_RAW_REQUEST__INIT;
    request.trace = raw->trace;
    request.begin = raw->next;
    request.to = tl_ask_end_of(raw->to);
    int result = tl_ask_open(&raw->ask, raw->lake, "/tracelake.v1.Raw/FetchRaw", 0, error);
    if (result == TRACELAKE_OK)
        result = tl_ask_send(raw->ask, &request.base, error);
    if (result == TRACELAKE_OK)
        tl_ask_end(raw->ask);
    return result;
}

int tracelake_raw_open(struct tracelake_raw **out, struct tracelake *lake, const char *trace,
                       uint64_t from, uint64_t to, struct tracelake_error *error)
{
    if (from > to)
        return tl_client_fail(error, TRACELAKE_USAGE, "the range ends before it begins");
    struct tracelake_raw *raw = calloc(1, sizeof *raw);
    if (!raw)
        return tl_client_fail(error, TRACELAKE_NOMEM, "out of memory");
    raw->lake = lake;
    raw->next = from;
    raw->to = to;
    raw->trace = strdup(trace ? trace : "");
    const int result =
        raw->trace ? ask(raw, error) : tl_client_fail(error, TRACELAKE_NOMEM, "out of memory");
    if (result < 0) {
        tracelake_raw_close(raw);
        return result;
    }
    *out = raw;
    return TRACELAKE_OK;
}

/* Receive the next message, from any server that has it. */
static int receive(struct tracelake_raw *raw, struct tl_bytes *out, struct tracelake_error *error)
{
    for (;;) {
        int result = raw->ask ? TRACELAKE_OK : ask(raw, error);
        if (result == TRACELAKE_OK)
            result = tl_ask_recv(raw->ask, out, error);
        if (result == TRACELAKE_OK)
            raw->again = (struct tl_again){0};
        if (result >= 0 || !tl_client_again(raw->lake, &raw->again, result))
            return result;
        tl_ask_close(raw->ask);
        raw->ask = NULL;
        /* The range is complete; only the end of the call is missing. */
        if (raw->next == raw->to)
            return TRACELAKE_EOF;
    }
}

int tracelake_raw_next(struct tracelake_raw *raw, const void **data, size_t *n,
                       struct tracelake_error *error)
{
    static const uint64_t keys[] = {KEY_OFFSET, KEY_DATA, KEY_WHEN, KEY_LOST};
    struct tl_bytes message;
    struct tl_pbfield fields[4];
    bool others;
    const int result = receive(raw, &message, error);
    if (result < 0)
        return result;
    if (!tl_pbfield_pick(message, keys, 4, fields, &others))
        return tl_client_fail(error, TRACELAKE_BAD,
                              "the answer to FetchRaw is not a FetchRawReply");
    const uint64_t offset = fields[0].value;
    const struct tl_bytes got = fields[1].bytes;
    if (offset != raw->next)
        return tl_client_fail(error, TRACELAKE_BAD,
                              "the server sent raw bytes from %llu on where %llu comes next",
                              (unsigned long long)offset, (unsigned long long)raw->next);
    *data = got.p;
    *n = got.n;
    raw->next += got.n;
    raw->before = raw->arrived;
    raw->arrived = fields[2].value;
    raw->lost = fields[3].value;
    return TRACELAKE_OK;
}

bool tracelake_raw_lost(const struct tracelake_raw *raw, uint64_t *before_ns, uint64_t *behind_ns)
{
    *before_ns = raw->before;
    *behind_ns = raw->arrived;
    return raw->lost;
}

void tracelake_raw_close(struct tracelake_raw *raw)
{
    if (!raw)
        return;
    tl_ask_close(raw->ask);
    free(raw->trace);
    free(raw);
}

int tracelake_get_setup(struct tracelake *lake, const char *trace, char **setup,
                        struct tracelake_error *error)
{
    Tracelake__V1__GetSetupRequest request = TRACELAKE__V1__GET_SETUP_REQUEST__INIT;
    Tracelake__V1__Setup *reply;
    request.trace = tl_ask_text(trace);
    int result = tl_ask_once(lake, "/tracelake.v1.Raw/GetSetup", 0, &request.base,
                             &tracelake__v1__setup__descriptor, &reply, error);
    if (result < 0)
        return result;
    *setup = strdup(reply->setup);
    if (!*setup)
        result = tl_client_fail(error, TRACELAKE_NOMEM, "out of memory");
    tracelake__v1__setup__free_unpacked(reply, NULL);
    return result;
}
