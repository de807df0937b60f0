/* SPDX-License-Identifier: MIT */
/*
 * Fetches ranges as files or text, and looks up positions. After a broken connection the range is
 * requested again and what was already returned is skipped, once it is known to be the same.
 */
#include "ask.h"
#include "base/crc32c.h"
#include "base/pbfield.h"
#include "position.h"
#include "tracelake/v1/ranges.pb-c.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Source: FetchReply of ranges.proto. */
#define KEY_FIRST TL_PB_KEY(1, TL_PB_VARINT)
#define KEY_COUNT TL_PB_KEY(2, TL_PB_VARINT)
#define KEY_DATA  TL_PB_KEY(3, TL_PB_BYTES)
#define KEY_KEPT  TL_PB_KEY(4, TL_PB_VARINT)

static const char method_fetch[] = "/tracelake.v1.Ranges/Fetch";
static const char method_follow[] = "/tracelake.v1.Ranges/Follow";

struct tracelake_fetch {
    struct tracelake *lake;
    const char *method;
    struct tl_buf request;
    struct tl_ask *ask; /* NULL: to be requested again */
    bool repeats;       /* another server may be asked for the rest */
    uint64_t taken;     /* bytes already returned, which are received a second time then */
    uint32_t crc, crc_again;
    uint64_t skip; /* how many of them are still to be skipped */
    struct tl_again again;
    uint64_t first, count, kept;
    bool begun;
};

/* Is it a live stream, which is followed with a separate method, up to the reader's position? */
static bool follows(const struct tracelake_fetch *fetch)
{
    return strcmp(fetch->method, method_follow) == 0;
}

static int ask(struct tracelake_fetch *fetch, struct tracelake_error *error)
{
    int result =
        tl_ask_open(&fetch->ask, fetch->lake, fetch->method, follows(fetch) ? -1 : 0, error);
    if (result == TRACELAKE_OK)
        result = tl_ask_send_bytes(fetch->ask,
                                   (struct tl_bytes){fetch->request.p, fetch->request.n}, error);
    if (result == TRACELAKE_OK)
        tl_ask_end(fetch->ask);
    return result;
}

static int open_fetch(struct tracelake_fetch **out, struct tracelake *lake, const char *method,
                      const ProtobufCMessage *request, struct tracelake_error *error)
{
    struct tracelake_fetch *fetch = calloc(1, sizeof *fetch);
    const size_t n = protobuf_c_message_get_packed_size(request);
    if (!fetch || tl_buf_reserve(&fetch->request, n) < 0) {
        free(fetch);
        return tl_client_fail(error, TRACELAKE_NOMEM, "out of memory");
    }
    fetch->request.n = protobuf_c_message_pack(request, fetch->request.p);
    fetch->lake = lake;
    fetch->method = method;
    const int result = ask(fetch, error);
    if (result < 0) {
        tracelake_fetch_close(fetch);
        return result;
    }
    fetch->repeats = !follows(fetch) && tl_client_others(lake);
    *out = fetch;
    return TRACELAKE_OK;
}

static bool is_given(const char *text)
{
    return text && *text;
}

bool tracelake_filters(const struct tracelake_filter *filter)
{
    return is_given(filter->mode) || is_given(filter->process) || is_given(filter->thread);
}

static Tracelake__V1__Filter filter_of(const struct tracelake_filter *filter)
{
    Tracelake__V1__Filter out = TRACELAKE__V1__FILTER__INIT;
    out.mode = tl_ask_text(filter->mode);
    out.process = tl_ask_text(filter->process);
    out.thread = tl_ask_text(filter->thread);
    return out;
}

int tracelake_fetch_open(struct tracelake_fetch **out, struct tracelake *lake,
                         const struct tracelake_range *range, enum tracelake_format format,
                         struct tracelake_error *error)
{
    const struct tracelake_filter none = {0};
    return tracelake_fetch_filtered(out, lake, range, &none, format, error);
}

int tracelake_fetch_filtered(struct tracelake_fetch **out, struct tracelake *lake,
                             const struct tracelake_range *range,
                             const struct tracelake_filter *filter, enum tracelake_format format,
                             struct tracelake_error *error)
{
    Tracelake__V1__Filter kept = filter_of(filter);
    Tracelake__V1__FetchRequest request = TRACELAKE__V1__FETCH_REQUEST__INIT;
    if (range->from > range->to)
        return tl_client_fail(error, TRACELAKE_USAGE, "the range ends before it begins");
    TL_ASK_RANGE(&request, unit, range);
    /* [0, 0) cannot be encoded; [1, 1) is also empty. */
    if (range->to == 0)
        request.begin = request.to = 1;
    request.format = (Tracelake__V1__Format)format;
    request.filter = tracelake_filters(filter) ? &kept : NULL;
    return open_fetch(out, lake, method_fetch, &request.base, error);
}

int tracelake_fetch_region(struct tracelake_fetch **out, struct tracelake *lake, const char *trace,
                           const char *region, enum tracelake_format format,
                           struct tracelake_error *error)
{
    Tracelake__V1__FetchRequest request = TRACELAKE__V1__FETCH_REQUEST__INIT;
    request.trace = tl_ask_text(trace);
    request.region = tl_ask_text(region);
    request.format = (Tracelake__V1__Format)format;
    return open_fetch(out, lake, method_fetch, &request.base, error);
}

