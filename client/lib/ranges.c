/* SPDX-License-Identifier: MIT */
/* Ranges as files, and look-ups. */
#include "ask.h"
#include "position.h"
#include "tracelake/v1/ranges.pb-c.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct tracelake_fetch {
    struct tl_ask *ask;
    Tracelake__V1__FetchReply *reply; /* whose data was handed out last */
    uint64_t first, count;
    bool begun;
};

static int open_fetch(struct tracelake_fetch **out, struct tracelake *lake, const char *method,
                      int timeout_ms, const ProtobufCMessage *request,
                      struct tracelake_error *error)
{
    struct tracelake_fetch *fetch = calloc(1, sizeof *fetch);
    if (!fetch)
        return tl_client_fail(error, TRACELAKE_NOMEM, "out of memory");
    int result = tl_ask_open(&fetch->ask, lake, method, timeout_ms, error);
    if (result == TRACELAKE_OK)
        result = tl_ask_send(fetch->ask, request, error);
    if (result < 0) {
        tracelake_fetch_close(fetch);
        return result;
    }
    tl_ask_end(fetch->ask);
    *out = fetch;
    return TRACELAKE_OK;
}

int tracelake_fetch_open(struct tracelake_fetch **out, struct tracelake *lake,
                         const struct tracelake_range *range, enum tracelake_format format,
                         struct tracelake_error *error)
{
    Tracelake__V1__FetchRequest request = TRACELAKE__V1__FETCH_REQUEST__INIT;
    if (range->from > range->to)
        return tl_client_fail(error, TRACELAKE_USAGE, "the range ends before it begins");
    request.trace = tl_ask_text(range->trace);
    request.stream = tl_ask_text(range->stream);
    request.unit = (Tracelake__V1__Unit)range->unit;
    request.begin = range->from;
    request.to = tl_ask_end_of(range->to);
    /* [0, 0) cannot be said on the wire; [1, 1) is as empty. */
    if (range->to == 0)
        request.begin = request.to = 1;
    request.format = (Tracelake__V1__Format)format;
    return open_fetch(out, lake, "/tracelake.v1.Ranges/Fetch", 0, &request.base, error);
}

int tracelake_fetch_region(struct tracelake_fetch **out, struct tracelake *lake, const char *trace,
                           const char *region, enum tracelake_format format,
                           struct tracelake_error *error)
{
    Tracelake__V1__FetchRequest request = TRACELAKE__V1__FETCH_REQUEST__INIT;
    request.trace = tl_ask_text(trace);
    request.region = tl_ask_text(region);
    request.format = (Tracelake__V1__Format)format;
    return open_fetch(out, lake, "/tracelake.v1.Ranges/Fetch", 0, &request.base, error);
}

int tracelake_follow_open(struct tracelake_fetch **out, struct tracelake *lake, const char *trace,
                          const char *stream, uint64_t from, enum tracelake_format format,
                          struct tracelake_error *error)
{
    Tracelake__V1__FollowRequest request = TRACELAKE__V1__FOLLOW_REQUEST__INIT;
    request.trace = tl_ask_text(trace);
    request.stream = tl_ask_text(stream);
    request.begin = from;
    request.format = (Tracelake__V1__Format)format;
    return open_fetch(out, lake, "/tracelake.v1.Ranges/Follow", -1, &request.base, error);
}

static void drop_reply(struct tracelake_fetch *fetch)
{
    if (fetch->reply)
        tracelake__v1__fetch_reply__free_unpacked(fetch->reply, NULL);
    fetch->reply = NULL;
}

int tracelake_fetch_next(struct tracelake_fetch *fetch, const void **data, size_t *n,
                         struct tracelake_error *error)
{
    do {
        struct tl_bytes bytes;
        drop_reply(fetch);
        int result = tl_ask_recv(fetch->ask, &bytes, error);
        if (result == TRACELAKE_OK)
            result = tl_ask_unpack(fetch->ask, &tracelake__v1__fetch_reply__descriptor, bytes,
                                   &fetch->reply, error);
        if (result < 0)
            return result;
        if (!fetch->begun || fetch->reply->count) {
            fetch->first = fetch->reply->first;
            fetch->count = fetch->reply->count;
            fetch->begun = true;
        }
    } while (fetch->reply->data.len == 0);
    *data = fetch->reply->data.data;
    *n = fetch->reply->data.len;
    return TRACELAKE_OK;
}

void tracelake_fetch_extent(const struct tracelake_fetch *fetch, uint64_t *first, uint64_t *count)
{
    *first = fetch->first;
    *count = fetch->count;
}

void tracelake_fetch_close(struct tracelake_fetch *fetch)
{
    if (!fetch)
        return;
    drop_reply(fetch);
    tl_ask_close(fetch->ask);
    free(fetch);
}

/* ---- look-ups ----------------------------------------------------------------------------- */

void tl_client_position(struct tracelake_position *out, const Tracelake__V1__Position *from)
{
    if (from)
        *out = (struct tracelake_position){from->insn, from->time, from->byte, from->has_time};
    else /* all zero is not sent */
        *out = (struct tracelake_position){0};
}

int tracelake_locate(struct tracelake *lake, const char *trace, const char *stream,
                     enum tracelake_unit unit, uint64_t at, struct tracelake_position *out,
                     struct tracelake_error *error)
{
    Tracelake__V1__LocateRequest request = TRACELAKE__V1__LOCATE_REQUEST__INIT;
    Tracelake__V1__Position *reply;
    request.trace = tl_ask_text(trace);
    request.stream = tl_ask_text(stream);
    request.unit = (Tracelake__V1__Unit)unit;
    request.at = at;
    const int result = tl_ask_once(lake, "/tracelake.v1.Ranges/Locate", 0, &request.base,
                                   &tracelake__v1__position__descriptor, &reply, error);
    if (result < 0)
        return result;
    tl_client_position(out, reply);
    tracelake__v1__position__free_unpacked(reply, NULL);
    return TRACELAKE_OK;
}

int tracelake_stats(struct tracelake *lake, const char *trace, const char *stream, uint64_t from,
                    uint64_t to, char **json, struct tracelake_error *error)
{
    Tracelake__V1__StatsRequest request = TRACELAKE__V1__STATS_REQUEST__INIT;
    Tracelake__V1__StatsReply *reply;
    request.trace = tl_ask_text(trace);
    request.stream = tl_ask_text(stream);
    request.begin = from;
    request.to = tl_ask_end_of(to);
    const int result = tl_ask_once(lake, "/tracelake.v1.Ranges/Stats", 0, &request.base,
                                   &tracelake__v1__stats_reply__descriptor, &reply, error);
    if (result < 0)
        return result;
    *json = strdup(reply->json);
    tracelake__v1__stats_reply__free_unpacked(reply, NULL);
    return *json ? TRACELAKE_OK : tl_client_fail(error, TRACELAKE_NOMEM, "out of memory");
}
