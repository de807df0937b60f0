/* SPDX-License-Identifier: MIT */
/*
 * The table of routes, the page's files, and the paths for monitoring. A route names its role and
 * its class of work, so that nothing is served without a decision on both.
 */
#include "lake.h"
#include "lake_rows.h"
#include "rpc/notes.h"
#include "rpc/rpcint.h"
#include "rpc/tilecache.h"
#include "rpc/webargs.h"
#include "rpc/weblookups.h"

#include "lake_sql.h"
#include "web/assets.h"

#include "tracelake/v1/ingest.pb-c.h"
#include "tracelake/v1/raw.pb-c.h"

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

/* ---- what the parts of paths and the arguments mean ---- */

#define TAKES(...)                                                                                 \
    .takes = (const struct tl_route_arg[])                                                         \
    {                                                                                              \
        __VA_ARGS__, {0}                                                                           \
    }
#define FILLS(kind, ...) .message = &tracelake__v1__##kind##__descriptor, TAKES(__VA_ARGS__)
#define ASKS(question, kind, ...) .detail = &tl_question_##question, FILLS(kind, __VA_ARGS__)
#define OWN(name)                                                                                  \
    {                                                                                              \
        name, NULL, TL_ARG_OWN                                                                     \
    }
#define OF_TRACE {"{trace}"}
#define OF_STREAM OF_TRACE, {"{stream}"}
#define STREAMS OF_TRACE, OWN("streams")
#define UNIT {"unit", NULL, TL_ARG_UNIT}, {"axis", NULL, TL_ARG_UNIT}
#define SPAN UNIT, {"from", "begin", TL_ARG_FROM}, {"to", NULL, TL_ARG_TO}
#define INSNS {"from", "begin"}, {"to"}
#define LANE SPAN, {"columns"}
#define FIND                                                                                       \
    OWN("pc"), {"symbol"}, {"event"}, {"call"}, {"mnemonic"}, {"opcode"}, {"text", "line"},        \
        {"q", "text"}, {"at"}, {"skip"}, {"backward"}, {"count"}, {"limit"}
#define PROFILE SPAN, {"weight"}, {"callers"}, {"nodes"}
/* clang-format off */

