/* SPDX-License-Identifier: MIT */
/* Damaged shards are restored from their intact parts. */
#include "builder/mend.h"
#include "made_shards.h"
#include "store/backend_memory.h"

static struct tl_view *open_file(struct tl_backend *backend, const struct tl_buf *file)
{
    struct tl_view *view = NULL;
    struct tl_fail fail = {0};
    const char *key = "t/a/1/b/000000.zstf";
    const struct tl_bytes bytes = {file->p, file->n};
    assert_int_equal(tl_backend_put(backend, key, bytes, NULL), TL_OK);
    if (tl_view_open(&view, backend, key, &fail) < 0)
        fail_msg("%s", fail.text);
    return view;
}

static void assert_same_now(const struct tl_flow_now *a, const struct tl_flow_now *b)
{
    struct tl_buf x = {0}, y = {0};
    assert_int_equal(tl_flow_now_encode(a, &x), TL_OK);
    assert_int_equal(tl_flow_now_encode(b, &y), TL_OK);
    assert_int_equal(x.n, y.n);
    assert_memory_equal(x.p, y.p, x.n);
    tl_buf_fini(&x);
    tl_buf_fini(&y);
}

static void assert_same_chunks(const struct tl_shard_index *a, const struct tl_shard_index *b,
                               bool code)
{
    assert_int_equal(a->n_chunks, b->n_chunks);
    if (code)
        assert_int_equal(a->n_code, b->n_code);
    if (code && a->n_code > 0)
        assert_memory_equal(a->code, b->code, a->n_code * sizeof(*a->code));
    for (size_t i = 0; i < a->n_chunks; i++) {
        const struct tl_chunk *x = &a->chunks[i], *y = &b->chunks[i];
        assert_same_now(&x->at, &y->at);
        assert_int_equal(x->first, y->first);
        assert_int_equal(x->n, y->n);
        assert_int_equal(x->marker, y->marker);
        assert_int_equal(x->stf, y->stf);
        assert_int_equal(x->events, y->events);
        assert_int_equal(x->gaps, y->gaps);
        assert_int_equal(x->kinds, y->kinds);
        assert_int_equal(x->anchors, y->anchors);
        assert_int_equal(x->anchor_first.position, y->anchor_first.position);
        assert_int_equal(x->anchor_last.time, y->anchor_last.time);
        if (code)
            assert_int_equal(x->n_code, y->n_code);
        assert_int_equal(x->items_offset, y->items_offset);
        assert_int_equal(x->items_crc, y->items_crc);
    }
}

/* Compare statistics, except what artificial items affect: their functions are not in any image,
 * and a position that was left as if by a branch need not be one. */
static void assert_same_tally(const struct tl_shard_stats *a, const struct tl_shard_stats *b)
{
    const struct tl_shard_stats *const both[] = {a, b};
    struct tl_buf bytes[2] = {0};
    uint64_t insns[2] = {0};
    for (size_t i = 0; i < 2; i++) {
        struct tl_shard_stats copy = *both[i];
        for (size_t k = 0; k < copy.n_functions; k++)
            insns[i] += copy.functions[k].insns;
        copy.n_functions = 0;
        copy.taken = 0;
        assert_int_equal(tl_shard_stats_encode(&copy, &bytes[i]), TL_OK);
    }
    assert_int_equal(insns[0], insns[1]);
    assert_int_equal(bytes[0].n, bytes[1].n);
    assert_memory_equal(bytes[0].p, bytes[1].p, bytes[0].n);
    tl_buf_fini(&bytes[0]);
    tl_buf_fini(&bytes[1]);
}

/* Compare indexes. `code`: positions are instructions, in pages that an item log names. */
static void assert_same_index(const struct tl_shard_index *a, const struct tl_shard_index *b,
                              bool code)
{
    assert_int_equal(a->row.number, b->row.number);
    assert_int_equal(a->row.first, b->row.first);
    assert_int_equal(a->row.n, b->row.n);
    assert_int_equal(a->row.markers, b->row.markers);
    assert_int_equal(a->row.byte_first, b->row.byte_first);
    assert_int_equal(a->row.byte_last, b->row.byte_last);
    assert_int_equal(a->row.events, b->row.events);
    assert_int_equal(a->row.gaps, b->row.gaps);
    assert_int_equal(a->row.anchors, b->row.anchors);
    assert_same_now(&a->row.at, &b->row.at);
    assert_same_chunks(a, b, code);
    assert_same_tally(&a->stats, &b->stats);
    assert_int_equal(a->n_frames, b->n_frames);
    for (size_t i = 0; i < a->n_frames; i++) {
        assert_int_equal(a->frames[i].pc, b->frames[i].pc);
        assert_int_equal(a->frames[i].marker, b->frames[i].marker);
        assert_int_equal(a->frames[i].plain, b->frames[i].plain);
    }
    assert_int_equal(a->buckets.n, b->buckets.n);
    for (size_t i = 0; i < a->buckets.n; i++) {
        const struct tl_bucket *x = &a->buckets.p[i], *y = &b->buckets.p[i];
        assert_int_equal(x->insns, y->insns);
        assert_int_equal(x->events, y->events);
        assert_int_equal(x->event_mask, y->event_mask);
        assert_int_equal(x->flags, y->flags);
    }
}

