/* SPDX-License-Identifier: MIT */
/*
 * The catalog: small transactional metadata of everything in the store. Each function is one
 * transaction; a committed change survives a power cut. The backend decides where the catalog is
 * stored: catalog_ops.h.
 *
 * Internally locked. TL_NOSPACE, TL_IO if the medium fails; TL_DENIED if the lease that guards the
 * trace was lost.
 */
#ifndef TL_STORE_CATALOG_H
#define TL_STORE_CATALOG_H

#include "lake_rows.h"
#include "store/backend.h"
#include "store/clockfit.h"
#include "store/shard.h"

struct tl_catalog;

/* Open the backend's catalog, creating or upgrading it. `backend` is borrowed. TL_UNSUPPORTED: it
 * was written by a newer program. TL_BAD: it is damaged. */
TL_MUST_USE int tl_catalog_open(struct tl_catalog **out, struct tl_backend *backend,
                                struct tl_fail *fail);
void tl_catalog_close(struct tl_catalog *catalog); /* accepts NULL */
/*
 * A catalog is fresh until tl_catalog_ready() is called once: it is empty, but the store may have
 * objects from which it can be filled.
 */
bool tl_catalog_fresh(const struct tl_catalog *catalog);
TL_MUST_USE int tl_catalog_ready(struct tl_catalog *catalog, struct tl_fail *fail);
/* Forget all traces and images. */
TL_MUST_USE int tl_catalog_clear(struct tl_catalog *catalog, struct tl_fail *fail);
/* Check the structure of the database, completely (`whole`) or only pages: `each` receives the
 * findings. Consistency with the store's objects is checked by tl_lake_verify(). */
TL_MUST_USE int tl_catalog_check(struct tl_catalog *catalog, bool whole,
                                 int (*each)(void *context, const char *finding), void *context,
                                 struct tl_fail *fail);

/* ---- traces -------------------------------------------------------------------------------- */

struct tl_catalog_trace {
    const char *id, *rig, *format, *setup, *message;
    const char *labels;  /* "key=value\n"…, read-only */
    uint64_t notes;      /* number of notes, read-only */
    const char *earlier; /* the setup before the present one, "" or NULL: none */
    const char *content; /* "sha256:<64 hex>" of the raw bytes, "" or NULL: not known */
    int state;           /* enum tl_trace_state */
    bool complete;       /* the rig has reported the end */
    int64_t created_ns, updated_ns;
    uint64_t raw_bytes;     /* total, once complete */
    uint64_t decoded_bytes; /* set when it was sealed */
    uint64_t insns;         /* positions of the serving generation, without derived streams */
    uint64_t stored_bytes;  /* bytes of its shards, as last written */
    uint64_t generation;    /* the serving generation */
    uint64_t wanted;        /* the generation to be decoded; equal when decoding is complete */
    bool raw_removed;       /* by retention: it cannot be decoded again */
    bool decoded_removed;   /* by retention: decoding again restores it */
};

/* Add a trace. TL_EXISTS. */
TL_MUST_USE int tl_catalog_add_trace(struct tl_catalog *catalog,
                                     const struct tl_catalog_trace *trace, struct tl_fail *fail);
/* Write all members except labels, rig and creation time. TL_NOTFOUND. */
TL_MUST_USE int tl_catalog_update_trace(struct tl_catalog *catalog,
                                        const struct tl_catalog_trace *trace, struct tl_fail *fail);
/* Remove traces with their streams, shards, labels and notes: all or none. If traces are stored
 * separately (in a cluster), some may be gone after a failure; missing ones are not an error. */
TL_MUST_USE int tl_catalog_remove_traces(struct tl_catalog *catalog, const char *const *ids,
                                         size_t n, struct tl_fail *fail);

/* Is there pending work: is the trace live or being decoded, or is its hash missing? */
static inline bool tl_catalog_is_unfinished(const struct tl_catalog_trace *t)
{
    return t->state < TL_TRACE_SEALED ||
           (t->complete && !t->raw_removed && !(t->content && *t->content));
}

