/* SPDX-License-Identifier: MIT */
/* A trace: references, its row in the catalog, what is due for it. Rows are written from a copy, so
 * that no lock is held while the catalog is called. */
#include "base/labels.h"
#include "lake/lakeint.h"
#include "lake/mirror.h"
#include "raw/segment.h"

#include <stdio.h>
#include <stdlib.h>

struct tl_trace *tl_trace_get(struct tl_trace *trace)
{
    atomic_fetch_add(&trace->refs, 1);
    return trace;
}

void tl_trace_put(struct tl_trace *trace)
{
    if (!trace || atomic_fetch_sub(&trace->refs, 1) != 1)
        return;
    tl_gen_put(trace->serving);
    tl_gen_put(trace->making);
    tl_gen_put(trace->edge.gen);
    tl_gen_put(trace->outline);
    if (trace->lease)
        trace->lake->backend->ops->lease_release(trace->lease);
    free(trace->setup);
    free(trace->earlier);
    free(trace->labels);
    pthread_mutex_destroy(&trace->lock);
    pthread_cond_destroy(&trace->mirrored);
    pthread_mutex_destroy(&trace->opening);
    pthread_mutex_destroy(&trace->owning);
    free(trace);
}

void tl_trace_set_content_locked(struct tl_trace *trace, const char *content)
{
    snprintf(trace->content, sizeof trace->content, "%s", content);
    if (*content)
        trace->content_state = TL_CONTENT_KNOWN;
    else if (trace->content_state == TL_CONTENT_KNOWN)
        trace->content_state = TL_CONTENT_UNKNOWN;
}

enum tl_trace_phase tl_trace_phase_locked(const struct tl_trace *trace)
{
    if (trace->deleted)
        return TL_PHASE_DELETED;
    if (!trace->complete || trace->session)
        return TL_PHASE_PUSHED;
    return trace->making ? TL_PHASE_DECODED : TL_PHASE_AT_REST;
}

unsigned tl_trace_owed_locked(const struct tl_trace *trace)
{
    const bool hash =
        trace->complete && !trace->raw_removed && trace->content_state < TL_CONTENT_KNOWN;
    return (trace->mirror_stale ? TL_OWED_COPY : 0u) | (hash ? TL_OWED_HASH : 0u) |
           (tl_repack_due_locked(trace) ? TL_OWED_PACKING : 0u);
}

bool tl_trace_is_fresh_locked(const struct tl_trace *trace)
{
    return trace->completed_ns > 0 && tl_monotonic_ns() - trace->completed_ns < TL_FRESH_NS;
}

struct tl_gen *tl_trace_serving(struct tl_trace *trace)
{
    pthread_mutex_lock(&trace->lock);
    struct tl_gen *gen = tl_gen_get(trace->serving);
    pthread_mutex_unlock(&trace->lock);
    return gen;
}

struct tl_gen *tl_trace_outline(struct tl_trace *trace)
{
    pthread_mutex_lock(&trace->lock);
    struct tl_gen *const gen = trace->outline ? tl_gen_get(trace->outline) : NULL;
    pthread_mutex_unlock(&trace->lock);
    return gen;
}

int tl_trace_save(struct tl_trace *trace, struct tl_fail *fail)
{
    pthread_mutex_lock(&trace->lock);
    trace->updated_ns = tl_lake_now(trace->lake);
    pthread_mutex_unlock(&trace->lock);
    return tl_trace_save_quietly(trace, fail);
}

void tl_trace_digest_locked(struct tl_trace *trace, struct tl_digest *out)
{
    *out = (struct tl_digest){.state = trace->state & 3};
    if (out->state < TL_TRACE_SEALED)
        return;
    out->raw_bytes = trace->raw_removed ? 0 : trace->raw_bytes;
    tl_gen_totals(trace->serving, &out->insns, &out->stored_bytes);
}

