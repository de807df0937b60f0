/* SPDX-License-Identifier: MIT */
/*
 * Adds up the lake's metrics from the catalog's totals and the traces in the table. Traces in the
 * table replace what the catalog counts for them, so that a scrape does not read all rows.
 */
#include "base/prometheus.h"
#include "lake/heap.h"
#include "lake/lakeint.h"

#include <stdlib.h>

/* Totals over all traces: traces that are not in the table as recorded in the catalog. */
struct totals {
    int64_t states[4], raw, stored, insns;
    uint64_t lag, held, n;
    /* Of traces whose index is behind their outline; the longest time since it was not. */
    uint64_t behind, behind_bytes, behind_insns;
    int64_t behind_ns;
};

/* Positions of all streams, stored or not. */
static uint64_t positions_of(struct tl_gen *gen)
{
    struct tl_lane *lane;
    uint64_t all = 0;
    for (size_t i = 0; (lane = tl_gen_lane_at(gen, i)); i++) {
        struct tl_build_totals totals = {0};
        pthread_mutex_lock(&lane->lock);
        uint64_t end = tl_lane_sealed_locked(lane);
        if (lane->n_pending > 0) {
            const struct tl_shard_row *const last = &lane->pending[lane->n_pending - 1]->index.row;
            end = last->first + last->n;
        }
        if (lane->build)
            tl_build_totals(lane->build, &totals);
        pthread_mutex_unlock(&lane->lock);
        if (!tl_stream_is_derived(lane->name))
            all += totals.position > end ? totals.position : end;
    }
    return all;
}

/* What a trace has decoded ahead of its index. Returns the raw byte up to which it is decoded.
 * Called with its lock held. */
static uint64_t add_outline(const struct tl_trace *t, uint64_t insns, struct totals *out)
{
    const uint64_t indexed = atomic_load(&t->serving->decoded);
    const uint64_t decoded = t->outline ? atomic_load(&t->outline->decoded) : 0;
    if (decoded <= indexed)
        return indexed;
    const uint64_t outlined = positions_of(t->outline);
    const int64_t since = tl_monotonic_ns() - t->behind_ns;
    out->behind++;
    out->behind_bytes += decoded - indexed;
    out->behind_insns += outlined > insns ? outlined - insns : 0;
    out->behind_ns = since > out->behind_ns ? since : out->behind_ns;
    return decoded;
}

static void add_resident(struct tl_trace *t, struct totals *out)
{
    const struct tl_digest *const counted = &t->counted;
    struct tl_digest now;
    uint64_t insns = 0, stored = 0;
    pthread_mutex_lock(&t->lock);
    tl_trace_digest_locked(t, &now);
    if (now.state < TL_TRACE_SEALED) { /* as far as decoding has progressed */
        now.raw_bytes = t->raw_removed ? 0 : t->raw_bytes;
        tl_gen_totals(t->serving, &insns, &stored);
        now.insns = insns;
        now.stored_bytes = stored;
        const uint64_t decoded = add_outline(t, insns, out);
        out->lag += t->raw_bytes > decoded ? t->raw_bytes - decoded : 0;
    }
    out->states[now.state]++;
    out->states[counted->state]--;
    out->raw += (int64_t)(now.raw_bytes - counted->raw_bytes);
    out->stored += (int64_t)(now.stored_bytes - counted->stored_bytes);
    out->insns += (int64_t)(now.insns - counted->insns);
    out->held += t->lease != NULL;
    pthread_mutex_unlock(&t->lock);
}

static int add_all(struct tl_lake *lake, struct totals *out)
{
    struct tl_catalog_totals counted;
    struct tl_trace **traces;
    size_t n;
    int r = lake->catalog->ops->totals(lake->catalog, &counted, NULL);
    *out = (struct totals){.raw = (int64_t)counted.raw_bytes,
                           .stored = (int64_t)counted.stored_bytes,
                           .insns = (int64_t)counted.insns};
    for (size_t i = 0; i < 4; i++)
        out->states[i] = (int64_t)counted.states[i];
    const int all = tl_lake_all_resident(lake, &traces, &n);
    for (size_t i = 0; i < n; i++) {
        add_resident(traces[i], out);
        tl_trace_put(traces[i]);
    }
    free(traces);
    out->n = n;
    return r < 0 ? r : all;
}

struct image_totals {
    uint64_t n, bytes;
};

static int add_image(void *context, const struct tl_catalog_image *image)
{
    struct image_totals *const out = context;
    out->n++;
    out->bytes += image->size;
    return TL_OK;
}

/* The catalog's totals may be slightly older than the table. */
static uint64_t at_least_0(int64_t n)
{
    return n > 0 ? (uint64_t)n : 0;
}

