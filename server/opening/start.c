/* SPDX-License-Identifier: MIT */
/*
 * Work at server start. Before calls are accepted: unfinished traces. All others are checked
 * afterwards, unless they are few: whether their copies are up to date, and what a crash has left
 * in the store.
 */
#include "opening/start.h"
#include "change/change.h"
#include "decoding/run.h"
#include "decoding/suspect.h"
#include "lake/lakeint.h"
#include "lake/mirror.h"

#include <stdlib.h>

#define A_FEW 256 /* maximum traces that are checked before calls are accepted */

static int load_row(void *context, const struct tl_catalog_trace *row)
{
    struct tl_trace *trace;
    const int r = tl_trace_of_row(context, row, &trace);
    if (r >= 0)
        tl_lake_insert(context, trace);
    return r;
}

/* Resume unfinished traces. Shards are loaded after the rows, since the catalog is locked during
 * the iteration. */
static int go_on(struct tl_lake *lake, struct tl_fail *fail)
{
    int r = lake->catalog->ops->unfinished(lake->catalog, load_row, lake, fail);
    for (struct tl_trace *t = lake->traces; t && r >= 0; t = t->next) {
        r = lake->catalog->ops->drop_others(lake->catalog, t->id, t->serving->number, t->wanted,
                                            fail);
        if (r >= 0)
            r = tl_gen_load(t->serving, fail);
        if (r >= 0)
            r = tl_trace_revive(t, fail);
    }
    if (r < 0)
        return r;
    /* A push that had sent nothing when the process ended. */
    for (struct tl_trace *t = lake->traces, *next; t; t = next) {
        next = t->next;
        if (t->state == TL_TRACE_LIVE)
            tl_trace_delete_empty(t);
    }
    return TL_OK;
}

/* ---- the rest ------------------------------------------------------------------------------- */

/* The process may have ended between writing the row and its copy. An idle trace is loaded only if
 * its copy must be written. */
static void look_at(struct tl_lake *lake, const char *id)
{
    struct tl_trace *trace = tl_lake_peek(lake, id);
    enum tl_mirror_state state;
    if (!trace && !tl_mirror_fits_row(lake, id))
        trace = tl_lake_find_trace(lake, id);
    if (!trace)
        return;
    if (tl_trace_mirror_check(trace, &state, NULL) < 0 || state != TL_MIRROR_SAME)
        tl_trace_mirror(trace);
    tl_trace_put(trace);
}

static void look_at_all(struct tl_lake *lake, const struct tl_names *names)
{
    const char *const ids = (const char *)names->text.p;
    for (size_t at = 0; at < names->text.n && !atomic_load(&lake->closing);
         at += strlen(ids + at) + 1)
        look_at(lake, ids + at);
}

static void *look_over(void *context)
{
    struct tl_lake *const lake = context;
    struct tl_names names = {0};
    int r = 1;
    while (r > 0 && !atomic_load(&lake->closing)) {
        tl_buf_reset(&names.text);
        r = tl_lake_names(lake, A_FEW, &names, NULL);
        look_at_all(lake, &names);
    }
    tl_buf_fini(&names.text);
    /* What the medium fails to remove now is retried at the next start. */
    if (r >= 0 && !atomic_load(&lake->closing))
        (void)!tl_lake_remove_orphans(lake, NULL);
    return NULL;
}

int tl_lake_begin(struct tl_lake *lake, struct tl_fail *fail)
{
    struct tl_names names = {0};
    if (lake->shared)
        return TL_OK; /* the sharing thread adopts traces without a holder */
    int r = go_on(lake, fail);
    tl_suspects_settle(lake);
    if (r >= 0)
        r = tl_lake_names(lake, A_FEW, &names, fail);
    const bool few = r == TL_OK;
    if (few) {
        look_at_all(lake, &names);
        r = tl_lake_remove_orphans(lake, fail);
    }
    tl_buf_fini(&names.text);
    atomic_store(&lake->begun_with, atomic_load(&lake->traces_read));
    return r < 0 || few ? r
                        : tl_chore_start(&lake->look, lake, look_over, "the looking over", fail);
}
