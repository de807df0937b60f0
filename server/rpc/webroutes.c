/* SPDX-License-Identifier: MIT */
/*
 * The table of routes, the page's files, and the paths for monitoring. A route names its role and
 * its class of work, so that nothing is served without a decision on both.
 */
#include "rpc/notes.h"
#include "rpc/rpcint.h"
#include "rpc/tilecache.h"
#include "rpc/weblookups.h"

#include "lake_sql.h"
#include "web/assets.h"

#include <string.h>

/* A file of the page. */
static int web_asset(struct tl_http_request *request, struct tl_http_response *response)
{
    const struct tl_rpc *const rpc = request->context;
    const struct tl_asset *asset = NULL;
    for (size_t i = 0; i < rpc->n_assets && !asset; i++)
        if (!strcmp(rpc->assets[i].path, request->path))
            asset = &rpc->assets[i];
    if (!asset)
        return tl_fail_set(&response->fail, TL_NOTFOUND,
                           "there is nothing at %.80s; docs/http.md lists the paths",
                           request->path);
    response->ranges = true;
    response->gzipped = asset->gzip != NULL;
    response->fixed = asset->gzip ? (struct tl_bytes){asset->gzip, asset->gzip_size}
                                  : (struct tl_bytes){asset->data, asset->size};
    int rc = tl_http_type(response, asset->content_type);
    if (rc == TL_OK)
        rc = tl_fields_add(&response->headers, "etag", asset->etag);
    return rc == TL_OK ? tl_fields_add(&response->headers, "cache-control", "no-cache") : rc;
}

static int plain(struct tl_http_response *response, const char *type)
{
    const int rc = tl_http_type(response, type);
    return rc < 0 ? rc : tl_fields_add(&response->headers, "cache-control", "no-store");
}

static int metrics(struct tl_http_request *request, struct tl_http_response *response)
{
    struct tl_rpc *const rpc = request->context;
    int rc = tl_lake_metrics(rpc->lake, &response->body);
    if (rc == TL_OK)
        rc = tl_net_metrics(request->net, &response->body);
    if (rc == TL_OK)
        rc = tl_tilecache_metrics(rpc->tiles, &response->body);
    if (rc == TL_OK)
        rc = tl_quotas_metrics(&rpc->quotas, &response->body);
    if (rc == TL_OK && rpc->add_metrics)
        rc = rpc->add_metrics(rpc->metrics_context, &response->body);
    response->compress = true;
    return rc < 0 ? rc : plain(response, "text/plain; version=0.0.4; charset=utf-8");
}

static int healthy(struct tl_http_request *request, struct tl_http_response *response)
{
    const int rc = tl_buf_printf(&response->body, "ok\n");
    return rc < 0 ? rc : plain(response, "text/plain; charset=utf-8");
}

/* Ready: the store responds and takes changes, and the server is not stopping. */
static int ready(struct tl_http_request *request, struct tl_http_response *response)
{
    struct tl_rpc *const rpc = request->context;
    if (tl_net_draining(request->net))
        return tl_fail_set(&response->fail, TL_UNREACHABLE, "the server is stopping");
    if (tl_lake_usable(rpc->lake, &response->fail) < 0 ||
        tl_lake_writable(rpc->lake, &response->fail) < 0)
        return TL_UNREACHABLE;
    const int rc = tl_buf_printf(&response->body, "ready\n");
    return rc < 0 ? rc : plain(response, "text/plain; charset=utf-8");
}

#define TRACE  "/api/v1/traces/{trace}"
#define STREAM TRACE "/streams/{stream}"
/* Maximum body sizes. */
#define LABELS (64u << 10)
#define SETUP  (4u << 20)
#define IMAGE  (256u << 20)
#define PIECE  (16u << 20)

/* Arguments that several take. */
#define SPAN    "unit, axis, from, to"
#define FIND    "pc, symbol, event, call, mnemonic, opcode, text, q, at, skip, backward, count, limit"
#define PROFILE SPAN ", weight, callers, nodes"

