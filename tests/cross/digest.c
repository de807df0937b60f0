/* SPDX-License-Identifier: MIT */
/*
 * A hash of everything the decoders output for generated and real traces, one line per input, to be
 * compared between machines. Within the program all kernels and unroll factors must agree; the
 * de-framer and the flow use the level of TRACELAKE_CPU. Usage: digest [FOLDER OF SNAPSHOTS]
 */
#include "base/crew.h"
#include "decode/kept.h"
#include "decode/split.h"
#include "frame/tpiu.h"
#include "image/image.h"
#include "sim/etm4_encoder_packets.h"
#include "sim/etm4_kernels.h"
#include "sim/program_core.h"
#include "sim/tpiu_encoder.h"
#include "stf/flow/flow_writer.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FNV_OFFSET 0xcbf29ce484222325u
#define FNV_PRIME  0x100000001b3u

struct digest {
    uint64_t value, n;
};

static const struct digest begun = {FNV_OFFSET, 0};

static void require_at(bool good, int line)
{
    if (good)
        return;
    fprintf(stderr, "digest.c:%d: failed\n", line);
    exit(1);
}
#define require(condition) require_at(condition, __LINE__)

static void add(struct digest *d, const void *p, size_t n)
{
    const uint8_t *const b = p;
    for (size_t i = 0; i < n; i++)
        d->value = (d->value ^ b[i]) * FNV_PRIME;
}

static void add_number(struct digest *d, uint64_t value)
{
    d->value = (d->value ^ value) * FNV_PRIME;
}

static void say(const char *stage, const char *input, unsigned k, struct digest d)
{
    printf("%s %s %u: %016" PRIx64 " of %" PRIu64 "\n", stage, input, k, d.value, d.n);
}

/* ---- frames -------------------------------------------------------------------------------- */

struct sources {
    struct digest of[128];
    struct digest loss;
};

static int on_run(void *context, uint8_t id, const struct tl_run *run)
{
    struct digest *const d = &((struct sources *)context)->of[id];
    for (size_t i = 0; i < run->n; i++) {
        add(d, &run->p[i], 1);
        add_number(d, tl_run_offset(run, i));
    }
    d->n += run->n;
    return 0;
}

static int on_frame_loss(void *context, const char *reason, uint64_t offset, uint64_t bytes)
{
    struct digest *const d = &((struct sources *)context)->loss;
    add(d, reason, strlen(reason));
    add_number(d, offset);
    add_number(d, bytes);
    d->n += bytes;
    return 0;
}

static void frames(const char *input, unsigned k, enum tl_tpiu_sync sync, const uint8_t *p,
                   size_t n, struct tl_sim_rng *rng)
{
    static struct tl_tpiu tpiu;
    struct sources sources = {.loss = begun};
    const struct tl_tpiu_sink sink = {.context = &sources, .run = on_run, .loss = on_frame_loss};
    struct digest all = begun;

    for (unsigned id = 0; id < 128; id++)
        sources.of[id] = begun;
    tl_tpiu_init(&tpiu, sync, 0, &sink);
    for (size_t i = 0; i < n;) {
        const size_t some = tl_sim_between(rng, 1, 9000), left = n - i;
        require(tl_tpiu_push(&tpiu, p + i, some < left ? some : left) == 0);
        i += some < left ? some : left;
    }
    require(tl_tpiu_finish(&tpiu, TL_TPIU_UNFINISHED) == 0);
    for (unsigned id = 0; id < 128; id++) {
        add_number(&all, sources.of[id].value);
        all.n += sources.of[id].n;
    }
    add_number(&all, sources.loss.value);
    say("frames", input, k, all);
}