const struct tl_route tl_http_routes[] = {
    {"/api/v1/traces", TL_ROLE_READ, tl_web_traces, TL_SHORT, TL_REACH_OWN,
     FILLS(list_traces_request, {"limit", "page_size"}, {"cursor", "page_token"})},
    {TRACE, TL_ROLE_READ, tl_web_trace, FILLS(get_trace_request, OF_TRACE)},
    {TRACE, TL_ROLE_PUSH, tl_web_begin, TL_SHORT, TL_REACH_OWN, TL_PUT, SETUP,
     FILLS(open, OF_TRACE, {"rig"})},
    {TRACE, TL_ROLE_ADMIN, tl_web_delete, TL_SHORT, TL_REACH_TRACE, TL_DELETE,
     FILLS(delete_trace_request, OF_TRACE)},
    {TRACE "/raw", TL_ROLE_PUSH, tl_web_append, TL_LONG, TL_REACH_OWN, TL_POST, PIECE,
     FILLS(open, OF_TRACE, OWN("offset"), {"epoch"}, OWN("last"))},
    {TRACE "/labels", TL_ROLE_PUSH, tl_web_set_labels, TL_SHORT, TL_REACH_TRACE, TL_POST, LABELS,
     FILLS(set_labels_request, OF_TRACE)},
    {TRACE "/notes", TL_ROLE_READ, tl_web_ask, ASKS(notes, list_notes_request, OF_TRACE)},
    {TRACE "/notes", TL_ROLE_PUSH, tl_web_put_note, TL_SHORT, TL_REACH_TRACE, TL_POST,
     TL_NOTE_BYTES,
     FILLS(put_note_request, OF_TRACE, {"stream", "note.stream"}, {"at", "note.at"},
           {"to", "note.to"}, {"id", "note.id"})},
    {TRACE "/notes/{note}", TL_ROLE_PUSH, tl_web_delete_note, TL_SHORT, TL_REACH_TRACE, TL_DELETE,
     FILLS(delete_note_request, OF_TRACE, {"{note}", "id"})},
    {TRACE "/images", TL_ROLE_READ, tl_web_trace_images, FILLS(get_trace_request, OF_TRACE)},
    {TRACE "/images", TL_ROLE_PUSH, tl_web_bind_image, TL_SHORT, TL_REACH_TRACE, TL_POST,
     FILLS(bind_image_request, OF_TRACE, {"sha256"}, {"address"}, {"offset"}, {"length"}, {"space"},
           {"context", "context_id"}, {"vmid"}, {"from", "begin"}, {"until"})},
    {TRACE "/setup", TL_ROLE_READ, tl_web_setup, FILLS(get_setup_request, OF_TRACE)},
    {TRACE "/functions", TL_ROLE_READ, tl_web_ask, TL_LONG,
     ASKS(names, get_trace_request, OF_TRACE)},
    {TRACE "/tiles/{axis}/{level}/{index}", TL_ROLE_READ, tl_web_tile, TL_LONG,
     .run_at_once = tl_web_tile_kept,
     FILLS(get_tiles_request, OF_TRACE, {"{axis}"}, {"{level}"}, {"{index}"}, OWN("lanes"),
           {"gen", "generation"})},
    {TRACE "/find", TL_ROLE_READ, tl_web_ask, TL_LONG,
     ASKS(find_all, find_request, OF_TRACE, FIND, {"near"})},
    {TRACE "/profile", TL_ROLE_READ, tl_web_ask, TL_LONG,
     ASKS(profile, profile_request, OF_TRACE, PROFILE)},
    {TRACE "/stats", TL_ROLE_READ, tl_web_ask, TL_LONG,
     ASKS(stats, stats_request, OF_TRACE, {"functions"})},
    {TRACE "/slices", TL_ROLE_READ, tl_web_ask_streams, TL_LONG,
     ASKS(slices, lane_request, STREAMS, LANE)},
    {TRACE "/at", TL_ROLE_READ, tl_web_ask_streams, TL_LONG,
     ASKS(moments, locate_request, STREAMS, {"time", "at", TL_ARG_TIME})},
    {TRACE "/log", TL_ROLE_READ, tl_web_log, TL_LONG,
     ASKS(log, log_request, STREAMS, SPAN, {"limit"}, {"last"}, {"port"},
          {"port", "one_port", TL_ARG_GIVEN}, OWN("format"))},
    {TRACE "/sql", TL_ROLE_READ, tl_web_sql, TL_LONG,
     FILLS(sql_request, OF_TRACE, {"q", "text"}, {"rows"}, {"seconds"})},
    {TRACE "/sql", TL_ROLE_READ, tl_web_sql, TL_LONG, TL_REACH_TRACE, TL_POST, TL_SQL_BYTES,
     FILLS(sql_request, OF_TRACE, {"rows"}, {"seconds"})},
    {TRACE "/states", TL_ROLE_READ, tl_web_ask_streams, TL_LONG,
     ASKS(states, lane_request, STREAMS, LANE)},
    {TRACE "/counters", TL_ROLE_READ, tl_web_ask_streams, TL_LONG,
     ASKS(counters, lane_request, STREAMS, LANE)},
    {TRACE "/extremes", TL_ROLE_READ, tl_web_ask, TL_LONG,
     ASKS(extremes, extremes_request, OF_TRACE, {"most"})},
    {TRACE "/hits", TL_ROLE_READ, tl_web_ask_streams, TL_LONG,
     ASKS(hits, hits_request, STREAMS, {"q", "text"}, LANE)},
    {STREAM "/range", TL_ROLE_READ, tl_web_range, TL_LONG,
     FILLS(fetch_request, OF_STREAM, SPAN, {"format"}, OWN("mode"), OWN("process"), OWN("thread"))},
    {STREAM "/locate", TL_ROLE_READ, tl_web_ask, TL_LONG,
     ASKS(locate, locate_request, OF_STREAM, UNIT, {"at", NULL, TL_ARG_PLACE})},
    {STREAM "/find", TL_ROLE_READ, tl_web_ask, TL_LONG,
     ASKS(find, find_request, OF_STREAM, FIND, SPAN)},
    {STREAM "/hits", TL_ROLE_READ, tl_web_ask, TL_LONG,
     ASKS(hits, hits_request, OF_STREAM, {"q", "text"}, LANE)},
    {STREAM "/compare", TL_ROLE_READ, tl_web_ask, TL_LONG,
     ASKS(compare, compare_request, OF_STREAM, OWN("with"), INSNS, {"with_from", "other.begin"},
          {"with_to", "other.to"}, {"calls"}, {"hunks"}, {"weight"})},
    {STREAM "/simpoints", TL_ROLE_READ, tl_web_ask, TL_LONG,
     ASKS(regions, sim_points_request, OF_STREAM, {"interval"}, {"most"}, {"from", "begin"},
          {"to", "end"})},
    {STREAM "/call", TL_ROLE_READ, tl_web_ask, TL_LONG,
     ASKS(call, call_request, OF_STREAM, {"at"}, {"depth"}, {"depth", "innermost", TL_ARG_MISSING})},
    {STREAM "/functions", TL_ROLE_READ, tl_web_ask, TL_LONG,
     ASKS(functions, functions_request, OF_STREAM, SPAN, {"weight"}, {"limit"})},
    {STREAM "/calls", TL_ROLE_READ, tl_web_ask, TL_LONG,
     ASKS(calls, calls_request, OF_STREAM, {"of", "function"}, SPAN, {"weight"}, {"order"},
          OWN("least"), OWN("most"), {"skip"}, {"limit"})},
    {STREAM "/interrupts", TL_ROLE_READ, tl_web_ask, TL_LONG,
     ASKS(exceptions, exceptions_request, OF_STREAM, SPAN)},
    {STREAM "/gaps", TL_ROLE_READ, tl_web_ask, TL_LONG,
     ASKS(gaps, gaps_request, OF_STREAM, SPAN, {"limit"})},
    {STREAM "/profile", TL_ROLE_READ, tl_web_ask, TL_LONG,
     ASKS(profile, profile_request, OF_STREAM, PROFILE)},
    {STREAM "/stats", TL_ROLE_READ, tl_web_ask, TL_LONG,
     ASKS(stats, stats_request, OF_STREAM, SPAN, {"functions"})},
    {STREAM "/slices", TL_ROLE_READ, tl_web_ask, TL_LONG,
     ASKS(slices, lane_request, OF_STREAM, LANE)},
    {STREAM "/insns", TL_ROLE_READ, tl_web_ask, TL_LONG,
     ASKS(insns, insns_request, OF_STREAM, SPAN, {"count"})},
    {STREAM "/source", TL_ROLE_READ, tl_web_ask, TL_LONG,
     ASKS(source, source_request, OF_STREAM, {"at"}, {"frame"})},
    {"/api/v1/images", TL_ROLE_READ, tl_web_ask, TL_SHORT, TL_REACH_ALL,
     .detail = &tl_question_images, .message = &tracelake__v1__list_images_request__descriptor,
     .takes = (const struct tl_route_arg[]){{0}}},
    {"/api/v1/images", TL_ROLE_PUSH, tl_web_put_image, TL_LONG, TL_REACH_NONE, TL_PUT, IMAGE,
     FILLS(put_image_request, {"name"})},
    {"/api/v1/images/{image}", TL_ROLE_ADMIN, tl_web_remove_image, TL_LONG, TL_REACH_ALL, TL_DELETE,
     FILLS(remove_image_request, {"{image}"}, {"force", NULL, TL_ARG_YES})},
    {"/api/v1/events", TL_ROLE_READ, tl_web_events, TL_SHORT, TL_REACH_OWN,
     FILLS(watch_traces_request, OWN("every"), OWN("changes"), {"limit"})},
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
/* clang-format on */
const size_t tl_http_routes_n = sizeof tl_http_routes / sizeof *tl_http_routes;
