/* SPDX-License-Identifier: MIT */
/*
 * Reads and writes stored results of shards. Writing needs the trace's lease, because another
 * server may decode the trace again and these results would then describe shards that are gone.
 */
#include "query/kept.h"

#include "lake/recount_calls.h"
#include "share/share.h"

#include <stdlib.h>

enum { WAITING = 64, WAITING_BYTES = 8 << 20 }; /* objects stored together, and their size */

struct tl_kept_object {
    char key[192];
    struct tl_buf bytes;
};

static char *key_of(char out[static 192], const struct tl_cut *cut, size_t i, const char *kind)
{
    return tl_shard_object_key(out, cut->gen->trace, cut->gen->number, cut->lane->name,
                               cut->rows[i].number, kind);
}

static int get(const struct tl_cut *cut, size_t i, const char *kind, struct tl_buf *out)
{
    char key[192];
    return tl_backend_get_all(cut->gen->lake->backend, key_of(key, cut, i, kind), out, NULL);
}

int tl_kept_counts_get(const struct tl_cut *cut, size_t i, struct tl_codecount *out)
{
    struct tl_buf bytes = {0};
    int r = get(cut, i, TL_CODECOUNT_KIND, &bytes);
    if (r >= 0)
        r = tl_codecount_decode(out, tl_gen_image(cut->gen), (struct tl_bytes){bytes.p, bytes.n});
    if (r < 0 && r != TL_NOMEM)
        r = TL_NOTFOUND;
    tl_buf_fini(&bytes);
    return r;
}

/* 1, with a packer to encode with; 0: such a shard's results are not kept. TL_NOMEM. */
static int begin(struct tl_kept *kept, const struct tl_cut *cut, size_t i)
{
    if (!tl_gen_keeps_counts(cut->gen, atomic_load(&cut->lane->is_virtual), &cut->rows[i]))
        return 0;
    return kept->packer || tl_packer_new(&kept->packer) == TL_OK ? 1 : TL_NOMEM;
}

/* Queue the bytes, taking them over, if encoding succeeded. */
static int keep(struct tl_kept *kept, const struct tl_cut *cut, size_t i, const char *kind,
                struct tl_buf *bytes, int r)
{
    if (r >= 0 && bytes->n <= TL_KEPT_MAX)
        r = tl_grow(&kept->v, &kept->cap, kept->n + 1, sizeof *kept->v);
    if (r < 0 || bytes->n > TL_KEPT_MAX) {
        tl_buf_fini(bytes);
        return r;
    }
    struct tl_kept_object *const one = &kept->v[kept->n++];
    one->bytes = *bytes;
    kept->bytes += bytes->n;
    key_of(one->key, cut, i, kind);
    if (kept->n >= WAITING || kept->bytes >= WAITING_BYTES)
        tl_kept_store(kept, cut);
    return TL_OK;
}

int tl_kept_counts_add(struct tl_kept *kept, const struct tl_cut *cut, size_t i,
                       const struct tl_codecount *counts)
{
    struct tl_buf bytes = {0};
    const int r = begin(kept, cut, i);
    return r <= 0 ? r
                  : keep(kept, cut, i, TL_CODECOUNT_KIND, &bytes,
                         tl_codecount_encode(counts, kept->packer, &bytes));
}

int tl_kept_calls_get(const struct tl_cut *cut, size_t i, struct tl_calltree *out)
{
    struct tl_buf bytes = {0};
    int r = get(cut, i, TL_CALLTREE_KIND, &bytes);
    if (r >= 0)
        r = tl_shard_calls_decode(out, NULL, (struct tl_bytes){bytes.p, bytes.n});
    if (r < 0)
        tl_calltree_fini(out);
    tl_buf_fini(&bytes);
    out->stored = r >= 0;
    return r < 0 && r != TL_NOMEM ? TL_NOTFOUND : r;
}

int tl_kept_times_get(const struct tl_cut *cut, size_t i, struct tl_shard_calls *out)
{
    struct tl_buf bytes = {0};
    int r = get(cut, i, TL_CALLTREE_KIND, &bytes);
    if (r >= 0)
        r = tl_shard_calls_unpack(out, (struct tl_bytes){bytes.p, bytes.n});
    if (r != 1) {
        tl_shard_calls_fini(out);
        *out = (struct tl_shard_calls){0};
    }
    tl_buf_fini(&bytes);
    return r == 1 ? TL_OK : r == TL_NOMEM ? r : TL_NOTFOUND;
}

