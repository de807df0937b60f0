/* SPDX-License-Identifier: MIT */
/*
 * Builds the structures of a tape, 64 packets at a time (AVX-512 with VBMI2), from headers, offsets
 * and values. Rare packets are then corrected individually.
 */
#include "etm4/tape_parts.h"

#if defined(__x86_64__)

#include "etm4/unrolled_parts.h"

#include <immintrin.h>

TL_TARGET_BEGIN(TL_AVX512_TARGET)

#define ALWAYS_INLINE inline __attribute__((always_inline))
#define BYTES(byte)   _mm512_set1_epi8((char)(byte))

/* Parts of the structures, by packet of the block. */
struct block {
    uint8_t header[64];
    uint16_t at[64];
    uint64_t offset[64];
    uint64_t value[64]; /* to be added to the template's; of addresses with IS1 in bit 0 */
};

/* Table lookup by header, in 256 bytes. */
static ALWAYS_INLINE __m512i look_up(const uint8_t table[static 256], __m512i header)
{
    const __m512i low =
        _mm512_permutex2var_epi8(_mm512_loadu_si512(table), header, _mm512_loadu_si512(table + 64));
    const __m512i high = _mm512_permutex2var_epi8(_mm512_loadu_si512(table + 128), header,
                                                  _mm512_loadu_si512(table + 192));
    return _mm512_mask_blend_epi8(_mm512_movepi8_mask(header), low, high);
}

static ALWAYS_INLINE void offsets_of(const struct tl_run *run, struct block *block, unsigned n)
{
    const __m512i base = _mm512_set1_epi64((int64_t)run->base);

    if (run->place) {
        for (unsigned k = 0; k < n; k++)
            if (block->header[k] != TL_TAPE_OTHER)
                block->offset[k] = run->base + run->place[block->at[k]];
        return;
    }
    for (unsigned k = 0; k < n; k += 8) {
        const __m512i at = _mm512_cvtepu16_epi64(_mm_loadu_si128((const __m128i *)(block->at + k)));
        _mm512_storeu_si512(block->offset + k, _mm512_add_epi64(base, at));
    }
}

/* Values: addresses for packets in `which`, the threshold for those in `cycles`. Returns the
 * packets with IS1. */
static ALWAYS_INLINE uint64_t values_of(struct tl_tape_reader *r, struct block *block, unsigned n,
                                        uint64_t which, uint64_t cycles)
{
    const __m512i threshold = _mm512_set1_epi64((int64_t)r->tape->threshold);
    const __m512i one = _mm512_set1_epi64(1);
    uint64_t is1 = 0;

    for (unsigned k = 0; k < n; k += 8) {
        const __mmask8 some = (__mmask8)(which >> k);
        const __m512i address = _mm512_maskz_expandloadu_epi64(some, r->address);
        is1 |= (uint64_t)_mm512_test_epi64_mask(address, one) << k;
        _mm512_storeu_si512(block->value + k,
                            _mm512_mask_mov_epi64(_mm512_andnot_si512(one, address),
                                                  (__mmask8)(cycles >> k), threshold));
        r->address += __builtin_popcount(some);
    }
    return is1;
}

static ALWAYS_INLINE void write_all(const struct tl_etm4_forms *forms, const struct block *block,
                                    unsigned n, struct tl_etm4_packet *out)
{
    for (unsigned k = 0; k < n; k++) {
        const __m256i *const fixed = (const __m256i *)&forms->fixed[block->header[k]];
        const __m128i both = _mm_insert_epi64(_mm_cvtsi64_si128((int64_t)block->offset[k]),
                                              (int64_t)block->value[k], 1);
        _mm256_storeu_si256(
            (__m256i *)&out[k],
            _mm256_add_epi64(_mm256_loadu_si256(fixed),
                             _mm256_maskz_permutex_epi64(6, _mm256_castsi128_si256(both), 0x10)));
    }
}

/* Correct the packets in `which`: those to be parsed, and those in the column of others. */
static ALWAYS_INLINE void write_rare(struct tl_tape_reader *r, const struct block *block,
                                     uint64_t which, struct tl_etm4_packet *out)
{
    for (; which != 0; which &= which - 1) {
        const unsigned k = (unsigned)__builtin_ctzll(which);
        const uint8_t header = block->header[k];
        if (header == TL_TAPE_OTHER) {
            out[k] = *r->other++;
            continue;
        }
        tl_etm4_tape_parse(r->tape, block->at[k], &out[k]);
        if (tl_etm4_is_address(header))
            out[k].value = block->value[k];
    }
}

/* Build the next `n` packets. */
static ALWAYS_INLINE void read_block(struct tl_tape_reader *r, unsigned n,
                                     struct tl_etm4_packet *out)
{
    const struct tl_etm4_forms *const forms = r->tape->forms;
    const uint64_t all = ~0ull >> (64 - n);
    const __m512i header = _mm512_maskz_loadu_epi8(all, r->header);
    const __m512i fill = look_up(forms->fill, header);
    struct block block;

    _mm512_storeu_si512(block.header, header);
    _mm512_storeu_si512(block.at, _mm512_maskz_loadu_epi16((__mmask32)all, r->at));
    _mm512_storeu_si512(block.at + 32,
                        _mm512_maskz_loadu_epi16((__mmask32)(all >> 32), r->at + 32));

    const uint64_t shorts = _mm512_cmpeq_epi8_mask(fill, BYTES(TL_FILL_SHORT)) & all;
    const uint64_t rare = _mm512_cmplt_epu8_mask(fill, BYTES(TL_FILL_FIXED)) & all;
    const uint64_t addresses =
        _mm512_cmple_epu8_mask(_mm512_sub_epi8(header, BYTES(0x82)), BYTES(0x9e - 0x82)) & all;
    offsets_of(&r->tape->run, &block, n);
    uint64_t is1 = values_of(r, &block, n, addresses,
                             _mm512_cmpeq_epi8_mask(fill, BYTES(TL_FILL_CYCLES)) & all);
    write_all(forms, &block, n, out);
    for (uint64_t left = shorts; left != 0; left &= left - 1) {
        const unsigned k = (unsigned)__builtin_ctzll(left);
        out[k].bits = (uint8_t)(forms->fixed[block.header[k]].bits +
                                (r->tape->run.p[block.at[k] + 1] >> 7 << 3));
    }
    for (; is1 != 0; is1 &= is1 - 1)
        out[__builtin_ctzll(is1)].flags |= TL_ETM4_IS1;
    if (rare != 0)
        write_rare(r, &block, rare, out);
    r->header += n;
    r->at += n;
}

size_t tl_etm4_tape_whole_avx512(struct tl_tape_reader *r, size_t n, struct tl_etm4_packet *out)
{
    for (size_t k = 0; k < n; k += 64)
        read_block(r, (unsigned)(n - k < 64 ? n - k : 64), out + k);
    return n;
}

TL_TARGET_END

#endif
