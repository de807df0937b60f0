/* SPDX-License-Identifier: MIT */
/*
 * Blocks copied whole give the same records as blocks processed one by one, for any batching and
 * chunking and all variants of the copying code; so do branches and gaps. Chunks whose records are
 * not requested end at the same place and do not change the chunks that follow.
 */
#include "stf/flow/flow_parts.h"
#include "stf/flow/flow_reader.h"
#include "unit/seed.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdlib.h>

enum { BLOCKS = 40, ITEMS = 3000, CODE = 40 * 15 };

struct made {
    struct tl_block quick, slow; /* identical, except for `plain` */
    uint8_t code[CODE];
    uint8_t stf[40 * TL_STF_CLOSE_MAX + TL_BLOCK_SLACK];
};

static struct made made[BLOCKS];
static struct tl_item quick[ITEMS], slow[ITEMS], paths[ITEMS];
static uintptr_t steps[ITEMS];
static bool repeats;
static bool apart;   /* blocks are given one by one, around all that copies */
static bool resumed; /* after each batch another writer goes on, from the state of the last one */
static uint64_t repeated; /* bytes */
static bool holes;        /* a gap at every third block */
static bool comments;     /* if false, an item without a record writes nothing, and a run of blocks
                             continues across it */
/*
 * The chunks whose records are compared. OF_ODD_ALONE: only theirs are requested; OF_ODD: those of
 * the others are written, too.
 */
static enum { OF_ALL, OF_ODD, OF_ODD_ALONE } wanted;

static void make_block(struct made *m, uint64_t pc, enum tl_isa isa)
{
    struct tl_block *const b = &m->quick;
    *b = (struct tl_block){.pc = pc, .isa = (uint8_t)isa, .code = m->code, .coded = m->stf};
    b->n = rand() % 4 ? 1 + (unsigned)rand() % 6 : 1 + (unsigned)rand() % 40;
    for (size_t i = 0; i < sizeof m->code; i++)
        m->code[i] = (uint8_t)rand();
    for (uint32_t i = 0; i < b->n; i++) {
        const uint32_t size = isa == TL_ISA_X64                 ? 1 + (unsigned)rand() % 15
                              : isa == TL_ISA_T32 && rand() % 2 ? 2
                                                                : 4;
        uint32_t value = 0;
        memcpy(&value, m->code + b->size, size < 4 ? size : 4);
        b->last_coded =
            tl_stf_close_insn(m->stf + b->coded_size, pc + b->size, m->code + b->size, size, value);
        b->coded_size += b->last_coded;
        b->size += size;
        b->last_size = (uint8_t)size;
    }
    b->end = TL_BLOCK_WAYPOINT;
    b->last_kind = rand() % 3 ? TL_INSN_BRANCH : TL_INSN_INDIRECT;
    b->target = 0x1000 + 4 * ((uint64_t)rand() % 256);
    m->slow = *b;
    b->odd = tl_stf_is_odd(b->last_size);
    b->plain = b->odd && !tl_isa_is_x86(isa) ? TL_ISA_NONE : b->isa;
}

