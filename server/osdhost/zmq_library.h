/* SPDX-License-Identifier: MIT */
/* libzmq, loaded by the host controller when it starts: see base/library.h. */
#ifndef TL_OSDHOST_ZMQ_LIBRARY_H
#define TL_OSDHOST_ZMQ_LIBRARY_H

#include "base/err.h"

#include <zmq.h>

/* The functions used, without "zmq_". */
#define TL_LIBZMQ(X)                                                                               \
    X(bind)                                                                                        \
    X(close)                                                                                       \
    X(connect)                                                                                     \
    X(ctx_new)                                                                                     \
    X(ctx_term)                                                                                    \
    X(getsockopt)                                                                                  \
    X(msg_close)                                                                                   \
    X(msg_data)                                                                                    \
    X(msg_get)                                                                                     \
    X(msg_init)                                                                                    \
    X(msg_more)                                                                                    \
    X(msg_recv)                                                                                    \
    X(msg_size)                                                                                    \
    X(poll)                                                                                        \
    X(send)                                                                                        \
    X(setsockopt)                                                                                  \
    X(socket)                                                                                      \
    X(socket_monitor)                                                                              \
    X(strerror)

struct tl_libzmq {
#define TL_LIBZMQ_MEMBER(name) __typeof__(zmq_##name) *name;
    TL_LIBZMQ(TL_LIBZMQ_MEMBER)
#undef TL_LIBZMQ_MEMBER
};
extern struct tl_libzmq tl_libzmq; /* written only by tl_libzmq_load() */

/* Load it, once; from any thread. TL_UNSUPPORTED: it is not installed. */
TL_MUST_USE int tl_libzmq_load(struct tl_fail *fail);

#endif
