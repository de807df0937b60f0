/* SPDX-License-Identifier: MIT */
/*
 * Splits runs of instructions into blocks as a decoder delivers them, and remembers the blocks of
 * each run. An indexer thus gets from a shard what it got from the decoder.
 */
#include "shard/runs.h"

#include <stdlib.h>
#include <string.h>

#define KEEP_MAX ((size_t)8 << 20) /* maximum size of runs kept for the next chunk */

/* What a run's blocks depend on, besides its instructions. */
struct key {
    uint64_t pc, mode, context, changed;
    uint32_t n, size, coded_size;
    bool taken;
    uint8_t isa;
};

struct tl_block_run {
    struct tl_block_run *next;
    struct key key;
    uint32_t n; /* blocks */
    uintptr_t *path;
    uint8_t *coded, *code; /* its records, and the instructions' bytes */
    struct tl_block blocks[];
};

void tl_runs_fini(struct tl_runs *runs)
{
    for (size_t i = 0; i < TL_RUNS_LISTS; i++)
        for (struct tl_block_run *run = runs->lists[i], *next; run; run = next) {
            next = run->next;
            free(run);
        }
    memset(runs->lists, 0, sizeof runs->lists);
    runs->bytes = 0;
}

/* Collect the bytes of the run's instructions. */
static int read_code(const struct tl_walk *walk, const struct tl_block *run, uint8_t *code)
{
    struct tl_walk_step insn = {.next = run->pc};
    size_t at = 0;
    uint32_t size = 0;
    for (uint32_t i = 0; i < run->n; i++, size += insn.size) {
        const int r = tl_walk_insn(walk, run, &at, run->pc + size, &insn);
        if (r < 0)
            return r;
        tl_walk_code(&insn, run->isa);
        memcpy(code + size, insn.code, insn.size);
    }
    return TL_OK;
}

/* Decode the instruction at byte `at`: can the flow change after it? */
static bool ends_block(const struct tl_block *run, uint32_t at, struct tl_insn *insn)
{
    *insn = (struct tl_insn){0};
    tl_block_insn(run, at, insn);
    return insn->kind != TL_INSN_PLAIN && insn->size != 0;
}

static void add_block(struct tl_runs *runs, struct tl_block_run *out, struct tl_block *block,
                      const struct tl_flow_now *now, bool taken)
{
    if (++runs->blocks == 0)
        runs->blocks = 1;
    block->number = runs->blocks;
    block->function = tl_flow_now_function(now, runs->image, block->pc);
    block->entry = tl_begins_function(runs->image, block->function, block->pc);
    if (out->n > 0 && tl_path_block(out->path[out->n - 1])->function != block->function)
        out->path[out->n - 1] |= TL_STEP_OUT;
    out->blocks[out->n] = *block;
    out->path[out->n] = tl_path_step(&out->blocks[out->n], taken);
    out->n++;
}

static void fill(struct tl_runs *runs, struct tl_block_run *out, const struct tl_block *run,
                 const struct tl_flow_now *now)
{
    struct tl_block block;
    struct tl_insn insn;
    tl_block_init(&block, run->pc, (enum tl_isa)run->isa);
    block.code = run->code;
    for (uint32_t at = 0, n = 0; n < run->n; n++) {
        const bool last = n + 1 == run->n, ends = ends_block(run, at, &insn);
        at += insn.size;
        block.n++;
        block.size += insn.size;
        if (!ends && !last)
            continue;
        tl_block_set_last(&block, &insn);
        block.last_size = insn.size;
        if (last)
            block.size = (uint32_t)(run->pc + run->size - block.pc);
        add_block(runs, out, &block, now, last && out->key.taken);
        tl_block_init(&block, run->pc + at, (enum tl_isa)run->isa);
        block.code = run->code + at;
    }
}

static int add_run(struct tl_runs *runs, struct tl_block_run **list, const struct key *key,
                   const struct tl_walk *walk, const struct tl_block *block,
                   const struct tl_flow_now *now)
{
    /* At most one block per instruction. */
    const size_t blocks = sizeof(struct tl_block_run) + block->n * sizeof(struct tl_block),
                 path = blocks + block->n * sizeof(uintptr_t), code = path + block->size,
                 all = code + block->coded_size;
    struct tl_block_run *const out = malloc(all);
    if (!out)
        return TL_NOMEM;
    *out = (struct tl_block_run){.next = *list,
                                 .key = *key,
                                 .path = (uintptr_t *)(void *)((char *)out + blocks),
                                 .code = (uint8_t *)out + path,
                                 .coded = (uint8_t *)out + code};
    memcpy(out->coded, block->coded, block->coded_size);
    *list = out;
    runs->bytes += all;
    struct tl_block run = *block;
    run.code = out->code;
    const int r = read_code(walk, block, out->code);
    if (r >= 0)
        fill(runs, out, &run, now);
    return r;
}

static bool is_run(const struct tl_block_run *known, const struct key *key, const uint8_t *coded)
{
    const struct key *const k = &known->key;
    return k->pc == key->pc && k->n == key->n && k->coded_size == key->coded_size &&
           k->size == key->size && k->taken == key->taken && k->isa == key->isa &&
           k->mode == key->mode && k->context == key->context && k->changed == key->changed &&
           memcmp(known->coded, coded, k->coded_size) == 0;
}

static int make_path(struct tl_runs *runs, struct tl_walk *walk, struct tl_item *item,
                     struct key key, const struct tl_flow_now *now)
{
    const struct tl_block *const block = item->block;
    key.pc = block->pc;
    key.n = block->n;
    key.size = block->size;
    key.coded_size = block->coded_size;
    key.isa = block->isa;
    key.taken = item->flags & TL_ITEM_TAKEN;
    struct tl_block_run **const list =
        &runs->lists[(key.pc >> 1 ^ key.pc >> 13 ^ key.n) % TL_RUNS_LISTS];
    const struct tl_block_run *run = *list;
    while (run && !is_run(run, &key, block->coded))
        run = run->next;
    const int r = run ? TL_OK : add_run(runs, list, &key, walk, block, now);
    if (r < 0)
        return r;
    run = run ? run : *list;
    item->kind = TL_ITEM_PATH;
    item->n = run->n;
    item->path = run->path;
    return TL_OK;
}

int tl_runs_split(struct tl_runs *runs, struct tl_walk *walk, const struct tl_flow_now *at)
{
    struct tl_flow_now now = *at;
    struct key key;
    bool known = false; /* the part of the key that depends on `now` has been set */
    if (runs->bytes > KEEP_MAX)
        tl_runs_fini(runs);
    for (size_t i = 0; i < walk->n; i++) {
        struct tl_item *const item = &walk->items[i];
        if (item->kind != TL_ITEM_BLOCK) {
            tl_flow_now_item(&now, item);
            known = false;
            continue;
        }
        if (!known)
            key = (struct key){.mode = now.mode,
                               .context = now.context << 32 ^ now.vmid,
                               .changed =
                                   runs->image ? tl_image_last_change(runs->image, now.time) : 0};
        known = true;
        const int r = make_path(runs, walk, item, key, &now);
        if (r < 0)
            return r;
    }
    return TL_OK;
}
