/* SPDX-License-Identifier: MIT */
/*
 * Converts a complete trace to flow items. It serves files, where the server reads shards in pieces
 * by the reader itself.
 */
#include "stf/flow/flow_reader.h"

int tl_stf_flow_read(const struct tl_stf_source *source, tl_item_sink *sink, void *context,
                     struct tl_fail *fail)
{
    struct tl_stf_reader *reader = NULL;
    struct tl_stf_flow_reader *flow = NULL;
    struct tl_stf_record record;
    int result = tl_stf_reader_open(&reader, source);
    if (result == TL_OK)
        result = tl_stf_flow_reader_new(&flow, sink, context);
    while (result == TL_OK) {
        result = tl_stf_reader_next(reader, &record, fail);
        if (result == TL_OK)
            result = tl_stf_flow_reader_add(flow, &record);
    }
    if (flow) {
        const int end = tl_stf_flow_reader_finish(flow);
        if (result == TL_EOF)
            result = end;
    }
    tl_stf_flow_reader_free(flow);
    tl_stf_reader_free(reader);
    return result;
}
