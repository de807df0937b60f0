/* SPDX-License-Identifier: MIT */
/*
 * Prints E-Trace packets for a listing. Fields have the standard's names, so that a line can be
 * compared with other decoders' output.
 */
#include "riscv/etrace_packet.h"

#include <stdarg.h>
#include <stdio.h>

struct text {
    char *p, *end;
};

TL_PRINTF(2, 3)
static void add(struct text *t, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    const int n = vsnprintf(t->p, (size_t)(t->end - t->p), format, args);
    va_end(args);
    if (n > 0)
        t->p += n < t->end - t->p ? n : t->end - t->p - 1;
}

static void add_hex(struct text *t, const char *name, uint64_t value)
{
    add(t, " %s=0x%llx", name, (unsigned long long)value);
}

static void add_map(struct text *t, const struct tl_etrace_packet *k)
{
    add(t, " branches=%u", k->has_address || k->kind == TL_ETRACE_INDEX ? k->branches : 0);
    if (k->branches)
        add_hex(t, "branch_map", k->map);
}

static void add_irreport(struct text *t, const struct tl_etrace_packet *k,
                         const struct tl_etrace_params *p)
{
    add(t, " irreport=%u", k->irreport);
    if (p->irdepth_width)
        add(t, " %s=%u", p->irets ? "irets" : "irdepth", k->irdepth);
}

static void add_report(struct text *t, const struct tl_etrace_packet *k,
                       const struct tl_etrace_params *p)
{
    if (!k->has_address)
        return;
    add_hex(t, "address", k->address);
    add(t, " notify=%u updiscon=%u", k->notify, k->updiscon);
    add_irreport(t, k, p);
}

static void add_place(struct text *t, const struct tl_etrace_packet *k,
                      const struct tl_etrace_params *p)
{
    add(t, " privilege=%u", k->privilege);
    if (p->time_width)
        add(t, " time=%llu", (unsigned long long)k->time);
    if (p->context_width)
        add_hex(t, "context", k->context);
}

static void add_trap(struct text *t, const struct tl_etrace_packet *k)
{
    add(t, " ecause=%u interrupt=%u thaddr=%u", k->ecause, k->interrupt, k->thaddr);
    if (k->has_address)
        add_hex(t, "address", k->address);
    if (k->has_tval)
        add_hex(t, "tval", k->tval);
}

static void add_support(struct text *t, const struct tl_etrace_packet *k,
                        const struct tl_etrace_params *p)
{
    add(t, " ienable=%u", k->ienable);
    if (p->unit != TL_ETRACE_ESP32)
        add(t, " encoder_mode=%u", k->encoder_mode);
    add(t, " qual_status=%u", k->qual_status);
    if (p->unit != TL_ETRACE_ESP32)
        add_hex(t, "ioptions", k->ioptions);
    if (p->unit == TL_ETRACE_REFERENCE || p->unit == TL_ETRACE_2_1)
        add(t, " denable=%u dloss=%u doptions=0x%x", k->denable, k->dloss, k->doptions);
}

char *tl_etrace_packet_text(const struct tl_etrace_packet *k, const struct tl_etrace_params *p,
                            char *out, size_t size)
{
    static const char *const names[] = {
        [TL_ETRACE_START] = "FORMAT3_SYNC",      [TL_ETRACE_TRAP] = "FORMAT3_TRAP",
        [TL_ETRACE_CONTEXT] = "FORMAT3_CONTEXT", [TL_ETRACE_SUPPORT] = "FORMAT3_SUPPORT",
        [TL_ETRACE_ADDRESS] = "FORMAT2_ADDRESS", [TL_ETRACE_BRANCHES] = "FORMAT1_BRANCH",
        [TL_ETRACE_COUNT] = "FORMAT0_COUNT",     [TL_ETRACE_INDEX] = "FORMAT0_CACHE_INDEX",
    };
    struct text t = {out, out + size};
    add(&t, "%s", names[k->kind]);
    switch (k->kind) {
    case TL_ETRACE_START:
        add(&t, " branch=%u", k->branch);
        add_place(&t, k, p);
        add_hex(&t, "address", k->address);
        break;
    case TL_ETRACE_TRAP:
        add(&t, " branch=%u", k->branch);
        add_place(&t, k, p);
        add_trap(&t, k);
        break;
    case TL_ETRACE_CONTEXT:
        add_place(&t, k, p);
        break;
    case TL_ETRACE_SUPPORT:
        add_support(&t, k, p);
        break;
    case TL_ETRACE_BRANCHES:
        add_map(&t, k);
        add_report(&t, k, p);
        break;
    case TL_ETRACE_COUNT:
        add(&t, " branch_count=%u branch_fmt=%u", k->count, k->branch_fmt);
        add_report(&t, k, p);
        break;
    case TL_ETRACE_INDEX:
        add(&t, " index=%u", k->index);
        add_map(&t, k);
        add_irreport(&t, k, p);
        break;
    default:
        add_report(&t, k, p);
        break;
    }
    return out;
}

char *tl_etrace_data_text(struct tl_bytes payload, char *out, size_t size)
{
    struct text t = {out, out + size};
    add(&t, "DATA payload=");
    for (size_t i = 0; i < payload.n; i++)
        add(&t, "%02x", payload.p[i]);
    return out;
}
