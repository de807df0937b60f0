/* SPDX-License-Identifier: MIT */
#include "rpc/tilepb.h"

/* Generated messages have no const. */
#define NUMBERS(message, name, columns)                                                            \
    (message->n_##name = TL_TILE_BUCKETS, message->name = (void *)(uintptr_t)columns->name)
#define BYTES(message, name, columns)                                                              \
    (message->name = (ProtobufCBinaryData){sizeof columns->name, (void *)(uintptr_t)columns->name})

static void fill_lane(Tracelake__V1__Lane *l, const struct tl_tile_lane *c)
{
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
}

const ProtobufCMessage *tl_tile_pb(const struct tl_tile *tile, struct tl_tile_pb *pb)
{
    Tracelake__V1__Tile *const t = &pb->tile;
    tracelake__v1__tile__init(t);
    t->axis = (Tracelake__V1__Unit)tile->axis; /* numbered alike */
    t->level = tile->level;
    t->index = tile->index;
    t->bucket = tile->bucket;
    t->first = tile->first;
    t->sealed = tile->sealed;
    t->generation = tile->generation;
    t->lanes = pb->at;
    for (; t->n_lanes < tile->n_lanes; t->n_lanes++) {
        pb->at[t->n_lanes] = &pb->lanes[t->n_lanes];
        fill_lane(pb->at[t->n_lanes], tile->lanes[t->n_lanes]);
    }
    return &t->base;
}
