/* SPDX-License-Identifier: MIT */
/*
 * The lake as a rig and a reader use it, on a folder: raw bytes to durable storage, raw bytes to
 * sealed shards with their index, and random ranges of a long stream with nothing in memory. The
 * capture is that of a simulated core; OpenCSD reconstructs the flow of the same bytes in the same
 * run, and stores nothing.
 *
 * TL_BENCH_INSNS: instructions of the long stream, instead of 1 G.
 */
#include "bench/report.h"
#include "lake.h"
#include "lake_find.h"
#include "lake_images.h"
#include "lake_ingest.h"
#include "lake_lanes.h"
#include "lake_ranges.h"
#include "lake_rows.h"
#include "lake_stats.h"
#include "lake_traces.h"
#include "sim/program_core.h"

#include <fcntl.h>
#include <ftw.h>
#include <semaphore.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#ifdef HAVE_OPENCSD
#include "opencsd.h"
#define PEER "OpenCSD"
#else
#define PEER NULL
#endif

enum {
    INSNS = 32 << 20, /* of the capture, which is stored as often as needed */
    CHUNK = 1 << 16,
    RANGES = 40,
    RANGE_INSNS = 1000,
    RAW_BYTES = 128 << 20
};

static void die(const char *what, const struct tl_fail *fail)
{
    fprintf(stderr, "bench_store: %s: %s\n", what, fail->text);
    exit(1);
}

struct made {
    struct tl_sim_program program;
    struct tl_sim_etm4_options etm;
    struct tl_buf trace;
    struct tl_buf elf;
    struct tl_buf setup; /* INI text, NUL-terminated, with the image by its hash */
    struct tl_buf code[2];
    struct tl_image *image;
    struct tl_source source;
    uint64_t insns; /* counted by the last decoder */
};

/* A trace of INSNS instructions and its program. */
static void make(struct made *m)
{
    const struct tl_sim_program_options options = {.seed = 1, .extra = 300};
    struct tl_fail fail = {.text = "out of memory"};
    struct tl_sim_core *core;
    m->etm = (struct tl_sim_etm4_options){.minor = 2,
                                          .trace_id = 0x10,
                                          .return_stack = true,
                                          .timestamps = true,
                                          .timestamp_every = 300};
    const struct tl_sim_core_options core_options = {.seed = 2, .etm = m->etm};
    if (tl_sim_program_init(&m->program, &options) < 0 ||
        tl_sim_core_new(&core, &m->program, &core_options, &m->trace, NULL, NULL) < 0 ||
        tl_sim_core_step(core, INSNS) < 0 || tl_sim_core_flush(core) < 0 ||
        tl_sim_program_elf(&m->program, &m->elf) < 0 ||
        tl_sim_etm4_source(&m->etm, &m->source) < 0 || tl_image_new(&m->image) < 0 ||
        tl_image_add_elf(m->image, (struct tl_bytes){m->elf.p, m->elf.n}, 0, TL_SPACE_ANY,
                         "program", &fail) < 0 ||
        tl_image_freeze(m->image) < 0)
        die("simulate", &fail);
    for (unsigned i = 0; i < 2; i++)
        if (tl_sim_program_code(&m->program, i, &m->code[i]) < 0)
            die("simulate", &fail);
    tl_sim_core_free(core);
}

/* Put the program into the lake, and create the setup that refers to it. */
static void set_up(struct tl_lake *lake, struct made *m)
{
    struct tl_fail fail = {.text = "out of memory"};
    struct tl_setup setup;
    struct tl_image_row row;
    struct tl_source *source;
    tl_setup_init(&setup);
    if (tl_setup_format(&setup, "etm4,id=0x10,clock=100000000", &fail) < 0 ||
        tl_sim_etm4_source(&m->etm, (source = &setup.sources[0])) < 0)
        die("setup", &fail);
    snprintf(source->name, sizeof source->name, "cs.10");
    source->id = 0x10;
    if (tl_lake_put_image(lake, "program", (struct tl_bytes){m->elf.p, m->elf.n}, &row, &fail) < 0)
        die("image", &fail);
    tl_buf_reset(&m->setup);
    if (tl_setup_add_image(&setup, row.hash, &fail) < 0 || tl_setup_write(&setup, &m->setup) < 0 ||
        tl_buf_add(&m->setup, "", 1) < 0)
        die("setup", &fail);
    tl_setup_fini(&setup);
}

