/* SPDX-License-Identifier: MIT */
#include "lake/kept.h"

#include <stdlib.h>

enum {
    WAITING = 64,         /* are stored together */
    SIZE_MOST = 512 << 10 /* bytes of one that is worth its place */
};

struct tl_kept_count {
    char key[192];
    struct tl_buf bytes;
};

static char *key_of(char out[static 192], const struct tl_cut *cut, size_t i)
{
    return tl_codecount_key(out, cut->gen->trace, cut->gen->number, cut->lane->name,
                            cut->rows[i].number);
}

int tl_kept_counts_get(const struct tl_cut *cut, size_t i, struct tl_codecount *out)
{
    struct tl_buf bytes = {0};
    char key[192];
    int r = tl_backend_get_all(cut->gen->lake->backend, key_of(key, cut, i), &bytes, NULL);
    if (r >= 0)
        r = tl_codecount_decode(out, tl_gen_image(cut->gen), (struct tl_bytes){bytes.p, bytes.n});
    if (r < 0 && r != TL_NOMEM)
        r = TL_NOTFOUND;
    tl_buf_fini(&bytes);
    return r;
}

int tl_kept_counts_add(struct tl_kept_counts *kept, const struct tl_cut *cut, size_t i,
                       const struct tl_codecount *counts)
{
    if (tl_grow(&kept->v, &kept->cap, kept->n + 1, sizeof *kept->v) < 0)
        return TL_NOMEM;
    struct tl_kept_count *const one = &kept->v[kept->n++];
    *one = (struct tl_kept_count){0};
    key_of(one->key, cut, i);
    struct tl_packer *packer = NULL;
    int r = tl_packer_new(&packer);
    if (r >= 0)
        r = tl_codecount_encode(counts, packer, &one->bytes);
    tl_packer_free(packer);
    if (r < 0 || one->bytes.n > SIZE_MOST) {
        tl_buf_fini(&one->bytes);
        kept->n--;
    }
    if (kept->n >= WAITING)
        tl_kept_counts_store(kept, cut);
    return r;
}

void tl_kept_counts_store(struct tl_kept_counts *kept, const struct tl_cut *cut)
{
    struct tl_backend *const backend = cut->gen->lake->backend;
    struct tl_object *const objects = calloc(kept->n + 1, sizeof *objects);
    for (size_t i = 0; objects && i < kept->n; i++)
        objects[i] = (struct tl_object){kept->v[i].key, {kept->v[i].bytes.p, kept->v[i].bytes.n}};
    /* A full disk is no reason not to answer. */
    if (objects && kept->n > 0 && !atomic_load(&cut->gen->buried))
        (void)!backend->ops->put_all(backend, objects, kept->n, NULL);
    for (size_t i = 0; i < kept->n; i++)
        tl_buf_fini(&kept->v[i].bytes);
    free(objects);
    free(kept->v);
    *kept = (struct tl_kept_counts){0};
}
