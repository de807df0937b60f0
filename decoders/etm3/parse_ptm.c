/* SPDX-License-Identifier: MIT */
/*
 * Packets of PTM (program flow trace). Branch addresses have the alternative encoding of ETMv3;
 * counts of cycles stand in the packets that they belong to.
 *
 * Source: Arm IHI0035B chapter 4.
 */
#include "etm3/packet.h"

/* A count of cycles behind a packet: four bits in the first byte, seven in each other. */
static void read_count(struct tl_etm3_reader *r)
{
    if (!r->config->cycle_accurate)
        return;
    const uint8_t first = tl_etm3_next(r);
    uint32_t count = first >> 2 & 15;
    bool more = first & 0x40;
    for (unsigned shift = 4; more && shift < 32; shift += 7) {
        const uint8_t b = tl_etm3_next(r);
        count |= (uint32_t)(b & 0x7f) << shift;
        more = b & 0x80;
    }
    r->out->has_cycles = true;
    r->out->cycles = count;
}

/* One to five outcomes below the highest bits of the byte, the newest in bit 1; 1 = not taken. */
static void read_atoms(struct tl_etm3_packet *out, uint8_t b)
{
    const unsigned n = b & 0x40 ? 5 : b & 0x20 ? 4 : b & 0x10 ? 3 : b & 0x08 ? 2 : 1;
    out->type = TL_ETM3_ATOMS;
    out->n = (uint8_t)n;
    for (unsigned i = 0; i < n; i++)
        if (!(b >> (n - i) & 1))
            out->atoms = (uint16_t)(out->atoms | 1u << i);
}

static void read_atom_with_cycles(struct tl_etm3_reader *r, uint8_t b)
{
    struct tl_etm3_packet *const out = r->out;
    out->type = TL_ETM3_ATOMS;
    out->n = 1;
    out->atoms = b & 2 ? 0 : 1;
    out->has_cycles = true;
    r->at--; /* the count begins in the header */
    read_count(r);
}

static void read_branch(struct tl_etm3_reader *r, uint8_t first)
{
    uint8_t fifth;
    r->out->type = TL_ETM3_BRANCH;
    if (tl_etm3_read_address(r, first, true, &fifth) == TL_ETM3_MORE_BYTES)
        tl_etm3_read_exception(r);
    read_count(r);
}

/* The address of the last instruction executed; only the byte behind a fifth one says more. */
static void read_waypoint(struct tl_etm3_reader *r)
{
    uint8_t fifth;
    r->out->type = TL_ETM3_WAYPOINT;
    tl_etm3_read_address(r, tl_etm3_next(r), true, &fifth);
    if (fifth & 0x40 && tl_etm3_next(r) & 0x40 && r->out->isa == TL_ETM3_THUMB)
        r->out->isa = r->known.isa = TL_ETM3_THUMBEE;
}

static void read_isync(struct tl_etm3_reader *r)
{
    struct tl_etm3_packet *const out = r->out;
    out->type = TL_ETM3_ISYNC;
    const uint32_t address = tl_etm3_read_word(r, 4);
    const uint8_t info = tl_etm3_next(r);
    if (!(info & 1)) {
        out->type = TL_ETM3_BAD;
        return;
    }
    tl_etm3_read_info(r, info);
    tl_etm3_take_sync_address(r, address, false, info & 0x04);
    if (out->reason != TL_ETM3_PERIODIC)
        read_count(r);
    tl_etm3_read_context(r);
}

void tl_etm3_read_ptm(struct tl_etm3_reader *r, uint8_t b)
{
    struct tl_etm3_packet *const out = r->out;
    if (b & 1) {
        read_branch(r, b);
        return;
    }
    if (b & 0x80) {
        if (r->config->cycle_accurate)
            read_atom_with_cycles(r, b);
        else
            read_atoms(out, b);
        return;
    }
    if (tl_etm3_read_common(r, b)) {
        if (out->type == TL_ETM3_TIMESTAMP)
            read_count(r);
    } else if (b == 0x08) {
        read_isync(r);
    } else if (b == 0x72) {
        read_waypoint(r);
    }
}
