/* SPDX-License-Identifier: MIT */
/* Representative regions, over RPC and HTTP. */
#include "rpc/rangejson.h"
#include "rpc/webapi.h"
#include "rpc/webjson.h"

#include "tracelake/v1/ranges.pb-c.h"

#include <stdio.h>
#include <string.h>

#define MAX_REGIONS   30
#define VECTORS_FIELD 3 /* SimPointsReply.vectors */
#define PIECE         (64u << 10)

static cJSON *region(const struct tl_simpoint *p)
{
    cJSON *const o = cJSON_CreateObject();
    return tl_webjson_complete(o, tl_webjson_u64(o, "from", p->first) &&
                                      tl_webjson_u64(o, "to", p->first + p->insns) &&
                                      tl_webjson_u64(o, "interval", p->interval) &&
                                      cJSON_AddNumberToObject(o, "weight", p->weight) &&
                                      tl_webjson_u64(o, "intervals", p->intervals));
}

static cJSON *regions(const struct tl_simpoints_request *request,
                      const struct tl_simpoints_found *found)
{
    cJSON *const o = cJSON_CreateObject();
    bool ok = tl_webjson_u64(o, "from", found->from) && tl_webjson_u64(o, "to", found->to) &&
              tl_webjson_u64(o, "interval", request->interval) &&
              tl_webjson_u64(o, "intervals", found->intervals);
    cJSON *const rows = cJSON_AddArrayToObject(o, "regions");
    for (size_t i = 0; ok && i < found->n; i++)
        ok = tl_webjson_add_row(rows, region(&found->p[i]));
    return tl_webjson_complete(o, ok && rows);
}

/* ---- regions with names ---------------------------------------------------------------------- */

int tl_region_named(struct tl_lake *lake, const char *trace, const char *name,
                    struct tl_region_place *out, struct tl_fail *fail)
{
    struct tl_trace_list list = {0};
    char key[160];
    int rc = tl_lake_trace(lake, trace, &list);
    if (rc < 0)
        return rc;
    const int n = snprintf(key, sizeof key, "region.%.127s=", name);
    const char *line = list.rows[0].labels;
    rc = TL_NOTFOUND;
    for (; line && *line && rc < 0; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL) {
        unsigned long long from, to, warm_up;
        if (strncmp(line, key, (size_t)n) == 0 &&
            sscanf(line + n, "%31s %llu %llu %llu", out->stream, &from, &to, &warm_up) == 4 &&
            warm_up <= from && from <= to) {
            out->from = from - warm_up;
            out->to = to;
            rc = TL_OK;
        }
    }
    tl_trace_list_free(&list);
    return rc < 0 ? tl_fail_set(fail, TL_NOTFOUND,
                                "trace %.63s has no region %.63s: 'simpoints --save' makes them",
                                trace, name)
                  : rc;
}

/* ---- RPC ------------------------------------------------------------------------------------- */

struct vectors {
    struct tl_call *call;
    struct tl_buf lines;
};

static int send_lines(struct vectors *v)
{
    const Tracelake__V1__SimPointsReply reply = TRACELAKE__V1__SIM_POINTS_REPLY__INIT;
    return v->lines.n ? tl_call_send_data(v->call, &reply.base, VECTORS_FIELD, &v->lines) : TL_OK;
}

static int add_line(void *context, struct tl_bytes line)
{
    struct vectors *const v = context;
    const int rc = tl_buf_add(&v->lines, line.p, line.n);
    return rc < 0 || v->lines.n < PIECE ? rc : send_lines(v);
}

static int send_regions(struct tl_call *call, const struct tl_simpoints_request *request,
                        const struct tl_simpoints_found *found)
{
    Tracelake__V1__SimPointsReply reply = TRACELAKE__V1__SIM_POINTS_REPLY__INIT;
    struct tl_buf text = {0};
    int rc = tl_webjson_append(&text, regions(request, found));
    if (rc >= 0)
        rc = tl_buf_add(&text, "\n", 2);
    if (rc >= 0) {
        reply.json = (char *)text.p;
        rc = tl_call_send(call, &reply.base);
    }
    tl_buf_fini(&text);
    return rc;
}

int tl_run_simpoints(struct tl_call *call, const void *message)
{
    const Tracelake__V1__SimPointsRequest *const r = message;
    struct tl_fail *const fail = tl_call_fail(call);
    struct vectors vectors = {.call = call};
    const struct tl_simpoints_request request = {.trace = r->trace,
                                                 .stream = r->stream,
                                                 .from = r->begin,
                                                 .to = r->end ? r->end : UINT64_MAX,
                                                 .interval = r->interval,
                                                 .most = r->most ? r->most : MAX_REGIONS,
                                                 .vector = r->vectors ? add_line : NULL,
                                                 .context = &vectors};
    struct tl_simpoints_found found;
    int rc = tl_lake_simpoints(tl_call_rpc(call)->lake, &request, &found, fail);
    if (rc >= 0)
        rc = send_lines(&vectors);
    if (rc >= 0)
        rc = send_regions(call, &request, &found);
    tl_buf_fini(&vectors.lines);
    tl_simpoints_found_fini(&found);
    if (rc < 0 && !fail->text[0])
        tl_fail_set(fail, (enum tl_err)rc, "%.63s/%.31s: %s", r->trace, r->stream, tl_err_name(rc));
    return rc;
}

/* ---- HTTP ------------------------------------------------------------------------------------ */

int tl_web_simpoints(struct tl_http_request *request, struct tl_http_response *response)
{
    struct tl_fail *const fail = &response->fail;
    struct tl_simpoints_request wanted = {.trace = request->part[0],
                                          .stream = request->part[1],
                                          .to = UINT64_MAX,
                                          .interval = 10000000,
                                          .most = MAX_REGIONS};
    struct tl_simpoints_found found = {0};
    const struct tl_http_arg args[] = {{"from", TL_HTTP_U64, &wanted.from},
                                       {"to", TL_HTTP_U64, &wanted.to},
                                       {"interval", TL_HTTP_U64, &wanted.interval},
                                       {"most", TL_HTTP_U32, &wanted.most},
                                       {0}};
    int rc = tl_http_args(request, args, fail);
    if (rc >= 0)
        rc = tl_lake_simpoints(tl_web_lake(request), &wanted, &found, fail);
    if (rc >= 0)
        rc = tl_webjson_respond(response, regions(&wanted, &found));
    else if (!fail->text[0])
        tl_fail_set(fail, (enum tl_err)rc, "%.63s: %s", request->part[0], tl_err_name(rc));
    tl_simpoints_found_fini(&found);
    return rc;
}
