/* SPDX-License-Identifier: MIT */
/*
 * Trace bytes to flow with its index and tiles, and the STF they describe: everything of a shard
 * except compression, which is stubbed. One thread. Usage: index_alone INPUT
 * [virtual|outline|flow]; prints millions of instructions per second of processor time, the best of
 * several rounds. With `virtual`, as for virtual shards; with `outline`, what is done ahead of an
 * index made behind; with `flow`, items are only counted.
 */
#include "bench/inputs.h"
#include "bench/report.h"
#include "builder/build.h"
#include "decode/ops.h"
#include "shard/pack.h"
#include "stf/close.h"

#define BYTES  (2u << 20)  /* of trace */
#define SHARD  (1u << 20)  /* instructions */
#define CHUNK  (64u << 10) /* bytes per push */
#define ROUNDS 5

int __wrap_tl_packer_stf_new(struct tl_packer *packer, const struct tl_stf_piece *piece,
                             uint8_t **out, size_t *size);

int __wrap_tl_packer_stf_new(struct tl_packer *packer, const struct tl_stf_piece *piece,
                             uint8_t **out, size_t *size)
{
    *size = 1;
    *out = calloc(1, 1);
    return *out ? TL_OK : TL_NOMEM;
}

static int to_shards(void *context, const struct tl_item *items, size_t n)
{
    return tl_build_items(context, items, n);
}

static int count_insns(void *context, const struct tl_item *items, size_t n)
{
    uint64_t insns = 0;
    for (size_t i = 0; i < n; i++)
        insns += items[i].kind == TL_ITEM_PATH    ? items[i].value
                 : items[i].kind == TL_ITEM_BLOCK ? items[i].n
                                                  : 0;
    *(uint64_t *)context += insns;
    return TL_OK;
}

static int ignore_loss(void *context, const char *reason, uint64_t offset, uint64_t bytes)
{
    return TL_OK;
}

static int count_shard(void *context, struct tl_view *view)
{
    *(uint64_t *)context += view->index.row.n;
    tl_view_put(view);
    return TL_OK;
}

/* Decode. Returns the number of instructions. */
static __attribute__((noinline)) uint64_t decode(const struct input *in, const char *how)
{
    uint64_t insns = 0;
    struct tl_build *build;
    struct tl_stream_decoder *decoder;
    const struct tl_build_options options = {.protocol = TL_PROTO_ETM4,
                                             .shard_insns = SHARD,
                                             .image = in->image,
                                             .index_only = how,
                                             .outline = how && !strcmp(how, "outline"),
                                             .seal = count_shard,
                                             .context = &insns};
    if (tl_build_new(&build, &options) < 0)
        input_die("no shards");
    const bool follows = how && !strcmp(how, "flow");
    const struct tl_stream_sink sink = {.context = follows ? (void *)&insns : build,
                                        .items = follows ? count_insns : to_shards,
                                        .loss = ignore_loss,
                                        .paths = true,
                                        .code = tl_stf_block_code};
    if (tl_etm4_ops.create(&decoder, &in->source, in->image, &sink, NULL) < 0)
        input_die("no decoder");
    for (size_t at = 0; at < in->trace.n; at += CHUNK) {
        const size_t left = in->trace.n - at;
        const struct tl_run run = {in->trace.p + at, left < CHUNK ? left : CHUNK, at, NULL};
        if (decoder->ops->push(decoder, &run) < 0)
            input_die("decoding failed");
    }
    if (decoder->ops->finish(decoder, TL_LOSS_CUT_OFF) < 0 || tl_build_finish(build) < 0)
        input_die("decoding failed");
    decoder->ops->destroy(decoder);
    tl_build_free(build);
    return insns;
}

int main(int argc, char **argv)
{
    struct input in;
    double best = 0;
    if (argc < 2 || argc > 3 || !input_named(&in, argv[1], BYTES))
        return 77;
    for (int i = 0; i < ROUNDS; i++) {
        const double begin = bench_cpu();
        const uint64_t insns = decode(&in, argc > 2 ? argv[2] : NULL);
        const double rate = (double)insns / (bench_cpu() - begin);
        best = rate > best ? rate : best;
    }
    printf("%.1f\n", best / 1e6);
    input_drop(&in);
    return 0;
}