int tl_kept_calls_add(struct tl_kept *kept, const struct tl_cut *cut, size_t i,
                      const struct tl_calltree *tree)
{
    struct tl_buf bytes = {0};
    const int r = begin(kept, cut, i);
    return r <= 0 ? r
                  : keep(kept, cut, i, TL_CALLTREE_KIND, &bytes,
                         tl_calltree_encode(tree, kept->packer, &bytes));
}

int tl_kept_index_get(const struct tl_cut *cut, size_t i, struct tl_call_index *out)
{
    struct tl_buf bytes = {0};
    int r = get(cut, i, TL_CALLTREE_KIND, &bytes);
    if (r >= 0)
        r = tl_shard_calls_decode(NULL, out, (struct tl_bytes){bytes.p, bytes.n});
    tl_buf_fini(&bytes);
    if (r > 0 && tl_cut_row_is_indexed(cut, i, out->extent.timed))
        return TL_OK;
    tl_call_index_fini(out);
    return r == TL_NOMEM ? r : TL_NOTFOUND;
}

bool tl_kept_is_missing(const struct tl_cut *cut, size_t i)
{
    struct tl_backend *const backend = cut->gen->lake->backend;
    struct tl_buf head = {0};
    char key[192];
    if (!tl_gen_keeps_counts(cut->gen, atomic_load(&cut->lane->is_virtual), &cut->rows[i]))
        return false;
    const int r = backend->ops->get(backend, key_of(key, cut, i, TL_CALLTREE_KIND), 0,
                                    TL_CALLS_HEAD, &head, NULL);
    const bool missing =
        r == TL_NOTFOUND || (r >= 0 && !tl_shard_calls_is_whole((struct tl_bytes){head.p, head.n}));
    tl_buf_fini(&head);
    return missing;
}

int tl_kept_rows_get(const struct tl_cut *cut, size_t i, struct tl_timed_rows *out)
{
    struct tl_buf bytes = {0};
    int r = get(cut, i, TL_CALLTREE_KIND, &bytes);
    if (r >= 0)
        r = tl_shard_calls_rows(out, (struct tl_bytes){bytes.p, bytes.n});
    tl_buf_fini(&bytes);
    if (r > 0 && tl_cut_row_is_indexed(cut, i, out->extent.timed))
        return TL_OK;
    tl_timed_rows_fini(out);
    return r == TL_NOMEM ? r : TL_NOTFOUND;
}

int tl_kept_calls_replace(struct tl_kept *kept, const struct tl_cut *cut, size_t i,
                          const struct tl_shard_calls *calls)
{
    struct tl_buf bytes = {0};
    const int r = begin(kept, cut, i);
    return r <= 0 ? r
                  : keep(kept, cut, i, TL_CALLTREE_KIND, &bytes,
                         tl_shard_calls_encode(calls, kept->packer, &bytes));
}

/* The trace, under its lease, if the shards are still its own and no other server works on it;
 * otherwise NULL. */
static struct tl_trace *pin(const struct tl_gen *gen)
{
    struct tl_trace *const trace = tl_lake_peek(gen->lake, gen->trace);
    if (!trace || tl_trace_pin(trace, TL_PIN_TRY, NULL) < 0) {
        tl_trace_put(trace);
        return NULL;
    }
    pthread_mutex_lock(&trace->lock);
    const bool serves = !trace->deleted && trace->serving->number == gen->number;
    pthread_mutex_unlock(&trace->lock);
    if (serves)
        return trace;
    tl_trace_unpin(trace);
    tl_trace_put(trace);
    return NULL;
}

static void store(const struct tl_gen *gen, const struct tl_object *objects, size_t n)
{
    struct tl_backend *const backend = gen->lake->backend;
    struct tl_trace *const trace = gen->lake->shared ? pin(gen) : NULL;
    /* A full disk does not prevent an answer. */
    if ((trace || !gen->lake->shared) && !atomic_load(&gen->buried))
        (void)!backend->ops->put_all(backend, objects, n, NULL);
    if (trace)
        tl_trace_unpin(trace);
    tl_trace_put(trace);
}

void tl_kept_store(struct tl_kept *kept, const struct tl_cut *cut)
{
    struct tl_object *const objects = calloc(kept->n + 1, sizeof *objects);
    for (size_t i = 0; objects && i < kept->n; i++)
        objects[i] = (struct tl_object){kept->v[i].key, {kept->v[i].bytes.p, kept->v[i].bytes.n}};
    if (objects && kept->n > 0)
        store(cut->gen, objects, kept->n);
    for (size_t i = 0; i < kept->n; i++)
        tl_buf_fini(&kept->v[i].bytes);
    free(objects);
    free(kept->v);
    tl_packer_free(kept->packer);
    *kept = (struct tl_kept){0};
}
