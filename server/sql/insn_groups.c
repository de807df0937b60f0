/* SPDX-License-Identifier: MIT */
/*
 * Programs execute the same blocks over and over: each different one is taken apart once, and
 * counted from then on. SQLite would sort every single instruction.
 */
#include "sql/insn_groups.h"

#include "base/bytes.h"
#include "lake/gen.h"
#include "query/query.h"
#include "sql/memory.h"

#include <stdlib.h>
#include <string.h>

void tl_insn_groups_fini(struct tl_insn_groups *g)
{
    tl_sql_memory_gives(g->bytes);
    for (size_t i = 0; i < g->n_gens; i++)
        tl_gen_put(g->gens[i]);
    for (size_t i = 0; i < g->n_blocks; i++)
        free(g->blocks[i].positions);
    free(g->gens);
    free(g->p);
    free(g->blocks);
    free(g->heads);
    tl_numbers_fini(&g->hashes);
    tl_buf_fini(&g->coded);
    *g = (struct tl_insn_groups){0};
}

/* ---- blocks ---------------------------------------------------------------------------------- */

/* What blocks that are alike have in common. */
struct key {
    uint64_t pc;
    uint32_t function, stream;
    uint8_t isa;
    struct tl_bytes coded;
};

/* Their ends differ most: targets of branches. */
static uint64_t hash_of(const struct key *k)
{
    uint8_t end[8] = {0};
    const size_t n = k->coded.n < sizeof end ? k->coded.n : sizeof end;
    if (n > 0)
        memcpy(end, k->coded.p + k->coded.n - n, n);
    uint64_t hash = k->pc ^ (uint64_t)k->coded.n << 48 ^ (uint64_t)k->stream << 40 ^ k->isa;
    hash = (hash ^ hash >> 29) * 0x9e3779b97f4a7c15u;
    hash = (hash ^ hash >> 32 ^ tl_le64(end) ^ k->function) * 0xbf58476d1ce4e5b9u;
    return hash ^ hash >> 31;
}

static bool is_alike(const struct tl_insn_groups *g, const struct tl_insn_block *b,
                     const struct key *k)
{
    return b->pc == k->pc && b->function == k->function && b->stream == k->stream &&
           b->isa == k->isa && b->n_coded == k->coded.n &&
           (b->n_coded == 0 || memcmp(g->coded.p + b->coded, k->coded.p, b->n_coded) == 0);
}

/* The place of the first block of a hash, + 1. NULL: no memory. */
static uint32_t *head_of(struct tl_insn_groups *g, uint64_t hash)
{
    uint32_t number = tl_numbers_find(&g->hashes, hash);
    if (number != TL_NO_NUMBER)
        return &g->heads[number];
    number = g->hashes.n;
    if (tl_grow(&g->heads, &g->cap_heads, number + 1, sizeof *g->heads) < 0 ||
        tl_numbers_add(&g->hashes, hash) < 0)
        return NULL;
    g->heads[number] = 0;
    return &g->heads[number];
}

static int count_again(struct tl_insn_groups *g, struct tl_insn_block *b, uint64_t position)
{
    const size_t cap = b->cap;
    if (g->keeps && tl_grow(&b->positions, &b->cap, b->count + 1, sizeof *b->positions) < 0)
        return TL_NOMEM;
    g->kept += b->cap - cap;
    if (g->keeps)
        b->positions[b->count] = position;
    b->count++;
    return TL_OK;
}

/* Count a block that was executed at a position. Returns 1 if it is new: its instructions are to be
 * appended. */
static int count(struct tl_insn_groups *g, const struct key *k, uint64_t position)
{
    uint32_t *const head = head_of(g, hash_of(k));
    if (!head)
        return TL_NOMEM;
    for (uint32_t i = *head; i; i = g->blocks[i - 1].next)
        if (is_alike(g, &g->blocks[i - 1], k))
            return count_again(g, &g->blocks[i - 1], position);
    if (tl_grow(&g->blocks, &g->cap_blocks, g->n_blocks + 1, sizeof *g->blocks) < 0)
        return TL_NOMEM;
    g->blocks[g->n_blocks++] = (struct tl_insn_block){.pc = k->pc,
                                                      .function = k->function,
                                                      .stream = k->stream,
                                                      .isa = k->isa,
                                                      .coded = g->coded.n,
                                                      .n_coded = k->coded.n,
                                                      .first = g->n,
                                                      .next = *head};
    *head = (uint32_t)g->n_blocks;
    int r = tl_buf_add(&g->coded, k->coded.p, k->coded.n);
    if (r >= 0)
        r = count_again(g, &g->blocks[g->n_blocks - 1], position);
    return r < 0 ? r : 1;
}

