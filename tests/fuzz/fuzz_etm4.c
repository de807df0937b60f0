/* SPDX-License-Identifier: MIT */
/*
 * ETMv4 and ETE from bytes: any bytes, under any configuration, give the same packets in any
 * chunks; all packets can be listed; the flow terminates. The first bytes choose the configuration,
 * the rest is trace.
 */
#include "decode/ops.h"
#include "etm4/packet_text.h"
#include "etm4/unrolled.h"
#include "image/image.h"
#include "sim/etm4_encoder_packets.h"
#include "sim/program.h"
#include "steps.h"

#include <stdlib.h>
#include <string.h>

#define CHOOSERS 6

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct digest {
    uint64_t value;
    uint64_t packets;
};

static void require(bool condition)
{
    if (!condition)
        abort();
}

static int digest_packets(void *context, const struct tl_etm4_packet *packets, size_t n)
{
    struct digest *digest = context;
    for (size_t i = 0; i < n; i++) {
        char line[TL_ETM4_TEXT_MAX];
        const uint8_t *bytes = (const uint8_t *)&packets[i];
        for (size_t k = 0; k < sizeof packets[i]; k++)
            digest->value = (digest->value ^ bytes[k]) * 0x100000001b3u;
        require(packets[i].type < TL_ETM4_TYPES);
        const size_t length = tl_etm4_packet_text(line, &packets[i], 0x10);
        require(length < sizeof line && line[length] == '\0');
        digest->packets++;
    }
    return 0;
}

static struct digest split(const struct tl_etm4_config *config, const uint8_t *p, size_t n,
                           size_t chunk, const struct tl_etm4_kernel *kernel)
{
    static struct tl_etm4_packetizer packetizer;
    struct digest digest = {0xcbf29ce484222325u, 0};

    tl_etm4_packetizer_init(&packetizer, config, digest_packets, &digest);
    tl_etm4_packetizer_use(&packetizer, kernel);
    for (size_t i = 0; i < n; i += chunk) {
        const struct tl_run run = {p + i, n - i < chunk ? n - i : chunk, i, NULL};
        require(tl_etm4_packetizer_push(&packetizer, &run) == 0);
    }
    require(tl_etm4_packetizer_finish(&packetizer) == 0);
    require(digest.packets <= n + 1);
    return digest;
}

static int check_items(void *context, const struct tl_item *items, size_t n)
{
    steps_demand(context, items, n);
    return 0;
}

static int ignore_loss(void *context, const char *reason, uint64_t offset, uint64_t bytes)
{
    (void)context;
    (void)reason;
    (void)offset;
    (void)bytes;
    return 0;
}

/* The image of the simulated program, for following the flow. */
static const struct tl_image *image(void)
{
    static struct tl_image *made;
    const struct tl_sim_program_options options = {.seed = 1};
    struct tl_sim_program program;
    struct tl_buf elf = {0};

    if (made != NULL)
        return made;
    require(tl_sim_program_init(&program, &options) == 0);
    require(tl_sim_program_elf(&program, &elf) == 0);
    require(tl_image_new(&made) == 0);
    require(tl_image_add_elf(made, (struct tl_bytes){elf.p, elf.n}, 0, TL_SPACE_ANY, "sim", NULL) ==
            0);
    require(tl_image_freeze(made) == 0);
    tl_buf_fini(&elf);
    tl_sim_program_fini(&program);
    return made;
}

static void follow(const uint8_t *choose, const uint8_t *p, size_t n)
{
    struct steps steps = {0};
    const struct tl_stream_sink sink = {
        .context = &steps, .items = check_items, .loss = ignore_loss, .paths = choose[0] & 4};
    struct tl_source source = {.protocol = choose[0] & 1 ? TL_PROTO_ETE : TL_PROTO_ETM4};
    struct tl_stream_decoder *decoder;

    strcpy(source.core, choose[0] & 2 ? "Cortex-M33" : "ARM-AA64");
    require(tl_source_set_reg(&source, "TRCCONFIGR", (uint32_t)choose[1] << 8 & 0x1900) == 0);
    require(tl_source_set_reg(&source, "TRCIDR8", choose[2] & 0x3f) == 0);
    if (tl_etm4_ops.create(&decoder, &source, image(), &sink, NULL) < 0)
        return;
    const struct tl_run run = {p, n, 0, NULL};
    require(tl_etm4_ops.push(decoder, &run) == 0);
    require(tl_etm4_ops.finish(decoder, TL_LOSS_CUT_OFF) == 0);
    tl_etm4_ops.destroy(decoder);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const uint8_t async[12] = {[11] = 0x80};
    struct tl_etm4_config config;

    if (size <= CHOOSERS || size > 65536)
        return 0;
    struct tl_sim_rng rng = {data[3]};
    const size_t n = size - CHOOSERS + sizeof async;
    uint8_t *trace = malloc(n); /* synchronised from the start, so that the rest is decoded */
    require(trace != NULL);
    memcpy(trace, async, sizeof async);
    memcpy(trace + sizeof async, data + CHOOSERS, size - CHOOSERS);
    tl_sim_packets_config(&config, &rng);

    const struct digest scalar = split(&config, trace, n, n, NULL);
    const struct digest pieces = split(&config, trace, n, 1 + data[4] % 40, NULL);
    require(scalar.value == pieces.value && scalar.packets == pieces.packets);
    for (int level = 0; level < TL_CPU_LEVELS; level++) {
        if (!tl_cpu_has((enum tl_cpu)level))
            continue;
        const struct digest unrolled =
            split(&config, trace, n, n, tl_etm4_kernel_at((enum tl_cpu)level));
        require(scalar.value == unrolled.value && scalar.packets == unrolled.packets);
    }
    split(&config, data, size, 1 + data[5], NULL);
    follow(data, trace, n);
    free(trace);
    return 0;
}
