/* SPDX-License-Identifier: MIT */
/* Conversion of tiles to messages. */
#ifndef TL_RPC_TILEPB_H
#define TL_RPC_TILEPB_H

#include "lake_tiles.h"
#include "tracelake/v1/ranges.pb-c.h"

#define TL_TILE_PB_BREAKS 1024 /* total of all lanes, the first ones */

struct tl_tile_pb {
    Tracelake__V1__Tile tile;
    Tracelake__V1__Lane lanes[TL_TILE_LANES], *at[TL_TILE_LANES];
    Tracelake__V1__Break breaks[TL_TILE_PB_BREAKS], *breaks_at[TL_TILE_PB_BREAKS];
    size_t n_breaks;
};

/* Fill and return the message `pb->tile`, which borrows the columns of `tile`. Nothing to free. */
const ProtobufCMessage *tl_tile_pb(const struct tl_tile *tile, struct tl_tile_pb *pb);

#endif
