/* SPDX-License-Identifier: MIT */
/*
 * How fast a store accepts raw bytes and returns them, for cluster.py. Usage: store_rates STORE, a
 * new folder or rados:…. The bytes are random, so that packing does not shrink them, and without a
 * format, so that nothing is decoded.
 */
#include "bench/report.h"
#include "lake.h"
#include "lake_ingest.h"
#include "lake_raw.h"
#include "lake_traces.h"
#include "rados/rados.h"

#include <fcntl.h>
#include <ftw.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

enum { MIB = 1 << 20, BYTES = 256 * MIB, RIGS = 8, PIECE = 64 << 10, READS = 1600, READERS = 16 };

static uint8_t noise[MIB];
static const char *store;

static void die(const char *what, const struct tl_fail *fail)
{
    fprintf(stderr, "store_rates: %s: %s\n", what, fail->text);
    exit(1);
}

static struct tl_lake *open_lake(void)
{
    const bool cluster = tl_is_rados(store);
    const struct tl_lake_options options = {.dir = cluster ? NULL : store,
                                            .store = cluster ? store : NULL};
    struct tl_lake *lake;
    struct tl_fail fail = {0};
    if (tl_lake_open(&lake, &options, &fail) < 0)
        die("lake", &fail);
    return lake;
}

struct rig {
    pthread_t thread;
    struct tl_lake *lake;
    char trace[16];
    size_t bytes;
};

/* Push, and wait until everything is durable. */
static void *push(void *context)
{
    const struct rig *const rig = context;
    const struct tl_ingest_request request = {
        .rig = "bench", .trace = rig->trace, .setup = "[trace]\nformat=stf\n"};
    struct tl_ingest *ingest;
    struct tl_fail fail = {0};
    char id[64];
    uint64_t durable;
    if (tl_ingest_open(rig->lake, &request, NULL, NULL, &ingest, id, &durable, &fail) < 0)
        die("open", &fail);
    for (size_t at = 0; at < rig->bytes; at += PIECE)
        if (tl_ingest_append(ingest, at, (struct tl_bytes){noise + at % MIB, PIECE}, &fail) < 0)
            die("append", &fail);
    if (tl_ingest_finish(ingest, &durable, &fail) < 0)
        die("finish", &fail);
    tl_ingest_close(ingest);
    return NULL;
}

static void ingest(struct tl_lake *lake, unsigned rigs)
{
    struct rig all[RIGS];
    char what[64];
    const double begin = bench_now();
    for (unsigned i = 0; i < rigs; i++) {
        all[i] = (struct rig){.lake = lake, .bytes = BYTES / rigs};
        snprintf(all[i].trace, sizeof all[i].trace, "%u-of-%u", i + 1, rigs);
        if (pthread_create(&all[i].thread, NULL, push, &all[i]) != 0)
            die("thread", &(struct tl_fail){.text = "refused"});
    }
    for (unsigned i = 0; i < rigs; i++)
        pthread_join(all[i].thread, NULL);
    snprintf(what, sizeof what, "raw bytes of %u rig%s to durable", rigs, rigs > 1 ? "s" : "");
    bench_report("store", what, BYTES / (bench_now() - begin) / 1e6, "MB/s", NULL, 0);
}

static int count_log(void *context, const char *key, uint64_t size)
{
    *(unsigned *)context += strstr(key, ".seg") != NULL;
    return TL_OK;
}

#define REST_LOOKS 2400 /* 50 ms apart: two minutes */

/* Has the trace got its hash? That is the last thing that the lake does by itself, except for
 * packing. */
static bool is_hashed(struct tl_lake *lake, const char *trace)
{
    struct tl_trace_list list;
    if (tl_lake_trace(lake, trace, &list) < 0)
        return false;
    const bool is = list.rows[0].content[0] != '\0';
    tl_trace_list_free(&list);
    return is;
}

/* Wait until the bytes of all rigs are packed and hashed, so that the next measurement is
 * undisturbed. */