int tl_lake_metrics(struct tl_lake *lake, struct tl_buf *out)
{
    struct tl_spool_counters spool;
    struct totals all;
    struct image_totals images = {0};
    uint64_t queued, turns[2];
    const uint64_t left = lake->backend->ops->free_bytes(lake->backend);
    tl_spool_counters(lake->spool, &spool);
    int r = add_all(lake, &all);
    if (r < 0)
        return r;
    /* With a damaged row of one: those before it. */
    (void)!lake->catalog->ops->images(lake->catalog, add_image, &images, NULL);
    pthread_mutex_lock(&lake->lock);
    queued = lake->queue.n_waiting;
    memcpy(turns, lake->queue.given, sizeof turns);
    pthread_mutex_unlock(&lake->lock);
    const struct tl_heap_use heap = tl_heap_use();
    struct tl_seats_use seats;
    tl_seats_use(&lake->sql_seats, &seats);
    const struct tl_metric metrics[] = {
        {"memory_in_use_bytes", "Memory allocated.", heap.in_use},
        {"memory_resident_bytes", "Anonymous memory of the process.", heap.resident},
        {"ingest_bytes_total", "Raw bytes made durable.", spool.bytes},
        {"spool_commits_total", "Group commits.", spool.commits},
        {"spool_syncs_total", "Segments synced.", spool.syncs},
        {"spool_failures_total", "Writes that the disk refused.", spool.failures},
        {"decoded_bytes_total", "Raw bytes decoded, those decoded again too.",
         atomic_load(&lake->bytes_decoded)},
        {"checkpoints_total", "Checkpoints of decoding stored.", atomic_load(&lake->checkpoints)},
        {"resumes_total", "Times that decoding went on from a checkpoint.",
         atomic_load(&lake->resumes)},
        {"items_decoded_total", "Flow items decoded.", atomic_load(&lake->items_decoded)},
        {"shards_sealed_total", "Shards stored.", atomic_load(&lake->shards_sealed)},
        {"shard_bytes_total", "Bytes of shards stored.", atomic_load(&lake->bytes_sealed)},
        {"seal_failures_total", "Attempts to store shards that failed.",
         atomic_load(&lake->seal_failures)},
        {"ranges_total", "Ranges opened.", atomic_load(&lake->ranges_served)},
        {"tiles_total", "Tiles made.", atomic_load(&lake->tiles_served)},
        {"index_cache_hits_total", "Shard indexes found in memory.",
         atomic_load(&lake->cache_hits)},
        {"index_cache_misses_total", "Shard indexes read.", atomic_load(&lake->cache_misses)},
        {"ingest_refused_total", "Appends and captures refused for want of space.",
         atomic_load(&lake->ingest_refused)},
        {"ingest_stopped", "1 while there is too little space to take more trace.",
         left < atomic_load(&lake->min_free)},
        {"decode_waits_total", "Times that decoding waited for space.",
         atomic_load(&lake->decode_waits)},
        {"retention_removals_total", "Removals by retention.", atomic_load(&lake->retained_out)},
        {"pushes_open", "Captures that may grow: pushes, raw and device connections.",
         spool.captures},
        {"spool_pending_bytes", "Received raw bytes that wait for the disk.", spool.pending},
        {"decode_queue", "Traces that wait for a thread to decode more of them.", queued},
        {"decode_turns_live_total", "Turns that captures being pushed had to be decoded.",
         turns[true]},
        {"decode_turns_other_total", "Turns that complete captures had.", turns[false]},
        {"sql_large", "Questions in SQL that have memory to sort and group much.", seats.taken},
        {"sql_waiting", "Questions in SQL that wait for that.", seats.waiting},
        {"sql_refused_total", "Questions in SQL that waited for it in vain.", seats.refused},
        {"program_bytes", "Memory of all loaded programs: images and symbols.",
         tl_programs_bytes(lake)},
        {"images", "Images stored.", images.n},
        {"image_bytes", "Bytes of images stored.", images.bytes},
        {"images_unused", "Images that no trace refers to.", atomic_load(&lake->images_unused)},
        {"image_bytes_unused", "Bytes of images that no trace refers to.",
         atomic_load(&lake->image_bytes_unused)},
        {"decode_lag_bytes", "Durable raw bytes that are not decoded yet.", all.lag},
        {"index_behind", "Traces whose index is made behind their decoding.", all.behind},
        {"index_lag_bytes", "Raw bytes of these that are decoded, but not indexed yet.",
         all.behind_bytes},
        {"index_lag_instructions", "Positions of them that are not indexed yet.", all.behind_insns},
        {"index_lag_seconds", "Longest time since an index that is behind was not.",
         (uint64_t)(all.behind_ns / TL_NS_PER_S)},
        {"raw_bytes", "Raw bytes kept.", at_least_0(all.raw)},
        {"stored_bytes", "Bytes of shards kept.", at_least_0(all.stored)},
        {"instructions", "Positions in all streams.", at_least_0(all.insns)},
        {"store_usable", "1 while the store answers.", tl_lake_usable(lake, NULL) >= 0},
        {"store_writable", "1 while the store takes changes.", tl_lake_writable(lake, NULL) >= 0},
        {"traces_in_memory", "Traces whose state is in memory.", all.n},
        {"traces_read_total", "Traces read from the catalog.", atomic_load(&lake->traces_read)},
        {"start_traces", "Traces that were read before the server took calls.",
         atomic_load(&lake->begun_with)},
        {"leases_held", "Traces that this server works on, of a store that several share.",
         all.held},
        {"leases_taken_total", "Leases of traces taken.", atomic_load(&lake->leases_taken)},
        {"leases_lost_total", "Leases of traces that ran out and went to another server.",
         atomic_load(&lake->leases_lost)},
        {"free_bytes", "Bytes free for the store.", left},
        {"min_free_bytes", "Free bytes below which no more trace is taken.",
         atomic_load(&lake->min_free)},
    };
    r = tl_metrics_add(out, metrics, sizeof(metrics) / sizeof(*metrics));
    if (r >= 0)
        r = tl_metric_begin(out, "traces", "Traces by state.");
    for (unsigned i = 0; i <= TL_TRACE_FAILED && r >= 0; i++)
        r = tl_metric_sample(out, "traces", at_least_0(all.states[i]), "state=\"%s\"",
                             tl_trace_state_name(i));
    if (r >= 0)
        r = tl_histogram_begin(out, "spool_commit_seconds",
                               "Writing and syncing what pushes had brought.");
    return r < 0 ? r
                 : tl_histogram_series(out, "spool_commit_seconds", tl_spool_commits(lake->spool),
                                       NULL, NULL);
}
