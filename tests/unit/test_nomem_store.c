/* SPDX-License-Identifier: MIT */
/*
 * Each allocation of the store fails once: shards that are built, saved, stored, read, searched,
 * checked and mended, execution counts of their code, the catalog, and both backends.
 */
#include "base/crew.h"
#include "builder/build.h"
#include "builder/mend.h"
#include "builder/recount.h"
#include "catalog/catalog.h"
#include "shard/calltree.h"
#include "shard/codecount.h"
#include "shard/walk.h"
#include "store/backend_memory.h"
#include "store/checkpoint.h"
#include "unit/made_items.h"
#include "unit/nomem.h"

#include <unistd.h>

#define KEY "t/x/1/s/0.zstf"

/* ---- shards -------------------------------------------------------------------------------- */

struct building {
    struct made made;
    enum tl_protocol protocol;
    unsigned threads; /* packing threads; 0: none */
    bool saves;
    uint32_t version;           /* of the shards; 0: the current one */
    struct tl_backend *backend; /* of the current run */
    struct tl_packer *packer;
    struct tl_buf *out;
};

/* Read the whole shard back through the backend, as text. */
static int read_back(const struct building *g, const char *key)
{
    struct tl_view *view = NULL, *over = NULL;
    struct tl_walk walk = {0};
    const struct tl_walk_range range = {0, UINT64_MAX, true, g->protocol};
    struct tl_fail fail = {0};
    int rc = tl_view_open(&view, g->backend, key, &fail);
    if (rc == TL_OK)
        rc = tl_view_over(&over, view);
    tl_view_put(over);
    for (size_t c = 0; rc == TL_OK && c < view->index.n_chunks; c++) {
        rc = tl_walk_chunk(&walk, view, c, &range, &fail);
        if (rc == TL_OK)
            rc = tl_item_text(g->out, walk.items, walk.n);
    }
    struct tl_shard_stats stats = {0};
    const struct tl_walk_range part = {.from = 100, .to = 1200, .protocol = g->protocol};
    if (rc == TL_OK)
        rc = tl_view_stats(view, &part, NULL, false, &stats, &fail);
    if (rc == TL_OK)
        rc = tl_buf_printf(g->out, "%llu %llu\n", (unsigned long long)stats.insns,
                           (unsigned long long)stats.taken);
    tl_shard_stats_fini(&stats);
    tl_walk_fini(&walk);
    tl_view_put(view);
    if (rc == TL_OK)
        rc = tl_view_verify(g->backend, key, g->out, &fail);
    return rc;
}

static int seal(void *context, struct tl_view *view)
{
    struct building *const g = context;
    struct tl_buf file = {0};
    struct tl_fail fail = {0};
    if (g->version)
        view->index.version = g->version;
    int rc = tl_view_encode(view, 300, g->packer, &file, &fail);
    if (rc >= 0)
        rc = tl_backend_put(g->backend, KEY, (struct tl_bytes){file.p, file.n}, &fail);
    if (rc >= 0)
        rc = read_back(g, KEY);
    tl_buf_fini(&file);
    tl_view_put(view);
    return rc < 0 ? rc : TL_OK;
}

static int begin(struct building *g, struct tl_packing *packing, struct tl_build **build)
{
    const struct tl_build_options options = {.protocol = g->protocol,
                                             .shard_insns = 1500,
                                             .chunk_markers = 300,
                                             .packing = packing,
                                             .seal = seal,
                                             .context = g};
    return tl_build_new(build, &options);
}

/* Continue with another builder through a checkpoint, and open a view of the growing shard. */
static int hand_on(struct building *g, struct tl_packing *packing, struct tl_build **build)
{
    struct tl_checkpoint checkpoint = {.offset = 1}, other = {0};
    struct tl_buf bytes = {0};
    struct tl_view *view = NULL;
    int rc = tl_grow(&checkpoint.lanes, &checkpoint.cap_lanes, 1, sizeof *checkpoint.lanes);
    if (rc == TL_OK) {
        checkpoint.lanes[checkpoint.n_lanes++] = (struct tl_checkpoint_lane){.name = "s"};
        struct tl_state state = {.out = &checkpoint.lanes[0].build};
        tl_build_state(*build, &state);
        rc = state.rc;
    }
    if (rc == TL_OK)
        rc = tl_checkpoint_encode(&checkpoint, "whose", &bytes);
    if (rc == TL_OK)
        rc = tl_checkpoint_decode(&other, "whose", (struct tl_bytes){bytes.p, bytes.n});
    if (rc == TL_OK) {
        tl_build_free(*build);
        *build = NULL;
        rc = begin(g, packing, build);
    }
    if (rc == TL_OK) {
        struct tl_state state = {.in = {other.lanes[0].build.p, other.lanes[0].build.n}};
        tl_build_state(*build, &state);
        rc = state.rc;
    }
    if (rc == TL_OK)
        rc = tl_build_view(*build, &view);
    tl_view_put(view);
    tl_buf_fini(&bytes);
    tl_checkpoint_fini(&checkpoint);
    tl_checkpoint_fini(&other);
    return rc;
}