static void made_frames(struct tl_sim_rng *rng)
{
    for (unsigned k = 0; k < 16; k++) {
        const enum tl_tpiu_sync sync = (enum tl_tpiu_sync)(k % 4);
        const unsigned turn = k < 4 ? 3000 : k < 8 ? 90 : k < 12 ? 9 : 2;
        struct tl_tpiu_encoder e;
        tl_tpiu_encoder_init(&e, sync, tl_sim_rand(rng));
        e.hsync_percent = sync == TL_TPIU_HSYNC ? 5 : 0;
        while (e.out.n < 40000) {
            uint8_t bytes[3000];
            const size_t n = tl_sim_between(rng, 1, turn);
            for (size_t i = 0; i < n; i++)
                bytes[i] = (uint8_t)tl_sim_rand(rng);
            require(tl_tpiu_encoder_add(&e, (uint8_t)tl_sim_between(rng, 1, 4), bytes, n) == 0);
        }
        require(tl_tpiu_encoder_flush(&e) == 0);
        frames("made", k, sync, e.out.p, e.out.n, rng);
        for (unsigned hits = 0; hits < 40; hits++)
            e.out.p[tl_sim_below(rng, (uint32_t)e.out.n)] = (uint8_t)tl_sim_rand(rng);
        frames("damaged", k, sync, e.out.p, e.out.n, rng);
        tl_tpiu_encoder_fini(&e);
    }
}

/* ---- packets ------------------------------------------------------------------------------- */

static int on_packets(void *context, const struct tl_etm4_packet *packets, size_t n)
{
    struct digest *const d = context;
    for (size_t i = 0; i < n; i++) {
        const struct tl_etm4_packet *const p = &packets[i];
        add_number(d, p->offset);
        add_number(d, p->value);
        add_number(d, p->value2);
        add_number(d, (uint64_t)p->type | (uint64_t)p->header << 8 | (uint64_t)p->n << 16 |
                          (uint64_t)p->bits << 24 | (uint64_t)p->flags << 32);
    }
    d->n += n;
    return 0;
}

static struct digest split(const struct tl_etm4_config *config, const uint8_t *p, size_t n,
                           uint64_t seed, const struct tl_etm4_kernel *kernel)
{
    static struct tl_etm4_packetizer packetizer;
    struct tl_sim_rng rng = {seed};
    struct digest d = begun;

    tl_etm4_packetizer_init(&packetizer, config, on_packets, &d);
    tl_etm4_packetizer_use(&packetizer, kernel);
    for (size_t i = 0; i < n;) {
        size_t some = tl_sim_between(&rng, 1, seed & 1 ? 300 : 9000);
        if (some > n - i)
            some = n - i;
        const struct tl_run run = {.p = p + i, .n = some, .base = i};
        require(tl_etm4_packetizer_push(&packetizer, &run) == 0);
        i += some;
    }
    require(tl_etm4_packetizer_finish(&packetizer) == 0);
    return d;
}

static void packets(const char *input, unsigned k, const struct tl_etm4_config *config,
                    const uint8_t *p, size_t n, struct tl_sim_rng *rng)
{
    const uint64_t seed = tl_sim_rand(rng);
    size_t n_kernels;
    const struct tl_etm4_kernel *const kernels = tl_sim_etm4_kernels(&n_kernels);
    const struct digest scalar = split(config, p, n, seed, NULL);

    for (size_t i = 0; i < n_kernels; i++) {
        const struct tl_etm4_kernel *const best = tl_etm4_kernel_at(kernels[i].level);
        if (!tl_cpu_has(kernels[i].level) || best == NULL || best->level != kernels[i].level)
            continue;
        const struct digest ours = split(config, p, n, seed, &kernels[i]);
        if (ours.value != scalar.value || ours.n != scalar.n) {
            fprintf(stderr, "%s %u: %s, unrolled %u, says something else\n", input, k,
                    tl_cpu_name(kernels[i].level), kernels[i].unroll);
            exit(1);
        }
    }
    say("packets", input, k, scalar);
}

