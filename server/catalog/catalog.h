/* SPDX-License-Identifier: MIT */
/*
 * The catalog: small transactional metadata of everything in the store. Each function is one
 * transaction; a committed change survives a power cut.
 *
 * Implementations: SQLite (catalog_sql.h), for backends with tl_backend_ops.catalog_uri; omap of a
 * Ceph cluster (rados/rados_rows.h). One test runs against both.
 *
 * Internally locked. TL_NOSPACE, TL_IO if the medium fails; TL_DENIED if the lease that guards the
 * trace was lost.
 */
#ifndef TL_CATALOG_CATALOG_H
#define TL_CATALOG_CATALOG_H

#include "catalog/clockfit.h"
#include "lake_rows.h"
#include "shard/shard.h"
#include "store/backend.h"

struct tl_catalog;

/* Open the backend's catalog, creating or upgrading it. `backend` is borrowed. TL_UNSUPPORTED: it
 * was written by a newer program. TL_BAD: it is damaged. */
TL_MUST_USE int tl_catalog_open(struct tl_catalog **out, struct tl_backend *backend,
                                struct tl_fail *fail);
void tl_catalog_close(struct tl_catalog *catalog); /* accepts NULL */

/* ---- rows ---------------------------------------------------------------------------------- */

struct tl_catalog_trace {
    const char *id, *rig, *format, *setup, *message;
    const char *labels;  /* "key=value\n"… by key, "" or NULL: none; written by add_trace alone */
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

/* Is there pending work: is the trace live or being decoded, or is its hash missing? */
static inline bool tl_catalog_is_unfinished(const struct tl_catalog_trace *t)
{
    return t->state < TL_TRACE_SEALED ||
           (t->complete && !t->raw_removed && !(t->content && *t->content));
}

struct tl_catalog_totals {
    uint64_t states[4];           /* number of traces in each enum tl_trace_state */
    uint64_t raw_bytes;           /* raw bytes kept of sealed and failed traces */
    uint64_t stored_bytes, insns; /* of the same traces */
};

struct tl_catalog_stream {
    uint64_t index; /* in order of appearance */
    const char *name;
    int protocol; /* enum tl_protocol */
    uint64_t lost_bytes;
    struct tl_clock_relation clock;
};

struct tl_catalog_shard {
    uint64_t stream;
    struct tl_shard_row row;
    struct tl_bytes summary; /* tl_shard_summary_encode() */
};

struct tl_catalog_image {
    const char *hash, *name, *build_id;
    uint64_t size;
    bool announced; /* traces that name it are decoded with it; read-only */
};

/*
 * Callbacks with a row each. Strings are borrowed for the call. They must not call the catalog; a
 * result < 0 ends the enumeration and is returned.
 */
typedef int tl_each_trace(void *context, const struct tl_catalog_trace *trace);
typedef int tl_each_change(void *context, const char *id, const struct tl_catalog_trace *trace);
typedef int tl_each_note(void *context, const struct tl_note *note);
typedef int tl_each_stream(void *context, const struct tl_catalog_stream *stream);
typedef int tl_each_shard(void *context, const struct tl_shard_row *row);
typedef int tl_each_summary(void *context, struct tl_bytes summary);
typedef int tl_each_rule(void *context, const char *scope, const struct tl_retention *rule);
typedef int tl_each_image(void *context, const struct tl_catalog_image *image);
typedef int tl_each_finding(void *context, const char *finding);

/* A row whose checksum does not fit its values. */
enum tl_damaged_table {
    TL_DAMAGED_TRACE,
    TL_DAMAGED_LABEL,
    TL_DAMAGED_NOTE,
    TL_DAMAGED_STREAM,
    TL_DAMAGED_SHARD,
    TL_DAMAGED_IMAGE,
    TL_DAMAGED_RULE
};
struct tl_catalog_damage {
    enum tl_damaged_table table;
    const char *trace; /* that it belongs to, "": none */
    const char *key;   /* its key in the table, or what is left of it */
};
typedef int tl_each_damaged(void *context, const struct tl_catalog_damage *damage);

/* ---- functions ----------------------------------------------------------------------------- */

/* A store may have a hundred thousand traces or more, so that only requested rows are read. */
struct tl_catalog_ops {
    void (*close)(struct tl_catalog *catalog); /* not with NULL */
    /*
     * A catalog is fresh until `ready` is called once: it is empty, but the store may have objects
     * from which it can be filled.
     */
    bool (*fresh)(const struct tl_catalog *catalog);
    TL_MUST_USE int (*ready)(struct tl_catalog *catalog, struct tl_fail *fail);
    /* Did the medium take the last change? Otherwise TL_NOSPACE or TL_IO, until it takes another
     * one, for which `ready` may be called again. Does no I/O. NULL: not known. */
    TL_MUST_USE int (*writable)(struct tl_catalog *catalog, struct tl_fail *fail);
    /* Forget all traces and images. */
    TL_MUST_USE int (*clear)(struct tl_catalog *catalog, struct tl_fail *fail);
    /* Check the structure of the database, completely (`whole`) or only pages: `each` receives the
     * findings. Consistency with the store's objects is checked by tl_lake_verify(). */
    TL_MUST_USE int (*check)(struct tl_catalog *catalog, bool whole, tl_each_finding *each,
                             void *context, struct tl_fail *fail);

