/* SPDX-License-Identifier: MIT */
/* Ingest of captures, for rigs. Threads and errors as in lake.h. */
#ifndef TL_LAKE_INGEST_H
#define TL_LAKE_INGEST_H

#include "base/bytes.h"
#include "base/err.h"

#include <string.h>

struct tl_ingest;
struct tl_lake;

/* What is stored of a capture. */
struct tl_identity {
    uint64_t durable; /* bytes */
    bool complete;
    /* Their hash: "sha256:<64 hex>", or "crc32c:<8 hex>" while the former is not known. "": there
     * are none, or some are damaged, or were removed before they were hashed. */
    char content[72];
};

/* How shards of a new trace are stored: whether it gets the label shards=virtual (lake.h). The
 * default is that of the lake's options. */
enum tl_shards { TL_SHARDS_AS_LAKE /* the default */, TL_SHARDS_STORED, TL_SHARDS_VIRTUAL };

/* Parse the name; TL_SHARDS_AS_LAKE: unknown name. */
static inline enum tl_shards tl_shards_named(const char *text)
{
    return !strcmp(text, "virtual")  ? TL_SHARDS_VIRTUAL
           : !strcmp(text, "stored") ? TL_SHARDS_STORED
                                     : TL_SHARDS_AS_LAKE;
}

/* When the index of a new trace is made, its label `index` (lake.h): while it is decoded, behind
 * that, or behind once it lags. */
enum tl_index { TL_INDEX_AS_LAKE /* the default */, TL_INDEX_NOW, TL_INDEX_BEHIND, TL_INDEX_AUTO };

/* Parse the name; TL_INDEX_AS_LAKE: unknown name. */
static inline enum tl_index tl_index_named(const char *text)
{
    return !strcmp(text, "behind") ? TL_INDEX_BEHIND
           : !strcmp(text, "auto") ? TL_INDEX_AUTO
           : !strcmp(text, "now")  ? TL_INDEX_NOW
                                   : TL_INDEX_AS_LAKE;
}

struct tl_ingest_request {
    const char *rig;
    const char *trace; /* wanted id, or "" / NULL to generate one from rig and date */
    const char *setup; /* setup as INI text; must be the same on resume */
    bool resume;       /* the trace may exist; continue at its durable offset */
    uint64_t epoch; /* 0: a new push; otherwise that of the push being resumed after its connection
                       broke */
    const char *client; /* for the journal: origin of the push; NULL: not known */
    enum tl_shards shards;
    enum tl_index index;
    bool piece; /* one of many requests: a journal entry is written only when everything is there */
};

/*
 * Open or resume a capture. `trace_id` receives its id, `*durable` the offset at which the rig must
 * continue. `on_durable(context, offset)` is called from the spool's thread whenever more bytes
 * have become durable, bytes have been rejected, or another push takes over: see
 * tl_ingest_continues(). It must not block nor call the lake.
 *
 * A trace has one push at a time. Another push of the same rig that resumes takes over at once,
 * since the earlier one may hang in a dead connection. It gets a larger epoch, and whatever the
 * earlier one still appends is rejected. A complete trace can be opened, too, but not appended to:
 * see tl_ingest_identity(). Errors: TL_EXISTS (not resume, but the trace exists; another rig holds
 * it; it has another setup), TL_DENIED (another push has taken over since `epoch`, and holds it or
 * completed it), TL_AGAIN (it is being deleted), TL_BAD (setup), TL_NOSPACE, TL_IO.
 */
TL_MUST_USE int tl_ingest_open(struct tl_lake *lake, const struct tl_ingest_request *request,
                               void (*on_durable)(void *context, uint64_t offset), void *context,
                               struct tl_ingest **out, char trace_id[static 64], uint64_t *durable,
                               struct tl_fail *fail);
