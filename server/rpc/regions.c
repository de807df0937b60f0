/* SPDX-License-Identifier: MIT */
/*
 * Finds regions by name. They are labels of their trace, so that they go where it goes.
 */
#include "rpc/regions.h"

#include "base/labels.h"
#include "lake_traces.h"

#include <stdio.h>

int tl_region_named(struct tl_lake *lake, const char *trace, const char *name,
                    struct tl_region_place *out, struct tl_fail *fail)
{
    struct tl_trace_list list = {0};
    unsigned long long from, to, warm_up;
    char key[160];
    int rc = tl_lake_trace(lake, trace, &list);
    if (rc < 0)
        return rc;
    snprintf(key, sizeof key, "region.%.127s", name);
    const char *const region = tl_label_value(list.rows[0].labels, key);
    const bool found =
        region && sscanf(region, "%31s %llu %llu %llu", out->stream, &from, &to, &warm_up) == 4 &&
        warm_up <= from && from <= to;
    tl_trace_list_free(&list);
    if (!found)
        return tl_fail_set(fail, TL_NOTFOUND,
                           "trace %.63s has no region %.63s: 'simpoints --save' makes them", trace,
                           name);
    out->from = from - warm_up;
    out->to = to;
    return TL_OK;
}
