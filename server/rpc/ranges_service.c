/* SPDX-License-Identifier: MIT */
/*
 * tracelake.v1.Ranges: fetches and follows ranges, and answers tiles. Stored bytes are sent from
 * their file without being read, where a range is whole shards.
 */
#include "rpc/convert.h"
#include "rpc/rangefile.h"
#include "rpc/regions.h"
#include "rpc/rpcint.h"
#include "rpc/tilepb.h"

#include <stdlib.h>
#include <string.h>

#define DATA_FIELD 3 /* FetchReply.data */

static uint64_t or_end(uint64_t to)
{
    return to ? to : UINT64_MAX;
}

/* ---- Fetch ------------------------------------------------------------------------------ */

/* Send stored bytes without reading them. TL_AGAIN: there are none. */
static int send_stored(struct tl_call *call, struct tl_rangefile *range,
                       const ProtobufCMessage *reply)
{
    struct tl_range_stored stored;
    if (!tl_call_maps(call))
        return TL_AGAIN;
    const int rc = tl_rangefile_next_stored(range, &stored, tl_call_fail(call));
    if (rc < 0)
        return rc;
    const struct tl_call_mapped mapped = {stored.bytes, stored.let_go, stored.owner};
    return tl_call_send_mapped(call, reply, DATA_FIELD, &stored.before, &mapped);
}

/* The strings are borrowed. */
static struct tl_range_filter take_filter(const Tracelake__V1__Filter *filter)
{
    return filter ? (struct tl_range_filter){filter->mode, filter->process, filter->thread}
                  : (struct tl_range_filter){0};
}

/* Say what the filter has kept. */
static int send_kept(struct tl_call *call, const struct tl_rangefile *range)
{
    Tracelake__V1__FetchReply reply = TRACELAKE__V1__FETCH_REPLY__INIT;
    reply.kept = tl_rangefile_kept(range);
    return tl_call_send(call, &reply.base);
}

/* Send a whole range; the first reply describes it. */
static int send_range(struct tl_call *call, const struct tl_range_request *request,
                      const struct tl_range_filter *filter)
{
    struct tl_fail *const fail = tl_call_fail(call);
    Tracelake__V1__FetchReply reply = TRACELAKE__V1__FETCH_REPLY__INIT;
    struct tl_rangefile *range = NULL;
    bool first = true;
    int rc = tl_call_hold(call, TL_RANGE_HOLDS);
    if (rc >= 0)
        rc = tl_rangefile_open(tl_call_rpc(call)->lake, request, filter, &range, fail);
    if (rc < 0)
        return tl_explain(tl_call_fail(call), rc, request->trace, request->stream);
    tl_rangefile_extent(range, &reply.first, &reply.count);
    while (rc == TL_OK) {
        struct tl_buf piece = {0};
        if (!first && (rc = send_stored(call, range, &reply.base)) != TL_AGAIN)
            continue;
        rc = tl_rangefile_next(range, &piece, fail);
        if (rc == TL_OK || (rc == TL_EOF && (piece.n || first))) {
            const int sent = tl_call_send_data(call, &reply.base, DATA_FIELD, &piece);
            if (sent < 0)
                rc = sent;
            first = false;
            reply.first = 0;
            reply.count = 0;
        }
        tl_buf_fini(&piece);
    }
    if (rc == TL_EOF && tl_range_filter_given(filter))
        rc = send_kept(call, range);
    tl_rangefile_close(range);
    return rc == TL_EOF ? TL_OK : rc;
}

static int check_enums(struct tl_call *call, unsigned unit, unsigned format)
{
    if (unit >= TL_UNITS)
        return tl_fail_set(tl_call_fail(call), TL_USAGE, "unit %u is not known", unit);
    if (format >= TL_FORMATS)
        return tl_fail_set(tl_call_fail(call), TL_USAGE, "format %u is not known", format);
    return TL_OK;
}

