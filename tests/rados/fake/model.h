/* SPDX-License-Identifier: MIT */
/*
 * The guarantees of a pool of a Ceph cluster, in memory: objects with bytes and an ordered map
 * (omap), which operations with several steps change completely or not at all, and expiring locks.
 * The results are those of an OSD of version 16: a comparison sees the object's state before the
 * operation, a missing key compares as an empty value, a missing object as ENOENT.
 *
 * Internally locked: operations are atomic.
 */
#ifndef TL_TESTS_RADOS_MODEL_H
#define TL_TESTS_RADOS_MODEL_H

#include "base/buf.h"

#include <sys/types.h>

enum model_kind {
    MODEL_COMPARE, /* the value of `key` with `value`: LIBRADOS_CMPXATTR_OP_… */
    MODEL_CREATE,
    MODEL_WRITE, /* `value` at `offset` */
    MODEL_REMOVE,
    MODEL_SET,
    MODEL_UNSET,
    MODEL_UNSET_RANGE /* keys >= `key` and < `value` */
};

struct model_step {
    enum model_kind kind;
    int comparison;
    bool exclusive; /* fail if it already exists */
    uint64_t offset;
    struct tl_buf key, value;
};

/* Execute the steps of an operation. Returns 0, or a negative errno as librados does. */
int model_write(const char *oid, const struct model_step *steps, size_t n);

/* Call `each` for the keys and values of an object that follow `after` and begin with `prefix`, at
 * most `most`. Returns 1 if there are more, 0, or a negative errno. */
int model_keys(const char *oid, const char *after, const char *prefix, uint64_t most,
               void (*each)(void *context, const struct tl_buf *key, const struct tl_buf *value),
               void *context);
/* Read up to `n` bytes from `offset` into `out`. Returns the number, or a negative errno. */
ssize_t model_read(const char *oid, uint64_t offset, size_t n, char *out);
/* Get a version that changes with every change of the object. Returns a negative errno if it does
 * not exist. */
int model_version(const char *oid, uint64_t *version);

/* Exclusive lock of an object by (client, cookie), as with cls_lock; `duration_ms` 0: unlimited. */
int model_lock(const char *oid, uint64_t client, const char *cookie, int64_t duration_ms,
               unsigned flags);
int model_unlock(const char *oid, uint64_t client, const char *cookie);

/* Watch an object. Returns the watch, > 0, or a negative errno. */
typedef void model_told(void *context, uint64_t watch, const void *data, size_t n);
int64_t model_watch(const char *oid, model_told *reported, void *context);
/* After this, the watch gets no more notifications. */
void model_unwatch(uint64_t watch);
/* Notify all watches of the object; returns when all were notified. */
int model_notify(const char *oid, const void *data, size_t n);

/* Advance the clock of the locks. */
void model_advance(int64_t ms);
/* The size that all objects together may reach before writes and creations are refused; initially
 * UINT64_MAX. As with a pool's quota, keys are not counted. */
void model_limit(uint64_t bytes);
/* Empty the pool. */
void model_clear(void);

#endif
