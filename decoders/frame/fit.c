/* SPDX-License-Identifier: MIT */
/*
 * The bytes go through the real frame decoder, so that a trial aligns what a decode would. What is
 * counted needs no configuration: runs of zeros or ones that end a synchronisation packet, which
 * hardly occur by chance.
 */
#include "frame/fit.h"

#include <stdlib.h>
#include <string.h>

#define ETM4_ZEROS  11 /* bytes */
#define ITM_ZEROS   5
#define STM_NIBBLES 21

struct trial {
    struct tl_fit *fit;
    const struct tl_fit_sources *sources;
    uint8_t repeated[128]; /* number of preceding bytes 00, or nibbles f; by trace ID */
    uint64_t begun[128];   /* offset of the first of them */
    struct tl_tpiu tpiu;
};

/* Does this byte end a synchronisation packet? */
static bool ends_sync(uint8_t *repeated, uint8_t byte, enum tl_fit_kind kind)
{
    if (kind == TL_FIT_STM) {
        bool ends = false;
        for (unsigned i = 0; i < 8; i += 4) {
            const unsigned nibble = byte >> i & 0xf;
            ends |= nibble == 0 && *repeated >= STM_NIBBLES;
            *repeated = nibble == 0xf ? (uint8_t)(*repeated + (*repeated < STM_NIBBLES)) : 0;
        }
        return ends;
    }
    const uint8_t zeros = kind == TL_FIT_ETM4 ? ETM4_ZEROS : ITM_ZEROS;
    const bool ends = byte == 0x80 && *repeated >= zeros;
    *repeated = byte == 0 ? (uint8_t)(*repeated + (*repeated < zeros)) : 0;
    return ends;
}

/* Count the run's bytes in their slots. A slot has at most as many of them as it has places. */
static void count_known(struct tl_fit *fit, const struct tl_run *run)
{
    for (size_t i = 0, end; i < run->n; i = end) {
        const uint64_t first = tl_run_offset(run, i), slot = first / TL_FIT_SLOT;
        const uint64_t left = (slot + 1) * TL_FIT_SLOT - first;
        end = left < run->n - i ? i + (size_t)left : run->n;
        while (tl_run_offset(run, end - 1) / TL_FIT_SLOT != slot)
            end--;
        fit->known[slot] += (uint8_t)(end - i);
    }
}

static int on_run(void *context, uint8_t id, const struct tl_run *run)
{
    struct trial *const t = context;
    const enum tl_fit_kind kind = t->sources->kinds[id & 127];
    if (kind == TL_FIT_UNKNOWN)
        return TL_OK;
    uint8_t *const repeated = &t->repeated[id & 127];
    count_known(t->fit, run);
    for (size_t i = 0; i < run->n; i++) {
        if (*repeated == 0 && kind != TL_FIT_STM) { /* to the next byte that matters */
            const uint8_t *const next = memchr(run->p + i, 0, run->n - i);
            if (!next)
                break;
            i = (size_t)(next - run->p);
        }
        if (ends_sync(repeated, run->p[i], kind))
            t->fit->syncs[t->begun[id & 127] / TL_FIT_SLOT]++;
        if (*repeated <= (kind == TL_FIT_STM ? 2 : 1))
            t->begun[id & 127] = tl_run_offset(run, i);
    }
    return TL_OK;
}

int tl_fit_frames(struct tl_fit *fit, const struct tl_fit_sources *sources, const uint8_t *p,
                  size_t n)
{
    struct trial *const t = malloc(sizeof *t);
    if (!t)
        return TL_NOMEM;
    memset(t, 0, offsetof(struct trial, tpiu)); /* tl_tpiu_init() clears `tpiu` */
    *fit = (struct tl_fit){0};
    t->fit = fit;
    t->sources = sources;
    const struct tl_tpiu_sink sink = {
        .context = t, .run = on_run, .apart = {UINT64_MAX, UINT64_MAX}};
    tl_tpiu_init(&t->tpiu, TL_TPIU_ALIGNED, 0, &sink);
    int rc = tl_demux_set_id(&t->tpiu.demux, sources->id);
    if (rc == TL_OK)
        rc = tl_tpiu_push(&t->tpiu, p, n);
    if (rc == TL_OK)
        rc = tl_tpiu_finish(&t->tpiu, TL_TPIU_UNFINISHED);
    free(t);
    return rc;
}
