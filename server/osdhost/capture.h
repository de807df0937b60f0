/* SPDX-License-Identifier: MIT */
/*
 * Feeds the DI bytes of one device into a trace of the lake.
 *
 * The trace is opened a little after the first byte arrives, so that its setup can include the
 * modules found by enumeration. Until then bytes are held here: the trace is opened when the
 * modules are described, when TL_OSD_HELD bytes are held, or TL_OSD_HELD_MS after the first.
 *
 * Bytes are held until they are durable: if the disk is full or fails, the trace waits and
 * continues after its durable bytes. Apply back-pressure to the device, if possible, when
 * tl_osd_capture_full() returns true.
 *
 * Not thread-safe; blocks on the disk. `log` receives lines such as "rig osd begins trace …".
 */
#ifndef TL_OSDHOST_CAPTURE_H
#define TL_OSDHOST_CAPTURE_H

#include "base/buf.h"
#include "lake_ingest.h"

#include <stdatomic.h>

struct tl_lake;

/* Label of traces received over the server's own connections: nobody else can resume them. */
#define TL_LABEL_CONNECTION "connection"

#define TL_OSD_HELD    (256u << 10)
#define TL_OSD_HELD_MS 1500

struct tl_osd_bringup;

struct tl_osd_capture {
    struct tl_lake *lake; /* borrowed, like `setup` and `log` */
    const char *setup;    /* INI text */
    const char *from;     /* address of the device, a label of the trace; NULL: none */
    void *context;
    void (*log)(void *context, const char *line);
    char rig[64];
    enum tl_shards shards;
    enum tl_index index;
    bool at_once; /* `setup` is complete: open the trace with the first byte */

    char trace[64]; /* "" until it is open */
    bool adopts;    /* `trace` is of an earlier run of the server */
    uint64_t lost;  /* bytes that were dropped because the disk failed */

    struct tl_buf held; /* bytes from `base` on, of which `sent` are appended */
    uint64_t base;
    size_t sent;
    atomic_ullong durable; /* as last reported by the spool */
    char *described;       /* the setup including the modules, or NULL */
    uint64_t rejoined; /* the connection was lost before this byte; UINT64_MAX: none, or stored */
    struct tl_ingest *ingest;
    int64_t since; /* arrival of the first held byte */
    int64_t retry; /* earliest time of the next attempt */
    bool waits;    /* waiting for the disk */
};

void tl_osd_capture_init(struct tl_osd_capture *c, struct tl_lake *lake, const char *rig,
                         const char *setup, void *context,
                         void (*log)(void *context, const char *line));
/* Add received bytes. `now`: milliseconds of a monotonic clock. TL_NOMEM. */
TL_MUST_USE int tl_osd_capture_add(struct tl_osd_capture *c, struct tl_bytes bytes, int64_t now);
/* Add the modules found by enumeration to the setup; no effect once the trace is open. */
void tl_osd_capture_describe(struct tl_osd_capture *c, const struct tl_osd_bringup *b);
/* Append held bytes to the trace, if it is time. A failure is logged, and retried later. */
void tl_osd_capture_flush(struct tl_osd_capture *c, int64_t now);
/* Is the buffer full, so that further bytes would be dropped? */
bool tl_osd_capture_full(const struct tl_osd_capture *c);
/* Is so much not durable yet that reading should pause? */
bool tl_osd_capture_ahead(struct tl_osd_capture *c);
/* Number of bytes not yet appended. */
size_t tl_osd_capture_pending(const struct tl_osd_capture *c);
/* Latest time to call tl_osd_capture_flush(), or -1. */
int64_t tl_osd_capture_due(const struct tl_osd_capture *c);
/*
 * The connection was lost, and what is added next comes by another one: the trace goes on, and the
 * place is stored with it. False: the one before is not stored yet, because the disk failed; end
 * the trace.
 */
bool tl_osd_capture_rejoin(struct tl_osd_capture *c);
/* The same for a trace that an earlier run of the server began and did not complete. Before
 * anything is added. */
void tl_osd_capture_adopt(struct tl_osd_capture *c, const char *trace);
/* The server stops: as tl_osd_capture_end(), but the trace is not completed: its connection may
 * come back to another run of the server. */
void tl_osd_capture_leave(struct tl_osd_capture *c, const char *why);
/*
 * End of the input: complete the trace. `why` is logged. The object can then be used for another
 * trace.
 */
void tl_osd_capture_end(struct tl_osd_capture *c, const char *why);

#endif
