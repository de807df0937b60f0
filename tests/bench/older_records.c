/* SPDX-License-Identifier: MIT */
/*
 * One capture of ETMv3 or PTM, as it is, decoded again and again in this process: by OpenCSD to
 * generic elements that are only counted, and here to STF records in memory. The start of a process
 * and the reading of files, which are most of what short captures take, do not count.
 *
 *   older_records SNAPSHOT [ROUNDS [WAY]]
 *
 * prints microseconds of processor time per decode, and instructions, in each way whose name
 * contains WAY; for older.py.
 *
 * Everything is made anew for each decode, as a program does that decodes one capture: OpenCSD's
 * tree with its memory, our image and decoders. Where something can be kept for the next decode,
 * that is measured, too: OpenCSD's tree, which is reset, and our image. The least of all rounds, in
 * turns.
 */
#include "bench/report.h"
#include "decode/decode.h"
#include "import/bundle.h"
#include "opencsd.h"
#include "stf/close.h"
#include "stf/flow/flow_writer.h"

#include <string.h>

enum { PLACES = 16, STREAMS = 16, ROUND_US = 20000 };

struct bench {
    struct tl_bundle snapshot;
    const struct tl_setup *setup;
    struct tl_buf trace;
    struct tl_image *image; /* that is kept */
    struct tl_source sources[STREAMS];
    size_t n_sources; /* that OpenCSD decodes */
    struct tl_opencsd_memory memory[PLACES];
    size_t n_memory;
    dcd_tree_handle_t tree; /* that is kept */
    uint64_t theirs;        /* instructions */
    /* One decode of ours: */
    struct tl_stf_flow *flows[STREAMS];
    uint64_t insns, bytes;
};

static void die(const char *why)
{
    fprintf(stderr, "older_records: %s\n", why);
    exit(1);
}

/* ---- ours -------------------------------------------------------------------------------- */

static int on_stream(void *context, const struct tl_decode_stream *stream)
{
    struct bench *const b = context;
    const struct tl_stf_flow_options options = {.isa = stream->isa, .comments = true};
    return stream->index < STREAMS ? tl_stf_flow_new(&b->flows[stream->index], &options, NULL)
                                   : TL_NOMEM;
}

static int on_items(void *context, const struct tl_decode_stream *stream,
                    const struct tl_item *items, size_t n)
{
    struct bench *const b = context;
    struct tl_stf_flow_at at = {0};
    return tl_stf_flow_items(b->flows[stream->index], items, n, UINT64_MAX, &at);
}

static struct tl_image *new_image(const struct bench *b)
{
    struct tl_image *image;
    if (tl_image_new(&image) < 0)
        die("out of memory");
    for (size_t i = 0; i < b->n_memory; i++)
        if (tl_image_add_bytes(image, b->memory[i].base, b->memory[i].bytes, TL_SPACE_ANY, NULL,
                               NULL) < 0)
            die("the image cannot be made");
    if (tl_image_freeze(image) < 0)
        die("the image cannot be made");
    return image;
}

static void decode_on(struct bench *b, const struct tl_image *image)
{
    const struct tl_decode_sink sink = {.context = b, .stream = on_stream, .items = on_items};
    struct tl_decode *decode;
    if (tl_decode_new(&decode, b->setup, image, &sink, NULL) < 0)
        die("no decoder");
    tl_decode_allow_paths(decode);
    tl_decode_set_code(decode, tl_stf_block_code);
    if (tl_decode_push(decode, b->trace.p, b->trace.n) < 0 || tl_decode_finish(decode) < 0)
        die("decoding failed");
    b->insns = b->bytes = 0;
    for (size_t i = 0; i < STREAMS && b->flows[i]; i++) {
        if (tl_stf_flow_finish(b->flows[i]) < 0)
            die("no records");
        b->insns += tl_stf_flow_markers(b->flows[i]);
        b->bytes += tl_stf_flow_bytes(b->flows[i]).n;
        tl_stf_flow_free(b->flows[i]);
        b->flows[i] = NULL;
    }
    tl_decode_free(decode);
}

static void decode_anew(struct bench *b)
{
    struct tl_image *const image = new_image(b);
    decode_on(b, image);
    tl_image_free(image);
}

static void decode_kept(struct bench *b)
{
    decode_on(b, b->image);
}

/* ---- OpenCSD ----------------------------------------------------------------------------- */

