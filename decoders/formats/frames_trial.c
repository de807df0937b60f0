/* SPDX-License-Identifier: MIT */
/*
 * The streams have no image, so that no program is followed: packets that cannot be are lost in any
 * case. What they deliver is dropped.
 */
#include "formats/frames_trial.h"

#include "decode/ops.h"
#include "frame/tpiu.h"

#include <stdlib.h>

enum { IDS = 128 };

struct trial {
    const struct tl_setup *setup;
    struct tl_stream_decoder *streams[IDS];
    uint64_t given, lost; /* bytes of these */
    struct tl_tpiu tpiu;
};

static int drop_items(void *context, const struct tl_item *items, size_t n)
{
    (void)context;
    (void)items;
    (void)n;
    return TL_OK;
}

static int count_loss(void *context, const char *reason, uint64_t offset, uint64_t bytes)
{
    struct trial *const t = context;
    (void)reason;
    (void)offset;
    t->lost += bytes;
    return TL_OK;
}

static int on_run(void *context, uint8_t id, const struct tl_run *run)
{
    struct trial *const t = context;
    const struct tl_source *const source = tl_setup_source(t->setup, id);
    const struct tl_stream_ops *const ops = source ? tl_format_of(source->protocol)->ops : NULL;
    const struct tl_stream_sink sink = {.context = t, .items = drop_items, .loss = count_loss};
    struct tl_stream_decoder **const stream = &t->streams[id % IDS];
    struct tl_fail fail;
    if (!ops)
        return TL_OK;
    const int rc = *stream ? TL_OK : ops->create(stream, source, NULL, &sink, &fail);
    if (rc < 0) {
        *stream = NULL;
        return rc == TL_NOMEM ? rc : TL_OK;
    }
    t->given += run->n;
    return ops->push(*stream, run);
}

/* All bytes have been pushed. */
static int finish(struct trial *t)
{
    int rc = tl_tpiu_finish(&t->tpiu, TL_TPIU_UNFINISHED);
    for (unsigned id = 0; id < IDS; id++) {
        struct tl_stream_decoder *const stream = t->streams[id];
        if (rc == TL_OK && stream)
            rc = stream->ops->finish(stream, TL_LOSS_CUT_OFF);
        if (stream)
            stream->ops->destroy(stream);
    }
    return rc;
}

int64_t tl_frames_try(const struct tl_setup *setup, uint8_t id, const uint8_t *p, size_t n)
{
    struct trial *const t = calloc(1, sizeof *t);
    if (!t)
        return TL_NOMEM;
    t->setup = setup;
    const struct tl_tpiu_sink frames = {
        .context = t, .run = on_run, .apart = {UINT64_MAX, UINT64_MAX}};
    tl_tpiu_init(&t->tpiu, TL_TPIU_ALIGNED, 0, &frames);
    int rc = tl_demux_set_id(&t->tpiu.demux, id);
    if (rc == TL_OK)
        rc = tl_tpiu_push(&t->tpiu, p, n);
    const int end = finish(t);
    rc = rc < 0 ? rc : end;
    const uint64_t understood = t->given > t->lost ? t->given - t->lost : 0;
    free(t);
    return rc < 0 ? rc : (int64_t)understood;
}
