/* SPDX-License-Identifier: MIT */
/* The whole server: opens the lake, listens, serves until asked to stop, shuts down cleanly. */
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
    const char *data;            /* data folder, created if absent */
    const char *store;           /* URL of the store; NULL: embedded in the data folder */
    struct tl_serve_list listen; /* ADDR:PORT, plain; without any listener: the default addresses */
    struct tl_serve_list listen_tls; /* ADDR:PORT, TLS */
    const char *tls_cert;            /* PEM; NULL: created in the data folder */
    const char *tls_key;
    const char *client_ca;       /* PEM: CA of client certificates; NULL: none are requested */
    const char *tokens;          /* file of access tokens; NULL: none required */
    struct tl_serve_list raw;    /* ADDR:PORT,format=FMT,rig=NAME[,config=F] */
    struct tl_serve_list source; /* tcp://HOST:PORT,format=FMT,rig=NAME[,config=F] */
    const char *osd_controller;  /* ADDR[:PORT][,rig=NAME][,config=F][,start=…]; NULL: none */
    bool insecure;               /* allow plain or open listeners beyond loopback, and any Host */
    uint64_t shard_insns;        /* 0: the lake's default */
    uint64_t min_free_bytes;     /* 0: the lake's default */
    unsigned decode_threads;     /* 0: one per processor */
    uint64_t decode_memory;      /* 0: the lake's default */
    uint64_t sql_memory;         /* 0: the lake's default */
    const char *seal_after;      /* "1h", "none"; NULL: unchanged, initially none */
    const char *retain_raw;      /* "30d,200G", "none"; NULL: unchanged */
    const char *retain_decoded;
    const char *retain_stf; /* "7d", "none": age at which shards become virtual; NULL: unchanged */
    const char *shards;     /* default for new traces: "stored", "virtual"; NULL: stored */
    const char *index;      /* the same: "now", "behind", "auto"; NULL: now */
    bool rebuild_catalog;   /* set the catalog aside and rebuild it from the stored objects */
    const char *log_format; /* "text", "json"; NULL: text */
    const char *log_level;  /* "error" … "debug"; NULL: info */
    uint64_t max_connections; /* limits as in net/net.h; 0: its default */
    uint64_t max_per_address;
    uint64_t max_http1;
    uint64_t max_streaming;
    uint64_t max_message;
    uint64_t max_inbound;
    uint64_t max_outbound;
    uint64_t max_guests;
    struct tl_serve_list quota; /* as in rpc/quotas.h */
    /* Changed keys that take effect only after a restart, "listen, threads"; set by whoever
     * re-reads the options. NULL: none. */
    const char *restart;
};

/*
 * Source of the options, for SIGHUP: `read` returns the current ones, to be freed by `release`.
 * NULL for both: they never change. TL_BAD, TL_IO: the old ones stay in force.
 */
struct tl_serve_source {
    void *context;
    int (*read)(void *context, const struct tl_serve_options **out, struct tl_fail *fail);
    /* Say where in the source the fault is that these options have; may be NULL. */
    void (*explain)(void *context, const struct tl_serve_options *options, struct tl_fail *fail);
    void (*release)(void *context, const struct tl_serve_options *options);
};

/*
 * Serve until SIGINT or SIGTERM; SIGHUP reloads tokens, certificates, limits and retention. Events
 * are written to the journal (base/journal.h) on stderr. In text form, stdout gets a line per
 * listener and "ready"; in JSON form these are events like the others. Call once per process, from
 * its main thread. Errors: TL_USAGE, TL_BAD, TL_IO, described in `fail`.
 */
TL_MUST_USE int tl_serve(const struct tl_serve_options *options,
                         const struct tl_serve_source *source, struct tl_fail *fail);

/*
 * Check whether the server could run with these options. Reads all files; changes and opens
 * nothing. Errors as above.
 */
TL_MUST_USE int tl_serve_check(const struct tl_serve_options *options, struct tl_fail *fail);

#endif
