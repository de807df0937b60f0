/* SPDX-License-Identifier: MIT */
/* The item log: everything is read back, however it was written, and damage is harmless. */
#include "made_items.h"
#include "random.h"
#include "shard/itemlog.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

static struct made made;

/* Items without blocks, and positions for them. */
static uint64_t *make(size_t n)
{
    uint64_t position = 0;
    made_stream(&made, next(), 0, 1);
    while (made.n < n)
        made_other(&made);
    uint64_t *const positions = malloc(made.n * sizeof *positions);
    assert_non_null(positions);
    for (size_t i = 0; i < made.n; i++)
        positions[i] = position += next() % 4 ? 0 : next() % 1000;
    return positions;
}

static void begin(struct tl_itemlog *log)
{
    *log = (struct tl_itemlog){0};
    tl_itemlog_reset(log, 7, 9);
}

/* Did the instruction before this position change the flow? */
static bool turned_at(uint64_t position)
{
    return position * 0x9e3779b97f4a7c15u >> 63;
}

/* The first of these items at a position records it. */
static bool reports_turn(const struct tl_item *item)
{
    return item->kind == TL_ITEM_BRANCH || item->kind == TL_ITEM_GAP ||
           item->kind == TL_ITEM_TRACE_ON || item->kind == TL_ITEM_EXCEPTION ||
           item->kind == TL_ITEM_UNKNOWN;
}

/* Write the same log, using runs of holes where possible. */
static void add_runs(struct tl_itemlog *log, const uint64_t *positions)
{
    for (size_t i = 0; i < made.n;) {
        size_t n = 0;
        while (i + n < made.n && positions[i + n] == positions[i])
            n++;
        n = 1 + next() % n;
        log->turned = turned_at(positions[i]);
        assert_int_equal(tl_itemlog_add_unmapped(log, positions[i], &made.items[i], &n, 1 << 30),
                         TL_OK);
        if (n == 0)
            assert_int_equal(tl_itemlog_add(log, positions[i], &made.items[i]), TL_OK);
        i += n > 0 ? n : 1;
    }
}

static void assert_item(const struct tl_item *a, const struct tl_item *b)
{
    assert_int_equal(a->kind, b->kind);
    assert_int_equal(a->flags, b->flags);
    assert_int_equal(a->sub, b->sub);
    assert_int_equal(a->offset, b->offset);
    const bool values = a->kind == TL_ITEM_TIME || a->kind == TL_ITEM_CYCLES ||
                        a->kind == TL_ITEM_EVENT || a->kind == TL_ITEM_MODE;
    if ((a->flags & TL_ITEM_HAS_PC && !values) || a->kind == TL_ITEM_UNKNOWN)
        assert_int_equal(a->pc, b->pc);
    if (values || a->kind == TL_ITEM_BRANCH || a->kind == TL_ITEM_TARGET)
        assert_int_equal(a->value, b->value);
    if (a->kind == TL_ITEM_SOFTWARE) {
        assert_int_equal(a->n, b->n);
        assert_memory_equal(a->data, b->data, a->n);
        assert_string_equal(a->name, b->name);
    }
    if (a->kind == TL_ITEM_NOTE)
        assert_string_equal(a->text, b->text);
}

static void what_goes_in_comes_out(void **state)
{
    for (unsigned round = 0; round < 100; round++) {
        uint64_t *const positions = make(1 + next() % 500);
        struct tl_itemlog one, many;
        struct tl_itemlog_reader reader;
        struct tl_item item;
        uint64_t position, reported = UINT64_MAX;
        begin(&one);
        begin(&many);
        for (size_t i = 0; i < made.n; i++) {
            one.turned = turned_at(positions[i]);
            assert_int_equal(tl_itemlog_add(&one, positions[i], &made.items[i]), TL_OK);
        }
        add_runs(&many, positions);
        assert_int_equal(one.n, made.n);
        assert_int_equal(many.n, made.n);
        assert_int_equal(one.bytes.n, many.bytes.n);
        assert_memory_equal(one.bytes.p, many.bytes.p, one.bytes.n);
        tl_itemlog_read(&reader, (struct tl_bytes){one.bytes.p, one.bytes.n}, 7, 9);
        for (size_t i = 0; i < made.n; i++) {
            assert_int_equal(tl_itemlog_next(&reader, &item, &position), TL_OK);
            assert_int_equal(position, positions[i]);
            assert_item(&made.items[i], &item);
            const bool reports = reports_turn(&item) && reported != position;
            assert_int_equal(reader.turned, reports && turned_at(position));
            reported = reports ? position : reported;
        }
        assert_int_equal(tl_itemlog_next(&reader, &item, &position), TL_EOF);
        tl_itemlog_fini(&one);
        tl_itemlog_fini(&many);
        free(positions);
        made_free(&made);
    }
}

