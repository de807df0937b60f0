/* SPDX-License-Identifier: MIT */
#include "sim/pt_encoder.h"

#include <stdlib.h>

void tl_sim_pt_fini(struct tl_sim_pt *pt)
{
    tl_buf_fini(&pt->out);
}

static void put(struct tl_sim_pt *pt, uint64_t value, unsigned bytes)
{
    uint8_t b[8];
    tl_put_le64(b, value);
    if (tl_buf_add(&pt->out, b, bytes) < 0)
        abort();
}

/* Write a two-byte opcode. */
static void put_extended(struct tl_sim_pt *pt, uint8_t opcode)
{
    put(pt, 0x02 | (uint64_t)opcode << 8, 2);
}

static void put_address(struct tl_sim_pt *pt, uint8_t opcode, const struct tl_pt_packet *packet)
{
    static const uint8_t bytes[8] = {0, 2, 4, 6, 6, 0, 8, 0};
    const uint8_t ipc = packet->address.ipc & 7;
    struct tl_pt_last_ip last = {.ip = pt->ip};
    put(pt, opcode | (uint64_t)ipc << 5, 1);
    put(pt, packet->address.payload, bytes[ipc]);
    tl_pt_last_ip_update(&last, packet);
    pt->ip = last.ip;
}

static void put_cyc(struct tl_sim_pt *pt, uint64_t value)
{
    uint64_t rest = value >> 5;
    put(pt, (value & 31) << 3 | (rest ? 4 : 0) | 3, 1);
    while (rest) {
        put(pt, (rest & 0x7f) << 1 | (rest >> 7 ? 1 : 0), 1);
        rest >>= 7;
    }
}

static uint64_t with_stop_bit(const struct tl_pt_packet *packet)
{
    return packet->tnt.bits | UINT64_C(1) << packet->tnt.n;
}

static void put_power(struct tl_sim_pt *pt, const struct tl_pt_packet *p)
{
    switch (p->kind) {
    case TL_PT_EXSTOP:
        put_extended(pt, p->ip ? 0xe2 : 0x62);
        break;
    case TL_PT_MWAIT:
        put_extended(pt, 0xc2);
        put(pt, p->mwait.hints, 4);
        put(pt, p->mwait.ext, 4);
        break;
    case TL_PT_PWRE:
        put_extended(pt, 0x22);
        put(pt, p->pwre.hw ? 0x08 : 0, 1);
        put(pt, (uint64_t)p->pwre.state << 4 | (p->pwre.sub_state & 15), 1);
        break;
    default:
        put_extended(pt, 0xa2);
        put(pt, (uint64_t)p->pwrx.last << 4 | (p->pwrx.deepest & 15), 1);
        put(pt, (uint64_t)p->pwrx.interrupt | p->pwrx.store << 2 | p->pwrx.autonomous << 3, 4);
        break;
    }
}

static void put_event(struct tl_sim_pt *pt, const struct tl_pt_packet *p)
{
    switch (p->kind) {
    case TL_PT_PTW:
        put_extended(pt, (uint8_t)(0x12 | p->ptw.plc << 5 | p->ip << 7));
        put(pt, p->ptw.payload, p->ptw.plc ? 8 : 4);
        break;
    case TL_PT_CFE:
        put_extended(pt, 0x13);
        put(pt, (p->cfe.type & 31u) | (unsigned)p->ip << 7, 1);
        put(pt, p->cfe.vector, 1);
        break;
    case TL_PT_EVD:
        put_extended(pt, 0x53);
        put(pt, p->evd.type & 31, 1);
        put(pt, p->evd.payload, 8);
        break;
    case TL_PT_TRIG:
        put(pt, 0xd9, 1);
        put(pt, (unsigned)p->ip << 7 | (unsigned)p->trig.icntv << 6 | (unsigned)p->trig.mult << 5,
            1);
        put(pt, p->trig.trbv, 1);
        put(pt, p->trig.icnt, p->trig.icntv ? 2 : 0);
        break;
    default:
        put_extended(pt, 0xc3);
        put(pt, 0x88, 1);
        put(pt, p->mnt, 8);
        break;
    }
}

static void put_timing(struct tl_sim_pt *pt, const struct tl_pt_packet *p)
{
    switch (p->kind) {
    case TL_PT_TSC:
        put(pt, 0x19, 1);
        put(pt, p->tsc, 7);
        break;
    case TL_PT_TMA:
        put_extended(pt, 0x73);
        put(pt, p->tma.ctc, 3);
        put(pt, p->tma.fc & 0x1ff, 2);
        break;
    case TL_PT_MTC:
        put(pt, 0x59, 1);
        put(pt, p->mtc, 1);
        break;
    case TL_PT_CYC:
        put_cyc(pt, p->cyc);
        break;
    default:
        put_extended(pt, 0x03);
        put(pt, p->cbr, 2);
        break;
    }
}

