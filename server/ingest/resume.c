/* SPDX-License-Identifier: MIT */
/*
 * Going on after a restart near the end of what is sealed.
 *
 * Each so many raw bytes a checkpoint is stored: where the decoder stands, and where each lane's
 * builder stands in its shard. Of a shard that has items alone so far these are kept, too, and the
 * lane can go on from there. Another lane can once that shard is stored, since of the builder only
 * that is kept which later shards hang on; the rest of the shard is followed in silence, as all of
 * the stream is without checkpoints. A lane whose checkpoint is a later one
 * than that of others is silent up to there: its bytes are dealt out, not decoded. The raw bytes
 * from the earliest of them on are read again.
 *
 * So of a generation's checkpoints only a few are kept: the last, and for each lane the last one
 * that it can go on from.
 */
#include "ingest/lakeint.h"

#include <stdio.h>
#include <stdlib.h>

static void mark_fini(struct tl_mark *mark)
{
    free(mark->lanes);
    *mark = (struct tl_mark){0};
}

void tl_resume_fini(struct tl_gen *gen)
{
    for (size_t i = 0; i < gen->n_marks; i++)
        mark_fini(&gen->marks[i]);
    free(gen->marks);
    gen->marks = NULL;
    gen->n_marks = gen->cap_marks = 0;
}

void tl_resume_remove(struct tl_lake *lake, const char *trace, uint64_t generation)
{
    char prefix[192];
    tl_lake_discard(lake, tl_checkpoint_key(prefix, trace, generation, NULL));
}

/* ---- for whom -------------------------------------------------------------------------------- */

/* What the result hangs on beside the raw bytes. */
static int name_whose(struct tl_gen *gen)
{
    struct tl_buf all = {0};
    if (gen->whose[0])
        return TL_OK;
    int r = tl_buf_printf(&all, TL_VERSION "\n%llu\n",
                          (unsigned long long)gen->lake->options.shard_insns);
    if (r >= 0)
        r = tl_setup_write(&gen->setup, &all);
    if (r >= 0 && !tl_gen_image(gen))
        r = TL_NOMEM;
    if (r >= 0)
        r = tl_buf_add(&all, gen->images.p, gen->images.n);
    if (r >= 0)
        r = tl_hash_text((struct tl_bytes){all.p, all.n}, gen->whose);
    tl_buf_fini(&all);
    return r;
}

/* ---- which are there ------------------------------------------------------------------------- */

static const struct tl_checkpoint_lane *lane_in(const struct tl_checkpoint_lane *lanes, size_t n,
                                                const char *name)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(lanes[i].name, name) == 0)
            return &lanes[i];
    return NULL;
}

static int add_mark(struct tl_gen *gen, const struct tl_checkpoint *c)
{
    struct tl_mark mark = {.offset = c->offset, .n_lanes = c->n_lanes};
    int r = tl_grow(&gen->marks, &gen->cap_marks, gen->n_marks + 1, sizeof(mark));
    if (r < 0)
        return r;
    mark.lanes = calloc(c->n_lanes + 1, sizeof(*mark.lanes));
    if (!mark.lanes)
        return TL_NOMEM;
    for (size_t i = 0; i < c->n_lanes; i++) {
        mark.lanes[i] = c->lanes[i];
        mark.lanes[i].build = (struct tl_buf){0};
    }
    gen->marks[gen->n_marks++] = mark;
    return TL_OK;
}

/* A checkpoint as stored. TL_BAD: it is damaged, or another's. */
static int get(struct tl_gen *gen, const char *key, struct tl_checkpoint *out)
{
    struct tl_buf bytes = {0};
    *out = (struct tl_checkpoint){0};
    int r = tl_backend_get_all(gen->lake->backend, key, &bytes, NULL);
    if (r >= 0)
        r = tl_checkpoint_decode(out, gen->whose, (struct tl_bytes){bytes.p, bytes.n});
    tl_buf_fini(&bytes);
    return r;
}

static int collect(void *context, const char *key, uint64_t size)
{
    return tl_buf_add(context, key, strlen(key) + 1);
}

/* Keys come in order, and so the marks: the oldest first. */
static void find_marks(struct tl_gen *gen)
{
    struct tl_buf keys = {0};
    char prefix[192], key[192];
    struct tl_backend *backend = gen->lake->backend;
    tl_checkpoint_key(prefix, gen->trace, gen->number, NULL);
    tl_resume_fini(gen);
    int r = backend->ops->list(backend, prefix, collect, &keys, NULL);
    for (size_t at = 0; r >= 0 && at < keys.n; at += strlen((char *)keys.p + at) + 1) {
        struct tl_checkpoint c;
        int one = get(gen, (char *)keys.p + at, &c);
        if (one >= 0) {
            tl_checkpoint_key(key, gen->trace, gen->number, &c.offset);
            one = strcmp(key, (char *)keys.p + at) == 0 ? add_mark(gen, &c) : TL_BAD;
        }
        if (one == TL_BAD)
            (void)!backend->ops->remove(backend, (char *)keys.p + at, NULL);
        tl_checkpoint_fini(&c);
    }
    tl_buf_fini(&keys);
}

