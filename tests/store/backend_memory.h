/* SPDX-License-Identifier: MIT */
/*
 * A back end for tests: keys and bytes in memory, with a power switch. As thread-safe as others.
 */
#ifndef TL_TESTS_STORE_BACKEND_MEMORY_H
#define TL_TESTS_STORE_BACKEND_MEMORY_H

#include "store/backend.h"

/* Nothing outlives the backend object. */
TL_MUST_USE int tl_backend_memory(struct tl_backend **out);
/* Another process' view of the same memory: a backend object of its own, to be freed as well. */
TL_MUST_USE int tl_backend_memory_attach(struct tl_backend *backend, struct tl_backend **out);
/* Take a lease away from whoever holds it. */
void tl_backend_memory_expire(struct tl_backend *backend, const char *name);
/*
 * Cut the power of a memory backend: from now on every write, sync and commit is refused with
 * TL_IO. tl_backend_memory_boot() then drops what was not synced, except that of each log an
 * unsynced part whose length is drawn from `seed` may have reached the medium, its last bytes
 * perhaps wrong.
 */
void tl_backend_memory_cut(struct tl_backend *backend);
void tl_backend_memory_boot(struct tl_backend *backend, uint64_t seed);
/*
 * Let the next `after` writes, syncs, removals and commits pass, then refuse `count` of them with
 * `code` (TL_IO or TL_NOSPACE): a refused write may have been done in part. With code TL_OK the
 * power is cut instead, until the next boot.
 */
void tl_backend_memory_refuse(struct tl_backend *backend, uint64_t after, uint64_t count,
                              enum tl_err code);
/* How many bytes it may hold before it says TL_NOSPACE; UINT64_MAX at first. */
void tl_backend_memory_limit(struct tl_backend *backend, uint64_t bytes);

#endif
