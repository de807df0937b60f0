/* SPDX-License-Identifier: MIT */
/*
 * Finds regions by name. They are labels of their trace, so that they go where it goes.
 */
#include "rpc/regions.h"

#include "lake_traces.h"

#include <stdio.h>
#include <string.h>

int tl_region_named(struct tl_lake *lake, const char *trace, const char *name,
                    struct tl_region_place *out, struct tl_fail *fail)
{
    struct tl_trace_list list = {0};
    char key[160];
    int rc = tl_lake_trace(lake, trace, &list);
    if (rc < 0)
        return rc;
    const int n = snprintf(key, sizeof key, "region.%.127s=", name);
    const char *line = list.rows[0].labels;
    rc = TL_NOTFOUND;
    for (; line && *line && rc < 0; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL) {
        unsigned long long from, to, warm_up;
        if (strncmp(line, key, (size_t)n) == 0 &&
            sscanf(line + n, "%31s %llu %llu %llu", out->stream, &from, &to, &warm_up) == 4 &&
            warm_up <= from && from <= to) {
            out->from = from - warm_up;
            out->to = to;
            rc = TL_OK;
        }
    }
    tl_trace_list_free(&list);
    return rc < 0 ? tl_fail_set(fail, TL_NOTFOUND,
                                "trace %.63s has no region %.63s: 'simpoints --save' makes them",
                                trace, name)
                  : rc;
}
