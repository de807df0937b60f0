/* SPDX-License-Identifier: MIT */
/* Records everything a decode outputs, to compare it with another decode. */
#ifndef TL_TESTS_DECODE_LOG_H
#define TL_TESTS_DECODE_LOG_H

#include "decode/decode.h"
#include "steps.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <string.h>

enum { STREAMS = 128 };

/* All output of a decode, by stream; the last losses are those of the container. */
struct log {
    struct tl_buf items[STREAMS], losses[STREAMS + 1];
    struct tl_buf offsets[STREAMS]; /* of the items */
    struct steps_streams steps;
    bool paths, digests;
};

static inline void log_fini(struct log *log)
{
    for (unsigned i = 0; i < STREAMS; i++) {
        tl_buf_fini(&log->items[i]);
        tl_buf_fini(&log->offsets[i]);
    }
    for (unsigned i = 0; i <= STREAMS; i++)
        tl_buf_fini(&log->losses[i]);
}

static inline void log_number(struct tl_buf *b, uint64_t value)
{
    assert_int_equal(tl_buf_add(b, &value, sizeof value), TL_OK);
}

static inline void log_one(struct tl_buf *b, const struct tl_item *item)
{
    log_number(b, (uint64_t)item->kind | (uint64_t)item->flags << 8 | (uint64_t)item->sub << 16 |
                      (uint64_t)item->n << 32);
    log_number(b, item->pc);
    log_number(b, item->value);
    if (item->kind == TL_ITEM_BLOCK) {
        log_number(b, item->block->pc);
        log_number(b, item->block->isa);
        assert_int_equal(tl_buf_add(b, item->block->code, item->block->size), TL_OK);
        if (item->block->whole)
            assert_int_equal(tl_buf_add(b, item->block->coded, item->block->coded_size), TL_OK);
    } else if (item->kind == TL_ITEM_SOFTWARE) {
        assert_int_equal(tl_buf_add(b, item->data, item->n), TL_OK);
    } else if (item->kind == TL_ITEM_NOTE || (item->kind == TL_ITEM_EXCEPTION && item->text)) {
        assert_int_equal(tl_buf_add(b, item->text, strlen(item->text)), TL_OK);
    }
}

static inline int on_items(void *context, const struct tl_decode_stream *stream,
                           const struct tl_item *items, size_t n)
{
    struct log *const log = context;
    struct tl_buf *const b = &log->items[stream->index % STREAMS];
    struct tl_buf *const at = &log->offsets[stream->index % STREAMS];
    if (stream->protocol != TL_PROTO_STF) /* whose traces tell what they like */
        steps_demand_of(&log->steps, stream->index, items, n);
    for (size_t i = 0; i < n; i++) {
        if (items[i].kind != TL_ITEM_PATH) {
            log_one(b, &items[i]);
            log_number(at, items[i].offset);
            continue;
        }
        assert_true(log->paths);
        uint64_t insns = 0;
        for (uint32_t k = 0; k < items[i].n; k++) {
            const struct tl_item one = tl_path_item(&items[i], k);
            log_one(b, &one);
            log_number(at, one.offset);
            insns += one.n;
        }
        assert_int_equal(insns, items[i].value);
    }
    return TL_OK;
}

static inline int on_loss(void *context, const struct tl_decode_loss *loss)
{
    struct log *const log = context;
    struct tl_buf *const b = &log->losses[loss->stream ? loss->stream->index % STREAMS : STREAMS];
    log_number(b, loss->offset);
    log_number(b, loss->bytes);
    assert_int_equal(tl_buf_add(b, loss->reason, strlen(loss->reason)), TL_OK);
    return TL_OK;
}

static inline void same_bytes(const struct tl_buf *a, const struct tl_buf *b)
{
    assert_int_equal(a->n, b->n);
    if (a->n)
        assert_memory_equal(a->p, b->p, a->n);
}

static inline void assert_same(const struct log *a, const struct log *b)
{
    for (unsigned i = 0; i < STREAMS; i++) {
        same_bytes(&a->items[i], &b->items[i]);
        if (a->paths == b->paths)
            same_bytes(&a->offsets[i], &b->offsets[i]);
    }
    for (unsigned i = 0; i <= STREAMS; i++)
        same_bytes(&a->losses[i], &b->losses[i]);
}

#endif
