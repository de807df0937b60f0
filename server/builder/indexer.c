/* SPDX-License-Identifier: MIT */
/*
 * Most instructions are counted by count_quickly(): blocks executed in full, within a timeline
 * bucket, and the cycle counts and timestamps between them. Such a block only increments a counter
 * at its place and one for its kind, and rarely a call. Everything else, and the block in which a
 * bucket ends, is counted by count_closely() and count_item().
 */
#include "builder/indexer.h"

#include "base/cancel.h"

#include <limits.h>

void tl_indexer_init(struct tl_indexer *ix, enum tl_protocol protocol, const struct tl_image *image,
                     const struct tl_flow_now *now, uint64_t position)
{
    *ix = (struct tl_indexer){.protocol = protocol, .image = image, .now = *now};
    ix->blocks[0].number =
        1; /* not the number of any block in this slot, nor 0, that of blocks without a number */
    tl_callstack_init(&ix->calls, image, position, NULL, NULL);
}

/* Current position: an item, a PATH's step, and the step's block. */
struct place {
    size_t item, step;
    uint32_t insn;  /* inside the block */
    uint32_t whole; /* instructions of the item before the block */
};

static struct place place_at(const struct tl_item *items, size_t n, const struct tl_stf_flow_at *at)
{
    struct place p = {.item = at->item, .insn = at->insn};
    if (p.item == n || items[p.item].kind != TL_ITEM_PATH)
        return p;
    for (uint32_t size; (size = tl_path_block(items[p.item].path[p.step])->n) <= p.insn; p.step++) {
        p.insn -= size;
        p.whole += size;
    }
    return p;
}

static inline void next_item(struct place *p)
{
    *p = (struct place){.item = p->item + 1};
}

/* ---- single items --------------------------------------------------------------------------- */

/* Blocks of imported STF have no function from the image. */
static void name_block(const struct tl_indexer *ix, const struct tl_block *block,
                       struct tl_block *out)
{
    *out = *block;
    out->function = tl_flow_now_function(&ix->now, ix->image, block->pc);
    out->entry = tl_begins_function(ix->image, out->function, block->pc);
}

/* Assign counters to a new block. False: there are none, since it is not expected again, or another
 * block still needs them. */
static __attribute__((noinline)) bool take_counters(struct tl_indexer *ix,
                                                    const struct tl_block *block)
{
    struct tl_indexer_block *const known = &ix->blocks[block->number % TL_INDEXER_BLOCKS];
    if (block->number == 0 || known->ran > 0)
        return false;
    *known = (struct tl_indexer_block){.number = block->number, .mix = (uint8_t)tl_mix_of(block)};
    return true;
}

/* tl_mix_of(), which decodes the whole block, only once for each block. */
static enum tl_mix mix_of(struct tl_indexer *ix, const struct tl_block *block)
{
    const struct tl_indexer_block *const known = &ix->blocks[block->number % TL_INDEXER_BLOCKS];
    return known->number == block->number || take_counters(ix, block) ? (enum tl_mix)known->mix
                                                                      : tl_mix_of(block);
}

/* Count as many instructions of the block as fit; up to position `*quick` the following ones can be
 * counted quickly: there the bucket ends, or the owner must check. */