/*
 * A store may have a hundred thousand traces or more, so that only requested rows are read. Strings
 * are borrowed for the call of `each`, which must not call the catalog; a result < 0 of it ends the
 * call and is returned.
 */

/* Call `each` with up to `most` traces after a place (NULL: from the newest), newest first. Returns
 * 1: there may be more, even if there were fewer; TL_OK: end of the list. */
TL_MUST_USE int tl_catalog_page(struct tl_catalog *catalog, const struct tl_trace_place *behind,
                                size_t most,
                                int (*each)(void *context, const struct tl_catalog_trace *trace),
                                void *context, struct tl_fail *fail);
/* Call `each` with every unfinished trace. TL_UNSUPPORTED if processes share the store: there,
 * tl_catalog_changes() reports them. */
TL_MUST_USE int tl_catalog_unfinished(struct tl_catalog *catalog,
                                      int (*each)(void *context,
                                                  const struct tl_catalog_trace *trace),
                                      void *context, struct tl_fail *fail);
/* Call `each` with the newest trace whose raw bytes have this hash. TL_NOTFOUND. */
TL_MUST_USE int tl_catalog_by_content(struct tl_catalog *catalog, const char *content,
                                      int (*each)(void *context,
                                                  const struct tl_catalog_trace *trace),
                                      void *context, struct tl_fail *fail);

struct tl_catalog_totals {
    uint64_t states[4];           /* number of traces in each enum tl_trace_state */
    uint64_t raw_bytes;           /* raw bytes kept of sealed and failed traces */
    uint64_t stored_bytes, insns; /* of the same traces */
};
/* Totals over all traces. If processes share the store: as of the last tl_catalog_changes(). */
TL_MUST_USE int tl_catalog_totals(struct tl_catalog *catalog, struct tl_catalog_totals *out,
                                  struct tl_fail *fail);

/* Call `each` with every trace, oldest first. */
TL_MUST_USE int tl_catalog_traces(struct tl_catalog *catalog,
                                  int (*each)(void *context, const struct tl_catalog_trace *trace),
                                  void *context, struct tl_fail *fail);
/* Call `each` with one trace. TL_NOTFOUND. */
TL_MUST_USE int tl_catalog_find(struct tl_catalog *catalog, const char *id,
                                int (*each)(void *context, const struct tl_catalog_trace *trace),
                                void *context, struct tl_fail *fail);
/*
 * Call `each` with every trace whose row was changed, by any process, since the last call; the
 * first call reports all. The row is NULL if the trace is gone. One caller at a time.
 * TL_UNSUPPORTED if processes cannot share the store.
 */
TL_MUST_USE int tl_catalog_changes(struct tl_catalog *catalog,
                                   int (*each)(void *context, const char *id,
                                               const struct tl_catalog_trace *trace),
                                   void *context, struct tl_fail *fail);
/* Set a label; an empty value removes the key. TL_IO: no such trace. */
TL_MUST_USE int tl_catalog_set_label(struct tl_catalog *catalog, const char *trace, const char *key,
                                     const char *value, struct tl_fail *fail);
/* Append "key=value\n"… in order of key. */
TL_MUST_USE int tl_catalog_labels(struct tl_catalog *catalog, const char *trace, struct tl_buf *out,
                                  struct tl_fail *fail);

/* Write a new or existing note of a trace. */
TL_MUST_USE int tl_catalog_put_note(struct tl_catalog *catalog, const char *trace,
                                    const struct tl_note *note, struct tl_fail *fail);
/* Remove a note. TL_NOTFOUND. */
TL_MUST_USE int tl_catalog_remove_note(struct tl_catalog *catalog, const char *trace, uint64_t id,
                                       struct tl_fail *fail);
/* Call `each` with every note of a trace, by id. */
TL_MUST_USE int tl_catalog_notes(struct tl_catalog *catalog, const char *trace,
                                 int (*each)(void *context, const struct tl_note *note),
                                 void *context, struct tl_fail *fail);

/* ---- streams and shards -------------------------------------------------------------------- */

struct tl_catalog_stream {
    uint64_t index; /* in order of appearance */
    const char *name;
    int protocol; /* enum tl_protocol */
    uint64_t lost_bytes;
    struct tl_clock_relation clock;
};