static int build(void *context, struct tl_buf *out)
{
    struct building *const g = context;
    struct tl_packing *packing = NULL;
    struct tl_build *b = NULL;
    struct tl_crew *crew = NULL;
    const size_t middle = 40; /* in the first shard */
    g->out = out;
    g->packer = NULL;
    int rc = tl_backend_memory(&g->backend);
    if (rc < 0)
        return rc;
    rc = tl_packer_new(&g->packer);
    if (rc == TL_OK && g->threads)
        rc = tl_crew_new(&crew, g->threads);
    if (rc == TL_OK && g->threads)
        rc = tl_packing_new(&packing, crew);
    if (rc == TL_OK)
        rc = begin(g, packing, &b);
    if (rc == TL_OK)
        rc = tl_build_items(b, g->made.items, middle);
    if (rc == TL_OK && g->saves)
        rc = hand_on(g, packing, &b);
    if (rc == TL_OK)
        rc = tl_build_items(b, g->made.items + middle, g->made.n - middle);
    if (rc == TL_OK)
        rc = tl_build_finish(b);
    tl_build_free(b);
    tl_packing_free(packing);
    tl_crew_free(crew);
    tl_packer_free(g->packer);
    tl_backend_free(g->backend);
    return rc;
}

static void shards(void **state)
{
    static const enum tl_protocol protocols[] = {TL_PROTO_ETM4, TL_PROTO_OSD_CTM, TL_PROTO_ITM,
                                                 TL_PROTO_STF};
    for (unsigned i = 0; i < 6; i++) {
        struct building g = {.protocol = protocols[i % 4],
                             .threads = i == 4 ? 3 : 0,
                             .saves = i != 4,
                             .version = i == 5};
        made_stream(&g.made, i, i == 2 ? 800 : 300, i == 5 ? 0 : 4);
        assert_true(nomem_run(build, &g) > 30);
        made_free(&g.made);
    }
}

/* ---- mending ------------------------------------------------------------------------------- */

struct mending {
    struct tl_buf file;
    size_t at; /* a damaged byte */
};

static int keep_file(void *context, struct tl_view *view)
{
    struct mending *const m = context;
    struct tl_packer *packer;
    assert_int_equal(tl_packer_new(&packer), TL_OK);
    if (m->file.n == 0)
        assert_int_equal(tl_view_encode(view, 300, packer, &m->file, NULL), TL_OK);
    tl_packer_free(packer);
    tl_view_put(view);
    return TL_OK;
}

/*
 * With too little memory the index may contain less of the executed code, so the bytes may differ.
 */
static int mend(void *context, struct tl_buf *out)
{
    const struct mending *const m = context;
    struct tl_mend how = {.protocol = TL_PROTO_ETM4};
    struct tl_buf copy = {0}, mended = {0};
    struct tl_fail fail = {0};
    int rc = tl_packer_new(&how.packer);
    if (rc < 0)
        return rc;
    rc = tl_buf_add(&copy, m->file.p, m->file.n);
    if (rc == TL_OK) {
        copy.p[m->at] ^= 1;
        rc = tl_shard_mend((struct tl_bytes){copy.p, copy.n}, &how, &mended, &fail);
    }
    tl_packer_free(how.packer);
    tl_buf_fini(&copy);
    tl_buf_fini(&mended);
    return rc == TL_NOMEM ? rc : tl_buf_printf(out, "%d %s\n", rc, fail.text);
}

