/* SPDX-License-Identifier: MIT */
/* Captures coming in: the part of lake.h that rigs use. Threads and errors as there. */
#ifndef TL_LAKE_INGEST_H
#define TL_LAKE_INGEST_H

#include "base/bytes.h"
#include "base/err.h"

#include <string.h>

struct tl_lake;

struct tl_ingest;

/* How shards of a new trace are kept: it gets the label shards=virtual (lake.h), or not. */
enum tl_shards { TL_SHARDS_AS_LAKE /* as its options say */, TL_SHARDS_STORED, TL_SHARDS_VIRTUAL };

/* By its name; TL_SHARDS_AS_LAKE: there is none such. */
static inline enum tl_shards tl_shards_named(const char *text)
{
    return !strcmp(text, "virtual")  ? TL_SHARDS_VIRTUAL
           : !strcmp(text, "stored") ? TL_SHARDS_STORED
                                     : TL_SHARDS_AS_LAKE;
}

struct tl_ingest_request {
    const char *rig;
    const char *trace; /* wanted id, or "" / NULL for a new one made from rig and date */
    const char *setup; /* setup as INI text; must be equal on resume */
    bool resume;       /* the trace may exist; go on behind its durable offset */
    uint64_t
        epoch; /* 0: a new push; else that of the push that goes on after its connection broke */
    const char *client; /* for the journal: where it comes from; NULL: not known */
    enum tl_shards shards;
    bool piece; /* one of many requests: the journal hears of it when all is there */
};

/*
 * Open or resume a capture. `trace_id` gets its id, `*durable` the offset from which the rig
 * must go on. `on_durable(context, offset)` is called from the spool's thread whenever more has
 * become durable, or bytes have been refused, or another push takes over: tl_ingest_goes_on(). It
 * must not block nor call the lake.
 *
 * A trace has one push at a time. Another of the same rig that resumes takes over at once: the one
 * before it may hang in a dead connection. It has a larger epoch, and what the one before still
 * appends is refused. Errors: TL_EXISTS (not resume, but it exists; or another rig holds it),
 * TL_DENIED (another push has taken over since `epoch`, and has it or completed it), TL_AGAIN (it
 * is being deleted), TL_BAD (setup), TL_NOSPACE, TL_IO.
 */
TL_MUST_USE int tl_ingest_open(struct tl_lake *lake, const struct tl_ingest_request *request,
                               void (*on_durable)(void *context, uint64_t offset), void *context,
                               struct tl_ingest **out, char trace_id[static 64], uint64_t *durable,
                               struct tl_fail *fail);
/* Which push of the trace it is, from 1. A push whose connection broke resumes with it. */
uint64_t tl_ingest_epoch(const struct tl_ingest *ingest);
/* TL_OK; TL_DENIED or TL_AGAIN once another push has taken over; TL_NOSPACE, TL_IO where bytes that
 * were appended did not become durable, so that nothing more will. */
TL_MUST_USE int tl_ingest_goes_on(struct tl_ingest *ingest, struct tl_fail *fail);
/*
 * Append bytes at `offset` (checked: TL_BAD where it leaves a hole; bytes that are there already
 * are skipped). Copies, then returns; blocks while more than a bounded amount waits for the
 * disk. TL_NOSPACE, TL_IO: nothing of this call is kept, and what was not durable is forgotten:
 * close, and open again. TL_DENIED: another push has taken over, or the capture is complete.
 */
TL_MUST_USE int tl_ingest_append(struct tl_ingest *ingest, uint64_t offset, struct tl_bytes bytes,
                                 struct tl_fail *fail);
/* The capture is complete: waits until all is durable; `*durable` is the total. An empty one is
 * gone when it is closed. */
TL_MUST_USE int tl_ingest_finish(struct tl_ingest *ingest, uint64_t *durable, struct tl_fail *fail);
/* For the journal: why the push ends here. Else it says whether the capture is complete. */
void tl_ingest_explain(struct tl_ingest *ingest, const char *why);
/*
 * End a capture whose rig is gone: it is complete with the bytes that are there. TL_NOTFOUND,
 * TL_DENIED while it is being pushed, TL_IO. Does nothing with a complete one.
 */
TL_MUST_USE int tl_lake_seal(struct tl_lake *lake, const char *trace, struct tl_fail *fail);
/* Do so with every trace that nobody has pushed for so long; 0: never, as at first. */
void tl_lake_set_seal_after(struct tl_lake *lake, uint64_t seconds);
/* Detach (also after finish). What was appended becomes durable; the trace can be resumed. One that
 * has no bytes is deleted. */
void tl_ingest_close(struct tl_ingest *ingest);
/* Durable offset of a trace. TL_NOTFOUND. */
TL_MUST_USE int tl_lake_offset(struct tl_lake *lake, const char *trace, uint64_t *durable,
                               bool *complete);

#endif