static void drop(struct made *m)
{
    tl_image_free(m->image);
    for (unsigned i = 0; i < 2; i++)
        tl_buf_fini(&m->code[i]);
    tl_buf_fini(&m->trace);
    tl_buf_fini(&m->elf);
    tl_buf_fini(&m->setup);
    tl_sim_program_fini(&m->program);
}

/* ---- the peer ---------------------------------------------------------------------------- */

#ifdef HAVE_OPENCSD
/* Decode only the flow, of the first quarter of the trace since it is slow. */
static void decode_opencsd(struct made *m)
{
    const struct tl_fail fail = {.text = "it refuses"};
    struct tl_opencsd_memory memory[2];
    for (unsigned i = 0; i < 2; i++)
        memory[i] =
            (struct tl_opencsd_memory){m->program.sections[i].base, {m->code[i].p, m->code[i].n}};
    m->insns = tl_opencsd_decode(&m->source, memory, 2, m->trace.p, m->trace.n / 4, CHUNK);
    if (m->insns == 0)
        die("OpenCSD", &fail);
}
#endif

/* Elapsed seconds, and seconds of processor time. */
struct clocks {
    double wall, cpu;
};

static struct clocks clocks_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (struct clocks){bench_now(), (double)t.tv_sec + (double)t.tv_nsec * 1e-9};
}

static struct clocks since(struct clocks begin)
{
    const struct clocks now = clocks_now();
    return (struct clocks){now.wall - begin.wall, now.cpu - begin.cpu};
}

/* The peer's instructions per second by each clock; 0 without a peer. */
static struct clocks peer_rates(struct made *m)
{
#ifdef HAVE_OPENCSD
    const struct clocks begin = clocks_now();
    decode_opencsd(m);
    const struct clocks took = since(begin);
    return (struct clocks){(double)m->insns / took.wall, (double)m->insns / took.cpu};
#else
    return (struct clocks){0, 0};
#endif
}

/* The mean of rates measured before and after something else, since the machine's speed drifts. */
static double mean_rate(double before, double after)
{
    return before > 0 && after > 0 ? 2 / (1 / before + 1 / after) : 0;
}

/* ---- the lake ----------------------------------------------------------------------------- */

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

static void note_change(void *context)
{
    sem_post(context);
}

/* Wait until everything is decoded, and return the stream's row. Waits for changes, since polling
 * would take processor time and the stream's lock from the decoding threads. */
static struct tl_stream_row wait_sealed(struct tl_lake *lake, const char *trace)
{
    struct tl_stream_row row = {0};
    sem_t changed;
    sem_init(&changed, 0, 0);
    const int watch = tl_lake_watch(lake, note_change, &changed);
    if (watch < 0)
        die("watch", &(struct tl_fail){.text = "refused"});
    for (;;) {
        struct tl_trace_list list;
        if (tl_lake_trace(lake, trace, &list) < 0)
            die("trace", &(struct tl_fail){.text = "gone"});
        const unsigned state = list.rows[0].state;
        if (list.rows[0].n_streams)
            row = list.rows[0].streams[0];
        tl_trace_list_free(&list);
        if (state == TL_TRACE_SEALED)
            break;
        if (state == TL_TRACE_FAILED)
            die("decode", &(struct tl_fail){.text = "failed"});
        sem_wait(&changed);
    }
    tl_lake_unwatch(lake, watch);
    sem_destroy(&changed);
    return row;
}

static int forget_one(const char *path, const struct stat *st, int type, struct FTW *walk)
{
    const int fd = type == FTW_F ? open(path, O_RDONLY) : -1;
    if (fd >= 0) {
        posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
        close(fd);
    }
    return 0;
}

static bool virtual; /* the kind of shards being measured */

/* The name of a figure, with the kind of shards. Valid until the next call. */
static const char *named(const char *what)
{
    static char text[160];
    snprintf(text, sizeof text, "%s%s", virtual ? "virtual: " : "", what);
    return text;
}

