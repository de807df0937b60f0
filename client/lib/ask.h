/* SPDX-License-Identifier: MIT */
/*
 * One gRPC call from this side: messages out, messages in, a status at the end; and the
 * connection object that calls are made on.
 */
#ifndef TL_CLIENT_ASK_H
#define TL_CLIENT_ASK_H

#include "mux.h"

#include <protobuf-c/protobuf-c.h>

/* A server's name may have several addresses; a place is one of these. */
struct tracelake {
    struct tl_url *urls;
    size_t *n_addresses; /* of each, as last seen; 0: not yet */
    size_t n_urls;
    size_t at, address;  /* the place of the last connection, which is tried first */
    bool heard;          /* an answer came on this connection */
    char *authorization; /* "Bearer …" or NULL */
    char *cafile;
    char *certfile;
    char *keyfile;
    uint8_t (*pins)[32];
    struct tl_wire_options wire;
    int timeout_ms; /* -1: none */
    int wake_fd;
    atomic_bool interrupted;
    struct tl_mux *mux; /* NULL, or perhaps dead: see tl_client_connect() */
};

/* Have a usable connection, making a new one if need be: to the place of the last one, or the first
 * behind it that answers. */
TL_MUST_USE int tl_client_connect(struct tracelake *lake, struct tracelake_error *error);
/* Have the next connection at the next place. Calls under way keep theirs. */
void tl_client_leave(struct tracelake *lake);
/* Are there several places? */
bool tl_client_others(const struct tracelake *lake);
/* The server of the last connection. */
static inline const struct tl_url *tl_client_url(const struct tracelake *lake)
{
    return &lake->urls[lake->at];
}

/*
 * A call that can be made twice ended with `result`: shall it be made again? Yes, for some seconds,
 * where the server went away and there are others; behind a pause once all were asked.
 */
struct tl_again {
    int64_t begun; /* 0: not yet */
    unsigned tries;
};
bool tl_client_again(struct tracelake *lake, struct tl_again *again, int result);

/* A text of a message that is sent, which protobuf-c takes as char * and leaves alone; NULL is an
 * empty one. */
static inline char *tl_ask_text(const char *s)
{
    return (char *)(uintptr_t)(s ? s : "");
}

/* Where a range that is asked for ends: on the wire 0 stands for TRACELAKE_END. */
static inline uint64_t tl_ask_end_of(uint64_t to)
{
    return to == TRACELAKE_END ? 0 : to;
}

#define TL_GRPC_UNAVAILABLE 14 /* the server cannot serve this call now; another one may */

struct tl_ask {
    struct tracelake *lake;
    struct tl_mux *mux;
    const char *method; /* "/tracelake.v1.Ingest/Push"; static storage */
    int timeout_ms;     /* without progress; -1: none */
    size_t in_at;       /* of io.in, already handed out */
    struct tl_ask_io io;
};

/* Begin a call. `timeout_ms`: longest time without progress, 0: the connection's, -1: none. */
TL_MUST_USE int tl_ask_open(struct tl_ask **out, struct tracelake *lake, const char *method,
                            int timeout_ms, struct tracelake_error *error);
/* Free; a call that is not over is cancelled. */
void tl_ask_close(struct tl_ask *ask);

/* Queue a message; it is sent by the steps that follow. LIMIT, NOMEM. */
TL_MUST_USE int tl_ask_send(struct tl_ask *ask, const ProtobufCMessage *message,
                            struct tracelake_error *error);
TL_MUST_USE int tl_ask_send_bytes(struct tl_ask *ask, struct tl_bytes message,
                                  struct tracelake_error *error);
/* No more messages from this side. */
void tl_ask_end(struct tl_ask *ask);
/* Queued bytes that have not left yet. */
size_t tl_ask_unsent(const struct tl_ask *ask);

/* A complete message that has arrived, without waiting: OK, AGAIN, or the end as tl_ask_recv().
 * `out` is valid until the next receive. */
TL_MUST_USE int tl_ask_take(struct tl_ask *ask, struct tl_bytes *out,
                            struct tracelake_error *error);
/* Wait for a message. EOF: the call ended with status OK; else what the server answered. */
TL_MUST_USE int tl_ask_recv(struct tl_ask *ask, struct tl_bytes *out,
                            struct tracelake_error *error);
/* Wait until at most `most` bytes are queued. Ends early when the call does. */
TL_MUST_USE int tl_ask_drain(struct tl_ask *ask, size_t most, struct tracelake_error *error);

/* A message of the given kind from bytes; BAD if they are none. */
TL_MUST_USE int tl_ask_unpack(const struct tl_ask *ask, const ProtobufCMessageDescriptor *kind,
                              struct tl_bytes bytes, void *out, struct tracelake_error *error);

/* A whole call: one message out, one in; made again, see tl_client_again(), unless it changes
 * something that it would change twice. Free `*reply` (a pointer to a message struct) with
 * protobuf_c_message_free_unpacked(). */
TL_MUST_USE int tl_ask_once(struct tracelake *lake, const char *method, int timeout_ms,
                            const ProtobufCMessage *request, const ProtobufCMessageDescriptor *kind,
                            void *reply, struct tracelake_error *error);

/* Takes one reply of a stream (a message struct). TRACELAKE_NOMEM is told; any result < 0 ends the
 * call. */
typedef int tl_ask_take_reply(void *context, const void *reply);

/* A whole call with any number of replies, each of which is taken: OK, or what ended it. Made again
 * as long as none has come. */
TL_MUST_USE int tl_ask_each(struct tracelake *lake, const char *method, int timeout_ms,
                            const ProtobufCMessage *request, const ProtobufCMessageDescriptor *kind,
                            tl_ask_take_reply *take, void *context, struct tracelake_error *error);

#endif
