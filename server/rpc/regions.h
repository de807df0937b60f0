/* SPDX-License-Identifier: MIT */
/* Representative regions that were stored by a name, as labels of their trace. */
#ifndef TL_RPC_REGIONS_H
#define TL_RPC_REGIONS_H

#include "base/err.h"

#include <stdint.h>

struct tl_lake;

/* A named region: instructions [from, to) of a stream. */
struct tl_region_place {
    char stream[32];
    uint64_t from, to;
};
/* Look up a region stored as a label of its trace, "region.NAME=STREAM FROM TO WARM-UP …"; `from`
 * is the begin of the warm-up. TL_NOTFOUND. */
TL_MUST_USE int tl_region_named(struct tl_lake *lake, const char *trace, const char *name,
                                struct tl_region_place *out, struct tl_fail *fail);

#endif
