/* SPDX-License-Identifier: MIT */
/*
 * A store shared by several servers: the holder of a trace's lease writes it, all others show its
 * state in the catalog.
 *
 *   - pinned: a lease is held while a trace is changed; the trace is read again on acquiring it
 *   - held: a trace that is pushed, decoded or packed keeps its lease
 *   - asked for: the holder releases the lease as soon as the trace is not being pushed there; a
 *     push by the same rig at another server ends one that may hang in a dead connection
 *   - lost: pushes end, decoding is dropped: the next holder continues at the durable bytes
 *
 * The thread of news.c does all of this.
 */
#include "share/share.h"
#include "base/cancel.h"

#include "decoding/decode_job.h"
#include "decoding/run.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define RETRY_NS  INT64_C(100000000) /* between two attempts to acquire a lease */
#define ASK_EVERY 3                  /* every this-many-th attempt also asks the holder for it */
/* Time without changes of a trace before this server tries to take it over, and between two checks
 * whether it is being decoded. Longer than leases usually last, so that a rig whose server is gone
 * gets its trace before a server that only decodes. */
#define ADOPT_NS    INT64_C(3000000000)
#define YIELD_NS    INT64_C(1500000000) /* a trace is left to the server that asked for it */
#define GRACE_NS    INT64_C(60000000000)
#define EPOCH_SHIFT 16 /* numbers of pushes and generations per grant of a lease */

static bool is_mine(struct tl_trace *trace)
{
    pthread_mutex_lock(&trace->lock);
    const bool mine = tl_trace_mine_locked(trace);
    pthread_mutex_unlock(&trace->lock);
    return mine;
}

/* ---- updates from the catalog --------------------------------------------------------------- */

struct adoption {
    struct tl_trace *trace;
    struct tl_fail *fail;
};

/* Update the trace from its row; a generation whose shards may have changed is reloaded. */
static int adopt(void *context, const struct tl_catalog_trace *row)
{
    const struct adoption *const a = context;
    struct tl_trace *const t = a->trace;
    struct tl_gen *gen = NULL;
    const bool edge = tl_edge_continues(t, row);
    pthread_mutex_lock(&t->lock);
    const bool sealed = t->serving->number == row->generation && t->state == TL_TRACE_SEALED &&
                        row->state == TL_TRACE_SEALED;
    pthread_mutex_unlock(&t->lock);
    const bool same = sealed || edge;
    const char *const setup =
        row->wanted != row->generation && *row->earlier ? row->earlier : row->setup;
    int r = same ? TL_OK : tl_gen_new(&gen, t->lake, t->id, row->generation, setup, a->fail);
    if (r >= 0 && !same)
        r = tl_gen_load(gen, a->fail);
    if (r >= 0 && !same)
        atomic_store(&gen->decoded, row->decoded_bytes);
    if (r >= 0)
        r = tl_trace_take_row(t, row, a->fail);
    if (r >= 0 && gen) {
        pthread_mutex_lock(&t->lock);
        struct tl_gen *const before = t->serving;
        t->serving = gen;
        gen = before;
        pthread_mutex_unlock(&t->lock);
    }
    tl_gen_put(gen);
    if (r >= 0)
        tl_edge_wake(t);
    return r;
}

static int read_anew(struct tl_trace *trace, struct tl_fail *fail)
{
    struct adoption a = {trace, fail};
    return trace->lake->catalog->ops->find(trace->lake->catalog, trace->id, adopt, &a, fail);
}

/* Another server has deleted it. */
static void vanish(struct tl_trace *trace)
{
    pthread_mutex_lock(&trace->lock);
    const bool gone = trace->deleted;
    trace->deleted = true;
    pthread_mutex_unlock(&trace->lock);
    if (!gone)
        tl_lake_unlink(trace->lake, trace);
}

static int no_row(void *context, const struct tl_catalog_trace *row)
{
    (void)context;
    (void)row;
    return TL_OK;
}

