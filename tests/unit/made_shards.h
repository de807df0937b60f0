/* SPDX-License-Identifier: MIT */
/* Shards of generated items (made_items.h), and the text read back from them. */
#ifndef TL_TESTS_MADE_SHARDS_H
#define TL_TESTS_MADE_SHARDS_H

#include "base/crew.h"
#include "builder/build.h"
#include "made_items.h"
#include "shard/walk.h"
#include "unit/seed.h"

#include <setjmp.h>
#include <stdarg.h>
#include <time.h>

#include <cmocka.h>

/* The sealed shards of a stream. */
struct shards {
    struct tl_view *views[4096];
    struct tl_buf files[4096];
    size_t n;
    uint64_t chunk_markers;
    struct tl_packer *packer;
};

static inline int on_seal(void *context, struct tl_view *view)
{
    struct shards *s = context;
    assert_true(s->n < 4096);
    s->views[s->n] = view;
    assert_int_equal(tl_view_encode(view, s->chunk_markers, s->packer, &s->files[s->n], NULL),
                     TL_OK);
    s->n++;
    return TL_OK;
}

static inline void shards_free(struct shards *s)
{
    for (size_t i = 0; i < s->n; i++) {
        tl_view_put(s->views[i]);
        tl_buf_fini(&s->files[i]);
    }
    tl_packer_free(s->packer);
    free(s);
}

static inline void append_text(struct tl_view *view, uint64_t from, uint64_t to, bool tail,
                               enum tl_protocol protocol, struct tl_buf *out)
{
    struct tl_walk walk = {0};
    const struct tl_walk_range range = {from, to, tail, protocol};
    for (size_t c = 0; c < view->index.n_chunks; c++) {
        struct tl_fail fail = {0};
        const int r = tl_walk_chunk(&walk, view, c, &range, &fail);
        if (r < 0)
            fail_msg("%s", fail.text);
        assert_int_equal(tl_item_text(out, walk.items, walk.n), TL_OK);
    }
    tl_walk_fini(&walk);
}

struct run {
    uint64_t shard_insns, chunk_markers;
    enum tl_protocol protocol;
    const struct tl_image *image; /* may be NULL */
};

static inline struct shards *shards_new(const struct run *run)
{
    struct shards *s = calloc(1, sizeof(*s));
    s->chunk_markers = run->chunk_markers;
    assert_int_equal(tl_packer_new(&s->packer), TL_OK);
    return s;
}

/* A builder for what follows after `sealed` shards. `packing` may be NULL. */
static inline struct tl_build *build_new(struct shards *s, const struct run *run, uint64_t sealed,
                                         uint64_t position, struct tl_packing *packing)
{
    const struct tl_build_options options = {.protocol = run->protocol,
                                             .shard_insns = run->shard_insns,
                                             .chunk_markers = run->chunk_markers,
                                             .image = run->image,
                                             .packing = packing,
                                             .seal = on_seal,
                                             .context = s,
                                             .sealed = sealed,
                                             .sealed_position = position};
    struct tl_build *b;
    assert_int_equal(tl_build_new(&b, &options), TL_OK);
    return b;
}

static inline struct shards *build(struct made *m, const struct run *run, uint64_t sealed,
                                   uint64_t position, uint64_t seed)
{
    struct shards *s = shards_new(run);
    /* Half of them with threads, which must make no difference. */
    struct tl_packing *packing = NULL;
    struct tl_crew *crew;
    assert_int_equal(tl_crew_new(&crew, 3), TL_OK);
    if (seed & 1)
        assert_int_equal(tl_packing_new(&packing, crew), TL_OK);
    struct tl_build *b = build_new(s, run, sealed, position, packing);
    struct made random = {.random = seed};
    for (size_t at = 0; at < m->n;) {
        size_t n = 1 + made_below(&random, 1 + made_below(&random, 200));
        if (n > m->n - at)
            n = m->n - at;
        assert_int_equal(tl_build_items(b, m->items + at, n), TL_OK);
        at += n;
    }
    assert_int_equal(tl_build_finish(b), TL_OK);
    tl_build_free(b);
    tl_packing_free(packing);
    tl_crew_free(crew);
    return s;
}

static inline void assert_same_text(const struct tl_buf *a, const struct tl_buf *b)
{
    size_t i = 0;
    while (i < a->n && i < b->n && a->p[i] == b->p[i])
        i++;
    if (i < a->n || i < b->n) {
        const size_t from = i < 100 ? 0 : i - 100;
        fail_msg("texts of %zu and %zu bytes differ at %zu:\n--- %.200s\n+++ %.200s", a->n, b->n, i,
                 (const char *)a->p + from, (const char *)b->p + from);
    }
}

static inline void text_of(const struct shards *s, enum tl_protocol protocol, struct tl_buf *out)
{
    for (size_t i = 0; i < s->n; i++)
        append_text(s->views[i], 0, UINT64_MAX, true, protocol, out);
}

static inline uint64_t seed_of_day(void)
{
    const uint64_t seed = test_seed();
    return seed;
}

static inline struct run random_run(struct made *random)
{
    static const enum tl_protocol protocols[] = {TL_PROTO_ETM4, TL_PROTO_OSD_CTM, TL_PROTO_ITM,
                                                 TL_PROTO_PT};
    return (struct run){.shard_insns = 1 + made_below(random, made_below(random, 2) ? 50 : 5000),
                        .chunk_markers = 1 + made_below(random, made_below(random, 2) ? 20 : 700),
                        .protocol = protocols[made_below(random, 4)]};
}

#endif
