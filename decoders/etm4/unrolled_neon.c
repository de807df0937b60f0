/* SPDX-License-Identifier: MIT */
/* Kernels of the unrolled packetizer for AArch64's Advanced SIMD. */
#include "etm4/unrolled_parts.h"

#if defined(__aarch64__) && !defined(__AARCH64EB__)

#include <arm_neon.h>
#include <string.h>

#define ALWAYS_INLINE inline __attribute__((always_inline))

struct lengths;
static ALWAYS_INLINE struct lengths lengths_of(const struct tl_etm4_forms *forms, const uint8_t *b,
                                               uint64_t *addresses);

static ALWAYS_INLINE size_t compress8(struct tl_etm4_columns *c, size_t n, const uint8_t *bytes,
                                      uint64_t which, unsigned base)
{
    const uint8x8_t bits = vcreate_u8(tl_etm4_set_bits[which]);

    vst1_u8(c->header + n, vtbl1_u8(vld1_u8(bytes), bits));
    vst1q_u16(c->at + n, vaddw_u8(vdupq_n_u16((uint16_t)base), bits));
    return (size_t)__builtin_popcountll(which);
}

#include "etm4/unrolled_masks_body.h"

/* 64 bytes, of which each is ff or 00, as a mask: byte k is bit k. */
static ALWAYS_INLINE uint64_t mask_of(uint8x16_t a, uint8x16_t b, uint8x16_t c, uint8x16_t d)
{
    const uint8x16_t bit = vreinterpretq_u8_u64(vdupq_n_u64(0x8040201008040201));
    const uint8x16_t ab = vpaddq_u8(vandq_u8(a, bit), vandq_u8(b, bit));
    const uint8x16_t cd = vpaddq_u8(vandq_u8(c, bit), vandq_u8(d, bit));
    const uint8x16_t all = vpaddq_u8(ab, cd);

    return vgetq_lane_u64(vreinterpretq_u64_u8(vpaddq_u8(all, all)), 0);
}

static ALWAYS_INLINE uint64_t equal(const uint8x16_t v[4], uint8_t byte)
{
    const uint8x16_t all = vdupq_n_u8(byte);

    return mask_of(vceqq_u8(v[0], all), vceqq_u8(v[1], all), vceqq_u8(v[2], all),
                   vceqq_u8(v[3], all));
}

/*
 * Lengths of the packets that may begin at each byte; of those that blocks do not take, others.
 * A look-up behind its table's end gives 0: headers are those below 20, 90 to 9f, and atoms.
 */
static ALWAYS_INLINE uint8x16_t length_of(uint8x16x2_t low, uint8x16_t addresses, const uint8_t *b,
                                          uint8x16_t v)
{
    const uint8x16_t shape =
        vorrq_u8(vqtbl2q_u8(low, v), vqtbl1q_u8(addresses, veorq_u8(v, vdupq_n_u8(0x90))));
    const uint8x16_t longer = vshrq_n_u8(vandq_u8(shape, vld1q_u8(b + 1)), 7);
    const uint8x16_t length = vaddq_u8(vandq_u8(shape, vdupq_n_u8(0x7f)), longer);

    return vsubq_u8(length, vcgeq_u8(v, vdupq_n_u8(0xc0))); /* true is -1 */
}

static ALWAYS_INLINE struct lengths lengths_of(const struct tl_etm4_forms *forms, const uint8_t *b,
                                               uint64_t *addresses)
{
    const uint8x16x2_t low = {{vld1q_u8(forms->shape), vld1q_u8(forms->shape + 0x10)}};
    const uint8x16_t high = vld1q_u8(forms->shape + 0x90);
    uint8x16_t length[4], nibble[4];

    for (unsigned k = 0; k < 4; k++) {
        const uint8x16_t v = vld1q_u8(b + 16 * k);
        length[k] = length_of(low, high, b + 16 * k, v);
        nibble[k] = vshrq_n_u8(v, 4);
    }
    *addresses = equal(nibble, 9);
    return (struct lengths){.one = equal(length, 1),
                            .two = equal(length, 2),
                            .three = equal(length, 3),
                            .five = equal(length, 5),
                            .nine = equal(length, 9)};
}

TL_KERNEL_OF(neon, 1)
TL_KERNEL_OF(neon, 2)
TL_KERNEL_OF(neon, 4)
TL_KERNEL_OF(neon, 8)
TL_KERNEL_OF(neon, 16)
TL_KERNEL_OF(neon, 32)
TL_KERNEL_OF(neon, 64)

#endif
