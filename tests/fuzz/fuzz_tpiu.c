/* SPDX-License-Identifier: MIT */
/*
 * The de-framer accepts any bytes, and gives each source the same bytes at the same offsets, for
 * any chunking, with runs in order or separated. The first byte chooses synchronisation mode and
 * chunk size.
 */
#include "frame/tpiu.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct digest {
    uint64_t hash[128];
    uint64_t bytes;
    uint64_t last[128];
    uint64_t lost;
    unsigned resets;
};

static int on_run(void *context, uint8_t id, const struct tl_run *run)
{
    struct digest *const d = context;
    if (id == 0 || id >= TL_TPIU_FIRST_RESERVED || run->n == 0 || run->n > TL_DEMUX_BLOCK)
        abort();
    for (size_t i = 0; i < run->n; i++) {
        const uint64_t offset = tl_run_offset(run, i);
        if (d->last[id] && offset < d->last[id])
            abort();
        d->last[id] = offset + 1;
        d->hash[id] = (d->hash[id] ^ run->p[i] ^ offset << 8) * 1099511628211u;
    }
    d->bytes += run->n;
    return TL_OK;
}

static int on_loss(void *context, const char *reason, uint64_t offset, uint64_t bytes)
{
    struct digest *const d = context;
    if (!reason || !bytes)
        abort();
    d->lost += bytes;
    return TL_OK;
}

static int on_reset(void *context, uint64_t offset, bool out_of_step)
{
    ((struct digest *)context)->resets++;
    return TL_OK;
}

static void decode(struct digest *d, enum tl_tpiu_sync sync, const uint8_t *p, size_t n,
                   size_t chunk, uint64_t apart)
{
    static struct tl_tpiu t;
    const struct tl_tpiu_sink sink = {d, on_run, on_loss, on_reset, {apart, apart}};
    memset(d, 0, sizeof *d);
    tl_tpiu_init(&t, sync, 0, &sink);
    for (size_t i = 0; i < n; i += chunk)
        if (tl_tpiu_push(&t, p + i, n - i < chunk ? n - i : chunk) < 0)
            abort();
    if (tl_tpiu_finish(&t, TL_TPIU_UNFINISHED) < 0 || d->bytes + d->lost > n)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct digest whole, parts, apart;
    if (size < 1)
        return 0;
    const enum tl_tpiu_sync sync = data[0] & 3;
    decode(&whole, sync, data + 1, size - 1, size, 0);
    decode(&parts, sync, data + 1, size - 1, 1 + (data[0] >> 2), 0xff0f0f0f0f0f0f0f);
    decode(&apart, sync, data + 1, size - 1, size, ~(uint64_t)0);
    if (memcmp(&whole, &parts, sizeof whole) || memcmp(&whole, &apart, sizeof whole))
        abort();
    return 0;
}
