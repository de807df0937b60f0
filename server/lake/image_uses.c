/* SPDX-License-Identifier: MIT */
/*
 * Counts which traces refer to which images, by reading all setups once and looking their names up,
 * so that the work grows with the setups, not with traces times images. Nothing else records it:
 * setups are changed in many places, and a count kept beside them could be wrong.
 */
#include "lake/image_uses.h"

#include "base/search.h"
#include "lake/lakeint.h"
#include "lake/summed.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HASH_TEXT 71 /* "sha256:" and 64 digits */

static const char key[] = "k/unused";

static int by_hash(const void *a, const void *b)
{
    return strcmp(((const struct tl_image_use *)a)->row.hash,
                  ((const struct tl_image_use *)b)->row.hash);
}

/* ---- who refers to them -------------------------------------------------------------------- */

struct reading {
    struct tl_image_uses *uses;
    struct tl_image_use **by_id; /* those with a build ID, by it */
    size_t n_ids;
    size_t trace; /* number of the present one */
    const char *id;
};

static int order_ids(const void *a, const void *b)
{
    return strcmp((*(struct tl_image_use *const *)a)->row.build_id,
                  (*(struct tl_image_use *const *)b)->row.build_id);
}

static void count(struct reading *r, struct tl_image_use *use)
{
    if (use->seen == r->trace)
        return;
    use->seen = r->trace;
    if (use->traces++ == 0)
        snprintf(use->trace, sizeof use->trace, "%s", r->id);
}

static void count_hash(struct reading *r, const char *text)
{
    struct tl_image_use wanted;
    snprintf(wanted.row.hash, sizeof wanted.row.hash, "%.71s", text);
    struct tl_image_use *const found =
        bsearch(&wanted, r->uses->v, r->uses->n, sizeof wanted, by_hash);
    if (found)
        count(r, found);
}

static bool id_is_before(const void *use, const void *id)
{
    return strcmp((*(struct tl_image_use *const *)use)->row.build_id, id) < 0;
}

/* Several images may have the ID: the newest is used, and the others would be without it. */
static void count_id(struct reading *r, const char *text)
{
    char id[64];
    const size_t n = strspn(text, "0123456789abcdef");
    snprintf(id, sizeof id, "%.*s", (int)n, text);
    size_t i = tl_count_before(r->by_id, sizeof *r->by_id, r->n_ids, id_is_before, id);
    for (; i < r->n_ids && strcmp(r->by_id[i]->row.build_id, id) == 0; i++)
        count(r, r->by_id[i]);
}

static void count_setup(struct reading *r, const char *setup)
{
    for (const char *p = setup; p && (p = strstr(p, "sha256:")); p += 7)
        count_hash(r, p);
    for (const char *p = setup; r->n_ids > 0 && p && (p = strstr(p, "build-id:"));)
        count_id(r, p += 9);
}

static int read_trace(void *context, const struct tl_catalog_trace *row)
{
    struct reading *const r = context;
    r->trace++;
    r->id = row->id;
    count_setup(r, row->setup);
    count_setup(r, row->earlier);
    return TL_OK;
}

static bool hash_is_before(const void *use, const void *digits)
{
    return strncmp(((const struct tl_image_use *)use)->row.hash + 7, digits, TL_SOURCE_IMAGE) < 0;
}

/* Is an image used whose hash begins with these digits? */
static bool image_is_used(const struct tl_image_uses *uses, const char *digits)
{
    size_t i = tl_count_before(uses->v, sizeof *uses->v, uses->n, hash_is_before, digits);
    for (; i < uses->n && !strncmp(uses->v[i].row.hash + 7, digits, TL_SOURCE_IMAGE); i++)
        if (uses->v[i].traces > 0)
            return true;
    return false;
}

/* A source is used if its image is. */
static void count_sources(struct tl_image_uses *uses)
{
    enum { PREFIX = sizeof TL_SOURCE_PREFIX - 1 };
    for (size_t i = 0; i < uses->n; i++) {
        struct tl_image_use *const source = &uses->v[i];
        const char *const of = source->row.name + PREFIX;
        if (!tl_is_source(source->row.name))
            continue;
        if (strspn(of, "0123456789abcdef") != TL_SOURCE_IMAGE || of[TL_SOURCE_IMAGE] != ':')
            source->traces++;
        else
            source->traces += image_is_used(uses, of);
    }
}

static int list_images(struct tl_image_uses *out, struct tl_lake *lake, struct tl_fail *fail)
{
    struct tl_image_row *rows = NULL;
    size_t n = 0;
    const int r = tl_lake_images(lake, &rows, &n);
    *out = (struct tl_image_uses){r < 0 ? NULL : calloc(n + 1, sizeof *out->v), n};
    for (size_t i = 0; out->v && i < n; i++)
        out->v[i].row = rows[i];
    free(rows);
    if (r < 0 || !out->v)
        return tl_fail_set(fail, r < 0 ? (enum tl_err)r : TL_NOMEM, "the images cannot be listed");
    qsort(out->v, n, sizeof *out->v, by_hash);
    return TL_OK;
}

int tl_image_uses_read(struct tl_image_uses *out, struct tl_lake *lake, struct tl_fail *fail)
{
    struct reading reading = {.uses = out};
    int r = list_images(out, lake, fail);
    if (r < 0 || out->n == 0)
        return r;
    reading.by_id = calloc(out->n, sizeof(struct tl_image_use *));
    if (!reading.by_id)
        return tl_fail_set(fail, TL_NOMEM, "no memory");
    for (size_t i = 0; i < out->n; i++)
        if (out->v[i].row.build_id[0])
            reading.by_id[reading.n_ids++] = &out->v[i];
    qsort(reading.by_id, reading.n_ids, sizeof(struct tl_image_use *), order_ids);
    r = lake->catalog->ops->traces(lake->catalog, read_trace, &reading, fail);
    count_sources(out);
    free(reading.by_id);
    return r;
}

