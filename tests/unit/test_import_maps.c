/* SPDX-License-Identifier: MIT */
/* Maps of processes over time, compared with memory: random records change an array for each
 * process, and the images created from them have the same contents at every time. */
#include "import/maps.h"

#include <malloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

enum { PAGES = 12, PROCESSES = 3, TIMES = 30, FILES = 4, FILE_PAGES = 16, ROUNDS = 300 };

/* A page of a file, as one byte; 0: none. */
struct memory {
    uint8_t page[PAGES];
};

static uint8_t byte_of(unsigned file, uint64_t page)
{
    return (uint8_t)(1 + file * FILE_PAGES + page);
}

static int resolve(void *context, const char *file, struct tl_bytes *bytes, struct tl_fail *fail)
{
    static uint8_t content[FILE_PAGES];
    (void)context;
    (void)fail;
    for (unsigned i = 0; i < FILE_PAGES; i++)
        content[i] = byte_of((unsigned)(file[0] - 'a'), i);
    *bytes = (struct tl_bytes){content, sizeof content};
    return TL_OK;
}

static unsigned below(unsigned n)
{
    return (unsigned)random() % n;
}

/* A record at `time`, for the maps and the memory. Process 0 is the kernel. */
static void change(struct tl_maps *maps, struct memory *now, uint64_t time)
{
    static const char *const names[FILES] = {"a", "b", "c", "d"};
    const unsigned process = below(PROCESSES), what = below(10), file = below(FILES);
    const uint64_t id = process ? process : TL_MAPS_KERNEL;
    const unsigned first = below(PAGES), n = 1 + below(PAGES - first), offset = below(4);
    const struct tl_map map = {.process = id,
                               .time = time,
                               .address = first,
                               .length = n,
                               .offset = offset,
                               .file = what == 0 ? NULL : names[file]};
    if (what > 2 || what == 0) {
        assert_int_equal(tl_maps_add(maps, &map), TL_OK);
        for (unsigned i = 0; i < n; i++)
            now[process].page[first + i] = what == 0 ? 0 : byte_of(file, offset + i);
    } else if (what == 1) {
        assert_int_equal(tl_maps_clear(maps, id, time), TL_OK);
        now[process] = (struct memory){{0}};
    } else if (process > 0) {
        const unsigned parent = 3 - process;
        assert_int_equal(tl_maps_fork(maps, process, parent, time), TL_OK);
        now[process] = now[parent];
    }
}

static uint8_t look(const struct tl_image *image, unsigned process, uint64_t time, unsigned page)
{
    const struct tl_image_context context = {.context_id = process, .has_context_id = process > 0};
    const uint64_t view = tl_image_view(image, &context, time, NULL);
    const struct tl_bytes got = tl_image_view_at(image, view, TL_SPACE_EL1N, page);
    return got.n ? *got.p : 0;
}

/* Nothing is lost, and nothing is added except what is mapped later where nothing is mapped now. */
static void show_what_memory_held(void **state)
{
    unsigned seen = 0, early = 0;
    (void)state;
    srandom(7);
    for (unsigned round = 0; round < ROUNDS; round++) {
        static struct memory at[TIMES][PROCESSES];
        struct memory now[PROCESSES] = {{{0}}};
        struct tl_maps *maps;
        struct tl_setup setup;
        struct tl_image *image;
        tl_setup_init(&setup);
        assert_int_equal(tl_maps_new(&maps), TL_OK);
        for (uint64_t time = 0; time < TIMES; time++) {
            for (unsigned i = below(3); i > 0; i--)
                change(maps, now, time);
            memcpy(at[time], now, sizeof now);
        }
        assert_int_equal(tl_maps_images(maps, &setup), TL_OK);
        tl_maps_free(maps);
        assert_int_equal(tl_image_new(&image), TL_OK);
        assert_int_equal(tl_setup_load_images(&setup, image, resolve, NULL, NULL), TL_OK);
        assert_int_equal(tl_image_freeze(image), TL_OK);
        uint8_t next[PROCESSES][PAGES] = {
            {0}}; /* if there are none now, the contents at a later time */
        for (uint64_t time = TIMES; time-- > 0;) {
            for (unsigned p = 0; p < PROCESSES; p++) {
                for (unsigned page = 0; page < PAGES; page++) {
                    const uint8_t own = at[time][p].page[page];
                    const uint8_t kernel = p ? look(image, 0, time, page) : 0;
                    const uint8_t got = look(image, p, time, page);
                    next[p][page] = own ? own : next[p][page];
                    assert_true(own ? got == own
                                    : got == 0 || got == kernel || got == next[p][page]);
                    seen += own > 0;
                    early += !own && got && got != kernel;
                }
            }
        }
        tl_image_free(image);
        tl_setup_fini(&setup);
    }
    assert_true(seen > 10000 && early > 1000);
}

