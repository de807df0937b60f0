/* SPDX-License-Identifier: MIT */
/*
 * Tiles: protobuf for the page, JSON for people and scripts. Sealed ones never change and are
 * cached as they are sent, compressed.
 */
#include "net/gzip.h"
#include "rpc/rpcint.h"
#include "rpc/tilecache.h"
#include "rpc/tilepb.h"
#include "rpc/webapi.h"
#include "rpc/webargs.h"
#include "rpc/webjson.h"

#include "tracelake/v1/ranges.pb-c.h"

#include <stdio.h>
#include <string.h>

#define MAX_LANES  16
#define GZIP_LEVEL 4 /* for data that is compressed once and sent often */

static int parse_lanes(const struct tl_http_request *request, Tracelake__V1__GetTilesRequest *t,
                       struct tl_fail *fail)
{
    const char *const text = tl_http_query(request, "lanes");
    uint64_t from = 0, to = MAX_LANES - 1;
    char copy[48];
    int rc = TL_OK;
    if (text) {
        snprintf(copy, sizeof copy, "%s", text);
        char *const dash = strchr(copy, '-');
        if (dash)
            *dash = 0;
        rc = tl_http_parse_number(copy, "lanes", &from, fail);
        to = from;
        if (rc == TL_OK && dash)
            rc = tl_http_parse_number(dash + 1, "lanes", &to, fail);
    }
    if (rc == TL_OK && (to < from || to - from >= MAX_LANES || to > UINT32_MAX))
        rc = tl_fail_set(fail, TL_USAGE, "lanes=%.20s; write FROM-TO, at most %d lanes", text,
                         MAX_LANES);
    t->lane_from = (uint32_t)from;
    t->lane_to = (uint32_t)to;
    return rc;
}

static int parse(const struct tl_http_request *request, Tracelake__V1__GetTilesRequest *t,
                 struct tl_fail *fail)
{
    tracelake__v1__get_tiles_request__init(t);
    int rc = tl_web_fill(request, t, fail);
    if (rc < 0)
        return rc;
    if (t->axis != TRACELAKE__V1__UNIT__UNIT_INSN && t->axis != TRACELAKE__V1__UNIT__UNIT_TIME)
        return tl_fail_set(fail, TL_USAGE, "axis=%.20s; it is insn or time", request->part[1]);
    if (t->level > 31)
        return tl_fail_set(fail, TL_USAGE, "level %u; there are 0 to 31", t->level);
    return parse_lanes(request, t, fail);
}

/* ---- JSON ------------------------------------------------------------------------------- */

/* `n` numbers of 1, 4 or 8 bytes. */
static void write_column(struct tl_jsonout *j, const char *name, const void *column, size_t size,
                         size_t n)
{
    tl_webjson_open(j, name, '[');
    for (size_t i = 0; i < n; i++)
        tl_jsonout_u64(j, size == 1   ? ((const uint8_t *)column)[i]
                          : size == 4 ? ((const uint32_t *)column)[i]
                                      : ((const uint64_t *)column)[i]);
    tl_jsonout_close(j, ']');
}