static void mended_shards(void **state)
{
    struct made made;
    struct mending m = {0};
    struct tl_build *b;
    const struct tl_build_options options = {.protocol = TL_PROTO_ETM4,
                                             .shard_insns = 1500,
                                             .chunk_markers = 300,
                                             .seal = keep_file,
                                             .context = &m};
    made_stream(&made, 8, 400, 4);
    assert_int_equal(tl_build_new(&b, &options), TL_OK);
    assert_int_equal(tl_build_items(b, made.items, made.n), TL_OK);
    assert_int_equal(tl_build_finish(b), TL_OK);
    tl_build_free(b);
    made_free(&made);
    const size_t index = (size_t)tl_le64(m.file.p + 12);
    const size_t places[] = {
        3, index / 2, index + 5, index + (m.file.n - index) / 2, m.file.n - 200, m.file.n - 20};
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        m.at = places[i];
        assert_true(nomem_run(mend, &m) > 5);
    }
    tl_buf_fini(&m.file);
}

/* ---- objects next to a shard ----------------------------------------------------------------- */

static int fill_counts(struct tl_codecount *c)
{
    int rc = TL_OK;
    for (unsigned i = 0; rc == TL_OK && i < 200; i++) {
        const struct tl_code_program program = {
            .context = {.has_context_id = true, .context_id = i % 3}};
        const uint64_t at = 0x1000 + 32 * (uint64_t)i;
        uint32_t number;
        rc = tl_codecount_program(c, &program, &number);
        if (rc == TL_OK)
            rc = tl_codecount_run(c, number, at, at + 12, 1 + i);
        if (rc == TL_OK)
            rc = tl_codecount_branch(c, number, at + 12, 0x1000 + 64 * (uint64_t)i, 1 + i);
    }
    return rc;
}

/* Built, packed, read twice, and packed again. */
static int count_code(void *context, struct tl_buf *out)
{
    struct tl_codecount made = {0}, read = {0};
    struct tl_buf object = {0};
    struct tl_packer *packer;
    int rc = tl_packer_new(&packer);
    if (rc < 0)
        return rc;
    rc = fill_counts(&made);
    if (rc == TL_OK)
        rc = tl_codecount_encode(&made, packer, &object);
    for (unsigned i = 0; rc == TL_OK && i < 2; i++)
        rc = tl_codecount_decode(&read, NULL, (struct tl_bytes){object.p, object.n});
    if (rc == TL_OK)
        rc = tl_codecount_encode(&read, packer, out);
    tl_codecount_fini(&made);
    tl_codecount_fini(&read);
    tl_buf_fini(&object);
    tl_packer_free(packer);
    return rc;
}

static int fill_tree(struct tl_calltree *t)
{
    int64_t path = tl_calltree_root(t);
    for (uint32_t i = 0; path >= 0 && i < 200; i++) {
        path = tl_calltree_path(t, i % 5 ? (uint32_t)path : 0, i % 70);
        if (path >= 0)
            t->nodes[path].calls++;
        const int64_t function = path < 0 ? path : tl_calltree_function(t, i % 70);
        if (function < 0)
            return (int)function;
        t->functions[function].calls++;
    }
    return path < 0 ? (int)path : TL_OK;
}

static int count_calls(void *context, struct tl_buf *out)
{
    struct tl_calltree made = {0}, read = {0}, all = {0};
    struct tl_buf object = {0};
    struct tl_packer *packer;
    int rc = tl_packer_new(&packer);
    if (rc < 0)
        return rc;
    rc = fill_tree(&made);
    if (rc == TL_OK)
        rc = tl_calltree_encode(&made, packer, &object);
    if (rc == TL_OK)
        rc = tl_calltree_decode(&read, (struct tl_bytes){object.p, object.n});
    if (rc == TL_OK)
        rc = tl_calltree_merge(&all, &read);
    if (rc == TL_OK)
        rc = tl_calltree_merge(&all, &made);
    if (rc == TL_OK)
        rc = tl_calltree_encode(&all, packer, out);
    tl_calltree_fini(&made);
    tl_calltree_fini(&read);
    tl_calltree_fini(&all);
    tl_buf_fini(&object);
    tl_packer_free(packer);
    return rc;
}

static void counted_code(void **state)
{
    assert_true(nomem_run(count_code, NULL) > 10);
    assert_true(nomem_run(count_calls, NULL) > 10);
}

/* ---- backends ------------------------------------------------------------------------------ */

static char folder[] = "/tmp/test_nomem_store.XXXXXX";

static int note_key(void *context, const char *key, uint64_t size)
{
    return tl_buf_printf(context, "%s %llu\n", key, (unsigned long long)size);
}

