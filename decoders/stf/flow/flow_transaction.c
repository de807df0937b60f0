/* SPDX-License-Identifier: MIT */
/*
 * Only the first clock becomes time, since the periods of several clocks of a trace are not known
 * relative to each other. The listing text is kept as a note because the payload alone loses the
 * fields that a protocol has.
 */
#include "stf/flow/flow_transaction.h"

void tl_stf_transactions_fini(struct tl_stf_transactions *transactions)
{
    tl_buf_fini(&transactions->text);
}

static int add_time(struct tl_stf_transactions *t, const struct tl_stf_record *record,
                    struct tl_stf_batch *batch)
{
    if (!t->begun)
        t->clock = record->transaction.clock;
    t->begun = true;
    if (record->transaction.clock != t->clock)
        return TL_OK;
    t->time += record->transaction.delta;
    return tl_stf_batch_add(batch, &(struct tl_item){.kind = TL_ITEM_TIME,
                                                     .flags = TL_ITEM_HAS_VALUE,
                                                     .sub = TL_TIME_TRACE,
                                                     .value = t->time,
                                                     .offset = record->offset});
}

static int add_note(struct tl_stf_transactions *t, const struct tl_stf_record *record,
                    struct tl_stf_batch *batch)
{
    tl_buf_reset(&t->text);
    if (tl_stf_record_fields(record, &t->text) < 0 || tl_buf_add(&t->text, "", 1) < 0)
        return TL_NOMEM;
    return tl_stf_batch_add(batch, &(struct tl_item){.kind = TL_ITEM_NOTE,
                                                     .text = (const char *)t->text.p,
                                                     .offset = record->offset});
}

static int add_data(const struct tl_stf_record *record, struct tl_stf_batch *batch)
{
    const struct tl_bytes data = record->transaction.data; /* begins with the channel byte */
    return tl_stf_batch_add(batch, &(struct tl_item){.kind = TL_ITEM_SOFTWARE,
                                                     .flags = TL_ITEM_HAS_PC,
                                                     .pc = data.p[0],
                                                     .n = (uint32_t)data.n - 1,
                                                     .data = data.p + 1,
                                                     .name = "stf",
                                                     .offset = record->offset});
}

int tl_stf_transactions_add(struct tl_stf_transactions *transactions,
                            const struct tl_stf_record *record, struct tl_stf_batch *batch)
{
    if (record->type == TL_STF_TRANSACTION_DEPENDENCY)
        return add_note(transactions, record, batch);
    if (record->type != TL_STF_TRANSACTION || record->transaction.data.n == 0)
        return TL_OK;
    int result = add_time(transactions, record, batch);
    if (result == TL_OK)
        result = add_note(transactions, record, batch);
    return result < 0 ? result : add_data(record, batch);
}
