/* SPDX-License-Identifier: MIT */
/*
 * Intel PT packets from bytes to fields, one at a time, and the search for PSBs. The parser has no
 * state but the configuration, since the same packet is parsed by the tape, by listings and again
 * by the event decoder.
 */
#include "pt/packet.h"

#include <string.h>

#define LONG_TNT_MAX 47
#define CYC_MAX      9 /* bytes */

static const uint8_t PSB[TL_PT_PSB_SIZE] = {0x02, 0x82, 0x02, 0x82, 0x02, 0x82, 0x02, 0x82,
                                            0x02, 0x82, 0x02, 0x82, 0x02, 0x82, 0x02, 0x82};

static uint64_t le(const uint8_t *p, unsigned n)
{
    uint64_t v = 0;
    while (n-- > 0)
        v = v << 8 | p[n];
    return v;
}

/* Returns `size` if the packet is complete, else TL_AGAIN. */
static int whole(struct tl_bytes at, unsigned size)
{
    return at.n < size ? TL_AGAIN : (int)size;
}

static int parse_ip(struct tl_bytes at, enum tl_pt_kind kind, struct tl_pt_packet *out)
{
    static const uint8_t bytes[8] = {0, 2, 4, 6, 6, 0xff, 8, 0xff};
    const uint8_t ipc = at.p[0] >> 5;
    if (bytes[ipc] == 0xff)
        return TL_BAD;
    const int size = whole(at, 1u + bytes[ipc]);
    out->kind = (uint8_t)kind;
    out->address.ipc = ipc;
    if (size > 0)
        out->address.payload = le(at.p + 1, bytes[ipc]);
    return size;
}

static int set_tnt(uint64_t payload, unsigned most, struct tl_pt_packet *out)
{
    if (payload < 2) /* no stop bit, or nothing below it */
        return TL_BAD;
    const unsigned n = 63 - (unsigned)__builtin_clzll(payload);
    if (n > most)
        return TL_BAD;
    out->tnt.n = (uint8_t)n;
    out->tnt.bits = payload & ~(UINT64_C(1) << n);
    return TL_OK;
}

/*
 * Erratum SKD007: two apparent CYC packets without a full counter that form an OVF except for the
 * first byte are in fact that byte of a CYC and an OVF. Only the OVF can be recovered.
 */
static bool may_hide_overflow(const struct tl_pt_config *config, unsigned size, uint64_t cyc)
{
    return config->errata.skd007 && size == 2 && (cyc & ~UINT64_C(0x1f)) == 0x20;
}

static int parse_cyc(const struct tl_pt_config *config, struct tl_bytes at,
                     struct tl_pt_packet *out)
{
    uint64_t value = at.p[0] >> 3;
    bool more = at.p[0] & 4;
    unsigned size = 1, shift = 5;
    out->kind = TL_PT_CYC;
    for (; more; size++, shift += 7) {
        if (size >= at.n)
            return TL_AGAIN;
        if (size == CYC_MAX)
            return TL_BAD;
        value |= (uint64_t)(at.p[size] >> 1) << shift;
        more = at.p[size] & 1;
    }
    if (may_hide_overflow(config, size, value)) {
        if (at.n == size)
            return TL_AGAIN;
        if (at.p[size] == 0xf3) {
            out->kind = TL_PT_OVF;
            return 3;
        }
    }
    out->cyc = value;
    return (int)size;
}

static int parse_mode(struct tl_bytes at, struct tl_pt_packet *out)
{
    if (at.n < 2)
        return TL_AGAIN;
    const uint8_t b = at.p[1];
    switch (b >> 5) {
    case 0:
        out->kind = TL_PT_MODE_EXEC;
        out->exec.csl = b & 1;
        out->exec.csd = b & 2;
        out->exec.iflag = b & 4;
        return 2;
    case 1:
        out->kind = TL_PT_MODE_TSX;
        out->tsx.intx = b & 1;
        out->tsx.abrt = b & 2;
        return 2;
    default:
        return TL_BAD;
    }
}

static int parse_trig(struct tl_bytes at, struct tl_pt_packet *out)
{
    if (at.n < 2)
        return TL_AGAIN;
    const uint8_t b = at.p[1];
    out->kind = TL_PT_TRIG;
    out->ip = b & 0x80;
    out->trig.icntv = b & 0x40;
    out->trig.mult = b & 0x20;
    const int size = whole(at, out->trig.icntv ? 5 : 3);
    if (size > 0) {
        out->trig.trbv = at.p[2];
        out->trig.icnt = out->trig.icntv ? (uint16_t)le(at.p + 3, 2) : 0;
    }
    return size;
}

/* ---- packets that begin with 0x02 ----------------------------------------------------------- */

