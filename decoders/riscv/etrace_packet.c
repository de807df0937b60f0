/* SPDX-License-Identifier: MIT */
/*
 * The payload is copied to a buffer that is filled up with its last bit, so that fields are read
 * without asking where it ends. How far it was shortened is told separately: the standard leaves
 * that to the encoder, and what an encoder never does marks damaged bytes.
 */
#include "riscv/etrace_packet.h"

#include "riscv/etrace_short.h"

/* All fields of the longest packet, with their largest parameters, and a word. */
#define PACKET_BYTES 64u

/* Bits of a payload, least significant first; behind its end the last bit repeats. */
struct reader {
    uint8_t bytes[PACKET_BYTES];
    size_t at; /* bits */
};

static void begin_payload(struct reader *r, struct tl_bytes payload)
{
    const size_t n = payload.n < PACKET_BYTES ? payload.n : PACKET_BYTES;
    memset(r->bytes, payload.p[n - 1] & 0x80 ? 0xff : 0, sizeof r->bytes);
    memcpy(r->bytes, payload.p, n);
    r->at = 0;
}

/* Up to 64 bits. */
static uint64_t take(struct reader *r, unsigned width)
{
    const uint8_t *const p = r->bytes + r->at / 8;
    const unsigned shift = r->at % 8;
    uint64_t value = tl_le64(p) >> shift;
    if (shift > 0)
        value |= (uint64_t)p[8] << (64 - shift);
    r->at += width;
    return width < 64 ? value & ((UINT64_C(1) << width) - 1) : value;
}

/* A bit that says yes by differing from the one in front. */
static bool take_change(struct reader *r)
{
    r->at--;
    const uint64_t two = take(r, 2);
    return two == 1 || two == 2;
}

static uint32_t mask_of(unsigned n)
{
    return n < 32 ? (UINT32_C(1) << n) - 1 : UINT32_MAX;
}

static void take_map(struct reader *r, struct tl_etrace_packet *out)
{
    out->map = (uint32_t)take(r, tl_etrace_map_width(out->branches)) & mask_of(out->branches);
}

static void take_address(struct reader *r, const struct tl_etrace_params *p,
                         struct tl_etrace_packet *out)
{
    out->has_address = true;
    out->address = take(r, p->iaddress_width - p->iaddress_lsb) << p->iaddress_lsb;
}

static void take_irreport(struct reader *r, const struct tl_etrace_params *p,
                          struct tl_etrace_packet *out)
{
    out->irreport = take_change(r);
    out->irdepth = (uint32_t)take(r, p->irdepth_width);
}

/* The address of formats 0 to 2, and what is known about it. */
static void take_report(struct reader *r, const struct tl_etrace_params *p, unsigned options,
                        struct tl_etrace_packet *out)
{
    take_address(r, p, out);
    out->is_full = options & TL_ETRACE_FULL_ADDRESS;
    r->at--; /* each of the three says yes by differing from the bit in front */
    const uint64_t bits = take(r, 4), changes = bits ^ bits >> 1;
    out->notify = changes & 1;
    out->updiscon = changes >> 1 & 1;
    out->irreport = changes >> 2 & 1;
    out->irdepth = (uint32_t)take(r, p->irdepth_width);
}

static int parse_format0(struct reader *r, const struct tl_etrace_params *p, unsigned options,
                         struct tl_etrace_packet *out)
{
    const uint64_t subformat = p->f0s_width     ? take(r, p->f0s_width)
                               : !p->cache_size ? 0
                               : !p->bpred_size ? 1
                                                : !(options & TL_ETRACE_PREDICTION);
    if (subformat > 1)
        return TL_BAD;
    if (subformat == 1) {
        out->kind = TL_ETRACE_INDEX;
        out->index = (uint32_t)take(r, p->cache_size);
        out->branches = (uint8_t)take(r, 5);
        take_map(r, out);
        take_irreport(r, p, out);
        return p->cache_size ? TL_OK : TL_BAD;
    }
    out->kind = TL_ETRACE_COUNT;
    out->count = (uint32_t)take(r, 32);
    out->branch_fmt = (uint8_t)take(r, 2);
    if (out->branch_fmt >= TL_ETRACE_COUNT_ADDRESS)
        take_report(r, p, options, out);
    return out->branch_fmt == 1 || !p->bpred_size ? TL_BAD : TL_OK;
}

static void parse_format1(struct reader *r, const struct tl_etrace_params *p, unsigned options,
                          struct tl_etrace_packet *out)
{
    out->kind = TL_ETRACE_BRANCHES;
    out->branches = (uint8_t)take(r, 5);
    if (out->branches) {
        take_map(r, out);
        take_report(r, p, options, out);
    } else {
        out->branches = 31;
        take_map(r, out);
    }
}

