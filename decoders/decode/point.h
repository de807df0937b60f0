/* SPDX-License-Identifier: MIT */
/* Which items count as positions of a stream. Instructions (of a BLOCK) always do. */
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

#endif