    /*
     * Call `each` (may be NULL) with every damaged row, or with those of one trace (unless it is
     * ""; a row whose key is damaged is none of them). Others can use the catalog meanwhile.
     * Functions that read a trace with one return
     * TL_BAD from then on; so they do of a damaged row that they meet. `page` shows such a trace as
     * failed, `traces` and `unfinished` pass it by. NULL: the medium has checksums itself.
     */
    TL_MUST_USE int (*damaged)(struct tl_catalog *catalog, const char *trace, tl_each_damaged *each,
                               void *context, struct tl_fail *fail);
    /* Remove a damaged image or rule, or all rows of a trace, so that they can be written anew.
     * NULL as `damaged`. */
    TL_MUST_USE int (*purge)(struct tl_catalog *catalog, const struct tl_catalog_damage *what,
                             struct tl_fail *fail);

    /* Add a trace with its labels, without notes. TL_EXISTS. */
    TL_MUST_USE int (*add_trace)(struct tl_catalog *catalog, const struct tl_catalog_trace *trace,
                                 struct tl_fail *fail);
    /* Write all members except labels, rig and creation time. TL_NOTFOUND. */
    TL_MUST_USE int (*update_trace)(struct tl_catalog *catalog,
                                    const struct tl_catalog_trace *trace, struct tl_fail *fail);
    /* Remove traces with their streams, shards, labels and notes: all or none. If traces are stored
     * separately (in a cluster), some may be gone after a failure; missing ones are not an error.
     */
    TL_MUST_USE int (*remove_traces)(struct tl_catalog *catalog, const char *const *ids, size_t n,
                                     struct tl_fail *fail);
    /* Call `each` with up to `most` traces after a place (NULL: from the newest), newest first.
     * Returns 1: there may be more, even if there were fewer; TL_OK: end of the list. */
    TL_MUST_USE int (*page)(struct tl_catalog *catalog, const struct tl_trace_place *after,
                            size_t most, tl_each_trace *each, void *context, struct tl_fail *fail);
    /* Call `each` with every unfinished trace. TL_UNSUPPORTED if processes share the store: there,
     * `changes` reports them. */
    TL_MUST_USE int (*unfinished)(struct tl_catalog *catalog, tl_each_trace *each, void *context,
                                  struct tl_fail *fail);
    /* Call `each` with the newest trace whose raw bytes have this hash. TL_NOTFOUND. */
    TL_MUST_USE int (*by_content)(struct tl_catalog *catalog, const char *content,
                                  tl_each_trace *each, void *context, struct tl_fail *fail);
    /* Totals over all traces. If processes share the store: as of the last call of `changes`. */
    TL_MUST_USE int (*totals)(struct tl_catalog *catalog, struct tl_catalog_totals *out,
                              struct tl_fail *fail);
    /* Call `each` with every trace, oldest first. */
    TL_MUST_USE int (*traces)(struct tl_catalog *catalog, tl_each_trace *each, void *context,
                              struct tl_fail *fail);
    /* Call `each` with one trace. TL_NOTFOUND. */
    TL_MUST_USE int (*find)(struct tl_catalog *catalog, const char *id, tl_each_trace *each,
                            void *context, struct tl_fail *fail);
    /*
     * Call `each` with every trace whose row was changed, by any process, since the last call; the
     * first call reports all. The row is NULL if the trace is gone. One caller at a time.
     * TL_UNSUPPORTED if processes cannot share the store.
     */
    TL_MUST_USE int (*changes)(struct tl_catalog *catalog, tl_each_change *each, void *context,
                               struct tl_fail *fail);