/* Keep the lines of instructions, and of exceptions after the first: these are in the STF without
 * its item logs. */
static void only_recorded(struct tl_buf *text)
{
    size_t n = 0;
    for (size_t i = 0; i < text->n;) {
        const uint8_t *end = memchr(text->p + i, '\n', text->n - i);
        const size_t size = end ? (size_t)(end + 1 - (text->p + i)) : text->n - i;
        if (text->p[i] == 'I' || (text->p[i] == 'X' && n > 0)) {
            memmove(text->p + n, text->p + i, size);
            n += size;
        }
        i += size;
    }
    text->n = n;
}

struct mending {
    struct tl_backend *backend;
    struct tl_mend mend;
    const struct tl_buf *file;
    struct tl_view *view;
    struct tl_buf text;
    unsigned whole, lost, hopeless;
};

/*
 * Check that `damaged` is restored exactly, or without some items if a log is lost, or not at all.
 */
static void mend_one(struct mending *m, struct tl_bytes damaged)
{
    struct tl_buf mended = {0}, text = {0}, report = {0};
    struct tl_fail fail = {0};
    const int r = tl_shard_mend(damaged, &m->mend, &mended, &fail);
    if (r < 0) {
        assert_int_equal(r, TL_BAD);
        assert_true(fail.text[0] != '\0');
        m->hopeless++;
        tl_buf_fini(&mended);
        return;
    }
    struct tl_view *view = open_file(m->backend, &mended);
    if (tl_view_verify(m->backend, view->key, &report, NULL) != 0)
        fail_msg("%.*s", (int)report.n, (char *)report.p);
    if (r == 0) {
        assert_same_index(&m->view->index, &view->index, m->mend.protocol != TL_PROTO_ITM);
        append_text(view, 0, UINT64_MAX, true, m->mend.protocol, &text);
        assert_same_text(&m->text, &text);
        m->whole++;
    } else {
        assert_int_equal(view->index.row.n, m->view->index.row.n);
        append_text(view, 0, UINT64_MAX, true, m->mend.protocol, &text);
        struct tl_buf expected = {0};
        assert_int_equal(tl_buf_add(&expected, m->text.p, m->text.n), TL_OK);
        only_recorded(&expected);
        only_recorded(&text);
        assert_same_text(&expected, &text);
        tl_buf_fini(&expected);
        m->lost++;
    }
    tl_view_put(view);
    tl_buf_fini(&mended);
    tl_buf_fini(&text);
    tl_buf_fini(&report);
}

/* Flip one bit anywhere; cut the end; flip two bits. */
static void mend_all(struct mending *m, struct made *random)
{
    const struct tl_buf *file = m->file;
    const uint64_t index = tl_le64(file->p + 12);
    struct tl_buf copy = {0};
    for (int i = 0; i < 60; i++) {
        const size_t after = (size_t)index + made_below(random, file->n - index);
        const size_t at = i < 20 ? (size_t)i : i < 50 ? after : made_below(random, file->n);
        tl_buf_reset(&copy);
        assert_int_equal(tl_buf_add(&copy, file->p, file->n), TL_OK);
        copy.p[at] ^= (uint8_t)(1u << made_below(random, 8));
        const unsigned hopeless = m->hopeless;
        mend_one(m, (struct tl_bytes){copy.p, copy.n});
        /* Only instructions, and logs that contain positions themselves, are stored just once. */
        const bool in_index =
            at < 20 || (at >= index && at < m->view->index.chunks[0].items_offset);
        if (in_index && m->hopeless > hopeless)
            fail_msg("byte %zu of %zu, index at %zu", at, file->n, (size_t)index);
        copy.p[made_below(random, copy.n)] ^= 0x20;
        mend_one(m, (struct tl_bytes){copy.p, copy.n});
        mend_one(m, (struct tl_bytes){file->p, at});
    }
    tl_buf_fini(&copy);
}

/* Add exceptions and mode changes after blocks: the STF contains these too, and they are not
 * positions. */