/* A log's end records its offset in the raw bytes, and whether the last instruction changed the
 * flow, unless an item has recorded that. */
static void the_end_is_reported(void **state)
{
    static const struct tl_item gap = {.kind = TL_ITEM_GAP, .offset = 7};
    for (unsigned i = 0; i < 8; i++) {
        const bool turned = i & 1, moved = i & 2, reported = i & 4;
        struct tl_itemlog log;
        struct tl_itemlog_reader reader;
        struct tl_item item;
        uint64_t position;
        begin(&log);
        log.turned = turned;
        if (reported)
            assert_int_equal(tl_itemlog_add(&log, 50, &gap), TL_OK);
        assert_int_equal(tl_itemlog_end(&log, 50, moved ? 8 : 7), TL_OK);
        tl_itemlog_read(&reader, (struct tl_bytes){log.bytes.p, log.bytes.n}, 7, 9);
        if (reported) {
            assert_int_equal(tl_itemlog_next(&reader, &item, &position), TL_OK);
            assert_int_equal(item.kind, TL_ITEM_GAP);
            assert_int_equal(reader.turned, turned);
        }
        if (moved || (turned && !reported)) {
            assert_int_equal(tl_itemlog_next(&reader, &item, &position), TL_OK);
            assert_int_equal(item.kind, TL_ITEM_OFFSET);
            assert_int_equal(item.offset, moved ? 8 : 7);
            assert_int_equal(position, 50);
            assert_int_equal(reader.turned, turned && !reported);
        }
        assert_int_equal(tl_itemlog_next(&reader, &item, &position), TL_EOF);
        tl_itemlog_fini(&log);
    }
}

/* The address of unmapped code, together with the gap, takes only as many bytes as the address. */
static void holes_are_short(void **state)
{
    enum { HOLES = 1000 };
    struct tl_itemlog log;
    begin(&log);
    for (uint64_t i = 0; i < HOLES; i++) {
        const struct tl_item item = {.kind = TL_ITEM_GAP,
                                     .flags = TL_ITEM_HAS_PC,
                                     .sub = TL_GAP_NO_IMAGE,
                                     .pc = 0xffffffc000080000 + 4 * i,
                                     .offset = i};
        assert_int_equal(tl_itemlog_add(&log, 0, &item), TL_OK);
    }
    assert_int_equal(log.n, HOLES);
    assert_true(log.bytes.n < 3 * HOLES + 20);
    /* Nothing is added beyond the size limit. */
    const struct tl_item item = {
        .kind = TL_ITEM_GAP, .flags = TL_ITEM_HAS_PC, .sub = TL_GAP_NO_IMAGE, .pc = 4};
    size_t n = 1;
    assert_int_equal(tl_itemlog_add_unmapped(&log, 0, &item, &n, log.bytes.n), TL_OK);
    assert_int_equal(n, 0);
    tl_itemlog_fini(&log);
}

static const uint64_t lengths[] = {0, 1, 62, 63, 64, 127, 128, 255, 256, 1 << 20};
#define LENGTHS (sizeof lengths / sizeof *lengths)

