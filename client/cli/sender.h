/* SPDX-License-Identifier: MIT */
/* One capture, sent as one trace: resumed, throttled, waited for, reported. */
#ifndef TL_CLI_SENDER_H
#define TL_CLI_SENDER_H

#include "import/bundle.h"
#include "tracelake.h"

struct tl_sender {
    const char *rig;
    const char *trace; /* NULL: the server makes an id */
    const char *setup; /* INI text */
    uint64_t rate;     /* bytes a second, 0: as fast as it goes */
    uint64_t chunk;    /* bytes a message, 0: the library's default */
    uint64_t retry_s;  /* 0: do not reconnect */
    bool no_resume;
    bool no_wait;
    bool quiet;
    /* May be NULL: sees the bytes as they are read (import/bundle.h), … */
    void (*tap)(void *context, const uint8_t *p, size_t n);
    /* … and is asked to go on with its own business now and then; `last`: all bytes are sent. */
    void (*tend)(void *context, struct tracelake *lake, const char *trace, bool last);
    void *context;
};

/* Send a capture's bytes. Says what went wrong; returns the exit status. */
int tl_sender_push(const struct tl_sender *sender, struct tracelake *lake,
                   const struct tl_bundle_capture *capture);

#endif
