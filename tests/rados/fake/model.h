/* SPDX-License-Identifier: MIT */
/*
 * What a pool of a Ceph cluster promises, in memory: objects of bytes and an ordered map (omap),
 * which operations of several steps change whole or not at all, and locks that run out. The results
 * are those of an OSD of version 16: a comparison sees the object as it was before the operation,
 * a key that is missing compares as an empty value, an object that is missing as ENOENT.
 *
 * Internally locked: an operation is one moment for everybody.
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
    MODEL_UNSET_RANGE /* keys from `key` on that are below `value` */
};

struct model_step {
    enum model_kind kind;
    int comparison;
    bool exclusive; /* to create what is there is an error */
    uint64_t offset;
    struct tl_buf key, value;
};

/* Carry out the steps of an operation. 0, or a negative errno as librados has it. */
int model_write(const char *oid, const struct model_step *steps, size_t n);

/* Keys with their values of an object behind `behind` that begin with `prefix`, at most `most`:
 * `each` of them. Returns 1: there are more; 0; or a negative errno. */
int model_keys(const char *oid, const char *behind, const char *prefix, uint64_t most,
               void (*each)(void *context, const struct tl_buf *key, const struct tl_buf *value),
               void *context);
/* Up to `n` bytes from `offset` on, into `out`. Returns how many, or a negative errno. */
ssize_t model_read(const char *oid, uint64_t offset, size_t n, char *out);
/* Changes with every change of the object. A negative errno: it is not there. */
int model_version(const char *oid, uint64_t *version);

/* Exclusive lock of an object by (client, cookie), as cls_lock has it; `duration_ms` 0: for good.
 */
int model_lock(const char *oid, uint64_t client, const char *cookie, int64_t duration_ms,
               unsigned flags);
int model_unlock(const char *oid, uint64_t client, const char *cookie);

/* Watch an object. Returns the watch, > 0, or a negative errno. */
typedef void model_told(void *context, uint64_t watch, const void *data, size_t n);
int64_t model_watch(const char *oid, model_told *told, void *context);
/* Behind it nothing is told to this watch any more. */
void model_unwatch(uint64_t watch);
/* Tell all who watch the object; returns when they were told. */
int model_notify(const char *oid, const void *data, size_t n);

/* As if so much time had passed for locks. */
void model_advance(int64_t ms);
/* How many bytes objects may have before writes and creations are refused; UINT64_MAX at first. As
 * with a pool's quota, keys are not counted. */
void model_limit(uint64_t bytes);
/* An empty pool. */
void model_clear(void);

#endif
