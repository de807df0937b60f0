/* SPDX-License-Identifier: MIT */
/*
 * The cost of index and tiles: the same inputs as in bench_flow, to packed STF files with a
 * checksum of each frame; to the same with item logs, which contain what STF cannot represent, so
 * that everything is stored but nothing can be looked up; and to shards with index and tiles. One
 * thread; nothing is written to disk. OpenCSD reconstructs the flow of a part of the same bytes in
 * the same run, and stores nothing. Usage: bench_index [INPUT [ROUNDS]]
 *
 * Rates are by processor time, so that other load on the machine matters little.
 */
#include "base/crc32c.h"
#include "bench/inputs.h"
#include "bench/report.h"
#include "builder/build.h"
#include "decode/ops.h"
#include "lake.h"
#include "shard/itemlog.h"
#include "stf/close.h"
#include "stf/flow/flow_writer.h"
#include "stf/zstf.h"

#define BYTES  (2u << 20)  /* of trace */
#define SHARD  (1u << 20)  /* instructions: a whole number of chunks */
#define CHUNK  (64u << 10) /* bytes per push */
#define ROUNDS 15
#define MAX    99

#ifdef HAVE_OPENCSD
#define PEER "OpenCSD"
#else
#define PEER NULL
#endif

static void die(const char *what)
{
    fprintf(stderr, "bench_index: %s\n", what);
    exit(1);
}

/* Million instructions per second of the first quarter. */
static double peer_rate(const struct input *in)
{
#ifdef HAVE_OPENCSD
    const double begin = bench_cpu();
    const uint64_t insns = input_decode_opencsd(in, in->trace.n / 4, CHUNK);
    return (double)insns / 1e6 / (bench_cpu() - begin);
#else
    return 0;
#endif
}

struct direct {
    struct tl_stf_flow *flow;
    struct tl_build *build;
    struct tl_packer *packer;
    struct tl_zstf_writer *writer;
    struct tl_buf packed, file;
    uint64_t stop, markers, insns, plain, frames, files;
    uint32_t sum;                     /* of all checksums, so that they are computed */
    struct tl_itemlog log;            /* of the chunk that ends at instruction `log_end` */
    uint64_t position, log_end, logs; /* `logs`: bytes of all logs */
};

/* End the current .zstf, which has no index of ours, and begin the next one. */
static int begin_file(struct direct *d)
{
    uint8_t head[TL_ZSTF_HEAD];
    int r = TL_OK;
    if (d->writer) {
        r = tl_zstf_writer_finish(d->writer, (struct tl_bytes){0}, &d->file, head);
        tl_zstf_writer_free(d->writer);
        tl_buf_fini(&d->file);
        d->writer = NULL;
    }
    if (r >= 0)
        r = tl_zstf_writer_new(&d->writer, TL_CHUNK_MARKERS, 0);
    return r < 0 ? r : tl_zstf_writer_begin(d->writer, &d->file);
}

/* Compress the writer's records to a frame. */
static int end_frame(struct direct *d)
{
    const struct tl_stf_piece piece = tl_stf_flow_piece(d->flow);
    tl_buf_reset(&d->packed);
    int r = tl_packer_stf(d->packer, &piece, &d->packed);
    if (r >= 0 && (d->stop - d->markers >= SHARD || !d->writer)) {
        d->markers = d->stop;
        r = begin_file(d);
    }
    d->sum += tl_crc32c(0, d->packed.p, d->packed.n);
    if (r >= 0)
        r = tl_zstf_writer_frame(d->writer, (struct tl_bytes){d->packed.p, d->packed.n},
                                 piece.stf.n, TL_CHUNK_MARKERS, tl_stf_flow_chunk_pc(d->flow),
                                 &d->file);
    tl_stf_flow_take(d->flow);
    d->stop += TL_CHUNK_MARKERS;
    return r;
}

static int to_records(void *context, const struct tl_item *items, size_t n)
{
    struct direct *d = context;
    struct tl_stf_flow_at at = {0};
    int r;
    while ((r = tl_stf_flow_items(d->flow, items, n, d->stop, &at)) == TL_AGAIN)
        if ((r = end_frame(d)) < 0)
            return r;
    return r;
}

