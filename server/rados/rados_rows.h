/* SPDX-License-Identifier: MIT */
/*
 * Rows of the catalog as values of the index: a sequence of numbers (varint.h) and texts, then the
 * CRC-32C of these.
 *
 *   T/<trace>                                  the trace, with its labels
 *   A/<created>/<trace>                        its place in the list of all, newest first
 *   S/<content>/<trace>                        its name by the hash of its raw bytes
 *   N/<trace>/<note>                           a note
 *   R/<trace>/<generation>/<stream>            a stream
 *   H/<trace>/<generation>/<stream>/<shard>    a shard
 *   Y/<trace>/<generation>/<stream>/<shard>    its summary
 *   I/<hash>                                   an image
 *   C/<scope>                                  a retention rule
 *
 * Numbers in keys are 16 hex digits, so that they sort numerically. Rows of a trace are in its
 * index object, so that any change of it is one operation; images are distributed by their hash,
 * rules are stored together.
 */
#ifndef TL_RADOS_ROWS_H
#define TL_RADOS_ROWS_H

#include "catalog/catalog.h"
#include "lake_rows.h"
#include "rados/rados_int.h"
#include "shard/varint.h"

#define TL_ROW_KEY   320
#define TL_ROW_TRIES 1000 /* attempts to change a row that others keep changing */

struct tl_rados_catalog {
    struct tl_catalog base;
    struct tl_rados *r;
    bool fresh;
    struct tl_seen *seen; /* per index object: rados_changes.c */
    pthread_mutex_t lock;
    struct tl_catalog_totals totals; /* guarded by the lock: as of the last look for changes */
};

static inline struct tl_rados *tl_rados_backing(const struct tl_catalog *catalog)
{
    return ((const struct tl_rados_catalog *)catalog)->r;
}

/* A row being written; zero-initialise. tl_row_end() returns errors. */
struct tl_row {
    struct tl_buf bytes;
    int failed;
};
void tl_row_number(struct tl_row *row, uint64_t value);
void tl_row_text(struct tl_row *row, const char *text); /* NULL is "" */
/* Append the checksum. TL_NOMEM. */
TL_MUST_USE int tl_row_end(struct tl_row *row, struct tl_fail *fail);
static inline struct tl_bytes tl_row_value(const struct tl_row *row)
{
    return (struct tl_bytes){row->bytes.p, row->bytes.n};
}
static inline void tl_row_fini(struct tl_row *row)
{
    tl_buf_fini(&row->bytes);
}

/*
 * Open a row for reading: TL_OK, or TL_BAD if its checksum is wrong. Read numbers with
 * tl_varint_get().
 */
TL_MUST_USE int tl_row_open(struct tl_varint_reader *in, struct tl_bytes value);
/* Read a text or bytes, borrowed from the value. */
const char *tl_row_get_text(struct tl_varint_reader *in);
/* Check that the row was read completely and without error. Otherwise TL_BAD, with its key. */
TL_MUST_USE int tl_row_close(const struct tl_varint_reader *in, const char *key,
                             struct tl_fail *fail);
int tl_row_damaged(const char *key, struct tl_fail *fail); /* TL_BAD */

/* Format "KIND/id". Returns `out`, like all of these. */
char *tl_row_key(char out[static TL_ROW_KEY], char kind, const char *id);
/* Format "KIND/id/<n[0]>/<n[1]>…". */
char *tl_row_key_of(char out[static TL_ROW_KEY], char kind, const char *id, const uint64_t *n,
                    size_t n_numbers);
/* Remove all keys that begin with "KIND/id/<n[0]>/…/". */
void tl_rows_remove(struct tl_change *change, char kind, const char *id, const uint64_t *n,
                    size_t n_numbers);

/* The number at the end of a key. */
uint64_t tl_row_last_number(const char *key);

/* Get the creation time of a row's object, Unix time. */
typedef int tl_row_age(const char *key, struct tl_bytes value, int64_t *created_ns,
                       struct tl_fail *fail);
/* Call `each` with all rows whose keys begin with `prefix`, in the order of the catalog: by age,
 * then by key. A result < 0 ends the call and is returned. */
TL_MUST_USE int tl_rows_by_age(struct tl_rados *r, const char *prefix, tl_row_age *age,
                               tl_index_each *each, void *context, struct tl_fail *fail);

