/* SPDX-License-Identifier: MIT */
/* librados, loaded when a store in a cluster is opened: see base/library.h. */
#ifndef TL_RADOS_RADOS_LIBRARY_H
#define TL_RADOS_RADOS_LIBRARY_H

#include "base/err.h"

#include <rados/librados.h>

/* The functions used, without "rados_". */
#define TL_LIBRADOS(X)                                                                             \
    X(aio_create_completion2)                                                                      \
    X(aio_get_return_value)                                                                        \
    X(aio_get_version)                                                                             \
    X(aio_notify)                                                                                  \
    X(aio_read_op_operate)                                                                         \
    X(aio_release)                                                                                 \
    X(aio_stat)                                                                                    \
    X(aio_wait_for_complete)                                                                       \
    X(aio_write_op_operate)                                                                        \
    X(cluster_stat)                                                                                \
    X(conf_read_file)                                                                              \
    X(conf_set)                                                                                    \
    X(connect)                                                                                     \
    X(create)                                                                                      \
    X(create_read_op)                                                                              \
    X(create_write_op)                                                                             \
    X(ioctx_create)                                                                                \
    X(ioctx_destroy)                                                                               \
    X(ioctx_set_namespace)                                                                         \
    X(lock_exclusive)                                                                              \
    X(notify_ack)                                                                                  \
    X(omap_get_end)                                                                                \
    X(omap_get_next2)                                                                              \
    X(read_op_omap_get_vals2)                                                                      \
    X(read_op_omap_get_vals_by_keys2)                                                              \
    X(read_op_read)                                                                                \
    X(release_read_op)                                                                             \
    X(release_write_op)                                                                            \
    X(remove)                                                                                      \
    X(set_pool_full_try)                                                                           \
    X(shutdown)                                                                                    \
    X(unlock)                                                                                      \
    X(unwatch2)                                                                                    \
    X(watch3)                                                                                      \
    X(write_op_create)                                                                             \
    X(write_op_omap_cmp2)                                                                          \
    X(write_op_omap_rm_keys2)                                                                      \
    X(write_op_omap_rm_range2)                                                                     \
    X(write_op_omap_set2)                                                                          \
    X(write_op_remove)                                                                             \
    X(write_op_write)

struct tl_librados {
#define TL_LIBRADOS_MEMBER(name) __typeof__(rados_##name) *name;
    TL_LIBRADOS(TL_LIBRADOS_MEMBER)
#undef TL_LIBRADOS_MEMBER
};
extern struct tl_librados tl_librados; /* written only by the two functions below */

/* Load it, once; from any thread. TL_UNSUPPORTED: it is not installed. */
TL_MUST_USE int tl_librados_load(struct tl_fail *fail);
/* Use these functions instead of the library: for tests. While no store is open. */
void tl_librados_use(const struct tl_librados *functions);

#endif
