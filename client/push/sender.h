/* SPDX-License-Identifier: MIT */
/* Sends one capture as one trace: spooling, resuming, throttling, waiting and reporting. */
#ifndef TL_PUSH_SENDER_H
#define TL_PUSH_SENDER_H

#include "import/bundle.h"
#include "terminal/remote.h"

struct tl_sender {
    const struct tl_remote *remote;
    struct tracelake *lake; /* NULL: not connected yet; the caller closes it */
    const char *rig;
    const char *trace; /* NULL: an id is generated */
    const char *spool; /* folder, NULL: none */
    uint64_t spool_max;
    uint64_t memory;    /* bytes of a live input that may be buffered in memory */
    uint64_t rate;      /* bytes per second, 0: unlimited */
    uint64_t chunk;     /* bytes per message, 0: the library's default */
    uint64_t retry_s;   /* seconds to keep reconnecting, 0: do not reconnect */
    const char *shards; /* "stored", "virtual", NULL: the server's default */
    const char *index;  /* "now", "behind", "auto", NULL: the same */
    bool continues;     /* as in struct tl_feed_options */
    bool no_resume;
    bool no_wait;
    bool quiet;
    bool json; /* print the result as JSON */
    /* May be NULL: receives the bytes as they are read (import/bundle.h). */
    void (*tap)(void *context, const uint8_t *p, size_t n);
    /* May be NULL: called from time to time to do its own work; `last`: all bytes are sent. */
    const char *(*tend)(void *context, struct tracelake *lake, const char *trace, bool last);
    void *context;
    bool differs; /* set: the server has another capture under this name */
};

/*
 * Connect, unless it is done. With a spool, `spool` is its folder and input is stored meanwhile, so
 * that this goes on for `retry_s`. Without one (NULL) no server is an error, unless one is there
 * and ends without a word. Reports errors; returns TL_ARGS_GO or an exit status.
 */
int tl_sender_connect(struct tl_sender *sender, const char *spool);

/*
 * Send a capture. With a spool, reading begins before the server is contacted, and what earlier
 * pushes of this rig left there is sent too. Reports errors and how to continue; returns the exit
 * status.
 */
int tl_sender_push(struct tl_sender *sender, struct tl_bundle_capture *capture);

#endif