static int count_closely(struct tl_indexer *ix, const struct tl_item *item, struct place *p,
                         const struct tl_indexer_limits *limits, uint64_t *quick)
{
    struct tl_shard_builder *const shard = ix->shard;
    struct tl_shard_row *const row = &shard->view->index.row;
    struct tl_item one = item->kind == TL_ITEM_PATH ? tl_path_item(item, p->step) : *item;
    struct tl_block named;
    if (one.block->whole && ix->image) {
        name_block(ix, one.block, &named);
        one.block = &named;
    }
    const struct tl_block *const block = one.block;
    const uint32_t first = p->insn;
    const uint64_t position = tl_shard_builder_position(shard), left = limits->cut - position,
                   logged = shard->log.n;
    const uint32_t n = one.n - first < left ? one.n - first : (uint32_t)left;
    /* Only the end of a block is a branch as given by the item; a part of it continues
     * straight on. */
    const bool ends = first + n == one.n, taken = ends && one.flags & TL_ITEM_TAKEN;
    const bool whole = n == block->n, known = block->isa == ix->now.isa;
    int r = tl_callstack_arrive(&ix->calls, block, position);
    const uint32_t from = tl_block_bytes(block, first), to = tl_block_bytes(block, first + n);
    tl_callstack_leave(&ix->calls, block, to, taken);
    ix->calls.insns = position + one.n;
    ix->now.depth = tl_callstack_depth(&ix->calls);
    ix->now.isa = block->isa;
    if (r >= 0 && !known)
        r = tl_shard_builder_isa(shard, (enum tl_isa)block->isa);
    if (r >= 0)
        r = tl_shard_builder_offset(shard, position, one.offset);
    if (r >= 0)
        r = tl_shard_builder_insns(shard, &ix->now, n, block->pc + from, to - from, block->function,
                                   first == 0 && block->entry);
    if (r < 0)
        return r;
    tl_shard_builder_blocks(shard, n);
    if (ix->insn_stats && shard->log.n != logged)
        tl_insn_stats_pause(ix->insn_stats);
    if (ix->insn_stats)
        tl_insn_stats_block(ix->insn_stats, &one, first, from, n);
    else if (!shard->replayed)
        tl_stats_counter_code(&shard->counter, block, mix_of(ix, block), from, n,
                              first + n == block->n);
    tl_shard_builder_left(shard, taken);
    if (shard->coder.counting && n > 0) {
        tl_code_counter_arrive(&shard->coder, block->pc + from);
        tl_code_counter_part(&shard->coder, block, from, to,
                             whole || first + n == block->n ? block->size - block->last_size
                                                            : tl_block_bytes(block, first + n - 1),
                             first + n == block->n, taken);
    }
    row->byte_last = ix->now.offset = one.offset;

    const uint64_t end = limits->cut < limits->end ? limits->cut : limits->end, next = position + n;
    const uint64_t full = shard->replayed ? UINT64_MAX : next + tl_open_bucket_room(&shard->bucket);
    *quick = ix->insn_stats || next >= end ? 0 : full < end ? full : end - 1;
    p->insn = ends ? 0 : first + n;
    p->whole += ends ? one.n : 0;
    p->step += ends;
    if (ends && (item->kind == TL_ITEM_BLOCK || p->step == item->n))
        next_item(p);
    return whole && known && next < end ? TL_OK : TL_INDEXED_INSNS;
}

/* Count an item that is not an instruction of a block. */
static int count_item(struct tl_indexer *ix, const struct tl_item *item,
                      const struct tl_indexer_limits *limits)
{
    struct tl_shard_builder *const shard = ix->shard;
    const bool point = tl_item_is_point(ix->protocol, item->kind);
    const uint64_t pc = tl_item_address(item);
    tl_flow_now_item(&ix->now, item);
    if (tl_codecount_stops(item->kind, point))
        tl_code_counter_stop(&shard->coder);
    if (tl_codecount_switches(item->kind, &ix->now, shard->coder.until) &&
        tl_code_counter_program(&shard->coder, ix->image, &ix->now, shard->view->index.row.markers))
        tl_shard_builder_forget(shard);
    ix->calls.insns = tl_shard_builder_position(shard);
    tl_call_counter_item(&shard->caller, ix->calls.insns, &ix->now, item);
    int r = tl_callstack_push(&ix->calls, item, 1);
    tl_call_counter_followed(&shard->caller, ix->calls.insns, item);
    ix->now.depth = tl_callstack_depth(&ix->calls);
    if (ix->insn_stats)
        tl_insn_stats_item(ix->insn_stats, item);
    if (r >= 0)
        r = tl_shard_builder_item(shard, &ix->now, item);
    if (r < 0 || !point)
        return r >= 0 && tl_shard_builder_logged(shard) >= limits->log ? TL_INDEXED_ITEM : r;
    const uint32_t function =
        tl_item_is_code(item) ? tl_flow_now_function(&ix->now, ix->image, pc) : TL_NO_FUNCTION;
    r = tl_shard_builder_insns(shard, &ix->now, 1, pc, 1, function,
                               tl_begins_function(ix->image, function, pc));
    tl_shard_builder_points(shard, 1);
    shard->log.turned = false;
    return r < 0 ? r : TL_INDEXED_ITEM;
}

/* Count the unmapped code at the begin of items[0..n); returns its number of items. There may be
 * millions in a row: those after the first do not change the call stack. */
