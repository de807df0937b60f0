/* SPDX-License-Identifier: MIT */
/*
 * Trace bytes of one source of ETMv4, ETMv3 or PTM, with the image available, to flow items, to STF
 * records in memory, and to the compressed chunks of a .zstf, which are discarded. The trace is a
 * few MiB of a simulated core's, repeated many times, and that of real captures where available,
 * from the first A-Sync to the last, repeated. OpenCSD decodes a few MiB of the same bytes in the
 * same program, to generic elements that are not printed. Usage: bench_flow [MiB [INPUT]]
 *
 * Rates are by processor time, so that other load on the machine matters little. Compared variants
 * alternate. The gain of a second thread is the median over rounds, each with one thread, two
 * threads on the stream, and two decoders that share only the image, which is the most that the
 * machine allows.
 */
#include "base/crew.h"
#include "bench/inputs.h"
#include "bench/report.h"
#include "decode/kept.h"
#include "decode/split.h"
#include "stf/close.h"
#include "stf/flow/flow_writer.h"
#include "stf/zstf_pool.h"

#include <pthread.h>

#define ROUNDS 3
#define PAIRS  5            /* rounds with one thread and two */
#define BLOCK  (4u << 20)   /* bytes per push */
#define TAKE   (256u << 10) /* bytes of records collected before they are dropped */

struct bench {
    struct input in;
    uint64_t times;            /* repetitions of the trace in a round */
    struct tl_stf_flow *flow;  /* NULL: count only */
    struct tl_zstf_pool *pool; /* NULL: records only */
    struct tl_zstf_job job;    /* the next chunk */
    unsigned threads;
    uint64_t insns; /* counted by the last decoder */
    uint64_t stf_bytes;
};

static void die(const char *why)
{
    fprintf(stderr, "bench_flow: %s\n", why);
    exit(1);
}

/* ---- ours -------------------------------------------------------------------------------- */

static void take_records(struct bench *b)
{
    b->stf_bytes += tl_stf_flow_bytes(b->flow).n;
    tl_stf_flow_take(b->flow);
}

static int drop_frame(const struct tl_zstf_job *job)
{
    struct bench *const b = job->context;
    b->stf_bytes += job->frame.n;
    return TL_OK;
}

static void add_chunk(struct bench *b)
{
    struct tl_stf_piece piece = {.stf = b->job.stf};
    tl_stf_flow_swap(b->flow, &piece);
    b->job.stf = piece.stf;
    if (tl_zstf_pool_add(b->pool, &b->job) < 0)
        die("no chunk");
}

/* Whole chunks go to the pool; records alone are dropped in batches. */
static void add_items(struct bench *b, const struct tl_item *items, size_t n)
{
    struct tl_stf_flow_at at = {0};
    int rc;
    do {
        const uint64_t markers = tl_stf_flow_markers(b->flow);
        const uint64_t stop = markers - markers % TL_ZSTF_MARKERS + TL_ZSTF_MARKERS;
        rc = tl_stf_flow_items(b->flow, items, n, b->pool ? stop : UINT64_MAX, &at);
        if (rc == TL_AGAIN)
            add_chunk(b);
    } while (rc == TL_AGAIN);
    if (rc < 0)
        die("no records");
    if (!b->pool && tl_stf_flow_bytes(b->flow).n >= TAKE)
        take_records(b);
}

static bool pack_piece(void *context)
{
    return tl_zstf_pool_work(context);
}

static uint64_t count(const struct tl_item *items, size_t n)
{
    uint64_t insns = 0;
    for (size_t i = 0; i < n; i++)
        if (items[i].kind == TL_ITEM_PATH)
            insns += items[i].value;
        else if (items[i].kind == TL_ITEM_BLOCK)
            insns += items[i].n;
    return insns;
}

static int on_items(void *context, const struct tl_item *items, size_t n)
{
    struct bench *b = context;
    if (b->flow)
        add_items(b, items, n);
    else
        b->insns += count(items, n);
    return TL_OK;
}

/* The thread that decodes a part counts its instructions; the counts are added in the order of the
 * parts. */
static int on_digest(void *context, struct tl_buf *out, const struct tl_item *items, size_t n)
{
    const uint64_t none = 0;
    if (out->n == 0 && tl_buf_add(out, &none, sizeof none) < 0)
        return TL_NOMEM;
    tl_put_le64(out->p, tl_le64(out->p) + count(items, n));
    return TL_OK;
}

static int on_digested(void *context, struct tl_bytes digest)
{
    struct bench *b = context;
    b->insns += tl_le64(digest.p);
    return TL_OK;
}

static int ignore_loss(void *context, const char *reason, uint64_t offset, uint64_t bytes)
{
    return TL_OK;
}

static struct tl_run run_at(const struct bench *b, size_t at, uint64_t offset)
{
    const size_t left = b->in.trace.n - at;
    return (struct tl_run){b->in.trace.p + at, left < BLOCK ? left : BLOCK, offset, NULL};
}