static struct tl_lake *open_lake(const char *dir)
{
    const struct tl_lake_options options = {.dir = dir, .virtual_shards = virtual};
    struct tl_lake *lake;
    struct tl_fail fail = {0};
    if (tl_lake_open(&lake, &options, &fail) < 0)
        die("lake", &fail);
    return lake;
}

/* Read random ranges of RANGE_INSNS instructions as text, each from a lake just opened, with files
 * that are not in the system's cache either. */
static void ranges(const char *dir, uint64_t insns)
{
    static double took[RANGES];
    struct tl_buf out = {0};
    srand(1);
    sync();
    for (unsigned i = 0; i < RANGES; i++) {
        const uint64_t from = ((uint64_t)rand() << 16 ^ (uint64_t)rand()) % (insns - RANGE_INSNS);
        const struct tl_range_request request = {.trace = "long",
                                                 .stream = "cs.10",
                                                 .unit = TL_UNIT_INSN,
                                                 .from = from,
                                                 .to = from + RANGE_INSNS,
                                                 .format = TL_FORMAT_TEXT};
        struct tl_range *range;
        struct tl_fail fail = {0};
        struct tl_lake *lake = open_lake(dir);
        nftw(dir, forget_one, 16, FTW_PHYS);
        tl_buf_reset(&out);
        const double begin = bench_now();
        if (tl_range_open(lake, &request, &range, &fail) < 0)
            die("range", &fail);
        while (tl_range_next(range, &out, &fail) >= 0)
            ;
        tl_range_close(range);
        took[i] = bench_now() - begin;
        tl_lake_close(lake);
    }
    tl_buf_fini(&out);
    qsort(took, RANGES, sizeof took[0], bench_by_value);
    char what[96];
    snprintf(what, sizeof what, "range of 1000 out of %.0f M instructions, cold, median",
             (double)insns / 1e6);
    bench_report("store", named(what), took[RANGES / 2] * 1e3, "ms", NULL, 0);
    bench_report("store", named("… 95 %"), took[RANGES * 95 / 100] * 1e3, "ms", NULL, 0);
}

/* A query to a lake with nothing in memory. */
struct cold {
    struct tl_lake *lake;
    double begin;
};

static struct cold begin_cold(const char *dir)
{
    struct tl_lake *lake = open_lake(dir);
    nftw(dir, forget_one, 16, FTW_PHYS);
    return (struct cold){lake, bench_now()};
}

/* `what`: the query, and "cold". */
static void end_cold(struct cold cold, const char *what)
{
    const double took = bench_now() - cold.begin;
    tl_lake_close(cold.lake);
    bench_report("store", named(what), took * 1e3, "ms", NULL, 0);
}

/* One search through the whole stream. */
static void find_one(const char *dir, const char *what, struct tl_find_request request)
{
    struct tl_fail fail = {0};
    struct tl_found found;
    char name[96];
    request.trace = "long";
    request.stream = "cs.10";
    request.to = UINT64_MAX;
    const struct cold cold = begin_cold(dir);
    if (tl_lake_find(cold.lake, &request, &found, &fail) < 0)
        die("find", &fail);
    snprintf(name, sizeof name, "find %s, cold: %zu hits", what, found.n);
    end_cold(cold, name);
    tl_found_fini(&found);
}

static void finds(const char *dir, const struct made *m)
{
    const struct tl_sim_function *f = m->program.functions; /* the scheduler's, which is executed */
    while (f->first != m->program.switcher)
        f++;
    const uint64_t entry = tl_sim_program_address(&m->program, f->first);
    find_one(dir, "an address's 1000th",
             (struct tl_find_request){.kind = TL_FIND_PC, .pc_from = entry, .limit = 1000});
    find_one(dir, "a function's calls",
             (struct tl_find_request){.kind = TL_FIND_SYMBOL, .text = f->name});
    find_one(dir, "exceptions",
             (struct tl_find_request){.kind = TL_FIND_EVENT, .text = "exception"});
    find_one(dir, "an event that there is not",
             (struct tl_find_request){.kind = TL_FIND_EVENT, .text = "software"});
    find_one(dir, "code that never ran",
             (struct tl_find_request){.kind = TL_FIND_PC, .pc_from = 0x10});
    find_one(dir, "an address behind code that runs, in its page",
             (struct tl_find_request){.kind = TL_FIND_PC,
                                      .pc_from = m->program.sections[0].base + m->code[0].n});
}

