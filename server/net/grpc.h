/* SPDX-License-Identifier: MIT */
/*
 * gRPC calls from a handler's point of view. A handler runs on a worker thread of its own and may
 * block; it reads messages, sends messages, and returns a result that becomes the status. When the
 * client has cancelled or the deadline has passed, tl_cancel_check() reports it (base/cancel.h).
 *
 * Source: gRPC over HTTP2 (PROTOCOL-HTTP2), the compression and status-code documents.
 */
#ifndef TL_NET_GRPC_H
#define TL_NET_GRPC_H

#include "base/bytes.h"
#include "net/net.h"

#include <protobuf-c/protobuf-c.h>

struct tl_call;
struct tl_message;

enum tl_shape {
    TL_UNARY,         /* one request, one reply */
    TL_CLIENT_STREAM, /* many requests, one reply */
    TL_SERVER_STREAM, /* one request, many replies */
    TL_BIDI
};

/* google.rpc.Code */
enum tl_grpc_status {
    TL_GRPC_OK,
    TL_GRPC_CANCELLED,
    TL_GRPC_UNKNOWN,
    TL_GRPC_INVALID_ARGUMENT,
    TL_GRPC_DEADLINE_EXCEEDED,
    TL_GRPC_NOT_FOUND,
    TL_GRPC_ALREADY_EXISTS,
    TL_GRPC_PERMISSION_DENIED,
    TL_GRPC_RESOURCE_EXHAUSTED,
    TL_GRPC_FAILED_PRECONDITION,
    TL_GRPC_ABORTED,
    TL_GRPC_OUT_OF_RANGE,
    TL_GRPC_UNIMPLEMENTED,
    TL_GRPC_INTERNAL,
    TL_GRPC_UNAVAILABLE,
    TL_GRPC_DATA_LOSS,
    TL_GRPC_UNAUTHENTICATED
};

struct tl_method {
    const char *path; /* "/package.Service/Method" */
    const ProtobufCMessageDescriptor *request;
    uint8_t shape; /* enum tl_shape */
    uint8_t role;  /* enum tl_role required of the token */
    /*
     * `request`: the request of TL_UNARY and TL_SERVER_STREAM, otherwise NULL; borrowed. Returns
     * TL_OK or an enum tl_err, with details in tl_call_fail().
     */
    int (*run)(struct tl_call *call, const void *request);
    uint8_t effort; /* enum tl_effort of TL_UNARY; streams are TL_LASTING */
    uint8_t reach;  /* enum tl_reach */
    /* TL_UNARY: `run` answers from memory and never blocks, so a loop's thread calls it. Only for
     * TL_REACH_NONE. */
    bool at_once;
};

/* The app's context. */
void *tl_call_context(struct tl_call *call);
/* The scope of the call's token, NULL: unrestricted. Borrowed. */
const struct tl_scope *tl_call_scope(struct tl_call *call);
/* The holder of the call's token, NULL: it has no quota. Borrowed. */
struct tl_holder *tl_call_holder(struct tl_call *call);
/* The client's address, "10.0.0.7:41234". Valid while the handler runs. */
const char *tl_call_client(struct tl_call *call);
/* Where a handler describes a failure. */
struct tl_fail *tl_call_fail(struct tl_call *call);
/* Does the caller have this role? For handlers whose required role depends on the request. */
bool tl_call_may(struct tl_call *call, enum tl_role role);

/*
 * Receive the next request of a client stream; free with tl_call_free_request(). TL_EOF: no more;
 * TL_AGAIN: poked, `timeout_ms` (negative: none) elapsed, or the server is stopping (see
 * tl_call_draining()); TL_CANCELLED; TL_BAD, TL_LIMIT: described in tl_call_fail().
 */
TL_MUST_USE int tl_call_recv(struct tl_call *call, ProtobufCMessage **out, int64_t timeout_ms);
void tl_call_free_request(ProtobufCMessage *message);

/* An encoded request, for a handler that parses it itself. */
struct tl_call_bytes {
    struct tl_bytes bytes;
    struct tl_message *held; /* owner of the bytes: the received message */
    struct tl_buf plain;     /* owner of the bytes if it was compressed */
};
/* As tl_call_recv(); free with tl_call_free_bytes(). */
TL_MUST_USE int tl_call_recv_bytes(struct tl_call *call, struct tl_call_bytes *out,
                                   int64_t timeout_ms);
void tl_call_free_bytes(struct tl_call *call, struct tl_call_bytes *bytes);
/* Instead of freeing them: returns the memory that the bytes are in, to be passed to free(). It is
 * not counted as received and waiting any more. */
TL_MUST_USE void *tl_call_take_bytes(struct tl_call *call, struct tl_call_bytes *bytes);
/* Decode as the method's request type. Free with tl_call_free_request(). TL_BAD. */
TL_MUST_USE int tl_call_unpack(struct tl_call *call, struct tl_bytes bytes, ProtobufCMessage **out);

/* Send a reply. Blocks while the client does not read. TL_CANCELLED, TL_NOMEM. */
TL_MUST_USE int tl_call_send(struct tl_call *call, const ProtobufCMessage *reply);
/* The same, but replaces a still pending reply sent by this function. */
TL_MUST_USE int tl_call_send_latest(struct tl_call *call, const ProtobufCMessage *reply);
/*
 * Send a reply whose last field is `tag` (bytes) with the contents of `data`, which is taken over
 * without copying (the buffer is empty afterwards).
 */
TL_MUST_USE int tl_call_send_data(struct tl_call *call, const ProtobufCMessage *reply, uint32_t tag,
                                  struct tl_buf *data);

/* Can replies contain bytes of mapped files? Not if they are encrypted or compressed. */
bool tl_call_maps(const struct tl_call *call);
/* Bytes of a file mapped to memory, which only system calls read; let_go(owner) releases them. */
struct tl_call_mapped {
    struct tl_bytes bytes;
    void (*let_go)(void *owner);
    void *owner;
};
/*
 * As tl_call_send_data(), where the field has the contents of `before`, and then the mapped bytes;
 * both are taken over, also on failure. If the file turns out to be cut short, the call ends with
 * INTERNAL.
 */
TL_MUST_USE int tl_call_send_mapped(struct tl_call *call, const ProtobufCMessage *reply,
                                    uint32_t tag, struct tl_buf *before,
                                    const struct tl_call_mapped *mapped);

/* Wake the handler from tl_call_recv() or tl_call_wait(). Any thread, never blocks for long. */
void tl_call_poke(struct tl_call *call);
/* Wait for a poke. TL_OK: poked; TL_AGAIN: timeout; TL_CANCELLED. */
TL_MUST_USE int tl_call_wait(struct tl_call *call, int64_t timeout_ms);
/* The waiter of tl_call_wait(), for threads that poke. Valid while the handler runs. */
struct tl_waiter *tl_call_waiter(struct tl_call *call);

/* Charge so many bytes of memory to the client, instead of those before, until the call ends or
 * this is called with 0. TL_LIMIT: it has its share, described in tl_call_fail(). */
TL_MUST_USE int tl_call_hold(struct tl_call *call, size_t n);

/* Is the server stopping? Long calls should then end by returning tl_call_stop(). */
bool tl_call_draining(struct tl_call *call);
int tl_call_stop(struct tl_call *call);

enum tl_grpc_status tl_grpc_status_of(int err);

#endif