static void make_items(void)
{
    const enum tl_isa isas[] = {TL_ISA_A64, TL_ISA_T32, TL_ISA_X64, TL_ISA_A64};
    const enum tl_isa isa = isas[rand() % 4];
    uint64_t pc = 0x1000;
    for (unsigned i = 0; i < BLOCKS; i++) {
        make_block(&made[i], pc, rand() % 20 ? isa : TL_ISA_T32);
        pc += made[i].quick.size;
    }
    unsigned at = 0;
    for (unsigned i = 0; i < ITEMS; i++) {
        struct tl_item *const item = &quick[i];
        const struct tl_block *const b = &made[at].quick;
        *item = (struct tl_item){.kind = TL_ITEM_BLOCK, .n = b->n, .pc = b->pc, .block = b};
        const unsigned kind = (unsigned)rand() % 100;
        if (kind < 2) {
            *item = (struct tl_item){.kind = TL_ITEM_TIME, .value = i, .flags = TL_ITEM_HAS_VALUE};
        } else if (kind < 4) {
            *item = (struct tl_item){.kind = TL_ITEM_MODE,
                                     .value = tl_mode(TL_ARCH_ARM, kind & 1, TL_SEC_NS, b->isa)};
        } else if (kind < 6) {
            *item = (struct tl_item){.kind = TL_ITEM_EXCEPTION, .pc = b->pc, .text = "irq"};
            item->flags = kind & 1 ? TL_ITEM_HAS_PC : 0;
        } else if (kind < 7 || (holes && kind >= 70)) {
            *item = (struct tl_item){.kind = TL_ITEM_GAP, .pc = (uint64_t)rand() * 2};
            item->flags = kind % 4 ? TL_ITEM_HAS_PC : 0;
        } else if (kind < 12 || (kind < 60 && i > 0 && quick[i - 1].kind == TL_ITEM_BRANCH)) {
            *item = (struct tl_item){
                .kind = TL_ITEM_BRANCH, .flags = TL_ITEM_HAS_VALUE, .value = (uint64_t)rand() * 2};
            if (kind % 16 == 11) {
                item->flags |= TL_ITEM_HAS_PC;
                item->pc = (uint64_t)rand() * 2;
            }
        } else if (kind < 70 && i > 0 && quick[i - 1].kind == TL_ITEM_BRANCH) {
            *item = (struct tl_item){.kind = TL_ITEM_GAP};
        } else if (kind < 15) {
            item->n = 1 + (unsigned)rand() % b->n;
        } else if (rand() % 2) {
            item->flags = TL_ITEM_TAKEN;
        }
        slow[i] = *item;
        if (item->kind == TL_ITEM_BRANCH && !comments)
            slow[i].flags |= TL_ITEM_CALL; /* which only a comment would report, */
        if (item->kind == TL_ITEM_GAP && !item->flags && !comments)
            slow[i].kind = TL_ITEM_TRACE_ON; /* and so is this */
        if (item->kind == TL_ITEM_BLOCK) {
            slow[i].block = &made[at].slow;
            const bool on = !(item->flags & TL_ITEM_TAKEN) && rand() % 50;
            at = on ? (at + 1) % BLOCKS : (unsigned)rand() % BLOCKS;
        }
    }
}

/*
 * Turn whole blocks into paths of up to 64 steps, stored side by side; `pure`: each path has a
 * single instruction set, like those from walkers. Returns the number of items.
 */
static size_t make_paths(bool pure)
{
    size_t n = 0, used = 0;
    struct tl_item *path = NULL;
    for (size_t i = 0; i < ITEMS; i++) {
        const struct tl_item *const item = &quick[i];
        if (item->kind != TL_ITEM_BLOCK || item->n != item->block->n) {
            paths[n++] = *item;
            path = NULL;
            continue;
        }
        steps[used++] = tl_path_step(item->block, item->flags & TL_ITEM_TAKEN);
        if (!path || path->n == 64 ||
            (pure && tl_path_block(path->path[0])->isa != item->block->isa)) {
            path = &paths[n++];
            *path = (struct tl_item){.kind = TL_ITEM_PATH, .path = &steps[used - 1]};
        }
        path->n++;
        path->value += item->n;
    }
    return n;
}

/* What came out of a chunk: what is repeated was there before. */
static void add_chunk(const struct tl_stf_flow *flow, unsigned number, struct tl_buf *out)
{
    const struct tl_stf_piece piece = tl_stf_flow_piece(flow);
    const struct tl_stf_repeat *const all = piece.repeats;
    const size_t n = piece.n_repeats;
    const struct tl_bytes bytes = tl_stf_flow_bytes(flow);
    if (wanted != OF_ALL && number % 2 == 0)
        return;
    for (size_t i = 0, end = 0; i < n; end = (size_t)all[i].at + all[i].n, i++) {
        assert_true(all[i].at >= end && all[i].at <= bytes.n && all[i].n <= bytes.n - all[i].at);
        assert_true(all[i].back > 0 && all[i].back <= all[i].at);
        assert_memory_equal(bytes.p + all[i].at, bytes.p + all[i].at - all[i].back, all[i].n);
        repeated += all[i].n;
    }
    assert_int_equal(tl_buf_add(out, bytes.p, bytes.n), TL_OK);
    assert_int_equal(tl_buf_add(out, all, n * sizeof *all), TL_OK);
}