static void interrupt(struct made *m)
{
    struct tl_item *const blocks = m->items;
    const size_t n = m->n;
    m->items = NULL;
    m->n = m->cap = 0;
    for (size_t i = 0; i < n; i++) {
        *made_add(m, TL_ITEM_BLOCK) = blocks[i];
        if (made_below(m, 2)) {
            struct tl_item *const item = made_add(m, TL_ITEM_EXCEPTION);
            item->sub = (uint16_t)made_below(m, 40);
            item->text = made_below(m, 4) ? "irq" : NULL;
        }
        if (made_below(m, 2))
            made_add(m, TL_ITEM_MODE)->value =
                tl_mode(TL_ARCH_ARM, (unsigned)made_below(m, 4), TL_SEC_NS,
                        made_below(m, 2) ? TL_ISA_A64 : TL_ISA_T32);
    }
    free(blocks);
}

static void shards_are_mended(void **state)
{
    (void)state;
    struct made random = {.random = seed_of_day()};
    unsigned whole = 0, lost = 0, hopeless = 0;
    struct tl_backend *backend;
    assert_int_equal(tl_backend_memory(&backend), TL_OK);
    for (int round = 0; round < 12; round++) {
        struct made m;
        struct run run = random_run(&random);
        run.shard_insns += 500;
        run.chunk_markers += 20;
        made_stream(&m, made_random(&random), 200 + made_below(&random, 400),
                    (unsigned)(round % 3 ? 2 + made_below(&random, 10) : 0));
        if (round % 3 == 0)
            interrupt(&m);
        struct shards *s = build(&m, &run, 0, 0, made_random(&random));
        const size_t k = made_below(&random, s->n);
        struct mending mending = {.backend = backend,
                                  .mend = {.number = k,
                                           .follows = k + 1 < s->n,
                                           .protocol = run.protocol,
                                           .packer = s->packer},
                                  .file = &s->files[k]};
        mending.view = open_file(backend, &s->files[k]);
        /* A header with another chunk length is only correct if there are several chunks, see
         * chunks_of_all_versions(). */
        if (mending.view->index.n_frames > 1) {
            append_text(mending.view, 0, UINT64_MAX, true, run.protocol, &mending.text);
            mend_all(&mending, &random);
        }
        whole += mending.whole;
        lost += mending.lost;
        hopeless += mending.hopeless;
        tl_view_put(mending.view);
        tl_buf_fini(&mending.text);
        shards_free(s);
        made_free(&m);
    }
    print_message("%u whole, %u without some items, %u hopeless\n", whole, lost, hopeless);
    tl_backend_free(backend);
}

/* Blocks of one instruction, with an exception after each and `notes` after that. */
static void interrupted(struct made *m, size_t n, unsigned notes)
{
    static const char text[] = "one of many notes, which fill a shard's logs before it has enough "
                               "instructions; so the shard ends after one of them";
    *m = (struct made){.random = 9};
    for (size_t i = 0; i < MADE_BLOCKS; i++)
        made_block(m, i);
    for (size_t i = 0; i < n; i++) {
        struct tl_item *const item = made_add(m, TL_ITEM_BLOCK);
        item->block = &m->blocks[i % MADE_BLOCKS];
        item->n = 1;
        item->flags = item->block->n == 1 ? TL_ITEM_TAKEN : 0;
        made_add(m, TL_ITEM_EXCEPTION)->sub = (uint16_t)made_below(m, 40);
        for (unsigned k = 0; k < notes; k++)
            made_add(m, TL_ITEM_NOTE)->text = text;
    }
}

/*
 * Exceptions after a shard's last instruction are in its STF. They are its items if the shard is
 * the stream's last or ended among items; otherwise they belong to the next shard. They appear once
 * in any case.
 */
static void exceptions_at_the_end_are_mended(void **state)
{
    static const struct {
        size_t blocks;
        unsigned notes;
    } cases[] = {{390, 0}, {800, 150}};
    struct tl_backend *backend;
    (void)state;
    assert_int_equal(tl_backend_memory(&backend), TL_OK);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct run run = {cases[i].notes ? 1 << 20 : 200, 10, TL_PROTO_ETM4};
        struct made m;
        interrupted(&m, cases[i].blocks, cases[i].notes);
        struct shards *const s = build(&m, &run, 0, 0, 2);
        assert_int_equal(s->n, 2);
        for (size_t k = 0; k < s->n; k++) {
            struct mending mending = {.backend = backend,
                                      .mend = {.number = k,
                                               .follows = k + 1 < s->n,
                                               .protocol = run.protocol,
                                               .packer = s->packer},
                                      .file = &s->files[k],
                                      .view = open_file(backend, &s->files[k])};
            const struct tl_shard_index *const index = &mending.view->index;
            append_text(mending.view, 0, UINT64_MAX, true, run.protocol, &mending.text);
            s->files[k].p[index->chunks[index->n_chunks - 1].items_offset + 9] ^= 1;
            mend_one(&mending, (struct tl_bytes){s->files[k].p, s->files[k].n});
            assert_int_equal(mending.lost, 1);
            tl_view_put(mending.view);
            tl_buf_fini(&mending.text);
        }
        shards_free(s);
        made_free(&m);
    }
    tl_backend_free(backend);
}

