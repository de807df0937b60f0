/* SPDX-License-Identifier: MIT */
/*
 * Produces a range's file piece by piece, also as JSON. Each piece is converted when it is taken,
 * so that a range of any length takes the memory of one piece.
 */
#include "rpc/rangefile.h"

#include "rpc/flowjson.h"
#include "rpc/webjson.h"

#include <stdlib.h>
#include <string.h>

#define PIECE (128u << 10)

struct tl_rangefile {
    struct tl_range *range;
    struct tl_range_request request;
    bool begun, ended;
    size_t rows;
    struct tl_buf *out; /* receives the current piece */
};

int tl_rangefile_open(struct tl_lake *lake, const struct tl_range_request *request,
                      const struct tl_range_filter *filter, struct tl_rangefile **out,
                      struct tl_fail *fail)
{
    struct tl_rangefile *const file = calloc(1, sizeof *file);
    if (!file)
        return tl_fail_set(fail, TL_NOMEM, "no memory");
    file->request = *request;
    int rc = tl_range_open(lake, request, &file->range, fail);
    if (rc >= 0 && filter && tl_range_filter_given(filter))
        rc = tl_range_filter(file->range, filter, fail);
    if (rc < 0)
        tl_rangefile_close(file);
    else
        *out = file;
    return rc;
}

void tl_rangefile_extent(const struct tl_rangefile *file, uint64_t *first, uint64_t *count)
{
    tl_range_extent(file->range, first, count);
}

uint64_t tl_rangefile_kept(const struct tl_rangefile *file)
{
    return tl_range_kept(file->range);
}

void tl_rangefile_close(struct tl_rangefile *file)
{
    if (file)
        tl_range_close(file->range);
    free(file);
}

/* ---- JSON ------------------------------------------------------------------------------- */

/* Write {"trace":…,"stream":…,"first":…,"count":…,"items":[; the rows follow. */
static int begin_file(const struct tl_rangefile *file, struct tl_buf *out)
{
    struct tl_jsonout json = {.out = out};
    uint64_t first, count;
    tl_rangefile_extent(file, &first, &count);
    tl_jsonout_open(&json, '{');
    tl_webjson_text(&json, "trace", file->request.trace);
    tl_webjson_text(&json, "stream", file->request.stream);
    tl_webjson_u64(&json, "first", first);
    tl_webjson_u64(&json, "count", count);
    tl_webjson_open(&json, "items", '[');
    return json.rc;
}

static int add_line(void *context, uint64_t at, struct tl_bytes line)
{
    struct tl_rangefile *const file = context;
    struct tl_jsonout json = {.out = file->out, .after = file->rows++ > 0};
    tl_jsonout_line(&json);
    tl_flowjson(&json, at, line);
    return json.rc;
}

static int next_json(struct tl_rangefile *file, struct tl_buf *out, struct tl_fail *fail)
{
    const size_t before = out->n;
    int rc = TL_OK;
    if (file->ended)
        return TL_EOF;
    if (!file->begun)
        rc = begin_file(file, out);
    file->begun = true;
    file->out = out;
    while (rc >= 0 && out->n - before < PIECE)
        rc = tl_range_lines(file->range, add_line, file, fail);
    if (rc != TL_EOF)
        return rc;
    file->ended = true;
    return tl_buf_add(out, "\n]}\n", 4);
}

int tl_rangefile_next_stored(struct tl_rangefile *file, struct tl_range_stored *out,
                             struct tl_fail *fail)
{
    return tl_range_next_stored(file->range, out, fail);
}

int tl_rangefile_next(struct tl_rangefile *file, struct tl_buf *out, struct tl_fail *fail)
{
    return file->request.format == TL_FORMAT_LINES ? next_json(file, out, fail)
                                                   : tl_range_next(file->range, out, fail);
}