static void wait_rest(struct tl_lake *lake, unsigned rigs)
{
    struct tl_backend *backend;
    struct tl_fail fail = {0};
    unsigned left = 1;
    if ((tl_is_rados(store) ? tl_backend_rados(&backend, store, &fail)
                            : tl_backend_folder(&backend, store, &fail)) < 0)
        die("store", &fail);
    for (unsigned i = 0; left > 0; i++) {
        char trace[16];
        if (i == REST_LOOKS) {
            (void)!tl_fail_set(&fail, TL_IO, "some are not packed and hashed after two minutes");
            die("raw bytes", &fail);
        }
        usleep(50000);
        left = 0;
        for (unsigned k = 0; k < rigs; k++) {
            snprintf(trace, sizeof trace, "%u-of-%u", k + 1, rigs);
            left += !is_hashed(lake, trace);
        }
        if (backend->ops->list(backend, "r", count_log, &left, &fail) < 0)
            die("list", &fail);
    }
    tl_backend_free(backend);
}

/* Read a range of the first trace's bytes. */
static size_t read_range(struct tl_lake *lake, uint64_t from, uint64_t to, struct tl_buf *out)
{
    struct tl_raw_range *range;
    struct tl_fail fail = {0};
    uint64_t offset;
    size_t n = 0;
    int r = tl_raw_open(lake, "1-of-1", from, to, &range, &fail);
    while (r >= 0) {
        tl_buf_reset(out);
        r = tl_raw_next(range, &offset, out, &fail);
        n += out->n;
    }
    if (r != TL_EOF)
        die("read", &fail);
    tl_raw_close(range);
    return n;
}

static int forget(const char *path, const struct stat *st, int type, struct FTW *walk)
{
    const int fd = type == FTW_F ? open(path, O_RDONLY) : -1;
    if (fd >= 0) {
        posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
        close(fd);
    }
    return 0;
}

/* A lake with nothing in memory. */
static struct tl_lake *open_cold(void)
{
    struct tl_lake *const lake = open_lake();
    sync();
    if (!tl_is_rados(store))
        nftw(store, forget, 16, FTW_PHYS);
    return lake;
}

struct reader {
    pthread_t thread;
    struct tl_lake *lake;
    unsigned seed, reads;
};

/* Read ranges of one piece each at random positions. */
static void *read_anywhere(void *context)
{
    struct reader *const reader = context;
    struct tl_buf out = {0};
    for (unsigned i = 0; i < reader->reads; i++) {
        const uint64_t from = (uint64_t)rand_r(&reader->seed) % (BYTES / PIECE) * PIECE;
        if (read_range(reader->lake, from, from + PIECE, &out) != PIECE)
            die("read", &(struct tl_fail){.text = "a short range"});
    }
    tl_buf_fini(&out);
    return NULL;
}

static void read_at_once(unsigned readers)
{
    struct tl_lake *const lake = open_cold();
    struct reader all[READERS];
    char what[64];
    const double begin = bench_now();
    for (unsigned i = 0; i < readers; i++) {
        all[i] = (struct reader){.lake = lake, .seed = i + 1, .reads = READS / readers};
        if (pthread_create(&all[i].thread, NULL, read_anywhere, &all[i]) != 0)
            die("thread", &(struct tl_fail){.text = "refused"});
    }
    for (unsigned i = 0; i < readers; i++)
        pthread_join(all[i].thread, NULL);
    snprintf(what, sizeof what, "64 KiB of it anywhere, %u at once, cold", readers);
    bench_report("store", what, READS / (bench_now() - begin), "/s", NULL, 0);
    tl_lake_close(lake);
}

static void read_all(void)
{
    struct tl_buf out = {0};
    struct tl_lake *const lake = open_cold();
    const double begin = bench_now();
    if (read_range(lake, 0, UINT64_MAX, &out) != BYTES)
        die("read", &(struct tl_fail){.text = "not all of it is there"});
    bench_report("store", "a capture read in order, cold", BYTES / (bench_now() - begin) / 1e6,
                 "MB/s", NULL, 0);
    tl_lake_close(lake);
    tl_buf_fini(&out);
}

int main(int argc, char **argv)
{
    if (argc != 2) {
        fputs("usage: store_rates DIR|rados:…\n", stderr);
        return 2;
    }
    store = argv[1];
    srand(7);
    for (size_t i = 0; i < sizeof noise; i++)
        noise[i] = (uint8_t)(rand() >> 8);
    struct tl_lake *const lake = open_lake();
    ingest(lake, 1);
    wait_rest(lake, 1);
    ingest(lake, RIGS);
    wait_rest(lake, RIGS);
    tl_lake_close(lake);
    read_all();
    read_at_once(1);
    read_at_once(READERS);
    return 0;
}
