/* SPDX-License-Identifier: MIT */
/*
 * Checks the catalog's rows against their checksums. Damaged rows are collected first and mended
 * afterwards, trace by trace: the catalog cannot be called while it tells them, and one trace may
 * have several.
 */
#include "upkeep/rows.h"
#include "upkeep/rebuild.h"

#include <stdio.h>

struct found {
    struct tl_buf *report;
    struct tl_buf traces; /* NUL-terminated */
    struct tl_buf images, rules;
    int n;
};

static int add_once(struct tl_buf *names, const char *name)
{
    for (size_t at = 0; at < names->n; at += strlen((char *)names->p + at) + 1)
        if (strcmp((char *)names->p + at, name) == 0)
            return TL_OK;
    return tl_buf_add(names, name, strlen(name) + 1);
}

static int on_damaged(void *context, const struct tl_catalog_damage *d)
{
    static const char *const tables[] = {
        "the row",       "a label's row",       "a note's row",       "a stream's row",
        "a shard's row", "the row of an image", "a rule of retention"};
    struct found *const f = context;
    f->n++;
    const int r =
        d->table == TL_DAMAGED_TRACE
            ? tl_buf_printf(f->report, "catalog: the row of trace %s is damaged\n", d->trace)
        : *d->trace
            ? tl_buf_printf(f->report, "catalog: %s (%s) of trace %s is damaged\n",
                            tables[d->table], d->key, d->trace)
            : tl_buf_printf(f->report, "catalog: %s (%s) is damaged\n", tables[d->table], d->key);
    if (r < 0)
        return r;
    return *d->trace                      ? add_once(&f->traces, d->trace)
           : d->table == TL_DAMAGED_IMAGE ? add_once(&f->images, d->key)
                                          : add_once(&f->rules, d->key);
}

static int mend_traces(struct tl_lake *lake, struct found *f)
{
    int r = TL_OK;
    for (size_t at = 0; r >= 0 && at < f->traces.n;) {
        const char *const id = (const char *)f->traces.p + at;
        struct tl_fail why = {0};
        at += strlen(id) + 1;
        r = tl_lake_restore_rows(lake, id, &why);
        r = r >= 0
                ? tl_buf_printf(f->report, "catalog: the rows of trace %s were written anew\n", id)
            : r == TL_BAD || r == TL_AGAIN
                ? tl_buf_printf(f->report, "catalog: the rows of trace %s stay damaged: %s\n", id,
                                why.text)
                : r;
    }
    return r;
}

static int purge(struct tl_lake *lake, const struct tl_buf *keys, enum tl_damaged_table table,
                 struct tl_fail *fail)
{
    int r = TL_OK;
    for (size_t at = 0; r >= 0 && at < keys->n; at += strlen((char *)keys->p + at) + 1) {
        const struct tl_catalog_damage one = {
            .table = table, .trace = "", .key = (char *)keys->p + at};
        r = lake->catalog->ops->purge(lake->catalog, &one, fail);
    }
    return r;
}

static int mend(struct tl_lake *lake, const char *id, struct found *f, struct tl_fail *fail)
{
    int r = mend_traces(lake, f);
    if (r >= 0)
        r = purge(lake, &f->images, TL_DAMAGED_IMAGE, fail);
    if (r >= 0 && f->images.n > 0)
        r = tl_lake_restore_images(lake, fail);
    if (r >= 0 && f->images.n > 0)
        r = tl_buf_printf(f->report, "catalog: rows of images were written anew\n");
    if (r >= 0)
        r = purge(lake, &f->rules, TL_DAMAGED_RULE, fail);
    if (r >= 0 && f->rules.n > 0)
        r = tl_buf_printf(
            f->report, "catalog: a rule of retention was dropped; `tracelake retain` shows those "
                       "that are left\n");
    /* What was mended can be read from now on. */
    return r < 0 ? r : lake->catalog->ops->damaged(lake->catalog, id, NULL, NULL, fail);
}

int tl_rows_verify(struct tl_lake *lake, const char *id, bool repair, struct tl_buf *report,
                   struct tl_fail *fail)
{
    struct found f = {.report = report};
    if (!lake->catalog->ops->damaged)
        return 0;
    int r = lake->catalog->ops->damaged(lake->catalog, id, on_damaged, &f, fail);
    if (r >= 0 && repair && f.n > 0)
        r = mend(lake, id, &f, fail);
    tl_buf_fini(&f.traces);
    tl_buf_fini(&f.images);
    tl_buf_fini(&f.rules);
    return r < 0 ? r : f.n;
}
