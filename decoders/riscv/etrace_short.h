/* SPDX-License-Identifier: MIT */
/*
 * Packets of formats 1 and 2 with payloads of up to 16 bytes, read as two words: nearly all packets
 * of most traces. Private to the packet reader and the flow; etrace_packet.c reads any.
 *
 * End to end: a tenth of the processor's instructions from bytes to STF records (`./dev bench
 * riscv`).
 */
#ifndef TL_RISCV_ETRACE_SHORT_H
#define TL_RISCV_ETRACE_SHORT_H

#include "riscv/etrace_params.h"

#include "base/bytes.h"

struct tl_etrace_short {
    uint16_t bits;    /* of all fields */
    uint8_t branches; /* outcomes in `map`; 0: format 2 */
    bool has_address;
    uint32_t map;     /* the oldest in bit 0; 1: not taken */
    uint64_t address; /* in bytes; as sent */
    bool notify, updiscon, irreport;
    uint32_t irdepth;
};

/* Bits of up to 16 bytes; behind their end the last one repeats. */
struct tl_etrace_wide {
    uint64_t low, high;
};

/* Width of `branch_map`, by the number of branches in it, up to 31. */
static inline unsigned tl_etrace_map_width(unsigned branches)
{
    static const uint8_t widths[32] = {0,  1,  3,  3,  7,  7,  7,  7,  15, 15, 15,
                                       15, 15, 15, 15, 15, 31, 31, 31, 31, 31, 31,
                                       31, 31, 31, 31, 31, 31, 31, 31, 31, 31};
    return widths[branches];
}

static inline struct tl_etrace_wide tl_etrace_extend(const uint8_t *p, size_t n)
{
    uint64_t low;
    if (n >= 8) {
        const int64_t end = (int64_t)tl_le64(p + n - 8);
        return (struct tl_etrace_wide){tl_le64(p),
                                       (uint64_t)(n > 8 ? end >> 8 * (16 - n) : end >> 63)};
    }
    if (n >= 4)
        low = tl_le32(p) | (uint64_t)tl_le32(p + n - 4) << 8 * (n - 4);
    else
        low = p[0] | (uint64_t)p[n / 2] << 8 * (n / 2) | (uint64_t)p[n - 1] << 8 * (n - 1);
    const unsigned rest = 64 - 8 * (unsigned)n;
    const int64_t extended = (int64_t)(low << rest) >> rest;
    return (struct tl_etrace_wide){(uint64_t)extended, (uint64_t)(extended >> 63)};
}

/* The bits from `at` (1 to 127) on, at least 26 of them. `narrow`: there were no more than 8 bytes.
 */
static inline uint64_t tl_etrace_bits_from(const struct tl_etrace_wide *w, unsigned at, bool narrow)
{
    if (narrow)
        return (uint64_t)((int64_t)w->low >> (at < 63 ? at : 63));
    return at < 64 ? w->low >> at | w->high << (64 - at)
                   : (uint64_t)((int64_t)w->high >> (at - 64));
}

static inline __attribute__((always_inline)) void
tl_etrace_read_fields(struct tl_etrace_short *out, const struct tl_etrace_params *p,
                      struct tl_etrace_wide w, bool narrow)
{
    const unsigned width = p->iaddress_width - p->iaddress_lsb;
    unsigned at = 2;
    *out = (struct tl_etrace_short){.has_address = true};
    if ((w.low & 3) == 1) {
        const unsigned branches = w.low >> 2 & 31, n = branches ? branches : 31;
        out->branches = (uint8_t)n;
        out->map = (uint32_t)(w.low >> 7) & ((UINT32_C(1) << n) - 1);
        at = 7 + tl_etrace_map_width(n);
        out->has_address = branches > 0;
    }
    out->bits = (uint16_t)at;
    if (!out->has_address)
        return;
    out->address = (tl_etrace_bits_from(&w, at, narrow) & (UINT64_MAX >> (64 - width)))
                   << p->iaddress_lsb;
    at += width;
    /* Each of the three says yes by differing from the bit in front. */
    const uint64_t rest = tl_etrace_bits_from(&w, at - 1, narrow), changes = rest ^ rest >> 1;
    out->notify = changes & 1;
    out->updiscon = changes >> 1 & 1;
    out->irreport = changes >> 2 & 1;
    if (p->irdepth_width)
        out->irdepth = (uint32_t)(rest >> 4) & ((UINT32_C(1) << p->irdepth_width) - 1);
    out->bits = (uint16_t)(at + 3 + p->irdepth_width);
}

/* False: it is another packet, or too long. */
static inline __attribute__((always_inline)) bool
tl_etrace_read_short(struct tl_etrace_short *out, const struct tl_etrace_params *p,
                     struct tl_bytes payload)
{
    const unsigned format = payload.p[0] & 3u;
    if (payload.n > 16 || (format != 1 && format != 2) || p->irdepth_width > 22)
        return false;
    const struct tl_etrace_wide w = tl_etrace_extend(payload.p, payload.n);
    if (payload.n <= 8)
        tl_etrace_read_fields(out, p, w, true);
    else
        tl_etrace_read_fields(out, p, w, false);
    return true;
}

#endif
