/* SPDX-License-Identifier: MIT */
/*
 * Holds bytes of a shard, which are packed by whichever thread comes first. Decoding does not wait
 * for compression, and its output is the same whoever does it.
 */
#include "shard/blob.h"

#include "base/crew.h"
#include "shard/shard.h"
#include "stf/zstf.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#define PLAIN_MAX (256u << 20) /* maximum plain bytes of a blob */
#define SPARE_MAX (1u << 20)   /* maximum size of a piece whose memory is kept */
/* Number of blobs for which the crew is called: a call costs a tenth of packing one. Fewer stay
 * plain until there are more, or are packed when they are stored. */
#define BATCH 6

enum state { PLAIN, BUSY, PACKED };

struct tl_blob {
    atomic_uint refs;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    /* Guarded by the lock: */
    enum state state;
    struct tl_stf_piece plain; /* until it is packed; left to the packing thread while busy */
    uint8_t *packed;
    size_t n_packed;
    struct tl_packing *pool; /* receives the piece's memory; NULL: none */
};

struct tl_packing {
    struct tl_crew *crew;
    struct tl_crew_work work;
    bool offered;
    pthread_mutex_t lock;
    /* Guarded by the lock: */
    struct tl_blob **queue; /* a ring buffer */
    size_t first, n, size;
    struct tl_stf_piece *spare;
    size_t n_spare;
    struct tl_packer **packers; /* [n_packers] unused ones; capacity for one per thread */
    size_t n_packers;
};

static void piece_fini(struct tl_stf_piece *piece)
{
    tl_buf_fini(&piece->stf);
    free(piece->repeats);
    *piece = (struct tl_stf_piece){0};
}

struct tl_blob *tl_blob_take(struct tl_stf_piece *piece)
{
    struct tl_blob *blob = calloc(1, sizeof(*blob));
    if (!blob)
        return NULL;
    atomic_init(&blob->refs, 1);
    pthread_mutex_init(&blob->lock, NULL);
    pthread_cond_init(&blob->changed, NULL);
    blob->plain = *piece;
    *piece = (struct tl_stf_piece){0};
    return blob;
}

struct tl_blob *tl_blob_new(struct tl_bytes bytes)
{
    struct tl_stf_piece piece = {0};
    if (tl_buf_add(&piece.stf, bytes.p, bytes.n) < 0)
        return NULL;
    struct tl_blob *blob = tl_blob_take(&piece);
    piece_fini(&piece);
    return blob;
}

struct tl_blob *tl_blob_get(struct tl_blob *blob)
{
    if (blob)
        atomic_fetch_add_explicit(&blob->refs, 1, memory_order_relaxed);
    return blob;
}

void tl_blob_put(struct tl_blob *blob)
{
    if (!blob || atomic_fetch_sub_explicit(&blob->refs, 1, memory_order_acq_rel) != 1)
        return;
    piece_fini(&blob->plain);
    free(blob->packed);
    pthread_cond_destroy(&blob->changed);
    pthread_mutex_destroy(&blob->lock);
    free(blob);
}

int tl_blob_plain(struct tl_blob *blob, struct tl_buf *out)
{
    pthread_mutex_lock(&blob->lock);
    while (blob->state == BUSY)
        pthread_cond_wait(&blob->changed, &blob->lock);
    if (blob->state == PLAIN)
        tl_stf_fill(blob->plain.stf.p, blob->plain.repeats, blob->plain.n_repeats);
    const int r = blob->state == PACKED
                      ? tl_unpack((struct tl_bytes){blob->packed, blob->n_packed}, PLAIN_MAX, out)
                      : tl_buf_add(out, blob->plain.stf.p, blob->plain.stf.n);
    pthread_mutex_unlock(&blob->lock);
    return r;
}

/* ---- packing -------------------------------------------------------------------------------- */

static void keep_spare(struct tl_packing *pool, struct tl_stf_piece *piece)
{
    tl_buf_reset(&piece->stf);
    piece->n_repeats = piece->head = 0;
    if (pool && piece->repeats &&
        piece->stf.cap <= SPARE_MAX) { /* otherwise too small for the next one */
        pthread_mutex_lock(&pool->lock);
        if (pool->n_spare < pool->size) {
            pool->spare[pool->n_spare++] = *piece;
            *piece = (struct tl_stf_piece){0};
        }
        pthread_mutex_unlock(&pool->lock);
    }
    piece_fini(piece);
}

struct tl_blob *tl_blob_pack(struct tl_packer *packer, const struct tl_stf_piece *piece)
{
    struct tl_stf_piece nothing = {0};
    struct tl_blob *blob = tl_blob_take(&nothing);
    if (!blob || tl_packer_stf_new(packer, piece, &blob->packed, &blob->n_packed) < 0) {
        tl_blob_put(blob);
        return NULL;
    }
    blob->state = PACKED;
    return blob;
}

struct tl_blob *tl_blob_of_packed(struct tl_bytes packed)
{
    struct tl_stf_piece nothing = {0};
    uint8_t *const copy = malloc(packed.n + 1);
    struct tl_blob *blob = copy ? tl_blob_take(&nothing) : NULL;
    if (!blob) {
        free(copy);
        return NULL;
    }
    memcpy(copy, packed.p, packed.n);
    blob->packed = copy;
    blob->n_packed = packed.n;
    blob->state = PACKED;
    return blob;
}

