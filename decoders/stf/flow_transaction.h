/* SPDX-License-Identifier: MIT */
/*
 * Transaction traces as flow items. A transaction is told in three of them: TIME, where its clock
 * is that of the trace's first one; NOTE, the record in the words of its listing; SOFTWARE, source
 * "stf", channel that of the protocol (TileLink: 1 A … 5 E), payload what follows the channel.
 * Private to the library; not thread-safe.
 */
#ifndef TL_STF_FLOW_TRANSACTION_H
#define TL_STF_FLOW_TRANSACTION_H

#include "stf/flow_batch.h"

/* A zeroed one is ready. */
struct tl_stf_transactions {
    bool begun;
    uint8_t clock; /* of the first transaction */
    uint64_t time; /* its cycles */
    struct tl_buf text;
};

void tl_stf_transactions_fini(struct tl_stf_transactions *transactions);

/* Take a TRANSACTION or TRANSACTION_DEPENDENCY; others are ignored. The batch's errors; TL_NOMEM.
 */
TL_MUST_USE int tl_stf_transactions_add(struct tl_stf_transactions *transactions,
                                        const struct tl_stf_record *record,
                                        struct tl_stf_batch *batch);

#endif
