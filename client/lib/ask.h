/* SPDX-License-Identifier: MIT */
/*
 * The client side of a gRPC call (messages out, messages in, a status at the end), and the
 * connection object that calls are made on.
 */
#ifndef TL_CLIENT_ASK_H
#define TL_CLIENT_ASK_H

#include "mux.h"

#include <protobuf-c/protobuf-c.h>

/* A connection. A server name may resolve to several addresses; a place is one of these. */
struct tracelake {
    struct tl_url *urls;
    size_t *n_addresses; /* addresses of each URL as last resolved; 0: not resolved yet */
    size_t n_urls;
    size_t at, address;  /* the place of the last connection, which is tried first */
    bool heard;          /* an answer has arrived on this connection */
    char *authorization; /* "Bearer …" or NULL */
    bool mangled;        /* names of functions are wanted as in the files */
    char *cafile;
    char *certfile;
    char *keyfile;
    uint8_t (*pins)[32];
    struct tl_wire_options wire;
    int timeout_ms; /* -1: none */
    int wake_fd;
    atomic_bool interrupted;
    struct tl_mux *mux; /* NULL, or possibly dead: see tl_client_connect() */
};

/* Ensure there is a usable connection, creating one if needed: to the place of the last one, or the
 * first place after it that answers. */
TL_MUST_USE int tl_client_connect(struct tracelake *lake, struct tracelake_error *error);
/* Make the next connection go to the next place. Calls in progress keep theirs. */
void tl_client_leave(struct tracelake *lake);
/* Are there several places? */
bool tl_client_others(const struct tracelake *lake);
/* The server of the last connection. */
static inline const struct tl_url *tl_client_url(const struct tracelake *lake)
{
    return &lake->urls[lake->at];
}

/*
 * Decide whether a repeatable call that ended with `result` is to be made again. Yes, for some
 * seconds, if the server went away and there are others; pauses after every place was tried.
 */
struct tl_again {
    int64_t begun; /* 0: not started */
    unsigned tries;
};
bool tl_client_again(struct tracelake *lake, struct tl_again *again, int result);

/* Text field of an outgoing message, which protobuf-c declares as char * and does not modify; NULL
 * becomes an empty text. */
static inline char *tl_ask_text(const char *s)
{
    return (char *)(uintptr_t)(s ? s : "");
}

/* End of a requested range: on the wire 0 stands for TRACELAKE_END. */
static inline uint64_t tl_ask_end_of(uint64_t to)
{
    return to == TRACELAKE_END ? 0 : to;
}

/* Fill in what a request about a range has of it, its unit in `unit_field`. */
#define TL_ASK_RANGE(request, unit_field, range)                                                   \
    ((request)->trace = tl_ask_text((range)->trace),                                               \
     (request)->stream = tl_ask_text((range)->stream),                                             \
     (request)->unit_field = (Tracelake__V1__Unit)(range)->unit, (request)->begin = (range)->from, \
     (request)->to = tl_ask_end_of((range)->to))

#define TL_GRPC_UNAVAILABLE 14 /* this server cannot serve the call now; another one may */

struct tl_ask {
    struct tracelake *lake;
    struct tl_mux *mux;
    const char *method; /* "/tracelake.v1.Ingest/Push"; static storage */
    int timeout_ms;     /* time limit without progress; -1: none */
    struct tl_ask_io io;
};

/* Begin a call. `timeout_ms`: time limit without progress, 0: that of the connection, -1: none. */
TL_MUST_USE int tl_ask_open(struct tl_ask **out, struct tracelake *lake, const char *method,
                            int timeout_ms, struct tracelake_error *error);
/* Free; an unfinished call is cancelled. */
void tl_ask_close(struct tl_ask *ask);

/* Queue a message; later steps send it. LIMIT, NOMEM. */
TL_MUST_USE int tl_ask_send(struct tl_ask *ask, const ProtobufCMessage *message,
                            struct tracelake_error *error);
TL_MUST_USE int tl_ask_send_bytes(struct tl_ask *ask, struct tl_bytes message,
                                  struct tracelake_error *error);
/* Queue a message of two parts. The second one is borrowed until nothing is unsent, or the call is
 * closed. */
TL_MUST_USE int tl_ask_send_parts(struct tl_ask *ask, struct tl_bytes head, struct tl_bytes tail,
                                  struct tracelake_error *error);
/* Half-close: no more messages from this side. */
void tl_ask_end(struct tl_ask *ask);
/* Number of queued bytes that have not been sent. */
size_t tl_ask_unsent(const struct tl_ask *ask);

/* Take a complete message that has arrived, without waiting: OK, AGAIN, or the end as for
 * tl_ask_recv(). `out` is valid until the next receive of this call, whatever others do. */
TL_MUST_USE int tl_ask_take(struct tl_ask *ask, struct tl_bytes *out,
                            struct tracelake_error *error);
/*
 * Wait for a message. EOF: the call ended with status OK; otherwise the status the server returned.
 */
TL_MUST_USE int tl_ask_recv(struct tl_ask *ask, struct tl_bytes *out,
                            struct tracelake_error *error);
/* Wait until at most `most` bytes are queued. Returns early if the call ends. */
TL_MUST_USE int tl_ask_drain(struct tl_ask *ask, size_t most, struct tracelake_error *error);

/* Unpack a message of the given kind; BAD if the bytes are not one. */
TL_MUST_USE int tl_ask_unpack(const struct tl_ask *ask, const ProtobufCMessageDescriptor *kind,
                              struct tl_bytes bytes, void *out, struct tracelake_error *error);

/* A complete unary call. Repeated as in tl_client_again(), unless repeating could apply a change
 * twice. Free `*reply` (a pointer to a message struct) with protobuf_c_message_free_unpacked(). */
TL_MUST_USE int tl_ask_once(struct tracelake *lake, const char *method, int timeout_ms,
                            const ProtobufCMessage *request, const ProtobufCMessageDescriptor *kind,
                            void *reply, struct tracelake_error *error);
/* The same if the reply says nothing but that it was done. */
TL_MUST_USE int tl_ask_done(struct tracelake *lake, const char *method,
                            const ProtobufCMessage *request, const ProtobufCMessageDescriptor *kind,
                            struct tracelake_error *error);

/* Consume one reply of a stream (a message struct). TRACELAKE_NOMEM is reported as an error; any
 * result < 0 ends the call. */
typedef int tl_ask_take_reply(void *context, const void *reply);

/* A complete call with any number of replies, each passed to `take`. Returns OK, or what ended the
 * call. Repeated as long as no reply has arrived. */
TL_MUST_USE int tl_ask_each(struct tracelake *lake, const char *method, int timeout_ms,
                            const ProtobufCMessage *request, const ProtobufCMessageDescriptor *kind,
                            tl_ask_take_reply *take, void *context, struct tracelake_error *error);

#endif