static int use_log(struct tl_backend *b, struct tl_buf *out, struct tl_fail *fail)
{
    const struct tl_bytes part = {(const uint8_t *)"part", 4};
    struct tl_log *log = NULL;
    uint64_t size;
    int rc = b->ops->log_open(b, "r/x/1.seg", true, &log, &size, fail);
    if (rc == TL_OK)
        rc = b->ops->log_write(log, 0, &part, 1, fail);
    if (rc == TL_OK)
        rc = b->ops->log_sync(log, fail);
    if (rc == TL_OK)
        rc = b->ops->log_read(log, 0, 4, out, fail);
    if (rc == TL_OK)
        rc = b->ops->log_truncate(log, 2, fail);
    if (rc == TL_OK)
        rc = b->ops->log_sync(log, fail);
    b->ops->log_close(log);
    return rc;
}

static int use_backend(void *context, struct tl_buf *out)
{
    const bool *const in_memory = context;
    const struct tl_object objects[] = {{"t/a/1", {(const uint8_t *)"one", 3}},
                                        {"t/a/2", {(const uint8_t *)"second", 6}},
                                        {"t/b/1", {(const uint8_t *)"third", 5}}};
    struct tl_backend *b = NULL;
    struct tl_lease *lease = NULL;
    struct tl_fail fail = {0};
    int rc = *in_memory ? tl_backend_memory(&b) : tl_backend_folder(&b, folder, &fail);
    if (rc == TL_OK)
        rc = b->ops->lease(b, TL_LEASE_ALL, &lease, &fail);
    if (rc == TL_OK)
        rc = b->ops->put_all(b, objects, 3, &fail);
    if (rc == TL_OK)
        rc = tl_backend_get_all(b, "t/a/2", out, &fail);
    if (rc == TL_OK)
        rc = b->ops->list(b, "t", note_key, out, &fail);
    if (rc == TL_OK)
        rc = use_log(b, out, &fail);
    if (b && b->ops->catalog_uri && rc == TL_OK)
        rc = b->ops->catalog_uri(b) ? TL_OK : TL_NOMEM;
    if (rc == TL_OK)
        rc = tl_backend_remove_all(b, "t", &fail);
    if (lease)
        b->ops->lease_release(lease);
    tl_backend_free(b);
    return rc;
}

static void back_ends(void **state)
{
    for (int in_memory = 0; in_memory < 2; in_memory++) {
        bool which = in_memory;
        assert_true(nomem_run(use_backend, &which) > 5);
    }
}

/* ---- the catalog --------------------------------------------------------------------------- */

static int note_trace(void *context, const struct tl_catalog_trace *t)
{
    return tl_buf_printf(context, "%s %s [%s]\n", t->id, t->rig, t->labels);
}

static int note_stream(void *context, const struct tl_catalog_stream *s)
{
    return tl_buf_printf(context, "%s\n", s->name);
}

static int note_row(void *context, const struct tl_shard_row *row)
{
    return tl_buf_printf(context, "%llu\n", (unsigned long long)row->number);
}

static int note_summary(void *context, struct tl_bytes summary)
{
    return tl_buf_add(context, summary.p, summary.n);
}

static int note_rule(void *context, const char *scope, const struct tl_retention *rule)
{
    return tl_buf_printf(context, "%s\n", scope);
}

static int note_image(void *context, const struct tl_catalog_image *image)
{
    return tl_buf_printf(context, "%s\n", image->hash);
}

static int fill_catalog(struct tl_catalog *c, struct tl_fail *fail)
{
    const struct tl_catalog_trace trace = {.id = "a",
                                           .rig = "r",
                                           .format = "f",
                                           .setup = "s",
                                           .message = "m",
                                           .content = "sha256:0",
                                           .generation = 1};
    const struct tl_catalog_stream stream = {.name = "cs.10", .protocol = TL_PROTO_ETM4};
    const struct tl_catalog_shard shard = {.summary = {(const uint8_t *)"sum", 3}};
    const struct tl_retention rule = {0};
    const struct tl_catalog_image image = {.hash = "h", .name = "n"};
    int rc = c->ops->add_trace(c, &trace, fail);
    if (rc == TL_OK)
        rc = c->ops->set_label(c, "a", "k", "v", fail);
    if (rc == TL_OK)
        rc = c->ops->put_stream(c, "a", 1, &stream, fail);
    if (rc == TL_OK)
        rc = c->ops->add_shards(c, "a", 1, &shard, 1, fail);
    if (rc == TL_OK)
        rc = c->ops->set_retention(c, "", &rule, fail);
    if (rc == TL_OK)
        rc = c->ops->add_image(c, &image, fail);
    return rc;
}

