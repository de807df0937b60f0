/* SPDX-License-Identifier: MIT */
/*
 * Opens the catalog that suits the backend: its own one, or SQLite at the place that it names. A
 * cluster has no files for SQLite, and a folder has no transactions of its own.
 */
#include "catalog/catalog_sql.h"

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