static dcd_tree_handle_t new_tree(struct bench *b)
{
    const bool frames = b->setup->container != TL_CONTAINER_SINGLE;
    const dcd_tree_handle_t tree =
        tl_opencsd_new_of(b->sources, b->n_sources, frames ? OCSD_DFRMTR_FRAME_MEM_ALIGN : 0,
                          b->memory, b->n_memory, tl_opencsd_count, &b->theirs);
    if (tree == C_API_INVALID_TREE_HANDLE)
        die("OpenCSD refuses the capture");
    return tree;
}

/* It ends early with some captures: what it decoded before that counts. */
static void push_theirs(struct bench *b, dcd_tree_handle_t tree)
{
    b->theirs = 0;
    (void)!tl_opencsd_push(tree, 0, b->trace.p, b->trace.n);
}

static void decode_theirs_anew(struct bench *b)
{
    const dcd_tree_handle_t tree = new_tree(b);
    push_theirs(b, tree);
    tl_opencsd_free(tree);
}

static void decode_theirs_kept(struct bench *b)
{
    ocsd_dt_process_data(b->tree, OCSD_OP_RESET, 0, 0, NULL, NULL);
    push_theirs(b, b->tree);
    ocsd_dt_process_data(b->tree, OCSD_OP_EOT, 0, 0, NULL, NULL);
}

/* ------------------------------------------------------------------------------------------ */

struct way {
    const char *name;
    void (*decode)(struct bench *);
    bool theirs;
    double best; /* microseconds of a decode */
    uint64_t insns;
};

/* Repeated for as long as the clock needs to be exact. */
static void measure(struct bench *b, struct way *way)
{
    const double begin = bench_cpu();
    double took = 0;
    unsigned n = 0;
    for (; took < ROUND_US; n++) {
        way->decode(b);
        took = (bench_cpu() - begin) * 1e6;
    }
    way->insns = way->theirs ? b->theirs : b->insns;
    way->best = way->best == 0 || took / n < way->best ? took / n : way->best;
}

static void add_memory(struct bench *b, const struct tl_setup_image *image)
{
    const struct tl_bytes bytes = tl_image_at(b->image, TL_SPACE_ANY, image->address);
    for (size_t i = 0; i < b->n_memory; i++) /* cores of one machine have the same dump */
        if (b->memory[i].base == image->address)
            return;
    if (b->n_memory == PLACES)
        die("too many regions");
    b->memory[b->n_memory++] = (struct tl_opencsd_memory){image->address, bytes};
}

static void read_capture(struct bench *b, const char *folder)
{
    if (tl_snapshot_read(&b->snapshot, folder, NULL, NULL, NULL) < 0 ||
        tl_bundle_bytes(&b->snapshot.captures[0], &b->trace, NULL) < 0)
        die("the capture cannot be read");
    b->setup = &b->snapshot.captures[0].setup;
    struct tl_image *all;
    if (tl_image_new(&all) < 0 || tl_setup_load_images(b->setup, all, NULL, NULL, NULL) < 0 ||
        tl_image_freeze(all) < 0)
        die("the image cannot be read");
    b->image = all;
    for (size_t i = 0; i < b->setup->n_images; i++)
        add_memory(b, &b->setup->images[i]);
    for (size_t i = 0; i < b->setup->n_sources && b->n_sources < STREAMS; i++)
        if (b->setup->sources[i].protocol == TL_PROTO_ETM3 ||
            b->setup->sources[i].protocol == TL_PROTO_PTM)
            b->sources[b->n_sources++] = b->setup->sources[i];
}

int main(int argc, char **argv)
{
    static struct bench b;
    struct way ways[] = {{"OpenCSD, all anew", decode_theirs_anew, true},
                         {"OpenCSD, tree kept", decode_theirs_kept, true},
                         {"records, all anew", decode_anew, false},
                         {"records, image kept", decode_kept, false}};
    const char *const only = argc > 3 ? argv[3] : "";
    const size_t n_ways = sizeof ways / sizeof *ways;
    if (argc < 2) {
        fprintf(stderr, "usage: older_records SNAPSHOT [ROUNDS [WAY]]\n");
        return 2;
    }
    read_capture(&b, argv[1]);
    b.tree = new_tree(&b);
    for (int round = argc > 2 ? atoi(argv[2]) : 5; round > 0; round--)
        for (size_t i = 0; i < n_ways; i++)
            if (strstr(ways[i].name, only))
                measure(&b, &ways[i]);
    for (size_t i = 0; i < n_ways; i++)
        if (ways[i].best > 0)
            printf("%s\t%.1f\t%llu\n", ways[i].name, ways[i].best,
                   (unsigned long long)ways[i].insns);
    ocsd_destroy_dcd_tree(b.tree);
    tl_image_free(b.image);
    tl_buf_fini(&b.trace);
    tl_bundle_fini(&b.snapshot);
    return 0;
}
