/* SPDX-License-Identifier: MIT */
/*
 * The unrolled packetizer for AArch64's Advanced SIMD, blocks as 64-bit masks: unrolled(), by a
 * constant unroll factor. Compiled by unrolled_neon.c with the factor that decoders use, and with
 * all of them for tests.
 *
 * Contexts, which may change how addresses are resolved, are processed individually.
 *
 * End to end: unknown, it has run under emulation alone.
 */
#include "etm4/unrolled_parts.h"

#if defined(__aarch64__) && !defined(__AARCH64EB__)

#include <arm_neon.h>
#include <string.h>

#define ALWAYS_INLINE inline __attribute__((always_inline))

/* Masks over 64 bytes, bit k for byte k, by the length of a packet beginning there. */
struct lengths {
    uint64_t one, two, three, five, nine;
};

/* Convert 64 bytes of ff or 00 to a bit mask: bit k for byte k. */
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
 * Lengths of the packets that may begin at each byte; other values for packets that blocks cannot
 * handle. A lookup beyond the table's end gives 0: valid headers are those below 20, 90 to 9f, and
 * atoms.
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

/*
 * The payload bytes of all packets that may begin in the block. A byte that looks like the header
 * of a longer packet may itself be payload. The first such byte certainly is, since everything
 * before it is settled; remove it and repeat until none is left.
 */
static ALWAYS_INLINE uint64_t payload_of(const struct lengths *l)
{
    uint64_t nine = l->nine; /* or more */
    uint64_t five = l->five | nine;
    uint64_t three = l->three | five;
    uint64_t two = l->two | three;

    for (;;) {
        const uint64_t pairs = five << 1 | nine << 3 | nine << 5;
        const uint64_t payload = two << 1 | three << 2 | pairs << 2 | pairs << 3;
        const uint64_t wrong = payload & two;
        if (__builtin_expect(wrong == 0, 1))
            return payload;
        const uint64_t stays = ~(wrong & -wrong);
        two &= stays;
        three &= stays;
        five &= stays;
        nine &= stays;
    }
}

/* Write header and position of those of 8 bytes in `which`, as packets from `n` on. Returns how
 * many. */
static ALWAYS_INLINE size_t compress8(struct tl_etm4_columns *c, size_t n, const uint8_t *bytes,
                                      uint64_t which, unsigned base)
{
    const uint8x8_t bits = vcreate_u8(tl_etm4_set_bits[which]);

    vst1_u8(c->header + n, vtbl1_u8(vld1_u8(bytes), bits));
    vst1q_u16(c->at + n, vaddw_u8(vdupq_n_u16((uint16_t)base), bits));
    return (size_t)__builtin_popcountll(which);
}

/* Resolve the addresses among the packets in `heads`, one by one. */
static ALWAYS_INLINE void add_addresses(struct tl_etm4_packetizer *p, const uint8_t *b,
                                        uint64_t heads)
{
    struct tl_etm4_columns *const c = &p->columns;
    struct tl_etm4_history history = tl_etm4_history_of(&p->regs);
    const unsigned sf = p->regs.sf;
    uint64_t *out = c->address + c->n_addresses;

    for (; heads != 0; heads &= heads - 1) {
        const uint8_t *const packet = b + __builtin_ctzll(heads);
        uint64_t payload;
        memcpy(&payload, packet + 1, sizeof payload);
        *out++ = tl_etm4_resolve(&history, packet[0], payload, sf);
    }
    c->n_addresses = c->n_found = (size_t)(out - c->address);
    tl_etm4_history_keep(&history, &p->regs);
}

/*
 * Process one block from byte `i` on. Returns the index of the first byte after its packets; *stuck
 * is set if there is a header there that blocks cannot handle.
 */
static ALWAYS_INLINE size_t one_block(struct tl_etm4_packetizer *p, const uint8_t *b, size_t i,
                                      unsigned unroll, bool *stuck)
{
    struct tl_etm4_columns *const c = &p->columns;
    uint64_t addresses;
    const struct lengths l = lengths_of(&p->forms, b + i, &addresses);
    const uint64_t payload = payload_of(&l);
    const uint64_t odd = ~(l.one | l.two | l.three | l.five | l.nine | payload);
    const uint64_t heads =
        ~payload & ((odd & -odd) - 1) & ~0ull >> (64 - unroll); /* before the first odd one */

    *stuck = heads == 0;
    if (heads == 0)
        return i;
    if (c->n + 64 > TL_TAPE_PACKETS)
        tl_etm4_columns_flush(p);
    size_t n = c->n;
    for (unsigned k = 0; k < unroll; k += 8)
        n += compress8(c, n, b + i + k, heads >> k & 0xff, (unsigned)(i + k));
    c->n = n;
    if ((addresses & heads) != 0)
        add_addresses(p, b + i, addresses & heads);
    const unsigned last = 63 - (unsigned)__builtin_clzll(heads);
    return i + last + 1 + (l.two >> last & 1) + 2 * (l.three >> last & 1) +
           4 * (l.five >> last & 1) + 8 * (l.nine >> last & 1);
}

static ALWAYS_INLINE size_t unrolled(struct tl_etm4_packetizer *p, const struct tl_run *run,
                                     size_t i, unsigned unroll)
{
    while (run->n - i >= TL_UNROLLED_REACH && p->failed >= 0) {
        bool stuck;
        i = one_block(p, run->p, i, unroll, &stuck);
        if (stuck) {
            const size_t next = tl_etm4_plain(p, run, i, i + 1);
            const size_t length = next > i ? next - i : tl_etm4_parse_one(p, run, i);
            if (length == 0)
                return i;
            i += length;
        }
    }
    return i;
}

#endif