struct tl_trace *tl_lake_find_now(struct tl_lake *lake, const char *id)
{
    struct tl_trace *const trace = tl_lake_find_content(lake, id);
    bool gone = false;
    if (!trace || !lake->shared || tl_lake_usable(lake, NULL) < 0)
        return trace;
    pthread_mutex_lock(&trace->owning);
    if (!is_mine(trace) &&
        lake->catalog->ops->find(lake->catalog, trace->id, no_row, NULL, NULL) == TL_NOTFOUND) {
        vanish(trace);
        gone = true;
    }
    pthread_mutex_unlock(&trace->owning);
    if (!gone)
        return trace;
    tl_trace_put(trace);
    return NULL;
}

/* ---- acquiring a trace ---------------------------------------------------------------------- */

static int denied(int r, const char *id, struct tl_fail *fail)
{
    return r == TL_DENIED
               ? tl_fail_set(fail, TL_AGAIN, "another server works on trace %.64s; try again", id)
               : r;
}

/* The lease is new: continue where its last holder stopped. */
static int go_on(struct tl_trace *trace, uint64_t epoch, struct tl_fail *fail)
{
    /* The local end after failed writes is obsolete: others have appended. */
    tl_spool_forget(trace->lake->spool, trace->id);
    int r = read_anew(trace, fail);
    if (r == TL_NOTFOUND)
        vanish(trace);
    if (r < 0)
        return r;
    pthread_mutex_lock(&trace->lock);
    if (trace->epoch < epoch << EPOCH_SHIFT)
        trace->epoch = epoch << EPOCH_SHIFT;
    const bool settled =
        tl_lake_age(trace->lake, trace->updated_ns, tl_lake_now(trace->lake)) > GRACE_NS;
    pthread_mutex_unlock(&trace->lock);
    if (settled)
        r = tl_trace_remove_orphans(trace, fail);
    if (r >= 0)
        r = tl_trace_revive(trace, fail);
    if (r < 0)
        return r;
    tl_housekeeper_wake(trace->lake); /* compute its hash */
    tl_repack_wake(trace->lake);
    return TL_OK;
}

static void give_back(struct tl_trace *trace, bool lost);

/* It has just been released for another server, which may not have acquired it yet. */
static bool is_promised_locked(const struct tl_trace *trace, uint64_t ask)
{
    return ask < trace->yielded && tl_monotonic_ns() - trace->tried_ns < YIELD_NS;
}

static int pin_once(struct tl_trace *trace, uint64_t ask, struct tl_fail *fail)
{
    struct tl_backend *const backend = trace->lake->backend;
    struct tl_lease *lease;
    uint64_t asked;
    pthread_mutex_lock(&trace->lock);
    const bool held = trace->lease && backend->ops->lease_state(trace->lease, &asked) != TL_DENIED;
    const bool lost = trace->lease && !held, deleted = trace->deleted;
    const bool promised = !held && !lost && is_promised_locked(trace, ask);
    trace->pins += held;
    pthread_mutex_unlock(&trace->lock);
    if (held)
        return TL_OK;
    if (lost)
        give_back(trace, true);
    if (deleted)
        return tl_fail_set(fail, TL_NOTFOUND, "trace %s has been deleted", trace->id);
    if (promised)
        return denied(TL_DENIED, trace->id, fail);
    int r = backend->ops->lease(backend, trace->id, &lease, fail);
    if (r < 0)
        return denied(r, trace->id, fail);
    pthread_mutex_lock(&trace->lock);
    trace->lease = lease;
    trace->pins++;
    pthread_mutex_unlock(&trace->lock);
    atomic_fetch_add(&trace->lake->leases_taken, 1);
    r = go_on(trace, lease->epoch, fail);
    if (r < 0) {
        pthread_mutex_lock(&trace->lock);
        trace->lease = NULL;
        trace->pins--;
        pthread_mutex_unlock(&trace->lock);
        backend->ops->lease_release(lease);
    }
    return r;
}

