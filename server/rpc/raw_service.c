/* SPDX-License-Identifier: MIT */
/*
 * tracelake.v1.Raw: sends raw bytes and setup of captures. Bytes are those that were pushed, also
 * while a capture is live.
 */
#include "lake_ingest.h"
#include "lake_raw.h"
#include "lake_traces.h"
#include "rpc/rpcint.h"

#include "tracelake/v1/raw.pb-c.h"

#define DATA_FIELD 2 /* FetchRawReply.data */

static int run_fetch_raw(struct tl_call *call, const void *message)
{
    const Tracelake__V1__FetchRawRequest *const request = message;
    struct tl_fail *const fail = tl_call_fail(call);
    struct tl_raw_range *range = NULL;
    int rc = tl_raw_open(tl_call_rpc(call)->lake, request->trace, request->begin,
                         request->to ? request->to : UINT64_MAX, &range, fail);
    while (rc == TL_OK) {
        struct tl_buf piece = {0};
        Tracelake__V1__FetchRawReply reply = TRACELAKE__V1__FETCH_RAW_REPLY__INIT;
        bool lost = false;
        rc = tl_raw_next(range, &reply.offset, &piece, fail);
        if (rc == TL_OK) {
            reply.arrived_ns = tl_raw_arrival(range, &lost);
            reply.connection_lost = lost;
            rc = tl_call_send_data(call, &reply.base, DATA_FIELD, &piece);
        }
        tl_buf_fini(&piece);
    }
    tl_raw_close(range);
    return rc == TL_EOF ? TL_OK : rc;
}

static int run_get_setup(struct tl_call *call, const void *message)
{
    const Tracelake__V1__GetSetupRequest *const request = message;
    struct tl_lake *const lake = tl_call_rpc(call)->lake;
    struct tl_fail *const fail = tl_call_fail(call);
    struct tl_trace_list list = {0};
    struct tl_buf text = {0};
    int rc = tl_lake_setup(lake, request->trace, &text, fail);
    if (rc == TL_OK)
        rc = tl_lake_trace(lake, request->trace, &list);
    if (rc == TL_OK) {
        Tracelake__V1__Setup setup = TRACELAKE__V1__SETUP__INIT;
        bool complete = false;
        rc = tl_lake_offset(lake, request->trace, &setup.durable, &complete);
        setup.setup = (char *)text.p;
        setup.rig = list.rows[0].rig;
        setup.complete = complete;
        if (rc == TL_OK)
            rc = tl_call_send(call, &setup.base);
    }
    if (rc < 0 && !fail->text[0])
        rc = tl_fail_set(fail, rc, "trace \"%.63s\": %s", request->trace, tl_err_name(rc));
    tl_trace_list_free(&list);
    tl_buf_fini(&text);
    return rc;
}

const struct tl_method tl_raw_methods[] = {
    {"/tracelake.v1.Raw/FetchRaw", &tracelake__v1__fetch_raw_request__descriptor, TL_SERVER_STREAM,
     TL_ROLE_READ, run_fetch_raw},
    {"/tracelake.v1.Raw/GetSetup", &tracelake__v1__get_setup_request__descriptor, TL_UNARY,
     TL_ROLE_READ, run_get_setup, TL_SHORT},
    {NULL, NULL, 0, 0, NULL},
};
