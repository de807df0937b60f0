/* SPDX-License-Identifier: MIT */
/*
 * Finds the traces whose connections ended with an earlier server process. They are known by their
 * label, since nothing else tells them from a push, which its client resumes.
 */
#include "rpc/raw.h"

#include "base/labels.h"
#include "lake_traces.h"
#include "osdhost/capture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Does this listener or source wait for the other end of the connection of a trace of `rig`? */
static bool waits_for(const struct tl_raw_spec *spec, const char *rig, const char *from)
{
    if (spec->rejoin_s == 0 || strcmp(spec->rig, rig) != 0)
        return false;
    return !spec->dials || (spec->n_orphans == 0 && strcmp(from, spec->address) == 0);
}

static void unheard(void *context, uint64_t offset)
{
}

/* It is opened as a push, which takes it over from a server that is gone, and removes it if it is
 * empty. */
static void end_orphan(struct tl_lake *lake, const struct tl_trace_row *row,
                       void (*log)(const char *line))
{
    const struct tl_ingest_request request = {.rig = row->rig, .trace = row->id, .resume = true};
    struct tl_ingest *ingest;
    struct tl_fail fail = {.offset = TL_NO_OFFSET};
    char trace[64], line[400];
    uint64_t at = 0;
    int rc = tl_ingest_open(lake, &request, unheard, NULL, &ingest, trace, &at, &fail);
    if (rc >= 0) {
        rc = tl_ingest_finish(ingest, &at, &fail);
        tl_ingest_close(ingest);
    }
    snprintf(line, sizeof line, "trace %s, %llu bytes: %s", row->id, (unsigned long long)at,
             rc < 0 ? fail.text : "complete, its connection ended with an earlier server");
    log(line);
}

/* The first listener or source that waits for it gets it; if there is none it ends. */
static int assign(struct tl_lake *lake, const struct tl_trace_row *row, const char *from,
                  struct tl_raw_spec *specs, size_t n, void (*log)(const char *line))
{
    struct tl_raw_orphan orphan;
    snprintf(orphan.trace, sizeof orphan.trace, "%s", row->id);
    snprintf(orphan.from, sizeof orphan.from, "%.*s", (int)strcspn(from, "\n"), from);
    for (size_t i = 0; i < n; i++) {
        struct tl_raw_spec *const spec = &specs[i];
        if (!waits_for(spec, row->rig, orphan.from))
            continue;
        struct tl_raw_orphan *const all =
            realloc(spec->orphans, (spec->n_orphans + 1) * sizeof *all);
        if (!all)
            return TL_NOMEM;
        spec->orphans = all;
        all[spec->n_orphans++] = orphan;
        return TL_OK;
    }
    end_orphan(lake, row, log);
    return TL_OK;
}

int tl_raw_assign_orphans(struct tl_lake *lake, struct tl_raw_spec *specs, size_t n,
                          void (*log)(const char *line))
{
    struct tl_trace_list list;
    int rc = tl_lake_at_hand(lake, &list);
    if (rc < 0)
        return rc;
    for (size_t i = 0; i < list.n && rc >= 0; i++) {
        const char *const from = tl_label_value(list.rows[i].labels, TL_LABEL_CONNECTION);
        if (list.rows[i].state == TL_TRACE_LIVE && from)
            rc = assign(lake, &list.rows[i], from, specs, n, log);
    }
    tl_trace_list_free(&list);
    return rc;
}
