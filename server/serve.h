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
    const char *tokens;          /* file of access tokens; NULL: none needed */
    struct tl_serve_list raw;    /* ADDR:PORT,format=FMT,rig=NAME[,config=F] */
    struct tl_serve_list source; /* tcp://HOST:PORT,format=FMT,rig=NAME[,config=F] */
    const char *osd_controller;  /* ADDR[:PORT][,rig=NAME][,config=F][,start=…]; NULL: none */
    bool insecure;               /* allow plain or open listeners beyond loopback, any Host */
    uint64_t shard_insns;        /* 0: the lake's default */
    uint64_t min_free_bytes;     /* 0: the lake's default */
    unsigned decode_threads;     /* 0: one per processor */
    const char *retain_raw;      /* "30d,200G", "none"; NULL: as it was */
    const char *retain_decoded;
    bool rebuild_catalog; /* set the catalog aside and make a new one out of the stored objects */
};

/*
 * Serve until SIGINT or SIGTERM. Prints a line per listener and "ready" to stdout. Call it once
 * in a process, from its main thread. Errors: TL_USAGE, TL_BAD, TL_IO, as `fail` tells.
 */
TL_MUST_USE int tl_serve(const struct tl_serve_options *options, struct tl_fail *fail);

#endif
