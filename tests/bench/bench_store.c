/* SPDX-License-Identifier: MIT */
/*
 * The lake as a rig and a reader meet it, on a folder: raw bytes to durable storage, raw bytes to
 * sealed shards with their index, and random ranges out of what is stored. The capture is that of
 * a simulated core.
 */
#include "bench/report.h"
#include "lake.h"
#include "sim/program_core.h"

#include <ftw.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    INSNS = 100 << 20,
    CHUNK = 1 << 16,
    RANGES = 200,
    RANGE_INSNS = 1000,
    RAW_BYTES = 256 << 20
};

static void die(const char *what, const struct tl_fail *fail)
{
    fprintf(stderr, "bench_store: %s: %s\n", what, fail->text);
    exit(1);
}

struct made {
    struct tl_buf trace;
    struct tl_buf elf;
    struct tl_buf setup;
};

/* A trace of INSNS instructions, its program as ELF, and the setup with the image's hash. */
static void make(struct tl_lake *lake, struct made *m)
{
    const struct tl_sim_program_options options = {.seed = 1, .extra = 300};
    const struct tl_sim_etm4_options etm = {.minor = 2,
                                            .trace_id = 0x10,
                                            .return_stack = true,
                                            .timestamps = true,
                                            .timestamp_every = 300};
    const struct tl_sim_core_options core_options = {.seed = 2, .etm = etm};
    struct tl_fail fail = {.text = "out of memory"};
    struct tl_sim_program program;
    struct tl_sim_core *core;
    struct tl_setup setup;
    struct tl_image_row row;
    tl_setup_init(&setup);
    if (tl_sim_program_init(&program, &options) < 0 ||
        tl_sim_core_new(&core, &program, &core_options, &m->trace, NULL, NULL) < 0 ||
        tl_sim_core_step(core, INSNS) < 0 || tl_sim_core_flush(core) < 0 ||
        tl_sim_program_elf(&program, &m->elf) < 0)
        die("simulate", &fail);
    tl_sim_core_free(core);
    tl_sim_program_fini(&program);
    struct tl_source *source;
    if (tl_setup_format(&setup, "etm4,id=0x10,clock=100000000", &fail) < 0 ||
        tl_sim_etm4_source(&etm, (source = &setup.sources[0])) < 0)
        die("setup", &fail);
    snprintf(source->name, sizeof source->name, "cs.10");
    source->id = 0x10;
    if (tl_lake_put_image(lake, "program", (struct tl_bytes){m->elf.p, m->elf.n}, &row, &fail) < 0)
        die("image", &fail);
    if (tl_setup_add_image(&setup, row.hash, &fail) < 0 || tl_setup_write(&setup, &m->setup) < 0 ||
        tl_buf_add(&m->setup, "", 1) < 0)
        die("setup", &fail);
    tl_setup_fini(&setup);
}

/* Push `n` bytes as `trace`, and wait until they are durable. */
static void push(struct tl_lake *lake, const char *trace, const char *setup, const uint8_t *p,
                 size_t n, size_t repeat)
{
    const struct tl_ingest_request request = {.rig = "bench", .trace = trace, .setup = setup};
    struct tl_ingest *ingest;
    struct tl_fail fail = {0};
    char id[64];
    uint64_t durable;
    uint64_t offset = 0;
    if (tl_ingest_open(lake, &request, NULL, NULL, &ingest, id, &durable, &fail) < 0)
        die("open", &fail);
    while (offset < (uint64_t)n * repeat) {
        const size_t at = (size_t)(offset % n);
        const struct tl_bytes piece = {p + at, n - at < CHUNK ? n - at : CHUNK};
        if (tl_ingest_append(ingest, offset, piece, &fail) < 0)
            die("append", &fail);
        offset += piece.n;
    }
    if (tl_ingest_finish(ingest, &durable, &fail) < 0)
        die("finish", &fail);
    tl_ingest_close(ingest);
}