static int count_unmapped(struct tl_indexer *ix, const struct tl_item *items, size_t n,
                          const struct tl_indexer_limits *limits)
{
    n = n < INT_MAX ? n : INT_MAX;
    if (ix->insn_stats || items->kind != TL_ITEM_GAP || !tl_item_is_branch(items))
        return 0;
    int r = tl_shard_builder_unmapped(ix->shard, items, &n, limits->log);
    ix->calls.insns = tl_shard_builder_position(ix->shard);
    if (r >= 0 && n > 0) {
        tl_call_counter_gaps(&ix->shard->caller, ix->calls.insns, &ix->now, items, (size_t)n);
        r = tl_callstack_push(&ix->calls, items, 1);
        tl_call_counter_followed(&ix->shard->caller, ix->calls.insns, items);
    }
    if (r < 0 || n == 0)
        return r;
    tl_code_counter_stop(&ix->shard->coder);
    ix->now.depth = tl_callstack_depth(&ix->calls);
    ix->now.offset = items[n - 1].offset;
    return (int)n;
}

/* ---- counting several ----------------------------------------------------------------------- */

/* Executions within a bucket. */
#define WINDOW (1u << 2 * TL_LEVEL_STORED)
struct window {
    uint64_t insns, taken;                     /* not yet added to the shard */
    uint32_t n;                                /* distinct blocks */
    uintptr_t last;                            /* step; 0: none */
    const struct tl_block *blocks[WINDOW + 1]; /* large: not cleared */
};

/* The block is new in the open chunk. */
static __attribute__((noinline)) int meet(struct tl_shard_builder *shard,
                                          const struct tl_flow_now *now,
                                          const struct tl_block *block,
                                          struct tl_indexer_block *known)
{
    tl_code_set_add(&shard->code, block->pc, block->size);
    known->chunk = shard->stamp_chunk;
    if (known->names == shard->stamp_names)
        return TL_OK;
    const int place = tl_shard_builder_place(shard, now, block->function, block->pc >> 12);
    known->run = tl_code_counter_block(&shard->coder, block);
    known->place = (uint16_t)place;
    known->names = shard->stamp_names;
    return place;
}

/* Add the whole window to the shard. */
static int count_window(struct tl_indexer *ix, struct window *w)
{
    struct tl_shard_builder *const shard = ix->shard;
    struct tl_open_bucket *const open = &shard->bucket;
    const unsigned privilege = tl_flow_now_privilege(&ix->now);
    ix->now.depth = tl_callstack_depth(&ix->calls);
    tl_shard_builder_blocks(shard, w->insns);
    open->taken += w->taken;
    if (shard->replayed)
        open->position += w->insns;
    for (uint32_t i = 0; i < w->n; i++) {
        const struct tl_block *const block = w->blocks[i];
        struct tl_indexer_block *const known = &ix->blocks[block->number % TL_INDEXER_BLOCKS];
        const bool met = known->chunk == shard->stamp_chunk && known->names == shard->stamp_names;
        const int r = met ? TL_OK : meet(shard, &ix->now, block, known);
        if (r < 0)
            return r;
        const uint32_t times = known->ran & 0xffff;
        if (shard->coder.counting)
            tl_code_counter_ran(&shard->coder, known->run, times, known->ran >> 16);
        open->counts[known->place] += times * (block->n | (uint64_t)block->entry << 32);
        tl_open_bucket_more(open, (uint64_t)times * block->n, privilege);
        if (known->mix < TL_MIX_KINDS)
            shard->counter.stats.mix[known->mix] += times;
        for (uint32_t k = 0; known->mix == TL_MIX_KINDS && k < times; k++)
            tl_stats_counter_code(&shard->counter, block, TL_MIX_KINDS, 0, block->n, true);
        known->ran = 0;
    }
    return TL_OK;
}

/* Did the flow continue elsewhere than at the target of the direct branch of `before` in the code?
 * This happens only between items. */
static bool strays(uintptr_t before, uint64_t pc)
{
    const struct tl_block *const block = tl_path_block(before);
    return tl_path_taken(before) && tl_code_is_direct(block) && block->target != pc;
}

/* Count branches between steps whose destination is not given by the code: only after those in
 * `turns`, and before the first step. */