static void decode(void *context)
{
    struct bench *b = context;
    struct tl_stream_sink sink = {.context = b,
                                  .items = on_items,
                                  .loss = ignore_loss,
                                  .paths = true,
                                  .code = tl_stf_block_code};
    struct tl_stream_decoder *d;
    struct tl_share share = {0};
    struct tl_crew_work work = {.piece = pack_piece, .context = b->pool};
    uint64_t offset = 0;
    b->insns = 0;
    if (!b->flow) { /* only one thread writes records; any thread compresses chunks */
        sink.digest = on_digest;
        sink.digested = on_digested;
    }
    if (tl_crew_new(&share.crew, b->threads) < 0 ||
        tl_split_new(&d, tl_format_of(b->in.source.protocol)->ops, &b->in.source, b->in.image,
                     &sink, &share, NULL) < 0)
        die("no decoder");
    if (b->threads == 1) { /* nothing is digested then */
        tl_crew_free(share.crew);
        share.crew = NULL;
    }
    const bool helped = share.crew && b->pool && tl_crew_offer(share.crew, &work) == TL_OK;
    for (uint64_t i = 0; i < b->times; i++)
        for (size_t at = 0; at < b->in.trace.n;) {
            const struct tl_run run = run_at(b, at, offset);
            if (d->ops->push(d, &run) < 0)
                die("decoding failed");
            at += run.n;
            offset += run.n;
        }
    if (d->ops->finish(d, TL_LOSS_CUT_OFF) < 0)
        die("decoding failed");
    if (share.crew)
        tl_crew_call(share.crew);
    if (helped)
        tl_crew_withdraw(share.crew, &work);
    d->ops->destroy(d);
    tl_kept_rooms_free(share.rooms);
    tl_crew_free(share.crew);
}

static void decode_to_stf(void *context)
{
    struct bench *b = context;
    const struct tl_stf_flow_options options = {.isa = tl_format_of(b->in.source.protocol)->isa};
    b->stf_bytes = 0;
    if (tl_stf_flow_new(&b->flow, &options, NULL) < 0)
        die("no writer");
    decode(b);
    if (tl_stf_flow_finish(b->flow) < 0)
        die("no records");
    if (b->pool)
        add_chunk(b);
    if (b->pool && tl_zstf_pool_drain(b->pool) < 0)
        die("no chunks");
    take_records(b);
    b->insns = tl_stf_flow_markers(b->flow);
    tl_stf_flow_free(b->flow);
    b->flow = NULL;
}

static void decode_to_zstf(void *context)
{
    struct bench *b = context;
    if (tl_zstf_pool_new(&b->pool, TL_ZSTF_LEVEL, b->threads, drop_frame) < 0)
        die("no pool");
    b->job.context = b;
    decode_to_stf(b);
    tl_zstf_pool_free(b->pool);
    b->pool = NULL;
}

/* ---- OpenCSD ----------------------------------------------------------------------------- */

#ifdef HAVE_OPENCSD
static void decode_opencsd(void *context)
{
    struct bench *b = context;
    b->insns = input_decode_opencsd(&b->in, b->in.trace.n, BLOCK);
}
#define PEER "OpenCSD"
#else
static void decode_opencsd(void *context)
{
}
#define PEER NULL
#endif

/* ---- two threads ------------------------------------------------------------------------- */

/* Half of the trace, for a decoder of its own with its own copy of the bytes. */
struct half {
    struct bench b;
    void (*fn)(void *);
};

static void *decode_half(void *context)
{
    struct half *const half = context;
    half->fn(&half->b);
    tl_buf_fini(&half->b.job.stf);
    return NULL;
}

static void decode_apart(const struct bench *b, void (*fn)(void *))
{
    struct half here = {*b, fn}, there;
    pthread_t thread;
    here.b.threads = 1;
    here.b.times = b->times / 2;
    here.b.job = (struct tl_zstf_job){0};
    there = here;
    there.b.in.trace = (struct tl_buf){0};
    if (tl_buf_add(&there.b.in.trace, b->in.trace.p, b->in.trace.n) < 0 ||
        pthread_create(&thread, NULL, decode_half, &there) != 0)
        die("no second decoder");
    decode_half(&here);
    pthread_join(thread, NULL);
    tl_buf_fini(&there.b.in.trace);
}

/* Wall-clock seconds, and processor seconds of the busier thread. */
struct took {
    double clock, cpu;
};

/* Measure 1 or 2 threads on the stream; 0: two decoders. */
static struct took time_threads(struct bench *b, void (*fn)(void *), unsigned threads)
{
    const double begin = bench_now(), all = bench_cpu(), mine = bench_cpu_thread();
    b->threads = threads;
    if (threads > 0)
        fn(b);
    else
        decode_apart(b, fn);
    const double cpu = bench_cpu_thread() - mine, other = bench_cpu() - all - cpu;
    b->threads = 1;
    return (struct took){bench_now() - begin, cpu > other ? cpu : other};
}

