/* SPDX-License-Identifier: MIT */
/* Two lakes over memory that get the same captures, one with stored and one with virtual shards. */
#ifndef TL_TESTS_VIRTUAL_PAIR_H
#define TL_TESTS_VIRTUAL_PAIR_H

#include "sim_capture.h"

#include <dirent.h>

enum { SHARD = 3000, INSNS = 36000 };

/* A lake of its own over a backend of its own. */
struct side {
    struct tl_backend *backend;
    struct tl_lake *lake;
};

static struct capture capture;
static struct side stored, virtual;

static inline void open_sized(struct side *s, bool is_virtual, uint64_t shard)
{
    struct tl_fail fail = {0};
    const struct tl_lake_options options = {.shard_insns = shard,
                                            .decode_threads = 2,
                                            .min_free_bytes = 1,
                                            .checkpoint_bytes = 8192,
                                            .virtual_shards = is_virtual,
                                            .segment_bytes = 4096,
                                            .mark_bytes = 1024};
    if (tl_lake_open_on(&s->lake, s->backend, &options, &fail) < 0)
        fail_msg("%s", fail.text);
}

static inline void open_side(struct side *s, bool is_virtual)
{
    open_sized(s, is_virtual, SHARD);
}

static inline void begin_side(struct side *s, bool is_virtual, uint64_t shard)
{
    char hash[72];
    assert_int_equal(tl_backend_memory(&s->backend), TL_OK);
    open_sized(s, is_virtual, shard);
    if (capture.elf.n > 0)
        sim_put_image(s->lake, &capture.elf, hash);
}

static inline void end_side(struct side *s)
{
    tl_lake_close(s->lake);
    tl_backend_free(s->backend);
}

static inline void begin_with(const struct sim_options *o, uint64_t shard)
{
    capture = (struct capture){{0}};
    struct tl_lake *lake;
    struct tl_backend *backend;
    lake = open_memory_lake(&backend, shard, 1);
    sim_capture(lake, o, &capture);
    close_memory_lake(backend, lake);
    begin_side(&stored, false, shard);
    begin_side(&virtual, true, shard);
}

static inline void begin(const struct sim_options *o)
{
    begin_with(o, SHARD);
}

static inline void end(void)
{
    end_side(&stored);
    end_side(&virtual);
    capture_free(&capture);
}

static inline void push_both(size_t piece)
{
    push_all(stored.lake, "t", &capture, piece);
    push_all(virtual.lake, "t", &capture, piece);
    assert_int_equal(wait_done(stored.lake, "t"), TL_TRACE_SEALED);
    assert_int_equal(wait_done(virtual.lake, "t"), TL_TRACE_SEALED);
}

/* Push up to `to`. Sets `*up` to false if the medium refuses; does nothing if it already is. */
static inline void push_part_to(struct tl_lake *lake, uint64_t to, bool *up)
{
    const struct tl_ingest_request request = {
        .rig = "rig", .trace = "t", .setup = (const char *)capture.setup.p, .resume = true};
    struct tl_ingest *ingest;
    struct tl_fail fail = {0};
    char id[64];
    uint64_t at;
    *up = *up && tl_ingest_open(lake, &request, NULL, NULL, &ingest, id, &at, &fail) >= 0;
    if (!*up)
        return;
    for (; *up && at < to; at += 2000) {
        const size_t n = to - at < 2000 ? (size_t)(to - at) : 2000;
        *up = tl_ingest_append(ingest, at, (struct tl_bytes){capture.bytes.p + at, n}, &fail) >= 0;
    }
    tl_ingest_close(ingest);
}

static inline void push_part(uint64_t to, bool *up)
{
    push_part_to(virtual.lake, to, up);
}

/* Wait until the bytes pushed so far are decoded, and no work is pending. */
static inline void wait_decoded(struct tl_lake *lake, uint64_t bytes)
{
    struct tl_trace_list list;
    const int64_t end = tl_wall_ns() + INT64_C(60000000000);
    for (bool there = false; !there && tl_wall_ns() < end; usleep(1000)) {
        assert_int_equal(tl_lake_trace(lake, "t", &list), TL_OK);
        there = list.rows[0].decoded_bytes >= bytes;
        tl_trace_list_free(&list);
    }
    wait_at_rest(lake, "t");
}

/* Set the capture to a perf.data file from byte `from` on, with all of its streams; the caller
 * completes the setup. */
static inline void take_perf(const char *dir, const char *name, size_t from)
{
    char path[5000];
    struct tl_buf file = {0};
    snprintf(path, sizeof(path), "%s/%s", dir, name);
    capture = (struct capture){{0}};
    assert_int_equal(tl_buf_read_file(&file, path, 64 << 20, NULL), TL_OK);
    assert_int_equal(tl_buf_add(&capture.bytes, file.p + from, file.n - from), TL_OK);
    tl_buf_fini(&file);
    begin_side(&stored, false, SHARD);
    begin_side(&virtual, true, SHARD);
}

/* Call `step` with each file of the fuzz target's perf.data corpus as the capture. */
static inline void each_perf_file(void (*step)(void *context), void *context)
{
    char dir[4096];
    snprintf(dir, sizeof(dir), "%s/tests/fuzz/corpus/perf", TL_SOURCE_DIR);
    DIR *const list = opendir(dir);
    assert_non_null(list);
    for (const struct dirent *e; (e = readdir(list));) {
        if (e->d_name[0] == '.')
            continue;
        take_perf(dir, e->d_name, 1); /* the first byte is the fuzz target's */
        assert_int_equal(
            tl_buf_printf(&capture.setup, "[trace]\nformat=perf,threads=yes,events=yes\n"), TL_OK);
        step(context);
        end();
    }
    closedir(list);
}

#endif