static void put_psb(struct tl_sim_pt *pt)
{
    for (unsigned i = 0; i < TL_PT_PSB_SIZE; i += 2)
        put_extended(pt, 0x82);
    pt->ip = 0;
}

void tl_sim_pt_packet(struct tl_sim_pt *pt, const struct tl_pt_packet *p)
{
    switch (p->kind) {
    case TL_PT_PAD:
        put(pt, 0, 1);
        break;
    case TL_PT_TNT_8:
        put(pt, with_stop_bit(p) << 1, 1);
        break;
    case TL_PT_TNT_64:
        put_extended(pt, 0xa3);
        put(pt, with_stop_bit(p), 6);
        break;
    case TL_PT_TIP:
        put_address(pt, 0x0d, p);
        break;
    case TL_PT_TIP_PGE:
        put_address(pt, 0x11, p);
        break;
    case TL_PT_TIP_PGD:
        put_address(pt, 0x01, p);
        break;
    case TL_PT_FUP:
        put_address(pt, 0x1d, p);
        break;
    case TL_PT_MODE_EXEC:
        put(pt, 0x99, 1);
        put(pt, (unsigned)p->exec.csl | p->exec.csd << 1 | p->exec.iflag << 2, 1);
        break;
    case TL_PT_MODE_TSX:
        put(pt, 0x99, 1);
        put(pt, 0x20u | p->tsx.intx | p->tsx.abrt << 1, 1);
        break;
    case TL_PT_TSC:
    case TL_PT_TMA:
    case TL_PT_MTC:
    case TL_PT_CYC:
    case TL_PT_CBR:
        put_timing(pt, p);
        break;
    case TL_PT_PSB:
        put_psb(pt);
        break;
    case TL_PT_PSBEND:
        put_extended(pt, 0x23);
        break;
    case TL_PT_OVF:
        put_extended(pt, 0xf3);
        pt->ip = 0;
        break;
    case TL_PT_STOP:
        put_extended(pt, 0x83);
        break;
    case TL_PT_PIP:
        put_extended(pt, 0x43);
        put(pt, p->pip.cr3 >> 4 | p->pip.nr, 6);
        break;
    case TL_PT_VMCS:
        put_extended(pt, 0xc8);
        put(pt, p->vmcs >> 12, 5);
        break;
    case TL_PT_EXSTOP:
    case TL_PT_MWAIT:
    case TL_PT_PWRE:
    case TL_PT_PWRX:
        put_power(pt, p);
        break;
    default:
        put_event(pt, p);
        break;
    }
}

void tl_sim_pt_bare(struct tl_sim_pt *pt, enum tl_pt_kind kind)
{
    tl_sim_pt_packet(pt, &(struct tl_pt_packet){.kind = (uint8_t)kind});
}

/* ---- branches ------------------------------------------------------------------------------- */

void tl_sim_pt_flush(struct tl_sim_pt *pt)
{
    struct tl_pt_packet p = {.kind = pt->n_outcomes > 6 ? TL_PT_TNT_64 : TL_PT_TNT_8};
    p.tnt.n = (uint8_t)pt->n_outcomes;
    p.tnt.bits = pt->outcomes;
    if (p.tnt.n)
        tl_sim_pt_packet(pt, &p);
    pt->n_outcomes = 0;
    pt->outcomes = 0;
}

void tl_sim_pt_branch(struct tl_sim_pt *pt, bool taken)
{
    pt->outcomes = pt->outcomes << 1 | taken;
    if (++pt->n_outcomes == (pt->long_tnt ? 47 : 6))
        tl_sim_pt_flush(pt);
}

static uint64_t signed48(uint64_t v)
{
    return (uint64_t)((int64_t)(v << 16) >> 16);
}

void tl_sim_pt_ip(struct tl_sim_pt *pt, enum tl_pt_kind kind, uint64_t ip)
{
    struct tl_pt_packet p = {.kind = (uint8_t)kind};
    const uint64_t changed = ip ^ pt->ip;
    p.address.payload = ip;
    if (changed <= 0xffff) {
        p.address.ipc = TL_PT_IP_UPDATE_16;
        p.address.payload &= 0xffff;
    } else if (changed <= 0xffffffff) {
        p.address.ipc = TL_PT_IP_UPDATE_32;
        p.address.payload &= 0xffffffff;
    } else if (signed48(ip) == ip || changed >> 48 == 0) {
        p.address.ipc = signed48(ip) == ip ? TL_PT_IP_SEXT_48 : TL_PT_IP_UPDATE_48;
        p.address.payload &= 0xffffffffffff;
    } else {
        p.address.ipc = TL_PT_IP_FULL;
    }
    tl_sim_pt_flush(pt);
    tl_sim_pt_packet(pt, &p);
}

