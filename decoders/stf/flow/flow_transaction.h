/* SPDX-License-Identifier: MIT */
/*
 * Transaction traces as flow items. A transaction becomes three items: TIME, if its clock is that
 * of the trace's first transaction; NOTE, the record's listing text; SOFTWARE, source "stf", with
 * the protocol's channel (TileLink: 1 A … 5 E) and the data after the channel byte as payload.
 * Private to the library; not thread-safe.
 */
#ifndef TL_STF_FLOW_TRANSACTION_H
#define TL_STF_FLOW_TRANSACTION_H

#include "stf/flow/flow_batch.h"

/* All zero: ready to use. */
struct tl_stf_transactions {
    bool begun;
    uint8_t clock; /* of the first transaction */
    uint64_t time; /* time of that clock in cycles */
    struct tl_buf text;
};

void tl_stf_transactions_fini(struct tl_stf_transactions *transactions);

/* Process a TRANSACTION or TRANSACTION_DEPENDENCY; other records are ignored. Returns the batch's
 * errors; TL_NOMEM. */
TL_MUST_USE int tl_stf_transactions_add(struct tl_stf_transactions *transactions,
                                        const struct tl_stf_record *record,
                                        struct tl_stf_batch *batch);

#endif
