/* SPDX-License-Identifier: MIT */
/*
 * Taking marks, one for each eighth of a shard's positions, and storing them in lists. They only
 * save time later, so nothing here fails a decode.
 */
#include "decoding/marks.h"

#include "base/cancel.h"
#include "decoding/decode_job.h"
#include "decoding/resume.h"
#include "lake/lakeint.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define TOGETHER 64 /* marks per list */
#define SPARSE   64 /* distance in units of options.mark_bytes if there are few positions */
/* A larger mark is taken only when as many raw bytes as its size have arrived since the previous
 * one: for perf.data it contains scheduling records, which grow with the recording. */
#define MARK_SMALL (64u << 10)

char *tl_mark_key(char out[static 192], const struct tl_gen *gen, const uint64_t *offset)
{
    const int n = snprintf(out, 192, "t/%s/%" PRIu64 "/" TL_MARKS, gen->trace, gen->number);
    if (offset)
        snprintf(out + n, 192 - (size_t)n, "/%016" PRIx64, *offset);
    return out;
}

/* ---- server version ------------------------------------------------------------------------- */

char *tl_mark_identity_key(char out[static 192], const struct tl_gen *gen)
{
    tl_mark_key(out, gen, NULL);
    return strcat(out, "/whose");
}

/* The object has the identity and, on lines of their own, the images that were there ("-": one that
 * was missing). */
void tl_mark_begin(struct tl_decode_job *job)
{
    struct tl_gen *const gen = job->gen;
    struct tl_buf all = {0};
    char key[192];
    int r = tl_resume_identity(gen);
    if (r >= 0)
        r = tl_buf_printf(&all, "%s\n", gen->whose);
    if (r >= 0)
        r = tl_buf_add(&all, gen->program->images.p, gen->program->images.n);
    /* If it cannot be stored, they count as another version's. */
    tl_wait_begins();
    if (r >= 0)
        (void)!tl_backend_put(gen->lake->backend, tl_mark_identity_key(key, gen),
                              (struct tl_bytes){all.p, all.n}, NULL);
    tl_wait_ends();
    tl_buf_fini(&all);
}

/* ---- creating ------------------------------------------------------------------------------- */

bool tl_can_mark(struct tl_decode *decode)
{
    struct tl_buf state = {0};
    const int r = tl_decode_save(decode, &state);
    tl_buf_fini(&state);
    return r >= 0 || r == TL_AGAIN;
}

static int save_lane(struct tl_lane *lane, struct tl_checkpoint *c)
{
    const int r = tl_grow(&c->lanes, &c->cap_lanes, c->n_lanes + 1, sizeof(*c->lanes));
    if (r < 0)
        return r;
    struct tl_checkpoint_lane *saved = &c->lanes[c->n_lanes++];
    *saved = (struct tl_checkpoint_lane){0};
    struct tl_state state = {.out = &saved->build};
    snprintf(saved->name, sizeof(saved->name), "%s", lane->name);
    pthread_mutex_lock(&lane->lock);
    tl_build_mark(lane->build, &state);
    pthread_mutex_unlock(&lane->lock);
    return state.rc;
}

static int add_late(struct tl_decode_job *job, struct tl_mark *mark)
{
    struct tl_gen *const gen = job->gen;
    pthread_mutex_lock(&gen->lock);
    if (!job->late_marks)
        job->late_marks = calloc(TOGETHER, sizeof(*job->late_marks));
    const bool there = job->late_marks;
    if (there) {
        job->late_marks[job->n_late_marks++] = *mark;
        mark->bytes = (struct tl_buf){0};
    }
    pthread_mutex_unlock(&gen->lock);
    return there ? TL_OK : TL_NOMEM;
}

