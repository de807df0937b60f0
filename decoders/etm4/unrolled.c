/* SPDX-License-Identifier: MIT */
#include "etm4/unrolled.h"

#include "etm4/headers.h"
#include "etm4/unrolled_parts.h"

#include <string.h>

#define HEADER_BITS 3 /* the two lowest bits of a header, in front of a payload */

const struct tl_etm4_step tl_etm4_steps[TL_ACTION_STEPS] = {
    [0] = {.keep = UINT64_MAX},
    [1] = {.recall = UINT64_MAX, .back = -1},
    [2] = {.recall = UINT64_MAX, .back = -2},
    [TL_ACTION_SHORT1 - TL_ACTION_ADDRESS] = {.extract = 0x7f00 | HEADER_BITS,
                                              .flip = 0x95 & HEADER_BITS,
                                              .keep = ~0x1ffull},
    [TL_ACTION_SHORT2 - TL_ACTION_ADDRESS] = {.extract = 0xff7f00 | HEADER_BITS,
                                              .flip = 0x95 & HEADER_BITS,
                                              .keep = ~0x1ffffull},
    [TL_ACTION_LONG32 - TL_ACTION_ADDRESS] = /* what it keeps depends on the context */
    {.extract = 0xffff7f7f00 | HEADER_BITS, .flip = 0x9a & HEADER_BITS},
};

#define ROW(r)                                                                                     \
    {                                                                                              \
        P(r, 0), P(r, 1), P(r, 2), P(r, 3), P(r, 4), P(r, 5), P(r, 6), P(r, 7), P(r, 8), P(r, 9),  \
            P(r, 10), P(r, 11), P(r, 12), P(r, 13), P(r, 14), P(r, 15), P(r, 16), P(r, 17),        \
            P(r, 18), P(r, 19), P(r, 20), P(r, 21), P(r, 22), P(r, 23), P(r, 24), P(r, 25),        \
            P(r, 26), P(r, 27), P(r, 28), P(r, 29), P(r, 30), P(r, 31), P(r, 32), P(r, 33),        \
            P(r, 34), P(r, 35), P(r, 36), P(r, 37), P(r, 38), P(r, 39), P(r, 40), P(r, 41),        \
            P(r, 42), P(r, 43), P(r, 44), P(r, 45), P(r, 46), P(r, 47), P(r, 48), P(r, 49),        \
            P(r, 50), P(r, 51), P(r, 52), P(r, 53), P(r, 54), P(r, 55), P(r, 56), P(r, 57),        \
            P(r, 58), P(r, 59), P(r, 60), P(r, 61), P(r, 62), P(r, 63)                             \
    }
#define P(r, k) ((k) + ((r) + (k)) / 15)

const uint8_t tl_etm4_frame_places[16][64] = {
    ROW(0),  ROW(1), ROW(2),  ROW(3),  ROW(4),  ROW(5),  ROW(6),  ROW(7),
    ROW(8),  ROW(9), ROW(10), ROW(11), ROW(12), ROW(13), ROW(14),
#undef P
#define P(r, k) (k)
    ROW(15),
};

static void set_action(struct tl_etm4_packetizer *p, unsigned action,
                       const struct tl_etm4_packet *packet)
{
    memcpy(p->actions[action], packet, sizeof *packet);
}

static void set_address(struct tl_etm4_packetizer *p, unsigned action, uint8_t header, unsigned n,
                        unsigned bits)
{
    set_action(p, action,
               &(struct tl_etm4_packet){.type = TL_ETM4_ADDRESS,
                                        .header = header,
                                        .n = (uint8_t)n,
                                        .bits = (uint8_t)bits,
                                        .flags = bits == 0 ? TL_ETM4_EXACT : 0});
}

