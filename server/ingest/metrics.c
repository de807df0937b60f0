/* SPDX-License-Identifier: MIT */
#include "ingest/heap.h"
#include "ingest/lakeint.h"

struct metric {
    const char *name, *help, *type;
    uint64_t value;
};

int tl_lake_metrics(struct tl_lake *lake, struct tl_buf *out)
{
    struct tl_spool_counters spool;
    struct tl_trace_list list;
    uint64_t states[4] = {0}, insns = 0, raw = 0, stored = 0;
    const uint64_t left = lake->backend->ops->free_bytes(lake->backend);
    tl_spool_counters(lake->spool, &spool);
    int r = tl_lake_traces(lake, &list);
    if (r < 0)
        return r;
    for (size_t i = 0; i < list.n; i++) {
        states[list.rows[i].state & 3]++;
        raw += list.rows[i].raw_removed ? 0 : list.rows[i].raw_bytes;
        for (size_t k = 0; k < list.rows[i].n_streams; k++) {
            insns += list.rows[i].streams[k].insns;
            stored += list.rows[i].streams[k].stored_bytes;
        }
    }
    tl_trace_list_free(&list);
    const struct tl_heap_use heap = tl_heap_use();
    const struct metric metrics[] = {
        {"tracelake_memory_in_use_bytes", "Memory allocated.", "gauge", heap.in_use},
        {"tracelake_memory_resident_bytes", "Anonymous memory of the process.", "gauge",
         heap.resident},
        {"tracelake_ingest_bytes_total", "Raw bytes made durable.", "counter", spool.bytes},
        {"tracelake_spool_commits_total", "Group commits.", "counter", spool.commits},
        {"tracelake_spool_syncs_total", "Segments synced.", "counter", spool.syncs},
        {"tracelake_spool_failures_total", "Writes that the disk refused.", "counter",
         spool.failures},
        {"tracelake_decoded_bytes_total", "Raw bytes decoded, those decoded again too.", "counter",
         atomic_load(&lake->bytes_decoded)},
        {"tracelake_checkpoints_total", "Checkpoints of decoding stored.", "counter",
         atomic_load(&lake->checkpoints)},
        {"tracelake_resumes_total", "Times that decoding went on from a checkpoint.", "counter",
         atomic_load(&lake->resumes)},
        {"tracelake_items_decoded_total", "Flow items decoded.", "counter",
         atomic_load(&lake->items_decoded)},
        {"tracelake_shards_sealed_total", "Shards stored.", "counter",
         atomic_load(&lake->shards_sealed)},
        {"tracelake_shard_bytes_total", "Bytes of shards stored.", "counter",
         atomic_load(&lake->bytes_sealed)},
        {"tracelake_seal_failures_total", "Attempts to store shards that failed.", "counter",
         atomic_load(&lake->seal_failures)},
        {"tracelake_ranges_total", "Ranges opened.", "counter", atomic_load(&lake->ranges_served)},
        {"tracelake_tiles_total", "Tiles made.", "counter", atomic_load(&lake->tiles_served)},
        {"tracelake_index_cache_hits_total", "Shard indexes found in memory.", "counter",
         atomic_load(&lake->cache_hits)},
        {"tracelake_index_cache_misses_total", "Shard indexes read.", "counter",
         atomic_load(&lake->cache_misses)},
        {"tracelake_ingest_refused_total", "Appends and captures refused for want of space.",
         "counter", atomic_load(&lake->ingest_refused)},
        {"tracelake_ingest_stopped", "1 while there is too little space to take more trace.",
         "gauge", left < lake->options.min_free_bytes},
        {"tracelake_decode_waits_total", "Times that decoding waited for space.", "counter",
         atomic_load(&lake->decode_waits)},
        {"tracelake_retention_removals_total", "Removals by retention.", "counter",
         atomic_load(&lake->retained_out)},
        {"tracelake_raw_bytes", "Raw bytes kept.", "gauge", raw},
        {"tracelake_stored_bytes", "Bytes of shards kept.", "gauge", stored},
        {"tracelake_instructions", "Positions in all streams.", "gauge", insns},
        {"tracelake_free_bytes", "Bytes free for the store.", "gauge", left},
        {"tracelake_min_free_bytes", "Free bytes below which no more trace is taken.", "gauge",
         lake->options.min_free_bytes},
    };
    for (size_t i = 0; i < sizeof(metrics) / sizeof(*metrics) && r >= 0; i++)
        r = tl_buf_printf(out, "# HELP %s %s\n# TYPE %s %s\n%s %llu\n", metrics[i].name,
                          metrics[i].help, metrics[i].name, metrics[i].type, metrics[i].name,
                          (unsigned long long)metrics[i].value);
    static const char *const names[] = {"live", "decoding", "sealed", "failed"};
    if (r >= 0)
        r = tl_buf_printf(out, "# HELP tracelake_traces Traces by state.\n"
                               "# TYPE tracelake_traces gauge\n");
    for (size_t i = 0; i < 4 && r >= 0; i++)
        r = tl_buf_printf(out, "tracelake_traces{state=\"%s\"} %llu\n", names[i],
                          (unsigned long long)states[i]);
    return r;
}