/* Can this lane, of which so many shards are stored, go on from there? One that is not in it had
 * not begun. */
static bool is_usable(const struct tl_mark *mark, const char *name, size_t stored)
{
    const struct tl_checkpoint_lane *lane = lane_in(mark->lanes, mark->n_lanes, name);
    return !lane || lane->shard < stored + lane->whole;
}

/* The place of the last mark that this lane can go on from, + 1; 0: there is none. */
static size_t last_usable(const struct tl_gen *gen, const char *name, size_t stored)
{
    size_t i = gen->n_marks;
    while (i > 0 && !is_usable(&gen->marks[i - 1], name, stored))
        i--;
    return i;
}

/* ---- going on -------------------------------------------------------------------------------- */

void tl_resume_plan(struct tl_gen *gen)
{
    struct tl_lane *lane;
    if (name_whose(gen) < 0)
        return;
    find_marks(gen);
    for (size_t i = 0; (lane = tl_gen_lane_at(gen, i)); i++) {
        pthread_mutex_lock(&lane->lock);
        const size_t stored = lane->n_rows;
        pthread_mutex_unlock(&lane->lock);
        const size_t mark = last_usable(gen, lane->name, stored);
        lane->resume_at = mark > 0 ? gen->marks[mark - 1].offset : 0;
    }
}

bool tl_resume_silent(void *context, const char *stream)
{
    struct tl_gen *gen = context;
    const struct tl_lane *lane = tl_gen_lane(gen, stream);
    return lane && lane->resume_at > atomic_load(&gen->decoded);
}

uint64_t tl_resume_next(struct tl_gen *gen)
{
    uint64_t next = UINT64_MAX;
    struct tl_lane *lane;
    for (size_t i = 0; (lane = tl_gen_lane_at(gen, i)); i++)
        if (lane->resume_at > 0 && lane->resume_at < next)
            next = lane->resume_at;
    return next;
}

static int load_lane(struct tl_lane *lane, const struct tl_checkpoint *c)
{
    const struct tl_checkpoint_lane *saved = lane_in(c->lanes, c->n_lanes, lane->name);
    if (!saved || !lane->build)
        return saved || lane->build ? TL_BAD : TL_OK;
    struct tl_state state = {.in = {saved->build.p, saved->build.n}};
    pthread_mutex_lock(&lane->lock);
    tl_build_state(lane->build, &state);
    tl_state_check(&state, state.in.n == 0);
    lane->lost_bytes = saved->lost_bytes;
    pthread_mutex_unlock(&lane->lock);
    return state.rc;
}

static int load(struct tl_gen *gen, const struct tl_checkpoint *c)
{
    struct tl_lane *lane;
    const uint64_t before = atomic_load(&gen->decoded);
    for (size_t i = 0; i < c->n_lanes; i++)
        if (!tl_gen_lane(gen, c->lanes[i].name))
            return TL_BAD; /* the catalog is another one */
    /* Lanes of this checkpoint speak from now on. */
    atomic_store(&gen->decoded, c->offset);
    int r = tl_decode_load(gen->decode, (struct tl_bytes){c->decode.p, c->decode.n});
    for (size_t i = 0; r >= 0 && (lane = tl_gen_lane_at(gen, i)); i++) {
        if (lane->resume_at != c->offset)
            continue;
        r = load_lane(lane, c);
        lane->resume_at = 0;
    }
    if (r < 0) {
        atomic_store(&gen->decoded, before);
        return r;
    }
    pthread_mutex_lock(&gen->lock);
    gen->lost_bytes = c->lost_bytes;
    if (c->message[0])
        snprintf(gen->message, sizeof(gen->message), "%s", c->message);
    pthread_mutex_unlock(&gen->lock);
    gen->marked = c->offset;
    atomic_fetch_add(&gen->lake->resumes, 1);
    return TL_OK;
}

int tl_resume_load(struct tl_gen *gen, uint64_t offset)
{
    struct tl_checkpoint c;
    char key[192];
    int r = get(gen, tl_checkpoint_key(key, gen->trace, gen->number, &offset), &c);
    if (r >= 0)
        r = load(gen, &c);
    tl_checkpoint_fini(&c);
    return r;
}