void tl_sim_pt_no_ip(struct tl_sim_pt *pt, enum tl_pt_kind kind)
{
    tl_sim_pt_flush(pt);
    tl_sim_pt_bare(pt, kind); /* a zeroed payload is TL_PT_IP_SUPPRESSED */
}

/* ---- random --------------------------------------------------------------------------------- */

static uint64_t bits(struct tl_sim_rng *rng, unsigned n)
{
    return tl_sim_rand(rng) >> (64 - n);
}

static void random_address(struct tl_pt_packet *p, struct tl_sim_rng *rng)
{
    static const struct {
        uint8_t ipc, bits;
    } forms[] = {{TL_PT_IP_SUPPRESSED, 0}, {TL_PT_IP_UPDATE_16, 16}, {TL_PT_IP_UPDATE_32, 32},
                 {TL_PT_IP_SEXT_48, 48},   {TL_PT_IP_UPDATE_48, 48}, {TL_PT_IP_FULL, 64}};
    const unsigned k = tl_sim_below(rng, sizeof forms / sizeof *forms);
    p->address.ipc = forms[k].ipc;
    if (forms[k].bits)
        p->address.payload = bits(rng, forms[k].bits);
}

static void random_timing(struct tl_pt_packet *p, struct tl_sim_rng *rng)
{
    switch (p->kind) {
    case TL_PT_TSC:
        p->tsc = bits(rng, 56);
        break;
    case TL_PT_TMA:
        p->tma.ctc = (uint16_t)bits(rng, 16);
        p->tma.fc = (uint16_t)bits(rng, 9);
        break;
    case TL_PT_MTC:
        p->mtc = (uint8_t)bits(rng, 8);
        break;
    case TL_PT_CYC:
        p->cyc = bits(rng, 1 + tl_sim_below(rng, 61));
        break;
    default:
        p->cbr = (uint8_t)bits(rng, 8);
        break;
    }
}

static void random_event(struct tl_pt_packet *p, struct tl_sim_rng *rng)
{
    p->ip = bits(rng, 1);
    switch (p->kind) {
    case TL_PT_PTW:
        p->ptw.plc = (uint8_t)bits(rng, 1);
        p->ptw.payload = bits(rng, p->ptw.plc ? 64 : 32);
        break;
    case TL_PT_CFE:
        p->cfe.type = (uint8_t)bits(rng, 5);
        p->cfe.vector = (uint8_t)bits(rng, 8);
        break;
    case TL_PT_TRIG:
        p->trig.trbv = (uint8_t)bits(rng, 8);
        p->trig.mult = bits(rng, 1);
        p->trig.icntv = bits(rng, 1);
        p->trig.icnt = p->trig.icntv ? (uint16_t)bits(rng, 16) : 0;
        break;
    default:
        break;
    }
}

static void random_power(struct tl_pt_packet *p, struct tl_sim_rng *rng)
{
    switch (p->kind) {
    case TL_PT_MWAIT:
        p->mwait.hints = (uint32_t)bits(rng, 32);
        p->mwait.ext = (uint32_t)bits(rng, 32);
        break;
    case TL_PT_PWRE:
        p->pwre.state = (uint8_t)bits(rng, 4);
        p->pwre.sub_state = (uint8_t)bits(rng, 4);
        p->pwre.hw = bits(rng, 1);
        break;
    default:
        p->pwrx.last = (uint8_t)bits(rng, 4);
        p->pwrx.deepest = (uint8_t)bits(rng, 4);
        p->pwrx.interrupt = bits(rng, 1);
        p->pwrx.store = bits(rng, 1);
        p->pwrx.autonomous = bits(rng, 1);
        break;
    }
}

static void random_mode(struct tl_pt_packet *p, struct tl_sim_rng *rng)
{
    if (p->kind == TL_PT_MODE_TSX) {
        p->tsx.intx = bits(rng, 1);
        p->tsx.abrt = bits(rng, 1);
        return;
    }
    p->exec.csl = bits(rng, 1);
    p->exec.csd = bits(rng, 1);
    p->exec.iflag = bits(rng, 1);
}

