/* SPDX-License-Identifier: MIT */
/*
 * Each packet appends its bytes and its line of flow text, the latter to `held` until a local
 * timestamp comes: the truth is built from what happens, not from the bytes.
 */
#include "sim/itm_encoder.h"

#include <inttypes.h>

void tl_sim_itm_init(struct tl_sim_itm *itm, const struct tl_sim_itm_options *options)
{
    itm->options = *options;
    itm->rng = (struct tl_sim_rng){options->seed};
}

void tl_sim_itm_fini(struct tl_sim_itm *itm)
{
    tl_buf_fini(&itm->trace);
    tl_buf_fini(&itm->text);
    tl_buf_fini(&itm->held);
}

static int release(struct tl_sim_itm *itm)
{
    const int rc = tl_buf_add(&itm->text, itm->held.p, itm->held.n);
    tl_buf_reset(&itm->held);
    itm->together = 0;
    return rc;
}

static int put(struct tl_sim_itm *itm, const uint8_t *bytes, size_t n)
{
    itm->begun = true;
    return tl_buf_add(&itm->trace, bytes, n);
}

/* A header and `value` in groups of 7 bits: `n` of them, or as many as necessary (0). */
static int put_series(struct tl_sim_itm *itm, uint8_t header, uint64_t value, unsigned n)
{
    uint8_t bytes[8] = {header};
    unsigned i = 1;
    do {
        bytes[i] = (uint8_t)(value & 0x7f);
        value >>= 7;
        if (n ? i < n : value != 0)
            bytes[i] |= 0x80;
    } while (bytes[i++] & 0x80);
    return put(itm, bytes, i);
}

static int put_source(struct tl_sim_itm *itm)
{
    static const uint8_t sizes[] = {0, 1, 2, 4};
    const bool hardware = tl_sim_below(&itm->rng, 4) == 0;
    const unsigned ss = 1 + tl_sim_below(&itm->rng, 3), id = tl_sim_below(&itm->rng, 24);
    uint8_t bytes[5] = {(uint8_t)(id << 3 | (unsigned)hardware << 2 | ss)};
    uint32_t value = 0;
    for (unsigned i = 0; i < sizes[ss]; i++) {
        bytes[1 + i] = (uint8_t)tl_sim_below(&itm->rng, 256);
        value |= (uint32_t)bytes[1 + i] << 8 * i;
    }
    const unsigned channel = hardware ? id : itm->page << 5 | id;
    const int rc = tl_buf_printf(&itm->held, "S %s %x %0*" PRIx32 "\n", hardware ? "dwt" : "itm",
                                 channel, 2 * sizes[ss], value);
    itm->together++;
    return rc < 0 ? rc : put(itm, bytes, 1 + sizes[ss]);
}

static int put_local_time(struct tl_sim_itm *itm)
{
    const uint32_t bits = tl_sim_below(&itm->rng, 27);
    const uint32_t delta = 1 + tl_sim_below(&itm->rng, UINT32_C(1) << bits);
    const uint8_t brief = (uint8_t)(delta << 4),
                  header = (uint8_t)(0xc0 | tl_sim_below(&itm->rng, 4) << 4);
    itm->time += (uint64_t)delta * itm->options.prescale;
    itm->times++;
    int rc = tl_buf_printf(&itm->text, "A time %" PRIu64 "\n", itm->time);
    if (rc >= 0)
        rc = release(itm);
    if (rc < 0)
        return rc;
    return delta <= 6 && tl_sim_below(&itm->rng, 2) ? put(itm, &brief, 1)
                                                    : put_series(itm, header, delta, 0);
}

/* The lower bits, of which the upper ones have not changed; or all, beginning with the upper. */
static int put_global_time(struct tl_sim_itm *itm)
{
    const uint64_t next = itm->global + 1 + tl_sim_below(&itm->rng, 100000);
    const uint64_t low = next & 0x3ffffff;
    const bool whole = itm->global == 0 || itm->global >> 26 != next >> 26;
    uint8_t bytes[5] = {0x94, (uint8_t)(low | 0x80), (uint8_t)(low >> 7 | 0x80),
                        (uint8_t)(low >> 14 | 0x80), (uint8_t)(low >> 21 & 0x1f)};
    bytes[4] |= whole ? 0x40 : 0;
    int rc = put(itm, bytes, sizeof bytes);
    if (rc >= 0 && whole && itm->global == 0)
        rc = tl_buf_printf(&itm->held, "A global-time-low %" PRIu64 "\n", low);
    if (rc >= 0 && whole)
        rc = put_series(itm, 0xb4, next >> 26, 4);
    itm->global = next;
    itm->together += 1 + whole;
    return rc < 0 ? rc : tl_buf_printf(&itm->held, "A global-time %" PRIu64 "\n", next);
}

static int put_overflow(struct tl_sim_itm *itm)
{
    const uint8_t header = 0x70;
    int rc = release(itm);
    if (rc >= 0)
        rc = tl_buf_printf(&itm->text, "G overflow\n");
    itm->overflows++;
    return rc < 0 ? rc : put(itm, &header, 1);
}

static int put_page(struct tl_sim_itm *itm)
{
    itm->page = tl_sim_below(&itm->rng, 8);
    const uint8_t header = (uint8_t)(itm->page << 4 | 8);
    return put(itm, &header, 1);
}

static int put_bad_bytes(struct tl_sim_itm *itm)
{
    static const uint8_t bad[] = {0x04, 0x14, 0x24, 0x44, 0x80, 0x84, 0xa0, 0xe4, 0xf4};
    const bool begun = itm->begun;
    int rc = release(itm);
    if (rc >= 0)
        rc = tl_buf_printf(&itm->text, "G %s\n", begun ? "bad-packet" : "sync");
    for (unsigned n = 1 + tl_sim_below(&itm->rng, 3); n > 0 && rc >= 0; n--)
        rc = tl_buf_add(&itm->trace, &bad[tl_sim_below(&itm->rng, sizeof bad)], 1);
    itm->gaps++;
    return rc;
}

int tl_sim_itm_sync(struct tl_sim_itm *itm)
{
    static const uint8_t sync[] = {0, 0, 0, 0, 0, 0x80};
    return put(itm, sync, sizeof sync);
}

static int put_anything(struct tl_sim_itm *itm)
{
    const struct tl_sim_itm_options *const o = &itm->options;
    const unsigned choice = tl_sim_below(&itm->rng, 100);
    if (o->timed && itm->together > 0 && (choice < 60 || itm->together > 20))
        return put_local_time(itm);
    if (choice < 2 && o->syncs)
        return tl_sim_itm_sync(itm);
    if (choice < 4 && o->global)
        return put_global_time(itm);
    return choice < 6 ? put_page(itm) : put_source(itm);
}

int tl_sim_itm_run(struct tl_sim_itm *itm, unsigned n)
{
    const struct tl_sim_itm_options *const o = &itm->options;
    int rc = TL_OK;
    for (; n > 0 && rc >= 0; n--) {
        if (o->bad_bytes && tl_sim_below(&itm->rng, o->bad_bytes) == 0)
            rc = put_bad_bytes(itm);
        else if (o->overflows && tl_sim_below(&itm->rng, o->overflows) == 0)
            rc = put_overflow(itm);
        /* So that a gap is followed by a packet. */
        if (rc >= 0)
            rc = put_anything(itm);
    }
    return rc;
}

int tl_sim_itm_end(struct tl_sim_itm *itm)
{
    const int rc = release(itm);
    return rc < 0 ? rc : tl_buf_add(&itm->text, "", 1);
}