void tl_resume_forget(struct tl_gen *gen)
{
    struct tl_lane *lane;
    for (size_t i = 0; (lane = tl_gen_lane_at(gen, i)); i++)
        lane->resume_at = 0;
    gen->marked = 0;
    pthread_mutex_lock(&gen->lock);
    gen->lost_bytes = 0;
    pthread_mutex_unlock(&gen->lock);
    tl_resume_fini(gen);
    tl_resume_remove(gen->lake, gen->trace, gen->number);
}

/* ---- storing --------------------------------------------------------------------------------- */

static int save_lane(struct tl_lane *lane, struct tl_checkpoint *c)
{
    int r = tl_grow(&c->lanes, &c->cap_lanes, c->n_lanes + 1, sizeof(*c->lanes));
    if (r < 0)
        return r;
    struct tl_checkpoint_lane *saved = &c->lanes[c->n_lanes++];
    *saved = (struct tl_checkpoint_lane){0};
    struct tl_state state = {.out = &saved->build};
    snprintf(saved->name, sizeof(saved->name), "%s", lane->name);
    pthread_mutex_lock(&lane->lock);
    tl_build_state(lane->build, &state);
    saved->shard = tl_build_shard(lane->build);
    saved->whole = tl_build_is_whole(lane->build);
    saved->lost_bytes = lane->lost_bytes;
    pthread_mutex_unlock(&lane->lock);
    return state.rc;
}

static int save(struct tl_gen *gen, struct tl_checkpoint *c)
{
    c->offset = atomic_load(&gen->decoded);
    int r = tl_decode_save(gen->decode, &c->decode);
    for (size_t i = 0; r >= 0 && i < gen->n_by_stream; i++)
        r = save_lane(gen->by_stream[i], c);
    pthread_mutex_lock(&gen->lock);
    c->lost_bytes = gen->lost_bytes;
    memcpy(c->message, gen->message, sizeof(c->message));
    pthread_mutex_unlock(&gen->lock);
    return r;
}

static int put(struct tl_gen *gen, struct tl_checkpoint *c)
{
    char key[192];
    struct tl_buf bytes = {0};
    struct tl_backend *backend = gen->lake->backend;
    int r = tl_checkpoint_encode(c, gen->whose, &bytes);
    if (r >= 0)
        r = tl_backend_put(backend, tl_checkpoint_key(key, gen->trace, gen->number, &c->offset),
                           (struct tl_bytes){bytes.p, bytes.n}, NULL);
    tl_buf_fini(&bytes);
    return r < 0 ? r : add_mark(gen, c);
}

/* Those that no lane would go on from now, nor from the last one later. */
static void prune(struct tl_gen *gen)
{
    struct tl_backend *backend = gen->lake->backend;
    struct tl_lane *lane;
    char key[192];
    size_t kept = 0;
    bool *wanted = calloc(gen->n_marks + 1, sizeof(*wanted));
    if (!wanted)
        return;
    for (size_t i = 0; (lane = tl_gen_lane_at(gen, i)); i++) {
        pthread_mutex_lock(&lane->lock);
        wanted[last_usable(gen, lane->name, lane->n_rows)] = true;
        pthread_mutex_unlock(&lane->lock);
    }
    for (size_t i = 0; i < gen->n_marks; i++) {
        if (wanted[i + 1] || i + 1 == gen->n_marks) {
            gen->marks[kept++] = gen->marks[i];
            continue;
        }
        tl_checkpoint_key(key, gen->trace, gen->number, &gen->marks[i].offset);
        (void)!backend->ops->remove(backend, key, NULL); /* else found at the next start */
        mark_fini(&gen->marks[i]);
    }
    gen->n_marks = kept;
    free(wanted);
}

void tl_resume_mark(struct tl_gen *gen)
{
    struct tl_checkpoint c = {0};
    const uint64_t decoded = atomic_load(&gen->decoded);
    /* Streams that the catalog does not know would have no place behind a restart. */
    if (decoded - gen->marked < gen->lake->options.checkpoint_bytes || gen->unsaved ||
        tl_resume_next(gen) != UINT64_MAX)
        return;
    int r = name_whose(gen);
    if (r >= 0)
        r = save(gen, &c);
    if (r >= 0)
        r = put(gen, &c);
    tl_checkpoint_fini(&c);
    if (r == TL_AGAIN)
        return; /* behind the next slice */
    gen->marked = decoded;
    if (r < 0)
        return; /* of another format, or the medium refused: the next one may be taken */
    atomic_fetch_add(&gen->lake->checkpoints, 1);
    prune(gen);
}