static void count_edges(struct tl_indexer *ix, const uintptr_t *steps, uint64_t turns,
                        const struct window *w)
{
    struct tl_code_counter *const coder = &ix->shard->coder;
    const uint64_t pc = tl_path_block(steps[0])->pc;
    uintptr_t before = w->last;
    if (!before) {
        tl_code_counter_arrive(coder, pc);
    } else if (strays(before, pc)) {
        /* The trace is authoritative: it is not counted as the block's branch, but separately. */
        const struct tl_block *const block = tl_path_block(before);
        ix->blocks[block->number % TL_INDEXER_BLOCKS].ran -= 1u << 16;
        tl_code_counter_edge(coder, block, pc);
    }
    for (turns |= 1; turns; turns &= turns - 1) {
        const unsigned i = (unsigned)__builtin_ctzll(turns);
        before = i > 0 ? steps[i - 1] : before;
        if (before && tl_path_taken(before) && !tl_code_is_direct(tl_path_block(before)))
            tl_code_counter_edge(coder, tl_path_block(before), tl_path_block(steps[i])->pc);
    }
}

/* May frames change where this step begins, which the stack has not seen? */
static inline bool begins_anew(const struct tl_callstack *calls, uintptr_t step)
{
    return calls->how > TL_LEAVE_JUMP || calls->depth == 0 ||
           calls->function != tl_path_block(step)->function;
}

/* The bits of `turns` for the first `n` > 0 steps. */
static inline uint64_t turns_of(uint64_t turns, uint32_t n)
{
    return turns & ~UINT64_C(0) >> (TL_CALLSTACK_STEPS - n);
}

/* Follow the calls of these steps, which have `turns` as for tl_callstack_steps(): behind the
 * counting, since processors cannot predict which steps are calls or returns. */
static inline void follow_calls(struct tl_indexer *ix, const uintptr_t *steps, uint32_t n,
                                uint64_t turns, const uint64_t *begins, struct window *w)
{
    struct tl_open_bucket *const open = &ix->shard->bucket;
    w->insns += begins[n] - begins[0];
    w->last = steps[n - 1];
    tl_callstack_steps(&ix->calls, steps, n, turns, begins, &open->depth_min, &open->depth_max);
    ix->calls.insns = begins[n];
}

/*
 * Count as many of `n` steps of one instruction set, all of them executed in full, as need no
 * closer look: up to position `end`. begins[0] is where the first begins; where the others do, and
 * where the last one ends, is added behind it. Returns their number.
 */
static uint32_t count_steps(struct tl_indexer *ix, const uintptr_t *steps, uint32_t n,
                            uint64_t *begins, uint64_t end, struct window *w)
{
    uint64_t turns = begins_anew(&ix->calls, *steps), taken = 0, at = begins[0];
    uint32_t i = 0, ran = w->n;
    while (i < n) {
        const uint32_t changes = (uint32_t)(steps[i] & TL_STEP_TAKEN);
        const struct tl_block *const block = tl_path_block(steps[i]);
        if (at + block->n > end)
            break;
        struct tl_indexer_block *const known = &ix->blocks[block->number % TL_INDEXER_BLOCKS];
        if (known->number != block->number && !take_counters(ix, block))
            break;
        w->blocks[ran] = block;
        ran += known->ran == 0;
        known->ran += 1 + (changes << 16);
        turns |= (uint64_t)(steps[i] & TL_STEP_OUT) << i;
        taken += changes;
        at += block->n;
        begins[++i] = at;
    }
    w->n = ran;
    w->taken += taken;
    if (i == 0)
        return 0;
    turns = turns_of(turns, i);
    if (ix->shard->coder.counting)
        count_edges(ix, steps, turns, w);
    follow_calls(ix, steps, i, turns, begins, w);
    return i;
}

/* The same for a shard that is replayed: only where steps begin, and their calls. */
static uint32_t follow_steps(struct tl_indexer *ix, const uintptr_t *steps, uint32_t n,
                             uint64_t *begins, uint64_t end, struct window *w)
{
    uint64_t turns = begins_anew(&ix->calls, *steps), at = begins[0];
    if (tl_path_block(*steps)->number == 0)
        return 0; /* none of them is of the program */
    for (uint32_t i = 0; i < n; i++) {
        at += tl_path_block(steps[i])->n;
        turns |= (uint64_t)(steps[i] & TL_STEP_OUT) << i;
        begins[i + 1] = at;
    }
    while (n > 0 && begins[n] > end)
        n--;
    if (n > 0)
        follow_calls(ix, steps, n, turns_of(turns, n), begins, w);
    return n;
}

