/* SPDX-License-Identifier: MIT */
/*
 * Copies the rows of a trace from one catalog to another. They are written last, once all objects
 * are there, as they make the trace visible.
 */
#include "copy/copy.h"

#include <stdlib.h>
#include <string.h>

const char tl_copy_unfinished[] = "its copy has not ended: run `tracelake store copy` again";

enum { SHARDS = 64 };

struct streams {
    struct tl_catalog_stream *v;
    size_t n, cap;
};

static int keep_stream(void *context, const struct tl_catalog_stream *stream)
{
    struct streams *const s = context;
    if (tl_grow(&s->v, &s->cap, s->n + 1, sizeof *s->v) < 0)
        return TL_NOMEM;
    s->v[s->n] = *stream;
    s->v[s->n].name = strdup(stream->name);
    return s->v[s->n++].name ? TL_OK : TL_NOMEM;
}

struct shards {
    struct tl_catalog_shard *v;
    size_t n, cap;
    struct tl_buf summaries;
    size_t *lengths; /* of the batch's summaries */
    size_t n_lengths, cap_lengths;
};

static int keep_shard(void *context, const struct tl_shard_row *row)
{
    struct shards *const s = context;
    if (tl_grow(&s->v, &s->cap, s->n + 1, sizeof *s->v) < 0)
        return TL_NOMEM;
    s->v[s->n++] = (struct tl_catalog_shard){.row = *row};
    return TL_OK;
}

static int keep_summary(void *context, struct tl_bytes summary)
{
    struct shards *const s = context;
    if (tl_grow(&s->lengths, &s->cap_lengths, s->n_lengths + 1, sizeof *s->lengths) < 0 ||
        tl_buf_add(&s->summaries, summary.p, summary.n) < 0)
        return TL_NOMEM;
    s->lengths[s->n_lengths++] = summary.n;
    return TL_OK;
}

/* Copy shards [at, at + n) of a stream, with their summaries. */
static int copy_batch(const struct tl_copied_rows *c, const struct tl_catalog_trace *row,
                      uint64_t stream, struct shards *s, size_t at, size_t n, struct tl_fail *fail)
{
    struct tl_catalog_shard *const batch = s->v + at;
    tl_buf_reset(&s->summaries);
    s->n_lengths = 0;
    int r =
        c->source->ops->summaries(c->source, row->id, row->generation, stream, batch[0].row.number,
                                  batch[n - 1].row.number + 1, keep_summary, s, fail);
    if (r >= 0 && s->n_lengths != n)
        return tl_fail_set(fail, TL_AGAIN, "the shards of %s have changed meanwhile", row->id);
    const uint8_t *p = s->summaries.p;
    for (size_t i = 0; i < n && r >= 0; i++) {
        batch[i].stream = stream;
        batch[i].summary = (struct tl_bytes){p, s->lengths[i]};
        p += s->lengths[i];
    }
    return r < 0 ? tl_copy_nomem(r, fail)
                 : c->target->ops->add_shards(c->target, row->id, row->generation, batch, n, fail);
}

static int copy_shards(const struct tl_copied_rows *c, const struct tl_catalog_trace *row,
                       uint64_t stream, struct tl_fail *fail)
{
    struct shards s = {0};
    int r = tl_copy_nomem(
        c->source->ops->shards(c->source, row->id, row->generation, stream, keep_shard, &s, fail),
        fail);
    for (size_t at = 0; at < s.n && r >= 0; at += SHARDS)
        r = copy_batch(c, row, stream, &s, at, s.n - at < SHARDS ? s.n - at : SHARDS, fail);
    tl_buf_fini(&s.summaries);
    free(s.lengths);
    free(s.v);
    return r;
}

static int copy_streams(const struct tl_copied_rows *c, const struct tl_catalog_trace *row,
                        struct tl_fail *fail)
{
    struct streams s = {0};
    int r = tl_copy_nomem(
        c->source->ops->streams(c->source, row->id, row->generation, keep_stream, &s, fail), fail);
    for (size_t i = 0; i < s.n && r >= 0; i++) {
        r = c->target->ops->put_stream(c->target, row->id, row->generation, &s.v[i], fail);
        if (r >= 0)
            r = copy_shards(c, row, s.v[i].index, fail);
    }
    for (size_t i = 0; i < s.n; i++)
        free((void *)(uintptr_t)s.v[i].name);
    free(s.v);
    return r;
}

struct notes {
    struct tl_note *v;
    size_t n, cap;
};

static int keep_note(void *context, const struct tl_note *note)
{
    struct notes *const s = context;
    if (tl_grow(&s->v, &s->cap, s->n + 1, sizeof *s->v) < 0)
        return TL_NOMEM;
    s->v[s->n++] = *note;
    return TL_OK;
}

static int copy_notes(const struct tl_copied_rows *c, const struct tl_catalog_trace *row,
                      struct tl_fail *fail)
{
    struct notes s = {0};
    int r = tl_copy_nomem(c->source->ops->notes(c->source, row->id, keep_note, &s, fail), fail);
    for (size_t i = 0; i < s.n && r >= 0; i++)
        r = c->target->ops->put_note(c->target, row->id, &s.v[i], fail);
    free(s.v);
    return r;
}

int tl_copy_rows(const struct tl_copied_rows *c, const struct tl_catalog_trace *row,
                 struct tl_fail *fail)
{
    struct tl_catalog_trace first = *row;
    first.state = TL_TRACE_FAILED;
    first.message = tl_copy_unfinished;
    first.content = "";
    int r = c->target->ops->remove_traces(c->target, &row->id, 1, fail);
    if (r >= 0)
        r = c->target->ops->add_trace(c->target, &first, fail);
    if (r >= 0)
        r = copy_streams(c, row, fail);
    if (r >= 0)
        r = copy_notes(c, row, fail);
    return r < 0 ? r : c->target->ops->update_trace(c->target, row, fail);
}
