/* SPDX-License-Identifier: MIT */
/*
 * Points a message at the columns of a tile. Columns have the same types in both, so that none is
 * copied.
 */
#include "rpc/tilepb.h"
#include "base/members.h"

#include "rpc/reply.h"

/* Generated messages have no const. */
#define NUMBERS(message, name, columns)                                                            \
    (message->n_##name = TL_TILE_BUCKETS, message->name = (void *)(uintptr_t)columns->name)
#define BYTES(message, name, columns)                                                              \
    (message->name = (ProtobufCBinaryData){sizeof columns->name, (void *)(uintptr_t)columns->name})

static void fill_lane(struct tl_tile_pb *pb, size_t i, const struct tl_tile_lane *c)
{
    Tracelake__V1__Lane *const l = &pb->lanes[i];
    tracelake__v1__lane__init(l);
    l->lane = c->lane;
    NUMBERS(l, insns, c);
    BYTES(l, coverage, c);
    NUMBERS(l, function, c);
    BYTES(l, share, c);
    NUMBERS(l, function2, c);
    BYTES(l, share2, c);
    BYTES(l, distinct, c);
    NUMBERS(l, page, c);
    BYTES(l, privilege, c);
    BYTES(l, branches, c);
    NUMBERS(l, event_mask, c);
    NUMBERS(l, event_count, c);
    BYTES(l, flags, c);
    BYTES(l, depth_min, c);
    BYTES(l, depth_max, c);
    BYTES(l, lost, c);
    for (size_t k = 0; k < TL_TILE_BUCKETS && l->switched_out.len == 0; k++)
        if (c->switched_out[k])
            BYTES(l, switched_out, c);
    if (c->behind)
        TL_SET(l, behind_from, c->behind_from);
    l->breaks = pb->breaks_at + pb->n_breaks;
    for (size_t k = 0; k < c->n_breaks && pb->n_breaks < TL_TILE_PB_BREAKS; k++) {
        Tracelake__V1__Break *const b = &pb->breaks[pb->n_breaks];
        tracelake__v1__break__init(b);
        TL_COPY_MEMBERS(b, &c->breaks[k], position, to, flags);
        b->begin = c->breaks[k].from;
        pb->breaks_at[pb->n_breaks++] = b;
        l->n_breaks++;
    }
}

const ProtobufCMessage *tl_tile_pb(const struct tl_tile *tile, struct tl_tile_pb *pb)
{
    Tracelake__V1__Tile *const t = &pb->tile;
    tracelake__v1__tile__init(t);
    t->axis = (Tracelake__V1__Unit)tile->axis; /* the enums have the same values */
    TL_COPY_MEMBERS(t, tile, level, index, bucket, first, sealed, generation);
    t->lanes = pb->at;
    pb->n_breaks = 0;
    for (; t->n_lanes < tile->n_lanes; t->n_lanes++) {
        pb->at[t->n_lanes] = &pb->lanes[t->n_lanes];
        fill_lane(pb, t->n_lanes, tile->lanes[t->n_lanes]);
    }
    return &t->base;
}