static int parse_psb(struct tl_bytes at, struct tl_pt_packet *out)
{
    out->kind = TL_PT_PSB;
    if (at.n < TL_PT_PSB_SIZE)
        return TL_AGAIN;
    return memcmp(at.p, PSB, sizeof PSB) == 0 ? TL_PT_PSB_SIZE : TL_BAD;
}

static int parse_tma(const struct tl_pt_config *config, struct tl_bytes at,
                     struct tl_pt_packet *out)
{
    out->kind = TL_PT_TMA;
    const int size = whole(at, 7);
    if (size < 0)
        return size;
    out->tma.ctc = (uint16_t)le(at.p + 2, 2);
    const uint16_t fc = (uint16_t)le(at.p + 5, 2);
    if (at.p[4] != 0 || fc & ~0x1ff) {
        if (!config->errata.skz84)
            return TL_BAD;
        out->kind = TL_PT_INVALID;
        return whole(at, 8);
    }
    out->tma.fc = fc;
    return size;
}

static int parse_ptw(struct tl_bytes at, struct tl_pt_packet *out)
{
    out->kind = TL_PT_PTW;
    out->ip = at.p[1] & 0x80;
    out->ptw.plc = at.p[1] >> 5 & 3;
    if (out->ptw.plc > 1)
        return TL_BAD;
    const unsigned bytes = out->ptw.plc ? 8 : 4;
    const int size = whole(at, 2 + bytes);
    if (size > 0)
        out->ptw.payload = le(at.p + 2, bytes);
    return size;
}

/* A packet without payload. */
static int bare(enum tl_pt_kind kind, struct tl_pt_packet *out)
{
    out->kind = (uint8_t)kind;
    return 2;
}

static int parse_extended(const struct tl_pt_config *config, struct tl_bytes at,
                          struct tl_pt_packet *out)
{
    static const struct {
        uint8_t opcode, kind, size;
    } fixed[] = {{0xa3, TL_PT_TNT_64, 8}, {0x03, TL_PT_CBR, 4},    {0x43, TL_PT_PIP, 8},
                 {0xc8, TL_PT_VMCS, 7},   {0xc2, TL_PT_MWAIT, 10}, {0x22, TL_PT_PWRE, 4},
                 {0xa2, TL_PT_PWRX, 7},   {0x13, TL_PT_CFE, 4},    {0x53, TL_PT_EVD, 11}};
    if (at.n < 2)
        return TL_AGAIN;
    switch (at.p[1]) {
    case 0x82:
        return parse_psb(at, out);
    case 0x23:
        return bare(TL_PT_PSBEND, out);
    case 0xf3:
        return bare(TL_PT_OVF, out);
    case 0x83:
        return bare(TL_PT_STOP, out);
    case 0x62:
    case 0xe2:
        out->ip = at.p[1] & 0x80;
        return bare(TL_PT_EXSTOP, out);
    case 0x73:
        return parse_tma(config, at, out);
    case 0xc3:
        if (at.n < 3)
            return TL_AGAIN;
        if (at.p[2] != 0x88)
            return TL_UNSUPPORTED;
        out->kind = TL_PT_MNT;
        if (at.n >= 11)
            out->mnt = le(at.p + 3, 8);
        return whole(at, 11);
    default:
        break;
    }
    if ((at.p[1] & 0x1f) == 0x12)
        return parse_ptw(at, out);
    unsigned i = 0;
    while (i < sizeof fixed / sizeof *fixed && fixed[i].opcode != at.p[1])
        i++;
    if (i == sizeof fixed / sizeof *fixed)
        return TL_UNSUPPORTED;
    out->kind = fixed[i].kind;
    const int size = whole(at, fixed[i].size);
    if (size < 0)
        return size;
    const uint8_t *const p = at.p + 2;
    switch (out->kind) {
    case TL_PT_TNT_64: {
        const int rc = set_tnt(le(p, 6), LONG_TNT_MAX, out);
        return rc < 0 ? rc : size;
    }
    case TL_PT_CBR:
        out->cbr = p[0];
        break;
    case TL_PT_PIP:
        out->pip.nr = p[0] & 1;
        out->pip.cr3 = le(p, 6) >> 1 << 5;
        break;
    case TL_PT_VMCS:
        out->vmcs = le(p, 5) << 12;
        break;
    case TL_PT_MWAIT:
        out->mwait.hints = (uint32_t)le(p, 4);
        out->mwait.ext = (uint32_t)le(p + 4, 4);
        break;
    case TL_PT_PWRE:
        out->pwre.hw = p[0] & 0x08;
        out->pwre.state = p[1] >> 4;
        out->pwre.sub_state = p[1] & 15;
        break;
    case TL_PT_PWRX:
        out->pwrx.deepest = p[0] & 15;
        out->pwrx.last = p[0] >> 4;
        out->pwrx.interrupt = p[1] & 1;
        out->pwrx.store = p[1] & 4;
        out->pwrx.autonomous = p[1] & 8;
        break;
    case TL_PT_CFE:
        out->ip = p[0] & 0x80;
        out->cfe.type = p[0] & 0x1f;
        out->cfe.vector = p[1];
        break;
    default:
        out->evd.type = p[0] & 0x1f;
        out->evd.payload = le(p + 1, 8);
        break;
    }
    return size;
}