static int read_catalog(struct tl_catalog *c, struct tl_buf *out, struct tl_fail *fail)
{
    int rc = c->ops->traces(c, note_trace, out, fail);
    if (rc == TL_OK)
        rc = c->ops->labels(c, "a", out, fail);
    if (rc == TL_OK)
        rc = c->ops->streams(c, "a", 1, note_stream, out, fail);
    if (rc == TL_OK)
        rc = c->ops->shards(c, "a", 1, 0, note_row, out, fail);
    if (rc == TL_OK)
        rc = c->ops->summaries(c, "a", 1, 0, 0, 9, note_summary, out, fail);
    if (rc == TL_OK)
        rc = c->ops->retention(c, note_rule, out, fail);
    if (rc == TL_OK)
        rc = c->ops->images(c, note_image, out, fail);
    return rc;
}

static int note_note(void *context, const struct tl_note *note)
{
    return tl_buf_printf(context, "%s\n", note->text);
}

static int note_finding(void *context, const char *finding)
{
    return tl_buf_printf(context, "%s\n", finding);
}

/* Queries of pages, housekeeping and repair. */
static int ask_catalog(struct tl_catalog *c, struct tl_buf *out, struct tl_fail *fail)
{
    const struct tl_note note = {.id = 1, .stream = "cs.10", .text = "here"};
    struct tl_catalog_totals totals = {0};
    bool intact = false;
    int rc = c->ops->ready(c, fail);
    if (rc == TL_OK)
        rc = c->ops->page(c, NULL, 9, note_trace, out, fail);
    if (rc == TL_OK)
        rc = c->ops->find(c, "a", note_trace, out, fail);
    if (rc == TL_OK)
        rc = c->ops->by_content(c, "sha256:0", note_trace, out, fail);
    if (rc == TL_OK)
        rc = c->ops->unfinished(c, note_trace, out, fail);
    if (rc == TL_OK)
        rc = c->ops->totals(c, &totals, fail);
    if (rc == TL_OK)
        rc = c->ops->put_note(c, "a", &note, fail);
    if (rc == TL_OK)
        rc = c->ops->notes(c, "a", note_note, out, fail);
    if (rc == TL_OK)
        rc = c->ops->remove_note(c, "a", 1, fail);
    if (rc == TL_OK)
        rc = c->ops->check_summary(c, "a", 1, 0, 0, &intact, fail);
    if (rc == TL_OK)
        rc = c->ops->check(c, true, note_finding, out, fail);
    return rc == TL_OK
               ? tl_buf_printf(out, "%llu %d\n", (unsigned long long)totals.raw_bytes, intact)
               : rc;
}

static int empty_catalog(struct tl_catalog *c, struct tl_fail *fail)
{
    int rc = c->ops->announce_image(c, "h", fail);
    if (rc == TL_OK)
        rc = c->ops->remove_image(c, "h", fail);
    if (rc == TL_OK)
        rc = c->ops->drop_shards(c, "a", 1, 0, 0, fail);
    if (rc == TL_OK)
        rc = c->ops->drop_others(c, "a", 2, 3, fail);
    if (rc == TL_OK)
        rc = c->ops->set_retention(c, "", NULL, fail);
    if (rc == TL_OK)
        rc = c->ops->remove_traces(c, &(const char *){"a"}, 1, fail);
    return rc == TL_OK ? c->ops->clear(c, fail) : rc;
}

static int use_catalog(void *context, struct tl_buf *out)
{
    struct tl_backend *b = NULL;
    struct tl_catalog *c = NULL;
    struct tl_fail fail = {0};
    int rc = tl_backend_memory(&b);
    if (rc == TL_OK)
        rc = tl_catalog_open(&c, b, &fail);
    if (rc == TL_OK)
        rc = fill_catalog(c, &fail);
    if (rc == TL_OK)
        rc = read_catalog(c, out, &fail);
    if (rc == TL_OK)
        rc = ask_catalog(c, out, &fail);
    if (rc == TL_OK)
        rc = empty_catalog(c, &fail);
    tl_catalog_close(c);
    tl_backend_free(b);
    return rc;
}

static void catalog(void **state)
{
    assert_true(nomem_run(use_catalog, NULL) > 3);
}

static int make(void **state)
{
    return mkdtemp(folder) ? 0 : -1;
}

static int unmake(void **state)
{
    char command[64];
    snprintf(command, sizeof command, "rm -r %s", folder);
    return system(command);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shards),       cmocka_unit_test(mended_shards),
        cmocka_unit_test(counted_code), cmocka_unit_test(back_ends),
        cmocka_unit_test(catalog),
    };
    return cmocka_run_group_tests(tests, make, unmake);
}