const struct tl_route tl_http_routes[] = {
    {"/api/v1/traces", TL_ROLE_READ, tl_web_traces, TL_SHORT, TL_REACH_OWN,
     .query = "limit, cursor"},
    {TRACE, TL_ROLE_READ, tl_web_trace, .query = ""},
    {TRACE, TL_ROLE_PUSH, tl_web_begin, TL_SHORT, TL_REACH_OWN, TL_PUT, SETUP, .query = "rig"},
    {TRACE, TL_ROLE_ADMIN, tl_web_delete, TL_SHORT, TL_REACH_TRACE, TL_DELETE, .query = ""},
    {TRACE "/raw", TL_ROLE_PUSH, tl_web_append, TL_LONG, TL_REACH_OWN, TL_POST, PIECE,
     .query = "offset, epoch, last"},
    {TRACE "/labels", TL_ROLE_PUSH, tl_web_set_labels, TL_SHORT, TL_REACH_TRACE, TL_POST, LABELS,
     .query = ""},
    {TRACE "/notes", TL_ROLE_READ, tl_web_notes, .query = ""},
    {TRACE "/notes", TL_ROLE_PUSH, tl_web_put_note, TL_SHORT, TL_REACH_TRACE, TL_POST,
     TL_NOTE_BYTES, .query = "stream, at, to, id"},
    {TRACE "/notes/{note}", TL_ROLE_PUSH, tl_web_delete_note, TL_SHORT, TL_REACH_TRACE, TL_DELETE,
     .query = ""},
    {TRACE "/images", TL_ROLE_READ, tl_web_trace_images, .query = ""},
    {TRACE "/images", TL_ROLE_PUSH, tl_web_bind_image, TL_SHORT, TL_REACH_TRACE, TL_POST,
     .query = "sha256, address, offset, length, space, context, vmid, from, until"},
    {TRACE "/setup", TL_ROLE_READ, tl_web_setup, .query = ""},
    {TRACE "/functions", TL_ROLE_READ, tl_web_functions, TL_LONG, .query = ""},
    {TRACE "/tiles/{axis}/{level}/{index}", TL_ROLE_READ, tl_web_tile, TL_LONG,
     .run_at_once = tl_web_tile_kept, .query = "lanes, gen"},
    {TRACE "/find", TL_ROLE_READ, tl_web_trace_find, TL_LONG, .query = FIND ", near"},
    {TRACE "/profile", TL_ROLE_READ, tl_web_ask, TL_LONG, .detail = &tl_question_profile,
     .query = PROFILE},
    {TRACE "/stats", TL_ROLE_READ, tl_web_ask, TL_LONG, .detail = &tl_question_stats,
     .query = "functions"},
    {TRACE "/slices", TL_ROLE_READ, tl_web_ask_streams, TL_LONG, .detail = &tl_question_slices,
     .query = "streams, " SPAN ", columns"},
    {TRACE "/at", TL_ROLE_READ, tl_web_at, TL_LONG, .query = "streams, time"},
    {TRACE "/log", TL_ROLE_READ, tl_web_log, TL_LONG, .detail = &tl_question_log,
     .query = "streams, " SPAN ", limit, last, port, format"},
    {TRACE "/sql", TL_ROLE_READ, tl_web_sql, TL_LONG, .query = "q, rows, seconds"},
    {TRACE "/sql", TL_ROLE_READ, tl_web_sql, TL_LONG, TL_REACH_TRACE, TL_POST, TL_SQL_BYTES,
     .query = "rows, seconds"},
    {TRACE "/states", TL_ROLE_READ, tl_web_ask_streams, TL_LONG, .detail = &tl_question_states,
     .query = "streams, " SPAN ", columns"},
    {TRACE "/counters", TL_ROLE_READ, tl_web_ask_streams, TL_LONG, .detail = &tl_question_counters,
     .query = "streams, " SPAN ", columns"},
    {TRACE "/extremes", TL_ROLE_READ, tl_web_ask, TL_LONG, .detail = &tl_question_extremes,
     .query = "most"},
    {TRACE "/hits", TL_ROLE_READ, tl_web_ask_streams, TL_LONG, .detail = &tl_question_hits,
     .query = "streams, q, " SPAN ", columns"},
    {STREAM "/range", TL_ROLE_READ, tl_web_range, TL_LONG, .query = SPAN ", format"},
    {STREAM "/locate", TL_ROLE_READ, tl_web_locate, TL_LONG, .query = "unit, axis, at"},
    {STREAM "/find", TL_ROLE_READ, tl_web_find, TL_LONG, .query = FIND ", " SPAN},
    {STREAM "/hits", TL_ROLE_READ, tl_web_ask, TL_LONG, .detail = &tl_question_hits,
     .query = "q, " SPAN ", columns"},
    {STREAM "/compare", TL_ROLE_READ, tl_web_ask, TL_LONG, .detail = &tl_question_compare,
     .query = "with, from, to, with_from, with_to, calls, hunks, weight"},
    {STREAM "/simpoints", TL_ROLE_READ, tl_web_simpoints, TL_LONG,
     .query = "interval, most, from, to"},
    {STREAM "/call", TL_ROLE_READ, tl_web_ask, TL_LONG, .detail = &tl_question_call,
     .query = "at, depth"},
    {STREAM "/functions", TL_ROLE_READ, tl_web_ask, TL_LONG, .detail = &tl_question_functions,
     .query = SPAN ", weight, limit"},
    {STREAM "/calls", TL_ROLE_READ, tl_web_ask, TL_LONG, .detail = &tl_question_calls,
     .query = "of, " SPAN ", weight, order, least, most, skip, limit"},
    {STREAM "/interrupts", TL_ROLE_READ, tl_web_ask, TL_LONG, .detail = &tl_question_exceptions,
     .query = SPAN},
    {STREAM "/gaps", TL_ROLE_READ, tl_web_ask, TL_LONG, .detail = &tl_question_gaps,
     .query = SPAN ", limit"},
    {STREAM "/profile", TL_ROLE_READ, tl_web_ask, TL_LONG, .detail = &tl_question_profile,
     .query = PROFILE},
    {STREAM "/stats", TL_ROLE_READ, tl_web_ask, TL_LONG, .detail = &tl_question_stats,
     .query = SPAN ", functions"},
    {STREAM "/slices", TL_ROLE_READ, tl_web_ask, TL_LONG, .detail = &tl_question_slices,
     .query = SPAN ", columns"},
    {STREAM "/insns", TL_ROLE_READ, tl_web_ask, TL_LONG, .detail = &tl_question_insns,
     .query = SPAN ", count"},
    {STREAM "/source", TL_ROLE_READ, tl_web_ask, TL_LONG, .detail = &tl_question_source,
     .query = "at, frame"},
    {"/api/v1/images", TL_ROLE_READ, tl_web_images, TL_SHORT, TL_REACH_ALL, .query = ""},
    {"/api/v1/images", TL_ROLE_PUSH, tl_web_put_image, TL_LONG, TL_REACH_NONE, TL_PUT, IMAGE,
     .query = "name"},
    {"/api/v1/images/{image}", TL_ROLE_ADMIN, tl_web_remove_image, TL_LONG, TL_REACH_ALL, TL_DELETE,
     .query = "force"},
    {"/api/v1/events", TL_ROLE_READ, tl_web_events, TL_SHORT, TL_REACH_OWN,
     .query = "every, changes, limit"},
    {"/metrics", TL_ROLE_READ, metrics, TL_SHORT, TL_REACH_ALL},
    {"/healthz", TL_ROLE_HEALTH, healthy, TL_SHORT, TL_REACH_NONE},
    {"/readyz", TL_ROLE_HEALTH, ready, TL_SHORT, TL_REACH_NONE},
    {"/api/v1/login", TL_ROLE_READ, tl_http_login, TL_SHORT, TL_REACH_NONE, TL_POST},
    {"/api/v1/logout", TL_ROLE_PUBLIC, tl_http_logout, TL_SHORT, TL_REACH_NONE, TL_POST},
    {"/login", TL_ROLE_PUBLIC, web_asset, TL_SHORT, TL_REACH_NONE},
    {"/login.js", TL_ROLE_PUBLIC, web_asset, TL_SHORT, TL_REACH_NONE},
    {"/login.css", TL_ROLE_PUBLIC, web_asset, TL_SHORT, TL_REACH_NONE},
    {"/licenses.txt", TL_ROLE_PUBLIC, web_asset, TL_SHORT, TL_REACH_NONE},
    {"/{*}", TL_ROLE_READ, web_asset, TL_SHORT, TL_REACH_NONE},
};
const size_t tl_http_routes_n = sizeof tl_http_routes / sizeof *tl_http_routes;
