/* SPDX-License-Identifier: MIT */
/*
 * One device's DI bytes on their way into a trace of the lake.
 *
 * The trace is opened a little later than the first byte comes, so that what enumeration finds out
 * about the modules can be in its setup. Until then bytes wait here, not many and not for long:
 * the trace is opened when the modules are described, when TL_OSD_HELD bytes wait, or
 * TL_OSD_HELD_MS after the first.
 *
 * Bytes are held until they are durable: where the disk is full, or fails, the trace waits and goes
 * on where its durable bytes end. A device that can be made to wait should be, when
 * tl_osd_capture_full() says so.
 *
 * Not thread-safe; blocks on the disk. `log` gets lines such as "rig osd begins trace …".
 */
#ifndef TL_OSDHOST_CAPTURE_H
#define TL_OSDHOST_CAPTURE_H

#include "lake.h"

#include <stdatomic.h>

/* Label of traces that come over a connection of the server's own: nobody else can go on with them.
 */
#define TL_LABEL_CONNECTION "connection"

#define TL_OSD_HELD    (256u << 10)
#define TL_OSD_HELD_MS 1500

struct tl_osd_bringup;

struct tl_osd_capture {
    struct tl_lake *lake; /* borrowed, as `setup` and `log` are */
    const char *setup;    /* INI text */
    const char *from;     /* where the device is, a label of the trace; NULL: not told */
    void *context;
    void (*log)(void *context, const char *line);
    char rig[64];
    enum tl_shards shards;
    bool at_once; /* `setup` is whole: the trace is opened with the first byte */

    char trace[64]; /* "" until it is open */
    uint64_t lost;  /* bytes that no trace took, since the disk refused them */

    struct tl_buf held; /* from `base` on, of which `sent` bytes are appended */
    uint64_t base;
    size_t sent;
    atomic_ullong durable; /* as the spool told last */
    char *described;       /* the setup with the modules in it, or NULL */
    struct tl_ingest *ingest;
    int64_t since; /* when the first held byte came */
    int64_t retry; /* not before */
    bool waits;    /* … for the disk */
};

void tl_osd_capture_init(struct tl_osd_capture *c, struct tl_lake *lake, const char *rig,
                         const char *setup, void *context,
                         void (*log)(void *context, const char *line));
/* `now`: milliseconds of a monotonic clock. TL_NOMEM. */
TL_MUST_USE int tl_osd_capture_add(struct tl_osd_capture *c, struct tl_bytes bytes, int64_t now);
/* What was found out by enumeration; of no effect once the trace is open. */
void tl_osd_capture_describe(struct tl_osd_capture *c, const struct tl_osd_bringup *b);
/* Hand over what is held, if it is time. A refusal is logged, and tried anew after a while. */
void tl_osd_capture_flush(struct tl_osd_capture *c, int64_t now);
/* So much waits for the disk that more would be lost. */
bool tl_osd_capture_full(const struct tl_osd_capture *c);
/* So much is not durable yet that more should not be read for a moment. */
bool tl_osd_capture_ahead(struct tl_osd_capture *c);
/* Bytes that wait to be handed over. */
size_t tl_osd_capture_pending(const struct tl_osd_capture *c);
/* When tl_osd_capture_flush() must be called at the latest, or -1. */
int64_t tl_osd_capture_due(const struct tl_osd_capture *c);
/*
 * All has come: the trace is complete. `why` is for the log. The capture can be used again, for
 * another trace.
 */
void tl_osd_capture_end(struct tl_osd_capture *c, const char *why);

/* Say of a trace over which connection it comes. As tl_lake_set_labels(). */
TL_MUST_USE int tl_osd_label_connection(struct tl_lake *lake, const char *trace, const char *from);

#endif
