/* SPDX-License-Identifier: MIT */
/*
 * Ranges whose stored frames are delivered as parts of mapped files: only frames that were read
 * before and found intact, and only while the file is unchanged. Damage and truncated files are
 * detected.
 */
#include "lake/cut.h"
#include "lake_help.h"

#include "sim_capture.h"

#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <sys/stat.h>

#define SHARD (3 * TL_CHUNK_MARKERS)
#define PATH  512

static char dir[64];
static struct tl_backend *backend;
static struct tl_lake *lake;

static void open_lake(void)
{
    struct tl_fail fail = {0};
    if (tl_backend_folder(&backend, dir, &fail) < 0)
        fail_msg("%s", fail.text);
    lake = open_lake_sized(backend, SHARD, 2);
}

static void close_lake(void)
{
    tl_lake_close(lake);
    tl_backend_free(backend);
}

static int setup(void **state)
{
    const struct sim_options options = {
        .seed = 11, .insns = 7 * SHARD / 2, .cores = 1, .image = true};
    struct capture c;
    snprintf(dir, sizeof dir, "/tmp/tracelake-stored-XXXXXX");
    assert_non_null(mkdtemp(dir));
    open_lake();
    sim_capture(lake, &options, &c);
    push_sealed(lake, "t", &c, 1 << 20);
    capture_free(&c);
    close_lake();
    open_lake(); /* the new lake has not read any frame yet */
    return 0;
}

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *walk)
{
    return remove(path);
}

static int teardown(void **state)
{
    close_lake();
    return nftw(dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

/* The path of a file that get() truncates once, after the first piece; NULL: none. */
static const char *shorten;
static off_t shorten_to;

/* Read the range from `from` on as a .zstf; `stored`: from mapped files where possible; receives
 * the number of those bytes. Returns TL_EOF or an error. */
static int get(uint64_t from, struct tl_buf *out, size_t *stored, struct tl_fail *fail)
{
    const struct tl_range_request request = {
        .trace = "t", .stream = "cs.10", .from = from, .to = UINT64_MAX, .format = TL_FORMAT_ZSTF};
    struct tl_range *range;
    int r = tl_range_open(lake, &request, &range, fail);
    assert_int_equal(r, TL_OK);
    while (r == TL_OK) {
        struct tl_range_stored piece;
        r = stored ? tl_range_next_stored(range, &piece, fail) : TL_AGAIN;
        if (r == TL_OK) {
            assert_int_equal(tl_buf_add(out, piece.before.p, piece.before.n), TL_OK);
            assert_int_equal(tl_buf_add(out, piece.bytes.p, piece.bytes.n), TL_OK);
            *stored += piece.bytes.n;
            tl_buf_fini(&piece.before);
            piece.let_go(piece.owner);
        } else if (r == TL_AGAIN) {
            r = tl_range_next(range, out, fail);
            if (shorten)
                assert_int_equal(truncate(shorten, shorten_to), 0);
            shorten = NULL;
        }
    }
    tl_range_close(range);
    return r;
}

/* Check that both ways give the same bytes. `all`: nearly all bytes are mapped; otherwise none. */
static void expect_same(uint64_t from, bool all)
{
    struct tl_buf read = {0}, mapped = {0};
    struct tl_fail fail = {0};
    size_t stored = 0;
    assert_int_equal(get(from, &mapped, &stored, &fail), TL_EOF);
    assert_int_equal(get(from, &read, NULL, &fail), TL_EOF);
    assert_int_equal(read.n, mapped.n);
    assert_memory_equal(read.p, mapped.p, read.n);
    if (all)
        assert_true(stored > read.n / 2);
    else
        assert_int_equal(stored, 0);
    tl_buf_fini(&read);
    tl_buf_fini(&mapped);
}

static void frames_are_mapped_once_read(void **state)
{
    expect_same(0, false);
    expect_same(0, true);
    /* Without the first frame; headers of shards are regenerated. */
    expect_same(TL_CHUNK_MARKERS, true);
    expect_same(SHARD, true);
    close_lake();
    open_lake();
    expect_same(SHARD, false);
}

/* The path of the stream's first shard, and one of its frames: the second, or the last. */
static struct tl_shard_frame first_shard(char *path, size_t n, bool last)
{
    struct tl_cut cut;
    struct tl_view *view;
    struct tl_fail fail = {0};
    assert_int_equal(tl_cut_open(&cut, lake, "t", "cs.10", &fail), TL_OK);
    assert_int_equal(tl_cut_view(&cut, 0, &view, &fail), TL_OK);
    snprintf(path, n, "%s/objects/%s", dir, view->key);
    const struct tl_shard_frame frame = view->index.frames[last ? view->index.n_frames - 1 : 1];
    tl_view_put(view);
    tl_cut_close(&cut);
    return frame;
}

/* Invert a byte in the middle of a frame. */
static void invert(const char *path, const struct tl_shard_frame *frame)
{
    uint8_t byte;
    const off_t at = (off_t)(frame->offset + frame->size / 2);
    const int fd = open(path, O_RDWR);
    assert_true(fd >= 0);
    assert_int_equal(pread(fd, &byte, 1, at), 1);
    byte = (uint8_t)~byte;
    assert_int_equal(pwrite(fd, &byte, 1, at), 1);
    close(fd);
}

static void damage_is_found(void **state)
{
    char path[PATH];
    struct tl_buf got = {0};
    struct tl_fail fail = {0};
    size_t stored = 0;
    const struct tl_shard_frame frame = first_shard(path, sizeof path, false);
    invert(path, &frame);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(get(0, &got, &stored, &fail), TL_BAD);
        assert_non_null(strstr(fail.text, "damaged"));
    }
    invert(path, &frame);
    tl_buf_reset(&got);
    assert_int_equal(get(0, &got, &stored, &fail), TL_EOF);
    expect_same(0, true);
    tl_buf_fini(&got);
}

static void a_shorter_file_is_found(void **state)
{
    char path[PATH];
    struct tl_buf got = {0};
    struct tl_fail fail = {0};
    size_t stored = 0;
    expect_same(0, false);
    expect_same(0, true); /* this maps the file */
    const struct tl_shard_frame frame = first_shard(path, sizeof path, true);
    const uint64_t end = frame.offset + frame.size;
    assert_int_not_equal((end - 1) % 4096, 0); /* the rest of the last page remains, as zeros */
    shorten = path;
    shorten_to = (off_t)end - 1;
    assert_int_equal(get(0, &got, &stored, &fail), TL_BAD);
    assert_int_equal(stored, 0);
    assert_int_equal(truncate(path, 1000), 0);
    assert_int_equal(get(0, &got, &stored, &fail), TL_BAD);
    assert_int_equal(stored, 0);
    tl_buf_reset(&got);
    assert_int_equal(get(2 * SHARD, &got, &stored, &fail), TL_EOF);
    assert_true(stored > 0);
    tl_buf_fini(&got);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(frames_are_mapped_once_read),
        TEST(damage_is_found),
        TEST(a_shorter_file_is_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
