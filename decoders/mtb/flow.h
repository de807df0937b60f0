/* SPDX-License-Identifier: MIT */
/*
 * Records of an MTB to flow items. Any sequence of records is accepted; the only failures are those
 * of the sink and out of memory. Not thread-safe.
 *
 * Source: Arm DDI0486, "Trace packet format"; for exceptions DDI0419, B1.5.
 */
#ifndef TL_MTB_FLOW_H
#define TL_MTB_FLOW_H

#include "flow/walker.h"
#include "mtb/config.h"

#define TL_MTB_NESTED 32u /* handlers inside each other, of which return addresses are kept */

struct tl_mtb_record {
    uint32_t source, destination; /* addresses, bit 0 off */
    bool atomic;                  /* A: no instruction branched; `source` is a return address */
    bool starts;                  /* S: tracing began or began again */
    uint64_t offset;
};

struct tl_mtb_flow {
    struct tl_mtb_config config;
    struct tl_walker walker;
    struct tl_item_batch *out;    /* borrowed */
    const struct tl_image *image; /* borrowed */
    bool begun;                   /* there was a record */
    bool cut;                     /* the next one does not follow the last one */
    bool returning;               /* an exception return's destination follows */
    bool resumed; /* the place may be inside an IT block: an exception return led there */
    uint8_t n_back;
    uint32_t back[TL_MTB_NESTED]; /* where the exceptions that are handled return to */
};

/* `image` may be NULL; it, `out` and what it delivers to are borrowed. Returns TL_NOMEM. */
TL_MUST_USE int tl_mtb_flow_init(struct tl_mtb_flow *flow, const struct tl_mtb_config *config,
                                 const struct tl_image *image, struct tl_item_batch *out);
void tl_mtb_flow_fini(struct tl_mtb_flow *flow);

/* Save or load all but the items, right after they were delivered. */
void tl_mtb_flow_state(struct tl_mtb_flow *flow, struct tl_state *state);

void tl_mtb_flow_record(struct tl_mtb_flow *flow, const struct tl_mtb_record *record);
/* The records before and behind this place are not next to each other. */
void tl_mtb_flow_cut(struct tl_mtb_flow *flow);
/* The end of the records: what ran up to the halt, if the PC is known. */
void tl_mtb_flow_finish(struct tl_mtb_flow *flow, uint64_t offset);

/* Is this no address, but what an exception return branches to? */
static inline bool tl_mtb_is_exc_return(uint32_t address)
{
    return address >= 0xffffff00u;
}

#endif
