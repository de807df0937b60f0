/* SPDX-License-Identifier: MIT */
#include "ingest/marks.h"

#include "ingest/remake.h"
#include "ingest/resume.h"
#include "lake/lakeint.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define LIST_MAX (UINT64_C(1) << 30) /* maximum plain size of a list */
#define TOGETHER 64                  /* marks per list */
#define SPARSE   64 /* distance in units of options.mark_bytes if there are few positions */
/* A larger mark is taken only when as many raw bytes as its size have arrived since the previous
 * one: for perf.data it contains scheduling records, which grow with the recording. */
#define MARK_SMALL (64u << 10)

struct tl_mark {
    uint64_t offset;
    struct tl_buf bytes; /* a checkpoint */
};

static char *mark_key(char out[static 192], const struct tl_gen *gen, const uint64_t *offset)
{
    const int n = snprintf(out, 192, "t/%s/%" PRIu64 "/" TL_MARKS, gen->trace, gen->number);
    if (offset)
        snprintf(out + n, 192 - (size_t)n, "/%016" PRIx64, *offset);
    return out;
}

/* ---- program version ------------------------------------------------------------------------ */

static char *identity_key(char out[static 192], const struct tl_gen *gen)
{
    mark_key(out, gen, NULL);
    return strcat(out, "/whose");
}

/* The object has the identity and, on lines of their own, the images that were there ("-": one that
 * was missing). */
void tl_mark_begin(struct tl_gen *gen)
{
    struct tl_buf all = {0};
    char key[192];
    int r = tl_resume_identity(gen);
    if (r >= 0)
        r = tl_buf_printf(&all, "%s\n", gen->whose);
    if (r >= 0)
        r = tl_buf_add(&all, gen->program->images.p, gen->program->images.n);
    /* If it cannot be stored, they count as another program's. */
    if (r >= 0)
        (void)!tl_backend_put(gen->lake->backend, identity_key(key, gen),
                              (struct tl_bytes){all.p, all.n}, NULL);
    tl_buf_fini(&all);
}

static int read_identity(struct tl_gen *gen, struct tl_buf *out)
{
    char key[192];
    const int r = tl_backend_get_all(gen->lake->backend, identity_key(key, gen), out, NULL);
    return r < 0 ? r : tl_buf_add(out, "", 1);
}

bool tl_marks_are_ours(struct tl_gen *gen)
{
    struct tl_buf whose = {0};
    int r = tl_resume_identity(gen);
    if (r >= 0)
        r = read_identity(gen, &whose);
    const char *const text = (const char *)whose.p;
    const bool ours = r >= 0 ? strcspn(text, "\n") == strlen(gen->whose) &&
                                   strncmp(text, gen->whose, strlen(gen->whose)) == 0
                             : r != TL_NOTFOUND;
    tl_buf_fini(&whose);
    return ours;
}

/* Was the generation decoded with an image that is not there now? Decoded without it again, it
 * would be a worse one. */
static int check_images(struct tl_gen *gen, struct tl_fail *fail)
{
    const struct tl_image *image;
    struct tl_buf whose = {0};
    char hash[TL_HASH_TEXT];
    int r = tl_gen_load_image(gen, &image, fail);
    if (r < 0 || (r = read_identity(gen, &whose)) < 0)
        return r == TL_NOTFOUND ? TL_OK : r;
    const char *line = (const char *)whose.p;
    while (r >= 0 && *(line += strcspn(line, "\n"))) {
        const size_t n = strcspn(++line, "\n");
        if (n < sizeof hash && n > 1) {
            snprintf(hash, sizeof hash, "%.*s", (int)n, line);
            r = tl_lake_image_need(gen->lake, hash, fail);
        }
    }
    tl_buf_fini(&whose);
    return r;
}