static struct tl_map one(uint64_t process, uint64_t time, const char *file)
{
    return (struct tl_map){
        .process = process, .time = time, .address = 0x1000, .length = 8, .file = file};
}

static void expect_image(const struct tl_setup *s, size_t i, const char *file, uint64_t context,
                         uint64_t from, uint64_t until)
{
    assert_true(i < s->n_images);
    assert_string_equal(s->images[i].file, file);
    assert_true(s->images[i].context.context_id == context);
    assert_int_equal(s->images[i].span.from, from);
    assert_int_equal(s->images[i].span.until, until);
}

/* If the trace distinguishes threads, each one has the memory of its process, as long as it belongs
 * to it. */
static void threads_are_names(void **state)
{
    struct tl_maps *maps;
    struct tl_setup s;
    (void)state;
    tl_setup_init(&s);
    assert_int_equal(tl_maps_new(&maps), TL_OK);
    struct tl_map map = one(10, 0, "a");
    assert_int_equal(tl_maps_add(maps, &map), TL_OK);
    map = one(20, 0, "b");
    assert_int_equal(tl_maps_add(maps, &map), TL_OK);
    assert_int_equal(tl_maps_thread(maps, 10, 10, 0), TL_OK);
    assert_int_equal(tl_maps_thread(maps, 10, 11, 50), TL_OK);
    map = one(10, 100, "c");
    assert_int_equal(tl_maps_add(maps, &map), TL_OK);
    assert_int_equal(tl_maps_thread(maps, 20, 11, 200), TL_OK); /* the number is used again */
    assert_int_equal(tl_maps_images(maps, &s), TL_OK);
    assert_int_equal(s.n_images, 6);
    expect_image(&s, 0, "a", 10, 0, 100);
    expect_image(&s, 1, "c", 10, 100, 0);
    expect_image(&s, 2, "a", 11, 0, 100);
    expect_image(&s, 3, "c", 11, 100, 200);
    expect_image(&s, 4, "b", 20, 0, 0);
    expect_image(&s, 5, "b", 11, 200, 0);
    tl_maps_free(maps);
    tl_setup_fini(&s);
}

/* The end of the address space, and empty maps. */
static void odd_lengths(void **state)
{
    struct tl_maps *maps;
    struct tl_setup s;
    (void)state;
    tl_setup_init(&s);
    assert_int_equal(tl_maps_new(&maps), TL_OK);
    struct tl_map map = one(1, 5, "a");
    map.address = UINT64_MAX - 0xfff;
    map.length = UINT64_MAX;
    assert_int_equal(tl_maps_add(maps, &map), TL_OK);
    map.length = 0;
    map.address = 0;
    assert_int_equal(tl_maps_add(maps, &map), TL_OK);
    assert_int_equal(tl_maps_images(maps, &s), TL_OK);
    assert_int_equal(s.n_images, 1);
    assert_true(s.images[0].length == 0x1000);
    tl_maps_free(maps);
    tl_setup_fini(&s);
}

/* ---- time that grows with the records ------------------------------------------------------- */

static int fake_file(void *context, const char *file, struct tl_bytes *bytes, struct tl_fail *fail)
{
    static uint8_t content[0x1000];
    (void)context;
    (void)file;
    (void)fail;
    *bytes = (struct tl_bytes){content, sizeof content};
    return TL_OK;
}

/* All of these were searched one by one once. */
enum many { PLACES, OTHER_FILES, REPLACED, UNMAPPED, PROCESSES_OF_ONE, THREADS, FORKS, KINDS };