static void made_packets(struct tl_sim_rng *rng)
{
    for (unsigned k = 0; k < 2 * TL_SIM_MIXES; k++) {
        struct tl_etm4_config config;
        struct tl_sim_packets s;
        tl_sim_packets_config(&config, rng);
        tl_sim_packets_init(&s, &config, (enum tl_sim_mix)(k % TL_SIM_MIXES), true,
                            tl_sim_rand(rng));
        require(tl_sim_packets_async(&s) == 0 && tl_sim_packets_add(&s, 3000) == 0);
        packets("made", k, &config, s.bytes.p, s.bytes.n, rng);
        tl_sim_packets_fini(&s);
    }
}

/* Headers in payloads and payloads like headers: bytes from a few values, and any bytes. */
static void hostile_packets(struct tl_sim_rng *rng)
{
    static const uint8_t few[] = {0x95, 0x9a, 0x90, 0x91, 0x92, 0xf7, 0xc0, 0x15, 0x00, 0x85,
                                  0x96, 0x9d, 0x82, 0x01, 0x0e, 0x80, 0xff, 0x95, 0x95, 0x9a};
    for (unsigned k = 0; k < 24; k++) {
        static uint8_t bytes[12000];
        struct tl_etm4_config config;
        const uint32_t kinds = 1 + tl_sim_below(rng, sizeof few);
        tl_sim_packets_config(&config, rng);
        memset(bytes, 0, 11);
        bytes[11] = 0x80;
        for (size_t i = 12; i < sizeof bytes; i++)
            bytes[i] = k % 3 == 0 ? (uint8_t)tl_sim_rand(rng) : few[tl_sim_below(rng, kinds)];
        packets("hostile", k, &config, bytes, sizeof bytes, rng);
    }
}

/* ---- flow and records ---------------------------------------------------------------------- */

struct flow {
    struct tl_stf_flow *writer;
    struct digest records, loss;
};

static int on_items(void *context, const struct tl_item *items, size_t n)
{
    struct flow *const f = context;
    struct tl_stf_flow_at at = {0};
    require(tl_stf_flow_items(f->writer, items, n, UINT64_MAX, &at) >= 0);
    const struct tl_bytes bytes = tl_stf_flow_bytes(f->writer);
    add(&f->records, bytes.p, bytes.n);
    f->records.n += bytes.n;
    tl_stf_flow_take(f->writer);
    return 0;
}

static int on_loss(void *context, const char *reason, uint64_t offset, uint64_t bytes)
{
    struct flow *const f = context;
    add(&f->loss, reason, strlen(reason));
    add_number(&f->loss, offset);
    add_number(&f->loss, bytes);
    return 0;
}

static struct digest follow(const struct tl_source *source, const struct tl_image *image,
                            const struct tl_buf *trace, bool paths, unsigned threads)
{
    const struct tl_stf_flow_options options = {.isa = TL_ISA_A64};
    struct flow f = {.records = begun, .loss = begun};
    const struct tl_stream_sink sink = {
        .context = &f, .items = on_items, .loss = on_loss, .paths = paths};
    const struct tl_run run = {.p = trace->p, .n = trace->n};
    struct tl_share share = {0};
    struct tl_stream_decoder *d;

    require(tl_stf_flow_new(&f.writer, &options, NULL) == 0);
    require(tl_crew_new(&share.crew, threads) == 0);
    require(tl_split_new(&d, &tl_etm4_ops, source, image, &sink, &share, NULL) == 0);
    require(d->ops->push(d, &run) == 0 && d->ops->finish(d, TL_LOSS_CUT_OFF) == 0);
    d->ops->destroy(d);
    tl_kept_rooms_free(share.rooms);
    tl_crew_free(share.crew);
    require(tl_stf_flow_finish(f.writer) >= 0);
    const struct tl_bytes rest = tl_stf_flow_bytes(f.writer);
    add(&f.records, rest.p, rest.n);
    f.records.n += rest.n;
    add_number(&f.records, f.loss.value);
    tl_stf_flow_free(f.writer);
    return f.records;
}