int tracelake_follow_open(struct tracelake_fetch **out, struct tracelake *lake, const char *trace,
                          const char *stream, uint64_t from, enum tracelake_format format,
                          struct tracelake_error *error)
{
    const struct tracelake_filter none = {0};
    return tracelake_follow_filtered(out, lake, trace, stream, from, &none, format, error);
}

int tracelake_follow_filtered(struct tracelake_fetch **out, struct tracelake *lake,
                              const char *trace, const char *stream, uint64_t from,
                              const struct tracelake_filter *filter, enum tracelake_format format,
                              struct tracelake_error *error)
{
    Tracelake__V1__Filter kept = filter_of(filter);
    Tracelake__V1__FollowRequest request = TRACELAKE__V1__FOLLOW_REQUEST__INIT;
    request.trace = tl_ask_text(trace);
    request.stream = tl_ask_text(stream);
    request.begin = from;
    request.format = (Tracelake__V1__Format)format;
    request.filter = tracelake_filters(filter) ? &kept : NULL;
    return open_fetch(out, lake, method_follow, &request.base, error);
}

/* Receive the next message, from any server that has it. */
static int receive(struct tracelake_fetch *fetch, struct tl_bytes *out,
                   struct tracelake_error *error)
{
    for (;;) {
        int result = fetch->ask ? TRACELAKE_OK : ask(fetch, error);
        if (result == TRACELAKE_OK)
            result = tl_ask_recv(fetch->ask, out, error);
        if (result == TRACELAKE_OK || !fetch->repeats ||
            !tl_client_again(fetch->lake, &fetch->again, result))
            return result;
        tl_ask_close(fetch->ask);
        fetch->ask = NULL;
        fetch->skip = fetch->taken;
        fetch->crc_again = 0;
    }
}

/* Take the data of a message, which is borrowed from it, and the extent that it tells. */
static int take_reply(struct tracelake_fetch *fetch, struct tl_bytes message, struct tl_bytes *data,
                      struct tracelake_error *error)
{
    static const uint64_t keys[] = {KEY_FIRST, KEY_COUNT, KEY_DATA, KEY_KEPT};
    struct tl_pbfield fields[4];
    bool others;
    if (!tl_pbfield_pick(message, keys, 4, fields, &others))
        return tl_client_fail(error, TRACELAKE_BAD, "the answer to %s is not a FetchReply",
                              fetch->method);
    *data = fields[2].bytes;
    fetch->kept = fields[3].value;
    const uint64_t first = fields[0].value, count = fields[1].value;
    if (!fetch->begun || count) {
        fetch->first = first;
        fetch->count = count;
        fetch->begun = true;
    }
    return TRACELAKE_OK;
}

/* Skip what was already returned. IO: the data is different this time. */
static int pass_over(struct tracelake_fetch *fetch, struct tl_bytes *data,
                     struct tracelake_error *error)
{
    const size_t n = fetch->skip < data->n ? (size_t)fetch->skip : data->n;
    if (n == 0)
        return TRACELAKE_OK;
    fetch->crc_again = tl_crc32c(fetch->crc_again, data->p, n);
    fetch->skip -= n;
    data->p += n;
    data->n -= n;
    if (fetch->skip > 0 || fetch->crc_again == fetch->crc)
        return TRACELAKE_OK;
    return tl_client_fail(error, TRACELAKE_IO,
                          "the server went away, and what another one has begins otherwise: the "
                          "range has changed meanwhile; ask again");
}

int tracelake_fetch_next(struct tracelake_fetch *fetch, const void **data, size_t *n,
                         struct tracelake_error *error)
{
    struct tl_bytes message, got;
    do {
        int result = receive(fetch, &message, error);
        if (result == TRACELAKE_OK)
            result = take_reply(fetch, message, &got, error);
        if (result == TRACELAKE_OK)
            result = pass_over(fetch, &got, error);
        if (result == TRACELAKE_EOF && fetch->skip > 0)
            result = tl_client_fail(error, TRACELAKE_IO,
                                    "the server went away, and another one has less of the range; "
                                    "ask again");
        if (result < 0)
            return result;
    } while (got.n == 0);
    *data = got.p;
    *n = got.n;
    fetch->taken += got.n;
    if (fetch->repeats)
        fetch->crc = tl_crc32c(fetch->crc, got.p, got.n);
    fetch->again = (struct tl_again){0};
    return TRACELAKE_OK;
}

void tracelake_fetch_extent(const struct tracelake_fetch *fetch, uint64_t *first, uint64_t *count)
{
    *first = fetch->first;
    *count = fetch->count;
}

uint64_t tracelake_fetch_kept(const struct tracelake_fetch *fetch)
{
    return fetch->kept;
}

void tracelake_fetch_close(struct tracelake_fetch *fetch)
{
    if (!fetch)
        return;
    tl_ask_close(fetch->ask);
    tl_buf_fini(&fetch->request);
    free(fetch);
}

/* ---- look-ups ----------------------------------------------------------------------------- */

void tl_client_position(struct tracelake_position *out, const Tracelake__V1__Position *from)
{
    if (from)
        *out = (struct tracelake_position){from->insn, from->time, from->byte, from->timed};
    else /* a zero message is not sent */
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
