/* SPDX-License-Identifier: MIT */
/* Shared by the kernels and the scalar packetizer. Private to them. */
#ifndef TL_ETM4_UNROLLED_PARTS_H
#define TL_ETM4_UNROLLED_PARTS_H

#include "base/target.h"
#include "etm4/headers.h"
#include "etm4/packetizer.h"

/* Which bits of an address come from the packet's payload and which from each of the preceding
 * addresses. */
struct tl_etm4_address_form {
    uint64_t said; /* payload bits that belong to the address */
    uint64_t kept[3];
    uint64_t is0;
};

/* Indexed by SF; then bits 4:0 of the header and bit 7 of the first payload byte. */
extern const struct tl_etm4_address_form tl_etm4_address_forms[2][64];

/* The three preceding addresses, newest first, with IS1 in bit 0, which no address uses. */
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

/*
 * Decompress the next address. `payload`: the packet's payload bytes, little-endian. Branch-free.
 */
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

/* For each eight-bit mask: the indices of its set bits, one byte each, lowest first. */
extern const uint64_t tl_etm4_set_bits[256];

/* Position of the context's information byte in a packet with this header; 0: it has no context. */
static inline unsigned tl_etm4_context_at(uint8_t header)
{
    static const uint8_t at[8] = {[1] = 1, [2] = 5, [3] = 5, [5] = 9, [6] = 9};
    return (header & 0xf8) == 0x80 ? at[header & 7] : 0;
}

/* Does this class change the address registers or the threshold that cycle counts depend on? */
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

/* Maximum number of bytes read after a block's first byte. */
#define TL_UNROLLED_REACH 84

/* Deliver the tape. All its addresses must be resolved. Failures of the sink are stored in
 * p->failed. */
void tl_etm4_columns_flush(struct tl_etm4_packetizer *p);

/*
 * Process plain packets individually, from byte `i` on, while they begin before byte `end`. Returns
 * the index of the first unprocessed byte. All previous addresses must be resolved.
 */
size_t tl_etm4_plain(struct tl_etm4_packetizer *p, const struct tl_run *run, size_t i, size_t end);

/*
 * Parse the single packet at byte `i`. Returns its length, or 0 if it must be left to the scalar
 * packetizer. If it changes address registers, or the tape is full, all previous addresses must be
 * resolved.
 */
size_t tl_etm4_parse_one(struct tl_etm4_packetizer *p, const struct tl_run *run, size_t i);

/* Define a kernel: unrolled(), which a level's body contains, with a constant unroll factor. */
#define TL_KERNEL(name, unroll)                                                                    \
    size_t name(struct tl_etm4_packetizer *p, const struct tl_run *run, size_t i)                  \
    {                                                                                              \
        return unrolled(p, run, i, unroll);                                                        \
    }

size_t tl_etm4_avx2(struct tl_etm4_packetizer *p, const struct tl_run *run, size_t i);
size_t tl_etm4_neon(struct tl_etm4_packetizer *p, const struct tl_run *run, size_t i);

#endif