/* Write a copy of the row to the catalog; `*again`: the row has changed meanwhile. */
static int save_once(struct tl_trace *trace, bool *again, struct tl_fail *fail)
{
    pthread_mutex_lock(&trace->lock);
    *again = false;
    if (!tl_trace_mine_locked(trace)) { /* its row is maintained by another server */
        pthread_mutex_unlock(&trace->lock);
        return tl_fail_set(fail, TL_DENIED, "another server has trace %.64s now", trace->id);
    }
    const uint64_t number = ++trace->saves;
    char format[sizeof(trace->format)], message[sizeof(trace->message)];
    char *setup = strdup(trace->setup);
    char *earlier = strdup(trace->earlier ? trace->earlier : "");
    snprintf(format, sizeof(format), "%s", trace->format);
    snprintf(message, sizeof(message), "%s", trace->message);
    char content[TL_CONTENT_BYTES];
    snprintf(content, sizeof(content), "%s", trace->content);
    struct tl_digest digest;
    tl_trace_digest_locked(trace, &digest);
    const struct tl_catalog_trace row = {
        .id = trace->id,
        .rig = trace->rig,
        .insns = digest.insns,
        .stored_bytes = digest.stored_bytes,
        .format = format,
        .setup = setup,
        .earlier = earlier,
        .message = message,
        .state = trace->state,
        .complete = trace->complete,
        .created_ns = trace->created_ns,
        .updated_ns = trace->updated_ns,
        .raw_bytes = trace->raw_bytes,
        .decoded_bytes = atomic_load(&trace->serving->decoded),
        .generation = trace->serving->number,
        .wanted = trace->wanted,
        .raw_removed = trace->raw_removed,
        .decoded_removed = trace->decoded_removed,
        .content = content,
    };
    pthread_mutex_unlock(&trace->lock);
    const int r = setup && earlier
                      ? trace->lake->catalog->ops->update_trace(trace->lake->catalog, &row, fail)
                      : tl_fail_set(fail, TL_NOMEM, "no memory");
    free(setup);
    free(earlier);
    pthread_mutex_lock(&trace->lock);
    *again = trace->saves != number;
    if (r >= 0)
        trace->counted = digest;
    pthread_mutex_unlock(&trace->lock);
    return r;
}

int tl_trace_save_row(struct tl_trace *trace, struct tl_fail *fail)
{
    bool again = true;
    int r = TL_OK;
    /* With two concurrent saves the older copy may be written last: repeat. */
    while (again && r >= 0)
        r = save_once(trace, &again, fail);
    return r;
}

int tl_trace_save_quietly(struct tl_trace *trace, struct tl_fail *fail)
{
    /* Until both are written, which may take long, the copy is not what it should be. */
    pthread_mutex_lock(&trace->lock);
    trace->mirror_stale = trace->mirror_stale || tl_trace_mine_locked(trace);
    pthread_mutex_unlock(&trace->lock);
    const int r = tl_trace_save_row(trace, fail);
    if (r >= 0)
        tl_trace_mirror(trace);
    return r;
}

void tl_trace_changed(struct tl_trace *trace)
{
    pthread_mutex_lock(&trace->lock);
    trace->revision++;
    trace->updated_ns = tl_lake_now(trace->lake);
    pthread_mutex_unlock(&trace->lock);
    tl_lake_notify(trace->lake);
}

/* ---- the decode job ------------------------------------------------------------------------- */

void tl_trace_retire(struct tl_trace *trace, struct tl_gen *gen)
{
    struct tl_catalog *const catalog = trace->lake->catalog;
    if (catalog->ops->drop_shards(catalog, trace->id, gen->number, UINT64_MAX, 0, NULL) < 0)
        tl_housekeeper_wake(trace->lake);
    atomic_store(&gen->obsolete, true);
}

/* ---- rows ----------------------------------------------------------------------------------- */

uint64_t tl_lake_revision(struct tl_lake *lake)
{
    return atomic_load(&lake->revision);
}

bool tl_trace_mine_locked(const struct tl_trace *trace)
{
    return !trace->lake->shared || trace->lease;
}

bool tl_repack_due_locked(const struct tl_trace *trace)
{
    if (!tl_trace_mine_locked(trace) || trace->deleted || trace->raw_removed ||
        trace->raw_bytes <= trace->repacked)
        return false;
    return trace->complete ||
           trace->raw_bytes - trace->repacked > trace->lake->segment_bytes + TL_SPOOL_BLOCK;
}

static bool has_label(struct tl_trace *trace, const char *line)
{
    pthread_mutex_lock(&trace->lock);
    const bool has = tl_label_is(trace->labels, line);
    pthread_mutex_unlock(&trace->lock);
    return has;
}

bool tl_trace_is_virtual(struct tl_trace *trace)
{
    return has_label(trace, TL_LABEL_SHARDS "=virtual");
}

uint64_t tl_trace_index_lag(struct tl_trace *trace)
{
    const struct tl_lake_options *const o = &trace->lake->options;
    return has_label(trace, TL_LABEL_INDEX "=behind") ? o->outline_bytes
           : has_label(trace, TL_LABEL_INDEX "=auto") ? o->lag_bytes
                                                      : UINT64_MAX;
}