/* A shard of one chunk, as written by this version and older ones, is intact, and mending restores
 * its chunk length; any other chunk length is damage. */
static void chunks_of_all_versions(void **state)
{
    static const uint64_t lengths[] = {TL_CHUNK_MARKERS, TL_CHUNK_MARKERS_OLD, 1000};
    struct made random = {.random = seed_of_day()};
    struct tl_backend *backend;
    struct made m;
    (void)state;
    assert_int_equal(tl_backend_memory(&backend), TL_OK);
    made_stream(&m, made_random(&random), 100, 4);
    for (size_t i = 0; i < sizeof(lengths) / sizeof(*lengths); i++) {
        const struct run run = {1 << 20, lengths[i], TL_PROTO_ETM4};
        struct shards *s = build(&m, &run, 0, 0, 1);
        assert_int_equal(s->n, 1);
        assert_int_equal(s->views[0]->index.n_frames, 1);
        struct tl_view *const view = open_file(backend, &s->files[0]);
        struct tl_buf report = {0}, mended = {0};
        const struct tl_mend mend = {.protocol = run.protocol, .packer = s->packer};
        const struct tl_bytes file = {s->files[0].p, s->files[0].n};
        const bool known = i < 2;
        assert_int_equal(tl_view_verify(backend, view->key, &report, NULL), known ? 0 : 1);
        s->files[0].p[file.n - 1] ^= 1; /* the footer's checksum */
        assert_int_equal(tl_shard_mend(file, &mend, &mended, NULL), TL_OK);
        s->files[0].p[file.n - 1] ^= 1;
        assert_int_equal(tl_le64(mended.p + 4), known ? lengths[i] : TL_CHUNK_MARKERS);
        if (known) {
            assert_int_equal(mended.n, file.n);
            assert_memory_equal(mended.p, file.p, file.n);
        }
        tl_buf_fini(&report);
        tl_buf_fini(&mended);
        tl_view_put(view);
        shards_free(s);
    }
    made_free(&m);
    tl_backend_free(backend);
}

/* The version of a shard after mending. */
static uint32_t mended_version(const struct shards *s, struct tl_bytes damaged)
{
    const struct tl_mend mend = {.protocol = TL_PROTO_ETM4, .packer = s->packer};
    struct tl_buf mended = {0};
    struct tl_shard_footer footer;
    assert_int_equal(tl_shard_mend(damaged, &mend, &mended, NULL), TL_OK);
    assert_true(tl_shard_footer_read(mended.p + mended.n - TL_SHARD_FOOTER, mended.n, &footer) >=
                0);
    tl_buf_fini(&mended);
    return footer.version;
}

/* A damaged footer does not change the version; neither do the bytes in its place in a file that
 * lost its end. */
static void version_is_kept(void **state)
{
    const struct run run = {1 << 20, TL_CHUNK_MARKERS, TL_PROTO_ETM4};
    struct made m;
    (void)state;
    made_stream(&m, 7, 100, 4);
    struct shards *const s = build(&m, &run, 0, 0, 2);
    for (uint32_t version = 2; version <= TL_SHARD_VERSION; version++) {
        struct tl_buf file = {0};
        struct tl_shard_footer footer;
        s->views[0]->index.version = version;
        assert_int_equal(tl_view_encode(s->views[0], run.chunk_markers, s->packer, &file, NULL),
                         TL_OK);
        uint8_t *const end = file.p + file.n - TL_SHARD_FOOTER;
        assert_true(tl_shard_footer_read(end, file.n, &footer) >= 0);
        const struct tl_bytes whole = {file.p, file.n};
        end[44] ^= 1; /* its checksum */
        assert_int_equal(mended_version(s, whole), version);
        file.p[footer.body] ^= 1; /* and the index */
        assert_int_equal(mended_version(s, whole), version);
        end[44] ^= 1;
        for (uint32_t reported = 0; reported < 8; reported++) {
            tl_put_le32(end + 8, reported);
            assert_int_equal(mended_version(s, whole), version);
        }
        tl_put_le32(file.p + footer.body + 8, 1);
        const struct tl_bytes cut = {file.p, footer.body + TL_SHARD_FOOTER};
        assert_true(cut.n < file.n - TL_SHARD_FOOTER);
        assert_int_equal(mended_version(s, cut), TL_SHARD_VERSION);
        tl_buf_fini(&file);
    }
    shards_free(s);
    made_free(&m);
}

