/* SPDX-License-Identifier: MIT */
/*
 * The lake: everything the server stores and computes, behind one interface that is independent of
 * the network. RPC and HTTP handlers call this; nothing else accesses the store. Here is its life;
 * what it does is in the headers lake_*.h beside this one, by what it is about.
 *
 * Thread-safe throughout ("internally locked"). Calls may block on disk: call them from a worker
 * thread, never from an event loop, except where a comment says otherwise. Verifying, ranges,
 * look-ups, statistics and tiles return TL_CANCELLED soon after the calling thread's work was
 * cancelled (base/cancel.h).
 */
#ifndef TL_LAKE_H
#define TL_LAKE_H

#include "base/buf.h"
#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tl_lake;

struct tl_lake_options {
    const char *dir;           /* data folder, created if absent; used if `store` is NULL */
    const char *store;         /* URL of another store: rados/rados.h; NULL: none */
    uint64_t shard_insns;      /* instructions per shard, 0: 2^20 */
    uint64_t min_free_bytes;   /* reject ingest if less disk space than this is free, 0: 256 MiB */
    unsigned decode_threads;   /* that compute at a time (lake/jobs.c), 0: one per processor */
    uint64_t decode_memory;    /* bytes that all decoding may use, half of it for one trace; 0: half
                                  of the memory that the process may use */
    uint64_t sql_memory;       /* bytes for large questions (lake_sql.h); 0: an eighth of that */
    uint64_t checkpoint_bytes; /* raw bytes between two checkpoints, 0: 64 MiB */
    uint64_t segment_bytes;    /* raw bytes per object, 0: 64 MiB */
    /*
     * New traces get the label shards=virtual: for data decoded while a trace has it, only index,
     * tiles and statistics are stored; instructions are regenerated from the raw bytes when they
     * are read.
     */
    bool virtual_shards;
    /* New traces get the label index=behind, or index=auto: raw bytes are followed first, and
     * indexed behind that (decoding/outline_job.h). */
    bool index_behind, index_auto;
    /* Raw bytes that the index must be behind for that, 0: 256 KiB, and if it is made behind only
     * where it lags, 0: 16 MiB. */
    uint64_t outline_bytes, lag_bytes;
    /* Minimum distance in raw bytes of the marks from which virtual shards are regenerated, 0: 4
     * KiB. */
    uint64_t mark_bytes;
    size_t summary_buckets; /* kept in memory per stream for its tiles; 0: 32768, 10 MiB */
    bool rebuild_catalog;   /* set the catalog aside and rebuild it from the stored objects */
};

/*
 * Tune malloc() for a lake; call once per process, before it creates threads. Limits glibc to two
 * arenas: a lake's threads pass buffers to each other, memory freed in one arena is not reused by
 * another, and with eight arenas per processor the heap would grow for hours. Also keeps the memory
 * of a few shards mapped: returning it at the end of each shard and requesting it again costs 2 %
 * of the time of storing.
 */
void tl_lake_share_heaps(void);
/* Have a crash of this process (SIGSEGV, SIGABRT and the like) noted in the store of the lake that
 * is opened next, before these signals do what they do otherwise: a trace that crashes the server
 * is not decoded again and again. For the program that serves; call once, before opening the lake.
 */
void tl_lake_watch_crashes(void);

TL_MUST_USE int tl_lake_open(struct tl_lake **out, const struct tl_lake_options *options,
                             struct tl_fail *fail);
/* Change `min_free_bytes` (0: the default) from now on. Any thread. */
void tl_lake_set_min_free(struct tl_lake *lake, uint64_t bytes);
/* Stop decoding at a safe point, flush, free. Ingest sessions must be closed first. */
void tl_lake_close(struct tl_lake *lake);

/* Check that the store responds. TL_IO, with the reason. */
TL_MUST_USE int tl_lake_usable(struct tl_lake *lake, struct tl_fail *fail);
/* Check that it takes changes. TL_NOSPACE, TL_IO, TL_DENIED (its lease was lost), with the reason.
 */
TL_MUST_USE int tl_lake_writable(struct tl_lake *lake, struct tl_fail *fail);

/* Revision number that increases with every visible change of a trace. */
uint64_t tl_lake_revision(struct tl_lake *lake);
/*
 * Register for change notifications: `notify(context)` is called from any thread, must not block
 * and must not call back into the lake. Used to wake live followers. Returns a handle for
 * tl_lake_unwatch(), after which notify is not called any more.
 */
TL_MUST_USE int tl_lake_watch(struct tl_lake *lake, void (*notify)(void *context), void *context);
void tl_lake_unwatch(struct tl_lake *lake, int handle);

/* Append all of the lake's metrics as Prometheus text. */
TL_MUST_USE int tl_lake_metrics(struct tl_lake *lake, struct tl_buf *out);

#endif
