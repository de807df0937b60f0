/* SPDX-License-Identifier: MIT */
/*
 * Closing records of an instruction's group, for every instruction length. Decoders can prepare
 * them in blocks (tl_decode_set_code()). Header only, pure, thread-safe.
 *
 * 4 bytes: INST_32. 2 bytes: INST_16. Other lengths (x86, long RISC-V encodings) have no closing
 * record in STF:
 *
 *     INST_PC_TARGET  the address after the instruction, because readers add only 2 or 4
 *     INST_MICROOP…   all its bytes in memory order, 1 to 4 in each: size = how many, the rest 0
 *     INST_32         its first four bytes in memory order (INST_16: the first two, if it is
 *                     shorter than four bytes; a single byte is followed by 0)
 *
 * If the last instruction of a block branches, the writer replaces this INST_PC_TARGET.
 */
#ifndef TL_STF_CLOSE_H
#define TL_STF_CLOSE_H

#include "base/bytes.h"
#include "isa/isa.h"
#include "stf/record.h"

#define TL_STF_INSN_MAX 16 /* maximum bytes of an instruction */
#define TL_STF_CLOSE_MAX                                                                           \
    (TL_STF_TARGET_BYTES + 4 * TL_STF_MICROOP_BYTES + TL_STF_CLOSING_BYTES) /* of its records */

/* Is `size` a length without a closing record in STF? */
static inline bool tl_stf_is_odd(uint32_t size)
{
    return size != 2 && size != 4;
}

static inline uint32_t tl_stf_put_microop(uint8_t out[static TL_STF_MICROOP_BYTES], uint32_t n,
                                          uint32_t bytes)
{
    out[0] = TL_STF_INST_MICROOP;
    out[1] = (uint8_t)n;
    tl_put_le32(out + 2, bytes);
    return TL_STF_MICROOP_BYTES;
}

/* The last `n` (1..4) of `size` bytes, little-endian. */
static inline uint32_t tl_stf_last_bytes(const uint8_t *code, uint32_t size, uint32_t n)
{
    if (size >= 4)
        return tl_le32(code + size - 4) >> 8 * (4 - n);
    return size == 1   ? code[0]
           : size == 2 ? tl_le16(code)
                       : tl_le16(code) | (uint32_t)code[2] << 16;
}

/*
 * Write the closing records of the instruction `code` of `size` (1..16) bytes at `pc`. `encoding`
 * is its value (2- and 4-byte instructions only). Returns the number of bytes.
 */
static inline uint32_t tl_stf_close_insn(uint8_t out[static TL_STF_CLOSE_MAX], uint64_t pc,
                                         const uint8_t *code, uint32_t size, uint32_t encoding)
{
    uint8_t *p = out;
    if (tl_stf_is_odd(size)) {
        *p++ = TL_STF_INST_PC_TARGET;
        tl_put_le64(p, pc + size);
        p += 8;
        uint32_t left = size;
        for (; left > 4; left -= 4)
            p += tl_stf_put_microop(p, 4, tl_le32(code + (size - left)));
        p += tl_stf_put_microop(p, left, tl_stf_last_bytes(code, size, left));
        encoding = tl_stf_last_bytes(code, size < 4 ? size : 4, size < 4 ? size : 4);
    }
    if (size < 4) {
        *p++ = TL_STF_INST_16;
        tl_put_le16(p, (uint16_t)encoding);
        p += 2;
    } else {
        *p++ = TL_STF_INST_32;
        tl_put_le32(p, encoding);
        p += 4;
    }
    return (uint32_t)(p - out);
}

/* tl_stf_close_insn() as a tl_block_code. */
static inline uint32_t tl_stf_block_code(uint8_t *out, uint64_t pc, const uint8_t *code,
                                         uint32_t size, uint32_t encoding, enum tl_isa isa)
{
    (void)isa;
    return tl_stf_close_insn(out, pc, code, size, encoding);
}

#endif
