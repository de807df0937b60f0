/* SPDX-License-Identifier: MIT */
/*
 * Has a trace decoded again, with another setup or the previous one. The generation served stays
 * until the new one is complete, which is what makes going back possible.
 */
#include "lake/lakeint.h"
#include "share/share.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int tl_lake_redecode(struct tl_lake *lake, const char *id, const char *setup, struct tl_fail *fail)
{
    struct tl_trace *const trace = tl_lake_find_trace(lake, id);
    if (!trace)
        return tl_no_trace(lake, fail, id);
    int r = tl_trace_pin(trace, TL_PIN_ASK, fail);
    if (r >= 0) {
        r = tl_trace_redecode(trace, NULL, setup, fail);
        tl_trace_unpin(trace);
    }
    tl_trace_put(trace);
    return r;
}

int tl_lake_redecode_back(struct tl_lake *lake, const char *id, struct tl_fail *fail)
{
    struct tl_trace *trace = tl_lake_find_trace(lake, id);
    if (!trace)
        return tl_no_trace(lake, fail, id);
    pthread_mutex_lock(&trace->lock);
    const bool has = trace->earlier != NULL;
    char *earlier = has ? strdup(trace->earlier) : NULL;
    pthread_mutex_unlock(&trace->lock);
    int r = TL_OK;
    if (!has)
        r = tl_fail_set(fail, TL_USAGE, "trace %s has had no other setup", id);
    else
        r = earlier ? tl_lake_redecode(lake, id, earlier, fail)
                    : tl_fail_set(fail, TL_NOMEM, "no memory");
    free(earlier);
    tl_trace_put(trace);
    return r;
}
