/* SPDX-License-Identifier: MIT */
/* One capture, sent as one trace: spooled, resumed, throttled, waited for, reported. */
#ifndef TL_CLI_SENDER_H
#define TL_CLI_SENDER_H

#include "cli/remote.h"
#include "import/bundle.h"

struct tl_sender {
    const struct tl_remote *remote;
    struct tracelake *lake; /* NULL: not connected yet; the caller closes it */
    const char *rig;
    const char *trace; /* NULL: whoever has to makes an id */
    const char *spool; /* folder, NULL: none */
    uint64_t spool_most;
    uint64_t memory;    /* bytes of a live input that may wait in memory */
    uint64_t rate;      /* bytes a second, 0: as fast as it goes */
    uint64_t chunk;     /* bytes a message, 0: the library's default */
    uint64_t retry_s;   /* 0: do not reconnect */
    const char *shards; /* "stored", "virtual", NULL: as the server does */
    bool goes_on;       /* as of struct tl_feed_options */
    bool no_resume;
    bool no_wait;
    bool quiet;
    bool json; /* what became of it */
    /* May be NULL: sees the bytes as they are read (import/bundle.h), … */
    void (*tap)(void *context, const uint8_t *p, size_t n);
    /* … and is asked to go on with its own business now and then; `last`: all bytes are sent. */
    const char *(*tend)(void *context, struct tracelake *lake, const char *trace, bool last);
    void *context;
};

/*
 * Send a capture's bytes. With a spool, reading begins before the server is looked for, and what
 * was left there by pushes of this rig is sent, too. Says what went wrong and how to go on; returns
 * the exit status.
 */
int tl_sender_push(struct tl_sender *sender, struct tl_bundle_capture *capture);

#endif