/* Parse a trace's row; texts are borrowed from `key`, "T/<trace>", and `value`. */
TL_MUST_USE int tl_row_read_trace(struct tl_catalog_trace *t, const char *key,
                                  struct tl_bytes value, struct tl_fail *fail);
void tl_rados_seen_free(struct tl_rados_catalog *catalog);

/* Implementation of the functions in catalog.h. */
int tl_rados_changes(struct tl_catalog *catalog, tl_each_change *each, void *context,
                     struct tl_fail *fail);
int tl_rados_add_trace(struct tl_catalog *catalog, const struct tl_catalog_trace *t,
                       struct tl_fail *fail);
int tl_rados_update_trace(struct tl_catalog *catalog, const struct tl_catalog_trace *t,
                          struct tl_fail *fail);
int tl_rados_remove_traces(struct tl_catalog *catalog, const char *const *ids, size_t n,
                           struct tl_fail *fail);
int tl_rados_page(struct tl_catalog *catalog, const struct tl_trace_place *after_name, size_t most,
                  tl_each_trace *each, void *context, struct tl_fail *fail);
int tl_rados_by_content(struct tl_catalog *catalog, const char *content, tl_each_trace *each,
                        void *context, struct tl_fail *fail);
int tl_rados_totals(struct tl_catalog *catalog, struct tl_catalog_totals *out,
                    struct tl_fail *fail);
/* Format the keys that name a trace by its age and its content: rados_pages.c. Return `out`. */
char *tl_row_age_key(char out[static TL_ROW_KEY], int64_t created_ns, const char *id);
char *tl_row_content_key(char out[static TL_ROW_KEY], const char *content, const char *id);
/* Add these keys for all traces to a store with an earlier layout; for a `fresh` catalog, when it
 * is filled. */
TL_MUST_USE int tl_rados_name_all(struct tl_rados *r, bool fresh, struct tl_fail *fail);
int tl_rados_traces(struct tl_catalog *catalog, tl_each_trace *each, void *context,
                    struct tl_fail *fail);
int tl_rados_find(struct tl_catalog *catalog, const char *id, tl_each_trace *each, void *context,
                  struct tl_fail *fail);
int tl_rados_set_label(struct tl_catalog *catalog, const char *trace, const char *key,
                       const char *value, struct tl_fail *fail);
int tl_rados_labels(struct tl_catalog *catalog, const char *trace, struct tl_buf *out,
                    struct tl_fail *fail);
int tl_rados_put_note(struct tl_catalog *catalog, const char *trace, const struct tl_note *note,
                      struct tl_fail *fail);
int tl_rados_remove_note(struct tl_catalog *catalog, const char *trace, uint64_t id,
                         struct tl_fail *fail);
int tl_rados_notes(struct tl_catalog *catalog, const char *trace, tl_each_note *each, void *context,
                   struct tl_fail *fail);
int tl_rados_put_stream(struct tl_catalog *catalog, const char *trace, uint64_t generation,
                        const struct tl_catalog_stream *stream, struct tl_fail *fail);
int tl_rados_streams(struct tl_catalog *catalog, const char *trace, uint64_t generation,
                     tl_each_stream *each, void *context, struct tl_fail *fail);
int tl_rados_add_shards(struct tl_catalog *catalog, const char *trace, uint64_t generation,
                        const struct tl_catalog_shard *shards, size_t n, struct tl_fail *fail);
int tl_rados_shards(struct tl_catalog *catalog, const char *trace, uint64_t generation,
                    uint64_t stream, tl_each_shard *each, void *context, struct tl_fail *fail);
int tl_rados_summaries(struct tl_catalog *catalog, const char *trace, uint64_t generation,
                       uint64_t stream, uint64_t from, uint64_t to, tl_each_summary *each,
                       void *context, struct tl_fail *fail);
int tl_rados_check_summary(struct tl_catalog *catalog, const char *trace, uint64_t generation,
                           uint64_t stream, uint64_t number, bool *intact, struct tl_fail *fail);
int tl_rados_drop_shards(struct tl_catalog *catalog, const char *trace, uint64_t generation,
                         uint64_t stream, uint64_t from, struct tl_fail *fail);
int tl_rados_drop_others(struct tl_catalog *catalog, const char *trace, uint64_t generation,
                         uint64_t other, struct tl_fail *fail);

#endif
