/* SPDX-License-Identifier: MIT */
/* What the kernels share with each other and with the scalar packetizer. Not for users. */
#ifndef TL_ETM4_UNROLLED_PARTS_H
#define TL_ETM4_UNROLLED_PARTS_H

#include "etm4/headers.h"
#include "etm4/packetizer.h"
#include "simd/target.h"

/* What an address packet says, and what it keeps of the last address and of those before. */
struct tl_etm4_address_form {
    uint64_t said; /* payload bits that are address */
    uint64_t kept[3];
    uint64_t is0;
};

/* By SF, bits 4:0 of the header, and bit 7 of the first payload byte. */
extern const struct tl_etm4_address_form tl_etm4_address_forms[2][64];

/* The three addresses before, newest first, with bit 0 for IS1: no address has it set. */
struct tl_etm4_history {
    uint64_t a, b, c;
};

static inline struct tl_etm4_history tl_etm4_history_of(const struct tl_etm4_registers *regs)
{
    return (struct tl_etm4_history){regs->address[0] | regs->is[0], regs->address[1] | regs->is[1],
                                    regs->address[2] | regs->is[2]};
}

static inline void tl_etm4_history_keep(const struct tl_etm4_history *history,
                                        struct tl_etm4_registers *regs)
{
    const uint64_t all[3] = {history->a, history->b, history->c};
    for (unsigned k = 0; k < 3; k++) {
        regs->address[k] = all[k] & ~1ull;
        regs->is[k] = all[k] & 1;
    }
}

/* The next address: of a packet with this payload, its bytes from bit 0 on. Without a branch. */
static inline __attribute__((always_inline)) uint64_t
tl_etm4_resolve(struct tl_etm4_history *history, uint8_t header, uint64_t payload, unsigned sf)
{
    const struct tl_etm4_address_form *const f =
        &tl_etm4_address_forms[sf][(header & 31) << 1 | (payload >> 7 & 1)];
    const uint64_t said = payload & f->said;
    const uint64_t low = ((said & 0x7f) << 1 | (said & 0xff00)) << f->is0;
    const uint64_t rest =
        (said & ~0xffffull) | (f->is0 ^ 1) | (history->b & f->kept[1]) | (history->c & f->kept[2]);
    const uint64_t address = (history->a & f->kept[0]) | (low | rest);

    history->c = history->b;
    history->b = history->a;
    history->a = address;
    return address;
}

/* By a mask of eight bits: the numbers of those set, a byte each, from the lowest on. */
extern const uint64_t tl_etm4_set_bits[256];

/* Where the packet of this header has its context's information byte; 0: it has no context. */
static inline unsigned tl_etm4_context_at(uint8_t header)
{
    static const uint8_t at[8] = {[1] = 1, [2] = 5, [3] = 5, [5] = 9, [6] = 9};
    return (header & 0xf8) == 0x80 ? at[header & 7] : 0;
}

/* Does this class change address registers, or stand between cycle counts and their threshold? */
static inline bool tl_etm4_needs_resolved(unsigned class)
{
    switch (class) {
    case TL_CLASS_TRACE_INFO:
    case TL_CLASS_EXCEPTION:
    case TL_CLASS_Q:
    case TL_CLASS_SOURCE_MATCH:
    case TL_CLASS_SOURCE_SHORT:
    case TL_CLASS_SOURCE_LONG32:
    case TL_CLASS_SOURCE_LONG64:
        return true;
    default:
        return false;
    }
}

/* How many bytes behind a block's first one are read at most. */
#define TL_UNROLLED_REACH 84

/* Deliver the tape. All its addresses must be resolved. A failure of the sink is in p->failed. */
void tl_etm4_columns_flush(struct tl_etm4_packetizer *p);

/*
 * Take plain packets one after another, from byte `i` on, as far as they begin before byte `end`.
 * Returns the first byte not taken. All addresses before must be resolved.
 */
size_t tl_etm4_plain(struct tl_etm4_packetizer *p, const struct tl_run *run, size_t i, size_t end);

/*
 * Parse the packet at byte `i` alone. Returns its length, 0 if that is not for blocks. All
 * addresses before must be resolved if it changes address registers, and where the tape is full.
 */
size_t tl_etm4_parse_one(struct tl_etm4_packetizer *p, const struct tl_run *run, size_t i);

#define TL_KERNEL(name)                                                                            \
    size_t tl_etm4_##name(struct tl_etm4_packetizer *p, const struct tl_run *run, size_t i)

/* A level's kernel for blocks of `u` bytes: unrolled() with that as a constant. */
#define TL_KERNEL_OF(level, u)                                                                     \
    TL_KERNEL(level##_##u)                                                                         \
    {                                                                                              \
        return unrolled(p, run, i, u);                                                             \
    }

TL_KERNEL(avx2_1);
TL_KERNEL(avx2_2);
TL_KERNEL(avx2_4);
TL_KERNEL(avx2_8);
TL_KERNEL(avx2_16);
TL_KERNEL(avx2_32);
TL_KERNEL(avx2_64);
TL_KERNEL(avx512_1);
TL_KERNEL(avx512_2);
TL_KERNEL(avx512_4);
TL_KERNEL(avx512_8);
TL_KERNEL(avx512_16);
TL_KERNEL(avx512_32);
TL_KERNEL(avx512_64);
TL_KERNEL(neon_1);
TL_KERNEL(neon_2);
TL_KERNEL(neon_4);
TL_KERNEL(neon_8);
TL_KERNEL(neon_16);
TL_KERNEL(neon_32);
TL_KERNEL(neon_64);

#endif