/* ---- since when they are unused ------------------------------------------------------------ */

static int order_unused(const void *a, const void *b)
{
    return strcmp(((const struct tl_unused_image *)a)->hash,
                  ((const struct tl_unused_image *)b)->hash);
}

static struct tl_unused_image *find_locked(struct tl_lake *lake, const char *hash)
{
    struct tl_unused_image wanted;
    snprintf(wanted.hash, sizeof wanted.hash, "%.71s", hash);
    return lake->unused.n > 0
               ? bsearch(&wanted, lake->unused.v, lake->unused.n, sizeof wanted, order_unused)
               : NULL;
}

/* A line that cannot be read ends the list: what follows begins anew. */
static int parse_locked(struct tl_image_unused *unused, const char *text)
{
    size_t cap = 0;
    int r = TL_OK, used;
    struct tl_unused_image one;
    while (r >= 0 && sscanf(text, "%71s %" SCNd64 "\n%n", one.hash, &one.since_ns, &used) == 2) {
        text += used;
        r = tl_grow(&unused->v, &cap, unused->n + 1, sizeof *unused->v);
        if (r >= 0)
            unused->v[unused->n++] = one;
    }
    if (unused->n > 1)
        qsort(unused->v, unused->n, sizeof *unused->v, order_unused);
    return r;
}

static int load_locked(struct tl_lake *lake)
{
    struct tl_buf text = {0};
    if (lake->unused.loaded)
        return TL_OK;
    int r = tl_summed_get(lake, key, &text);
    if (r >= 0)
        r = parse_locked(&lake->unused, (const char *)text.p);
    lake->unused.loaded = r >= 0 || r == TL_NOTFOUND || r == TL_BAD;
    tl_buf_fini(&text);
    return lake->unused.loaded ? TL_OK : r;
}

static int store_locked(struct tl_lake *lake, struct tl_fail *fail)
{
    struct tl_buf text = {0};
    int r = TL_OK;
    for (size_t i = 0; r >= 0 && i < lake->unused.n; i++)
        r = tl_buf_printf(&text, "%s %" PRId64 "\n", lake->unused.v[i].hash,
                          lake->unused.v[i].since_ns);
    if (r >= 0)
        r = tl_summed_put(lake, key, &text, fail);
    lake->unused.changed = r < 0;
    tl_buf_fini(&text);
    return r;
}

static int update_locked(struct tl_lake *lake, struct tl_image_uses *uses, int64_t now_ns,
                         struct tl_fail *fail)
{
    struct tl_image_unused *const old = &lake->unused;
    struct tl_unused_image *const v = calloc(uses->n + 1, sizeof *v);
    size_t n = 0, known = 0;
    if (!v)
        return tl_fail_set(fail, TL_NOMEM, "no memory");
    for (size_t i = 0; i < uses->n; i++) {
        struct tl_image_use *const use = &uses->v[i];
        const struct tl_unused_image *const before =
            use->traces == 0 ? find_locked(lake, use->row.hash) : NULL;
        use->unused_ns = before ? before->since_ns : now_ns;
        known += before != NULL;
        if (use->traces == 0) {
            v[n].since_ns = use->unused_ns;
            memcpy(v[n++].hash, use->row.hash, sizeof v->hash);
        }
    }
    const bool same = n == known && n == old->n && !old->changed;
    free(old->v);
    old->v = v;
    old->n = n;
    return same ? TL_OK : store_locked(lake, fail);
}

static void note_totals(struct tl_lake *lake, const struct tl_image_uses *uses)
{
    uint64_t n = 0, bytes = 0;
    for (size_t i = 0; i < uses->n; i++) {
        n += uses->v[i].traces == 0;
        bytes += uses->v[i].traces == 0 ? uses->v[i].row.size : 0;
    }
    atomic_store(&lake->images_unused, n);
    atomic_store(&lake->image_bytes_unused, bytes);
}

int tl_image_unused_update(struct tl_lake *lake, struct tl_image_uses *uses, int64_t now_ns,
                           struct tl_fail *fail)
{
    note_totals(lake, uses);
    pthread_mutex_lock(&lake->images_lock);
    int r = load_locked(lake);
    if (r >= 0)
        r = update_locked(lake, uses, now_ns, fail);
    pthread_mutex_unlock(&lake->images_lock);
    return r;
}

static void forget_locked(struct tl_lake *lake, struct tl_unused_image *image)
{
    struct tl_image_unused *const u = &lake->unused;
    const size_t i = (size_t)(image - u->v);
    memmove(image, image + 1, (u->n - i - 1) * sizeof *image);
    u->n--;
    u->changed = true;
}

void tl_lake_want_image(struct tl_lake *lake, const char *hash)
{
    pthread_mutex_lock(&lake->images_lock);
    struct tl_unused_image *const found = load_locked(lake) < 0 ? NULL : find_locked(lake, hash);
    if (found)
        forget_locked(lake, found);
    pthread_mutex_unlock(&lake->images_lock);
}

int tl_image_unused_remove(struct tl_lake *lake, const char *hash, struct tl_fail *fail)
{
    pthread_mutex_lock(&lake->images_lock);
    const bool still = find_locked(lake, hash) != NULL;
    int r = still ? tl_image_discard(lake, hash, fail) : 0;
    if (still && r >= 0) {
        forget_locked(lake, find_locked(lake, hash));
        r = 1;
    }
    pthread_mutex_unlock(&lake->images_lock);
    return r;
}

void tl_image_unused_fini(struct tl_image_unused *unused)
{
    free(unused->v);
    *unused = (struct tl_image_unused){0};
}
