/* SPDX-License-Identifier: MIT */
/*
 * A small blocking HTTP/2 client for tests: it shows what is on the wire, and can do things that a
 * well-behaved client would not.
 */
#ifndef TL_TESTS_H2_CLIENT_H
#define TL_TESTS_H2_CLIENT_H

#include "base/buf.h"
#include "net/fields.h"

#include <nghttp2/nghttp2.h>
#include <openssl/ssl.h>
#include <protobuf-c/protobuf-c.h>

struct h2_exchange {
    int32_t id;
    struct tl_fields head;
    struct tl_fields trailers;
    struct tl_buf body;
    size_t frames; /* HEADERS of the response */
    bool closed;   /* the stream is */
    bool ended;    /* END_STREAM was seen */
    bool reset;    /* RST_STREAM was seen */
    uint32_t code; /* code of the RST_STREAM */
    size_t at;     /* position up to which messages are read */
    struct tl_buf out;
    size_t out_at; /* position up to which data is sent */
    bool out_ended;
    bool deferred;
};

struct h2_client {
    int fd;
    SSL *ssl;
    SSL_CTX *ctx;
    nghttp2_session *session;
    struct h2_exchange *exchanges[256];
    size_t n;
    unsigned goaways;
    int32_t goaway_last[4];
    uint32_t goaway_code;
    unsigned pongs;
    bool eof;
    bool keeps_window; /* what it receives is not returned to the server's windows */
};

/* Connect to a listener's URL ("http://127.0.0.1:1234", "https://…"). Fails the test if refused. */
struct h2_client *h2_connect(const char *url);
/* The same from another local address, "127.0.0.2", with this window for each stream. */
struct h2_client *h2_connect_from(const char *url, const char *source, uint32_t window);
void h2_free(struct h2_client *client);
/* A plain connected socket to the URL's port. */
int tcp_connect(const char *url);
int tcp_connect_from(const char *url, const char *source);

/*
 * Start a request; extra "name: value" pairs end with NULL. The exchange lives as long as the
 * client.
 */
struct h2_exchange *h2_request(struct h2_client *client, const char *method, const char *path,
                               bool end, ...);
/* A complete request with a content type and `more` other fields. */
struct h2_exchange *h2_request_long(struct h2_client *client, const char *method, const char *path,
                                    size_t more, const char *type);
/* A gRPC call: POST with the usual header fields. */
struct h2_exchange *h2_call(struct h2_client *client, const char *path);
void h2_send(struct h2_client *client, struct h2_exchange *x, const void *p, size_t n, bool end);
/* Send a message with its prefix. */
void h2_send_message(struct h2_client *client, struct h2_exchange *x,
                     const ProtobufCMessage *message, bool end);
/* Send and receive until the stream or the connection is closed. */
void h2_finish(struct h2_client *client, struct h2_exchange *x);
/* Send and receive once, waiting at most `ms`. False: nothing came. */
bool h2_step(struct h2_client *client, int ms);
/*
 * The next message of the response, received if necessary; NULL: the stream is closed. Free with
 * protobuf_c_message_free_unpacked().
 */
ProtobufCMessage *h2_message(struct h2_client *client, struct h2_exchange *x,
                             const ProtobufCMessageDescriptor *type);
/* Status, from trailers or a trailers-only head; -1: none. */
int h2_grpc_status(const struct h2_exchange *x);
const char *h2_grpc_text(const struct h2_exchange *x);
int h2_status(const struct h2_exchange *x);

#endif