static int record(struct tl_maps *maps, enum many kind, unsigned i)
{
    char file[32];
    struct tl_map map = {
        .process = 1, .time = 5 + i, .address = 0x1000, .length = 0x1000, .file = "f"};
    snprintf(file, sizeof file, "f%u", i);
    switch (kind) {
    case PLACES: /* not in order */
        map.address *= 1 + (i * UINT64_C(2654435761) & 0xfffff);
        return tl_maps_add(maps, &map);
    case OTHER_FILES:
        map.address *= 1 + i;
        map.file = file;
        return tl_maps_add(maps, &map);
    case REPLACED:
        return tl_maps_add(maps, &map);
    case UNMAPPED:
        map.file = i % 2 ? NULL : "f";
        map.address *= 1 + i / 2;
        return tl_maps_add(maps, &map);
    case PROCESSES_OF_ONE:
        map.process = 1 + i;
        return tl_maps_add(maps, &map);
    case THREADS:
        return i == 0 ? tl_maps_add(maps, &map) : tl_maps_thread(maps, 1, 1 + i, map.time);
    default:
        return i == 0 ? tl_maps_add(maps, &map) : tl_maps_fork(maps, 1 + i, i, map.time);
    }
}

/* Nanoseconds of this thread's processor time to make an image of `n` records. */
static uint64_t time_of(enum many kind, unsigned n)
{
    struct timespec from, to;
    struct tl_maps *maps;
    struct tl_setup setup;
    struct tl_image *image;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &from);
    tl_setup_init(&setup);
    assert_int_equal(tl_maps_new(&maps), TL_OK);
    for (unsigned i = 0; i < n; i++)
        assert_int_equal(record(maps, kind, i), TL_OK);
    assert_int_equal(tl_maps_images(maps, &setup), TL_OK);
    assert_int_equal(setup.n_images, kind == UNMAPPED ? n / 2 : n);
    assert_int_equal(tl_image_new(&image), TL_OK);
    assert_int_equal(tl_setup_load_images(&setup, image, fake_file, NULL, NULL), TL_OK);
    assert_int_equal(tl_image_freeze(image), TL_OK);
    tl_image_free(image);
    tl_maps_free(maps);
    tl_setup_fini(&setup);
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &to);
    return (uint64_t)((to.tv_sec - from.tv_sec) * 1000000000 + (to.tv_nsec - from.tv_nsec));
}

static uint64_t best_time(enum many kind, unsigned n)
{
    uint64_t best = UINT64_MAX;
    for (unsigned i = 0; i < 3; i++) {
        const uint64_t ns = time_of(kind, n);
        best = ns < best ? ns : best;
    }
    return best;
}

/* Eight times as many records take about eight times as long, not 64 times. Memory is kept from one
 * time to the next: what a system takes to give it differs more than what is measured. */
static void time_grows_with_records(void **state)
{
    enum { FEW = 4000, MANY = 8 * FEW, MOST = 24 };
    (void)state;
    (void)mallopt(M_MMAP_THRESHOLD, 1 << 30);
    (void)mallopt(M_TRIM_THRESHOLD, -1);
    for (enum many kind = 0; kind < KINDS; kind++) {
        const uint64_t few = best_time(kind, FEW), many = best_time(kind, MANY);
        print_message("%d: %llu us, %llu us\n", (int)kind, (unsigned long long)few / 1000,
                      (unsigned long long)many / 1000);
        assert_true(many < MOST * few);
    }
}

/* A process of many maps that forks without end: maps times forks. */
static void pieces_have_a_limit(void **state)
{
    struct tl_maps *maps;
    int rc = TL_OK;
    (void)state;
    assert_int_equal(tl_maps_new(&maps), TL_OK);
    for (unsigned i = 0; i < 2000; i++)
        assert_int_equal(record(maps, OTHER_FILES, i), TL_OK);
    for (unsigned i = 0; i < 2000 && rc == TL_OK; i++)
        rc = tl_maps_fork(maps, 2 + i, 1, 9999);
    assert_int_equal(rc, TL_LIMIT);
    tl_maps_free(maps);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(show_what_memory_held), cmocka_unit_test(threads_are_names),
        cmocka_unit_test(odd_lengths),           cmocka_unit_test(time_grows_with_records),
        cmocka_unit_test(pieces_have_a_limit),
    };
    return cmocka_run_group_tests_name("import_maps", tests, NULL, NULL);
}
