/* SPDX-License-Identifier: MIT */
#include "base/crc32c.h"

#include "simd/target.h"

#include <string.h>

static uint32_t portable(uint32_t crc, const uint8_t *p, size_t n)
{
    /* One nibble at a time: small table, only for machines without the instruction. */
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
TL_TARGET(TL_SSE42_TARGET) static uint32_t sse42(uint32_t crc, const uint8_t *p, size_t n)
{
    uint64_t c = crc;
    for (; n >= 8; n -= 8, p += 8) {
        uint64_t word;
        memcpy(&word, p, sizeof word);
        c = __builtin_ia32_crc32di(c, word);
    }
    crc = (uint32_t)c;
    for (; n; n--)
        crc = __builtin_ia32_crc32qi(crc, *p++);
    return crc;
}

static uint32_t update(uint32_t crc, const uint8_t *p, size_t n)
{
    return __builtin_cpu_supports("sse4.2") ? sse42(crc, p, n) : portable(crc, p, n);
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
