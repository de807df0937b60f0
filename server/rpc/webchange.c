/* SPDX-License-Identifier: MIT */
/*
 * Changes made by the page: labels, deletion, captures uploaded in pieces, described in
 * docs/http.md. A capture is sent in pieces because a browser cannot send a stream over HTTP/1.1.
 */
#include "lake_ingest.h"
#include "net/caller.h"
#include "rpc/rpcint.h"
#include "rpc/scoped.h"
#include "rpc/webapi.h"
#include "rpc/webargs.h"
#include "rpc/webjson.h"
#include "json/messagejson.h"

#include "tracelake/v1/catalog.pb-c.h"
#include "tracelake/v1/ingest.pb-c.h"

#include <stdlib.h>
#include <string.h>

/* ---- labels ----------------------------------------------------------------------------- */

/* As lines for the lake. */
static int write_lines(const Tracelake__V1__SetLabelsRequest *r, struct tl_buf *out)
{
    int rc = TL_OK;
    for (size_t i = 0; i < r->n_labels && rc >= 0; i++) {
        const Tracelake__V1__SetLabelsRequest__LabelsEntry *const label = r->labels[i];
        rc = !*label->key || strpbrk(label->key, "=\n") || strchr(label->value, '\n')
                 ? TL_USAGE
                 : tl_buf_printf(out, "%s=%s\n", label->key, label->value);
    }
    return rc < 0 ? rc : tl_buf_add(out, "", 1);
}

int tl_web_set_labels(struct tl_http_request *request, struct tl_http_response *response)
{
    struct tl_fail *const fail = &response->fail;
    ProtobufCMessage *message = NULL;
    struct tl_buf lines = {0};
    int rc = tl_messagejson_read(&tracelake__v1__set_labels_request__descriptor, "labels",
                                 request->body, &message);
    if (rc >= 0)
        rc = write_lines((Tracelake__V1__SetLabelsRequest *)message, &lines);
    if (rc == TL_BAD)
        rc = tl_fail_set(fail, TL_USAGE,
                         "the body is no JSON object of labels: "
                         "{\"board\":\"juno\",\"old\":\"\"}");
    else if (rc == TL_USAGE)
        rc = tl_fail_set(fail, TL_USAGE,
                         "a label has a key without '=' and a text of one line as its value");
    if (rc >= 0)
        rc = tl_lake_set_labels(tl_web_lake(request), request->part[0], (char *)lines.p, fail);
    protobuf_c_message_free_unpacked(message, NULL);
    tl_buf_fini(&lines);
    return rc < 0 ? tl_web_explain(request, response, rc) : tl_web_trace(request, response);
}

int tl_web_delete(struct tl_http_request *request, struct tl_http_response *response)
{
    const int rc = tl_lake_delete(tl_web_lake(request), request->part[0], &response->fail);
    return rc < 0 ? tl_web_explain(request, response, rc) : tl_web_respond_nothing(response);
}

/* ---- captures --------------------------------------------------------------------------- */

/* The spool reports durable offsets; nobody waits for them here. */
static void on_durable(void *context, uint64_t offset)
{
}

static int respond_offset(struct tl_http_response *response, uint64_t durable, uint64_t epoch)
{
    struct tl_buf text = {0};
    struct tl_jsonout json = {.out = &text};
    tl_jsonout_open(&json, '{');
    tl_webjson_u64(&json, "durable", durable);
    tl_webjson_u64(&json, "epoch", epoch);
    tl_jsonout_close(&json, '}');
    return tl_webjson_respond(response, &json);
}

/* Is there a quota for it, or for `n` bytes more? */
static int check_quota(struct tl_http_request *request, struct tl_http_response *response,
                       const char *rig, uint64_t n)
{
    struct tl_rpc *const rpc = request->context;
    struct tl_fail *const fail = &response->fail;
    struct tl_quota_push push;
    int rc = tl_quota_begin(&rpc->quotas, rpc->lake, rig, request->part[0], request->holder,
                            request->scope, &push, fail);
    if (rc == TL_OK && n)
        rc = tl_quota_now(&push, fail);
    if (rc == TL_OK && n)
        rc = tl_quota_grow(&push, rpc->lake, n, fail);
    if (rc == TL_OK && n)
        (void)tl_quota_pause_ms(&push, n);
    if (rc == TL_LIMIT)
        response->status = 429;
    return rc;
}

