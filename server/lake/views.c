/* SPDX-License-Identifier: MIT */
/*
 * Caches of views: of stored shards, and of regenerated ones. Both are bounded by bytes, and a view
 * in use is never dropped. Beside them what regenerates them, which nobody else has meanwhile.
 */
#include "base/hash.h"
#include "base/recent.h"
#include "lake/lakeint.h"

#include <string.h>

struct tl_view *tl_views_find(struct tl_lake *lake, struct tl_cached_view *views, size_t n,
                              const char *key)
{
    const uint64_t hash = tl_fnv_text(key);
    struct tl_view *found = NULL;
    pthread_mutex_lock(&lake->cache_lock);
    for (size_t i = 0; i < n && views[i].view && !found; i++)
        if (views[i].key == hash && strcmp(views[i].view->key, key) == 0) {
            tl_recent_use(views, sizeof *views, i);
            found = tl_view_get(views->view);
        }
    pthread_mutex_unlock(&lake->cache_lock);
    return found;
}

void tl_views_keep(struct tl_lake *lake, struct tl_cached_view *views, size_t n,
                   struct tl_view *view)
{
    const struct tl_cached_view one = {tl_view_get(view), tl_fnv_text(view->key)};
    struct tl_cached_view last;
    pthread_mutex_lock(&lake->cache_lock);
    tl_recent_put(views, sizeof one, n, &one, &last);
    tl_view_put(last.view);
    pthread_mutex_unlock(&lake->cache_lock);
}

static void forget(struct tl_cached_view *views, size_t n, const char *prefix)
{
    size_t kept = 0;
    for (size_t i = 0; i < n; i++) {
        const struct tl_cached_view one = views[i];
        views[i] = (struct tl_cached_view){0};
        if (one.view && strncmp(one.view->key, prefix, strlen(prefix)) == 0)
            tl_view_put(one.view);
        else if (one.view)
            views[kept++] = one;
    }
}

struct tl_maker *tl_lane_take_maker(struct tl_lane *lane)
{
    struct tl_lake *const lake = lane->gen->lake;
    struct tl_maker *found = NULL;
    pthread_mutex_lock(&lake->cache_lock);
    for (size_t i = 0; i < TL_MAKERS && !found; i++)
        if (lake->makers[i] && lake->makers[i]->lane == lane)
            tl_recent_take(lake->makers, sizeof found, TL_MAKERS, i, &found);
    pthread_mutex_unlock(&lake->cache_lock);
    return found;
}

void tl_lane_keep_maker(struct tl_maker *maker)
{
    struct tl_lake *const lake = maker->lane->gen->lake;
    struct tl_maker *oldest;
    pthread_mutex_lock(&lake->cache_lock);
    tl_recent_put(lake->makers, sizeof maker, TL_MAKERS, &maker, &oldest);
    pthread_mutex_unlock(&lake->cache_lock);
    if (oldest)
        oldest->free(oldest);
}

static bool makes(const struct tl_maker *maker, const char *prefix)
{
    char key[192];
    const struct tl_gen *const gen = maker->lane->gen;
    tl_shard_key(key, gen->trace, gen->number, maker->lane->name, 0);
    return strncmp(key, prefix, strlen(prefix)) == 0;
}

void tl_lake_forget_makers(struct tl_lake *lake, const char *prefix)
{
    struct tl_maker *gone[TL_MAKERS];
    size_t n = 0, i = 0;
    pthread_mutex_lock(&lake->cache_lock);
    while (i < TL_MAKERS && lake->makers[i])
        if (makes(lake->makers[i], prefix))
            tl_recent_take(lake->makers, sizeof *gone, TL_MAKERS, i, &gone[n++]);
        else
            i++;
    pthread_mutex_unlock(&lake->cache_lock);
    while (n > 0) {
        n--;
        gone[n]->free(gone[n]);
    }
}

void tl_lake_forget_views(struct tl_lake *lake, const char *prefix)
{
    tl_lake_forget_makers(lake, prefix);
    tl_verified_forget(&lake->verified);
    pthread_mutex_lock(&lake->cache_lock);
    forget(lake->cache, TL_VIEW_CACHE, prefix);
    forget(lake->made, TL_MADE_CACHE, prefix);
    pthread_mutex_unlock(&lake->cache_lock);
}

void tl_lane_make_virtual(struct tl_lane *lane, struct tl_view *view)
{
    tl_view_make_virtual(view, lane->gen->lake->rooms->make, lane);
}

static int open_virtual(struct tl_lane *lane, uint64_t number, struct tl_view **out,
                        struct tl_fail *fail)
{
    char key[192];
    tl_virtual_key(key, lane->gen->trace, lane->gen->number, lane->name, number);
    const int r = tl_view_open(out, lane->gen->lake->backend, key, fail);
    if (r < 0)
        return r;
    (*out)->make = lane->gen->lake->rooms->make;
    (*out)->maker = lane;
    return TL_OK;
}

/* Open from the store in its stored form: most likely the same as the lane's last one. */
static int open_view(struct tl_lane *lane, bool first, uint64_t number, struct tl_view **out,
                     struct tl_fail *fail)
{
    const struct tl_gen *const gen = lane->gen;
    char key[192];
    int r = TL_NOTFOUND;
    tl_shard_key(key, gen->trace, gen->number, lane->name, number);
    for (int i = 0; i < 2 && r == TL_NOTFOUND; i++) {
        const bool virtual = first != (i > 0);
        r = virtual ? open_virtual(lane, number, out, fail)
                    : tl_view_open(out, gen->lake->backend, key, fail);
        if (r >= 0)
            atomic_store(&lane->is_virtual, virtual);
    }
    return r;
}

int tl_lake_view(struct tl_lake *lake, struct tl_lane *lane, uint64_t number, struct tl_view **out,
                 struct tl_fail *fail)
{
    const struct tl_gen *const gen = lane->gen;
    const bool virtual = atomic_load(&lane->is_virtual);
    char key[192];
    if (virtual)
        tl_virtual_key(key, gen->trace, gen->number, lane->name, number);
    else
        tl_shard_key(key, gen->trace, gen->number, lane->name, number);
    *out = tl_views_find(lake, lake->cache, TL_VIEW_CACHE, key);
    if (*out) {
        atomic_fetch_add(&lake->cache_hits, 1);
        return TL_OK;
    }
    atomic_fetch_add(&lake->cache_misses, 1);
    const int r = open_view(lane, virtual, number, out, fail);
    if (r >= 0)
        tl_views_keep(lake, lake->cache, TL_VIEW_CACHE, *out);
    return r;
}
