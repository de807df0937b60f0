/* SPDX-License-Identifier: MIT */
/*
 * Finding the marks (decoding/marks.h) from which shards can be made again, the last one first, and
 * whether this program may use them: it must decode as the one that took them. Those of an earlier
 * run of the server are listed when they are first needed.
 */
#include "virtual/find_marks.h"

#include "change/change.h"
#include "decoding/decode_job.h"
#include "decoding/marks.h"
#include "decoding/resume.h"
#include "lake/lakeint.h"

#include <stdio.h>
#include <stdlib.h>

#define LIST_MAX (UINT64_C(1) << 30) /* maximum plain size of a list */

static int read_identity(struct tl_gen *gen, struct tl_buf *out)
{
    char key[192];
    const int r = tl_backend_get_all(gen->lake->backend, tl_mark_identity_key(key, gen), out, NULL);
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
    int r = gen->marks_known ? TL_OK
                             : backend->ops->list(backend, tl_mark_key(key, gen, NULL), add_offset,
                                                  &offsets, fail);
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
    const struct tl_decode_job *const job = gen->job;
    size_t i = job ? job->n_late_marks : 0;
    while (i > 0 && job->late_marks[i - 1].offset > m->offset)
        i--;
    if (i > 0 && job->late_marks[i - 1].offset > 0) {
        const struct tl_mark *const mark = &job->late_marks[i - 1];
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
    int r = tl_backend_get_all(m->gen->lake->backend, tl_mark_key(key, m->gen, &m->first), &packed,
                               NULL);
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
