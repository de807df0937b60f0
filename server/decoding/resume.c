/* SPDX-License-Identifier: MIT */
/*
 * Resuming decoding after a restart.
 *
 * At intervals of raw bytes a checkpoint is stored: the state of the decoder and of each lane's
 * builder with its incomplete shard. Complete shards are in the store before it is written, so a
 * checkpoint is all that resuming needs, and only the last one is kept. Shards that were stored
 * after the checkpoint are replayed: decoded again without being stored, and checked to end where
 * the stored ones do.
 */
#include "decoding/resume.h"

#include "base/cancel.h"
#include "decoding/decode_job.h"
#include "decoding/suspect.h"
#include "lake/lakeint.h"

#include <stdio.h>

#define BUILD_MAX (1u << 30) /* maximum plain size of a builder's state */

void tl_resume_remove(struct tl_lake *lake, const char *trace, uint64_t generation)
{
    char prefix[192];
    tl_lake_discard(lake, tl_checkpoint_key(prefix, trace, generation, NULL));
}

static int name_identity(struct tl_gen *gen, char out[static TL_HASH_TEXT])
{
    const struct tl_image *image;
    struct tl_buf all = {0};
    int r = tl_buf_printf(&all, TL_VERSION " %d\n%llu\n", TL_DECODE_VERSION,
                          (unsigned long long)gen->lake->options.shard_insns);
    if (r >= 0)
        r = tl_setup_write(&gen->setup, &all);
    if (r >= 0)
        r = tl_gen_load_image(gen, &image, NULL);
    if (r >= 0)
        r = tl_buf_add(&all, gen->program->images.p, gen->program->images.n);
    if (r >= 0)
        r = tl_hash_text((struct tl_bytes){all.p, all.n}, out);
    tl_buf_fini(&all);
    return r;
}

int tl_resume_identity(struct tl_gen *gen)
{
    char whose[TL_HASH_TEXT];
    pthread_mutex_lock(&gen->lock);
    const bool known = gen->whose[0] != '\0';
    pthread_mutex_unlock(&gen->lock);
    const int r = known ? TL_OK : name_identity(gen, whose);
    if (r < 0 || known)
        return r;
    pthread_mutex_lock(&gen->lock);
    memcpy(gen->whose, whose, sizeof(whose));
    pthread_mutex_unlock(&gen->lock);
    return TL_OK;
}

/* ---- resuming -------------------------------------------------------------------------------- */

/* Read a stored checkpoint. TL_BAD: it is damaged, or invalid here. */
static int get(struct tl_gen *gen, const char *key, struct tl_checkpoint *out)
{
    struct tl_buf bytes = {0};
    char expected[192];
    *out = (struct tl_checkpoint){0};
    int r = tl_backend_get_all(gen->lake->backend, key, &bytes, NULL);
    if (r >= 0)
        r = tl_checkpoint_decode(out, gen->whose, (struct tl_bytes){bytes.p, bytes.n});
    if (r >= 0 && strcmp(key, tl_checkpoint_key(expected, gen->trace, gen->number, &out->offset)))
        r = TL_BAD;
    tl_buf_fini(&bytes);
    return r;
}

static int load_lane(struct tl_decode_job *job, const struct tl_checkpoint_lane *saved)
{
    struct tl_lane *lane = tl_gen_lane(job->gen, saved->name);
    struct tl_buf plain = {0};
    if (!lane || !lane->build)
        return TL_BAD; /* the catalog has changed */
    int r = tl_unpack((struct tl_bytes){saved->build.p, saved->build.n}, BUILD_MAX, &plain);
    if (r >= 0) {
        struct tl_state state = {.in = {plain.p, plain.n}};
        pthread_mutex_lock(&lane->lock);
        tl_build_state(lane->build, &state);
        if (state.in.n > 0) /* otherwise from an earlier version, which had none */
            tl_clockfit_state(lane->fit, &state);
        tl_state_check(&state, state.in.n == 0);
        lane->lost_bytes = saved->lost_bytes;
        pthread_mutex_unlock(&lane->lock);
        r = state.rc;
    }
    tl_buf_fini(&plain);
    return r;
}

static int load(struct tl_decode_job *job, const struct tl_checkpoint *c)
{
    struct tl_gen *const gen = job->gen;
    int r = tl_decode_load(job->decode, (struct tl_bytes){c->decode.p, c->decode.n});
    for (size_t i = 0; r >= 0 && i < c->n_lanes; i++)
        r = load_lane(job, &c->lanes[i]);
    if (r < 0)
        return r;
    pthread_mutex_lock(&gen->lock);
    gen->lost_bytes = c->lost_bytes;
    if (c->message[0])
        snprintf(gen->message, sizeof(gen->message), "%s", c->message);
    pthread_mutex_unlock(&gen->lock);
    atomic_store(&gen->decoded, c->offset);
    job->marked = job->tried = c->offset;
    job->has_mark = job->resumed = true;
    atomic_fetch_add(&gen->lake->resumes, 1);
    return TL_OK;
}