/* tl_stf_flow_items(), `apart`: block by block. */
static int write_some(struct tl_stf_flow *flow, const struct tl_item *items, size_t n,
                      uint64_t stop, struct tl_stf_flow_at *at)
{
    int rc = TL_OK;
    while (apart && rc == TL_OK && at->item < n) {
        const struct tl_item *const item = &items[at->item];
        if (item->kind != TL_ITEM_BLOCK) {
            rc = tl_stf_flow_items(flow, items, at->item + 1, stop, at);
        } else if ((rc = tl_stf_flow_block(flow, item, stop, &at->insn)) == TL_OK) {
            at->item++;
            at->insn = 0;
        }
    }
    return apart ? rc : tl_stf_flow_items(flow, items, n, stop, at);
}

/* Replace the writer by another one that goes on where it stands. */
static void hand_over(struct tl_stf_flow **flow, const struct tl_stf_flow_options *options)
{
    struct tl_buf saved = {0};
    struct tl_state save = {.out = &saved};
    tl_stf_flow_resume(*flow, &save);
    assert_int_equal(save.rc, TL_OK);
    tl_stf_flow_free(*flow);
    assert_int_equal(tl_stf_flow_new(flow, options, NULL), TL_OK);
    struct tl_state load = {.in = {saved.p, saved.n}};
    tl_stf_flow_resume(*flow, &load);
    assert_int_equal(load.rc, TL_OK);
    assert_int_equal(load.in.n, 0);
    tl_buf_fini(&saved);
}

/* Write all, in batches of up to `batch` items and chunks of `chunk` markers (0: no chunks). */
static void write_all(const struct tl_item *items, size_t total, size_t batch, uint64_t chunk,
                      struct tl_buf *out)
{
    struct tl_stf_flow *flow;
    const struct tl_stf_flow_options options = {
        .isa = TL_ISA_A64, .comments = comments, .repeats = repeats};
    uint64_t stop = chunk ? chunk : UINT64_MAX;
    unsigned number = 0;
    assert_int_equal(tl_stf_flow_new(&flow, &options, NULL), TL_OK);
    tl_stf_flow_dry(flow, wanted == OF_ODD_ALONE);
    for (size_t i = 0; i < total;) {
        const size_t n = batch < total - i ? batch : total - i;
        struct tl_stf_flow_at at = {0};
        int rc;
        while ((rc = write_some(flow, items + i, n, stop, &at)) == TL_AGAIN) {
            assert_int_equal(tl_stf_flow_markers(flow), stop);
            const uint64_t pc = tl_stf_flow_chunk_pc(flow);
            add_chunk(flow, number++, out);
            assert_int_equal(tl_buf_add(out, &pc, sizeof pc), TL_OK);
            tl_stf_flow_take(flow);
            tl_stf_flow_dry(flow, wanted == OF_ODD_ALONE && number % 2 == 0);
            stop += chunk;
        }
        assert_int_equal(rc, TL_OK);
        struct tl_stf_flow_state state;
        tl_stf_flow_state(flow, &state);
        assert_int_equal(tl_buf_add(out, &state.pc, sizeof state.pc), TL_OK);
        assert_int_equal(tl_buf_add(out, &state.has_pc, sizeof state.has_pc), TL_OK);
        if (resumed)
            hand_over(&flow, &options);
        i += n;
    }
    assert_int_equal(tl_stf_flow_finish(flow), TL_OK);
    add_chunk(flow, number, out);
    tl_stf_flow_free(flow);
}

static void same_records(void **state)
{
    (void)state;
    for (unsigned round = 0; round < test_rounds(120); round++) {
        struct tl_buf a = {0}, b = {0};
        srand(round);
        comments = round % 2;
        holes = round / 2 % 2;
        make_items();
        const size_t batch = round % 3 ? 1 + (size_t)rand() % 300 : ITEMS;
        const uint64_t chunk = round % 4 ? 1 + (uint64_t)rand() % 500 : 0;
        write_all(quick, ITEMS, batch, chunk, &a);
        write_all(slow, ITEMS, batch, chunk, &b);
        assert_int_equal(a.n, b.n);
        assert_memory_equal(a.p, b.p, a.n);
        b.n = 0;
        const size_t n = make_paths(false);
        write_all(slow, ITEMS, ITEMS, chunk, &b);
        a.n = 0;
        write_all(paths, n, ITEMS, chunk, &a);
        assert_int_equal(a.n, b.n);
        assert_memory_equal(a.p, b.p, a.n);
        tl_buf_fini(&a);
        tl_buf_fini(&b);
    }
}

