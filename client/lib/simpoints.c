/* SPDX-License-Identifier: MIT */
/* Representative regions. */
#include "ask.h"
#include "tracelake/v1/ranges.pb-c.h"

#include <string.h>

static char *text(const char *s)
{
    return (char *)(uintptr_t)(s ? s : "");
}

int tracelake_simpoints(struct tracelake *lake, const struct tracelake_range *range,
                        uint64_t interval, uint32_t most,
                        int (*vectors)(void *context, const void *lines, size_t n), void *context,
                        char **json, struct tracelake_error *error)
{
    Tracelake__V1__SimPointsRequest request = TRACELAKE__V1__SIM_POINTS_REQUEST__INIT;
    struct tl_ask *ask;
    if (range->unit != TRACELAKE_INSN)
        return tl_client_fail(error, TRACELAKE_USAGE, "the range is one of instructions");
    request.trace = text(range->trace);
    request.stream = text(range->stream);
    request.begin = range->from;
    request.end = range->to == TRACELAKE_END ? 0 : range->to;
    request.interval = interval;
    request.most = most;
    request.vectors = vectors != NULL;
    *json = NULL;
    int r = tl_ask_open(&ask, lake, "/tracelake.v1.Ranges/SimPoints", -1, error);
    if (r < 0)
        return r;
    r = tl_ask_send(ask, &request.base, error);
    tl_ask_end(ask);
    while (r == TRACELAKE_OK) {
        struct tl_bytes bytes;
        Tracelake__V1__SimPointsReply *reply = NULL;
        r = tl_ask_recv(ask, &bytes, error);
        if (r == TRACELAKE_OK)
            r = tl_ask_unpack(ask, &tracelake__v1__sim_points_reply__descriptor, bytes, &reply,
                              error);
        if (r < 0)
            break;
        if (vectors && reply->vectors.len)
            r = vectors(context, reply->vectors.data, reply->vectors.len);
        if (r >= 0 && *reply->json && !*json && !(*json = strdup(reply->json)))
            r = tl_client_fail(error, TRACELAKE_NOMEM, "out of memory");
        tracelake__v1__sim_points_reply__free_unpacked(reply, NULL);
    }
    tl_ask_close(ask);
    if (r == TRACELAKE_EOF)
        r = *json ? TRACELAKE_OK : tl_client_fail(error, TRACELAKE_BAD, "the answer is empty");
    if (r < 0) {
        free(*json);
        *json = NULL;
    }
    return r;
}