TL_MUST_USE int tl_catalog_put_stream(struct tl_catalog *catalog, const char *trace,
                                      uint64_t generation, const struct tl_catalog_stream *stream,
                                      struct tl_fail *fail);
TL_MUST_USE int
tl_catalog_streams(struct tl_catalog *catalog, const char *trace, uint64_t generation,
                   int (*each)(void *context, const struct tl_catalog_stream *stream),
                   void *context, struct tl_fail *fail);

struct tl_catalog_shard {
    uint64_t stream;
    struct tl_shard_row row;
    struct tl_bytes summary; /* encoded buckets at TL_LEVEL_SUMMARY */
};

/* Add sealed shards of a generation, all or none. Existing ones are replaced. */
TL_MUST_USE int tl_catalog_add_shards(struct tl_catalog *catalog, const char *trace,
                                      uint64_t generation, const struct tl_catalog_shard *shards,
                                      size_t n, struct tl_fail *fail);
/* Call `each` with every shard of a stream, in order. */
TL_MUST_USE int tl_catalog_shards(struct tl_catalog *catalog, const char *trace,
                                  uint64_t generation, uint64_t stream,
                                  int (*each)(void *context, const struct tl_shard_row *row),
                                  void *context, struct tl_fail *fail);
/* Call `each` with the summaries of shards [from, to). */
TL_MUST_USE int tl_catalog_summaries(struct tl_catalog *catalog, const char *trace,
                                     uint64_t generation, uint64_t stream, uint64_t from,
                                     uint64_t to,
                                     int (*each)(void *context, struct tl_bytes summary),
                                     void *context, struct tl_fail *fail);
/* Check that a shard's summary is as it was stored. */
TL_MUST_USE int tl_catalog_check_summary(struct tl_catalog *catalog, const char *trace,
                                         uint64_t generation, uint64_t stream, uint64_t number,
                                         bool *intact, struct tl_fail *fail);
/* Drop the shards of a stream from number `from` on, or (stream UINT64_MAX) streams and shards of a
 * whole generation. */
TL_MUST_USE int tl_catalog_drop_shards(struct tl_catalog *catalog, const char *trace,
                                       uint64_t generation, uint64_t stream, uint64_t from,
                                       struct tl_fail *fail);

/* Drop all generations of a trace except these two. */
TL_MUST_USE int tl_catalog_drop_others(struct tl_catalog *catalog, const char *trace,
                                       uint64_t generation, uint64_t other, struct tl_fail *fail);

/* ---- retention ----------------------------------------------------------------------------- */

/* Set (or, with NULL, remove) the rule of a scope: "" for all, "label KEY=VALUE", "trace ID". */
TL_MUST_USE int tl_catalog_set_retention(struct tl_catalog *catalog, const char *scope,
                                         const struct tl_retention *rule, struct tl_fail *fail);
/* Call `each` with every rule, in order of scope. */
TL_MUST_USE int tl_catalog_retention(struct tl_catalog *catalog,
                                     int (*each)(void *context, const char *scope,
                                                 const struct tl_retention *rule),
                                     void *context, struct tl_fail *fail);

/* ---- images -------------------------------------------------------------------------------- */

struct tl_catalog_image {
    const char *hash, *name, *build_id;
    uint64_t size;
    bool announced; /* traces that name it are decoded with it; read-only */
};
/* Add an image; an existing one is unchanged. */
TL_MUST_USE int tl_catalog_add_image(struct tl_catalog *catalog,
                                     const struct tl_catalog_image *image, struct tl_fail *fail);
TL_MUST_USE int tl_catalog_announce_image(struct tl_catalog *catalog, const char *hash,
                                          struct tl_fail *fail);
/* Remove an image; a missing one is not an error. */
TL_MUST_USE int tl_catalog_remove_image(struct tl_catalog *catalog, const char *hash,
                                        struct tl_fail *fail);
TL_MUST_USE int tl_catalog_images(struct tl_catalog *catalog,
                                  int (*each)(void *context, const struct tl_catalog_image *image),
                                  void *context, struct tl_fail *fail);

#endif
