/* SPDX-License-Identifier: MIT */
/*
 * Filters what a caller sees of the lake by its token's scope. Traces outside appear not to exist,
 * because an error that tells them apart would reveal their names.
 */
#include "rpc/scoped.h"

#include "lake.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool covers_row(const struct tl_scope *scope, const struct tl_trace_row *row)
{
    return tl_scope_covers(scope, row->rig, row->labels);
}

int tl_scoped_covers(struct tl_lake *lake, const struct tl_scope *scope, const char *trace,
                     struct tl_fail *fail)
{
    struct tl_trace_list list = {0};
    if (!scope)
        return TL_OK;
    int rc = tl_lake_trace(lake, trace, &list);
    if (rc >= 0 && !covers_row(scope, list.rows))
        rc = TL_NOTFOUND;
    tl_trace_list_free(&list);
    return rc >= 0 ? TL_OK
           : rc == TL_NOTFOUND
               ? tl_fail_set(fail, rc, "there is no such trace")
               : tl_fail_set(fail, (enum tl_err)rc, "trace \"%.63s\": %s", trace, tl_err_name(rc));
}

/* Remove rows outside of the scope, beginning with number `first`. */
static void keep_covered(const struct tl_scope *scope, struct tl_trace_list *out, size_t first)
{
    size_t kept = first;
    if (!scope)
        return;
    for (size_t i = first; i < out->n; i++) {
        if (covers_row(scope, &out->rows[i])) {
            out->rows[kept++] = out->rows[i];
        } else {
            free(out->rows[i].labels);
            free(out->rows[i].streams);
        }
    }
    out->n = kept;
}

int tl_scoped_traces(struct tl_lake *lake, const struct tl_scope *scope, struct tl_trace_list *out)
{
    const int rc = tl_lake_traces(lake, out);
    if (rc >= 0)
        keep_covered(scope, out, 0);
    return rc;
}

void tl_place_write(char out[static TL_PLACE_TEXT], const struct tl_trace_place *place)
{
    snprintf(out, TL_PLACE_TEXT, "%lld.%s", (long long)place->created_ns, place->id);
}

int tl_place_read(const char *text, struct tl_trace_place *place)
{
    char *id;
    place->created_ns = strtoll(text, &id, 10);
    if (id == text || *id != '.' || strlen(id + 1) >= sizeof place->id)
        return TL_USAGE;
    snprintf(place->id, sizeof place->id, "%s", id + 1);
    return TL_OK;
}

int tl_scoped_page(struct tl_lake *lake, const struct tl_scope *scope,
                   const struct tl_trace_place *after, size_t most, struct tl_trace_list *out)
{
    struct tl_trace_place place = after ? *after : (struct tl_trace_place){0};
    bool begins = !after;
    int rc = 1;
    *out = (struct tl_trace_list){.revision = tl_lake_revision(lake)};
    while (rc > 0 && out->n < most) {
        const size_t first = out->n;
        rc = tl_lake_page(lake, begins ? NULL : &place, most - first, out);
        if (rc < 0 || out->n == first)
            break;
        place = tl_trace_place_of(&out->rows[out->n - 1]);
        begins = false;
        keep_covered(scope, out, first);
    }
    return rc;
}

int tl_scoped_push(struct tl_lake *lake, const struct tl_scope *scope, const char *rig,
                   const char *trace, struct tl_fail *fail)
{
    struct tl_trace_list list = {0};
    if (!tl_scope_has_rig(scope, rig))
        return tl_fail_set(fail, TL_DENIED, "the token is not for rig %.63s", rig);
    if (!scope || !*trace)
        return TL_OK;
    const int rc = tl_lake_trace(lake, trace, &list);
    const bool own = rc == TL_NOTFOUND || (rc >= 0 && covers_row(scope, list.rows));
    tl_trace_list_free(&list);
    if (rc < 0 && rc != TL_NOTFOUND) /* its owner is unknown */
        return tl_fail_set(fail, (enum tl_err)rc, "trace \"%.63s\": %s", trace, tl_err_name(rc));
    return own ? TL_OK : tl_fail_set(fail, TL_DENIED, "the token is not for trace %.63s", trace);
}
