/* SPDX-License-Identifier: MIT */
/* Dispatches the catalog's functions to its implementation. */
#include "store/catalog_ops.h"
#include "store/catalog_sql.h"

int tl_catalog_open(struct tl_catalog **out, struct tl_backend *backend, struct tl_fail *fail)
{
    if (backend->ops->catalog_open)
        return backend->ops->catalog_open(backend, out, fail);
    if (backend->ops->catalog_uri)
        return tl_sql_catalog_open(out, backend, fail);
    return tl_fail_set(fail, TL_UNSUPPORTED, "a store in %s has no catalog", backend->ops->name);
}

void tl_catalog_close(struct tl_catalog *catalog)
{
    if (catalog)
        catalog->ops->close(catalog);
}

bool tl_catalog_fresh(const struct tl_catalog *catalog)
{
    return catalog->ops->fresh(catalog);
}

int tl_catalog_ready(struct tl_catalog *catalog, struct tl_fail *fail)
{
    return catalog->ops->ready(catalog, fail);
}

int tl_catalog_clear(struct tl_catalog *catalog, struct tl_fail *fail)
{
    return catalog->ops->clear(catalog, fail);
}

int tl_catalog_check(struct tl_catalog *catalog, bool whole,
                     int (*each)(void *context, const char *finding), void *context,
                     struct tl_fail *fail)
{
    return catalog->ops->check(catalog, whole, each, context, fail);
}

int tl_catalog_add_trace(struct tl_catalog *catalog, const struct tl_catalog_trace *trace,
                         struct tl_fail *fail)
{
    return catalog->ops->add_trace(catalog, trace, fail);
}

int tl_catalog_update_trace(struct tl_catalog *catalog, const struct tl_catalog_trace *trace,
                            struct tl_fail *fail)
{
    return catalog->ops->update_trace(catalog, trace, fail);
}

int tl_catalog_remove_traces(struct tl_catalog *catalog, const char *const *ids, size_t n,
                             struct tl_fail *fail)
{
    return catalog->ops->remove_traces(catalog, ids, n, fail);
}

int tl_catalog_page(struct tl_catalog *catalog, const struct tl_trace_place *behind, size_t most,
                    int (*each)(void *context, const struct tl_catalog_trace *trace), void *context,
                    struct tl_fail *fail)
{
    return catalog->ops->page(catalog, behind, most, each, context, fail);
}

int tl_catalog_unfinished(struct tl_catalog *catalog,
                          int (*each)(void *context, const struct tl_catalog_trace *trace),
                          void *context, struct tl_fail *fail)
{
    return catalog->ops->unfinished ? catalog->ops->unfinished(catalog, each, context, fail)
                                    : TL_UNSUPPORTED;
}

int tl_catalog_by_content(struct tl_catalog *catalog, const char *content,
                          int (*each)(void *context, const struct tl_catalog_trace *trace),
                          void *context, struct tl_fail *fail)
{
    return catalog->ops->by_content(catalog, content, each, context, fail);
}

int tl_catalog_totals(struct tl_catalog *catalog, struct tl_catalog_totals *out,
                      struct tl_fail *fail)
{
    return catalog->ops->totals(catalog, out, fail);
}

int tl_catalog_traces(struct tl_catalog *catalog,
                      int (*each)(void *context, const struct tl_catalog_trace *trace),
                      void *context, struct tl_fail *fail)
{
    return catalog->ops->traces(catalog, each, context, fail);
}

int tl_catalog_find(struct tl_catalog *catalog, const char *id,
                    int (*each)(void *context, const struct tl_catalog_trace *trace), void *context,
                    struct tl_fail *fail)
{
    return catalog->ops->find(catalog, id, each, context, fail);
}

int tl_catalog_changes(struct tl_catalog *catalog,
                       int (*each)(void *context, const char *id,
                                   const struct tl_catalog_trace *trace),
                       void *context, struct tl_fail *fail)
{
    return catalog->ops->changes ? catalog->ops->changes(catalog, each, context, fail)
                                 : tl_fail_set(fail, TL_UNSUPPORTED, "one process has this store");
}

int tl_catalog_set_label(struct tl_catalog *catalog, const char *trace, const char *key,
                         const char *value, struct tl_fail *fail)
{
    return catalog->ops->set_label(catalog, trace, key, value, fail);
}

int tl_catalog_labels(struct tl_catalog *catalog, const char *trace, struct tl_buf *out,
                      struct tl_fail *fail)
{
    return catalog->ops->labels(catalog, trace, out, fail);
}

