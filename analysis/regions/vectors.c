/* SPDX-License-Identifier: MIT */
/*
 * Counts are kept in arrays by the number of the block, and only those met in an interval are
 * delivered and reset: an interval executes few of a program's blocks. Parts are sorted by number,
 * so that sums over them are the same on every machine.
 */
#include "regions/vectors.h"

#include "base/numbers.h"

#include <stdlib.h>

#define MEMO 4096 /* instructions for which the cache stores whether they end a block */

/* Counts by key of one kind: blocks or pages. */
struct counts {
    struct tl_numbers numbers; /* all keys of the trace: id - 1 */
    uint32_t *n;               /* counts in this interval, by number */
    size_t cap_n;
    uint32_t *met; /* numbers with a count, in order of appearance */
    size_t n_met, cap_met;
    struct tl_vector_part *parts;
    size_t cap_parts;
};

struct memo {
    uint64_t pc;
    uint32_t opcode; /* first bytes: the code at an address may change */
    uint8_t size, isa;
    bool ends;
};

struct tl_vectors {
    uint64_t interval, first, insns;
    tl_vector_sink *sink;
    void *context;
    struct counts blocks, pages;
    uint32_t block;   /* number of the current block */
    uint64_t next_pc; /* address after the last instruction */
    bool within;      /* the next instruction continues `block` if it is at next_pc */
    struct memo memo[MEMO];
};

int tl_vectors_new(struct tl_vectors **out, uint64_t interval, tl_vector_sink *sink, void *context)
{
    if (interval == 0 || interval > UINT32_MAX)
        return TL_USAGE;
    struct tl_vectors *const v = calloc(1, sizeof *v);
    if (!v)
        return TL_NOMEM;
    v->interval = interval;
    v->sink = sink;
    v->context = context;
    *out = v;
    return TL_OK;
}

static void counts_fini(struct counts *c)
{
    tl_numbers_fini(&c->numbers);
    free(c->n);
    free(c->met);
    free(c->parts);
}

void tl_vectors_free(struct tl_vectors *v)
{
    if (!v)
        return;
    counts_fini(&v->blocks);
    counts_fini(&v->pages);
    free(v);
}

/* The number of a key, with capacity for its count. */
static int number_of(struct counts *c, uint64_t key, uint32_t *out)
{
    *out = tl_numbers_find(&c->numbers, key);
    if (*out != TL_NO_NUMBER)
        return TL_OK;
    const size_t had = c->cap_n;
    int r = tl_grow(&c->n, &c->cap_n, c->numbers.n + (size_t)1, sizeof *c->n);
    if (r >= 0 && c->cap_n > had)
        memset(c->n + had, 0, (c->cap_n - had) * sizeof *c->n);
    if (r >= 0)
        r = tl_numbers_add(&c->numbers, key);
    *out = c->numbers.n - 1;
    return r;
}

static int count(struct counts *c, uint32_t number)
{
    if (c->n[number] == 0) {
        const int r = tl_grow(&c->met, &c->cap_met, c->n_met + 1, sizeof *c->met);
        if (r < 0)
            return r;
        c->met[c->n_met++] = number;
    }
    if (c->n[number] < UINT32_MAX)
        c->n[number]++;
    return TL_OK;
}

static int by_number(const void *a, const void *b)
{
    const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

/* Deliver the counts by id, and reset them to 0. */
static int take(struct counts *c, const struct tl_vector_part **parts, size_t *n)
{
    const int r = tl_grow(&c->parts, &c->cap_parts, c->n_met, sizeof *c->parts);
    if (r < 0)
        return r;
    if (c->n_met)
        qsort(c->met, c->n_met, sizeof *c->met, by_number);
    for (size_t i = 0; i < c->n_met; i++) {
        const uint32_t number = c->met[i];
        c->parts[i] = (struct tl_vector_part){c->numbers.keys[number], number + 1, c->n[number]};
        c->n[number] = 0;
    }
    *parts = c->parts;
    *n = c->n_met;
    c->n_met = 0;
    return TL_OK;
}

int tl_vectors_finish(struct tl_vectors *v)
{
    struct tl_vector vector = {.first = v->first, .insns = v->insns};
    if (v->insns == 0)
        return TL_OK;
    int r = take(&v->blocks, &vector.blocks, &vector.n_blocks);
    if (r >= 0)
        r = take(&v->pages, &vector.pages, &vector.n_pages);
    v->first += v->insns;
    v->insns = 0;
    v->within = false;
    return r < 0 ? r : v->sink(v->context, &vector);
}

/* Can the instruction change the flow? */
static bool ends_block(struct tl_vectors *v, enum tl_isa isa, uint64_t pc, struct tl_bytes code)
{
    static const struct tl_isa_options any_core = {
        .arch_major = 9, .arch_minor = 9, .profile = 'A'};
    uint32_t opcode = 0;
    memcpy(&opcode, code.p, code.n < sizeof opcode ? code.n : sizeof opcode);
    struct memo *const m = &v->memo[(pc >> 1) % MEMO];
    if (m->pc == pc && m->opcode == opcode && m->size == code.n && m->isa == isa)
        return m->ends;
    struct tl_insn insn;
    *m = (struct memo){pc, opcode, (uint8_t)code.n, (uint8_t)isa, true};
    if (tl_insn_decode(isa, &any_core, pc, code, &insn) > 0)
        m->ends =
            insn.kind != TL_INSN_PLAIN && insn.kind != TL_INSN_SYNC && insn.kind != TL_INSN_WAIT;
    return m->ends;
}

int tl_vectors_insn(struct tl_vectors *v, enum tl_isa isa, uint64_t pc, struct tl_bytes code)
{
    int r = TL_OK;
    /* Not at its end, since the accesses of the interval's last instruction belong to it. */
    if (v->insns == v->interval)
        r = tl_vectors_finish(v);
    if (r >= 0 && (!v->within || pc != v->next_pc))
        r = number_of(&v->blocks, pc, &v->block);
    if (r >= 0)
        r = count(&v->blocks, v->block);
    if (r < 0)
        return r;
    v->insns++;
    v->next_pc = pc + code.n;
    v->within = code.n && !ends_block(v, isa, pc, code);
    return TL_OK;
}

int tl_vectors_access(struct tl_vectors *v, uint64_t address)
{
    uint32_t number;
    const int r = number_of(&v->pages, address >> TL_VECTOR_PAGE, &number);
    return r < 0 ? r : count(&v->pages, number);
}

int tl_vector_text(struct tl_buf *out, const struct tl_vector *vector)
{
    int r = tl_buf_add(out, "T", 1);
    for (size_t i = 0; i < vector->n_blocks && r >= 0; i++)
        r = tl_buf_printf(out, ":%u:%u ", (unsigned)vector->blocks[i].id,
                          (unsigned)vector->blocks[i].n);
    return r < 0 ? r : tl_buf_add(out, "\n", 1);
}
