/* SPDX-License-Identifier: MIT */
/* Bits of an E-Trace packet as the simulated encoder writes them. Header only. */
#ifndef TL_SIM_ETRACE_PAYLOAD_H
#define TL_SIM_ETRACE_PAYLOAD_H

#include "riscv/etrace_envelope.h"

struct payload {
    uint8_t bytes[TL_ETRACE_PAYLOAD + 16];
    unsigned n; /* bits */
    bool last;
};

static inline void put(struct payload *p, uint64_t value, unsigned width)
{
    for (unsigned i = 0; i < width; i++, p->n++) {
        p->last = i < 64 && value >> i & 1;
        p->bytes[p->n / 8] |= (uint8_t)(p->last << p->n % 8);
    }
}

/* A bit that says yes by being different. */
static inline void put_change(struct payload *p, bool changed)
{
    put(p, p->last != changed, 1);
}

/* Fill the last byte with the last bit; drop up to `most` bytes that repeat it. */
static inline unsigned close_payload(struct payload *p, unsigned most)
{
    while (p->n % 8)
        put(p, p->last, 1);
    unsigned n = p->n / 8;
    for (; most > 0 && n > 1 && p->bytes[n - 1] == (p->bytes[n - 2] & 0x80 ? 0xff : 0); most--)
        n--;
    return n;
}

#endif