/* Cycle counts and holes, alternating, at all distances from each other. */
static void short_ones_of_any_length(void **state)
{
    struct tl_itemlog log;
    struct tl_itemlog_reader reader;
    struct tl_item item;
    uint64_t position = 0, at, made_n = 0;
    struct tl_item all[3 * LENGTHS * LENGTHS * LENGTHS];
    uint64_t positions[3 * LENGTHS * LENGTHS * LENGTHS], offset = 7;
    begin(&log);
    for (size_t i = 0; i < LENGTHS * LENGTHS * LENGTHS; i++) {
        const uint64_t value = lengths[i % LENGTHS];
        position += lengths[i / LENGTHS % LENGTHS];
        offset += lengths[i / LENGTHS / LENGTHS];
        if (i % 3 != 1) {
            positions[made_n] = position;
            all[made_n++] = (struct tl_item){.kind = TL_ITEM_CYCLES,
                                             .flags = TL_ITEM_HAS_VALUE,
                                             .value = value << i % 40,
                                             .offset = offset};
        }
        if (i % 3 == 2)
            continue;
        positions[made_n] = position;
        all[made_n++] = i % 2 ? (struct tl_item){.kind = TL_ITEM_GAP,
                                                 .flags = TL_ITEM_HAS_PC,
                                                 .sub = TL_GAP_NO_IMAGE,
                                                 .pc = value << i % 64,
                                                 .offset = offset}
                              : (struct tl_item){.kind = TL_ITEM_BRANCH,
                                                 .flags = TL_ITEM_HAS_VALUE,
                                                 .value = value << i % 64,
                                                 .offset = offset};
    }
    for (size_t i = 0; i < made_n; i++)
        assert_int_equal(tl_itemlog_add(&log, positions[i], &all[i]), TL_OK);
    tl_itemlog_read(&reader, (struct tl_bytes){log.bytes.p, log.bytes.n}, 7, 9);
    for (size_t i = 0; i < made_n; i++) {
        assert_int_equal(tl_itemlog_next(&reader, &item, &at), TL_OK);
        assert_int_equal(at, positions[i]);
        assert_item(&all[i], &item);
    }
    assert_int_equal(tl_itemlog_next(&reader, &item, &at), TL_EOF);
    tl_itemlog_fini(&log);
}

/* Logs written by older versions. */
static void old_logs_are_read(void **state)
{
    static const uint8_t bytes[] = {
        8 | 0x20 | 0x40 | 0x80,
        5,
        TL_ITEM_HAS_VALUE,
        2 << 1,
        0,
        40, /* of CYCLES */
        TL_ITEM_UNMAPPED | 0x80,
        6,
        0x80,
        0x20, /* with a gap */
        TL_ITEM_AWAY,
        3, /* with none */
    };
    struct tl_itemlog_reader reader;
    struct tl_item item;
    uint64_t position;
    tl_itemlog_read(&reader, (struct tl_bytes){bytes, sizeof bytes}, 7, 9);
    static const struct tl_item items[] = {
        {.kind = TL_ITEM_CYCLES, .flags = TL_ITEM_HAS_VALUE, .value = 40, .offset = 9},
        {.kind = TL_ITEM_GAP,
         .flags = TL_ITEM_HAS_PC,
         .sub = TL_GAP_NO_IMAGE,
         .pc = 0x800,
         .offset = 12},
        {.kind = TL_ITEM_BRANCH, .flags = TL_ITEM_HAS_VALUE, .value = 0x7fe, .offset = 12},
    };
    for (size_t i = 0; i < sizeof items / sizeof *items; i++) {
        assert_int_equal(tl_itemlog_next(&reader, &item, &position), TL_OK);
        assert_int_equal(position, 5);
        assert_item(&items[i], &item);
    }
    assert_int_equal(tl_itemlog_next(&reader, &item, &position), TL_EOF);
}

static void damage_is_harmless(void **state)
{
    for (unsigned round = 0; round < 300; round++) {
        uint64_t *const positions = make(1 + next() % 60);
        struct tl_itemlog log;
        struct tl_itemlog_reader reader;
        struct tl_item item;
        uint64_t position;
        int r;
        begin(&log);
        add_runs(&log, positions);
        for (unsigned i = 0; i < 3; i++)
            log.bytes.p[next() % log.bytes.n] ^= 1 << next() % 8;
        const size_t n = next() % 2 ? log.bytes.n : next() % log.bytes.n;
        /* of this size, so that a sanitizer detects reads past the end */
        uint8_t *const bytes = malloc(n + 1);
        assert_non_null(bytes);
        memcpy(bytes + 1, log.bytes.p, n);
        tl_itemlog_read(&reader, (struct tl_bytes){bytes + 1, n}, 7, 9);
        size_t items = 0;
        while ((r = tl_itemlog_next(&reader, &item, &position)) == TL_OK) {
            assert_true(item.kind < TL_ITEM_KINDS || item.kind >= TL_ITEM_CHUNK ||
                        item.kind == TL_ITEM_LOST);
            assert_true(++items <= n);
        }
        assert_true(r == TL_EOF || r == TL_BAD);
        free(bytes);
        tl_itemlog_fini(&log);
        free(positions);
        made_free(&made);
    }
}

int main(void)
{
    begin_random();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_goes_in_comes_out), cmocka_unit_test(the_end_is_reported),
        cmocka_unit_test(holes_are_short),        cmocka_unit_test(short_ones_of_any_length),
        cmocka_unit_test(old_logs_are_read),      cmocka_unit_test(damage_is_harmless)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
