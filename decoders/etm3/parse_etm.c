/* SPDX-License-Identifier: MIT */
/*
 * Packets of ETMv3. In the order of the standard's table of headers. Packets of data trace exist
 * only where data is traced, so that their headers are reserved elsewhere.
 *
 * Source: Arm IHI0014Q chapter 7.
 */
#include "etm3/packet.h"

/* ---- P-headers ------------------------------------------------------------------------------- */

static void set_atoms(struct tl_etm3_packet *out, unsigned n, unsigned passed)
{
    out->type = TL_ETM3_ATOMS;
    out->n = (uint8_t)n;
    out->atoms = (uint16_t)passed;
}

/* `n` that passed, then one that failed if `failed`. */
static void set_run(struct tl_etm3_packet *out, unsigned n, bool failed)
{
    set_atoms(out, n + failed, (1u << n) - 1);
}

static void set_pair(struct tl_etm3_packet *out, uint8_t b)
{
    set_atoms(out, 2, (b & 8 ? 0u : 1u) | (b & 4 ? 0u : 2u));
}

static void read_atoms(struct tl_etm3_packet *out, uint8_t b)
{
    if (!(b & 3))
        set_run(out, b >> 2 & 15, b & 0x40);
    else if ((b & 0xf3) == 0x82)
        set_pair(out, b);
}

static void read_atoms_with_cycles(struct tl_etm3_packet *out, uint8_t b)
{
    if ((b & 0xa3) == 0x80 && b != 0x80) {
        set_run(out, b >> 2 & 7, b & 0x40);
        out->lead = 1;
        out->each = true;
    } else if ((b & 0xf3) == 0x82) {
        set_pair(out, b);
        out->lead = 1;
    } else if ((b & 0xa3) == 0xa0) {
        set_run(out, b >> 6 & 1, false);
        out->lead = (uint8_t)((b >> 2 & 7) + 1);
    } else if ((b & 0xfb) == 0x92) {
        set_atoms(out, 1, b & 4 ? 0 : 1);
    }
}

/* ---- branches -------------------------------------------------------------------------------- */

/* Numbers of the three-bit exceptions of the original encoding, as the A and R profiles' own. */
static uint8_t old_exception(uint8_t fifth)
{
    static const uint8_t numbers[] = {8, 14, 0, 0, 5, 15, 4, 1};
    return numbers[fifth >> 3 & 7];
}

static void read_branch(struct tl_etm3_reader *r, uint8_t first)
{
    uint8_t fifth;
    r->out->type = TL_ETM3_BRANCH;
    switch (tl_etm3_read_address(r, first, r->config->alternative_branch, &fifth)) {
    case TL_ETM3_MORE_BYTES:
        tl_etm3_read_exception(r);
        break;
    case TL_ETM3_OLD_EXCEPTION:
        r->out->exception = old_exception(fifth);
        r->out->cancelled = fifth & 0x40;
        r->out->has_exception = r->out->exception != 0;
        break;
    default:
        break;
    }
}

/* ---- I-sync ---------------------------------------------------------------------------------- */

static void read_isync(struct tl_etm3_reader *r, bool has_cycles)
{
    struct tl_etm3_packet *const out = r->out;
    out->type = TL_ETM3_ISYNC;
    out->has_cycles = has_cycles;
    if (has_cycles)
        out->cycles = tl_etm3_read_groups(r);
    tl_etm3_read_context(r);
    const uint8_t info = tl_etm3_next(r);
    if (!(info & 1)) {
        out->type = TL_ETM3_BAD;
        return;
    }
    tl_etm3_read_info(r, info);
    if (r->config->data_only)
        return;
    tl_etm3_take_sync_address(r, tl_etm3_read_word(r, 4), info & 0x10, info & 0x04);
    if (info & 0x80) { /* a load or store was under way */
        uint8_t fifth;
        out->has_load = true;
        out->load = out->address;
        if (tl_etm3_read_address(r, tl_etm3_next(r), r->config->alternative_branch, &fifth) !=
            TL_ETM3_ADDRESS_ONLY)
            out->type = TL_ETM3_BAD;
    }
}

/* ---- data ------------------------------------------------------------------------------------ */

/* Seven bits a byte, the lowest first; the fifth byte has four, and the byte order. Absent ones are
 * as before. */
static void read_data_address(struct tl_etm3_reader *r)
{
    enum { GROUPS = 5 };
    uint32_t value = 0, mask = 0;
    bool more = true;
    unsigned n = 0;
    for (; more && n < GROUPS; n++) {
        const uint8_t b = tl_etm3_next(r);
        const uint32_t part = n + 1 < GROUPS ? 0x7f : 0x0f;
        value |= (b & part) << 7 * n;
        mask |= part << 7 * n;
        more = b & 0x80;
    }
    r->known.vague &= n < GROUPS;
    r->known.data = (r->known.data & ~mask) | value;
    r->out->address = r->known.data;
    r->out->has_address = !r->known.vague;
}

/* The first packet of an instruction has the address. */
static void take_data(struct tl_etm3_reader *r, enum tl_etm3_data data, bool first)
{
    r->out->type = TL_ETM3_DATA;
    r->out->data = (uint8_t)data;
    r->out->first = first;
    if (first && r->config->data_addresses)
        read_data_address(r);
}

static void take_value(struct tl_etm3_reader *r, unsigned size_code)
{
    static const uint8_t sizes[] = {0, 1, 2, 4};
    r->out->has_value = true;
    r->out->value_size = sizes[size_code];
    r->out->value = tl_etm3_read_word(r, sizes[size_code]);
}

/* Packets of data trace, which exist only where data is traced. */
static void read_data(struct tl_etm3_reader *r, uint8_t b)
{
    const bool traced = r->config->data_values || r->config->data_addresses || r->config->data_only;
    if (!traced)
        return;
    if ((b & 0x93) == 0x00 && b & 0x60) {
        take_data(r, TL_ETM3_LATE, false);
        r->out->tag = b >> 5 & 3;
        take_value(r, b >> 2 & 3);
    } else if ((b & 0xd3) == 0x50 && b & 0x0c) {
        take_data(r, TL_ETM3_PENDING, b & 0x20);
        r->out->tag = b >> 2 & 3;
    } else if ((b & 0xd3) == 0x02) {
        take_data(r, TL_ETM3_NORMAL, b & 0x20);
        if (r->config->data_values)
            take_value(r, b >> 2 & 3);
    } else if ((b & 0xef) == 0x6a) {
        take_data(r, TL_ETM3_NOT_TRACED, b & 0x10);
    } else if (b == 0x50) {
        take_data(r, TL_ETM3_STORE_FAILED, false);
    } else if (b == 0x62) {
        take_data(r, TL_ETM3_SUPPRESSED, false);
    }
}

void tl_etm3_read_etm(struct tl_etm3_reader *r, uint8_t b)
{
    struct tl_etm3_packet *const out = r->out;
    if (b & 1) {
        read_branch(r, b);
        return;
    }
    if (b & 0x80) {
        if (r->config->cycle_accurate)
            read_atoms_with_cycles(out, b);
        else
            read_atoms(out, b);
        return;
    }
    if (tl_etm3_read_common(r, b))
        return;
    switch (b) {
    case 0x04:
        out->type = TL_ETM3_CYCLES;
        out->has_cycles = true;
        out->cycles = tl_etm3_read_groups(r);
        break;
    case 0x08:
    case 0x70:
        read_isync(r, b == 0x70);
        break;
    case 0x7e:
        out->type = TL_ETM3_EXCEPTION_ENTRY;
        break;
    default:
        read_data(r, b);
        break;
    }
}