/* Repeats are found at the same places however blocks are given, and whatever copies them. */
static void same_marks(void **state)
{
    (void)state;
    repeats = true;
    repeated = 0;
    for (unsigned round = 0; round < test_rounds(120); round++) {
        struct tl_buf a = {0}, b = {0};
        srand(2000 + round);
        comments = round % 2;
        holes = round / 2 % 2;
        make_items();
        const size_t n = make_paths(true), batch = round % 3 ? 1 + (size_t)rand() % 300 : ITEMS;
        const uint64_t chunk = round % 4 ? 1 + (uint64_t)rand() % 5000 : 0;
        apart = true;
        write_all(quick, ITEMS, ITEMS, chunk, &a);
        apart = false;
        write_all(quick, ITEMS, ITEMS, chunk, &b);
        assert_int_equal(a.n, b.n);
        assert_memory_equal(a.p, b.p, a.n);
        b.n = 0;
        write_all(paths, n, ITEMS, chunk, &b);
        assert_int_equal(a.n, b.n);
        assert_memory_equal(a.p, b.p, a.n);
        a.n = b.n = 0;
        write_all(quick, ITEMS, batch, chunk, &a);
        apart = true;
        write_all(quick, ITEMS, batch, chunk, &b);
        apart = false;
        assert_int_equal(a.n, b.n);
        assert_memory_equal(a.p, b.p, a.n);
        tl_buf_fini(&a);
        tl_buf_fini(&b);
    }
    repeats = false;
    assert_true(repeated > 100000);
}

/* Records and repeats are the same for a writer that goes on from the state of another one. */
static void same_marks_resumed(void **state)
{
    (void)state;
    repeats = true;
    for (unsigned round = 0; round < test_rounds(120); round++) {
        struct tl_buf a = {0}, b = {0};
        srand(3000 + round);
        comments = round % 2;
        holes = round / 2 % 2;
        make_items();
        const size_t n = make_paths(true), batch = 20 + (size_t)rand() % 300;
        const uint64_t chunk = round % 4 ? 1 + (uint64_t)rand() % 50000 : 0;
        const struct tl_item *const items = round % 3 ? paths : quick;
        write_all(items, round % 3 ? n : ITEMS, batch, chunk, &a);
        resumed = true;
        write_all(items, round % 3 ? n : ITEMS, batch, chunk, &b);
        resumed = false;
        assert_int_equal(a.n, b.n);
        assert_memory_equal(a.p, b.p, a.n);
        tl_buf_fini(&a);
        tl_buf_fini(&b);
    }
    repeats = false;
}

static void unwanted_records(void **state)
{
    (void)state;
    for (unsigned round = 0; round < test_rounds(120); round++) {
        struct tl_buf a = {0}, b = {0};
        srand(1000 + round);
        comments = round % 2;
        repeats = round % 3 == 0;
        holes = round / 2 % 2;
        make_items();
        const size_t n = make_paths(true), batch = round % 3 ? 1 + (size_t)rand() % 300 : n;
        const uint64_t chunk = 1 + (uint64_t)rand() % (round % 4 ? 500 : 5000);
        wanted = OF_ODD;
        write_all(paths, n, batch, chunk, &a);
        wanted = OF_ODD_ALONE;
        write_all(paths, n, batch, chunk, &b);
        wanted = OF_ALL;
        assert_int_equal(a.n, b.n);
        assert_memory_equal(a.p, b.p, a.n);
        tl_buf_fini(&a);
        tl_buf_fini(&b);
    }
}

/* The records of items that are written `step` at a time. */
static void records_of(const struct tl_item *items, size_t n, size_t step, bool with,
                       struct tl_buf *out)
{
    const struct tl_stf_flow_options options = {.isa = TL_ISA_A64, .comments = with};
    struct tl_stf_flow *flow;
    assert_int_equal(tl_stf_flow_new(&flow, &options, NULL), TL_OK);
    for (size_t i = 0; i < n; i += step) {
        struct tl_stf_flow_at at = {0};
        const size_t some = step < n - i ? step : n - i;
        assert_int_equal(tl_stf_flow_items(flow, items + i, some, UINT64_MAX, &at), TL_OK);
    }
    assert_int_equal(tl_stf_flow_finish(flow), TL_OK);
    const struct tl_bytes bytes = tl_stf_flow_bytes(flow);
    assert_int_equal(tl_buf_add(out, bytes.p, bytes.n), TL_OK);
    tl_stf_flow_free(flow);
}