/* An instruction and three messages, repeatedly: for ITM each message is a position too. Then more
 * than a chunk of messages. */
static void with_messages(struct made *m)
{
    static const uint8_t message[256];
    *m = (struct made){.random = 5};
    for (size_t i = 0; i < MADE_BLOCKS; i++)
        made_block(m, i);
    for (size_t i = 0; i < 4 * 2000; i++) {
        struct tl_item *const item =
            made_add(m, i % 4 ? (uint8_t)TL_ITEM_SOFTWARE : (uint8_t)TL_ITEM_BLOCK);
        item->name = "itm";
        if (item->kind == TL_ITEM_BLOCK) {
            item->block = &m->blocks[i % MADE_BLOCKS];
            item->n = 1;
        }
    }
    for (size_t i = 0; i < 2500; i++) {
        struct tl_item *const item = made_add(m, TL_ITEM_SOFTWARE);
        *item = (struct tl_item){.kind = TL_ITEM_SOFTWARE,
                                 .offset = item->offset,
                                 .name = "itm",
                                 .data = message,
                                 .n = sizeof message};
    }
}

/* If the index is lost, the chunks' positions are found from the logs. A single impossible log is
 * enough to detect a mismatch: each case has one fault only. */
static void mixed_up_chunks_are_reported(void **state)
{
    static const struct {
        const char *what;
        struct run into;
        size_t at;
        struct run from;
        size_t log;
    } cases[] = {
        {"position", {1 << 20, 200, TL_PROTO_ITM}, 2, {1 << 20, 200, TL_PROTO_ETM4}, 2},
        {"marker", {1 << 20, 200, TL_PROTO_ETM4}, 2, {1 << 20, 70, TL_PROTO_ITM}, 2},
        {"frame before", {1 << 20, 100, TL_PROTO_ETM4}, 3, {1 << 20, 400, TL_PROTO_ETM4}, 1},
        {"frame behind", {1 << 20, 400, TL_PROTO_ETM4}, 1, {1 << 20, 100, TL_PROTO_ETM4}, 8},
        {"begin", {1 << 20, 5000, TL_PROTO_ETM4}, 0, {1 << 20, 100, TL_PROTO_ETM4}, 1},
    };
    struct made m;
    (void)state;
    with_messages(&m);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct shards *const s = build(&m, &cases[i].into, 0, 0, 2);
        struct shards *const other = build(&m, &cases[i].from, 0, 0, 2);
        struct tl_view *const view = s->views[0];
        const struct tl_mend mend = {.protocol = cases[i].into.protocol, .packer = s->packer};
        struct tl_blob **const log = &view->items[cases[i].at], *const own = *log;
        assert_true(cases[i].at < view->index.n_chunks);
        assert_true(cases[i].log < other->views[0]->index.n_chunks);
        for (unsigned mixed = 0; mixed < 2; mixed++) {
            struct tl_buf file = {0}, mended = {0};
            struct tl_fail fail = {0};
            struct tl_shard_footer footer;
            *log = mixed ? other->views[0]->items[cases[i].log] : own;
            assert_int_equal(
                tl_view_encode(view, cases[i].into.chunk_markers, s->packer, &file, NULL), TL_OK);
            assert_true(tl_shard_footer_read(file.p + file.n - TL_SHARD_FOOTER, file.n, &footer) >=
                        0);
            file.p[footer.body + footer.body_size / 2] ^= 1;
            const int r = tl_shard_mend((struct tl_bytes){file.p, file.n}, &mend, &mended, &fail);
            if (r != (mixed ? TL_BAD : TL_OK) ||
                (mixed && !strstr(fail.text, "item logs are mixed up")))
                fail_msg("%s: %d, %s", cases[i].what, r, fail.text);
            tl_buf_fini(&mended);
            tl_buf_fini(&file);
        }
        *log = own;
        shards_free(s);
        shards_free(other);
    }
    made_free(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shards_are_mended),
        cmocka_unit_test(exceptions_at_the_end_are_mended),
        cmocka_unit_test(chunks_of_all_versions),
        cmocka_unit_test(version_is_kept),
        cmocka_unit_test(mixed_up_chunks_are_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
