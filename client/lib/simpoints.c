/* SPDX-License-Identifier: MIT */
/*
 * Requests representative regions. Their vectors are passed on as they come, so that their number
 * is no matter of memory.
 */
#include "ask.h"
#include "tracelake/v1/lookups.pb-c.h"
#include "json/messagejson.h"

/* Destination of the answer. */
struct answer {
    int (*vectors)(void *context, const void *lines, size_t n); /* NULL: not requested */
    void *context;
    struct tl_buf json;
};

static int take(void *context, const void *message)
{
    struct answer *const answer = context;
    const Tracelake__V1__SimPointsReply *const reply = message;
    if (answer->vectors && reply->vectors.len) {
        const int r = answer->vectors(answer->context, reply->vectors.data, reply->vectors.len);
        if (r < 0)
            return r;
    }
    if (!reply->found)
        return TRACELAKE_OK;
    tl_buf_reset(&answer->json);
    if (tl_messagejson_text(&answer->json, &reply->found->base) < 0 ||
        tl_buf_add(&answer->json, "", 1) < 0)
        return TRACELAKE_NOMEM;
    return TRACELAKE_OK;
}

int tracelake_simpoints(struct tracelake *lake, const struct tracelake_range *range,
                        uint64_t interval, uint32_t most,
                        int (*vectors)(void *context, const void *lines, size_t n), void *context,
                        char **json, struct tracelake_error *error)
{
    Tracelake__V1__SimPointsRequest request = TRACELAKE__V1__SIM_POINTS_REQUEST__INIT;
    struct answer answer = {.vectors = vectors, .context = context};
    *json = NULL;
    if (range->unit != TRACELAKE_INSN)
        return tl_client_fail(error, TRACELAKE_USAGE, "the range is one of instructions");
    request.trace = tl_ask_text(range->trace);
    request.stream = tl_ask_text(range->stream);
    request.begin = range->from;
    request.end = tl_ask_end_of(range->to);
    request.interval = interval;
    request.most = most;
    request.vectors = vectors != NULL;
    int r = tl_ask_each(lake, "/tracelake.v1.Lookups/SimPoints", -1, &request.base,
                        &tracelake__v1__sim_points_reply__descriptor, take, &answer, error);
    if (r == TRACELAKE_OK && !answer.json.p)
        r = tl_client_fail(error, TRACELAKE_BAD, "the answer is empty");
    if (r < 0)
        tl_buf_fini(&answer.json);
    else
        *json = (char *)answer.json.p;
    return r;
}
