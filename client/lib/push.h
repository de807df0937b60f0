/* SPDX-License-Identifier: MIT */
/*
 * A push session: a ring buffer of unacknowledged bytes, and the call that sends them.
 *
 *     acked ≤ sent ≤ head, all offsets in the capture; [acked, head) is in the ring
 *
 * When the connection breaks, a new call is opened with resume; the server reports its durable
 * offset, `sent` is set back to it, and everything after it is sent again.
 */
#ifndef TL_CLIENT_PUSH_H
#define TL_CLIENT_PUSH_H

#include "ask.h"

/* What keeps the push from going on, until it has gone on. */
struct tl_push_fault {
    int64_t begun; /* ms on the monotonic clock; 0: nothing does */
    int64_t again; /* when the push was opened again; 0: not yet */
    bool full;     /* the server accepts the push, and then rejects its bytes */
    bool told;     /* it was reported */
    int pause_ms;  /* the next pause, 0: the first one */
};

struct tracelake_push {
    struct tracelake *lake;
    struct tl_ask *ask; /* NULL: not connected */
    char *rig, *setup, *trace, *shards, *index;
    size_t chunk;
    int retry_ms; /* -1: forever, 0: never */
    void (*notice)(void *context, const char *text);
    void *context;
    uint8_t *ring;
    size_t cap;
    uint64_t acked, sent, head;
    uint64_t epoch; /* of this push, 0: not opened yet */
    int64_t since;  /* time of the last acknowledgement or connect: ms */
    /* CRC32C of the capture up to `summed`, the highest offset sent so far; `has_sum`: it is known.
     */
    uint32_t sum;
    uint64_t summed;
    bool has_sum;
    struct tracelake_stored opened;     /* what the server had when the push was opened last */
    struct tracelake_content *compared; /* see tracelake_push_compare() */
    uint64_t compared_to;
    struct tl_push_fault fault;
    bool finishing; /* Finish has been queued in this call */
    bool finished;
    bool failed;
    struct tracelake_error why;
};

/* Open the call; `*durable` receives the offset at which to continue. */
TRACELAKE_MUST_USE int tl_push_begin(struct tracelake_push *push, bool resume, uint64_t *durable,
                                     struct tracelake_error *error);
/* Queue what the connection accepts, transfer for up to `ms`, process replies. AGAIN: nothing
 * moved. */
TRACELAKE_MUST_USE int tl_push_serve_once(struct tracelake_push *push, int ms,
                                          struct tracelake_error *error);
TRACELAKE_MUST_USE int tl_push_send_finish(struct tracelake_push *push,
                                           struct tracelake_error *error);
/* Go on at `durable`, after a reconnect. IO: the server has lost bytes; EXISTS: it has others. */
TRACELAKE_MUST_USE int tl_push_rewind(struct tracelake_push *push, uint64_t durable,
                                      struct tracelake_error *error);

/* Bytes were acknowledged, or the call is open and there are none to be acknowledged. */
void tl_push_goes_on(struct tracelake_push *push);

#endif