int tl_catalog_put_note(struct tl_catalog *catalog, const char *trace, const struct tl_note *note,
                        struct tl_fail *fail)
{
    return catalog->ops->put_note(catalog, trace, note, fail);
}

int tl_catalog_remove_note(struct tl_catalog *catalog, const char *trace, uint64_t id,
                           struct tl_fail *fail)
{
    return catalog->ops->remove_note(catalog, trace, id, fail);
}

int tl_catalog_notes(struct tl_catalog *catalog, const char *trace,
                     int (*each)(void *context, const struct tl_note *note), void *context,
                     struct tl_fail *fail)
{
    return catalog->ops->notes(catalog, trace, each, context, fail);
}

int tl_catalog_put_stream(struct tl_catalog *catalog, const char *trace, uint64_t generation,
                          const struct tl_catalog_stream *stream, struct tl_fail *fail)
{
    return catalog->ops->put_stream(catalog, trace, generation, stream, fail);
}

int tl_catalog_streams(struct tl_catalog *catalog, const char *trace, uint64_t generation,
                       int (*each)(void *context, const struct tl_catalog_stream *stream),
                       void *context, struct tl_fail *fail)
{
    return catalog->ops->streams(catalog, trace, generation, each, context, fail);
}

int tl_catalog_add_shards(struct tl_catalog *catalog, const char *trace, uint64_t generation,
                          const struct tl_catalog_shard *shards, size_t n, struct tl_fail *fail)
{
    return catalog->ops->add_shards(catalog, trace, generation, shards, n, fail);
}

int tl_catalog_shards(struct tl_catalog *catalog, const char *trace, uint64_t generation,
                      uint64_t stream, int (*each)(void *context, const struct tl_shard_row *row),
                      void *context, struct tl_fail *fail)
{
    return catalog->ops->shards(catalog, trace, generation, stream, each, context, fail);
}

int tl_catalog_summaries(struct tl_catalog *catalog, const char *trace, uint64_t generation,
                         uint64_t stream, uint64_t from, uint64_t to,
                         int (*each)(void *context, struct tl_bytes summary), void *context,
                         struct tl_fail *fail)
{
    return catalog->ops->summaries(catalog, trace, generation, stream, from, to, each, context,
                                   fail);
}

int tl_catalog_check_summary(struct tl_catalog *catalog, const char *trace, uint64_t generation,
                             uint64_t stream, uint64_t number, bool *intact, struct tl_fail *fail)
{
    return catalog->ops->check_summary(catalog, trace, generation, stream, number, intact, fail);
}

int tl_catalog_drop_shards(struct tl_catalog *catalog, const char *trace, uint64_t generation,
                           uint64_t stream, uint64_t from, struct tl_fail *fail)
{
    return catalog->ops->drop_shards(catalog, trace, generation, stream, from, fail);
}

int tl_catalog_drop_others(struct tl_catalog *catalog, const char *trace, uint64_t generation,
                           uint64_t other, struct tl_fail *fail)
{
    return catalog->ops->drop_others(catalog, trace, generation, other, fail);
}

int tl_catalog_set_retention(struct tl_catalog *catalog, const char *scope,
                             const struct tl_retention *rule, struct tl_fail *fail)
{
    return catalog->ops->set_retention(catalog, scope, rule, fail);
}

int tl_catalog_retention(struct tl_catalog *catalog,
                         int (*each)(void *context, const char *scope,
                                     const struct tl_retention *rule),
                         void *context, struct tl_fail *fail)
{
    return catalog->ops->retention(catalog, each, context, fail);
}

int tl_catalog_add_image(struct tl_catalog *catalog, const struct tl_catalog_image *image,
                         struct tl_fail *fail)
{
    return catalog->ops->add_image(catalog, image, fail);
}

int tl_catalog_announce_image(struct tl_catalog *catalog, const char *hash, struct tl_fail *fail)
{
    return catalog->ops->announce_image(catalog, hash, fail);
}

int tl_catalog_remove_image(struct tl_catalog *catalog, const char *hash, struct tl_fail *fail)
{
    return catalog->ops->remove_image(catalog, hash, fail);
}

int tl_catalog_images(struct tl_catalog *catalog,
                      int (*each)(void *context, const struct tl_catalog_image *image),
                      void *context, struct tl_fail *fail)
{
    return catalog->ops->images(catalog, each, context, fail);
}
