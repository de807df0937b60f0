/* SPDX-License-Identifier: MIT */
/*
 * What the spool's calls (spool.c) and its two threads (spool_threads.c) share: the captures being
 * written. Under one lock, except for what belongs to one of the threads.
 */
#ifndef TL_RAW_SPOOL_STATE_H
#define TL_RAW_SPOOL_STATE_H

#include "raw/spool.h"

#include "base/journal.h"
#include "raw/waiting.h"

#include <pthread.h>
#include <stdatomic.h>

enum sync {
    NOT_SYNCING,
    SYNCING, /* for the syncer */
    SYNCED   /* for the writer, to be settled */
};

struct tl_capture {
    struct tl_spool *spool;
    struct tl_capture *next;
    char name[64];
    void (*on_durable)(void *context, uint64_t offset);
    void *context;
    /* Guarded by the spool's lock: */
    struct tl_waiting pending;
    uint64_t end;           /* after the last appended byte */
    uint64_t durable;       /* after the last durable byte */
    bool busy;              /* the writer is processing it, or is in its callback */
    struct tl_fail failure; /* code TL_OK: none */
    bool summed;            /* the sums are known */
    uint32_t sum;           /* up to `durable` */
    enum sync sync;
    struct tl_capture *next_sync; /* in spool->syncing */
    /* Private to the writer, the first one while nothing is pending to the appender: */
    uint64_t rejoined; /* the connection was lost before this byte; 0: never */
    struct tl_waiting writing;
    uint64_t arrival; /* when all of `writing` had arrived: ns since 1970 */
    uint64_t written; /* after the last written byte */
    uint32_t written_sum;
    struct tl_log *log;  /* NULL: the next write opens a new segment. Not changed while syncing */
    uint64_t log_bytes;  /* length of the log */
    uint64_t log_synced; /* how much of it is durable */
    bool grouped;        /* it is in spool->group */
    struct tl_capture *next_grouped;
    int outcome; /* < 0: a write or sync has failed, for this reason */
    struct tl_fail why;
    /* Of the sync in progress: what will be durable, of the capture and of the log. */
    uint64_t sync_to, sync_bytes;
    uint32_t sync_sum;
    /* The syncer's, until `sync` is SYNCED: */
    int sync_outcome;
    struct tl_fail sync_why;
};

/* A capture whose medium failed: what lies after `durable` must not be trusted, even if it can be
 * read back from the page cache. Kept until more of it is durable, or it is removed. */
struct distrusted {
    struct distrusted *next;
    uint64_t durable;
    bool summed;
    uint32_t sum;
    char name[64];
};

struct tl_spool {
    struct tl_backend *backend;
    struct tl_spool_options options;
    atomic_ullong min_free; /* the option, which may change */
    atomic_bool full;       /* as last reported to the journal */
    struct tl_histogram commits;
    struct tl_journal_limit slow;
    pthread_t writer, syncer;
    pthread_mutex_t lock;
    pthread_cond_t work;      /* something is pending or synced, or stop */
    pthread_cond_t sync_work; /* something is to be synced, or stop_syncing */
    pthread_cond_t progress;  /* something was synced, became durable, failed, or is not busy */
    bool stop, stop_syncing;
    struct tl_capture *syncing; /* the group being synced, in the syncer's order */
    struct tl_capture *group;   /* private to the writer: the next group; written, or failed */
    uint64_t group_begin;       /* when its first bytes were taken, and those of the one before */
    uint64_t sync_begin;
    struct tl_capture *captures;
    struct distrusted *distrusted;
    struct tl_spool_counters counters;
};

/* The two threads, whose context is the spool: until `stop`, and until `stop_syncing`. */
void *tl_spool_write_all(void *spool);
void *tl_spool_sync_all(void *spool);

/* The log of a capture, for the writer, or for who opens the capture. */

/* Open that of the segment at capture offset `first`, which contains `*size` bytes. */
TL_MUST_USE int tl_capture_open_log(struct tl_capture *c, uint64_t first, uint64_t *size,
                                    struct tl_fail *fail);
/* Write the head of that segment. */
TL_MUST_USE int tl_capture_write_head(struct tl_capture *c, uint64_t first, struct tl_fail *fail);
void tl_capture_close_log(struct tl_capture *c); /* there need not be one */

/* What the medium has of this capture is as it was written. Lock held. */
void tl_spool_trust_locked(struct tl_spool *spool, const char *name);

#endif