/* Begin a capture: the body is its setup. */
int tl_web_begin(struct tl_http_request *request, struct tl_http_response *response)
{
    struct tl_fail *const fail = &response->fail;
    struct tl_lake *const lake = tl_web_lake(request);
    Tracelake__V1__Open r = TRACELAKE__V1__OPEN__INIT;
    char *const setup =
        request->body.n ? strndup((const char *)request->body.p, request->body.n) : strdup("");
    struct tl_ingest *ingest = NULL;
    char trace[64];
    uint64_t durable = 0;
    int rc = tl_web_fill(request, &r, fail);
    const struct tl_ingest_request wanted = {.rig =
                                                 tl_http_query(request, "rig") ? r.rig : "browser",
                                             .trace = r.trace,
                                             .setup = setup,
                                             .client = request->caller->address,
                                             .piece = true};
    rc = rc >= 0 && !setup ? TL_NOMEM : rc;
    if (rc == TL_OK && !(tl_name_ok(wanted.rig) && tl_name_ok(wanted.trace)))
        rc = tl_fail_set(fail, TL_USAGE, "names have 1 to 63 of A-Z a-z 0-9 . _ -");
    if (rc == TL_OK)
        rc = tl_scoped_push(lake, request->scope, wanted.rig, wanted.trace, fail);
    if (rc == TL_OK)
        rc = check_quota(request, response, wanted.rig, 0);
    if (rc == TL_OK)
        rc = tl_ingest_open(lake, &wanted, on_durable, NULL, &ingest, trace, &durable, fail);
    free(setup);
    if (rc < 0)
        return tl_web_explain(request, response, rc);
    const uint64_t epoch = tl_ingest_epoch(ingest);
    tl_ingest_close(ingest);
    const char *const labels = tl_scope_labels(request->scope);
    if (*labels)
        rc = tl_lake_set_labels(lake, trace, labels, fail);
    return rc < 0 ? rc : respond_offset(response, durable, epoch);
}

static int append(struct tl_ingest *ingest, const struct tl_http_request *request, uint64_t offset,
                  bool last, struct tl_fail *fail)
{
    uint64_t durable;
    int rc = TL_OK;
    if (request->body.n > UINT64_MAX - offset)
        rc = tl_fail_at(fail, TL_USAGE, offset, "a piece ends beyond 2^64");
    if (rc == TL_OK && request->body.n)
        rc = tl_ingest_append(ingest, offset, request->body, fail);
    return rc == TL_OK && last ? tl_ingest_finish(ingest, &durable, fail) : rc;
}

/* Append to a capture begun by tl_web_begin(). */
int tl_web_append(struct tl_http_request *request, struct tl_http_response *response)
{
    struct tl_fail *const fail = &response->fail;
    struct tl_lake *const lake = tl_web_lake(request);
    struct tl_trace_list list = {0};
    struct tl_buf setup = {0};
    struct tl_ingest *ingest = NULL;
    char trace[64];
    uint64_t durable = 0;
    uint64_t offset = 0;
    bool last = false;
    Tracelake__V1__Open r = TRACELAKE__V1__OPEN__INIT;
    const struct tl_http_arg args[] = {
        {"offset", TL_HTTP_U64, &offset}, {"last", TL_HTTP_FLAG, &last}, {0}};
    bool complete;
    int rc = tl_lake_trace(lake, request->part[0], &list);
    if (rc == TL_OK)
        rc = tl_scoped_push(lake, request->scope, list.rows[0].rig, request->part[0], fail);
    if (rc == TL_OK && request->body.n)
        rc = check_quota(request, response, list.rows[0].rig, request->body.n);
    if (rc == TL_OK)
        rc = tl_lake_setup(lake, request->part[0], &setup, fail);
    if (rc == TL_OK)
        rc = tl_buf_add(&setup, "", 1);
    if (rc == TL_OK)
        rc = tl_web_fill(request, &r, fail);
    if (rc == TL_OK)
        rc = tl_http_args(request, args, fail);
    if (rc == TL_OK) {
        const struct tl_ingest_request wanted = {.rig = list.rows[0].rig,
                                                 .trace = request->part[0],
                                                 .setup = (char *)setup.p,
                                                 .resume = true,
                                                 .epoch = r.epoch,
                                                 .client = request->caller->address,
                                                 .piece = true};
        rc = tl_ingest_open(lake, &wanted, on_durable, NULL, &ingest, trace, &durable, fail);
    }
    if (rc == TL_OK) {
        r.epoch = tl_ingest_epoch(ingest);
        rc = append(ingest, request, offset, last, fail);
        tl_ingest_close(ingest);
    }
    if (rc == TL_OK)
        rc = tl_lake_offset(lake, request->part[0], &durable, &complete);
    tl_buf_fini(&setup);
    tl_trace_list_free(&list);
    return rc < 0 ? tl_web_explain(request, response, rc)
                  : respond_offset(response, durable, r.epoch);
}
