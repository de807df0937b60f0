/* SPDX-License-Identifier: MIT */
/*
 * What packets of ETMv3 and PTM have in common: addresses, timestamps, I-sync's information byte.
 * Both formats come from one family, and differ in headers and atoms.
 */
#include "etm3/packet.h"

/* The highest of seven-bit groups in 32 bits has four bits. */
#define GROUPS 5u

uint32_t tl_etm3_read_word(struct tl_etm3_reader *r, unsigned bytes)
{
    uint32_t value = 0;
    for (unsigned i = 0; i < bytes; i++)
        value |= (uint32_t)tl_etm3_next(r) << 8 * i;
    return value;
}

uint32_t tl_etm3_read_groups(struct tl_etm3_reader *r)
{
    uint32_t value = 0;
    for (unsigned i = 0; i < GROUPS; i++) {
        const uint8_t b = tl_etm3_next(r);
        value |= (uint32_t)(b & 0x7f) << 7 * i;
        if (!(b & 0x80))
            break;
    }
    return value;
}

/* ---- timestamps ------------------------------------------------------------------------------ */

static uint64_t binary_of_gray(uint64_t g)
{
    for (unsigned shift = 1; shift < 64; shift *= 2)
        g ^= g >> shift;
    return g;
}

/* Seven bits a byte, the lowest first; the last possible byte has no bit that tells of more. Absent
 * ones are as before. */
static void read_time(struct tl_etm3_reader *r)
{
    const unsigned bits = r->config->time_bits, most = (bits + 6) / 7 - (bits == 64);
    uint64_t value = 0, mask = 0;
    bool more = true;
    for (unsigned i = 0; more && i < most; i++) {
        const uint8_t b = tl_etm3_next(r);
        const bool last = i + 1 == most;
        const uint64_t part = !last ? 0x7f : bits == 64 ? 0xff : 0x3f;
        value |= (b & part) << 7 * i;
        mask |= part << 7 * i;
        more = b & 0x80;
        r->known.has_time |= last;
    }
    r->known.time = (r->known.time & ~mask) | value;
    r->out->type = TL_ETM3_TIMESTAMP;
    r->out->time = r->config->gray ? binary_of_gray(r->known.time) : r->known.time;
    r->out->has_time = r->known.has_time && r->out->time != 0; /* 0: the unit does not know it */
}

/* ---- addresses ------------------------------------------------------------------------------- */

static unsigned lowest_bit(uint8_t isa)
{
    return isa == TL_ETM3_ARM ? 2 : isa == TL_ETM3_JAZELLE ? 0 : 1;
}

/* The fifth byte of an address: instruction set, and the highest address bits. */
static uint32_t take_fifth(struct tl_etm3_reader *r, uint8_t b)
{
    if (b & 0x20) {
        r->out->isa = TL_ETM3_JAZELLE;
        return (uint32_t)(b & 0x1f) << 27;
    }
    if (b & 0x10) {
        if (r->out->isa != TL_ETM3_THUMBEE)
            r->out->isa = TL_ETM3_THUMB;
        return (uint32_t)(b & 0x0f) << 28;
    }
    r->out->isa = TL_ETM3_ARM;
    return (uint32_t)(b & 0x07) << 29;
}

/* The bits of an address that were sent, joined with those of the last one. */
static void join_address(struct tl_etm3_reader *r, uint32_t field, unsigned bits, uint32_t high,
                         bool whole)
{
    const unsigned low = lowest_bit(r->out->isa);
    const uint32_t sent = whole ? ~0u : ((1u << bits) - 1) << low;
    const uint32_t part = (whole ? field << low | high : field << low) & sent;
    r->out->address = ((r->known.address & ~sent) | part) & ~((1u << low) - 1);
    r->known.address = r->out->address;
    r->known.isa = r->out->isa;
}

enum tl_etm3_branch_end tl_etm3_read_address(struct tl_etm3_reader *r, uint8_t first,
                                             bool alternative, uint8_t *fifth)
{
    uint32_t field = first >> 1 & 0x3f;
    unsigned bits = 6;
    bool more = first & 0x80, exception = false;
    *fifth = 0;
    r->out->isa = r->known.isa;
    for (unsigned i = 1; more && i < 4; i++) {
        const uint8_t b = tl_etm3_next(r);
        more = b & 0x80;
        const unsigned width = alternative && !more ? 6 : 7;
        exception = alternative && !more && b & 0x40;
        field |= (uint32_t)(b & ((1u << width) - 1)) << bits;
        bits += width;
    }
    if (!more) {
        join_address(r, field, bits, 0, false);
        return exception ? TL_ETM3_MORE_BYTES : TL_ETM3_ADDRESS_ONLY;
    }
    *fifth = tl_etm3_next(r);
    const bool old = !alternative && *fifth & 0x80;
    const uint32_t high = take_fifth(r, old ? *fifth & 0x07 : *fifth & 0x3f);
    join_address(r, field, bits, high, true);
    return old ? TL_ETM3_OLD_EXCEPTION : *fifth & 0x40 ? TL_ETM3_MORE_BYTES : TL_ETM3_ADDRESS_ONLY;
}

