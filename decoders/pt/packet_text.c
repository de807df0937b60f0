/* SPDX-License-Identifier: MIT */
/*
 * Prints packets of Intel PT for a listing. Values are printed as they are in the packet,
 * undecoded: a listing shows what the processor sent, also where the state before it is unknown.
 */
#include "pt/packet_text.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

static const char *const names[TL_PT_KINDS] = {
    [TL_PT_PAD] = "PAD",           [TL_PT_TNT_8] = "TNT.8",
    [TL_PT_TNT_64] = "TNT.64",     [TL_PT_TIP] = "TIP",
    [TL_PT_TIP_PGE] = "TIP.PGE",   [TL_PT_TIP_PGD] = "TIP.PGD",
    [TL_PT_FUP] = "FUP",           [TL_PT_MODE_EXEC] = "MODE.Exec",
    [TL_PT_MODE_TSX] = "MODE.TSX", [TL_PT_TSC] = "TSC",
    [TL_PT_TMA] = "TMA",           [TL_PT_MTC] = "MTC",
    [TL_PT_CYC] = "CYC",           [TL_PT_CBR] = "CBR",
    [TL_PT_PSB] = "PSB",           [TL_PT_PSBEND] = "PSBEND",
    [TL_PT_OVF] = "OVF",           [TL_PT_STOP] = "TraceStop",
    [TL_PT_PIP] = "PIP",           [TL_PT_VMCS] = "VMCS",
    [TL_PT_EXSTOP] = "EXSTOP",     [TL_PT_MWAIT] = "MWAIT",
    [TL_PT_PWRE] = "PWRE",         [TL_PT_PWRX] = "PWRX",
    [TL_PT_PTW] = "PTW",           [TL_PT_CFE] = "CFE",
    [TL_PT_EVD] = "EVD",           [TL_PT_TRIG] = "TRIG",
    [TL_PT_MNT] = "MNT",           [TL_PT_INVALID] = "INVALID",
};

const char *tl_pt_packet_name(unsigned kind)
{
    return kind < TL_PT_KINDS ? names[kind] : "?";
}

struct line {
    char *p;
    size_t n;
};

static void TL_PRINTF(2, 3) put(struct line *line, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    const int n = vsnprintf(line->p + line->n, TL_PT_TEXT_MAX - line->n, format, args);
    va_end(args);
    line->n += (size_t)n;
}

static void put_outcomes(struct line *line, const struct tl_pt_packet *p)
{
    put(line, " bits=");
    for (unsigned i = p->tnt.n; i-- > 0;)
        line->p[line->n++] = p->tnt.bits >> i & 1 ? 'T' : 'N';
    line->p[line->n] = '\0';
}

static void put_time(struct line *line, const struct tl_pt_packet *p)
{
    switch (p->kind) {
    case TL_PT_TSC:
        put(line, " tsc=0x%" PRIx64, p->tsc);
        break;
    case TL_PT_TMA:
        put(line, " ctc=0x%x fc=0x%x", p->tma.ctc, p->tma.fc);
        break;
    case TL_PT_MTC:
        put(line, " ctc=0x%x", p->mtc);
        break;
    case TL_PT_CYC:
        put(line, " cyc=%" PRIu64, p->cyc);
        break;
    default:
        put(line, " ratio=%u", p->cbr);
        break;
    }
}

static void put_power(struct line *line, const struct tl_pt_packet *p)
{
    switch (p->kind) {
    case TL_PT_MWAIT:
        put(line, " hints=0x%x ext=0x%x", p->mwait.hints, p->mwait.ext);
        break;
    case TL_PT_PWRE:
        put(line, " state=%u sub=%u hw=%u", p->pwre.state, p->pwre.sub_state, p->pwre.hw);
        break;
    default:
        put(line, " last=%u deepest=%u wake=0x%x", p->pwrx.last, p->pwrx.deepest,
            (unsigned)p->pwrx.interrupt | p->pwrx.store << 2u | p->pwrx.autonomous << 3u);
        break;
    }
}

static void put_trig(struct line *line, const struct tl_pt_packet *p)
{
    put(line, " trbv=0x%x mult=%u", p->trig.trbv, p->trig.mult);
    if (p->trig.icntv)
        put(line, " icnt=%u", p->trig.icnt);
}

static void put_fields(struct line *line, const struct tl_pt_packet *p)
{
    switch (p->kind) {
    case TL_PT_TNT_8:
    case TL_PT_TNT_64:
        put_outcomes(line, p);
        break;
    case TL_PT_TIP:
    case TL_PT_TIP_PGE:
    case TL_PT_TIP_PGD:
    case TL_PT_FUP:
        put(line, " ipc=%u payload=0x%" PRIx64, p->address.ipc, p->address.payload);
        break;
    case TL_PT_MODE_EXEC:
        put(line, " csl=%u csd=%u if=%u", p->exec.csl, p->exec.csd, p->exec.iflag);
        break;
    case TL_PT_MODE_TSX:
        put(line, " intx=%u abrt=%u", p->tsx.intx, p->tsx.abrt);
        break;
    case TL_PT_TSC:
    case TL_PT_TMA:
    case TL_PT_MTC:
    case TL_PT_CYC:
    case TL_PT_CBR:
        put_time(line, p);
        break;
    case TL_PT_PIP:
        put(line, " cr3=0x%" PRIx64 " nr=%u", p->pip.cr3, p->pip.nr);
        break;
    case TL_PT_VMCS:
        put(line, " base=0x%" PRIx64, p->vmcs);
        break;
    case TL_PT_MWAIT:
    case TL_PT_PWRE:
    case TL_PT_PWRX:
        put_power(line, p);
        break;
    case TL_PT_PTW:
        put(line, " payload=0x%0*" PRIx64, p->ptw.plc ? 16 : 8, p->ptw.payload);
        break;
    case TL_PT_CFE:
        put(line, " type=%u vector=%u", p->cfe.type, p->cfe.vector);
        break;
    case TL_PT_EVD:
        put(line, " type=%u payload=0x%" PRIx64, p->evd.type, p->evd.payload);
        break;
    case TL_PT_TRIG:
        put_trig(line, p);
        break;
    case TL_PT_MNT:
        put(line, " payload=0x%" PRIx64, p->mnt);
        break;
    default:
        break;
    }
}

size_t tl_pt_packet_text(char out[static TL_PT_TEXT_MAX], const struct tl_pt_packet *packet,
                         unsigned id)
{
    struct line line = {.p = out};
    put(&line, "%" PRIu64 " %02x %s", packet->offset, id & 0xff, tl_pt_packet_name(packet->kind));
    put_fields(&line, packet);
    if (packet->ip)
        put(&line, " ip=1");
    return line.n;
}