/* Statistics of [from, to). */
static void stats_one(const char *dir, const char *what, uint64_t from, uint64_t to)
{
    struct tl_fail fail = {0};
    struct tl_stats stats;
    char name[96];
    const struct cold cold = begin_cold(dir);
    if (tl_lake_stats(cold.lake, "long", "cs.10", from, to, &stats, &fail) < 0)
        die("stats", &fail);
    snprintf(name, sizeof name, "statistics of %s, cold", what);
    tl_stats_fini(&stats);
    end_cold(cold, name);
}

/* The call stack over [from, to). */
static void slices_one(const char *dir, const char *what, uint64_t from, uint64_t to)
{
    struct tl_fail fail = {0};
    struct tl_slices slices;
    char name[96];
    const struct tl_slices_request request = {
        .trace = "long", .stream = "cs.10", .axis = TL_UNIT_INSN, .from = from, .to = to};
    const struct cold cold = begin_cold(dir);
    if (tl_lake_slices(cold.lake, &request, &slices, &fail) < 0)
        die("slices", &fail);
    snprintf(name, sizeof name, "slices of %s, cold", what);
    tl_slices_fini(&slices);
    end_cold(cold, name);
}

static uint64_t space[2]; /* bytes of shards, indexes and marks; of packed raw bytes */
static size_t logs;       /* of raw bytes, not packed yet */

static int add_space(const char *path, const struct stat *st, int type, struct FTW *walk)
{
    if (type == FTW_F)
        space[strstr(path, "/r/") != NULL] += (uint64_t)st->st_size;
    logs += strstr(path, ".seg") != NULL;
    return 0;
}

/* Report the space used once the raw bytes are packed. */
static void report_space(const char *dir, uint64_t insns)
{
    char objects[64];
    struct tl_lake *const lake = open_lake(dir);
    snprintf(objects, sizeof objects, "%s/objects", dir);
    const time_t limit = time(NULL) + 60;
    do {
        space[0] = space[1] = logs = 0;
        nftw(objects, add_space, 16, FTW_PHYS);
    } while (logs > 0 && time(NULL) < limit && usleep(50000) == 0);
    tl_lake_close(lake);
    if (logs > 0)
        fprintf(stderr, "bench_store: %zu segments are not packed after a minute\n", logs);
    bench_report("store", named("… raw bytes, packed, of an instruction"),
                 (double)space[1] * 8 / (double)insns, "bits", NULL, 0);
    bench_report("store", named("… all else, of an instruction"),
                 (double)space[0] * 8 / (double)insns, "bits", NULL, 0);
}

/* Fetch 10 M instructions from the beginning of a chunk on, as a file. */
static void fetch_zstf(const char *dir, uint64_t insns)
{
    const uint64_t from = insns / 3 / 65536 * 65536;
    const struct tl_range_request request = {.trace = "long",
                                             .stream = "cs.10",
                                             .unit = TL_UNIT_INSN,
                                             .from = from,
                                             .to = from + 10000000,
                                             .format = TL_FORMAT_ZSTF};
    struct tl_buf out = {0};
    struct tl_range *range;
    struct tl_fail fail = {0};
    struct tl_lake *const lake = open_lake(dir);
    const double begin = bench_now();
    if (tl_range_open(lake, &request, &range, &fail) < 0)
        die("range", &fail);
    while (tl_range_next(range, &out, &fail) >= 0)
        tl_buf_reset(&out);
    tl_range_close(range);
    bench_report("store", named("10 M instructions as .zstf"), 10 / (bench_now() - begin),
                 "Minsn/s", NULL, 0);
    tl_buf_fini(&out);
    tl_lake_close(lake);
}

/* Store the trace `repeat` times as one stream, in a child process, to measure its memory. The peer
 * decodes before that and after it. */