#define WRITE_COLUMN(name)                                                                         \
    write_column(j, #name, c->name, sizeof c->name[0], sizeof c->name / sizeof c->name[0])

static void write_breaks(struct tl_jsonout *j, const struct tl_tile_lane *c)
{
    tl_webjson_open(j, "breaks", '[');
    for (size_t i = 0; i < c->n_breaks; i++) {
        tl_jsonout_open(j, '{');
        tl_webjson_u64(j, "position", c->breaks[i].position);
        tl_webjson_u64(j, "from", c->breaks[i].from);
        tl_webjson_u64(j, "to", c->breaks[i].to);
        tl_webjson_u64(j, "flags", c->breaks[i].flags);
        tl_jsonout_close(j, '}');
    }
    tl_jsonout_close(j, ']');
}

static void write_lane(struct tl_jsonout *j, const struct tl_tile_lane *c)
{
    tl_jsonout_open(j, '{');
    tl_webjson_u64(j, "lane", c->lane);
    WRITE_COLUMN(insns);
    WRITE_COLUMN(coverage);
    WRITE_COLUMN(function);
    WRITE_COLUMN(share);
    WRITE_COLUMN(function2);
    WRITE_COLUMN(share2);
    WRITE_COLUMN(distinct);
    WRITE_COLUMN(page);
    WRITE_COLUMN(privilege);
    WRITE_COLUMN(branches);
    WRITE_COLUMN(event_mask);
    WRITE_COLUMN(event_count);
    WRITE_COLUMN(flags);
    WRITE_COLUMN(depth_min);
    WRITE_COLUMN(depth_max);
    WRITE_COLUMN(lost);
    WRITE_COLUMN(switched_out);
    write_breaks(j, c);
    if (c->behind)
        tl_webjson_u64(j, "behind_from", c->behind_from);
    tl_jsonout_close(j, '}');
}

static int write_tile(struct tl_buf *out, const struct tl_tile *tile)
{
    struct tl_jsonout json = {.out = out}, *const j = &json;
    tl_jsonout_open(j, '{');
    tl_webjson_open(j, "lanes", '[');
    for (size_t i = 0; i < tile->n_lanes; i++)
        write_lane(j, tile->lanes[i]);
    tl_jsonout_close(j, ']');
    tl_webjson_text(j, "axis", tile->axis == TL_UNIT_TIME ? "time" : "insn");
    tl_webjson_u64(j, "level", tile->level);
    tl_webjson_u64(j, "index", tile->index);
    tl_webjson_u64(j, "bucket", tile->bucket);
    tl_webjson_u64(j, "first", tile->first);
    tl_webjson_bool(j, "sealed", tile->sealed);
    tl_webjson_u64(j, "generation", tile->generation);
    tl_jsonout_close(j, '}');
    return json.rc;
}

/* ---- the handler ------------------------------------------------------------------------ */

/* A sealed tile never changes within its generation, so its URL identifies it. */
static int sealed_headers(uint64_t generation, bool json, bool dated,
                          struct tl_http_response *response)
{
    /* Weak: it is sent both plain and gzip'd. */
    int rc = tl_fields_addf(&response->headers, "etag", "W/\"%llx-0%s\"",
                            (unsigned long long)generation, json ? "-j" : "");
    if (rc == TL_OK)
        rc = tl_fields_add(&response->headers, "cache-control",
                           dated ? "public, max-age=31536000, immutable" : "no-cache");
    return rc == TL_OK ? tl_fields_add(&response->headers, "vary", "accept") : rc;
}

static int open_headers(const struct tl_tile *tile, bool json, struct tl_http_response *response)
{
    int rc = tl_fields_addf(&response->headers, "etag", "\"%llx-%llx%s\"",
                            (unsigned long long)tile->generation,
                            (unsigned long long)tile->revision + 1, json ? "-j" : "");
    if (rc == TL_OK)
        rc = tl_fields_add(&response->headers, "cache-control", "no-cache");
    return rc == TL_OK ? tl_fields_add(&response->headers, "vary", "accept") : rc;
}

static int respond(const struct tl_tile *tile, bool json, bool dated,
                   struct tl_http_response *response)
{
    struct tl_tile_pb pb;
    int rc =
        json ? write_tile(&response->body, tile) : tl_web_pack(response, tl_tile_pb(tile, &pb));
    response->compress = true;
    if (rc == TL_OK && json)
        rc = tl_http_type(response, "application/json");
    if (rc < 0)
        return rc;
    return tile->sealed ? sealed_headers(tile->generation, json, dated, response)
                        : open_headers(tile, json, response);
}

/* ---- cached tiles ------------------------------------------------------------------------ */

static bool takes_gzip(const struct tl_http_request *request)
{
    return tl_list_has(tl_http_header(request, "accept-encoding"), "gzip");
}

/* False: such a tile is not cached. */
static bool make_key(const Tracelake__V1__GetTilesRequest *t, bool gzip, struct tl_tilekey *key)
{
    memset(key, 0, sizeof *key);
    if (t->generation == 0 || strlen(t->trace) >= sizeof key->trace)
        return false;
    memcpy(key->trace, t->trace, strlen(t->trace));
    key->generation = t->generation;
    key->index = t->index;
    key->axis = (uint32_t)t->axis;
    key->level = (uint32_t)t->level;
    key->lane_from = t->lane_from;
    key->lane_to = t->lane_to;
    key->gzip = gzip;
    return true;
}

/* TL_AGAIN: it is not cached. */
static int respond_kept(const struct tl_http_request *request,
                        const Tracelake__V1__GetTilesRequest *t, bool dated,
                        struct tl_http_response *response)
{
    struct tl_rpc *const rpc = request->context;
    struct tl_tilekey key;
    struct tl_bytes tile;
    const bool gzip = takes_gzip(request);
    if (tl_http_accepts(request, "application/json") || !make_key(t, gzip, &key) ||
        !tl_lake_serves(rpc->lake, t->trace, t->generation))
        return TL_AGAIN;
    void *const kept = tl_tilecache_get(rpc->tiles, &key, &tile);
    if (!kept)
        return TL_AGAIN;
    int rc = TL_OK;
    if (request->at_once) {
        response->fixed = tile;
        response->let_go = tl_tilecache_let_go;
        response->owner = kept;
    } else {
        rc = tl_buf_add(&response->body, tile.p, tile.n);
        tl_tilecache_let_go(kept);
    }
    response->gzipped = gzip;
    if (rc == TL_OK && !gzip)
        rc = tl_fields_add(&response->headers, "vary", "accept-encoding");
    if (rc == TL_OK)
        rc = tl_http_type(response, "application/x-protobuf");
    return rc == TL_OK ? sealed_headers(t->generation, false, dated, response) : rc;
}

/* Cache the response as it is sent. */
static void keep(const struct tl_http_request *request, const Tracelake__V1__GetTilesRequest *t,
                 struct tl_http_response *response)
{
    struct tl_rpc *const rpc = request->context;
    struct tl_tilekey key;
    struct tl_buf packed = {0};
    const bool gzip = takes_gzip(request);
    if (!make_key(t, gzip, &key) || !tl_lake_serves(rpc->lake, t->trace, t->generation))
        return;
    if (gzip && tl_gzip((struct tl_bytes){response->body.p, response->body.n}, GZIP_LEVEL,
                        &packed) == TL_OK) {
        const struct tl_buf plain = response->body;
        response->body = packed;
        response->gzipped = true;
        response->compress = false;
        packed = plain;
    }
    if (response->gzipped == gzip)
        tl_tilecache_put(rpc->tiles, &key, (struct tl_bytes){response->body.p, response->body.n});
    tl_buf_fini(&packed);
}

int tl_web_tile_kept(struct tl_http_request *request, struct tl_http_response *response)
{
    Tracelake__V1__GetTilesRequest t;
    struct tl_fail none = {0};
    if (parse(request, &t, &none) < 0)
        return TL_AGAIN;
    return respond_kept(request, &t, true, response);
}

int tl_web_tile(struct tl_http_request *request, struct tl_http_response *response)
{
    struct tl_lake *const lake = tl_web_lake(request);
    struct tl_tile tile = {0};
    Tracelake__V1__GetTilesRequest t;
    struct tl_fail *const fail = &response->fail;
    int rc = parse(request, &t, fail);
    const bool dated = t.generation != 0; /* otherwise the URL means "the current one" */
    if (rc == TL_OK && !dated)
        rc = tl_generation_of(lake, t.trace, &t.generation);
    if (rc == TL_OK) {
        const int kept = respond_kept(request, &t, dated, response);
        if (kept != TL_AGAIN)
            return kept;
    }
    const bool json = tl_http_accepts(request, "application/json");
    if (rc == TL_OK)
        rc = tl_lake_tile(lake, t.trace, (enum tl_range_unit)t.axis, t.level, t.index, t.lane_from,
                          t.lane_to, t.generation, &tile, fail);
    if (rc == TL_OK)
        rc = respond(&tile, json, dated, response);
    else if (!fail->text[0])
        rc = tl_fail_set(fail, (enum tl_err)rc, "trace \"%.63s\", generation %llu: %s", t.trace,
                         (unsigned long long)t.generation, tl_err_name(rc));
    if (rc == TL_OK && tile.sealed && !json)
        keep(request, &t, response);
    tl_tile_fini(&tile);
    return rc;
}