/* Wait until everything is decoded; its row. */
static struct tl_stream_row wait_sealed(struct tl_lake *lake, const char *trace)
{
    for (;;) {
        struct tl_trace_list list;
        if (tl_lake_trace(lake, trace, &list) < 0)
            die("trace", &(struct tl_fail){.text = "gone"});
        const unsigned state = list.rows[0].state;
        const struct tl_stream_row row =
            list.rows[0].n_streams ? list.rows[0].streams[0] : (struct tl_stream_row){0};
        tl_trace_list_free(&list);
        if (state == TL_TRACE_SEALED)
            return row;
        if (state == TL_TRACE_FAILED)
            die("decode", &(struct tl_fail){.text = "failed"});
        usleep(2000);
    }
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a;
    const double y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Median and 99th percentile of a random range of RANGE_INSNS instructions as text. */
static void ranges(struct tl_lake *lake, uint64_t insns)
{
    static double took[RANGES];
    struct tl_buf out = {0};
    srand(1);
    for (unsigned i = 0; i < RANGES; i++) {
        const uint64_t from = ((uint64_t)rand() << 16 ^ (uint64_t)rand()) % (insns - RANGE_INSNS);
        const struct tl_range_request request = {.trace = "insns",
                                                 .stream = "cs.10",
                                                 .unit = TL_UNIT_INSN,
                                                 .from = from,
                                                 .to = from + RANGE_INSNS,
                                                 .format = TL_FORMAT_TEXT};
        struct tl_range *range;
        struct tl_fail fail = {0};
        tl_buf_reset(&out);
        const double begin = bench_now();
        if (tl_range_open(lake, &request, &range, &fail) < 0)
            die("range", &fail);
        while (tl_range_next(range, &out, &fail) >= 0)
            ;
        tl_range_close(range);
        took[i] = bench_now() - begin;
    }
    tl_buf_fini(&out);
    qsort(took, RANGES, sizeof took[0], by_value);
    bench_report("store", "range of 1000 instructions as text, median", took[RANGES / 2] * 1e3,
                 "ms", NULL, 0);
    bench_report("store", "range of 1000 instructions as text, 99 %", took[RANGES * 99 / 100] * 1e3,
                 "ms", NULL, 0);
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *walk)
{
    return remove(path);
}

int main(void)
{
    char dir[] = "/tmp/bench_store_XXXXXX";
    if (!mkdtemp(dir))
        return 1;
    const struct tl_lake_options options = {.dir = dir};
    struct tl_lake *lake;
    struct tl_fail fail = {0};
    if (tl_lake_open(&lake, &options, &fail) < 0)
        die("lake", &fail);
    struct made m = {0};
    make(lake, &m);

    /* Bytes that nobody can decode: what the spool alone takes. */
    static uint8_t noise[1 << 20];
    double begin = bench_now();
    push(lake, "raw", "[trace]\nformat=itm\n", noise, sizeof noise, RAW_BYTES / sizeof noise);
    bench_report("store", "raw bytes to durable storage", RAW_BYTES / (bench_now() - begin) / 1e6,
                 "MB/s", NULL, 0);
    wait_sealed(lake, "raw");

    begin = bench_now();
    push(lake, "insns", (const char *)m.setup.p, m.trace.p, m.trace.n, 1);
    const struct tl_stream_row row = wait_sealed(lake, "insns");
    const double took = bench_now() - begin;
    bench_report("store", "ETMv4 to sealed shards and index", (double)row.insns / took / 1e6,
                 "Minsn/s", NULL, 0);
    bench_report("store", "stored, of 1000 instructions",
                 (double)row.stored_bytes * 1000 / (double)row.insns, "bytes", NULL, 0);
    ranges(lake, row.insns);

    tl_lake_close(lake);
    tl_buf_fini(&m.trace);
    tl_buf_fini(&m.elf);
    tl_buf_fini(&m.setup);
    return nftw(dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}
