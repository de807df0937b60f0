/* SPDX-License-Identifier: MIT */
/*
 * Texts with a checksum as their last line, so that damage is found before a number is believed.
 * Callers parse only what stands in front of it.
 */
#include "lake/summed.h"

#include "base/crc32c.h"
#include "lake/lakeint.h"

#include <stdio.h>
#include <string.h>

#define SUM_FORMAT "sum %08x\n"
#define SUM_BYTES  13

static void format_sum(const struct tl_buf *text, char out[static SUM_BYTES + 1])
{
    snprintf(out, SUM_BYTES + 1, SUM_FORMAT, (unsigned)tl_crc32c(0, text->p, text->n));
}

int tl_summed_get(struct tl_lake *lake, const char *key, struct tl_buf *out)
{
    char sum[SUM_BYTES + 1];
    const int r = tl_backend_get_all(lake->backend, key, out, NULL);
    if (r < 0)
        return r;
    if (out->n < SUM_BYTES)
        return TL_BAD;
    out->n -= SUM_BYTES;
    format_sum(out, sum);
    if (memcmp(out->p + out->n, sum, SUM_BYTES) != 0)
        return TL_BAD;
    out->p[out->n] = '\0';
    return TL_OK;
}

int tl_summed_put(struct tl_lake *lake, const char *key, const struct tl_buf *text,
                  struct tl_fail *fail)
{
    struct tl_buf all = {0};
    char sum[SUM_BYTES + 1];
    format_sum(text, sum);
    int r = tl_buf_add(&all, text->p, text->n);
    if (r >= 0)
        r = tl_buf_add(&all, sum, SUM_BYTES);
    if (r >= 0)
        r = tl_backend_put(lake->backend, key, (struct tl_bytes){all.p, all.n}, fail);
    tl_buf_fini(&all);
    return r;
}