static int collect(void *context, const char *key, uint64_t size)
{
    return tl_buf_add(context, key, strlen(key) + 1);
}

/* Keys are in order. There is more than one only if an older one could not be removed. */
static int find_last(struct tl_gen *gen, struct tl_checkpoint *out)
{
    struct tl_buf keys = {0};
    char prefix[192];
    struct tl_backend *backend = gen->lake->backend;
    *out = (struct tl_checkpoint){0};
    tl_checkpoint_key(prefix, gen->trace, gen->number, NULL);
    int r = backend->ops->list(backend, prefix, collect, &keys, NULL);
    if (r >= 0)
        r = TL_NOTFOUND;
    for (size_t at = 0; at < keys.n; at += strlen((char *)keys.p + at) + 1) {
        tl_checkpoint_fini(out);
        r = get(gen, (char *)keys.p + at, out);
    }
    tl_buf_fini(&keys);
    return r;
}

int tl_resume_load(struct tl_decode_job *job)
{
    struct tl_checkpoint c = {0};
    int r = tl_resume_identity(job->gen);
    if (r >= 0)
        r = find_last(job->gen, &c);
    if (r >= 0)
        r = load(job, &c);
    tl_checkpoint_fini(&c);
    return r == TL_NOTFOUND ? TL_OK : r;
}

/* ---- storing --------------------------------------------------------------------------------- */

static int save_lane(struct tl_decode_job *job, struct tl_lane *lane, struct tl_checkpoint *c)
{
    struct tl_buf plain = {0};
    int r = tl_grow(&c->lanes, &c->cap_lanes, c->n_lanes + 1, sizeof(*c->lanes));
    if (r < 0)
        return r;
    struct tl_checkpoint_lane *saved = &c->lanes[c->n_lanes++];
    *saved = (struct tl_checkpoint_lane){0};
    struct tl_state state = {.out = &plain};
    snprintf(saved->name, sizeof(saved->name), "%s", lane->name);
    pthread_mutex_lock(&lane->lock);
    tl_build_state(lane->build, &state);
    tl_clockfit_state(lane->fit, &state);
    saved->lost_bytes = lane->lost_bytes;
    pthread_mutex_unlock(&lane->lock);
    r = state.rc;
    if (r >= 0 && !job->packer)
        r = tl_packer_new(&job->packer);
    if (r >= 0)
        r = tl_packer_bytes(job->packer, (struct tl_bytes){plain.p, plain.n}, &saved->build);
    tl_buf_fini(&plain);
    return r;
}

static int save(struct tl_decode_job *job, struct tl_checkpoint *c)
{
    struct tl_gen *const gen = job->gen;
    c->offset = atomic_load(&gen->decoded);
    int r = tl_decode_save(job->decode, &c->decode);
    for (size_t i = 0; r >= 0 && i < job->n_by_stream; i++)
        r = save_lane(job, job->by_stream[i], c);
    pthread_mutex_lock(&gen->lock);
    c->lost_bytes = gen->lost_bytes;
    memcpy(c->message, gen->message, sizeof(c->message));
    pthread_mutex_unlock(&gen->lock);
    return r;
}

/* Replace the previous one. */
static int put(struct tl_decode_job *job, struct tl_checkpoint *c)
{
    struct tl_gen *const gen = job->gen;
    char key[192];
    struct tl_buf bytes = {0};
    struct tl_backend *backend = gen->lake->backend;
    int r = tl_checkpoint_encode(c, gen->whose, &bytes);
    tl_wait_begins();
    if (r >= 0)
        r = tl_backend_put(backend, tl_checkpoint_key(key, gen->trace, gen->number, &c->offset),
                           (struct tl_bytes){bytes.p, bytes.n}, NULL);
    tl_wait_ends();
    tl_buf_fini(&bytes);
    if (r < 0)
        return r;
    tl_checkpoint_key(key, gen->trace, gen->number, &job->marked);
    if (job->has_mark)
        (void)!backend->ops->remove(backend, key,
                                    NULL); /* else it is ignored, and removed with the rest */
    job->has_mark = true;
    return TL_OK;
}

bool tl_resume_due(const struct tl_decode_job *job)
{
    struct tl_gen *const gen = job->gen;
    return atomic_load(&gen->decoded) - job->tried >= gen->lake->options.checkpoint_bytes;
}

void tl_resume_save(struct tl_decode_job *job)
{
    struct tl_gen *const gen = job->gen;
    struct tl_checkpoint c = {0};
    int r = tl_resume_identity(gen);
    if (r >= 0)
        r = save(job, &c);
    if (r >= 0)
        r = put(job, &c);
    tl_checkpoint_fini(&c);
    if (r == TL_AGAIN)
        return; /* after the next slice */
    job->tried = atomic_load(&gen->decoded);
    if (r < 0)
        return; /* another format, or the medium failed: retry with the next one */
    job->marked = job->tried;
    tl_suspect_clear(job);
    atomic_fetch_add(&gen->lake->checkpoints, 1);
}