static void store_long(const char *dir, struct made *m, size_t repeat)
{
    int ends[2];
    struct {
        uint64_t insns, stored;
        struct clocks took;
    } reported = {0};
    if (pipe(ends) < 0)
        die("pipe", &(struct tl_fail){.text = "refused"});
    const struct clocks before = peer_rates(m);
    const pid_t pid = fork();
    if (pid == 0) {
        struct tl_lake *lake = open_lake(dir);
        set_up(lake, m);
        const struct clocks begin = clocks_now();
        push(lake, "long", (const char *)m->setup.p, m->trace.p, m->trace.n, repeat);
        const struct tl_stream_row row = wait_sealed(lake, "long");
        reported.took = since(begin);
        reported.insns = row.insns;
        reported.stored = row.stored_bytes;
        tl_lake_close(lake);
        _exit(write(ends[1], &reported, sizeof reported) == sizeof reported ? 0 : 1);
    }
    struct rusage usage;
    int status;
    close(ends[1]);
    if (pid < 0 || read(ends[0], &reported, sizeof reported) != sizeof reported ||
        wait4(pid, &status, 0, &usage) != pid)
        die("child", &(struct tl_fail){.text = "failed"});
    close(ends[0]);
    const struct clocks after = peer_rates(m);
    const struct clocks peer = {mean_rate(before.wall, after.wall),
                                mean_rate(before.cpu, after.cpu)};
    char what[96];
    snprintf(what, sizeof what, "ETMv4 to sealed shards and index, %.0f M instructions",
             (double)reported.insns / 1e6);
    bench_report("store", named(what), (double)reported.insns / reported.took.wall / 1e6, "Minsn/s",
                 PEER, peer.wall / 1e6);
    bench_report("store", named("… per second of processor time, all threads"),
                 (double)reported.insns / reported.took.cpu / 1e6, "Minsn/s", PEER, peer.cpu / 1e6);
    bench_report("store", named("… most memory in use"), (double)usage.ru_maxrss / 1024, "MiB",
                 NULL, 0);
    bench_report("store", named("… stored, of 1000 instructions"),
                 (double)reported.stored * 1000 / (double)reported.insns, "bytes", NULL, 0);
    report_space(dir, reported.insns);
    fetch_zstf(dir, reported.insns);
    ranges(dir, reported.insns);
    finds(dir, m);
    stats_one(dir, "all", 0, UINT64_MAX);
    stats_one(dir, "a half", reported.insns / 4 + 12345, reported.insns / 4 * 3 + 54321);
    slices_one(dir, "all", 0, UINT64_MAX);
    slices_one(dir, "2 M instructions", reported.insns / 2, reported.insns / 2 + (2 << 20));
    slices_one(dir, "100,000 instructions", reported.insns / 2, reported.insns / 2 + 100000);
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *walk)
{
    return remove(path);
}

int main(void)
{
    char dir[] = "/tmp/bench_store_XXXXXX", made[] = "/tmp/bench_store_XXXXXX";
    const char *wanted = getenv("TL_BENCH_INSNS");
    const uint64_t insns = wanted ? strtoull(wanted, NULL, 0) : UINT64_C(1) << 30;
    static struct made m;
    tl_lake_share_heaps();
    make(&m);
    if (!mkdtemp(dir) || !mkdtemp(made))
        return 1;
    const size_t repeat = (size_t)(insns / INSNS) + (insns < INSNS);
    store_long(dir, &m, repeat);
    virtual = true;
    store_long(made, &m, repeat);
    virtual = false;
    nftw(made, remove_one, 16, FTW_DEPTH | FTW_PHYS);

    /* Bytes that cannot be decoded: the rate of the spool alone. */
    static uint8_t noise[1 << 20];
    struct tl_lake *lake = open_lake(dir);
    const double begin = bench_now();
    push(lake, "raw", "[trace]\nformat=itm\n", noise, sizeof noise, RAW_BYTES / sizeof noise);
    bench_report("store", "raw bytes to durable storage", RAW_BYTES / (bench_now() - begin) / 1e6,
                 "MB/s", NULL, 0);
    tl_lake_close(lake);
    drop(&m);
    return nftw(dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}