/* Number of this push of the trace, from 1. A push whose connection broke resumes with it. */
uint64_t tl_ingest_epoch(const struct tl_ingest *ingest);
/* What was stored when the push was opened. If its bytes are others than those of the capture to be
 * pushed, nothing must be appended. */
void tl_ingest_identity(const struct tl_ingest *ingest, struct tl_identity *out);
/* Check that everything appended so far has this hash, "crc32c:<8 hex>"; waits until it is durable.
 * TL_EXISTS: the stored bytes are others. Others as for tl_ingest_append(). */
TL_MUST_USE int tl_ingest_check(struct tl_ingest *ingest, const char *content,
                                struct tl_fail *fail);
/* Check that the push can continue. TL_OK; TL_DENIED or TL_AGAIN once another push has taken over;
 * TL_NOSPACE, TL_IO if appended bytes did not become durable, so that no more will. */
TL_MUST_USE int tl_ingest_continues(struct tl_ingest *ingest, struct tl_fail *fail);
/* Bytes within a block of memory from malloc() that is given away, and their checksum: see
 * tl_crc32c(). */
struct tl_given {
    struct tl_bytes bytes;
    uint32_t crc32c;
    void *block;
};
/*
 * Append bytes at `offset` (checked: TL_BAD if it leaves a hole; bytes that are already there are
 * compared with those, TL_EXISTS if they differ, and skipped). Copies, then returns; blocks while
 * more than a bounded amount waits for the disk. TL_NOSPACE, TL_IO: nothing of this call is kept,
 * and non-durable bytes are discarded: close, and open again. TL_DENIED: another push has taken
 * over, or the capture is complete.
 */
TL_MUST_USE int tl_ingest_append(struct tl_ingest *ingest, uint64_t offset, struct tl_bytes bytes,
                                 struct tl_fail *fail);
/* The same, but takes the block instead of copying, whatever it returns. */
TL_MUST_USE int tl_ingest_give(struct tl_ingest *ingest, uint64_t offset,
                               const struct tl_given *given, struct tl_fail *fail);
/*
 * The rig's connection was lost, and what is appended next came by another one: an unknown number
 * of bytes is missing before it. The place is stored with that byte. Waits until everything before
 * it is durable; call it again if the push is opened again before that byte is durable. As for
 * tl_ingest_append().
 */
TL_MUST_USE int tl_ingest_rejoin(struct tl_ingest *ingest, struct tl_fail *fail);
/* Complete the capture: waits until everything is durable; `*durable` is the total. An empty
 * capture is deleted when it is closed. */
TL_MUST_USE int tl_ingest_finish(struct tl_ingest *ingest, uint64_t *durable, struct tl_fail *fail);
/*
 * Set the reason for the end of the push in the journal; by default the entry says whether the
 * capture is complete.
 */
void tl_ingest_explain(struct tl_ingest *ingest, const char *why);
/*
 * End a capture whose rig is gone: it becomes complete with the bytes received. TL_NOTFOUND,
 * TL_DENIED while it is being pushed, TL_IO. Does nothing if it is already complete.
 */
TL_MUST_USE int tl_lake_seal(struct tl_lake *lake, const char *trace, struct tl_fail *fail);
/* Seal every trace that has not been pushed for this long; 0: never, the default. */
void tl_lake_set_seal_after(struct tl_lake *lake, uint64_t seconds);
/* Detach (also after finish). Appended bytes become durable; the trace can be resumed. A trace
 * without bytes is deleted. */
void tl_ingest_close(struct tl_ingest *ingest);
/* What is stored of a trace; reads at most one raw file, if it was not packed. TL_NOTFOUND; others
 * as for tl_lake_trace(). */
TL_MUST_USE int tl_lake_identify(struct tl_lake *lake, const char *trace, struct tl_identity *out,
                                 struct tl_fail *fail);
/* Durable offset of a trace. TL_NOTFOUND. */
TL_MUST_USE int tl_lake_offset(struct tl_lake *lake, const char *trace, uint64_t *durable,
                               bool *complete);

#endif