/* Pack it, unless another thread does or did. */
static int pack_blob(struct tl_blob *blob, struct tl_packer *packer)
{
    pthread_mutex_lock(&blob->lock);
    const bool mine = blob->state == PLAIN;
    if (mine)
        blob->state = BUSY;
    pthread_mutex_unlock(&blob->lock);
    if (!mine)
        return TL_OK;
    uint8_t *packed = NULL;
    size_t n = 0;
    struct tl_stf_piece used = {0};
    const int r = tl_packer_stf_new(packer, &blob->plain, &packed, &n);
    pthread_mutex_lock(&blob->lock);
    blob->state = r < 0 ? PLAIN : PACKED;
    if (r >= 0) {
        blob->packed = packed;
        blob->n_packed = n;
        used = blob->plain;
        blob->plain = (struct tl_stf_piece){0};
    }
    struct tl_packing *const pool = blob->pool;
    blob->pool = NULL;
    pthread_cond_broadcast(&blob->changed);
    pthread_mutex_unlock(&blob->lock);
    keep_spare(pool, &used);
    return r;
}

int tl_blob_packed(struct tl_blob *blob, struct tl_packer *packer, struct tl_bytes *out)
{
    const int r = pack_blob(blob, packer);
    if (r < 0)
        return r;
    pthread_mutex_lock(&blob->lock);
    while (blob->state == BUSY)
        pthread_cond_wait(&blob->changed, &blob->lock);
    const bool there = blob->state == PACKED;
    *out = (struct tl_bytes){blob->packed, blob->n_packed};
    pthread_mutex_unlock(&blob->lock);
    return there ? TL_OK : TL_NOMEM;
}

/* ---- the crew -------------------------------------------------------------------------------- */

/* Pack a queued blob, if there is one. */
static bool pack_piece(void *context)
{
    struct tl_packing *const p = context;
    struct tl_blob *blob = NULL;
    struct tl_packer *packer = NULL;
    pthread_mutex_lock(&p->lock);
    if (p->n > 0) {
        blob = p->queue[p->first];
        p->first = (p->first + 1) % p->size;
        p->n--;
        packer = p->n_packers > 0 ? p->packers[--p->n_packers] : NULL;
    }
    pthread_mutex_unlock(&p->lock);
    if (!blob)
        return false;
    /* A blob that cannot be packed now stays plain, and is packed when needed. */
    if (packer || tl_packer_new(&packer) == TL_OK) {
        (void)!pack_blob(blob, packer);
        pthread_mutex_lock(&p->lock);
        p->packers[p->n_packers++] = packer;
        pthread_mutex_unlock(&p->lock);
    }
    tl_blob_put(blob);
    return true;
}

int tl_packing_new(struct tl_packing **out, struct tl_crew *crew)
{
    const unsigned threads = tl_crew_threads(crew);
    struct tl_packing *p = calloc(1, sizeof(*p));
    if (!p)
        return TL_NOMEM;
    pthread_mutex_init(&p->lock, NULL);
    p->crew = crew;
    p->work = (struct tl_crew_work){.piece = pack_piece, .context = p};
    p->size = 2 * (size_t)(threads + 1) + BATCH;
    p->queue = calloc(p->size, sizeof(*p->queue));
    p->spare = calloc(p->size, sizeof(*p->spare));
    p->packers = calloc(threads, sizeof(*p->packers));
    int r = p->queue && p->spare && p->packers ? TL_OK : TL_NOMEM;
    if (r >= 0)
        r = tl_crew_offer(crew, &p->work);
    p->offered = r >= 0;
    if (r < 0) {
        tl_packing_free(p);
        return r;
    }
    *out = p;
    return TL_OK;
}

void tl_packing_free(struct tl_packing *p)
{
    if (!p)
        return;
    if (p->offered)
        tl_crew_withdraw(p->crew, &p->work);
    for (; p->n > 0; p->n--, p->first = (p->first + 1) % p->size)
        tl_blob_put(p->queue[p->first]);
    while (p->n_spare > 0)
        piece_fini(&p->spare[--p->n_spare]);
    while (p->n_packers > 0)
        tl_packer_free(p->packers[--p->n_packers]);
    free(p->packers);
    free(p->spare);
    free(p->queue);
    pthread_mutex_destroy(&p->lock);
    free(p);
}

int tl_packing_add(struct tl_packing *p, struct tl_blob *blob, struct tl_packer *packer)
{
    pthread_mutex_lock(&blob->lock);
    const bool work = blob->plain.stf.n >= TL_PACK_SMALL;
    if (work)
        blob->pool = p;
    pthread_mutex_unlock(&blob->lock);
    if (!work)
        return TL_OK;
    pthread_mutex_lock(&p->lock);
    const bool room = p->n < p->size;
    if (room)
        p->queue[(p->first + p->n++) % p->size] = tl_blob_get(blob);
    const bool call = p->n >= BATCH;
    pthread_mutex_unlock(&p->lock);
    if (call)
        tl_crew_call(p->crew);
    return room ? TL_OK : pack_blob(blob, packer);
}

void tl_packing_piece(struct tl_packing *p, struct tl_stf_piece *out)
{
    *out = (struct tl_stf_piece){0};
    pthread_mutex_lock(&p->lock);
    if (p->n_spare > 0)
        *out = p->spare[--p->n_spare];
    pthread_mutex_unlock(&p->lock);
}