/* ---- I-sync ---------------------------------------------------------------------------------- */

void tl_etm3_read_info(struct tl_etm3_reader *r, uint8_t info)
{
    r->out->reason = info >> 5 & 3;
    r->out->ns = r->known.ns = info & 0x08;
    r->out->hyp = r->known.hyp = info & 0x02;
}

void tl_etm3_take_sync_address(struct tl_etm3_reader *r, uint32_t address, bool jazelle,
                               bool alternative)
{
    const uint8_t isa = jazelle          ? TL_ETM3_JAZELLE
                        : !(address & 1) ? TL_ETM3_ARM
                        : alternative    ? TL_ETM3_THUMBEE
                                         : TL_ETM3_THUMB;
    r->out->isa = r->known.isa = isa;
    r->out->address = r->known.address = jazelle ? address : address & ~1u;
}

/* ---- packets of both formats ----------------------------------------------------------------- */

void tl_etm3_read_context(struct tl_etm3_reader *r)
{
    r->out->has_context = r->config->context_bytes > 0;
    r->out->context = tl_etm3_read_word(r, r->config->context_bytes);
}

/* The bytes behind the first: numbers above 15, where the instruction resumes (M profile). */
static void read_exception_rest(struct tl_etm3_reader *r)
{
    struct tl_etm3_packet *const out = r->out;
    const uint8_t b = tl_etm3_next(r);
    if (!r->config->ptm && b & 0x40)
        return;
    out->hyp = r->known.hyp = b & 0x20;
    out->exception = (uint16_t)(out->exception | (b & 0x1f) << 4);
    if (!r->config->ptm && b & 0x80)
        tl_etm3_next(r);
}

void tl_etm3_read_exception(struct tl_etm3_reader *r)
{
    struct tl_etm3_packet *const out = r->out;
    const uint8_t b = tl_etm3_next(r);
    out->ns = r->known.ns = b & 1;
    out->exception = b >> 1 & 15;
    out->cancelled = !r->config->ptm && b & 0x20;
    if (out->isa == TL_ETM3_THUMB || out->isa == TL_ETM3_THUMBEE)
        out->isa = r->known.isa = b & 0x40 ? TL_ETM3_THUMBEE : TL_ETM3_THUMB;
    out->hyp = r->known.hyp = false;
    if (b & 0x80)
        read_exception_rest(r);
    out->has_exception = out->exception != 0;
}

bool tl_etm3_read_common(struct tl_etm3_reader *r, uint8_t header)
{
    struct tl_etm3_packet *const out = r->out;
    switch (header) {
    case 0x0c:
        out->type = TL_ETM3_TRIGGER;
        return true;
    case 0x3c:
        out->type = TL_ETM3_VMID;
        out->context = tl_etm3_next(r);
        return true;
    case 0x42:
    case 0x46:
        read_time(r);
        return true;
    case 0x66:
        out->type = TL_ETM3_IGNORE;
        return true;
    case 0x6e:
        out->type = TL_ETM3_CONTEXT;
        tl_etm3_read_context(r);
        return true;
    case 0x76:
        out->type = TL_ETM3_EXCEPTION_EXIT;
        return true;
    default:
        return false;
    }
}

int tl_etm3_parse(const struct tl_etm3_config *config, struct tl_etm3_known *known,
                  const uint8_t *p, size_t n, struct tl_etm3_packet *out)
{
    *out = (struct tl_etm3_packet){.type = TL_ETM3_BAD, .ns = known->ns, .hyp = known->hyp};
    struct tl_etm3_reader r = {.config = config, .p = p, .n = n, .known = *known, .out = out};
    const uint8_t header = tl_etm3_next(&r);
    if (config->ptm)
        tl_etm3_read_ptm(&r, header);
    else
        tl_etm3_read_etm(&r, header);
    if (r.ends)
        return TL_AGAIN;
    if (out->type != TL_ETM3_BAD)
        *known = r.known;
    out->size = (uint8_t)r.at;
    return (int)r.at;
}