static void take_place(struct reader *r, const struct tl_etrace_params *p,
                       struct tl_etrace_packet *out)
{
    out->privilege = (uint8_t)take(r, p->privilege_width);
    out->time = take(r, p->time_width);
    out->context = take(r, p->context_width);
}

static void parse_trap(struct reader *r, const struct tl_etrace_params *p, unsigned options,
                       struct tl_etrace_packet *out)
{
    const bool old = p->unit == TL_ETRACE_ESP32;
    out->branch = take(r, 1);
    take_place(r, p, out);
    out->ecause = (uint16_t)take(r, p->ecause_width);
    out->interrupt = take(r, 1);
    out->thaddr = old || take(r, 1);
    if (!(out->thaddr && options & TL_ETRACE_IMPLICIT_EXCEPTION))
        take_address(r, p, out);
    out->has_tval = old || !out->interrupt;
    if (out->has_tval)
        out->tval = take(r, p->iaddress_width);
}

static void parse_support(struct reader *r, const struct tl_etrace_params *p,
                          struct tl_etrace_packet *out)
{
    out->ienable = take(r, 1);
    if (p->unit != TL_ETRACE_ESP32)
        out->encoder_mode = (uint8_t)take(r, p->encoder_mode_width);
    out->qual_status = (uint8_t)take(r, 2);
    if (p->unit == TL_ETRACE_ESP32)
        return;
    out->ioptions = (uint32_t)take(r, p->ioptions_width);
    if (p->unit == TL_ETRACE_PULP)
        return;
    out->denable = take(r, 1);
    out->dloss = take(r, 1);
    out->doptions = (uint8_t)take(r, p->unit == TL_ETRACE_2_1 ? 5 : 4);
}

static void parse_format3(struct reader *r, const struct tl_etrace_params *p, unsigned options,
                          struct tl_etrace_packet *out)
{
    out->is_full = true;
    out->kind = (uint8_t)(TL_ETRACE_START + take(r, 2));
    switch (out->kind) {
    case TL_ETRACE_START:
        out->branch = take(r, 1);
        take_place(r, p, out);
        take_address(r, p, out);
        break;
    case TL_ETRACE_TRAP:
        parse_trap(r, p, options, out);
        break;
    case TL_ETRACE_CONTEXT:
        take_place(r, p, out);
        break;
    default:
        parse_support(r, p, out);
        break;
    }
}

static int parse(struct reader *r, const struct tl_etrace_params *params, unsigned options,
                 struct tl_etrace_packet *out)
{
    switch (take(r, 2)) {
    case 0:
        return parse_format0(r, params, options, out);
    case 1:
        parse_format1(r, params, options, out);
        return TL_OK;
    case 2:
        out->kind = TL_ETRACE_ADDRESS;
        take_report(r, params, options, out);
        return TL_OK;
    default:
        parse_format3(r, params, options, out);
        return TL_OK;
    }
}

/* ---- short ones of formats 1 and 2 ----------------------------------------------------------- */

/* The same as parse() for nearly all packets. False: parse() must read it. */
static bool parse_short(struct tl_etrace_packet *out, const struct tl_etrace_params *p,
                        unsigned options, struct tl_bytes payload)
{
    struct tl_etrace_short in;
    if (!tl_etrace_read_short(&in, p, payload))
        return false;
    out->kind = in.branches ? TL_ETRACE_BRANCHES : TL_ETRACE_ADDRESS;
    out->branches = in.branches;
    out->map = in.map;
    out->bits = in.bits;
    out->has_address = in.has_address;
    out->is_full = in.has_address && options & TL_ETRACE_FULL_ADDRESS;
    out->address = in.address;
    out->notify = in.notify;
    out->updiscon = in.updiscon;
    out->irreport = in.irreport;
    out->irdepth = in.irdepth;
    return true;
}

/* ---- any ------------------------------------------------------------------------------------- */

static __attribute__((noinline)) int parse_any(struct tl_etrace_packet *out,
                                               const struct tl_etrace_params *params,
                                               unsigned options, struct tl_bytes payload)
{
    struct reader r;
    begin_payload(&r, payload);
    *out = (struct tl_etrace_packet){0};
    const int rc = parse(&r, params, options, out);
    out->bits = (uint16_t)r.at;
    return rc;
}

int tl_etrace_parse(struct tl_etrace_packet *out, const struct tl_etrace_params *params,
                    unsigned options, struct tl_bytes payload)
{
    return parse_short(out, params, options, payload) ? TL_OK
                                                      : parse_any(out, params, options, payload);
}