/* End the log of the instructions before `position`. */
static int end_log(struct direct *d, uint64_t position)
{
    tl_buf_reset(&d->packed);
    const struct tl_bytes log = {d->log.bytes.p, d->log.bytes.n};
    const int r = tl_packer_bytes(d->packer, log, &d->packed);
    d->logs += d->packed.n;
    d->sum += tl_crc32c(0, d->packed.p, d->packed.n);
    d->log_end = (position / TL_CHUNK_MARKERS + 1) * TL_CHUNK_MARKERS;
    tl_itemlog_reset(&d->log, d->log.base.offset, d->log.base.time);
    return r;
}

/* Write records, and logs of all items other than instructions, counting neither. */
static int to_records_and_logs(void *context, const struct tl_item *items, size_t n)
{
    struct direct *d = context;
    uint64_t position = d->position;
    int r = to_records(d, items, n);
    for (size_t i = 0; i < n && r >= 0;) {
        const struct tl_item *const item = &items[i];
        size_t used = 1;
        if (item->kind == TL_ITEM_PATH || item->kind == TL_ITEM_BLOCK) {
            position += item->kind == TL_ITEM_PATH ? item->value : item->n;
        } else {
            if (position >= d->log_end)
                r = end_log(d, position);
            const uint64_t at = position % TL_CHUNK_MARKERS;
            used = tl_item_is_branch(item) ? n - i : 0;
            if (r >= 0 && used > 0)
                r = tl_itemlog_add_unmapped(&d->log, at, item, &used, UINT32_MAX);
            if (r >= 0 && used == 0)
                r = tl_itemlog_add(&d->log, at, item);
            used += used == 0;
        }
        i += used;
    }
    d->position = position;
    return r;
}

static int to_shards(void *context, const struct tl_item *items, size_t n)
{
    struct direct *d = context;
    return tl_build_items(d->build, items, n);
}

static int count_shard(void *context, struct tl_view *view)
{
    struct direct *d = context;
    struct tl_buf file = {0};
    struct tl_bytes frame = {0};
    int r = tl_view_encode(view, TL_CHUNK_MARKERS, d->packer, &file, NULL);
    for (size_t i = 0; r >= 0 && i < view->index.n_frames; i++) {
        r = tl_blob_packed(view->frames[i], d->packer, &frame);
        d->plain += view->index.frames[i].plain;
        d->frames += frame.n;
    }
    d->files += file.n;
    d->insns += view->index.row.n;
    tl_buf_fini(&file);
    tl_view_put(view);
    return r;
}

static int ignore_loss(void *context, const char *reason, uint64_t offset, uint64_t bytes)
{
    return TL_OK;
}

/* Decode. Returns processor seconds. */
static double decode(const struct input *in, struct direct *d, tl_item_sink *items)
{
    const struct tl_stream_sink sink = {.context = d,
                                        .items = items,
                                        .loss = ignore_loss,
                                        .paths = true,
                                        .code = tl_stf_block_code};
    struct tl_stream_decoder *decoder;
    const double begin = bench_cpu();
    if (tl_etm4_ops.create(&decoder, &in->source, in->image, &sink, NULL) < 0)
        die("no decoder");
    for (size_t at = 0; at < in->trace.n; at += CHUNK) {
        const size_t left = in->trace.n - at;
        const struct tl_run run = {in->trace.p + at, left < CHUNK ? left : CHUNK, at, NULL};
        if (decoder->ops->push(decoder, &run) < 0)
            die("decoding failed");
    }
    if (decoder->ops->finish(decoder) < 0 || (d->build && tl_build_finish(d->build) < 0))
        die("decoding failed");
    decoder->ops->destroy(decoder);
    return bench_cpu() - begin;
}

