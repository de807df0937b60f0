/* SPDX-License-Identifier: MIT */
/* Open SoC Debug: datagrams to packets, and to events as flow items. */
#include "bench/report.h"
#include "decode/ops.h"
#include "frame/di.h"
#include "sim/osd_encoder.h"

#include <stdlib.h>

struct input {
    struct tl_buf bytes;
    uint64_t packets;
    uint64_t items;
};

static int on_packet(void *context, const struct tl_di_packet *packet)
{
    ((struct input *)context)->packets += packet->n > 0;
    return TL_OK;
}

static int on_items(void *context, const struct tl_decode_stream *stream,
                    const struct tl_item *items, size_t n)
{
    ((struct input *)context)->items += n;
    return TL_OK;
}

static size_t part(const struct input *in, size_t i)
{
    return in->bytes.n - i < 1 << 16 ? in->bytes.n - i : 1 << 16;
}

static void frame(void *context)
{
    struct input *const in = context;
    static struct tl_di d;
    const struct tl_di_sink sink = {in, on_packet, NULL};
    tl_di_init(&d, 0, 0, &sink);
    for (size_t i = 0; i < in->bytes.n; i += 1 << 16)
        if (tl_di_push(&d, in->bytes.p + i, part(in, i)) < 0)
            abort();
    if (tl_di_finish(&d) < 0)
        abort();
    tl_di_fini(&d);
}

static void decode(void *context)
{
    struct input *const in = context;
    struct tl_setup setup;
    tl_setup_init(&setup);
    setup.container = TL_CONTAINER_DI;
    const struct tl_decode_sink sink = {.context = in, .items = on_items};
    struct tl_decode *d;
    if (tl_osd_ops.create(&d, &setup, NULL, &sink, NULL) < 0)
        abort();
    for (size_t i = 0; i < in->bytes.n; i += 1 << 16)
        if (tl_osd_ops.push(d, in->bytes.p + i, part(in, i)) < 0)
            abort();
    if (tl_osd_ops.finish(d) < 0)
        abort();
    tl_osd_ops.destroy(d);
}

static void make(struct input *in, unsigned width, unsigned max_pkt_len, unsigned stm_percent)
{
    const struct tl_sim_osd_module modules[] = {{0, TL_SIM_OSD_SCM, 0},
                                                {1, TL_SIM_OSD_CTM, (uint8_t)width},
                                                {2, TL_SIM_OSD_STM, (uint8_t)width}};
    struct tl_sim_osd e;
    tl_sim_osd_init(&e);
    e.keep_truth = false;
    e.max_pkt_len = (uint16_t)max_pkt_len;
    if (tl_sim_osd_enumerate(&e, modules, 3) < 0)
        abort();
    uint32_t random = 1;
    for (uint32_t time = 0; e.out.n < 16 << 20; time += 1 + (random >> 28)) {
        random = random * 1664525 + 1013904223;
        const struct tl_sim_osd_truth event = {.time = time,
                                               .pc = 0x80000000u + (random >> 12),
                                               .npc = 0x80000000u + (random >> 11),
                                               .call = random >> 31,
                                               .ret = !(random >> 31)};
        const int rc = (random >> 8) % 100 < stm_percent
                           ? tl_sim_osd_stm(&e, 2, width, time, 4, random >> 24)
                           : tl_sim_osd_ctm(&e, 1, width, &event);
        if (rc < 0)
            abort();
    }
    *in = (struct input){.bytes = e.out};
}

/* Processor time, since the machine may be busy. */
static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static double best(int rounds, void (*fn)(void *), struct input *in)
{
    double min = 1e9;
    for (int i = 0; i < rounds; i++) {
        const double begin = now();
        fn(in);
        const double took = now() - begin;
        min = took < min ? took : min;
    }
    return min;
}

static void measure(const char *name, unsigned width, unsigned max_pkt_len, unsigned stm_percent)
{
    struct input in;
    char text[80];
    make(&in, width, max_pkt_len, stm_percent);
    snprintf(text, sizeof text, "%s: packets", name);
    bench_report("di", text, (double)in.bytes.n / best(5, frame, &in) / 1e6, "MB/s", NULL, 0);
    snprintf(text, sizeof text, "%s: events", name);
    const double seconds = best(5, decode, &in);
    bench_report("di", text, (double)in.bytes.n / seconds / 1e6, "MB/s", NULL, 0);
    tl_buf_fini(&in.bytes);
}

int main(void)
{
    measure("CTM 32 bit", 32, 12, 0);
    measure("CTM 64 bit, split", 64, 12, 0);
    measure("CTM 64 bit, whole", 64, 16, 0);
    measure("CTM and STM 32 bit", 32, 12, 40);
    return 0;
}