void tl_sim_pt_random(struct tl_pt_packet *p, struct tl_sim_rng *rng)
{
    *p = (struct tl_pt_packet){.kind = (uint8_t)tl_sim_below(rng, TL_PT_INVALID)};
    switch (p->kind) {
    case TL_PT_TNT_8:
    case TL_PT_TNT_64:
        p->tnt.n = (uint8_t)tl_sim_between(rng, 1, p->kind == TL_PT_TNT_8 ? 6 : 47);
        p->tnt.bits = bits(rng, p->tnt.n);
        break;
    case TL_PT_TIP:
    case TL_PT_TIP_PGE:
    case TL_PT_TIP_PGD:
    case TL_PT_FUP:
        random_address(p, rng);
        break;
    case TL_PT_TSC:
    case TL_PT_TMA:
    case TL_PT_MTC:
    case TL_PT_CYC:
    case TL_PT_CBR:
        random_timing(p, rng);
        break;
    case TL_PT_MODE_EXEC:
    case TL_PT_MODE_TSX:
        random_mode(p, rng);
        break;
    case TL_PT_PIP:
        p->pip.cr3 = bits(rng, 47) << 5;
        p->pip.nr = bits(rng, 1);
        break;
    case TL_PT_VMCS:
        p->vmcs = bits(rng, 40) << 12;
        break;
    case TL_PT_EXSTOP:
        p->ip = bits(rng, 1);
        break;
    case TL_PT_MWAIT:
    case TL_PT_PWRE:
    case TL_PT_PWRX:
        random_power(p, rng);
        break;
    case TL_PT_PTW:
    case TL_PT_CFE:
    case TL_PT_TRIG:
        random_event(p, rng);
        break;
    case TL_PT_EVD:
        p->evd.type = (uint8_t)bits(rng, 5);
        p->evd.payload = bits(rng, 64);
        break;
    case TL_PT_MNT:
        p->mnt = bits(rng, 64);
        break;
    default:
        break;
    }
}

/* ---- a program ------------------------------------------------------------------------------ */

#define PLACES 256 /* targets of indirect branches */

static void sync(struct tl_sim_pt *pt, uint64_t tsc, uint64_t ip)
{
    struct tl_pt_packet p = {.kind = TL_PT_TSC, .tsc = tsc};
    tl_sim_pt_flush(pt);
    tl_sim_pt_bare(pt, TL_PT_PSB);
    tl_sim_pt_packet(pt, &p);
    p = (struct tl_pt_packet){.kind = TL_PT_CBR, .cbr = 30};
    tl_sim_pt_packet(pt, &p);
    p = (struct tl_pt_packet){.kind = TL_PT_MODE_EXEC};
    p.exec.csl = true;
    tl_sim_pt_packet(pt, &p);
    tl_sim_pt_ip(pt, TL_PT_FUP, ip);
    tl_sim_pt_bare(pt, TL_PT_PSBEND);
}

static void cycles(struct tl_sim_pt *pt, struct tl_sim_rng *rng)
{
    struct tl_pt_packet p = {.kind = TL_PT_CYC, .cyc = tl_sim_between(rng, 4, 60)};
    if (pt->n_outcomes && !tl_sim_percent(rng, 80))
        return;
    if (tl_sim_percent(rng, 10))
        p.cyc <<= 3;
    tl_sim_pt_packet(pt, &p);
}

void tl_sim_pt_program(struct tl_sim_pt *pt, struct tl_sim_rng *rng, size_t bytes, bool timing)
{
    const size_t begin = pt->out.n;
    uint64_t places[PLACES], tsc = 1000000;
    size_t synced = SIZE_MAX;
    struct tl_pt_packet mtc = {.kind = TL_PT_MTC};
    for (unsigned i = 0; i < PLACES; i++)
        places[i] = (i & 1 ? 0x7f3256780000 : 0x555555550000) + tl_sim_below(rng, 0x40000);
    while (pt->out.n - begin < bytes) {
        const uint64_t place = places[tl_sim_below(rng, PLACES)];
        if (synced == SIZE_MAX || pt->out.n - synced > 4096) {
            synced = pt->out.n;
            sync(pt, tsc += 10000, place);
        }
        for (unsigned k = tl_sim_below(rng, 30); k > 0; k--) {
            tl_sim_pt_branch(pt, tl_sim_percent(rng, 70));
            if (timing && pt->n_outcomes == 0)
                cycles(pt, rng);
        }
        if (timing)
            cycles(pt, rng);
        tl_sim_pt_ip(pt, TL_PT_TIP, place);
        if (timing && tl_sim_percent(rng, 5)) {
            mtc.mtc++;
            tl_sim_pt_packet(pt, &mtc);
        }
        if (tl_sim_percent(rng, 1)) {
            tl_sim_pt_ip(pt, TL_PT_FUP, place + 16);
            tl_sim_pt_no_ip(pt, TL_PT_TIP_PGD);
            tl_sim_pt_ip(pt, TL_PT_TIP_PGE, place + 16);
        }
    }
    tl_sim_pt_flush(pt);
}
