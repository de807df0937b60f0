/* SPDX-License-Identifier: MIT */
/*
 * Objects unknown to the catalog: left by a crash between two steps of a deletion or a swap. A key
 * is taken for one only if that can be told for sure.
 */
#include "lake/lakeint.h"

#include <stdio.h>
#include <stdlib.h>

struct orphans {
    struct tl_lake *lake;
    struct tl_buf keys;   /* NUL-terminated, concatenated */
    struct tl_buf traces; /* the same: complete traces that have an unpacked segment */
};

/* What must be known of the trace that a key belongs to. */
struct owner {
    bool is_there, complete, raw_removed;
    int state;
    uint64_t serving, wanted;
};

static int take_row(void *context, const struct tl_catalog_trace *row)
{
    *(struct owner *)context = (struct owner){.is_there = true,
                                              .complete = row->complete,
                                              .raw_removed = row->raw_removed,
                                              .state = row->state,
                                              .serving = row->generation,
                                              .wanted = row->wanted};
    return TL_OK;
}

static int look_up(struct tl_lake *lake, const char *id, struct owner *out)
{
    struct tl_trace *const t = tl_lake_peek(lake, id);
    *out = (struct owner){0};
    if (!t) {
        const int r = lake->catalog->ops->find(lake->catalog, id, take_row, out, NULL);
        return r == TL_NOTFOUND ? TL_OK : r;
    }
    pthread_mutex_lock(&t->lock);
    *out = (struct owner){.is_there = true,
                          .complete = t->complete,
                          .raw_removed = t->raw_removed,
                          .state = t->state,
                          .serving = t->serving->number,
                          .wanted = t->wanted};
    pthread_mutex_unlock(&t->lock);
    tl_trace_put(t);
    return TL_OK;
}

/* Get the trace that a key belongs to, in `id`. False: none. */
static bool trace_of(const char *key, char id[static 64])
{
    if (!strchr("trmc", key[0]) || key[1] != '/')
        return false;
    const size_t n = strcspn(key + 2, "/");
    return n < 64 && snprintf(id, 64, "%.*s", (int)n, key + 2) > 0;
}

/* If it cannot be determined it is not an orphan. */
static bool is_orphan(struct tl_lake *lake, const char *key, struct owner *owner)
{
    char id[64];
    const char kind = key[0];
    *owner = (struct owner){0};
    if (!trace_of(key, id) || look_up(lake, id, owner) < 0)
        return false;
    const char *const after = key + 2 + strlen(id);
    const uint64_t generation = *after ? strtoull(after + 1, NULL, 10) : 0;
    return !owner->is_there || (kind == 'r' && owner->raw_removed) ||
           (kind == 'c' && owner->state == TL_TRACE_SEALED) ||
           ((kind == 't' || kind == 'c') && generation != owner->serving &&
            generation != owner->wanted);
}

static int collect(void *context, const char *key, uint64_t size)
{
    struct orphans *const o = context;
    const size_t n = strlen(key);
    struct owner owner;
    char id[64];
    (void)size;
    if (atomic_load(&o->lake->closing))
        return TL_CANCELLED;
    if (is_orphan(o->lake, key, &owner))
        return tl_buf_add(&o->keys, key, n + 1);
    return owner.complete && key[0] == 'r' && n > 4 && strcmp(key + n - 4, ".seg") == 0 &&
                   trace_of(key, id)
               ? tl_buf_add(&o->traces, id, strlen(id) + 1)
               : TL_OK;
}

/* A new trace of the same name may have been created since the key was collected: its row is
 * written under the same lock, before its objects. */
static int remove_one(struct tl_lake *lake, const char *key, struct tl_fail *fail)
{
    struct owner owner;
    pthread_mutex_lock(&lake->garbage_lock);
    const int r =
        is_orphan(lake, key, &owner) ? lake->backend->ops->remove(lake->backend, key, fail) : TL_OK;
    pthread_mutex_unlock(&lake->garbage_lock);
    return r;
}

static void have_packed(struct tl_lake *lake, const char *id)
{
    struct tl_trace *const trace = tl_lake_find_trace(lake, id);
    if (!trace)
        return;
    pthread_mutex_lock(&trace->lock);
    trace->repacked = 0;
    pthread_mutex_unlock(&trace->lock);
    tl_trace_put(trace);
    tl_repack_wake(lake);
}

static const char *next_text(const struct tl_buf *texts, size_t *at)
{
    const char *const text = *at < texts->n ? (const char *)texts->p + *at : NULL;
    *at += text ? strlen(text) + 1 : 0;
    return text;
}

static int collect_and_remove(struct tl_lake *lake, const char *prefix, struct tl_fail *fail)
{
    struct orphans o = {.lake = lake};
    const char *text;
    int r = lake->backend->ops->list(lake->backend, prefix, collect, &o, fail);
    for (size_t at = 0; r >= 0 && (text = next_text(&o.keys, &at));)
        r = remove_one(lake, text, fail);
    for (size_t at = 0; r >= 0 && (text = next_text(&o.traces, &at));)
        have_packed(lake, text);
    tl_buf_fini(&o.keys);
    tl_buf_fini(&o.traces);
    return r;
}

int tl_trace_remove_orphans(struct tl_trace *trace, struct tl_fail *fail)
{
    char prefix[80];
    pthread_mutex_lock(&trace->lock);
    const uint64_t serving = trace->serving->number, wanted = trace->wanted;
    pthread_mutex_unlock(&trace->lock);
    snprintf(prefix, sizeof prefix, "t/%s", trace->id);
    const int r = trace->lake->catalog->ops->drop_others(trace->lake->catalog, trace->id, serving,
                                                         wanted, fail);
    return r < 0 ? r : collect_and_remove(trace->lake, prefix, fail);
}

int tl_lake_remove_orphans(struct tl_lake *lake, struct tl_fail *fail)
{
    return collect_and_remove(lake, "", fail);
}
