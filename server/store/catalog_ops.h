/* SPDX-License-Identifier: MIT */
/*
 * Functions of a catalog implementation, described in catalog.h. The implementation's struct begins
 * with struct tl_catalog; `close` is never called with NULL.
 *
 * Implementations: SQLite (catalog_sql.h), for backends with tl_backend_ops.catalog_uri; omap of a
 * Ceph cluster (rados/rados_rows.h). One test runs against both.
 */
#ifndef TL_STORE_CATALOG_OPS_H
#define TL_STORE_CATALOG_OPS_H

#include "store/catalog.h"

struct tl_catalog_ops {
    void (*close)(struct tl_catalog *catalog);
    bool (*fresh)(const struct tl_catalog *catalog);
    int (*ready)(struct tl_catalog *catalog, struct tl_fail *fail);
    int (*clear)(struct tl_catalog *catalog, struct tl_fail *fail);
    int (*check)(struct tl_catalog *catalog, bool whole,
                 int (*each)(void *context, const char *finding), void *context,
                 struct tl_fail *fail);
    int (*add_trace)(struct tl_catalog *catalog, const struct tl_catalog_trace *trace,
                     struct tl_fail *fail);
    int (*update_trace)(struct tl_catalog *catalog, const struct tl_catalog_trace *trace,
                        struct tl_fail *fail);
    int (*remove_traces)(struct tl_catalog *catalog, const char *const *ids, size_t n,
                         struct tl_fail *fail);
    int (*page)(struct tl_catalog *catalog, const struct tl_trace_place *behind, size_t most,
                int (*each)(void *context, const struct tl_catalog_trace *trace), void *context,
                struct tl_fail *fail);
    int (*unfinished)(struct tl_catalog *catalog,
                      int (*each)(void *context, const struct tl_catalog_trace *trace),
                      void *context, struct tl_fail *fail); /* NULL: unsupported */
    int (*by_content)(struct tl_catalog *catalog, const char *content,
                      int (*each)(void *context, const struct tl_catalog_trace *trace),
                      void *context, struct tl_fail *fail);
    int (*totals)(struct tl_catalog *catalog, struct tl_catalog_totals *out, struct tl_fail *fail);
    int (*traces)(struct tl_catalog *catalog,
                  int (*each)(void *context, const struct tl_catalog_trace *trace), void *context,
                  struct tl_fail *fail);
    int (*find)(struct tl_catalog *catalog, const char *id,
                int (*each)(void *context, const struct tl_catalog_trace *trace), void *context,
                struct tl_fail *fail);
    int (*changes)(struct tl_catalog *catalog,
                   int (*each)(void *context, const char *id, const struct tl_catalog_trace *trace),
                   void *context, struct tl_fail *fail); /* NULL: unsupported */
    int (*set_label)(struct tl_catalog *catalog, const char *trace, const char *key,
                     const char *value, struct tl_fail *fail);
    int (*labels)(struct tl_catalog *catalog, const char *trace, struct tl_buf *out,
                  struct tl_fail *fail);
    int (*put_note)(struct tl_catalog *catalog, const char *trace, const struct tl_note *note,
                    struct tl_fail *fail);
    int (*remove_note)(struct tl_catalog *catalog, const char *trace, uint64_t id,
                       struct tl_fail *fail);
    int (*notes)(struct tl_catalog *catalog, const char *trace,
                 int (*each)(void *context, const struct tl_note *note), void *context,
                 struct tl_fail *fail);
    int (*put_stream)(struct tl_catalog *catalog, const char *trace, uint64_t generation,
                      const struct tl_catalog_stream *stream, struct tl_fail *fail);
    int (*streams)(struct tl_catalog *catalog, const char *trace, uint64_t generation,
                   int (*each)(void *context, const struct tl_catalog_stream *stream),
                   void *context, struct tl_fail *fail);
    int (*add_shards)(struct tl_catalog *catalog, const char *trace, uint64_t generation,
                      const struct tl_catalog_shard *shards, size_t n, struct tl_fail *fail);
    int (*shards)(struct tl_catalog *catalog, const char *trace, uint64_t generation,
                  uint64_t stream, int (*each)(void *context, const struct tl_shard_row *row),
                  void *context, struct tl_fail *fail);
    int (*summaries)(struct tl_catalog *catalog, const char *trace, uint64_t generation,
                     uint64_t stream, uint64_t from, uint64_t to,
                     int (*each)(void *context, struct tl_bytes summary), void *context,
                     struct tl_fail *fail);
    int (*check_summary)(struct tl_catalog *catalog, const char *trace, uint64_t generation,
                         uint64_t stream, uint64_t number, bool *intact, struct tl_fail *fail);
    int (*drop_shards)(struct tl_catalog *catalog, const char *trace, uint64_t generation,
                       uint64_t stream, uint64_t from, struct tl_fail *fail);
    int (*drop_others)(struct tl_catalog *catalog, const char *trace, uint64_t generation,
                       uint64_t other, struct tl_fail *fail);
    int (*set_retention)(struct tl_catalog *catalog, const char *scope,
                         const struct tl_retention *rule, struct tl_fail *fail);
    int (*retention)(struct tl_catalog *catalog,
                     int (*each)(void *context, const char *scope, const struct tl_retention *rule),
                     void *context, struct tl_fail *fail);
    int (*add_image)(struct tl_catalog *catalog, const struct tl_catalog_image *image,
                     struct tl_fail *fail);
    int (*announce_image)(struct tl_catalog *catalog, const char *hash, struct tl_fail *fail);
    int (*remove_image)(struct tl_catalog *catalog, const char *hash, struct tl_fail *fail);
    int (*images)(struct tl_catalog *catalog,
                  int (*each)(void *context, const struct tl_catalog_image *image), void *context,
                  struct tl_fail *fail);
};

struct tl_catalog {
    const struct tl_catalog_ops *ops;
};

#endif