/* As count_steps(), but the first may pass the position at which the next offset is due. */
static uint32_t count_some(struct tl_indexer *ix, const uintptr_t *steps, uint32_t n,
                           uint64_t *begins, uint64_t end, struct window *w)
{
    const uint64_t due = ((begins[0] >> TL_SHARD_OFFSETS) + 1) << TL_SHARD_OFFSETS;
    if (begins[0] + tl_path_block(*steps)->n > due)
        n = 1;
    else if (due < end)
        end = due;
    return ix->shard->replayed ? follow_steps(ix, steps, n, begins, end, w)
                               : count_steps(ix, steps, n, begins, end, w);
}

/* A cycle count, or a timestamp at which the program does not change (tl_codecount_switches()). The
 * first one, from which on calls have times, is counted in order. */
static inline bool is_measurement(const struct tl_indexer *ix, const struct tl_item *item)
{
    return item->kind == TL_ITEM_CYCLES ||
           (item->kind == TL_ITEM_TIME && ix->now.has_time && item->value < ix->shard->coder.until);
}

/* Count a measurement, and log it. */
static int measure(struct tl_indexer *ix, const struct tl_item *item, uint64_t position)
{
    if (item->kind == TL_ITEM_CYCLES)
        ix->now.offset = item->offset;
    else
        tl_flow_now_item(&ix->now, item);
    tl_call_counter_item(&ix->shard->caller, position, &ix->now, item);
    return tl_shard_builder_measure(ix->shard, position, &ix->now, item);
}

/* Count a gap that is no unmapped code, behind what the window has. */
static int pass_gap(struct tl_indexer *ix, const struct tl_item *item, uint64_t position,
                    struct window *w)
{
    const struct tl_block *const left = w->last ? tl_path_block(w->last) : NULL;
    const bool counts = !ix->shard->replayed; /* otherwise no block has a count to be corrected */
    if (counts && left && tl_path_taken(w->last) && tl_code_is_direct(left))
        ix->blocks[left->number % TL_INDEXER_BLOCKS].ran -= 1u << 16; /* to where is unknown */
    else if (counts && w->insns == 0)
        tl_code_counter_stop(&ix->shard->coder);
    w->last = 0;
    ix->now.offset = item->offset;
    ix->calls.insns = position;
    tl_call_counter_item(&ix->shard->caller, position, &ix->now, item);
    const int r = tl_callstack_gap(&ix->calls, item);
    tl_call_counter_followed(&ix->shard->caller, position, item);
    return r < 0 ? r : tl_shard_builder_gap(ix->shard, position, item);
}

/* Does this path continue the path that ends at `end`, so that both can be counted as one? */
static inline bool continues(const struct tl_indexer *ix, const struct tl_item *item,
                             const uintptr_t *end)
{
    return item->kind == TL_ITEM_PATH && item->path == end &&
           tl_path_block(*end)->isa == ix->now.isa && !strays(end[-1], tl_path_block(*end)->pc) &&
           (end[-1] & TL_STEP_OUT ||
            tl_path_block(end[-1])->function == tl_path_block(*end)->function);
}

/* Number of steps from `*p` on, at most TL_CALLSTACK_STEPS, of the paths of items[0..n) that lie
 * side by side in memory with only measurements between them, which the log has room for. */
static uint32_t joined_steps(const struct tl_indexer *ix, const struct tl_item *items, size_t n,
                             const struct place *p, const struct tl_indexer_limits *limits)
{
    const uintptr_t *const steps = items[p->item].path + p->step;
    size_t all = items[p->item].n - p->step, logged = tl_shard_builder_logged(ix->shard);
    for (size_t i = p->item + 1; i < n && all < TL_CALLSTACK_STEPS; i++)
        if (continues(ix, &items[i], steps + all))
            all += items[i].n;
        else if (!is_measurement(ix, &items[i]) || (logged += TL_ITEMLOG_ENTRY) >= limits->log)
            break;
    return all < TL_CALLSTACK_STEPS ? (uint32_t)all : TL_CALLSTACK_STEPS;
}

/* Advance `*p` by `counted` steps, which begin at `begins`, and count the measurements between
 * them. */
static int pass_joined(struct tl_indexer *ix, const struct tl_item *items, struct place *p,
                       uint32_t counted, const uint64_t *begins)
{
    uint32_t i = 0;
    int r = TL_OK;
    while (r >= 0 && i < counted) {
        const struct tl_item *const item = &items[p->item];
        if (item->kind != TL_ITEM_PATH) {
            r = measure(ix, item, begins[i]);
            next_item(p);
            continue;
        }
        const size_t left = item->n - p->step;
        const uint32_t some = left < counted - i ? (uint32_t)left : counted - i;
        ix->now.offset = item->offset;
        p->step += some;
        p->whole += (uint32_t)(begins[i + some] - begins[i]);
        if (some == left)
            next_item(p);
        i += some;
    }
    return r;
}

