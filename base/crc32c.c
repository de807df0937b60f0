/* SPDX-License-Identifier: MIT */
/*
 * Three variants by what the processor has: a table of nibbles, the CRC instruction, and that
 * instruction on three parts at once. A single chain of the instruction waits three cycles for each
 * result, and uses a third of what the processor can do.
 */
#include "base/crc32c.h"

#include "base/bytes.h"
#include "base/target.h"

static uint32_t portable(uint32_t crc, const uint8_t *p, size_t n)
{
    /* One nibble at a time: a small table, only for machines without the instruction. */
    static const uint32_t table[16] = {
        0x00000000, 0x105ec76f, 0x20bd8ede, 0x30e349b1, 0x417b1dbc, 0x5125dad3,
        0x61c69362, 0x7198540d, 0x82f63b78, 0x92a8fc17, 0xa24bb5a6, 0xb21572c9,
        0xc38d26c4, 0xd3d3e1ab, 0xe330a81a, 0xf36e6f75,
    };
    while (n--) {
        crc ^= *p++;
        crc = crc >> 4 ^ table[crc & 15];
        crc = crc >> 4 ^ table[crc & 15];
    }
    return crc;
}

#if defined(__x86_64__)
#include <immintrin.h>

TL_TARGET(TL_SSE42_TARGET) static uint32_t sse42(uint32_t crc, const uint8_t *p, size_t n)
{
    uint64_t c = crc;
    for (; n >= 8; n -= 8, p += 8)
        c = _mm_crc32_u64(c, tl_le64(p));
    crc = (uint32_t)c;
    for (; n; n--)
        crc = _mm_crc32_u8(crc, *p++);
    return crc;
}

#define PART 512 /* bytes */

/*
 * The instruction has a latency of three cycles, so three parts are processed in parallel. The CRC
 * of a part is advanced over the n bytes after it by a multiplication with x^(8n - 33) modulo the
 * polynomial; a CRC step of 8 bytes supplies the missing x^33 and the reduction.
 */
__attribute__((target("sse4.2,pclmul"))) static uint32_t pclmul(uint32_t crc, const uint8_t *p,
                                                                size_t n)
{
    const __m128i over_one = _mm_cvtsi32_si128((int)0xdd7e3b0c),
                  over_two = _mm_cvtsi32_si128(0x170076fa);
    for (; n >= 3 * PART; n -= 3 * PART, p += 3 * PART) {
        uint64_t a = crc, b = 0, c = 0;
        for (size_t i = 0; i < PART; i += 8) {
            a = _mm_crc32_u64(a, tl_le64(p + i));
            b = _mm_crc32_u64(b, tl_le64(p + PART + i));
            c = _mm_crc32_u64(c, tl_le64(p + 2 * PART + i));
        }
        const __m128i moved =
            _mm_xor_si128(_mm_clmulepi64_si128(_mm_cvtsi64_si128((long long)a), over_two, 0),
                          _mm_clmulepi64_si128(_mm_cvtsi64_si128((long long)b), over_one, 0));
        crc = (uint32_t)(_mm_crc32_u64(0, (uint64_t)_mm_cvtsi128_si64(moved)) ^ c);
    }
    return sse42(crc, p, n);
}

static uint32_t update(uint32_t crc, const uint8_t *p, size_t n)
{
    if (!__builtin_cpu_supports("sse4.2"))
        return portable(crc, p, n);
    return __builtin_cpu_supports("pclmul") ? pclmul(crc, p, n) : sse42(crc, p, n);
}
#else
static uint32_t update(uint32_t crc, const uint8_t *p, size_t n)
{
    return portable(crc, p, n);
}
#endif

uint32_t tl_crc32c(uint32_t crc, const void *p, size_t n)
{
    return ~update(~crc, p, n);
}

/* Polynomials modulo that of the CRC: bit 31 is x^0. */
static uint32_t multiply(uint32_t a, uint32_t b)
{
    uint32_t product = 0;
    for (; a; a <<= 1) {
        if (a >> 31)
            product ^= b;
        b = b >> 1 ^ (b & 1 ? 0x82f63b78 : 0);
    }
    return product;
}

/* The first checksum is advanced over the later bytes: by a multiplication with x^(8 n). */
uint32_t tl_crc32c_join(uint32_t crc, uint32_t after, size_t n_after)
{
    uint32_t power = UINT32_C(1) << 23; /* x^8, squared for each bit */
    for (; n_after; n_after >>= 1) {
        if (n_after & 1)
            crc = multiply(crc, power);
        power = multiply(power, power);
    }
    return crc ^ after;
}
