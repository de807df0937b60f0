/* SPDX-License-Identifier: MIT */
/* A backend for tests: keys and bytes in memory, with simulated power cuts. As thread-safe as the
 * other backends. */
#ifndef TL_TESTS_STORE_BACKEND_MEMORY_H
#define TL_TESTS_STORE_BACKEND_MEMORY_H

#include "store/backend.h"

/* Its data is lost with the backend object. */
TL_MUST_USE int tl_backend_memory(struct tl_backend **out);
/*
 * Another process's view of the same memory: a separate backend object, which must also be freed.
 */
TL_MUST_USE int tl_backend_memory_attach(struct tl_backend *backend, struct tl_backend **out);
/* Take a lease away from its holder. */
void tl_backend_memory_expire(struct tl_backend *backend, const char *name);
/*
 * Cut the power of a memory backend: from now on every write, sync and commit is refused with
 * TL_IO. tl_backend_memory_boot() then drops unsynced data, except that an unsynced part of each
 * log may have reached the medium, with a length determined by `seed`, and possibly wrong in its
 * last bytes.
 */
void tl_backend_memory_cut(struct tl_backend *backend);
void tl_backend_memory_boot(struct tl_backend *backend, uint64_t seed);
/*
 * Let the next `after` writes, syncs, removals and commits pass, then refuse `count` of them with
 * `code` (TL_IO or TL_NOSPACE); a refused write may have been done in part. With code TL_OK the
 * power is cut instead, until the next boot.
 */
void tl_backend_memory_refuse(struct tl_backend *backend, uint64_t after, uint64_t count,
                              enum tl_err code);
/* From now on, or no longer, refuse every commit: whatever else is written at the time passes. */
void tl_backend_memory_refuse_commits(struct tl_backend *backend, bool refuse);
/* Capacity in bytes, beyond which it returns TL_NOSPACE; initially UINT64_MAX. */
void tl_backend_memory_limit(struct tl_backend *backend, uint64_t bytes);

#endif
