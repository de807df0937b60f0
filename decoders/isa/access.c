/* SPDX-License-Identifier: MIT */
/*
 * Loads and stores of A32 and T32, from the tables of encodings: nearly all have one bit that tells
 * them apart, at a place by class. Only direction and size are told, with which a trace of data is
 * matched.
 */
#include "isa/access.h"

#include "base/bytes.h"

enum { BYTE = 1, HALF = 2, WORD = 4 };

static const struct tl_access none;

static struct tl_access by(bool loads, uint8_t size)
{
    return (struct tl_access){loads ? TL_LOADS : TL_STORES, size};
}

static bool bit(uint32_t code, unsigned n)
{
    return code >> n & 1;
}

/* Halfwords, signed bytes, doublewords, exclusive accesses: bits 7 and 4 are set. */
static struct tl_access a32_extra(uint32_t code)
{
    static const uint8_t exclusive[] = {WORD, WORD, BYTE, HALF};
    const bool loads = bit(code, 20);
    switch (code >> 5 & 3) {
    case 0: /* multiplications where bit 24 is clear, SWP where bit 23 is */
        return bit(code, 24) && bit(code, 23) ? by(loads, exclusive[code >> 21 & 3]) : none;
    case 1:
        return by(loads, HALF);
    case 2: /* LDRSB, LDRD */
        return by(true, loads ? BYTE : WORD);
    default: /* LDRSH, STRD */
        return by(loads, loads ? HALF : WORD);
    }
}

/* Coprocessor and VFP registers. MCRR and MRRC, where no bit of these is set, are no accesses. */
static struct tl_access coprocessor(uint32_t code)
{
    return code >> 21 & 0xd ? by(bit(code, 20), WORD) : none;
}

static struct tl_access a32(uint32_t code)
{
    const bool unconditional = code >> 28 == 15;
    switch (code >> 25 & 7) {
    case 0:
        return !unconditional && bit(code, 7) && bit(code, 4) ? a32_extra(code) : none;
    case 2:
    case 3:
        if (unconditional) /* VLD, VST; preloads */
            return (code >> 24 & 15) == 4 && !bit(code, 20) ? by(bit(code, 21), WORD) : none;
        if (bit(code, 25) && bit(code, 4)) /* media */
            return none;
        return by(bit(code, 20), bit(code, 22) ? BYTE : WORD);
    case 4:
        return by(bit(code, 20), WORD);
    case 6:
        return coprocessor(code);
    default:
        return none;
    }
}

static struct tl_access t16(uint32_t code)
{
    static const uint8_t by_register[] = {WORD, HALF, BYTE, BYTE, WORD, HALF, BYTE, HALF};
    const bool loads = bit(code, 11);
    switch (code >> 12) {
    case 4: /* a literal */
        return loads ? by(true, WORD) : none;
    case 5:
        return by((code >> 9 & 7) > 2, by_register[code >> 9 & 7]);
    case 7:
        return by(loads, BYTE);
    case 8:
        return by(loads, HALF);
    case 6:
    case 9:
    case 12:
        return by(loads, WORD);
    case 11: /* PUSH, POP */
        return (code >> 9 & 3) == 2 ? by(loads, WORD) : none;
    default:
        return none;
    }
}

/* Multiple, dual, exclusive; table branches. */
static struct tl_access t32_multiple(uint32_t code)
{
    static const uint8_t sizes[] = {BYTE, HALF, WORD, WORD};
    const bool sized = (code >> 20 & 0xfe) == 0x8c; /* TBB, TBH, LDREXB, LDREXH, … */
    return by(bit(code, 20), sized ? sizes[code >> 4 & 3] : WORD);
}

static struct tl_access t32(uint32_t code)
{
    static const uint8_t sizes[] = {BYTE, HALF, WORD, WORD};
    switch (code >> 25) {
    case 0x74:
        return t32_multiple(code);
    case 0x76:
        return coprocessor(code);
    case 0x7c:
        if (bit(code, 24) && !bit(code, 20)) /* VLD, VST: elements and structures */
            return by(bit(code, 21), WORD);
        return by(bit(code, 20), sizes[code >> 21 & 3]);
    default:
        return none;
    }
}

struct tl_access tl_access_of(enum tl_isa isa, const uint8_t *code, uint32_t size)
{
    if (isa == TL_ISA_A32 && size == 4)
        return a32(tl_le32(code));
    if (isa == TL_ISA_T32 && size == 2)
        return t16(tl_le16(code));
    if (isa == TL_ISA_T32 && size == 4)
        return t32((uint32_t)tl_le16(code) << 16 | tl_le16(code + 2));
    return none;
}