    /* Set a label; an empty value removes the key. TL_IO: no such trace. */
    TL_MUST_USE int (*set_label)(struct tl_catalog *catalog, const char *trace, const char *key,
                                 const char *value, struct tl_fail *fail);
    /* Append "key=value\n"… in order of key. */
    TL_MUST_USE int (*labels)(struct tl_catalog *catalog, const char *trace, struct tl_buf *out,
                              struct tl_fail *fail);
    /* Write a new or existing note of a trace. */
    TL_MUST_USE int (*put_note)(struct tl_catalog *catalog, const char *trace,
                                const struct tl_note *note, struct tl_fail *fail);
    /* Remove a note. TL_NOTFOUND. */
    TL_MUST_USE int (*remove_note)(struct tl_catalog *catalog, const char *trace, uint64_t id,
                                   struct tl_fail *fail);
    /* Call `each` with every note of a trace, by id. */
    TL_MUST_USE int (*notes)(struct tl_catalog *catalog, const char *trace, tl_each_note *each,
                             void *context, struct tl_fail *fail);

    TL_MUST_USE int (*put_stream)(struct tl_catalog *catalog, const char *trace,
                                  uint64_t generation, const struct tl_catalog_stream *stream,
                                  struct tl_fail *fail);
    TL_MUST_USE int (*streams)(struct tl_catalog *catalog, const char *trace, uint64_t generation,
                               tl_each_stream *each, void *context, struct tl_fail *fail);
    /* Add sealed shards of a generation, all or none. Existing ones are replaced. */
    TL_MUST_USE int (*add_shards)(struct tl_catalog *catalog, const char *trace,
                                  uint64_t generation, const struct tl_catalog_shard *shards,
                                  size_t n, struct tl_fail *fail);
    /* Call `each` with every shard of a stream, in order. */
    TL_MUST_USE int (*shards)(struct tl_catalog *catalog, const char *trace, uint64_t generation,
                              uint64_t stream, tl_each_shard *each, void *context,
                              struct tl_fail *fail);
    /* Call `each` with the summaries of shards [from, to). */
    TL_MUST_USE int (*summaries)(struct tl_catalog *catalog, const char *trace, uint64_t generation,
                                 uint64_t stream, uint64_t from, uint64_t to, tl_each_summary *each,
                                 void *context, struct tl_fail *fail);
    /* Check that a shard's summary is as it was stored. */
    TL_MUST_USE int (*check_summary)(struct tl_catalog *catalog, const char *trace,
                                     uint64_t generation, uint64_t stream, uint64_t number,
                                     bool *intact, struct tl_fail *fail);
    /* Drop the shards of a stream from number `from` on, or (stream UINT64_MAX) streams and shards
     * of a whole generation. */
    TL_MUST_USE int (*drop_shards)(struct tl_catalog *catalog, const char *trace,
                                   uint64_t generation, uint64_t stream, uint64_t from,
                                   struct tl_fail *fail);
    /* Drop all generations of a trace except these two. */
    TL_MUST_USE int (*drop_others)(struct tl_catalog *catalog, const char *trace,
                                   uint64_t generation, uint64_t other, struct tl_fail *fail);

    /* Set (or, with NULL, remove) the rule of a scope: "" for all, "label KEY=VALUE",
     * "trace ID". */
    TL_MUST_USE int (*set_retention)(struct tl_catalog *catalog, const char *scope,
                                     const struct tl_retention *rule, struct tl_fail *fail);
    /* Call `each` with every rule, in order of scope. */
    TL_MUST_USE int (*retention)(struct tl_catalog *catalog, tl_each_rule *each, void *context,
                                 struct tl_fail *fail);

    /* Add an image; an existing one is unchanged. */
    TL_MUST_USE int (*add_image)(struct tl_catalog *catalog, const struct tl_catalog_image *image,
                                 struct tl_fail *fail);
    TL_MUST_USE int (*announce_image)(struct tl_catalog *catalog, const char *hash,
                                      struct tl_fail *fail);
    /* Remove an image; a missing one is not an error. */
    TL_MUST_USE int (*remove_image)(struct tl_catalog *catalog, const char *hash,
                                    struct tl_fail *fail);
    TL_MUST_USE int (*images)(struct tl_catalog *catalog, tl_each_image *each, void *context,
                              struct tl_fail *fail);
};

/* An implementation's struct begins with this. */
struct tl_catalog {
    const struct tl_catalog_ops *ops;
};

#endif