/* Branches and gaps without an image give the same records one at a time and many at once. */
static void points_together(void **state)
{
    (void)state;
    for (unsigned round = 0; round < test_rounds(200); round++) {
        struct tl_item items[100];
        const size_t n = sizeof items / sizeof *items;
        for (size_t i = 0; i < n; i++) {
            const unsigned kind = (unsigned)rand() % 16, some = (unsigned)rand() % 16;
            struct tl_item *const item = &items[i];
            *item = (struct tl_item){.kind = TL_ITEM_BRANCH, .value = (unsigned)rand() & 0xfffffc};
            if (kind < 7) {
                item->kind = TL_ITEM_GAP;
                item->sub = (uint16_t)(rand() % (round % 2 ? TL_GAP_KINDS : 2));
                item->pc = (unsigned)rand() & 0xfffffc;
                if (some < 2)
                    item->flags = TL_ITEM_HAS_VALUE | (some ? TL_ITEM_AT_LEAST : 0);
                if (some % 2)
                    item->flags |= TL_ITEM_HAS_PC;
            } else if (kind == 7) {
                item->kind = some < 8 ? TL_ITEM_TRACE_ON : TL_ITEM_ERET;
            } else if (kind == 8) {
                item->flags = (uint8_t)(rand() & (TL_ITEM_HAS_PC | TL_ITEM_CALL | TL_ITEM_RETURN));
            }
        }
        for (int with = 0; with < 2; with++) {
            struct tl_buf one = {0}, many = {0};
            records_of(items, n, 1, with, &one);
            records_of(items, n, round % 3 ? n : 7, with, &many);
            assert_int_equal(one.n, many.n);
            assert_memory_equal(one.p, many.p, one.n);
            tl_buf_fini(&one);
            tl_buf_fini(&many);
        }
    }
}

static int add_text(void *context, const struct tl_item *items, size_t n)
{
    return tl_item_text(context, items, n);
}

/* Unmapped code reads back as it was written, each gap after its address. */
static void unmapped_code_comes_back(void **state)
{
    (void)state;
    const struct tl_item gap = {
        .kind = TL_ITEM_GAP, .flags = TL_ITEM_HAS_PC, .sub = TL_GAP_NO_IMAGE, .pc = 0x8000};
    const struct tl_item lost = {.kind = TL_ITEM_GAP, .sub = TL_GAP_NO_IMAGE};
    const struct tl_item branch = {.kind = TL_ITEM_BRANCH, .value = 0x300};
    make_block(&made[0], 0x1000, TL_ISA_A64);
    const struct tl_block *const b = &made[0].quick;
    const struct tl_item block = {.kind = TL_ITEM_BLOCK, .n = b->n, .block = b};
    const struct tl_item items[] = {gap, lost, block, gap, gap, branch, gap, lost, block, gap};
    const size_t n = sizeof items / sizeof *items;
    struct tl_buf reported = {0};
    assert_int_equal(tl_item_text(&reported, items, n), TL_OK);
    for (size_t step = 1; step <= n; step++) {
        struct tl_buf records = {0}, text = {0};
        struct tl_stf_reader *reader;
        struct tl_stf_flow_reader *flow;
        struct tl_stf_record record;
        records_of(items, n, step, true, &records);
        assert_int_equal(tl_stf_reader_new(&reader), TL_OK);
        assert_int_equal(tl_stf_flow_reader_new(&flow, add_text, &text), TL_OK);
        tl_stf_reader_push(reader, (struct tl_bytes){records.p, records.n});
        tl_stf_reader_finish(reader);
        while (tl_stf_reader_next(reader, &record, NULL) == TL_OK)
            assert_int_equal(tl_stf_flow_reader_add(flow, &record), TL_OK);
        assert_int_equal(tl_stf_flow_reader_finish(flow), TL_OK);
        tl_stf_flow_reader_free(flow);
        tl_stf_reader_free(reader);
        assert_int_equal(text.n, reported.n);
        assert_memory_equal(text.p, reported.p, reported.n);
        tl_buf_fini(&records);
        tl_buf_fini(&text);
    }
    tl_buf_fini(&reported);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(same_records),       cmocka_unit_test(same_marks),
        cmocka_unit_test(same_marks_resumed), cmocka_unit_test(unwanted_records),
        cmocka_unit_test(points_together),    cmocka_unit_test(unmapped_code_comes_back)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