static void set_cycles(struct tl_etm4_packetizer *p)
{
    for (unsigned k = 0; k < 16; k++) {
        struct tl_etm4_packet packet = {.type = TL_ETM4_CYCLE_COUNT,
                                        .header = (uint8_t)(0x10 | k),
                                        .flags = TL_ETM4_HAS_COUNT,
                                        .value = p->regs.threshold + (k & 3)};
        if (!p->config.commit_opt1) {
            packet.flags |= TL_ETM4_HAS_COMMIT;
            packet.value2 = (k >> 2) + 1;
        }
        set_action(p, TL_ACTION_CYCLES + k, &packet);
    }
    for (unsigned k = 0; k < 3; k++)
        set_action(
            p, TL_ACTION_CYCLES2 + k,
            &(struct tl_etm4_packet){.type = TL_ETM4_CYCLE_COUNT,
                                     .header = (uint8_t)(0x0c + k),
                                     .flags = TL_ETM4_HAS_COUNT | (k < 2 ? TL_ETM4_HAS_COMMIT : 0),
                                     .value = p->regs.threshold});
    p->actions_threshold = p->regs.threshold;
}

void tl_etm4_cycles_fill(const struct tl_etm4_packetizer *p, const uint8_t *b,
                         struct tl_etm4_packet *out)
{
    const int64_t base = b[0] & 1 ? (int64_t)p->config.max_spec_depth - 15 : 1;
    const int64_t commits = base + (b[1] >> 4);

    if (b[0] == 0x0e) {
        out->value += b[1];
        return;
    }
    out->value += b[1] & 15;
    out->value2 = commits > 0 ? (uint64_t)commits : 0;
}

static void set_all(struct tl_etm4_packetizer *p)
{
    memset(p->actions, 0, sizeof p->actions);
    for (unsigned k = 0; k < 64; k++)
        set_action(p, k,
                   &(struct tl_etm4_packet){.type = TL_ETM4_ATOM,
                                            .header = (uint8_t)(TL_ETM4_ATOM_FIRST + k),
                                            .n = (uint8_t)(tl_etm4_atoms[k] >> 24),
                                            .value = tl_etm4_atoms[k] & 0xffffff});
    for (unsigned k = 0; k < 3; k++)
        set_address(p, TL_ACTION_MATCH + k, (uint8_t)(0x90 + k), k, 0);
    set_address(p, TL_ACTION_SHORT1, 0x95, 0, 9);
    set_address(p, TL_ACTION_SHORT2, 0x95, 0, 17);
    set_address(p, TL_ACTION_LONG32, 0x9a, 0, 32);
    set_cycles(p);
}

void tl_etm4_actions_update(struct tl_etm4_packetizer *p)
{
    if (p->actions_threshold != p->regs.threshold)
        set_cycles(p);
}

#if defined(__x86_64__)

static const struct tl_etm4_kernel kernels[] = {
    {TL_CPU_AVX2, 8, tl_etm4_avx2_8},       {TL_CPU_AVX2, 16, tl_etm4_avx2_16},
    {TL_CPU_AVX2, 32, tl_etm4_avx2_32},     {TL_CPU_AVX2, 60, tl_etm4_avx2_60},
    {TL_CPU_AVX512, 8, tl_etm4_avx512_8},   {TL_CPU_AVX512, 16, tl_etm4_avx512_16},
    {TL_CPU_AVX512, 32, tl_etm4_avx512_32}, {TL_CPU_AVX512, 60, tl_etm4_avx512_60},
};
#define N_KERNELS (sizeof kernels / sizeof kernels[0])

/* The level promises VBMI; these kernels compress bytes, too. */
static bool has_vbmi2(void)
{
    __builtin_cpu_init();
    return __builtin_cpu_supports("avx512vbmi2");
}

const struct tl_etm4_kernel *tl_etm4_kernel_at(enum tl_cpu level)
{
    if (level >= TL_CPU_AVX512 && has_vbmi2())
        return &kernels[N_KERNELS - 1];
    return level >= TL_CPU_AVX2 ? &kernels[3] : NULL;
}

#else

static const struct tl_etm4_kernel kernels[1];
#define N_KERNELS 0

const struct tl_etm4_kernel *tl_etm4_kernel_at(enum tl_cpu level)
{
    (void)level;
    return NULL;
}

#endif

const struct tl_etm4_kernel *tl_etm4_kernels(size_t *n)
{
    *n = N_KERNELS;
    return kernels;
}

void tl_etm4_packetizer_use(struct tl_etm4_packetizer *p, const struct tl_etm4_kernel *kernel)
{
    p->kernel = kernel;
    set_all(p);
}