/* ---- instructions ---------------------------------------------------------------------------- */

/* The counting of a cursor's streams. */
struct counting {
    struct tl_insn_groups *groups;
    struct tl_flow_rows *flow;
    const char *function; /* wanted; NULL: all */
    uint32_t order;
};

/* Append the instruction at a place of the block that was counted last, if it is wanted. */
static int append(struct counting *s, uint64_t pc, uint8_t isa, const struct tl_walk_step *step,
                  uint32_t at)
{
    struct tl_insn_groups *const g = s->groups;
    const struct tl_image *const image = tl_flow_rows_image(s->flow);
    const char *const name =
        tl_function_name(image, tl_flow_now_function(&s->flow->now, image, pc));
    if (s->function && strcmp(name, s->function) != 0)
        return TL_OK;
    if (tl_grow(&g->p, &g->cap, g->n + 1, sizeof *g->p) < 0)
        return TL_NOMEM;
    struct tl_insn_group *const one = &g->p[g->n++];
    *one = (struct tl_insn_group){.pc = pc,
                                  .stream = tl_flow_rows_stream(s->flow),
                                  .function = name,
                                  .isa = isa,
                                  .order = s->order,
                                  .block = (uint32_t)(g->n_blocks - 1),
                                  .at = at};
    if (step) {
        one->opcode = step->opcode;
        one->size = step->size;
        one->taken = step->taken || step->leaves;
        memcpy(one->code, step->code, sizeof one->code);
    }
    g->blocks[g->n_blocks - 1].n++;
    return TL_OK;
}

static struct key key_of(const struct counting *s, const struct tl_block *block)
{
    return (struct key){.pc = block->pc,
                        .function = block->function,
                        .stream = (uint32_t)s->flow->stream,
                        .isa = block->isa,
                        .coded = {block->coded, block->coded_size}};
}

static int count_block(struct counting *s, const struct tl_block *block, uint32_t n)
{
    const struct key key = key_of(s, block);
    struct tl_walk_step step = {.next = block->pc};
    size_t at = 0;
    int r = count(s->groups, &key, s->flow->position);
    const bool is_new = r > 0;
    for (uint32_t i = 0; is_new && i < n && r >= 0; i++) {
        r = tl_walk_insn(&s->flow->walk.walk, block, &at, step.next, &step);
        if (r >= 0)
            r = append(s, step.pc, block->isa, &step, i);
    }
    return r;
}

/* Imported records tell registers and data, so that no two blocks are alike. */
static int count_singly(struct counting *s, const struct tl_block *block, uint32_t n)
{
    struct key key = key_of(s, block);
    struct tl_walk_step step = {.next = block->pc};
    size_t at = 0;
    int r = TL_OK;
    for (uint32_t i = 0; i < n && r >= 0; i++) {
        uint8_t coded[6 + TL_STF_INSN_MAX] = {0};
        r = tl_walk_insn(&s->flow->walk.walk, block, &at, step.next, &step);
        if (r < 0)
            break;
        tl_put_le32(coded, step.opcode);
        coded[4] = step.size;
        coded[5] = step.taken || step.leaves;
        if (tl_stf_is_odd(step.size))
            memcpy(coded + 6, step.code, TL_STF_INSN_MAX);
        key.pc = step.pc;
        key.function = tl_flow_now_function(&s->flow->now, tl_flow_rows_image(s->flow), step.pc);
        key.coded = (struct tl_bytes){coded, sizeof coded};
        if ((r = count(s->groups, &key, s->flow->position + i)) > 0)
            r = append(s, step.pc, block->isa, &step, 0);
    }
    return r;
}

static int count_unknown(struct counting *s, uint64_t pc)
{
    const struct key key = {
        .pc = pc,
        .function = tl_flow_now_function(&s->flow->now, tl_flow_rows_image(s->flow), pc),
        .stream = (uint32_t)s->flow->stream,
        .coded = {(const uint8_t *)"", 0}};
    const int r = count(s->groups, &key, s->flow->position);
    return r > 0 ? append(s, pc, 0, NULL, 0) : r;
}

