/* SPDX-License-Identifier: MIT */
#include "lake/kept.h"

#include "base/crc32c.h"
#include "store/pack.h"
#include "store/shard.h"
#include "store/varint.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    VERSION = 1,
    CRC = 4,
    WAITING = 64,          /* are stored together */
    SIZE_MOST = 512 << 10, /* bytes of one that is worth its place */
    PLAIN_MOST = 64 << 20
};

struct tl_kept_count {
    char key[192];
    struct tl_buf bytes;
};

static char *key_of(char out[static 192], const struct tl_cut *cut, size_t i)
{
    snprintf(out, 192, "t/%s/%" PRIu64 "/%s/%06" PRIu64 ".count", cut->gen->trace, cut->gen->number,
             cut->lane->name, cut->rows[i].number);
    return out;
}

/* ---- bytes ----------------------------------------------------------------------------------- */

static int put_pairs(const struct tl_codecount *c, const struct tl_numbers *pairs,
                     const uint64_t *counts, struct tl_buf *out)
{
    uint64_t from = 0;
    int r = tl_varint_add(out, pairs->n);
    for (uint32_t i = 0; i < pairs->n && r >= 0; i++) {
        const uint64_t a = c->addresses.keys[pairs->keys[i] >> 32],
                       b = c->addresses.keys[(uint32_t)pairs->keys[i]];
        r = tl_varint_add(out, tl_zigzag((int64_t)(a - from)));
        if (r >= 0)
            r = tl_varint_add(out, tl_zigzag((int64_t)(b - a)));
        if (r >= 0)
            r = tl_varint_add(out, counts[i]);
        from = a;
    }
    return r;
}

static int encode(const struct tl_codecount *c, struct tl_buf *out)
{
    struct tl_buf plain = {0};
    struct tl_packer *packer = NULL;
    static const uint8_t zeros[CRC];
    int r = tl_varint_add(&plain, VERSION);
    if (r >= 0)
        r = tl_varint_add(&plain, c->insns);
    if (r >= 0)
        r = put_pairs(c, &c->runs, c->run_counts, &plain);
    if (r >= 0)
        r = put_pairs(c, &c->branches, c->branch_counts, &plain);
    if (r >= 0)
        r = tl_packer_new(&packer);
    if (r >= 0)
        r = tl_buf_add(out, zeros, CRC);
    if (r >= 0)
        r = tl_packer_bytes(packer, (struct tl_bytes){plain.p, plain.n}, out);
    if (r >= 0)
        tl_put_le32(out->p, tl_crc32c(0, out->p + CRC, out->n - CRC));
    tl_packer_free(packer);
    tl_buf_fini(&plain);
    return r;
}

static int get_pairs(struct tl_varint_reader *in, struct tl_codecount *out,
                     int (*count)(struct tl_codecount *c, uint64_t a, uint64_t b, uint64_t n))
{
    const uint64_t n = tl_varint_get(in);
    uint64_t from = 0;
    int r = TL_OK;
    for (uint64_t i = 0; i < n && !in->bad && r >= 0; i++) {
        from += (uint64_t)tl_varint_get_signed(in);
        const uint64_t to = from + (uint64_t)tl_varint_get_signed(in);
        const uint64_t times = tl_varint_get(in);
        r = in->bad ? TL_OK : count(out, from, to, times);
    }
    return r;
}

static int decode(struct tl_bytes bytes, struct tl_codecount *out)
{
    struct tl_buf plain = {0};
    if (bytes.n < CRC || tl_le32(bytes.p) != tl_crc32c(0, bytes.p + CRC, bytes.n - CRC))
        return TL_NOTFOUND;
    int r = tl_unpack((struct tl_bytes){bytes.p + CRC, bytes.n - CRC}, PLAIN_MOST, &plain);
    struct tl_varint_reader in = {.p = plain.p, .end = plain.p + plain.n};
    if (r == TL_OK && tl_varint_get(&in) == VERSION) {
        out->insns += tl_varint_get(&in);
        r = get_pairs(&in, out, tl_codecount_run);
        if (r >= 0)
            r = get_pairs(&in, out, tl_codecount_branch);
    } else if (r != TL_NOMEM) {
        r = TL_NOTFOUND;
    }
    tl_buf_fini(&plain);
    return r;
}

/* ---- objects --------------------------------------------------------------------------------- */

int tl_kept_counts_get(const struct tl_cut *cut, size_t i, struct tl_codecount *out)
{
    struct tl_buf bytes = {0};
    char key[192];
    int r = tl_backend_get_all(cut->gen->lake->backend, key_of(key, cut, i), &bytes, NULL);
    if (r >= 0)
        r = decode((struct tl_bytes){bytes.p, bytes.n}, out);
    else if (r != TL_NOMEM)
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
    const int r = encode(counts, &one->bytes);
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
