/* SPDX-License-Identifier: MIT */
/* The lake as its users see it, over real captures: push, decode, store, fetch. */
#include "data.h"
#include "import/bundle.h"
#include "lake_help.h"
#include "lake_upkeep.h"

/*
 * Load a snapshot's buffer and put its images into the lake. Returns false if it is not available.
 */
static bool load_snapshot(struct tl_lake *lake, const char *name, const char *buffer,
                          struct capture *c)
{
    struct tl_bundle snapshot;
    struct tl_fail fail = {0};
    char path[512];
    *c = (struct capture){0};
    snprintf(path, sizeof(path), "coresight/snapshots/%s", name);
    char dir[1024];
    if (!test_data(dir, sizeof(dir), path)) {
        print_message("skipped: %s is not there\n", path);
        return false;
    }
    if (tl_snapshot_read(&snapshot, dir, NULL, NULL, &fail) < 0)
        fail_msg("%s", fail.text);
    struct tl_bundle_capture *b = &snapshot.captures[0];
    for (size_t i = 0; i < snapshot.n_captures; i++)
        if (buffer && strcmp(snapshot.captures[i].name, buffer) == 0)
            b = &snapshot.captures[i];
    assert_int_equal(tl_bundle_bytes(b, &c->bytes, &fail), TL_OK);
    struct tl_image *image;
    assert_int_equal(tl_image_new(&image), TL_OK);
    for (size_t i = 0; i < b->setup.n_images; i++) {
        struct tl_setup_image *from = &b->setup.images[i];
        struct tl_buf content = {0};
        struct tl_image_row row;
        assert_int_equal(tl_image_add_file(image, from->file, from->address, from->offset,
                                           from->length, from->space, NULL),
                         TL_OK);
        read_file(from->file, &content);
        if (tl_lake_put_image(lake, "memory", (struct tl_bytes){content.p, content.n}, &row,
                              &fail) < 0)
            fail_msg("%s", fail.text);
        tl_buf_fini(&content);
        free(from->file);
        from->file = strdup(row.hash);
    }
    assert_int_equal(tl_image_freeze(image), TL_OK);
    decode_text(&b->setup, image, (struct tl_bytes){c->bytes.p, c->bytes.n}, &c->text);
    tl_image_free(image);
    assert_int_equal(tl_setup_write(&b->setup, &c->setup), TL_OK);
    assert_int_equal(tl_buf_add(&c->setup, "", 1), TL_OK);
    tl_bundle_fini(&snapshot);
    return true;
}

static void check_snapshot(const char *name, const char *buffer, uint64_t shard_insns, size_t piece)
{
    struct tl_backend *backend;
    assert_int_equal(tl_backend_memory(&backend), TL_OK);
    struct tl_lake *lake = open_lake_sized(backend, shard_insns, 2);
    struct capture c;
    if (load_snapshot(lake, name, buffer, &c)) {
        struct tl_buf got = {0};
        push_sealed(lake, "t", &c, piece);
        lake_text(lake, "t", &got);
        assert_texts_equal(&c.text, &got);
        tl_buf_reset(&got);
        struct tl_fail fail = {0};
        assert_int_equal(tl_lake_verify(lake, "t", false, &got, &fail), 0);
        tl_buf_fini(&got);
    }
    capture_free(&c);
    close_memory_lake(backend, lake);
}

static void real_captures_come_back(void **state)
{
    (void)state;
    check_snapshot("juno_r1_1", "ETB_0", 1000000, 65536);
    check_snapshot("juno_r1_1", "ETB_0", 1000, 1);
    check_snapshot("juno-uname-002", NULL, 20000, 1000);
    check_snapshot("a57_single_step", NULL, 100, 777);
    check_snapshot("stm_only", NULL, 50, 100);
    check_snapshot("itm_only_csformat", NULL, 50, 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(real_captures_come_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