static int count_item(struct counting *s)
{
    const struct tl_item *const item = s->flow->item;
    if (item->kind == TL_ITEM_UNKNOWN)
        return count_unknown(s, item->pc);
    return item->kind != TL_ITEM_BLOCK ? TL_OK
           : s->flow->walk.walk.whole  ? count_singly(s, item->block, item->n)
                                       : count_block(s, item->block, item->n);
}

/* Keep the names of the present stream. */
static int keep_names(struct counting *s)
{
    struct tl_insn_groups *const g = s->groups;
    struct tl_gen *const gen = s->flow->cut.gen;
    if (g->n_gens > 0 && g->gens[g->n_gens - 1] == gen)
        return TL_OK;
    if (tl_grow(&g->gens, &g->cap_gens, g->n_gens + 1, sizeof(struct tl_gen *)) < 0)
        return TL_NOMEM;
    g->gens[g->n_gens++] = tl_gen_get(gen);
    g->names_last &= s->flow->names_last;
    return TL_OK;
}

/* Count the memory that is in use now. */
static int take_memory(struct tl_insn_groups *g)
{
    const size_t bytes = g->cap * sizeof *g->p + g->cap_blocks * (sizeof *g->blocks + 32) +
                         g->coded.n + g->kept * sizeof *g->blocks->positions;
    if (!tl_sql_memory_takes(bytes - g->bytes))
        return TL_LIMIT;
    g->bytes = bytes;
    return TL_OK;
}

/* ---- order ----------------------------------------------------------------------------------- */

#define ORDER(a, b) (((a) > (b)) - ((a) < (b)))

/* As SQLite orders them: what has no value is first. */
static int compare_column(int column, const struct tl_insn_group *a, const struct tl_insn_group *b)
{
    const int known = ORDER(a->size > 0, b->size > 0);
    switch (column) {
    case TL_COLUMN_INSN_STREAM:
        return strcmp(a->stream, b->stream);
    case TL_COLUMN_INSN_PC:
        return ORDER((int64_t)a->pc, (int64_t)b->pc);
    case TL_COLUMN_INSN_SIZE:
        return ORDER(a->size, b->size);
    case TL_COLUMN_INSN_OPCODE:
        return known ? known : ORDER(a->opcode, b->opcode);
    case TL_COLUMN_INSN_FUNCTION:
        return strcmp(a->function, b->function);
    case TL_COLUMN_INSN_TAKEN:
        return known ? known : ORDER(a->taken, b->taken);
    default: /* the trace, which is one */
        return 0;
    }
}

static int compare(const void *left, const void *right)
{
    const struct tl_insn_group *const a = left, *const b = right;
    int order = 0, column = 0;
    for (unsigned i = 0; order == 0 && column >= 0; i++) {
        bool descends;
        column = tl_group_column(a->order, i, &descends);
        order = compare_column(column, a, b) * (descends ? -1 : 1);
    }
    return order;
}

static void finish(struct tl_insn_groups *g, uint32_t order)
{
    for (size_t i = 0; i < g->n_blocks; i++)
        for (size_t k = 0; k < g->blocks[i].n; k++)
            g->p[g->blocks[i].first + k].count = order & TL_GROUP_ONCE ? 1 : g->blocks[i].count;
    if (g->n > 0)
        qsort(g->p, g->n, sizeof *g->p, compare);
}

int tl_insn_groups_count(struct tl_insn_groups *g, struct tl_cursor *c, struct tl_flow_rows *f,
                         uint32_t order)
{
    struct counting s = {.groups = g, .flow = f, .function = c->bounds.function, .order = order};
    int r;
    g->names_last = true;
    g->keeps = order & TL_GROUP_POSITIONS;
    while ((r = tl_flow_rows_next(c, f, false)) > 0) {
        r = keep_names(&s);
        if (r >= 0)
            r = count_item(&s);
        if (r >= 0)
            r = take_memory(g);
        if (r < 0)
            break;
    }
    if (r >= 0)
        finish(g, order);
    return r == TL_BAD ? tl_fail_set(c->asking->fail, r, "a shard is damaged") : r;
}