int tl_trace_pin(struct tl_trace *trace, uint64_t ask, struct tl_fail *fail)
{
    struct tl_backend *const backend = trace->lake->backend;
    if (!trace->lake->shared)
        return TL_OK;
    const int64_t until = tl_monotonic_ns() + (ask == TL_PIN_TRY ? 0 : TL_PIN_WAIT_NS);
    /* If the holder is gone, another server may acquire it in between, without having seen the
     * earlier request. */
    for (unsigned tries = 0;; tries++) {
        pthread_mutex_lock(&trace->owning);
        const int r = pin_once(trace, ask, fail);
        pthread_mutex_unlock(&trace->owning);
        if (r != TL_AGAIN || tl_monotonic_ns() >= until || tl_cancel_check() < 0)
            return r;
        if (tries % ASK_EVERY == 0 && backend->ops->lease_ask(backend, trace->id, ask, fail) < 0)
            return TL_IO;
        usleep(RETRY_NS / 1000);
    }
}

void tl_trace_unpin(struct tl_trace *trace)
{
    if (!trace->lake->shared)
        return;
    pthread_mutex_lock(&trace->lock);
    trace->pins--;
    pthread_mutex_unlock(&trace->lock);
}

int tl_lake_claim_name(struct tl_lake *lake, const char *id, struct tl_lease **lease,
                       uint64_t *generation, struct tl_fail *fail)
{
    struct tl_backend *const backend = lake->backend;
    static const char *const kinds[] = {"r", "t", "c", "m"};
    int r = denied(backend->ops->lease(backend, id, lease, fail), id, fail);
    if (r < 0)
        return r;
    struct tl_trace *const there = tl_lake_find_trace(lake, id);
    r = there ? tl_fail_set(fail, TL_EXISTS, "trace %s exists", id) : tl_no_trace(lake, fail, id);
    tl_trace_put(there);
    if (r == TL_NOTFOUND)
        r = TL_OK; /* confirmed by the catalog: any other result changes nothing */
    /* Leftovers of an older trace of this name, whose server ended before it had removed
     * everything. */
    for (size_t i = 0; r >= 0 && i < sizeof kinds / sizeof *kinds; i++) {
        char prefix[80];
        snprintf(prefix, sizeof prefix, "%s/%s", kinds[i], id);
        r = tl_backend_remove_all(backend, prefix, fail);
    }
    if (r < 0) {
        backend->ops->lease_release(*lease);
        *lease = NULL;
        return r;
    }
    *generation = (*lease)->epoch << EPOCH_SHIFT;
    return TL_OK;
}

/* ---- releasing it --------------------------------------------------------------------------- */

/* Called with trace->owning held. If the lease was lost nothing is written any more. */
static void give_back(struct tl_trace *trace, bool lost)
{
    struct tl_lake *const lake = trace->lake;
    if (lost)
        atomic_fetch_add(&lake->leases_lost, 1);
    trace->lake->rooms->evict(trace);
    tl_lake_end_job(lake, trace);
    pthread_mutex_lock(&trace->lock);
    struct tl_gen *const making = trace->making, *const outline = trace->outline;
    struct tl_lease *const lease = trace->lease;
    trace->making = trace->outline = NULL;
    pthread_mutex_unlock(&trace->lock);
    if (outline)
        tl_decode_job_stop(outline->job);
    tl_gen_put(outline);
    if (making && !lost)
        tl_decode_job_leave(making->job);
    if (!lost)
        (void)!tl_trace_save_quietly(trace, NULL); /* fails if it was lost just now */
    const int r = read_anew(trace, NULL);
    pthread_mutex_lock(&trace->opening); /* wait for a segment being replaced by its packed form */
    pthread_mutex_lock(&trace->lock);
    trace->lease = NULL;
    trace->tried_ns = tl_monotonic_ns();
    if (r < 0 && making && making == trace->serving)
        tl_decode_job_stop(making->job); /* it is shown with its progress so far */
    pthread_mutex_unlock(&trace->lock);
    pthread_mutex_unlock(&trace->opening);
    tl_gen_put(making);
    if (r == TL_NOTFOUND)
        vanish(trace);
    lake->backend->ops->lease_release(lease);
    tl_trace_changed(trace);
}

/* Is there no more work that needs the lease? */
static bool is_idle_locked(const struct tl_trace *trace)
{
    return tl_trace_phase_locked(trace) == TL_PHASE_AT_REST && !tl_trace_owed_locked(trace);
}