/* Count blocks from `*p` on up to position `end`, and the measurements between them, as long as
 * this is possible quickly. */
static int count_quickly(struct tl_indexer *ix, const struct tl_item *items, size_t n, uint64_t end,
                         const struct tl_indexer_limits *limits, struct place *p)
{
    struct tl_shard_builder *const shard = ix->shard;
    const uint64_t begin = tl_shard_builder_position(shard);
    struct window w;
    int r = TL_OK;
    w.insns = w.taken = w.n = 0;
    w.last = 0;
    while (r == TL_OK && p->item < n && begin + w.insns < end && p->insn == 0) {
        const struct tl_item *const item = &items[p->item];
        uint64_t begins[TL_CALLSTACK_STEPS + 1];
        uintptr_t step;
        const uintptr_t *steps = &step;
        begins[0] = begin + w.insns;
        if (is_measurement(ix, item)) {
            r = measure(ix, item, begins[0]);
            if (r >= 0 && tl_shard_builder_logged(shard) >= limits->log)
                r = TL_INDEXED_ITEM;
            next_item(p);
            continue;
        }
        if (item->kind == TL_ITEM_GAP && !tl_item_is_branch(item)) {
            r = pass_gap(ix, item, begins[0], &w);
            if (r >= 0 && tl_shard_builder_logged(shard) >= limits->log)
                r = TL_INDEXED_ITEM;
            next_item(p);
            continue;
        }
        const bool path = item->kind == TL_ITEM_PATH;
        if (path)
            steps = item->path + p->step;
        else if (item->kind == TL_ITEM_BLOCK && item->n == item->block->n && item->n > 0)
            step = tl_path_step(item->block, item->flags & TL_ITEM_TAKEN);
        else
            break;
        if (tl_path_block(*steps)->isa != ix->now.isa)
            break;
        const uint32_t all = path ? joined_steps(ix, items, n, p, limits) : 1,
                       counted = count_some(ix, steps, all, begins, end, &w);
        if (counted == 0)
            break;
        r = tl_shard_builder_offset(shard, begins[0], item->offset);
        shard->log.turned = tl_path_taken(steps[counted - 1]);
        if (r >= 0 && path) {
            r = pass_joined(ix, items, p, counted, begins);
        } else {
            ix->now.offset = item->offset;
            next_item(p);
        }
    }
    shard->view->index.row.byte_last = ix->now.offset;
    const int counted = count_window(ix, &w);
    if (w.last && shard->coder.counting) {
        const struct tl_block *const block = tl_path_block(w.last);
        tl_code_counter_left(&shard->coder, block,
                             ix->blocks[block->number % TL_INDEXER_BLOCKS].run,
                             tl_path_taken(w.last));
    }
    return counted < 0 ? counted : r;
}

int tl_indexer_items(struct tl_indexer *ix, const struct tl_item *items, size_t n,
                     const struct tl_indexer_limits *limits, struct tl_stf_flow_at *at)
{
    struct place p = place_at(items, n, at);
    uint64_t quick = 0; /* position up to which blocks can be counted quickly */
    int r = TL_OK;
    while (r == TL_OK && p.item < n) {
        if (quick > tl_shard_builder_position(ix->shard) && !ix->shard->coder.open)
            r = count_quickly(ix, items, n, quick, limits, &p);
        if (r != TL_OK || p.item == n)
            break;
        const struct tl_item *const item = &items[p.item];
        if (item->kind == TL_ITEM_PATH || (item->kind == TL_ITEM_BLOCK && item->n > 0)) {
            r = tl_cancel_check();
            if (r == TL_OK)
                r = count_closely(ix, item, &p, limits, &quick);
            continue;
        }
        const int unmapped = count_unmapped(ix, items + p.item, n - p.item, limits);
        if (unmapped == 0 && item->kind != TL_ITEM_BLOCK)
            r = count_item(ix, item, limits);
        else
            r = unmapped < 0 ? unmapped : TL_OK;
        p = (struct place){.item = p.item + (unmapped > 0 ? (size_t)unmapped : 1)};
    }
    at->item = p.item;
    at->insn = p.whole + p.insn;
    return r;
}
