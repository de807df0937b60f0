/* SPDX-License-Identifier: MIT */
/*
 * What the AUX areas of RISC-V trace contain: the file does not say whether the sink wraps packets
 * in CoreSight frames, and with the smaller form of AUXTRACE_INFO only the setup says which trace
 * it is. So the beginning is tried both ways, and the way that loses less is right.
 */
#include "perf/riscv_setup.h"

#include <stdio.h>

enum { TRIED = 1 << 16 /* bytes of an enabling */ };

static bool is_etrace(const struct tl_perf_decode *d)
{
    if (d->info.n_units > 0)
        return d->info.units[0].protocol == TL_PROTO_E_TRACE;
    for (size_t i = 0; i < d->setup->n_sources; i++)
        if (d->setup->sources[i].protocol == TL_PROTO_E_TRACE)
            return true;
    return false;
}

/* Width of SRC in packets without frames. */
static uint8_t src_bits(const struct tl_perf_decode *d)
{
    uint64_t most = 0;
    for (size_t i = 0; i < d->info.n_units; i++) {
        const uint64_t *const regs = d->info.units[i].regs;
        const uint64_t bits = regs[TL_PERF_INHIBIT_SRC] ? 0 : regs[TL_PERF_SRC_BITS];
        most = bits > most ? bits : most;
    }
    return (uint8_t)(most < 16 ? most : 16);
}

static int add_encoder(struct tl_setup *setup, const struct tl_perf_decode *d,
                       const struct tl_perf_unit *unit, bool framed)
{
    struct tl_source *const source = tl_setup_add_source(setup);
    if (!source)
        return TL_NOMEM;
    tl_perf_info_encoder(unit, framed, source);
    tl_perf_source_overlay(d, source);
    return TL_OK;
}

/* The trace IDs of encoders that send SRC are not in the file: any may be there. */
static int add_ids(struct tl_setup *setup, const struct tl_perf_decode *d)
{
    int rc = TL_OK;
    struct tl_perf_unit unit = d->info.units[0];
    for (unit.id = 1; rc == TL_OK && unit.id < 0x70; unit.id++)
        rc = add_encoder(setup, d, &unit, true);
    return rc;
}

static int add_given(struct tl_setup *setup, const struct tl_perf_decode *d)
{
    for (size_t i = 0; i < d->setup->n_sources; i++) {
        struct tl_source *const source = tl_setup_add_source(setup);
        if (!source)
            return TL_NOMEM;
        *source = d->setup->sources[i];
    }
    return TL_OK;
}

static int make(const struct tl_perf_decode *d, bool framed, struct tl_setup *setup)
{
    struct tl_fail fail;
    tl_setup_init(setup);
    int rc = tl_setup_format(setup,
                             framed         ? "tpiu"
                             : is_etrace(d) ? "etrace-encap"
                                            : "ntrace",
                             &fail);
    if (rc == TL_OK && d->info.n_units == 0)
        return add_given(setup, d);
    if (!framed)
        setup->src_bits = src_bits(d);
    if (rc == TL_OK && framed && !d->info.units[0].regs[TL_PERF_INHIBIT_SRC])
        return add_ids(setup, d);
    for (size_t i = 0; rc == TL_OK && i < d->info.n_units; i++)
        if (!framed || d->info.units[i].id)
            rc = add_encoder(setup, d, &d->info.units[i], framed);
    return rc;
}

static int on_items(void *context, const struct tl_decode_stream *stream,
                    const struct tl_item *items, size_t n)
{
    return TL_OK;
}

static int on_loss(void *context, const struct tl_decode_loss *loss)
{
    *(uint64_t *)context += loss->bytes;
    return TL_OK;
}

/* How many bytes of the beginning are lost with this setup. */
static int count_lost(const struct tl_setup *setup, struct tl_bytes bytes, uint64_t *out)
{
    const struct tl_decode_sink sink = {.context = out, .items = on_items, .loss = on_loss};
    struct tl_decode *decode = NULL;
    struct tl_fail fail = {0};
    *out = 0;
    int rc = tl_decode_new(&decode, setup, NULL, &sink, &fail);
    if (rc < 0)
        *out = bytes.n;
    if (rc == TL_OK)
        rc = tl_decode_push(decode, bytes.p, bytes.n < TRIED ? bytes.n : TRIED);
    if (rc == TL_OK)
        rc = tl_decode_finish(decode);
    tl_decode_free(decode);
    return rc == TL_NOMEM ? rc : TL_OK;
}

int tl_perf_riscv_setup(const struct tl_perf_decode *d, struct tl_bytes bytes,
                        struct tl_setup *setup)
{
    struct tl_setup plain;
    uint64_t lost_framed = 0, lost_plain = 0;
    int rc = make(d, true, setup);
    const int rc2 = make(d, false, &plain);
    rc = rc < 0 ? rc : rc2;
    if (rc == TL_OK)
        rc = count_lost(setup, bytes, &lost_framed);
    if (rc == TL_OK)
        rc = count_lost(&plain, bytes, &lost_plain);
    if (lost_framed <= lost_plain && bytes.n % 16 == 0) {
        tl_setup_fini(&plain);
    } else {
        tl_setup_fini(setup);
        *setup = plain;
    }
    return rc;
}
