/* SPDX-License-Identifier: MIT */
/*
 * Counts runs and branches in hash tables, and stores them sorted in columns of differences.
 * Neighbours in such a column are nearly equal, so that it compresses better than records.
 */
#include "shard/codecount.h"

#include "shard/shard.h"
#include "shard/varint.h"

#include <stdlib.h>

enum { VERSION = 3, PLAIN_MAX = 64 << 20, ADDRESSES_MAX = 1 << 24 };

enum { CONTEXT = 1, VMID = 2 }; /* identifiers of a program */

void tl_codecount_fini(struct tl_codecount *c)
{
    tl_numbers_fini(&c->addresses);
    tl_numbers_fini(&c->runs);
    tl_numbers_fini(&c->branches);
    free(c->run_counts);
    free(c->branch_counts);
    free(c->programs);
    tl_numbers_fini(&c->program_keys);
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

struct tl_code_program tl_code_program_of(const struct tl_image *image,
                                          const struct tl_flow_now *now, uint64_t *until)
{
    struct tl_code_program p = {.context = {.context_id = now->context,
                                            .vmid = now->vmid,
                                            .has_context_id = now->has_context,
                                            .has_vmid = now->has_vmid},
                                .time = now->has_time ? now->time : 0};
    *until = UINT64_MAX;
    p.view = image ? tl_image_view(image, &p.context, p.time, until) : 0;
    return p;
}

static bool same_program(const struct tl_code_program *a, const struct tl_code_program *b)
{
    return a->view == b->view && a->context.has_context_id == b->context.has_context_id &&
           a->context.has_vmid == b->context.has_vmid &&
           a->context.context_id == b->context.context_id && a->context.vmid == b->context.vmid;
}

static uint64_t hash_program(const struct tl_code_program *p)
{
    const uint64_t k = UINT64_C(0x9e3779b97f4a7c15);
    const uint64_t flags =
        (p->context.has_context_id ? CONTEXT : 0) | (p->context.has_vmid ? VMID : 0);
    return ((p->context.context_id * k + p->context.vmid) * k + p->view) * k + flags;
}

int tl_codecount_program(struct tl_codecount *c, const struct tl_code_program *program,
                         uint32_t *number)
{
    /* Programs of the same hash take the keys after it. */
    uint64_t key = hash_program(program);
    while ((*number = tl_numbers_find(&c->program_keys, key)) != TL_NO_NUMBER) {
        if (same_program(&c->programs[*number], program))
            return TL_OK;
        key++;
    }
    if (c->n_programs == TL_CODECOUNT_PROGRAMS) {
        c->truncated = true;
        return TL_OK;
    }
    if (tl_grow(&c->programs, &c->cap_programs, c->n_programs + 1, sizeof *c->programs) < 0 ||
        tl_numbers_add(&c->program_keys, key) < 0)
        return TL_NOMEM;
    *number = (uint32_t)c->n_programs;
    c->programs[c->n_programs] = *program;
    c->programs[c->n_programs++].insns = 0;
    return TL_OK;
}

/* The number of the pair `a` to `b`, with capacity for its count. */
static int pair_of(struct tl_codecount *c, struct tl_numbers *pairs, uint64_t **counts, size_t *cap,
                   uint32_t program, uint64_t a, uint64_t b, uint32_t *out)
{
    uint32_t from, to;
    *out = TL_NO_NUMBER;
    if (program == TL_NO_NUMBER || c->addresses.n > ADDRESSES_MAX - 2) {
        c->truncated = true;
        return TL_OK;
    }
    int r = number_of(&c->addresses, a, &from);
    if (r >= 0)
        r = number_of(&c->addresses, b, &to);
    if (r < 0)
        return r;
    const uint64_t key = tl_code_pair_key(program, from, to);
    *out = tl_numbers_find(pairs, key);
    if (*out != TL_NO_NUMBER)
        return TL_OK;
    if (pairs->n >= TL_CODECOUNT_MAX) {
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

int tl_codecount_number(struct tl_codecount *c, uint32_t program, uint64_t first, uint64_t last,
                        uint32_t *number)
{
    return pair_of(c, &c->runs, &c->run_counts, &c->cap_runs, program, first, last, number);
}

int tl_codecount_run(struct tl_codecount *c, uint32_t program, uint64_t first, uint64_t last,
                     uint64_t n)
{
    uint32_t number;
    const int r = tl_codecount_number(c, program, first, last, &number);
    if (r >= 0 && number != TL_NO_NUMBER)
        c->run_counts[number] += n;
    return r;
}

int tl_codecount_branch(struct tl_codecount *c, uint32_t program, uint64_t from, uint64_t to,
                        uint64_t n)
{
    uint32_t number;
    const int r =
        pair_of(c, &c->branches, &c->branch_counts, &c->cap_branches, program, from, to, &number);
    if (r >= 0 && number != TL_NO_NUMBER)
        c->branch_counts[number] += n;
    return r;
}

/* ---- in the store ---------------------------------------------------------------------------- */

static int put_programs(const struct tl_codecount *c, struct tl_buf *out)
{
    int r = tl_varint_add(out, c->n_programs);
    for (size_t i = 0; i < c->n_programs && r >= 0; i++) {
        const struct tl_code_program *const p = &c->programs[i];
        const uint64_t words[] = {(p->context.has_context_id ? CONTEXT : 0u) |
                                      (p->context.has_vmid ? VMID : 0u),
                                  p->context.context_id, p->context.vmid, p->time, p->insns};
        for (size_t k = 0; k < sizeof words / sizeof *words && r >= 0; k++)
            r = tl_varint_add(out, words[k]);
    }
    return r;
}

/* A run or branch as stored. */
struct row {
    uint32_t program;
    uint64_t from, to, times;
};

static int compare(const void *a, const void *b)
{
    const struct row *const x = a, *const y = b;
    if (x->program != y->program)
        return x->program < y->program ? -1 : 1;
    if (x->from != y->from)
        return x->from < y->from ? -1 : 1;
    return x->to < y->to ? -1 : x->to > y->to;
}

enum { COLUMNS = 4 };

/* The value in a column of a row. */
static uint64_t in_column(unsigned column, const struct row *row, const struct row *before)
{
    switch (column) {
    case 0:
        return row->program - before->program;
    case 1:
        return tl_zigzag((int64_t)(row->from - before->from));
    case 2:
        return tl_zigzag((int64_t)(row->to - row->from));
    default:
        return row->times;
    }
}

static int put_pairs(const struct tl_codecount *c, const struct tl_numbers *pairs,
                     const uint64_t *counts, struct tl_buf *out)
{
    struct row *const rows = malloc((pairs->n + 1) * sizeof *rows);
    uint32_t n = 0;
    if (!rows)
        return TL_NOMEM;
    for (uint32_t i = 0; i < pairs->n; i++) {
        const struct tl_code_pair pair = tl_code_pair(c, pairs->keys[i]);
        if (counts[i] > 0)
            rows[n++] = (struct row){pair.program, pair.from, pair.to, counts[i]};
    }
    qsort(rows, n, sizeof *rows, compare);
    int r = tl_varint_add(out, n);
    for (unsigned column = 0; column < COLUMNS; column++)
        for (uint32_t i = 0; i < n && r >= 0; i++)
            r = tl_varint_add(out,
                              in_column(column, &rows[i], i > 0 ? &rows[i - 1] : &(struct row){0}));
    free(rows);
    return r;
}

int tl_codecount_encode(const struct tl_codecount *c, struct tl_packer *packer, struct tl_buf *out)
{
    struct tl_buf plain = {0};
    int r = tl_varint_add(&plain, VERSION);
    if (r >= 0)
        r = tl_varint_add(&plain, c->insns);
    if (r >= 0)
        r = put_programs(c, &plain);
    if (r >= 0)
        r = put_pairs(c, &c->runs, c->run_counts, &plain);
    if (r >= 0)
        r = put_pairs(c, &c->branches, c->branch_counts, &plain);
    if (r >= 0)
        r = tl_packer_checked(packer, (struct tl_bytes){plain.p, plain.n}, out);
    tl_buf_fini(&plain);
    return r;
}

/* `numbers` maps indices in the object to numbers here. */
static int get_programs(struct tl_varint_reader *in, const struct tl_image *image,
                        struct tl_codecount *out, uint32_t **numbers, uint64_t *n)
{
    *n = tl_varint_get(in);
    if (in->bad || *n > TL_CODECOUNT_PROGRAMS)
        return TL_NOTFOUND;
    *numbers = calloc(*n + 1, sizeof **numbers);
    int r = *numbers ? TL_OK : TL_NOMEM;
    for (uint64_t i = 0; i < *n && !in->bad && r >= 0; i++) {
        struct tl_code_program p = {0};
        const uint64_t has = tl_varint_get(in);
        p.context.has_context_id = has & CONTEXT;
        p.context.has_vmid = has & VMID;
        p.context.context_id = tl_varint_get(in);
        p.context.vmid = tl_varint_get(in);
        p.time = tl_varint_get(in);
        p.insns = tl_varint_get(in);
        p.view = image ? tl_image_view(image, &p.context, p.time, NULL) : 0;
        r = tl_codecount_program(out, &p, &(*numbers)[i]);
        if (r >= 0 && (*numbers)[i] != TL_NO_NUMBER)
            out->programs[(*numbers)[i]].insns += p.insns;
    }
    return r;
}

static void get_columns(struct tl_varint_reader *in, struct row *rows, uint64_t n)
{
    struct row last = {0};
    for (uint64_t i = 0; i < n; i++)
        last.program = rows[i].program = last.program + (uint32_t)tl_varint_get(in);
    for (uint64_t i = 0; i < n; i++)
        last.from = rows[i].from = last.from + (uint64_t)tl_varint_get_signed(in);
    for (uint64_t i = 0; i < n; i++)
        rows[i].to = rows[i].from + (uint64_t)tl_varint_get_signed(in);
    for (uint64_t i = 0; i < n; i++)
        rows[i].times = tl_varint_get(in);
}

static int get_pairs(struct tl_varint_reader *in, const uint32_t *programs, uint64_t n_programs,
                     struct tl_codecount *out, tl_codecount_add_pair *count)
{
    const uint64_t n = tl_varint_get(in);
    if (in->bad || n > (uint64_t)(in->end - in->p) / COLUMNS)
        return TL_NOTFOUND;
    struct row *const rows = malloc((n + 1) * sizeof *rows);
    if (!rows)
        return TL_NOMEM;
    get_columns(in, rows, n);
    int r = in->bad ? TL_NOTFOUND : TL_OK;
    for (uint64_t i = 0; i < n && r >= 0; i++)
        r = rows[i].program < n_programs
                ? count(out, programs[rows[i].program], rows[i].from, rows[i].to, rows[i].times)
                : TL_NOTFOUND;
    free(rows);
    return r;
}

static int get_all(struct tl_varint_reader *in, const struct tl_image *image,
                   struct tl_codecount *c)
{
    uint32_t *programs = NULL;
    uint64_t n = 0;
    const uint64_t insns = tl_varint_get(in);
    int r = get_programs(in, image, c, &programs, &n);
    if (r >= 0)
        r = get_pairs(in, programs, n, c, tl_codecount_run);
    if (r >= 0)
        r = get_pairs(in, programs, n, c, tl_codecount_branch);
    c->insns += insns;
    free(programs);
    return r;
}

int tl_codecount_decode(struct tl_codecount *c, const struct tl_image *image,
                        struct tl_bytes object)
{
    struct tl_buf plain = {0};
    int r = tl_unpack_checked(object, PLAIN_MAX, &plain);
    struct tl_varint_reader in = {.p = plain.p, .end = plain.p + plain.n};
    if (r >= 0)
        r = tl_varint_get(&in) == VERSION ? get_all(&in, image, c) : TL_UNSUPPORTED;
    tl_buf_fini(&plain);
    return r;
}