/* ---- all packets --------------------------------------------------------------------------- */

static int parse(const struct tl_pt_config *config, struct tl_bytes at, struct tl_pt_packet *out)
{
    const uint8_t b = at.p[0];
    int size;
    switch (b) {
    case 0x00:
        out->kind = TL_PT_PAD;
        return 1;
    case 0x99:
        return parse_mode(at, out);
    case 0x59:
        out->kind = TL_PT_MTC;
        if (at.n >= 2)
            out->mtc = at.p[1];
        return whole(at, 2);
    case 0x19:
        out->kind = TL_PT_TSC;
        size = whole(at, 8);
        if (size > 0)
            out->tsc = le(at.p + 1, 7);
        return size;
    case 0xd9:
        return parse_trig(at, out);
    case 0x02:
        return parse_extended(config, at, out);
    default:
        break;
    }
    if ((b & 3) == 3)
        return parse_cyc(config, at, out);
    if ((b & 1) == 0) {
        out->kind = TL_PT_TNT_8;
        size = set_tnt(b >> 1, 6, out);
        return size < 0 ? size : 1;
    }
    switch (b & 0x1f) {
    case 0x0d:
        return parse_ip(at, TL_PT_TIP, out);
    case 0x11:
        return parse_ip(at, TL_PT_TIP_PGE, out);
    case 0x01:
        return parse_ip(at, TL_PT_TIP_PGD, out);
    case 0x1d:
        return parse_ip(at, TL_PT_FUP, out);
    default:
        return TL_UNSUPPORTED;
    }
}

int tl_pt_parse(const struct tl_pt_config *config, struct tl_bytes at, struct tl_pt_packet *out)
{
    const uint64_t offset = out->offset;
    memset(out, 0, sizeof *out);
    out->offset = offset;
    if (at.n == 0)
        return TL_AGAIN;
    const int size = parse(config, at, out);
    if (size > 0)
        out->size = (uint8_t)size;
    return size;
}

/* ---- PSB ----------------------------------------------------------------------------------- */

size_t tl_pt_find_psb(struct tl_bytes in)
{
    const uint8_t *const found = in.n ? memmem(in.p, in.n, PSB, sizeof PSB) : NULL;
    if (!found)
        return in.n;
    size_t end = (size_t)(found - in.p) + sizeof PSB;
    while (in.n - end >= 2 && memcmp(in.p + end, PSB, 2) == 0)
        end += 2;
    return end - sizeof PSB;
}

size_t tl_pt_resync(struct tl_bytes in, size_t at)
{
    const size_t from = at < sizeof PSB ? 0 : at - (sizeof PSB - 1);
    return from + tl_pt_find_psb((struct tl_bytes){in.p + from, in.n - from});
}

size_t tl_pt_find_psb_backward(struct tl_bytes in)
{
    for (size_t at = in.n; at >= sizeof PSB; at--)
        if (memcmp(in.p + at - sizeof PSB, PSB, sizeof PSB) == 0)
            return at - sizeof PSB;
    return in.n;
}

/* ---- last IP ------------------------------------------------------------------------------- */

void tl_pt_last_ip_update(struct tl_pt_last_ip *last, const struct tl_pt_packet *packet)
{
    const uint64_t payload = packet->address.payload;
    if (packet->address.ipc == TL_PT_IP_SUPPRESSED) {
        last->suppressed = true;
        return;
    }
    switch (packet->address.ipc) {
    case TL_PT_IP_UPDATE_16:
        last->ip = (last->ip & ~UINT64_C(0xffff)) | payload;
        break;
    case TL_PT_IP_UPDATE_32:
        last->ip = (last->ip & ~UINT64_C(0xffffffff)) | payload;
        break;
    case TL_PT_IP_SEXT_48:
        last->ip = (uint64_t)((int64_t)(payload << 16) >> 16);
        break;
    case TL_PT_IP_UPDATE_48:
        last->ip = (last->ip & ~UINT64_C(0xffffffffffff)) | payload;
        break;
    default:
        last->ip = payload;
        break;
    }
    last->have = true;
    last->suppressed = false;
}
