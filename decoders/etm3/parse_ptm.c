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

static void read_exception_bytes(struct tl_etm3_reader *r)
{
    struct tl_etm3_packet *const out = r->out;
    const uint8_t b = tl_etm3_next(r);
    out->ns = r->known.ns = b & 1;
    out->exception = b >> 1 & 15;
    if (out->isa == TL_ETM3_THUMB || out->isa == TL_ETM3_THUMBEE)
        out->isa = r->known.isa = b & 0x40 ? TL_ETM3_THUMBEE : TL_ETM3_THUMB;
    out->hyp = r->known.hyp = false;
    if (b & 0x80) {
        const uint8_t second = tl_etm3_next(r);
        out->hyp = r->known.hyp = second & 0x20;
        out->exception = (uint16_t)(out->exception | (second & 0x1f) << 4);
    }
    out->has_exception = out->exception != 0;
}

static void read_branch(struct tl_etm3_reader *r, uint8_t first)
{
    uint8_t fifth;
    r->out->type = TL_ETM3_BRANCH;
    if (tl_etm3_read_address(r, first, true, &fifth) == TL_ETM3_MORE_BYTES)
        read_exception_bytes(r);
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
    out->has_context = r->config->context_bytes > 0;
    out->context = tl_etm3_read_word(r, r->config->context_bytes);
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
    switch (b) {
    case 0x08:
        read_isync(r);
        break;
    case 0x0c:
        out->type = TL_ETM3_TRIGGER;
        break;
    case 0x3c:
        out->type = TL_ETM3_VMID;
        out->context = tl_etm3_next(r);
        break;
    case 0x42:
    case 0x46:
        tl_etm3_read_time(r);
        read_count(r);
        break;
    case 0x66:
        out->type = TL_ETM3_IGNORE;
        break;
    case 0x6e:
        out->type = TL_ETM3_CONTEXT;
        out->has_context = r->config->context_bytes > 0;
        out->context = tl_etm3_read_word(r, r->config->context_bytes);
        break;
    case 0x72:
        read_waypoint(r);
        break;
    case 0x76:
        out->type = TL_ETM3_EXCEPTION_EXIT;
        break;
    default:
        break;
    }
}