void tl_share_report_progress(struct tl_trace *trace)
{
    pthread_mutex_lock(&trace->lock);
    const uint64_t reported = trace->raw_bytes + atomic_load(&trace->serving->decoded);
    const bool reports = trace->lease && trace->session && reported != trace->reported;
    trace->reported = reported;
    pthread_mutex_unlock(&trace->lock);
    if (reports && tl_trace_save_row(trace, NULL) < 0)
        return; /* it is updated with the next bytes */
}

/* Must the lease be released? `*lost`: it was revoked. */
static bool is_due_locked(struct tl_trace *trace, bool *lost)
{
    uint64_t asked;
    *lost = false;
    if (!trace->lease || trace->deleted)
        return false;
    *lost = trace->lake->backend->ops->lease_state(trace->lease, &asked) == TL_DENIED;
    if (*lost)
        return true;
    const bool yields = asked > 0 && (!trace->session || asked >= trace->epoch);
    trace->yielded = yields ? asked : 0;
    return trace->pins == 0 && (yields || is_idle_locked(trace));
}

void tl_share_look_after(struct tl_trace *trace)
{
    bool lost;
    if (pthread_mutex_trylock(&trace->owning) != 0)
        return; /* it is being acquired */
    pthread_mutex_lock(&trace->lock);
    const bool due = is_due_locked(trace, &lost);
    const bool keeps = trace->lease && !due;
    pthread_mutex_unlock(&trace->lock);
    if (due)
        give_back(trace, lost);
    pthread_mutex_unlock(&trace->owning);
    if (keeps)
        tl_share_report_progress(trace);
}

bool tl_share_adopt(struct tl_trace *trace, int64_t now)
{
    pthread_mutex_lock(&trace->lock);
    const bool adopts = !trace->lease && !trace->deleted && !trace->raw_removed &&
                        (trace->state == TL_TRACE_LIVE || trace->state == TL_TRACE_DECODING ||
                         (tl_trace_owed_locked(trace) & TL_OWED_HASH)) &&
                        now - trace->tried_ns >= ADOPT_NS;
    if (adopts) {
        trace->tried_ns = now;
        trace->yielded = 0; /* the server that asked for it has had its time, and may be gone */
    }
    pthread_mutex_unlock(&trace->lock);
    if (!adopts)
        return false;
    if (tl_trace_pin(trace, TL_PIN_TRY, NULL) >= 0)
        tl_trace_unpin(trace);
    return true;
}

/* ---- changes by other servers ---------------------------------------------------------------- */

/* Labels and notes of our traces can be changed by other servers. */
static void take_labels(struct tl_trace *trace, const struct tl_catalog_trace *row)
{
    char *labels = strdup(row->labels);
    bool stale = false;
    pthread_mutex_lock(&trace->lock);
    if (labels && (strcmp(labels, trace->labels) != 0 || row->notes != trace->notes)) {
        char *const before = trace->labels;
        trace->labels = labels;
        trace->notes = row->notes;
        trace->mirror_stale = stale = true;
        trace->revision++;
        labels = before;
    }
    pthread_mutex_unlock(&trace->lock);
    free(labels);
    if (stale)
        tl_housekeeper_wake(trace->lake);
}

int tl_share_take_row(struct tl_trace *trace, const struct tl_catalog_trace *row)
{
    struct adoption a = {trace, NULL};
    int r = TL_OK;
    pthread_mutex_lock(&trace->owning);
    const bool mine = is_mine(trace);
    if (mine && row)
        take_labels(trace, row);
    else if (!mine && row)
        r = adopt(&a, row);
    else if (!mine)
        vanish(trace);
    pthread_mutex_unlock(&trace->owning);
    if (row && !mine) {
        pthread_mutex_lock(&trace->lock);
        trace->tried_ns = tl_monotonic_ns(); /* someone else holds it; see tl_share_adopt() */
        pthread_mutex_unlock(&trace->lock);
        tl_trace_changed(trace);
    }
    return r == TL_NOMEM || r == TL_IO ? r : TL_OK; /* an unreadable setup stays unreadable */
}
