/* SPDX-License-Identifier: MIT */
#include "base/prometheus.h"
#include "lake/heap.h"
#include "lake/lakeint.h"

int tl_lake_metrics(struct tl_lake *lake, struct tl_buf *out)
{
    struct tl_spool_counters spool;
    struct tl_trace_list list;
    uint64_t states[4] = {0}, insns = 0, raw = 0, stored = 0, lag = 0, queued = 0, held = 0;
    const uint64_t left = lake->backend->ops->free_bytes(lake->backend);
    tl_spool_counters(lake->spool, &spool);
    int r = tl_lake_traces(lake, &list);
    if (r < 0)
        return r;
    for (size_t i = 0; i < list.n; i++) {
        states[list.rows[i].state & 3]++;
        raw += list.rows[i].raw_removed ? 0 : list.rows[i].raw_bytes;
        if (list.rows[i].state == TL_TRACE_LIVE || list.rows[i].state == TL_TRACE_DECODING)
            lag += list.rows[i].raw_bytes - list.rows[i].decoded_bytes;
        for (size_t k = 0; k < list.rows[i].n_streams; k++) {
            if (!tl_stream_is_derived(list.rows[i].streams[k].name))
                insns += list.rows[i].streams[k].insns;
            stored += list.rows[i].streams[k].stored_bytes;
        }
    }
    tl_trace_list_free(&list);
    pthread_mutex_lock(&lake->lock);
    for (const struct tl_trace *t = lake->jobs; t; t = t->next_job)
        queued++;
    for (struct tl_trace *t = lake->traces; t && lake->shared; t = t->next) {
        pthread_mutex_lock(&t->lock);
        held += t->lease != NULL;
        pthread_mutex_unlock(&t->lock);
    }
    pthread_mutex_unlock(&lake->lock);
    const struct tl_heap_use heap = tl_heap_use();
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
        {"decode_lag_bytes", "Durable raw bytes that are not decoded yet.", lag},
        {"raw_bytes", "Raw bytes kept.", raw},
        {"stored_bytes", "Bytes of shards kept.", stored},
        {"instructions", "Positions in all streams.", insns},
        {"store_usable", "1 while the store answers.", tl_lake_usable(lake, NULL) >= 0},
        {"leases_held", "Traces that this server works on, of a store that several share.", held},
        {"leases_taken_total", "Leases of traces taken.", atomic_load(&lake->leases_taken)},
        {"leases_lost_total", "Leases of traces that ran out and went to another server.",
         atomic_load(&lake->leases_lost)},
        {"free_bytes", "Bytes free for the store.", left},
        {"min_free_bytes", "Free bytes below which no more trace is taken.",
         atomic_load(&lake->min_free)},
    };
    static const char *const names[] = {"live", "decoding", "sealed", "failed"};
    r = tl_metrics_add(out, metrics, sizeof(metrics) / sizeof(*metrics));
    if (r >= 0)
        r = tl_metric_begin(out, "traces", "Traces by state.");
    for (size_t i = 0; i < 4 && r >= 0; i++)
        r = tl_metric_sample(out, "traces", states[i], "state=\"%s\"", names[i]);
    if (r >= 0)
        r = tl_histogram_begin(out, "spool_commit_seconds",
                               "Writing and syncing what pushes had brought.");
    return r < 0 ? r
                 : tl_histogram_series(out, "spool_commit_seconds", tl_spool_commits(lake->spool),
                                       NULL, NULL);
}