static int run_fetch(struct tl_call *call, const void *message)
{
    const Tracelake__V1__FetchRequest *const r = message;
    struct tl_region_place region;
    struct tl_range_request request = {
        .trace = r->trace,
        .stream = r->stream,
        .unit = (enum tl_range_unit)r->unit, /* the enums have the same values */
        .from = r->begin,
        .to = or_end(r->to),
        .format = (enum tl_range_format)r->format, /* JSON is made from lines */
    };
    const struct tl_range_filter filter = take_filter(r->filter);
    int rc = check_enums(call, (unsigned)r->unit, (unsigned)r->format);
    if (rc >= 0 && *r->region) {
        rc = tl_region_named(tl_call_rpc(call)->lake, r->trace, r->region, &region,
                             tl_call_fail(call));
        request.stream = region.stream;
        request.unit = TL_UNIT_INSN;
        request.from = region.from;
        request.to = region.to;
    }
    return rc < 0 ? tl_explain(tl_call_fail(call), rc, r->trace, r->stream)
                  : send_range(call, &request, &filter);
}

/* ---- Follow ----------------------------------------------------------------------------- */

struct follow {
    struct tl_call *call;
    const Tracelake__V1__FollowRequest *request;
    uint64_t at; /* next instruction to send */
    bool begun;
};

static const struct tl_stream_row *find_stream(const struct tl_trace_row *row, const char *name)
{
    for (size_t i = 0; i < row->n_streams; i++)
        if (!strcmp(row->streams[i].name, name))
            return &row->streams[i];
    return NULL;
}

/* Each range is a file of its own and names its stream; a followed stream is named only once. */
static void drop_heading(struct tl_buf *piece)
{
    const uint8_t *const end = piece->n ? memchr(piece->p, '\n', piece->n) : NULL;
    if (end && piece->n > 9 && !memcmp(piece->p, "# stream ", 9))
        tl_buf_drop(piece, (size_t)(end + 1 - piece->p));
}

static int send_news(struct follow *f, uint64_t to)
{
    struct tl_fail *const fail = tl_call_fail(f->call);
    const struct tl_range_request request = {
        .trace = f->request->trace,
        .stream = f->request->stream,
        .unit = TL_UNIT_INSN,
        .from = f->at,
        .to = to,
        .format = (enum tl_range_format)f->request->format,
    };
    const struct tl_range_filter filter = take_filter(f->request->filter);
    Tracelake__V1__FetchReply reply = TRACELAKE__V1__FETCH_REPLY__INIT;
    struct tl_rangefile *range = NULL;
    int rc = tl_call_hold(f->call, TL_RANGE_HOLDS);
    if (rc >= 0)
        rc = tl_rangefile_open(tl_call_rpc(f->call)->lake, &request, &filter, &range, fail);
    if (rc < 0)
        return tl_explain(tl_call_fail(f->call), rc, request.trace, request.stream);
    tl_rangefile_extent(range, &reply.first, &reply.count);
    const uint64_t end = reply.first + reply.count;
    for (bool first = true; rc == TL_OK; first = false) {
        struct tl_buf piece = {0};
        rc = tl_rangefile_next(range, &piece, fail);
        if (first && f->begun && request.format != TL_FORMAT_LINES)
            drop_heading(&piece);
        if ((rc == TL_OK || rc == TL_EOF) && piece.n) {
            const int sent = tl_call_send_data(f->call, &reply.base, DATA_FIELD, &piece);
            if (sent < 0)
                rc = sent;
            f->begun = true;
            reply.first = 0;
            reply.count = 0;
        }
        tl_buf_fini(&piece);
    }
    tl_rangefile_close(range);
    (void)!tl_call_hold(f->call, 0);
    if (rc == TL_EOF) {
        /* Not `to`: the range may have been opened with a smaller extent than seen before. */
        if (end > f->at)
            f->at = end;
        rc = TL_OK;
    }
    return rc;
}

/* Send what is new. TL_EOF: nothing more will come. */
static int catch_up(void *context)
{
    struct follow *const f = context;
    struct tl_trace_list list = {0};
    const char *const trace = f->request->trace;
    int rc = tl_lake_trace(tl_call_rpc(f->call)->lake, trace, &list);
    if (rc < 0)
        return tl_explain(tl_call_fail(f->call), rc, trace, f->request->stream);
    const struct tl_trace_row *const row = &list.rows[0];
    const struct tl_stream_row *const stream = find_stream(row, f->request->stream);
    const bool over = row->state == TL_TRACE_SEALED || row->state == TL_TRACE_FAILED;
    const uint64_t indexed = stream ? stream->insns : 0,
                   outlined = stream ? stream->outlined_insns : 0,
                   to = indexed > outlined ? indexed : outlined;
    if (!stream && over)
        rc = tl_fail_set(tl_call_fail(f->call), TL_NOTFOUND, "trace %.63s has no stream \"%.31s\"",
                         trace, f->request->stream);
    const bool there = stream != NULL;
    tl_trace_list_free(&list);
    /* At the end include what follows the last position. */
    if (rc == TL_OK && there && (over ? to >= f->at : to > f->at))
        rc = send_news(f, over ? UINT64_MAX : to);
    return rc == TL_OK && over ? TL_EOF : rc;
}

