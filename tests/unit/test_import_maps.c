/* SPDX-License-Identifier: MIT */
/* Maps of processes over time, compared with memory: random records change an array for each
 * process, and the images created from them have the same contents at every time. */
#include "import/maps.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(show_what_memory_held),
        cmocka_unit_test(threads_are_names),
        cmocka_unit_test(odd_lengths),
    };
    return cmocka_run_group_tests_name("import_maps", tests, NULL, NULL);
}
