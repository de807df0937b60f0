/* SPDX-License-Identifier: MIT */
/*
 * The whole server: opens the lake, listens, serves until it is told to end, ends cleanly.
 */
#ifndef TL_SERVE_H
#define TL_SERVE_H

#include "base/err.h"

#include <stddef.h>
#include <stdint.h>

struct tl_serve_list {
    const char *const *at;
    size_t n;
};

struct tl_serve_options {
    const char *data;                /* data folder, made if absent */
    const char *store;               /* URL of the store; NULL: embedded in the data folder */
    struct tl_serve_list listen;     /* ADDR:PORT, plain; none of both: the default addresses */
    struct tl_serve_list listen_tls; /* ADDR:PORT, TLS */
    const char *tls_cert;            /* PEM; NULL: made in the data folder */
    const char *tls_key;
    const char *client_ca;    /* PEM: who signs certificates of clients; NULL: none are asked for */
    const char *tokens;       /* file of access tokens; NULL: none needed */
    struct tl_serve_list raw; /* ADDR:PORT,format=FMT,rig=NAME[,config=F] */
    struct tl_serve_list source; /* tcp://HOST:PORT,format=FMT,rig=NAME[,config=F] */
    const char *osd_controller;  /* ADDR[:PORT][,rig=NAME][,config=F][,start=…]; NULL: none */
    bool insecure;               /* allow plain or open listeners beyond loopback, any Host */
    uint64_t shard_insns;        /* 0: the lake's default */
    uint64_t min_free_bytes;     /* 0: the lake's default */
    unsigned decode_threads;     /* 0: one per processor */
    const char *seal_after;      /* "1h", "none"; NULL: as it was, at first none */
    const char *retain_raw;      /* "30d,200G", "none"; NULL: as it was */
    const char *retain_decoded;
    const char
        *retain_stf;      /* "7d", "none": shards older than that become virtual; NULL: as it was */
    const char *shards;   /* of new traces: "stored", "virtual"; NULL: stored */
    bool rebuild_catalog; /* set the catalog aside and make a new one out of the stored objects */
    const char *log_format;   /* "text", "json"; NULL: text */
    const char *log_level;    /* "error" … "debug"; NULL: info */
    uint64_t max_connections; /* limits as in net/net.h; 0: its default */
    uint64_t max_per_address;
    uint64_t max_http1;
    uint64_t max_streaming;
    uint64_t max_message;
    uint64_t max_inbound;
    /* Keys that differ from those the server began with and need a restart, "listen, threads"; set
     * by whoever reads the options anew. NULL: none. */
    const char *restart;
};

/*
 * Where the options come from, for SIGHUP: `read` gives them anew, to be freed by `release`. NULL
 * for both: they never change. TL_BAD, TL_IO: the old ones stay in force.
 */
struct tl_serve_source {
    void *context;
    int (*read)(void *context, const struct tl_serve_options **out, struct tl_fail *fail);
    void (*release)(void *context, const struct tl_serve_options *options);
};

/*
 * Serve until SIGINT or SIGTERM; SIGHUP takes tokens, certificates, limits and retention anew.
 * Events are told to the journal (base/journal.h) on stderr. As text, stdout gets a line per
 * listener and "ready"; as JSON they are events like the others. Call it once in a process, from
 * its main thread. Errors: TL_USAGE, TL_BAD, TL_IO, as `fail` tells.
 */
TL_MUST_USE int tl_serve(const struct tl_serve_options *options,
                         const struct tl_serve_source *source, struct tl_fail *fail);

/* Could it serve with these? Looks at all files, and changes and opens nothing. Errors as above. */
TL_MUST_USE int tl_serve_check(const struct tl_serve_options *options, struct tl_fail *fail);

#endif
