/* SPDX-License-Identifier: MIT */
#include "store/codecount.h"

#include "base/crc32c.h"
#include "store/shard.h"
#include "store/varint.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { VERSION = 1, CRC = 4, PLAIN_MOST = 64 << 20 };

void tl_codecount_fini(struct tl_codecount *c)
{
    tl_numbers_fini(&c->addresses);
    tl_numbers_fini(&c->runs);
    tl_numbers_fini(&c->branches);
    free(c->run_counts);
    free(c->branch_counts);
    *c = (struct tl_codecount){0};
}

static int number_of(struct tl_numbers *numbers, uint64_t key, uint32_t *out)
{
    *out = tl_numbers_find(numbers, key);
    if (*out != TL_NO_NUMBER)
        return TL_OK;
    const int r = tl_numbers_add(numbers, key);
    *out = numbers->n - 1;
    return r;
}

/* The number of what goes from `a` to `b`, and room for its count. */
static int pair_of(struct tl_codecount *c, struct tl_numbers *pairs, uint64_t **counts, size_t *cap,
                   uint64_t a, uint64_t b, uint32_t *out)
{
    uint32_t from, to;
    int r = number_of(&c->addresses, a, &from);
    if (r >= 0)
        r = number_of(&c->addresses, b, &to);
    if (r < 0)
        return r;
    const uint64_t key = (uint64_t)from << 32 | to;
    *out = tl_numbers_find(pairs, key);
    if (*out != TL_NO_NUMBER)
        return TL_OK;
    if (pairs->n >= TL_CODECOUNT_MOST) {
        c->truncated = true;
        return TL_OK;
    }
    r = tl_grow(counts, cap, pairs->n + (size_t)1, sizeof **counts);
    if (r >= 0)
        r = tl_numbers_add(pairs, key);
    if (r < 0)
        return r;
    *out = pairs->n - 1;
    (*counts)[*out] = 0;
    return TL_OK;
}

int tl_codecount_number(struct tl_codecount *c, uint64_t first, uint64_t last, uint32_t *number)
{
    return pair_of(c, &c->runs, &c->run_counts, &c->cap_runs, first, last, number);
}

int tl_codecount_run(struct tl_codecount *c, uint64_t first, uint64_t last, uint64_t n)
{
    uint32_t number;
    const int r = tl_codecount_number(c, first, last, &number);
    if (r >= 0 && number != TL_NO_NUMBER)
        c->run_counts[number] += n;
    return r;
}

int tl_codecount_branch(struct tl_codecount *c, uint64_t from, uint64_t to, uint64_t n)
{
    uint32_t number;
    const int r = pair_of(c, &c->branches, &c->branch_counts, &c->cap_branches, from, to, &number);
    if (r >= 0 && number != TL_NO_NUMBER)
        c->branch_counts[number] += n;
    return r;
}

/* ---- in the store ---------------------------------------------------------------------------- */

char *tl_codecount_key(char out[static 192], const char *trace, uint64_t generation,
                       const char *stream, uint64_t number)
{
    snprintf(out, 192, "t/%s/%" PRIu64 "/%s/%06" PRIu64 ".count", trace, generation, stream,
             number);
    return out;
}

static int put_pairs(const struct tl_codecount *c, const struct tl_numbers *pairs,
                     const uint64_t *counts, struct tl_buf *out)
{
    uint64_t from = 0;
    uint32_t n = 0;
    for (uint32_t i = 0; i < pairs->n; i++)
        n += counts[i] > 0;
    int r = tl_varint_add(out, n);
    for (uint32_t i = 0; i < pairs->n && r >= 0; i++) {
        if (counts[i] == 0)
            continue;
        const uint64_t a = c->addresses.keys[pairs->keys[i] >> 32],
                       b = c->addresses.keys[(uint32_t)pairs->keys[i]];
        r = tl_varint_add(out, tl_zigzag((int64_t)(a - from)));
        if (r >= 0)
            r = tl_varint_add(out, tl_zigzag((int64_t)(b - a)));
        if (r >= 0)
            r = tl_varint_add(out, counts[i]);
        from = a;
    }
    return r;
}

int tl_codecount_encode(const struct tl_codecount *c, struct tl_packer *packer, struct tl_buf *out)
{
    static const uint8_t zeros[CRC];
    struct tl_buf plain = {0};
    const size_t begin = out->n;
    int r = tl_varint_add(&plain, VERSION);
    if (r >= 0)
        r = tl_varint_add(&plain, c->insns);
    if (r >= 0)
        r = put_pairs(c, &c->runs, c->run_counts, &plain);
    if (r >= 0)
        r = put_pairs(c, &c->branches, c->branch_counts, &plain);
    if (r >= 0)
        r = tl_buf_add(out, zeros, CRC);
    if (r >= 0)
        r = tl_packer_bytes(packer, (struct tl_bytes){plain.p, plain.n}, out);
    if (r >= 0)
        tl_put_le32(out->p + begin, tl_crc32c(0, out->p + begin + CRC, out->n - begin - CRC));
    tl_buf_fini(&plain);
    return r;
}

static int get_pairs(struct tl_varint_reader *in, struct tl_codecount *out,
                     int (*count)(struct tl_codecount *c, uint64_t a, uint64_t b, uint64_t n))
{
    const uint64_t n = tl_varint_get(in);
    uint64_t from = 0;
    int r = TL_OK;
    for (uint64_t i = 0; i < n && !in->bad && r >= 0; i++) {
        from += (uint64_t)tl_varint_get_signed(in);
        const uint64_t to = from + (uint64_t)tl_varint_get_signed(in);
        const uint64_t times = tl_varint_get(in);
        r = in->bad ? TL_OK : count(out, from, to, times);
    }
    return r;
}

int tl_codecount_decode(struct tl_codecount *c, struct tl_bytes object)
{
    struct tl_buf plain = {0};
    if (object.n < CRC || tl_le32(object.p) != tl_crc32c(0, object.p + CRC, object.n - CRC))
        return TL_NOTFOUND;
    int r = tl_unpack((struct tl_bytes){object.p + CRC, object.n - CRC}, PLAIN_MOST, &plain);
    struct tl_varint_reader in = {.p = plain.p, .end = plain.p + plain.n};
    if (r == TL_OK && tl_varint_get(&in) == VERSION) {
        c->insns += tl_varint_get(&in);
        r = get_pairs(&in, c, tl_codecount_run);
        if (r >= 0)
            r = get_pairs(&in, c, tl_codecount_branch);
    } else if (r != TL_NOMEM) {
        r = TL_NOTFOUND;
    }
    tl_buf_fini(&plain);
    return r;
}