/* `logs`: with item logs. */
static double to_files(const struct input *in, struct direct *d, bool logs)
{
    const struct tl_stf_flow_options flow = {.isa = TL_ISA_NONE, .marks = true};
    d->stop = TL_CHUNK_MARKERS;
    d->markers = 0;
    if (tl_stf_flow_new(&d->flow, &flow, NULL) < 0)
        die("no writer");
    d->position = d->logs = 0;
    d->log_end = TL_CHUNK_MARKERS;
    tl_itemlog_reset(&d->log, 0, 0);
    double took = decode(in, d, logs ? to_records_and_logs : to_records);
    const double begin = bench_cpu();
    if (tl_stf_flow_finish(d->flow) < 0 || end_frame(d) < 0 ||
        (logs && end_log(d, d->position) < 0))
        die("no memory");
    took += bench_cpu() - begin;
    tl_stf_flow_free(d->flow);
    return took;
}

static double to_store(const struct input *in, struct direct *d)
{
    const struct tl_build_options options = {.protocol = TL_PROTO_ETM4,
                                             .shard_insns = SHARD,
                                             .image = in->image,
                                             .seal = count_shard,
                                             .context = d};
    d->insns = d->plain = d->frames = d->files = 0;
    if (tl_build_new(&d->build, &options) < 0)
        die("no shards");
    const double took = decode(in, d, to_shards);
    tl_build_free(d->build);
    d->build = NULL;
    return took;
}

static void report(const struct input *in, const char *what, double value, const char *unit,
                   double peer)
{
    char name[128];
    snprintf(name, sizeof name, "%s: %s", in->name, what);
    bench_report("index", name, value, unit, peer > 0 ? PEER : NULL, peer);
}

/* Shares are medians over rounds, since the machine's speed changes between them. */
static void measure(const struct input *in, int rounds)
{
    double files = 1e9, stored = 1e9, indexed = 1e9, logs[MAX], index[MAX], more[MAX];
    struct direct d = {0};
    if (tl_packer_new(&d.packer) < 0)
        die("no memory");
    for (int i = 0; i < rounds; i++) {
        const double a = to_files(in, &d, false), b = to_files(in, &d, true), c = to_store(in, &d);
        files = a < files ? a : files;
        stored = b < stored ? b : stored;
        indexed = c < indexed ? c : indexed;
        logs[i] = (b - a) / c;
        index[i] = (c - b) / c;
        more[i] = (c - a) / a;
    }
    tl_packer_free(d.packer);
    tl_zstf_writer_free(d.writer);
    tl_itemlog_fini(&d.log);
    tl_buf_fini(&d.packed);
    tl_buf_fini(&d.file);
    const double insns = (double)d.insns, plain = (double)d.plain, peer = peer_rate(in);
    const double index_bytes = (double)(d.files - d.frames - d.logs);
    report(in, "STF written and packed", insns / files / 1e6, "Minsn/s", peer);
    report(in, "… and item logs: all is stored", insns / stored / 1e6, "Minsn/s", peer);
    report(in, "… and index and tiles", insns / indexed / 1e6, "Minsn/s", peer);
    report(in, "item logs, of all that time", bench_median(logs, (size_t)rounds) * 100, "%", 0);
    report(in, "index and tiles, of all that time", bench_median(index, (size_t)rounds) * 100, "%",
           0);
    report(in, "both, of the time of STF alone", bench_median(more, (size_t)rounds) * 100, "%", 0);
    report(in, "item logs, of the plain STF", (double)d.logs / plain * 100, "%", 0);
    report(in, "index and tiles, of the plain STF", index_bytes / plain * 100, "%", 0);
}

int main(int argc, char **argv)
{
    const char *const only = argc > 1 ? argv[1] : "";
    const int wanted = argc > 2 ? atoi(argv[2]) : ROUNDS;
    const int rounds = wanted > 0 && wanted <= MAX ? wanted : ROUNDS;
    tl_lake_share_heaps();
    for (size_t i = 0; i < N_INPUT_MIXES; i++) {
        struct input in = {0};
        if (!strstr(input_mixes[i].name, only))
            continue;
        input_simulate(&in, &input_mixes[i], BYTES);
        measure(&in, rounds);
        input_drop(&in);
    }
    for (size_t i = 0; i < N_CAPTURES; i++) {
        struct input in = {0};
        if (!strstr(captures[i], only) || !input_capture(&in, captures[i]))
            continue;
        measure(&in, rounds);
        input_drop(&in);
    }
    return 0;
}
