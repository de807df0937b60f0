/* SPDX-License-Identifier: MIT */
/*
 * What is in force at a place of the flow, and look-ups in a shard's index. Names are looked up by
 * what is in force, since programs at the same addresses differ by it.
 */
#include "shard/shard.h"

#include "base/search.h"
#include "image/image.h"
#include "shard/codeset.h"
#include "shard/itemlog.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static inline void take_time(struct tl_flow_now *now, uint64_t ticks)
{
    if (now->restarts && now->has_time)
        now->shift = now->axis + 1 - ticks;
    now->restarts = false;
    if (!now->has_time || ticks > now->time)
        now->time = ticks;
    if (!now->has_time || ticks + now->shift > now->axis)
        now->axis = ticks + now->shift;
    now->has_time = true;
}

void tl_flow_now_item(struct tl_flow_now *now, const struct tl_item *item)
{
    switch (item->kind) {
    case TL_ITEM_MODE:
        now->mode = item->value;
        now->has_mode = true;
        break;
    case TL_ITEM_CONTEXT:
        now->has_context = item->flags & TL_ITEM_HAS_PC;
        now->has_vmid = item->flags & TL_ITEM_HAS_VALUE;
        now->context = now->has_context ? item->pc : 0;
        now->vmid = now->has_vmid ? item->value : 0;
        break;
    case TL_ITEM_TIME:
        take_time(now, item->value);
        break;
    case TL_ITEM_NOTE:
        now->restarts |= tl_item_restarts_time(item);
        break;
    case TL_ITEM_ISA:
        now->isa = (uint8_t)item->sub;
        break;
    default:
        break;
    }
    now->offset = item->offset;
}

uint64_t tl_flow_now_view(const struct tl_flow_now *now, const struct tl_image *image,
                          uint16_t *space)
{
    const struct tl_image_context context = {.context_id = now->context,
                                             .vmid = now->vmid,
                                             .has_context_id = now->has_context,
                                             .has_vmid = now->has_vmid};
    *space = now->has_mode ? (uint16_t)tl_mode_space(now->mode) : TL_SPACE_ANY;
    return tl_image_view(image, &context, now->has_time ? now->time : 0, NULL);
}

int64_t tl_flow_now_symbol(const struct tl_flow_now *now, const struct tl_image *image, uint64_t pc)
{
    uint16_t space;
    if (!image)
        return -1;
    if (!now->has_mode && !now->has_context && !now->has_vmid)
        return tl_image_symbol_index(image, pc);
    const uint64_t view = tl_flow_now_view(now, image, &space);
    return tl_image_view_symbol(image, view, space, pc);
}

bool tl_begins_function(const struct tl_image *image, uint32_t function, uint64_t pc)
{
    size_t n = 0;
    return image && function != TL_NO_FUNCTION &&
           tl_image_symbols(image, &n)[function].address == pc;
}

void tl_shard_index_fini(struct tl_shard_index *index)
{
    free(index->chunks);
    free(index->frames);
    free(index->code);
    tl_buckets_fini(&index->buckets);
    tl_shard_stats_fini(&index->stats);
    tl_time_pyramid_fini(&index->times);
    tl_time_pyramid_fini(&index->functions);
    *index = (struct tl_shard_index){0};
}

/* ---- look-ups ------------------------------------------------------------------------------ */

uint64_t tl_shard_chunk_markers(const struct tl_shard_index *index, uint64_t head)
{
    if (index->n_frames > 1)
        return index->frames[1].marker;
    const bool old = head == TL_CHUNK_MARKERS_OLD && index->row.markers <= TL_CHUNK_MARKERS_OLD;
    return old ? TL_CHUNK_MARKERS_OLD : TL_CHUNK_MARKERS;
}

size_t tl_shard_chunk_at(const struct tl_shard_index *index, uint64_t position)
{
    const size_t begun = tl_count_upto(TL_KEYS(index->chunks, first), index->n_chunks, position);
    return begun > 0 ? begun - 1 : 0;
}

size_t tl_shard_items_at(const struct tl_shard_index *index, uint64_t position)
{
    const struct tl_chunk *const chunks = index->chunks;
    size_t i = tl_shard_chunk_at(index, position);
    /* Where a .zstf chunk begins the previous one ended with its last instruction; elsewhere it may
     * have ended after any item. */
    while (i > 0 && chunks[i].first == position && chunks[i].stf == chunks[i - 1].stf)
        i--;
    return i;
}

bool tl_shard_ends_with_insn(const struct tl_shard_index *index)
{
    uint64_t log = 0;
    for (size_t i = 0; i < index->n_chunks; i++)
        log += index->chunks[i].items_plain;
    return log < TL_SHARD_LOG_BYTES && index->n_chunks > 0 &&
           index->chunks[index->n_chunks - 1].marker < index->row.markers;
}

bool tl_shard_has_code(const struct tl_shard_index *index, const struct tl_chunk *chunk,
                       uint64_t from, uint64_t to)
{
    if (chunk->n_code == UINT32_MAX)
        return true;
    from >>= TL_CODE_SHIFT;
    to >>= TL_CODE_SHIFT;
    const uint64_t *edges = index->code + chunk->code;
    const size_t n = tl_count_upto(edges, sizeof *edges, 0, chunk->n_code, from);
    return n % 2 == 1 || (n < chunk->n_code && edges[n] <= to);
}

char *tl_shard_object_key(char out[static 192], const char *trace, uint64_t generation,
                          const char *stream, uint64_t number, const char *kind)
{
    snprintf(out, 192, "t/%s/%" PRIu64 "/%s/%06" PRIu64 ".%s", trace, generation, stream, number,
             kind);
    return out;
}

char *tl_virtual_key(char out[static 192], const char *trace, uint64_t generation,
                     const char *stream, uint64_t number)
{
    return tl_shard_object_key(out, trace, generation, stream, number, "idx");
}

char *tl_shard_key(char out[static 192], const char *trace, uint64_t generation, const char *stream,
                   uint64_t number)
{
    return tl_shard_object_key(out, trace, generation, stream, number, "zstf");
}
