/* SPDX-License-Identifier: MIT */
/* For tests of streams decoded by several threads: whether parts decoded ahead are used. */
#ifndef TL_TESTS_SPLIT_HELP_H
#define TL_TESTS_SPLIT_HELP_H

#include "base/crew.h"
#include "decode/kept.h"
#include "decode/split.h"
#include "unit/patience.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

/* The pushing thread waits, so that it depends on no schedule how far the others get. */
static inline int split_wait(void *context, const struct tl_item *items, size_t n)
{
    struct tl_stream_decoder **const d = context;
    (void)items, (void)n;
    for (int64_t since = 0; !tl_split_is_ahead(*d);)
        keep_waiting(&since, "parts are decoded ahead");
    return TL_OK;
}

static inline int split_ignore_loss(void *context, const char *reason, uint64_t offset,
                                    uint64_t bytes)
{
    (void)context, (void)reason, (void)offset, (void)bytes;
    return TL_OK;
}

/* Check that parts decoded ahead are used in the stream. */
static inline void assert_met(const struct tl_stream_ops *ops, const struct tl_source *source,
                              const struct tl_image *image, const struct tl_buf *trace, bool paths)
{
    struct tl_share share = {0};
    struct tl_stream_decoder *d;
    const struct tl_stream_sink sink = {
        .context = &d, .items = split_wait, .loss = split_ignore_loss, .paths = paths};
    const struct tl_run run = {trace->p, trace->n, 0, NULL};
    assert_int_equal(tl_crew_new(&share.crew, 2), TL_OK);
    assert_int_equal(tl_split_new(&d, ops, source, image, &sink, &share, NULL), TL_OK);
    assert_int_equal(d->ops->push(d, &run), TL_OK);
    assert_int_equal(d->ops->flush(d), TL_OK);
    assert_true(tl_split_met(d) > 0);
    d->ops->destroy(d);
    tl_crew_free(share.crew);
    tl_kept_rooms_free(share.rooms);
}

#endif