static int make_mark(struct tl_decode_job *job)
{
    struct tl_gen *const gen = job->gen;
    struct tl_checkpoint c = {.offset = atomic_load(&gen->decoded)};
    struct tl_mark mark = {.offset = c.offset};
    int r = tl_resume_identity(gen);
    if (r >= 0)
        r = tl_decode_save(job->decode, &c.decode);
    for (size_t i = 0; r >= 0 && i < job->n_by_stream; i++)
        if (job->by_stream[i])
            r = save_lane(job->by_stream[i], &c);
    if (r >= 0)
        r = tl_checkpoint_encode(&c, gen->whose, &mark.bytes);
    if (r >= 0) {
        job->mark_size = mark.bytes.n;
        r = add_late(job, &mark);
    }
    tl_checkpoint_fini(&c);
    tl_buf_fini(&mark.bytes);
    if (job->n_late_marks == TOGETHER)
        tl_mark_flush(job);
    return r;
}

static uint64_t positions(const struct tl_decode_job *job)
{
    uint64_t n = 0;
    for (size_t i = 0; i < job->n_by_stream; i++) {
        struct tl_lane *const lane = job->by_stream[i];
        if (!lane)
            continue;
        pthread_mutex_lock(&lane->lock);
        n += tl_build_position(lane->build);
        pthread_mutex_unlock(&lane->lock);
    }
    return n;
}

void tl_mark(struct tl_decode_job *job)
{
    struct tl_gen *const gen = job->gen;
    const struct tl_lake_options *const o = &gen->lake->options;
    const uint64_t insns = positions(job), offset = atomic_load(&gen->decoded);
    if (insns - job->mark_insns < o->shard_insns / 8 &&
        offset - job->mark_offset < SPARSE * o->mark_bytes)
        return;
    if (job->mark_size > MARK_SMALL && offset - job->mark_offset < job->mark_size)
        return;
    if (make_mark(job) == TL_AGAIN)
        return; /* try a little later */
    job->mark_insns = insns;
    job->mark_offset = offset;
}

static void drop_late_locked(struct tl_decode_job *job)
{
    for (size_t i = 0; i < job->n_late_marks; i++)
        tl_buf_fini(&job->late_marks[i].bytes);
    free(job->late_marks);
    job->late_marks = NULL;
    job->n_late_marks = 0;
}

void tl_mark_drop(struct tl_decode_job *job)
{
    struct tl_gen *const gen = job->gen;
    pthread_mutex_lock(&gen->lock);
    drop_late_locked(job);
    pthread_mutex_unlock(&gen->lock);
}

static int pack_list(const struct tl_decode_job *job, struct tl_buf *out)
{
    struct tl_packer *packer;
    struct tl_buf plain = {0};
    int r = tl_packer_new(&packer); /* job->packer is in use by the sealing thread */
    if (r < 0)
        return r;
    for (size_t i = 0; r >= 0 && i < job->n_late_marks; i++) {
        const struct tl_buf *const bytes = &job->late_marks[i].bytes;
        const uint32_t n = (uint32_t)bytes->n;
        r = tl_buf_add(&plain, &n, sizeof(n));
        if (r >= 0)
            r = tl_buf_add(&plain, bytes->p, bytes->n);
    }
    if (r >= 0)
        r = tl_packer_bytes(packer, (struct tl_bytes){plain.p, plain.n}, out);
    tl_packer_free(packer);
    tl_buf_fini(&plain);
    return r;
}

void tl_mark_flush(struct tl_decode_job *job)
{
    struct tl_gen *const gen = job->gen;
    struct tl_backend *backend = gen->lake->backend;
    struct tl_buf list = {0};
    char key[192];
    if (job->n_late_marks == 0)
        return;
    const uint64_t first = job->late_marks[0].offset;
    int r = pack_list(job, &list);
    tl_wait_begins();
    if (r >= 0)
        r = tl_backend_put(backend, tl_mark_key(key, gen, &first),
                           (struct tl_bytes){list.p, list.n}, NULL);
    tl_wait_ends();
    tl_buf_fini(&list);
    pthread_mutex_lock(&gen->lock);
    if (r >= 0 && tl_grow(&gen->marks, &gen->cap_marks, gen->n_marks + 1, sizeof(*gen->marks)) >= 0)
        gen->marks[gen->n_marks++] = first; /* otherwise found when they are listed */
    drop_late_locked(job);
    pthread_mutex_unlock(&gen->lock);
}

/* ---- finding them --------------------------------------------------------------------------- */
