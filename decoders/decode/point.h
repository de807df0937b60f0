/* SPDX-License-Identifier: MIT */
/*
 * What items mean for a stream's positions and their times, by protocol: which count as positions,
 * as instructions (of a BLOCK) always do, and which tell that trace is missing.
 */
#ifndef TL_DECODE_POINT_H
#define TL_DECODE_POINT_H

#include "flow/item.h"
#include "setup/format.h"

/* Does every item of this kind count as a position in a stream of this protocol? */
static inline bool tl_item_is_point(enum tl_protocol protocol, unsigned kind)
{
    switch (kind) {
    case TL_ITEM_UNKNOWN:
        return true;
    case TL_ITEM_BRANCH:
        return tl_protocol_has(protocol, TL_TRAIT_CALLS);
    case TL_ITEM_NOTE:
        return tl_protocol_has(protocol, TL_TRAIT_NOTES);
    case TL_ITEM_SOFTWARE:
    case TL_ITEM_HARDWARE:
        return tl_protocol_has(protocol, TL_TRAIT_SOFTWARE);
    default:
        return false;
    }
}

/*
 * Does an item of this kind tell that trace is missing before it? Where a GAP tells of each place
 * at which tracing was switched off, TRACE_ON does not: it may be behind a timestamp after the GAP,
 * and what runs up to the next one has the time from that timestamp on.
 */
static inline bool tl_item_is_break(enum tl_protocol protocol, unsigned kind)
{
    switch (protocol) {
    case TL_PROTO_PT:
    case TL_PROTO_N_TRACE:
    case TL_PROTO_NEXUS_SIFIVE:
    case TL_PROTO_ETM3:
    case TL_PROTO_PTM:
        return kind == TL_ITEM_GAP;
    default:
        return kind == TL_ITEM_GAP || kind == TL_ITEM_TRACE_ON;
    }
}

#endif