static void flows(const char *input, unsigned k, const struct tl_source *source,
                  const struct tl_image *image, const struct tl_buf *trace)
{
    const struct digest records = follow(source, image, trace, true, 1);

    require(records.value == follow(source, image, trace, false, 1).value);
    require(records.value == follow(source, image, trace, true, 2).value);
    say("records", input, k, records);
}

static void simulated(struct tl_sim_rng *rng)
{
    for (unsigned k = 0; k < 8; k++) {
        const struct tl_sim_core_options options = tl_sim_core_kinds(tl_sim_rand(rng), k);
        const struct tl_sim_program_options shape = {.seed = 3, .extra = 20};
        struct tl_sim_program program;
        struct tl_sim_core *core;
        struct tl_source source;
        struct tl_etm4_config config;
        struct tl_image *image;
        struct tl_buf trace = {0}, code[2] = {{0}, {0}};

        require(tl_sim_program_init(&program, &shape) == 0 && tl_image_new(&image) == 0);
        for (unsigned i = 0; i < 2; i++)
            require(tl_sim_program_code(&program, i, &code[i]) == 0 &&
                    tl_image_add_bytes(image, program.sections[i].base,
                                       (struct tl_bytes){code[i].p, code[i].n}, TL_SPACE_ANY, NULL,
                                       NULL) == 0);
        require(tl_image_freeze(image) == 0);
        require(tl_sim_core_new(&core, &program, &options, &trace, NULL, NULL) == 0);
        require(tl_sim_core_step(core, 50000) == 0 && tl_sim_core_flush(core) == 0);
        require(tl_sim_etm4_source(&options.etm, &source) == 0);
        tl_etm4_config_init(&config, &source);
        packets("simulated", k, &config, trace.p, trace.n, rng);
        flows("simulated", k, &source, image, &trace);
        for (unsigned hits = 0; hits < 10; hits++)
            trace.p[tl_sim_below(rng, (uint32_t)trace.n)] = (uint8_t)tl_sim_rand(rng);
        packets("damaged", k, &config, trace.p, trace.n, rng);
        flows("damaged", k, &source, image, &trace);
        tl_sim_core_free(core);
        tl_sim_program_fini(&program);
        tl_image_free(image);
        for (unsigned i = 0; i < 2; i++)
            tl_buf_fini(&code[i]);
        tl_buf_fini(&trace);
    }
}

/* ---- real captures ------------------------------------------------------------------------- */

static void captures(const char *folder, struct tl_sim_rng *rng)
{
    static const char *const files[] = {"juno_r1_1/cstrace.bin", "juno-uname-002/trace.bin",
                                        "a55-test-tpiu/DSTREAM_0.bin", "src_addr/session1.bin"};
    for (unsigned k = 0; k < sizeof files / sizeof files[0]; k++) {
        static uint8_t bytes[12 + 60000] = {[11] = 0x80};
        char path[512];
        struct tl_etm4_config config;
        snprintf(path, sizeof path, "%s/%s", folder, files[k]);
        FILE *const f = fopen(path, "rb");
        if (f == NULL)
            continue;
        const size_t n = fread(bytes + 12, 1, sizeof bytes - 12, f);
        fclose(f);
        for (unsigned sync = 0; sync < 4; sync++)
            frames(files[k], sync, (enum tl_tpiu_sync)sync, bytes + 12, n, rng);
        tl_sim_packets_config(&config, rng);
        packets(files[k], 0, &config, bytes, 12 + n, rng);
    }
}

int main(int argc, char **argv)
{
    struct tl_sim_rng rng = {20250101};

    made_frames(&rng);
    made_packets(&rng);
    hostile_packets(&rng);
    simulated(&rng);
    if (argc > 1)
        captures(argv[1], &rng);
    return 0;
}
