/* SPDX-License-Identifier: MIT */
/*
 * CoreSight frames to runs: one source, several sources, and with synchronisation words; 16 MiB,
 * four times. OpenCSD de-frames the same bytes in the same program, without any decoder attached.
 * Rates are by processor time.
 *
 * The consumer reads the first byte of a run and its offset, and counts bytes; with several sources
 * it accepts separated runs, as stream decoders do. The cost of runs in strict order, and of the
 * offset of every byte, is measured as well.
 */
#include "bench/report.h"
#include "frame/tpiu.h"
#include "sim/tpiu_encoder.h"

#include <stdbool.h>
#include <stdlib.h>

#ifdef HAVE_OPENCSD
#include <opencsd/c_api/opencsd_c_api.h>
#endif

#define TIMES  4
#define ROUNDS 5
#define PUSH   ((size_t)1 << 16)

struct input {
    struct tl_buf bytes;
    enum tl_tpiu_sync sync;
    uint64_t apart; /* see struct tl_tpiu_sink */
    bool offsets;   /* of every byte */
    uint64_t runs;
    uint64_t sum;
};

static struct tl_tpiu decoder;

static int on_run(void *context, uint8_t id, const struct tl_run *run)
{
    struct input *const in = context;
    in->runs++;
    uint64_t sum = run->n + run->p[0] + tl_run_offset(run, 0);
    for (size_t i = 0; in->offsets && i < run->n; i++)
        sum += tl_run_offset(run, i);
    in->sum += sum;
    return TL_OK;
}

static void decode(void *context)
{
    struct input *const in = context;
    const struct tl_tpiu_sink sink = {
        .context = in, .run = on_run, .apart = {in->apart, in->apart}};
    in->runs = 0;
    tl_tpiu_init(&decoder, in->sync, 0, &sink);
    for (size_t k = 0; k < TIMES; k++)
        for (size_t i = 0; i < in->bytes.n; i += PUSH)
            if (tl_tpiu_push(&decoder, in->bytes.p + i,
                             in->bytes.n - i < PUSH ? in->bytes.n - i : PUSH) < 0)
                abort();
    if (tl_tpiu_finish(&decoder, TL_TPIU_UNFINISHED) < 0)
        abort();
}

#ifdef HAVE_OPENCSD
#define PEER "OpenCSD"

static void decode_opencsd(void *context)
{
    struct input *const in = context;
    const uint32_t flags =
        in->sync == TL_TPIU_ALIGNED ? OCSD_DFRMTR_FRAME_MEM_ALIGN : OCSD_DFRMTR_HAS_FSYNCS;
    const dcd_tree_handle_t tree = ocsd_create_dcd_tree(OCSD_TRC_SRC_FRAME_FORMATTED, flags);
    if (tree == C_API_INVALID_TREE_HANDLE)
        abort();
    for (size_t i = 0; i < in->bytes.n;) {
        const size_t n = in->bytes.n - i < PUSH ? in->bytes.n - i : PUSH;
        uint32_t used = 0;
        const ocsd_datapath_resp_t rc =
            ocsd_dt_process_data(tree, OCSD_OP_DATA, i, (uint32_t)n, in->bytes.p + i, &used);
        if (OCSD_DATA_RESP_IS_FATAL(rc) || used == 0)
            break; /* bytes that it did not process count for it */
        i += used;
    }
    ocsd_destroy_dcd_tree(tree);
}

static double peer_rate(struct input *in)
{
    /* It interprets footers of DSTREAM blocks as frames, and then cannot continue. */
    if (in->sync == TL_TPIU_DSTREAM)
        return 0;
    return (double)in->bytes.n / bench_best_cpu(3, decode_opencsd, in) / 1e6;
}
#else
#define PEER NULL

static double peer_rate(struct input *in)
{
    return 0;
}
#endif

/* Sources take turns of `turn` bytes on average; 0: one source, whose ID occurs once. */
static void make(struct input *in, enum tl_tpiu_sync sync, unsigned ids, unsigned turn)
{
    struct tl_tpiu_encoder e;
    uint8_t data[256];
    uint32_t random = 1;
    tl_tpiu_encoder_init(&e, sync, 1);
    e.repeat_percent = 0;
    for (size_t done = 0; done < 16 << 20;) {
        const size_t n = turn ? 1 + (random >> 8) % (2 * turn) : sizeof data;
        for (size_t i = 0; i < n; i++)
            data[i] = (uint8_t)((random = random * 1664525 + 1013904223) >> 24);
        if (tl_tpiu_encoder_add(&e, (uint8_t)(0x10 + random % ids), data, n) < 0)
            abort();
        done += n;
    }
    if (tl_tpiu_encoder_flush(&e) < 0)
        abort();
    /* It is repeated, so it must be a whole number of blocks, the last of which ends a frame. */
    if (sync == TL_TPIU_DSTREAM)
        e.out.n -= e.out.n % (5 * 512);
    *in = (struct input){.bytes = e.out, .sync = sync, .apart = ~(uint64_t)0};
}

static void report(const char *name, struct input *in, void (*fn)(void *))
{
    const double seconds = bench_best_cpu(ROUNDS, fn, in);
    const double peer = fn == decode ? peer_rate(in) : 0;
    bench_report("frame", name, TIMES * (double)in->bytes.n / seconds / 1e6, "MB/s",
                 peer > 0 ? PEER : NULL, peer);
}

static void measure(const char *name, enum tl_tpiu_sync sync, unsigned ids, unsigned turn)
{
    struct input in;
    make(&in, sync, ids, turn);
    report(name, &in, decode);
    tl_buf_fini(&in.bytes);
}

/* Measure the kernel alone, turns in their order, and offsets. */
static void measure_parts(void)
{
    struct input in;
    make(&in, TL_TPIU_ALIGNED, 4, 20);
    in.offsets = true;
    report("four sources, turns of 20 bytes, offset of every byte", &in, decode);
    in.offsets = false;
    in.apart = 0;
    report("four sources, turns of 20 bytes, in their order", &in, decode);
    tl_buf_fini(&in.bytes);
}

int main(void)
{
    measure("one source", TL_TPIU_ALIGNED, 1, 0);
    measure("one source, FSYNC each 64 frames", TL_TPIU_FSYNC, 1, 0);
    measure("one source, DSTREAM", TL_TPIU_DSTREAM, 1, 0);
    measure("two sources, turns of 100 bytes", TL_TPIU_ALIGNED, 2, 100);
    measure("four sources, turns of 20 bytes", TL_TPIU_ALIGNED, 4, 20);
    measure("four sources, turns of 5 bytes", TL_TPIU_ALIGNED, 4, 5);
    measure("four sources, turns of 20 bytes, FSYNC each 64 frames", TL_TPIU_FSYNC, 4, 20);
    measure("four sources, turns of 20 bytes, DSTREAM", TL_TPIU_DSTREAM, 4, 20);
    measure_parts();
    return 0;
}
