/* SPDX-License-Identifier: MIT */
/*
 * Writes what stands for positions that cannot be regenerated. Positions keep their numbers, so
 * that everything after the damage is found where it was.
 */
#include "shard/missing.h"

#include "shard/itemlog.h"

#include <inttypes.h>
#include <stdio.h>

size_t tl_missing_items(struct tl_missing *missing, const struct tl_chunk *c, uint64_t position,
                        struct tl_item out[static 2])
{
    snprintf(missing->text, sizeof(missing->text),
             "raw bytes 0x%" PRIx64 " to 0x%" PRIx64 " are damaged: instructions %" PRIu64
             ":%" PRIu64 " cannot be regenerated",
             missing->from, missing->to, position, c->first + c->n);
    /* A missing range continues from chunk to chunk: the bytes are counted where it begins. */
    const bool begins = position > c->first;
    out[0] = (struct tl_item){.kind = TL_ITEM_GAP,
                              .flags = begins ? TL_ITEM_HAS_VALUE : 0,
                              .sub = TL_GAP_TRANSPORT,
                              .value = begins ? missing->to - missing->from : 0,
                              .offset = missing->from};
    out[1] = (struct tl_item){.kind = TL_ITEM_NOTE, .offset = missing->from, .text = missing->text};
    return tl_item_is_point(missing->protocol, TL_ITEM_NOTE) ? 1 : 2;
}

/* Go to the end of the log, to continue it. */
static int read_to_end(struct tl_itemlog *log, const struct tl_chunk *c)
{
    struct tl_itemlog_reader reader;
    struct tl_item item;
    uint64_t position;
    int r;
    tl_itemlog_read(&reader, (struct tl_bytes){log->bytes.p, log->bytes.n}, c->at.offset,
                    c->at.has_time ? c->at.time : 0);
    do
        r = tl_itemlog_next(&reader, &item, &position);
    while (r == TL_OK);
    log->base = reader.base;
    return r == TL_EOF ? TL_OK : r;
}

int tl_missing_log(struct tl_missing *missing, const struct tl_chunk *c, struct tl_bytes bytes,
                   uint64_t position, struct tl_blob **out)
{
    struct tl_itemlog log = {0};
    struct tl_item items[2];
    *out = NULL;
    if (position < c->first || position > c->first + c->n)
        return TL_BAD;
    const uint64_t at = position - c->first;
    tl_itemlog_reset(&log, c->at.offset, c->at.has_time ? c->at.time : 0);
    int r = tl_buf_add(&log.bytes, bytes.p, bytes.n);
    if (r >= 0)
        r = read_to_end(&log, c);
    if (r >= 0 && log.base.position > at)
        r = TL_BAD;
    const size_t n = bytes.n == 0 ? tl_missing_items(missing, c, position, items) : 0;
    for (size_t i = 0; i < n && r >= 0; i++)
        r = tl_itemlog_add(&log, at, &items[i]);
    if (r >= 0)
        r = tl_itemlog_add_lost(&log, at, c->n - at);
    if (r >= 0)
        *out = tl_blob_new((struct tl_bytes){log.bytes.p, log.bytes.n});
    tl_itemlog_fini(&log);
    return r < 0 ? r : *out ? TL_OK : TL_NOMEM;
}