static void report_threads(const struct bench *b, const char *to, const char *who, double one,
                           double *gain, double *by_cpu)
{
    char input[160];
    const double ratio = bench_median(gain, PAIRS);
    snprintf(input, sizeof input, "%s: bytes to %s, %s (%.2f x by processor time)", b->in.name, to,
             who, bench_median(by_cpu, PAIRS));
    const double insns = (double)b->insns / 1e6 / one * ratio;
    bench_report_trace("flow", input, insns, "Minsn/s", "one thread", insns / ratio,
                       (double)b->in.trace.n * (double)b->times / 1e6 / one * ratio);
}

/* Measure by wall-clock time, and also by the processor time of the busier thread, which shows the
 * possible gain if other load takes the processors away. */
static void measure_threads(struct bench *b, const char *to, void (*fn)(void *))
{
    double one[PAIRS], gain[2][PAIRS], by_cpu[2][PAIRS];
    for (unsigned i = 0; i < PAIRS; i++) {
        const struct took single = time_threads(b, fn, 1);
        const uint64_t insns = b->insns;
        one[i] = single.clock;
        for (unsigned k = 0; k < 2; k++) {
            const struct took both = time_threads(b, fn, k == 0 ? 2 : 0);
            gain[k][i] = single.clock / both.clock;
            by_cpu[k][i] = single.cpu / both.cpu;
            if (b->insns != insns)
                die("two threads say something else");
        }
    }
    const double median = bench_median(one, PAIRS);
    report_threads(b, to, "two threads", median, gain[0], by_cpu[0]);
    report_threads(b, to, "two decoders that share nothing", median, gain[1], by_cpu[1]);
}

/* ------------------------------------------------------------------------------------------ */

static double min(double best, void (*fn)(void *), struct bench *b)
{
    const double took = bench_best_cpu(1, fn, b);
    return took < best ? took : best;
}

static void measure(struct bench *b, uint64_t bytes_wanted)
{
    char input[160];
    double items = 1e9, stf = 1e9, theirs = 1e9;
    uint64_t ours = 0;
    b->threads = 1;
    b->times = (bytes_wanted + b->in.trace.n - 1) / b->in.trace.n;
    const double bytes = (double)b->in.trace.n * (double)b->times;
    for (unsigned i = 0; i < ROUNDS; i++) {
        items = min(items, decode, b);
        ours = b->insns;
        stf = min(stf, decode_to_stf, b);
        if (b->insns != ours)
            die("records are missing");
        theirs = min(theirs, decode_opencsd, b);
    }
    if (PEER && b->insns * b->times != ours)
        printf("%s: %llu instructions here, %llu by OpenCSD\n", b->in.name,
               (unsigned long long)ours, (unsigned long long)(b->insns * b->times));
    const double peer = PEER ? (double)b->insns / 1e6 / theirs : 0;
    snprintf(input, sizeof input, "%s (%.2f bits/insn): bytes to flow", b->in.name,
             8 * bytes / (double)ours);
    bench_report_trace("flow", input, (double)ours / 1e6 / items, "Minsn/s", PEER, peer,
                       bytes / 1e6 / items);
    snprintf(input, sizeof input, "%s: bytes to STF records in memory", b->in.name);
    bench_report_trace("flow", input, (double)ours / 1e6 / stf, "Minsn/s", PEER, peer,
                       bytes / 1e6 / stf);
    b->times = (b->times + 5) / 6 * 2; /* about a third of them, in two halves */
    measure_threads(b, "flow", decode);
    measure_threads(b, "STF records in memory", decode_to_stf);
    measure_threads(b, "compressed STF", decode_to_zstf);
    input_drop(&b->in);
    tl_buf_fini(&b->job.stf);
}

int main(int argc, char **argv)
{
    const uint64_t bytes = (uint64_t)((argc > 1 ? strtod(argv[1], NULL) : 64) * (1 << 20));
    const char *const only = argc > 2 ? argv[2] : "";
    for (size_t i = 0; i < N_INPUT_MIXES; i++) {
        struct bench b = {0};
        if (strstr(input_mixes[i].name, only)) {
            input_simulate(&b.in, &input_mixes[i], bytes);
            measure(&b, bytes);
        }
    }
    for (size_t i = 0; i < N_CAPTURES; i++) {
        struct bench b = {0};
        if (strstr(captures[i], only) && input_capture(&b.in, captures[i]))
            measure(&b, bytes);
    }
    for (size_t i = 0; i < N_OLDER_CAPTURES; i++) {
        struct bench b = {0};
        if (strstr(older_captures[i].name, only) && input_older(&b.in, &older_captures[i]))
            measure(&b, bytes);
    }
    return 0;
}