static int run_follow(struct tl_call *call, const void *message)
{
    struct follow f = {.call = call, .request = message};
    int rc = check_enums(call, 0, (unsigned)f.request->format);
    if (rc < 0)
        return rc;
    if (f.request->format != TRACELAKE__V1__FORMAT__FORMAT_TEXT &&
        f.request->format != TRACELAKE__V1__FORMAT__FORMAT_NAMED &&
        f.request->format != TRACELAKE__V1__FORMAT__FORMAT_JSON)
        return tl_fail_set(tl_call_fail(call), TL_USAGE,
                           "a live stream is followed as text or JSON");
    f.at = f.request->begin;
    rc = tl_on_changes(call, catch_up, &f);
    return rc == TL_EOF ? TL_OK : rc;
}

/* ---- tiles ------------------------------------------------------------------------------ */

static int run_tiles(struct tl_call *call, const void *message)
{
    const Tracelake__V1__GetTilesRequest *const r = message;
    struct tl_lake *const lake = tl_call_rpc(call)->lake;
    struct tl_tile tile = {0};
    struct tl_tile_pb pb;
    uint64_t generation = r->generation;
    int rc = check_enums(call, (unsigned)r->axis, 0);
    if (rc == TL_OK && !generation)
        rc = tl_generation_of(lake, r->trace, &generation);
    if (rc == TL_OK)
        rc = tl_lake_tile(lake, r->trace, (enum tl_range_unit)r->axis, r->level, r->index,
                          r->lane_from, r->lane_to, generation, &tile, tl_call_fail(call));
    if (rc == TL_OK)
        rc = tl_call_send(call, tl_tile_pb(&tile, &pb));
    tl_tile_fini(&tile);
    return tl_explain(tl_call_fail(call), rc, r->trace, "");
}

int tl_generation_of(struct tl_lake *lake, const char *trace, uint64_t *out)
{
    struct tl_trace_list list = {0};
    const int rc = tl_lake_trace(lake, trace, &list);
    if (rc == TL_OK)
        *out = list.rows[0].generation;
    tl_trace_list_free(&list);
    return rc;
}

const struct tl_method tl_ranges_methods[] = {
    {"/tracelake.v1.Ranges/Fetch", &tracelake__v1__fetch_request__descriptor, TL_SERVER_STREAM,
     TL_ROLE_READ, run_fetch},
    {"/tracelake.v1.Ranges/Code", &tracelake__v1__code_request__descriptor, TL_SERVER_STREAM,
     TL_ROLE_READ, tl_run_code, TL_LONG},
    {"/tracelake.v1.Ranges/Coverage", &tracelake__v1__code_request__descriptor, TL_SERVER_STREAM,
     TL_ROLE_READ, tl_run_coverage, TL_LONG},
    {"/tracelake.v1.Ranges/Sql", &tracelake__v1__sql_request__descriptor, TL_SERVER_STREAM,
     TL_ROLE_READ, tl_run_sql, TL_LONG},
    {"/tracelake.v1.Ranges/InsnColumns", &tracelake__v1__insn_columns_request__descriptor,
     TL_SERVER_STREAM, TL_ROLE_READ, tl_run_insn_columns, TL_LONG},
    {"/tracelake.v1.Ranges/GetTiles", &tracelake__v1__get_tiles_request__descriptor, TL_UNARY,
     TL_ROLE_READ, run_tiles, TL_LONG},
    {"/tracelake.v1.Ranges/Follow", &tracelake__v1__follow_request__descriptor, TL_SERVER_STREAM,
     TL_ROLE_READ, run_follow},
    {NULL, NULL, 0, 0, NULL},
};