int tl_gen_renew(struct tl_gen *gen, struct tl_fail *fail)
{
    const int r = check_images(gen, fail);
    struct tl_trace *trace = r < 0 ? NULL : tl_lake_find_trace(gen->lake, gen->trace);
    if (!trace)
        return r;
    pthread_mutex_lock(&trace->lock);
    const bool may = trace->serving == gen && !trace->making && !trace->deleted;
    pthread_mutex_unlock(&trace->lock);
    tl_trace_put(trace);
    if (may && !atomic_exchange(&gen->renewed, true))
        (void)!tl_lake_redecode(gen->lake, gen->trace, NULL, NULL);
    return TL_OK;
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

static int add_late(struct tl_gen *gen, struct tl_mark *mark)
{
    pthread_mutex_lock(&gen->lock);
    if (!gen->late_marks)
        gen->late_marks = calloc(TOGETHER, sizeof(*gen->late_marks));
    const bool there = gen->late_marks;
    if (there) {
        gen->late_marks[gen->n_late_marks++] = *mark;
        mark->bytes = (struct tl_buf){0};
    }
    pthread_mutex_unlock(&gen->lock);
    return there ? TL_OK : TL_NOMEM;
}

static int make_mark(struct tl_gen *gen)
{
    struct tl_checkpoint c = {.offset = atomic_load(&gen->decoded)};
    struct tl_mark mark = {.offset = c.offset};
    int r = tl_resume_identity(gen);
    if (r >= 0)
        r = tl_decode_save(gen->decode, &c.decode);
    for (size_t i = 0; r >= 0 && i < gen->n_by_stream; i++)
        if (gen->by_stream[i])
            r = save_lane(gen->by_stream[i], &c);
    if (r >= 0)
        r = tl_checkpoint_encode(&c, gen->whose, &mark.bytes);
    if (r >= 0) {
        gen->mark_size = mark.bytes.n;
        r = add_late(gen, &mark);
    }
    tl_checkpoint_fini(&c);
    tl_buf_fini(&mark.bytes);
    if (gen->n_late_marks == TOGETHER)
        tl_mark_flush(gen);
    return r;
}

static uint64_t positions(const struct tl_gen *gen)
{
    uint64_t n = 0;
    for (size_t i = 0; i < gen->n_by_stream; i++) {
        struct tl_lane *const lane = gen->by_stream[i];
        if (!lane)
            continue;
        pthread_mutex_lock(&lane->lock);
        n += tl_build_position(lane->build);
        pthread_mutex_unlock(&lane->lock);
    }
    return n;
}

void tl_mark(struct tl_gen *gen)
{
    const struct tl_lake_options *const o = &gen->lake->options;
    const uint64_t insns = positions(gen), offset = atomic_load(&gen->decoded);
    if (insns - gen->mark_insns < o->shard_insns / 8 &&
        offset - gen->mark_offset < SPARSE * o->mark_bytes)
        return;
    if (gen->mark_size > MARK_SMALL && offset - gen->mark_offset < gen->mark_size)
        return;
    if (make_mark(gen) == TL_AGAIN)
        return; /* try a little later */
    gen->mark_insns = insns;
    gen->mark_offset = offset;
}

static void drop_late_locked(struct tl_gen *gen)
{
    for (size_t i = 0; i < gen->n_late_marks; i++)
        tl_buf_fini(&gen->late_marks[i].bytes);
    free(gen->late_marks);
    gen->late_marks = NULL;
    gen->n_late_marks = 0;
}

void tl_mark_drop(struct tl_gen *gen)
{
    pthread_mutex_lock(&gen->lock);
    drop_late_locked(gen);
    pthread_mutex_unlock(&gen->lock);
}

static int pack_list(const struct tl_gen *gen, struct tl_buf *out)
{
    struct tl_packer *packer;
    struct tl_buf plain = {0};
    int r = tl_packer_new(&packer); /* gen->packer is in use by the sealing thread */
    if (r < 0)
        return r;
    for (size_t i = 0; r >= 0 && i < gen->n_late_marks; i++) {
        const struct tl_buf *const bytes = &gen->late_marks[i].bytes;
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

void tl_mark_flush(struct tl_gen *gen)
{
    struct tl_backend *backend = gen->lake->backend;
    struct tl_buf list = {0};
    char key[192];
    if (gen->n_late_marks == 0)
        return;
    const uint64_t first = gen->late_marks[0].offset;
    int r = pack_list(gen, &list);
    if (r >= 0)
        r = tl_backend_put(backend, mark_key(key, gen, &first), (struct tl_bytes){list.p, list.n},
                           NULL);
    tl_buf_fini(&list);
    pthread_mutex_lock(&gen->lock);
    if (r >= 0 && tl_grow(&gen->marks, &gen->cap_marks, gen->n_marks + 1, sizeof(*gen->marks)) >= 0)
        gen->marks[gen->n_marks++] = first; /* otherwise found when they are listed */
    drop_late_locked(gen);
    pthread_mutex_unlock(&gen->lock);
}

/* ---- finding them --------------------------------------------------------------------------- */

static int add_offset(void *context, const char *key, uint64_t size)
{
    struct tl_buf *offsets = context;
    const char *name = strrchr(key, '/') + 1;
    char *end;
    const uint64_t offset = strtoull(name, &end, 16);
    return end == name || *end ? TL_OK : tl_buf_add(offsets, &offset, sizeof(offset));
}

/* List the marks of a generation decoded by an earlier server run. They are recorded after listing,
 * since the store may be locked during it. */
static int know_marks(struct tl_gen *gen, struct tl_fail *fail)
{
    struct tl_backend *backend = gen->lake->backend;
    struct tl_buf offsets = {0};
    char key[192];
    pthread_mutex_lock(&gen->marks_lock);
    int r = gen->marks_known
                ? TL_OK
                : backend->ops->list(backend, mark_key(key, gen, NULL), add_offset, &offsets, fail);
    const size_t n = offsets.n / sizeof(uint64_t);
    pthread_mutex_lock(&gen->lock);
    if (r >= 0)
        r = tl_grow(&gen->marks, &gen->cap_marks, gen->n_marks + n, sizeof(*gen->marks));
    if (r >= 0 && n > 0)
        memcpy(gen->marks + gen->n_marks, offsets.p, offsets.n); /* duplicates are harmless */
    gen->n_marks += r >= 0 ? n : 0;
    pthread_mutex_unlock(&gen->lock);
    gen->marks_known = gen->marks_known || r >= 0;
    pthread_mutex_unlock(&gen->marks_lock);
    tl_buf_fini(&offsets);
    return r == TL_NOTFOUND ? TL_OK : r;
}

int tl_marks_begin(struct tl_marks *marks, struct tl_gen *gen, uint64_t offset,
                   struct tl_fail *fail)
{
    *marks = (struct tl_marks){.gen = gen, .offset = offset, .first = UINT64_MAX};
    return know_marks(gen, fail);
}

void tl_marks_fini(struct tl_marks *marks)
{
    tl_buf_fini(&marks->list);
    tl_buf_fini(&marks->bytes);
}

/* The last mark that is not stored yet. Its offset becomes the new limit, since they may be stored,
 * and removed from here, before the next one is requested. */
static bool next_late(struct tl_marks *m, int *r)
{
    struct tl_gen *const gen = m->gen;
    bool found = false;
    pthread_mutex_lock(&gen->lock);
    size_t i = gen->n_late_marks;
    while (i > 0 && gen->late_marks[i - 1].offset > m->offset)
        i--;
    if (i > 0 && gen->late_marks[i - 1].offset > 0) {
        const struct tl_mark *const mark = &gen->late_marks[i - 1];
        tl_buf_reset(&m->bytes);
        *r = tl_buf_add(&m->bytes, mark->bytes.p, mark->bytes.n);
        m->offset = mark->offset - 1;
        found = true;
    }
    pthread_mutex_unlock(&gen->lock);
    return found;
}

/* Load the last stored list before the previous one, and before the offset. */
static bool next_list(struct tl_marks *m)
{
    struct tl_gen *const gen = m->gen;
    bool found = false;
    uint64_t best = 0;
    pthread_mutex_lock(&gen->lock);
    for (size_t i = 0; i < gen->n_marks; i++)
        if (gen->marks[i] <= m->offset && gen->marks[i] < m->first &&
            (!found || gen->marks[i] > best)) {
            best = gen->marks[i];
            found = true;
        }
    pthread_mutex_unlock(&gen->lock);
    m->first = best;
    return found;
}

static int read_list(struct tl_marks *m)
{
    struct tl_buf packed = {0};
    char key[192];
    tl_buf_reset(&m->list);
    int r =
        tl_backend_get_all(m->gen->lake->backend, mark_key(key, m->gen, &m->first), &packed, NULL);
    if (r >= 0)
        r = tl_unpack((struct tl_bytes){packed.p, packed.n}, LIST_MAX, &m->list);
    tl_buf_fini(&packed);
    m->end = r >= 0 ? m->list.n : 0;
    return r == TL_NOMEM || r == TL_CANCELLED ? r : TL_OK;
}

/* The last mark before m->end. */
static bool last_in_list(struct tl_marks *m, struct tl_bytes *out)
{
    bool found = false;
    size_t at = 0, begin = 0;
    uint32_t n;
    for (; m->end - at >= sizeof(n); at += n) {
        memcpy(&n, m->list.p + at, sizeof(n));
        at += sizeof(n);
        if (n > m->end - at)
            break; /* damaged */
        *out = (struct tl_bytes){m->list.p + at, n};
        begin = at - sizeof(n);
        found = true;
    }
    m->end = begin;
    return found;
}

int tl_marks_next(struct tl_marks *m)
{
    struct tl_bytes mark;
    int r = TL_OK;
    if (!m->in_list && next_late(m, &r))
        return r;
    for (;;) {
        while (m->in_list && last_in_list(m, &mark)) {
            if (tl_checkpoint_offset(mark) > m->offset)
                continue;
            tl_buf_reset(&m->bytes);
            return tl_buf_add(&m->bytes, mark.p, mark.n);
        }
        m->in_list = next_list(m);
        if (!m->in_list)
            return TL_EOF;
        r = read_list(m);
        if (r < 0)
            return r;
    }
}
